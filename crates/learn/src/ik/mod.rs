//! Learning to pose a face by points: networks from places of points to controls, trained through the derivatives of a
//! twin that stays as it is. No answers are needed: a pose is good when its points are where they should be (4.8).
//! Start at [`learn`]; which controls a region moves is found in `influence.rs`, iterative rivals are in `rivals.rs`.

mod influence;
mod rivals;

pub use influence::{movers, movers_of_rig};
pub use rivals::{Rival, RivalReport, solve_by};

use crate::Recording;
use crate::dense::{Adam, Net, Pass};
use crate::face::balance::Balance;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use thiserror::Error;
use understudy_core::{Random, Vec3};
use understudy_runtime::ik::points::{INPUT_CM, LEAK};
use understudy_runtime::ik::{ControlPoint, Correction, PointIk, PointIkParts, PointSolver, RegionParts};
use understudy_runtime::{DenseParts, Player, Pose, PoseError, Precision, Twin, TwinError};

/// A point, and the region whose network sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegionPoint {
    /// The point.
    #[serde(flatten)]
    pub point: ControlPoint,
    /// The region.
    pub region: String,
}

/// How to learn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IkSettings {
    /// Widths of the hidden layers.
    pub widths: Vec<usize>,
    /// Coordinates of a point that count: 2 or 3.
    pub dimensions: usize,
    /// Points are moved by up to so much in every coordinate, cm, so that targets which no pose reaches are no surprise.
    pub noise_cm: f32,
    /// Share of the samples whose points stay where they are; of the others the noise grows evenly up to the whole. The
    /// paper moves all by the whole.
    pub clean: f32,
    /// λ of (4.8), cm: what a control costs that goes through its whole range in the data.
    pub regularisation: f32,
    /// Learning rates, one after another.
    pub rates: Vec<f32>,
    /// Share of the steps at each rate.
    pub shares: Vec<f32>,
    /// Steps in all.
    pub steps: usize,
    /// Poses per step.
    pub batch: usize,
    /// Bins of the balanced drawing of poses.
    pub bins: usize,
    /// A control moves a region when it moves one of its points by at least so much through its whole range, cm.
    pub influence_cm: f32,
    /// Same seed, same networks.
    pub seed: u64,
}

impl Default for IkSettings {
    fn default() -> Self {
        Self {
            widths: vec![256, 256],
            dimensions: 3,
            noise_cm: 0.45,
            clean: 0.5,
            regularisation: 2e-4,
            rates: vec![1e-3, 1e-4, 1e-5],
            shares: vec![0.7, 0.2, 0.1],
            steps: 6_000,
            batch: 32,
            bins: 16,
            influence_cm: 0.03,
            seed: 1,
        }
    }
}

impl IkSettings {
    /// The paper's way where it differs: every sample is noisy, batches of eight.
    pub fn paper() -> Self {
        Self { clean: 0.0, batch: 8, ..Self::default() }
    }
}

/// Why nothing was learned.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum IkError {
    /// A setting that makes no sense.
    #[error("{what}: {problem}")]
    Setting {
        /// Which.
        what: &'static str,
        /// Why.
        problem: String,
    },
    /// A twin that cannot be posed by points.
    #[error(transparent)]
    Twin(#[from] TwinError),
    /// A twin without a gradient.
    #[error(transparent)]
    Pose(#[from] PoseError),
    /// A control that the data lacks.
    #[error("the data has no control '{0}', which the twin needs")]
    Control(String),
    /// No control moves a region.
    #[error("no control moves the points of the region '{0}'")]
    Still(String),
    /// The listener asked to stop.
    #[error("stopped")]
    Stopped,
}

/// What was learned.
#[derive(Debug, Clone)]
pub struct LearnedIk {
    /// For the file.
    pub ik: Arc<PointIk>,
    /// Figures.
    pub report: IkReport,
}

/// How good it is, on poses that were held back, without noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IkReport {
    /// Poses that were held back.
    pub poses: usize,
    /// Mean distance of a point from its target, by the network alone, mm.
    pub network_mm: f64,
    /// The same where points rest: doing nothing.
    pub rest_mm: f64,
    /// With two corrections, mm.
    pub hybrid_mm: f64,
    /// Controls that are given, and those that more than one region gives.
    pub controls: [usize; 2],
    /// Steps taken.
    pub steps: usize,
}

