//! A differential twin from end to end at a small budget, on a sheet with a slit and a loose tooth: learned, stopped and
//! continued, weighed, exported, timed; and everything that can be wrong with what it is given.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use understudy_core::{
    ControlSpec, ControlSpecs, Controls, Face, GlobalPose, Mesh, MeshParts, Random, Segments, Vec3,
};
use understudy_io::dataset::{Chunk, DatasetHeader, DatasetReader, DatasetRest, DatasetWriter};
use understudy_jobs::info::{InfoConfig, info};
use understudy_jobs::twin::diff::{DiffDetails, DiffLearning, DiffSettings};
use understudy_jobs::twin::eval::{EvalConfig, EvalReport, eval};
use understudy_jobs::twin::export::{ExportConfig, export};
use understudy_jobs::twin::learn::{LearnConfig, LearnReport, learn};
use understudy_jobs::twin::{LearnDetails, Learning, open_twin};
use understudy_jobs::{Event, JobError, Silent, Watch};
use understudy_runtime::Pose;
use understudy_testkit::figures as plain;

const SIDE: u32 = 11;

/// A sheet whose two halves touch (every vertex of the seam twice, as texture seams split a mesh), and a triangle.
fn mesh() -> Mesh {
    let mut parts = MeshParts::default();
    for half in 0..2u32 {
        let first = parts.positions.len() as u32;
        for index in 0..SIDE * SIDE {
            let place = Vec3::new((index % SIDE + half * (SIDE - 1)) as f32, (index / SIDE) as f32, 0.0);
            parts.positions.push(place);
        }
        for row in 0..SIDE - 1 {
            for column in 0..SIDE - 1 {
                let a = first + row * SIDE + column;
                parts.faces.push(Face::quad(a, a + 1, a + 1 + SIDE, a + SIDE));
            }
        }
    }
    let tooth = parts.positions.len() as u32;
    parts.positions.extend([Vec3::new(5.0, 5.0, -3.0), Vec3::new(6.0, 5.0, -3.0), Vec3::new(5.0, 6.0, -3.0)]);
    parts.faces.push(Face::triangle(tooth, tooth + 1, tooth + 2));
    let of_vertex = vec![0; parts.positions.len()];
    parts.segments = Segments { names: vec!["skin".into()], of_vertex };
    parts.build().expect("a valid mesh")
}

fn pose(mesh: &Mesh, c: &[f32]) -> Vec<Vec3> {
    let one = |p: &Vec3| {
        if p.z < -1.0 {
            return *p + Vec3::Y * c[0];
        }
        let bump = |x: f32, y: f32| (-((p.x - x).powi(2) + (p.y - y).powi(2)) / 9.0).exp();
        let z =
            1.5 * c[0] * bump(10.0, 5.0) + c[1] * c[1] * bump(4.0, 3.0) + 0.8 * c[0] * c[2] * bump(15.0, 7.0);
        *p + Vec3::new(0.2 * c[2] * bump(15.0, 3.0), 0.0, z)
    };
    mesh.positions().iter().map(one).collect()
}

/// `dead` is recorded and moves nothing.
fn record(folder: &Path, poses: usize, seed: u64, motion: f32) {
    let mesh = mesh();
    let names = ["lift", "bulge", "pull", "dead"];
    let specs = names.map(|name| ControlSpec::number(name, -1.0, 1.0, 0.0)).to_vec();
    let header = DatasetHeader {
        rig: "no such rig".into(),
        rig_file: None,
        method: "uniform".into(),
        seed,
        settings: Default::default(),
        controls: ControlSpecs::new(specs).expect("valid"),
        poses,
        chunk_size: poses,
    };
    let rest = DatasetRest { mesh: mesh.clone(), skeleton: None, weights: None };
    let writer = DatasetWriter::create(folder, &header, &rest).expect("an empty folder");
    let mut chunk = Chunk::with_capacity(writer.shape(), poses);
    for index in 0..poses {
        let mut random = Random::stream(seed, index as u64);
        let controls = Controls((0..4).map(|_| motion * random.uniform(-1.0, 1.0)).collect());
        let vertices = pose(&mesh, &controls.0);
        chunk.push(&controls, &GlobalPose(vec![]), &vertices).expect("fits");
    }
    writer.write_chunk(0, &chunk).expect("can be written");
    writer.finish().expect("all chunks are there");
}

