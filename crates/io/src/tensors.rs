//! Safetensors files with typed arrays: what datasets are made of. Start at [`Tensors::parse`] and
//! [`TensorWriter`]. The container itself is read and written by `understudy_core::tensors`, for datasets and
//! for twins alike; the tests here hold it against the `safetensors` crate.

use crate::arrays::{check_finite, check_shape, in_array};
use crate::{Array, Dim, ParseError, WriteError, write_atomic};
use half::f16;
use std::collections::BTreeMap;
use std::path::Path;
use understudy_core::tensors::{self, ElementType, Tensor, TensorError};

impl From<TensorError> for ParseError {
    fn from(TensorError { place, problem }: TensorError) -> Self {
        Self::new(place, problem)
    }
}

/// A parsed file: the header is checked against the bytes, arrays are converted when asked for.
#[derive(Debug)]
pub struct Tensors<'a>(tensors::Tensors<'a>);

impl<'a> Tensors<'a> {
    /// Reads the header; arrays must cover the rest of the file without holes or overlaps.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        Ok(Self(tensors::Tensors::parse(bytes)?))
    }

    /// The bytes of all arrays: what a content hash covers.
    pub fn data(&self) -> &'a [u8] {
        self.0.data()
    }

    /// The strings of the header.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        self.0.metadata()
    }

    /// The arrays' names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.names()
    }

    /// Whether there is an array of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    /// Finite f32; f16 is widened. NaN and infinity are errors that name the element.
    pub fn f32(&self, name: &str, want: &[Dim]) -> Result<Array<f32>, ParseError> {
        let array = match self.tensor(name)?.kind {
            ElementType::F16 => {
                self.load(name, want, ElementType::F16, |b| f16::from_le_bytes(b).to_f32())?
            }
            _ => self.load(name, want, ElementType::F32, f32::from_le_bytes)?,
        };
        check_finite(name, &array, f32::is_finite)?;
        Ok(array)
    }

    /// Finite f16, as stored.
    pub fn f16(&self, name: &str, want: &[Dim]) -> Result<Array<f16>, ParseError> {
        let array = self.load(name, want, ElementType::F16, f16::from_le_bytes)?;
        check_finite(name, &array, f16::is_finite)?;
        Ok(array)
    }

    /// Unsigned 16-bit integers.
    pub fn u16(&self, name: &str, want: &[Dim]) -> Result<Array<u16>, ParseError> {
        self.load(name, want, ElementType::U16, u16::from_le_bytes)
    }

    /// Unsigned 32-bit integers.
    pub fn u32(&self, name: &str, want: &[Dim]) -> Result<Array<u32>, ParseError> {
        self.load(name, want, ElementType::U32, u32::from_le_bytes)
    }

    /// Signed 32-bit integers.
    pub fn i32(&self, name: &str, want: &[Dim]) -> Result<Array<i32>, ParseError> {
        self.load(name, want, ElementType::I32, i32::from_le_bytes)
    }

    fn tensor(&self, name: &str) -> Result<Tensor<'_>, ParseError> {
        self.0.get(name).ok_or_else(|| in_array(name, "is missing"))
    }

    fn load<const N: usize, T>(
        &self,
        name: &str,
        want: &[Dim],
        kind: ElementType,
        convert: fn([u8; N]) -> T,
    ) -> Result<Array<T>, ParseError> {
        let tensor = self.tensor(name)?;
        if tensor.kind != kind {
            let (got, want) = (tensor.kind.name(), kind.name());
            return Err(in_array(name, format!("has elements of type {got}, expected {want}")));
        }
        check_shape(name, tensor.shape, want)?;
        let (items, _) = tensor.bytes.as_chunks::<N>();
        Ok(Array { shape: tensor.shape.to_vec(), data: items.iter().map(|item| convert(*item)).collect() })
    }
}

/// Collects arrays and metadata; the bytes depend on the content alone, not on the order of the calls.
#[derive(Debug, Default)]
pub struct TensorWriter(tensors::TensorWriter);

impl TensorWriter {
    /// An empty file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a string to the header.
    pub fn metadata(&mut self, key: &str, value: impl Into<String>) -> &mut Self {
        self.0.metadata(key, value);
        self
    }

    /// Adds an array of f32.
    pub fn f32(&mut self, name: &str, shape: &[usize], data: &[f32]) -> &mut Self {
        self.add(name, ElementType::F32, shape, data, f32::to_le_bytes)
    }

    /// Adds an array of f16.
    pub fn f16(&mut self, name: &str, shape: &[usize], data: &[f16]) -> &mut Self {
        self.add(name, ElementType::F16, shape, data, f16::to_le_bytes)
    }

    /// Adds an array of u16.
    pub fn u16(&mut self, name: &str, shape: &[usize], data: &[u16]) -> &mut Self {
        self.add(name, ElementType::U16, shape, data, u16::to_le_bytes)
    }

    /// Adds an array of u32.
    pub fn u32(&mut self, name: &str, shape: &[usize], data: &[u32]) -> &mut Self {
        self.add(name, ElementType::U32, shape, data, u32::to_le_bytes)
    }

    /// Adds an array of i32.
    pub fn i32(&mut self, name: &str, shape: &[usize], data: &[i32]) -> &mut Self {
        self.add(name, ElementType::I32, shape, data, i32::to_le_bytes)
    }

    fn add<const N: usize, T: Copy>(
        &mut self,
        name: &str,
        kind: ElementType,
        shape: &[usize],
        data: &[T],
        convert: fn(T) -> [u8; N],
    ) -> &mut Self {
        let mut bytes = Vec::with_capacity(data.len() * N);
        for value in data {
            bytes.extend(convert(*value));
        }
        self.0.add(name, kind, shape, bytes);
        self
    }

    /// The arrays' bytes in the order of the file, piece by piece: what a content hash covers.
    pub fn data(&self) -> impl Iterator<Item = &[u8]> {
        self.0.data()
    }

    /// The file's bytes, or the first problem met while adding.
    pub fn finish(self) -> Result<Vec<u8>, String> {
        self.0.finish().map_err(|error| error.to_string())
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

    /// Why the `safetensors` crate reads neither datasets nor twins: arrays that claim to end at the last address
    /// make the sum of its length check overflow, before anything compares it with the file.
    #[test]
    #[cfg(debug_assertions)]
    fn the_crate_overflows_on_a_header_that_ours_refuses() {
        // Each as long as its number of bits can be counted, eight of them up to the end of all addresses.
        let length = usize::MAX / 8;
        let array = |index: usize| {
            let (start, end) = (index * length, (index + 1) * length);
            format!(r#""{index}":{{"dtype":"U8","shape":[{length}],"data_offsets":[{start},{end}]}}"#)
        };
        let arrays: Vec<String> = (0..8).map(array).collect();
        let hostile = file(&format!("{{{}}}", arrays.join(",")), 8);
        let caught = std::panic::catch_unwind(|| safetensors::SafeTensors::read_metadata(&hostile).is_ok());
        let message = caught.expect_err("the crate panics where overflows are checked");
        let message = message.downcast_ref::<&str>().map(|text| (*text).to_owned());
        assert!(message.is_some_and(|text| text.contains("overflow")));
        let error = Tensors::parse(&hostile).expect_err("refused").to_string();
        assert!(error.contains("array '"), "{error}");
    }
}
