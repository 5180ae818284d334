//! Each command: arguments to a job's configuration, the job's result to text or JSON.

use crate::arguments::{
    Arguments, Command, ConvertArguments, DemoArguments, InfoArguments, MergeArguments, RenderArguments,
    SampleArguments,
};
use crate::capture_commands::run_capture;
use crate::farm_command::run_farm;
use crate::import_commands::run_import;
use crate::info_text::describe;
use crate::interrupt::typed;
use crate::invert_commands::run_invert;
use crate::motion_commands::run_motion;
use crate::output::{self, bytes, count, refuse_unused, table, thousands};
use crate::pose_commands::run_pose;
use crate::progress::{watched, watched_keeping};
use crate::retarget_commands::run_retarget;
use crate::studio_command::run_studio;
use crate::twin_commands::{run_bench_twin, run_eval, run_export, run_learn, run_transfer};
use crate::weights_commands::{run_deform, run_weights};
use anyhow::Result;
use clap::CommandFactory as _;
use understudy_jobs::blender::BlenderOptions;
use understudy_jobs::characters::{Character, CharactersConfig, characters};
use understudy_jobs::clips::folded;
use understudy_jobs::convert::{ConvertConfig, convert};
use understudy_jobs::demo::{DemoConfig, demo};
use understudy_jobs::info::{InfoConfig, info};
use understudy_jobs::merge::{MergeConfig, merge};
use understudy_jobs::render::{RenderConfig, render};
use understudy_jobs::rigs::is_program;
use understudy_jobs::sample::{Method, SampleConfig, sample};
use understudy_jobs::twin::active::{ActiveConfig, ActiveRound, sample_actively};

/// Runs what was typed.
pub fn run(arguments: Arguments) -> Result<()> {
    let json = arguments.json;
    match arguments.command {
        Command::Characters => run_characters(json),
        Command::Sample(arguments) => run_sample(json, arguments),
        Command::Merge(arguments) => run_merge(json, arguments),
        Command::Farm { words } => run_farm(&words),
        Command::Import(arguments) => run_import(json, arguments),
        Command::Render(arguments) => run_render(json, arguments),
        Command::Convert(arguments) => run_convert(json, arguments),
        Command::Pose(arguments) => run_pose(json, *arguments),
        Command::Info(arguments) => run_info(json, arguments),
        Command::Invert(arguments) => run_invert(json, *arguments),
        Command::Retarget(arguments) => run_retarget(json, arguments),
        Command::Motion(command) => run_motion(json, command),
        Command::Capture(arguments) => run_capture(json, *arguments),
        Command::Demo(arguments) => run_demo(json, arguments),
        Command::Learn(command) => run_learn(json, command),
        Command::Eval(arguments) => run_eval(json, arguments),
        Command::Bench(arguments) => run_bench_twin(json, arguments),
        Command::Export(arguments) => run_export(json, arguments),
        Command::Transfer(arguments) => run_transfer(json, arguments),
        Command::Studio(arguments) => run_studio(json, arguments),
        Command::Weights(arguments) => run_weights(json, *arguments),
        Command::Deform(arguments) => run_deform(json, arguments),
        Command::Completions { shell } => {
            refuse_unused(&[("--json", json, "completions are a script")])?;
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "understudy", &mut script);
            output::write(&String::from_utf8_lossy(&script))
        }
    }
}

fn run_characters(json: bool) -> Result<()> {
    let list = watched(|progress| characters(&CharactersConfig::default(), progress))?;
    output::print(json, &list, |list| {
        let row = |c: &Character| {
            let number = |value: usize| thousands(value as u64);
            let mut row = vec![c.name.clone()];
            row.extend([c.vertices, c.faces, c.bones, c.controls, c.segments, c.islands].map(number));
            row.push(format!("{:.2}", c.evaluate_ms));
            let names: Vec<&str> = c.clips.iter().map(String::as_str).collect();
            let names: Vec<String> = folded(&names).into_iter().map(|(name, _)| name).collect();
            row.push(names.join(", "));
            row
        };
        let head =
            ["name", "vertices", "faces", "bones", "controls", "segments", "islands", "evaluate ms", "clips"];
        table(&head, &list.iter().map(row).collect::<Vec<_>>())
    })
}

