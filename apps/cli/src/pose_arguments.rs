//! What can be typed to pose by hand: `pose`.

use crate::arguments::parse_setting;
use clap::Args;
use std::path::PathBuf;

/// Of `pose`.
#[derive(Debug, Args)]
pub struct PoseArguments {
    /// A character, a rig file (.glb, .gltf, .bvh) or a program with bones; or a twin that `learn ik` taught to follow
    /// points.
    pub rig: String,
    /// The pose: .csv of controls, a .png, or a .glb; without it only what was reached is told.
    #[arg(short, long, value_name = "FILE", conflicts_with = "list")]
    pub output: Option<PathBuf>,
    /// Names what can be moved, with where it rests.
    #[arg(long)]
    pub list: bool,
    /// Puts a hand, a foot or the torso there, cm; can be given again.
    #[arg(long, value_name = "HANDLE=X,Y,Z", allow_hyphen_values = true, value_parser = parse_place)]
    pub reach: Vec<(String, Vec<f32>)>,
    /// Keeps a hand or a foot where it stands, turned as it is; can be given again.
    #[arg(long, value_name = "HANDLE")]
    pub lock: Vec<String>,
    /// Where the elbow or knee of a handle points, a direction [default: as before]; can be given again.
    #[arg(long, value_name = "HANDLE=X,Y,Z", allow_hyphen_values = true, value_parser = parse_place)]
    pub pole: Vec<(String, Vec<f32>)>,
    /// Drags a point of a face there, cm; can be given again. Points that are not named are pinned. Two numbers leave
    /// the depth as it is, where the twin follows points on a screen.
    #[arg(long, value_name = "POINT=X,Y,Z", allow_hyphen_values = true, value_parser = parse_place)]
    pub point: Vec<(String, Vec<f32>)>,
    /// A table of places over time, .csv: columns `time`, `hand_L.x`, `hand_L.y`, …, a row per frame.
    #[arg(long, value_name = "FILE.csv")]
    pub targets: Option<PathBuf>,
    /// Sets a control before; can be given again.
    #[arg(long = "set", value_name = "CONTROL=VALUE", value_parser = parse_setting)]
    pub settings: Vec<(String, f32)>,
    /// Starts from this clip of the rig, or from a file's motion, frame by frame: over the rows of --targets, else over
    /// the whole clip.
    #[arg(long, value_name = "NAME|FILE")]
    pub clip: Option<String>,
    /// Starts from this moment of the clip alone, seconds.
    #[arg(long, value_name = "S", requires = "clip", allow_negative_numbers = true)]
    pub time: Option<f32>,
    /// A file that names bones: `hand_L = [\"arm\", \"elbow\", \"wrist\"]`, `torso = \"pelvis\"`.
    #[arg(long, value_name = "FILE.toml")]
    pub limbs: Option<PathBuf>,
    /// Share of its length before it is straight in which a limb slows down, 0 to 0.5.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, allow_negative_numbers = true)]
    pub soft: f32,
    /// Let joints leave the ranges of their controls.
    #[arg(long)]
    pub no_limits: bool,
    /// Steps that correct what the network of a face leaves; 0: the network alone.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub steps: usize,
    /// From where a picture is taken; see `render`.
    #[arg(long, value_name = "VIEW", default_value = "three-quarter", allow_hyphen_values = true)]
    pub view: String,
    /// Side of a picture, pixels.
    #[arg(long, value_name = "N", default_value_t = 768)]
    pub size: usize,
    /// Show targets (red) and what was reached (green) in the picture.
    #[arg(long)]
    pub markers: bool,
}

fn parse_place(text: &str) -> Result<(String, Vec<f32>), String> {
    let (name, numbers) = text.rsplit_once('=').ok_or("NAME=X,Y,Z is wanted")?;
    let number = |part: &str| {
        let part = part.trim();
        part.parse::<f32>().map_err(|_| format!("'{part}' is not a number"))
    };
    Ok((name.trim().to_owned(), numbers.split(',').map(number).collect::<Result<_, _>>()?))
}
