//! A twin of random weights: every path against the reference, damaged files, bad poses.

use super::file::to_bytes;
use super::*;
use crate::dense::Kernel;
use crate::workers::Workers;
use crate::{BoneHeader, Distances, Inputs, PoseError, Training, Twin, TwinError, VERSION};
use understudy_core::skeleton::{into_rigid_frame, rigid_frame};
use understudy_core::{ControlSpec, ControlSpecs, Quat, Random};

const BONES: usize = 9;

fn random_affine(random: &mut Random, spread: f32) -> Affine3A {
    let mut vector = |scale: f32| Vec3::from_array([0; 3].map(|_| random.uniform(-scale, scale)));
    Affine3A::from_rotation_translation(Quat::from_scaled_axis(vector(1.0)), vector(spread))
}

fn number_specs(count: usize) -> ControlSpecs {
    let spec = |c: usize| ControlSpec::number(format!("control{c}"), -1.0, 1.0, 0.0);
    ControlSpecs::new((0..count).map(spec).collect()).expect("valid controls")
}

fn body(twin: Twin) -> BodyTwin {
    match twin {
        Twin::Body(twin) => (*twin).clone(),
        #[cfg(any(feature = "diff", feature = "face", feature = "skin"))]
        _ => panic!("a body is wanted"),
    }
}

/// A twin with groups of 1 to 40 vertices, one of them without a network.
pub(crate) fn random_twin(seed: u64, with_base: bool, controls: usize) -> BodyParts {
    // Odd twins see bones from the group and are seamed.
    let (frame, seamed) = match seed % 2 {
        0 => (InputFrame::Parent, false),
        _ => (InputFrame::Group, true),
    };
    let mut random = Random::new(seed);
    let bones: Vec<BoneHeader> = (0..BONES)
        .map(|b| BoneHeader { name: format!("bone{b}"), parent: (b > 0).then(|| random.below(b)) })
        .collect();
    let sizes = if cfg!(miri) { [1usize, 3, 8, 0, 9, 2] } else { [1, 7, 8, 0, 40, 13] };
    let vertices: usize = sizes.iter().sum();
    let mut order: Vec<u32> = (0..vertices as u32).collect();
    for i in (1..vertices).rev() {
        order.swap(i, random.below(i + 1));
    }
    let mut groups = Vec::new();
    for (index, size) in sizes.into_iter().enumerate() {
        let own: Vec<u32> = order.drain(..size).collect();
        let ghosts: Vec<u32> = order.iter().copied().take(if seamed { 3 } else { 0 }).collect();
        let inputs: Vec<u32> =
            (0..24 + controls as u32).map(|_| random.below(BONES * BONE_INPUTS + controls) as u32).collect();
        let mut layers = Vec::new();
        let mut columns = inputs.len();
        let widths = if index == 1 {
            vec![]
        } else {
            vec![(20, true), (17, true), (5, false), (3 * (size + ghosts.len()), false)]
        };
        let last = widths.len().saturating_sub(1);
        for (layer, (rows, tanh)) in widths.into_iter().enumerate() {
            let scale = 1.0 / (columns as f32).sqrt();
            let storage = match index {
                4 => Storage::Single,
                5 if layer == last => Storage::Fixed,
                _ => Storage::Plain,
            };
            let mut weights: Vec<f32> = (0..rows * columns).map(|_| random.uniform(-scale, scale)).collect();
            if storage == Storage::Fixed {
                weights.iter_mut().for_each(|w| *w = Storage::fixed(*w).expect("in range"));
                // Half of the vertices need no more than the first components.
                weights.chunks_exact_mut(columns).skip(rows / 2).for_each(|row| row[2..].fill(0.0));
            }
            layers.push(LayerParts {
                weights,
                bias: (0..rows).map(|_| random.uniform(-0.5, 0.5)).collect(),
                activation: if tanh { Activation::Tanh } else { Activation::None },
                storage,
            });
            columns = rows;
        }
        groups.push(GroupParts {
            bone: random.below(BONES),
            vertices: own,
            ghosts,
            mean: inputs.iter().map(|_| random.uniform(-1.0, 1.0)).collect(),
            scale: inputs.iter().map(|_| random.uniform(0.1, 0.5)).collect(),
            inputs,
            layers,
        });
    }
    let rows: Vec<Vec<(u16, f32)>> =
        (0..vertices).map(|v| vec![((v % BONES) as u16, 0.25), (((v + 1) % BONES) as u16, 0.75)]).collect();
    BodyParts {
        header: Header {
            rig: "test".into(),
            topology_hash: 7,
            units: "cm".into(),
            inputs: Inputs { bones, controls: number_specs(controls) },
            training: Training {
                poses: 3,
                half_error_mm: Some(Distances { mean: 0.1, max: 0.2 }),
                ..Training::default()
            },
        },
        frame,
        rigid_frames: false,
        rest_vertices: (0..vertices).map(|_| random_affine(&mut random, 60.0).translation.into()).collect(),
        rest_bones: (0..BONES).map(|_| random_affine(&mut random, 60.0)).collect(),
        base: with_base.then(|| SkinWeights::from_rows(&rows, BONES).expect("valid rows")),
        faces: vec![Face::triangle(0, 1, 2), Face::quad(2, 3, 4, 5)],
        seams: seamed.then(|| random_seams(&groups)),
        groups,
    }
}

