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

Without --label the rig's own clips are labelled by their names: smile_1 and smile_2 are 'smile'.
Method, defaults, scripts: docs/methods/motion.md")]
    Learn(MotionLearnArguments),
    /// Says what is in a file of motion: labels, clips, bridges.
    #[command(after_help = "Example: understudy motion info mira.motion")]
    Info {
        /// The file.
        file: PathBuf,
    },
    /// Plays a script and writes the controls frame by frame.
    #[command(after_help = "Examples:
  understudy motion play mira.motion act.txt -o act.csv --seed 7
  understudy render mira -o act.png --clip act.csv --frames 12

A script: transition happy; move smile_1 in 1.5s; idle 4s around smile_1, grin@0.5s; play roar[0.2..1.5]")]
    Play(MotionPlayArguments),
    /// Plays tic-tac-toe with you; the character ponders, threatens, roars or laughs, never twice the same.
    #[command(after_help = "Examples:
  understudy motion game mira.motion
  understudy motion game mira.motion --moves 5,1,8 --forget 0.6 --seed 3 -o game.csv
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
    /// Weight of the connectivity prior [default: 0].
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
    /// The table of controls, which --clip plays.
    #[arg(short, long, value_name = "FILE.csv")]
    pub output: PathBuf,
    /// The label to begin in [default: the first].
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// The same seed gives the same frames.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
}

fn parse_label(text: &str) -> Result<LabelSpec, String> {
    text.parse()
}
