//! `learn lbs` from end to end: every kind of input, the file that comes out, and the reference results of
//! another program on its own sample.

use std::path::{Path, PathBuf};
use understudy_core::metrics::squared_distance;
use understudy_core::{Affine3A, GlobalPose, Quat, SkinWeights, Vec3};
use understudy_io::gltf;
use understudy_io::npz::NpzWriter;
use understudy_jobs::Silent;
use understudy_jobs::convert::{ConvertConfig, convert};
use understudy_jobs::decompose::{DecomposeConfig, DecomposeReport, DecompositionSettings, decompose};
use understudy_jobs::sample::{SampleConfig, sample};
use understudy_testkit::shared_data;

const SIDES: usize = 8;
const RINGS: usize = 25;
const FRAMES: usize = 24;

/// A beam of quads that three bones bend, smoothly blended.
fn beam() -> (Vec<i32>, Vec<Vec<Vec3>>) {
    let (mut rest, mut rows, mut faces) = (Vec::new(), Vec::new(), Vec::new());
    for ring in 0..RINGS {
        let along = ring as f32 / (RINGS - 1) as f32;
        let hats = [0.0f32, 0.5, 1.0].map(|middle| (1.0 - (along - middle).abs() * 2.0).max(0.0));
        for side in 0..SIDES {
            let angle = side as f32 / SIDES as f32 * std::f32::consts::TAU;
            rest.push(Vec3::new(3.0 * angle.cos(), 40.0 * along, 3.0 * angle.sin()));
            rows.push((0..3u16).zip(hats).filter(|(_, weight)| *weight > 0.0).collect::<Vec<_>>());
            if ring + 1 < RINGS {
                let (next, base) = ((side + 1) % SIDES, ring * SIDES);
                let corners = [base + side, base + next, base + SIDES + next, base + SIDES + side];
                faces.extend(corners.map(|corner| corner as i32));
            }
        }
    }
    let weights = SkinWeights::from_rows(&rows, 3).expect("hats sum to one");
    let frame = |t: usize| {
        let swing = (t as f32 * 0.4).sin();
        let bend = |bone: usize| {
            let turn =
                Quat::from_rotation_z(0.5 * swing * bone as f32) * Quat::from_rotation_x(0.02 * t as f32);
            Affine3A::from_rotation_translation(
                turn,
                Vec3::new(4.0 * swing, 0.3 * t as f32, 0.0) * bone as f32,
            )
        };
        let mut out = vec![Vec3::ZERO; rest.len()];
        weights.linear_blend(&[bend(0), bend(1), bend(2)], &rest, &mut out);
        out
    };
    (faces, (0..FRAMES).map(frame).collect())
}

fn write_archive(path: &Path) -> Vec<Vec<Vec3>> {
    let (faces, frames) = beam();
    let flat: Vec<f32> = frames.iter().flatten().flat_map(|p| p.to_array()).collect();
    let mut npz = NpzWriter::new();
    npz.f32("vertices", &[FRAMES, RINGS * SIDES, 3], &flat).i32("faces", &[faces.len() / 4, 4], &faces);
    npz.f32("rate", &[], &[24.0]);
    std::fs::write(path, npz.finish().expect("valid arrays")).expect("a scratch file");
    frames
}

fn config(data: Vec<PathBuf>, output: PathBuf, bones: usize) -> DecomposeConfig {
    let settings = DecompositionSettings { bones, iterations: 400, tolerance: 1e-7, ..Default::default() };
    DecomposeConfig { data, output, settings, ..DecomposeConfig::default() }
}

fn played(path: &Path, frames: &[Vec<Vec3>]) -> f64 {
    let asset = gltf::read(path).expect("our own file");
    assert!(asset.warnings.is_empty(), "{:?}", asset.warnings);
    let [clip] = &asset.clips[..] else { panic!("one clip") };
    assert_eq!(clip.own_frames(), frames.len());
    let mut squares = 0.0;
    for (index, frame) in frames.iter().enumerate() {
        let found = asset.evaluate(clip, index);
        squares += found.iter().zip(frame).map(|(a, b)| f64::from(a.distance_squared(*b))).sum::<f64>();
    }
    (squares / (frames.len() * frames[0].len()) as f64).sqrt()
}

