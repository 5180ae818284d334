//! What several kinds of twins write, read and check in the same way: faces, skin weights, the tree of bones.

use crate::container::{Array, Numbers, Opened};
use crate::{BoneHeader, TwinError};
use std::collections::BTreeMap;
use understudy_core::{Face, SkinWeights, Vec3};

/// The corners of all faces, four each.
pub fn write_faces(faces: &[Face]) -> Array {
    Array::integers(faces.iter().flat_map(|face| face.raw()))
}

/// The faces that a file has under that name; none where it has none.
pub fn read_faces(file: &Opened<'_>, name: &str) -> Result<Vec<Face>, TwinError> {
    if !file.contains(name) {
        return Ok(Vec::new());
    }
    let corners = file.integers(name)?;
    let (quads, rest) = corners.as_chunks::<4>();
    if !rest.is_empty() {
        let problem = format!("{} corners are no whole number of faces", corners.len());
        return Err(TwinError::Tensor { name: name.into(), problem });
    }
    let face = |[a, b, c, d]: &[u32; 4]| match *d {
        Face::NONE => Face::triangle(*a, *b, *c),
        _ => Face::quad(*a, *b, *c, *d),
    };
    Ok(quads.iter().map(face).collect())
}

/// Parts of one that skin weights may be rounded to: then they take two bytes each, in files and in memory.
pub const WEIGHT_UNITS: f32 = 32768.0;

/// Whether skin weights are whole numbers of [`WEIGHT_UNITS`].
pub fn are_whole(mut weights: impl Iterator<Item = f32>) -> bool {
    weights.all(|weight| (weight * WEIGHT_UNITS).fract() == 0.0)
}

/// Skin weights as `NAME.lengths`, `NAME.bones` and `NAME.weights`, the last in u16 where they are whole numbers of
/// [`WEIGHT_UNITS`].
pub fn write_skin(name: &str, skin: &SkinWeights) -> [(String, Array); 3] {
    // By bones in ascending order, as the packed twin has them: saved again, the bytes are the same.
    let rows: Vec<BTreeMap<usize, f32>> = (0..skin.vertex_count()).map(|v| merged(skin.row(v))).collect();
    let weights: Vec<f32> = rows.iter().flatten().map(|(_, weight)| *weight).collect();
    let numbers = match !weights.is_empty() && are_whole(weights.iter().copied()) {
        true => Array::integers(weights.iter().map(|weight| (weight * WEIGHT_UNITS) as u32)),
        false => Array::floats(&[weights.len()], weights),
    };
    [
        (format!("{name}.lengths"), Array::integers(rows.iter().map(|row| row.len() as u32))),
        (format!("{name}.bones"), Array::integers(rows.iter().flatten().map(|(bone, _)| *bone as u32))),
        (format!("{name}.weights"), numbers),
    ]
}

/// One weight per bone.
fn merged(row: impl Iterator<Item = (usize, f32)>) -> BTreeMap<usize, f32> {
    let mut out = BTreeMap::new();
    row.for_each(|(bone, weight)| *out.entry(bone).or_default() += weight);
    out
}

/// What [`write_skin`] wrote; `None` where there is nothing of that name.
pub fn read_skin(file: &Opened<'_>, name: &str, bones: usize) -> Result<Option<SkinWeights>, TwinError> {
    let [lengths, indices, weights] = ["lengths", "bones", "weights"].map(|part| format!("{name}.{part}"));
    if !file.contains(&lengths) {
        return Ok(None);
    }
    let (rows, bone_of) = (file.integers(&lengths)?, file.integers(&indices)?);
    let mut numbers = file.floats(&weights, None)?;
    if file.stored(&weights)? == Numbers::Whole {
        numbers.iter_mut().for_each(|number| *number /= WEIGHT_UNITS);
    }
    let whole: u64 = rows.iter().map(|l| u64::from(*l)).sum();
    if whole > u64::from(u32::MAX) || whole != bone_of.len() as u64 || bone_of.len() != numbers.len() {
        let problem = format!("rows of {whole} entries, {} bones, {} weights", bone_of.len(), numbers.len());
        return Err(TwinError::Tensor { name: lengths, problem });
    }
    let mut offsets = vec![0u32];
    for length in &rows {
        offsets.push(offsets[offsets.len() - 1] + length);
    }
    let bone = |bone: &u32| {
        let problem =
            || TwinError::Tensor { name: indices.clone(), problem: format!("bone {bone} is out of range") };
        u16::try_from(*bone).map_err(|_| problem())
    };
    let bone_of = bone_of.iter().map(bone).collect::<Result<Vec<u16>, TwinError>>()?;
    SkinWeights::from_compressed(offsets, bone_of, numbers, bones)
        .map(Some)
        .map_err(|error| TwinError::Tensor { name: weights, problem: error.to_string() })
}

/// Fails where an array of parts has another length than it should.
pub fn check_length(what: &str, got: usize, want: usize) -> Result<(), TwinError> {
    if got == want { Ok(()) } else { Err(TwinError::Count { what: what.into(), got, want }) }
}

/// Fails at the first entry that is not finite.
pub fn check_finite(what: &str, mut finite: impl Iterator<Item = bool>) -> Result<(), TwinError> {
    match finite.position(|ok| !ok) {
        Some(index) => Err(TwinError::NonFinite { what: what.into(), index }),
        None => Ok(()),
    }
}

/// Every corner is a vertex.
pub fn check_faces(faces: &[Face], vertices: usize) -> Result<(), TwinError> {
    for (face, corner) in
        faces.iter().enumerate().flat_map(|(f, face)| face.corners().iter().map(move |c| (f, *c)))
    {
        if corner as usize >= vertices {
            let what = format!("corner of face {face}");
            return Err(TwinError::Index { what, index: corner as usize, count: vertices });
        }
    }
    Ok(())
}

/// Every parent exists, and no bone is its own ancestor.
pub fn check_tree(bones: &[BoneHeader]) -> Result<(), TwinError> {
    for bone in 0..bones.len() {
        let (mut at, mut steps) = (bone, 0);
        while let Some(parent) = bones[at].parent {
            if parent >= bones.len() {
                let what = format!("parent of bone {at}");
                return Err(TwinError::Index { what, index: parent, count: bones.len() });
            }
            steps += 1;
            if steps > bones.len() {
                return Err(TwinError::Cycle { bone });
            }
            at = parent;
        }
    }
    Ok(())
}

/// Where the tasks of one evaluation write vertices. Whoever makes one sees to it that no two tasks write the same vertex.
#[derive(Clone, Copy)]
pub struct OutputPointer(pub *mut Vec3);

// SAFETY: see above; the borrow that it stands for outlives all tasks.
unsafe impl Send for OutputPointer {}
// SAFETY: as above.
unsafe impl Sync for OutputPointer {}
