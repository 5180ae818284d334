//! Expressions that an artist would pose, by the names of face shapes, and the thousands that are made of them: the upper half
//! of one with the lower half of another, mirrored or not, every weight moved by up to 0.15 (section 6.5).

use understudy_core::Random;
use understudy_core::arkit::{canonical, half_of};

/// A pose as weights of canonical shapes; a name without a side sets both.
type Named = &'static [(&'static str, f32)];

const POSES: [Named; 30] = [
    &[("mouthSmile", 0.8), ("cheekSquint", 0.5), ("eyeSquint", 0.3)],
    &[
        ("mouthSmile", 1.0),
        ("jawOpen", 0.25),
        ("cheekSquint", 0.8),
        ("mouthUpperUp", 0.35),
        ("eyeSquint", 0.5),
    ],
    &[("mouthSmileLeft", 0.8), ("mouthDimpleLeft", 0.4), ("browOuterUpLeft", 0.5)],
    &[("mouthFrown", 0.8), ("browInnerUp", 0.7), ("mouthShrugLower", 0.4), ("eyeSquint", 0.2)],
    &[("browDown", 0.9), ("noseSneer", 0.7), ("mouthPress", 0.5), ("eyeSquint", 0.5)],
    &[("browDown", 0.8), ("noseSneer", 0.9), ("mouthUpperUp", 0.8), ("jawOpen", 0.35), ("mouthStretch", 0.4)],
    &[("browInnerUp", 0.9), ("browOuterUp", 0.9), ("eyeWide", 0.9), ("jawOpen", 0.6), ("mouthFunnel", 0.3)],
    &[("browInnerUp", 0.8), ("eyeWide", 0.6), ("mouthStretch", 0.8), ("jawOpen", 0.2)],
    &[
        ("noseSneer", 0.8),
        ("mouthUpperUpLeft", 0.6),
        ("mouthUpperUpRight", 0.3),
        ("browDown", 0.5),
        ("eyeSquint", 0.6),
    ],
    &[("mouthPucker", 0.9), ("browOuterUp", 0.3)],
    &[("mouthFunnel", 0.8), ("jawOpen", 0.25)],
    &[("mouthPucker", 0.6), ("mouthLeft", 0.6), ("browDownLeft", 0.5)],
    &[("jawOpen", 0.7)],
    &[("jawOpen", 0.35), ("mouthLowerDown", 0.4), ("mouthUpperUp", 0.25)],
    &[("jawOpen", 0.2), ("mouthStretch", 0.5), ("mouthDimple", 0.3)],
    &[("mouthRollLower", 0.7), ("mouthUpperUp", 0.2), ("jawOpen", 0.08)],
    &[("mouthRollLower", 0.6), ("mouthRollUpper", 0.6), ("mouthPress", 0.4)],
    &[("jawOpen", 0.15), ("mouthClose", 0.1), ("mouthPucker", 0.3)],
    &[("cheekPuff", 0.9), ("mouthPress", 0.4)],
    &[("jawLeft", 0.7), ("jawOpen", 0.15)],
    &[("jawForward", 0.7), ("mouthShrugUpper", 0.3)],
    &[("mouthShrugUpper", 0.6), ("mouthShrugLower", 0.8), ("browInnerUp", 0.4), ("browOuterUp", 0.4)],
    &[("mouthDimple", 0.8), ("mouthPress", 0.3), ("browOuterUpRight", 0.8)],
    &[("eyeBlink", 1.0)],
    &[("eyeBlink", 0.5), ("mouthSmile", 0.3)],
    &[("eyeBlinkLeft", 1.0), ("cheekSquintLeft", 0.6), ("mouthSmileLeft", 0.5)],
    &[("eyeSquint", 0.9), ("cheekSquint", 0.8), ("browDown", 0.4)],
    &[("browOuterUpLeft", 0.9), ("browDownRight", 0.7), ("mouthRight", 0.4)],
    &[("mouthLowerDown", 0.8), ("mouthStretch", 0.5), ("jawOpen", 0.1)],
    &[
        ("jawOpen", 0.9),
        ("mouthUpperUp", 0.5),
        ("mouthLowerDown", 0.4),
        ("browDown", 0.5),
        ("eyeSquint", 0.7),
    ],
];

/// Whether a shape belongs to the upper half of a face.
pub(super) fn is_upper(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["brow", "eye", "cheeksquint", "cheekraiser", "nose", "pupil"].iter().any(|start| name.starts_with(start))
}

/// The expressions of one rig, and what it takes to mix them.
#[derive(Debug, Clone, PartialEq)]
pub struct PoseLibrary {
    /// Weights, one row a pose.
    pub poses: Vec<Vec<f32>>,
    /// For every shape its mirror image; itself where it has none.
    pub mirror: Vec<usize>,
    /// Which shapes are of the upper half.
    pub upper: Vec<bool>,
}

