//! Differential and skin twins of recordings that are awkward (vertices at one place, several islands, a control that moves
//! nothing) and of those that teach nothing (two poses, one pose again and again): a twin of finite numbers, or one line.

mod common;

use common::{floats, holds_only, integers, json, refuse, succeed, text, unicode, write_npz};
use std::path::{Path, PathBuf};

const SIDE: usize = 12;

/// What is recorded.
struct Take {
    poses: usize,
    /// How far controls go, and whether vertices follow them.
    reach: f32,
    follows: bool,
    /// The first number of the random sequence.
    seed: u32,
}

impl Take {
    /// Two halves of a sheet that touch (every vertex of the border is there twice), a loose triangle, three controls of
    /// which the last moves nothing; as arrays of another program.
    fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let mut rest: Vec<[f32; 3]> = Vec::new();
        let mut faces = Vec::new();
        for half in 0..2 {
            let first = rest.len();
            rest.extend((0..SIDE * SIDE).map(|v| {
                let x = v % SIDE + half * (SIDE - 1);
                [x as f32, (v / SIDE) as f32, 0.0]
            }));
            for v in (0..SIDE * (SIDE - 1)).filter(|v| v % SIDE + 1 < SIDE) {
                let a = first + v;
                faces.extend([a, a + 1, a + SIDE, a + 1, a + 1 + SIDE, a + SIDE].map(|corner| corner as i32));
            }
        }
        let loose = rest.len() as i32;
        rest.extend([[5.0, 5.0, -3.0], [6.0, 5.0, -3.0], [5.0, 6.0, -3.0]]);
        faces.extend([loose, loose + 1, loose + 2]);
        let mut state = self.seed;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        };
        let (mut controls, mut vertices) = (Vec::new(), Vec::new());
        for _ in 0..self.poses {
            let c: Vec<f32> = (0..3).map(|_| self.reach * random()).collect();
            let moved = if self.follows { [c[0], c[1]] } else { [0.0; 2] };
            for [x, y, z] in &rest {
                let bump = |u: f32, v: f32| (-((x - u).powi(2) + (y - v).powi(2)) / 12.0).exp();
                let lift = moved[0] * bump(11.0, 5.0) + moved[1] * moved[1] * bump(5.0, 4.0);
                let slide = if *z < -1.0 { moved[0] } else { 0.3 * moved[1] * bump(16.0, 6.0) };
                vertices.extend([x + slide, *y, z + lift]);
            }
            controls.extend(c);
        }
        let path = folder.join(format!("{name}.npz"));
        let (count, faces_count) = (rest.len(), faces.len() / 3);
        write_npz(
            &path,
            &[
                ("vertices", "<f4", &format!("({}, {count}, 3)", self.poses), floats(&vertices)),
                ("rest", "<f4", &format!("({count}, 3)"), floats(&rest.concat())),
                ("faces", "<i4", &format!("({faces_count}, 3)"), integers(&faces)),
                ("controls", "<f4", &format!("({}, 3)", self.poses), floats(&controls)),
                ("control_names", "<U8", "(3,)", unicode(&["lift", "bulge", "nothing"], 8)),
                ("units", "<U8", "(1,)", unicode(&["cm"], 8)),
            ],
        );
        path
    }

    /// The same as a dataset.
    fn import(&self, folder: &Path, name: &str) -> PathBuf {
        let (path, data) = (self.write(folder, name), folder.join(name));
        succeed(&["import", text(&path), "-o", text(&data)]);
        std::fs::remove_file(path).expect("it was written");
        data
    }
}

const GOOD: Take = Take { poses: 120, reach: 1.0, follows: true, seed: 1 };

/// How each kind is learned at a budget of seconds.
const LEARN: [&[&str]; 2] = [
    &["learn", "diff", "--steps", "150", "--anchor-steps", "150", "--components", "8"],
    &["learn", "skin", "--bones", "6", "--epochs", "20"],
];

#[test]
fn awkward_meshes_and_controls_make_twins_of_finite_numbers() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let (train, test) =
        (GOOD.import(folder, "train"), Take { poses: 30, seed: 7, ..GOOD }.import(folder, "test"));
    for learn in LEARN {
        let twin = folder.join(format!("{}.twin", learn[1]));
        let report = json(&[learn, &[text(&train), "-o", text(&twin)]].concat());
        let held = &report["held_back"];
        let [mean, base] = ["mean_mm", "base_mean_mm"].map(|key| held[key].as_f64().expect("a number"));
        assert!(mean.is_finite() && mean < 0.5 * base, "{report}");
        let weighed = json(&["eval", text(&twin), text(&test)]);
        let figures = &weighed["methods"]["twin"];
        let [mean, most] = ["mean_mm", "max_mm"].map(|key| figures[key].as_f64().expect("a number"));
        assert!(mean > 0.0 && mean < 0.5 * base && most < 20.0, "{weighed}");
        if learn[1] == "diff" {
            // The halves are joined where they touch; the triangle is an island of its own. What takes many values and moves
            // nothing is seen and said.
            assert_eq!(report["idle_controls"].to_string(), "[\"nothing\"]", "{report}");
            assert_eq!(report["islands"], 2, "{report}");
            assert_eq!(report["joined"], SIDE, "{report}");
        }
        // What leaves is finite too.
        let onnx = folder.join("twin.onnx");
        succeed(&["export", text(&twin), "--onnx", text(&onnx)]);
    }
}

#[test]
fn recordings_that_teach_nothing_are_one_line() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let two = Take { poses: 2, ..GOOD }.import(folder, "two");
    let deaf = Take { follows: false, ..GOOD }.import(folder, "deaf");
    for learn in LEARN {
        let out = folder.join("out.twin");
        let refused = |data: &Path| refuse(&[learn, &[text(data), "-o", text(&out)]].concat());
        let line = refused(&two);
        assert!(line.contains("two") && line.contains("2 poses are too few"), "{line}");
        let line = refused(&deaf);
        assert!(line.contains("deaf") && line.contains("no vertex"), "{line}");
    }
    // One pose again and again: nothing says what moves the mesh.
    let still = Take { reach: 0.0, ..GOOD }.write(folder, "still");
    let line = refuse(&["import", text(&still), "-o", text(&folder.join("data"))]);
    assert!(line.contains("still.npz") && line.contains("nothing says what moves the mesh"), "{line}");
    holds_only(folder, &["two", "deaf", "still.npz"]);
}

#[test]
fn the_papers_recipe_of_differential_twins_is_an_option() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let (train, twin) = (GOOD.import(folder, "train"), folder.join("paper.twin"));
    let learn =
        ["learn", "diff", text(&train), "-o", text(&twin), "--paper", "--epochs", "2", "--rate", "0.01"];
    let report = json(&learn);
    assert!(report["held_back"]["mean_mm"].as_f64().is_some_and(f64::is_finite), "{report}");
    // Five hidden layers of 2048 in 32 bits: four matrices between them. ω of one.
    assert_eq!(report["anchor_weight"], 1.0, "{report}");
    assert!(report["bytes"].as_u64().is_some_and(|bytes| bytes > 4 * 4 * 2048 * 2048), "{report}");
    assert_eq!(report["linear_left"], 1.0, "no linear part: {report}");
    let line = refuse(&["learn", "skin", text(&train), "-o", text(&folder.join("no.twin")), "--paper"]);
    assert!(line.contains("--paper"), "{line}");
}
