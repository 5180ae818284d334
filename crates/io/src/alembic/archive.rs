//! What Alembic keeps in the container: objects in a tree, each with properties in a tree of their own, and the times
//! of their samples. Headers are packed; their layout is said where each is read.

use super::ogawa::{Child, Container, Data, Group};
use crate::ParseError;
use std::sync::atomic::{AtomicU64, Ordering};

/// Deepest tree of objects or properties.
const MAX_DEPTH: usize = 128;
/// Most samples of a property: two hours at 120 frames per second.
const MAX_SAMPLES: u32 = 1 << 20;
/// Bytes that every file may become in memory: topology, a frame, names, times.
const SMALL: u64 = 32 << 20;
/// How many times its own size a file may become. Samples are shared between objects, so that a file may rightly hold
/// more than its size tells; one that is made to fill memory holds thousands of times more.
const MAX_GROWTH: u64 = 64;
/// Before each sample: a hash of its content.
pub(super) const KEY: u64 = 16;
/// Cycles at least so long mark samples that have a time each.
const ACYCLIC: f64 = f64::MAX / 32.0;

/// An opened archive.
#[derive(Debug)]
pub(super) struct Archive {
    pub container: Container,
    /// `key=value;…`: which program wrote it.
    pub metadata: String,
    pub samplings: Vec<TimeSampling>,
    indexed: Vec<String>,
    spent: AtomicU64,
}

/// When the samples of a property are.
#[derive(Debug, Clone)]
pub(super) struct TimeSampling {
    /// Seconds, ascending: of one cycle, or of all samples.
    times: Vec<f64>,
    /// Seconds; `None` where every sample has its own time.
    cycle: Option<f64>,
}

/// An object of the tree.
#[derive(Debug, Clone)]
pub(super) struct Object {
    /// `/hero/body`.
    pub path: String,
    /// Such as `AbcGeom_PolyMesh_v1`; empty without.
    pub schema: String,
    pub parent: Option<usize>,
    /// Its properties.
    pub properties: Vec<Property>,
}

/// An object that was named, but not read.
struct Below {
    group: Group,
    name: String,
    metadata: String,
    parent: Option<usize>,
    depth: usize,
}

/// Whether a property holds others, or samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Properties,
    /// One value a sample.
    Value,
    /// An array a sample.
    Array,
}

/// The type of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
    Text,
}

/// A property with the place of its samples.
#[derive(Debug, Clone)]
pub(super) struct Property {
    pub name: String,
    pub metadata: String,
    pub holds: Holds,
    pub element: Element,
    /// Numbers per element: 3 for points.
    pub extent: u64,
    /// Number of samples, repeated ones included.
    pub samples: u32,
    /// The first and last sample that differ from those before them; both 0 where nothing changes.
    changed: (u32, u32),
    pub sampling: usize,
    group: Group,
}

impl Element {
    fn of(code: u32) -> Option<Self> {
        use Element::{Bool, F16, F32, F64, I8, I16, I32, I64, Text, U8, U16, U32, U64};
        let all = [Bool, U8, I8, U16, I16, U32, I32, U64, I64, F16, F32, F64, Text, Text];
        all.get(code as usize).copied()
    }

    /// Bytes of one number; 0 for text.
    pub fn size(self) -> u64 {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::Text => 0,
        }
    }
}

impl TimeSampling {
    /// The time of a sample, seconds.
    pub fn time(&self, sample: u32) -> f64 {
        let count = self.times.len();
        match self.cycle {
            Some(cycle) => self.times[sample as usize % count] + cycle * (sample as usize / count) as f64,
            None => self.times[(sample as usize).min(count - 1)],
        }
    }

    /// The last sample that is not after a time, of so many.
    pub fn at_or_before(&self, time: f64, samples: u32) -> u32 {
        let (mut low, mut high) = (0, samples.saturating_sub(1));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.time(middle) <= time { low = middle } else { high = middle - 1 }
        }
        low
    }
}

