//! Meshes, skins and shapes of an FBX scene, and the nodes that become bones.

use super::{affine, vector};
use crate::ParseError;
use crate::assembly::{Assembly, Row, joint, tidy_row};
use crate::polygons::{Corner, Polygons};
use glam::{DAffine3, DMat3, DQuat, Vec3};
use std::collections::HashMap;
use ufbx::{BlendChannel, Mesh, Node, Scene, SkinDeformer, SkinningMethod};
use understudy_core::Vec2;

/// What became of nodes and shapes, by their numbers in the file.
pub(super) struct Parts {
    /// Bone of a node, by the node's `typed_id`.
    pub bones: HashMap<u32, usize>,
    /// Channel and shape, by their `typed_id` and number.
    pub shapes: Vec<(u32, usize)>,
}

/// Reads every mesh that hangs in the scene.
pub(super) fn read(scene: &Scene, assembly: &mut Assembly, size: usize) -> Result<Parts, ParseError> {
    /// Meshes may be instanced: what a file becomes is bounded by its size.
    const SMALL: usize = 4_000_000;
    const GROWTH: usize = 20;
    let mut parts = Parts { bones: HashMap::new(), shapes: Vec::new() };
    let moving = !scene.skin_deformers.is_empty() || !scene.anim_curves.is_empty();
    let mut left = SMALL.saturating_add(size.saturating_mul(GROWTH));
    for node in &scene.nodes {
        let Some(mesh) = node.mesh.as_ref() else { continue };
        let name = name_of(node);
        let cost = mesh.num_indices.saturating_add(mesh.num_vertices);
        left = left.checked_sub(cost).ok_or_else(|| {
            ParseError::new(format!("mesh '{name}'"), "its instances are more than the file's size tells")
        })?;
        if mesh.num_vertices == 0 || mesh.num_faces == 0 {
            continue;
        }
        read_mesh(node, mesh, name, moving, assembly, &mut parts)?;
    }
    Ok(parts)
}

/// Bones alone: of every node that is one, or of every node where the file has none.
pub(super) fn read_bones(scene: &Scene, assembly: &mut Assembly) -> Parts {
    let mut parts = Parts { bones: HashMap::new(), shapes: Vec::new() };
    let named = scene.nodes.iter().any(|node| node.bone.is_some());
    for node in scene.nodes.iter().filter(|node| !node.is_root && (node.bone.is_some() || !named)) {
        bone_of(node, assembly, &mut parts);
    }
    parts
}

/// The name that people see: that of the node which a helper node stands for.
fn name_of(node: &Node) -> &str {
    match node.parent.as_ref() {
        Some(parent) if node.is_geometry_transform_helper || node.is_scale_helper => {
            parent.element.name.as_ref()
        }
        _ => node.element.name.as_ref(),
    }
}

fn read_mesh(
    node: &Node,
    mesh: &Mesh,
    name: &str,
    moving: bool,
    assembly: &mut Assembly,
    parts: &mut Parts,
) -> Result<(), ParseError> {
    let place = || format!("mesh '{name}'");
    let shown = affine(&node.geometry_to_world);
    let skin = mesh.skin_deformers.iter().find(|skin| skin.clusters.iter().any(|c| c.bone_node.is_some()));
    if mesh.skin_deformers.len() > 1 {
        assembly.warnings.push(format!("{name}: has several skins; the first is read"));
    }
    let space = skin.and_then(|skin| bind_space(skin)).filter(usable).unwrap_or(shown);
    let (polygons, uvs) = polygons(mesh, name)?;
    let positions: Vec<Vec3> =
        mesh.vertices.iter().map(|v| space.transform_point3(vector(*v)).as_vec3()).collect();
    if let Some(vertex) = positions.iter().position(|p| !p.is_finite()) {
        return Err(ParseError::new(place(), format!("vertex {vertex} is not finite")));
    }
    let rows = match skin {
        Some(skin) => skin_rows(skin, node, positions.len(), &space, assembly, parts)?,
        None if moving => {
            let bone = bone_of(node, assembly, parts);
            let bind = affine(&node.node_to_world).inverse();
            let bone = assembly.bind(bone, if bind.is_finite() { bind } else { DAffine3::IDENTITY })?;
            vec![vec![(bone, 1.0)]; positions.len()]
        }
        None => Vec::new(),
    };
    let first = assembly.add_part(name, &positions, polygons, uvs, rows);
    for channel in mesh.blend_deformers.iter().flat_map(|deformer| deformer.channels.iter()) {
        read_shape(channel, name, first, positions.len(), &space.matrix3, assembly, parts)?;
    }
    Ok(())
}

