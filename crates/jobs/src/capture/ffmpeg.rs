//! Videos in and out through the programs `ffmpeg` and `ffprobe`, which read and write every format: frames go through pipes as
//! plain pixels. Nothing else here starts a program.

use super::frames::{Frames, fill};
use crate::JobError;
use serde::Deserialize;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use understudy_capture::Frame;

/// Wider videos are made narrower while they are decoded: a face is looked at in 256 pixels.
const MAX_WIDTH: usize = 1920;
/// Cameras are asked for so many frames per second.
const CAMERA_RATE: f32 = 30.0;
/// How long a camera is watched where nothing is said, s.
const CAMERA_SECONDS: f32 = 10.0;
/// Most of what a program complains that is kept, bytes.
const MOST_COMPLAINTS: usize = 1 << 14;

/// What to do where the program is absent.
const INSTALL: &str = "videos and cameras are read by the program 'ffmpeg', which is not found: install it (Debian, Ubuntu: apt \
install ffmpeg; Fedora: dnf install ffmpeg-free; macOS: brew install ffmpeg; Windows: winget install ffmpeg), or give a folder of \
PNG files";

/// Frames that ffmpeg decodes.
pub(super) struct Video {
    source: PathBuf,
    child: Child,
    pipe: BufReader<ChildStdout>,
    complaints: Option<JoinHandle<String>>,
    size: (usize, usize),
    rate: f32,
    count: Option<usize>,
    done: usize,
    /// A header that was read already.
    begun: bool,
    rgb: Vec<u8>,
}

#[derive(Deserialize)]
struct Probe {
    #[serde(default)]
    streams: Vec<Stream>,
    #[serde(default)]
    format: Format,
}

#[derive(Deserialize)]
struct Stream {
    avg_frame_rate: Option<String>,
    nb_frames: Option<String>,
    duration: Option<String>,
}

#[derive(Deserialize, Default)]
struct Format {
    duration: Option<String>,
}

fn started(result: std::io::Result<Child>) -> Result<Child, JobError> {
    result.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => JobError::setting("ffmpeg", INSTALL),
        _ => JobError::Machine(format!("ffmpeg cannot be started: {error}")),
    })
}

/// A path that no program takes for an option or an address.
fn argument(path: &Path) -> PathBuf {
    if path.is_absolute() { path.into() } else { Path::new(".").join(path) }
}

impl Video {
    pub fn open(path: &Path, rate: Option<f32>, seconds: Option<f32>) -> Result<Self, JobError> {
        let file = std::fs::metadata(path).map_err(|error| JobError::unusable(path, error))?;
        if file.len() == 0 {
            return Err(JobError::unusable(path, "is empty"));
        }
        let mut probe = Command::new("ffprobe");
        probe
            .args(["-v", "error", "-select_streams", "v:0", "-of", "json", "-show_entries"])
            .arg("stream=avg_frame_rate,nb_frames,duration:format=duration")
            .arg(argument(path))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let answer = started(probe.spawn())?.wait_with_output();
        let answer = answer.map_err(|error| JobError::Machine(format!("ffprobe: {error}")))?;
        if !answer.status.success() {
            return Err(JobError::unusable(path, last_line(&String::from_utf8_lossy(&answer.stderr))));
        }
        let found: Option<Probe> = serde_json::from_slice(&answer.stdout).ok();
        let format = found.as_ref().and_then(|probe| number(probe.format.duration.as_deref()));
        let stream = found.and_then(|probe| probe.streams.into_iter().next());
        let Some(stream) = stream else { return Err(JobError::unusable(path, "holds no video")) };
        let own = stream.avg_frame_rate.as_deref().and_then(fraction);
        let rate_used = rate.or(own).unwrap_or(understudy_core::Clip::RATE);
        let length = number(stream.duration.as_deref()).or(format);
        let exact = match rate {
            None => number(stream.nb_frames.as_deref()).map(|count| count as usize),
            Some(_) => None,
        };
        let whole = length.map(|length| seconds.map_or(length, |limit| length.min(f64::from(limit))));
        let by_length = whole.map(|length| (length * f64::from(rate_used)).round() as usize);
        let count = if seconds.is_some() { by_length } else { exact.or(by_length) };
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-nostdin"]);
        command.arg("-i").arg(argument(path));
        Self::begin(path, command, rate_used, seconds, count)
    }

