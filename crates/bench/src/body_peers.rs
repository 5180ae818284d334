//! onnxruntime and PyTorch as contestants: a Python process that times them when asked, and what it is given of a body.

use crate::environment::Script;
use std::path::{Path, PathBuf};
use std::time::Duration;
use understudy_core::{Affine3A, SkinWeights, Vec3};
use understudy_io::npz::{NpzReader, NpzWriter};
use understudy_io::{Dim, ReadError};
use understudy_jobs::twin::bench::BenchPoses;
use understudy_jobs::{Event, JobError, Watch};
use understudy_learn::body::BonePairs;
use understudy_runtime::Activation;
use understudy_runtime::body::BodyParts;

const SCRIPT: &str = include_str!("python/body.py");

/// onnxruntime and PyTorch on one twin.
pub(crate) struct Peers {
    script: Script,
    folder: PathBuf,
}

impl Peers {
    /// Hands a body's networks over (its graph lies in the folder as `twin.onnx`) and starts the process.
    pub fn of_body(
        folder: &Path,
        parts: &BodyParts,
        poses: &BenchPoses,
        watch: &dyn Watch,
    ) -> Result<Self, JobError> {
        hand_over(folder, parts, &poses.bones, &poses.controls)?;
        Self::launch(folder, "body.py", SCRIPT, watch)
    }

    /// Starts a script, which finds what it needs in the folder and says its versions first.
    pub fn launch(folder: &Path, name: &str, script: &str, watch: &dyn Watch) -> Result<Self, JobError> {
        let mut script = Script::start(folder, name, script, folder, watch)?;
        let versions = script.line()?;
        watch.event(Event::Note { message: &format!("peers: {versions}") });
        Ok(Self { script, folder: folder.into() })
    }

    /// One request, one answer.
    pub fn ask(&mut self, request: &serde_json::Value) -> Result<serde_json::Value, JobError> {
        self.script.ask(&request.to_string())
    }

    /// Milliseconds per pose. Then a moment of rest: threads of a peer that look out for more work would take a core
    /// from whoever comes next.
    pub fn time(&mut self, peer: &str, threads: usize, crowd: usize) -> Result<f64, JobError> {
        let answer = self.ask(&serde_json::json!({"peer": peer, "threads": threads, "crowd": crowd}))?;
        std::thread::sleep(Duration::from_millis(50));
        answer["ms"].as_f64().ok_or_else(|| JobError::Machine(format!("peers answered {answer}")))
    }

    /// Largest distance between onnxruntime's vertices of the first pose and ours, mm.
    pub fn error_mm(&mut self, ours: &[Vec3]) -> Result<f64, JobError> {
        self.ask(&serde_json::json!({"peer": "check"}))?;
        let path = self.folder.join("vertices.npz");
        let archive = NpzReader::read(&path)?;
        let want = [Dim::Exactly(ours.len()), Dim::Exactly(3)];
        let numbers = archive.f32("vertices", &want).map_err(ReadError::content(&path))?.data;
        let miss = |(a, b): (&Vec3, &[f32])| f64::from(a.distance(Vec3::from_slice(b)));
        Ok(ours.iter().zip(numbers.chunks_exact(3)).map(miss).fold(0.0, f64::max) * 10.0)
    }
}

