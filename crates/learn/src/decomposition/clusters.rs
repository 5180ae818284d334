//! Where the bones come from: the vertices are parted into clusters that move rigidly, one more at a time,
//! and where a bone is of little use it is sent to where the error is largest.

use super::animation::{Animation, Offset};
use super::search::State;
use super::weights::BoneTables;
use rayon::prelude::*;

/// Reassignments after every new cluster.
const ROUNDS: usize = 3;
/// Reassignments when all clusters are there.
const LAST_ROUNDS: usize = 8;
/// Vertices that give a new bone its first motion, at least.
const SEED_VERTICES: usize = 12;
/// And this share of all.
const SEED_SHARE: usize = 100;

/// Frames that the clusters look at: more cost time and change little.
const FRAMES: usize = 48;

/// One-bone weights and bones for `count` clusters: starts with one and splits the worst, by Lloyd's
/// rounds between (Linde, Buzo and Gray 1980, as Le and Deng do).
/// `go` hears the error before every split, and may end them with the bones that there are by `false`.
pub fn cluster(animation: &Animation, count: usize, go: &mut impl FnMut(f64) -> bool) -> State {
    let few = cluster_thinned(&animation.thinned(FRAMES), count, go);
    let mut state = State { bones: 0, offsets: Vec::new(), rows: few.rows };
    for bone in 0..few.bones {
        let own: Vec<usize> =
            (0..animation.vertices()).filter(|v| usize::from(state.rows[*v][0].0) == bone).collect();
        state.add_bone(&animation.fit(&own));
    }
    state
}

fn cluster_thinned(animation: &Animation, count: usize, go: &mut impl FnMut(f64) -> bool) -> State {
    let frames = animation.frames();
    let mut state = State {
        bones: 1,
        offsets: vec![[0.0; 12]; frames],
        rows: vec![vec![(0, 1.0)]; animation.vertices()],
    };
    let mut owners = BoneTables::new(&state, frames).nearest(animation);
    while state.bones < count {
        let mut totals = vec![0.0; state.bones];
        owners.iter().for_each(|(bone, cost)| totals[*bone] += cost);
        if !go(animation.rmse(totals.iter().sum())) {
            break;
        }
        let worst =
            (0..state.bones).max_by(|a, b| totals[*a].total_cmp(&totals[*b])).expect("one bone at least");
        let seed = (0..owners.len())
            .filter(|vertex| owners[*vertex].0 == worst)
            .max_by(|a, b| owners[*a].1.total_cmp(&owners[*b].1).then(b.cmp(a)));
        // Without error anywhere more bones are of no use, but they were asked for.
        let seed = seed.unwrap_or(0);
        let fitted = animation.fit(&around(animation, seed));
        state.add_bone(&fitted);
        let rounds = if state.bones == count { LAST_ROUNDS } else { ROUNDS };
        for _round in 0..rounds {
            owners = BoneTables::new(&state, frames).nearest(animation);
            refit(animation, &mut state, &owners);
        }
    }
    owners = BoneTables::new(&state, frames).nearest(animation);
    state.rows = owners.iter().map(|(bone, _)| vec![(*bone as u16, 1.0)]).collect();
    state
}

/// Fits every bone to its cluster; a bone without vertices stays.
fn refit(animation: &Animation, state: &mut State, owners: &[(usize, f64)]) {
    for bone in 0..state.bones {
        let own: Vec<usize> = (0..owners.len()).filter(|vertex| owners[*vertex].0 == bone).collect();
        if own.len() >= 3 {
            state.set_bone(bone, &animation.fit(&own));
        }
    }
}

/// A vertex and those nearest to it in the rest pose.
fn around(animation: &Animation, seed: usize) -> Vec<usize> {
    let count = SEED_VERTICES.max(animation.vertices() / SEED_SHARE).min(animation.vertices());
    let mut ranked: Vec<(f64, usize)> = (0..animation.vertices())
        .map(|vertex| (animation.rest[vertex].distance_squared(animation.rest[seed]), vertex))
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    ranked.into_iter().take(count).map(|(_, vertex)| vertex).collect()
}

/// Sends a bone to a vertex: it loses its weights there where others are, and moves with the vertices
/// around its new place.
pub fn reinsert(animation: &Animation, state: &mut State, bone: usize, seed: usize) {
    let fitted: Vec<Offset> = animation.fit(&around(animation, seed));
    state.set_bone(bone, &fitted);
    // Vertices that had nothing else start from the bone that is nearest to them.
    let alone: Vec<usize> = (0..animation.vertices())
        .filter(|vertex| matches!(state.rows[*vertex][..], [(only, _)] if usize::from(only) == bone))
        .collect();
    let nearest = if alone.is_empty() {
        Vec::new()
    } else {
        BoneTables::new(state, animation.frames()).nearest(animation)
    };
    let rows = &mut state.rows;
    rows.par_iter_mut().enumerate().for_each(|(vertex, row)| {
        let had = row.len();
        row.retain(|(other, _)| usize::from(*other) != bone);
        if row.is_empty() {
            row.push((nearest[vertex].0 as u16, 1.0));
        } else if row.len() < had {
            let sum: f64 = row.iter().map(|(_, weight)| weight).sum();
            row.iter_mut().for_each(|(_, weight)| *weight /= sum);
        }
    });
}
