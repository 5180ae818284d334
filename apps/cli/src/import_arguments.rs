//! Arguments of `import`.

use clap::Args;
use std::path::PathBuf;

/// Of `import`.
#[derive(Debug, Args)]
pub struct ImportArguments {
    /// Arrays of a NumPy archive: vertices, faces, and controls, bones or both (docs/formats.md says their names).
    #[arg(value_name = "ARRAYS.npz", required_unless_present = "mesh", conflicts_with_all = ["mesh", "cache"])]
    pub arrays: Option<PathBuf>,
    /// The rest mesh with its skin, and with its bones' animation (.fbx, .glb, .gltf, .usda).
    #[arg(long, value_name = "FILE", requires = "cache")]
    pub mesh: Option<PathBuf>,
    /// The vertices in every frame (.abc, or .npz of frames).
    #[arg(long, value_name = "FILE", requires = "mesh")]
    pub cache: Option<PathBuf>,
    /// The bones' animation, where it is in a file of its own.
    #[arg(long, value_name = "FILE", requires = "mesh")]
    pub skeleton: Option<PathBuf>,
    /// Folder of the dataset.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Which animation of the file [default: the longest].
    #[arg(long, value_name = "NAME", requires = "mesh")]
    pub clip: Option<String>,
    /// Import this mesh only; can be given again [default: all that both files have].
    #[arg(long = "object", value_name = "NAME", requires = "mesh")]
    pub objects: Vec<String>,
    /// Centimetres in one unit of the cache [default: found by comparison].
    #[arg(long, value_name = "CM", requires = "mesh", allow_negative_numbers = true)]
    pub cache_scale: Option<f32>,
    /// The cache's up axis [default: found by comparison].
    #[arg(long, value_name = "AXIS", requires = "mesh", value_parser = ["y", "z"])]
    pub cache_up: Option<String>,
    /// Frames of the animation that pass before the cache's first second [default: found by comparison].
    #[arg(long, value_name = "FRAMES", requires = "mesh", allow_negative_numbers = true)]
    pub offset: Option<f64>,
    /// Leave out the last share of the frames: they are for tests.
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub hold_out: Option<f32>,
    /// Import the frames that --hold-out leaves out, and nothing else.
    #[arg(long, requires = "hold_out")]
    pub held_out: bool,
}
