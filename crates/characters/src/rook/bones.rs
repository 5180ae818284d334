//! Rook's skeleton: the left half is listed, the right half mirrored. Every bone's y axis runs along it
//! and a positive turn about x bends it the natural way; right bones are mirrored so that equal values
//! on both sides make a symmetric pose.

use super::coat::skirt_point;
use super::plan::{self, frame};
use understudy_core::{Bone, JointTransform, Mat3, Quat, Skeleton, Vec3};
use understudy_rigs::RigError;

/// A bone in world space, before it is put into its parent's frame.
struct Plan {
    name: String,
    parent: Option<String>,
    at: Vec3,
    rotation: Quat,
}

/// Builds the skeleton.
pub fn skeleton() -> Result<Skeleton, RigError> {
    let mut plans = Vec::new();
    spine(&mut plans);
    let mut left = Vec::new();
    arm(&mut left);
    leg(&mut left);
    hem(&mut left);
    for plan in left {
        let right = mirrored(&plan);
        plans.push(plan);
        plans.push(right);
    }
    let find = |name: &str| plans.iter().position(|plan| plan.name == name);
    let mut bones = Vec::with_capacity(plans.len());
    for plan in &plans {
        let parent = match &plan.parent {
            None => None,
            Some(name) => Some(find(name).ok_or_else(|| RigError::Unknown {
                part: format!("bone '{}'", plan.name),
                name: name.clone(),
            })?),
        };
        let (at, rotation) = match parent {
            None => (plan.at, plan.rotation),
            Some(parent) => {
                let parent = &plans[parent];
                let back = parent.rotation.inverse();
                (back * (plan.at - parent.at), back * plan.rotation)
            }
        };
        let rest = JointTransform { rotation: rotation.normalize(), translation: at, scale: Vec3::ONE };
        bones.push(Bone { name: plan.name.clone(), parent, rest });
    }
    Ok(Skeleton::new(bones)?)
}

/// The name on the other side; the same for a bone in the middle.
pub fn other_side(name: &str) -> String {
    // Chains carry a number after the side: `hem_front_l_1`.
    if let Some(stem) = name.strip_suffix("_l") {
        return format!("{stem}_r");
    }
    if let Some(stem) = name.strip_suffix("_r") {
        return format!("{stem}_l");
    }
    if name.contains("_l_") { name.replace("_l_", "_r_") } else { name.replace("_r_", "_l_") }
}

fn mirrored(plan: &Plan) -> Plan {
    let flip = Vec3::new(-1.0, 1.0, 1.0);
    let axes = Mat3::from_quat(plan.rotation);
    // A reflection turns a rotation about `a` into one about `−Ma`, so all three axes are negated.
    let axis = |axis: Vec3| -(axis * flip);
    let mirrored = Mat3::from_cols(axis(axes.x_axis), axis(axes.y_axis), axis(axes.z_axis));
    Plan {
        name: other_side(&plan.name),
        parent: plan.parent.as_deref().map(other_side),
        at: plan.at * flip,
        rotation: Quat::from_mat3(&mirrored).normalize(),
    }
}

fn add(plans: &mut Vec<Plan>, name: impl Into<String>, parent: &str, at: Vec3, rotation: Quat) {
    let parent = (!parent.is_empty()).then(|| parent.to_string());
    plans.push(Plan { name: name.into(), parent, at, rotation });
}

fn spine(plans: &mut Vec<Plan>) {
    let upright = |y: f32, z: f32| (Vec3::new(0.0, y, z), Quat::IDENTITY);
    let mut parent = "";
    for (name, (at, rotation)) in [
        ("root", upright(0.0, 0.0)),
        ("hips", upright(100.0, -0.5)),
        ("spine_1", upright(105.0, -0.5)),
        ("spine_2", upright(113.0, -0.5)),
        ("spine_3", upright(122.0, -1.0)),
        ("chest", upright(131.0, -1.5)),
        ("neck_1", upright(155.0, -2.0)),
        ("neck_2", upright(160.0, -1.5)),
        ("head", (plan::HEAD, Quat::IDENTITY)),
    ] {
        add(plans, name, parent, at, rotation);
        parent = name;
    }
    add(plans, "breathe", "chest", Vec3::new(0.0, 134.0, 3.0), Quat::IDENTITY);
    add(plans, "beak", "head", plan::BEAK, Quat::IDENTITY);
    add(plans, "hood_front", "head", Vec3::new(0.0, 185.0, 8.0), Quat::IDENTITY);
    add(plans, "hood_back", "head", Vec3::new(0.0, 180.0, -9.0), Quat::IDENTITY);
}

