//! The page that `eval` writes for a face: the paper's tables 3.1 to 3.3, the spectrum of the error, heat
//! maps of normals, segments, openings.

use super::eval::{EvalFaceConfig, EvalFaceReport, Exhibit, FaceFigures};
use super::spectrum::frequency;
use crate::JobError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use understudy_core::metrics::{normal_angles, percentile};
use understudy_core::{Mesh, Random, Vec3};
use understudy_io::write_atomic;
use understudy_report::html::{Cell, Column, Page, Section, Table};
use understudy_report::plot::{LinePlot, Scale, Series};
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_report::{HeatScale, Picture, Sheet};
use understudy_runtime::face::{FaceTwin, Stage};

/// Side of a picture, pixels.
const SIZE: usize = 360;

/// Writes `eval.html` and its heat maps into the folder; gives the page.
pub(super) fn write(
    folder: &Path,
    config: &EvalFaceConfig,
    twin: &FaceTwin,
    names: &[String],
    report: &EvalFaceReport,
    exhibits: &[Exhibit],
) -> Result<PathBuf, JobError> {
    let mesh = &twin.parts().mesh;
    let heat = heat_sheet(mesh, names, exhibits);
    let mut page = Page::new("How good is the face twin?")
        .subtitle(format!("{} held-out poses, {} vertices", report.poses, mesh.vertex_count()))
        .command(config.command.clone())
        .section(Section::new("The model").table(statistics(twin)))
        .section(Section::new("All test poses").table(table(names, &report.methods)));
    for (set, methods) in &report.sets {
        page = page.section(Section::new(set.clone()).table(table(names, methods)));
    }
    page = page
        .section(
            Section::new("Where the normals are wrong")
                .picture(&heat, "The original and every method; angles between normals, degrees."),
        )
        .section(Section::new("Error over frequency").plot(
            &spectrum(names, report),
            "Power of the error over eigenvalues of the mesh's Laplacian: to the left slow bulges, to the \
             right neighbours that disagree, which the eye reads as noise.",
        ))
        .section(Section::new("Segments").table(segments(report)))
        .section(Section::new("Openings").table(gaps(names, report)))
        .section(Section::new("Parts").picture(
            &parts_picture(twin),
            "Left: a colour a coarse network, grey for rigid segments. Right: regions that are refined.",
        ));
    let path = folder.join("eval.html");
    write_atomic(&folder.join("eval-normals.png"), &heat.to_png())?;
    write_atomic(&path, page.to_html().as_bytes())?;
    Ok(path)
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
        ("rigid segments", parts.rigid.len() as f64),
        ("million multiply-adds", (twin.multiply_adds() as f64 / 1e6).round()),
    ];
    let table = Table::new([Column::text("part"), Column::number("number", 0)]);
    rows.into_iter().fold(table, |table, (name, number)| table.row([name.into(), number.into()]))
}

/// Tables 3.2 and 3.3.
fn table(names: &[String], methods: &BTreeMap<String, FaceFigures>) -> Table {
    let mut table = Table::new([
        Column::text("method"),
        Column::number("mean, mm", 3).lowest_is_best(),
        Column::number("95 %, mm", 3).lowest_is_best(),
        Column::number("max, mm", 2).lowest_is_best(),
        Column::number("normals, degrees", 2).lowest_is_best(),
        Column::number("ms a pose", 3).lowest_is_best(),
        Column::number("MB", 2),
    ]);
    for name in names {
        if let Some(m) = methods.get(name) {
            let megabytes = m.bytes as f64 / 1e6;
            let cells = [m.mean_mm, m.p95_mm, m.max_mm, m.normal_deg, m.ms, megabytes].map(Cell::from);
            table = table.row(std::iter::once(Cell::from(name.clone())).chain(cells));
        }
    }
    table
}

fn segments(report: &EvalFaceReport) -> Table {
    let mut table = Table::new([
        Column::text("segment"),
        Column::text("moved by"),
        Column::number("vertices", 0),
        Column::number("mean, mm", 3),
        Column::number("max, mm", 2),
        Column::number("normals, degrees", 2),
    ]);
    for segment in &report.segments {
        let numbers = [segment.vertices as f64, segment.mean_mm, segment.max_mm, segment.normal_deg];
        let text = [Cell::from(segment.name.clone()), Cell::from(segment.kind)];
        table = table.row(text.into_iter().chain(numbers.map(Cell::from)));
    }
    table
}

