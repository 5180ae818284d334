//! Recording with the real program: threads, interruptions by SIGKILL, and what the dataset says.

mod common;

use common::{TinyGltf, all_bytes, json, refuse, run, text, understudy};
use std::path::Path;
use std::time::{Duration, Instant};

fn chunks(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".safetensors")).count()
}

/// Kills the program with SIGKILL once some chunks are there; says whether it was still running.
fn kill_midway(arguments: &[&str], folder: &Path, wait_for: usize) -> bool {
    let mut child = understudy(arguments).spawn().expect("the program starts");
    let deadline = Instant::now() + Duration::from_secs(120);
    while chunks(folder) < wait_for && child.try_wait().expect("a child").is_none() {
        assert!(Instant::now() < deadline, "no chunk was written in two minutes");
        std::thread::sleep(Duration::from_millis(2));
    }
    let running = child.try_wait().expect("a child").is_none();
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    running
}

#[test]
fn a_killed_recording_goes_on_to_the_same_bytes_whatever_the_threads() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let whole = folder.path().join("whole");
    let killed = folder.path().join("killed");
    let arguments = |output: &'static str, threads: &'static str| {
        vec![
            "sample",
            "rook",
            "--poses",
            "220",
            "--chunk",
            "5",
            "--seed",
            "11",
            "--threads",
            threads,
            "-o",
            output,
        ]
    };
    let place = |name: &str| -> &'static str { folder.path().join(name).display().to_string().leak() };
    let first = json(&arguments(place("whole"), "1"));
    assert_eq!((first["poses"].as_u64(), first["resumed_from"].as_u64()), (Some(220), Some(0)));

    // Several times: early, while chunks are being written, and with the other number of threads.
    let mut interrupted = 0;
    for (round, wait_for) in [2usize, 9, 20].into_iter().enumerate() {
        let threads = if round % 2 == 0 { "2" } else { "1" };
        interrupted += usize::from(kill_midway(&arguments(place("killed"), threads), &killed, wait_for));
    }
    assert!(interrupted > 0, "the program was always done before it could be killed");
    assert_ne!(all_bytes(&whole), all_bytes(&killed));
    let facts = json(&["info", text(&killed)]);
    assert_eq!(facts["dataset"]["complete"], false);
    refuse(&["info", text(&killed), "--verify"]);

    let resumed = json(&arguments(place("killed"), "2"));
    let already = resumed["resumed_from"].as_u64().expect("a number");
    assert!((5..220).contains(&already), "{already}");
    let (one, other) = (all_bytes(&whole), all_bytes(&killed));
    let names =
        |files: &[(std::path::PathBuf, Vec<u8>)]| files.iter().map(|f| f.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&one), names(&other));
    for ((name, a), (_, b)) in one.iter().zip(&other) {
        assert!(a == b, "{} differs", name.display());
    }

    let facts = json(&["info", text(&whole), "--verify"]);
    assert_eq!((&facts["dataset"]["complete"], &facts["dataset"]["verified"]), (&true.into(), &true.into()));
    let chunk = whole.join("chunk-000003.safetensors");
    let mut damaged = std::fs::read(&chunk).expect("readable");
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    std::fs::write(&chunk, damaged).expect("writable");
    let line = refuse(&["info", text(&whole), "--verify"]);
    assert!(line.contains("chunk-000003") && line.contains("hash"), "{line}");
}

#[test]
fn clips_methods_and_seeds() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let rig = TinyGltf::default().write(folder.path(), "tiny");
    let sample = |name: &str, more: &[&str]| {
        let output = folder.path().join(name);
        json(&[&["sample", text(&rig), "-o", text(&output)], more].concat())
    };
    let walk = sample("walk", &["--clip", "bend"]);
    assert_eq!((walk["method"].as_str(), walk["poses"].as_u64()), (Some("clips"), Some(31)));
    let fast = sample("fast", &["--clip", "bend", "--rate", "60"]);
    assert_eq!(fast["poses"], 61);
    let noise = sample("noise", &["--method", "noise", "--poses", "40"]);
    assert_eq!(noise["method"], "noise");
    let usual = sample("usual", &[]);
    assert_eq!((usual["method"].as_str(), usual["poses"].as_u64()), (Some("gaussian"), Some(1000)));
    let uniform = sample("uniform", &["--method", "uniform", "--poses", "1000"]);
    assert_eq!(uniform["bytes_per_pose"], usual["bytes_per_pose"]);
    assert_ne!(all_bytes(&folder.path().join("uniform")), all_bytes(&folder.path().join("usual")));

    let output = folder.path().join("usual");
    let line = refuse(&["sample", text(&rig), "-o", text(&output), "--seed", "2"]);
    assert!(line.contains("seed") && line.contains(text(&output)), "{line}");
    let line = refuse(&["sample", text(&rig), "-o", text(&output), "--exclude", "bend"]);
    assert!(line.contains("no clip is left"), "{line}");
    let line = refuse(&["sample", text(&rig), "-o", text(&output), "--method", "uniform", "--clip", "bend"]);
    assert!(line.contains("clip"), "{line}");
}

#[test]
fn progress_stays_out_of_a_pipe() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let rig = TinyGltf::default().write(folder.path(), "tiny");
    let output = folder.path().join("data");
    let done = run(&["sample", text(&rig), "-o", text(&output), "--poses", "50"]);
    assert!(done.status.success());
    let errors = String::from_utf8(done.stderr).expect("text");
    assert!(errors.lines().all(|line| line.starts_with("note: ")), "{errors}");
    let out = String::from_utf8(done.stdout).expect("text");
    assert!(out.contains("50 poses"), "{out}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_says_what_was_kept_and_how_to_go_on() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let rig = TinyGltf::default().write(folder.path(), "tiny");
    let output = folder.path().join("data");
    let arguments = ["sample", text(&rig), "-o", text(&output), "--poses", "1000000", "--chunk", "10"];
    let mut command = understudy(&arguments);
    let child = command.stderr(std::process::Stdio::piped()).spawn().expect("the program starts");
    let deadline = Instant::now() + Duration::from_secs(120);
    while chunks(&output) < 5 {
        assert!(Instant::now() < deadline, "no chunk was written in two minutes");
        std::thread::sleep(Duration::from_millis(2));
    }
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill is there").success());
    let done = child.wait_with_output().expect("it ends");
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8(done.stderr).expect("text");
    let last = said.lines().last().expect("a last word");
    for part in [
        "stopped after ",
        " of 1,000,000 poses; finished chunks are kept in ",
        &format!("; go on with: understudy {}", arguments.join(" ")),
    ] {
        assert!(last.contains(part), "{said}");
    }
    refuse(&["info", text(&output), "--verify"]);
    assert_eq!(json(&["info", text(&output)])["dataset"]["complete"], false);
}
