//! The page that `eval` writes: table, histogram (the paper's figure 2.6), heat maps, seams.

use super::eval::{EvalConfig, EvalReport, Exhibit, MethodFigures};
use crate::JobError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use understudy_core::metrics::{distances, percentile};
use understudy_core::{Mesh, Random, Vec3};
use understudy_io::write_atomic;
use understudy_report::html::{Cell, Column, Page, Section, Table};
use understudy_report::plot::{BarChart, BarSeries, LinePlot, Scale, Series};
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_report::{HeatScale, Picture, Sheet};

/// Side of a picture, pixels.
const SIZE: usize = 360;

/// Writes `eval.html` and its heat maps into the folder; gives the page.
pub(crate) fn write(
    folder: &Path,
    config: &EvalConfig,
    mesh: &Mesh,
    names: &[String],
    report: &EvalReport,
    errors: &[(&str, &[f32])],
    exhibits: &[Exhibit],
    owner: &[u32],
) -> Result<PathBuf, JobError> {
    let heat = heat_sheet(mesh, exhibits);
    let seam_sheet = seam_sheet(mesh, owner, exhibits);
    let mut page = Page::new("How good is the twin?")
        .subtitle(format!("{} held-out poses, {} vertices", report.poses, mesh.vertex_count()))
        .command(config.command.clone());
    let mut all = Section::new("All test poses").table(table(names, &report.methods));
    if let Some(sentence) = fitted_to(report) {
        all = all.paragraph(sentence);
    }
    page = page.section(all);
    for (set, methods) in &report.sets {
        page = page.section(Section::new(set.clone()).table(table(names, methods)));
    }
    let seams = report.seams;
    let mut seam_text = format!(
        "Along edges between groups the error jumps by {:.4} cm, inside groups by {:.4} cm ({:.2} times). Where a \
         rig is hard to follow groups are small and borders many; against the insides of the two groups \
         that meet, a border's jump is {:.2} times as large.",
        seams.border_cm, seams.inside_cm, seams.plain_ratio, seams.ratio
    );
    if let (Some(control), Some(against)) = (seams.control_ratio, seams.against_control) {
        seam_text += &format!(
            " Fitted skinning, which has no groups, jumps {control:.2} times as far on the very same edges: \
             the borders themselves change that by a factor of {against:.2}."
        );
    }
    page = page
        .section(
            Section::new("Distribution of errors")
                .plot(&histogram(errors), "Share of vertices a bin, logarithmic."),
        )
        .section(
            Section::new("Mean error").plot(&bars(names, report), "Every method on the same test poses."),
        )
        .section(
            Section::new("Where the errors are")
                .picture(&heat, "Original, twin and fitted skinning; errors in cm."),
        )
        .section(
            Section::new("Seams")
                .paragraph(seam_text)
                .picture(&seam_sheet, "Groups of vertices, one network each, and how much the error jumps."),
        );
    let path = folder.join("eval.html");
    write_atomic(&folder.join("eval-heat.png"), &heat.to_png())?;
    write_atomic(&folder.join("eval-seams.png"), &seam_sheet.to_png())?;
    write_atomic(&path, page.to_html().as_bytes())?;
    Ok(path)
}

/// Which method was fitted to how much.
pub(crate) fn fitted_to(report: &EvalReport) -> Option<String> {
    let all = report.training_poses?;
    let fitted = |name: &String| report.fits.get(name).map(|fit| format!("{name} {}", fit.poses));
    let list: Vec<String> = report.order.iter().filter_map(fitted).collect();
    (!list.is_empty()).then(|| {
        let list = list.join(", ");
        format!("Of the {all} poses of the training set the baselines were fitted to so many, spread evenly: {list}.")
    })
}

fn table(names: &[String], methods: &BTreeMap<String, MethodFigures>) -> Table {
    let mut table = Table::new([
        Column::text("method"),
        Column::number("mean, cm", 4).lowest_is_best(),
        Column::number("95 %, cm", 4).lowest_is_best(),
        Column::number("max, cm", 2).lowest_is_best(),
        Column::number("enveloping error", 1).lowest_is_best(),
        Column::number("ms per pose", 3).lowest_is_best(),
        Column::number("MB", 2),
    ]);
    for name in names {
        if let Some(m) = methods.get(name) {
            let megabytes = m.bytes as f64 / 1e6;
            let cells = [m.mean_cm, m.p95_cm, m.max_cm, m.ee, m.ms, megabytes].map(Cell::from);
            table = table.row(std::iter::once(Cell::from(name.clone())).chain(cells));
        }
    }
    table
}

fn bars(names: &[String], report: &EvalReport) -> BarChart {
    let values = names.iter().filter_map(|name| report.methods.get(name)).map(|m| m.mean_cm).collect();
    BarChart::new("Mean error", "cm").categories(names.iter().cloned()).series(BarSeries::new("mean", values))
}

