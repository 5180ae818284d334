//! The rig protocol's frames, byte for byte; `docs/guides/rig-protocol.md` is its page. Everything that arrives is
//! checked here before memory is taken for it. What a description says is in [`super::Description`].

use crate::RigPose;
use std::io::{self, Read};
use thiserror::Error;
use understudy_core::{Affine3A, Controls, Mat3A, Vec3, Vec3A};

/// How every frame begins.
pub const MAGIC: [u8; 4] = *b"rig1";
/// No frame has more bytes than this after its head.
pub const LARGEST_FRAME: usize = 1 << 30;
/// Bytes of a frame's head: magic, tag, length.
const HEAD: usize = 12;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// Asks for a description.
    Describe,
    /// Answers with one.
    Rig,
    /// Asks for poses.
    Evaluate,
    /// Answers with them.
    Poses,
    /// Answers that a pose, or anything at all, cannot be had.
    Failed,
}

impl Tag {
    const ALL: [(Self, [u8; 4]); 5] = [
        (Self::Describe, *b"desc"),
        (Self::Rig, *b"rig "),
        (Self::Evaluate, *b"eval"),
        (Self::Poses, *b"pose"),
        (Self::Failed, *b"fail"),
    ];

    fn bytes(self) -> [u8; 4] {
        Self::ALL[self as usize].1
    }
}

/// What is wrong with an answer.
#[derive(Debug, Error)]
pub enum ProtocolError {
    /// The stream ended.
    #[error("the answer ended after {got} of {want} bytes")]
    Ended {
        /// Bytes that came.
        got: usize,
        /// Bytes that were announced.
        want: usize,
    },
    /// The stream failed.
    #[error("the answer could not be read: {0}")]
    Io(#[from] io::Error),
    /// No frame: most often a program that prints to its standard output.
    #[error(
        "the answer begins with '{text}' where a frame should; does the program print to standard output?"
    )]
    NotAFrame {
        /// The first bytes, as far as they are text.
        text: String,
    },
    /// A frame longer than any may be.
    #[error("the answer announces {bytes} bytes; {LARGEST_FRAME} are the most")]
    TooLong {
        /// Announced.
        bytes: usize,
    },
    /// A frame of another kind than was asked for.
    #[error("the answer is a frame '{got}', not '{want}'")]
    Unexpected {
        /// Its tag.
        got: String,
        /// The tag of an answer to what was asked.
        want: String,
    },
    /// Other numbers than were described.
    #[error("the answer has {got} {what}, {want} were expected")]
    Count {
        /// Of what.
        what: &'static str,
        /// In the answer.
        got: usize,
        /// Described, or asked for.
        want: usize,
    },
    /// A number that is NaN or infinite.
    #[error("{what} {index} is not finite")]
    NonFinite {
        /// Pose of the batch.
        pose: usize,
        /// `vertex` or `bone`.
        what: &'static str,
        /// Which.
        index: usize,
    },
    /// The rig says that it failed.
    #[error("the rig says: {message}")]
    Failed {
        /// Pose of the batch.
        pose: usize,
        /// In its own words.
        message: String,
    },
    /// A description that is not valid.
    #[error("the description is not valid: {0}")]
    Description(String),
}

impl ProtocolError {
    /// The pose of a batch that is at fault, where the answer tells.
    pub fn pose(&self) -> Option<usize> {
        match self {
            Self::NonFinite { pose, .. } | Self::Failed { pose, .. } => Some(*pose),
            _ => None,
        }
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub tag: Tag,
    /// Its content.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The request for a description.
    pub fn describe() -> Self {
        Self { tag: Tag::Describe, payload: Vec::new() }
    }

    /// The request for poses: their number, the number of controls, the values pose by pose.
    pub fn evaluate<'a>(poses: impl ExactSizeIterator<Item = &'a Controls>, controls: usize) -> Self {
        let mut payload = Vec::with_capacity(8 + 4 * poses.len() * controls);
        payload.extend((poses.len() as u32).to_le_bytes());
        payload.extend((controls as u32).to_le_bytes());
        payload.extend(poses.flat_map(|pose| &pose.0).flat_map(|value| value.to_le_bytes()));
        Self { tag: Tag::Evaluate, payload }
    }

