//! The file's side: its body in every frame, the pose in which it stands like the rig, and what each frame asks of the
//! rig's body.

use super::contacts::{Contact, Frames, standing};
use super::fit::Body;
use super::goal::{Goal, Pin, Point, Segment, Turn, place, turn};
use super::{Reference, RetargetConfig, RetargetError, Start};
use crate::anatomy::Anatomy;
use understudy_core::{Affine3A, DQuat, DVec3, GlobalPose, JointPose, Skeleton};

/// A motion as a file has it, in cm and Y-up.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// Its bones.
    pub skeleton: &'a Skeleton,
    /// How they rest.
    pub rest: JointPose,
    /// One a frame.
    pub poses: Vec<JointPose>,
    /// Frames per second.
    pub rate: f32,
}

impl Source<'_> {
    /// Bones that move in their parents' frames and are no part of the body.
    pub(super) fn unused(&self, anatomy: &Anatomy) -> Vec<String> {
        let parts = anatomy.parts();
        let moves = |bone: usize| {
            let first = self.poses[0].0[bone].rotation;
            self.poses.iter().any(|pose| pose.0[bone].rotation.dot(first).abs() < 1.0 - 1e-6)
        };
        let left = (0..self.skeleton.len()).filter(|bone| parts.iter().all(|(_, part)| part != bone));
        left.filter(|bone| moves(*bone)).map(|bone| self.skeleton.bones()[bone].name.clone()).collect()
    }

    fn globals(&self, pose: &JointPose) -> Result<Vec<Affine3A>, RetargetError> {
        let mut global = GlobalPose::default();
        let bad =
            |_| RetargetError::Degenerate { whose: "file's", problem: "its frames do not fit its bones" };
        self.skeleton.forward(pose, &mut global).map_err(bad)?;
        if !global.0.iter().all(Affine3A::is_finite) {
            return Err(RetargetError::Degenerate { whose: "file's", problem: "a frame is not finite" });
        }
        Ok(global.0)
    }
}

/// A direction of the rig's body that follows one of the file's.
struct SegmentLink {
    file: [usize; 2],
    rig: [usize; 2],
    length: f64,
    part: String,
}

/// A turn of the rig's body that follows one of the file's, or a blend of two neighbours on a chain.
struct TurnLink {
    file: [usize; 2],
    blend: f64,
    rig: usize,
    radius: f64,
    part: String,
    /// How the rig's bone is turned where both bodies stand alike.
    reference: DQuat,
}

/// Where a point that stands is held, frame by frame, with a weight from 0 to 1.
struct Hold {
    point: usize,
    at: Vec<Option<(DVec3, f64)>>,
}

/// cm per cm: a point that stands counts so much more than the shape of the leg.
const HOLD_WEIGHT: f64 = 12.0;
/// A point that is about to stand or has just stood is drawn to its place over this time, seconds.
const EASE: f64 = 0.08;
/// A hand this close to the ground may stand, cm.
const HAND_HEIGHT: f64 = 35.0;
/// Radii of turns, cm per radian: what an error of each does to the picture.
const HIPS: f64 = 25.0;
const CHEST: f64 = 25.0;
const CHAIN: f64 = 6.0;
const HEAD: f64 = 14.0;
const CLAVICLE: f64 = 8.0;
const HAND: f64 = 7.0;
const FOOT: f64 = 12.0;
const TOES: f64 = 5.0;

/// The motion, measured and linked to the rig's body.
pub(super) struct Performance {
    /// World transforms of the played frames.
    frames: Vec<Vec<Affine3A>>,
    reference: Vec<Affine3A>,
    reference_name: &'static str,
    first: usize,
    segments: Vec<SegmentLink>,
    turns: Vec<TurnLink>,
    hips: [usize; 2],
    scale: f64,
    /// About the vertical: from the rig's rest to the file's reference, and from the file's world to the rig's.
    facing: DQuat,
    heading: DQuat,
    file_origin: DVec3,
    rig_origin: DVec3,
    holds: Vec<Hold>,
    contacts: Vec<Contact>,
}

