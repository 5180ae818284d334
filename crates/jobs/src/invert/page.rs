//! The page of an inversion: the paper's tables and figures for one take.

use super::study::{Scene, Study, StudyCurve, StudyRow};
use super::{InvertConfig, InvertReport};
use understudy_core::metrics::distances;
use understudy_core::{BlendshapeRig, Mesh, Vec3};
use understudy_report::html::{Cell, Column, Page, Section, Table};
use understudy_report::plot::{BarChart, BarSeries, LinePlot, Scale, Series};
use understudy_report::raster::{Actor, Backdrop, Camera, Ground, RenderSettings, render};
use understudy_report::{HeatScale, Picture, Sheet, Theme};
use understudy_rigs::Rig;
use understudy_solve::inverse_rig::Alpha;

/// The page of `understudy invert --report`.
pub(super) fn of_take(
    config: &InvertConfig,
    report: &InvertReport,
    rig: &dyn Rig,
    scene: &Scene<'_>,
    weights: &[Vec<f64>],
    study: &Study,
) -> Page {
    let metrics = &report.metrics;
    let mut page = Page::new(format!("Inverse rig: {}", report.rig))
        .subtitle(format!(
            "{} frames of {} vertices, {} shapes and {} correctives",
            report.frames,
            report.vertices,
            report.shapes,
            report.correctives.iter().sum::<usize>()
        ))
        .command(config.command.clone())
        .fact("method", report.settings.method.title())
        .fact("α", alpha_text(report.settings.alpha))
        .fact("order", report.settings.order.title())
        .fact("passes", report.settings.passes.to_string())
        .fact("noise σ", format!("{} cm", config.noise_cm))
        .figure("RMSE", format!("{:.2} mm", 10.0 * metrics.rmse_cm), "mean over the frames")
        .figure("95th percentile", format!("{:.2} mm", 10.0 * metrics.p95_cm), "of the vertices' errors")
        .figure("weights on", format!("{:.1}", metrics.cardinality), format!("of {}", report.shapes))
        .figure(
            "time",
            format!("{:.2} ms", report.solve_ms_per_frame),
            format!("a frame, {} threads", config.threads),
        );
    let error = |f: fn(&understudy_solve::inverse_rig::metrics::FrameMetrics) -> f64| {
        report.frame_metrics.iter().map(f).collect::<Vec<f64>>()
    };
    let over_time = LinePlot::new("Error over the take")
        .x_label("frame")
        .y_label("mm")
        .from_zero()
        .series(Series::over_index("RMSE", &error(|f| 10.0 * f.rmse_cm)))
        .series(Series::over_index("95th percentile", &error(|f| 10.0 * f.p95_cm)));
    let weights_on = LinePlot::new("Weights on")
        .x_label("frame")
        .y_label("weights that are not zero")
        .from_zero()
        .series(Series::over_index("cardinality", &error(|f| f.cardinality as f64)));
    let mut take = Section::new("This take").plot(&over_time, "").plot(&weights_on, "");
    if let Some(choice) = &report.alpha_choice {
        let point = |at: usize| [choice.points[at].cardinality, 10.0 * choice.points[at].rmse_cm];
        let points = (0..choice.points.len()).map(point).collect();
        let plot = LinePlot::new("Where α was taken")
            .x_label("weights on")
            .y_label("RMSE against the targets, mm")
            .y_scale(Scale::Log)
            .series(Series::new("α from 0 (right) to off (left)", points))
            .series(Series::new("chosen", vec![point(choice.chosen)]));
        take = take.plot(&plot, &super::hints::alpha_note(choice));
    }
    let worst = worst_frame(report);
    take = take.plot(
        &weight_chart(scene.rig, "This run", &weights[worst], None),
        &format!("The strongest weights of frame {worst}, the one with the largest error."),
    );
    page = page.section(take);
    for section in sections(scene, study, Some(rig.mesh())) {
        page = page.section(section);
    }
    page.footer("Methods and equations: docs/methods/inverse-rig.md")
}

