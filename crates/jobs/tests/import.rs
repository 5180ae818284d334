//! `import`: recorded pairs and plain arrays become datasets that everything else takes.

use std::path::{Path, PathBuf};
use understudy_core::{Controls, Vec3};
use understudy_io::dataset::DatasetReader;
use understudy_io::npz::NpzWriter;

use understudy_jobs::import::{ImportConfig, ImportReport, import};
use understudy_jobs::twin::Learning;
use understudy_jobs::twin::body::BodyLearning;
use understudy_jobs::twin::eval::{EvalConfig, eval};
use understudy_jobs::twin::learn::{LearnConfig, learn};
use understudy_jobs::{JobError, Silent};

fn run(config: &ImportConfig) -> Result<ImportReport, JobError> {
    import(config, &Silent)
}

fn pairs(data: &Path, mesh: &str, output: PathBuf) -> ImportConfig {
    ImportConfig {
        mesh: Some(data.join(mesh)),
        cache: Some(data.join("Bone_Anim.abc")),
        output,
        ..ImportConfig::default()
    }
}

#[test]
fn a_skinned_file_and_its_cache_become_a_dataset() {
    let Some(data) = understudy_testkit::shared_data() else { return };
    let data = data.join("dem-bones");
    let folder = tempfile::tempdir().expect("a scratch folder");
    let config =
        ImportConfig { hold_out: 0.25, ..pairs(&data, "Decomposition_20.fbx", folder.path().join("hero")) };
    let report = run(&config).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((report.poses, report.vertices), (300, 754));
    let alignment = report.alignment.expect("of pairs");
    assert_eq!((alignment.scale, alignment.axes.as_str(), alignment.offset_frames), (1.0, "x y z", 0.0));
    // The decomposition is 0.0073 cm from the cache on average.
    assert!((alignment.mean_mm - 0.073).abs() < 0.03 && alignment.far_count == 0, "{alignment:?}");
    let held = ImportConfig { output: folder.path().join("test"), held_out: true, ..config.clone() };
    assert_eq!(run(&held).expect("the rest").poses, 100);
    let reader = DatasetReader::open(&config.output).expect("complete");
    let (skeleton, weights) = (reader.rest().skeleton.as_ref(), reader.rest().weights.as_ref());
    let (skeleton, weights) = (skeleton.expect("bones"), weights.expect("a skin"));
    let mut matrices = Vec::new();
    for record in reader.poses().step_by(37) {
        let record = record.expect("good chunks");
        skeleton.skinning_matrices(&record.skeleton, &mut matrices);
        let mut skinned = vec![Vec3::ZERO; 754];
        weights.linear_blend(&matrices, reader.rest().mesh.positions(), &mut skinned);
        let far = skinned.iter().zip(&record.vertices).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
        assert!(far < 0.1, "pose {}: {far} cm", record.index);
        assert_eq!(record.controls.0.len(), reader.header().controls.len());
    }
}

#[test]
fn a_pair_is_learned_and_weighed_on_frames_that_were_held_out() {
    let Some(data) = understudy_testkit::shared_data() else { return };
    let data = data.join("dem-bones");
    let folder = tempfile::tempdir().expect("a scratch folder");
    let place = |name: &str| folder.path().join(name);
    let config = ImportConfig { hold_out: 0.25, ..pairs(&data, "Decomposition_20.fbx", place("train")) };
    run(&config).unwrap_or_else(|error| panic!("{error}"));
    run(&ImportConfig { output: place("test"), held_out: true, ..config }).expect("the rest");
    let mut body = BodyLearning::default();
    let train = &mut body.settings.train;
    (train.epochs, train.batch, train.validation) = (30, 16, 0.15);
    let learning = LearnConfig::new(place("train"), place("hero.twin"), Learning::Body(body));
    let learned = learn(&learning, &Silent).unwrap_or_else(|error| panic!("{error}"));
    let weighed = EvalConfig {
        twin: place("hero.twin"),
        test: vec![place("test")],
        train: Some(place("train")),
        baselines: vec!["rigid".into()],
        ..EvalConfig::default()
    };
    let report = eval(&weighed, &Silent).unwrap_or_else(|error| panic!("{error}"));
    let mean = |method: &str| report.methods[method].mean_mm;
    assert_eq!(report.poses, 100);
    assert!(mean("twin") < 0.5 * mean("rigid"), "{} {}", mean("twin"), mean("rigid"));
    // What `learn` says of poses that it held back holds for frames that it never saw.
    let held_back = learned.held_back.mean_mm;
    assert!(mean("twin") < 2.0 * held_back + 0.1, "{} {held_back}", mean("twin"));
}

