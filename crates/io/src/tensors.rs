//! Safetensors files: named arrays with shapes and string metadata. Start at [`Tensors::parse`] and
//! [`TensorWriter`]. The format is eight bytes of length, a JSON header and the arrays end to end.
//!
//! We read and write it ourselves: the `safetensors` crate writes metadata in the random order of a hash
//! map, and its length check can overflow on a hostile header. The tests hold ours against it.

use crate::arrays::{check_finite, check_shape, element_count, in_array};
use crate::{Array, Dim, ParseError, WriteError, write_atomic};
use half::f16;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// The longest header that is read, as in the reference implementation.
const MAX_HEADER: u64 = 100_000_000;

#[derive(Debug, Deserialize)]
struct Info {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

#[derive(Debug, Deserialize)]
struct JsonHeader {
    #[serde(rename = "__metadata__", default)]
    metadata: BTreeMap<String, String>,
    #[serde(flatten)]
    tensors: BTreeMap<String, Info>,
}

#[derive(Debug)]
struct Entry {
    kind: String,
    shape: Vec<usize>,
    bytes: Range<usize>,
}

/// A parsed file: the header is checked against the bytes, arrays are converted when asked for.
#[derive(Debug)]
pub struct Tensors<'a> {
    data: &'a [u8],
    metadata: BTreeMap<String, String>,
    entries: BTreeMap<String, Entry>,
}

impl<'a> Tensors<'a> {
    /// Reads the header; arrays must cover the rest of the file without holes or overlaps.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let at = |byte: usize, problem: String| ParseError::new(format!("byte {byte}"), problem);
        let (length, rest) =
            bytes.split_first_chunk::<8>().ok_or_else(|| at(0, "too short for a safetensors file".into()))?;
        let length = u64::from_le_bytes(*length);
        if length > MAX_HEADER || length > rest.len() as u64 {
            return Err(at(0, format!("a header of {length} bytes in a file of {}", bytes.len())));
        }
        let (header, data) = rest.split_at(length as usize);
        let header: JsonHeader = serde_json::from_slice(header)
            .map_err(|error| ParseError::new("header", format!("is not valid: {error}")))?;

        let mut entries = BTreeMap::new();
        for (name, Info { dtype, shape, data_offsets: (start, end) }) in header.tensors {
            let size = element_size(&dtype)
                .ok_or_else(|| in_array(&name, format!("elements of type '{dtype}' are not read")))?;
            let want = element_count(&shape).and_then(|count| count.checked_mul(size));
            if start > end || end > data.len() || want != Some(end - start) {
                let place = format!("{start}..{end} of {} bytes", data.len());
                return Err(in_array(&name, format!("shape {shape:?} of {dtype} does not fit {place}")));
            }
            entries.insert(name, Entry { kind: dtype, shape, bytes: start..end });
        }
        let mut ranges: Vec<&Range<usize>> = entries.values().map(|entry| &entry.bytes).collect();
        ranges.sort_by_key(|range| (range.start, range.end));
        let mut place = 0;
        for range in ranges {
            if range.start != place {
                return Err(ParseError::new("header", format!("arrays leave a hole or overlap at {place}")));
            }
            place = range.end;
        }
        if place != data.len() {
            return Err(ParseError::new("header", format!("arrays end at {place} of {} bytes", data.len())));
        }
        Ok(Self { data, metadata: header.metadata, entries })
    }

    /// The bytes of all arrays: what a content hash covers.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The strings of the header.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The arrays' names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Whether there is an array of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Finite f32; f16 is widened. NaN and infinity are errors that name the element.
    pub fn f32(&self, name: &str, want: &[Dim]) -> Result<Array<f32>, ParseError> {
        let array = match self.kind(name)? {
            "F16" => self.load(name, want, "F16", |b| f16::from_le_bytes(b).to_f32())?,
            _ => self.load(name, want, "F32", f32::from_le_bytes)?,
        };
        check_finite(name, &array, f32::is_finite)?;
        Ok(array)
    }

    /// Finite f16, as stored.
    pub fn f16(&self, name: &str, want: &[Dim]) -> Result<Array<f16>, ParseError> {
        let array = self.load(name, want, "F16", f16::from_le_bytes)?;
        check_finite(name, &array, f16::is_finite)?;
        Ok(array)
    }

    /// Unsigned 16-bit integers.
    pub fn u16(&self, name: &str, want: &[Dim]) -> Result<Array<u16>, ParseError> {
        self.load(name, want, "U16", u16::from_le_bytes)
    }

    /// Unsigned 32-bit integers.
    pub fn u32(&self, name: &str, want: &[Dim]) -> Result<Array<u32>, ParseError> {
        self.load(name, want, "U32", u32::from_le_bytes)
    }

    /// Signed 32-bit integers.
    pub fn i32(&self, name: &str, want: &[Dim]) -> Result<Array<i32>, ParseError> {
        self.load(name, want, "I32", i32::from_le_bytes)
    }

    fn kind(&self, name: &str) -> Result<&str, ParseError> {
        let entry = self.entries.get(name).ok_or_else(|| in_array(name, "is missing"))?;
        Ok(&entry.kind)
    }

    fn load<const N: usize, T>(
        &self,
        name: &str,
        want: &[Dim],
        kind: &str,
        convert: fn([u8; N]) -> T,
    ) -> Result<Array<T>, ParseError> {
        let entry = self.entries.get(name).ok_or_else(|| in_array(name, "is missing"))?;
        if entry.kind != kind {
            return Err(in_array(name, format!("has elements of type {}, expected {kind}", entry.kind)));
        }
        check_shape(name, &entry.shape, want)?;
        let (items, _) = self.data[entry.bytes.clone()].as_chunks::<N>();
        Ok(Array { shape: entry.shape.clone(), data: items.iter().map(|item| convert(*item)).collect() })
    }
}

