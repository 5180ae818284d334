//! Numbers out of glTF accessors, every byte range checked before anything is allocated: component
//! types, normalised integers, strides, sparse overrides and accessors of zeros.

use crate::ParseError;
use ::gltf::json::accessor::{ComponentType, Type};
use ::gltf::json::validation::Checked;
use ::gltf::json::{Accessor, Root};
use glam::{DAffine3, DMat3, DVec3, Vec2, Vec3};
use std::cell::Cell;

/// Numbers that any file may ask for beyond four times its size: 256 MiB as f32. Shared accessors and
/// instanced meshes let a small file describe a large scene; a hostile one must not fill the memory.
const FREE_NUMBERS: u64 = 1 << 26;

/// Reads accessors of one document.
pub(super) struct Accessors<'a> {
    root: &'a Root,
    buffers: &'a [Vec<u8>],
    budget: Cell<u64>,
}

/// An accessor's layout with all of its indices checked.
struct Layout<'a> {
    accessor: &'a Accessor,
    component: ComponentType,
    width: usize,
    count: usize,
}

impl<'a> Accessors<'a> {
    pub fn new(root: &'a Root, buffers: &'a [Vec<u8>]) -> Self {
        let bytes: u64 = buffers.iter().map(|b| b.len() as u64).sum();
        Self { root, buffers, budget: Cell::new(FREE_NUMBERS + 4 * bytes) }
    }

    /// Accounts for `numbers` that are about to be allocated.
    pub fn charge(&self, place: &str, numbers: u64) -> Result<(), ParseError> {
        let left = self.budget.get().checked_sub(numbers);
        let left = left.ok_or_else(|| {
            ParseError::new(place, format!("asks for {numbers} numbers, more than a file of this size may"))
        })?;
        self.budget.set(left);
        Ok(())
    }

    /// How many components an element has.
    pub fn width(&self, index: usize) -> Result<usize, ParseError> {
        Ok(self.layout(index)?.width)
    }

    /// All components in a row, as finite floats; `width` components an element.
    pub fn floats(&self, index: usize, width: usize) -> Result<Vec<f32>, ParseError> {
        let layout = self.layout(index)?;
        if layout.width != width {
            return Err(bad(index, format!("{} numbers an element, {width} expected", layout.width)));
        }
        let (component, normalized) = (layout.component, layout.accessor.normalized);
        let values = self.decode(index, &layout, |bytes| to_float(component, normalized, bytes))?;
        match values.iter().position(|v| !v.is_finite()) {
            None => Ok(values),
            Some(place) => Err(bad(index, format!("element {} is not finite", place / width))),
        }
    }

    /// All components in a row, as unsigned integers.
    pub fn integers(&self, index: usize, width: usize) -> Result<Vec<u32>, ParseError> {
        let layout = self.layout(index)?;
        if layout.width != width {
            return Err(bad(index, format!("{} numbers an element, {width} expected", layout.width)));
        }
        let component = layout.component;
        if !matches!(component, ComponentType::U8 | ComponentType::U16 | ComponentType::U32) {
            return Err(bad(index, "holds indices, which must be unsigned integers"));
        }
        self.decode(index, &layout, |bytes| to_integer(component, bytes))
    }

    pub fn vec2(&self, index: usize) -> Result<Vec<Vec2>, ParseError> {
        Ok(self.floats(index, 2)?.chunks_exact(2).map(Vec2::from_slice).collect())
    }

    pub fn vec3(&self, index: usize) -> Result<Vec<Vec3>, ParseError> {
        Ok(self.floats(index, 3)?.chunks_exact(3).map(Vec3::from_slice).collect())
    }

    /// 4×4 matrices stored by columns; the fourth row is taken as `0 0 0 1`.
    pub fn affine(&self, index: usize) -> Result<Vec<DAffine3>, ParseError> {
        let column = |m: &[f32]| DVec3::new(m[0].into(), m[1].into(), m[2].into());
        let matrix = |m: &[f32]| DAffine3 {
            matrix3: DMat3::from_cols(column(m), column(&m[4..]), column(&m[8..])),
            translation: column(&m[12..]),
        };
        Ok(self.floats(index, 16)?.chunks_exact(16).map(matrix).collect())
    }

