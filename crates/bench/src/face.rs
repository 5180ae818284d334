//! A face twin beside onnxruntime and PyTorch on the same networks, and training beside PyTorch, in one alternating run.

use crate::RaceArguments;
use crate::body_peers::Peers;
use crate::body_training::TrainingRace;
use crate::times::{OURS, OURS_32, PEERS, Times};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use understudy_core::Vec3;
use understudy_io::npz::NpzWriter;
use understudy_io::write_atomic;
use understudy_jobs::twin::bench::{BenchPoses, median, original, time};
use understudy_jobs::twin::export::onnx_graph;
use understudy_jobs::twin::face::untied_weights;
use understudy_jobs::{Event, JobError, Watch, threads};
use understudy_learn::Recording;
use understudy_learn::face::coarse_problem_of;
use understudy_learn::face::loss::cross_of;
use understudy_learn::face::trainer::Trainer;
use understudy_runtime::face::sample::BilinearSample;
use understudy_runtime::face::{FaceParts, FaceTwin, LEAK, NetParts, Stage};
use understudy_runtime::{Player, Precision, Twin};

const SCRIPT: &str = include_str!("python/face.py");
/// Poses of the race.
const POSES: usize = 48;
/// Poses per training step, as in the paper.
const BATCH: usize = 8;
/// Training steps per round.
const STEPS: usize = 4;

/// What was measured.
#[derive(Debug, Clone)]
pub struct FaceRace {
    /// Networks: coarse, refinement.
    pub networks: [usize; 2],
    /// One pose at a time by threads, and the coarse part alone; ms per pose.
    pub times: Times,
    /// Largest distance between our vertices and onnxruntime's, mm.
    pub onnx_error_mm: f64,
    /// Training of the coarse networks beside PyTorch.
    pub training: Option<TrainingRace>,
}

/// Races a face twin.
pub fn race_face(
    config: &RaceArguments,
    twin: &Arc<FaceTwin>,
    watch: &dyn Watch,
) -> Result<FaceRace, JobError> {
    let whole = Twin::from(Arc::clone(twin));
    let rig = original(&whole, &config.twin);
    let mut poses = BenchPoses::draw(&whole, rig.as_deref(), POSES)?;
    let single = FaceTwin::new(twin.parts(), Precision::Single);
    let single = Twin::from(single.map_err(|error| JobError::Machine(error.to_string()))?);
    let mut players = [whole.player(1), whole.player(2), Twin::from(twin.coarse()).player(1)];
    let mut players_32 = [single.player(1), single.player(2)];
    let count = twin.vertex_count();
    let mut out = vec![Vec3::ZERO; count];
    if poses.vertices.is_empty() {
        // Without the rig the twin is its own truth: only steps are counted.
        for index in 0..POSES {
            poses.play(&mut players[0], index, &mut out);
            poses.vertices.extend_from_slice(&out);
        }
    }
    write_atomic(&config.peers.join("face.onnx"), &onnx_graph(&whole))?;
    hand_over(&config.peers, &twin.parts(), &poses)?;
    let mut peers = Peers::launch(&config.peers, "face.py", SCRIPT, watch)?;
    let recording = Recording {
        mesh: twin.mesh().clone(),
        skeleton: None,
        specs: twin.header().inputs.controls.clone(),
        bones: Vec::new(),
        controls: poses.controls.clone(),
        vertices: poses.vertices.clone(),
    };
    let nets = twin.parts().nets;
    let stage = |stage: Stage| nets.iter().filter(|net| net.stage == stage).count();
    let threads = threads::available();
    let mut trainer = match config.training {
        true => Some(Training::new(twin, &recording, threads)?),
        false => None,
    };
    let (mut times, mut torch_steps) = (Times::default(), Vec::new());
    watch.event(Event::Started { what: "racing", total: config.rounds as u64, unit: "rounds" });
    for round in 0..config.rounds {
        let [one, two, coarse] = &mut players;
        let mut timed = |player: &mut Player| {
            let mut run = |index: usize| poses.play(player, index, &mut out);
            // Warm-up for everyone, see the race of body twins.
            time(20, &mut run);
            time(20, &mut run)
        };
        times.add("coarse part alone, one thread", OURS, timed(coarse));
        for (player, player_32) in [one, two].into_iter().zip(&mut players_32) {
            let threads = player.threads();
            let key = format!("one pose, {threads} thread(s)");
            times.add(&key, OURS, timed(player));
            times.add(&key, OURS_32, timed(player_32));
            for peer in PEERS {
                times.add(&key, peer, peers.time(peer, threads, 1)?);
            }
        }
        if let Some(trainer) = &mut trainer {
            let request =
                serde_json::json!({"peer": "training", "threads": threads, "batch": BATCH, "steps": STEPS});
            torch_steps.push(steps_of(&peers.ask(&request)?, stage(Stage::Coarse))?);
            trainer.run(round);
        }
        watch.event(Event::Step { done: round as u64 + 1 });
    }
    watch.event(Event::Finished);
    poses.play(&mut players[0], 0, &mut out);
    let training = trainer.map(|trainer| TrainingRace {
        understudy_steps_s: median(trainer.steps_s),
        torch_steps_s: median(torch_steps),
        batch: BATCH,
        threads,
        networks: stage(Stage::Coarse),
    });
    Ok(FaceRace {
        networks: [stage(Stage::Coarse), stage(Stage::Refinement)],
        times,
        onnx_error_mm: peers.error_mm(&out)?,
        training,
    })
}

