//! A skin twin beside onnxruntime and PyTorch on the same network and skin, and what leaves for an engine (a skinned GLB and
//! a graph of its bones) run by onnxruntime and our glTF reader beside the twin itself.

use crate::RaceArguments;
use crate::body_peers::Peers;
use crate::times::{OURS, PEERS, Times};
use std::path::Path;
use std::sync::Arc;
use understudy_core::{Affine3A, GlobalPose, Mat3, Vec3};
use understudy_io::npz::{NpzReader, NpzWriter};
use understudy_io::{Dim, ReadError, write_atomic};
use understudy_jobs::twin::bench::{BenchPoses, original, time};
use understudy_jobs::twin::export::{ExportConfig, export, onnx_graph};
use understudy_jobs::{Event, JobError, Watch};
use understudy_runtime::skin::{BONE_NUMBERS, SkinParts, SkinTwin};
use understudy_runtime::{Player, Twin};

const SCRIPT: &str = include_str!("../python/skin.py");
/// Poses of the race.
const POSES: usize = 32;

/// What was measured.
#[derive(Debug, Clone)]
pub struct SkinRace {
    /// One pose at a time by threads, and the bones alone; ms per pose.
    pub times: Times,
    /// Largest distance between our vertices and onnxruntime's, mm.
    pub onnx_error_mm: f64,
    /// Largest distance between our vertices and the GLB's, moved by onnxruntime's bones, over all poses, mm.
    pub glb_error_mm: f64,
}

/// Races a skin twin.
pub fn race_skin(
    config: &RaceArguments,
    twin: &Arc<SkinTwin>,
    watch: &dyn Watch,
) -> Result<SkinRace, JobError> {
    let whole = Twin::from(Arc::clone(twin));
    let rig = original(&whole, &config.twin);
    let poses = BenchPoses::draw(&whole, rig.as_deref(), POSES)?;
    let mut players = [whole.player(1), whole.player(2)];
    let (glb, bones) = (config.peers.join("skin.glb"), config.peers.join("bones.onnx"));
    write_atomic(&config.peers.join("skin.onnx"), &onnx_graph(&whole))?;
    let leaving = ExportConfig {
        twin: config.twin.clone(),
        onnx: Some(bones),
        glb: Some(glb.clone()),
        ..ExportConfig::default()
    };
    export(&leaving, watch)?;
    hand_over(&config.peers, &twin.parts(), &poses)?;
    let mut peers = Peers::launch(&config.peers, "skin.py", SCRIPT, watch)?;
    let mut out = vec![Vec3::ZERO; twin.vertex_count()];
    let mut times = Times::default();
    watch.event(Event::Started { what: "racing", total: config.rounds as u64, unit: "rounds" });
    for round in 0..config.rounds {
        for player in &mut players {
            let threads = player.threads();
            let key = format!("one pose, {threads} thread(s)");
            let mut run = |index: usize| poses.play(player, index, &mut out);
            // Warm-up for everyone, see the race of body twins.
            time(60, &mut run);
            times.add(&key, OURS, time(60, &mut run));
            for peer in PEERS {
                times.add(&key, peer, peers.time(peer, threads, 1)?);
            }
        }
        times.add("bones alone, one thread", PEERS[0], peers.time("bones", 1, 1)?);
        watch.event(Event::Step { done: round as u64 + 1 });
    }
    watch.event(Event::Finished);
    let glb_error_mm = glb_error_mm(&config.peers, &glb, &poses, &mut players[0])?;
    poses.play(&mut players[0], 0, &mut out);
    Ok(SkinRace { times, onnx_error_mm: peers.error_mm(&out)?, glb_error_mm })
}

