//! A take that people look at: morph targets in a `.glb`, or pictures in a `.gif` (our own encoder) or an `.mp4` (the
//! program `ffmpeg`, where it is there).

use crate::convert::baked_glb;
use crate::stage::{Shot, Stage, View};
use crate::{Event, JobError, Watch};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use understudy_core::Controls;
use understudy_report::{Gif, Picture};
use understudy_rigs::{Rig, RigPose};

/// Frames of controls and who plays them.
pub(super) struct Take<'a> {
    pub rig: &'a dyn Rig,
    pub frames: &'a [Vec<f32>],
    pub rate: f32,
}

/// How a take is written, but for a table of controls.
pub(super) enum Film {
    Glb,
    Gif { view: View, size: usize },
    Mp4 { view: View, size: usize },
}

/// A film holds its frames in memory: at most so many coordinates.
const MOST_COORDINATES: usize = 1 << 30;
/// The `ffmpeg` that is used.
const FFMPEG: &str = "ffmpeg";

impl Film {
    /// What the name of the file says; nothing for a table.
    pub fn of(output: &Path, size: usize, view: &str) -> Result<Option<Self>, JobError> {
        let extension = output.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
        if !(16..=2048).contains(&size) {
            return Err(JobError::setting("size", format!("{size} is not between 16 and 2048 pixels")));
        }
        // Films of this kind halve their colours: an even number of pixels.
        let size = size & !1;
        match extension.as_str() {
            "csv" => Ok(None),
            "glb" => Ok(Some(Self::Glb)),
            "gif" => Ok(Some(Self::Gif { view: View::parse(view)?, size })),
            "mp4" => {
                let there =
                    Command::new(FFMPEG).arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status();
                if !there.is_ok_and(|status| status.success()) {
                    let problem = "needs the program ffmpeg, which is not there; .gif needs nothing";
                    return Err(JobError::unusable(output, problem));
                }
                Ok(Some(Self::Mp4 { view: View::parse(view)?, size }))
            }
            _ => Err(JobError::unusable(output, "is none of .csv, .glb, .gif, .mp4")),
        }
    }

