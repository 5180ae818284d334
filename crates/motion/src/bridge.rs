//! Bridges between latent spaces: pairs of points whose poses look alike through the rig. Every training point of one
//! space is matched with the nearest pose of the other; pairs closer than a limit are kept.

use crate::synthesis::MotionModel;
use serde::{Deserialize, Serialize};

/// A pair of points that show nearly the same pose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bridge {
    /// Index of a model.
    pub from: usize,
    /// Index of the other.
    pub to: usize,
    /// Point in the one.
    pub from_point: Vec<f64>,
    /// Point in the other.
    pub to_point: Vec<f64>,
    /// How far the mesh jumps, root mean square over the vertices that move, mm.
    pub millimetres: f32,
}

/// Settings of the search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BridgeConfig {
    /// `ε`, mm.
    pub millimetres: f32,
    /// Most bridges per pair of models.
    pub most: usize,
}

impl Default for BridgeConfig {
    fn default() -> Self {
        Self { millimetres: 2.0, most: 30 }
    }
}

/// Training points that are tried; more are thinned out evenly.
const TRIED: usize = 150;
/// Frames between two bridges of a clip: neighbours are nearly the same.
const APART: usize = 3;

/// Bridges between two models. `distance` says how far apart two poses are through the rig, mm. Where none is closer
/// than the limit, the closest one alone is given: a blend hides it, and the caller can say how long it is.
pub fn find<E>(
    models: &[MotionModel],
    (from, to): (usize, usize),
    config: &BridgeConfig,
    mut distance: impl FnMut(&[f32], &[f32]) -> Result<f32, E>,
) -> Result<Vec<Bridge>, E> {
    let (a, b) = (&models[from], &models[to]);
    let step = a.space.len().div_ceil(TRIED).max(1);
    let mut pairs: Vec<(f64, usize, Vec<f64>)> = Vec::new();
    for frame in (0..a.space.len()).step_by(step) {
        let pose = a.pose(a.space.point(frame));
        let (point, miss) = b.space.project(&b.linear.encode(&pose));
        pairs.push((miss, frame, point));
    }
    pairs.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.cmp(&y.1)));
    let mut kept: Vec<(Bridge, usize)> = Vec::new();
    let mut closest: Option<Bridge> = None;
    for (_, frame, to_point) in pairs.into_iter().take(3 * config.most) {
        let from_point = a.space.point(frame).to_vec();
        let millimetres = distance(&a.pose(&from_point), &b.pose(&to_point))?;
        let bridge = Bridge { from, to, from_point, to_point, millimetres };
        let near = kept.iter().any(|(_, other)| other.abs_diff(frame) < APART);
        if millimetres <= config.millimetres && !near && kept.len() < config.most {
            kept.push((bridge, frame));
        } else if closest.as_ref().is_none_or(|other| millimetres < other.millimetres) {
            closest = Some(bridge);
        }
    }
    if kept.is_empty() {
        return Ok(closest.into_iter().collect());
    }
    Ok(kept.into_iter().map(|(bridge, _)| bridge).collect())
}

/// The models to pass from one to another, both ends included, by the least sum of squared jumps: through a third model
/// where that is smoother.
pub fn route(bridges: &[Bridge], models: usize, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut cost = vec![f64::INFINITY; models];
    let mut before = vec![usize::MAX; models];
    let mut done = vec![false; models];
    *cost.get_mut(from)? = 0.0;
    loop {
        let open = (0..models).filter(|model| !done[*model] && cost[*model].is_finite());
        let Some(model) = open.min_by(|a, b| cost[*a].total_cmp(&cost[*b])) else { break };
        done[model] = true;
        for bridge in bridges {
            let other = match model {
                _ if bridge.from == model => bridge.to,
                _ if bridge.to == model => bridge.from,
                _ => continue,
            };
            // A model more on the way costs as much as a jump of half a millimetre.
            let there = cost[model] + f64::from(bridge.millimetres).powi(2) + 0.25;
            if other < models && there < cost[other] {
                (cost[other], before[other]) = (there, model);
            }
        }
    }
    let mut way = vec![to];
    while *way.last()? != from {
        let model = *before.get(*way.last()?)?;
        if model == usize::MAX {
            return None;
        }
        way.push(model);
    }
    way.reverse();
    Some(way)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_model_is_passed_where_the_direct_jump_is_long() {
        let bridge = |from, to, millimetres| Bridge {
            from,
            to,
            from_point: vec![0.0],
            to_point: vec![0.0],
            millimetres,
        };
        let bridges = [bridge(0, 1, 9.0), bridge(0, 2, 1.0), bridge(1, 2, 1.0), bridge(4, 3, 1.0)];
        assert_eq!(route(&bridges, 5, 0, 1), Some(vec![0, 2, 1]));
        assert_eq!(route(&bridges, 5, 3, 4), Some(vec![3, 4]), "bridges lead both ways");
        assert_eq!(route(&bridges, 5, 0, 4), None);
        assert_eq!(route(&bridges, 5, 2, 2), Some(vec![2]));
    }
}
