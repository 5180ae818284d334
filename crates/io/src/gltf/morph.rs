//! Morph targets as a blendshape rig: targets of one name are one shape, wherever in the scene they are.

use super::accessor::Accessors;
use super::extras::{CorrectiveNote, MeshExtras};
use super::geometry::{Geometry, attribute_values, pick};
use super::metres::vector_to_cm;
use super::nodes::Nodes;
use crate::ParseError;
use crate::names::UniqueNames;
use ::gltf::json::Root;
use glam::DAffine3;
use std::collections::{BTreeMap, HashMap};
use understudy_core::{Corrective, Shape, SparseDeltas};

/// Shapes of the whole scene, in the order in which the file names them.
#[derive(Default)]
pub(super) struct Morphs {
    pub shapes: Vec<Shape>,
    pub correctives: Vec<Corrective>,
    /// For every mesh with targets: the shape of each target, `None` for a corrective, whose weight
    /// follows from the shapes it combines.
    pub of_target: BTreeMap<usize, Vec<Option<usize>>>,
    /// Weights that the file shows at rest, one per shape.
    pub rest_weights: Vec<f32>,
}

/// How many targets a mesh has: the most of its primitives.
fn target_count(root: &Root, mesh: usize) -> usize {
    let targets = root.meshes[mesh].primitives.iter().map(|p| p.targets.as_ref().map_or(0, Vec::len));
    targets.max().unwrap_or(0)
}

