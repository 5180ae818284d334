//! `bench motion`: learning beside GPy and by size, what the priors and each step are worth, laws of synthesis over a
//! million frames, transitions beside a motion graph, characters per core, and a second corpus by another hand.

mod compskin;
mod crowd;
mod graph;
mod laws;
mod learning;
mod race;

use crate::console::{Console, print, table};
use anyhow::Result;
use clap::Args;
use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;
use understudy_jobs::motion::{
    LabelFrames, LabelReport, LabelSpec, LearnMotionConfig, LearnMotionReport, corpus, learn_frames, open,
    prepare,
};
use understudy_jobs::rigs;
use understudy_motion::linear;
use understudy_rigs::Rig;
use understudy_runtime::motion::{Motion, PoseBasis};

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
    /// Labels of quiet clips, whose transitions get a row of their own.
    #[arg(
        long,
        value_name = "LABEL,LABEL",
        value_delimiter = ',',
        default_value = "neutral,bored,curious,happy"
    )]
    quiet: Vec<String>,
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
    /// The take of the face 'Aura' as a corpus: reconstruction and laws.
    Compskin,
}

fn parse_label(text: &str) -> Result<LabelSpec, String> {
    text.parse()
}

/// A rig with its clips.
struct Corpus {
    name: String,
    rig: Box<dyn Rig>,
    labels: Vec<LabelFrames>,
    /// What is learned of it, by whichever part asks first: never what another run left behind.
    learned: OnceCell<(Arc<Motion>, LearnMotionReport)>,
}

impl Corpus {
    fn new(name: &str, rig: Box<dyn Rig>, labels: Vec<LabelFrames>) -> Self {
        let frames: usize = labels.iter().map(|label| label.frames.len()).sum();
        print(&format!("{name}: {} labels, {frames} frames at 24 per second", labels.len()));
        Self { name: name.to_owned(), rig, labels, learned: OnceCell::new() }
    }

    /// Its motion, learned once per run.
    fn learned(&self, arguments: &MotionArguments) -> Result<&(Arc<Motion>, LearnMotionReport)> {
        if self.learned.get().is_none() {
            let config = arguments.learning(&self.name);
            let report = learn_frames(self.rig.as_ref(), self.labels.clone(), &config, &Console)?;
            print(&format!("\n{}: learned in {:.1} s, {} bytes", self.name, report.seconds, report.bytes));
            let line = |label: &LabelReport| {
                vec![
                    label.label.clone(),
                    label.clips.to_string(),
                    label.frames.to_string(),
                    label.components.to_string(),
                    label.centres.to_string(),
                    label.iterations.to_string(),
                    format!("{:.3}", label.components_mm),
                    format!("{:.3}", label.latent_mm),
                    format!("{:.3}", label.latent_mm / label.components_mm),
                    format!("{:.3}", label.consecutive),
                    label.kinship.map_or("–".into(), |near| format!("{near:.3}")),
                    format!("{:.1}", label.seconds),
                ]
            };
            let head = [
                "label",
                "clips",
                "frames",
                "components",
                "centres",
                "iterations",
                "components mm",
                "latent mm",
                "ratio",
                "next frame",
                "next clip",
                "s",
            ];
            print(&table(&head, &report.labels.iter().map(line).collect::<Vec<_>>()));
            let least = report.bridges.iter().map(|pair| pair.bridges).min().unwrap_or(0);
            let most = report.bridges.iter().map(|pair| pair.bridges).max().unwrap_or(0);
            let pairs = self.labels.len() * self.labels.len().saturating_sub(1) / 2;
            print(&format!("bridges: {} of {pairs} pairs have {least} to {most}", report.bridges.len()));
            let motion = open(&config.output)?.shared();
            let _ = self.learned.set((motion, report));
        }
        self.learned.get().ok_or_else(|| anyhow::anyhow!("{}: nothing was learned", self.name))
    }
}

/// What a number was to be, and whether it is.
fn target(wanted: &str, met: bool) {
    print(&format!("target: {wanted}: {}", if met { "met" } else { "MISSED" }));
}

/// Runs it.
pub fn run(arguments: &MotionArguments) -> Result<()> {
    std::fs::create_dir_all(&arguments.output)?;
    let wanted = |part| arguments.only.is_empty() || arguments.only.contains(&part);
    if arguments.only != [Part::Compskin] {
        let rig = rigs::open(&arguments.rig, &Console)?.rig;
        let labels = corpus(rig.as_ref(), &arguments.labels, 24.0, &Console)?;
        let corpus = Corpus::new(rig.name().to_owned().as_str(), rig, labels);
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
    }
    if wanted(Part::Compskin) {
        compskin::run(arguments)?;
    }
    Ok(())
}

impl MotionArguments {
    /// How frames of a corpus are learned.
    fn learning(&self, name: &str) -> LearnMotionConfig {
        let mut config = LearnMotionConfig {
            rig: name.to_owned(),
            output: self.output.join(format!("{name}.motion")),
            ..LearnMotionConfig::default()
        };
        config.latent.iterations = self.iterations;
        config
    }
}

/// Frames as principal components of controls scaled by what they do to the mesh, as the product has them: so many of them
/// at most, of as many as keep a share of the variance.
fn components(rig: &dyn Rig, label: LabelFrames, variance: f64, most: usize) -> Result<Vec<Vec<f64>>> {
    let prepared = prepare(rig, vec![label], &LearnMotionConfig::default(), &Console)?;
    let Some(prepared) = prepared.first() else { anyhow::bail!("nothing moves") };
    let (basis, _) = linear::fit(&prepared.label.frames, &prepared.mean, &prepared.scale, variance)?;
    let outputs = basis.components.len() / basis.moving.len();
    let basis = PoseBasis::new(basis, prepared.mean.len(), outputs)?;
    let encode = |frame: &Vec<f32>| basis.encode(frame).into_iter().take(most).map(f64::from).collect();
    Ok(prepared.label.frames.iter().map(encode).collect())
}

/// Poses of a corpus as principal components: `[N][d]`, and frames of every piece of a clip. More frames or dimensions than
/// the corpus has are made by smooth random changes of it.
fn poses(corpus: &Corpus, frames: usize, dimensions: usize) -> Result<(Vec<Vec<f64>>, Vec<usize>)> {
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
    let clips =
        lengths.iter().enumerate().map(|(piece, frames)| (format!("piece{piece}"), *frames)).collect();
    let label = LabelFrames { label: "all".into(), clips, frames: all };
    Ok((components(corpus.rig.as_ref(), label, 1.0, dimensions)?, lengths))
}
