//! When a foot or a hand stands on the ground: slow and low, with hysteresis, so that a flicker of the capture neither
//! starts nor ends a contact.

use crate::{Rig, RigError, RigPose};
use serde::Serialize;
use understudy_core::{Clip, DVec3};

/// cm/s, in the size of the rig: slower than this begins a contact …
const LANDS: f64 = 22.0;
/// … and faster than this ends it.
const LEAVES: f64 = 38.0;
/// A contact shorter than this is none, seconds.
const SHORTEST: f64 = 0.07;
/// A gap between two contacts shorter than this is none, seconds, where the point moves less than [`SAME`] over it.
const GAP: f64 = 0.05;
/// cm.
const SAME: f64 = 2.0;
/// Speeds are measured over this time to both sides, seconds: jitter of a capture is not speed.
const REACH: f64 = 1.0 / 60.0;

/// A time for which a point of the body stands on the ground.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contact {
    /// Such as `left ball`.
    pub point: String,
    /// The rig's bone.
    #[serde(skip)]
    pub bone: usize,
    /// Seconds.
    pub from: f32,
    /// Seconds.
    pub to: f32,
}

/// Frames of a contact, the end not included.
pub(super) type Frames = std::ops::Range<usize>;

/// When a point stands. `path`: where it is in every frame, cm, Y up. `ceiling`: only lower than this counts.
pub(super) fn standing(path: &[DVec3], rate: f32, ceiling: f64) -> Vec<Frames> {
    let rate = f64::from(rate);
    let reach = ((REACH * rate).round() as usize).max(1);
    let speed = |frame: usize| {
        let (before, after) = (frame.saturating_sub(reach), (frame + reach).min(path.len() - 1));
        path[after].distance(path[before]) * rate / (after - before).max(1) as f64
    };
    let mut found: Vec<Frames> = Vec::new();
    let mut since = None;
    for frame in 0..path.len() {
        let limit = if since.is_some() { LEAVES } else { LANDS };
        let stands = path[frame].y < ceiling && speed(frame) < limit;
        match (stands, since) {
            (true, None) => since = Some(frame),
            (false, Some(start)) => {
                found.push(start..frame);
                since = None;
            }
            _ => {}
        }
    }
    found.extend(since.map(|start| start..path.len()));
    let mut merged: Vec<Frames> = Vec::new();
    for next in found {
        match merged.last_mut() {
            Some(last)
                if ((next.start - last.end) as f64) < GAP * rate
                    && path[last.end - 1].distance(path[next.start]) < SAME =>
            {
                last.end = next.end;
            }
            _ => merged.push(next),
        }
    }
    merged.retain(|frames| frames.len() as f64 >= SHORTEST * rate);
    merged
}

/// How far every point slides over the ground while it stands, cm: the largest horizontal distance from where it was
/// first, measured on the rig's own bones as the clip poses them.
pub fn slides(rig: &dyn Rig, clip: &Clip, contacts: &[Contact]) -> Result<Vec<f32>, RigError> {
    let rate = f64::from(clip.own_rate());
    let mut pose = RigPose::default();
    let mut slides = Vec::with_capacity(contacts.len());
    for contact in contacts {
        let frame = |time: f32| (f64::from(time) * rate).round() as usize;
        let times = (frame(contact.from)..=frame(contact.to)).map(|frame| frame as f64 / rate);
        let mut first = None;
        let mut most = 0.0f32;
        for controls in clip.at(times, rig.specs())? {
            rig.evaluate_bones(&controls, &mut pose)?;
            let at = pose.global.0[contact.bone].translation;
            let start = *first.get_or_insert(at);
            most = most.max((at.x - start.x).hypot(at.z - start.z));
        }
        slides.push(most);
    }
    Ok(slides)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of 60 cm every second at 100 frames per second: half a second of standing, half of swinging.
    fn steps(jitter: f64) -> Vec<DVec3> {
        let at = |frame: usize| {
            let (step, phase) = (frame / 100, (frame % 100) as f64 / 100.0);
            let swing = ((phase - 0.5) * 2.0).max(0.0);
            let noise = jitter * ((frame * 7919) % 13) as f64 / 13.0;
            DVec3::new(noise, 8.0 + 15.0 * (swing * std::f64::consts::PI).sin(), 60.0 * (step as f64 + swing))
        };
        (0..400).map(at).collect()
    }

    #[test]
    fn steps_are_found_where_they_are_with_and_without_jitter() {
        for jitter in [0.0, 0.2] {
            let found = standing(&steps(jitter), 100.0, 12.0);
            assert_eq!(found.len(), 4, "{found:?}");
            for (step, frames) in found.iter().enumerate() {
                assert!(frames.start.abs_diff(100 * step) <= 2, "{frames:?}");
                assert!(frames.end.abs_diff(100 * step + 50) <= 3, "{frames:?}");
            }
        }
    }

    #[test]
    fn what_is_high_or_short_does_not_stand() {
        assert!(standing(&steps(0.0), 100.0, 7.0).is_empty());
        assert_eq!(standing(&[DVec3::ZERO; 3], 100.0, 5.0), Vec::<Frames>::new());
        assert_eq!(standing(&[DVec3::ZERO; 30], 100.0, 5.0), vec![Frames::from(0..30)]);
    }
}
