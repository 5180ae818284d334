//! The laws that Rook must keep: counts, symmetry, determinism, bounded and continuous motion, feet on
//! the ground.

// Figures that the project reports are printed by the tests that check them.
#![allow(clippy::print_stdout)]

use crate::rook;
use crate::test_support::texture_overlaps;
use understudy_core::{Controls, Random, Vec3};
use understudy_rigs::{Rig, RigPose, StackRig};

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

/// The largest distance from a vertex of the body to the mirror image of its twin. Sewn-on parts are left
/// out: some are on one side only.
fn asymmetry(vertices: &[Vec3], rest: &[Vec3], island: &[u32]) -> f32 {
    let key = |p: Vec3| [p.x, p.y, p.z].map(|v| (v * 50.0).round() as i64);
    let mut at: std::collections::HashMap<[i64; 3], usize> = std::collections::HashMap::new();
    rest.iter().enumerate().filter(|(index, _)| island[*index] == island[0]).for_each(|(index, p)| {
        at.insert(key(*p), index);
    });
    let mut worst = 0.0f32;
    for (index, p) in rest.iter().enumerate().filter(|(index, _)| island[*index] == island[0]) {
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
    let island = rig.mesh().islands().0;
    for name in ["hem_flare", "coat_wind_z", "breathe", "hood_open", "hips.pitch"] {
        let moved = pose(&rig, &[(name, 0.9)]);
        let worst = asymmetry(&moved, &rest, &island);
        assert!(worst < 0.05, "{name}: {worst} cm");
    }
    for joint in ["shoulder", "elbow", "hip", "knee", "wrist"] {
        let motion = match joint {
            "shoulder" => "up",
            "hip" => "forward",
            _ => "bend",
        };
        let (left, right) = (format!("{joint}_l.{motion}"), format!("{joint}_r.{motion}"));
        let worst = asymmetry(&pose(&rig, &[(&left, 40.0), (&right, 40.0)]), &rest, &island);
        assert!(worst < 0.05, "{joint}: {worst} cm");
    }
}

#[test]
fn counts_islands_and_texture_coordinates() {
    let rig = rig();
    let mesh = rig.mesh();
    let bones = rig.skeleton().expect("bones").len();
    let (island, islands) = mesh.islands();
    println!(
        "Rook: {} vertices, {} faces, {bones} bones, {} controls, {islands} islands, {} segments",
        mesh.vertex_count(),
        mesh.faces().len(),
        rig.specs().len(),
        mesh.segments().len()
    );
    assert!(mesh.vertex_count() >= 13_000 && bones >= 100 && islands > 50);
    assert!((80..=130).contains(&rig.specs().len()));
    let body = island.iter().filter(|i| **i == island[0]).count();
    assert!(body >= 13_000, "the body alone has {body} vertices");
    let (low, high) = mesh.bounds();
    assert!((high.y - low.y - 190.0).abs() < 3.0 && low.y.abs() < 1.0, "{low} to {high}");
    assert_eq!(rig.colours().expect("colours").len(), mesh.vertex_count());
}

#[test]
fn texture_coordinates_lie_in_the_square_without_overlap() {
    assert_eq!(texture_overlaps(rig().mesh()), 0, "faces share a place in the texture");
}

#[test]
fn the_same_bytes_every_time_and_quickly() {
    let start = std::time::Instant::now();
    let first = rig();
    let seconds = start.elapsed().as_secs_f32();
    let second = rig();
    println!("built in {seconds:.2} s");
    assert!(first.mesh() == second.mesh() && first.skin_weights() == second.skin_weights());
    assert!(first.colours() == second.colours() && first.clips() == second.clips());
    let controls = &random_controls(&first, 3, 1)[0];
    assert_eq!(evaluate(&first, controls), evaluate(&second, controls));
    assert!(
        evaluate(&first, &first.specs().defaults())
            .iter()
            .zip(first.mesh().positions())
            .all(|(a, b)| a.distance(*b) < 0.01)
    );
}

#[test]
fn random_poses_are_finite_and_near_the_body() {
    let rig = rig();
    let mut out = RigPose::default();
    let hips = rig.skeleton().expect("bones").find("hips").expect("hips");
    let mut furthest = 0.0f32;
    for controls in random_controls(&rig, 7, 300) {
        rig.evaluate(&controls, &mut out).expect("a finite pose");
        let bones: Vec<Vec3> = out.global.0.iter().map(|b| b.translation.into()).collect();
        for vertex in &out.vertices {
            assert!(vertex.distance(bones[hips]) < 190.0);
        }
        for vertex in out.vertices.iter().step_by(7) {
            let near = bones.iter().map(|b| b.distance_squared(*vertex)).fold(f32::INFINITY, f32::min);
            furthest = furthest.max(near.sqrt());
        }
    }
    println!("no vertex further than {furthest:.1} cm from its nearest bone");
    assert!(furthest < 60.0, "{furthest}");
}

/// A step of 1e-4 of a control's unit (degrees, cm or number) moves a vertex by 1e-4 times the length of
/// the lever at most; the bound leaves room for deformers that amplify and for rounding.
#[test]
fn a_small_step_of_any_control_moves_every_vertex_a_little() {
    const STEP: f32 = 1e-4;
    const BOUND: f32 = 0.02;
    let rig = rig();
    let (mut before, mut after) = (RigPose::default(), RigPose::default());
    let mut worst = (0.0f32, String::new());
    let all: Vec<Controls> = random_controls(&rig, 5, 3);
    for controls in &all {
        rig.evaluate(controls, &mut before).expect("a pose");
        for (index, spec) in rig.specs().iter().enumerate() {
            let mut moved = controls.clone();
            moved.0[index] += STEP;
            rig.evaluate(&moved, &mut after).expect("a pose");
            let far =
                before.vertices.iter().zip(&after.vertices).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
            if far > worst.0 {
                worst = (far, spec.name.clone());
            }
        }
    }
    println!("a step of {STEP} moves a vertex by {} cm at most ({})", worst.0, worst.1);
    assert!(worst.0 < BOUND, "{worst:?}");
}

#[test]
fn clips_are_named_long_enough_and_end_as_they_say() {
    let rig = rig();
    let names: Vec<&str> = rig.clips().iter().map(|clip| clip.name.as_str()).collect();
    assert_eq!(names, ["walk", "reach", "kick", "crouch", "test"]);
    for clip in rig.clips() {
        assert!((2.0..=10.0).contains(&clip.duration), "{}", clip.name);
        let frames = clip.sample(rig.specs(), 30.0).expect("in range").frames;
        let mut last: Option<Vec<Vec3>> = None;
        for frame in &frames {
            let vertices = evaluate(&rig, frame);
            if let Some(last) = &last {
                let jump = last.iter().zip(&vertices).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
                assert!(jump < 40.0, "{}: a vertex jumps {jump} cm in a frame", clip.name);
            }
            last = Some(vertices);
        }
    }
}

/// While a foot carries the body its sole is on the ground: the lowest vertex stays within 3 cm of it.
#[test]
fn the_supporting_foot_stays_on_the_ground() {
    let rig = rig();
    let segments = rig.mesh().segments();
    let boots = segments.vertices(segments.find("boot").expect("boots"));
    for (name, allowed) in [("walk", 3.0f32), ("crouch", 2.0), ("kick", 2.5), ("reach", 2.5)] {
        let clip = rig.find_clip(name).expect("a clip");
        let (mut deepest, mut highest) = (0.0f32, 0.0f32);
        for frame in clip.sample(rig.specs(), 15.0).expect("in range").frames {
            let vertices = evaluate(&rig, &frame);
            let lowest = boots.iter().map(|v| vertices[*v as usize].y).fold(f32::INFINITY, f32::min);
            let coat = vertices.iter().map(|v| v.y).fold(f32::INFINITY, f32::min);
            assert!(coat > -5.0, "{name}: the coat sinks to {coat}");
            deepest = deepest.min(lowest);
            highest = highest.max(lowest);
        }
        println!("{name}: the lowest vertex is between {deepest:.2} and {highest:.2} cm");
        assert!(deepest > -allowed && highest < allowed, "{name}: {deepest} to {highest}");
    }
}

/// In the crouch both feet stay where they are.
#[test]
fn feet_do_not_slide_in_the_crouch() {
    let rig = rig();
    let skeleton = rig.skeleton().expect("bones");
    let foot = skeleton.find("foot_l").expect("a foot");
    let clip = rig.find_clip("crouch").expect("a clip");
    let mut out = RigPose::default();
    let mut places = Vec::new();
    for frame in clip.sample(rig.specs(), 30.0).expect("in range").frames {
        rig.evaluate(&frame, &mut out).expect("a pose");
        places.push(Vec3::from(out.global.0[foot].translation));
    }
    let slide = places.iter().map(|p| p.distance(places[0])).fold(0.0, f32::max);
    assert!(slide < 1.0, "the ankle slides {slide} cm");
}

/// Controls of random poses, as sampling draws them.
fn random_controls(rig: &StackRig, seed: u64, count: usize) -> Vec<Controls> {
    let mut random = Random::new(seed);
    let mut draw = || Controls(rig.specs().iter().map(|s| random.truncated_normal(s.low, s.high)).collect());
    (0..count).map(|_| draw()).collect()
}
