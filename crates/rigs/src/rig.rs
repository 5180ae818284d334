//! The one trait that sampling, learning and every command know a rig by.

use crate::stack::Scratch;
use thiserror::Error;
use understudy_core::{
    Affine3A, BlendshapeError, BlendshapeRig, Clip, ClipError, ControlError, ControlSpecs, Controls,
    GlobalPose, JointMechanism, MechanismError, Mesh, MeshError, Skeleton, SkeletonError, SkinError,
    SkinWeights, Vec3,
};

/// Why a rig could not be built or posed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RigError {
    /// Controls of the wrong length, unknown or not finite.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Bones that do not fit.
    #[error(transparent)]
    Skeleton(#[from] SkeletonError),
    /// Constraints that do not fit.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// A mesh that is not valid.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// Weights that are not valid.
    #[error(transparent)]
    Skin(#[from] SkinError),
    /// Shapes that are not valid.
    #[error(transparent)]
    Blendshape(#[from] BlendshapeError),
    /// A clip that does not fit.
    #[error(transparent)]
    Clip(#[from] ClipError),
    /// A part of the rig names a bone, control or segment that does not exist.
    #[error("{part} names '{name}', which the rig does not have")]
    Unknown {
        /// Which part.
        part: String,
        /// The name.
        name: String,
    },
    /// Arrays that should go together differ in length.
    #[error("{what}: {got} entries, {want} expected")]
    Count {
        /// Which array.
        what: String,
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// The rig cannot do what was asked.
    #[error("the rig '{rig}' cannot {what}")]
    Unsupported {
        /// The rig.
        rig: String,
        /// What was asked.
        what: &'static str,
    },
    /// A rig in another program did not answer as it should.
    #[error("the rig '{rig}': {problem}")]
    External {
        /// The rig.
        rig: String,
        /// What happened.
        problem: String,
    },
    /// A vertex came out NaN or infinite.
    #[error("the rig '{rig}' moved vertex {vertex} to a place that is not finite")]
    NonFinite {
        /// The rig.
        rig: String,
        /// The vertex.
        vertex: usize,
    },
}

/// What one evaluation gives. Reuse it from pose to pose: nothing is allocated again.
#[derive(Debug, Clone, Default)]
pub struct RigPose {
    /// Deformed vertices, `[V]` cm.
    pub vertices: Vec<Vec3>,
    /// World transforms of the bones, `[J]`; empty without a skeleton.
    pub global: GlobalPose,
    /// World transforms of [`Rig::guides`], `[G]`.
    pub guides: Vec<Affine3A>,
    pub(crate) scratch: Scratch,
}

/// A bone that moves no vertex, but in whose frame others move simply: what an animator takes hold of, the goal of a limb.
/// Recorded so that how controls move bones can be learned; no twin asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Guide {
    /// Its name.
    pub name: String,
    /// Its world transform at rest.
    pub rest: Affine3A,
}

/// Something that went wrong with a few poses of a batch and was tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// Places in the batch: one pose where it is known which, all that were asked for otherwise.
    pub poses: std::ops::Range<usize>,
    /// One line.
    pub problem: String,
}

/// A rig as a black box: controls in, vertices (and bones, where it has them) out.
///
/// The same controls always give the same bytes. Wrong lengths and non-finite values are errors, never
/// panics; values outside a control's range are allowed (the range is for sampling).
pub trait Rig: Send + Sync {
    /// What it is called.
    fn name(&self) -> &str;

    /// What an animator moves.
    fn specs(&self) -> &ControlSpecs;

    /// The rest mesh with UVs and segments.
    fn mesh(&self) -> &Mesh;

    /// The bones, where it has them.
    fn skeleton(&self) -> Option<&Skeleton> {
        None
    }

    /// Bones that move no vertex but explain the others, where it shows some.
    fn guides(&self) -> &[Guide] {
        &[]
    }

    /// How its controls move its bones, where it shows that.
    fn mechanism(&self) -> Option<&JointMechanism> {
        None
    }

    /// The skin weights, where it shows them.
    fn skin_weights(&self) -> Option<&SkinWeights> {
        None
    }

    /// The blendshape layer, where it has one. Shape names are control names.
    fn blendshapes(&self) -> Option<&BlendshapeRig> {
        None
    }

    /// Hand-made animation that comes with the rig.
    fn clips(&self) -> &[Clip] {
        &[]
    }

    /// sRGB colour of every vertex, 0 to 1, for pictures.
    fn colours(&self) -> Option<&[Vec3]> {
        None
    }

    /// Poses the rig.
    fn evaluate(&self, controls: &Controls, out: &mut RigPose) -> Result<(), RigError> {
        self.evaluate_from(self.mesh().positions(), controls, out)
    }

    /// Poses the rig from other rest positions: moving one rest vertex by one unit probes how the rig
    /// carries it. A rig that cannot answers [`RigError::Unsupported`] and overrides
    /// [`Rig::evaluate`].
    fn evaluate_from(&self, rest: &[Vec3], controls: &Controls, out: &mut RigPose) -> Result<(), RigError>;

    /// Poses the bones alone: `out.global` as [`Rig::evaluate`] fills it, vertices as they come. A rig that can leave
    /// its deformers out overrides this: solvers that ask for bones a hundred times per frame live on it.
    fn evaluate_bones(&self, controls: &Controls, out: &mut RigPose) -> Result<(), RigError> {
        self.evaluate(controls, out)
    }

    /// How many poses it evaluates at a time on its own account, in other processes; `None` for a rig that
    /// works on the caller's threads.
    fn workers(&self) -> Option<usize> {
        None
    }

    /// Milliseconds per pose of one of these processes, once some poses were asked for.
    fn pose_ms(&self) -> Option<f64> {
        None
    }

    /// How many poses are best asked for at a time.
    fn batch(&self) -> usize {
        1
    }

    /// Poses the rig several times, `out[i]` by `controls[i]`. What went wrong on the way and was mended is told to
    /// `hear`; an error comes with the pose's place in the batch.
    fn evaluate_batch(
        &self,
        controls: &[Controls],
        out: &mut [RigPose],
        hear: &mut dyn FnMut(Incident),
    ) -> Result<(), (usize, RigError)> {
        let _ = hear;
        for (index, (controls, out)) in controls.iter().zip(out).enumerate() {
            self.evaluate(controls, out).map_err(|error| (index, error))?;
        }
        Ok(())
    }

    /// The clip of that name.
    fn find_clip(&self, name: &str) -> Option<&Clip> {
        self.clips().iter().find(|clip| clip.name == name)
    }
}

/// A rig that several hold is one: each call goes to it.
impl<R: Rig + ?Sized> Rig for std::sync::Arc<R> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn specs(&self) -> &ControlSpecs {
        (**self).specs()
    }

    fn mesh(&self) -> &Mesh {
        (**self).mesh()
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        (**self).skeleton()
    }

    fn mechanism(&self) -> Option<&JointMechanism> {
        (**self).mechanism()
    }

    fn skin_weights(&self) -> Option<&SkinWeights> {
        (**self).skin_weights()
    }

    fn blendshapes(&self) -> Option<&BlendshapeRig> {
        (**self).blendshapes()
    }

    fn clips(&self) -> &[Clip] {
        (**self).clips()
    }

    fn colours(&self) -> Option<&[Vec3]> {
        (**self).colours()
    }

    fn evaluate(&self, controls: &Controls, out: &mut RigPose) -> Result<(), RigError> {
        (**self).evaluate(controls, out)
    }

    fn evaluate_from(&self, rest: &[Vec3], controls: &Controls, out: &mut RigPose) -> Result<(), RigError> {
        (**self).evaluate_from(rest, controls, out)
    }

    fn evaluate_bones(&self, controls: &Controls, out: &mut RigPose) -> Result<(), RigError> {
        (**self).evaluate_bones(controls, out)
    }

    fn workers(&self) -> Option<usize> {
        (**self).workers()
    }

    fn pose_ms(&self) -> Option<f64> {
        (**self).pose_ms()
    }

    fn batch(&self) -> usize {
        (**self).batch()
    }

    fn evaluate_batch(
        &self,
        controls: &[Controls],
        out: &mut [RigPose],
        hear: &mut dyn FnMut(Incident),
    ) -> Result<(), (usize, RigError)> {
        (**self).evaluate_batch(controls, out, hear)
    }
}
