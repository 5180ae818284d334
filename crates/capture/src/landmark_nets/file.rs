//! The file of landmark nets, and the checkpoint of a training, which is the same with what the training still needs: a line that
//! says what it is, a length, a header in JSON, numbers in f32, a checksum.

use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

/// First line.
const MAGIC: &[u8] = b"understudy landmarks 1\n";

/// Why bytes are no landmark nets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FileError {
    /// Something else.
    #[error("is no file of landmark nets")]
    Kind,
    /// Cut or changed.
    #[error("is truncated or damaged")]
    Damaged,
    /// A header that makes no sense.
    #[error("header: {0}")]
    Header(String),
}

/// Whether bytes begin as a file of landmark nets does.
pub fn is_landmark_file(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Writes header and numbers.
pub(super) fn write(header: &impl Serialize, numbers: &[&[f32]]) -> Vec<u8> {
    let header = serde_json::to_vec(header).expect("plain numbers and names");
    let mut out = MAGIC.to_vec();
    out.extend((header.len() as u64).to_le_bytes());
    out.extend(&header);
    for part in numbers {
        out.extend(part.iter().flat_map(|value| value.to_le_bytes()));
    }
    out.extend(checksum(&out).to_le_bytes());
    out
}

/// Reads header and numbers.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, Vec<f32>), FileError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(FileError::Kind)?;
    let (body, sum) = bytes.split_last_chunk::<8>().ok_or(FileError::Damaged)?;
    if checksum(body) != u64::from_le_bytes(*sum) {
        return Err(FileError::Damaged);
    }
    let rest = &rest[..rest.len().checked_sub(8).ok_or(FileError::Damaged)?];
    let (length, rest) = rest.split_first_chunk::<8>().ok_or(FileError::Damaged)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| FileError::Damaged)?;
    let (header, numbers) = rest.split_at_checked(length).ok_or(FileError::Damaged)?;
    if numbers.len() % 4 != 0 {
        return Err(FileError::Damaged);
    }
    let header = serde_json::from_slice(header).map_err(|error| FileError::Header(error.to_string()))?;
    let numbers = numbers.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    Ok((header, numbers.collect()))
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
