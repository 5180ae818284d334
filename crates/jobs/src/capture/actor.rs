//! Synthetic actors as a source of frames, and as files: pictures, landmarks, exact motion and the weights behind them.

use super::Actor;
use super::ffmpeg::Film;
use super::frames::{Frames, fill};
use crate::outputs::check_folder;
use crate::{Event, JobError, Watch};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use understudy_capture::Frame;
use understudy_capture::actors::{Cast, HeadParts, Noise, Performance, Played, take};
use understudy_io::live_link::{WeightTable, weights_to_text};
use understudy_io::npz::NpzWriter;
use understudy_io::{read_bytes, write_atomic};
use understudy_report::Picture;

/// Frames per second.
pub(super) const RATE: f64 = 30.0;
/// Side of a frame, pixels.
pub(super) const SIDE: usize = 512;
/// Longest performance, s.
const LONGEST: f32 = 3600.0;

/// Who plays: somebody of the cast, or the rig's own head in the rendered style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// `synthetic:N`.
    Synthetic(u64),
    /// `rendered:N`: the mean head with house paint; N is what it plays.
    Rendered(u64),
}

impl Who {
    pub fn parse(name: &str) -> Result<Self, JobError> {
        let wrong = || {
            let problem = format!("'{name}' is neither synthetic:N nor rendered:N with a whole number N");
            JobError::setting("actor", problem)
        };
        let (kind, number) = name.split_once(':').ok_or_else(wrong)?;
        let number = number.parse().map_err(|_| wrong())?;
        match kind {
            "synthetic" => Ok(Self::Synthetic(number)),
            "rendered" => Ok(Self::Rendered(number)),
            _ => Err(wrong()),
        }
    }

    /// Of what is played.
    pub fn seed(self) -> u64 {
        match self {
            Self::Synthetic(seed) | Self::Rendered(seed) => seed,
        }
    }
}

/// Everyone who can be made from the head model in the data folder.
pub fn cast() -> Result<Cast, JobError> {
    let path = crate::rigs::real_file("ict")?;
    let face = understudy_io::real::ict(&path)?;
    let modes = path.with_file_name("identities.npz");
    let identities = understudy_io::real::ict_identities(&modes, face.mesh.vertex_count())?;
    let parts = HeadParts {
        mesh: face.mesh,
        shapes: face.shapes,
        landmarks: face.landmarks,
        materials: face.materials,
        face_materials: face.face_materials,
        identities,
    };
    Cast::new(parts).map_err(|error| JobError::unusable(&path, error))
}

/// A performance of an actor by name.
pub(super) fn performance(
    cast: &Cast,
    actor: &Actor,
    side: usize,
    turning: bool,
) -> Result<Performance, JobError> {
    let who = Who::parse(&actor.name)?;
    if !(actor.seconds > 0.0 && actor.seconds <= LONGEST) {
        return Err(JobError::setting(
            "seconds",
            format!("{} is not above 0 and at most {LONGEST}", actor.seconds),
        ));
    }
    let failed = |error| JobError::unusable(&actor.name, error);
    let person = match who {
        Who::Synthetic(seed) => cast.actor(seed, side).map_err(failed)?,
        Who::Rendered(_) => cast.rendered(side),
    };
    let take = take(&cast.shape_names(), f64::from(actor.seconds), RATE, who.seed(), turning);
    Ok(Performance { actor: person, take, noise: Noise { seed: who.seed(), ..Noise::default() } })
}

/// The weights that make a performance, as a table.
pub(super) fn truth_table(cast: &Cast, performance: &Performance) -> Result<String, String> {
    let frames = performance.take.frames.iter().map(|frame| frame.weights.clone()).collect();
    weights_to_text(&WeightTable { names: cast.shape_names(), frames, rate: Some(RATE as f32) })
}

/// Writes the truth where it is wanted.
pub(super) fn write_truth(
    cast: &Cast,
    performance: &Performance,
    path: Option<&Path>,
) -> Result<(), JobError> {
    let Some(path) = path else { return Ok(()) };
    let text = truth_table(cast, performance).map_err(|problem| JobError::unusable(path, problem))?;
    Ok(write_atomic(path, text.as_bytes())?)
}

