//! `learn diff`: one network in Laplacian coordinates, mini-networks of anchors, a folded reconstruction
//! (`docs/methods/differential-twin.md`).

use super::checkpoint;
use crate::twin::kinds::{LearnDetails, Learning};
use crate::twin::learn::{Learn, Learned, Run};
use crate::{Event, JobError};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use understudy_io::read_bytes;
use understudy_learn::Recording;
use understudy_learn::diff::{
    DiffLearnError, DiffReport, DiffSettings, Plan, SkinSource, TrainedAnchor, Trainer, held_back,
};
use understudy_rigs::Rig;
use understudy_runtime::diff::to_bytes;

/// Steps between two looks at whether to stop, and the share of all steps between two checkpoints.
const LOOK: usize = 20;
const CHECKPOINTS: usize = 20;

/// How to learn a differential twin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiffLearning {
    /// A file of vertex numbers, the first is 0, that are the anchors: instead of chosen ones.
    pub anchors: Option<PathBuf>,
    /// Sizes and training.
    pub settings: DiffSettings,
}

impl DiffLearning {
    /// The paper's recipe: [`DiffSettings::paper`]. It has weights of 32 bits.
    pub fn paper() -> Self {
        Self { anchors: None, settings: DiffSettings::paper() }
    }
}

/// What only differential twins report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiffDetails {
    /// All figures.
    #[serde(flatten)]
    pub figures: DiffReport,
    /// Mini-networks that an earlier run had finished, and steps of the differential network.
    pub resumed: [usize; 2],
}

impl DiffDetails {
    pub(crate) fn lines(&self) -> Vec<String> {
        let figures = &self.figures;
        let skin = match figures.skin {
            SkinSource::Auto | SkinSource::None => "no skinning",
            SkinSource::Rig => "the rig's skinning",
            SkinSource::Probe => "probed skinning",
            SkinSource::Fit => "fitted skinning",
        };
        let mut lines = vec![
            format!(
                "{skin} ({} near-singular blends), {} features that leave {:.0} % of the motion to networks, {} components that leave {:.4} mm, {} anchors on {} \
                 island(s) off by {:.3} mm",
                figures.singular_blends,
                figures.features,
                100.0 * figures.linear_left,
                figures.components,
                figures.component_error_mm,
                figures.anchors,
                figures.islands,
                figures.anchor_error_mm
            ),
            format!(
                "reconstruction: anchor weight {}, condition number {:.1e}; folded to rank {} ({:.0} in a run of vertices), {:.3} % of the vertices \
                 of {} poses within 0.05 mm of the solve, the farthest {:.3} mm",
                figures.anchor_weight,
                figures.condition,
                figures.fold.rank,
                figures.fold.run_rank,
                100.0 * figures.fold.within_limit,
                figures.fold.poses,
                figures.fold.max_mm
            ),
        ];
        if self.resumed != [0, 0] {
            let [anchors, steps] = self.resumed;
            lines.push(format!("{anchors} anchors and {steps} steps from an earlier run"));
        }
        lines
    }
}

/// Vertex numbers in a text, separated by white space or commas; `#` begins a comment.
fn parse_anchors(path: &Path) -> Result<Vec<u32>, JobError> {
    let bytes = read_bytes(path)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| JobError::unusable(path, "is no text in UTF-8"))?;
    let mut anchors = Vec::new();
    for (line, content) in text.lines().enumerate() {
        let content = content.split('#').next().unwrap_or_default();
        for word in content.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()) {
            let number = word.parse::<u32>().map_err(|_| {
                let problem = format!("line {}: '{word}' is no number of a vertex", line + 1);
                JobError::unusable(path, problem)
            })?;
            anchors.push(number);
        }
    }
    if anchors.is_empty() {
        return Err(JobError::unusable(path, "names no anchor"));
    }
    Ok(anchors)
}

impl Learn for DiffLearning {
    fn inputs(&self) -> Vec<&Path> {
        self.anchors.as_deref().into_iter().collect()
    }

    fn check(&self) -> Result<(), JobError> {
        self.settings.check().map_err(|error| JobError::setting("learn diff", error))?;
        self.anchors.as_deref().map(parse_anchors).transpose().map(|_| ())
    }

    fn limited(&self, minutes: f64) -> Learning {
        /// Of the differential network and of every mini-network, on a mesh of twenty thousand vertices.
        const STEPS_PER_MINUTE: [f64; 2] = [1500.0, 200.0];
        let mut diff = self.clone();
        let settings = &mut diff.settings;
        for (steps, pace) in
            [&mut settings.steps, &mut settings.anchor_steps].into_iter().zip(STEPS_PER_MINUTE)
        {
            *steps = (*steps).min((pace * minutes).ceil().max(1.0) as usize);
        }
        Learning::Diff(diff)
    }