/// Lines instead of bars, so that several methods fit into one picture.
fn histogram(errors: &[(&str, &[f32])]) -> LinePlot {
    let shown: Vec<&(&str, &[f32])> =
        errors.iter().filter(|(name, _)| ["twin", "lbs4", "rr15", "wpsd100"].contains(name)).collect();
    let top = shown.iter().flat_map(|(_, e)| e.iter().copied()).fold(0.0f32, f32::max).max(1e-6);
    const BINS: usize = 60;
    let mut plot = LinePlot::new("Errors of vertices")
        .x_label("distance, cm")
        .y_label("share of vertices")
        .y_scale(Scale::Log);
    for (name, errors) in shown {
        let mut counts = [0usize; BINS];
        for error in *errors {
            counts[((error / top * BINS as f32) as usize).min(BINS - 1)] += 1;
        }
        let point = |(bin, count): (usize, &usize)| {
            [(bin as f64 + 0.5) / BINS as f64 * f64::from(top), *count as f64 / errors.len() as f64]
        };
        let points = counts.iter().enumerate().filter(|(_, count)| **count > 0).map(point).collect();
        plot = plot.series(Series::new(*name, points));
    }
    plot
}

fn heat_sheet(mesh: &Mesh, exhibits: &[Exhibit]) -> Picture {
    let with_skin = exhibits.iter().any(|e| e.skinned.is_some());
    let misses = |e: &Exhibit| distances(e.skinned.as_ref().unwrap_or(&e.twin), &e.truth);
    let mut all: Vec<f32> = exhibits.iter().flat_map(misses).collect();
    all.sort_unstable_by(f32::total_cmp);
    let scale = HeatScale::new(0.0, (percentile(&all, 99.0) as f32).max(1e-3), "error, cm");
    let mut labels = vec!["original", "twin"];
    if with_skin {
        labels.push("fitted skinning (4 influences)");
    }
    let mut sheet =
        Sheet::new(labels.len()).title("Errors on held-out poses").column_labels(labels).colour_bar(&scale);
    let settings = RenderSettings { width: SIZE, height: SIZE, ..RenderSettings::default() };
    // Some of every test set.
    for exhibit in exhibits.iter().step_by(exhibits.len().div_ceil(8).max(1)) {
        let camera = Camera::framing_points(&exhibit.truth, 30.0, 6.0, 1.0);
        let plain = render(&[Actor::new(mesh.faces(), &exhibit.truth)], &camera, &settings);
        sheet = sheet.cell(plain, exhibit.caption.clone());
        for vertices in std::iter::once(&exhibit.twin).chain(&exhibit.skinned) {
            let misses = distances(vertices, &exhibit.truth);
            let mean = misses.iter().sum::<f32>() / misses.len() as f32;
            let worst = misses.iter().copied().fold(0.0f32, f32::max);
            let actor = Actor::new(mesh.faces(), vertices).heat(&misses, &scale);
            let picture = render(&[actor], &camera, &settings);
            sheet = sheet.cell(picture, format!("mean {mean:.3}, max {worst:.2} cm"));
        }
    }
    sheet.build()
}

/// Each group in a colour of its own, and beside it how much the twin's error differs from that of the
/// neighbouring vertices: a seam would show as a line along a border.
fn seam_sheet(mesh: &Mesh, owner: &[u32], exhibits: &[Exhibit]) -> Picture {
    let colour = |group: &u32| {
        let mut random = Random::stream(3, u64::from(*group));
        Vec3::new(random.uniform(0.25, 0.95), random.uniform(0.25, 0.95), random.uniform(0.25, 0.95))
    };
    let colours: Vec<Vec3> = owner.iter().map(colour).collect();
    let adjacency = mesh.adjacency();
    let jumps = |exhibit: &Exhibit| -> Vec<f32> {
        let error = |vertex: usize| exhibit.twin[vertex] - exhibit.truth[vertex];
        let jump = |vertex: usize| {
            let near = adjacency.neighbours(vertex);
            let sum: f32 = near.iter().map(|other| error(*other as usize).distance(error(vertex))).sum();
            sum / near.len().max(1) as f32
        };
        (0..exhibit.truth.len()).map(jump).collect()
    };
    let shown: Vec<&Exhibit> = exhibits.iter().step_by(4).take(3).collect();
    let mut all: Vec<f32> = shown.iter().flat_map(|exhibit| jumps(exhibit)).collect();
    all.sort_unstable_by(f32::total_cmp);
    let scale = HeatScale::new(0.0, (percentile(&all, 99.0) as f32).max(1e-4), "jump of the error, cm");
    let labels = vec!["groups", "jump of the twin's error"];
    let mut sheet = Sheet::new(2).title("Seams").column_labels(labels).colour_bar(&scale);
    let settings = RenderSettings { width: SIZE, height: SIZE, ..RenderSettings::default() };
    for exhibit in shown {
        let camera = Camera::framing_points(&exhibit.truth, 30.0, 6.0, 1.0);
        let coloured = Actor::new(mesh.faces(), &exhibit.twin).colours(&colours);
        sheet = sheet.cell(render(&[coloured], &camera, &settings), exhibit.caption.clone());
        let jumps = jumps(exhibit);
        let mean = jumps.iter().sum::<f32>() / jumps.len() as f32;
        let actor = Actor::new(mesh.faces(), &exhibit.twin).heat(&jumps, &scale);
        sheet = sheet.cell(render(&[actor], &camera, &settings), format!("mean {mean:.4} cm"));
    }
    sheet.build()
}
