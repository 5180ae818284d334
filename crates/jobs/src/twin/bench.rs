//! `bench`: a twin's speed beside onnxruntime and PyTorch on the same network, in one alternating run, with
//! the rig's own cost and what the machine can do at most.

use super::export::onnx_graph;
use super::peers::Peers;
pub use super::race::TrainingRace;
use super::race::race;
use crate::{Event, JobError, Watch, rigs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use understudy_core::{Affine3A, ControlSpec, Controls, Random, Vec3};
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::body::{BLOCK, BodyParts, BodyTwin, GroupParts, LayerParts};
use understudy_runtime::dense::{Kernel, Layer};
use understudy_runtime::{Activation, Distances, Player, Pose, Precision, Twin, VertexBuffer};

/// What to time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BenchTwinConfig {
    /// The twin's file.
    pub twin: PathBuf,
    /// Rounds; in each every contestant runs once, in turn.
    pub rounds: usize,
    /// Runs onnxruntime and PyTorch too, from an environment that is made where `peers` says.
    pub peers: Option<PathBuf>,
    /// Races training too: PyTorch's, which needs `peers`.
    pub training: bool,
}

impl Default for BenchTwinConfig {
    fn default() -> Self {
        Self { twin: PathBuf::new(), rounds: 15, peers: None, training: false }
    }
}

/// Milliseconds a pose, medians over the rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Contest {
    /// Ours.
    pub understudy_ms: f64,
    /// The same graph in onnxruntime.
    pub onnxruntime_ms: Option<f64>,
    /// The same networks in PyTorch.
    pub torch_ms: Option<f64>,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchTwinReport {
    /// The rig.
    pub rig: String,
    /// Vertices.
    pub vertices: usize,
    /// Multiply-adds of the networks.
    pub multiply_adds: usize,
    /// The kernel in use.
    pub kernel: String,
    /// One pose at a time, by threads.
    pub threads: BTreeMap<String, Contest>,
    /// Crowds on one thread, by poses; milliseconds a pose.
    pub batch: BTreeMap<String, Contest>,
    /// The rig's own cost, one thread.
    pub rig_ms: Option<f64>,
    /// How fast one thread reads a block of the size of the weights again and again, GB/s: from the cache or the
    /// memory that they fit into.
    pub bandwidth_gb_s: f64,
    /// Bytes of weights a second that one pose reads, as a share of that; one at most.
    pub bandwidth_share: f64,
    /// Fused multiply-adds of one core at most, GFLOP/s (two a multiply-add).
    pub peak_gflops: f64,
    /// What products of matrices in the sizes of the networks, with what follows each sum, reach of it for 256
    /// poses, in 16 bits by the kernel of the hidden layers.
    pub crowd_peak_share: f64,
    /// What the networks reach as a crowd of 256 really runs them: inputs are gathered, the last layers skip what
    /// is zero, and every vertex is carried by its bone and written. Neither the linear base nor seams.
    pub crowd_network_share: f64,
    /// The same with all that a crowd needs: skinning and seams too.
    pub crowd_whole_share: f64,
    /// What 16-bit weights cost against 32 bits, measured when the twin was learned: mean and largest, mm.
    pub half_error_mm: Option<Distances>,
    /// Largest distance between our vertices and onnxruntime's, mm.
    pub onnx_error_mm: Option<f64>,
    /// Steps of training a second beside PyTorch's, where that was asked for.
    pub training: Option<TrainingRace>,
}

/// Whether a twin pays, in one sentence: the original's time beside the twin's, one pose on one thread.
pub fn verdict(rig_ms: Option<f64>, twin_ms: f64) -> String {
    match rig_ms {
        None => "the original rig is not at hand: whether the twin is faster is not known".into(),
        Some(rig) if rig < twin_ms => format!(
            "the original rig is faster: {rig:.3} ms per pose, the twin takes {twin_ms:.3} ms; where the rig itself can run, a \
             twin does not pay"
        ),
        Some(rig) => format!(
            "the original rig takes {rig:.3} ms per pose, the twin {twin_ms:.3} ms: {:.1} times as fast",
            rig / twin_ms
        ),
    }
}

