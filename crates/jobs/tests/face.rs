//! A face twin from end to end at a small budget, on a face made by formulas: learned, stopped and
//! continued, weighed, exported, transferred; and everything about a dataset that can be wrong.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use understudy_core::remesh::remeshed;
use understudy_core::{
    ControlSpec, ControlSpecs, Controls, Face, GlobalPose, Mesh, MeshParts, Quat, Random, Segments, Vec2,
    Vec3,
};
use understudy_io::dataset::{Chunk, DatasetHeader, DatasetRest, DatasetWriter};
use understudy_jobs::twin::eval::{EvalConfig, eval};
use understudy_jobs::twin::export::{ExportConfig, export};
use understudy_jobs::twin::face::transfer::{TransferConfig, transfer_face};
use understudy_jobs::twin::face::{FaceDetails, FaceLearning, SegmentKind, open_face_twin};
use understudy_jobs::twin::learn::{LearnConfig, LearnReport, learn};
use understudy_jobs::twin::{LearnDetails, Learning, Twin, open_twin};
use understudy_jobs::{Event, JobError, Silent, Watch};
use understudy_learn::face::Schedule;
use understudy_runtime::Pose;
use understudy_runtime::face::{FaceParts, NetParts, Stage};

const SIDE: u32 = 15;

/// A sheet of skin with a slit across its middle, and a tooth behind it.
fn mesh() -> Mesh {
    let mut parts = MeshParts::default();
    for index in 0..SIDE * SIDE {
        let uv = Vec2::new((index % SIDE) as f32, (index / SIDE) as f32) / (SIDE - 1) as f32;
        parts.positions.push(Vec3::new(uv.x * 10.0, uv.y * 10.0, (uv.x * 3.0).sin()));
        parts.uvs.push(uv * 0.8);
    }
    for row in 0..SIDE - 1 {
        for column in 0..SIDE - 1 {
            let a = row * SIDE + column;
            parts.faces.push(Face::quad(a, a + 1, a + 1 + SIDE, a + SIDE));
        }
    }
    let middle = SIDE / 2;
    for column in 1..SIDE - 1 {
        let (old, new) = (middle * SIDE + column, parts.positions.len() as u32);
        parts.positions.push(parts.positions[old as usize]);
        parts.uvs.push(parts.uvs[old as usize]);
        for face in &mut parts.faces {
            if face.corners().iter().all(|v| *v >= middle * SIDE) && face.corners().contains(&old) {
                *face = face.map(|v| if v == old { new } else { v });
            }
        }
    }
    let tooth = parts.positions.len() as u32;
    for corner in 0..8u32 {
        let at = Vec3::new((corner & 1) as f32, (corner >> 1 & 1) as f32, (corner >> 2) as f32);
        parts.positions.push(Vec3::new(4.5, 8.0, -2.0) + at);
        parts.uvs.push(Vec2::new(0.9 + 0.05 * at.x, 0.9 + 0.04 * (at.y + 0.5 * at.z)));
    }
    for quad in [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]] {
        let [a, b, c, d] = quad.map(|corner| tooth + corner);
        parts.faces.push(Face::quad(a, b, c, d));
    }
    let of_vertex = (0..parts.positions.len() as u32).map(|v| u32::from(v >= tooth)).collect();
    parts.segments = Segments { names: vec!["skin".into(), "tooth".into()], of_vertex };
    parts.face_uvs = parts.faces.clone();
    parts.build().expect("a valid mesh")
}

fn specs() -> ControlSpecs {
    let names = ["open", "bulge", "wrinkle", "nod"];
    ControlSpecs::new(names.map(|name| ControlSpec::number(name, 0.0, 1.0, 0.0)).to_vec()).expect("valid")
}

