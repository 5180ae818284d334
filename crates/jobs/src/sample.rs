//! Records a dataset: poses from a source, a rig's answers, chunks on disk. Start at [`sample`]. Every
//! chunk depends on its number alone, so that neither threads nor interruptions change a byte.

use crate::blender::{self, BlenderOptions};
use crate::failures::Failures;
pub use crate::failures::{FailedPoses, Outcome};
use crate::outputs::{CONTACT_SHEET, check_folder, is_of_dataset};
use crate::twin::data::{GUIDE, among_bones};
use crate::{Event, JobError, Watch, clips, contact_sheet, rigs, threads};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use understudy_core::{Affine3A, Clip, Controls, Skeleton, SkinWeights};
use understudy_io::dataset::{Chunk, DatasetHeader, DatasetRest, DatasetWriter, RigFile};
use understudy_rigs::external::ExternalOptions;
pub use understudy_rigs::sampling::Method;
use understudy_rigs::sampling::{PoseSource, SamplingConfig};
use understudy_rigs::{Guide, Incident, Rig, RigPose};

/// A part of a recording that one machine of several makes: every `of`-th chunk. Together they are the very bytes of one
/// machine's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Which, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl Shard {
    fn check(self) -> Result<Self, JobError> {
        if self.number == 0 || self.number > self.of {
            let problem = format!("{}/{} is none: k/n with k from 1 to n is wanted", self.number, self.of);
            return Err(JobError::setting("shard", problem));
        }
        Ok(self)
    }

    /// Whether it makes that chunk.
    fn makes(self, chunk: usize) -> bool {
        chunk % self.of == self.number - 1
    }
}

/// What to record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SampleConfig {
    /// A rig by name or file.
    pub rig: String,
    /// Folder of the dataset.
    pub output: PathBuf,
    /// How many; `None` for every frame of the clips where clips are named, 1000 otherwise.
    pub poses: Option<u64>,
    /// How; `None` for clips frame by frame where clips are named without a number of poses or held-out
    /// frames are wanted, noise on clips where clips are named or left out, Gaussian otherwise.
    pub method: Option<Method>,
    /// The same seed gives the same dataset.
    pub seed: u64,
    /// Clips to take poses from, the rig's own or files whose motion it shall play; when empty, all of its own
    /// but the one that is kept for tests.
    pub clips: Vec<String>,
    /// Clips to leave out.
    pub exclude: Vec<String>,
    /// Share of every clip's frames that is held out for tests.
    pub hold_out: f32,
    /// Take the frames that are held out, instead of the others.
    pub held_out: bool,
    /// Frames per second at which clips are read; `None` for each clip's own.
    pub rate: Option<f32>,
    /// Share of noisy poses that go beyond single clips.
    pub mix: f32,
    /// Mean share of the controls of such poses that are anywhere in their ranges.
    pub stray: f32,
    /// Threads; the dataset does not depend on it.
    pub threads: usize,
    /// Poses a chunk; `None` for the usual number.
    pub chunk: Option<u64>,
    /// Processes or connections of a rig that is another program; `None` for one per thread of a program that is
    /// started, and for one where it listens. The dataset does not depend on it.
    pub workers: Option<usize>,
    /// Seconds that such a rig has for an answer.
    pub timeout: f64,
    /// Replace poses that such a rig cannot give by other random ones, instead of stopping.
    pub skip_failed: bool,
    /// How a Blender file is used.
    pub blender: BlenderOptions,
    /// Record only the chunks of this shard, for [`merge`](crate::merge) to join; all of them where it is `None`.
    pub shard: Option<Shard>,
}

impl Default for SampleConfig {
    fn default() -> Self {
        let sampling = SamplingConfig::default();
        Self {
            rig: String::new(),
            output: PathBuf::new(),
            poses: None,
            method: None,
            seed: sampling.seed,
            clips: Vec::new(),
            exclude: Vec::new(),
            hold_out: sampling.hold_out,
            held_out: sampling.held_out,
            rate: sampling.rate,
            mix: sampling.mix,
            stray: sampling.stray,
            threads: threads::available(),
            chunk: None,
            workers: None,
            timeout: ExternalOptions::default().patience.as_secs_f64(),
            skip_failed: false,
            blender: BlenderOptions::default(),
            shard: None,
        }
    }
}

impl SampleConfig {
    const POSES: u64 = 1000;

