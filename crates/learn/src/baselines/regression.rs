//! Linear regression from controls to vertices: how far from linear a rig is.

use understudy_core::Vec3;

/// Linear regression `v = v₀ + B [p; 1]` by normal equations with a trace of ridge. Gives on the test
/// poses the share of the displacement from rest that it leaves: `sqrt(Σ‖v − v̂‖² / Σ‖v − v₀‖²)`.
/// `train` and `test`: controls and vertices of each pose.
pub fn regression_residual(
    rest: &[Vec3],
    train: &[(Vec<f32>, Vec<Vec3>)],
    test: &[(Vec<f32>, Vec<Vec3>)],
) -> f64 {
    let inputs = train[0].0.len() + 1;
    let outputs = rest.len() * 3;
    let extended = |controls: &[f32]| -> Vec<f64> {
        controls.iter().map(|c| f64::from(*c)).chain(std::iter::once(1.0)).collect()
    };
    let displacement = |vertices: &[Vec3]| -> Vec<f64> {
        vertices.iter().zip(rest).flat_map(|(v, r)| (*v - *r).as_dvec3().to_array()).collect()
    };
    let mut gram = vec![0.0f64; inputs * inputs];
    let mut right = vec![0.0f64; inputs * outputs];
    for (controls, vertices) in train {
        let (x, y) = (extended(controls), displacement(vertices));
        for i in 0..inputs {
            if x[i] == 0.0 {
                continue;
            }
            for j in 0..inputs {
                gram[i * inputs + j] += x[i] * x[j];
            }
            let row = &mut right[i * outputs..(i + 1) * outputs];
            row.iter_mut().zip(&y).for_each(|(sum, y)| *sum += x[i] * y);
        }
    }
    for i in 0..inputs {
        gram[i * inputs + i] *= 1.0 + 1e-9;
    }
    solve_cholesky(&mut gram, inputs, &mut right, outputs);
    let (mut left, mut whole) = (0.0, 0.0);
    for (controls, vertices) in test {
        let (x, y) = (extended(controls), displacement(vertices));
        let mut prediction = vec![0.0; outputs];
        for i in 0..inputs {
            let row = &right[i * outputs..(i + 1) * outputs];
            prediction.iter_mut().zip(row).for_each(|(sum, b)| *sum += x[i] * b);
        }
        left += y.iter().zip(&prediction).map(|(y, p)| (y - p).powi(2)).sum::<f64>();
        whole += y.iter().map(|y| y * y).sum::<f64>();
    }
    (left / whole).sqrt()
}

/// Solves `G X = R` in place, `G` symmetric positive definite `[n × n]`, `R` `[n × m]`, row-major.
fn solve_cholesky(gram: &mut [f64], n: usize, right: &mut [f64], m: usize) {
    for j in 0..n {
        for k in 0..j {
            let factor = gram[j * n + k];
            for i in j..n {
                gram[i * n + j] -= gram[i * n + k] * factor;
            }
        }
        let pivot = gram[j * n + j].max(f64::MIN_POSITIVE).sqrt();
        for i in j..n {
            gram[i * n + j] /= pivot;
        }
    }
    for i in 0..n {
        for k in 0..i {
            subtract_row(right, m, i, k, gram[i * n + k]);
        }
        right[i * m..(i + 1) * m].iter_mut().for_each(|r| *r /= gram[i * n + i]);
    }
    for i in (0..n).rev() {
        for k in i + 1..n {
            subtract_row(right, m, i, k, gram[k * n + i]);
        }
        right[i * m..(i + 1) * m].iter_mut().for_each(|r| *r /= gram[i * n + i]);
    }
}

/// `row_i −= factor · row_k`.
fn subtract_row(rows: &mut [f64], m: usize, i: usize, k: usize, factor: f64) {
    let (low, high) = rows.split_at_mut(i.max(k) * m);
    let (target, source) = if i > k {
        (&mut high[..m], &low[k * m..(k + 1) * m])
    } else {
        (&mut low[i * m..(i + 1) * m], &high[..m])
    };
    target.iter_mut().zip(source).for_each(|(t, s)| *t -= factor * s);
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    #[test]
    fn regression_recovers_a_linear_map_and_not_a_square() {
        let mut random = Random::new(8);
        let rest = [Vec3::ZERO];
        let mut poses = |square: f32| -> Vec<(Vec<f32>, Vec<Vec3>)> {
            let mut pose = || {
                let p = [random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0)];
                (p.to_vec(), vec![Vec3::new(p[0] + 2.0 * p[1], square * p[0] * p[0], 0.3)])
            };
            (0..200).map(|_| pose()).collect()
        };
        let (linear, curved) = (poses(0.0), poses(3.0));
        assert!(regression_residual(&rest, &linear[..100], &linear[100..]) < 1e-5);
        assert!(regression_residual(&rest, &curved[..100], &curved[100..]) > 0.2);
    }
}
