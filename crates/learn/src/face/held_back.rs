//! How good a finished face twin is on the poses that were held back, and what 16-bit weights cost it. Training takes the head's motion out of the
//! recorded vertices and later makes normals of them, so the truth is set aside before.

use super::plan::split;
use super::{FaceSettings, Recording};
use crate::HeldBack;
use rayon::prelude::*;
use understudy_core::Vec3;
use understudy_runtime::face::{FaceParts, FaceTwin};
use understudy_runtime::{Distances, Player, Pose, Precision, Twin, TwinError};

/// Poses as they were recorded.
pub struct Truth {
    rest: Vec<Vec3>,
    /// Controls and vertices of each.
    poses: Vec<(Vec<f32>, Vec<Vec3>)>,
}

impl Truth {
    /// Sets the poses aside that training will hold back.
    pub fn of(poses: &Recording, settings: &FaceSettings) -> Self {
        let (_, chosen) = split(poses.len(), settings);
        let one = |pose: &usize| (poses.controls_of(*pose).to_vec(), poses.vertices_of(*pose).to_vec());
        Self { rest: poses.mesh.positions().to_vec(), poses: chosen.iter().map(one).collect() }
    }

    /// Measures a finished twin against them, and a face that stays at rest.
    pub fn measure(&self, parts: &FaceParts, precision: Precision) -> Result<HeldBack, TwinError> {
        let twin = Twin::from(FaceTwin::new(parts.clone(), precision)?);
        let one = |player: &mut Player, (controls, truth): &(Vec<f32>, Vec<Vec3>)| {
            let mut out = vec![Vec3::ZERO; truth.len()];
            player
                .pose(Pose::Controls(controls), &mut out)
                .expect("a recorded pose is finite and has all controls");
            let miss = |a: &[Vec3]| -> Vec<f64> {
                a.iter().zip(truth).map(|(a, b)| f64::from(a.distance(*b)) * 10.0).collect()
            };
            let (own, rest) = (miss(&out), miss(&self.rest));
            [own.iter().sum(), own.iter().copied().fold(0.0, f64::max), rest.iter().sum()]
        };
        let all: Vec<[f64; 3]> = self.poses.par_iter().map_init(|| twin.player(1), one).collect();
        let count = (all.len() * self.rest.len()).max(1) as f64;
        Ok(HeldBack {
            poses: all.len(),
            mean_mm: all.iter().map(|pose| pose[0]).sum::<f64>() / count,
            max_mm: all.iter().map(|pose| pose[1]).fold(0.0, f64::max),
            base_mean_mm: all.iter().map(|pose| pose[2]).sum::<f64>() / count,
        })
    }
}

/// Distances between weights in 16 and in 32 bits on some of the poses.
pub fn half_error(parts: &FaceParts, poses: &Recording) -> Result<Distances, TwinError> {
    let twin = |precision| Ok(Twin::from(FaceTwin::new(parts.clone(), precision)?));
    let (half, single) = (twin(Precision::Half)?, twin(Precision::Single)?);
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
    Ok(Distances { mean: sum / (chosen.len() * a.len()) as f64, max })
}