    /// The method that these settings lead to.
    pub fn resolved_method(&self) -> Method {
        self.method.unwrap_or(match (self.clips.is_empty(), self.poses) {
            (false, None) => Method::Clips,
            (false, Some(_)) => Method::Noise,
            (true, _) if self.held_out => Method::Clips,
            (true, _) if !self.exclude.is_empty() || self.hold_out > 0.0 => Method::Noise,
            (true, _) => Method::Gaussian,
        })
    }

    /// Whether workers are processes that are started, and not connections to one that listens.
    fn starts_programs(&self) -> bool {
        self.rig.starts_with("cmd:") || blender::is_blend(&self.rig)
    }

    pub(crate) fn external(&self) -> Result<ExternalOptions, JobError> {
        let workers = self.workers.unwrap_or(if self.starts_programs() { self.threads } else { 1 });
        if !(1..=threads::MAX_THREADS).contains(&workers) {
            let problem = format!("{workers} is not between 1 and {}", threads::MAX_THREADS);
            return Err(JobError::setting("workers", problem));
        }
        let patience = Duration::try_from_secs_f64(self.timeout).ok().filter(|time| !time.is_zero());
        let patience = patience.ok_or_else(|| {
            JobError::setting("timeout", format!("{} s is not a time above 0", self.timeout))
        })?;
        let start_patience = patience.max(ExternalOptions::default().start_patience);
        Ok(ExternalOptions { workers, patience, start_patience })
    }

