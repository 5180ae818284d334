//! Faces that name a vertex twice: files have them, no mesh of ours does. Readers drop them and say so once per
//! file; where the topology itself is what matters (datasets, twins), they stay an error.

use understudy_core::{Face, MeshParts};

/// Whether two corners of a face are one vertex.
pub(crate) fn names_a_vertex_twice(face: &Face) -> bool {
    let corners = face.corners();
    (1..corners.len()).any(|place| corners[..place].contains(&corners[place]))
}

/// What readers say about faces that they dropped; nothing where there were none.
pub(crate) fn dropped_warning(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 face that names a vertex twice is dropped".into()),
        many => Some(format!("{many} faces that name a vertex twice are dropped")),
    }
}

/// Drops such faces, with their texture coordinates, and says how many there were.
pub(crate) fn drop_repeats(parts: &mut MeshParts) -> Option<String> {
    let kept: Vec<bool> = parts.faces.iter().map(|face| !names_a_vertex_twice(face)).collect();
    let dropped = kept.iter().filter(|kept| !**kept).count();
    for list in [&mut parts.faces, &mut parts.face_uvs] {
        let mut kept = kept.iter();
        list.retain(|_| kept.next().copied().unwrap_or(true));
    }
    dropped_warning(dropped)
}
