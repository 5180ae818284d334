//! Datasets as a whole: round trips, kills, damage, disorder.

use super::*;
use std::collections::BTreeMap;
use std::fs;
use understudy_core::{
    Affine3A, Bone, Channel, ControlSpec, ControlSpecs, Controls, Face, GlobalPose, JointTransform,
    MeshParts, Quat, Random, Segments, Skeleton, SkinWeights, Vec2, Vec3,
};

fn rest(bones: bool) -> DatasetRest {
    let faces = vec![Face::quad(0, 1, 2, 3), Face::triangle(2, 3, 4)];
    let parts = MeshParts {
        positions: (0..5).map(|i| Vec3::new(i as f32, (i * i) as f32, 0.3)).collect(),
        uvs: (0..5).map(|i| Vec2::new(0.1 * i as f32, 0.7)).collect(),
        face_uvs: faces.clone(),
        faces,
        segments: Segments {
            names: vec!["coat".into(), "buckle \"1\"".into()],
            of_vertex: vec![0, 0, 0, 1, 1],
        },
    };
    let bone = |name: &str, parent, angle: f32| Bone {
        name: name.into(),
        parent,
        rest: JointTransform {
            rotation: Quat::from_rotation_z(angle),
            translation: Vec3::Y,
            scale: Vec3::ONE,
        },
    };
    let skeleton = Skeleton::new(vec![bone("hip", None, 0.3), bone("knee", Some(0), -0.7)]).expect("a tree");
    let rows = vec![vec![(0, 0.3), (1, 0.7)]; 5];
    let weights = SkinWeights::from_rows(&rows, 2).expect("convex");
    let (skeleton, weights) = if bones { (Some(skeleton), Some(weights)) } else { (None, None) };
    DatasetRest { mesh: parts.build().expect("valid mesh"), skeleton, weights }
}

fn header() -> DatasetHeader {
    let controls = vec![
        ControlSpec::number("smile", 0.0, 1.0, 0.1),
        ControlSpec::joint("hip turn", "hip", Channel::RotateY, -33.3, 45.0),
        ControlSpec::number("bulge", -0.7, 0.7, 0.0),
    ];
    DatasetHeader {
        rig: "rook".into(),
        rig_file: None,
        method: "gaussian".into(),
        seed: 7,
        settings: BTreeMap::from([("exclude".into(), "hat, \"coat\"".into())]),
        controls: ControlSpecs::new(controls).expect("valid specs"),
        poses: 11,
        chunk_size: 4,
    }
}

/// A stand-in for a rig: the same pose number always gives the same numbers.
fn chunk(shape: ChunkShape, header: &DatasetHeader, index: usize) -> Chunk {
    let mut chunk = Chunk::with_capacity(shape, header.chunk_size);
    for pose in header.chunk_poses(index) {
        let mut random = Random::stream(header.seed, pose as u64);
        let mut number = || random.uniform(-5.0, 5.0);
        let controls = Controls((0..shape.controls).map(|_| number()).collect());
        let transform =
            |x: f32| Affine3A::from_rotation_translation(Quat::from_rotation_x(x), Vec3::new(x, 2.0, 3.0));
        let skeleton = GlobalPose((0..shape.bones).map(|_| transform(number())).collect());
        let vertices: Vec<Vec3> =
            (0..shape.vertices).map(|_| Vec3::new(number(), number(), number())).collect();
        chunk.push(&controls, &skeleton, &vertices).expect("fits");
    }
    chunk
}

fn write_all(writer: DatasetWriter) {
    let header = writer.header();
    for index in writer.missing() {
        writer.write_chunk(index, &chunk(writer.shape(), &header, index)).expect("written");
    }
    writer.finish().expect("complete");
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("readable");
        (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("readable"))
    };
    fs::read_dir(folder).expect("a folder").map(entry).collect()
}

