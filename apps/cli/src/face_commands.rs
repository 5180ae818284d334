//! The commands for face twins: arguments to a job's configuration, the job's result to text or JSON.

use crate::face_arguments::LearnFaceArguments;
use crate::output::{self, bytes, count, thousands};
use crate::progress::watched;
use anyhow::Result;
use understudy_jobs::face::learn::{LearnFaceConfig, LearnFaceReport, StageReport, learn_face};

/// `learn face`.
pub fn run_learn_face(json: bool, arguments: LearnFaceArguments) -> Result<()> {
    let mut config = LearnFaceConfig {
        data: arguments.data,
        output: arguments.output,
        minutes: arguments.minutes,
        half: !arguments.full_precision,
        ..LearnFaceConfig::default()
    };
    config.threads = arguments.threads.unwrap_or(config.threads);
    let settings = &mut config.settings;
    settings.seed = arguments.seed;
    settings.dense = arguments.dense;
    settings.refine = !arguments.coarse_only;
    settings.frame = !arguments.no_frame;
    settings.cut = !arguments.no_cut;
    settings.batch = arguments.batch.unwrap_or(settings.batch);
    settings.normal_weight = arguments.normal_weight.unwrap_or(settings.normal_weight);
    settings.most_regions = arguments.regions.unwrap_or(settings.most_regions);
    for (steps, schedule) in [
        (arguments.coarse_steps, &mut settings.coarse),
        (arguments.refinement_steps, &mut settings.refinement),
    ] {
        if let Some(steps) = steps {
            *schedule = schedule.clone().with_total(steps);
        }
    }
    let report = watched(|progress| learn_face(&config, progress))?;
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
    lines.push(format!("{} · {:.0} s", count(rigid, "rigid segment"), report.seconds));
    lines.join("\n")
}
