//! Runs the built program, and makes small files, good and bad.

// Each test program uses its own part of this.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program with arguments, ready to be started.
pub fn understudy(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_understudy"));
    command.args(arguments);
    command
}

/// Runs it to its end.
pub fn run(arguments: &[&str]) -> Output {
    understudy(arguments).output().expect("the program starts")
}

/// Standard output of a run that must succeed.
pub fn succeed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The one JSON document of a run that must succeed.
pub fn json(arguments: &[&str]) -> serde_json::Value {
    let mut all = arguments.to_vec();
    all.push("--json");
    serde_json::from_str(&succeed(&all)).expect("exactly one JSON document")
}

/// The error line of a run that must fail with exit code 2, say nothing else and print nothing.
pub fn refuse(arguments: &[&str]) -> String {
    let output = run(arguments);
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert!(output.stdout.is_empty(), "{arguments:?} prints on standard output");
    assert_eq!(text.lines().count(), 1, "{arguments:?} says more than one line: {text}");
    assert!(text.starts_with("error: "), "{arguments:?}: {text}");
    let last = text.trim().rsplit(": ").next().unwrap_or_default();
    assert_eq!(text.matches(last).count(), 1, "{arguments:?} says its cause twice: {text}");
    text
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("scratch paths are text")
}

/// Whether a folder holds nothing but the named files.
pub fn holds_only(folder: &Path, names: &[&str]) {
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .expect("readable")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    let mut want = names.to_vec();
    want.sort_unstable();
    assert_eq!(found, want, "something else was written");
}

/// All files below a folder with their bytes, by relative path.
pub fn all_bytes(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut out = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = std::fs::read(&path).expect("readable");
                out.push((path.strip_prefix(folder).expect("below the folder").to_path_buf(), bytes));
            }
        }
    }
    out.sort();
    out
}

/// A triangle strip of two bones with an animation, as glTF with a file beside it. Arguments change one
/// thing each.
pub struct TinyGltf {
    /// Positions of the four vertices.
    pub positions: [[f32; 3]; 4],
    /// Two triangles.
    pub indices: [u16; 6],
    /// Children of node 2 (the upper bone).
    pub children_of_tip: Vec<usize>,
}