struct RegionNet {
    points: Vec<usize>,
    controls: Vec<usize>,
    net: Net,
    pass: Pass,
    adam: Adam,
    inputs: Vec<f32>,
    gradient: Vec<f32>,
}

/// Learns the networks; which controls move which points is asked of the twin. `watch(step, loss in cm)` may stop it by
/// answering `false`.
pub fn learn(
    twin: &Twin,
    points: &[RegionPoint],
    poses: &Recording,
    settings: &IkSettings,
    precision: Precision,
    watch: impl FnMut(usize, f32) -> bool,
) -> Result<LearnedIk, IkError> {
    check(settings)?;
    let vertices: Vec<u32> = points.iter().map(|point| point.point.vertex).collect();
    // Vertices that do not exist are named before any is posed.
    twin.of_vertices(&vertices)?;
    let moved = movers(twin, &vertices, settings.influence_cm, settings.seed)?;
    learn_moved(twin, points, &moved, poses, settings, precision, watch)
}

/// Learns the networks. `moved`: for every point the controls that move it, of [`movers`] or [`movers_of_rig`].
pub fn learn_moved(
    twin: &Twin,
    points: &[RegionPoint],
    moved: &[Vec<usize>],
    poses: &Recording,
    settings: &IkSettings,
    precision: Precision,
    mut watch: impl FnMut(usize, f32) -> bool,
) -> Result<LearnedIk, IkError> {
    check(settings)?;
    let specs = &twin.header().inputs.controls;
    let place = |name: &String| poses.specs.find(name).ok_or_else(|| IkError::Control(name.clone()));
    let places: Vec<usize> = specs.iter().map(|spec| place(&spec.name)).collect::<Result<_, _>>()?;
    let vertices: Vec<u32> = points.iter().map(|point| point.point.vertex).collect();
    let part = twin.of_vertices(&vertices)?;
    let count = points.len();

    // Where the points of every pose are by the rig itself, and the ranges of its controls.
    let truth: Vec<Vec3> = (0..poses.len())
        .flat_map(|pose| vertices.iter().map(move |vertex| poses.vertices_of(pose)[*vertex as usize]))
        .collect();
    let shown: Vec<f32> = places.iter().map(|place| range(poses, *place)).collect();
    let neutral: Vec<f32> = specs.iter().map(|spec| spec.default).collect();
    let ends: Vec<(f32, f32)> = specs.iter().map(|spec| (spec.low, spec.high)).collect();
    let mut rest = vec![Vec3::ZERO; part.vertex_count()];
    part.player(1).pose(Pose::Controls(&neutral), &mut rest)?;
    rest.truncate(count);

    let mut names: Vec<&str> = Vec::new();
    points.iter().for_each(|point| {
        if !names.contains(&point.region.as_str()) {
            names.push(&point.region);
        }
    });
    let mut random = Random::stream(settings.seed, 0x1b);
    let mut owners = vec![0.0f32; specs.len()];
    let mut regions = Vec::new();
    for name in &names {
        let own: Vec<usize> = (0..count).filter(|point| points[*point].region == **name).collect();
        let gives = |control: &usize| {
            shown[*control] > 0.0 && own.iter().any(|point| moved[*point].contains(control))
        };
        let controls: Vec<usize> = (0..specs.len()).filter(gives).collect();
        if controls.is_empty() {
            return Err(IkError::Still((*name).into()));
        }
        controls.iter().for_each(|control| owners[*control] += 1.0);
        let sizes: Vec<usize> = [own.len() * settings.dimensions]
            .into_iter()
            .chain(settings.widths.iter().copied())
            .chain([controls.len()])
            .collect();
        let mut net = Net::leaky(&sizes, LEAK, &mut random);
        // It begins at the neutral pose.
        let last = net.parameters.len() - (sizes[sizes.len() - 2] + 1) * controls.len();
        net.parameters[last..].iter_mut().for_each(|weight| *weight *= 0.1);
        let (pass, adam) = (Pass::new(&net, settings.batch), Adam::new(net.parameters.len()));
        let (inputs, gradient) = (vec![0.0; settings.batch * sizes[0]], vec![0.0; net.parameters.len()]);
        regions.push(RegionNet { points: own, controls, net, pass, adam, inputs, gradient });
    }

    let (held, training) = split(poses.len(), settings.seed);
    let balance = Balance::new(poses, &training, &vertices, settings.bins);
    let players: Vec<Mutex<Player>> =
        (0..rayon::current_num_threads().max(1)).map(|_| Mutex::new(part.player(1))).collect();
    let width = specs.len();
    let mut chosen = vec![0; settings.batch];
    let mut targets = vec![Vec3::ZERO; settings.batch * count];
    let mut samples: Vec<Sample> = (0..settings.batch).map(|_| Sample::new(width)).collect();
    let mut step = 0;
    let mut average = 0.0f32;
    for (rate, share) in settings.rates.iter().zip(&settings.shares) {
        for _ in 0..(settings.steps as f32 * share).round() as usize {
            balance.draw(settings.seed, step, &mut chosen);
            let mut random = Random::stream(settings.seed ^ 0x5eed, step as u64);
            for (pose, targets) in chosen.iter().zip(targets.chunks_exact_mut(count)) {
                targets.copy_from_slice(&truth[pose * count..(pose + 1) * count]);
                let clean = random.unit() < f64::from(settings.clean);
                let share = if settings.clean > 0.0 { random.unit() as f32 } else { 1.0 };
                let most = if clean { 0.0 } else { settings.noise_cm * share };
                for target in targets {
                    let mut noise = || random.uniform(-1.0, 1.0) * most;
                    *target += Vec3::new(noise(), noise(), noise());
                }
            }
            give(&mut regions, &rest, &targets, settings, &owners, &neutral, &ends, &mut samples);
            let each = settings.batch.div_ceil(players.len());
            let parts = samples.par_chunks_mut(each).zip(targets.par_chunks(each * count)).zip(&players);
            parts.try_for_each(|((samples, targets), player)| -> Result<(), PoseError> {
                let mut player = player.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                for (sample, targets) in samples.iter_mut().zip(targets.chunks_exact(count)) {
                    sample.loss = point_loss(
                        &mut player,
                        &sample.controls,
                        targets,
                        settings.dimensions,
                        &mut sample.slopes,
                    )?;
                }
                Ok(())
            })?;
            let loss = samples.iter().map(|sample| sample.loss).sum::<f32>() / settings.batch as f32;
            take(&mut regions, settings, &owners, &neutral, &ends, &shown, &samples, *rate);
            step += 1;
            average += (loss - average) * if step < 50 { 1.0 / step as f32 } else { 0.02 };
            if step % 20 == 0 && !watch(step, average) {
                return Err(IkError::Stopped);
            }
        }
    }

    let region = |(name, region): (&&str, &RegionNet)| RegionParts {
        name: (**name).into(),
        points: region.points.iter().map(|point| *point as u32).collect(),
        controls: region.controls.iter().map(|control| *control as u32).collect(),
        layers: (0..region.net.layer_count())
            .map(|layer| {
                let (weights, bias) = region.net.layer(layer);
                DenseParts { weights: weights.to_vec(), bias: bias.to_vec() }
            })
            .collect(),
    };
    let mut parts = PointIkParts {
        topology_hash: twin.header().topology_hash,
        dimensions: settings.dimensions,
        points: points.iter().map(|point| point.point.clone()).collect(),
        rest: rest.clone(),
        regions: names.iter().zip(&regions).map(region).collect(),
        training: serde_json::Value::Null,
    };
    let ik = Arc::new(PointIk::new(parts.clone(), precision, twin)?);
    let mut report = measure(&ik, &truth, &held, step)?;
    report.controls =
        [owners.iter().filter(|n| **n > 0.0).count(), owners.iter().filter(|n| **n > 1.0).count()];
    parts.training = serde_json::json!({ "settings": settings, "report": report, "poses": poses.len() });
    let ik = Arc::new(PointIk::new(parts, precision, twin)?);
    Ok(LearnedIk { ik, report })
}