fn element_size(kind: &str) -> Option<usize> {
    match kind {
        "BOOL" | "U8" | "I8" => Some(1),
        "U16" | "I16" | "F16" | "BF16" => Some(2),
        "U32" | "I32" | "F32" => Some(4),
        "U64" | "I64" | "F64" => Some(8),
        _ => None,
    }
}

#[derive(Debug)]
struct Tensor {
    kind: &'static str,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// Collects arrays and metadata; the bytes depend on the content alone, not on the order of the calls.
#[derive(Debug, Default)]
pub struct TensorWriter {
    metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, Tensor>,
    problem: Option<String>,
}

impl TensorWriter {
    /// An empty file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a string to the header.
    pub fn metadata(&mut self, key: &str, value: impl Into<String>) -> &mut Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Adds an array of f32.
    pub fn f32(&mut self, name: &str, shape: &[usize], data: &[f32]) -> &mut Self {
        self.add(name, "F32", shape, data, f32::to_le_bytes)
    }

    /// Adds an array of f16.
    pub fn f16(&mut self, name: &str, shape: &[usize], data: &[f16]) -> &mut Self {
        self.add(name, "F16", shape, data, f16::to_le_bytes)
    }

    /// Adds an array of u16.
    pub fn u16(&mut self, name: &str, shape: &[usize], data: &[u16]) -> &mut Self {
        self.add(name, "U16", shape, data, u16::to_le_bytes)
    }

    /// Adds an array of u32.
    pub fn u32(&mut self, name: &str, shape: &[usize], data: &[u32]) -> &mut Self {
        self.add(name, "U32", shape, data, u32::to_le_bytes)
    }

    /// Adds an array of i32.
    pub fn i32(&mut self, name: &str, shape: &[usize], data: &[i32]) -> &mut Self {
        self.add(name, "I32", shape, data, i32::to_le_bytes)
    }

    fn add<const N: usize, T: Copy>(
        &mut self,
        name: &str,
        kind: &'static str,
        shape: &[usize],
        data: &[T],
        convert: fn(T) -> [u8; N],
    ) -> &mut Self {
        if element_count(shape) != Some(data.len()) {
            let problem = format!("array '{name}': shape {shape:?} for {} elements", data.len());
            self.problem.get_or_insert(problem);
            return self;
        }
        let mut bytes = Vec::with_capacity(data.len() * N);
        for value in data {
            bytes.extend(convert(*value));
        }
        if self.tensors.insert(name.into(), Tensor { kind, shape: shape.to_vec(), bytes }).is_some() {
            self.problem.get_or_insert(format!("array '{name}' is added twice"));
        }
        self
    }

    /// The arrays in the order of the file: widest elements first, so that each one is aligned, then by name.
    fn order(&self) -> Vec<(&String, &Tensor)> {
        let mut order: Vec<_> = self.tensors.iter().collect();
        order.sort_by_key(|(_, tensor)| std::cmp::Reverse(element_size(tensor.kind)));
        order
    }

    /// The arrays' bytes in the order of the file, piece by piece: what a content hash covers.
    pub fn data(&self) -> impl Iterator<Item = &[u8]> {
        self.order().into_iter().map(|(_, tensor)| tensor.bytes.as_slice())
    }

