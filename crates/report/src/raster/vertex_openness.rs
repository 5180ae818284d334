//! How open every vertex is to the light around it: baked once, for viewers that shade on a graphics card and cannot
//! afford to ask for every pixel, as [`super::openness`] does.

use super::key_shadow::KeyShadow;
use rayon::prelude::*;
use understudy_core::normals::vertex_normals;
use understudy_core::{Face, Vec3};

/// Directions over the sphere that are looked along.
const DIRECTIONS: usize = 40;

/// For every vertex the share of the light of an even sky that reaches it, weighted by the cosine to its normal:
/// `o_v = Σ_d seen(v, d) max(0, n_v·d) / Σ_d max(0, n_v·d)`, `[V]`, 0 to 1. 1 without faces.
pub fn vertex_openness(positions: &[Vec3], faces: &[Face]) -> Vec<f32> {
    let triangles: Vec<[u32; 3]> = faces.iter().flat_map(Face::triangles).collect();
    let normals = vertex_normals(faces, positions);
    let directions: Vec<Vec3> = directions().collect();
    let shadows: Vec<KeyShadow> =
        directions.par_iter().filter_map(|key| KeyShadow::cast(positions, &triangles, *key)).collect();
    let one = |(position, normal): (&Vec3, &Vec3)| {
        shadows.iter().fold([0.0f32; 2], |[seen, all], shadow| {
            let cosine = normal.dot(shadow.key()).max(0.0);
            let look = std::iter::once([0.0, 0.0, 0.0]);
            let visible = if cosine > 0.0 { shadow.visible(*position, look) } else { 0.0 };
            [seen + cosine * visible, all + cosine]
        })
    };
    let sums: Vec<[f32; 2]> = positions.par_iter().zip(&normals).map(one).collect();
    sums.into_iter().map(|[seen, all]| if all > 0.0 { seen / all } else { 1.0 }).collect()
}

/// Evenly over the sphere: a Fibonacci lattice.
fn directions() -> impl Iterator<Item = Vec3> {
    let golden = std::f32::consts::PI * (3.0 - 5.0f32.sqrt());
    (0..DIRECTIONS).map(move |index| {
        let y = 1.0 - 2.0 * (index as f32 + 0.5) / DIRECTIONS as f32;
        let radius = (1.0 - y * y).sqrt();
        let (sin, cos) = (golden * index as f32).sin_cos();
        Vec3::new(radius * cos, y, radius * sin)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_of_a_box_is_darker_than_its_lid() {
        // A wide plate, and a smaller one close below it that faces it.
        let plate = |half: f32, y: f32| {
            [[-half, -half], [half, -half], [half, half], [-half, half]].map(|[x, z]| Vec3::new(x, y, z))
        };
        let positions = [plate(10.0, 1.0), plate(2.0, 0.0)].concat();
        let faces = [Face::quad(0, 3, 2, 1), Face::quad(4, 7, 6, 5)];
        let open = vertex_openness(&positions, &faces);
        let (lid, floor) = (&open[..4], &open[4..]);
        assert!(lid.iter().all(|o| *o > 0.95), "{lid:?}");
        assert!(floor.iter().all(|o| *o < 0.3), "{floor:?}");
    }

    #[test]
    fn nothing_hides_a_point_alone() {
        assert_eq!(vertex_openness(&[Vec3::ZERO], &[]), [1.0]);
        assert!(vertex_openness(&[], &[]).is_empty());
    }
}
