//! Rigs that were opened, each once for all tabs: building one takes a second or more.

use crate::error::Refusal;
use crate::scene;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;
use understudy_jobs::{Event, Watch, rigs};
use understudy_rigs::Rig;

/// Rigs that stay open while no tab shows them.
const KEPT: usize = 4;

/// An open rig.
pub(crate) struct Loaded {
    pub name: String,
    pub rig: Arc<dyn Rig>,
    /// What the reader converted, skipped or mended.
    pub notes: Vec<String>,
    scene: OnceLock<Vec<u8>>,
}

impl Loaded {
    /// What a page needs to show it, made when it is first asked for.
    pub fn scene(&self) -> &[u8] {
        self.scene.get_or_init(|| scene::pack(&self.name, self.rig.as_ref(), &self.notes))
    }
}

type Slot = Arc<Mutex<Option<Arc<Loaded>>>>;

/// What an open rig is found by: its name, and when its file was written. One that was exported again is opened again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    name: String,
    /// With its bytes: some file systems count whole seconds.
    written: Option<(SystemTime, u64)>,
}

impl Key {
    fn of(opened_as: &str) -> Self {
        let written = std::fs::metadata(opened_as).ok();
        let written = written.and_then(|data| Some((data.modified().ok()?, data.len())));
        Self { name: opened_as.into(), written }
    }
}

/// The open rigs, the one used last at the end.
#[derive(Default)]
pub(crate) struct Library(Mutex<Vec<(Key, Slot)>>);

impl Library {
    /// The rig of a name, opened where it is not; takes as long as that takes. Tabs that ask for one rig wait for each
    /// other, not for those that open another.
    pub fn open(&self, name: &str, opened_as: &str) -> Result<Arc<Loaded>, Refusal> {
        let slot = self.slot(Key::of(opened_as));
        let mut content = lock(&slot);
        if let Some(loaded) = &*content {
            return Ok(Arc::clone(loaded));
        }
        let notes = Notes::default();
        let rig = rigs::open(opened_as, &notes)?.rig;
        let notes = notes.taken();
        let loaded =
            Arc::new(Loaded { name: name.into(), rig: Arc::from(rig), notes, scene: OnceLock::new() });
        *content = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    fn slot(&self, key: Key) -> Slot {
        let mut slots = lock(&self.0);
        let slot = match slots.iter().position(|(known, _)| *known == key) {
            Some(place) => slots.remove(place).1,
            None => Slot::default(),
        };
        // What the file was before.
        slots.retain(|(known, _)| known.name != key.name);
        // A tab that shows a rig holds it itself.
        while slots.len() >= KEPT {
            slots.remove(0);
        }
        slots.push((key, Arc::clone(&slot)));
        slot
    }
}

/// A panic elsewhere leaves nothing half done: what is locked here is whole at every moment.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps what a reader says.
#[derive(Default)]
pub(crate) struct Notes(pub Mutex<Vec<String>>);

impl Notes {
    /// What was said.
    pub fn taken(self) -> Vec<String> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Notes {
    fn event(&self, event: Event<'_>) {
        if let Event::Note { message } | Event::Warning { message } = event {
            lock(&self.0).push(message.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rig_is_opened_once_and_old_ones_are_let_go() {
        let library = Library::default();
        let first = library.open("mira", "mira").expect("it is embedded");
        let again = library.open("mira", "mira").expect("it is embedded");
        assert!(Arc::ptr_eq(&first, &again));
        assert!(library.open("nobody", "nobody").is_err());
        for name in ["a", "b", "c", "d", "e"] {
            library.slot(Key::of(name));
        }
        assert_eq!(lock(&library.0).len(), KEPT);
        assert!(first.scene().len() > 100_000, "a tab that shows it still has it");
    }

    #[test]
    fn a_file_that_was_written_again_is_opened_again() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let path = folder.path().join("mesh.obj");
        let name = path.display().to_string();
        let library = Library::default();
        let open = |text: &str| {
            std::fs::write(&path, text).expect("writable");
            library.open("mesh.obj", &name).expect("a mesh")
        };
        let triangle = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n";
        let first = open(triangle);
        assert!(Arc::ptr_eq(&first, &library.open("mesh.obj", &name).expect("a mesh")));
        let second = open(&format!("{triangle}v 1 1 0\nf 2 4 3\n"));
        assert_eq!((first.rig.mesh().positions().len(), second.rig.mesh().positions().len()), (3, 4));
        assert_eq!(lock(&library.0).len(), 1, "the old one is let go");
    }
}
