//! Rigs in other programs, with the reference client in Python: sampled, learned and compared end to end, and with
//! workers that are killed, hang or answer nonsense in the middle of it.
#![cfg(unix)]

mod common;

use common::{all_bytes, json, refuse, run, succeed, text, understudy};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn client() -> String {
    format!("cmd:python3 '{}'", project().join("docs/guides/rig_client.py").display())
}

/// A dataset's files without the report of accidents, and without the line that says how the rig was called.
fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = all_bytes(folder);
    files.retain(|(name, _)| name.extension().is_some_and(|end| end == "safetensors"));
    assert!(files.len() > 2, "{}", folder.display());
    files
}

#[test]
fn the_reference_client_is_short_and_stands_alone() {
    let text = std::fs::read_to_string(project().join("docs/guides/rig_client.py")).expect("readable");
    assert!(text.lines().count() <= 60, "{} lines", text.lines().count());
    let page = std::fs::read_to_string(project().join("docs/guides/rig-protocol.md")).expect("readable");
    assert!(page.contains("rig_client.py"));
}

#[test]
fn a_program_is_sampled_learned_and_compared() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let place = |name: &str| folder.path().join(name).display().to_string();
    let rig = client();
    let facts = json(&["info", &rig]);
    assert_eq!(facts["input"], rig.as_str());
    let (train, test, twin) = (place("train"), place("test"), place("bar.twin"));
    let report = json(&["sample", &rig, "-o", &train, "--poses", "400", "--workers", "2", "--timeout", "30"]);
    assert_eq!((report["threads"].as_u64(), report["failed"].as_array().map(Vec::len)), (Some(2), Some(0)));
    succeed(&["sample", &rig, "-o", &test, "--poses", "40", "--seed", "9", "--workers", "1"]);
    // A dataset from anywhere does not start programs: they are named.
    let unnamed = understudy(&["learn", "body", &train, "-o", &twin]).output().expect("it runs");
    let said = String::from_utf8_lossy(&unnamed.stderr).into_owned();
    assert!(unnamed.status.success() && said.contains("is run only where --rig names it"), "{said}");
    std::fs::remove_file(&twin).expect("a twin");
    let learned = json(&["learn", "body", &train, "-o", &twin, "--rig", &rig]);
    assert_eq!(learned["inputs_probed"], true);
    let figures = json(&["eval", &twin, &test, "--train", &train, "--baseline", "lbs4", "--rig", &rig]);
    let methods = figures["sets"].as_object().expect("sets").values().next().expect("a set");
    let mean = |name: &str| methods[name]["mean_mm"].as_f64().expect("a number");
    assert!(mean("twin") < 0.5 * mean("lbs4"), "{} against {}", mean("twin"), mean("lbs4"));
    assert!(figures["original_ms"].as_f64().is_some_and(|ms| ms > 0.0));
    let timed = json(&["bench", &twin, "--rounds", "1", "--rig", &rig]);
    let has_time = |report: &serde_json::Value| report["rig_ms"].as_f64().is_some_and(|ms| ms > 0.0);
    assert!(has_time(&timed) && timed["rig_timed"] == true, "{timed}");
    // Where the program is not named, the time stands that it took when it was sampled.
    let unnamed = json(&["bench", &twin, "--rounds", "1"]);
    assert!(has_time(&unnamed) && unnamed["rig_timed"] == false, "{unnamed}");
    succeed(&["render", &rig, "-o", &place("bar.png"), "--set", "bend=60", "--size", "64"]);
}

#[test]
fn a_socket_gives_the_same_as_a_program() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let place = |name: &str| folder.path().join(name).display().to_string();
    let sample = |rig: &str, output: &str, workers: &str| {
        succeed(&["sample", rig, "-o", output, "--poses", "50", "--chunk", "10", "--workers", workers]);
    };
    sample(&client(), &place("program"), "1");
    let script = project().join("docs/guides/rig_client.py");
    let socket = place("rig.socket");
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|found| found.local_addr())
        .expect("a port")
        .port();
    for (address, output) in [(format!("unix:{socket}"), "unix"), (format!("tcp:127.0.0.1:{port}"), "tcp")] {
        let mut server =
            Command::new("python3").arg(&script).arg(&address).stderr(Stdio::null()).spawn().expect("Python");
        let deadline = Instant::now() + Duration::from_secs(30);
        while !run(&["info", &address]).status.success() {
            assert!(Instant::now() < deadline, "{address} does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        sample(&address, &place(output), "2");
        server.kill().expect("it runs");
        server.wait().expect("it ended");
        // Chunks name the dataset that they belong to, which names the rig: compare what was recorded.
        let npz = |name: &str| {
            let file = place(&format!("{name}.npz"));
            succeed(&["convert", &place(name), "-o", &file]);
            std::fs::read(file).expect("readable")
        };
        assert!(npz("program") == npz(output), "{address} differs");
        let gone = refuse(&["info", &address]);
        assert!(gone.contains("cannot be started"), "{gone}");
    }
}

/// Samples with an accident and without; `always` for one that never ends.
fn disturbed(
    folder: &Path,
    accident: &str,
    output: &str,
    always: bool,
    more: &[&str],
) -> std::process::Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/disturbed_rig.py");
    // The same command line for all, so that datasets are comparable byte for byte: the accident is in a script beside.
    let rig = folder.join("rig.sh");
    let note = folder.join(format!("{accident}-{output}.note"));
    let end = if always { "always" } else { "" };
    let line = format!("#!/bin/sh\npython3 '{}' {accident} '{}' {end}\n", script.display(), note.display());
    std::fs::write(&rig, line).expect("writable");
    let rig = format!("cmd:sh '{}'", rig.display());
    let output = folder.join(output);
    let mut arguments =
        vec!["sample", &rig, "-o", text(&output), "--poses", "160", "--chunk", "40", "--workers", "2"];
    arguments.extend(more);
    run(&arguments)
}

