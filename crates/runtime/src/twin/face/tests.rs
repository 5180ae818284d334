//! A twin of random weights: every path against a slow truth, its derivative, damaged files, bad poses.

use super::file::to_bytes;
use super::*;
use crate::dense::Kernel;
use crate::workers::Workers;
use crate::{Distances, Inputs, PoseError, Training, Twin, TwinError};
use understudy_core::{ControlSpec, ControlSpecs, DVec3, Face, MeshParts, Random, Segments};
use understudy_testkit::gradient::directional_miss;

const CONTROLS: usize = 7;
const SIDE: usize = 6;

fn dense(random: &mut Random, rows: usize, columns: usize) -> DenseParts {
    let limit = (3.0 / columns.max(1) as f32).sqrt();
    DenseParts {
        weights: (0..rows * columns).map(|_| random.uniform(-limit, limit)).collect(),
        bias: (0..rows).map(|_| random.uniform(-0.3, 0.3)).collect(),
    }
}

/// A grid of faces cut into segments, with one network of every kind, rigid vertices and a frame.
pub(crate) fn random_face(seed: u64, outputs: usize) -> FaceParts {
    let mut random = Random::new(seed);
    let count = SIDE * SIDE;
    let positions: Vec<Vec3> = (0..count)
        .map(|i| Vec3::new((i % SIDE) as f32, (i / SIDE) as f32, random.uniform(-0.5, 0.5)))
        .collect();
    let uvs: Vec<Vec2> = positions.iter().map(|p| Vec2::new(p.x, p.y) / (SIDE as f32 - 1.0)).collect();
    let mut faces = Vec::new();
    for row in 0..SIDE as u32 - 1 {
        for column in 0..SIDE as u32 - 1 {
            let a = row * SIDE as u32 + column;
            faces.push(Face::quad(a, a + 1, a + 1 + SIDE as u32, a + SIDE as u32));
        }
    }
    faces[3] = Face::triangle(faces[3].raw()[0], faces[3].raw()[1], faces[3].raw()[2]);
    let of_vertex: Vec<u32> = (0..count as u32).map(|v| (v / 12).min(2)).collect();
    let names = ["top", "middle", "tooth"].map(String::from).to_vec();
    let mesh = MeshParts {
        positions,
        face_uvs: faces.clone(),
        faces,
        uvs: uvs.clone(),
        segments: Segments { names, of_vertex },
    };
    let small = MapShape {
        side: 2,
        channels: 3,
        hidden: 5,
        doublings: 1,
        outputs,
        untied: false,
        shared_features: 0,
    };
    let fine = MapShape { channels: 4, hidden: 17, doublings: 2, untied: true, shared_features: 5, ..small };
    let mut net = |name: &str, stage: Stage, vertices: Vec<u32>, shape: Option<MapShape>| {
        let inputs: Vec<u32> = (0..5).map(|i| (i * 3 + vertices[0]) % CONTROLS as u32).collect();
        let last = shape.map_or(3 * vertices.len(), |s| s.dense_numbers());
        let draw = |shape: MapShape, random: &mut Random| MapParts {
            shape,
            parameters: (0..shape.parameter_count()).map(|_| random.uniform(-0.4, 0.4)).collect(),
            coordinates: vertices.iter().map(|v| uvs[*v as usize] * (shape.map_side() - 1) as f32).collect(),
        };
        NetParts {
            name: name.into(),
            stage,
            mean: inputs.iter().map(|_| random.uniform(-0.5, 0.5)).collect(),
            scale: inputs.iter().map(|_| random.uniform(0.5, 1.5)).collect(),
            dense: vec![dense(&mut random, 9, inputs.len()), dense(&mut random, last, 9)],
            map: shape.map(|shape| draw(shape, &mut random)),
            vertices,
            inputs,
        }
    };
    let mut nets = vec![
        net("top", Stage::Coarse, (0..12).collect(), Some(small)),
        net("middle", Stage::Coarse, (12..23).collect(), Some(fine)),
        net("region", Stage::Refinement, vec![3, 14, 5, 20], Some(fine)),
    ];
    if outputs == 3 {
        nets.push(net("far", Stage::Refinement, vec![15, 0], None));
    }
    let rigid = vec![RigidParts {
        name: "tooth".into(),
        vertices: (24..30).collect(),
        follows: vec![12, 13, 15, 18, 2, 30, 33, 22, 9, 10],
    }];
    let bodies = vec![RigidBodyParts {
        name: "eye".into(),
        vertices: (30..36).collect(),
        motion: MotionParts {
            pivot: Vec3::new(-1.0, 2.0, 1.0),
            inputs: vec![0, 1, 2],
            mean: vec![0.3, 0.0, -0.1],
            scale: vec![0.8, 0.6, 1.0],
            layers: vec![dense(&mut random, 7, 3), dense(&mut random, 6, 7)],
        },
    }];
    let frame = MotionParts {
        pivot: Vec3::new(2.0, 1.0, -3.0),
        inputs: vec![1, 4],
        mean: vec![0.1, -0.2],
        scale: vec![0.7, 0.9],
        layers: vec![dense(&mut random, 8, 2), dense(&mut random, 6, 8)],
    };
    let controls = (0..CONTROLS).map(|c| ControlSpec::number(format!("c{c}"), -1.0, 1.0, 0.0)).collect();
    FaceParts {
        header: Header {
            rig: "test".into(),
            topology_hash: 7,
            units: "cm".into(),
            inputs: Inputs {
                bones: Vec::new(),
                controls: ControlSpecs::new(controls).expect("valid controls"),
            },
            training: Training {
                half_error_mm: Some(Distances { mean: 0.1, max: 0.2 }),
                ..Training::default()
            },
        },
        mesh: mesh.build().expect("a valid mesh"),
        frame: Some(frame),
        nets,
        bodies,
        rigid,
    }
}

