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

/// A closed box of 40 × 160 × 40 cm with quads on its sides: a limb along y.
fn limb() -> String {
    let mut obj = String::new();
    let ring = |k: usize| match k {
        0..4 => (k as f32, 0.0),
        4..8 => (4.0, (k - 4) as f32),
        8..12 => (4.0 - (k - 8) as f32, 4.0),
        _ => (0.0, 4.0 - (k - 12) as f32),
    };
    for (y, k) in (0..17).flat_map(|y| (0..16).map(move |k| (y, k))) {
        let (x, z) = ring(k);
        writeln!(obj, "v {} {} {}", 10.0 * (x - 2.0), 10 * y, 10.0 * (z - 2.0)).expect("text");
    }
    obj += "v 0 0 0\nv 0 160 0\n";
    let at = |y: usize, k: usize| y * 16 + k % 16 + 1;
    for (y, k) in (0..16).flat_map(|y| (0..16).map(move |k| (y, k))) {
        let (a, b) = (at(y, k), at(y, k + 1));
        writeln!(obj, "f {a} {} {} {b}", a + 16, b + 16).expect("text");
    }
    for k in 0..16 {
        writeln!(obj, "f 273 {} {}\nf 274 {} {}", at(0, k), at(0, k + 1), at(16, k + 1), at(16, k))
            .expect("text");
    }
    obj
}

/// Three bones along y as BVH: hips at 10 cm, a knee at 60, a foot at 110; as tall as a person, so that the unit is clear.
const RIG: &str = "HIERARCHY\nROOT hips\n{\nOFFSET 0 10 0\nCHANNELS 3 Xposition Yposition Zposition\n\
    JOINT knee\n{\nOFFSET 0 50 0\nCHANNELS 3 Zrotation Xrotation Yrotation\n\
    JOINT foot\n{\nOFFSET 0 50 0\nCHANNELS 3 Zrotation Xrotation Yrotation\n\
    End Site\n{\nOFFSET 0 40 0\n}\n}\n}\n}\n\
    MOTION\nFrames: 1\nFrame Time: 0.04\n0 10 0 0 0 0 0 0 0\n";

/// What a command that fails on bad input says, with what was noted before.
fn fails(words: &[&str]) -> String {
    let output = run(words);
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
    said
}

fn names(report: &serde_json::Value) -> Vec<&str> {
    report["handles"].as_array().expect("names").iter().filter_map(|name| name.as_str()).collect()
}

#[test]
fn bones_of_a_rig_become_handles_alone_or_beside_points() {
    let scratch = Scratch::new();
    let mesh = scratch.file("limb.obj", &limb());
    let rig = scratch.file("rig.bvh", RIG);
    let glb = scratch.path("limb.glb");
    let words = |handles: &Path| -> Vec<String> {
        ["weights", text(&mesh), text(handles), "-o", text(&glb), "--cells", "16"].map(str::to_owned).into()
    };
    let with = |handles: &Path, more: &[&str]| {
        let words = words(handles);
        let words: Vec<&str> = words.iter().map(String::as_str).chain(more.iter().copied()).collect();
        json(&words)
    };
    let report = with(&rig, &["--max-influences", "2"]);
    assert_eq!(names(&report), ["hips", "knee", "foot"]);
    assert_eq!((&report["solve"]["domain"], &report["influences"]), (&"volume".into(), &2.into()));
    // Two of the bones and a point; the third bone stays in the file and moves nothing.
    let toml = "[[rig]]\nfile = 'rig.bvh'\nbones = ['hips', 'foot']\n[[point]]\nname = 'tip'\nvertex = 273\n";
    let mixed = scratch.file("mixed.toml", toml);
    let report = with(&mixed, &[]);
    assert_eq!(names(&report), ["hips", "foot", "tip"]);
    let posed = scratch.path("posed.obj");
    let drag =
        |name: &str| json(&["deform", text(&glb), "--turn", &format!("{name}=0,0,1,40"), "-o", text(&posed)]);
    assert!(drag("foot")["most_cm"].as_f64().expect("a distance") > 5.0);
    assert_eq!(drag("knee")["handles"][0], 1);
    let all = scratch.file("all.toml", "[[rig]]\nfile = 'rig.bvh'\n[[point]]\nname = 'tip'\nvertex = 273\n");
    assert_eq!(names(&with(&all, &[])), ["hips", "knee", "foot", "tip"]);
    let typo = scratch.file("typo.toml", "[[rig]]\nfile = 'rig.bvh'\nbones = ['hip']\n");
    let line = fails(&["weights", text(&mesh), text(&typo), "-o", text(&glb)]);
    assert!(line.contains("hip") && line.contains("hips"), "{line}");
    // A handle file's rig is an input: no output replaces it.
    let model = scratch.path("model.glb");
    std::fs::copy(&glb, &model).expect("a copy");
    let own = scratch.file("own.toml", "[[rig]]\nfile = 'model.glb'\n");
    let line = fails(&["weights", text(&mesh), text(&own), "-o", text(&model)]);
    assert!(line.contains("input"), "{line}");
}

