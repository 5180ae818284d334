//! The commands for face twins: arguments to a job's configuration, the job's result to text or JSON. What
//! serves all kinds of twins comes here from `twin_commands` when the file is a face.

use crate::face_arguments::{LearnFaceArguments, TransferArguments};
use crate::interrupt::typed;
use crate::output::{self, bytes, count, table, thousands};
use crate::pace::duration_text;
use crate::progress::{watched, watched_keeping};
use crate::twin_arguments::{BenchTwinArguments, EvalArguments, ExportArguments};
use crate::twin_commands::{controls_text, half_weights};
use anyhow::Result;
use understudy_jobs::face::bench::{BenchFaceReport, bench_face};
use understudy_jobs::face::eval::{EvalFaceConfig, EvalFaceReport, FaceFigures, eval_face};
use understudy_jobs::face::export::export_face_onnx;
use understudy_jobs::face::learn::SegmentKind;
use understudy_jobs::face::learn::{LearnFaceConfig, LearnFaceReport, StageReport, learn_face};
use understudy_jobs::face::transfer::{TransferConfig, transfer_face};
use understudy_jobs::twin::bench::{BenchTwinConfig, Contest, verdict};
use understudy_jobs::twin::export::ExportConfig;
use understudy_jobs::{JobError, checkpoint_folder};

/// How long `learn face` may take by itself: enough for a good twin on two cores.
const MINUTES: f64 = 20.0;

/// `learn face`.
pub fn run_learn_face(json: bool, arguments: LearnFaceArguments) -> Result<()> {
    let by_steps = arguments.coarse_steps.is_some() || arguments.refinement_steps.is_some();
    let mut config = if arguments.paper { LearnFaceConfig::paper() } else { LearnFaceConfig::default() };
    config.data = arguments.data;
    config.output = arguments.output;
    config.from = arguments.from;
    config.rig = arguments.rig;
    // The paper's rates run until they stop improving.
    config.minutes = arguments.minutes.or((!by_steps && !arguments.paper).then_some(MINUTES));
    config.half &= !arguments.full_precision;
    config.threads = arguments.threads.unwrap_or(config.threads);
    let settings = &mut config.settings;
    settings.seed = arguments.seed;
    settings.dense = arguments.dense;
    settings.refine = !arguments.coarse_only;
    settings.normals = arguments.normals;
    settings.batch = arguments.batch.unwrap_or(settings.batch);
    settings.normal_weight = arguments.normal_weight.unwrap_or(settings.normal_weight);
    settings.refinement_normal_weight =
        arguments.refinement_normal_weight.unwrap_or(settings.refinement_normal_weight);
    if let Some(rate) = arguments.rate {
        for schedule in [&mut settings.coarse, &mut settings.refinement] {
            schedule.rates = [1.0, 0.1, 0.01].map(|share| rate * share).to_vec();
        }
    }
    settings.most_regions = arguments.regions.unwrap_or(settings.most_regions);
    for (steps, schedule) in [
        (arguments.coarse_steps, &mut settings.coarse),
        (arguments.refinement_steps, &mut settings.refinement),
    ] {
        if let Some(steps) = steps {
            *schedule = schedule.clone().with_total(steps);
        }
    }
    let parts = checkpoint_folder(&config.output);
    let report = watched_keeping("the training so far is", &parts, |progress| learn_face(&config, progress))?;
    output::print(json, &report, learn_text)
}

