//! Which bone of a skeleton is the thigh: the parts of a body, found by the names that the common tools give them. Start
//! at [`Anatomy::find`]; [`BoneNames`] is what a person writes down where no custom fits.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use thiserror::Error;
use understudy_core::Skeleton;

/// Why a skeleton was not understood as a body.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AnatomyError {
    /// A name that no bone has.
    #[error("there is no bone '{name}' (named for {part})")]
    UnknownBone {
        /// The part that it was named for.
        part: String,
        /// The name.
        name: String,
    },
    /// Parts that a body cannot do without.
    #[error("no bone is known as {}: name them in a mapping file", parts.join(", "))]
    Missing {
        /// What is not there.
        parts: Vec<String>,
    },
}

/// Bones of an arm and a leg of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limbs<T> {
    /// Collar bone.
    pub clavicle: T,
    /// From shoulder to elbow.
    pub upper_arm: T,
    /// From elbow to wrist.
    pub forearm: T,
    /// From the wrist on.
    pub hand: T,
    /// From hip to knee.
    pub thigh: T,
    /// From knee to ankle.
    pub shin: T,
    /// From ankle to ball.
    pub foot: T,
    /// From the ball on.
    pub toes: T,
}

impl<T> Limbs<T> {
    /// The parts with their names, from the body outward.
    pub fn named(&self) -> [(&'static str, &T); 8] {
        [
            ("clavicle", &self.clavicle),
            ("upper_arm", &self.upper_arm),
            ("forearm", &self.forearm),
            ("hand", &self.hand),
            ("thigh", &self.thigh),
            ("shin", &self.shin),
            ("foot", &self.foot),
            ("toes", &self.toes),
        ]
    }
}

/// The body in a skeleton: indices of bones by part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anatomy {
    /// The custom of naming that fitted, for messages.
    pub convention: &'static str,
    /// What carries the whole body.
    pub hips: usize,
    /// From the hips up, the chest last.
    pub spine: Vec<usize>,
    /// From the chest up.
    pub neck: Vec<usize>,
    /// The skull.
    pub head: Option<usize>,
    /// Left, then right.
    pub sides: [Limbs<Option<usize>>; 2],
}

/// Bones by name, as a mapping file gives them; what is left out is found by the usual names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BoneNames {
    /// What carries the whole body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hips: Option<String>,
    /// From the hips up, the chest last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spine: Option<Vec<String>>,
    /// From the chest up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neck: Option<Vec<String>>,
    /// The skull.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The character's left.
    pub left: LimbNames,
    /// The character's right.
    pub right: LimbNames,
}

/// Bones of one side by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "the parts of Limbs")]
pub struct LimbNames {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clavicle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper_arm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forearm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hand: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thigh: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foot: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toes: Option<String>,
}

impl BoneNames {
    /// Every part that is named: `spine 2` and `left thigh` with their bones.
    pub fn listed(&self) -> Vec<(String, String)> {
        let mut list = Vec::new();
        let mut one = |part: String, name: &Option<String>| {
            list.extend(name.iter().map(|name| (part.clone(), name.clone())));
        };
        one("hips".into(), &self.hips);
        for (part, chain) in [("spine", &self.spine), ("neck", &self.neck)] {
            for (index, name) in chain.iter().flatten().enumerate() {
                one(format!("{part} {}", index + 1), &Some(name.clone()));
            }
        }
        one("head".into(), &self.head);
        for (side, limbs) in [("left", &self.left), ("right", &self.right)] {
            one(format!("{side} clavicle"), &limbs.clavicle);
            one(format!("{side} upper arm"), &limbs.upper_arm);
            one(format!("{side} forearm"), &limbs.forearm);
            one(format!("{side} hand"), &limbs.hand);
            one(format!("{side} thigh"), &limbs.thigh);
            one(format!("{side} shin"), &limbs.shin);
            one(format!("{side} foot"), &limbs.foot);
            one(format!("{side} toes"), &limbs.toes);
        }
        list
    }
}