/// One pose of a batch.
struct Sample {
    /// Before they are held within their ranges.
    raw: Vec<f32>,
    controls: Vec<f32>,
    /// Derivatives of the loss by the controls.
    slopes: Vec<f32>,
    loss: f32,
}

impl Sample {
    fn new(width: usize) -> Self {
        let zeros = vec![0.0; width];
        Self { raw: zeros.clone(), controls: zeros.clone(), slopes: zeros, loss: 0.0 }
    }
}

/// Runs the networks: controls of all samples.
#[allow(clippy::too_many_arguments)]
fn give(
    regions: &mut [RegionNet],
    rest: &[Vec3],
    targets: &[Vec3],
    settings: &IkSettings,
    owners: &[f32],
    neutral: &[f32],
    ends: &[(f32, f32)],
    samples: &mut [Sample],
) {
    let (dimensions, count) = (settings.dimensions, rest.len());
    regions.par_iter_mut().for_each(|region| {
        let width = region.points.len() * dimensions;
        for (row, targets) in region.inputs.chunks_exact_mut(width).zip(targets.chunks_exact(count)) {
            for (slot, point) in row.chunks_exact_mut(dimensions).zip(&region.points) {
                let moved = (targets[*point] - rest[*point]) / INPUT_CM;
                slot.copy_from_slice(&moved.to_array()[..dimensions]);
            }
        }
        region.pass.forward(&region.net, &region.inputs, settings.batch);
    });
    samples.iter_mut().for_each(|sample| sample.raw.fill(0.0));
    for region in regions.iter() {
        let outputs = region.pass.outputs();
        for (sample, row) in samples.iter_mut().zip(outputs.chunks_exact(region.controls.len())) {
            region.controls.iter().zip(row).for_each(|(control, y)| sample.raw[*control] += y);
        }
    }
    for sample in samples {
        for (control, (raw, value)) in sample.raw.iter_mut().zip(&mut sample.controls).enumerate() {
            let (low, high) = ends[control];
            *raw = neutral[control] + (high - low) * *raw / owners[control].max(1.0);
            *value = raw.clamp(low, high);
        }
    }
}

