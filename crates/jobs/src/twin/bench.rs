//! `bench`: how long a twin of any kind takes per pose on this machine, beside the rig that it was learned from.
//! Races against other programs are in `crates/bench`.

use super::bandwidth::{at_least, bandwidth_gb_s};
use super::data::{live_rig, named_rig};
use super::learn::recorded_rig_ms;
use super::open_twin;
use crate::{Event, JobError, Watch};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_core::{Affine3A, ControlSpec, ControlSpecs, Controls, Random, Skeleton, Vec3};
use understudy_rigs::sampling::{Method, SamplingConfig};
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::dense::Kernel;
use understudy_runtime::{Distances, Player, Pose, Twin, VertexBuffer};

/// What to time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BenchConfig {
    /// The twin's file.
    pub twin: PathBuf,
    /// Rounds, of which the median counts.
    pub rounds: usize,
    /// The original, where it is not where the twin says.
    pub rig: Option<String>,
}

impl Default for BenchConfig {
    fn default() -> Self {
        Self { twin: PathBuf::new(), rounds: 15, rig: None }
    }
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchReport {
    /// The rig.
    pub rig: String,
    /// `body` or `face`.
    pub method: String,
    /// Vertices.
    pub vertices: usize,
    /// Multiply-adds of the networks.
    pub multiply_adds: usize,
    /// The kernel in use.
    pub kernel: String,
    /// One pose at a time, by threads, ms.
    pub threads: BTreeMap<String, f64>,
    /// Crowds on one thread, by poses, ms per pose.
    pub crowd: BTreeMap<String, f64>,
    /// One pose on one thread by controls alone, where a twin with bones has a mechanism, and that alone, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_controls: Option<ByControls>,
    /// Vertex normals, on top of a pose, ms.
    pub normals_ms: f64,
    /// How fast one thread reads a block of the size of the weights again and again, GB/s: from the cache or the
    /// memory that they fit into.
    pub bandwidth_gb_s: f64,
    /// Bytes of weights per second that one pose reads, as a share of that; one at most.
    pub bandwidth_share: f64,
    /// The original rig, one pose on one thread, ms; where it is not at hand, what it took when it was sampled, if that
    /// is known.
    pub rig_ms: Option<f64>,
    /// Whether the original was timed just now.
    pub rig_timed: bool,
    /// Whether the twin pays, in a sentence.
    pub verdict: String,
    /// What 16-bit weights cost against 32 bits, measured when the twin was learned.
    pub half_error_mm: Option<Distances>,
}

/// A twin with bones that controls alone pose.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ByControls {
    /// The whole pose.
    pub pose_ms: f64,
    /// Controls → bones alone.
    pub mechanism_ms: f64,
}

/// Sizes of the crowds.
pub const CROWDS: [usize; 2] = [16, 256];

