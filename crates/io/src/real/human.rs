//! The MakeHuman base body (`human.npz`, CC0): 13,380 body vertices, 163 bones, top-8 weights and 52
//! ARKit shapes, in decimetres.

use super::{RealBody, faces, shapes, vectors};
use crate::Dim::{Any, Exactly};
use crate::npz::NpzReader;
use crate::{Conversion, ParseError, ReadError, read_bytes};
use std::path::Path;
use understudy_core::{
    Affine3A, BlendshapeRig, Bone, Face, JointTransform, Mat3, MeshParts, Quat, Segments, Skeleton,
    SkinWeights, Vec3,
};

const DECIMETRE: f32 = 10.0;
/// Weights that sum to less than this are damaged rather than cut to the eight largest.
const LEAST_WEIGHT_SUM: f32 = 0.8;

/// Forward and a little up: no bone of a standing figure points this way, so that [`bone_frame`] turns
/// smoothly from bone to bone (the nearest one here is 15° away).
const ROLL_REFERENCE: Vec3 = Vec3::new(0.0, 0.6, 0.8);

/// The body alone: `human_with(path, &["body"])`.
///
/// Bone heads and tails of the file are global; each bone's frame has its origin at the head, Y
/// towards the tail, and as Z the part of the direction (0, 0.6, 0.8), forward and up, that is across
/// the bone; X = Y × Z. So a positive rotation about X moves the tail of any bone forward (a
/// forward-pointing one's up), on the left as on the right, and left and right frames mirror each other.
/// The file's origin is kept: it lies at the hips, the soles at about −82 cm.
pub fn human(path: &Path) -> Result<RealBody, ReadError> {
    human_with(path, &["body"])
}

/// The faces of some groups of the file (`body`, `helper-l-eye`, `helper-upper-teeth`, …) with their
/// vertices, re-indexed in ascending order.
pub fn human_with(path: &Path, groups: &[&str]) -> Result<RealBody, ReadError> {
    parse_human(read_bytes(path)?, groups).map_err(ReadError::content(path))
}

/// [`human_with`] on bytes.
pub fn parse_human(bytes: Vec<u8>, groups: &[&str]) -> Result<RealBody, ParseError> {
    let npz = NpzReader::parse(bytes)?;
    let verts = npz.f32("verts", &[Any("n"), Exactly(3)])?;
    let n = verts.shape[0];
    let quads = npz.i64("quads", &[Any("f"), Exactly(4)])?;
    let quad_group = npz.strings("quad_group", &[Exactly(quads.shape[0])])?.data;

    let all_faces = faces("quads", &quads)?;
    if let Some(face) = all_faces.iter().position(|f| f.corners().iter().any(|c| *c as usize >= n)) {
        return Err(ParseError::new("array 'quads'", format!("face {face} names a vertex beyond the {n}")));
    }
    let (kept, segments) = select(&all_faces, &quad_group, groups, n)?;
    let mut new_index = vec![u32::MAX; n];
    for (new, old) in (0u32..).zip(&kept) {
        new_index[*old as usize] = new;
    }
    let chosen = all_faces.iter().zip(&quad_group).filter(|(_, group)| groups.contains(&group.as_str()));
    let faces = chosen.map(|(face, _)| face.map(|corner| new_index[corner as usize])).collect();
    let all_positions = vectors(&verts.data, DECIMETRE);
    let positions: Vec<Vec3> = kept.iter().map(|vertex| all_positions[*vertex as usize]).collect();
    let mesh = MeshParts { positions: positions.clone(), faces, segments, ..MeshParts::default() };
    let mesh = mesh.build().map_err(|error| ParseError::new("array 'quads'", error))?;

    let (skeleton, bone_lengths) = skeleton(&npz)?;
    let weights = weights(&npz, n, &kept, skeleton.len())?;
    let names = npz.strings("arkit_names", &[Any("m")])?.data;
    let deltas = npz.f32("arkit_deltas", &[Exactly(names.len()), Exactly(n), Exactly(3)])?;
    let shapes = BlendshapeRig::new(positions, shapes(names, &deltas.data, n, DECIMETRE, &kept), Vec::new())
        .map_err(|error| ParseError::new("array 'arkit_deltas'", error))?;
    let conversion = Conversion::scaled(DECIMETRE, "MakeHuman works in decimetres");
    Ok(RealBody { mesh, skeleton, weights, shapes, bone_lengths, conversion })
}

