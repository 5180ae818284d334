//! A skin twin from a dataset to a GLB and an ONNX of its bones: what leaves is what the twin plays.

use std::path::Path;
use std::sync::Mutex;
use understudy_core::{Affine3A, Controls, GlobalPose, Vec3};
use understudy_jobs::sample::{SampleConfig, sample};
use understudy_jobs::twin::eval::{EvalConfig, eval};
use understudy_jobs::twin::export::{ExportConfig, export};
use understudy_jobs::twin::learn::{LearnConfig, learn};
use understudy_jobs::twin::skin::SkinLearning;
use understudy_jobs::twin::{Learning, open_twin};
use understudy_jobs::{Event, Silent, Watch};
use understudy_rigs::Rig;
use understudy_runtime::{Pose, Twin};

/// Rook with few bones and little training: what is exported matters here, not how good it is. Of random poses, or of clips.
fn learned(folder: &Path, clips: &[&str]) -> Twin {
    learned_with(folder, clips, |_| ())
}

/// The same, with other settings of the whole.
fn learned_with(folder: &Path, clips: &[&str], change: impl FnOnce(&mut LearnConfig)) -> Twin {
    let data = folder.join("data");
    let config = SampleConfig {
        rig: "rook".into(),
        output: data.clone(),
        poses: Some(60),
        clips: clips.iter().map(|clip| (*clip).to_owned()).collect(),
        ..SampleConfig::default()
    };
    sample(&config, &Silent).expect("rook is always there");
    let mut skin = SkinLearning::default();
    skin.settings.bones = 12;
    skin.settings.components = Some(0);
    skin.settings.poses = 20;
    skin.settings.rounds = [2, 2];
    skin.settings.train.epochs = 5;
    let mut config = LearnConfig::new(&data, folder.join("rook.twin"), Learning::Skin(skin));
    change(&mut config);
    let report = learn(&config, &Silent).expect("it can be learned");
    assert_eq!(report.kind, "skin");
    assert!(report.held_back.mean_mm < report.held_back.base_mean_mm, "{:?}", report.held_back);
    open_twin(&config.output).expect("was learned")
}

#[test]
fn what_cannot_be_learned_is_one_line_that_names_the_data() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (data, output) = (folder.path().join("two"), folder.path().join("two.twin"));
    let config =
        SampleConfig { rig: "rook".into(), output: data.clone(), poses: Some(2), ..SampleConfig::default() };
    sample(&config, &Silent).expect("rook is always there");
    let attempt = |skin: SkinLearning| {
        let error = learn(&LearnConfig::new(&data, &output, Learning::Skin(skin)), &Silent).expect_err("no");
        assert!(error.is_bad_input() && !output.exists(), "{error}");
        error.to_string()
    };
    let said = attempt(SkinLearning::default());
    assert!(said.contains("two") && said.contains('2') && !said.contains('\n'), "{said}");
    let mut skin = SkinLearning::default();
    skin.settings.bones = 0;
    assert!(attempt(skin).contains("number of bones is 0"));
    assert!(attempt(SkinLearning { paper: true, ..SkinLearning::default() }).contains("--paper"));
}

