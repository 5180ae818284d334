//! The command `retarget`: arguments to a job's configuration, the job's result to text or JSON.

use crate::arguments::RetargetArguments;
use crate::output::{self, count, table};
use crate::progress::watched;
use anyhow::Result;
use understudy_jobs::retarget::{RetargetJob, RetargetReport, retarget};

/// Parts of the body and limits that a summary lists.
const LISTED: usize = 8;

/// `retarget`.
pub fn run_retarget(json: bool, arguments: RetargetArguments) -> Result<()> {
    let job = RetargetJob {
        rig: arguments.rig,
        motion: arguments.motion,
        map: arguments.map,
        write_map: arguments.write_map,
    };
    let report = watched(|progress| retarget(&job, progress))?;
    output::print(json, &report, text)
}

fn text(report: &RetargetReport) -> String {
    let fit = &report.fit;
    let mut parts = vec![format!(
        "{} on {}: {} at {:.0} per second, distances × {:.3}, lined up at the {} ({:.1} s)",
        report.clip,
        report.rig,
        count(fit.frames, "frame"),
        report.rate,
        fit.scale,
        fit.reference,
        report.seconds
    )];
    let bones: Vec<Vec<String>> = report.bones.iter().map(|row| row.to_vec()).collect();
    parts.push(table(
        &["part", &format!("file ({})", fit.file_names), &format!("rig ({})", fit.rig_names)],
        &bones,
    ));
    let mut followed = fit.parts.clone();
    followed.sort_by(|a, b| b.mean_degrees.total_cmp(&a.mean_degrees));
    let followed: Vec<Vec<String>> = followed
        .iter()
        .take(LISTED)
        .map(|part| {
            vec![part.part.clone(), format!("{:.1}", part.mean_degrees), format!("{:.1}", part.max_degrees)]
        })
        .collect();
    parts.push(table(&["follows worst", "mean degrees", "max degrees"], &followed));
    if !fit.limits.is_empty() {
        let limits: Vec<Vec<String>> = fit
            .limits
            .iter()
            .take(LISTED)
            .map(|limit| {
                let share = format!("{:.1}", limit.share * 100.0);
                vec![limit.control.clone(), format!("{:.0}", limit.limit), share]
            })
            .collect();
        parts.push(table(&["control at its limit", "degrees", "% of frames"], &limits));
    }
    let standing: Vec<Vec<String>> = report
        .standing
        .iter()
        .map(|s| {
            vec![
                s.point.clone(),
                format!("{:.2}", s.from),
                format!("{:.2}", s.to),
                format!("{:.1}", s.slide_mm),
            ]
        })
        .collect();
    if !standing.is_empty() {
        parts.push(table(&["stands", "from s", "to s", "slides mm"], &standing));
    }
    parts.push(match report.max_foot_slide_mm {
        Some(slide) => format!("feet slide by at most {slide:.1} mm while they stand"),
        None => "no foot stands still".into(),
    });
    parts.join("\n\n")
}
