//! NumPy archives (`.npz`): typed, shape-checked access by name, and a writer whose bytes depend on
//! the content alone. Start at [`NpzReader::parse`] and [`NpzWriter`]. A header's shape is compared with
//! the bytes present and with what the caller expects before an array is unpacked, so a hostile
//! file cannot make us allocate more than it holds.

mod npy;

use crate::arrays::{Array, Dim, check_finite, check_shape, in_array, unravel};
use crate::{ParseError, ReadError, WriteError, read_bytes, write_atomic, zip};
use npy::{Header, Kind};
use std::path::Path;

/// An archive whose headers have been read; arrays are unpacked when asked for.
#[derive(Debug)]
pub struct NpzReader {
    bytes: Vec<u8>,
    arrays: Vec<(String, zip::Member, Header)>,
}

impl NpzReader {
    /// The most bytes that one array may unpack to.
    pub const MAX_ARRAY_BYTES: usize = 16 << 30;

    /// Opens a file.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        Self::parse(read_bytes(path)?).map_err(ReadError::content(path))
    }

    /// Archives that unpack to no more than this are not suspected.
    const SMALL: usize = 256 << 20;
    /// How many times its own size a larger archive may unpack to. Offsets of shapes, most of them zero, shrink a
    /// hundredfold; a file made to fill memory a thousandfold.
    const MAX_GROWTH: usize = 200;

    /// Reads the directory and every array's header. Members that are no `.npy` are ignored, as NumPy does.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, ParseError> {
        let mut arrays: Vec<(String, zip::Member, Header)> = Vec::new();
        for member in zip::members(&bytes)? {
            let Some(name) = member.name.strip_suffix(".npy").map(str::to_owned) else { continue };
            let whose = |problem: String| in_array(&name, problem);
            if arrays.iter().any(|(other, ..)| *other == name) {
                return Err(whose("appears twice".into()));
            }
            if member.size > Self::MAX_ARRAY_BYTES {
                return Err(whose(format!("{} bytes are more than we unpack", member.size)));
            }
            let prefix = zip::unpack_prefix(&bytes, &member, npy::MAX_HEADER)?;
            let header = Header::parse(&prefix, member.size).map_err(whose)?;
            arrays.push((name, member, header));
        }
        let unpacked = arrays.iter().fold(0usize, |sum, (_, member, _)| sum.saturating_add(member.size));
        if unpacked > Self::SMALL.max(bytes.len().saturating_mul(Self::MAX_GROWTH)) {
            let (name, ..) = arrays.iter().max_by_key(|(_, member, _)| member.size).expect("some are there");
            let problem = format!(
                "the archive's {} bytes would unpack to {unpacked}, more than {} times as many; if that is \
                 meant, save it uncompressed (numpy.savez)",
                bytes.len(),
                Self::MAX_GROWTH
            );
            return Err(in_array(name, problem));
        }
        Ok(Self { bytes, arrays })
    }

    /// The arrays' names in the order of the archive.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.iter().map(|(name, ..)| name.as_str())
    }

    /// Whether there is an array of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.arrays.iter().any(|(other, ..)| other == name)
    }

    /// The shape of an array.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.arrays.iter().find(|(other, ..)| other == name).map(|(.., header)| header.shape.as_slice())
    }

    /// Compares the headers of several arrays with what is expected, before any of them is unpacked. A letter
    /// stands for the same length in all of them; arrays that are not there are left out.
    pub fn check_shapes(&self, expected: &[(&str, &[Dim])]) -> Result<(), ParseError> {
        let mut lengths: Vec<(&str, usize)> = Vec::new();
        for (name, want) in expected {
            let Some(shape) = self.shape(name) else { continue };
            let mut known = want.to_vec();
            for (dim, length) in known.iter_mut().zip(shape) {
                let Dim::Any(letter) = *dim else { continue };
                match lengths.iter().find(|(other, _)| *other == letter) {
                    Some((_, length)) => *dim = Dim::Exactly(*length),
                    None => lengths.push((letter, *length)),
                }
            }
            check_shape(name, shape, &known)?;
        }
        Ok(())
    }

    /// The element type of an array as NumPy writes it: `<f4`, `<U19`.
    pub fn element_type(&self, name: &str) -> Option<&str> {
        self.arrays.iter().find(|(other, ..)| other == name).map(|(.., header)| header.descr.as_str())
    }

    /// Finite numbers as f32, from floats or integers of any width. NaN and infinity are errors that
    /// name the element.
    pub fn f32(&self, name: &str, want: &[Dim]) -> Result<Array<f32>, ParseError> {
        let array = self.load(name, want, "numbers", |header, bytes| Some(float(header, bytes)? as f32))?;
        check_finite(name, &array, f32::is_finite)?;
        Ok(array)
    }

    /// [`Self::f32`] where NaN is allowed and means that a value is missing. Infinity is still an error.
    pub fn f32_with_gaps(&self, name: &str, want: &[Dim]) -> Result<Array<f32>, ParseError> {
        let array = self.load(name, want, "numbers", |header, bytes| Some(float(header, bytes)? as f32))?;
        check_finite(name, &array, |value: f32| !value.is_infinite())?;
        Ok(array)
    }

    /// [`Self::f32`] in double precision.
    pub fn f64(&self, name: &str, want: &[Dim]) -> Result<Array<f64>, ParseError> {
        let array = self.load(name, want, "numbers", float)?;
        check_finite(name, &array, f64::is_finite)?;
        Ok(array)
    }

    /// Integers of any width.
    pub fn i64(&self, name: &str, want: &[Dim]) -> Result<Array<i64>, ParseError> {
        self.load(name, want, "integers", |header, bytes| match header.kind {
            Kind::Signed => Some(signed(bytes)),
            Kind::Unsigned => i64::try_from(unsigned(bytes)).ok(),
            _ => None,
        })
    }

    /// Indices: integers of any width that fit 32 bits and are not negative.
    pub fn u32(&self, name: &str, want: &[Dim]) -> Result<Array<u32>, ParseError> {
        let Array { shape, data } = self.i64(name, want)?;
        let check = |(place, value): (usize, i64)| {
            let problem = || format!("{value} at {:?} is not an index", unravel(&shape, place));
            u32::try_from(value).map_err(|_| in_array(name, problem()))
        };
        let data = data.into_iter().enumerate().map(check).collect::<Result<_, _>>()?;
        Ok(Array { shape, data })
    }

    /// Booleans, or the integers 0 and 1.
    pub fn bools(&self, name: &str, want: &[Dim]) -> Result<Array<bool>, ParseError> {
        self.load(name, want, "booleans", |header, bytes| match header.kind {
            Kind::Bool | Kind::Signed | Kind::Unsigned if unsigned(bytes) <= 1 => Some(unsigned(bytes) == 1),
            _ => None,
        })
    }

    /// Unicode strings (`<U`); trailing zeros are padding.
    pub fn strings(&self, name: &str, want: &[Dim]) -> Result<Array<String>, ParseError> {
        self.load(name, want, "strings", |header, bytes| {
            if header.kind != Kind::Unicode {
                return None;
            }
            let points = bytes.chunks_exact(4).map(|b| u32::try_from(unsigned(b)).expect("four bytes"));
            let text: Option<String> = points.map(char::from_u32).collect();
            Some(text?.trim_end_matches('\0').to_owned())
        })
    }

    fn load<T>(
        &self,
        name: &str,
        want: &[Dim],
        what: &str,
        convert: impl Fn(&Header, &[u8]) -> Option<T>,
    ) -> Result<Array<T>, ParseError> {
        let whose = |problem: String| in_array(name, problem);
        let found = self.arrays.iter().find(|(other, ..)| other == name);
        let (_, member, header) = found.ok_or_else(|| whose("is missing".into()))?;
        check_shape(name, &header.shape, want)?;
        let content = zip::unpack(&self.bytes, member)?;
        let elements = &content[header.start..];
        let size = header.width * header.length;
        let mut item = vec![0u8; size];
        let mut element = |place: usize| {
            let source = &elements[place * size..(place + 1) * size];
            let value = if header.big_endian {
                for (to, from) in item.chunks_exact_mut(header.width).zip(source.chunks_exact(header.width)) {
                    to.copy_from_slice(from);
                    to.reverse();
                }
                convert(header, &item)
            } else {
                convert(header, source)
            };
            value.ok_or_else(|| {
                whose(format!("type '{}' or an element in it cannot be read as {what}", header.descr))
            })
        };
        let count = header.element_count();
        let data: Result<Vec<T>, ParseError> = if header.fortran {
            header.order().into_iter().map(element).collect()
        } else {
            (0..count).map(&mut element).collect()
        };
        Ok(Array { shape: header.shape.clone(), data: data? })
    }
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn signed(bytes: &[u8]) -> i64 {
    let spare = 64 - 8 * bytes.len() as u32;
    ((unsigned(bytes) << spare) as i64) >> spare
}

