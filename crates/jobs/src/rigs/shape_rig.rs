//! A blendshape archive as a rig: one control a shape from 0 to 1, correctives by products.

use understudy_core::{ControlSpec, ControlSpecs};
use understudy_io::blendshape_npz::BlendshapeFile;
use understudy_rigs::deformers::{Blendshapes, RigSize};
use understudy_rigs::{RigError, StackParts, StackRig};

/// Builds the rig.
pub fn shape_rig(name: &str, file: BlendshapeFile) -> Result<StackRig, RigError> {
    let shapes = file.rig.shapes().iter();
    let specs =
        ControlSpecs::new(shapes.map(|shape| ControlSpec::number(&shape.name, 0.0, 1.0, 0.0)).collect())?;
    let size = RigSize::new(&file.mesh, None, &specs);
    let parts = StackParts {
        deformers: vec![Box::new(Blendshapes::by_name(file.rig.clone(), &specs, &size)?)],
        blendshapes: Some(file.rig),
        ..StackParts::default()
    };
    StackRig::new(name, file.mesh, specs, parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{BlendshapeRig, Controls, Corrective, Face, MeshParts, Shape, SparseDeltas, Vec3};
    use understudy_io::Conversion;
    use understudy_rigs::{Rig, RigPose};

    #[test]
    fn shapes_and_correctives_move_the_mesh() {
        let positions = vec![Vec3::ZERO, Vec3::X, Vec3::Y];
        let mesh = MeshParts {
            positions: positions.clone(),
            faces: vec![Face::triangle(0, 1, 2)],
            ..MeshParts::default()
        };
        let deltas = |vertex: u32, delta: Vec3| SparseDeltas { vertices: vec![vertex], deltas: vec![delta] };
        let shape = |name: &str, vertex| Shape { name: name.into(), deltas: deltas(vertex, Vec3::Z) };
        let corrective = Corrective { shapes: vec![0, 1], deltas: deltas(2, Vec3::Z) };
        let rig = BlendshapeRig::new(positions, vec![shape("a", 0), shape("b", 1)], vec![corrective]);
        let file = BlendshapeFile {
            mesh: mesh.build().expect("a triangle"),
            rig: rig.expect("valid shapes"),
            conversion: Conversion::none("made in a test"),
        };
        let rig = shape_rig("test", file).expect("a good rig");
        let mut pose = RigPose::default();
        rig.evaluate(&Controls(vec![0.5, 0.25]), &mut pose).expect("finite");
        let heights: Vec<f32> = pose.vertices.iter().map(|v| v.z).collect();
        assert_eq!(heights, [0.5, 0.25, 0.125]);
    }
}
