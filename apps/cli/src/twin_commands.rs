//! The commands for twins of any kind: arguments to a job's configuration, the job's result to text or JSON.

use crate::capture_commands::run_learn_landmarks;
use crate::decompose_commands::run_learn_lbs;
use crate::interrupt::typed;
use crate::learn_arguments::{LearnAutoArguments, LearnCommand, LearnIkArguments, Other};
use crate::output::{self, bytes, count, refuse_unused, table, thousands};
use crate::pace::duration_text;
use crate::progress::{watched, watched_keeping};
use crate::twin_arguments::{BenchTwinArguments, EvalArguments, ExportArguments, TransferArguments};
use anyhow::Result;
use understudy_jobs::checkpoint_folder;
use understudy_jobs::twin::Distances;
use understudy_jobs::twin::auto::{AutoReport, learn_auto};
use understudy_jobs::twin::bench::{BenchConfig, bench_twin, verdict};
use understudy_jobs::twin::eval::{EvalConfig, EvalReport, MethodFigures, eval};
use understudy_jobs::twin::export::{ExportConfig, ExportReport, OnnxReport, export};
use understudy_jobs::twin::export_blender::ExportBlenderReport;
use understudy_jobs::twin::export_glb::{ExportGlbReport, GlbSettings};
use understudy_jobs::twin::face::transfer::{TransferConfig, transfer_face};
use understudy_jobs::twin::ik::learn_ik;
use understudy_jobs::twin::learn::{LearnConfig, LearnReport, learn};

/// `learn`.
pub fn run_learn(json: bool, command: LearnCommand) -> Result<()> {
    let (learning, shared) = match command.learning() {
        Ok(twin) => twin,
        Err(Other::Auto(auto)) => return run_learn_auto(json, *auto),
        Err(Other::Lbs(skin)) => return run_learn_lbs(json, *skin),
        Err(Other::Ik(ik)) => return run_learn_ik(json, *ik),
        Err(Other::Landmarks(nets)) => return run_learn_landmarks(json, nets),
    };
    let mut config = LearnConfig::new(shared.data, shared.output, learning);
    config.rig = shared.rig;
    config.half = !(shared.full_precision || shared.paper);
    config.threads = shared.threads.unwrap_or(config.threads);
    config.mechanism = shared.mechanism;
    config.chosen_on = shared.chosen_on;
    let parts = checkpoint_folder(&config.output);
    let report = watched_keeping("the training so far is", &parts, |progress| learn(&config, progress))?;
    output::print(json, &report, learn_text)
}

/// `learn ik`.
fn run_learn_ik(json: bool, arguments: LearnIkArguments) -> Result<()> {
    let config = arguments.config();
    let report = watched(|progress| learn_ik(&config, progress))?;
    output::print(json, &report, |report| {
        let figures = &report.figures;
        let mut lines = vec![format!(
            "{}: a {} twin of {} that follows {} points, learned from {} poses, {} more · {}",
            report.output.display(),
            report.kind,
            report.rig,
            report.points,
            thousands(report.poses as u64),
            bytes(report.bytes as u64),
            duration_text(report.seconds)
        )];
        let regions = report.regions.iter();
        let rows: Vec<Vec<String>> = regions
            .map(|(name, points, controls)| vec![name.clone(), points.to_string(), controls.to_string()])
            .collect();
        lines.push(table(&["region", "points", "controls"], &rows));
        let [given, shared] = figures.controls;
        lines.push(format!("{given} controls are given, {shared} of them by several regions"));
        lines.push(format!(
            "on {} held back points are {:.3} mm off by the network, {:.3} mm when corrected (at rest: {:.2} mm)",
            count(figures.poses, "pose"),
            figures.network_mm,
            figures.hybrid_mm,
            figures.rest_mm
        ));
        lines.join("\n")
    })
}

/// `learn auto`.
fn run_learn_auto(json: bool, arguments: LearnAutoArguments) -> Result<()> {
    let config = arguments.config(typed());
    let parts = checkpoint_folder(&config.output);
    let report =
        watched_keeping("what was tried so far is", &parts, |progress| learn_auto(&config, progress))?;
    output::print(json, &report, auto_text)
}