/// The frames of the cache, displaced in time, turned and scaled, as an archive.
#[test]
fn scale_axes_and_offset_are_found_and_can_be_given() {
    let Some(data) = understudy_testkit::shared_data() else { return };
    let data = data.join("dem-bones");
    let folder = tempfile::tempdir().expect("a scratch folder");
    let cache = understudy_io::alembic::AlembicCache::open(&data.join("Bone_Anim.abc"), &Default::default());
    let cache = cache.expect("a cache");
    let mut flat = Vec::new();
    let mut frame = Vec::new();
    // Twelve frames later, in metres, Z-up.
    for index in 12..112 {
        cache.frame(index, &mut frame).expect("a frame");
        flat.extend(frame.iter().flat_map(|p| [p.x * 0.01, -p.z * 0.01, p.y * 0.01]));
    }
    let faces: Vec<i32> =
        cache.mesh().faces().iter().flat_map(|face| face.raw()).map(|corner| corner as i32).collect();
    let mut npz = NpzWriter::new();
    npz.f32("vertices", &[100, 754, 3], &flat).i32("faces", &[faces.len() / 4, 4], &faces);
    npz.f32("rate", &[], &[24.0]);
    let path = folder.path().join("frames.npz");
    npz.write(&path).expect("writable");
    let config = ImportConfig {
        cache: Some(path),
        ..pairs(&data, "Decomposition_20.fbx", folder.path().join("found"))
    };
    let report = run(&config).unwrap_or_else(|error| panic!("{error}"));
    let found = report.alignment.expect("of pairs");
    // Frame 0 of the archive is frame 12 of a cache that begins at 1/24 s.
    assert_eq!((found.scale, found.axes.as_str(), found.offset_frames.round()), (100.0, "x z −y", 13.0));
    assert!(found.mean_mm < 0.11, "{found:?}");
    let given = ImportConfig {
        cache_scale: Some(100.0),
        cache_up: Some("z".into()),
        offset: Some(13.0),
        output: folder.path().join("given"),
        ..config.clone()
    };
    let given = run(&given).expect("the same").alignment.expect("of pairs");
    assert!((given.mean_mm - found.mean_mm).abs() < 1e-3, "{given:?}");
    // Vertices in another order are no cache of this mesh.
    let mut shuffled = flat.clone();
    let size = 754 * 3;
    for frame in shuffled.chunks_exact_mut(size) {
        let copy = frame.to_vec();
        for vertex in 0..754 {
            let from = (vertex * 389) % 754;
            frame[vertex * 3..vertex * 3 + 3].copy_from_slice(&copy[from * 3..from * 3 + 3]);
        }
    }
    let mut npz = NpzWriter::new();
    npz.f32("vertices", &[100, 754, 3], &shuffled).i32("faces", &[faces.len() / 4, 4], &faces);
    let path = folder.path().join("shuffled.npz");
    npz.write(&path).expect("writable");
    let wrong = run(&ImportConfig { cache: Some(path), output: folder.path().join("wrong"), ..config });
    let error = wrong.expect_err("another order");
    assert!(error.is_bad_input() && error.to_string().contains("in one order"), "{error}");
    assert!(!folder.path().join("wrong").exists());
}

#[test]
fn arrays_become_a_dataset() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let mut npz = NpzWriter::new();
    let frames: Vec<f32> =
        (0..20).flat_map(|f| [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, f as f32 * 0.1, 0.0]).collect();
    let lift: Vec<f32> = (0..20).map(|f| f as f32 / 19.0).collect();
    npz.f32("vertices", &[20, 3, 3], &frames).i32("faces", &[1, 3], &[0, 1, 2]);
    npz.f32("controls", &[20, 1], &lift).strings("control_names", &["lift"]).strings("units", &["m"]);
    let path = folder.path().join("arrays.npz");
    npz.write(&path).expect("writable");
    let config = ImportConfig {
        arrays: Some(path.clone()),
        output: folder.path().join("data"),
        ..ImportConfig::default()
    };
    let report = run(&config).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((report.poses, report.bones, report.controls), (20, 0, 1));
    let reader = DatasetReader::open(&config.output).expect("complete");
    let last = reader.poses().last().expect("twenty").expect("good");
    assert_eq!((last.controls, last.vertices[2]), (Controls(vec![1.0]), Vec3::Y * 190.0));
    // Nothing says what moves it; settings that make no sense.
    let mut npz = NpzWriter::new();
    npz.f32("vertices", &[20, 3, 3], &frames).i32("faces", &[1, 3], &[0, 1, 2]);
    npz.write(&path).expect("writable");
    let error =
        run(&ImportConfig { output: folder.path().join("b"), ..config.clone() }).expect_err("no inputs");
    assert!(error.is_bad_input() && error.to_string().contains("'controls' nor 'bones'"), "{error}");
    for bad in [
        ImportConfig { hold_out: 1.5, ..config.clone() },
        ImportConfig { held_out: true, ..config.clone() },
        ImportConfig { offset: Some(f64::NAN), ..config.clone() },
        ImportConfig { cache_scale: Some(-1.0), ..config },
    ] {
        assert!(run(&bad).expect_err("makes no sense").is_bad_input());
    }
}
