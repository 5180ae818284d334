//! Every rigged and animated glTF file that we have, through the ways that commands take, against a plain
//! evaluation of the file: at rest and in every clip at four rates.

use std::path::{Path, PathBuf};
use understudy_core::{Controls, Vec3};
use understudy_io::dataset::DatasetReader;
use understudy_io::gltf;
use understudy_jobs::Silent;
use understudy_jobs::convert::{ConvertConfig, convert};
use understudy_jobs::info::{InfoConfig, info};
use understudy_jobs::rigs::model_rig;
use understudy_jobs::sample::{SampleConfig, sample};
use understudy_rigs::sampling::{Method, SamplingConfig};
use understudy_rigs::{Rig, RigPose, StackRig};
use understudy_testkit::gltf_reference::ReferenceModel;
use understudy_testkit::shared_data;

const RATES: [f32; 4] = [24.0, 30.0, 48.0, 60.0];

const FILES: [&str; 8] = [
    "gltf/Fox/Fox.glb",
    "gltf/MorphStressTest/MorphStressTest.glb",
    "gltf/RiggedFigure/RiggedFigure.glb",
    "gltf/RobotExpressive.glb",
    "gltf/SimpleMorph/SimpleMorph.gltf",
    "gltf/SimpleSkin/SimpleSkin.gltf",
    "kaykit/Knight.glb",
    "kaykit/Rogue.glb",
];

/// A hundredth of a millimetre. The fox is 155 m long, which in single precision is known to a millimetre's
/// hundredth only: there the same share of five metres counts.
fn tolerance_cm(size_cm: f64) -> f64 {
    1e-3 * (size_cm / 500.0).max(1.0)
}

struct Model {
    path: PathBuf,
    reference: ReferenceModel,
    rig: StackRig,
    tolerance: f64,
}

impl Model {
    fn open(path: &Path) -> Self {
        let reference = ReferenceModel::open(path);
        let rest = reference.rest();
        let extent = |axis: usize| {
            let values = rest.iter().map(|p| p[axis]);
            values.clone().fold(f64::MIN, f64::max) - values.fold(f64::MAX, f64::min)
        };
        let tolerance = tolerance_cm(extent(0).max(extent(1)).max(extent(2)));
        Self { path: path.into(), reference, rig: rig(path), tolerance }
    }

    fn check(&self, what: &str, found: &[Vec3], wanted: &[[f64; 3]]) {
        let worst = furthest(found, wanted);
        assert!(worst <= self.tolerance, "{}, {what}: {} mm", self.path.display(), worst * 10.0);
    }
}

fn rig(path: &Path) -> StackRig {
    model_rig("test", &gltf::read(path).expect("a good file")).expect("a good rig")
}

fn models() -> Vec<Model> {
    let Some(data) = shared_data() else { return Vec::new() };
    FILES.iter().map(|file| Model::open(&data.join(file))).collect()
}

fn furthest(found: &[Vec3], wanted: &[[f64; 3]]) -> f64 {
    assert_eq!(found.len(), wanted.len());
    let distance = |(a, b): (&Vec3, &[f64; 3])| {
        let a = a.to_array().map(f64::from);
        (0..3).map(|axis| (a[axis] - b[axis]).powi(2)).sum::<f64>().sqrt()
    };
    found.iter().zip(wanted).map(distance).fold(0.0, f64::max)
}

fn posed(rig: &StackRig, controls: &Controls) -> Vec<Vec3> {
    let mut pose = RigPose::default();
    rig.evaluate(controls, &mut pose).expect("finite");
    pose.vertices
}

/// A few frames of a clip that are on no common grid: many clips make up for few frames.
fn some_frames(count: usize, clips: usize) -> impl Iterator<Item = usize> {
    (count / 7..count).step_by(if clips > 20 { count.div_ceil(2).max(1) } else { 5 })
}

