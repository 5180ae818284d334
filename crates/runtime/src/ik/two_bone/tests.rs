//! The laws of two bones: lengths are kept, targets are reached, nothing jumps outside the cone, nothing is ever NaN.

use super::*;
use understudy_testkit::Tol;

/// xorshift: ten million inputs in a moment.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn vector(&mut self, size: f64) -> Vec3 {
        let mut one = || ((self.next() * 2.0 - 1.0) * size) as f32;
        Vec3::new(one(), one(), one())
    }
}

fn bends(random: &mut Random) -> Bend {
    let direction = random.vector(1.0);
    if random.next() < 0.5 { Bend::Reference(direction) } else { Bend::Pole(direction) }
}

#[test]
fn bones_keep_their_lengths_and_reachable_targets_are_reached() {
    let mut random = Random(1);
    for _ in 0..200_000 {
        let (upper, lower) = (1.0 + 40.0 * random.next() as f32, 1.0 + 40.0 * random.next() as f32);
        let limb = TwoBone::new(upper, lower).expect("lengths");
        let (origin, target) = (random.vector(30.0), random.vector(60.0));
        let pose = limb.solve(origin, target, bends(&mut random)).expect("finite");
        let tolerance = 1e-5 * limb.length();
        assert!((pose.middle.distance(origin) - upper).abs() <= tolerance, "{pose:?}");
        assert!((pose.end.distance(pose.middle) - lower).abs() <= tolerance, "{pose:?}");
        let distance = target.distance(origin);
        match pose.reach {
            Reach::Exact => assert!(pose.end.distance(target) <= tolerance, "{pose:?} {target}"),
            Reach::TooFar => {
                let straight = origin + (target - origin).normalize() * limb.length();
                assert!(pose.end.distance(straight) <= tolerance, "{pose:?} {straight}");
                assert!(distance >= limb.length() - tolerance);
            }
            Reach::TooNear => {
                assert!(distance <= (upper - lower).abs() + tolerance);
                assert!((pose.end.distance(origin) - (upper - lower).abs()).abs() <= tolerance);
            }
            Reach::Soft => unreachable!("none was asked for"),
        }
    }
}

/// Where the lower bone is much the longer one, the paper's square root would put the joint on the wrong side.
#[test]
fn the_foot_of_the_altitude_may_lie_behind_the_start() {
    let limb = TwoBone::new(3.0, 5.0).expect("lengths");
    let pose = limb.solve(Vec3::ZERO, Vec3::X * 2.5, Bend::Pole(Vec3::Y)).expect("finite");
    assert!(pose.middle.x < 0.0, "{pose:?}");
    assert!(pose.end.distance(Vec3::X * 2.5) < 1e-5, "{pose:?}");
}

#[test]
fn a_pole_is_where_the_middle_joint_points_and_equals_its_reference() {
    let limb = TwoBone::new(30.0, 25.0).expect("lengths");
    let mut random = Random(5);
    for _ in 0..1000 {
        let (target, pole) = (random.vector(30.0), random.vector(1.0));
        let by_pole = limb.solve(Vec3::ZERO, target, Bend::Pole(pole)).expect("finite");
        let away = target.normalize();
        let lift = by_pole.middle - away * away.dot(by_pole.middle);
        let wanted = pole - away * away.dot(pole);
        assert!(lift.length() < 1e-3 || lift.angle_between(wanted) < 1e-2, "{lift} {wanted}");
        let reference = Bend::Reference(pole.cross(target));
        let by_reference = limb.solve(Vec3::ZERO, target, reference).expect("finite");
        if pole.angle_between(away) > 0.05 && pole.angle_between(away) < 3.09 {
            assert!(by_reference.middle.distance(by_pole.middle) < 1e-3, "{by_reference:?} {by_pole:?}");
        }
    }
}

/// Small steps of the target move the joints a little, unless they are within one degree of the reference direction.
#[test]
fn nothing_jumps_outside_the_cone() {
    let limb = TwoBone::new(30.0, 25.0).expect("lengths");
    let mut random = Random(3);
    let mut tried = 0;
    while tried < 20_000 {
        let target = random.vector(60.0);
        let reference = random.vector(1.0);
        let angle = f64::from(target.angle_between(reference)).to_degrees();
        if target.length() < 8.0 || !(CONE_DEGREES + 0.1..180.0 - CONE_DEGREES - 0.1).contains(&angle) {
            continue;
        }
        tried += 1;
        let step = random.vector(1e-3);
        for bend in [Bend::Reference(reference), Bend::Pole(reference)] {
            let here = limb.solve(Vec3::ZERO, target, bend).expect("finite");
            let there = limb.solve(Vec3::ZERO, target + step, bend).expect("finite");
            // At the reach's end the joint moves like a square root; near the cone it turns by 1 / sin 1°.
            let most = 30.0 * (2.0 * 1e-3f32).sqrt() + 60.0 * 2e-3 / (CONE_DEGREES as f32).to_radians() / 8.0;
            let moved = here.middle.distance(there.middle);
            assert!(moved < most, "{moved} cm at {angle}° for {target} {bend:?}");
        }
    }
}