    fn sampling(&self) -> SamplingConfig {
        SamplingConfig {
            method: self.resolved_method(),
            seed: self.seed,
            clips: self.clips.clone(),
            exclude: self.exclude.clone(),
            hold_out: self.hold_out,
            held_out: self.held_out,
            rate: self.rate,
            mix: self.mix,
            stray: self.stray,
            ..SamplingConfig::default()
        }
    }
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampleReport {
    /// Folder of the dataset.
    pub folder: PathBuf,
    /// The rig.
    pub rig: String,
    /// How poses were found.
    pub method: Method,
    /// The seed.
    pub seed: u64,
    /// Poses in the dataset.
    pub poses: u64,
    /// Poses that an earlier run had recorded already.
    pub resumed_from: u64,
    /// Files of poses.
    pub chunks: usize,
    /// Which part of the recording that is; the whole where it is `None`.
    pub shard: Option<Shard>,
    /// Bytes of the whole folder.
    pub bytes: u64,
    /// Bytes of numbers per pose.
    pub bytes_per_pose: u64,
    /// Threads in use.
    pub threads: usize,
    /// Milliseconds per pose of one of the rig's own processes, where it has some.
    pub rig_ms: Option<f64>,
    /// Duration of the recording.
    pub seconds: f64,
    /// Newly recorded poses per second.
    pub poses_per_second: f64,
    /// Poses that the rig failed to give, at first or at all, in this run; earlier runs' are in the file of the dataset.
    pub failed: Vec<FailedPoses>,
}

/// Opens the rig and records the dataset, going on where an earlier run with the same settings stopped.
pub fn sample(config: &SampleConfig, watch: &dyn Watch) -> Result<SampleReport, JobError> {
    check_folder(&config.output)?;
    check_content(&config.output)?;
    if blender::is_blend(&config.rig) {
        return sample_blend(config, watch);
    }
    let rig = rigs::open_with(&config.rig, config.external()?, watch)?.rig;
    if rig.specs().is_empty() {
        return Err(JobError::unusable(&config.rig, "has no controls to pose"));
    }
    record(rig.as_ref(), config, &|_| Ok(()), watch)
}

/// A Blender file: what would make an hour of recording worthless is looked for first, and ten poses are drawn.
fn sample_blend(config: &SampleConfig, watch: &dyn Watch) -> Result<SampleReport, JobError> {
    let open = blender::open(Path::new(&config.rig), &config.blender, config.external()?, watch)?;
    let (source, _) = pose_source(&open.rig, config, watch)?;
    // Spread over clips; random poses are as good one as another.
    let place = |pose: u64| source.len().map_or(pose, |frames| pose * frames.saturating_sub(1) / 9);
    let poses: Vec<Controls> = (0..10).map(|pose| source.pose(place(pose))).collect();
    let sheet = config.output.join(CONTACT_SHEET);
    let picture = contact_sheet::draw(&open.rig, &poses, config.skip_failed)?;
    understudy_io::write_atomic(&sheet, &picture.to_png())?;
    watch.event(Event::Note {
        message: &format!("{}: ten of the poses, to be looked at first", sheet.display()),
    });
    open.keep_survey(&config.output)?;
    record(&open.rig, config, &|_| Ok(()), watch)
}

/// Where poses come from, and how.
fn pose_source(
    rig: &dyn Rig,
    config: &SampleConfig,
    watch: &dyn Watch,
) -> Result<(PoseSource, SamplingConfig), JobError> {
    let mut sampling = config.sampling();
    let known = || rig.clips().iter().map(|clip| clip.name.as_str());
    for name in &sampling.exclude {
        rig.find_clip(name).ok_or_else(|| JobError::unknown_clip(&config.rig, name, known()))?;
    }
    let (clips, called) = clips::with_files(rig, &config.clips, watch)?;
    sampling.clips = called;
    let source = sampling.build(rig.specs(), &clips).map_err(JobError::sampling(&config.rig))?;
    Ok((source, sampling))
}

/// [`sample`] with the rig at hand. `written` hears of every chunk after it is on disk.
pub fn record(
    rig: &dyn Rig,
    config: &SampleConfig,
    written: &(dyn Fn(usize) -> Result<(), JobError> + Sync),
    watch: &dyn Watch,
) -> Result<SampleReport, JobError> {
    let threads = rig.workers().unwrap_or(config.threads);
    let pool = threads::pool(threads)?;
    let sampling = config.sampling();
    if config.skip_failed && sampling.method == Method::Clips {
        return Err(JobError::setting(
            "skip-failed",
            "is not used: a frame of a clip has no other in its place",
        ));
    }
    let shard = config.shard.map(Shard::check).transpose()?;
    let (source, sampling) = pose_source(rig, config, watch)?;
    let poses = count(config, &source)?;
    let header = DatasetHeader {
        rig: rigs::lasting(&config.rig).into_owned(),
        rig_file: rig_file(config),
        method: sampling.method.to_string(),
        seed: sampling.seed,
        settings: settings(&source, rig),
        controls: rig.specs().clone(),
        poses,
        chunk_size: config.chunk.map_or(DatasetHeader::CHUNK_SIZE, |chunk| chunk as usize),
    };
    let rest =
        DatasetRest { mesh: rig.mesh().clone(), skeleton: with_guides(rig)?, weights: weights_for(rig)? };
    // A rig that fails at once leaves no folder behind.
    let failures = Failures::new(&config.output, watch);
    let first = rig.evaluate_batch(&[source.pose(0)], &mut [RigPose::default()], &mut |incident| {
        failures.note(0, incident, Outcome::TriedAgain);
    });
    if let (Err((_, source)), false) = (first, config.skip_failed) {
        return Err(JobError::Rig { rig: format!("{}: pose 0", config.rig), source });
    }

    let writer = DatasetWriter::resume(&config.output, &header, &rest)?;
    let mine = |chunk: &usize| shard.is_none_or(|shard| shard.makes(*chunk));
    let missing: Vec<usize> = writer.missing().into_iter().filter(mine).collect();
    let count = |chunk: &usize| header.chunk_poses(*chunk).len();
    let total: usize = (0..header.chunk_count()).filter(mine).map(|chunk| count(&chunk)).sum();
    let left: usize = missing.iter().map(count).sum();
    let resumed_from = (total - left) as u64;
    let what = format!("sampling {}", config.rig);
    watch.event(Event::Started { what: &what, total: total as u64, unit: "poses" });
    if resumed_from > 0 {
        watch.event(Event::Step { done: resumed_from });
    }
    let start = Instant::now();
    let run = Run {
        rig,
        source: &source,
        header: &header,
        writer: &writer,
        written,
        watch,
        failures: &failures,
        skip_failed: config.skip_failed,
        missing: &missing,
        next: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        done: Mutex::new(resumed_from),
    };
    let results = pool.broadcast(|_| run.work());
    failures.write()?;
    results.into_iter().collect::<Result<(), JobError>>()?;
    if shard.is_none() {
        writer.finish_timed(rig.pose_ms())?;
    }
    let seconds = start.elapsed().as_secs_f64();
    watch.event(Event::Finished);
    let shape = [header.controls.len(), rest.bone_count() * 12, rest.mesh.vertex_count() * 3];
    Ok(SampleReport {
        folder: config.output.clone(),
        rig: header.rig.clone(),
        method: sampling.method,
        seed: sampling.seed,
        poses: total as u64,
        resumed_from,
        chunks: (0..header.chunk_count()).filter(mine).count(),
        shard,
        bytes: folder_bytes(&config.output),
        bytes_per_pose: 4 * shape.iter().sum::<usize>() as u64,
        threads,
        rig_ms: rig.pose_ms(),
        seconds,
        poses_per_second: if seconds > 0.0 { left as f64 / seconds } else { 0.0 },
        failed: failures.all(),
    })
}

/// What the threads share. Each takes the next missing chunk, fills it and writes it: as many chunks are
/// in memory as there are threads, however long the dataset.
struct Run<'a> {
    rig: &'a dyn Rig,
    source: &'a PoseSource,
    header: &'a DatasetHeader,
    writer: &'a DatasetWriter,
    written: &'a (dyn Fn(usize) -> Result<(), JobError> + Sync),
    watch: &'a dyn Watch,
    failures: &'a Failures<'a>,
    skip_failed: bool,
    missing: &'a [usize],
    next: AtomicUsize,
    failed: AtomicBool,
    done: Mutex<u64>,
}