/// The poses of a contest: random ones of the rig where it is at hand, else turned rest poses.
struct Poses {
    bones: Vec<Affine3A>,
    controls: Vec<f32>,
    count: usize,
}

/// Times a twin.
pub fn bench_twin(config: &BenchTwinConfig, watch: &dyn Watch) -> Result<BenchTwinReport, JobError> {
    let Twin::Body(twin) = super::open_twin(&config.twin)? else {
        return Err(JobError::unusable(&config.twin, "is no twin of a body"));
    };
    if config.rounds == 0 {
        return Err(JobError::setting("rounds", "0 rounds measure nothing"));
    }
    if config.training && config.peers.is_none() {
        return Err(JobError::setting("training", "a race needs peers: name their folder too"));
    }
    let rig = rigs::open(&twin.header().rig, &crate::Silent).ok().map(|open| open.rig);
    let rig = rig.filter(|rig| rig.mesh().topology_hash() == twin.header().topology_hash);
    let poses = Poses::draw(&twin, rig.as_deref())?;
    let peers = match &config.peers {
        None => None,
        Some(folder) => Some(Peers::start(
            folder,
            &onnx_graph(&Twin::from(Arc::clone(&twin))),
            &twin.parts(),
            &poses.bones,
            &poses.controls,
            watch,
        )?),
    };
    measure(config, &twin, rig.as_deref(), &poses, peers, watch)
}

const CROWDS: [usize; 2] = [16, 256];

impl Poses {
    fn draw(twin: &BodyTwin, rig: Option<&dyn Rig>) -> Result<Self, JobError> {
        let count = CROWDS[1];
        let (mut bones, mut controls) = (Vec::new(), Vec::new());
        let rest_bones = if rig.is_none() { twin.parts().rest_bones } else { Vec::new() };
        for index in 0..count {
            let mut random = Random::stream(0xbe7c, index as u64);
            match rig {
                Some(rig) => {
                    let specs = rig.specs();
                    let draw =
                        Controls(specs.iter().map(|s| random.truncated_normal(s.low, s.high)).collect());
                    let mut pose = RigPose::default();
                    rig.evaluate(&draw, &mut pose).map_err(JobError::rig(rig.name()))?;
                    bones.extend(pose.global.0);
                    let value = |spec: &ControlSpec| specs.find(&spec.name).map_or(0.0, |c| draw.0[c]);
                    controls.extend(twin.header().inputs.controls.iter().map(value));
                }
                None => {
                    bones.extend_from_slice(&rest_bones);
                    controls.extend(twin.header().inputs.controls.defaults().0);
                }
            }
        }
        Ok(Self { bones, controls, count })
    }

    /// Some of the poses.
    fn some(&self, twin: &BodyTwin, range: Range<usize>) -> Pose<'_> {
        let (joints, extra) = (twin.bone_count(), twin.header().inputs.controls.len());
        Pose::Bones {
            bones: &self.bones[range.start * joints..range.end * joints],
            extras: &self.controls[range.start * extra..range.end * extra],
        }
    }
}

pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Milliseconds that `work` takes, a repetition.
pub(crate) fn time(repetitions: usize, mut work: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    (0..repetitions).for_each(&mut work);
    start.elapsed().as_secs_f64() * 1e3 / repetitions as f64
}