fn config(folder: &Path, output: &str, threads: usize) -> LearnConfig {
    let settings = DiffSettings {
        widths: vec![48, 48],
        anchor_widths: vec![16, 16],
        components_percent: 8.0,
        anchors_percent: 4.0,
        loss_vertices: 80,
        batch: 32,
        steps: 1500,
        anchor_steps: 900,
        rate: 3e-3,
        ..DiffSettings::default()
    };
    let learning = Learning::Diff(DiffLearning { anchors: None, settings });
    LearnConfig { threads, ..LearnConfig::new(folder.join("train"), folder.join(output), learning) }
}

fn details(report: &LearnReport) -> &DiffDetails {
    match &report.details {
        LearnDetails::Diff(details) => details,
        _ => panic!("a differential twin was learned"),
    }
}

/// Says stop after so many events.
struct StopAfter(AtomicUsize, usize);

impl Watch for StopAfter {
    fn event(&self, _event: Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn should_stop(&self) -> bool {
        self.0.load(Ordering::Relaxed) > self.1
    }
}

#[test]
fn a_twin_is_learned_stopped_continued_weighed_and_exported() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    record(&folder.join("train"), 260, 1, 1.0);
    record(&folder.join("test"), 40, 2, 1.0);
    let report = learn(&config(folder, "one.twin", 1), &Silent).expect("a twin is learned");
    let figures = &details(&report).figures;
    assert_eq!((figures.islands, figures.joined), (2, SIDE as usize), "the seam is joined, the tooth is not");
    assert!(report.held_back.mean_mm < 0.2 * report.held_back.base_mean_mm, "{report:?}");
    assert!(figures.fold.within_limit >= 0.999 && figures.condition > 1.0, "{figures:?}");
    assert!(report.details.lines().iter().any(|line| line.contains("condition number")));
    assert_eq!(figures.idle_controls, ["dead"], "it takes many values and moves nothing");
    let measured = details(&report).map_or_factor.expect("there are anchors");
    assert!(measured.map_ms > 0.0 && measured.factor_ms > 0.0, "{measured:?}");
    assert!(report.details.lines().iter().any(|line| line.contains(measured.faster())));
    assert!(!folder.join("one.twin.parts").exists(), "checkpoints stay behind");

    // Stopped among the anchors, then in the network, then done: the same bytes on two threads.
    for events in [8, 45] {
        let stopped = learn(&config(folder, "two.twin", 2), &StopAfter(AtomicUsize::new(0), events));
        assert!(matches!(stopped, Err(JobError::Stopped)), "{stopped:?}");
        assert!(!folder.join("two.twin").exists());
    }
    let resumed = learn(&config(folder, "two.twin", 2), &Silent).expect("goes on");
    assert!(details(&resumed).resumed[1] > 0, "{resumed:?}");
    let bytes = |name: &str| std::fs::read(folder.join(name)).expect("was written");
    assert!(bytes("one.twin") == bytes("two.twin"), "threads or a stop changed the twin");

    let weigh = EvalConfig {
        twin: folder.join("one.twin"),
        test: vec![folder.join("test")],
        against: vec![("again".into(), folder.join("two.twin"))],
        ..EvalConfig::default()
    };
    let figures = eval(&weigh, &Silent).expect("the twin is weighed");
    let [own, other] = ["twin", "again"].map(|name| &figures.methods[name]);
    assert!(own.mean_mm == other.mean_mm && own.mean_mm < 0.5 && own.mean_mm > 0.0, "{figures:?}");

    check_figures(&figures, folder);

    let onnx = Some(folder.join("one.onnx"));
    let exported = ExportConfig { twin: folder.join("one.twin"), onnx, ..ExportConfig::default() };
    let exported = export(&exported, &Silent).expect("the graph is written").onnx.expect("a graph");
    assert_eq!(exported.controls, ["lift", "bulge", "pull", "dead"]);
    let input = folder.join("one.twin").to_string_lossy().into_owned();
    let facts = info(&InfoConfig { input, ..InfoConfig::default() }, &Silent).expect("can be read");
    let facts = facts.twin.expect("a twin");
    assert_eq!((facts.method, facts.networks[0].stage), ("diff", "differential"));
}

