//! Laws of the baselines that need no examples of bones alone: delta mush, linear subspaces, key points.

use super::*;
use crate::Recording;
use understudy_core::{
    Bone, ControlSpec, ControlSpecs, Face, GlobalPose, JointTransform, Mesh, MeshParts, Quat, Random,
    Skeleton,
};
use understudy_testkit::Tol;

const ROWS: usize = 9;
const AROUND: usize = 6;

/// A tube along y on two bones, whose skin bulges with a control and with the bend.
fn tube(poses: usize, seed: u64, bones: bool) -> (Recording, SkinWeights) {
    let point = |i: usize| {
        let (row, turn) = (i / AROUND, (i % AROUND) as f32 / AROUND as f32 * std::f32::consts::TAU);
        Vec3::new(2.0 * turn.cos(), row as f32, 2.0 * turn.sin())
    };
    let positions: Vec<Vec3> = (0..ROWS * AROUND).map(point).collect();
    let face = |i: usize| {
        let (row, at) = (i / AROUND, i % AROUND);
        let corner = |row: usize, at: usize| (row * AROUND + at % AROUND) as u32;
        Face::quad(corner(row, at), corner(row, at + 1), corner(row + 1, at + 1), corner(row + 1, at))
    };
    let faces = (0..(ROWS - 1) * AROUND).map(face).collect();
    let mesh: Mesh =
        MeshParts { positions: positions.clone(), faces, ..MeshParts::default() }.build().expect("a tube");
    let bone = |name: &str, parent, height| Bone {
        name: name.into(),
        parent,
        rest: JointTransform::from_translation(Vec3::Y * height),
    };
    let skeleton = Skeleton::new(vec![bone("root", None, 0.0), bone("tip", Some(0), 4.0)]).expect("a chain");
    let share = |v: &Vec3| ((v.y - 2.0) / 4.0).clamp(0.0, 1.0);
    let rows: Vec<Vec<(u16, f32)>> =
        positions.iter().map(|v| vec![(0, 1.0 - share(v)), (1, share(v))]).collect();
    let weights = SkinWeights::from_rows(&rows, 2).expect("convex");
    let specs = ControlSpecs::new(vec![
        ControlSpec::number("bend", -1.0, 1.0, 0.0),
        ControlSpec::number("bulge", 0.0, 1.0, 0.0),
    ]);
    let mut recording = Recording {
        mesh,
        skeleton: bones.then(|| skeleton.clone()),
        specs: specs.expect("two controls"),
        bones: Vec::new(),
        controls: Vec::new(),
        vertices: Vec::new(),
    };
    let mut random = Random::new(seed);
    for _ in 0..poses {
        let (bend, bulge) = (random.uniform(-1.0, 1.0), random.uniform(0.0, 1.0));
        let mut joints = skeleton.rest_pose();
        joints.0[1].rotation = Quat::from_rotation_z(bend);
        if bones {
            // The root goes anywhere: nothing may depend on it.
            joints.0[0].rotation = Quat::from_rotation_x(random.uniform(-3.0, 3.0));
            joints.0[0].translation += Vec3::Z * random.uniform(-50.0, 50.0);
        }
        let mut global = GlobalPose::default();
        skeleton.forward(&joints, &mut global).expect("a pose");
        let matrices: Vec<Affine3A> =
            global.0.iter().zip(skeleton.inverse_bind()).map(|(b, r)| *b * *r).collect();
        let swell = |v: &Vec3| {
            let out = Vec3::new(v.x, 0.0, v.z) * 0.2;
            *v + out * (bulge + bend * bend * (v.y * 0.7).sin())
        };
        let rest: Vec<Vec3> = positions.iter().map(swell).collect();
        let mut out = vec![Vec3::ZERO; rest.len()];
        weights.linear_blend(&matrices, &rest, &mut out);
        recording.controls.extend([bend, bulge]);
        if bones {
            recording.bones.extend(global.0);
        }
        recording.vertices.extend(out);
    }
    (recording, weights)
}

