//! One animation curve: values between its keys, and the frame rate that keys were made at.

use ::gltf::json::animation::Interpolation;
use glam::Quat;

/// Rates that animation is made at, the likeliest first: a sparse curve fits several.
const RATES: [f32; 10] = [30.0, 24.0, 25.0, 60.0, 48.0, 50.0, 120.0, 100.0, 240.0, 15.0];

/// Keys of a vector, a rotation or a row of weights.
pub(super) struct Curve {
    times: Vec<f32>,
    values: Vec<f32>,
    width: usize,
    interpolation: Interpolation,
    turns: bool,
}

impl Curve {
    /// `times`: `[k]` seconds, `values`: `[k · width]`, or `[3k · width]` for a cubic: in-tangent,
    /// value, out-tangent. `turns`: values are quaternions.
    pub fn new(
        times: Vec<f32>,
        values: Vec<f32>,
        width: usize,
        interpolation: Interpolation,
        turns: bool,
    ) -> Result<Self, String> {
        let copies = if interpolation == Interpolation::CubicSpline { 3 } else { 1 };
        if times.is_empty() {
            return Err("has no keys".into());
        }
        let wanted = times.len().saturating_mul(copies).saturating_mul(width);
        if values.len() != wanted {
            return Err(format!("{} numbers for {} keys, {wanted} expected", values.len(), times.len()));
        }
        if let Some(key) = times.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(format!("key {} lies before key {key}", key + 1));
        }
        Ok(Self { times, values, width, interpolation, turns })
    }

    /// Seconds of the keys.
    pub fn times(&self) -> &[f32] {
        &self.times
    }

    /// Seconds of the last key.
    pub fn end(&self) -> f64 {
        self.times.last().copied().unwrap_or(0.0).into()
    }

    fn key(&self, key: usize) -> &[f32] {
        let place = if self.interpolation == Interpolation::CubicSpline { 3 * key + 1 } else { key };
        &self.values[place * self.width..(place + 1) * self.width]
    }

    /// The value at a time in seconds, held before the first and after the last key. A key within a
    /// thousandth of a frame counts as met: its time went through f32.
    pub fn at(&self, time: f64, frame: f64, out: &mut Vec<f32>) {
        out.clear();
        let near = frame * 1e-3;
        let next = self.times.partition_point(|key| f64::from(*key) <= time + near);
        let before = next.saturating_sub(1);
        let start = f64::from(self.times[before]);
        if next == 0
            || next == self.times.len()
            || time - start <= near
            || self.interpolation == Interpolation::Step
        {
            out.extend_from_slice(self.key(before));
            return;
        }
        let span = f64::from(self.times[next]) - start;
        let s = ((time - start) / span) as f32;
        let (a, b) = (self.key(before), self.key(next));
        if self.interpolation == Interpolation::CubicSpline {
            let (s2, s3, span) = (s * s, s * s * s, span as f32);
            let leaving = &self.values[(3 * before + 2) * self.width..][..self.width];
            let arriving = &self.values[3 * next * self.width..][..self.width];
            out.extend((0..self.width).map(|i| {
                a[i] * (2.0 * s3 - 3.0 * s2 + 1.0)
                    + leaving[i] * span * (s3 - 2.0 * s2 + s)
                    + b[i] * (3.0 * s2 - 2.0 * s3)
                    + arriving[i] * span * (s3 - s2)
            }));
        } else if self.turns {
            let turn = |q: &[f32]| Quat::from_slice(q).normalize();
            out.extend(turn(a).slerp(turn(b), s).to_array());
        } else {
            out.extend(a.iter().zip(b).map(|(a, b)| a + (b - a) * s));
        }
    }
}

