//! How a file looks: materials with their textures and images, and the vertex attributes that only shading
//! reads. Nothing of it is understood here; it is carried from a file that is read to one that is written.

use super::accessor::Accessors;
use super::document::{Document, Resolve};
use super::geometry::{Part, attribute, attribute_values, pick};
use super::uri::decode_data_uri;
use ::gltf::json::mesh::Semantic;
use glam::{DAffine3, DMat3, Vec2, Vec3};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The look of a file, unchanged but for where its bytes lie.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Surface {
    pub(super) materials: Vec<Value>,
    pub(super) textures: Vec<Value>,
    pub(super) samplers: Vec<Value>,
    pub(super) images: Vec<Image>,
    pub(super) extensions_used: Vec<String>,
    pub(super) extensions_required: Vec<String>,
    /// The material of every face of the merged mesh.
    pub(super) of_face: Vec<Option<u32>>,
    /// Unit normals in the space of the merged mesh, `[V]`; `None` where some primitive has none.
    pub(super) normals: Option<Vec<Vec3>>,
    /// Unit tangents and their handedness, `[V]`.
    pub(super) tangents: Option<Vec<[f32; 4]>>,
    /// Sets of texture coordinates beyond the first, `[V]` each, as the file has them.
    pub(super) uv_sets: BTreeMap<u32, Vec<Vec2>>,
    /// The fourth number of vertex colours, `[V]`.
    pub(super) opacities: Option<Vec<f32>>,
    /// What the file has and this does not hold, such as `3 cameras`.
    pub left_out: Vec<String>,
}

/// An image file inside the document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Image {
    /// Without `uri` and `bufferView`.
    pub json: serde_json::Map<String, Value>,
    pub bytes: Vec<u8>,
}

/// The parts of a document that are carried as they are.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Look {
    materials: Vec<Value>,
    textures: Vec<Value>,
    samplers: Vec<Value>,
    images: Vec<serde_json::Map<String, Value>>,
    cameras: Vec<Value>,
    #[serde(rename = "extensionsUsed")]
    extensions_used: Vec<String>,
    #[serde(rename = "extensionsRequired")]
    extensions_required: Vec<String>,
}

impl Surface {
    /// Materials, textures and images of a document. An image that cannot be found is left out together
    /// with all materials: half of a look is worse than none.
    pub(super) fn read(document: &Document, resolve: &Resolve<'_>) -> Self {
        let look: Look = serde_json::from_slice(&document.json).unwrap_or_default();
        let mut surface = Self::default();
        surface.leave_out(look.cameras.len(), "cameras");
        let mut lost = 0;
        for mut json in look.images {
            let bytes = image_bytes(&json, document, resolve);
            if let (Some(uri), Some(_), None) = (json.get("uri"), &bytes, json.get("mimeType")) {
                let kind = mime_type(uri.as_str().unwrap_or_default());
                json.insert("mimeType".into(), kind.into());
            }
            json.remove("uri");
            json.remove("bufferView");
            match bytes {
                Some(bytes) => surface.images.push(Image { json, bytes }),
                None => lost += 1,
            }
        }
        if lost > 0 {
            surface.leave_out(lost, "images that were not found");
            surface.leave_out(look.materials.len(), "materials");
            surface.leave_out(look.textures.len(), "textures");
            return Self { left_out: surface.left_out, ..Self::default() };
        }
        surface.materials = look.materials;
        surface.textures = look.textures;
        surface.samplers = look.samplers;
        // Extensions of what is not carried (compression, lights) must not be announced.
        let text = [&surface.materials, &surface.textures, &surface.samplers]
            .map(|list| serde_json::to_string(list).expect("JSON that was read can be written"));
        let carried = |name: &String| text.iter().any(|text| text.contains(&format!("\"{name}\"")));
        surface.extensions_used = look.extensions_used.into_iter().filter(carried).collect();
        surface.extensions_required = look.extensions_required.into_iter().filter(carried).collect();
        surface
    }

