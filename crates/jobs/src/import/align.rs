//! Lays a cache onto the bones of its character: scale, axes and frame offset, found by comparing the cache with what
//! linear skinning gives. The comparison is of poses, so that it does not matter where either file has its rest.

use understudy_core::{DMat3, DVec3, Vec3};

/// Ratios of units in use, and none.
const RATIOS: [f64; 13] =
    [1.0, 0.01, 100.0, 0.1, 10.0, 2.54, 1.0 / 2.54, 30.48, 1.0 / 30.48, 0.3048, 1.0 / 0.3048, 0.001, 1000.0];
/// A ratio so near to one of them is it.
const NEAR: f64 = 0.08;

/// From the cache to the bones.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placement {
    pub scale: f64,
    pub turn: DMat3,
}

impl Placement {
    pub const NONE: Self = Self { scale: 1.0, turn: DMat3::IDENTITY };

    pub fn apply(&self, p: Vec3) -> Vec3 {
        if *self == Self::NONE { p } else { (self.turn * p.as_dvec3() * self.scale).as_vec3() }
    }

    /// Such as `x −z y`: what each axis becomes.
    pub fn axes(&self) -> String {
        let rows = [0, 1, 2].map(|row| {
            let row = self.turn.row(row);
            let axis = (0..3).max_by(|a, b| row[*a].abs().total_cmp(&row[*b].abs())).unwrap_or(0);
            format!("{}{}", if row[axis] < 0.0 { "−" } else { "" }, ["x", "y", "z"][axis])
        });
        rows.join(" ")
    }
}

/// The 24 turns that take axes to axes.
fn turns() -> Vec<DMat3> {
    let axes = [DVec3::X, DVec3::Y, DVec3::Z];
    let signed: Vec<DVec3> = axes.iter().flat_map(|axis| [*axis, -*axis]).collect();
    let mut out = Vec::new();
    for x in &signed {
        for y in signed.iter().filter(|y| x.dot(**y) == 0.0) {
            out.push(DMat3::from_cols(*x, *y, x.cross(*y)));
        }
    }
    out
}

/// Poses of the same vertices: as skinned, and in the cache.
pub(super) struct Pairs {
    pub skinned: Vec<Vec<Vec3>>,
    pub cached: Vec<Vec<Vec3>>,
}

impl Pairs {
    /// The turn and scale that lay the cache onto the skinned poses best; given ones are kept. Neither file's origin
    /// is moved: frame-locked files stand in one world.
    pub fn placement(&self, scale: Option<f64>, turn: Option<DMat3>) -> Placement {
        let all = || self.skinned.iter().flatten().zip(self.cached.iter().flatten());
        let squares = self.cached.iter().flatten().map(|p| p.as_dvec3().length_squared());
        let cached = squares.sum::<f64>().max(1e-30);
        let turns = turn.map_or_else(turns, |turn| vec![turn]);
        let mut best = (f64::INFINITY, Placement::NONE);
        for turn in turns {
            let dot: f64 = all().map(|(s, c)| s.as_dvec3().dot(turn * c.as_dvec3())).sum();
            let fitted = scale.unwrap_or_else(|| snapped(dot / cached));
            if fitted <= 0.0 {
                continue;
            }
            let placement = Placement { scale: fitted, turn };
            let error: f64 = all().map(|(s, c)| f64::from(placement.apply(*c).distance(*s))).sum();
            // Of two that fit as well the first wins: nothing is turned without need.
            let better = error < best.0 * (1.0 - 1e-6);
            if better || (turn == DMat3::IDENTITY && error <= best.0 * (1.0 + 1e-6)) {
                best = (error, placement);
            }
        }
        best.1
    }
}

/// The nearest ratio of units, or the number itself.
fn snapped(ratio: f64) -> f64 {
    let near = |unit: &&f64| ratio > 0.0 && (ratio / **unit).ln().abs() < NEAR;
    RATIOS.iter().find(near).copied().unwrap_or(ratio)
}

/// Mean distance of two lists of points.
pub(super) fn mean_distance(a: &[Vec3], b: &[Vec3]) -> f64 {
    let sum: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a.distance(*b))).sum();
    sum / a.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    #[test]
    fn units_and_axes_are_found_from_poses_that_do_not_quite_agree() {
        let mut random = Random::stream(7, 0);
        let mut point = |size: f32| {
            Vec3::new(random.uniform(-1.0, 1.0), random.uniform(0.0, 3.0), random.uniform(-0.4, 0.4)) * size
        };
        let skinned: Vec<Vec<Vec3>> = (0..3).map(|_| (0..60).map(|_| point(50.0)).collect()).collect();
        for (index, turn) in turns().into_iter().enumerate() {
            let scale = RATIOS[index % RATIOS.len()];
            let back = |p: &Vec3| (turn.transpose() * p.as_dvec3() / scale).as_vec3();
            let noisy = |p: &Vec3, noise: Vec3| back(&(*p + noise));
            let cached =
                skinned.iter().map(|pose| pose.iter().map(|p| noisy(p, point(0.5))).collect()).collect();
            let found = Pairs { skinned: skinned.clone(), cached }.placement(None, None);
            assert_eq!((found.scale, found.turn), (scale, turn), "turn {index}");
        }
        let z_up = Placement { scale: 1.0, turn: DMat3::from_cols(DVec3::X, -DVec3::Z, DVec3::Y) };
        assert_eq!((z_up.axes(), Placement::NONE.axes()), ("x z −y".into(), "x y z".into()));
    }
}
