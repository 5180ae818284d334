//! Races and studies behind `docs/benchmarks.md`: twins against onnxruntime and PyTorch, the inverse rig against NumPy,
//! recording, and what each part of a recipe is worth. Run by `cargo xtask bench`; never part of the product.

mod ablations;
mod auto;
mod body;
mod body_peers;
mod body_training;
mod capture;
mod console;
mod diff;
mod environment;
mod eval;
mod face;
mod ik;
mod inverse;
mod inverse_text;
mod kept;
mod landmarks;
mod motion;
mod sampling;
mod skin;
mod times;
mod weights;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use console::{Console, print, table};
use std::path::PathBuf;
use std::process::ExitCode;
use understudy_jobs::twin::bench::{BenchConfig, bench_twin};
use understudy_jobs::twin::{Twin, open_twin};

/// Races and studies of understudy.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A twin beside onnxruntime and PyTorch on the same networks.
    Race(RaceArguments),
    /// How fast poses are recorded and how much memory that takes.
    Sampling(SamplingArguments),
    /// The inverse rig: speed beside NumPy, known weights, the paper's findings.
    Inverse(InverseArguments),
    /// Differential twins: the paper's tables, comparisons, full-size runs and a race.
    Diff(diff::DiffArguments),
    /// Posing by hand: limbs in closed form, faces by points beside iterative methods.
    Ik(ik::IkArguments),
    /// How long `eval --train` takes on a rig of many bones.
    Eval(eval::EvalArguments),
    /// What each part of a recipe is worth: learned without it, on the same poses.
    Ablations(ablations::AblationArguments),
    /// Whether `learn auto` chooses the best kind.
    Auto(auto::AutoArguments),
    /// Skin twins on unseen clips, beside linear regression, principal components and the rig.
    Skin(skin::SkinArguments),
    /// Latent motion: learning beside GPy, priors, laws, transitions beside a motion graph, characters per core.
    Motion(motion::MotionArguments),
    /// Points, scores and head poses of faces beside MediaPipe itself.
    Landmarks(landmarks::LandmarkArguments),
    /// Skinning weights: a card, an eyelid, libigl on the same tetrahedra, full sizes, dragging, transfer.
    Weights(weights::WeightsArguments),
    /// Performance capture on actors whose weights are known.
    Capture(capture::CaptureArguments),
}

/// What to race.
#[derive(Debug, Clone, Args)]
pub struct RaceArguments {
    /// The twin.
    pub twin: PathBuf,
    /// Rounds; in each every contestant runs once, in turn.
    #[arg(long, value_name = "N", default_value_t = 11)]
    pub rounds: usize,
    /// Folder of the Python environment, made where it is missing.
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    pub peers: PathBuf,
    /// Race training too.
    #[arg(long)]
    pub training: bool,
}

#[derive(Debug, Args)]
struct SamplingArguments {
    /// A rig by name or file.
    rig: String,
    /// Poses to record for each number of threads.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    poses: u64,
    /// Numbers of threads to measure.
    #[arg(long, value_name = "T,T", value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Folder of the datasets [default: a folder for temporary files].
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Delete each chunk as soon as it is written and hashed: bounds the disk space.
    #[arg(long)]
    keep_nothing: bool,
    /// Poses per file of the dataset.
    #[arg(long, value_name = "N")]
    chunk: Option<u64>,
}

