//! In how many ways some vertices move: as many dense numbers can say all of it at once. See [`ways`].

use super::FacePoses;
use crate::matrix::{View, multiply};
use understudy_core::SymmetricEigen;

/// Poses that suffice.
const MOST_POSES: usize = 300;

/// Principal components of the offsets of some vertices by which they move at least `least`, root mean square a
/// vertex, cm.
pub fn ways(poses: &FacePoses<'_>, vertices: &[u32], least: f64) -> usize {
    let chosen = poses.spread(MOST_POSES);
    let (count, width) = (chosen.len(), 3 * vertices.len());
    let places = |pose: &usize| {
        let now = poses.vertices_of(*pose);
        vertices.iter().flat_map(move |v| now[*v as usize].as_dvec3().to_array())
    };
    let mut rows: Vec<f64> = chosen.iter().flat_map(places).collect();
    for place in 0..width {
        let mean = (0..count).map(|row| rows[row * width + place]).sum::<f64>() / count as f64;
        (0..count).for_each(|row| rows[row * width + place] -= mean);
    }
    // X Xᵀ has the same eigenvalues as the far larger Xᵀ X.
    let mut products = vec![0.0; count * count];
    let rows = View::new(&rows, count, width);
    multiply(&mut products, 0.0, rows, rows.transposed());
    let enough = least * least * (count * vertices.len()) as f64;
    match SymmetricEigen::new(&products, count) {
        Ok(eigen) => eigen.values.iter().take_while(|value| **value > enough).count(),
        Err(_) => count,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_face;
    use super::*;
    use understudy_core::Vec3;

    #[test]
    fn what_moves_in_two_ways_is_said_by_two_numbers() {
        let face = small_face(3, 120);
        let mut moving = face.poses();
        let count = moving.mesh.vertex_count();
        // The first way moves all vertices by some 0.5 cm, the second by some 0.05.
        let pose = |pose: usize| {
            let (a, b) = ((pose as f32 * 0.7).sin(), (pose as f32 * 1.9).cos() * 0.1);
            let one =
                move |v: usize| Vec3::new(a, b * (v as f32).sin(), a * 0.1) + Vec3::splat(v as f32 * 0.01);
            (0..count).map(one)
        };
        let vertices: Vec<Vec3> = (0..moving.len()).flat_map(pose).collect();
        moving.vertices = vertices;
        let all: Vec<u32> = (0..count as u32).collect();
        assert_eq!([1e-3, 0.1, 10.0].map(|least| ways(&moving, &all, least)), [2, 1, 0]);
    }
}
