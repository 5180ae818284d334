//! The fuzz corpus in ordinary test runs: every file of `fuzz/corpus`, and fixed mutations of each,
//! through the same functions that the fuzzers run. Nothing may panic, nor take memory that its
//! input does not account for. `make_corpus` (ignored) writes the corpus.

#[path = "alembic_support/mod.rs"]
mod alembic_support;
#[path = "corpus_support/maker.rs"]
mod maker;
#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "gltf_support/packed.rs"]
mod packed;
#[path = "../../../fuzz/src/targets.rs"]
mod targets;

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use understudy_core::Random;

/// Mutations of each file, unless `UNDERSTUDY_MUTATIONS` says more.
const MUTATIONS: usize = 2000;
/// What one reader may hold at a time for an input of a few kilobytes. Deflate alone may grow a
/// thousandfold.
const MEMORY_LIMIT: usize = 64 << 20;

/// Counts what is allocated: a header that claims gigabytes shows here even if the memory is never touched.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code, reason = "an allocator is unsafe by its signature; it only counts and passes on")]
// SAFETY: every call is passed on to the system's allocator with the arguments it was given.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

/// The files of a target, sorted by name.
fn files(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = corpus().join(target);
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable entry").path())
        .map(|path| {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            (name, std::fs::read(&path).expect("a readable file"))
        })
        .collect();
    files.sort();
    files
}

#[test]
#[ignore = "writes fuzz/corpus"]
fn make_corpus() {
    for (target, name, bytes) in maker::all() {
        let folder = corpus().join(target);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(name), bytes).expect("a file");
    }
}

/// One test, not several: the allocator counts for the whole process.
#[test]
fn readers_survive_the_corpus_and_its_mutations() {
    let asked = std::env::var("UNDERSTUDY_MUTATIONS").ok().and_then(|text| text.parse().ok());
    let mutations: usize = asked.unwrap_or(MUTATIONS);
    let mut total = 0;
    for (target, run) in targets::TARGETS {
        let files = files(target);
        let good = files.iter().filter(|(name, _)| name.starts_with("good-")).count();
        assert!(good > 0 && good < files.len(), "{target}: some good and some bad files");
        total += files.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        for (number, (name, bytes)) in files.iter().enumerate() {
            assert_eq!(run(bytes), name.starts_with("good-"), "{target}/{name}");
            for mutation in 0..mutations {
                let seed = (number * mutations + mutation) as u64;
                let other = &files[mutation % files.len()].1;
                let mutant = mutate::mutate(bytes, other, &mut Random::stream(seed, target.len() as u64));
                check(target, name, mutation, run, &mutant);
            }
        }
    }
    assert!(total < 300_000, "the corpus has {total} bytes");
}

/// Runs a target on bytes; on a panic or a burst of memory, says which input it was.
fn check(target: &str, name: &str, mutation: usize, run: targets::Run, bytes: &[u8]) {
    let held = HELD.load(Ordering::Relaxed);
    MOST.store(held, Ordering::Relaxed);
    let outcome = std::panic::catch_unwind(|| run(bytes));
    let most = MOST.load(Ordering::Relaxed).saturating_sub(held);
    if outcome.is_err() || most > MEMORY_LIMIT {
        let file = std::env::temp_dir().join(format!("understudy-{target}-{mutation}-{name}"));
        let _ = std::fs::write(&file, bytes);
        panic!("{target}/{name}, mutation {mutation}: {most} bytes held; input kept in {}", file.display());
    }
}
