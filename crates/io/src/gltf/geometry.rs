//! Triangles of every mesh node of the scene, merged into one mesh: a segment a primitive, strips and
//! fans turned into triangles, and vertices that our own writer split at UV seams welded again.

use super::accessor::Accessors;
use super::extras::{MeshExtras, PrimitivePlan};
use super::metres::vector_to_cm;
use super::nodes::Nodes;
use crate::ParseError;
use crate::faces::names_a_vertex_twice;
use crate::names::UniqueNames;
use ::gltf::json::Root;
use ::gltf::json::mesh::{Mode, Primitive, Semantic};
use ::gltf::json::validation::Checked;
use glam::{Vec2, Vec3};
use std::collections::BTreeMap;
use std::ops::Range;
use understudy_core::{Face, MeshParts};

/// One primitive of one node inside the merged mesh.
pub(super) struct Part<'a> {
    pub node: usize,
    pub mesh: usize,
    pub skin: Option<usize>,
    pub primitive: &'a Primitive,
    /// Such as `mesh 2 primitive 0`.
    pub place: String,
    /// Its vertices in the merged mesh.
    pub vertices: Range<usize>,
    /// Vertices in the file.
    pub stored: usize,
    /// For each of its vertices the one in the file that it was taken from.
    pub picks: Vec<u32>,
    /// Whether our own writer made it: then its bind space is the original's and stays untouched.
    pub ours: bool,
}

/// The merged mesh before it is checked, and where each primitive went.
#[derive(Default)]
pub(super) struct Geometry<'a> {
    pub mesh: MeshParts,
    /// Linear RGB; empty unless some primitive has colours.
    pub colours: Vec<Vec3>,
    pub parts: Vec<Part<'a>>,
    /// The material of every face.
    pub materials: Vec<Option<u32>>,
    /// Faces that named a vertex twice.
    dropped: usize,
}

/// The accessor of an attribute.
pub(super) fn attribute(primitive: &Primitive, semantic: Semantic) -> Option<usize> {
    primitive.attributes.get(&Checked::Valid(semantic)).map(|index| index.value())
}

/// Values of a part's own vertices out of values of the file's.
pub(super) fn pick<T: Copy>(values: &[T], picks: &[u32]) -> Vec<T> {
    picks.iter().map(|&vertex| values[vertex as usize]).collect()
}

