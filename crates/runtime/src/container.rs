//! The container of every twin: one safetensors file with JSON metadata, a format version, the kind's name and a
//! checksum. What a kind keeps in it is in `body::file`, `face::file` and `skin::file`.
//!
//! Metadata: `understudy` is the version of the format, `method` names the kind of twin, `header` is
//! [`Header`](crate::Header) as JSON, `structure` is the kind's own JSON, `checksum` covers all of it and every tensor
//! with its name, type and shape. A twin with bones may also have a `mechanism` (`mechanism::file`). Before version 4 it covered texts and tensors without type and shape, and the header
//! of a body and of a face had shapes of their own.

use half::f16;
use understudy_core::mesh::Fnv;
use understudy_core::tensors::{ElementType, Tensor, TensorWriter, Tensors};

use crate::TwinError;
use crate::dense::Precision;
use crate::mechanism::file::Section;

/// The version that this build writes. Older ones keep loading, but for face twins of before 3 whose pixels read
/// shared features: these went through a rectifier then.
pub const VERSION: u32 = 4;

/// The first version whose checksum covers everything.
const FULL_CHECKSUM: u32 = 4;

/// Steps per pixel to which places in maps are rounded when they are learned: finer than anything that can be seen.
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
    /// u16.
    Whole,
}