    fn layout(&self, index: usize) -> Result<Layout<'a>, ParseError> {
        let accessor = self.root.accessors.get(index).ok_or_else(|| bad(index, "does not exist"))?;
        let (Checked::Valid(component), Checked::Valid(kind)) = (accessor.component_type, accessor.type_)
        else {
            return Err(bad(index, "has an unknown type"));
        };
        // Columns of small matrices are padded in ways that nothing read here uses.
        if matches!(kind, Type::Mat2 | Type::Mat3 | Type::Mat4) && component.0 != ComponentType::F32 {
            return Err(bad(index, "holds matrices that are not of 32-bit floats"));
        }
        let count = usize::try_from(accessor.count.0).map_err(|_| bad(index, "has too many elements"))?;
        Ok(Layout { accessor, component: component.0, width: kind.multiplicity(), count })
    }

    fn decode<T: Copy + Default>(
        &self,
        index: usize,
        layout: &Layout<'_>,
        convert: impl Fn(&[u8]) -> T,
    ) -> Result<Vec<T>, ParseError> {
        let (size, width) = (layout.component.size(), layout.width);
        let place = format!("accessor {index}");
        let numbers = (layout.count as u64).saturating_mul(width as u64);
        let mut values = Vec::new();
        match layout.accessor.buffer_view {
            Some(view) => {
                let offset = layout.accessor.byte_offset.unwrap_or_default().0;
                let (bytes, stride) =
                    self.elements(&place, view.value(), offset, layout.count, size * width)?;
                self.charge(&place, numbers)?;
                values.reserve_exact(layout.count * width);
                for element in 0..layout.count {
                    let start = element * stride;
                    values.extend(bytes[start..start + size * width].chunks_exact(size).map(&convert));
                }
            }
            None => {
                self.charge(&place, numbers)?;
                values.resize(layout.count * width, T::default());
            }
        }
        let Some(sparse) = &layout.accessor.sparse else { return Ok(values) };
        let count = usize::try_from(sparse.count.0).unwrap_or(usize::MAX);
        if count > layout.count {
            return Err(bad(index, format!("{count} sparse values for {} elements", layout.count)));
        }
        let Checked::Valid(kind) = sparse.indices.component_type else {
            return Err(bad(index, "has sparse indices of an unknown type"));
        };
        let indices = &sparse.indices;
        let (targets, target_stride) =
            self.elements(&place, indices.buffer_view.value(), indices.byte_offset.0, count, kind.0.size())?;
        let sources = &sparse.values;
        let (bytes, stride) =
            self.elements(&place, sources.buffer_view.value(), sources.byte_offset.0, count, size * width)?;
        for entry in 0..count {
            let at = entry * target_stride;
            let target = to_integer(kind.0, &targets[at..at + kind.0.size()]) as usize;
            if target >= layout.count {
                return Err(bad(
                    index,
                    format!("sparse index {target}, but there are {} elements", layout.count),
                ));
            }
            let element = &bytes[entry * stride..entry * stride + size * width];
            for (slot, number) in values[target * width..].iter_mut().zip(element.chunks_exact(size)) {
                *slot = convert(number);
            }
        }
        Ok(values)
    }

    /// The bytes of `count` elements of `size` bytes in a buffer view, and the step between them.
    fn elements(
        &self,
        place: &str,
        view: usize,
        offset: u64,
        count: usize,
        size: usize,
    ) -> Result<(&'a [u8], usize), ParseError> {
        let fail = |problem: String| ParseError::new(place, problem);
        let data = self
            .root
            .buffer_views
            .get(view)
            .ok_or_else(|| fail(format!("buffer view {view} does not exist")))?;
        let buffer = self.buffers.get(data.buffer.value());
        let buffer = buffer.ok_or_else(|| fail(format!("buffer view {view} is in no buffer")))?;
        let start = data.byte_offset.unwrap_or_default().0;
        let end = start.checked_add(data.byte_length.0).filter(|end| *end <= buffer.len() as u64);
        let end = end.ok_or_else(|| {
            fail(format!("buffer view {view} ends beyond its buffer of {} bytes", buffer.len()))
        })?;
        let stride = data.byte_stride.map_or(size, |stride| stride.0);
        let needed = match count as u64 {
            0 => Some(0),
            count => (count - 1).checked_mul(stride as u64).and_then(|n| n.checked_add(size as u64)),
        };
        let last = needed.and_then(|n| n.checked_add(offset)).and_then(|n| n.checked_add(start));
        match last.filter(|last| *last <= end) {
            Some(last) => Ok((&buffer[(start + offset) as usize..last as usize], stride)),
            None => Err(fail(format!(
                "{count} elements need more than the {} bytes of buffer view {view}",
                end - start
            ))),
        }
    }
}

fn bad(index: usize, problem: impl ToString) -> ParseError {
    ParseError::new(format!("accessor {index}"), problem)
}

fn to_float(component: ComponentType, normalized: bool, bytes: &[u8]) -> f32 {
    let (value, full) = match component {
        ComponentType::I8 => (f32::from(bytes[0] as i8), 127.0),
        ComponentType::U8 => (f32::from(bytes[0]), 255.0),
        ComponentType::I16 => (f32::from(i16::from_le_bytes([bytes[0], bytes[1]])), 32767.0),
        ComponentType::U16 => (f32::from(u16::from_le_bytes([bytes[0], bytes[1]])), 65535.0),
        ComponentType::U32 => (to_integer(component, bytes) as f32, 4_294_967_295.0),
        ComponentType::F32 => return f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
    };
    if normalized { (value / full).max(-1.0) } else { value }
}

