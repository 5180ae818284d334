//! A few poses of a rig on one picture, drawn before thousands are recorded: garbage is found in seconds.

use crate::JobError;
use crate::stage::{Shot, Stage, View};
use understudy_core::Controls;
use understudy_report::Picture;
use understudy_rigs::{Rig, RigPose};

/// Side of each picture, pixels.
const SIZE: usize = 320;

/// Poses the rig and draws what comes out, all with one camera. Poses that fail are an error or left out.
pub(crate) fn draw(rig: &dyn Rig, poses: &[Controls], skip_failed: bool) -> Result<Picture, JobError> {
    let mut shots = Vec::new();
    let mut out = RigPose::default();
    for (index, controls) in poses.iter().enumerate() {
        match rig.evaluate(controls, &mut out) {
            Ok(()) => {
                shots.push(Shot { vertices: out.vertices.clone(), caption: format!("pose {}", index + 1) })
            }
            Err(_) if skip_failed => {}
            Err(source) => {
                let rig = format!("{}: pose {} of the contact sheet", rig.name(), index + 1);
                return Err(JobError::Rig { rig, source });
            }
        }
    }
    let stage = Stage { mesh: rig.mesh(), colours: rig.colours(), size: SIZE, dark: false };
    let subtitle = format!("{} poses as they will be recorded", shots.len());
    Ok(stage.sheet(rig.name(), &subtitle, &shots, &[View::named("three-quarter")]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pose_has_its_picture() {
        let rig = crate::test_rig::small_rig();
        let width = |count: usize| {
            draw(&rig, &vec![rig.specs().defaults(); count], false).expect("the rig poses").width()
        };
        assert!(width(3) > width(1) + SIZE);
        let bad = [Controls(vec![f32::NAN, 0.0])];
        let problem = draw(&rig, &bad, false).expect_err("not finite").to_string();
        assert!(problem.contains("pose 1 of the contact sheet"), "{problem}");
    }
}
