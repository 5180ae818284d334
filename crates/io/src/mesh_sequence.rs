//! Animated meshes as `.npz`, frame by frame: what other programs bake and what `convert` writes of a dataset.
//!
//! | array | shape | |
//! |---|---|---|
//! | `vertices` or `frames` | `[f,n,3]` | positions |
//! | `faces` or `polys` | `[p,3 or 4]` | −1 in the fourth corner makes a triangle |
//! | `rest` | `[n,3]` | optional: the rest pose; the first frame otherwise |
//! | `rate` | `[]` | optional: frames per second |
//! | `unit_cm` | `[]` | optional: centimetres in one unit of length |

use crate::Dim::{Any, Either, Exactly};
use crate::arrays::in_array;
use crate::blendshape_npz::conversion;
use crate::npz::NpzReader;
use crate::real::{faces, vectors};
use crate::{Conversion, ParseError, ReadError, read_bytes};
use std::path::Path;
use understudy_core::{Mesh, MeshParts, Vec3};

/// A mesh and its frames.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshSequence {
    /// Topology and rest pose, cm.
    pub mesh: Mesh,
    /// `[f][n]` cm; at least one.
    pub frames: Vec<Vec<Vec3>>,
    /// Frames a second, where the file says.
    pub rate: Option<f32>,
    /// What was done to the file's units.
    pub conversion: Conversion,
}

/// Reads a sequence; a file that names no unit is taken to be in centimetres, and the conversion says so.
pub fn read(path: &Path) -> Result<MeshSequence, ReadError> {
    parse(read_bytes(path)?).map_err(ReadError::content(path))
}

/// [`read`] on bytes.
pub fn parse(bytes: Vec<u8>) -> Result<MeshSequence, ParseError> {
    let npz = NpzReader::parse(bytes)?;
    let positions = one_of(&npz, ["vertices", "frames"])?;
    let polygons = one_of(&npz, ["faces", "polys"])?;
    npz.check_shapes(&[
        (positions, &[Any("f"), Any("n"), Exactly(3)]),
        ("rest", &[Any("n"), Exactly(3)]),
        (polygons, &[Any("p"), Either(3, 4)]),
        ("rate", &[]),
        ("unit_cm", &[]),
    ])?;
    let conversion = conversion(&npz, None)?;
    let array = npz.f32(positions, &[Any("f"), Any("n"), Exactly(3)])?;
    let (count, vertices) = (array.shape[0], array.shape[1]);
    if count == 0 || vertices == 0 {
        return Err(in_array(positions, format!("{count} frames of {vertices} vertices hold nothing")));
    }
    let frames: Vec<Vec<Vec3>> =
        array.data.chunks_exact(vertices * 3).map(|frame| vectors(frame, conversion.scale)).collect();
    let rest = match npz.contains("rest") {
        true => vectors(&npz.f32("rest", &[Exactly(vertices), Exactly(3)])?.data, conversion.scale),
        false => frames[0].clone(),
    };
    let finite = |frame: &Vec<Vec3>| frame.iter().all(|p| p.is_finite());
    if !finite(&rest) || !frames.iter().all(finite) {
        return Err(in_array("unit_cm", "makes positions that are not finite"));
    }
    let rate = match npz.contains("rate") {
        true => Some(npz.f32("rate", &[])?.data[0]),
        false => None,
    };
    if let Some(rate) = rate.filter(|rate| *rate <= 0.0) {
        return Err(in_array("rate", format!("{rate} frames per second")));
    }
    let corners = npz.i64(polygons, &[Any("p"), Either(3, 4)])?;
    let parts = MeshParts { positions: rest, faces: faces(polygons, &corners)?, ..MeshParts::default() };
    let mesh = parts.build().map_err(|error| in_array(polygons, error))?;
    Ok(MeshSequence { mesh, frames, rate, conversion })
}

/// The first of two names that the archive has.
fn one_of(npz: &NpzReader, names: [&'static str; 2]) -> Result<&'static str, ParseError> {
    let found = names.into_iter().find(|name| npz.contains(name));
    found.ok_or_else(|| ParseError::new("archive", format!("has neither '{}' nor '{}'", names[0], names[1])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npz::NpzWriter;

    fn archive(change: impl Fn(&mut NpzWriter)) -> Vec<u8> {
        let mut npz = NpzWriter::new();
        change(&mut npz);
        npz.finish().expect("valid arrays")
    }

    const TWO: [f32; 18] =
        [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0];

    #[test]
    fn both_spellings_are_read() {
        let plain = parse(archive(|npz| {
            npz.f32("frames", &[2, 3, 3], &TWO).i32("polys", &[1, 4], &[0, 1, 2, -1]);
        }))
        .expect("two frames");
        assert_eq!((plain.frames.len(), plain.rate, plain.mesh.faces().len()), (2, None, 1));
        assert_eq!(plain.mesh.positions(), plain.frames[0]);
        let full = parse(archive(|npz| {
            npz.f32("vertices", &[2, 3, 3], &TWO).i32("faces", &[1, 3], &[0, 1, 2]);
            npz.f32("rest", &[3, 3], &TWO[9..]).f32("rate", &[], &[24.0]).f32("unit_cm", &[], &[10.0]);
        }))
        .expect("two frames");
        assert_eq!((full.rate, full.frames[1][0]), (Some(24.0), Vec3::Z * 10.0));
        assert_eq!(full.mesh.positions(), full.frames[1]);
    }

    #[test]
    fn bad_archives_are_named() {
        let bad = |change: &dyn Fn(&mut NpzWriter), word: &str| {
            let error = parse(archive(change)).expect_err("not a sequence").to_string();
            assert!(error.contains(word), "{error}");
        };
        let face = |npz: &mut NpzWriter| {
            npz.i32("faces", &[1, 3], &[0, 1, 2]);
        };
        let still = |npz: &mut NpzWriter| {
            face(npz);
            npz.f32("frames", &[2, 3, 3], &TWO);
        };
        let positions = |npz: &mut NpzWriter, shape: [usize; 3], data: &[f32]| {
            face(npz);
            npz.f32("frames", &shape, data);
        };
        bad(&face, "'vertices'");
        bad(&|npz| positions(npz, [3, 2, 3], &TWO), "faces");
        bad(&|npz| positions(npz, [0, 3, 3], &[]), "nothing");
        bad(&|npz| positions(npz, [1, 3, 3], &[f32::NAN; 9]), "frames");
        let extra = |npz: &mut NpzWriter, name: &str, shape: &[usize], data: &[f32]| {
            still(npz);
            npz.f32(name, shape, data);
        };
        bad(&|npz| extra(npz, "rate", &[], &[-1.0]), "rate");
        bad(&|npz| extra(npz, "rest", &[2, 3], &TWO[..6]), "rest");
        bad(&|npz| extra(npz, "unit_cm", &[], &[0.0]), "unit_cm");
    }
}
