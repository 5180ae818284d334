//! Hand-made clips for a body: walk, reach, kick and one for tests, keyed in natural values (degrees from
//! the rest pose, positive the natural way) and turned into the signs of the rig's channels.

use super::joints::BodyControl;
use crate::film::ClipWriter;
use understudy_core::{Clip, ControlSpecs};

type Keys = &'static [(f32, f32)];

/// Arms down and feet together: what a standing figure does to an A-pose. Held through every clip.
struct Stance {
    shoulder_up: f32,
    elbow: f32,
    shoulder_twist: f32,
    hip_out: f32,
}

const STANCE: Stance = Stance { shoulder_up: -30.0, elbow: -30.0, shoulder_twist: -14.0, hip_out: -10.0 };

/// Curves of a clip on top of the stance: control and keys.
type Score = &'static [(&'static str, Keys)];

/// One step cycle, eight keys from the left heel's strike on; the right side is half a cycle later.
struct Gait {
    control: &'static str,
    keys: [f32; 8],
}

const GAIT: [Gait; 6] = [
    Gait { control: "hip.forward", keys: [24.0, 20.0, 8.0, -6.0, -16.0, -6.0, 22.0, 30.0] },
    Gait { control: "knee.bend", keys: [4.0, 18.0, 12.0, 6.0, 14.0, 52.0, 58.0, 22.0] },
    Gait { control: "ankle.up", keys: [4.0, -6.0, 4.0, 9.0, 6.0, -20.0, -4.0, 4.0] },
    Gait { control: "toes.up", keys: [8.0, 0.0, 0.0, 4.0, 24.0, 16.0, 2.0, 10.0] },
    Gait { control: "shoulder.forward", keys: [-20.0, -16.0, -6.0, 6.0, 14.0, 11.0, 0.0, -12.0] },
    Gait { control: "elbow.bend", keys: [-6.0, -4.0, 2.0, 12.0, 20.0, 16.0, 6.0, -2.0] },
];

/// The trunk over one cycle: hips rise on each leg and sway over it, chest turns against them.
const TRUNK: [Gait; 6] = [
    Gait { control: "root.move_y", keys: [-3.2, -3.6, -1.2, -0.4, -3.2, -3.6, -1.2, -0.4] },
    Gait { control: "root.move_x", keys: [0.0, 1.6, 2.2, 1.2, 0.0, -1.6, -2.2, -1.2] },
    Gait { control: "root.turn", keys: [-6.0, -4.0, 0.0, 4.0, 6.0, 4.0, 0.0, -4.0] },
    Gait { control: "chest.turn", keys: [9.0, 6.0, 0.0, -6.0, -9.0, -6.0, 0.0, 6.0] },
    Gait { control: "root.roll", keys: [0.0, 2.5, 2.0, 0.5, 0.0, -2.5, -2.0, -0.5] },
    Gait { control: "head.turn", keys: [-3.0, -2.0, 0.0, 2.0, 3.0, 2.0, 0.0, -2.0] },
];

const STEP_SECONDS: f32 = 1.1;
const CYCLES: usize = 3;

