//! The 52 face shapes that phones and capture tools speak (ARKit), in one place: their names in the usual
//! order, and the ways in which files spell them.

/// Canonical names, in the order of Live Link Face: left eye, right eye, jaw and mouth, brows, cheeks,
/// nose, tongue. "Left" is the character's left.
pub const SHAPES: [&str; 52] = [
    "eyeBlinkLeft",
    "eyeLookDownLeft",
    "eyeLookInLeft",
    "eyeLookOutLeft",
    "eyeLookUpLeft",
    "eyeSquintLeft",
    "eyeWideLeft",
    "eyeBlinkRight",
    "eyeLookDownRight",
    "eyeLookInRight",
    "eyeLookOutRight",
    "eyeLookUpRight",
    "eyeSquintRight",
    "eyeWideRight",
    "jawForward",
    "jawRight",
    "jawLeft",
    "jawOpen",
    "mouthClose",
    "mouthFunnel",
    "mouthPucker",
    "mouthRight",
    "mouthLeft",
    "mouthSmileLeft",
    "mouthSmileRight",
    "mouthFrownLeft",
    "mouthFrownRight",
    "mouthDimpleLeft",
    "mouthDimpleRight",
    "mouthStretchLeft",
    "mouthStretchRight",
    "mouthRollLower",
    "mouthRollUpper",
    "mouthShrugLower",
    "mouthShrugUpper",
    "mouthPressLeft",
    "mouthPressRight",
    "mouthLowerDownLeft",
    "mouthLowerDownRight",
    "mouthUpperUpLeft",
    "mouthUpperUpRight",
    "browDownLeft",
    "browDownRight",
    "browInnerUp",
    "browOuterUpLeft",
    "browOuterUpRight",
    "cheekPuff",
    "cheekSquintLeft",
    "cheekSquintRight",
    "noseSneerLeft",
    "noseSneerRight",
    "tongueOut",
];

/// The character's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// +X where the character faces +Z.
    Left,
    /// −X.
    Right,
}

/// The canonical name of a shape however it is spelled: `MouthSmileLeft`, `mouthSmile_L`,
/// `mouth_smile_left`, `mouthSmile.L`. `None` for a name that is no ARKit shape.
pub fn canonical(name: &str) -> Option<&'static str> {
    find(&simplify(name)).or_else(|| {
        let (stem, side) = split_side(name)?;
        let word = match side {
            Side::Left => "left",
            Side::Right => "right",
        };
        find(&(simplify(stem) + word))
    })
}

/// Half of a shape that ARKit has whole, as some rigs split it: `browInnerUp_L`, `cheekPuffRight`.
pub fn half_of(name: &str) -> Option<(&'static str, Side)> {
    if canonical(name).is_some() {
        return None;
    }
    let (stem, side) = split_side(name)?;
    Some((find(&simplify(stem))?, side))
}

/// How Live Link Face writes a canonical name: with a capital.
pub fn live_link_name(canonical: &str) -> String {
    let mut letters = canonical.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn find(simple: &str) -> Option<&'static str> {
    SHAPES.into_iter().find(|shape| shape.eq_ignore_ascii_case(simple))
}

fn simplify(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '.' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

fn split_side(name: &str) -> Option<(&str, Side)> {
    const ENDINGS: [(&str, Side); 4] =
        [("left", Side::Left), ("right", Side::Right), ("l", Side::Left), ("r", Side::Right)];
    for (ending, side) in ENDINGS {
        let Some(start) = name.len().checked_sub(ending.len()).filter(|start| name.is_char_boundary(*start))
        else {
            continue;
        };
        let (stem, last) = name.split_at(start);
        // A single letter counts only behind a separator: 'mouthFunnel' is not the left 'mouthFunne'.
        let separated = ending.len() > 1 || stem.ends_with(['_', '.', '-', ' ']);
        if last.eq_ignore_ascii_case(ending) && separated {
            return Some((stem, side));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_finds_its_shape() {
        for shape in SHAPES {
            assert_eq!(canonical(shape), Some(shape));
            assert_eq!(canonical(&live_link_name(shape)), Some(shape));
            for (word, letter) in [("Left", "_L"), ("Right", "_R")] {
                if let Some(stem) = shape.strip_suffix(word) {
                    assert_eq!(canonical(&format!("{stem}{letter}")), Some(shape));
                    assert_eq!(canonical(&format!("{stem}_{word}")), Some(shape));
                }
            }
        }
        assert_eq!(canonical("mouth_smile.r"), Some("mouthSmileRight"));
        for other in ["", "l", "_R", "smile", "cheekPuff_L", "ärger_L", "ä"] {
            assert_eq!(canonical(other), None, "{other}");
        }
    }

    #[test]
    fn halves_name_their_whole() {
        assert_eq!(half_of("browInnerUp_L"), Some(("browInnerUp", Side::Left)));
        assert_eq!(half_of("CheekPuffRight"), Some(("cheekPuff", Side::Right)));
        assert_eq!(half_of("mouthSmile_L"), None);
        assert_eq!(half_of("cheekRaiser_L"), None);
    }
}