    /// As it goes over the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = (self.payload.len() as u32).to_le_bytes();
        [&MAGIC, &self.tag.bytes(), &length, &self.payload[..]].concat()
    }

    /// Reads one frame. Memory is taken as bytes arrive, never for what a length claims.
    pub fn read(reader: &mut impl Read) -> Result<Self, ProtocolError> {
        let mut head = Vec::with_capacity(HEAD);
        // What came so far is looked at as it comes: a program that prints a few words and waits is found at once.
        while head.len() < HEAD {
            let mut bytes = [0; HEAD];
            let count = match reader.read(&mut bytes[..HEAD - head.len()]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                count => count?,
            };
            head.extend_from_slice(&bytes[..count]);
            if !head.starts_with(&MAGIC[..head.len().min(MAGIC.len())]) {
                return Err(ProtocolError::NotAFrame { text: printable(&head) });
            }
            if count == 0 {
                break;
            }
        }
        let Ok::<[u8; HEAD], _>(head) = head[..].try_into() else {
            return Err(ProtocolError::Ended { got: head.len(), want: HEAD });
        };
        let known = Tag::ALL.iter().find(|(_, bytes)| head[4..8] == *bytes);
        let Some((tag, _)) = known else {
            return Err(ProtocolError::Unexpected {
                got: printable(&head[4..8]),
                want: "rig , pose or fail".into(),
            });
        };
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        if length > LARGEST_FRAME {
            return Err(ProtocolError::TooLong { bytes: length });
        }
        let mut payload = Vec::new();
        reader.take(length as u64).read_to_end(&mut payload)?;
        if payload.len() < length {
            return Err(ProtocolError::Ended { got: payload.len(), want: length });
        }
        Ok(Self { tag: *tag, payload })
    }

    /// The content of an answer, where it is of the kind that was asked for.
    pub fn expect(&self, want: Tag) -> Result<&[u8], ProtocolError> {
        match self.tag {
            tag if tag == want => Ok(&self.payload),
            Tag::Failed => {
                let pose = self.payload.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
                let message = printable(self.payload.get(4..).unwrap_or_default());
                Err(ProtocolError::Failed { pose: pose as usize, message })
            }
            tag => Err(ProtocolError::Unexpected {
                got: printable(&tag.bytes()),
                want: printable(&want.bytes()),
            }),
        }
    }
}

/// What an answer to a request for poses must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PosesShape {
    /// Poses that were asked for.
    pub poses: usize,
    /// Vertices of the description.
    pub vertices: usize,
    /// Bones of the description.
    pub bones: usize,
    /// How many of these are guides, the last ones.
    pub guides: usize,
}

impl PosesShape {
    /// Bytes of numbers per pose.
    pub fn bytes_per_pose(&self) -> usize {
        self.vertices.saturating_mul(12).saturating_add(self.bones.saturating_mul(48))
    }

    /// Reads poses as they were sent, in the rig's own unit and axes, into the first of `out`.
    pub fn parse(&self, payload: &[u8], out: &mut [RigPose]) -> Result<(), ProtocolError> {
        let (counts, numbers) =
            payload.split_at_checked(12).ok_or(ProtocolError::Ended { got: payload.len(), want: 12 })?;
        let count = |place: usize| {
            u32::from_le_bytes([counts[place], counts[place + 1], counts[place + 2], counts[place + 3]])
                as usize
        };
        let wanted = [("poses", self.poses), ("vertices", self.vertices), ("bones", self.bones)];
        for (place, (what, want)) in wanted.into_iter().enumerate() {
            let got = count(4 * place);
            if got != want {
                return Err(ProtocolError::Count { what, got, want });
            }
        }
        let want = self.poses.saturating_mul(self.bytes_per_pose());
        if numbers.len() != want {
            return Err(ProtocolError::Count { what: "bytes of numbers", got: numbers.len(), want });
        }
        if self.bytes_per_pose() == 0 {
            return Ok(());
        }
        for (pose, (bytes, out)) in numbers.chunks_exact(self.bytes_per_pose()).zip(out).enumerate() {
            let (vertices, bones) = bytes.split_at(self.vertices * 12);
            out.vertices.clear();
            out.vertices.extend(vertices.chunks_exact(12).map(|bytes| Vec3::from_array(floats(bytes))));
            out.global.0.clear();
            out.global.0.extend(bones.chunks_exact(48).map(|bytes| affine(&floats(bytes))));
            let finite = [
                ("vertex", out.vertices.iter().position(|vertex| !vertex.is_finite())),
                ("bone", out.global.0.iter().position(|bone| !bone.is_finite())),
            ];
            if let Some((what, index)) = finite.into_iter().find_map(|(what, place)| Some((what, place?))) {
                return Err(ProtocolError::NonFinite { pose, what, index });
            }
            out.guides.clear();
            out.guides.extend(out.global.0.drain(self.bones.saturating_sub(self.guides)..));
        }
        Ok(())
    }
}

