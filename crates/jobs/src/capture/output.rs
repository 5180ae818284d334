//! A take as a file: a table of controls, a mesh that moves, a film or a sheet of the actor beside the character.

use super::driving::{Take, live_link};
use super::ffmpeg::Film;
use super::watching::{Watched, shrunk};
use crate::invert::Layout;
use crate::pose::Subject;
use crate::stage::{Shot, Stage, View};
use crate::{Event, JobError, Watch, convert};
use std::path::Path;
use understudy_capture::Frame;
use understudy_core::{Vec3, arkit};
use understudy_io::live_link::{WeightTable, to_text, weights_to_text};
use understudy_report::Picture;

/// What a file's extension asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Table,
    Model,
    Film,
    Sheet,
}

impl Kind {
    pub fn shows_the_actor(self) -> bool {
        matches!(self, Self::Film | Self::Sheet)
    }
}

/// Side of the pictures of a film, pixels.
const SIDE: usize = 360;
/// Frames of a sheet.
const SHEET: usize = 8;

pub(super) fn kind(path: &Path) -> Result<Kind, JobError> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref() {
        Some("csv") => Ok(Kind::Table),
        Some("glb") => Ok(Kind::Model),
        Some("mp4") => Ok(Kind::Film),
        Some("png") => Ok(Kind::Sheet),
        _ => Err(JobError::unusable(path, "takes are written as .csv (controls), .glb, .mp4 or .png")),
    }
}

pub(super) fn write(
    path: &Path,
    kind: Kind,
    layout: Layout,
    subject: &mut Subject,
    take: &Take,
    watched: &Watched,
    watch: &dyn Watch,
) -> Result<(), JobError> {
    let bytes = match kind {
        Kind::Table => table(path, layout, subject, take)?.into_bytes(),
        Kind::Model => {
            let frames = take
                .controls
                .iter()
                .map(|controls| subject.vertices(controls))
                .collect::<Result<Vec<_>, _>>()?;
            let mesh = subject.mesh()?;
            convert::baked_glb("take", &mesh, subject.rig(), &frames, take.rate, watch)?
        }
        Kind::Film => return film(path, subject, take, watched, watch),
        Kind::Sheet => {
            let count = take.controls.len().min(SHEET);
            let frames: Vec<usize> =
                (0..count).map(|index| index * (take.controls.len() - 1) / (count - 1).max(1)).collect();
            let pairs = pictures(subject, take, watched, &frames)?;
            let columns = count.min(4);
            let mut sheet = Picture::new(columns * 2 * SIDE, count.div_ceil(columns) * SIDE, [255; 4]);
            for (index, pair) in pairs.iter().enumerate() {
                sheet.paste(pair, index % columns * 2 * SIDE, index / columns * SIDE);
            }
            sheet.to_png()
        }
    };
    Ok(understudy_io::write_atomic(path, &bytes)?)
}

fn table(path: &Path, layout: Layout, subject: &Subject, take: &Take) -> Result<String, JobError> {
    let names: Vec<String> = subject.specs().iter().map(|spec| spec.name.clone()).collect();
    let known = |name: &String| arkit::canonical(name).is_some() || arkit::half_of(name).is_some();
    let numbers = || {
        let number = |spec: &&understudy_core::ControlSpec| spec.kind == understudy_core::ControlKind::Number;
        subject.specs().iter().filter(number).map(|spec| spec.name.clone())
    };
    let live = match layout {
        Layout::Auto => numbers().count() > 0 && numbers().all(|name| known(&name)),
        Layout::Plain => false,
        Layout::LiveLink => true,
    };
    let wrong = |problem: String| JobError::unusable(path, problem);
    if live {
        return to_text(&live_link(take)).map_err(wrong);
    }
    let frames = take.controls.iter().map(|controls| controls.0.clone()).collect();
    weights_to_text(&WeightTable { names, frames, rate: Some(take.rate) }).map_err(wrong)
}

fn film(
    path: &Path,
    subject: &mut Subject,
    take: &Take,
    watched: &Watched,
    watch: &dyn Watch,
) -> Result<(), JobError> {
    let count = take.controls.len();
    watch.event(Event::Started { what: "drawing the film", total: count as u64, unit: "frames" });
    let mut film = Film::begin(path, 2 * SIDE, SIDE, take.rate)?;
    // A few at a time: vertices of a whole take need not be in memory.
    let all: Vec<usize> = (0..count).collect();
    for chunk in all.chunks(16) {
        for picture in pictures(subject, take, watched, chunk)? {
            let rgb: Vec<u8> =
                picture.pixels().chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
            film.frame(&rgb)?;
        }
        watch.event(Event::Step { done: chunk.last().map_or(0, |last| *last as u64 + 1) });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    watch.event(Event::Finished);
    film.finish()
}

/// The actor with points, and the character, side by side.
fn pictures(
    subject: &mut Subject,
    take: &Take,
    watched: &Watched,
    frames: &[usize],
) -> Result<Vec<Picture>, JobError> {
    let mesh = subject.mesh()?;
    let colours = subject.rig().and_then(|rig| rig.colours()).map(<[Vec3]>::to_vec);
    let stage = Stage { mesh: &mesh, colours: colours.as_deref(), size: SIDE, dark: false };
    let rest = Shot { vertices: subject.vertices(&subject.specs().defaults())?, caption: String::new() };
    let mut shots = vec![rest];
    for frame in frames {
        shots.push(Shot { vertices: subject.vertices(&take.controls[*frame])?, caption: String::new() });
    }
    let drawn = stage.portraits(&shots, &View::named("front"));
    Ok(frames
        .iter()
        .zip(drawn.into_iter().skip(1))
        .map(|(frame, character)| {
            let mut pair = Picture::new(2 * SIDE, SIDE, [0, 0, 0, 255]);
            pair.paste(&actor(watched, *frame), 0, 0);
            pair.paste(&character, SIDE, 0);
            pair
        })
        .collect())
}

/// The actor's frame in a square, with the points of the face.
fn actor(watched: &Watched, index: usize) -> Picture {
    let mut picture = Picture::new(SIDE, SIDE, [0, 0, 0, 255]);
    let Some(frame) = watched.pictures.get(index) else { return picture };
    let frame = fitted(frame);
    let (left, top) = ((SIDE - frame.width()) / 2, (SIDE - frame.height()) / 2);
    for y in 0..frame.height() {
        for x in 0..frame.width() {
            let [r, g, b] = frame.pixel(x, y);
            picture.set_pixel(left + x, top + y, [r, g, b, 255]);
        }
    }
    if let Some(seen) = watched.frames.get(index).and_then(Option::as_ref) {
        for point in &seen.points {
            let x = left as f32 + point.x * frame.width() as f32;
            let y = top as f32 + point.y * frame.height() as f32;
            if x >= 0.0 && y >= 0.0 && x < SIDE as f32 && y < SIDE as f32 {
                picture.blend_pixel(x as usize, y as usize, [90, 255, 140, 255], 0.8);
            }
        }
    }
    picture
}

/// Made small enough for the square.
fn fitted(frame: &Frame) -> Frame {
    let height = if frame.width() > frame.height() { SIDE * frame.height() / frame.width() } else { SIDE };
    shrunk(frame, height.max(1))
}
