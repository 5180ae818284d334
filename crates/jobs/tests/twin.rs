//! A body twin from end to end at a small budget: recorded, learned, weighed, exported.

use std::path::Path;
use understudy_jobs::Silent;
use understudy_jobs::sample::{SampleConfig, sample};
use understudy_jobs::twin::eval::{EvalConfig, eval};
use understudy_jobs::twin::export::{ExportConfig, export_onnx};
use understudy_jobs::twin::learn::{LearnBodyConfig, learn_body};
use understudy_rigs::sampling::Method;

fn config(folder: &Path, output: &str, threads: usize) -> LearnBodyConfig {
    let (data, output) = (folder.join("train"), folder.join(output));
    let mut config = LearnBodyConfig { data, output, threads, ..LearnBodyConfig::default() };
    config.settings.train.epochs = 25;
    config.settings.train.batch = 16;
    config.settings.train.rate = 0.006;
    config.settings.component_error = 0.3;
    config.settings.component_share = 1.0;
    config
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

    learn_body(&config(folder, "one.twin", 1), &Silent).expect("a twin is learned");
    let report = learn_body(&config(folder, "two.twin", 2), &Silent).expect("a twin is learned");
    let bytes = |name: &str| std::fs::read(folder.join(name)).expect("was written");
    assert!(bytes("one.twin") == bytes("two.twin"), "threads changed the twin");
    assert!(report.inputs_probed && report.groups > 20, "{report:?}");
    assert!(!folder.join("two.twin.parts").exists(), "checkpoints stay behind");

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
    assert!(twin.ee < 0.9 * rigid.ee && twin.max_cm < rigid.max_cm, "twin {twin:?}, rigid {rigid:?}");
    assert!(figures.page.is_some_and(|page| page.exists()));

    // A hundred is what the best single bone of every vertex leaves, whatever the twin's groups are.
    let again = SampleConfig { output: folder.join("kick-again"), ..clip };
    sample(&again, &Silent).expect("the clip is recorded again");
    let itself = EvalConfig { train: Some(folder.join("kick-again")), report: None, ..weigh.clone() };
    let figures = eval(&itself, &Silent).expect("the twin is weighed");
    for methods in [&figures.methods, &figures.sets["kick"]] {
        assert!((methods["rigid"].ee - 100.0).abs() < 0.01, "{methods:?}");
    }

    let onnx = ExportConfig { twin: folder.join("one.twin"), output: folder.join("one.onnx") };
    let exported = export_onnx(&onnx).expect("the graph is written");
    assert_eq!(exported.bytes, bytes("one.onnx").len());

    let same = EvalConfig { test: vec![folder.join("train")], ..weigh };
    assert!(eval(&same, &Silent).is_err(), "training poses must not be test poses");
}
