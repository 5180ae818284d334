//! Animation of controls: keyed curves as an animator makes them, and sampled frames as a machine
//! reads them.

use crate::controls::{ControlError, ControlSpecs, Controls};
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
                a.value * (2.0 * t3 - 3.0 * t2 + 1.0)
                    + ta * (t3 - 2.0 * t2 + t)
                    + b.value * (3.0 * t2 - 2.0 * t3)
                    + tb * (t3 - t2)
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

/// A named piece of animation as curves. Controls without a curve rest at their default.
#[derive(Debug, Clone, PartialEq)]
pub struct Clip {
    /// What it is called.
    pub name: String,
    /// Seconds.
    pub duration: f32,
    /// One a control at most.
    pub curves: Vec<Curve>,
}

impl Clip {
    /// More frames than this are taken for a mistake in a file.
    pub const MAX_FRAMES: f32 = 1.0e7;

    /// Samples every control at `rate` frames a second, first and last moment included.
    pub fn sample(&self, specs: &ControlSpecs, rate: f32) -> Result<SampledClip, ClipError> {
        let frames = frame_count(&self.name, self.duration, rate)?;
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
        let frame = |index: usize| {
            let mut controls = specs.defaults();
            for &(control, curve) in &columns {
                controls.0[control] = curve.at(index as f32 / rate);
            }
            controls
        };
        let frames: Vec<Controls> = (0..frames).map(frame).collect();
        for controls in &frames {
            specs.check_range(controls).map_err(|error| ClipError::Control { clip: clip(), error })?;
        }
        Ok(SampledClip { name: clip(), rate, frames })
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

    /// The controls at a time, linear between frames, held at both ends.
    pub fn at(&self, time: f32) -> Controls {
        let place = (time * self.rate).clamp(0.0, (self.frames.len() - 1) as f32);
        let before = place.floor() as usize;
        let after = (before + 1).min(self.frames.len() - 1);
        let t = place - before as f32;
        let blend = |(a, b): (&f32, &f32)| a + (b - a) * t;
        Controls(self.frames[before].0.iter().zip(&self.frames[after].0).map(blend).collect())
    }

    /// The same motion at another rate.
    pub fn resample(&self, rate: f32) -> Result<SampledClip, ClipError> {
        let count = frame_count(&self.name, self.duration(), rate)?;
        let frames = (0..count).map(|i| self.at(i as f32 / rate)).collect();
        Ok(SampledClip { name: self.name.clone(), rate, frames })
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
        Clip { name: "test".into(), duration: 2.0, curves: vec![Curve::smooth("a", keys)] }
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
    fn resampling_keeps_the_motion() {
        let sampled = clip(&[(0.0, 0.0), (2.0, 1.0)]).sample(&specs(), 120.0).expect("in range");
        let slow = sampled.resample(30.0).expect("valid rate");
        assert_eq!(slow.frames.len(), 61);
        assert_eq!(slow.frames[30], sampled.frames[120]);
        assert!((slow.duration() - 2.0).abs() < 1e-6);
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
