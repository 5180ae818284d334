//! What an actor plays: expressions and visemes that flow into each other, blinks, looks, and a helmet that shakes a little.
//! Every weight is known.

use super::poses::{PoseLibrary, augmented};
use crate::Camera;
use understudy_core::{DVec3, Random};

/// A frame of a performance.
#[derive(Debug, Clone, PartialEq)]
pub struct TakeFrame {
    /// Weights of the shapes, 0 to 1.
    pub weights: Vec<f32>,
    /// The helmet's camera: in-plane rotation, radians.
    pub roll: f64,
    /// The helmet's camera: shift of the centre of projection, in heights of the picture.
    pub shift: [f64; 2],
    /// How the head turns before a camera that stands still: a rotation vector, radians; zero with a helmet.
    pub turn: DVec3,
}

/// A performance.
#[derive(Debug, Clone, PartialEq)]
pub struct Take {
    /// Frames per second.
    pub rate: f64,
    /// Frames; the first is at rest.
    pub frames: Vec<TakeFrame>,
}

impl TakeFrame {
    /// The camera of the frame.
    pub fn camera(&self, camera: &Camera) -> Camera {
        let height = camera.size[1] as f64;
        let centre = [0, 1].map(|axis| camera.centre[axis] + self.shift[axis] * height);
        Camera { roll: camera.roll + self.roll, centre, ..*camera }
    }
}

/// Rest at the start, s: what a neutral frame is found in.
const REST: f64 = 0.2;

/// A performance of shapes with these names: the same seed, names and rate play the same. `turning` moves the head, up to
/// about 12 degrees, before a camera that stands; without it the camera is on a helmet, which shakes.
pub fn take(names: &[String], seconds: f64, rate: f64, seed: u64, turning: bool) -> Take {
    let library = PoseLibrary::new(names);
    let mut random = Random::stream(0x7461_6b65, seed);
    let count = ((seconds * rate).round() as usize).max(1);
    let keys = keys(&library, seconds, &mut random);
    let blinks = blinks(seconds, &mut random);
    let looks = looks(seconds, &mut random);
    let phases: Vec<f64> = (0..24).map(|_| random.unit() * std::f64::consts::TAU).collect();
    let wave = |time: f64, channel: usize, slow: f64| -> f64 {
        let [a, b, c] = [0, 1, 2].map(|k| phases[(channel * 3 + k) % phases.len()]);
        0.6 * (slow * 1.3 * time + a).sin()
            + 0.3 * (slow * 2.9 * time + b).sin()
            + 0.1 * (slow * 7.1 * time + c).sin()
    };
    let frame = |index: usize| {
        let time = index as f64 / rate;
        let mut weights = pose_at(&keys, time);
        let (lid, look) = (value_at(&blinks, time), [0, 1].map(|axis| value_at(&looks[axis], time)));
        for (weight, name) in weights.iter_mut().zip(names) {
            if name.starts_with("eyeBlink") {
                *weight = weight.max(lid as f32);
            } else if let Some(value) = look_weight(name, look) {
                *weight = value as f32;
            }
        }
        // The shake fades in, so that the first frame is the calibrated one.
        let fade = (time / REST).min(1.0);
        let (shake, slow) = if turning { (0.0, fade) } else { (fade, 0.0) };
        TakeFrame {
            weights,
            roll: shake * 0.02 * wave(time, 0, 1.4),
            shift: [shake * 0.010 * wave(time, 1, 1.7), shake * 0.010 * wave(time, 2, 1.9)],
            turn: DVec3::new(0.12 * wave(time, 3, 1.1), 0.2 * wave(time, 4, 0.9), 0.05 * wave(time, 5, 1.0))
                * slow,
        }
    };
    Take { rate, frames: (0..count).map(frame).collect() }
}

/// Poses and when they are reached.
fn keys(library: &PoseLibrary, seconds: f64, random: &mut Random) -> Vec<(f64, Vec<f32>)> {
    let rest = vec![0.0; library.mirror.len()];
    let mut keys = vec![(0.0, rest.clone()), (REST, rest)];
    let mut time = REST;
    while time < seconds {
        time += f64::from(random.uniform(0.18, 0.5));
        let mut pose = augmented(library, random);
        let strength = random.uniform(0.5, 1.0);
        pose.iter_mut().for_each(|weight| *weight *= strength);
        keys.push((time, pose.clone()));
        // Some are held.
        if random.unit() < 0.3 {
            time += f64::from(random.uniform(0.1, 0.3));
            keys.push((time, pose));
        }
    }
    keys
}

