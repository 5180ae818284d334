//! `learn auto` and active sampling from end to end at a tiny budget: what is tried, what is left out and why, what limits
//! change, what an interruption leaves.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use understudy_core::{
    Affine3A, Bone, ControlSpec, ControlSpecs, Controls, Face, GlobalPose, JointTransform, Mesh, MeshParts,
    Quat, Random, Skeleton, Vec3,
};
use understudy_io::dataset::{Chunk, DatasetHeader, DatasetReader, DatasetRest, DatasetWriter};
use understudy_jobs::sample::Method;
use understudy_jobs::twin::active::{ActiveConfig, record as record_actively, sample_actively};
use understudy_jobs::twin::auto::{AutoConfig, AutoReport, Limits, learn_auto};
use understudy_jobs::twin::open_twin;
use understudy_jobs::{Event, JobError, Silent, Watch, checkpoint_folder, rigs};
use understudy_rigs::{Rig, RigError, RigPose};

const SIDE: u32 = 9;

fn sheet() -> Mesh {
    let mut parts = MeshParts::default();
    for index in 0..SIDE * SIDE {
        parts.positions.push(Vec3::new((index % SIDE) as f32, (index / SIDE) as f32, 0.0));
    }
    for row in 0..SIDE - 1 {
        for column in 0..SIDE - 1 {
            let a = row * SIDE + column;
            parts.faces.push(Face::quad(a, a + 1, a + 1 + SIDE, a + SIDE));
        }
    }
    parts.build().expect("a sheet without texture coordinates")
}

/// A sheet that folds about a bone (recorded, or not) and bulges; with controls, or none.
fn record(folder: &Path, poses: usize, bones: bool, controls: bool) {
    let mesh = sheet();
    let bone = |name: &str, parent, x| Bone {
        name: name.into(),
        parent,
        rest: JointTransform::from_translation(Vec3::X * x),
    };
    let skeleton = Skeleton::new(vec![bone("root", None, 0.0), bone("flap", Some(0), 4.0)]).expect("a chain");
    let names = if controls { &["fold", "bulge"][..] } else { &[] };
    let specs = names.iter().map(|name| ControlSpec::number(*name, -1.0, 1.0, 0.0)).collect();
    let rest = DatasetRest { mesh: mesh.clone(), skeleton: bones.then(|| skeleton.clone()), weights: None };
    let header = DatasetHeader {
        rig: "sheet".into(),
        rig_file: None,
        method: "uniform".into(),
        seed: 1,
        settings: Default::default(),
        controls: ControlSpecs::new(specs).expect("two names"),
        poses,
        chunk_size: poses,
    };
    let writer = DatasetWriter::create(folder, &header, &rest).expect("a new folder");
    let mut chunk = Chunk::with_capacity(writer.shape(), poses);
    let mut random = Random::new(5);
    for _ in 0..poses {
        let (fold, bulge) = (random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0));
        // Without controls nothing but the bones may move anything.
        let bulge = if controls { bulge } else { fold * fold };
        let turn = Affine3A::from_translation(Vec3::X * 4.0)
            * Affine3A::from_quat(Quat::from_rotation_y(fold))
            * Affine3A::from_translation(Vec3::X * -4.0);
        let one = |v: &Vec3| {
            let up = Vec3::Z * bulge * (-(v.x - 4.0).powi(2) * 0.2 - (v.y - 4.0).powi(2) * 0.1).exp();
            if v.x > 4.0 { turn.transform_point3(*v + up) } else { *v + up }
        };
        let vertices: Vec<Vec3> = mesh.positions().iter().map(one).collect();
        let global = match bones {
            true => vec![skeleton.rest_global()[0], turn * skeleton.rest_global()[1]],
            false => Vec::new(),
        };
        let values = if controls { vec![fold, bulge] } else { Vec::new() };
        chunk.push(&Controls(values), &GlobalPose(global), &vertices).expect("the shape fits");
    }
    writer.write_chunk(0, &chunk).expect("a chunk");
    writer.finish().expect("whole");
}

fn config(data: &Path, output: PathBuf) -> AutoConfig {
    AutoConfig {
        data: Some(data.into()),
        output,
        trial_minutes: 0.02,
        minutes: 0.03,
        threads: 2,
        ..AutoConfig::default()
    }
}

fn kinds(report: &AutoReport) -> (Vec<&str>, Vec<&str>) {
    let tried = report.trials.iter().map(|trial| trial.kind).collect();
    (tried, report.left_out.iter().map(|one| one.kind).collect())
}