impl Performance {
    pub fn new(
        source: &Source<'_>,
        file: &Anatomy,
        config: &RetargetConfig,
        body: &mut Body<'_>,
    ) -> Result<Self, RetargetError> {
        if source.poses.is_empty() {
            return Err(RetargetError::NoFrames);
        }
        let frames: Vec<Vec<Affine3A>> =
            source.poses.iter().map(|pose| source.globals(pose)).collect::<Result<_, _>>()?;
        let rest = source.globals(&source.rest)?;
        let (by_first, first) = match config.reference {
            Reference::Rest => (false, 0),
            Reference::FirstFrame => (true, usize::from(frames.len() > 1)),
            Reference::Auto if uprightness(file, &frames[0]) > uprightness(file, &rest) + 0.02 => {
                (true, usize::from(stands_apart(&frames)))
            }
            Reference::Auto => (false, 0),
        };
        let reference = if by_first { frames[0].clone() } else { rest };
        let frames = frames[first..].to_vec();

        let hips = pair(file, |side| side.thigh)?;
        let rig_hips = pair(body.anatomy(), |side| side.thigh)?;
        let legs = |anatomy: &Anatomy, globals: &[Affine3A], whose| {
            let lengths = anatomy.sides.iter().map(|side| {
                let joint = |bone: Option<usize>| bone.map_or(DVec3::ZERO, |bone| place(globals, bone));
                let (hip, knee, ankle) = (joint(side.thigh), joint(side.shin), joint(side.foot));
                hip.distance(knee) + knee.distance(ankle)
            });
            let length = 0.5 * lengths.sum::<f64>();
            let problem = "its legs have no length";
            if length > 1e-3 { Ok(length) } else { Err(RetargetError::Degenerate { whose, problem }) }
        };
        let rig_rest = body.rest().to_vec();
        let ratio = legs(body.anatomy(), &rig_rest, "rig's")? / legs(file, &reference, "file's")?;
        let scale = config.scale.map_or(ratio, f64::from);
        let facing = yaw_between(left_of(&rig_rest, rig_hips), left_of(&reference, hips));

        let mut links = Links::new(file, body);
        links.measure(&reference, facing, body)?;
        let mut performance = Self {
            reference_name: if by_first { "first frame" } else { "rest pose" },
            first,
            segments: links.segments,
            turns: links.turns,
            hips,
            scale,
            facing,
            heading: DQuat::IDENTITY,
            file_origin: DVec3::ZERO,
            rig_origin: DVec3::ZERO,
            holds: Vec::new(),
            contacts: Vec::new(),
            frames,
            reference,
        };
        performance.put_down(config, file, body)?;
        if config.lock && body.moves() {
            performance.hold(file, body, source.rate);
        }
        Ok(performance)
    }

    /// Finds the ground and the place where the motion begins.
    fn put_down(
        &mut self,
        config: &RetargetConfig,
        file: &Anatomy,
        body: &Body<'_>,
    ) -> Result<(), RetargetError> {
        let rig_hips = pair(body.anatomy(), |side| side.thigh)?;
        let (file_ball, rig_ball) = lowest_points(file, body.anatomy())?;
        // The lower foot stands most of the time: a low percentile of its height is the ground, jitter left out.
        let mut heights: Vec<f64> = self
            .frames
            .iter()
            .map(|globals| file_ball.iter().map(|b| place(globals, *b).y).fold(f64::INFINITY, f64::min))
            .collect();
        heights.sort_by(f64::total_cmp);
        self.file_origin.y = heights[heights.len() / 20];
        self.rig_origin.y = rig_ball.iter().map(|bone| place(body.rest(), *bone).y).sum::<f64>() / 2.0;
        if config.start == Start::Rig {
            let begin = &self.frames[0];
            self.heading = yaw_between(left_of(begin, self.hips), left_of(body.rest(), rig_hips));
            let (from, to) = (Point::MidHips(self.hips).at(begin), Point::MidHips(rig_hips).at(body.rest()));
            self.file_origin = DVec3::new(from.x, self.file_origin.y, from.z);
            self.rig_origin = DVec3::new(to.x, self.rig_origin.y, to.z);
        }
        Ok(())
    }

