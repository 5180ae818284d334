//! The same twin for a few of its vertices: what is dragged, tracked or followed need not cost a whole face.

use super::Twin;
use crate::TwinError;
#[cfg(any(feature = "diff", feature = "skin"))]
use understudy_core::SkinWeights;
#[cfg(feature = "face")]
use understudy_core::{Face, MeshParts, Segments};

impl Twin {
    /// A twin of these vertices alone, in their order: the same places and derivatives, at the cost of what moves them. It
    /// may have a few vertices more behind them, which they depend on. Not to be saved: its topology is no mesh's.
    ///
    /// # Errors
    /// When a vertex does not exist or is named twice, and for bodies, which are posed by bones.
    pub fn of_vertices(&self, vertices: &[u32]) -> Result<Self, TwinError> {
        let count = self.vertex_count();
        let mut seen = vec![false; count];
        for &vertex in vertices {
            let index = vertex as usize;
            let what = || "a vertex of a part".to_owned();
            let slot = seen.get_mut(index).ok_or_else(|| TwinError::Index { what: what(), index, count })?;
            if std::mem::replace(slot, true) {
                return Err(TwinError::Cover { vertex: index, what: "two points".into() });
            }
        }
        match self {
            #[cfg(feature = "body")]
            Self::Body(_) => {
                Err(TwinError::Kind("a body is posed by bones: it has no part that follows controls".into()))
            }
            #[cfg(feature = "diff")]
            Self::Diff(twin) => diff(twin, vertices),
            #[cfg(feature = "face")]
            Self::Face(twin) => face(twin, vertices),
            #[cfg(feature = "skin")]
            Self::Skin(twin) => skin(twin, vertices),
        }
    }
}

/// For every vertex its place in a list.
fn places(vertices: &[u32], count: usize) -> Vec<Option<u32>> {
    let mut places = vec![None; count];
    vertices.iter().enumerate().for_each(|(place, vertex)| places[*vertex as usize] = Some(place as u32));
    places
}

/// Of a list those that are kept, by their new numbers, and their places in the list.
fn kept(list: &[u32], places: &[Option<u32>]) -> (Vec<u32>, Vec<usize>) {
    list.iter().enumerate().filter_map(|(place, v)| Some((places[*v as usize]?, place))).unzip()
}

#[cfg(feature = "face")]
fn face(twin: &super::face::FaceTwin, wanted: &[u32]) -> Result<Twin, TwinError> {
    let mut parts = twin.parts();
    let count = parts.mesh.vertex_count();
    let mut vertices = wanted.to_vec();
    let add = |vertex: u32, vertices: &mut Vec<u32>| {
        if !vertices.contains(&vertex) {
            vertices.push(vertex);
        }
    };
    for segment in &parts.rigid {
        if segment.vertices.iter().any(|vertex| wanted.contains(vertex)) {
            segment.follows.iter().for_each(|vertex| add(*vertex, &mut vertices));
        }
    }
    // A mesh has a face, and a face three corners.
    (0..count as u32).take(3).for_each(|vertex| {
        if vertices.len() < 3 {
            add(vertex, &mut vertices);
        }
    });
    let places = places(&vertices, count);
    for net in &mut parts.nets {
        let (own, from) = kept(&net.vertices, &places);
        if let Some(map) = &mut net.map {
            map.coordinates = from.iter().map(|place| map.coordinates[*place]).collect();
        } else if let Some(last) = net.dense.last_mut() {
            let columns = last.weights.len() / last.bias.len().max(1);
            let rows: Vec<usize> = from.iter().flat_map(|place| 3 * place..3 * place + 3).collect();
            last.weights = rows
                .iter()
                .flat_map(|row| &last.weights[row * columns..(row + 1) * columns])
                .copied()
                .collect();
            last.bias = rows.iter().map(|row| last.bias[*row]).collect();
        }
        net.vertices = own;
    }
    parts.nets.retain(|net| !net.vertices.is_empty());
    for body in &mut parts.bodies {
        body.vertices = kept(&body.vertices, &places).0;
    }
    parts.bodies.retain(|body| !body.vertices.is_empty());
    for segment in &mut parts.rigid {
        segment.vertices = kept(&segment.vertices, &places).0;
        segment.follows = kept(&segment.follows, &places).0;
    }
    parts.rigid.retain(|segment| !segment.vertices.is_empty());
    let mesh = MeshParts {
        positions: vertices.iter().map(|vertex| parts.mesh.positions()[*vertex as usize]).collect(),
        faces: vec![Face::triangle(0, 1, 2)],
        segments: Segments { names: vec!["part".into()], of_vertex: vec![0; vertices.len()] },
        ..MeshParts::default()
    };
    let part = |error: understudy_core::MeshError| TwinError::Part {
        what: "mesh".into(),
        problem: error.to_string(),
    };
    parts.mesh = mesh.build().map_err(part)?;
    Ok(super::face::FaceTwin::new(parts, twin.precision())?.into())
}

