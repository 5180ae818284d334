//! Which bones are a character's limbs: by names that rigs usually have, or as a file spells them.

use super::is_below;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use understudy_core::{Affine3A, Vec3};

/// A limb whose middle joint is nearer to the line between its ends than this share of its upper bone is straight.
const STRAIGHT: f32 = 0.02;

/// The three bones that a handle moves, the last of which it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimbBones {
    /// `hand_L`, `hand_R`, `foot_L` or `foot_R`.
    pub name: String,
    /// Upper arm, forearm, hand; or thigh, calf, foot.
    pub bones: [usize; 3],
}

impl LimbBones {
    /// Where the middle joint points: as it stands in these world transforms, or, of a straight limb, where elbows and knees of a
    /// character go that looks along Z.
    ///
    /// # Panics
    /// When a bone of the limb is not among the transforms.
    pub fn natural_bend(&self, world: &[Affine3A]) -> Vec3 {
        let [start, middle, end] = self.bones.map(|bone| Vec3::from(world[bone].translation));
        let (along, away) = ((end - start).normalize_or_zero(), middle - start);
        let now = away - along * along.dot(away);
        match (now.length() > STRAIGHT * away.length(), self.name.starts_with("hand")) {
            (true, _) => now,
            (false, true) => Vec3::NEG_Z,
            (false, false) => Vec3::Z,
        }
    }
}

/// The five handles, as far as a skeleton has them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Handles {
    /// Hands and feet.
    pub limbs: Vec<LimbBones>,
    /// The bone that carries the body.
    pub torso: Option<usize>,
}

/// Names of bones for a skeleton with names of its own: `hand_L = ["arm", "elbow", "wrist"]`, `torso = "pelvis"`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spelling {
    /// The bone that carries the body.
    #[serde(default)]
    pub torso: Option<String>,
    /// Three bones per limb, from the trunk outwards.
    #[serde(flatten)]
    pub limbs: BTreeMap<String, [String; 3]>,
}

/// Names of the torso's handle and of limbs.
pub(crate) const TORSO: &str = "torso";
const LIMBS: [(&str, [&[&str]; 3]); 2] = [
    (
        "hand",
        [
            &["upperarm", "upperarm01", "uparm", "arm", "shoulder"],
            &["forearm", "lowerarm", "lowerarm01", "lowarm", "elbow"],
            &["hand", "wrist", "palm", "palm1"],
        ],
    ),
    (
        "foot",
        [
            &["thigh", "upperleg", "upperleg01", "upleg", "hip"],
            &["calf", "shin", "lowerleg", "lowerleg01", "lowleg", "leg", "knee"],
            &["foot", "ankle"],
        ],
    ),
];
const TORSOS: [&str; 6] = ["hips", "pelvis", "root", "hip", "body", "torso"];

/// A bone's name without prefixes, separators and side: `mixamorig:LeftForeArm` is `forearm` of the left.
fn plain(name: &str) -> (String, Option<char>) {
    let tail = name.rsplit(':').next().unwrap_or(name);
    let mut text: String = tail.chars().filter(|c| c.is_alphanumeric() || "._- ".contains(*c)).collect();
    text = text.to_lowercase();
    for prefix in ["def-", "org-", "bip01 ", "b_", "jnt_"] {
        text = text.strip_prefix(prefix).map_or(text.clone(), str::to_owned);
    }
    let mut side = None;
    for (mark, of) in [("left", 'L'), ("right", 'R')] {
        if let Some(place) = text.find(mark) {
            text.replace_range(place..place + mark.len(), "");
            side = Some(of);
        }
    }
    let parts: Vec<&str> = text.split(['.', '_', '-', ' ']).filter(|part| !part.is_empty()).collect();
    let is_side = |part: &&str| side.is_none() && (*part == "l" || *part == "r");
    let marked = parts.iter().rposition(is_side);
    if let Some(place) = marked {
        side = Some(if parts[place] == "l" { 'L' } else { 'R' });
    }
    let kept = parts.iter().enumerate().filter(|(place, _)| Some(*place) != marked);
    (kept.map(|(_, part)| *part).collect::<String>(), side)
}

impl Handles {
    /// Finds them by usual names; `bones` are names and parents. A limb whose bones do not hang on each other is none.
    pub fn find<'a>(bones: impl IntoIterator<Item = (&'a str, Option<usize>)>) -> Self {
        let (names, parents): (Vec<_>, Vec<_>) = bones.into_iter().map(|(n, p)| (plain(n), p)).unzip();
        let called =
            |word: &str, side: Option<char>| names.iter().position(|(name, of)| name == word && *of == side);
        let mut limbs = Vec::new();
        for (stem, roles) in LIMBS {
            for side in ['L', 'R'] {
                let role = |words: &[&str]| {
                    words.iter().filter_map(|word| called(word, Some(side))).collect::<Vec<usize>>()
                };
                let [uppers, lowers, ends] = roles.map(role);
                // Names that mean one joint here and the next one there: the first chain that hangs together.
                let chains = ends.iter().flat_map(|end| {
                    let (lowers, uppers) = (&lowers, &uppers);
                    let above = move |lower: &'_ usize| {
                        let lower = *lower;
                        uppers.iter().map(move |upper| [*upper, lower, *end])
                    };
                    lowers.iter().flat_map(above)
                });
                let mut chains = chains.filter(|chain| hangs(&parents, *chain));
                limbs.extend(chains.next().map(|bones| LimbBones { name: format!("{stem}_{side}"), bones }));
            }
        }
        Self { torso: TORSOS.iter().find_map(|word| called(word, None)), limbs }
    }

    /// By the names of a file; what it does not spell is found by usual names. The error says which bone is at fault.
    pub fn spelled(bones: &[(&str, Option<usize>)], spelling: &Spelling) -> Result<Self, String> {
        let mut handles = Self::find(bones.iter().copied());
        let find = |name: &str| {
            bones
                .iter()
                .position(|(bone, _)| *bone == name)
                .ok_or_else(|| format!("there is no bone '{name}'"))
        };
        if let Some(torso) = &spelling.torso {
            handles.torso = Some(find(torso)?);
        }
        let parents: Vec<Option<usize>> = bones.iter().map(|(_, parent)| *parent).collect();
        for (name, [upper, lower, end]) in &spelling.limbs {
            let bones = [find(upper)?, find(lower)?, find(end)?];
            if !hangs(&parents, bones) {
                return Err(format!(
                    "{name}: '{end}' does not hang below '{lower}', and that below '{upper}'"
                ));
            }
            handles.limbs.retain(|limb| limb.name != *name);
            handles.limbs.push(LimbBones { name: name.clone(), bones });
        }
        Ok(handles)
    }

    /// Names of all handles.
    pub fn names(&self) -> Vec<&str> {
        let torso = self.torso.map(|_| TORSO);
        self.limbs.iter().map(|limb| limb.name.as_str()).chain(torso).collect()
    }

    /// The bone that a handle holds.
    pub fn bone(&self, name: &str) -> Option<usize> {
        match name == TORSO {
            true => self.torso,
            false => self.limbs.iter().find(|limb| limb.name == name).map(|limb| limb.bones[2]),
        }
    }
}

fn hangs(parents: &[Option<usize>], [upper, lower, end]: [usize; 3]) -> bool {
    upper != lower && lower != end && is_below(parents, lower, upper) && is_below(parents, end, lower)
}