/// An array on its way to the file.
pub(crate) struct Array {
    kind: ElementType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Array {
    /// f32 numbers.
    pub fn floats(shape: &[usize], numbers: impl IntoIterator<Item = f32>) -> Self {
        let bytes = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
        Self { kind: ElementType::F32, shape: shape.to_vec(), bytes }
    }

    /// Numbers in the precision of weights.
    pub fn weights(shape: &[usize], numbers: &[f32], precision: Precision) -> Self {
        match precision {
            Precision::Single => Self::floats(shape, numbers.iter().copied()),
            Precision::Half => {
                let bytes = numbers.iter().flat_map(|w| f16::from_f32(*w).to_le_bytes()).collect();
                Self { kind: ElementType::F16, shape: shape.to_vec(), bytes }
            }
        }
    }

    /// Numbers between −1 and 1 in units of 2⁻¹⁵; beyond, the nearest that there is.
    pub fn fixed(shape: &[usize], numbers: &[f32]) -> Self {
        let steps = |w: &f32| (w * FIXED_UNITS).round() as i16;
        let bytes = numbers.iter().flat_map(|w| steps(w).to_le_bytes()).collect();
        Self { kind: ElementType::I16, shape: shape.to_vec(), bytes }
    }

    /// A list of whole numbers: u8 or u16 where they are small enough, the largest of which then stands for the
    /// largest u32, which says that there is none; u32 otherwise.
    pub fn integers(numbers: impl IntoIterator<Item = u32>) -> Self {
        let numbers: Vec<u32> = numbers.into_iter().collect();
        let shape = vec![numbers.len()];
        let below = |limit: u32| numbers.iter().all(|number| *number == u32::MAX || *number < limit);
        // The lowest bytes of the largest u32 are the largest of their size.
        if below(u8::MAX.into()) {
            Self { kind: ElementType::U8, shape, bytes: numbers.iter().map(|number| *number as u8).collect() }
        } else if below(u16::MAX.into()) {
            let bytes = numbers.iter().flat_map(|number| (*number as u16).to_le_bytes()).collect();
            Self { kind: ElementType::U16, shape, bytes }
        } else {
            let bytes = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
            Self { kind: ElementType::U32, shape, bytes }
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
            Self { kind: ElementType::U16, shape: shape.to_vec(), bytes }
        } else if numbers.iter().all(stepped) {
            let shares: Vec<f32> = numbers.iter().map(|number| number / MOST_PLACE).collect();
            Self::fixed(shape, &shares)
        } else {
            Self::floats(shape, numbers.iter().copied())
        }
    }
}

/// The bytes of a file. Same content, same bytes.
pub(crate) fn write(
    method: &str,
    header: &crate::Header,
    structure: &impl serde::Serialize,
    mut arrays: Vec<(String, Array)>,
    section: Section,
) -> Result<Vec<u8>, TwinError> {
    let json = |error: serde_json::Error| TwinError::Kind(error.to_string());
    let mut texts = vec![
        ("header", serde_json::to_string(header).map_err(json)?),
        ("method", method.to_owned()),
        ("structure", serde_json::to_string(structure).map_err(json)?),
        ("understudy", VERSION.to_string()),
    ];
    texts.extend(section.text);
    arrays.extend(section.arrays);
    let tensors = arrays.iter().map(|(name, array)| {
        (name.as_str(), Tensor { kind: array.kind, shape: &array.shape, bytes: &array.bytes })
    });
    let checksum = checksum(texts.iter().map(|(key, text)| (*key, text.as_str())), tensors);
    texts.push(("checksum", checksum));
    let mut writer = TensorWriter::default();
    texts.into_iter().for_each(|(key, text)| writer.metadata(key, text));
    arrays.into_iter().for_each(|(name, array)| writer.add(&name, array.kind, &array.shape, array.bytes));
    writer.finish().map_err(|error| TwinError::Container(error.to_string()))
}

/// A hash over everything that a file says: texts and tensors, each with its name, the latter with type and shape. Every
/// piece goes in with its length, so that none can grow at another's cost. Both are sorted by name.
fn checksum<'a>(
    texts: impl Iterator<Item = (&'a str, &'a str)>,
    tensors: impl Iterator<Item = (&'a str, Tensor<'a>)>,
) -> String {
    let mut hash = Fnv::default();
    let mut piece = |bytes: &[u8]| {
        hash.write(&(bytes.len() as u64).to_le_bytes());
        hash.write(bytes);
    };
    let mut texts: Vec<(&str, &str)> = texts.collect();
    texts.sort_unstable();
    for (key, text) in texts {
        piece(key.as_bytes());
        piece(text.as_bytes());
    }
    let mut tensors: Vec<(&str, Tensor<'_>)> = tensors.collect();
    tensors.sort_unstable_by_key(|(name, _)| *name);
    for (name, tensor) in tensors {
        piece(name.as_bytes());
        piece(tensor.kind.name().as_bytes());
        let sides: Vec<u8> = tensor.shape.iter().flat_map(|side| (*side as u64).to_le_bytes()).collect();
        piece(&sides);
        piece(tensor.bytes);
    }
    format!("{:016x}", hash.finish())
}

/// A file with one more section: a text of the metadata and tensors whose names begin with its key, in place of one that
/// was there.
pub(crate) fn with_section(
    bytes: &[u8],
    key: &'static str,
    text: String,
    arrays: Vec<(String, Array)>,
) -> Result<Vec<u8>, TwinError> {
    let file = Opened::parse(bytes)?;
    let prefix = format!("{key}.");
    let mut texts: Vec<(&str, &str)> =
        file.tensors.metadata().iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    texts.retain(|(name, _)| *name != "checksum" && *name != key);
    texts.push((key, &text));
    let kept = file.tensors.names().filter(|name| !name.starts_with(&prefix));
    let mut tensors: Vec<(&str, Tensor<'_>)> =
        kept.filter_map(|name| Some((name, file.tensors.get(name)?))).collect();
    for (name, array) in &arrays {
        let Array { kind, shape, bytes } = array;
        tensors.push((name, Tensor { kind: *kind, shape, bytes }));
    }
    let sum = checksum(texts.iter().copied(), tensors.iter().copied());
    let mut writer = TensorWriter::default();
    texts.iter().for_each(|(name, text)| writer.metadata(name, (*text).to_owned()));
    writer.metadata("checksum", sum);
    for (name, tensor) in tensors {
        writer.add(name, tensor.kind, tensor.shape, tensor.bytes.to_vec());
    }
    writer.finish().map_err(|error| TwinError::Container(error.to_string()))
}

/// The checksum before version 4: over the header, a text of the kind's own and the tensors' names and bytes.
fn checksum_before_4(texts: [&str; 2], file: &Tensors<'_>) -> String {
    let mut hash = Fnv::default();
    texts.iter().for_each(|text| hash.write(text.as_bytes()));
    for name in file.names() {
        hash.write(name.as_bytes());
        hash.write(file.get(name).map_or(&[], |tensor| tensor.bytes));
    }
    format!("{:016x}", hash.finish())
}

/// The bytes with the checksum that belongs to their content, where they are a twin's: what a fuzzer needs to get past
/// it. Anything else comes back as it is.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub fn with_right_checksum(bytes: &[u8]) -> Vec<u8> {
    const KEY: &[u8] = b"\"checksum\":\"";
    let mut out = bytes.to_vec();
    let Ok(tensors) = Tensors::parse(bytes) else { return out };
    let version = tensors.metadata().get("understudy").and_then(|text| text.parse().ok());
    let Some(version) = version else { return out };
    let place = bytes.windows(KEY.len()).position(|window| window == KEY);
    if let (Ok(right), Some(place)) = (Opened { tensors, version }.checksum(), place)
        && let Some(field) = out.get_mut(place + KEY.len()..place + KEY.len() + right.len())
    {
        field.copy_from_slice(right.as_bytes());
    }
    out
}

/// A file whose version and checksum are right: typed access to what is in it.
pub(crate) struct Opened<'a> {
    tensors: Tensors<'a>,
    /// Of the format.
    pub version: u32,
}