/// PyTorch's steps a second, if it trained as many networks as we do.
fn steps_of(answer: &serde_json::Value, networks: usize) -> Result<f64, JobError> {
    if answer["networks"].as_u64() != Some(networks as u64) {
        let problem = format!("PyTorch trained other networks than our {networks}: it answered {answer}");
        return Err(JobError::Machine(problem));
    }
    answer["steps_s"].as_f64().ok_or_else(|| JobError::Machine(format!("peers answered {answer}")))
}

/// Our own training of the coarse networks.
struct Training<'a> {
    trainer: Trainer<'a>,
    steps_s: Vec<f64>,
}

impl<'a> Training<'a> {
    fn new(twin: &FaceTwin, poses: &'a Recording, threads: usize) -> Result<Self, JobError> {
        let parts = twin.parts();
        let widths = parts.nets.iter().filter_map(|net| net.dense.first()).map(|layer| layer.bias.len());
        let hidden = widths.max().unwrap_or(256);
        let (problem, specs) = coarse_problem_of(&parts, poses, 5.0);
        let trainer = Trainer::new(problem, specs, hidden, BATCH, 1, threads);
        let trainer = trainer.map_err(|error| JobError::Machine(error.to_string()))?;
        Ok(Self { trainer, steps_s: Vec::new() })
    }

    /// Steps a second in one round, the first step aside.
    fn run(&mut self, round: usize) {
        let step = |number: usize| {
            let first = number * BATCH % (POSES - BATCH + 1);
            let batch: Vec<usize> = (first..first + BATCH).collect();
            self.trainer.step(&batch, number + 1, 1e-4);
        };
        let before = round * (STEPS + 1);
        step(before);
        let start = Instant::now();
        (1..=STEPS).for_each(|index| step(before + index));
        self.steps_s.push(STEPS as f64 / start.elapsed().as_secs_f64());
    }
}

