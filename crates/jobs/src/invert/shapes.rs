//! The blendshapes of a rig: its own, or those that moving its controls one by one shows. A rig behind a protocol, a class in
//! Python or a Blender file has no shapes to look at, but where its controls act like shapes it can be inverted all the same.

use crate::{Event, JobError, Watch};
use understudy_core::{BlendshapeRig, ControlKind, Controls, Shape, SparseDeltas, Vec3};
use understudy_rigs::sampling::{Method, SamplingConfig};
use understudy_rigs::{Rig, RigPose};

/// Random poses that the found shapes are held against.
const POSES: u64 = 20;
/// Motion that does not count, cm.
const STILL: f32 = 1e-5;

/// The shapes of a rig. Where they had to be found, the listener hears how far from the rig they are.
pub fn shapes_of(rig: &dyn Rig, watch: &dyn Watch) -> Result<BlendshapeRig, JobError> {
    match rig.blendshapes() {
        Some(shapes) => Ok(shapes.clone()),
        None => found(rig, watch),
    }
}

/// Moves every control alone to the upper end of its range. Only controls that rest at their lower end, at zero, and go to
/// one are like the weight of a shape; others stay at rest.
fn found(rig: &dyn Rig, watch: &dyn Watch) -> Result<BlendshapeRig, JobError> {
    let specs = rig.specs();
    let failed = JobError::rig(rig.name());
    let rest = specs.defaults();
    let mut pose = RigPose::default();
    rig.evaluate(&rest, &mut pose).map_err(&failed)?;
    let neutral = pose.vertices.clone();
    let is_weight = |place: &usize| {
        let spec = specs.get(*place);
        spec.kind == ControlKind::Number && spec.default == 0.0 && spec.low == 0.0 && spec.high == 1.0
    };
    let weights: Vec<usize> = (0..specs.len()).filter(is_weight).collect();
    let mut shapes = Vec::new();
    let mut controls = Vec::new();
    for &place in &weights {
        let mut moved = rest.clone();
        moved.0[place] = 1.0;
        rig.evaluate(&moved, &mut pose).map_err(&failed)?;
        let offsets: Vec<Vec3> =
            pose.vertices.iter().zip(&neutral).map(|(there, here)| *there - *here).collect();
        if offsets.iter().any(|offset| offset.length() > STILL) {
            shapes.push(Shape {
                name: specs.get(place).name.clone(),
                deltas: SparseDeltas::from_dense(&offsets, STILL),
            });
            controls.push(place);
        }
    }
    if shapes.is_empty() {
        let problem = "has no blendshapes, and no control that acts like one (from 0 at rest to 1)";
        return Err(JobError::unusable(rig.name(), problem));
    }
    let count = shapes.len();
    let shapes = BlendshapeRig::new(neutral, shapes, Vec::new())
        .map_err(|error| JobError::unusable(rig.name(), error))?;
    let [mean, max] = misses(rig, &shapes, &controls, &rest)?;
    let message = format!(
        "{}: has no blendshapes of its own; {count} of its {} controls were moved alone and taken for shapes, which leaves \
         {mean:.2} mm on the mean and {max:.2} mm at most in random poses of them",
        rig.name(),
        specs.len()
    );
    watch.event(Event::Warning { message: &message });
    Ok(shapes)
}

/// How far the shapes are from the rig in random poses of those controls: mean and largest distance, mm.
fn misses(
    rig: &dyn Rig,
    shapes: &BlendshapeRig,
    controls: &[usize],
    rest: &Controls,
) -> Result<[f64; 2], JobError> {
    let sampling = SamplingConfig { method: Method::Sparse, ..SamplingConfig::default() };
    let source = sampling.build(rig.specs(), &[]).map_err(JobError::sampling(rig.name()))?;
    let (mut pose, mut vertices) = (RigPose::default(), vec![Vec3::ZERO; shapes.neutral().len()]);
    let (mut sum, mut max) = (0.0, 0.0f64);
    for index in 0..POSES {
        let random = source.pose(index);
        let mut moved = rest.clone();
        let weights: Vec<f32> = controls.iter().map(|place| random.0[*place].clamp(0.0, 1.0)).collect();
        controls.iter().zip(&weights).for_each(|(place, weight)| moved.0[*place] = *weight);
        rig.evaluate(&moved, &mut pose).map_err(JobError::rig(rig.name()))?;
        shapes.evaluate(&weights, &mut vertices);
        for (found, truth) in vertices.iter().zip(&pose.vertices) {
            let miss = f64::from(found.distance(*truth)) * 10.0;
            sum += miss;
            max = max.max(miss);
        }
    }
    Ok([sum / (POSES as f64 * vertices.len() as f64), max])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;

    #[test]
    fn shapes_are_found_by_moving_controls() {
        let rig = understudy_characters::mira::build().expect("a rig");
        let found = found(&rig, &Silent).expect("shapes");
        let smile = found.find("mouthSmile_L").expect("a control of Mira's that acts like a shape");
        let mut controls = rig.specs().defaults();
        let place = rig.specs().find("mouthSmile_L").expect("a control");
        controls.0[place] = 1.0;
        let mut pose = RigPose::default();
        rig.evaluate(&controls, &mut pose).expect("a pose");
        let mut weights = vec![0.0; found.shapes().len()];
        weights[smile] = 1.0;
        let mut vertices = pose.vertices.clone();
        found.evaluate(&weights, &mut vertices);
        let miss = vertices.iter().zip(&pose.vertices).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
        assert!(miss < 1e-4, "{miss} cm");
        // Of a body's controls those that drive shapes of cloth and muscle are found, joints are not.
        let body = understudy_characters::rook::build().expect("a rig");
        let found = super::found(&body, &Silent).expect("shapes");
        for shape in found.shapes() {
            let place = body.specs().find(&shape.name).expect("a control");
            assert_eq!(body.specs().get(place).kind, ControlKind::Number, "{}", shape.name);
        }
        assert!(found.shapes().len() < body.specs().len() / 4);
    }
}
