//! Blendshape rigs as `.npz`, the plain format for exchange with Python and other programs:
//!
//! | array | shape | |
//! |---|---|---|
//! | `neutral` | `[n,3]` | positions |
//! | `faces` | `[f,3 or 4]` | −1 in the fourth corner makes a triangle |
//! | `names` | `[m]` | strings |
//! | `deltas` | `[m,n,3]` | offsets from the neutral |
//! | `corrective_k_index`, `corrective_k_deltas` | `[c,k]`, `[c,n,3]` | optional, for k = 2, 3, 4 |
//! | `uv`, `face_uv` | `[t,2]`, `[f,3 or 4]` | optional, together |
//! | `segment_names`, `segments` | `[s]`, `[n]` | optional, together |
//! | `unit_cm` | `[]` | optional: centimetres in one unit of length |

use crate::Dim::{Any, Either, Exactly};
use crate::arrays::in_array;
use crate::faces::drop_repeats;
use crate::npz::{NpzReader, NpzWriter};
use crate::real::faces;
use crate::{Conversion, ParseError, ReadError, WriteError, read_bytes, write_atomic};
use std::path::Path;
use understudy_core::{
    BlendshapeError, BlendshapeRig, Corrective, Face, Mesh, MeshError, MeshParts, Segments, Shape,
    SparseDeltas, Vec2, Vec3,
};

const LEVELS: std::ops::RangeInclusive<usize> = 2..=4;

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct BlendshapeFile {
    /// The neutral mesh.
    pub mesh: Mesh,
    /// Shapes and correctives on it.
    pub rig: BlendshapeRig,
    /// What was done to the file's units.
    pub conversion: Conversion,
    /// What was skipped or mended.
    pub warnings: Vec<String>,
}

/// Reads a rig. `cm_per_unit` overrides what the file says; a file that says nothing is taken to be in
/// centimetres, and the conversion says so.
pub fn read(path: &Path, cm_per_unit: Option<f32>) -> Result<BlendshapeFile, ReadError> {
    parse(read_bytes(path)?, cm_per_unit).map_err(ReadError::content(path))
}

/// [`read`] on bytes.
pub fn parse(bytes: Vec<u8>, cm_per_unit: Option<f32>) -> Result<BlendshapeFile, ParseError> {
    from_archive(&NpzReader::parse(bytes)?, cm_per_unit)
}

/// [`read`] on an archive that is open already.
pub(crate) fn from_archive(npz: &NpzReader, cm_per_unit: Option<f32>) -> Result<BlendshapeFile, ParseError> {
    check_headers(npz)?;
    let conversion = conversion(npz, cm_per_unit)?;
    let scale = conversion.scale;
    let neutral = npz.f32("neutral", &[Any("n"), Exactly(3)])?;
    let n = neutral.shape[0];
    let names = npz.strings("names", &[Any("m")])?.data;
    let positions = vectors(&neutral.data, scale);

    let deltas = npz.f32("deltas", &[Exactly(names.len()), Exactly(n), Exactly(3)])?.data;
    let shapes = names.into_iter().zip(blocks(&deltas, n, scale));
    let shapes: Vec<Shape> = shapes.map(|(name, deltas)| Shape { name, deltas }).collect();
    let mut correctives = Vec::new();
    for level in LEVELS {
        read_correctives(npz, level, n, scale, &mut correctives)?;
    }
    let rig = BlendshapeRig::new(positions.clone(), shapes, correctives)
        .map_err(|error| in_array(array_of_shapes(&error), error))?;

    let face_rows = npz.i64("faces", &[Any("f"), Either(3, 4)])?;
    let mut parts = MeshParts { positions, faces: faces("faces", &face_rows)?, ..MeshParts::default() };
    if npz.contains("uv") || npz.contains("face_uv") {
        let uv = npz.f32("uv", &[Any("t"), Exactly(2)])?.data;
        let corners = npz.i64("face_uv", &[Exactly(face_rows.shape[0]), Exactly(face_rows.shape[1])])?;
        parts.uvs = uv.chunks_exact(2).map(|uv| Vec2::new(uv[0], uv[1])).collect();
        parts.face_uvs = faces("face_uv", &corners)?;
        for (index, (face, uv)) in parts.faces.iter().zip(&parts.face_uvs).enumerate() {
            if face.corner_count() != uv.corner_count() {
                return Err(in_array(
                    "face_uv",
                    format!("face {index} has another number of corners than in 'faces'"),
                ));
            }
        }
    }
    if npz.contains("segments") || npz.contains("segment_names") {
        parts.segments = Segments {
            names: npz.strings("segment_names", &[Any("s")])?.data,
            of_vertex: npz.u32("segments", &[Exactly(n)])?.data,
        };
    }
    let warnings = drop_repeats(&mut parts).into_iter().collect();
    let mesh = parts.build().map_err(|error| in_array(array_of_mesh(&error), error))?;
    Ok(BlendshapeFile { mesh, rig, conversion, warnings })
}