/// The whole map, pixel by pixel, with a real upsampling: `[row][column][channel]`.
fn slow_map(shape: &MapShape, parameters: &[f32], numbers: &[f64]) -> Vec<f64> {
    let leak = |x: f64| if x > 0.0 { x } else { x * f64::from(LEAK) };
    let (first, shared_features) = numbers.split_at(shape.first_image());
    let (mut side, mut channels) = (shape.side, shape.channels);
    let mut image: Vec<f64> = first.iter().map(|x| leak(*x)).collect();
    let mut rest: Vec<f64> = parameters.iter().map(|p| f64::from(*p)).collect();
    for convolution in 0..=shape.doublings {
        if convolution < shape.doublings {
            let mut large = vec![0.0; 4 * image.len()];
            for index in 0..4 * side * side {
                let (row, column) = (index / (2 * side), index % (2 * side));
                let from = (row / 2 * side + column / 2) * channels;
                large[index * channels..(index + 1) * channels]
                    .copy_from_slice(&image[from..from + channels]);
            }
            (side, image) = (2 * side, large);
        }
        let weights: Vec<f64> = rest.drain(..shape.hidden * channels * 9).collect();
        let bias: Vec<f64> = rest.drain(..shape.hidden).collect();
        let mut out = vec![0.0; side * side * shape.hidden];
        for index in 0..side * side {
            for output in 0..shape.hidden {
                let mut sum = bias[output];
                for tap in 0..9 {
                    let (row, column) = (index / side + tap / 3, index % side + tap % 3);
                    if !(1..=side).contains(&row) || !(1..=side).contains(&column) {
                        continue;
                    }
                    for input in 0..channels {
                        let value = image[((row - 1) * side + column - 1) * channels + input];
                        sum += weights[(output * channels + input) * 9 + tap] * value;
                    }
                }
                out[index * shape.hidden + output] = leak(sum);
            }
        }
        (channels, image) = (shape.hidden, out);
    }
    let mut map = vec![0.0; side * side * shape.outputs];
    let reads = shape.reads();
    let bias = rest.len() / (reads + 1) * reads;
    for index in 0..side * side {
        for output in 0..shape.outputs {
            let row = if shape.untied { index * shape.outputs + output } else { output };
            let weights = &rest[row * reads..(row + 1) * reads];
            let own = &image[index * channels..(index + 1) * channels];
            let sum: f64 = weights.iter().zip(own.iter().chain(shared_features)).map(|(w, v)| w * v).sum();
            map[index * shape.outputs + output] = sum + rest[bias + row];
        }
    }
    map
}