fn float(header: &Header, bytes: &[u8]) -> Option<f64> {
    let bits = unsigned(bytes);
    match (header.kind, header.width) {
        (Kind::Float, 2) => Some(half::f16::from_bits(bits as u16).to_f64()),
        (Kind::Float, 4) => Some(f64::from(f32::from_bits(bits as u32))),
        (Kind::Float, 8) => Some(f64::from_bits(bits)),
        (Kind::Signed, _) => Some(signed(bytes) as f64),
        (Kind::Unsigned, _) => Some(bits as f64),
        _ => None,
    }
}

/// Collects arrays and writes them as NumPy would, uncompressed, in the order they were added.
#[derive(Debug, Default)]
pub struct NpzWriter {
    archive: zip::Archive,
    names: Vec<String>,
    problem: Option<String>,
}

impl NpzWriter {
    /// An empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an array of f32.
    pub fn f32(&mut self, name: &str, shape: &[usize], data: &[f32]) -> &mut Self {
        let content = data.iter().flat_map(|value| value.to_le_bytes());
        self.add(name, "<f4", shape, data.len(), content)
    }

    /// Adds an array of i32.
    pub fn i32(&mut self, name: &str, shape: &[usize], data: &[i32]) -> &mut Self {
        let content = data.iter().flat_map(|value| value.to_le_bytes());
        self.add(name, "<i4", shape, data.len(), content)
    }

