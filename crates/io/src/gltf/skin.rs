//! Which bones move which vertices: skins with any number of influence sets, and meshes without a skin
//! that ride on their own node.

use super::accessor::Accessors;
use super::geometry::{Geometry, Part, attribute, attribute_values};
use super::metres::CM;
use super::nodes::{NodeBones, Nodes};
use crate::ParseError;
use ::gltf::json::Root;
use ::gltf::json::mesh::Semantic;
use glam::{Affine3A, DAffine3, DMat3, DVec3};

/// Weighted joints of a vertex.
type Row = Vec<(u16, f32)>;

/// Everything about skinning that the file says, with bones in place of joints.
pub(super) struct Binding {
    /// World → bone in the bind pose, cm, one per bone; `None` where no skin binds it.
    pub inverse_bind: Vec<Option<DAffine3>>,
    /// Bones and weights, one row per vertex of the merged mesh.
    pub rows: Vec<Row>,
    /// Bones that a skin of the file names, ascending.
    pub joints: Vec<usize>,
    /// For every part the map from its space in the file to the merged mesh's; `None` for the identity.
    pub spaces: Vec<Option<DAffine3>>,
}

/// Bones with the matrices that bind them, split where two skins disagree.
struct Binder<'a> {
    bones: &'a mut NodeBones,
    /// For every bone of a node: the bones that stand for it and their matrices.
    variants: Vec<Vec<(usize, DAffine3)>>,
}

impl Binding {
    pub fn read(
        root: &Root,
        nodes: &Nodes,
        geometry: &Geometry<'_>,
        bones: &mut NodeBones,
        accessors: &Accessors<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, ParseError> {
        let node_bones = bones.bones.len();
        let mut binder = Binder { bones, variants: vec![Vec::new(); node_bones] };
        let mut spaces = vec![None; geometry.parts.len()];
        let mut part_rows: Vec<Vec<Row>> = Vec::with_capacity(geometry.parts.len());
        for (index, part) in geometry.parts.iter().enumerate() {
            match part.skin {
                Some(skin) => {
                    part_rows.push(read_rows(part, root.skins[skin].joints.len(), accessors, warnings)?);
                }
                None => {
                    let space = nodes.globals[part.node];
                    spaces[index] = (!is_identity(&space)).then_some(space);
                    let bone = binder.of_node(part.node)?;
                    let bone = binder.bind(bone, space.inverse());
                    accessors.charge(&part.place, 8 * part.vertices.len() as u64)?;
                    part_rows.push(vec![vec![(bone_number(bone)?, 1.0)]; part.vertices.len()]);
                }
            }
        }
        let mut joints = Vec::new();
        for skin in 0..root.skins.len() {
            let users: Vec<usize> =
                (0..geometry.parts.len()).filter(|part| geometry.parts[*part].skin == Some(skin)).collect();
            if users.is_empty() {
                continue;
            }
            let (matrices, joint_nodes) = read_skin(root, skin, accessors)?;
            let mut totals = vec![0.0f64; matrices.len()];
            for &(joint, weight) in users.iter().flat_map(|part| &part_rows[*part]).flatten() {
                totals[usize::from(joint)] += f64::from(weight);
            }
            let ours = users.iter().any(|part| geometry.parts[*part].ours);
            let space = if ours { None } else { bind_space(&totals, &matrices, &joint_nodes, nodes) };
            let back = space.map_or(DAffine3::IDENTITY, |space| space.inverse());
            let mut bone_of = vec![0; matrices.len()];
            for joint in 0..matrices.len() {
                bone_of[joint] = binder.of_node(joint_nodes[joint])?;
                joints.push(bone_of[joint]);
                let matrix = if space.is_some() { matrices[joint] * back } else { matrices[joint] };
                // A joint that moves nothing need not get a bone of its own over a disagreement.
                if totals[joint] > 0.0 || binder.variants[bone_of[joint]].is_empty() {
                    bone_of[joint] = binder.bind(bone_of[joint], matrix);
                }
            }
            for &part in &users {
                spaces[part] = space;
                for entry in part_rows[part].iter_mut().flatten() {
                    entry.0 = bone_number(bone_of[usize::from(entry.0)])?;
                }
            }
        }
        joints.sort_unstable();
        joints.dedup();
        let mut inverse_bind = vec![None; binder.bones.bones.len()];
        for &(bone, matrix) in binder.variants.iter().flatten() {
            inverse_bind[bone] = Some(matrix);
        }
        Ok(Self { inverse_bind, rows: part_rows.into_iter().flatten().collect(), joints, spaces })
    }
}

impl Binder<'_> {
    fn of_node(&self, node: usize) -> Result<usize, ParseError> {
        self.bones.of_node[node].ok_or_else(|| ParseError::new(format!("node {node}"), "has no bone"))
    }

    fn bind(&mut self, bone: usize, matrix: DAffine3) -> usize {
        if let Some((bone, _)) = self.variants[bone].iter().find(|(_, other)| agree(other, &matrix)) {
            return *bone;
        }
        let stand_in = if self.variants[bone].is_empty() { bone } else { self.bones.add_child(bone) };
        self.variants[bone].push((stand_in, matrix));
        stand_in
    }
}

fn bone_number(bone: usize) -> Result<u16, ParseError> {
    u16::try_from(bone)
        .map_err(|_| ParseError::new(format!("bone {bone}"), "there are more than 65,536 bones"))
}

