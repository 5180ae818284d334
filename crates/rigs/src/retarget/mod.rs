//! Motion of one body on another: a captured walk played by a rig with other bones, other proportions and limits of its
//! own. Start at [`retarget`]; what it solves per frame is in `goal`, how in `fit`, when a foot stands in
//! `contacts`.
//!
//! Both bodies are brought into one posture first (a T-pose of the file, or its rest pose). From there the trunk, the
//! head, hands and feet turn as the file's do; upper arms, forearms, thighs and shins point where the file's point;
//! the hips move along the file's path, scaled by the length of the legs; and a foot or hand that stands stays where
//! it stands. The controls of the rig are the unknowns, each within its limits.

mod contacts;
mod fit;
mod goal;
mod source;

use crate::anatomy::{Anatomy, AnatomyError, BoneNames};
use crate::{Rig, RigError};
pub use contacts::{Contact, slides};
use fit::{Body, FitState};
use serde::{Deserialize, Serialize};
use source::Performance;
pub use source::Source;
use thiserror::Error;
use understudy_core::{BoneTrack, JointProperty, JointTransform, KeyedClip, Track, TrackInterpolation};

/// Why a motion could not be carried over.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RetargetError {
    /// The file's skeleton is not understood.
    #[error("the file's skeleton: {0}")]
    Source(AnatomyError),
    /// The rig's skeleton is not understood.
    #[error("the skeleton of '{rig}': {error}")]
    Target {
        /// The rig.
        rig: String,
        /// What is wrong.
        error: AnatomyError,
    },
    /// The rig has no bones.
    #[error("'{rig}' has no bones to move")]
    NoBones {
        /// The rig.
        rig: String,
    },
    /// No control of the rig turns a bone of the body.
    #[error("no control of '{rig}' turns a bone of its body")]
    NoControls {
        /// The rig.
        rig: String,
    },
    /// A setting that makes no sense.
    #[error("the {what} is {value}; {want} is wanted")]
    Setting {
        /// Which.
        what: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        want: String,
    },
    /// The file has no frames.
    #[error("the motion has no frames")]
    NoFrames,
    /// Legs of no length, or numbers that are not finite.
    #[error("the {whose} body cannot be measured: {problem}")]
    Degenerate {
        /// `file's` or `rig's`.
        whose: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
    /// The rig refused a pose.
    #[error(transparent)]
    Rig(#[from] RigError),
}

/// In which pose both bodies count as standing alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reference {
    /// The first frame where it stands straighter than the rest pose (CMU's files begin with a T-pose), else the
    /// rest pose.
    #[default]
    Auto,
    /// The file's rest pose: all rotations of a BVH zero.
    Rest,
    /// The first frame, which is then not played.
    FirstFrame,
}

/// Where the motion begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// At the rig's own place, looking the way it looks at rest.
    #[default]
    Rig,
    /// Where the file has it, scaled.
    File,
}

/// How a motion is carried over. A mapping file holds this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetargetConfig {
    /// In which pose both bodies stand alike.
    pub reference: Reference,
    /// Where the motion begins.
    pub start: Start,
    /// What distances of the file are multiplied with; the ratio of the legs when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f32>,
    /// Feet and hands that stand stay where they stand.
    pub lock: bool,
    /// The file's bones, where their names are not known.
    pub file_bones: BoneNames,
    /// The rig's bones, where their names are not known.
    pub rig_bones: BoneNames,
}

impl Default for RetargetConfig {
    fn default() -> Self {
        Self {
            reference: Reference::Auto,
            start: Start::Rig,
            scale: None,
            lock: true,
            file_bones: BoneNames::default(),
            rig_bones: BoneNames::default(),
        }
    }
}

impl RetargetConfig {
    const SCALES: std::ops::RangeInclusive<f32> = 1e-3..=1e3;

    fn check(&self) -> Result<(), RetargetError> {
        match self.scale.filter(|scale| !Self::SCALES.contains(scale)) {
            Some(scale) => Err(RetargetError::Setting {
                what: "scale",
                value: scale.to_string(),
                want: "a number from 0.001 to 1000".into(),
            }),
            None => Ok(()),
        }
    }
}

/// A control that met its limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitReport {
    /// The control.
    pub control: String,
    /// Share of the frames in which it wanted to go further.
    pub share: f32,
    /// The limit that it met most often, in the control's unit.
    pub limit: f32,
}

/// How far a part of the body is from where the file has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartReport {
    /// Such as `left upper arm`.
    pub part: String,
    /// The mean angle over all frames, degrees.
    pub mean_degrees: f32,
    /// The largest, degrees.
    pub max_degrees: f32,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RetargetReport {
    /// Whose names the file's bones have.
    pub file_names: &'static str,
    /// Whose names the rig's bones have.
    pub rig_names: &'static str,
    /// The file's bones by part.
    #[serde(skip)]
    pub file_bones: BoneNames,
    /// The rig's bones by part.
    #[serde(skip)]
    pub rig_bones: BoneNames,
    /// `first frame` or `rest pose`.
    pub reference: &'static str,
    /// Frames of the file that are not played because they only show how the body stands.
    pub skipped_frames: usize,
    /// Frames that are played.
    pub frames: usize,
    /// What distances were multiplied with.
    pub scale: f32,
    /// Whether the rig can be moved as a whole; its feet slide if not.
    pub moves: bool,
    /// When feet and hands stand.
    pub contacts: Vec<Contact>,
    /// Controls that met their limits, most often first.
    pub limits: Vec<LimitReport>,
    /// Parts of the body by how well they follow.
    pub parts: Vec<PartReport>,
    /// Bones of the file that move and are no part of the body.
    pub unused: Vec<String>,
}

