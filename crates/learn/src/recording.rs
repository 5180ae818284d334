//! Recorded poses of a rig, all in memory: what every kind of twin and every baseline is learned from. `vertices` is
//! the bulk, 12 bytes a vertex and pose. Files are read elsewhere (`jobs`).

use crate::Frame;
use thiserror::Error;
use understudy_core::{Affine3A, ControlSpecs, Mesh, Skeleton, Vec3};

/// Lengths beyond this are no character's, cm: their squares would not fit into single precision.
pub(crate) const LARGEST_CM: f32 = 1e9;

/// What is wrong with a recording.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RecordingError {
    /// Arrays that do not fit.
    #[error("{what}: {got} entries, {want} expected")]
    Count {
        /// Which array.
        what: &'static str,
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// Fewer poses than anything can be learned from.
    #[error("{got} poses are too few to learn from and to hold some back; record at least {want}")]
    TooFewPoses {
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// A number in the data is not finite.
    #[error("pose {pose} has {what} that is not finite")]
    NonFinite {
        /// The pose.
        pose: usize,
        /// What.
        what: &'static str,
    },
    /// A number that squares beyond what single precision holds.
    #[error(
        "pose {pose} has {what} {distance:e} cm from the origin; more than {LARGEST_CM:e} cm cannot be learned"
    )]
    TooFar {
        /// The pose.
        pose: usize,
        /// What.
        what: &'static str,
        /// How far away.
        distance: f32,
    },
    /// What moves by bones needs some.
    #[error("the recorded rig has no bones; a body twin needs them")]
    NoBones,
}

/// The poses.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The rest mesh.
    pub mesh: Mesh,
    /// The bones, where the rig has some.
    pub skeleton: Option<Skeleton>,
    /// The controls, `[C]`.
    pub specs: ControlSpecs,
    /// World transforms, `[N · J]`.
    pub bones: Vec<Affine3A>,
    /// Control values, `[N · C]`.
    pub controls: Vec<f32>,
    /// `[N · V]` cm.
    pub vertices: Vec<Vec3>,
}

impl Recording {
    /// Number of poses.
    pub fn len(&self) -> usize {
        self.vertices.len() / self.mesh.vertex_count()
    }

    /// Whether there is no pose.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }

    /// The bones.
    ///
    /// # Panics
    /// When the rig has none: who needs them asks [`Recording::check_bones`] first.
    pub fn skeleton(&self) -> &Skeleton {
        self.skeleton.as_ref().expect("who needs bones asks for them first")
    }

    /// Number of bones.
    pub fn bone_count(&self) -> usize {
        self.skeleton.as_ref().map_or(0, Skeleton::len)
    }

    /// World transforms of a pose.
    pub fn bones_of(&self, pose: usize) -> &[Affine3A] {
        let joints = self.bone_count();
        &self.bones[pose * joints..(pose + 1) * joints]
    }

    /// Vertices of a pose.
    pub fn vertices_of(&self, pose: usize) -> &[Vec3] {
        let count = self.mesh.vertex_count();
        &self.vertices[pose * count..(pose + 1) * count]
    }

    /// Controls of a pose.
    pub fn controls_of(&self, pose: usize) -> &[f32] {
        let count = self.specs.len();
        &self.controls[pose * count..(pose + 1) * count]
    }

    /// All of a pose.
    pub fn frame(&self, pose: usize) -> Frame<'_> {
        Frame {
            bones: self.bones_of(pose),
            controls: self.controls_of(pose),
            vertices: self.vertices_of(pose),
        }
    }

    /// At most `most` poses, spread evenly.
    pub fn spread(&self, most: usize) -> Vec<usize> {
        let count = self.len().min(most);
        (0..count).map(|i| i * self.len() / count).collect()
    }

    /// There are enough poses, lengths agree, every number is finite and no place is beyond all measure.
    pub fn check(&self, fewest: usize) -> Result<(), RecordingError> {
        let poses = self.len();
        if poses < fewest {
            return Err(RecordingError::TooFewPoses { got: poses, want: fewest });
        }
        let count = |what: &'static str, got: usize, want: usize| {
            if got == want { Ok(()) } else { Err(RecordingError::Count { what, got, want }) }
        };
        count("vertices", self.vertices.len(), poses * self.mesh.vertex_count())?;
        count("bones", self.bones.len(), poses * self.bone_count())?;
        count("controls", self.controls.len(), poses * self.specs.len())?;
        for pose in 0..poses {
            let bad = |what| Err(RecordingError::NonFinite { pose, what });
            if self.bones_of(pose).iter().any(|b| !b.is_finite()) {
                return bad("a bone");
            }
            if self.controls_of(pose).iter().any(|c| !c.is_finite()) {
                return bad("a control");
            }
            if self.vertices_of(pose).iter().any(|v| !v.is_finite()) {
                return bad("a vertex");
            }
            let far = |what, distance: f32| match distance > LARGEST_CM {
                true => Err(RecordingError::TooFar { pose, what, distance }),
                false => Ok(()),
            };
            let reach =
                |bone: &Affine3A| bone.to_cols_array().into_iter().fold(0.0f32, |most, n| most.max(n.abs()));
            far("a bone", self.bones_of(pose).iter().map(reach).fold(0.0, f32::max))?;
            let reach = |vertex: &Vec3| vertex.abs().max_element();
            far("a vertex", self.vertices_of(pose).iter().map(reach).fold(0.0, f32::max))?;
        }
        Ok(())
    }

    /// The rig has bones.
    pub fn check_bones(&self) -> Result<(), RecordingError> {
        if self.skeleton.is_some() { Ok(()) } else { Err(RecordingError::NoBones) }
    }
}
