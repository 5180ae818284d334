//! Animation of bones and shapes as keys: what a glTF file holds before it is sampled. Frames at a fixed
//! rate are a [`JointClip`].

use crate::clip::{ClipError, frame_count};
use crate::joint_clip::JointClip;
use crate::skeleton::{JointPose, JointTransform};
use crate::track::Track;
use glam::{Quat, Vec3};

/// Which part of a joint's transform a track moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JointProperty {
    /// In the parent's frame, cm.
    Translation,
    /// A quaternion.
    Rotation,
    /// Per axis.
    Scale,
}

/// Keys of one property of one bone.
#[derive(Debug, Clone, PartialEq)]
pub struct BoneTrack {
    /// The bone.
    pub bone: usize,
    /// What moves.
    pub property: JointProperty,
    /// Four numbers per key for a rotation, three otherwise.
    pub track: Track,
}

/// Keys of the weights of some shapes.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightTrack {
    /// The shape of each number of a key; `None` for one that nothing reads.
    pub shapes: Vec<Option<usize>>,
    /// One number per entry of `shapes`.
    pub track: Track,
}

/// Keys of bones and shapes. What has no track rests.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyedClip {
    /// What it is called.
    pub name: String,
    /// Frames per second that the keys were made at, as far as they tell.
    pub rate: f32,
    /// At most one per bone and property.
    pub bones: Vec<BoneTrack>,
    /// Later ones win where two name one shape.
    pub weights: Vec<WeightTrack>,
}

impl KeyedClip {
    /// A scale of zero hides a part in some files; bones must stay invertible.
    pub const SMALLEST_SCALE: f32 = 1e-6;

    /// Seconds of the last key.
    pub fn duration(&self) -> f64 {
        let bones = self.bones.iter().map(|bone| bone.track.end());
        bones.chain(self.weights.iter().map(|weights| weights.track.end())).fold(0.0, f64::max)
    }

    /// Frames at its own rate, first and last moment included.
    pub fn own_frames(&self) -> usize {
        (self.duration() * f64::from(self.rate)).round() as usize + 1
    }

    /// Frames at a rate, first and last moment included.
    pub fn frame_count(&self, rate: f32) -> Result<usize, ClipError> {
        frame_count(&self.name, self.duration() as f32, rate)
    }

    /// Local transforms of all bones at a time in seconds.
    ///
    /// # Panics
    /// When a track names a bone that `rest` does not have.
    pub fn pose_at(&self, time: f64, rest: &JointPose) -> JointPose {
        let mut pose = rest.clone();
        let mut buffer = Vec::with_capacity(4);
        for BoneTrack { bone, property, track } in &self.bones {
            track.at(time, &mut buffer);
            property.set(&buffer, &mut pose.0[*bone]);
        }
        pose
    }

    /// Weights of all shapes at a time in seconds; none at all when the clip moves no shape.
    ///
    /// # Panics
    /// When a track names a shape that `rest` does not have.
    pub fn weights_at(&self, time: f64, rest: &[f32]) -> Vec<f32> {
        if self.weights.is_empty() {
            return Vec::new();
        }
        let mut out = rest.to_vec();
        let mut buffer = Vec::new();
        for WeightTrack { shapes, track } in &self.weights {
            track.at(time, &mut buffer);
            for (shape, &weight) in shapes.iter().zip(&buffer) {
                if let Some(shape) = shape {
                    out[*shape] = weight;
                }
            }
        }
        out
    }

    /// Frames at a fixed rate.
    pub fn sample(&self, rest: &JointPose, rest_weights: &[f32], rate: f32) -> Result<JointClip, ClipError> {
        let frames = self.frame_count(rate)?;
        let time = |frame: usize| frame as f64 / f64::from(rate);
        let weights = |frame| self.weights_at(time(frame), rest_weights);
        Ok(JointClip {
            name: self.name.clone(),
            rate,
            poses: (0..frames).map(|frame| self.pose_at(time(frame), rest)).collect(),
            shape_weights: (0..frames).map(weights).filter(|row| !row.is_empty()).collect(),
        })
    }
}

impl JointProperty {
    /// Writes a track's value into a transform. Rotations are normalised unless they are unit already,
    /// scales kept away from zero.
    pub fn set(self, value: &[f32], joint: &mut JointTransform) {
        match self {
            Self::Translation => joint.translation = Vec3::from_slice(value),
            Self::Rotation => {
                let turn = Quat::from_slice(value).as_dquat();
                let unit = (turn.length() - 1.0).abs() < 1e-6;
                joint.rotation = if unit { Quat::from_slice(value) } else { turn.normalize().as_quat() };
            }
            Self::Scale => {
                let smallest = KeyedClip::SMALLEST_SCALE;
                let clamp = |s: f32| if s.abs() < smallest { smallest.copysign(s) } else { s };
                joint.scale = Vec3::from_slice(value).to_array().map(clamp).into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::track::TrackInterpolation;

    #[test]
    fn frames_hold_what_tracks_say_and_rest_elsewhere() {
        let track = |width, values: &[f32], kind| Track::new([0.0, 1.0], values.to_vec(), width, kind);
        let moved = track(3, &[0.0, 0.0, 0.0, 2.0, 4.0, 6.0], TrackInterpolation::Linear).expect("valid");
        let scaled = track(3, &[0.0; 6], TrackInterpolation::Step).expect("valid");
        let bone = |bone, property, track| BoneTrack { bone, property, track };
        let weights = track(2, &[0.0, 9.0, 1.0, 9.0], TrackInterpolation::Linear).expect("valid");
        let clip = KeyedClip {
            name: "move".into(),
            rate: 2.0,
            bones: vec![bone(1, JointProperty::Translation, moved), bone(0, JointProperty::Scale, scaled)],
            weights: vec![WeightTrack { shapes: vec![Some(1), None], track: weights }],
        };
        let rest = JointPose(vec![JointTransform::from_translation(Vec3::X); 2]);
        let frames = clip.sample(&rest, &[0.25, 0.75], 2.0).expect("a good rate");
        assert_eq!((frames.poses.len(), frames.shape_weights[1].as_slice()), (3, &[0.25, 0.5][..]));
        assert_eq!(frames.poses[1].0[1].translation, Vec3::new(1.0, 2.0, 3.0));
        assert_eq!(frames.poses[1].0[0].translation, Vec3::X);
        assert!(frames.poses[1].0[0].scale.min_element() > 0.0);
        assert!(clip.sample(&rest, &[0.0; 2], f32::NAN).is_err());
    }
}