/// Every ghost's vertex is at a border; the first vertices that are no ghosts follow them.
fn random_seams(groups: &[GroupParts]) -> SeamCorrection {
    let ghosts: Vec<u32> = groups.iter().flat_map(|g| g.ghosts.iter().copied()).collect();
    let mut vertices = ghosts.clone();
    vertices.sort_unstable();
    vertices.dedup();
    let border = vertices.len();
    let (mut offsets, mut sources) = (vec![0], Vec::new());
    for vertex in &vertices {
        sources.extend((0u32..).zip(&ghosts).filter(|(_, ghost)| *ghost == vertex).map(|(place, _)| place));
        offsets.push(sources.len() as u32);
    }
    for vertex in (0..12).filter(|v| !ghosts.contains(v)) {
        let entry = vertices.len() as u32;
        vertices.push(vertex);
        sources.extend([entry - 1, entry / 2]);
        offsets.push(sources.len() as u32);
    }
    let shares = (0..vertices.len()).map(|entry| 1.0 - entry as f32 / 100.0).collect();
    SeamCorrection { vertices, border, shares, offsets, sources }
}

/// Eq. 2.3 and 2.4 written down once more, slowly, in f64 where it matters.
fn slow(parts: &BodyParts, bones: &[Affine3A], controls: &[f32]) -> Vec<Vec3> {
    let mut inputs = Vec::new();
    let rigid = parts.rigid_frames;
    let frame = |bone: &Affine3A| if rigid { rigid_frame(bone) } else { *bone };
    let to_frame =
        |bone: &Affine3A| if rigid { into_rigid_frame(&rigid_frame(bone)) } else { bone.inverse() };
    for (bone, header) in parts.header.inputs.bones.iter().enumerate() {
        let relative = header.parent.map_or(bones[bone], |p| to_frame(&bones[p]) * bones[bone]);
        inputs.extend(relative.to_cols_array());
    }
    inputs.extend_from_slice(controls);
    let mut out = vec![Vec3::ZERO; parts.rest_vertices.len()];
    let mut opinions = Vec::new();
    for group in &parts.groups {
        if parts.frame == InputFrame::Group {
            let to_group = to_frame(&bones[group.bone]);
            let seen = bones.iter().flat_map(|bone| (to_group * *bone).to_cols_array());
            inputs.splice(..BONES * BONE_INPUTS, seen.collect::<Vec<f32>>());
        }
        let pick = |((i, m), s): ((&u32, &f32), &f32)| f64::from((inputs[*i as usize] - m) * s);
        let mut x: Vec<f64> = group.inputs.iter().zip(&group.mean).zip(&group.scale).map(pick).collect();
        for layer in &group.layers {
            let columns = x.len();
            x = (0..layer.bias.len())
                .map(|row| {
                    let weights = &layer.weights[row * columns..(row + 1) * columns];
                    let sum: f64 = weights.iter().zip(&x).map(|(w, x)| f64::from(*w) * x).sum();
                    let sum = sum + f64::from(layer.bias[row]);
                    if layer.activation == Activation::Tanh { sum.tanh() } else { sum }
                })
                .collect();
        }
        for (index, &vertex) in group.vertices.iter().chain(&group.ghosts).enumerate() {
            let rest = parts.rest_vertices[vertex as usize];
            let offset = match group.layers.is_empty() {
                true => Vec3::ZERO,
                false => Vec3::new(x[3 * index] as f32, x[3 * index + 1] as f32, x[3 * index + 2] as f32),
            };
            let carry = |bone: usize| bones[bone] * parts.rest_bones[bone].inverse();
            let linear = match &parts.base {
                None => carry(group.bone).transform_point3(rest),
                Some(base) => {
                    base.row(vertex as usize).map(|(bone, w)| carry(bone).transform_point3(rest) * w).sum()
                }
            };
            let place = linear + frame(&bones[group.bone]).transform_vector3(offset);
            match index < group.vertices.len() {
                true => out[vertex as usize] = place,
                false => opinions.push(place),
            }
        }
    }
    if let Some(seams) = &parts.seams {
        let mut corrections: Vec<Vec3> = Vec::new();
        for (entry, vertex) in seams.vertices.iter().enumerate() {
            let sources = &seams.sources[seams.offsets[entry] as usize..seams.offsets[entry + 1] as usize];
            let own = out[*vertex as usize];
            corrections.push(if entry < seams.border {
                let all: Vec3 = sources.iter().map(|s| opinions[*s as usize]).sum();
                (all + own) / (sources.len() + 1) as f32 - own
            } else {
                let all: Vec3 = sources.iter().map(|s| corrections[*s as usize]).sum();
                all / sources.len() as f32
            });
        }
        for ((vertex, share), correction) in seams.vertices.iter().zip(&seams.shares).zip(&corrections) {
            out[*vertex as usize] += *correction * *share;
        }
    }
    out
}

