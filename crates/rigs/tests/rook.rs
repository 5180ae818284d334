//! The laws that Rook must keep: counts, symmetry, determinism, bounded and continuous motion, feet on
//! the ground.

use understudy_core::{Controls, Random, Vec3};
use understudy_rigs::{Rig, RigPose, StackRig, rook};

fn rig() -> StackRig {
    rook::build().expect("Rook builds")
}

fn pose(rig: &StackRig, changes: &[(&str, f32)]) -> Vec<Vec3> {
    let controls = rig.specs().with(changes.iter().copied()).expect("controls in range");
    evaluate(rig, &controls)
}

fn evaluate(rig: &StackRig, controls: &Controls) -> Vec<Vec3> {
    let mut out = RigPose::default();
    rig.evaluate(controls, &mut out).expect("a pose");
    out.vertices
}

/// The largest distance from a mirrored vertex to its nearest twin.
fn asymmetry(vertices: &[Vec3], rest: &[Vec3]) -> f32 {
    let key = |p: Vec3| [p.x, p.y, p.z].map(|v| (v * 50.0).round() as i64);
    let mut at: std::collections::HashMap<[i64; 3], usize> = std::collections::HashMap::new();
    rest.iter().enumerate().for_each(|(index, p)| {
        at.insert(key(*p), index);
    });
    let mut worst = 0.0f32;
    for (index, p) in rest.iter().enumerate() {
        let mirror = key(Vec3::new(-p.x, p.y, p.z));
        if let Some(&twin) = at.get(&mirror) {
            let v = vertices[twin];
            worst = worst.max(vertices[index].distance(Vec3::new(-v.x, v.y, v.z)));
        }
    }
    worst
}

#[test]
fn equal_values_on_both_sides_make_symmetric_poses() {
    let rig = rig();
    let rest = rig.mesh().positions().to_vec();
    for name in ["hem_flare", "coat_wind_z", "breathe", "hood_open", "hips.pitch"] {
        let moved = pose(&rig, &[(name, 0.9)]);
        let worst = asymmetry(&moved, &rest);
        assert!(worst < 0.05, "{name}: {worst} cm");
    }
    for joint in ["shoulder", "elbow", "hip", "knee", "wrist"] {
        let motion = match joint {
            "shoulder" => "up",
            "hip" => "forward",
            _ => "bend",
        };
        let (left, right) = (format!("{joint}_l.{motion}"), format!("{joint}_r.{motion}"));
        let worst = asymmetry(&pose(&rig, &[(&left, 40.0), (&right, 40.0)]), &rest);
        assert!(worst < 0.05, "{joint}: {worst} cm");
    }
}

#[test]
fn random_poses_are_bounded() {
    let rig = rig();
    let mut random = Random::new(7);
    let mut out = RigPose::default();
    for _ in 0..50 {
        let values = rig.specs().iter().map(|s| random.truncated_normal(s.low, s.high)).collect();
        rig.evaluate(&Controls(values), &mut out).expect("a finite pose");
    }
}
