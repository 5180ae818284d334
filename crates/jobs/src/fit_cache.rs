//! Fits of baselines, kept beside the data that they were fitted to: `DATASET/fits/NAME.safetensors`. A fit that
//! is stale (other poses, other settings) or damaged is made again. Start at [`FitCache::of`].

use crate::{Event, JobError, Watch};
use std::path::{Path, PathBuf};
use understudy_io::dataset::content_hash;
use understudy_io::tensors::{TensorWriter, Tensors};
use understudy_io::{Dim, read_bytes, write_atomic};
use understudy_learn::baselines::Parameters;

/// The fits of one dataset.
pub(crate) struct FitCache {
    folder: PathBuf,
    /// A hash of the dataset's manifest, which holds the hashes of its chunks, and of what else fits depend on.
    key: String,
}

impl FitCache {
    /// Of the dataset in that folder; `settings`: what fits depend on besides their names and the poses.
    pub fn of(dataset: &Path, settings: &str) -> Result<Self, JobError> {
        let manifest = read_bytes(&dataset.join("dataset.toml"))?;
        let key = content_hash([settings.as_bytes(), b"\0", &manifest]);
        Ok(Self { folder: dataset.join("fits"), key })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.safetensors"))
    }

    /// The parameters that were kept; `None` where there are none, or none that can be relied on.
    pub fn load(&self, name: &str) -> Option<Parameters> {
        let bytes = std::fs::read(self.path(name)).ok()?;
        let file = Tensors::parse(&bytes).ok()?;
        let note = |key: &str| file.metadata().get(key).map(String::as_str);
        let sound = note("baseline") == Some(name) && note("key") == Some(&self.key);
        if !sound {
            return None;
        }
        let mut parameters = Parameters::default();
        while file.contains(&format!("integers_{}", parameters.integers.len())) {
            let array = format!("integers_{}", parameters.integers.len());
            parameters.integers.push(file.u32(&array, &[Dim::Any("n")]).ok()?.data);
        }
        while file.contains(&format!("floats_{}", parameters.floats.len())) {
            let array = format!("floats_{}", parameters.floats.len());
            parameters.floats.push(file.f32(&array, &[Dim::Any("n")]).ok()?.data);
        }
        (note("sha256") == Some(&digest(&parameters))).then_some(parameters)
    }

    /// Keeps the parameters. A folder that cannot be written is no mistake: the next run fits again.
    pub fn store(&self, name: &str, parameters: &Parameters, watch: &dyn Watch) {
        let mut writer = TensorWriter::new();
        for (index, list) in parameters.integers.iter().enumerate() {
            writer.u32(&format!("integers_{index}"), &[list.len()], list);
        }
        for (index, list) in parameters.floats.iter().enumerate() {
            writer.f32(&format!("floats_{index}"), &[list.len()], list);
        }
        let hash = digest(parameters);
        writer.metadata("baseline", name).metadata("key", &self.key).metadata("sha256", hash);
        let problem = match writer.finish() {
            Ok(bytes) => write_atomic(&self.path(name), &bytes).err().map(|error| error.to_string()),
            Err(problem) => Some(problem),
        };
        if let Some(problem) = problem {
            watch.event(Event::Note { message: &format!("the fit of {name} is not kept: {problem}") });
        }
    }
}

/// A hash of all lists and of where each ends: a damaged directory of the file loses arrays without touching their
/// bytes.
fn digest(parameters: &Parameters) -> String {
    let length = |count: usize| (count as u64).to_le_bytes().to_vec();
    let mut pieces = vec![length(parameters.integers.len()), length(parameters.floats.len())];
    for list in &parameters.integers {
        pieces.extend([length(list.len()), list.iter().flat_map(|n| n.to_le_bytes()).collect()]);
    }
    for list in &parameters.floats {
        pieces.extend([length(list.len()), list.iter().flat_map(|n| n.to_le_bytes()).collect()]);
    }
    content_hash(pieces.iter().map(Vec::as_slice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;

    #[test]
    fn what_is_stale_or_damaged_is_not_taken() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let folder = folder.path();
        let manifest = folder.join("dataset.toml");
        std::fs::write(&manifest, "poses = 3").expect("a scratch file");
        let cache = FitCache::of(folder, "version 1").expect("a manifest");
        assert_eq!(cache.load("lbs4"), None);
        let parameters =
            Parameters { integers: vec![vec![1, 2], vec![]], floats: vec![vec![0.5], vec![-1.0, 2.0]] };
        cache.store("lbs4", &parameters, &Silent);
        assert_eq!(cache.load("lbs4"), Some(parameters.clone()));
        assert_eq!(cache.load("rigid"), None);
        let other = FitCache::of(folder, "version 2").expect("a manifest");
        assert_eq!(other.load("lbs4"), None, "other settings");

        let path = cache.path("lbs4");
        let whole = std::fs::read(&path).expect("was written");
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x10;
            std::fs::write(&path, &bytes).expect("a scratch file");
            assert!(cache.load("lbs4").is_none_or(|found| found == parameters), "byte {place}");
        }
        std::fs::write(&path, &whole[..whole.len() - 1]).expect("a scratch file");
        assert_eq!(cache.load("lbs4"), None, "cut short");
        std::fs::copy(&path, cache.path("rigid")).expect("a scratch file");
        std::fs::write(&path, &whole).expect("a scratch file");
        assert_eq!(cache.load("rigid"), None, "another baseline's");
        std::fs::write(&manifest, "poses = 4").expect("a scratch file");
        let changed = FitCache::of(folder, "version 1").expect("a manifest");
        assert_eq!(changed.load("lbs4"), None, "other poses");
    }
}
