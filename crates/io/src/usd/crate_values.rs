//! Values inside a binary USD file: numbers and words by their 64-bit references, arrays, compressed or not. No count is
//! believed before the bytes behind it are there.

use crate::ParseError;
use half::f16;
use openusd::gf;
use openusd::sdf::{ListOp, Path, Value};

/// Elements of an array that the file's size does not bound by itself (compressed ones), beyond a multiple of that size.
const FREE_ELEMENTS: usize = 1 << 16;
/// Bytes of one value (all samples of an attribute), beyond a multiple of the file's size.
const FREE_BYTES: usize = 16 << 20;

/// A reference to a value: what type it is, whether it is an array, compressed, or held by the reference itself.
#[derive(Clone, Copy)]
pub(super) struct Rep(pub u64);

impl Rep {
    fn kind(self) -> u8 {
        (self.0 >> 48) as u8
    }
    fn is_array(self) -> bool {
        self.0 >> 63 & 1 == 1
    }
    fn is_inlined(self) -> bool {
        self.0 >> 62 & 1 == 1
    }
    fn is_compressed(self) -> bool {
        self.0 >> 61 & 1 == 1
    }
    /// Where the value is.
    fn offset(self) -> usize {
        (self.0 & ((1 << 48) - 1)) as usize
    }
    /// The value of an inlined reference.
    fn bytes(self) -> [u8; 4] {
        (self.0 as u32).to_le_bytes()
    }
}

/// The bytes of a file and its tables of words.
pub(super) struct Values {
    bytes: Vec<u8>,
    version: (u8, u8),
    pub tokens: Vec<String>,
    pub strings: Vec<u32>,
    pub paths: Vec<String>,
}

/// A place in the file.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

fn overrun(at: usize) -> ParseError {
    ParseError::new(format!("byte {at}"), "the file ends inside of a value")
}

impl<'a> Reader<'a> {
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], ParseError> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| overrun(self.at))?;
        let out = &self.bytes[self.at..end];
        self.at = end;
        Ok(out)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let bytes = self.take(N)?;
        let mut out = [0; N];
        out.copy_from_slice(bytes);
        Ok(out)
    }

    pub fn u32(&mut self) -> Result<u32, ParseError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, ParseError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A number of elements of so many bytes each, all of which are there; of packed ones (0 bytes) no more than the file's
    /// size lets expect.
    pub fn count(&mut self, size: usize) -> Result<usize, ParseError> {
        let count = self.u64()?;
        self.checked(count, size)
    }

    fn checked(&self, count: u64, size: usize) -> Result<usize, ParseError> {
        let most = match size {
            0 => 2 * self.bytes.len() + FREE_ELEMENTS,
            size => (self.bytes.len() - self.at) / size,
        };
        usize::try_from(count).ok().filter(|count| *count <= most).ok_or_else(|| {
            ParseError::new(
                format!("byte {}", self.at),
                format!("claims {count} elements, which the file cannot hold"),
            )
        })
    }

    /// A block of LZ4: its size in the file, a number of chunks (none: one without a size of its own), the chunks.
    pub fn compressed(&mut self, most: usize) -> Result<Vec<u8>, ParseError> {
        let start = self.at;
        let size = usize::try_from(self.u64()?).unwrap_or(usize::MAX);
        let input = self.take(size)?;
        // A byte of LZ4 stands for 255 at most.
        let most = most.min(size.saturating_mul(255).saturating_add(64));
        let mut out = vec![0; most];
        let failed = || ParseError::new(format!("byte {start}"), "a compressed block is damaged");
        let mut unpack = |input: &[u8], filled: usize| {
            lz4_flex::block::decompress_into(input, &mut out[filled..])
                .map(|size| filled + size)
                .map_err(|_| failed())
        };
        let (chunks, rest) = input.split_first().ok_or_else(failed)?;
        let mut filled = 0;
        if *chunks == 0 {
            filled = unpack(rest, 0)?;
        } else {
            let mut chunk = Reader { bytes: rest, at: 0 };
            for _ in 0..*chunks {
                let size = chunk.u32()? as usize;
                filled = unpack(chunk.take(size)?, filled)?;
            }
        }
        out.truncate(filled);
        Ok(out)
    }

    /// Compressed 32-bit integers, sign-extended.
    pub fn integers32(&mut self, count: usize) -> Result<Vec<i64>, ParseError> {
        Ok(self.integers(count, 4)?.into_iter().map(|value| i64::from(value as i32)).collect())
    }

    /// Compressed integers of 4 or 8 bytes: the difference to the one before, in two bits each (the common difference, or
    /// one of three widths), then the differences.
    fn integers(&mut self, count: usize, width: usize) -> Result<Vec<i64>, ParseError> {
        let start = self.at;
        let codes = count.div_ceil(4);
        let data = self.compressed(width + codes + count.saturating_mul(width))?;
        let mut reader = Reader { bytes: &data, at: 0 };
        let read = || -> Result<Vec<i64>, ParseError> {
            let common = reader.signed(width)?;
            let codes = reader.take(codes)?;
            let mut value = 0i64;
            let mut out = Vec::with_capacity(count);
            for index in 0..count {
                let step = match codes[index / 4] >> (2 * (index % 4)) & 3 {
                    0 => common,
                    1 => reader.signed(width / 4)?,
                    2 => reader.signed(width / 2)?,
                    _ => reader.signed(width)?,
                };
                value = value.wrapping_add(step);
                out.push(value);
            }
            Ok(out)
        };
        let mut read = read;
        read().map_err(|_| ParseError::new(format!("byte {start}"), "a compressed array is too short"))
    }

    fn signed(&mut self, width: usize) -> Result<i64, ParseError> {
        Ok(match width {
            1 => i64::from(i8::from_le_bytes(self.array()?)),
            2 => i64::from(i16::from_le_bytes(self.array()?)),
            4 => i64::from(i32::from_le_bytes(self.array()?)),
            _ => i64::from_le_bytes(self.array()?),
        })
    }
}

