//! Rigs that the program around us brings along: a class in Python, an engine's own character. They have names of the form
//! `host:NAME`, which every command takes as it takes a file's.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use understudy_rigs::Rig;

/// What such a name begins with.
const PREFIX: &str = "host:";

/// Those that are there now.
static HOSTED: RwLock<BTreeMap<String, Arc<dyn Rig>>> = RwLock::new(BTreeMap::new());

/// Makes a rig known to every job of this process under `host:NAME`, which is given back. One of the same name gives way.
pub fn host(name: &str, rig: Arc<dyn Rig>) -> String {
    let name = format!("{PREFIX}{name}");
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

/// The rig of that name.
pub(super) fn find(name: &str) -> Option<Arc<dyn Rig>> {
    HOSTED.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;
    use crate::rigs::open;

    #[test]
    fn a_hosted_rig_is_found_until_it_is_released() {
        let rig: Arc<dyn Rig> = Arc::new(understudy_characters::mira::build().expect("a rig"));
        let name = host("hero", rig);
        assert_eq!(name, "host:hero");
        let found = open(&name, &Silent).expect("the rig");
        assert!(found.rig.blendshapes().is_some() && found.rig.clips().len() > 1, "every call is passed on");
        release(&name);
        let error = open(&name, &Silent).err().expect("it is gone").to_string();
        assert!(error.contains("host:hero"), "{error}");
    }
}
