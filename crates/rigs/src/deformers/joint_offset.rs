//! Pose-space correctives (Lewis et al. 2000): sculpted offsets that appear as a joint comes near to
//! chosen rotations. Runs in rest space, before skinning.

use super::driver::{RigSize, check_positive, unknown};
use crate::rig::RigError;
use crate::stack::{Deformer, Frame, Scratch};
use understudy_core::linear_algebra::Cholesky;
use understudy_core::{Quat, SparseDeltas, Vec3};

/// A sculpted pose of the joint.
#[derive(Debug, Clone, PartialEq)]
pub struct PoseTarget {
    /// Rotation of the joint on top of its rest rotation, as joint controls make it.
    pub rotation: Quat,
    /// Offsets in rest space that are fully there at this rotation.
    pub deltas: SparseDeltas,
}

/// Settings of a [`JointOffset`].
#[derive(Debug, Clone, PartialEq)]
pub struct JointOffsetConfig {
    /// For messages.
    pub name: String,
    /// The joint.
    pub bone: usize,
    /// Its local rotation in the rest pose.
    pub rest: Quat,
    /// The sculpted poses; the rest pose is always one more, without offsets.
    pub targets: Vec<PoseTarget>,
    /// Width of the kernels: how far a target reaches.
    pub reach_degrees: f32,
}

/// `v += Σ_k w_k(q) δ_k`. The weights are radial basis functions of the rotation,
/// `w = W φ`, `φ_i = exp(−(angle(q, q_i)/reach)²)`, with `W = Φ⁻¹`: each target gets weight one in its
/// own rotation and zero in the others and at rest.
pub struct JointOffset {
    config: JointOffsetConfig,
    /// `W`, one row a target, one column a target and the rest pose.
    solution: Vec<f32>,
}

impl JointOffset {
    /// Checks the targets and solves for the weights.
    pub fn new(config: JointOffsetConfig, size: &RigSize) -> Result<Self, RigError> {
        let part = format!("joint offset '{}'", config.name);
        size.check_bone(&part, config.bone)?;
        check_positive(&part, "reach", config.reach_degrees)?;
        if !config.rest.is_normalized() {
            return Err(unknown(&part, format!("rest rotation {}", config.rest)));
        }
        for target in &config.targets {
            let deltas = &target.deltas;
            size.check_vertices(&part, deltas.vertices.iter().copied())?;
            let finite = deltas.deltas.iter().all(|d| d.is_finite());
            if !target.rotation.is_normalized() || !finite || deltas.vertices.len() != deltas.deltas.len() {
                return Err(unknown(&part, format!("a target at rotation {}", target.rotation)));
            }
        }
        let mut centres: Vec<Quat> = config.targets.iter().map(|t| t.rotation).collect();
        centres.push(Quat::IDENTITY);
        let count = centres.len();
        let reach = config.reach_degrees.to_radians();
        let mut matrix = vec![0.0f64; count * count];
        for (row, a) in centres.iter().enumerate() {
            for (column, b) in centres.iter().enumerate() {
                matrix[row * count + column] = f64::from(kernel(*a, *b, reach));
            }
        }
        let factor = Cholesky::new(&matrix, count).filter(|factor| factor.least_pivot() > 1e-6);
        let factor =
            factor.ok_or_else(|| unknown(&part, "two targets at (almost) the same rotation".into()))?;
        let inverse = factor.inverse();
        let solution = inverse[..config.targets.len() * count].iter().map(|w| *w as f32).collect();
        Ok(Self { config, solution })
    }

    /// The weights of the targets for a local rotation of the joint.
    pub fn weights(&self, rotation: Quat, out: &mut Vec<f32>) {
        let moved = self.config.rest.inverse() * rotation;
        let reach = self.config.reach_degrees.to_radians();
        let count = self.config.targets.len() + 1;
        out.clear();
        for row in self.solution.chunks_exact(count) {
            let targets = self.config.targets.iter().zip(row);
            let sum: f32 = targets.map(|(t, w)| w * kernel(moved, t.rotation, reach)).sum();
            out.push(sum + row[count - 1] * kernel(moved, Quat::IDENTITY, reach));
        }
    }
}

