//! A skeleton without a skin, made visible: one thin octahedron a bone, so that motion files can become
//! glTF and be looked at anywhere.

use understudy_core::{Face, Mesh, MeshError, MeshParts, Segments, Skeleton, SkinError, SkinWeights, Vec3};

/// Width of a bone by its length.
const WIDTH: f32 = 0.08;

/// The mesh and its weights. A bone without a child is drawn as long as a tenth of the mean bone.
pub fn stick_figure(skeleton: &Skeleton) -> Result<(Mesh, SkinWeights), StickError> {
    let place = |bone: usize| Vec3::from(skeleton.rest_global()[bone].translation);
    let mut ends = Vec::new();
    for (child, bone) in skeleton.bones().iter().enumerate() {
        if let Some(parent) = bone.parent.filter(|parent| place(*parent).distance(place(child)) > 1e-4) {
            ends.push((parent, place(parent), place(child)));
        }
    }
    let mean = ends.iter().map(|(_, a, b)| a.distance(*b)).sum::<f32>() / ends.len().max(1) as f32;
    let tip = if mean > 0.0 { mean * 0.1 } else { 1.0 };
    for bone in 0..skeleton.len() {
        if !ends.iter().any(|(owner, _, _)| *owner == bone) {
            ends.push((bone, place(bone), place(bone) + Vec3::Y * tip));
        }
    }
    ends.sort_by_key(|(bone, _, _)| *bone);

    let names = skeleton.bones().iter().map(|bone| bone.name.clone()).collect();
    let mut parts = MeshParts { segments: Segments { names, of_vertex: Vec::new() }, ..MeshParts::default() };
    let mut rows = Vec::new();
    for (bone, from, to) in ends {
        let first = parts.positions.len() as u32;
        let along = to - from;
        let (side, other) = along.normalize().any_orthonormal_pair();
        let (middle, width) = (from + along * 0.2, along.length() * WIDTH);
        parts.positions.push(from);
        parts.positions.extend([side, other, -side, -other].map(|offset| middle + offset * width));
        parts.positions.push(to);
        for corner in 0..4 {
            let (a, b) = (first + 1 + corner, first + 1 + (corner + 1) % 4);
            parts.faces.push(Face::triangle(first, b, a));
            parts.faces.push(Face::triangle(first + 5, a, b));
        }
        parts.segments.of_vertex.extend([bone as u32; 6]);
        rows.extend(std::iter::repeat_n(vec![(bone as u16, 1.0)], 6));
    }
    Ok((parts.build()?, SkinWeights::from_rows(&rows, skeleton.len())?))
}

/// Bones so odd that no figure can be drawn on them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StickError {
    /// The mesh is not valid.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The weights are not valid.
    #[error(transparent)]
    Skin(#[from] SkinError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Bone, JointTransform};

    #[test]
    fn every_bone_has_its_stick_and_faces_look_outward() {
        let bone = |name: &str, parent, offset| Bone {
            name: name.into(),
            parent,
            rest: JointTransform::from_translation(offset),
        };
        let skeleton = Skeleton::new(vec![
            bone("hip", None, Vec3::Y * 90.0),
            bone("left", Some(0), Vec3::new(10.0, -40.0, 0.0)),
            bone("right", Some(0), Vec3::new(-10.0, -40.0, 0.0)),
        ])
        .expect("a tree");
        let (mesh, skin) = stick_figure(&skeleton).expect("a figure");
        assert_eq!((mesh.vertex_count(), mesh.faces().len(), skin.vertex_count()), (24, 32, 24));
        let (_, islands) = mesh.islands();
        assert_eq!(islands, 4);
        for stick in 0..4 {
            let corners = &mesh.positions()[stick * 6..stick * 6 + 6];
            let centre = corners.iter().sum::<Vec3>() / 6.0;
            for face in &mesh.faces()[stick * 8..stick * 8 + 8] {
                let [a, b, c] =
                    face.triangles().next().expect("a triangle").map(|i| mesh.positions()[i as usize]);
                assert!((b - a).cross(c - a).dot((a + b + c) / 3.0 - centre) > 0.0);
            }
        }
    }
}
