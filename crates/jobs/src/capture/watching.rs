//! The first half: every frame of the actor is looked at, and what was seen is kept. The actor's rest is known only when all were
//! seen.

use super::frames::Frames;
use super::{CaptureConfig, Neutral, WhichFace};
use crate::{Event, JobError, Watch};
use std::path::PathBuf;
use std::time::Instant;
use understudy_capture::Frame;
use understudy_capture::landmark_nets::{LandmarkNets, is_landmark_file};
use understudy_capture::mediapipe::{Choice, Landmarker, Mode, Sighting, shape_of};
use understudy_core::{Vec3, arkit};
use understudy_runtime::live::{FaceGeometry, Observation};

/// Most bytes of small pictures that are kept for a film.
const MOST_PICTURES: usize = 3 << 30;
/// Height of a small picture.
const SMALL: usize = 360;
/// Degrees that a head may be turned at rest for one hundredth of expression.
const TURN_PER_EXPRESSION: f32 = 0.01;

/// Points and scores of a face in a frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    pub points: Vec<Vec3>,
    /// In the order of [`arkit::SHAPES`].
    pub shapes: Vec<f32>,
}

/// All that was seen.
pub(super) struct Watched {
    pub source: PathBuf,
    pub rate: f32,
    pub size: (usize, usize),
    pub frames: Vec<Option<Seen>>,
    /// Small pictures of the frames, where they were asked for.
    pub pictures: Vec<Frame>,
    pub searches: usize,
    /// Of looking alone.
    pub seconds: f64,
}

/// Nets that know faces.
enum Nets {
    /// Of a `.task` file.
    MediaPipe(Box<Landmarker>, Choice),
    /// Of `learn landmarks`.
    Own(Box<LandmarkNets>),
}

/// Looks at frames.
pub(super) struct Watcher {
    nets: Nets,
}

impl Watcher {
    pub fn open(config: &CaptureConfig) -> Result<Self, JobError> {
        let Some(path) = &config.landmarks else {
            let problem = "a face landmarker is needed: --landmarks face_landmarker.task, which MediaPipe offers for download, or nets of `understudy learn landmarks`";
            return Err(JobError::setting("landmarks", problem));
        };
        let bytes = understudy_io::read_bytes(path)?;
        if is_landmark_file(&bytes) {
            if config.face != WhichFace::Only {
                let problem = "nets of `learn landmarks` see one face, the surest; --face is for .task files";
                return Err(JobError::setting("face", problem));
            }
            let nets = LandmarkNets::parse(&bytes).map_err(|error| JobError::unusable(path, error))?;
            return Ok(Self { nets: Nets::Own(Box::new(nets)) });
        }
        let landmarker =
            Landmarker::parse(&bytes, Mode::Video).map_err(|error| JobError::unusable(path, error))?;
        let choice = match config.face {
            WhichFace::Only => Choice::Only,
            WhichFace::Largest => Choice::Largest,
            WhichFace::Left => Choice::Left,
            WhichFace::Right => Choice::Right,
        };
        Ok(Self { nets: Nets::MediaPipe(Box::new(landmarker), choice) })
    }

    pub fn geometry(&self) -> &FaceGeometry {
        match &self.nets {
            Nets::MediaPipe(landmarker, _) => landmarker.geometry(),
            Nets::Own(nets) => nets.geometry(),
        }
    }

    pub fn watch(
        &mut self,
        source: &mut dyn Frames,
        config: &CaptureConfig,
        pictures: bool,
        watch: &dyn Watch,
    ) -> Result<Watched, JobError> {
        let name = config.source.name();
        let rate = source.rate();
        let most = config.seconds.map_or(usize::MAX, |seconds| (seconds * rate).ceil().max(1.0) as usize);
        let total = source.count().unwrap_or(0).min(most);
        watch.event(Event::Started { what: "watching the actor", total: total as u64, unit: "frames" });
        let mut watched = Watched {
            source: name.into(),
            rate,
            size: source.size(),
            frames: Vec::new(),
            pictures: Vec::new(),
            searches: 0,
            seconds: 0.0,
        };
        let mut frame = Frame::default();
        while watched.frames.len() < most && source.next(&mut frame)? {
            let index = watched.frames.len();
            if config.mirror {
                frame.mirror();
            }
            let start = Instant::now();
            let sighting = match &mut self.nets {
                Nets::MediaPipe(landmarker, choice) => landmarker.look(&frame, *choice),
                Nets::Own(nets) => nets.look(&frame),
            };
            watched.seconds += start.elapsed().as_secs_f64();
            if sighting != Sighting::Followed {
                watched.searches += 1;
            }
            let seen = match sighting {
                Sighting::Several(count) => {
                    let problem = format!(
                        "frame {index}: {count} faces; --face largest, left or right says which one is followed"
                    );
                    return Err(JobError::unusable(name, problem));
                }
                Sighting::None => None,
                Sighting::Followed | Sighting::Found(_) => Some(self.seen()),
            };
            watched.frames.push(seen);
            if pictures {
                watched.keep(&frame)?;
            }
            watch.event(Event::Step { done: watched.frames.len() as u64 });
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
        watch.event(Event::Finished);
        if watched.frames.is_empty() {
            return Err(JobError::unusable(name, "has no frames"));
        }
        if watched.frames.iter().all(Option::is_none) {
            let count = watched.frames.len();
            return Err(JobError::unusable(name, format!("shows no face in any of {count} frames")));
        }
        watched.size = (frame.width(), frame.height());
        Ok(watched)
    }

    fn seen(&self) -> Seen {
        let face = match &self.nets {
            Nets::MediaPipe(landmarker, _) => landmarker.face(),
            Nets::Own(nets) => {
                let face = nets.face();
                return Seen { points: face.lifted.clone(), shapes: face.shapes.clone() };
            }
        };
        let mut shapes = vec![0.0; arkit::SHAPES.len()];
        for (score, value) in face.scores.iter().enumerate() {
            if let Some(shape) = shape_of(score) {
                shapes[shape] = *value;
            }
        }
        Seen { points: face.points.clone(), shapes }
    }
}

impl Watched {
    /// A small picture of a frame, for a film.
    fn keep(&mut self, frame: &Frame) -> Result<(), JobError> {
        let small = shrunk(frame, SMALL);
        if (self.pictures.len() + 1) * small.rgb().len() > MOST_PICTURES {
            let problem = format!(
                "more than {} frames do not fit into a film; --seconds limits them",
                self.pictures.len()
            );
            return Err(JobError::setting("output", problem));
        }
        self.pictures.push(small);
        Ok(())
    }

