//! The plain model beside GPy: the same poses, the same start, scaled conjugate gradient of both.

use super::{Corpus, MotionArguments, poses, target};
use crate::console::{Console, print, table};
use crate::environment::Script;
use anyhow::{Result, ensure};
use std::time::Instant;
use understudy_io::npz::NpzWriter;
use understudy_motion::{LatentConfig, LatentSpace, PriorConfig};

const SCRIPT: &str = include_str!("../python/motion.py");
const REQUIREMENTS: &str = include_str!("../python/motion.txt");
const FRAMES: usize = 400;
const DIMENSIONS: usize = 60;
const LATENT: usize = 3;
/// Rounds; in each both learn once.
const ROUNDS: usize = 2;

pub fn run(arguments: &MotionArguments, corpus: &Corpus) -> Result<()> {
    let (outputs, lengths) = poses(corpus, FRAMES, DIMENSIONS)?;
    let d = outputs.first().map_or(0, Vec::len);
    ensure!(outputs.len() == FRAMES && d == DIMENSIONS, "the corpus has {d} dimensions");
    // What ours divides by and starts from.
    let flat: Vec<f64> = outputs.iter().flatten().copied().collect();
    let unit = (flat.iter().map(|v| v * v).sum::<f64>() / flat.len() as f64).sqrt();
    let mut start: Vec<f64> = outputs.iter().flat_map(|row| row[..LATENT].to_vec()).collect();
    let spread = (start.iter().map(|v| v * v).sum::<f64>() / start.len() as f64).sqrt();
    start.iter_mut().for_each(|v| *v /= spread);
    let y: Vec<f32> = flat.iter().map(|v| (v / unit) as f32).collect();
    let x: Vec<f32> = start.iter().map(|v| *v as f32).collect();
    let mut npz = NpzWriter::new();
    npz.f32("y", &[FRAMES, DIMENSIONS], &y).f32("x", &[FRAMES, LATENT], &x);
    let folder = arguments.output.join("peers");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("poses.npz");
    npz.write(&path)?;
    let mut script = Script::start_with(REQUIREMENTS, &folder, "motion.py", SCRIPT, &path, &Console)?;
    ensure!(script.line()? == "ready", "motion.py did not start");
    let plain = PriorConfig { dynamics: 0.0, connectivity: 0.0, ..PriorConfig::default() };
    let config = LatentConfig {
        dimensions: LATENT,
        iterations: arguments.iterations,
        priors: plain,
        ..LatentConfig::default()
    };
    // Ours leaves the constant of the normal distribution out.
    let constant = -0.5 * (FRAMES * DIMENSIONS) as f64 * std::f64::consts::TAU.ln();
    let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
    let (mut own, mut other) = ([0.0; 2], [0.0; 2]);
    let mut reached = f64::INFINITY;
    let mut used = 0;
    for _ in 0..ROUNDS {
        let answer = script.ask(&format!("learn {}", arguments.iterations))?;
        let number = |key: &str| answer[key].as_f64().unwrap_or(f64::NAN);
        theirs = theirs.min(number("seconds"));
        other = [number("before"), number("after")];
        let started = Instant::now();
        let mut when = f64::INFINITY;
        let (_, learned) = LatentSpace::learn(&outputs, &lengths, &config, |_, value| {
            if value + constant >= other[1] {
                when = when.min(started.elapsed().as_secs_f64());
            }
            true
        })?;
        ours = ours.min(started.elapsed().as_secs_f64());
        reached = reached.min(when);
        own = [learned.before + constant, learned.after + constant];
        used = learned.iterations;
    }
    print(&format!(
        "\n{FRAMES} frames of {DIMENSIONS} components, {LATENT} latent dimensions, no priors, best of {ROUNDS}; at most {} iterations, of which ours used {used}",
        arguments.iterations
    ));
    let line = |name: &str, [before, after]: [f64; 2], seconds: f64| {
        vec![
            name.to_owned(),
            format!("{before:.0}"),
            format!("{after:.0}"),
            format!("{seconds:.2}"),
            format!("{:.3}", seconds / theirs),
        ]
    };
    let lines = [line("GPy 1.13.2", other, theirs), line("ours", own, ours)];
    print(&table(&["", "log p before", "after", "s", "of GPy's time"], &lines));
    print(&format!(
        "ours is as likely as GPy's end after {reached:.2} s: {:.3} of its time",
        reached / theirs
    ));
    target("log p at least GPy's", own[1] >= other[1]);
    target("in a fifth of its time", reached <= 0.2 * theirs);
    Ok(())
}
