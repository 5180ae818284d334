//! The laws that Rook must keep: counts, symmetry, determinism, bounded and continuous motion, feet on
//! the ground.

use understudy_core::{Affine3A, Controls, Random, Vec3};
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

/// Controls of random poses, as sampling draws them.
fn random_controls(rig: &StackRig, seed: u64, count: usize) -> Vec<Controls> {
    let mut random = Random::new(seed);
    let mut draw = || Controls(rig.specs().iter().map(|s| random.truncated_normal(s.low, s.high)).collect());
    (0..count).map(|_| draw()).collect()
}

/// Non-negative weights that sum to one: coordinate descent on the normal equations, with the sum as a
/// strong extra row.
fn fit_weights(gram: &[f64], right: &[f64], count: usize) -> Vec<f64> {
    let mut weights = vec![1.0 / count as f64; count];
    for _ in 0..400 {
        for i in 0..count {
            let rest: f64 = (0..count).filter(|j| *j != i).map(|j| gram[i * count + j] * weights[j]).sum();
            weights[i] = ((right[i] - rest) / gram[i * count + i]).max(0.0);
        }
    }
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum).collect()
}

/// The best linear blend of at most four bones for one vertex: fitted over the likely bones first, then
/// again over the four that matter most.
fn best_four(rest: Vec3, poses: &[(Vec<Affine3A>, Vec3)], likely: &[usize]) -> Vec<(usize, f64)> {
    let fit = |bones: &[usize]| -> Vec<f64> {
        let count = bones.len();
        let (mut gram, mut right) = (vec![0.0; count * count], vec![0.0; count]);
        let mut scale = 0.0;
        for (matrices, target) in poses {
            let moved: Vec<Vec3> = bones.iter().map(|b| matrices[*b].transform_point3(rest)).collect();
            for i in 0..count {
                for j in 0..count {
                    gram[i * count + j] += f64::from(moved[i].dot(moved[j]));
                }
                right[i] += f64::from(moved[i].dot(*target));
            }
            scale += f64::from(target.length_squared());
        }
        for i in 0..count {
            (0..count).for_each(|j| gram[i * count + j] += scale);
            gram[i * count + i] += scale * 1e-9;
            right[i] += scale;
        }
        fit_weights(&gram, &right, count)
    };
    let first = fit(likely);
    let mut order: Vec<usize> = (0..likely.len()).collect();
    order.sort_by(|a, b| first[*b].total_cmp(&first[*a]));
    let four: Vec<usize> = order.into_iter().take(4).map(|place| likely[place]).collect();
    four.iter().copied().zip(fit(&four)).collect()
}

#[test]
fn linear_blend_skinning_cannot_follow_rook() {
    let rig = rig();
    let skeleton = rig.skeleton().expect("bones");
    let rest = rig.mesh().positions();
    let sampled: Vec<usize> = (0..rest.len()).step_by(16).collect();
    let poses: Vec<(Vec<Affine3A>, Vec<Vec3>)> = random_controls(&rig, 11, 150)
        .iter()
        .map(|controls| {
            let mut out = RigPose::default();
            rig.evaluate(controls, &mut out).expect("a pose");
            let mut matrices = Vec::new();
            skeleton.skinning_matrices(&out.global, &mut matrices);
            (matrices, sampled.iter().map(|v| out.vertices[*v]).collect())
        })
        .collect();
    let (train, test) = poses.split_at(100);
    let (mut error, mut rigid_error) = (0.0f64, 0.0f64);
    let mut by_segment: std::collections::BTreeMap<&str, (f64, f64)> = Default::default();
    for (place, &vertex) in sampled.iter().enumerate() {
        let of_vertex: Vec<(Vec<Affine3A>, Vec3)> = train.iter().map(|(m, v)| (m.clone(), v[place])).collect();
        let cost = |bone: usize| -> f64 {
            let miss = |(m, v): &(Vec<Affine3A>, Vec3)| m[bone].transform_point3(rest[vertex]).distance_squared(*v);
            of_vertex.iter().map(|pose| f64::from(miss(pose))).sum()
        };
        let mut bones: Vec<(f64, usize)> = (0..skeleton.len()).map(|bone| (cost(bone), bone)).collect();
        bones.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut likely: Vec<usize> = bones.iter().take(14).map(|(_, bone)| *bone).collect();
        likely.extend(rig.skin_weights().expect("weights").row(vertex).map(|(bone, _)| bone));
        likely.sort_unstable();
        likely.dedup();
        let four = best_four(rest[vertex], &of_vertex, &likely);
        let segments = rig.mesh().segments();
        let name = segments.names[segments.of_vertex[vertex] as usize].as_str();
        let entry = by_segment.entry(name).or_default();
        for (matrices, vertices) in test {
            let blend: Vec3 =
                four.iter().map(|(bone, w)| matrices[*bone].transform_point3(rest[vertex]) * *w as f32).sum();
            let single = matrices[bones[0].1].transform_point3(rest[vertex]);
            let (e, r) = (blend.distance_squared(vertices[place]), single.distance_squared(vertices[place]));
            error += f64::from(e);
            rigid_error += f64::from(r);
            entry.0 += f64::from(e);
            entry.1 += f64::from(r);
        }
    }
    let count = (sampled.len() * test.len()) as f64;
    let enveloping = 100.0 * (error / rigid_error).sqrt();
    println!(
        "LBS, 4 influences: enveloping error {enveloping:.1}, rmse {:.2} cm; rigid {:.2} cm",
        (error / count).sqrt(),
        (rigid_error / count).sqrt()
    );
    for (name, (e, r)) in by_segment {
        println!("  {name:12} {:5.1}  share of rigid error {:.3}", 100.0 * (e / r).sqrt(), r / rigid_error);
    }
    assert!(enveloping > 30.0, "{enveloping}");
}
