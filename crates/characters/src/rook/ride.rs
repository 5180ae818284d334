//! Parts that are sewn onto the body ride on it: soft ones follow the triangle under each vertex, hard
//! ones move as a whole with three vertices around them. Runs last.

use understudy_core::{Affine3A, Mat3, Vec3};
use understudy_rigs::{Deformer, Frame, Scratch};

/// Vertices that follow one frame of the body.
#[derive(Debug, Clone, PartialEq)]
pub struct Rider {
    /// Three vertices of the body.
    pub anchors: [u32; 3],
    /// Rigid: no stretch. Otherwise the part is stretched with the triangle.
    pub rigid: bool,
    /// Vertices that follow.
    pub vertices: Vec<u32>,
}

/// `v = F(posed anchors) · F(rest anchors)⁻¹ · v⁰`. The rest frames are of the rest mesh as built, so a
/// displaced rest vertex is carried like any other point of its part.
pub struct Ride {
    riders: Vec<(Rider, Affine3A)>,
}

impl Ride {
    /// Stores the inverse rest frames. `rest`: positions of the mesh, `[V]`.
    pub fn new(riders: Vec<Rider>, rest: &[Vec3]) -> Self {
        let with_frame = |rider: Rider| {
            let inverse = frame(&rider, rest).inverse();
            (rider, inverse)
        };
        Self { riders: riders.into_iter().map(with_frame).collect() }
    }
}

fn frame(rider: &Rider, positions: &[Vec3]) -> Affine3A {
    let [a, b, c] = rider.anchors.map(|anchor| positions[anchor as usize]);
    let (first, second) = (b - a, c - a);
    let normal = first.cross(second).normalize_or(Vec3::Y);
    if rider.rigid {
        // The sum of both edges is the steadier direction.
        let x = (first + second).normalize_or(Vec3::X);
        Affine3A::from_mat3_translation(Mat3::from_cols(x, normal.cross(x), normal), (a + b + c) / 3.0)
    } else {
        Affine3A::from_mat3_translation(Mat3::from_cols(first, second, normal), a)
    }
}

impl Deformer for Ride {
    fn name(&self) -> &str {
        "ride"
    }

    fn deform(&self, stage: &Frame<'_>, vertices: &mut [Vec3], _scratch: &mut Scratch) {
        for (rider, inverse) in &self.riders {
            let carry = frame(rider, vertices) * *inverse;
            for &vertex in &rider.vertices {
                vertices[vertex as usize] = carry.transform_point3(stage.rest[vertex as usize]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_parts_move_rigidly_and_soft_ones_stretch() {
        let rest = [Vec3::ZERO, Vec3::X, Vec3::Y, Vec3::new(0.3, 0.3, 0.5), Vec3::new(0.6, 0.3, 0.5)];
        let posed = [Vec3::ZERO, Vec3::X * 2.0, Vec3::Y * 2.0];
        for (rigid, length) in [(true, 0.3), (false, 0.6)] {
            let rider = Rider { anchors: [0, 1, 2], rigid, vertices: vec![3, 4] };
            let carry = frame(&rider, &posed) * frame(&rider, &rest).inverse();
            let moved = carry.transform_point3(rest[3]).distance(carry.transform_point3(rest[4]));
            assert!((moved - length).abs() < 1e-5, "{rigid} {moved}");
        }
    }
}