/// A number of the file.
trait Number: Copy {
    const SIZE: usize;
    fn read(bytes: &[u8]) -> Self;
    fn from_integer(value: i64) -> Self;
}

macro_rules! number {
    ($kind:ty, $size:literal, $from:expr) => {
        impl Number for $kind {
            const SIZE: usize = $size;
            fn read(bytes: &[u8]) -> Self {
                let mut raw = [0; $size];
                raw.copy_from_slice(&bytes[..$size]);
                <$kind>::from_le_bytes(raw)
            }
            fn from_integer(value: i64) -> Self {
                ($from)(value)
            }
        }
    };
}

number!(i32, 4, |value| value as i32);
number!(u32, 4, |value| value as u32);
number!(i64, 8, |value| value);
number!(u64, 8, |value| value as u64);
number!(f16, 2, |value| f16::from_f32(value as f32));
number!(f32, 4, |value| value as f32);
number!(f64, 8, |value| value as f64);

impl Values {
    pub fn new(bytes: Vec<u8>) -> Result<Self, ParseError> {
        let version = bytes.get(8..10).ok_or_else(|| overrun(8))?;
        let version = (version[0], version[1]);
        if version.0 != 0 || version.1 < 4 {
            let problem = format!(
                "version {}.{} is not read; save the file again with a current program",
                version.0, version.1
            );
            return Err(ParseError::new("byte 8", problem));
        }
        Ok(Self { bytes, version, tokens: Vec::new(), strings: Vec::new(), paths: Vec::new() })
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn at(&self, place: usize) -> Result<Reader<'_>, ParseError> {
        match place <= self.bytes.len() {
            true => Ok(Reader { bytes: &self.bytes, at: place }),
            false => Err(overrun(place)),
        }
    }

    pub fn value(&self, rep: Rep) -> Result<Value, ParseError> {
        let mut budget = FREE_BYTES + 32 * self.bytes.len();
        match rep.kind() {
            46 => self.samples(rep, &mut budget),
            _ => self.plain(rep, &mut budget),
        }
    }

    /// Samples over time: their times, then a value each.
    fn samples(&self, rep: Rep, budget: &mut usize) -> Result<Value, ParseError> {
        let follow = |place: usize| -> Result<usize, ParseError> {
            let offset = self.at(place)?.u64()? as i64;
            let target = i64::try_from(place).ok().and_then(|place| place.checked_add(offset));
            target.and_then(|target| usize::try_from(target).ok()).ok_or_else(|| overrun(place))
        };
        let place = follow(rep.offset())?;
        let times = Rep(self.at(place)?.u64()?);
        let Value::DoubleVec(times) = self.plain(times, budget)? else {
            return Err(ParseError::new(format!("byte {place}"), "samples without times"));
        };
        let mut reader = self.at(follow(place + 8)?)?;
        if reader.count(8)? != times.len() {
            return Err(ParseError::new(format!("byte {place}"), "as many samples as times expected"));
        }
        let mut out = Vec::with_capacity(times.len());
        for time in times {
            out.push((time, self.plain(Rep(reader.u64()?), budget)?));
        }
        Ok(Value::TimeSamples(out))
    }