const REACH: Score = &[
    ("root.move_y", &[(0.0, 0.0), (0.4, -2.0), (1.2, 1.0), (2.0, 1.0), (3.0, 0.0)]),
    ("root.move_z", &[(0.0, 0.0), (0.4, -2.0), (1.2, 5.0), (2.0, 5.0), (3.0, 0.0)]),
    ("root.pitch", &[(0.0, 0.0), (1.2, 6.0), (2.0, 6.0), (3.0, 0.0)]),
    ("spine_1.bend", &[(0.0, 0.0), (0.4, -3.0), (1.2, 6.0), (2.0, 6.0), (3.0, 0.0)]),
    ("spine_2.turn", &[(0.0, 0.0), (0.4, -4.0), (1.2, 10.0), (2.0, 10.0), (3.0, 0.0)]),
    ("chest.turn", &[(0.0, 0.0), (0.45, -5.0), (1.25, 12.0), (2.0, 12.0), (3.0, 0.0)]),
    ("chest.lean", &[(0.0, 0.0), (1.2, 5.0), (2.0, 5.0), (3.0, 0.0)]),
    ("head.turn", &[(0.0, 0.0), (0.6, -14.0), (1.3, -10.0), (2.1, -10.0), (3.0, 0.0)]),
    ("head.nod", &[(0.0, 0.0), (1.2, -12.0), (2.0, -12.0), (3.0, 0.0)]),
    ("clavicle_r.up", &[(0.0, 0.0), (1.2, 18.0), (2.0, 18.0), (3.0, 0.0)]),
    ("clavicle_r.forward", &[(0.0, 0.0), (1.2, 12.0), (2.0, 12.0), (3.0, 0.0)]),
    ("shoulder_r.forward", &[(0.0, 0.0), (0.5, 10.0), (1.3, 85.0), (2.0, 85.0), (2.9, 0.0)]),
    ("shoulder_r.up", &[(0.0, 0.0), (0.5, 10.0), (1.3, 60.0), (2.0, 60.0), (2.9, 0.0)]),
    ("elbow_r.bend", &[(0.0, 0.0), (0.7, 55.0), (1.4, -10.0), (2.0, -10.0), (2.4, 40.0), (3.0, 0.0)]),
    ("wrist_r.bend", &[(0.0, 0.0), (1.0, 10.0), (1.5, -20.0), (2.0, -5.0), (3.0, 0.0)]),
    ("index_r.bend", &[(0.0, 10.0), (1.2, -5.0), (1.6, -5.0), (2.0, 55.0), (2.6, 50.0), (3.0, 10.0)]),
    ("middle_r.bend", &[(0.0, 12.0), (1.2, -5.0), (1.6, -5.0), (2.0, 60.0), (2.6, 55.0), (3.0, 12.0)]),
    ("ring_r.bend", &[(0.0, 14.0), (1.2, -2.0), (1.6, -2.0), (2.0, 62.0), (2.6, 55.0), (3.0, 14.0)]),
    ("pinky_r.bend", &[(0.0, 16.0), (1.2, 0.0), (1.6, 0.0), (2.0, 62.0), (2.6, 55.0), (3.0, 16.0)]),
    ("thumb_r.bend", &[(0.0, 0.0), (1.2, -10.0), (2.0, 25.0), (2.6, 20.0), (3.0, 0.0)]),
    ("shoulder_l.forward", &[(0.0, 0.0), (1.2, -18.0), (2.0, -18.0), (3.0, 0.0)]),
    ("hip_l.forward", &[(0.0, 0.0), (0.4, 8.0), (1.2, -4.0), (2.0, -4.0), (3.0, 0.0)]),
    ("hip_r.forward", &[(0.0, 0.0), (0.4, 8.0), (1.2, 8.0), (2.0, 8.0), (3.0, 0.0)]),
    ("knee_l.bend", &[(0.0, 0.0), (0.4, 14.0), (1.2, 4.0), (2.0, 4.0), (3.0, 0.0)]),
    ("knee_r.bend", &[(0.0, 0.0), (0.4, 14.0), (1.2, 10.0), (2.0, 10.0), (3.0, 0.0)]),
    ("ankle_l.up", &[(0.0, 0.0), (0.4, 6.0), (1.2, -14.0), (2.0, -14.0), (3.0, 0.0)]),
    ("flex_r", &[(0.0, 0.0), (1.6, 0.2), (2.0, 0.9), (2.6, 0.6), (3.0, 0.0)]),
];