/// The vertices that faces of some groups use, ascending, and their segments: one per group, the first
/// group winning where two share a vertex.
fn select(
    faces: &[Face],
    quad_group: &[String],
    groups: &[&str],
    n: usize,
) -> Result<(Vec<u32>, Segments), ParseError> {
    let mut of_vertex = vec![u32::MAX; n];
    for (segment, group) in (0u32..).zip(groups) {
        let mut found = false;
        for (face, _) in faces.iter().zip(quad_group).filter(|(_, name)| name == group) {
            found = true;
            for corner in face.corners() {
                let place = &mut of_vertex[*corner as usize];
                *place = segment.min(*place);
            }
        }
        if !found {
            return Err(ParseError::new("array 'quad_group'", format!("no face is in group '{group}'")));
        }
    }
    let kept: Vec<u32> = (0u32..).zip(&of_vertex).filter(|(_, s)| **s != u32::MAX).map(|(v, _)| v).collect();
    let names = groups.iter().map(|group| (*group).to_owned()).collect();
    let of_vertex = kept.iter().map(|vertex| of_vertex[*vertex as usize]).collect();
    Ok((kept, Segments { names, of_vertex }))
}

/// Origin at the head, Y along the bone, Z across it towards [`ROLL_REFERENCE`].
fn bone_frame(head: Vec3, tail: Vec3) -> Option<(Affine3A, f32)> {
    let length = head.distance(tail);
    let y = (tail - head).try_normalize()?;
    let z = (ROLL_REFERENCE - y * y.dot(ROLL_REFERENCE)).try_normalize()?;
    let rotation = Quat::from_mat3(&Mat3::from_cols(y.cross(z), y, z)).normalize();
    Some((Affine3A::from_rotation_translation(rotation, head), length))
}

fn skeleton(npz: &NpzReader) -> Result<(Skeleton, Vec<f32>), ParseError> {
    let names = npz.strings("bone_names", &[Any("j")])?.data;
    let count = names.len();
    let parents = npz.i64("bone_parent", &[Exactly(count)])?.data;
    let heads = vectors(&npz.f32("bone_head", &[Exactly(count), Exactly(3)])?.data, DECIMETRE);
    let tails = vectors(&npz.f32("bone_tail", &[Exactly(count), Exactly(3)])?.data, DECIMETRE);
    let mut frames = Vec::with_capacity(count);
    for bone in 0..count {
        let frame = bone_frame(heads[bone], tails[bone]);
        frames.push(frame.ok_or_else(|| {
            ParseError::new("array 'bone_tail'", format!("bone {bone} ('{}') has no direction", names[bone]))
        })?);
    }
    let mut bones = Vec::with_capacity(count);
    for (bone, (name, parent)) in names.into_iter().zip(parents).enumerate() {
        let parent = match usize::try_from(parent) {
            Ok(parent) if parent < count => Some(parent),
            Err(_) if parent == -1 => None,
            _ => {
                return Err(ParseError::new(
                    "array 'bone_parent'",
                    format!("bone {bone} has parent {parent}"),
                ));
            }
        };
        let global = frames[bone].0;
        let local = parent.map_or(global, |parent| frames[parent].0.inverse() * global);
        let (_, rotation, translation) = local.to_scale_rotation_translation();
        bones.push(Bone { name, parent, rest: JointTransform { rotation, translation, scale: Vec3::ONE } });
    }
    let skeleton = Skeleton::new(bones).map_err(|error| ParseError::new("array 'bone_parent'", error))?;
    Ok((skeleton, frames.into_iter().map(|(_, length)| length).collect()))
}

