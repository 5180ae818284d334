//! Feet that stay where they are put: the angles of hip, knee and ankle for a foot given by its place,
//! height and pitch, by a few Gauss–Newton steps on the leg's own forward kinematics.

use crate::rook::plan;
use understudy_core::linear_algebra::Cholesky;
use understudy_core::{Affine3A, Clip, ControlSpecs, Curve, Quat, Skeleton, Vec3};

/// A foot relative to its rest place on the ground.
#[derive(Debug, Clone, Copy, Default)]
pub struct Foot {
    /// Sideways, outward, cm.
    pub out: f32,
    /// Height of the contact point over the ground, cm.
    pub lift: f32,
    /// Forward, cm.
    pub forward: f32,
    /// Toes up (on the heel) or heel up (on the ball, negative), degrees.
    pub pitch: f32,
}

impl Foot {
    /// Where the ankle is for the left foot: turned about the heel or about the ball.
    fn ankle(&self) -> Vec3 {
        let heel = Vec3::new(plan::ANKLE.x, 0.0, plan::ANKLE.z - 5.0);
        let ball = Vec3::new(plan::BALL.x, 0.5, plan::BALL.z);
        let pivot = if self.pitch > 0.0 { heel } else { ball };
        let turn = Quat::from_rotation_x(-self.pitch.to_radians());
        pivot + turn * (plan::ANKLE - pivot) + Vec3::new(self.out, self.lift, self.forward)
    }
}

/// Four curves of a foot over time.
pub struct FootPath {
    /// `out`, `lift`, `forward`, `pitch` of [`Foot`].
    pub curves: [Curve; 4],
}

impl FootPath {
    /// Smooth curves through `(seconds, value)` pairs.
    pub fn new(
        out: &[(f32, f32)],
        lift: &[(f32, f32)],
        forward: &[(f32, f32)],
        pitch: &[(f32, f32)],
    ) -> Self {
        Self { curves: [out, lift, forward, pitch].map(|keys| Curve::smooth("foot", keys)) }
    }

    fn at(&self, time: f32) -> Foot {
        let [out, lift, forward, pitch] = self.curves.each_ref().map(|curve| curve.at(time));
        Foot { out, lift, forward, pitch }
    }
}

/// Rest transforms of both legs.
pub struct Ground<'a> {
    specs: &'a ControlSpecs,
    /// Root, hips, then thigh, calf, foot of the left and the right leg.
    rest: Vec<Affine3A>,
}

/// Hip forward, hip out, knee, ankle up, ankle roll; degrees.
type Leg = [f32; 5];

const CONTROLS: [&str; 5] = ["hip_S.forward", "hip_S.out", "knee_S.bend", "ankle_S.up", "ankle_S.roll"];

impl<'a> Ground<'a> {
    /// Keys a second of the curves that come out.
    const RATE: f32 = 30.0;
    const ROUNDS: usize = 14;

    /// Reads the legs.
    pub fn new(skeleton: &Skeleton, specs: &'a ControlSpecs) -> Self {
        let names = ["root", "hips", "thigh_l", "calf_l", "foot_l", "thigh_r", "calf_r", "foot_r"];
        let rest = names.map(|name| {
            let bone = skeleton.find(name).expect("a bone of Rook's own skeleton");
            skeleton.bones()[bone].rest.to_affine()
        });
        Self { specs, rest: rest.to_vec() }
    }

    /// World transform of the hips for the clip's own curves.
    fn hips(&self, curves: &[Curve], time: f32) -> Affine3A {
        let value = |name: &str| curves.iter().find(|c| c.control == name).map_or(0.0, |c| c.at(time));
        let turn = |stem: &str| {
            let [x, y, z] =
                ["pitch", "turn", "roll"].map(|motion| value(&format!("{stem}.{motion}")).to_radians());
            Quat::from_rotation_z(z) * Quat::from_rotation_y(y) * Quat::from_rotation_x(x)
        };
        let shift =
            |stem: &str| Vec3::from(["move_x", "move_y", "move_z"].map(|m| value(&format!("{stem}.{m}"))));
        let part = |index: usize, stem: &str| {
            Affine3A::from_translation(shift(stem)) * self.rest[index] * Affine3A::from_quat(turn(stem))
        };
        part(0, "root") * part(1, "hips")
    }