#[test]
fn rest_and_counts_are_the_files_own() {
    for model in models() {
        let report =
            info(&InfoConfig { input: model.path.display().to_string(), ..InfoConfig::default() }, &Silent);
        let report = report.expect("a good file");
        let mesh = report.mesh.as_ref().expect("a mesh");
        assert_eq!(mesh.vertices, model.reference.vertex_count());
        let warned = report.notes.iter().find_map(|note| note.split_once(" that name")?.0.rsplit_once(": "));
        let dropped = warned.map_or(0, |(_, count)| {
            count.split(' ').next().and_then(|count| count.parse().ok()).expect("a number of faces")
        });
        assert_eq!(mesh.faces + dropped, model.reference.triangle_count(), "{:?}", report.notes);
        assert_eq!(report.shapes.map_or(0, |s| s.names.len()), model.reference.target_count());
        let names: Vec<&str> = report.clips.iter().map(|clip| clip.name.as_str()).collect();
        assert_eq!(names, model.reference.clip_names());
        for (number, clip) in report.clips.iter().enumerate() {
            assert!((f64::from(clip.seconds) - model.reference.duration(number)).abs() < 1e-5);
        }
        let rest = posed(&model.rig, &model.rig.specs().defaults());
        model.check("rest", &rest, &model.reference.rest());
    }
}

#[test]
fn every_clip_is_sampled_as_the_file_says_at_four_rates() {
    for model in models() {
        for (number, clip) in model.rig.clips().iter().enumerate() {
            for rate in RATES {
                let config = SamplingConfig {
                    method: Method::Clips,
                    clips: vec![clip.name.clone()],
                    rate: Some(rate),
                    ..SamplingConfig::default()
                };
                let source = config.build(model.rig.specs(), model.rig.clips()).expect("a clip of the rig");
                let count = source.len().expect("frames") as usize;
                for frame in some_frames(count, model.rig.clips().len()) {
                    let truth = model.reference.evaluate(number, frame as f64 / f64::from(rate));
                    let what = format!("'{}' at {rate}, frame {frame}", clip.name);
                    model.check(&what, &posed(&model.rig, &source.pose(frame as u64)), &truth);
                }
            }
        }
    }
}

#[test]
fn a_recorded_clip_has_its_own_rate_and_the_files_vertices() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for (place, model) in models().iter().enumerate() {
        let clip = model.rig.clips().iter().max_by(|a, b| a.duration.total_cmp(&b.duration)).expect("clips");
        let number = model.rig.clips().iter().position(|other| other.name == clip.name).expect("there");
        let config = SampleConfig {
            rig: model.path.display().to_string(),
            output: folder.path().join(place.to_string()),
            clips: vec![clip.name.clone()],
            threads: 2,
            ..SampleConfig::default()
        };
        let report = sample(&config, &Silent).expect("recorded");
        let rate = f64::from(clip.rate.expect("a rate from the keys"));
        assert_eq!(report.poses as f64, (f64::from(clip.duration) * rate).round() + 1.0);
        let reader = DatasetReader::open(&config.output).expect("complete");
        for (frame, record) in reader.poses().enumerate().step_by(9) {
            let truth = model.reference.evaluate(number, frame as f64 / rate);
            model.check(&format!("recorded frame {frame}"), &record.expect("readable").vertices, &truth);
        }
    }
}

/// The file that is written is evaluated plainly too, so that no reader of ours covers up for the writer.
#[test]
fn a_converted_file_plays_the_same_between_its_keys() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for model in models() {
        let output = folder.path().join("again.glb");
        let input = model.path.display().to_string();
        let config = ConvertConfig { input, output: output.clone(), ..ConvertConfig::default() };
        convert(&config, &Silent).expect("converted");
        let (again, back) = (ReferenceModel::open(&output), rig(&output));
        assert_eq!(again.clip_names(), model.reference.clip_names());
        // Copies of vertices at seams of the texture come after the others.
        let count = model.reference.vertex_count();
        let plain = |vertices: Vec<[f64; 3]>| -> Vec<Vec3> {
            vertices[..count].iter().map(|p| Vec3::from_array(p.map(|v| v as f32))).collect()
        };
        model.check("written at rest", &plain(again.rest()), &model.reference.rest());
        let clips = model.rig.clips().len();
        for number in 0..clips {
            let rate = RATES[number % 4];
            let frames = (model.reference.duration(number) * f64::from(rate)).round() as usize + 1;
            for frame in some_frames(frames, clips) {
                let time = frame as f64 / f64::from(rate);
                let truth = model.reference.evaluate(number, time);
                let what = format!("written clip {number}, {time} s");
                model.check(&what, &plain(again.evaluate(number, time)), &truth);
                let controls = back.clips()[number].at([time], back.specs()).expect("a good clip").remove(0);
                model.check(&format!("{what}, read again"), &posed(&back, &controls), &truth);
            }
        }
    }
}