/// An actor who is drawn frame by frame.
pub(super) struct ActorFrames {
    performance: Performance,
    next: usize,
}

/// Opens an actor as a source of frames.
pub(super) fn open(actor: &Actor) -> Result<Box<dyn Frames>, JobError> {
    Who::parse(&actor.name)?;
    let cast = cast()?;
    let performance = performance(&cast, actor, SIDE, false)?;
    Ok(Box::new(ActorFrames { performance, next: 0 }))
}

/// Writes the weights that made an actor's frames, where they are wanted: after the take, so that one which fails leaves no
/// truth behind.
pub(super) fn write_truth_of(actor: &Actor) -> Result<(), JobError> {
    if actor.truth.is_none() {
        return Ok(());
    }
    let cast = cast()?;
    let performance = performance(&cast, actor, SIDE, false)?;
    write_truth(&cast, &performance, actor.truth.as_deref())
}

impl Frames for ActorFrames {
    fn size(&self) -> (usize, usize) {
        (SIDE, SIDE)
    }

    fn rate(&self) -> f32 {
        RATE as f32
    }

    fn count(&self) -> Option<usize> {
        Some(self.performance.len())
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, JobError> {
        if self.next >= self.performance.len() {
            return Ok(false);
        }
        let played = self.performance.play(self.next);
        self.next += 1;
        fill(frame, played.frame.width(), played.frame.height(), played.frame.rgb());
        Ok(true)
    }
}

/// A frame as a picture.
pub(super) fn picture(frame: &Frame) -> Picture {
    let mut picture = Picture::new(frame.width(), frame.height(), [0, 0, 0, 255]);
    for (out, rgb) in picture.pixels_mut().chunks_exact_mut(4).zip(frame.rgb().chunks_exact(3)) {
        out[..3].copy_from_slice(rgb);
    }
    picture
}

/// What is drawn to a folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActorConfig {
    /// Who plays, and how long; `truth` is not used.
    pub actor: Actor,
    /// A folder for all of it, or an `.mp4` for the pictures alone.
    pub output: PathBuf,
    /// Side of a frame, pixels.
    pub side: usize,
    /// Whether the head turns.
    pub turning: bool,
}

/// What was drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActorReport {
    /// Where.
    pub output: PathBuf,
    /// Frames in all.
    pub frames: usize,
    /// Frames that an earlier run had left.
    pub kept: usize,
}

/// Says what a folder holds: a run goes on only where this is the same.
const MANIFEST: &str = "actor.toml";

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Manifest {
    actor: String,
    seconds: f32,
    side: usize,
    turning: bool,
    rate: f64,
    frames: usize,
    /// Of the drawing: another version draws other pictures.
    version: u32,
}

/// Draws an actor's performance: `frame-000000.png`, `flow-000001.npz` (motion from the frame before, pixels, and where it is
/// known), `weights.csv`, `landmarks.csv`. Files appear whole; a run that was killed goes on where it stopped, with the
/// same bytes.
pub fn draw_actor(config: &ActorConfig, watch: &dyn Watch) -> Result<ActorReport, JobError> {
    if !(16..=4096).contains(&config.side) {
        return Err(JobError::setting("side", format!("{} is not 16 to 4096", config.side)));
    }
    Who::parse(&config.actor.name)?;
    let film = config.output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mp4"));
    if film {
        crate::outputs::check_file(&config.output, &[])?;
    } else {
        check_folder(&config.output)?;
    }
    let cast = cast()?;
    let performance = performance(&cast, &config.actor, config.side, config.turning)?;
    let count = performance.len();
    watch.event(Event::Started { what: "drawing the actor", total: count as u64, unit: "frames" });
    let kept = if film {
        draw_film(config, &performance, watch)?;
        0
    } else {
        draw_folder(config, &cast, &performance, watch)?
    };
    watch.event(Event::Finished);
    Ok(ActorReport { output: config.output.clone(), frames: count, kept })
}