/// A bone's three rows of four numbers as a map.
pub(super) fn affine(rows: &[f32; 12]) -> Affine3A {
    let column = |c: usize| Vec3A::new(rows[c], rows[4 + c], rows[8 + c]);
    Affine3A { matrix3: Mat3A::from_cols(column(0), column(1), column(2)), translation: column(3) }
}

fn floats<const N: usize>(bytes: &[u8]) -> [f32; N] {
    std::array::from_fn(|n| {
        f32::from_le_bytes([bytes[4 * n], bytes[4 * n + 1], bytes[4 * n + 2], bytes[4 * n + 3]])
    })
}

/// Bytes for a message: text as it is, anything else as dots, and not too much of it.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]);
    let shown = |c: char| if c.is_control() || c == char::REPLACEMENT_CHARACTER { '.' } else { c };
    text.trim_end().chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poses(numbers: &[f32]) -> Vec<u8> {
        let mut payload: Vec<u8> = [2u32, 1, 1].iter().flat_map(|n| n.to_le_bytes()).collect();
        payload.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        payload
    }

    #[test]
    fn frames_come_back_and_damage_is_named() {
        let frame = Frame::evaluate([Controls(vec![1.0, -2.5])].iter(), 2);
        let bytes = frame.to_bytes();
        assert_eq!(Frame::read(&mut &bytes[..]).expect("whole"), frame);
        for length in 0..bytes.len() {
            assert!(matches!(Frame::read(&mut &bytes[..length]), Err(ProtocolError::Ended { .. })));
        }
        let printed = Frame::read(&mut &b"Blender 5.0 says hello\n"[..]).expect_err("no frame");
        assert!(printed.to_string().contains("'Blender 5.0"), "{printed}");
        // A few words without an end are enough.
        let waits = &mut Read::chain(&b"hi"[..], io::repeat(0).take(0));
        assert!(matches!(Frame::read(waits), Err(ProtocolError::NotAFrame { .. })));
        let mut long = bytes.clone();
        long[8..12].fill(0xff);
        assert!(matches!(Frame::read(&mut &long[..]), Err(ProtocolError::TooLong { .. })));
        // A length that is allowed but not kept takes no memory in advance.
        long[11] = 0x3f;
        assert!(matches!(Frame::read(&mut &long[..]), Err(ProtocolError::Ended { got: 16, .. })));
    }

    #[test]
    fn poses_are_checked_before_they_are_believed() {
        let shape = PosesShape { poses: 2, vertices: 1, bones: 1, guides: 0 };
        let numbers: Vec<f32> = (0..30).map(|n| n as f32).collect();
        let mut out = vec![RigPose::default(); 2];
        shape.parse(&poses(&numbers), &mut out).expect("valid");
        assert_eq!(out[1].vertices, [Vec3::new(15.0, 16.0, 17.0)]);
        // Rows of a 3 × 4 matrix: the last of each is the translation.
        assert_eq!(Vec3::from(out[0].global.0[0].translation), Vec3::new(6.0, 10.0, 14.0));
        assert_eq!(Vec3::from(out[0].global.0[0].matrix3.x_axis), Vec3::new(3.0, 7.0, 11.0));
        let other = PosesShape { vertices: 2, ..shape }.parse(&poses(&numbers), &mut out);
        assert!(matches!(other, Err(ProtocolError::Count { what: "vertices", got: 1, want: 2 })));
        let short = shape.parse(&poses(&numbers[..29]), &mut out);
        assert!(matches!(short, Err(ProtocolError::Count { what: "bytes of numbers", .. })));
        let mut nan = numbers.clone();
        nan[20] = f32::NAN;
        let bone = shape.parse(&poses(&nan), &mut out);
        assert!(matches!(bone, Err(ProtocolError::NonFinite { pose: 1, what: "bone", index: 0 })));
        assert!(matches!(shape.parse(&[0; 11], &mut out), Err(ProtocolError::Ended { .. })));
    }
}
