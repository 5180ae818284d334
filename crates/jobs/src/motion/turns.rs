//! Angles of joints without jumps: many triples of angles stand for one turn of a bone, a clip gives any of them at every
//! moment, and learning needs those that follow one another. With `R = R_z R_y R_x` the triples `(x, y, z)` and
//! `(x + 180°, 180° − y, z + 180°)` are the same turn, each angle as often past 360° as one likes.

use understudy_core::{Channel, ControlKind, ControlSpecs};

/// The rotation controls of every bone of a rig.
pub(super) struct Turns {
    /// About x, y and z; `None` where the bone has no such control.
    bones: Vec<[Option<usize>; 3]>,
}

/// Which triple is meant: whether it is the other one, and what is added to each angle then.
#[derive(Clone, Copy)]
struct Shift {
    other: bool,
    add: [f32; 3],
}

impl Shift {
    fn of(self, [x, y, z]: [f32; 3]) -> [f32; 3] {
        let [x, y, z] = if self.other { [x + 180.0, 180.0 - y, z + 180.0] } else { [x, y, z] };
        [x + self.add[0], y + self.add[1], z + self.add[2]]
    }
}

impl Turns {
    pub fn new(specs: &ControlSpecs) -> Self {
        let mut named: Vec<(&str, [Option<usize>; 3])> = Vec::new();
        for (control, spec) in specs.iter().enumerate() {
            let ControlKind::Joint { bone, channel } = &spec.kind else { continue };
            let axis = match channel {
                Channel::RotateX => 0,
                Channel::RotateY => 1,
                Channel::RotateZ => 2,
                _ => continue,
            };
            match named.iter_mut().find(|(name, _)| name == bone) {
                Some((_, controls)) => controls[axis] = Some(control),
                None => {
                    let mut controls = [None; 3];
                    controls[axis] = Some(control);
                    named.push((bone, controls));
                }
            }
        }
        Self { bones: named.into_iter().map(|(_, controls)| controls).collect() }
    }

    /// The triple of the same turn that is nearest to another. Without all three axes there is only one, but for whole turns.
    fn nearest(controls: &[Option<usize>; 3], angles: [f32; 3], to: [f32; 3]) -> Shift {
        let shift = |other: bool| {
            let plain = Shift { other, add: [0.0; 3] }.of(angles);
            let add = std::array::from_fn(|axis| 360.0 * ((to[axis] - plain[axis]) / 360.0).round());
            let shift = Shift { other, add };
            let there = shift.of(angles);
            (there.iter().zip(&to).map(|(a, b)| (a - b) * (a - b)).sum::<f32>(), shift)
        };
        let (own, other) = (shift(false), shift(true));
        if controls.iter().all(Option::is_some) && other.0 < own.0 { other.1 } else { own.1 }
    }

    fn angles(controls: &[Option<usize>; 3], frame: &[f32]) -> [f32; 3] {
        controls.map(|control| control.map_or(0.0, |control| frame[control]))
    }

    fn set(controls: &[Option<usize>; 3], frame: &mut [f32], angles: [f32; 3]) {
        for (control, angle) in controls.iter().zip(angles) {
            if let Some(control) = control {
                frame[*control] = angle;
            }
        }
    }

    /// Every frame of a clip as near as can be to the one before.
    pub fn follow(&self, frames: &mut [Vec<f32>]) {
        for controls in &self.bones {
            for frame in 1..frames.len() {
                let before = Self::angles(controls, &frames[frame - 1]);
                self.bring_bone(controls, &mut frames[frame], before);
            }
        }
    }

    /// A frame's angles as near as can be to those of another, `[C]`.
    pub fn bring(&self, frame: &mut [f32], to: &[f32]) {
        for controls in &self.bones {
            self.bring_bone(controls, frame, Self::angles(controls, to));
        }
    }

