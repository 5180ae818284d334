//! A mesh with everything that moves it, whatever file it came from: what glTF, OBJ and blendshape archives become.
//! A deformation is: shapes first, in bind space, then linear blend skinning.

use crate::Conversion;
use crate::blendshape_npz::BlendshapeFile;
use crate::gltf::{GltfScene, Surface};
use crate::obj::ObjMesh;
use understudy_core::{
    BlendshapeRig, ClipError, GlobalPose, JointClip, JointPose, KeyedClip, Mesh, Skeleton, SkeletonError,
    SkinWeights, Vec3,
};

/// A mesh, its bones, its shapes and their motion, in centimetres and Y-up.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// All faces in bind space, a segment a part.
    pub mesh: Mesh,
    /// Linear RGB a vertex, where the file has colours.
    pub colours: Option<Vec<Vec3>>,
    /// The bones, where there are any; always together with [`Self::skin`].
    pub skeleton: Option<Skeleton>,
    /// The bones that a skin of the file calls joints, ascending.
    pub joints: Vec<usize>,
    /// Which bones move which vertices.
    pub skin: Option<SkinWeights>,
    /// Shapes; their neutral is the mesh. `None` when the file has none.
    pub shapes: Option<BlendshapeRig>,
    /// The weight of every shape that the file shows when nothing is animated.
    pub rest_weights: Vec<f32>,
    /// All animations, as keys.
    pub clips: Vec<KeyedClip>,
    /// How it looks, where [`crate::OpenOptions::surface`] asks for it.
    pub surface: Option<Surface>,
    /// What was skipped or mended.
    pub warnings: Vec<String>,
    /// What was done to the file's units and axes.
    pub conversion: Conversion,
}

impl Model {
    /// A mesh that nothing moves.
    pub fn still(mesh: Mesh, conversion: Conversion) -> Self {
        Self {
            mesh,
            colours: None,
            skeleton: None,
            joints: Vec::new(),
            skin: None,
            shapes: None,
            rest_weights: Vec::new(),
            clips: Vec::new(),
            surface: None,
            warnings: Vec::new(),
            conversion,
        }
    }

    /// Bones and weights, where it has them.
    pub fn bound(&self) -> Option<(&Skeleton, &SkinWeights)> {
        self.skeleton.as_ref().zip(self.skin.as_ref())
    }

    /// The bones at rest; none without a skeleton.
    pub fn rest_pose(&self) -> JointPose {
        self.skeleton.as_ref().map(Skeleton::rest_pose).unwrap_or_default()
    }

    /// Vertices in a pose, `[V]` cm: shapes in bind space, then linear blend skinning.
    /// `weights`: one per shape; none at all stands for [`Self::rest_weights`].
    ///
    /// # Panics
    /// When there are some, but not one per shape.
    pub fn deform(&self, pose: &JointPose, weights: &[f32]) -> Result<Vec<Vec3>, SkeletonError> {
        let mut shaped = self.mesh.positions().to_vec();
        if let Some(shapes) = &self.shapes {
            shapes.add_offsets(if weights.is_empty() { &self.rest_weights } else { weights }, &mut shaped);
        }
        let Some((skeleton, skin)) = self.bound() else { return Ok(shaped) };
        let mut global = GlobalPose::default();
        skeleton.forward(pose, &mut global)?;
        let mut matrices = Vec::new();
        skeleton.skinning_matrices(&global, &mut matrices);
        let mut out = vec![Vec3::ZERO; shaped.len()];
        skin.linear_blend(&matrices, &shaped, &mut out);
        Ok(out)
    }

    /// Vertices as the file shows them when nothing is animated.
    pub fn rest_vertices(&self) -> Vec<Vec3> {
        self.deform(&self.rest_pose(), &[]).expect("the rest pose is the skeleton's own")
    }

    /// Vertices in a frame of a clip of this model at the clip's own rate; beyond the end the last key holds.
    ///
    /// # Panics
    /// When the clip is not for this skeleton and these shapes.
    pub fn evaluate(&self, clip: &KeyedClip, frame: usize) -> Vec<Vec3> {
        self.evaluate_at(clip, frame as f64 / f64::from(clip.rate))
    }

    /// Vertices at a time in seconds.
    ///
    /// # Panics
    /// When the clip is not for this skeleton and these shapes.
    pub fn evaluate_at(&self, clip: &KeyedClip, time: f64) -> Vec<Vec3> {
        let pose = clip.pose_at(time, &self.rest_pose());
        let weights = clip.weights_at(time, &self.rest_weights);
        self.deform(&pose, &weights).expect("the clip is for this skeleton")
    }

    /// A clip frame by frame; `rate` in frames per second, the clip's own when left out.
    pub fn frames(&self, clip: &KeyedClip, rate: Option<f32>) -> Result<JointClip, ClipError> {
        clip.sample(&self.rest_pose(), &self.rest_weights, rate.unwrap_or(clip.rate))
    }

    /// Everything as a scene to write again.
    pub fn scene<'a>(&'a self, name: &'a str) -> GltfScene<'a> {
        GltfScene {
            skin: self.bound(),
            shapes: self.shapes.as_ref(),
            rest_weights: &self.rest_weights,
            keyed_clips: &self.clips,
            colours: self.colours.as_deref(),
            surface: self.surface.as_ref(),
            ..GltfScene::new(name, &self.mesh)
        }
    }

    /// The clip of that name.
    pub fn find_clip(&self, name: &str) -> Option<&KeyedClip> {
        self.clips.iter().find(|clip| clip.name == name)
    }
}

impl From<ObjMesh> for Model {
    fn from(file: ObjMesh) -> Self {
        Self { warnings: file.warnings, ..Self::still(file.mesh, file.conversion) }
    }
}

impl From<BlendshapeFile> for Model {
    fn from(file: BlendshapeFile) -> Self {
        Self {
            rest_weights: vec![0.0; file.rig.shapes().len()],
            shapes: Some(file.rig),
            warnings: file.warnings,
            ..Self::still(file.mesh, file.conversion)
        }
    }
}
