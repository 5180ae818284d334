//! What can be typed for `weights` and `deform`.

use crate::arguments::parse_threads;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use understudy_jobs::weights::{DomainKind, WeightKind};

/// Of `weights`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct WeightsArguments {
    /// Or weights from another mesh.
    #[command(subcommand)]
    pub command: Option<WeightsCommand>,
    /// The mesh: a file, or a character by name.
    #[arg(required = true)]
    pub mesh: Option<String>,
    /// Handles: a .toml of points, bones, regions, cages and rigs, or a file with bones (.glb, .gltf, .bvh).
    #[arg(required = true)]
    pub handles: Option<PathBuf>,
    /// Deformed meshes of the same topology that improve the weights (.obj, .glb, or an .npz of frames).
    pub examples: Vec<PathBuf>,
    /// The skinned mesh.
    #[arg(short, long, value_name = "FILE.glb", required = true)]
    pub output: Option<PathBuf>,
    /// Write the weights as arrays, too: `weights` [vertices, handles], `names` and `places`.
    #[arg(long, value_name = "FILE.npz")]
    pub npz: Option<PathBuf>,
    /// Draw a weight map per handle, too.
    #[arg(long, value_name = "FILE.png")]
    pub maps: Option<PathBuf>,
    /// Write a page: maps, examples, the energy, every handle dragged.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Which weights: bounded biharmonic, quasi-harmonic or bone heat.
    #[arg(long, value_enum, default_value = "bbw")]
    pub kind: KindArgument,
    /// Where they are solved: the volume where there are bones or cages and else the surface, or as told.
    #[arg(long, value_enum, default_value = "auto")]
    pub domain: DomainArgument,
    /// Put the sum of one inside the problem: all handles at once, slower.
    #[arg(long)]
    pub joint: bool,
    /// Cells of the volume along the longest side of the mesh.
    #[arg(long, value_name = "N", default_value_t = 48, allow_negative_numbers = true)]
    pub cells: usize,
    /// Handles per vertex at most; every handle is solved again where it is kept [default: all].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub max_influences: Option<usize>,
    /// How much examples may bend weights: the strength of the l1 term.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub sparsity: Option<f64>,
    /// How much rigid parts count beside the examples.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub rigidity: Option<f64>,
    /// How much every handle should explain alone what follows it, as a share of the examples' term; 0 is the paper's energy.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub mixing: Option<f64>,
    /// Rounds of learning from examples at most.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub rounds: Option<usize>,
    /// Threads [default: all]; the file does not depend on it.
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_threads)]
    pub threads: Option<usize>,
}

/// What `weights` can do beside solving.
#[derive(Debug, clap::Subcommand)]
pub enum WeightsCommand {
    /// Weights of a skinned mesh for another in the same place: clothes, levels of detail.
    #[command(after_help = "Example: understudy weights transfer body.glb shirt.obj -o shirt.glb")]
    Transfer(WeightTransferArguments),
}

/// Of `weights transfer`.
#[derive(Debug, Args)]
pub struct WeightTransferArguments {
    /// A skinned mesh (.glb, .gltf).
    pub source: PathBuf,
    /// A mesh in the same place.
    pub target: PathBuf,
    /// The skinned target.
    #[arg(short, long, value_name = "FILE.glb")]
    pub output: PathBuf,
    /// How far a match may be, as a share of the target's diagonal.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, allow_negative_numbers = true)]
    pub distance: f64,
    /// By how many degrees the normals of a match may differ.
    #[arg(long, value_name = "DEGREES", default_value_t = 30.0, allow_negative_numbers = true)]
    pub degrees: f64,
    /// Match faces that point the opposite way, too: for cloth whose faces point either way.
    #[arg(long)]
    pub two_sided: bool,
    /// Bones per vertex at most; the smallest weights are cut [default: all].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub max_influences: Option<usize>,
    /// Threads [default: all]; the file does not depend on it.
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_threads)]
    pub threads: Option<usize>,
}

/// Of `deform`.
#[derive(Debug, Args)]
pub struct DeformArguments {
    /// A skinned mesh, as `weights` writes it.
    pub input: PathBuf,
    /// Where a handle goes, cm; handles that are not named stay.
    #[arg(long = "drag", value_name = "NAME=X,Y,Z", value_parser = parse_numbers::<3>, required_unless_present = "turns")]
    pub drags: Vec<(String, [f32; 3])>,
    /// An axis through a handle, and by how many degrees it turns about it; with --drag, where it goes.
    #[arg(long = "turn", id = "turns", value_name = "NAME=X,Y,Z,DEGREES", value_parser = parse_numbers::<4>)]
    pub turns: Vec<(String, [f32; 4])>,
    /// A handle that may move as it likes.
    #[arg(long, value_name = "NAME")]
    pub free: Vec<String>,
    /// The posed mesh (.obj) or a picture of it (.png).
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Iterations of rotations and transforms.
    #[arg(long, value_name = "N", default_value_t = 50, allow_negative_numbers = true)]
    pub iterations: usize,
    /// Of a picture: front, three-quarter, side, back, top, or YAW,PITCH in degrees.
    #[arg(long, value_name = "VIEW", default_value = "three-quarter", allow_hyphen_values = true)]
    pub view: String,
    /// Side of a picture, pixels.
    #[arg(long, value_name = "N", default_value_t = 768, allow_negative_numbers = true)]
    pub size: usize,
}

/// `--kind`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum KindArgument {
    /// Bounded biharmonic: the smoothest.
    Bbw,
    /// Quasi-harmonic: nearly as smooth, far faster.
    Quasi,
    /// Bone heat, on the surface.
    Heat,
}

impl From<KindArgument> for WeightKind {
    fn from(kind: KindArgument) -> Self {
        match kind {
            KindArgument::Bbw => Self::Bbw,
            KindArgument::Quasi => Self::Quasi,
            KindArgument::Heat => Self::Heat,
        }
    }
}

/// `--domain`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum DomainArgument {
    /// The volume where there are bones or cages.
    Auto,
    /// The mesh itself.
    Surface,
    /// A lattice of tetrahedra around it.
    Volume,
}

impl From<DomainArgument> for DomainKind {
    fn from(domain: DomainArgument) -> Self {
        match domain {
            DomainArgument::Auto => Self::Auto,
            DomainArgument::Surface => Self::Surface,
            DomainArgument::Volume => Self::Volume,
        }
    }
}

fn parse_numbers<const N: usize>(text: &str) -> Result<(String, [f32; N]), String> {
    let wanted = || format!("a name, an equals sign and {N} numbers with commas between are wanted");
    let (name, place) = text.rsplit_once('=').ok_or_else(wanted)?;
    let numbers: Vec<f32> = place
        .split(',')
        .map(|part| part.trim().parse::<f32>())
        .collect::<Result<_, _>>()
        .map_err(|_| wanted())?;
    let place: [f32; N] = numbers.try_into().map_err(|_| wanted())?;
    if place.iter().any(|x| !x.is_finite()) {
        return Err(format!("'{text}' holds a number that is not finite"));
    }
    Ok((name.trim().to_owned(), place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drags_are_parsed() {
        assert_eq!(parse_numbers::<3>("a b=1, -2.5,3"), Ok(("a b".into(), [1.0, -2.5, 3.0])));
        for bad in ["a", "a=1,2", "a=1,2,x", "a=1,2,NaN", "a=1,2,3,4"] {
            assert!(parse_numbers::<3>(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_numbers::<4>("a=0,0,1,-30"), Ok(("a".into(), [0.0, 0.0, 1.0, -30.0])));
    }
}
