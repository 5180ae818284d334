//! Rigs that the program around us brings along: a class in Python, an engine's own character. They have names of the form
//! `host:NAME#NUMBER`, which every command takes as it takes a file's. Datasets record `host:NAME` alone: the number says which
//! of the objects in this process it is, and would differ in the next one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use understudy_rigs::Rig;

/// What such a name begins with.
const PREFIX: &str = "host:";
/// Between the name and the number.
const NUMBER: char = '#';

/// Those that are there now.
static HOSTED: RwLock<BTreeMap<String, Arc<dyn Rig>>> = RwLock::new(BTreeMap::new());

/// Makes a rig known to every job of this process under `host:NAME#NUMBER`, which is given back: two objects of one name are
/// two rigs.
pub fn host(name: &str, rig: Arc<dyn Rig>) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let name = format!("{PREFIX}{name}{NUMBER}{}", NEXT.fetch_add(1, Ordering::Relaxed));
    HOSTED.write().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), rig);
    name
}

/// Forgets a rig; jobs that have opened it go on.
pub fn release(name: &str) {
    HOSTED.write().unwrap_or_else(PoisonError::into_inner).remove(name);
}

/// Whether a name is of that form.
pub(super) fn is_hosted(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// A rig's name as datasets record it: the same in every process.
pub(crate) fn lasting(name: &str) -> Cow<'_, str> {
    match name.rsplit_once(NUMBER) {
        Some((lasting, _)) if is_hosted(name) => lasting.into(),
        _ => name.into(),
    }
}

/// The rig of that name. A recorded name, which has no number, stands for the only rig that it can mean.
pub(super) fn find(name: &str) -> Option<Arc<dyn Rig>> {
    let hosted = HOSTED.read().unwrap_or_else(PoisonError::into_inner);
    let only = || {
        let mut meant = hosted.iter().filter(|(hosted, _)| lasting(hosted) == name);
        meant.next().filter(|_| meant.next().is_none()).map(|(_, rig)| rig)
    };
    hosted.get(name).or_else(only).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;
    use crate::rigs::open;
    use crate::sample::{SampleConfig, sample};
    use crate::test_rig::small_rig;

    #[test]
    fn a_hosted_rig_is_found_until_it_is_released() {
        let rig: Arc<dyn Rig> = Arc::new(understudy_characters::mira::build().expect("a rig"));
        let name = host("hero", rig);
        assert!(name.starts_with("host:hero#"), "{name}");
        let found = open(&name, &Silent).expect("the rig");
        assert!(found.rig.blendshapes().is_some() && found.rig.clips().len() > 1, "every call is passed on");
        release(&name);
        let error = open(&name, &Silent).err().expect("it is gone").to_string();
        assert!(error.contains("host:hero"), "{error}");
    }

    #[test]
    fn datasets_go_on_with_another_object_of_the_same_rig() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let record = |poses| {
            let name = host("small", Arc::new(small_rig()));
            let config = SampleConfig {
                rig: name.clone(),
                output: folder.path().join("data"),
                poses: Some(poses),
                ..SampleConfig::default()
            };
            let report = sample(&config, &Silent);
            release(&name);
            report
        };
        assert_eq!(record(20).expect("recorded").rig, "host:small");
        assert_eq!(record(20).expect("it is the same rig").resumed_from, 20);
        assert!(record(30).is_err(), "another number of poses");
    }

    #[test]
    fn a_recorded_name_is_the_only_rig_that_it_can_mean() {
        let names = [(); 2].map(|()| host("twins", Arc::new(small_rig())));
        assert!(names[0] != names[1] && lasting(&names[0]) == "host:twins");
        assert_eq!((lasting("hero#2.glb"), lasting("mira")), ("hero#2.glb".into(), "mira".into()));
        assert!(find("host:twins").is_none(), "either could be meant");
        release(&names[0]);
        assert!(find("host:twins").is_some());
        release(&names[1]);
    }
}
