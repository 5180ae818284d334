//! Eyes that turn as balls: where the centres are, which vertices turn, where the pupil is, and how far a look goes. The
//! shapes of a scanned head move eyes along straight lines, which squashes them; here they turn, about X and then about Y.

use understudy_core::{BlendshapeRig, DMat3, DVec3, Mesh, Shape, SparseDeltas, Vec3};

/// One eye of a head.
#[derive(Debug, Clone, PartialEq)]
pub struct Eye {
    /// The ball's vertices.
    pub vertices: Vec<u32>,
    /// The vertex in the middle of the pupil.
    pub pupil: u32,
    /// The ball's centre, cm.
    pub centre: DVec3,
    /// For every shape that is a look of this eye: its index, and the angles about X (down) and Y (left) that the full
    /// shape turns it by, radians.
    pub looks: Vec<(usize, [f64; 2])>,
}

/// Angles of an eye about X and Y, radians: first X, then Y.
pub type Gaze = [f64; 2];

/// The rotation of a gaze, `R_y(b) R_x(a)`.
pub fn rotation(gaze: Gaze) -> DMat3 {
    DMat3::from_rotation_y(gaze[1]) * DMat3::from_rotation_x(gaze[0])
}

impl Eye {
    /// Finds the eye in a segment's vertices and takes its motion out of `shapes`.
    pub(super) fn find(
        mesh: &Mesh,
        vertices: Vec<u32>,
        suffix: &str,
        shapes: &BlendshapeRig,
    ) -> Option<Self> {
        let at = |vertex: u32| mesh.positions()[vertex as usize].as_dvec3();
        let centre = sphere_centre(vertices.iter().map(|vertex| at(*vertex)))?;
        let towards = |vertex: u32| (at(vertex) - centre).normalize_or_zero();
        let pupil = *vertices.iter().max_by(|a, b| towards(**a).z.total_cmp(&towards(**b).z))?;
        let front: Vec<u32> = vertices.iter().copied().filter(|vertex| towards(*vertex).z > 0.94).collect();
        let mut looks = Vec::new();
        for (index, shape) in shapes.shapes().iter().enumerate() {
            if !shape.name.starts_with("eyeLook") || !shape.name.ends_with(suffix) {
                continue;
            }
            let dense = shape.deltas.to_dense(mesh.vertex_count());
            let sum = |moved: f64| {
                let of = |vertex: &u32| at(*vertex) + dense[*vertex as usize].as_dvec3() * moved - centre;
                front.iter().map(of).sum::<DVec3>().normalize_or_zero()
            };
            let (from, to) = (sum(0.0), sum(1.0));
            let angles = |d: DVec3| [(-d.y).atan2(d.x.hypot(d.z)), d.x.atan2(d.z)];
            let (from, to) = (angles(from), angles(to));
            looks.push((index, [to[0] - from[0], to[1] - from[1]]));
        }
        Some(Self { vertices, pupil, centre, looks })
    }

    /// The angles that weights ask for.
    pub fn gaze(&self, weights: &[f32]) -> Gaze {
        let mut gaze = [0.0; 2];
        for (shape, [x, y]) in &self.looks {
            let weight = f64::from(weights[*shape]);
            gaze = [gaze[0] + weight * x, gaze[1] + weight * y];
        }
        gaze
    }

    /// The weights of the looks that give the angles, each 0 to 1: up or down, in or out.
    pub fn weights_of(&self, gaze: Gaze, weights: &mut [f32]) {
        for axis in 0..2 {
            for (shape, turn) in &self.looks {
                // A look is of the axis that it turns about most.
                if turn[axis].abs() > turn[1 - axis].abs() {
                    let weight = (gaze[axis] / turn[axis]).clamp(0.0, 1.0);
                    weights[*shape] = weight as f32;
                }
            }
        }
    }

    /// Turns the ball's vertices from their places at rest.
    pub fn turn(&self, gaze: Gaze, rest: &[Vec3], out: &mut [Vec3]) {
        let rotation = rotation(gaze);
        for &vertex in &self.vertices {
            let offset = rest[vertex as usize].as_dvec3() - self.centre;
            out[vertex as usize] = (rotation * offset + self.centre).as_vec3();
        }
    }
}

/// The shapes without what they do to the vertices of eyes, except dilation of pupils.
pub(super) fn without_eyes(shapes: &BlendshapeRig, eyes: &[Eye; 2]) -> Vec<Shape> {
    let mut is_eye = vec![false; shapes.neutral().len()];
    eyes.iter().flat_map(|eye| &eye.vertices).for_each(|vertex| is_eye[*vertex as usize] = true);
    let one = |shape: &Shape| {
        if shape.name.starts_with("PupilDilate") {
            return shape.clone();
        }
        let kept = shape.deltas.vertices.iter().zip(&shape.deltas.deltas);
        let kept = kept.filter(|(vertex, _)| !is_eye[**vertex as usize]);
        let (vertices, deltas) = kept.map(|(vertex, delta)| (*vertex, *delta)).unzip();
        Shape { name: shape.name.clone(), deltas: SparseDeltas { vertices, deltas } }
    };
    shapes.shapes().iter().map(one).collect()
}

/// The centre of the sphere nearest to points, by linear least squares: `|p|² = 2 c·p + k`.
fn sphere_centre(points: impl Iterator<Item = DVec3> + Clone) -> Option<DVec3> {
    let count = points.clone().count();
    if count < 10 {
        return None;
    }
    let mean = points.clone().sum::<DVec3>() / count as f64;
    let (mut matrix, mut right) = (DMat3::ZERO, DVec3::ZERO);
    let square = points.clone().map(|p| (p - mean).length_squared()).sum::<f64>() / count as f64;
    for point in points {
        let p = point - mean;
        matrix += DMat3::from_cols(p * p.x, p * p.y, p * p.z);
        right += p * (0.5 * (p.length_squared() - square));
    }
    (matrix.determinant().abs() > 1e-12).then(|| mean + matrix.inverse() * right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_sphere_has_its_centre() {
        let centre = DVec3::new(3.0, 3.6, 8.0);
        let points = (0..200).map(|i| {
            let (turn, height) = (i as f64 * 0.7, (i as f64 / 200.0) * 1.2 - 0.4);
            let radius = (1.0 - height * height).sqrt();
            centre + DVec3::new(radius * turn.cos(), radius * turn.sin(), height) * 1.5
        });
        let found = sphere_centre(points).expect("enough points");
        assert!((found - centre).length() < 1e-9, "{found}");
    }

    #[test]
    fn gazes_turn_down_and_left() {
        let down = rotation([0.3, 0.0]) * DVec3::Z;
        assert!(down.y < -0.29 && down.x.abs() < 1e-12);
        let left = rotation([0.0, 0.3]) * DVec3::Z;
        assert!(left.x > 0.29, "the character's left is +X");
    }
}
