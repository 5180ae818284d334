//! Handles of a rig that is posed by controls: which values put hands and feet where they are asked to, within the
//! controls' ranges. The closed form of two bones proposes; a few damped Gauss–Newton steps settle what a rig adds to it:
//! hinges that are not at right angles, a twist on a second bone, helpers that follow, limits.

use super::arc;
use super::names::{Handles, LimbBones, TORSO};
use crate::ik::small::solve_positive;
use crate::ik::two_bone::{Bend, LimbError, Reach, TwoBone};
use understudy_core::control_map::ControlMap;
use understudy_core::skeleton::rotation_of;
use understudy_core::{
    Affine3A, Channel, ControlKind, ControlSpecs, Controls, DVec3, JointPose, Mat3, Quat, Skeleton, Vec3,
};

/// Where a handle shall be, and how its limb bends.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// `hand_L`, `foot_R`, `torso` …
    pub handle: String,
    /// Where.
    pub place: Place,
    /// Where the elbow or knee points; as it does in the pose that is started from where none is given.
    pub pole: Option<Vec3>,
}

/// Where a handle shall be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Place {
    /// There, cm. A hand or a foot keeps its angle to the forearm or the calf.
    At(Vec3),
    /// Where it stood, turned as it was.
    Locked(Anchor),
}

/// A place and an orientation that are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anchor {
    /// World transform of the bone, cm.
    pub world: Affine3A,
}

/// What became of a goal.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The handle.
    pub handle: String,
    /// Where it was asked to be, cm.
    pub target: Vec3,
    /// Where it is.
    pub reached: Vec3,
    /// How the limb reached, by its lengths alone; `None` for the torso.
    pub reach: Option<Reach>,
    /// Controls of the limb (of a locked one with its hand or foot) that ended at an end of their range.
    pub at_limits: Vec<String>,
    /// Of a locked handle: how far it is turned from how it stood, degrees.
    pub turned_deg: Option<f32>,
}

impl Outcome {
    /// What is left, mm.
    pub fn distance_mm(&self) -> f32 {
        self.target.distance(self.reached) * 10.0
    }
}

/// How much the direction of the bend counts beside the target: enough to choose among the answers, too little to be seen.
const BEND_SHARE: f64 = 0.01;

/// Steps of one limb; what converges does in five to ten.
const STEPS: usize = 40;

/// The handles of one rig.
#[derive(Debug, Clone)]
pub struct Poser<'a> {
    specs: &'a ControlSpecs,
    skeleton: &'a Skeleton,
    handles: &'a Handles,
    map: ControlMap,
    /// Share of a limb's length before it is straight in which it slows down.
    pub soft: f32,
}

impl<'a> Poser<'a> {
    /// For a rig with these controls and bones.
    pub fn new(specs: &'a ControlSpecs, skeleton: &'a Skeleton, handles: &'a Handles) -> Self {
        Self { specs, skeleton, handles, map: ControlMap::new(specs, Some(skeleton), None), soft: 0.0 }
    }

