//! `learn auto`: every kind of twin that fits the data is tried at a small budget, weighed on poses that none of them
//! saw, and the best for the user's limits is learned in full. Start at [`learn_auto`]; which one is best is in `choice`,
//! how a trial is measured in `trial`, the page in `page`.

mod choice;
mod page;
mod trial;

pub use choice::{Limits, choose};
pub use trial::{LeftOut, Trial};

use super::active::{ActiveConfig, ActiveReport, sample_actively};
use super::data::Loaded;
use super::kinds::Learning;
use super::learn::{LearnConfig, LearnReport, learn};
use crate::outputs::{check_file, check_folder};
use crate::sample::{Method, SampleConfig, sample};
use crate::{Event, JobError, Watch, checkpoint_folder, rigs, threads};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_core::Clip;
use understudy_rigs::Rig;

/// What to learn, and how good it must be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AutoConfig {
    /// Folder of the dataset; where none is given the rig is sampled first, into [`AutoConfig::own_data`].
    pub data: Option<PathBuf>,
    /// The rig: sampled where there is no dataset, else the one that the dataset was recorded from.
    pub rig: Option<String>,
    /// The twin's file.
    pub output: PathBuf,
    /// Poses to sample where there is no dataset.
    pub poses: u64,
    /// Sample where small models disagree, instead of plainly at random.
    pub active: bool,
    /// What the twin must be.
    pub limits: Limits,
    /// Poses that trials train on and are measured by, spread evenly over the dataset.
    pub trial_poses: usize,
    /// About how long each trial may train on two cores.
    pub trial_minutes: f64,
    /// About how long the chosen one may train on two cores.
    pub minutes: f64,
    /// Folder for the page; none when absent.
    pub report: Option<PathBuf>,
    /// Weights in 16 bits; in 32 otherwise.
    pub half: bool,
    /// Threads.
    pub threads: usize,
    /// Same seed, same poses.
    pub seed: u64,
    /// Shown on the page.
    pub command: String,
}

impl Default for AutoConfig {
    fn default() -> Self {
        Self {
            data: None,
            rig: None,
            output: PathBuf::new(),
            poses: 4000,
            active: false,
            limits: Limits::default(),
            trial_poses: 1000,
            trial_minutes: 1.0,
            minutes: 20.0,
            report: None,
            half: true,
            threads: threads::available(),
            seed: 1,
            command: String::new(),
        }
    }
}

impl AutoConfig {
    /// Where poses of a rig are recorded: beside the twin, named after it. They stay there.
    pub fn own_data(&self) -> PathBuf {
        self.output.with_extension("data")
    }

    fn check(&self) -> Result<(), JobError> {
        self.limits.check().map_err(|(what, problem)| JobError::setting(what, problem))?;
        for (what, value) in [("--trial-minutes", self.trial_minutes), ("--minutes", self.minutes)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(JobError::setting(what, format!("{value} minutes; more than 0 is wanted")));
            }
        }
        if self.trial_poses < trial::FEWEST_POSES {
            let problem = format!("{}; at least {} are wanted", self.trial_poses, trial::FEWEST_POSES);
            return Err(JobError::setting("--trial-poses", problem));
        }
        match (&self.data, &self.rig) {
            (None, None) => Err(JobError::setting("data", "name a dataset, or a rig with --rig")),
            (Some(_), _) if self.active => {
                let problem = "poses are recorded already; name the rig with --rig and no dataset";
                Err(JobError::setting("--active", problem))
            }
            _ => Ok(()),
        }
    }
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AutoReport {
    /// The dataset that everything was learned from.
    pub data: PathBuf,
    /// Trials in the order of the kinds.
    pub trials: Vec<Trial>,
    /// Kinds that do not fit the data, and why.
    pub left_out: Vec<LeftOut>,
    /// Poses that trials were trained on, and measured by.
    pub trial_poses: [usize; 2],
    /// The kind that was chosen.
    pub chosen: &'static str,
    /// Why, in one sentence.
    pub why: String,
    /// The twin, learned in full.
    pub learned: LearnReport,
    /// Milliseconds per pose of that one, on one thread.
    pub ms: f64,
    /// Whether the finished twin still keeps the limits, a sentence each where it does not.
    pub broken_limits: Vec<String>,
    /// How the poses were found, where they were sampled actively.
    pub active: Option<ActiveReport>,
    /// The page, where one was asked for.
    pub page: Option<PathBuf>,
    /// Duration of all of it.
    pub seconds: f64,
}

