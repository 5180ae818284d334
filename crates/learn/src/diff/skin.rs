//! Three ways to `T_i`: the rig's own skin, probing turned into weights by simplex least squares, and weights fitted to
//! recorded poses. A probe cannot run in an engine, so all end as skin weights, and training sees exactly these.

use super::{DiffLearnError, SkinSource};
use crate::Recording;
use crate::body::Armature;
use crate::skinning::{BonePoses, fit_skinning};
use rayon::prelude::*;
use understudy_core::{Affine3A, Controls, Mat3, Random, SkinWeights, Vec3};
use understudy_rigs::{Rig, RigError, RigPose};

/// Poses that are probed, and those that weights are fitted to.
const PROBED: u64 = 40;
const FITTED: usize = 200;
/// Bones of a vertex at most: as many as skins of film rigs have, and what an engine plays.
const PROBED_INFLUENCES: usize = 12;
const FITTED_INFLUENCES: usize = 4;
/// Bones that a fit weighs at once.
const CANDIDATES: usize = 16;
/// Makes lengths of the nine numbers of a linear map, cm.
const LEVER: f32 = 10.0;
/// How much where a vertex goes counts beside how the rig turns it. It only decides between bones that turn alike: what
/// is not linear moves it too.
const PLACE: f32 = 0.02;

/// Skinning matrices and vertices of a pose.
type Example = (Vec<Affine3A>, Vec<Vec3>);

/// The weights that the twin evaluates, and where they come from; `None` without bones.
pub fn find(
    poses: &Recording,
    rig: Option<&dyn Rig>,
    trained: &[usize],
    wanted: SkinSource,
) -> Result<(Option<SkinWeights>, SkinSource), DiffLearnError> {
    let missing = |wanted, problem| Err(DiffLearnError::Skin { wanted, problem });
    let bones = poses.skeleton.is_some();
    let shown = rig.and_then(|rig| rig.skin_weights()).filter(|weights| {
        weights.bone_count() == poses.bone_count() && weights.vertex_count() == poses.mesh.vertex_count()
    });
    match (wanted, bones) {
        (SkinSource::None, _) | (SkinSource::Auto, false) => Ok((None, SkinSource::None)),
        (SkinSource::Rig, false) => missing("the rig's skin", "the recorded rig has no bones"),
        (SkinSource::Probe, false) => missing("probing", "the recorded rig has no bones"),
        (SkinSource::Fit, false) => missing("a fit", "the recorded rig has no bones"),
        (SkinSource::Rig, true) => match shown {
            Some(weights) => Ok((Some(weights.clone()), SkinSource::Rig)),
            None => missing("the rig's skin", "the rig is not at hand or shows none"),
        },
        (SkinSource::Probe, true) => match rig {
            Some(rig) => Ok((Some(probe(rig)?), SkinSource::Probe)),
            None => missing("probing", "the rig is not at hand"),
        },
        (SkinSource::Fit, true) => Ok((Some(fit(poses, trained)), SkinSource::Fit)),
        (SkinSource::Auto, true) => {
            if let Some(weights) = shown {
                return Ok((Some(weights.clone()), SkinSource::Rig));
            }
            match rig.map(probe) {
                Some(Ok(weights)) => Ok((Some(weights), SkinSource::Probe)),
                // A rig that cannot start from other rest positions is fitted.
                None | Some(Err(RigError::Unsupported { .. })) => {
                    Ok((Some(fit(poses, trained)), SkinSource::Fit))
                }
                Some(Err(error)) => Err(error.into()),
            }
        }
    }
}

/// Weights fitted to the recorded vertices.
fn fit(poses: &Recording, trained: &[usize]) -> SkinWeights {
    let armature = Armature::new(poses);
    let count = trained.len().min(FITTED);
    let one = |index: usize| {
        let pose = trained[index * trained.len() / count];
        (armature.carriers(poses.bones_of(pose)), poses.vertices_of(pose).to_vec())
    };
    let examples: Vec<_> = (0..count).map(one).collect();
    fit_skinning(poses.mesh.positions(), &examples, FITTED_INFLUENCES, CANDIDATES)
}

/// Moves all rest vertices of the live rig by one unit along x, y and z in random poses (eq. 12), and fits weights to
/// what that does to each: `min Σ ‖T_i − Σ_j w_j M_j‖²` over `w ≥ 0, Σw = 1`.
pub fn probe(rig: &dyn Rig) -> Result<SkinWeights, RigError> {
    let Some(skeleton) = rig.skeleton() else {
        return Err(RigError::Unsupported { rig: rig.name().into(), what: "be probed without bones" });
    };
    let rest = rig.mesh().positions();
    let one = |index: u64| -> Result<Vec<Example>, RigError> {
        let mut random = Random::stream(0x7e57_ab1e, index);
        let specs = rig.specs();
        let controls = Controls(specs.iter().map(|s| random.truncated_normal(s.low, s.high)).collect());
        let mut pose = RigPose::default();
        rig.evaluate_from(rest, &controls, &mut pose)?;
        let base = pose.vertices.clone();
        let matrices: Vec<Affine3A> =
            pose.global.0.iter().zip(skeleton.inverse_bind()).map(|(bone, bind)| *bone * *bind).collect();
        // Every pose becomes four: how each axis turns, and where the vertex goes. A map that sends everything to one
        // place stands for an axis, so that the fit of skinning serves here too.
        let scaled = |matrix: &Affine3A| {
            let (linear, translation) = (Mat3::from(matrix.matrix3), Vec3::from(matrix.translation));
            Affine3A::from_mat3_translation(linear * PLACE, translation * PLACE)
        };
        let mut examples =
            vec![(matrices.iter().map(scaled).collect(), base.iter().map(|place| *place * PLACE).collect())];
        for axis in [Vec3::X, Vec3::Y, Vec3::Z] {
            let moved: Vec<Vec3> = rest.iter().map(|place| *place + axis).collect();
            rig.evaluate_from(&moved, &controls, &mut pose)?;
            let column = |matrix: &Affine3A| {
                Affine3A::from_mat3_translation(Mat3::ZERO, matrix.transform_vector3(axis) * LEVER)
            };
            let truth = pose.vertices.iter().zip(&base).map(|(moved, base)| (*moved - *base) * LEVER);
            examples.push((matrices.iter().map(column).collect(), truth.collect()));
        }
        Ok(examples)
    };
    let examples = (0..PROBED).into_par_iter().map(one).collect::<Result<Vec<_>, _>>()?.concat();
    let examples: &BonePoses = &examples;
    Ok(fit_skinning(rest, examples, PROBED_INFLUENCES, skeleton.len().max(CANDIDATES)))
}
