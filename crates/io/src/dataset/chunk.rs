//! A chunk: some poses with what the rig made of them, in memory and as bytes.

use super::content_hash;
use crate::Dim::{Any, Exactly};
use crate::ParseError;
use crate::tensors::{TensorWriter, Tensors};
use understudy_core::{Affine3A, Controls, GlobalPose, Vec3};

/// How many numbers a pose has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkShape {
    /// Controls.
    pub controls: usize,
    /// Bones; zero for a rig without.
    pub bones: usize,
    /// Vertices.
    pub vertices: usize,
}

/// Poses end to end. Filled with [`Self::push`], written by [`super::DatasetWriter`].
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    shape: ChunkShape,
    poses: Vec<f32>,
    skeletons: Vec<f32>,
    vertices: Vec<f32>,
}

impl Chunk {
    /// An empty chunk with room for some poses.
    pub fn with_capacity(shape: ChunkShape, poses: usize) -> Self {
        Self {
            shape,
            poses: Vec::with_capacity(poses * shape.controls),
            skeletons: Vec::with_capacity(poses * shape.bones * 12),
            vertices: Vec::with_capacity(poses * shape.vertices * 3),
        }
    }

    /// Forgets the poses but keeps the memory.
    pub fn clear(&mut self) {
        self.poses.clear();
        self.skeletons.clear();
        self.vertices.clear();
    }

    /// Appends a pose. The problem is a sentence without its pose: too few values, not finite.
    pub fn push(
        &mut self,
        controls: &Controls,
        skeleton: &GlobalPose,
        vertices: &[Vec3],
    ) -> Result<(), String> {
        let ChunkShape { controls: k, bones, vertices: n } = self.shape;
        for (what, got, want) in [
            ("controls", controls.0.len(), k),
            ("bones", skeleton.0.len(), bones),
            ("vertices", vertices.len(), n),
        ] {
            if got != want {
                return Err(format!("{got} {what}, expected {want}"));
            }
        }
        if let Some(index) = controls.0.iter().position(|value| !value.is_finite()) {
            return Err(format!("control {index} is {}", controls.0[index]));
        }
        if let Some(bone) = skeleton.0.iter().position(|transform| !transform.is_finite()) {
            return Err(format!("the transform of bone {bone} is not finite"));
        }
        if let Some(vertex) = vertices.iter().position(|position| !position.is_finite()) {
            return Err(format!("vertex {vertex} is not finite"));
        }
        self.poses.extend(&controls.0);
        self.skeletons.extend(skeleton.0.iter().flat_map(rows_of));
        self.vertices.extend(vertices.iter().flat_map(|v| v.to_array()));
        Ok(())
    }

    /// Number of poses.
    pub fn len(&self) -> usize {
        self.vertices.len() / (self.shape.vertices * 3).max(1)
    }

    /// Whether there is no pose.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many numbers a pose has.
    pub fn shape(&self) -> ChunkShape {
        self.shape
    }

    /// All control values, `[c,k]`.
    pub fn poses(&self) -> &[f32] {
        &self.poses
    }

    /// All bone transforms, `[c,J,12]`, row-major 3×4, bone → world.
    pub fn skeletons(&self) -> &[f32] {
        &self.skeletons
    }

    /// All positions, `[c,n,3]` cm.
    pub fn vertices(&self) -> &[f32] {
        &self.vertices
    }

    /// The control values of one pose.
    ///
    /// # Panics
    /// When there is no such pose.
    pub fn controls_of(&self, pose: usize) -> Controls {
        let k = self.shape.controls;
        Controls(self.poses[pose * k..(pose + 1) * k].to_vec())
    }

    /// The bones of one pose; empty for a rig without.
    ///
    /// # Panics
    /// When there is no such pose.
    pub fn skeleton_of(&self, pose: usize) -> GlobalPose {
        let size = self.shape.bones * 12;
        GlobalPose(self.skeletons[pose * size..(pose + 1) * size].chunks_exact(12).map(from_rows).collect())
    }

    /// The vertices of one pose, `[n]` cm.
    ///
    /// # Panics
    /// When there is no such pose.
    pub fn vertices_of(&self, pose: usize) -> Vec<Vec3> {
        let size = self.shape.vertices * 3;
        self.vertices[pose * size..(pose + 1) * size].chunks_exact(3).map(Vec3::from_slice).collect()
    }

    /// The file's bytes and the hash of its content.
    pub(super) fn to_bytes(&self, index: usize, dataset: &str) -> (Vec<u8>, String) {
        let (c, ChunkShape { controls, bones, vertices }) = (self.len(), self.shape);
        let mut writer = TensorWriter::new();
        writer.f32("poses", &[c, controls], &self.poses).f32("vertices", &[c, vertices, 3], &self.vertices);
        if bones > 0 {
            writer.f32("skeletons", &[c, bones, 12], &self.skeletons);
        }
        let hash = content_hash(writer.data());
        writer.metadata("chunk", index.to_string()).metadata("dataset", dataset).metadata("sha256", &hash);
        (writer.finish().expect("shapes are kept by push"), hash)
    }
}

/// The three rows of an affine map, translation last: `[m00 m01 m02 tx, m10 …]`.
pub(super) fn rows_of(transform: &Affine3A) -> [f32; 12] {
    let (m, t) = (transform.matrix3, transform.translation);
    let mut rows = [0.0; 12];
    for row in 0..3 {
        rows[row * 4..row * 4 + 4].copy_from_slice(&[m.x_axis[row], m.y_axis[row], m.z_axis[row], t[row]]);
    }
    rows
}

/// The inverse of [`rows_of`] for twelve numbers.
pub(super) fn from_rows(rows: &[f32]) -> Affine3A {
    let column = |axis: usize| Vec3::new(rows[axis], rows[4 + axis], rows[8 + axis]);
    Affine3A::from_mat3_translation(
        understudy_core::Mat3::from_cols(column(0), column(1), column(2)),
        column(3),
    )
}

/// What a chunk file says about itself.
pub(super) struct ChunkNote {
    pub index: Option<usize>,
    pub dataset: String,
    pub sha256: String,
}

/// A chunk from bytes; its content must match the hash in its metadata.
pub fn parse_chunk(bytes: &[u8]) -> Result<Chunk, ParseError> {
    parse_noted(bytes).map(|(chunk, _)| chunk)
}

pub(super) fn parse_noted(bytes: &[u8]) -> Result<(Chunk, ChunkNote), ParseError> {
    let file = Tensors::parse(bytes)?;
    let text = |key: &str| file.metadata().get(key).cloned().unwrap_or_default();
    let note =
        ChunkNote { index: text("chunk").parse().ok(), dataset: text("dataset"), sha256: text("sha256") };
    if content_hash([file.data()]) != note.sha256 {
        return Err(ParseError::new("content", "does not match its hash: the chunk is damaged"));
    }
    let vertices = file.f32("vertices", &[Any("c"), Any("n"), Exactly(3)])?;
    let (c, n) = (vertices.shape[0], vertices.shape[1]);
    let poses = file.f32("poses", &[Exactly(c), Any("k")])?;
    let mut shape = ChunkShape { controls: poses.shape[1], bones: 0, vertices: n };
    let mut skeletons = Vec::new();
    if file.contains("skeletons") {
        let array = file.f32("skeletons", &[Exactly(c), Any("J"), Exactly(12)])?;
        shape.bones = array.shape[1];
        skeletons = array.data;
    }
    if n == 0 {
        return Err(ParseError::new("array 'vertices'", "a pose without vertices"));
    }
    Ok((Chunk { shape, poses: poses.data, skeletons, vertices: vertices.data }, note))
}
