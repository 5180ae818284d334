//! Blender files as rigs. Without Blender: what its workers answered once for a small rig, replayed. With it (`cargo xtask
//! test` where it is at hand; `--all` installs it as `--install-blender` does): that rig made, surveyed, sampled, and its
//! twin shown in Blender again; and a rig of what is rare.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use understudy_core::{Affine3A, ControlSpecs, Controls, Vec3};
use understudy_io::dataset::DatasetReader;
use understudy_jobs::blender::program::Program;
use understudy_jobs::blender::{BlenderOptions, ControlsFile, look};
use understudy_jobs::rigs;
use understudy_jobs::sample::{Method, SampleConfig, sample};
use understudy_jobs::twin::Learning;
use understudy_jobs::twin::body::BodyLearning;
use understudy_jobs::twin::export::{ExportConfig, export};
use understudy_jobs::twin::export_glb::GlbSettings;
use understudy_jobs::twin::learn::{LearnConfig, learn};
use understudy_jobs::{Event, Silent, Watch};
use understudy_rigs::RigPose;

/// Poses that were recorded beside the frames of clips.
const POSES: usize = 20;

fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/blender_rig").join(name)
}

fn tool(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/blender-rigs").join(name)
}

fn replayed() -> String {
    format!("cmd:python3 '{}' replay '{}'", own("replayed_rig.py").display(), own("tiny.answers").display())
}

/// Remembers warnings.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Watch for Heard {
    fn event(&self, event: Event<'_>) {
        if let Event::Warning { message } = event {
            self.0.lock().expect("no listener panicked").push(message.into());
        }
    }
}

/// Pose number `pose`, as the recording has it: every control somewhere in its range.
fn spread(specs: &ControlSpecs, pose: usize) -> Controls {
    let share = |place: usize| ((7 * pose + 3 * place + pose * place) % 11) as f32 / 10.0;
    Controls(specs.iter().enumerate().map(|(place, c)| c.low + share(place) * (c.high - c.low)).collect())
}

fn clip(rig: &str, output: PathBuf) -> SampleConfig {
    let clips = vec!["test".into()];
    SampleConfig { rig: rig.into(), output, clips, method: Some(Method::Clips), ..SampleConfig::default() }
}

/// Vertices and bones of every pose.
fn content(folder: &Path) -> Vec<(Vec<Vec3>, Vec<Affine3A>)> {
    let reader = DatasetReader::open(folder).expect("complete");
    reader
        .poses()
        .map(|pose| pose.expect("good chunks"))
        .map(|pose| (pose.vertices, pose.skeleton.0))
        .collect()
}

#[test]
fn recorded_answers_of_blender_become_a_rig_and_a_dataset() {
    let heard = Heard::default();
    let rig = rigs::open(&replayed(), &heard).expect("it answers").rig;
    let warnings = heard.0.lock().expect("no listener panicked").join("\n");
    assert!(warnings.contains("3 of 57 vertices of 'Arm' do not follow 'root.translate_x'"), "{warnings}");
    assert!(warnings.contains("1 drivers call Python and are dead without --trust-scripts"), "{warnings}");

    let (mesh, skeleton) = (rig.mesh(), rig.skeleton().expect("bones"));
    let parent = |name: &str| {
        let bone = skeleton.find(name).unwrap_or_else(|| panic!("no {name}"));
        skeleton.bones()[bone].parent.map(|parent| skeleton.bones()[parent].name.as_str())
    };
    // The bone of a hook on a lattice, a joint of a bendy bone and a driven shape key are inputs like any other.
    assert!(parent("bulge").is_some() && parent("upper#2").is_none() && parent("upper#4").is_some());
    assert_eq!((parent("shape:Arm/elbow"), parent("object:Band")), (None, Some("upper")));
    assert!(skeleton.find("fk_helper").is_none() && skeleton.find("root").is_none(), "mechanism is no input");
    // 80 cm along Blender's z are 80 cm up; a polygon of six corners became triangles.
    let (low, high) = mesh.bounds();
    assert!((high.y - 80.0).abs() < 0.1 && low.y > -0.1, "{low} {high}");
    assert!(mesh.faces().iter().all(|face| face.corner_count() <= 4));
    assert_eq!(mesh.segments().names, ["Arm", "Band"]);
    assert!(rig.clips().iter().any(|clip| clip.name == "test" && clip.is_for_test()));

    // The root moves everything but the three loose vertices, whose places are 54 to 56.
    let root = rig.specs().find("root.translate_z").expect("a control");
    let (mut pose, mut lifted) = (RigPose::default(), 0);
    for index in 0..POSES {
        let controls = spread(rig.specs(), index);
        rig.evaluate(&controls, &mut pose).expect("recorded");
        let moved = |vertex: usize| pose.vertices[vertex].distance(mesh.positions()[vertex]);
        assert!((54..57).all(|vertex| moved(vertex) < 1e-3), "pose {index}");
        if controls.0[root].abs() > 2.0 {
            lifted += usize::from((0..54).all(|vertex| moved(vertex) > 0.1));
        }
    }
    assert!(lifted > POSES / 3, "{lifted}");

    let folder = tempfile::tempdir().expect("a scratch folder");
    let report = sample(&clip(&replayed(), folder.path().join("test")), &Silent).expect("recorded");
    assert_eq!((report.poses, report.failed.len()), (21, 0));
    assert!(report.rig_ms.is_some_and(|ms| ms > 0.0));
    let frames = content(&folder.path().join("test"));
    // The clip begins and ends at rest.
    for (ours, rest) in frames[0].0.iter().chain(&frames[20].0).zip(mesh.positions().iter().cycle()) {
        assert!(ours.distance(*rest) < 0.05, "{ours} {rest}");
    }
    assert!(frames[10].0.iter().zip(mesh.positions()).any(|(ours, rest)| ours.distance(*rest) > 5.0));
}