    pub fn camera(device: &Path, rate: Option<f32>, seconds: Option<f32>) -> Result<Self, JobError> {
        if !device.exists() {
            return Err(JobError::unusable(device, "there is no such camera"));
        }
        let rate = rate.unwrap_or(CAMERA_RATE);
        let seconds = seconds.unwrap_or(CAMERA_SECONDS);
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-nostdin", "-f", "v4l2"]);
        command.arg("-i").arg(argument(device));
        Self::begin(device, command, rate, Some(seconds), Some((seconds * rate).round() as usize))
    }

    /// Starts the decoder and reads the first frame's header, so that what is wrong is told at once.
    fn begin(
        source: &Path,
        mut command: Command,
        rate: f32,
        seconds: Option<f32>,
        count: Option<usize>,
    ) -> Result<Self, JobError> {
        if let Some(seconds) = seconds {
            command.args(["-t", &seconds.to_string()]);
        }
        let narrow = format!("fps={rate},scale=w='min(iw,{MAX_WIDTH})':h=-2");
        command.args(["-map", "0:v:0", "-vf", &narrow, "-f", "image2pipe", "-c:v", "ppm", "-"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = started(command.spawn())?;
        let pipe = BufReader::with_capacity(1 << 20, child.stdout.take().expect("was piped"));
        let complaints = listen(&mut child);
        let mut video = Self {
            source: source.into(),
            child,
            pipe,
            complaints: Some(complaints),
            size: (0, 0),
            rate,
            count: count.filter(|count| *count > 0),
            done: 0,
            begun: false,
            rgb: Vec::new(),
        };
        if !video.header()? {
            return Err(JobError::unusable(source, "has no frames"));
        }
        video.begun = true;
        Ok(video)
    }

    /// Reads the header of a frame; `false` at the end.
    fn header(&mut self) -> Result<bool, JobError> {
        let mut words = [0usize; 3];
        let mut magic = [0u8; 2];
        match self.pipe.read_exact(&mut magic) {
            Ok(()) => {}
            Err(_) => return self.end().map(|()| false),
        }
        let odd = |source: &Path| JobError::unusable(source, "ffmpeg sent something that is no picture");
        if &magic != b"P6" {
            return Err(odd(&self.source));
        }
        for word in &mut words {
            let mut digits = 0;
            loop {
                let mut byte = [0u8];
                self.pipe.read_exact(&mut byte).map_err(|_| odd(&self.source))?;
                match byte[0] {
                    digit @ b'0'..=b'9' if digits < 6 => {
                        *word = 10 * *word + usize::from(digit - b'0');
                        digits += 1;
                    }
                    b' ' | b'\n' if digits == 0 => {}
                    b' ' | b'\n' => break,
                    _ => return Err(odd(&self.source)),
                }
            }
        }
        let [width, height, most] = words;
        let sound = (1..=understudy_io::picture::MAX_SIDE).contains(&width)
            && (1..=understudy_io::picture::MAX_SIDE).contains(&height)
            && most == 255;
        if !sound || (self.done > 0 && (width, height) != self.size) {
            return Err(odd(&self.source));
        }
        self.size = (width, height);
        self.rgb.resize(3 * width * height, 0);
        Ok(true)
    }

    /// Waits for the program, and tells what it complained of where it failed.
    fn end(&mut self) -> Result<(), JobError> {
        let status = self.child.wait().map_err(|error| JobError::Machine(format!("ffmpeg: {error}")))?;
        let complaints = self.complaints.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        if !status.success() {
            return Err(JobError::unusable(&self.source, last_line(&complaints)));
        }
        // A decoder goes on after damage: frames that are missing in the end are told. A few are no damage: a variable rate
        // made even has another number of frames than the file says.
        let short = self.count.filter(|count| self.done + 2 + count / 50 < *count && !complaints.is_empty());
        match short {
            Some(count) => {
                let problem =
                    format!("is truncated or damaged: {} of {count} frames could be read", self.done);
                Err(JobError::unusable(&self.source, problem))
            }
            None => Ok(()),
        }
    }
}

impl Drop for Video {
    fn drop(&mut self) {
        // Where the reader stopped before the end, the program must not wait for it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Frames for Video {
    fn size(&self) -> (usize, usize) {
        self.size
    }

    fn rate(&self) -> f32 {
        self.rate
    }

    fn count(&self) -> Option<usize> {
        self.count
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, JobError> {
        if !std::mem::take(&mut self.begun) && !self.header()? {
            return Ok(false);
        }
        if self.pipe.read_exact(&mut self.rgb).is_err() {
            self.end()?;
            return Err(JobError::unusable(&self.source, format!("frame {} is cut short", self.done)));
        }
        fill(frame, self.size.0, self.size.1, &self.rgb);
        self.done += 1;
        Ok(true)
    }
}

/// Frames that ffmpeg encodes, into a file beside the one that they become.
pub(super) struct Film {
    target: PathBuf,
    part: PathBuf,
    child: Child,
    complaints: Option<JoinHandle<String>>,
    finished: bool,
}

impl Film {
    /// Begins a film of frames of even width and height.
    pub fn begin(target: &Path, width: usize, height: usize, rate: f32) -> Result<Self, JobError> {
        let mut name = std::ffi::OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}.mp4", std::process::id()));
        let part = target.with_file_name(name);
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder).map_err(|error| JobError::unusable(target, error))?;
        }
        let mut command = Command::new("ffmpeg");
        command
            .args(["-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24"])
            .args(["-s", &format!("{width}x{height}"), "-r", &rate.to_string(), "-i", "-"])
            .args(["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", "-movflags", "+faststart"])
            .arg(argument(&part))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = started(command.spawn())?;
        let complaints = Some(listen(&mut child));
        Ok(Self { target: target.into(), part, child, complaints, finished: false })
    }

    /// The next frame.
    pub fn frame(&mut self, rgb: &[u8]) -> Result<(), JobError> {
        let pipe = self.child.stdin.as_mut().expect("was piped, and is closed at the end alone");
        match pipe.write_all(rgb) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.complaint()),
        }
    }

    /// The last frame was given: the film appears.
    pub fn finish(mut self) -> Result<(), JobError> {
        drop(self.child.stdin.take());
        let status = self.child.wait().map_err(|error| JobError::Machine(format!("ffmpeg: {error}")))?;
        if !status.success() {
            return Err(self.complaint());
        }
        self.finished = true;
        std::fs::rename(&self.part, &self.target).map_err(|error| JobError::unusable(&self.target, error))
    }

    fn complaint(&mut self) -> JobError {
        let _ = self.child.kill();
        let text = self.complaints.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        JobError::Machine(format!("{}: ffmpeg: {}", self.target.display(), last_line(&text)))
    }
}

