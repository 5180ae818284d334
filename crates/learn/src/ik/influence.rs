//! Which controls move which points: every control is taken through its whole range, at rest and in random poses.

use understudy_core::{Random, Vec3};
use understudy_runtime::{Pose, PoseError, Twin};

/// Random poses beside the neutral one.
const POSES: usize = 6;

/// A control whose largest motion of any vertex is so many times what it does to a point moves that point only because
/// a twin is not exact.
const LEAK_SHARE: f32 = 0.04;

/// For each of these vertices of a twin the controls that move it, ascending: by at least `least` cm, and by more than
/// what a twin lets through from elsewhere.
pub fn movers(twin: &Twin, points: &[u32], least: f32, seed: u64) -> Result<Vec<Vec<usize>>, PoseError> {
    let specs = &twin.header().inputs.controls;
    let mut player = twin.player(1);
    let mut reach = vec![vec![0.0f32; specs.len()]; points.len()];
    let mut whole = vec![0.0f32; specs.len()];
    let mut ends = [vec![Vec3::ZERO; twin.vertex_count()], vec![Vec3::ZERO; twin.vertex_count()]];
    for pose in 0..=POSES {
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
            for (end, places) in [spec.low, spec.high].into_iter().zip(&mut ends) {
                controls[control] = end;
                player.pose(Pose::Controls(&controls), places)?;
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
        let far = |control: &usize| reach[*control] >= least.max(LEAK_SHARE * whole[*control]);
        (0..specs.len()).filter(far).collect()
    };
    Ok(reach.iter().map(moves).collect())
}
