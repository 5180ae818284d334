//! Figures of a finished twin on the poses that it was not trained on, beside what costs nothing: skinning alone for a
//! body, a face at rest for a face. Networks must pay.

use crate::Recording;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use understudy_core::Vec3;
use understudy_runtime::{Distances, Player, Pose, Twin};

/// Distances of vertices on held-back poses, in the world.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HeldBack {
    /// How many poses were held back.
    pub poses: usize,
    /// Mean distance of a vertex, mm.
    pub mean_mm: f64,
    /// The worst vertex, mm.
    pub max_mm: f64,
    /// Mean distance without any network, mm.
    pub base_mean_mm: f64,
}

impl HeldBack {
    /// Below this nobody sees a difference, mm.
    const INVISIBLE_MM: f64 = 0.01;

    /// Measures a finished twin that is posed by controls against poses as they were recorded, and a mesh that stays at
    /// rest. `poses`: controls and vertices of each.
    ///
    /// # Panics
    /// When a pose does not fit the twin.
    pub fn measure(twin: &Twin, rest: &[Vec3], poses: &[(Vec<f32>, Vec<Vec3>)]) -> Self {
        let one = |player: &mut Player, (controls, truth): &(Vec<f32>, Vec<Vec3>)| {
            let mut out = vec![Vec3::ZERO; truth.len()];
            player
                .pose(Pose::Controls(controls), &mut out)
                .expect("a recorded pose is finite and has all controls");
            let miss = |a: &[Vec3]| -> Vec<f64> {
                a.iter().zip(truth).map(|(a, b)| f64::from(a.distance(*b)) * 10.0).collect()
            };
            let (own, still) = (miss(&out), miss(rest));
            [own.iter().sum(), own.iter().copied().fold(0.0, f64::max), still.iter().sum()]
        };
        let all: Vec<[f64; 3]> = poses.par_iter().map_init(|| twin.player(1), one).collect();
        let count = (all.len() * rest.len()).max(1) as f64;
        Self {
            poses: all.len(),
            mean_mm: all.iter().map(|pose| pose[0]).sum::<f64>() / count,
            max_mm: all.iter().map(|pose| pose[1]).fold(0.0, f64::max),
            base_mean_mm: all.iter().map(|pose| pose[2]).sum::<f64>() / count,
        }
    }

    /// Whether the networks make nothing better.
    pub fn is_useless(&self) -> bool {
        self.mean_mm >= self.base_mean_mm && self.mean_mm > Self::INVISIBLE_MM
    }
}

/// Distances between two twins that are posed by controls, weights in 16 and in 32 bits, on some of the poses.
///
/// # Panics
/// When a pose does not fit the twins.
pub(crate) fn half_error([half, single]: [&Twin; 2], poses: &Recording) -> Distances {
    let (mut half_player, mut single_player) = (half.player(1), single.player(1));
    let (mut a, mut b) = (vec![Vec3::ZERO; half.vertex_count()], vec![Vec3::ZERO; half.vertex_count()]);
    let chosen = poses.spread(50);
    let (mut sum, mut max) = (0.0f64, 0.0f64);
    for &pose in &chosen {
        let pose = Pose::Controls(poses.controls_of(pose));
        half_player.pose(pose, &mut a).expect("checked poses fit the twin");
        single_player.pose(pose, &mut b).expect("checked poses fit the twin");
        for (a, b) in a.iter().zip(&b) {
            let miss = f64::from(a.distance(*b)) * 10.0;
            sum += miss;
            max = max.max(miss);
        }
    }
    Distances { mean: sum / (chosen.len() * a.len()).max(1) as f64, max }
}
