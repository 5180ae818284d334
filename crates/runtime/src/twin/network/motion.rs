//! Rigid motions given by small networks: that of the whole, so that what a twin learns holds still, and those of a face's
//! eyes and gums. A rotation vector and a translation, and their derivative.

use super::{DenseParts, NormalisedInputs, check_chain, check_inputs, pack_dense, unpack_dense};
use crate::TwinError;
use crate::dense::{Kernel, Layer, Precision};
use crate::twin::shared::check_finite;
use understudy_core::{Affine3A, DMat3, DQuat, DVec3, Vec3};

/// A rigid motion as a small network: a rotation vector and a translation.
#[derive(Debug, Clone, PartialEq)]
pub struct MotionParts {
    /// The point about which it turns, cm.
    pub pivot: Vec3,
    /// The controls that it sees.
    pub inputs: Vec<u32>,
    /// Subtracted from each.
    pub mean: Vec<f32>,
    /// Then multiplied.
    pub scale: Vec<f32>,
    /// tanh after all but the last, which gives six numbers: rotation vector (radians), translation (cm).
    pub layers: Vec<DenseParts>,
}

impl MotionParts {
    /// Fails with the first thing that is wrong.
    pub(crate) fn check(&self, name: &str, controls: usize) -> Result<(), TwinError> {
        check_inputs(name, &self.inputs, &self.mean, &self.scale, controls)?;
        check_chain(name, &self.layers, self.inputs.len(), 6)?;
        check_finite(&format!("{name}: pivot"), [self.pivot.is_finite()].into_iter())
    }
}

/// The packed network of a motion.
#[derive(Debug, Clone)]
pub(crate) struct MotionNet {
    pub(crate) pivot: Vec3,
    pub(crate) inputs: NormalisedInputs,
    pub(crate) layers: Vec<Layer>,
}

/// `v ↦ R (v − pivot) + pivot + t`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Motion {
    /// The rotation.
    pub rotation: DMat3,
    /// Its rotation vector, radians.
    pub turn: DVec3,
    /// The translation, cm.
    pub shift: DVec3,
    /// The point about which it turns, cm.
    pub pivot: DVec3,
}

impl Motion {
    /// Nothing moves.
    pub const STILL: Self =
        Self { rotation: DMat3::IDENTITY, turn: DVec3::ZERO, shift: DVec3::ZERO, pivot: DVec3::ZERO };

    /// From a rotation vector and a translation, six numbers.
    pub fn new(six: &[f32], pivot: Vec3) -> Self {
        let turn = DVec3::new(f64::from(six[0]), f64::from(six[1]), f64::from(six[2]));
        let shift = DVec3::new(f64::from(six[3]), f64::from(six[4]), f64::from(six[5]));
        let rotation = DMat3::from_quat(DQuat::from_scaled_axis(turn));
        Self { rotation, turn, shift, pivot: pivot.as_dvec3() }
    }

    /// The motion as a map, in single precision.
    pub fn affine(&self) -> Affine3A {
        let shift = (self.pivot + self.shift - self.rotation * self.pivot).as_vec3();
        Affine3A::from_mat3_translation(self.rotation.as_mat3(), shift)
    }

    /// The motion as a function, in single precision.
    pub fn transform(&self) -> impl Fn(Vec3) -> Vec3 + use<> {
        let rotation = self.rotation.as_mat3();
        let shift = (self.pivot + self.shift - self.rotation * self.pivot).as_vec3();
        move |point| rotation * point + shift
    }

    /// Moves points.
    pub fn apply(&self, points: &mut [Vec3]) {
        let transform = self.transform();
        points.iter_mut().for_each(|p| *p = transform(*p));
    }

    /// Takes points back.
    pub fn undo(&self, points: &mut [Vec3]) {
        let rotation = self.rotation.transpose().as_mat3();
        let shift = (self.pivot - self.rotation.transpose() * (self.pivot + self.shift)).as_vec3();
        points.iter_mut().for_each(|p| *p = rotation * *p + shift);
    }

    /// From derivatives by moved points to those by the six numbers. Pairs of a point before the motion and
    /// the derivative by it afterwards.
    ///
    /// `dR = [J dω]× R` with the left Jacobian `J` of the rotation vector, so `∂/∂ω = Jᵀ Σ (R q) × g`.
    pub fn backward(&self, pairs: impl Iterator<Item = (Vec3, Vec3)>) -> [f64; 6] {
        let (mut torque, mut force) = (DVec3::ZERO, DVec3::ZERO);
        for (point, slope) in pairs {
            let slope = slope.as_dvec3();
            torque += (self.rotation * (point.as_dvec3() - self.pivot)).cross(slope);
            force += slope;
        }
        let by_turn = left_jacobian(self.turn).transpose() * torque;
        [by_turn.x, by_turn.y, by_turn.z, force.x, force.y, force.z]
    }
}

