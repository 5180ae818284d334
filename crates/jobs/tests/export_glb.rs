//! The linear part of a twin as a GLB: what a reader of the file plays is the fitted skin.

use std::path::Path;
use understudy_core::{Affine3A, ControlSpecs, Vec3};
use understudy_io::dataset::DatasetReader;
use understudy_io::gltf;
use understudy_jobs::sample::{SampleConfig, sample};
use understudy_jobs::twin::body::{Base, BodyLearning};
use understudy_jobs::twin::export::{ExportConfig, export};
use understudy_jobs::twin::export_glb::{ExportGlbReport, GlbSettings, WeightSource};
use understudy_jobs::twin::learn::{self, LearnConfig};
use understudy_jobs::twin::{Learning, open_twin};
use understudy_jobs::{Event, JobError, Silent, Watch};
use understudy_learn::Recording;
use understudy_learn::baselines::{Examples, Skinned};
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::Twin;

/// A hundredth of a millimetre.
const TOLERANCE_CM: f32 = 1e-3;

fn record(folder: &Path) {
    let rook = SampleConfig { rig: "rook".into(), ..SampleConfig::default() };
    let train = SampleConfig { output: folder.join("train"), poses: Some(32), ..rook.clone() };
    sample(&train, &Silent).expect("poses are recorded");
    let clip =
        SampleConfig { output: folder.join("kick"), clips: vec!["kick".into()], rate: Some(6.0), ..rook };
    sample(&clip, &Silent).expect("a clip is recorded");
}

fn learn(folder: &Path, base: Base) {
    let (data, output) = (folder.join("train"), folder.join("rook.twin"));
    let mut body = BodyLearning { base, ..BodyLearning::default() };
    body.settings.train.epochs = 1;
    learn::learn(&LearnConfig::new(data, output, Learning::Body(body)), &Silent).expect("a twin is learned");
}

fn export_glb(folder: &Path, settings: &GlbSettings, watch: &dyn Watch) -> Result<ExportGlbReport, JobError> {
    let config = ExportConfig {
        twin: folder.join("rook.twin"),
        glb: Some(folder.join("rook.glb")),
        glb_settings: settings.clone(),
        ..ExportConfig::default()
    };
    Ok(export(&config, watch)?.glb.expect("a skin was asked for"))
}

/// The baseline `lbs4` on the training poses.
fn baseline(folder: &Path) -> Skinned {
    let reader = DatasetReader::open(&folder.join("train")).expect("a dataset");
    let records: Vec<_> = reader.poses().map(|pose| pose.expect("a good chunk")).collect();
    let (mesh, skeleton) = (&reader.rest().mesh, reader.rest().skeleton.as_ref().expect("a body has bones"));
    // Bones as the twin rests them: another rounding may choose another of two equally good bones.
    let Twin::Body(twin) = open_twin(&folder.join("rook.twin")).expect("was learned") else {
        panic!("a body")
    };
    let inverse_rest: Vec<Affine3A> = twin.parts().rest_bones.iter().map(Affine3A::inverse).collect();
    let poses = Recording {
        mesh: mesh.clone(),
        skeleton: Some(skeleton.clone()),
        bones: records.iter().flat_map(|record| record.skeleton.0.clone()).collect(),
        controls: Vec::new(),
        specs: ControlSpecs::default(),
        vertices: records.iter().flat_map(|record| record.vertices.clone()).collect(),
    };
    let examples =
        Examples { poses: &poses, rest: mesh.positions(), inverse_rest: &inverse_rest, weights: None };
    Skinned::fit("lbs4", &examples, 4, 16)
}

fn furthest(a: &[Vec3], b: &[Vec3]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max)
}

/// Fails on any warning.
struct Strict;

impl Watch for Strict {
    fn event(&self, event: Event<'_>) {
        assert!(!matches!(event, Event::Warning { .. }), "{event:?}");
    }
}

