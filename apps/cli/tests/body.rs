//! Body twins on the command line: one is learned from a tiny rig and used in every way, then everything about it
//! is damaged.

mod common;

use common::{TinyGltf, all_bytes, holds_only, json, refuse, succeed, text, understudy};
use std::path::PathBuf;

/// A twin of a strip with two bones and what it was learned from and is weighed on.
struct Tiny {
    folder: tempfile::TempDir,
    train: PathBuf,
    test: PathBuf,
    twin: PathBuf,
}

impl Tiny {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let path = |name: &str| folder.path().join(name);
        let (train, test, twin) = (path("train"), path("test"), path("tiny.twin"));
        let rig = TinyGltf::default().write(folder.path(), "tiny");
        succeed(&["sample", text(&rig), "-o", text(&train), "--poses", "40"]);
        succeed(&["sample", text(&rig), "-o", text(&test), "--poses", "5", "--seed", "2"]);
        succeed(&["learn", "body", text(&train), "-o", text(&twin), "--epochs", "3", "--target-mm", "0.5"]);
        Self { folder, train, test, twin }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn has(value: &serde_json::Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "no '{key}' in {value}");
    }
}

#[test]
fn reports_have_the_keys_that_scripts_read() {
    let tiny = Tiny::new();
    let twin = text(&tiny.twin);
    let weighed =
        json(&["eval", twin, text(&tiny.test), "--train", text(&tiny.train), "--baselines", "lbs4"]);
    for method in ["twin", "lbs4"] {
        has(&weighed["methods"][method], &["mean_mm", "p95_mm", "max_mm", "normal_deg", "ee", "ms", "bytes"]);
    }
    has(&weighed["seams"], &["border_mm", "inside_mm", "ratio"]);
    let timed = json(&["bench", twin, "--rounds", "1"]);
    has(&timed, &["rig_ms", "verdict", "normals_ms", "bandwidth_gb_s"]);
    assert!(timed["bandwidth_share"].as_f64().is_some_and(|share| share > 0.0 && share <= 1.0), "{timed}");
    for ms in [&timed["threads"]["1"], &timed["threads"]["2"], &timed["crowd"]["16"], &timed["crowd"]["256"]]
    {
        assert!(ms.as_f64().is_some_and(|ms| ms > 0.0), "{timed}");
    }
    // A strip of two bones is no rig that a twin pays for, and the program says so.
    let (rig, own) =
        (timed["rig_ms"].as_f64().expect("at hand"), timed["threads"]["1"].as_f64().expect("timed"));
    let said = timed["verdict"].as_str().expect("a sentence");
    assert_eq!(said.contains("the original rig is faster"), rig < own, "{timed}");
    let (onnx, glb) = (tiny.path("tiny.onnx"), tiny.path("tiny.glb"));
    let said = succeed(&["export", twin, "--onnx", text(&onnx)]);
    let model = json(&["info", text(&onnx)]);
    let bones: Vec<&str> =
        model["onnx"]["bones"].as_array().expect("a list").iter().filter_map(|b| b.as_str()).collect();
    let recorded = json(&["export", twin, "--onnx", text(&onnx)]);
    assert_eq!(recorded["onnx"]["bones"], model["onnx"]["bones"], "{recorded}");
    assert!(bones.len() > 1 && said.contains(&bones.join(", ")), "{said}");
    let described = succeed(&["info", text(&onnx)]);
    assert!(described.contains(&format!("bones, in order: {}", bones.join(", "))), "{described}");
    succeed(&["export", twin, "--glb", text(&glb), "--clip", "bend"]);
    let described = json(&["info", text(&glb)]);
    assert_eq!(described["mesh"]["vertices"], 4, "{described}");
    // The same motion from a file.
    let motion = tiny.path("motion.bvh");
    succeed(&["convert", text(&tiny.path("tiny.gltf")), "-o", text(&motion), "--clip", "bend"]);
    succeed(&["export", twin, "--glb", text(&glb), "--clip", text(&motion)]);
    assert_eq!(json(&["info", text(&glb)])["clips"][0]["name"], "motion");
    let [own, read] = ["bend", text(&motion)].map(|clip| json(&["eval", twin, "--clip", clip]));
    let mean = |report: &serde_json::Value| report["methods"]["twin"]["mean_mm"].as_f64().expect("a number");
    assert!((mean(&own) - mean(&read)).abs() < 1e-3 * mean(&own).max(1.0), "{own} {read}");
    let inside = json(&["info", twin]);
    assert_eq!(inside["twin"]["vertices"], 4, "{inside}");
    let networks = inside["twin"]["networks"].as_array().expect("a list");
    let moved: u64 = networks.iter().filter_map(|network| network["vertices"].as_u64()).sum();
    assert_eq!(moved, 4, "{inside}");
    assert!(succeed(&["info", twin]).contains("a body twin of"));
}