/// Times a twin.
pub fn bench_twin(config: &BenchConfig, watch: &dyn Watch) -> Result<BenchReport, JobError> {
    let twin = open_twin(&config.twin)?;
    if config.rounds == 0 {
        return Err(JobError::setting("rounds", "0 rounds measure nothing; 1 or more are wanted"));
    }
    let rig = match &config.rig {
        Some(name) => Some(named_original(&twin, name, watch)?),
        None => original(&twin, &config.twin),
    };
    let poses = BenchPoses::draw(&twin, rig.as_deref(), CROWDS[1])?;
    let posing = twin.mechanism().map(|mechanism| poses.posing(mechanism.specs()));
    let vertices = twin.vertex_count();
    let mut players = [twin.player(1), twin.player(2)];
    let mut out = VertexBuffer::new(vertices * CROWDS[1]);
    let mut normals = vec![Vec3::ZERO; vertices];
    let mut times: BTreeMap<(&str, usize), Vec<f64>> = BTreeMap::new();
    watch.event(Event::Started { what: "timing", total: config.rounds as u64, unit: "rounds" });
    for round in 0..config.rounds {
        for player in &mut players {
            let threads = player.threads();
            let mut run = |index: usize| poses.play(player, index, &mut out[..vertices]);
            times.entry(("threads", threads)).or_default().push(warm_time(60, &mut run));
        }
        let [player, _] = &mut players;
        if let Some(values) = &posing {
            let width = values.len() / BenchPoses::POSED;
            let of = |index: usize| &values[index % BenchPoses::POSED * width..][..width];
            let whole = warm_time(60, |index| {
                player
                    .pose(Pose::Controls(of(index)), &mut out[..vertices])
                    .expect("the twin's own controls");
            });
            times.entry(("by controls", 0)).or_default().push(whole);
            let bones = warm_time(60, |index| {
                player.pose_bones(of(index)).expect("the twin's own controls");
            });
            times.entry(("mechanism", 0)).or_default().push(bones);
        }
        poses.play(player, 0, &mut out[..vertices]);
        let shade = |_| player.normals(&out[..vertices], &mut normals).expect("arrays fit");
        times.entry(("normals", 1)).or_default().push(time(10, shade));
        for crowd in CROWDS {
            let mut run = |_| {
                player
                    .crowd(poses.some(0..crowd), &mut out[..crowd * vertices])
                    .expect("the poses fit the twin");
            };
            times.entry(("crowd", crowd)).or_default().push(warm_time(2, &mut run) / crowd as f64);
        }
        watch.event(Event::Step { done: round as u64 + 1 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    watch.event(Event::Finished);
    let of = |kind: &str| -> BTreeMap<String, f64> {
        let own = times.iter().filter(|((name, _), _)| *name == kind);
        own.map(|((_, number), times)| (number.to_string(), median(times.clone()))).collect()
    };
    let rig_timed = rig.is_some();
    let rig_ms = rig.as_deref().map(|rig| rig_ms(rig, &poses)).or_else(|| recorded_rig_ms(&twin));
    let threads = of("threads");
    let reading = twin.network_bytes() as f64 / (threads["1"] * 1e6);
    let bandwidth = at_least(bandwidth_gb_s(twin.network_bytes()), &[reading]);
    Ok(BenchReport {
        rig: twin.header().rig.clone(),
        method: twin.method().into(),
        vertices,
        multiply_adds: twin.multiply_adds(),
        kernel: Kernel::detect().name().into(),
        verdict: verdict(rig_ms, threads["1"]),
        threads,
        crowd: of("crowd"),
        by_controls: posing
            .as_ref()
            .map(|_| ByControls { pose_ms: of("by controls")["0"], mechanism_ms: of("mechanism")["0"] }),
        normals_ms: of("normals")["1"],
        bandwidth_gb_s: bandwidth,
        bandwidth_share: reading / bandwidth,
        rig_ms,
        rig_timed,
        half_error_mm: twin.header().training.half_error_mm,
    })
}

/// The rig that a twin was learned from, where it is at hand and still has the twin's bones.
pub fn original(twin: &Twin, path: &Path) -> Option<Box<dyn Rig>> {
    live_rig(twin, path).filter(|rig| has_bones_of(twin, rig.as_ref()))
}

/// The rig that a user names; an error where it is not the twin's.
fn named_original(twin: &Twin, name: &str, watch: &dyn Watch) -> Result<Box<dyn Rig>, JobError> {
    let rig = named_rig(twin, name, watch)?;
    match has_bones_of(twin, rig.as_ref()) {
        true => Ok(rig),
        false => Err(JobError::unusable(name, "has other bones than the twin")),
    }
}

fn has_bones_of(twin: &Twin, rig: &dyn Rig) -> bool {
    let bones = &twin.header().inputs.bones;
    let wanted = bones.iter().map(|bone| bone.name.as_str());
    let same = |own: &Skeleton| own.bones().iter().map(|bone| bone.name.as_str()).eq(wanted);
    bones.is_empty() || rig.skeleton().is_some_and(same)
}

/// Whether a twin pays, in one sentence: the original's time beside the twin's, one pose on one thread.
pub fn verdict(rig_ms: Option<f64>, twin_ms: f64) -> String {
    match rig_ms {
        None => "the original rig is not at hand: whether the twin is faster is not known".into(),
        Some(rig) if rig < twin_ms => format!(
            "the original rig is faster: {rig:.3} ms per pose, the twin takes {twin_ms:.3} ms; where the rig itself \
             can run, a twin does not pay"
        ),
        Some(rig) => format!(
            "the original rig takes {rig:.3} ms per pose, the twin {twin_ms:.3} ms: {:.1} times as fast",
            rig / twin_ms
        ),
    }
}

/// Poses to time a twin with: of the rig where it is at hand (from its clips times noise for a twin without bones, as
/// faces are posed), else random controls or the rest pose.
pub struct BenchPoses {
    /// World transforms, `[N · J]`.
    pub bones: Vec<Affine3A>,
    /// Values of the twin's controls, `[N · C]`.
    pub controls: Vec<f32>,
    /// Values of the rig's controls, `[N]`; empty without the rig.
    pub rig_controls: Vec<Controls>,
    /// What the rig makes of them, `[N · V]`; empty without the rig.
    pub vertices: Vec<Vec3>,
    /// How many.
    pub count: usize,
    joints: usize,
    width: usize,
}

impl BenchPoses {
    /// Draws so many.
    pub fn draw(twin: &Twin, rig: Option<&dyn Rig>, count: usize) -> Result<Self, JobError> {
        let inputs = &twin.header().inputs;
        let (joints, width) = (inputs.bones.len(), inputs.controls.len());
        let mut out = Self {
            bones: Vec::new(),
            controls: Vec::new(),
            rig_controls: Vec::new(),
            vertices: Vec::new(),
            count,
            joints,
            width,
        };
        let mixed = |rig: &dyn Rig| {
            let config = SamplingConfig { method: Method::Noise, ..SamplingConfig::default() };
            config.build(rig.specs(), rig.clips()).ok()
        };
        let clips = rig.filter(|_| joints == 0).and_then(mixed);
        let rest = twin.rest_bones();
        for index in 0..count {
            let mut random = Random::stream(0xbe7c, index as u64);
            let mut draw = |specs: &mut dyn Iterator<Item = &ControlSpec>| {
                Controls(specs.map(|spec| random.truncated_normal(spec.low, spec.high)).collect())
            };
            let Some(rig) = rig else {
                out.bones.extend_from_slice(rest);
                out.controls.extend(match joints {
                    0 => draw(&mut inputs.controls.iter()).0,
                    _ => inputs.controls.defaults().0,
                });
                continue;
            };
            let controls = match &clips {
                Some(source) => source.pose(index as u64),
                None => draw(&mut rig.specs().iter()),
            };
            let mut pose = RigPose::default();
            rig.evaluate(&controls, &mut pose).map_err(JobError::rig(rig.name()))?;
            if joints > 0 {
                out.bones.extend(pose.global.0);
            }
            let value =
                |spec: &ControlSpec| rig.specs().find(&spec.name).map_or(spec.default, |c| controls.0[c]);
            out.controls.extend(inputs.controls.iter().map(value));
            out.vertices.extend(pose.vertices);
            out.rig_controls.push(controls);
        }
        Ok(out)
    }

    /// Poses that a mechanism is timed with.
    const POSED: usize = 64;

    /// Values of a mechanism's controls for some poses, `[64 · C]`: the rig's where it is at hand, else random.
    fn posing(&self, specs: &ControlSpecs) -> Vec<f32> {
        let pose = |index: usize| match self.rig_controls.get(index) {
            Some(controls) if controls.0.len() == specs.len() => controls.0.clone(),
            _ => {
                let mut random = Random::stream(0xbe7c, index as u64);
                specs.iter().map(|spec| random.truncated_normal(spec.low, spec.high)).collect()
            }
        };
        (0..Self::POSED).flat_map(pose).collect()
    }

    /// Some of them.
    pub fn some(&self, range: Range<usize>) -> Pose<'_> {
        let controls = &self.controls[range.start * self.width..range.end * self.width];
        match self.joints {
            0 => Pose::Controls(controls),
            joints => {
                Pose::Bones { bones: &self.bones[range.start * joints..range.end * joints], extras: controls }
            }
        }
    }

    /// Plays one, the first again after the last.
    ///
    /// # Panics
    /// When the player has another twin.
    pub fn play(&self, player: &mut Player, index: usize, out: &mut [Vec3]) {
        let index = index % self.count;
        player.pose(self.some(index..index + 1), out).expect("the poses fit the twin");
    }
}

fn rig_ms(rig: &dyn Rig, poses: &BenchPoses) -> f64 {
    let mut pose = RigPose::default();
    let mut run = |index: usize| {
        let controls = &poses.rig_controls[index % poses.rig_controls.len()];
        rig.evaluate(controls, &mut pose).expect("the rig took these controls before");
    };
    time(5, &mut run);
    median((0..3).map(|_| time(20, &mut run)).collect())
}

/// The middle of some numbers.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Milliseconds that `work` takes per repetition, after a warm-up: caches are another's, and a thread that was asleep
/// may share a core at first. As many repetitions as fit into a moment, `most` at most.
fn warm_time(most: usize, mut work: impl FnMut(usize)) -> f64 {
    const MOMENT_MS: f64 = 20.0;
    let first = time(1, &mut work);
    let repetitions = ((MOMENT_MS / first.max(1e-6)) as usize).clamp(1, most);
    if first < MOMENT_MS {
        time(2 * repetitions, &mut work);
    }
    time(repetitions, work)
}

/// Milliseconds that `work` takes per repetition.
pub fn time(repetitions: usize, mut work: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    (0..repetitions).for_each(&mut work);
    start.elapsed().as_secs_f64() * 1e3 / repetitions as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_timed_the_same_way() {
        for (kind, file) in [
            ("body", include_bytes!("../../../runtime/tests/golden/body-v3.twin").as_slice()),
            ("face", include_bytes!("../../../runtime/tests/golden/face-v3.twin").as_slice()),
        ] {
            let folder = tempfile::tempdir().expect("a scratch folder");
            let path = folder.path().join("golden.twin");
            std::fs::write(&path, file).expect("writable");
            let timed = |rounds: usize| {
                bench_twin(&BenchConfig { twin: path.clone(), rounds, rig: None }, &crate::Silent)
            };
            let report = timed(1).expect("it is timed");
            assert_eq!((report.method.as_str(), report.rig_ms), (kind, None));
            assert!(
                report.threads["1"] > 0.0 && report.threads["2"] > 0.0 && report.normals_ms > 0.0,
                "{report:?}"
            );
            assert!(report.crowd["16"] > 0.0 && report.crowd["256"] > 0.0, "{report:?}");
            assert!(report.bandwidth_share > 0.0 && report.bandwidth_share <= 1.0, "{report:?}");
            assert!(timed(0).is_err(), "no rounds measure nothing");
        }
    }

    #[test]
    fn a_faster_original_is_called_so() {
        assert!(verdict(Some(0.5), 1.9).starts_with("the original rig is faster"));
        assert!(verdict(Some(3.0), 0.3).ends_with("10.0 times as fast"));
        assert!(verdict(None, 0.3).contains("not known"));
    }
}
