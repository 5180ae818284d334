//! Which controls move which points: every control is taken through its whole range, at rest and in random poses, of the rig
//! itself where it is at hand: what a twin lets through from elsewhere is then no matter.

use super::IkError;
use understudy_core::{ControlSpecs, Controls, Random, Vec3};
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::{Pose, PoseError, Twin};

/// Random poses beside the neutral one.
const POSES: usize = 6;
/// The same of a rig, which is slower and lets nothing through.
const RIG_POSES: usize = 2;

/// A control whose largest motion of any vertex is so many times what it does to a point moves that point only because
/// a twin is not exact.
const LEAK_SHARE: f32 = 0.04;

/// For each of these vertices of a twin the controls that move it, ascending: by at least `least` cm, and by more than
/// what a twin lets through from elsewhere.
pub fn movers(twin: &Twin, points: &[u32], least: f32, seed: u64) -> Result<Vec<Vec<usize>>, PoseError> {
    let mut player = twin.player(1);
    let specs = &twin.header().inputs.controls;
    let places = |controls: &[f32], out: &mut Vec<Vec3>| {
        out.resize(twin.vertex_count(), Vec3::ZERO);
        player.pose(Pose::Controls(controls), out)
    };
    through_ranges(specs, points, POSES, LEAK_SHARE, least, seed, places)
}

/// The same by the rig: its controls are the twin's.
pub fn movers_of_rig(
    rig: &dyn Rig,
    points: &[u32],
    least: f32,
    seed: u64,
) -> Result<Vec<Vec<usize>>, IkError> {
    let mut pose = RigPose::default();
    let places = |controls: &[f32], out: &mut Vec<Vec3>| {
        let posed = rig.evaluate(&Controls(controls.to_vec()), &mut pose);
        posed.map_err(|error| IkError::Setting { what: "rig", problem: error.to_string() })?;
        out.clone_from(&pose.vertices);
        Ok(())
    };
    through_ranges(rig.specs(), points, RIG_POSES, 0.0, least, seed, places)
}

fn through_ranges<E>(
    specs: &ControlSpecs,
    points: &[u32],
    poses: usize,
    leak: f32,
    least: f32,
    seed: u64,
    mut places: impl FnMut(&[f32], &mut Vec<Vec3>) -> Result<(), E>,
) -> Result<Vec<Vec<usize>>, E> {
    let mut reach = vec![vec![0.0f32; specs.len()]; points.len()];
    let mut whole = vec![0.0f32; specs.len()];
    let mut ends = [Vec::new(), Vec::new()];
    for pose in 0..=poses {
        let mut random = Random::stream(seed, pose as u64);
        let mut controls = specs.defaults().0;
        if pose > 0 {
            // A fifth of the way from rest: far enough to free what rests behind something else.
            for (spec, value) in specs.iter().zip(&mut controls) {
                *value += 0.2 * (random.uniform(spec.low, spec.high) - spec.default);
            }
        }
        for (control, spec) in specs.iter().enumerate() {
            let kept = controls[control];
            for (end, out) in [spec.low, spec.high].into_iter().zip(&mut ends) {
                controls[control] = end;
                places(&controls, out)?;
            }
            controls[control] = kept;
            let [low, high] = &ends;
            let most = low.iter().zip(high).map(|(a, b)| a.distance_squared(*b)).fold(0.0, f32::max).sqrt();
            whole[control] = whole[control].max(most);
            for (reach, point) in reach.iter_mut().zip(points) {
                let moved = low[*point as usize].distance(high[*point as usize]);
                reach[control] = reach[control].max(moved);
            }
        }
    }
    let moves = |reach: &Vec<f32>| {
        let far = |control: &usize| reach[*control] >= least.max(leak * whole[*control]);
        (0..specs.len()).filter(far).collect()
    };
    Ok(reach.iter().map(moves).collect())
}
