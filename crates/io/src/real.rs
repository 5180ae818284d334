//! Real characters from public data sets as core types: the MakeHuman base body and the ICT face.
//! The files are plain `.npz` archives that are not part of this project; a loader here knows one
//! layout each, its unit and its order. Film rigs are built on these in `understudy-characters`.

mod human;
mod ict;

pub use human::{human, human_with, parse_human};
pub use ict::{ict, ict_identities, parse_ict, parse_ict_identities};

use crate::{Array, Conversion, ParseError};
use understudy_core::{BlendshapeRig, Face, Mesh, Shape, Skeleton, SkinWeights, SparseDeltas, Vec3};

/// A skinned body with face shapes.
#[derive(Debug, Clone)]
pub struct RealBody {
    /// Rest mesh in cm, Y-up, facing +Z; one segment a group of the file.
    pub mesh: Mesh,
    /// Bones with Y along the bone; see [`human`].
    pub skeleton: Skeleton,
    /// Up to eight influences per vertex, each row summing to one.
    pub weights: SkinWeights,
    /// ARKit shapes as offsets from the rest mesh.
    pub shapes: BlendshapeRig,
    /// Length of every bone from head to tail, cm, `[J]`.
    pub bone_lengths: Vec<f32>,
    /// What was done to the file's units.
    pub conversion: Conversion,
}

/// A head with expressions, in parts.
#[derive(Debug, Clone)]
pub struct RealFace {
    /// Neutral mesh in cm, Y-up, facing +Z, with UVs; one segment a part, every tooth its own.
    pub mesh: Mesh,
    /// Expressions as offsets from the neutral.
    pub shapes: BlendshapeRig,
    /// The vertices of the 68 Multi-PIE landmarks, in their usual order.
    pub landmarks: [u32; 68],
    /// One name a material.
    pub materials: Vec<String>,
    /// The material of every face.
    pub face_materials: Vec<u32>,
    /// What was done to the file's units.
    pub conversion: Conversion,
}

pub(crate) fn vectors(data: &[f32], scale: f32) -> Vec<Vec3> {
    data.chunks_exact(3).map(|v| Vec3::new(v[0], v[1], v[2]) * scale).collect()
}

/// Rows of three or four corners; −1 in the fourth makes a triangle.
pub(crate) fn faces(name: &str, array: &Array<i64>) -> Result<Vec<Face>, ParseError> {
    let row = |(face, corners): (usize, &[i64])| {
        let corner = |value: i64| {
            u32::try_from(value).ok().filter(|corner| *corner != Face::NONE).ok_or_else(|| {
                ParseError::new(format!("array '{name}'"), format!("face {face} has a corner {value}"))
            })
        };
        let (a, b, c) = (corner(corners[0])?, corner(corners[1])?, corner(corners[2])?);
        match corners.get(3) {
            None | Some(-1) => Ok(Face::triangle(a, b, c)),
            Some(&d) => Ok(Face::quad(a, b, c, corner(d)?)),
        }
    };
    let width = array.shape.get(1).copied().unwrap_or(0).max(1);
    array.data.chunks_exact(width).enumerate().map(row).collect()
}

/// Dense deltas `[m, n, 3]` of which the vertices in `kept` stay, in that order.
fn shapes(names: Vec<String>, deltas: &[f32], n: usize, scale: f32, kept: &[u32]) -> Vec<Shape> {
    let dense = |shape: usize| {
        let block = &deltas[shape * n * 3..(shape + 1) * n * 3];
        let delta = |vertex: u32| {
            let at = vertex as usize * 3;
            Vec3::new(block[at], block[at + 1], block[at + 2]) * scale
        };
        kept.iter().map(|vertex| delta(*vertex)).collect::<Vec<_>>()
    };
    let shape = |(index, name)| Shape { name, deltas: SparseDeltas::from_dense(&dense(index), 0.0) };
    names.into_iter().enumerate().map(shape).collect()
}