/// The twin written down once more, slowly, in f64.
fn slow(parts: &FaceParts, controls: &[f64]) -> Vec<DVec3> {
    let run = |layers: &[DenseParts], mut x: Vec<f64>, act: &dyn Fn(usize, f64) -> f64| {
        for (layer, data) in layers.iter().enumerate() {
            let columns = x.len();
            let unit = |row: usize| {
                let weights = &data.weights[row * columns..(row + 1) * columns];
                let sum: f64 = weights.iter().zip(&x).map(|(w, x)| f64::from(*w) * x).sum();
                act(layer, sum + f64::from(data.bias[row]))
            };
            x = (0..data.bias.len()).map(unit).collect();
        }
        x
    };
    let inputs = |inputs: &[u32], mean: &[f32], scale: &[f32]| -> Vec<f64> {
        let one = |((i, m), s): ((&u32, &f32), &f32)| (controls[*i as usize] - f64::from(*m)) * f64::from(*s);
        inputs.iter().zip(mean).zip(scale).map(one).collect()
    };
    let rest: Vec<DVec3> = parts.mesh.positions().iter().map(|p| p.as_dvec3()).collect();
    let mut out = rest.clone();
    for net in &parts.nets {
        let last = net.dense.len() - 1;
        let leak = |layer: usize, x: f64| if x > 0.0 || layer == last { x } else { x * f64::from(LEAK) };
        let numbers = run(&net.dense, inputs(&net.inputs, &net.mean, &net.scale), &leak);
        let map = net.map.as_ref().map(|map| (map, slow_map(&map.shape, &map.parameters, &numbers)));
        for (place, &vertex) in net.vertices.iter().enumerate() {
            out[vertex as usize] += match &map {
                None => DVec3::from_slice(&numbers[3 * place..]),
                Some((parts, map)) => {
                    let (side, at) = (parts.shape.map_side(), parts.coordinates[place]);
                    let corner = at.floor().min(Vec2::splat((side - 2) as f32));
                    let mut sum = DVec3::ZERO;
                    for tap in 0..4 {
                        let (dx, dy) = (tap % 2, tap / 2);
                        let fraction = at - corner;
                        let wx = if dx == 1 { fraction.x } else { 1.0 - fraction.x };
                        let wy = if dy == 1 { fraction.y } else { 1.0 - fraction.y };
                        let pixel = (corner.y as usize + dy) * side + corner.x as usize + dx;
                        sum += DVec3::from_slice(&map[pixel * parts.shape.outputs..]) * f64::from(wx * wy);
                    }
                    sum
                }
            };
        }
    }
    let motion = |parts: &MotionParts| {
        let last = parts.layers.len() - 1;
        let tanh = |layer: usize, x: f64| if layer < last { x.tanh() } else { x };
        let six = run(&parts.layers, inputs(&parts.inputs, &parts.mean, &parts.scale), &tanh);
        let turn = understudy_core::DQuat::from_scaled_axis(DVec3::from_slice(&six));
        let (pivot, shift) = (parts.pivot.as_dvec3(), DVec3::from_slice(&six[3..]));
        move |p: DVec3| turn * (p - pivot) + pivot + shift
    };
    for body in &parts.bodies {
        let transform = motion(&body.motion);
        body.vertices.iter().for_each(|v| out[*v as usize] = transform(rest[*v as usize]));
    }
    for segment in &parts.rigid {
        let count = segment.follows.len() as f64;
        let from = segment.follows.iter().map(|v| rest[*v as usize]).sum::<DVec3>() / count;
        let to = segment.follows.iter().map(|v| out[*v as usize]).sum::<DVec3>() / count;
        let mut m = understudy_core::DMat3::ZERO;
        for v in &segment.follows {
            let (a, b) = (rest[*v as usize] - from, out[*v as usize] - to);
            m += understudy_core::DMat3::from_cols(b * a.x, b * a.y, b * a.z);
        }
        let rotation = rigid::nearest_rotation(&m);
        segment.vertices.iter().for_each(|v| out[*v as usize] = rotation * (rest[*v as usize] - from) + to);
    }
    if let Some(frame) = &parts.frame {
        let transform = motion(frame);
        out.iter_mut().for_each(|p| *p = transform(*p));
    }
    out
}

