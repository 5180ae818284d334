//! The twin's error segment by segment. Do teeth stay teeth? How much segments change their shape, in the original and
//! in the twin, and how far those that the original moves as rigid bodies are from where they belong.

use super::figures::{Figures, Findings, Posed, Study};
use super::pictures::Exhibit;
use crate::twin::kinds::kind;
use serde::Serialize;
use understudy_core::{Mesh, Vec3};
use understudy_report::html::{Cell, Column, Section, Table};
use understudy_runtime::Twin;

/// Vertices of a segment from which distances to all others are taken.
const HUBS: usize = 32;
/// A segment whose distances change by less in the original is a rigid body, cm: the paper's τ.
const RIGID: f32 = 0.03;

/// One segment of the mesh, as the twin moves it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SegmentFigures {
    /// Its name.
    pub name: String,
    /// Vertices.
    pub vertices: usize,
    /// What moves it, where the kind of the twin tells: `network`, `body` (rigid, by a motion of its own), `rigid` (with
    /// others) or `still`.
    pub kind: Option<&'static str>,
    /// Mean distance, mm.
    pub mean_mm: f64,
    /// Worst distance, mm.
    pub max_mm: f64,
    /// Mean angle between face normals, degrees.
    pub normal_deg: f64,
    /// How much its shape changes, the largest change of a distance, mm.
    pub bends_mm: f64,
    /// The same in the original, mm.
    pub original_bends_mm: f64,
}

/// Sums over the segments of a mesh, of the twin alone.
pub(crate) struct Segments {
    mesh: Mesh,
    movers: Vec<&'static str>,
    rigidity: Rigidity,
    /// Angles of faces, and their number.
    angles: Vec<(f64, usize)>,
}

impl Segments {
    /// For what is weighed; nothing where the mesh is one piece.
    pub fn new(study: &Study<'_>, twin: &Twin) -> Self {
        let mesh = study.mesh.clone();
        let angles = vec![(0.0, 0); mesh.segments().len()];
        Self { movers: kind(twin).movers(), rigidity: Rigidity::new(&mesh), angles, mesh }
    }

    fn figures(&self) -> Vec<SegmentFigures> {
        let figures = |(index, segment): (usize, &Segment)| SegmentFigures {
            name: self.mesh.segments().names[index].clone(),
            vertices: segment.vertices.len(),
            kind: self.movers.get(index).copied(),
            mean_mm: segment.mean() * 10.0,
            max_mm: f64::from(segment.worst) * 10.0,
            normal_deg: self.angles[index].0 / self.angles[index].1.max(1) as f64,
            bends_mm: f64::from(segment.bends.twin) * 10.0,
            original_bends_mm: f64::from(segment.bends.original) * 10.0,
        };
        let all = self.rigidity.segments.iter().enumerate();
        all.filter(|(_, segment)| !segment.vertices.is_empty()).map(figures).collect()
    }

    /// What the original does not bend: everything, and the single teeth.
    fn rigid(&self) -> [(&'static str, &'static str, Option<RigidFigures>); 2] {
        [
            ("rigid", "segments", self.rigidity.figures(&self.mesh, |_| true)),
            ("teeth", "teeth", self.rigidity.figures(&self.mesh, |name| name.starts_with("tooth"))),
        ]
    }
}

impl Figures for Segments {
    fn add(&mut self, method: usize, posed: &Posed<'_>) {
        if method > 0 {
            return;
        }
        self.rigidity.add(posed.truth, posed.vertices);
        let of_vertex = &self.mesh.segments().of_vertex;
        for (angle, face) in posed.angles.iter().zip(self.mesh.faces()) {
            let Some(segment) = of_vertex.get(face.corners()[0] as usize) else { continue };
            let sums = &mut self.angles[*segment as usize];
            *sums = (sums.0 + f64::from(*angle), sums.1 + 1);
        }
    }

