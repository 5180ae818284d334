//! A sheet with a weight map per handle.

use crate::stage::View;
use understudy_core::Mesh;
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_report::{HeatScale, Picture, Sheet};

/// Side of a picture, pixels.
const SIZE: usize = 360;
/// Handles on a sheet at most.
const MOST: usize = 60;

/// Weight maps, `values` `[V][columns]`, from the front; a flat mesh from where it is seen.
pub(super) fn sheet(name: &str, mesh: &Mesh, names: &[String], values: &[f64]) -> Picture {
    let (low, high) = mesh.bounds();
    let flat = high.y - low.y < 0.05 * (high.x - low.x).min(high.z - low.z);
    let view = View::named(if flat { "top" } else { "three-quarter" });
    let camera = Camera::framing_points(mesh.positions(), view.yaw_degrees, view.pitch_degrees, 1.0);
    let settings = RenderSettings { width: SIZE, height: SIZE, ..RenderSettings::default() };
    let scale = HeatScale::new(0.0, 1.0, "weight");
    let shown = names.len().min(MOST);
    let mut sheet = Sheet::new(shown.clamp(1, 6)).title(format!("{name}: weights")).colour_bar(&scale);
    for (column, handle) in names.iter().enumerate().take(MOST) {
        let of: Vec<f32> = values.chunks_exact(names.len()).map(|row| row[column] as f32).collect();
        let actor = Actor::new(mesh.faces(), mesh.positions()).heat(&of, &scale);
        sheet = sheet.cell(render(&[actor], &camera, &settings), handle.clone());
    }
    sheet.build()
}
