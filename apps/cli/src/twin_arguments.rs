//! What can be typed for twins: `learn`, `eval`, `bench`, `export`.

use crate::arguments::parse_threads;
use crate::decompose_arguments::LearnLbsArguments;
use crate::face_arguments::{LearnFaceArguments, parse_against};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// What to learn.
#[derive(Debug, Subcommand)]
pub enum LearnCommand {
    /// A body: one small network per group of vertices on top of fitted skinning.
    #[command(after_help = "Examples:
  understudy learn body data/rook -o rook.twin
  understudy learn body data/rook -o rook.twin --target-mm 0.5

A run that was interrupted goes on where it stopped when the same command is given again.")]
    Body(LearnBodyArguments),
    /// A face: small networks evaluate maps of offsets in texture space.
    #[command(after_help = "Examples:
  understudy learn face data/mira -o mira.twin
  understudy learn face data/mira -o mira.twin --minutes 60
  understudy learn face data/mira -o dense.twin --dense
  understudy learn face data/more -o again.twin --from mira.twin --minutes 30

A run that was interrupted goes on where it stopped when the same command is given again.")]
    Face(LearnFaceArguments),
    /// A plain skin with bones of its own, from any animation of a mesh: a GLB for every engine.
    #[command(after_help = "Examples:
  understudy learn lbs data/mira -o mira.glb --bones 32
  understudy learn lbs cloth.npz -o cloth.glb --bones 20 --influences 8
  understudy learn lbs frames/*.obj -o hero.glb --rate 24

Method: docs/methods/skinning-decomposition.md")]
    Lbs(LearnLbsArguments),
}

/// The linear part of a body twin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BaseArgument {
    /// One bone per vertex.
    Rigid,
    /// Fitted linear blend skinning with two influences.
    Lbs2,
    /// With four.
    Lbs4,
    /// With eight.
    Lbs8,
}

/// Of `learn body`.
#[derive(Debug, Args)]
pub struct LearnBodyArguments {
    /// Folder of the dataset.
    pub data: PathBuf,
    /// The twin.
    #[arg(short, long, value_name = "FILE.twin")]
    pub output: PathBuf,
    /// The rig that the dataset was recorded from [default: where it was when the dataset was recorded].
    #[arg(long, value_name = "RIG")]
    pub rig: Option<String>,
    /// Learn by the recipe of the paper: for comparison; larger and less accurate than the default.
    #[arg(long, conflicts_with_all = ["base", "target_mm"])]
    pub paper: bool,
    /// The linear part.
    #[arg(long, value_enum, default_value = "lbs4")]
    pub base: BaseArgument,
    /// Take the narrowest networks that reach this error on held-back poses.
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    pub target_mm: Option<f64>,
    /// Passes over the poses.
    #[arg(long, value_name = "N")]
    pub epochs: Option<usize>,
    /// Poses a training step.
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// First learning rate.
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub rate: Option<f32>,
    /// Same seed, same twin.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Keep weights in 32 bits instead of 16.
    #[arg(long)]
    pub full_precision: bool,
    /// Threads [default: all]; the twin does not depend on it.
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_threads)]
    pub threads: Option<usize>,
}

/// Of `eval`.
#[derive(Debug, Args)]
pub struct EvalArguments {
    /// The twin.
    pub twin: PathBuf,
    /// Datasets of poses that it was not trained on.
    #[arg(required = true)]
    pub test: Vec<PathBuf>,
    /// The dataset that it was trained on: the baselines are fitted to it and compared too.
    #[arg(long, value_name = "DIR")]
    pub train: Option<PathBuf>,
    /// Baselines to fit: names with commas between, or all. Bodies: rigid, lbs4, lbs_all, rr2, rr15, wpsd10, wpsd50,
    /// wpsd100 [default: rigid, lbs4, rr2, wpsd10]; faces: lbs and a number of bones [default: lbs32]. Fits are kept
    /// beside the training set.
    #[arg(long, alias = "baseline", value_name = "all|NAMES", value_delimiter = ',', requires = "train")]
    pub baselines: Vec<String>,
    /// Compare another face twin of the same mesh, under this name; can be given again.
    #[arg(long, value_name = "NAME=FILE.twin", value_parser = parse_against)]
    pub against: Vec<(String, PathBuf)>,
    /// Write a page with tables, histogram and heat maps into this folder.
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Threads for fitting [default: all].
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_threads)]
    pub threads: Option<usize>,
}

/// Of `bench`.
#[derive(Debug, Args)]
pub struct BenchTwinArguments {
    /// The twin.
    pub twin: PathBuf,
    /// Race onnxruntime and PyTorch too, from a Python environment in this folder (made when missing).
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "target/peers")]
    pub peers: Option<PathBuf>,
    /// Race training too, beside PyTorch.
    #[arg(long)]
    pub training: bool,
    /// Rounds of the race.
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub rounds: usize,
}

/// Of `export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// The twin.
    pub twin: PathBuf,
    /// Write the whole twin, skinning included, as an ONNX graph.
    #[arg(long, value_name = "FILE.onnx", required_unless_present = "glb")]
    pub onnx: Option<PathBuf>,
    /// Write linear blend skinning with four bones per vertex as a plain GLB, for engines that run no code.
    #[arg(long, value_name = "FILE.glb")]
    pub glb: Option<PathBuf>,
    /// A clip of the rig, or a dataset that was recorded from one; can be given again [default: every clip
    /// of the rig].
    #[arg(long = "clip", value_name = "NAME|DIR", requires = "glb")]
    pub clips: Vec<String>,
    /// The dataset that the skin is fitted to [default: the twin's own skin, or random poses of its rig].
    #[arg(long, value_name = "DIR", requires = "glb")]
    pub train: Option<PathBuf>,
    /// Frames per second at which the rig's clips are read [default: each clip's own, or 30].
    #[arg(long, value_name = "FPS", requires = "glb", allow_negative_numbers = true)]
    pub rate: Option<f32>,
    /// Threads for fitting [default: all].
    #[arg(long, value_name = "T", requires = "glb", allow_negative_numbers = true, value_parser = parse_threads)]
    pub threads: Option<usize>,
}