const KICK: Score = &[
    ("root.move_y", &[(0.0, 0.0), (0.45, -6.0), (0.85, -1.0), (1.05, 1.0), (1.5, -4.0), (2.4, 0.0)]),
    ("root.move_x", &[(0.0, 0.0), (0.5, 7.0), (1.3, 8.0), (2.2, 0.0)]),
    ("root.move_z", &[(0.0, 0.0), (0.45, -5.0), (1.05, 4.0), (1.5, 0.0), (2.3, 0.0)]),
    ("root.pitch", &[(0.0, 0.0), (0.45, 8.0), (1.0, -18.0), (1.4, -4.0), (2.3, 0.0)]),
    ("root.turn", &[(0.0, 0.0), (0.45, -16.0), (1.05, 20.0), (1.5, 6.0), (2.3, 0.0)]),
    ("spine_1.bend", &[(0.0, 0.0), (0.45, 6.0), (1.0, 10.0), (1.6, 4.0), (2.3, 0.0)]),
    ("spine_2.bend", &[(0.0, 0.0), (0.45, 4.0), (1.0, 12.0), (1.6, 4.0), (2.3, 0.0)]),
    ("chest.turn", &[(0.0, 0.0), (0.45, 12.0), (1.05, -12.0), (1.6, -4.0), (2.3, 0.0)]),
    ("head.nod", &[(0.0, 0.0), (0.45, -4.0), (1.0, 8.0), (1.6, 2.0), (2.3, 0.0)]),
    (
        "hip_r.forward",
        &[(0.0, 0.0), (0.42, -26.0), (0.8, 60.0), (1.05, 88.0), (1.25, 70.0), (1.6, 28.0), (2.2, 0.0)],
    ),
    (
        "knee_r.bend",
        &[(0.0, 0.0), (0.42, 55.0), (0.78, 105.0), (1.05, 4.0), (1.25, 70.0), (1.7, 30.0), (2.2, 0.0)],
    ),
    ("ankle_r.up", &[(0.0, 0.0), (0.45, -25.0), (1.05, 18.0), (1.5, -5.0), (2.2, 0.0)]),
    ("toes_r.up", &[(0.0, 0.0), (0.45, 20.0), (1.05, 30.0), (1.5, 0.0)]),
    ("hip_l.forward", &[(0.0, 0.0), (0.45, 16.0), (1.05, -2.0), (1.5, 10.0), (2.3, 0.0)]),
    ("knee_l.bend", &[(0.0, 0.0), (0.45, 26.0), (1.05, 8.0), (1.5, 18.0), (2.3, 0.0)]),
    ("ankle_l.up", &[(0.0, 0.0), (0.45, 10.0), (1.05, -6.0), (1.5, 8.0), (2.3, 0.0)]),
    ("shoulder_l.forward", &[(0.0, 0.0), (0.45, -25.0), (1.05, 45.0), (1.6, 20.0), (2.3, 0.0)]),
    ("shoulder_l.up", &[(0.0, 0.0), (0.45, 10.0), (1.05, 20.0), (2.3, 0.0)]),
    ("elbow_l.bend", &[(0.0, 0.0), (0.45, 20.0), (1.05, 70.0), (1.7, 40.0), (2.3, 0.0)]),
    ("shoulder_r.forward", &[(0.0, 0.0), (0.45, 35.0), (1.05, -30.0), (1.6, -10.0), (2.3, 0.0)]),
    ("shoulder_r.up", &[(0.0, 0.0), (0.45, 15.0), (1.05, 25.0), (2.3, 0.0)]),
    ("elbow_r.bend", &[(0.0, 0.0), (0.45, 55.0), (1.05, 15.0), (1.7, 30.0), (2.3, 0.0)]),
];

