//! A body twin beside onnxruntime and PyTorch on the same networks, in one alternating run, and what the machine can do
//! at most.

use crate::RaceArguments;
use crate::body_peers::Peers;
use crate::body_training::{TrainingRace, race};
use crate::times::{OURS, OURS_32, PEERS, Times};
use std::hint::black_box;
use std::sync::Arc;
use understudy_core::Vec3;
use understudy_io::write_atomic;
use understudy_jobs::twin::bandwidth::at_least;
use understudy_jobs::twin::bench::{BenchPoses, CROWDS, original, time};
use understudy_jobs::twin::export::onnx_graph;
use understudy_jobs::{Event, JobError, Watch};
use understudy_runtime::body::{BLOCK, BodyParts, BodyTwin, GroupParts, LayerParts};
use understudy_runtime::dense::{Kernel, Layer};
use understudy_runtime::{Activation, Precision, Twin, VertexBuffer};

/// What was measured.
#[derive(Debug, Clone)]
pub struct BodyRace {
    /// One pose at a time by threads, and crowds on one thread; ms per pose.
    pub times: Times,
    /// Fused multiply-adds of one core at most, GFLOP/s (two per multiply-add).
    pub peak_gflops: f64,
    /// What products of matrices in the sizes of the networks, with what follows each sum, reach of it for 256
    /// poses, in 16 bits by the kernel of the hidden layers.
    pub crowd_peak_share: f64,
    /// What the networks reach as a crowd of 256 really runs them: inputs are gathered, the last layers skip what
    /// is zero, and every vertex is transformed by its bone and written. Neither the linear base nor seams.
    pub crowd_network_share: f64,
    /// The same with all that a crowd needs: skinning and seams too.
    pub crowd_whole_share: f64,
    /// Largest distance between our vertices and onnxruntime's, mm.
    pub onnx_error_mm: f64,
    /// Steps of training a second beside PyTorch's, where that was asked for.
    pub training: Option<TrainingRace>,
}

/// Races a body twin.
pub fn race_body(
    config: &RaceArguments,
    twin: &Arc<BodyTwin>,
    watch: &dyn Watch,
) -> Result<BodyRace, JobError> {
    let whole = Twin::from(Arc::clone(twin));
    let rig = original(&whole, &config.twin);
    let poses = BenchPoses::draw(&whole, rig.as_deref(), CROWDS[1])?;
    write_atomic(&config.peers.join("twin.onnx"), &onnx_graph(&whole))?;
    let mut peers = Peers::of_body(&config.peers, &twin.parts(), &poses, watch)?;
    let single = BodyTwin::new(twin.parts(), Precision::Single);
    let single = Twin::from(single.map_err(|error| JobError::Machine(error.to_string()))?);
    let mut players = [&whole, &single].map(|twin| [twin.player(1), twin.player(2)]);
    let vertices = twin.vertex_count();
    let mut out = VertexBuffer::new(vertices * CROWDS[1]);
    let mut times = Times::default();
    watch.event(Event::Started { what: "racing", total: config.rounds as u64, unit: "rounds" });
    for round in 0..config.rounds {
        for threads in [1, 2] {
            let key = format!("one pose, {threads} thread(s)");
            for (players, name) in players.iter_mut().zip([OURS, OURS_32]) {
                let player = &mut players[threads - 1];
                let mut run = |index: usize| poses.play(player, index, &mut out[..vertices]);
                // Warm-up for everyone: caches are another's, and a thread that was asleep may share a core at first.
                time(120, &mut run);
                times.add(&key, name, time(60, &mut run));
            }
            for peer in PEERS {
                times.add(&key, peer, peers.time(peer, threads, 1)?);
            }
        }
        for crowd in CROWDS {
            let key = crowd_key(crowd);
            for (players, name) in players.iter_mut().zip([OURS, OURS_32]) {
                let mut run = |_| {
                    let poses = poses.some(0..crowd);
                    players[0].crowd(poses, &mut out[..crowd * vertices]).expect("the poses fit the twin");
                };
                time(1, &mut run);
                times.add(&key, name, time(2, &mut run) / crowd as f64);
            }
            times.add(&key, "torch", peers.time("torch", 1, crowd)?);
        }
        watch.event(Event::Step { done: round as u64 + 1 });
    }
    watch.event(Event::Finished);
    let product_gflops = crowd_product_gflops(twin);
    let gflops = |milliseconds: f64| 2.0 * twin.multiply_adds() as f64 / (milliseconds * 1e6);
    let network_gflops = gflops(crowd_network_ms(twin, &poses, &mut out)?);
    let whole_gflops = gflops(times.median(&crowd_key(CROWDS[1]), OURS).unwrap_or(f64::NAN));
    let peak = at_least(peak_gflops(), &[product_gflops, network_gflops, whole_gflops]);
    poses.play(&mut players[0][0], 0, &mut out[..vertices]);
    let onnx_error_mm = peers.error_mm(&out[..vertices])?;
    let training = match config.training {
        true => Some(race(twin, &config.peers, config.rounds.min(5), watch)?),
        false => None,
    };
    Ok(BodyRace {
        times,
        peak_gflops: peak,
        crowd_peak_share: product_gflops / peak,
        crowd_network_share: network_gflops / peak,
        crowd_whole_share: whole_gflops / peak,
        onnx_error_mm,
        training,
    })
}

