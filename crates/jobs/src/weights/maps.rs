//! Pictures of weights: a mesh from where it is seen best, and a sheet with a map per handle.

use understudy_core::{Mesh, Vec3};
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_report::{HeatScale, Picture, Sheet};

/// Side of a picture, pixels.
const SIZE: usize = 360;
/// Handles on a sheet at most.
const MOST: usize = 60;

/// Where a mesh is looked at from.
pub(super) struct View {
    camera: Camera,
    settings: RenderSettings,
    /// The direction in which a drag is seen best.
    pub up: Vec3,
}

impl View {
    /// From the front; a flat mesh from where it is seen.
    pub fn of(mesh: &Mesh) -> Self {
        let (low, high) = mesh.bounds();
        let size = high - low;
        let lying = size.y < 0.05 * size.x.min(size.z);
        let view = crate::stage::View::named(if lying { "top" } else { "three-quarter" });
        let camera = Camera::framing_points(mesh.positions(), view.yaw_degrees, view.pitch_degrees, 1.0);
        let settings = RenderSettings { width: SIZE, height: SIZE, ..RenderSettings::default() };
        Self { camera, settings, up: if lying { Vec3::NEG_Z } else { Vec3::Y } }
    }

    /// In the colours of values per vertex.
    pub fn heat(&self, mesh: &Mesh, vertices: &[Vec3], values: &[f32], scale: &HeatScale) -> Picture {
        render(&[Actor::new(mesh.faces(), vertices).heat(values, scale)], &self.camera, &self.settings)
    }

    /// As it is.
    pub fn plain(&self, mesh: &Mesh, vertices: &[Vec3]) -> Picture {
        render(&[Actor::new(mesh.faces(), vertices)], &self.camera, &self.settings)
    }
}

/// Weight maps, `values` `[V][columns]`.
pub(super) fn sheet(name: &str, mesh: &Mesh, names: &[String], values: &[f64]) -> Picture {
    let view = View::of(mesh);
    let scale = HeatScale::new(0.0, 1.0, "weight");
    let shown = names.len().min(MOST);
    let mut sheet = Sheet::new(shown.clamp(1, 6)).title(format!("{name}: weights")).colour_bar(&scale);
    for (column, handle) in names.iter().enumerate().take(MOST) {
        let of: Vec<f32> = values.chunks_exact(names.len()).map(|row| row[column] as f32).collect();
        sheet = sheet.cell(view.heat(mesh, mesh.positions(), &of, &scale), handle.clone());
    }
    sheet.build()
}
