//! What can be written, and the one place where it is checked.

use super::super::surface::Surface;
use thiserror::Error;
use understudy_core::{
    BlendshapeRig, JointClip, JointProperty, KeyedClip, Mesh, Skeleton, SkinWeights, Vec3,
};

/// What keeps a scene from becoming a glTF file.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SceneError {
    /// Two parts are for different meshes, skeletons or rigs.
    #[error("{what}: {got}, but {want} are needed")]
    Count {
        /// Which part.
        what: String,
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// A number that is not finite or out of range.
    #[error("{what}: {problem}")]
    Number {
        /// Which part.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A rotation of no length.
    #[error("bone '{bone}' has a rotation of no length")]
    Rotation {
        /// The bone.
        bone: String,
    },
    /// Beyond what the format or our notes can hold.
    #[error("{what}: {got}, the most is {most}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much.
        got: usize,
        /// The limit.
        most: usize,
    },
}

/// A character to write. Lengths in cm.
#[derive(Debug, Clone, Copy)]
pub struct GltfScene<'a> {
    /// Name of the mesh and its node.
    pub name: &'a str,
    /// Topology and rest positions, in bind space.
    pub mesh: &'a Mesh,
    /// Bones and which of them move which vertices.
    pub skin: Option<(&'a Skeleton, &'a SkinWeights)>,
    /// Offsets from the mesh's positions; correctives become targets of their own.
    pub shapes: Option<&'a BlendshapeRig>,
    /// One a shape, shown when nothing is animated; empty for zeros.
    pub rest_weights: &'a [f32],
    /// Animation of the skin's bones, of the shapes, or of both, frame by frame.
    pub clips: &'a [JointClip],
    /// The same as keys, which are written as they are; after the others.
    pub keyed_clips: &'a [KeyedClip],
    /// Linear RGB a vertex, each from 0 to 1.
    pub colours: Option<&'a [Vec3]>,
    /// The look of the file that the mesh was read from; plain grey without.
    pub surface: Option<&'a Surface>,
}

impl<'a> GltfScene<'a> {
    /// Indices of vertices travel as f32.
    pub const MAX_VERTICES: usize = 1 << 24;

    /// A mesh alone; the rest is set field by field.
    pub fn new(name: &'a str, mesh: &'a Mesh) -> Self {
        Self {
            name,
            mesh,
            skin: None,
            shapes: None,
            rest_weights: &[],
            clips: &[],
            keyed_clips: &[],
            colours: None,
            surface: None,
        }
    }

    /// Number of bones, 0 without a skin.
    pub(super) fn bone_count(&self) -> usize {
        self.skin.map_or(0, |(skeleton, _)| skeleton.bones().len())
    }

    /// Number of shapes without correctives, 0 without a rig.
    pub(super) fn shape_count(&self) -> usize {
        self.shapes.map_or(0, |shapes| shapes.shapes().len())
    }

    /// One weight per shape at rest.
    pub(super) fn rest_shape_weights(&self) -> Vec<f32> {
        match self.rest_weights {
            [] => vec![0.0; self.shape_count()],
            weights => weights.to_vec(),
        }
    }

    /// Weights of all morph targets: the shapes' own, then the products of the correctives.
    pub(super) fn target_weights(&self, weights: &[f32]) -> Vec<f32> {
        let correctives = self.shapes.map(BlendshapeRig::correctives).unwrap_or_default();
        let products = correctives.iter().map(|c| BlendshapeRig::corrective_weight(c, weights));
        weights.iter().copied().chain(products).collect()
    }