fn crowd_key(poses: usize) -> String {
    format!("crowd of {poses}, one thread")
}

/// The peak is the best of ten short runs, so what is compared with it must be the best of several, too. These are a
/// hundred times as long: more of them find a moment in which nobody else wants the memory.
fn best_of_many(mut run: impl FnMut() -> f64) -> f64 {
    (0..40).map(|_| run()).fold(f64::INFINITY, f64::min)
}

/// Milliseconds a pose of a crowd's networks without the linear base and without seams.
fn crowd_network_ms(twin: &BodyTwin, poses: &BenchPoses, out: &mut [Vec3]) -> Result<f64, JobError> {
    let parts = BodyParts { base: None, seams: None, ..twin.parts() };
    let bare =
        BodyTwin::new(parts, twin.precision()).map_err(|error| JobError::Machine(error.to_string()))?;
    let mut player = Twin::from(bare).player(1);
    let mut run = |_| {
        player.crowd(poses.some(0..poses.count), out).expect("the poses fit the twin");
    };
    Ok(best_of_many(|| time(1, &mut run)) / poses.count as f64)
}

/// Matrix products in the sizes of the networks, nonlinearities included and all else left out.
fn crowd_product_gflops(twin: &BodyTwin) -> f64 {
    // Rows of a layer at a time: evaluation too keeps what it writes in the cache.
    const ROWS: usize = 384;
    let (kernel, crowd) = (Kernel::detect(), CROWDS[1]);
    let packed = |group: &GroupParts| {
        let mut columns = group.inputs.len();
        let mut pack = |layer: &LayerParts| {
            let wide = columns.max(1);
            let slices = layer.weights.chunks(ROWS * wide).zip(layer.bias.chunks(ROWS));
            let pack = |(weights, bias): (&[f32], &[f32])| {
                Layer::pack(weights, bias, columns, layer.activation, Precision::Half).ok()
            };
            let packed: Vec<Layer> = slices.filter_map(pack).collect();
            columns = layer.bias.len();
            packed
        };
        group.layers.iter().flat_map(&mut pack).collect::<Vec<Layer>>()
    };
    let layers: Vec<Layer> = twin.parts().groups.iter().flat_map(packed).collect();
    // As evaluation has it: an odd number of cache lines from pose to pose.
    let stride = |size: usize| (size.div_ceil(16) | 1) * 16;
    let widest = layers.iter().map(|l| stride(l.padded_rows().max(l.columns()))).max().unwrap_or(0);
    let (x, mut y) = (vec![0.1; BLOCK * widest], vec![0.0; BLOCK * widest]);
    let mut panel = vec![0.0; layers.iter().map(Layer::working_size).max().unwrap_or(0)];
    let mut run = |_| {
        for first in (0..crowd).step_by(BLOCK) {
            for layer in &layers {
                let (from, to) = (stride(layer.columns()), stride(layer.padded_rows()));
                let poses = BLOCK.min(crowd - first);
                layer.apply_batch(kernel, poses, &x, from, &mut y, to, &mut panel);
            }
            black_box(&y);
        }
    };
    let milliseconds = best_of_many(|| time(3, &mut run));
    let products: usize = layers.iter().map(|layer| layer.rows() * layer.columns() * crowd).sum();
    2.0 * products as f64 / (milliseconds * 1e6)
}

/// A layer that stays in the first-level cache, best of many: the core's fused multiply-add peak as code
/// can reach it.
fn peak_gflops() -> f64 {
    understudy_runtime::dense::peak_gflops().unwrap_or_else(|| {
        let layer =
            Layer::pack(&vec![0.01; 128 * 128], &vec![0.0; 128], 128, Activation::None, Precision::Single)
                .expect("finite weights");
        let (x, mut y) = (vec![0.1; 48 * 128], vec![0.0; 48 * 128]);
        let mut panel = vec![0.0; layer.working_size()];
        let kernel = Kernel::detect();
        let run = time(200, |_| layer.apply_batch(kernel, 48, &x, 128, &mut y, 128, &mut panel));
        2.0 * 128.0 * 128.0 * 48.0 / (run * 1e6)
    })
}
