//! The inverse rig from file to file: rigs and targets in every format, weights in every layout, and what
//! is said when the input is wrong.

use std::path::{Path, PathBuf};
use understudy_core::{BlendshapeRig, Face, Mesh, MeshParts, Quat, Shape, Vec3, arkit};
use understudy_io::Dim::Any;
use understudy_io::npz::{NpzReader, NpzWriter};
use understudy_io::{blendshape_npz, live_link, obj};
use understudy_jobs::Silent;
use understudy_jobs::invert::solver::{Alpha, InverseSettings, Method, Missing, RigidSettings, TakeSettings};
use understudy_jobs::invert::{InvertConfig, InvertReport, Layout, invert};
use understudy_testkit::shared_data;
use understudy_testkit::synthetic::{SyntheticRig, random_rig, random_take};

const VERTICES: usize = 60;

struct Scene {
    folder: tempfile::TempDir,
    rig: BlendshapeRig,
    truth: Vec<Vec<f32>>,
    frames: Vec<Vec<Vec3>>,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let rig = random_rig(&SyntheticRig { vertices: VERTICES, ..SyntheticRig::small(3) });
        blendshape_npz::write(&folder.path().join("rig.npz"), &mesh(rig.neutral()), &rig).expect("writable");
        let truth = random_take(rig.shapes().len(), 12, 4);
        let mut frames = vec![vec![Vec3::ZERO; VERTICES]; truth.len()];
        truth.iter().zip(&mut frames).for_each(|(weights, frame)| rig.evaluate(weights, frame));
        let scene = Self { folder, rig, truth, frames };
        scene.write_frames("take.npz", &scene.frames);
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write_frames(&self, name: &str, frames: &[Vec<Vec3>]) {
        let numbers: Vec<f32> = frames.iter().flatten().flat_map(|v| v.to_array()).collect();
        let mut npz = NpzWriter::new();
        npz.f32("vertices", &[frames.len(), frames[0].len(), 3], &numbers);
        npz.write(&self.path(name)).expect("writable");
    }

    fn config(&self, targets: &[&str]) -> InvertConfig {
        InvertConfig {
            rig: self.path("rig.npz").to_string_lossy().into_owned(),
            targets: targets.iter().map(|name| self.path(name)).collect(),
            output: self.path("weights.csv"),
            settings: InverseSettings::default(),
            threads: 2,
            ..InvertConfig::default()
        }
    }

    fn mean_error(&self, weights: &[Vec<f32>]) -> f32 {
        let pairs = weights.iter().flatten().zip(self.truth.iter().flatten());
        pairs.map(|(a, b)| (a - b).abs()).sum::<f32>() / (weights.len() * self.truth[0].len()) as f32
    }
}

fn mesh(positions: &[Vec3]) -> Mesh {
    let corner = |v: usize| v as u32;
    let faces =
        (2..positions.len()).map(|v| Face::triangle(corner(v - 2), corner(v - 1), corner(v))).collect();
    MeshParts { positions: positions.to_vec(), faces, ..MeshParts::default() }.build().expect("a strip")
}

fn run(config: &InvertConfig) -> InvertReport {
    invert(config, &Silent).expect("valid input")
}

