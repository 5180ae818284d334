//! Do teeth stay teeth? How much segments change their shape, in the original and in the twin, and how far
//! those that the original moves as rigid bodies are from where they belong.

use serde::Serialize;
use understudy_core::{Mesh, Vec3};

/// Vertices of a segment from which distances to all others are taken.
const HUBS: usize = 32;
/// A segment whose distances change by less in the original is a rigid body, cm: the paper's τ.
const RIGID: f32 = 0.03;

/// Distances inside segments, pose by pose.
#[derive(Debug, Clone)]
pub struct Rigidity {
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

/// The largest change of a distance inside a segment, cm.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bends {
    /// Of the original.
    pub original: f32,
    /// Of the twin.
    pub twin: f32,
}

/// Segments that the original moves as rigid bodies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RigidFigures {
    /// How many.
    pub segments: usize,
    /// The largest change of a distance inside one of them, twin, cm.
    pub bends_cm: f64,
    /// The same in the original, cm.
    pub original_bends_cm: f64,
    /// The largest mean distance of a segment's vertices from the original, mm.
    pub mean_mm: f64,
    /// The largest distance of a vertex in any pose, mm.
    pub max_mm: f64,
    /// The segment in which it is.
    pub worst: String,
}

impl Rigidity {
    /// For the segments of a mesh.
    pub fn new(mesh: &Mesh) -> Self {
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
    pub fn add(&mut self, truth: &[Vec3], twin: &[Vec3]) {
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

    /// How much a segment changes its shape.
    pub fn bends(&self, segment: usize) -> Bends {
        self.segments[segment].bends
    }

    /// All segments that are rigid in the original and whose name is `wanted`; `None` where there is none.
    pub fn figures(&self, mesh: &Mesh, wanted: impl Fn(&str) -> bool) -> Option<RigidFigures> {
        let names = &mesh.segments().names;
        let rigid: Vec<(&Segment, &String)> = self
            .segments
            .iter()
            .zip(names)
            .filter(|(s, name)| !s.vertices.is_empty() && s.bends.original < RIGID && wanted(name))
            .collect();
        let (worst, name) = rigid.iter().max_by(|a, b| a.0.worst.total_cmp(&b.0.worst))?;
        let mean = |s: &Segment| s.misses / (s.poses * s.vertices.len()).max(1) as f64;
        let largest = |of: fn(&Segment) -> f32| rigid.iter().map(|(s, _)| of(s)).fold(0.0, f32::max);
        Some(RigidFigures {
            segments: rigid.len(),
            bends_cm: f64::from(largest(|s| s.bends.twin)),
            original_bends_cm: f64::from(largest(|s| s.bends.original)),
            mean_mm: rigid.iter().map(|(s, _)| mean(s)).fold(0.0, f64::max) * 10.0,
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
        assert!(all.bends_cm < 1e-5 && (all.mean_mm - 0.1).abs() < 1e-3 && (all.max_mm - 0.1).abs() < 1e-3);
        assert!(good.bends(1).original > 0.1);
        assert_eq!(good.figures(&mesh, |name| name == "tongue"), None);

        let mut bad = Rigidity::new(&mesh);
        let mut bent = truth.clone();
        bent[3].y += 0.02;
        bad.add(&truth, &truth);
        bad.add(&truth, &bent);
        let teeth = bad.figures(&mesh, |name| name.starts_with("tooth")).expect("the tooth");
        assert!(teeth.bends_cm > 0.005 && teeth.original_bends_cm < 1e-5, "{teeth:?}");
        assert!((teeth.mean_mm - 0.2 / 8.0).abs() < 1e-3 && (teeth.max_mm - 0.2).abs() < 1e-3);
    }
}
