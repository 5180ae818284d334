//! How fast poses are recorded and how much memory that takes: the figures of the sampling benchmark.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use understudy_jobs::sample::{SampleConfig, record};
use understudy_jobs::{JobError, Watch, rigs, threads};

/// What to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SamplingBenchConfig {
    /// A rig by name or file.
    pub rig: String,
    /// Poses a run.
    pub poses: u64,
    /// One run for each of these numbers of threads.
    pub threads: Vec<usize>,
    /// Folder of the datasets; `None` for one among the system's temporary files. Removed afterwards.
    pub output: Option<PathBuf>,
    /// Deletes every chunk once it is written and hashed: disk space stays bounded, as memory does.
    pub keep_nothing: bool,
    /// Poses a chunk; `None` for the usual number.
    pub chunk: Option<u64>,
}

impl Default for SamplingBenchConfig {
    fn default() -> Self {
        let (output, chunk) = (None, None);
        Self { rig: "rook".into(), poses: 2000, threads: vec![1, 2], output, keep_nothing: false, chunk }
    }
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SamplingBenchReport {
    /// The rig.
    pub rig: String,
    /// Vertices of the rig.
    pub vertices: usize,
    /// What the machine offers.
    pub cores: usize,
    /// One entry a number of threads.
    pub runs: Vec<SamplingRun>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SamplingRun {
    /// Threads.
    pub threads: usize,
    /// Poses recorded.
    pub poses: u64,
    /// Duration.
    pub seconds: f64,
    /// Poses recorded a second, writing included.
    pub poses_per_second: f64,
    /// Bytes of numbers per pose.
    pub bytes_per_pose: u64,
    /// The most memory that the process has held so far; `None` where the system does not say.
    pub peak_memory_bytes: Option<u64>,
}

/// Records the same dataset once for each number of threads.
pub fn bench_sampling(
    config: &SamplingBenchConfig,
    watch: &dyn Watch,
) -> Result<SamplingBenchReport, JobError> {
    if config.poses == 0 || config.threads.is_empty() {
        return Err(JobError::setting("poses", "at least one pose and one number of threads are wanted"));
    }
    let folder = config
        .output
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("understudy-bench-{}", std::process::id())));
    if folder.exists() {
        return Err(JobError::unusable(&folder, "exists already; a folder of its own is wanted"));
    }
    let rig = rigs::open(&config.rig, watch)?.rig;
    let runs = config.threads.iter().map(|threads| {
        let output = folder.join(format!("threads-{threads}"));
        let forget = |chunk: usize| match config.keep_nothing {
            true => remove_file(&output.join(format!("chunk-{chunk:06}.safetensors"))),
            false => Ok(()),
        };
        let sample = SampleConfig {
            rig: config.rig.clone(),
            output: output.clone(),
            poses: Some(config.poses),
            threads: *threads,
            chunk: config.chunk,
            ..SampleConfig::default()
        };
        let report = record(rig.as_ref(), &sample, &forget, watch)?;
        remove_folder(&output)?;
        Ok(SamplingRun {
            threads: *threads,
            poses: report.poses,
            seconds: report.seconds,
            poses_per_second: report.poses_per_second,
            bytes_per_pose: report.bytes_per_pose,
            peak_memory_bytes: peak_memory(),
        })
    });
    let runs: Result<Vec<SamplingRun>, JobError> = runs.collect();
    remove_folder(&folder)?;
    let vertices = rig.mesh().vertex_count();
    Ok(SamplingBenchReport { rig: config.rig.clone(), vertices, cores: threads::available(), runs: runs? })
}

/// `VmHWM` of the process, where the system has it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

fn remove_file(path: &Path) -> Result<(), JobError> {
    std::fs::remove_file(path).map_err(|error| JobError::Machine(format!("{}: {error}", path.display())))
}

fn remove_folder(path: &Path) -> Result<(), JobError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(JobError::Machine(format!("{}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}