fn arm(plans: &mut Vec<Plan>) {
    let (shoulder, elbow, wrist) = (plan::SHOULDER, plan::elbow(), plan::wrist());
    let (upper, lower) = (plan::upper_arm_direction(), plan::forearm_direction());
    let [along, back, _] = plan::hand_axes();
    let upper_frame = frame(upper, Vec3::Z);
    let lower_frame = frame(lower, Vec3::Z);
    let root = Vec3::new(3.0, 150.0, 1.0);
    let clavicle = frame(shoulder - root, Vec3::Z);
    add(plans, "clavicle_l", "chest", root, clavicle);
    add(plans, "scapula_l", "chest", Vec3::new(9.0, 142.0, -9.0), Quat::IDENTITY);
    add(plans, "hood_l", "head", Vec3::new(11.0, 172.0, 2.0), Quat::IDENTITY);
    add(plans, "upper_arm_l", "clavicle_l", shoulder, upper_frame);
    add(plans, "shoulder_helper_l", "clavicle_l", shoulder, upper_frame);
    add(plans, "mantle_l", "clavicle_l", shoulder, upper_frame);
    add(plans, "upper_arm_twist_1_l", "upper_arm_l", shoulder + upper * 5.0, upper_frame);
    add(plans, "upper_arm_twist_2_l", "upper_arm_l", shoulder + upper * 15.0, upper_frame);
    add(plans, "elbow_helper_l", "upper_arm_l", elbow, lower_frame);
    add(plans, "forearm_l", "upper_arm_l", elbow, lower_frame);
    add(plans, "forearm_twist_1_l", "forearm_l", elbow + lower * 9.0, lower_frame);
    add(plans, "forearm_twist_2_l", "forearm_l", elbow + lower * 18.0, lower_frame);
    let hand_frame = frame(along, -back);
    add(plans, "wrist_helper_l", "forearm_l", wrist, hand_frame);
    add(plans, "hand_l", "forearm_l", wrist, hand_frame);
    for finger in plan::fingers().into_iter().chain([plan::thumb()]) {
        let mut parent = "hand_l".to_string();
        // The thumb bends across the palm, the fingers towards it.
        let [along, back, side] = plan::hand_axes();
        let flex = if finger.name == "thumb" { along * 0.3 - back * 0.6 - side * 0.7 } else { -back };
        for joint in 0..3 {
            let name = format!("{}_{}_l", finger.name, joint + 1);
            let direction = finger.joints[joint + 1] - finger.joints[joint];
            add(plans, name.clone(), &parent, finger.joints[joint], frame(direction, flex));
            parent = name;
        }
    }
}

fn leg(plans: &mut Vec<Plan>) {
    let (hip, knee, ankle, ball) = (plan::HIP, plan::KNEE, plan::ANKLE, plan::BALL);
    let thigh_frame = frame(knee - hip, Vec3::Z);
    let calf_frame = frame(ankle - knee, Vec3::NEG_Z);
    let foot_frame = frame(Vec3::new(0.05, 0.0, 1.0), Vec3::Y);
    let (upper, lower) = ((knee - hip).normalize(), (ankle - knee).normalize());
    add(plans, "thigh_l", "hips", hip, thigh_frame);
    add(plans, "hip_helper_l", "hips", hip, thigh_frame);
    add(plans, "thigh_twist_1_l", "thigh_l", hip + upper * 8.0, thigh_frame);
    add(plans, "thigh_twist_2_l", "thigh_l", hip + upper * 24.0, thigh_frame);
    add(plans, "knee_helper_l", "thigh_l", knee, calf_frame);
    add(plans, "calf_l", "thigh_l", knee, calf_frame);
    add(plans, "calf_twist_1_l", "calf_l", knee + lower * 14.0, calf_frame);
    add(plans, "calf_twist_2_l", "calf_l", knee + lower * 28.0, calf_frame);
    add(plans, "ankle_helper_l", "calf_l", ankle, foot_frame);
    add(plans, "foot_l", "calf_l", ankle, foot_frame);
    add(plans, "toe_l", "foot_l", ball, foot_frame);
}

/// Three bones a chain from hip height to the hem, on the surface of the coat.
fn hem(plans: &mut Vec<Plan>) {
    for (stem, column) in plan::HEM {
        let points: Vec<Vec3> = (1..=4).map(|row| skirt_point(row, column)).collect();
        let outward = Vec3::new(points[0].x, 0.0, points[0].z).normalize();
        let mut parent = "hips".to_string();
        for joint in 0..3 {
            let name = format!("{stem}_l_{}", joint + 1);
            add(
                plans,
                name.clone(),
                &parent,
                points[joint],
                frame(points[joint + 1] - points[joint], outward),
            );
            parent = name;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_skeleton_is_symmetric_and_large_enough() {
        let skeleton = skeleton().expect("a tree");
        assert!(skeleton.len() >= 100, "{} bones", skeleton.len());
        for (index, bone) in skeleton.bones().iter().enumerate() {
            let other = skeleton.find(&other_side(&bone.name)).expect("a mirror image");
            let (a, b) =
                (skeleton.rest_global()[index].translation, skeleton.rest_global()[other].translation);
            assert!((a.x + b.x).abs() < 1e-3 && (a.y - b.y).abs() < 1e-3, "{}", bone.name);
        }
    }
}
