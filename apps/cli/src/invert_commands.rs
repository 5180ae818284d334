//! The commands of the inverse rig: arguments to a job's configuration, the job's result to text or JSON.

use crate::interrupt::typed;
use crate::invert_arguments::InvertArguments;
use crate::output::{self, count};
use crate::progress::watched;
use anyhow::Result;
use std::path::{Path, PathBuf};
use understudy_jobs::invert::solver::{
    Alpha, InverseSettings, Method, Missing, RigidFit, RigidSettings, Symmetry, TakeSettings,
};
use understudy_jobs::invert::{InvertConfig, InvertReport, invert};
use understudy_jobs::{BesideFile, JobError};

/// `invert`.
pub fn run_invert(json: bool, mut arguments: InvertArguments) -> Result<()> {
    let json_file = take_json_file(json, &mut arguments);
    let config = invert_config(arguments)?;
    let inputs: Vec<&Path> =
        config.targets.iter().map(PathBuf::as_path).chain([Path::new(&config.rig)]).collect();
    let outputs: Vec<&Path> =
        std::iter::once(config.output.as_path()).chain(config.report.as_deref()).collect();
    let json_file = json_file.map(|path| BesideFile::check(&path, &inputs, &outputs)).transpose()?;
    let report = watched(|progress| invert(&config, progress))?;
    if let Some(file) = json_file {
        file.write(&serde_json::to_string_pretty(&report)?)?;
        return output::print(false, &report, describe);
    }
    output::print(json, &report, describe)
}

/// `--json report.json`: no target is a `.json`, so a path of that kind beside the flag is where it goes.
fn take_json_file(json: bool, arguments: &mut InvertArguments) -> Option<PathBuf> {
    let is_json = |path: &String| path.to_lowercase().ends_with(".json");
    if !json {
        return None;
    }
    if is_json(&arguments.rig) && arguments.targets.len() > 1 {
        let rig = arguments.targets.remove(0);
        return Some(std::mem::replace(&mut arguments.rig, rig).into());
    }
    let place = arguments.targets.iter().position(is_json)?;
    Some(arguments.targets.remove(place).into())
}

fn invert_config(arguments: InvertArguments) -> Result<InvertConfig> {
    let base = if arguments.paper { InverseSettings::paper() } else { InverseSettings::default() };
    let choose_alpha = arguments.alpha.as_deref() == Some("auto");
    let alpha = match arguments.alpha.filter(|_| !choose_alpha) {
        None => base.alpha,
        Some(alpha) => {
            let alpha = alpha.parse().map_err(|_| setting("--alpha", "a number or 'auto' is wanted"))?;
            if arguments.paper { Alpha::Absolute(alpha) } else { Alpha::Share(alpha) }
        }
    };
    let mut symmetric_by_name = false;
    let mut symmetric = Vec::new();
    for pair in &arguments.symmetric {
        match (pair.as_str(), pair.split_once(',')) {
            ("auto", _) => symmetric_by_name = true,
            (_, Some((left, right))) => symmetric.push([left.trim().into(), right.trim().into()]),
            _ => {
                return Err(
                    setting("--symmetric", format!("'{pair}' is neither 'auto' nor LEFT,RIGHT")).into()
                );
            }
        }
    }
    let exclusive = |group: &String| group.split(',').map(|name| name.trim().to_owned()).collect();
    let defaults = InvertConfig::default();
    Ok(InvertConfig {
        rig: arguments.rig,
        targets: arguments.targets.into_iter().map(PathBuf::from).collect(),
        output: arguments.output,
        settings: InverseSettings {
            method: arguments.method,
            max_level: arguments.max_level,
            alpha,
            passes: arguments.passes.unwrap_or(base.passes),
            tolerance: arguments.tolerance.unwrap_or(base.tolerance),
            newton: base.newton,
            order: arguments.order,
            seed: arguments.seed,
            upper: (!arguments.unbounded).then_some(1.0),
            symmetric,
            symmetry: arguments.symmetric_strength.map_or(Symmetry::Tied, Symmetry::Soft),
            exclusive: arguments.exclusive.iter().map(exclusive).collect(),
            missing: if arguments.missing { Missing::Ignore } else { Missing::Refuse },
        },
        choose_alpha,
        take: TakeSettings {
            warm_start: arguments.warm_start,
            smooth: arguments.smooth,
            rigid: arguments.head.map(|head| rigid(&head)).transpose()?,
            ..TakeSettings::default()
        },
        vertex_weights: arguments.vertex_weights,
        symmetric_by_name,
        clip: arguments.clip,
        rate: arguments.rate,
        layout: arguments.layout,
        noise_cm: arguments.noise,
        noise_seed: arguments.seed,
        report: arguments.report,
        threads: arguments.threads.unwrap_or(defaults.threads),
        command: typed(),
    })
}

fn rigid(head: &str) -> Result<RigidSettings, JobError> {
    if head == "all" {
        return Ok(RigidSettings::default());
    }
    let vertices: Result<Vec<u32>, _> = head.split(',').map(|vertex| vertex.trim().parse()).collect();
    let landmarks = vertices
        .map_err(|_| setting("--head", format!("'{head}' is neither 'all' nor a list of vertices")))?;
    Ok(RigidSettings { fit: RigidFit::Landmarks(landmarks), rounds: 0 })
}

fn setting(place: &str, problem: impl ToString) -> JobError {
    JobError::Setting { place: place.into(), problem: problem.to_string() }
}

fn describe(report: &InvertReport) -> String {
    let metrics = &report.metrics;
    let mut lines = vec![
        format!(
            "{}: {} of {}",
            report.file.display(),
            count(report.frames, "frame"),
            count(report.shapes, "weight")
        ),
        format!(
            "{}: RMSE {:.3} mm, 95th percentile {:.3} mm, {:.1} weights on, roughness {:.4}",
            named_method(&report.settings),
            10.0 * metrics.rmse_cm,
            10.0 * metrics.p95_cm,
            metrics.cardinality,
            metrics.roughness
        ),
        format!("prepared in {:.0} ms, {:.3} ms a frame", report.prepare_ms, report.solve_ms_per_frame),
    ];
    if let Some(smoothing) = &report.smoothing {
        lines.push(format!(
            "smoothed in {}: joint cost {:.4} → {:.4} cm²",
            count(smoothing.sweeps, "sweep"),
            smoothing.objective_before,
            smoothing.objective_after
        ));
    }
    lines.extend(report.report.iter().map(|page| format!("report: {}", page.display())));
    lines.join("\n")
}

/// The method, with its α where it has one.
fn named_method(settings: &InverseSettings) -> String {
    match settings.method {
        Method::Seol | Method::Joshi => settings.method.title().into(),
        method => match settings.alpha {
            Alpha::Share(share) => format!("{}, α {share:.1e}", method.title()),
            Alpha::Absolute(alpha) => format!("{}, α {alpha:.4} cm²", method.title()),
        },
    }
}
