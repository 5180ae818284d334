//! The motion of the whole head, found in the poses and learned as a small network: what is left for the
//! maps is a face on a head that holds still. Not in the paper, whose rigs keep the head apart.

use super::{FaceLearnError, FacePoses};
use crate::dense::Net;
use crate::dense::train::{TrainReport, TrainSettings, train};
use rayon::prelude::*;
use understudy_core::{DQuat, DVec3, Random, Vec3};
use understudy_runtime::face::frame::Motion;
use understudy_runtime::face::rigid::RigidFit;
use understudy_runtime::face::{DenseParts, FrameParts};

/// Poses that suffice to find the rigid part of a head.
const MOST_POSES: usize = 200;
/// Vertices that suffice.
const MOST_VERTICES: usize = 1500;
/// Rounds of fitting and keeping the better half.
const ROUNDS: usize = 12;
/// The share of the vertices that is taken for the skull.
const SKULL: f64 = 0.25;
/// A frame is kept when it leaves less than this share of the motion.
const WORTH: f64 = 0.8;
/// Epochs of the network; it is small.
pub const EPOCHS: usize = 300;
/// Makes a rotation a length, cm: about the radius of a head.
const LEVER: f64 = 10.0;

/// The rigid part of a head.
#[derive(Debug, Clone, PartialEq)]
pub struct Skull {
    /// The vertices that move most like one body.
    pub vertices: Vec<u32>,
    /// Their root mean square distance from one rigid motion, cm.
    pub error_cm: f64,
    /// Mean motion of all vertices as they are, cm.
    pub motion_cm: f64,
    /// Mean motion of all vertices when the skull holds still, cm.
    pub left_cm: f64,
}

/// Finds the vertices that move most like one rigid body: fits a motion a pose, keeps the half that it
/// explains best, again. `None` where taking their motion away would not make the rest much calmer.
pub fn find_skull(poses: &FacePoses<'_>) -> Option<Skull> {
    let rest = poses.mesh.positions();
    let count = poses.mesh.vertex_count();
    let step = count.div_ceil(MOST_VERTICES).max(1);
    let all: Vec<u32> = (0..count as u32).step_by(step).collect();
    let chosen = poses.spread(MOST_POSES);
    let fits = |members: &[u32]| -> Vec<RigidFit> {
        let at_rest: Vec<Vec3> = members.iter().map(|v| rest[*v as usize]).collect();
        let fit = |pose: &usize| {
            let vertices = poses.vertices_of(*pose);
            let now: Vec<Vec3> = members.iter().map(|v| vertices[*v as usize]).collect();
            RigidFit::new(&at_rest, &now)
        };
        chosen.par_iter().map(fit).collect()
    };
    let misses = |fits: &[RigidFit]| -> Vec<f64> {
        let miss = |vertex: &u32| {
            let vertex = *vertex as usize;
            let square = |(fit, pose): (&RigidFit, &usize)| {
                f64::from(fit.apply(rest[vertex]).distance_squared(poses.vertices_of(*pose)[vertex]))
            };
            fits.iter().zip(&chosen).map(square).sum::<f64>() / chosen.len() as f64
        };
        all.par_iter().map(miss).collect()
    };
    let best = |misses: &[f64], share: f64| -> Vec<u32> {
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by(|a, b| misses[*a].total_cmp(&misses[*b]).then(a.cmp(b)));
        let keep = ((all.len() as f64 * share) as usize).clamp(3.min(all.len()), all.len());
        order[..keep].iter().map(|place| all[*place]).collect()
    };
    let mut members = all.clone();
    for _ in 0..ROUNDS {
        members = best(&misses(&fits(&members)), 0.5);
    }
    let last = misses(&fits(&members));
    let mut vertices = best(&last, SKULL);
    vertices.sort_unstable();
    let motions = fits(&vertices);
    let (mut motion, mut left, mut square) = (0.0, 0.0, 0.0);
    for (fit, pose) in motions.iter().zip(&chosen) {
        let now = poses.vertices_of(*pose);
        for &vertex in &all {
            let vertex = vertex as usize;
            motion += f64::from(now[vertex].distance(rest[vertex]));
            // Distances are the same in the head's frame and in the world.
            left += f64::from(now[vertex].distance(fit.apply(rest[vertex])));
        }
        let miss = |v: &u32| f64::from(now[*v as usize].distance_squared(fit.apply(rest[*v as usize])));
        square += vertices.iter().map(miss).sum::<f64>();
    }
    let whole = (chosen.len() * all.len()).max(1) as f64;
    let skull = Skull {
        error_cm: (square / (chosen.len() * vertices.len()).max(1) as f64).sqrt(),
        vertices,
        motion_cm: motion / whole,
        left_cm: left / whole,
    };
    (skull.vertices.len() >= 3 && skull.left_cm < WORTH * skull.motion_cm).then_some(skull)
}

/// How the frame network went.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedFrame {
    /// For the twin.
    pub parts: FrameParts,
    /// Root mean square error on validation poses: at a lever of ten centimetres, cm.
    pub error_cm: f64,
    /// How training went.
    pub report: TrainReport,
}