/// The figures of the table, worked out again from what the twin plays, by plain slow formulas.
fn check_figures(report: &EvalReport, folder: &Path) {
    let mut player = open_twin(&folder.join("one.twin")).expect("was learned").player(1);
    let reader = DatasetReader::open(&folder.join("test")).expect("was recorded");
    let mesh = reader.rest().mesh.clone();
    let (mut truth, mut played) = (Vec::new(), Vec::new());
    for record in reader.poses() {
        let record = record.expect("good chunks");
        let mut out = vec![Vec3::ZERO; mesh.vertex_count()];
        player.pose(Pose::Controls(&record.controls.0), &mut out).expect("a valid pose");
        truth.push(record.vertices);
        played.push(out);
    }
    let own = &report.methods["twin"];
    let [mean, p95, max] = plain::distances(&truth, &played).map(|cm| 10.0 * cm);
    for (found, want) in [(own.mean_mm, mean), (own.p95_mm, p95), (own.max_mm, max)] {
        assert!((found - want).abs() <= 1e-6 * want, "{found} {want}");
    }
    let angle = plain::normal_angle(mesh.faces(), &truth, &played);
    // Angles of a hundredth of a degree, from normals in f32.
    assert!((own.normal_deg - angle).abs() <= 1e-5 * (1.0 + angle), "{} {angle}", own.normal_deg);
    // Of forty poses every second one is taken apart, into twenty bands by 48 polynomials.
    let some = |all: &[Vec<Vec3>]| all.iter().step_by(2).cloned().collect::<Vec<_>>();
    let bands = plain::spectrum(mesh.faces(), &some(&truth), &some(&played), 20, 48);
    let bands: Vec<f64> = bands.into_iter().map(|power| 100.0 * power).collect();
    let spectrum = &report.findings["spectrum"]["twin"];
    let (all, high) = (bands.iter().sum::<f64>(), bands[10..].iter().sum::<f64>());
    let found = spectrum["high_power"].as_f64().expect("a number");
    assert!((found - high).abs() <= 1e-6 * all, "{found} {high} of {all}");
}

#[test]
fn what_cannot_be_learned_from_is_named() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    record(&folder.join("train"), 60, 1, 1.0);
    let refuse = |change: &dyn Fn(&mut LearnConfig, &mut DiffLearning), word: &str| {
        let mut config = config(folder, "no.twin", 1);
        let Learning::Diff(mut diff) = config.learning.clone() else { panic!("a differential twin") };
        change(&mut config, &mut diff);
        config.learning = Learning::Diff(diff);
        let error = learn(&config, &Silent).expect_err(word);
        assert!(error.is_bad_input() && error.to_string().contains(word), "{error}");
        assert!(!folder.join("no.twin").exists(), "{word}: something was written");
    };
    let text = |name: &str, content: &str| {
        std::fs::write(folder.join(name), content).expect("can be written");
        folder.join(name)
    };
    let (typo, far, none) =
        (text("typo.txt", "3 # lips\n4, x5\n"), text("far.txt", "3 9999"), text("none.txt", "# nothing\n"));
    refuse(&|_, diff| diff.anchors = Some(typo.clone()), "line 2: 'x5'");
    refuse(&|_, diff| diff.anchors = Some(far.clone()), "anchor 9999 is no vertex");
    refuse(&|_, diff| diff.anchors = Some(none.clone()), "names no anchor");
    refuse(&|_, diff| diff.anchors = Some(folder.join("missing.txt")), "missing.txt");
    refuse(&|_, diff| diff.settings.components_percent = 0.0, "share of components is 0");
    refuse(&|_, diff| diff.settings.components_mm = Some(f64::NAN), "error of components");
    refuse(&|_, diff| diff.settings.skin = understudy_jobs::twin::diff::SkinSource::Rig, "no bones");
    refuse(&|_, diff| diff.settings.rate = 1e12, "diverged");
    record(&folder.join("two"), 2, 3, 1.0);
    refuse(&|config, _| config.data = folder.join("two"), "2 poses are too few");
    record(&folder.join("still"), 40, 3, 0.0);
    refuse(&|config, _| config.data = folder.join("still"), "no control and no bone");
}

#[test]
fn chosen_anchors_are_taken_and_islands_without_one_get_one() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    record(&folder.join("train"), 60, 1, 1.0);
    let list = folder.join("anchors.txt");
    std::fs::write(&list, "0 10 # corners\n60, 110\n").expect("can be written");
    let mut config = config(folder, "chosen.twin", 2);
    if let Learning::Diff(diff) = &mut config.learning {
        diff.anchors = Some(list);
        (diff.settings.steps, diff.settings.anchor_steps) = (60, 40);
        diff.settings.components_mm = Some(0.2);
    }
    let report = learn(&config, &Silent).expect("a twin is learned");
    let figures = &details(&report).figures;
    assert_eq!(figures.anchors, 5, "four of the file and one on the tooth");
    assert!(figures.component_error_mm < 0.2 && figures.components < 40, "{figures:?}");
}
