//! Playing: poses in, vertices out. Nothing is allocated per pose once a player has seen one of its kind.

use crate::UnderstudyStatus;
use crate::border::{self, Problem, array, array_mut, check_apart, owned, shared, status, take_bones};
use crate::twin::UnderstudyTwin;
use understudy_core::Vec3;
use understudy_runtime::{Affine3A, Player, Pose};

/// A twin with the memory to play it: one for each thread or character.
pub struct UnderstudyPlayer {
    player: Player,
    bones: Vec<Affine3A>,
}

/// A player of a twin on so many threads, the caller's included (0 counts as 1). NULL where `twin` is NULL.
///
/// # Safety
/// `twin` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_player_new(
    twin: *const UnderstudyTwin,
    threads: usize,
) -> *mut UnderstudyPlayer {
    border::handle(|| {
        // SAFETY: the caller's promise.
        let twin = unsafe { shared(twin, "twin") }?;
        Ok(UnderstudyPlayer { player: twin.twin.player(threads.clamp(1, 1024)), bones: Vec::new() })
    })
}

/// Frees a player. NULL is nothing.
///
/// # Safety
/// `player` is NULL, or came from `understudy_player_new` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_player_free(player: *mut UnderstudyPlayer) {
    // SAFETY: the caller's promise.
    unsafe { border::free(player) }
}

/// Three numbers per vertex as vertices.
///
/// # Safety
/// As of [`array_mut`].
unsafe fn vertices_mut<'a>(
    out: *mut f32,
    length: usize,
    what: &'static str,
) -> Result<&'a mut [Vec3], Problem> {
    check_thirds(length, what)?;
    // SAFETY: a Vec3 is three numbers, as aligned as one; the rest is the caller's promise.
    unsafe { array_mut(out.cast::<Vec3>(), length / 3, what) }
}

/// Three numbers per vertex as vertices.
///
/// # Safety
/// As of [`array`].
unsafe fn vertices_of<'a>(
    from: *const f32,
    length: usize,
    what: &'static str,
) -> Result<&'a [Vec3], Problem> {
    check_thirds(length, what)?;
    // SAFETY: as above.
    unsafe { array(from.cast::<Vec3>(), length / 3, what) }
}

fn check_thirds(length: usize, what: &str) -> Result<(), Problem> {
    match length % 3 {
        0 => Ok(()),
        _ => Err(Problem::Input(format!("{what}: {length} numbers, a multiple of 3 expected"))),
    }
}

const _: () = assert!(size_of::<Vec3>() == 12 && align_of::<Vec3>() == align_of::<f32>());

fn play(player: &mut Player, pose: Pose<'_>, poses: usize, out: &mut [Vec3]) -> Result<(), Problem> {
    let vertices = player.twin().vertex_count();
    match poses {
        1 => player.pose(pose, out)?,
        // The run time counts poses by the vertices that it shall write.
        _ if poses.checked_mul(vertices) == Some(out.len()) => player.crowd(pose, out)?,
        _ => {
            let problem = format!("vertices: {} entries, {poses} poses of {vertices} expected", out.len());
            return Err(Problem::Input(problem));
        }
    }
    Ok(())
}

/// Moves the vertices for `poses` poses (1, or a crowd) by controls alone: all posing controls, in their order, pose after
/// pose. `out`: x, y, z per vertex, cm.
///
/// # Safety
/// `player` is NULL or a live handle; arrays are NULL or as long as promised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_pose_controls(
    player: *mut UnderstudyPlayer,
    controls: *const f32,
    control_length: usize,
    poses: usize,
    out: *mut f32,
    out_length: usize,
) -> UnderstudyStatus {
    status(|| {
        check_apart((controls, control_length), (out, out_length))?;
        // SAFETY: the caller's promises; arrays do not overlap.
        let (player, controls, out) = unsafe {
            (
                owned(player, "player")?,
                array(controls, control_length, "controls")?,
                vertices_mut(out, out_length, "vertices")?,
            )
        };
        play(&mut player.player, Pose::Controls(controls), poses, out)
    })
}

/// The same by bones (world transforms, 4×4 matrices by columns, cm) and the extra controls that matter beside them.
///
/// # Safety
/// `player` is NULL or a live handle; arrays are NULL or as long as promised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_pose_bones(
    player: *mut UnderstudyPlayer,
    matrices: *const f32,
    matrix_length: usize,
    extras: *const f32,
    extra_length: usize,
    poses: usize,
    out: *mut f32,
    out_length: usize,
) -> UnderstudyStatus {
    status(|| {
        check_apart((matrices, matrix_length), (out, out_length))?;
        check_apart((extras, extra_length), (out, out_length))?;
        // SAFETY: the caller's promises; what is written overlaps nothing.
        let (player, matrices, extras, out) = unsafe {
            (
                owned(player, "player")?,
                array(matrices, matrix_length, "bones")?,
                array(extras, extra_length, "controls")?,
                vertices_mut(out, out_length, "vertices")?,
            )
        };
        take_bones(matrices, &mut player.bones)?;
        play(&mut player.player, Pose::Bones { bones: &player.bones, extras }, poses, out)
    })
}

/// Unit normals of the pose that was played last, whose vertices are given.
///
/// # Safety
/// `player` is NULL or a live handle; arrays are NULL or as long as promised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_normals(
    player: *mut UnderstudyPlayer,
    vertices: *const f32,
    vertex_length: usize,
    out: *mut f32,
    out_length: usize,
) -> UnderstudyStatus {
    status(|| {
        check_apart((vertices, vertex_length), (out, out_length))?;
        // SAFETY: the caller's promises; arrays do not overlap.
        let (player, vertices, out) = unsafe {
            (
                owned(player, "player")?,
                vertices_of(vertices, vertex_length, "vertices")?,
                vertices_mut(out, out_length, "normals")?,
            )
        };
        Ok(player.player.normals(vertices, out)?)
    })
}

/// The derivative of a loss by the posing controls at a pose of controls, from its derivative by the vertices.
///
/// # Safety
/// `player` is NULL or a live handle; arrays are NULL or as long as promised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_gradient(
    player: *mut UnderstudyPlayer,
    controls: *const f32,
    control_length: usize,
    by_vertices: *const f32,
    vertex_length: usize,
    out: *mut f32,
    out_length: usize,
) -> UnderstudyStatus {
    status(|| {
        check_apart((controls, control_length), (out, out_length))?;
        check_apart((by_vertices, vertex_length), (out, out_length))?;
        // SAFETY: the caller's promises; what is written overlaps nothing.
        let (player, controls, by_vertices, out) = unsafe {
            (
                owned(player, "player")?,
                array(controls, control_length, "controls")?,
                vertices_of(by_vertices, vertex_length, "derivatives by vertices")?,
                array_mut(out, out_length, "derivatives by controls")?,
            )
        };
        let want = player.player.twin().vertex_count();
        if by_vertices.len() != want {
            let problem = format!("derivatives by vertices: {} entries, {want} expected", by_vertices.len());
            return Err(Problem::Input(problem));
        }
        let given = |_: &[Vec3], slopes: &mut [Vec3]| slopes.copy_from_slice(by_vertices);
        Ok(player.player.gradient(Pose::Controls(controls), given, out)?)
    })
}
