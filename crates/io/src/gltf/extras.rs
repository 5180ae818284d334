//! What our own writer notes beside a mesh so that it reads back as it was: the original vertex of every
//! split vertex, quads, segments and correctives. Files from elsewhere have none of it; notes that do not
//! fit their mesh are ignored with a warning.

use super::accessor::Accessors;
use super::geometry::attribute;
use crate::ParseError;
use ::gltf::json::mesh::{Primitive, Semantic};
use glam::{Vec2, Vec3};
use serde::{Deserialize, Serialize};
use understudy_core::Face;

/// Attribute with the original vertex of each stored vertex, exact in f32 up to 2²⁴.
pub(super) const VERTEX: &str = "VERTEX";
/// Attribute with the original texture coordinate of each stored vertex.
pub(super) const TEXTURE: &str = "UV";
/// Attribute with the segment of each stored vertex.
pub(super) const SEGMENT: &str = "SEGMENT";

/// `extras` of a mesh: the target names that many tools know, and our notes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct MeshExtras {
    #[serde(default, rename = "targetNames", skip_serializing_if = "Vec::is_empty")]
    pub target_names: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub understudy: Option<Notes>,
}

/// Our notes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Notes {
    /// Names of segments, in the order that the attribute `_SEGMENT` counts.
    #[serde(default)]
    pub segments: Vec<String>,
    /// Runs of `[corners, faces]`: triangles and quads in the order of the triangles.
    #[serde(default)]
    pub faces: Vec<[u64; 2]>,
    /// Morph targets that are correctives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub correctives: Vec<CorrectiveNote>,
}

/// A morph target whose weight is the product of the weights of others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CorrectiveNote {
    pub target: usize,
    pub shapes: Vec<usize>,
}

/// How the stored vertices of a primitive become vertices of the merged mesh.
pub(super) struct PrimitivePlan {
    /// For every vertex of the part the stored vertex it is taken from.
    pub picks: Vec<u32>,
    /// For every stored vertex its vertex in the part.
    pub welded: Vec<u32>,
    /// Segment names and the segment of every vertex of the part.
    pub segments: Option<(Vec<String>, Vec<u32>)>,
    /// Whether the vertices were welded by our own notes.
    pub ours: bool,
    texture: Option<Vec<u32>>,
    runs: Vec<[u64; 2]>,
}

impl PrimitivePlan {
    pub fn read(
        extras: &MeshExtras,
        primitive: &Primitive,
        place: &str,
        positions: &[Vec3],
        accessors: &Accessors<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, ParseError> {
        accessors.charge(place, 2 * positions.len() as u64)?;
        let mut column = |name: &str| -> Result<Option<Vec<u32>>, ParseError> {
            let Some(index) = attribute(primitive, Semantic::Extras(name.into())) else { return Ok(None) };
            let whole = accessors.floats(index, 1).ok().and_then(|values| whole_numbers(&values));
            let whole = whole.filter(|values| values.len() == positions.len());
            if whole.is_none() {
                warnings.push(format!("{place}: _{name} is not a whole number a vertex and is ignored"));
            }
            Ok(whole)
        };
        let (vertex, texture, segment) = (column(VERTEX)?, column(TEXTURE)?, column(SEGMENT)?);
        let welded = vertex.and_then(|vertex| {
            let picks = weld(&vertex, positions);
            if picks.is_none() {
                warnings.push(format!("{place}: _{VERTEX} does not fit the positions and is ignored"));
            }
            Some((vertex, picks?))
        });
        let Some((vertex, picks)) = welded else {
            let own: Vec<u32> = (0..positions.len() as u32).collect();
            return Ok(Self {
                picks: own.clone(),
                welded: own,
                segments: None,
                ours: false,
                texture: None,
                runs: Vec::new(),
            });
        };
        let notes = extras.understudy.clone().unwrap_or_default();
        let of_vertex: Vec<u32> = match &segment {
            Some(segment) => picks.iter().map(|&stored| segment[stored as usize]).collect(),
            None => vec![0; picks.len()],
        };
        let fits = of_vertex.iter().all(|s| (*s as usize) < notes.segments.len());
        let segments = fits.then_some((notes.segments, of_vertex));
        Ok(Self { picks, welded: vertex, segments, ours: true, texture, runs: notes.faces })
    }

    /// Triangles of stored vertices, joined to quads where the notes say so.
    pub fn faces(&self, triangles: &[[u32; 3]]) -> Vec<Face> {
        let plain = || triangles.iter().map(|t| Face::triangle(t[0], t[1], t[2])).collect();
        let mut faces = Vec::with_capacity(triangles.len());
        let mut rest = triangles;
        for &[corners, count] in &self.runs {
            let step = if corners == 4 { 2 } else { 1 };
            let Some(run) = count.checked_mul(step).and_then(|n| rest.get(..usize::try_from(n).ok()?)) else {
                return plain();
            };
            rest = &rest[run.len()..];
            for group in run.chunks_exact(step as usize) {
                match *group {
                    [[a, b, c]] => faces.push(Face::triangle(a, b, c)),
                    [[a, b, c], [a2, c2, d]] if (a, c) == (a2, c2) => faces.push(Face::quad(a, b, c, d)),
                    _ => return plain(),
                }
            }
        }
        if rest.is_empty() { faces } else { plain() }
    }

    /// The table of texture coordinates and the entry of every stored vertex.
    pub fn texture_table(&self, texture: &[Vec2]) -> (Vec<Vec2>, Vec<u32>) {
        let own = || (texture.to_vec(), (0..texture.len() as u32).collect());
        let Some(index) = &self.texture else { return own() };
        let count = index.iter().max().map_or(0, |last| *last as usize + 1);
        if count > 4 * texture.len() {
            return own();
        }
        let mut table = vec![Vec2::ZERO; count];
        for (&entry, &uv) in index.iter().zip(texture) {
            table[entry as usize] = uv;
        }
        (table, index.clone())
    }
}

fn whole_numbers(values: &[f32]) -> Option<Vec<u32>> {
    let whole = |v: &f32| (*v >= 0.0 && *v < 16_777_216.0 && v.fract() == 0.0).then_some(*v as u32);
    values.iter().map(whole).collect()
}

/// The first stored vertex of every original one; `None` when some original has none, or when vertices
/// that were one have moved apart.
fn weld(vertex: &[u32], positions: &[Vec3]) -> Option<Vec<u32>> {
    let count = vertex.iter().max().map_or(0, |last| *last as usize + 1);
    if count > vertex.len() {
        return None;
    }
    let mut picks = vec![u32::MAX; count];
    for (stored, &original) in (0u32..).zip(vertex) {
        let pick = &mut picks[original as usize];
        if *pick == u32::MAX {
            *pick = stored;
        } else if positions[*pick as usize] != positions[stored as usize] {
            return None;
        }
    }
    picks.iter().all(|pick| *pick != u32::MAX).then_some(picks)
}
