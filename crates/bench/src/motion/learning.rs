//! How long learning takes by size, what the priors do, and what each step is worth through the rig.

use super::{Corpus, MotionArguments, poses};
use crate::console::{Console, print, table};
use anyhow::Result;
use std::time::Instant;
use understudy_jobs::motion::{LabelSpec, LearnMotionConfig, learn};
use understudy_motion::{LatentConfig, LatentSpace, PriorConfig};

/// Both priors, whatever the default is.
fn both() -> PriorConfig {
    let own = PriorConfig::default();
    PriorConfig { connectivity: if own.connectivity > 0.0 { own.connectivity } else { 1000.0 }, ..own }
}

pub fn sizes(arguments: &MotionArguments, corpus: &Corpus) -> Result<()> {
    let mut rows = Vec::new();
    for frames in [400, 800, 2000, 5000] {
        let (outputs, lengths) = poses(corpus, frames, 40);
        let config =
            LatentConfig { iterations: arguments.iterations, priors: both(), ..LatentConfig::default() };
        let started = Instant::now();
        let (space, learned) = LatentSpace::learn(&outputs, &lengths, &config, |_, _| true)?;
        let seconds = started.elapsed().as_secs_f64();
        let miss = |(frame, output): (usize, &Vec<f64>)| -> f64 {
            let mean = space.mean(space.point(frame));
            mean.iter().zip(output).map(|(a, b)| (a - b) * (a - b)).sum()
        };
        let left: f64 = outputs.iter().enumerate().step_by(7).map(miss).sum();
        let whole: f64 = outputs.iter().step_by(7).flatten().map(|v| v * v).sum();
        rows.push(vec![
            frames.to_string(),
            if space.inducing().is_empty() { "all".into() } else { (space.inducing().len() / 3).to_string() },
            learned.iterations.to_string(),
            format!("{seconds:.1}"),
            format!("{:.2}", 100.0 * left / whole),
        ]);
    }
    print("\nboth priors, 40 components, 3 latent dimensions");
    print(&table(&["frames", "inducing points", "iterations", "s", "% of the variance left"], &rows));
    Ok(())
}

pub fn priors(arguments: &MotionArguments, corpus: &Corpus) -> Result<()> {
    let mut rows = Vec::new();
    for label in &corpus.labels {
        let one = Corpus {
            name: corpus.name.clone(),
            rig: understudy_jobs::rigs::open(&corpus.name, &Console)?.rig,
            labels: vec![label.clone()],
        };
        let (outputs, lengths) = plain_poses(&one);
        let mut row = vec![label.label.clone(), outputs.len().to_string()];
        let none = PriorConfig { dynamics: 0.0, connectivity: 0.0, ..both() };
        let variants = [
            none,
            PriorConfig { connectivity: 0.0, ..both() },
            PriorConfig { dynamics: 0.0, ..both() },
            both(),
        ];
        for priors in variants {
            let config = LatentConfig { iterations: arguments.iterations, priors, ..LatentConfig::default() };
            let (space, _) = LatentSpace::learn(&outputs, &lengths, &config, |_, _| true)?;
            let kin = space.kinship(&outputs, &lengths);
            row.push(format!(
                "{:.3} {}",
                space.consecutive(&lengths),
                kin.map_or("–".into(), |kin| format!("{kin:.3}"))
            ));
        }
        rows.push(row);
    }
    print(
        "\nmean latent distance to the next frame, and to the like pose of another clip, over the root mean square distance of two frames",
    );
    print(&table(&["label", "frames", "no prior", "dynamics", "connectivity", "both"], &rows));
    Ok(())
}

