//! The container of every twin: one safetensors file with JSON metadata, a format version, the method's
//! name and a checksum. What a method keeps in it is in `body::file` and `face::file`.
//!
//! Metadata: `understudy` is the version of the format, `method` names the kind of twin, `checksum` covers
//! the method's own texts and every tensor.

use half::f16;
use safetensors::{Dtype, SafeTensors, View};
use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error as StdError;
use thiserror::Error;

use crate::dense::Precision;

/// The version that this build writes. Older ones keep loading, but for face twins of before 3 whose pixels read
/// common numbers: these went through a rectifier then.
pub const VERSION: u32 = 3;

/// Why a file is not a twin that we can load; `T` says why its parts do not fit together.
#[derive(Debug, Error)]
pub enum FileError<T: StdError + 'static> {
    /// Not safetensors, or damaged.
    #[error("not a readable safetensors file: {0}")]
    Container(String),
    /// Not written by Understudy, or another method's twin.
    #[error("{0}")]
    Kind(String),
    /// Written by a newer version.
    #[error("the twin has format version {found}; this program reads up to {VERSION}")]
    Version {
        /// What the file says.
        found: u32,
    },
    /// Written by an older version, which meant something else by the same numbers.
    #[error(
        "the twin has format version {found}; of its kind this program reads {least} to {VERSION}: learn it again"
    )]
    Old {
        /// What the file says.
        found: u32,
        /// The oldest that can be read.
        least: u32,
    },
    /// A tensor is missing or has another shape or type.
    #[error("tensor '{name}': {problem}")]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The parts do not fit together.
    #[error(transparent)]
    Twin(#[from] T),
    /// The content does not match its checksum.
    #[error("the content does not match its checksum: the file is damaged")]
    Checksum,
}

/// Steps a pixel to which places in maps are rounded when they are learned: finer than anything that can be seen.
pub const PLACE_STEPS: f32 = 512.0;
/// Maps of so many pixels a side have such steps in 16 bits.
const MOST_PLACE: f32 = FIXED_UNITS / PLACE_STEPS;
/// How many units of fixed-point numbers make one.
const FIXED_UNITS: f32 = 32768.0;

/// How a tensor of weights is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// f32.
    Single,
    /// f16.
    Half,
    /// i16 in units of 2⁻¹⁵.
    Fixed,
}

/// An array on its way to the file.
pub(crate) struct Array {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl View for &Array {
    fn dtype(&self) -> Dtype {
        self.dtype
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }
    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

impl Array {
    /// f32 numbers.
    pub fn floats(shape: &[usize], numbers: impl IntoIterator<Item = f32>) -> Self {
        let bytes = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
        Self { dtype: Dtype::F32, shape: shape.to_vec(), bytes }
    }

    /// Numbers in the precision of weights.
    pub fn weights(shape: &[usize], numbers: &[f32], precision: Precision) -> Self {
        match precision {
            Precision::Single => Self::floats(shape, numbers.iter().copied()),
            Precision::Half => {
                let bytes = numbers.iter().flat_map(|w| f16::from_f32(*w).to_le_bytes()).collect();
                Self { dtype: Dtype::F16, shape: shape.to_vec(), bytes }
            }
        }
    }

    /// Numbers between −1 and 1 in units of 2⁻¹⁵; beyond, the nearest that there is.
    pub fn fixed(shape: &[usize], numbers: &[f32]) -> Self {
        let steps = |w: &f32| (w * FIXED_UNITS).round() as i16;
        let bytes = numbers.iter().flat_map(|w| steps(w).to_le_bytes()).collect();
        Self { dtype: Dtype::I16, shape: shape.to_vec(), bytes }
    }