fn learn_text(report: &LearnFaceReport) -> String {
    let stage = |name: &str, stage: &StageReport| {
        let pace = stage.steps_per_second.map_or_else(|| "-".into(), |pace| format!("{pace:.1}"));
        format!(
            "{name}: {}, {} steps at {pace} steps/s, validation loss {:.4}",
            count(stage.networks, "network"),
            thousands(stage.steps as u64),
            stage.validation
        )
    };
    let rigid = report.segments.iter().filter(|s| s.follow_mm.is_some() && s.inputs == 0).count();
    let mut lines = vec![
        format!(
            "{}: a twin of {} from {} poses, {}",
            report.output.display(),
            report.rig,
            thousands(report.poses as u64),
            bytes(report.bytes as u64)
        ),
        stage("coarse", &report.coarse),
    ];
    if let Some(refinement) = &report.refinement {
        lines.push(stage("refinement", refinement));
    }
    if let (Some(normals), Some([drawn, computed])) = (&report.normals, report.normal_angles_deg) {
        lines.push(stage("normals", normals));
        lines.push(format!("normals from maps are {drawn:.2}° off, normals from faces {computed:.2}°"));
    }
    let bodies = report.segments.iter().filter(|s| s.kind == SegmentKind::Body).count();
    let motions = count(bodies, "rigid motion");
    let rigid = format!("{motions} by themselves, {} with others", count(rigid, "rigid segment"));
    lines.push(format!("{rigid} · {}", duration_text(report.seconds)));
    let held = &report.held_back;
    lines.push(format!(
        "on {} held back: {:.3} mm on average, {:.2} mm at most (a face at rest: {:.3} mm)",
        count(held.poses, "pose"),
        held.mean_mm,
        held.max_mm,
        held.base_mean_mm
    ));
    lines.push(match (report.converged, report.minutes) {
        (true, _) => "nothing was gained any more: more poses would help, more time would not".into(),
        (false, Some(minutes)) => format!(
            "the time was up before all was gained: --minutes {:.0} would make it more accurate",
            (3.0 * minutes).max(1.0)
        ),
        (false, None) => {
            "the steps were up before all was gained: more of them would make it more accurate".into()
        }
    });
    lines.join("\n")
}

/// `eval` of a face twin.
pub fn run_eval_face(json: bool, arguments: EvalArguments) -> Result<()> {
    let mut config = EvalFaceConfig {
        twin: arguments.twin,
        test: arguments.test,
        against: arguments.against,
        train: arguments.train,
        baselines: arguments.baselines,
        report: arguments.report,
        command: typed(),
        ..EvalFaceConfig::default()
    };
    config.threads = arguments.threads.unwrap_or(config.threads);
    let report = watched(|progress| eval_face(&config, progress))?;
    output::print(json, &report, eval_text)?;
    output::complete(report.page_problem)
}

fn eval_text(report: &EvalFaceReport) -> String {
    let head = ["method", "mean mm", "95 % mm", "max mm", "normals deg", "ms", "MB"];
    let row = |(name, m): (&String, &FaceFigures)| {
        vec![
            name.clone(),
            format!("{:.3}", m.mean_mm),
            format!("{:.3}", m.p95_mm),
            format!("{:.2}", m.max_mm),
            format!("{:.2}", m.normal_deg),
            format!("{:.3}", m.ms),
            format!("{:.2}", m.bytes as f64 / 1e6),
        ]
    };
    let mut text = String::new();
    let all = (report.sets.len() > 1).then_some(("all poses", &report.methods));
    for (set, methods) in report.sets.iter().map(|(set, m)| (set.as_str(), m)).chain(all) {
        let rows = report.order.iter().map(|name| row((name, &methods[name]))).collect::<Vec<_>>();
        text += &format!("{set}\n{}\n\n", table(&head, &rows));
    }
    for name in &report.order {
        let (figures, gaps) = (&report.spectrum[name], &report.gaps[name]);
        text += &format!(
            "{name}: {:.3}/1000 mm² of the error's power is between neighbours ({:.1} %); of lips and lids {} of {} open \
             pairs are stuck, {} of {} closed ones ajar\n",
            figures.high_power * 1e3,
            figures.high_share * 100.0,
            gaps.stuck,
            thousands(gaps.open as u64),
            gaps.ajar,
            thousands(gaps.closed as u64)
        );
    }
    for (what, figures) in [("segments", &report.rigid), ("teeth", &report.teeth)] {
        if let Some(f) = figures {
            text += &format!(
                "{} rigid {what}: the twin bends them by {:.6} cm at most, the original by {:.6}; at most {:.3} mm away on \
                 average, {:.3} mm in the worst pose ({})\n",
                f.segments, f.bends_cm, f.original_bends_cm, f.mean_mm, f.max_mm, f.worst
            );
        }
    }
    let twin = &report.methods["twin"];
    let others = report.order.iter().filter(|name| *name != "twin");
    let ratio = |name: &String| {
        let other = &report.methods[name];
        let normals = twin.normal_deg / other.normal_deg.max(1e-9);
        format!("{:.2} × {name} ({normals:.2})", twin.mean_mm / other.mean_mm.max(1e-9))
    };
    let ratios: Vec<String> = others.map(ratio).collect();
    if !ratios.is_empty() {
        text += &format!("error of the twin (and of its normals): {}\n", ratios.join(", "));
    }
    if let Some(ms) = report.original_ms {
        text += &format!("the rig itself takes {ms:.3} ms\n");
    }
    if let Some(page) = &report.page {
        text += &format!("report: {}", page.display());
    }
    text.trim_end().to_owned()
}

