//! What can be typed for twins of any kind: `eval`, `bench`, `export`; and `transfer`, for faces. `learn` has a file of
//! its own.

use crate::arguments::parse_threads;
use clap::Args;
use std::path::PathBuf;

/// Of `eval`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("fitted").args(["train", "fit"]).multiple(true)))]
pub struct EvalArguments {
    /// The twin.
    pub twin: PathBuf,
    /// Datasets of poses that it was not trained on.
    #[arg(required_unless_present = "clips")]
    pub test: Vec<PathBuf>,
    /// The original: --clip plays on it [default: where it was when the twin was learned].
    #[arg(long, value_name = "RIG")]
    pub rig: Option<String>,
    /// A clip to weigh the twin on, recorded in memory; can be given again.
    #[arg(long = "clip", value_name = "NAME|FILE")]
    pub clips: Vec<String>,
    /// The dataset that it was trained on: the baselines are fitted to it and compared too.
    #[arg(long, value_name = "DIR")]
    pub train: Option<PathBuf>,
    /// Baselines to fit: names with commas between, or all. Of bones: lbs (the rig's own skin), delta_mush, ddm, rigid,
    /// lbs4, lbs_all, rr2, rr15, wpsd10, wpsd50, wpsd100. Of any rig: pca, kpsa, kpsa_predicted, and lbs32 and the like:
    /// skins with that number of bones of their own, 9 or more; where the twin has no bones lbs4 and the like too.
    /// [default: rigid, lbs4, rr2, wpsd10; without bones lbs32]. Fits are kept beside the training set.
    #[arg(long, alias = "baseline", value_name = "all|NAMES", value_delimiter = ',', requires = "fitted")]
    pub baselines: Vec<String>,
    /// `test`: fit the baselines to every test set itself as well, in rows of their own: a protocol that favours them.
    /// Without --train there are these rows alone.
    #[arg(long, value_name = "train|test", value_parser = ["train", "test"])]
    pub fit: Option<String>,
    /// Compare another twin of the same mesh, under this name; can be given again.
    #[arg(long, value_name = "NAME=FILE.twin", value_parser = parse_against)]
    pub against: Vec<(String, PathBuf)>,
    /// Write a page with tables, histogram and heat maps into this folder.
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Threads [default: all].
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_threads)]
    pub threads: Option<usize>,
}

/// Of `bench`.
#[derive(Debug, Args)]
pub struct BenchTwinArguments {
    /// The twin.
    pub twin: PathBuf,
    /// Rounds, of which the median counts.
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub rounds: usize,
    /// The original, to be timed too [default: where it was when the twin was learned].
    #[arg(long, value_name = "RIG")]
    pub rig: Option<String>,
}

/// Of `export`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("played").args(["glb", "blender"]).multiple(true)))]
pub struct ExportArguments {
    /// The twin.
    pub twin: PathBuf,
    /// Write the whole twin, skinning included, as an ONNX graph.
    #[arg(long, value_name = "FILE.onnx", required_unless_present_any = ["glb", "blender"])]
    pub onnx: Option<PathBuf>,
    /// Write linear blend skinning with four bones per vertex as a plain GLB, for engines that run no code.
    #[arg(long, value_name = "FILE.glb")]
    pub glb: Option<PathBuf>,
    /// Write clips as the twin plays them into this folder, with a script that loads them in Blender beside the original.
    #[arg(long, value_name = "DIR")]
    pub blender: Option<PathBuf>,
    /// The rig that the skin is bound to, and that clips are played on [default: where it was when the twin was learned].
    #[arg(long, value_name = "RIG", requires = "played")]
    pub rig: Option<String>,
    /// A clip of the rig, a file that it shall play, or a dataset that was recorded from one; can be given again
    /// [default: every clip of the rig].
    #[arg(long = "clip", value_name = "NAME|FILE|DIR", requires = "played")]
    pub clips: Vec<String>,
    /// The dataset that the skin is fitted to [default: the twin's own skin, or random poses of its rig].
    #[arg(long, value_name = "DIR", requires = "played")]
    pub train: Option<PathBuf>,
    /// Frames per second at which the rig's clips are read [default: each clip's own, or 30].
    #[arg(long, value_name = "FPS", requires = "played", allow_negative_numbers = true)]
    pub rate: Option<f32>,
    /// Threads for fitting [default: all].
    #[arg(long, value_name = "T", requires = "played", allow_negative_numbers = true, value_parser = parse_threads)]
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
