//! Least values of cubics' and quartics' kind: what a coordinate step needs when a weight enters its own
//! cost with a power above two (tied pairs, majorised steps).

/// The real roots of `c₀ + c₁x + c₂x² + c₃x³`, up to three, each polished by Newton steps. A double root
/// may come once or twice; a polynomial that vanishes everywhere has none.
pub(crate) fn cubic_roots(c: [f64; 4]) -> ([f64; 3], usize) {
    let scale = c.iter().fold(0.0f64, |a, b| a.max(b.abs()));
    let mut roots = [0.0; 3];
    let mut count = 0;
    let mut push = |root: f64| {
        if root.is_finite() && count < 3 {
            roots[count] = polish(&c, root);
            count += 1;
        }
    };
    // A leading coefficient that only rounding left is not a power that exists.
    let tiny = scale * 1e-14;
    if c[3].abs() > tiny {
        let (a, b, d) = (c[2] / c[3], c[1] / c[3], c[0] / c[3]);
        let shift = a / 3.0;
        let p = b - a * a / 3.0;
        let q = 2.0 * a * a * a / 27.0 - a * b / 3.0 + d;
        let discriminant = q * q / 4.0 + p * p * p / 27.0;
        if discriminant > 0.0 {
            let root = discriminant.sqrt();
            // The sum that does not cancel; the other follows from the product of the two.
            let u = if q > 0.0 { (-q / 2.0 - root).cbrt() } else { (-q / 2.0 + root).cbrt() };
            push(u - if u == 0.0 { 0.0 } else { p / (3.0 * u) } - shift);
        } else {
            let radius = (-p / 3.0).max(0.0).sqrt();
            let cosine = if radius > 0.0 { (-q / (2.0 * radius.powi(3))).clamp(-1.0, 1.0) } else { 0.0 };
            let angle = cosine.acos() / 3.0;
            for turn in [0.0, 1.0, 2.0] {
                push(2.0 * radius * (angle - turn * std::f64::consts::TAU / 3.0).cos() - shift);
            }
        }
    } else if c[2].abs() > tiny {
        let discriminant = c[1] * c[1] - 4.0 * c[2] * c[0];
        if discriminant >= 0.0 {
            let q = -0.5 * (c[1] + discriminant.sqrt().copysign(c[1]));
            push(q / c[2]);
            if q != 0.0 {
                push(c[0] / q);
            }
        }
    } else if c[1].abs() > tiny {
        push(-c[0] / c[1]);
    }
    (roots, count)
}

fn polish(c: &[f64; 4], mut x: f64) -> f64 {
    for _ in 0..3 {
        let value = ((c[3] * x + c[2]) * x + c[1]) * x + c[0];
        let slope = (3.0 * c[3] * x + 2.0 * c[2]) * x + c[1];
        let next = x - value / slope;
        let next_value = ((c[3] * next + c[2]) * next + c[1]) * next + c[0];
        if !next.is_finite() || next_value.abs() >= value.abs() {
            break;
        }
        x = next;
    }
    x
}

/// Where `c₁x + c₂x² + c₃x³ + c₄x⁴` is least on `[low, high]` (which holds 0), and that value, never above 0.
pub(crate) fn least_quartic(c: [f64; 4], low: f64, high: f64) -> (f64, f64) {
    let value = |x: f64| (((c[3] * x + c[2]) * x + c[1]) * x + c[0]) * x;
    let (roots, count) = cubic_roots([c[0], 2.0 * c[1], 3.0 * c[2], 4.0 * c[3]]);
    let mut best = (0.0, 0.0);
    let ends = [low, high].into_iter().filter(|end| end.is_finite());
    for x in roots[..count].iter().map(|root| root.clamp(low, high)).chain(ends) {
        if value(x) < best.1 {
            best = (x, value(x));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn roots_are_found(a in -3.0f64..3.0, b in -3.0f64..3.0, c in -3.0f64..3.0, lead in 0.01f64..100.0) {
            let poly = [-a * b * c * lead, (a * b + b * c + a * c) * lead, -(a + b + c) * lead, lead];
            let (roots, count) = cubic_roots(poly);
            for want in [a, b, c] {
                // A double root is known to half the digits only.
                prop_assert!(roots[..count].iter().any(|r| (r - want).abs() < 2e-4), "{want} in {:?}", &roots[..count]);
            }
        }

        #[test]
        fn no_grid_point_is_lower(c in prop::array::uniform4(-5.0f64..5.0), power in 0usize..5, low in -1.0f64..0.0, high in 0.0f64..1.0) {
            let mut c = c;
            c[power..].fill(0.0);
            let (x, least) = least_quartic(c, low, high);
            prop_assert!((low..=high).contains(&x) && least <= 0.0);
            for i in 0..=200 {
                let x = low + (high - low) * f64::from(i) / 200.0;
                let value = (((c[3] * x + c[2]) * x + c[1]) * x + c[0]) * x;
                prop_assert!(value >= least - 1e-12);
            }
        }
    }

    #[test]
    fn degenerate_polynomials() {
        assert_eq!(cubic_roots([0.0; 4]).1, 0);
        assert_eq!(cubic_roots([1.0, 0.0, 1.0, 0.0]).1, 0);
        assert_eq!(least_quartic([0.0; 4], 0.0, 1.0), (0.0, 0.0));
        assert_eq!(least_quartic([-1.0, 0.0, 0.0, 0.0], 0.0, f64::INFINITY).0, 0.0);
    }
}