    /// A point of the file's world in the rig's.
    fn carried(&self, point: DVec3) -> DVec3 {
        self.heading * ((point - self.file_origin) * self.scale) + self.rig_origin
    }

    /// Finds when feet and hands stand, and where they shall.
    fn hold(&mut self, file: &Anatomy, body: &Body<'_>, rate: f32) {
        for (side, (from, to)) in file.sides.iter().zip(&body.anatomy().sides).enumerate() {
            let name = |part: &str| format!("{} {part}", ["left", "right"][side]);
            let path = |bone: usize| -> Vec<DVec3> {
                self.frames.iter().map(|globals| self.carried(place(globals, bone))).collect()
            };
            let rest = |bone: usize| place(body.rest(), bone);
            /// Where a part of the foot stands, and when.
            type Stands = Vec<(Frames, DVec3)>;
            let mut found: Vec<(String, usize, Stands)> = Vec::new();
            let mut balls = Stands::new();
            if let (Some(file_ball), Some(rig_ball)) = (from.toes, to.toes) {
                let path = path(file_ball);
                for frames in standing(&path, rate, rest(rig_ball).y + 4.5) {
                    let middle = mean(&path[frames.clone()]);
                    balls.push((frames, DVec3::new(middle.x, rest(rig_ball).y, middle.z)));
                }
                found.push((name("ball"), rig_ball, balls.clone()));
            }
            if let (Some(file_ankle), Some(rig_ankle)) = (from.foot, to.foot) {
                let path = path(file_ankle);
                let mut heights: Vec<f64> = path.iter().map(|point| point.y).collect();
                heights.sort_by(f64::total_cmp);
                let ceiling = heights[heights.len() / 20] + 4.0;
                let place_of = |frames: Frames| {
                    let ball = balls
                        .iter()
                        .find(|(other, _)| other.start.max(frames.start) < other.end.min(frames.end));
                    let middle = mean(&path[frames.clone()]);
                    let flat = DVec3::new(middle.x, rest(rig_ankle).y, middle.z);
                    let at = match (ball, from.toes, to.toes) {
                        // A flat foot is as long as the rig's, whatever the file's.
                        (Some((_, ball)), Some(file_ball), Some(rig_ball)) => {
                            let along = |globals: &Vec<Affine3A>| {
                                self.heading * (place(globals, file_ball) - place(globals, file_ankle))
                            };
                            let sum: DVec3 = self.frames[frames.clone()].iter().map(along).sum();
                            let foot = rest(rig_ball) - rest(rig_ankle);
                            let back =
                                DVec3::new(sum.x, 0.0, sum.z).normalize_or_zero() * foot.x.hypot(foot.z);
                            DVec3::new(ball.x - back.x, flat.y, ball.z - back.z)
                        }
                        _ => flat,
                    };
                    (frames, at)
                };
                let held = standing(&path, rate, ceiling).into_iter().map(place_of).collect();
                found.push((name("ankle"), rig_ankle, held));
            }
            if let (Some(file_hand), Some(rig_hand)) = (from.hand, to.hand) {
                let path = path(file_hand);
                let lowest = path.iter().map(|point| point.y).fold(f64::INFINITY, f64::min);
                if lowest < HAND_HEIGHT {
                    let held = standing(&path, rate, (lowest + 8.0).min(HAND_HEIGHT));
                    let held = held.into_iter().map(|frames| (frames.clone(), mean(&path[frames]))).collect();
                    found.push((name("hand"), rig_hand, held));
                }
            }
            for (point, bone, held) in found {
                let time = |frame: usize| (frame as f64 / f64::from(rate)) as f32;
                self.contacts.extend(held.iter().map(|(frames, _)| Contact {
                    point: point.clone(),
                    bone,
                    from: time(frames.start),
                    to: time(frames.end - 1),
                }));
                self.holds.push(Hold { point: bone, at: eased(&held, self.frames.len(), rate) });
            }
        }
        self.contacts.sort_by(|a, b| a.from.total_cmp(&b.from).then_with(|| a.point.cmp(&b.point)));
    }

