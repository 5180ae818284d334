//! How long learning takes by size, what the priors do, and what each step is worth through the rig.

use super::{Corpus, MotionArguments, components, poses, target};
use crate::console::{Console, complain, print, table};
use anyhow::Result;
use rayon::prelude::*;
use std::time::Instant;
use understudy_jobs::motion::{
    LabelFrames, LabelReport, LearnMotionConfig, PreparedLabel, learn_labels, prepare,
};
use understudy_jobs::{JobError, Silent};
use understudy_motion::{LatentConfig, LatentSpace, PriorConfig};

pub fn sizes(arguments: &MotionArguments, corpus: &Corpus) -> Result<()> {
    let mut rows = Vec::new();
    let (mut took_800, mut took_5000) = (f64::INFINITY, f64::INFINITY);
    for frames in [400, 800, 2000, 5000] {
        let (outputs, lengths) = poses(corpus, frames, 40)?;
        let config = LatentConfig { iterations: arguments.iterations, ..LatentConfig::default() };
        let started = Instant::now();
        let (space, learned) = LatentSpace::learn(&outputs, &lengths, &config, |_, _| true)?;
        let seconds = started.elapsed().as_secs_f64();
        let miss = |(frame, output): (usize, &Vec<f64>)| -> f64 {
            let mean = space.mean(space.point(frame));
            mean.iter().zip(output).map(|(a, b)| (a - b) * (a - b)).sum()
        };
        let left: f64 = outputs.iter().enumerate().step_by(7).map(miss).sum();
        let whole: f64 = outputs.iter().step_by(7).flatten().map(|v| v * v).sum();
        match frames {
            800 => took_800 = seconds,
            5000 => took_5000 = seconds,
            _ => {}
        }
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
    target("800 frames in 3 minutes", took_800 <= 180.0);
    target("5,000 frames in 10 minutes", took_5000 <= 600.0);
    Ok(())
}

pub fn priors(arguments: &MotionArguments, corpus: &Corpus) -> Result<()> {
    let mut rows = Vec::new();
    for label in &corpus.labels {
        let outputs = components(corpus.rig.as_ref(), label.clone(), 0.95, usize::MAX)?;
        let lengths: Vec<usize> = label.clips.iter().map(|clip| clip.1).collect();
        let mut row = vec![label.label.clone(), outputs.len().to_string()];
        let both = PriorConfig::default();
        let variants = [
            PriorConfig { dynamics: 0.0, connectivity: 0.0, ..both },
            PriorConfig { connectivity: 0.0, ..both },
            PriorConfig { dynamics: 0.0, ..both },
            both,
            PriorConfig { connectivity: 3.0, guard: 0.03, ..both },
        ];
        for priors in variants {
            let config = LatentConfig { iterations: arguments.iterations, priors, ..LatentConfig::default() };
            let (space, _) = LatentSpace::learn(&outputs, &lengths, &config, |_, _| true)?;
            let kin = space.kinship(&outputs, &lengths);
            row.push(format!(
                "{:.3} {} {:.3}",
                space.consecutive(&lengths),
                kin.map_or("–".into(), |kin| format!("{kin:.3}")),
                space.widest_gap()
            ));
        }
        rows.push(row);
    }
    print(
        "\nover the root mean square distance of two frames: mean latent distance to the next frame, to the like pose of another clip, \
         and the widest gap that a walk over all frames crosses; the last column has weight 3 and ε 0.03",
    );
    print(&table(
        &["label", "frames", "no prior", "dynamics", "connectivity", "both", "both, strong"],
        &rows,
    ));
    Ok(())
}

/// A way to learn a corpus.
struct Variant<'a> {
    name: String,
    labels: &'a [PreparedLabel],
    config: LearnMotionConfig,
}