#[test]
fn frames_become_a_file_that_plays_them() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let archive = folder.join("beam.npz");
    let frames = write_archive(&archive);
    let config = config(vec![archive], folder.join("beam.glb"), 3);
    let report = decompose(&config, &Silent).expect("a good archive");
    assert!(report.rmse_cm < 1e-3, "{report:?}");
    assert!(report.rigid_rmse_cm > 100.0 * report.rmse_cm, "one bone per vertex cannot bend: {report:?}");
    assert_eq!((report.frames, report.bones, report.rate), (FRAMES, 3, 24.0));
    let error = played(&config.output, &frames);
    assert!(
        (error - report.rmse_cm).abs() < 1e-4,
        "the file plays {error}, the report says {}",
        report.rmse_cm
    );

    let first = std::fs::read(&config.output).expect("was written");
    let again = DecomposeConfig { threads: 1, output: folder.join("again.glb"), ..config.clone() };
    decompose(&again, &Silent).expect("again");
    assert!(std::fs::read(&again.output).expect("was written") == first, "threads changed the file");

    // What came out can go in again: a skin is found in a skin.
    let skinned = DecomposeConfig { data: vec![config.output.clone()], ..again };
    let report = decompose(&skinned, &Silent).expect("a good animation");
    assert!(report.rmse_cm < 1e-3 && report.rate == 24.0, "{report:?}");

    let few = DecomposeConfig { frames: Some(6), rate: Some(12.0), ..config };
    let report = decompose(&few, &Silent).expect("a good archive");
    assert_eq!((report.frames, report.rate), (6, 12.0));
}

#[test]
fn eight_bones_a_vertex_take_two_sets() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let output = folder.path().join("mira.glb");
    let data = folder.path().join("data");
    let talk = SampleConfig {
        rig: "mira".into(),
        output: data.clone(),
        clips: vec!["talk".into()],
        rate: Some(2.0),
        ..SampleConfig::default()
    };
    sample(&talk, &Silent).expect("a clip is recorded");
    let settings = DecompositionSettings { bones: 12, influences: 8, iterations: 6, ..Default::default() };
    let config = DecomposeConfig { data: vec![data], output, settings, ..DecomposeConfig::default() };
    let report = decompose(&config, &Silent).expect("a dataset without bones is enough");
    assert_eq!((report.influences, report.rate), (8, 2.0));
    assert!(report.rmse_cm < 0.3 * report.rigid_rmse_cm && report.max_cm > report.p95_cm, "{report:?}");
    let asset = gltf::read(&config.output).expect("our own file");
    assert_eq!(asset.skin.as_ref().expect("a skin").max_influences(), 8);

    // An engine that knows four keeps the largest: the report says what it will show.
    let reader = understudy_io::dataset::DatasetReader::open(&config.data[0]).expect("our own dataset");
    let frames = reader.chunk(0).expect("its chunk");
    let (four, [clip]) = (asset.skin.as_ref().expect("a skin").strongest(4), &asset.clips[..]) else {
        panic!("one clip")
    };
    let clip = clip.sample(&asset.rest_pose(), &[], report.rate).expect("its own rate");
    let (mut global, mut matrices) = (GlobalPose::default(), Vec::new());
    let mut out = vec![Vec3::ZERO; asset.mesh.vertex_count()];
    let mut squared = 0.0;
    for (pose, joints) in clip.poses.iter().enumerate() {
        asset.skeleton.as_ref().expect("bones").forward(joints, &mut global).expect("a pose of the file");
        asset.skeleton.as_ref().expect("bones").skinning_matrices(&global, &mut matrices);
        four.linear_blend(&matrices, asset.mesh.positions(), &mut out);
        squared += squared_distance(&out, &frames.vertices_of(pose));
    }
    let shown = (squared / (clip.poses.len() * out.len()) as f64).sqrt();
    let said = report.four_influences_rmse_cm.expect("more than four");
    assert!((shown - said).abs() < 0.01 * said && said > 1.5 * report.rmse_cm, "{shown} {said} {report:?}");

    // The file goes on as four by default, and as it is where that is wanted.
    let (again, all) = (folder.path().join("four.glb"), folder.path().join("eight.glb"));
    let convert_to = |output: &Path, influences| {
        let input = config.output.display().to_string();
        let config = ConvertConfig { input, output: output.into(), influences, ..ConvertConfig::default() };
        convert(&config, &Silent).expect("our own file").contents.join("; ")
    };
    let said_of_four = convert_to(&again, None);
    assert!(
        said_of_four.contains("4 largest of up to 8") && said_of_four.contains("mm (RMS)"),
        "{said_of_four}"
    );
    assert_eq!(gltf::read(&again).expect("our own file").skin.expect("a skin").max_influences(), 4);
    let said_of_all = convert_to(&all, Some(8));
    assert!(said_of_all.contains("engines that play four"), "{said_of_all}");
    assert_eq!(gltf::read(&all).expect("our own file").skin.expect("a skin").max_influences(), 8);

    let settings = DecompositionSettings { bones: 12, iterations: 6, ..Default::default() };
    let usual = decompose(&DecomposeConfig { settings, ..config }, &Silent).expect("as before");
    assert_eq!((usual.influences, usual.four_influences_rmse_cm), (4, None));
    assert!(usual.rmse_cm < said, "four that were fitted are better than four of eight: {usual:?}");
}

