//! What drives a deformer: a sum of controls through a response curve. Also the size of the rig, which
//! every index given to a deformer is checked against.

use super::smooth_step;
use crate::rig::RigError;
use understudy_core::{ControlSpecs, Curve, Mesh, Skeleton};

/// Vertices with a weight each; those left out have weight zero.
pub type VertexWeights = Vec<(u32, f32)>;

/// How many vertices, bones and controls a rig has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RigSize {
    /// Vertices.
    pub vertices: usize,
    /// Bones; 0 without a skeleton.
    pub bones: usize,
    /// Controls.
    pub controls: usize,
}

impl RigSize {
    /// The size of a rig from its parts.
    pub fn new(mesh: &Mesh, skeleton: Option<&Skeleton>, specs: &ControlSpecs) -> Self {
        let bones = skeleton.map_or(0, Skeleton::len);
        Self { vertices: mesh.vertex_count(), bones, controls: specs.len() }
    }

    /// Every vertex exists.
    pub(crate) fn check_vertices(
        &self,
        part: &str,
        vertices: impl IntoIterator<Item = u32>,
    ) -> Result<(), RigError> {
        match vertices.into_iter().find(|v| *v as usize >= self.vertices) {
            Some(vertex) => Err(unknown(part, format!("vertex {vertex}"))),
            None => Ok(()),
        }
    }

    /// Every vertex exists, once, and every weight is finite.
    pub(crate) fn check_weights(&self, part: &str, weights: &[(u32, f32)]) -> Result<(), RigError> {
        self.check_vertices(part, weights.iter().map(|w| w.0))?;
        let mut seen = vec![false; self.vertices];
        for &(vertex, weight) in weights {
            if std::mem::replace(&mut seen[vertex as usize], true) {
                return Err(unknown(part, format!("vertex {vertex}, twice")));
            }
            check_finite(part, &format!("weight of vertex {vertex}"), weight)?;
        }
        Ok(())
    }

    pub(crate) fn check_bone(&self, part: &str, bone: usize) -> Result<(), RigError> {
        if bone < self.bones { Ok(()) } else { Err(unknown(part, format!("bone {bone}"))) }
    }

    pub(crate) fn check_mesh(&self, part: &str, mesh: &Mesh) -> Result<(), RigError> {
        let (got, want) = (mesh.vertex_count(), self.vertices);
        if got == want {
            Ok(())
        } else {
            Err(RigError::Count { what: format!("{part}: vertices"), got, want })
        }
    }
}

pub(crate) fn unknown(part: &str, name: String) -> RigError {
    RigError::Unknown { part: part.into(), name }
}

/// A number that a part needs to be finite.
pub(crate) fn check_finite(part: &str, what: &str, value: f32) -> Result<(), RigError> {
    if value.is_finite() { Ok(()) } else { Err(unknown(part, format!("{what} = {value}"))) }
}

/// A number that a part needs to be finite and above zero.
pub(crate) fn check_positive(part: &str, what: &str, value: f32) -> Result<(), RigError> {
    if value.is_finite() && value > 0.0 { Ok(()) } else { Err(unknown(part, format!("{what} = {value}"))) }
}

/// The shape of a driver's answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Response {
    /// As it is.
    #[default]
    Linear,
    /// Held between two values.
    Clamp {
        /// Lower end.
        low: f32,
        /// Upper end.
        high: f32,
    },
    /// 0 at `from`, 1 at `to`, flat at both ends.
    Smooth {
        /// Where it begins.
        from: f32,
        /// Where it is done.
        to: f32,
    },
    /// A curve through keys; its "time" is the input. Held beyond its ends.
    Keys(Curve),
}

impl Response {
    /// A smooth curve through `(input, output)` pairs, inputs ascending.
    pub fn keys(keys: &[(f32, f32)]) -> Self {
        Self::Keys(Curve::smooth("response", keys))
    }

    /// The answer to an input.
    pub fn at(&self, x: f32) -> f32 {
        match self {
            Self::Linear => x,
            Self::Clamp { low, high } => x.clamp(*low, *high),
            Self::Smooth { from, to } => smooth_step(*from, *to, x),
            Self::Keys(curve) => curve.at(x),
        }
    }

