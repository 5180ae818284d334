//! A body twin from end to end at a small budget: recorded, learned, weighed, exported.

use std::path::Path;
use understudy_core::{ControlSpec, Controls, Random};
use understudy_jobs::Silent;
use understudy_jobs::sample::{SampleConfig, sample};
use understudy_jobs::twin::body::BodyLearning;
use understudy_jobs::twin::eval::{EvalConfig, eval};
use understudy_jobs::twin::export::{ExportConfig, export};
use understudy_jobs::twin::learn::{LearnConfig, learn};
use understudy_jobs::twin::{LearnDetails, Learning};
use understudy_rigs::RigPose;
use understudy_rigs::sampling::Method;
use understudy_runtime::{Pose, Twin, Vec3};

fn config(folder: &Path, output: &str, threads: usize) -> LearnConfig {
    let mut body = BodyLearning::default();
    let settings = &mut body.settings;
    (settings.train.epochs, settings.train.batch, settings.train.rate) = (25, 16, 0.006);
    (settings.component_error, settings.component_share) = (0.3, 1.0);
    let learning = Learning::Body(body);
    LearnConfig { threads, ..LearnConfig::new(folder.join("train"), folder.join(output), learning) }
}

#[test]
fn a_twin_beats_rigid_skinning_and_does_not_depend_on_threads() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let rook = SampleConfig { rig: "rook".into(), ..SampleConfig::default() };
    let train = SampleConfig {
        output: folder.join("train"),
        poses: Some(160),
        method: Some(Method::Sparse),
        ..rook.clone()
    };
    sample(&train, &Silent).expect("poses are recorded");
    let clip =
        SampleConfig { output: folder.join("kick"), clips: vec!["kick".into()], rate: Some(4.0), ..rook };
    sample(&clip, &Silent).expect("a clip is recorded");

    learn(&config(folder, "one.twin", 1), &Silent).expect("a twin is learned");
    let report = learn(&config(folder, "two.twin", 2), &Silent).expect("a twin is learned");
    let bytes = |name: &str| std::fs::read(folder.join(name)).expect("was written");
    assert!(bytes("one.twin") == bytes("two.twin"), "threads changed the twin");
    let LearnDetails::Body(body) = &report.details else { panic!("a body was learned") };
    assert!(report.inputs_probed && body.groups > 20, "{report:?}");
    assert!(!folder.join("two.twin.parts").exists(), "checkpoints stay behind");
    assert_eq!(report.mechanism.as_ref().map(|mechanism| mechanism.kind), Some("exact"));
    posed_by_controls_alone(&bytes("two.twin"));

    let weigh = EvalConfig {
        twin: folder.join("one.twin"),
        test: vec![folder.join("kick")],
        train: Some(folder.join("train")),
        baselines: vec!["rigid".into()],
        report: Some(folder.join("report")),
        ..EvalConfig::default()
    };
    let figures = eval(&weigh, &Silent).expect("the twin is weighed");
    let (twin, rigid) = (&figures.methods["twin"], &figures.methods["rigid"]);
    // 160 poses and 25 epochs are a smoke test: large errors shrink first, which the enveloping error sees.
    assert!(
        twin.ee < rigid.ee.map(|ee| 0.9 * ee) && twin.max_mm < rigid.max_mm,
        "twin {twin:?}, rigid {rigid:?}"
    );
    assert!(figures.page.is_some_and(|page| page.exists()));

    // A hundred is what the best single bone of every vertex leaves, whatever the twin's groups are.
    let again = SampleConfig { output: folder.join("kick-again"), ..clip };
    sample(&again, &Silent).expect("the clip is recorded again");
    let itself = EvalConfig { train: Some(folder.join("kick-again")), report: None, ..weigh.clone() };
    let figures = eval(&itself, &Silent).expect("the twin is weighed");
    for methods in [&figures.methods, &figures.sets["kick"]] {
        assert!(methods["rigid"].ee.is_some_and(|ee| (ee - 100.0).abs() < 0.01), "{methods:?}");
    }

    // Fitted to the test itself, baselines are at least as good there as fitted to training poses.
    let names = ["rigid", "lbs4"].map(str::to_owned).to_vec();
    let both = EvalConfig { baselines: names, fit_on_test: true, report: None, ..weigh.clone() };
    let figures = eval(&both, &Silent).expect("the twin is weighed").methods;
    let ee = |name: &str| figures[name].ee.expect("rook has bones");
    assert!((ee("rigid (on test)") - 100.0).abs() < 0.01 && ee("rigid") > 100.0, "{figures:?}");
    // Bones that a vertex may follow are chosen by few poses of the test: single vertices may be further off, the mean is not.
    assert!(figures["lbs4 (on test)"].mean_mm < figures["lbs4"].mean_mm, "{figures:?}");
    assert_eq!(figures["lbs4"].poses, Some(160));

    let onnx = Some(folder.join("one.onnx"));
    let onnx = ExportConfig { twin: folder.join("one.twin"), onnx, ..ExportConfig::default() };
    let exported = export(&onnx, &Silent).expect("the graph is written").onnx.expect("a graph");
    assert_eq!(exported.bytes, bytes("one.onnx").len());

    // A clip that is recorded in memory is weighed like the dataset of it; another twin goes by its name.
    let live = EvalConfig {
        test: vec![],
        clips: vec!["kick".into()],
        against: vec![("again".into(), folder.join("two.twin"))],
        train: None,
        baselines: vec![],
        report: None,
        ..weigh.clone()
    };
    let figures = eval(&live, &Silent).expect("the clip is played");
    assert_eq!(figures.order, ["twin", "twin, by controls", "again"]);
    let [own, other] = ["twin", "again"].map(|name| &figures.sets["kick"][name]);
    assert!(
        own.mean_mm == other.mean_mm && own.mean_mm > 0.0 && figures.original_ms.is_some(),
        "{figures:?}"
    );
    for (wrong, word) in [
        (EvalConfig { clips: vec!["kik".into()], ..live.clone() }, "did you mean 'kick'"),
        (EvalConfig { rig: Some("mira".into()), ..live.clone() }, "mira"),
        (EvalConfig { against: vec![("twin".into(), folder.join("two.twin"))], ..live }, "two methods"),
    ] {
        let error = eval(&wrong, &Silent).expect_err("nonsense");
        assert!(error.is_bad_input() && error.to_string().contains(word), "{error}");
    }

    let same = EvalConfig { test: vec![folder.join("train")], ..weigh };
    assert!(eval(&same, &Silent).is_err(), "training poses must not be test poses");
}