/// Blender, installed where it is missing.
fn blender() -> Program {
    Program::find(true, &Silent).expect("Blender")
}

/// Runs a script in Blender's Python.
fn run_script(script: &Path, words: &[&str]) -> String {
    let mut command = match blender() {
        Program::Python(python) => {
            let mut command = Command::new(python);
            command.arg(script);
            command
        }
        Program::Blender(blender) => {
            let mut command = Command::new(blender);
            command.args(["--background", "--python"]).arg(script).arg("--");
            command
        }
    };
    let output = command.args(words).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn tiny(folder: &Path) -> PathBuf {
    let file = folder.join("tiny.blend");
    run_script(&tool("make.py"), &["tiny", &file.to_string_lossy()]);
    file
}

#[test]
#[ignore = "runs Blender, and installs it where it is missing"]
fn blender_answers_as_it_did_when_it_was_recorded() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = tiny(folder.path());
    let rig = file.to_string_lossy().into_owned();
    let place = |name: &str| folder.path().join(name);
    let (live, replayed) = (
        rigs::open(&rig, &Silent).expect("Blender answers").rig,
        rigs::open(&replayed(), &Silent).expect("it answers").rig,
    );
    let (mut ours, mut theirs) = (RigPose::default(), RigPose::default());
    for index in 0..POSES {
        let controls = spread(replayed.specs(), index);
        live.evaluate(&controls, &mut ours).expect("evaluated");
        replayed.evaluate(&controls, &mut theirs).expect("recorded");
        assert!(
            ours.vertices.iter().zip(&theirs.vertices).all(|(a, b)| a.distance(*b) < 1e-3),
            "pose {index}"
        );
        assert!(
            ours.global.0.iter().zip(&theirs.global.0).all(|(a, b)| a.abs_diff_eq(*b, 1e-3)),
            "pose {index}"
        );
    }
    drop(live);
    // The frames of a clip are what Blender plays.
    sample(&clip(&rig, place("test")), &Silent).expect("sampled");
    assert!(place("test/contact-sheet.png").is_file() && place("test/blender.json").is_file());
    let script = place("play.py");
    std::fs::write(&script, PLAY).expect("writable");
    let played = run_script(&script, &[&rig, &place("played.bin").to_string_lossy()]);
    assert!(played.contains("21 frames"), "{played}");
    let bytes = std::fs::read(place("played.bin")).expect("readable");
    let numbers: Vec<f32> =
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("four bytes"))).collect();
    let frames = content(&place("test"));
    let count = frames[0].0.len();
    assert_eq!(numbers.len(), frames.len() * count * 3);
    for (frame, (vertices, _)) in frames.iter().enumerate() {
        for (vertex, ours) in vertices.iter().enumerate() {
            let at = 3 * (frame * count + vertex);
            let theirs = Vec3::new(numbers[at], numbers[at + 2], -numbers[at + 1]) * 100.0;
            assert!(ours.distance(theirs) < 0.01, "frame {frame} vertex {vertex}: {ours} {theirs}");
        }
    }
}

/// Plays the action `test` as an animator would, and writes the evaluated vertices of both meshes.
const PLAY: &str = r#"
import sys, bpy, numpy as np
words = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else sys.argv[1:]
bpy.ops.wm.open_mainfile(filepath=words[0], use_scripts=False)
bpy.context.view_layer.layer_collection.children["Bands"].exclude = False
rig, action = bpy.data.objects["Rig"], bpy.data.actions["test"]
rig.animation_data.action = action
rig.animation_data.action_slot = action.slots[0]
bpy.data.objects["Arm"].modifiers["Subdivision"].show_viewport = False
out = []
for frame in range(1, 22):
    bpy.context.scene.frame_set(frame)
    for name in ("Arm", "Band"):
        thing = bpy.data.objects[name].evaluated_get(bpy.context.evaluated_depsgraph_get())
        out += [list(thing.matrix_world @ v.co) for v in thing.data.vertices]