    pub(crate) fn check(&self, part: &str) -> Result<(), RigError> {
        let fine = match self {
            Self::Linear => true,
            Self::Clamp { low, high } => low <= high,
            Self::Smooth { from, to } => from.is_finite() && to.is_finite() && from != to,
            Self::Keys(curve) => {
                let finite = curve.keys.iter().all(|k| k.time.is_finite() && k.value.is_finite());
                let ascends = curve.keys.windows(2).all(|pair| pair[0].time < pair[1].time);
                !curve.keys.is_empty() && finite && ascends
            }
        };
        if fine { Ok(()) } else { Err(unknown(part, format!("response {self:?}"))) }
    }
}

/// `response(offset + Σ gain · control)`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Driver {
    /// Control index and gain.
    pub terms: Vec<(usize, f32)>,
    /// Added to the sum.
    pub offset: f32,
    /// What the sum goes through.
    pub response: Response,
}

impl Driver {
    /// Never moves.
    pub fn constant(value: f32) -> Self {
        Self { offset: value, ..Self::default() }
    }

    /// One control as it is.
    pub fn control(control: usize) -> Self {
        Self::scaled(control, 1.0)
    }

    /// One control times a gain.
    pub fn scaled(control: usize, gain: f32) -> Self {
        Self::sum(vec![(control, gain)])
    }

    /// `Σ gain · control`.
    pub fn sum(terms: Vec<(usize, f32)>) -> Self {
        Self { terms, ..Self::default() }
    }

    /// The same sum through a response.
    pub fn through(mut self, response: Response) -> Self {
        self.response = response;
        self
    }

    /// Its value for the controls.
    pub fn value(&self, controls: &[f32]) -> f32 {
        let sum = self.terms.iter().fold(self.offset, |sum, &(control, gain)| sum + gain * controls[control]);
        self.response.at(sum)
    }

    pub(crate) fn check(&self, part: &str, size: &RigSize) -> Result<(), RigError> {
        check_finite(part, "driver offset", self.offset)?;
        for &(control, gain) in &self.terms {
            check_finite(part, "driver gain", gain)?;
            if control >= size.controls {
                return Err(unknown(part, format!("control {control}")));
            }
        }
        self.response.check(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: RigSize = RigSize { vertices: 2, bones: 1, controls: 2 };

    #[test]
    fn drivers_sum_and_respond() {
        let driver = Driver::sum(vec![(0, 0.5), (1, -1.0)]).through(Response::Smooth { from: 0.0, to: 1.0 });
        assert_eq!(driver.value(&[1.0, 0.0]), 0.5);
        assert_eq!(driver.value(&[1.0, 1.0]), 0.0);
        assert_eq!(Driver::constant(0.3).value(&[]), 0.3);
        let keys = Driver::control(0).through(Response::keys(&[(0.0, 0.0), (0.5, 1.0), (1.0, 0.0)]));
        assert_eq!([keys.value(&[-1.0]), keys.value(&[0.5]), keys.value(&[2.0])], [0.0, 1.0, 0.0]);
    }

    #[test]
    fn bad_drivers_are_named() {
        let named = |driver: Driver| driver.check("lid", &SIZE).expect_err("must fail").to_string();
        assert_eq!(named(Driver::control(2)), "lid names 'control 2', which the rig does not have");
        assert!(named(Driver::scaled(0, f32::NAN)).contains("gain = NaN"));
        assert!(
            named(Driver::control(0).through(Response::Smooth { from: 1.0, to: 1.0 })).contains("Smooth")
        );
        assert!(
            named(Driver::control(0).through(Response::keys(&[(1.0, 0.0), (0.0, 0.0)]))).contains("Keys")
        );
    }

    #[test]
    fn bad_weights_are_named() {
        assert!(SIZE.check_weights("mask", &[(0, 1.0), (1, 0.5)]).is_ok());
        for weights in [vec![(2, 1.0)], vec![(0, 1.0), (0, 1.0)], vec![(0, f32::INFINITY)]] {
            assert!(matches!(SIZE.check_weights("mask", &weights), Err(RigError::Unknown { .. })));
        }
    }
}
