//! `learn skin`: bones by decomposition, moved by a small network (`docs/methods/skin-twin.md`).

use crate::twin::kinds::{LearnDetails, Learning};
use crate::twin::learn::{Learn, Learned, Run};
use crate::{Event, JobError};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use understudy_core::Vec3;
use understudy_learn::skin::{
    SkinLearnError, SkinProgress, SkinReport, SkinSettings, half_error, held_back, learn,
};
use understudy_learn::{HeldBack, Recording};
use understudy_rigs::Rig;
use understudy_runtime::Twin;
use understudy_runtime::skin::{SkinTwin, to_bytes};

/// How to learn a skin twin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SkinLearning {
    /// Whether a paper's recipe is asked for, which there is not.
    pub paper: bool,
    /// Sizes and training.
    pub settings: SkinSettings,
}

/// What only skin twins report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkinDetails {
    /// How it went.
    pub skin: SkinReport,
}

impl SkinDetails {
    pub(crate) fn lines(&self) -> Vec<String> {
        let SkinReport { bones, influences, inputs, components, .. } = self.skin;
        let components = if components > 0 { format!(", {components} components") } else { String::new() };
        vec![
            format!("{bones} bones, at most {influences} per vertex{components}, moved by {inputs} controls"),
            format!(
                "held-back poses, root mean square over vertices, mean over poses: the best bones leave {:.4} mm, the network adds {:.4} mm, linear \
                 regression would add {:.4} mm",
                self.skin.skin_rmse_mm, self.skin.network_rmse_mm, self.skin.linear_rmse_mm
            ),
        ]
    }
}

impl Learn for SkinLearning {
    fn check(&self) -> Result<(), JobError> {
        if self.paper {
            return Err(JobError::setting("--paper", "no paper describes a skin twin; leave it out"));
        }
        self.settings.check().map_err(|error| JobError::setting("learn skin", error))
    }

    fn limited(&self, minutes: f64) -> Learning {
        /// Of the decomposition, with rigid and with affine bones, and of the network.
        const ROUNDS_PER_MINUTE: [f64; 2] = [6.0, 10.0];
        const EPOCHS_PER_MINUTE: f64 = 120.0;
        let mut skin = self.clone();
        let settings = &mut skin.settings;
        let most = |pace: f64| (pace * minutes).ceil().max(1.0) as usize;
        for (rounds, pace) in settings.rounds.iter_mut().zip(ROUNDS_PER_MINUTE) {
            *rounds = (*rounds).min(most(pace));
        }
        settings.train.epochs = settings.train.epochs.min(most(EPOCHS_PER_MINUTE));
        Learning::Skin(skin)
    }

    fn learn(&self, run: &Run<'_>, poses: Recording, rig: Option<&dyn Rig>) -> Result<Learned, JobError> {
        let settings = &self.settings;
        let key = serde_json::to_string(settings).unwrap_or_default();
        let checkpoints = run.checkpoints(&poses, &[b"skin", key.as_bytes()]);
        let failed = |error: SkinLearnError| match error {
            SkinLearnError::Stopped => JobError::Stopped,
            SkinLearnError::Diverged => JobError::setting("--rate", error),
            other => JobError::unusable(&run.config.data, other),
        };
        // Training takes the motion of the whole out of the poses: the truth is set aside before.
        let whole = |pose: u32| {
            let pose = pose as usize;
            (poses.controls_of(pose).to_vec(), poses.vertices_of(pose).to_vec())
        };
        /// Poses that suffice to measure by.
        const MEASURED: usize = 200;
        let held = held_back(poses.len(), settings);
        let truth: Vec<(Vec<f32>, Vec<Vec3>)> = held.iter().take(MEASURED).map(|pose| whole(*pose)).collect();
        let (some, rest) = (some_controls(&poses), poses.mesh.positions().to_vec());
        let learned = learn(poses, rig, run.rig_name, settings, &listener(run)).map_err(failed)?;
        run.watch.event(Event::Finished);
        let (mut parts, report) = (learned.parts, learned.report);
        if let Some([before, after]) = report.whole_mm {
            run.note(&format!(
                "the motion of the whole is taken out: vertices move {after:.1} mm instead of {before:.1} mm"
            ));
        }
        if report.idle_controls > 0 {
            run.note(&format!(
                "{} controls move no vertex: the network does not see them",
                report.idle_controls
            ));
        }
        let precision = run.precision();
        if run.config.half {
            let error = half_error(&parts, &some).map_err(|error| run.unfit(&error))?;
            parts.header.training.half_error_mm = Some(error);
        }
        run.note_origin(&mut parts.header.training);
        let twin = Twin::from(SkinTwin::new(parts.clone(), precision).map_err(|error| run.unfit(&error))?);
        Ok(Learned {
            bytes: to_bytes(&parts, precision).map_err(|error| run.unfit(&error))?,
            inputs_probed: parts.header.training.inputs_probed,
            held_back: HeldBack::measure(&twin, &rest, &truth),
            base: "a mesh at rest",
            advice: "record more poses, or poses of another kind",
            details: LearnDetails::Skin(SkinDetails { skin: report }),
            checkpoints,
            seconds: run.start.elapsed().as_secs_f64(),
        })
    }
}

/// Controls of some poses; 16 bits are judged by them.
fn some_controls(poses: &Recording) -> Recording {
    let chosen = poses.spread(50);
    Recording {
        mesh: poses.mesh.clone(),
        skeleton: None,
        specs: poses.specs.clone(),
        bones: Vec::new(),
        controls: chosen.iter().flat_map(|pose| poses.controls_of(*pose).iter().copied()).collect(),
        vertices: chosen.iter().flat_map(|pose| poses.vertices_of(*pose).iter().copied()).collect(),
    }
}

/// Turns progress into events, a stage after another.
fn listener<'a>(run: &'a Run<'_>) -> impl Fn(SkinProgress) -> bool + 'a {
    let stage = Cell::new("");
    move |progress| {
        let (what, unit, done, total, message) = match progress {
            SkinProgress::Whole { done, total } => {
                ("learning the motion of the whole", "epochs", done, total, None)
            }
            SkinProgress::Bones { done, total, rmse_mm } => {
                ("finding bones", "rounds", done, total, Some(format!("RMSE {rmse_mm:.4} mm")))
            }
            SkinProgress::Network { done, total, rmse_mm, .. } => {
                ("training", "epochs", done, total, Some(format!("the network adds {rmse_mm:.4} mm")))
            }
        };
        if stage.replace(what) != what {
            if !stage.get().is_empty() {
                run.watch.event(Event::Finished);
            }
            run.watch.event(Event::Started { what, total: total as u64, unit });
        }
        run.watch.event(Event::Step { done: done as u64 });
        if let Some(message) = &message {
            run.watch.event(Event::Status { message });
        }
        match progress {
            SkinProgress::Bones { rmse_mm, .. } => {
                run.watch.event(Event::Figure { name: "bones, RMSE mm", value: rmse_mm });
            }
            // Both are what the network adds to the bones' own error.
            SkinProgress::Network { loss_mm, rmse_mm, .. } => {
                run.watch.event(Event::Figure { name: "loss, mm", value: loss_mm });
                run.watch.event(Event::Figure { name: "held-back error, mm", value: rmse_mm });
            }
            SkinProgress::Whole { .. } => {}
        }
        !run.watch.should_stop()
    }
}