#[test]
fn what_was_written_is_read() {
    for bones in [true, false] {
        let folder = tempfile::tempdir().expect("a folder");
        let (header, rest) = (header(), rest(bones));
        write_all(DatasetWriter::create(folder.path(), &header, &rest).expect("created"));
        let reader = DatasetReader::open(folder.path()).expect("complete");
        assert_eq!((reader.header(), reader.rest()), (&header, &rest));
        let shape = ChunkShape { controls: 3, bones: if bones { 2 } else { 0 }, vertices: 5 };
        assert_eq!(reader.shape(), shape);
        for index in 0..3 {
            assert_eq!(reader.chunk(index).expect("whole"), chunk(shape, &header, index));
        }
        let poses: Vec<PoseRecord> = reader.poses().collect::<Result<_, _>>().expect("whole");
        assert_eq!(poses.iter().map(|pose| pose.index).collect::<Vec<_>>(), (0..11).collect::<Vec<_>>());
        assert_eq!(poses[6].vertices, chunk(shape, &header, 1).vertices_of(2));
        assert_eq!(poses[10].skeleton, chunk(shape, &header, 2).skeleton_of(2));
    }
}

#[test]
fn every_interruption_ends_with_the_same_bytes() {
    let (header, rest) = (header(), rest(true));
    let whole = tempfile::tempdir().expect("a folder");
    write_all(DatasetWriter::create(whole.path(), &header, &rest).expect("created"));
    let want = files(whole.path());
    let names: Vec<&str> = want.keys().map(String::as_str).collect();
    // A kill can leave any subset of the files: every one is there whole or not at all, plus leftovers.
    for subset in 0..1usize << names.len() {
        let folder = tempfile::tempdir().expect("a folder");
        for (place, name) in names.iter().enumerate().filter(|(place, _)| subset >> place & 1 == 1) {
            fs::write(folder.path().join(name), &want[*name]).expect("written");
            fs::write(folder.path().join(format!("{name}.{place}.tmp")), b"half").expect("written");
        }
        let writer = DatasetWriter::resume(folder.path(), &header, &rest).expect("resumed");
        let chunks = names.iter().enumerate().filter(|(_, name)| name.starts_with("chunk"));
        let absent: Vec<usize> =
            chunks.enumerate().filter(|(_, (p, _))| subset >> p & 1 == 0).map(|(i, _)| i).collect();
        assert_eq!(writer.missing(), absent);
        write_all(writer);
        assert_eq!(files(folder.path()), want, "subset {subset:b}");
    }
}

#[test]
fn damaged_chunks_are_written_anew() {
    let (header, rest) = (header(), rest(true));
    let folder = tempfile::tempdir().expect("a folder");
    write_all(DatasetWriter::create(folder.path(), &header, &rest).expect("created"));
    let want = files(folder.path());
    for damage in [
        |bytes: &mut Vec<u8>| bytes.truncate(300),
        |bytes: &mut Vec<u8>| *bytes.last_mut().expect("some") ^= 1,
    ] {
        let mut bytes = want["chunk-000001.safetensors"].clone();
        damage(&mut bytes);
        fs::write(chunk_path(folder.path(), 1), bytes).expect("written");
        let reader = DatasetReader::open(folder.path()).expect("the header is whole");
        let error = reader.chunk(1).expect_err("damaged").to_string();
        assert!(error.contains("chunk-000001.safetensors"), "{error}");
        assert!(reader.poses().any(|pose| pose.is_err()));
        let writer = DatasetWriter::resume(folder.path(), &header, &rest).expect("resumed");
        assert_eq!(writer.missing(), [1]);
        write_all(writer);
        assert_eq!(files(folder.path()), want);
    }
}

#[test]
fn threads_may_write_in_any_order() {
    let (header, rest) = (DatasetHeader { poses: 40, ..header() }, rest(true));
    let (one, many) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    write_all(DatasetWriter::create(one.path(), &header, &rest).expect("created"));
    let writer = DatasetWriter::create(many.path(), &header, &rest).expect("created");
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (writer, header) = (&writer, &header);
            scope.spawn(move || {
                for index in (0..10).rev().filter(|index| index % 3 == thread) {
                    writer.write_chunk(index, &chunk(writer.shape(), header, index)).expect("written");
                }
            });
        }
    });
    writer.finish().expect("complete");
    assert_eq!(files(one.path()), files(many.path()));
}

