//! Weights in 16 bits: rounded so that outputs change least, measured against 32 bits, and left in 32 where
//! the difference would show. Start at [`round_to_half`]; how a group is rounded is in `rounding`.

use super::rounding::with_fixed_point;
use super::{Plan, Recording};
use rayon::prelude::*;
use understudy_core::Vec3;
use understudy_runtime::body::{BodyParts, BodyTwin, GroupParts, Storage};
use understudy_runtime::{Distances, Pose, Precision, Twin, TwinError};

/// A group whose vertices 16-bit weights move by more than this keeps 32 bits in some layers.
const LIMIT_MM: f64 = 0.019;
/// The largest number that an f16 holds.
const LARGEST_HALF: f32 = 65504.0;
/// Poses that the difference is measured on.
const POSES: usize = 400;

/// The parts with weights that 16 bits hold. Where that costs too much a group's layers stay in 32 bits, from
/// the last hidden one on, as few as it takes. What it costs is noted in the header.
pub fn round_to_half(exact: &BodyParts, plan: &Plan, poses: &Recording) -> Result<BodyParts, TwinError> {
    let mut fixed: Vec<GroupParts> = exact.groups.iter().map(with_fixed_point).collect();
    // What 16 bits cannot hold at all stays in 32.
    for layer in fixed.iter_mut().flat_map(|group| &mut group.layers) {
        let large = layer.weights.iter().any(|weight| weight.abs() > LARGEST_HALF);
        if large && layer.storage == Storage::Plain {
            layer.storage = Storage::Single;
        }
    }
    let mut parts = exact.clone();
    let groups = fixed.par_iter().enumerate();
    parts.groups = groups.map(|(index, group)| plan.round_group(poses, index, group)).collect();
    let mut errors = errors(exact, &parts, plan, poses)?;
    let most = exact.groups.iter().map(|group| group.layers.len()).max().unwrap_or(0);
    // One hidden layer more in every attempt, from the last; in the last attempt all that is.
    for attempt in 1..=most {
        if errors.iter().all(|error| error.max <= LIMIT_MM) {
            break;
        }
        for (index, _) in errors.iter().enumerate().filter(|(_, error)| error.max > LIMIT_MM) {
            let source = if attempt == most { &exact.groups[index] } else { &fixed[index] };
            let layers = source.layers.len();
            let kept = layers.saturating_sub(attempt + 1)..layers;
            for (data, source) in
                parts.groups[index].layers[kept.clone()].iter_mut().zip(&source.layers[kept])
            {
                data.clone_from(source);
                if data.storage == Storage::Plain {
                    data.storage = Storage::Single;
                }
            }
        }
        errors = self::errors(exact, &parts, plan, poses)?;
    }
    let vertices: usize = parts.groups.iter().map(|group| group.vertices.len()).sum();
    let weighted = errors.iter().zip(&parts.groups).map(|(e, group)| e.mean * group.vertices.len() as f64);
    let whole = Distances {
        mean: weighted.sum::<f64>() / vertices.max(1) as f64,
        max: errors.iter().map(|e| e.max).fold(0.0, f64::max),
    };
    let layers = parts.groups.iter().flat_map(|group| &group.layers);
    let kept: usize =
        layers.filter(|layer| layer.storage == Storage::Single).map(|layer| layer.weights.len()).sum();
    parts.header.training.half_error_mm = Some(whole);
    parts.header.training.weights_in_32_bits = kept;
    Ok(parts)
}

/// Compares two sets of weights on some of the poses, group by group.
fn errors(
    exact: &BodyParts,
    halves: &BodyParts,
    plan: &Plan,
    poses: &Recording,
) -> Result<Vec<Distances>, TwinError> {
    // Seams mix the errors of groups; the question is whose they are.
    let open = |parts: &BodyParts| BodyParts { seams: None, ..parts.clone() };
    let half = Twin::from(BodyTwin::new(open(halves), Precision::Half)?);
    let single = Twin::from(BodyTwin::new(open(exact), Precision::Single)?);
    let used = plan.used_controls();
    let one = |pose: &usize| -> Vec<Distances> {
        let mut vertices = [vec![Vec3::ZERO; half.vertex_count()], vec![Vec3::ZERO; half.vertex_count()]];
        let controls: Vec<f32> = used.iter().map(|c| poses.controls_of(*pose)[*c as usize]).collect();
        for (twin, out) in [&half, &single].into_iter().zip(&mut vertices) {
            let pose = Pose::Bones { bones: poses.bones_of(*pose), extras: &controls };
            twin.player(1).pose(pose, out).expect("checked poses fit the twin");
        }
        let [a, b] = &vertices;
        let group = |group: &GroupParts| {
            let miss = |v: &u32| f64::from(a[*v as usize].distance(b[*v as usize])) * 10.0;
            let misses = || group.vertices.iter().map(miss);
            let mean = misses().sum::<f64>() / group.vertices.len().max(1) as f64;
            Distances { mean, max: misses().fold(0.0, f64::max) }
        };
        exact.groups.iter().map(group).collect()
    };
    let all = poses.spread(POSES).par_iter().map(one).collect::<Vec<_>>();
    let whole = |group: usize| Distances {
        mean: all.iter().map(|pose| pose[group].mean).sum::<f64>() / all.len().max(1) as f64,
        max: all.iter().map(|pose| pose[group].max).fold(0.0, f64::max),
    };
    Ok((0..exact.groups.len()).map(whole).collect())
}