    /// The file's bytes, or the first problem met while adding.
    pub fn finish(self) -> Result<Vec<u8>, String> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let mut header = serde_json::Map::new();
        if !self.metadata.is_empty() {
            header.insert("__metadata__".into(), serde_json::json!(self.metadata));
        }
        let mut place = 0;
        for (name, Tensor { kind, shape, bytes }) in self.order() {
            let end = place + bytes.len();
            let info = serde_json::json!({ "dtype": kind, "shape": shape, "data_offsets": [place, end] });
            header.insert(name.clone(), info);
            place = end;
        }
        let mut text = serde_json::Value::Object(header).to_string();
        text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
        let mut out = Vec::with_capacity(8 + text.len() + place);
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text.as_bytes());
        for (_, tensor) in self.order() {
            out.extend(&tensor.bytes);
        }
        Ok(out)
    }

    /// Writes the file, whole or not at all.
    pub fn write(self, path: &Path) -> Result<(), WriteError> {
        let bytes = self.finish().map_err(|problem| WriteError::new(path, problem))?;
        write_atomic(path, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dim::{Any, Exactly};
    use proptest::prelude::*;

    fn writer(numbers: &[f32], indices: &[u16], note: &str) -> TensorWriter {
        let mut writer = TensorWriter::new();
        writer
            .u16("indices", &[indices.len()], indices)
            .f32("numbers", &[1, numbers.len()], numbers)
            .i32("signed", &[2], &[-1, 7])
            .metadata("note", note)
            .metadata("a", "b");
        writer
    }

    proptest! {
        #[test]
        fn save_load_save_is_the_identity_and_others_read_it(
            numbers in prop::collection::vec(-1e6f32..1e6, 0..40),
            indices in prop::collection::vec(any::<u16>(), 0..9),
            note in "\\PC{0,12}",
        ) {
            let first = writer(&numbers, &indices, &note).finish().expect("valid");
            let file = Tensors::parse(&first).expect("just written");
            let back_numbers = file.f32("numbers", &[Exactly(1), Any("n")]).expect("finite").data;
            let back_indices = file.u16("indices", &[Any("n")]).expect("present").data;
            prop_assert_eq!(&back_numbers, &numbers);
            let again = writer(&back_numbers, &back_indices, &file.metadata()["note"]).finish().expect("valid");
            prop_assert_eq!(&again, &first);

            let reference = safetensors::SafeTensors::deserialize(&first).expect("the reference reads it");
            let shape = reference.tensor("numbers").expect("there").shape().to_vec();
            prop_assert_eq!(shape, [1, numbers.len()]);
            let (_, header) = safetensors::SafeTensors::read_metadata(&first).expect("valid");
            prop_assert_eq!(header.metadata().as_ref().map(|m| &m["note"]), Some(&note));
        }
    }

    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    }

    #[test]
    fn bad_files_are_named() {
        let max = usize::MAX;
        for (bytes, part) in [
            (vec![1, 2, 3], "too short"),
            (u64::MAX.to_le_bytes().to_vec(), "a header of 18446744073709551615 bytes"),
            (file("[1]", 0), "header: is not valid"),
            (file(r#"{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#, 8), "array 'a': shape [3]"),
            (
                file(r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#, 12),
                "a hole or overlap at 0",
            ),
            (file(r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, 9), "end at 8 of 9"),
            (file(r#"{"a":{"dtype":"X","shape":[2],"data_offsets":[0,8]}}"#, 8), "type 'X'"),
            (
                file(&format!(r#"{{"a":{{"dtype":"U8","shape":[{max}],"data_offsets":[0,{max}]}}}}"#), 8),
                "does not fit",
            ),
        ] {
            let error = Tensors::parse(&bytes).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
        let bytes = writer(&[1.0, f32::NAN], &[], "").finish().expect("valid");
        let file = Tensors::parse(&bytes).expect("valid");
        let message = |result: Result<Array<f32>, ParseError>| result.expect_err("bad").to_string();
        assert_eq!(
            message(file.f32("numbers", &[Any("n"), Exactly(2)])),
            "array 'numbers': the number at [0, 1] is not finite"
        );
        assert_eq!(message(file.f32("numbers", &[Any("n")])), "array 'numbers': shape [1,2], expected [n]");
        assert_eq!(
            message(file.f32("indices", &[Any("n")])),
            "array 'indices': has elements of type U16, expected F32"
        );
        assert_eq!(message(file.f32("other", &[])), "array 'other': is missing");
    }
}