/// The slit opens, a bulge and a wrinkle come up, and everything nods.
fn pose(mesh: &Mesh, c: &[f32]) -> Vec<Vec3> {
    let (names, middle) = (mesh.segments(), SIDE / 2 * SIDE);
    let nod = Quat::from_rotation_x(0.3 * c[3]);
    let one = |(vertex, p): (usize, &Vec3)| {
        let mut q = *p;
        if names.of_vertex[vertex] == 0 {
            let lower = p.y < 5.0 || (vertex as u32) / SIDE == middle / SIDE;
            let along = ((p.x - 2.0) * (8.0 - p.x) / 9.0).max(0.0);
            if lower && (vertex as u32) < SIDE * SIDE {
                q.y -= 1.5 * c[0] * along * (p.y / 5.0).min(1.0);
            }
            let bump = |x: f32, y: f32, r: f32| (-((p.x - x).powi(2) + (p.y - y).powi(2)) / (r * r)).exp();
            q.z += 0.8 * c[1] * bump(3.0, 2.5, 2.0) + 0.1 * c[2] * (p.x * 3.0).sin() * bump(5.0, 8.0, 2.0);
        }
        nod * q
    };
    mesh.positions().iter().enumerate().map(one).collect()
}

fn record(folder: &Path, mesh: &Mesh, poses: usize, seed: u64) {
    let header = DatasetHeader {
        rig: "no such rig".into(),
        rig_file: None,
        method: "uniform".into(),
        seed,
        settings: Default::default(),
        controls: specs(),
        poses,
        chunk_size: poses,
    };
    let rest = DatasetRest { mesh: mesh.clone(), skeleton: None, weights: None };
    let writer = DatasetWriter::create(folder, &header, &rest).expect("an empty folder");
    let mut chunk = Chunk::with_capacity(writer.shape(), poses);
    for index in 0..poses {
        let mut random = Random::stream(seed, index as u64);
        let controls = Controls((0..4).map(|_| random.uniform(0.0, 1.0)).collect());
        let vertices = pose(mesh, &controls.0);
        chunk.push(&controls, &GlobalPose(vec![]), &vertices).expect("fits");
    }
    writer.write_chunk(0, &chunk).expect("can be written");
    writer.finish().expect("all chunks are there");
}

/// What to learn where, and on how many threads.
#[derive(Clone)]
struct Config {
    data: PathBuf,
    output: PathBuf,
    threads: usize,
    face: FaceLearning,
}

fn config(folder: &Path, output: &str, threads: usize) -> Config {
    let mut face = FaceLearning::default();
    let brief = |caps: Vec<usize>| Schedule { caps, check_every: 20, ..Schedule::default() };
    face.settings.hidden = 32;
    face.settings.coarse = brief(vec![260, 40, 10]);
    face.settings.refinement = brief(vec![80, 20, 5]);
    face.settings.most_regions = 3;
    Config { data: folder.join("train"), output: folder.join(output), threads, face }
}

fn learn_face(config: &Config, watch: &dyn Watch) -> Result<(LearnReport, FaceDetails), JobError> {
    let learning = Learning::Face(config.face.clone());
    let mut all = LearnConfig::new(&config.data, &config.output, learning);
    all.threads = config.threads;
    let report = learn(&all, watch)?;
    let LearnDetails::Face(details) = report.details.clone() else { panic!("a face was learned") };
    Ok((report, *details))
}

/// Says stop once training has made some steps.
struct StopAfter(AtomicUsize, usize);

