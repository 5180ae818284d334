//! Animation of controls: keyed curves as an animator makes them, motion of bones and shapes that is read
//! as controls, and sampled frames as a machine reads them.

use crate::control_map::ControlMap;
use crate::controls::{ControlError, ControlSpecs, Controls};
use crate::keyed_clip::KeyedClip;
use crate::skeleton::JointPose;
use std::sync::Arc;
use thiserror::Error;

/// What is wrong with a clip.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ClipError {
    /// A curve without keys.
    #[error("clip '{clip}': the curve of '{control}' has no keys")]
    NoKeys {
        /// The clip.
        clip: String,
        /// The control.
        control: String,
    },
    /// Times that do not ascend, or numbers that are not finite.
    #[error("clip '{clip}': key {key} of '{control}' is out of order or not finite")]
    BadKey {
        /// The clip.
        clip: String,
        /// The control.
        control: String,
        /// The key.
        key: usize,
    },
    /// Duration or rate that is not a positive number, or too many frames.
    #[error("clip '{clip}': the {what} is {value}; {want} is wanted")]
    BadNumber {
        /// The clip.
        clip: String,
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f32,
        /// What it should be: `more than 0`.
        want: String,
    },
    /// Controls that do not fit the rig.
    #[error("clip '{clip}': {error}")]
    Control {
        /// The clip.
        clip: String,
        /// What does not fit.
        error: ControlError,
    },
}

/// How a curve runs between two keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interpolation {
    /// Holds the earlier key.
    Step,
    /// A straight line.
    Linear,
    /// A cubic with monotone tangents (Fritsch–Carlson): smooth, and it never overshoots a key.
    #[default]
    Smooth,
}

/// A value at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// Seconds.
    pub time: f32,
    /// In the control's unit.
    pub value: f32,
}

/// The keys of one control.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The control's name.
    pub control: String,
    /// Times ascend strictly.
    pub keys: Vec<Key>,
    /// Between keys.
    pub interpolation: Interpolation,
}

impl Curve {
    /// A smooth curve through `(seconds, value)` pairs.
    pub fn smooth(control: impl Into<String>, keys: &[(f32, f32)]) -> Self {
        let keys = keys.iter().map(|&(time, value)| Key { time, value }).collect();
        Self { control: control.into(), keys, interpolation: Interpolation::Smooth }
    }

    /// The value at a time; before the first and after the last key it holds.
    pub fn at(&self, time: f32) -> f32 {
        let keys = &self.keys;
        let next = keys.partition_point(|key| key.time <= time);
        if next == 0 {
            return keys[0].value;
        }
        if next == keys.len() {
            return keys[next - 1].value;
        }
        let (a, b) = (keys[next - 1], keys[next]);
        let span = b.time - a.time;
        let t = (time - a.time) / span;
        match self.interpolation {
            Interpolation::Step => a.value,
            Interpolation::Linear => a.value + (b.value - a.value) * t,
            Interpolation::Smooth => {
                let (ta, tb) = (self.tangent(next - 1) * span, self.tangent(next) * span);
                let (t2, t3) = (t * t, t * t * t);
                let value = a.value * (2.0 * t3 - 3.0 * t2 + 1.0)
                    + ta * (t3 - 2.0 * t2 + t)
                    + b.value * (3.0 * t2 - 2.0 * t3)
                    + tb * (t3 - t2);
                // Rounding alone could leave the span, and with it the control's range.
                value.clamp(a.value.min(b.value), a.value.max(b.value))
            }
        }
    }

    /// Harmonic mean of the slopes on both sides; zero at ends and turning points, so that the cubic
    /// stays between its keys.
    fn tangent(&self, key: usize) -> f32 {
        let keys = &self.keys;
        if key == 0 || key + 1 == keys.len() {
            return 0.0;
        }
        let slope = |a: Key, b: Key| (b.value - a.value) / (b.time - a.time);
        let (before, after) = (slope(keys[key - 1], keys[key]), slope(keys[key], keys[key + 1]));
        if before * after <= 0.0 { 0.0 } else { 2.0 * before * after / (before + after) }
    }
}