    /// Attributes of the merged mesh's vertices. `spaces`: where a part was moved to.
    pub(super) fn read_attributes(
        &mut self,
        parts: &[Part<'_>],
        spaces: &[Option<DAffine3>],
        accessors: &Accessors<'_>,
    ) {
        let count = parts.last().map_or(0, |part| part.vertices.end);
        let has = |semantic: &dyn Fn() -> Semantic| {
            parts.iter().filter(|part| attribute(part.primitive, semantic()).is_some()).count()
        };
        // Attributes that do not fit are not worth an error: nothing but shading reads them.
        let rows = |part: &Part<'_>, semantic: Semantic, width: usize| -> Option<Vec<f32>> {
            let values = accessors.floats(attribute(part.primitive, semantic)?, width).ok()?;
            let rows = attribute_values(values.chunks_exact(width).collect(), part, "attribute").ok()?;
            Some(pick(&rows, &part.picks).concat())
        };
        let vectors = |semantic: &dyn Fn() -> Semantic, width: usize| -> Option<Vec<Vec<f32>>> {
            parts.iter().map(|part| rows(part, semantic(), width)).collect()
        };
        if let Some(normals) = vectors(&|| Semantic::Normals, 3) {
            let turned = normals.iter().zip(spaces).map(|(rows, space)| {
                // Normals stay at right angles under the inverse transpose.
                turn(rows, 3, space.map(|space| space.matrix3.inverse().transpose()))
            });
            let turned = turned.collect::<Option<Vec<_>>>().map(|parts| parts.concat());
            self.normals = turned.map(|rows| rows.chunks_exact(3).map(Vec3::from_slice).collect());
        }
        if let Some(tangents) = vectors(&|| Semantic::Tangents, 4).filter(|_| self.normals.is_some()) {
            let turned =
                tangents.iter().zip(spaces).map(|(rows, space)| turn(rows, 4, space.map(|s| s.matrix3)));
            let turned = turned.collect::<Option<Vec<_>>>().map(|parts| parts.concat());
            self.tangents =
                turned.map(|rows| rows.chunks_exact(4).map(|t| [t[0], t[1], t[2], t[3]]).collect());
        }
        if self.tangents.is_none() {
            self.leave_out(has(&|| Semantic::Tangents), "primitives' tangents");
        }
        for set in (1..=7u32).filter(|set| has(&|| Semantic::TexCoords(*set)) > 0) {
            let mut uvs = vec![Vec2::ZERO; count];
            for part in parts {
                if let Some(rows) = rows(part, Semantic::TexCoords(set), 2) {
                    let rows = rows.chunks_exact(2).map(Vec2::from_slice);
                    uvs[part.vertices.clone()].iter_mut().zip(rows).for_each(|(slot, uv)| *slot = uv);
                }
            }
            self.uv_sets.insert(set, uvs);
        }
        let rgba = |part: &Part<'_>| rows(part, Semantic::Colors(0), 4);
        if parts.iter().any(|part| rgba(part).is_some()) {
            let mut opacities = vec![1.0; count];
            for part in parts {
                for (slot, colour) in opacities[part.vertices.clone()]
                    .iter_mut()
                    .zip(rgba(part).unwrap_or_default().chunks_exact(4))
                {
                    *slot = colour[3].clamp(0.0, 1.0);
                }
            }
            self.opacities = Some(opacities);
        }
        self.leave_out(has(&|| Semantic::Colors(1)), "primitives' second vertex colours");
        let targets = parts.iter().flat_map(|part| part.primitive.targets.iter().flatten());
        let shaded = targets.filter(|target| target.normals.is_some() || target.tangents.is_some());
        self.leave_out(shaded.count(), "morph targets' normals and tangents");
    }

    /// The look without what depends on the shape of the surface.
    pub fn for_another_shape(&self) -> Self {
        Self { normals: None, tangents: None, ..self.clone() }
    }

    /// Materials, textures and images, counted.
    pub fn counts(&self) -> [usize; 3] {
        [self.materials.len(), self.textures.len(), self.images.len()]
    }

    fn leave_out(&mut self, count: usize, what: &str) {
        if count > 0 {
            self.left_out.push(format!("{count} {what}"));
        }
    }
}

fn image_bytes(
    json: &serde_json::Map<String, Value>,
    document: &Document,
    resolve: &Resolve<'_>,
) -> Option<Vec<u8>> {
    if let Some(uri) = json.get("uri") {
        let uri = uri.as_str()?;
        return match decode_data_uri(uri) {
            Some(decoded) => decoded.ok(),
            None => resolve(uri).ok(),
        };
    }
    let view = usize::try_from(json.get("bufferView")?.as_u64()?).ok()?;
    let view = document.root.buffer_views.get(view)?;
    let start = usize::try_from(view.byte_offset.unwrap_or_default().0).ok()?;
    let end = start.checked_add(usize::try_from(view.byte_length.0).ok()?)?;
    document.buffers.get(view.buffer.value())?.get(start..end).map(<[u8]>::to_vec)
}

/// By the URI's extension or media type: the format knows a few kinds of images only.
fn mime_type(uri: &str) -> &'static str {
    let lower = uri.to_ascii_lowercase();
    let starts = |kind: &str| lower.starts_with(&format!("data:{kind}"));
    match () {
        () if starts("image/jpeg") || lower.ends_with(".jpg") || lower.ends_with(".jpeg") => "image/jpeg",
        () if starts("image/webp") || lower.ends_with(".webp") => "image/webp",
        () if starts("image/ktx2") || lower.ends_with(".ktx2") => "image/ktx2",
        () => "image/png",
    }
}

/// The first three numbers of every row turned and made unit again; `None` where that is impossible.
fn turn(rows: &[f32], width: usize, matrix: Option<DMat3>) -> Option<Vec<f32>> {
    let mut out = rows.to_vec();
    for row in out.chunks_exact_mut(width) {
        let vector = Vec3::from_slice(row).as_dvec3();
        let turned = match matrix {
            None if (vector.length() - 1.0).abs() < 1e-4 => continue,
            None => vector.try_normalize()?,
            Some(matrix) => (matrix * vector).try_normalize()?,
        };
        row[..3].copy_from_slice(&turned.as_vec3().to_array());
    }
    Some(out)
}
