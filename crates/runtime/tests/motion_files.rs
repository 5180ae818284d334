//! Files of motion in ordinary test runs: the fuzz corpus and fixed mutations of it, through the function that the fuzzer
//! runs, and what is said about a damaged file. `make_corpus` (ignored) writes the corpus.

#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/src/motion.rs"]
mod target;

use std::path::PathBuf;
use understudy_core::Random;
use understudy_runtime::motion::{Model, Motion, MotionFileError};

const SWAY: &[u8] = include_bytes!("golden/sway.motion");
/// Mutations of each file.
const MUTATIONS: usize = 1500;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/motion")
}

/// One label with one clip of few frames: a file that mutations reach every part of.
fn small() -> Motion {
    let motion = Motion::parse(SWAY).expect("sound");
    let mut parts = motion.models()[0].parts();
    let (q, frames) = (parts.space.dimensions, 6);
    let all = parts.space.points.len() / q;
    let cut = |rows: &[f32]| -> Vec<f32> {
        rows.chunks_exact(all).flat_map(|row| row[..frames].to_vec()).collect()
    };
    parts.space.points.truncate(frames * q);
    parts.space.weights = cut(&parts.space.weights);
    parts.space.certainty = cut(&parts.space.certainty);
    parts.space.edges = (1..frames as u32).map(|frame| [frame - 1, frame]).collect();
    parts.clips.truncate(1);
    parts.clips[0].frames = frames;
    parts.clips[0].strongest = frames - 1;
    let (rig, rate) = (motion.rig().to_owned(), motion.rate());
    Motion::new(rig, rate, motion.controls().clone(), vec![parts], Vec::new()).expect("sound")
}

#[test]
#[ignore = "writes fuzz/corpus/motion"]
fn make_corpus() {
    let bytes = small().to_bytes().expect("small");
    std::fs::create_dir_all(corpus()).expect("a folder");
    let script = b"transition nod; move nod_0 in 1.5s; idle 4s around nod_0, nod_1@0.3s dwell 1s; play nod_0[0.1..0.2]; \
                   mix 2s nod_0 50%; stop";
    for (name, bytes) in [
        ("good-small.motion", &bytes[..]),
        ("bad-truncated.motion", &bytes[..bytes.len() - 3]),
        ("bad-script.txt", script),
        ("bad-command.json", br#"{"command":"idle","seconds":2,"around":["nod_0"],"dwell":0.5}"#),
    ] {
        std::fs::write(corpus().join(name), bytes).expect("a file");
    }
}

#[test]
fn files_survive_the_corpus_and_its_mutations() {
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
        assert_eq!(target::motion(bytes), name.starts_with("good-"), "{name}");
        for mutation in 0..MUTATIONS {
            let seed = (number * MUTATIONS + mutation) as u64;
            let other = &files[mutation % files.len()].1;
            let mutant = mutate::mutate(bytes, other, &mut Random::stream(seed, 4));
            runs += 1;
            match std::panic::catch_unwind(|| target::motion(&mutant)) {
                Ok(fine) => accepted += usize::from(fine),
                Err(_) => panic!("{name}, mutation {mutation}"),
            }
        }
    }
    // Numbers that are only other numbers are played; the rest is refused.
    assert!(accepted > 0 && accepted < runs, "{accepted} of {runs}");
}

#[test]
fn what_does_not_fit_is_named() {
    let motion = Motion::parse(SWAY).expect("sound");
    let parts = || motion.models().iter().map(Model::parts).collect::<Vec<_>>();
    let make = |models| {
        let (rig, rate) = (motion.rig().to_owned(), motion.rate());
        Motion::new(rig, rate, motion.controls().clone(), models, motion.bridges().to_vec())
    };
    let wrong = |result: Result<Motion, MotionFileError>| result.expect_err("is refused").to_string();
    let mut models = parts();
    models[1].label = "sway".into();
    assert_eq!(wrong(make(models)), "label 'sway': is there twice");
    let mut models = parts();
    models[1].space.weights.pop();
    assert_eq!(wrong(make(models)), "label 'nod': weights: their number does not fit the centres");
    let mut models = parts();
    models[2].space.points[0] = f32::NAN;
    assert_eq!(wrong(make(models)), "label 'turn': numbers: some are not finite");
    let mut models = parts();
    models[0].clips[0].frames = usize::MAX;
    assert_eq!(wrong(make(models)), "label 'sway': its clips do not fit its frames");
    let mut models = parts();
    models[0].space.edges.push([0, 1 << 30]);
    assert_eq!(wrong(make(models)), "label 'sway': edges: one leads to a frame that there is not");
    let mut models = parts();
    models.pop();
    assert!(wrong(make(models)).ends_with("leads nowhere"));
    assert_eq!(wrong(make(Vec::new())), "labels: there are none");
    assert_eq!(
        wrong(Motion::parse(b"{\"version\":1}")),
        "file: was made by a version that was still an experiment; learn it again"
    );
    assert!(wrong(Motion::parse(b"")).contains("too short"));
    for cut in (0..SWAY.len()).step_by(SWAY.len() / 97) {
        assert!(Motion::parse(&SWAY[..cut]).is_err());
    }
}
