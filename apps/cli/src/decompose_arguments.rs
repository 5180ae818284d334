//! What can be typed for `learn lbs`.

use crate::arguments::parse_threads;
use clap::Args;
use std::path::PathBuf;

/// Of `learn lbs`.
#[derive(Debug, Args)]
pub struct LearnLbsArguments {
    /// A dataset, an .npz of frames, a .glb or .gltf animation, or .obj files (or a folder of them).
    #[arg(required = true)]
    pub data: Vec<PathBuf>,
    /// The skinned and animated mesh.
    #[arg(short, long, value_name = "FILE.glb")]
    pub output: PathBuf,
    /// Number of bones.
    #[arg(long, value_name = "N", default_value_t = 32, allow_negative_numbers = true)]
    pub bones: usize,
    /// Most bones per vertex. Every engine plays four; with more the summary says what those that know no more show.
    #[arg(long, value_name = "N", default_value_t = 4, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub influences: u64,
    /// Most rounds of weights and bones.
    #[arg(long, value_name = "N", default_value_t = 60, allow_negative_numbers = true)]
    pub iterations: usize,
    /// Done when a round lowers the error by less than this share.
    #[arg(long, value_name = "SHARE", default_value_t = 1e-3, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Which clip of a glTF file [default: the first].
    #[arg(long, value_name = "NAME")]
    pub clip: Option<String>,
    /// Frames a second of the result [default: the data's own, or 30].
    #[arg(long, value_name = "FPS", allow_negative_numbers = true)]
    pub rate: Option<f32>,
    /// Take at most so many frames, spread evenly [default: all].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub frames: Option<usize>,
    /// Threads [default: all]; the file does not depend on it.
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_threads)]
    pub threads: Option<usize>,
}