/// The matrices in cm and the nodes of a skin's joints.
fn read_skin(
    root: &Root,
    skin: usize,
    accessors: &Accessors<'_>,
) -> Result<(Vec<DAffine3>, Vec<usize>), ParseError> {
    let data = &root.skins[skin];
    let joints: Vec<usize> = data.joints.iter().map(|joint| joint.value()).collect();
    let mut matrices = match data.inverse_bind_matrices {
        Some(index) => accessors.affine(index.value())?,
        None => vec![DAffine3::IDENTITY; joints.len()],
    };
    if matrices.len() < joints.len() || joints.len() > usize::from(u16::MAX) {
        let problem = format!("{} inverse bind matrices for {} joints", matrices.len(), joints.len());
        return Err(ParseError::new(format!("skin {skin}"), problem));
    }
    matrices.truncate(joints.len());
    matrices.iter_mut().for_each(|matrix| matrix.translation *= CM);
    Ok((matrices, joints))
}

/// The space in which the joint with the most weight rests where it was bound. Files may bind in any
/// space (a hundredth of the size, lying down); moved there, the mesh stands as the file shows it.
fn bind_space(
    totals: &[f64],
    matrices: &[DAffine3],
    joint_nodes: &[usize],
    nodes: &Nodes,
) -> Option<DAffine3> {
    let strongest = (0..totals.len()).rev().max_by(|a, b| totals[*a].total_cmp(&totals[*b]))?;
    let space = nodes.globals[joint_nodes[strongest]] * matrices[strongest];
    let invertible =
        space.is_finite() && space.inverse().is_finite() && space.matrix3.determinant().abs() > 1e-18;
    (invertible && !is_identity(&space)).then_some(space)
}

fn is_identity(space: &DAffine3) -> bool {
    let turn = space.matrix3 - DMat3::IDENTITY;
    turn.to_cols_array().iter().all(|v| v.abs() < 1e-4) && space.translation.abs().max_element() < 1e-2
}

/// Whether two bind matrices are the same up to rounding in the file: 1e-4 cm at arm's length.
fn agree(a: &DAffine3, b: &DAffine3) -> bool {
    let size = a.matrix3.to_cols_array().iter().fold(0.0f64, |size, v| size.max(v.abs()));
    let turn = (a.matrix3 - b.matrix3).to_cols_array();
    let shift: DVec3 = a.translation - b.translation;
    turn.iter().all(|v| v.abs() <= 1e-6 * size)
        && shift.length() <= 1e-4 * size.max(1e-12) + 1e-6 * a.translation.length()
}

/// Joints and weights of all sets, one row per vertex of the part.
fn read_rows(
    part: &Part<'_>,
    joint_count: usize,
    accessors: &Accessors<'_>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Row>, ParseError> {
    let fail = |problem: String| ParseError::new(part.place.clone(), problem);
    accessors.charge(&part.place, 8 * part.vertices.len() as u64)?;
    let mut rows: Vec<Row> = vec![Vec::new(); part.vertices.len()];
    for set in 0.. {
        let joints = attribute(part.primitive, Semantic::Joints(set));
        let weights = attribute(part.primitive, Semantic::Weights(set));
        let (joints, weights) = match (joints, weights) {
            (Some(joints), Some(weights)) => (accessors.integers(joints, 4)?, accessors.floats(weights, 4)?),
            (None, None) if set > 0 => break,
            _ => return Err(fail(format!("has a skin, but not both JOINTS_{set} and WEIGHTS_{set}"))),
        };
        let joints = attribute_values(joints.chunks_exact(4).collect(), part, "JOINTS")?;
        let weights = attribute_values(weights.chunks_exact(4).collect(), part, "WEIGHTS")?;
        for (row, &stored) in rows.iter_mut().zip(&part.picks) {
            let entries = joints[stored as usize].iter().zip(weights[stored as usize]);
            for (&joint, &weight) in entries.filter(|(_, weight)| **weight != 0.0) {
                if joint as usize >= joint_count {
                    return Err(fail(format!(
                        "vertex {stored} follows joint {joint}, but there are {joint_count}"
                    )));
                }
                if weight < 0.0 {
                    return Err(fail(format!("vertex {stored} has weight {weight}")));
                }
                row.push((joint as u16, weight));
            }
        }
    }
    let (mut empty, mut uneven) = (0, 0);
    for row in &mut rows {
        merge_repeats(row);
        let sum: f64 = row.iter().map(|(_, weight)| f64::from(*weight)).sum();
        if sum < 1e-6 {
            *row = vec![(0, 1.0)];
            empty += 1;
        } else if (sum - 1.0).abs() > 0.01 {
            row.iter_mut().for_each(|(_, weight)| *weight = (f64::from(*weight) / sum) as f32);
            uneven += 1;
        }
    }
    if empty > 0 {
        warnings.push(format!("{}: {empty} vertices without weights follow the first joint", part.place));
    }
    if uneven > 0 {
        warnings.push(format!("{}: the weights of {uneven} vertices did not sum to one", part.place));
    }
    Ok(rows)
}

/// One entry per joint; the order stays as it is unless a joint is named twice.
fn merge_repeats(row: &mut Row) {
    let mut sorted = row.clone();
    sorted.sort_by_key(|(joint, _)| *joint);
    if sorted.windows(2).all(|pair| pair[0].0 != pair[1].0) {
        return;
    }
    row.clear();
    for (joint, weight) in sorted {
        match row.last_mut().filter(|last| last.0 == joint) {
            Some(last) => last.1 += weight,
            None => row.push((joint, weight)),
        }
    }
}

/// In single precision, as bones are stored.
pub(super) fn to_single(matrix: &DAffine3) -> Affine3A {
    Affine3A::from_mat3_translation(matrix.matrix3.as_mat3(), matrix.translation.as_vec3())
}
