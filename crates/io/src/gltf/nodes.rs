//! The node hierarchy: a checked forest with transforms in cm, and which of its nodes become bones.

use super::metres::vector_to_cm;
use crate::ParseError;
use crate::names::UniqueNames;
use ::gltf::json::{Node, Root};
use glam::{DAffine3, DMat3, DQuat, DVec3, Quat, Vec3};
use understudy_core::{Bone, JointTransform};

/// A scale of zero hides a part in some files; bones must stay invertible.
const SMALLEST_SCALE: f32 = 1e-6;

/// All nodes of a document.
pub(super) struct Nodes {
    /// `None` for a root.
    pub parents: Vec<Option<usize>>,
    /// In the parent's frame, cm.
    pub locals: Vec<JointTransform>,
    /// Rest transforms in the world, cm.
    pub globals: Vec<DAffine3>,
    /// Whether a node hangs in the default scene.
    pub in_scene: Vec<bool>,
    /// Names as in the file, or readable ones.
    pub names: Vec<String>,
}

/// The bones made of the nodes that matter.
pub(super) struct NodeBones {
    pub bones: Vec<Bone>,
    /// For every node its bone.
    pub of_node: Vec<Option<usize>>,
    names: UniqueNames,
}

impl Nodes {
    pub fn read(root: &Root, warnings: &mut Vec<String>) -> Result<Self, ParseError> {
        let count = root.nodes.len();
        let mut parents: Vec<Option<usize>> = vec![None; count];
        for (parent, node) in root.nodes.iter().enumerate() {
            for child in node.children.iter().flatten() {
                let slot = parents.get_mut(child.value());
                let slot =
                    slot.ok_or_else(|| place(root, parent, format!("child {child} does not exist")))?;
                if slot.replace(parent).is_some() {
                    return Err(place(root, child.value(), "is the child of two nodes"));
                }
            }
        }
        let order = parents_first(root, &parents)?;
        let mut locals = Vec::with_capacity(count);
        for (index, node) in root.nodes.iter().enumerate() {
            locals.push(local_transform(root, index, node, warnings)?);
        }
        let mut globals = vec![DAffine3::IDENTITY; count];
        for &node in &order {
            let local = to_affine(&locals[node]);
            globals[node] = parents[node].map_or(local, |parent| globals[parent] * local);
        }
        let in_scene = scene_members(root, &parents, &order)?;
        let names = (0..count).map(|node| name_of(root, node)).collect();
        Ok(Self { parents, locals, globals, in_scene, names })
    }

    /// Bones for the nodes in `wanted` and for every ancestor that moves them. An ancestor that is not
    /// wanted itself and stands still at the identity moves nothing, and is left out.
    pub fn bones(&self, wanted: &[bool]) -> NodeBones {
        let count = self.parents.len();
        let mut kept = wanted.to_vec();
        for node in (0..count).filter(|node| wanted[*node]) {
            let mut ancestor = self.parents[node];
            while let Some(above) = ancestor.filter(|above| !kept[*above]) {
                kept[above] = true;
                ancestor = self.parents[above];
            }
        }
        for node in 0..count {
            if !wanted[node] && self.locals[node] == JointTransform::IDENTITY {
                kept[node] = false;
            }
        }
        let mut of_node = vec![None; count];
        for (bone, node) in (0..count).filter(|node| kept[*node]).enumerate() {
            of_node[node] = Some(bone);
        }
        // A parent that was left out hands on its own; remembered, or a long chain costs its square.
        let mut bones = Vec::new();
        let mut names = UniqueNames::default();
        let mut above: Vec<Option<Option<usize>>> = vec![None; count];
        for node in (0..count).filter(|node| kept[*node]) {
            let mut skipped = Vec::new();
            let mut ancestor = self.parents[node];
            let parent = loop {
                match ancestor {
                    None => break None,
                    Some(up) if of_node[up].is_some() => break of_node[up],
                    Some(up) => match above[up] {
                        Some(known) => break known,
                        None => {
                            skipped.push(up);
                            ancestor = self.parents[up];
                        }
                    },
                }
            };
            skipped.into_iter().for_each(|up| above[up] = Some(parent));
            bones.push(Bone { name: names.take(&self.names[node]), parent, rest: self.locals[node] });
        }
        NodeBones { bones, of_node, names }
    }
}

impl NodeBones {
    /// A bone that rides on another: where two skins bind one joint differently.
    pub fn add_child(&mut self, parent: usize) -> usize {
        let name = self.names.take(&format!("{} bind", self.bones[parent].name));
        self.bones.push(Bone { name, parent: Some(parent), rest: JointTransform::IDENTITY });
        self.bones.len() - 1
    }
}

