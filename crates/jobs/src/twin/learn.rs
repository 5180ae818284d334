//! `learn`: a twin of any kind from a dataset. What is the same for all is here: files, the rig, warnings, the report;
//! a kind supplies `Learn`. Start at [`learn`].

use super::checkpoint::Checkpoints;
use super::data::{Guides, Loaded};
use super::kinds::{LearnDetails, Learning};
use super::mechanism::{MechanismChoice, MechanismReport, Posing};
use crate::outputs::check_file;
use crate::{Event, JobError, Watch, rigs, threads};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_core::mesh::Fnv;
use understudy_io::dataset::DatasetHeader;
use understudy_learn::{HeldBack, Recording};
use understudy_rigs::Rig;
use understudy_runtime::{Distances, Precision, Training, Twin, TwinError};

/// Among the details of a twin's training: milliseconds per pose of the original.
const RIG_MS: &str = "rig_ms";
/// Among them: what the poses are (rig, method, seed, clips), which `eval` holds against its test sets.
pub(crate) const DATA: &str = "data";
/// Among them: clips that the options were chosen by, a list of names.
pub(crate) const CHOSEN_ON: &str = "chosen_on";

/// What the original took per pose when it was sampled, where it was another program.
pub(crate) fn recorded_rig_ms(twin: &Twin) -> Option<f64> {
    twin.header().training.details.get(RIG_MS)?.as_f64().filter(|ms| ms.is_finite() && *ms > 0.0)
}

/// What to learn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnConfig {
    /// Folder of the dataset.
    pub data: PathBuf,
    /// The twin's file.
    pub output: PathBuf,
    /// The rig that the dataset was recorded from, where it is not where the dataset says.
    pub rig: Option<String>,
    /// Weights in 16 bits; in 32 otherwise.
    pub half: bool,
    /// Threads; the twin does not depend on it.
    pub threads: usize,
    /// What poses a twin with bones by controls alone.
    #[serde(default)]
    pub mechanism: MechanismChoice,
    /// Clips that these options were chosen by: those that are kept for tests weigh such a twin no more.
    #[serde(default)]
    pub chosen_on: Vec<String>,
    /// The kind of the twin, and how to learn it.
    pub learning: Learning,
}

impl LearnConfig {
    /// With what serves users.
    pub fn new(data: impl Into<PathBuf>, output: impl Into<PathBuf>, learning: Learning) -> Self {
        let (data, output) = (data.into(), output.into());
        Self {
            data,
            output,
            rig: None,
            half: true,
            threads: threads::available(),
            mechanism: MechanismChoice::default(),
            chosen_on: Vec::new(),
            learning,
        }
    }

    fn precision(&self) -> Precision {
        if self.half { Precision::Half } else { Precision::Single }
    }
}

/// What was learned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LearnReport {
    /// The kind of the twin, as files have it.
    pub kind: &'static str,
    /// The twin's file.
    pub output: PathBuf,
    /// The rig.
    pub rig: String,
    /// Poses in the dataset.
    pub poses: usize,
    /// Whether inputs were found on the live rig or estimated from the poses.
    pub inputs_probed: bool,
    /// How far the whole twin is from the poses that were held back, and what costs nothing: see `base`.
    pub held_back: HeldBack,
    /// What the twin must beat: `its skinning alone`, `a face at rest`.
    pub base: &'static str,
    /// What 16-bit weights cost against 32 bits: mean and largest, mm.
    pub half_error_mm: Option<Distances>,
    /// What poses it by controls alone, where it has bones.
    pub mechanism: Option<MechanismReport>,
    /// Size of the file.
    pub bytes: usize,
    /// Duration, with that of interrupted runs where time was limited.
    pub seconds: f64,
    /// What only this kind has to say.
    #[serde(flatten)]
    pub details: LearnDetails,
}

/// How one kind learns.
pub(crate) trait Learn: Sync {
    /// Files that it reads besides the dataset.
    fn inputs(&self) -> Vec<&Path> {
        Vec::new()
    }

    /// Whether the settings make sense, before anything is read.
    fn check(&self) -> Result<(), JobError>;

    /// The same with at most about so many minutes of training, on two cores and a thousand poses. Sizes stay.
    fn limited(&self, minutes: f64) -> Learning;

    /// Trains the networks.
    fn learn(&self, run: &Run<'_>, poses: Recording, rig: Option<&dyn Rig>) -> Result<Learned, JobError>;
}

/// What is the same for a whole run.
pub(crate) struct Run<'a> {
    pub config: &'a LearnConfig,
    /// Its name.
    pub rig_name: &'a str,
    /// Milliseconds per pose of the rig, where they were recorded with its poses.
    pub rig_ms: Option<f64>,
    /// What the poses are, where they are a whole dataset.
    pub data: Option<serde_json::Value>,
    pub watch: &'a dyn Watch,
    pub start: Instant,
}

/// What training gives.
pub(crate) struct Learned {
    /// The file.
    pub bytes: Vec<u8>,
    pub inputs_probed: bool,
    pub held_back: HeldBack,
    /// What costs nothing: `its skinning alone`.
    pub base: &'static str,
    /// What to do where it is no better than that.
    pub advice: &'static str,
    pub details: LearnDetails,
    pub checkpoints: Checkpoints,
    pub seconds: f64,
}