fn usable(space: &DAffine3) -> bool {
    space.is_finite() && space.inverse().is_finite() && space.matrix3.determinant().abs() > 1e-18
}

/// Where the mesh stood when the bone that carries most of it was bound.
fn bind_space(skin: &SkinDeformer) -> Option<DAffine3> {
    let weight = |cluster: &ufbx::SkinCluster| cluster.weights.iter().sum::<f64>();
    let bound = skin.clusters.iter().filter(|cluster| cluster.bone_node.is_some());
    let strongest = bound.max_by(|a, b| weight(a).total_cmp(&weight(b)))?;
    Some(affine(&strongest.bind_to_world) * affine(&strongest.geometry_to_bone))
}

fn polygons(mesh: &Mesh, name: &str) -> Result<(Polygons, Vec<Vec2>), ParseError> {
    let fail = |problem: String| ParseError::new(format!("mesh '{name}'"), problem);
    let textured = mesh.vertex_uv.exists && mesh.vertex_uv.indices.len() == mesh.num_indices;
    let uvs: Vec<Vec2> = match textured {
        true => mesh.vertex_uv.values.iter().map(|uv| Vec2::new(uv.x as f32, uv.y as f32)).collect(),
        false => Vec::new(),
    };
    let textured = textured && uvs.iter().all(|uv| uv.is_finite());
    let mut polygons = Polygons::default();
    let mut corners: Vec<Corner> = Vec::new();
    for (index, face) in mesh.faces.iter().enumerate().filter(|(_, face)| face.num_indices >= 3) {
        corners.clear();
        let range = face.index_begin as usize..face.index_begin as usize + face.num_indices as usize;
        let vertices = mesh.vertex_indices.get(range.clone());
        for (place, vertex) in
            range.zip(vertices.ok_or_else(|| fail(format!("face {index} has no corners")))?)
        {
            let vertex = *vertex as usize;
            if vertex >= mesh.num_vertices {
                return Err(fail(format!("face {index} names vertex {vertex} of {}", mesh.num_vertices)));
            }
            let uv = mesh.vertex_uv.indices.get(place).map(|uv| *uv as usize);
            corners.push((vertex, uv.filter(|uv| textured && *uv < uvs.len())));
        }
        polygons.add(&corners);
    }
    Ok((polygons, if textured { uvs } else { Vec::new() }))
}

/// Bones and weights of every vertex.
fn skin_rows(
    skin: &SkinDeformer,
    node: &Node,
    vertices: usize,
    space: &DAffine3,
    assembly: &mut Assembly,
    parts: &mut Parts,
) -> Result<Vec<Row>, ParseError> {
    let name = name_of(node);
    if matches!(skin.skinning_method, SkinningMethod::DualQuaternion | SkinningMethod::BlendedDqLinear) {
        assembly.warnings.push(format!("{name}: dual quaternion skinning is read as linear"));
    }
    let back = space.inverse();
    let mut bones = Vec::with_capacity(skin.clusters.len());
    for cluster in &skin.clusters {
        bones.push(match cluster.bone_node.as_ref() {
            // A bone that moves nothing needs no bone of its own over a disagreement.
            Some(_) if cluster.num_weights == 0 => None,
            Some(bone) => {
                let matrix = affine(&cluster.geometry_to_bone) * back;
                let bone = bone_of(bone, assembly, parts);
                Some(assembly.bind(bone, if matrix.is_finite() { matrix } else { DAffine3::IDENTITY })?)
            }
            None => None,
        });
    }
    let fallback = match bones.iter().flatten().next() {
        Some(bone) => *bone,
        None => {
            let bone = bone_of(node, assembly, parts);
            assembly.bind(bone, affine(&node.node_to_world).inverse())?
        }
    };
    let mut rows = Vec::with_capacity(vertices);
    let mut empty = 0;
    for vertex in 0..vertices {
        let range = skin.vertices.get(vertex).map_or(0..0, |entry| {
            entry.weight_begin as usize..entry.weight_begin as usize + entry.num_weights as usize
        });
        let entries = skin.weights.get(range).unwrap_or_default();
        let bone = |entry: &ufbx::SkinWeight| {
            let bone = bones.get(entry.cluster_index as usize).copied().flatten()?;
            Some((bone, entry.weight as f32))
        };
        let row: Row = entries.iter().filter_map(bone).collect();
        empty += usize::from(row.iter().all(|(_, weight)| *weight <= 0.0));
        rows.push(tidy_row(row, fallback));
    }
    if empty > 0 {
        assembly.warnings.push(format!("{name}: {empty} vertices without weights follow the first bone"));
    }
    Ok(rows)
}

