//! The nearest row of weights: not negative, and with a sum of one.

/// Projects a row on the simplex (Held et al. 1974): subtracts one number from all and cuts at zero.
pub(super) fn project(row: &mut [f64]) {
    let mut sorted: Vec<f64> = row.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut shift) = (0.0, 0.0);
    for (index, value) in sorted.iter().enumerate() {
        sum += value;
        let candidate = (sum - 1.0) / (index + 1) as f64;
        if *value > candidate {
            shift = candidate;
        }
    }
    row.iter_mut().for_each(|w| *w = (*w - shift).max(0.0));
}

/// Scales a row to a sum of one; a row of nothing is shared equally. Returns how far its sum was from one.
pub(super) fn normalise(row: &mut [f64]) -> f64 {
    let mut sum = 0.0;
    for w in row.iter_mut() {
        *w = w.clamp(0.0, 1.0);
        sum += *w;
    }
    if sum > 1e-9 {
        row.iter_mut().for_each(|w| *w /= sum);
    } else {
        let share = 1.0 / row.len().max(1) as f64;
        row.fill(share);
    }
    (sum - 1.0).abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_row_of_the_simplex_is_nearer(row in prop::collection::vec(-2.0f64..2.0, 1..8), other in prop::collection::vec(0.0f64..1.0, 8)) {
            let mut nearest = row.clone();
            project(&mut nearest);
            prop_assert!((nearest.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!(nearest.iter().all(|w| *w >= 0.0));
            let mut other = other[..row.len()].to_vec();
            normalise(&mut other);
            let distance = |a: &[f64]| -> f64 { a.iter().zip(&row).map(|(a, b)| (a - b).powi(2)).sum() };
            prop_assert!(distance(&nearest) <= distance(&other) + 1e-12);
        }
    }
}