/// For tests only: sinks on bent knees, turns to the left, reaches overhead with the left arm and comes up.
const TEST: Score = &[
    ("root.move_y", &[(0.0, 0.0), (0.9, -20.0), (1.8, -16.0), (2.6, -19.0), (3.6, 0.0)]),
    ("root.move_x", &[(0.0, 0.0), (0.9, 3.0), (1.8, 4.0), (2.6, -2.0), (3.6, 0.0)]),
    ("root.move_z", &[(0.0, 0.0), (0.9, -4.0), (2.6, -5.0), (3.6, 0.0)]),
    ("root.pitch", &[(0.0, 0.0), (0.9, 14.0), (1.8, 4.0), (2.6, 9.0), (3.6, 0.0)]),
    ("root.turn", &[(0.0, 0.0), (0.9, 18.0), (1.9, 20.0), (2.7, 6.0), (3.6, 0.0)]),
    ("spine_1.bend", &[(0.0, 0.0), (0.9, 10.0), (1.8, -6.0), (2.6, 2.0), (3.6, 0.0)]),
    ("spine_1.turn", &[(0.0, 0.0), (1.0, 7.0), (1.9, 8.0), (2.8, -4.0), (3.6, 0.0)]),
    ("spine_2.turn", &[(0.0, 0.0), (1.0, 10.0), (1.9, 12.0), (2.8, -5.0), (3.6, 0.0)]),
    ("spine_2.lean", &[(0.0, 0.0), (1.8, -7.0), (2.6, 8.0), (3.5, 0.0)]),
    ("chest.bend", &[(0.0, 0.0), (0.9, 6.0), (1.8, -9.0), (2.6, -3.0), (3.6, 0.0)]),
    ("chest.turn", &[(0.0, 0.0), (1.1, 10.0), (1.9, 14.0), (2.8, -6.0), (3.6, 0.0)]),
    ("chest.lean", &[(0.0, 0.0), (1.8, -6.0), (2.6, 8.0), (3.5, 0.0)]),
    ("neck.bend", &[(0.0, 0.0), (0.8, 7.0), (1.8, -8.0), (2.7, -5.0), (3.6, 0.0)]),
    ("head.nod", &[(0.0, 0.0), (0.8, 12.0), (1.8, -21.0), (2.7, -14.0), (3.6, 0.0)]),
    ("head.turn", &[(0.0, 0.0), (0.7, 24.0), (1.8, 14.0), (2.7, -16.0), (3.6, 0.0)]),
    ("head.tilt", &[(0.0, 0.0), (1.8, 9.0), (2.7, -10.0), (3.6, 0.0)]),
    ("clavicle_l.up", &[(0.0, 0.0), (0.9, 4.0), (1.8, 23.0), (2.6, 20.0), (3.5, 0.0)]),
    ("clavicle_l.forward", &[(0.0, 0.0), (0.9, 12.0), (1.8, -8.0), (2.6, -4.0), (3.5, 0.0)]),
    ("shoulder_l.up", &[(0.0, 0.0), (0.9, 25.0), (1.3, 75.0), (1.8, 120.0), (2.6, 112.0), (3.5, 0.0)]),
    ("shoulder_l.forward", &[(0.0, 0.0), (0.9, 50.0), (1.8, 5.0), (2.6, -10.0), (3.5, 0.0)]),
    ("shoulder_l.twist", &[(0.0, 0.0), (0.9, -10.0), (1.8, 36.0), (2.6, 42.0), (3.5, 0.0)]),
    (
        "elbow_l.bend",
        &[(0.0, 0.0), (0.9, 85.0), (1.8, -12.0), (2.2, 30.0), (2.6, 0.0), (3.1, 70.0), (3.7, 0.0)],
    ),
    ("wrist_l.bend", &[(0.0, 0.0), (0.9, 30.0), (1.8, -34.0), (2.2, 16.0), (2.6, -24.0), (3.4, 0.0)]),
    ("wrist_l.twist", &[(0.0, 0.0), (0.9, -24.0), (1.8, 32.0), (2.6, 18.0), (3.5, 0.0)]),
    (
        "index_l.bend",
        &[(0.0, 10.0), (0.9, 50.0), (1.8, -10.0), (2.2, 40.0), (2.6, 0.0), (3.1, 65.0), (3.7, 10.0)],
    ),
    (
        "middle_l.bend",
        &[(0.0, 12.0), (0.9, 55.0), (1.8, -8.0), (2.2, 45.0), (2.6, 2.0), (3.1, 68.0), (3.7, 12.0)],
    ),
    (
        "ring_l.bend",
        &[(0.0, 14.0), (0.9, 58.0), (1.8, -6.0), (2.2, 48.0), (2.6, 4.0), (3.1, 70.0), (3.7, 14.0)],
    ),
    (
        "pinky_l.bend",
        &[(0.0, 16.0), (0.9, 60.0), (1.8, -4.0), (2.2, 50.0), (2.6, 6.0), (3.1, 70.0), (3.7, 16.0)],
    ),
    ("thumb_l.spread", &[(0.0, 0.0), (1.8, 16.0), (2.2, 4.0), (2.6, 12.0), (3.4, 0.0)]),
    ("pinky_l.spread", &[(0.0, 0.0), (1.8, 13.0), (2.2, 2.0), (2.6, 9.0), (3.4, 0.0)]),
    ("shoulder_r.forward", &[(0.0, 0.0), (0.9, 16.0), (1.8, 34.0), (2.6, 46.0), (3.5, 0.0)]),
    ("shoulder_r.up", &[(0.0, 0.0), (0.9, 12.0), (1.8, 26.0), (2.6, 14.0), (3.5, 0.0)]),
    ("elbow_r.bend", &[(0.0, 0.0), (0.9, 50.0), (1.8, 105.0), (2.6, 90.0), (3.6, 0.0)]),
    ("wrist_r.bend", &[(0.0, 0.0), (1.8, 30.0), (2.6, -14.0), (3.5, 0.0)]),
    ("hip_l.forward", &[(0.0, 0.0), (0.9, 46.0), (1.8, 34.0), (2.6, 42.0), (3.6, 0.0)]),
    ("hip_l.out", &[(0.0, 0.0), (0.9, 14.0), (2.6, 12.0), (3.6, 0.0)]),
    ("hip_l.twist", &[(0.0, 0.0), (0.9, 14.0), (1.8, 10.0), (2.7, -6.0), (3.6, 0.0)]),
    ("knee_l.bend", &[(0.0, 0.0), (0.9, 72.0), (1.8, 60.0), (2.6, 68.0), (3.6, 0.0)]),
    ("ankle_l.up", &[(0.0, 0.0), (0.9, 24.0), (1.8, 22.0), (2.6, 24.0), (3.6, 0.0)]),
    ("hip_r.forward", &[(0.0, 0.0), (0.9, 24.0), (1.8, 18.0), (2.6, 26.0), (3.6, 0.0)]),
    ("hip_r.out", &[(0.0, 0.0), (0.9, 16.0), (2.6, 14.0), (3.6, 0.0)]),
    ("knee_r.bend", &[(0.0, 0.0), (0.9, 62.0), (1.8, 56.0), (2.6, 66.0), (3.6, 0.0)]),
    ("ankle_r.up", &[(0.0, 0.0), (0.9, 16.0), (1.8, 10.0), (2.6, 14.0), (3.6, 0.0)]),
    ("toes_r.up", &[(0.0, 0.0), (0.9, 26.0), (1.8, 30.0), (2.6, 24.0), (3.6, 0.0)]),
    ("flex_l", &[(0.0, 0.0), (0.9, 0.8), (1.8, 0.1), (2.2, 0.6), (3.1, 0.7), (3.7, 0.0)]),
    ("flex_r", &[(0.0, 0.0), (1.8, 0.8), (2.6, 0.5), (3.6, 0.0)]),
    ("breathe", &[(0.0, 0.1), (0.9, 0.2), (1.8, 0.9), (2.6, 0.5), (3.6, 0.2)]),
];