#[cfg(feature = "skin")]
fn skin(twin: &super::skin::SkinTwin, vertices: &[u32]) -> Result<Twin, TwinError> {
    let mut parts = twin.parts();
    let components = parts.component_count();
    let rows = vertices.iter().map(|vertex| *vertex as usize);
    parts.components = rows
        .clone()
        .flat_map(|v| &parts.components[3 * v * components..3 * (v + 1) * components])
        .copied()
        .collect();
    parts.weights = weights_of(&parts.weights, vertices)?;
    parts.rest_vertices = rows.map(|vertex| parts.rest_vertices[vertex]).collect();
    parts.faces.clear();
    Ok(super::skin::SkinTwin::new(parts, twin.precision())?.into())
}

#[cfg(feature = "diff")]
fn diff(twin: &super::diff::DiffTwin, vertices: &[u32]) -> Result<Twin, TwinError> {
    use super::diff::BLOCK_VERTICES;
    let mut parts = twin.parts();
    let rank = twin.rank();
    // Where each run of vertices begins in the basis and in the mixes.
    let ranks: Vec<usize> = (0..parts.places.len().div_ceil(BLOCK_VERTICES))
        .map(|block| parts.block_ranks.get(block).map_or(rank, |own| *own as usize))
        .collect();
    let starts = |size: &dyn Fn(usize) -> usize| -> Vec<usize> {
        ranks
            .iter()
            .enumerate()
            .scan(0, |sum, (block, _)| {
                let start = *sum;
                *sum += size(block);
                Some(start)
            })
            .collect()
    };
    let in_block = |block: usize| BLOCK_VERTICES.min(parts.places.len() - block * BLOCK_VERTICES);
    let basis_starts = starts(&|block| 3 * in_block(block) * ranks[block]);
    let mix_starts = starts(&|block| ranks[block] * rank);
    let mut basis = Vec::with_capacity(3 * vertices.len() * rank);
    for vertex in vertices.iter().map(|vertex| *vertex as usize) {
        let (block, own) = (vertex / BLOCK_VERTICES, ranks[vertex / BLOCK_VERTICES]);
        for axis in 0..3 {
            let first = basis_starts[block] + (3 * (vertex % BLOCK_VERTICES) + axis) * own;
            let row = &parts.basis[first..first + own];
            if parts.block_ranks.is_empty() {
                basis.extend_from_slice(row);
                continue;
            }
            // Few vertices are cheaper decoded straight from the coefficients of the whole.
            let mut whole = vec![0.0; rank];
            for (weight, mix) in row.iter().zip(parts.mixes[mix_starts[block]..].chunks_exact(rank)) {
                whole.iter_mut().zip(mix).for_each(|(sum, m)| *sum += weight * m);
            }
            basis.extend(whole);
        }
    }
    parts.basis = basis;
    (parts.block_ranks, parts.mixes) = (Vec::new(), Vec::new());
    parts.places = vertices.iter().map(|vertex| parts.places[*vertex as usize]).collect();
    if let Some(skin) = &mut parts.skin {
        skin.weights = weights_of(&skin.weights, vertices)?;
    }
    // Which vertex an anchor is matters to learning alone.
    parts.anchors.iter_mut().for_each(|anchor| anchor.vertex = 0);
    parts.faces.clear();
    Ok(super::diff::DiffTwin::new(parts, twin.precision())?.into())
}

#[cfg(any(feature = "diff", feature = "skin"))]
fn weights_of(weights: &SkinWeights, vertices: &[u32]) -> Result<SkinWeights, TwinError> {
    let row = |vertex: &u32| weights.row(*vertex as usize).map(|(bone, w)| (bone as u16, w)).collect();
    let rows: Vec<Vec<(u16, f32)>> = vertices.iter().map(row).collect();
    SkinWeights::from_rows(&rows, weights.bone_count())
        .map_err(|error| TwinError::Part { what: "skin weights".into(), problem: error.to_string() })
}