    /// Moves handles, starting from `controls`; the torso first, then limbs. `forward` places the bones of the rig, `[J]`.
    /// Goals whose handle the rig does not have are left out: check their names before.
    pub fn solve<E: From<LimbError>>(
        &self,
        goals: &[Goal],
        controls: &mut Vec<f32>,
        forward: &mut impl FnMut(&[f32], &mut Vec<Affine3A>) -> Result<(), E>,
    ) -> Result<Vec<Outcome>, E> {
        let mut world = Vec::new();
        forward(controls, &mut world)?;
        let mut outcomes = Vec::new();
        let torso = goals.iter().filter(|goal| goal.handle == TORSO);
        for (goal, bone) in torso.filter_map(|goal| Some((goal, self.handles.torso?))) {
            let target = goal.place.target();
            check_target(target)?;
            for movers in self.carriers(bone) {
                let miss = |world: &[Affine3A]| [miss(world, bone, target), DVec3::ZERO];
                self.settle(&movers, controls, forward, &miss)?;
            }
            outcomes.push((goal, bone, None, self.carriers(bone).concat()));
        }
        for goal in goals {
            let Some(limb) = self.handles.limbs.iter().find(|limb| limb.name == goal.handle) else {
                continue;
            };
            let reach = self.limb(limb, goal, controls, forward)?;
            let [upper, lower, end] = limb.bones;
            // What turns the end back as it stood has limits of its own.
            let last = if matches!(goal.place, Place::Locked(_)) { end } else { lower };
            outcomes.push((goal, end, Some(reach), self.movers(upper, last)));
        }
        forward(controls, &mut world)?;
        let at_limit = |control: &usize| {
            let spec = &self.specs.iter().nth(*control).expect("a control of the rig");
            let margin = 1e-4 * (spec.high - spec.low);
            let value = controls[*control];
            (value <= spec.low + margin || value >= spec.high - margin).then(|| spec.name.clone())
        };
        let outcome = |(goal, bone, reach, movers): (&Goal, usize, Option<Reach>, Vec<usize>)| Outcome {
            handle: goal.handle.clone(),
            target: goal.place.target(),
            reached: world[bone].translation.into(),
            reach,
            at_limits: movers.iter().filter_map(at_limit).collect(),
            turned_deg: goal.place.turned_deg(&world[bone]),
        };
        Ok(outcomes.into_iter().map(outcome).collect())
    }

    /// One limb: the closed form, its angles as controls, then what is left.
    fn limb<E: From<LimbError>>(
        &self,
        limb: &LimbBones,
        goal: &Goal,
        controls: &mut Vec<f32>,
        forward: &mut impl FnMut(&[f32], &mut Vec<Affine3A>) -> Result<(), E>,
    ) -> Result<Reach, E> {
        let mut world = Vec::new();
        forward(controls, &mut world)?;
        let place = |world: &[Affine3A], bone: usize| Vec3::from(world[bone].translation);
        let [upper, lower, end] = limb.bones;
        let [origin, middle, tip] = limb.bones.map(|bone| place(&world, bone));
        let bones =
            TwoBone::new(origin.distance(middle), middle.distance(tip))?.with_soft_reach(self.soft)?;
        let target = goal.place.target();
        check_target(target)?;
        let hinges = self.movers(lower, lower);
        let bend = match goal.pole {
            Some(pole) => Bend::Pole(pole),
            None => Bend::Pole(self.natural_bend(limb, &hinges, controls, forward)?),
        };
        let pose = bones.solve(origin, target, bend)?;
        // Where the hinge has one control, its value says how far the end is; the rest is one turn of the whole.
        let mut proposal = controls.clone();
        if let &[hinge] = &hinges[..] {
            self.fold(hinge, limb, pose.end.distance(origin), &mut proposal, forward)?;
            forward(&proposal, &mut world)?;
            let now = frame(place(&world, end) - origin, place(&world, lower) - origin);
            let wanted = frame(pose.end - origin, pose.middle - origin);
            self.turn(upper, wanted * now.inverse(), &world, &mut proposal);
        } else {
            self.turn(upper, arc(middle - origin, pose.middle - origin), &world, &mut proposal);
            forward(&proposal, &mut world)?;
            let elbow = place(&world, lower);
            self.turn(lower, arc(place(&world, end) - elbow, pose.end - elbow), &world, &mut proposal);
        }
        let movers = self.movers(upper, lower);
        let toward =
            |world: &[Affine3A]| [miss(world, end, pose.end), miss(world, lower, pose.middle) * BEND_SHARE];
        let mut best: Option<(f64, Vec<f32>)> = None;
        for start in [proposal, controls.clone()] {
            let mut tried = start;
            let left = self.settle(&movers, &mut tried, forward, &toward)?;
            if best.as_ref().is_none_or(|(least, _)| left < *least) {
                best = Some((left, tried));
            }
            // A hundredth of a millimetre is there.
            if best.as_ref().is_some_and(|(least, _)| *least < 1e-3 * 1e-3) {
                break;
            }
        }
        *controls = best.expect("two starts").1;
        if let Place::Locked(anchor) = goal.place {
            forward(controls, &mut world)?;
            let now = rotation_of(&world[end]);
            self.turn(end, rotation_of(&anchor.world) * now.inverse(), &world, controls);
        }
        Ok(pose.reach)
    }