/// Keys of bones and shapes that stand for the controls of a rig. They are evaluated as bones and shapes
/// and turned into control values at every moment anew.
#[derive(Debug, Clone, PartialEq)]
pub struct Motion {
    /// The keys.
    pub keys: KeyedClip,
    /// The rig's bones at rest.
    pub rest: Arc<JointPose>,
    /// The rig's shape weights at rest.
    pub rest_weights: Arc<[f32]>,
    /// From bones and shapes to controls.
    pub map: Arc<ControlMap>,
}

/// What a clip is for. Those that are not for training give poses only to who asks for them by name, so that what is
/// judged by them, or learned from them alone, never leaks into a twin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// Poses of it are learned by default.
    #[default]
    Training,
    /// Kept for tests: no setting is ever chosen by it.
    Test,
    /// One of many of a label that latent spaces of motion are learned from.
    Motion,
}

/// A named piece of animation. Controls that neither a curve nor a motion moves rest at their default.
#[derive(Debug, Clone, PartialEq)]
pub struct Clip {
    /// What it is called.
    pub name: String,
    /// Seconds.
    pub duration: f32,
    /// Frames per second that it was made at, where it has such a rate.
    pub rate: Option<f32>,
    /// One per control at most.
    pub curves: Vec<Curve>,
    /// Motion of the rig's bones and shapes, beneath the curves. A file's motion is played as it is, so
    /// that its values may leave the ranges, which are for random poses; so may curves of joints.
    pub motion: Option<Motion>,
    /// Whether its poses are taken by those who name no clip.
    pub purpose: Purpose,
}

impl Clip {
    /// More frames than this are taken for a mistake in a file.
    pub const MAX_FRAMES: f32 = 1.0e7;

    /// Frames per second where a clip has no rate of its own.
    pub const RATE: f32 = 30.0;

    /// A clip of curves.
    pub fn new(name: impl Into<String>, duration: f32, curves: Vec<Curve>) -> Self {
        Self { name: name.into(), duration, rate: None, curves, motion: None, purpose: Purpose::Training }
    }

    /// The same clip, kept for tests.
    pub fn for_test(self) -> Self {
        Self { purpose: Purpose::Test, ..self }
    }

    /// The same clip, for latent spaces of motion alone.
    pub fn for_motion(self) -> Self {
        Self { purpose: Purpose::Motion, ..self }
    }

    /// Whether it is taken by those who name no clip.
    pub fn is_for_training(&self) -> bool {
        self.purpose == Purpose::Training
    }

    /// Whether it is one of many of a label, which nobody wants who wants all clips of a rig.
    pub fn is_for_motion(&self) -> bool {
        self.purpose == Purpose::Motion
    }

    /// Whether it is kept for tests.
    pub fn is_for_test(&self) -> bool {
        self.purpose == Purpose::Test
    }

    /// The rate that it was made at, or else [`Self::RATE`].
    pub fn own_rate(&self) -> f32 {
        self.rate.unwrap_or(Self::RATE)
    }

    /// Samples every control at `rate` frames per second, first and last moment included.
    pub fn sample(&self, specs: &ControlSpecs, rate: f32) -> Result<SampledClip, ClipError> {
        let frames = frame_count(&self.name, self.duration, rate)?;
        let frames = self.at((0..frames).map(|frame| frame as f64 / f64::from(rate)), specs)?;
        Ok(SampledClip { name: self.name.clone(), rate, frames })
    }

    /// The controls at some times in seconds; before its start and after its end a clip holds.
    pub fn at(
        &self,
        times: impl IntoIterator<Item = f64>,
        specs: &ControlSpecs,
    ) -> Result<Vec<Controls>, ClipError> {
        let failed = |error| ClipError::Control { clip: self.name.clone(), error };
        let columns = self.columns(specs)?;
        if let Some(motion) = self.motion.as_ref().filter(|m| m.map.control_count() != specs.len()) {
            let (got, want) = (motion.map.control_count(), specs.len());
            return Err(failed(ControlError::Count { got, want }));
        }
        let mut moments = Vec::new();
        for time in times {
            let mut controls = specs.defaults();
            for &(control, curve) in &columns {
                controls.0[control] = curve.at(time as f32);
            }
            specs.check_played(&controls).map_err(failed)?;
            if let Some(Motion { keys, rest, rest_weights, map }) = &self.motion {
                let mut moved = specs.defaults();
                map.set_pose(&keys.pose_at(time, rest), &mut moved);
                map.set_weights(&keys.weights_at(time, rest_weights), &mut moved);
                columns.iter().for_each(|(control, _)| moved.0[*control] = controls.0[*control]);
                specs.check(&moved).map_err(failed)?;
                controls = moved;
            }
            moments.push(controls);
        }
        Ok(moments)
    }