#[test]
fn every_path_gives_the_same_vertices() {
    let workers = Workers::new(2).expect("threads start");
    for (seed, with_base, controls, rigid) in [
        (1, false, 0, false),
        (2, true, 0, false),
        (3, false, 4, false),
        (4, true, 3, false),
        (5, true, 2, true),
        (6, true, 0, true),
    ] {
        let mut parts = random_twin(seed, with_base, controls);
        parts.rigid_frames = rigid;
        let twin = BodyTwin::new(parts.clone(), Precision::Single).expect("a valid twin");
        let mut random = Random::new(seed + 100);
        let poses = if cfg!(miri) { 3 } else { 270 };
        let mut bones: Vec<Affine3A> = (0..poses * BONES).map(|_| random_affine(&mut random, 50.0)).collect();
        for (index, bone) in bones.iter_mut().enumerate().filter(|_| rigid) {
            // Scale, shear, mirrors, and now and then a bone without any size.
            let mut axis = || if index % 29 == 3 { 0.0 } else { random.uniform(0.2, 3.0) };
            let scale = Vec3::new(axis(), axis(), if index % 7 == 0 { -axis() } else { axis() });
            bone.matrix3 = Affine3A::from_scale(scale).matrix3 * bone.matrix3;
        }
        let values: Vec<f32> = (0..poses * controls).map(|_| random.uniform(-1.0, 1.0)).collect();
        let count = twin.vertex_count();
        let crowds: Vec<(Kernel, Vec<Vec3>)> = Kernel::all()
            .map(|kernel| {
                let mut crowd = vec![Vec3::ZERO; poses * count];
                let mut space = Workspace::for_crowd(&twin, 3).with_kernel(kernel);
                twin.evaluate_crowd(&bones, &values, &mut space, Some(&workers), &mut crowd)
                    .expect("valid poses");
                (kernel, crowd)
            })
            .collect();
        let mut one_space = Workspace::new(&twin, 1);
        let mut two_space = Workspace::new(&twin, 2);
        let mut reference_space = Workspace::new(&twin, 1).with_kernel(Kernel::REFERENCE);
        let mut out = vec![Vec3::ZERO; count];
        for pose in 0..poses {
            let own = &bones[pose * BONES..(pose + 1) * BONES];
            let extra = &values[pose * controls..(pose + 1) * controls];
            let truth = slow(&parts, own, extra);
            let close = |what: &str, got: &[Vec3]| {
                for (a, b) in truth.iter().zip(got) {
                    assert!(a.distance(*b) < 2e-3, "{what}: {a} {b}");
                }
            };
            for (kernel, crowd) in &crowds {
                close(kernel.name(), &crowd[pose * count..(pose + 1) * count]);
            }
            for (what, space, workers) in [
                ("one thread", &mut one_space, None),
                ("two threads", &mut two_space, Some(&workers)),
                ("reference", &mut reference_space, None),
            ] {
                twin.evaluate(own, extra, space, workers, &mut out).expect("a valid pose");
                close(what, &out);
            }
        }
    }
}