fn with_examples<T>(poses: &Recording, weights: Option<&SkinWeights>, run: impl Fn(&Examples<'_>) -> T) -> T {
    let inverse_rest = poses.skeleton.as_ref().map_or(&[][..], |skeleton| skeleton.inverse_bind());
    run(&Examples { poses, rest: poses.mesh.positions(), inverse_rest, weights })
}

/// Mean distance, cm.
fn error(method: &dyn Approximation, test: &Recording) -> f32 {
    let mut out = vec![Vec3::ZERO; test.mesh.vertex_count()];
    let mut sum = 0.0;
    for pose in 0..test.len() {
        method.evaluate(test.frame(pose), &mut out);
        sum += out.iter().zip(test.vertices_of(pose)).map(|(a, b)| a.distance(*b)).sum::<f32>();
    }
    sum / (test.len() * out.len()) as f32
}

fn furthest(a: &[Vec3], b: &[Vec3]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max)
}

const SKINS: [Baseline; 3] = [Baseline::OwnSkin, Baseline::DeltaMush, Baseline::DirectDeltaMush];

#[test]
fn skins_and_mush_rest_at_rest_and_follow_rigid_motion() {
    let (poses, weights) = tube(10, 1, true);
    let rest = poses.mesh.positions();
    let motion = Affine3A::from_rotation_translation(Quat::from_rotation_y(1.1), Vec3::new(30.0, -4.0, 9.0));
    let moved: Vec<Vec3> = rest.iter().map(|v| motion.transform_point3(*v)).collect();
    with_examples(&poses, Some(&weights), |examples| {
        let fitter = Fitter::new(*examples);
        for baseline in SKINS {
            let method = fitter.fit(baseline);
            for (motion, want) in [(Affine3A::IDENTITY, rest), (motion, &moved)] {
                let bones: Vec<Affine3A> =
                    poses.skeleton().rest_global().iter().map(|bone| motion * *bone).collect();
                let mut out = vec![Vec3::ZERO; rest.len()];
                method.evaluate(Frame { bones: &bones, controls: &[0.0, 0.0], vertices: want }, &mut out);
                let miss = furthest(&out, want);
                assert!(miss < Tol::position_cm(100), "{baseline}: {miss} cm");
            }
        }
    });
}

/// A crease that linear skinning makes is rounded by both, about alike, and the ends stay where they are.
#[test]
fn direct_delta_mush_does_about_what_delta_mush_does() {
    let (poses, weights) = tube(10, 1, true);
    let mut joints = poses.skeleton().rest_pose();
    joints.0[1].rotation = Quat::from_rotation_z(1.2);
    let mut global = GlobalPose::default();
    poses.skeleton().forward(&joints, &mut global).expect("a pose");
    with_examples(&poses, Some(&weights), |examples| {
        let fitter = Fitter::new(*examples);
        let [skin, mush, direct] = SKINS.map(|baseline| {
            let mut out = vec![Vec3::ZERO; examples.rest.len()];
            let frame = Frame { bones: &global.0, controls: &[0.0, 0.0], vertices: examples.rest };
            fitter.fit(baseline).evaluate(frame, &mut out);
            out
        });
        let (to_skin, to_mush) = (furthest(&direct, &skin), furthest(&direct, &mush));
        assert!(to_skin > 0.05 && to_mush < 0.8 * furthest(&mush, &skin) + 0.2, "{to_skin} {to_mush}");
    });
}

#[test]
fn a_rig_without_a_skin_gets_the_fitted_one() {
    let (poses, weights) = tube(40, 3, true);
    let [own, fitted] = [Some(&weights), None].map(|weights| {
        with_examples(&poses, weights, |examples| {
            error(&*Fitter::new(*examples).fit(Baseline::OwnSkin), &poses)
        })
    });
    let direct = with_examples(&poses, None, |examples| {
        error(&*Fitter::new(*examples).fit(Baseline::Skinning4), &poses)
    });
    assert_eq!(fitted, direct);
    assert!(fitted < 1.5 * own, "{fitted} {own}");
}

