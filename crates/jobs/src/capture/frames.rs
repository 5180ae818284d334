//! Frames one after another, from whatever gives them: PNG files are read by ourselves, videos and cameras by the program
//! `ffmpeg` (`ffmpeg.rs`), synthetic actors are drawn.

use super::{Source, actor, ffmpeg};
use crate::{JobError, Watch};
use std::path::{Path, PathBuf};
use understudy_capture::Frame;
use understudy_io::picture::PictureReader;

/// A sequence of frames of one size.
pub trait Frames {
    /// Pixels across and down.
    fn size(&self) -> (usize, usize);
    /// Frames per second.
    fn rate(&self) -> f32;
    /// How many there are, where that is known.
    fn count(&self) -> Option<usize>;
    /// The next frame into `frame`; `false` at the end.
    fn next(&mut self, frame: &mut Frame) -> Result<bool, JobError>;
}

/// Opens what gives frames. `seconds` is how long is watched, where that is limited; `rate` replaces the source's own.
pub(super) fn open(
    source: &Source,
    rate: Option<f32>,
    seconds: Option<f32>,
    _watch: &dyn Watch,
) -> Result<Box<dyn Frames>, JobError> {
    match source {
        Source::Video(path) if path.is_dir() => Ok(Box::new(Folder::open(path, rate)?)),
        Source::Video(path) if is_png(path) => Ok(Box::new(Pictures::open(path, rate)?)),
        Source::Video(path) => Ok(Box::new(ffmpeg::Video::open(path, rate, seconds)?)),
        Source::Camera(device) => Ok(Box::new(ffmpeg::Video::camera(device, rate, seconds)?)),
        Source::Actor(of) => actor::open(of),
    }
}

fn is_png(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| ["png", "apng"].iter().any(|known| extension.eq_ignore_ascii_case(known)))
}

/// One PNG file, still or animated.
struct Pictures {
    path: PathBuf,
    reader: PictureReader,
    rate: f32,
    rgb: Vec<u8>,
}

impl Pictures {
    fn open(path: &Path, rate: Option<f32>) -> Result<Self, JobError> {
        let bytes = understudy_io::read_bytes(path)?;
        let reader = PictureReader::parse(bytes).map_err(|error| JobError::unusable(path, error))?;
        let rate = rate.or(reader.rate()).unwrap_or(understudy_core::Clip::RATE);
        Ok(Self { path: path.into(), reader, rate, rgb: Vec::new() })
    }
}

impl Frames for Pictures {
    fn size(&self) -> (usize, usize) {
        self.reader.size()
    }

    fn rate(&self) -> f32 {
        self.rate
    }

    fn count(&self) -> Option<usize> {
        Some(self.reader.frames())
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, JobError> {
        let more = self.reader.next_frame(&mut self.rgb);
        let more = more.map_err(|error| JobError::unusable(&self.path, error))?;
        if more {
            let (width, height) = self.reader.size();
            fill(frame, width, height, &self.rgb);
        }
        Ok(more)
    }
}

/// A folder of PNG files of one size, in the order of their names.
struct Folder {
    files: Vec<PathBuf>,
    size: (usize, usize),
    rate: f32,
    next: usize,
    rgb: Vec<u8>,
}

impl Folder {
    fn open(folder: &Path, rate: Option<f32>) -> Result<Self, JobError> {
        let failed = |error: std::io::Error| JobError::unusable(folder, error);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if is_png(&path) && path.is_file() {
                files.push(path);
            }
        }
        files.sort_by_cached_key(|path| in_order(&path.file_name().unwrap_or_default().to_string_lossy()));
        let Some(first) = files.first() else {
            return Err(JobError::unusable(folder, "holds no frames: .png files are wanted"));
        };
        let size = Pictures::open(first, None)?.size();
        Ok(Self { files, size, rate: rate.unwrap_or(understudy_core::Clip::RATE), next: 0, rgb: Vec::new() })
    }
}

/// Names with their numbers as numbers: frame 10 comes after frame 9.
fn in_order(name: &str) -> Vec<(u64, String)> {
    let mut parts = vec![(0_u64, String::new())];
    let mut digits = false;
    for letter in name.chars() {
        let digit = letter.to_digit(10);
        if digit.is_some() != digits {
            parts.push((0, String::new()));
            digits = digit.is_some();
        }
        let (number, text) = parts.last_mut().expect("one was pushed");
        match digit {
            Some(digit) => *number = number.saturating_mul(10).saturating_add(digit.into()),
            None => text.push(letter),
        }
    }
    parts
}

impl Frames for Folder {
    fn size(&self) -> (usize, usize) {
        self.size
    }

    fn rate(&self) -> f32 {
        self.rate
    }

    fn count(&self) -> Option<usize> {
        Some(self.files.len())
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, JobError> {
        let Some(path) = self.files.get(self.next) else { return Ok(false) };
        let bytes = understudy_io::read_bytes(path)?;
        let wrong = |error| JobError::unusable(path, error);
        let mut reader = PictureReader::parse(bytes).map_err(wrong)?;
        if reader.size() != self.size {
            let ((w, h), (width, height)) = (reader.size(), self.size);
            let problem = format!("{w} × {h} pixels, the first frame has {width} × {height}");
            return Err(JobError::unusable(path, problem));
        }
        reader.next_frame(&mut self.rgb).map_err(wrong)?;
        fill(frame, self.size.0, self.size.1, &self.rgb);
        self.next += 1;
        Ok(true)
    }
}

/// Copies pixels into a frame, which keeps its memory where its size is right.
pub(super) fn fill(frame: &mut Frame, width: usize, height: usize, rgb: &[u8]) {
    if (frame.width(), frame.height()) != (width, height) {
        *frame = Frame::black(width, height);
    }
    frame.rgb_mut().copy_from_slice(rgb);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_numbers() {
        let mut names = ["frame10.png", "frame9.png", "frame1.png", "a2b10.png", "a2b9.png"];
        names.sort_by_key(|name| in_order(name));
        assert_eq!(names, ["a2b9.png", "a2b10.png", "frame1.png", "frame9.png", "frame10.png"]);
    }

    #[test]
    fn a_folder_without_frames_and_frames_of_two_sizes_are_told() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let error = Folder::open(folder.path(), None).err().expect("empty");
        assert!(error.is_bad_input() && error.to_string().contains("no frames"), "{error}");
        for (name, width) in [("1.png", 4), ("2.png", 4), ("10.png", 5)] {
            let picture = understudy_report::Picture::new(width, 3, [1, 2, 3, 255]);
            std::fs::write(folder.path().join(name), picture.to_png()).expect("writable");
        }
        let mut frames = Folder::open(folder.path(), Some(12.0)).expect("three");
        assert_eq!((frames.size(), frames.count(), frames.rate()), ((4, 3), Some(3), 12.0));
        let mut frame = Frame::default();
        assert!(frames.next(&mut frame).expect("the first") && frame.pixel(3, 2) == [1, 2, 3]);
        assert!(frames.next(&mut frame).expect("the second"));
        let error = frames.next(&mut frame).expect_err("another size");
        assert!(error.to_string().contains("10.png: 5 × 3 pixels"), "{error}");
    }
}
