//! The demo's page: the cast, the datasets, both twins, poses by hand, Mira's motion and weights.

use super::{DemoConfig, DemoReport};
use understudy_report::html::{Cell, Column, Page, Section, Table};
use understudy_report::plot::{BarChart, BarSeries};

/// Everything on one page.
pub(super) fn page(
    config: &DemoConfig,
    report: &DemoReport,
    sections: Vec<Section>,
    more: [Section; 4],
) -> Page {
    let mut cast = Table::new([
        Column::text("character"),
        Column::number("vertices", 0),
        Column::number("faces", 0),
        Column::number("bones", 0),
        Column::number("controls", 0),
        Column::number("segments", 0),
        Column::number("islands", 0),
        Column::number("ms per pose", 2),
        Column::text("clips"),
    ]);
    for c in &report.characters {
        let numbers = [c.vertices, c.faces, c.bones, c.controls, c.segments, c.islands].map(Cell::from);
        let cells = std::iter::once(Cell::from(c.name.clone())).chain(numbers);
        cast = cast.row(cells.chain([Cell::from(c.evaluate_ms), Cell::from(c.clips.join(", "))]));
    }
    let cost = BarChart::new("Cost of a pose", "ms, one thread")
        .categories(report.characters.iter().map(|c| c.name.clone()))
        .series(BarSeries::new("rig", report.characters.iter().map(|c| c.evaluate_ms).collect()));
    let mut recorded = Table::new([
        Column::text("dataset"),
        Column::text("method"),
        Column::number("poses", 0),
        Column::number("MB", 1),
        Column::number("poses per second", 0),
    ]);
    for d in &report.datasets {
        recorded = recorded.row([
            Cell::from(d.folder.display().to_string()),
            Cell::from(format!("{:?}", d.method).to_lowercase()),
            Cell::from(d.poses as usize),
            Cell::from(d.bytes as f64 / 1e6),
            Cell::from(d.poses_per_second),
        ]);
    }
    let mut weighed = Table::new([
        Column::text("clip"),
        Column::text("method"),
        Column::number("mean, mm", 3).lowest_is_best(),
        Column::number("95 %, mm", 3),
        Column::number("max, mm", 2),
        Column::number("ms per pose", 3),
    ]);
    for (set, methods) in &report.eval.sets {
        for (name, m) in methods {
            let numbers = [m.mean_mm, m.p95_mm, m.max_mm, m.ms].map(Cell::from);
            weighed =
                weighed.row([Cell::from(set.clone()), Cell::from(name.clone())].into_iter().chain(numbers));
        }
    }
    let story = format!(
        "{}, trained for {:.0} s on {} random poses; neither clip was among them. A full twin sees \
         10,000 poses. The heat maps are in twin/eval.html.",
        report.twin.details.lines().join(", "),
        report.twin.seconds,
        report.twin.poses
    );
    let mut page = Page::new("Understudy: the demo")
        .subtitle(format!("Two characters, their clips, datasets and twins, in {:.0} s", report.seconds))
        .command(config.command.clone())
        .section(Section::new("The cast").table(cast).plot(&cost, "Median of 21 random poses."));
    for section in sections {
        page = page.section(section);
    }
    page = page
        .section(Section::new("Datasets").table(recorded))
        .section(Section::new("Rook's twin").paragraph(story).table(weighed));
    more.into_iter().fold(page, Page::section)
}
