//! The page of `learn auto`: error against milliseconds, error against megabytes, and why one was chosen.

use super::{AutoConfig, AutoReport, Trial};
use crate::JobError;
use std::path::{Path, PathBuf};
use understudy_report::html::{Cell, Column, Page, Section, Table};
use understudy_report::plot::{LinePlot, Plot, Scale, Series};

/// Writes `auto.html` and its two plots as files of their own.
pub(super) fn write(folder: &Path, config: &AutoConfig, report: &AutoReport) -> Result<PathBuf, JobError> {
    let plots = [
        ("error-ms.svg", "Error against time", plot(report, config, "ms per pose, one thread", |t| t.ms)),
        ("error-mb.svg", "Error against size", plot(report, config, "MB", |t| t.bytes as f64 / 1e6)),
    ];
    let [trained, held] = report.trial_poses;
    let mut section = Section::new("Trials").paragraph(format!("{}.", report.why)).paragraph(format!(
        "Each kind was trained for about {} min on {trained} poses and measured on {held} others. The chosen one was \
         then learned in full: {:.3} mm on {} held-back poses, {:.3} ms, {:.2} MB.",
        config.trial_minutes,
        report.learned.held_back.mean_mm,
        report.learned.held_back.poses,
        report.ms,
        report.learned.bytes as f64 / 1e6
    ));
    section = section.table(table(report));
    for (_, caption, plot) in &plots {
        section = section.plot(plot, caption);
    }
    for one in &report.left_out {
        section = section.paragraph(format!("{} was left out: {}.", one.kind, one.reason));
    }
    let title = format!("Which twin for {}", report.learned.rig);
    let page = Page::new(title).command(config.command.clone()).section(section);
    for (name, _, plot) in &plots {
        understudy_io::write_atomic(&folder.join(name), plot.to_svg().as_bytes())?;
    }
    let path = folder.join("auto.html");
    understudy_io::write_atomic(&path, page.to_html().as_bytes())?;
    Ok(path)
}

fn table(report: &AutoReport) -> Table {
    let head = [
        Column::text("kind"),
        Column::number("mean, mm", 3).lowest_is_best(),
        Column::number("95 %, mm", 3).lowest_is_best(),
        Column::number("max, mm", 2).lowest_is_best(),
        Column::number("ms per pose", 3).lowest_is_best(),
        Column::number("MB", 2).lowest_is_best(),
        Column::number("trained, s", 0),
    ];
    report.trials.iter().fold(Table::new(head), |table, t| {
        table.row([
            Cell::from(t.kind),
            t.mean_mm.into(),
            t.p95_mm.into(),
            t.max_mm.into(),
            t.ms.into(),
            (t.bytes as f64 / 1e6).into(),
            t.seconds.into(),
        ])
    })
}

/// A point per kind; lines where the limits are.
fn plot(report: &AutoReport, config: &AutoConfig, label: &str, across: fn(&Trial) -> f64) -> LinePlot {
    let of = |pick: &dyn Fn(&Trial) -> f64| -> [f64; 2] {
        let all = report.trials.iter().map(pick);
        all.fold([f64::INFINITY, 0.0], |[low, high], value| [low.min(value), high.max(value)])
    };
    let (x, y) = (of(&across), of(&|trial| trial.mean_mm));
    let mut plot = LinePlot::new("").x_label(label).y_label("mean error, mm").x_scale(Scale::Log);
    plot = plot.y_scale(Scale::Log);
    for trial in &report.trials {
        let name = match trial.kind == report.chosen {
            true => format!("{} (chosen)", trial.kind),
            false => trial.kind.to_owned(),
        };
        plot = plot.series(Series::new(name, vec![[across(trial), trial.mean_mm]]));
    }
    let limits = &config.limits;
    let budget = if label == "MB" { limits.budget_mb } else { limits.budget_ms };
    if let Some(budget) = budget {
        plot = plot.series(Series::new("budget", vec![[budget, 0.8 * y[0]], [budget, 1.25 * y[1]]]));
    }
    if let Some(target) = limits.target_mm {
        plot = plot.series(Series::new("target", vec![[0.8 * x[0], target], [1.25 * x[1], target]]));
    }
    plot
}
