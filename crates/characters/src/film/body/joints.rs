//! What an animator moves on a body: joints found by the names of their bones, with natural ranges. Which
//! channel of a bone makes a natural motion is read off its rest frame, so frames may be rolled any way.

use understudy_core::mechanism::{Constraint, Drive};
use understudy_core::skeleton::rotation_of;
use understudy_core::{Affine3A, Channel, ControlSpec, Quat, Skeleton, Vec3};
use understudy_rigs::RigError;

/// How a motion turns its bone, seen in the rest pose with the character facing +Z. Directions are
/// those of the left side; the right side mirrors them.
#[derive(Clone, Copy)]
enum Motion {
    /// Along a world axis.
    Move(Channel),
    /// About a world axis.
    About(Vec3),
    /// The far end goes this way.
    Toward(Vec3),
    /// The far end goes back along the parent bone, as an elbow does.
    Fold,
    /// The far end goes the way its chain of bones already curls.
    Curl,
    /// The far end goes away from the finger beside it.
    Spread,
    /// About the bone's own length; positive turns the front inwards.
    Twist,
}

/// A row of the table: control, bones it may be on, motion, range in degrees or cm, and bones that go
/// along with a share of it.
struct Row(&'static str, &'static [&'static str], Motion, f32, f32, &'static [(&'static str, f32)]);

use Motion::{About, Curl, Fold, Move, Spread, Toward, Twist};

const ROOT: &[&str] = &["root", "hips", "pelvis", "Hips"];
const LOW_SPINE: &[&str] = &["spine05", "spine_1", "spine_01", "Spine"];
const MID_SPINE: &[&str] = &["spine03", "spine_2", "spine_02", "Spine1"];
const CHEST: &[&str] = &["spine01", "chest", "spine_03", "Spine2"];
const NECK: &[&str] = &["neck01", "neck", "neck_01", "neck_1", "Neck"];
const HEAD: &[&str] = &["head", "Head"];

const MIDDLE: [Row; 21] = [
    Row("root.move_x", ROOT, Move(Channel::TranslateX), -40.0, 40.0, &[]),
    Row("root.move_y", ROOT, Move(Channel::TranslateY), -45.0, 20.0, &[]),
    Row("root.move_z", ROOT, Move(Channel::TranslateZ), -40.0, 40.0, &[]),
    Row("root.pitch", ROOT, About(Vec3::X), -20.0, 30.0, &[]),
    Row("root.turn", ROOT, About(Vec3::Y), -30.0, 30.0, &[]),
    Row("root.roll", ROOT, About(Vec3::NEG_Z), -15.0, 15.0, &[]),
    Row("spine_1.bend", LOW_SPINE, About(Vec3::X), -10.0, 18.0, &[("spine04", 0.8)]),
    Row("spine_1.turn", LOW_SPINE, About(Vec3::Y), -10.0, 10.0, &[("spine04", 0.8)]),
    Row("spine_1.lean", LOW_SPINE, About(Vec3::NEG_Z), -10.0, 10.0, &[("spine04", 0.8)]),
    Row("spine_2.bend", MID_SPINE, About(Vec3::X), -10.0, 18.0, &[("spine02", 0.8)]),
    Row("spine_2.turn", MID_SPINE, About(Vec3::Y), -14.0, 14.0, &[("spine02", 0.8)]),
    Row("spine_2.lean", MID_SPINE, About(Vec3::Z), -12.0, 12.0, &[("spine02", 0.8)]),
    Row("chest.bend", CHEST, About(Vec3::X), -12.0, 18.0, &[]),
    Row("chest.turn", CHEST, About(Vec3::Y), -16.0, 16.0, &[]),
    Row("chest.lean", CHEST, About(Vec3::Z), -12.0, 12.0, &[]),
    Row("neck.bend", NECK, About(Vec3::X), -10.0, 12.0, &[("neck02", 0.8), ("neck03", 0.6)]),
    Row("neck.turn", NECK, About(Vec3::Y), -14.0, 14.0, &[("neck02", 0.8), ("neck03", 0.6)]),
    Row("neck.lean", NECK, About(Vec3::Z), -9.0, 9.0, &[("neck02", 0.8), ("neck03", 0.6)]),
    Row("head.nod", HEAD, About(Vec3::X), -25.0, 25.0, &[]),
    Row("head.turn", HEAD, About(Vec3::Y), -35.0, 35.0, &[]),
    Row("head.tilt", HEAD, About(Vec3::Z), -18.0, 18.0, &[]),
];

const CLAVICLE: &[&str] = &["clavicle.{S}", "clavicle_{s}", "{Side}Shoulder"];
const UPPER_ARM: &[&str] = &["upperarm01.{S}", "upper_arm_{s}", "upperarm_{s}", "{Side}Arm"];
const UPPER_ARM_TWIST: &[&str] = &["upperarm02.{S}", "upper_arm_{s}", "upperarm_{s}", "{Side}Arm"];
const FOREARM: &[&str] = &["lowerarm01.{S}", "forearm_{s}", "lowerarm_{s}", "{Side}ForeArm"];
const FOREARM_TWIST: &[&str] = &["lowerarm02.{S}", "hand_{s}", "{Side}Hand"];
const HAND: &[&str] = &["wrist.{S}", "hand_{s}", "{Side}Hand"];
const THIGH: &[&str] = &["upperleg01.{S}", "thigh_{s}", "{Side}UpLeg"];
const THIGH_TWIST: &[&str] = &["upperleg02.{S}", "thigh_{s}", "{Side}UpLeg"];
const SHIN: &[&str] = &["lowerleg01.{S}", "calf_{s}", "shin_{s}", "{Side}Leg"];
const FOOT: &[&str] = &["foot.{S}", "foot_{s}", "{Side}Foot"];
const TOES: &[&str] = &["toe1-1.{S}", "toe_{s}", "ball_{s}", "{Side}ToeBase"];
const THUMB: &[&str] = &["finger1-1.{S}", "thumb_1_{s}", "thumb_01_{s}", "{Side}HandThumb1"];
const INDEX: &[&str] = &["finger2-1.{S}", "index_1_{s}", "index_01_{s}", "{Side}HandIndex1"];
const MIDDLE_FINGER: &[&str] = &["finger3-1.{S}", "middle_1_{s}", "middle_01_{s}", "{Side}HandMiddle1"];
const RING: &[&str] = &["finger4-1.{S}", "ring_1_{s}", "ring_01_{s}", "{Side}HandRing1"];
const PINKY: &[&str] = &["finger5-1.{S}", "pinky_1_{s}", "pinky_01_{s}", "{Side}HandPinky1"];

const OUTWARD: Vec3 = Vec3::X;

const SIDE: [Row; 29] = [
    Row("clavicle.up", CLAVICLE, Toward(Vec3::Y), -8.0, 25.0, &[]),
    Row("clavicle.forward", CLAVICLE, Toward(Vec3::Z), -15.0, 20.0, &[]),
    Row("shoulder.up", UPPER_ARM, Toward(Vec3::Y), -40.0, 95.0, &[]),
    Row("shoulder.forward", UPPER_ARM, Toward(Vec3::Z), -45.0, 90.0, &[]),
    Row("shoulder.twist", UPPER_ARM_TWIST, Twist, -45.0, 45.0, &[]),
    Row("elbow.bend", FOREARM, Fold, -50.0, 85.0, &[]),
    Row("wrist.twist", FOREARM_TWIST, Twist, -45.0, 45.0, &[("wrist.{S}", 0.6)]),
    Row("wrist.bend", HAND, Curl, -50.0, 60.0, &[]),
    Row("wrist.side", HAND, Spread, -20.0, 20.0, &[]),
    Row("thumb.bend", THUMB, Curl, -15.0, 35.0, &[("finger1-2.{S}", 1.0), ("finger1-3.{S}", 1.2)]),
    Row("thumb.spread", THUMB, Spread, -15.0, 20.0, &[]),
    Row("index.bend", INDEX, Curl, -15.0, 75.0, &[("finger2-2.{S}", 1.0), ("finger2-3.{S}", 0.7)]),
    Row("index.spread", INDEX, Spread, -6.0, 12.0, &[]),
    Row("middle.bend", MIDDLE_FINGER, Curl, -15.0, 75.0, &[("finger3-2.{S}", 1.0), ("finger3-3.{S}", 0.7)]),
    Row("ring.bend", RING, Curl, -15.0, 75.0, &[("finger4-2.{S}", 1.0), ("finger4-3.{S}", 0.7)]),
    Row("ring.spread", RING, Spread, -6.0, 12.0, &[]),
    Row("pinky.bend", PINKY, Curl, -15.0, 75.0, &[("finger5-2.{S}", 1.0), ("finger5-3.{S}", 0.7)]),
    Row("pinky.spread", PINKY, Spread, -6.0, 16.0, &[]),
    Row("hip.forward", THIGH, Toward(Vec3::Z), -30.0, 95.0, &[]),
    Row("hip.out", THIGH, Toward(OUTWARD), -25.0, 40.0, &[]),
    Row("hip.twist", THIGH_TWIST, Twist, -30.0, 30.0, &[]),
    Row("knee.bend", SHIN, Toward(Vec3::NEG_Z), -4.0, 125.0, &[]),
    Row("ankle.up", FOOT, Toward(Vec3::Y), -40.0, 30.0, &[]),
    Row("ankle.turn", FOOT, Toward(OUTWARD), -20.0, 20.0, &[]),
    Row("ankle.roll", FOOT, Twist, -18.0, 18.0, &[]),
    Row(
        "toes.up",
        TOES,
        Toward(Vec3::Y),
        -20.0,
        45.0,
        &[("toe2-1.{S}", 1.0), ("toe3-1.{S}", 1.0), ("toe4-1.{S}", 1.0), ("toe5-1.{S}", 1.0)],
    ),
    Row("eye.up", &["eye.{S}", "eye_{s}", "{Side}Eye"], Toward(Vec3::Y), -25.0, 25.0, &[]),
    Row("eye.out", &["eye.{S}", "eye_{s}", "{Side}Eye"], Toward(OUTWARD), -30.0, 30.0, &[]),
    Row("breast.up", &["breast.{S}", "breast_{s}"], Toward(Vec3::Y), -6.0, 6.0, &[]),
];

/// A control of a joint.
pub(super) struct BodyControl {
    pub name: String,
    pub bone: usize,
    pub channel: Channel,
    /// +1 where the natural way is the channel's positive way, −1 where it is the other.
    pub sign: f32,
    /// Natural range.
    low: f32,
    high: f32,
    /// Bones that go along, with channel and gain of the control's own value.
    followers: Vec<(usize, Channel, f32)>,
}

impl BodyControl {
    pub fn spec(&self, skeleton: &Skeleton) -> ControlSpec {
        let ends = [self.low * self.sign, self.high * self.sign];
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        ControlSpec::joint(&self.name, &skeleton.bones()[self.bone].name, self.channel, low, high)
    }

    /// What makes the followers follow.
    pub fn drives(&self, control: usize) -> impl Iterator<Item = Constraint> + '_ {
        self.followers
            .iter()
            .map(move |&(bone, channel, gain)| Constraint::Drive(Drive { control, bone, channel, gain }))
    }
}

/// The bone of the first name that the skeleton has. `{S}`, `{s}` and `{Side}` stand for a side's
/// spellings.
pub(super) fn find_bone(skeleton: &Skeleton, names: &[&str], left: bool) -> Option<usize> {
    let [capital, small, word] = if left { ["L", "l", "Left"] } else { ["R", "r", "Right"] };
    let spell = |name: &str| name.replace("{S}", capital).replace("{s}", small).replace("{Side}", word);
    names.iter().find_map(|name| skeleton.find(&spell(name)))
}

/// Bones of a limb by role, for muscles and zones.
pub(super) struct Limbs {
    pub clavicle: Option<usize>,
    pub upper_arm: Option<usize>,
    pub forearm: Option<usize>,
    pub hand: Option<usize>,
    pub thigh: Option<usize>,
    pub shin: Option<usize>,
    pub foot: Option<usize>,
}

impl Limbs {
    pub fn find(skeleton: &Skeleton, left: bool) -> Self {
        let find = |names| find_bone(skeleton, names, left);
        Self {
            clavicle: find(CLAVICLE),
            upper_arm: find(UPPER_ARM),
            forearm: find(FOREARM),
            hand: find(HAND),
            thigh: find(THIGH),
            shin: find(SHIN),
            foot: find(FOOT),
        }
    }
}

/// The chest, the lower end of the neck, and the head.
pub(super) fn trunk(skeleton: &Skeleton) -> [Option<usize>; 4] {
    [ROOT, CHEST, NECK, HEAD].map(|names| find_bone(skeleton, names, true))
}

/// Bones turned by half a turn about one of their axes where that makes more of their channels natural:
/// most controls then mean the same on both sides and grow the natural way. Returns the directions of
/// the bones as well, which their Y axes no longer are.
pub(super) fn natural_frames(skeleton: &Skeleton, moves: &[bool]) -> Result<(Skeleton, Vec<Vec3>), RigError> {
    let y_axis = |frame: &Affine3A| Vec3::from(frame.matrix3.y_axis).normalize_or_zero();
    let along: Vec<Vec3> = skeleton.rest_global().iter().map(y_axis).collect();
    let mut signs = vec![Vec3::ZERO; skeleton.len()];
    for control in joint_controls(skeleton, &along, moves)? {
        match control.channel {
            Channel::RotateX => signs[control.bone].x = control.sign,
            Channel::RotateY => signs[control.bone].y = control.sign,
            Channel::RotateZ => signs[control.bone].z = control.sign,
            _ => {}
        }
    }
    // Turning about Y is tried first: it leaves Y along the bone.
    let turns = [
        (Vec3::ONE, Quat::IDENTITY),
        (Vec3::new(-1.0, 1.0, -1.0), Quat::from_xyzw(0.0, 1.0, 0.0, 0.0)),
        (Vec3::new(1.0, -1.0, -1.0), Quat::from_xyzw(1.0, 0.0, 0.0, 0.0)),
        (Vec3::new(-1.0, -1.0, 1.0), Quat::from_xyzw(0.0, 0.0, 1.0, 0.0)),
    ];
    let best = |signs: &Vec3| {
        let mut found = turns[0];
        for turn in turns {
            if turn.0.dot(*signs) > found.0.dot(*signs) {
                found = turn;
            }
        }
        Affine3A::from_quat(found.1)
    };
    let turned: Vec<Affine3A> = signs.iter().map(best).collect();
    let mut bones = skeleton.bones().to_vec();
    for (index, bone) in bones.iter_mut().enumerate() {
        let parent = bone.parent.map_or(Affine3A::IDENTITY, |parent| turned[parent].inverse());
        let rest = parent * bone.rest.to_affine() * turned[index];
        bone.rest.rotation = rotation_of(&rest);
        bone.rest.translation = rest.translation.into();
        // Half a turn about an axis permutes no axes: scales stay where they are.
    }
    let inverse_bind = skeleton.inverse_bind().iter().zip(&turned).map(|(bind, turn)| turn.inverse() * *bind);
    let skeleton = Skeleton::new(bones)?.with_inverse_bind(inverse_bind.collect())?;
    Ok((skeleton, along))
}

/// All joint controls for which the skeleton has a bone that moves something (`moves`, `[J]`).
/// `along`: where each bone points, `[J]`.
pub(super) fn joint_controls(
    skeleton: &Skeleton,
    along: &[Vec3],
    moves: &[bool],
) -> Result<Vec<BodyControl>, RigError> {
    let frames = Frames { skeleton, along };
    let mut controls = Vec::new();
    for (row, left) in MIDDLE.iter().map(|row| (row, None)).chain(both_sides()) {
        let Row(name, bones, motion, low, high, followers) = row;
        let Some(bone) = find_bone(skeleton, bones, left.unwrap_or(true)).filter(|bone| moves[*bone]) else {
            continue;
        };
        let taken: Vec<Channel> =
            controls.iter().filter(|c: &&BodyControl| c.bone == bone).map(|c| c.channel).collect();
        let Some((channel, sign)) = frames.channel(bone, *motion, left.unwrap_or(true), &taken) else {
            continue;
        };
        let follow = |&(name, share): &(&str, f32)| {
            let follower =
                find_bone(skeleton, &[name], left.unwrap_or(true)).filter(|other| *other != bone)?;
            let (channel, other) = frames.channel(follower, *motion, left.unwrap_or(true), &[])?;
            Some((follower, channel, share * sign * other))
        };
        let name = match left {
            None => (*name).to_owned(),
            Some(left) => name.replacen('.', if left { "_l." } else { "_r." }, 1),
        };
        let followers = followers.iter().filter_map(follow).collect();
        controls.push(BodyControl { name, bone, channel, sign, low: *low, high: *high, followers });
    }
    if controls.is_empty() {
        return Err(RigError::Unknown { part: "body".into(), name: "a bone of a known name".into() });
    }
    Ok(controls)
}

fn both_sides() -> impl Iterator<Item = (&'static Row, Option<bool>)> {
    [true, false].into_iter().flat_map(|left| SIDE.iter().map(move |row| (row, Some(left))))
}

/// Rest frames of the bones, and what is natural in them.
struct Frames<'a> {
    skeleton: &'a Skeleton,
    along: &'a [Vec3],
}

impl Frames<'_> {
    fn place(&self, bone: usize) -> Vec3 {
        self.skeleton.rest_global()[bone].translation.into()
    }

    /// Along the bone, in the world.
    fn along(&self, bone: usize) -> Vec3 {
        self.along[bone]
    }

    /// The way a chain of bones curls: where its last bone points, less where its first points.
    fn curl(&self, bone: usize) -> Vec3 {
        let mut last = bone;
        // First children lead down a finger; from a wrist they lead down some finger, which will do.
        while let Some(child) = self.skeleton.bones().iter().position(|b| b.parent == Some(last)) {
            last = child;
        }
        self.along(last) - self.along(bone)
    }

    /// Away from the middle of the other children of the parent.
    fn spread(&self, bone: usize) -> Option<Vec3> {
        let parent = self.skeleton.bones()[bone].parent?;
        // Each finger may have its own metacarpal: look at all bones as deep as this one under the hand.
        let grandparent = self.skeleton.bones()[parent].parent.unwrap_or(parent);
        let depth = |other: usize| {
            let bones = self.skeleton.bones();
            let up = bones[other].parent;
            up == Some(parent) || up.and_then(|up| bones[up].parent) == Some(grandparent)
        };
        let fingers: Vec<usize> = (0..self.skeleton.len()).filter(|other| depth(*other)).collect();
        let middle = fingers.iter().map(|f| self.place(*f)).sum::<Vec3>() / fingers.len().max(1) as f32;
        let away = self.place(bone) - middle;
        (away.length() > 1e-3).then_some(away)
    }

    /// The channel of a bone that comes nearest to a motion, not taken yet, and its sign.
    fn channel(&self, bone: usize, motion: Motion, left: bool, taken: &[Channel]) -> Option<(Channel, f32)> {
        let mirror = |way: Vec3| if left { way } else { Vec3::new(-way.x, way.y, way.z) };
        let along = self.along(bone);
        let axis = match motion {
            Move(channel) => return Some((channel, 1.0)),
            About(axis) => axis,
            Toward(way) => along.cross(mirror(way)),
            Fold => along.cross(-self.along(self.skeleton.bones()[bone].parent?)),
            Curl => along.cross(self.curl(bone)),
            Spread => along.cross(self.spread(bone).unwrap_or(mirror(OUTWARD))),
            Twist => {
                let front = Vec3::Z;
                let outward = along.cross(front).dot(mirror(OUTWARD));
                if outward >= 0.0 { -along } else { along }
            }
        };
        let local = rotation_of(&self.skeleton.rest_global()[bone]).inverse() * axis;
        let parts = [(Channel::RotateX, local.x), (Channel::RotateY, local.y), (Channel::RotateZ, local.z)];
        let free = parts.into_iter().filter(|(channel, _)| !taken.contains(channel));
        let best = free.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
        Some((best.0, if best.1 < 0.0 { -1.0 } else { 1.0 }))
    }
}
