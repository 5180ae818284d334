//! From keyed poses to curves. A pose is keyed as a whole; each part of the face reaches it in its own time (eyes
//! first, then brows, mouth and head), the right side a touch later and weaker, and nothing holds quite still.

use understudy_core::{Clip, ControlSpecs, Curve};

/// A pose: controls by name; `_*` is both sides. What is not named rests.
pub(super) type Pose = &'static [(&'static str, f32)];

/// Poses with their amounts, added up.
pub(super) type Mix<'a> = &'a [(Pose, f32)];

/// Frames per second that the takes are thought in; sampled at any rate.
const RATE: f32 = 24.0;
/// How far beyond a pose a hit goes, as a share of the way there, and how long it takes to come back, seconds.
const OVERSHOOT: f32 = 0.14;
const SETTLE: f32 = 0.17;
/// What is left of a pose at the end of a hold.
const SLACK: f32 = 0.9;
/// The right side is later by seconds, and weaker.
const RIGHT_LATE: f32 = 0.025;
const RIGHT_WEAK: f32 = 0.95;

/// Values of controls at a time.
#[derive(Clone)]
struct Keyed {
    time: f32,
    values: Vec<(String, f32)>,
}

/// A take: keyed poses, blinks, and where the head is.
#[derive(Clone)]
pub(super) struct Take {
    name: String,
    duration: f32,
    keys: Vec<Keyed>,
    extra: Vec<(String, Vec<(f32, f32)>)>,
    /// Parts the rhythm of drift from take to take.
    phase: f32,
}

impl Take {
    /// Begins and ends at rest.
    pub fn new(name: &str, duration: f32) -> Self {
        let phase =
            name.bytes().fold(0.0, |sum: f32, byte| (sum * 1.7 + f32::from(byte)) % std::f32::consts::TAU);
        let rest = Keyed { time: 0.0, values: Vec::new() };
        Self { name: name.into(), duration, keys: vec![rest], extra: Vec::new(), phase }
    }

    /// Reaches a pose at a time. `head`: pitch (down), yaw (to her left), roll (to her left) in degrees, shared between
    /// head and neck.
    pub fn key(mut self, time: f32, mix: Mix, head: [f32; 3]) -> Self {
        let mut values: Vec<(String, f32)> = Vec::new();
        for (pose, amount) in mix {
            for (name, value) in *pose {
                for (side, weak) in sides(name) {
                    add(&mut values, side, value * amount * weak);
                }
            }
        }
        for (axis, degrees) in ["Pitch", "Yaw", "Roll"].into_iter().zip(head) {
            add(&mut values, format!("head{axis}"), degrees * 0.68);
            add(&mut values, format!("neck{axis}"), degrees * 0.32);
        }
        self.keys.push(Keyed { time, values });
        self
    }

    /// Reaches a pose beyond its mark and settles.
    pub fn hit(mut self, time: f32, mix: Mix, head: [f32; 3]) -> Self {
        let before = self.keys.last().map(|key| key.values.clone()).unwrap_or_default();
        let target = self.clone().key(time, mix, head).keys.pop().map(|key| key.values).unwrap_or_default();
        let was = |name: &str| value(&before, name);
        let beyond =
            target.iter().map(|(name, to)| (name.clone(), to + OVERSHOOT * (to - was(name)))).collect();
        self.keys.push(Keyed { time, values: beyond });
        self.keys.push(Keyed { time: time + SETTLE, values: target });
        self
    }

    /// Keeps the pose until a time: it slackens a little and the head drifts, as nothing alive stands still.
    pub fn hold(mut self, until: f32) -> Self {
        let Some(last) = self.keys.last().cloned() else { return self };
        let middle = 0.5 * (last.time + until);
        for (time, slack, way) in [(middle, 0.5, 1.0f32), (until, 1.0, -0.4)] {
            let keep = 1.0 - (1.0 - SLACK) * slack;
            let drift = (self.phase + time * 2.1).sin() * way;
            let values = last.values.iter().map(|(name, value)| {
                let value = value * keep;
                let moved = match name.as_str() {
                    "headPitch" => value + 1.3 * drift,
                    "headYaw" => value - 1.1 * drift,
                    "headRoll" => value + 0.9 * drift,
                    _ => value,
                };
                (name.clone(), moved)
            });
            self.keys.push(Keyed { time, values: values.collect() });
        }
        self
    }

    /// Shuts the eyes for a moment at each of these times.
    pub fn blinks(self, times: &[f32]) -> Self {
        let mut keys = vec![(0.0, 0.0)];
        for time in times {
            keys.extend([(time - 0.085, 0.0), (*time, 1.0), (time + 0.05, 0.94), (time + 0.17, 0.0)]);
        }
        self.curve("eyeBlink_*", &keys)
    }

    /// Another rhythm for one control, which no pose of the take may name.
    pub fn curve(mut self, name: &str, keys: &[(f32, f32)]) -> Self {
        for (side, weak) in sides(name) {
            let weak = if name.starts_with("eye") { 1.0 } else { weak };
            self.extra.push((side, keys.iter().map(|(time, value)| (*time, value * weak)).collect()));
        }
        self
    }

