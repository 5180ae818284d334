//! The zip container beneath `.npz` and MediaPipe's `.task`: a directory reader that trusts no length it has not checked, and
//! a writer whose bytes depend on the content alone. Stored and deflated members, no encryption.
//! The crate `zip` would be looser: of two members of one name it keeps the last and cannot say which name it was,
//! and it reads archives that begin somewhere inside a file.

use crate::ParseError;
use flate2::{Crc, Decompress, FlushDecompress, Status};

const LOCAL_HEADER: u32 = 0x0403_4b50;
const CENTRAL_HEADER: u32 = 0x0201_4b50;
const END_OF_DIRECTORY: u32 = 0x0605_4b50;
const ZIP64_END: u32 = 0x0606_4b50;
const ZIP64_LOCATOR: u32 = 0x0706_4b50;
/// Deflate cannot expand more than this (one bit of input gives at most 258 bytes of output, and a
/// block needs a little more than two bits a match): a directory that claims more lies.
const MAX_RATIO: u64 = 1032;

/// One file inside an archive, as its directory describes it.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its path inside the archive.
    pub name: String,
    deflated: bool,
    crc: u32,
    packed: std::ops::Range<usize>,
    /// Bytes once unpacked, as promised; unpacking fails unless it is kept.
    pub size: usize,
}

fn at(byte: usize, problem: impl ToString) -> ParseError {
    ParseError::new(format!("byte {byte}"), problem)
}

fn take<const N: usize>(bytes: &[u8], start: usize) -> Result<[u8; N], ParseError> {
    let end = start.checked_add(N).ok_or_else(|| at(start, "offset out of range"))?;
    let slice = bytes.get(start..end).ok_or_else(|| at(start, "the zip archive is truncated"))?;
    Ok(slice.try_into().expect("N bytes were taken"))
}

fn u16_at(bytes: &[u8], start: usize) -> Result<usize, ParseError> {
    Ok(u16::from_le_bytes(take(bytes, start)?).into())
}

fn u32_at(bytes: &[u8], start: usize) -> Result<u32, ParseError> {
    Ok(u32::from_le_bytes(take(bytes, start)?))
}

fn u64_at(bytes: &[u8], start: usize) -> Result<u64, ParseError> {
    Ok(u64::from_le_bytes(take(bytes, start)?))
}

fn to_usize(value: u64, place: usize) -> Result<usize, ParseError> {
    usize::try_from(value).map_err(|_| at(place, "a length or offset is out of range"))
}

/// Reads the directory at the end of an archive.
pub fn members(bytes: &[u8]) -> Result<Vec<Member>, ParseError> {
    let end = find_end(bytes)?;
    let mut count = u64::try_from(u16_at(bytes, end + 10)?).expect("16 bits fit");
    let mut offset = u64::from(u32_at(bytes, end + 16)?);
    if let Some(locator) = end.checked_sub(20).filter(|place| u32_at(bytes, *place) == Ok(ZIP64_LOCATOR)) {
        let wide = to_usize(u64_at(bytes, locator + 8)?, locator)?;
        if u32_at(bytes, wide)? != ZIP64_END {
            return Err(at(wide, "no zip64 end record where the locator points"));
        }
        count = u64_at(bytes, wide + 32)?;
        offset = u64_at(bytes, wide + 48)?;
    }
    let mut place = to_usize(offset, end)?;
    let mut members = Vec::new();
    for _ in 0..count {
        let (member, next) = member(bytes, place)?;
        members.push(member);
        place = next;
    }
    Ok(members)
}

fn find_end(bytes: &[u8]) -> Result<usize, ParseError> {
    let last = bytes.len().checked_sub(22).ok_or_else(|| at(0, "too short for a zip archive"))?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    (first..=last)
        .rev()
        .find(|place| u32_at(bytes, *place) == Ok(END_OF_DIRECTORY))
        .ok_or_else(|| at(bytes.len(), "not a zip archive, or truncated: no directory at its end"))
}