    /// The curves with their controls, checked.
    fn columns(&self, specs: &ControlSpecs) -> Result<Vec<(usize, &Curve)>, ClipError> {
        let clip = || self.name.clone();
        let mut columns = Vec::with_capacity(self.curves.len());
        for curve in &self.curves {
            let control = specs.find(&curve.control).ok_or_else(|| ClipError::Control {
                clip: clip(),
                error: ControlError::Unknown { name: curve.control.clone() },
            })?;
            if curve.keys.is_empty() {
                return Err(ClipError::NoKeys { clip: clip(), control: curve.control.clone() });
            }
            for (key, pair) in curve.keys.iter().enumerate() {
                let ascends = key == 0 || curve.keys[key - 1].time < pair.time;
                if !pair.time.is_finite() || !pair.value.is_finite() || !ascends {
                    return Err(ClipError::BadKey { clip: clip(), control: curve.control.clone(), key });
                }
            }
            columns.push((control, curve));
        }
        Ok(columns)
    }
}

/// Frames at a fixed rate.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledClip {
    /// What it is called.
    pub name: String,
    /// Frames a second.
    pub rate: f32,
    /// One set of controls a frame.
    pub frames: Vec<Controls>,
}

impl SampledClip {
    /// Seconds between the first and the last frame.
    pub fn duration(&self) -> f32 {
        self.frames.len().saturating_sub(1) as f32 / self.rate
    }
}

pub(crate) fn frame_count(clip: &str, duration: f32, rate: f32) -> Result<usize, ClipError> {
    let bad = |what, value, want| Err(ClipError::BadNumber { clip: clip.into(), what, value, want });
    if !rate.is_finite() || rate <= 0.0 {
        return bad("frame rate", rate, "more than 0".into());
    }
    if !duration.is_finite() || duration < 0.0 {
        return bad("duration", duration, "0 or more".into());
    }
    if duration * rate > Clip::MAX_FRAMES {
        return bad("frame rate", rate, format!("at most {}", (Clip::MAX_FRAMES / duration).floor()));
    }
    Ok((duration * rate).round() as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controls::ControlSpec;

    fn specs() -> ControlSpecs {
        ControlSpecs::new(vec![
            ControlSpec::number("a", -1.0, 2.0, 0.5),
            ControlSpec::number("b", 0.0, 1.0, 0.0),
        ])
        .expect("valid specs")
    }

    fn clip(keys: &[(f32, f32)]) -> Clip {
        Clip::new("test", 2.0, vec![Curve::smooth("a", keys)])
    }

    #[test]
    fn smooth_curves_pass_their_keys_and_never_overshoot() {
        let clip = clip(&[(0.0, 0.0), (0.5, 1.0), (1.0, 1.0), (1.5, -1.0), (2.0, 2.0)]);
        for key in &clip.curves[0].keys {
            assert!((clip.curves[0].at(key.time) - key.value).abs() < 1e-6);
        }
        let sampled = clip.sample(&specs(), 240.0).expect("in range");
        assert_eq!(sampled.frames.len(), 481);
        assert!(sampled.frames.iter().all(|f| f.0[0] >= -1.0 && f.0[0] <= 2.0 && f.0[1] == 0.0));
    }

    #[test]
    fn bad_clips_are_named() {
        assert!(matches!(clip(&[]).sample(&specs(), 30.0), Err(ClipError::NoKeys { .. })));
        let order = clip(&[(0.0, 0.0), (0.0, 1.0)]).sample(&specs(), 30.0);
        assert!(matches!(order, Err(ClipError::BadKey { key: 1, .. })));
        assert!(matches!(clip(&[(0.0, 9.0)]).sample(&specs(), 30.0), Err(ClipError::Control { .. })));
        assert!(matches!(clip(&[(0.0, 0.0)]).sample(&specs(), -1.0), Err(ClipError::BadNumber { .. })));
        assert!(matches!(clip(&[(0.0, 0.0)]).sample(&specs(), 1e30), Err(ClipError::BadNumber { .. })));
    }
}
