//! The inner loops of a latent space over rows of sixteen: written once, compiled for what every processor has and for
//! AVX2. No multiply-add is fused, so both give the same bits.

/// Rows are padded to a multiple of this.
pub const LANES: usize = 16;

/// Length of a row that holds so many numbers.
pub fn padded(count: usize) -> usize {
    count.next_multiple_of(LANES)
}

/// Adding it rounds a small f32 to a whole number, whose bits are then the lowest of the sum.
const ROUND: f32 = 12_582_912.0;
/// Taylor coefficients of 2^f: accurate to 1e-7 for |f| ≤ ½.
const POWERS: [f32; 7] =
    [1.0, std::f32::consts::LN_2, 0.240_226_5, 0.055_504_11, 0.009_618_129, 0.001_333_356, 0.000_154_035_3];

/// `e^z` for `z ≤ 0`; beyond −87 it stays at the smallest normal numbers.
#[inline(always)]
fn exponential(z: f32) -> f32 {
    let t = (z * std::f32::consts::LOG2_E).max(-126.0);
    let rounded = t + ROUND;
    let f = t - (rounded - ROUND);
    let mut power = POWERS[6];
    for k in (0..6).rev() {
        power = power * f + POWERS[k];
    }
    let exponent = rounded.to_bits().wrapping_sub(ROUND.to_bits());
    power * f32::from_bits(exponent.wrapping_add(127) << 23)
}

#[inline(always)]
fn covariances_of(coordinates: &[f32], x: &[f32], factor: f32, variance: f32, out: &mut [f32]) {
    let row = out.len();
    for (block, out) in out.chunks_exact_mut(LANES).enumerate() {
        let mut squared = [0.0f32; LANES];
        for (dimension, x) in x.iter().enumerate() {
            let from = dimension * row + block * LANES;
            for (slot, centre) in squared.iter_mut().zip(&coordinates[from..from + LANES]) {
                let apart = x - centre;
                *slot += apart * apart;
            }
        }
        for (out, squared) in out.iter_mut().zip(squared) {
            *out = variance * exponential(factor * squared);
        }
    }
}

#[inline(always)]
fn dots_of(rows: &[f32], k: &[f32], out: &mut [f32]) {
    for (out, row) in out.iter_mut().zip(rows.chunks_exact(k.len())) {
        let mut sums = [0.0f32; LANES];
        for (row, k) in row.chunks_exact(LANES).zip(k.chunks_exact(LANES)) {
            for lane in 0..LANES {
                sums[lane] += row[lane] * k[lane];
            }
        }
        *out = sums.iter().sum();
    }
}

#[inline(always)]
fn back_of(rows: &[f32], u: &[f32], out: &mut [f32]) {
    out.fill(0.0);
    let length = out.len();
    // Four rows at a time, so that the result goes through memory a quarter as often.
    for (rows, u) in rows.chunks(4 * length).zip(u.chunks(4)) {
        if let [a, b, c, d] = *u {
            let (first, rest) = rows.split_at(length);
            let (second, rest) = rest.split_at(length);
            let (third, fourth) = rest.split_at(length);
            for ((((out, p), q), r), s) in out.iter_mut().zip(first).zip(second).zip(third).zip(fourth) {
                *out += (a * p + b * q) + (c * r + d * s);
            }
        } else {
            for (row, u) in rows.chunks_exact(length).zip(u) {
                out.iter_mut().zip(row).for_each(|(out, row)| *out += u * row);
            }
        }
    }
}

#[inline(always)]
fn slope_of(coordinates: &[f32], x: &[f32], pulls: &[f32], k: &[f32], out: &mut [f32]) {
    for (dimension, (x, out)) in x.iter().zip(out).enumerate() {
        let centres = &coordinates[dimension * k.len()..(dimension + 1) * k.len()];
        let mut sums = [0.0f32; LANES];
        let blocks = centres.chunks_exact(LANES).zip(pulls.chunks_exact(LANES)).zip(k.chunks_exact(LANES));
        for ((centres, pulls), k) in blocks {
            for lane in 0..LANES {
                sums[lane] += pulls[lane] * k[lane] * (x - centres[lane]);
            }
        }
        *out = sums.iter().sum();
    }
}

/// A function for every processor out of a loop that the compiler widens.
macro_rules! wide {
    ($(#[$doc:meta])* $name:ident, $body:ident, ($($argument:ident: $kind:ty),*)) => {
        $(#[$doc])*
        pub fn $name($($argument: $kind),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn with_avx2($($argument: $kind),*) {
                    $body($($argument),*);
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has what the function was compiled for.
                    return unsafe { with_avx2($($argument),*) };
                }
            }
            $body($($argument),*);
        }
    };
}

wide!(
    /// `out_m = variance · exp(factor ‖x − c_m‖²)`; `coordinates`: `[q][row]`, `out`: `[row]`, a multiple of [`LANES`].
    covariances, covariances_of, (coordinates: &[f32], x: &[f32], factor: f32, variance: f32, out: &mut [f32])
);
wide!(
    /// `out_r = Σ_m rows_rm k_m`; `rows`: `[R][row]`, `k`: `[row]`.
    dots, dots_of, (rows: &[f32], k: &[f32], out: &mut [f32])
);
wide!(
    /// `out_m = Σ_r u_r rows_rm`.
    back, back_of, (rows: &[f32], u: &[f32], out: &mut [f32])
);
wide!(
    /// `out_q = Σ_m pulls_m k_m (x_q − c_qm)`.
    slope, slope_of, (coordinates: &[f32], x: &[f32], pulls: &[f32], k: &[f32], out: &mut [f32])
);

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    #[test]
    fn the_exponential_is_accurate_and_far_away_it_is_almost_nothing() {
        for step in 0..8600 {
            let z = -0.01 * step as f32;
            let (own, want) = (f64::from(exponential(z)), f64::from(z).exp());
            // Eight steps of f32: the argument's rounding times |z| on top of the polynomial's 1e-7.
            let tolerance = f64::from(f32::EPSILON) * (8.0 + f64::from(z.abs()));
            assert!((own / want - 1.0).abs() < tolerance, "{z}: {own} {want}");
        }
        assert!(exponential(-1e30) < 1e-37 && exponential(f32::NEG_INFINITY) < 1e-37);
        assert_eq!(exponential(0.0), 1.0);
    }

    #[test]
    fn rows_of_any_length_give_what_plain_sums_give() {
        let mut random = Random::new(4);
        for (count, rows) in [(1, 1), (15, 3), (16, 4), (17, 5), (100, 9), (400, 64)] {
            let row = padded(count);
            let mut numbers = |n: usize| (0..n).map(|_| random.normal() as f32).collect::<Vec<f32>>();
            let (matrix, k, u) = (numbers(rows * row), numbers(row), numbers(rows));
            let mut out = vec![0.0; rows];
            dots(&matrix, &k, &mut out);
            let scale = 8.0 * f32::EPSILON * row as f32;
            for r in 0..rows {
                let want: f64 = (0..row).map(|m| f64::from(matrix[r * row + m]) * f64::from(k[m])).sum();
                assert!((f64::from(out[r]) - want).abs() < f64::from(scale), "{count} {r}");
            }
            let mut returned = vec![9.0; row];
            back(&matrix, &u, &mut returned);
            for m in 0..row {
                let want: f64 = (0..rows).map(|r| f64::from(matrix[r * row + m]) * f64::from(u[r])).sum();
                assert!((f64::from(returned[m]) - want).abs() < f64::from(scale), "{count} {m}");
            }
        }
    }
}