    /// Adds a list of strings.
    pub fn strings<S: AsRef<str>>(&mut self, name: &str, data: &[S]) -> &mut Self {
        let longest = data.iter().map(|s| s.as_ref().chars().count()).max().unwrap_or(0).max(1);
        let padded = |text: &S| {
            let points: Vec<u32> = text.as_ref().chars().map(u32::from).collect();
            let zeros = longest - points.len();
            points.into_iter().chain(std::iter::repeat_n(0, zeros)).flat_map(u32::to_le_bytes)
        };
        let content: Vec<u8> = data.iter().flat_map(padded).collect();
        if data.iter().any(|text| text.as_ref().ends_with('\0')) {
            self.fail(name, "a string that ends with a zero character cannot be stored");
        }
        self.add(name, &format!("<U{longest}"), &[data.len()], data.len(), content.into_iter())
    }

    fn fail(&mut self, name: &str, problem: &str) {
        self.problem.get_or_insert(format!("array '{name}': {problem}"));
    }

    fn add(
        &mut self,
        name: &str,
        descr: &str,
        shape: &[usize],
        count: usize,
        content: impl Iterator<Item = u8>,
    ) -> &mut Self {
        if shape.iter().product::<usize>() != count {
            self.fail(name, &format!("shape {shape:?} for {count} elements"));
        } else if self.names.iter().any(|other| other == name) {
            self.fail(name, "is added twice");
        } else {
            let mut member = npy::write_header(descr, shape);
            member.extend(content);
            if self.archive.add(&format!("{name}.npy"), &member).is_none() {
                self.fail(name, "the archive would be larger than 4 GiB");
            }
            self.names.push(name.into());
        }
        self
    }

