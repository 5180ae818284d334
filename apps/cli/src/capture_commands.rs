//! The command `capture`: arguments to a job's configuration, the job's result to text or JSON.

use crate::capture_arguments::CaptureArguments;
use crate::output::{self, count};
use crate::progress::watched;
use anyhow::Result;
use understudy_jobs::JobError;
use understudy_jobs::capture::{Actor, CaptureConfig, Source, capture};

/// Seconds of a synthetic actor where none are named.
const ACTOR_SECONDS: f32 = 4.0;

/// `capture`.
pub fn run_capture(json: bool, arguments: CaptureArguments) -> Result<()> {
    let wrong = |problem: &str| JobError::setting("capture", problem);
    let mut inputs = arguments.inputs.into_iter();
    let (first, second) = (inputs.next().unwrap_or_default(), inputs.next());
    let (source, rig) = match (arguments.camera, arguments.actor, second) {
        (None, None, Some(rig)) => (Source::Video(first.into()), rig),
        (None, None, None) => {
            return Err(wrong("a video and a rig are wanted, or --camera or --actor and a rig").into());
        }
        (_, _, Some(_)) => return Err(wrong("a rig alone is wanted beside --camera or --actor").into()),
        (Some(device), _, None) => (Source::Camera(device), first),
        (None, Some(name), None) => {
            let seconds = arguments.seconds.unwrap_or(ACTOR_SECONDS);
            (Source::Actor(Actor { name, seconds, truth: arguments.truth }), first)
        }
    };
    let config = CaptureConfig {
        source,
        rig,
        landmarks: arguments.landmarks,
        twin: arguments.twin,
        neutral: arguments.neutral,
        output: arguments.output,
    };
    let report = watched(|progress| capture(&config, progress))?;
    output::print(json, &report, |report| count(report.frames, "frame"))
}
