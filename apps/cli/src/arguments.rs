//! What can be typed. Only clap lives here; each command turns its arguments into a job's configuration
//! in `commands`.

use crate::blender_arguments::BlenderArguments;
use crate::capture_arguments::CaptureArguments;
use crate::import_arguments::ImportArguments;
use crate::invert_arguments::InvertArguments;
use crate::learn_arguments::LearnCommand;
use crate::motion_arguments::MotionCommand;
use crate::pose_arguments::PoseArguments;
use crate::studio_command::StudioArguments;
use crate::twin_arguments::{BenchTwinArguments, EvalArguments, ExportArguments, TransferArguments};
use crate::weights_arguments::{DeformArguments, WeightsArguments};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use understudy_jobs::sample::{Method, Shard};

const RIG: &str = "a character (rook, mira; human and ict where their data is present) or a file \
(.blend, .glb, .gltf, .fbx, .usda or .usdc with a skin or shapes, .npz with blendshapes), or another program that speaks the rig protocol \
(cmd:PROGRAM ARGS, unix:PATH, tcp:HOST:PORT)";

/// Understudy learns to play a film-quality character's part.
#[derive(Debug, Parser)]
#[command(
    name = "understudy",
    version,
    after_help = "Example: understudy demo\n\nExit codes: 0 done, 2 bad input or usage, 1 anything else."
)]
pub struct Arguments {
    /// Print one JSON document on standard output instead of text.
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// One variant per command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Lists the characters and their figures.
    #[command(after_help = "Example: understudy characters --json")]
    Characters,
    /// Poses a rig at random or along clips and records a dataset.
    #[command(after_help = "Examples:
  understudy sample rook -o data/rook --poses 20000 --seed 7
  understudy sample mira -o data/mira --method noise --exclude talk --poses 5000
  understudy sample rook -o data/walk --clip walk --rate 60
  understudy sample mira -o data/take --clip take.csv
  understudy sample 'cmd:python3 rig.py' -o data/hero --workers 4 --timeout 20
  understudy sample hero.blend -o data/hero --controls 'collection:Torso*' --set 'arm.L[\"IK_FK\"]=1'

A run that was interrupted goes on where it stopped when the same command is given again.")]
    Sample(SampleArguments),
    /// Joins the shards of a recording that several machines made.
    #[command(after_help = "Examples:
  understudy sample rook -o shards/1 --poses 20000 --shard 1/8      # on one machine of eight
  understudy merge shards/* -o data/rook

The dataset has the very bytes that one machine would have written. Guide: docs/guides/farm.md")]
    Merge(MergeArguments),
    /// Samples and sweeps on a Ray cluster, by the Python package.
    #[command(
        disable_help_flag = true,
        after_help = "Examples:
  understudy farm sample rook -o data/rook --poses 20000 --method sparse --ray auto
  understudy farm sweep data/rook -o twins --kind body --seeds 1,2,3 --ray auto

Guide: docs/guides/farm.md"
    )]
    Farm {
        /// What `python3 -m understudy.farm` takes.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Makes a dataset of poses that another program recorded.
    #[command(after_help = "Examples:
  understudy import --mesh body.fbx --cache body.abc -o data/hero --hold-out 0.2
  understudy import --mesh body.fbx --cache body.abc -o data/hero-test --hold-out 0.2 --held-out
  understudy import --mesh body.fbx --skeleton curves.fbx --cache body.abc -o data/hero
  understudy import arrays.npz -o data/hero

Guides: docs/guides/from-maya-or-houdini.md, docs/guides/from-your-own-program.md")]
    Import(ImportArguments),
    /// Draws a rig, a clip, a dataset or a mesh into a PNG file.
    #[command(after_help = "Examples:
  understudy render mira -o smile.png --set mouthSmile_L=1 --set mouthSmile_R=1 --view three-quarter
  understudy render rook -o walk.png --clip walk --frames 8
  understudy render mira -o take.png --clip take.csv --frames 8
  understudy render data/rook -o poses.png --frames 8
  understudy render model.glb -o views.png --view front --view side --view back")]
    Render(RenderArguments),
    /// Converts between formats, by file extension.
    #[command(after_help = "Examples:
  understudy convert face.npz -o face.glb
  understudy convert rook -o walk.glb --bake walk --tolerance-mm 0.1
  understudy convert data/rook -o rook.npz
  understudy convert mira -o other.obj --remesh

Reads   .obj .glb .gltf .fbx .usda .usdc .abc .npz .bvh .csv, a rig by name, a dataset folder
Writes  .obj .glb .usda .npz .bvh .csv")]
    Convert(ConvertArguments),
    /// Poses a body by its hands, feet and torso, or a face by points that are dragged; controls come out.
    #[command(after_help = "Examples:
  understudy pose rook --list
  understudy pose rook --reach hand_L=60,150,40 --lock foot_L --lock foot_R --reach torso=0,85,5 -o pose.png
  understudy pose rook --targets reach.csv --clip walk --lock foot_R -o take.csv
  understudy pose mira.twin --point mouth_corner_L=3.5,150,8 -o smile.csv --json

Places are in cm. A table of targets has a column per coordinate (hand_L.x) and a row per frame.
Methods and equations: docs/methods/inverse-kinematics.md")]
    Pose(Box<PoseArguments>),
    /// Says what is inside a file, a dataset, a twin or a rig.
    #[command(after_help = "Examples:
  understudy info model.glb
  understudy info mira.twin
  understudy info hero.blend --object Body --install-blender
  understudy info data/rook --verify")]
    Info(InfoArguments),
    /// Finds the blendshape weights that make a rig look like given meshes.
    #[command(after_help = "Examples:
  understudy invert face.npz scans/*.obj -o weights.csv
  understudy invert mira take.npz -o weights.npz --alpha auto --smooth 50 --json report.json
  understudy invert face.glb performance.glb -o take.csv --head all --report take.html

Methods and equations: docs/methods/inverse-rig.md")]
    Invert(Box<InvertArguments>),
    /// Puts captured motion on a rig and says how well it fits: bones, limits, feet that slide. --clip plays it.
    #[command(after_help = "Examples:
  understudy retarget rook walk.bvh
  understudy retarget rook walk.bvh --write-map walk.toml
  understudy render rook -o walk.png --clip walk.toml --frames 12

Bones, mapping files, what is solved: docs/guides/mocap.md")]
    Retarget(RetargetArguments),
    /// Learns latent spaces of an artist's clips, and plays scripts through them.
    #[command(subcommand, after_help = "Example: understudy motion learn mira -o mira.motion")]
    Motion(MotionCommand),
    /// Drives a rig by an actor's face: a video, a camera or a synthetic actor in, a take out.
    #[command(after_help = "Examples:
  understudy capture video.mp4 mira --landmarks face_landmarker.task --twin mira.twin -o take.csv
  understudy capture --camera /dev/video0 --seconds 10 mira --landmarks face_landmarker.task --twin mira.twin -o take.glb
  understudy capture --actor synthetic:7 --seconds 4 ict -o take.csv --truth truth.csv --report take.html
  understudy capture --actor synthetic:7 ict --landmarks face_landmarker.task -o take.csv
  understudy capture --actor synthetic:7 --seconds 20 --draw actors/7

Videos and cameras are read through the program ffmpeg; folders of PNG files need none.
Method, what is found, limits: docs/methods/capture.md")]
    Capture(Box<CaptureArguments>),
    /// Shows everything on the embedded characters and makes a report.
    #[command(after_help = "Example: understudy demo -o demo")]
    Demo(DemoArguments),
    /// Learns a twin of a rig from a dataset.
    #[command(subcommand, after_help = "Example: understudy learn body data/rook -o rook.twin")]
    Learn(LearnCommand),
    /// Compares a twin with the original and with baselines on poses that it was not trained on.
    #[command(after_help = "Examples:
  understudy eval rook.twin data/rook-walk --train data/rook --report report
  understudy eval rook.twin data/rook-walk --train data/rook --baseline lbs4 --json
  understudy eval mira.twin --clip take.csv --against dense=dense.twin")]
    Eval(EvalArguments),
    /// Times a twin, beside the rig that it was learned from.
    #[command(after_help = "Example: understudy bench rook.twin")]
    Bench(BenchTwinArguments),
    /// Writes a twin for other programs.
    #[command(after_help = "Examples:
  understudy export rook.twin --onnx rook.onnx
  understudy export rook.twin --glb rook.glb --clip walk --clip data/rook-kick
  understudy export hero.twin --blender hero-twin --clip data/hero-test")]
    Export(ExportArguments),
    /// Moves a face twin to another mesh with the same texture coordinates.
    #[command(after_help = "Examples:
  understudy transfer mira.twin remeshed.obj -o remeshed.twin
  understudy transfer mira.twin remeshed.obj -o remeshed.twin --check data/mira-roar")]
    Transfer(TransferArguments),
    /// Serves a web page to pose, compare, learn, invert, place weights, direct motion and capture a face, on this machine
    /// alone, and opens it.
    #[command(after_help = "Examples:
  understudy studio
  understudy studio --project films/hero --port 9000 --no-browser
  understudy studio --rig 'cmd:python3 rig.py'

The address holds a token: only who has it is answered. Ctrl-C ends the studio.")]
    Studio(StudioArguments),
    /// Skinning weights for points, bones, regions and cages, from the mesh and from examples.
    #[command(after_help = "Examples:
  understudy weights body.obj handles.toml -o body.glb --maps maps.png
  understudy weights card.obj handles.toml folded.obj -o card.glb --npz card.npz
  understudy weights fox.obj fox.glb -o skinned.glb --max-influences 4
  understudy weights transfer body.glb shirt.obj -o shirt.glb

Handle files and the method: docs/methods/skinning-weights.md")]
    Weights(Box<WeightsArguments>),
    /// Drags handles of a skinned mesh.
    #[command(after_help = "Examples:
  understudy deform card.glb --drag right=0,5,0 -o posed.obj
  understudy deform card.glb --turn right=0,0,1,60 --drag right=5,4,0 -o posed.obj
  understudy deform fox.glb --drag tail=0,60,-40 --free spine -o posed.png --view side")]
    Deform(DeformArguments),
    /// Prints a completion script for a shell.
    #[command(
        after_help = "Example: understudy completions bash > ~/.local/share/bash-completion/completions/understudy"
    )]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// `--method` of `sample`: names and what they mean.
pub const SAMPLE_METHODS: Choices = &[
    ("gaussian", "Each control normal about the middle of its range, cut at ±1.5 σ"),
    ("uniform", "Each control evenly over its range"),
    ("sparse", "As gaussian, but a random share of the controls stays at its default"),
    ("noise", "Frames of clips, each control's offset times its own factor of 0.25 to 3"),
];

/// Names of an enum's values, as a library serialises them, and what they mean.
pub type Choices = &'static [(&'static str, &'static str)];

/// Reads an enum of a library by the names that its reports and configurations have.
pub fn by_name<T>(choices: Choices) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let values = choices.iter().map(|(name, meaning)| PossibleValue::new(*name).help(*meaning));
    PossibleValuesParser::new(values)
        .map(|name| serde_json::from_value(name.into()).expect("a choice is a name of the library's"))
}

/// Of `sample`.
#[derive(Debug, Args)]
pub struct SampleArguments {
    #[arg(help = RIG)]
    pub rig: String,
    /// Folder of the dataset.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// How many poses [default: 1000, or all frames of --clip].
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub poses: Option<u64>,
    /// The same seed gives the same dataset [default: 1].
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Threads [default: all]; the dataset does not depend on it.
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_threads)]
    pub threads: Option<usize>,
    /// How poses are found [default: gaussian; noise when clips are named together with --poses].
    #[arg(long, value_parser = by_name::<Method>(SAMPLE_METHODS))]
    pub method: Option<Method>,
    /// Take poses from this clip only, of the rig or of a file (Live Link Face .csv, .bvh, .glb); can be given
    /// again. Without --poses: every frame of it. Where none is named: all clips of the rig but
    /// `test` and those of motion (`motion/…`).
    #[arg(long = "clip", value_name = "NAME|FILE")]
    pub clips: Vec<String>,
    /// Take no poses from this clip; can be given again.
    #[arg(long, value_name = "NAME")]
    pub exclude: Vec<String>,
    /// Take no poses from this share of every clip's frames: they are for tests.
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub hold_out: Option<f32>,
    /// Record the frames that --hold-out leaves out, and nothing else.
    #[arg(long, requires = "hold_out")]
    pub held_out: bool,
    /// Frames per second at which clips are read [default: each clip's own, or 30].
    #[arg(long, value_name = "FPS", allow_negative_numbers = true)]
    pub rate: Option<f32>,
    /// Share of the poses of noise that put two clips together and move a few controls freely; 0: the
    /// paper's way [default: 0.5].
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub mix: Option<f32>,
    /// Mean share of the controls that such a pose moves freely: more of them teach what no clip does, and
    /// leave less for what clips do [default: 0.03].
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub stray: Option<f32>,
    /// Draw poses where a small ensemble disagrees most, in rounds, instead of plainly at random; --method says what from.
    #[arg(
        long,
        conflicts_with_all = ["clips", "held_out", "rate", "mix", "stray", "skip_failed"]
    )]
    pub active: bool,
    /// Rounds of --active.
    #[arg(long, value_name = "N", requires = "active", default_value_t = 6)]
    pub rounds: usize,
    /// Also evaluate as many random poses, and write how the errors of both fall into this folder (a table and a plot).
    #[arg(long, value_name = "DIR", requires = "active")]
    pub report: Option<PathBuf>,
    /// Poses a file of the dataset.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub chunk: Option<u64>,
    /// Processes of a rig that is a program, or connections where it listens [default: one per core; one where it
    /// listens]; the dataset does not depend on it.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_threads)]
    pub workers: Option<usize>,
    /// Seconds that a rig that is a program has for an answer; then it is started anew [default: 60].
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub timeout: Option<f64>,
    /// Replace poses that such a rig fails to give three times by other random ones, instead of stopping.
    #[arg(long)]
    pub skip_failed: bool,
    /// Record one part of so many, for several machines at a time; `merge` joins them.
    #[arg(long, value_name = "K/N", value_parser = parse_shard, conflicts_with = "active")]
    pub shard: Option<Shard>,
    #[command(flatten)]
    pub blender: BlenderArguments,
}

/// Of `merge`.
#[derive(Debug, Args)]
pub struct MergeArguments {
    /// Folders that `sample --shard` made.
    #[arg(required = true)]
    pub shards: Vec<PathBuf>,
    /// Folder of the dataset.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
}

/// Of `render`.
#[derive(Debug, Args)]
pub struct RenderArguments {
    /// A character, a rig file (.glb, .gltf, .npz), a dataset folder or a mesh (.obj).
    pub rig: String,
    /// The picture.
    #[arg(short, long, value_name = "FILE.png")]
    pub output: PathBuf,
    /// Sets a control, within its range; can be given again.
    #[arg(long = "set", value_name = "CONTROL=VALUE", value_parser = parse_setting)]
    pub settings: Vec<(String, f32)>,
    /// A moment of this clip, or with --frames a sheet of it: a clip of the rig, or a file that it shall play (Live
    /// Link Face .csv, .bvh, .glb).
    #[arg(long, value_name = "NAME|FILE")]
    pub clip: Option<String>,
    /// Which moment, seconds.
    #[arg(
        long,
        value_name = "S",
        requires = "clip",
        conflicts_with = "frames",
        allow_negative_numbers = true
    )]
    pub time: Option<f32>,
    /// A contact sheet of so many moments of the clip, or poses of the dataset, first and last included.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=400))]
    pub frames: Option<u64>,
    /// From where: front, three-quarter, side, back, left, right, top; or `YAW,PITCH` in degrees. Can be
    /// given again for several views on one sheet [default: three-quarter].
    #[arg(long = "view", value_name = "VIEW", allow_hyphen_values = true)]
    pub views: Vec<String>,
    /// Side of each picture, pixels.
    #[arg(long, value_name = "N", default_value_t = 768, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(16..=8192))]
    pub size: u64,
    /// A dark backdrop.
    #[arg(long)]
    pub dark: bool,
}

/// Of `convert`.
#[derive(Debug, Args)]
pub struct ConvertArguments {
    /// A file, a dataset folder or a rig by name.
    pub input: String,
    /// The file to write; its extension says the format.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Write this clip, or the motion of this file, as morph targets: the fewest, by PCA, that stay within the
    /// tolerance.
    #[arg(long, value_name = "CLIP|FILE")]
    pub bake: Option<String>,
    /// Which clip, where the output holds only one; or a file whose motion the input shall play.
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "bake")]
    pub clip: Option<String>,
    /// Largest distance of any vertex in any frame of a baked clip, mm.
    #[arg(long, value_name = "MM", default_value_t = 0.1, requires = "bake", allow_negative_numbers = true)]
    pub tolerance_mm: f32,
    /// Frames per second of clips [default: each clip's own, or 30].
    #[arg(long, value_name = "FPS", allow_negative_numbers = true)]
    pub rate: Option<f32>,
    /// Cut the mesh up anew: the same surface and texture coordinates with other vertices and triangles, as
    /// .obj.
    #[arg(long, conflicts_with_all = ["bake", "clip"])]
    pub remesh: bool,
    /// Influences per vertex of a skin in a .glb: the largest are kept. Every engine plays four, some more
    /// [default: 4].
    #[arg(long, value_name = "N", conflicts_with_all = ["bake", "remesh"])]
    pub influences: Option<usize>,
}

/// Of `info`.
#[derive(Debug, Args)]
pub struct InfoArguments {
    /// A file, a dataset folder, a twin or a rig by name.
    pub input: String,
    /// Read every chunk of a dataset, compare its hash, and look for control values outside their ranges.
    #[arg(long)]
    pub verify: bool,
    #[command(flatten)]
    pub blender: BlenderArguments,
}

/// Of `retarget`.
#[derive(Debug, Args)]
pub struct RetargetArguments {
    #[arg(help = RIG)]
    pub rig: String,
    /// A motion (.bvh, .glb, .gltf; FILE:CLIP for one of several), or a mapping file (.toml) that names one.
    pub motion: String,
    /// Settings and bones of this mapping file.
    #[arg(long, value_name = "FILE.toml")]
    pub map: Option<PathBuf>,
    /// Write a mapping file with every bone that was found, to edit and to give to --clip.
    #[arg(long, value_name = "FILE.toml")]
    pub write_map: Option<PathBuf>,
}

/// Of `demo`.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// Folder for pictures, datasets and the report.
    #[arg(short, long, value_name = "DIR", default_value = "demo")]
    pub output: PathBuf,
    /// Poses of the training sets: as many of Rook, two and a half times as many of Mira.
    #[arg(long, value_name = "N", default_value_t = 1200, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub poses: u64,
    /// Threads [default: all].
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_threads)]
    pub threads: Option<usize>,
}

pub(crate) fn parse_threads(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(threads) if (1..=understudy_jobs::threads::MAX_THREADS).contains(&threads) => Ok(threads),
        _ => Err(format!("a number from 1 to {} is wanted", understudy_jobs::threads::MAX_THREADS)),
    }
}

fn parse_shard(text: &str) -> Result<Shard, String> {
    let numbers = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
        _ => Err("K/N with K from 1 to N is wanted, such as 1/8".into()),
    }
}

pub(crate) fn parse_setting(text: &str) -> Result<(String, f32), String> {
    let (name, value) = text.rsplit_once('=').ok_or("CONTROL=VALUE is wanted")?;
    let number = value.trim().parse::<f32>().map_err(|_| format!("'{value}' is not a number"))?;
    Ok((name.trim().to_owned(), number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_has_help_with_an_example() {
        for command in Arguments::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("understudy "), "{}", command.get_name());
        }
    }

    #[test]
    fn settings_are_parsed() {
        assert_eq!(parse_setting("jaw=-0.5"), Ok(("jaw".into(), -0.5)));
        assert!(parse_setting("jaw").is_err() && parse_setting("jaw=wide").is_err());
        assert!(parse_setting("jaw=NaN").expect("a float").1.is_nan());
    }
}