type Names = &'static [&'static str];

/// How a tool names the bones of a body. `{S}` stands for `L` or `R`, `{Side}` for `Left` or `Right`; case,
/// separators and name spaces do not count. Where several names are listed for a single bone, the first one there is
/// counts; spine and neck take all that there are.
struct Convention {
    name: &'static str,
    hips: Names,
    spine: Names,
    neck: Names,
    head: Names,
    limbs: Limbs<Names>,
}

const MOTION_BUILDER_LIMBS: Limbs<Names> = Limbs {
    clavicle: &["{Side}Shoulder"],
    upper_arm: &["{Side}Arm"],
    forearm: &["{Side}ForeArm"],
    hand: &["{Side}Hand"],
    thigh: &["{Side}UpLeg"],
    shin: &["{Side}Leg"],
    foot: &["{Side}Foot"],
    toes: &["{Side}ToeBase"],
};

const CONVENTIONS: [Convention; 9] = [
    Convention {
        name: "CMU",
        hips: &["Hips"],
        spine: &["LowerBack", "Spine", "Spine1"],
        neck: &["Neck", "Neck1"],
        head: &["Head"],
        limbs: MOTION_BUILDER_LIMBS,
    },
    Convention {
        name: "Mixamo",
        hips: &["Hips"],
        spine: &["Spine", "Spine1", "Spine2", "Spine3"],
        neck: &["Neck", "Neck1"],
        head: &["Head"],
        limbs: MOTION_BUILDER_LIMBS,
    },
    Convention {
        name: "Rigify",
        hips: &["DEF-spine", "spine"],
        spine: &["DEF-spine.001", "DEF-spine.002", "DEF-spine.003", "spine.001", "spine.002", "spine.003"],
        neck: &["DEF-spine.004", "DEF-spine.005", "spine.004", "spine.005"],
        head: &["DEF-spine.006", "spine.006"],
        limbs: Limbs {
            clavicle: &["DEF-shoulder.{S}", "shoulder.{S}"],
            upper_arm: &["DEF-upper_arm.{S}", "upper_arm.{S}"],
            forearm: &["DEF-forearm.{S}", "forearm.{S}"],
            hand: &["DEF-hand.{S}", "hand.{S}"],
            thigh: &["DEF-thigh.{S}", "thigh.{S}"],
            shin: &["DEF-shin.{S}", "shin.{S}"],
            foot: &["DEF-foot.{S}", "foot.{S}"],
            toes: &["DEF-toe.{S}", "toe.{S}"],
        },
    },
    Convention {
        name: "MakeHuman",
        hips: &["root"],
        spine: &["spine05", "spine04", "spine03", "spine02", "spine01"],
        neck: &["neck01", "neck02", "neck03"],
        head: &["head"],
        limbs: Limbs {
            clavicle: &["clavicle.{S}"],
            upper_arm: &["upperarm01.{S}"],
            forearm: &["lowerarm01.{S}"],
            hand: &["wrist.{S}"],
            thigh: &["upperleg01.{S}"],
            shin: &["lowerleg01.{S}"],
            foot: &["foot.{S}"],
            toes: &["toe1-1.{S}"],
        },
    },
    Convention {
        name: "Rook",
        hips: &["hips"],
        spine: &["spine_1", "spine_2", "spine_3", "chest"],
        neck: &["neck_1", "neck_2"],
        head: &["head"],
        limbs: Limbs {
            clavicle: &["clavicle_{S}"],
            upper_arm: &["upper_arm_{S}"],
            forearm: &["forearm_{S}"],
            hand: &["hand_{S}"],
            thigh: &["thigh_{S}"],
            shin: &["calf_{S}"],
            foot: &["foot_{S}"],
            toes: &["toe_{S}"],
        },
    },
    Convention {
        name: "Unreal",
        hips: &["pelvis"],
        spine: &["spine_01", "spine_02", "spine_03", "spine_04", "spine_05"],
        neck: &["neck_01", "neck_02"],
        head: &["head"],
        limbs: Limbs {
            clavicle: &["clavicle_{S}"],
            upper_arm: &["upperarm_{S}"],
            forearm: &["lowerarm_{S}"],
            hand: &["hand_{S}"],
            thigh: &["thigh_{S}"],
            shin: &["calf_{S}"],
            foot: &["foot_{S}"],
            toes: &["ball_{S}"],
        },
    },
    Convention {
        name: "upper and lower",
        hips: &["hips", "hip", "pelvis"],
        spine: &["spine", "abdomen", "torso", "chest", "upperchest"],
        neck: &["neck"],
        head: &["head"],
        limbs: Limbs {
            clavicle: &["shoulder.{S}", "collar.{S}", "clavicle.{S}"],
            upper_arm: &["upperarm.{S}", "{Side}UpperArm"],
            forearm: &["lowerarm.{S}", "{Side}LowerArm", "forearm.{S}"],
            hand: &["hand.{S}", "{Side}Hand", "wrist.{S}", "palm.{S}"],
            thigh: &["upperleg.{S}", "{Side}UpperLeg", "thigh.{S}"],
            shin: &["lowerleg.{S}", "{Side}LowerLeg", "shin.{S}"],
            foot: &["foot.{S}", "{Side}Foot"],
            toes: &["toes.{S}", "{Side}Toes", "toe.{S}"],
        },
    },
    Convention {
        name: "joints of BVH files",
        hips: &["Hips", "Hip"],
        spine: &["ToSpine", "Abdomen", "Spine", "Chest", "Chest2", "Chest3", "Chest4"],
        neck: &["Neck"],
        head: &["Head"],
        limbs: Limbs {
            clavicle: &["{Side}Collar", "{S}Collar"],
            upper_arm: &["{Side}Shoulder", "{S}Shldr"],
            forearm: &["{Side}Elbow", "{S}ForeArm"],
            hand: &["{Side}Wrist", "{S}Hand"],
            thigh: &["{Side}Hip", "{S}Thigh"],
            shin: &["{Side}Knee", "{S}Shin"],
            foot: &["{Side}Ankle", "{S}Foot"],
            toes: &["{Side}Toe", "{S}Toe"],
        },
    },
    Convention {
        name: "Biped",
        hips: &["Bip01 Pelvis", "Bip001 Pelvis"],
        spine: &[
            "Bip01 Spine",
            "Bip01 Spine1",
            "Bip01 Spine2",
            "Bip001 Spine",
            "Bip001 Spine1",
            "Bip001 Spine2",
        ],
        neck: &["Bip01 Neck", "Bip001 Neck"],
        head: &["Bip01 Head", "Bip001 Head"],
        limbs: Limbs {
            clavicle: &["Bip01 {S} Clavicle", "Bip001 {S} Clavicle"],
            upper_arm: &["Bip01 {S} UpperArm", "Bip001 {S} UpperArm"],
            forearm: &["Bip01 {S} Forearm", "Bip001 {S} Forearm"],
            hand: &["Bip01 {S} Hand", "Bip001 {S} Hand"],
            thigh: &["Bip01 {S} Thigh", "Bip001 {S} Thigh"],
            shin: &["Bip01 {S} Calf", "Bip001 {S} Calf"],
            foot: &["Bip01 {S} Foot", "Bip001 {S} Foot"],
            toes: &["Bip01 {S} Toe0", "Bip001 {S} Toe0"],
        },
    },
];

