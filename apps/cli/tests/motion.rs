//! `motion` at the command line: a face and a body learned from pieces of their clips, shown, played, projected, a game to its
//! end, and what is refused.

mod common;

use common::{holds_only, json, refuse, succeed, text};
use std::path::{Path, PathBuf};

/// Two labels of Mira's own clips, short, in a folder: the file of motion.
fn learned(folder: &Path) -> String {
    let file = folder.join("small.motion").display().to_string();
    let words = ["motion", "learn", "mira", "-o", &file, "--iterations", "20", "--variance", "0.9"];
    let labels = [
        "--label",
        "happy=motion/happy_1[0..40],motion/happy_2[0..40]",
        "--label",
        "roar=motion/roar_1[0..40]",
    ];
    let report = json(&[&words[..], &labels[..]].concat());
    let frames: Vec<_> = report["labels"].as_array().expect("labels").iter().map(|l| &l["frames"]).collect();
    assert_eq!(frames, [82, 41]);
    file
}

fn write(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).expect("writable");
    path.display().to_string()
}

#[test]
fn clips_become_a_take_on_command() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let motion = learned(folder.path());
    let facts = json(&["motion", "info", &motion, "--page", &at("space.svg")]);
    assert_eq!((facts["rig"].as_str(), facts["labels"][0]["frames"].as_u64()), (Some("mira"), Some(82)));
    assert!(std::fs::read_to_string(at("space.svg")).expect("a picture").contains("<svg"));

    let act = write(folder.path(), "act.txt", "transition roar; play roar_1[0.2..0.6]\n");
    let take = |name: &str, seed: &str| {
        let report = json(&["motion", "play", &motion, &act, "-o", &at(name), "--seed", seed]);
        assert!(report["largest_distance"].as_f64().expect("a number") <= 1.01, "{report}");
        assert_eq!(report["labels"][1][1], "roar");
        std::fs::read(at(name)).expect("written")
    };
    assert!(take("a.csv", "7") == take("b.csv", "7"), "the same seed, the same bytes");
    assert!(take("a.csv", "7") != take("c.csv", "8"));
    // What was played lies in the space that it came from.
    let found = json(&["motion", "project", &motion, &at("a.csv")]);
    let frames = found["frames"].as_array().expect("frames");
    let near = frames.iter().filter(|frame| frame["mean_mm"].as_f64().expect("a distance") < 0.5).count();
    // A blend of two labels is in neither: twelve frames.
    assert!(frames.len() - near <= 14, "{near} of {} frames are near", frames.len());
    // And it is a clip like any other.
    succeed(&["render", "mira", "-o", &at("a.png"), "--size", "32", "--clip", &at("a.csv"), "--frames", "2"]);
}

#[test]
fn a_game_is_played_to_its_end() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let motion = learned(folder.path());
    let situations = [
        "greets",
        "waits",
        "tires",
        "ponders",
        "intimidates",
        "objects",
        "marvels",
        "loses",
        "wins",
        "shrugs",
    ];
    let lines =
        situations.map(|situation| format!("{situation}: transition happy; play happy_1[0.1..0.5]\n"));
    let reactions = write(folder.path(), "reactions.txt", &lines.concat());
    let words = ["motion", "game", &motion, "--reactions", &reactions];
    // She moves without looking, the same in every run of one seed.
    let game = ["--forget", "1", "--seed", "3", "--moves", "5,3,7", "-o", &at("game.csv")];
    let report = json(&[&words[..], &game].concat());
    assert_eq!(report["standing"]["won"], "cross", "{report}");
    let moods: Vec<_> = report["played"].as_array().expect("moods").iter().map(|one| &one["mood"]).collect();
    assert!(moods[0] == "greets" && moods.last().is_some_and(|mood| *mood == "loses"), "{moods:?}");
    let rows = std::fs::read_to_string(at("game.csv")).expect("a take").lines().count();
    assert_eq!(rows as u64, report["frames"].as_u64().expect("a count") + 1, "a head and a row per frame");
    succeed(&[&words[..], &["--sheet", &at("sheet.png")]].concat());
    assert!(std::fs::metadata(at("sheet.png")).expect("a sheet").len() > 5_000);

    // A square that is taken, and reactions to clips that this motion does not have.
    assert!(refuse(&[&words[..], &["--moves", "5,5"]].concat()).contains("square 5"));
    assert!(refuse(&["motion", "game", &motion, "--moves", "5"]).contains("happy_1"));
}

#[test]
fn a_body_is_played_as_its_clips_are() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("UNDERSTUDY_DATA").map_or(own, PathBuf::from);
    let knight = data.join("kaykit/Knight.glb");
    if !knight.is_file() {
        eprintln!("skipped: {} is absent", knight.display());
        return;
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (rig, motion) = (knight.display().to_string(), at("knight.motion"));
    let words = ["motion", "learn", &rig, "-o", &motion, "--iterations", "40", "--variance", "0.999"];
    let report = json(&[&words[..], &["--label", "walk=Walking_A", "--label", "lie=Lie_Down"]].concat());
    for label in report["labels"].as_array().expect("labels") {
        let number = |key: &str| label[key].as_f64().expect("a number");
        assert!(number("latent_mm") < 1.1 * number("components_mm") + 1.0, "{label}");
    }
    // Lying down turns the figure by far more than the ranges that poses are drawn from: nothing may cut it off.
    let found = json(&["motion", "project", &motion, "Lie_Down"]);
    let frames = found["frames"].as_array().expect("frames");
    let far = frames.iter().filter_map(|frame| frame["mean_mm"].as_f64()).fold(0.0, f64::max);
    assert!(frames.iter().all(|frame| frame["label"] == "lie") && far < 40.0, "{far} mm");
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let motion = learned(folder.path());
    let take = folder.path().join("take.csv");
    let script = write(folder.path(), "act.txt", "transition roar\njump 3\n");
    let said = refuse(&["motion", "play", &motion, &script, "-o", text(&take)]);
    assert!(said.contains("act.txt: line 2") && said.contains("jump"), "{said}");
    let absent = folder.path().join("absent.motion");
    assert!(refuse(&["motion", "info", text(&absent)]).contains("absent.motion"));
    let bytes = std::fs::read(&motion).expect("written");
    let cut = folder.path().join("cut.motion");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("writable");
    assert!(refuse(&["motion", "play", text(&cut), &script, "-o", text(&take)]).contains("cut.motion"));
    let words = ["motion", "learn", "mira", "-o", text(&take), "--label", "happy=motion/happy_1[3..3]"];
    assert!(refuse(&words).contains("happy"));
    holds_only(folder.path(), &["act.txt", "cut.motion", "small.motion"]);
}