fn measure(
    config: &BenchTwinConfig,
    twin: &Arc<BodyTwin>,
    rig: Option<&dyn Rig>,
    poses: &Poses,
    mut peers: Option<Peers>,
    watch: &dyn Watch,
) -> Result<BenchTwinReport, JobError> {
    let mut players = [1, 2].map(|threads| Twin::from(Arc::clone(twin)).player(threads));
    let mut crowd_player = Twin::from(Arc::clone(twin)).player(1);
    let mut out = VertexBuffer::new(twin.vertex_count() * CROWDS[1]);
    let vertices = twin.vertex_count();
    let mut single = |threads: usize, index: usize, out: &mut [Vec3]| {
        let first = index % poses.count;
        let player: &mut Player = &mut players[threads - 1];
        player
            .pose(poses.some(twin, first..first + 1), &mut out[..vertices])
            .expect("the poses fit the twin");
    };
    let mut ours: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut theirs: BTreeMap<(String, &'static str), Vec<f64>> = BTreeMap::new();
    watch.event(Event::Started { what: "racing", total: config.rounds as u64, unit: "rounds" });
    for round in 0..config.rounds {
        for threads in [1, 2] {
            let key = format!("threads {threads}");
            // Everyone runs in first: caches are another's, and a thread that was asleep may share a core at first.
            time(120, |i| single(threads, i, &mut out));
            ours.entry(key.clone()).or_default().push(time(60, |i| single(threads, i, &mut out)));
            if let Some(peers) = &mut peers {
                for peer in ["onnxruntime", "torch"] {
                    theirs.entry((key.clone(), peer)).or_default().push(peers.time(peer, threads, 1)?);
                }
            }
        }
        for crowd in CROWDS {
            let key = format!("batch {crowd}");
            let mut run = |_| {
                crowd_player
                    .crowd(poses.some(twin, 0..crowd), &mut out[..crowd * vertices])
                    .expect("the poses fit the twin");
            };
            time(1, &mut run);
            let milliseconds = time(2, &mut run);
            ours.entry(key.clone()).or_default().push(milliseconds / crowd as f64);
            if let Some(peers) = &mut peers {
                theirs.entry((key, "torch")).or_default().push(peers.time("torch", 1, crowd)?);
            }
        }
        watch.event(Event::Step { done: round as u64 + 1 });
    }
    watch.event(Event::Finished);
    let contest = |key: String| {
        let other = |peer: &'static str| theirs.get(&(key.clone(), peer)).map(|t| median(t.clone()));
        let understudy_ms = ours.get(&key).map_or(f64::NAN, |t| median(t.clone()));
        Contest { understudy_ms, onnxruntime_ms: other("onnxruntime"), torch_ms: other("torch") }
    };
    let threads: BTreeMap<String, Contest> =
        [1, 2].map(|t| (t.to_string(), contest(format!("threads {t}")))).into();
    let batch: BTreeMap<String, Contest> =
        CROWDS.map(|b| (b.to_string(), contest(format!("batch {b}")))).into();
    let rig_ms = rig.map(|rig| {
        let mut pose = RigPose::default();
        let draw = |index: usize| {
            let mut random = Random::stream(0xbe7c, index as u64);
            Controls(rig.specs().iter().map(|s| random.truncated_normal(s.low, s.high)).collect())
        };
        let controls: Vec<Controls> = (0..20).map(draw).collect();
        let run = |index: usize| rig.evaluate(&controls[index % 20], &mut pose).expect("controls in range");
        time(20, run)
    });
    let reading = twin.network_bytes() as f64 / (threads["1"].understudy_ms * 1e6);
    let bandwidth = at_least(bandwidth_gb_s(twin.network_bytes()), &[reading]);
    let product_gflops = crowd_product_gflops(twin);
    let gflops = |milliseconds: f64| 2.0 * twin.multiply_adds() as f64 / (milliseconds * 1e6);
    let network_gflops = gflops(crowd_network_ms(twin, poses, &mut out)?);
    let whole_gflops = gflops(batch["256"].understudy_ms);
    let peak = at_least(peak_gflops(), &[product_gflops, network_gflops, whole_gflops]);
    let onnx_error_mm = match &mut peers {
        None => None,
        Some(peers) => {
            single(1, 0, &mut out);
            Some(peers.error_mm(&out[..vertices])?)
        }
    };
    let training = match (&config.peers, config.training) {
        (Some(folder), true) => Some(race(twin, folder, config.rounds.min(5), watch)?),
        _ => None,
    };
    Ok(BenchTwinReport {
        rig: twin.header().rig.clone(),
        vertices,
        multiply_adds: twin.multiply_adds(),
        kernel: Kernel::detect().name().into(),
        bandwidth_share: reading / bandwidth,
        rig_ms,
        bandwidth_gb_s: bandwidth,
        peak_gflops: peak,
        crowd_peak_share: product_gflops / peak,
        crowd_network_share: network_gflops / peak,
        crowd_whole_share: whole_gflops / peak,
        threads,
        batch,
        half_error_mm: twin.header().training.half_error_mm,
        onnx_error_mm,
        training,
    })
}

/// The peak is the best of ten short runs, so what is compared with it must be the best of several, too. These are a
/// hundred times as long: more of them find a moment in which nobody else wants the memory.
fn best_of_many(mut run: impl FnMut() -> f64) -> f64 {
    (0..40).map(|_| run()).fold(f64::INFINITY, f64::min)
}

/// Milliseconds a pose of a crowd's networks without the linear base and without seams.
fn crowd_network_ms(twin: &BodyTwin, poses: &Poses, out: &mut [Vec3]) -> Result<f64, JobError> {
    let parts = BodyParts { base: None, seams: None, ..twin.parts() };
    let bare =
        BodyTwin::new(parts, twin.precision()).map_err(|error| JobError::Machine(error.to_string()))?;
    let mut player = Twin::from(bare).player(1);
    let mut run = |_| {
        player.crowd(poses.some(twin, 0..poses.count), out).expect("the poses fit the twin");
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

/// What a machine can do is at least what was seen: a moment in which others were busy must not pass for its limit.
fn at_least(measured: f64, reached: &[f64]) -> f64 {
    reached.iter().copied().fold(measured, f64::max)
}

/// Reads a block of so many bytes again and again on one thread; the best of many rounds.
fn bandwidth_gb_s(bytes: usize) -> f64 {
    const LEAST: usize = 64 << 10;
    let block = vec![1u64; bytes.max(LEAST) / 8];
    // Rounds long enough for the clock.
    let passes = ((32 << 20) / (block.len() * 8)).max(1);
    let round = || {
        let milliseconds = time(passes, |_| {
            black_box(sum_words(black_box(&block)));
        });
        (block.len() * 8) as f64 / (milliseconds * 1e6)
    };
    (0..40).map(|_| round()).fold(0.0, f64::max)
}

/// Adds words up, as many at a time as the machine loads.
fn sum_words(words: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(words: &[u64]) -> u64 {
            sum_in_lanes(words)
        }
        // SAFETY: the line above found the feature that the function is compiled for.
        return unsafe { wide(words) };
    }
    sum_in_lanes(words)
}

#[inline(always)]
fn sum_in_lanes(words: &[u64]) -> u64 {
    let mut sums = [0u64; 32];
    let lines = words.chunks_exact(32);
    let rest: u64 = lines.remainder().iter().sum();
    for line in lines {
        sums.iter_mut().zip(line).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
    }
    sums.iter().fold(rest, |all, sum| all.wrapping_add(*sum))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read() {
        for count in [0, 1, 31, 32, 33, 1000] {
            let words: Vec<u64> = (0..count).collect();
            assert_eq!(sum_words(&words), words.iter().sum::<u64>());
        }
    }

    #[test]
    fn a_faster_original_is_called_so() {
        assert!(verdict(Some(0.5), 1.9).starts_with("the original rig is faster"));
        assert!(verdict(Some(3.0), 0.3).ends_with("10.0 times as fast"));
        assert!(verdict(None, 0.3).contains("not known"));
    }

    #[test]
    fn nothing_exceeds_what_a_machine_can_do() {
        assert_eq!(at_least(10.0, &[10.3, 4.0]), 10.3);
        assert_eq!(at_least(10.0, &[9.0]), 10.0);
        // From a cache a block is read no slower than from memory, but for noise.
        assert!(bandwidth_gb_s(128 << 10) > 0.8 * bandwidth_gb_s(256 << 20));
    }
}