/// Poses and networks as arrays that Python reads.
fn hand_over(folder: &Path, parts: &BodyParts, bones: &[Affine3A], controls: &[f32]) -> Result<(), JobError> {
    let joints = parts.header.inputs.bones.len();
    let poses = bones.len() / joints;
    let mut writer = NpzWriter::new();
    let numbers: Vec<f32> = bones.iter().flat_map(rows).collect();
    writer.f32("bones", &[poses, joints, 3, 4], &numbers);
    writer.f32("controls", &[poses, controls.len() / poses], controls);
    writer.write(&folder.join("poses.npz"))?;

    let mut writer = NpzWriter::new();
    let bone_pairs = BonePairs::new(parts);
    let count = bone_pairs.pairs.len();
    let references: Vec<i32> = bone_pairs.pairs.iter().map(|(r, _)| r.unwrap_or(joints) as i32).collect();
    let seen: Vec<i32> = bone_pairs.pairs.iter().map(|(_, bone)| *bone as i32).collect();
    writer.i32("references", &[count], &references);
    writer.i32("seen", &[count], &seen);
    let groups = parts.groups.iter().zip(&bone_pairs.inputs).filter(|(group, _)| !group.vertices.is_empty());
    let groups: Vec<_> = groups.collect();
    writer.i32("groups", &[], &[groups.len() as i32]);
    writer.i32("rigid", &[], &[i32::from(parts.rigid_frames)]);
    for (index, (group, seen)) in groups.into_iter().enumerate() {
        let named = |name: &str| format!("{index}.{name}");
        let inputs: Vec<i32> = seen.iter().map(|i| *i as i32).collect();
        let spoken = group.vertices.len() + group.ghosts.len();
        let to_bone = parts.rest_bones[group.bone].inverse();
        let place = |v: &u32| match parts.base {
            // The base has the position; the network adds to it.
            Some(_) => [0.0; 3],
            None => to_bone.transform_point3(parts.rest_vertices[*v as usize]).to_array(),
        };
        let local: Vec<f32> = group.vertices.iter().chain(&group.ghosts).flat_map(place).collect();
        writer.i32(&named("bone"), &[], &[group.bone as i32]);
        writer.i32(&named("inputs"), &[inputs.len()], &inputs);
        writer.f32(&named("mean"), &[group.mean.len()], &group.mean);
        writer.f32(&named("scale"), &[group.scale.len()], &group.scale);
        writer.f32(&named("local"), &[spoken, 3], &local);
        writer.i32(&named("layers"), &[], &[group.layers.len() as i32]);
        for (layer, data) in group.layers.iter().enumerate() {
            let rows = data.bias.len();
            writer.f32(
                &named(&format!("{layer}.weights")),
                &[rows, data.weights.len() / rows.max(1)],
                &data.weights,
            );
            writer.f32(&named(&format!("{layer}.bias")), &[rows], &data.bias);
            writer.i32(
                &named(&format!("{layer}.tanh")),
                &[],
                &[i32::from(data.activation == Activation::Tanh)],
            );
        }
    }
    if let Some(base) = &parts.base {
        hand_over_base(&mut writer, parts, base);
    }
    Ok(writer.write(&folder.join("twin.npz"))?)
}

/// A bone by its rows.
pub(crate) fn rows(bone: &Affine3A) -> [f32; 12] {
    let [x, y, z, t] = [bone.matrix3.x_axis, bone.matrix3.y_axis, bone.matrix3.z_axis, bone.translation];
    [x.x, y.x, z.x, t.x, x.y, y.y, z.y, t.y, x.z, y.z, z.z, t.z]
}

/// Skin weights in compressed rows, and where each vertex is among the groups laid end to end.
fn hand_over_base(writer: &mut NpzWriter, parts: &BodyParts, base: &SkinWeights) {
    let (offsets, bones, weights) = base.compressed();
    let integers = |numbers: &mut dyn Iterator<Item = usize>| numbers.map(|n| n as i32).collect::<Vec<i32>>();
    let offsets = integers(&mut offsets.iter().map(|offset| *offset as usize));
    let bones = integers(&mut bones.iter().map(|bone| usize::from(*bone)));
    writer.i32("base.offsets", &[offsets.len()], &offsets);
    writer.i32("base.bones", &[bones.len()], &bones);
    writer.f32("base.weights", &[weights.len()], weights);
    let rest: Vec<f32> = parts.rest_vertices.iter().flat_map(|v| v.to_array()).collect();
    writer.f32("rest", &[parts.rest_vertices.len(), 3], &rest);
    let inverse: Vec<f32> = parts.rest_bones.iter().flat_map(|bone| rows(&bone.inverse())).collect();
    writer.f32("inverse_rest", &[parts.rest_bones.len(), 3, 4], &inverse);
    let mut order = vec![0i32; parts.rest_vertices.len()];
    let mut place = 0;
    for group in parts.groups.iter().filter(|group| !group.vertices.is_empty()) {
        for vertex in &group.vertices {
            order[*vertex as usize] = place;
            place += 1;
        }
        place += group.ghosts.len() as i32;
    }
    writer.i32("order", &[order.len()], &order);
}
