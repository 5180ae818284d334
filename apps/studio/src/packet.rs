//! Binary messages, little-endian: a header as JSON with arrays behind it over HTTP, poses and frames of vertices over
//! the WebSocket. `web/src/lib/packet.ts` is the other end.

use understudy_core::{Affine3A, Vec3};

/// The first number of a message.
pub(crate) const POSE: u32 = 1;

/// Views of a pose, as bits.
pub(crate) const ORIGINAL: u32 = 1;
pub(crate) const TWIN: u32 = 2;
pub(crate) const SKINNING: u32 = 4;
/// The world transforms of the bones, which a twin in the browser may be posed by.
pub(crate) const BONES: u32 = 8;

/// A pose that a page asks for: `[kind, number, views, controls…]`, four bytes each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PoseRequest {
    /// Comes back with the answer.
    pub number: u32,
    /// Which views, as bits.
    pub views: u32,
    /// Values of all of the rig's controls.
    pub controls: Vec<f32>,
}

/// Reads a message; says what is wrong with it.
pub(crate) fn read_pose(bytes: &[u8]) -> Result<PoseRequest, String> {
    if !bytes.len().is_multiple_of(4) || bytes.len() < 12 {
        return Err(format!("a binary message of {} bytes is no pose", bytes.len()));
    }
    let word = |index: usize| {
        let at = index * 4;
        [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
    };
    let number = |index: usize| u32::from_le_bytes(word(index));
    if number(0) != POSE {
        return Err(format!("a binary message of kind {}, which is not known", number(0)));
    }
    let views = number(2);
    if views == 0 || views > (ORIGINAL | TWIN | SKINNING | BONES) {
        return Err(format!("the views {views} are not known"));
    }
    let controls = (3..bytes.len() / 4).map(|index| f32::from_le_bytes(word(index))).collect();
    Ok(PoseRequest { number: number(1), views, controls })
}

/// Builds a message piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Packet(Vec<u8>);

impl Packet {
    /// With a header as JSON: its length, itself, and spaces up to a multiple of four.
    pub fn with_header(header: &serde_json::Value) -> Self {
        let mut text = header.to_string().into_bytes();
        text.resize(text.len().next_multiple_of(4), b' ');
        let mut packet = Self((text.len() as u32).to_le_bytes().to_vec());
        packet.0.extend(text);
        packet
    }

    pub fn numbers(&mut self, numbers: &[u32]) {
        self.0.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    }

    pub fn floats(&mut self, numbers: impl IntoIterator<Item = f32>) {
        self.0.extend(numbers.into_iter().flat_map(f32::to_le_bytes));
    }

    pub fn points(&mut self, points: &[Vec3]) {
        self.0.reserve(points.len() * 12);
        for point in points {
            let mut bytes = [0u8; 12];
            bytes[..4].copy_from_slice(&point.x.to_le_bytes());
            bytes[4..8].copy_from_slice(&point.y.to_le_bytes());
            bytes[8..].copy_from_slice(&point.z.to_le_bytes());
            self.0.extend_from_slice(&bytes);
        }
    }

    /// Twelve numbers each: three columns and the translation.
    pub fn transforms(&mut self, transforms: &[Affine3A]) {
        self.floats(transforms.iter().flat_map(|transform| transform.to_cols_array()));
    }

    /// Bytes, filled up to a multiple of four.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pose_is_read_back_and_noise_is_named() {
        let mut packet = Packet::default();
        packet.numbers(&[POSE, 7, ORIGINAL | TWIN]);
        packet.floats([0.5, -1.0]);
        let want = PoseRequest { number: 7, views: 3, controls: vec![0.5, -1.0] };
        assert_eq!(read_pose(&packet.finish()), Ok(want));
        for noise in [&[][..], &[1; 11], &[1; 13], &[0; 12], &[9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]] {
            assert!(read_pose(noise).is_err(), "{noise:?}");
        }
    }
}