impl Watch for StopAfter {
    fn event(&self, event: Event<'_>) {
        if let Event::Started { what, .. } = event
            && what.starts_with("training")
        {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn should_stop(&self) -> bool {
        // Asked once a step while training.
        self.0.load(Ordering::SeqCst) > 0 && self.0.fetch_add(1, Ordering::SeqCst) > self.1
    }
}

#[test]
fn a_face_twin_from_end_to_end() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let mesh = mesh();
    record(&folder.join("train"), &mesh, 240, 1);
    record(&folder.join("test"), &mesh, 30, 99);

    let (report, face) = learn_face(&config(folder, "one.twin", 1), &Silent).expect("a twin is learned");
    assert!(!report.inputs_probed && face.frame.is_some(), "{:?}", face.frame);
    assert!(face.segments.iter().any(|s| s.name == "tooth" && s.kind == SegmentKind::Body));
    assert!(face.segments[0].glued[0] > 0 && face.segments[0].glued[1] * 4 < face.segments[0].glued[0]);
    assert!(face.coarse.steps_per_second.is_some());
    let held = report.held_back;
    assert!(held.poses > 0 && held.mean_mm < 0.3 * held.base_mean_mm, "better than a face at rest: {held:?}");
    assert!(!folder.join("one.twin.parts").exists(), "checkpoints stay behind");

    // Stopped and continued, on another number of threads: the same bytes.
    let stopped = learn_face(&config(folder, "two.twin", 2), &StopAfter(AtomicUsize::new(0), 50));
    assert!(matches!(stopped, Err(JobError::Stopped)));
    assert!(folder.join("two.twin.parts").exists() && !folder.join("two.twin").exists());
    learn_face(&config(folder, "two.twin", 2), &Silent).expect("goes on");
    let bytes = |name: &str| std::fs::read(folder.join(name)).expect("was written");
    assert!(bytes("one.twin") == bytes("two.twin"), "threads or a stop changed the twin");
    assert!(matches!(open_twin(&folder.join("one.twin")), Ok(Twin::Face(_))));

    let mut dense = config(folder, "dense.twin", 1);
    dense.face.settings.dense = true;
    learn_face(&dense, &Silent).expect("the baseline is learned");
    let weigh = EvalConfig {
        twin: folder.join("one.twin"),
        test: vec![folder.join("test")],
        against: vec![("dense".into(), folder.join("dense.twin"))],
        train: Some(folder.join("train")),
        baselines: vec!["lbs4".into()],
        report: Some(folder.join("report")),
        command: "understudy eval".into(),
        ..EvalConfig::default()
    };
    let figures = eval(&weigh, &Silent).expect("the twin is weighed");
    assert_eq!(figures.methods.keys().collect::<Vec<_>>(), ["coarse", "dense", "lbs4", "twin"]);
    let twin = &figures.methods["twin"];
    // The head nods by up to three centimetres; a few hundred steps leave a few percent of that.
    assert!(twin.mean_mm < 1.5 && twin.normal_deg < 10.0, "{twin:?}");
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("a number, not {value}"));
    let segments = figures.findings["segments"].as_array().expect("a list");
    let tooth = segments.iter().find(|s| s["name"] == "tooth").expect("a segment");
    assert!(tooth["kind"] == "body" && number(&tooth["bends_mm"]) < 1e-2, "{tooth}");
    let teeth = &figures.findings["teeth"];
    assert!(teeth["segments"] == 1 && number(&teeth["bends_mm"]) < 1e-3, "{teeth}");
    assert!(number(&teeth["original_bends_mm"]) < 1e-3, "{teeth}");
    assert_eq!(figures.order, ["twin", "coarse", "dense", "lbs4"]);
    assert_eq!(figures.original_ms, None, "the rig is not at hand");
    assert!(number(&figures.findings["spectrum"]["twin"]["high_share"]) < 0.5);
    let gaps = figures.findings["gaps"]["twin"].clone();
    let [open, stuck, width] = ["open", "stuck", "rms_mm"].map(|key| number(&gaps[key]));
    assert!(number(&gaps["pairs"]) > 0.0 && open > 0.0, "{gaps}");
    // The texture puts both lips into the same pixels: with its coordinates they cannot part.
    let mut glued = config(folder, "glued.twin", 1);
    (glued.face.settings.cut, glued.face.settings.refine) = (false, false);
    learn_face(&glued, &Silent).expect("learns what it can");
    let weigh = EvalConfig {
        twin: folder.join("glued.twin"),
        test: vec![folder.join("test")],
        ..EvalConfig::default()
    };
    let glued = eval(&weigh, &Silent).expect("the twin is weighed").findings["gaps"]["twin"].clone();
    assert_eq!(glued["open"], gaps["open"]);
    assert!(number(&glued["stuck"]) * 2.0 > open, "{glued}");
    assert!(stuck * 20.0 < open && width < 0.3 * number(&glued["rms_mm"]), "{gaps}, glued {glued}");
    assert!(figures.page.is_some_and(|page| page.exists()));

