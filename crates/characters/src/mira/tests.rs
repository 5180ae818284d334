//! The laws that Mira must keep, tested on the finished rig with knowledge of her topology.

use super::anatomy::Anatomy;
use super::cage::Patch;
use super::model::Model;
use super::sculpt::{EYE_CENTRE, EYE_RADIUS};
use crate::test_support::texture_overlaps;
use std::sync::OnceLock;
use understudy_core::rotation::fit_rigid;
use understudy_core::{Clip, Controls, Random, Vec3};
use understudy_rigs::StackRig;
use understudy_rigs::{Rig, RigPose};

fn rig() -> &'static StackRig {
    static RIG: OnceLock<StackRig> = OnceLock::new();
    RIG.get_or_init(|| super::build().expect("Mira builds"))
}

fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| Model::new().expect("the model builds"))
}

fn evaluate(controls: &Controls) -> Vec<Vec3> {
    let mut out = RigPose::default();
    rig().evaluate(controls, &mut out).expect("a pose");
    out.vertices
}

fn pose(changes: &[(&str, f32)]) -> Vec<Vec3> {
    evaluate(&rig().specs().with(changes.iter().copied()).expect("in range"))
}

fn random_pose(index: u64) -> Controls {
    let mut random = Random::stream(5, index);
    Controls(rig().specs().iter().map(|s| random.uniform(s.low, s.high)).collect())
}

#[test]
fn counts_are_those_of_the_design() {
    let (mesh, shapes) = (rig().mesh(), rig().blendshapes().expect("Mira has shapes"));
    assert!((12_000..=18_000).contains(&mesh.vertex_count()), "{}", mesh.vertex_count());
    assert!((230..=300).contains(&rig().specs().len()), "{}", rig().specs().len());
    assert!(mesh.segments().len() >= 30);
    assert!(shapes.shapes().iter().all(|s| rig().specs().find(&s.name).is_some() && !s.deltas.is_empty()));
    let levels = |k: usize| shapes.correctives().iter().filter(|c| c.shapes.len() == k).count();
    assert!(levels(2) >= 40 && levels(3) >= 8 && levels(4) >= 5, "{} {} {}", levels(2), levels(3), levels(4));
    assert!(shapes.correctives().iter().all(|c| !c.deltas.is_empty()));
    let (low, high) = mesh.bounds();
    assert!((25.0..30.0).contains(&(high.y - low.y)), "{}", high.y - low.y);
}

/// Every tooth is one island of its own, and closed: each edge has two faces.
#[test]
fn teeth_are_28_closed_islands() {
    let mesh = rig().mesh();
    let (islands, _) = mesh.islands();
    let mut seen = Vec::new();
    for (segment, name) in mesh.segments().names.iter().enumerate().filter(|(_, n)| n.starts_with("tooth")) {
        let vertices = mesh.segments().vertices(segment);
        let island = islands[vertices[0] as usize];
        assert_eq!(islands.iter().filter(|i| **i == island).count(), vertices.len(), "{name}");
        let mut edges = std::collections::HashMap::new();
        for face in mesh.faces().iter().filter(|f| islands[f.corners()[0] as usize] == island) {
            let corners = face.corners();
            for (place, &a) in corners.iter().enumerate() {
                let b = corners[(place + 1) % corners.len()];
                *edges.entry((a.min(b), a.max(b))).or_insert(0) += 1;
            }
        }
        assert!(edges.values().all(|count| *count == 2), "{name} is open");
        seen.push(island);
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 28);
}

#[test]
fn texture_coordinates_lie_in_the_square_without_overlap() {
    assert_eq!(texture_overlaps(rig().mesh()), 0);
}

#[test]
fn the_same_bytes_every_time() {
    let again = super::build().expect("Mira builds");
    assert_eq!(rig().mesh(), again.mesh());
    assert_eq!(rig().blendshapes(), again.blendshapes());
    assert_eq!(rig().colours(), again.colours());
    let controls = random_pose(1);
    let mut out = RigPose::default();
    again.evaluate(&controls, &mut out).expect("a pose");
    assert_eq!(out.vertices, evaluate(&controls));
}

/// How far the farthest vertex is from rest, cm.
fn farthest(controls: &Controls) -> f32 {
    let rest = rig().mesh().positions();
    evaluate(controls).iter().zip(rest).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max)
}

#[test]
fn clips_have_their_names_and_lengths() {
    let clips: Vec<&Clip> = rig().clips().iter().filter(|clip| !clip.is_for_motion()).collect();
    let names: Vec<&str> = clips.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["talk", "smile", "grumpy", "surprise", "roar", "blink", "idle", "test"]);
    for clip in clips {
        assert!((2.0..=10.0).contains(&clip.duration), "{}", clip.name);
        let frames = clip.sample(rig().specs(), 24.0).expect("in range").frames;
        let most = frames.iter().step_by(4).map(farthest).fold(0.0, f32::max);
        assert!(most > 0.5, "{} moves {most} cm", clip.name);
    }
}