/// Poses and networks as arrays that Python reads.
fn hand_over(folder: &Path, parts: &FaceParts, poses: &BenchPoses) -> Result<(), JobError> {
    if parts.nets.iter().any(|net| net.map.is_none()) {
        return Err(JobError::setting("peers", "the race is for twins whose networks have maps"));
    }
    let count = parts.mesh.vertex_count();
    let mut writer = NpzWriter::new();
    writer.f32("poses", &[POSES, poses.controls.len() / POSES], &poses.controls);
    let flat = |points: &[Vec3]| points.iter().flat_map(|p| p.to_array()).collect::<Vec<f32>>();
    writer.f32("truth", &[POSES, count, 3], &flat(&poses.vertices));
    writer.f32("rest", &[count, 3], &flat(parts.mesh.positions()));
    writer.f32("leak", &[], &[LEAK]);
    let mut moved = vec![false; count];
    let coarse = parts.nets.iter().filter(|net| net.stage == Stage::Coarse);
    coarse.flat_map(|net| &net.vertices).for_each(|v| moved[*v as usize] = true);
    let learned = parts.mesh.faces().iter().filter(|face| face.corners().iter().all(|v| moved[*v as usize]));
    let faces: Vec<i32> = learned.flat_map(cross_of).map(|v| v as i32).collect();
    writer.i32("faces", &[faces.len() / 4, 4], &faces);
    writer.i32("nets", &[], &[parts.nets.len() as i32]);
    let stages: Vec<i32> = parts.nets.iter().map(|net| i32::from(net.stage == Stage::Refinement)).collect();
    writer.i32("stages", &[stages.len()], &stages);
    for (index, net) in parts.nets.iter().enumerate() {
        write_net(&mut writer, index, net);
    }
    Ok(writer.write(&folder.join("face.npz"))?)
}

fn write_net(writer: &mut NpzWriter, index: usize, net: &NetParts) {
    let named = |name: &str| format!("{index}.{name}");
    let Some(map) = &net.map else { return };
    let whole = |numbers: &[u32]| numbers.iter().map(|n| *n as i32).collect::<Vec<i32>>();
    writer.i32(&named("inputs"), &[net.inputs.len()], &whole(&net.inputs));
    writer.i32(&named("vertices"), &[net.vertices.len()], &whole(&net.vertices));
    writer.f32(&named("mean"), &[net.mean.len()], &net.mean);
    writer.f32(&named("scale"), &[net.scale.len()], &net.scale);
    let shape = &map.shape;
    writer.i32(&named("image"), &[2], &[shape.side as i32, shape.channels as i32]);
    writer.i32(&named("doublings"), &[], &[shape.doublings as i32]);
    let samples: Vec<BilinearSample> =
        map.coordinates.iter().map(|c| BilinearSample::at(*c, shape.map_side())).collect();
    let pixels: Vec<i32> =
        samples.iter().flat_map(|l| l.pixels(shape.map_side()).map(|p| p as i32)).collect();
    let weights: Vec<f32> = samples.iter().flat_map(|sample| sample.weights).collect();
    writer.i32(&named("pixels"), &[samples.len(), 4], &pixels);
    writer.f32(&named("weights"), &[samples.len(), 4], &weights);
    for (layer, data) in net.dense.iter().enumerate() {
        let rows = data.bias.len();
        writer.f32(
            &named(&format!("{layer}.dense")),
            &[rows, data.weights.len() / rows.max(1)],
            &data.weights,
        );
        writer.f32(&named(&format!("{layer}.bias")), &[rows], &data.bias);
    }
    let mut rest = &map.parameters[..];
    for convolution in 0..shape.convolutions() {
        let inputs = shape.inputs_of(convolution);
        let (kernel, after) = rest.split_at(shape.hidden * inputs * 9);
        let (bias, after) = after.split_at(shape.hidden);
        rest = after;
        writer.f32(&named(&format!("{convolution}.kernel")), &[shape.hidden, inputs, 3, 3], kernel);
        writer.f32(&named(&format!("{convolution}.kernel_bias")), &[shape.hidden], bias);
    }
    let (point, bias) = rest.split_at(shape.sets() * shape.outputs * shape.reads());
    let point = untied_weights(shape, point);
    writer.f32(&named("point"), &[shape.outputs, shape.hidden, shape.sets()], &point.features);
    writer.f32(&named("common"), &[shape.shared_features, shape.outputs * shape.sets()], &point.shared);
    writer.f32(&named("point_bias"), &[shape.sets(), shape.outputs], bias);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_race_of_fewer_networks_is_none() {
        assert!(steps_of(&json!({"steps_s": 6.0, "networks": 8}), 16).is_err());
        assert!(steps_of(&json!({"steps_s": 6.0}), 16).is_err());
        assert_eq!(steps_of(&json!({"steps_s": 6.0, "networks": 16}), 16).ok(), Some(6.0));
    }
}