    fn findings(&self) -> Findings {
        let mut out = Findings::default().field("segments", &self.figures());
        for (field, what, figures) in self.rigid() {
            out = out.field(field, &figures);
            if let Some(f) = figures {
                out = out.line(format!(
                    "{} rigid {what}: the twin bends them by {:.5} mm at most, the original by {:.5}; at most {:.3} mm away \
                     on average, {:.3} mm in the worst pose ({})",
                    f.segments, f.bends_mm, f.original_bends_mm, f.mean_mm, f.max_mm, f.worst
                ));
            }
        }
        out
    }

    fn section(&self, _exhibits: &[Exhibit]) -> Option<Section> {
        let figures = self.figures();
        if figures.len() < 2 {
            return None;
        }
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
        for s in figures {
            let numbers =
                [s.vertices as f64, s.mean_mm, s.max_mm, s.normal_deg, s.bends_mm, s.original_bends_mm];
            let text = [Cell::from(s.name), Cell::from(s.kind.unwrap_or("the twin"))];
            table = table.row(text.into_iter().chain(numbers.map(Cell::from)));
        }
        let mut rigid = Table::new([
            Column::text("what the original does not bend"),
            Column::number("segments", 0),
            Column::number("bends, mm", 5),
            Column::number("largest mean, mm", 3),
            Column::number("max, mm", 3),
            Column::text("worst"),
        ]);
        for (_, what, f) in self.rigid().into_iter().filter_map(|(a, b, f)| Some((a, b, f?))) {
            let numbers = [f.segments as f64, f.bends_mm, f.mean_mm, f.max_mm].map(Cell::from);
            rigid = rigid.row(std::iter::once(Cell::from(what)).chain(numbers).chain([Cell::from(f.worst)]));
        }
        Some(Section::new("Segments").table(table).table(rigid))
    }
}

/// Distances inside segments, pose by pose.
#[derive(Debug, Clone)]
struct Rigidity {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone)]
struct Segment {
    vertices: Vec<u32>,
    /// Hub, other vertex and their distance at rest.
    pairs: Vec<(u32, u32, f32)>,
    bends: Bends,
    misses: f64,
    worst: f32,
    poses: usize,
}

impl Segment {
    /// Mean distance of its vertices, cm.
    fn mean(&self) -> f64 {
        self.misses / (self.poses * self.vertices.len()).max(1) as f64
    }
}

/// The largest change of a distance inside a segment, cm.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Bends {
    /// Of the original.
    original: f32,
    /// Of the twin.
    twin: f32,
}

/// Segments that the original moves as rigid bodies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RigidFigures {
    /// How many.
    pub segments: usize,
    /// The largest change of a distance inside one of them, twin, mm.
    pub bends_mm: f64,
    /// The same in the original, mm.
    pub original_bends_mm: f64,
    /// The largest mean distance of a segment's vertices from the original, mm.
    pub mean_mm: f64,
    /// The largest distance of a vertex in any pose, mm.
    pub max_mm: f64,
    /// The segment in which it is.
    pub worst: String,
}

impl Rigidity {
    /// For the segments of a mesh.
    fn new(mesh: &Mesh) -> Self {
        let rest = mesh.positions();
        let segment = |index: usize| {
            let vertices = mesh.segments().vertices(index);
            let step = vertices.len().div_ceil(HUBS).max(1);
            let mut pairs = Vec::new();
            for (place, &hub) in vertices.iter().enumerate().step_by(step) {
                // Pairs of two hubs are taken once.
                let others = vertices.iter().enumerate().filter(|(p, _)| *p > place || p % step != 0);
                pairs.extend(others.map(|(_, &v)| (hub, v, rest[hub as usize].distance(rest[v as usize]))));
            }
            Segment { vertices, pairs, bends: Bends::default(), misses: 0.0, worst: 0.0, poses: 0 }
        };
        Self { segments: (0..mesh.segments().len()).map(segment).collect() }
    }

    /// Adds one pose.
    fn add(&mut self, truth: &[Vec3], twin: &[Vec3]) {
        for segment in &mut self.segments {
            let bend = |vertices: &[Vec3]| {
                let change = |(a, b, rest): &(u32, u32, f32)| {
                    (vertices[*a as usize].distance(vertices[*b as usize]) - rest).abs()
                };
                segment.pairs.iter().map(change).fold(0.0, f32::max)
            };
            let (original, own) = (bend(truth), bend(twin));
            segment.bends.original = segment.bends.original.max(original);
            segment.bends.twin = segment.bends.twin.max(own);
            for &vertex in &segment.vertices {
                let miss = truth[vertex as usize].distance(twin[vertex as usize]);
                segment.misses += f64::from(miss);
                segment.worst = segment.worst.max(miss);
            }
            segment.poses += 1;
        }
    }