impl RetargetReport {
    /// Which bones were taken for what: part, the file's bone, the rig's; an empty name where there is none.
    pub fn pairs(&self) -> Vec<[String; 3]> {
        let (file, rig) = (self.file_bones.listed(), self.rig_bones.listed());
        let mut pairs: Vec<[String; 3]> = Vec::new();
        for (part, name) in file {
            let own = rig.iter().find(|(other, _)| *other == part).map(|(_, name)| name.clone());
            pairs.push([part, name, own.unwrap_or_default()]);
        }
        for (part, name) in rig {
            if !pairs.iter().any(|pair| pair[0] == part) {
                pairs.push([part, String::new(), name]);
            }
        }
        pairs
    }
}

/// A motion on a rig's own bones.
#[derive(Debug, Clone)]
pub struct Retargeted {
    /// Local transforms of the bones that have controls, as the controls make them.
    pub keys: KeyedClip,
    /// What was done.
    pub report: RetargetReport,
}

/// Carries a motion over to a rig. `step` hears how many frames are done and may say stop, which ends in `None`.
pub fn retarget(
    rig: &dyn Rig,
    source: &Source<'_>,
    config: &RetargetConfig,
    step: &mut dyn FnMut(usize) -> bool,
) -> Result<Option<Retargeted>, RetargetError> {
    config.check()?;
    let file = Anatomy::find(source.skeleton, &config.file_bones).map_err(RetargetError::Source)?;
    let mut body = Body::new(rig, &config.rig_bones)?;
    let performance = Performance::new(source, &file, config, &mut body)?;
    let frames = performance.frames();
    let mut state = body.start();
    let mut states: Vec<FitState> = Vec::with_capacity(frames);
    let mut limits = vec![[0usize; 2]; body.unknowns().len()];
    let mut misses = vec![(0.0f64, 0.0f64); performance.part_names().len()];
    for frame in 0..frames {
        let goal = performance.goal(frame, &body);
        // The first frame may be far from the rest pose.
        let rounds = if frame == 0 { 60 } else { 12 };
        body.fit(&goal, &mut state, frame > 0, rounds)?;
        for (count, at) in limits.iter_mut().zip(body.pressed()) {
            if let Some(end) = at {
                count[end] += 1;
            }
        }
        for ((sum, most), miss) in misses.iter_mut().zip(body.misses(&goal)) {
            *sum += miss;
            *most = most.max(miss);
        }
        states.push(state.clone());
        if !step(frame + 1) {
            return Ok(None);
        }
    }

    let keys = keys(&body, &states, source.rate, frames)?;
    let share = |count: usize| count as f32 / frames as f32;
    let mut limits: Vec<LimitReport> = body
        .unknowns()
        .iter()
        .zip(&limits)
        .filter(|(_, [low, high])| low + high > 0)
        .map(|(unknown, [low, high])| LimitReport {
            control: rig.specs().get(unknown.control).name.clone(),
            share: share(low + high),
            limit: if low > high { unknown.low as f32 } else { unknown.high as f32 },
        })
        .collect();
    limits.sort_by(|a, b| b.share.total_cmp(&a.share));
    let parts = performance.part_names().into_iter().zip(&misses).map(|(part, (sum, most))| PartReport {
        part,
        mean_degrees: (sum / frames as f64) as f32,
        max_degrees: *most as f32,
    });
    let report = RetargetReport {
        file_names: file.convention,
        rig_names: body.anatomy().convention,
        file_bones: file.names(source.skeleton),
        rig_bones: body.anatomy().names(body.skeleton()),
        reference: performance.reference(),
        skipped_frames: performance.first(),
        frames,
        scale: performance.scale(),
        moves: body.moves(),
        contacts: performance.contacts(),
        limits,
        parts: parts.collect(),
        unused: source.unused(&file),
    };
    Ok(Some(Retargeted { keys, report }))
}

/// The transforms that the controls make, as keys of one a frame.
fn keys(body: &Body<'_>, states: &[FitState], rate: f32, frames: usize) -> Result<KeyedClip, RetargetError> {
    let times: std::sync::Arc<[f32]> =
        (0..frames).map(|frame| (frame as f64 / f64::from(rate)) as f32).collect();
    let locals: Vec<Vec<JointTransform>> =
        states.iter().map(|state| body.locals(state)).collect::<Result<_, _>>()?;
    let mut bones = Vec::new();
    let bad = |_| RetargetError::Degenerate { whose: "file's", problem: "a transform is not finite" };
    for (place, &bone) in body.moved_bones().iter().enumerate() {
        let turns = locals.iter().flat_map(|frame| frame[place].rotation.to_array()).collect();
        let track = Track::rotations(times.clone(), turns, TrackInterpolation::Linear).map_err(bad)?;
        bones.push(BoneTrack { bone, property: JointProperty::Rotation, track });
        if Some(bone) == body.root() && body.moves() {
            let places = locals.iter().flat_map(|frame| frame[place].translation.to_array()).collect();
            let track = Track::new(times.clone(), places, 3, TrackInterpolation::Linear).map_err(bad)?;
            bones.push(BoneTrack { bone, property: JointProperty::Translation, track });
        }
    }
    Ok(KeyedClip { name: String::new(), rate, bones, weights: Vec::new() })
}
