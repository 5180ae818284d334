//! Time of one frame and of a batch on a rig of the paper's size, beside the direct form and NumPy, in
//! alternating rounds of one run; medians count.

use super::BenchInverseConfig;
use super::numpy::NumPy;
use serde::Serialize;
use std::time::Instant;
use understudy_core::Vec3;
use understudy_jobs::invert::add_noise;
use understudy_jobs::{Event, JobError, Watch, threads};
use understudy_solve::inverse_rig::direct::DirectRig;
use understudy_solve::inverse_rig::take::TakeSettings;
use understudy_solve::inverse_rig::{InverseError, InverseRig, InverseSettings};
use understudy_testkit::synthetic::{SyntheticRig, random_rig, random_take};

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Speed {
    /// Vertices, shapes, correctives of two, three and four shapes.
    pub size: [usize; 5],
    /// Mean share of the vertices that a shape moves.
    pub support: f64,
    /// Preparation, ms.
    pub prepare_ms: f64,
    /// One frame, one thread, ms.
    pub single_ms: f64,
    /// A frame of a batch, all threads, ms.
    pub batch_ms: f64,
    /// The same as processor time of all threads together: what a busy machine does not change.
    pub batch_cpu_ms: Option<f64>,
    /// Frames of the batch.
    pub batch_frames: usize,
    /// Threads of the batch.
    pub threads: usize,
    /// One frame in the direct form in this program, ms.
    pub direct_ms: f64,
    /// One frame of the paper's form in NumPy, ms; `None` where there is no Python.
    pub numpy_ms: Option<f64>,
    /// One frame in NumPy with the residual kept up to date, ms.
    pub numpy_residual_ms: Option<f64>,
    /// One frame in NumPy with our table of inner products, ms; its preparation not counted, as ours is not.
    pub numpy_gram_ms: Option<f64>,
    /// Largest difference of any weight to the direct form.
    pub difference_to_direct: f64,
    /// And to NumPy.
    pub difference_to_numpy: Option<f64>,
    /// Why NumPy is missing.
    pub numpy_problem: Option<String>,
}

impl Speed {
    /// How many times faster than a time a single frame is.
    pub fn times(&self, other_ms: f64) -> f64 {
        other_ms / self.single_ms
    }
}

/// The α of [`InverseSettings::paper`], cm².
const PAPER_ALPHA: f64 = 0.5;

/// Measures.
pub(super) fn measure(config: &BenchInverseConfig, watch: &dyn Watch) -> Result<Speed, JobError> {
    let size = SyntheticRig::paper();
    let rig = random_rig(&size);
    let failed = |error: InverseError| JobError::Machine(error.to_string());
    let take = random_take(size.shapes, config.batch_frames, 5);
    let mut clean = vec![vec![Vec3::ZERO; size.vertices]; take.len()];
    take.iter().zip(&mut clean).for_each(|(weights, mesh)| rig.evaluate(weights, mesh));
    let targets = add_noise(&clean, config.noise_cm, 1);
    drop(clean);
    let pool = threads::pool(config.threads)?;
    let settings = InverseSettings::paper();
    let middle = targets.len() / 2;

    watch.event(Event::Started { what: "timing", total: config.rounds as u64, unit: "rounds" });
    let sample = vec![targets[middle].clone()];
    let (mut numpy, numpy_problem) = match config.numpy {
        true => match NumPy::start(&config.folder, &rig, &sample, PAPER_ALPHA, settings.passes, watch) {
            Ok(numpy) => (Some(numpy), None),
            Err(error) => (None, Some(error.to_string())),
        },
        false => (None, Some("left out".into())),
    };
    let direct = DirectRig::new(&rig);
    let mut times = Times::default();
    let (mut from_direct, mut from_numpy) = (0.0f64, None::<f64>);
    for round in 0..config.rounds {
        let start = Instant::now();
        let inverse = pool.install(|| InverseRig::prepare(&rig)).map_err(failed)?;
        times.prepare.push(milliseconds(start));
        let mut solver = inverse.solver(&settings).map_err(failed)?;
        for target in targets.iter().step_by(targets.len().div_ceil(60)) {
            let start = Instant::now();
            solver.solve(target).map_err(failed)?;
            times.single.push(milliseconds(start));
        }
        let (start, before) = (Instant::now(), processor_ms());
        let solved = pool.install(|| inverse.solve_take(&targets, &settings, &TakeSettings::default()));
        let ours = solved.map_err(failed)?.weights.swap_remove(middle);
        times.batch.push(milliseconds(start) / targets.len() as f64);
        if let Some((before, after)) = before.zip(processor_ms()) {
            times.processor.push((after - before) / targets.len() as f64);
        }
        let start = Instant::now();
        let slow = direct.solve(&targets[middle], &settings, |_| ());
        times.direct.push(milliseconds(start));
        from_direct = from_direct.max(difference(&ours, &slow));
        if let Some(numpy) = &mut numpy {
            let answer = numpy.ask("direct", 0)?;
            times.numpy.push(1e3 * answer.seconds);
            from_numpy = Some(from_numpy.unwrap_or(0.0).max(difference(&ours, &answer.weights)));
            for (form, times) in [("residual", &mut times.residual), ("gram", &mut times.gram)] {
                let answer = numpy.ask(form, 0)?;
                times.push(1e3 * answer.seconds);
                from_numpy = from_numpy.map(|most| most.max(difference(&ours, &answer.weights)));
            }
        }
        watch.event(Event::Step { done: round as u64 + 1 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    watch.event(Event::Finished);
    let moved: usize = rig.shapes().iter().map(|shape| shape.deltas.len()).sum();
    Ok(Speed {
        size: [size.vertices, size.shapes, size.pairs, size.triples, size.quadruples],
        support: moved as f64 / (size.shapes * size.vertices) as f64,
        prepare_ms: median(&mut times.prepare).unwrap_or(0.0),
        single_ms: median(&mut times.single).unwrap_or(0.0),
        batch_ms: median(&mut times.batch).unwrap_or(0.0),
        batch_cpu_ms: median(&mut times.processor),
        batch_frames: targets.len(),
        threads: config.threads,
        direct_ms: median(&mut times.direct).unwrap_or(0.0),
        numpy_ms: median(&mut times.numpy),
        numpy_residual_ms: median(&mut times.residual),
        numpy_gram_ms: median(&mut times.gram),
        difference_to_direct: from_direct,
        difference_to_numpy: from_numpy,
        numpy_problem,
    })
}

#[derive(Default)]
struct Times {
    prepare: Vec<f64>,
    single: Vec<f64>,
    batch: Vec<f64>,
    processor: Vec<f64>,
    direct: Vec<f64>,
    numpy: Vec<f64>,
    residual: Vec<f64>,
    gram: Vec<f64>,
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Processor time of all threads of this process, where the system says.
pub(super) fn processor_ms() -> Option<f64> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let time = |task: std::io::Result<std::fs::DirEntry>| -> Option<f64> {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    Some(tasks.map(time).collect::<Option<Vec<f64>>>()?.iter().sum::<f64>() * 1e-6)
}