impl PoseLibrary {
    /// For a rig with these shapes. One that does not know the names of faces gets poses of six shapes drawn at random.
    pub fn new(names: &[String]) -> Self {
        let known = |name: &String| canonical(name).or_else(|| half_of(name).map(|(whole, _)| whole));
        let canonical_names: Vec<Option<&str>> = names.iter().map(known).collect();
        let weights = |pose: &Named| -> Vec<f32> {
            let one = |name: &Option<&str>| {
                let Some(name) = name else { return 0.0 };
                let stem = name.strip_suffix("Left").or_else(|| name.strip_suffix("Right")).unwrap_or(name);
                pose.iter().find(|(of, _)| of == name || *of == stem).map_or(0.0, |(_, weight)| *weight)
            };
            canonical_names.iter().map(one).collect()
        };
        let is_played = |pose: &Vec<f32>| pose.iter().any(|weight| *weight > 0.0);
        let mut poses: Vec<Vec<f32>> = POSES.iter().map(weights).filter(is_played).collect();
        if poses.len() < POSES.len() / 2 {
            poses = (0..POSES.len() as u64).map(|index| random_pose(names.len(), index)).collect();
        }
        let mirror = names.iter().enumerate().map(|(index, name)| {
            let mirrored = mirrored_name(name);
            mirrored.and_then(|mirrored| names.iter().position(|other| *other == mirrored)).unwrap_or(index)
        });
        Self { poses, mirror: mirror.collect(), upper: names.iter().map(|name| is_upper(name)).collect() }
    }
}

fn random_pose(count: usize, index: u64) -> Vec<f32> {
    let mut random = Random::stream(0x706f_7365, index);
    let mut pose = vec![0.0; count];
    for _ in 0..count.min(6) {
        pose[random.below(count)] = random.uniform(0.2, 1.0);
    }
    pose
}

fn mirrored_name(name: &str) -> Option<String> {
    const SIDES: [(&str, &str); 4] = [("_L", "_R"), ("Left", "Right"), ("_l", "_r"), ("left", "right")];
    for (left, right) in SIDES {
        if let Some(stem) = name.strip_suffix(left) {
            return Some(format!("{stem}{right}"));
        }
        if let Some(stem) = name.strip_suffix(right) {
            return Some(format!("{stem}{left}"));
        }
    }
    None
}

/// A new pose: the upper half of one expression with the lower half of another, each mirrored with probability ½, and
/// U(−0.15, 0.15) added to every weight that is not zero, cut to 0 to 1.
pub fn augmented(library: &PoseLibrary, random: &mut Random) -> Vec<f32> {
    let count = library.mirror.len();
    if library.poses.is_empty() {
        return vec![0.0; count];
    }
    let mut drawn = || {
        let pose = &library.poses[random.below(library.poses.len())];
        match random.unit() < 0.5 {
            true => library.mirror.iter().map(|shape| pose[*shape]).collect(),
            false => pose.clone(),
        }
    };
    let (upper, lower): (Vec<f32>, Vec<f32>) = (drawn(), drawn());
    let mut pose: Vec<f32> = (0..count).map(|k| if library.upper[k] { upper[k] } else { lower[k] }).collect();
    for weight in pose.iter_mut().filter(|weight| **weight != 0.0) {
        *weight = (*weight + random.uniform(-0.15, 0.15)).clamp(0.0, 1.0);
    }
    pose
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::arkit::SHAPES;

    #[test]
    fn poses_mix_mirror_and_stay_in_range() {
        let names: Vec<String> = SHAPES.iter().map(|name| (*name).to_owned()).collect();
        let library = PoseLibrary::new(&names);
        assert_eq!(library.poses.len(), POSES.len());
        let find = |name: &str| names.iter().position(|other| other == name).expect("a shape");
        assert_eq!(library.mirror[find("mouthSmileLeft")], find("mouthSmileRight"));
        assert_eq!(library.mirror[find("jawOpen")], find("jawOpen"));
        let mut random = Random::new(5);
        let poses: Vec<Vec<f32>> = (0..2000).map(|_| augmented(&library, &mut random)).collect();
        assert!(poses.iter().flatten().all(|weight| (0.0..=1.0).contains(weight)));
        // The wink is the left eye's: mirrored half of the time.
        let wink = |side: &str| poses.iter().filter(|pose| pose[find(side)] > 0.8).count();
        let (left, right) = (wink("eyeBlinkLeft"), wink("eyeBlinkRight"));
        assert!(left > 60 && right > 60 && left.abs_diff(right) < 40, "{left} {right}");
        // Upper and lower halves are drawn apart: most smiles come without the smile's own eyes.
        let smiles = poses.iter().filter(|pose| pose[find("mouthSmileLeft")] > 0.6);
        assert!(smiles.clone().any(|pose| pose[find("browDownLeft")] > 0.5));
        assert_eq!(random_pose(0, 3), Vec::<f32>::new());
        assert_eq!(PoseLibrary::new(&["a".into(), "b".into()]).poses.len(), POSES.len());
    }
}
