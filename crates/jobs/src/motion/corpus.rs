//! The clips that motion is learned from: which belong to which label, at which rate, with which controls.

use super::turns::Turns;
use crate::{Event, JobError, Watch, clips};
use serde::{Deserialize, Serialize};
use understudy_core::{Clip, ControlKind, ControlSpec, Controls};
use understudy_rigs::Rig;

/// A clip, or frames of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClipPart {
    /// A clip of the rig, or a file.
    pub clip: String,
    /// Frames at the rate of learning, the last one included; all when left out.
    pub frames: Option<(usize, usize)>,
}

/// A label with its clips: `roar=a,b[10..80]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelSpec {
    /// Such as `happy`.
    pub label: String,
    /// At least one.
    pub clips: Vec<ClipPart>,
}

impl std::str::FromStr for LabelSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (label, list) = text.split_once('=').ok_or("LABEL=CLIP,CLIP is wanted")?;
        let part = |text: &str| -> Result<ClipPart, String> {
            let Some((clip, range)) = text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) else {
                return Ok(ClipPart { clip: text.to_owned(), frames: None });
            };
            let numbers = range.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
            let (from, to): (usize, usize) =
                numbers.ok_or_else(|| format!("'{text}': CLIP[FIRST..LAST] in frames is wanted"))?;
            if from >= to {
                return Err(format!("'{text}': the last frame comes before the first"));
            }
            Ok(ClipPart { clip: clip.to_owned(), frames: Some((from, to)) })
        };
        let clips =
            list.split(',').filter(|clip| !clip.is_empty()).map(part).collect::<Result<Vec<_>, _>>()?;
        if label.trim().is_empty() || clips.is_empty() {
            return Err("a label and at least one clip are wanted".into());
        }
        Ok(Self { label: label.trim().to_owned(), clips })
    }
}

/// Frames of one label.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelFrames {
    /// Such as `happy`.
    pub label: String,
    /// Names of the clips and how many frames each has, in order.
    pub clips: Vec<(String, usize)>,
    /// All frames, one clip after another, every control of the rig.
    pub frames: Vec<Vec<f32>>,
}

/// The frames of labels; where none are named, those that the rig's own clips say. Of its own clips those that do not move
/// are left out with a note; of those that somebody names, a clip of one frame is an error.
pub fn corpus(
    rig: &dyn Rig,
    labels: &[LabelSpec],
    rate: f32,
    watch: &dyn Watch,
) -> Result<Vec<LabelFrames>, JobError> {
    let unnamed = labels.is_empty();
    let specs = if unnamed { own_labels(rig) } else { labels.to_vec() };
    let nothing = |what: &str| {
        let problem = format!("has no clips{what}; name some: --label happy=smile.csv,grin.csv");
        JobError::unusable(rig.name(), problem)
    };
    if specs.is_empty() {
        return Err(nothing(""));
    }
    let mut still = Vec::new();
    let mut found = Vec::new();
    for spec in &specs {
        let label = read(rig, spec, rate, unnamed.then_some(&mut still), watch)?;
        if !label.clips.is_empty() {
            found.push(label);
        }
    }
    if !still.is_empty() {
        let message = format!("left out, since nothing moves in them: {}", still.join(", "));
        watch.event(Event::Note { message: &message });
    }
    if found.is_empty() {
        return Err(nothing(" in which anything moves"));
    }
    if unnamed && found.len() > MANY {
        let message =
            format!("{} labels are learned; --label walk=Walking_A names those wanted", found.len());
        watch.event(Event::Note { message: &message });
    }
    let frames = found.iter_mut().flat_map(|label| {
        let LabelFrames { clips, frames, .. } = label;
        let mut rest = frames.as_mut_slice();
        clips.iter().map(move |(_, length)| {
            let (own, others) = std::mem::take(&mut rest).split_at_mut(*length);
            rest = others;
            own
        })
    });
    Turns::new(rig.specs()).agree(frames);
    Ok(found)
}

