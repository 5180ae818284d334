//! `learn landmarks`: draws people, teaches nets where the points of a face lie in a picture, and looks at people whom the nets have
//! never seen. Killed or stopped, the same command goes on to the same file.

use super::actor::cast;
use crate::outputs::check_file;
use crate::{Event, JobError, Watch, checkpoint_folder};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use understudy_capture::Frame;
use understudy_capture::actors::{Cast, Noise, Performance, take};
use understudy_capture::inverse_rendering::Detected;
use understudy_capture::landmark_nets::{
    LandmarkNets, NetErrors, NetSettings, NetTraining, SceneMaker, errors, known_shapes,
};
use understudy_io::{read_bytes, write_atomic};

/// What to learn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LandmarkNetConfig {
    /// The nets.
    pub output: PathBuf,
    /// How much: people, pictures, steps.
    pub settings: NetSettings,
    /// Frames of each synthetic actor that the nets are looked at with; 0 leaves it out.
    pub test_frames: usize,
}

impl LandmarkNetConfig {
    /// For about so many minutes on two cores.
    pub fn for_minutes(output: impl Into<PathBuf>, minutes: f32, seed: u64) -> Result<Self, JobError> {
        let settings = NetSettings::for_minutes(minutes, seed).map_err(|error| {
            JobError::setting(error.name, format!("{}; {} is wanted", error.value, error.wanted))
        })?;
        Ok(Self { output: output.into(), settings, test_frames: 8 })
    }
}

/// What was learned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LandmarkNetReport {
    /// The nets.
    pub file: PathBuf,
    /// Its size.
    pub bytes: usize,
    /// How they were trained.
    pub settings: NetSettings,
    /// Pictures.
    pub pictures: usize,
    /// Steps that an earlier run had done.
    pub kept_steps: usize,
    /// Of this run.
    pub seconds: f64,
    /// Multiplications of a frame whose face is followed, millions.
    pub million_multiplications: f64,
    /// On synthetic actors whom the nets have never seen, in pictures of 256²: on a helmet's camera, and with a head that turns.
    pub errors: Vec<(&'static str, NetErrors)>,
    /// One frame, its face searched for, ms.
    pub search_ms: f64,
}

/// How often a checkpoint is written.
const EVERY: Duration = Duration::from_secs(60);
/// Synthetic actors that nets are looked at with.
const TEST_ACTORS: [u64; 4] = [1, 2, 15, 16];
/// Side of a test's picture, pixels.
const TEST_SIDE: usize = 256;

/// Learns.
pub fn learn_landmarks(config: &LandmarkNetConfig, watch: &dyn Watch) -> Result<LandmarkNetReport, JobError> {
    let start = Instant::now();
    check_file(&config.output, &[])?;
    let settings = config.settings;
    let setting = |error: understudy_capture::landmark_nets::SettingsError| {
        JobError::setting(error.name, format!("{} given, {} wanted", error.value, error.wanted))
    };
    settings.check().map_err(setting)?;
    let cast = cast()?;
    let mut training = NetTraining::new(settings, &cast).map_err(setting)?;
    let pictures = draw(&mut training, &cast, &settings, watch)?;
    let folder = checkpoint_folder(&config.output);
    let checkpoint = folder.join("landmarks.checkpoint");
    if checkpoint.exists() {
        let kept = training.restore(&read_bytes(&checkpoint)?);
        if let Err(error) = kept {
            let message = format!("{}: {error}; training begins anew", checkpoint.display());
            watch.event(Event::Warning { message: &message });
        }
    }
    let kept_steps = training.steps_done();
    train(&mut training, &checkpoint, watch)?;
    let mut nets = training.nets().map_err(|error| JobError::unusable(&config.output, error))?;
    drop(training);
    let bytes = nets.to_bytes();
    write_atomic(&config.output, &bytes)?;
    // A folder that stays behind does no harm: its header protects the next run.
    let _ = std::fs::remove_dir_all(&folder);
    let (errors, search_ms) = test(&mut nets, &cast, config.test_frames, watch)?;
    Ok(LandmarkNetReport {
        file: config.output.clone(),
        bytes: bytes.len(),
        settings,
        pictures,
        kept_steps,
        seconds: start.elapsed().as_secs_f64(),
        million_multiplications: nets.multiplications() as f64 * 1e-6,
        errors,
        search_ms,
    })
}