#[derive(Debug, Args)]
struct InverseArguments {
    /// Folder of the pages and the Python environment.
    #[arg(short, long, value_name = "DIR", default_value = "target/bench-inverse")]
    output: PathBuf,
    /// Leave NumPy out.
    #[arg(long)]
    no_numpy: bool,
    /// Alternating rounds of the timing.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Frames of the timed batch.
    #[arg(long, value_name = "N", default_value_t = 600)]
    frames: usize,
    /// Noise of the comparison, cm.
    #[arg(long, value_name = "CM", default_value_t = 0.03)]
    noise: f64,
    /// Leave the sweep over noise out.
    #[arg(long)]
    no_sweep: bool,
    /// Characters of the comparison, with commas between [default: mira, ict, aura and a quartic rig of her size].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    characters: Vec<String>,
    /// Threads [default: all].
    #[arg(long, value_name = "T")]
    threads: Option<usize>,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::complain(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Race(arguments) => race(&arguments),
        Command::Sampling(arguments) => run_sampling(arguments),
        Command::Inverse(arguments) => run_inverse(arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Ik(arguments) => ik::run(&arguments),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Ablations(arguments) => ablations::run(&arguments),
        Command::Auto(arguments) => auto::run(&arguments),
        Command::Skin(arguments) => skin::run(&arguments),
        Command::Motion(arguments) => motion::run(&arguments),
        Command::Landmarks(arguments) => landmarks::run(&arguments),
        Command::Weights(arguments) => weights::run(&arguments),
        Command::Capture(arguments) => capture::run(&arguments),
    }
}

fn race(arguments: &RaceArguments) -> Result<()> {
    let config = BenchConfig { twin: arguments.twin.clone(), rounds: arguments.rounds, rig: None };
    let alone = bench_twin(&config, &Console)?;
    let (times, mut text, training) = match open_twin(&arguments.twin)? {
        Twin::Body(twin) => {
            let race = body::race_body(arguments, &twin, &Console)?;
            let text = format!(
                "multiply-add peak {:.0} GFLOP/s: products of matrices reach {:.0} % of it, a crowd's networks {:.0} %, \
                 the whole crowd {:.0} %\nonnxruntime's vertices differ by {:.5} mm",
                race.peak_gflops,
                race.crowd_peak_share * 100.0,
                race.crowd_network_share * 100.0,
                race.crowd_whole_share * 100.0,
                race.onnx_error_mm
            );
            (race.times, text, race.training)
        }
        Twin::Diff(twin) => {
            let race = diff::race::race_diff(arguments, &twin, &Console)?;
            let text = race.text();
            (race.times, text, None)
        }
        Twin::Face(twin) => {
            let race = face::race_face(arguments, &twin, &Console)?;
            let text = format!(
                "{} coarse and {} refinement networks; onnxruntime's vertices differ by {:.5} mm",
                race.networks[0], race.networks[1], race.onnx_error_mm
            );
            (race.times, text, race.training)
        }
        Twin::Skin(twin) => {
            let race = skin::race::race_skin(arguments, &twin, &Console)?;
            let text = format!(
                "onnxruntime's vertices differ by {:.5} mm; the GLB moved by onnxruntime's bones differs by {:.5} mm",
                race.onnx_error_mm, race.glb_error_mm
            );
            (race.times, text, None)
        }
    };
    if let Some(race) = training {
        text += &format!(
            "\ntraining, {} networks, {} poses per step, {} threads: {:.1} steps/s, PyTorch {:.1}, times {:.1}",
            race.networks,
            race.batch,
            race.threads,
            race.understudy_steps_s,
            race.torch_steps_s,
            race.understudy_steps_s / race.torch_steps_s
        );
    }
    print(&format!(
        "{}: {} vertices, {} multiply-adds, {}\n{}\n{}\nnormals {:.3} ms; memory {:.1} GB/s, weights read at {:.0} % of \
         it\n{text}",
        alone.rig,
        alone.vertices,
        alone.multiply_adds,
        alone.kernel,
        times.table(),
        alone.verdict,
        alone.normals_ms,
        alone.bandwidth_gb_s,
        alone.bandwidth_share * 100.0
    ));
    Ok(())
}

fn run_sampling(arguments: SamplingArguments) -> Result<()> {
    let config = sampling::SamplingBenchConfig {
        rig: arguments.rig,
        poses: arguments.poses,
        threads: arguments.threads,
        output: arguments.output,
        keep_nothing: arguments.keep_nothing,
        chunk: arguments.chunk,
    };
    let report = sampling::bench_sampling(&config, &Console)?;
    let megabytes = |bytes: u64| format!("{:.0}", bytes as f64 / 1e6);
    let row = |run: &sampling::SamplingRun| {
        vec![
            run.threads.to_string(),
            run.poses.to_string(),
            format!("{:.1}", run.poses_per_second),
            run.bytes_per_pose.to_string(),
            run.peak_memory_bytes.map_or("unknown".into(), megabytes),
        ]
    };
    let head = ["threads", "poses", "poses per second", "bytes per pose", "peak memory, MB"];
    let rows: Vec<Vec<String>> = report.runs.iter().map(row).collect();
    print(&format!("{} on {} cores\n{}", report.rig, report.cores, table(&head, &rows)));
    Ok(())
}

fn run_inverse(arguments: InverseArguments) -> Result<()> {
    let defaults = inverse::BenchInverseConfig::default();
    let config = inverse::BenchInverseConfig {
        folder: arguments.output,
        numpy: !arguments.no_numpy,
        rounds: arguments.rounds,
        batch_frames: arguments.frames,
        noise_cm: arguments.noise,
        noises_cm: if arguments.no_sweep { Vec::new() } else { defaults.noises_cm.clone() },
        characters: arguments.characters,
        threads: arguments.threads.unwrap_or(defaults.threads),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        ..defaults
    };
    let report = inverse::bench_inverse(&config, &Console)?;
    print(&inverse_text::describe(&report));
    Ok(())
}