fn pose(seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..CONTROLS).map(|_| random.uniform(-1.0, 1.0)).collect()
}

#[test]
fn every_path_gives_the_same_vertices() {
    let workers = Workers::new(2).expect("threads start");
    for (seed, outputs) in [(1, 3), (2, 3), (3, 6)] {
        let parts = random_face(seed, outputs);
        let twin = FaceTwin::new(parts.clone(), Precision::Single).expect("a valid twin");
        let reference = FaceTwin::for_kernel(parts.clone(), Precision::Single, Kernel::REFERENCE);
        let reference = reference.expect("a valid twin");
        let mut spaces = [
            (&twin, Workspace::new(&twin, 1), None),
            (&twin, Workspace::new(&twin, 3), Some(&workers)),
            (&reference, Workspace::new(&reference, 1), None),
        ];
        let mut space = GradientSpace::new(&twin);
        let mut out = vec![Vec3::ZERO; twin.vertex_count()];
        for pose_seed in 0..if cfg!(miri) { 1 } else { 20 } {
            let controls = pose(pose_seed);
            let truth = slow(&parts, &controls.iter().map(|c| f64::from(*c)).collect::<Vec<_>>());
            for (twin, space, workers) in &mut spaces {
                twin.evaluate(&controls, space, *workers, &mut out).expect("a valid pose");
                assert!(truth.iter().zip(&out).all(|(a, b)| a.distance(b.as_dvec3()) < 1e-4));
            }
            twin.forward(&controls, &mut space, &mut out).expect("a valid pose");
            assert!(truth.iter().zip(&out).all(|(a, b)| a.distance(b.as_dvec3()) < 1e-4));
        }
    }
}

#[test]
fn rigid_segments_keep_their_shape_and_coarse_leaves_refinement_out() {
    let parts = random_face(4, 3);
    let twin = FaceTwin::new(parts.clone(), Precision::Half).expect("a valid twin");
    let coarse = twin.coarse();
    assert!(twin.has_refinement() && !coarse.has_refinement());
    let (mut a, mut b) = (vec![Vec3::ZERO; twin.vertex_count()], vec![Vec3::ZERO; twin.vertex_count()]);
    twin.evaluate(&pose(1), &mut Workspace::new(&twin, 1), None, &mut a).expect("a valid pose");
    coarse.evaluate(&pose(1), &mut Workspace::new(&coarse, 1), None, &mut b).expect("a valid pose");
    assert!(a[3].distance(b[3]) > 1e-3 && a[6].distance(b[6]) < 1e-5);
    let rest = parts.mesh.positions();
    for (i, group) in (24..30).map(|i| (i, 24..30)).chain((30..36).map(|i| (i, 30..36))) {
        for j in group {
            let (now, before) = (a[i].distance(a[j]), rest[i].distance(rest[j]));
            assert!((now - before).abs() < 1e-4, "{i} {j}: {now} {before}");
        }
    }
}