/// Tries, chooses, finishes. Finished trials and the training so far are kept beside the output until it is whole: the
/// same command goes on where it stopped.
pub fn learn_auto(config: &AutoConfig, watch: &dyn Watch) -> Result<AutoReport, JobError> {
    config.check()?;
    config.report.as_deref().map(check_folder).transpose()?;
    let inputs: Vec<&Path> = config.data.iter().map(PathBuf::as_path).collect();
    check_file(&config.output, &inputs)?;
    let start = Instant::now();
    let (data, active) = dataset(config, watch)?;
    let loaded = Loaded::read_some(&data, config.trial_poses, watch)?;
    check_file(&config.output, &[&rigs::source_file(&loaded.header.rig)])?;
    let rig = loaded.recorded(&data).rig(config.rig.as_deref(), watch)?;
    let rig_name = loaded.header.rig.clone();
    let (trained, held) = trial::split(&data, loaded.recording)?;
    let trial_poses = [trained.len(), held.len()];
    let folder = checkpoint_folder(&config.output).join("trials");
    let bench = trial::Bench {
        config,
        folder: &folder,
        data: &data,
        rig_name: &rig_name,
        rig: rig.as_deref(),
        trained: &trained,
        held: &held,
        watch,
    };
    let (mut trials, mut left_out) = (Vec::new(), Vec::new());
    for learning in Learning::all() {
        match bench.run(&learning)? {
            Ok(trial) => {
                watch.event(Event::Note { message: &trial.line() });
                trials.push(trial);
            }
            Err(reason) => {
                let message = format!("{} is left out: {}", reason.kind, reason.reason);
                watch.event(Event::Note { message: &message });
                left_out.push(reason);
            }
        }
    }
    if trials.is_empty() {
        let reasons: Vec<String> =
            left_out.iter().map(|one| format!("{}: {}", one.kind, one.reason)).collect();
        return Err(JobError::unusable(&data, format!("no kind of twin fits: {}", reasons.join("; "))));
    }
    let (place, why) =
        choose(&trials, &config.limits).map_err(|(limit, problem)| JobError::setting(limit, problem))?;
    let chosen = trials[place].kind;
    watch.event(Event::Note { message: &why });
    drop((trained, rig));

    let learning = Learning::all().into_iter().find(|learning| learning.name() == chosen);
    let learning = learning.expect("it was tried").limited(config.minutes);
    let finish = LearnConfig {
        rig: config.rig.clone(),
        half: config.half,
        threads: config.threads,
        ..LearnConfig::new(&data, &config.output, learning)
    };
    let learned = learn(&finish, watch)?;
    let ms = trial::milliseconds(&config.output, &held)?;
    let broken_limits = config.limits.broken(chosen, ms, learned.bytes);
    for message in &broken_limits {
        watch.event(Event::Warning { message });
    }
    // Trials lie in the folder of checkpoints, which learning has removed; a second name for it may stay.
    let _ = std::fs::remove_dir_all(&folder);
    let mut report = AutoReport {
        data,
        trials,
        left_out,
        trial_poses,
        chosen,
        why,
        learned,
        ms,
        broken_limits,
        active,
        page: None,
        seconds: start.elapsed().as_secs_f64(),
    };
    if let Some(folder) = &config.report {
        report.page = Some(page::write(folder, config, &report)?);
    }
    Ok(report)
}

/// The dataset that is named, or one that is recorded from the rig first.
fn dataset(config: &AutoConfig, watch: &dyn Watch) -> Result<(PathBuf, Option<ActiveReport>), JobError> {
    if let Some(data) = &config.data {
        return Ok((data.clone(), None));
    }
    let name = config.rig.as_ref().expect("checked: a dataset or a rig");
    let data = config.own_data();
    if config.active {
        let active = ActiveConfig {
            rig: name.clone(),
            output: data.clone(),
            poses: config.poses,
            seed: config.seed,
            threads: config.threads,
            compare: false,
            ..ActiveConfig::default()
        };
        let report = sample_actively(&active, watch)?;
        return Ok((data, Some(report)));
    }
    let sampling = SampleConfig {
        rig: name.clone(),
        output: data.clone(),
        poses: Some(config.poses),
        method: Some(method_for(name, watch)?),
        seed: config.seed,
        threads: config.threads,
        ..SampleConfig::default()
    };
    sample(&sampling, watch)?;
    Ok((data, None))
}

/// How a rig is sampled where nobody says: its clips times noise where it has some, else a random share of its controls.
pub fn method_for(rig: &str, watch: &dyn Watch) -> Result<Method, JobError> {
    Ok(method_of(rigs::open(rig, watch)?.rig.as_ref()))
}

/// [`method_for`] of a rig at hand.
pub(super) fn method_of(rig: &dyn Rig) -> Method {
    match rig.clips().iter().any(Clip::is_for_training) {
        true => Method::Noise,
        false => Method::Sparse,
    }
}
