//! The page of `weights --report`: a map per handle, what examples changed, how the energy fell, and every handle dragged with
//! the weights of the mesh alone beside those that examples improved.

use super::maps::{self, View};
use super::{WeightsConfig, WeightsReport, skin_of};
use understudy_core::{Mesh, SkinWeights, Vec3};
use understudy_report::html::{Cell, Column, Page, Section, Table};
use understudy_report::plot::{LinePlot, Scale, Series};
use understudy_report::{HeatScale, Sheet};
use understudy_runtime::drag::{DragRig, DragSettings};
use understudy_solve::skin_weights::SolvedWeights;
use understudy_solve::skin_weights::examples::{EnergyAfter, OptimisedWeights, Step};

/// Handles that are dragged on the page, and examples that are drawn.
const DRAGGED: usize = 6;
const DRAWN: usize = 6;
/// How far a handle is dragged, as a share of the mesh's diagonal.
const FAR: f32 = 0.12;

/// What the page shows.
pub(super) struct Shown<'a> {
    pub name: &'a str,
    pub mesh: &'a Mesh,
    pub solved: &'a SolvedWeights,
    pub optimised: Option<&'a OptimisedWeights>,
    pub examples: &'a [Vec<Vec3>],
}

pub(super) fn page(config: &WeightsConfig, report: &WeightsReport, shown: &Shown<'_>) -> Page {
    let solve = &report.solve;
    let mut page = Page::new(format!("Skinning weights: {}", shown.name))
        .subtitle(format!(
            "{} vertices, {} handles, {} examples",
            report.vertices,
            report.handles.len(),
            shown.examples.len()
        ))
        .command(config.command.clone())
        .fact("weights", format!("{:?}", config.settings.kind).to_lowercase())
        .fact("domain", format!("{:?}, {} nodes", solve.domain, solve.nodes).to_lowercase())
        .figure("weights near 0", format!("{:.0} %", 100.0 * report.near_zero_share), "below 0.05")
        .figure("per vertex", format!("≤ {}", report.influences), "handles")
        .figure("solved in", format!("{:.1} s", report.seconds), "the mesh alone");
    if let Some(examples) = &report.examples {
        page = page.figure(
            "examples",
            format!("{:.2} mm", 10.0 * examples.rmse_cm),
            format!("RMSE, {:.0} s", examples.seconds),
        );
    }
    let mut own = Section::new("Weights").picture(
        &maps::sheet(shown.name, shown.mesh, &shown.solved.names, &shown.solved.values),
        "From the mesh alone: a map per handle.",
    );
    if let Some(optimised) = shown.optimised {
        own = own
            .picture(
                &maps::sheet(shown.name, shown.mesh, &shown.solved.names, &optimised.values),
                "Improved by the examples.",
            )
            .table(sharpness(shown, optimised));
    }
    for note in &report.notes {
        own = own.paragraph(note.clone());
    }
    page = page.section(own);
    if let Some(optimised) = shown.optimised {
        page = page.section(examples(shown, optimised)).section(energy(optimised));
    }
    if shown.solved.columns() > 1 {
        page = page.section(match dragged(shown) {
            Ok(section) => section,
            Err(error) => {
                Section::new("Dragging").paragraph(format!("The handles cannot be dragged: {error}."))
            }
        });
    }
    page.footer("Methods and equations: docs/methods/skinning-weights.md")
}

fn sharpness(shown: &Shown<'_>, optimised: &OptimisedWeights) -> Table {
    let columns = ["handle", "below 0.05", "0.05 to 0.95", "above 0.95"];
    let mut table = Table::new(columns.iter().enumerate().map(|(k, name)| match k {
        0 => Column::text(*name),
        _ => Column::number(*name, 0),
    }))
    .caption("Vertices by their weight, from the mesh alone → with examples");
    let h = shown.solved.columns();
    for (column, name) in shown.solved.names.iter().enumerate() {
        let counts = |values: &[f64]| {
            let of = values.chunks_exact(h).map(|row| row[column]);
            let (low, high) =
                (of.clone().filter(|w| *w < 0.05).count(), of.clone().filter(|w| *w > 0.95).count());
            [low, of.count() - low - high, high]
        };
        let (before, after) = (counts(&shown.solved.values), counts(&optimised.values));
        for (when, counts) in [("", before), (", with examples", after)] {
            let cells = counts.map(Cell::from);
            table = table.row(std::iter::once(Cell::from(format!("{name}{when}"))).chain(cells));
        }
    }
    table
}