#[test]
fn the_derivative_by_the_controls_meets_the_checker() {
    // An interpreter has time for one.
    let (seeds, directions) = if cfg!(miri) { (1..2, 1) } else { (1..5, 20) };
    for seed in seeds {
        let parts = random_face(seed, 3);
        let twin = FaceTwin::new(parts.clone(), Precision::Single).expect("a valid twin");
        let mut space = GradientSpace::new(&twin);
        let mut out = vec![Vec3::ZERO; twin.vertex_count()];
        let mut random = Random::new(seed + 50);
        let slopes: Vec<Vec3> =
            out.iter().map(|_| Vec3::from_array([0; 3].map(|_| random.uniform(-1.0, 1.0)))).collect();
        let controls = pose(seed + 100);
        twin.forward(&controls, &mut space, &mut out).expect("a valid pose");
        let mut gradient = vec![0.0; CONTROLS];
        twin.backward(&mut space, &slopes, &mut gradient).expect("fitting arrays");
        let cost =
            |x: &[f64]| slow(&parts, x).iter().zip(&slopes).map(|(v, s)| v.dot(s.as_dvec3())).sum::<f64>();
        let wide = |n: &[f32]| n.iter().map(|n| f64::from(*n)).collect::<Vec<f64>>();
        // A small step: the rectifiers have kinks.
        let miss = directional_miss(cost, &wide(&controls), &wide(&gradient), 1e-6, directions, 3);
        assert!(miss < 1e-4, "{seed}: {miss}");
    }
}

#[test]
fn normals_come_from_maps_or_from_faces() {
    for outputs in [3, 6] {
        let twin = FaceTwin::new(random_face(3, outputs), Precision::Single).expect("a valid twin");
        assert_eq!(twin.with_normals, outputs == 6);
        let mut space = Workspace::new(&twin, 1);
        let mut out = vec![Vec3::ZERO; twin.vertex_count()];
        twin.evaluate(&pose(5), &mut space, None, &mut out).expect("a valid pose");
        let mut normals = vec![Vec3::ZERO; out.len()];
        twin.normals(&space, &out, &mut normals).expect("fitting arrays");
        assert!(normals.iter().all(|n| (n.length() - 1.0).abs() < 1e-5));
        assert!(twin.normals(&space, &out[1..], &mut normals).is_err());
    }
}

#[test]
fn save_load_save_is_the_identity() {
    for precision in [Precision::Half, Precision::Single] {
        let parts = random_face(5, 3);
        let bytes = to_bytes(&parts, precision).expect("a valid twin");
        let twin = Twin::parse(&bytes).expect("what we wrote");
        assert_eq!(twin.method(), "face");
        assert_eq!(twin.to_bytes().expect("a valid twin"), bytes);
        assert_eq!((twin.header(), twin.precision()), (&parts.header, precision));
        let parts = face(twin).parts();
        assert!(FaceTwin::new(parts.clone(), precision).expect("a valid twin").parts() == parts);
    }
}

fn face(twin: Twin) -> FaceTwin {
    match twin {
        Twin::Face(twin) => (*twin).clone(),
        #[cfg(any(feature = "body", feature = "diff", feature = "skin"))]
        _ => panic!("a face is wanted"),
    }
}

/// Before version 3 shared features were rectified: the numbers meant something else.
#[test]
fn twins_whose_shared_features_were_rectified_are_refused() {
    let file = include_bytes!("../../../tests/golden/face-v3.twin");
    let (from, to) = (b"\"understudy\":\"3\"", b"\"understudy\":\"2\"");
    let place = file.windows(from.len()).position(|w| w == from).expect("is in the header");
    let mut old = file.to_vec();
    old[place..place + from.len()].copy_from_slice(to);
    assert_eq!(Twin::parse(&old).map(|_| ()), Err(TwinError::Old { found: 2, least: 3 }));
}