/// Reads packed numbers one after another.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    place: String,
}

impl<'a> Cursor<'a> {
    fn new(bytes: &'a [u8], data: Data) -> Self {
        Self { bytes, at: 0, place: data.place() }
    }

    fn left(&self) -> bool {
        self.at < self.bytes.len()
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], ParseError> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| ParseError::new(self.place.clone(), "a header ends too early"))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn number(&mut self, width: usize) -> Result<u32, ParseError> {
        Ok(self.take(width)?.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }

    fn seconds(&mut self) -> Result<f64, ParseError> {
        Ok(f64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes")))
    }

    fn text(&mut self, width: usize) -> Result<String, ParseError> {
        let length = self.number(width)? as usize;
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }
}

impl Archive {
    /// Reads what describes the whole archive. Children of the root: version of the container's content, version of
    /// the library, the topmost object, metadata, time samplings, metadata that headers refer to by number.
    pub fn new(container: Container) -> Result<Self, ParseError> {
        let root = container.root();
        if root.count < 6 {
            return Err(ParseError::new("root", format!("has {} parts, 6 are expected", root.count)));
        }
        let data = |index| container.data(root, index);
        let metadata = String::from_utf8_lossy(&container.read(data(3)?, 0)?).into_owned();
        let mut indexed = vec![String::new()];
        let bytes = container.read(data(5)?, 0)?;
        let mut cursor = Cursor::new(&bytes, data(5)?);
        while cursor.left() {
            indexed.push(cursor.text(1)?);
        }
        let samplings = read_samplings(&container.read(data(4)?, 0)?, data(4)?)?;
        Ok(Self { metadata, samplings, indexed, container, spent: AtomicU64::new(0) })
    }

    /// A value of the archive's metadata.
    pub fn note(&self, key: &str) -> Option<&str> {
        value_of(&self.metadata, key)
    }

    /// Notes that so many bytes come into memory, and refuses what the file's size does not account for: objects may
    /// share samples, and a hostile file shares one a million times.
    pub fn charge(&self, place: &str, bytes: u64) -> Result<(), ParseError> {
        let bytes = bytes.min(u64::MAX / 4);
        let spent = self.spent.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if spent <= SMALL.saturating_add(self.container.length().saturating_mul(MAX_GROWTH)) {
            return Ok(());
        }
        let problem = format!(
            "the file's {} bytes would become more than {MAX_GROWTH} times as many",
            self.container.length()
        );
        Err(ParseError::new(place, problem))
    }

    /// All objects, parents first, without the one above all.
    pub fn objects(&self) -> Result<Vec<Object>, ParseError> {
        let mut objects: Vec<Object> = Vec::new();
        let top = self.container.group(self.container.root(), 2)?;
        let mut open = self.below(top, None, 0)?;
        while let Some(Below { group, name, metadata, parent, depth }) = open.pop() {
            let above = parent.map_or("", |parent| objects[parent].path.as_str());
            let path = format!("{above}/{name}");
            self.charge(&path, 2 * path.len() as u64 + 128)?;
            if depth > MAX_DEPTH {
                return Err(ParseError::new(path, format!("hangs more than {MAX_DEPTH} objects deep")));
            }
            let properties = match group.count {
                0 => Vec::new(),
                _ => match self.container.child(group, 0)? {
                    Child::Group(group) => self.properties(group, &path)?,
                    Child::Data(_) => Vec::new(),
                },
            };
            let schema = value_of(&metadata, "schema").unwrap_or_default().to_owned();
            objects.push(Object { path, schema, parent, properties });
            open.extend(self.below(group, Some(objects.len() - 1), depth + 1)?);
        }
        Ok(objects)
    }

    /// The objects in a group, the first last: it is taken next. A header is the length of the name (4 bytes), the
    /// name, the number of the metadata (1), or 255 and its length (4) and itself; at the end are 32 bytes of hashes.
    fn below(&self, group: Group, parent: Option<usize>, depth: usize) -> Result<Vec<Below>, ParseError> {
        const HASHES: u64 = 32;
        let Some(data) = self.container.headers(group)?.filter(|data| data.size > HASHES) else {
            return Ok(Vec::new());
        };
        self.charge(&data.place(), 16 * data.size)?;
        let mut bytes = self.container.read(data, 0)?;
        bytes.truncate((data.size - HASHES) as usize);
        let mut cursor = Cursor::new(&bytes, data);
        let mut below = Vec::new();
        while cursor.left() {
            let name = cursor.text(4)?;
            let number = cursor.number(1)?;
            let metadata = self.metadata_of(number, 4, &mut cursor)?;
            let group = self.container.group(group, below.len() as u64 + 1)?;
            below.push(Below { group, name, metadata, parent, depth });
        }
        below.reverse();
        Ok(below)
    }

    fn metadata_of(&self, number: u32, width: usize, cursor: &mut Cursor<'_>) -> Result<String, ParseError> {
        if number == 0xff {
            return cursor.text(width);
        }
        self.indexed.get(number as usize).cloned().ok_or_else(|| {
            let problem = format!("metadata {number} of {}", self.indexed.len());
            ParseError::new(cursor.place.clone(), problem)
        })
    }

    /// The properties in a group. A header is 4 bytes of facts, then numbers as wide as the facts say: the number of
    /// samples, the first and last that changed, the time sampling, the name's length; then the name and metadata.
    pub fn properties(&self, group: Group, path: &str) -> Result<Vec<Property>, ParseError> {
        const SAMPLING: u32 = 1 << 8;
        const FIRST_AND_LAST: u32 = 1 << 9;
        const CONSTANT: u32 = 1 << 11;
        let Some(data) = self.container.headers(group)? else { return Ok(Vec::new()) };
        self.charge(path, data.size.saturating_mul(8))?;
        let bytes = self.container.read(data, 0)?;
        let mut cursor = Cursor::new(&bytes, data);
        let mut properties = Vec::new();
        while cursor.left() {
            let facts = cursor.number(4)?;
            let width = 1 << (facts >> 2 & 3).min(2);
            let holds = match facts & 3 {
                0 => Holds::Properties,
                1 => Holds::Value,
                _ => Holds::Array,
            };
            let (mut samples, mut changed, mut sampling) = (0, (0, 0), 0);
            if holds != Holds::Properties {
                samples = cursor.number(width)?;
                changed = match facts {
                    _ if facts & FIRST_AND_LAST != 0 => (cursor.number(width)?, cursor.number(width)?),
                    _ if facts & CONSTANT != 0 => (0, 0),
                    _ => (1, samples.saturating_sub(1)),
                };
                if facts & SAMPLING != 0 {
                    sampling = cursor.number(width)? as usize;
                }
            }
            let name = cursor.text(width)?;
            let place = || format!("{path}: property '{name}'");
            let metadata = self.metadata_of(facts >> 20 & 0xff, width, &mut cursor)?;
            let element = Element::of(facts >> 4 & 0xf)
                .ok_or_else(|| ParseError::new(place(), "has a type that Alembic does not have"))?;
            let extent = u64::from(facts >> 12 & 0xff);
            let group = self.container.group(group, properties.len() as u64)?;
            let property = Property {
                name: name.clone(),
                metadata,
                holds,
                element,
                extent,
                samples,
                changed,
                sampling,
                group,
            };
            property
                .check(self.samplings.get(sampling))
                .map_err(|problem| ParseError::new(place(), problem))?;
            self.charge(path, (property.name.len() + property.metadata.len() + 128) as u64)?;
            properties.push(property);
        }
        Ok(properties)
    }

    /// The properties that a property holds.
    pub fn inner(&self, property: &Property, path: &str) -> Result<Vec<Property>, ParseError> {
        match property.holds {
            Holds::Properties => self.properties(property.group, path),
            Holds::Value | Holds::Array => Ok(Vec::new()),
        }
    }

    /// Where the content of a sample lies, its key in front; samples that repeat another lie where it does.
    pub fn sample(&self, property: &Property, sample: u32) -> Result<Data, ParseError> {
        let index = u64::from(property.stored(sample));
        // An array has its lengths beside it.
        let index = if property.holds == Holds::Array { 2 * index } else { index };
        self.container.data(property.group, index)
    }

    /// Numbers in a sample.
    pub fn numbers(&self, property: &Property, sample: u32) -> Result<u64, ParseError> {
        let size = self.sample(property, sample)?.size.saturating_sub(KEY);
        Ok(size / property.element.size().max(1))
    }
}

impl Property {
    fn check(&self, sampling: Option<&TimeSampling>) -> Result<(), String> {
        if self.holds == Holds::Properties {
            return Ok(());
        }
        let (first, last) = self.changed;
        if self.samples > MAX_SAMPLES {
            return Err(format!("{} samples are more than {MAX_SAMPLES}", self.samples));
        }
        if self.samples > 0 && (last >= self.samples || first > last + u32::from(last == 0)) {
            return Err(format!("samples {first} to {last} of {} change", self.samples));
        }
        let sampling = sampling.ok_or("has a time sampling that is not there")?;
        if sampling.cycle.is_none() && self.samples as usize > sampling.times.len().max(1) {
            return Err(format!("has {} samples and times for {}", self.samples, sampling.times.len()));
        }
        Ok(())
    }

    /// The stored sample that stands for a sample.
    fn stored(&self, sample: u32) -> u32 {
        let (first, last) = self.changed;
        if sample < first || (first, last) == (0, 0) { 0 } else { sample.min(last) - first + 1 }
    }

    /// Whether it holds numbers, so many per element.
    pub fn is(&self, holds: Holds, extent: u64) -> bool {
        self.holds == holds && self.extent == extent && self.element != Element::Text
    }

    /// Whether all samples are one.
    pub fn is_constant(&self) -> bool {
        self.samples <= 1 || self.changed == (0, 0)
    }
}

/// Groups of: the most samples that use it (4 bytes), seconds of a cycle, number of times (4), times.
fn read_samplings(bytes: &[u8], data: Data) -> Result<Vec<TimeSampling>, ParseError> {
    let mut cursor = Cursor::new(bytes, data);
    let mut samplings = Vec::new();
    while cursor.left() {
        let _most = cursor.number(4)?;
        let cycle = cursor.seconds()?;
        let count = cursor.number(4)? as usize;
        let times = cursor.take(count.saturating_mul(8))?;
        let (times, _) = times.as_chunks::<8>();
        let times: Vec<f64> = times.iter().map(|time| f64::from_le_bytes(*time)).collect();
        let number = samplings.len();
        let fail = |problem: &str| ParseError::new(format!("time sampling {number}"), problem);
        let ascending = times.windows(2).all(|pair| pair[0] < pair[1]);
        if times.is_empty() || !ascending || times.iter().any(|time| !time.is_finite()) {
            return Err(fail("its times do not ascend"));
        }
        let cycle = (cycle < ACYCLIC).then_some(cycle);
        let span = times[times.len() - 1] - times[0];
        if cycle.is_some_and(|cycle| cycle.is_nan() || cycle <= span.max(0.0)) {
            return Err(fail("its times are longer than its cycle"));
        }
        samplings.push(TimeSampling { times, cycle });
    }
    if samplings.is_empty() {
        return Err(ParseError::new("time samplings", "there are none"));
    }
    Ok(samplings)
}

/// A value in `key=value;key=value`.
pub(super) fn value_of<'a>(metadata: &'a str, key: &str) -> Option<&'a str> {
    let pairs = metadata.split(';').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}