/// Examples beside what weights and transforms make of them, and the groups that share a rotation.
fn examples(shown: &Shown<'_>, optimised: &OptimisedWeights) -> Section {
    let view = View::of(shown.mesh);
    let count = shown.examples.len();
    let chosen: Vec<usize> = (0..count.min(DRAWN)).map(|k| k * count / count.min(DRAWN)).collect();
    let mut fits = Vec::new();
    if let Ok(skin) = skin_of(&optimised.values, shown.solved.columns()) {
        for &example in &chosen {
            let mut out = vec![Vec3::ZERO; shown.mesh.vertex_count()];
            skin.linear_blend(&optimised.transforms[example], shown.mesh.positions(), &mut out);
            fits.push((example, out));
        }
    }
    let error = |example: usize, out: &[Vec3]| -> Vec<f32> {
        out.iter().zip(&shown.examples[example]).map(|(a, b)| 10.0 * a.distance(*b)).collect()
    };
    let worst = fits.iter().flat_map(|(k, out)| error(*k, out)).fold(0.1f32, f32::max);
    let scale = HeatScale::new(0.0, worst, "distance from the example, mm");
    let mut sheet =
        Sheet::new(fits.len().max(1)).title("Examples, and what the weights make of them").colour_bar(&scale);
    for (example, _) in &fits {
        sheet =
            sheet.cell(view.plain(shown.mesh, &shown.examples[*example]), format!("example {}", example + 1));
    }
    for (example, out) in &fits {
        sheet = sheet
            .cell(view.heat(shown.mesh, out, &error(*example, out), &scale), "by weights and transforms");
    }
    let groups: Vec<f32> = optimised.groups.iter().map(|g| (g * 7 % 16) as f32).collect();
    let scale = HeatScale::new(0.0, 16.0, "group");
    let group_sheet = Sheet::new(1)
        .cell(view.heat(shown.mesh, shown.mesh.positions(), &groups, &scale), "groups that share a rotation");
    Section::new("Examples")
        .picture(&sheet.build(), "")
        .picture(&group_sheet.build(), "K-means on rows of weights: every group turns as one.")
}

fn energy(optimised: &OptimisedWeights) -> Section {
    let of = |value: fn(&EnergyAfter) -> f64| {
        optimised.history.iter().map(|e| value(e).max(1e-30)).collect::<Vec<f64>>()
    };
    let plot = LinePlot::new("Energy after every step")
        .x_label("step")
        .y_label("per vertex and example, diagonal of one")
        .y_scale(Scale::Log)
        .series(Series::over_index("sum", &of(EnergyAfter::total)))
        .series(Series::over_index("data", &of(|e| e.data)))
        .series(Series::over_index("λ₁ l1", &of(|e| e.sparsity)))
        .series(Series::over_index("λ₂ rigidity", &of(|e| e.rigidity)))
        .series(Series::over_index("μ mixing", &of(|e| e.mixing)));
    let weights = optimised.history.iter().filter(|e| e.step == Step::Weights).count();
    Section::new("Energy").plot(&plot, &format!("{weights} weight steps; no step raises the sum."))
}

/// Every handle dragged sideways, the others held: the mesh's own weights (this is FAST), then those with examples.
fn dragged(shown: &Shown<'_>) -> Result<Section, Box<dyn std::error::Error>> {
    let h = shown.solved.columns();
    let places: Vec<Vec3> = shown.solved.places.iter().map(|p| p.as_vec3()).collect();
    let (low, high) = shown.mesh.bounds();
    let far = FAR * (high - low).length();
    let view = View::of(shown.mesh);
    let all: Vec<usize> = (0..h).collect();
    let mut rows: Vec<(&str, SkinWeights)> = vec![("from the mesh alone", skin_of(&shown.solved.values, h)?)];
    if let Some(optimised) = shown.optimised {
        rows.push(("with examples", skin_of(&optimised.values, h)?));
    }
    let columns = h.min(DRAGGED);
    let mut sheet = Sheet::new(columns).title("Dragged");
    for (name, skin) in &rows {
        let rig = DragRig::new(
            shown.mesh,
            skin,
            &places,
            &all,
            &DragSettings { iterations: 60, ..DragSettings::default() },
        )?;
        for handle in 0..columns {
            let mut targets = places.clone();
            targets[handle] += view.up * far;
            let mut out = vec![Vec3::ZERO; shown.mesh.vertex_count()];
            rig.start().update(&rig, &targets, &mut out)?;
            sheet =
                sheet.cell(view.plain(shown.mesh, &out), format!("{}, {name}", shown.solved.names[handle]));
        }
    }
    Ok(Section::new("Dragging").picture(
        &sheet.build(),
        "Each handle dragged by an eighth of the mesh's size, the others held where they rest; only positions are given, \
         transforms follow from rigidity (26), (27).",
    ))
}
