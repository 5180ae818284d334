//! What can be typed for `motion game`.

use clap::Args;
use std::path::PathBuf;

/// Of `motion game`.
#[derive(Debug, Args)]
pub struct MotionGameArguments {
    /// The file of motion.
    pub motion: PathBuf,
    /// The take of the whole game: .csv, .glb, .gif or .mp4.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Your moves, squares from 1 to 9 from the top left; without it they are read line by line.
    #[arg(long, value_name = "SQUARE,SQUARE", value_delimiter = ',')]
    pub moves: Vec<usize>,
    /// How likely she moves without looking, 0 to 1; at 0 she never loses [default: 0.25].
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub forget: Option<f64>,
    /// The same seed and moves give the same game.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// She begins.
    #[arg(long)]
    pub second: bool,
    /// What she does in which situation, a script per line: 'wins: transition happy; play happy_2' [default: Mira's].
    #[arg(long, value_name = "FILE")]
    pub reactions: Option<PathBuf>,
    /// The rig of a film or sheet, where it is not at the place where it was learned.
    #[arg(long, value_name = "RIG")]
    pub rig: Option<String>,
    /// From where a film looks at her [default: front].
    #[arg(long, value_name = "VIEW", allow_hyphen_values = true)]
    pub view: Option<String>,
    /// Side of a film's picture, pixels [default: 384].
    #[arg(long, value_name = "N")]
    pub size: Option<usize>,
    /// Instead of playing, draws every reaction on a contact sheet.
    #[arg(long, value_name = "FILE.png", conflicts_with_all = ["output", "moves", "forget", "second", "view", "size"])]
    pub sheet: Option<PathBuf>,
}
