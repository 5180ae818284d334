//! Pictures of poses and of what methods make of them, side by side: how they look, and heat maps of distances or of
//! angles between normals. `eval` and the demo show the same sheets.

use understudy_core::metrics::{distances, normal_angles, percentile};
use understudy_core::{Mesh, Vec3};
use understudy_learn::Recording;
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_report::{HeatScale, Picture, Sheet};

/// Side of a picture, pixels.
pub(super) const SIZE: usize = 300;

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
    /// Vertices that every picture must show; all where it is empty.
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
        let points: Vec<Vec3> = self.subject().map(|v| vertices[v]).collect();
        Camera::framing_points(&points, 22.0, 5.0, 1.0)
    }

    fn subject(&self) -> impl Iterator<Item = usize> + '_ {
        let all = if self.subject.is_empty() { self.mesh.vertex_count() } else { 0 };
        self.subject.iter().map(|v| *v as usize).chain(0..all)
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
                all.extend(self.subject().map(|v| values[v]));
            }
        }
        all.sort_unstable_by(f32::total_cmp);
        HeatScale::new(0.0, (percentile(&all, 98.0) as f32).max(least), label)
    }
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
fn strain(edges: &[(u32, u32)], rest: &[Vec3], vertices: &[Vec3]) -> f32 {
    let length = |v: &[Vec3], (a, b): (u32, u32)| v[a as usize].distance(v[b as usize]);
    edges.iter().map(|edge| (length(vertices, *edge) - length(rest, *edge)).abs()).sum()
}

/// Poses of a set that are drawn: the strongest expression, and the middle of the set.
pub(super) fn shown_poses(poses: &Recording, edges: &[(u32, u32)]) -> Vec<usize> {
    let rest = poses.mesh.positions();
    let strains: Vec<f32> =
        (0..poses.len()).map(|pose| strain(edges, rest, poses.vertices_of(pose))).collect();
    let strongest =
        (0..poses.len()).fold(0, |best, pose| if strains[pose] > strains[best] { pose } else { best });
    let middle = poses.len() / 2;
    if middle == strongest { vec![strongest] } else { vec![strongest, middle] }
}
