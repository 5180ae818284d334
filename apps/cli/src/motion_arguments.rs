//! What can be typed for `motion`.

use crate::game_arguments::MotionGameArguments;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use understudy_jobs::motion::LabelSpec;

/// What to do with motion.
#[derive(Debug, Subcommand)]
pub enum MotionCommand {
    /// Learns the latent spaces of labelled clips and the bridges between them.
    #[command(after_help = "Examples:
  understudy motion learn mira -o mira.motion
  understudy motion learn hero.glb -o hero.motion --label walk=Walking_A,Walking_B --label idle=Idle[0..60]

Without --label the rig's own clips are labelled by their names: motion/happy_1 and motion/happy_2 are 'happy', Walking_A and
Walking_B 'Walking'; where no clip is in 'motion/', all are learned that move.
Method, defaults, scripts: docs/methods/motion.md")]
    Learn(MotionLearnArguments),
    /// Says what is in a file of motion: labels, clips, bridges; and shows it.
    #[command(after_help = "Examples:
  understudy motion info mira.motion
  understudy motion info mira.motion --page mira.html     # latent spaces and the poses at bridges
  understudy motion info mira.motion --page mira.png      # the poses alone; .svg: the first latent space")]
    Info {
        /// The file.
        file: PathBuf,
        /// Also show it, as a page (.html), poses at bridges (.png) or the first label's latent space (.svg).
        #[arg(long, value_name = "FILE")]
        page: Option<PathBuf>,
    },
    /// Plays a script and writes the take: a table of controls, a model with its animation, or a film.
    #[command(after_help = "Examples:
  understudy motion play mira.motion act.txt -o act.csv --seed 7
  understudy motion play mira.motion act.txt -o act.gif --view front
  understudy render mira -o act.png --clip act.csv --frames 12

A script: transition happy; move happy_1 in 1.5s; idle 4s around happy_1, happy_2@0.5s dwell 1s; play roar_1[0.2..1.5];
mix 3s happy_1 60%, surprise_1 40%. Commands end with a line or a semicolon, # begins a comment.")]
    Play(MotionPlayArguments),
    /// Finds where the poses of a clip lie in the latent spaces, and how near those come to them.
    #[command(after_help = "Example: understudy motion project mira.motion take.csv --label happy")]
    Project(MotionProjectArguments),
    /// Plays tic-tac-toe with you; the character ponders, threatens, roars or laughs, never twice the same.
    #[command(after_help = "Examples:
  understudy motion game mira.motion
  understudy motion game mira.motion --moves 5,1,8 --forget 0.6 --seed 3 -o game.gif
  understudy motion game mira.motion --sheet reactions.png

Rules, situations, reactions of your own: docs/methods/motion.md")]
    Game(MotionGameArguments),
}

/// Of `motion learn`.
#[derive(Debug, Args)]
pub struct MotionLearnArguments {
    /// A character or a rig file.
    pub rig: String,
    /// The file of motion.
    #[arg(short, long, value_name = "FILE.motion")]
    pub output: PathBuf,
    /// A label and its clips, of the rig or of files; CLIP[FIRST..LAST] takes some frames. Can be given again.
    #[arg(long = "label", value_name = "LABEL=CLIP,CLIP", value_parser = parse_label)]
    pub labels: Vec<LabelSpec>,
    /// Learn eye controls whose names hold this too; can be given again.
    #[arg(long, value_name = "PART")]
    pub include: Vec<String>,
    /// Frames per second at which clips are read and played [default: 24].
    #[arg(long, value_name = "FPS", allow_negative_numbers = true)]
    pub rate: Option<f32>,
    /// Share of the variance that principal components keep; the paper keeps 0.85 [default: 0.95].
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub variance: Option<f64>,
    /// Dimensions of the latent spaces [default: 3].
    #[arg(long, value_name = "N")]
    pub latent: Option<usize>,
    /// Most iterations per label [default: 150].
    #[arg(long, value_name = "N")]
    pub iterations: Option<usize>,
    /// Inducing points per label instead of all its frames: what thousands of frames need [default: all up to 800 frames,
    /// then 150].
    #[arg(long, value_name = "N")]
    pub inducing: Option<usize>,
    /// Weight of the connectivity prior beside the likelihood; 0 leaves it out [default: 0.3].
    #[arg(long, value_name = "W", allow_negative_numbers = true)]
    pub connectivity: Option<f64>,
    /// Poses of two labels that are nearer than this make a bridge, mm [default: 2].
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    pub bridge_mm: Option<f32>,
}

/// Of `motion play`.
#[derive(Debug, Args)]
pub struct MotionPlayArguments {
    /// The file of motion.
    pub motion: PathBuf,
    /// The script.
    pub script: PathBuf,
    /// The take: .csv, which --clip plays, .glb, .gif, or .mp4 where the program ffmpeg is there.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// From where a film looks: front, three-quarter, side … or YAW,PITCH in degrees.
    #[arg(long, value_name = "VIEW", default_value = "three-quarter", allow_hyphen_values = true)]
    pub view: String,
    /// Side of a film's picture, pixels.
    #[arg(long, value_name = "PIXELS", default_value_t = 384)]
    pub size: usize,
    /// The rig of the film, where it is not where it was when its motion was learned.
    #[arg(long, value_name = "RIG")]
    pub rig: Option<String>,
    /// The label to begin in [default: the first].
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// The same seed gives the same frames.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
}

/// Of `motion project`.
#[derive(Debug, Args)]
pub struct MotionProjectArguments {
    /// The file of motion.
    pub motion: PathBuf,
    /// A clip of the rig, or a file whose motion it shall play.
    pub clip: String,
    /// Into this label alone [default: the nearest of all].
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// The rig, where it is not where it was when its motion was learned.
    #[arg(long, value_name = "RIG")]
    pub rig: Option<String>,
}

fn parse_label(text: &str) -> Result<LabelSpec, String> {
    text.parse()
}
