//! Animated meshes frame by frame, and how they are kept in `.npz`: what other programs bake, what scanners see and
//! what `convert` writes of a dataset. Alembic caches ([`crate::alembic`]) become the same kind of scene. A vertex that a scanner did not see is NaN.
//!
//! | array | shape | |
//! |---|---|---|
//! | `vertices` or `frames` | `[f,n,3]`, or `[n,3]` for one frame | positions |
//! | `faces` or `polys` | `[p,3 or 4]` | optional; −1 in the fourth corner makes a triangle |
//! | `rest` | `[n,3]` | optional: the rest pose; the first frame otherwise |
//! | `rate` | `[]` | optional: frames per second |
//! | `unit_cm` | `[]` | optional: centimetres in one unit of length |

use crate::Dim::{Any, Either, Exactly};
use crate::alembic::AlembicCache;
use crate::arrays::in_array;
use crate::blendshape_npz::conversion;
use crate::faces::drop_repeats;
use crate::npz::NpzReader;
use crate::real::{faces, vectors};
use crate::{Conversion, ParseError, ReadError, read_bytes};
use std::path::Path;
use understudy_core::{Mesh, MeshParts, Vec3};

/// Where frames are: in memory, or in a file that is read frame by frame.
#[derive(Debug)]
pub enum Frames {
    /// `[f][n]` cm. NaN where a vertex is missing.
    Memory(Vec<Vec<Vec3>>),
    /// An Alembic cache.
    Alembic(Box<AlembicCache>),
}

impl Frames {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(frames) => frames.len(),
            Self::Alembic(cache) => cache.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A frame, `[n]` cm.
    ///
    /// # Panics
    /// When there is no such frame.
    pub fn read(&self, frame: usize) -> Result<Vec<Vec3>, ParseError> {
        let mut out = Vec::new();
        self.read_into(frame, &mut out)?;
        Ok(out)
    }

    /// [`Self::read`] into memory that is used again.
    ///
    /// # Panics
    /// When there is no such frame.
    pub fn read_into(&self, frame: usize, out: &mut Vec<Vec3>) -> Result<(), ParseError> {
        match self {
            Self::Memory(frames) => out.clone_from(&frames[frame]),
            Self::Alembic(cache) => cache.frame(frame, out)?,
        }
        Ok(())
    }
}

/// A mesh and its frames.
#[derive(Debug)]
pub struct MeshSequence {
    /// Topology and rest pose, cm, where the file has faces and a rest pose without gaps.
    pub mesh: Option<Mesh>,
    /// At least one.
    pub frames: Frames,
    /// Frames a second, where the file says.
    pub rate: Option<f32>,
    /// What was done to the file's units.
    pub conversion: Conversion,
    /// What was skipped or mended.
    pub warnings: Vec<String>,
}

impl MeshSequence {
    /// Frame and vertex of the first that is missing.
    pub fn first_gap(&self) -> Option<(usize, usize)> {
        let Frames::Memory(frames) = &self.frames else { return None };
        let gap = |frame: &Vec<Vec3>| frame.iter().position(|vertex| vertex.is_nan());
        frames.iter().enumerate().find_map(|(number, frame)| Some((number, gap(frame)?)))
    }
}

impl From<AlembicCache> for MeshSequence {
    fn from(cache: AlembicCache) -> Self {
        Self {
            mesh: Some(cache.mesh().clone()),
            rate: cache.rate(),
            conversion: cache.conversion().clone(),
            warnings: cache.warnings().to_vec(),
            frames: Frames::Alembic(Box::new(cache)),
        }
    }
}

/// Whether an archive holds frames of a mesh.
pub(crate) fn holds_frames(npz: &NpzReader) -> bool {
    ["vertices", "frames"].iter().any(|name| npz.contains(name))
}

/// Reads a sequence; a file that names no unit is taken to be in centimetres, and the conversion says so.
pub fn read(path: &Path) -> Result<MeshSequence, ReadError> {
    parse(read_bytes(path)?).map_err(ReadError::content(path))
}

/// [`read`] on bytes.
pub fn parse(bytes: Vec<u8>) -> Result<MeshSequence, ParseError> {
    from_archive(&NpzReader::parse(bytes)?)
}