    /// The archive's bytes, or the first problem met while adding.
    pub fn finish(self) -> Result<Vec<u8>, String> {
        match self.problem {
            Some(problem) => Err(problem),
            None => Ok(self.archive.finish()),
        }
    }

    /// For tests: the bytes, a second array of a name having been ignored.
    #[cfg(test)]
    pub(crate) fn finish_keeping_first(self) -> Vec<u8> {
        self.archive.finish()
    }

    /// Writes the archive, whole or not at all.
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

    fn sample() -> Vec<u8> {
        let mut writer = NpzWriter::new();
        writer
            .f32("deltas", &[3, 2, 2], &[0.5; 12])
            .i32("faces", &[1, 4], &[0, 1, 2, -1])
            .strings("names", &["smile", "Zähne", ""]);
        writer.finish().expect("valid")
    }

    fn npy(descr: &str, shape: &[usize], content: &[u8]) -> NpzReader {
        let mut archive = zip::Archive::default();
        let mut member = npy::write_header(descr, shape);
        member.extend(content);
        archive.add("a.npy", &member).expect("small");
        NpzReader::parse(archive.finish()).expect("valid")
    }

    proptest! {
        #[test]
        fn save_load_save_is_the_identity(
            numbers in prop::collection::vec(-1e6f32..1e6, 0..40),
            integers in prop::collection::vec(any::<i32>(), 0..40),
            names in prop::collection::vec("[^\0]{0,9}", 1..6),
        ) {
            let save = |numbers: &[f32], integers: &[i32], names: &[String]| {
                let mut writer = NpzWriter::new();
                writer.f32("n", &[numbers.len()], numbers).i32("i", &[integers.len(), 1], integers);
                writer.strings("s", names);
                writer.finish().expect("valid")
            };
            let first = save(&numbers, &integers, &names);
            let reader = NpzReader::parse(first.clone()).expect("just written");
            let back_numbers = reader.f32("n", &[Any("n")]).expect("finite").data;
            let back_integers: Vec<i32> =
                reader.i64("i", &[Any("n"), Exactly(1)]).expect("integers").data.iter().map(|i| *i as i32).collect();
            let back_names = reader.strings("s", &[Any("n")]).expect("strings").data;
            prop_assert_eq!(&back_names, &names);
            prop_assert_eq!(save(&back_numbers, &back_integers, &back_names), first);
        }
    }

    #[test]
    fn errors_name_the_array_and_the_place() {
        let reader = NpzReader::parse(sample()).expect("valid");
        let message = |result: Result<(), ParseError>| result.expect_err("bad").to_string();
        let shape = reader.f32("deltas", &[Any("m"), Any("n"), Exactly(3)]).map(drop);
        assert_eq!(message(shape), "array 'deltas': shape [3,2,2], expected [m,n,3]");
        assert_eq!(message(reader.f32("uv", &[]).map(drop)), "array 'uv': is missing");
        let index = reader.u32("faces", &[Any("f"), Exactly(4)]).map(drop);
        assert_eq!(message(index), "array 'faces': -1 at [0, 3] is not an index");
        assert!(message(reader.i64("names", &[Any("n")]).map(drop)).contains("as integers"));
        let nan = npy("<f4", &[1, 2], &[0, 0, 0, 0, 0, 0, 0xc0, 0x7f]);
        let gaps = nan.f32_with_gaps("a", &[Any("n"), Any("m")]).expect("NaN is a gap").data;
        assert!(gaps[0] == 0.0 && gaps[1].is_nan());
        let infinite = npy("<f4", &[1], &[0, 0, 0x80, 0x7f]).f32_with_gaps("a", &[Any("n")]).map(drop);
        assert_eq!(message(infinite), "array 'a': the number at [0] is not finite");
        let nan = nan.f32("a", &[Any("n"), Any("m")]).map(drop);
        assert_eq!(message(nan), "array 'a': the number at [0, 1] is not finite");
        let mut writer = NpzWriter::new();
        writer.f32("a", &[2], &[1.0]);
        assert_eq!(writer.finish().expect_err("count"), "array 'a': shape [2] for 1 elements");
    }