    /// A list of whole numbers: u8 or u16 where they are small enough, the largest of which then stands for the
    /// largest u32, which says that there is none; u32 otherwise.
    pub fn integers(numbers: impl IntoIterator<Item = u32>) -> Self {
        let numbers: Vec<u32> = numbers.into_iter().collect();
        let shape = vec![numbers.len()];
        let below = |limit: u32| numbers.iter().all(|number| *number == u32::MAX || *number < limit);
        // The lowest bytes of the largest u32 are the largest of their size.
        if below(u8::MAX.into()) {
            Self { dtype: Dtype::U8, shape, bytes: numbers.iter().map(|number| *number as u8).collect() }
        } else if below(u16::MAX.into()) {
            let bytes = numbers.iter().flat_map(|number| (*number as u16).to_le_bytes()).collect();
            Self { dtype: Dtype::U16, shape, bytes }
        } else {
            let bytes = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
            Self { dtype: Dtype::U32, shape, bytes }
        }
    }

    /// Places in a map: u16 where all of them are pixels, 16 bits in fixed point where all are at steps of
    /// [`PLACE_STEPS`] a pixel, f32 otherwise.
    pub fn places(shape: &[usize], numbers: &[f32]) -> Self {
        let whole = |number: &f32| number.fract() == 0.0 && (0.0..=f32::from(u16::MAX)).contains(number);
        let stepped =
            |number: &f32| (number * PLACE_STEPS).fract() == 0.0 && (0.0..MOST_PLACE).contains(number);
        if numbers.iter().all(whole) {
            let bytes = numbers.iter().flat_map(|number| (*number as u16).to_le_bytes()).collect();
            Self { dtype: Dtype::U16, shape: shape.to_vec(), bytes }
        } else if numbers.iter().all(stepped) {
            let shares: Vec<f32> = numbers.iter().map(|number| number / MOST_PLACE).collect();
            Self::fixed(shape, &shares)
        } else {
            Self::floats(shape, numbers.iter().copied())
        }
    }
}

/// The bytes of a file. `texts`: the method's own metadata, in the order in which the checksum takes them.
/// Same content, same bytes.
pub(crate) fn write<T: StdError + 'static>(
    method: &str,
    texts: &[(&str, String)],
    arrays: &[(String, Array)],
) -> Result<Vec<u8>, FileError<T>> {
    let bytes = arrays.iter().map(|(name, array)| (name.as_str(), &array.bytes[..]));
    let checksum = checksum(texts.iter().map(|(_, text)| text.as_str()), bytes);
    let mut metadata = HashMap::from([
        ("understudy".to_owned(), VERSION.to_string()),
        ("method".to_owned(), method.to_owned()),
        ("checksum".to_owned(), checksum),
    ]);
    metadata.extend(texts.iter().map(|(key, text)| ((*key).to_owned(), text.clone())));
    let views = arrays.iter().map(|(name, array)| (name.as_str(), array));
    let bytes =
        safetensors::serialize(views, Some(metadata)).map_err(|e| FileError::Container(e.to_string()))?;
    Ok(sort_metadata(bytes))
}

/// A hash over everything that the texts and the tensors say, whatever the tensors' order in the file.
fn checksum<'a>(
    texts: impl Iterator<Item = &'a str>,
    arrays: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> String {
    let mut sorted: Vec<(&str, &[u8])> = arrays.collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    let mut hash = understudy_core::mesh::Fnv::default();
    texts.for_each(|text| hash.write(text.as_bytes()));
    for (name, bytes) in sorted {
        hash.write(name.as_bytes());
        hash.write(bytes);
    }
    format!("{:016x}", hash.finish())
}

/// The container keeps metadata in a hash map, whose order changes from run to run: writes the header
/// again with sorted keys, so that the same twin gives the same bytes.
fn sort_metadata(bytes: Vec<u8>) -> Vec<u8> {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else { return bytes };
    let length = u64::from_le_bytes(*length) as usize;
    let Ok(header) = serde_json::from_slice::<serde_json::Value>(&rest[..length]) else { return bytes };
    // serde_json's map is ordered by key.
    let mut sorted = header.to_string().into_bytes();
    sorted.resize(sorted.len().next_multiple_of(8), b' ');
    let mut out = (sorted.len() as u64).to_le_bytes().to_vec();
    out.extend_from_slice(&sorted);
    out.extend_from_slice(&rest[length..]);
    out
}

/// The method of a twin's file, for a program that serves several kinds; `None` where it is no twin.
pub fn method(bytes: &[u8]) -> Option<String> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).ok()?;
    let metadata = metadata.metadata().as_ref()?;
    metadata.contains_key("understudy").then(|| metadata.get("method").cloned())?
}

