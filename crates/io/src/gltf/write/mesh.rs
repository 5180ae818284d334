//! The mesh as the format wants it: one primitive of triangles, one vertex a texture coordinate, and the
//! notes that let our reader put it together again.

use super::super::extras::{CorrectiveNote, MeshExtras, Notes, SEGMENT, TEXTURE, VERTEX};
use super::super::metres::{vector_to_cm, vector_to_metres};
use super::packer::Packer;
use super::{GltfScene, SceneError, raw};
use crate::names::UniqueNames;
use ::gltf::json::material::{Material, PbrBaseColorFactor, PbrMetallicRoughness, StrengthFactor};
use ::gltf::json::mesh::{Mesh as JsonMesh, MorphTarget, Primitive, Semantic};
use ::gltf::json::validation::Checked::Valid;
use ::gltf::json::{Accessor, Index, Root};
use glam::{Vec2, Vec3};
use std::collections::{BTreeMap, HashMap};
use understudy_core::normals::vertex_normals;
use understudy_core::{SkinWeights, SparseDeltas};

/// Smallest step between weights: sums of such steps are exact in f32, so that what is read sums to one
/// bit for bit and a second save changes nothing.
const WEIGHT_STEPS: f64 = (1 << 24) as f64;

/// Vertices split at seams: the first `V` are the original ones, in order, then their copies.
pub(super) struct StoredMesh {
    /// The original of every stored vertex.
    original: Vec<u32>,
    /// Entry in the table of texture coordinates of every stored vertex; empty without any.
    texture: Vec<u32>,
    triangles: Vec<u32>,
    /// For every original vertex its copies beyond itself.
    copies: HashMap<u32, Vec<u32>>,
}

impl StoredMesh {
    pub fn new(scene: &GltfScene<'_>) -> Self {
        let mesh = scene.mesh;
        let count = mesh.vertex_count() as u32;
        let mut original: Vec<u32> = (0..count).collect();
        let mut triangles = Vec::new();
        if !mesh.has_uvs() {
            triangles.extend(mesh.faces().iter().flat_map(|face| face.triangles()).flatten());
            return Self { original, texture: Vec::new(), triangles, copies: HashMap::new() };
        }
        let mut texture = vec![u32::MAX; original.len()];
        let mut copies: HashMap<u32, Vec<u32>> = HashMap::new();
        let bits = |uv: u32| flip(mesh.uvs()[uv as usize]).to_array().map(f32::to_bits);
        for (face, uvs) in mesh.faces().iter().zip(mesh.face_uvs()) {
            let mut corners = [0; 4];
            for ((corner, &vertex), &uv) in corners.iter_mut().zip(face.corners()).zip(&uvs.raw()) {
                if texture[vertex as usize] == u32::MAX {
                    texture[vertex as usize] = uv;
                }
                let known = copies.get(&vertex).map(Vec::as_slice).unwrap_or_default();
                let known =
                    std::iter::once(&vertex).chain(known).find(|s| bits(texture[**s as usize]) == bits(uv));
                *corner = match known {
                    Some(stored) => *stored,
                    None => {
                        original.push(vertex);
                        texture.push(uv);
                        let stored = original.len() as u32 - 1;
                        copies.entry(vertex).or_default().push(stored);
                        stored
                    }
                };
            }
            let [a, b, c, d] = corners;
            triangles.extend([a, b, c]);
            if face.corner_count() == 4 {
                triangles.extend([a, c, d]);
            }
        }
        texture.iter_mut().filter(|uv| **uv == u32::MAX).for_each(|uv| *uv = 0);
        Self { original, texture, triangles, copies }
    }

    fn stored<T: Copy>(&self, values: &[T]) -> Vec<T> {
        self.original.iter().map(|vertex| values[*vertex as usize]).collect()
    }