#[test]
fn accidents_of_workers_change_no_byte() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let plain = disturbed(folder, "none", "plain", false, &["--timeout", "60"]);
    assert!(plain.status.success(), "{}", String::from_utf8_lossy(&plain.stderr));
    for (accident, timeout, says) in [
        ("kill", "60", "the worker ended ("),
        ("hang", "1.5", "no answer in 1.5 s"),
        ("nan", "60", "vertex 1 is not finite"),
        ("count", "60", "were expected"),
        ("print", "60", "begins with 'Traceback:"),
        ("raise", "60", "the solver did not converge"),
    ] {
        let output = disturbed(folder, accident, accident, false, &["--timeout", timeout, "--json"]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{accident}: {errors}");
        assert!(folder.join(format!("{accident}-{accident}.note")).exists(), "{accident} did not happen");
        assert!(content(&folder.join("plain")) == content(&folder.join(accident)), "{accident}: other data");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let failed = report["failed"].as_array().expect("a list");
        assert!(
            !failed.is_empty() && failed.iter().all(|one| one["outcome"] == "tried_again"),
            "{accident}: {report}"
        );
        let problem = failed[0]["problem"].as_str().expect("text");
        assert!(problem.contains(says), "{accident}: {problem}");
        let named =
            std::fs::read_to_string(folder.join(accident).join("failed-poses.csv")).expect("a report");
        assert!(
            named.lines().count() == failed.len() + 1 && named.contains(&problem.replace('"', "\"\"")),
            "{named}"
        );
    }
}

#[test]
fn a_pose_that_always_fails_is_named_and_nothing_else_is_lost() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let stopped = disturbed(folder, "nan", "data", true, &["--timeout", "60"]);
    let errors = String::from_utf8_lossy(&stopped.stderr).into_owned();
    assert_eq!(stopped.status.code(), Some(1), "{errors}");
    let last = errors.lines().last().unwrap_or_default();
    let number = last.split("pose ").nth(1).and_then(|rest| rest.split(':').next()).unwrap_or_default();
    assert!(number.parse::<usize>().is_ok() && last.contains("not finite"), "{last}");
    let named = std::fs::read_to_string(folder.join("data/failed-poses.csv")).expect("a report");
    assert!(named.contains(&format!("{number},{number},failed")), "{named}");

    // The same command that replaces such poses goes on from what is there, and ends.
    let output = disturbed(folder, "nan", "data", true, &["--timeout", "60", "--skip-failed", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let failed = report["failed"].as_array().expect("a list");
    let number: u64 = number.parse().expect("a number");
    assert!(failed.iter().any(|one| one["outcome"] == "replaced" && one["first"] == number), "{report}");
    succeed(&["info", text(&folder.join("data")), "--verify"]);
}

#[test]
fn what_is_no_rig_is_one_line() {
    for (rig, says) in [
        ("cmd:", "wants a program"),
        ("cmd:no-such-program-here", "cannot be started"),
        ("cmd:true", "the worker ended (exit status: 0)"),
        ("cmd:echo hello", "begins with 'hello'"),
        ("cmd:sh -c 'echo $((6 * 7)) >&2; exit 3'", "its last words: 42"),
        ("unix:/no/such/socket", "cannot be started"),
        ("tcp:nowhere", "HOST:PORT"),
    ] {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let line = refuse(&["sample", rig, "-o", text(&folder.path().join("data"))]);
        assert!(line.contains(says), "{rig}: {line}");
        common::holds_only(folder.path(), &[]);
    }
    let threads = refuse(&["sample", "cmd:true", "-o", "data", "--threads", "2"]);
    assert!(threads.contains("--workers"), "{threads}");
    assert!(refuse(&["sample", "rook", "-o", "data", "--timeout", "2"]).contains("no program"));
}
