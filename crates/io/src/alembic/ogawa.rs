//! The Ogawa container: a tree of groups and blocks of data, each at its place in the file. Nothing is read before it
//! is asked for, and every place and length is held against the file's length first.
//!
//! A group is a number of children and then their places, 64 bits each; the highest bit of a place marks a block of
//! data, which is its length and its bytes. Numbers are little-endian.

use crate::ParseError;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const MAGIC: &[u8; 5] = b"Ogawa";
const HDF5: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// The sixth byte of a file that its writer closed.
const CLOSED: u8 = 0xff;
const DATA_BIT: u64 = 1 << 63;
/// Length of magic, flag, version and the root's place.
const HEADER: u64 = 16;

/// Where bytes come from: a file that is read place by place, or memory.
#[derive(Debug)]
enum Bytes {
    File(Mutex<File>),
    Memory(Vec<u8>),
}

/// An opened container.
#[derive(Debug)]
pub(super) struct Container {
    bytes: Bytes,
    length: u64,
    root: Group,
}

/// A group; its children's places stay in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    /// Of the first child's place.
    at: u64,
    /// Number of children.
    pub count: u64,
}

/// A block of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Data {
    /// Of its first byte.
    at: u64,
    /// Number of bytes.
    pub size: u64,
}

/// A child of a group.
#[derive(Debug, Clone, Copy)]
pub(super) enum Child {
    Group(Group),
    Data(Data),
}