/// The rate on whose frames all keys lie: a usual one, or the one that the closest keys imply.
/// `None` when there is none; 30 when the keys cannot tell.
pub(super) fn detect_rate<'a>(times: impl Iterator<Item = &'a [f32]> + Clone) -> Option<f32> {
    let fits = |rate: f32| {
        let on_frame = |time: &f32| {
            let place = f64::from(*time) * f64::from(rate);
            (place - place.round()).abs() < 0.01 + place.abs() * 1e-6
        };
        times.clone().flatten().all(on_frame)
    };
    if let Some(rate) = RATES.into_iter().find(|rate| fits(*rate)) {
        return Some(rate);
    }
    let steps = times.clone().flat_map(|times| times.windows(2).map(|pair| pair[1] - pair[0]));
    let closest = steps.filter(|step| *step > 1e-4).fold(f32::INFINITY, f32::min);
    let implied = (1.0 / closest).round();
    (implied >= 1.0 && fits(implied)).then_some(implied)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(curve: &Curve, time: f64) -> Vec<f32> {
        let mut out = Vec::new();
        curve.at(time, 1.0 / 30.0, &mut out);
        out
    }

    #[test]
    fn linear_step_and_cubic_between_and_beyond_keys() {
        let curve = |kind, values: &[f32]| {
            Curve::new(vec![1.0, 2.0], values.to_vec(), 1, kind, false).expect("valid")
        };
        let linear = curve(Interpolation::Linear, &[4.0, 8.0]);
        assert_eq!([0.0, 1.25, 5.0].map(|t| at(&linear, t)[0]), [4.0, 5.0, 8.0]);
        let step = curve(Interpolation::Step, &[4.0, 8.0]);
        assert_eq!([1.9, 2.0 - 1e-8, 2.0].map(|t| at(&step, t)[0]), [4.0, 8.0, 8.0]);
        // x³ on [0, 1] has slopes 0 and 3 at its ends, which one cubic carries exactly.
        let cubic = curve(Interpolation::CubicSpline, &[9.0, 0.0, 0.0, 3.0, 1.0, 9.0]);
        for t in [0.1, 0.5, 0.9] {
            assert!((f64::from(at(&cubic, 1.0 + t)[0]) - t * t * t).abs() < 1e-6);
        }
    }

    #[test]
    fn rotations_take_the_shorter_arc() {
        let (a, b) = (Quat::from_rotation_x(0.2), -Quat::from_rotation_x(1.0));
        let values = [a.to_array(), b.to_array()].concat();
        let curve = Curve::new(vec![0.0, 1.0], values, 4, Interpolation::Linear, true).expect("valid");
        let half = Quat::from_slice(&at(&curve, 0.5));
        assert!(half.angle_between(Quat::from_rotation_x(0.6)) < 1e-3);
    }

    #[test]
    fn bad_curves_are_refused() {
        let new = |times: &[f32], values: &[f32]| {
            Curve::new(times.to_vec(), values.to_vec(), 1, Interpolation::Linear, false).err()
        };
        assert!(new(&[], &[]).is_some());
        assert!(new(&[0.0, 1.0], &[0.0]).is_some());
        assert_eq!(new(&[0.0, 2.0, 1.0], &[0.0; 3]).as_deref(), Some("key 2 lies before key 1"));
    }

    #[test]
    fn rates_are_found_from_key_spacing() {
        let rate = |step: f64, count: usize| {
            let times: Vec<f32> = (0..count).map(|i| (i as f64 * step) as f32).collect();
            detect_rate([times.as_slice()].into_iter())
        };
        assert_eq!(rate(1.0 / 24.0, 50), Some(24.0));
        assert_eq!(rate(1.0 / 30.0, 500), Some(30.0));
        assert_eq!(rate(1.0 / 120.0, 50), Some(120.0));
        assert_eq!(rate(0.5, 3), Some(30.0));
        assert_eq!(rate(1.0 / 90.0, 50), Some(90.0));
        assert_eq!(rate(0.0317, 50), None);
        assert_eq!(detect_rate(std::iter::empty()), Some(30.0));
    }
}