/// More labels than this are hardly what somebody wants who names none: every pair of them is searched for bridges.
const MANY: usize = 24;

/// The folder of clips that are made for motion.
const FOLDER: &str = "motion/";

/// The labels that a rig's own clips say: `motion/happy_2` is `happy`. Where no clip is made for motion, all of them are
/// learned, `smile_1` and `smile_2` as `smile`, `Walking_A` and `Walking_B` as `Walking`, but for those kept for tests.
pub(crate) fn own_labels(rig: &dyn Rig) -> Vec<LabelSpec> {
    let mut labels: Vec<LabelSpec> = Vec::new();
    let made = rig.clips().iter().any(|clip| clip.name.starts_with(FOLDER));
    let wanted = |clip: &&Clip| if made { clip.name.starts_with(FOLDER) } else { clip.is_for_training() };
    for clip in rig.clips().iter().filter(wanted) {
        let stem = stem_of(&clip.name);
        let stem = stem.strip_prefix(FOLDER).unwrap_or(stem);
        let part = ClipPart { clip: clip.name.clone(), frames: None };
        match labels.iter_mut().find(|known| known.label == stem) {
            Some(known) => known.clips.push(part),
            None => labels.push(LabelSpec { label: stem.to_owned(), clips: vec![part] }),
        }
    }
    labels
}

/// A name without its number or single letter: what several clips of one kind share.
fn stem_of(name: &str) -> &str {
    let Some((stem, last)) = name.rsplit_once('_') else { return name };
    let letter = last.len() == 1 && last.chars().all(|c| c.is_ascii_uppercase());
    let number = !last.is_empty() && last.chars().all(|c| c.is_ascii_digit());
    if (letter || number) && !stem.is_empty() { stem } else { name }
}

/// A control that varies by less than this share of its range does not move.
const STILL: f32 = 1e-6;

fn is_still(rig: &dyn Rig, frames: &[Controls]) -> bool {
    let same = |(spec, (a, b)): (&ControlSpec, (&f32, &f32))| (a - b).abs() <= STILL * (spec.high - spec.low);
    frames.iter().all(|frame| rig.specs().iter().zip(frame.0.iter().zip(&frames[0].0)).all(same))
}

/// Reads the clips of a label at a rate. Angles are followed past ±180°, so that a turn is no jump. Clips that do not move
/// are skipped where there is a list that takes their names.
fn read(
    rig: &dyn Rig,
    spec: &LabelSpec,
    rate: f32,
    mut still: Option<&mut Vec<String>>,
    watch: &dyn Watch,
) -> Result<LabelFrames, JobError> {
    let turns = Turns::new(rig.specs());
    let mut out = LabelFrames { label: spec.label.clone(), clips: Vec::new(), frames: Vec::new() };
    for part in &spec.clips {
        let clip = clips::resolve(rig, &part.clip, watch)?;
        let sampled =
            clip.sample(rig.specs(), rate).map_err(|error| JobError::unusable(rig.name(), error))?;
        let mut frames = sampled.frames;
        if let Some((from, to)) = part.frames {
            if to >= frames.len() {
                let problem = format!("frames {from} to {to} are asked for, it has {}", frames.len());
                return Err(JobError::setting(format!("clip '{}'", part.clip), problem));
            }
            frames = frames.drain(from..=to).collect();
        }
        if let Some(still) = still.as_mut().filter(|_| is_still(rig, &frames)) {
            still.push(clip.name);
            continue;
        }
        if frames.len() < 2 {
            let problem = format!("{} frame is too little to learn motion from", frames.len());
            return Err(JobError::setting(format!("clip '{}'", part.clip), problem));
        }
        let mut frames: Vec<Vec<f32>> = frames.into_iter().map(|controls| controls.0).collect();
        turns.follow(&mut frames);
        let base = clip.name.strip_prefix(FOLDER).unwrap_or(&clip.name);
        // A script's words end at spaces, commas, brackets and semicolons.
        let base = base.replace(|c: char| c.is_whitespace() || ",;#@[]%".contains(c), "_");
        let taken = |name: &String| out.clips.iter().any(|(other, _)| other == name);
        let name = (1..)
            .map(|copy| if copy == 1 { base.clone() } else { format!("{base}-{copy}") })
            .find(|name| !taken(name))
            .unwrap_or(base.clone());
        out.clips.push((name, frames.len()));
        out.frames.append(&mut frames);
    }
    Ok(out)
}

