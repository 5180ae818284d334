//! Keys of one property over time, as motion files hold them: stepped, linear (rotations along the
//! shorter arc) or a cubic spline with tangents. What an animator's curves look like is in
//! [`crate::clip`]; what tracks move is in [`crate::keyed_clip`].

use glam::DQuat;
use std::sync::Arc;

/// A stepped key whose time went through f32 arithmetic counts as met this early, seconds.
const STEP_TOLERANCE: f64 = 1e-4;

/// How a track runs between two keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrackInterpolation {
    /// Holds the earlier key.
    Step,
    /// A straight line; the shorter arc, at an even pace, between rotations.
    Linear,
    /// Hermite's cubic with the tangents of the file; rotations are normalised afterwards.
    CubicSpline,
}

/// Keys of a vector, a rotation or a row of weights. Clones share their numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    times: Arc<[f32]>,
    values: Arc<[f32]>,
    width: usize,
    interpolation: TrackInterpolation,
    rotates: bool,
}

impl Track {
    /// A track of vectors or weights. `times`: `[k]` seconds, ascending; `values`: `[k · width]`, or
    /// `[3k · width]` for a cubic spline: in-tangent, value, out-tangent.
    pub fn new(
        times: impl Into<Arc<[f32]>>,
        values: Vec<f32>,
        width: usize,
        interpolation: TrackInterpolation,
    ) -> Result<Self, String> {
        let times = times.into();
        let copies = if interpolation == TrackInterpolation::CubicSpline { 3 } else { 1 };
        if times.is_empty() {
            return Err("has no keys".into());
        }
        let wanted = times.len().saturating_mul(copies).saturating_mul(width);
        if values.len() != wanted {
            return Err(format!("{} numbers for {} keys, {wanted} expected", values.len(), times.len()));
        }
        if let Some(key) = times.iter().position(|time| !time.is_finite()) {
            return Err(format!("key {key} lies at {} s", times[key]));
        }
        if let Some(key) = times.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(format!("key {} lies before key {key}", key + 1));
        }
        if let Some(place) = values.iter().position(|value| !value.is_finite()) {
            return Err(format!("key {} is not finite", place / (copies * width)));
        }
        Ok(Self { times, values: values.into(), width, interpolation, rotates: false })
    }

    /// A track of rotations, quaternions as `x, y, z, w`.
    pub fn rotations(
        times: impl Into<Arc<[f32]>>,
        values: Vec<f32>,
        interpolation: TrackInterpolation,
    ) -> Result<Self, String> {
        let track = Self { rotates: true, ..Self::new(times, values, 4, interpolation)? };
        let short = (0..track.times.len()).find(|key| quaternion(track.key(*key)).length() < 1e-12);
        match short {
            Some(key) => Err(format!("a rotation of no length at key {key}")),
            None => Ok(track),
        }
    }

    /// Seconds of the keys.
    pub fn times(&self) -> &[f32] {
        &self.times
    }

    /// All numbers as they were given.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Numbers per value.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Between keys.
    pub fn interpolation(&self) -> TrackInterpolation {
        self.interpolation
    }

    /// Seconds of the last key.
    pub fn end(&self) -> f64 {
        self.times[self.times.len() - 1].into()
    }

    /// The value of a key, without tangents.
    pub fn key(&self, key: usize) -> &[f32] {
        let place = if self.interpolation == TrackInterpolation::CubicSpline { 3 * key + 1 } else { key };
        &self.values[place * self.width..(place + 1) * self.width]
    }

    /// The value at a time in seconds, held before the first and after the last key. A time within
    /// rounding of a key gives that key, bit for bit. Rotations come out as unit quaternions, up to
    /// rounding, unless the file's own key is not one.
    pub fn at(&self, time: f64, out: &mut Vec<f32>) {
        out.clear();
        let near = match self.interpolation {
            TrackInterpolation::Step => STEP_TOLERANCE,
            _ => 1e-6 * time.abs().max(1.0),
        };
        let next = self.times.partition_point(|key| f64::from(*key) <= time + near);
        let before = next.saturating_sub(1);
        let start = f64::from(self.times[before]);
        let held = next == 0 || next == self.times.len() || time - start <= near;
        if held || self.interpolation == TrackInterpolation::Step {
            out.extend_from_slice(self.key(before));
            return;
        }
        let span = f64::from(self.times[next]) - start;
        let s = (time - start) / span;
        let (a, b) = (self.key(before), self.key(next));
        if self.interpolation == TrackInterpolation::CubicSpline {
            self.cubic(before, s, span, out);
        } else if self.rotates {
            let turned = slerp(quaternion(a).normalize(), quaternion(b).normalize(), s);
            out.extend(turned.to_array().map(|v| v as f32));
        } else {
            let blend = |(a, b): (&f32, &f32)| (f64::from(*a) + (f64::from(*b) - f64::from(*a)) * s) as f32;
            out.extend(a.iter().zip(b).map(blend));
        }
    }

    /// `p(s) = (2s³−3s²+1) a + (s³−2s²+s) Δt a' + (3s²−2s³) b + (s³−s²) Δt b'`.
    fn cubic(&self, before: usize, s: f64, span: f64, out: &mut Vec<f32>) {
        let (a, b) = (self.key(before), self.key(before + 1));
        let leaving = &self.values[(3 * before + 2) * self.width..][..self.width];
        let arriving = &self.values[3 * (before + 1) * self.width..][..self.width];
        let (s2, s3) = (s * s, s * s * s);
        let value = |i: usize| {
            let [a, b, leaving, arriving] = [a[i], b[i], leaving[i], arriving[i]].map(f64::from);
            a * (2.0 * s3 - 3.0 * s2 + 1.0)
                + leaving * span * (s3 - 2.0 * s2 + s)
                + b * (3.0 * s2 - 2.0 * s3)
                + arriving * span * (s3 - s2)
        };
        if !self.rotates {
            out.extend((0..self.width).map(|i| value(i) as f32));
            return;
        }
        let whole = DQuat::from_array(std::array::from_fn(value));
        // Two opposite keys may meet in zero halfway, which is no rotation: the earlier key holds.
        let turned = if whole.length() > 1e-9 { whole } else { quaternion(a) }.normalize();
        out.extend(turned.to_array().map(|v| v as f32));
    }
}

