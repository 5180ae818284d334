//! `capture`: an actor's video, a camera or a synthetic actor in, a take of the rig's controls out. Where frames come from is
//! in `frames.rs` and `ffmpeg.rs`, watching the actor in `watching.rs`, driving the rig in `driving.rs`, files in `output.rs`.
//! Start at [`capture()`].

mod actor;
mod driving;
mod ffmpeg;
mod frames;
mod landmark_net;
mod output;
mod rendering;
#[cfg(test)]
mod tests;
mod watching;

pub use actor::{ActorConfig, ActorReport, cast, draw_actor};
pub use frames::Frames;
pub use landmark_net::{LandmarkNetConfig, LandmarkNetReport, learn_landmarks, test_frames};
pub use rendering::{ActorMethod, Fitted, RenderConfig, RenderReport, RenderRow, capture_rendered};
pub use understudy_capture::inverse_rendering::{Freedom, RenderSettings};

use crate::invert::Layout;
use crate::outputs::{check_distinct, check_file};
use crate::pose::Subject;
use crate::{Event, JobError, Watch};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

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

impl Source {
    /// What messages call it.
    fn name(&self) -> &Path {
        match self {
            Self::Video(path) | Self::Camera(path) => path,
            Self::Actor(actor) => Path::new(&actor.name),
        }
    }
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
    /// Found among the frames: the one with the least expression, looking ahead.
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

/// Which face is followed where there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhichFace {
    /// There must be one alone.
    #[default]
    Only,
    /// The largest in the picture.
    Largest,
    /// Furthest to the left of the picture.
    Left,
    /// Furthest to the right.
    Right,
}

/// What to capture, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureConfig {
    /// The actor.
    pub source: Source,
    /// The rig that is driven.
    pub rig: String,
    /// MediaPipe's `.task` file, or nets that `learn landmarks` made.
    pub landmarks: Option<PathBuf>,
    /// A twin of the rig that learned to follow points.
    pub twin: Option<PathBuf>,
    /// The actor at rest.
    pub neutral: Neutral,
    /// Which face is followed.
    pub face: WhichFace,
    /// How long is watched, s.
    pub seconds: Option<f32>,
    /// Frames per second, where not the source's own.
    pub rate: Option<f32>,
    /// Whether left and right are exchanged.
    pub mirror: bool,
    /// How a table is laid out.
    pub layout: Layout,
    /// The take: `.csv`, `.glb`, `.mp4` or `.png`.
    pub output: Option<PathBuf>,
}

impl CaptureConfig {
    /// With what serves users.
    pub fn new(source: Source, rig: impl Into<String>) -> Self {
        Self {
            source,
            rig: rig.into(),
            landmarks: None,
            twin: None,
            neutral: Neutral::Auto,
            face: WhichFace::Only,
            seconds: None,
            rate: None,
            mirror: false,
            layout: Layout::Auto,
            output: None,
        }
    }
}

/// What was captured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaptureReport {
    /// The file, where one was asked for.
    pub file: Option<PathBuf>,
    /// The rig.
    pub rig: String,
    /// Frames.
    pub frames: usize,
    /// Frames per second.
    pub rate: f32,
    /// Pixels across and down.
    pub size: (usize, usize),
    /// Frames in which the face was seen.
    pub seen: usize,
    /// How often it was searched for.
    pub searches: usize,
    /// From which frame, and how many, no face was seen.
    pub lost: Vec<(usize, usize)>,
    /// The frame that was taken as the actor at rest.
    pub neutral: usize,
    /// Controls that follow a score by their name.
    pub named: usize,
    /// Points of the twin that follow a landmark.
    pub points: usize,
    /// Size of the character's face to the canonical one of 20 cm.
    pub scale: Option<f64>,
    /// How far the twin's points are from the actor's, mean, mm: by inverse kinematics.
    pub points_mm: Option<f32>,
    /// The same where scores alone drive the rig.
    pub scores_mm: Option<f32>,
    /// Largest turn of the head: yaw, pitch, roll, degrees.
    pub head_degrees: [f32; 3],
    /// From a frame to points and scores, ms.
    pub watch_ms: f64,
    /// From points and scores to controls, ms.
    pub drive_ms: f64,
    /// Frames per second of both, on the thread that watches and drives; a video's decoder and a synthetic actor's
    /// drawing beside it included in the time.
    pub frames_per_second: f64,
}

