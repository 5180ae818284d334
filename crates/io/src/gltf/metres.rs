//! Metres in the file, centimetres inside: conversions that survive save–load–save bit for bit.

use glam::Vec3;

/// Centimetres in a metre.
pub(super) const CM: f64 = 100.0;

/// Metres of a file in cm.
pub(super) fn to_cm(metres: f32) -> f32 {
    (f64::from(metres) * CM) as f32
}

/// Cm in metres: the nearest number that [`to_cm`] turns back into exactly `cm`, where there is one.
/// Plain division would land one bit beside it now and then, and files would drift when saved again.
pub(super) fn to_metres(cm: f32) -> f32 {
    let nearest = (f64::from(cm) / CM) as f32;
    let exact = [nearest, nearest.next_up(), nearest.next_down()].into_iter().find(|m| to_cm(*m) == cm);
    exact.unwrap_or(nearest)
}

/// [`to_cm`] of a vector.
pub(super) fn vector_to_cm(metres: Vec3) -> Vec3 {
    Vec3::new(to_cm(metres.x), to_cm(metres.y), to_cm(metres.z))
}

/// [`to_metres`] of a vector.
pub(super) fn vector_to_metres(cm: Vec3) -> Vec3 {
    Vec3::new(to_metres(cm.x), to_metres(cm.y), to_metres(cm.z))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn a_second_save_writes_the_same_bits(cm in -300.0f32..300.0) {
            let first = to_metres(cm);
            prop_assert_eq!(to_metres(to_cm(first)).to_bits(), first.to_bits());
            prop_assert!((to_cm(first) - cm).abs() <= cm.abs() * f32::EPSILON);
        }
    }
}