impl Default for TinyGltf {
    fn default() -> Self {
        Self {
            positions: [[0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [0.5, 2.0, 0.0], [0.0, 2.0, 0.0]],
            indices: [0, 1, 2, 0, 2, 3],
            children_of_tip: Vec::new(),
        }
    }
}

impl TinyGltf {
    /// Writes `NAME.gltf` and `NAME.bin`.
    pub fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let mut bytes: Vec<u8> = Vec::new();
        let mut views = Vec::new();
        let mut add = |data: Vec<u8>| {
            views.push((bytes.len(), data.len()));
            bytes.extend(data);
            while !bytes.len().is_multiple_of(4) {
                bytes.push(0);
            }
        };
        let floats = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        add(floats(&self.positions.concat()));
        add(self.indices.iter().flat_map(|i| i.to_le_bytes()).collect());
        add([[0u8, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]].concat());
        add(floats(&[[1.0f32, 0.0, 0.0, 0.0]; 4].concat()));
        let mut bind = [0.0f32; 32];
        for bone in 0..2 {
            (0..4).for_each(|k| bind[bone * 16 + k * 5] = 1.0);
        }
        bind[16 + 13] = -1.0;
        add(floats(&bind));
        add(floats(&[0.0, 0.5, 1.0]));
        let half = std::f32::consts::FRAC_1_SQRT_2;
        add(floats(&[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, half, half, 0.0, 0.0, 0.0, 1.0]));
        let views: Vec<_> = views
            .iter()
            .map(|(offset, length)| serde_json::json!({"buffer": 0, "byteOffset": offset, "byteLength": length}))
            .collect();
        let finite = |v: f32| if v.is_finite() { v } else { 0.0 };
        let bound = |pick: fn(f32, f32) -> f32, start: f32| -> Vec<f32> {
            (0..3).map(|axis| self.positions.iter().fold(start, |b, p| pick(b, finite(p[axis])))).collect()
        };
        let document = serde_json::json!({
            "asset": {"version": "2.0"},
            "scene": 0,
            "scenes": [{"nodes": [0, 1]}],
            "nodes": [
                {"mesh": 0, "skin": 0},
                {"name": "root", "children": [2]},
                {"name": "tip", "translation": [0.0, 1.0, 0.0], "children": self.children_of_tip},
            ],
            "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "JOINTS_0": 2, "WEIGHTS_0": 3}, "indices": 1}]}],
            "skins": [{"joints": [1, 2], "inverseBindMatrices": 4}],
            "animations": [{
                "name": "bend",
                "channels": [{"sampler": 0, "target": {"node": 2, "path": "rotation"}}],
                "samplers": [{"input": 5, "output": 6, "interpolation": "LINEAR"}],
            }],
            "buffers": [{"uri": format!("{name}.bin"), "byteLength": bytes.len()}],
            "bufferViews": views,
            "accessors": [
                {"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3",
                 "min": bound(f32::min, f32::INFINITY), "max": bound(f32::max, f32::NEG_INFINITY)},
                {"bufferView": 1, "componentType": 5123, "count": 6, "type": "SCALAR"},
                {"bufferView": 2, "componentType": 5121, "count": 4, "type": "VEC4"},
                {"bufferView": 3, "componentType": 5126, "count": 4, "type": "VEC4"},
                {"bufferView": 4, "componentType": 5126, "count": 2, "type": "MAT4"},
                {"bufferView": 5, "componentType": 5126, "count": 3, "type": "SCALAR", "min": [0.0], "max": [1.0]},
                {"bufferView": 6, "componentType": 5126, "count": 3, "type": "VEC4"},
            ],
        });
        std::fs::write(folder.join(format!("{name}.bin")), bytes).expect("writable");
        let path = folder.join(format!("{name}.gltf"));
        std::fs::write(&path, document.to_string()).expect("writable");
        path
    }
}

/// An archive of f32 and string arrays, stored without compression.
pub fn write_npz(path: &Path, arrays: &[(&str, &str, &str, Vec<u8>)]) {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, descr, shape, data) in arrays {
        let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        while !(10 + header.len() + 1).is_multiple_of(64) {
            header.push(' ');
        }
        header.push('\n');
        let mut member = b"\x93NUMPY\x01\x00".to_vec();
        member.extend((header.len() as u16).to_le_bytes());
        member.extend(header.as_bytes());
        member.extend(data);
        let name = format!("{name}.npy");
        let sizes = [crc32(&member), member.len() as u32, member.len() as u32];
        let mut common = Vec::new();
        common.extend([20u16, 0, 0, 0, 0].iter().flat_map(|v| v.to_le_bytes()));
        common.extend(sizes.iter().flat_map(|v| v.to_le_bytes()));
        common.extend([name.len() as u16, 0].iter().flat_map(|v| v.to_le_bytes()));
        let offset = bytes.len() as u32;
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(name.as_bytes());
        bytes.extend(&member);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0u8; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (offset, count) = (bytes.len() as u32, arrays.len() as u16);
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\x00\x00\x00\x00");
    bytes.extend([count, count].iter().flat_map(|v| v.to_le_bytes()));
    bytes.extend([directory.len() as u32, offset].iter().flat_map(|v| v.to_le_bytes()));
    bytes.extend([0u8; 2]);
    std::fs::write(path, bytes).expect("writable");
}

/// Numbers as an array's bytes.
pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Whole numbers as an array's bytes.
pub fn integers(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Text in four-byte characters, padded to a width.
pub fn unicode(values: &[&str], width: usize) -> Vec<u8> {
    let padded = |text: &&str| {
        let mut chars: Vec<u32> = text.chars().map(u32::from).collect();
        chars.resize(width, 0);
        chars
    };
    values.iter().flat_map(padded).flat_map(u32::to_le_bytes).collect()
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}