    /// Writes the file, whole or not at all.
    pub fn write(&self, take: &Take<'_>, output: &Path, watch: &dyn Watch) -> Result<(), JobError> {
        let vertices = take.rig.mesh().vertex_count();
        if take.frames.len().saturating_mul(3 * vertices) > MOST_COORDINATES {
            let problem =
                format!("{} frames of {vertices} vertices are too many for a film", take.frames.len());
            return Err(JobError::unusable(output, problem));
        }
        let mut pose = RigPose::default();
        let mut shots = Vec::with_capacity(take.frames.len());
        watch.event(Event::Started { what: "posing", total: take.frames.len() as u64, unit: "frames" });
        for (done, controls) in take.frames.iter().enumerate() {
            take.rig
                .evaluate(&Controls(controls.clone()), &mut pose)
                .map_err(JobError::rig(take.rig.name()))?;
            shots.push(Shot { vertices: pose.vertices.clone(), caption: String::new() });
            watch.event(Event::Step { done: done as u64 + 1 });
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
        watch.event(Event::Finished);
        let stage = |size| Stage { mesh: take.rig.mesh(), colours: take.rig.colours(), size, dark: false };
        match self {
            Self::Glb => {
                let frames: Vec<_> = shots.into_iter().map(|shot| shot.vertices).collect();
                let rig = take.rig;
                let bytes = baked_glb(rig.name(), rig.mesh(), Some(rig), &frames, take.rate, watch)?;
                Ok(understudy_io::write_atomic(output, &bytes)?)
            }
            Self::Gif { view, size } => {
                let bytes = gif(&stage(*size), &shots, view, take.rate, output, watch)?;
                Ok(understudy_io::write_atomic(output, &bytes)?)
            }
            Self::Mp4 { view, size } => mp4(&stage(*size), &shots, view, take.rate, output, watch),
        }
    }
}

/// Draws every frame; `each` may end it with an error.
fn draw(
    stage: &Stage<'_>,
    shots: &[Shot],
    view: &View,
    watch: &dyn Watch,
    mut each: impl FnMut(&Picture) -> Result<(), JobError>,
) -> Result<(), JobError> {
    watch.event(Event::Started { what: "drawing", total: shots.len() as u64, unit: "frames" });
    let (mut done, mut outcome) = (0, Ok(()));
    stage.film(shots, view, |picture| {
        outcome = each(&picture);
        done += 1;
        watch.event(Event::Step { done });
        if outcome.is_ok() && watch.should_stop() {
            outcome = Err(JobError::Stopped);
        }
        outcome.is_ok()
    });
    watch.event(Event::Finished);
    outcome
}

/// Frames whose colours make the palette.
const SAMPLED: usize = 12;

fn gif(
    stage: &Stage<'_>,
    shots: &[Shot],
    view: &View,
    rate: f32,
    output: &Path,
    watch: &dyn Watch,
) -> Result<Vec<u8>, JobError> {
    let step = shots.len().div_ceil(SAMPLED).max(1);
    let some: Vec<Shot> = shots.iter().step_by(step).cloned().collect();
    let samples = stage.pictures(&some, view);
    // 24 frames per second are 4.17 hundredths each, which no GIF can say: frames are chosen by their time instead.
    let wanted = gif_rate(rate);
    let samples: Vec<&Picture> = samples.iter().collect();
    let too_large = || JobError::unusable(output, "is too large for a GIF");
    let mut gif = Gif::new(&samples, wanted).ok_or_else(too_large)?;
    let count = ((shots.len() as f32 / rate * wanted).round() as usize).max(1);
    let frame = |i: usize| ((i as f32 / wanted * rate).round() as usize).min(shots.len() - 1);
    let chosen: Vec<Shot> = (0..count).map(|i| shots[frame(i)].clone()).collect();
    draw(stage, &chosen, view, watch, |picture| {
        gif.add(picture);
        Ok(())
    })?;
    Ok(gif.finish())
}

/// The rate of a GIF nearest to another: whole hundredths of a second per frame.
fn gif_rate(rate: f32) -> f32 {
    100.0 / (100.0 / rate.clamp(1.0, 50.0)).round()
}

/// A program that is ended with what owns it.
struct Encoder(Child);

impl Drop for Encoder {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn mp4(
    stage: &Stage<'_>,
    shots: &[Shot],
    view: &View,
    rate: f32,
    output: &Path,
    watch: &dyn Watch,
) -> Result<(), JobError> {
    let failed = |error: std::io::Error| JobError::unusable(output, format!("{FFMPEG}: {error}"));
    // The encoder seeks in what it writes: beside the place where the film goes, which is then taken by one rename.
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let part = folder.join(format!(".{name}.{}.part.mp4", std::process::id()));
    let side = stage.size;
    let child = Command::new(FFMPEG)
        .args(["-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgba"])
        .args(["-s", &format!("{side}x{side}"), "-r", &rate.to_string(), "-i", "-"])
        .args(["-pix_fmt", "yuv420p", "-movflags", "+faststart"])
        .arg(&part)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut encoder = Encoder(child);
    let mut input = encoder.0.stdin.take();
    let written = draw(stage, shots, view, watch, |picture| match &mut input {
        Some(input) => input.write_all(picture.pixels()).map_err(failed),
        None => Ok(()),
    });
    drop(input);
    let ended = written.and_then(|()| {
        let mut said = String::new();
        if let Some(mut errors) = encoder.0.stderr.take() {
            std::io::Read::read_to_string(&mut errors, &mut said).map_err(failed)?;
        }
        let status = encoder.0.wait().map_err(failed)?;
        if !status.success() {
            let line = said.lines().last().unwrap_or("ended with an error").to_owned();
            return Err(JobError::unusable(output, format!("{FFMPEG}: {line}")));
        }
        std::fs::rename(&part, output).map_err(failed)
    });
    if ended.is_err() {
        // It may not be there.
        let _ = std::fs::remove_file(&part);
    }
    ended
}