fn pose_at(keys: &[(f64, Vec<f32>)], time: f64) -> Vec<f32> {
    let next = keys.partition_point(|(at, _)| *at <= time).clamp(1, keys.len() - 1);
    let ((from, a), (to, b)) = (&keys[next - 1], &keys[next]);
    let share = ((time - from) / (to - from)).clamp(0.0, 1.0);
    let share = (share * share * (3.0 - 2.0 * share)) as f32;
    a.iter().zip(b).map(|(a, b)| a + (b - a) * share).collect()
}

/// Lids that close in 90 ms and open in 150, every few seconds.
fn blinks(seconds: f64, random: &mut Random) -> Vec<(f64, f64)> {
    let mut keys = vec![(0.0, 0.0)];
    let mut time = REST + f64::from(random.uniform(0.3, 1.5));
    while time < seconds {
        keys.extend([(time, 0.0), (time + 0.09, 1.0), (time + 0.13, 1.0), (time + 0.28, 0.0)]);
        time += f64::from(random.uniform(1.2, 3.5));
    }
    keys
}

/// Looks about X (down) and Y (left), in −1 to 1: still for a while, then elsewhere within 50 ms.
fn looks(seconds: f64, random: &mut Random) -> [Vec<(f64, f64)>; 2] {
    let mut keys = [vec![(0.0, 0.0), (REST, 0.0)], vec![(0.0, 0.0), (REST, 0.0)]];
    let mut time = REST;
    while time < seconds {
        time += f64::from(random.uniform(0.25, 0.9));
        for (axis, reach) in [(0, 0.5), (1, 0.9)] {
            let last = keys[axis].last().map_or(0.0, |key| key.1);
            keys[axis].push((time, last));
            keys[axis].push((time + 0.05, f64::from(random.uniform(-reach, reach))));
        }
        time += 0.05;
    }
    keys
}

fn value_at(keys: &[(f64, f64)], time: f64) -> f64 {
    let next = keys.partition_point(|(at, _)| *at <= time);
    if next >= keys.len() {
        return keys.last().map_or(0.0, |key| key.1);
    }
    let ((from, a), (to, b)) = (keys[next.max(1) - 1], keys[next.max(1)]);
    a + (b - a) * ((time - from) / (to - from)).clamp(0.0, 1.0)
}

/// The weight of a look's shape, where the name is one.
fn look_weight(name: &str, [down, left]: [f64; 2]) -> Option<f64> {
    let rest = name.strip_prefix("eyeLook")?;
    let is_left = rest.ends_with("_L") || rest.ends_with("Left");
    let signed = if rest.starts_with("Down") {
        down
    } else if rest.starts_with("Up") {
        -down
    } else if rest.starts_with("In") {
        // Towards the nose: to the right for the character's left eye.
        if is_left { -left } else { left }
    } else {
        if is_left { left } else { -left }
    };
    Some(signed.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::arkit::SHAPES;

    #[test]
    fn takes_begin_at_rest_move_and_repeat_by_seed() {
        let names: Vec<String> = SHAPES.iter().map(|name| (*name).to_owned()).collect();
        let one = take(&names, 4.0, 30.0, 7, true);
        assert_eq!(one, take(&names, 4.0, 30.0, 7, true));
        assert_eq!(one.frames.len(), 120);
        assert!(one.frames[0].weights.iter().all(|weight| *weight == 0.0));
        assert_eq!((one.frames[0].roll, one.frames[0].turn), (0.0, DVec3::ZERO));
        assert_ne!(one, take(&names, 4.0, 30.0, 8, true));
        assert!(
            one.frames.iter().flat_map(|frame| &frame.weights).all(|weight| (0.0..=1.0).contains(weight))
        );
        let moved = |name: &str| {
            let shape = names.iter().position(|other| other == name).expect("a shape");
            one.frames.iter().map(|frame| frame.weights[shape]).fold(0.0, f32::max)
        };
        assert!(moved("eyeBlinkLeft") > 0.9 && moved("eyeLookInLeft") > 0.1 && moved("jawOpen") > 0.1);
        // Eyes look the same way: a left eye that looks in goes with a right eye that looks out.
        assert_eq!(look_weight("eyeLookInLeft", [0.0, -0.4]), look_weight("eyeLookOut_R", [0.0, -0.4]));
        assert_eq!(take(&names, 0.0, 30.0, 7, false).frames.len(), 1);
    }
}