#[test]
fn mistakes_are_named() {
    let (header, rest) = (header(), rest(true));
    let folder = tempfile::tempdir().expect("a folder");
    let open = |header: &DatasetHeader, rest: &DatasetRest| {
        DatasetWriter::resume(folder.path(), header, rest).map(drop).expect_err("a mistake").to_string()
    };
    let writer = DatasetWriter::create(folder.path(), &header, &rest).expect("created");
    let again =
        DatasetWriter::create(folder.path(), &header, &rest).map(drop).expect_err("taken").to_string();
    assert!(again.contains("already holds a dataset"), "{again}");
    let incomplete = DatasetReader::open(folder.path()).map(drop).expect_err("no chunks").to_string();
    assert!(incomplete.contains("3 of 3 chunks are missing"), "{incomplete}");
    assert!(open(&DatasetHeader { seed: 8, ..header.clone() }, &rest).contains("another seed"));
    assert!(open(&DatasetHeader { poses: 12, ..header.clone() }, &rest).contains("another number of poses"));
    assert!(open(&DatasetHeader { poses: 0, ..header.clone() }, &rest).contains("at least one pose"));
    assert!(open(&DatasetHeader { seed: u64::MAX, ..header.clone() }, &rest).contains("2^63"));
    let mut moved = rest.clone();
    let mut parts = moved.mesh.into_parts();
    parts.positions[0].x += 1.0;
    moved.mesh = parts.build().expect("valid");
    assert!(open(&header, &moved).contains("rest mesh"));

    let shape = writer.shape();
    let short = writer.write_chunk(0, &chunk(shape, &header, 2)).expect_err("short").to_string();
    assert_eq!(short, "chunk 0: 3 poses, expected 4");
    assert!(writer.write_chunk(3, &chunk(shape, &header, 2)).is_err());
    let mut bad = Chunk::with_capacity(shape, 1);
    let bones = GlobalPose(vec![Affine3A::IDENTITY; 2]);
    let nan = bad.push(&Controls(vec![0.0, f32::NAN, 0.0]), &bones, &[Vec3::ZERO; 5]);
    assert_eq!(nan, Err("control 1 is NaN".into()));
    let few = bad.push(&Controls(vec![0.0; 3]), &bones, &[Vec3::ZERO; 4]);
    assert_eq!(few, Err("4 vertices, expected 5".into()));
    assert!(bad.push(&Controls(vec![0.0; 3]), &bones, &[Vec3::splat(f32::INFINITY); 5]).is_err());
    assert!(bad.is_empty());
    assert!(writer.finish().expect_err("missing").to_string().contains("chunks are missing"));
}

#[test]
fn bad_manifests_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    write_all(DatasetWriter::create(folder.path(), &header(), &rest(true)).expect("created"));
    let text = fs::read_to_string(folder.path().join(MANIFEST)).expect("there");
    let (read, complete) = parse_manifest(&text).expect("just written");
    assert!(complete && read == header());
    // Without its hash, as earlier versions wrote it.
    let (hash, text) = text.split_once('\n').expect("several lines");
    assert!(hash.starts_with("sha256 = "), "{hash}");
    assert_eq!(parse_manifest(text).expect("an older dataset"), (header(), true));
    for (from, to, part) in [
        ("format = 1", "format = 2", "version 2"),
        ("seed = 7", "seed = -7", "line"),
        ("poses = 11", "poses = 99", "hashes for"),
        ("chunk_size = 4", "chunk_size = 0", "at least one pose"),
        ("high = 45.0", "high = nan", "has range"),
        ("units = \"cm\"", "units = \"m\"", "units"),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        let error = parse_manifest(&text.replace(from, to)).expect_err(to).to_string();
        assert!(error.contains(part), "{to}: {error}");
    }
}

#[test]
fn every_damaged_byte_of_the_manifest_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let (header, rest) = (header(), rest(true));
    write_all(DatasetWriter::create(folder.path(), &header, &rest).expect("created"));
    let good = fs::read(folder.path().join(MANIFEST)).expect("there");
    for place in 0..good.len() {
        for bit in [1u8, 0x20] {
            let mut bad = good.clone();
            bad[place] ^= bit;
            let bad = String::from_utf8(bad).expect("the manifest is ASCII");
            assert!(parse_manifest(&bad).is_err(), "byte {place}, bit {bit}");
        }
    }
}
