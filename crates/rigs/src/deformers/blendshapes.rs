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

#[cfg(test)]
mod tests {
    use super::super::Response;
    use super::super::test_support::*;
    use super::*;
    use understudy_core::{Corrective, Shape, SparseDeltas};

    fn shapes() -> BlendshapeRig {
        let deltas = |way: Vec3| SparseDeltas { vertices: vec![3, 40], deltas: vec![way, way * 0.5] };
        let shape = |name: &str, way| Shape { name: name.into(), deltas: deltas(way) };
        let corrective = Corrective { shapes: vec![0, 1], deltas: deltas(Vec3::Z) };
        let shapes = vec![shape("a", Vec3::X), shape("b", Vec3::Y)];
        BlendshapeRig::new(tube().positions().to_vec(), shapes, vec![corrective]).expect("valid shapes")
    }

    #[test]
    fn shapes_follow_the_controls_of_their_name() {
        let mesh = tube();
        let layer = Blendshapes::by_name(shapes(), &specs(), &size(&mesh)).expect("names exist");
        let rig = rig(mesh, vec![Box::new(layer)]);
        let mut expected = vec![Vec3::ZERO; tube().vertex_count()];
        shapes().evaluate(&[0.5, 0.8], &mut expected);
        assert_eq!(pose(&rig, &[("a", 0.5), ("b", 0.8)]), expected);
        assert_identity_at_rest(&rig, 0.0);
        assert_continuous(&rig, 5e-4);
    }

    #[test]
    fn responses_bend_the_weight() {
        let mesh = tube();
        let late = Driver::control(control("a")).through(Response::Smooth { from: 0.5, to: 1.0 });
        let layer =
            Blendshapes::new(shapes(), vec![late, Driver::constant(0.0)], &size(&mesh)).expect("fits");
        let rig = rig(mesh, vec![Box::new(layer)]);
        assert_eq!(pose(&rig, &[("a", 0.4)]), tube().positions());
        let moved = pose(&rig, &[("a", 0.75)])[3] - tube().positions()[3];
        assert!((moved - Vec3::X * 0.5).length() < 1e-6);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let mesh = tube();
        let few = Blendshapes::new(shapes(), vec![], &size(&mesh)).err();
        assert!(matches!(few, Some(RigError::Count { got: 0, want: 2, .. })));
        let none = ControlSpecs::new(vec![]).expect("no controls");
        let unknown = Blendshapes::by_name(shapes(), &none, &size(&mesh)).err();
        assert!(matches!(unknown, Some(RigError::Unknown { ref name, .. }) if name == "a"));
    }
}