    /// Ankle, foot forward and foot up of a leg.
    fn forward(&self, hips: Affine3A, side: usize, leg: &Leg) -> [Vec3; 3] {
        let [forward, out, knee, ankle, roll] = leg.map(f32::to_radians);
        let rest = &self.rest[2 + side * 3..5 + side * 3];
        let thigh =
            hips * rest[0] * Affine3A::from_quat(Quat::from_rotation_z(out) * Quat::from_rotation_x(forward));
        let calf = thigh * rest[1] * Affine3A::from_quat(Quat::from_rotation_x(knee));
        let turn = Quat::from_rotation_y(roll) * Quat::from_rotation_x(ankle);
        let foot = calf * rest[2] * Affine3A::from_quat(turn);
        let sign = if side == 0 { 1.0 } else { -1.0 };
        [
            foot.translation.into(),
            foot.transform_vector3(Vec3::Y * sign),
            foot.transform_vector3(Vec3::Z * sign),
        ]
    }

    /// What is left to do: ankle position (cm), toe height and lean of the sole (as cm at a foot's length).
    fn miss(&self, hips: Affine3A, side: usize, leg: &Leg, target: &Foot) -> [f32; 5] {
        let sign = if side == 0 { 1.0 } else { -1.0 };
        let goal = target.ankle() * Vec3::new(sign, 1.0, 1.0);
        let [ankle, forward, up] = self.forward(hips, side, leg);
        let hip = Vec3::from((hips * self.rest[2 + side * 3]).translation);
        // A goal out of reach is brought onto the reach.
        let reach = 0.992 * (plan::HIP.distance(plan::KNEE) + plan::KNEE.distance(plan::ANKLE));
        let goal = hip + (goal - hip).clamp_length_max(reach);
        let position = ankle - goal;
        let pitch = forward.y - target.pitch.to_radians().sin();
        [position.x, position.y, position.z, 20.0 * pitch, 20.0 * up.x]
    }

    fn solve(&self, hips: Affine3A, side: usize, target: &Foot, guess: Leg) -> Leg {
        let mut leg = guess;
        for _ in 0..Self::ROUNDS {
            let miss = self.miss(hips, side, &leg, target);
            let mut jacobian = [[0.0f64; 5]; 5];
            const STEP: f32 = 0.05;
            for column in 0..5 {
                let mut moved = leg;
                moved[column] += STEP;
                let there = self.miss(hips, side, &moved, target);
                for row in 0..5 {
                    jacobian[row][column] = f64::from((there[row] - miss[row]) / STEP);
                }
            }
            let step = damped_step(&jacobian, &miss.map(f64::from));
            for (column, value) in leg.iter_mut().enumerate() {
                *value -= (step[column] as f32).clamp(-20.0, 20.0);
                let name = CONTROLS[column].replace('S', if side == 0 { "l" } else { "r" });
                let spec = self.specs.get(self.specs.find(&name).expect("a control of Rook's own list"));
                *value = value.clamp(spec.low, spec.high);
            }
        }
        leg
    }

    /// Finishes a clip: body curves plus leg curves for the two foot paths; toes stay flat while the
    /// heel is up and the ball is on the ground.
    pub fn clip(&self, name: &str, duration: f32, body: Vec<Curve>, feet: [&FootPath; 2]) -> Clip {
        let count = (duration * Self::RATE).round() as usize;
        let mut curves = body;
        let mut legs: Vec<Curve> = Vec::new();
        for (side, path) in feet.into_iter().enumerate() {
            let suffix = if side == 0 { "l" } else { "r" };
            let mut keys: Vec<Vec<(f32, f32)>> = vec![Vec::new(); 6];
            let mut leg: Leg = [5.0, 0.0, 10.0, 5.0, 0.0];
            for index in 0..=count {
                let time = index as f32 / Self::RATE;
                let foot = path.at(time);
                leg = self.solve(self.hips(&curves, time), side, &foot, leg);
                leg.iter().zip(&mut keys).for_each(|(value, keys)| keys.push((time, *value)));
                let toe = (-foot.pitch).clamp(0.0, 48.0) * (1.0 - foot.lift / 6.0).clamp(0.0, 1.0);
                keys[5].push((time, toe));
            }
            let names = CONTROLS.into_iter().chain(["toe_S.up"]);
            legs.extend(names.zip(&keys).map(|(name, keys)| Curve::smooth(name.replace('S', suffix), keys)));
        }
        curves.extend(legs);
        Clip::new(name, duration, curves)
    }
}

/// Solves `(JᵀJ + λ) x = Jᵀ r`; the damping keeps straight legs calm.
fn damped_step(jacobian: &[[f64; 5]; 5], miss: &[f64; 5]) -> [f64; 5] {
    let mut system = [0.0; 25];
    let mut solution = [0.0; 5];
    for row in 0..5 {
        for column in 0..5 {
            system[row * 5 + column] = (0..5).map(|k| jacobian[k][row] * jacobian[k][column]).sum();
        }
        system[row * 5 + row] += 1e-3;
        solution[row] = (0..5).map(|k| jacobian[k][row] * miss[k]).sum();
    }
    Cholesky::new(&system, 5).expect("damping makes it positive definite").solve(&mut solution, 1);
    solution
}