/// A file whose version, method and checksum are right: typed access to what is in it.
pub(crate) struct Opened<'a> {
    tensors: SafeTensors<'a>,
    metadata: HashMap<String, String>,
    /// Of the format.
    pub version: u32,
}

impl<'a> Opened<'a> {
    /// Checks everything that is common to all twins. `texts` as in [`write`].
    pub fn parse<T: StdError>(bytes: &'a [u8], method: &str, texts: &[&str]) -> Result<Self, FileError<T>> {
        let damaged = |error: safetensors::SafeTensorError| FileError::Container(error.to_string());
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(damaged)?;
        let metadata = metadata.metadata().clone().unwrap_or_default();
        let mut opened = Self { tensors, metadata, version: 0 };
        let version: u32 = opened
            .text("understudy")?
            .parse()
            .map_err(|_| FileError::Kind("not a twin: no version".into()))?;
        if version == 0 || version > VERSION {
            return Err(FileError::Version { found: version });
        }
        opened.version = version;
        let found = opened.text("method")?;
        if found != method {
            return Err(FileError::Kind(format!("a twin of method '{found}', not of '{method}'")));
        }
        let all = texts.iter().map(|key| opened.text(key)).collect::<Result<Vec<&str>, _>>()?;
        let names = opened.tensors.names();
        let arrays = names.into_iter().filter_map(|n| Some((n, opened.tensors.tensor(n).ok()?.data())));
        if checksum(all.into_iter(), arrays) != opened.text("checksum")? {
            return Err(FileError::Checksum);
        }
        Ok(opened)
    }

    /// A text of the metadata.
    pub fn text<T: StdError>(&self, key: &str) -> Result<&str, FileError<T>> {
        let missing = || FileError::Kind(format!("not a twin: metadata '{key}' is missing"));
        self.metadata.get(key).map(String::as_str).ok_or_else(missing)
    }

    /// A text of the metadata as JSON.
    pub fn json<V: serde::de::DeserializeOwned, T: StdError>(&self, key: &str) -> Result<V, FileError<T>> {
        serde_json::from_str(self.text(key)?)
            .map_err(|error| FileError::Kind(format!("metadata '{key}': {error}")))
    }

    /// Whether there is such a tensor.
    pub fn contains(&self, name: &str) -> bool {
        self.tensors.tensor(name).is_ok()
    }

