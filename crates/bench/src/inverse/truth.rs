//! Takes whose weights are known, solved from their meshes without noise: how near do the weights come?

use super::BenchInverseConfig;
use super::speed::processor_ms;
use serde::Serialize;
use std::path::Path;
use std::time::Instant;
use understudy_core::{BlendshapeRig, Shape, SparseDeltas, Vec3};
use understudy_io::npz::NpzReader;
use understudy_io::{Dim, ReadError};
use understudy_jobs::{Event, JobError, Watch, rigs};
use understudy_rigs::Rig;
use understudy_solve::inverse_rig::take::TakeSettings;
use understudy_solve::inverse_rig::{Alpha, InverseError, InverseRig, InverseSettings, Method, Order, Stop};
use understudy_testkit::synthetic::{SyntheticRig, random_rig};

/// One known take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TruthRun {
    /// Rig and take.
    pub name: String,
    /// Frames solved.
    pub frames: usize,
    /// Shapes.
    pub shapes: usize,
    /// Correctives.
    pub correctives: usize,
    /// With which settings.
    pub way: String,
    /// Mean number of passes.
    pub passes: f64,
    /// Frames that ended because nothing moved any more.
    pub converged: usize,
    /// Mean absolute error of the weights.
    pub mean_error: f64,
    /// 99th percentile of it.
    pub p99_error: f64,
    /// Mesh error, cm.
    pub rms_cm: f64,
    /// Processor time of all threads, ms per frame, which a busy machine hardly changes; the clock's time
    /// where the system does not say.
    pub ms_per_frame: f64,
}

/// All takes that can be found.
pub(super) fn measure(config: &BenchInverseConfig, watch: &dyn Watch) -> Result<Vec<TruthRun>, JobError> {
    let mut runs = Vec::new();
    watch.event(Event::Started { what: "recovering known weights", total: 3, unit: "takes" });
    match rigs::data_folder().map(|folder| folder.join("compskin")).filter(|folder| folder.is_dir()) {
        Some(folder) => {
            let take = animation(&folder, config.truth_frames)?;
            let aura = aura(&folder)?;
            runs.extend(each("Aura's own 72 shapes, her test take", &aura, &take)?);
            watch.event(Event::Step { done: 1 });
            runs.extend(each("quartic rig of Aura's size, her test take", &of_auras_size(&aura), &take)?);
        }
        None => watch.event(Event::Warning { message: "no compskin data: Aura's take is left out" }),
    }
    watch.event(Event::Step { done: 2 });
    let mira = rigs::open("mira", watch)?.rig;
    let take = clips(mira.as_ref(), config.truth_frames)?;
    let shapes = mira.blendshapes().ok_or_else(|| JobError::unusable("mira", "has no blendshapes"))?;
    runs.extend(each("Mira's blendshape layer, her clips", shapes, &take)?);
    watch.event(Event::Finished);
    Ok(runs)
}

/// A rig with correctives of up to four shapes that has Aura's number of vertices and shapes.
pub(super) fn of_auras_size(aura: &BlendshapeRig) -> BlendshapeRig {
    random_rig(&SyntheticRig {
        vertices: aura.neutral().len(),
        shapes: 72,
        pairs: 100,
        triples: 44,
        quadruples: 4,
        ..SyntheticRig::paper()
    })
}

/// With the paper's five passes, with the defaults, and with what each part of the defaults is worth: without it.
fn each(name: &str, rig: &BlendshapeRig, take: &[Vec<f32>]) -> Result<Vec<TruthRun>, JobError> {
    let paper = InverseSettings { alpha: Alpha::ZERO, ..InverseSettings::paper() };
    let defaults = InverseSettings::default();
    let usual = InverseSettings::default;
    let runs = [
        ("the paper's five passes, α = 0", paper),
        ("defaults", defaults),
        ("defaults, α = 0", InverseSettings { alpha: Alpha::ZERO, ..usual() }),
        ("defaults, no Newton steps", InverseSettings { newton: false, ..usual() }),
        ("defaults, five passes", InverseSettings { passes: 5, ..usual() }),
        ("defaults, correctives left out", InverseSettings { method: Method::Linear, ..usual() }),
        ("defaults, increasing order", InverseSettings { order: Order::Increasing, ..usual() }),
    ];
    runs.into_iter().map(|(way, settings)| run(name, rig, take, way, &settings)).collect()
}

