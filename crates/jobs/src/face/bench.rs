//! `bench` for face twins: one pose at a time beside onnxruntime and PyTorch on the same networks, and
//! training beside PyTorch, in one alternating run, with the rig's own cost.

use crate::twin::bench::{BenchTwinConfig, Contest, median, time};
use crate::twin::export::onnx_graph;
use crate::twin::face::onnx::untied_weights;
use crate::twin::face::open_face_twin;
use crate::twin::peers::{Peers, environment};
use crate::twin::race::TrainingRace;
use crate::{Event, JobError, Watch, rigs, threads};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use understudy_core::{Controls, Random, Vec3};
use understudy_io::npz::NpzWriter;
use understudy_io::write_atomic;
use understudy_learn::Recording;
use understudy_learn::face::coarse_problem_of;
use understudy_learn::face::loss::cross_of;
use understudy_learn::face::trainer::Trainer;
use understudy_rigs::sampling::{Method, SamplingConfig};
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::dense::Kernel;
use understudy_runtime::face::sample::BilinearSample;
use understudy_runtime::face::{FaceParts, FaceTwin, LEAK, NetParts, Stage};
use understudy_runtime::{Distances, Player, Pose, Twin};

const SCRIPT: &str = include_str!("peers.py");
/// Poses of the race.
const POSES: usize = 48;
/// Poses a training step, as in the paper.
const BATCH: usize = 8;
/// Training steps a round.
const STEPS: usize = 4;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchFaceReport {
    /// The rig.
    pub rig: String,
    /// Vertices.
    pub vertices: usize,
    /// Networks: coarse, refinement.
    pub networks: [usize; 2],
    /// Multiply-adds of the networks, pixels that nobody sees left out.
    pub multiply_adds: usize,
    /// The kernel in use.
    pub kernel: String,
    /// One pose at a time, by threads.
    pub threads: BTreeMap<String, Contest>,
    /// The coarse part alone on one thread, ms.
    pub coarse_ms: f64,
    /// Vertex normals from faces, on top of a pose, ms.
    pub normals_ms: f64,
    /// The rig's own cost, one thread.
    pub rig_ms: Option<f64>,
    /// What 16-bit weights cost against 32 bits, measured when the twin was learned: mean and largest, mm.
    pub half_error_mm: Option<Distances>,
    /// Largest distance between our vertices and onnxruntime's, mm.
    pub onnx_error_mm: Option<f64>,
    /// Training of the coarse networks beside PyTorch.
    pub training: Option<TrainingRace>,
}

/// Times a face twin.
pub fn bench_face(config: &BenchTwinConfig, watch: &dyn Watch) -> Result<BenchFaceReport, JobError> {
    let twin = open_face_twin(&config.twin)?;
    if config.rounds == 0 {
        return Err(JobError::setting("rounds", "0 rounds measure nothing"));
    }
    let rig = rigs::open(&twin.header().rig, &crate::Silent).ok().map(|open| open.rig);
    let rig = rig.filter(|rig| rig.mesh().topology_hash() == twin.header().topology_hash);
    let poses = draw(&twin, rig.as_deref())?;
    let peers = match &config.peers {
        None => None,
        Some(folder) => {
            environment(folder, watch)?;
            write_atomic(&folder.join("face.onnx"), &onnx_graph(&Twin::from(Arc::clone(&twin))))?;
            hand_over(folder, &twin.parts(), &poses)?;
            Some(Peers::launch(folder, "face_peers.py", SCRIPT, watch)?)
        }
    };
    measure(config, &twin, rig.as_deref(), &poses, peers, watch)
}

/// Controls `[POSES · C]` and what the rig (or the twin) makes of them.
struct Drawn {
    controls: Vec<f32>,
    vertices: Vec<Vec3>,
}

fn draw(twin: &Arc<FaceTwin>, rig: Option<&dyn Rig>) -> Result<Drawn, JobError> {
    let specs = &twin.header().inputs.controls;
    let mut drawn = Drawn { controls: Vec::new(), vertices: Vec::new() };
    let source = rig.and_then(|rig| {
        let config = SamplingConfig { method: Method::Noise, ..SamplingConfig::default() };
        config.build(rig.specs(), rig.clips()).ok()
    });
    let mut player = Twin::from(Arc::clone(twin)).player(1);
    let mut pose = RigPose::default();
    for index in 0..POSES {
        let controls = match &source {
            Some(source) => source.pose(index as u64),
            None => {
                let mut random = Random::stream(0xface, index as u64);
                Controls(specs.iter().map(|s| random.truncated_normal(s.low, s.high)).collect())
            }
        };
        match rig {
            Some(rig) => {
                rig.evaluate(&controls, &mut pose).map_err(JobError::rig(rig.name()))?;
                drawn.vertices.extend_from_slice(&pose.vertices);
            }
            None => {
                let mut out = vec![Vec3::ZERO; twin.vertex_count()];
                player
                    .pose(Pose::Controls(&controls.0), &mut out)
                    .map_err(|error| JobError::Machine(error.to_string()))?;
                drawn.vertices.extend(out);
            }
        }
        drawn.controls.extend(controls.0);
    }
    Ok(drawn)
}