fn weights(npz: &NpzReader, n: usize, kept: &[u32], bones: usize) -> Result<SkinWeights, ParseError> {
    let index = npz.i64("skin_bone_idx", &[Exactly(n), Any("k")])?;
    let width = index.shape[1];
    let weight = npz.f32("skin_weight", &[Exactly(n), Exactly(width)])?.data;
    let mut rows = Vec::with_capacity(kept.len());
    for &vertex in kept {
        let range = vertex as usize * width..(vertex as usize + 1) * width;
        let sum: f32 = weight[range.clone()].iter().sum();
        if !(LEAST_WEIGHT_SUM..=2.0 - LEAST_WEIGHT_SUM).contains(&sum) {
            return Err(ParseError::new("array 'skin_weight'", format!("vertex {vertex} sums to {sum}")));
        }
        let mut row = Vec::with_capacity(width);
        for (bone, weight) in index.data[range.clone()].iter().zip(&weight[range]) {
            let bone = u16::try_from(*bone).map_err(|_| {
                ParseError::new("array 'skin_bone_idx'", format!("vertex {vertex} follows bone {bone}"))
            })?;
            row.push((bone, weight / sum));
        }
        rows.push(row);
    }
    SkinWeights::from_rows(&rows, bones).map_err(|error| ParseError::new("array 'skin_weight'", error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npz::NpzWriter;
    use understudy_testkit::{Tol, shared_data};

    #[test]
    fn the_body_loads_whole() {
        let Some(data) = shared_data() else { return };
        let body = human(&data.join("makehuman/human.npz")).expect("valid file");
        assert_eq!((body.mesh.vertex_count(), body.mesh.faces().len()), (13_380, 13_378));
        assert_eq!(
            (body.skeleton.len(), body.weights.bone_count(), body.shapes.shapes().len()),
            (163, 163, 52)
        );
        assert_eq!(body.weights.vertex_count(), 13_380);
        let (low, high) = body.mesh.bounds();
        assert!((high.y - low.y - 166.6).abs() < 0.5, "height {}", high.y - low.y);

        // Rest bones lie where the file puts them, and left and right mirror each other.
        let place = |name: &str| body.skeleton.rest_global()[body.skeleton.find(name).expect(name)];
        let wrist = place("wrist.L");
        assert!(
            (Vec3::from(wrist.translation) - Vec3::new(43.1185, 24.518123, 17.565502)).length()
                < Tol::position_cm(20)
        );
        for side in ["upperleg02", "lowerarm01", "finger2-3", "toe1-1", "clavicle"] {
            let (left, right) = (place(&format!("{side}.L")), place(&format!("{side}.R")));
            let mirror = Vec3::new(-1.0, 1.0, 1.0);
            assert!(
                (Vec3::from(left.matrix3.z_axis) * mirror - Vec3::from(right.matrix3.z_axis)).length() < 1e-4
            );
            assert!((Vec3::from(left.translation) * mirror - Vec3::from(right.translation)).length() < 1e-3);
        }
        // A positive turn about X brings the shin forward.
        let thigh = place("upperleg02.L");
        let tail = thigh.transform_point3(Quat::from_rotation_x(0.3) * Vec3::Y);
        assert!(tail.z > thigh.transform_point3(Vec3::Y).z + 0.2);
    }

    #[test]
    fn eyes_and_teeth_can_be_added() {
        let Some(data) = shared_data() else { return };
        let groups = ["body", "helper-l-eye", "helper-r-eye", "helper-upper-teeth"];
        let body = human_with(&data.join("makehuman/human.npz"), &groups).expect("valid file");
        assert_eq!(body.mesh.segments().names, groups);
        assert!(body.mesh.vertex_count() > 13_380 + 100);
        let unknown = human_with(&data.join("makehuman/human.npz"), &["hat"]).expect_err("no such group");
        assert!(unknown.to_string().contains("'hat'"));
    }

    /// Four vertices and two bones in the same layout.
    fn tiny(parents: &[i32], tail_y: f32, weight: f32) -> Vec<u8> {
        let mut npz = NpzWriter::new();
        npz.f32("verts", &[4, 3], &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0])
            .i32("quads", &[1, 4], &[0, 1, 2, 3])
            .strings("quad_group", &["body"])
            .strings("bone_names", &["root", "tip"])
            .i32("bone_parent", &[2], parents)
            .f32("bone_head", &[2, 3], &[0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
            .f32("bone_tail", &[2, 3], &[0.0, 1.0, 0.0, 0.0, tail_y, 0.0])
            .i32("skin_bone_idx", &[4, 2], &[0, 1, 0, 1, 0, 1, 0, 1])
            .f32("skin_weight", &[4, 2], &[weight, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
            .strings("arkit_names", &["jawOpen"])
            .f32("arkit_deltas", &[1, 4, 3], &[0.1; 12]);
        npz.finish().expect("valid arrays")
    }

    #[test]
    fn bad_bodies_are_named() {
        let problem = |bytes| parse_human(bytes, &["body"]).expect_err("bad").to_string();
        assert!(parse_human(tiny(&[-1, 0], 2.0, 0.5), &["body"]).is_ok());
        assert!(problem(tiny(&[1, 0], 2.0, 0.5)).contains("its own ancestor"));
        assert!(problem(tiny(&[-1, 9], 2.0, 0.5)).contains("has parent 9"));
        assert!(problem(tiny(&[-1, 0], 1.0, 0.5)).contains("('tip') has no direction"));
        assert!(problem(tiny(&[-1, 0], 2.0, 0.1)).contains("vertex 0 sums to"));
        assert!(problem(tiny(&[-1, 0], f32::NAN, 0.5)).contains("[1, 1] is not finite"));
    }
}
