//! Angles about given axes from a rotation: any order, any number of axes, safe at the poles, and the
//! solution nearest to the frame before, so that written curves do not jump.

use glam::{DMat3, DQuat, DVec3};
use std::f64::consts::{PI, TAU};

pub(super) const AXES: [DVec3; 3] = [DVec3::X, DVec3::Y, DVec3::Z];

/// Where the cosine of the middle angle falls below this, the outer two turn about the same axis and
/// the last one keeps its former value.
const POLE: f64 = 1e-6;

/// Angles in radians, one an axis of `order` (one to three different axes), whose product
/// `R(order₀) · R(order₁) · R(order₂)` is nearest to `rotation`: exactly it for three axes.
/// `before`: the angles of the frame before.
pub(super) fn angles(rotation: DQuat, order: &[usize], before: &[f64]) -> Vec<f64> {
    let mut axes = [0; 3];
    axes[..order.len()].copy_from_slice(order);
    // Missing axes are appended; a rotation that the present ones can express has zeros there.
    for place in order.len()..3 {
        axes[place] = (0..3).find(|axis| !axes[..place].contains(axis)).expect("two axes leave a third");
    }
    let before = [0, 1, 2].map(|place| before.get(place).copied().unwrap_or(0.0));
    let first = three(rotation, axes, before[2]);
    // The second set of angles for the same rotation.
    let second = [first[0] + PI, PI - first[1], first[2] + PI];
    let candidates = [near(first, before), near(second, before)];
    let cost = |angles: &[f64; 3]| -> f64 {
        // An absent axis must come out as zero before nearness counts.
        let absent: f64 =
            angles[order.len()..].iter().map(|angle| (angle.sin().abs() + 1.0 - angle.cos()) * 1e6).sum();
        absent + angles.iter().zip(&before).map(|(a, b)| (a - b).abs()).sum::<f64>()
    };
    let best = if cost(&candidates[1]) < cost(&candidates[0]) { candidates[1] } else { candidates[0] };
    best[..order.len()].to_vec()
}

/// One solution for `R(i, a) · R(j, b) · R(k, c)`: the last angle first, then the rest of what it leaves.
fn three(rotation: DQuat, [i, j, k]: [usize; 3], last_before: f64) -> [f64; 3] {
    let sign = if (i + 1) % 3 == j { 1.0 } else { -1.0 };
    let entry = |m: &DMat3, row: usize, column: usize| m.col(column)[row];
    let m = DMat3::from_quat(rotation);
    let cosine = f64::hypot(entry(&m, i, i), entry(&m, i, j));
    let c = if cosine > POLE { f64::atan2(-sign * entry(&m, i, j), entry(&m, i, i)) } else { last_before };
    let left = m * DMat3::from_axis_angle(AXES[k], -c);
    let a = f64::atan2(sign * entry(&left, k, j), entry(&left, j, j));
    let middle = DMat3::from_axis_angle(AXES[i], -a) * left;
    let b = f64::atan2(sign * entry(&middle, i, k), entry(&middle, i, i));
    [a, b, c]
}

/// The same angles moved by whole turns next to others.
fn near(angles: [f64; 3], before: [f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|place| angles[place] + TAU * ((before[place] - angles[place]) / TAU).round())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

    fn product(order: &[usize], angles: &[f64]) -> DQuat {
        order
            .iter()
            .zip(angles)
            .fold(DQuat::IDENTITY, |q, (axis, angle)| q * DQuat::from_axis_angle(AXES[*axis], *angle))
    }

    proptest! {
        #[test]
        fn every_order_gives_the_rotation_back(
            angles_in in prop::array::uniform3(-7.0f64..7.0), order in 0usize..6, pole in 0usize..4,
            before in prop::array::uniform3(-7.0f64..7.0),
        ) {
            let mut angles_in = angles_in;
            match pole {
                0 => angles_in[1] = PI / 2.0,
                1 => angles_in[1] = -PI / 2.0 + 1e-9,
                _ => {}
            }
            let rotation = product(&ORDERS[order], &angles_in);
            let out = angles(rotation, &ORDERS[order], &before);
            let error = rotation.angle_between(product(&ORDERS[order], &out));
            prop_assert!(error < 2e-6, "{error}");
        }

        #[test]
        fn the_frame_before_is_continued(start in prop::array::uniform3(-9.0f64..9.0), order in 0usize..6) {
            // A small step from known angles, away from the pole, comes back as that small step.
            prop_assume!(start[1].cos().abs() > 0.1);
            let step = [start[0] + 0.01, start[1] - 0.01, start[2] + 0.02];
            let out = angles(product(&ORDERS[order], &step), &ORDERS[order], &start);
            for (a, b) in out.iter().zip(&step) {
                prop_assert!((a - b).abs() < 1e-9, "{out:?} {step:?}");
            }
        }

        #[test]
        fn fewer_axes_come_back(order in 0usize..6, count in 1usize..3,
                                start in prop::array::uniform2(-9.0f64..9.0)) {
            let axes = &ORDERS[order][..count];
            let rotation = product(axes, &start[..count]);
            let out = angles(rotation, axes, &[0.0; 3][..count]);
            prop_assert!(rotation.angle_between(product(axes, &out)) < 1e-7, "{axes:?} {start:?} {out:?}");
        }
    }
}