impl Drop for Film {
    fn drop(&mut self) {
        if !self.finished {
            let _ = self.child.kill();
            let _ = self.child.wait();
            let _ = std::fs::remove_file(&self.part);
        }
    }
}

/// Reads what a program complains, so that it never waits for a reader.
fn listen(child: &mut Child) -> JoinHandle<String> {
    let mut pipe = child.stderr.take().expect("was piped");
    std::thread::spawn(move || {
        let (mut kept, mut buffer) = (Vec::new(), [0u8; 1024]);
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            kept.extend_from_slice(&buffer[..count]);
            let spare = kept.len().saturating_sub(MOST_COMPLAINTS);
            kept.drain(..spare);
        }
        String::from_utf8_lossy(&kept).into_owned()
    })
}

/// The last thing that was said, without the addresses that ffmpeg puts before it.
fn last_line(text: &str) -> String {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("cannot be read");
    let line = match line.split_once("] ") {
        Some((_, rest)) if line.starts_with('[') => rest,
        _ => line,
    };
    format!("no video that ffmpeg reads: {line}")
}

fn number(text: Option<&str>) -> Option<f64> {
    text?.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0)
}

/// `30000/1001`.
fn fraction(text: &str) -> Option<f32> {
    let (over, under) = text.split_once('/')?;
    let rate = number(Some(over))? / number(Some(under))?;
    (1.0..=1000.0).contains(&rate).then_some(rate as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_complaints_are_read() {
        assert_eq!(fraction("30000/1001"), Some(29.97003));
        assert_eq!((fraction("0/0"), fraction("90000/1"), fraction("30")), (None, None, None));
        assert_eq!(
            last_line("a\n[mov @ 0x1] moov atom not found\n\n"),
            "no video that ffmpeg reads: moov atom not found"
        );
    }
}