/// `J = 1 + (1 − cos θ)/θ² [ω]× + (θ − sin θ)/θ³ [ω]×²`.
fn left_jacobian(turn: DVec3) -> DMat3 {
    let angle = turn.length();
    let skew = DMat3::from_cols(
        DVec3::new(0.0, turn.z, -turn.y),
        DVec3::new(-turn.z, 0.0, turn.x),
        DVec3::new(turn.y, -turn.x, 0.0),
    );
    let (a, b) = if angle < 1e-4 {
        (0.5 - angle * angle / 24.0, 1.0 / 6.0 - angle * angle / 120.0)
    } else {
        ((1.0 - angle.cos()) / angle.powi(2), (angle - angle.sin()) / angle.powi(3))
    };
    DMat3::IDENTITY + skew * a + skew * skew * b
}

impl MotionNet {
    pub(crate) fn new(name: &str, parts: MotionParts, precision: Precision) -> Result<Self, TwinError> {
        let layers = pack_dense(name, &parts.layers, parts.inputs.len(), true, precision)?;
        let MotionParts { pivot, inputs, mean, scale, layers: _ } = parts;
        Ok(Self { pivot, inputs: NormalisedInputs { inputs, mean, scale }, layers })
    }

    /// As it was before it was packed.
    pub(crate) fn parts(&self) -> MotionParts {
        let NormalisedInputs { inputs, mean, scale } = self.inputs.clone();
        MotionParts { pivot: self.pivot, inputs, mean, scale, layers: unpack_dense(&self.layers) }
    }

    /// Length of each of the two buffers that [`MotionNet::evaluate`] wants.
    pub(crate) fn buffer_len(&self) -> usize {
        self.layers.iter().map(|l| l.padded_rows().max(l.columns())).max().unwrap_or(0)
    }

    /// The motion for a pose.
    pub(crate) fn evaluate(&self, kernel: Kernel, controls: &[f32], buffers: &mut [Vec<f32>; 2]) -> Motion {
        let [front, back] = buffers;
        self.inputs.features(controls, front);
        let (mut read, mut write) = (front, back);
        for layer in &self.layers {
            layer.apply(kernel, read, write);
            std::mem::swap(&mut read, &mut write);
        }
        Motion::new(&read[..6], self.pivot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;
    use understudy_testkit::gradient::directional_miss;

    #[test]
    fn undoing_takes_back_and_the_derivative_meets_the_checker() {
        let mut random = Random::new(3);
        let mut draw = |spread: f32| Vec3::from_array([0; 3].map(|_| random.uniform(-spread, spread)));
        let pivot = draw(5.0);
        let points: Vec<Vec3> = (0..9).map(|_| draw(10.0)).collect();
        let slopes: Vec<Vec3> = (0..9).map(|_| draw(1.0)).collect();
        for size in [1e-6f32, 0.3, 2.0] {
            let (turn, shift) = (draw(size), draw(3.0));
            let six = [turn.x, turn.y, turn.z, shift.x, shift.y, shift.z];
            let motion = Motion::new(&six, pivot);
            let mut there = points.clone();
            motion.apply(&mut there);
            motion.undo(&mut there);
            assert!(there.iter().zip(&points).all(|(a, b)| a.distance(*b) < 1e-5));
            let cost = |x: &[f64]| {
                let rotation = DMat3::from_quat(DQuat::from_scaled_axis(DVec3::from_slice(&x[..3])));
                let pivot = pivot.as_dvec3();
                let moved = |p: &Vec3| rotation * (p.as_dvec3() - pivot) + pivot + DVec3::from_slice(&x[3..]);
                points.iter().zip(&slopes).map(|(p, s)| moved(p).dot(s.as_dvec3())).sum::<f64>()
            };
            let gradient = motion.backward(points.iter().copied().zip(slopes.iter().copied()));
            let miss = directional_miss(cost, &six.map(f64::from), &gradient, 1e-5, 20, 2);
            assert!(miss < 1e-7, "{size}: {miss}");
        }
    }
}
