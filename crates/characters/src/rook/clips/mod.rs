//! Rook's hand-made animation. Bodies are keyed joint by joint; feet are keyed as paths on the ground
//! and [`feet`] turns them into leg angles, as an animator's IK does.

mod crouch;
mod feet;
mod kick;
mod reach;
mod test;
mod walk;

use understudy_core::{Clip, ControlSpecs, Curve, Skeleton};
use understudy_rigs::RigError;

/// All clips, the last one for tests only.
pub fn clips(skeleton: &Skeleton, specs: &ControlSpecs) -> Result<Vec<Clip>, RigError> {
    let stage = feet::Ground::new(skeleton, specs);
    let clips = [walk::clip, reach::clip, kick::clip, crouch::clip, test::clip];
    clips.into_iter().map(|clip| clip(&stage)).collect()
}

/// Keys of one control.
type Keys<'a> = (&'a str, &'a [(f32, f32)]);

/// Smooth curves of several controls.
fn curves(keys: &[Keys<'_>]) -> Vec<Curve> {
    keys.iter().map(|(control, keys)| Curve::smooth(*control, keys)).collect()
}

/// The same keys on several controls, scaled: a whole hand that closes.
fn spread(controls: &[(&str, f32)], keys: &[(f32, f32)]) -> Vec<Curve> {
    let scaled = |by: f32| keys.iter().map(|(time, value)| (*time, value * by)).collect::<Vec<_>>();
    controls.iter().map(|(control, by)| Curve::smooth(*control, &scaled(*by))).collect()
}

/// Fingers of one hand with their share of a closing.
fn fingers(side: &str) -> Vec<(String, f32)> {
    let mut controls = Vec::new();
    for (finger, share) in [("index", 0.9), ("middle", 1.0), ("ring", 1.05), ("pinky", 1.1)] {
        for (joint, part) in [(1, 0.75), (2, 1.0), (3, 0.6)] {
            controls.push((format!("{finger}_{joint}_{side}.bend"), share * part));
        }
    }
    controls.extend([2, 3].map(|joint| (format!("thumb_{joint}_{side}.bend"), 0.45)));
    controls
}

/// Curls a hand along keys of 0 (flat) to 1 (fist), negative stretches.
fn hand(side: &str, keys: &[(f32, f32)]) -> Vec<Curve> {
    let degrees: Vec<(f32, f32)> = keys.iter().map(|(time, value)| (*time, value * 80.0)).collect();
    let fingers = fingers(side);
    let controls: Vec<(&str, f32)> = fingers.iter().map(|(name, share)| (name.as_str(), *share)).collect();
    spread(&controls, &degrees)
}

/// Repeats the keys of one stride (phase 0 to 1) over a clip; `shift` delays them.
fn cycle(control: &str, stride: f32, strides: usize, shift: f32, keys: &[(f32, f32)]) -> Curve {
    let mut all: Vec<(f32, f32)> = Vec::new();
    for turn in -1..=strides as i32 {
        all.extend(keys.iter().map(|(phase, value)| ((turn as f32 + phase + shift) * stride, *value)));
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.dedup_by(|a, b| (a.0 - b.0).abs() < 1e-4);
    Curve::smooth(control, &all)
}
