//! What poses a twin by controls alone, held against the rigs themselves.

use understudy_core::mechanism::JointMechanism;
use understudy_core::{Controls, GlobalPose, JointPose, Random};
use understudy_jobs::Silent;
use understudy_jobs::rigs::{Names, open};
use understudy_learn::mechanism::{MechanismSettings, PosedBones, learn_mechanism};
use understudy_rigs::sampling::{Method, SamplingConfig};
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::MechanismFigures;

/// Relative to the size of a character.
const TOLERANCE: f32 = 1e-5;

#[test]
fn what_is_written_down_of_a_rig_poses_its_bones() {
    for name in Names::present(&Silent) {
        let rig = open(&name, &Silent).expect("a rig that is present").rig;
        let own = rig.mechanism().expect("rigs of ours show theirs");
        let text = serde_json::to_string(&own.parts()).expect("JSON");
        let parts = serde_json::from_str(&text).expect("what we wrote");
        let read = JointMechanism::from_parts(parts, rig.specs()).expect("a valid mechanism");
        let (mut pose, mut joints, mut global) =
            (RigPose::default(), JointPose::default(), GlobalPose::default());
        let mut random = Random::new(11);
        let draw = |random: &mut Random| -> Controls {
            Controls(rig.specs().iter().map(|spec| random.uniform(spec.low, spec.high)).collect())
        };
        let size = rig.mesh().positions().iter().map(|v| v.abs().max_element()).fold(0.0, f32::max);
        for _ in 0..20 {
            let controls = draw(&mut random);
            rig.evaluate(&controls, &mut pose).expect("finite");
            read.evaluate(&controls.0, &mut joints, &mut global);
            for (a, b) in global.0.iter().zip(&pose.global.0) {
                let turned =
                    (a.matrix3 - b.matrix3).to_cols_array().iter().fold(0.0f32, |m, n| m.max(n.abs()));
                let moved = a.translation.distance(b.translation) / size;
                assert!(turned <= TOLERANCE && moved <= TOLERANCE, "{name}: {turned} {moved}");
            }
        }
    }
}

/// Bones of random poses of a rig, as a dataset has them: sparse, as sampling draws them.
fn record(rig: &dyn Rig, count: u64) -> PosedBones {
    let own = rig.mechanism().expect("rigs of ours show theirs");
    let source = SamplingConfig { method: Method::Sparse, ..SamplingConfig::default() };
    let source = source.build(rig.specs(), rig.clips()).expect("a sound configuration");
    let (mut joints, mut global) = (JointPose::default(), GlobalPose::default());
    let (mut bones, mut controls) = (Vec::new(), Vec::new());
    for pose in 0..count {
        let values = source.pose(pose).0;
        own.evaluate(&values, &mut joints, &mut global);
        bones.extend_from_slice(&global.0);
        controls.extend(values);
    }
    let skeleton = own.skeleton();
    PosedBones {
        specs: rig.specs().clone(),
        names: skeleton.bones().iter().map(|bone| bone.name.clone()).collect(),
        parents: skeleton.bones().iter().map(|bone| bone.parent).collect(),
        rest: skeleton.rest_global().to_vec(),
        bones,
        controls,
        guides: 0,
    }
}

fn learned(name: &str, poses: u64, settings: &MechanismSettings) -> MechanismFigures {
    let rig = open(name, &Silent).expect("a rig that is present").rig;
    let poses = record(rig.as_ref(), poses);
    let learned = learn_mechanism(&poses, None, settings, &|_| true).expect("learned");
    learned.mechanism.figures.expect("was measured")
}

#[test]
fn bones_of_a_black_box_are_learned() {
    let settings = MechanismSettings { steps: 1000, ..MechanismSettings::default() };
    let figures = learned("mira", 2000, &settings);
    assert!(figures.mean_degrees < 0.1 && figures.mean_origin_mm < 0.05, "{figures:?}");
}

#[test]
#[ignore = "takes minutes"]
fn bones_of_our_rigs_are_learned_as_if_they_were_black_boxes() {
    for name in Names::present(&Silent) {
        let figures = learned(&name, 5000, &MechanismSettings::default());
        assert!(figures.mean_degrees < 0.2, "{name}: {figures:?}");
    }
}