#[test]
fn what_the_data_allows_is_tried_and_limits_decide() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let data = folder.path().join("data");
    record(&data, 120, false, true);
    let mut settings = config(&data, folder.path().join("best.twin"));
    settings.report = Some(folder.path().join("page"));
    let report = learn_auto(&settings, &Silent).expect("two kinds fit");
    assert_eq!(kinds(&report), (vec!["diff", "skin"], vec!["body", "face"]));
    let reason = |kind: &str| &report.left_out.iter().find(|one| one.kind == kind).expect("left out").reason;
    assert!(reason("body").contains("bones"), "{}", reason("body"));
    assert!(reason("face").contains("texture"), "{}", reason("face"));
    assert!(report.why.contains(report.chosen) && report.why.contains("because"), "{}", report.why);
    assert_eq!(report.trial_poses, [105, 15]);
    assert_eq!(open_twin(&settings.output).expect("was written").method(), report.chosen);
    assert!(!checkpoint_folder(&settings.output).exists(), "trials are gone");
    let page = std::fs::read_to_string(report.page.as_ref().expect("asked for")).expect("a page");
    assert!(page.contains("ms per pose") && page.contains("was left out"));
    assert!(
        folder.path().join("page/error-ms.svg").exists() && folder.path().join("page/error-mb.svg").exists()
    );
    serde_json::to_string(&report).expect("JSON");

    // A budget between the two sizes leaves the smaller one, whichever is better.
    let sizes: Vec<f64> = report.trials.iter().map(|trial| trial.bytes as f64 / 1e6).collect();
    let small = if sizes[0] < sizes[1] { 0 } else { 1 };
    let budget_mb = Some((sizes[0] + sizes[1]) / 2.0);
    let tight = AutoConfig {
        output: folder.path().join("small.twin"),
        limits: Limits { budget_mb, ..Limits::default() },
        ..config(&data, PathBuf::new())
    };
    let report = learn_auto(&tight, &Silent).expect("one fits");
    assert_eq!(report.chosen, report.trials[small].kind, "{}", report.why);
    assert!(report.why.contains("more than"), "{}", report.why);

    // Nothing is that small: one line, and nothing is left.
    let impossible = AutoConfig {
        output: folder.path().join("none.twin"),
        limits: Limits { budget_mb: Some(1e-6), ..Limits::default() },
        ..config(&data, PathBuf::new())
    };
    let error = learn_auto(&impossible, &Silent).expect_err("too small");
    assert!(error.is_bad_input() && error.to_string().contains("--budget-mb"), "{error}");
    assert!(!impossible.output.exists());
}

#[test]
fn bones_without_controls_and_too_few_poses() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let data = folder.path().join("data");
    record(&data, 100, true, false);
    let report = learn_auto(&config(&data, folder.path().join("a.twin")), &Silent).expect("two kinds fit");
    assert_eq!(kinds(&report), (vec!["body", "diff"], vec!["face", "skin"]), "{:?}", report.left_out);

    let few = folder.path().join("few");
    record(&few, 10, true, true);
    let error = learn_auto(&config(&few, folder.path().join("b.twin")), &Silent).expect_err("too few");
    assert!(error.is_bad_input() && error.to_string().contains("10 poses"), "{error}");
    for wrong in [
        AutoConfig { data: None, ..config(&data, folder.path().join("c.twin")) },
        AutoConfig { trial_minutes: f64::NAN, ..config(&data, folder.path().join("c.twin")) },
        AutoConfig { active: true, ..config(&data, folder.path().join("c.twin")) },
    ] {
        assert!(learn_auto(&wrong, &Silent).expect_err("a bad setting").is_bad_input());
    }
}

/// Stops when the chosen twin begins to be learned.
#[derive(Default)]
struct StopsAtTheEnd(AtomicBool);

impl Watch for StopsAtTheEnd {
    fn event(&self, event: Event<'_>) {
        if matches!(event, Event::Note { message } if message.contains("because")) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn should_stop(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn an_interrupted_run_keeps_its_trials() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let data = folder.path().join("data");
    record(&data, 120, true, true);
    let settings = config(&data, folder.path().join("best.twin"));
    let stopped = learn_auto(&settings, &StopsAtTheEnd::default());
    assert!(matches!(stopped, Err(JobError::Stopped)), "{stopped:?}");
    let report = learn_auto(&settings, &Silent).expect("it goes on");
    assert_eq!(kinds(&report).0, ["body", "diff", "skin"]);
    assert!(report.trials.iter().all(|trial| trial.kept), "{:?}", report.trials);
}

#[test]
fn a_rig_is_sampled_first_and_actively_the_same_every_time() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let active = |name: &str, threads: usize| ActiveConfig {
        rig: "rook".into(),
        output: folder.path().join(name),
        poses: 40,
        rounds: 3,
        threads,
        report: Some(folder.path().join("report")),
        ..ActiveConfig::default()
    };
    let report = sample_actively(&active("one", 1), &Silent).expect("rook is always there");
    let sizes: Vec<usize> = report.rounds.iter().map(|round| round.poses).collect();
    assert_eq!((sizes.first(), sizes.last(), sizes.len()), (Some(&10), Some(&40), 4));
    assert!(report.share.is_some_and(|share| share.iter().all(|s| *s > 0.0)), "{:?}", report.share);
    let rows = std::fs::read_to_string(folder.path().join("report/active.csv")).expect("a table");
    assert_eq!(rows.lines().count(), 5, "{rows}");
    sample_actively(&active("two", 2), &Silent).expect("again");
    let read =
        |name: &str| DatasetReader::open(&folder.path().join(name)).expect("whole").chunk(0).expect("poses");
    assert!(read("one").poses() == read("two").poses() && read("one").vertices() == read("two").vertices());
    let wrong = ActiveConfig { poses: 2, ..active("three", 1) };
    assert!(sample_actively(&wrong, &Silent).expect_err("too few").is_bad_input());
    assert!(!wrong.output.exists());
}

/// Rook, who counts how often he is asked.
struct Counted {
    rig: Box<dyn Rig>,
    asked: AtomicUsize,
}

impl Counted {
    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::Relaxed)
    }
}

