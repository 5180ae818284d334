//! The ICT face model (`face.npz`, MIT): 26,719 vertices in 17 parts with 32 single teeth, 57
//! expressions and 68 landmarks, in centimetres.

use super::{RealFace, faces, shapes, vectors};
use crate::Dim::{Any, Exactly};
use crate::npz::NpzReader;
use crate::{Conversion, ParseError, ReadError, read_bytes};
use std::path::Path;
use understudy_core::{BlendshapeRig, MeshParts, Segments, Vec2, Vec3};

/// The head with its expressions. Segments are the file's parts in its order, with `teeth` replaced by
/// `tooth_01` to `tooth_32`: the first sixteen are the upper ones, both rows from the character's left
/// (+X) to its right.
pub fn ict(path: &Path) -> Result<RealFace, ReadError> {
    parse_ict(read_bytes(path)?).map_err(ReadError::content(path))
}

/// [`ict`] on bytes.
pub fn parse_ict(bytes: Vec<u8>) -> Result<RealFace, ParseError> {
    let npz = NpzReader::parse(bytes)?;
    let neutral = npz.f32("neutral", &[Any("n"), Exactly(3)])?;
    let n = neutral.shape[0];
    let quads = npz.i64("quads", &[Any("f"), Exactly(4)])?;
    let f = quads.shape[0];
    let quad_uv = npz.i64("quad_uv", &[Exactly(f), Exactly(4)])?;
    let uv = npz.f32("uv", &[Any("t"), Exactly(2)])?;
    let positions = vectors(&neutral.data, 1.0);
    let parts = MeshParts {
        positions: positions.clone(),
        faces: faces("quads", &quads)?,
        uvs: uv.data.chunks_exact(2).map(|uv| Vec2::new(uv[0], uv[1])).collect(),
        face_uvs: faces("quad_uv", &quad_uv)?,
        segments: segments(&npz, n)?,
    };
    let mesh = parts.build().map_err(|error| ParseError::new("array 'quads'", error))?;

    let names = npz.strings("expression_names", &[Any("m")])?.data;
    let deltas = npz.f32("expression_deltas", &[Exactly(names.len()), Exactly(n), Exactly(3)])?;
    let everything: Vec<u32> = (0..n as u32).collect();
    let shapes = BlendshapeRig::new(positions, shapes(names, &deltas.data, n, 1.0, &everything), Vec::new())
        .map_err(|error| ParseError::new("array 'expression_deltas'", error))?;

    let landmarks = npz.u32("landmarks68", &[Exactly(68)])?.data;
    if let Some(landmark) = landmarks.iter().position(|vertex| *vertex as usize >= n) {
        return Err(ParseError::new(
            "array 'landmarks68'",
            format!("landmark {landmark} is beyond the {n} vertices"),
        ));
    }
    let materials = npz.strings("material_names", &[Any("k")])?.data;
    let face_materials = npz.u32("quad_material", &[Exactly(f)])?.data;
    if let Some(face) = face_materials.iter().position(|material| *material as usize >= materials.len()) {
        return Err(ParseError::new("array 'quad_material'", format!("face {face} has an unknown material")));
    }
    Ok(RealFace {
        mesh,
        shapes,
        landmarks: landmarks.try_into().expect("the shape was checked"),
        materials,
        face_materials,
        conversion: Conversion::none("ICT-FaceKit works in centimetres"),
    })
}

/// The identity modes that come beside the face (`identities.npz`): offsets of every vertex, one row a mode, cm.
pub fn ict_identities(path: &Path, vertices: usize) -> Result<Vec<Vec<Vec3>>, ReadError> {
    parse_ict_identities(read_bytes(path)?, vertices).map_err(ReadError::content(path))
}