    fn spend(&self, rep: Rep, bytes: usize, budget: &mut usize) -> Result<(), ParseError> {
        *budget = budget.checked_sub(bytes).ok_or_else(|| {
            ParseError::new(
                format!("byte {}", rep.offset()),
                "holds far more than the file's size lets expect",
            )
        })?;
        Ok(())
    }

    /// Where an array begins and how long it is; nothing for the empty array.
    fn array_at(&self, rep: Rep, size: usize) -> Result<Option<(Reader<'_>, usize)>, ParseError> {
        if rep.offset() == 0 {
            return Ok(None);
        }
        let mut reader = self.at(rep.offset())?;
        if self.version.1 < 5 {
            // The number of dimensions, always one.
            reader.u32()?;
        }
        let count = if self.version.1 < 7 { u64::from(reader.u32()?) } else { reader.u64()? };
        let count = reader.checked(count, size)?;
        Ok((count > 0).then_some((reader, count)))
    }

    /// Groups of `N` numbers, as vectors are stored.
    fn groups<T: Number, const N: usize>(
        &self,
        rep: Rep,
        budget: &mut usize,
    ) -> Result<Vec<[T; N]>, ParseError> {
        let Some((mut reader, count)) = self.array_at(rep, N * T::SIZE)? else { return Ok(Vec::new()) };
        self.spend(rep, count * N * T::SIZE, budget)?;
        let bytes = reader.take(count * N * T::SIZE)?;
        let group = |chunk: &[u8]| std::array::from_fn(|place| T::read(&chunk[place * T::SIZE..]));
        Ok(bytes.chunks_exact(N * T::SIZE).map(group).collect())
    }

    /// Numbers, which may be compressed: integers as differences, others as integers or as places in a table.
    fn numbers<T: Number>(&self, rep: Rep, whole: bool, budget: &mut usize) -> Result<Vec<T>, ParseError> {
        let since = if whole { 5 } else { 6 };
        let packed = rep.is_compressed() && self.version.1 >= since;
        let Some((mut reader, count)) = self.array_at(rep, if packed { 0 } else { T::SIZE })? else {
            return Ok(Vec::new());
        };
        // Few elements are never packed.
        if !packed || count < 4 {
            let count = reader.checked(count as u64, T::SIZE)?;
            self.spend(rep, count * T::SIZE, budget)?;
            return Ok(reader.take(count * T::SIZE)?.chunks_exact(T::SIZE).map(T::read).collect());
        }
        self.spend(rep, count * 8, budget)?;
        if whole {
            let values = if T::SIZE == 8 { reader.integers(count, 8)? } else { reader.integers32(count)? };
            return Ok(values.into_iter().map(T::from_integer).collect());
        }
        match reader.take(1)?[0] {
            b'i' => Ok(reader.integers32(count)?.into_iter().map(T::from_integer).collect()),
            b't' => {
                let size = reader.u32()?;
                let size = reader.checked(u64::from(size), T::SIZE)?;
                let table: Vec<T> = reader.take(size * T::SIZE)?.chunks_exact(T::SIZE).map(T::read).collect();
                let wrong =
                    || ParseError::new(format!("byte {}", rep.offset()), "a place outside of its table");
                let places = reader.integers32(count)?;
                places.into_iter().map(|place| table.get(place as usize).copied().ok_or_else(wrong)).collect()
            }
            code => Err(ParseError::new(format!("byte {}", rep.offset()), format!("unknown packing {code}"))),
        }
    }

    /// One group of numbers: inlined ones are whole numbers of a byte each.
    fn one<T: Number, const N: usize>(&self, rep: Rep) -> Result<[T; N], ParseError> {
        if rep.is_inlined() {
            let bytes = rep.bytes();
            return Ok(std::array::from_fn(|place| {
                T::from_integer(i64::from(bytes.get(place).map_or(0, |byte| *byte as i8)))
            }));
        }
        let bytes = self.at(rep.offset())?.take(N * T::SIZE)?;
        Ok(std::array::from_fn(|place| T::read(&bytes[place * T::SIZE..])))
    }

