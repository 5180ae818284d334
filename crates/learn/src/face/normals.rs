//! Normals as three more channels of the maps (our addition): read off the features that already draw offsets,
//! by weights that every pixel has of its own. Positions stay what they are.
//!
//! The way: [`take_normals`] turns the poses into fields of normals, [`problem`] asks all networks together for
//! them, [`super::trainer::Trainer::reading`] learns the weights alone, [`join`] puts both maps into one.

use super::Recording;
use super::loss::Loss;
use super::trainer::Problem;
use rayon::prelude::*;
use understudy_core::Vec3;
use understudy_core::normals::{vertex_normals, vertex_normals_into};
use understudy_runtime::face::{FaceParts, FaceTwin, MapParts, NetParts};
use understudy_runtime::{Pose, Precision, Twin, TwinError};

/// Vertices of all poses become their unit normals, in place.
pub fn take_normals(poses: &mut Recording) {
    let faces = poses.mesh.faces();
    poses.vertices.par_chunks_mut(poses.mesh.vertex_count()).for_each(|vertices| {
        let normals = vertex_normals(faces, vertices);
        vertices.copy_from_slice(&normals);
    });
}

/// What the networks learn: to add to the rest pose's normals. `poses`: of normals.
pub fn problem<'a>(poses: &'a Recording, nets: &[NetParts]) -> Problem<'a> {
    let mut moved = vec![false; poses.mesh.vertex_count()];
    nets.iter().flat_map(|net| &net.vertices).for_each(|v| moved[*v as usize] = true);
    let members: Vec<u32> = (0..moved.len() as u32).filter(|v| moved[*v as usize]).collect();
    let rest = vertex_normals(poses.mesh.faces(), poses.mesh.positions());
    let count = members.len();
    let loss = Loss {
        faces: Vec::new(),
        counted: (0..count as u32).collect(),
        normal_weight: 0.0,
        vertex_total: count,
        face_total: 0,
    };
    Problem {
        poses,
        base: members.iter().map(|v| rest[*v as usize]).collect(),
        members,
        loss,
        start: Vec::new(),
    }
}

/// Networks that draw offsets and, with the same features, normals: three channels after three.
///
/// # Panics
/// When the networks are not the same but for what they read.
pub fn join(offsets: &mut [NetParts], normals: &[NetParts]) {
    assert_eq!(offsets.len(), normals.len(), "the same networks");
    for (net, other) in offsets.iter_mut().zip(normals) {
        if let (Some(map), Some(other)) = (&mut net.map, &other.map) {
            join_maps(map, other);
        }
    }
}

fn join_maps(map: &mut MapParts, other: &MapParts) {
    let shape = map.shape;
    let shared = shape.convolution_parameters();
    let sets = shape.sets();
    let both = |size: usize, a: &[f32], b: &[f32]| -> Vec<f32> {
        assert_eq!((a.len(), b.len()), (sets * size, sets * size), "the same shape");
        a.chunks_exact(size).zip(b.chunks_exact(size)).flat_map(|(a, b)| [a, b].concat()).collect()
    };
    let size = shape.outputs * shape.reads();
    let (weights, bias) = map.parameters[shared..].split_at(sets * size);
    let (other_weights, other_bias) = other.parameters[shared..].split_at(sets * size);
    let weights = both(size, weights, other_weights);
    let bias = both(shape.outputs, bias, other_bias);
    map.parameters.truncate(shared);
    map.parameters.extend(weights);
    map.parameters.extend(bias);
    map.shape.outputs = 2 * shape.outputs;
}