/// [`ict_identities`] on bytes.
pub fn parse_ict_identities(bytes: Vec<u8>, vertices: usize) -> Result<Vec<Vec<Vec3>>, ParseError> {
    let npz = NpzReader::parse(bytes)?;
    let deltas = npz.f32("identity_deltas", &[Any("modes"), Exactly(vertices), Exactly(3)])?;
    if let Some(at) = deltas.data.iter().position(|value| !value.is_finite()) {
        let (mode, vertex) = (at / (3 * vertices.max(1)), at / 3 % vertices.max(1));
        let problem = format!("mode {mode} is not finite at vertex {vertex}");
        return Err(ParseError::new("array 'identity_deltas'", problem));
    }
    Ok(deltas.data.chunks_exact(3 * vertices.max(1)).map(|mode| vectors(mode, 1.0)).collect())
}

fn segments(npz: &NpzReader, n: usize) -> Result<Segments, ParseError> {
    let names = npz.strings("part_names", &[Any("p")])?.data;
    let start = npz.u32("part_start", &[Exactly(names.len())])?.data;
    let end = npz.u32("part_end", &[Exactly(names.len())])?.data;
    let teeth = npz.u32("tooth_start", &[Any("t")])?.data;
    let mut ranges: Vec<(String, u32, u32)> = Vec::new();
    for (part, name) in names.into_iter().enumerate() {
        if name != "teeth" {
            ranges.push((name, start[part], end[part]));
            continue;
        }
        if teeth.first() != Some(&start[part]) || teeth.last() != Some(&end[part]) {
            return Err(ParseError::new("array 'tooth_start'", "does not cover the part 'teeth'"));
        }
        let tooth = |(tooth, pair): (usize, &[u32])| (format!("tooth_{:02}", tooth + 1), pair[0], pair[1]);
        ranges.extend(teeth.windows(2).enumerate().map(tooth));
    }
    let mut of_vertex = vec![u32::MAX; n];
    for (segment, (name, start, end)) in (0u32..).zip(&ranges) {
        let range = of_vertex.get_mut(*start as usize..*end as usize).filter(|range| !range.is_empty());
        let range = range.ok_or_else(|| {
            ParseError::new("array 'part_start'", format!("part '{name}' is {start}..{end} of {n} vertices"))
        })?;
        range.fill(segment);
    }
    if let Some(vertex) = of_vertex.iter().position(|segment| *segment == u32::MAX) {
        return Err(ParseError::new("array 'part_start'", format!("vertex {vertex} is in no part")));
    }
    Ok(Segments { names: ranges.into_iter().map(|(name, ..)| name).collect(), of_vertex })
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_testkit::shared_data;

    #[test]
    fn the_face_loads_whole() {
        let Some(data) = shared_data() else { return };
        let face = ict(&data.join("ict-facekit/face.npz")).expect("valid file");
        assert_eq!((face.mesh.vertex_count(), face.mesh.faces().len()), (26_719, 26_384));
        assert_eq!(face.mesh.faces().iter().filter(|f| f.corner_count() == 3).count(), 548);
        assert!(face.mesh.has_uvs());
        assert_eq!((face.shapes.shapes().len(), face.mesh.segments().len()), (57, 16 + 32));
        // Upper teeth lie above lower ones, the first of each row on the character's left.
        let centre = |name: &str| {
            let segment = face.mesh.segments().find(name).expect(name);
            let vertices = face.mesh.segments().vertices(segment);
            let sum: Vec3 = vertices.iter().map(|v| face.mesh.positions()[*v as usize]).sum();
            sum / vertices.len() as f32
        };
        assert!(centre("tooth_01").x > 2.0 && centre("tooth_16").x < -2.0 && centre("tooth_17").x > 2.0);
        assert!(centre("tooth_08").y > centre("tooth_24").y + 1.0);
        assert!(centre("eyeball_left").x > 0.0);
        // Multi-PIE landmark 30 is the tip of the nose: the frontmost of all.
        let depth = |landmark: u32| face.mesh.positions()[landmark as usize].z;
        assert!(face.landmarks.iter().all(|l| depth(*l) <= depth(face.landmarks[30])));
    }
}