/// The twin's bones are the rig's, and its vertices those that the rig's bones give.
fn posed_by_controls_alone(bytes: &[u8]) {
    let twin = Twin::parse(bytes).expect("what was learned");
    let rig = understudy_jobs::rigs::open("rook", &Silent).expect("is always there").rig;
    assert_eq!(twin.posing_controls(), Some(rig.specs()));
    let mut player = twin.player(1);
    let [mut by_controls, mut by_bones] = [(); 2].map(|()| vec![Vec3::ZERO; twin.vertex_count()]);
    let mut random = Random::new(3);
    let mut pose = RigPose::default();
    for _ in 0..10 {
        let draw = rig.specs().iter().map(|spec| random.uniform(spec.low, spec.high));
        let controls = Controls(draw.collect());
        rig.evaluate(&controls, &mut pose).expect("finite");
        let value = |spec: &ControlSpec| controls.0[rig.specs().find(&spec.name).expect("the rig has it")];
        let extras: Vec<f32> = twin.header().inputs.controls.iter().map(value).collect();
        let bones = Pose::Bones { bones: &pose.global.0, extras: &extras };
        player.pose(bones, &mut by_bones).expect("a valid pose");
        player.pose(Pose::Controls(&controls.0), &mut by_controls).expect("a valid pose");
        assert!(by_controls.iter().zip(&by_bones).all(|(a, b)| a.distance(*b) < 1e-3));
    }
}
