//! Skin and cloth that slide over what lies beneath when a joint turns: vertices are dragged along the
//! surface, never off it. Runs after skinning.

use super::driver::{RigSize, VertexWeights, check_finite, check_positive};
use super::patch::PatchNormals;
use crate::rig::RigError;
use crate::stack::{Deformer, Frame, Scratch};
use understudy_core::{Mesh, Vec3};

/// What is dragged by a bone.
#[derive(Debug, Clone, PartialEq)]
pub struct Slide {
    /// For messages.
    pub name: String,
    /// The bone that drags.
    pub bone: usize,
    /// Against this bone its motion is measured: usually the parent.
    pub reference: usize,
    /// Which vertices slide, 0 to 1; let it fall off smoothly.
    pub mask: VertexWeights,
    /// Share of the bone's motion that the skin follows; negative slides against it.
    pub amount: f32,
    /// The furthest that a vertex slides, cm; approached smoothly.
    pub limit: f32,
}

/// `d = mask · amount · (M_bone u − M_reference u)`, made tangent to the posed surface and shortened
/// smoothly under the limit; then the vertex is put back to the height it had over the surface, measured
/// by an implicit moving-least-squares plane of its neighbourhood. Zero while bone and reference agree.
pub struct SkinSlide {
    slides: Vec<Slide>,
    normals: PatchNormals,
    /// Vertices that slide, with what drags them: `(slide, weight)`.
    rows: Vec<SlideRow>,
    /// Neighbourhoods, as places among the patch's vertices.
    near: Vec<u32>,
}

struct SlideRow {
    vertex: u32,
    slot: u32,
    /// `1 / 12h²`, `h` the length of the edges, cm⁻².
    falloff: f32,
    near: std::ops::Range<u32>,
    drags: Vec<(u16, f32)>,
}

impl SkinSlide {
    /// How many rings of neighbours stand for the surface: slides longer than this many edges leave it.
    pub const RINGS: usize = 3;

    /// Checks the slides and gathers the neighbourhoods.
    pub fn new(slides: Vec<Slide>, mesh: &Mesh, size: &RigSize) -> Result<Self, RigError> {
        size.check_mesh("skin slide", mesh)?;
        let mut drags: Vec<Vec<(u16, f32)>> = vec![Vec::new(); size.vertices];
        for (index, slide) in slides.iter().enumerate() {
            let part = format!("slide '{}'", slide.name);
            size.check_bone(&part, slide.bone)?;
            size.check_bone(&part, slide.reference)?;
            size.check_weights(&part, &slide.mask)?;
            check_finite(&part, "amount", slide.amount)?;
            check_positive(&part, "limit", slide.limit)?;
            for &(vertex, weight) in slide.mask.iter().filter(|(_, weight)| *weight != 0.0) {
                drags[vertex as usize].push((index as u16, weight * slide.amount));
            }
        }
        let adjacency = mesh.adjacency();
        let moving: Vec<u32> =
            (0u32..).zip(&drags).filter(|(_, drags)| !drags.is_empty()).map(|(v, _)| v).collect();
        let rings: Vec<Vec<u32>> = moving.iter().map(|v| ring(&adjacency, *v, Self::RINGS)).collect();
        let normals = PatchNormals::new(mesh, rings.iter().flatten().copied().collect());
        let mut near = Vec::new();
        let mut rows = Vec::with_capacity(moving.len());
        for (&vertex, ring) in moving.iter().zip(&rings) {
            let start = near.len() as u32;
            near.extend(ring.iter().map(|v| normals.slot(*v).expect("the ring is in the patch")));
            let at = |v: u32| mesh.positions()[v as usize];
            let edges = adjacency.neighbours(vertex as usize);
            let edge: f32 = edges.iter().map(|n| (at(*n) - at(vertex)).length()).sum();
            let edge = (edge / edges.len().max(1) as f32).max(1e-4);
            rows.push(SlideRow {
                vertex,
                slot: normals.slot(vertex).expect("a ring holds its centre"),
                falloff: 1.0 / (12.0 * edge * edge),
                near: start..near.len() as u32,
                drags: std::mem::take(&mut drags[vertex as usize]),
            });
        }
        Ok(Self { slides, normals, rows, near })
    }
}

/// The vertex and its neighbours up to so many edges away, ascending.
fn ring(adjacency: &understudy_core::Adjacency, vertex: u32, rings: usize) -> Vec<u32> {
    let mut found = vec![vertex];
    let mut fresh = vec![vertex];
    for _ in 0..rings {
        let mut next: Vec<u32> =
            fresh.iter().flat_map(|v| adjacency.neighbours(*v as usize)).copied().collect();
        next.sort_unstable();
        next.dedup();
        next.retain(|v| !found.contains(v));
        found.extend(&next);
        fresh = next;
    }
    found.sort_unstable();
    found
}

