//! Whatever poses a mesh: twins, baselines and original rigs are all "a pose in, vertices out", so that one table weighs
//! them and one race times them.

use crate::baselines::Approximation;
use crate::decomposition::DecomposedSkin;
use std::sync::Arc;
use thiserror::Error;
use understudy_core::{Affine3A, ControlSpecs, Controls, Vec3};
use understudy_rigs::{Rig, RigError, RigPose};
use understudy_runtime::{Player, Pose, PoseError, Twin};

/// Why a pose could not be taken.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum MethodError {
    /// A pose that does not fit.
    #[error(transparent)]
    Pose(#[from] PoseError),
    /// The rig failed.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// A control that a twin needs and a recording does not have.
    #[error("there is no control '{0}', which the twin needs")]
    Control(String),
    /// A mesh that no skin follows.
    #[error("{0}")]
    Skin(String),
}

/// One recorded pose. A method looks at what it is posed by: bones, controls, or (a skin that is fitted to every pose)
/// the vertices themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame<'a> {
    /// World transforms, `[J]`.
    pub bones: &'a [Affine3A],
    /// Values of all controls of the recording, `[C]`.
    pub controls: &'a [f32],
    /// The truth, `[V]` cm.
    pub vertices: &'a [Vec3],
}

/// A pose in, vertices out.
pub trait Method {
    /// Short, for tables and JSON.
    fn name(&self) -> &str;

    /// Size of the model; 0 for a rig.
    fn bytes(&self) -> usize;

    /// What no engine would do for a pose, and nobody times: finding the bones of a skin that has none of its own.
    fn prepare(&mut self, _frame: Frame<'_>) -> Result<(), MethodError> {
        Ok(())
    }

    /// Moves the vertices, `[V]` cm.
    fn pose(&mut self, frame: Frame<'_>, out: &mut [Vec3]) -> Result<(), MethodError>;
}

/// A twin of any kind.
pub struct PlayedTwin {
    name: String,
    bytes: usize,
    player: Player,
    /// Whether its mechanism poses it, in place of the recorded bones.
    by_controls: bool,
    /// For every control that it is given its place in the recording.
    places: Vec<usize>,
    values: Vec<f32>,
}

impl PlayedTwin {
    /// On one thread, for recordings with these controls. `bytes`: size of its file.
    pub fn new(name: &str, bytes: usize, twin: &Twin, specs: &ControlSpecs) -> Result<Self, MethodError> {
        let inputs = &twin.header().inputs;
        Self::given(name, bytes, twin, &inputs.controls, specs, inputs.bones.is_empty())
    }

    /// The same posed by controls alone, where it has a mechanism.
    pub fn by_controls(
        name: &str,
        bytes: usize,
        twin: &Twin,
        specs: &ControlSpecs,
    ) -> Result<Self, MethodError> {
        let inputs = twin.posing_controls().unwrap_or(&twin.header().inputs.controls);
        Self::given(name, bytes, twin, inputs, specs, true)
    }

    fn given(
        name: &str,
        bytes: usize,
        twin: &Twin,
        inputs: &ControlSpecs,
        specs: &ControlSpecs,
        by_controls: bool,
    ) -> Result<Self, MethodError> {
        let find = |name: &String| specs.find(name).ok_or_else(|| MethodError::Control(name.clone()));
        let places: Vec<usize> = inputs.iter().map(|spec| find(&spec.name)).collect::<Result<_, _>>()?;
        let values = vec![0.0; places.len()];
        Ok(Self { name: name.into(), bytes, player: twin.player(1), by_controls, places, values })
    }
}

impl Method for PlayedTwin {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn pose(&mut self, frame: Frame<'_>, out: &mut [Vec3]) -> Result<(), MethodError> {
        self.values.iter_mut().zip(&self.places).for_each(|(value, place)| *value = frame.controls[*place]);
        let pose = match self.by_controls {
            true => Pose::Controls(&self.values),
            false => Pose::Bones { bones: frame.bones, extras: &self.values },
        };
        Ok(self.player.pose(pose, out)?)
    }
}

/// A fitted baseline. Any number of threads pose the same fit.
impl Method for Arc<dyn Approximation> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn bytes(&self) -> usize {
        (**self).bytes()
    }

    fn pose(&mut self, frame: Frame<'_>, out: &mut [Vec3]) -> Result<(), MethodError> {
        self.evaluate(frame, out);
        Ok(())
    }
}

/// A skin by decomposition. It has no controls: its bones move to where they fit each pose best, as Le and Deng compare
/// (and [`Method::prepare`] finds); that is the most that it can do.
pub struct FollowingSkin {
    skin: Arc<DecomposedSkin>,
    motions: Vec<Affine3A>,
}

impl FollowingSkin {
    /// Of a skin that several may follow.
    pub fn new(skin: Arc<DecomposedSkin>) -> Self {
        Self { skin, motions: Vec::new() }
    }
}

impl Method for FollowingSkin {
    fn name(&self) -> &str {
        self.skin.name()
    }

    fn bytes(&self) -> usize {
        self.skin.bytes()
    }

    fn prepare(&mut self, frame: Frame<'_>) -> Result<(), MethodError> {
        self.motions =
            self.skin.pose(frame.vertices).map_err(|error| MethodError::Skin(error.to_string()))?;
        Ok(())
    }

    fn pose(&mut self, _frame: Frame<'_>, out: &mut [Vec3]) -> Result<(), MethodError> {
        self.skin.weights().linear_blend(&self.motions, self.skin.rest(), out);
        Ok(())
    }
}

/// The original.
pub struct PosedRig<'a> {
    rig: &'a dyn Rig,
    pose: RigPose,
}

impl<'a> PosedRig<'a> {
    /// Of a rig whose controls are those of the recordings.
    pub fn new(rig: &'a dyn Rig) -> Self {
        Self { rig, pose: RigPose::default() }
    }
}

impl Method for PosedRig<'_> {
    fn name(&self) -> &str {
        self.rig.name()
    }

    fn bytes(&self) -> usize {
        0
    }

    fn pose(&mut self, frame: Frame<'_>, out: &mut [Vec3]) -> Result<(), MethodError> {
        self.rig.evaluate(&Controls(frame.controls.to_vec()), &mut self.pose)?;
        let (got, want) = (out.len(), self.pose.vertices.len());
        if got != want {
            return Err(PoseError::Count { what: "vertices", got, want }.into());
        }
        out.copy_from_slice(&self.pose.vertices);
        Ok(())
    }
}