#[test]
fn meshes_one_by_one_and_what_is_wrong_with_them() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let text =
        |lift: f32, face: &str| format!("v 0 0 0\nv 10 0 0\nv 0 {} 0\nv 0 0 10\n{face}\n", 10.0 + lift);
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).expect("a scratch file");
        folder.join(name)
    };
    let face = "f 1 2 3\nf 1 3 4";
    let paths: Vec<PathBuf> = (0..4).map(|i| write(&format!("{i}.obj"), text(i as f32, face))).collect();
    let output = folder.join("out.glb");
    let good = config(paths.clone(), output.clone(), 2);
    assert_eq!(decompose(&good, &Silent).expect("four meshes").frames, 4);
    let whole = config(vec![folder.to_owned()], output.clone(), 2);
    assert_eq!(decompose(&whole, &Silent).expect("a folder of meshes").frames, 4);

    let other = write("other.obj", text(0.0, "f 1 2 4\nf 1 3 4"));
    let empty = folder.join("empty");
    std::fs::create_dir(&empty).expect("a scratch folder");
    let cases: [(Vec<PathBuf>, &str); 6] = [
        (vec![paths[0].clone(), other], "not that of"),
        (vec![empty], "neither a dataset nor"),
        (vec![folder.join("missing.npz")], "missing.npz"),
        (vec![folder.join("rook.twin")], "no such file"),
        (vec![paths[0].clone(), folder.join("x.npz")], "x.npz"),
        (Vec::new(), "no animation"),
    ];
    for (data, word) in cases {
        let error = decompose(&config(data, output.clone(), 2), &Silent).expect_err("not an animation");
        assert!(error.is_bad_input() && error.to_string().contains(word), "{error}");
    }
    let bad = |settings: DecompositionSettings| DecomposeConfig { settings, ..good.clone() };
    let none = bad(DecompositionSettings { bones: 0, ..Default::default() });
    assert!(decompose(&none, &Silent).expect_err("no bones").is_bad_input());
    let picture = DecomposeConfig { output: folder.join("out.png"), ..good };
    assert!(decompose(&picture, &Silent).expect_err("not a .glb").is_bad_input());
}

/// RMSE of Dem Bones' own results for its sample, as the table of the shared data states them.
const REFERENCE: [(usize, f64); 3] = [(5, 0.0267), (10, 0.0155), (20, 0.0099)];

#[test]
fn a_sample_is_met_better_than_its_reference_results() {
    let Some(data) = shared_data() else {
        return eprintln!("skipped a_sample_is_met_better_than_its_reference_results: no shared data");
    };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let fit = |bones: usize| -> DecomposeReport {
        let settings = DecompositionSettings { bones, iterations: 15, ..Default::default() };
        let config = DecomposeConfig {
            data: vec![data.join("dem-bones/Bone_Anim.npz")],
            output: folder.path().join("bone.glb"),
            settings,
            ..DecomposeConfig::default()
        };
        decompose(&config, &Silent).expect("the sample is an animation")
    };
    for (bones, reference) in REFERENCE {
        let report = fit(bones);
        assert!(report.rmse_cm <= reference, "{bones} bones: {} against {reference}", report.rmse_cm);
    }
}