/// All shapes fit together: nothing is unpacked for a file that is not a rig.
fn check_headers(npz: &NpzReader) -> Result<(), ParseError> {
    if let Some(missing) =
        ["neutral", "faces", "names", "deltas"].into_iter().find(|name| !npz.contains(name))
    {
        return Err(in_array(missing, "is missing"));
    }
    let offsets = [Any("m"), Any("n"), Exactly(3)];
    npz.check_shapes(&[
        ("names", &offsets[..1]),
        ("neutral", &offsets[1..]),
        ("faces", &[Any("f"), Either(3, 4)]),
        ("deltas", &offsets),
        ("face_uv", &[Any("f"), Either(3, 4)]),
        ("segments", &[Any("n")]),
    ])?;
    for level in LEVELS {
        let (index, deltas) = corrective_names(level);
        let shape = [Any("c"), Any("n"), Exactly(3)];
        npz.check_shapes(&[
            ("neutral", &offsets[1..]),
            (&index, &[Any("c"), Exactly(level)]),
            (&deltas, &shape),
        ])?;
    }
    Ok(())
}

/// The array that a problem with the shapes comes from.
fn array_of_shapes(error: &BlendshapeError) -> &'static str {
    match error {
        BlendshapeError::DuplicateName { .. } => "names",
        BlendshapeError::Corrective { shapes, .. } => match shapes.len() {
            2 => "corrective_2_index",
            3 => "corrective_3_index",
            _ => "corrective_4_index",
        },
        BlendshapeError::Vertex { .. } | BlendshapeError::NonFinite { .. } => "deltas",
    }
}

/// The array that a problem with the mesh comes from.
fn array_of_mesh(error: &MeshError) -> &'static str {
    match error {
        MeshError::NonFinite { .. } | MeshError::PositionCount { .. } => "neutral",
        MeshError::NonFiniteUv { .. } => "uv",
        MeshError::UvIndex { .. } | MeshError::UvFaces { .. } => "face_uv",
        MeshError::SegmentCount { .. } | MeshError::SegmentIndex { .. } => "segments",
        _ => "faces",
    }
}

/// The unit of an archive: given, or what its `unit_cm` says, or centimetres.
pub(crate) fn conversion(npz: &NpzReader, given: Option<f32>) -> Result<Conversion, ParseError> {
    let (scale, reason) = match given {
        Some(scale) => (scale, "given by the caller"),
        None if npz.contains("unit_cm") => {
            (npz.f32("unit_cm", &[])?.data[0], "the file says so in 'unit_cm'")
        }
        None => (1.0, "the file names no unit: centimetres assumed"),
    };
    if !(scale.is_finite() && scale > 0.0) {
        return Err(in_array("unit_cm", format!("{scale} is not a unit of length")));
    }
    Ok(Conversion::scaled(scale, reason))
}

fn vectors(data: &[f32], scale: f32) -> Vec<Vec3> {
    data.chunks_exact(3).map(|v| Vec3::new(v[0], v[1], v[2]) * scale).collect()
}