impl Run<'_> {
    /// How weights are kept.
    pub fn precision(&self) -> Precision {
        self.config.precision()
    }

    /// Keeps in the twin the rig's own time, so that `bench` can show both where the rig is not at hand, what it was
    /// learned from, and what its options were chosen by.
    pub fn note_origin(&self, training: &mut Training) {
        if let Some(ms) = self.rig_ms {
            training.details.insert(RIG_MS.into(), ms.into());
        }
        if let Some(data) = &self.data {
            training.details.insert(DATA.into(), data.clone());
        }
        if !self.config.chosen_on.is_empty() {
            training.details.insert(CHOSEN_ON.into(), self.config.chosen_on.as_slice().into());
        }
    }

    /// Says something worth knowing.
    pub fn note(&self, message: &str) {
        self.watch.event(Event::Note { message });
    }

    /// Parts that do not make a twin: mostly weights beyond what 16 bits hold.
    pub fn unfit(&self, error: &TwinError) -> JobError {
        let hint = if self.config.half { "; --full-precision keeps weights in 32 bits" } else { "" };
        JobError::unusable(&self.config.output, format!("the twin cannot be packed: {error}{hint}"))
    }

    /// Where training stands, beside the output. What makes two runs the same: `settings` and poses.
    pub fn checkpoints(&self, poses: &Recording, settings: &[&[u8]]) -> Checkpoints {
        let mut hash = Fnv::default();
        settings.iter().for_each(|part| hash.write(part));
        hash.write(format!("{:x}", poses.mesh.topology_hash()).as_bytes());
        for pose in poses.spread(200) {
            poses.controls_of(pose).iter().for_each(|c| hash.write(&c.to_le_bytes()));
            poses.vertices_of(pose).iter().step_by(101).for_each(|v| hash.write(&v.x.to_le_bytes()));
        }
        hash.write(&(poses.len() as u64).to_le_bytes());
        Checkpoints::new(&self.config.output, format!("{:016x}", hash.finish()))
    }
}

/// Learns a twin and writes it. Where training stands is kept beside the output until it is whole.
pub fn learn(config: &LearnConfig, watch: &dyn Watch) -> Result<LearnReport, JobError> {
    let job = config.learning.job();
    let inputs = std::iter::once(config.data.as_path()).chain(job.inputs());
    check_file(&config.output, &inputs.collect::<Vec<_>>())?;
    job.check()?;
    threads::pool(config.threads)?;
    let start = Instant::now();
    let loaded = Loaded::read(&config.data, watch)?;
    let rig_name = loaded.header.rig.clone();
    check_file(&config.output, &[&rigs::source_file(&rig_name)])?;
    let rig = loaded.recorded(&config.data).rig(config.rig.as_deref(), watch)?;
    let (rig_ms, data) = (loaded.rig_ms, Some(facts(&loaded.header)));
    let source = Source {
        rig_name: &rig_name,
        poses: loaded.recording,
        guides: loaded.guides,
        rig: rig.as_deref(),
        rig_ms,
        data,
    };
    learn_from(config, source, watch, start)
}

/// What a twin's file keeps of the dataset that it was learned from.
fn facts(header: &DatasetHeader) -> serde_json::Value {
    serde_json::json!({
        "rig": header.rig, "method": header.method, "seed": header.seed, "settings": header.settings,
    })
}

/// What is learned from.
pub(crate) struct Source<'a> {
    /// The rig's name.
    pub rig_name: &'a str,
    pub poses: Recording,
    /// Bones that move no vertex, of the same poses.
    pub guides: Guides,
    /// The rig itself, where it is at hand.
    pub rig: Option<&'a dyn Rig>,
    /// Its milliseconds per pose, where they were recorded.
    pub rig_ms: Option<f64>,
    /// What the poses are, for the twin's file.
    pub data: Option<serde_json::Value>,
}

/// [`learn`] with the poses at hand: the dataset of `config` is only a name.
pub(crate) fn learn_from(
    config: &LearnConfig,
    source: Source<'_>,
    watch: &dyn Watch,
    start: Instant,
) -> Result<LearnReport, JobError> {
    let job = config.learning.job();
    job.check()?;
    let pool = threads::pool(config.threads)?;
    let Source { rig_name, poses, guides, rig, rig_ms, data } = source;
    let count = poses.len();
    let run = Run { config, rig_name, rig_ms, data, watch, start };
    let posing = match config.learning {
        Learning::Body(_) | Learning::Diff(_) => Posing::keep(&poses, &guides, config.mechanism),
        Learning::Face(_) | Learning::Skin(_) => None,
    };
    let learned = pool.install(|| job.learn(&run, poses, rig))?;
    let held = learned.held_back;
    if held.is_useless() {
        let message = format!(
            "on the {} poses that were held back the twin is no better than {} ({:.3} mm against {:.3} mm): {}",
            held.poses, learned.base, held.mean_mm, held.base_mean_mm, learned.advice
        );
        watch.event(Event::Warning { message: &message });
    }
    // What we wrote must load: a twin that does not is a bug of ours, not of the user's file.
    let twin = Twin::parse(&learned.bytes).map_err(|error| JobError::Machine(error.to_string()))?;
    let (twin, mechanism) = match posing {
        Some(posing) => pool.install(|| posing.attach(twin, rig, watch))?,
        None => (twin, None),
    };
    let bytes = match mechanism {
        Some(_) => twin.to_bytes().map_err(|error| JobError::Machine(error.to_string()))?,
        None => learned.bytes,
    };
    understudy_io::write_atomic(&config.output, &bytes)?;
    learned.checkpoints.remove();
    Ok(LearnReport {
        kind: twin.method(),
        output: config.output.clone(),
        rig: rig_name.into(),
        poses: count,
        inputs_probed: learned.inputs_probed,
        held_back: held,
        base: learned.base,
        half_error_mm: twin.header().training.half_error_mm,
        mechanism,
        bytes: bytes.len(),
        seconds: learned.seconds,
        details: learned.details,
    })
}