    pub fn observation(&self, frame: usize) -> Option<Observation<'_>> {
        let seen = self.frames.get(frame)?.as_ref()?;
        let size = [self.size.0 as f32, self.size.1 as f32];
        Some(Observation { points: &seen.points, size, shapes: &seen.shapes })
    }

    /// Stretches without a face: the first frame and how many.
    pub fn lost(&self) -> Vec<(usize, usize)> {
        let mut lost: Vec<(usize, usize)> = Vec::new();
        for (index, _) in self.frames.iter().enumerate().filter(|(_, seen)| seen.is_none()) {
            match lost.last_mut() {
                Some((from, count)) if *from + *count == index => *count += 1,
                _ => lost.push((index, 1)),
            }
        }
        lost
    }

    /// The frame that shows the actor at rest.
    pub fn neutral(&self, config: &CaptureConfig, geometry: &FaceGeometry) -> Result<usize, JobError> {
        let mut local = Vec::new();
        match config.neutral {
            Neutral::Frame(frame) => match self.frames.get(frame) {
                Some(Some(_)) => Ok(frame),
                Some(None) => Err(JobError::setting("neutral", format!("frame {frame} shows no face"))),
                None => Err(JobError::setting(
                    "neutral",
                    format!("there is no frame {frame}: there are {}", self.frames.len()),
                )),
            },
            Neutral::Auto => {
                let mut cost = |frame: usize| {
                    let seen = self.observation(frame)?;
                    let pose = geometry.solve(seen.points, seen.size, &mut local)?;
                    let turn: f32 = pose.angles().iter().map(|angle| angle.abs()).sum();
                    let counts = |name: &str| !name.starts_with("eyeLook");
                    let sum: f32 = arkit::SHAPES
                        .iter()
                        .zip(seen.shapes)
                        .filter(|(name, _)| counts(name))
                        .map(|(_, score)| score)
                        .sum();
                    Some(sum + TURN_PER_EXPRESSION * turn)
                };
                let costs = (0..self.frames.len()).filter_map(|frame| Some((cost(frame)?, frame)));
                let best = costs.min_by(|a, b| a.0.total_cmp(&b.0));
                best.map(|(_, frame)| frame)
                    .ok_or_else(|| JobError::unusable(&self.source, "shows no face whose pose can be told"))
            }
        }
    }
}

/// A frame of that height at most, each pixel the mean of those that it covers.
pub(super) fn shrunk(frame: &Frame, height: usize) -> Frame {
    if frame.height() <= height {
        return frame.clone();
    }
    let width = (frame.width() * height).div_ceil(frame.height());
    let mut small = Frame::black(width, height);
    let (w, h) = (frame.width(), frame.height());
    for y in 0..height {
        let rows = y * h / height..((y + 1) * h / height).max(y * h / height + 1);
        for x in 0..width {
            let columns = x * w / width..((x + 1) * w / width).max(x * w / width + 1);
            let (mut sums, mut count) = ([0u32; 3], 0u32);
            for row in rows.clone() {
                for column in columns.clone() {
                    let pixel = frame.pixel(column.min(w - 1), row.min(h - 1));
                    (0..3).for_each(|c| sums[c] += u32::from(pixel[c]));
                    count += 1;
                }
            }
            let place = 3 * (y * width + x);
            (0..3).for_each(|c| small.rgb_mut()[place + c] = (sums[c] / count) as u8);
        }
    }
    small
}