/// Whether a control moves the eyes, which look where a game wants them to. Lids, brows and lashes are none.
pub(super) fn moves_eyes(spec: &ControlSpec) -> bool {
    let plain = spec.name.to_lowercase();
    let turns = matches!(&spec.kind, ControlKind::Joint { bone, .. } if is_eye(bone));
    turns || plain.starts_with("eyelook") || plain.starts_with("gaze")
}

/// Whether a bone is an eye: `eye_L`, `LeftEye`, `mixamorig:RightEye`, `DEF-eye.L`.
fn is_eye(bone: &str) -> bool {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in bone.chars() {
        let begins = !before.is_alphabetic() || (c.is_uppercase() && before.is_lowercase());
        match words.last_mut().filter(|_| !begins) {
            Some(word) if c.is_alphabetic() => word.extend(c.to_lowercase()),
            _ if c.is_alphabetic() => words.push(c.to_lowercase().collect()),
            _ => {}
        }
        before = c;
    }
    let eye = |word: &String| ["eye", "eyes", "eyeball"].iter().any(|end| word.ends_with(end));
    let beside = ["brow", "lid", "lash", "socket", "bag"];
    words.iter().any(eye) && !words.iter().any(|word| beside.iter().any(|part| word.contains(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_they_are_typed() {
        let spec: LabelSpec = "roar=a,b[10..80]".parse().expect("a label");
        assert_eq!(spec.clips[1], ClipPart { clip: "b".into(), frames: Some((10, 80)) });
        for bad in ["roar", "=a", "roar=", "roar=a[3..1]", "roar=a[x..9]"] {
            assert!(bad.parse::<LabelSpec>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_rigs_clips_carry_their_labels() {
        let rig = crate::rigs::open("mira", &crate::Silent).expect("embedded").rig;
        let labels = own_labels(rig.as_ref());
        assert!(labels.iter().any(|spec| spec.label == "roar" && !spec.clips.is_empty()));
        assert!(labels.iter().all(|spec| spec.label != "test"), "what is kept for tests is not learned");
        assert!(moves_eyes(&ControlSpec::number("eyeLookUp_L", 0.0, 1.0, 0.0)));
        assert!(!moves_eyes(&ControlSpec::number("eyeBlink_L", 0.0, 1.0, 0.0)));
    }

    #[test]
    fn names_without_their_number_or_letter_are_labels() {
        for (name, stem) in [
            ("smile_1", "smile"),
            ("Walking_A", "Walking"),
            ("motion/roar_12", "motion/roar"),
            ("T-Pose", "T-Pose"),
            ("Jump_Full_Long", "Jump_Full_Long"),
            ("_A", "_A"),
            ("take1", "take1"),
            ("turn_", "turn_"),
        ] {
            assert_eq!(stem_of(name), stem);
        }
    }

    #[test]
    fn eyes_are_told_from_what_is_about_them() {
        for bone in
            ["eye_L", "LeftEye", "mixamorig:RightEye", "DEF-eye.L", "eyeball.r", "lefteye", "Eye01", "eyes"]
        {
            assert!(is_eye(bone), "{bone}");
        }
        for bone in ["eyebrow.L", "eyelid_R", "LeftEyeLid", "EyeBrow_L", "DEF-eye_lash", "head", ""] {
            assert!(!is_eye(bone), "{bone}");
        }
    }
}