/// α with what it is measured in.
fn alpha_text(alpha: Alpha) -> String {
    match alpha {
        Alpha::Share(share) => format!("{share:.1e} of the mean shape energy"),
        Alpha::Absolute(alpha) => format!("{alpha:.4} cm²"),
    }
}

fn worst_frame(report: &InvertReport) -> usize {
    let frames = report.frame_metrics.iter().enumerate();
    frames.max_by(|a, b| a.1.rmse_cm.total_cmp(&b.1.rmse_cm)).map_or(0, |(frame, _)| frame)
}

/// The paper's tables and figures of one study.
pub fn sections(scene: &Scene<'_>, study: &Study, mesh: Option<&Mesh>) -> Vec<Section> {
    let mut methods = Section::new("Methods")
        .paragraph(format!(
            "Frames {} to {} of the take, as in the paper's tables 3 to 7: errors against the clean meshes with the whole \
             rig, roughness summed over the frames and averaged over the weights, time of the whole take on all threads.",
            study.first_frame,
            study.first_frame + study.table_frames.saturating_sub(1)
        ))
        .table(table(&study.methods));
    if let Some([cardinality, l1, rough]) = study.truth {
        methods = methods.paragraph(format!(
            "The true weights: cardinality {cardinality:.1}, L1 norm {l1:.2}, roughness {rough:.5}."
        ));
    }
    for (title, label, scale, value) in METRICS {
        let chart = BarChart::new(title, label)
            .scale(scale)
            .categories(study.methods.iter().map(|row| row.name.clone()))
            .series(BarSeries::new("mean", study.methods.iter().map(value).collect()));
        methods = methods.plot(&chart, "");
    }
    let frame = example_frame(study);
    if let Some(mesh) = mesh {
        let picture = |dark| heat_sheet(scene, study, &study.methods, mesh, frame, dark);
        let caption = format!("Frame {}: errors against the clean mesh.", study.first_frame + frame);
        methods = methods.picture_pair(&picture(false), &picture(true), &caption);
    }
    let truth = scene.truth.map(|truth| &truth[study.first_frame + frame]);
    for row in &study.methods {
        let chart = weight_chart(scene.rig, &row.name, &row.weights[frame], truth);
        methods =
            methods.plot(&chart, &format!("{}: cardinality {}", row.name, row.frames[frame].cardinality));
    }
    let tradeoff = Section::new("Trade-off")
        .paragraph(
            "Error against cardinality and L1 norm as α grows from 0 (right) to 10 (left), as in the paper's figures 5 and 6; a number \
             behind a name is its passes. Joshi and Seol have no α and are single points.",
        )
        .plot(&curves("RMSE, weights on", "weights on", "RMSE, mm", &study.method_curves, |p| [p.cardinality, 10.0 * p.rmse_cm]), "")
        .plot(&curves("95th percentile, weights on", "weights on", "95th percentile, mm", &study.method_curves, |p| [p.cardinality, 10.0 * p.p95_cm]), "")
        .plot(&curves("RMSE, L1 norm", "Σ|w|", "RMSE, mm", &study.method_curves, |p| [p.l1, 10.0 * p.rmse_cm]), "")
        .plot(&curves("95th percentile, L1 norm", "Σ|w|", "95th percentile, mm", &study.method_curves, |p| [p.l1, 10.0 * p.p95_cm]), "");
    let mut orders = Section::new("Orders")
        .paragraph("The seven orders of section 4.4 with the quartic method, as in the paper's table 8 and figure 23.")
        .table(table(&study.orders))
        .plot(&curves("RMSE, weights on", "weights on", "RMSE, mm", &study.order_curves, |p| [p.cardinality, 10.0 * p.rmse_cm]), "")
        .plot(&curves("95th percentile, weights on", "weights on", "95th percentile, mm", &study.order_curves, |p| [p.cardinality, 10.0 * p.p95_cm]), "");
    if let Some(mesh) = mesh {
        let picture = |dark| heat_sheet(scene, study, &study.orders, mesh, frame, dark);
        let caption =
            format!("Frame {}: errors against the clean mesh, by order.", study.first_frame + frame);
        orders = orders.picture_pair(&picture(false), &picture(true), &caption);
    }
    let settled = Section::new("Until the weights have settled")
        .paragraph(
            "The same without the limit of five passes: each runs until no weight moves by more than a millionth, and at \
             most for so many passes that most do. What differs here is where a method ends, not how soon.",
        )
        .table(table(&study.settled_methods))
        .table(table(&study.settled_orders));
    let mut sections = vec![methods, tradeoff, orders, settled];
    if !study.noise.is_empty() {
        sections.push(noise_section(study));
    }
    let mut relations = Table::new([Column::text("the paper"), Column::text("here"), Column::text("holds")]);
    for relation in &study.relations {
        let holds = if relation.holds { "yes" } else { "NO" };
        relations =
            relations.row([relation.claim.as_str().into(), relation.found.as_str().into(), holds.into()]);
    }
    sections.push(Section::new("Does it hold here?").table(relations));
    sections
}