    // Refined once more: what is kept stays what it was, to the last bit.
    let from = |name: &str, twin: &str| {
        let mut config = config(folder, name, 1);
        config.face.from = Some(folder.join(twin));
        config
    };
    let (_, again) = learn_face(&from("again.twin", "one.twin"), &Silent).expect("regions are learned");
    assert!(again.coarse.steps == 0 && again.refinement.is_some_and(|stage| stage.steps > 0));
    let [first, second] =
        ["one.twin", "again.twin"].map(|name| open_face_twin(&folder.join(name)).expect("a twin").parts());
    let coarse = |parts: &FaceParts| -> Vec<NetParts> {
        parts.nets.iter().filter(|net| net.stage == Stage::Coarse).cloned().collect()
    };
    assert_eq!(coarse(&first), coarse(&second));
    assert!(first.frame == second.frame && first.bodies == second.bodies && first.rigid == second.rigid);
    assert!(learn_face(&from("no.twin", "dense.twin"), &Silent).is_err(), "draws no maps");
    let mut coarse_only = from("no.twin", "one.twin");
    coarse_only.face.settings.refine = false;
    assert!(learn_face(&coarse_only, &Silent).is_err(), "nothing to learn");

    let onnx = Some(folder.join("one.onnx"));
    let onnx = ExportConfig { twin: folder.join("one.twin"), onnx, ..ExportConfig::default() };
    let exported = export(&onnx, &Silent).expect("the graph is written").onnx.expect("a graph");
    assert_eq!((exported.bytes, exported.controls.len()), (bytes("one.onnx").len(), 4));

    understudy_io::obj::write(&folder.join("same.obj"), &mesh).expect("can be written");
    let to_obj = |twin: &str, mesh: &str| TransferConfig {
        twin: folder.join(twin),
        mesh: folder.join(mesh),
        output: folder.join("moved.twin"),
        check: vec![folder.join("test")],
    };
    let moved = transfer_face(&to_obj("one.twin", "same.obj"), &Silent).expect("the same texture");
    assert_eq!((moved.to_vertices, moved.outside), (mesh.vertex_count(), 0));
    assert!(moved.check.values().all(|f| (f.ratio - 1.0).abs() < 0.01), "{:?}", moved.check);
    open_face_twin(&folder.join("moved.twin")).expect("a twin");
    understudy_io::obj::write(&folder.join("other.obj"), &remeshed(&mesh)).expect("can be written");
    let moved = transfer_face(&to_obj("one.twin", "other.obj"), &Silent).expect("the same texture");
    assert!(moved.to_vertices > mesh.vertex_count());
    assert_eq!(moved.check.keys().collect::<Vec<_>>(), ["coarse", "twin"]);
    assert!(moved.check.values().all(|f| f.original_mm > 0.0 && f.ratio < 1.5), "{:?}", moved.check);
    assert!(transfer_face(&to_obj("dense.twin", "same.obj"), &Silent).is_err(), "dense twins know one mesh");
}

