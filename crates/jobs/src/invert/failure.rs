//! Puts the rig's or the target file's name before what went wrong in a solve.

use super::targets::Targets;
use crate::JobError;
use understudy_solve::inverse_rig::InverseError;

/// Who could be at fault.
pub(super) struct Failure<'a> {
    pub rig: &'a str,
    pub targets: &'a Targets,
}

impl Failure<'_> {
    pub(super) fn of(&self, error: InverseError) -> JobError {
        match error {
            InverseError::Stopped => JobError::Stopped,
            InverseError::Frame { frame, error } => {
                let (path, place) = self.targets.place(frame);
                let place = place.map_or(String::new(), |place| format!("{place}: "));
                JobError::unusable(path, format!("{place}{error}"))
            }
            InverseError::Setting { name, value, want } => {
                JobError::setting(name.replace('_', " "), format!("{want}, not {value}"))
            }
            InverseError::UnknownShape { .. } | InverseError::Overlap { .. } => {
                JobError::setting("shapes", error)
            }
            other => JobError::unusable(self.rig, other),
        }
    }
}