fn gaps(names: &[String], report: &EvalFaceReport) -> Table {
    let mut table = Table::new([
        Column::text("method"),
        Column::number("openings", 0),
        Column::number("open in truth", 0),
        Column::number("stuck", 0).lowest_is_best(),
        Column::number("smallest share", 2).highest_is_best(),
        Column::number("width error, mm", 3).lowest_is_best(),
    ])
    .caption("Pairs of vertices that touch at rest, across lips and lids. Stuck: less than half as wide as in truth.");
    for name in names {
        if let Some(g) = report.gaps.get(name) {
            let numbers = [g.pairs as f64, g.open as f64, g.stuck as f64, g.smallest_share, g.rms_mm];
            table = table.row(std::iter::once(Cell::from(name.clone())).chain(numbers.map(Cell::from)));
        }
    }
    table
}

fn spectrum(names: &[String], report: &EvalFaceReport) -> LinePlot {
    let mut plot = LinePlot::new("Spectrum of the error")
        .x_label("eigenvalue of the Laplacian")
        .y_label("mean power, mm²")
        .y_scale(Scale::Log);
    for name in names {
        if let Some(figures) = report.spectrum.get(name) {
            let points = figures.bands.iter().enumerate().filter(|(_, power)| **power > 0.0);
            let points = points.map(|(band, power)| [frequency(band), *power]).collect();
            plot = plot.series(Series::new(name.clone(), points));
        }
    }
    plot
}

/// The mean angle of the faces around each vertex, degrees.
fn vertex_angles(mesh: &Mesh, truth: &[Vec3], now: &[Vec3]) -> Vec<f32> {
    let mut sums = vec![(0.0f32, 0u32); mesh.vertex_count()];
    for (angle, face) in normal_angles(mesh.faces(), truth, now).iter().zip(mesh.faces()) {
        for &corner in face.corners() {
            sums[corner as usize].0 += angle;
            sums[corner as usize].1 += 1;
        }
    }
    sums.iter().map(|(sum, count)| sum / (*count).max(1) as f32).collect()
}

fn heat_sheet(mesh: &Mesh, names: &[String], exhibits: &[Exhibit]) -> Picture {
    let mut all: Vec<f32> = exhibits
        .iter()
        .flat_map(|e| e.methods.iter().flat_map(|m| vertex_angles(mesh, &e.truth, m)))
        .collect();
    all.sort_unstable_by(f32::total_cmp);
    let scale = HeatScale::new(0.0, (percentile(&all, 98.0) as f32).max(0.5), "normals, degrees");
    let mut sheet = Sheet::new(names.len() + 1)
        .title("Angles between normals on held-out poses")
        .column_labels(std::iter::once("original".to_owned()).chain(names.iter().cloned()))
        .colour_bar(&scale);
    let settings = RenderSettings { width: SIZE, height: SIZE, ..RenderSettings::default() };
    for exhibit in exhibits.iter().take(6) {
        let camera = Camera::framing_points(&exhibit.truth, 20.0, 4.0, 1.0);
        let plain = render(&[Actor::new(mesh.faces(), &exhibit.truth)], &camera, &settings);
        sheet = sheet.cell(plain, exhibit.caption.clone());
        for vertices in &exhibit.methods {
            let angles = vertex_angles(mesh, &exhibit.truth, vertices);
            let mean = angles.iter().sum::<f32>() / angles.len().max(1) as f32;
            let actor = Actor::new(mesh.faces(), vertices).heat(&angles, &scale);
            sheet = sheet.cell(render(&[actor], &camera, &settings), format!("mean {mean:.2}°"));
        }
    }
    sheet.build()
}

/// Figures 3.6 and 3.7.
fn parts_picture(twin: &FaceTwin) -> Picture {
    let mesh = &twin.parts().mesh;
    let grey = Vec3::splat(0.6);
    let camera = Camera::framing_points(mesh.positions(), 20.0, 4.0, 1.0);
    let settings = RenderSettings { width: SIZE + 100, height: SIZE + 100, ..RenderSettings::default() };
    let mut sheet = Sheet::new(2).column_labels(["coarse networks", "refinement networks"]);
    for stage in [Stage::Coarse, Stage::Refinement] {
        let mut colours = vec![grey; mesh.vertex_count()];
        for (index, net) in twin.parts().nets.iter().enumerate().filter(|(_, net)| net.stage == stage) {
            let mut random = Random::stream(5, index as u64);
            let colour = Vec3::from_array([0; 3].map(|_| random.uniform(0.2, 0.95)));
            net.vertices.iter().for_each(|v| colours[*v as usize] = colour);
        }
        let actor = Actor::new(mesh.faces(), mesh.positions()).colours(&colours);
        sheet = sheet.cell(render(&[actor], &camera, &settings), "");
    }
    sheet.build()
}
