//! What a page can ask the server to work on, and how each order becomes a job of `understudy_jobs`. To add a job: a variant of
//! [`Order`] and its arm in [`Order::plan`]. Running, watching and cancelling are in `runs.rs`.

use crate::error::Refusal;
use crate::project::{Given, Project};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use understudy_io::handles::{self, HandleFile};
use understudy_jobs::invert::solver::{Alpha, InverseSettings};
use understudy_jobs::invert::{InvertConfig, invert};
use understudy_jobs::motion::{LearnMotionConfig, learn as learn_motion};
use understudy_jobs::sample::{Method, SampleConfig, sample};
use understudy_jobs::twin::Learning;
use understudy_jobs::twin::auto::{AutoConfig, learn_auto, method_for};
use understudy_jobs::twin::eval::{EvalConfig, eval};
use understudy_jobs::twin::ik::{LearnIkConfig, learn_ik};
use understudy_jobs::twin::learn::{LearnConfig, learn};
use understudy_jobs::weights::{DomainKind, WeightKind, WeightSettings, WeightsConfig, weights};
use understudy_jobs::{Event, JobError, Watch, rigs};

/// A step of the networks that follow points, about, on a machine of two cores.
const STEP_SECONDS: f64 = 0.025;
/// Poses of a test set, where a rig has no clip for it.
const TEST_POSES: u64 = 100;

/// What a page can ask for. Files are named inside the project.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "job", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Order {
    /// Sample a rig, or take a dataset; learn a twin; weigh it on poses that it has not seen.
    Learn {
        rig: String,
        data: Option<String>,
        method: String,
        poses: u64,
        minutes: f64,
        /// Whether it shall follow points that are dragged, too.
        #[serde(default)]
        follow: bool,
    },
    /// Teach a twin to follow points that are dragged, with the poses that it was learned from where they are still there;
    /// without a twin a small one is learned first.
    Follow { rig: String, twin: Option<String>, poses: u64, minutes: f64 },
    /// Record a dataset.
    Sample { rig: String, poses: u64 },
    /// Weigh a twin on a clip.
    Eval { twin: String, rig: String, clip: String },
    /// Latent spaces of a rig's own clips.
    Motion { rig: String },
    /// Weights from meshes, as the command `invert` writes them.
    Invert { rig: String, targets: Vec<String>, alpha: Option<f64>, smooth: Option<f64> },
    /// Skinning weights for handles that were placed on the mesh, as the command `weights` writes them.
    Weights {
        rig: String,
        handles: HandleFile,
        #[serde(default)]
        examples: Vec<String>,
        #[serde(default)]
        kind: WeightKind,
        #[serde(default)]
        domain: DomainKind,
        max_influences: Option<usize>,
    },
}

/// What a job does; the result is what the page is told.
pub(crate) type Work = Box<dyn Fn(&Project, &dyn Watch) -> Result<Value, JobError> + Send>;

/// An order whose names were resolved, ready to run.
pub(crate) struct Plan {
    /// The command's name.
    pub job: &'static str,
    /// For people.
    pub title: String,
    /// What to do.
    pub work: Work,
    /// The name that it writes to, its own until it ends.
    pub given: Given,
}

fn plan(
    job: &'static str,
    title: String,
    given: Given,
    work: impl Fn(&Project, &dyn Watch) -> Result<Value, JobError> + Send + 'static,
) -> Plan {
    Plan { job, title, work: Box::new(work), given }
}

fn poses_fit(poses: u64) -> Result<u64, Refusal> {
    match (1..=1_000_000).contains(&poses) {
        true => Ok(poses),
        false => Err(Refusal::bad(format!("{poses} poses; 1 to 1,000,000 are possible"))),
    }
}

fn minutes_fit(minutes: f64) -> Result<f64, Refusal> {
    match minutes.is_finite() && minutes > 0.0 && minutes <= 10_000.0 {
        true => Ok(minutes),
        false => Err(Refusal::bad(format!("{minutes} minutes; more than 0 is wanted"))),
    }
}

fn kind_of(name: &str) -> Result<Learning, Refusal> {
    let known = Learning::all().into_iter().find(|learning| learning.name() == name);
    known.ok_or_else(|| Refusal::bad(format!("there is no kind of twin '{name}'")))
}