    /// An archive with one compressed array of zeros, cut short: what it claims is in its headers alone.
    fn claim(shape: &[usize], packed_bytes: usize) -> Vec<u8> {
        use flate2::{Compression, write::DeflateEncoder};
        use std::io::Write as _;
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        let header = npy::write_header("<f4", shape);
        encoder.write_all(&header).expect("to memory");
        encoder.write_all(&vec![0; npy::MAX_HEADER]).expect("to memory");
        let mut packed = encoder.finish().expect("to memory");
        packed.resize(packed_bytes, 0);
        let size = header.len() + 4 * shape.iter().product::<usize>();
        let mut archive = zip::Archive::default();
        archive.add("vertices.npy", &packed).expect("small");
        let mut bytes = archive.finish();
        let directory = bytes.len() - 22 - 46 - "vertices.npy".len();
        bytes[directory + 10] = 8;
        bytes[directory + 24..directory + 28].copy_from_slice(&(size as u32).to_le_bytes());
        bytes
    }

    #[test]
    fn bombs_are_refused_by_their_headers() {
        // 2.1 GB from 2.1 MB, which is all that deflate can do.
        let error = NpzReader::parse(claim(&[10_000, 17_500, 3], 2_100_000)).map(drop).expect_err("a bomb");
        assert!(
            error.to_string().starts_with("array 'vertices': ") && error.problem.contains("unpack to 2100")
        );
        // The same growth of a small archive, and a large one of little growth, are let through.
        NpzReader::parse(claim(&[100, 17_500, 3], 25_000)).expect("21 MB are not worth a word");
        NpzReader::parse(claim(&[10_000, 17_500, 3], 20_000_000)).expect("a hundredfold happens");
    }

    #[test]
    fn shapes_agree_before_anything_is_unpacked() {
        let reader = NpzReader::parse(claim(&[100, 17_500, 3], 25_000)).expect("headers are fine");
        let error = reader.check_shapes(&[("vertices", &[Any("n"), Any("n"), Exactly(3)])]);
        let problem = error.expect_err("two lengths for one letter").to_string();
        assert_eq!(problem, "array 'vertices': shape [100,17500,3], expected [n,100,3]");
    }

    #[test]
    fn every_width_is_read() {
        assert_eq!(npy("<f2", &[1], &[0x00, 0x3e]).f32("a", &[Any("n")]).expect("f16").data, [1.5]);
        assert_eq!(npy(">i2", &[1], &[0xff, 0xfe]).i64("a", &[Any("n")]).expect("big endian").data, [-2]);
        assert_eq!(npy("|u1", &[2], &[7, 255]).u32("a", &[Any("n")]).expect("bytes").data, [7, 255]);
        assert_eq!(npy("|b1", &[2], &[1, 0]).bools("a", &[Any("n")]).expect("bools").data, [true, false]);
        assert_eq!(npy("<f8", &[], &1.25f64.to_le_bytes()).f64("a", &[]).expect("scalar").data, [1.25]);
        assert!(npy("<f8", &[1], &1e300f64.to_le_bytes()).f32("a", &[Any("n")]).is_err(), "overflows f32");
    }
}
