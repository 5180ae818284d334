//! The page that `eval` writes, the same for every kind: tables, heat maps of normals and of positions, the distribution
//! of errors, and what else was measured.

use super::pictures::{Exhibit, Gallery, Heat, SIZE};
use super::{EvalReport, MethodFigures, Weighed};
use crate::JobError;
use crate::twin::kinds::kind;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use understudy_core::Vec3;
use understudy_io::write_atomic;
use understudy_report::html::{Cell, Column, Page, Section, Table};
use understudy_report::plot::{LinePlot, Scale, Series};

/// Columns of heat maps beside the original: more would be too small to see.
const MOST_METHODS: usize = 4;
/// Poses on a sheet.
const MOST_EXHIBITS: usize = 6;

/// Writes `eval.html` and its pictures into the folder; gives the page.
pub(super) fn write(
    folder: &Path,
    command: &str,
    weighed: &Weighed,
    colours: Option<&[Vec3]>,
) -> Result<PathBuf, JobError> {
    let Weighed { report, twin, exhibits, figures, errors, mesh } = weighed;
    let names = &report.order;
    let subject = kind(twin).subject();
    let gallery = Gallery { mesh, colours, subject, methods: shown_methods(names), size: SIZE };
    let shown = shown_exhibits(exhibits);
    let title = |what: &str| format!("{what} on held-out poses of {}", twin.header().rig);
    let normals = gallery.sheet(&title("Angles between normals"), Heat::Normals, &shown);
    let positions = gallery.sheet(&title("Distances"), Heat::Positions, &shown);
    let mut all = Section::new("Errors")
        .table(by_set(names, report, "Mean distance of a vertex, mm", 3, |m| m.mean_mm))
        .table(by_set(names, report, "Mean angle between face normals, degrees", 2, |m| m.normal_deg))
        .table(table(names, &report.methods));
    if let Some(sentence) = fitted_to(report) {
        all = all.paragraph(sentence);
    }
    let mut page = Page::new("How good is the twin?")
        .subtitle(format!(
            "{}, a {} twin: {} held-out poses, {} vertices",
            twin.header().rig,
            report.kind,
            report.poses,
            mesh.vertex_count()
        ))
        .command(command)
        .section(Section::new("The model").table(statistics(weighed)))
        .section(all)
        .section(Section::new("Time").table(times(names, report)))
        .section(Section::new("Where the normals are wrong").picture(
            &normals,
            "The original and the methods. Below each its error: the mean angle of the faces around a vertex.",
        ))
        .section(
            Section::new("Where the positions are wrong")
                .picture(&positions, "The same poses; how far each vertex is from where it belongs."),
        )
        .section(
            Section::new("Distribution of errors")
                .plot(&histogram(names, errors), "Share of vertices a bin, logarithmic."),
        );
    for section in figures.iter().filter_map(|figures| figures.section(exhibits)) {
        page = page.section(section);
    }
    let path = folder.join("eval.html");
    write_atomic(&folder.join("eval-normals.png"), &normals.to_png())?;
    write_atomic(&folder.join("eval-positions.png"), &positions.to_png())?;
    write_atomic(&path, page.to_html().as_bytes())?;
    Ok(path)
}

/// Of several skins the one with most bones, which stands last.
fn shown_methods(names: &[String]) -> Vec<(usize, String)> {
    // One bone a vertex is nothing to look at.
    let all = names.iter().cloned().enumerate().filter(|(_, name)| name != "rigid");
    let last_skin = names.iter().rposition(|name| name.starts_with("lbs"));
    let skin = |index: &usize| names[*index].starts_with("lbs");
    all.filter(|(index, _)| !skin(index) || Some(*index) == last_skin).take(MOST_METHODS).collect()
}

/// The strongest expression of every set, then others, in the order of the sets.
fn shown_exhibits(exhibits: &[Exhibit]) -> Vec<&Exhibit> {
    let first = |index: usize| index == 0 || exhibits[index - 1].set != exhibits[index].set;
    let mut chosen: Vec<usize> = (0..exhibits.len()).filter(|index| first(*index)).collect();
    chosen.extend((0..exhibits.len()).filter(|index| !first(*index)));
    chosen.truncate(MOST_EXHIBITS);
    chosen.sort_unstable();
    chosen.into_iter().map(|index| &exhibits[index]).collect()
}

/// What the twin consists of.
fn statistics(weighed: &Weighed) -> Table {
    let Weighed { twin, mesh, .. } = weighed;
    let inputs = &twin.header().inputs;
    let common = [
        ("vertices", mesh.vertex_count()),
        ("bones that pose it", inputs.bones.len()),
        ("controls that pose it", inputs.controls.len()),
        ("multiply-adds a pose", twin.multiply_adds()),
    ];
    let rows = common.into_iter().chain(kind(twin).statistics()).filter(|(_, number)| *number > 0);
    let table = Table::new([Column::text("part"), Column::number("number", 0)]);
    rows.fold(table, |table, (name, number)| table.row([name.into(), (number as f64).into()]))
}

