//! What stands before the camera: actors as the caller gives them, and the one checked list of
//! triangles that the rasteriser works on.

use super::shade::to_linear;
use crate::heat::HeatScale;
use understudy_core::{Face, Vec3, normals};

/// sRGB colour of an actor without colours: warm clay.
pub const CLAY: Vec3 = Vec3::new(0.80, 0.75, 0.70);

/// Scalar values on the vertices, shown on a scale. Vertices beyond the end are shown as missing.
#[derive(Debug, Clone, Copy)]
pub struct Heat<'a> {
    /// One value per vertex.
    pub values: &'a [f32],
    /// How values become colours.
    pub scale: &'a HeatScale,
}

/// A mesh in a pose. Faces that name a missing vertex or a position that is not finite are left out.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    /// Triangles and quads; both sides are seen.
    pub faces: &'a [Face],
    /// Posed vertices, cm.
    pub positions: &'a [Vec3],
    /// sRGB in 0..=1 a vertex; vertices beyond the end are clay.
    pub colours: Option<&'a [Vec3]>,
    /// Values to show instead of the colours, in a flatter light that keeps them readable.
    pub heat: Option<Heat<'a>>,
    /// Shine of all vertices: 0 is chalk, 1 is polished.
    pub shine: f32,
    /// Shine of each vertex; vertices beyond the end take `shine`.
    pub vertex_shine: Option<&'a [f32]>,
}

impl<'a> Actor<'a> {
    /// A clay figure.
    pub fn new(faces: &'a [Face], positions: &'a [Vec3]) -> Self {
        Self { faces, positions, colours: None, heat: None, shine: 0.3, vertex_shine: None }
    }

    /// Paints every vertex, sRGB in 0..=1.
    pub fn colours(mut self, colours: &'a [Vec3]) -> Self {
        self.colours = Some(colours);
        self
    }

    /// Shows a value per vertex as a heat map.
    pub fn heat(mut self, values: &'a [f32], scale: &'a HeatScale) -> Self {
        self.heat = Some(Heat { values, scale });
        self
    }

    /// Sets the shine of all vertices: 0 is chalk, 1 is polished.
    pub fn shine(mut self, shine: f32) -> Self {
        self.shine = shine;
        self
    }

    /// Sets the shine of each vertex, so that eyes can be wet on matt skin.
    pub fn vertex_shine(mut self, shine: &'a [f32]) -> Self {
        self.vertex_shine = Some(shine);
        self
    }

    /// Linear colour of a vertex.
    fn colour(&self, vertex: usize) -> Vec3 {
        let srgb = match (self.heat, self.colours) {
            (Some(heat), _) => heat.scale.colour(heat.values.get(vertex).copied().unwrap_or(f32::NAN)),
            (None, Some(colours)) => colours.get(vertex).copied().unwrap_or(CLAY),
            (None, None) => CLAY,
        };
        to_linear(srgb)
    }
}

/// Which edges of a triangle are edges of its face: bit `i` is the one opposite corner `i`.
const ALL_EDGES: u8 = 0b111;

/// All actors in one list of checked triangles.
#[derive(Default)]
pub(super) struct Stage {
    /// World positions, cm; only those that triangles name are finite for sure.
    pub positions: Vec<Vec3>,
    /// Smooth unit normals.
    pub normals: Vec<Vec3>,
    /// Linear colours.
    pub colours: Vec<Vec3>,
    /// 0..=1 a vertex; negative marks a heat map.
    pub shine: Vec<f32>,
    /// Corners, all in range and finite.
    pub triangles: Vec<[u32; 3]>,
    /// Edges to draw, a triangle.
    pub edges: Vec<u8>,
}

/// The value of [`Stage::shine`] on a heat map.
pub(super) const FLAT: f32 = -1.0;

impl Stage {
    /// Checks and joins the actors.
    pub fn new(actors: &[Actor]) -> Self {
        let mut stage = Self::default();
        for actor in actors {
            let first = stage.positions.len() as u32;
            let good = |corner: &u32| actor.positions.get(*corner as usize).is_some_and(|p| p.is_finite());
            let faces: Vec<Face> =
                actor.faces.iter().filter(|face| face.corners().iter().all(good)).copied().collect();
            stage.positions.extend_from_slice(actor.positions);
            stage.normals.extend(normals::vertex_normals(&faces, actor.positions));
            for vertex in 0..actor.positions.len() {
                stage.colours.push(actor.colour(vertex));
                let shine = actor.vertex_shine.and_then(|s| s.get(vertex)).copied().unwrap_or(actor.shine);
                let shine = if shine.is_finite() { shine.clamp(0.0, 1.0) } else { 0.0 };
                stage.shine.push(if actor.heat.is_some() { FLAT } else { shine });
            }
            for face in &faces {
                let quad = face.corner_count() == 4;
                for (half, triangle) in face.triangles().enumerate() {
                    stage.triangles.push(triangle.map(|corner| corner + first));
                    // A quad (a, b, c, d) becomes (a, b, c) and (a, c, d): the diagonal is opposite b, then d.
                    let diagonal = if half == 0 { 0b010 } else { 0b100 };
                    stage.edges.push(if quad { ALL_EDGES & !diagonal } else { ALL_EDGES });
                }
            }
        }
        stage
    }

    /// Lower and upper corner of what the triangles span; `None` without triangles.
    pub fn bounds(&self) -> Option<(Vec3, Vec3)> {
        super::bounds(self.triangles.iter().flatten().map(|&corner| &self.positions[corner as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_faces_are_left_out_and_actors_joined() {
        let positions = [Vec3::ZERO, Vec3::X, Vec3::X + Vec3::Y, Vec3::Y, Vec3::NAN];
        let faces = [
            Face::quad(0, 1, 2, 3),
            Face::triangle(0, 1, 4),
            Face::triangle(0, 1, 99),
            Face::triangle(0, 1, 2),
        ];
        let actor = Actor::new(&faces, &positions).colours(&[Vec3::ONE]);
        let stage = Stage::new(&[actor, actor]);
        assert_eq!(stage.triangles, [[0, 1, 2], [0, 2, 3], [0, 1, 2], [5, 6, 7], [5, 7, 8], [5, 6, 7]]);
        assert_eq!(stage.edges[..3], [0b101, 0b011, 0b111]);
        assert_eq!(stage.colours[0], Vec3::ONE);
        assert_eq!(stage.colours[1], to_linear(CLAY));
        assert_eq!(stage.bounds(), Some((Vec3::ZERO, Vec3::X + Vec3::Y)));
        assert!(stage.normals[..4].iter().all(|n| *n == Vec3::Z));
    }
}