/// The paper's figures 3 and 4.
fn noise_section(study: &Study) -> Section {
    let curves = |title: &str, y: &str, value: fn(&StudyRow) -> f64| {
        let plot = LinePlot::new(title).x_label("noise σ, mm").y_label(y).from_zero();
        (0..study.noise[0].1.len()).fold(plot, |plot, method| {
            let point = |(sigma, rows): &(f64, Vec<StudyRow>)| [10.0 * sigma, value(&rows[method])];
            let points = study.noise.iter().map(point).collect();
            plot.series(Series::new(study.noise[0].1[method].name.clone(), points))
        })
    };
    Section::new("Noise")
        .paragraph("Errors against the clean meshes as the noise of the targets grows; every method has the α that suits it.")
        .plot(&curves("RMSE", "mm", |row| 10.0 * row.metrics.rmse_cm), "")
        .plot(&curves("Cardinality", "weights on", |row| row.metrics.cardinality), "")
}

type Value = fn(&StudyRow) -> f64;

/// The panels of the paper's figure 11.
const METRICS: [(&str, &str, Scale, Value); 6] = [
    ("RMSE", "mm", Scale::Linear, |row| 10.0 * row.metrics.rmse_cm),
    ("95th percentile", "mm", Scale::Linear, |row| 10.0 * row.metrics.p95_cm),
    ("Cardinality", "weights on", Scale::Linear, |row| row.metrics.cardinality),
    ("L1 norm", "Σ|w|", Scale::Linear, |row| row.metrics.l1),
    ("Roughness", "Σ second differences²", Scale::Log, |row| row.metrics.roughness),
    ("Time", "ms a frame", Scale::Log, |row| row.ms_per_frame),
];

fn table(rows: &[StudyRow]) -> Table {
    let mut table = Table::new([
        Column::text(""),
        Column::text("α"),
        Column::number("RMSE, cm", 4).lowest_is_best(),
        Column::number("RMSE 95th, cm", 4).lowest_is_best(),
        Column::number("max, cm", 3).lowest_is_best(),
        Column::number("card.", 1).lowest_is_best(),
        Column::number("L1 norm", 2).lowest_is_best(),
        Column::number("rough.", 4).lowest_is_best(),
        Column::number("passes", 0),
        Column::number("settled, %", 0),
        Column::number("ms a frame", 3).lowest_is_best(),
    ]);
    for row in rows {
        let alpha = row.alpha.map_or("–".into(), |alpha| format!("{alpha:.3}"));
        let m = &row.metrics;
        table = table.row([
            Cell::from(row.name.as_str()),
            alpha.into(),
            m.rmse_cm.into(),
            m.p95_cm.into(),
            m.max_cm.into(),
            m.cardinality.into(),
            m.l1.into(),
            m.roughness.into(),
            row.passes.into(),
            (100.0 * row.settled).into(),
            row.ms_per_frame.into(),
        ]);
    }
    table
}