fn draw(
    training: &mut NetTraining,
    cast: &Cast,
    settings: &NetSettings,
    watch: &dyn Watch,
) -> Result<usize, JobError> {
    watch.event(Event::Started { what: "drawing people", total: settings.people as u64, unit: "people" });
    let maker = SceneMaker::new(cast, settings.scenes());
    let mut pictures = 0;
    for person in 0..settings.people as u64 {
        let scenes = maker.person(person).map_err(|error| JobError::unusable("ict", error))?;
        pictures += scenes.len();
        training.add(scenes);
        watch.event(Event::Step { done: person + 1 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    watch.event(Event::Finished);
    if pictures == 0 {
        return Err(JobError::unusable(
            "ict",
            "its head has no lips or no pupils: no picture has all points",
        ));
    }
    training.measure();
    Ok(pictures)
}

fn train(training: &mut NetTraining, checkpoint: &Path, watch: &dyn Watch) -> Result<(), JobError> {
    let keep = |training: &NetTraining| write_atomic(checkpoint, &training.checkpoint());
    let (mut saved, mut mean, mut count) = (Instant::now(), 0.0, 0);
    let mut name = "";
    while let Some(stage) = training.stage() {
        if stage.name != name {
            if !name.is_empty() {
                watch.event(Event::Finished);
            }
            name = stage.name;
            let what = format!("teaching {name}");
            watch.event(Event::Started { what: &what, total: stage.steps as u64, unit: "steps" });
            (mean, count) = (0.0, 0);
        }
        let cost = training.step();
        mean += cost;
        count += 1;
        watch.event(Event::Step { done: stage.done as u64 + 1 });
        if count == 25 {
            let message = format!("cost {:.3}", mean / f64::from(count));
            watch.event(Event::Status { message: &message });
            (mean, count) = (0.0, 0);
        }
        if watch.should_stop() {
            keep(training)?;
            return Err(JobError::Stopped);
        }
        if saved.elapsed() > EVERY {
            keep(training)?;
            saved = Instant::now();
        }
    }
    watch.event(Event::Finished);
    Ok(())
}

/// Frames of synthetic actors with all that is true of them.
pub fn test_frames(
    cast: &Cast,
    actors: &[u64],
    each: usize,
    turning: bool,
) -> Result<Vec<(Frame, Detected, Vec<f32>)>, JobError> {
    let names = cast.shape_names();
    let mut frames = Vec::new();
    for number in actors {
        let actor = cast.actor(*number, TEST_SIDE).map_err(|error| JobError::unusable("ict", error))?;
        let take = take(&names, 4.0, 30.0, *number, turning);
        let noise = Noise { seed: *number, ..Noise::default() };
        let performance = Performance { actor, take, noise };
        for index in 0..each {
            let frame = (index * performance.len() / each.max(1) + 5).min(performance.len() - 1);
            let weights = known_shapes(&names, &performance.take.frames[frame].weights);
            frames.push((performance.play(frame).frame, performance.marks(frame), weights));
        }
    }
    Ok(frames)
}

type Errors = Vec<(&'static str, NetErrors)>;

fn test(
    nets: &mut LandmarkNets,
    cast: &Cast,
    each: usize,
    watch: &dyn Watch,
) -> Result<(Errors, f64), JobError> {
    let mut rows = Vec::new();
    let (mut seconds, mut looks) = (0.0, 0usize);
    if each == 0 {
        return Ok((rows, 0.0));
    }
    for (name, turning) in [("helmet camera", false), ("turning head", true)] {
        let what = format!("looking at strangers, {name}");
        watch.event(Event::Started { what: &what, total: 1, unit: "lots" });
        let frames = test_frames(cast, &TEST_ACTORS, each, turning)?;
        for (frame, ..) in &frames {
            nets.forget();
            let begin = Instant::now();
            nets.look(frame);
            seconds += begin.elapsed().as_secs_f64();
            looks += 1;
        }
        rows.push((name, errors(nets, &frames)));
        watch.event(Event::Step { done: 1 });
        watch.event(Event::Finished);
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    Ok((rows, 1e3 * seconds / looks.max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn tiny(output: PathBuf) -> LandmarkNetConfig {
        let settings = NetSettings {
            people: 1,
            each: 4,
            side: 96,
            face_steps: 5,
            region_steps: 3,
            batch: 3,
            width: 0.35,
            ..NetSettings::for_minutes(1.0, 3).expect("in range")
        };
        LandmarkNetConfig { output, settings, test_frames: 0 }
    }

    /// Stops after so many steps of whatever is done.
    struct StopAfter(usize, AtomicUsize);

    impl Watch for StopAfter {
        fn event(&self, event: Event<'_>) {
            if let Event::Step { .. } = event {
                self.1.fetch_add(1, Ordering::Relaxed);
            }
        }

        fn should_stop(&self) -> bool {
            self.1.load(Ordering::Relaxed) >= self.0
        }
    }

    #[test]
    fn a_training_that_was_stopped_goes_on_to_the_same_bytes() {
        if crate::rigs::real_file("ict").is_err() {
            eprintln!("skipped: the head model is not here");
            return;
        }
        let folder = tempfile::tempdir().expect("a scratch folder");
        let (whole, parts) = (folder.path().join("whole.landmarks"), folder.path().join("parts.landmarks"));
        let report = learn_landmarks(&tiny(whole.clone()), &Silent).expect("nets");
        assert_eq!((report.pictures, report.kept_steps), (4, 0));
        // One person, then the face's net and a part of the next one.
        let stop = StopAfter(8, AtomicUsize::new(0));
        let stopped = learn_landmarks(&tiny(parts.clone()), &stop);
        assert!(matches!(stopped, Err(JobError::Stopped)) && !parts.exists());
        let report = learn_landmarks(&tiny(parts.clone()), &Silent).expect("nets");
        assert_eq!(report.kept_steps, 7);
        let read = |path: &Path| std::fs::read(path).expect("written");
        assert!(read(&whole) == read(&parts));
        let nets = LandmarkNets::parse(&read(&whole)).expect("a file");
        assert_eq!(nets.settings(), &report.settings);
        assert!(!checkpoint_folder(&parts).exists());
    }

    #[test]
    fn bad_settings_are_one_line_and_leave_nothing() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let output = folder.path().join("x.landmarks");
        for minutes in [0.0, -1.0, f32::NAN, 1e9] {
            let error = LandmarkNetConfig::for_minutes(&output, minutes, 1).expect_err("no such time");
            assert!(error.is_bad_input() && error.to_string().contains("minutes"), "{error}");
        }
        let mut config = tiny(output.clone());
        config.settings.batch = 0;
        let error = learn_landmarks(&config, &Silent).expect_err("no pictures in a step");
        assert!(error.is_bad_input() && !error.to_string().contains('\n') && !output.exists(), "{error}");
    }
}