/// The rig's skin weights, which its guides have no part in.
fn weights_for(rig: &dyn Rig) -> Result<Option<SkinWeights>, JobError> {
    let Some(weights) = rig.skin_weights() else { return Ok(None) };
    let among = among_bones(weights, weights.bone_count() + rig.guides().len());
    among.map(Some).map_err(|error| JobError::unusable(rig.name(), error))
}

/// The rig's bones and behind them its guides, which are recorded as bones of names of their own.
fn with_guides(rig: &dyn Rig) -> Result<Option<Skeleton>, JobError> {
    let Some(skeleton) = rig.skeleton() else { return Ok(None) };
    let named = |guide: &Guide| (format!("{GUIDE}{}", guide.name), guide.rest);
    let guides: Vec<(String, Affine3A)> = rig.guides().iter().map(named).collect();
    match guides.is_empty() {
        true => Ok(Some(skeleton.clone())),
        false => {
            skeleton.with_roots(&guides).map(Some).map_err(|error| JobError::unusable(rig.name(), error))
        }
    }
}

impl Run<'_> {
    fn work(&self) -> Result<(), JobError> {
        let result = self.take_chunks();
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }

    fn take_chunks(&self) -> Result<(), JobError> {
        let mut chunk =
            Chunk::with_capacity(self.writer.shape(), self.header.chunk_size.min(self.header.poses));
        let mut poses = vec![RigPose::default()];
        let mut controls = vec![Controls::default()];
        while let Some(&index) = self.missing.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            chunk.clear();
            let places = self.header.chunk_poses(index);
            let mut place = places.start;
            while place < places.end {
                if self.failed.load(Ordering::Relaxed) {
                    return Ok(());
                }
                if self.watch.should_stop() {
                    return Err(JobError::Stopped);
                }
                let count = self.rig.batch().clamp(1, places.end - place);
                controls.resize_with(count, Controls::default);
                poses.resize_with(count.max(poses.len()), RigPose::default);
                for (index, controls) in controls.iter_mut().enumerate() {
                    self.source.pose_into((place + index) as u64, controls);
                }
                self.evaluate(place, &mut controls, &mut poses[..count])?;
                for (index, (controls, pose)) in controls.iter().zip(&mut poses).enumerate() {
                    pose.global.0.append(&mut pose.guides);
                    chunk.push(controls, &pose.global, &pose.vertices).map_err(|problem| {
                        JobError::Machine(format!("{}: pose {}: {problem}", self.header.rig, place + index))
                    })?;
                }
                place += count;
            }
            self.writer.write_chunk(index, &chunk)?;
            (self.written)(index)?;
            let mut done = self.done.lock().expect("no listener panicked");
            *done += chunk.len() as u64;
            self.watch.event(Event::Step { done: *done });
        }
        Ok(())
    }
}

impl Run<'_> {
    /// A batch whose first pose is number `first`. Where poses that fail are skipped, pose `i` of `N` becomes number
    /// `N + i`, `2 N + i` and so on: random as well, and the same in every run.
    fn evaluate(&self, first: usize, controls: &mut [Controls], out: &mut [RigPose]) -> Result<(), JobError> {
        /// So many in a row are no accident.
        const REPLACEMENTS: usize = 8;
        let mut replaced = vec![0; controls.len()];
        loop {
            let heard = &mut |incident| self.failures.note(first, incident, Outcome::TriedAgain);
            let Err((index, source)) = self.rig.evaluate_batch(controls, out, heard) else { return Ok(()) };
            let skip = self.skip_failed && replaced[index] < REPLACEMENTS;
            if self.rig.workers().is_some() {
                let incident = Incident { poses: index..index + 1, problem: source.to_string() };
                self.failures.note(first, incident, if skip { Outcome::Replaced } else { Outcome::Failed });
            }
            if !skip {
                return Err(JobError::Rig {
                    rig: format!("{}: pose {}", self.header.rig, first + index),
                    source,
                });
            }
            replaced[index] += 1;
            let other = replaced[index] * self.header.poses + first + index;
            self.source.pose_into(other as u64, &mut controls[index]);
        }
    }
}

