//! Paths through a latent space: straight, or the shortest way over the training points in a complete graph whose edges
//! cost `‖x_i − x_j‖^p`, resampled so that every frame goes the same distance.
//!
//! The paper prints the exponent −p, which is a likeness and not a cost: with it the longest jump would be the best.

use crate::matrix::squared_distance;

/// Corner points from one place to another.
pub fn straight(from: &[f64], to: &[f64]) -> Vec<Vec<f64>> {
    vec![from.to_vec(), to.to_vec()]
}

/// Corner points of the cheapest way from one place to another over `points` (`[N][q]`), by Dijkstra's algorithm on the
/// complete graph, `O(N²)`.
pub fn shortest(points: &[&[f64]], from: &[f64], to: &[f64], power: f64) -> Vec<Vec<f64>> {
    let n = points.len();
    let place = |node: usize| match node {
        _ if node < n => points[node],
        _ if node == n => from,
        _ => to,
    };
    let mut cost = vec![f64::INFINITY; n + 2];
    let mut before = vec![n; n + 2];
    let mut done = vec![false; n + 2];
    cost[n] = 0.0;
    loop {
        let next = (0..n + 2).filter(|node| !done[*node]).min_by(|a, b| cost[*a].total_cmp(&cost[*b]));
        let Some(node) = next.filter(|node| cost[*node].is_finite()) else { break };
        done[node] = true;
        if node == n + 1 {
            break;
        }
        for other in 0..n + 2 {
            if done[other] {
                continue;
            }
            let there = cost[node] + squared_distance(place(node), place(other)).powf(0.5 * power);
            if there < cost[other] {
                (cost[other], before[other]) = (there, node);
            }
        }
    }
    let mut way = vec![to.to_vec()];
    let mut node = n + 1;
    while node != n {
        node = before[node];
        way.push(place(node).to_vec());
    }
    way.reverse();
    way
}

/// Length of a way.
pub fn length(corners: &[Vec<f64>]) -> f64 {
    corners.windows(2).map(|pair| squared_distance(&pair[0], &pair[1]).sqrt()).sum()
}

/// A place for every frame, the first one step after the start and the last at the end, equally far apart along the way.
pub fn resample(corners: &[Vec<f64>], frames: usize) -> Vec<Vec<f64>> {
    let frames = frames.max(1);
    let whole = length(corners);
    let mut out = Vec::with_capacity(frames);
    let (mut corner, mut passed) = (0, 0.0);
    for frame in 1..=frames {
        let wanted = whole * frame as f64 / frames as f64;
        loop {
            let step = squared_distance(&corners[corner], &corners[corner + 1]).sqrt();
            if passed + step >= wanted || corner + 2 == corners.len() {
                let share = if step > 0.0 { ((wanted - passed) / step).clamp(0.0, 1.0) } else { 1.0 };
                let (a, b) = (&corners[corner], &corners[corner + 1]);
                out.push(a.iter().zip(b).map(|(a, b)| a + (b - a) * share).collect());
                break;
            }
            passed += step;
            corner += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_way_goes_over_the_points_and_not_across() {
        // Half a circle: with a power above one, many short steps are cheaper than one long one.
        let circle: Vec<Vec<f64>> = (0..=20)
            .map(|i| (f64::from(i) * std::f64::consts::PI / 20.0).sin_cos())
            .map(|(s, c)| vec![c, s])
            .collect();
        let points: Vec<&[f64]> = circle.iter().map(Vec::as_slice).collect();
        let way = shortest(&points, &[1.0, 0.0], &[-1.0, 0.0], 4.0);
        assert!(way.len() > 15, "{} corners", way.len());
        assert!((length(&way) - std::f64::consts::PI).abs() < 0.05);
        let across = shortest(&points, &[1.0, 0.0], &[-1.0, 0.0], 1.0);
        assert!((length(&across) - 2.0).abs() < 1e-9);
        assert_eq!(shortest(&[], &[1.0], &[2.0], 4.0), straight(&[1.0], &[2.0]));
    }

    #[test]
    fn frames_are_equally_far_apart_and_end_at_the_end() {
        let corners = vec![vec![0.0, 0.0], vec![1.0, 0.0], vec![1.0, 0.0], vec![1.0, 3.0]];
        let frames = resample(&corners, 8);
        assert_eq!((frames.len(), frames[7].as_slice()), (8, [1.0, 3.0].as_slice()));
        assert!(squared_distance(&frames[0], &[0.5, 0.0]) < 1e-18);
        assert!(squared_distance(&frames[2], &[1.0, 0.5]) < 1e-18);
        assert_eq!(resample(&straight(&[2.0], &[2.0]), 3), vec![vec![2.0]; 3]);
    }
}