pub fn ablations(arguments: &MotionArguments, corpus: &Corpus) -> Result<()> {
    let rig = corpus.rig.as_ref();
    let base = arguments.learning(&corpus.name);
    // What does not change from variant to variant is found once: the influence of controls on the mesh.
    let scaled = prepare(rig, corpus.labels.clone(), &base, &Console)?;
    let plain = LearnMotionConfig { scaled: false, ..base.clone() };
    let unscaled = prepare(rig, corpus.labels.clone(), &plain, &Console)?;
    let clips = corpus.labels.iter().flat_map(|label| {
        label.clips.iter().map(|(clip, frames)| (format!("{}-{clip}", label.label), *frames))
    });
    let all = LabelFrames {
        label: "all".into(),
        clips: clips.collect(),
        frames: corpus.labels.iter().flat_map(|label| label.frames.iter().cloned()).collect(),
    };
    let mixed = prepare(rig, vec![all], &base, &Console)?;
    let variant = |name: String, labels, change: &dyn Fn(&mut LearnMotionConfig)| {
        let mut config = base.clone();
        change(&mut config);
        Variant { name, labels, config }
    };
    let mut variants: Vec<Variant<'_>> = Vec::new();
    for variance in [0.85, 0.95] {
        for dimensions in 2..=6 {
            let name = format!("{:.0} %, {dimensions} dimensions", 100.0 * variance);
            variants.push(variant(name, &scaled, &|c| {
                (c.variance, c.latent.dimensions) = (variance, dimensions);
            }));
        }
    }
    variants.push(variant("unscaled components, 85 %".into(), &unscaled, &|c| c.variance = 0.85));
    variants.push(variant("no connectivity".into(), &scaled, &|c| c.latent.priors.connectivity = 0.0));
    variants.push(variant("no dynamics".into(), &scaled, &|c| c.latent.priors.dynamics = 0.0));
    variants.push(variant("one mixed model".into(), &mixed, &|_| {}));
    let learned = |variant: &Variant<'_>| -> Result<Vec<LabelReport>, JobError> {
        let done = learn_labels(rig, variant.labels, &variant.config, &Silent)?;
        complain(&format!("learned: {}", variant.name));
        Ok(done.into_iter().map(|(_, report)| report).collect())
    };
    let reports: Vec<Vec<LabelReport>> = variants.par_iter().map(learned).collect::<Result<_, _>>()?;
    let mut rows = Vec::new();
    let (mut largest, mut kept) = (0.0f64, true);
    for (place, (variant, labels)) in variants.iter().zip(reports).enumerate() {
        let frames: usize = labels.iter().map(|label| label.frames).sum();
        let mean = |value: &dyn Fn(&LabelReport) -> f64| {
            labels.iter().map(|label| value(label) * label.frames as f64).sum::<f64>() / frames as f64
        };
        let (components, latent) = (mean(&|l| l.components_mm), mean(&|l| l.latent_mm));
        let worst = labels.iter().map(|l| l.latent_mm / l.components_mm).fold(0.0, f64::max);
        // The first ten are those of the target.
        if place < 10 {
            largest = largest.max(latent / components);
            kept &= latent <= 1.1 * components;
        }
        rows.push(vec![
            variant.name.clone(),
            format!("{:.1}", mean(&|l| l.components as f64)),
            format!("{components:.3}"),
            format!("{latent:.3}"),
            format!("{:.3}", latent / components),
            format!("{worst:.3}"),
            format!("{:.3}", mean(&|l| l.consecutive)),
            format!("{:.3}", mean(&|l| l.kinship.unwrap_or(0.0))),
            format!("{:.1}", labels.iter().map(|label| label.seconds).sum::<f64>()),
        ]);
    }
    print(
        "\ntraining poses through the rig, mean over labels by frames; ratio of the worst label beside it; seconds of one thread, \
         as many variants at once as there are cores",
    );
    let head =
        ["", "components", "components mm", "latent mm", "ratio", "worst", "next frame", "next clip", "s"];
    print(&table(&head, &rows));
    target(&format!("1.1 times the components' error (largest {largest:.3})"), kept);
    Ok(())
}