/// Poses of a label as its principal components, nothing changed.
fn plain_poses(corpus: &Corpus) -> (Vec<Vec<f64>>, Vec<usize>) {
    let frames: Vec<Vec<f32>> = corpus.labels.iter().flat_map(|label| label.frames.clone()).collect();
    let lengths = corpus.labels.iter().flat_map(|label| label.clips.iter().map(|clip| clip.1)).collect();
    let ranges: Vec<f32> = corpus.rig.specs().iter().map(|spec| spec.high - spec.low).collect();
    let (mean, deviation) = understudy_motion::statistics(&frames, &ranges);
    let scale: Vec<f64> = deviation
        .iter()
        .zip(&ranges)
        .map(|(d, range)| if *d > 0.0 { 1.0 / f64::from(*range) } else { 0.0 })
        .collect();
    let Ok((basis, _)) = understudy_motion::linear::fit(&frames, &mean, &scale, 0.95) else {
        return (Vec::new(), lengths);
    };
    let outputs = basis.components.len() / basis.moving.len();
    let Ok(basis) = understudy_runtime::motion::PoseBasis::new(basis, ranges.len(), outputs) else {
        return (Vec::new(), lengths);
    };
    let encode = |frame: &Vec<f32>| basis.encode(frame).into_iter().map(f64::from).collect::<Vec<f64>>();
    (frames.iter().map(encode).collect(), lengths)
}

pub fn ablations(arguments: &MotionArguments, corpus: &Corpus) -> Result<()> {
    let base = || arguments.learning("ablation.motion");
    let with = |change: &dyn Fn(&mut LearnMotionConfig)| {
        let mut config = base();
        change(&mut config);
        config
    };
    let mut variants: Vec<(String, LearnMotionConfig)> = Vec::new();
    for variance in [0.85, 0.95] {
        for dimensions in 2..=6 {
            let config = with(&|config| {
                config.variance = variance;
                config.latent.dimensions = dimensions;
            });
            variants.push((format!("{:.0} %, {dimensions} dimensions", 100.0 * variance), config));
        }
    }
    variants.push(("unscaled components, 85 %".into(), with(&|c| (c.scaled, c.variance) = (false, 0.85))));
    variants.push(("no connectivity".into(), with(&|c| c.latent.priors.connectivity = 0.0)));
    variants.push(("no dynamics".into(), with(&|c| c.latent.priors.dynamics = 0.0)));
    let clips = corpus.labels.iter().flat_map(|label| label.clips.iter().map(|clip| clip.0.clone()));
    let all = if arguments.labels.is_empty() {
        let own: Vec<String> = corpus.rig.clips().iter().map(|clip| clip.name.clone()).collect();
        clips
            .filter_map(|name| {
                own.iter().find(|own| **own == name || own.strip_prefix("motion/") == Some(&name)).cloned()
            })
            .collect::<Vec<String>>()
            .join(",")
    } else {
        let parts = arguments.labels.iter().flat_map(|label| &label.clips);
        parts.map(|part| part.clip.clone()).collect::<Vec<String>>().join(",")
    };
    if let Ok(mixed) = format!("all={all}").parse::<LabelSpec>() {
        variants.push(("one mixed model".into(), with(&|c| c.labels = vec![mixed.clone()])));
    }
    let mut rows = Vec::new();
    for (name, config) in variants {
        let report = learn(&config, &Console)?;
        let frames: usize = report.labels.iter().map(|label| label.frames).sum();
        let mean = |value: &dyn Fn(&understudy_jobs::motion::LabelReport) -> f64| {
            report.labels.iter().map(|label| value(label) * label.frames as f64).sum::<f64>() / frames as f64
        };
        let (components, latent) = (mean(&|l| l.components_mm), mean(&|l| l.latent_mm));
        let worst = report.labels.iter().map(|l| l.latent_mm / l.components_mm).fold(0.0, f64::max);
        rows.push(vec![
            name,
            format!("{:.1}", mean(&|l| l.components as f64)),
            format!("{components:.3}"),
            format!("{latent:.3}"),
            format!("{:.3}", latent / components),
            format!("{worst:.3}"),
            format!("{:.3}", mean(&|l| l.consecutive)),
            format!("{:.3}", mean(&|l| l.kinship.unwrap_or(0.0))),
            format!("{:.1}", report.seconds),
        ]);
    }
    print("\ntraining poses through the rig, mean over labels by frames; ratio of the worst label beside it");
    let head =
        ["", "components", "components mm", "latent mm", "ratio", "worst", "next frame", "next clip", "s"];
    print(&table(&head, &rows));
    Ok(())
}