/// A transform in double precision.
pub(super) fn to_affine(local: &JointTransform) -> DAffine3 {
    let rotation = local.rotation.as_dquat().normalize();
    DAffine3::from_scale_rotation_translation(local.scale.as_dvec3(), rotation, local.translation.as_dvec3())
}

/// The node's own name, its mesh's, its place among the joints of a skin, what it holds, or else its number.
fn name_of(root: &Root, node: usize) -> String {
    let data = &root.nodes[node];
    let mesh = data.mesh.and_then(|mesh| root.meshes.get(mesh.value())?.name.as_ref());
    if let Some(name) = [data.name.as_ref(), mesh].into_iter().flatten().find(|name| !name.is_empty()) {
        return name.clone();
    }
    let place = |skin: &::gltf::json::Skin| skin.joints.iter().position(|joint| joint.value() == node);
    match (root.skins.iter().find_map(place), data.mesh) {
        (Some(joint), _) => format!("joint {joint}"),
        (None, Some(mesh)) => format!("mesh {mesh}"),
        (None, None) => format!("node {node}"),
    }
}

fn place(root: &Root, node: usize, problem: impl ToString) -> ParseError {
    ParseError::new(format!("node {node} ('{}')", name_of(root, node)), problem)
}

fn parents_first(root: &Root, parents: &[Option<usize>]) -> Result<Vec<usize>, ParseError> {
    let mut order: Vec<usize> = (0..parents.len()).filter(|node| parents[*node].is_none()).collect();
    let mut next = 0;
    while next < order.len() {
        let children = root.nodes[order[next]].children.iter().flatten();
        order.extend(children.map(|child| child.value()));
        next += 1;
    }
    if order.len() == parents.len() {
        return Ok(order);
    }
    // Every node has one parent at most, so whatever no root reaches lies on or below a cycle.
    let mut reached = vec![false; parents.len()];
    order.iter().for_each(|node| reached[*node] = true);
    let mut node = reached.iter().position(|r| !r).unwrap_or(0);
    for _ in 0..parents.len() {
        node = parents[node].unwrap_or(node);
    }
    Err(place(root, node, "is its own ancestor"))
}

fn scene_members(root: &Root, parents: &[Option<usize>], order: &[usize]) -> Result<Vec<bool>, ParseError> {
    let Some(scene) = root.scenes.get(root.scene.map_or(0, |scene| scene.value())) else {
        return Ok(vec![true; parents.len()]);
    };
    let mut members = vec![false; parents.len()];
    for node in &scene.nodes {
        let member = members.get_mut(node.value());
        *member.ok_or_else(|| ParseError::new("scene", format!("node {node} does not exist")))? = true;
    }
    for &node in order {
        members[node] |= parents[node].is_some_and(|parent| members[parent]);
    }
    Ok(members)
}

fn local_transform(
    root: &Root,
    index: usize,
    node: &Node,
    warnings: &mut Vec<String>,
) -> Result<JointTransform, ParseError> {
    let mut local = match node.matrix {
        Some(matrix) => {
            let (local, exact) =
                decompose(&matrix).ok_or_else(|| place(root, index, "has a matrix that is not affine"))?;
            if !exact {
                warnings.push(format!(
                    "node {index} ('{}'): the shear of its matrix is dropped",
                    name_of(root, index)
                ));
            }
            local
        }
        None => {
            let rotation = node.rotation.unwrap_or_default().0;
            JointTransform {
                rotation: unit(Quat::from_array(rotation))
                    .ok_or_else(|| place(root, index, "has a rotation of no length"))?,
                translation: Vec3::from_array(node.translation.unwrap_or_default()),
                scale: node.scale.map_or(Vec3::ONE, Vec3::from_array),
            }
        }
    };
    local.translation = vector_to_cm(local.translation);
    if !local.is_finite() {
        return Err(place(root, index, "has a transform that is not finite"));
    }
    if local.scale.abs().min_element() < SMALLEST_SCALE {
        warnings.push(format!(
            "node {index} ('{}'): a scale of zero became {SMALLEST_SCALE}",
            name_of(root, index)
        ));
        local.scale = at_least_smallest(local.scale);
    }
    Ok(local)
}

/// A scale that can be inverted.
pub(super) fn at_least_smallest(scale: Vec3) -> Vec3 {
    let clamp = |s: f32| if s.abs() < SMALLEST_SCALE { SMALLEST_SCALE.copysign(s) } else { s };
    Vec3::new(clamp(scale.x), clamp(scale.y), clamp(scale.z))
}

