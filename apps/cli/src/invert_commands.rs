//! The commands of the inverse rig: arguments to a job's configuration, the job's result to text or JSON.

use crate::interrupt::typed;
use crate::invert_arguments::{BenchInverseArguments, InvertArguments};
use crate::output::{self, count, table};
use crate::progress::watched;
use anyhow::Result;
use std::path::{Path, PathBuf};
use understudy_jobs::bench_inverse::{
    BenchInverseConfig, BenchInverseReport, Study, StudyRow, bench_inverse,
};
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

/// `bench-inverse`.
pub fn run_bench_inverse(json: bool, arguments: BenchInverseArguments) -> Result<()> {
    let beside = || {
        let program = std::env::current_exe().ok()?;
        Some(program.parent()?.parent()?.join("bench-inverse"))
    };
    let defaults = BenchInverseConfig::default();
    let config = BenchInverseConfig {
        folder: arguments.output.or_else(beside).unwrap_or(defaults.folder),
        numpy: !arguments.no_numpy,
        rounds: arguments.rounds,
        batch_frames: arguments.frames,
        noise_cm: arguments.noise,
        threads: arguments.threads.unwrap_or(defaults.threads),
        command: typed(),
        ..BenchInverseConfig::default()
    };
    let report = watched(|progress| bench_inverse(&config, progress))?;
    output::print(json, &report, describe_bench)
}

fn describe_bench(report: &BenchInverseReport) -> String {
    let speed = &report.speed;
    let [vertices, shapes, pairs, triples, quadruples] = speed.size;
    let mut parts = vec![format!(
        "Speed: {vertices} vertices, {shapes} shapes, {pairs}/{triples}/{quadruples} correctives, a shape moves {:.0} % of the vertices",
        100.0 * speed.support
    )];
    let row = |name: &str, ms: f64| vec![name.into(), format!("{ms:.3}"), format!("{:.1}", speed.times(ms))];
    let mut rows = vec![
        row("one frame, one thread", speed.single_ms),
        row(&format!("batch of {}, {} threads", speed.batch_frames, speed.threads), speed.batch_ms),
    ];
    rows.extend(speed.batch_cpu_ms.map(|ms| row("batch, processor time of all threads", ms)));
    rows.push(row("direct form in this program", speed.direct_ms));
    rows.extend(speed.numpy_ms.map(|ms| row("NumPy, the paper's form", ms)));
    rows.extend(speed.numpy_residual_ms.map(|ms| row("NumPy, residual kept up to date", ms)));
    parts.push(table(&["", "ms a frame", "times one frame"], &rows));
    parts.push(format!(
        "preparation {:.0} ms; largest difference of a weight: {:.1e} to the direct form, {} to NumPy",
        speed.prepare_ms,
        speed.difference_to_direct,
        speed.difference_to_numpy.map_or("not run".into(), |d| format!("{d:.1e}"))
    ));
    parts.extend(speed.numpy_problem.iter().map(|problem| format!("NumPy: {problem}")));

    parts.push("\nKnown weights, no noise".into());
    let rows: Vec<Vec<String>> = report
        .truth
        .iter()
        .map(|run| {
            vec![
                run.name.clone(),
                run.way.clone(),
                format!("{:.0}", run.passes),
                run.frames.to_string(),
                format!("{:.5}", run.mean_error),
                format!("{:.4}", run.p99_error),
                format!("{:.4}", 10.0 * run.rms_cm),
                format!("{:.2}", run.ms_per_frame),
            ]
        })
        .collect();
    let head =
        ["take", "settings", "passes", "frames", "mean error", "99 %", "RMSE mm", "processor ms per frame"];
    parts.push(table(&head, &rows));
    for (name, study) in &report.studies {
        parts.push(format!(
            "\n{name}: frames {}, noise on the targets, errors against the clean meshes",
            study.table_frames
        ));
        parts.push(study_text(study));
    }
    parts.extend(report.pages.iter().map(|page| format!("page: {}", page.display())));
    parts.join("\n")
}

fn study_text(study: &Study) -> String {
    let row = |row: &StudyRow| {
        let m = &row.metrics;
        vec![
            row.name.clone(),
            row.alpha.map_or("–".into(), |alpha| format!("{alpha:.3}")),
            format!("{:.5}", m.rmse_cm),
            format!("{:.5}", m.p95_cm),
            format!("{:.1}", m.cardinality),
            format!("{:.2}", m.l1),
            format!("{:.5}", m.roughness),
            format!("{:.3}", row.ms_per_frame),
        ]
    };
    let head = ["", "α", "RMSE cm", "95th cm", "card.", "L1", "rough.", "ms a frame"];
    let methods: Vec<_> = study.methods.iter().map(row).collect();
    let orders: Vec<_> = study.orders.iter().map(row).collect();
    let holds = study.relations.iter().map(|relation| {
        format!(
            "[{}] {}: {}",
            if relation.holds { "holds" } else { "DOES NOT HOLD" },
            relation.claim,
            relation.found
        )
    });
    let mut lines = vec![table(&head, &methods), table(&head, &orders)];
    if let Some([cardinality, l1, rough]) = study.truth {
        lines.push(format!("true weights: cardinality {cardinality:.1}, L1 {l1:.2}, roughness {rough:.5}"));
    }
    lines.extend(holds);
    lines.join("\n")
}
