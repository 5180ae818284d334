//! How good a finished body twin is on the poses that no part of it was fitted to, in the world and in millimetres:
//! what `eval` would say of the same poses. And whether something moves that no input tells.

use super::{LearnError, Plan, Recording};
use crate::HeldBack;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use understudy_core::{DVec3, Vec3};
use understudy_runtime::body::{BodyParts, BodyTwin, GroupParts};
use understudy_runtime::{Player, Pose, Precision, Twin};

/// A group that moves by something that no input tells: what its network leaves there is as large on the poses that it
/// was trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unexplained {
    /// Its bone.
    pub bone: String,
    /// How many of its vertices move so.
    pub vertices: usize,
    /// How far they are from where they should be, root mean square, mm.
    pub error_mm: f64,
}

/// Motion beyond the linear part is worth a warning from here on, root mean square, mm …
const SEEN_MM: f64 = 0.5;
/// … where the network leaves more than this share of its variance …
const LEFT: f64 = 0.5;
/// … at so many vertices of a group.
const FEWEST: usize = 3;
/// Poses of the training that are looked at.
const TRAINING_POSES: usize = 150;

/// What happens to one vertex over some poses, in the frame of its group's bone, mm.
#[derive(Debug, Clone, Copy, Default)]
struct Motion {
    /// Of what the linear part leaves.
    sum: DVec3,
    squares: f64,
    /// Of what the twin leaves.
    left: f64,
}

impl Motion {
    fn add(self, other: Self) -> Self {
        Self {
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
            left: self.left + other.left,
        }
    }

    /// The variance beyond the linear part, and what is left of it.
    fn variances(&self, poses: usize) -> (f64, f64) {
        let count = poses.max(1) as f64;
        ((self.squares - self.sum.length_squared() / count) / count, self.left / count)
    }

    /// What is left where no input explains the motion; `None` where one does, or where there is little to see.
    fn unexplained(&self, poses: usize) -> Option<f64> {
        let (whole, left) = self.variances(poses);
        (whole > SEEN_MM.powi(2) && left > LEFT * whole).then_some(left)
    }
}

/// All of some poses.
struct Measured {
    poses: usize,
    /// Sums of distances of the twin and of its linear part, mm.
    sums: [f64; 2],
    max_mm: f64,
    motion: Vec<Motion>,
}

/// Measures a finished twin; and where it moves by something that no input tells.
pub fn held_back(
    poses: &Recording,
    plan: &Plan,
    parts: &BodyParts,
    precision: Precision,
) -> Result<(HeldBack, Vec<Unexplained>), LearnError> {
    let silent = |group: &GroupParts| GroupParts { layers: Vec::new(), ..group.clone() };
    let base = BodyParts {
        groups: parts.groups.iter().map(silent).collect(),
        seams: None,
        faces: Vec::new(),
        ..parts.clone()
    };
    let [twin, base] = [parts.clone(), base].map(|parts| BodyTwin::new(parts, precision));
    let twins = [Twin::from(twin?), Twin::from(base?)];
    let (trained, held) = plan.order.split_at(plan.trained);
    let held = measure(poses, plan, parts, &twins, held)?;
    let count = (parts.rest_vertices.len() * held.poses).max(1) as f64;
    let [mean_mm, base_mean_mm] = held.sums.map(|sum| sum / count);
    // A live rig was asked what moves what: nothing can be missing.
    let unexplained = if plan.probed {
        Vec::new()
    } else {
        let chosen = TRAINING_POSES.min(trained.len());
        let some: Vec<usize> = (0..chosen).map(|i| trained[i * trained.len() / chosen]).collect();
        let seen = measure(poses, plan, parts, &twins, &some)?;
        let group = |group: &GroupParts| {
            let vertex = |vertex: &u32| {
                seen.motion[*vertex as usize].unexplained(seen.poses)?;
                held.motion[*vertex as usize].unexplained(held.poses)
            };
            let left: Vec<f64> = group.vertices.iter().filter_map(vertex).collect();
            (left.len() >= FEWEST).then(|| Unexplained {
                bone: poses.skeleton().bones()[group.bone].name.clone(),
                vertices: left.len(),
                error_mm: (left.iter().sum::<f64>() / left.len() as f64).sqrt(),
            })
        };
        parts.groups.iter().filter_map(group).collect()
    };
    let figures = HeldBack { poses: held.poses, mean_mm, max_mm: held.max_mm, base_mean_mm };
    Ok((figures, unexplained))
}

fn measure(
    poses: &Recording,
    plan: &Plan,
    parts: &BodyParts,
    twins: &[Twin; 2],
    chosen: &[usize],
) -> Result<Measured, LearnError> {
    let used = plan.used_controls();
    let one = |players: &mut [Player; 2], pose: &usize| -> Result<Measured, LearnError> {
        let controls: Vec<f32> = used.iter().map(|c| poses.controls_of(*pose)[*c as usize]).collect();
        let (bones, truth) = (poses.bones_of(*pose), poses.vertices_of(*pose));
        let mut out = [vec![Vec3::ZERO; truth.len()], vec![Vec3::ZERO; truth.len()]];
        for (player, out) in players.iter_mut().zip(&mut out) {
            player.pose(Pose::Bones { bones, extras: &controls }, out)?;
        }
        let mut measured =
            Measured { poses: 1, sums: [0.0; 2], max_mm: 0.0, motion: vec![Motion::default(); truth.len()] };
        for group in &parts.groups {
            let to_bone = plan.armature.to_frame(&bones[group.bone]);
            for vertex in group.vertices.iter().map(|vertex| *vertex as usize) {
                let misses = [0, 1].map(|twin: usize| (truth[vertex] - out[twin][vertex]) * 10.0);
                let [twin, base] = misses.map(|miss| f64::from(miss.length()));
                measured.sums[0] += twin;
                measured.sums[1] += base;
                measured.max_mm = measured.max_mm.max(twin);
                let sum = to_bone.transform_vector3(misses[1]).as_dvec3();
                measured.motion[vertex] = Motion { sum, squares: base * base, left: twin * twin };
            }
        }
        Ok(measured)
    };
    let players = || [0, 1].map(|twin: usize| twins[twin].player(1));
    let all: Vec<Measured> = chosen.par_iter().map_init(players, one).collect::<Result<_, _>>()?;
    let empty = Measured {
        poses: 0,
        sums: [0.0; 2],
        max_mm: 0.0,
        motion: vec![Motion::default(); parts.rest_vertices.len()],
    };
    Ok(all.iter().fold(empty, |whole, one| Measured {
        poses: whole.poses + 1,
        sums: [0, 1].map(|twin| whole.sums[twin] + one.sums[twin]),
        max_mm: whole.max_mm.max(one.max_mm),
        motion: whole.motion.iter().zip(&one.motion).map(|(a, b)| a.add(*b)).collect(),
    }))
}