#[test]
fn the_file_plays_the_fitted_skin() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    record(folder);
    learn(folder, Base::Rigid);
    let output = folder.join("rook.glb");
    let config = GlbSettings {
        train: Some(folder.join("train")),
        clips: vec!["walk".into(), folder.join("kick").display().to_string()],
        rate: Some(5.0),
        ..GlbSettings::default()
    };
    let report = export_glb(folder, &config, &Strict).expect("the file is written");
    assert_eq!((report.weights, report.influences), (WeightSource::Dataset, 4));
    let names: Vec<&str> = report.clips.iter().map(|clip| clip.name.as_str()).collect();
    assert_eq!(names, ["walk", "kick"]);

    let asset = gltf::read(&output).expect("our own file");
    assert!(asset.warnings.is_empty(), "{:?}", asset.warnings);
    assert!(asset.skin.as_ref().expect("a skin").max_influences() <= 4);
    let skin = baseline(folder);
    let rook = understudy_characters::rook::build().expect("rook builds");
    assert_eq!(asset.mesh.faces().len(), rook.mesh().faces().len());
    let mut blended = vec![Vec3::ZERO; rook.mesh().vertex_count()];
    assert!(furthest(&asset.rest_vertices(), rook.mesh().positions()) < TOLERANCE_CM);

    let walk = asset.find_clip("walk").expect("was written");
    let frames = rook.find_clip("walk").expect("rook walks").sample(rook.specs(), 5.0).expect("a good rate");
    assert_eq!(walk.own_frames(), frames.frames.len());
    let mut pose = RigPose::default();
    for (frame, controls) in frames.frames.iter().enumerate() {
        rook.evaluate(controls, &mut pose).expect("finite controls");
        skin.skin(&pose.global.0, &mut blended);
        let miss = furthest(&asset.evaluate(walk, frame), &blended);
        assert!(miss < TOLERANCE_CM, "frame {frame}: {miss} cm beside the fitted skin");
    }

    let kick = asset.find_clip("kick").expect("was written");
    let recorded = DatasetReader::open(&folder.join("kick")).expect("a dataset");
    assert_eq!((kick.rate, kick.own_frames()), (6.0, recorded.header().poses));
    for record in recorded.poses() {
        let record = record.expect("a good chunk");
        skin.skin(&record.skeleton.0, &mut blended);
        assert!(furthest(&asset.evaluate(kick, record.index), &blended) < TOLERANCE_CM);
        // What the report calls the distance from the original.
        assert!(f64::from(furthest(&blended, &record.vertices)) <= report.clips[1].max_mm / 10.0);
    }
    assert!(report.clips.iter().all(|clip| clip.playback_mm < 0.01 && clip.mean_mm < clip.max_mm));

    // The same bytes again, on another number of threads.
    let first = std::fs::read(&output).expect("was written");
    export_glb(folder, &GlbSettings { threads: 1, ..config.clone() }, &Silent).expect("again");
    assert!(std::fs::read(&output).expect("was written") == first, "threads changed the file");

    let bad = |clip: &str| GlbSettings { clips: vec![clip.into()], ..config.clone() };
    for (clip, word) in [("fly", "no such clip"), (&*folder.join("train").display().to_string(), "gaussian")]
    {
        let error = export_glb(folder, &bad(clip), &Silent).expect_err("no such clip");
        assert!(error.is_bad_input() && error.to_string().contains(word), "{error}");
    }
    let still = GlbSettings { rate: Some(f32::NAN), ..config.clone() };
    assert!(export_glb(folder, &still, &Silent).expect_err("no rate").is_bad_input());

    // A rig that is named and cannot be had is not silently another.
    for (name, says) in [("rok", "did you mean 'rook'"), ("mira", "its mesh")] {
        let named = GlbSettings { rig: Some(name.into()), ..config.clone() };
        let error = export_glb(folder, &named, &Silent).expect_err("another rig");
        assert!(error.is_bad_input() && error.to_string().contains(says), "{error}");
    }
    // Without a dataset the rig is posed at random; without a name every clip of the rig is written.
    let rig = GlbSettings { train: None, clips: Vec::new(), rate: Some(2.0), ..config.clone() };
    let posed = export_glb(folder, &rig, &Strict).expect("the rig is at hand");
    assert_eq!(posed.weights, WeightSource::Rig);
    assert!(posed.clips.len() >= 3, "every clip of the rig: {:?}", posed.clips);
    assert!(posed.clips.iter().all(|clip| clip.mean_mm < 20.0), "{:?}", posed.clips);

    // A twin on top of blended bones has a skin of its own, fitted to the same poses among the bones that its
    // networks see: about as good as one that may choose among all.
    learn(folder, Base::Lbs4);
    let own =
        export_glb(folder, &GlbSettings { train: None, ..config }, &Strict).expect("the twin has a skin");
    assert_eq!(own.weights, WeightSource::Twin);
    let ratio = own.clips[1].mean_mm / report.clips[1].mean_mm;
    assert!((0.9..1.1).contains(&ratio), "{own:?} {report:?}");
}
