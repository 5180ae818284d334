//! `capture`: an actor's video, a camera or a synthetic actor in, a take of the rig's controls out. Where frames come from is
//! in `frames.rs`. Start at [`capture()`].

mod frames;

pub use frames::Frames;

use crate::{JobError, Watch};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;

/// Where frames come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A video, a folder of pictures, or one picture.
    Video(PathBuf),
    /// A camera, by its device.
    Camera(PathBuf),
    /// An actor made by code.
    Actor(Actor),
}

/// A synthetic actor and what is played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actor {
    /// Which: `synthetic:7`.
    pub name: String,
    /// How long, s.
    pub seconds: f32,
    /// Where the weights that made the frames are written.
    pub truth: Option<PathBuf>,
}

/// Which frame shows the actor at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Neutral {
    /// Found among the frames.
    #[default]
    Auto,
    /// That one, counted from 0.
    Frame(usize),
}

impl FromStr for Neutral {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            number => {
                let frame =
                    number.parse().map_err(|_| format!("'{number}' is neither auto nor a frame's number"))?;
                Ok(Self::Frame(frame))
            }
        }
    }
}

/// What to capture, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureConfig {
    /// The actor.
    pub source: Source,
    /// The rig that is driven.
    pub rig: String,
    /// MediaPipe's `.task` file.
    pub landmarks: Option<PathBuf>,
    /// A twin of the rig that learned to follow points.
    pub twin: Option<PathBuf>,
    /// The actor at rest.
    pub neutral: Neutral,
    /// The take: `.csv`, `.glb`, `.mp4` or `.png`.
    pub output: Option<PathBuf>,
}

/// What was captured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaptureReport {
    /// Frames.
    pub frames: usize,
}

/// Captures.
pub fn capture(config: &CaptureConfig, _watch: &dyn Watch) -> Result<CaptureReport, JobError> {
    Err(JobError::setting("capture", format!("{:?} is not supported yet", config.source)))
}