/// A name without name space, separators and case.
fn plain(name: &str) -> String {
    let own = name.rsplit([':', '|']).next().unwrap_or(name);
    let own: String = own.chars().filter(char::is_ascii_alphanumeric).collect();
    let own = own.to_ascii_lowercase();
    // Some exporters make an underscore of Mixamo's colon.
    match own.strip_prefix("mixamorig") {
        Some(rest) if !rest.is_empty() => rest.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned(),
        _ => own,
    }
}

/// Looks names up; the first bone of a name counts.
struct Index<'a> {
    skeleton: &'a Skeleton,
    plain: HashMap<String, usize>,
}

impl Index<'_> {
    fn find(&self, names: Names, side: Option<usize>) -> Option<usize> {
        self.all(names, side).next()
    }

    fn all<'s>(&'s self, names: Names, side: Option<usize>) -> impl Iterator<Item = usize> + 's {
        let words = side.map(|side| [["L", "Left"], ["R", "Right"]][side]);
        names.iter().filter_map(move |name| {
            let spelled = match words {
                Some([letter, word]) => name.replace("{S}", letter).replace("{Side}", word),
                None => (*name).to_owned(),
            };
            self.plain.get(&plain(&spelled)).copied()
        })
    }

    /// The bone of a very name, as a mapping file gives it.
    fn given(&self, part: &str, name: &str) -> Result<usize, AnatomyError> {
        let unknown = || AnatomyError::UnknownBone { part: part.into(), name: name.into() };
        self.skeleton.find(name).or_else(|| self.plain.get(&plain(name)).copied()).ok_or_else(unknown)
    }
}

