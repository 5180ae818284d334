//! The command `capture`: arguments to a job's configuration, the job's result to text or JSON.

use crate::capture_arguments::CaptureArguments;
use crate::learn_arguments::LearnLandmarksArguments;
use crate::output::{self, count};
use crate::progress::{watched, watched_keeping};
use anyhow::Result;
use understudy_jobs::capture::{
    Actor, ActorConfig, ActorMethod, ActorReport, CaptureConfig, CaptureReport, LandmarkNetConfig,
    LandmarkNetReport, Neutral, RenderConfig, RenderReport, RenderSettings, Source, WhichFace, capture,
    capture_rendered, draw_actor, learn_landmarks,
};
use understudy_jobs::{JobError, checkpoint_folder};

/// Seconds of a synthetic actor where none are named.
const ACTOR_SECONDS: f32 = 4.0;

/// Side of a drawn actor's pictures, pixels.
const ACTOR_SIDE: usize = 512;

/// `capture`.
pub fn run_capture(json: bool, arguments: CaptureArguments) -> Result<()> {
    let wrong = |problem: &str| JobError::setting("capture", problem);
    if let (Some(output), Some(name)) = (&arguments.draw, &arguments.actor) {
        let seconds = arguments.seconds.unwrap_or(ACTOR_SECONDS);
        let actor = Actor { name: name.clone(), seconds, truth: None };
        let config =
            ActorConfig { actor, output: output.clone(), side: ACTOR_SIDE, turning: arguments.turning };
        let report = watched(|progress| draw_actor(&config, progress))?;
        return output::print(json, &report, describe_drawn);
    }
    let rendered = match arguments.method {
        Some(method) => method == ActorMethod::Render,
        None => arguments.landmarks.is_none(),
    };
    refuse_unused(&arguments, rendered && arguments.actor.is_some())?;
    if let (true, Some(name)) = (rendered, &arguments.actor) {
        let [rig] = arguments.inputs.as_slice() else {
            return Err(wrong("a rig alone is wanted beside --camera or --actor").into());
        };
        let seconds = arguments.seconds.unwrap_or(ACTOR_SECONDS);
        let config = RenderConfig {
            actor: Actor { name: name.clone(), seconds, truth: arguments.truth },
            rig: rig.clone(),
            fitted: arguments.fit.unwrap_or_default(),
            turning: arguments.turning,
            settings: RenderSettings::default(),
            layout: arguments.layout,
            output: arguments.output,
            report: arguments.report,
            command: std::env::args().collect::<Vec<_>>().join(" "),
        };
        let report = watched(|progress| capture_rendered(&config, progress))?;
        return output::print(json, &report, describe_rendered);
    }
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
        landmarks: arguments.landmarks,
        twin: arguments.twin,
        neutral: arguments.neutral,
        face: arguments.face,
        seconds: arguments.seconds,
        rate: arguments.rate,
        mirror: arguments.mirror,
        layout: arguments.layout,
        output: arguments.output,
        ..CaptureConfig::new(source, rig)
    };
    let report = watched(|progress| capture(&config, progress))?;
    output::print(json, &report, describe)
}

/// Options that the chosen way of capturing would pass over in silence.
fn refuse_unused(arguments: &CaptureArguments, rendered: bool) -> Result<()> {
    let (way, unused) = if rendered {
        let unused = [
            ("--twin", arguments.twin.is_some()),
            ("--neutral", arguments.neutral != Neutral::Auto),
            ("--face", arguments.face != WhichFace::Only),
            ("--mirror", arguments.mirror),
            ("--rate", arguments.rate.is_some()),
        ];
        ("inverse rendering", unused.to_vec())
    } else {
        let unused = [
            ("--fit", arguments.fit.is_some()),
            ("--turning", arguments.turning),
            ("--report", arguments.report.is_some()),
            ("--rate", arguments.rate.is_some() && arguments.actor.is_some()),
        ];
        ("landmarks", unused.to_vec())
    };
    match unused.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => {
            Err(JobError::setting("capture", format!("{option} has no effect on capture by {way}")).into())
        }
        None => Ok(()),
    }
}

/// `learn landmarks`.
pub fn run_learn_landmarks(json: bool, arguments: LearnLandmarksArguments) -> Result<()> {
    let config = LandmarkNetConfig::for_minutes(arguments.output, arguments.minutes, arguments.seed)?;
    let parts = checkpoint_folder(&config.output);
    let report =
        watched_keeping("the training so far is", &parts, |progress| learn_landmarks(&config, progress))?;
    output::print(json, &report, describe_nets)
}