impl<'a> Opened<'a> {
    /// Checks everything that is common to all twins.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, TwinError> {
        let tensors = Tensors::parse(bytes).map_err(|error| TwinError::Container(error.to_string()))?;
        let mut opened = Self { tensors, version: 0 };
        let version = opened.text("understudy")?.parse();
        opened.version = version.map_err(|_| TwinError::Kind("not a twin: no version".into()))?;
        if opened.version == 0 || opened.version > VERSION {
            return Err(TwinError::Version { found: opened.version });
        }
        let (stored, found) = (opened.text("checksum")?, opened.checksum()?);
        if found != stored {
            return Err(TwinError::Checksum);
        }
        Ok(opened)
    }

    /// What the content says, by the rule of its version.
    fn checksum(&self) -> Result<String, TwinError> {
        if self.version >= FULL_CHECKSUM {
            let texts = self.tensors.metadata().iter().filter(|(key, _)| *key != "checksum");
            let tensors = self.tensors.names().filter_map(|name| Some((name, self.tensors.get(name)?)));
            return Ok(checksum(texts.map(|(key, text)| (key.as_str(), text.as_str())), tensors));
        }
        // A body had a text of this name, a face one of the other.
        let own = self.text("structure").or_else(|_| self.text("groups"))?;
        Ok(checksum_before_4([self.text("header")?, own], &self.tensors))
    }

    /// The name of the twin's kind.
    pub fn method(&self) -> Result<&str, TwinError> {
        self.text("method")
    }

    /// Whether the file has the shape of the header and the checksum of before version 4.
    pub fn is_before_4(&self) -> bool {
        self.version < FULL_CHECKSUM
    }

    /// Whether the metadata has such a text.
    pub fn has_text(&self, key: &str) -> bool {
        self.tensors.metadata().contains_key(key)
    }

    /// A text of the metadata.
    fn text(&self, key: &str) -> Result<&str, TwinError> {
        let missing = || TwinError::Kind(format!("not a twin: metadata '{key}' is missing"));
        self.tensors.metadata().get(key).map(String::as_str).ok_or_else(missing)
    }

    /// Whether there is a section of that name.
    pub fn has_section(&self, key: &str) -> bool {
        self.tensors.metadata().contains_key(key)
    }

    /// A text of the metadata as JSON.
    pub fn json<V: serde::de::DeserializeOwned>(&self, key: &str) -> Result<V, TwinError> {
        serde_json::from_str(self.text(key)?)
            .map_err(|error| TwinError::Kind(format!("metadata '{key}': {error}")))
    }

    /// Whether there is such a tensor.
    pub fn contains(&self, name: &str) -> bool {
        self.tensors.get(name).is_some()
    }

    fn tensor(&self, name: &str) -> Result<Tensor<'_>, TwinError> {
        let missing = || TwinError::Tensor { name: name.into(), problem: "is missing".into() };
        self.tensors.get(name).ok_or_else(missing)
    }

    /// How a tensor of weights is stored.
    pub fn stored(&self, name: &str) -> Result<Numbers, TwinError> {
        Ok(match self.tensor(name)?.kind {
            ElementType::F16 => Numbers::Half,
            ElementType::I16 => Numbers::Fixed,
            ElementType::U16 => Numbers::Whole,
            _ => Numbers::Single,
        })
    }

    /// The precision of a tensor of weights that is not in fixed point.
    pub fn precision(&self, name: &str) -> Result<Precision, TwinError> {
        Ok(if self.tensor(name)?.kind == ElementType::F16 { Precision::Half } else { Precision::Single })
    }

    /// f32, f16, fixed-point or whole numbers; `width` is what the last axis must be.
    pub fn floats(&self, name: &str, width: Option<usize>) -> Result<Vec<f32>, TwinError> {
        let tensor = self.tensor(name)?;
        if let Some(width) = width.filter(|width| tensor.shape.last() != Some(width)) {
            let problem = format!("shape {:?}, the last axis should be {width}", tensor.shape);
            return Err(TwinError::Tensor { name: name.into(), problem });
        }
        match tensor.kind {
            ElementType::F32 => {
                let number = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                Ok(tensor.bytes.chunks_exact(4).map(number).collect())
            }
            ElementType::F16 => {
                let number = |b: &[u8]| f16::from_le_bytes([b[0], b[1]]).to_f32();
                Ok(tensor.bytes.chunks_exact(2).map(number).collect())
            }
            ElementType::I16 => {
                let number = |b: &[u8]| f32::from(i16::from_le_bytes([b[0], b[1]])) / FIXED_UNITS;
                Ok(tensor.bytes.chunks_exact(2).map(number).collect())
            }
            ElementType::U16 => {
                let number = |b: &[u8]| f32::from(u16::from_le_bytes([b[0], b[1]]));
                Ok(tensor.bytes.chunks_exact(2).map(number).collect())
            }
            other => Err(TwinError::Tensor {
                name: name.into(),
                problem: format!("type {}, not f32, f16, i16 or u16", other.name()),
            }),
        }
    }

    /// Places in a map, pairs of numbers.
    pub fn places(&self, name: &str) -> Result<Vec<f32>, TwinError> {
        let unit = if self.stored(name)? == Numbers::Fixed { MOST_PLACE } else { 1.0 };
        Ok(self.floats(name, Some(2))?.into_iter().map(|number: f32| number * unit).collect())
    }

    /// Whole numbers.
    pub fn integers(&self, name: &str) -> Result<Vec<u32>, TwinError> {
        let tensor = self.tensor(name)?;
        match tensor.kind {
            ElementType::U32 => {
                let number = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                Ok(tensor.bytes.chunks_exact(4).map(number).collect())
            }
            ElementType::U16 => {
                let number = |b: &[u8]| match u16::from_le_bytes([b[0], b[1]]) {
                    u16::MAX => u32::MAX,
                    number => number.into(),
                };
                Ok(tensor.bytes.chunks_exact(2).map(number).collect())
            }
            ElementType::U8 => {
                let number = |b: &u8| if *b == u8::MAX { u32::MAX } else { (*b).into() };
                Ok(tensor.bytes.iter().map(number).collect())
            }
            other => Err(TwinError::Tensor {
                name: name.into(),
                problem: format!("type {}, not u8, u16 or u32", other.name()),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Header, Inputs, Training};
    use understudy_core::ControlSpecs;

    fn header() -> Header {
        let inputs = Inputs {
            bones: Vec::new(),
            controls: ControlSpecs::new(Vec::new()).expect("no controls are valid"),
        };
        let (rig, units) = ("test".into(), "cm".into());
        Header { rig, topology_hash: 0, units, inputs, training: Training::default() }
    }

    #[test]
    fn whole_numbers_come_back_whatever_their_size() {
        let lists: [(Vec<u32>, ElementType); 7] = [
            (vec![], ElementType::U8),
            (vec![0, u32::MAX, 254], ElementType::U8),
            (vec![0, 255, 7], ElementType::U16),
            (vec![0, 65_534, 7], ElementType::U16),
            (vec![0, u32::MAX, 7_000], ElementType::U16),
            (vec![0, 65_535, 7], ElementType::U32),
            (vec![70_000, u32::MAX], ElementType::U32),
        ];
        for (numbers, dtype) in lists {
            let array = Array::integers(numbers.iter().copied());
            assert_eq!(array.kind, dtype);
            let bytes = write("test", &header(), &(), vec![("list".into(), array)], Section::default())
                .expect("writes");
            let file = Opened::parse(&bytes).expect("reads");
            assert_eq!(file.integers("list").expect("a list"), numbers);
        }
    }

    #[test]
    fn places_come_back_on_pixels_and_between_them() {
        for (places, dtype) in [
            ([0.0f32, 31.0, 7.0, 8.0], ElementType::U16),
            ([0.0, 63.0 + 511.0 / 512.0, 7.5, 1.0 / 512.0], ElementType::I16),
            ([0.0, 31.0, 7.501, 8.0], ElementType::F32),
            ([0.0, 64.5, 7.5, 8.0], ElementType::F32),
            ([0.0, -0.5, 7.5, 8.0], ElementType::F32),
        ] {
            let array = Array::places(&[2, 2], &places);
            assert_eq!(array.kind, dtype);
            let bytes = write("test", &header(), &(), vec![("places".into(), array)], Section::default())
                .expect("writes");
            let file = Opened::parse(&bytes).expect("reads");
            assert_eq!(file.places("places").expect("places"), places);
            assert!(matches!(file.integers("none"), Err(TwinError::Tensor { .. })));
        }
    }
}
