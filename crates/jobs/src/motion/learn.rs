//! `motion learn`: clips by label in, latent spaces and the bridges between them out.

use super::corpus::{LabelFrames, LabelSpec, moves_eyes, own_labels, read};
use super::{BridgeInfo, describe};
use crate::clips::evaluate;
use crate::outputs::check_file;
use crate::{Event, JobError, Watch, rigs};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Instant;
use understudy_core::{Controls, Vec3};
use understudy_motion::bridge::{BridgeConfig, find};
use understudy_motion::{
    ClipFrames, LatentConfig, LatentSpace, LinearPoses, MotionFile, MotionModel, PROBES, influence,
    statistics,
};
use understudy_rigs::{Rig, RigPose};

/// What to learn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LearnMotionConfig {
    /// A rig by name or file.
    pub rig: String,
    /// The file of motion.
    pub output: PathBuf,
    /// Which clips show what; when empty, the rig's own clips by their names.
    pub labels: Vec<LabelSpec>,
    /// Parts of names of eye controls that are learned all the same.
    pub include: Vec<String>,
    /// Frames per second.
    pub rate: f32,
    /// Share of the variance that principal components keep; the paper keeps 0.85.
    pub variance: f64,
    /// The latent spaces.
    pub latent: LatentConfig,
    /// The bridges.
    pub bridges: BridgeConfig,
}

impl Default for LearnMotionConfig {
    fn default() -> Self {
        Self {
            rig: String::new(),
            output: PathBuf::new(),
            labels: Vec::new(),
            include: Vec::new(),
            rate: 24.0,
            variance: 0.95,
            latent: LatentConfig::default(),
            bridges: BridgeConfig::default(),
        }
    }
}

impl LearnMotionConfig {
    fn check(&self) -> Result<(), JobError> {
        let bad = |place: &str, problem: String| Err(JobError::setting(place, problem));
        if !(self.rate.is_finite() && self.rate > 0.0 && self.rate <= 1000.0) {
            return bad("rate", format!("{} frames per second; more than 0 is wanted", self.rate));
        }
        if !(self.variance > 0.0 && self.variance <= 1.0) {
            return bad("variance", format!("{} is not between 0 and 1", self.variance));
        }
        let connectivity = self.latent.priors.connectivity;
        if !(connectivity >= 0.0 && connectivity.is_finite()) {
            return bad("connectivity", format!("{connectivity}; 0 or more is wanted"));
        }
        if !(1..=8).contains(&self.latent.dimensions) {
            return bad("latent", format!("{} dimensions; 1 to 8 are wanted", self.latent.dimensions));
        }
        if let Some(spec) = self.labels.iter().enumerate().find_map(|(place, spec)| {
            self.labels[..place].iter().any(|other| other.label == spec.label).then_some(spec)
        }) {
            return bad(&format!("label '{}'", spec.label), "is given twice".into());
        }
        check_file(&self.output, &[&rigs::source_file(&self.rig)])
    }
}

/// A label that was learned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelReport {
    /// Such as `happy`.
    pub label: String,
    /// Clips.
    pub clips: usize,
    /// Training frames.
    pub frames: usize,
    /// Controls that move.
    pub controls: usize,
    /// Principal components.
    pub components: usize,
    /// `log p` before, constants left out.
    pub before: f64,
    /// And after.
    pub after: f64,
    /// Iterations.
    pub iterations: usize,
    /// Mean distance of a vertex that the components alone leave, over the training poses, mm.
    pub components_mm: f64,
    /// And that the latent space leaves, mm.
    pub latent_mm: f64,
    /// How long it took.
    pub seconds: f64,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LearnMotionReport {
    /// The file.
    pub output: PathBuf,
    /// Its size.
    pub bytes: usize,
    /// The labels.
    pub labels: Vec<LabelReport>,
    /// The bridges.
    pub bridges: Vec<BridgeInfo>,
    /// Controls of the rig that no clip moves, or that only look.
    pub left_out: Vec<String>,
    /// How long it took.
    pub seconds: f64,
}