/// Moves the joints of a GLB by the bones that onnxruntime left in the folder.
fn glb_error_mm(folder: &Path, glb: &Path, poses: &BenchPoses, player: &mut Player) -> Result<f64, JobError> {
    let asset = understudy_io::gltf::read(glb)?;
    let (Some(skeleton), Some(weights)) = (&asset.skeleton, &asset.skin) else {
        return Err(JobError::unusable(glb, "has no skin"));
    };
    let path = folder.join("bones.npz");
    let bones = skeleton.len() / 2;
    let want = [Dim::Exactly(poses.count), Dim::Exactly(bones), Dim::Exactly(3), Dim::Exactly(4)];
    let numbers = NpzReader::read(&path)?.f32("bones", &want).map_err(ReadError::content(&path))?.data;
    let joint = |bone: usize, suffix: &str| {
        let name = format!("bone_{bone:03}{suffix}");
        skeleton.find(&name).ok_or_else(|| JobError::unusable(glb, format!("has no joint '{name}'")))
    };
    let mut worst = 0.0f32;
    let mut played = vec![Vec3::ZERO; asset.mesh.vertex_count()];
    let mut truth = played.clone();
    for (pose, rows) in numbers.chunks_exact(bones * BONE_NUMBERS).enumerate() {
        let mut global = GlobalPose(skeleton.rest_global().to_vec());
        for (bone, m) in rows.chunks_exact(BONE_NUMBERS).enumerate() {
            let linear = Mat3::from_cols(
                Vec3::new(m[0], m[4], m[8]),
                Vec3::new(m[1], m[5], m[9]),
                Vec3::new(m[2], m[6], m[10]),
            );
            let world = Affine3A::from_mat3_translation(linear, Vec3::new(m[3], m[7], m[11]));
            for suffix in ["", "_skin"] {
                global.0[joint(bone, suffix)?] = world;
            }
        }
        let bound = global.0.iter().zip(skeleton.inverse_bind());
        let matrices: Vec<Affine3A> = bound.map(|(bone, inverse)| *bone * *inverse).collect();
        weights.linear_blend(&matrices, asset.mesh.positions(), &mut played);
        poses.play(player, pose, &mut truth);
        worst = played.iter().zip(&truth).map(|(a, b)| a.distance(*b)).fold(worst, f32::max);
    }
    Ok(f64::from(worst) * 10.0)
}

/// Poses, network and skin as arrays that Python reads.
fn hand_over(folder: &Path, parts: &SkinParts, poses: &BenchPoses) -> Result<(), JobError> {
    let (count, bones) = (parts.rest_vertices.len(), parts.centres.len());
    let mut writer = NpzWriter::new();
    writer.f32("poses", &[poses.count, poses.controls.len() / poses.count], &poses.controls);
    let inputs: Vec<i32> = parts.inputs.iter().map(|input| *input as i32).collect();
    writer.i32("inputs", &[inputs.len()], &inputs);
    writer.f32("mean", &[parts.mean.len()], &parts.mean);
    writer.f32("scale", &[parts.scale.len()], &parts.scale);
    for (index, layer) in parts.hidden.iter().chain([&parts.output]).enumerate() {
        let rows = layer.bias.len();
        writer.f32(&format!("{index}.weights"), &[rows, layer.weights.len() / rows.max(1)], &layer.weights);
        writer.f32(&format!("{index}.bias"), &[rows], &layer.bias);
    }
    let mut dense = vec![0.0f32; count * bones];
    for vertex in 0..count {
        parts.weights.row(vertex).for_each(|(bone, weight)| dense[vertex * bones + bone] += weight);
    }
    writer.f32("skin", &[count, bones], &dense);
    let flat = |points: &[Vec3]| points.iter().flat_map(|p| p.to_array()).collect::<Vec<f32>>();
    writer.f32("rest", &[count, 3], &flat(&parts.rest_vertices));
    writer.f32("centres", &[bones, 3], &flat(&parts.centres));
    Ok(writer.write(&folder.join("skin.npz"))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_jobs::Silent;
    use understudy_jobs::sample::{SampleConfig, sample};
    use understudy_jobs::twin::learn::{LearnConfig, learn};
    use understudy_jobs::twin::skin::SkinLearning;
    use understudy_jobs::twin::{Learning, open_twin};

    /// Downloads onnxruntime and PyTorch where they are missing: `cargo xtask test --all` runs it.
    #[test]
    #[ignore = "wants onnxruntime"]
    fn onnxruntime_moves_the_glb_to_where_the_twin_is() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let (data, path) = (folder.path().join("data"), folder.path().join("mira.twin"));
        let config = SampleConfig {
            rig: "mira".into(),
            output: data.clone(),
            poses: Some(60),
            exclude: vec!["roar".into()],
            ..SampleConfig::default()
        };
        sample(&config, &Silent).expect("mira is always there");
        let mut skin = SkinLearning::default();
        skin.settings.bones = 12;
        skin.settings.components = Some(0);
        skin.settings.poses = 20;
        skin.settings.rounds = [2, 2];
        skin.settings.train.epochs = 5;
        learn(&LearnConfig::new(&data, &path, Learning::Skin(skin)), &Silent).expect("it can be learned");
        let Twin::Skin(twin) = open_twin(&path).expect("was learned") else { panic!("a skin twin") };
        let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
        let arguments = RaceArguments { twin: path, rounds: 1, peers, training: false };
        let race = race_skin(&arguments, &twin, &Silent).expect("onnxruntime runs");
        assert!(race.onnx_error_mm < 0.01 && race.glb_error_mm < 0.01, "{race:?}");
    }
}