    /// What a frame asks of the rig.
    pub fn goal(&self, frame: usize, body: &Body<'_>) -> Goal {
        let globals = &self.frames[frame];
        let segments = self.segments.iter().map(|link| Segment {
            from: link.rig[0],
            to: link.rig[1],
            wanted: self.heading * direction(globals, link.file),
            length: link.length,
        });
        let turns = self.turns.iter().map(|link| {
            let delta = |bone: usize| turn(globals, bone) * turn(&self.reference, bone).inverse();
            let [a, b] = link.file.map(delta);
            let delta = understudy_core::track::slerp(a, b, link.blend);
            let wanted = (self.heading * delta * self.facing * link.reference).normalize();
            Turn { bone: link.rig, wanted, radius: link.radius }
        });
        let mut pins = Vec::new();
        if body.moves() {
            let wanted = self.carried(Point::MidHips(self.hips).at(globals));
            pins.push(Pin { point: body.mid_hips(), wanted, weight: 1.0 });
        }
        for hold in &self.holds {
            if let Some((wanted, weight)) = hold.at[frame] {
                pins.push(Pin { point: Point::Bone(hold.point), wanted, weight: HOLD_WEIGHT * weight });
            }
        }
        Goal { segments: segments.collect(), turns: turns.collect(), pins }
    }

    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// The first frame of the file that is played.
    pub fn first(&self) -> usize {
        self.first
    }

    pub fn scale(&self) -> f32 {
        self.scale as f32
    }

    pub fn reference(&self) -> &'static str {
        self.reference_name
    }

    pub fn contacts(&self) -> Vec<Contact> {
        self.contacts.clone()
    }

    /// Names of what [`Goal::angles`] compares.
    pub fn part_names(&self) -> Vec<String> {
        let segments = self.segments.iter().map(|link| link.part.clone());
        segments.chain(self.turns.iter().map(|link| link.part.clone())).collect()
    }
}

/// Which bone follows which.
#[derive(Default)]
struct Links {
    segments: Vec<SegmentLink>,
    turns: Vec<TurnLink>,
}

