//! `bench motion`: learning beside GPy and by size, what the priors and each step are worth, laws of synthesis over a
//! million frames, transitions beside a motion graph, and characters per core.

mod crowd;
mod graph;
mod laws;
mod learning;
mod race;

use crate::console::{Console, print};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use understudy_jobs::motion::{LabelFrames, LabelSpec, corpus};
use understudy_jobs::rigs;
use understudy_rigs::Rig;

/// What to weigh.
#[derive(Debug, Args)]
pub struct MotionArguments {
    /// A character or a rig file whose clips are learned.
    #[arg(default_value = "mira")]
    rig: String,
    /// Labels and their clips, as `motion learn` has them [default: the rig's own].
    #[arg(long = "label", value_name = "LABEL=CLIP,CLIP", value_parser = parse_label)]
    labels: Vec<LabelSpec>,
    /// Folder of files and the Python environment.
    #[arg(short, long, value_name = "DIR", default_value = "target/bench-motion")]
    output: PathBuf,
    /// Only these parts.
    #[arg(long, value_name = "PART,PART", value_delimiter = ',')]
    only: Vec<Part>,
    /// Iterations of every learning.
    #[arg(long, value_name = "N", default_value_t = 300)]
    iterations: usize,
}

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// GPy on the same poses.
    Race,
    /// 800 and 5,000 frames.
    Sizes,
    /// What the priors do.
    Priors,
    /// Reconstruction through the rig by dimensions and variance, and other ablations.
    Ablations,
    /// Reach, distance, jumps.
    Laws,
    /// Transitions beside a motion graph.
    Graph,
    /// Characters per core.
    Crowd,
}

fn parse_label(text: &str) -> Result<LabelSpec, String> {
    text.parse()
}

/// A rig with its clips.
struct Corpus {
    name: String,
    rig: Box<dyn Rig>,
    labels: Vec<LabelFrames>,
}

/// Runs it.
pub fn run(arguments: &MotionArguments) -> Result<()> {
    std::fs::create_dir_all(&arguments.output)?;
    let wanted = |part| arguments.only.is_empty() || arguments.only.contains(&part);
    let rig = rigs::open(&arguments.rig, &Console)?.rig;
    let labels = corpus(rig.as_ref(), &arguments.labels, 24.0, &Console)?;
    let frames: usize = labels.iter().map(|label| label.frames.len()).sum();
    print(&format!("{}: {} labels, {frames} frames at 24 per second", arguments.rig, labels.len()));
    let corpus = Corpus { name: arguments.rig.clone(), rig, labels };
    if wanted(Part::Race) {
        race::run(arguments, &corpus)?;
    }
    if wanted(Part::Sizes) {
        learning::sizes(arguments, &corpus)?;
    }
    if wanted(Part::Priors) {
        learning::priors(arguments, &corpus)?;
    }
    if wanted(Part::Ablations) {
        learning::ablations(arguments, &corpus)?;
    }
    if wanted(Part::Laws) {
        laws::run(arguments, &corpus)?;
    }
    if wanted(Part::Graph) {
        graph::run(arguments, &corpus)?;
    }
    if wanted(Part::Crowd) {
        crowd::run(arguments, &corpus)?;
    }
    Ok(())
}

impl MotionArguments {
    /// How `motion learn` is asked for the corpus.
    fn learning(&self, file: &str) -> understudy_jobs::motion::LearnMotionConfig {
        let mut config = understudy_jobs::motion::LearnMotionConfig {
            rig: self.rig.clone(),
            labels: self.labels.clone(),
            output: self.output.join(file),
            ..understudy_jobs::motion::LearnMotionConfig::default()
        };
        config.latent.iterations = self.iterations;
        config
    }
}

/// Poses of a corpus as standardised principal components: `[N][d]`, and frames of every piece of a clip. More frames or
/// dimensions than the corpus has are made by smooth random changes of it.
fn poses(corpus: &Corpus, frames: usize, dimensions: usize) -> (Vec<Vec<f64>>, Vec<usize>) {
    use understudy_core::Random;
    let mut all: Vec<Vec<f32>> = Vec::new();
    let mut lengths = Vec::new();
    let mut random = Random::new(17);
    'full: loop {
        for label in &corpus.labels {
            let mut first = 0;
            for (_, length) in &label.clips {
                let clip = &label.frames[first..first + length];
                first += length;
                let take = clip.len().min(frames - all.len());
                if take < 2 {
                    break 'full;
                }
                // A performance of its own: every control stronger or weaker, and a little unrest that follows slow waves.
                let controls = clip[0].len();
                let gains: Vec<f32> = (0..controls).map(|_| 1.0 + 0.25 * random.normal() as f32).collect();
                let waves: Vec<[f32; 3]> = (0..controls)
                    .map(|_| {
                        [
                            random.unit() as f32 * 6.3,
                            0.1 + 0.3 * random.unit() as f32,
                            0.02 * random.normal() as f32,
                        ]
                    })
                    .collect();
                for (time, frame) in clip[..take].iter().enumerate() {
                    let change = |(c, value): (usize, &f32)| {
                        let [phase, speed, size] = waves[c];
                        gains[c] * value + size * (phase + speed * time as f32).sin()
                    };
                    all.push(frame.iter().enumerate().map(change).collect());
                }
                lengths.push(take);
                if all.len() == frames {
                    break 'full;
                }
            }
        }
    }
    let ranges: Vec<f32> = corpus.rig.specs().iter().map(|spec| spec.high - spec.low).collect();
    let (mean, deviation) = understudy_motion::statistics(&all, &ranges);
    let scale: Vec<f64> = deviation
        .iter()
        .zip(&ranges)
        .map(|(d, range)| if *d > 0.0 { 1.0 / f64::from(*range) } else { 0.0 })
        .collect();
    let Ok((basis, _)) = understudy_motion::linear::fit(&all, &mean, &scale, 1.0) else {
        return (Vec::new(), Vec::new());
    };
    let outputs = basis.components.len() / basis.moving.len();
    let Ok(basis) = understudy_runtime::motion::PoseBasis::new(basis, ranges.len(), outputs) else {
        return (Vec::new(), Vec::new());
    };
    let encode = |frame: &Vec<f32>| {
        basis.encode(frame).into_iter().take(dimensions).map(f64::from).collect::<Vec<f64>>()
    };
    (all.iter().map(encode).collect(), lengths)
}
