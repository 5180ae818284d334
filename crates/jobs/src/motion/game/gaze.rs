//! Where she looks while she plays: at the other, or over the squares of the board in front of her. Motion leaves eye
//! controls alone; those that are named as ARKit names them are moved here, in jumps, as eyes move.

use super::reactions::Mood;
use understudy_core::{ControlSpecs, Random};

/// A share of the range: 1 is as far as the shape goes.
type Direction = [f32; 2];

/// How a gaze's distance to its target shrinks per frame.
const JUMP: f32 = 0.45;
/// Frames between two looks: at least, and at most so many more.
const STAYS: (usize, usize) = (9, 22);
/// Degrees that `eyeLookOut` and its kin turn an eye at full strength, near enough.
const DEGREES: f32 = 30.0;

/// Eyes that look at something.
pub struct Gaze {
    /// Left, right, up, down; each with its controls. Empty where the rig has none.
    controls: [Vec<usize>; 4],
    /// What turns the head: yaw and pitch, degrees. The eyes stay on their target while it turns.
    head: [Vec<usize>; 2],
    random: Random,
    target: Direction,
    now: Direction,
    left: usize,
}

impl Gaze {
    /// Finds the eyes' controls by their names.
    pub fn new(specs: &ControlSpecs, seed: u64) -> Self {
        let find = |names: &[&str]| names.iter().filter_map(|name| specs.find(name)).collect::<Vec<_>>();
        Self {
            controls: [
                find(&["eyeLookOut_L", "eyeLookIn_R"]),
                find(&["eyeLookIn_L", "eyeLookOut_R"]),
                find(&["eyeLookUp_L", "eyeLookUp_R"]),
                find(&["eyeLookDown_L", "eyeLookDown_R"]),
            ],
            head: [find(&["headYaw", "neckYaw"]), find(&["headPitch", "neckPitch"])],
            random: Random::stream(seed, 0x6761_7a65),
            target: [0.0; 2],
            now: [0.0; 2],
            left: 0,
        }
    }

    /// Moves the eyes of a frame.
    pub fn look(&mut self, mood: Mood, frame: &mut [f32]) {
        if self.left == 0 {
            self.left = STAYS.0 + self.random.below(STAYS.1 - STAYS.0 + 1);
            let across = |random: &mut Random, reach: f32| reach * (2.0 * random.unit() as f32 - 1.0);
            self.target = match mood {
                // The squares lie before her, below.
                Mood::Ponders => [across(&mut self.random, 0.4), -0.45 + across(&mut self.random, 0.2)],
                Mood::Tires | Mood::Shrugs => [across(&mut self.random, 0.7), across(&mut self.random, 0.35)],
                Mood::Waits if self.random.unit() < 0.3 => [across(&mut self.random, 0.3), -0.4],
                _ => [across(&mut self.random, 0.05), across(&mut self.random, 0.04)],
            };
        }
        self.left -= 1;
        let turned =
            |controls: &[usize]| controls.iter().map(|control| frame[*control]).sum::<f32>() / DEGREES;
        // Yaw to her left turns the eyes to her right, pitch down turns them up.
        let wanted = [
            (self.target[0] - turned(&self.head[0])).clamp(-1.0, 1.0),
            (self.target[1] + turned(&self.head[1])).clamp(-1.0, 1.0),
        ];
        for (now, wanted) in self.now.iter_mut().zip(wanted) {
            *now += (1.0 - JUMP) * (wanted - *now);
        }
        for (axis, value) in self.now.into_iter().enumerate() {
            for (side, value) in [value.max(0.0), (-value).max(0.0)].into_iter().enumerate() {
                self.controls[2 * axis + side].iter().for_each(|control| frame[*control] = value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::ControlSpec;

    #[test]
    fn eyes_stay_on_the_other_while_the_head_turns() {
        let names =
            ["eyeLookOut_L", "eyeLookIn_R", "eyeLookIn_L", "eyeLookOut_R", "eyeLookUp_L", "eyeLookDown_L"];
        let mut specs: Vec<ControlSpec> =
            names.iter().map(|name| ControlSpec::number(*name, 0.0, 1.0, 0.0)).collect();
        specs.push(ControlSpec::number("headYaw", -40.0, 40.0, 0.0));
        let specs = ControlSpecs::new(specs).expect("sound");
        let mut gaze = Gaze::new(&specs, 4);
        let mut frame = vec![0.0; specs.len()];
        for _ in 0..40 {
            frame[6] = 15.0;
            gaze.look(Mood::Objects, &mut frame);
            specs.check_range(&understudy_core::Controls(frame.clone())).expect("in range");
        }
        // The head is turned to her left: both eyes to her right, by half of what they can.
        assert!((frame[2] - 0.5).abs() < 0.1 && frame[2] == frame[3], "{frame:?}");
        assert!(frame[0] == 0.0 && frame[1] == 0.0);
        let other = ControlSpecs::new(vec![ControlSpec::number("a", 0.0, 1.0, 0.0)]).expect("sound");
        let mut frame = vec![0.3];
        Gaze::new(&other, 4).look(Mood::Ponders, &mut frame);
        assert_eq!(frame, [0.3]);
    }

    #[test]
    fn who_ponders_looks_down_at_the_board() {
        let names = ["eyeLookDown_L", "eyeLookUp_L"];
        let specs = names.iter().map(|name| ControlSpec::number(*name, 0.0, 1.0, 0.0)).collect();
        let specs = ControlSpecs::new(specs).expect("sound");
        let mut gaze = Gaze::new(&specs, 1);
        let mut frame = vec![0.0; 2];
        for turn in 0..200 {
            gaze.look(Mood::Ponders, &mut frame);
            assert!(turn < 6 || (frame[0] > 0.15 && frame[1] == 0.0), "{turn}: {frame:?}");
        }
    }
}
