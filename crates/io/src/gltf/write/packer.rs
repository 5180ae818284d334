//! The binary half of a GLB: arrays into one aligned buffer with the views and accessors that find them.

use super::super::metres::to_metres;
use super::super::surface::Surface;
use super::SceneError;
use ::gltf::json::accessor::{
    Accessor, ComponentType, GenericComponentType, IndexComponentType, Type, sparse,
};
use ::gltf::json::buffer::{Buffer, Target, View};
use ::gltf::json::validation::Checked::Valid;
use ::gltf::json::{Index, Root, Value};
use glam::{Affine3A, Vec2, Vec3};

/// Collects arrays; [`Packer::finish`] joins them to their document.
#[derive(Default)]
pub(super) struct Packer {
    bytes: Vec<u8>,
    views: Vec<View>,
    accessors: Vec<Accessor>,
}

/// An accessor that waits for its view: where its numbers begin, and how they are laid out.
pub(super) struct Draft {
    pub offset: usize,
    pub count: usize,
    pub kind: Type,
    pub bounds: Option<(Vec<f32>, Vec<f32>)>,
}

impl Packer {
    pub fn positions(&mut self, values: &[Vec3]) -> Index<Accessor> {
        let bounds = bounds(values.iter().map(Vec3::to_array));
        self.attribute(
            &floats(values.iter().flat_map(|v| v.to_array())),
            values.len(),
            ComponentType::F32,
            Type::Vec3,
            bounds,
        )
    }

    pub fn vec3(&mut self, values: &[Vec3]) -> Index<Accessor> {
        self.attribute(
            &floats(values.iter().flat_map(|v| v.to_array())),
            values.len(),
            ComponentType::F32,
            Type::Vec3,
            None,
        )
    }

    pub fn vec2(&mut self, values: &[Vec2]) -> Index<Accessor> {
        self.attribute(
            &floats(values.iter().flat_map(|v| v.to_array())),
            values.len(),
            ComponentType::F32,
            Type::Vec2,
            None,
        )
    }

    pub fn vec4(&mut self, values: &[[f32; 4]]) -> Index<Accessor> {
        self.attribute(
            &floats(values.iter().flatten().copied()),
            values.len(),
            ComponentType::F32,
            Type::Vec4,
            None,
        )
    }

    /// Whole numbers below 2²⁴ as f32: integers of 32 bits are not allowed in attributes.
    pub fn numbers(&mut self, values: &[u32]) -> Index<Accessor> {
        self.attribute(
            &floats(values.iter().map(|v| *v as f32)),
            values.len(),
            ComponentType::F32,
            Type::Scalar,
            None,
        )
    }

    /// Four joints a vertex, in bytes where they fit.
    pub fn joints(&mut self, values: &[[u16; 4]], bone_count: usize) -> Index<Accessor> {
        let flat = values.iter().flatten();
        if bone_count <= 256 {
            let bytes: Vec<u8> = flat.map(|v| *v as u8).collect();
            return self.attribute(&bytes, values.len(), ComponentType::U8, Type::Vec4, None);
        }
        let bytes: Vec<u8> = flat.flat_map(|v| v.to_le_bytes()).collect();
        self.attribute(&bytes, values.len(), ComponentType::U16, Type::Vec4, None)
    }

    /// Corners of triangles.
    pub fn indices(&mut self, values: &[u32], vertex_count: usize) -> Index<Accessor> {
        // The largest number of a type restarts primitives, so it must stay free.
        let (bytes, kind) = index_bytes(values, vertex_count);
        let view = self.view(&bytes, Some(Target::ElementArrayBuffer));
        self.accessor(Some(view), 0, values.len(), kind, Type::Scalar, None)
    }

    pub fn inverse_bind(&mut self, matrices: &[Affine3A]) -> Index<Accessor> {
        let rows = |m: &Affine3A| {
            let (x, y, z, t) = (m.matrix3.x_axis, m.matrix3.y_axis, m.matrix3.z_axis, m.translation);
            [x.x, x.y, x.z, 0.0, y.x, y.y, y.z, 0.0, z.x, z.y, z.z, 0.0].into_iter().chain([
                to_metres(t.x),
                to_metres(t.y),
                to_metres(t.z),
                1.0,
            ])
        };
        let view = self.view(&floats(matrices.iter().flat_map(rows)), None);
        self.accessor(Some(view), 0, matrices.len(), ComponentType::F32, Type::Mat4, None)
    }