/// A Gaussian of the angle between two rotations.
fn kernel(a: Quat, b: Quat, reach: f32) -> f32 {
    // asin of the vector part is accurate near zero, where acos of the scalar part is not.
    let relative = a.inverse() * b;
    let sine = Vec3::new(relative.x, relative.y, relative.z).length();
    let angle = 2.0 * sine.atan2(relative.w.abs());
    (-(angle / reach).powi(2)).exp()
}

impl Deformer for JointOffset {
    fn name(&self) -> &str {
        "joint offset"
    }

    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], scratch: &mut Scratch) {
        self.weights(frame.pose.0[self.config.bone].rotation, &mut scratch.numbers);
        for (target, &weight) in self.config.targets.iter().zip(&scratch.numbers) {
            target.deltas.add_scaled(weight, vertices);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Skinning;
    use super::super::test_support::*;
    use super::*;

    fn config() -> JointOffsetConfig {
        let target = |rotation: Quat, way: Vec3| PoseTarget {
            rotation,
            deltas: SparseDeltas { vertices: vec![5, 170], deltas: vec![way, way * 2.0] },
        };
        JointOffsetConfig {
            name: "elbow".into(),
            bone: 1,
            rest: Quat::IDENTITY,
            targets: vec![
                target(Quat::from_rotation_x(1.5), Vec3::X),
                target(Quat::from_rotation_y(1.0), Vec3::Y),
                target(Quat::from_rotation_x(0.8), Vec3::Z),
            ],
            reach_degrees: 50.0,
        }
    }

    fn corrected() -> crate::StackRig {
        let mesh = tube();
        let offset = JointOffset::new(config(), &size(&mesh)).expect("fits");
        let skinning = Skinning::linear(weights(&mesh), &size(&mesh)).expect("fits");
        rig(mesh, vec![Box::new(offset), Box::new(skinning)])
    }

    #[test]
    fn identity_at_rest_and_continuous() {
        let rig = corrected();
        assert_identity_at_rest(&rig, 1e-4);
        assert_continuous(&rig, 0.06);
    }

    #[test]
    fn each_target_has_all_the_say_in_its_own_pose() {
        let offset = JointOffset::new(config(), &size(&tube())).expect("fits");
        let mut weights = Vec::new();
        for (own, target) in config().targets.iter().enumerate() {
            // A quaternion and its negative are the same rotation.
            for rotation in [target.rotation, -target.rotation] {
                offset.weights(rotation, &mut weights);
                for (other, weight) in weights.iter().enumerate() {
                    let expected = if own == other { 1.0 } else { 0.0 };
                    assert!((weight - expected).abs() < 1e-4, "target {own}, weights {weights:?}");
                }
            }
        }
    }

    #[test]
    fn far_away_nothing_is_left_and_nothing_overshoots() {
        let offset = JointOffset::new(config(), &size(&tube())).expect("fits");
        let mut weights = Vec::new();
        offset.weights(Quat::from_rotation_z(3.0), &mut weights);
        assert!(weights.iter().all(|w| w.abs() < 0.02), "{weights:?}");
        for step in 0..60 {
            offset.weights(Quat::from_rotation_x(step as f32 * 0.05), &mut weights);
            assert!(weights.iter().all(|w| (-0.6..1.6).contains(w)), "{weights:?}");
        }
    }

    #[test]
    fn bad_targets_are_named() {
        let mesh = tube();
        let new = |config| JointOffset::new(config, &size(&mesh)).err().expect("must fail").to_string();
        let mut twice = config();
        twice.targets[1].rotation = twice.targets[0].rotation;
        assert!(new(twice).contains("same rotation"));
        let mut far = config();
        far.targets[0].deltas.vertices[1] = 99_999;
        assert!(new(far).contains("joint offset 'elbow' names 'vertex 99999'"));
        assert!(new(JointOffsetConfig { reach_degrees: -1.0, ..config() }).contains("reach"));
    }
}