    fn tensor<T: StdError>(&self, name: &str) -> Result<safetensors::tensor::TensorView<'_>, FileError<T>> {
        self.tensors
            .tensor(name)
            .map_err(|error| FileError::Tensor { name: name.into(), problem: error.to_string() })
    }

    /// How a tensor of weights is stored.
    pub fn stored<T: StdError>(&self, name: &str) -> Result<Numbers, FileError<T>> {
        Ok(match self.tensor(name)?.dtype() {
            Dtype::F16 => Numbers::Half,
            Dtype::I16 => Numbers::Fixed,
            _ => Numbers::Single,
        })
    }

    /// The precision of a tensor of weights that is not in fixed point.
    pub fn precision<T: StdError>(&self, name: &str) -> Result<Precision, FileError<T>> {
        Ok(if self.tensor(name)?.dtype() == Dtype::F16 { Precision::Half } else { Precision::Single })
    }

    /// f32, f16, fixed-point or whole numbers; `width` is what the last axis must be.
    pub fn floats<T: StdError>(&self, name: &str, width: Option<usize>) -> Result<Vec<f32>, FileError<T>> {
        let tensor = self.tensor(name)?;
        if let Some(width) = width.filter(|width| tensor.shape().last() != Some(width)) {
            let problem = format!("shape {:?}, the last axis should be {width}", tensor.shape());
            return Err(FileError::Tensor { name: name.into(), problem });
        }
        match tensor.dtype() {
            Dtype::F32 => {
                let number = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                Ok(tensor.data().chunks_exact(4).map(number).collect())
            }
            Dtype::F16 => {
                let number = |b: &[u8]| f16::from_le_bytes([b[0], b[1]]).to_f32();
                Ok(tensor.data().chunks_exact(2).map(number).collect())
            }
            Dtype::I16 => {
                let number = |b: &[u8]| f32::from(i16::from_le_bytes([b[0], b[1]])) / FIXED_UNITS;
                Ok(tensor.data().chunks_exact(2).map(number).collect())
            }
            Dtype::U16 => {
                let number = |b: &[u8]| f32::from(u16::from_le_bytes([b[0], b[1]]));
                Ok(tensor.data().chunks_exact(2).map(number).collect())
            }
            other => Err(FileError::Tensor {
                name: name.into(),
                problem: format!("type {other:?}, not f32, f16, i16 or u16"),
            }),
        }
    }

    /// Places in a map, pairs of numbers.
    pub fn places<T: StdError>(&self, name: &str) -> Result<Vec<f32>, FileError<T>> {
        let unit = if self.stored(name)? == Numbers::Fixed { MOST_PLACE } else { 1.0 };
        Ok(self.floats(name, Some(2))?.into_iter().map(|number: f32| number * unit).collect())
    }

    /// Whole numbers.
    pub fn integers<T: StdError>(&self, name: &str) -> Result<Vec<u32>, FileError<T>> {
        let tensor = self.tensor(name)?;
        match tensor.dtype() {
            Dtype::U32 => {
                let number = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                Ok(tensor.data().chunks_exact(4).map(number).collect())
            }
            Dtype::U16 => {
                let number = |b: &[u8]| match u16::from_le_bytes([b[0], b[1]]) {
                    u16::MAX => u32::MAX,
                    number => number.into(),
                };
                Ok(tensor.data().chunks_exact(2).map(number).collect())
            }
            Dtype::U8 => {
                let number = |b: &u8| if *b == u8::MAX { u32::MAX } else { (*b).into() };
                Ok(tensor.data().iter().map(number).collect())
            }
            other => Err(FileError::Tensor {
                name: name.into(),
                problem: format!("type {other:?}, not u8, u16 or u32"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Problem = FileError<std::fmt::Error>;

    #[test]
    fn whole_numbers_come_back_whatever_their_size() {
        let lists: [(Vec<u32>, Dtype); 7] = [
            (vec![], Dtype::U8),
            (vec![0, u32::MAX, 254], Dtype::U8),
            (vec![0, 255, 7], Dtype::U16),
            (vec![0, 65_534, 7], Dtype::U16),
            (vec![0, u32::MAX, 7_000], Dtype::U16),
            (vec![0, 65_535, 7], Dtype::U32),
            (vec![70_000, u32::MAX], Dtype::U32),
        ];
        for (numbers, dtype) in lists {
            let array = Array::integers(numbers.iter().copied());
            assert_eq!(array.dtype, dtype);
            let bytes = write::<std::fmt::Error>("test", &[], &[("list".into(), array)]).expect("writes");
            let file = Opened::parse::<std::fmt::Error>(&bytes, "test", &[]).expect("reads");
            assert_eq!(file.integers::<std::fmt::Error>("list").expect("a list"), numbers);
        }
    }

    #[test]
    fn places_come_back_on_pixels_and_between_them() {
        for (places, dtype) in [
            ([0.0f32, 31.0, 7.0, 8.0], Dtype::U16),
            ([0.0, 63.0 + 511.0 / 512.0, 7.5, 1.0 / 512.0], Dtype::I16),
            ([0.0, 31.0, 7.501, 8.0], Dtype::F32),
            ([0.0, 64.5, 7.5, 8.0], Dtype::F32),
            ([0.0, -0.5, 7.5, 8.0], Dtype::F32),
        ] {
            let array = Array::places(&[2, 2], &places);
            assert_eq!(array.dtype, dtype);
            let bytes = write::<std::fmt::Error>("test", &[], &[("places".into(), array)]).expect("writes");
            let file = Opened::parse::<std::fmt::Error>(&bytes, "test", &[]).expect("reads");
            assert_eq!(file.places::<std::fmt::Error>("places").expect("places"), places);
            assert!(matches!(file.integers::<std::fmt::Error>("none"), Err(Problem::Tensor { .. })));
        }
    }
}
