//! What can be typed for `learn`: what every kind of twin shares, and what each has of its own.

use crate::arguments::parse_threads;
use crate::decompose_arguments::LearnLbsArguments;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use understudy_jobs::twin::Learning;
use understudy_jobs::twin::auto::{AutoConfig, Limits};
use understudy_jobs::twin::body::{Base, BodyLearning};
use understudy_jobs::twin::diff::{Coordinates, DiffLearning, SkinSource};
use understudy_jobs::twin::face::FaceLearning;
use understudy_jobs::twin::ik::{IkSettings, LearnIkConfig};
use understudy_jobs::twin::mechanism::MechanismChoice;
use understudy_jobs::twin::skin::SkinLearning;

/// What to learn.
#[derive(Debug, Subcommand)]
pub enum LearnCommand {
    /// Whatever suits: tries every kind that fits the data, and learns the best for your limits.
    #[command(after_help = "Examples:
  understudy learn auto data/mira -o mira.twin --report which
  understudy learn auto data/rook -o rook.twin --budget-ms 0.5 --budget-mb 5
  understudy learn auto --rig hero.glb -o hero.twin --poses 4000 --active --target-mm 0.5

A run that was interrupted goes on where it stopped when the same command is given again.
Guide: docs/guides/which-twin.md")]
    Auto(LearnAutoArguments),
    /// A body: one small network per group of vertices on top of fitted skinning.
    #[command(after_help = "Examples:
  understudy learn body data/rook -o rook.twin
  understudy learn body data/rook -o rook.twin --target-mm 0.5

A run that was interrupted goes on where it stopped when the same command is given again.")]
    Body(LearnBodyArguments),
    /// Any mesh, with or without bones: one network in Laplacian coordinates, held in place by anchors.
    #[command(after_help = "Examples:
  understudy learn diff data/mira -o mira.twin
  understudy learn diff data/mira -o mira.twin --steps 20000 --anchors lips-and-lids.txt
  understudy learn diff data/rook -o rook.twin --skin fit --components-mm 0.05

A run that was interrupted goes on where it stopped when the same command is given again.
Method: docs/methods/differential-twin.md")]
    Diff(LearnDiffArguments),
    /// A face: small networks evaluate maps of offsets in texture space.
    #[command(after_help = "Examples:
  understudy learn face data/mira -o mira.twin
  understudy learn face data/mira -o mira.twin --minutes 60
  understudy learn face data/mira -o dense.twin --dense
  understudy learn face data/more -o again.twin --from mira.twin --minutes 30

A run that was interrupted goes on where it stopped when the same command is given again.")]
    Face(LearnFaceArguments),
    /// A skin with bones of its own that a small network moves: the fastest twin, on any mesh.
    #[command(after_help = "Examples:
  understudy learn skin data/mira -o mira.twin
  understudy learn skin data/mira -o mira.twin --bones 40 --influences 4
  understudy export mira.twin --glb mira.glb --onnx mira-bones.onnx

Method: docs/methods/skin-twin.md")]
    Skin(LearnSkinArguments),
    /// A plain skin with bones of its own, from any animation of a mesh: a GLB for every engine.
    #[command(after_help = "Examples:
  understudy learn lbs data/mira -o mira.glb --bones 32
  understudy learn lbs cloth.npz -o cloth.glb --bones 20 --influences 8
  understudy learn lbs frames/*.obj -o hero.glb --rate 24

Method: docs/methods/skinning-decomposition.md")]
    Lbs(LearnLbsArguments),
    /// Teaches a twin to follow points that are dragged: a network poses it, through the twin's own derivatives.
    #[command(after_help = "Examples:
  understudy learn ik mira.twin data/mira -o mira.twin
  understudy learn ik hero.twin data/hero --points points.toml --dimensions 2 -o hero-ik.twin

A file of points:
  [[point]]
  name = \"mouth_corner_L\"
  vertex = 1204
  region = \"mouth\"

Method: docs/methods/inverse-kinematics.md")]
    Ik(LearnIkArguments),
    /// Nets that see the points of a face in a picture, taught on people drawn by code: for `capture --landmarks`.
    #[command(after_help = "Examples:
  understudy learn landmarks -o face.landmarks
  understudy learn landmarks -o face.landmarks --minutes 60 --seed 2
  understudy capture --actor synthetic:7 mira --landmarks face.landmarks -o take.csv

A run that was interrupted goes on where it stopped when the same command is given again.
Method: docs/methods/landmark-nets.md")]
    Landmarks(LearnLandmarksArguments),
}

impl LearnCommand {
    /// How to learn a twin, and what all kinds share; the arguments themselves where it is no kind of twin.
    pub fn learning(self) -> Result<(Learning, SharedArguments), Other> {
        match self {
            Self::Auto(arguments) => Err(Other::Auto(Box::new(arguments))),
            Self::Body(arguments) => Ok((arguments.learning(), arguments.shared)),
            Self::Diff(arguments) => Ok((arguments.learning(), arguments.shared)),
            Self::Face(arguments) => Ok((arguments.learning(), arguments.shared)),
            Self::Skin(arguments) => Ok((arguments.learning(), arguments.shared)),
            Self::Lbs(arguments) => Err(Other::Lbs(Box::new(arguments))),
            Self::Ik(arguments) => Err(Other::Ik(Box::new(arguments))),
            Self::Landmarks(arguments) => Err(Other::Landmarks(arguments)),
        }
    }
}

/// What else is learned.
pub enum Other {
    /// The kind is found out.
    Auto(Box<LearnAutoArguments>),
    /// A plain skin.
    Lbs(Box<LearnLbsArguments>),
    /// A section of a twin.
    Ik(Box<LearnIkArguments>),
    /// Nets for faces.
    Landmarks(LearnLandmarksArguments),
}

/// Of `learn landmarks`.
#[derive(Debug, Args)]
pub struct LearnLandmarksArguments {
    /// The nets.
    #[arg(short, long, value_name = "FILE.landmarks")]
    pub output: PathBuf,
    /// How long two cores may work; people, pictures and steps follow from it, so that the nets do not depend on the machine.
    #[arg(long, value_name = "M", default_value_t = 20.0, allow_negative_numbers = true)]
    pub minutes: f32,
    /// Same seed, same nets.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
}

/// Of `learn ik`.
#[derive(Debug, Args)]
pub struct LearnIkArguments {
    /// The twin: of a face, differential or skin, posed by controls.
    pub twin: PathBuf,
    /// Folder of the dataset that it was learned from, or another of its rig.
    pub data: PathBuf,
    /// The twin with what it has learned; may be the same file.
    #[arg(short, long, value_name = "FILE.twin")]
    pub output: PathBuf,
    /// A file of points: names, vertices and regions [default: 54 points of mira and ict].
    #[arg(long, value_name = "FILE.toml")]
    pub points: Option<PathBuf>,
    /// 3: points are dragged in space; 2: on a screen, seen along z.
    #[arg(long, value_name = "2|3", default_value_t = 3, allow_negative_numbers = true)]
    pub dimensions: usize,
    /// Steps of training.
    #[arg(long, value_name = "N", default_value_t = IkSettings::default().steps)]
    pub steps: usize,
    /// Most poses that are read.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub poses: usize,
    /// How far points are moved at random, mm, so that targets out of reach are no surprise.
    #[arg(long, value_name = "MM", default_value_t = 4.5, allow_negative_numbers = true)]
    pub noise_mm: f32,
    /// What a control costs that goes through its whole range, mm.
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    pub regularisation_mm: Option<f32>,
    /// The paper's way where it differs: every sample is noisy, eight poses per step.
    #[arg(long)]
    pub paper: bool,
    /// Same seed, same networks.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Keep weights in 32 bits instead of 16.
    #[arg(long)]
    pub full_precision: bool,
    /// Threads [default: all]; the networks do not depend on it.
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_threads)]
    pub threads: Option<usize>,
}

impl LearnIkArguments {
    /// The job's configuration.
    pub fn config(self) -> LearnIkConfig {
        let usual = LearnIkConfig::new(self.twin, self.data, self.output);
        let base = if self.paper { IkSettings::paper() } else { IkSettings::default() };
        let settings = IkSettings {
            dimensions: self.dimensions,
            steps: self.steps,
            noise_cm: 0.1 * self.noise_mm,
            regularisation: self.regularisation_mm.map_or(base.regularisation, |mm| 0.1 * mm),
            seed: self.seed,
            ..base
        };
        let threads = self.threads.unwrap_or(usual.threads);
        LearnIkConfig {
            points: self.points,
            settings,
            half: !self.full_precision,
            poses: self.poses,
            threads,
            ..usual
        }
    }
}

/// Of `learn auto`.
#[derive(Debug, Args)]
pub struct LearnAutoArguments {
    /// Folder of the dataset; without one the rig is sampled first, into a folder beside the twin.
    #[arg(required_unless_present = "rig")]
    pub data: Option<PathBuf>,
    /// The twin.
    #[arg(short, long, value_name = "FILE.twin")]
    pub output: PathBuf,
    /// The rig to sample, or the one that the dataset was recorded from.
    #[arg(long, value_name = "RIG")]
    pub rig: Option<String>,
    /// Poses to sample.
    #[arg(long, value_name = "N", default_value_t = 4000, conflicts_with = "data")]
    pub poses: u64,
    /// Sample where small models disagree most, in rounds.
    #[arg(long, requires = "rig", conflicts_with = "data")]
    pub active: bool,
    /// Mean error that is good enough: the fastest twin that reaches it is taken.
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    pub target_mm: Option<f64>,
    /// Most milliseconds per pose, on one thread of this machine.
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    pub budget_ms: Option<f64>,
    /// Most megabytes of the twin's file.
    #[arg(long, value_name = "MB", allow_negative_numbers = true)]
    pub budget_mb: Option<f64>,
    /// Poses of the dataset that trials train on and are measured by.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub trial_poses: usize,
    /// About how long each trial may train, on two cores.
    #[arg(long, value_name = "MIN", default_value_t = 1.0, allow_negative_numbers = true)]
    pub trial_minutes: f64,
    /// About how long the chosen twin may train, on two cores; most kinds need less.
    #[arg(long, value_name = "MIN", default_value_t = 20.0, allow_negative_numbers = true)]
    pub minutes: f64,
    /// Write a page with error against time and size into this folder.
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Keep weights in 32 bits instead of 16.
    #[arg(long)]
    pub full_precision: bool,
    /// Same seed, same poses.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Threads [default: all].
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_threads)]
    pub threads: Option<usize>,
}

impl LearnAutoArguments {
    /// The job's configuration.
    pub fn config(self, command: String) -> AutoConfig {
        let (usual, limits) = (
            AutoConfig::default(),
            Limits { target_mm: self.target_mm, budget_ms: self.budget_ms, budget_mb: self.budget_mb },
        );
        AutoConfig {
            data: self.data,
            rig: self.rig,
            output: self.output,
            poses: self.poses,
            active: self.active,
            limits,
            trial_poses: self.trial_poses,
            trial_minutes: self.trial_minutes,
            minutes: self.minutes,
            report: self.report,
            half: !self.full_precision,
            threads: self.threads.unwrap_or(usual.threads),
            seed: self.seed,
            command,
        }
    }
}

/// Of every kind of twin.
#[derive(Debug, Args)]
pub struct SharedArguments {
    /// Folder of the dataset.
    pub data: PathBuf,
    /// The twin.
    #[arg(short, long, value_name = "FILE.twin")]
    pub output: PathBuf,
    /// The rig that the dataset was recorded from [default: where it was when the dataset was recorded].
    #[arg(long, value_name = "RIG")]
    pub rig: Option<String>,
    /// Learn by the recipe of the paper, for comparison: slower, larger and less accurate than the default.
    #[arg(long)]
    pub paper: bool,
    /// Poses a training step.
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// First learning rate.
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub rate: Option<f32>,
    /// Same seed (and numbers of steps, where time is limited), same twin.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Keep weights in 32 bits instead of 16.
    #[arg(long)]
    pub full_precision: bool,
    /// What poses a twin with bones by controls alone: the rig's own joints and constraints where it shows them, else what
    /// is learned from the poses; none leaves it out.
    #[arg(long, value_name = "auto|learned|none", default_value = "auto")]
    pub mechanism: MechanismChoice,
    /// Clips that these options were chosen by, with commas between: of those that are kept for tests `eval` then refuses to
    /// show figures.
    #[arg(long, value_name = "CLIPS", value_delimiter = ',')]
    pub chosen_on: Vec<String>,
    /// Threads [default: all]; the twin does not depend on it.
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_threads)]
    pub threads: Option<usize>,
}

/// Of `learn body`.
#[derive(Debug, Args)]
pub struct LearnBodyArguments {
    #[command(flatten)]
    pub shared: SharedArguments,
    /// The linear part beneath the networks: rigid (one bone per vertex), or fitted linear blend skinning with two,
    /// four or eight influences.
    #[arg(long, value_name = "rigid|lbs2|lbs4|lbs8", default_value = "lbs4", conflicts_with = "paper")]
    pub base: Base,
    /// Take the narrowest networks that reach this error on held-back poses.
    #[arg(long, value_name = "MM", allow_negative_numbers = true, conflicts_with = "paper")]
    pub target_mm: Option<f64>,
    /// Passes over the poses.
    #[arg(long, value_name = "N")]
    pub epochs: Option<usize>,
    /// About how many minutes training may take on two cores with a thousand poses, sizes staying as they are [default: no
    /// limit].
    #[arg(long, value_name = "M", allow_negative_numbers = true, value_parser = parse_minutes, conflicts_with = "epochs")]
    pub minutes: Option<f64>,
}

/// Learning with at most about so many minutes of training.
fn limited(learning: Learning, minutes: Option<f64>) -> Learning {
    match minutes {
        Some(minutes) => learning.limited(minutes),
        None => learning,
    }
}

fn parse_minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse::<f64>().ok().filter(|minutes| minutes.is_finite() && *minutes > 0.0);
    minutes.ok_or_else(|| "more than 0 minutes are wanted".into())
}

impl LearnBodyArguments {
    /// How to learn.
    fn learning(&self) -> Learning {
        let mut body = match self.shared.paper {
            true => BodyLearning::paper(),
            false => BodyLearning { base: self.base, target_mm: self.target_mm, ..BodyLearning::default() },
        };
        let train = &mut body.settings.train;
        train.seed = self.shared.seed;
        train.epochs = self.epochs.unwrap_or(train.epochs);
        train.batch = self.shared.batch.unwrap_or(train.batch);
        train.rate = self.shared.rate.unwrap_or(train.rate);
        limited(Learning::Body(body), self.minutes)
    }
}

/// Of `learn diff`.
#[derive(Debug, Args)]
pub struct LearnDiffArguments {
    #[command(flatten)]
    pub shared: SharedArguments,
    /// Where skinning beneath the networks comes from: the rig's own skin, probing of its rest vertices, a fit to the
    /// poses, none, or the first of these that the rig allows.
    #[arg(long, value_name = "auto|rig|probe|fit|none", default_value = "auto")]
    pub skin: SkinSource,
    /// What the deep network learns: differences to neighbours of equal or of cotangent weights, or, for comparison,
    /// offsets of the vertices themselves, without anchors.
    #[arg(long, value_name = "uniform|cotangent|local", default_value = "uniform")]
    pub coordinates: Coordinates,
    /// Principal components of the differential coordinates, per cent of the number of vertices [default: 5].
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, conflicts_with = "components_mm")]
    pub components: Option<f64>,
    /// Instead: the fewest components that leave this mean error of a differential coordinate.
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    pub components_mm: Option<f64>,
    /// A text file of vertex numbers (the first vertex is 0) that are the anchors. Islands without one get one
    /// [default: chosen by motion and spread, 2 % of the vertices].
    #[arg(long, value_name = "FILE")]
    pub anchors: Option<PathBuf>,
    /// How many anchors are chosen, per cent of the number of vertices [default: 2].
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, conflicts_with = "anchors")]
    pub anchor_share: Option<f64>,
    /// How strongly anchors hold the mesh [default: the best of several on held-back poses].
    #[arg(long, value_name = "W", allow_negative_numbers = true)]
    pub anchor_weight: Option<f64>,
    /// Steps of the differential network.
    #[arg(long, value_name = "N", conflicts_with = "epochs")]
    pub steps: Option<usize>,
    /// Steps of the mini-network of every anchor.
    #[arg(long, value_name = "N", conflicts_with = "epochs")]
    pub anchor_steps: Option<usize>,
    /// Passes over the poses, in place of numbers of steps.
    #[arg(long, value_name = "N")]
    pub epochs: Option<usize>,
    /// About how many minutes training may take on two cores with a thousand poses, sizes staying as they are [default: no
    /// limit].
    #[arg(long, value_name = "M", allow_negative_numbers = true, value_parser = parse_minutes, conflicts_with_all = ["epochs", "steps", "anchor_steps"])]
    pub minutes: Option<f64>,
}

impl LearnDiffArguments {
    /// How to learn.
    fn learning(&self) -> Learning {
        let shared = &self.shared;
        let mut diff = if shared.paper { DiffLearning::paper() } else { DiffLearning::default() };
        diff.anchors.clone_from(&self.anchors);
        let settings = &mut diff.settings;
        settings.skin = self.skin;
        settings.coordinates = self.coordinates;
        settings.components_percent = self.components.unwrap_or(settings.components_percent);
        settings.components_mm = self.components_mm;
        settings.anchors_percent = self.anchor_share.unwrap_or(settings.anchors_percent);
        settings.anchor_weight = self.anchor_weight.or(settings.anchor_weight);
        settings.batch = shared.batch.unwrap_or(settings.batch);
        settings.rate = shared.rate.unwrap_or(settings.rate);
        settings.seed = shared.seed;
        if self.steps.is_some() || self.anchor_steps.is_some() {
            settings.epochs = None;
        }
        settings.steps = self.steps.unwrap_or(settings.steps);
        settings.anchor_steps = self.anchor_steps.unwrap_or(settings.anchor_steps);
        settings.epochs = self.epochs.or(settings.epochs);
        limited(Learning::Diff(diff), self.minutes)
    }
}

/// Of `learn face`.
#[derive(Debug, Args)]
pub struct LearnFaceArguments {
    #[command(flatten)]
    pub shared: SharedArguments,
    /// Keep the coarse networks, the head's motion and the bodies of this twin and learn only what refines them.
    #[arg(long, value_name = "FILE.twin", conflicts_with_all = ["dense", "coarse_only", "coarse_steps", "normal_weight", "paper"])]
    pub from: Option<PathBuf>,
    /// How long learning may take, minutes; it ends sooner when nothing is gained any more. More time buys more
    /// accuracy [default: 20; no limit where numbers of steps are given, or --paper].
    #[arg(long, value_name = "M", allow_negative_numbers = true)]
    pub minutes: Option<f64>,
    /// Most steps of the coarse networks, over all learning rates: with numbers of steps in place of minutes the same
    /// seed gives the same twin on every machine.
    #[arg(long, value_name = "N", conflicts_with = "minutes")]
    pub coarse_steps: Option<usize>,
    /// Most steps of the refinement networks, over all learning rates.
    #[arg(long, value_name = "N", conflicts_with = "minutes")]
    pub refinement_steps: Option<usize>,
    /// How much wrong normals count beside wrong positions.
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    pub normal_weight: Option<f32>,
    /// The same while regions are refined.
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    pub refinement_normal_weight: Option<f32>,
    /// Dense networks of 2 × 256 per segment instead of maps: the paper's baseline.
    #[arg(long, conflicts_with_all = ["coarse_only", "refinement_steps", "refinement_normal_weight", "regions", "normals", "paper"])]
    pub dense: bool,
    /// No refinement networks.
    #[arg(long, conflicts_with_all = ["refinement_steps", "refinement_normal_weight", "regions"])]
    pub coarse_only: bool,
    /// Most regions that are refined.
    #[arg(long, value_name = "N")]
    pub regions: Option<usize>,
    /// Let maps hold normals as well: an engine then needs no faces to shade.
    #[arg(long, conflicts_with = "paper")]
    pub normals: bool,
}

/// How long `learn face` may take by itself: enough for a good twin on two cores.
const FACE_MINUTES: f64 = 20.0;

impl LearnFaceArguments {
    /// How to learn.
    fn learning(&self) -> Learning {
        let shared = &self.shared;
        let mut face = if shared.paper { FaceLearning::paper() } else { FaceLearning::default() };
        let by_steps = self.coarse_steps.is_some() || self.refinement_steps.is_some();
        face.from.clone_from(&self.from);
        // The paper's rates run until they stop improving.
        face.minutes = self.minutes.or((!by_steps && !shared.paper).then_some(FACE_MINUTES));
        let settings = &mut face.settings;
        settings.seed = shared.seed;
        settings.dense = self.dense;
        settings.refine = !self.coarse_only;
        settings.normals = self.normals;
        settings.batch = shared.batch.unwrap_or(settings.batch);
        settings.normal_weight = self.normal_weight.unwrap_or(settings.normal_weight);
        settings.refinement_normal_weight =
            self.refinement_normal_weight.unwrap_or(settings.refinement_normal_weight);
        settings.most_regions = self.regions.unwrap_or(settings.most_regions);
        if let Some(rate) = shared.rate {
            for schedule in [&mut settings.coarse, &mut settings.refinement] {
                schedule.rates = [1.0, 0.1, 0.01].map(|share| rate * share).to_vec();
            }
        }
        for (steps, schedule) in
            [(self.coarse_steps, &mut settings.coarse), (self.refinement_steps, &mut settings.refinement)]
        {
            if let Some(steps) = steps {
                *schedule = schedule.clone().with_total(steps);
            }
        }
        Learning::Face(face)
    }
}

/// Of `learn skin`.
#[derive(Debug, Args)]
pub struct LearnSkinArguments {
    #[command(flatten)]
    pub shared: SharedArguments,
    /// Number of bones.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub bones: Option<usize>,
    /// Most bones per vertex, up to 8. Every engine plays four.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub influences: Option<usize>,
    /// Principal components of what the skin leaves, on top of it; a GLB cannot hold them [default: none, unless held-back
    /// poses show that bones are what limits the twin].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub components: Option<usize>,
    /// Widths of the hidden layers, with commas between.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub widths: Option<Vec<usize>>,
    /// Passes over the poses.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub epochs: Option<usize>,
    /// About how many minutes training may take on two cores with a thousand poses, sizes staying as they are [default: no
    /// limit].
    #[arg(long, value_name = "M", allow_negative_numbers = true, value_parser = parse_minutes, conflicts_with = "epochs")]
    pub minutes: Option<f64>,
}

impl LearnSkinArguments {
    /// How to learn.
    fn learning(&self) -> Learning {
        let mut skin = SkinLearning { paper: self.shared.paper, ..SkinLearning::default() };
        let settings = &mut skin.settings;
        settings.bones = self.bones.unwrap_or(settings.bones);
        settings.influences = self.influences.unwrap_or(settings.influences);
        settings.components = self.components.or(settings.components);
        settings.widths = self.widths.clone().unwrap_or_else(|| settings.widths.clone());
        let train = &mut settings.train;
        train.seed = self.shared.seed;
        train.epochs = self.epochs.unwrap_or(train.epochs);
        train.patience = train.epochs;
        train.batch = self.shared.batch.unwrap_or(train.batch);
        train.rate = self.shared.rate.unwrap_or(train.rate);
        limited(Learning::Skin(skin), self.minutes)
    }
}
