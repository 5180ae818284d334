//! `learn body`: a twin of a body rig from a dataset (METHODS M1). Start at [`learn_body`].

use super::checkpoint::Checkpoints;
use super::data::Loaded;
use crate::outputs::check_file;
use crate::{Event, JobError, Watch, rigs, threads};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use understudy_core::mesh::Fnv;
use understudy_learn::body::{
    BodySettings, GroupReport, LearnError, Plan, TrainedGroup, Unexplained, held_back, round_to_half,
};
use understudy_learn::{HeldBack, Recording};
use understudy_rigs::Rig;
use understudy_runtime::Precision;
use understudy_runtime::TwinError;
pub use understudy_runtime::body::InputFrame;
use understudy_runtime::body::{BodyTwin, to_bytes};

/// What moves the vertices before the networks add to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// One bone a vertex, as the paper has it.
    Rigid,
    /// Linear blend skinning with two influences, fitted to the poses.
    Lbs2,
    /// With four.
    #[default]
    Lbs4,
    /// With eight.
    Lbs8,
}

impl Base {
    /// Influences a vertex.
    fn influences(self) -> usize {
        match self {
            Self::Rigid => 1,
            Self::Lbs2 => 2,
            Self::Lbs4 => 4,
            Self::Lbs8 => 8,
        }
    }
}

/// What to learn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LearnBodyConfig {
    /// Folder of the dataset.
    pub data: PathBuf,
    /// The twin's file.
    pub output: PathBuf,
    /// The linear part.
    pub base: Base,
    /// The rig that the dataset was recorded from, where it is not where the dataset says.
    pub rig: Option<String>,
    /// Error a vertex to aim at on held-back poses, root mean square, mm: the narrowest network that reaches it is kept.
    pub target_mm: Option<f64>,
    /// Weights in 16 bits; in 32 otherwise.
    pub half: bool,
    /// Threads; the twin does not depend on it.
    pub threads: usize,
    /// Sizes and training.
    pub settings: BodySettings,
}

impl Default for LearnBodyConfig {
    fn default() -> Self {
        Self {
            data: PathBuf::new(),
            output: PathBuf::new(),
            base: Base::default(),
            rig: None,
            target_mm: None,
            half: true,
            threads: threads::available(),
            settings: BodySettings::default(),
        }
    }
}

impl LearnBodyConfig {
    /// The paper's recipe: [`BodySettings::paper`] on a rigid base, weights in 32 bits.
    pub fn paper() -> Self {
        Self { base: Base::Rigid, half: false, settings: BodySettings::paper(), ..Self::default() }
    }
}

/// What was learned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LearnBodyReport {
    /// The twin's file.
    pub output: PathBuf,
    /// The rig.
    pub rig: String,
    /// Poses trained on.
    pub poses: usize,
    /// Networks.
    pub groups: usize,
    /// Groups that an earlier run had finished.
    pub resumed: usize,
    /// Whether inputs were found on the live rig or estimated from the poses.
    pub inputs_probed: bool,
    /// How far the whole twin is from the poses that were held back, and its linear part alone.
    pub held_back: HeldBack,
    /// Where something moves that no recorded bone or control explains.
    pub unexplained: Vec<Unexplained>,
    /// Size of the file.
    pub bytes: usize,
    /// Duration.
    pub seconds: f64,
    /// Each network.
    pub networks: Vec<GroupReport>,
}

/// Learns a twin and writes it. Groups that are done are kept beside the output until it is whole.
pub fn learn_body(config: &LearnBodyConfig, watch: &dyn Watch) -> Result<LearnBodyReport, JobError> {
    check_file(&config.output, &[&config.data])?;
    let mut settings = config.settings.clone();
    if let Some(target) = config.target_mm {
        settings.target = Some(target / 10.0);
        settings.widths = vec![32, 64, 128, 256];
        // Components must leave room beneath the target.
        settings.component_error = settings.component_error.min(target / 20.0);
    }
    settings.check().map_err(|error| JobError::setting("learn body", error))?;
    let pool = threads::pool(config.threads)?;
    let start = Instant::now();
    let loaded = Loaded::read(&config.data, watch)?;
    loaded.recording.check_bones().map_err(|error| JobError::unusable(&config.data, error))?;
    let header = loaded.header.clone();
    check_file(&config.output, &[&rigs::source_file(&header.rig)])?;
    let rig = loaded.recorded(&config.data).rig(config.rig.as_deref(), watch)?;
    let poses = loaded.recording;
    pool.install(|| train(config, &settings, &header.rig, &poses, rig.as_deref(), start, watch))
}

