//! Which vertices of a skinned file are which of a cache: both may hold several objects, in any order, under names that
//! programs have decorated.

use understudy_core::{BlendshapeRig, Face, Mesh, MeshParts, Segments, Shape, SkinWeights, SparseDeltas};
use understudy_io::Model;

/// What two files have in common.
pub(super) struct Match {
    /// The vertices of the model that are kept, ascending.
    pub kept: Vec<u32>,
    /// For each of them its place in the cache.
    pub in_cache: Vec<u32>,
    /// What was left out, in words.
    pub notes: Vec<String>,
}

/// Without namespace, path, the suffix that Maya gives shapes, and the number that Blender gives copies.
fn plain(name: &str) -> String {
    let name = name.rsplit([':', '|', '/']).next().unwrap_or(name);
    let name = name.split_once('.').map_or(name, |(stem, _)| stem).to_ascii_lowercase();
    let name = name.strip_suffix("shapedeformed").or_else(|| name.strip_suffix("shape")).unwrap_or(&name);
    name.replace([' ', '-', '.'], "_")
}

/// Matches every segment of the model with one of the cache: of the same number of vertices, by name where several
/// have it. `wanted` names the segments to take; all that have a partner when empty.
pub(super) fn find(model: &Mesh, cache: &Mesh, wanted: &[String]) -> Result<Match, String> {
    let (ours, theirs) = (model.segments(), cache.segments());
    let members = |segments: &Segments| -> Vec<Vec<u32>> {
        (0..segments.len()).map(|segment| segments.vertices(segment)).collect()
    };
    let (our_vertices, their_vertices) = (members(ours), members(theirs));
    for name in wanted {
        if !ours.names.iter().any(|own| plain(own) == plain(name)) {
            return Err(format!("there is no mesh '{name}'; there are {}", ours.names.join(", ")));
        }
    }
    let mut free: Vec<bool> = vec![true; theirs.len()];
    let mut pairs = Vec::new();
    let mut notes = Vec::new();
    for (segment, name) in ours.names.iter().enumerate() {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| plain(wanted) == plain(name)) {
            continue;
        }
        let count = our_vertices[segment].len();
        let fits = |other: &usize| free[*other] && their_vertices[*other].len() == count;
        let candidates: Vec<usize> = (0..theirs.len()).filter(fits).collect();
        let named = candidates.iter().find(|other| plain(&theirs.names[**other]) == plain(name));
        match named.or(candidates.first()) {
            Some(&other) => {
                free[other] = false;
                pairs.push((segment, other));
                if named.is_none() && theirs.len() > 1 {
                    let theirs = &theirs.names[other];
                    notes.push(format!(
                        "mesh '{name}' is taken for '{theirs}' of the cache: {count} vertices each"
                    ));
                }
            }
            None => {
                let listed = |names: &Segments, vertices: &[Vec<u32>]| -> String {
                    let some = names.names.iter().zip(vertices).take(12);
                    some.map(|(name, list)| format!("{name} ({} vertices)", list.len()))
                        .collect::<Vec<_>>()
                        .join(", ")
                };
                let problem = format!(
                    "mesh '{name}' ({count} vertices) has no partner in the cache, which holds {}",
                    listed(theirs, &their_vertices)
                );
                // One that is asked for, or the only one, must be there.
                if !wanted.is_empty() || ours.len() == 1 {
                    return Err(problem);
                }
                notes.push(format!("{problem}; it is left out"));
            }
        }
    }
    if pairs.is_empty() {
        return Err(notes.pop().unwrap_or_else(|| "no mesh has a partner in the cache".into()));
    }
    let unused: Vec<&str> =
        theirs.names.iter().zip(&free).filter(|(_, free)| **free).map(|(name, _)| name.as_str()).collect();
    if !unused.is_empty() {
        notes.push(format!("the cache's {} are not in the mesh file and are left out", unused.join(", ")));
    }
    let both = pairs.iter().flat_map(|(own, other)| our_vertices[*own].iter().zip(&their_vertices[*other]));
    let mut both: Vec<(u32, u32)> = both.map(|(own, other)| (*own, *other)).collect();
    both.sort_unstable();
    let (kept, in_cache) = both.into_iter().unzip();
    Ok(Match { kept, in_cache, notes })
}