fn merge(told: &mut Value, more: Value) {
    if let (Value::Object(told), Value::Object(more)) = (told, more) {
        told.extend(more);
    }
}

impl Order {
    /// Resolves every name, so that nothing outside the project is touched.
    pub fn plan(self, project: &Project) -> Result<Plan, Refusal> {
        Ok(match self {
            Order::Learn { rig, data, method, poses, minutes, follow } => {
                let learning = match method.as_str() {
                    "auto" => None,
                    name => Some(kind_of(name)?),
                };
                let (twin, given) = project.fresh(&format!("{}-{method}", short(&rig)), "twin")?;
                let order = Lesson {
                    data: data.map(|name| project.resolve(&name)).transpose()?,
                    twin,
                    rig: project.rig(&rig)?,
                    poses: poses_fit(poses)?,
                    minutes: minutes_fit(minutes)?,
                };
                let title = format!("{method} twin of {}", short(&rig));
                plan("learn", title, given, move |project, watch| {
                    let mut told = match &learning {
                        None => order.auto(project, watch),
                        Some(learning) => order.kind(learning, project, watch),
                    }?;
                    if follow {
                        match order.follow(&order.twin, watch) {
                            Ok(figures) => merge(&mut told, figures),
                            Err(JobError::Stopped) => return Err(JobError::Stopped),
                            // The twin itself is there and as good as ever.
                            Err(error) => {
                                let message = format!("it follows no points: {error}");
                                watch.event(Event::Warning { message: &message });
                            }
                        }
                    }
                    Ok(told)
                })
            }
            Order::Follow { rig, twin, poses, minutes } => {
                let known = twin.map(|name| project.resolve(&name)).transpose()?;
                let beside = known.as_ref().map(|twin| twin.with_extension("data"));
                let (twin, given) = project.fresh(&format!("{}-follows", short(&rig)), "twin")?;
                let order = Lesson {
                    data: beside.filter(|data| data.is_dir()),
                    twin,
                    rig: project.rig(&rig)?,
                    poses: poses_fit(poses)?,
                    minutes: minutes_fit(minutes)?,
                };
                let learning = kind_of("skin")?;
                plan("follow", format!("points of {}", short(&rig)), given, move |project, watch| {
                    let mut told = match &known {
                        Some(_) => json!({ "rig": project.name_of(Path::new(&order.rig)) }),
                        None => order.kind(&learning, project, watch)?,
                    };
                    merge(&mut told, order.follow(known.as_ref().unwrap_or(&order.twin), watch)?);
                    told["twin"] = json!(project.name_of(&order.twin));
                    Ok(told)
                })
            }
            Order::Sample { rig, poses } => {
                let (output, given) = project.fresh(&short(&rig), "data")?;
                let (opened, poses) = (project.rig(&rig)?, poses_fit(poses)?);
                plan("sample", format!("poses of {}", short(&rig)), given, move |project, watch| {
                    let data = record(&opened, poses, 1, &output, None, watch)?;
                    Ok(json!({ "data": project.name_of(&data) }))
                })
            }
            Order::Eval { twin, rig, clip } => {
                let title = format!("{} on {}", short(&twin), short(&clip));
                let (report, given) =
                    project.fresh(&format!("{}-{}", short(&twin), short(&clip)), "report")?;
                let config = EvalConfig {
                    twin: project.resolve(&twin)?,
                    rig: Some(project.rig(&rig)?),
                    clips: vec![project.clip(&clip)?],
                    report: Some(report),
                    ..EvalConfig::default()
                };
                plan("eval", title, given, move |project, watch| {
                    let weighed = eval(&config, watch)?;
                    let own = &weighed.methods[&weighed.order[0]];
                    Ok(json!({
                        "page": weighed.page.map(|page| project.name_of(&page)),
                        "test_mm": own.mean_mm, "test_max_mm": own.max_mm, "ms": own.ms,
                        "original_ms": weighed.original_ms,
                    }))
                })
            }
            Order::Motion { rig } => {
                let (output, given) = project.fresh(&short(&rig), "motion")?;
                let config =
                    LearnMotionConfig { rig: project.rig(&rig)?, output, ..LearnMotionConfig::default() };
                plan("motion", format!("motion of {}", short(&rig)), given, move |project, watch| {
                    let report = learn_motion(&config, watch)?;
                    let labels: Vec<&str> = report.labels.iter().map(|label| label.label.as_str()).collect();
                    Ok(json!({
                        "file": project.name_of(&report.output), "motion": project.name_of(&report.output),
                        "labels": labels, "bytes": report.bytes,
                    }))
                })
            }
            Order::Invert { rig, targets, alpha, smooth } => {
                let (output, given) = project.fresh(&format!("{}-weights", short(&rig)), "csv")?;
                let mut config = InvertConfig {
                    rig: project.rig(&rig)?,
                    output,
                    targets: targets.iter().map(|name| project.resolve(name)).collect::<Result<_, _>>()?,
                    settings: settings(alpha),
                    ..InvertConfig::default()
                };
                config.take.smooth = smooth.unwrap_or(0.0);
                plan("invert", format!("weights of {}", short(&rig)), given, move |project, watch| {
                    let report = invert(&config, watch)?;
                    Ok(json!({
                        "file": project.name_of(&report.file), "frames": report.frames,
                        "rmse_mm": report.metrics.rmse_cm * 10.0, "max_mm": report.metrics.max_cm * 10.0,
                        "ms_per_frame": report.solve_ms_per_frame,
                    }))
                })
            }
            Order::Weights { rig, handles, examples, kind, domain, max_influences } => {
                let (output, given) = project.fresh(&format!("{}-skinned", short(&rig)), "glb")?;
                let config = WeightsConfig {
                    mesh: project.rig(&rig)?,
                    handles: output.with_extension("handles.toml"),
                    examples: examples.iter().map(|name| project.resolve(name)).collect::<Result<_, _>>()?,
                    npz: Some(output.with_extension("npz")),
                    output,
                    settings: WeightSettings { kind, domain, max_influences, ..WeightSettings::default() },
                    ..WeightsConfig::default()
                };
                plan("weights", format!("skin of {}", short(&rig)), given, move |project, watch| {
                    // The file is what the command takes, too.
                    handles::write(&config.handles, &handles)?;
                    let report = weights(&config, watch)?;
                    Ok(json!({
                        "file": project.name_of(&report.output), "rig": project.name_of(Path::new(&config.mesh)),
                        "arrays": config.npz.as_deref().map(|path| project.name_of(path)),
                        "handle_file": project.name_of(&config.handles),
                        "handles": report.handles, "influences": report.influences,
                        "near_zero_share": report.near_zero_share, "notes": report.notes,
                        "seconds": report.seconds + report.examples.as_ref().map_or(0.0, |e| e.seconds),
                        "rmse_mm": report.examples.as_ref().map(|e| e.rmse_cm * 10.0),
                        "examples": report.examples.as_ref().map(|e| e.examples),
                    }))
                })
            }
        })
    }
}