/// [`read`] on an archive that is open already.
pub(crate) fn from_archive(npz: &NpzReader) -> Result<MeshSequence, ParseError> {
    let found = |names: [&'static str; 2]| names.into_iter().find(|name| npz.contains(name));
    let positions = found(["vertices", "frames"])
        .ok_or_else(|| ParseError::new("archive", "has neither 'vertices' nor 'frames'"))?;
    let polygons = found(["faces", "polys"]);
    let one = npz.shape(positions).is_some_and(|shape| shape.len() == 2);
    let shape = &[Any("f"), Any("n"), Exactly(3)][usize::from(one)..];
    npz.check_shapes(&[
        (positions, shape),
        ("rest", &[Any("n"), Exactly(3)]),
        (polygons.unwrap_or("faces"), &[Any("p"), Either(3, 4)]),
        ("rate", &[]),
        ("unit_cm", &[]),
    ])?;
    let conversion = conversion(npz, None)?;
    let array = npz.f32_with_gaps(positions, shape)?;
    let (count, vertices) = if one { (1, array.shape[0]) } else { (array.shape[0], array.shape[1]) };
    if count == 0 || vertices == 0 {
        return Err(in_array(positions, format!("{count} frames of {vertices} vertices hold nothing")));
    }
    let frames: Vec<Vec<Vec3>> =
        array.data.chunks_exact(vertices * 3).map(|frame| vectors(frame, conversion.scale)).collect();
    let rest = match npz.contains("rest") {
        true => vectors(&npz.f32("rest", &[Exactly(vertices), Exactly(3)])?.data, conversion.scale),
        false => frames[0].clone(),
    };
    let bounded = |frame: &Vec<Vec3>| frame.iter().all(|p| p.to_array().iter().all(|v| !v.is_infinite()));
    if !bounded(&rest) || !frames.iter().all(bounded) {
        return Err(in_array("unit_cm", "makes positions that are not finite"));
    }
    let rate = match npz.contains("rate") {
        true => Some(npz.f32("rate", &[])?.data[0]),
        false => None,
    };
    if let Some(rate) = rate.filter(|rate| *rate <= 0.0) {
        return Err(in_array("rate", format!("{rate} frames per second")));
    }
    let mut warnings = Vec::new();
    let mut mesh = None;
    if let Some(polygons) = polygons.filter(|_| rest.iter().all(|vertex| vertex.is_finite())) {
        let corners = npz.i64(polygons, &[Any("p"), Either(3, 4)])?;
        let mut parts =
            MeshParts { positions: rest, faces: faces(polygons, &corners)?, ..MeshParts::default() };
        warnings.extend(drop_repeats(&mut parts));
        mesh = Some(parts.build().map_err(|error| in_array(polygons, error))?);
    }
    Ok(MeshSequence { mesh, frames: Frames::Memory(frames), rate, conversion, warnings })
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
        let mesh = plain.mesh.expect("it has faces");
        assert_eq!((plain.frames.len(), plain.rate, mesh.faces().len()), (2, None, 1));
        assert_eq!(mesh.positions(), plain.frames.read(0).expect("in memory"));
        let full = parse(archive(|npz| {
            npz.f32("vertices", &[2, 3, 3], &TWO).i32("faces", &[1, 3], &[0, 1, 2]);
            npz.f32("rest", &[3, 3], &TWO[9..]).f32("rate", &[], &[24.0]).f32("unit_cm", &[], &[10.0]);
        }))
        .expect("two frames");
        assert_eq!((full.rate, full.frames.read(1).expect("in memory")[0]), (Some(24.0), Vec3::Z * 10.0));
        assert_eq!(full.mesh.expect("it has faces").positions(), full.frames.read(1).expect("in memory"));
    }

    #[test]
    fn scans_have_gaps_and_need_no_faces() {
        let mut seen = TWO;
        seen[12..15].fill(f32::NAN);
        let take = parse(archive(|npz| {
            npz.f32("vertices", &[2, 3, 3], &seen);
        }))
        .expect("two frames");
        assert_eq!((take.mesh.is_none(), take.first_gap()), (true, Some((1, 1))));
        let one = parse(archive(|npz| {
            npz.f32("vertices", &[3, 3], &TWO[..9]).i32("faces", &[2, 3], &[0, 1, 2, 0, 0, 1]);
        }))
        .expect("one frame");
        assert_eq!((one.frames.len(), one.first_gap()), (1, None));
        assert_eq!(one.warnings, ["1 face that names a vertex twice is dropped"]);
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
        bad(&|npz| positions(npz, [1, 3, 3], &[f32::INFINITY; 9]), "frames");
        let extra = |npz: &mut NpzWriter, name: &str, shape: &[usize], data: &[f32]| {
            still(npz);
            npz.f32(name, shape, data);
        };
        bad(&|npz| extra(npz, "rate", &[], &[-1.0]), "rate");
        bad(&|npz| extra(npz, "rest", &[2, 3], &TWO[..6]), "rest");
        bad(&|npz| extra(npz, "unit_cm", &[], &[0.0]), "unit_cm");
    }
}
