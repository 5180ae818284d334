//! `learn body`: networks on groups of vertices, on top of fitted skinning (`docs/methods/body-twin.md`).

use super::checkpoint;
use crate::twin::kinds::{LearnDetails, Learning};
use crate::twin::learn::{Learn, Learned, Run};
use crate::{Event, JobError, Watch};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use understudy_learn::Recording;
use understudy_learn::body::{
    BodySettings, GroupReport, LearnError, Plan, TrainedGroup, Unexplained, held_back, round_to_half,
};
use understudy_rigs::Rig;
use understudy_runtime::body::to_bytes;

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

impl FromStr for Base {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "rigid" => Ok(Self::Rigid),
            "lbs2" => Ok(Self::Lbs2),
            "lbs4" => Ok(Self::Lbs4),
            "lbs8" => Ok(Self::Lbs8),
            _ => Err("rigid, lbs2, lbs4 or lbs8 is wanted".into()),
        }
    }
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

/// How to learn a body.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BodyLearning {
    /// The linear part.
    pub base: Base,
    /// Error a vertex to aim at on held-back poses, root mean square, mm: the narrowest network that reaches it is kept.
    pub target_mm: Option<f64>,
    /// Sizes and training.
    pub settings: BodySettings,
}

impl BodyLearning {
    /// The paper's recipe: [`BodySettings::paper`] on a rigid base. It has weights of 32 bits.
    pub fn paper() -> Self {
        Self { base: Base::Rigid, target_mm: None, settings: BodySettings::paper() }
    }

    fn settings(&self) -> BodySettings {
        let mut settings = self.settings.clone();
        if let Some(target) = self.target_mm {
            settings.target = Some(target / 10.0);
            settings.widths = vec![32, 64, 128, 256];
            // Components must leave room beneath the target.
            settings.component_error = settings.component_error.min(target / 20.0);
        }
        settings
    }
}

/// What only bodies report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BodyDetails {
    /// Networks.
    pub groups: usize,
    /// Groups that an earlier run had finished.
    pub resumed: usize,
    /// Where something moves that no recorded bone or control explains.
    pub unexplained: Vec<Unexplained>,
    /// Each network.
    pub networks: Vec<GroupReport>,
}

impl BodyDetails {
    pub(crate) fn lines(&self) -> Vec<String> {
        let resumed = match self.resumed {
            0 => String::new(),
            resumed => format!(", {resumed} of them from an earlier run"),
        };
        vec![format!("{} networks{resumed}", self.groups)]
    }
}

impl Learn for BodyLearning {
    fn check(&self) -> Result<(), JobError> {
        self.settings().check().map_err(|error| JobError::setting("learn body", error))
    }

    fn limited(&self, minutes: f64) -> Learning {
        /// On a rig of a hundred bones.
        const EPOCHS_PER_MINUTE: f64 = 40.0;
        let mut body = self.clone();
        let epochs = &mut body.settings.train.epochs;
        *epochs = (*epochs).min((EPOCHS_PER_MINUTE * minutes).ceil().max(1.0) as usize);
        Learning::Body(body)
    }

