//! BVH files name no unit. A skeleton of a person tells it: only one of the usual units makes it as
//! tall as people are.

use crate::{Axis, Conversion};
use understudy_core::Vec3;

/// The units in use, in cm. CMU's own is an inch divided by 0.45.
const UNITS: [(&str, f32); 7] = [
    ("millimetres", 0.1),
    ("centimetres", 1.0),
    ("inches", 2.54),
    ("CMU units of 1/0.45 inch", 2.54 / 0.45),
    ("decimetres", 10.0),
    ("feet", 30.48),
    ("metres", 100.0),
];

/// From toes to the last joint of the head, cm. The upper end is less than 1.77 times the lower, the
/// smallest step between two units, so that at most one fits.
const PERSON: std::ops::RangeInclusive<f32> = 130.0..=215.0;

/// The unit that makes the rest pose a person, or centimetres and a warning.
/// `points`: joints and end sites in the file's unit and axes.
pub(super) fn estimate(points: &[Vec3], up: Axis) -> (Conversion, Option<String>) {
    let first = points.first().copied().unwrap_or(Vec3::ZERO);
    let (low, high) = points.iter().fold((first, first), |(low, high), p| (low.min(*p), high.max(*p)));
    let size = high - low;
    let along = match up {
        Axis::Y => size.y,
        Axis::Z => size.z,
    };
    // In a T-pose the arms span a person's height; a zero pose need not stand upright.
    let (height, how) = if along >= 0.5 * size.max_element() {
        (along, "tall")
    } else {
        (size.max_element(), "long in its rest pose")
    };
    let fit = UNITS.iter().find(|(_, scale)| PERSON.contains(&(height * scale)));
    match fit {
        Some((name, scale)) => {
            let reason = format!(
                "the figure is {height:.4} units {how}: a person of {:.0} cm in {name}",
                height * scale
            );
            (Conversion { scale: *scale, up, reason }, None)
        }
        None => {
            let reason = format!(
                "the figure is {height:.4} units {how}, no person in any usual unit: centimetres assumed"
            );
            (Conversion { scale: 1.0, up, reason: reason.clone() }, Some(format!("{reason}; give the scale")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_unit_fits_a_person() {
        for pair in UNITS.windows(2) {
            assert!(pair[1].1 / pair[0].1 > PERSON.end() / PERSON.start(), "{pair:?}");
        }
        for (name, scale) in UNITS {
            let (conversion, warning) = estimate(&[Vec3::ZERO, Vec3::new(0.2, 172.0, 0.1) / scale], Axis::Y);
            assert_eq!((conversion.scale, warning), (scale, None), "{name}");
            assert!(conversion.reason.contains(name));
        }
        let (conversion, warning) = estimate(&[Vec3::ZERO, Vec3::Y * 40.0], Axis::Y);
        assert_eq!(conversion.scale, 1.0);
        assert!(warning.is_some_and(|text| text.contains("40")));
    }
}
