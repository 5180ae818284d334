//! Poses as few numbers, linearly: controls scaled by what they do to the mesh, then principal components (5.1)–(5.3).
//! Fitting them is `understudy-motion`; here they are turned into controls and back.

use super::error::MotionFileError;
use understudy_core::{ControlKind, ControlSpecs};

/// What a file holds of a basis.
#[derive(Debug, Clone, PartialEq)]
pub struct BasisParts {
    /// Every control where nothing moves: `p̄` of those that move, the default of the others. `[C]`.
    pub rest: Vec<f32>,
    /// The controls that move, ascending.
    pub moving: Vec<u32>,
    /// `w` of those, mesh per unit of the control.
    pub scale: Vec<f32>,
    /// `T`, `[d][moving]`, orthonormal rows.
    pub components: Vec<f32>,
}

/// A linear basis of controls.
#[derive(Debug, Clone, PartialEq)]
pub struct PoseBasis {
    parts: BasisParts,
    /// `T / w`, `[d][moving]`.
    decoder: Vec<f32>,
}

impl PoseBasis {
    /// Checks the parts against each other. `controls`: how many the rig has; `outputs`: numbers of a pose.
    pub fn new(parts: BasisParts, controls: usize, outputs: usize) -> Result<Self, MotionFileError> {
        let wrong = |problem: &str| Err(MotionFileError::new("basis", problem));
        let count = parts.moving.len();
        if parts.rest.len() != controls || parts.scale.len() != count || count == 0 {
            return wrong("its lists do not fit the controls");
        }
        if parts.components.len() != outputs * count {
            return wrong("its components do not fit the outputs");
        }
        if parts.moving.windows(2).any(|pair| pair[0] >= pair[1])
            || parts.moving.last().is_some_and(|last| *last as usize >= controls)
        {
            return wrong("a control that moves is not there, or there twice");
        }
        if ![&parts.rest, &parts.components].iter().all(|list| list.iter().all(|v| v.is_finite()))
            || !parts.scale.iter().all(|v| v.is_finite() && *v > 1e-30)
        {
            return wrong("a number is not finite, or a scale not positive");
        }
        let decoder: Vec<f32> = parts
            .components
            .chunks_exact(count)
            .flat_map(|row| row.iter().zip(&parts.scale).map(|(t, w)| t / w))
            .collect();
        if !decoder.iter().all(|v| v.is_finite()) {
            return wrong("a scale is too small");
        }
        Ok(Self { parts, decoder })
    }

    /// What its file holds.
    pub fn parts(&self) -> &BasisParts {
        &self.parts
    }

    /// The controls that move, ascending.
    pub fn moving(&self) -> &[u32] {
        &self.parts.moving
    }

    /// `y = T W (p − p̄)`; `controls`: `[C]`.
    pub fn encode(&self, controls: &[f32]) -> Vec<f32> {
        let parts = &self.parts;
        let z: Vec<f32> = parts
            .moving
            .iter()
            .zip(&parts.scale)
            .map(|(c, w)| w * (controls[*c as usize] - parts.rest[*c as usize]))
            .collect();
        parts
            .components
            .chunks_exact(z.len())
            .map(|row| row.iter().zip(&z).map(|(t, z)| t * z).sum())
            .collect()
    }

    /// `p = W⁻¹ Tᵀ y + p̄`, numbers within their ranges; `out`: `[C]`, `moving`: scratch for the controls that move. Ranges of
    /// joints are for random poses: clips that lie down or turn round leave them, and so does what is learned of them.
    pub(super) fn decode_into(&self, y: &[f32], specs: &ControlSpecs, moving: &mut [f32], out: &mut [f32]) {
        let parts = &self.parts;
        let moving = &mut moving[..parts.moving.len()];
        moving.fill(0.0);
        for (row, y) in self.decoder.chunks_exact(moving.len()).zip(y) {
            moving.iter_mut().zip(row).for_each(|(slot, t)| *slot += t * y);
        }
        out.copy_from_slice(&parts.rest);
        for (value, c) in moving.iter().zip(&parts.moving) {
            let spec = specs.get(*c as usize);
            let slot = &mut out[*c as usize];
            *slot += value;
            if spec.kind == ControlKind::Number {
                *slot = slot.clamp(spec.low, spec.high);
            }
        }
    }

    /// `p = W⁻¹ Tᵀ y + p̄` without ranges, into memory of its own.
    pub fn decode(&self, y: &[f32]) -> Vec<f32> {
        let mut out = self.parts.rest.clone();
        for (row, y) in self.decoder.chunks_exact(self.parts.moving.len()).zip(y) {
            row.iter().zip(&self.parts.moving).for_each(|(t, c)| out[*c as usize] += t * y);
        }
        out
    }
}
