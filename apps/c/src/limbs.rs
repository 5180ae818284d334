//! Posing a body by its hands, feet and torso: handles on the world transforms that `understudy_pose_bones` takes. What a rig's
//! controls and their limits allow is `understudy pose`'s affair.

use crate::UnderstudyStatus;
use crate::border::{
    self, MATRIX, Problem, array, array_mut, c_text, check_apart, matrix, owned, shared, status, take_bones,
    text, value_or,
};
use crate::twin::UnderstudyTwin;
use std::ffi::{CString, c_char};
use understudy_core::Vec3;
use understudy_runtime::Affine3A;
use understudy_runtime::ik::two_bone::MOST_CM;
use understudy_runtime::ik::{Bend, Handles, LimbBones, LimbError, PlacedBones, Reach};

/// The handles of a body, and memory to move them: one for each thread or character.
pub struct UnderstudyLimbs {
    handles: Handles,
    names: Vec<CString>,
    parents: Vec<Option<usize>>,
    world: Vec<Affine3A>,
}

/// How a handle reached its target.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnderstudyReach {
    /// It is there.
    Exact = 0,
    /// It stays behind the target on purpose: a soft reach.
    Soft = 1,
    /// The limb is straight and too short.
    TooFar = 2,
    /// The limb is folded, and the target is nearer than its bones' difference.
    TooNear = 3,
}

/// The hands, feet and torso of a twin's bones: found by usual names, or as `spelling` says, in JSON:
/// `{"hand_L": ["arm", "elbow", "wrist"], "torso": "pelvis"}` (from the trunk outwards; NULL: usual names alone). NULL where
/// there is none.
///
/// # Safety
/// `twin` is NULL or a live handle; `spelling` is NULL or a text that ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_limbs_new(
    twin: *const UnderstudyTwin,
    spelling: *const c_char,
) -> *mut UnderstudyLimbs {
    border::handle(|| {
        // SAFETY: the caller's promise.
        let twin = unsafe { shared(twin, "twin") }?;
        let header = &twin.twin.header().inputs.bones;
        let bones: Vec<(&str, Option<usize>)> =
            header.iter().map(|bone| (bone.name.as_str(), bone.parent)).collect();
        let handles = if spelling.is_null() {
            Handles::find(bones.iter().copied())
        } else {
            // SAFETY: the caller's promise.
            let spelling = unsafe { text(spelling, "spelling") }?;
            let spelling = serde_json::from_str(spelling)
                .map_err(|problem| Problem::Input(format!("spelling: {problem}")))?;
            Handles::spelled(&bones, &spelling).map_err(Problem::Input)?
        };
        let names: Vec<CString> = handles.names().into_iter().map(c_text).collect();
        if names.is_empty() {
            let problem = match bones.is_empty() {
                true => "the twin has no bones, and so no limbs",
                false => "no bones have usual names of limbs: a spelling says which they are",
            };
            return Err(Problem::Input(problem.into()));
        }
        let parents = header.iter().map(|bone| bone.parent).collect();
        Ok(UnderstudyLimbs { handles, names, parents, world: Vec::new() })
    })
}

/// Frees handles. NULL is nothing.
///
/// # Safety
/// `limbs` is NULL, or came from `understudy_limbs_new` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_limbs_free(limbs: *mut UnderstudyLimbs) {
    // SAFETY: the caller's promise.
    unsafe { border::free(limbs) }
}

/// How many handles there are, five at most of a body with usual names; 0 where `limbs` is NULL.
///
/// # Safety
/// `limbs` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_limbs_count(limbs: *const UnderstudyLimbs) -> usize {
    // SAFETY: the caller's promise.
    value_or(0, || Ok(unsafe { shared(limbs, "limbs") }?.names.len()))
}

impl UnderstudyLimbs {
    fn name(&self, handle: usize) -> Result<&CString, Problem> {
        let wrong =
            || Problem::Input(format!("handle: {handle} is out of range, there are {}", self.names.len()));
        self.names.get(handle).ok_or_else(wrong)
    }

    /// The bone that a handle holds, and the limb that it ends, where it is not the torso's.
    fn bone(&self, handle: usize) -> Result<(usize, Option<&LimbBones>), Problem> {
        self.name(handle)?;
        let limb = self.handles.limbs.get(handle);
        let bone = limb.map(|limb| limb.bones[2]).or(self.handles.torso);
        Ok((bone.expect("a handle holds a bone"), limb))
    }
}

/// The name of a handle: `hand_L`, `hand_R`, `foot_L`, `foot_R` or `torso`; NULL where there is no such handle. Lives as
/// long as the handles.
///
/// # Safety
/// `limbs` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_limbs_name(
    limbs: *const UnderstudyLimbs,
    handle: usize,
) -> *const c_char {
    // SAFETY: the caller's promise.
    value_or(std::ptr::null(), || Ok(unsafe { shared(limbs, "limbs") }?.name(handle)?.as_ptr()))
}