#[test]
fn baselines_are_a_list_or_all_and_their_fits_are_kept() {
    let tiny = Tiny::new();
    let weigh = |names: &[&str]| {
        let words = ["eval", text(&tiny.twin), text(&tiny.test), "--train", text(&tiny.train)];
        json(&[&words[..], names].concat())
    };
    let names = |report: &serde_json::Value| -> Vec<String> {
        report["order"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|n| n.as_str().expect("a name").into())
            .collect()
    };
    // Timings aside.
    let figures = |report: &serde_json::Value| -> Vec<serde_json::Value> {
        let of = |name: &String| {
            let m = &report["methods"][name];
            serde_json::json!([name, m["mean_mm"], m["p95_mm"], m["max_mm"], m["ee"], m["bytes"]])
        };
        names(report).iter().map(of).collect()
    };
    let kept = |report: &serde_json::Value| -> usize {
        let fits = report["fits"].as_object().expect("fits by name");
        fits.values().filter(|fit| fit["kept"] == true).count()
    };
    let usual = weigh(&[]);
    let twins = ["twin", "twin, by controls"];
    assert_eq!(names(&usual), [&twins[..], &["rigid", "lbs4", "rr2", "wpsd10"]].concat());
    let chosen = names(&weigh(&["--baselines", "wpsd10,rigid"]));
    assert_eq!(chosen, [&twins[..], &["rigid", "wpsd10"]].concat());
    let all = weigh(&["--baselines", "all"]);
    assert_eq!((names(&all).len(), kept(&all)), (16, 4));
    let again = weigh(&["--baselines", "all"]);
    assert_eq!((figures(&again), kept(&again)), (figures(&all), 14));

    // A fit that is damaged is made again.
    let file = tiny.train.join("fits/rr15.safetensors");
    let mut bytes = std::fs::read(&file).expect("was kept");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&file, &bytes).expect("a scratch file");
    let cured = weigh(&["--baselines", "all"]);
    assert_eq!((figures(&cured), kept(&cured)), (figures(&all), 13));
    assert_eq!(kept(&weigh(&["--baselines", "rr15"])), 1);

    // Rows that are fitted to the test itself stand beside the others, with numbers of poses.
    let both = weigh(&["--baselines", "rigid,lbs_all,delta_mush", "--fit", "test"]);
    let rows = ["rigid", "lbs_all", "delta_mush", "rigid (on test)", "lbs_all (on test)"];
    assert_eq!(names(&both), [&twins[..], &rows].concat());
    let poses = |row: &str| both["methods"][row]["poses"].clone();
    assert_eq!(poses("lbs_all (on test)"), both["poses"]);
    assert_ne!(poses("lbs_all"), both["poses"]);
    let words = ["eval", text(&tiny.twin), text(&tiny.test)];
    let alone = json(&[&words[..], &["--fit", "test", "--baselines", "lbs4"]].concat());
    assert_eq!(names(&alone), [&twins[..], &["lbs4 (on test)"]].concat());

    for wrong in [&["--train", text(&tiny.train), "--baselines", "lbs5"][..], &["--baselines", "lbs4"]] {
        refuse(&[&words[..], wrong].concat());
    }
}

#[test]
fn a_damaged_twin_and_one_of_another_mesh() {
    let tiny = Tiny::new();
    let bytes = std::fs::read(&tiny.twin).expect("was written");
    let broken = tiny.path("broken.twin");
    let try_it = |bytes: &[u8]| {
        std::fs::write(&broken, bytes).expect("writable");
        let out = tiny.path("out.onnx");
        for arguments in [
            vec!["eval", text(&broken), text(&tiny.test)],
            vec!["bench", text(&broken)],
            vec!["export", text(&broken), "--onnx", text(&out)],
        ] {
            let line = refuse(&arguments);
            assert!(line.contains("broken.twin"), "{line}");
        }
        assert!(!out.exists(), "a graph of a broken twin");
    };
    for keep in [0, 5, 8, 100, bytes.len() / 2, bytes.len() - 1] {
        try_it(&bytes[..keep]);
    }
    for place in [3, bytes.len() / 2, bytes.len() - 1] {
        let mut flipped = bytes.clone();
        flipped[place] ^= 16;
        try_it(&flipped);
    }
    let other = tiny.path("rook");
    succeed(&["sample", "rook", "-o", text(&other), "--poses", "1"]);
    let line = refuse(&["eval", text(&tiny.twin), text(&other)]);
    assert!(line.contains("rook") && line.contains("4 vertices"), "{line}");
}

#[test]
fn the_paper_is_one_switch() {
    let tiny = Tiny::new();
    let out = tiny.path("paper.twin");
    let words = ["learn", "body", text(&tiny.train), "-o", text(&out), "--paper", "--epochs", "2"];
    succeed(&words);
    let inside = json(&["info", text(&out)]);
    assert_eq!(inside["twin"]["weight_bits"], 32, "{inside}");
    for network in inside["twin"]["networks"].as_array().expect("a list") {
        let layers: Vec<u64> =
            network["layers"].as_array().expect("a list").iter().filter_map(|l| l.as_u64()).collect();
        assert!(network["inputs"] == 0 || layers.starts_with(&[128, 128]), "{network}");
    }
    refuse(&[&words[..], &["--base", "lbs4"]].concat());
    for gone in ["--frame", "--seam-rings", "--border-rings", "--seam-weight", "--tau"] {
        refuse(&["learn", "body", text(&tiny.train), "-o", text(&out), gone, "1"]);
    }
}

