//! Motion of another body on a rig: when a file is retargeted and when its bones are the rig's own, what a mapping file
//! says, and what the listener hears of the result.

use super::{CLIP_FILES, frame_times, listed, one_of};
use crate::{Event, JobError, Watch, inputs};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use understudy_core::{Clip, ClipError, JointPose, KeyedClip, Skeleton};
use understudy_io::fbx::{self, FbxBones, FbxOptions};
use understudy_io::{Format, Scene};
use understudy_rigs::Rig;
use understudy_rigs::anatomy::Anatomy;
use understudy_rigs::retarget::{
    RetargetConfig, RetargetError, RetargetReport, Retargeted, Source, retarget,
};

/// More of a mapping file than this is no mapping file.
const MAX_BYTES: u64 = 1 << 20;
/// Bones that a file moves are the rig's own where so many of them have the very same names.
const OWN_BONES: f32 = 0.8;
/// A limit that is met in fewer frames than this share is not worth a line.
const WORTH_SAYING: f32 = 0.02;

/// A mapping file: which motion, and how it is carried over.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MappingFile {
    /// The motion, relative to the mapping file; `FILE:CLIP` chooses one of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<String>,
    /// How it is carried over.
    pub retarget: RetargetConfig,
}

impl MappingFile {
    /// Reads one; `None` for a path that is none by its name.
    pub fn of(path: &Path) -> Result<Option<Self>, JobError> {
        if !is_mapping(path) {
            return Ok(None);
        }
        let bad = |error: std::io::Error| JobError::unusable(path, error);
        if std::fs::metadata(path).map_err(bad)?.len() > MAX_BYTES {
            return Err(JobError::unusable(path, "is too large for a mapping file"));
        }
        let text = std::fs::read_to_string(path).map_err(bad)?;
        toml::from_str(&text).map(Some).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            JobError::unusable(path, format!("line {line}: {}", error.message()))
        })
    }

    /// The motion that a mapping file at `path` means.
    pub fn motion(&self, path: &Path) -> Result<String, JobError> {
        let clip = self.clip.as_ref();
        let clip =
            clip.ok_or_else(|| JobError::unusable(path, "names no motion: clip = \"FILE\" is wanted"))?;
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        Ok(folder.join(clip).display().to_string())
    }
}