#[test]
fn archives_and_meshes_give_their_weights_back_in_every_layout() {
    let scene = Scene::new();
    let report = run(&scene.config(&["take.npz"]));
    assert_eq!((report.frames, report.shapes, report.correctives), (12, 9, vec![8, 6, 4]));
    assert!(report.metrics.rmse_cm < 0.01 && report.solves.len() == 12);
    let table = live_link::read_weights(&scene.path("weights.csv")).expect("a table");
    let names: Vec<String> = scene.rig.shapes().iter().map(|shape| shape.name.clone()).collect();
    assert_eq!((table.names, table.rate), (names.clone(), None));
    assert!(scene.mean_error(&table.frames) < 0.02, "{}", scene.mean_error(&table.frames));

    // The same frames as single meshes, and the weights as an archive.
    let files: Vec<String> = (0..12).map(|frame| format!("scan_{frame:02}.obj")).collect();
    for (file, frame) in files.iter().zip(&scene.frames) {
        obj::write(&scene.path(file), &mesh(frame)).expect("writable");
    }
    let targets: Vec<&str> = files.iter().map(String::as_str).collect();
    run(&InvertConfig { output: scene.path("weights.npz"), ..scene.config(&targets) });
    let npz = NpzReader::read(&scene.path("weights.npz")).expect("an archive");
    assert_eq!(npz.strings("names", &[Any("m")]).expect("names").data, names);
    let weights = npz.f32("weights", &[Any("f"), Any("m")]).expect("weights");
    let frames: Vec<Vec<f32>> = weights.data.chunks_exact(9).map(<[f32]>::to_vec).collect();
    assert!(scene.mean_error(&frames) < 0.02);
}

#[test]
fn arkit_names_become_live_link_columns() {
    let scene = Scene::new();
    let names = ["jawOpen", "mouthSmile_L", "mouthSmileRight", "browInnerUp_L", "browInnerUp_R", "tongueOut"];
    let shapes: Vec<Shape> = names
        .iter()
        .zip(scene.rig.shapes())
        .map(|(name, shape)| Shape { name: (*name).into(), deltas: shape.deltas.clone() })
        .collect();
    let rig = BlendshapeRig::new(scene.rig.neutral().to_vec(), shapes, Vec::new()).expect("valid rig");
    blendshape_npz::write(&scene.path("rig.npz"), &mesh(rig.neutral()), &rig).expect("writable");
    let mut frame = vec![Vec3::ZERO; VERTICES];
    rig.evaluate(&[0.5, 0.25, 0.0, 0.2, 0.6, 1.0], &mut frame);
    scene.write_frames("take.npz", &[frame]);
    run(&scene.config(&["take.npz"]));
    let take = live_link::read(&scene.path("weights.csv")).expect("a Live Link Face file");
    let value = |name: &str| take.frames[0][take.find(name).expect(name)];
    assert_eq!(take.names.len(), arkit::SHAPES.len() + live_link::ROTATIONS.len());
    for (name, want) in [("jawOpen", 0.5), ("mouthSmileLeft", 0.25), ("browInnerUp", 0.4), ("tongueOut", 1.0)]
    {
        assert!((value(name) - want).abs() < 0.01, "{name}: {}", value(name));
    }
    // Plain on demand; and no Live Link without a single name that it knows.
    run(&InvertConfig { layout: Layout::Plain, ..scene.config(&["take.npz"]) });
    assert_eq!(live_link::read_weights(&scene.path("weights.csv")).expect("a table").names, names);
    let other = Scene::new();
    let error = invert(&InvertConfig { layout: Layout::LiveLink, ..other.config(&["take.npz"]) }, &Silent);
    assert!(error.expect_err("no ARKit names").is_bad_input());
}

#[test]
fn options_reach_the_solver_and_the_page_is_written() {
    let scene = Scene::new();
    let mut frames = scene.frames.clone();
    frames.iter_mut().for_each(|frame| frame[5] = Vec3::NAN);
    scene.write_frames("holes.npz", &frames);
    let mut weights = NpzWriter::new();
    weights.f32("weights", &[VERTICES], &[1.0; VERTICES]);
    weights.write(&scene.path("counts.npz")).expect("writable");
    let base = scene.config(&["holes.npz"]);
    let config = InvertConfig {
        settings: InverseSettings { missing: Missing::Ignore, passes: 5, ..InverseSettings::default() },
        take: TakeSettings { smooth: 2.0, sweeps: 3, ..TakeSettings::default() },
        vertex_weights: Some(scene.path("counts.npz")),
        report: Some(scene.path("page/report.html")),
        command: "understudy invert rig.npz holes.npz".into(),
        ..base
    };
    let report = run(&config);
    let smoothing = report.smoothing.expect("it was smoothed");
    assert!(smoothing.objective_after < smoothing.objective_before);
    assert!(report.metrics.rmse_cm.is_finite() && !report.messages.is_empty());
    let page = std::fs::read_to_string(scene.path("page/report.html")).expect("a page");
    for text in
        ["LMMM", "Gauss–Southwell", "understudy invert rig.npz holes.npz", "Does it hold here?", "<svg"]
    {
        assert!(page.contains(text), "{text}");
    }
    let auto = InvertConfig { choose_alpha: true, noise_cm: 0.05, ..scene.config(&["take.npz"]) };
    let report = run(&auto);
    let choice = report.alpha_choice.expect("a curve");
    assert_eq!(choice.alpha, report.settings.alpha);
    assert!(choice.chosen > 0 && choice.points.len() > 10);
    assert!(report.messages.iter().any(|message| message.contains("α = ")), "{:?}", report.messages);
}