type Point = fn(&understudy_solve::inverse_rig::metrics::TakeMetrics) -> [f64; 2];

fn curves(title: &str, x: &str, y: &str, curves: &[StudyCurve], point: Point) -> LinePlot {
    let plot = LinePlot::new(title).x_label(x).y_label(y).y_scale(Scale::Log).size(560.0, 400.0);
    curves.iter().fold(plot, |plot, curve| {
        plot.series(Series::new(curve.name.clone(), curve.points.iter().map(|p| point(&p.metrics)).collect()))
    })
}

/// The frame on which the first two methods differ most: where there is something to see.
fn example_frame(study: &Study) -> usize {
    let [first, second, ..] = &study.methods[..] else { return 0 };
    let apart = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let differences: Vec<f64> = first.weights.iter().zip(&second.weights).map(apart).collect();
    let largest = differences.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    largest.map_or(0, |(frame, _)| frame)
}

/// The strongest weights of a frame as bars, beside the truth where it is known.
fn weight_chart(rig: &BlendshapeRig, name: &str, weights: &[f64], truth: Option<&Vec<f64>>) -> BarChart {
    const SHOWN: usize = 24;
    let size = |shape: &usize| weights[*shape].max(truth.map_or(0.0, |truth| truth[*shape]));
    let mut shapes: Vec<usize> = (0..weights.len()).filter(|shape| size(shape) > 0.0).collect();
    shapes.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.cmp(b)));
    shapes.truncate(SHOWN);
    let mut chart = BarChart::new(format!("{name}: weights"), "weight")
        .categories(shapes.iter().map(|shape| rig.shapes()[*shape].name.clone()))
        .series(BarSeries::new(name, shapes.iter().map(|shape| weights[*shape]).collect()));
    if let Some(truth) = truth {
        chart = chart.series(BarSeries::new("truth", shapes.iter().map(|shape| truth[*shape]).collect()));
    }
    chart
}

/// The reconstruction by every method or order, coloured by its error.
fn heat_sheet(
    scene: &Scene<'_>,
    study: &Study,
    rows: &[StudyRow],
    mesh: &Mesh,
    frame: usize,
    dark: bool,
) -> Picture {
    let clean = &scene.clean[study.first_frame + frame];
    let meshes: Vec<(Vec<Vec3>, Vec<f32>)> = rows
        .iter()
        .map(|row| {
            let weights: Vec<f32> = row.weights[frame].iter().map(|w| *w as f32).collect();
            let mut posed = vec![Vec3::ZERO; clean.len()];
            scene.rig.evaluate(&weights, &mut posed);
            let errors = distances(&posed, clean).into_iter().map(|d| 10.0 * d).collect();
            (posed, errors)
        })
        .collect();
    let all: Vec<f32> = meshes.iter().flat_map(|(_, errors)| errors.iter().copied()).collect();
    let scale = HeatScale::covering(&all, 99.5, "error, mm");
    let camera = Camera::framing_points(&meshes[0].0, 20.0, 3.0, 1.0);
    let settings = RenderSettings {
        width: 360,
        height: 360,
        backdrop: if dark { Backdrop::Dark } else { Backdrop::Light },
        ground: Ground::None,
        ..RenderSettings::default()
    };
    let theme = if dark { Theme::Dark } else { Theme::Light };
    let mut sheet = Sheet::new(3).title("Reconstruction error").colour_bar(&scale).theme(theme);
    for ((posed, errors), row) in meshes.iter().zip(rows) {
        let picture = render(&[Actor::new(mesh.faces(), posed).heat(errors, &scale)], &camera, &settings);
        let m = &row.frames[frame];
        sheet = sheet.cell(
            picture,
            format!("{}: RMSE {:.2} mm, {} weights", row.name, 10.0 * m.rmse_cm, m.cardinality),
        );
    }
    sheet.build()
}