/// A row per method, a column a test set.
fn by_set(
    names: &[String],
    report: &EvalReport,
    caption: &str,
    digits: usize,
    figure: fn(&MethodFigures) -> f64,
) -> Table {
    let title = |set: &String| match report.kept_for_tests.contains(set) {
        true => format!("{set} (kept for tests)"),
        false => set.clone(),
    };
    let sets = report.sets.keys().map(|set| Column::number(title(set), digits).lowest_is_best());
    let all = Column::number("all", digits).lowest_is_best();
    let mut table =
        Table::new(std::iter::once(Column::text("method")).chain(sets).chain([all])).caption(caption);
    for name in names {
        let columns = report.sets.values().chain([&report.methods]);
        let numbers = columns.filter_map(|methods| methods.get(name)).map(|m| Cell::from(figure(m)));
        table = table.row(std::iter::once(Cell::from(name.clone())).chain(numbers));
    }
    table
}

fn times(names: &[String], report: &EvalReport) -> Table {
    let mut table = Table::new([Column::text("method"), Column::number("ms per pose", 3).lowest_is_best()])
        .caption("Medians on one thread. Of skins that follow each pose: without finding their bones.");
    if let Some(ms) = report.original_ms {
        table = table.row(["original rig".into(), ms.into()]);
    }
    for (name, m) in names.iter().filter_map(|name| Some((name, report.methods.get(name)?))) {
        table = table.row([Cell::from(name.clone()), m.ms.into()]);
    }
    table
}

fn table(names: &[String], methods: &BTreeMap<String, MethodFigures>) -> Table {
    let rows: Vec<(&String, &MethodFigures)> =
        names.iter().filter_map(|name| Some((name, methods.get(name)?))).collect();
    let with_bones = rows.iter().any(|(_, m)| m.ee.is_some());
    let follows = !with_bones && names.iter().any(|name| name.starts_with("lbs"));
    let mut columns = vec![
        Column::text("method"),
        Column::number("mean, mm", 3).lowest_is_best(),
        Column::number("95 %, mm", 3).lowest_is_best(),
        Column::number("max, mm", 2).lowest_is_best(),
        Column::number("normals, degrees", 2).lowest_is_best(),
        Column::number("MB", 2),
    ];
    columns.extend(with_bones.then(|| Column::number("enveloping error", 1).lowest_is_best()));
    let mut table = Table::new(columns).caption(match follows {
        true => "All poses together. Skinning is fitted to each test pose: the most that it can do.",
        false => "All poses together.",
    });
    for (name, m) in rows {
        let megabytes = m.bytes as f64 / 1e6;
        let cells = [m.mean_mm, m.p95_mm, m.max_mm, m.normal_deg, megabytes].into_iter().chain(m.ee);
        table = table.row(std::iter::once(Cell::from(name.clone())).chain(cells.map(Cell::from)));
    }
    table
}

/// Which method was fitted to how much.
fn fitted_to(report: &EvalReport) -> Option<String> {
    let all = report.training_poses?;
    let fitted = |name: &String| report.fits.get(name).map(|fit| format!("{name} {}", fit.poses));
    let list: Vec<String> = report.order.iter().filter_map(fitted).collect();
    (!list.is_empty()).then(|| {
        let list = list.join(", ");
        format!("Of the {all} poses of the training set the baselines were fitted to so many, spread evenly: {list}.")
    })
}

/// Lines instead of bars, so that several methods fit into one picture.
fn histogram(names: &[String], errors: &[Vec<f32>]) -> LinePlot {
    const BINS: usize = 60;
    let shown: Vec<(usize, String)> = shown_methods(names);
    let of = |(method, _): &(usize, String)| errors[*method].iter().copied();
    let top = shown.iter().flat_map(of).fold(0.0f32, f32::max).max(1e-6);
    let mut plot = LinePlot::new("Errors of vertices")
        .x_label("distance, mm")
        .y_label("share of vertices")
        .y_scale(Scale::Log);
    for (method, name) in shown {
        let mut counts = [0usize; BINS];
        for error in &errors[method] {
            counts[((error / top * BINS as f32) as usize).min(BINS - 1)] += 1;
        }
        let point = |(bin, count): (usize, &usize)| {
            [
                10.0 * (bin as f64 + 0.5) / BINS as f64 * f64::from(top),
                *count as f64 / errors[method].len() as f64,
            ]
        };
        let points = counts.iter().enumerate().filter(|(_, count)| **count > 0).map(point).collect();
        plot = plot.series(Series::new(name, points));
    }
    plot
}