impl Links {
    fn new(file: &Anatomy, body: &Body<'_>) -> Self {
        let rig = body.anatomy();
        let mut links = Self::default();
        links.turn("hips", [file.hips; 2], 0.0, rig.hips, HIPS);
        // Along a chain of other length the turns are read between the bones: hips at 0, chest at 1.
        let mut chain = |name: &str, file: &[usize], rig: &[usize], ends: usize, last: f64| {
            let count = rig.len() - ends;
            for (index, bone) in rig[1..].iter().take(count).enumerate() {
                let at = (index + 1) as f64 / (rig.len() - 1) as f64 * (file.len() - 1) as f64;
                let before = (at.floor() as usize).min(file.len() - 1);
                let pair = [file[before], file[(before + 1).min(file.len() - 1)]];
                let radius = if index + 1 == count { last } else { CHAIN };
                links.turn(&format!("{name} {}", index + 1), pair, at - before as f64, *bone, radius);
            }
        };
        let joined = |first: usize, rest: &[usize]| -> Vec<usize> {
            std::iter::once(first).chain(rest.iter().copied()).collect()
        };
        let (file_spine, rig_spine) = (joined(file.hips, &file.spine), joined(rig.hips, &rig.spine));
        chain("spine", &file_spine, &rig_spine, 1, CHEST);
        if let (Some(file_head), Some(rig_head)) = (file.head, rig.head) {
            let neck = |spine: &[usize], neck: &[usize], head: usize| {
                let mut all = joined(spine[spine.len() - 1], neck);
                all.push(head);
                all
            };
            let file_neck = neck(&file_spine, &file.neck, file_head);
            let rig_neck = neck(&rig_spine, &rig.neck, rig_head);
            chain("neck", &file_neck, &rig_neck, 2, CHAIN);
            links.turn("head", [file_head; 2], 0.0, rig_head, HEAD);
        }
        for ((side, from), to) in ["left", "right"].into_iter().zip(&file.sides).zip(&rig.sides) {
            let mut segment = |part: &str, pairs: [Option<usize>; 4]| {
                if let [Some(a), Some(b), Some(c), Some(d)] = pairs {
                    let length = place(body.rest(), c).distance(place(body.rest(), d));
                    let part = format!("{side} {part}");
                    links.segments.push(SegmentLink { file: [a, b], rig: [c, d], length, part });
                }
            };
            segment("upper arm", [from.upper_arm, from.forearm, to.upper_arm, to.forearm]);
            segment("forearm", [from.forearm, from.hand, to.forearm, to.hand]);
            segment("thigh", [from.thigh, from.shin, to.thigh, to.shin]);
            segment("shin", [from.shin, from.foot, to.shin, to.foot]);
            for (part, from, to, radius) in [
                ("clavicle", from.clavicle, to.clavicle, CLAVICLE),
                ("hand", from.hand, to.hand, HAND),
                ("foot", from.foot, to.foot, FOOT),
                ("toes", from.toes, to.toes, TOES),
            ] {
                if let (Some(from), Some(to)) = (from, to) {
                    links.turn(&format!("{side} {part}"), [from; 2], 0.0, to, radius);
                }
            }
        }
        // A bone that nothing turns by itself has nothing to follow with.
        links.turns.retain(|link| body.turns(link.rig));
        links
    }

    fn turn(&mut self, part: &str, file: [usize; 2], blend: f64, rig: usize, radius: f64) {
        let (part, reference) = (part.to_owned(), DQuat::IDENTITY);
        self.turns.push(TurnLink { file, blend, rig, radius, part, reference });
    }

    /// Brings the rig's body into the file's reference pose, limbs pointing alike and everything else at rest, and
    /// notes how its bones are turned then.
    fn measure(
        &mut self,
        reference: &[Affine3A],
        facing: DQuat,
        body: &mut Body<'_>,
    ) -> Result<(), RetargetError> {
        let back = facing.inverse();
        let segments = self.segments.iter().map(|link| Segment {
            from: link.rig[0],
            to: link.rig[1],
            wanted: back * direction(reference, link.file),
            length: link.length,
        });
        let is_hand = |link: &TurnLink| link.part.ends_with("hand");
        let turns = self.turns.iter().filter(|link| !is_hand(link)).map(|link| Turn {
            bone: link.rig,
            wanted: turn(body.rest(), link.rig),
            radius: link.radius,
        });
        let mut goal = Goal { segments: segments.collect(), turns: turns.collect(), pins: Vec::new() };
        if body.moves() {
            let wanted = body.mid_hips().at(body.rest());
            goal.pins.push(Pin { point: body.mid_hips(), wanted, weight: 1.0 });
        }
        let mut state = body.start();
        body.fit(&goal, &mut state, false, 60)?;
        for link in &mut self.turns {
            let globals = if is_hand(link) { body.globals() } else { body.rest() };
            link.reference = turn(globals, link.rig);
        }
        Ok(())
    }
}

/// Both sides' bone of a part that [`Anatomy`] promises.
fn pair(
    anatomy: &Anatomy,
    part: impl Fn(&crate::anatomy::Limbs<Option<usize>>) -> Option<usize>,
) -> Result<[usize; 2], RetargetError> {
    match [part(&anatomy.sides[0]), part(&anatomy.sides[1])] {
        [Some(left), Some(right)] => Ok([left, right]),
        _ => Err(RetargetError::Degenerate { whose: "file's", problem: "a leg is missing" }),
    }
}

