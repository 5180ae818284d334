//! Why a job failed, and whose fault it is: the input's (`2` at a command line) or anything else's (`1`).

use crate::convert::bake::BakeError;
use std::path::{Path, PathBuf};
use thiserror::Error;
use understudy_core::{ControlError, ControlSpecs, Mesh};
use understudy_io::dataset::DatasetError;
use understudy_io::{ReadError, WriteError};
use understudy_rigs::RigError;
use understudy_rigs::sampling::SamplingError;

/// Every message is one line that names the file or the part and the place.
#[derive(Debug, Error)]
pub enum JobError {
    /// A file could not be read or holds something wrong.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A dataset could not be read, written or continued.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A setting that makes no sense, or that does not fit the rig.
    #[error("{place}: {problem}")]
    Setting {
        /// Which setting, such as `--poses` or `control 'jaw'`.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A rig or file that cannot be used for what was asked.
    #[error("{path}: {problem}", path = path.display())]
    Unusable {
        /// The rig's name or the file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// The rig failed while it was posed.
    #[error("{rig}: {source}")]
    Rig {
        /// The rig.
        rig: String,
        /// What happened.
        source: RigError,
    },
    /// The listener asked to stop.
    #[error("stopped")]
    Stopped,
    /// The machine did not give what was needed.
    #[error("{0}")]
    Machine(String),
}

impl JobError {
    /// Whether the input or a setting is at fault.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Read(_) | Self::Setting { .. } | Self::Unusable { .. } => true,
            Self::Dataset(error) => !matches!(error, DatasetError::Write(_) | DatasetError::BadChunk { .. }),
            Self::Write(_) | Self::Rig { .. } | Self::Stopped | Self::Machine(_) => false,
        }
    }

    /// A setting that makes no sense, and why.
    pub fn setting(place: impl Into<String>, problem: impl ToString) -> Self {
        Self::Setting { place: place.into(), problem: problem.to_string() }
    }

    /// A file or rig that cannot be used so, and why.
    pub fn unusable(path: impl AsRef<Path>, problem: impl ToString) -> Self {
        Self::Unusable { path: path.as_ref().into(), problem: problem.to_string() }
    }

    pub(crate) fn rig(name: &str) -> impl Fn(RigError) -> Self + '_ {
        move |source| Self::Rig { rig: name.into(), source }
    }

    pub(crate) fn sampling(rig: &str) -> impl Fn(SamplingError) -> Self + '_ {
        move |error| Self::unusable(rig, error)
    }

    pub(crate) fn controls<'a>(rig: &'a str, specs: &'a ControlSpecs) -> impl Fn(ControlError) -> Self + 'a {
        move |error| match error {
            ControlError::Unknown { name } => {
                crate::names::unknown("control", &name, rig, specs.iter().map(|spec| spec.name.as_str()))
            }
            other => Self::unusable(rig, other),
        }
    }

    pub(crate) fn unknown_clip<'a>(rig: &str, clip: &str, known: impl Iterator<Item = &'a str>) -> Self {
        crate::names::unknown("clip", clip, rig, known)
    }

    /// A mesh that is not the one wanted; both topology hashes tell which is which in `info`.
    pub(crate) fn other_topology(
        path: impl AsRef<Path>,
        found: &Mesh,
        whose: &str,
        want: (usize, u64),
    ) -> Self {
        let (vertices, hash) = want;
        let problem = format!(
            "its mesh ({} vertices, topology {:016x}) is not {whose} ({vertices} vertices, topology {hash:016x})",
            found.vertex_count(),
            found.topology_hash()
        );
        Self::unusable(path, problem)
    }

    pub(crate) fn bake(place: String) -> impl Fn(BakeError) -> Self {
        move |error| Self::setting(place.clone(), error)
    }
}