fn auto_text(report: &AutoReport) -> String {
    let head = ["kind", "mean mm", "95 % mm", "max mm", "ms", "MB", "trained s"];
    let row = |trial: &understudy_jobs::twin::auto::Trial| {
        vec![
            trial.kind.to_owned(),
            format!("{:.3}", trial.mean_mm),
            format!("{:.3}", trial.p95_mm),
            format!("{:.2}", trial.max_mm),
            format!("{:.3}", trial.ms),
            format!("{:.2}", trial.bytes as f64 / 1e6),
            format!("{:.0}", trial.seconds),
        ]
    };
    let rows: Vec<Vec<String>> = report.trials.iter().map(row).collect();
    let [trained, held] = report.trial_poses;
    let mut lines =
        vec![format!("trials on {trained} poses, measured on {held} others"), table(&head, &rows)];
    lines.extend(report.left_out.iter().map(|one| format!("{} is left out: {}", one.kind, one.reason)));
    lines.push(format!("\n{}", report.why));
    lines.push(learn_text(&report.learned));
    lines.push(format!("{:.3} ms per pose on one thread", report.ms));
    lines.extend(report.page.iter().map(|page| format!("report: {}", page.display())));
    lines.join("\n")
}

fn learn_text(report: &LearnReport) -> String {
    let mut lines = vec![format!(
        "{}: a {} twin of {} from {} poses, {} · {}",
        report.output.display(),
        report.kind,
        report.rig,
        thousands(report.poses as u64),
        bytes(report.bytes as u64),
        duration_text(report.seconds)
    )];
    lines.extend(report.details.lines());
    let held = &report.held_back;
    lines.push(format!(
        "on {} held back: {:.3} mm on average, {:.2} mm at most ({}: {:.3} mm)",
        count(held.poses, "pose"),
        held.mean_mm,
        held.max_mm,
        report.base,
        held.base_mean_mm
    ));
    lines.extend(report.mechanism.as_ref().map(|mechanism| mechanism.line()));
    lines.join("\n")
}

/// `eval`.
pub fn run_eval(json: bool, arguments: EvalArguments) -> Result<()> {
    let mut config = EvalConfig {
        twin: arguments.twin,
        test: arguments.test,
        rig: arguments.rig,
        clips: arguments.clips,
        against: arguments.against,
        train: arguments.train,
        baselines: arguments.baselines,
        fit_on_test: arguments.fit.as_deref() == Some("test"),
        report: arguments.report,
        command: typed(),
        ..EvalConfig::default()
    };
    config.threads = arguments.threads.unwrap_or(config.threads);
    let report = watched(|progress| eval(&config, progress))?;
    output::print(json, &report, eval_text)?;
    output::complete(report.page_problem)
}

