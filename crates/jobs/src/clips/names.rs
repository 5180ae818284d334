//! Which names mean the same control: spelled alike but for case and separators, ARKit's shapes in any spelling, halves
//! of a shape that a file or a rig has whole, and bones with their side before or behind (`LeftArm`, `arm_L`).

use std::collections::HashMap;
use understudy_core::arkit::{self, Side};
use understudy_core::{ControlKind, ControlSpecs};
use understudy_io::live_link::ROTATIONS;

/// Without a name space, separators and case.
pub(super) fn simple(name: &str) -> String {
    let own = name.rsplit([':', '|']).next().unwrap_or(name);
    own.chars().filter(|c| !matches!(c, '_' | '.' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// A bone's name without its side, and the side.
pub(super) fn bone(name: &str) -> (String, Option<Side>) {
    let own = name.rsplit([':', '|']).next().unwrap_or(name);
    let is_separator = |c: char| matches!(c, '_' | '.' | '-' | ' ');
    for (word, letter, side) in [("left", "l", Side::Left), ("right", "r", Side::Right)] {
        let lower = own.to_lowercase();
        for stem in [lower.strip_prefix(word), lower.strip_suffix(word)].into_iter().flatten() {
            if !stem.is_empty() {
                return (simple(stem), Some(side));
            }
        }
        // A single letter counts only beside a separator.
        let before = lower.strip_prefix(letter).filter(|stem| stem.starts_with(is_separator));
        let behind = lower.strip_suffix(letter).filter(|stem| stem.ends_with(is_separator));
        if let Some(stem) = before.or(behind) {
            return (simple(stem), Some(side));
        }
    }
    (simple(own), None)
}

/// Whether a column holds a head or eye rotation in radians.
pub(super) fn is_rotation(name: &str) -> bool {
    ROTATIONS.contains(&name)
}

/// For every control the columns whose mean drives it: mostly one or none.
pub(super) fn columns_of(specs: &ControlSpecs, names: &[String]) -> Vec<Vec<usize>> {
    let columns = || names.iter().enumerate().filter(|(_, name)| !is_rotation(name));
    let exact: HashMap<&str, usize> = columns().map(|(column, name)| (name.as_str(), column)).collect();
    let alike: HashMap<String, usize> = columns().map(|(column, name)| (simple(name), column)).collect();
    let shapes: HashMap<&str, usize> =
        columns().filter_map(|(column, name)| Some((arkit::canonical(name)?, column))).collect();
    let mut halves: HashMap<&str, Vec<usize>> = HashMap::new();
    for (column, name) in columns() {
        if let Some((whole, _)) = arkit::half_of(name) {
            halves.entry(whole).or_default().push(column);
        }
    }
    let find = |name: &str| -> Vec<usize> {
        let shape = arkit::canonical(name);
        let one = exact.get(name).or_else(|| alike.get(&simple(name))).copied();
        let one = one.or_else(|| shapes.get(shape?).copied());
        let one = one.or_else(|| shapes.get(arkit::half_of(name)?.0).copied());
        match (one, shape) {
            (Some(column), _) => vec![column],
            (None, Some(shape)) => halves.get(shape).cloned().unwrap_or_default(),
            (None, None) => Vec::new(),
        }
    };
    let of_control = |spec: &understudy_core::ControlSpec| match spec.kind {
        ControlKind::Number => find(&spec.name),
        // Joints have units of their own: only their very names are theirs.
        ControlKind::Joint { .. } => exact.get(spec.name.as_str()).copied().into_iter().collect(),
    };
    specs.iter().map(of_control).collect()
}

/// The number control that an ARKit shape drives.
pub(super) fn control_of(specs: &ControlSpecs, shape: &str) -> Option<usize> {
    specs
        .iter()
        .position(|spec| spec.kind == ControlKind::Number && arkit::canonical(&spec.name) == Some(shape))
}

/// Yaw, pitch and roll of the head or of an eye, as columns of a take.
pub(super) struct Rotation {
    /// The bone's name without a side.
    pub bone: &'static str,
    pub side: Option<Side>,
    /// The columns of yaw, pitch and roll, where they are there.
    angles: [Option<usize>; 3],
}

/// The rotations that a file has, head first.
pub(super) fn rotations(names: &[String]) -> Vec<Rotation> {
    let parts = [("head", None), ("eye", Some(Side::Left)), ("eye", Some(Side::Right))];
    let column = |name: &str| names.iter().position(|other| other == name);
    let part = |((bone, side), names): ((&'static str, Option<Side>), &[&str])| {
        let angles = [column(names[0]), column(names[1]), column(names[2])];
        Rotation { bone, side, angles }
    };
    let found = parts.into_iter().zip(ROTATIONS.chunks_exact(3)).map(part);
    found.filter(|part| part.columns().next().is_some()).collect()
}

impl Rotation {
    /// The columns that there are.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.angles.iter().copied().flatten()
    }

    /// Yaw, pitch and roll of a frame, radians.
    pub fn of(&self, frame: &[f32]) -> [f64; 3] {
        self.angles.map(|column| column.map_or(0.0, |column| frame[column].into()))
    }

    /// The shapes that say the same: where an eye looks.
    pub fn gaze_shapes(&self) -> Vec<String> {
        let side = match self.side {
            None => return Vec::new(),
            Some(Side::Left) => "Left",
            Some(Side::Right) => "Right",
        };
        ["Down", "In", "Out", "Up"].map(|way| format!("eyeLook{way}{side}")).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Channel, ControlSpec};

    #[test]
    fn bones_are_the_same_whatever_says_their_side() {
        let arm = ("arm".to_owned(), Some(Side::Left));
        for name in ["LeftArm", "arm_L", "Arm.L", "arm left", "L_Arm", "rig:arm-l"] {
            assert_eq!(bone(name), arm, "{name}");
        }
        assert_eq!(bone("eye_r"), ("eye".into(), Some(Side::Right)));
        for plain in ["hip", "pelvis", "finger", "Left", "heel"] {
            assert_eq!(bone(plain), (plain.to_lowercase(), None), "{plain}");
        }
    }

    #[test]
    fn controls_find_their_columns() {
        let number = |name: &str| ControlSpec::number(name, 0.0, 1.0, 0.0);
        let specs = ControlSpecs::new(vec![
            number("mouthSmile_L"),
            number("jawOpen"),
            number("browInnerUp_L"),
            number("browInnerUp_R"),
            number("cheekPuff"),
            number("lips_zip"),
            number("nothing"),
            ControlSpec::joint("headYaw", "head", Channel::RotateY, -40.0, 40.0),
        ])
        .expect("valid");
        let names = [
            "MouthSmileLeft",
            "JAWOPEN",
            "browInnerUp",
            "cheekPuff_L",
            "CheekPuffRight",
            "LipsZip",
            "HeadYaw",
        ];
        let names = names.map(str::to_owned);
        let found = columns_of(&specs, &names);
        let want: [&[usize]; 8] = [&[0], &[1], &[2], &[2], &[3, 4], &[5], &[], &[]];
        assert_eq!(found, want.map(<[usize]>::to_vec));
        let own = ["headYaw".to_owned()];
        assert_eq!(columns_of(&specs, &own)[7], [0], "its very name, in degrees");
        let [head] = &rotations(&names)[..] else { panic!("the head alone") };
        assert_eq!((head.bone, head.of(&[0., 0., 0., 0., 0., 0., 0.5])), ("head", [0.5, 0.0, 0.0]));
    }
}
