//! The clips that motion is learned from: which belong to which label, at which rate, with which controls.

use crate::{JobError, Watch, clips};
use serde::{Deserialize, Serialize};
use understudy_core::{Channel, Clip, ControlKind, ControlSpec, Controls};
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

/// The frames of labels; where none are named, those that the rig's own clips say.
pub fn corpus(
    rig: &dyn Rig,
    labels: &[LabelSpec],
    rate: f32,
    watch: &dyn Watch,
) -> Result<Vec<LabelFrames>, JobError> {
    let own = if labels.is_empty() { own_labels(rig) } else { labels.to_vec() };
    if own.is_empty() {
        let problem = "has no clips; name some: --label happy=smile.csv,grin.csv";
        return Err(JobError::unusable(rig.name(), problem));
    }
    own.iter().map(|spec| read(rig, spec, rate, watch)).collect()
}

/// The folder of clips that are made for motion.
const FOLDER: &str = "motion/";

/// The labels that a rig's own clips say: `motion/happy_2` is `happy`. Where no clip is made for motion, all of them are
/// learned, `smile_1` and `smile_2` as `smile`, but for those kept for tests.
fn own_labels(rig: &dyn Rig) -> Vec<LabelSpec> {
    let mut labels: Vec<LabelSpec> = Vec::new();
    let made = rig.clips().iter().any(|clip| clip.name.starts_with(FOLDER));
    let wanted = |clip: &&Clip| if made { clip.name.starts_with(FOLDER) } else { clip.is_for_training() };
    for clip in rig.clips().iter().filter(wanted) {
        let stem = clip.name.trim_end_matches(|c: char| c.is_ascii_digit());
        let stem = stem.strip_suffix('_').filter(|stem| !stem.is_empty()).unwrap_or(&clip.name);
        let stem = stem.strip_prefix(FOLDER).unwrap_or(stem);
        let part = ClipPart { clip: clip.name.clone(), frames: None };
        match labels.iter_mut().find(|known| known.label == stem) {
            Some(known) => known.clips.push(part),
            None => labels.push(LabelSpec { label: stem.to_owned(), clips: vec![part] }),
        }
    }
    labels
}

/// Reads the clips of a label at a rate. Angles are followed past ±180°, so that a turn is no jump.
fn read(rig: &dyn Rig, spec: &LabelSpec, rate: f32, watch: &dyn Watch) -> Result<LabelFrames, JobError> {
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
        if frames.len() < 2 {
            let problem = format!("{} frame is too little to learn motion from", frames.len());
            return Err(JobError::setting(format!("clip '{}'", part.clip), problem));
        }
        follow_angles(rig, &mut frames);
        let base = clip.name.strip_prefix(FOLDER).unwrap_or(&clip.name);
        // A script's words end at spaces, commas, brackets and semicolons.
        let base = base.replace(|c: char| c.is_whitespace() || ",;#@[]%".contains(c), "_");
        let taken = |name: &String| out.clips.iter().any(|(other, _)| other == name);
        let name = (1..)
            .map(|copy| if copy == 1 { base.clone() } else { format!("{base}-{copy}") })
            .find(|name| !taken(name))
            .unwrap_or(base.clone());
        out.clips.push((name, frames.len()));
        out.frames.extend(frames.into_iter().map(|controls| controls.0));
    }
    Ok(out)
}

fn follow_angles(rig: &dyn Rig, frames: &mut [Controls]) {
    for (control, spec) in rig.specs().iter().enumerate() {
        let turns = matches!(
            &spec.kind,
            ControlKind::Joint { channel: Channel::RotateX | Channel::RotateY | Channel::RotateZ, .. }
        );
        for frame in 1..if turns { frames.len() } else { 0 } {
            let before = frames[frame - 1].0[control];
            let value = &mut frames[frame].0[control];
            *value += 360.0 * ((before - *value) / 360.0).round();
        }
    }
}

/// Whether a control moves the eyes, which look where a game wants them to.
pub(super) fn moves_eyes(spec: &ControlSpec) -> bool {
    let plain = spec.name.to_lowercase();
    let bone = match &spec.kind {
        ControlKind::Joint { bone, .. } => bone.to_lowercase(),
        ControlKind::Number => String::new(),
    };
    plain.starts_with("eyelook") || plain.starts_with("gaze") || bone.starts_with("eye")
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
}