/// Learns the skull's motion from the controls that move it. `watch` may stop it.
pub fn learn(
    poses: &FacePoses<'_>,
    skull: &Skull,
    inputs: (Vec<u32>, Vec<f32>, Vec<f32>),
    seed: u64,
    mut watch: impl FnMut(usize) -> bool,
) -> Result<TrainedFrame, FaceLearnError> {
    let rest = poses.mesh.positions();
    let at_rest: Vec<Vec3> = skull.vertices.iter().map(|v| rest[*v as usize]).collect();
    let pivot = at_rest.iter().map(|p| p.as_dvec3()).sum::<DVec3>() / at_rest.len().max(1) as f64;
    let six = |pose: usize| -> [f64; 6] {
        let vertices = poses.vertices_of(pose);
        let now: Vec<Vec3> = skull.vertices.iter().map(|v| vertices[*v as usize]).collect();
        let fit = RigidFit::new(&at_rest, &now);
        let turn = DQuat::from_mat3(&fit.rotation).to_scaled_axis();
        let shift = fit.rotation * (pivot - fit.from) + fit.to - pivot;
        [turn.x * LEVER, turn.y * LEVER, turn.z * LEVER, shift.x, shift.y, shift.z]
    };
    let targets: Vec<[f64; 6]> = (0..poses.len()).into_par_iter().map(six).collect();
    let power = targets.iter().flatten().map(|t| t * t).sum::<f64>() / (6 * targets.len()) as f64;
    let unit = power.sqrt().max(1e-9);
    let targets: Vec<f32> = targets.iter().flatten().map(|t| (t / unit) as f32).collect();
    let (inputs, mean, scale) = inputs;
    let row = |pose: usize| {
        let controls = poses.controls_of(pose);
        let one = |((i, m), s): ((&u32, &f32), &f32)| (controls[*i as usize] - m) * s;
        inputs.iter().zip(&mean).zip(&scale).map(one).collect::<Vec<f32>>()
    };
    let x: Vec<f32> = (0..poses.len()).flat_map(row).collect();
    let mut net = Net::new(&[inputs.len(), 128, 64, 6], &mut Random::stream(seed, 0xf4a3));
    let settings = TrainSettings {
        epochs: EPOCHS,
        batch: 64,
        patience: EPOCHS,
        decay: 0.0,
        seed,
        ..TrainSettings::default()
    };
    let mut stopped = false;
    let report = train(&mut net, &x, &targets, &settings, |epoch, _| {
        let go_on = watch(epoch);
        stopped |= !go_on;
        go_on
    });
    if stopped {
        return Err(FaceLearnError::Stopped);
    }
    let layers = (0..net.layer_count()).map(|layer| {
        let (weights, bias) = net.layer(layer);
        let last = layer + 1 == net.layer_count();
        let columns = net.sizes()[layer];
        let factor = |row: usize| match (last, row < 3) {
            (false, _) => 1.0,
            (true, true) => (unit / LEVER) as f32,
            (true, false) => unit as f32,
        };
        DenseParts {
            weights: weights.iter().enumerate().map(|(i, w)| w * factor(i / columns.max(1))).collect(),
            bias: bias.iter().enumerate().map(|(row, b)| b * factor(row)).collect(),
        }
    });
    let parts = FrameParts { pivot: pivot.as_vec3(), inputs, mean, scale, layers: layers.collect() };
    Ok(TrainedFrame { parts, error_cm: report.validation * unit, report })
}

/// Takes the learned motion out of every pose, in place. What the network missed stays for the maps.
pub fn take_away(poses: &mut FacePoses<'_>, frame: &FrameParts) {
    let count = poses.mesh.vertex_count();
    let controls = &poses.controls;
    let width = poses.specs.len();
    poses.vertices.par_chunks_mut(count).enumerate().for_each(|(pose, vertices)| {
        motion(frame, &controls[pose * width..(pose + 1) * width]).undo(vertices);
    });
}

/// The motion that a frame network gives, as the run time computes it but for the precision of weights.
pub fn motion(frame: &FrameParts, controls: &[f32]) -> Motion {
    let one = |((i, m), s): ((&u32, &f32), &f32)| (controls[*i as usize] - m) * s;
    let mut x: Vec<f32> = frame.inputs.iter().zip(&frame.mean).zip(&frame.scale).map(one).collect();
    for (layer, data) in frame.layers.iter().enumerate() {
        let columns = x.len();
        let last = layer + 1 == frame.layers.len();
        let unit = |row: usize| {
            let weights = &data.weights[row * columns..(row + 1) * columns];
            let sum = data.bias[row] + weights.iter().zip(&x).map(|(w, x)| w * x).sum::<f32>();
            if last { sum } else { understudy_runtime::dense::tanh::tanh(sum) }
        };
        x = (0..data.bias.len()).map(unit).collect();
    }
    Motion::new(&x, frame.pivot)
}