fn run_sample(json: bool, arguments: SampleArguments) -> Result<()> {
    if arguments.active {
        return run_sample_actively(json, arguments);
    }
    let defaults = SampleConfig::default();
    let blender = arguments.blender.options(&arguments.rig)?;
    let config = SampleConfig {
        rig: arguments.rig,
        output: arguments.output,
        poses: arguments.poses,
        method: arguments.method,
        seed: arguments.seed.unwrap_or(defaults.seed),
        clips: arguments.clips,
        exclude: arguments.exclude,
        hold_out: arguments.hold_out.unwrap_or(0.0),
        held_out: arguments.held_out,
        rate: arguments.rate,
        mix: arguments.mix.unwrap_or(defaults.mix),
        stray: arguments.stray.unwrap_or(defaults.stray),
        threads: arguments.threads.unwrap_or(defaults.threads),
        chunk: arguments.chunk,
        workers: arguments.workers,
        timeout: arguments.timeout.unwrap_or(defaults.timeout),
        skip_failed: arguments.skip_failed,
        blender,
        shard: arguments.shard,
    };
    let program = is_program(&config.rig);
    let method = config.resolved_method();
    let by_noise = method == Method::Noise;
    let from_clips = by_noise || method == Method::Clips;
    let of_noise = format!("the method is {method}, not noise");
    refuse_unused(&[
        ("--seed", arguments.seed.is_some() && method == Method::Clips, "frames of clips are not random"),
        ("--rate", arguments.rate.is_some() && !from_clips, &format!("the method {method} reads no clips")),
        ("--mix", arguments.mix.is_some() && !by_noise, &of_noise),
        ("--stray", arguments.stray.is_some() && !by_noise, &of_noise),
        (
            "--threads",
            arguments.threads.is_some() && program,
            "the rig is a program: --workers says how many",
        ),
        ("--workers", arguments.workers.is_some() && !program, "the rig is no program"),
        ("--timeout", arguments.timeout.is_some() && !program, "the rig is no program"),
        ("--skip-failed", arguments.skip_failed && !program, "the rig is no program"),
    ])?;
    let report =
        watched_keeping("finished chunks are", &config.output, |progress| sample(&config, progress))?;
    output::print(json, &report, |report| {
        let resumed = match report.resumed_from {
            0 => String::new(),
            done => format!(" ({} were there already)", thousands(done)),
        };
        let shard = report.shard.map_or_else(String::new, |s| format!(", shard {}/{}", s.number, s.of));
        let head = format!(
            "{}{shard}: {}{resumed}, {} in {}",
            report.folder.display(),
            count(report.poses, "pose"),
            bytes(report.bytes),
            count(report.chunks, "chunk"),
        );
        if report.resumed_from == report.poses {
            return format!("{head}\nnothing was left to do");
        }
        let failed = match report.failed.len() {
            0 => String::new(),
            times => format!("\nthe rig failed {}: failed-poses.csv names the poses", count(times, "time")),
        };
        let own = report.rig_ms.map_or_else(String::new, |ms| format!("; the rig takes {ms:.1} ms per pose"));
        format!(
            "{head}\n{:.1} poses per second, {} per pose{own}{failed}",
            report.poses_per_second,
            bytes(report.bytes_per_pose)
        )
    })
}

fn run_merge(json: bool, arguments: MergeArguments) -> Result<()> {
    let config = MergeConfig { shards: arguments.shards, output: arguments.output };
    let report = watched_keeping("merged chunks are", &config.output, |progress| merge(&config, progress))?;
    output::print(json, &report, |report| {
        let (poses, chunks) = (count(report.poses as u64, "pose"), count(report.chunks, "chunk"));
        let shards = count(report.shards, "shard");
        format!("{}: {poses} of {} in {chunks}, from {shards}", report.folder.display(), report.rig)
    })
}

