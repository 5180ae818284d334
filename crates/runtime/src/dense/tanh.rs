//! A fast hyperbolic tangent: `x · P(x²)/Q(x²)` with polynomials of the fourth degree.
//!
//! Their coefficients make the largest error on `±LIMIT` smallest, below 1e-8 (least squares with weights that grow where
//! the error is large, Lawson's method). What is left of the stated bound is rounding. Coefficients are those for
//! which the value at `LIMIT` rounds to one, with and without fused multiply-adds.

/// The stated bound: no result is further than this from the true hyperbolic tangent.
pub const MAX_ERROR: f32 = 3.5e-7;

/// Beyond this the tangent is taken for ±1.
pub const LIMIT: f32 = 8.27;

/// Coefficients of `P`, from x⁸ down to 1.
pub const NUMERATOR: [f32; 5] = [1.453_694_1e-8, 2.142_183_4e-5, 3.543_609_3e-3, 0.134_210_81, 0.999_999_94];

/// Coefficients of `Q`, from x⁸ down to 1.
pub const DENOMINATOR: [f32; 5] = [8.247_707e-7, 3.365_069e-4, 2.605_847e-2, 0.467_544, 1.0];

/// The scalar form; vector kernels do the same steps in lanes.
pub fn tanh(x: f32) -> f32 {
    let x = x.clamp(-LIMIT, LIMIT);
    let square = x * x;
    let along = |coefficients: &[f32; 5]| coefficients.iter().fold(0.0, |sum, c| sum * square + c);
    x * along(&NUMERATOR) / along(&DENOMINATOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_over_a_million_points() {
        let mut worst = (0.0f64, 0.0);
        for step in (-1_000_000..=1_000_000i32).step_by(if cfg!(miri) { 9_999 } else { 1 }) {
            let x = step as f32 * 1.2e-5;
            let miss = (f64::from(tanh(x)) - f64::from(x).tanh()).abs();
            if miss > worst.0 {
                worst = (miss, x);
            }
        }
        assert!(worst.0 <= f64::from(MAX_ERROR), "{worst:?}");
        assert_eq!((tanh(1e30), tanh(-1e30), tanh(0.0)), (1.0, -1.0, 0.0));
        assert!(tanh(f32::NAN).is_nan());
    }
}
