//! The rig that we build ourselves. Joint controls move bones, constraints add what an animator does not
//! touch (twist, helpers, drivers), then deformers change the vertices one after another.

use crate::rig::{Rig, RigError, RigPose};
use understudy_core::skinning::DualQuaternion;
use understudy_core::{
    Affine3A, BlendshapeRig, Clip, ClipError, Constraint, ControlKind, ControlSpecs, Controls,
    JointMechanism, JointPose, MechanismError, Mesh, Skeleton, SkinWeights, Vec3, Vec3A,
};

/// Working memory of an evaluation, kept between poses. A deformer may use any of it and must not
/// expect anything in it.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    /// For copies of the vertices.
    pub points: Vec<Vec3>,
    /// For a second copy.
    pub more_points: Vec<Vec3>,
    /// For weights.
    pub numbers: Vec<f32>,
    /// For copies of the vertices that are worked on hard: aligned for SIMD.
    pub wide: Vec<Vec3A>,
    /// For a second one.
    pub more_wide: Vec<Vec3A>,
    /// For dual-quaternion skinning.
    pub dual: Vec<DualQuaternion>,
    pose: JointPose,
    matrices: Vec<Affine3A>,
}

/// What a deformer may look at.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Control values in the order of the rig's specs.
    pub controls: &'a [f32],
    /// Local transforms of the bones after constraints; empty without a skeleton.
    pub pose: &'a JointPose,
    /// World transforms of the bones, `[J]`.
    pub global: &'a [Affine3A],
    /// Rest → pose of the bones, inverse bind included, `[J]`.
    pub matrices: &'a [Affine3A],
    /// Rest vertices before any deformer, `[V]`.
    pub rest: &'a [Vec3],
}

/// One layer of the stack: changes vertices in place.
pub trait Deformer: Send + Sync {
    /// What it is called, for `info` and profiles.
    fn name(&self) -> &str;

    /// Moves the vertices, `[V]`. Must be continuous in the controls.
    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], scratch: &mut Scratch);
}

/// The parts of a [`StackRig`] before they are checked.
#[derive(Default)]
pub struct StackParts {
    /// Parents first or not; `None` for a rig without bones.
    pub skeleton: Option<Skeleton>,
    /// Shown to those who ask ([`Rig::skin_weights`]); deformers hold their own.
    pub weights: Option<SkinWeights>,
    /// Shown to those who ask ([`Rig::blendshapes`]); deformers hold their own.
    pub blendshapes: Option<BlendshapeRig>,
    /// Applied in order after the joint controls.
    pub constraints: Vec<Constraint>,
    /// Applied in order.
    pub deformers: Vec<Box<dyn Deformer>>,
    /// Hand-made animation.
    pub clips: Vec<Clip>,
    /// sRGB, one a vertex, or empty.
    pub colours: Vec<Vec3>,
}

/// A stack of deformers on a mesh.
pub struct StackRig {
    name: String,
    specs: ControlSpecs,
    mesh: Mesh,
    parts: StackParts,
    /// With a skeleton, what moves it.
    mechanism: Option<JointMechanism>,
}

impl StackRig {
    /// Checks that the parts fit together: bones that joint controls name exist, clips stay in range.
    pub fn new(name: &str, mesh: Mesh, specs: ControlSpecs, mut parts: StackParts) -> Result<Self, RigError> {
        let unknown = |control: &str, bone: &str| RigError::Unknown {
            part: format!("control '{control}'"),
            name: bone.to_owned(),
        };
        let constraints = std::mem::take(&mut parts.constraints);
        let mechanism = match parts.skeleton.clone() {
            Some(skeleton) => {
                let made = JointMechanism::new(skeleton, &specs, constraints);
                Some(made.map_err(|error| match error {
                    MechanismError::Bone { control, bone } => unknown(&control, &bone),
                    other => RigError::Mechanism(other),
                })?)
            }
            None => {
                let joint = specs.iter().find_map(|spec| match &spec.kind {
                    ControlKind::Joint { bone, .. } => Some((&spec.name, bone)),
                    ControlKind::Number => None,
                });
                if let Some((control, bone)) = joint {
                    return Err(unknown(control, bone));
                }
                None
            }
        };
        if !parts.colours.is_empty() && parts.colours.len() != mesh.vertex_count() {
            let (got, want) = (parts.colours.len(), mesh.vertex_count());
            return Err(RigError::Count { what: "colours".into(), got, want });
        }
        for clip in &parts.clips {
            // The keys of a motion were checked when they were read; curves are an author's, and may err.
            match &clip.motion {
                None => {
                    for controls in &clip.sample(&specs, clip.own_rate())?.frames {
                        let wrong = |error| ClipError::Control { clip: clip.name.clone(), error };
                        specs.check_range(controls).map_err(wrong)?;
                    }
                }
                Some(_) => clip.at([0.0], &specs).map(|_| ())?,
            }
        }
        Ok(Self { name: name.into(), specs, mesh, parts, mechanism })
    }

    /// Names of the deformers, in order.
    pub fn deformer_names(&self) -> Vec<&str> {
        self.parts.deformers.iter().map(|d| d.name()).collect()
    }
}

impl Rig for StackRig {
    fn name(&self) -> &str {
        &self.name
    }

    fn specs(&self) -> &ControlSpecs {
        &self.specs
    }

    fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        self.parts.skeleton.as_ref()
    }

    fn mechanism(&self) -> Option<&JointMechanism> {
        self.mechanism.as_ref()
    }

    fn skin_weights(&self) -> Option<&SkinWeights> {
        self.parts.weights.as_ref()
    }

    fn blendshapes(&self) -> Option<&BlendshapeRig> {
        self.parts.blendshapes.as_ref()
    }

    fn clips(&self) -> &[Clip] {
        &self.parts.clips
    }

    fn colours(&self) -> Option<&[Vec3]> {
        (!self.parts.colours.is_empty()).then_some(&self.parts.colours)
    }

    fn evaluate_bones(&self, controls: &Controls, out: &mut RigPose) -> Result<(), RigError> {
        self.specs.check(controls)?;
        match &self.mechanism {
            Some(mechanism) => mechanism.evaluate(&controls.0, &mut out.scratch.pose, &mut out.global),
            None => out.global.0.clear(),
        }
        Ok(())
    }

    fn evaluate_from(&self, rest: &[Vec3], controls: &Controls, out: &mut RigPose) -> Result<(), RigError> {
        self.specs.check(controls)?;
        if rest.len() != self.mesh.vertex_count() {
            let (got, want) = (rest.len(), self.mesh.vertex_count());
            return Err(RigError::Count { what: "rest positions".into(), got, want });
        }
        let mut pose = std::mem::take(&mut out.scratch.pose);
        let mut matrices = std::mem::take(&mut out.scratch.matrices);
        match &self.mechanism {
            Some(mechanism) => {
                mechanism.evaluate(&controls.0, &mut pose, &mut out.global);
                mechanism.skeleton().skinning_matrices(&out.global, &mut matrices);
            }
            None => out.global.0.clear(),
        }
        out.vertices.clear();
        out.vertices.extend_from_slice(rest);
        let frame =
            Frame { controls: &controls.0, pose: &pose, global: &out.global.0, matrices: &matrices, rest };
        for deformer in &self.parts.deformers {
            deformer.deform(&frame, &mut out.vertices, &mut out.scratch);
        }
        out.scratch.pose = pose;
        out.scratch.matrices = matrices;
        match out.vertices.iter().position(|v| !v.is_finite()) {
            Some(vertex) => Err(RigError::NonFinite { rig: self.name.clone(), vertex }),
            None => Ok(()),
        }
    }
}