fn eval_text(report: &EvalReport) -> String {
    let with_bones = report.methods.values().any(|m| m.ee.is_some());
    let mut head = vec!["method", "mean mm", "95 % mm", "max mm", "normals deg", "ms", "MB"];
    head.extend(with_bones.then_some("EE"));
    // What a row was fitted to says how fair its comparison is.
    let fitted = report.order.len() > 1;
    head.extend(fitted.then_some("poses"));
    let row = |name: &String, m: &MethodFigures| {
        let mut row = vec![
            name.clone(),
            format!("{:.3}", m.mean_mm),
            format!("{:.3}", m.p95_mm),
            format!("{:.2}", m.max_mm),
            format!("{:.2}", m.normal_deg),
            format!("{:.3}", m.ms),
            format!("{:.2}", m.bytes as f64 / 1e6),
        ];
        row.extend(m.ee.map(|ee| format!("{ee:.1}")));
        row.extend(fitted.then(|| m.poses.map_or_else(|| "-".into(), |poses| thousands(poses as u64))));
        row
    };
    let mut text = String::new();
    let all = (report.sets.len() > 1).then_some(("all poses", &report.methods));
    for (set, methods) in report.sets.iter().map(|(set, m)| (set.as_str(), m)).chain(all) {
        let rows: Vec<Vec<String>> = report.order.iter().map(|name| row(name, &methods[name])).collect();
        let kept = report.kept_for_tests.iter().any(|kept| kept == set);
        let kept = if kept { " (kept for tests: no setting is chosen by it)" } else { "" };
        text += &format!("{set}{kept}\n{}\n\n", table(&head, &rows));
    }
    if let Some(all) = report.training_poses.filter(|_| !report.fits.is_empty()) {
        let fit = |name: &String| {
            let fit = report.fits.get(name).filter(|fit| fit.poses > 0)?;
            let how = if fit.kept { "kept from before".into() } else { format!("{:.1} s", fit.seconds) };
            Some(format!("{name} to {} ({how})", fit.poses))
        };
        let fits: Vec<String> = report.order.iter().filter_map(fit).collect();
        text += &format!("fitted, of {} training poses: {}\n", thousands(all as u64), fits.join(", "));
    }
    let mut lines = report.lines.clone();
    let twin = &report.methods["twin"];
    let ratio = |name: &String| {
        let other = &report.methods[name];
        let normals = twin.normal_deg / other.normal_deg.max(1e-9);
        format!("{:.2} × {name} ({normals:.2})", twin.mean_mm / other.mean_mm.max(1e-9))
    };
    let ratios: Vec<String> = report.order.iter().filter(|name| *name != "twin").map(ratio).collect();
    if !ratios.is_empty() {
        lines.push(format!("error of the twin (and of its normals): {}", ratios.join(", ")));
    }
    lines.push(verdict(report.original_ms, twin.ms));
    lines.extend(report.page.iter().map(|page| format!("report: {}", page.display())));
    text + &lines.join("\n")
}

/// `bench`.
pub fn run_bench_twin(json: bool, arguments: BenchTwinArguments) -> Result<()> {
    let BenchTwinArguments { twin, rounds, rig } = arguments;
    let report = watched(|progress| bench_twin(&BenchConfig { twin, rounds, rig }, progress))?;
    output::print(json, &report, |report| {
        let row = |name: String, ms: &f64| vec![name, format!("{ms:.4}")];
        let mut rows: Vec<Vec<String>> =
            report.threads.iter().map(|(t, ms)| row(format!("one pose, {t} thread(s)"), ms)).collect();
        rows.extend(report.crowd.iter().map(|(c, ms)| row(format!("crowd of {c}, one thread"), ms)));
        if let Some(by_controls) = &report.by_controls {
            rows.push(row("one pose by controls alone, 1 thread(s)".into(), &by_controls.pose_ms));
            rows.push(row("of that controls → bones".into(), &by_controls.mechanism_ms));
        }
        rows.push(row("normals, on top".into(), &report.normals_ms));
        let original = if report.rig_timed {
            "the original rig, one thread"
        } else {
            "the original rig, when it was sampled"
        };
        rows.extend(report.rig_ms.iter().map(|ms| row(original.into(), ms)));
        format!(
            "{}: a {} twin, {} vertices, {} multiply-adds, {}\n{}\n{}\nmemory {:.1} GB/s, weights read at {:.0} % \
             of it\n16-bit weights {}",
            report.rig,
            report.method,
            thousands(report.vertices as u64),
            thousands(report.multiply_adds as u64),
            report.kernel,
            table(&["", "ms per pose"], &rows),
            report.verdict,
            report.bandwidth_gb_s,
            report.bandwidth_share * 100.0,
            half_weights(report.half_error_mm)
        )
    })
}

