//! Animation of bones and shapes frame by frame: what motion files (BVH, glTF) hold, where
//! [`crate::Clip`] holds what an animator's controls do.

use crate::clip::ClipError;
use crate::skeleton::{JointPose, JointTransform};
use crate::track::slerp;

/// Bone transforms, and shape weights where there are shapes, at a fixed rate.
#[derive(Debug, Clone, PartialEq)]
pub struct JointClip {
    /// What it is called.
    pub name: String,
    /// Frames a second.
    pub rate: f32,
    /// Local transforms of all bones, one pose a frame.
    pub poses: Vec<JointPose>,
    /// Weights of all shapes, one row a frame; empty when the clip moves no shapes.
    pub shape_weights: Vec<Vec<f32>>,
}

impl JointClip {
    /// Seconds between the first and the last frame.
    pub fn duration(&self) -> f32 {
        self.poses.len().saturating_sub(1) as f32 / self.rate
    }

    /// The pose at a time: rotations along the shorter arc, the rest linear; held at both ends.
    ///
    /// # Panics
    /// When there are no frames.
    pub fn pose_at(&self, time: f32) -> JointPose {
        let (before, after, t) = self.place(time, self.poses.len());
        let blend = |(a, b): (&JointTransform, &JointTransform)| JointTransform {
            rotation: slerp(a.rotation.as_dquat(), b.rotation.as_dquat(), t.into()).as_quat(),
            translation: a.translation.lerp(b.translation, t),
            scale: a.scale.lerp(b.scale, t),
        };
        JointPose(self.poses[before].0.iter().zip(&self.poses[after].0).map(blend).collect())
    }

    /// The same motion at another rate.
    pub fn resample(&self, rate: f32) -> Result<Self, ClipError> {
        let count = crate::clip::frame_count(&self.name, self.duration(), rate)?;
        let time = |frame: usize| frame as f32 / rate;
        let poses = (0..count).map(|f| self.pose_at(time(f))).collect();
        let weights = |frame: usize| {
            let (before, after, t) = self.place(time(frame), self.shape_weights.len());
            let pairs = self.shape_weights[before].iter().zip(&self.shape_weights[after]);
            pairs.map(|(a, b)| a + (b - a) * t).collect()
        };
        let shape_weights =
            if self.shape_weights.is_empty() { Vec::new() } else { (0..count).map(weights).collect() };
        Ok(Self { name: self.name.clone(), rate, poses, shape_weights })
    }

    fn place(&self, time: f32, frames: usize) -> (usize, usize, f32) {
        let place = (time * self.rate).clamp(0.0, (frames - 1) as f32);
        let before = place.floor() as usize;
        (before, (before + 1).min(frames - 1), place - before as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::{Quat, Vec3};

    #[test]
    fn resampling_turns_and_moves_halfway() {
        let pose = |angle: f32| {
            let rotation = Quat::from_rotation_y(angle);
            JointPose(vec![JointTransform { rotation, translation: Vec3::X * angle, scale: Vec3::ONE }])
        };
        let clip = JointClip {
            name: "turn".into(),
            rate: 1.0,
            poses: vec![pose(0.0), pose(1.0)],
            shape_weights: vec![vec![0.0], vec![1.0]],
        };
        let fine = clip.resample(2.0).expect("valid rate");
        assert_eq!((fine.poses.len(), fine.shape_weights[1][0]), (3, 0.5));
        assert!(fine.poses[1].0[0].rotation.angle_between(Quat::from_rotation_y(0.5)) < 1e-3);
    }
}