/// `bench` of a face twin.
pub fn run_bench_face(json: bool, arguments: BenchTwinArguments) -> Result<()> {
    let BenchTwinArguments { twin, rounds, peers, training } = arguments;
    let config = BenchTwinConfig { twin, rounds, peers, training };
    let report = watched(|progress| bench_face(&config, progress))?;
    output::print(json, &report, bench_text)
}

fn bench_text(report: &BenchFaceReport) -> String {
    let shown = |ms: Option<f64>| ms.map_or_else(|| "-".into(), |ms| format!("{ms:.3}"));
    let ratio = |ours: f64, ms: Option<f64>| ms.map_or_else(|| "-".into(), |ms| format!("{:.1}", ms / ours));
    let row = |(threads, c): (&String, &Contest)| {
        vec![
            format!("one pose, {threads} thread(s)"),
            format!("{:.3}", c.understudy_ms),
            shown(c.onnxruntime_ms),
            ratio(c.understudy_ms, c.onnxruntime_ms),
            shown(c.torch_ms),
            ratio(c.understudy_ms, c.torch_ms),
        ]
    };
    let head = ["ms per pose", "understudy", "onnxruntime", "times", "PyTorch", "times"];
    let training = report.training.as_ref().map_or_else(String::new, |race| {
        format!(
            "\ntraining, {} networks, {} poses per step, {} threads: {:.1} steps/s, PyTorch {:.1}, times {:.1}",
            race.networks,
            race.batch,
            race.threads,
            race.understudy_steps_s,
            race.torch_steps_s,
            race.understudy_steps_s / race.torch_steps_s
        )
    });
    format!(
        "{}: {} vertices, {} coarse and {} refinement networks, {} multiply-adds, {}\n{}\ncoarse alone {:.3} ms · normals \
         {:.3} ms\n{}\n16-bit weights {} · onnxruntime's vertices \
         differ by {} mm{training}",
        report.rig,
        thousands(report.vertices as u64),
        report.networks[0],
        report.networks[1],
        thousands(report.multiply_adds as u64),
        report.kernel,
        table(&head, &report.threads.iter().map(row).collect::<Vec<_>>()),
        report.coarse_ms,
        report.normals_ms,
        verdict(report.rig_ms, report.threads["1"].understudy_ms),
        half_weights(report.half_error_mm),
        report.onnx_error_mm.map_or_else(|| "-".into(), |mm| format!("{mm:.5}"))
    )
}

/// `export` of a face twin.
pub fn run_export_face(json: bool, arguments: ExportArguments) -> Result<()> {
    let Some(output) = arguments.onnx.filter(|_| arguments.glb.is_none()) else {
        return Err(JobError::Setting {
            place: "--glb".into(),
            problem: "a face twin has no skin; learn one from its dataset with 'understudy learn lbs'".into(),
        }
        .into());
    };
    let report = export_face_onnx(&ExportConfig { twin: arguments.twin, output })?;
    output::print(json, &report, |report| {
        format!(
            "{}: {}{}\noutput vertices {:?}, cm",
            report.output.display(),
            bytes(report.bytes as u64),
            controls_text(&report.controls),
            report.vertices
        )
    })
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