    /// Where the middle joint points in this pose; where the limb is straight, where it would go if it were bent.
    fn natural_bend<E>(
        &self,
        limb: &LimbBones,
        hinges: &[usize],
        controls: &[f32],
        forward: &mut impl FnMut(&[f32], &mut Vec<Affine3A>) -> Result<(), E>,
    ) -> Result<Vec3, E> {
        let mut world = Vec::new();
        let side = |world: &[Affine3A]| {
            let [a, b, c] = limb.bones.map(|bone| Vec3::from(world[bone].translation));
            let along = (c - a).normalize_or_zero();
            let away = b - a;
            (away - along * along.dot(away), away.length())
        };
        forward(controls, &mut world)?;
        let (now, length) = side(&world);
        if now.length() > 0.02 * length {
            return Ok(now);
        }
        let mut bent = controls.to_vec();
        for &hinge in hinges {
            let spec = self.specs.iter().nth(hinge).expect("a control of the rig");
            bent[hinge] = if spec.high > -spec.low { 0.5 * spec.high } else { 0.5 * spec.low };
        }
        forward(&bent, &mut world)?;
        Ok(side(&world).0)
    }

    /// Bends a hinge until the end of its limb is that far from its start.
    fn fold<E>(
        &self,
        hinge: usize,
        limb: &LimbBones,
        distance: f32,
        controls: &mut [f32],
        forward: &mut impl FnMut(&[f32], &mut Vec<Affine3A>) -> Result<(), E>,
    ) -> Result<(), E> {
        let spec = self.specs.iter().nth(hinge).expect("a control of the rig");
        let mut world = Vec::new();
        let mut span = |value: f32, controls: &mut [f32]| -> Result<f32, E> {
            controls[hinge] = value;
            forward(controls, &mut world)?;
            Ok(world[limb.bones[0]].translation.distance(world[limb.bones[2]].translation))
        };
        // Straight is somewhere inside the range; the longer side of it is the natural one.
        let (mut straight, mut longest) = (spec.low, -1.0);
        for step in 0..=16 {
            let value = spec.low + (spec.high - spec.low) * step as f32 / 16.0;
            let length = span(value, controls)?;
            if length > longest {
                (straight, longest) = (value, length);
            }
        }
        let far = if spec.high - straight > straight - spec.low { spec.high } else { spec.low };
        let (mut near, mut bent) = (straight, far);
        for _ in 0..24 {
            let half = 0.5 * (near + bent);
            if span(half, controls)? > distance { near = half } else { bent = half }
        }
        controls[hinge] = 0.5 * (near + bent);
        Ok(())
    }

    /// Turns a bone in the world, as far as its controls can, within their ranges.
    fn turn(&self, bone: usize, by: Quat, world: &[Affine3A], controls: &mut [f32]) {
        let mut pose: JointPose = self.skeleton.rest_pose();
        let parent = self.skeleton.bones()[bone].parent.map_or(Quat::IDENTITY, |p| rotation_of(&world[p]));
        let turned = by * rotation_of(&world[bone]);
        if !turned.is_finite() {
            return;
        }
        pose.0[bone].rotation = (parent.inverse() * turned).normalize();
        let mut values = Controls(controls.to_vec());
        self.map.set_pose(&pose, &mut values);
        for control in self.movers(bone, bone) {
            let spec = self.specs.iter().nth(control).expect("a control of the rig");
            controls[control] = values.0[control].clamp(spec.low, spec.high);
        }
    }