#[test]
fn bad_input_is_named_and_nothing_is_written() {
    let scene = Scene::new();
    let fails = |config: &InvertConfig, words: &[&str]| {
        let error = invert(config, &Silent).expect_err("bad input");
        let message = error.to_string();
        assert!(error.is_bad_input() && !message.contains('\n'), "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert!(!config.output.exists(), "{message}");
    };
    let ok = scene.config(&["take.npz"]);
    scene.write_frames("other.npz", &[vec![Vec3::ZERO; 7]]);
    fails(&scene.config(&["other.npz"]), &["other.npz", "7 vertices", "60"]);
    obj::write(&scene.path("other.obj"), &mesh(&scene.frames[0][..30])).expect("writable");
    fails(&scene.config(&["take.npz", "other.obj"]), &["other.obj", "30 vertices", "60"]);
    let mut frames = scene.frames.clone();
    frames[3][9].y = f32::NAN;
    scene.write_frames("nan.npz", &frames);
    fails(&scene.config(&["take.npz", "nan.npz"]), &["nan.npz", "frame 3", "vertex 9"]);
    fails(&scene.config(&["missing.npz"]), &["missing.npz"]);
    fails(&scene.config(&["take.mov"]), &["take.mov"]);
    fails(&InvertConfig { targets: vec![], ..ok.clone() }, &["targets"]);
    fails(&InvertConfig { output: scene.path("weights.txt"), ..ok.clone() }, &["weights.txt", ".csv"]);
    fails(&InvertConfig { rig: "nobody".into(), ..ok.clone() }, &["nobody"]);
    fails(&InvertConfig { noise_cm: f64::NAN, ..ok.clone() }, &["noise"]);
    let settings = |change: fn(&mut InverseSettings)| {
        let mut config = ok.clone();
        change(&mut config.settings);
        config
    };
    fails(&settings(|s| s.alpha = Alpha::Share(-1.0)), &["alpha", "-1"]);
    fails(&settings(|s| s.exclusive = vec![vec!["frown".into()]]), &["frown"]);
    let smooth = TakeSettings { smooth: 1.0, ..TakeSettings::default() };
    let joshi = settings(|s| s.method = Method::Joshi);
    fails(&InvertConfig { take: smooth, ..joshi }, &["Joshi"]);
    let mut short = NpzWriter::new();
    short.f32("weights", &[3], &[1.0; 3]);
    short.write(&scene.path("short.npz")).expect("writable");
    fails(
        &InvertConfig { vertex_weights: Some(scene.path("short.npz")), ..ok.clone() },
        &["short.npz", "weights"],
    );

    // Rigs that are wrong.
    let rig = |name: &str, names: [&str; 2], corrective: Option<[i32; 2]>| {
        let mut npz = NpzWriter::new();
        npz.f32("neutral", &[3, 3], &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
        npz.i32("faces", &[1, 3], &[0, 1, 2]);
        npz.strings("names", &names);
        npz.f32("deltas", &[2, 3, 3], &[1.0; 18]);
        if let Some(shapes) = corrective {
            npz.i32("corrective_2_index", &[1, 2], &shapes);
            npz.f32("corrective_2_deltas", &[1, 3, 3], &[1.0; 9]);
        }
        npz.write(&scene.path(name)).expect("writable");
        InvertConfig { rig: scene.path(name).to_string_lossy().into_owned(), ..ok.clone() }
    };
    fails(&rig("twice.npz", ["a", "a"], None), &["twice.npz", "'a'"]);
    fails(&rig("unknown.npz", ["a", "b"], Some([0, 5])), &["unknown.npz", "5"]);
}

#[test]
fn empty_shapes_are_held_at_zero_and_named() {
    let scene = Scene::new();
    let mut shapes = scene.rig.shapes().to_vec();
    shapes.push(Shape { name: "tongueOut".into(), deltas: Default::default() });
    let rig = BlendshapeRig::new(scene.rig.neutral().to_vec(), shapes, Vec::new()).expect("valid rig");
    blendshape_npz::write(&scene.path("rig.npz"), &mesh(rig.neutral()), &rig).expect("writable");
    let report = run(&scene.config(&["take.npz"]));
    assert_eq!(report.unseen_shapes, ["tongueOut"]);
    let named = |message: &&String| message.contains("tongueOut") && message.contains("held at zero");
    assert_eq!(report.messages.iter().filter(named).count(), 1, "{:?}", report.messages);
    let table = live_link::read_weights(&scene.path("weights.csv")).expect("a table");
    assert!(table.frames.iter().all(|frame| frame[9] == 0.0));
}

#[test]
fn head_motion_is_hinted_at_where_it_explains_what_is_left() {
    let scene = Scene::new();
    let hints = |report: &InvertReport| report.messages.iter().filter(|m| m.contains("--head all")).count();
    assert_eq!(hints(&run(&scene.config(&["take.npz"]))), 0);
    // Noise is no motion.
    assert_eq!(hints(&run(&InvertConfig { noise_cm: 0.05, ..scene.config(&["take.npz"]) })), 0);
    let turn = Quat::from_rotation_y(0.1);
    let moved: Vec<Vec<Vec3>> = scene
        .frames
        .iter()
        .map(|frame| frame.iter().map(|vertex| turn * *vertex + Vec3::new(0.0, 2.0, 0.5)).collect())
        .collect();
    scene.write_frames("moved.npz", &moved);
    let config = scene.config(&["moved.npz"]);
    let plain = run(&config);
    assert_eq!(hints(&plain), 1, "{:?}", plain.messages);
    let rigid = Some(RigidSettings::default());
    let taken_out = run(&InvertConfig { take: TakeSettings { rigid, ..TakeSettings::default() }, ..config });
    assert_eq!(hints(&taken_out), 0);
    assert!(taken_out.metrics.rmse_cm < 0.2 * plain.metrics.rmse_cm);
}

#[test]
fn a_morph_animation_gives_its_own_weights_back() {
    let Some(data) = shared_data() else { return };
    let file = data.join("gltf/MorphStressTest/MorphStressTest.glb");
    let folder = tempfile::tempdir().expect("a scratch folder");
    let config = InvertConfig {
        rig: file.to_string_lossy().into_owned(),
        targets: vec![file.clone()],
        output: folder.path().join("weights.csv"),
        settings: InverseSettings::default(),
        threads: 2,
        ..InvertConfig::default()
    };
    let report = run(&config);
    assert!(report.frames > 10 && report.metrics.rmse_cm < 1e-3, "{:?}", report.metrics);
    check_against_clip(&file, &config.output);
}

fn check_against_clip(file: &Path, weights: &Path) {
    let asset = understudy_io::gltf::read(file).expect("a good file");
    let table = live_link::read_weights(weights).expect("a table");
    let truth = asset.frames(&asset.clips[0], None).expect("its own rate").shape_weights;
    assert_eq!(table.frames.len(), truth.len());
    for (found, want) in table.frames.iter().zip(&truth) {
        assert!(
            found.iter().zip(want).all(|(a, b)| (a - b.clamp(0.0, 1.0)).abs() < 0.01),
            "{found:?} {want:?}"
        );
    }
}