impl Anatomy {
    /// The body in a skeleton, by the custom of naming that knows most of its bones, with `names` before that.
    pub fn find(skeleton: &Skeleton, names: &BoneNames) -> Result<Self, AnatomyError> {
        let mut index = Index { skeleton, plain: HashMap::new() };
        for (bone, data) in skeleton.bones().iter().enumerate() {
            index.plain.entry(plain(&data.name)).or_insert(bone);
        }
        let mut best = Draft::default();
        for convention in &CONVENTIONS {
            let draft = Draft::new(convention, &index);
            if draft.known() > best.known() {
                best = draft;
            }
        }
        best.overrule(names, &index)?;
        best.check()
    }

    /// Every bone with the name of its part: `left thigh`, `spine 2`.
    pub fn parts(&self) -> Vec<(String, usize)> {
        let mut parts = vec![("hips".to_owned(), self.hips)];
        for (name, chain) in [("spine", &self.spine), ("neck", &self.neck)] {
            parts.extend(chain.iter().enumerate().map(|(i, bone)| (format!("{name} {}", i + 1), *bone)));
        }
        parts.extend(self.head.map(|bone| ("head".into(), bone)));
        for (side, limbs) in ["left", "right"].into_iter().zip(&self.sides) {
            let there = limbs.named().into_iter().filter_map(|(part, bone)| Some((part, (*bone)?)));
            parts.extend(there.map(|(part, bone)| (format!("{side} {}", part.replace('_', " ")), bone)));
        }
        parts
    }

    /// The names of its bones, as a mapping file would give them.
    pub fn names(&self, skeleton: &Skeleton) -> BoneNames {
        let name = |bone: usize| skeleton.bones()[bone].name.clone();
        let chain = |bones: &[usize]| Some(bones.iter().map(|bone| name(*bone)).collect());
        let limbs = |limbs: &Limbs<Option<usize>>| LimbNames {
            clavicle: limbs.clavicle.map(name),
            upper_arm: limbs.upper_arm.map(name),
            forearm: limbs.forearm.map(name),
            hand: limbs.hand.map(name),
            thigh: limbs.thigh.map(name),
            shin: limbs.shin.map(name),
            foot: limbs.foot.map(name),
            toes: limbs.toes.map(name),
        };
        BoneNames {
            hips: Some(name(self.hips)),
            spine: chain(&self.spine),
            neck: chain(&self.neck),
            head: self.head.map(name),
            left: limbs(&self.sides[0]),
            right: limbs(&self.sides[1]),
        }
    }
}

/// What one custom finds.
#[derive(Default)]
struct Draft {
    convention: &'static str,
    hips: Option<usize>,
    spine: Vec<usize>,
    neck: Vec<usize>,
    head: Option<usize>,
    sides: [Limbs<Option<usize>>; 2],
}