np.array(out, np.float32).tofile(words[1])
print("21 frames")
"#;

#[test]
#[ignore = "runs Blender, and installs it where it is missing"]
fn a_survey_says_what_a_user_must_know() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = tiny(folder.path());
    let facts = look(&file, &BlenderOptions::default(), &Silent).expect("surveyed").facts;
    assert_eq!(facts.stray.iter().map(|stray| stray.count).collect::<Vec<_>>(), [3]);
    assert_eq!(
        (facts.dead_drivers, facts.moves_nothing.as_slice()),
        (1, ["lower[\"squash\"]".to_owned()].as_slice())
    );
    assert_eq!(facts.switches.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["lower[\"follow\"]"]);
    let names: Vec<&str> = facts.controls.iter().map(|control| control.name.as_str()).collect();
    assert!(
        names.contains(&"Arm:free")
            && names.contains(&"lower.rotate_x")
            && !names.contains(&"lower.rotate_y")
    );
    let limit = facts.controls.iter().find(|control| control.name == "lower.rotate_x").expect("a control");
    assert!(limit.from == "limit" && (limit.low + 10.0).abs() < 0.01 && (limit.high - 120.0).abs() < 0.01);

    // A controls file is written, edited, and read by the next run.
    let controls_file = folder.path().join("tiny.toml");
    let options = BlenderOptions { controls_file: Some(controls_file.clone()), ..BlenderOptions::default() };
    look(&file, &options, &Silent).expect("surveyed");
    let mut edited = ControlsFile::read_if_there(&controls_file).expect("valid").expect("written");
    for control in &mut edited.controls {
        match control.name.as_str() {
            "lower.rotate_x" => (control.low, control.high) = (-5.0, 60.0),
            "Arm:free" => control.sample = false,
            "root.scale_x" => (control.sample, control.low, control.high) = (true, 0.9, 1.1),
            _ => {}
        }
    }
    edited.write(&controls_file, &file).expect("writable");
    let facts = look(&file, &options, &Silent).expect("surveyed").facts;
    let find = |name: &str| facts.controls.iter().find(|control| control.name == name);
    assert_eq!(find("lower.rotate_x").map(|control| (control.low, control.high)), Some((-5.0, 60.0)));
    assert!(find("Arm:free").is_none() && find("root.scale_x").is_some());

    // Patterns, switches, and what cannot be.
    let some = BlenderOptions {
        controls: vec!["low*".into()],
        objects: vec!["A*".into()],
        // Half way: at one the bone follows another, and nothing of its own moves a vertex.
        set: vec!["lower[\"follow\"]=0.5".into()],
        ..BlenderOptions::default()
    };
    let facts = look(&file, &some, &Silent).expect("surveyed").facts;
    assert!(facts.controls.iter().all(|control| control.name.starts_with("lower")), "{:?}", facts.controls);
    assert_eq!(facts.objects.iter().filter(|object| object.recorded).count(), 1);
    assert_eq!(facts.switches.iter().map(|switch| switch.value).collect::<Vec<_>>(), [0.5]);
    let wrong = [
        BlenderOptions { objects: vec!["Leg".into()], ..BlenderOptions::default() },
        BlenderOptions { set: vec!["lower[\"nothing\"]=1".into()], ..BlenderOptions::default() },
        BlenderOptions { controls: vec!["fk_helper".into()], ..BlenderOptions::default() },
    ];
    for (options, says) in wrong.iter().zip(["no such mesh", "lower[\"nothing\"]", "no control moves"]) {
        let error = look(&file, options, &Silent).err().expect("a mistake");
        assert!(error.is_bad_input() && error.to_string().contains(says), "{error}");
    }
    // Last, for it is remembered: with its Python, the driver lives and the property moves something.
    let trusted = BlenderOptions { trust_scripts: true, ..BlenderOptions::default() };
    let facts = look(&file, &trusted, &Silent).expect("surveyed").facts;
    assert!(facts.dead_drivers == 0 && facts.moves_nothing.is_empty(), "{:?}", facts.moves_nothing);
    assert_eq!(facts.inputs["shape"], 2);
}