/// One step down: through the ranges of the controls, λ, and the networks.
#[allow(clippy::too_many_arguments)]
fn take(
    regions: &mut [RegionNet],
    settings: &IkSettings,
    owners: &[f32],
    neutral: &[f32],
    ends: &[(f32, f32)],
    shown: &[f32],
    samples: &[Sample],
    rate: f32,
) {
    let share = 1.0 / settings.batch as f32;
    regions.par_iter_mut().for_each(|region| {
        let rows = region.pass.output_slopes().chunks_exact_mut(region.controls.len());
        for (row, sample) in rows.zip(samples) {
            for (slot, &control) in row.iter_mut().zip(&region.controls) {
                let (low, high) = ends[control];
                let (raw, slope) = (sample.raw[control], sample.slopes[control]);
                // Beyond its range a control does nothing more; only what leads back counts.
                let through = !((raw > high && slope < 0.0) || (raw < low && slope > 0.0));
                let price = settings.regularisation / shown[control].max(f32::MIN_POSITIVE)
                    * (raw - neutral[control]).signum();
                let by_control = if through { slope } else { 0.0 } + price;
                *slot = by_control * (high - low) / owners[control] * share;
            }
        }
        region.pass.backward_from_slopes(&region.net, &region.inputs, settings.batch, &mut region.gradient);
        region.adam.step(&mut region.net.parameters, &region.gradient, rate, 0.0);
    });
}

/// (4.9): the mean over points of the sum of absolute differences, cm, and its derivatives by the controls.
fn point_loss(
    player: &mut Player,
    controls: &[f32],
    targets: &[Vec3],
    dimensions: usize,
    slopes: &mut [f32],
) -> Result<f32, PoseError> {
    let share = 1.0 / targets.len() as f32;
    let loss = |places: &[Vec3], by_places: &mut [Vec3]| {
        let mut sum = 0.0;
        for ((place, target), slope) in places.iter().zip(targets).zip(by_places) {
            for axis in 0..dimensions {
                let off = place[axis] - target[axis];
                sum += off.abs() * share;
                slope[axis] = if off == 0.0 { 0.0 } else { off.signum() * share };
            }
        }
        sum
    };
    player.gradient(Pose::Controls(controls), loss, slopes)
}

