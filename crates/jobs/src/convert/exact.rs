//! A rig as nothing but a skin and morph targets, where that is all it is. Whether it is, is found by
//! posing both and comparing, so that no rig has to be trusted to say so itself.

use crate::JobError;
use understudy_core::skeleton::rotation_of;
use understudy_core::{
    Affine3A, BlendshapeRig, Clip, Controls, GlobalPose, JointClip, JointPose, JointTransform, Skeleton,
    SkinWeights, Vec3,
};
use understudy_rigs::sampling::SamplingConfig;
use understudy_rigs::{Rig, RigPose};

/// How far skin and shapes may be from the rig, cm: a hundredth of a millimetre.
pub const TOLERANCE_CM: f32 = 1e-3;

/// Random poses that are compared.
const POSES: u64 = 12;

/// The parts of a rig that a file can hold, and its clips in those terms.
#[derive(Debug, Clone, PartialEq)]
pub struct SkinAndShapes {
    /// Bones and weights.
    pub skin: Option<(Skeleton, SkinWeights)>,
    /// Shapes; their names are controls.
    pub shapes: Option<BlendshapeRig>,
    /// Weight of every shape at rest.
    pub rest_weights: Vec<f32>,
    /// Frame by frame.
    pub clips: Vec<JointClip>,
    /// The largest distance found over all poses and frames, cm.
    pub max_error: f32,
}

/// Takes a rig apart, or says by how much skin and shapes alone miss it. `clips`: what it shall play; `rate`: frames
/// per second, each clip's own when left out.
pub fn skin_and_shapes(rig: &dyn Rig, clips: &[Clip], rate: Option<f32>) -> Result<SkinAndShapes, JobError> {
    let parts = Parts::new(rig)?;
    let mut worst = 0.0f32;
    let mut pose = RigPose::default();
    let source = SamplingConfig::default().build(rig.specs(), &[]).map_err(JobError::sampling(rig.name()))?;
    for controls in std::iter::once(rig.specs().defaults()).chain((0..POSES).map(|i| source.pose(i))) {
        let (_, _, error) = parts.frame(&controls, &mut pose)?;
        worst = worst.max(error);
    }
    parts.check(worst)?;
    let mut played = Vec::new();
    for clip in clips {
        let rate = rate.unwrap_or_else(|| clip.own_rate());
        let sampled =
            clip.sample(rig.specs(), rate).map_err(|error| JobError::unusable(rig.name(), error))?;
        let mut out =
            JointClip { name: clip.name.clone(), rate, poses: Vec::new(), shape_weights: Vec::new() };
        for controls in &sampled.frames {
            let (joints, weights, error) = parts.frame(controls, &mut pose)?;
            worst = worst.max(error);
            if parts.skin.is_some() {
                out.poses.push(joints);
            }
            if !weights.is_empty() {
                out.shape_weights.push(weights);
            }
        }
        played.push(out);
    }
    parts.check(worst)?;
    let rest_weights = parts.weights(&rig.specs().defaults());
    let skin = parts.skin.map(|(skeleton, weights)| (skeleton.clone(), weights.clone()));
    Ok(SkinAndShapes { skin, shapes: parts.shapes.cloned(), rest_weights, clips: played, max_error: worst })
}

/// What a rig shows of itself.
struct Parts<'a> {
    rig: &'a dyn Rig,
    skin: Option<(&'a Skeleton, &'a SkinWeights)>,
    shapes: Option<&'a BlendshapeRig>,
    shape_controls: Vec<usize>,
}

impl<'a> Parts<'a> {
    fn new(rig: &'a dyn Rig) -> Result<Self, JobError> {
        let shapes = rig.blendshapes();
        let names = shapes.iter().flat_map(|shapes| shapes.shapes());
        let controls = names.map(|shape| {
            rig.specs()
                .find(&shape.name)
                .ok_or_else(|| Self::not_exact(rig, "it has shapes that are no controls"))
        });
        let shape_controls = controls.collect::<Result<_, _>>()?;
        Ok(Self { rig, skin: rig.skeleton().zip(rig.skin_weights()), shapes, shape_controls })
    }

    fn not_exact(rig: &dyn Rig, why: &str) -> JobError {
        let problem = format!(
            "is more than a skin with morph targets ({why}); write one of its clips with --bake CLIP instead"
        );
        JobError::unusable(rig.name(), problem)
    }

    fn check(&self, worst: f32) -> Result<(), JobError> {
        if worst <= TOLERANCE_CM {
            return Ok(());
        }
        Err(Self::not_exact(self.rig, &format!("those alone are up to {worst:.3} cm away from it")))
    }

    fn weights(&self, controls: &Controls) -> Vec<f32> {
        self.shape_controls.iter().map(|control| controls.0[*control]).collect()
    }

    /// Joints and shape weights of a pose, and how far they alone miss the rig.
    fn frame(&self, controls: &Controls, pose: &mut RigPose) -> Result<(JointPose, Vec<f32>, f32), JobError> {
        self.rig.evaluate(controls, pose).map_err(JobError::rig(self.rig.name()))?;
        let weights = self.weights(controls);
        let mut vertices = self.rig.mesh().positions().to_vec();
        if let Some(shapes) = self.shapes {
            shapes.add_offsets(&weights, &mut vertices);
        }
        let mut joints = JointPose::default();
        if let Some((skeleton, skin)) = self.skin {
            joints = local_pose(skeleton, &pose.global);
            let mut global = GlobalPose::default();
            skeleton
                .forward(&joints, &mut global)
                .map_err(|error| JobError::unusable(self.rig.name(), error))?;
            let mut matrices = Vec::new();
            skeleton.skinning_matrices(&global, &mut matrices);
            let shaped = vertices.clone();
            skin.linear_blend(&matrices, &shaped, &mut vertices);
        }
        let error = vertices.iter().zip(&pose.vertices).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
        Ok((joints, weights, error))
    }
}

/// World transforms as scale, rotation and translation in the parent's frame. Shear is lost; whoever
/// uses the result measures what that costs.
pub(crate) fn local_pose(skeleton: &Skeleton, global: &GlobalPose) -> JointPose {
    let mut local = Vec::new();
    skeleton.relative_to_parent(global, &mut local);
    let joint = |transform: &Affine3A| {
        let rotation = rotation_of(transform);
        let scale = Vec3::from_array(std::array::from_fn(|axis| transform.matrix3.col(axis).length()));
        let flip = if transform.matrix3.determinant() < 0.0 { Vec3::new(1.0, 1.0, -1.0) } else { Vec3::ONE };
        JointTransform { rotation, translation: transform.translation.into(), scale: scale * flip }
    };
    JointPose(local.iter().map(joint).collect())
}