    /// Whether all parts fit together.
    pub(super) fn check(&self) -> Result<(), SceneError> {
        let vertices = self.mesh.vertex_count();
        let corners = self.mesh.uvs().len().max(vertices);
        if corners >= Self::MAX_VERTICES {
            return Err(SceneError::TooLarge {
                what: "vertices",
                got: corners,
                most: Self::MAX_VERTICES - 1,
            });
        }
        if let Some((skeleton, weights)) = self.skin {
            let bones = skeleton.bones().len();
            same("skin weights are for this many vertices", weights.vertex_count(), vertices)?;
            same("skin weights are for this many bones", weights.bone_count(), bones)?;
            if bones > usize::from(u16::MAX) {
                return Err(SceneError::TooLarge { what: "bones", got: bones, most: u16::MAX.into() });
            }
        }
        if let Some(shapes) = self.shapes {
            same("shapes are for this many vertices", shapes.neutral().len(), vertices)?;
        }
        if !self.rest_weights.is_empty() {
            same("rest weights", self.rest_weights.len(), self.shape_count())?;
            finite("rest weights", self.rest_weights)?;
        }
        if let Some(colours) = self.colours {
            same("vertex colours", colours.len(), vertices)?;
            if let Some(vertex) =
                colours.iter().position(|c| !(c.min_element() >= 0.0 && c.max_element() <= 1.0))
            {
                let problem = format!("vertex {vertex} has {}, not from 0 to 1", colours[vertex]);
                return Err(SceneError::Number { what: "vertex colours".into(), problem });
            }
        }
        if let Some(surface) = self.surface {
            same("materials are for this many faces", surface.of_face.len(), self.mesh.faces().len())?;
            for (what, got) in [
                ("normals", surface.normals.as_ref().map(Vec::len)),
                ("tangents", surface.tangents.as_ref().map(Vec::len)),
                ("opacities", surface.opacities.as_ref().map(Vec::len)),
            ] {
                same(what, got.unwrap_or(vertices), vertices)?;
            }
            surface.uv_sets.values().try_for_each(|set| same("texture coordinates", set.len(), vertices))?;
        }
        self.clips.iter().try_for_each(|clip| self.check_clip(clip))?;
        self.keyed_clips.iter().try_for_each(|clip| self.check_keys(clip))
    }

    fn check_keys(&self, clip: &KeyedClip) -> Result<(), SceneError> {
        let what = |part: &str| format!("clip '{}': {part}", clip.name);
        if !(clip.rate.is_finite() && clip.rate > 0.0) {
            return Err(SceneError::Number { what: what("frame rate"), problem: clip.rate.to_string() });
        }
        for bone in &clip.bones {
            let width = if bone.property == JointProperty::Rotation { 4 } else { 3 };
            same(&what("numbers per key"), bone.track.width(), width)?;
            if bone.bone >= self.bone_count() {
                let (got, most) = (bone.bone, self.bone_count());
                return Err(SceneError::Count { what: what("bone"), got, want: most });
            }
        }
        for weights in &clip.weights {
            same(&what("weights per key"), weights.track.width(), weights.shapes.len())?;
            if let Some(shape) = weights.shapes.iter().flatten().find(|shape| **shape >= self.shape_count()) {
                let (got, want) = (*shape, self.shape_count());
                return Err(SceneError::Count { what: what("shape"), got, want });
            }
        }
        Ok(())
    }

    fn check_clip(&self, clip: &JointClip) -> Result<(), SceneError> {
        let what = |part: &str| format!("clip '{}': {part}", clip.name);
        let bad = |part: &str, problem: String| Err(SceneError::Number { what: what(part), problem });
        if !(clip.rate.is_finite() && clip.rate > 0.0) {
            return bad("frame rate", clip.rate.to_string());
        }
        let frames = clip.poses.len().max(clip.shape_weights.len());
        if frames == 0 {
            return bad("frames", "none".into());
        }
        if self.skin.is_some() || !clip.poses.is_empty() {
            same(&what("frames with a pose"), clip.poses.len(), frames)?;
        }
        for (frame, pose) in clip.poses.iter().enumerate() {
            if self.skin.is_some() {
                same(&what(&format!("bones in frame {frame}")), pose.0.len(), self.bone_count())?;
            }
            if pose.0.iter().any(|joint| !joint.is_finite()) {
                return bad("poses", format!("a transform in frame {frame} is not finite"));
            }
        }
        if !clip.shape_weights.is_empty() {
            same(&what("frames with shape weights"), clip.shape_weights.len(), frames)?;
        }
        for (frame, weights) in clip.shape_weights.iter().enumerate() {
            same(&what(&format!("shape weights in frame {frame}")), weights.len(), self.shape_count())?;
            finite(&what(&format!("shape weights in frame {frame}")), weights)?;
        }
        Ok(())
    }
}

fn same(what: &str, got: usize, want: usize) -> Result<(), SceneError> {
    if got == want { Ok(()) } else { Err(SceneError::Count { what: what.into(), got, want }) }
}

fn finite(what: &str, values: &[f32]) -> Result<(), SceneError> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(place) => {
            Err(SceneError::Number { what: what.into(), problem: format!("number {place} is not finite") })
        }
    }
}