#[test]
fn every_label_of_motion_has_clips_that_follow_each_other_without_a_jump() {
    let clips: Vec<&Clip> = rig().clips().iter().filter(|clip| clip.is_for_motion()).collect();
    let specs = rig().specs();
    for label in ["happy", "grumpy", "bored", "curious", "neutral", "roar", "head_shake", "surprise"] {
        let prefix = format!("motion/{label}_");
        let of: Vec<&&Clip> = clips.iter().filter(|clip| clip.name.starts_with(&prefix)).collect();
        assert!(of.len() >= 3, "{label}");
        let mut frames = 0;
        for (number, clip) in of.iter().enumerate() {
            assert_eq!(clip.name, format!("{prefix}{}", number + 1));
            let sampled = clip.sample(specs, 24.0).expect("in range").frames;
            frames += sampled.len();
            let ends = [0, sampled.len() - 1].map(|frame| farthest(&sampled[frame]));
            assert!(ends.iter().all(|end| *end < 0.1), "{}: {ends:?} cm from rest", clip.name);
            let most = sampled.iter().step_by(8).map(farthest).fold(0.0, f32::max);
            assert!(most > 0.4, "{} moves {most} cm", clip.name);
            // A lid shuts within two frames; nothing else is as fast.
            for pair in sampled.windows(2) {
                for (control, spec) in
                    specs.iter().enumerate().filter(|(_, spec)| !spec.name.starts_with("eye"))
                {
                    let step = (pair[1].0[control] - pair[0].0[control]).abs() / (spec.high - spec.low);
                    assert!(step < 0.45, "{}: {} moves {step} of its range in a frame", clip.name, spec.name);
                }
            }
        }
        assert!((100..=800).contains(&frames), "{label}: {frames} frames");
    }
    assert!(clips.iter().all(|clip| clip.name.starts_with("motion/") && !clip.is_for_training()));
}

#[test]
fn the_rest_pose_is_the_mesh() {
    let rest = evaluate(&rig().specs().defaults());
    let worst = rest.iter().zip(rig().mesh().positions()).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
    assert!(worst < 1e-4, "{worst}");
}

#[test]
fn random_poses_stay_near_and_change_little_by_little() {
    let (low, high) = rig().mesh().bounds();
    let height = high.y - low.y;
    let span = 1e-4;
    let mut steepest = 0.0f32;
    for index in 0..300 {
        let controls = random_pose(index);
        let here = evaluate(&controls);
        for v in &here {
            let outside = (*v - v.clamp(low, high)).length();
            assert!(outside < height, "pose {index}: {v}");
        }
        if index % 6 == 0 {
            let mut random = Random::stream(6, index);
            let mut near = controls.clone();
            for (value, spec) in near.0.iter_mut().zip(rig().specs().iter()) {
                *value += span * (spec.high - spec.low) * random.uniform(-1.0, 1.0);
            }
            let there = evaluate(&near);
            let moved = here.iter().zip(&there).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
            steepest = steepest.max(moved);
        }
    }
    // All 267 controls move at once; together they carry a vertex a few centimetres over their ranges.
    assert!(steepest < 0.02, "{steepest} cm for a step of {span}");
}

#[test]
fn teeth_are_rigid_in_every_pose() {
    let mesh = rig().mesh();
    let segments = mesh.segments();
    for index in 0..40 {
        let posed = evaluate(&random_pose(1000 + index));
        for jaw in ["tooth_upper", "tooth_lower"] {
            let belongs = |v: &usize| segments.names[segments.of_vertex[*v] as usize].starts_with(jaw);
            let row: Vec<usize> = (0..mesh.vertex_count()).filter(belongs).collect();
            let rest: Vec<Vec3> = row.iter().map(|v| mesh.positions()[*v]).collect();
            let now: Vec<Vec3> = row.iter().map(|v| posed[*v]).collect();
            let motion = fit_rigid(&rest, &now);
            let miss = rest.iter().zip(&now).map(|(a, b)| motion.apply(*a).distance(*b)).fold(0.0, f32::max);
            assert!(miss < 1e-4, "{jaw}: {miss} cm");
        }
    }
}

#[test]
fn lids_never_enter_the_eyeball() {
    let vertices = model().segment("eyelids");
    let mut worst = f32::INFINITY;
    for blink in 0..=8 {
        for (pitch, yaw) in [(0.0, 0.0), (18.0, 0.0), (-18.0, 20.0), (10.0, -22.0)] {
            for squint in [0.0, 1.0] {
                let mut changes = Vec::new();
                for side in ["L", "R"] {
                    changes.push((format!("eyeBlink_{side}"), blink as f32 / 8.0));
                    changes.push((format!("eyeSquint_{side}"), squint));
                    changes.push((format!("eyePitch_{side}"), pitch));
                    changes.push((format!("eyeYaw_{side}"), yaw));
                }
                let changes: Vec<(&str, f32)> = changes.iter().map(|(n, v)| (n.as_str(), *v)).collect();
                let posed = pose(&changes);
                for v in &vertices {
                    let p = posed[*v as usize];
                    let centre = EYE_CENTRE * Vec3::new(p.x.signum(), 1.0, 1.0);
                    worst = worst.min(p.distance(centre) - EYE_RADIUS);
                }
            }
        }
    }
    assert!(worst > -0.002, "{worst} cm");
}

