//! The motion of the whole head, found in the poses and learned as a small network: what is left for the
//! maps is a face on a head that holds still. Not in the paper, whose rigs keep the head apart.

use super::Recording;
use super::inputs::{Influences, NormalisedControls};
use super::motion::motion;
use rayon::prelude::*;
use understudy_core::Vec3;
use understudy_runtime::MotionParts;
use understudy_runtime::face::rigid::RigidFit;

/// Poses that suffice to find the rigid part of a head.
const MOST_POSES: usize = 200;
/// Vertices that suffice.
const MOST_VERTICES: usize = 1500;
/// Shares of the vertices that are kept, one after another, and rounds of fitting to them: half of a head is
/// enough to tell its motion roughly, its teeth and the top of its skull tell it exactly.
const SHARES: [(f64, usize); 5] = [(0.5, 8), (0.25, 3), (0.12, 3), (0.06, 3), (0.03, 3)];
/// At most this share of the vertices is taken for the skull: those that miss its motion by at most …
const SKULL: f64 = 0.25;
/// … so many times as much as the calmest do, squared, …
const ALIKE: f64 = 4.0;
/// … or not at all, cm².
const EXACT: f64 = 1e-6;
/// A frame is kept when it leaves less than this share of the motion.
const WORTH: f64 = 0.8;

/// Share of the skull that a control moves if it moves the head.
const HEAD_SHARE: f32 = 0.5;

/// The rigid part of a head.
#[derive(Debug, Clone, PartialEq)]
pub struct Skull {
    /// The vertices that move most like one body.
    pub vertices: Vec<u32>,
    /// Their root mean square distance from one rigid motion, cm.
    pub error_cm: f64,
    /// Mean motion of all vertices as they are, cm.
    pub motion_cm: f64,
    /// Mean motion of all vertices when the skull holds still, cm.
    pub left_cm: f64,
}

/// The skull and the controls that move it: among all vertices, or among those that fewest controls move, whichever
/// leaves the face calmer.
pub fn choose_skull(poses: &Recording, influences: &Influences) -> Option<(Skull, NormalisedControls)> {
    let all = (0..poses.mesh.vertex_count() as u32).collect();
    let choices = [Some(all), influences.calmest()].into_iter().flatten();
    let found = choices.filter_map(|among| find_skull(poses, &among));
    let skull = found.min_by(|a, b| a.left_cm.total_cmp(&b.left_cm))?;
    let inputs = influences.of_more_than(HEAD_SHARE, poses, &skull.vertices);
    Some((skull, inputs))
}

/// Finds the vertices that move most like one rigid body: fits a motion a pose, keeps the part that it
/// explains best, again, with less and less of what was kept. `None` where taking their motion away would not
/// make the rest much calmer. `among`: vertices that it may be, ascending.
pub fn find_skull(poses: &Recording, among: &[u32]) -> Option<Skull> {
    let rest = poses.mesh.positions();
    let step = |count: usize| count.div_ceil(MOST_VERTICES).max(1);
    let all: Vec<u32> = among.iter().copied().step_by(step(among.len())).collect();
    let mesh: Vec<usize> = (0..rest.len()).step_by(step(rest.len())).collect();
    let chosen = poses.spread(MOST_POSES);
    let fits = |members: &[u32]| -> Vec<RigidFit> {
        let at_rest: Vec<Vec3> = members.iter().map(|v| rest[*v as usize]).collect();
        let fit = |pose: &usize| {
            let vertices = poses.vertices_of(*pose);
            let now: Vec<Vec3> = members.iter().map(|v| vertices[*v as usize]).collect();
            RigidFit::new(&at_rest, &now)
        };
        chosen.par_iter().map(fit).collect()
    };
    let misses = |fits: &[RigidFit]| -> Vec<f64> {
        let miss = |vertex: &u32| {
            let vertex = *vertex as usize;
            let square = |(fit, pose): (&RigidFit, &usize)| {
                f64::from(fit.apply(rest[vertex]).distance_squared(poses.vertices_of(*pose)[vertex]))
            };
            fits.iter().zip(&chosen).map(square).sum::<f64>() / chosen.len() as f64
        };
        all.par_iter().map(miss).collect()
    };
    let best = |misses: &[f64], share: f64, among: &[u32]| -> Vec<u32> {
        let miss = |v: &u32| all.binary_search(v).map_or(f64::INFINITY, |place| misses[place]);
        let mut order = among.to_vec();
        order.sort_by(|a, b| miss(a).total_cmp(&miss(b)).then(a.cmp(b)));
        let keep = (all.len() as f64 * share) as usize;
        order.truncate(keep.clamp(3.min(order.len()), order.len()));
        order
    };
    let mut members = all.clone();
    for (share, rounds) in SHARES {
        // Only from among those before: a jaw with its teeth is as rigid as a skull, and smaller.
        let among = members.clone();
        for _ in 0..rounds {
            members = best(&misses(&fits(&members)), share, &among);
        }
    }
    let last = misses(&fits(&members));
    let worst = |kept: &[u32]| kept.last().and_then(|v| all.binary_search(v).ok()).map_or(0.0, |at| last[at]);
    let enough = (ALIKE * worst(&best(&last, SHARES[4].0, &members))).max(EXACT);
    let mut vertices = best(&last, SKULL, &all);
    vertices.retain(|v| worst(&[*v]) <= enough);
    vertices.sort_unstable();
    let motions = fits(&vertices);
    let (mut motion, mut left, mut square) = (0.0, 0.0, 0.0);
    for (fit, pose) in motions.iter().zip(&chosen) {
        let now = poses.vertices_of(*pose);
        for &vertex in &mesh {
            motion += f64::from(now[vertex].distance(rest[vertex]));
            // Distances are the same in the head's frame and in the world.
            left += f64::from(now[vertex].distance(fit.apply(rest[vertex])));
        }
        let miss = |v: &u32| f64::from(now[*v as usize].distance_squared(fit.apply(rest[*v as usize])));
        square += vertices.iter().map(miss).sum::<f64>();
    }
    let whole = (chosen.len() * mesh.len()).max(1) as f64;
    let skull = Skull {
        error_cm: (square / (chosen.len() * vertices.len()).max(1) as f64).sqrt(),
        vertices,
        motion_cm: motion / whole,
        left_cm: left / whole,
    };
    (skull.vertices.len() >= 3 && skull.left_cm < WORTH * skull.motion_cm).then_some(skull)
}

/// Takes the learned motion out of every pose, in place. What the network missed stays for the maps.
pub fn take_away(poses: &mut Recording, frame: &MotionParts) {
    let count = poses.mesh.vertex_count();
    let controls = &poses.controls;
    let width = poses.specs.len();
    poses.vertices.par_chunks_mut(count).enumerate().for_each(|(pose, vertices)| {
        motion(frame, &controls[pose * width..(pose + 1) * width]).undo(vertices);
    });
}