fn run(
    name: &str,
    rig: &BlendshapeRig,
    take: &[Vec<f32>],
    way: &str,
    settings: &InverseSettings,
) -> Result<TruthRun, JobError> {
    let failed = |error: InverseError| JobError::unusable(name, error);
    let inverse = InverseRig::prepare(rig).map_err(failed)?;
    let mut targets = vec![vec![Vec3::ZERO; rig.neutral().len()]; take.len()];
    take.iter().zip(&mut targets).for_each(|(weights, mesh)| rig.evaluate(weights, mesh));
    let (start, before) = (Instant::now(), processor_ms());
    let solved = inverse.solve_take(&targets, settings, &TakeSettings::default()).map_err(failed)?;
    let clock = start.elapsed().as_secs_f64() * 1e3;
    let spent = before.zip(processor_ms()).map_or(clock, |(before, after)| after - before);
    let ms_per_frame = spent / take.len().max(1) as f64;
    let pairs = solved.weights.iter().flatten().zip(take.iter().flatten());
    let mut errors: Vec<f64> = pairs.map(|(found, truth)| (found - f64::from(*truth)).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let count = errors.len().max(1);
    Ok(TruthRun {
        name: name.into(),
        frames: take.len(),
        shapes: rig.shapes().len(),
        correctives: rig.correctives().len(),
        way: way.into(),
        passes: solved.reports.iter().map(|report| report.passes as f64).sum::<f64>()
            / take.len().max(1) as f64,
        converged: solved.reports.iter().filter(|report| report.stop == Stop::Converged).count(),
        mean_error: errors.iter().sum::<f64>() / count as f64,
        p99_error: errors.get(count * 99 / 100).copied().unwrap_or(0.0),
        rms_cm: solved.reports.iter().map(|report| report.rms_cm).sum::<f64>() / take.len().max(1) as f64,
        ms_per_frame,
    })
}

/// The 72 base controls of the take, brought into the box, frames spread through it.
pub(crate) fn animation(folder: &Path, frames: usize) -> Result<Vec<Vec<f32>>, JobError> {
    let path = folder.join("test_anim.npz");
    let array = NpzReader::read(&path)?.f32("weights", &[Dim::Any("frames"), Dim::Any("shapes")]);
    let array = array.map_err(ReadError::content(&path))?;
    if array.shape[1] < 72 {
        return Err(JobError::unusable(path, "has fewer than 72 columns"));
    }
    let step = array.shape[0].div_ceil(frames.max(1)).max(1);
    let rows = array.data.chunks_exact(array.shape[1]).step_by(step);
    Ok(rows.map(|row| row[..72].iter().map(|w| w.clamp(0.0, 1.0)).collect()).collect())
}

/// The first 72 shapes of the face 'Aura': bone transforms `[3·s, 4·bones]` blended by skin weights, which
/// is linear in the shape's weight.
pub(crate) fn aura(folder: &Path) -> Result<BlendshapeRig, JobError> {
    let path = folder.join("aura.npz");
    let npz = NpzReader::read(&path)?;
    let content = || ReadError::content(&path);
    let rest = npz.f32("rest", &[Dim::Any("n"), Dim::Exactly(3)]).map_err(content())?;
    let n = rest.shape[0];
    let skin = npz.f32("weights", &[Dim::Exactly(n), Dim::Any("bones")]).map_err(content())?;
    let bones = skin.shape[1];
    let motion = npz.f32("shapeXform", &[Dim::Any("3·shapes"), Dim::Exactly(4 * bones)]).map_err(content())?;
    let neutral: Vec<Vec3> = rest.data.chunks_exact(3).map(|v| Vec3::new(v[0], v[1], v[2])).collect();
    let delta = |shape: usize, vertex: usize| {
        let at = neutral[vertex].extend(1.0).to_array();
        let axis = |axis: usize| -> f32 {
            let row = &motion.data[(3 * shape + axis) * 4 * bones..][..4 * bones];
            let bone = |b: usize| {
                let moved: f32 = row[4 * b..4 * b + 4].iter().zip(at).map(|(m, x)| m * x).sum();
                skin.data[vertex * bones + b] * moved
            };
            (0..bones).map(bone).sum()
        };
        Vec3::new(axis(0), axis(1), axis(2))
    };
    let shape = |shape: usize| {
        let dense: Vec<Vec3> = (0..n).map(|vertex| delta(shape, vertex)).collect();
        Shape { name: format!("control_{shape:02}"), deltas: SparseDeltas::from_dense(&dense, 1e-5) }
    };
    let shapes = (0..72.min(motion.shape[0] / 3)).map(shape).collect();
    BlendshapeRig::new(neutral.clone(), shapes, Vec::new()).map_err(|error| JobError::unusable(&path, error))
}

/// The shapes' weights in all clips of a rig that are for training, one after the other, at most so many frames.
pub(super) fn clips(rig: &dyn Rig, frames: usize) -> Result<Vec<Vec<f32>>, JobError> {
    let shapes = rig.blendshapes().ok_or_else(|| JobError::unusable(rig.name(), "has no blendshapes"))?;
    let control = |shape: &Shape| rig.specs().find(&shape.name);
    let controls: Vec<Option<usize>> = shapes.shapes().iter().map(control).collect();
    let mut take: Vec<Vec<f32>> = Vec::new();
    for clip in rig.clips().iter().filter(|clip| clip.is_for_training()) {
        let sampled =
            clip.sample(rig.specs(), 30.0).map_err(|error| JobError::unusable(rig.name(), error))?;
        for frame in &sampled.frames {
            let weight =
                |control: &Option<usize>| control.map_or(0.0, |control| frame.0[control].clamp(0.0, 1.0));
            take.push(controls.iter().map(weight).collect());
        }
    }
    let step = take.len().div_ceil(frames.max(1)).max(1);
    Ok(take.into_iter().step_by(step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_jobs::Silent;
    use understudy_testkit::shared_data;

    fn check(runs: &[TruthRun], most: f64) {
        let [paper, defaults, ..] = runs else { panic!("two ways or more") };
        assert_eq!((defaults.way.as_str(), defaults.converged), ("defaults", defaults.frames));
        assert!(defaults.mean_error <= most && paper.mean_error > 10.0 * most.min(1e-3), "{runs:?}");
    }

    #[test]
    fn defaults_recover_the_weights_of_a_real_take() {
        let Some(folder) = shared_data().map(|data| data.join("compskin")) else { return };
        let take = animation(&folder, 40).expect("a take");
        check(&each("aura", &aura(&folder).expect("a rig"), &take).expect("it solves"), 0.0005);
    }

    #[test]
    fn defaults_recover_the_weights_of_dependent_shapes() {
        let mira = rigs::open("mira", &Silent).expect("she is embedded").rig;
        let take = clips(mira.as_ref(), 30).expect("she has clips");
        let shapes = mira.blendshapes().expect("she has shapes");
        check(&each("mira", shapes, &take).expect("it solves"), 0.001);
    }
}