/// `export`.
pub fn run_export(json: bool, arguments: ExportArguments) -> Result<()> {
    let recorded = |clip: &String| std::path::Path::new(clip).is_dir();
    let only_recorded = !arguments.clips.is_empty() && arguments.clips.iter().all(recorded);
    refuse_unused(&[(
        "--rate",
        arguments.rate.is_some() && only_recorded,
        "datasets are played at the rate at which they were recorded",
    )])?;
    let mut glb_settings = GlbSettings {
        rig: arguments.rig,
        train: arguments.train,
        clips: arguments.clips,
        rate: arguments.rate,
        ..GlbSettings::default()
    };
    glb_settings.threads = arguments.threads.unwrap_or(glb_settings.threads);
    let ExportArguments { twin, onnx, glb, blender, .. } = arguments;
    let config = ExportConfig { twin, onnx, glb, blender, glb_settings };
    let report = watched(|progress| export(&config, progress))?;
    output::print(json, &report, export_text)
}

fn export_text(report: &ExportReport) -> String {
    let blender = report.blender.as_ref().map(blender_text);
    let texts = [report.onnx.as_ref().map(onnx_text), report.glb.as_ref().map(glb_text), blender];
    texts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn onnx_text(report: &OnnxReport) -> String {
    let mut text = format!("{}: {}", report.output.display(), bytes(report.bytes as u64));
    let list = |names: &[String]| names.join(", ");
    if !report.bones.is_empty() {
        let (count, names) = (report.bones.len(), list(&report.bones));
        text += &format!("\ninput bones [{count}, 3, 4], in order: {names}");
    }
    if !report.controls.is_empty() {
        let (count, names) = (report.controls.len(), list(&report.controls));
        text += &format!("\ninput controls [{count}], in order: {names}");
    }
    if let Some(shape) = report.vertices {
        text += &format!("\noutput vertices {shape:?}, cm");
    }
    if let Some(shape) = report.joints {
        text += &format!("\noutput bones {shape:?}, world transforms of the GLB's joints, cm");
    }
    text
}

fn glb_text(report: &ExportGlbReport) -> String {
    let mut text = format!(
        "{}: {} · {} vertices, {}, at most {} a vertex",
        report.output.display(),
        bytes(report.bytes as u64),
        thousands(report.vertices as u64),
        count(report.bones, "bone"),
        report.influences
    );
    for clip in &report.clips {
        text += &format!(
            "\n{}: {} at {} a second · the skin is {:.2} mm from the original (max {:.1} mm)",
            clip.name,
            count(clip.frames, "frame"),
            clip.rate,
            clip.mean_mm,
            clip.max_mm
        );
    }
    text
}

fn blender_text(report: &ExportBlenderReport) -> String {
    let (folder, script) = (report.folder.display(), report.script.display());
    let mut text = format!("{folder}: {}\nblender FILE.blend --python {script}", bytes(report.bytes as u64));
    for clip in &report.clips {
        text += &format!(
            "\n{}: {} at {} per second · the twin is {:.2} mm from the original (max {:.1} mm)",
            clip.name,
            count(clip.frames, "frame"),
            clip.rate,
            clip.mean_mm,
            clip.max_mm
        );
    }
    text
}

/// What 16-bit weights do: by how many mm they move a vertex, on average and at most, where they are in use.
fn half_weights(error_mm: Option<Distances>) -> String {
    match error_mm {
        Some(Distances { mean, max }) => {
            format!("move a vertex by {max:.4} mm at most, {mean:.5} mm on average")
        }
        None => "are not in use".into(),
    }
}

/// `transfer`.
pub fn run_transfer(json: bool, arguments: TransferArguments) -> Result<()> {
    let TransferArguments { twin, mesh, output, check } = arguments;
    let config = TransferConfig { twin, mesh, output, check };
    let report = watched(|progress| transfer_face(&config, progress))?;
    output::print(json, &report, |report| {
        let mut lines = vec![format!(
            "{}: {} · {} vertices instead of {}",
            report.output.display(),
            bytes(report.bytes as u64),
            thousands(report.to_vertices as u64),
            thousands(report.from_vertices as u64)
        )];
        for (part, f) in &report.check {
            lines.push(format!(
                "{part}: {:.3} mm on the old mesh (max {:.2}), {:.3} mm on the new one (max {:.2}), {:.2} times",
                f.original_mm, f.original_max_mm, f.moved_mm, f.moved_max_mm, f.ratio
            ));
        }
        lines.join("\n")
    })
}