fn describe_nets(report: &LandmarkNetReport) -> String {
    let settings = &report.settings;
    let mut lines = vec![
        report.file.display().to_string(),
        format!(
            "{} of {}; {} steps of the face's net and {} of each region's, {:.0} s; {:.1} MB, {:.0} million multiplications per frame, {:.1} ms to search one",
            count(report.pictures, "picture"),
            count(settings.people, "drawn head"),
            settings.face_steps,
            settings.region_steps,
            report.seconds,
            report.bytes as f64 * 1e-6,
            report.million_multiplications,
            report.search_ms
        ),
    ];
    for (name, errors) in &report.errors {
        if errors.found == 0 {
            let frames = count(errors.frames, "frame");
            lines.push(format!("strangers, {name}: no face seen in {frames}; more --minutes teach more"));
            continue;
        }
        let regions: Vec<String> =
            errors.regions.iter().map(|(region, px)| format!("{region} {px:.2}")).collect();
        lines.push(format!(
            "strangers, {name}: a face in {} of {}; px at 256²: all {:.2}, 68 landmarks {:.2} (the first net alone {:.2}), contours of the lips {:.2}, pupils {:.2}; {}; scores {:.3}",
            errors.found,
            count(errors.frames, "frame"),
            errors.all,
            errors.landmarks,
            errors.coarse,
            errors.contours,
            errors.pupils,
            regions.join(", "),
            errors.scores
        ));
    }
    lines.join("\n")
}

fn describe(report: &CaptureReport) -> String {
    let mut lines: Vec<String> = report.file.iter().map(|file| file.display().to_string()).collect();
    lines.push(format!(
        "{} of {} × {} pixels at {} per second; a face in {:.1} % of them, searched for {}, at rest in frame {}",
        count(report.frames, "frame"),
        report.size.0,
        report.size.1,
        report.rate,
        100.0 * report.seen as f64 / report.frames as f64,
        match report.searches {
            1 => "once".into(),
            times => format!("{times} times"),
        },
        report.neutral
    ));
    let mut driven = Vec::new();
    if report.points > 0 {
        driven.push(format!("{} of the twin", count(report.points, "point")));
    }
    if report.named > 0 {
        driven.push(format!("{} by the names of scores", count(report.named, "control")));
    }
    let [yaw, pitch, roll] = report.head_degrees;
    lines.push(format!(
        "'{}' is driven by {}; its head turns up to {yaw:.0}° aside, {pitch:.0}° up or down, {roll:.0}° tilted",
        report.rig,
        driven.join(" and ")
    ));
    if let (Some(points), Some(scores)) = (report.points_mm, report.scores_mm) {
        lines.push(format!(
            "points are {points:.2} mm from the actor's in the mean; scores alone would leave {scores:.2} mm"
        ));
    }
    lines.push(format!(
        "{:.1} ms per frame to watch and {:.1} ms to drive; {:.0} frames per second from picture to controls, waiting for pictures included",
        report.watch_ms, report.drive_ms, report.frames_per_second
    ));
    lines.join("\n")
}

fn describe_drawn(report: &ActorReport) -> String {
    let kept = match report.kept {
        0 => String::new(),
        kept => format!(", {kept} of them left by an earlier run"),
    };
    format!("{}\n{}{kept}", report.output.display(), count(report.frames, "frame"))
}

fn describe_rendered(report: &RenderReport) -> String {
    let mut lines: Vec<String> = report.file.iter().map(|file| file.display().to_string()).collect();
    lines.push(format!(
        "{} of {} at {} per second drive {} of '{}'; distances on the mean head, mm:",
        count(report.frames, "frame"),
        report.actor,
        report.rate,
        count(report.driven, "control"),
        report.rig
    ));
    let widest = report.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    lines.push(format!("  {:widest$}   front  worst frame  landmarks  ms per frame", ""));
    for row in &report.rows {
        let ms = row.ms.map_or_else(|| "-".into(), |ms| format!("{ms:.1}"));
        lines.push(format!(
            "  {:widest$}  {:6.2}  {:11.2}  {:9.2}  {ms:>12}",
            row.name, row.front_mm, row.worst_mm, row.landmarks_mm
        ));
    }
    lines.push(format!(
        "pupils {:.2}° off in the mean; {:.1} iterations per frame, and {:.1} ms of optical flow",
        report.pupils_degrees, report.iterations, report.flow_ms
    ));
    if let Some(degrees) = report.head_degrees {
        lines.push(format!("the head's turn is {degrees:.2}° off at most"));
    }
    lines.join("\n")
}
