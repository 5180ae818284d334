//! Plays a twin in Bevy for 300 frames without a window: `understudy-bevy HERO.twin`. Every frame's vertices are compared with
//! those of the twin alone, and allocations are counted: with the twin there must be as many as in the same app whose mesh is
//! merely touched, so that none is ours. Start at `plugin.rs` for what a game takes from here.

mod plugin;

use bevy_app::{App, PostUpdate, TaskPoolPlugin};
use bevy_asset::{AssetEventSystems, AssetPlugin, Assets, Handle};
use bevy_ecs::prelude::{IntoScheduleConfigs, Query, ResMut};
use bevy_mesh::{Mesh, Mesh3d, MeshPlugin, VertexAttributeValues};
use plugin::{TwinMesh, TwinPlugin};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use understudy_runtime::{Affine3A, Pose, Twin, Vec3};

const FRAMES: usize = 300;
/// Bevy's own buffers grow at first.
const WARM_UP: usize = 60;

/// Counts what this thread asks for; hands everything on to the system's allocator.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: hands everything on to the system's allocator; the counter needs no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: as promised by our caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by our caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path] = &words[..] else {
        eprintln!("usage: understudy-bevy HERO.twin");
        return ExitCode::from(2);
    };
    let twin = std::fs::read(path).map_err(|error| error.to_string());
    let twin = twin.and_then(|bytes| Twin::parse(&bytes).map_err(|error| error.to_string()));
    let shown = twin
        .map_err(|problem| (2, problem))
        .and_then(|twin| show(&twin).map_err(|error| (1, error.to_string())));
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, problem)) => {
            eprintln!("{path}: {problem}");
            ExitCode::from(code)
        }
    }
}

/// An app with the twin on an entity, and its mesh.
fn app(twin: &Twin) -> (App, Handle<Mesh>) {
    let mut app = App::new();
    app.add_plugins((TaskPoolPlugin::default(), AssetPlugin::default(), MeshPlugin));
    let part = TwinMesh::new(twin);
    let mesh = app.world_mut().resource_mut::<Assets<Mesh>>().add(part.mesh());
    app.world_mut().spawn((part, Mesh3d(mesh.clone())));
    (app, mesh)
}

/// What moves the twin in a frame: all of its controls swing, or all of its bones.
fn swing(part: &mut TwinMesh, twin: &Twin, frame: usize) {
    let angle = |place: usize| 0.1 * frame as f32 + place as f32;
    if let Some(specs) = twin.posing_controls() {
        for (place, (value, spec)) in part.controls.iter_mut().zip(specs.iter()).enumerate() {
            let (low, high) = (spec.low.max(-90.0), spec.high.min(90.0));
            *value = low + (high - low) * (0.5 + 0.5 * angle(place).sin());
        }
    } else {
        for (place, (bone, rest)) in part.bones.iter_mut().zip(twin.rest_bones()).enumerate() {
            *bone = *rest * Affine3A::from_rotation_x(0.1 * angle(place).sin());
        }
    }
}

/// Bevy's part alone: the mesh is asked for, as the plugin does, and left as it is.
fn touch(twins: Query<(&TwinMesh, &Mesh3d)>, mut meshes: ResMut<Assets<Mesh>>) {
    for (_, mesh) in &twins {
        let _ = meshes.get_mut(&mesh.0);
    }
}

/// Runs frames; gives the allocations after the warm-up and how long they took.
fn run(
    app: &mut App,
    twin: &Twin,
    mut after: impl FnMut(&mut App, usize) -> Result<(), Box<dyn Error>>,
) -> Result<(usize, Duration), Box<dyn Error>> {
    app.finish();
    app.cleanup();
    let (mut count, mut time) = (0, Duration::ZERO);
    for frame in 0..WARM_UP + FRAMES {
        let mut query = app.world_mut().query::<&mut TwinMesh>();
        let mut part = query.single_mut(app.world_mut())?;
        swing(&mut part, twin, frame);
        let (before, begun) = (ALLOCATIONS.get(), Instant::now());
        app.update();
        if frame >= WARM_UP {
            count += ALLOCATIONS.get() - before;
            time += begun.elapsed();
        }
        after(app, frame)?;
    }
    Ok((count, time))
}

fn show(twin: &Twin) -> Result<(), Box<dyn Error>> {
    let (mut bare, _) = app(twin);
    bare.add_systems(PostUpdate, touch.before(AssetEventSystems));
    let (bevys, _) = run(&mut bare, twin, |_, _| Ok(()))?;

    let (mut game, mesh) = app(twin);
    game.add_plugins(TwinPlugin);
    let (mut player, mut alone) = (twin.player(1), TwinMesh::new(twin));
    let mut want = vec![Vec3::ZERO; twin.vertex_count()];
    let (mut still, mut moved) = (want.clone(), 0.0f32);
    let (all, time) = run(&mut game, twin, |app, frame| {
        swing(&mut alone, twin, frame);
        let pose = match twin.posing_controls() {
            Some(_) => Pose::Controls(&alone.controls),
            None => Pose::Bones { bones: &alone.bones, extras: &alone.controls },
        };
        player.pose(pose, &mut want)?;
        let mesh = app.world().resource::<Assets<Mesh>>().get(&mesh).ok_or("the mesh is gone")?;
        let Some(VertexAttributeValues::Float32x3(shown)) = mesh.attribute(Mesh::ATTRIBUTE_POSITION) else {
            return Err("the mesh has no positions".into());
        };
        if let Some(vertex) = (0..want.len()).find(|vertex| shown[*vertex] != want[*vertex].to_array()) {
            return Err(format!("frame {frame}: vertex {vertex} is not where the twin puts it").into());
        }
        if frame > 0 {
            moved = want.iter().zip(&still).map(|(a, b)| a.distance(*b)).fold(moved, f32::max);
        }
        still.copy_from_slice(&want);
        Ok(())
    })?;
    if moved == 0.0 {
        return Err("no vertex moved".into());
    }
    println!(
        "{}: {} vertices, {FRAMES} frames in Bevy, {:.3} ms per frame; {} allocations, Bevy alone {bevys}",
        twin.header().rig,
        twin.vertex_count(),
        time.as_secs_f64() * 1e3 / FRAMES as f64,
        all
    );
    match all.checked_sub(bevys) {
        None | Some(0) => Ok(()),
        Some(ours) => Err(format!("{ours} allocations in {FRAMES} frames are ours").into()),
    }
}