#[test]
fn the_glb_and_the_bones_give_the_twins_vertices() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let twin = learned(folder.path(), &[]);
    let (glb, onnx) = (folder.path().join("rook.glb"), folder.path().join("bones.onnx"));
    let mut config = ExportConfig {
        twin: folder.path().join("rook.twin"),
        onnx: Some(onnx),
        glb: Some(glb.clone()),
        ..ExportConfig::default()
    };
    config.glb_settings.clips = vec!["walk".into()];
    config.glb_settings.rate = Some(5.0);
    let report = export(&config, &Silent).expect("it can be exported");
    let clip = &report.glb.expect("a GLB was asked for").clips[0];
    assert!(clip.playback_mm < 0.01, "{clip:?}");
    assert_eq!(report.onnx.expect("an ONNX was asked for").joints, Some([12, 3, 4]));

    // What another program reads: the file's own joints and weights, moved by the network's bones.
    let Twin::Skin(skin) = &twin else { panic!("a skin twin is wanted") };
    let asset = understudy_io::gltf::read(&glb).expect("what we wrote");
    let skeleton = asset.skeleton.as_ref().expect("joints");
    let weights = asset.skin.as_ref().expect("weights");
    let values = twin.header().inputs.controls.iter().enumerate();
    let controls =
        Controls(values.map(|(i, s)| s.default + (s.high - s.default) * 0.1 * (i % 5) as f32).collect());
    let bones = skin.bones(&controls.0).expect("a valid pose");
    let mut global = GlobalPose(skeleton.rest_global().to_vec());
    for (bone, world) in bones.iter().enumerate() {
        for suffix in ["", "_skin"] {
            let joint = skeleton.find(&format!("bone_{bone:03}{suffix}")).expect("every bone is two joints");
            global.0[joint] = *world;
        }
    }
    let bound = global.0.iter().zip(skeleton.inverse_bind());
    let matrices: Vec<Affine3A> = bound.map(|(bone, inverse)| *bone * *inverse).collect();
    let mut played = vec![Vec3::ZERO; twin.vertex_count()];
    weights.linear_blend(&matrices, asset.mesh.positions(), &mut played);
    let mut truth = played.clone();
    twin.player(1).pose(Pose::Controls(&controls.0), &mut truth).expect("a valid pose");
    let worst = played.iter().zip(&truth).map(|(a, b)| a.distance(*b) * 10.0).fold(0.0, f32::max);
    assert!(worst < 0.01, "{worst} mm");

    // The clip, as engines without any network play it.
    let rook = understudy_characters::rook::build().expect("rook builds");
    let frames = rook.find_clip("walk").expect("rook walks").sample(rook.specs(), 5.0).expect("a good rate");
    let walk = asset.find_clip("walk").expect("was written");
    for (frame, controls) in frames.frames.iter().enumerate() {
        twin.player(1).pose(Pose::Controls(&controls.0), &mut truth).expect("a valid pose");
        let played = asset.evaluate(walk, frame);
        let worst = played.iter().zip(&truth).map(|(a, b)| a.distance(*b) * 10.0).fold(0.0, f32::max);
        assert!(worst < 0.01, "frame {frame}: {worst} mm");
    }
}

#[test]
fn a_clip_that_is_kept_for_tests_weighs_no_twin_that_learned_from_it() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    learned(folder.path(), &["walk", "test"]);
    let twin = folder.path().join("rook.twin");
    let config = EvalConfig { twin: twin.clone(), clips: vec!["test".into()], ..EvalConfig::default() };
    let error = eval(&config, &Silent).expect_err("it learned from that clip");
    assert!(error.is_bad_input() && error.to_string().contains("kept for tests"), "{error}");
    // Nor one whose options were chosen by it.
    let chosen = folder.path().join("chosen");
    std::fs::create_dir(&chosen).expect("a scratch folder");
    learned_with(&chosen, &["walk", "kick"], |config| config.chosen_on = vec!["test".into()]);
    let by_it = EvalConfig { twin: chosen.join("rook.twin"), ..config };
    let error = eval(&by_it, &Silent).expect_err("its options were chosen by that clip");
    assert!(error.is_bad_input() && error.to_string().contains("chosen by it"), "{error}");
    eval(&EvalConfig { clips: vec!["reach".into()], ..by_it }, &Silent).expect("of others it may be weighed");
    // Of others it is only said.
    let heard = Heard::default();
    let config =
        EvalConfig { twin: twin.clone(), clips: vec!["walk".into(), "kick".into()], ..EvalConfig::default() };
    let report = eval(&config, &heard).expect("it is weighed");
    assert!(report.kept_for_tests.is_empty());
    let warnings = heard.0.lock().expect("nobody panicked");
    let of = |clip: &str| warnings.iter().filter(|warning| warning.contains(clip)).count();
    assert_eq!((of("'walk'"), of("'kick'")), (1, 0), "{warnings:?}");
}

/// Remembers warnings.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Watch for Heard {
    fn event(&self, event: Event<'_>) {
        if let Event::Warning { message } = event {
            self.0.lock().expect("nobody panicked").push(message.to_owned());
        }
    }
}