impl<'a> Geometry<'a> {
    pub fn read(
        root: &'a Root,
        nodes: &Nodes,
        extras: &BTreeMap<usize, MeshExtras>,
        accessors: &Accessors<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, ParseError> {
        let mut out = Self::default();
        let mut names = UniqueNames::default();
        for (node, data) in root.nodes.iter().enumerate() {
            let Some(mesh) = data.mesh.map(|mesh| mesh.value()).filter(|_| nodes.in_scene[node]) else {
                continue;
            };
            let skin = data.skin.map(|skin| skin.value());
            let all = root.meshes[mesh].primitives.as_slice();
            let noted = extras.get(&mesh).is_some_and(|extras| extras.understudy.is_some());
            let groups = if noted && share_vertices(all) { vec![all] } else { all.chunks(1).collect() };
            for (index, group) in groups.into_iter().enumerate() {
                let primitive = &group[0];
                let place = format!("mesh {mesh} primitive {index}");
                let mode = match primitive.mode {
                    Checked::Valid(mode @ (Mode::Triangles | Mode::TriangleStrip | Mode::TriangleFan)) => {
                        mode
                    }
                    _ => {
                        warnings.push(format!("{place}: points and lines are skipped"));
                        continue;
                    }
                };
                let Some(positions) = attribute(primitive, Semantic::Positions) else {
                    warnings.push(format!("{place}: has no positions and is skipped"));
                    continue;
                };
                let positions = accessors.vec3(positions)?;
                let name = segment_name(root, nodes, node, mesh, index);
                let none = MeshExtras::default();
                let plan = PrimitivePlan::read(
                    extras.get(&mesh).unwrap_or(&none),
                    primitive,
                    &place,
                    &positions,
                    accessors,
                    warnings,
                )?;
                let part = Part {
                    node,
                    mesh,
                    skin,
                    primitive,
                    place,
                    vertices: out.mesh.positions.len()..out.mesh.positions.len() + plan.picks.len(),
                    stored: positions.len(),
                    picks: plan.picks.clone(),
                    ours: plan.ours,
                };
                out.append(
                    part,
                    group,
                    mode,
                    &positions,
                    plan,
                    |wanted| names.take(wanted.unwrap_or(&name)),
                    accessors,
                )?;
            }
        }
        out.finish(warnings);
        Ok(out)
    }

    fn append(
        &mut self,
        part: Part<'a>,
        group: &[Primitive],
        mode: Mode,
        positions: &[Vec3],
        plan: PrimitivePlan,
        mut name: impl FnMut(Option<&str>) -> String,
        accessors: &Accessors<'_>,
    ) -> Result<(), ParseError> {
        let start = part.vertices.start as u32;
        let mut all = Vec::new();
        let mut materials = Vec::new();
        for primitive in group {
            all.extend(triangles(&part, primitive, mode, accessors)?);
            materials.resize(all.len(), primitive.material.map(|material| material.value() as u32));
        }
        let corners = plan.faces(&all);
        let texture = match attribute(part.primitive, Semantic::TexCoords(0)) {
            Some(index) => Some(flipped(attribute_values(accessors.vec2(index)?, &part, "TEXCOORD_0")?)),
            None => None,
        };
        // Corners without texture coordinates name NONE until all primitives are known.
        let uv_start = self.mesh.uvs.len() as u32;
        let table = texture.as_deref().map(|texture| plan.texture_table(texture));
        let mut triangle = 0;
        for corner in &corners {
            let material = materials[triangle];
            triangle += corner.corner_count() - 2;
            let face = corner.map(|stored| start + plan.welded[stored as usize]);
            if names_a_vertex_twice(&face) {
                self.dropped += 1;
                continue;
            }
            self.mesh.faces.push(face);
            self.materials.push(material);
            let uv =
                |stored: u32| table.as_ref().map_or(Face::NONE, |(_, of)| uv_start + of[stored as usize]);
            let [a, b, c, d] = corner.raw();
            self.mesh.face_uvs.push(match corner.corner_count() {
                3 => Face::triangle(uv(a), uv(b), uv(c)),
                _ => Face::quad(uv(a), uv(b), uv(c), uv(d)),
            });
        }
        self.mesh.uvs.extend(table.into_iter().flat_map(|(table, _)| table));
        self.mesh.positions.extend(part.picks.iter().map(|&v| vector_to_cm(positions[v as usize])));

        let first = self.mesh.segments.names.len() as u32;
        match plan.segments {
            Some((names, of_vertex)) => {
                self.mesh.segments.names.extend(names.iter().map(|wanted| name(Some(wanted))));
                self.mesh.segments.of_vertex.extend(of_vertex.iter().map(|s| first + s));
            }
            None => {
                self.mesh.segments.names.push(name(None));
                self.mesh.segments.of_vertex.extend(std::iter::repeat_n(first, part.vertices.len()));
            }
        }
        if let Some(colours) = attribute(part.primitive, Semantic::Colors(0)) {
            let colours = attribute_values(read_colours(colours, accessors)?, &part, "COLOR_0")?;
            self.colours.resize(part.vertices.start, Vec3::ONE);
            self.colours.extend(pick(&colours, &part.picks));
        }
        self.parts.push(part);
        Ok(())
    }

    fn finish(&mut self, warnings: &mut Vec<String>) {
        warnings.extend(crate::faces::dropped_warning(self.dropped));
        if !self.colours.is_empty() {
            self.colours.resize(self.mesh.positions.len(), Vec3::ONE);
        }
        let bare = self.mesh.face_uvs.iter().filter(|face| face.raw()[0] == Face::NONE).count();
        if self.mesh.uvs.is_empty() {
            self.mesh.face_uvs.clear();
        } else if bare > 0 {
            warnings.push(format!("{bare} faces have no texture coordinates and share (0, 0)"));
            let origin = self.mesh.uvs.len() as u32;
            self.mesh.uvs.push(Vec2::ZERO);
            for (face, shape) in self.mesh.face_uvs.iter_mut().zip(&self.mesh.faces) {
                if face.raw()[0] == Face::NONE {
                    *face = shape.map(|_| origin);
                }
            }
        }
    }
}

/// glTF puts the origin of textures at the top, everything else here at the bottom.
fn flipped(texture: Vec<Vec2>) -> Vec<Vec2> {
    texture.into_iter().map(|uv| Vec2::new(uv.x, 1.0 - uv.y)).collect()
}

fn segment_name(root: &Root, nodes: &Nodes, node: usize, mesh: usize, primitive: usize) -> String {
    let data = &root.meshes[mesh];
    let base = nodes.names[node].clone();
    if data.primitives.len() == 1 {
        return base;
    }
    let material = data.primitives[primitive].material.and_then(|index| root.materials.get(index.value()));
    match material.and_then(|material| material.name.as_ref()) {
        Some(material) => format!("{base} {material}"),
        None => format!("{base} {primitive}"),
    }
}

/// Checks that an attribute has a value for every vertex of the file.
pub(super) fn attribute_values<T>(values: Vec<T>, part: &Part<'_>, name: &str) -> Result<Vec<T>, ParseError> {
    if values.len() == part.stored {
        return Ok(values);
    }
    let problem = format!("{} values of {name} for {} positions", values.len(), part.stored);
    Err(ParseError::new(part.place.clone(), problem))
}

fn read_colours(index: usize, accessors: &Accessors<'_>) -> Result<Vec<Vec3>, ParseError> {
    let rgba = accessors.width(index)? == 4;
    let numbers = accessors.floats(index, if rgba { 4 } else { 3 })?;
    Ok(numbers.chunks_exact(if rgba { 4 } else { 3 }).map(Vec3::from_slice).collect())
}

/// Whether primitives are parts of one list of triangles over the same vertices, as our own writer splits
/// them where the material changes.
fn share_vertices(primitives: &[Primitive]) -> bool {
    let targets = |primitive: &Primitive| -> Vec<_> {
        primitive.targets.iter().flatten().map(|target| target.positions.map(|index| index.value())).collect()
    };
    let same = |pair: &[Primitive]| {
        pair[0].attributes == pair[1].attributes && targets(&pair[0]) == targets(&pair[1])
    };
    let plain = |primitive: &Primitive| primitive.mode == Checked::Valid(Mode::Triangles);
    primitives.len() > 1 && primitives.iter().all(plain) && primitives.windows(2).all(same)
}

/// Vertices of the file, three a triangle.
fn triangles(
    part: &Part<'_>,
    primitive: &Primitive,
    mode: Mode,
    accessors: &Accessors<'_>,
) -> Result<Vec<[u32; 3]>, ParseError> {
    let fail = |problem: String| Err(ParseError::new(part.place.clone(), problem));
    let indices = match primitive.indices {
        Some(index) => accessors.integers(index.value(), 1)?,
        None => {
            accessors.charge(&part.place, part.stored as u64)?;
            (0..part.stored as u32).collect()
        }
    };
    if let Some(place) = indices.iter().position(|index| *index as usize >= part.stored) {
        return fail(format!("index {place} names vertex {}, but there are {}", indices[place], part.stored));
    }
    let count = indices.len().saturating_sub(2);
    accessors.charge(&part.place, 3 * count as u64)?;
    Ok(match mode {
        Mode::TriangleStrip => {
            (0..count).map(|i| [indices[i], indices[i + 1 + i % 2], indices[i + 2 - i % 2]]).collect()
        }
        Mode::TriangleFan => (0..count).map(|i| [indices[i + 1], indices[i + 2], indices[0]]).collect(),
        _ if indices.len() % 3 != 0 => {
            return fail(format!("{} indices do not make triangles", indices.len()));
        }
        _ => indices.chunks_exact(3).map(|t| [t[0], t[1], t[2]]).collect(),
    })
}
