//! The page that `eval` writes for a face: the paper's tables 3.1 to 3.3, heat maps of normals and of
//! positions, the spectrum of the error, segments, rigid parts, openings.

use super::eval::{EvalFaceConfig, EvalFaceReport, FaceFigures};
use super::eval_pictures::{Exhibit, Gallery, Heat, parts_sheet, subject};
use super::spectrum::frequency;
use crate::JobError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use understudy_core::Vec3;
use understudy_io::write_atomic;
use understudy_report::html::{Cell, Column, Page, Section, Table};
use understudy_report::plot::{LinePlot, Scale, Series};
use understudy_runtime::face::{FaceTwin, Stage};

/// Side of a picture, pixels.
const SIZE: usize = 300;
/// Columns of heat maps beside the original: more would be too small to see.
const MOST_METHODS: usize = 4;
/// Poses on a sheet.
const MOST_EXHIBITS: usize = 6;

/// Writes `eval.html` and its pictures into the folder; gives the page.
pub(super) fn write(
    folder: &Path,
    config: &EvalFaceConfig,
    twin: &FaceTwin,
    colours: Option<&[Vec3]>,
    report: &EvalFaceReport,
    exhibits: &[Exhibit],
) -> Result<PathBuf, JobError> {
    let names = &report.order;
    let mesh = twin.mesh();
    let gallery =
        Gallery { mesh, colours, subject: subject(twin), methods: shown_methods(names), size: SIZE };
    let shown = shown_exhibits(exhibits);
    let title = |what: &str| format!("{what} on held-out poses of {}", twin.header().rig);
    let normals = gallery.sheet(&title("Angles between normals"), Heat::Normals, &shown);
    let positions = gallery.sheet(&title("Distances"), Heat::Positions, &shown);
    let mut page = Page::new("How good is the face twin?")
        .subtitle(format!("{} held-out poses, {} vertices", report.poses, mesh.vertex_count()))
        .command(config.command.clone())
        .section(Section::new("The model").table(statistics(twin)))
        .section(
            Section::new("Errors")
                .table(by_set(names, report, "Mean distance of a vertex, mm", 3, |m| m.mean_mm))
                .table(by_set(names, report, "Mean angle between face normals, degrees", 2, |m| m.normal_deg))
                .table(table(names, &report.methods)),
        )
        .section(Section::new("Time").table(times(names, report)))
        .section(Section::new("Where the normals are wrong").picture(
            &normals,
            "The original and the methods. Below each face its error: the mean angle of the faces around a \
             vertex.",
        ))
        .section(
            Section::new("Where the positions are wrong")
                .picture(&positions, "The same poses; how far each vertex is from where it belongs."),
        )
        .section(
            Section::new("Error over frequency")
                .plot(
                    &spectrum(names, report),
                    "Power of the error over eigenvalues of the mesh's Laplacian: to the left slow bulges, \
                     to the right neighbours that disagree, which the eye reads as noise.",
                )
                .table(noise(names, report)),
        )
        .section(Section::new("Segments").table(segments(report)));
    if let Some(table) = rigid(report) {
        page = page.section(Section::new("Rigid bodies").table(table));
    }
    page =
        page.section(Section::new("Lips and lids").table(gaps(names, report)))
            .section(Section::new("Parts").picture(
            &parts_sheet(twin, SIZE + 120),
            "Left: a colour per coarse network, grey for rigid segments. Right: regions that are refined.",
        ));
    let path = folder.join("eval.html");
    write_atomic(&folder.join("eval-normals.png"), &normals.to_png())?;
    write_atomic(&folder.join("eval-positions.png"), &positions.to_png())?;
    write_atomic(&path, page.to_html().as_bytes())?;
    Ok(path)
}

