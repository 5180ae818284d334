//! Whether tests are clean: what a twin's file says of the clips that it learned from (and that `learn auto` chose its kind by,
//! as trials are weighed on poses of the same dataset), against the clips that it is to be weighed by.

use crate::twin::learn::{CHOSEN_ON, DATA};
use crate::{Event, JobError, Watch};
use std::collections::BTreeMap;
use understudy_runtime::Twin;

/// Where a test set comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Origin {
    /// The set's name.
    pub set: String,
    /// Clips that its poses are frames of, or made from.
    pub clips: Vec<String>,
    /// Frames that were held out of a recording of the same clips.
    pub held_out: bool,
    /// Clips of it that are kept for tests.
    pub kept: Vec<String>,
}

impl Origin {
    /// Of a dataset, by the settings in its header.
    pub fn of_dataset(set: String, settings: &BTreeMap<String, String>, kept_for_tests: &str) -> Self {
        let list = |key: &str| settings.get(key).map_or_else(Vec::new, |names| names_in(names));
        let held_out = settings.get("held_out").is_some_and(|which| which.starts_with("these"));
        Self { set, clips: list("clips"), held_out, kept: list(kept_for_tests) }
    }
}

fn names_in(list: &str) -> Vec<String> {
    list.split(", ").map(str::to_owned).collect()
}

/// Refuses clips that are kept for tests and that the twin learned from, or that its options were chosen by; of others it
/// says the former.
pub(super) fn check(name: &str, twin: &Twin, origins: &[Origin], watch: &dyn Watch) -> Result<(), JobError> {
    let data = twin.header().training.details.get(DATA);
    let setting = |key: &str| data.and_then(|data| data["settings"][key].as_str());
    let learned = setting("clips").map_or_else(Vec::new, names_in);
    let left_some = setting("held_out").is_some_and(|which| which.starts_with("the others"));
    let chosen = twin.header().training.details.get(CHOSEN_ON).and_then(|list| list.as_array());
    let chosen: Vec<&str> = chosen.into_iter().flatten().filter_map(|clip| clip.as_str()).collect();
    for origin in origins {
        if let Some(clip) = origin.kept.iter().find(|clip| chosen.contains(&clip.as_str())) {
            let problem = format!(
                "the clip '{clip}' of '{}' is kept for tests, but the options of {name} were chosen by it",
                origin.set
            );
            return Err(JobError::setting("test", problem));
        }
        if let Some(clip) = origin.kept.iter().find(|clip| learned.contains(clip)) {
            let problem = format!(
                "the clip '{clip}' of '{}' is kept for tests, but {name} learned from it; learn from data without it",
                origin.set
            );
            return Err(JobError::setting("test", problem));
        }
        if origin.held_out && left_some {
            continue;
        }
        if let Some(clip) = origin.clips.iter().find(|clip| learned.contains(clip)) {
            let message = format!("{name} learned from the clip '{clip}', of which '{}' is made", origin.set);
            watch.event(Event::Warning { message: &message });
        }
    }
    Ok(())
}