impl Draft {
    fn new(convention: &Convention, index: &Index<'_>) -> Self {
        let limbs = |side: usize| {
            let find = |names| index.find(names, Some(side));
            let limbs = &convention.limbs;
            Limbs {
                clavicle: find(limbs.clavicle),
                upper_arm: find(limbs.upper_arm),
                forearm: find(limbs.forearm),
                hand: find(limbs.hand),
                thigh: find(limbs.thigh),
                shin: find(limbs.shin),
                foot: find(limbs.foot),
                toes: find(limbs.toes),
            }
        };
        // Of bones that exist twice, as deform bone and as control, the first kind is taken.
        let chain = |names: Names| {
            let all: Vec<usize> = index.all(names, None).collect();
            let deform = |bone: &usize| index.skeleton.bones()[*bone].name.contains("DEF-");
            if all.iter().any(deform) { all.into_iter().filter(deform).collect() } else { all }
        };
        Self {
            convention: convention.name,
            hips: index.find(convention.hips, None),
            spine: chain(convention.spine),
            neck: chain(convention.neck),
            head: index.find(convention.head, None),
            sides: [limbs(0), limbs(1)],
        }
    }

    fn known(&self) -> usize {
        let limbs = self.sides.iter().flat_map(|side| side.named()).filter(|(_, bone)| bone.is_some());
        let middle = usize::from(self.hips.is_some()) + usize::from(self.head.is_some());
        middle + limbs.count() + self.spine.len() + self.neck.len()
    }

    fn overrule(&mut self, names: &BoneNames, index: &Index<'_>) -> Result<(), AnatomyError> {
        let one = |place: &mut Option<usize>, part: &str, name: &Option<String>| {
            if let Some(name) = name {
                *place = Some(index.given(part, name)?);
            }
            Ok(())
        };
        let chain = |place: &mut Vec<usize>, part: &str, names: &Option<Vec<String>>| {
            if let Some(names) = names {
                *place = names.iter().map(|name| index.given(part, name)).collect::<Result<_, _>>()?;
            }
            Ok(())
        };
        one(&mut self.hips, "hips", &names.hips)?;
        chain(&mut self.spine, "spine", &names.spine)?;
        chain(&mut self.neck, "neck", &names.neck)?;
        one(&mut self.head, "head", &names.head)?;
        for ((limbs, names), side) in
            self.sides.iter_mut().zip([&names.left, &names.right]).zip(["left", "right"])
        {
            one(&mut limbs.clavicle, &format!("{side}.clavicle"), &names.clavicle)?;
            one(&mut limbs.upper_arm, &format!("{side}.upper_arm"), &names.upper_arm)?;
            one(&mut limbs.forearm, &format!("{side}.forearm"), &names.forearm)?;
            one(&mut limbs.hand, &format!("{side}.hand"), &names.hand)?;
            one(&mut limbs.thigh, &format!("{side}.thigh"), &names.thigh)?;
            one(&mut limbs.shin, &format!("{side}.shin"), &names.shin)?;
            one(&mut limbs.foot, &format!("{side}.foot"), &names.foot)?;
            one(&mut limbs.toes, &format!("{side}.toes"), &names.toes)?;
        }
        Ok(())
    }