/// `[m,n,3]` as m sparse offsets.
fn blocks(data: &[f32], n: usize, scale: f32) -> impl Iterator<Item = SparseDeltas> {
    data.chunks_exact((n * 3).max(1)).map(move |block| SparseDeltas::from_dense(&vectors(block, scale), 0.0))
}

fn read_correctives(
    npz: &NpzReader,
    level: usize,
    n: usize,
    scale: f32,
    out: &mut Vec<Corrective>,
) -> Result<(), ParseError> {
    let (index_name, deltas_name) = corrective_names(level);
    if !npz.contains(&index_name) && !npz.contains(&deltas_name) {
        return Ok(());
    }
    let index = npz.u32(&index_name, &[Any("c"), Exactly(level)])?;
    let deltas = npz.f32(&deltas_name, &[Exactly(index.shape[0]), Exactly(n), Exactly(3)])?.data;
    let rows = index.data.chunks_exact(level).map(<[u32]>::to_vec);
    out.extend(rows.zip(blocks(&deltas, n, scale)).map(|(shapes, deltas)| Corrective { shapes, deltas }));
    Ok(())
}

fn corrective_names(level: usize) -> (String, String) {
    (format!("corrective_{level}_index"), format!("corrective_{level}_deltas"))
}

/// The bytes of a rig, in centimetres.
pub fn to_bytes(mesh: &Mesh, rig: &BlendshapeRig) -> Result<Vec<u8>, String> {
    let n = mesh.vertex_count();
    if rig.neutral().len() != n {
        return Err(format!("the rig has {} vertices, the mesh {n}", rig.neutral().len()));
    }
    if let Some(corrective) = rig.correctives().iter().find(|c| !LEVELS.contains(&c.shapes.len())) {
        return Err(format!("a corrective of {} shapes: the format has 2 to 4", corrective.shapes.len()));
    }
    let mut npz = NpzWriter::new();
    npz.f32("unit_cm", &[], &[1.0]).f32("neutral", &[n, 3], &flat(rig.neutral()));
    let quads = mesh.faces().iter().any(|face| face.corner_count() == 4);
    let width = if quads { 4 } else { 3 };
    npz.i32("faces", &[mesh.faces().len(), width], &corners(mesh.faces(), mesh.faces(), width)?);
    if mesh.has_uvs() {
        let uv: Vec<f32> = mesh.uvs().iter().flat_map(|uv| [uv.x, uv.y]).collect();
        npz.f32("uv", &[mesh.uvs().len(), 2], &uv);
        npz.i32("face_uv", &[mesh.faces().len(), width], &corners(mesh.face_uvs(), mesh.faces(), width)?);
    }
    let segments = mesh.segments();
    npz.strings("segment_names", &segments.names);
    npz.i32("segments", &[n], &segments.of_vertex.iter().map(|s| *s as i32).collect::<Vec<_>>());

    let names: Vec<&str> = rig.shapes().iter().map(|shape| shape.name.as_str()).collect();
    npz.strings("names", &names);
    let dense = |deltas: Vec<&SparseDeltas>| -> Vec<f32> {
        deltas.into_iter().flat_map(|deltas| flat(&deltas.to_dense(n))).collect()
    };
    let shapes = dense(rig.shapes().iter().map(|shape| &shape.deltas).collect());
    npz.f32("deltas", &[names.len(), n, 3], &shapes);
    for level in LEVELS {
        let group: Vec<&Corrective> = rig.correctives().iter().filter(|c| c.shapes.len() == level).collect();
        if group.is_empty() {
            continue;
        }
        let (index_name, deltas_name) = corrective_names(level);
        let index: Vec<i32> = group.iter().flat_map(|c| &c.shapes).map(|shape| *shape as i32).collect();
        npz.i32(&index_name, &[group.len(), level], &index);
        npz.f32(&deltas_name, &[group.len(), n, 3], &dense(group.iter().map(|c| &c.deltas).collect()));
    }
    npz.finish()
}