/// A unit quaternion; one that is unit already is left as it is, bit for bit.
pub(super) fn unit(rotation: Quat) -> Option<Quat> {
    let length = rotation.as_dquat().length();
    if !length.is_finite() || length < 1e-12 {
        return None;
    }
    if (length - 1.0).abs() < 1e-6 {
        return Some(rotation);
    }
    Some((rotation.as_dquat() * length.recip()).as_quat())
}

/// Scale, rotation and translation of a column-major matrix, and whether they multiply back to it.
fn decompose(matrix: &[f32; 16]) -> Option<(JointTransform, bool)> {
    let m = matrix.map(f64::from);
    if m.iter().any(|v| !v.is_finite()) || (m[3], m[7], m[11]) != (0.0, 0.0, 0.0) || m[15] != 1.0 {
        return None;
    }
    let columns = [0, 4, 8].map(|c| DVec3::new(m[c], m[c + 1], m[c + 2]));
    let mut scale = DVec3::new(columns[0].length(), columns[1].length(), columns[2].length());
    let x = columns[0].try_normalize().unwrap_or(DVec3::X);
    let y =
        (columns[1] - x * x.dot(columns[1])).try_normalize().unwrap_or_else(|| x.any_orthonormal_vector());
    let z = x.cross(y);
    if DMat3::from_cols(columns[0], columns[1], columns[2]).determinant() < 0.0 {
        scale.z = -scale.z;
    }
    let rotation = DQuat::from_mat3(&DMat3::from_cols(x, y, z)).normalize();
    let size = scale.abs().max_element().max(1e-12);
    let back = [rotation * DVec3::X * scale.x, rotation * DVec3::Y * scale.y, rotation * DVec3::Z * scale.z];
    let exact = back.iter().zip(&columns).all(|(a, b)| (*a - *b).length() < 1e-4 * size);
    let translation = Vec3::new(matrix[12], matrix[13], matrix[14]);
    Some((JointTransform { rotation: rotation.as_quat(), translation, scale: scale.as_vec3() }, exact))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(list: &str) -> Result<Nodes, ParseError> {
        let text = format!(r#"{{"asset":{{"version":"2.0"}},"nodes":[{list}]}}"#);
        Nodes::read(&serde_json::from_str(&text).expect("valid JSON"), &mut Vec::new())
    }

    #[test]
    fn trees_that_are_none_are_refused() {
        let cycle = nodes(r#"{},{"children":[2],"name":"a"},{"children":[3]},{"children":[1]}"#)
            .err()
            .expect("cycle");
        assert_eq!(cycle.problem, "is its own ancestor");
        assert!(nodes(r#"{"children":[0]}"#).is_err());
        assert!(nodes(r#"{"children":[2]},{"children":[2]},{}"#).is_err());
        assert!(nodes(r#"{"children":[7]}"#).is_err());
        assert!(nodes(r#"{"rotation":[0,0,0,0]}"#).is_err());
        assert!(nodes(r#"{"matrix":[1,0,0,0, 0,1,0,0, 0,0,1,0, 0,0,0,2]}"#).is_err());
        assert!(nodes(r#"{"translation":[1e38,0,0]}"#).is_err());
    }

    #[test]
    fn still_ancestors_are_left_out_and_names_stay_unique() {
        let tree = nodes(
            r#"{"children":[1]},{"translation":[1,0,0],"children":[2],"name":"a"},
            {"children":[3],"name":"a"},{"name":"a"},{"name":"unused"}"#,
        )
        .expect("a tree");
        let bones = tree.bones(&[false, false, false, true, false]);
        let seen: Vec<_> = bones.bones.iter().map(|b| (b.name.as_str(), b.parent)).collect();
        assert_eq!(seen, [("a", None), ("a_2", Some(0))]);
        assert_eq!(bones.bones[0].rest.translation, Vec3::X * 100.0);
        assert_eq!(bones.of_node, [None, Some(0), None, Some(1), None]);
    }

    #[test]
    fn matrices_come_apart_and_go_together() {
        let whole = glam::Mat4::from_scale_rotation_translation(
            Vec3::new(2.0, -3.0, 0.5),
            Quat::from_euler(glam::EulerRot::XYZ, 0.3, -1.0, 2.0),
            Vec3::new(1.0, 2.0, 3.0),
        );
        let (local, exact) = decompose(&whole.to_cols_array()).expect("affine");
        let back = glam::Mat4::from(local.to_affine());
        assert!(exact && back.abs_diff_eq(whole, 1e-5), "{back}");
        let sheared = [1.0, 0.0, 0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0];
        assert!(!decompose(&sheared).expect("affine").1);
    }
}