#[test]
fn bad_datasets_are_named() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let learn = |mesh: &Mesh, poses: usize, name: &str| {
        record(&folder.join(name).join("train"), mesh, poses, 1);
        let mut config = config(&folder.join(name), "out.twin", 1);
        config.face.settings.coarse.caps = vec![3, 1, 1];
        config.face.settings.refinement.caps = vec![2, 1, 1];
        (learn_face(&config, &Silent), config.output)
    };
    let message = |result: Result<_, JobError>| {
        let error = result.map(|_| ()).expect_err("not a dataset for a twin");
        assert!(error.is_bad_input(), "{error}");
        error.to_string()
    };
    assert!(message(learn(&mesh(), 1, "one").0).contains("1 poses"));
    let mut bare = mesh().into_parts();
    (bare.uvs, bare.face_uvs) = (vec![], vec![]);
    assert!(message(learn(&bare.build().expect("valid"), 20, "bare").0).contains("texture coordinates"));

    // Training that diverges says so, whether numbers overflow or not.
    for (rate, name) in [(1e30, "overflow"), (1e2, "far")] {
        record(&folder.join(name).join("train"), &mesh(), 40, 1);
        let mut config = config(&folder.join(name), "out.twin", 1);
        config.face.settings.coarse.rates = vec![rate; 3];
        assert!(message(learn_face(&config, &Silent)).contains("diverged"), "{rate}");
        assert!(!config.output.exists());
    }

    // A segment of two vertices, and one of none.
    let mut tiny = mesh().into_parts();
    tiny.segments.names.extend(["pair".into(), "nobody".into()]);
    tiny.segments.of_vertex[0] = 2;
    tiny.segments.of_vertex[1] = 2;
    let (report, output) = learn(&tiny.build().expect("valid"), 40, "tiny");
    report.expect("learns what it can");
    finite(&output);

    // All texture coordinates in one place.
    let mut folded = mesh().into_parts();
    folded.uvs.iter_mut().for_each(|uv| *uv = Vec2::splat(0.5));
    let (report, output) = learn(&folded.build().expect("valid"), 40, "folded");
    report.expect("learns what it can");
    finite(&output);
}

/// Two halves of the sheet on one half of the texture.
#[test]
fn overlapping_islands_are_learned_side_by_side() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let mut parts = mesh().into_parts();
    // The tooth lies where the skin does.
    let tooth = parts.uvs.len() - 8;
    for (corner, uv) in parts.uvs[tooth..].iter_mut().enumerate() {
        *uv = Vec2::new(0.3 + 0.02 * (corner % 4) as f32, 0.4 + 0.02 * (corner / 4) as f32);
    }
    // One segment for all, so that nothing but the islands keeps them apart.
    parts.segments = Segments::default();
    let overlapping = parts.build().expect("valid");
    record(&folder.join("train"), &overlapping, 120, 3);
    record(&folder.join("test"), &overlapping, 10, 4);
    let mut brief = config(folder, "out.twin", 2);
    brief.face.settings.coarse.caps = vec![150, 20, 5];
    brief.face.settings.refine = false;
    learn_face(&brief, &Silent).expect("learns what it can");
    finite(&brief.output);
    let weigh =
        EvalConfig { twin: brief.output.clone(), test: vec![folder.join("test")], ..EvalConfig::default() };
    let figures = eval(&weigh, &Silent).expect("the twin is weighed");
    assert!(figures.methods["twin"].max_mm.is_finite());
    // A mesh with overlaps can be moved to as well: both islands are found, or an error says why not.
    understudy_io::obj::write(&folder.join("same.obj"), &overlapping).expect("can be written");
    let moved = TransferConfig {
        twin: brief.output.clone(),
        mesh: folder.join("same.obj"),
        output: folder.join("moved.twin"),
        check: vec![],
    };
    transfer_face(&moved, &Silent).expect("the same texture");
    finite(&folder.join("moved.twin"));
}