#[test]
fn more_vectors_leave_less_and_linear_regression_beats_the_mean() {
    for bones in [true, false] {
        let (train, _) = tube(120, 5, bones);
        let (test, _) = tube(40, 6, bones);
        with_examples(&train, None, |examples| {
            let mut before = f32::INFINITY;
            for vectors in [0, 1, 2, 4, 8] {
                let subspace = Subspace::fit(examples, vectors).0;
                assert_eq!(subspace.count(), vectors);
                let mut sum = 0.0;
                for pose in 0..test.len() {
                    let frame = test.frame(pose);
                    let back = subspace.root().motion(frame).inverse();
                    let flat: Vec<f32> =
                        frame.vertices.iter().flat_map(|v| back.transform_point3(*v).to_array()).collect();
                    let off = flat.iter().zip(&subspace.mean).map(|(f, m)| f - m).collect::<Vec<f32>>();
                    let dot = |row: &[f32]| row.iter().zip(&off).map(|(a, b)| a * b).sum::<f32>();
                    let point: Vec<f32> = subspace.rows.chunks_exact(off.len()).map(dot).collect();
                    let mut out = vec![Vec3::ZERO; frame.vertices.len()];
                    subspace.place(frame, &point, &mut out);
                    sum += out.iter().zip(frame.vertices).map(|(a, b)| a.distance(*b)).sum::<f32>();
                }
                assert!(sum < before, "{vectors} vectors: {sum}, fewer: {before}");
                before = sum;
            }
            let mean = LinearSubspace::fit(&train, &Arc::new(Subspace::fit(examples, 0).0), &[]);
            let linear = Fitter::new(*examples).fit(Baseline::LinearSubspace);
            let (mean, linear) = (error(&mean, &test), error(&*linear, &test));
            assert!(linear < 0.3 * mean, "{linear} {mean}");
        });
    }
}

#[test]
fn true_key_points_beat_predicted_ones_and_nothing_else_is_asked_of_the_truth() {
    for bones in [true, false] {
        let (train, _) = tube(200, 7, bones);
        let (test, _) = tube(40, 8, bones);
        with_examples(&train, None, |examples| {
            let fitter = Fitter::new(*examples);
            let errors = [Baseline::KeyPoints, Baseline::PredictedKeyPoints]
                .map(|baseline| error(&*fitter.fit(baseline), &test));
            assert!(errors[0] < 0.5 * errors[1] && errors[1] < 0.2, "{errors:?}");
            for baseline in Baseline::OF_ANY_TWIN {
                if baseline == Baseline::KeyPoints || baseline.needs_bones() && !bones {
                    continue;
                }
                let method = fitter.fit(baseline);
                let (mut blind, mut seeing) = (vec![Vec3::ZERO; examples.rest.len()], examples.rest.to_vec());
                let frame = test.frame(0);
                method.evaluate(frame, &mut seeing);
                method.evaluate(Frame { vertices: examples.rest, ..frame }, &mut blind);
                assert_eq!(blind, seeing, "{baseline} looks at the truth");
            }
        });
    }
}

#[test]
fn fits_are_restored_from_their_parameters() {
    let (train, weights) = tube(60, 9, true);
    let (test, _) = tube(5, 10, true);
    with_examples(&train, Some(&weights), |examples| {
        let fitter = Fitter::new(*examples);
        for baseline in Baseline::OF_ANY_TWIN {
            let fit = fitter.fit(baseline);
            let restored = fitter.restore(baseline, &fit.parameters()).expect("its own parameters");
            assert_eq!(error(&*fit, &test), error(&*restored, &test), "{baseline}");
            assert_eq!((fit.name(), fit.bytes()), (baseline.to_string().as_str(), restored.bytes()));
            assert!(fitter.restore(baseline, &Parameters::default()).is_none(), "{baseline}");
        }
    });
}

/// Two poses, and a recording in which nothing moves: poor fits, but finite ones.
#[test]
fn hardly_any_poses_give_finite_vertices() {
    let (mut constant, _) = tube(1, 11, true);
    for _ in 0..3 {
        constant.bones.extend_from_within(..2);
        constant.controls.extend_from_within(..2);
        constant.vertices.extend_from_within(..ROWS * AROUND);
    }
    for poses in [tube(2, 12, true).0, constant] {
        with_examples(&poses, None, |examples| {
            let fitter = Fitter::new(*examples);
            for baseline in Baseline::OF_ANY_TWIN {
                let miss = error(&*fitter.fit(baseline), &poses);
                assert!(miss.is_finite() && miss < 5.0, "{baseline}: {miss} cm");
            }
        });
    }
}