impl Container {
    /// A file that stays open; `Err` of the outer kind where the system refuses.
    pub fn open(path: &Path) -> std::io::Result<Result<Self, ParseError>> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self::new(Bytes::File(Mutex::new(file)), length))
    }

    /// Bytes in memory.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, ParseError> {
        let length = bytes.len() as u64;
        Self::new(Bytes::Memory(bytes), length)
    }

    fn new(bytes: Bytes, length: u64) -> Result<Self, ParseError> {
        let empty = Group { at: 0, count: 0 };
        let mut container = Self { bytes, length, root: empty };
        let mut header = [0; HEADER as usize];
        let start = &mut header[..length.min(HEADER) as usize];
        container.fill(0, start)?;
        if start.starts_with(HDF5) {
            let problem = "an Alembic file in the old HDF5 container, which is not read here; export it again, or \
                           convert it, as Ogawa (the default of every program since 2014)";
            return Err(ParseError::new("byte 0", problem));
        }
        if !start.starts_with(MAGIC) {
            return Err(ParseError::new("byte 0", "is no Alembic file: 'Ogawa' is missing"));
        }
        if length < HEADER {
            return Err(ParseError::new(format!("byte {length}"), "the file ends within its header"));
        }
        if header[5] != CLOSED {
            let problem = "the file was never closed: the program that wrote it stopped before the end";
            return Err(ParseError::new("byte 5", problem));
        }
        let version = u16::from_be_bytes([header[6], header[7]]);
        if version != 1 {
            return Err(ParseError::new("byte 6", format!("version {version} of Ogawa; 1 is known")));
        }
        let place = u64::from_le_bytes(header[8..16].try_into().expect("eight bytes"));
        container.root = container.group_at(place)?;
        Ok(container)
    }

    /// The group that everything hangs from.
    pub fn root(&self) -> Group {
        self.root
    }

    /// Length of the whole file.
    pub fn length(&self) -> u64 {
        self.length
    }

    fn fill(&self, at: u64, out: &mut [u8]) -> Result<(), ParseError> {
        let end = at.checked_add(out.len() as u64).filter(|end| *end <= self.length);
        let ended = || ParseError::new(format!("byte {at}"), "the file ends before what it names");
        let end = end.ok_or_else(ended)?;
        match &self.bytes {
            Bytes::Memory(bytes) => out.copy_from_slice(&bytes[at as usize..end as usize]),
            Bytes::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(out));
                read.map_err(|error| ParseError::new(format!("byte {at}"), error))?;
            }
        }
        Ok(())
    }

    fn number(&self, at: u64) -> Result<u64, ParseError> {
        let mut bytes = [0; 8];
        self.fill(at, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A place of 0 stands for an empty group.
    fn group_at(&self, place: u64) -> Result<Group, ParseError> {
        if place == 0 {
            return Ok(Group { at: 0, count: 0 });
        }
        let count = self.number(place)?;
        let fits = count.checked_mul(8).and_then(|size| size.checked_add(place)?.checked_add(8));
        match fits.filter(|end| *end <= self.length) {
            Some(_) => Ok(Group { at: place + 8, count }),
            None => {
                let problem = format!("a group of {count} children does not fit into the file");
                Err(ParseError::new(format!("byte {place}"), problem))
            }
        }
    }

    fn data_at(&self, place: u64) -> Result<Data, ParseError> {
        if place == 0 {
            return Ok(Data { at: 0, size: 0 });
        }
        let size = self.number(place)?;
        let fits = size.checked_add(place).and_then(|end| end.checked_add(8));
        match fits.filter(|end| *end <= self.length) {
            Some(_) => Ok(Data { at: place + 8, size }),
            None => {
                let problem = format!("{size} bytes of data do not fit into the file");
                Err(ParseError::new(format!("byte {place}"), problem))
            }
        }
    }

    /// A child by its number.
    pub fn child(&self, group: Group, index: u64) -> Result<Child, ParseError> {
        if index >= group.count {
            let problem = format!("a group of {} children has none with number {index}", group.count);
            return Err(ParseError::new(format!("byte {}", group.at), problem));
        }
        let place = self.number(group.at + 8 * index)?;
        match place & DATA_BIT {
            0 => self.group_at(place).map(Child::Group),
            _ => self.data_at(place & !DATA_BIT).map(Child::Data),
        }
    }

    /// A child that must be a group.
    pub fn group(&self, group: Group, index: u64) -> Result<Group, ParseError> {
        match self.child(group, index)? {
            Child::Group(found) => Ok(found),
            Child::Data(_) => Err(wrong_child(group, index, "data where a group is expected")),
        }
    }

    /// A child that must be data.
    pub fn data(&self, group: Group, index: u64) -> Result<Data, ParseError> {
        match self.child(group, index)? {
            Child::Data(found) => Ok(found),
            Child::Group(_) => Err(wrong_child(group, index, "a group where data is expected")),
        }
    }

    /// The last child, where it is data: the headers of what hangs in a group.
    pub fn headers(&self, group: Group) -> Result<Option<Data>, ParseError> {
        let Some(last) = group.count.checked_sub(1) else { return Ok(None) };
        match self.child(group, last)? {
            Child::Data(data) => Ok(Some(data)),
            Child::Group(_) => Ok(None),
        }
    }

    /// All bytes of a block after the first `skip`, into memory that is used again.
    pub fn read_into(&self, data: Data, skip: u64, out: &mut Vec<u8>) -> Result<(), ParseError> {
        // A block lies within the file, so that its size is bounded by it.
        out.clear();
        out.resize(data.size.saturating_sub(skip) as usize, 0);
        if out.is_empty() { Ok(()) } else { self.fill(data.at + skip, out) }
    }

    /// [`Self::read_into`] new memory.
    pub fn read(&self, data: Data, skip: u64) -> Result<Vec<u8>, ParseError> {
        let mut out = Vec::new();
        self.read_into(data, skip, &mut out)?;
        Ok(out)
    }

    /// The first bytes of a block, which must have as many.
    pub fn start<const N: usize>(&self, data: Data) -> Result<[u8; N], ParseError> {
        let mut out = [0; N];
        if data.size < N as u64 {
            let problem = format!("{} bytes of data where {N} are expected", data.size);
            return Err(ParseError::new(data.place(), problem));
        }
        self.fill(data.at, &mut out)?;
        Ok(out)
    }
}

fn wrong_child(group: Group, index: u64, problem: &str) -> ParseError {
    ParseError::new(format!("byte {}", group.at + 8 * index), problem)
}

impl Data {
    /// For messages.
    pub fn place(&self) -> String {
        format!("byte {}", self.at)
    }
}
