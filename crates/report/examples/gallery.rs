//! Draws one of everything into a folder, to look at after a change:
//! `cargo run -p understudy-report --example gallery -- FOLDER`.

use std::path::PathBuf;
use understudy_core::{Face, Random, Vec3};
use understudy_report::html::Column;
use understudy_report::plot::{BarChart, BarSeries, Histogram, LinePlot, Plot, Scale, Series};
use understudy_report::raster::{Actor, Backdrop, Camera, RenderSettings, render};
use understudy_report::{HeatScale, Page, Ramp, Section, Sheet, Table, Theme};

/// A tube along a trefoil knot that stands on the floor: curved, crossing itself, with contact.
fn knot() -> (Vec<Vec3>, Vec<Face>) {
    const ALONG: u32 = 320;
    const AROUND: u32 = 32;
    let centre = |step: u32| {
        let t = std::f32::consts::TAU * step as f32 / ALONG as f32;
        let radius = 30.0 + 12.0 * (3.0 * t).cos();
        Vec3::new(radius * (2.0 * t).cos(), 54.0 + radius * (2.0 * t).sin(), 14.0 * (3.0 * t).sin())
    };
    let mut positions = Vec::new();
    let mut faces = Vec::new();
    for step in 0..ALONG {
        let (here, next) = (centre(step), centre(step + 1));
        let forward = (next - here).normalize();
        let side = forward.cross(Vec3::Z).normalize();
        let up = side.cross(forward);
        for turn in 0..AROUND {
            let (sine, cosine) = (std::f32::consts::TAU * turn as f32 / AROUND as f32).sin_cos();
            positions.push(here + (side * cosine + up * sine) * 8.0);
            let at = |step: u32, turn: u32| step % ALONG * AROUND + turn % AROUND;
            faces.push(Face::quad(
                at(step, turn),
                at(step, turn + 1),
                at(step + 1, turn + 1),
                at(step + 1, turn),
            ));
        }
    }
    (positions, faces)
}

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("gallery"), PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    let (positions, faces) = knot();
    let colours: Vec<Vec3> = positions
        .iter()
        .map(|p| Vec3::new(0.85, 0.45, 0.30).lerp(Vec3::new(0.30, 0.55, 0.75), p.y / 108.0))
        .collect();
    let heights: Vec<f32> = positions.iter().map(|p| p.z.abs() / 5.0).collect();
    let scale = HeatScale::covering(&heights, 95.0, "distance from the plane, mm");

    let mut sheets = Vec::new();
    for (theme, backdrop) in [(Theme::Light, Backdrop::Light), (Theme::Dark, Backdrop::Dark)] {
        let settings = RenderSettings { width: 240, height: 240, backdrop, ..RenderSettings::default() };
        let wired = RenderSettings { wireframe: true, ..settings };
        let ember = scale.clone().ramp(Ramp::Ember);
        let clay = Actor::new(&faces, &positions);
        let looks = [
            (clay, settings, "clay"),
            (clay.colours(&colours).shine(0.9), settings, "painted, shiny"),
            (clay, wired, "wireframe"),
            (clay.heat(&heights, &scale), settings, "heat"),
        ];
        let mut sheet = Sheet::new(looks.len())
            .title("Gallery")
            .subtitle("a trefoil knot from two sides")
            .row_labels(["front", "three quarters"])
            .colour_bar(&scale)
            .theme(theme);
        for yaw in [0.0, 50.0] {
            let camera = Camera::framing_points(&positions, yaw, 10.0, 1.0);
            for (actor, settings, name) in &looks {
                sheet = sheet.cell(render(&[*actor], &camera, settings), *name);
            }
        }
        let camera = Camera::framing_points(&positions, 25.0, 10.0, 1.0);
        sheet = sheet.cell(render(&[clay.heat(&heights, &ember)], &camera, &settings), "another ramp");
        sheets.push(sheet.build());
    }
    std::fs::write(folder.join("sheet-light.png"), sheets[0].to_png())?;
    std::fs::write(folder.join("sheet-dark.png"), sheets[1].to_png())?;

    let mut random = Random::new(3);
    let draws: Vec<f64> = (0..5000).map(|_| random.normal().exp()).collect();
    let decay = |rate: f64| (0..400).map(|i| (-f64::from(i) / rate).exp() + 0.01).collect::<Vec<f64>>();
    let line = LinePlot::new("Decay").x_label("step").y_label("loss").y_scale(Scale::Log);
    let line = line
        .series(Series::over_index("fast", &decay(40.0)))
        .series(Series::over_index("slow", &decay(90.0)));
    let histogram = Histogram::new("Log-normal draws", "value", &draws).mark("median", 1.0);
    let bars = BarChart::new("Bars", "ms").categories(["one", "two", "missing"]);
    let bars = bars.series(BarSeries::new("a", vec![3.0, -1.2, f64::NAN]));
    for (name, plot) in [("line", &line as &dyn Plot), ("histogram", &histogram), ("bars", &bars)] {
        std::fs::write(folder.join(format!("{name}.svg")), plot.to_svg())?;
    }

    let table = Table::new([Column::text("method"), Column::number("mean, mm", 2).lowest_is_best()])
        .row(["first".into(), 1.5.into()])
        .row(["second".into(), 0.25.into()]);
    let page = Page::new("Gallery")
        .subtitle("One of everything that the report crate draws.")
        .command("cargo run -p understudy-report --example gallery")
        .figure("vertices", positions.len().to_string(), "")
        .section(Section::new("Pictures").picture_pair(&sheets[0], &sheets[1], "Looks of one mesh."))
        .section(Section::new("Plots").plot(&line, "").plot(&histogram, "").plot(&bars, ""))
        .section(Section::new("Table").table(table))
        .footer("Made by Understudy");
    std::fs::write(folder.join("page.html"), page.to_html())
}