#[test]
#[ignore = "runs Blender, and installs it where it is missing"]
fn envelopes_and_properties_of_any_object_are_seen() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("odd.blend");
    run_script(&own("odd.py"), &[&file.to_string_lossy()]);
    let facts = look(&file, &BlenderOptions::default(), &Silent).expect("surveyed").facts;
    let names: Vec<&str> = facts.controls.iter().map(|control| control.name.as_str()).collect();
    // Of an empty, of a mesh object and of its data, which another object shares.
    assert_eq!(names, ["low.rotate_x", "Tube[\"wide\"]", "Tube[\"deep\"]", "Handle[\"lean\"]"]);
    // Envelopes carry the mesh: both bones are inputs though no vertex group names them.
    assert_eq!((facts.inputs["bone"], facts.inputs["shape"]), (2, 4));
    let rig = rigs::open(&file.to_string_lossy(), &Silent).expect("Blender answers").rig;
    let vertices = |name: &str, value: f32| {
        let mut controls = rig.specs().defaults();
        controls.0[rig.specs().find(name).expect("a control")] = value;
        let mut pose = RigPose::default();
        rig.evaluate(&controls, &mut pose).expect("evaluated");
        pose.vertices
    };
    let rest = rig.mesh().positions();
    for name in &names {
        let moved = vertices(name, 1.0).iter().zip(rest).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
        assert!(moved > 0.1, "{name}: {moved} cm");
    }
    // An action that keys nothing but the empty's property.
    let clip = rig.find_clip("nod").expect("an action");
    let lean = rig.specs().find("Handle[\"lean\"]").expect("a control");
    let frames = clip.sample(rig.specs(), clip.own_rate()).expect("frames").frames;
    assert_eq!(frames.len(), 11);
    assert!((frames[5].0[lean] - 1.0).abs() < 1e-3 && frames[10].0[lean].abs() < 1e-3);
}

/// Loads a folder of `export --blender` beside the rig, at half the clip's frame rate, and writes the twin's vertices in its
/// own space for frames 1 to 11: every other frame of the clip.
const SHOW: &str = r#"
import os, runpy, sys, bpy, numpy as np
words = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else sys.argv[1:]
rig, folder, output = words
bpy.ops.wm.open_mainfile(filepath=rig, use_scripts=False)
render = bpy.context.scene.render
first = int(bpy.data.actions["test"].frame_range[0])
render.fps //= 2
thing = runpy.run_path(os.path.join(folder, "load_twin.py"), run_name="loader")["load"](folder)
out = []
for frame in range(first, first + 11):
    bpy.context.scene.frame_set(frame)
    shown = thing.evaluated_get(bpy.context.evaluated_depsgraph_get())
    out += [list(v.co) for v in shown.data.vertices]
np.array(out, np.float32).tofile(output)
print("shown", thing.users_collection[0].name, thing.location.x > 0)
"#;

#[test]
#[ignore = "runs Blender, and installs it where it is missing"]
fn a_twin_is_shown_in_blender_by_its_script() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = tiny(folder.path());
    let rig = file.to_string_lossy().into_owned();
    let place = |name: &str| folder.path().join(name);
    let text = |name: &str| place(name).to_string_lossy().into_owned();
    let poses =
        SampleConfig { rig: rig.clone(), output: place("train"), poses: Some(60), ..SampleConfig::default() };
    sample(&poses, &Silent).expect("sampled");
    sample(&clip(&rig, place("test")), &Silent).expect("sampled");
    let mut body = BodyLearning::default();
    (body.settings.train.epochs, body.settings.train.batch) = (20, 16);
    let learning = LearnConfig::new(place("train"), place("tiny.twin"), Learning::Body(body));
    learn(&learning, &Silent).expect("learned");
    let exported = ExportConfig {
        twin: place("tiny.twin"),
        onnx: None,
        glb: None,
        blender: Some(place("shown")),
        glb_settings: GlbSettings {
            clips: vec![text("test")],
            rig: Some(rig.clone()),
            ..GlbSettings::default()
        },
    };
    let report = export(&exported, &Silent).expect("exported").blender.expect("a folder");
    assert_eq!((report.clips[0].name.as_str(), report.clips[0].frames), ("test", 21));
    let script = place("show.py");
    std::fs::write(&script, SHOW).expect("writable");
    let said = run_script(&script, &[&rig, &text("shown"), &text("shown.bin")]);
    assert!(said.contains("shown Understudy True"), "{said}");
    let floats = |bytes: &[u8]| -> Vec<f32> {
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("four bytes"))).collect()
    };
    let shown = floats(&std::fs::read(place("shown.bin")).expect("written"));
    let cache = std::fs::read(place("shown").join(&report.clips[0].file)).expect("a cache");
    let cache = floats(&cache[32..]);
    let width = cache.len() / 21;
    assert_eq!(shown.len(), 11 * width);
    for (frame, ours) in shown.chunks_exact(width).enumerate() {
        let theirs = &cache[2 * frame * width..][..width];
        let far = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(far < 1e-5, "frame {frame}: {far} m");
    }
    let moved =
        shown[..width].iter().zip(&shown[5 * width..]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(moved > 0.01, "the clip moves the twin: {moved} m");
}