    /// Adds mesh, material and morph targets to the document.
    pub fn push(
        &self,
        scene: &GltfScene<'_>,
        root: &mut Root,
        packer: &mut Packer,
    ) -> Result<Index<JsonMesh>, SceneError> {
        if self.original.len() >= GltfScene::MAX_VERTICES {
            let (what, most) = ("vertices split at seams", GltfScene::MAX_VERTICES - 1);
            return Err(SceneError::TooLarge { what, got: self.original.len(), most });
        }
        let mesh = scene.mesh;
        let own = |name: &str| Valid(Semantic::Extras(name.into()));
        let mut attributes = BTreeMap::new();
        let metres: Vec<Vec3> = mesh.positions().iter().map(|p| vector_to_metres(*p)).collect();
        attributes.insert(Valid(Semantic::Positions), packer.positions(&self.stored(&metres)));
        // Of the positions as they will be read: a second save must find the same normals.
        let read_back: Vec<Vec3> = metres.iter().map(|p| vector_to_cm(*p)).collect();
        let normals = scene.surface.and_then(|surface| surface.normals.clone()).unwrap_or_else(|| {
            let mut normals = vertex_normals(mesh.faces(), &read_back);
            // A vertex without a face has no normal, but the format wants a unit vector.
            normals.iter_mut().filter(|n| **n == Vec3::ZERO).for_each(|n| *n = Vec3::Y);
            normals
        });
        attributes.insert(Valid(Semantic::Normals), packer.vec3(&self.stored(&normals)));
        if mesh.has_uvs() {
            let uvs: Vec<Vec2> = self.texture.iter().map(|uv| flip(mesh.uvs()[*uv as usize])).collect();
            attributes.insert(Valid(Semantic::TexCoords(0)), packer.vec2(&uvs));
            attributes.insert(own(TEXTURE), packer.numbers(&self.texture));
        }
        if let Some(colours) = scene.colours {
            let colours = match scene.surface.and_then(|surface| surface.opacities.as_ref()) {
                None => packer.vec3(&self.stored(colours)),
                Some(opacities) => {
                    let rgba: Vec<[f32; 4]> =
                        colours.iter().zip(opacities).map(|(c, opacity)| [c.x, c.y, c.z, *opacity]).collect();
                    packer.vec4(&self.stored(&rgba))
                }
            };
            attributes.insert(Valid(Semantic::Colors(0)), colours);
        }
        if let Some(surface) = scene.surface {
            if let Some(tangents) = &surface.tangents {
                attributes.insert(Valid(Semantic::Tangents), packer.vec4(&self.stored(tangents)));
            }
            for (set, uvs) in surface.uv_sets.iter().filter(|_| mesh.has_uvs()) {
                attributes.insert(Valid(Semantic::TexCoords(*set)), packer.vec2(&self.stored(uvs)));
            }
        }
        attributes.insert(own(VERTEX), packer.numbers(&self.original));
        if mesh.segments().len() > 1 {
            attributes.insert(own(SEGMENT), packer.numbers(&self.stored(&mesh.segments().of_vertex)));
        }
        if let Some((_, weights)) = scene.skin {
            let sets = influence_sets(weights);
            for (set, (joints, weights)) in (0u32..).zip(&sets) {
                let joints = packer.joints(&self.stored(joints), scene.bone_count());
                attributes.insert(Valid(Semantic::Joints(set)), joints);
                attributes.insert(Valid(Semantic::Weights(set)), packer.vec4(&self.stored(weights)));
            }
        }
        let runs = self.material_runs(scene, root, packer);
        let (targets, target_names, correctives) = self.morph_targets(scene, packer);
        let rest = scene.target_weights(&scene.rest_shape_weights());
        let notes = Notes { segments: mesh.segments().names.clone(), faces: face_runs(scene), correctives };
        let primitive = |(indices, material): (Index<Accessor>, Option<Index<Material>>)| Primitive {
            attributes: attributes.clone(),
            indices: Some(indices),
            material,
            mode: Valid(::gltf::json::mesh::Mode::Triangles),
            targets: (!targets.is_empty()).then(|| targets.clone()),
            extensions: None,
            extras: None,
        };
        let primitives = runs.into_iter().map(primitive).collect();
        Ok(root.push(JsonMesh {
            name: Some(scene.name.into()),
            primitives,
            weights: rest.iter().any(|w| *w != 0.0).then_some(rest),
            extras: raw(&MeshExtras { target_names, understudy: Some(notes) }),
            extensions: None,
        }))
    }

