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

/// What a frame of walking costs in a model that is only passed, beside squared jumps in mm²: its clips would show, though
/// nobody asked for them. In the model that is left, one moves anyhow.
const PASSING_FRAME: f64 = 0.25;
const LEAVING_FRAME: f64 = 0.01;

/// One hop of a way: over a bridge to a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hop {
    /// Index of the model that it leads to.
    pub to: usize,
    /// The bridge's end in the model that is left.
    pub here: LatentPoint,
    /// Its end in the other.
    pub there: LatentPoint,
}

/// The bridges to take from a point of one model to another model: directly, through one third model, or as [`route`]
/// leads, by the least sum of squared jumps and of frames that are walked between them; `paces` are those of the models.
pub fn hops(
    bridges: &[Bridge],
    paces: &[f64],
    from: usize,
    point: LatentPoint,
    to: usize,
) -> Option<Vec<Hop>> {
    let found = route(bridges, paces.len(), from, to)?;
    if from == to {
        return Some(Vec::new());
    }
    let thirds = (0..paces.len()).filter(|third| ![from, to].contains(third));
    let ways = thirds.map(|third| vec![from, third, to]).chain([vec![from, to], found]);
    let costed = ways.filter_map(|way| along(bridges, paces, point, &way));
    costed.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, hops)| hops)
}

/// The best bridges along given models, and what they cost.
fn along(bridges: &[Bridge], paces: &[f64], point: LatentPoint, way: &[usize]) -> Option<(f64, Vec<Hop>)> {
    // Per bridge of the last pair: its hop, what it costs to have taken it, and which one of the pair before led there.
    let mut layers: Vec<Vec<(Hop, f64, usize)>> = Vec::with_capacity(way.len());
    for (index, pair) in way.windows(2).enumerate() {
        let (model, to) = (pair[0], pair[1]);
        let ends = bridges.iter().filter_map(|bridge| {
            let jump = f64::from(bridge.millimetres).powi(2) + PASSING;
            match (bridge.from, bridge.to) {
                ends if ends == (model, to) => Some((bridge.from_point, bridge.to_point, jump)),
                ends if ends == (to, model) => Some((bridge.to_point, bridge.from_point, jump)),
                _ => None,
            }
        });
        let walk = |from: LatentPoint, here: LatentPoint| from.distance(here) / paces[model].max(1e-12);
        let layer: Vec<(Hop, f64, usize)> = ends
            .filter_map(|(here, there, jump)| {
                let (before, so_far) = match index {
                    0 => (0, LEAVING_FRAME * walk(point, here)),
                    _ => layers[index - 1]
                        .iter()
                        .enumerate()
                        .map(|(place, (hop, cost, _))| (place, cost + PASSING_FRAME * walk(hop.there, here)))
                        .min_by(|a, b| a.1.total_cmp(&b.1))?,
                };
                Some((Hop { to, here, there }, so_far + jump, before))
            })
            .collect();
        layers.push(layer);
    }
    let last = layers.last()?;
    let mut place = (0..last.len()).min_by(|a, b| last[*a].1.total_cmp(&last[*b].1))?;
    let cost = last[place].1;
    let mut hops = Vec::with_capacity(layers.len());
    for layer in layers.iter().rev() {
        hops.push(layer[place].0);
        place = layer[place].2;
    }
    hops.reverse();
    Some((cost, hops))
}

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

    #[test]
    fn a_third_model_is_crossed_where_its_bridges_meet() {
        let at = |x: f64| LatentPoint::new(&[x, 0.0]);
        let bridge = |from, to, a: f64, b: f64, millimetres| Bridge {
            from,
            to,
            from_point: at(a),
            to_point: at(b),
            millimetres,
        };
        // From 0 to 2 through 1: the shorter jump lands far from where the way goes on.
        let bridges = [
            bridge(0, 1, 0.0, 0.0, 1.0),
            bridge(0, 1, 1.0, 9.0, 1.5),
            bridge(1, 2, 9.1, 4.0, 1.0),
            bridge(3, 2, 0.0, 4.0, 1.0),
        ];
        let paces = [0.1; 4];
        let way = hops(&bridges, &paces, 0, at(0.0), 2).expect("a way");
        assert_eq!(
            way,
            [Hop { to: 1, here: at(1.0), there: at(9.0) }, Hop { to: 2, here: at(9.1), there: at(4.0) }]
        );
        // Bridges lead both ways; the nearer of two equal ones is taken.
        let back = hops(&bridges, &paces, 2, at(4.0), 3).expect("a way");
        assert_eq!(back, [Hop { to: 3, here: at(4.0), there: at(0.0) }]);
        assert_eq!(hops(&bridges, &paces, 1, at(0.0), 1), Some(Vec::new()));
        assert_eq!(hops(&bridges[..3], &paces, 0, at(0.0), 3), None);
    }
}