    /// Offsets of some of `count` vertices, stored sparsely where that is smaller.
    /// `vertices` ascend and are not empty.
    pub fn morph_target(&mut self, vertices: &[u32], offsets: &[Vec3], count: usize) -> Index<Accessor> {
        let mut limits = bounds(offsets.iter().map(Vec3::to_array));
        if let Some((low, high)) = limits.as_mut().filter(|_| vertices.len() < count) {
            low.iter_mut().for_each(|v| *v = v.min(0.0));
            high.iter_mut().for_each(|v| *v = v.max(0.0));
        }
        let (index_bytes, kind) = index_bytes(vertices, count);
        if index_bytes.len() + 12 * offsets.len() >= 12 * count {
            let mut dense = vec![Vec3::ZERO; count];
            vertices.iter().zip(offsets).for_each(|(vertex, offset)| dense[*vertex as usize] = *offset);
            let bytes = floats(dense.iter().flat_map(|v| v.to_array()));
            return self.attribute(&bytes, count, ComponentType::F32, Type::Vec3, limits);
        }
        let indices = sparse::Indices {
            buffer_view: self.view(&index_bytes, None),
            byte_offset: 0u64.into(),
            component_type: Valid(IndexComponentType(kind)),
            extensions: None,
            extras: None,
        };
        let values = sparse::Values {
            buffer_view: self.view(&floats(offsets.iter().flat_map(|v| v.to_array())), None),
            byte_offset: 0u64.into(),
            extensions: None,
            extras: None,
        };
        let accessor = self.accessor(None, 0, count, ComponentType::F32, Type::Vec3, limits);
        let sparse =
            sparse::Sparse { count: vertices.len().into(), indices, values, extensions: None, extras: None };
        self.accessors[accessor.value()].sparse = Some(sparse);
        accessor
    }

    /// One view for many arrays of floats; drafts in order.
    pub fn floats_with(&mut self, values: &[f32], drafts: Vec<Draft>) -> Vec<Index<Accessor>> {
        let view = self.view(&floats(values.iter().copied()), None);
        let push =
            |d: Draft| self.accessor(Some(view), d.offset, d.count, ComponentType::F32, d.kind, d.bounds);
        drafts.into_iter().map(push).collect()
    }

    fn attribute(
        &mut self,
        bytes: &[u8],
        count: usize,
        component: ComponentType,
        kind: Type,
        bounds: Option<(Vec<f32>, Vec<f32>)>,
    ) -> Index<Accessor> {
        let view = self.view(bytes, Some(Target::ArrayBuffer));
        self.accessor(Some(view), 0, count, component, kind, bounds)
    }

    fn view(&mut self, bytes: &[u8], target: Option<Target>) -> Index<View> {
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        Index::push(
            &mut self.views,
            View {
                buffer: Index::new(0),
                byte_length: bytes.len().into(),
                byte_offset: (offset > 0).then(|| offset.into()),
                byte_stride: None,
                name: None,
                target: target.map(Valid),
                extensions: None,
                extras: None,
            },
        )
    }

    fn accessor(
        &mut self,
        view: Option<Index<View>>,
        offset: usize,
        count: usize,
        component: ComponentType,
        kind: Type,
        bounds: Option<(Vec<f32>, Vec<f32>)>,
    ) -> Index<Accessor> {
        // Bounds as the exact doubles of their floats: readers compare them with the data.
        let exact = |values: Vec<f32>| Value::from(values.into_iter().map(f64::from).collect::<Vec<f64>>());
        let (min, max) = bounds.map(|(low, high)| (exact(low), exact(high))).unzip();
        Index::push(
            &mut self.accessors,
            Accessor {
                buffer_view: view,
                byte_offset: (offset > 0).then(|| offset.into()),
                count: count.into(),
                component_type: Valid(GenericComponentType(component)),
                type_: Valid(kind),
                min,
                max,
                name: None,
                normalized: false,
                sparse: None,
                extensions: None,
                extras: None,
            },
        )
    }

