//! The bones of a skin twin as joints. Bones of a twin stretch and shear, joints of a glTF animation cannot: every bone is
//! two joints, one beneath the other. By singular values `M = U Σ Vᵀ` the upper one turns by `U` and scales by `Σ`, the lower
//! one, which the skin hangs on, turns by `Vᵀ`; together they are exactly the bone.

use crate::twin::kinds::OwnSkin;
use understudy_core::rotation::svd3;
use understudy_core::{
    Affine3A, Bone, DMat3, DVec3, JointPose, JointTransform, MeshParts, Quat, Skeleton, SkinWeights, Vec3,
};
use understudy_runtime::skin::SkinTwin;

/// Joints, weights, and where the joints are in a pose.
pub(super) fn own_skin(twin: &SkinTwin) -> Option<OwnSkin> {
    let parts = twin.parts();
    let joint = |bone: usize| {
        let name = format!("bone_{bone:03}");
        let rest = JointTransform::from_translation(parts.centres[bone]);
        let still = JointTransform::from_translation(Vec3::ZERO);
        let skinned = Bone { name: format!("{name}_skin"), parent: Some(2 * bone), rest: still };
        [Bone { name, parent: None, rest }, skinned]
    };
    let skeleton = Skeleton::new((0..parts.centres.len()).flat_map(joint).collect()).ok()?;
    let (offsets, bones, weights) = parts.weights.compressed();
    let skinned = bones.iter().map(|bone| 2 * bone + 1).collect();
    let weights =
        SkinWeights::from_compressed(offsets.to_vec(), skinned, weights.to_vec(), skeleton.len()).ok()?;
    let (positions, faces) = (parts.rest_vertices, parts.faces);
    let mesh = MeshParts { positions, faces, ..MeshParts::default() }.build().ok()?;
    let twin = twin.clone();
    // Axes of the frame before: a bone that hardly stretches has no axes of its own, and they must not jump.
    let mut before = vec![DMat3::IDENTITY; twin.bone_count()];
    let pose = move |controls: &[f32]| {
        let bones = twin.bones(controls)?;
        let pairs = bones.iter().zip(&mut before).flat_map(|(bone, before)| joints(bone, before));
        Ok(JointPose(pairs.collect()))
    };
    Some(OwnSkin { mesh, skeleton, weights, pose: Box::new(pose) })
}

/// The two joints of a bone. `before`: axes of the stretch in the frame before, and then in this one.
fn joints(bone: &Affine3A, before: &mut DMat3) -> [JointTransform; 2] {
    let svd = svd3(understudy_core::Mat3::from(bone.matrix3).as_dmat3());
    let (u, v) = ([svd.u.x_axis, svd.u.y_axis, svd.u.z_axis], [svd.v.x_axis, svd.v.y_axis, svd.v.z_axis]);
    // Each axis of before takes the nearest of those that are left, and its sign.
    let mut left = vec![0, 1, 2];
    let mut axes = [(DVec3::ZERO, DVec3::ZERO, 0.0); 3];
    for (axis, old) in [before.x_axis, before.y_axis, before.z_axis].into_iter().enumerate() {
        let near = |i: &usize| v[*i].dot(old).abs();
        let place = (0..left.len()).max_by(|a, b| near(&left[*a]).total_cmp(&near(&left[*b]))).unwrap_or(0);
        let own = left.remove(place);
        let sign = if v[own].dot(old) < 0.0 { -1.0 } else { 1.0 };
        axes[axis] = (u[own] * sign, v[own] * sign, svd.sigma[own]);
    }
    let mut turn = DMat3::from_cols(axes[0].0, axes[1].0, axes[2].0);
    let mut stretch = DMat3::from_cols(axes[0].1, axes[1].1, axes[2].1);
    let mut scale = DVec3::new(axes[0].2, axes[1].2, axes[2].2);
    // Reflections become a negative scale.
    if stretch.determinant() < 0.0 {
        stretch.z_axis = -stretch.z_axis;
        turn.z_axis = -turn.z_axis;
    }
    if turn.determinant() < 0.0 {
        turn.z_axis = -turn.z_axis;
        scale.z = -scale.z;
    }
    *before = stretch;
    let rotation = |matrix: &DMat3| Quat::from_mat3(&matrix.as_mat3()).normalize();
    let translation = bone.translation.into();
    let upper = JointTransform { rotation: rotation(&turn), translation, scale: scale.as_vec3() };
    let lower = JointTransform {
        rotation: rotation(&stretch.transpose()),
        translation: Vec3::ZERO,
        scale: Vec3::ONE,
    };
    [upper, lower]
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{GlobalPose, Mat3, Random};

    #[test]
    fn two_joints_are_exactly_an_affine_bone() {
        let mut random = Random::new(6);
        let bones = vec![
            Bone { name: "a".into(), parent: None, rest: JointTransform::from_translation(Vec3::ZERO) },
            Bone { name: "b".into(), parent: Some(0), rest: JointTransform::from_translation(Vec3::ZERO) },
        ];
        let skeleton = Skeleton::new(bones).expect("a chain of two");
        let mut before = DMat3::IDENTITY;
        for case in 0..200 {
            // The last ones are reflections, and some hardly stretch.
            let size = if case % 3 == 0 { 1e-4 } else { 0.8 };
            let mut numbers = || random.uniform(-size, size);
            let mut linear = Mat3::from_cols_array(&[0; 9].map(|_| numbers())) + Mat3::IDENTITY;
            if case > 190 {
                linear.x_axis = -linear.x_axis;
            }
            let bone = Affine3A::from_mat3_translation(linear, Vec3::new(numbers(), 7.0, numbers()));
            let mut global = GlobalPose::default();
            let pose = JointPose(joints(&bone, &mut before).to_vec());
            skeleton.forward(&pose, &mut global).expect("two joints");
            assert!(global.0[1].abs_diff_eq(bone, 1e-5), "{case}: {:?} {bone:?}", global.0[1]);
        }
    }
}
