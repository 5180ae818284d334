//! Pictures of a face and of what methods make of it, side by side: how it looks, and heat maps of distances
//! or of angles between normals. `eval` and the demo show the same sheets.

use understudy_core::metrics::{distances, normal_angles, percentile};
use understudy_core::{Mesh, Random, Vec3};
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_report::{HeatScale, Picture, Sheet};
use understudy_runtime::face::{FaceTwin, Stage};

/// A pose that is shown: the truth and what every method made of it.
pub(crate) struct Exhibit {
    /// The set that it is from.
    pub set: String,
    pub caption: String,
    pub truth: Vec<Vec3>,
    pub methods: Vec<Vec<Vec3>>,
}

/// What a heat map shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heat {
    /// How far vertices are from where they belong, mm.
    Positions,
    /// How far the faces around a vertex are turned away, degrees.
    Normals,
}

/// What all pictures of a sheet share.
pub(crate) struct Gallery<'a> {
    pub mesh: &'a Mesh,
    /// Of the character, where it is at hand; clay otherwise.
    pub colours: Option<&'a [Vec3]>,
    /// Vertices that every picture must show.
    pub subject: Vec<u32>,
    /// Methods to show: their place among an exhibit's, and what stands above their column.
    pub methods: Vec<(usize, String)>,
    /// Side of a picture, pixels.
    pub size: usize,
}

impl Gallery<'_> {
    /// A row of looks and a row of heat an exhibit; columns: the original, then the methods.
    pub(crate) fn sheet(&self, title: &str, heat: Heat, exhibits: &[&Exhibit]) -> Picture {
        let scale = self.scale(heat, exhibits);
        let labels = self.methods.iter().map(|(_, name)| name.clone());
        let mut sheet = Sheet::new(self.methods.len() + 1)
            .title(title)
            .column_labels(std::iter::once("original".to_owned()).chain(labels))
            .colour_bar(&scale);
        for exhibit in exhibits {
            let camera = self.camera(&exhibit.truth);
            sheet = sheet.cell(self.look(&exhibit.truth, &camera), exhibit.caption.clone());
            for (method, _) in &self.methods {
                sheet = sheet.cell(self.look(&exhibit.methods[*method], &camera), "");
            }
            let clay = Actor::new(self.mesh.faces(), &exhibit.truth);
            sheet = sheet.cell(render(&[clay], &camera, &self.settings()), "");
            for (method, _) in &self.methods {
                let vertices = &exhibit.methods[*method];
                let values = self.values(heat, &exhibit.truth, vertices);
                let actor = Actor::new(self.mesh.faces(), vertices).heat(&values, &scale);
                let picture = render(&[actor], &camera, &self.settings());
                sheet = sheet.cell(picture, self.figures(&exhibit.truth, vertices));
            }
        }
        sheet.build()
    }

    fn settings(&self) -> RenderSettings {
        RenderSettings { width: self.size, height: self.size, ..RenderSettings::default() }
    }

    fn camera(&self, vertices: &[Vec3]) -> Camera {
        let points: Vec<Vec3> = self.subject.iter().map(|v| vertices[*v as usize]).collect();
        Camera::framing_points(&points, 18.0, 4.0, 1.0)
    }

    fn look(&self, vertices: &[Vec3], camera: &Camera) -> Picture {
        let mut actor = Actor::new(self.mesh.faces(), vertices);
        if let Some(colours) = self.colours {
            actor = actor.colours(colours);
        }
        render(&[actor], camera, &self.settings())
    }

    fn values(&self, heat: Heat, truth: &[Vec3], vertices: &[Vec3]) -> Vec<f32> {
        match heat {
            Heat::Positions => distances(truth, vertices).iter().map(|cm| cm * 10.0).collect(),
            Heat::Normals => vertex_angles(self.mesh, truth, vertices),
        }
    }

    /// Both figures of the paper's table 3.2 for one pose.
    fn figures(&self, truth: &[Vec3], vertices: &[Vec3]) -> String {
        let mean = |values: &[f32]| values.iter().sum::<f32>() / values.len().max(1) as f32;
        let millimetres = mean(&distances(truth, vertices)) * 10.0;
        format!("{millimetres:.2} mm, {:.1}°", mean(&normal_angles(self.mesh.faces(), truth, vertices)))
    }

    /// One scale for all pictures of a sheet, so that they can be compared.
    fn scale(&self, heat: Heat, exhibits: &[&Exhibit]) -> HeatScale {
        let (label, least) = match heat {
            Heat::Positions => ("distance, mm", 0.1),
            Heat::Normals => ("angle, degrees", 0.5),
        };
        let mut all = Vec::new();
        for exhibit in exhibits {
            for (method, _) in &self.methods {
                let values = self.values(heat, &exhibit.truth, &exhibit.methods[*method]);
                all.extend(self.subject.iter().map(|v| values[*v as usize]));
            }
        }
        all.sort_unstable_by(f32::total_cmp);
        HeatScale::new(0.0, (percentile(&all, 98.0) as f32).max(least), label)
    }
}

/// What a twin's pictures should show: the face. Where it moves like no rigid body, coarse maps are refined;
/// a twin without refinement is shown whole.
pub(crate) fn subject(twin: &FaceTwin) -> Vec<u32> {
    let parts = twin.parts();
    let refined = parts.nets.iter().filter(|net| net.stage == Stage::Refinement);
    let mut vertices: Vec<u32> = refined.flat_map(|net| net.vertices.iter().copied()).collect();
    if vertices.is_empty() {
        return (0..twin.vertex_count() as u32).collect();
    }
    vertices.sort_unstable();
    vertices.dedup();
    vertices
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

/// How strong an expression is: the mean change of an edge's length, whatever the head does.
pub(super) fn strain(edges: &[(u32, u32)], rest: &[Vec3], vertices: &[Vec3]) -> f32 {
    let length = |v: &[Vec3], (a, b): (u32, u32)| v[a as usize].distance(v[b as usize]);
    edges.iter().map(|edge| (length(vertices, *edge) - length(rest, *edge)).abs()).sum()
}

/// Figures 3.6 and 3.7: a colour per network.
pub(super) fn parts_sheet(twin: &FaceTwin, size: usize) -> Picture {
    let (mesh, nets) = (twin.mesh(), twin.parts().nets);
    let grey = Vec3::splat(0.6);
    let camera = Camera::framing_points(mesh.positions(), 20.0, 4.0, 1.0);
    let settings = RenderSettings { width: size, height: size, ..RenderSettings::default() };
    let mut sheet = Sheet::new(2).column_labels(["coarse networks", "refinement networks"]);
    for stage in [Stage::Coarse, Stage::Refinement] {
        let mut colours = vec![grey; mesh.vertex_count()];
        for (index, net) in nets.iter().enumerate().filter(|(_, net)| net.stage == stage) {
            let mut random = Random::stream(5, index as u64);
            let colour = Vec3::from_array([0; 3].map(|_| random.uniform(0.2, 0.95)));
            net.vertices.iter().for_each(|v| colours[*v as usize] = colour);
        }
        let actor = Actor::new(mesh.faces(), mesh.positions()).colours(&colours);
        sheet = sheet.cell(render(&[actor], &camera, &settings), "");
    }
    sheet.build()
}