/// A twin that is to be learned.
struct Lesson {
    rig: String,
    data: Option<PathBuf>,
    poses: u64,
    minutes: f64,
    twin: PathBuf,
}

impl Lesson {
    fn auto(&self, project: &Project, watch: &dyn Watch) -> Result<Value, JobError> {
        let config = AutoConfig {
            rig: Some(self.rig.clone()),
            data: self.data.clone(),
            output: self.twin.clone(),
            poses: self.poses,
            trial_minutes: (self.minutes / 8.0).min(1.0),
            minutes: self.minutes,
            trial_poses: (self.poses as usize).min(AutoConfig::default().trial_poses),
            report: Some(self.twin.with_extension("report")),
            ..AutoConfig::default()
        };
        let report = learn_auto(&config, watch)?;
        Ok(json!({
            "twin": project.name_of(&self.twin), "kind": report.learned.kind,
            "rig": project.name_of(Path::new(&self.rig)),
            "page": report.page.map(|page| project.name_of(&page)), "why": report.why,
            "held_back_mm": report.learned.held_back.mean_mm, "ms": report.ms, "bytes": report.learned.bytes,
        }))
    }

    /// Teaches a twin to follow points; writes it to the lesson's own place.
    fn follow(&self, twin: &Path, watch: &dyn Watch) -> Result<Value, JobError> {
        let beside = self.twin.with_extension("data");
        let data = match &self.data {
            Some(data) => data.clone(),
            // The poses that the twin was learned from a moment ago.
            None if beside.is_dir() => beside,
            None => record(&self.rig, self.poses, 1, &beside, None, watch)?,
        };
        let mut config = LearnIkConfig::new(twin, data, &self.twin);
        // A step is some hundredths of a second.
        let steps = (self.minutes * 60.0 / STEP_SECONDS) as usize;
        config.settings.steps = steps.clamp(20, config.settings.steps);
        let report = learn_ik(&config, watch)?;
        Ok(json!({
            "kind": report.kind, "points": report.points,
            "network_mm": report.figures.network_mm, "hybrid_mm": report.figures.hybrid_mm,
        }))
    }

