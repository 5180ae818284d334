//! A rig in another program, with the reference client in Python: what it answers, and what becomes of accidents. The
//! program's own tests sample and learn such rigs from end to end.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use understudy_core::{Controls, Vec3};
use understudy_rigs::external::{Address, ExternalOptions, ExternalRig};
use understudy_rigs::sampling::{Method, SamplingConfig};
use understudy_rigs::{Incident, Rig, RigPose};

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn open(command: &str, patience: f64) -> ExternalRig {
    let options =
        ExternalOptions { patience: Duration::from_secs_f64(patience), ..ExternalOptions::default() };
    ExternalRig::open(Address::parse(command).expect("an address"), options).expect("a rig")
}

/// Evaluates poses in batches; gives the vertices and what was heard.
fn evaluate(rig: &ExternalRig, poses: &[Controls], batch: usize) -> (Vec<Vec<Vec3>>, Vec<Incident>) {
    let (mut vertices, mut heard) = (Vec::new(), Vec::new());
    for some in poses.chunks(batch) {
        let mut out = vec![RigPose::default(); some.len()];
        rig.evaluate_batch(some, &mut out, &mut |incident| heard.push(incident))
            .expect("it gives every pose");
        vertices.extend(out.into_iter().map(|pose| pose.vertices));
    }
    (vertices, heard)
}

fn poses(rig: &ExternalRig) -> Vec<Controls> {
    let config = SamplingConfig { method: Method::Uniform, ..SamplingConfig::default() };
    let source = config.build(rig.specs(), rig.clips()).expect("valid");
    (0..96).map(|index| source.pose(index)).collect()
}

#[test]
fn accidents_change_no_pose() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let plain =
        open(&format!("cmd:python3 '{}'", project().join("docs/guides/rig_client.py").display()), 60.0);
    let poses = poses(&plain);
    let (wanted, heard) = evaluate(&plain, &poses, 8);
    assert!(heard.is_empty());
    assert_eq!(evaluate(&plain, &poses, 1).0, wanted, "batches change nothing");
    for (accident, patience, says) in [
        ("kill", 60.0, "signal: 9"),
        ("hang", 1.5, "no answer in 1.5 s"),
        ("nan", 60.0, "vertex 1 is not finite"),
        ("count", 60.0, "were expected"),
        ("print", 60.0, "begins with 'Traceback:"),
        ("raise", 60.0, "the solver did not converge"),
    ] {
        let script = project().join("apps/cli/tests/disturbed_rig.py");
        let note = folder.path().join(accident);
        let rig =
            open(&format!("cmd:python3 '{}' {accident} '{}'", script.display(), note.display()), patience);
        let (found, heard) = evaluate(&rig, &poses, 8);
        assert!(note.exists(), "{accident} did not happen");
        assert!(found == wanted, "{accident}: other vertices");
        assert!(!heard.is_empty() && heard[0].problem.contains(says), "{accident}: {heard:?}");
    }
}

#[test]
fn a_pose_that_always_fails_is_named() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let script = project().join("apps/cli/tests/disturbed_rig.py");
    let note = folder.path().join("note");
    let rig = open(&format!("cmd:python3 '{}' raise '{}' always", script.display(), note.display()), 60.0);
    let poses = [0.0, 12.0, 30.0].map(|bend| Controls(vec![bend, 0.0]));
    let mut out = vec![RigPose::default(); 3];
    let mut heard = 0;
    let failed =
        rig.evaluate_batch(&poses, &mut out, &mut |_| heard += 1).expect_err("the second never works");
    assert_eq!((failed.0, heard), (1, 4), "once in the batch, three times alone: {failed:?}");
    assert!(failed.1.to_string().contains("did not converge"));
    rig.evaluate(&poses[0], &mut out[0]).expect("the others still do");
}

#[test]
fn a_program_that_does_not_leave_is_ended() {
    // It answers nothing, ignores the end of its input, and starts a program of its own.
    let start = Instant::now();
    let options = ExternalOptions {
        start_patience: Duration::from_millis(300),
        patience: Duration::from_millis(300),
        ..ExternalOptions::default()
    };
    let address = Address::parse("cmd:sh -c 'sleep 60 & sleep 60'").expect("an address");
    let problem = ExternalRig::open(address, options).map(|_| ()).expect_err("no answer").to_string();
    assert!(problem.contains("no answer in 0.3 s"), "{problem}");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
