//! What can be said about a mesh, a rig, a motion or an array, ready to be printed or serialised.

use serde::Serialize;
use understudy_core::{BlendshapeRig, Clip, ControlSpec, JointClip, Mesh, Skeleton, SkinWeights};
use understudy_rigs::Rig;

/// About a mesh.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeshFacts {
    /// Vertices.
    pub vertices: usize,
    /// Triangles and quads.
    pub faces: usize,
    /// Faces of four corners.
    pub quads: usize,
    /// Entries of the texture table; 0 without texture coordinates.
    pub texture_coordinates: usize,
    /// Named parts with their numbers of vertices.
    pub segments: Vec<SegmentFacts>,
    /// Parts that no edge connects.
    pub islands: usize,
    /// Lower corner of the bounding box, cm.
    pub low_cm: [f32; 3],
    /// Upper corner of the bounding box, cm.
    pub high_cm: [f32; 3],
    /// Sides of the bounding box, cm.
    pub size_cm: [f32; 3],
    /// Two meshes with the same hash can exchange vertex arrays.
    pub topology_hash: String,
}

/// About a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SegmentFacts {
    /// Its name.
    pub name: String,
    /// Its vertices.
    pub vertices: usize,
}

/// About a skeleton and a skin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkeletonFacts {
    /// Bones.
    pub bones: usize,
    /// Bones without a parent.
    pub roots: usize,
    /// Longest chain of bones.
    pub depth: usize,
    /// How many vertices have 0, 1, 2, … influences; empty without a skin.
    pub vertices_by_influences: Vec<usize>,
}

/// About shapes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShapeFacts {
    /// Names of the shapes.
    pub names: Vec<String>,
    /// Number of correctives that combine 2, 3, 4, … shapes.
    pub correctives_by_level: Vec<usize>,
}

/// About a control.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ControlFacts {
    /// Its name.
    pub name: String,
    /// Lower end of its range.
    pub low: f32,
    /// Upper end of its range.
    pub high: f32,
    /// Value at rest.
    pub default: f32,
}

/// About a clip.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClipFacts {
    /// Its name.
    pub name: String,
    /// Its length.
    pub seconds: f32,
    /// Frames, where it is sampled.
    pub frames: Option<usize>,
    /// Frames a second, where it is sampled.
    pub rate: Option<f32>,
    /// Curves, where it is keyed.
    pub curves: Option<usize>,
}

/// About an array in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArrayFacts {
    /// Its name.
    pub name: String,
    /// Its lengths.
    pub shape: Vec<usize>,
    /// How a number is stored.
    pub element: String,
}

impl MeshFacts {
    pub(crate) fn new(mesh: &Mesh) -> Self {
        let (low, high) = mesh.bounds();
        let mut counts = vec![0; mesh.segments().len()];
        mesh.segments().of_vertex.iter().for_each(|segment| counts[*segment as usize] += 1);
        let names = mesh.segments().names.iter().cloned();
        Self {
            vertices: mesh.vertex_count(),
            faces: mesh.faces().len(),
            quads: mesh.faces().iter().filter(|face| face.corner_count() == 4).count(),
            texture_coordinates: mesh.uvs().len(),
            segments: names.zip(counts).map(|(name, vertices)| SegmentFacts { name, vertices }).collect(),
            islands: mesh.islands().1,
            low_cm: low.to_array(),
            high_cm: high.to_array(),
            size_cm: (high - low).to_array(),
            topology_hash: format!("{:016x}", mesh.topology_hash()),
        }
    }
}

impl SkeletonFacts {
    pub(crate) fn new(skeleton: &Skeleton, skin: Option<&SkinWeights>) -> Self {
        let mut depths = vec![1; skeleton.len()];
        for &bone in skeleton.order() {
            if let Some(parent) = skeleton.bones()[bone as usize].parent {
                depths[bone as usize] = depths[parent] + 1;
            }
        }
        let mut vertices_by_influences = Vec::new();
        if let Some(skin) = skin {
            vertices_by_influences.resize(skin.max_influences() + 1, 0);
            (0..skin.vertex_count()).for_each(|vertex| vertices_by_influences[skin.row(vertex).count()] += 1);
        }
        Self {
            bones: skeleton.len(),
            roots: skeleton.bones().iter().filter(|bone| bone.parent.is_none()).count(),
            depth: depths.into_iter().max().unwrap_or(0),
            vertices_by_influences,
        }
    }
}

impl ShapeFacts {
    pub(crate) fn new(shapes: &BlendshapeRig) -> Self {
        let mut correctives_by_level = Vec::new();
        for corrective in shapes.correctives() {
            let place = corrective.shapes.len() - 2;
            correctives_by_level.resize(correctives_by_level.len().max(place + 1), 0);
            correctives_by_level[place] += 1;
        }
        Self { names: shapes.shapes().iter().map(|shape| shape.name.clone()).collect(), correctives_by_level }
    }
}

impl ControlFacts {
    pub(crate) fn new(spec: &ControlSpec) -> Self {
        Self { name: spec.name.clone(), low: spec.low, high: spec.high, default: spec.default }
    }

    pub(crate) fn all(rig: &dyn Rig) -> Vec<Self> {
        rig.specs().iter().map(Self::new).collect()
    }
}

impl ClipFacts {
    pub(crate) fn keyed(clip: &Clip) -> Self {
        let tracks =
            clip.motion.as_ref().map_or(0, |motion| motion.keys.bones.len() + motion.keys.weights.len());
        Self {
            name: clip.name.clone(),
            seconds: clip.duration,
            frames: clip.rate.map(|rate| (clip.duration * rate).round() as usize + 1),
            rate: clip.rate,
            curves: Some(clip.curves.len() + tracks),
        }
    }

    pub(crate) fn sampled(clip: &JointClip) -> Self {
        let frames = clip.poses.len().max(clip.shape_weights.len());
        Self {
            name: clip.name.clone(),
            seconds: frames.saturating_sub(1) as f32 / clip.rate,
            frames: Some(frames),
            rate: Some(clip.rate),
            curves: None,
        }
    }
}