/// Inside the cone the answer is still defined, of the right length, and continuous at the cone's border.
#[test]
fn inside_the_cone_there_is_an_answer() {
    let limb = TwoBone::new(30.0, 25.0).expect("lengths");
    for axis in [Vec3::X, Vec3::Y, Vec3::Z, Vec3::ONE] {
        for bend in [Bend::Reference(axis), Bend::Pole(-axis), Bend::Pole(Vec3::ZERO)] {
            let pose = limb.solve(Vec3::ZERO, axis.normalize() * 40.0, bend).expect("finite");
            assert!((pose.middle.length() - 30.0).abs() < 30.0 * Tol::f32_sum(10), "{pose:?}");
            assert!(pose.end.distance(axis.normalize() * 40.0) < 1e-3, "{pose:?}");
        }
    }
}

#[test]
fn a_soft_reach_never_straightens_and_leaves_near_targets_alone() {
    let limb = TwoBone::new(30.0, 25.0).expect("lengths").with_soft_reach(0.1).expect("a share");
    let mut before = 0.0;
    for distance in 6..200 {
        let target = Vec3::X * distance as f32;
        let pose = limb.solve(Vec3::ZERO, target, Bend::Pole(Vec3::Y)).expect("finite");
        let reached = pose.end.length();
        // One step of 1 cm far out is less than what f32 tells.
        assert!(reached >= before - 1e-4 && reached <= 55.0 + 1e-4, "{reached} after {before}");
        let near = distance as f32 <= 55.0 * 0.9;
        assert_eq!(pose.reach == Reach::Exact, near, "{distance}");
        assert!(!near || pose.end.distance(target) < 1e-4);
        before = reached;
    }
}

#[test]
fn bad_limbs_and_targets_are_named() {
    for (upper, lower) in [(0.0, 1.0), (1.0, -1.0), (f32::NAN, 1.0), (1.0, f32::INFINITY)] {
        assert!(matches!(TwoBone::new(upper, lower), Err(LimbError::Length { .. })));
    }
    let limb = TwoBone::new(1.0, 1.0).expect("lengths");
    for bad in [Vec3::NAN, Vec3::INFINITY, Vec3::X * 1e10] {
        let failed = limb.solve(Vec3::ZERO, bad, Bend::Pole(Vec3::Y));
        assert!(matches!(failed, Err(LimbError::Point { what: "target", .. })), "{failed:?}");
        assert!(limb.solve(bad, Vec3::X, Bend::Pole(Vec3::Y)).is_err());
        assert!(limb.solve(Vec3::ZERO, Vec3::X, Bend::Reference(bad)).is_err());
    }
    assert!(limb.with_soft_reach(0.7).is_err() && limb.with_soft_reach(f32::NAN).is_err());
}

/// Ten million inputs of every size, among them zeros and points on each other.
#[test]
fn no_input_gives_nan() {
    let mut random = Random(9);
    let sizes = [0.0, 1e-30, 1e-9, 1e-3, 1.0, 30.0, 1e4, 9e8];
    for round in 0..10_000_000u32 {
        let mut size = || sizes[(random.next() * 8.0) as usize];
        let (a, b, c, d) = (size(), size(), size(), size());
        let length = |value: f64, share: f64| ((value * share) as f32).max(f32::MIN_POSITIVE);
        let shares = (random.next(), random.next());
        let limb = TwoBone::new(length(a, shares.0), length(b, shares.1)).expect("lengths");
        let origin = random.vector(c);
        let mut target = random.vector(d);
        match round % 5 {
            0 => target = origin,
            1 => target = (origin + Vec3::Y * limb.length()).clamp(Vec3::splat(-1e9), Vec3::splat(1e9)),
            _ => {}
        }
        let bend = if round % 7 == 0 {
            Bend::Reference((target - origin).clamp_length_max(1e8))
        } else {
            bends(&mut random)
        };
        let pose = limb.solve(origin, target, bend).expect("finite");
        assert!(pose.middle.is_finite() && pose.end.is_finite(), "{limb:?} {origin} {target} {bend:?}");
    }
}