/// The share of faces whose corners are those of a face of the cache: nearly all where both list vertices in one
/// order, nearly none where they do not.
pub(super) fn shared_faces(model: &Mesh, cache: &Mesh, found: &Match) -> f64 {
    let mut place = vec![u32::MAX; model.vertex_count()];
    found.kept.iter().zip(&found.in_cache).for_each(|(own, other)| place[*own as usize] = *other);
    let sorted = |face: &Face, map: &dyn Fn(u32) -> u32| {
        let mut corners: Vec<u32> = face.corners().iter().map(|corner| map(*corner)).collect();
        corners.sort_unstable();
        corners
    };
    let known: std::collections::HashSet<Vec<u32>> =
        cache.faces().iter().map(|face| sorted(face, &|c| c)).collect();
    let ours = model.faces().iter().filter(|face| place[face.corners()[0] as usize] != u32::MAX);
    let (mut shared, mut count) = (0, 0);
    for face in ours {
        count += 1;
        shared += usize::from(known.contains(&sorted(face, &|corner| place[corner as usize])));
    }
    shared as f64 / count.max(1) as f64
}

/// A model with some of its vertices alone.
pub(super) fn subset(model: Model, kept: &[u32]) -> Result<Model, String> {
    if kept.len() == model.mesh.vertex_count() {
        return Ok(model);
    }
    let mut place = vec![u32::MAX; model.mesh.vertex_count()];
    (0u32..).zip(kept).for_each(|(new, old)| place[*old as usize] = new);
    let inside = |face: &Face| face.corners().iter().all(|corner| place[*corner as usize] != u32::MAX);
    let parts = model.mesh.into_parts();
    let chosen: Vec<bool> = parts.faces.iter().map(inside).collect();
    let some =
        |faces: Vec<Face>| faces.into_iter().zip(&chosen).filter(|(_, kept)| **kept).map(|(face, _)| face);
    let mesh = MeshParts {
        positions: kept.iter().map(|vertex| parts.positions[*vertex as usize]).collect(),
        faces: some(parts.faces).map(|face| face.map(|corner| place[corner as usize])).collect(),
        uvs: parts.uvs,
        face_uvs: some(parts.face_uvs).collect(),
        segments: Segments {
            names: parts.segments.names,
            of_vertex: kept.iter().map(|vertex| parts.segments.of_vertex[*vertex as usize]).collect(),
        },
    };
    let mesh = mesh.build().map_err(|error| error.to_string())?;
    let skin = model.skin.as_ref().map(|skin| {
        let row = |vertex: &u32| skin.row(*vertex as usize).map(|(bone, w)| (bone as u16, w)).collect();
        SkinWeights::from_rows(&kept.iter().map(row).collect::<Vec<_>>(), skin.bone_count())
    });
    let skin = skin.transpose().map_err(|error| error.to_string())?;
    let deltas = |deltas: &SparseDeltas| {
        let pairs = deltas.vertices.iter().zip(&deltas.deltas);
        let pairs = pairs.filter(|(vertex, _)| place[**vertex as usize] != u32::MAX);
        let (vertices, deltas) = pairs.map(|(vertex, delta)| (place[*vertex as usize], *delta)).unzip();
        SparseDeltas { vertices, deltas }
    };
    let shapes = model.shapes.as_ref().map(|rig| {
        let shape = |shape: &Shape| Shape { name: shape.name.clone(), deltas: deltas(&shape.deltas) };
        let shapes = rig.shapes().iter().map(shape).collect();
        // Correctives come from archives of shapes, which have no partner to be subset for.
        BlendshapeRig::new(mesh.positions().to_vec(), shapes, Vec::new())
    });
    let shapes = shapes.transpose().map_err(|error| error.to_string())?;
    Ok(Model { mesh, skin, shapes, colours: None, surface: None, ..model })
}