fn train(
    config: &LearnBodyConfig,
    settings: &BodySettings,
    rig_name: &str,
    poses: &Recording,
    rig: Option<&dyn Rig>,
    start: Instant,
    watch: &dyn Watch,
) -> Result<LearnBodyReport, JobError> {
    let learn = |error: LearnError| match error {
        LearnError::Stopped => JobError::Stopped,
        diverged @ LearnError::Diverged { .. } => JobError::setting("--rate", diverged),
        other => JobError::unusable(&config.data, other),
    };
    watch.event(Event::Started { what: "planning", total: 1, unit: "plan" });
    let plan = Plan::new(poses, rig, config.base.influences(), settings).map_err(learn)?;
    watch.event(Event::Finished);
    if plan.armature.adopted > 0 {
        let message = format!(
            "{} of {} bones hang on no bone that moves them: they were given parents by how they move",
            plan.armature.adopted,
            poses.bone_count()
        );
        watch.event(Event::Note { message: &message });
    }

    let checkpoints = Checkpoints::new(&config.output, run_key(config, settings, poses));
    let epochs = settings.train.epochs as u64;
    let total = plan.groups.len() as u64 * epochs;
    watch.event(Event::Started { what: "training", total, unit: "epochs" });
    // Epochs done a group: a group may stop early or try several widths.
    let done: Vec<AtomicU64> = plan.groups.iter().map(|_| AtomicU64::new(0)).collect();
    let errors = Mutex::new(vec![f64::NAN; plan.groups.len()]);
    let resumed = AtomicU64::new(0);
    let say = |group: usize, epoch: u64, error: f64| {
        done[group].store(epoch.min(epochs), Ordering::Relaxed);
        let mut errors = errors.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        errors[group] = error;
        watch.event(Event::Step { done: done.iter().map(|d| d.load(Ordering::Relaxed)).sum() });
        if epoch >= epochs {
            let known: Vec<f64> = errors.iter().copied().filter(|e| e.is_finite()).collect();
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            let message =
                format!("{} of {} groups, held-back error {:.3} mm", known.len(), errors.len(), mean * 10.0);
            watch.event(Event::Status { message: &message });
        }
    };
    let one = |group: usize| -> Result<TrainedGroup, JobError> {
        if let Some(kept) = checkpoints.load(group)? {
            resumed.fetch_add(1, Ordering::Relaxed);
            say(group, epochs, kept.report.validation_cm);
            return Ok(kept);
        }
        let trained = plan
            .train_group(poses, group, settings, |epoch, error| {
                say(group, (epoch as u64 + 1).min(epochs - 1), error);
                !watch.should_stop()
            })
            .map_err(learn)?;
        checkpoints.save(group, &trained)?;
        say(group, epochs, trained.report.validation_cm);
        Ok(trained)
    };
    let groups: Vec<TrainedGroup> =
        (0..plan.groups.len()).into_par_iter().map(one).collect::<Result<_, _>>()?;
    watch.event(Event::Finished);

    let networks: Vec<GroupReport> = groups.iter().map(|group| group.report.clone()).collect();
    let precision = if config.half { Precision::Half } else { Precision::Single };
    let unfit = |error: TwinError| {
        let hint = if config.half { "; --full-precision keeps weights in 32 bits" } else { "" };
        JobError::unusable(&config.output, format!("the twin cannot be packed: {error}{hint}"))
    };
    let mut parts = plan.finish(poses, rig_name, groups, settings);
    if config.half {
        parts = round_to_half(&parts, &plan, poses).map_err(unfit)?;
    }
    let bytes = to_bytes(&parts, precision).map_err(|error| JobError::unusable(&config.output, error))?;
    // What we wrote must load: a twin that does not is a bug of ours, not of the user's file.
    let (held_back, unexplained) = held_back(poses, &plan, &parts, precision).map_err(learn)?;
    warn(&held_back, &unexplained, watch);
    BodyTwin::new(parts, precision).map_err(unfit)?;
    understudy_io::write_atomic(&config.output, &bytes)?;
    checkpoints.remove();
    Ok(LearnBodyReport {
        output: config.output.clone(),
        rig: rig_name.into(),
        poses: poses.len(),
        groups: networks.len(),
        resumed: resumed.into_inner() as usize,
        inputs_probed: plan.probed,
        held_back,
        unexplained,
        bytes: bytes.len(),
        seconds: start.elapsed().as_secs_f64(),
        networks,
    })
}

/// Says what a user must know before the twin is used.
fn warn(held_back: &HeldBack, unexplained: &[Unexplained], watch: &dyn Watch) {
    /// Names that a line holds.
    const SHOWN: usize = 5;
    if held_back.is_useless() {
        let HeldBack { poses, mean_mm, base_mean_mm, .. } = held_back;
        let message = format!(
            "on the {poses} poses that were held back the twin is no better than its skinning alone ({mean_mm:.3} mm \
             against {base_mean_mm:.3} mm): record more poses, or poses of another kind"
        );
        watch.event(Event::Warning { message: &message });
    }
    let mut groups: Vec<_> = unexplained.iter().collect();
    groups.sort_by(|a, b| b.error_mm.total_cmp(&a.error_mm));
    if !groups.is_empty() {
        let shown: Vec<String> = groups
            .iter()
            .take(SHOWN)
            .map(|group| format!("'{}' {:.2} mm", group.bone, group.error_mm))
            .collect();
        let more = if groups.len() > SHOWN { ", …" } else { "" };
        let message = format!(
            "around {} of the bones something moves that no recorded bone or control explains ({}{more}); a control \
             may be missing from the recording",
            groups.len(),
            shown.join(", ")
        );
        watch.event(Event::Warning { message: &message });
    }
}

/// What makes two runs the same: settings and data.
fn run_key(config: &LearnBodyConfig, settings: &BodySettings, poses: &Recording) -> String {
    let mut hash = Fnv::default();
    hash.write(serde_json::to_string(settings).unwrap_or_default().as_bytes());
    hash.write(format!("{:?} {:x}", config.base, poses.mesh.topology_hash()).as_bytes());
    for pose in poses.spread(200) {
        poses.controls_of(pose).iter().for_each(|c| hash.write(&c.to_le_bytes()));
        poses.vertices_of(pose).iter().step_by(101).for_each(|v| hash.write(&v.x.to_le_bytes()));
    }
    hash.write(&(poses.len() as u64).to_le_bytes());
    format!("{:016x}", hash.finish())
}
