//! A long Alembic cache takes the memory of one frame. A program of its own, since memory is counted for all of it.

#[path = "alembic_support/mod.rs"]
mod support;

use std::io::{Seek as _, SeekFrom, Write as _};
use support::{Archive, Content, f32s, mesh};
use understudy_io::alembic::{AlembicCache, AlembicOptions};

#[test]
fn a_gigabyte_takes_the_memory_of_a_frame() {
    const FRAMES: u64 = 2_300;
    const VERTICES: usize = 40_000;
    const SIZE: u64 = VERTICES as u64 * 12;
    // A small file's samples are replaced by places far behind its end, where zeros are that take no disk.
    let counts: Vec<i32> = vec![4; VERTICES - 3];
    let indices: Vec<i32> = (0..VERTICES as i32 - 3).flat_map(|v| [v + 3, v + 2, v + 1, v]).collect();
    let first = f32s(&vec![0.5; VERTICES * 3]);
    let samples: Vec<Vec<u8>> = (0..FRAMES).map(|sample| f32s(&[sample as f32 + 1.0, 0.0, 0.0])).collect();
    let mut object = mesh("a", 1, vec![first], &[(&counts, &indices)]);
    let Content::Properties(inner) = &mut object.properties[0].content else { unreachable!() };
    inner[0].content = Content::Array(support::F32, 3, samples);
    let bytes = Archive::new(0.0, 24.0, vec![object]).bytes();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("big.abc");
    let mut file = std::fs::File::create(&path).expect("writable");
    // The places of all samples, in order, are what the writer made of them: find the group by its length.
    let group = bytes
        .windows(8)
        .position(|window| window == (2 * FRAMES).to_le_bytes())
        .expect("the group of the samples");
    let start = bytes.len() as u64;
    let mut changed = bytes;
    for sample in 0..FRAMES {
        let place = start + sample * (SIZE + 24);
        let slot = group + 8 + 16 * sample as usize;
        changed[slot..slot + 8].copy_from_slice(&(place | 1 << 63).to_le_bytes());
    }
    file.write_all(&changed).expect("writable");
    file.set_len(start + FRAMES * (SIZE + 24)).expect("a long file");
    for sample in 0..FRAMES {
        file.seek(SeekFrom::Start(start + sample * (SIZE + 24))).expect("a place");
        file.write_all(&(SIZE + 16).to_le_bytes()).expect("writable");
        file.write_all(&sample.to_le_bytes()).expect("a key");
        file.write_all(&[0; 8]).expect("a key");
        file.write_all(&(sample as f32 + 1.0).to_le_bytes()).expect("writable");
    }
    drop(file);
    assert!(path.metadata().expect("there").len() > 1 << 30);
    let cache = AlembicCache::open(&path, &AlembicOptions::default()).expect("a cache");
    let mut out = Vec::new();
    let mut early = None;
    for index in 0..cache.len() {
        if index == 20 {
            early = resident();
        }
        cache.frame(index, &mut out).expect("a frame");
        assert_eq!((out.len(), out[0].x), (VERTICES, index as f32 + 1.0));
    }
    let (Some(early), Some(late)) = (early, resident()) else { return };
    assert!(late < early + 2_000_000, "{} bytes more after 20 frames", late - early);
}

/// The most memory that this process ever had, bytes; where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}