    fn token(&self, index: u64) -> Result<&str, ParseError> {
        let token = usize::try_from(index).ok().and_then(|index| self.tokens.get(index));
        token
            .map(String::as_str)
            .ok_or_else(|| ParseError::new("section TOKENS", format!("has no word {index}")))
    }

    fn string(&self, index: u32) -> Result<&str, ParseError> {
        let token = self.strings.get(index as usize);
        self.token(u64::from(
            *token.ok_or_else(|| ParseError::new("section STRINGS", format!("has no text {index}")))?,
        ))
    }

    /// Words by a list of their numbers behind its length.
    fn words<'a>(
        &'a self,
        mut reader: Reader<'_>,
        count: usize,
        word: impl Fn(u32) -> Result<&'a str, ParseError>,
        budget: &mut usize,
    ) -> Result<Vec<String>, ParseError> {
        let mut out = Vec::with_capacity(count);
        for _ in 0..count {
            let word = word(reader.u32()?)?;
            *budget = budget
                .checked_sub(word.len() + 24)
                .ok_or_else(|| ParseError::new("words", "are far too many"))?;
            out.push(word.to_owned());
        }
        Ok(out)
    }

    fn plain(&self, rep: Rep, budget: &mut usize) -> Result<Value, ParseError> {
        let list = |mut reader: Reader<'_>| reader.count(4).map(|count| (count, reader.at));
        Ok(match (rep.kind(), rep.is_array()) {
            (3, true) => Value::IntVec(self.numbers(rep, true, budget)?),
            (4, true) => Value::UintVec(self.numbers(rep, true, budget)?),
            (5, true) => Value::Int64Vec(self.numbers(rep, true, budget)?),
            (7, true) => Value::HalfVec(self.numbers(rep, false, budget)?),
            (8, true) => Value::FloatVec(self.numbers(rep, false, budget)?),
            (9, true) | (48, _) => Value::DoubleVec(self.numbers(rep, false, budget)?),
            (3, false) => Value::Int(self.scalar(rep)?),
            (4, false) => Value::Uint(self.scalar(rep)?),
            (5, false) if rep.is_inlined() => Value::Int64(i64::from(i32::from_le_bytes(rep.bytes()))),
            (5, false) => Value::Int64(self.scalar(rep)?),
            (7, false) => Value::Half(self.scalar(rep)?),
            (8, false) => Value::Float(self.scalar(rep)?),
            (9, false) if rep.is_inlined() => Value::Double(f64::from(f32::from_le_bytes(rep.bytes()))),
            (9, false) => Value::Double(self.scalar(rep)?),
            (10, false) => Value::String(self.string(self.scalar(rep)?)?.to_owned()),
            (11, false) => {
                let index =
                    if rep.is_inlined() { u64::from(self.scalar::<u32>(rep)?) } else { self.scalar(rep)? };
                Value::Token(self.token(index)?.into())
            }
            (11, true) => {
                let Some((reader, count)) = self.array_at(rep, 4)? else {
                    return Ok(Value::TokenVec(Vec::new()));
                };
                let words = self.words(reader, count, |index| self.token(u64::from(index)), budget)?;
                Value::TokenVec(words.into_iter().map(Into::into).collect())
            }
            (41, _) => {
                let (count, at) = list(self.at(rep.offset())?)?;
                let words = self.words(self.at(at)?, count, |index| self.token(u64::from(index)), budget)?;
                Value::TokenVec(words.into_iter().map(Into::into).collect())
            }
            (50, _) | (10, true) => {
                let (count, at) = list(self.at(rep.offset())?)?;
                Value::StringVec(self.words(self.at(at)?, count, |index| self.string(index), budget)?)
            }
            (20, true) => Value::Vec2fVec(groups(self.groups(rep, budget)?, |[x, y]| gf::vec2f(x, y))),
            (19, true) => Value::Vec2dVec(groups(self.groups(rep, budget)?, |[x, y]| gf::vec2d(x, y))),
            (21, true) => Value::Vec2hVec(groups(self.groups(rep, budget)?, |[x, y]| gf::vec2h(x, y))),
            (24, true) => Value::Vec3fVec(groups(self.groups(rep, budget)?, |[x, y, z]| gf::vec3f(x, y, z))),
            (23, true) => Value::Vec3dVec(groups(self.groups(rep, budget)?, |[x, y, z]| gf::vec3d(x, y, z))),
            (25, true) => Value::Vec3hVec(groups(self.groups(rep, budget)?, |[x, y, z]| gf::vec3h(x, y, z))),
            (24, false) => {
                let [x, y, z] = self.one(rep)?;
                Value::Vec3f(gf::vec3f(x, y, z))
            }
            (23, false) => {
                let [x, y, z] = self.one(rep)?;
                Value::Vec3d(gf::vec3d(x, y, z))
            }
            (25, false) => {
                let [x, y, z] = self.one(rep)?;
                Value::Vec3h(gf::vec3h(x, y, z))
            }
            // The file has the real part last.
            (17, true) => {
                Value::QuatfVec(groups(self.groups(rep, budget)?, |[x, y, z, w]| gf::quatf(w, x, y, z)))
            }
            (16, true) => {
                Value::QuatdVec(groups(self.groups(rep, budget)?, |[x, y, z, w]| gf::quatd(w, x, y, z)))
            }
            (18, true) => {
                Value::QuathVec(groups(self.groups(rep, budget)?, |[x, y, z, w]| gf::quath(w, x, y, z)))
            }
            (17, false) => {
                let [x, y, z, w] = self.one(rep)?;
                Value::Quatf(gf::quatf(w, x, y, z))
            }
            (16, false) => {
                let [x, y, z, w] = self.one(rep)?;
                Value::Quatd(gf::quatd(w, x, y, z))
            }
            (18, false) => {
                let [x, y, z, w] = self.one(rep)?;
                Value::Quath(gf::quath(w, x, y, z))
            }
            (15, true) => Value::Matrix4dVec(groups(self.groups(rep, budget)?, gf::Matrix4d)),
            (15, false) if rep.is_inlined() => {
                // The diagonal alone.
                let bytes = rep.bytes();
                let cell = |place: usize| {
                    if place.is_multiple_of(5) { f64::from(bytes[place / 5] as i8) } else { 0.0 }
                };
                Value::Matrix4d(gf::Matrix4d(std::array::from_fn(cell)))
            }
            (15, false) => Value::Matrix4d(gf::Matrix4d(self.one(rep)?)),
            (34, _) => self.path_list(rep, budget)?,
            (51, _) => Value::ValueBlock,
            _ => Value::None,
        })
    }

    /// One number; inlined ones are the reference's own bytes.
    fn scalar<T: Number>(&self, rep: Rep) -> Result<T, ParseError> {
        if rep.is_inlined() {
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&rep.bytes());
            return Ok(T::read(&bytes));
        }
        Ok(T::read(self.at(rep.offset())?.take(T::SIZE)?))
    }

    /// Paths of a relationship: a byte says which of the lists follow.
    fn path_list(&self, rep: Rep, budget: &mut usize) -> Result<Value, ParseError> {
        let mut reader = self.at(rep.offset())?;
        let lists = reader.take(1)?[0];
        let mut out = ListOp::<Path> { explicit: lists & 1 != 0, ..ListOp::default() };
        // In this order in the file; removed and reordered ones do not matter here.
        for bit in [1, 2, 5, 6] {
            if lists >> bit & 1 == 0 {
                continue;
            }
            let count = reader.count(4)?;
            let mut paths = Vec::with_capacity(count);
            for _ in 0..count {
                let index = reader.u32()?;
                let path = self.paths.get(index as usize);
                let path =
                    path.ok_or_else(|| ParseError::new("section PATHS", format!("has no path {index}")))?;
                self.spend(rep, path.len() + 24, budget)?;
                paths.push(Path::new(path).map_err(|error| ParseError::new(path.as_str(), error))?);
            }
            match bit {
                1 => out.explicit_items = paths,
                2 => out.added_items = paths,
                5 => out.prepended_items = paths,
                _ => out.appended_items = paths,
            }
        }
        Ok(Value::PathListOp(out))
    }
}

fn groups<T, U, const N: usize>(list: Vec<[T; N]>, make: impl Fn([T; N]) -> U) -> Vec<U> {
    list.into_iter().map(make).collect()
}