/// Points of held-back poses, by the network alone and corrected.
fn measure(ik: &Arc<PointIk>, truth: &[Vec3], held: &[u32], steps: usize) -> Result<IkReport, IkError> {
    let mut solver = ik.solver();
    let (count, dimensions) = (ik.points().len(), ik.dimensions());
    let mut sums = [0.0f64; 3];
    let most = held.len().min(200);
    for index in 0..most {
        let pose = held[index * held.len() / most] as usize;
        let targets = &truth[pose * count..(pose + 1) * count];
        let errors = point_errors(&mut solver, targets, dimensions)?;
        sums[0] += distance(ik.rest(), targets, dimensions);
        sums[1] += errors[0];
        sums[2] += errors[1];
    }
    let mm = |sum: f64| 10.0 * sum / most.max(1) as f64;
    let [rest_mm, network_mm, hybrid_mm] = sums.map(mm);
    Ok(IkReport { poses: most, network_mm, rest_mm, hybrid_mm, controls: [0; 2], steps })
}

/// Mean distances of points from their targets, cm: by the networks alone, and with the usual corrections.
pub fn point_errors(
    solver: &mut PointSolver,
    targets: &[Vec3],
    dimensions: usize,
) -> Result<[f64; 2], PoseError> {
    let mut controls = vec![0.0; solver.control_count()];
    let mut places = vec![Vec3::ZERO; targets.len()];
    solver.solve(targets, &mut controls)?;
    solver.points(&controls, &mut places)?;
    let network = distance(&places, targets, dimensions);
    solver.correct(targets, &[], &Correction::default(), &mut controls)?;
    solver.points(&controls, &mut places)?;
    Ok([network, distance(&places, targets, dimensions)])
}

/// Mean distance, cm; across the screen where points have two coordinates.
pub fn distance(places: &[Vec3], targets: &[Vec3], dimensions: usize) -> f64 {
    let one = |(a, b): (&Vec3, &Vec3)| match dimensions {
        2 => f64::from(a.truncate().distance(b.truncate())),
        _ => f64::from(a.distance(*b)),
    };
    places.iter().zip(targets).map(one).sum::<f64>() / places.len().max(1) as f64
}

fn range(poses: &Recording, control: usize) -> f32 {
    let values = (0..poses.len()).map(|pose| poses.controls_of(pose)[control]);
    let (low, high) = values.fold((f32::INFINITY, f32::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    (high - low).max(0.0)
}

/// A tenth is held back, at most 500.
fn split(poses: usize, seed: u64) -> (Vec<u32>, Vec<u32>) {
    let mut order: Vec<u32> = (0..poses as u32).collect();
    let mut random = Random::stream(seed, 0xd1);
    for place in (1..order.len()).rev() {
        order.swap(place, random.below(place + 1));
    }
    let mut held = order.split_off(poses - (poses / 10).clamp(usize::from(poses > 1), 500));
    held.sort_unstable();
    order.sort_unstable();
    (held, order)
}

fn check(settings: &IkSettings) -> Result<(), IkError> {
    let wrong = |what, problem: String| Err(IkError::Setting { what, problem });
    if !(2..=3).contains(&settings.dimensions) {
        return wrong("dimensions", format!("{}; 2 or 3 are wanted", settings.dimensions));
    }
    if settings.batch == 0 || settings.steps == 0 || settings.bins == 0 {
        return wrong("steps", "at least one step of one pose is wanted".into());
    }
    let size = settings.noise_cm.max(settings.regularisation).max(settings.influence_cm);
    if !(settings.noise_cm >= 0.0
        && settings.regularisation >= 0.0
        && settings.influence_cm >= 0.0
        && size.is_finite())
    {
        return wrong("noise", "noise, regularisation and influence are zero or more".into());
    }
    if settings.widths.iter().any(|width| *width == 0 || *width > 8192) {
        return wrong("widths", "from 1 to 8192".into());
    }
    if settings.rates.len() != settings.shares.len() {
        return wrong("rates", "one share of the steps per rate is wanted".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