fn measure(
    config: &BenchTwinConfig,
    twin: &Arc<FaceTwin>,
    rig: Option<&dyn Rig>,
    poses: &Drawn,
    mut peers: Option<Peers>,
    watch: &dyn Watch,
) -> Result<BenchFaceReport, JobError> {
    let whole = Twin::from(Arc::clone(twin));
    let mut players = [whole.player(1), whole.player(2), Twin::from(twin.coarse()).player(1)];
    let (width, count) = (twin.control_count(), twin.vertex_count());
    let mut out = vec![Vec3::ZERO; count];
    let mut normals = out.clone();
    let pose = |index: usize| &poses.controls[index % POSES * width..(index % POSES + 1) * width];
    let mut ours: [Vec<f64>; 4] = Default::default();
    let mut theirs: BTreeMap<(usize, &'static str), Vec<f64>> = BTreeMap::new();
    let mut torch_steps = Vec::new();
    let face_poses = Recording {
        mesh: twin.mesh().clone(),
        skeleton: None,
        specs: twin.header().inputs.controls.clone(),
        bones: Vec::new(),
        controls: poses.controls.clone(),
        vertices: poses.vertices.clone(),
    };
    let threads = threads::available();
    let nets = twin.parts().nets;
    let stage = |stage: Stage| nets.iter().filter(|net| net.stage == stage).count();
    let mut own = config.training.then(|| Contestant::new(twin, &face_poses, threads)).transpose()?;
    watch.event(Event::Started { what: "racing", total: config.rounds as u64, unit: "rounds" });
    for round in 0..config.rounds {
        for (slot, player) in players.iter_mut().enumerate() {
            let mut run = |index| {
                player.pose(Pose::Controls(pose(index)), &mut out).expect("the poses fit the twin");
            };
            // Everyone runs in first, see the race of body twins.
            time(20, &mut run);
            ours[slot].push(time(20, &mut run));
        }
        ours[3].push(time(10, |_| players[0].normals(&out, &mut normals).expect("arrays fit")));
        if let Some(peers) = &mut peers {
            for threads in [1, 2] {
                for peer in ["onnxruntime", "torch"] {
                    theirs.entry((threads, peer)).or_default().push(peers.time(peer, threads, 1)?);
                }
            }
            if config.training {
                let request = serde_json::json!({
                    "peer": "training", "threads": threads, "batch": BATCH, "steps": STEPS
                });
                torch_steps.push(steps_of(&peers.ask(&request)?, stage(Stage::Coarse))?);
            }
        }
        if let Some(contestant) = &mut own {
            contestant.run(round);
        }
        watch.event(Event::Step { done: round as u64 + 1 });
    }
    watch.event(Event::Finished);
    let contest = |threads: usize| {
        let other = |peer: &'static str| theirs.get(&(threads, peer)).map(|t| median(t.clone()));
        let understudy_ms = median(ours[threads - 1].clone());
        Contest { understudy_ms, onnxruntime_ms: other("onnxruntime"), torch_ms: other("torch") }
    };
    let rig_ms = rig.map(|rig| {
        let mut posed = RigPose::default();
        time(20, |index| {
            rig.evaluate(&Controls(pose(index).to_vec()), &mut posed).expect("controls in range");
        })
    });
    let onnx_error_mm = match &mut peers {
        None => None,
        Some(peers) => {
            let player: &mut Player = &mut players[0];
            player.pose(Pose::Controls(pose(0)), &mut out).expect("the poses fit the twin");
            Some(peers.error_mm(&out)?)
        }
    };
    let one = contest(1);
    Ok(BenchFaceReport {
        rig: twin.header().rig.clone(),
        vertices: count,
        networks: [stage(Stage::Coarse), stage(Stage::Refinement)],
        multiply_adds: twin.multiply_adds(),
        kernel: Kernel::detect().name().into(),
        threads: [("1".to_owned(), one), ("2".to_owned(), contest(2))].into(),
        coarse_ms: median(ours[2].clone()),
        normals_ms: median(ours[3].clone()),
        rig_ms,
        half_error_mm: twin.header().training.half_error_mm,
        onnx_error_mm,
        training: own.filter(|_| !torch_steps.is_empty()).map(|own| TrainingRace {
            understudy_steps_s: median(own.steps_s),
            torch_steps_s: median(torch_steps),
            batch: BATCH,
            threads,
            networks: stage(Stage::Coarse),
        }),
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

/// Our side in the race of training.
struct Contestant<'a> {
    trainer: Trainer<'a>,
    steps_s: Vec<f64>,
}

impl<'a> Contestant<'a> {
    /// The coarse networks.
    fn new(twin: &FaceTwin, poses: &'a Recording, threads: usize) -> Result<Self, JobError> {
        let hidden =
            twin.parts().nets.first().and_then(|net| net.dense.first()).map_or(256, |d| d.bias.len());
        let (problem, specs) = coarse_problem_of(&twin.parts(), poses, 5.0);
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
fn hand_over(folder: &Path, parts: &FaceParts, poses: &Drawn) -> Result<(), JobError> {
    if parts.nets.iter().any(|net| net.map.is_none()) {
        return Err(JobError::setting("peers", "the race is for twins that draw maps"));
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