#[test]
fn damaged_twins_and_sets_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let mesh = mesh();
    record(&folder.join("train"), &mesh, 30, 1);
    record(&folder.join("other"), &remeshed(&mesh), 9, 1);
    let mut brief = config(folder, "out.twin", 1);
    brief.face.settings.coarse.caps = vec![3, 1, 1];
    brief.face.settings.refinement.caps = vec![2, 1, 1];
    learn_face(&brief, &Silent).expect("a twin is learned");
    let bytes = std::fs::read(&brief.output).expect("was written");
    let damaged = folder.join("damaged.twin");
    let refused = |bytes: &[u8]| {
        std::fs::write(&damaged, bytes).expect("a scratch file");
        let error = open_face_twin(&damaged).err()?;
        assert!(error.is_bad_input() && error.to_string().contains("damaged.twin"), "{error}");
        Some(())
    };
    for length in (0..bytes.len()).step_by(bytes.len() / 60) {
        refused(&bytes[..length]).expect("a truncated file is refused");
    }
    // Single bits all over the file, and every one of the first kilobyte, where the directory is.
    let places = (0..1024).chain((1024..bytes.len()).step_by(bytes.len() / 200));
    let unnoticed = places.filter(|place| {
        let mut flipped = bytes.clone();
        flipped[*place] ^= 1 << (place % 8);
        refused(&flipped).is_none()
    });
    // White space between the words of the directory carries nothing.
    assert!(unnoticed.count() < 4);

    let weigh = |twin: &str, test: &str| EvalConfig {
        twin: folder.join(twin),
        test: vec![folder.join(test)],
        ..EvalConfig::default()
    };
    let named = |result: Result<_, JobError>, word: &str| {
        let error = result.map(|_: understudy_jobs::twin::eval::EvalReport| ()).expect_err("bad input");
        assert!(error.is_bad_input() && error.to_string().contains(word), "{error}");
    };
    std::fs::write(&damaged, &bytes[..bytes.len() / 2]).expect("a scratch file");
    named(eval(&weigh("damaged.twin", "train"), &Silent), "damaged.twin");
    named(eval(&weigh("out.twin", "other"), &Silent), "not the twin's");
    named(eval(&weigh("out.twin", "nowhere"), &Silent), "nowhere");
    let twice = EvalConfig { test: vec![folder.join("train"); 2], ..weigh("out.twin", "train") };
    named(eval(&twice, &Silent), "two sets");
    let none = EvalConfig { test: vec![], ..weigh("out.twin", "train") };
    named(eval(&none, &Silent), "no dataset");
    let skin = EvalConfig { baselines: vec!["lbs32".into()], ..weigh("out.twin", "train") };
    named(eval(&skin, &Silent), "--train");
    let odd = EvalConfig {
        baselines: vec!["lbs0".into()],
        train: Some(folder.join("train")),
        ..weigh("out.twin", "train")
    };
    named(eval(&odd, &Silent), "lbs0");

    // A twin of another number of controls or with numbers that are none.
    let twin = open_twin(&brief.output).expect("a twin");
    let mut player = twin.player(1);
    let mut out = vec![Vec3::ZERO; twin.vertex_count()];
    for wrong in [&[0.0; 3][..], &[0.0; 5], &[0.0, f32::NAN, 0.0, 0.0], &[f32::INFINITY, 0.0, 0.0, 0.0]] {
        assert!(player.pose(Pose::Controls(wrong), &mut out).is_err(), "{wrong:?}");
    }
}

/// A twin never gives anything that is not finite.
fn finite(path: &Path) {
    let twin = open_twin(path).expect("a twin");
    let mut player = twin.player(1);
    let mut out = vec![Vec3::ZERO; twin.vertex_count()];
    for controls in [[0.0; 4], [1.0; 4], [0.3, 0.9, 0.1, 0.5]] {
        player.pose(Pose::Controls(&controls), &mut out).expect("a valid pose");
        assert!(out.iter().all(|v| v.is_finite()));
    }
}

#[test]
fn time_is_kept_across_interruptions() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    record(&folder.join("train"), &mesh(), 240, 1);
    let mut timed = config(folder, "timed.twin", 2);
    timed.face.minutes = Some(0.2);
    for schedule in [&mut timed.face.settings.coarse, &mut timed.face.settings.refinement] {
        schedule.patience = usize::MAX;
    }
    let stopped = learn_face(&timed, &StopAfter(AtomicUsize::new(0), 200));
    assert!(matches!(stopped, Err(JobError::Stopped)));
    let (report, face) = learn_face(&timed, &Silent).expect("goes on");
    assert!((0.8 * 12.0..=1.2 * 12.0).contains(&report.seconds), "{} s of 12 s", report.seconds);
    assert!(!face.converged && face.coarse.steps > 200, "{:?}", face.coarse);
}