    /// A body needs hips and two legs with feet; the rest may be missing.
    fn check(self) -> Result<Anatomy, AnatomyError> {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.hips.is_none().then(|| "hips".into()));
        for (side, limbs) in ["left", "right"].into_iter().zip(&self.sides) {
            let legs =
                limbs.named().into_iter().filter(|(part, _)| matches!(*part, "thigh" | "shin" | "foot"));
            parts.extend(legs.filter(|(_, bone)| bone.is_none()).map(|(part, _)| format!("{side} {part}")));
        }
        match self.hips.filter(|_| parts.is_empty()) {
            None => Err(AnatomyError::Missing { parts }),
            Some(hips) => Ok(Anatomy {
                convention: self.convention,
                hips,
                spine: self.spine,
                neck: self.neck,
                head: self.head,
                sides: self.sides,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Bone, JointTransform};

    fn skeleton(names: &[&str]) -> Skeleton {
        let bone = |(index, name): (usize, &&str)| Bone {
            name: (*name).to_owned(),
            parent: index.checked_sub(1),
            rest: JointTransform::IDENTITY,
        };
        Skeleton::new(names.iter().enumerate().map(bone).collect()).expect("a chain")
    }

    #[test]
    fn each_tools_names_are_its_own() {
        let limbs = |list: &[&str]| -> Vec<String> {
            let sides = [("L", "Left"), ("R", "Right")];
            let spell = |(s, side): (&str, &str)| {
                list.iter().map(|n| n.replace("{S}", s).replace("{Side}", side)).collect::<Vec<_>>()
            };
            sides.into_iter().flat_map(spell).collect()
        };
        let cases: [(&str, Vec<&str>, &[&str], usize); 4] = [
            (
                "Mixamo",
                vec![
                    "mixamorig:Hips",
                    "mixamorig:Spine",
                    "mixamorig:Spine1",
                    "mixamorig:Spine2",
                    "mixamorig:Neck",
                ],
                &["mixamorig:{Side}UpLeg", "mixamorig:{Side}Leg", "mixamorig:{Side}Foot"],
                3,
            ),
            (
                "Rigify",
                vec!["spine", "DEF-spine", "DEF-spine.001", "spine.001", "DEF-spine.002"],
                &["DEF-thigh.{S}", "DEF-thigh.{S}.001", "DEF-shin.{S}", "thigh.{S}", "DEF-foot.{S}"],
                2,
            ),
            (
                "upper and lower",
                vec!["hips", "spine", "chest"],
                &["upperleg.{S}", "lowerleg.{S}", "foot.{S}"],
                2,
            ),
            ("Unreal", vec!["pelvis", "spine_01", "spine_02"], &["thigh_{S}", "calf_{S}", "foot_{S}"], 2),
        ];
        for (convention, middle, sides, spine) in cases {
            let sides = limbs(sides);
            let all: Vec<&str> = middle.into_iter().chain(sides.iter().map(String::as_str)).collect();
            let skeleton = skeleton(&all);
            let found = Anatomy::find(&skeleton, &BoneNames::default()).expect(convention);
            assert_eq!((found.convention, found.spine.len()), (convention, spine));
            let name = |bone: Option<usize>| skeleton.bones()[bone.expect("a leg")].name.as_str();
            let thigh = name(found.sides[1].thigh);
            assert!(thigh.contains('R') && !thigh.ends_with(".001"), "{thigh}");
            if convention == "Rigify" {
                assert_eq!((name(Some(found.hips)), thigh), ("DEF-spine", "DEF-thigh.R"));
            }
            let names = found.names(&skeleton);
            assert_eq!(Anatomy::find(&skeleton, &names).expect("its own names"), found);
        }
    }

    #[test]
    fn a_body_without_known_names_is_described_in_a_file() {
        let all = ["belly", "ul", "ll", "fl", "ur", "lr", "fr"];
        let skeleton = skeleton(&all);
        let Err(AnatomyError::Missing { parts }) = Anatomy::find(&skeleton, &BoneNames::default()) else {
            panic!("nobody knows these names")
        };
        assert_eq!(parts.len(), 7);
        let leg = |names: [&str; 3]| {
            let [thigh, shin, foot] = names.map(|name| Some(name.to_owned()));
            LimbNames { thigh, shin, foot, ..LimbNames::default() }
        };
        let mut names = BoneNames {
            hips: Some("belly".into()),
            left: leg(["ul", "ll", "fl"]),
            right: leg(["ur", "lr", "fr"]),
            ..BoneNames::default()
        };
        let found = Anatomy::find(&skeleton, &names).expect("all are named");
        assert_eq!((found.hips, found.sides[1].foot), (0, Some(6)));
        names.right.toes = Some("tr".into());
        let error = Anatomy::find(&skeleton, &names).expect_err("no such bone").to_string();
        assert_eq!(error, "there is no bone 'tr' (named for right.toes)");
    }
}
