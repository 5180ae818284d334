//! The commands for twins: arguments to a job's configuration, the job's result to text or JSON.

use crate::decompose_commands::run_learn_lbs;
use crate::face_commands::{run_bench_face, run_eval_face, run_export_face, run_learn_face};
use crate::interrupt::typed;
use crate::output::{self, bytes, count, refuse_unused, table, thousands};
use crate::progress::{watched, watched_keeping};
use crate::twin_arguments::{
    BaseArgument, BenchTwinArguments, EvalArguments, ExportArguments, LearnBodyArguments, LearnCommand,
};
use anyhow::Result;
use understudy_jobs::checkpoint_folder;
use understudy_jobs::twin::bench::{BenchTwinConfig, Contest, bench_twin, verdict};
use understudy_jobs::twin::eval::{EvalConfig, EvalReport, MethodFigures, eval};
use understudy_jobs::twin::export::{ExportConfig, ExportReport, check_outputs, export_onnx};
use understudy_jobs::twin::export_glb::{ExportGlbConfig, ExportGlbReport, export_glb};
use understudy_jobs::twin::learn::{Base, LearnBodyConfig, learn_body};
use understudy_jobs::twin::{Distances, Twin, open_twin};

/// `learn`.
pub fn run_learn(json: bool, command: LearnCommand) -> Result<()> {
    match command {
        LearnCommand::Body(arguments) => run_learn_body(json, arguments),
        LearnCommand::Face(arguments) => run_learn_face(json, arguments),
        LearnCommand::Lbs(arguments) => run_learn_lbs(json, arguments),
    }
}

fn run_learn_body(json: bool, arguments: LearnBodyArguments) -> Result<()> {
    let mut config = if arguments.paper { LearnBodyConfig::paper() } else { LearnBodyConfig::default() };
    config.data = arguments.data;
    config.output = arguments.output;
    if !arguments.paper {
        config.base = match arguments.base {
            BaseArgument::Rigid => Base::Rigid,
            BaseArgument::Lbs2 => Base::Lbs2,
            BaseArgument::Lbs4 => Base::Lbs4,
            BaseArgument::Lbs8 => Base::Lbs8,
        };
    }
    config.rig = arguments.rig;
    config.target_mm = arguments.target_mm;
    config.half &= !arguments.full_precision;
    config.threads = arguments.threads.unwrap_or(config.threads);
    let train = &mut config.settings.train;
    train.seed = arguments.seed;
    train.epochs = arguments.epochs.unwrap_or(train.epochs);
    train.batch = arguments.batch.unwrap_or(train.batch);
    train.rate = arguments.rate.unwrap_or(train.rate);
    let parts = checkpoint_folder(&config.output);
    let report =
        watched_keeping("networks that are trained are", &parts, |progress| learn_body(&config, progress))?;
    output::print(json, &report, |report| {
        let held = &report.held_back;
        format!(
            "{}: a twin of {} from {} poses\n{} ({} taken over), {} · {:.0} s\n\
             on {} held back: {:.3} mm on average, {:.2} mm at most (its skinning alone: {:.3} mm)",
            report.output.display(),
            report.rig,
            thousands(report.poses as u64),
            count(report.groups, "network"),
            report.resumed,
            bytes(report.bytes as u64),
            report.seconds,
            count(held.poses, "pose"),
            held.mean_mm,
            held.max_mm,
            held.base_mean_mm
        )
    })
}