    /// Rotation controls of the bones from `top` down to `last`.
    fn movers(&self, top: usize, last: usize) -> Vec<usize> {
        movers(self.specs, self.skeleton, top, last)
    }

    fn carriers(&self, bone: usize) -> Vec<Vec<usize>> {
        carriers(self.specs, self.skeleton, bone)
    }

    /// Damped Gauss–Newton steps over some controls within their ranges, derivatives by differences; gives the squared
    /// length of the first part of what is left, cm².
    fn settle<E>(
        &self,
        movers: &[usize],
        controls: &mut [f32],
        forward: &mut impl FnMut(&[f32], &mut Vec<Affine3A>) -> Result<(), E>,
        left: &impl Fn(&[Affine3A]) -> [DVec3; 2],
    ) -> Result<f64, E> {
        let specs: Vec<_> = movers.iter().map(|m| self.specs.iter().nth(*m).expect("a control")).collect();
        for (mover, spec) in movers.iter().zip(&specs) {
            controls[*mover] = controls[*mover].clamp(spec.low, spec.high);
        }
        let mut world = Vec::new();
        forward(controls, &mut world)?;
        let cost = |parts: [DVec3; 2]| parts[0].length_squared() + parts[1].length_squared();
        let mut here = left(&world);
        let (mut damping, n) = (1e-4, movers.len());
        for _ in 0..STEPS {
            if here[0].length() < 1e-5 && cost(here) < 1e-7 {
                break;
            }
            let mut columns = Vec::with_capacity(n);
            for (mover, spec) in movers.iter().zip(&specs) {
                let kept = controls[*mover];
                // Half a degree: f32 places of bones tell so much apart to six digits.
                let step = if kept + 0.5 <= spec.high { 0.5 } else { -0.5 };
                controls[*mover] = kept + step;
                forward(controls, &mut world)?;
                controls[*mover] = kept;
                let there = left(&world);
                columns.push([0, 1].map(|part| (there[part] - here[part]) / f64::from(step)));
            }
            let dot = |a: &[DVec3; 2], b: &[DVec3; 2]| a[0].dot(b[0]) + a[1].dot(b[1]);
            let slopes: Vec<f64> = columns.iter().map(|column| dot(column, &here)).collect();
            // What stands at an end of its range and would leave it stays.
            let free: Vec<usize> = (0..n)
                .filter(|&k| {
                    let value = controls[movers[k]];
                    !((value <= specs[k].low && slopes[k] > 0.0)
                        || (value >= specs[k].high && slopes[k] < 0.0))
                })
                .collect();
            let mut better = false;
            for _ in 0..8 {
                let m = free.len();
                let mut a = vec![0.0; m * m];
                let mut b = vec![0.0; m];
                for (row, &i) in free.iter().enumerate() {
                    b[row] = -slopes[i];
                    for (column, &j) in free.iter().enumerate() {
                        a[row * m + column] = dot(&columns[i], &columns[j]);
                    }
                    a[row * m + row] += damping * (a[row * m + row] + 1e-9);
                }
                if m == 0 || !solve_positive(&mut a, &mut b) {
                    damping *= 10.0;
                    continue;
                }
                let mut tried = controls.to_vec();
                for (&k, step) in free.iter().zip(&b) {
                    let value = tried[movers[k]] + (*step as f32).clamp(-40.0, 40.0);
                    tried[movers[k]] = value.clamp(specs[k].low, specs[k].high);
                }
                forward(&tried, &mut world)?;
                let there = left(&world);
                if cost(there) < cost(here) {
                    better = cost(there) < cost(here) * (1.0 - 1e-9);
                    controls.copy_from_slice(&tried);
                    here = there;
                    damping = (damping * 0.2).max(1e-9);
                    break;
                }
                damping *= 10.0;
            }
            if !better {
                break;
            }
        }
        Ok(here[0].length_squared())
    }
}

