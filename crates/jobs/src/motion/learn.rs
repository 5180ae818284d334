//! `motion learn`: clips by label in, latent spaces and the bridges between them out.

use super::corpus::{LabelFrames, LabelSpec, corpus};
use super::mesh::MeshDistance;
use super::prepare::{PreparedLabel, prepare};
use super::{BridgeInfo, describe};
use crate::outputs::check_file;
use crate::{Event, JobError, Watch, rigs};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Instant;
use understudy_motion::bridge::{BridgeConfig, Found, find, join};
use understudy_motion::{LatentConfig, LatentSpace, linear};
use understudy_rigs::Rig;
use understudy_runtime::motion::{MOST_DIMENSIONS, Model, Motion, PoseBasis, Workspace};

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
    /// Whether controls are scaled by what they do to the mesh; without, by their range alone.
    pub scaled: bool,
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
            scaled: true,
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
        if !(1..=MOST_DIMENSIONS).contains(&self.latent.dimensions) {
            let problem = format!("{} dimensions; 1 to {MOST_DIMENSIONS} are wanted", self.latent.dimensions);
            return bad("latent", problem);
        }
        if self.latent.inducing.is_some_and(|count| count < 2) {
            return bad("inducing", "at least 2 inducing points are wanted".into());
        }
        if !(self.bridges.millimetres.is_finite() && self.bridges.millimetres >= 0.0) {
            return bad("bridge-mm", format!("{}; 0 or more is wanted", self.bridges.millimetres));
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
    /// Centres of the covariance: the frames, or fewer in a sparse model.
    pub centres: usize,
    /// How close consecutive frames are, over the root mean square distance of two frames.
    pub consecutive: f64,
    /// How near similar frames of different clips are, over the same; none for one clip.
    pub kinship: Option<f64>,
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
    let rig = rigs::open(&config.rig, watch)?.rig;
    let labels = corpus(rig.as_ref(), &config.labels, config.rate, watch)?;
    learn_frames(rig.as_ref(), labels, config, watch)
}

/// [`learn`] from frames of any rig, whatever rig and labels the settings name.
pub fn learn_frames(
    rig: &dyn Rig,
    labels: Vec<LabelFrames>,
    config: &LearnMotionConfig,
    watch: &dyn Watch,
) -> Result<LearnMotionReport, JobError> {
    let started = Instant::now();
    let prepared = prepare(rig, labels, config, watch)?;
    let (models, reports): (Vec<Model>, Vec<LabelReport>) =
        learn_labels(rig, &prepared, config, watch)?.into_iter().unzip();
    let specs = rig.specs();
    let moved = |control: usize| {
        models.iter().any(|model: &Model| model.basis().moving().contains(&(control as u32)))
    };
    let left_out: Vec<String> = specs
        .iter()
        .enumerate()
        .filter(|(control, _)| !moved(*control))
        .map(|(_, spec)| spec.name.clone())
        .collect();
    let pairs: Vec<(usize, usize)> = (0..models.len())
        .flat_map(|a| (0..models.len()).map(move |b| (a, b)))
        .filter(|(a, b)| a != b)
        .collect();
    watch.event(Event::Started { what: "looking for bridges", total: pairs.len() as u64, unit: "pairs" });
    let mut mesh = MeshDistance::new(rig);
    let mut found: Vec<Found> = Vec::new();
    for (done, pair) in pairs.into_iter().enumerate() {
        found.push(find(&models, pair, &config.bridges, |a, b| mesh.rms_mm(a, b))?);
        watch.event(Event::Step { done: done as u64 + 1 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    watch.event(Event::Finished);
    let (bridges, long) = join(models.len(), found);
    for bridge in long {
        let (a, b) = (models[bridge.from].label(), models[bridge.to].label());
        let message = format!(
            "the nearest poses of '{a}' and '{b}' are {:.1} mm apart: a blend hides it",
            bridge.millimetres
        );
        watch.event(Event::Note { message: &message });
    }
    let parts = models.iter().map(Model::parts).collect();
    let unplayable = |error| JobError::unusable(&config.output, error);
    let motion = Motion::new(config.rig.clone(), config.rate, specs.clone(), parts, bridges);
    let motion = motion.map_err(unplayable)?;
    let bytes = motion.to_bytes().map_err(unplayable)?;
    understudy_io::write_atomic(&config.output, &bytes)?;
    Ok(LearnMotionReport {
        output: config.output.clone(),
        bytes: bytes.len(),
        labels: reports,
        bridges: describe(&motion, &config.output).bridges,
        left_out,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// The latent spaces alone: no bridges, no file.
pub fn learn_labels(
    rig: &dyn Rig,
    labels: &[PreparedLabel],
    config: &LearnMotionConfig,
    watch: &dyn Watch,
) -> Result<Vec<(Model, LabelReport)>, JobError> {
    labels.iter().map(|label| learn_label(rig, label, config, watch)).collect()
}

fn learn_label(
    rig: &dyn Rig,
    prepared: &PreparedLabel,
    config: &LearnMotionConfig,
    watch: &dyn Watch,
) -> Result<(Model, LabelReport), JobError> {
    let started = Instant::now();
    let PreparedLabel { label, used, mean, scale, seconds } = prepared;
    let place = format!("label '{}'", label.label);
    let failed = |error| JobError::setting(place.clone(), error);
    let specs = rig.specs();
    let (basis, _) = linear::fit(&label.frames, mean, scale, config.variance).map_err(failed)?;
    let components = basis.components.len() / basis.moving.len();
    let controls = basis.moving.len();
    let poses = PoseBasis::new(basis.clone(), specs.len(), components)
        .map_err(|error| JobError::setting(place.clone(), error))?;
    let encoded: Vec<Vec<f32>> = label.frames.iter().map(|frame| poses.encode(frame)).collect();
    let outputs: Vec<Vec<f64>> =
        encoded.iter().map(|pose| pose.iter().map(|v| f64::from(*v)).collect()).collect();
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
    let model =
        understudy_motion::label(&label.label, basis, &space, &label.clips, specs.len()).map_err(failed)?;

    // Eyes that are left out are no error of the model's.
    let truth = |frame: &Vec<f32>| {
        let value =
            |(control, value): (usize, &f32)| if used[control] { *value } else { specs.get(control).default };
        frame.iter().enumerate().map(value).collect::<Vec<f32>>()
    };
    let mut mesh = MeshDistance::new(rig);
    let mut work = Workspace::of(model.space());
    let mut played = vec![0.0; specs.len()];
    let (mut by_components, mut by_latent) = (0.0, 0.0);
    let step = label.frames.len().div_ceil(100).max(1);
    let shown: Vec<usize> = (0..label.frames.len()).step_by(step).collect();
    for &frame in &shown {
        let truth = truth(&label.frames[frame]);
        by_components += f64::from(mesh.mean_mm(&truth, &poses.decode(&encoded[frame]))?);
        // As it is played, ranges and all.
        model.pose_into(model.space().point(frame), specs, &mut work, &mut played);
        by_latent += f64::from(mesh.mean_mm(&truth, &played)?);
    }
    let report = LabelReport {
        label: label.label.clone(),
        clips: lengths.len(),
        frames: label.frames.len(),
        controls,
        components,
        centres: model.space().centres(),
        consecutive: space.consecutive(&lengths),
        kinship: space.kinship(&outputs, &lengths),
        before: learned.before,
        after: learned.after,
        iterations: learned.iterations,
        components_mm: by_components / shown.len() as f64,
        latent_mm: by_latent / shown.len() as f64,
        seconds: seconds + started.elapsed().as_secs_f64(),
    };
    Ok((model, report))
}