/// `eval`.
pub fn run_eval(json: bool, arguments: EvalArguments) -> Result<()> {
    match open_twin(&arguments.twin)? {
        Twin::Face(_) => return run_eval_face(json, arguments),
        Twin::Body(_) => {}
    }
    refuse_unused(&[(
        "--against",
        !arguments.against.is_empty(),
        "only face twins are compared with others",
    )])?;
    let mut config = EvalConfig {
        twin: arguments.twin,
        test: arguments.test,
        train: arguments.train,
        baselines: arguments.baselines,
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
    let head = ["method", "mean cm", "95 % cm", "max cm", "EE", "ms", "MB"];
    let row = |name: &str, m: &MethodFigures| {
        vec![
            name.to_owned(),
            format!("{:.4}", m.mean_cm),
            format!("{:.4}", m.p95_cm),
            format!("{:.2}", m.max_cm),
            format!("{:.1}", m.ee),
            format!("{:.3}", m.ms),
            format!("{:.2}", m.bytes as f64 / 1e6),
        ]
    };
    let mut text = String::new();
    for (set, methods) in &report.sets {
        let rows: Vec<Vec<String>> =
            report.order.iter().filter_map(|n| methods.get(n).map(|m| row(n, m))).collect();
        text += &format!("{set}\n{}\n\n", table(&head, &rows));
    }
    if let Some(all) = report.training_poses.filter(|_| !report.fits.is_empty()) {
        let fit = |name: &String| {
            let fit = report.fits.get(name)?;
            let how = if fit.kept { "kept from before".into() } else { format!("{:.1} s", fit.seconds) };
            Some(format!("{name} to {} ({how})", fit.poses))
        };
        let fits: Vec<String> = report.order.iter().filter_map(fit).collect();
        text += &format!("fitted, of {} training poses: {}\n", thousands(all as u64), fits.join(", "));
    }
    let seams = report.seams;
    text += &format!(
        "seams: the error jumps by {:.4} cm across borders of groups, by {:.4} cm inside ({:.2} times); \
         against the two groups that meet: {:.2} times",
        seams.border_cm, seams.inside_cm, seams.plain_ratio, seams.ratio
    );
    if let (Some(control), Some(against)) = (seams.control_ratio, seams.against_control) {
        text += &format!(
            "\nseams: fitted skinning, which has no groups, jumps {control:.2} times as far on the same edges; \
             the twin {against:.2} times as far as that"
        );
    }
    if let Some(page) = &report.page {
        text += &format!("\nreport: {}", page.display());
    }
    text
}

/// `bench`.
pub fn run_bench_twin(json: bool, arguments: BenchTwinArguments) -> Result<()> {
    match open_twin(&arguments.twin)? {
        Twin::Face(_) => return run_bench_face(json, arguments),
        Twin::Body(_) => {}
    }
    let BenchTwinArguments { twin, rounds, peers, training } = arguments;
    let config = BenchTwinConfig { twin, rounds, peers, training };
    let report = watched(|progress| bench_twin(&config, progress))?;
    output::print(json, &report, |report| {
        let shown = |ms: Option<f64>| ms.map_or_else(|| "-".into(), |ms| format!("{ms:.4}"));
        let ratio =
            |ours: f64, ms: Option<f64>| ms.map_or_else(|| "-".into(), |ms| format!("{:.1}", ms / ours));
        let row = |name: String, c: &Contest| {
            vec![
                name,
                format!("{:.4}", c.understudy_ms),
                shown(c.onnxruntime_ms),
                ratio(c.understudy_ms, c.onnxruntime_ms),
                shown(c.torch_ms),
                ratio(c.understudy_ms, c.torch_ms),
            ]
        };
        let mut rows: Vec<Vec<String>> =
            report.threads.iter().map(|(t, c)| row(format!("one pose, {t} thread(s)"), c)).collect();
        rows.extend(report.batch.iter().map(|(b, c)| row(format!("crowd of {b}, one thread"), c)));
        let head = ["ms per pose", "understudy", "onnxruntime", "times", "PyTorch", "times"];
        let rig = verdict(report.rig_ms, report.threads["1"].understudy_ms);
        let half = half_weights(report.half_error_mm);
        let training = report.training.as_ref().map_or_else(String::new, |race| {
            format!(
                "\ntraining, {} networks, {} poses per step, {} threads: {:.0} steps/s, PyTorch {:.0}, times {:.1}",
                race.networks,
                race.batch,
                race.threads,
                race.understudy_steps_s,
                race.torch_steps_s,
                race.understudy_steps_s / race.torch_steps_s
            )
        });
        format!(
            "{}: {} vertices, {} multiply-adds, {}\n{}\n{rig}\nmemory {:.1} GB/s, weights read at {:.0} % of it\n\
             multiply-add peak {:.0} GFLOP/s: products of matrices reach {:.0} % of it, a crowd's networks {:.0} %, \
             the whole crowd {:.0} %\n\
             16-bit weights {half} · onnxruntime's vertices differ by {} mm{training}",
            report.rig,
            thousands(report.vertices as u64),
            thousands(report.multiply_adds as u64),
            report.kernel,
            table(&head, &rows),
            report.bandwidth_gb_s,
            report.bandwidth_share * 100.0,
            report.peak_gflops,
            report.crowd_peak_share * 100.0,
            report.crowd_network_share * 100.0,
            report.crowd_whole_share * 100.0,
            report.onnx_error_mm.map_or_else(|| "-".into(), |mm| format!("{mm:.5}"))
        )
    })
}

/// `export`.
pub fn run_export(json: bool, arguments: ExportArguments) -> Result<()> {
    check_outputs(&arguments.twin, arguments.onnx.as_deref(), arguments.glb.as_deref())?;
    match open_twin(&arguments.twin)? {
        Twin::Face(_) => return run_export_face(json, arguments),
        Twin::Body(_) => {}
    }
    let recorded = |clip: &String| std::path::Path::new(clip).is_dir();
    let only_recorded = !arguments.clips.is_empty() && arguments.clips.iter().all(recorded);
    refuse_unused(&[(
        "--rate",
        arguments.rate.is_some() && only_recorded,
        "datasets are played at the rate at which they were recorded",
    )])?;
    let onnx = match arguments.onnx {
        None => None,
        Some(output) => Some(export_onnx(&ExportConfig { twin: arguments.twin.clone(), output })?),
    };
    let glb = match arguments.glb {
        None => None,
        Some(output) => {
            let mut config = ExportGlbConfig {
                twin: arguments.twin,
                output,
                train: arguments.train,
                clips: arguments.clips,
                ..ExportGlbConfig::default()
            };
            config.rate = arguments.rate;
            config.threads = arguments.threads.unwrap_or(config.threads);
            Some(watched(|progress| export_glb(&config, progress))?)
        }
    };
    match (onnx, glb) {
        (Some(onnx), None) => output::print(json, &onnx, onnx_text),
        (None, Some(glb)) => output::print(json, &glb, glb_text),
        (onnx, glb) => output::print(json, &serde_json::json!({ "onnx": &onnx, "glb": &glb }), |_| {
            let texts = [onnx.as_ref().map(onnx_text), glb.as_ref().map(glb_text)];
            texts.into_iter().flatten().collect::<Vec<_>>().join("\n")
        }),
    }
}

fn onnx_text(report: &ExportReport) -> String {
    let mut text = format!("{}: {}", report.output.display(), bytes(report.bytes as u64));
    text += &format!("\ninput bones [{}, 3, 4], in order: {}", report.bones.len(), report.bones.join(", "));
    if !report.controls.is_empty() {
        text += &controls_text(&report.controls);
    }
    text + &format!("\noutput vertices {:?}, cm", report.vertices)
}

/// The input `controls` of an ONNX graph.
pub fn controls_text(names: &[String]) -> String {
    format!("\ninput controls [{}], in order: {}", names.len(), names.join(", "))
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
            "\n{}: {} at {} a second · the skin is {:.3} cm from the original (max {:.2} cm)",
            clip.name,
            count(clip.frames, "frame"),
            clip.rate,
            clip.mean_cm,
            clip.max_cm
        );
    }
    text
}

/// What 16-bit weights do: by how many mm they move a vertex, on average and at most, where they are in use.
pub fn half_weights(error_mm: Option<Distances>) -> String {
    match error_mm {
        Some(Distances { mean, max }) => {
            format!("move a vertex by {max:.4} mm at most, {mean:.5} mm on average")
        }
        None => "are not in use".into(),
    }
}