/// Learns a latent space per label and the bridges between them, and writes the file.
pub fn learn(config: &LearnMotionConfig, watch: &dyn Watch) -> Result<LearnMotionReport, JobError> {
    config.check()?;
    let started = Instant::now();
    let rig = rigs::open(&config.rig, watch)?.rig;
    let rig = rig.as_ref();
    let labels = if config.labels.is_empty() { own_labels(rig) } else { config.labels.clone() };
    if labels.is_empty() {
        let problem = "has no clips; name some: --label happy=smile.csv,grin.csv";
        return Err(JobError::unusable(rig.name(), problem));
    }
    let corpus = labels
        .iter()
        .map(|spec| read(rig, spec, config.rate, watch))
        .collect::<Result<Vec<LabelFrames>, JobError>>()?;
    let left = |spec: &understudy_core::ControlSpec| {
        moves_eyes(spec) && !config.include.iter().any(|part| spec.name.contains(part.as_str()))
    };
    let used: Vec<bool> = rig.specs().iter().map(|spec| !left(spec)).collect();
    let mut models = Vec::new();
    let mut reports = Vec::new();
    for label in corpus {
        let (model, report) = learn_label(rig, label, &used, config, watch)?;
        models.push(model);
        reports.push(report);
    }
    let moved = |control: usize| models.iter().any(|model| model.linear.scale[control] > 0.0);
    let left_out: Vec<String> = rig
        .specs()
        .iter()
        .enumerate()
        .filter(|(control, _)| !moved(*control))
        .map(|(_, spec)| spec.name.clone())
        .collect();
    let mut bridges = Vec::new();
    let pairs: Vec<(usize, usize)> = (0..models.len())
        .flat_map(|a| (0..models.len()).map(move |b| (a, b)))
        .filter(|(a, b)| a != b)
        .collect();
    watch.event(Event::Started { what: "looking for bridges", total: pairs.len() as u64, unit: "pairs" });
    let mut mesh = MeshDistance::new(rig);
    for (done, pair) in pairs.into_iter().enumerate() {
        bridges.extend(find(&models, pair, &config.bridges, |a, b| mesh.rms_mm(a, b))?);
        watch.event(Event::Step { done: done as u64 + 1 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    watch.event(Event::Finished);
    for bridge in bridges.iter().filter(|bridge| bridge.millimetres > config.bridges.millimetres) {
        let (a, b) = (&models[bridge.from].label, &models[bridge.to].label);
        let message = format!(
            "the nearest poses of '{a}' and '{b}' are {:.1} mm apart: a blend hides it",
            bridge.millimetres
        );
        watch.event(Event::Note { message: &message });
    }
    let file = MotionFile {
        version: MotionFile::VERSION,
        rig: config.rig.clone(),
        controls: rig.specs().iter().map(|spec| spec.name.clone()).collect(),
        ranges: rig.specs().iter().map(|spec| (spec.low, spec.high)).collect(),
        rate: config.rate,
        models,
        bridges,
    };
    let text = serde_json::to_string(&file).map_err(|error| JobError::Machine(error.to_string()))?;
    understudy_io::write_atomic(&config.output, text.as_bytes())?;
    Ok(LearnMotionReport {
        output: config.output.clone(),
        bytes: text.len(),
        labels: reports,
        bridges: describe(&file, &config.output).bridges,
        left_out,
        seconds: started.elapsed().as_secs_f64(),
    })
}

fn learn_label(
    rig: &dyn Rig,
    label: LabelFrames,
    used: &[bool],
    config: &LearnMotionConfig,
    watch: &dyn Watch,
) -> Result<(MotionModel, LabelReport), JobError> {
    let started = Instant::now();
    let place = format!("label '{}'", label.label);
    let failed = |error| JobError::setting(place.clone(), error);
    let specs = rig.specs();
    let ranges: Vec<f32> = specs.iter().map(|spec| spec.high - spec.low).collect();
    let (mut mean, deviation) = statistics(&label.frames, &ranges);
    for (control, spec) in specs.iter().enumerate().filter(|(control, _)| !used[*control]) {
        mean[control] = spec.default.into();
    }
    let moving: Vec<usize> =
        (0..specs.len()).filter(|control| used[*control] && deviation[*control] > 0.0).collect();
    let scale = influences(rig, &mean, &deviation, &moving)?;
    let linear = LinearPoses::fit(&label.frames, mean, scale, config.variance).map_err(failed)?;
    let outputs: Vec<Vec<f64>> = label.frames.iter().map(|frame| linear.encode(frame)).collect();
    let lengths: Vec<usize> = label.clips.iter().map(|(_, frames)| *frames).collect();
    let what = format!("learning {}", label.label);
    watch.event(Event::Started { what: &what, total: config.latent.iterations as u64, unit: "iterations" });
    let hear = |iteration: usize, likelihood: f64| {
        watch.event(Event::Step { done: iteration as u64 });
        watch.event(Event::Status { message: &format!("log p {likelihood:.1}") });
        !watch.should_stop()
    };
    let (space, learned) = LatentSpace::learn(&outputs, &lengths, &config.latent, hear).map_err(failed)?;
    if watch.should_stop() {
        return Err(JobError::Stopped);
    }
    watch.event(Event::Finished);
    let mut first = 0;
    let clips = label.clips.iter().map(|(name, frames)| {
        let clip = ClipFrames { name: name.clone(), first, frames: *frames };
        first += frames;
        clip
    });
    let clips = clips.collect();
    let model = MotionModel::new(label.label.clone(), linear, space, clips);

    // Eyes that are left out are no error of the model's.
    let truth = |frame: &Vec<f32>| {
        let value =
            |(control, value): (usize, &f32)| if used[control] { *value } else { specs.get(control).default };
        frame.iter().enumerate().map(value).collect::<Vec<f32>>()
    };
    let mut mesh = MeshDistance::new(rig);
    let (mut by_components, mut by_latent) = (0.0, 0.0);
    let step = label.frames.len().div_ceil(100).max(1);
    let shown: Vec<usize> = (0..label.frames.len()).step_by(step).collect();
    for &frame in &shown {
        let truth = truth(&label.frames[frame]);
        by_components += f64::from(mesh.mean_mm(&truth, &model.linear.decode(&outputs[frame]))?);
        by_latent += f64::from(mesh.mean_mm(&truth, &model.pose(model.space.point(frame)))?);
    }
    let report = LabelReport {
        label: label.label,
        clips: lengths.len(),
        frames: label.frames.len(),
        controls: moving.len(),
        components: model.linear.components.len(),
        before: learned.before,
        after: learned.after,
        iterations: learned.iterations,
        components_mm: by_components / shown.len() as f64,
        latent_mm: by_latent / shown.len() as f64,
        seconds: started.elapsed().as_secs_f64(),
    };
    Ok((model, report))
}

/// What every moving control does to the mesh (5.3), cm per unit; zero for the others.
fn influences(
    rig: &dyn Rig,
    mean: &[f64],
    deviation: &[f64],
    moving: &[usize],
) -> Result<Vec<f64>, JobError> {
    let base: Vec<f32> = mean.iter().map(|value| *value as f32).collect();
    let mut poses = vec![Controls(base.clone())];
    for &control in moving {
        for step in PROBES {
            let mut moved = base.clone();
            moved[control] += (step * deviation[control]) as f32;
            poses.push(Controls(moved));
        }
    }
    let mut scale = vec![0.0; mean.len()];
    let middle = evaluate(rig, &poses[..1])?.remove(0);
    // A few controls at a time: all meshes at once would fill the memory.
    for (chunk, controls) in poses[1..].chunks(4 * 16).zip(moving.chunks(16)) {
        let meshes = evaluate(rig, chunk)?;
        for (four, &control) in meshes.chunks(4).zip(controls) {
            let moved = |mesh: &Vec<Vec3>| {
                mesh.iter().zip(&middle).map(|(a, b)| f64::from(a.distance_squared(*b))).sum::<f64>().sqrt()
            };
            let distances: Vec<f64> = four.iter().map(moved).collect();
            let weight =
                influence([distances[0], distances[1], distances[2], distances[3]], deviation[control]);
            // A control without any effect would be divided by nothing.
            scale[control] = if weight > 1e-9 { weight } else { 0.0 };
        }
    }
    Ok(scale)
}

/// How far apart two poses are through a rig.
struct MeshDistance<'a> {
    rig: &'a dyn Rig,
    poses: [RigPose; 2],
}

impl<'a> MeshDistance<'a> {
    /// A vertex that moves less than this between two poses counts as still, cm.
    const STILL: f32 = 1e-4;

    fn new(rig: &'a dyn Rig) -> Self {
        Self { rig, poses: [RigPose::default(), RigPose::default()] }
    }

    fn squares(&mut self, a: &[f32], b: &[f32]) -> Result<Vec<f32>, JobError> {
        for (pose, controls) in self.poses.iter_mut().zip([a, b]) {
            let controls = Controls(controls.to_vec());
            self.rig.evaluate(&controls, pose).map_err(JobError::rig(self.rig.name()))?;
        }
        let pairs = self.poses[0].vertices.iter().zip(&self.poses[1].vertices);
        Ok(pairs.map(|(a, b)| a.distance_squared(*b)).filter(|d| *d > Self::STILL * Self::STILL).collect())
    }

    /// Root mean square over the vertices that differ, mm.
    fn rms_mm(&mut self, a: &[f32], b: &[f32]) -> Result<f32, JobError> {
        let squares = self.squares(a, b)?;
        Ok(10.0 * (squares.iter().sum::<f32>() / squares.len().max(1) as f32).sqrt())
    }

    /// Mean over all vertices, mm.
    fn mean_mm(&mut self, a: &[f32], b: &[f32]) -> Result<f32, JobError> {
        let squares = self.squares(a, b)?;
        let count = self.poses[0].vertices.len().max(1) as f32;
        Ok(10.0 * squares.iter().map(|d| d.sqrt()).sum::<f32>() / count)
    }
}