    /// Triangles and material of every primitive: one, or one per run of faces of one material, so that the
    /// faces keep their order. All of them share the vertices.
    fn material_runs(
        &self,
        scene: &GltfScene<'_>,
        root: &mut Root,
        packer: &mut Packer,
    ) -> Vec<(Index<Accessor>, Option<Index<Material>>)> {
        let count = self.original.len();
        let Some(surface) = scene.surface.filter(|surface| !surface.materials.is_empty()) else {
            let indices = packer.indices(&self.triangles, count);
            return vec![(indices, Some(root.push(material(scene))))];
        };
        let mut runs: Vec<(Option<u32>, usize)> = Vec::new();
        for (face, material) in scene.mesh.faces().iter().zip(&surface.of_face) {
            let known = material.filter(|material| (*material as usize) < surface.materials.len());
            let corners = 3 * (face.corner_count() - 2);
            match runs.last_mut().filter(|run| run.0 == known) {
                Some(run) => run.1 += corners,
                None => runs.push((known, corners)),
            }
        }
        let mut rest = self.triangles.as_slice();
        let mut out = Vec::with_capacity(runs.len());
        for (material, corners) in runs {
            let (own, others) = rest.split_at(corners);
            rest = others;
            out.push((packer.indices(own, count), material.map(Index::new)));
        }
        out
    }

    fn morph_targets(
        &self,
        scene: &GltfScene<'_>,
        packer: &mut Packer,
    ) -> (Vec<MorphTarget>, Vec<String>, Vec<CorrectiveNote>) {
        let (mut targets, mut notes) = (Vec::new(), Vec::new());
        let mut names: Vec<String> = Vec::new();
        let Some(shapes) = scene.shapes else { return (targets, names, notes) };
        let mut unique = UniqueNames::default();
        let mut push = |deltas: &SparseDeltas| {
            let positions = Some(self.morph_target(deltas, packer));
            targets.push(MorphTarget { positions, normals: None, tangents: None });
            targets.len() - 1
        };
        for shape in shapes.shapes() {
            push(&shape.deltas);
            names.push(unique.take(&shape.name));
        }
        for corrective in shapes.correctives() {
            let target = push(&corrective.deltas);
            let parts: Vec<&str> = corrective.shapes.iter().map(|s| names[*s as usize].as_str()).collect();
            let name = unique.take(&parts.join(" × "));
            notes.push(CorrectiveNote {
                target,
                shapes: corrective.shapes.iter().map(|s| *s as usize).collect(),
            });
            names.push(name);
        }
        (targets, names, notes)
    }

    fn morph_target(&self, deltas: &SparseDeltas, packer: &mut Packer) -> Index<::gltf::json::Accessor> {
        let mut moved: Vec<(u32, Vec3)> = Vec::with_capacity(deltas.len());
        for (&vertex, &delta) in deltas.vertices.iter().zip(&deltas.deltas) {
            let metres = vector_to_metres(delta);
            moved.push((vertex, metres));
            let copies = self.copies.get(&vertex).map(Vec::as_slice).unwrap_or_default();
            moved.extend(copies.iter().map(|copy| (*copy, metres)));
        }
        if moved.is_empty() {
            // A sparse accessor must not be empty, and not all readers know one without any data.
            moved.push((0, Vec3::ZERO));
        }
        moved.sort_unstable_by_key(|(vertex, _)| *vertex);
        let (vertices, offsets): (Vec<u32>, Vec<Vec3>) = moved.into_iter().unzip();
        packer.morph_target(&vertices, &offsets, self.original.len())
    }
}

/// The format's textures begin at the top.
fn flip(uv: Vec2) -> Vec2 {
    Vec2::new(uv.x, 1.0 - uv.y)
}

