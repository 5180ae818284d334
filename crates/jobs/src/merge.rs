//! `merge`: joins the shards of a recording, which several machines made by `sample --shard`, into one dataset: the very
//! bytes that one machine would have written.

use crate::outputs::{BLENDER_SURVEY, CONTACT_SHEET, FAILED_POSES, check_folder};
use crate::{Event, JobError, Watch, rigs};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use understudy_io::dataset::{DatasetReader, RigFile, Shards};

/// What to join.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MergeConfig {
    /// Folders of the shards, in any order; more than one may hold a chunk.
    pub shards: Vec<PathBuf>,
    /// Folder of the dataset.
    pub output: PathBuf,
}

/// What was joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergeReport {
    /// Folder of the dataset.
    pub folder: PathBuf,
    /// The rig.
    pub rig: String,
    /// Shards.
    pub shards: usize,
    /// Poses in the dataset.
    pub poses: usize,
    /// Files of poses.
    pub chunks: usize,
}

/// Joins shards; goes on where an earlier merge stopped.
pub fn merge(config: &MergeConfig, watch: &dyn Watch) -> Result<MergeReport, JobError> {
    check_folder(&config.output)?;
    if config.shards.iter().any(|shard| shard == &config.output) {
        return Err(JobError::unusable(&config.output, "is a shard too; choose another folder"));
    }
    let shards = Shards::open(&config.shards)?;
    let mut header = shards.header();
    // As one machine would have written it: the rig's place as seen from the dataset's folder.
    let source = rigs::source_file(&header.rig);
    if !source.as_os_str().is_empty() {
        header.rig_file = RigFile::new(&source, &config.output).or(header.rig_file);
    }
    let what = format!("merging {} shards", config.shards.len());
    watch.event(Event::Started { what: &what, total: header.chunk_count() as u64, unit: "chunks" });
    let mut stopped = false;
    shards.merge(&config.output, &header, &mut |done| {
        watch.event(Event::Step { done: done as u64 });
        stopped = watch.should_stop();
        !stopped
    })?;
    if stopped {
        return Err(JobError::Stopped);
    }
    carry_over(&config.shards, &config.output)?;
    watch.event(Event::Finished);
    let whole = DatasetReader::open(&config.output)?;
    Ok(MergeReport {
        folder: config.output.clone(),
        rig: header.rig.clone(),
        shards: config.shards.len(),
        poses: whole.header().poses,
        chunks: whole.chunk_count(),
    })
}

/// What lies beside the poses: the survey and the contact sheet of the first shard that has one, failed poses of all.
fn carry_over(shards: &[PathBuf], output: &Path) -> Result<(), JobError> {
    for name in [BLENDER_SURVEY, CONTACT_SHEET] {
        if let Some(bytes) = shards.iter().find_map(|shard| std::fs::read(shard.join(name)).ok()) {
            understudy_io::write_atomic(&output.join(name), &bytes)?;
        }
    }
    let mut lines: Vec<String> = Vec::new();
    let mut head = None;
    for shard in shards {
        let Ok(text) = std::fs::read_to_string(shard.join(FAILED_POSES)) else { continue };
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        head.get_or_insert(first.to_owned());
        lines.extend(rest.lines().map(str::to_owned));
    }
    if let Some(head) = head {
        lines.sort_by_key(|line| line.split(',').next().and_then(|first| first.parse::<u64>().ok()));
        let text = format!("{head}\n{}\n", lines.join("\n"));
        understudy_io::write_atomic(&output.join(FAILED_POSES), text.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;
    use crate::sample::{SampleConfig, Shard, sample};

    fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let mut all: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
            .expect("a folder")
            .flatten()
            .map(|entry| {
                (entry.file_name().to_string_lossy().into(), std::fs::read(entry.path()).expect("a file"))
            })
            .collect();
        all.sort();
        all
    }

    #[test]
    fn shards_make_the_bytes_of_one_run() {
        let scratch = tempfile::tempdir().expect("a folder");
        let at = |name: &str| scratch.path().join(name);
        let config = |name: &str, seed| SampleConfig {
            rig: "mira".into(),
            output: at(name),
            poses: Some(70),
            chunk: Some(8),
            seed,
            ..SampleConfig::default()
        };
        sample(&config("whole", 5), &Silent).expect("a dataset");
        for number in [3, 1, 2] {
            let shard = Some(Shard { number, of: 3 });
            let report = sample(&SampleConfig { shard, ..config(&format!("{number}"), 5) }, &Silent);
            assert_eq!(report.expect("a shard").chunks, 3);
        }
        let join = |shards: &[&str], output: &str| {
            let shards = shards.iter().map(|name| at(name)).collect();
            merge(&MergeConfig { shards, output: at(output) }, &Silent).map_err(|error| error.to_string())
        };
        let error = join(&["1", "3"], "joined").expect_err("a shard is missing");
        assert!(error.contains("3 of 9 chunks are missing"), "{error}");
        // It goes on, with a shard that lies there twice.
        let report = join(&["2", "1", "2", "3"], "joined").expect("a dataset");
        assert_eq!((report.poses, report.chunks), (70, 9));
        assert!(files(&at("joined")) == files(&at("whole")), "byte for byte");

        let shard = Some(Shard { number: 1, of: 3 });
        sample(&SampleConfig { shard, ..config("other", 6) }, &Silent).expect("a shard");
        let error = join(&["2", "other"], "mixed").expect_err("two recordings");
        assert!(error.contains("another seed"), "{error}");
        assert!(!at("mixed").exists(), "nothing is left behind");
        let error = join(&["nowhere"], "mixed").expect_err("no shard");
        assert!(error.contains("nowhere"), "{error}");
        let damaged = at("1").join("chunk-000000.safetensors");
        let mut bytes = std::fs::read(&damaged).expect("a chunk");
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&damaged, bytes).expect("written");
        let error = join(&["1"], "mixed").expect_err("a damaged chunk");
        assert!(error.contains("chunk-000000") && error.contains("damaged"), "{error}");
        let shard = Some(Shard { number: 4, of: 3 });
        assert!(sample(&SampleConfig { shard, ..config("no", 5) }, &Silent).is_err());
    }
}