/// Whether a path is a mapping file by its name.
pub(super) fn is_mapping(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// Whether the bones that a file moves are the rig's own: then it is played as it is.
pub(super) fn is_own(rig: &Skeleton, file: &Skeleton, moved: &[usize]) -> bool {
    let own = moved.iter().filter(|bone| rig.find(&file.bones()[**bone].name).is_some());
    moved.is_empty() || own.count() as f32 >= OWN_BONES * moved.len() as f32
}

/// Whether both skeletons are bodies.
pub(super) fn are_bodies(rig: &Skeleton, file: &Skeleton, config: &RetargetConfig) -> bool {
    Anatomy::find(rig, &config.rig_bones).is_ok() && Anatomy::find(file, &config.file_bones).is_ok()
}

/// Carries a motion over and says what was done.
pub(super) fn carry(
    rig: &dyn Rig,
    source: &Source<'_>,
    config: &RetargetConfig,
    path: &Path,
    watch: &dyn Watch,
) -> Result<Retargeted, JobError> {
    let total = source.poses.len() as u64;
    watch.event(Event::Started { what: "retargeting", total, unit: "frames" });
    let mut step = |done: usize| {
        watch.event(Event::Step { done: done as u64 });
        !watch.should_stop()
    };
    let done = retarget(rig, source, config, &mut step).map_err(|error| match error {
        RetargetError::Rig(error) => JobError::rig(rig.name())(error),
        error => JobError::unusable(path, error),
    })?;
    let done = done.ok_or(JobError::Stopped)?;
    watch.event(Event::Finished);
    say(rig, &done.report, path, watch);
    Ok(done)
}

fn say(rig: &dyn Rig, report: &RetargetReport, path: &Path, watch: &dyn Watch) {
    let (path, name) = (path.display(), rig.name());
    let message = format!(
        "{path}: carried over to '{name}' from bones named as {}, lined up at its {}, distances × {:.3}",
        report.file_names, report.reference, report.scale
    );
    watch.event(Event::Note { message: &message });
    if report.skipped_frames > 0 {
        let message = format!("{path}: its first frame only shows how the body stands, and is not played");
        watch.event(Event::Note { message: &message });
    }
    if !report.moves {
        let message =
            format!("{path}: '{name}' cannot be moved as a whole: it turns on the spot, its feet slide");
        watch.event(Event::Warning { message: &message });
    }
    let limits = report.limits.iter().filter(|limit| limit.share >= WORTH_SAYING);
    let limits: Vec<String> = limits
        .map(|limit| {
            format!("{} at {:.0}° ({:.0} % of the frames)", limit.control, limit.limit, limit.share * 100.0)
        })
        .collect();
    if !limits.is_empty() {
        let message =
            format!("{path}: {} controls of '{name}' met their limits: {}", limits.len(), listed(&limits));
        watch.event(Event::Warning { message: &message });
    }
    if !report.unused.is_empty() {
        let (count, list) = (report.unused.len(), listed(&report.unused));
        let message =
            format!("{path}: {count} of its bones are no part of the body and are left out: {list}");
        watch.event(Event::Note { message: &message });
    }
}

/// A motion file's bones, with the frames as they are.
pub(super) struct FileMotion {
    pub skeleton: Skeleton,
    pub rest: JointPose,
    pub poses: Vec<JointPose>,
    pub rate: f32,
}

impl FileMotion {
    pub fn source(&self) -> Source<'_> {
        Source {
            skeleton: &self.skeleton,
            rest: self.rest.clone(),
            poses: self.poses.clone(),
            rate: self.rate,
        }
    }

    /// The motion of bones in a scene.
    fn of(scene: Scene, inner: Option<&str>, path: &Path) -> Result<Self, JobError> {
        match scene {
            Scene::Motion(bvh) => Ok(Self {
                rest: bvh.skeleton.rest_pose(),
                poses: bvh.clip.poses,
                rate: bvh.clip.rate,
                skeleton: bvh.skeleton,
            }),
            Scene::Model(model) => {
                let keys = one_of(&model.clips, inner, &path.to_string_lossy())?;
                match model.skeleton {
                    Some(skeleton) => Self::played(skeleton, keys, path),
                    None => Err(JobError::unusable(path, "has no bones")),
                }
            }
            other => Err(inputs::wrong_kind(path, &other, CLIP_FILES)),
        }
    }

    fn played(skeleton: Skeleton, keys: &KeyedClip, path: &Path) -> Result<Self, JobError> {
        let rest = skeleton.rest_pose();
        let poses = poses(keys, &rest).map_err(|error| JobError::unusable(path, error))?;
        Ok(Self { skeleton, rest, poses, rate: keys.rate })
    }

    /// The motion of bones in a file.
    fn read(path: &Path, inner: Option<&str>, watch: &dyn Watch) -> Result<Self, JobError> {
        match bones_alone(path, watch)? {
            Some(file) => {
                let keys = one_of(&file.clips, inner, &path.to_string_lossy())?;
                Self::played(file.skeleton, keys, path)
            }
            None => Self::of(inputs::open(path, CLIP_FILES, watch)?, inner, path),
        }
    }
}

/// Bones at every frame of a clip.
pub(super) fn poses(keys: &KeyedClip, rest: &JointPose) -> Result<Vec<JointPose>, ClipError> {
    let time = |frame: usize| frame as f64 / f64::from(keys.rate);
    Ok((0..keys.frame_count(keys.rate)?).map(|frame| keys.pose_at(time(frame), rest)).collect())
}

/// The bones of an FBX file in which no mesh moves, as captures and animation libraries write it; `None` for any other.
pub(super) fn bones_alone(path: &Path, watch: &dyn Watch) -> Result<Option<FbxBones>, JobError> {
    let is_fbx = Format::of(path) == Some(Format::Fbx);
    if !is_fbx || fbx::read(path).is_ok_and(|model| !model.clips.is_empty()) {
        return Ok(None);
    }
    let bones = fbx::read_bones(path, &FbxOptions::default())?;
    inputs::report(Some(&bones.conversion), &bones.warnings, path, watch);
    Ok(Some(bones))
}

/// The motion of a file on a rig, whatever its bones are called, and what was done.
pub fn resolve_retargeted(
    rig: &dyn Rig,
    name: &str,
    config: &RetargetConfig,
    watch: &dyn Watch,
) -> Result<(Clip, RetargetReport), JobError> {
    let (file, inner) = super::split(name);
    let path = Path::new(file);
    let motion = FileMotion::read(path, inner, watch)?;
    let done = carry(rig, &motion.source(), config, path, watch)?;
    let mut builder = super::ClipBuilder::new(rig, path);
    let times = frame_times(done.report.frames, motion.rate);
    builder.retargeted(done.keys, times.last().copied().unwrap_or(0.0));
    let base = inputs::stem(path);
    let name = inner.map_or_else(|| base.clone(), |inner| format!("{base} {inner}"));
    Ok((builder.finish(name, watch)?, done.report))
}
