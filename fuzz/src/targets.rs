//! What a fuzzer runs, one function a reader: bytes in, and nothing may panic. What a reader accepts is
//! written again where there is a writer, and that must be readable.
//!
//! Checksums would stop nearly every mutation before it reaches a parser, so inputs that carry one run a
//! second time with it put right.
//!
//! Two programs share this file: the fuzz targets beside it, and `crates/io/tests/corpus.rs`, which
//! drives the same functions with the committed corpus and fixed mutations in ordinary test runs.

use understudy_io::Dim::Any;
use understudy_io::alembic::{AlembicCache, AlembicOptions};
use understudy_io::npz::NpzReader;
use understudy_io::tensors::Tensors;
use understudy_io::{
    Model, blendshape_npz, bvh, dataset, fbx, gltf, handles, live_link, mesh_sequence, obj, real, usd,
};

/// Runs a reader on bytes and tells whether it accepted them.
pub type Run = fn(&[u8]) -> bool;

/// Every target by its name.
pub const TARGETS: [(&str, Run); 14] = [
    ("gltf", gltf),
    ("obj", obj),
    ("npz", npz),
    ("blendshape_npz", blendshape_npz),
    ("mesh_sequence", mesh_sequence),
    ("real", real),
    ("safetensors", safetensors),
    ("dataset", dataset),
    ("bvh", bvh),
    ("handles", handles),
    ("live_link", live_link),
    ("alembic", alembic),
    ("fbx", fbx),
    ("usd", usd),
];

/// A glTF document without files beside it.
pub fn gltf(bytes: &[u8]) -> bool {
    let Ok(asset) = gltf::parse(bytes, &|_| Err("no files here".into())) else { return false };
    asset.rest_vertices();
    if let Some(clip) = asset.clips.first() {
        asset.evaluate(clip, 0);
    }
    // Some scenes cannot be written; that is an error, not a panic.
    if let Ok(glb) = gltf::to_glb_bytes(&asset.scene("fuzz")) {
        let again = gltf::parse(&glb, &|_| Err("no files here".into()));
        assert!(again.is_ok() || !moderate(&asset), "we read what we write: {:?}", again.err());
    }
    true
}

/// Whether no number is so large that products of weights or lengths in another unit could overflow.
fn moderate(asset: &Model) -> bool {
    const LARGE: f32 = 1e9;
    let bones = asset.clips.iter().flat_map(|clip| clip.bones.iter().map(|bone| &bone.track));
    let weights = asset.clips.iter().flat_map(|clip| clip.weights.iter().map(|weights| &weights.track));
    let keys = bones.chain(weights).flat_map(|track| track.values());
    let rest = asset.skeleton.iter().flat_map(|skeleton| skeleton.bones()).map(|bone| &bone.rest);
    let shapes = asset.shapes.iter().flat_map(|rig| rig.shapes()).flat_map(|shape| &shape.deltas.deltas);
    keys.chain(&asset.rest_weights).all(|number| number.abs() < LARGE)
        && rest.into_iter().all(|joint| joint.translation.abs().max(joint.scale.abs()).max_element() < LARGE)
        && asset.mesh.positions().iter().chain(shapes).all(|vector| vector.abs().max_element() < LARGE)
}

/// An OBJ text.
pub fn obj(bytes: &[u8]) -> bool {
    let Ok(found) = obj::parse(bytes) else { return false };
    obj::parse(obj::to_obj_string(&found.mesh).as_bytes()).expect("we read what we write");
    true
}

/// A NumPy archive, every array as every type, and as a table of weights.
pub fn npz(bytes: &[u8]) -> bool {
    npz_once(&with_right_checksums(bytes));
    npz_once(bytes)
}

fn npz_once(bytes: &[u8]) -> bool {
    let _ = live_link::parse_weights_archive(bytes.to_vec());
    let Ok(npz) = NpzReader::parse(bytes.to_vec()) else { return false };
    let mut read = true;
    for name in npz.names() {
        let axes = npz.shape(name).map_or(0, <[usize]>::len);
        let want = vec![Any("n"); axes];
        let any = [
            npz.f32(name, &want).is_ok(),
            npz.f64(name, &want).is_ok(),
            npz.i64(name, &want).is_ok(),
            npz.u32(name, &want).is_ok(),
            npz.bools(name, &want).is_ok(),
            npz.strings(name, &want).is_ok(),
        ];
        read &= any.contains(&true);
    }
    read
}

/// An animated mesh.
pub fn mesh_sequence(bytes: &[u8]) -> bool {
    // The reader has no writer of its own: not to panic is all it must do.
    let _ = mesh_sequence::parse(with_right_checksums(bytes));
    mesh_sequence::parse(bytes.to_vec()).is_ok()
}

/// A blendshape rig.
pub fn blendshape_npz(bytes: &[u8]) -> bool {
    blendshape_npz_once(&with_right_checksums(bytes));
    blendshape_npz_once(bytes)
}

fn blendshape_npz_once(bytes: &[u8]) -> bool {
    let Ok(file) = blendshape_npz::parse(bytes.to_vec(), None) else { return false };
    let again = blendshape_npz::to_bytes(&file.mesh, &file.rig).expect("what was read can be written");
    blendshape_npz::parse(again, None).expect("we read what we write");
    true
}

/// The layouts of the real characters.
pub fn real(bytes: &[u8]) -> bool {
    real_once(&with_right_checksums(bytes));
    real_once(bytes)
}

fn real_once(bytes: &[u8]) -> bool {
    real::parse_human(bytes.to_vec(), &["body"]).is_ok() | real::parse_ict(bytes.to_vec()).is_ok()
}