fn to_integer(component: ComponentType, bytes: &[u8]) -> u32 {
    match component.size() {
        1 => bytes[0].into(),
        2 => u16::from_le_bytes([bytes[0], bytes[1]]).into(),
        _ => u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One buffer of 24 bytes, `0 1 2 …`, a whole view, a strided view and a view of its last 4 bytes.
    fn with_accessor(accessor: &str) -> (Root, Vec<Vec<u8>>) {
        let text = format!(
            r#"{{"asset":{{"version":"2.0"}},"buffers":[{{"byteLength":24}}],
            "bufferViews":[{{"buffer":0,"byteLength":24}},{{"buffer":0,"byteLength":24,"byteStride":8}},
                {{"buffer":0,"byteOffset":20,"byteLength":4}},{{"buffer":0,"byteOffset":20,"byteLength":5}}],
            "accessors":[{accessor}]}}"#
        );
        (serde_json::from_str(&text).expect("valid JSON"), vec![(0..24).collect()])
    }

    fn floats(accessor: &str, width: usize) -> Result<Vec<f32>, ParseError> {
        let (root, buffers) = with_accessor(accessor);
        Accessors::new(&root, &buffers).floats(0, width)
    }

    #[test]
    fn strides_offsets_and_normalised_integers() {
        let plain =
            floats(r#"{"bufferView":1,"byteOffset":2,"componentType":5121,"count":3,"type":"VEC2"}"#, 2);
        assert_eq!(plain, Ok(vec![2.0, 3.0, 10.0, 11.0, 18.0, 19.0]));
        let scaled =
            floats(r#"{"bufferView":2,"componentType":5121,"count":4,"type":"SCALAR","normalized":true}"#, 1);
        assert_eq!(scaled, Ok([20.0, 21.0, 22.0, 23.0].map(|v: f32| v / 255.0).to_vec()));
        let short = floats(r#"{"bufferView":2,"componentType":5122,"count":2,"type":"SCALAR"}"#, 1);
        assert_eq!(short, Ok(vec![(20 + 21 * 256) as f32, (22 + 23 * 256) as f32]));
    }

    #[test]
    fn sparse_values_lie_over_zeros() {
        let sparse = r#"{"componentType":5121,"count":5,"type":"SCALAR","sparse":{"count":2,
            "indices":{"bufferView":0,"byteOffset":1,"componentType":5121},"values":{"bufferView":2}}}"#;
        assert_eq!(floats(sparse, 1), Ok(vec![0.0, 20.0, 21.0, 0.0, 0.0]));
        assert!(floats(&sparse.replace("\"count\":5", "\"count\":2"), 1).is_err(), "index 2 of 2");
        assert!(
            floats(&sparse.replace("{\"count\":2", "{\"count\":9"), 1).is_err(),
            "more sparse than elements"
        );
        assert_eq!(floats(r#"{"componentType":5126,"count":3,"type":"SCALAR"}"#, 1), Ok(vec![0.0; 3]));
    }

    #[test]
    fn whatever_does_not_fit_is_refused_before_allocating() {
        for bad in [
            r#"{"bufferView":0,"componentType":5126,"count":7,"type":"SCALAR"}"#,
            r#"{"bufferView":0,"componentType":5126,"count":18446744073709551615,"type":"MAT4"}"#,
            r#"{"bufferView":0,"byteOffset":18446744073709551615,"componentType":5126,"count":1,"type":"SCALAR"}"#,
            r#"{"bufferView":3,"componentType":5121,"count":1,"type":"SCALAR"}"#,
            r#"{"bufferView":9,"componentType":5121,"count":1,"type":"SCALAR"}"#,
            r#"{"componentType":5126,"count":99999999999,"type":"SCALAR"}"#,
            r#"{"bufferView":0,"componentType":5126,"count":1,"type":"VEC2"}"#,
        ] {
            let error = floats(bad, 1).expect_err(bad);
            assert_eq!(error.place, "accessor 0", "{error}");
        }
    }

    #[test]
    fn a_number_that_is_not_finite_is_named() {
        let (root, mut buffers) =
            with_accessor(r#"{"bufferView":0,"componentType":5126,"count":2,"type":"VEC3"}"#);
        buffers[0] = [1.0f32, 2.0, 3.0, 4.0, f32::NAN, 6.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let error = Accessors::new(&root, &buffers).vec3(0).expect_err("NaN");
        assert_eq!(error, ParseError::new("accessor 0", "element 1 is not finite"));
    }
}
