//! Finds bridges between latent spaces: pairs of points whose poses look alike through the rig. Every training point of
//! one space is matched with the nearest pose of the other; pairs closer than a limit are kept.

use serde::{Deserialize, Serialize};
use understudy_runtime::motion::{Bridge, Model, Workspace, route};

/// Settings of the search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BridgeConfig {
    /// `ε`, mm.
    pub millimetres: f32,
    /// Most bridges per direction of a pair of models.
    pub most: usize,
}

impl Default for BridgeConfig {
    fn default() -> Self {
        Self { millimetres: 2.0, most: 25 }
    }
}

/// Training points that are tried; more are thinned out evenly.
const TRIED: usize = 150;
/// Frames between two bridges, where there are enough: neighbours are nearly the same.
const APART: usize = 3;
/// So many are wanted before neighbours are left out.
const ENOUGH: usize = 10;

/// What was found in one direction.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Pairs nearer than the limit.
    pub bridges: Vec<Bridge>,
    /// The nearest pair of all, for labels that no bridge reaches.
    pub nearest: Option<Bridge>,
}

/// Bridges from one model to another. `distance` says how far apart two poses are through the rig, mm.
pub fn find<E>(
    models: &[Model],
    (from, to): (usize, usize),
    config: &BridgeConfig,
    mut distance: impl FnMut(&[f32], &[f32]) -> Result<f32, E>,
) -> Result<Found, E> {
    let (a, b) = (&models[from], &models[to]);
    let step = a.space().len().div_ceil(TRIED).max(1);
    let mut work = Workspace::of(b.space());
    let mut pairs = Vec::new();
    for frame in (0..a.space().len()).step_by(step) {
        let pose = a.pose(a.space().point(frame));
        let (point, miss) = b.project(&pose, &mut work);
        pairs.push((miss, frame, point));
    }
    pairs.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.cmp(&y.1)));
    let mut found = Found::default();
    let mut close: Vec<(usize, Bridge)> = Vec::new();
    for (_, frame, to_point) in pairs.into_iter().take(3 * config.most) {
        let from_point = a.space().point(frame);
        let millimetres = distance(&a.pose(from_point), &b.pose(to_point))?;
        let bridge = Bridge { from, to, from_point, to_point, millimetres };
        if found.nearest.is_none_or(|other| millimetres < other.millimetres) {
            found.nearest = Some(bridge);
        }
        if millimetres <= config.millimetres {
            close.push((frame, bridge));
        }
    }
    // First those that are apart from each other, then neighbours until there are enough.
    let mut kept: Vec<usize> = Vec::new();
    for neighbours in [false, true] {
        for (frame, bridge) in &close {
            let least = if neighbours { 1 } else { APART };
            let most = if neighbours { ENOUGH.min(config.most) } else { config.most };
            if kept.len() < most && kept.iter().all(|other| other.abs_diff(*frame) >= least) {
                kept.push(*frame);
                found.bridges.push(*bridge);
            }
        }
    }
    Ok(found)
}

/// All bridges of a motion: those within the limit, and for labels that none of them reaches the shortest that does.
/// Gives the bridges, and those of them that are longer than the limit.
pub fn join(models: usize, found: Vec<Found>) -> (Vec<Bridge>, Vec<Bridge>) {
    let mut bridges: Vec<Bridge> = found.iter().flat_map(|found| found.bridges.iter().copied()).collect();
    let mut spare: Vec<Bridge> = found.iter().filter_map(|found| found.nearest).collect();
    spare.sort_by(|a, b| a.millimetres.total_cmp(&b.millimetres));
    let mut long = Vec::new();
    for bridge in spare {
        if route(&bridges, models, bridge.from, bridge.to).is_none() {
            bridges.push(bridge);
            long.push(bridge);
        }
    }
    (bridges, long)
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_runtime::motion::LatentPoint;

    #[test]
    fn labels_without_a_bridge_get_the_shortest_that_joins_them() {
        let bridge = |from, to, millimetres| {
            let point = LatentPoint::default();
            Bridge { from, to, from_point: point, to_point: point, millimetres }
        };
        let one = |near: bool, bridge: Bridge| Found {
            bridges: if near { vec![bridge] } else { Vec::new() },
            nearest: Some(bridge),
        };
        let found = vec![
            one(true, bridge(0, 1, 1.0)),
            one(false, bridge(0, 2, 5.0)),
            one(false, bridge(1, 2, 4.0)),
            one(false, bridge(2, 1, 4.5)),
        ];
        let (all, long) = join(3, found);
        assert_eq!((all.len(), long.len()), (2, 1), "0 and 2 are joined over 1");
        assert_eq!(long[0].millimetres, 4.0);
    }
}