/// Balls of the feet where both bodies have them, else ankles.
fn lowest_points(file: &Anatomy, rig: &Anatomy) -> Result<([usize; 2], [usize; 2]), RetargetError> {
    match (pair(file, |side| side.toes), pair(rig, |side| side.toes)) {
        (Ok(file), Ok(rig)) => Ok((file, rig)),
        _ => Ok((pair(file, |side| side.foot)?, pair(rig, |side| side.foot)?)),
    }
}

fn direction(globals: &[Affine3A], [from, to]: [usize; 2]) -> DVec3 {
    (place(globals, to) - place(globals, from)).normalize_or_zero()
}

/// From the right hip to the left one.
fn left_of(globals: &[Affine3A], [left, right]: [usize; 2]) -> DVec3 {
    place(globals, left) - place(globals, right)
}

/// The turn about the vertical that brings one direction over another; none where either is upright.
fn yaw_between(from: DVec3, to: DVec3) -> DQuat {
    let level = |v: DVec3| v.x.hypot(v.z) > 0.3 * v.length().max(1e-9);
    if !level(from) || !level(to) {
        return DQuat::IDENTITY;
    }
    DQuat::from_rotation_y(to.x.atan2(to.z) - from.x.atan2(from.z))
}

/// How straight a body stands, 1 at best: legs down, trunk up, arms straight.
fn uprightness(anatomy: &Anatomy, globals: &[Affine3A]) -> f64 {
    let mut parts = Vec::new();
    let along = |a: Option<usize>, b: Option<usize>| Some(direction(globals, [a?, b?]));
    for side in &anatomy.sides {
        parts.extend(along(side.thigh, side.shin).map(|d| -d.y));
        parts.extend(along(side.shin, side.foot).map(|d| -d.y));
        let arm = along(side.upper_arm, side.forearm).zip(along(side.forearm, side.hand));
        parts.extend(arm.map(|(upper, lower)| upper.dot(lower)));
    }
    parts.extend(along(Some(anatomy.hips), anatomy.head).map(|d| d.y));
    parts.iter().sum::<f64>() / parts.len().max(1) as f64
}

/// Whether the first frame is a pose of its own, and not the beginning of the motion.
fn stands_apart(frames: &[Vec<Affine3A>]) -> bool {
    let [first, second, third, ..] = frames else { return false };
    let most = |a: &[Affine3A], b: &[Affine3A]| {
        let turned = |(a, b): (&Affine3A, &Affine3A)| (a.matrix3.x_axis - b.matrix3.x_axis).length();
        a.iter().zip(b).map(turned).fold(0.0f32, f32::max)
    };
    most(first, second) > 0.15 && most(first, second) > 5.0 * most(second, third)
}

fn mean(points: &[DVec3]) -> DVec3 {
    points.iter().sum::<DVec3>() / points.len().max(1) as f64
}

/// Places to hold with their weights: 1 while a point stands, falling smoothly to both sides.
fn eased(held: &[(Frames, DVec3)], frames: usize, rate: f32) -> Vec<Option<(DVec3, f64)>> {
    let ease = (EASE * f64::from(rate)).round().max(1.0);
    let mut at: Vec<Option<(DVec3, f64)>> = vec![None; frames];
    for (standing, place) in held {
        let reach = ease as usize;
        let last = (standing.end + reach).min(frames);
        for (frame, slot) in at.iter_mut().enumerate().take(last).skip(standing.start.saturating_sub(reach)) {
            let away = standing.start.saturating_sub(frame).max((frame + 1).saturating_sub(standing.end));
            let t = 1.0 - away as f64 / (ease + 1.0);
            let weight = t * t * (3.0 - 2.0 * t);
            if slot.is_none_or(|(_, other)| other < weight) {
                *slot = Some((*place, weight));
            }
        }
    }
    at
}