/// Captures.
pub fn capture(config: &CaptureConfig, watch: &dyn Watch) -> Result<CaptureReport, JobError> {
    let kind = config.output.as_deref().map(output::kind).transpose()?;
    check(config)?;
    let mut watcher = watching::Watcher::open(config)?;
    let mut subject = Subject::open(&config.rig, None, watch)?;
    let twin =
        config.twin.as_ref().map(|path| Subject::open(&path.to_string_lossy(), None, watch)).transpose()?;
    let mut driving = driving::Driving::new(config, &subject, twin.as_ref(), watcher.geometry())?;
    let mut source = frames::open(&config.source, config.rate, config.seconds, watch)?;
    let thumbnails = kind.is_some_and(output::Kind::shows_the_actor);
    let start = Instant::now();
    let watched = watcher.watch(source.as_mut(), config, thumbnails, watch)?;
    let watch_seconds = start.elapsed().as_secs_f64();
    drop(source);
    let neutral = watched.neutral(config, watcher.geometry())?;
    let start = Instant::now();
    let take = driving.drive(&watched, neutral, &subject, watch)?;
    let drive_seconds = start.elapsed().as_secs_f64();
    let frames = watched.frames.len();
    let lost = watched.lost();
    for (from, count) in &lost {
        let message = format!(
            "no face in {count} frames from frame {from} ({:.2} s): the last pose is held, then eases to rest",
            *from as f32 / watched.rate
        );
        watch.event(Event::Warning { message: &message });
    }
    if let (Some(path), Some(kind)) = (&config.output, kind) {
        output::write(path, kind, config.layout, &mut subject, &take, &watched, watch)?;
    }
    if let Source::Actor(actor) = &config.source {
        actor::write_truth_of(actor)?;
    }
    let mean = |of: fn(&[f32; 2]) -> f32| {
        let list = &take.points_mm;
        (!list.is_empty()).then(|| list.iter().map(of).sum::<f32>() / list.len() as f32)
    };
    let head = |axis: usize| take.performances.iter().map(|now| now.head[axis].abs()).fold(0.0, f32::max);
    Ok(CaptureReport {
        file: config.output.clone(),
        rig: config.rig.clone(),
        frames,
        rate: watched.rate,
        size: watched.size,
        seen: watched.frames.iter().flatten().count(),
        searches: watched.searches,
        lost,
        neutral,
        named: driving.named(),
        points: driving.points(),
        scale: driving.scale(),
        points_mm: mean(|pair| pair[0]),
        scores_mm: mean(|pair| pair[1]),
        head_degrees: [0, 1, 2].map(head),
        watch_ms: 1e3 * watched.seconds / frames as f64,
        drive_ms: 1e3 * drive_seconds / frames as f64,
        frames_per_second: frames as f64 / (watch_seconds + drive_seconds).max(1e-9),
    })
}

/// What can be said before any work.
fn check(config: &CaptureConfig) -> Result<(), JobError> {
    for (name, value) in [("seconds", config.seconds), ("rate", config.rate)] {
        if value.is_some_and(|value| !(value.is_finite() && value > 0.0 && value <= 1e5)) {
            return Err(JobError::setting(name, "a number above 0 is wanted"));
        }
    }
    let mut inputs: Vec<&Path> =
        [&config.landmarks, &config.twin].into_iter().flatten().map(PathBuf::as_path).collect();
    inputs.push(Path::new(&config.rig));
    let mut truth = None;
    match &config.source {
        Source::Video(path) => {
            if !path.exists() {
                return Err(JobError::unusable(path, "there is no such video"));
            }
            inputs.push(path);
        }
        Source::Camera(_) => {}
        Source::Actor(actor) => truth = actor.truth.as_deref(),
    }
    check_paths(&inputs, config.output.as_deref(), truth)
}

/// Whether the take and the truth can be written beside a rig.
fn check_outputs(rig: &str, output: Option<&Path>, truth: Option<&Path>) -> Result<(), JobError> {
    check_paths(&[Path::new(rig)], output, truth)
}

fn check_paths(inputs: &[&Path], output: Option<&Path>, truth: Option<&Path>) -> Result<(), JobError> {
    for path in [output, truth].into_iter().flatten() {
        check_file(path, inputs)?;
    }
    if let (Some(output), Some(truth)) = (output, truth) {
        check_distinct(&[("the take", output), ("the truth", truth)])?;
    }
    Ok(())
}