    fn kind(&self, learning: &Learning, project: &Project, watch: &dyn Watch) -> Result<Value, JobError> {
        let data = match &self.data {
            Some(data) => data.clone(),
            None => record(&self.rig, self.poses, 1, &self.twin.with_extension("data"), None, watch)?,
        };
        let learned = learn(
            &LearnConfig {
                rig: Some(self.rig.clone()),
                ..LearnConfig::new(data, self.twin.clone(), learning.limited(self.minutes))
            },
            watch,
        )?;
        let weighed = weigh(&self.rig, &self.twin, watch)?;
        let own = &weighed.methods[&weighed.order[0]];
        Ok(json!({
            "twin": project.name_of(&self.twin), "kind": learned.kind,
            "rig": project.name_of(Path::new(&self.rig)),
            "page": weighed.page.map(|page| project.name_of(&page)),
            "held_back_mm": learned.held_back.mean_mm, "test_mm": own.mean_mm, "test_max_mm": own.max_mm,
            "ms": own.ms, "original_ms": weighed.original_ms, "bytes": learned.bytes,
        }))
    }
}

/// Settings that are the command's own, but for α, a share of the shapes' mean energy.
pub(crate) fn settings(alpha: Option<f64>) -> InverseSettings {
    let usual = InverseSettings::default();
    InverseSettings { alpha: alpha.map_or(usual.alpha, Alpha::Share), ..usual }
}

/// Records random poses, or a clip.
fn record(
    rig: &str,
    poses: u64,
    seed: u64,
    output: &Path,
    method: Option<Method>,
    watch: &dyn Watch,
) -> Result<PathBuf, JobError> {
    let method = match method {
        Some(method) => method,
        None => method_for(rig, watch)?,
    };
    let config = SampleConfig {
        rig: rig.into(),
        output: output.into(),
        poses: Some(poses),
        method: Some(method),
        seed,
        ..SampleConfig::default()
    };
    sample(&config, watch)?;
    Ok(output.into())
}

/// Weighs a twin on the clip that its rig keeps for tests, or on other random poses where it has none.
fn weigh(
    rig: &str,
    twin: &Path,
    watch: &dyn Watch,
) -> Result<understudy_jobs::twin::eval::EvalReport, JobError> {
    let kept = rigs::open(rig, watch)?
        .rig
        .clips()
        .iter()
        .find(|clip| clip.is_for_test())
        .map(|clip| clip.name.clone());
    let test = match kept {
        Some(_) => Vec::new(),
        None => {
            let name = twin.with_extension("test.data");
            vec![record(rig, TEST_POSES, 2, &name, Some(Method::Sparse), watch)?]
        }
    };
    let config = EvalConfig {
        twin: twin.into(),
        rig: Some(rig.into()),
        clips: kept.into_iter().collect(),
        test,
        report: Some(twin.with_extension("report")),
        command: "understudy studio".into(),
        ..EvalConfig::default()
    };
    eval(&config, watch)
}

/// A file's name without folders and ending.
fn short(name: &str) -> String {
    let path = Path::new(name);
    path.file_stem().map_or_else(|| "rig".into(), |stem| stem.to_string_lossy().into_owned())
}