    fn learn(&self, run: &Run<'_>, poses: Recording, rig: Option<&dyn Rig>) -> Result<Learned, JobError> {
        let (settings, watch) = (self.settings(), run.watch);
        let learn = |error: LearnError| match error {
            LearnError::Stopped => JobError::Stopped,
            diverged @ LearnError::Diverged { .. } => JobError::setting("--rate", diverged),
            other => JobError::unusable(&run.config.data, other),
        };
        poses.check_bones().map_err(|error| JobError::unusable(&run.config.data, error))?;
        watch.event(Event::Started { what: "planning", total: 1, unit: "plan" });
        let plan = Plan::new(&poses, rig, self.base.influences(), &settings).map_err(learn)?;
        watch.event(Event::Finished);
        if plan.armature.adopted > 0 {
            run.note(&format!(
                "{} of {} bones hang on no bone that moves them: they were given parents by how they move",
                plan.armature.adopted,
                poses.bone_count()
            ));
        }
        let key = [serde_json::to_string(&settings).unwrap_or_default(), format!("{:?}", self.base)];
        let checkpoints = run.checkpoints(&poses, &[key[0].as_bytes(), key[1].as_bytes()]);
        let settings = &settings;
        let epochs = settings.train.epochs as u64;
        let total = plan.groups.len() as u64 * epochs;
        watch.event(Event::Started { what: "training", total, unit: "epochs" });
        // Epochs done a group: a group may stop early or try several widths.
        let done: Vec<AtomicU64> = plan.groups.iter().map(|_| AtomicU64::new(0)).collect();
        let errors = Mutex::new(vec![f64::NAN; plan.groups.len()]);
        let resumed = AtomicU64::new(0);
        let losses = Mutex::new(vec![f64::NAN; plan.groups.len()]);
        // Mean of what is known by now.
        let mean_of = |numbers: &[f64]| -> Option<f64> {
            let known: Vec<f64> = numbers.iter().copied().filter(|number| number.is_finite()).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        let lost = |group: usize, loss: f64| {
            let mut losses = losses.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            losses[group] = loss;
            if let Some(mean) = mean_of(&losses) {
                watch.event(Event::Figure { name: "loss, mm", value: mean * 10.0 });
            }
        };
        let say = |group: usize, epoch: u64, error: f64| {
            done[group].store(epoch.min(epochs), Ordering::Relaxed);
            let mut errors = errors.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            errors[group] = error;
            watch.event(Event::Step { done: done.iter().map(|d| d.load(Ordering::Relaxed)).sum() });
            let known: Vec<f64> = errors.iter().copied().filter(|e| e.is_finite()).collect();
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            if !known.is_empty() {
                watch.event(Event::Figure { name: "held-back error, mm", value: mean * 10.0 });
            }
            if epoch >= epochs {
                let message = format!(
                    "{} of {} groups, held-back error {:.3} mm",
                    known.len(),
                    errors.len(),
                    mean * 10.0
                );
                watch.event(Event::Status { message: &message });
            }
        };
        let one = |group: usize| -> Result<TrainedGroup, JobError> {
            if let Some(kept) = checkpoint::load(&checkpoints, group)? {
                resumed.fetch_add(1, Ordering::Relaxed);
                say(group, epochs, kept.report.validation_cm);
                return Ok(kept);
            }
            let trained = plan
                .train_group(&poses, group, settings, |epoch| {
                    lost(group, epoch.loss);
                    say(group, (epoch.number as u64 + 1).min(epochs - 1), epoch.validation);
                    !watch.should_stop()
                })
                .map_err(learn)?;
            checkpoint::save(&checkpoints, group, &trained)?;
            say(group, epochs, trained.report.validation_cm);
            Ok(trained)
        };
        let groups: Vec<TrainedGroup> =
            (0..plan.groups.len()).into_par_iter().map(one).collect::<Result<_, _>>()?;
        watch.event(Event::Finished);

        let networks: Vec<GroupReport> = groups.iter().map(|group| group.report.clone()).collect();
        let precision = run.precision();
        let mut parts = plan.finish(&poses, run.rig_name, groups, settings);
        if run.config.half {
            parts = round_to_half(&parts, &plan, &poses).map_err(|error| run.unfit(&error))?;
        }
        run.note_origin(&mut parts.header.training);
        let (held_back, unexplained) = held_back(&poses, &plan, &parts, precision).map_err(learn)?;
        warn(&unexplained, watch);
        Ok(Learned {
            bytes: to_bytes(&parts, precision).map_err(|error| run.unfit(&error))?,
            inputs_probed: plan.probed,
            held_back,
            base: "its skinning alone",
            advice: "record more poses, or poses of another kind",
            details: LearnDetails::Body(BodyDetails {
                groups: networks.len(),
                resumed: resumed.into_inner() as usize,
                unexplained,
                networks,
            }),
            checkpoints,
            seconds: run.start.elapsed().as_secs_f64(),
        })
    }
}

/// Says where something is missing from the recording.
fn warn(unexplained: &[Unexplained], watch: &dyn Watch) {
    /// Names that a line holds.
    const SHOWN: usize = 5;
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