fn count(config: &SampleConfig, source: &PoseSource) -> Result<usize, JobError> {
    let asked = config.poses.or_else(|| source.len()).unwrap_or(SampleConfig::POSES);
    if let Some(frames) = source.len().filter(|frames| asked > *frames) {
        let problem = format!("{asked} are asked for, but the clips have {frames} frames");
        return Err(JobError::setting("poses", problem));
    }
    if asked == 0 || config.chunk == Some(0) {
        return Err(JobError::setting("poses", "at least one is wanted, and one per chunk"));
    }
    usize::try_from(asked).map_err(|_| JobError::setting("poses", format!("{asked} are too many")))
}

/// Where the rig lies, where it is a file.
fn rig_file(config: &SampleConfig) -> Option<RigFile> {
    let file = Path::new(&config.rig);
    (!rigs::Names::contains(&config.rig)).then(|| RigFile::new(file, &config.output)).flatten()
}

/// Among a dataset's settings: clips that no setting is chosen by.
pub(crate) const KEPT_FOR_TESTS: &str = "kept_for_tests";

/// What else the poses depend on, for the header.
fn settings(source: &PoseSource, rig: &dyn Rig) -> BTreeMap<String, String> {
    let config = source.config();
    let mut out = BTreeMap::new();
    if !source.clips().is_empty() {
        let names: Vec<&str> = source.clips().iter().map(|clip| clip.name.as_str()).collect();
        let frames: Vec<String> = source.clips().iter().map(|clip| clip.frames.len().to_string()).collect();
        out.insert("clips".into(), names.join(", "));
        out.insert("clip_frames".into(), frames.join(", "));
        // One number where all clips have one rate, one per clip otherwise.
        let mut rates: Vec<String> = source.clips().iter().map(|clip| clip.rate.to_string()).collect();
        if rates.iter().all(|rate| *rate == rates[0]) {
            rates.truncate(1);
        }
        out.insert("rate".into(), rates.join(", "));
        let kept: Vec<&str> =
            names.into_iter().filter(|name| rig.find_clip(name).is_some_and(Clip::is_for_test)).collect();
        if !kept.is_empty() {
            out.insert(KEPT_FOR_TESTS.into(), kept.join(", "));
        }
    }
    if config.hold_out > 0.0 {
        let which = if config.held_out { "these" } else { "the others" };
        out.insert("held_out".into(), format!("{which}, a share of {}", config.hold_out));
    }
    if config.method == Method::Noise {
        out.insert("noise".into(), format!("{} to {}", config.noise_low, config.noise_high));
        out.insert("mix".into(), config.mix.to_string());
        out.insert("stray".into(), config.stray.to_string());
    }
    out
}

/// A folder with other things in it is not ours to fill.
fn check_content(folder: &Path) -> Result<(), JobError> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    let names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    match names.iter().find(|name| !is_of_dataset(name)) {
        Some(other) if !names.iter().any(|name| name == "dataset.toml") => Err(JobError::unusable(
            folder,
            format!("holds no dataset but other things ('{other}'); choose another folder"),
        )),
        _ => Ok(()),
    }
}

fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .filter(|data| data.is_file())
        .map(|data| data.len())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;
    use crate::test_rig::small_rig;
    use understudy_io::dataset::DatasetReader;

    fn config(folder: &Path) -> SampleConfig {
        let output = folder.join("data");
        SampleConfig {
            rig: "small".into(),
            output,
            poses: Some(70),
            chunk: Some(8),
            threads: 2,
            ..SampleConfig::default()
        }
    }

    fn run(config: &SampleConfig) -> Result<SampleReport, JobError> {
        record(&small_rig(), config, &|_| Ok(()), &Silent)
    }

    fn bytes(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let mut out: Vec<_> = std::fs::read_dir(folder)
            .expect("readable")
            .map(|entry| entry.expect("readable").path())
            .map(|path| {
                (
                    path.display().to_string().rsplit('/').next().expect("a name").to_owned(),
                    std::fs::read(&path).expect("readable"),
                )
            })
            .collect();
        out.sort();
        out
    }

    #[test]
    fn a_dataset_holds_what_the_rig_answers() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let config = config(folder.path());
        let report = run(&config).expect("recorded");
        assert_eq!((report.poses, report.chunks, report.resumed_from), (70, 9, 0));
        assert_eq!(report.bytes_per_pose, 4 * (2 + 24 + 12));
        let reader = DatasetReader::open(&config.output).expect("complete");
        let rig = small_rig();
        let source = config.sampling().build(rig.specs(), rig.clips()).expect("valid");
        let mut pose = RigPose::default();
        for (index, record) in reader.poses().enumerate() {
            let record = record.expect("good chunks");
            assert_eq!(record.controls, source.pose(index as u64));
            rig.evaluate(&record.controls, &mut pose).expect("finite");
            assert_eq!((record.vertices, record.skeleton), (pose.vertices.clone(), pose.global.clone()));
        }
    }

    #[test]
    fn threads_and_interruptions_change_no_byte() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let whole = SampleConfig { threads: 1, ..config(&folder.path().join("a")) };
        run(&whole).expect("recorded");
        let broken = config(&folder.path().join("b"));
        // Every thread stops by itself: one that waits for a core must not let the others finish everything.
        let fail = |chunk: usize| if chunk >= 4 { Err(JobError::Stopped) } else { Ok(()) };
        let stopped = record(&small_rig(), &broken, &fail, &Silent);
        assert!(matches!(stopped, Err(JobError::Stopped)));
        assert_ne!(bytes(&whole.output), bytes(&broken.output));
        let resumed = run(&broken).expect("resumed");
        assert!(resumed.resumed_from >= 8 && resumed.resumed_from < 70);
        assert_eq!(bytes(&whole.output), bytes(&broken.output));
        let again = run(&broken).expect("nothing left");
        assert_eq!(again.resumed_from, 70);
        assert_eq!(bytes(&whole.output), bytes(&broken.output));
    }

    #[test]
    fn a_listener_can_stop_it_and_it_goes_on_later() {
        /// Says stop after the first chunk.
        #[derive(Default)]
        struct Impatient(AtomicUsize);
        impl Watch for Impatient {
            fn event(&self, event: Event<'_>) {
                if matches!(event, Event::Step { .. }) {
                    self.0.fetch_add(1, Ordering::Relaxed);
                }
            }
            fn should_stop(&self) -> bool {
                self.0.load(Ordering::Relaxed) > 0
            }
        }
        let folder = tempfile::tempdir().expect("a scratch folder");
        let config = SampleConfig { threads: 1, ..config(folder.path()) };
        let stopped = record(&small_rig(), &config, &|_| Ok(()), &Impatient::default());
        assert!(matches!(stopped, Err(JobError::Stopped)));
        assert!(DatasetReader::open(&config.output).is_err(), "not complete");
        assert_eq!(run(&config).expect("resumed").resumed_from, 8);
        DatasetReader::open(&config.output).expect("complete");
    }

    #[test]
    fn named_clips_are_walked_frame_by_frame_unless_a_number_is_given() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let base = SampleConfig { poses: None, clips: vec!["nod".into()], ..config(folder.path()) };
        let walk = run(&base).expect("recorded");
        assert_eq!((walk.method, walk.poses), (Method::Clips, 31));
        let other = SampleConfig { poses: Some(9), output: folder.path().join("noise"), ..base.clone() };
        assert_eq!(run(&other).expect("recorded").method, Method::Noise);
        let many = SampleConfig { poses: Some(99), method: Some(Method::Clips), ..base };
        assert!(run(&many).expect_err("only 31 frames").is_bad_input());
    }

    #[test]
    fn other_settings_and_other_folders_are_refused() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let config = config(folder.path());
        run(&config).expect("recorded");
        let before = bytes(&config.output);
        let other = run(&SampleConfig { seed: 2, ..config.clone() }).expect_err("another seed");
        assert!(other.is_bad_input() && other.to_string().contains("seed"), "{other}");
        assert_eq!(bytes(&config.output), before);
        let mine = folder.path().join("mine");
        std::fs::create_dir(&mine).expect("writable");
        std::fs::write(mine.join("thesis.txt"), "precious").expect("writable");
        let refused =
            sample(&SampleConfig { output: mine.clone(), ..config }, &Silent).expect_err("not ours");
        assert!(refused.to_string().contains("thesis.txt"), "{refused}");
        assert_eq!(bytes(&mine).len(), 1);
    }
}