#[test]
fn damaged_files_are_errors_never_panics() {
    let bytes = to_bytes(&random_face(6, 3), Precision::Half).expect("a valid twin");
    let (cuts, places) = if cfg!(miri) { (9_001, 7_001) } else { (97, 1) };
    for length in (0..bytes.len()).step_by(cuts) {
        assert!(Twin::parse(&bytes[..length]).is_err(), "truncated to {length}");
    }
    for place in (0..bytes.len()).step_by(places) {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        if let Ok(twin) = Twin::parse(&flipped) {
            // White space in the JSON header and digits that mean the same may change without harm.
            let again = to_bytes(&face(twin).parts(), Precision::Half).expect("a valid twin");
            assert_eq!(again, bytes, "a flipped bit at {place} changed the twin unnoticed");
        }
    }
}

#[test]
fn bad_parts_poses_and_files_are_named() {
    let parts = random_face(8, 3);
    let fails = |change: &dyn Fn(&mut FaceParts)| {
        let mut changed = parts.clone();
        change(&mut changed);
        FaceTwin::new(changed, Precision::Half).expect_err("not a valid twin")
    };
    assert!(matches!(fails(&|p| p.nets[0].vertices[1] = 0), TwinError::Cover { .. }));
    assert!(matches!(fails(&|p| p.nets[0].vertices[1] = 999), TwinError::Index { .. }));
    assert!(matches!(fails(&|p| p.nets[0].vertices[1] = 30), TwinError::Cover { .. }));
    assert!(matches!(fails(&|p| p.nets[1].inputs[0] = 70), TwinError::Index { .. }));
    assert!(matches!(fails(&|p| p.nets[1].dense[1].bias.truncate(3)), TwinError::Count { .. }));
    assert!(matches!(fails(&|p| p.nets[1].dense[0].weights[2] = f32::NAN), TwinError::Layer { .. }));
    assert!(matches!(fails(&|p| p.rigid[0].follows[0] = 25), TwinError::Part { .. }));
    assert!(matches!(fails(&|p| p.rigid[0].follows[0] = 999), TwinError::Index { .. }));
    assert!(matches!(fails(&|p| p.bodies[0].vertices[0] = 29), TwinError::Cover { .. }));
    assert!(matches!(fails(&|p| p.bodies[0].vertices[0] = 3), TwinError::Cover { .. }));
    assert!(matches!(fails(&|p| p.bodies[0].vertices[0] = 31), TwinError::Cover { .. }));
    assert!(matches!(fails(&|p| p.bodies[0].motion.inputs[0] = 99), TwinError::Index { .. }));
    assert!(matches!(fails(&|p| p.bodies[0].motion.layers[1].bias.truncate(5)), TwinError::Count { .. }));
    assert!(matches!(fails(&|p| p.bodies[0].motion.pivot.y = f32::NAN), TwinError::NonFinite { .. }));
    let map = |p: &mut FaceParts, change: &dyn Fn(&mut MapParts)| {
        change(p.nets[0].map.as_mut().expect("draws a map"));
    };
    assert!(matches!(fails(&|p| map(p, &|m| m.shape.doublings = 40)), TwinError::Part { .. }));
    assert!(matches!(fails(&|p| map(p, &|m| m.coordinates[0].x = f32::NAN)), TwinError::NonFinite { .. }));
    assert!(matches!(fails(&|p| map(p, &|m| m.parameters.truncate(1))), TwinError::Count { .. }));

    let twin = FaceTwin::new(parts.clone(), Precision::Half).expect("a valid twin");
    let mut space = Workspace::new(&twin, 1);
    let mut out = vec![Vec3::ZERO; twin.vertex_count()];
    assert!(matches!(twin.evaluate(&[0.0], &mut space, None, &mut out), Err(PoseError::Count { .. })));
    let mut nan = pose(1);
    nan[3] = f32::NAN;
    let nan = twin.evaluate(&nan, &mut space, None, &mut out);
    assert!(matches!(nan, Err(PoseError::NonFinite { index: 3, .. })));

    assert!(matches!(Twin::parse(b"not a twin"), Err(TwinError::Container(_))));
    let mut large = parts;
    large.nets[1].map.as_mut().expect("has a map").parameters[7] = 1e6;
    assert!(matches!(FaceTwin::new(large, Precision::Half), Err(TwinError::Layer { .. })));
}