fn run_sample_actively(json: bool, arguments: SampleArguments) -> Result<()> {
    let why = "--active opens a Blender file as it was sampled last: sample a few poses with it first";
    let options = arguments.blender.options(&arguments.rig)? != BlenderOptions::default();
    let program = is_program(&arguments.rig);
    refuse_unused(&[
        ("an option of Blender files", options, why),
        ("--workers", arguments.workers.is_some() && !program, "the rig is no program"),
        ("--timeout", arguments.timeout.is_some() && !program, "the rig is no program"),
    ])?;
    let defaults = ActiveConfig::default();
    let config = ActiveConfig {
        rig: arguments.rig,
        output: arguments.output,
        poses: arguments.poses.unwrap_or(defaults.poses),
        rounds: arguments.rounds,
        method: arguments.method,
        exclude: arguments.exclude,
        hold_out: arguments.hold_out.unwrap_or(defaults.hold_out),
        seed: arguments.seed.unwrap_or(defaults.seed),
        threads: arguments.threads.unwrap_or(defaults.threads),
        chunk: arguments.chunk,
        workers: arguments.workers,
        timeout: arguments.timeout.unwrap_or(defaults.timeout),
        compare: arguments.report.is_some(),
        report: arguments.report,
        ..defaults
    };
    let report = watched_keeping("finished chunks are", &config.output, |progress| {
        sample_actively(&config, progress)
    })?;
    output::print(json, &report, |report| {
        let resumed = match report.resumed_from {
            0 => String::new(),
            done => format!(" ({} were there already)", thousands(done as u64)),
        };
        let mut lines = vec![format!(
            "{}: {}{resumed} of {}, drawn from {} poses in {} rounds",
            report.folder.display(),
            count(report.poses as u64, "pose"),
            report.rig,
            report.method,
            report.rounds.len() - 1
        )];
        let row = |round: &ActiveRound| {
            let mut row = vec![round.poses.to_string(), format!("{:.4}", round.disagreement_mm)];
            for error in [round.active, round.random].into_iter().flatten() {
                row.extend([format!("{:.4}", error.mean_mm), format!("{:.4}", error.p95_mm)]);
            }
            row
        };
        let mut head = vec!["poses", "disagreement mm"];
        if report.share.is_some() {
            head.extend(["active mean mm", "95 %", "random mean mm", "95 %"]);
        }
        let rows: Vec<Vec<String>> = report.rounds.iter().map(row).collect();
        lines.push(table(&head, &rows));
        lines.extend(report.share.map(|[mean, p95]| {
            format!("random's last error is reached with {mean:.2} of its poses (its 95 % with {p95:.2})")
        }));
        lines.extend(report.files.iter().map(|file| file.display().to_string()));
        lines.join("\n")
    })
}

fn run_render(json: bool, arguments: RenderArguments) -> Result<()> {
    let config = RenderConfig {
        rig: arguments.rig,
        output: arguments.output,
        settings: arguments.settings,
        clip: arguments.clip,
        time: arguments.time,
        frames: arguments.frames.map(|frames| frames as usize),
        views: if arguments.views.is_empty() { RenderConfig::default().views } else { arguments.views },
        size: arguments.size as usize,
        dark: arguments.dark,
    };
    let report = watched(|progress| render(&config, progress))?;
    output::print(json, &report, |report| {
        let pictures = count(report.pictures, "picture");
        format!("{}: {} × {} pixels, {pictures}", report.file.display(), report.width, report.height)
    })
}

fn run_convert(json: bool, arguments: ConvertArguments) -> Result<()> {
    let config = ConvertConfig {
        input: arguments.input,
        output: arguments.output,
        bake: arguments.bake,
        clip: arguments.clip,
        tolerance_mm: arguments.tolerance_mm,
        rate: arguments.rate,
        remesh: arguments.remesh,
        influences: arguments.influences,
    };
    let report = watched(|progress| convert(&config, progress))?;
    output::print(json, &report, |report| {
        let mut lines = vec![format!("{}: {}", report.file.display(), bytes(report.bytes))];
        lines.extend(report.contents.iter().cloned());
        lines.join("\n")
    })
}

fn run_info(json: bool, arguments: InfoArguments) -> Result<()> {
    let blender = arguments.blender.options(&arguments.input)?;
    let config = InfoConfig { input: arguments.input, verify: arguments.verify, blender };
    let report = watched(|progress| info(&config, progress))?;
    output::print(json, &report, describe)
}

fn run_demo(json: bool, arguments: DemoArguments) -> Result<()> {
    let defaults = DemoConfig::default();
    let config = DemoConfig {
        output: arguments.output,
        poses: arguments.poses,
        face_steps: defaults.face_steps,
        motion_iterations: defaults.motion_iterations,
        size: defaults.size,
        threads: arguments.threads.unwrap_or(defaults.threads),
        command: typed(),
    };
    let report = watched_keeping("what is finished is", &config.output, |progress| demo(&config, progress))?;
    output::print(json, &report, |report| {
        let mut lines = Vec::new();
        for eval in [&report.eval, &report.face_eval] {
            for (set, methods) in &eval.sets {
                let figures = eval.order.iter().map(|name| {
                    let m = &methods[name];
                    format!("{name} {:.2} mm and {:.1}°", m.mean_mm, m.normal_deg)
                });
                lines.push(format!("{set}: {}", figures.collect::<Vec<_>>().join(", ")));
            }
        }
        lines.push(format!("done in {:.0} s; open {}", report.seconds, report.report.display()));
        let folder = report.report.parent().map_or_else(|| ".".into(), |folder| folder.display().to_string());
        lines.push(format!("pose the twins yourself: understudy studio --project {folder}"));
        lines.join("\n")
    })
}