/// Named arrays.
pub fn safetensors(bytes: &[u8]) -> bool {
    let Ok(file) = Tensors::parse(bytes) else { return false };
    for name in file.names() {
        for axes in 0..5 {
            let want = vec![Any("n"); axes];
            let _ = (file.f32(name, &want), file.f16(name, &want), file.i32(name, &want));
            let _ = (file.u16(name, &want), file.u32(name, &want));
        }
    }
    true
}

/// The three kinds of file that a dataset has.
pub fn dataset(bytes: &[u8]) -> bool {
    dataset_once(&with_right_hash(bytes));
    dataset_once(bytes)
}

fn dataset_once(bytes: &[u8]) -> bool {
    let chunk = dataset::parse_chunk(bytes);
    if let Ok(chunk) = &chunk {
        for pose in 0..chunk.len() {
            let _ = (chunk.controls_of(pose), chunk.skeleton_of(pose), chunk.vertices_of(pose));
        }
    }
    let rest = dataset::parse_rest(bytes);
    let manifest = std::str::from_utf8(bytes).is_ok_and(|text| dataset::parse_manifest(text).is_ok());
    chunk.is_ok() | rest.is_ok() | manifest
}

/// A motion file.
pub fn bvh(bytes: &[u8]) -> bool {
    let Ok(found) = bvh::parse(bytes, bvh::BvhOptions::default()) else { return false };
    // Numbers may be too large to be said with six decimals in f32; then writing is an error.
    if let Ok(text) = bvh::to_text(&found, 1.0) {
        let options = bvh::BvhOptions { cm_per_unit: Some(1.0), up: None };
        let again = bvh::parse(text.as_bytes(), options).expect("we read what we write");
        assert_eq!(again.channels.len(), found.channels.len());
    }
    true
}

/// A handle file.
pub fn handles(bytes: &[u8]) -> bool {
    let Ok(found) = handles::parse(bytes) else { return false };
    let text = handles::to_text(&found).expect("what is read can be written");
    let again = handles::parse(text.as_bytes()).expect("we read what we write");
    assert_eq!(again, handles::HandleFile { cm_per_unit: None, ..found });
    true
}

/// A face capture or a table of weights.
pub fn live_link(bytes: &[u8]) -> bool {
    let take = live_link::parse(bytes);
    if let Ok(take) = &take
        && let Ok(text) = live_link::to_text(take)
    {
        live_link::parse(text.as_bytes()).expect("we read what we write");
    }
    let table = live_link::parse_weights(bytes);
    if let Ok(table) = &table
        && let Ok(text) = live_link::weights_to_text(table)
    {
        live_link::parse_weights(text.as_bytes()).expect("we read what we write");
    }
    take.is_ok() | table.is_ok()
}

/// An animated mesh; every frame of a short one is read, and the first and last of a long one.
pub fn alembic(bytes: &[u8]) -> bool {
    let Ok(cache) = AlembicCache::parse(bytes.to_vec(), &AlembicOptions::default()) else { return false };
    let mut vertices = Vec::new();
    let last = cache.len() - 1;
    let mut whole = true;
    for frame in (0..=last.min(20)).chain([last]) {
        // A later frame may be damaged; that is an error, not a panic.
        whole &=
            cache.frame(frame, &mut vertices).is_ok_and(|()| vertices.len() == cache.mesh().vertex_count());
    }
    whole
}

/// A skinned, animated model, and its bones alone.
pub fn fbx(bytes: &[u8]) -> bool {
    let _ = fbx::parse_bones(bytes, &fbx::FbxOptions::default());
    let Ok(model) = fbx::parse(bytes) else { return false };
    played(&model);
    true
}

/// A layer of USD; what is written of it reads back.
pub fn usd(bytes: &[u8]) -> bool {
    let Ok(model) = usd::parse(bytes) else { return false };
    played(&model);
    if moderate(&model) && model.clips.iter().all(|clip| clip.own_frames() < 1000) {
        let text = usd::to_usda_string(&model, "fuzz").expect("what was read has no correctives");
        let again = usd::parse(text.as_bytes());
        assert!(again.is_ok(), "we read what we write: {:?}", again.err());
    }
    true
}

fn played(model: &Model) {
    model.rest_vertices();
    if let Some(clip) = model.clips.first() {
        model.evaluate(clip, 0);
        model.evaluate_at(clip, 0.1);
    }
}

/// A zip archive whose directory has the right checksum for every stored member.
fn with_right_checksums(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let entries =
        bytes.windows(4).enumerate().filter(|(_, word)| word == b"PK\x01\x02").map(|(place, _)| place);
    let number = |place: usize, width: usize| -> Option<usize> {
        let field = bytes.get(place..place + width)?;
        Some(field.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte)))
    };
    for entry in entries {
        let right = || -> Option<u32> {
            let (size, local) = (number(entry + 20, 4)?, number(entry + 42, 4)?);
            let start = local + 30 + number(local + 26, 2)? + number(local + 28, 2)?;
            let mut crc = flate2::Crc::new();
            crc.update(bytes.get(start..start.checked_add(size)?)?);
            Some(crc.sum())
        };
        if let (Some(right), Some(field)) = (right(), out.get_mut(entry + 16..entry + 20)) {
            field.copy_from_slice(&right.to_le_bytes());
        }
    }
    out
}

/// A dataset chunk whose metadata has the right hash for its content.
fn with_right_hash(bytes: &[u8]) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    const KEY: &[u8] = b"\"sha256\":\"";
    let mut out = bytes.to_vec();
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else { return out };
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (Some(content), Some(place)) = (rest.get(length..), bytes.windows(KEY.len()).position(|w| w == KEY))
    else {
        return out;
    };
    let hash: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    let start = place + KEY.len();
    if let Some(field) = out.get_mut(start..start + hash.len()) {
        field.copy_from_slice(hash.as_bytes());
    }
    out
}