fn draw_film(config: &ActorConfig, performance: &Performance, watch: &dyn Watch) -> Result<(), JobError> {
    let mut film = Film::begin(&config.output, config.side, config.side, RATE as f32)?;
    for index in 0..performance.len() {
        film.frame(performance.play(index).frame.rgb())?;
        watch.event(Event::Step { done: index as u64 + 1 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    film.finish()
}

fn draw_folder(
    config: &ActorConfig,
    cast: &Cast,
    performance: &Performance,
    watch: &dyn Watch,
) -> Result<usize, JobError> {
    let folder = &config.output;
    let manifest = Manifest {
        actor: config.actor.name.clone(),
        seconds: config.actor.seconds,
        side: config.side,
        turning: config.turning,
        rate: RATE,
        frames: performance.len(),
        version: 1,
    };
    let at = folder.join(MANIFEST);
    if at.exists() {
        let text = String::from_utf8_lossy(&read_bytes(&at)?).into_owned();
        if toml::from_str::<Manifest>(&text).ok().as_ref() != Some(&manifest) {
            return Err(JobError::unusable(folder, "holds another performance; choose another folder"));
        }
    } else if folder.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(JobError::unusable(
            folder,
            "is not empty and holds no performance; choose another folder",
        ));
    } else {
        let text = toml::to_string(&manifest).map_err(|error| JobError::unusable(&at, error))?;
        write_atomic(&at, text.as_bytes())?;
    }
    let mut marks: Vec<Vec<f32>> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut kept = 0;
    let mut before: Option<(usize, Played)> = None;
    for index in 0..performance.len() {
        let (png, npz) =
            (folder.join(format!("frame-{index:06}.png")), folder.join(format!("flow-{index:06}.npz")));
        let done = png.is_file() && (index == 0 || npz.is_file());
        // Landmarks are cheap, and are written whole at the end.
        marks.push(mark_row(performance, index, &mut names));
        if done {
            kept += 1;
        } else {
            if index > 0 && before.as_ref().is_none_or(|(last, _)| last + 1 != index) {
                before = Some((index - 1, performance.play(index - 1)));
            }
            let played = performance.play(index);
            if let Some((_, before)) = &before {
                let flow = performance.flow(before, &played);
                let mut archive = NpzWriter::new();
                let shape = [flow.height, flow.width];
                archive.f32("flow", &[shape[0], shape[1], 2], flow.motion.as_flattened());
                let known: Vec<f32> = flow.known.iter().map(|known| f32::from(u8::from(*known))).collect();
                archive.f32("known", &shape, &known);
                archive.write(&npz)?;
            }
            write_atomic(&png, &picture(&played.frame).to_png())?;
            before = Some((index, played));
        }
        watch.event(Event::Step { done: index as u64 + 1 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    write_truth(cast, performance, Some(&folder.join("weights.csv")))?;
    let path = folder.join("landmarks.csv");
    let table = WeightTable { names, frames: marks, rate: Some(RATE as f32) };
    let text = weights_to_text(&table).map_err(|problem| JobError::unusable(&path, problem))?;
    write_atomic(&path, text.as_bytes())?;
    Ok(kept)
}

/// Exact landmarks of a frame, pixels: fixed points, inner lips, pupils.
fn mark_row(performance: &Performance, index: usize, names: &mut Vec<String>) -> Vec<f32> {
    let seen = performance.marks(index);
    let all = seen.fixed.iter().enumerate().map(|(at, place)| (format!("point_{at}"), place));
    let all =
        all.chain(seen.inner_lips.iter().enumerate().map(|(at, place)| (format!("inner_lip_{at}"), place)));
    let pupils = ["pupil_left", "pupil_right"].map(str::to_owned);
    let all: Vec<(String, &Option<[f64; 2]>)> = all.chain(pupils.into_iter().zip(&seen.pupils)).collect();
    if names.is_empty() {
        names.extend(all.iter().flat_map(|(name, _)| [format!("{name}.x"), format!("{name}.y")]));
    }
    all.iter().flat_map(|(_, place)| place.unwrap_or([-1.0; 2])).map(|value| value as f32).collect()
}