fn member(bytes: &[u8], place: usize) -> Result<(Member, usize), ParseError> {
    if u32_at(bytes, place)? != CENTRAL_HEADER {
        return Err(at(place, "no directory entry here"));
    }
    let flags = u16_at(bytes, place + 8)?;
    let method = u16_at(bytes, place + 10)?;
    let crc = u32_at(bytes, place + 16)?;
    let mut packed_size = u64::from(u32_at(bytes, place + 20)?);
    let mut size = u64::from(u32_at(bytes, place + 24)?);
    let (name_len, extra_len) = (u16_at(bytes, place + 28)?, u16_at(bytes, place + 30)?);
    let comment_len = u16_at(bytes, place + 32)?;
    let mut local = u64::from(u32_at(bytes, place + 42)?);
    let name_start = place + 46;
    let extra_start = name_start + name_len;
    let next = extra_start + extra_len + comment_len;
    let name = bytes.get(name_start..extra_start).ok_or_else(|| at(place, "truncated directory entry"))?;
    let name = std::str::from_utf8(name).map_err(|_| at(name_start, "a member's name is not UTF-8"))?;
    let extra = bytes.get(extra_start..extra_start + extra_len);
    let extra = extra.ok_or_else(|| at(place, "truncated directory entry"))?;
    widen(extra, extra_start, [&mut size, &mut packed_size, &mut local])?;

    let whose = |problem: &str| ParseError::new(format!("member '{name}'"), problem);
    if flags & 1 != 0 {
        return Err(whose("is encrypted"));
    }
    let deflated = match method {
        0 => false,
        8 => true,
        other => return Err(whose(&format!("compression method {other} is not known (0 and 8 are)"))),
    };
    let local = to_usize(local, place)?;
    if u32_at(bytes, local)? != LOCAL_HEADER {
        return Err(at(local, "no member header where the directory points"));
    }
    let start = local + 30 + u16_at(bytes, local + 26)? + u16_at(bytes, local + 28)?;
    let end = to_usize(packed_size, place)?.checked_add(start).filter(|end| *end <= bytes.len());
    let end = end.ok_or_else(|| whose("runs past the end of the archive"))?;
    let plausible =
        if deflated { size <= packed_size.saturating_mul(MAX_RATIO) } else { size == packed_size };
    if !plausible {
        return Err(whose(&format!("{packed_size} packed bytes cannot hold the {size} bytes it claims")));
    }
    let size = to_usize(size, place)?;
    Ok((Member { name: name.into(), deflated, crc, packed: start..end, size }, next))
}

/// Replaces saturated 32-bit fields by those of the zip64 extra field, which lists only what saturated.
fn widen(extra: &[u8], start: usize, fields: [&mut u64; 3]) -> Result<(), ParseError> {
    let mut place = 0;
    while place + 4 <= extra.len() {
        let (tag, length) = (u16_at(extra, place)?, u16_at(extra, place + 2)?);
        if tag == 1 {
            let mut value = place + 4;
            for field in fields {
                if *field == u64::from(u32::MAX) {
                    *field = u64_at(extra, value).map_err(|_| at(start, "short zip64 field"))?;
                    value += 8;
                }
            }
            return Ok(());
        }
        place += 4 + length;
    }
    Ok(())
}

/// At most `limit` bytes from the start of a member; memory grows with what is really there.
pub(crate) fn unpack_prefix(bytes: &[u8], member: &Member, limit: usize) -> Result<Vec<u8>, ParseError> {
    let limit = limit.min(member.size);
    let packed = &bytes[member.packed.clone()];
    if !member.deflated {
        return Ok(packed[..limit].to_vec());
    }
    let whose = |problem: &str| ParseError::new(format!("member '{}'", member.name), problem);
    let mut inflater = Decompress::new(false);
    let mut out = Vec::with_capacity(limit.min(1 << 16));
    while out.len() < limit {
        if out.len() == out.capacity() {
            out.reserve(out.len().max(1 << 12).min(limit - out.len()));
        }
        let (read, written) = (inflater.total_in() as usize, out.len());
        let status = inflater
            .decompress_vec(&packed[read..], &mut out, FlushDecompress::None)
            .map_err(|_| whose("the compressed data is damaged"))?;
        let stuck = inflater.total_in() as usize == read && out.len() == written;
        if status == Status::StreamEnd || stuck {
            break;
        }
    }
    if out.len() < limit {
        return Err(whose(&format!("ends after {} of {} bytes", out.len(), member.size)));
    }
    out.truncate(limit);
    Ok(out)
}