/// Writes natural values as the rig's own.
struct ScoreWriter<'a> {
    controls: &'a [BodyControl],
    specs: &'a ControlSpecs,
    writer: ClipWriter,
}

impl ScoreWriter<'_> {
    /// Adds a curve on top of the stance, unless the rig has no such control; values stay in range.
    fn add(&mut self, name: &str, keys: &[(f32, f32)]) {
        let Some(index) = self.specs.find(name) else { return };
        let spec = self.specs.get(index);
        let sign =
            self.controls.iter().find(|control| control.name == name).map_or(1.0, |control| control.sign);
        let base = stance(name);
        let keys: Vec<(f32, f32)> = keys
            .iter()
            .map(|&(time, value)| (time, (sign * (value + base)).clamp(spec.low, spec.high)))
            .collect();
        self.writer.key(name, 1.0, &keys);
    }

    /// The stance of controls that have no curve yet.
    fn stand(&mut self) {
        for joint in ["shoulder_{}.up", "elbow_{}.bend", "hip_{}.out", "shoulder_{}.twist"] {
            for side in ["l", "r"] {
                let name = joint.replace("{}", side);
                if self.writer.curves.iter().all(|curve| curve.control != name) {
                    self.add(&name, &[(0.0, 0.0)]);
                }
            }
        }
    }
}

fn stance(name: &str) -> f32 {
    match name.split_once(['_', '.']).map_or(name, |(joint, _)| joint) {
        "shoulder" if name.ends_with(".up") => STANCE.shoulder_up,
        "elbow" => STANCE.elbow,
        "hip" if name.ends_with(".out") => STANCE.hip_out,
        "shoulder" if name.ends_with(".twist") => STANCE.shoulder_twist,
        _ => 0.0,
    }
}

/// The clips, on the controls that exist.
pub(super) fn clips(controls: &[BodyControl], specs: &ControlSpecs) -> Vec<Clip> {
    let score = || ScoreWriter { controls, specs, writer: ClipWriter::default() };
    let mut walk = score();
    for gait in &GAIT {
        for (side, delay) in [("_l.", 0), ("_r.", 4)] {
            walk.add(&gait.control.replacen('.', side, 1), &cycles(&gait.keys, delay));
        }
    }
    for gait in &TRUNK {
        walk.add(gait.control, &cycles(&gait.keys, 0));
    }
    walk.stand();
    let mut clips = vec![Clip::new("walk", STEP_SECONDS * CYCLES as f32, walk.writer.curves)];
    for (name, duration, keys) in [("reach", 3.2, REACH), ("kick", 2.6, KICK), ("test", 3.9, TEST)] {
        let mut score = score();
        for (control, keys) in keys {
            score.add(control, keys);
        }
        score.stand();
        let clip = Clip::new(name, duration, score.writer.curves);
        clips.push(if name == "test" { clip.for_test() } else { clip });
    }
    clips.retain(|clip| !clip.curves.is_empty());
    clips
}

/// A cycle repeated, `delay` keys later.
fn cycles(keys: &[f32; 8], delay: usize) -> Vec<(f32, f32)> {
    let key = |index: usize| (index as f32 * STEP_SECONDS / 8.0, keys[(index + 8 - delay) % 8]);
    (0..=8 * CYCLES).map(key).collect()
}