    /// All segments that are rigid in the original and whose name is `wanted`; `None` where there is none.
    fn figures(&self, mesh: &Mesh, wanted: impl Fn(&str) -> bool) -> Option<RigidFigures> {
        let names = &mesh.segments().names;
        let rigid: Vec<(&Segment, &String)> = self
            .segments
            .iter()
            .zip(names)
            .filter(|(s, name)| !s.vertices.is_empty() && s.bends.original < RIGID && wanted(name))
            .collect();
        let (worst, name) = rigid.iter().max_by(|a, b| a.0.worst.total_cmp(&b.0.worst))?;
        let largest = |of: fn(&Segment) -> f32| rigid.iter().map(|(s, _)| of(s)).fold(0.0, f32::max);
        Some(RigidFigures {
            segments: rigid.len(),
            bends_mm: f64::from(largest(|s| s.bends.twin)) * 10.0,
            original_bends_mm: f64::from(largest(|s| s.bends.original)) * 10.0,
            mean_mm: rigid.iter().map(|(s, _)| s.mean()).fold(0.0, f64::max) * 10.0,
            max_mm: f64::from(worst.worst) * 10.0,
            worst: (*name).clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Face, MeshParts, Quat, Segments};

    /// Two tetrahedra, a tooth and a tongue.
    fn mesh() -> Mesh {
        let corners = [Vec3::ZERO, Vec3::X, Vec3::Y, Vec3::Z];
        let mut parts = MeshParts::default();
        for part in 0..2u32 {
            parts.positions.extend(corners.map(|c| c + Vec3::new(3.0 * part as f32, 0.0, 0.0)));
            for [a, b, c] in [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]] {
                parts.faces.push(Face::triangle(4 * part + a, 4 * part + b, 4 * part + c));
            }
        }
        let of_vertex = (0..8).map(|v| v / 4).collect();
        parts.segments = Segments { names: vec!["tooth_1".into(), "tongue".into()], of_vertex };
        parts.build().expect("a valid mesh")
    }

    #[test]
    fn a_turned_tooth_is_rigid_and_a_bent_one_is_not() {
        let mesh = mesh();
        let turn = |p: &Vec3| Quat::from_rotation_y(0.7) * *p + Vec3::new(1.0, 2.0, 3.0);
        let mut truth: Vec<Vec3> = mesh.positions().iter().map(turn).collect();
        // The tongue is soft.
        truth[7].z += 0.5;
        let mut good = Rigidity::new(&mesh);
        let moved: Vec<Vec3> = truth.iter().map(|p| *p + Vec3::new(0.01, 0.0, 0.0)).collect();
        good.add(&truth, &moved);
        let all = good.figures(&mesh, |_| true).expect("the tooth");
        assert_eq!((all.segments, all.worst.as_str()), (1, "tooth_1"));
        assert!(all.bends_mm < 1e-4 && (all.mean_mm - 0.1).abs() < 1e-3 && (all.max_mm - 0.1).abs() < 1e-3);
        assert!(good.segments[1].bends.original > 0.1);
        assert_eq!(good.figures(&mesh, |name| name == "tongue"), None);

        let mut bad = Rigidity::new(&mesh);
        let mut bent = truth.clone();
        bent[3].y += 0.02;
        bad.add(&truth, &truth);
        bad.add(&truth, &bent);
        let teeth = bad.figures(&mesh, |name| name.starts_with("tooth")).expect("the tooth");
        assert!(teeth.bends_mm > 0.05 && teeth.original_bends_mm < 1e-4, "{teeth:?}");
        assert!((teeth.mean_mm - 0.2 / 8.0).abs() < 1e-3 && (teeth.max_mm - 0.2).abs() < 1e-3);
    }
}
