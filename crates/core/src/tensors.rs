//! Safetensors files as bytes: named arrays with shapes and string metadata, the container of datasets and
//! twins. Start at [`Tensors::parse`] and [`TensorWriter`]. The format is eight bytes of length, a JSON header
//! and the arrays end to end. Typed reading is done by those who know what they expect (`io`, `runtime`).
//!
//! We read and write it ourselves: the `safetensors` crate writes metadata in the random order of a hash
//! map, and its length check overflows on a hostile header (a test in `io` shows it).

use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use thiserror::Error;

/// The longest header that is read, as in the reference implementation.
const MAX_HEADER: u64 = 100_000_000;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {problem}")]
pub struct TensorError {
    /// A byte, the header or an array.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
}

impl TensorError {
    fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into() }
    }

    /// A problem with the array of that name.
    pub fn in_array(name: &str, problem: impl Into<String>) -> Self {
        Self::new(format!("array '{name}'"), problem)
    }
}

/// What the elements of an array are; the names are the format's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum ElementType {
    Bool,
    U8,
    I8,
    U16,
    I16,
    F16,
    Bf16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

impl ElementType {
    const ALL: [Self; 13] = [
        Self::Bool,
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::F16,
        Self::Bf16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    /// As the header spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "BOOL",
            Self::U8 => "U8",
            Self::I8 => "I8",
            Self::U16 => "U16",
            Self::I16 => "I16",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::U32 => "U32",
            Self::I32 => "I32",
            Self::F32 => "F32",
            Self::U64 => "U64",
            Self::I64 => "I64",
            Self::F64 => "F64",
        }
    }

    /// Bytes per element.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

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
    kind: ElementType,
    shape: Vec<usize>,
    bytes: Range<usize>,
}

/// One array of a parsed file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tensor<'a> {
    /// Of its elements.
    pub kind: ElementType,
    /// Lengths of the axes.
    pub shape: &'a [usize],
    /// All elements in C order, little-endian.
    pub bytes: &'a [u8],
}

/// A parsed file: the header is checked against the bytes, arrays are converted when asked for.
#[derive(Debug)]
pub struct Tensors<'a> {
    data: &'a [u8],
    metadata: BTreeMap<String, String>,
    entries: BTreeMap<String, Entry>,
}

/// Number of elements; `None` where that is beyond any memory.
fn element_count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |count, side| count.checked_mul(*side))
}

impl<'a> Tensors<'a> {
    /// Reads the header; arrays must cover the rest of the file without holes or overlaps.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, TensorError> {
        let at = |byte: usize, problem: String| TensorError::new(format!("byte {byte}"), problem);
        let (length, rest) =
            bytes.split_first_chunk::<8>().ok_or_else(|| at(0, "too short for a safetensors file".into()))?;
        let length = u64::from_le_bytes(*length);
        if length > MAX_HEADER || length > rest.len() as u64 {
            return Err(at(0, format!("a header of {length} bytes in a file of {}", bytes.len())));
        }
        let (header, data) = rest.split_at(length as usize);
        let header: JsonHeader = serde_json::from_slice(header)
            .map_err(|error| TensorError::new("header", format!("is not valid: {error}")))?;

        let mut entries = BTreeMap::new();
        for (name, Info { dtype, shape, data_offsets: (start, end) }) in header.tensors {
            let kind = ElementType::from_name(&dtype).ok_or_else(|| {
                TensorError::in_array(&name, format!("elements of type '{dtype}' are not read"))
            })?;
            let want = element_count(&shape).and_then(|count| count.checked_mul(kind.size()));
            if start > end || end > data.len() || want != Some(end - start) {
                let place = format!("{start}..{end} of {} bytes", data.len());
                let problem = format!("shape {shape:?} of {dtype} does not fit {place}");
                return Err(TensorError::in_array(&name, problem));
            }
            entries.insert(name, Entry { kind, shape, bytes: start..end });
        }
        let mut ranges: Vec<&Range<usize>> = entries.values().map(|entry| &entry.bytes).collect();
        ranges.sort_by_key(|range| (range.start, range.end));
        let mut place = 0;
        for range in ranges {
            if range.start != place {
                return Err(TensorError::new("header", format!("arrays leave a hole or overlap at {place}")));
            }
            place = range.end;
        }
        if place != data.len() {
            return Err(TensorError::new("header", format!("arrays end at {place} of {} bytes", data.len())));
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

    /// The array of that name.
    pub fn get(&self, name: &str) -> Option<Tensor<'_>> {
        let Entry { kind, shape, bytes } = self.entries.get(name)?;
        Some(Tensor { kind: *kind, shape, bytes: &self.data[bytes.clone()] })
    }
}

#[derive(Debug)]
struct Written {
    kind: ElementType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// Collects arrays and metadata; the bytes depend on the content alone, not on the order of the calls.
#[derive(Debug, Default)]
pub struct TensorWriter {
    metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, Written>,
    problem: Option<TensorError>,
}

impl TensorWriter {
    /// Adds a string to the header.
    pub fn metadata(&mut self, key: &str, value: impl Into<String>) {
        self.metadata.insert(key.into(), value.into());
    }

    /// Adds an array, its elements little-endian. A shape that does not fit is remembered for [`Self::finish`].
    pub fn add(&mut self, name: &str, kind: ElementType, shape: &[usize], bytes: Vec<u8>) {
        if element_count(shape).and_then(|count| count.checked_mul(kind.size())) != Some(bytes.len()) {
            let problem = format!("shape {shape:?} for {} elements", bytes.len() / kind.size());
            self.problem.get_or_insert(TensorError::in_array(name, problem));
        } else if self.tensors.insert(name.into(), Written { kind, shape: shape.to_vec(), bytes }).is_some() {
            self.problem.get_or_insert(TensorError::in_array(name, "is added twice"));
        }
    }

    /// The arrays in the order of the file: widest elements first, so that each one is aligned, then by name.
    fn order(&self) -> Vec<(&String, &Written)> {
        let mut order: Vec<_> = self.tensors.iter().collect();
        order.sort_by_key(|(_, tensor)| std::cmp::Reverse(tensor.kind.size()));
        order
    }

    /// The arrays' bytes in the order of the file, piece by piece: what a content hash covers.
    pub fn data(&self) -> impl Iterator<Item = &[u8]> {
        self.order().into_iter().map(|(_, tensor)| tensor.bytes.as_slice())
    }

    /// The file's bytes, or the first problem met while adding.
    pub fn finish(self) -> Result<Vec<u8>, TensorError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let mut header = serde_json::Map::new();
        if !self.metadata.is_empty() {
            header.insert("__metadata__".into(), serde_json::json!(self.metadata));
        }
        let mut place = 0;
        for (name, Written { kind, shape, bytes }) in self.order() {
            let end = place + bytes.len();
            let info =
                serde_json::json!({ "dtype": kind.name(), "shape": shape, "data_offsets": [place, end] });
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
}