#[test]
fn every_kind_domain_and_mode_is_reached_from_the_command_line() {
    let scratch = Scratch::new();
    let mesh = scratch.file("limb.obj", &limb());
    let glb = scratch.path("limb.glb");
    let points = "[[point]]\nname = 'low'\nvertex = 0\n[[point]]\nname = 'middle'\nvertex = 130\n\
        [[point]]\nname = 'high'\nvertex = 260\n";
    let points = scratch.file("points.toml", points);
    let cage = "[[cage]]\nname = 'box'\nvertices = [[-40, -20, -40], [40, -20, -40], [-40, 180, -40], [40, 180, -40], \
        [-40, -20, 40], [40, -20, 40], [-40, 180, 40], [40, 180, 40]]\nfaces = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], \
        [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]\n";
    let cage = scratch.file("cage.toml", cage);
    for (handles, more, domain, columns) in [
        (&points, &["--kind", "quasi"][..], "surface", 3),
        (&points, &["--kind", "quasi", "--domain", "volume", "--max-influences", "2"], "volume", 3),
        (&points, &["--kind", "heat"], "surface", 3),
        (&points, &["--joint"], "surface", 3),
        (&points, &["--domain", "volume", "--max-influences", "1"], "volume", 3),
        (&cage, &[], "volume", 8),
    ] {
        let mut words = vec!["weights", text(&mesh), text(handles), "-o", text(&glb), "--cells", "12"];
        words.extend(more);
        let report = json(&words);
        assert_eq!(report["solve"]["domain"], domain, "{more:?}");
        assert_eq!(names(&report).len(), columns, "{more:?}");
        if let Some(place) = more.iter().position(|word| *word == "--max-influences") {
            let most: u64 = more[place + 1].parse().expect("a number");
            assert!(report["influences"].as_u64().expect("a number") <= most, "{more:?}");
        }
    }
    let line = fails(&["weights", text(&mesh), text(&cage), "--kind", "heat", "-o", text(&glb)]);
    assert!(line.contains("'box' is a cage"), "{line}");
    let line = fails(&["weights", text(&mesh), text(&points), "--kind", "heat", "--joint", "-o", text(&glb)]);
    assert!(line.contains("--joint"), "{line}");
}

#[test]
fn turned_handles_refold_a_card() {
    let scratch = Scratch::new();
    let mesh = scratch.file("card.obj", &card(0.0, ""));
    let half = |side: &str, from: usize| {
        let vertices = (0..SIDE * SIDE).filter(|v| (v % SIDE) / (SIDE / 2) == from);
        let vertices: Vec<String> = vertices.map(|v| v.to_string()).collect();
        format!("[[region]]\nname = '{side}'\nvertices = [{}]\n", vertices.join(", "))
    };
    let handles = scratch.file("halves.toml", &(half("left", 0) + &half("right", 1)));
    let glb = scratch.path("card.glb");
    json(&["weights", text(&mesh), text(&handles), "-o", text(&glb)]);
    // The right half turns by 60 degrees about the fold at 5.5: its middle, 3 beyond it, goes along.
    let (sine, cosine) = 60.0f32.to_radians().sin_cos();
    let to = format!("right={},5.5,{}", 5.5 + 3.0 * cosine, 3.0 * sine);
    let posed = scratch.path("posed.obj");
    // The turn about -y takes +x to +z.
    json(&[
        "deform",
        text(&glb),
        "--turn",
        "right=0,-1,0,60",
        "--drag",
        &to,
        "--turn",
        "left=0,1,0,0",
        "-o",
        text(&posed),
    ]);
    let vertices = |text: &str| -> Vec<Vec<f32>> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("v "));
        lines
            .map(|line| line.split_whitespace().take(3).map(|x| x.parse().expect("a number")).collect())
            .collect()
    };
    let got = vertices(&std::fs::read_to_string(&posed).expect("a mesh"));
    let want = vertices(&card(60.0, ""));
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 2e-2);
    for (from, to) in [(&got, &want), (&want, &got)] {
        for place in from {
            assert!(to.iter().any(|other| near(place, other)), "{place:?}");
        }
    }
    let line = fails(&["deform", text(&glb), "--turn", "right=0,0,0,60", "-o", text(&posed)]);
    assert!(line.contains("turn 'right'"), "{line}");
    assert_eq!(run(&["deform", text(&glb), "-o", text(&posed)]).status.code(), Some(2));
}