    /// The clip, back at rest at its end.
    pub fn clip(mut self, specs: &ControlSpecs) -> Clip {
        self.keys.push(Keyed { time: self.duration - 0.15, values: Vec::new() });
        let mut names: Vec<String> = Vec::new();
        for (name, _) in self.keys.iter().flat_map(|key| &key.values) {
            if !names.contains(name) && !self.extra.iter().any(|(other, _)| other == name) {
                names.push(name.clone());
            }
        }
        let mut curves = Vec::new();
        for name in &names {
            let late = lateness(name);
            let (low, high) = specs.find(name).map_or((0.0, 1.0), |control| {
                let spec = specs.get(control);
                (spec.low, spec.high)
            });
            let keys = self.keys.iter().map(|key| {
                let time = if key.time <= 0.0 { 0.0 } else { (key.time + late).max(0.5 / RATE) };
                (time, value(&key.values, name).clamp(low, high))
            });
            curves.push(Curve::smooth(name.clone(), &ascending(keys)));
        }
        for (name, keys) in &self.extra {
            curves.push(Curve::smooth(name.clone(), &ascending(keys.iter().copied())));
        }
        let free = |name: &str| !curves.iter().any(|curve| curve.control == name);
        let mut alive = Vec::new();
        if free("noseFlare_L") {
            alive.extend(["L", "R"].map(|side| (format!("noseFlare_{side}"), 0.16)));
        }
        if free("neckFlare_L") {
            alive.extend(["L", "R"].map(|side| (format!("neckFlare_{side}"), 0.14)));
        }
        for (name, depth) in alive {
            curves.push(Curve::smooth(name, &self.breath(depth)));
        }
        // The bun lags behind the head and swings past it.
        for (from, to, share) in [("headPitch", "bunPitch", -0.42), ("headRoll", "bunRoll", -0.42)] {
            let Some(head) = curves.iter().find(|curve| curve.control == from).cloned() else { continue };
            curves.push(self.dragged(&head, to, share));
        }
        Clip::new(format!("motion/{}", self.name), self.duration, curves).for_motion()
    }

    /// In and out every two seconds or so.
    fn breath(&self, depth: f32) -> Vec<(f32, f32)> {
        let mut keys = vec![(0.0, 0.0)];
        let mut time = 0.45 + 0.1 * self.phase.sin();
        while time < self.duration - 0.6 {
            keys.push((time, depth));
            keys.push(((time + 0.85).min(self.duration - 0.3), 0.0));
            time += 1.85;
        }
        keys
    }

    /// What hangs on the head: a spring driven by the head's acceleration.
    fn dragged(&self, head: &Curve, name: &str, share: f32) -> Curve {
        const STIFFNESS: f32 = 120.0;
        const DAMPING: f32 = 9.0;
        const STEPS: usize = 8;
        let frames = (self.duration * RATE).round() as usize;
        let step = 1.0 / (RATE * STEPS as f32);
        let (mut place, mut speed) = (0.0f32, 0.0f32);
        let mut keys = Vec::with_capacity(frames + 1);
        for frame in 0..=frames {
            let time = frame as f32 / RATE;
            // Rest at the end, so that clips can follow each other.
            let fade = ((self.duration - time) / 0.4).clamp(0.0, 1.0);
            keys.push((time, (place * share * fade).clamp(-11.0, 11.0)));
            for sub in 0..STEPS {
                let at = time + sub as f32 * step;
                let lag = head.at(at) - head.at(at - 0.12);
                speed += (STIFFNESS * (lag - place) - DAMPING * speed) * step;
                place += speed * step;
            }
        }
        Curve::smooth(name, &keys)
    }
}

fn value(values: &[(String, f32)], name: &str) -> f32 {
    values.iter().find(|(other, _)| other == name).map_or(0.0, |(_, value)| *value)
}

fn add(values: &mut Vec<(String, f32)>, name: String, amount: f32) {
    match values.iter_mut().find(|(other, _)| *other == name) {
        Some((_, value)) => *value += amount,
        None => values.push((name, amount)),
    }
}

/// Both sides of a name that ends in `_*`, each with its strength.
fn sides(name: &str) -> Vec<(String, f32)> {
    match name.strip_suffix("_*") {
        Some(stem) => vec![(format!("{stem}_L"), 1.0), (format!("{stem}_R"), RIGHT_WEAK)],
        None => vec![(name.to_owned(), 1.0)],
    }
}

/// How much later than its key a control arrives, seconds: the eyes lead, the head follows.
fn lateness(name: &str) -> f32 {
    let part = match name {
        _ if name.starts_with("eyeLook") => -0.09,
        _ if name.starts_with("eye") || name.starts_with("lid") => -0.05,
        _ if name.starts_with("brow") || name.starts_with("forehead") => -0.03,
        _ if name.starts_with("cheek") || name.starts_with("nose") => 0.02,
        _ if name.starts_with("neck") => 0.0,
        _ if name.starts_with("head") => 0.05,
        _ => 0.0,
    };
    let side = if name.ends_with("_R") && !name.starts_with("eyeLook") { RIGHT_LATE } else { 0.0 };
    part + side
}

/// Keys in strictly ascending order: of two that come too close the later one counts.
fn ascending(keys: impl Iterator<Item = (f32, f32)>) -> Vec<(f32, f32)> {
    let mut out: Vec<(f32, f32)> = Vec::new();
    for (time, value) in keys {
        while out.last().is_some_and(|(last, _)| *last >= time - 1e-3) && out.len() > 1 {
            out.pop();
        }
        if out.last().is_none_or(|(last, _)| *last < time - 1e-3) {
            out.push((time, value));
        }
    }
    out
}
