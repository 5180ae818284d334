//! `weights` and `deform` from the command line: what is made, what is mended and said, what is refused with nothing written.

mod common;

use common::{holds_only, json, refuse, run, succeed, text};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const SIDE: usize = 12;

/// A standing card whose right half is turned, as OBJ.
fn card(degrees: f32, more: &str) -> String {
    let middle = (SIDE - 1) as f32 / 2.0;
    let (sine, cosine) = degrees.to_radians().sin_cos();
    let mut obj = String::new();
    for place in 0..SIDE * SIDE {
        let (x, y) = ((place % SIDE) as f32, (place / SIDE) as f32);
        let beyond = (x - middle).max(0.0);
        writeln!(obj, "v {} {y} {}", x - beyond + beyond * cosine, beyond * sine).expect("text");
    }
    for place in (0..SIDE * (SIDE - 1)).filter(|place| place % SIDE + 1 < SIDE) {
        let at = place + 1;
        writeln!(obj, "f {at} {} {} {}", at + 1, at + SIDE + 1, at + SIDE).expect("text");
    }
    obj + more
}

struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a scratch folder") }
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("written");
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Two points in the middle of opposite sides.
const HANDLES: &str = "[[point]]\nname = 'left'\nvertex = 72\n[[point]]\nname = 'right'\nvertex = 83\n";

#[test]
fn examples_sharpen_weights_and_the_result_is_dragged_and_shown() {
    let scratch = Scratch::new();
    let mesh = scratch.file("card.obj", &card(0.0, ""));
    let folded = scratch.file("folded.obj", &card(70.0, ""));
    let handles = scratch.file("handles.toml", HANDLES);
    let (glb, npz, maps, page) = (
        scratch.path("card.glb"),
        scratch.path("card.npz"),
        scratch.path("maps.png"),
        scratch.path("page.html"),
    );
    let plain = json(&["weights", text(&mesh), text(&handles), "-o", text(&glb)]);
    let report = json(&[
        "weights",
        text(&mesh),
        text(&handles),
        text(&folded),
        "-o",
        text(&glb),
        "--npz",
        text(&npz),
        "--maps",
        text(&maps),
        "--report",
        text(&page),
    ]);
    let share = |report: &serde_json::Value| report["near_zero_share"].as_f64().expect("a share");
    assert!(share(&plain) < 0.2 && share(&report) > 0.38, "{} {}", share(&plain), share(&report));
    let html = std::fs::read_to_string(&page).expect("a page");
    for part in ["Weights", "Examples", "Energy", "Dragging"] {
        assert!(html.contains(part), "the page has no '{part}'");
    }
    let posed = scratch.path("posed.obj");
    let moved = json(&["deform", text(&glb), "--drag", "right=9,6,4", "-o", text(&posed)]);
    assert!((moved["most_cm"].as_f64().expect("a distance") - 4.5).abs() < 1.5, "{moved}");
    assert!(succeed(&["info", text(&glb)]).contains('2'));
    // The same weights for the same card, carried over.
    let carried = scratch.path("carried.glb");
    let transfer = json(&["weights", "transfer", text(&glb), text(&mesh), "-o", text(&carried)]);
    assert_eq!(transfer["matched"], transfer["vertices"]);
}

#[test]
fn damage_is_mended_and_said() {
    let scratch = Scratch::new();
    let handles = scratch.file("handles.toml", HANDLES);
    let out = scratch.path("out.glb");
    let count = SIDE * SIDE;
    for (name, more, said) in [
        // A third face on an inner edge.
        ("fin", format!("v 5 5 3\nf 66 67 {}\n", count + 1), "more than two faces"),
        ("flat", "f 1 2 3\n".to_owned(), "have no area"),
        ("lone", "v 5 5 2\n".to_owned(), "belong to no face"),
    ] {
        let mesh = scratch.file(&format!("{name}.obj"), &card(0.0, &more));
        let report = json(&["weights", text(&mesh), text(&handles), "-o", text(&out)]);
        let notes = report["notes"].to_string() + &report["solve"]["notes"].to_string();
        assert!(notes.contains(said), "{name}: {notes}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_name_and_nothing_is_written() {
    let scratch = Scratch::new();
    let mesh = scratch.file("card.obj", &card(0.0, ""));
    let other = scratch.file("other.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n");
    let out = tempfile::tempdir().expect("a scratch folder");
    let glb = out.path().join("out.glb");
    let good = scratch.file("good.toml", HANDLES);
    let with = |handles: &Path, more: &[&str]| {
        let mut words = vec!["weights", text(&mesh), text(handles)];
        words.extend(more);
        words.extend(["-o", text(&glb)]);
        let line = refuse(&words);
        holds_only(out.path(), &[]);
        line
    };
    let point = |name: &str, rest: &str| format!("[[point]]\nname = '{name}'\n{rest}\n");
    for (name, content, said) in [
        ("far", HANDLES.to_owned() + &point("far", "position = [500, 0, 0]"), "'far' is"),
        ("shared", HANDLES.to_owned() + &point("twice", "vertex = 72"), "'left' and 'twice' share vertex 72"),
        ("missing", HANDLES.to_owned() + &point("none", "vertex = 999"), "names vertex 999"),
        ("empty", String::new(), "no handle"),
        ("nan", point("a", "position = [nan, 0, 0]"), "not finite"),
        ("typo", "[[points]]\n".to_owned(), "line 1"),
    ] {
        let handles = scratch.file(&format!("{name}.toml"), &content);
        let line = with(&handles, &[]);
        assert!(line.contains(text(&handles)) && line.contains(said), "{name}: {line}");
    }
    let line = with(&good, &[text(&other)]);
    assert!(line.contains("other.obj") && line.contains("vertices"), "{line}");
    assert!(with(&good, &["--cells", "0"]).contains("cells"));
    assert!(with(&good, &[text(&mesh), "--sparsity", "-1"]).contains("sparsity"));
    assert!(with(&good, &[text(&mesh), "--mixing", "nan"]).contains("mixing"));
    assert!(with(&good, &["--report", text(&out.path().join("page.png"))]).contains(".html"));
    assert!(with(&scratch.path("absent.toml"), &[]).contains("absent.toml"));
    assert_eq!(run(&["deform", text(&good), "--drag", "a=1,2,3", "-o", text(&glb)]).status.code(), Some(2));
}
