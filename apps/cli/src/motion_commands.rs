//! The command `motion`: arguments to a job's configuration, the job's result to text or JSON.

use crate::game_commands::run_game;
use crate::motion_arguments::{
    MotionCommand, MotionLearnArguments, MotionPlayArguments, MotionProjectArguments,
};
use crate::output::{self, bytes, count, table, thousands};
use crate::progress::watched;
use anyhow::Result;
use understudy_jobs::motion::{
    BridgeInfo, LearnMotionConfig, PlayMotionConfig, ProjectMotionConfig, info, learn, play, project,
};

/// `motion`.
pub fn run_motion(json: bool, command: MotionCommand) -> Result<()> {
    match command {
        MotionCommand::Learn(arguments) => run_learn(json, arguments),
        MotionCommand::Play(arguments) => run_play(json, arguments),
        MotionCommand::Project(arguments) => run_project(json, arguments),
        MotionCommand::Game(arguments) => run_game(json, arguments),
        MotionCommand::Info { file, page } => {
            let report = watched(|progress| info(&file, page.as_deref(), progress))?;
            output::print(json, &report, |report| {
                let labels: Vec<Vec<String>> = report
                    .labels
                    .iter()
                    .map(|label| {
                        let clips: Vec<String> =
                            label.clips.iter().map(|(name, frames)| format!("{name} ({frames})")).collect();
                        let numbers = [
                            label.frames,
                            label.controls,
                            label.components,
                            label.dimensions,
                            label.centres,
                            label.rank,
                        ];
                        let mut row = vec![label.label.clone()];
                        row.extend(numbers.map(|number| thousands(number as u64)));
                        row.push(clips.join(", "));
                        row
                    })
                    .collect();
                let head =
                    ["label", "frames", "controls", "components", "latent", "centres", "density", "clips"];
                format!(
                    "{}: motion of '{}' at {} per second\n\n{}\n\n{}",
                    report.file.display(),
                    report.rig,
                    report.rate,
                    table(&head, &labels),
                    bridges(&report.bridges)
                )
            })
        }
    }
}

fn bridges(list: &[BridgeInfo]) -> String {
    if list.is_empty() {
        return "one label needs no bridges".into();
    }
    let row = |b: &BridgeInfo| {
        vec![format!("{} – {}", b.from, b.to), b.bridges.to_string(), format!("{:.2}", b.least_mm)]
    };
    table(&["between", "bridges", "nearest mm"], &list.iter().map(row).collect::<Vec<_>>())
}

fn run_learn(json: bool, arguments: MotionLearnArguments) -> Result<()> {
    let mut config = LearnMotionConfig {
        rig: arguments.rig,
        output: arguments.output,
        labels: arguments.labels,
        include: arguments.include,
        ..LearnMotionConfig::default()
    };
    config.rate = arguments.rate.unwrap_or(config.rate);
    config.variance = arguments.variance.unwrap_or(config.variance);
    config.latent.dimensions = arguments.latent.unwrap_or(config.latent.dimensions);
    config.latent.iterations = arguments.iterations.unwrap_or(config.latent.iterations);
    config.latent.inducing = arguments.inducing;
    let priors = &mut config.latent.priors;
    priors.connectivity = arguments.connectivity.unwrap_or(priors.connectivity);
    config.bridges.millimetres = arguments.bridge_mm.unwrap_or(config.bridges.millimetres);
    let report = watched(|progress| learn(&config, progress))?;
    output::print(json, &report, |report| {
        let labels: Vec<Vec<String>> = report
            .labels
            .iter()
            .map(|label| {
                vec![
                    label.label.clone(),
                    label.clips.to_string(),
                    label.frames.to_string(),
                    label.controls.to_string(),
                    label.components.to_string(),
                    format!("{:.0}", label.before),
                    format!("{:.0}", label.after),
                    format!("{:.3}", label.consecutive),
                    label.kinship.map_or("–".into(), |near| format!("{near:.3}")),
                    format!("{:.3}", label.components_mm),
                    format!("{:.3}", label.latent_mm),
                    format!("{:.1}", label.seconds),
                ]
            })
            .collect();
        let head = [
            "label",
            "clips",
            "frames",
            "controls",
            "components",
            "log p before",
            "after",
            "next frame",
            "next clip",
            "components mm",
            "latent mm",
            "s",
        ];
        let left = match report.left_out.len() {
            0 => String::new(),
            n => format!("\n\n{} of the rig rest: {}", count(n, "control"), first(&report.left_out)),
        };
        format!(
            "{}: {} in {:.1} s\n\n{}\nnext frame, next clip: mean latent distance from frame to frame and to the like pose of another clip, over \
             that of any two frames\n\n{}{left}",
            report.output.display(),
            bytes(report.bytes as u64),
            report.seconds,
            table(&head, &labels),
            bridges(&report.bridges)
        )
    })
}

/// The first few names.
fn first(names: &[String]) -> String {
    const LISTED: usize = 8;
    let shown = names.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > LISTED { format!("{shown} and {} more", names.len() - LISTED) } else { shown }
}

fn run_play(json: bool, arguments: MotionPlayArguments) -> Result<()> {
    let mut config = PlayMotionConfig {
        motion: arguments.motion,
        script: arguments.script,
        output: arguments.output,
        label: arguments.label,
        rig: arguments.rig,
        view: arguments.view,
        size: arguments.size,
        ..PlayMotionConfig::default()
    };
    config.synthesis.seed = arguments.seed;
    let report = watched(|progress| play(&config, progress))?;
    output::print(json, &report, |report| {
        let labels: Vec<String> = report
            .labels
            .iter()
            .map(|(frame, label)| format!("{label} from {:.1} s", *frame as f32 / report.rate))
            .collect();
        format!(
            "{}: {} at {} per second ({:.1} s) of '{}'\n{}\nthe particle was at most {:.3} radii from its path; {} frames \
             per second on one core",
            report.output.display(),
            count(report.frames, "frame"),
            report.rate,
            report.frames as f32 / report.rate,
            report.rig,
            labels.join(", "),
            report.largest_distance,
            thousands(report.frames_per_second as u64)
        )
    })
}

fn run_project(json: bool, arguments: MotionProjectArguments) -> Result<()> {
    let MotionProjectArguments { motion, clip, label, rig } = arguments;
    let config = ProjectMotionConfig { motion, clip, label, rig };
    let report = watched(|progress| project(&config, progress))?;
    output::print(json, &report, |report| {
        let rows: Vec<Vec<String>> = report
            .frames
            .iter()
            .map(|frame| {
                let point: Vec<String> = frame.point.iter().map(|v| format!("{v:.3}")).collect();
                vec![
                    frame.frame.to_string(),
                    frame.label.clone(),
                    point.join(" "),
                    format!("{:.1}", frame.density),
                    format!("{:.3}", frame.mean_mm),
                ]
            })
            .collect();
        format!(
            "{}\n\n{}: {} of the latent spaces come within {:.3} mm on average",
            table(&["frame", "label", "point", "log p", "mean mm"], &rows),
            report.clip,
            count(report.frames.len(), "pose"),
            report.mean_mm
        )
    })
}
