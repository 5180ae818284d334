//! Blendshapes with correctives as a layer of the stack. Runs in rest space, before skinning.

use super::driver::{Driver, RigSize, unknown};
use crate::rig::RigError;
use crate::stack::{Deformer, Frame, Scratch};
use understudy_core::{BlendshapeRig, ControlSpecs, Vec3};

/// `v += Σ w_i b_i + Σ w_i w_j b_ij + …`, where each weight is what its driver says.
pub struct Blendshapes {
    rig: BlendshapeRig,
    drivers: Vec<Driver>,
}

impl Blendshapes {
    /// One driver a shape, in the order of the shapes.
    pub fn new(rig: BlendshapeRig, drivers: Vec<Driver>, size: &RigSize) -> Result<Self, RigError> {
        if rig.neutral().len() != size.vertices {
            let (got, want) = (rig.neutral().len(), size.vertices);
            return Err(RigError::Count { what: "blendshapes: vertices".into(), got, want });
        }
        if drivers.len() != rig.shapes().len() {
            let (got, want) = (drivers.len(), rig.shapes().len());
            return Err(RigError::Count { what: "blendshapes: drivers".into(), got, want });
        }
        for (driver, shape) in drivers.iter().zip(rig.shapes()) {
            driver.check(&format!("shape '{}'", shape.name), size)?;
        }
        Ok(Self { rig, drivers })
    }

    /// Every shape is driven by the control of its own name.
    pub fn by_name(rig: BlendshapeRig, specs: &ControlSpecs, size: &RigSize) -> Result<Self, RigError> {
        let find = |name: &str| specs.find(name).ok_or_else(|| unknown("blendshapes", name.into()));
        let drivers = rig.shapes().iter().map(|shape| find(&shape.name).map(Driver::control));
        let drivers = drivers.collect::<Result<Vec<Driver>, RigError>>()?;
        Self::new(rig, drivers, size)
    }

    /// The shapes.
    pub fn rig(&self) -> &BlendshapeRig {
        &self.rig
    }
}

impl Deformer for Blendshapes {
    fn name(&self) -> &str {
        "blendshapes"
    }

    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], scratch: &mut Scratch) {
        let weights = &mut scratch.numbers;
        weights.clear();
        weights.extend(self.drivers.iter().map(|driver| driver.value(frame.controls)));
        self.rig.add_offsets(weights, vertices);
    }
}
