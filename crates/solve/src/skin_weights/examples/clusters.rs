//! Groups of vertices that move alike: k-means on rows of weights. Always the same for the same weights: seeds are the
//! rows farthest from those before.

const ROUNDS: usize = 12;

/// The group of every row, at most `count` of them.
pub(super) fn cluster(weights: &[f64], columns: usize, count: usize) -> Vec<u32> {
    let rows: Vec<&[f64]> = weights.chunks_exact(columns).collect();
    let squared = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    let mut centres: Vec<Vec<f64>> = Vec::new();
    let mut farness = vec![f64::INFINITY; rows.len()];
    let mut next = 0;
    while centres.len() < count.min(rows.len()) {
        centres.push(rows[next].to_vec());
        let centre = centres.last().expect("one was pushed");
        farness.iter_mut().zip(&rows).for_each(|(far, row)| *far = far.min(squared(row, centre)));
        let farthest = farness.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        let (place, far) = farthest.map_or((0, 0.0), |(place, far)| (place, *far));
        // Rows that are all alike need no more groups.
        if far < 1e-12 {
            break;
        }
        next = place;
    }
    let mut group = vec![0u32; rows.len()];
    for _ in 0..ROUNDS {
        let mut changed = false;
        for (group, row) in group.iter_mut().zip(&rows) {
            let distances = centres.iter().map(|centre| squared(row, centre));
            let nearest =
                distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(g, _)| g as u32);
            changed |= nearest != *group;
            *group = nearest;
        }
        if !changed {
            break;
        }
        let mut counts = vec![0.0; centres.len()];
        let mut sums = vec![vec![0.0; columns]; centres.len()];
        for (group, row) in group.iter().zip(&rows) {
            counts[*group as usize] += 1.0;
            sums[*group as usize].iter_mut().zip(*row).for_each(|(sum, w)| *sum += w);
        }
        for ((centre, sum), count) in centres.iter_mut().zip(sums).zip(counts) {
            if count > 0.0 {
                *centre = sum.iter().map(|s| s / count).collect();
            }
        }
    }
    group
}