/// Mean angle to the true normals, degrees: of the maps' normals, and of those of the faces that the maps' offsets
/// give. `poses`: of normals; `chosen`: those that are looked at.
pub fn angles(parts: &FaceParts, poses: &Recording, chosen: &[usize]) -> Result<[f64; 2], TwinError> {
    // The head holds still in these poses.
    let still = FaceParts { frame: None, ..parts.clone() };
    let twin = Twin::from(FaceTwin::new(still, Precision::Half)?);
    let mut player = twin.player(1);
    let blank = vec![Vec3::ZERO; twin.vertex_count()];
    let (mut vertices, mut drawn, mut computed) = (blank.clone(), blank.clone(), blank);
    let mut sums = [0.0f64; 2];
    for &pose in chosen {
        player
            .pose(Pose::Controls(poses.controls_of(pose)), &mut vertices)
            .expect("checked poses fit the twin");
        player.normals(&vertices, &mut drawn).expect("arrays of the twin's size");
        vertex_normals_into(parts.mesh.faces(), &vertices, &mut computed);
        for (sum, normals) in sums.iter_mut().zip([&drawn, &computed]) {
            let angle = |(a, b): (&Vec3, &Vec3)| f64::from(a.angle_between(*b).to_degrees());
            let pairs = normals.iter().zip(poses.vertices_of(pose));
            *sum += pairs.filter(|(a, b)| **a != Vec3::ZERO && **b != Vec3::ZERO).map(angle).sum::<f64>();
        }
    }
    Ok(sums.map(|sum| sum / (chosen.len() * drawn.len()).max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::super::balance::Balance;
    use super::super::inputs::Influences;
    use super::super::tests::small_face;
    use super::super::trainer::Trainer;
    use super::super::{FaceSettings, Plan, Progress, Schedule, schedule};
    use super::*;

    fn learn(trainer: &Trainer<'_>, plan: &Plan, balance: &Balance, steps: usize) {
        let caps = vec![steps, steps / 4];
        let schedule = Schedule { rates: vec![5e-3, 5e-4], caps, check_every: 50, ..Schedule::default() };
        let mut progress = Progress::default();
        schedule::run(trainer, balance, &plan.validation, &schedule, 4, 1, &mut progress, |_, _| true)
            .expect("converges");
    }

    #[test]
    fn maps_draw_normals_and_positions_stay_what_they_are() {
        let face = small_face(4, 200);
        let mut poses = face.poses();
        let settings = FaceSettings { batch: 4, hidden: 16, ..FaceSettings::default() };
        let influences = Influences::new(&poses, None).expect("enough poses");
        let plan = Plan::new(&poses, &influences, &settings).expect("something moves");
        let mut nets = {
            let problem = plan.coarse_problem(&poses, &settings);
            let trainer = Trainer::new(problem, plan.coarse.clone(), 16, 4, 1, 1).expect("threads start");
            learn(&trainer, &plan, &plan.balance, 300);
            trainer.parts()
        };
        let before =
            plan.finish(&poses, "small", None, nets.clone(), vec![], understudy_runtime::Training::default());
        take_normals(&mut poses);
        assert!(poses.vertices.iter().all(|n| (n.length() - 1.0).abs() < 1e-3));
        let reader =
            Trainer::reading(problem(&poses, &nets), &nets, 4, 1).expect("maps").expect("threads start");
        let blank = reader.parts();
        learn(&reader, &plan, &plan.balance, 600);
        let drawn = reader.parts();
        for (a, b) in blank.iter().zip(&drawn) {
            let (a, b) = (a.map.as_ref().expect("a map"), b.map.as_ref().expect("a map"));
            let shared = a.shape.convolution_parameters();
            assert!(a.parameters[..shared] == b.parameters[..shared], "convolutions are frozen");
            assert!(a.parameters[shared..] != b.parameters[shared..], "weights of pixels are learned");
        }
        drop(reader);
        let mut resting = nets.clone();
        join(&mut nets, &drawn);
        join(&mut resting, &blank);
        let finish =
            |nets| plan.finish(&poses, "small", None, nets, vec![], understudy_runtime::Training::default());
        let (after, resting) = (finish(nets), finish(resting));
        let chosen: Vec<usize> = (0..40).collect();
        let [learned, computed] = angles(&after, &poses, &chosen).expect("a valid twin");
        let [at_rest, same] = angles(&resting, &poses, &chosen).expect("a valid twin");
        assert!(learned < 0.5 * at_rest, "drawn {learned}°, at rest {at_rest}°, from faces {computed}°");
        assert!((computed - same).abs() < 1e-9);
        let pose = |parts: &FaceParts| {
            let twin = Twin::from(FaceTwin::new(parts.clone(), Precision::Half).expect("a valid twin"));
            let mut out = vec![Vec3::ZERO; twin.vertex_count()];
            twin.player(1).pose(Pose::Controls(poses.controls_of(3)), &mut out).expect("a valid pose");
            out
        };
        // Sums of three and of six channels round differently.
        let apart = pose(&before).iter().zip(&pose(&after)).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
        assert!(apart < 1e-5, "positions moved by {apart}");
    }

    #[test]
    fn networks_without_features_of_their_own_are_refused() {
        let settings = FaceSettings { normals: true, untied: false, ..FaceSettings::default() };
        assert!(settings.check().is_err());
        let settings = FaceSettings { normals: true, dense: true, ..FaceSettings::default() };
        assert!(settings.check().is_err());
    }
}
