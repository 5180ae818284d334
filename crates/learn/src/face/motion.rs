//! Rigid motions as small networks: that of the head ([`super::frame`]) and those of bodies inside it, like
//! eyes and gums ([`super::segments`]).

use super::inputs::NormalisedControls;
use super::{FaceLearnError, Recording};
use crate::dense::Net;
use crate::dense::train::{TrainReport, TrainSettings, train};
use rayon::prelude::*;
use understudy_core::{DQuat, DVec3, Random, Vec3};
use understudy_runtime::face::rigid::RigidFit;
use understudy_runtime::network::motion::Motion;
use understudy_runtime::{DenseParts, MotionParts};

/// Rows that a network sees, each pose many times: so many steps however many poses there are.
const ROWS: usize = 2_500_000;

/// How large a network is and how long it learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Of its two layers.
    pub widths: [usize; 2],
    /// Passes over the poses.
    pub epochs: usize,
}

impl Size {
    /// For the head, from so many poses: everything inherits its error.
    pub fn head(poses: usize) -> Self {
        Self { widths: [256, 128], epochs: (ROWS / poses.max(1)).clamp(40, 300) }
    }

    /// For one of so many bodies: many share the time that a few would take.
    pub fn body(bodies: usize, poses: usize) -> Self {
        let share = 5.0 / bodies.max(5) as f64;
        let epochs = (ROWS as f64 * share) as usize / poses.max(1);
        Self { widths: [128, 64], epochs: epochs.clamp(20, 300) }
    }
}

/// Makes a rotation a length, cm: about the radius of a head.
const LEVER: f64 = 10.0;

/// How the network of a motion went.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedMotion {
    /// For the twin.
    pub parts: MotionParts,
    /// Root mean square error on validation poses: at a lever of ten centimetres, cm.
    pub error_cm: f64,
    /// How training went.
    pub report: TrainReport,
}

/// Learns the motion of some vertices, taken as one rigid body, from the controls that move them, by a
/// network of some size. `watch` may stop it.
pub fn learn(
    poses: &Recording,
    vertices: &[u32],
    inputs: NormalisedControls,
    size: Size,
    seed: u64,
    mut watch: impl FnMut(usize) -> bool,
) -> Result<TrainedMotion, FaceLearnError> {
    let rest = poses.mesh.positions();
    let at_rest: Vec<Vec3> = vertices.iter().map(|v| rest[*v as usize]).collect();
    let pivot = at_rest.iter().map(|p| p.as_dvec3()).sum::<DVec3>() / at_rest.len().max(1) as f64;
    let six = |pose: usize| -> [f64; 6] {
        let all = poses.vertices_of(pose);
        let now: Vec<Vec3> = vertices.iter().map(|v| all[*v as usize]).collect();
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
    let mut net =
        Net::new(&[inputs.len(), size.widths[0], size.widths[1], 6], &mut Random::stream(seed, 0xf4a3));
    let settings = TrainSettings {
        epochs: size.epochs,
        batch: 64,
        patience: size.epochs,
        decay: 0.0,
        seed,
        ..TrainSettings::default()
    };
    let mut stopped = false;
    let held = settings.held_back(poses.len());
    let report = train(&mut net, &x, &targets, &held, &settings, |epoch, _| {
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
    let parts = MotionParts { pivot: pivot.as_vec3(), inputs, mean, scale, layers: layers.collect() };
    Ok(TrainedMotion { parts, error_cm: report.validation * unit, report })
}

/// The motion that such a network gives, as the run time computes it but for the precision of weights.
pub fn motion(parts: &MotionParts, controls: &[f32]) -> Motion {
    let one = |((i, m), s): ((&u32, &f32), &f32)| (controls[*i as usize] - m) * s;
    let mut x: Vec<f32> = parts.inputs.iter().zip(&parts.mean).zip(&parts.scale).map(one).collect();
    for (layer, data) in parts.layers.iter().enumerate() {
        let columns = x.len();
        let last = layer + 1 == parts.layers.len();
        let unit = |row: usize| {
            let weights = &data.weights[row * columns..(row + 1) * columns];
            let sum = data.bias[row] + weights.iter().zip(&x).map(|(w, x)| w * x).sum::<f32>();
            if last { sum } else { understudy_runtime::dense::tanh::tanh(sum) }
        };
        x = (0..data.bias.len()).map(unit).collect();
    }
    Motion::new(&x, parts.pivot)
}