    fn learn(&self, run: &Run<'_>, poses: Recording, rig: Option<&dyn Rig>) -> Result<Learned, JobError> {
        let (settings, watch) = (&self.settings, run.watch);
        let problem = |error: DiffLearnError| match error {
            DiffLearnError::Stopped => JobError::Stopped,
            diverged @ DiffLearnError::Diverged { .. } => JobError::setting("--rate", diverged),
            skin @ DiffLearnError::Skin { .. } => JobError::setting("--skin", skin),
            anchor @ DiffLearnError::Anchor { .. } => match &self.anchors {
                Some(path) => JobError::unusable(path, anchor),
                None => JobError::Machine(anchor.to_string()),
            },
            other => JobError::unusable(&run.config.data, other),
        };
        let chosen = self.anchors.as_deref().map(parse_anchors).transpose()?;
        watch.event(Event::Started { what: "planning", total: 1, unit: "plan" });
        let plan = Plan::new(&poses, rig, chosen.as_deref(), settings).map_err(problem)?;
        watch.event(Event::Finished);
        if plan.graph.joined > 0 {
            run.note(&format!(
                "{} pairs of vertices lie at one place: they are joined for the reconstruction",
                plan.graph.joined
            ));
        }
        if plan.added_anchors > 0 {
            run.note(&format!(
                "{} islands have no anchor in the file: one was added to each",
                plan.added_anchors
            ));
        }
        if plan.adopted > 0 {
            run.note(&format!(
                "{} of {} bones hang on no bone that moves them: they were given parents by how they move",
                plan.adopted,
                poses.bone_count()
            ));
        }
        let key = serde_json::to_string(self).unwrap_or_default();
        let anchors_key = format!("{:?}", plan.anchors);
        let checkpoints = run.checkpoints(&poses, &[key.as_bytes(), anchors_key.as_bytes()]);

        let count = plan.anchors.len();
        watch.event(Event::Started { what: "training anchors", total: count as u64, unit: "networks" });
        let (done, resumed) = (AtomicU64::new(0), AtomicU64::new(0));
        let one = |first: usize| -> Result<Vec<TrainedAnchor>, JobError> {
            let own = first..count.min(first + checkpoint::RUN);
            let kept = checkpoint::load_anchors(&checkpoints, first / checkpoint::RUN)?;
            let anchors = match kept.filter(|kept| kept.len() == own.len()) {
                Some(kept) => {
                    resumed.fetch_add(kept.len() as u64, Ordering::Relaxed);
                    done.fetch_add(kept.len() as u64, Ordering::Relaxed);
                    kept
                }
                None => {
                    let train = |anchor: usize| {
                        let trained = plan.train_anchor(anchor, settings, || !watch.should_stop());
                        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                        watch.event(Event::Step { done });
                        trained.map_err(problem)
                    };
                    let trained = own.map(train).collect::<Result<Vec<_>, JobError>>()?;
                    checkpoint::save_anchors(&checkpoints, first / checkpoint::RUN, &trained)?;
                    trained
                }
            };
            Ok(anchors)
        };
        let runs: Vec<usize> = (0..count).step_by(checkpoint::RUN).collect();
        let anchors: Vec<TrainedAnchor> = match settings.single_network && count > 0 {
            true => plan.train_together(settings, || !watch.should_stop()).map_err(problem)?,
            false => runs.into_par_iter().map(one).collect::<Result<Vec<_>, JobError>>()?.concat(),
        };
        watch.event(Event::Finished);

        let mut trainer = Trainer::new(plan.problem(), settings);
        let mut resumed_steps = 0;
        if let Some(state) = checkpoint::load_state(&checkpoints)? {
            resumed_steps = state.step;
            trainer = match trainer.restore(state) {
                Some(trainer) => trainer,
                None => {
                    resumed_steps = 0;
                    Trainer::new(plan.problem(), settings)
                }
            };
        }
        let steps = trainer.steps();
        watch.event(Event::Started { what: "training", total: steps as u64, unit: "steps" });
        let each = steps.div_ceil(CHECKPOINTS).max(1);
        while trainer.done() < steps {
            let loss = trainer.run(LOOK.min(each - trainer.done() % each));
            if !loss.is_finite() {
                return Err(problem(DiffLearnError::Diverged { rate: settings.rate }));
            }
            watch.event(Event::Step { done: trainer.done() as u64 });
            watch.event(Event::Figure { name: "loss", value: loss });
            if trainer.done().is_multiple_of(each) {
                let [miss, silent] = trainer.validation();
                let share = miss / silent.max(f64::MIN_POSITIVE);
                // Of the mean's own error: 1 is a network that has learned nothing.
                watch.event(Event::Figure { name: "held-back error, share", value: share });
                watch.event(Event::Status { message: &format!("loss {loss:.4}, held-back {share:.4}") });
                checkpoint::save_state(&checkpoints, &trainer.state())?;
            }
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
        watch.event(Event::Finished);
        let [miss, silent] = trainer.validation();
        if !miss.is_finite() || miss > 2.0 * silent {
            return Err(problem(DiffLearnError::Diverged { rate: settings.rate }));
        }

        watch.event(Event::Started { what: "folding the reconstruction", total: 1, unit: "map" });
        let share = miss / silent.max(f64::MIN_POSITIVE);
        let layers = trainer.layers();
        drop(trainer);
        let (mut parts, figures) = plan.finish(&poses, run.rig_name, &layers, &anchors, share, settings);
        let precision = run.precision();
        if run.config.half {
            let cost = plan.half_error(&poses, &parts).map_err(problem)?;
            parts.header.training.half_error_mm = Some(cost);
        }
        run.note_origin(&mut parts.header.training);
        let held_back = held_back(&poses, &plan, &parts, precision).map_err(problem)?;
        watch.event(Event::Finished);
        let base = if plan.unskinning.weights.is_some() { "its skinning alone" } else { "the mesh at rest" };
        Ok(Learned {
            bytes: to_bytes(&parts, precision).map_err(|error| run.unfit(&error))?,
            inputs_probed: plan.probed,
            held_back,
            base,
            advice: "record more poses, or poses of another kind",
            details: LearnDetails::Diff(Box::new(DiffDetails {
                figures,
                resumed: [resumed.into_inner() as usize, resumed_steps],
            })),
            checkpoints,
            seconds: run.start.elapsed().as_secs_f64(),
        })
    }
}