/// A whole member, its length and checksum verified.
pub fn unpack(bytes: &[u8], member: &Member) -> Result<Vec<u8>, ParseError> {
    let out = unpack_prefix(bytes, member, member.size)?;
    if checksum(&out) != member.crc {
        return Err(ParseError::new(format!("member '{}'", member.name), "the checksum is wrong"));
    }
    Ok(out)
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Collects members, stored as they are, dated 1980-01-01.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
}

impl Archive {
    /// Appends a member; `None` when the archive would pass the 4 GiB that plain zip can address.
    pub fn add(&mut self, name: &str, content: &[u8]) -> Option<()> {
        let local = u32::try_from(self.bytes.len()).ok()?;
        let size = u32::try_from(content.len()).ok()?;
        let name_len = u16::try_from(name.len()).ok()?;
        self.count = self.count.checked_add(1).filter(|count| *count < u16::MAX)?;
        let mut common = Vec::with_capacity(26);
        for half in [20u16, 1 << 11, 0, 0, (1 << 5) | 1] {
            common.extend(half.to_le_bytes());
        }
        for word in [checksum(content), size, size] {
            common.extend(word.to_le_bytes());
        }
        common.extend(name_len.to_le_bytes());
        common.extend(0u16.to_le_bytes());

        self.bytes.extend(LOCAL_HEADER.to_le_bytes());
        self.bytes.extend(&common);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(content);

        self.directory.extend(CENTRAL_HEADER.to_le_bytes());
        self.directory.extend(20u16.to_le_bytes());
        self.directory.extend(&common);
        self.directory.extend([0; 10]);
        self.directory.extend(local.to_le_bytes());
        self.directory.extend(name.as_bytes());
        (self.bytes.len() + self.directory.len() < u32::MAX as usize).then_some(())
    }

    /// The archive's bytes.
    pub fn finish(mut self) -> Vec<u8> {
        let (offset, size) = (self.bytes.len() as u32, self.directory.len() as u32);
        self.bytes.append(&mut self.directory);
        self.bytes.extend(END_OF_DIRECTORY.to_le_bytes());
        self.bytes.extend([0; 4]);
        for _ in 0..2 {
            self.bytes.extend(self.count.to_le_bytes());
        }
        self.bytes.extend(size.to_le_bytes());
        self.bytes.extend(offset.to_le_bytes());
        self.bytes.extend(0u16.to_le_bytes());
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_back_and_damage_is_found() {
        let mut archive = Archive::default();
        archive.add("a.npy", b"first").expect("small");
        archive.add("b.npy", b"second member").expect("small");
        let bytes = archive.finish();
        let found = members(&bytes).expect("valid");
        assert_eq!(found.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["a.npy", "b.npy"]);
        assert_eq!(unpack(&bytes, &found[1]).expect("whole"), b"second member");
        let mut damaged = bytes.clone();
        damaged[found[1].packed.start] ^= 1;
        assert!(unpack(&damaged, &found[1]).expect_err("bit flip").problem.contains("checksum"));
        for end in 0..bytes.len() {
            assert!(members(&bytes[..end]).is_err(), "truncated at {end}");
        }
    }

    #[test]
    fn a_directory_cannot_claim_a_bomb() {
        let mut archive = Archive::default();
        archive.add("a.npy", b"first").expect("small");
        let mut bytes = archive.finish();
        let directory = bytes.len() - 22 - 46 - 5;
        bytes[directory + 10] = 8;
        bytes[directory + 24..directory + 28].copy_from_slice(&u32::MAX.to_le_bytes());
        let problem = members(&bytes).expect_err("4 GiB from 5 bytes").problem;
        assert!(problem.contains("cannot hold"), "{problem}");
    }
}