/// Of several skins the one with most bones, which stands last.
fn shown_methods(names: &[String]) -> Vec<(usize, String)> {
    let all: Vec<(usize, String)> = names.iter().cloned().enumerate().collect();
    if all.len() <= MOST_METHODS {
        return all;
    }
    let last_skin = names.iter().rposition(|name| name.starts_with("lbs"));
    let skin = |index: &usize| names[*index].starts_with("lbs");
    all.into_iter()
        .filter(|(index, _)| !skin(index) || Some(*index) == last_skin)
        .take(MOST_METHODS)
        .collect()
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

/// Table 3.1.
fn statistics(twin: &FaceTwin) -> Table {
    let parts = twin.parts();
    let count = |stage: Stage| parts.nets.iter().filter(|net| net.stage == stage).count() as f64;
    let rows = [
        ("vertices", twin.vertex_count() as f64),
        ("rig parameters", twin.control_count() as f64),
        ("coarse segments", count(Stage::Coarse)),
        ("refinement segments", count(Stage::Refinement)),
        ("bodies", parts.bodies.len() as f64),
        ("rigid segments that follow", parts.rigid.len() as f64),
        ("million multiply-adds", (twin.multiply_adds() as f64 / 1e6).round()),
    ];
    let table = Table::new([Column::text("part"), Column::number("number", 0)]);
    rows.into_iter().fold(table, |table, (name, number)| table.row([name.into(), number.into()]))
}

/// Table 3.2: a row per method, a column a test set.
fn by_set(
    names: &[String],
    report: &EvalFaceReport,
    caption: &str,
    digits: usize,
    figure: fn(&FaceFigures) -> f64,
) -> Table {
    let sets = report.sets.keys().map(|set| Column::number(set.clone(), digits).lowest_is_best());
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

/// Table 3.3.
fn times(names: &[String], report: &EvalFaceReport) -> Table {
    let mut table = Table::new([Column::text("method"), Column::number("ms per pose", 3).lowest_is_best()])
        .caption("Medians on one thread. Of skinning: without finding the bones.");
    if let Some(ms) = report.original_ms {
        table = table.row(["original rig".into(), ms.into()]);
    }
    for (name, m) in names.iter().filter_map(|name| Some((name, report.methods.get(name)?))) {
        table = table.row([Cell::from(name.clone()), m.ms.into()]);
    }
    table
}

fn table(names: &[String], methods: &BTreeMap<String, FaceFigures>) -> Table {
    let mut table = Table::new([
        Column::text("method"),
        Column::number("mean, mm", 3).lowest_is_best(),
        Column::number("95 %, mm", 3).lowest_is_best(),
        Column::number("max, mm", 2).lowest_is_best(),
        Column::number("normals, degrees", 2).lowest_is_best(),
        Column::number("MB", 2),
    ])
    .caption(match names.iter().any(|name| name.starts_with("lbs")) {
        true => "All poses together. Skinning is fitted to each test pose: the most that it can do.",
        false => "All poses together.",
    });
    for name in names {
        if let Some(m) = methods.get(name) {
            let megabytes = m.bytes as f64 / 1e6;
            let cells = [m.mean_mm, m.p95_mm, m.max_mm, m.normal_deg, megabytes].map(Cell::from);
            table = table.row(std::iter::once(Cell::from(name.clone())).chain(cells));
        }
    }
    table
}

fn noise(names: &[String], report: &EvalFaceReport) -> Table {
    let mut table = Table::new([
        Column::text("method"),
        Column::number("power between neighbours, 1/1000 mm²", 3).lowest_is_best(),
        Column::number("share of all power, %", 2).lowest_is_best(),
    ])
    .caption("The upper half of the spectrum.");
    for (name, figures) in names.iter().filter_map(|name| Some((name, report.spectrum.get(name)?))) {
        let numbers = [figures.high_power * 1e3, figures.high_share * 100.0];
        table = table.row(std::iter::once(Cell::from(name.clone())).chain(numbers.map(Cell::from)));
    }
    table
}

fn segments(report: &EvalFaceReport) -> Table {
    let mut table = Table::new([
        Column::text("segment"),
        Column::text("moved by"),
        Column::number("vertices", 0),
        Column::number("mean", 3),
        Column::number("max", 2),
        Column::number("normals", 2),
        Column::number("bends", 4),
        Column::number("in the original", 4),
    ])
    .caption(
        "The twin; millimetres, normals in degrees. Bends: the largest change of a distance inside the segment, \
         beside that of the original.",
    );
    for s in &report.segments {
        let numbers = [s.vertices as f64, s.mean_mm, s.max_mm, s.normal_deg, s.bends_mm, s.original_bends_mm];
        let text = [Cell::from(s.name.clone()), Cell::from(s.kind)];
        table = table.row(text.into_iter().chain(numbers.map(Cell::from)));
    }
    table
}

fn rigid(report: &EvalFaceReport) -> Option<Table> {
    report.rigid.as_ref()?;
    let mut table = Table::new([
        Column::text("what the original does not bend"),
        Column::number("segments", 0),
        Column::number("bends, cm", 6),
        Column::number("largest mean, mm", 3),
        Column::number("max, mm", 3),
        Column::text("worst"),
    ]);
    for (name, figures) in [("all segments", &report.rigid), ("single teeth", &report.teeth)] {
        if let Some(f) = figures {
            let numbers = [f.segments as f64, f.bends_cm, f.mean_mm, f.max_mm].map(Cell::from);
            let cells = std::iter::once(Cell::from(name)).chain(numbers);
            table = table.row(cells.chain([Cell::from(f.worst.clone())]));
        }
    }
    Some(table)
}

fn gaps(names: &[String], report: &EvalFaceReport) -> Table {
    let mut table = Table::new([
        Column::text("method"),
        Column::number("pairs", 0),
        Column::number("open in truth", 0),
        Column::number("stuck", 0).lowest_is_best(),
        Column::number("smallest share", 2).highest_is_best(),
        Column::number("width error, mm", 3).lowest_is_best(),
        Column::number("closed in truth", 0),
        Column::number("ajar", 0).lowest_is_best(),
    ])
    .caption(
        "Pairs of vertices across lips and lids, which touch at rest or in a pose and part elsewhere. Stuck: less \
         than half as wide as in truth. Ajar: open by 3 mm more than in truth.",
    );
    for name in names {
        if let Some(g) = report.gaps.get(name) {
            let [pairs, open, stuck] = [g.pairs, g.open, g.stuck].map(|n| n as f64);
            let numbers = [pairs, open, stuck, g.smallest_share, g.rms_mm, g.closed as f64, g.ajar as f64];
            table = table.row(std::iter::once(Cell::from(name.clone())).chain(numbers.map(Cell::from)));
        }
    }
    table
}

fn spectrum(names: &[String], report: &EvalFaceReport) -> LinePlot {
    let mut plot = LinePlot::new("Spectrum of the error")
        .x_label("eigenvalue of the Laplacian")
        .y_label("mean power, mm²")
        .y_scale(Scale::Log)
        .size(760.0, 340.0);
    for name in names {
        if let Some(figures) = report.spectrum.get(name) {
            let points = figures.bands.iter().enumerate().filter(|(_, power)| **power > 0.0);
            let points = points.map(|(band, power)| [frequency(band), *power]).collect();
            plot = plot.series(Series::new(name.clone(), points));
        }
    }
    plot
}