impl Rig for Counted {
    fn name(&self) -> &str {
        self.rig.name()
    }

    fn specs(&self) -> &ControlSpecs {
        self.rig.specs()
    }

    fn mesh(&self) -> &Mesh {
        self.rig.mesh()
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        self.rig.skeleton()
    }

    fn evaluate_from(&self, rest: &[Vec3], controls: &Controls, out: &mut RigPose) -> Result<(), RigError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.rig.evaluate_from(rest, controls, out)
    }
}

/// Stops once so many poses are done.
struct StopsAt(u64, AtomicBool);

impl Watch for StopsAt {
    fn event(&self, event: Event<'_>) {
        if matches!(event, Event::Step { done } if done >= self.0) {
            self.1.store(true, Ordering::Relaxed);
        }
    }

    fn should_stop(&self) -> bool {
        self.1.load(Ordering::Relaxed)
    }
}

#[test]
fn an_interrupted_active_run_asks_the_rig_only_for_what_is_missing() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let opened = rigs::open("rook", &Silent).expect("rook is always there");
    let rig = Counted { rig: opened.rig, asked: AtomicUsize::new(0) };
    let config = |name: &str| ActiveConfig {
        rig: "rook".into(),
        output: folder.path().join(name),
        poses: 40,
        rounds: 3,
        chunk: Some(8),
        compare: false,
        ..ActiveConfig::default()
    };
    let run = |config: &ActiveConfig, watch: &dyn Watch| record_actively(&rig, Method::Sparse, config, watch);
    let whole = config("whole");
    let report = run(&whole, &Silent).expect("it is recorded");
    assert_eq!((report.resumed_from, rig.asked()), (0, 41), "one pose to see that it answers");

    // Rounds of ten poses: two of them fill two chunks, and half of the third.
    let stopped = config("stopped");
    let failed = run(&stopped, &StopsAt(20, AtomicBool::new(false)));
    assert!(matches!(failed, Err(JobError::Stopped)), "{failed:?}");
    assert_eq!(rig.asked(), 21);
    let report = run(&stopped, &Silent).expect("it goes on");
    assert_eq!((report.resumed_from, rig.asked()), (16, 24));
    let bytes = |config: &ActiveConfig, name: &str| std::fs::read(config.output.join(name)).expect("written");
    let names: Vec<String> = std::fs::read_dir(&whole.output)
        .expect("a folder")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in &names {
        assert!(bytes(&whole, name) == bytes(&stopped, name), "{name} differs from that of one run");
    }

    // Whole: the rig is not asked at all, and nothing changes.
    let before = bytes(&stopped, "dataset.toml");
    assert_eq!(run(&stopped, &Silent).expect("nothing to do").resumed_from, 40);
    assert_eq!(rig.asked(), 0);
    assert!(bytes(&stopped, "dataset.toml") == before);
    // Other settings are another dataset.
    let other = ActiveConfig { rounds: 2, ..stopped };
    assert!(run(&other, &Silent).expect_err("not the same").is_bad_input());
}

#[test]
fn active_sampling_leaves_clips_out() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let config = |exclude: &str| ActiveConfig {
        rig: "rook".into(),
        output: folder.path().join(exclude),
        poses: 8,
        rounds: 1,
        method: Some(Method::Noise),
        exclude: vec![exclude.into()],
        hold_out: 0.1,
        compare: false,
        ..ActiveConfig::default()
    };
    let kick = sample_actively(&config("kick"), &Silent).expect("rook kicks");
    let header = DatasetReader::open(&kick.folder).expect("whole").header().clone();
    assert_eq!(header.settings["exclude"], "kick");
    assert!(header.settings["held_out"].contains("0.1"), "{:?}", header.settings);
    let walk = sample_actively(&config("walk"), &Silent).expect("rook walks");
    let poses = |folder: &Path| DatasetReader::open(folder).expect("whole").chunk(0).expect("poses");
    assert!(poses(&kick.folder).poses() != poses(&walk.folder).poses(), "what is left out changes nothing");
    let error = sample_actively(&config("no such clip"), &Silent).expect_err("an unknown clip");
    assert!(error.is_bad_input() && error.to_string().contains("no such clip"), "{error}");
    assert!(!folder.path().join("no such clip").exists());
    let unused =
        ActiveConfig { method: Some(Method::Sparse), output: folder.path().join("c"), ..config("kick") };
    assert!(sample_actively(&unused, &Silent).expect_err("sparse poses read no clips").is_bad_input());
}
