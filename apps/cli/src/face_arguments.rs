//! What can be typed for face twins beyond what all twins share: `learn face`, `transfer`.

use crate::arguments::parse_threads;
use clap::Args;
use std::path::PathBuf;

/// Of `learn face`.
#[derive(Debug, Args)]
pub struct LearnFaceArguments {
    /// Folder of the dataset.
    pub data: PathBuf,
    /// The twin.
    #[arg(short, long, value_name = "FILE.twin")]
    pub output: PathBuf,
    /// Keep the coarse networks, the head's motion and the bodies of this twin and learn only what refines them.
    #[arg(long, value_name = "FILE.twin", conflicts_with_all = ["dense", "coarse_only", "coarse_steps", "normal_weight"])]
    pub from: Option<PathBuf>,
    /// The rig that the dataset was recorded from [default: where it was when the dataset was recorded].
    #[arg(long, value_name = "RIG")]
    pub rig: Option<String>,
    /// How long learning may take, minutes; it ends sooner when nothing is gained any more. More time buys more
    /// accuracy [default: 20; no limit where numbers of steps are given].
    #[arg(long, value_name = "M", allow_negative_numbers = true)]
    pub minutes: Option<f64>,
    /// Most steps of the coarse networks, over all learning rates: with numbers of steps in place of minutes the same
    /// seed gives the same twin on every machine.
    #[arg(long, value_name = "N", conflicts_with = "minutes")]
    pub coarse_steps: Option<usize>,
    /// Most steps of the refinement networks, over all learning rates.
    #[arg(long, value_name = "N", conflicts_with = "minutes")]
    pub refinement_steps: Option<usize>,
    /// Poses a training step.
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// How much wrong normals count beside wrong positions.
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    pub normal_weight: Option<f32>,
    /// The same while regions are refined.
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    pub refinement_normal_weight: Option<f32>,
    /// The first learning rate; two follow, a tenth each.
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub rate: Option<f32>,
    /// Learn by the recipe of the paper: for comparison; less accurate than the default, and without --minutes each
    /// learning rate runs until it stops improving.
    #[arg(long, conflicts_with_all = ["from", "dense", "normals"])]
    pub paper: bool,
    /// Dense networks of 2 × 256 per segment instead of maps: the paper's baseline.
    #[arg(long, conflicts_with_all = ["coarse_only", "refinement_steps", "refinement_normal_weight", "regions", "normals"])]
    pub dense: bool,
    /// No refinement networks.
    #[arg(long, conflicts_with_all = ["refinement_steps", "refinement_normal_weight", "regions"])]
    pub coarse_only: bool,
    /// Most regions that are refined.
    #[arg(long, value_name = "N")]
    pub regions: Option<usize>,
    /// Let maps hold normals as well: an engine then needs no faces to shade.
    #[arg(long)]
    pub normals: bool,
    /// Same seed and numbers of steps, same twin.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Keep weights in 32 bits instead of 16.
    #[arg(long)]
    pub full_precision: bool,
    /// Threads [default: all]; the twin does not depend on it.
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_threads)]
    pub threads: Option<usize>,
}

/// Of `transfer`.
#[derive(Debug, Args)]
pub struct TransferArguments {
    /// The face twin.
    pub twin: PathBuf,
    /// A mesh whose texture coordinates agree with those of the twin's own mesh.
    #[arg(value_name = "MESH.obj")]
    pub mesh: PathBuf,
    /// The twin of that mesh.
    #[arg(short, long, value_name = "FILE.twin")]
    pub output: PathBuf,
    /// Measure the error on both meshes on this dataset of the old one; can be given again.
    #[arg(long, value_name = "DIR")]
    pub check: Vec<PathBuf>,
}

/// `NAME=FILE` of `eval --against`.
pub fn parse_against(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.into(), file.into())),
        _ => Err("NAME=FILE.twin is wanted, such as dense=dense.twin".into()),
    }
}