#[test]
fn save_load_save_is_the_identity() {
    for precision in [Precision::Half, Precision::Single] {
        let parts = random_twin(5, true, 2);
        let bytes = to_bytes(&parts, precision).expect("a valid twin");
        let twin = Twin::parse(&bytes).expect("what we wrote");
        assert_eq!(twin.to_bytes().expect("a valid twin"), bytes);
        assert_eq!(twin.header(), &parts.header);
        // Packing and unpacking keeps what the precision keeps, with and without a linear base.
        for with_base in [true, false] {
            let packed = BodyTwin::new(random_twin(5, with_base, 2), precision).expect("a valid twin");
            let parts = packed.parts();
            let again = BodyTwin::new(parts.clone(), precision).expect("a valid twin").parts();
            assert!(again == parts, "{precision:?}, base {with_base}");
            if precision == Precision::Single && !with_base {
                let mut given = random_twin(5, with_base, 2);
                let layers = given.groups.iter_mut().flat_map(|group| &mut group.layers);
                let single = layers.filter(|layer| layer.storage == Storage::Single);
                single.for_each(|layer| layer.storage = Storage::Plain);
                assert!(parts == given, "every number comes back");
            }
        }
    }
}

#[test]
fn damaged_files_are_errors_never_panics() {
    let bytes = to_bytes(&random_twin(6, true, 2), Precision::Half).expect("a valid twin");
    let (cuts, places) = if cfg!(miri) { (4_001, 1_999) } else { (97, 1) };
    for length in (0..bytes.len()).step_by(cuts) {
        assert!(Twin::parse(&bytes[..length]).is_err(), "truncated to {length}");
    }
    for place in (0..bytes.len()).step_by(places) {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        match Twin::parse(&flipped) {
            Err(_) => {}
            // White space in the JSON header and digits that mean the same may change without harm.
            Ok(twin) => {
                let again = to_bytes(&body(twin).parts(), Precision::Half).expect("a valid twin");
                assert_eq!(again, bytes, "a flipped bit at {place} changed the twin unnoticed");
            }
        }
    }
}

#[test]
fn other_versions_and_methods_are_named() {
    let bytes = to_bytes(&random_twin(7, false, 0), Precision::Half).expect("a valid twin");
    let replace = |from: &str, to: &str| {
        let text = bytes.windows(from.len()).position(|w| w == from.as_bytes()).expect("is in the header");
        let mut changed = bytes.clone();
        changed[text..text + from.len()].copy_from_slice(to.as_bytes());
        Twin::parse(&changed).expect_err("must not load")
    };
    let version = format!("\"understudy\":\"{VERSION}\"");
    assert_eq!(replace(&version, "\"understudy\":\"9\""), TwinError::Version { found: 9 });
    // Every text is covered: what was changed is found before it is believed.
    assert_eq!(replace("\"method\":\"body\"", "\"method\":\"face\""), TwinError::Checksum);
    assert_eq!(replace("\"units\\\":\\\"cm", "\"units\\\":\\\"mm"), TwinError::Checksum);
}

/// The old checksum took tensors as bytes: read as other numbers of the same size they passed.
#[test]
fn types_and_shapes_are_covered_by_the_checksum() {
    let bytes = to_bytes(&random_twin(6, true, 2), Precision::Half).expect("a valid twin");
    let replace = |from: &str, to: &str| {
        let place = bytes.windows(from.len()).position(|w| w == from.as_bytes()).expect("is in the header");
        let mut changed = bytes.clone();
        changed[place..place + from.len()].copy_from_slice(to.as_bytes());
        Twin::parse(&changed).map(|_| ())
    };
    assert_eq!(replace("\"dtype\":\"F16\"", "\"dtype\":\"I16\""), Err(TwinError::Checksum));
    assert_eq!(replace("\"shape\":[9,12]", "\"shape\":[12,9]"), Err(TwinError::Checksum));
}

