//! Bridges between latent spaces, pairs of points that show nearly the same pose, and the labels to pass on the way from
//! one to another.

use super::point::LatentPoint;

/// A pair of points that show nearly the same pose; it leads both ways.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bridge {
    /// Index of a model.
    pub from: usize,
    /// Index of the other.
    pub to: usize,
    /// Point in the one.
    pub from_point: LatentPoint,
    /// Point in the other.
    pub to_point: LatentPoint,
    /// How far the mesh jumps, root mean square over the vertices that move, mm.
    pub millimetres: f32,
}

/// A model more on the way costs as much as a jump of half a millimetre.
const PASSING: f64 = 0.25;

/// The models to pass from one to another, both ends included, by the least sum of squared jumps: through a third model
/// where that is smoother, or where no bridge leads there.
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
            let there = cost[model] + f64::from(bridge.millimetres).powi(2) + PASSING;
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
            from_point: LatentPoint::default(),
            to_point: LatentPoint::default(),
            millimetres,
        };
        let bridges = [bridge(0, 1, 9.0), bridge(0, 2, 1.0), bridge(1, 2, 1.0), bridge(4, 3, 1.0)];
        assert_eq!(route(&bridges, 5, 0, 1), Some(vec![0, 2, 1]));
        assert_eq!(route(&bridges, 5, 3, 4), Some(vec![3, 4]), "bridges lead both ways");
        assert_eq!(route(&bridges, 5, 0, 4), None);
        assert_eq!(route(&bridges, 5, 2, 2), Some(vec![2]));
    }
}