    /// Materials, textures, samplers and images as members of the document, their bytes in the buffer.
    /// As text: the `gltf` crate would drop what it does not know.
    pub fn surface(&mut self, surface: &Surface) -> String {
        let mut images = Vec::with_capacity(surface.images.len());
        for image in &surface.images {
            let mut json = image.json.clone();
            json.insert("bufferView".into(), self.view(&image.bytes, None).value().into());
            images.push(Value::Object(json));
        }
        let mut text = String::new();
        for (name, list) in [
            ("materials", &surface.materials),
            ("textures", &surface.textures),
            ("samplers", &surface.samplers),
            ("images", &images),
        ] {
            if !list.is_empty() {
                let list = serde_json::to_string(list).expect("JSON that was read can be written");
                text.push_str(&format!(",\"{name}\":{list}"));
            }
        }
        text
    }

    /// The GLB: header, JSON chunk padded with spaces, binary chunk padded with zeros. `members` follow
    /// those of the document.
    pub fn finish(self, mut root: Root, members: &str) -> Result<Vec<u8>, SceneError> {
        let byte_length = self.bytes.len().into();
        root.buffers = vec![Buffer { byte_length, name: None, uri: None, extensions: None, extras: None }];
        root.buffer_views = self.views;
        root.accessors = self.accessors;
        let mut json = root.to_vec().expect("a document of strings and finite numbers serialises");
        json.pop();
        json.extend_from_slice(members.as_bytes());
        json.push(b'}');
        json.resize(json.len().next_multiple_of(4), b' ');
        let length = 12 + 8 + json.len() + 8 + self.bytes.len();
        let most = u32::MAX as usize;
        if length > most {
            return Err(SceneError::TooLarge { what: "bytes of the file", got: length, most });
        }
        let mut out = Vec::with_capacity(length);
        out.extend_from_slice(b"glTF");
        for word in [2, length as u32, json.len() as u32] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(b"JSON");
        out.extend_from_slice(&json);
        out.extend_from_slice(&(self.bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(b"BIN\0");
        out.extend_from_slice(&self.bytes);
        Ok(out)
    }
}

fn floats(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

fn index_bytes(values: &[u32], count: usize) -> (Vec<u8>, ComponentType) {
    if count < usize::from(u16::MAX) {
        return (values.iter().flat_map(|v| (*v as u16).to_le_bytes()).collect(), ComponentType::U16);
    }
    (values.iter().flat_map(|v| v.to_le_bytes()).collect(), ComponentType::U32)
}

/// Lowest and highest of each component.
pub(super) fn bounds<const N: usize>(values: impl Iterator<Item = [f32; N]>) -> Option<(Vec<f32>, Vec<f32>)> {
    let widen = |(low, high): ([f32; N], [f32; N]), value: [f32; N]| {
        (std::array::from_fn(|i| low[i].min(value[i])), std::array::from_fn(|i| high[i].max(value[i])))
    };
    let (low, high) = values.map(|v| (v, v)).reduce(|limits, (value, _)| widen(limits, value))?;
    Some((low.to_vec(), high.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_start_on_words_and_small_targets_are_sparse() {
        let mut packer = Packer::default();
        packer.indices(&[0, 1, 2], 3);
        packer.positions(&[Vec3::ONE; 3]);
        packer.morph_target(&[1], &[Vec3::X], 1000);
        packer.morph_target(&[0, 1, 2], &[Vec3::X; 3], 3);
        assert!(packer.views.iter().all(|view| view.byte_offset.unwrap_or_default().0 % 4 == 0));
        assert_eq!(packer.accessors.iter().filter(|a| a.sparse.is_some()).count(), 1);
        assert_eq!(packer.accessors[2].min, Some(Value::from(vec![0.0, 0.0, 0.0])));
        assert_eq!(packer.accessors[3].min, Some(Value::from(vec![1.0, 0.0, 0.0])));
    }
}