    fn bring_bone(&self, controls: &[Option<usize>; 3], frame: &mut [f32], to: [f32; 3]) {
        let own = Self::angles(controls, frame);
        Self::set(controls, frame, Self::nearest(controls, own, to).of(own));
    }

    /// Brings whole clips near to each other: the first as near to rest as can be, on average, and every other one to the
    /// first. Clips that were followed stay so.
    pub fn agree<'a>(&self, clips: impl Iterator<Item = &'a mut [Vec<f32>]>) {
        let mut first: Vec<[f32; 3]> = vec![[0.0; 3]; self.bones.len()];
        for (place, clip) in clips.enumerate() {
            for (controls, first) in self.bones.iter().zip(&mut first) {
                let mut mean = [0.0f64; 3];
                for frame in clip.iter() {
                    let angles = Self::angles(controls, frame);
                    mean.iter_mut().zip(angles).for_each(|(sum, angle)| *sum += f64::from(angle));
                }
                let mean = mean.map(|sum| (sum / clip.len().max(1) as f64) as f32);
                let shift = Self::nearest(controls, mean, *first);
                for frame in clip.iter_mut() {
                    let angles = shift.of(Self::angles(controls, frame));
                    Self::set(controls, frame, angles);
                }
                if place == 0 {
                    *first = shift.of(mean);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::ControlSpec;

    fn specs() -> ControlSpecs {
        let joint = |name: &str, bone: &str, channel| ControlSpec::joint(name, bone, channel, -60.0, 60.0);
        let list = vec![
            joint("x", "hips", Channel::RotateX),
            ControlSpec::number("smile", 0.0, 1.0, 0.0),
            joint("y", "hips", Channel::RotateY),
            joint("z", "hips", Channel::RotateZ),
            joint("knee", "leg", Channel::RotateX),
        ];
        ControlSpecs::new(list).expect("sound")
    }

    #[test]
    fn a_fall_over_the_pole_is_followed() {
        let turns = Turns::new(&specs());
        // y goes from 60° to 120°, but is told as its other triple beyond 90°; the knee goes round.
        let truth = |t: usize| vec![5.0, 0.5, 60.0 + 5.0 * t as f32, -10.0, 150.0 + 10.0 * t as f32];
        let mut frames: Vec<Vec<f32>> = (0..13).map(truth).collect();
        for frame in &mut frames {
            if frame[2] > 90.0 {
                (frame[0], frame[2], frame[3]) = (frame[0] - 180.0, 180.0 - frame[2], frame[3] + 180.0);
            }
            frame[4] = (frame[4] + 180.0).rem_euclid(360.0) - 180.0;
        }
        turns.follow(&mut frames);
        for (t, frame) in frames.iter().enumerate() {
            let miss = frame.iter().zip(truth(t)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(miss < 1e-3, "frame {t}: {frame:?}");
        }
    }

    #[test]
    fn clips_agree_about_their_turns() {
        let turns = Turns::new(&specs());
        let clip = |knee: f32| vec![vec![0.0, 0.0, 0.0, 0.0, knee], vec![0.0, 0.0, 0.0, 0.0, knee + 4.0]];
        let (mut a, mut b, mut c) = (clip(178.0), clip(-184.0), clip(-540.0));
        // The first lies at its mean of 180°, whichever way; the others beside it.
        turns.agree([a.as_mut_slice(), b.as_mut_slice(), c.as_mut_slice()].into_iter());
        let first = a[0][4];
        assert!(first == 178.0 || first == -182.0, "{first}");
        assert!((b[0][4] - first).abs() < 10.0 && (c[0][4] - first).abs() < 10.0, "{b:?} {c:?}");
        assert_eq!(b[1][4] - b[0][4], 4.0);
        let mut flipped = vec![175.0, 0.0, 170.0, -180.0, 0.0];
        turns.bring(&mut flipped, &[0.0; 5]);
        assert_eq!(flipped, [-5.0, 0.0, 10.0, 0.0, 0.0]);
    }
}