/// Rotation controls of the bones from `top` down to `last`.
fn movers(specs: &ControlSpecs, skeleton: &Skeleton, top: usize, last: usize) -> Vec<usize> {
    let mut chain = vec![last];
    while let Some(parent) = skeleton.bones()[chain[chain.len() - 1]].parent
        && chain[chain.len() - 1] != top
    {
        chain.push(parent);
    }
    controls_of(specs, skeleton, &chain, |channel| (channel as usize) < 3)
}

/// Translations that move the torso: those of the bone itself, then of the bones above it, one group per bone.
fn carriers(specs: &ControlSpecs, skeleton: &Skeleton, bone: usize) -> Vec<Vec<usize>> {
    let mut at = Some(bone);
    let mut groups = Vec::new();
    while let Some(bone) = at {
        groups.push(controls_of(specs, skeleton, &[bone], |channel| (3..6).contains(&(channel as usize))));
        at = skeleton.bones()[bone].parent;
    }
    groups.retain(|group| !group.is_empty());
    groups
}

fn controls_of(
    specs: &ControlSpecs,
    skeleton: &Skeleton,
    bones: &[usize],
    wanted: impl Fn(Channel) -> bool,
) -> Vec<usize> {
    let of = |(control, spec): (usize, &understudy_core::ControlSpec)| match &spec.kind {
        ControlKind::Joint { bone, channel } => {
            let moved = bones.iter().any(|wanted| skeleton.bones()[*wanted].name == *bone);
            (moved && wanted(*channel)).then_some(control)
        }
        ControlKind::Number => None,
    };
    specs.iter().enumerate().filter_map(of).collect()
}

impl Handles {
    /// Only those that some control moves: the root of a head has the name of a body's, but nothing carries it.
    pub fn moved_by(mut self, specs: &ControlSpecs, skeleton: &Skeleton) -> Self {
        self.torso = self.torso.filter(|bone| !carriers(specs, skeleton, *bone).is_empty());
        self.limbs.retain(|limb| !movers(specs, skeleton, limb.bones[0], limb.bones[1]).is_empty());
        self
    }
}

impl Place {
    fn turned_deg(&self, world: &Affine3A) -> Option<f32> {
        match self {
            Self::At(_) => None,
            Self::Locked(anchor) => {
                let between = rotation_of(&anchor.world).inverse() * rotation_of(world);
                // By the sine: a cosine near one tells small angles badly.
                let sine = between.xyz().length();
                Some(2.0 * sine.atan2(between.w.abs()).to_degrees())
            }
        }
    }

    fn target(&self) -> Vec3 {
        match self {
            Self::At(target) => *target,
            Self::Locked(anchor) => anchor.world.translation.into(),
        }
    }
}

impl Anchor {
    /// Where a bone stands, but not below `ground`, the height at which a foot rests.
    pub fn of(world: Affine3A, ground: Option<f32>) -> Self {
        let mut world = world;
        world.translation.y = ground.map_or(world.translation.y, |ground| world.translation.y.max(ground));
        Self { world }
    }
}

/// A target of the torso is checked as limbs check theirs.
fn check_target(target: Vec3) -> Result<(), LimbError> {
    match target.is_finite() && target.abs().max_element() <= crate::ik::two_bone::MOST_CM {
        true => Ok(()),
        false => Err(LimbError::Point { what: "target", point: target }),
    }
}

fn miss(world: &[Affine3A], bone: usize, target: Vec3) -> DVec3 {
    Vec3::from(world[bone].translation).as_dvec3() - target.as_dvec3()
}

/// Axes: along a limb, and to the side of its middle joint.
fn frame(along: Vec3, side: Vec3) -> Quat {
    let x = along.try_normalize().unwrap_or(Vec3::X);
    let y = (side - x * x.dot(side)).try_normalize().unwrap_or_else(|| x.any_orthonormal_vector());
    Quat::from_mat3(&Mat3::from_cols(x, y, x.cross(y)))
}
