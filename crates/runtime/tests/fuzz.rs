//! The fuzz corpus of twins in ordinary test runs: every file of `fuzz/corpus/twin` and fixed mutations of each, through
//! the function that the fuzzer runs. `UNDERSTUDY_MUTATIONS` asks for more of them than the few of every day;
//! `make_corpus` (ignored) writes the corpus.
#![cfg(feature = "internals")]

#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/src/twin.rs"]
mod target;
#[path = "common/twins.rs"]
mod twins;

use std::path::PathBuf;
use understudy_core::Random;
use understudy_runtime::face::MapShape;

/// Mutations of each file, unless `UNDERSTUDY_MUTATIONS` says more.
const MUTATIONS: usize = 1000;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/twin")
}

#[test]
#[ignore = "writes fuzz/corpus/twin"]
fn make_corpus() {
    let shape = MapShape {
        side: 2,
        channels: 2,
        hidden: 3,
        doublings: 1,
        outputs: 3,
        untied: true,
        shared_features: 2,
    };
    let body = twins::sized_body(3, 5, [13, 4, 2]).to_bytes().expect("a valid twin");
    let face = twins::sized_face(6, [7, 2], [4, 1], shape, 5).to_bytes().expect("a valid twin");
    let diff = twins::sized_diff(3, 2, 11, [5, 4], 2).to_bytes().expect("a valid twin");
    let bare = twins::sized_diff(0, 4, 9, [5, 3], 2).to_bytes().expect("a valid twin");
    let skin = twins::sized_skin(6, 11, 3, 2).to_bytes().expect("a valid twin");
    let mechanism = twins::mechanism(3, &[]);
    let posed = twins::sized_body(3, 5, [13, 4, 2]).with_mechanism(mechanism).expect("it fits");
    let posed = posed.to_bytes().expect("a valid twin");
    let twin = twins::sized_diff(5, 2, 9, [5, 3], 2);
    let learned = twin.with_mechanism(twins::learned_mechanism(&["c0", "c1"])).expect("it fits");
    let learned = learned.to_bytes().expect("a valid twin");
    let mut flipped = body.clone();
    *flipped.last_mut().expect("not empty") ^= 1;
    let newer = String::from_utf8_lossy(b"\"understudy\":\"").into_owned();
    let place = face.windows(newer.len()).position(|w| w == newer.as_bytes()).expect("is in the header");
    let mut version = face.clone();
    version[place + newer.len()] = b'9';
    std::fs::create_dir_all(corpus()).expect("a folder");
    for (name, bytes) in [
        ("good-body.twin", &body[..]),
        ("good-face.twin", &face),
        ("good-diff.twin", &diff),
        ("good-diff-controls.twin", &bare),
        ("good-skin.twin", &skin),
        ("good-posed.twin", &posed),
        ("good-learned.twin", &learned),
        ("bad-flipped.twin", &flipped),
        ("bad-version.twin", &version),
        ("bad-truncated.twin", &face[..face.len() - 5]),
    ] {
        std::fs::write(corpus().join(name), bytes).expect("a file");
    }
}

#[test]
fn twins_survive_the_corpus_and_its_mutations() {
    let asked = std::env::var("UNDERSTUDY_MUTATIONS").ok().and_then(|text| text.parse().ok());
    let mutations: usize = asked.unwrap_or(MUTATIONS);
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(corpus())
        .expect("the corpus is there")
        .map(|entry| entry.expect("a readable entry").path())
        .map(|path| {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            (name, std::fs::read(&path).expect("a readable file"))
        })
        .collect();
    files.sort();
    let (mut runs, mut accepted) = (0, 0);
    for (number, (name, bytes)) in files.iter().enumerate() {
        assert_eq!(target::twin(bytes), name.starts_with("good-"), "{name}");
        for mutation in 0..mutations {
            let seed = (number * mutations + mutation) as u64;
            let other = &files[mutation % files.len()].1;
            let mutant = mutate::mutate(bytes, other, &mut Random::stream(seed, 4));
            let outcome = std::panic::catch_unwind(|| target::twin(&mutant));
            runs += 1;
            match outcome {
                Ok(fine) => accepted += usize::from(fine),
                Err(_) => {
                    let file = std::env::temp_dir().join(format!("understudy-twin-{mutation}-{name}"));
                    let _ = std::fs::write(&file, &mutant);
                    panic!("{name}, mutation {mutation}; input kept in {}", file.display());
                }
            }
        }
    }
    // Nearly everything is refused for its checksum alone; what is not is read the second time, with it put right.
    assert!(runs > 0 && accepted < runs);
}