/// Runs of faces with equally many corners.
fn face_runs(scene: &GltfScene<'_>) -> Vec<[u64; 2]> {
    let mut runs: Vec<[u64; 2]> = Vec::new();
    for face in scene.mesh.faces() {
        let corners = face.corner_count() as u64;
        match runs.last_mut().filter(|run| run[0] == corners) {
            Some(run) => run[1] += 1,
            None => runs.push([corners, 1]),
        }
    }
    runs
}

/// Without a material most viewers show dark metal.
fn material(scene: &GltfScene<'_>) -> Material {
    let grey = if scene.colours.is_some() { 1.0 } else { 0.8 };
    Material {
        name: Some(scene.name.into()),
        double_sided: true,
        pbr_metallic_roughness: PbrMetallicRoughness {
            base_color_factor: PbrBaseColorFactor([grey, grey, grey, 1.0]),
            metallic_factor: StrengthFactor(0.0),
            roughness_factor: StrengthFactor(0.7),
            ..PbrMetallicRoughness::default()
        },
        ..Material::default()
    }
}

/// Joints and weights of every vertex, four a set, the strongest first: a program that knows only the
/// first set keeps what matters most.
type InfluenceSet = (Vec<[u16; 4]>, Vec<[f32; 4]>);

fn influence_sets(weights: &SkinWeights) -> Vec<InfluenceSet> {
    let rows: Vec<Vec<(u16, f32)>> = (0..weights.vertex_count()).map(|v| exact_row(weights, v)).collect();
    let most = rows.iter().map(Vec::len).max().unwrap_or(1);
    let set = |set: usize| {
        let (mut joints, mut weights) = (vec![[0; 4]; rows.len()], vec![[0.0; 4]; rows.len()]);
        for (vertex, row) in rows.iter().enumerate() {
            for (slot, &(joint, weight)) in row.iter().skip(4 * set).take(4).enumerate() {
                joints[vertex][slot] = joint;
                weights[vertex][slot] = weight;
            }
        }
        (joints, weights)
    };
    (0..most.div_ceil(4)).map(set).collect()
}

/// One entry per bone, strongest first, in whole steps that sum to one exactly; an error of 3e-8.
fn exact_row(weights: &SkinWeights, vertex: usize) -> Vec<(u16, f32)> {
    let mut of_bone: BTreeMap<u16, f64> = BTreeMap::new();
    for (bone, weight) in weights.row(vertex) {
        *of_bone.entry(bone as u16).or_default() += f64::from(weight);
    }
    let mut steps: Vec<(u16, i64)> =
        of_bone.into_iter().map(|(bone, weight)| (bone, (weight * WEIGHT_STEPS).round() as i64)).collect();
    steps.sort_by_key(|(bone, steps)| (-steps, *bone));
    let missing = WEIGHT_STEPS as i64 - steps.iter().map(|(_, steps)| steps).sum::<i64>();
    if let Some(strongest) = steps.first_mut() {
        strongest.1 += missing;
    }
    let weight = |(bone, steps): (u16, i64)| (bone, (steps as f64 / WEIGHT_STEPS) as f32);
    steps.into_iter().filter(|(_, steps)| *steps > 0).map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_to_one_exactly_and_stay_sorted() {
        let row = vec![(3, 0.1), (1, 0.2), (2, 0.3), (0, 0.15), (4, 0.25), (3, 1e-9)];
        let weights = SkinWeights::from_rows(&[row], 5).expect("valid row");
        let exact = exact_row(&weights, 0);
        assert_eq!(exact.iter().map(|(bone, _)| *bone).collect::<Vec<_>>(), [2, 4, 1, 0, 3]);
        assert_eq!(exact.iter().map(|(_, weight)| *weight).sum::<f32>(), 1.0);
        let again = SkinWeights::from_rows(std::slice::from_ref(&exact), 5).expect("valid row");
        assert_eq!(exact_row(&again, 0), exact);
        assert_eq!(influence_sets(&weights).len(), 2);
    }
}
