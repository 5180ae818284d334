//! In which ways some vertices move, and in how many: as many dense numbers can say all of it at once. See
//! [`Components`] and [`ways`].

use super::Recording;
use crate::matrix::{View, multiply};
use understudy_core::linear_algebra::SymmetricEigen;

/// Poses that suffice.
const MOST_POSES: usize = 300;
/// Components of which the variance is a smaller share of the first one's are rounding errors.
const LEAST_SHARE: f64 = 1e-10;

/// Principal components of the places of some vertices by which they move at least `least`, root mean square a
/// vertex, cm.
pub fn ways(poses: &Recording, vertices: &[u32], least: f64) -> usize {
    let places = |pose: &usize| {
        let now = poses.vertices_of(*pose);
        vertices.iter().flat_map(|v| now[*v as usize].as_dvec3().to_array()).collect()
    };
    let chosen: Vec<Vec<f64>> = poses.spread(MOST_POSES).iter().map(places).collect();
    let enough = least * least * vertices.len() as f64;
    let long = |way: &&Vec<f64>| way.iter().map(|w| w * w).sum::<f64>() > enough;
    Components::new(&chosen, chosen.len()).ways.iter().take_while(long).count()
}

/// `offset ≈ mean + Σ_k c_k · way_k`, with numbers `c_k` of unit variance.
pub struct Components {
    /// Over all poses, or what was put in its place.
    pub mean: Vec<f64>,
    /// The longest first; fewer than were asked for where there are no more.
    pub ways: Vec<Vec<f64>>,
}

impl Components {
    /// At most `most` ways. `poses`: as many numbers each.
    ///
    /// # Panics
    /// Without poses.
    pub fn new(poses: &[Vec<f64>], most: usize) -> Self {
        let mut mean = vec![0.0; poses[0].len()];
        for pose in poses {
            mean.iter_mut().zip(pose).for_each(|(sum, number)| *sum += number / poses.len() as f64);
        }
        Self::about(mean, poses, most)
    }

    /// Ways from another place than the mean: from zero, they say the mean as well.
    ///
    /// # Panics
    /// Without poses.
    pub fn about(mean: Vec<f64>, poses: &[Vec<f64>], most: usize) -> Self {
        let (count, width) = (poses.len(), mean.len());
        let rows: Vec<f64> =
            poses.iter().flat_map(|pose| pose.iter().zip(&mean).map(|(p, m)| p - m)).collect();
        // X Xᵀ has the same eigenvalues as the far larger Xᵀ X.
        let mut products = vec![0.0; count * count];
        let view = View::new(&rows, count, width);
        multiply(&mut products, 0.0, view, view.transposed());
        let mut ways = Vec::new();
        if let Ok(eigen) = SymmetricEigen::new(&products, count) {
            let least = LEAST_SHARE * eigen.values[0];
            let kept = eigen.values.iter().take(most).take_while(|value| **value > least).count();
            let mut out = vec![0.0; kept * width];
            multiply(&mut out, 0.0, View::new(&eigen.vectors, kept, count), view);
            // Xᵀ q has the length √λ; with numbers of unit variance a way is √(λ / count) long.
            let scale = 1.0 / (count as f64).sqrt();
            ways = out.chunks_exact(width).map(|way| way.iter().map(|w| w * scale).collect()).collect();
        }
        Self { mean, ways }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_face;
    use super::*;
    use understudy_core::{Random, Vec3};

    /// Poses of three vertices that move in two ways about a mean; the second is smaller.
    fn poses(count: usize) -> Vec<Vec<f64>> {
        let mut random = Random::new(5);
        let pose = |_| {
            let (a, b) = (random.normal(), 0.1 * random.normal());
            (0..9).map(|i| 0.5 + a * f64::from(i) + b * f64::from(i % 3 - 1)).collect()
        };
        (0..count).map(pose).collect()
    }

    #[test]
    fn components_say_all_that_is_done_in_as_many_ways() {
        let poses = poses(60);
        let components = Components::new(&poses, 5);
        assert_eq!(components.ways.len(), 2, "no more ways than there are");
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut squares = [0.0; 2];
        for pose in &poses {
            let mut left: Vec<f64> = pose.iter().zip(&components.mean).map(|(p, m)| p - m).collect();
            for (way, square) in components.ways.iter().zip(&mut squares) {
                let number = dot(way, &left) / dot(way, way);
                *square += number * number / 60.0;
                left.iter_mut().zip(way).for_each(|(left, w)| *left -= number * w);
            }
            assert!(dot(&left, &left).sqrt() < 1e-9, "{left:?}");
        }
        assert!(squares.iter().all(|square| (square - 1.0).abs() < 1e-9), "unit variance: {squares:?}");
        assert!(
            dot(&components.ways[0], &components.ways[0]) > dot(&components.ways[1], &components.ways[1])
        );
    }

    #[test]
    fn what_never_moves_has_no_components() {
        let components = Components::new(&vec![vec![0.25; 6]; 4], 3);
        assert!(components.ways.is_empty() && components.mean == vec![0.25; 6]);
        assert!(Components::new(&poses(1), 3).ways.is_empty(), "one pose shows no way to move");
    }

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