/// Random poses stay within what clips show: nobody stands on their head.
#[test]
fn random_poses_of_animated_characters_are_upright() {
    let Some(data) = shared_data() else { return };
    for (file, low, high) in [
        ("gltf/RobotExpressive.glb", "Hips", "Head"),
        ("kaykit/Knight.glb", "hips", "head"),
        ("kaykit/Rogue.glb", "hips", "head"),
    ] {
        let rig = rig(&data.join(file));
        let helper = rig.specs().iter().find(|spec| spec.name.contains("IK") || spec.name.contains("Pole"));
        assert!(helper.is_none(), "{file}: {helper:?} moves no vertex");
        for spec in rig.specs().iter() {
            let width = spec.high - spec.low;
            assert!(!spec.name.contains(".rotate_") || width <= 360.0, "{file}: {} {width}", spec.name);
        }
        let find = |name: &str| rig.skeleton().and_then(|s| s.find(name)).expect("a bone");
        let (low, high) = (find(low), find(high));
        let source = SamplingConfig::default().build(rig.specs(), rig.clips()).expect("random poses");
        let mut pose = RigPose::default();
        let mut inverted = 0;
        for number in 0..300 {
            rig.evaluate(&source.pose(number), &mut pose).expect("finite");
            let height = |bone: usize| pose.global.0[bone].translation.y;
            inverted += usize::from(height(high) < height(low));
        }
        assert!(inverted <= 2, "{file}: {inverted} of 300 random poses are upside down");
    }
}

/// Steps and splines, made from a real file: its keys read as other things.
#[test]
fn steps_and_splines_are_played_as_such() {
    let Some(data) = shared_data() else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    for entry in std::fs::read_dir(data.join("gltf/SimpleSkin")).expect("a folder").flatten() {
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).expect("copied");
    }
    let path = folder.path().join("SimpleSkin.gltf");
    let text = std::fs::read_to_string(&path).expect("a text");
    let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for interpolation in ["STEP", "CUBICSPLINE"] {
        json["animations"][0]["samplers"][0]["interpolation"] = interpolation.into();
        if interpolation == "CUBICSPLINE" {
            // Twelve rotations are four keys with their tangents.
            let input = json["animations"][0]["samplers"][0]["input"].as_u64().expect("an accessor");
            json["accessors"][input as usize]["count"] = 4.into();
            json["accessors"][input as usize]["max"] = serde_json::json!([1.5]);
        }
        std::fs::write(&path, json.to_string()).expect("writable");
        let model = Model::open(&path);
        let clip = &model.rig.clips()[0];
        let output = folder.path().join("again.glb");
        let input = path.display().to_string();
        convert(&ConvertConfig { input, output: output.clone(), ..ConvertConfig::default() }, &Silent)
            .expect("converted");
        let again = ReferenceModel::open(&output);
        for step in 0..60 {
            let time = 0.013 + f64::from(step) * 0.1;
            let truth = model.reference.evaluate(0, time);
            let controls = clip.at([time], model.rig.specs()).expect("a good clip").remove(0);
            let what = format!("{interpolation}, {time} s");
            model.check(&what, &posed(&model.rig, &controls), &truth);
            let written = again.evaluate(0, time);
            let written: Vec<Vec3> = written.iter().map(|p| Vec3::from_array(p.map(|v| v as f32))).collect();
            model.check(&format!("{what}, written"), &written, &truth);
        }
    }
}