fn quaternion(values: &[f32]) -> DQuat {
    DQuat::from_array(std::array::from_fn(|i| f64::from(values[i])))
}

/// The rotation a share `s` of the way from `a` to `b` along the shorter arc, both unit quaternions. In
/// f64 with the angle from an arc tangent: the approximations of single-precision libraries are off by a
/// millimetre at the end of an arm.
pub fn slerp(a: DQuat, b: DQuat, s: f64) -> DQuat {
    let b = if a.dot(b) < 0.0 { -b } else { b };
    let angle = 2.0 * (a - b).length().atan2((a + b).length());
    if angle < 1e-9 {
        return (a * (1.0 - s) + b * s).normalize();
    }
    ((a * ((1.0 - s) * angle).sin() + b * (s * angle).sin()) / angle.sin()).normalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::{DVec3, Quat};

    fn at(track: &Track, time: f64) -> Vec<f32> {
        let mut out = Vec::new();
        track.at(time, &mut out);
        out
    }

    #[test]
    fn linear_step_and_cubic_between_and_beyond_keys() {
        let track = |kind, values: &[f32]| Track::new([1.0, 2.0], values.to_vec(), 1, kind).expect("valid");
        let linear = track(TrackInterpolation::Linear, &[4.0, 8.0]);
        assert_eq!([0.0, 1.25, 5.0].map(|t| at(&linear, t)[0]), [4.0, 5.0, 8.0]);
        let step = track(TrackInterpolation::Step, &[4.0, 8.0]);
        assert_eq!([1.9, 2.0 - 1e-8, 2.0].map(|t| at(&step, t)[0]), [4.0, 8.0, 8.0]);
        // x³ on [0, 1] has slopes 0 and 3 at its ends, which one cubic carries exactly.
        let cubic = track(TrackInterpolation::CubicSpline, &[9.0, 0.0, 0.0, 3.0, 1.0, 9.0]);
        for t in [0.1, 0.5, 0.9] {
            assert!((f64::from(at(&cubic, 1.0 + t)[0]) - t * t * t).abs() < 1e-6);
        }
    }

    #[test]
    fn rotations_take_the_shorter_arc_at_an_even_pace() {
        let (a, b) = (Quat::from_rotation_x(0.2), -Quat::from_rotation_x(1.0));
        let values = [a.to_array(), b.to_array()].concat();
        let track = Track::rotations([0.0, 1.0], values, TrackInterpolation::Linear).expect("valid");
        for s in [0.1, 0.37, 0.5, 0.9] {
            let turned = quaternion(&at(&track, s));
            let wanted = DQuat::from_axis_angle(DVec3::X, 0.2 + 0.8 * s);
            assert!((turned - wanted).length() < 2.0 * f64::from(f32::EPSILON), "{s}: {turned}");
        }
    }

    #[test]
    fn keys_come_back_bit_for_bit() {
        let times: Vec<f32> = (0..900).map(|frame| (f64::from(frame) / 30.0) as f32).collect();
        let values: Vec<f32> = (0..900).map(|frame| (frame as f32 * 0.1).sin()).collect();
        let track = Track::new(times, values.clone(), 1, TrackInterpolation::Linear).expect("valid");
        assert!((0..900).all(|frame| at(&track, frame as f64 / 30.0)[0] == values[frame]));
    }

    #[test]
    fn bad_tracks_are_refused() {
        let new = |times: &[f32], values: &[f32]| {
            Track::new(times.to_vec(), values.to_vec(), 1, TrackInterpolation::Linear).err()
        };
        assert!(new(&[], &[]).is_some() && new(&[0.0, 1.0], &[0.0]).is_some());
        assert!(new(&[f32::NAN], &[0.0]).is_some() && new(&[0.0], &[f32::INFINITY]).is_some());
        assert_eq!(new(&[0.0, 2.0, 1.0], &[0.0; 3]).as_deref(), Some("key 2 lies before key 1"));
        assert!(Track::rotations([0.0], vec![0.0; 4], TrackInterpolation::Linear).is_err());
    }
}
