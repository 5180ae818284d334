//! Which bone hangs on which, from how they move. Many production rigs list their deform bones side by side, driven
//! by a control rig that is not exported: the file then says nothing about which joint bends what.

use super::{Armature, Recording};
use rayon::prelude::*;

/// Poses that suffice to tell which bones move together.
const MOST_POSES: usize = 120;
/// How far from its origin the turning of a bone is measured, as a share of the size of the mesh.
const LEVER: f32 = 0.05;
/// A bone that moves by less than this share of the size of the mesh does not move.
const STILL: f64 = 1e-5;
/// A bone hangs on another that explains all but this share of its motion.
const LEFT: f64 = 0.6;

/// The parent of every bone. The file's are kept but where it names none, or a root that does not move: such bones
/// hang on the bone in whose frame they move least, as a joint does, where that explains a good part of their motion.
pub(super) fn parents(poses: &Recording, armature: &Armature) -> Vec<Option<usize>> {
    let mut parents = armature.parents.clone();
    let (low, high) = poses
        .mesh
        .positions()
        .iter()
        .fold((poses.mesh.positions()[0], poses.mesh.positions()[0]), |(a, b), v| (a.min(*v), b.max(*v)));
    let size = low.distance(high);
    let chosen = poses.spread(MOST_POSES);
    let motion = |bone: usize, seen_from: Option<usize>| -> f64 {
        let mut sums = [(0.0f64, 0.0f64); 12];
        for pose in &chosen {
            let mut numbers = armature.numbers(poses.bones_of(*pose), seen_from, bone);
            numbers[..9].iter_mut().for_each(|number| *number *= LEVER * size);
            for (sum, number) in sums.iter_mut().zip(numbers.map(f64::from)) {
                *sum = (sum.0 + number, sum.1 + number * number);
            }
        }
        let count = chosen.len() as f64;
        let variance = |(sum, squares): &(f64, f64)| (squares / count - (sum / count).powi(2)).max(0.0);
        sums.iter().map(variance).sum::<f64>().sqrt()
    };
    let still = |moved: f64| moved <= STILL * f64::from(size);
    let whole: Vec<f64> = (0..parents.len()).into_par_iter().map(|bone| motion(bone, None)).collect();
    let root = |bone: usize| armature.parents[bone].is_none();
    let open = |bone: usize| match armature.parents[bone] {
        None => true,
        Some(parent) => root(parent) && still(whole[parent]),
    };
    let open: Vec<usize> = (0..parents.len()).filter(|bone| open(*bone) && !still(whole[*bone])).collect();
    if open.len() < 2 {
        return parents;
    }
    let hangs_on = |parents: &[Option<usize>], mut bone: usize, other: usize| loop {
        if bone == other {
            return true;
        }
        match parents[bone] {
            Some(parent) => bone = parent,
            None => return false,
        }
    };
    let choices = |bone: &usize| -> Vec<(f64, usize, usize)> {
        let others = (0..parents.len()).filter(|other| !hangs_on(&armature.parents, *other, *bone));
        let moving = others.filter(|other| !still(whole[*other]));
        let costs = moving.map(|other| (motion(*bone, Some(other)), *bone, other));
        costs.filter(|(left, ..)| *left < LEFT * whole[*bone]).collect()
    };
    let mut choices: Vec<(f64, usize, usize)> = open.par_iter().flat_map_iter(choices).collect();
    choices.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut found = vec![false; parents.len()];
    for (_, bone, other) in choices {
        if !found[bone] && !hangs_on(&parents, other, bone) {
            (parents[bone], found[bone]) = (Some(other), true);
        }
    }
    parents
}