/// The bone that a handle holds; -2 where there is no such handle.
///
/// # Safety
/// `limbs` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_limbs_bone(limbs: *const UnderstudyLimbs, handle: usize) -> i64 {
    // SAFETY: the caller's promise.
    value_or(-2, || Ok(unsafe { shared(limbs, "limbs") }?.bone(handle)?.0 as i64))
}

/// Puts a handle on a target (x, y, z in cm) and changes the world transforms of all bones for it: those below a limb
/// follow rigidly, the torso takes everything along. To lock a foot, move the torso first and reach for where the foot was.
///
/// `pole`: the direction in which the elbow or knee points (three numbers), or NULL: as it does now; of a straight limb
/// elbows go back (-Z) and knees forward (+Z). `soft`: the share of the limb's length, up to 0.5, before it is straight in
/// which it slows down. `keep`: not 0 where the hand or foot keeps its orientation. `reach` (may be NULL): an
/// `UnderstudyReach`. Of the torso only the target counts. `matrices` stay as they were where the call fails.
///
/// # Safety
/// `limbs` is NULL or a live handle; arrays are NULL or as long as promised; `reach` is NULL or leads to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_limbs_reach(
    limbs: *mut UnderstudyLimbs,
    handle: usize,
    target: *const f32,
    target_length: usize,
    pole: *const f32,
    pole_length: usize,
    soft: f32,
    keep: i32,
    matrices: *mut f32,
    matrix_length: usize,
    reach: *mut i32,
) -> UnderstudyStatus {
    status(|| {
        check_apart((target, target_length), (matrices, matrix_length))?;
        check_apart((pole, pole_length), (matrices, matrix_length))?;
        let reaches = usize::from(!reach.is_null());
        check_apart((matrices.cast_const(), matrix_length), (reach, reaches))?;
        // SAFETY: the caller's promises; what is written overlaps nothing.
        let (limbs, target, pole, matrices, reach) = unsafe {
            (
                owned(limbs, "limbs")?,
                array(target, target_length, "target")?,
                if pole.is_null() { None } else { Some(array(pole, pole_length, "pole")?) },
                array_mut(matrices, matrix_length, "bones")?,
                array_mut(reach, reaches, "reach")?,
            )
        };
        let target = point(target, "target")?;
        let pole = pole.map(|pole| point(pole, "pole")).transpose()?;
        let (bone, limb) = limbs.bone(handle)?;
        let limb = limb.cloned();
        take_bones(matrices, &mut limbs.world)?;
        let (got, want) = (limbs.world.len(), limbs.parents.len());
        if got != want {
            return Err(Problem::Input(format!("bones: {got} entries, {want} expected")));
        }
        if let Some(entry) = limbs.world.iter().position(|bone| !bone.is_finite()) {
            return Err(Problem::Input(format!("bones: entry {entry} is not finite")));
        }
        let mut placed = PlacedBones::new(&limbs.parents, std::mem::take(&mut limbs.world));
        let moved = match &limb {
            Some(limb) => {
                let bend = Bend::Pole(pole.unwrap_or_else(|| limb.natural_bend(&placed.world)));
                placed.reach(limb, target, bend, soft, keep != 0).map(|pose| pose.reach)
            }
            None => move_torso(&mut placed, bone, target),
        };
        limbs.world = placed.world;
        let moved = moved?;
        for (bone, out) in limbs.world.iter().zip(matrices.chunks_exact_mut(MATRIX)) {
            out.copy_from_slice(&matrix(bone));
        }
        let how = match moved {
            Reach::Exact => UnderstudyReach::Exact,
            Reach::Soft => UnderstudyReach::Soft,
            Reach::TooFar => UnderstudyReach::TooFar,
            Reach::TooNear => UnderstudyReach::TooNear,
        };
        reach.iter_mut().for_each(|reach| *reach = how as i32);
        Ok(())
    })
}

fn point(numbers: &[f32], what: &str) -> Result<Vec3, Problem> {
    match numbers {
        &[x, y, z] => Ok(Vec3::new(x, y, z)),
        _ => Err(Problem::Input(format!("{what}: {} numbers, 3 expected", numbers.len()))),
    }
}

/// The torso takes every bone along; its target is checked as limbs check theirs.
fn move_torso(placed: &mut PlacedBones<'_>, bone: usize, target: Vec3) -> Result<Reach, LimbError> {
    if !(target.is_finite() && target.abs().max_element() <= MOST_CM) {
        return Err(LimbError::Point { what: "target", point: target });
    }
    placed.offset(target - Vec3::from(placed.world[bone].translation));
    Ok(Reach::Exact)
}
