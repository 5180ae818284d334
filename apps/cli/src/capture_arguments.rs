//! What can be typed for `capture`.

use crate::arguments::{Choices, by_name};
use crate::invert_arguments::LAYOUTS;
use clap::Args;
use std::path::PathBuf;
use understudy_jobs::capture::{ActorMethod, Fitted, Neutral, WhichFace};
use understudy_jobs::invert::Layout;

const FACES: Choices = &[
    ("only", "There must be one face alone"),
    ("largest", "The largest in the picture"),
    ("left", "The one furthest to the left of the picture"),
    ("right", "The one furthest to the right"),
];

const METHODS: Choices = &[
    ("landmarks", "As a video, by MediaPipe's landmarks"),
    ("render", "By inverse rendering: the weights whose picture looks like the frame"),
];

const FITTED: Choices = &[
    ("own", "A model of this actor: head, paint and light"),
    ("mean", "The mean head, whoever is seen"),
    ("landmarks", "Landmarks alone, as offsets from the actor's rest"),
];

/// Of `capture`.
#[derive(Debug, Args)]
pub struct CaptureArguments {
    /// The video (a folder of pictures or a picture serve as well) and the rig; with --camera or --actor the rig alone.
    #[arg(required_unless_present = "draw", num_args = 1..=2, value_names = ["VIDEO", "RIG"])]
    pub inputs: Vec<String>,
    /// The take: .csv of controls, a .glb, a .mp4 or a .png; without it only what was found is told.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// MediaPipe's face landmarker, `face_landmarker.task`, as it is downloaded, or nets of `learn landmarks`.
    #[arg(long, value_name = "FILE.task|FILE.landmarks")]
    pub landmarks: Option<PathBuf>,
    /// A twin of the rig that `learn ik` taught to follow points [default: scores by their names].
    #[arg(long, value_name = "FILE.twin")]
    pub twin: Option<PathBuf>,
    /// The frame that shows the actor at rest, counted from 0, or auto.
    #[arg(long, value_name = "auto|FRAME", default_value = "auto")]
    pub neutral: Neutral,
    /// Which face is followed where there are several.
    #[arg(long, value_parser = by_name::<WhichFace>(FACES), default_value = "only")]
    pub face: WhichFace,
    /// Exchange left and right, as in a mirror.
    #[arg(long)]
    pub mirror: bool,
    /// Frames per second [default: the video's own; 30 for pictures and cameras].
    #[arg(long, value_name = "FPS", allow_negative_numbers = true)]
    pub rate: Option<f32>,
    /// Layout of a .csv.
    #[arg(long, value_parser = by_name::<Layout>(LAYOUTS), default_value = "auto")]
    pub layout: Layout,
    /// A camera in place of a video.
    #[arg(long, value_name = "DEVICE", conflicts_with = "actor")]
    pub camera: Option<PathBuf>,
    /// A synthetic actor in place of a video, such as synthetic:7.
    #[arg(long, value_name = "synthetic:N")]
    pub actor: Option<String>,
    /// How long the actor is watched, s [default: all of a video; 10 of a camera; 4 of a synthetic actor].
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub seconds: Option<f32>,
    /// Writes the weights that made a synthetic actor's frames.
    #[arg(long, value_name = "FILE.csv", requires = "actor")]
    pub truth: Option<PathBuf>,
    /// How a synthetic actor is captured: by the landmarks of a .task file, or by inverse rendering [default: inverse
    /// rendering where no --landmarks are given].
    #[arg(long, value_parser = by_name::<ActorMethod>(METHODS), requires = "actor")]
    pub method: Option<ActorMethod>,
    /// What inverse rendering fits: a model of this actor, the mean head, or landmarks alone [default: own].
    #[arg(long, value_parser = by_name::<Fitted>(FITTED), requires = "actor")]
    pub fit: Option<Fitted>,
    /// The synthetic actor's head turns before a camera that stands; it wears a helmet otherwise.
    #[arg(long, requires = "actor")]
    pub turning: bool,
    /// A page with pictures, errors and curves of inverse rendering.
    #[arg(long, value_name = "FILE.html", requires = "actor")]
    pub report: Option<PathBuf>,
    /// Draws the synthetic actor and does nothing else: a folder for frames, exact motion, landmarks and weights, or an
    /// .mp4. A folder that was begun is continued.
    #[arg(long, value_name = "FOLDER|FILE.mp4", requires = "actor", conflicts_with_all = ["output", "report", "truth", "landmarks"])]
    pub draw: Option<PathBuf>,
}