/// The bone of a node; its ancestors become bones too, but for those at the top that stand still at the origin.
fn bone_of(node: &Node, assembly: &mut Assembly, parts: &mut Parts) -> usize {
    let mut chain = vec![node];
    let mut above = node.parent.as_ref();
    while let Some(parent) = above.filter(|parent| !parts.bones.contains_key(&parent.element.typed_id)) {
        chain.push(parent);
        above = parent.parent.as_ref();
    }
    let mut parent = above.map(|parent| parts.bones[&parent.element.typed_id]);
    for (place, link) in chain.iter().enumerate().rev() {
        if let Some(known) = parts.bones.get(&link.element.typed_id) {
            parent = Some(*known);
            continue;
        }
        let local = &link.local_transform;
        let rotation =
            DQuat::from_xyzw(local.rotation.x, local.rotation.y, local.rotation.z, local.rotation.w);
        let rest = joint(vector(local.scale), rotation, vector(local.translation));
        // The root of a file is at the origin once units and axes are converted.
        if link.is_root && place > 0 && rest == understudy_core::JointTransform::IDENTITY {
            continue;
        }
        let bone = assembly.add_bone(link.element.name.as_ref(), parent, rest);
        parts.bones.insert(link.element.typed_id, bone);
        parent = Some(bone);
    }
    parts.bones[&node.element.typed_id]
}

fn read_shape(
    channel: &BlendChannel,
    mesh: &str,
    first: usize,
    vertices: usize,
    turn: &DMat3,
    assembly: &mut Assembly,
    parts: &mut Parts,
) -> Result<(), ParseError> {
    let name = channel.element.name.as_ref();
    // Maya puts the deformer's name before the shape's.
    let name = name.rsplit('.').next().filter(|short| !short.is_empty()).unwrap_or(name).to_owned();
    let Some(last) = channel.keyframes.last() else { return Ok(()) };
    if channel.keyframes.len() > 1 {
        let between = channel.keyframes.len() - 1;
        assembly.warnings.push(format!("{mesh}: {between} shapes in between of '{name}' are left out"));
    }
    // A full weight that is not one is in the offsets instead.
    let full = if last.target_weight.abs() > 1e-9 { last.target_weight } else { 1.0 };
    let shape = &last.shape;
    let mut offsets = Vec::with_capacity(shape.offset_vertices.len());
    for (vertex, offset) in shape.offset_vertices.iter().zip(shape.position_offsets.iter()) {
        let vertex = *vertex as usize;
        let delta = (*turn * vector(*offset) / full).as_vec3();
        if vertex >= vertices || !delta.is_finite() {
            return Err(ParseError::new(
                format!("shape '{name}'"),
                format!("its offset of vertex {vertex} is wrong"),
            ));
        }
        offsets.push(((first + vertex) as u32, delta));
    }
    let rest = channel.weight as f32;
    let rest = if rest.is_finite() { rest } else { 0.0 };
    let shape = assembly.add_shape(&name, offsets, rest);
    parts.shapes.push((channel.element.typed_id, shape));
    Ok(())
}