/// Writes a rig, whole or not at all.
pub fn write(path: &Path, mesh: &Mesh, rig: &BlendshapeRig) -> Result<(), WriteError> {
    let bytes = to_bytes(mesh, rig).map_err(|problem| WriteError::new(path, problem))?;
    write_atomic(path, &bytes)
}

fn flat(vectors: &[Vec3]) -> Vec<f32> {
    vectors.iter().flat_map(|v| v.to_array()).collect()
}

/// Corners of `rows` (faces or their UVs), as many as `shapes` has, padded with −1.
fn corners(rows: &[Face], shapes: &[Face], width: usize) -> Result<Vec<i32>, String> {
    let mut out = Vec::with_capacity(rows.len() * width);
    for (row, shape) in rows.iter().zip(shapes) {
        for corner in 0..width {
            let value = if corner < shape.corner_count() { i32::try_from(row.raw()[corner]) } else { Ok(-1) };
            out.push(value.map_err(|_| "an index is larger than 2^31".to_owned())?);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mesh(quad: bool, uvs: bool) -> Mesh {
        let faces = if quad {
            vec![Face::quad(0, 1, 2, 3), Face::triangle(2, 3, 4)]
        } else {
            vec![Face::triangle(0, 1, 2), Face::triangle(2, 3, 4)]
        };
        let positions = (0..5).map(|i| Vec3::new(i as f32, (i * i) as f32, 0.5)).collect();
        let mut parts = MeshParts { positions, faces: faces.clone(), ..MeshParts::default() };
        if uvs {
            parts.uvs = (0..5).map(|i| Vec2::new(i as f32 * 0.1, 0.5)).collect();
            parts.face_uvs = faces;
        }
        parts.segments =
            Segments { names: vec!["skin".into(), "tooth".into()], of_vertex: vec![0, 0, 0, 0, 1] };
        parts.build().expect("valid mesh")
    }

    fn rig(mesh: &Mesh, numbers: &[f32]) -> BlendshapeRig {
        let delta = |at: usize| Vec3::new(numbers[at], numbers[at + 1], 0.0);
        let sparse =
            |at: usize| SparseDeltas { vertices: vec![1, 3], deltas: vec![delta(at), delta(at + 1)] };
        let shapes = ["a", "b", "c", "d"].iter().enumerate();
        let shapes = shapes.map(|(i, name)| Shape { name: (*name).into(), deltas: sparse(i) }).collect();
        let corrective = |shapes: &[u32], at| Corrective { shapes: shapes.to_vec(), deltas: sparse(at) };
        let correctives = vec![
            corrective(&[0, 1], 3),
            corrective(&[1, 2], 2),
            corrective(&[0, 1, 3], 1),
            corrective(&[0, 1, 2, 3], 0),
        ];
        BlendshapeRig::new(mesh.positions().to_vec(), shapes, correctives).expect("valid rig")
    }

    proptest! {
        #[test]
        fn save_load_save_is_the_identity(quad: bool, uvs: bool,
                                          numbers in prop::collection::vec(-5.0f32..5.0, 8)) {
            let mesh = mesh(quad, uvs);
            let rig = rig(&mesh, &numbers);
            let first = to_bytes(&mesh, &rig).expect("valid");
            let back = parse(first.clone(), None).expect("just written");
            prop_assert_eq!(&back.mesh, &mesh);
            let weights = [0.3, 0.9, 0.2, 1.0];
            let (mut ours, mut theirs) = (vec![Vec3::ZERO; 5], vec![Vec3::ZERO; 5]);
            rig.evaluate(&weights, &mut ours);
            back.rig.evaluate(&weights, &mut theirs);
            prop_assert_eq!(ours, theirs);
            prop_assert_eq!(to_bytes(&back.mesh, &back.rig).expect("valid"), first);
        }
    }

    fn broken(change: impl Fn(&mut NpzWriter) -> &mut NpzWriter) -> String {
        let mut npz = NpzWriter::new();
        change(&mut npz);
        npz.f32("neutral", &[3, 3], &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
            .i32("faces", &[1, 4], &[0, 1, 2, -1])
            .strings("names", &["a", "b"])
            .f32("deltas", &[2, 3, 3], &[0.0; 18]);
        // An array that `change` added first wins over the default one of the same name.
        let bytes = npz.finish_keeping_first();
        parse(bytes, None).map(|_| "fine".to_owned()).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn bad_files_are_named() {
        assert_eq!(broken(|npz| npz), "fine");
        let twice = broken(|npz| npz.i32("faces", &[1, 3], &[0, 1, 1]));
        assert!(twice.contains("the mesh is empty"), "no face is left: {twice}");
        let shape = broken(|npz| npz.f32("deltas", &[2, 3, 2], &[0.0; 12]));
        assert_eq!(shape, "array 'deltas': shape [2,3,2], expected [2,3,3]");
        let index = broken(|npz| npz.i32("faces", &[1, 3], &[0, 1, 7]));
        assert_eq!(index, "array 'faces': face 0 names vertex 7, but there are 3");
        let negative = broken(|npz| npz.i32("faces", &[1, 3], &[0, -1, 2]));
        assert_eq!(negative, "array 'faces': face 0 has a corner -1");
        let nan = broken(|npz| npz.f32("neutral", &[3, 3], &[f32::NAN; 9]));
        assert_eq!(nan, "array 'neutral': the number at [0, 0] is not finite");
        let names = broken(|npz| npz.strings("names", &["a", "a"]));
        assert_eq!(names, "array 'names': two shapes are named 'a'");
        let lonely = broken(|npz| npz.i32("corrective_2_index", &[1, 2], &[0, 1]));
        assert_eq!(lonely, "array 'corrective_2_deltas': is missing");
        let unknown = broken(|npz| {
            npz.i32("corrective_2_index", &[1, 2], &[0, 9]).f32("corrective_2_deltas", &[1, 3, 3], &[0.0; 9])
        });
        assert!(unknown.contains("corrective 0 combines shapes [0, 9]"), "{unknown}");
        let unit = broken(|npz| npz.f32("unit_cm", &[], &[0.0]));
        assert_eq!(unit, "array 'unit_cm': 0 is not a unit of length");
    }

    #[test]
    fn faces_that_name_a_vertex_twice_are_dropped_with_one_warning() {
        let mesh = mesh(true, true);
        let mut npz = NpzWriter::new();
        npz.f32("neutral", &[5, 3], &flat(mesh.positions())).strings("names", &["a"]);
        npz.f32("deltas", &[1, 5, 3], &[0.0; 15]).f32("uv", &[5, 2], &[0.5; 10]);
        let rows = [0, 1, 2, 3, 2, 3, 2, -1, 2, 3, 4, -1, 1, 1, 2, 3];
        npz.i32("faces", &[4, 4], &rows).i32("face_uv", &[4, 4], &rows);
        let read = parse(npz.finish().expect("valid"), None).expect("two good faces");
        assert_eq!(read.mesh.faces(), [Face::quad(0, 1, 2, 3), Face::triangle(2, 3, 4)]);
        assert_eq!(read.mesh.face_uvs(), read.mesh.faces());
        assert_eq!(read.warnings, ["2 faces that name a vertex twice are dropped"]);
    }

    #[test]
    fn units_are_said_aloud() {
        let mesh = mesh(true, false);
        let bytes = to_bytes(&mesh, &rig(&mesh, &[1.0; 8])).expect("valid");
        let metres = parse(bytes, Some(100.0)).expect("valid");
        assert_eq!(metres.mesh.positions()[1], Vec3::new(100.0, 100.0, 50.0));
        assert_eq!(metres.rig.shapes()[0].deltas.deltas[0], Vec3::new(100.0, 100.0, 0.0));
        assert!(metres.conversion.to_string().contains("given by the caller"));
    }
}
