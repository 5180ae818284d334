//! The fuzz corpus of the rig protocol in ordinary test runs: every file of `fuzz/corpus/protocol` and fixed mutations
//! of each, through the function that the fuzzer runs. `UNDERSTUDY_MUTATIONS` asks for more of them than the few of
//! every day; `make_corpus` (ignored) writes the corpus.

#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/src/protocol.rs"]
mod target;

use std::path::PathBuf;
use understudy_core::Random;
use understudy_rigs::external::protocol::{Frame, Tag};

/// Mutations of each file, unless `UNDERSTUDY_MUTATIONS` says more.
const MUTATIONS: usize = 5000;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/protocol")
}

#[test]
#[ignore = "writes fuzz/corpus/protocol"]
fn make_corpus() {
    let plain = r#"{"name": "bar", "vertices": [[0,0,0],[1,0,0],[0,1,0]], "faces": [[0,1,2]],
        "controls": [{"name": "bulge", "low": 0, "high": 1, "default": 0}]}"#;
    let full = r#"{"name": "bar", "units": "m", "up": "z", "vertices": [[0,0,0],[1,0,0],[1,0,1],[0.5,0,2],[0,0,1]],
        "faces": [[0,1,2,3,4]], "uvs": [[0,0],[1,0],[1,0.5],[0.5,1],[0,0.5]], "face_uvs": [[0,1,2,3,4]],
        "segments": {"names": ["low", "top"], "of_vertex": [0,0,0,1,0]},
        "bones": [{"name": "root", "parent": null, "rest": [1,0,0,0,0,1,0,0,0,0,1,0]},
                  {"name": "tip", "parent": 0, "rest": [1,0,0,0,0,1,0,0,0,0,1,1]}],
        "weights": [[[0,1]],[[0,1]],[[0,0.5],[1,0.5]],[[1,1]],[[0,0.5],[1,0.5]]],
        "controls": [{"name": "bend", "kind": "joint", "bone": "tip", "channel": "rotate_x", "low": -9, "high": 9, "default": 0}],
        "clips": [{"name": "nod", "rate": 24, "frames": [[0],[4.5],[0]]}]}"#;
    let rig = |text: &str| Frame { tag: Tag::Rig, payload: text.as_bytes().to_vec() }.to_bytes();
    let poses = |counts: [u32; 3], numbers: &[f32]| {
        let counts = counts.iter().flat_map(|count| count.to_le_bytes());
        let payload = counts.chain(numbers.iter().flat_map(|number| number.to_le_bytes())).collect();
        Frame { tag: Tag::Poses, payload }.to_bytes()
    };
    let failed = Frame { tag: Tag::Failed, payload: b"\x01\0\0\0singular".to_vec() }.to_bytes();
    let numbers: Vec<f32> = (0..39).map(|number| number as f32 * 0.5).collect();
    let mut nan = numbers[..9].to_vec();
    nan[4] = f32::NAN;
    let two = [numbers.clone(), numbers.clone()].concat();
    std::fs::create_dir_all(corpus()).expect("a folder");
    for (name, bytes) in [
        ("good-plain.rig", [rig(plain), poses([1, 3, 0], &numbers[..9])].concat()),
        ("good-full.rig", [rig(full), poses([2, 5, 2], &two), failed].concat()),
        ("bad-nan.rig", [rig(plain), poses([1, 3, 0], &nan)].concat()),
        ("bad-count.rig", [rig(plain), poses([1, 4, 0], &numbers[..12])].concat()),
        ("bad-claim.rig", [rig(plain), poses([u32::MAX, 3, 0], &numbers[..9])].concat()),
        ("bad-cycle.rig", rig(&full.replace("null", "1"))),
        ("bad-order.rig", [poses([1, 3, 0], &numbers[..9]), rig(plain)].concat()),
        ("bad-truncated.rig", rig(full)[..600].to_vec()),
        ("bad-printed.rig", b"Blender 5.0.1\n".to_vec()),
    ] {
        std::fs::write(corpus().join(name), bytes).expect("a file");
    }
}

#[test]
fn the_protocol_survives_the_corpus_and_its_mutations() {
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
    let mut accepted = 0;
    for (number, (name, bytes)) in files.iter().enumerate() {
        assert_eq!(target::protocol(bytes), name.starts_with("good-"), "{name}");
        for mutation in 0..mutations {
            let seed = (number * mutations + mutation) as u64;
            let other = &files[mutation % files.len()].1;
            let mutant = mutate::mutate(bytes, other, &mut Random::stream(seed, 8));
            match std::panic::catch_unwind(|| target::protocol(&mutant)) {
                Ok(fine) => accepted += usize::from(fine),
                Err(_) => {
                    let file = std::env::temp_dir().join(format!("understudy-protocol-{mutation}-{name}"));
                    let _ = std::fs::write(&file, &mutant);
                    panic!("{name}, mutation {mutation}; input kept in {}", file.display());
                }
            }
        }
    }
    // Some mutations change a number and no more: they reach the end of every parser.
    assert!(accepted > 0 && accepted < files.len() * mutations);
}