impl Morphs {
    pub fn read(
        root: &Root,
        nodes: &Nodes,
        geometry: &Geometry<'_>,
        extras: &BTreeMap<usize, MeshExtras>,
        spaces: &[Option<DAffine3>],
        accessors: &Accessors<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, ParseError> {
        let mut meshes: Vec<usize> = geometry.parts.iter().map(|part| part.mesh).collect();
        meshes.sort_unstable();
        meshes.dedup();
        meshes.retain(|mesh| target_count(root, *mesh) > 0);
        let names = target_names(root, &meshes, extras, warnings);
        let mut index_of: HashMap<&str, usize> = HashMap::new();
        let mut shapes: Vec<Shape> = Vec::new();
        let mut of_target: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (mesh, names) in meshes.iter().zip(&names) {
            let shape = |name| {
                *index_of.entry(name).or_insert_with(|| {
                    shapes.push(Shape { name: String::from(name), deltas: SparseDeltas::default() });
                    shapes.len() - 1
                })
            };
            of_target.insert(*mesh, names.iter().map(String::as_str).map(shape).collect());
        }
        for (part, space) in geometry.parts.iter().zip(spaces) {
            let turn = space.map(|space| space.matrix3);
            for (target, data) in part.primitive.targets.iter().flatten().enumerate() {
                let Some(positions) = data.positions else { continue };
                let values = attribute_values(accessors.vec3(positions.value())?, part, "a morph target")?;
                let deltas = &mut shapes[of_target[&part.mesh][target]].deltas;
                for (vertex, delta) in part.vertices.clone().zip(pick(&values, &part.picks)) {
                    let cm = vector_to_cm(delta);
                    let cm = turn.map_or(cm, |turn| (turn * cm.as_dvec3()).as_vec3());
                    if cm != glam::Vec3::ZERO {
                        deltas.vertices.push(vertex as u32);
                        deltas.deltas.push(cm);
                    }
                }
            }
        }
        let notes = match meshes.as_slice() {
            [mesh] => extras.get(mesh).and_then(|e| e.understudy.as_ref()).map(|n| n.correctives.as_slice()),
            _ => None,
        };
        let mut morphs = Self::sort_out(shapes, &of_target, notes.unwrap_or_default(), warnings);
        morphs.read_rest_weights(root, nodes, warnings);
        Ok(morphs)
    }

    /// Separates the correctives that our own notes name from the shapes that are driven directly.
    fn sort_out(
        shapes: Vec<Shape>,
        of_target: &BTreeMap<usize, Vec<usize>>,
        notes: &[CorrectiveNote],
        warnings: &mut Vec<String>,
    ) -> Self {
        let mut combined: BTreeMap<usize, &[usize]> = BTreeMap::new();
        for note in notes {
            combined.insert(note.target, &note.shapes);
        }
        let fits = |parts: &[usize]| {
            let distinct = (1..parts.len()).all(|i| !parts[..i].contains(&parts[i]));
            let driven = parts.iter().all(|s| *s < shapes.len() && !combined.contains_key(s));
            (2..=64).contains(&parts.len()) && distinct && driven
        };
        if !combined.iter().all(|(target, parts)| *target < shapes.len() && fits(parts)) {
            warnings.push("the file's notes on correctives do not fit its targets: read as shapes".into());
            combined.clear();
        }
        // With one mesh, a target's number is its shape's number.
        let mut number = vec![None; shapes.len()];
        for (new, old) in (0..shapes.len()).filter(|shape| !combined.contains_key(shape)).enumerate() {
            number[old] = Some(new);
        }
        let mut out = Self::default();
        for (old, shape) in shapes.into_iter().enumerate() {
            match combined.get(&old) {
                None => out.shapes.push(shape),
                Some(parts) => {
                    let shapes = parts.iter().filter_map(|part| number[*part].map(|n| n as u32)).collect();
                    out.correctives.push(Corrective { shapes, deltas: shape.deltas });
                }
            }
        }
        let columns = |targets: &Vec<usize>| targets.iter().map(|shape| number[*shape]).collect();
        out.of_target = of_target.iter().map(|(mesh, targets)| (*mesh, columns(targets))).collect();
        out
    }

    fn read_rest_weights(&mut self, root: &Root, nodes: &Nodes, warnings: &mut Vec<String>) {
        let mut weights: Vec<Option<f32>> = vec![None; self.shapes.len()];
        for (node, data) in root.nodes.iter().enumerate().filter(|(node, _)| nodes.in_scene[*node]) {
            let Some(mesh) = data.mesh.map(|mesh| mesh.value()) else { continue };
            let Some(columns) = self.of_target.get(&mesh) else { continue };
            let given = data.weights.as_ref().or(root.meshes[mesh].weights.as_ref());
            for (target, column) in columns.iter().enumerate() {
                let weight = given.and_then(|given| given.get(target)).copied().filter(|w| w.is_finite());
                let (Some(column), weight) = (column, weight.unwrap_or(0.0)) else { continue };
                let slot = weights[*column].get_or_insert(weight);
                if *slot != weight {
                    let (name, shape) = (&nodes.names[node], &self.shapes[*column].name);
                    warnings.push(format!(
                        "node {node} ('{name}'): rests '{shape}' at another weight than the rest"
                    ));
                }
            }
        }
        self.rest_weights = weights.into_iter().map(Option::unwrap_or_default).collect();
    }
}

/// Names of the targets of each mesh, unique inside a mesh.
fn target_names(
    root: &Root,
    meshes: &[usize],
    extras: &BTreeMap<usize, MeshExtras>,
    warnings: &mut Vec<String>,
) -> Vec<Vec<String>> {
    let mut all = Vec::with_capacity(meshes.len());
    for &mesh in meshes {
        let count = target_count(root, mesh);
        let given = extras.get(&mesh).map(|e| e.target_names.as_slice()).unwrap_or_default();
        if !given.is_empty() && given.len() != count {
            warnings.push(format!("mesh {mesh}: {} names for {count} targets", given.len()));
        }
        // 'target 3' of two meshes are not the same shape, so the mesh is named where there are several.
        let prefix = match &root.meshes[mesh].name {
            _ if meshes.len() == 1 => String::new(),
            Some(name) => format!("{name} "),
            None => format!("mesh {mesh} "),
        };
        let mut names = UniqueNames::default();
        let name = |target: usize| match given.get(target) {
            Some(name) if given.len() == count => names.take(name),
            _ => names.take(&format!("{prefix}target {target}")),
        };
        all.push((0..count).map(name).collect());
    }
    all
}