/// Distance from each upper vertex of a rim to the line of the lower one, the largest.
fn gap(posed: &[Vec3], upper: &[u32], lower: &[u32]) -> f32 {
    let mut line: Vec<Vec3> = lower.iter().map(|v| posed[*v as usize]).collect();
    line.sort_by(|a, b| a.x.total_cmp(&b.x));
    let nearest = |a: &u32| {
        let p = posed[*a as usize];
        let distance = |pair: &[Vec3]| {
            let along = pair[1] - pair[0];
            let t = ((p - pair[0]).dot(along) / along.length_squared().max(1e-12)).clamp(0.0, 1.0);
            p.distance(pair[0] + along * t)
        };
        line.windows(2).map(distance).fold(f32::INFINITY, f32::min)
    };
    upper.iter().map(nearest).fold(0.0, f32::max)
}

#[test]
fn lips_touch_in_rest_and_lids_meet_in_a_blink() {
    let anatomy = Anatomy::new(model());
    let rest = rig().mesh().positions();
    let line = |above: bool| {
        anatomy.select(Patch::Mouth, 0.0, |along, across| (along > 4.0) == above && across == 4.0)
    };
    let lips = gap(rest, &line(true), &line(false));
    assert!(lips < 0.1, "lips {lips} cm apart");
    // The corners belong to both lids.
    let rim = |upper: bool| {
        anatomy.select(Patch::Eye, 1.0, |along, across| {
            let place = along.rem_euclid(12.0);
            across == 5.0 && (place == 0.0 || if upper { place <= 6.0 } else { place >= 6.0 })
        })
    };
    let open = gap(rest, &rim(true), &rim(false));
    let shut = gap(&pose(&[("eyeBlink_L", 1.0)]), &rim(true), &rim(false));
    assert!(open > 1.2, "the eye rests {open} cm open");
    assert!(shut < 0.1, "lids {shut} cm apart");
}

#[test]
fn upper_lip_controls_leave_the_lower_lip_still() {
    let anatomy = Anatomy::new(model());
    let lower =
        anatomy.select(Patch::Mouth, 0.0, |along, across| along < 3.2 && (1.9..5.1).contains(&across));
    let rest = rig().mesh().positions();
    let names: Vec<String> = rig().specs().iter().map(|s| s.name.clone()).collect();
    let upper = names.iter().filter(|n| n.starts_with("lipUpper") || *n == "mouthShrugUpper");
    let mut tested = 0;
    for name in upper {
        let posed = pose(&[(name, 1.0)]);
        let moved = |v: &u32| posed[*v as usize].distance(rest[*v as usize]);
        let most = lower.iter().map(moved).fold(0.0, f32::max);
        assert!(most < 1e-3, "{name} moves the lower lip by {most} cm");
        tested += 1;
    }
    assert!(tested >= 12);
}

/// The same value on both sides gives a symmetric face.
#[test]
fn sides_mirror_each_other() {
    let anatomy = Anatomy::new(model());
    for stem in ["mouthSmile", "eyeBlink", "browDown", "lipFunnelUpper", "cheekPuff"] {
        let posed = pose(&[(&format!("{stem}_L"), 0.8), (&format!("{stem}_R"), 0.8)]);
        let miss = |v: usize| {
            let other = posed[anatomy.mirror[v] as usize];
            posed[v].distance(Vec3::new(-other.x, other.y, other.z))
        };
        let worst = (0..anatomy.skin_count()).map(miss).fold(0.0, f32::max);
        assert!(worst < 0.01, "{stem}: {worst} cm");
    }
}

/// An open mouth with sticky lips is closed at the corners and open in the middle.
#[test]
fn lips_unzip_as_the_jaw_opens() {
    let anatomy = Anatomy::new(model());
    let middle = |above: bool| {
        let at = if above { 8.0 } else { 0.0 };
        anatomy.select(Patch::Mouth, 0.0, |along, across| along == at && across == 4.0)[0] as usize
    };
    let (upper, lower) = (middle(true), middle(false));
    let open = |changes: &[(&str, f32)]| {
        let posed = pose(changes);
        posed[upper].distance(posed[lower])
    };
    let stuck =
        |jaw: f32, glue: f32| open(&[("jawOpen", jaw), ("lipsSticky_L", glue), ("lipsSticky_R", glue)]);
    assert!(stuck(0.2, 1.0) < 0.25 * stuck(0.2, 0.0));
    assert!(stuck(1.0, 0.2) > 0.95 * stuck(1.0, 0.0));
    assert!(open(&[("jawOpen", 1.0), ("mouthClose", 1.0)]) < 0.3 * open(&[("jawOpen", 1.0)]));
}