impl Deformer for SkinSlide {
    fn name(&self) -> &str {
        "skin slide"
    }

    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], scratch: &mut Scratch) {
        let Scratch { points: normals, more_points: before, .. } = scratch;
        self.normals.compute(vertices, normals);
        before.clear();
        before.extend(self.normals.vertices.iter().map(|v| vertices[*v as usize]));
        for row in &self.rows {
            let rest = frame.rest[row.vertex as usize];
            let normal = normals[row.slot as usize];
            let here = before[row.slot as usize];
            let mut total = Vec3::ZERO;
            for &(slide, weight) in &row.drags {
                let Slide { bone, reference, limit, .. } = self.slides[slide as usize];
                let moved = frame.matrices[bone].transform_point3(rest);
                let drag = (moved - frame.matrices[reference].transform_point3(rest)) * weight;
                let tangent = drag - normal * normal.dot(drag);
                total += tangent / (1.0 + tangent.length_squared() / (limit * limit)).sqrt();
            }
            if total == Vec3::ZERO {
                continue;
            }
            let near = &self.near[row.near.start as usize..row.near.end as usize];
            let there = here + total;
            let lift = height(near, normals, before, row.falloff, there)
                - height(near, normals, before, row.falloff, here);
            vertices[row.vertex as usize] = there - normal * lift;
        }
    }
}

/// Signed height of a point over the surface of its neighbourhood: `Σ w n·(x − q) / Σ w` (Shen et al.
/// 2004 without the value terms). The weight `(1 − |x − q|²/12h²)⁴` stands in for their Gaussian: as
/// smooth as is needed, and an exponential for every neighbour would be most of the cost.
fn height(near: &[u32], normals: &[Vec3], points: &[Vec3], falloff: f32, x: Vec3) -> f32 {
    let (mut sum, mut total) = (0.0f32, f32::MIN_POSITIVE);
    for &slot in near {
        let away = x - points[slot as usize];
        let near = (1.0 - away.length_squared() * falloff).max(0.0);
        let weight = (near * near) * (near * near);
        sum += weight * normals[slot as usize].dot(away);
        total += weight;
    }
    sum / total
}

#[cfg(test)]
mod tests {
    use super::super::Skinning;
    use super::super::test_support::*;
    use super::*;

    fn cuff() -> Slide {
        let mesh = tube();
        let weight =
            |p: &Vec3| super::super::smooth_step(2.0, 8.0, p.y) * super::super::smooth_step(18.0, 12.0, p.y);
        let mask = (0u32..).zip(mesh.positions().iter().map(weight)).filter(|(_, w)| *w > 0.0).collect();
        Slide { name: "cuff".into(), bone: 1, reference: 0, mask, amount: 0.15, limit: 2.5 }
    }

    fn arm(slides: Vec<Slide>) -> crate::StackRig {
        let mesh = tube();
        let skinning = Skinning::linear(weights(&mesh), &size(&mesh)).expect("fits");
        let slide = SkinSlide::new(slides, &mesh, &size(&mesh)).expect("fits");
        rig(mesh, vec![Box::new(skinning), Box::new(slide)])
    }

    #[test]
    fn still_at_rest_under_rigid_motion_and_continuous() {
        let rig = arm(vec![cuff()]);
        assert_identity_at_rest(&rig, 1e-4);
        let moved = [("swing", 80.0), ("shift", 20.0)];
        let slid = largest_difference(&pose(&rig, &moved), &pose(&arm(vec![]), &moved));
        assert!(slid < 1e-3, "{slid}");
        assert_continuous(&rig, 0.06);
    }

    /// Below the elbow the arm is a cylinder: vertices slide along it and stay on its radius.
    #[test]
    fn vertices_slide_within_the_limit_and_stay_on_the_surface() {
        let (with, without) = (arm(vec![cuff()]), arm(vec![]));
        for changes in [vec![("twist", 80.0)], vec![("bend", 100.0)], vec![("bend", 60.0), ("twist", -70.0)]]
        {
            let (a, b) = (pose(&with, &changes), pose(&without, &changes));
            let mut furthest = 0.0f32;
            for vertex in (2 * AROUND) as usize..(7 * AROUND) as usize {
                furthest = furthest.max((a[vertex] - b[vertex]).length());
                let radius = a[vertex].with_y(0.0).length();
                assert!((radius - 5.0).abs() < 0.12, "vertex {vertex} at radius {radius}");
            }
            assert!(furthest > 0.3, "{changes:?}: {furthest}");
            assert!(largest_difference(&a, &b) < 1.05 * cuff().limit);
        }
    }

    #[test]
    fn bad_slides_are_named() {
        let mesh = tube();
        let new =
            |slide| SkinSlide::new(vec![slide], &mesh, &size(&mesh)).err().expect("must fail").to_string();
        assert!(new(Slide { reference: 7, ..cuff() }).contains("slide 'cuff' names 'bone 7'"));
        assert!(new(Slide { limit: 0.0, ..cuff() }).contains("limit"));
        assert!(new(Slide { mask: vec![(9999, 1.0)], ..cuff() }).contains("vertex 9999"));
    }
}
