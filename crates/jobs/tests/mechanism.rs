//! What poses a twin by controls alone, held against the rigs themselves.

use understudy_core::mechanism::JointMechanism;
use understudy_core::{Controls, GlobalPose, JointPose, Random};
use understudy_jobs::Silent;
use understudy_jobs::rigs::{Names, open};
use understudy_rigs::RigPose;

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