#[test]
fn numbers_that_make_no_sense() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (data, out) = (folder.path().join("data"), folder.path().join("out.twin"));
    for (wrong, named) in [
        (["--target-mm", "-1"], "target"),
        (["--target-mm", "NaN"], "target"),
        (["--epochs", "0"], "epochs"),
        (["--batch", "0"], "batch"),
        (["--rate", "NaN"], "rate"),
        (["--base", "lbs3"], "lbs3"),
    ] {
        let line = refuse(&[&["learn", "body", text(&data), "-o", text(&out)], &wrong[..]].concat());
        assert!(line.contains(named), "{wrong:?}: {line}");
    }
    let line = refuse(&["learn", "body", text(&data), "-o", text(&out)]);
    assert!(line.contains("data"), "{line}");
    holds_only(folder.path(), &[]);
}

#[test]
fn the_working_folder_does_not_decide_the_twin() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    for folder in [&here, &there] {
        std::fs::create_dir(folder).expect("writable");
    }
    let rig = TinyGltf::default().write(&here, "tiny");
    let name = rig.file_name().and_then(|name| name.to_str()).expect("a name");
    let run = |from: &std::path::Path, arguments: &[&str]| {
        let output = understudy(arguments).current_dir(from).output().expect("the program starts");
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    let sampled = ["sample", name, "-o", "data", "--poses", "40", "--seed", "3"];
    assert_eq!(run(&here, &sampled).0, Some(0));
    // Recording goes on from another folder, though the rig is typed in another way there.
    let before = all_bytes(&here.join("data"));
    std::fs::remove_file(here.join("data/chunk-000000.safetensors")).expect("was recorded");
    let data = here.join("data");
    let again = ["sample", text(&rig), "-o", text(&data), "--poses", "40", "--seed", "3"];
    assert_eq!(run(&there, &again).0, Some(0), "resumed from elsewhere");
    assert!(all_bytes(&here.join("data")) == before, "other bytes");

    let learn = |from: &std::path::Path, data: &str, name: &str, more: &[&str]| {
        let twin = folder.path().join(name);
        let arguments = ["learn", "body", data, "-o", text(&twin), "--epochs", "3"];
        let (code, said) = run(from, &[&arguments, more].concat());
        (code, said, std::fs::read(&twin).ok())
    };
    let one = learn(&here, "data", "one.twin", &[]);
    assert!(one.0 == Some(0) && !one.1.contains("missing"), "{}", one.1);
    let two = learn(&there, "../here/data", "two.twin", &[]);
    assert!(!two.1.contains("missing") && one.2 == two.2, "the working folder decides: {}", two.1);
    // Both move together.
    let moved = folder.path().join("moved");
    std::fs::rename(&here, &moved).expect("movable");
    let three = learn(&there, "../moved/data", "three.twin", &[]);
    assert!(!three.1.contains("missing") && one.2 == three.2, "moved: {}", three.1);
    // The rig moves alone: that is said aloud, and it can be named.
    std::fs::rename(moved.join(name), there.join("renamed.gltf")).expect("movable");
    for entry in std::fs::read_dir(&moved).expect("readable").flatten().filter(|entry| entry.path().is_file())
    {
        std::fs::rename(entry.path(), there.join(entry.file_name())).expect("movable");
    }
    let four = learn(&there, "../moved/data", "four.twin", &[]);
    assert!(four.0 == Some(0) && four.1.contains("warning") && four.1.contains("--rig"), "{}", four.1);
    let five = learn(&there, "../moved/data", "five.twin", &["--rig", "renamed.gltf"]);
    assert!(!five.1.contains("missing") && one.2 == five.2, "named: {}", five.1);
    let six = learn(&there, "../moved/data", "six.twin", &["--rig", "rook"]);
    assert!(six.0 == Some(2) && six.1.contains("rook") && six.2.is_none(), "{}", six.1);
}

#[test]
fn auto_finds_a_kind_and_says_why() {
    let tiny = Tiny::new();
    let twin = tiny.path("auto.twin");
    let words = [
        "learn",
        "auto",
        text(&tiny.train),
        "-o",
        text(&twin),
        "--trial-minutes",
        "0.01",
        "--minutes",
        "0.01",
    ];
    let report = json(&words);
    let chosen = report["chosen"].as_str().expect("a kind");
    assert!(
        report["why"].as_str().is_some_and(|why| why.contains("because") && why.starts_with(chosen)),
        "{report}"
    );
    assert_eq!(json(&["info", text(&twin)])["twin"]["method"], chosen);
    assert!(report["trials"].as_array().is_some_and(|trials| !trials.is_empty()), "{report}");
    let line = refuse(&[&words[..], &["--budget-ms", "0"]].concat());
    assert!(line.contains("--budget-ms"), "{line}");
    refuse(&["learn", "auto", text(&tiny.path("absent")), "-o", text(&twin)]);
}