#[test]
fn bad_poses_and_parts_are_named() {
    let parts = random_twin(8, false, 1);
    let twin = BodyTwin::new(parts.clone(), Precision::Half).expect("a valid twin");
    let mut space = Workspace::new(&twin, 1);
    let mut out = vec![Vec3::ZERO; twin.vertex_count()];
    let bones = vec![Affine3A::IDENTITY; BONES];
    let few = twin.evaluate(&bones[1..], &[0.0], &mut space, None, &mut out);
    assert!(matches!(few, Err(PoseError::Count { .. })));
    let mut broken = bones.clone();
    broken[3].translation.x = f32::NAN;
    let nan = twin.evaluate(&broken, &[0.0], &mut space, None, &mut out);
    assert!(matches!(nan, Err(PoseError::NonFinite { index: 3, .. })));
    assert!(twin.evaluate(&bones, &[f32::INFINITY], &mut space, None, &mut out).is_err());
    let mut twice = parts.clone();
    twice.groups[0].vertices = twice.groups[2].vertices[..1].to_vec();
    assert!(matches!(BodyTwin::new(twice, Precision::Half), Err(TwinError::Cover { .. })));
    let mut cycle = parts.clone();
    cycle.header.inputs.bones[0].parent = Some(BONES - 1);
    let mut at = BONES - 1;
    while let Some(parent) = parts.header.inputs.bones[at].parent {
        at = parent;
    }
    assert!(matches!(BodyTwin::new(cycle, Precision::Half), Err(TwinError::Cycle { .. })));
    let broken_seams = |change: fn(&mut SeamCorrection)| {
        let mut parts = random_twin(9, false, 1);
        change(parts.seams.as_mut().expect("odd twins are seamed"));
        BodyTwin::new(parts, Precision::Half).map(|_| ()).expect_err("must not pass")
    };
    assert!(matches!(broken_seams(|s| s.sources[0] = 10_000), TwinError::Index { .. }));
    assert!(matches!(broken_seams(|s| s.vertices[0] = 10_000), TwinError::Index { .. }));
    assert!(matches!(broken_seams(|s| s.vertices[1] = s.vertices[0]), TwinError::Cover { .. }));
    assert!(matches!(broken_seams(|s| s.offsets[1] = 0), TwinError::Index { .. }));
    assert!(matches!(broken_seams(|s| s.border = 1000), TwinError::Index { .. }));
    assert!(matches!(broken_seams(|s| s.shares[0] = f32::NAN), TwinError::NonFinite { .. }));
    assert!(matches!(broken_seams(|s| s.offsets.clear()), TwinError::Count { .. }));
    let mut hidden = parts.clone();
    hidden.groups[2].layers[1].storage = Storage::Fixed;
    assert!(matches!(BodyTwin::new(hidden, Precision::Half), Err(TwinError::Layer { layer: 1, .. })));
    let mut beyond = parts.clone();
    beyond.groups[5].layers[3].weights[0] = 1.5;
    assert!(matches!(BodyTwin::new(beyond, Precision::Half), Err(TwinError::Layer { layer: 3, .. })));
    let mut corner = parts.clone();
    corner.faces[1] = Face::quad(0, 1, 2, 900);
    assert!(matches!(BodyTwin::new(corner, Precision::Half), Err(TwinError::Index { index: 900, .. })));
    let mut normals = vec![Vec3::ZERO; twin.vertex_count()];
    let player = Twin::from(twin).player(1);
    assert!(player.normals(&out[1..], &mut normals).is_err());
    player.normals(&parts.rest_vertices, &mut normals).expect("lengths fit");
    assert!((normals[0].length() - 1.0).abs() < 1e-5 && normals[10] == Vec3::ZERO);
    let mut far = parts;
    far.groups[4].inputs[0] = 10_000;
    assert!(matches!(BodyTwin::new(far, Precision::Half), Err(TwinError::Index { .. })));
}
