//! Clips by name or by file: what `--clip` names is a clip of the rig, or a file whose motion the rig shall play: a Live
//! Link Face take, a table of weights, BVH, bones of an FBX file, another model. Start at [`resolve`].
//!
//! Columns and shapes are matched with controls by name (`names`); head and eye rotations of a take, and bones of
//! another skeleton, turn the bones of the same name (`bones`); the motion of another body is carried over as a whole
//! (`retargeted`). What matches nothing is said, in both directions, and nothing at all is an error.

mod bones;
mod names;
mod played;
mod retargeted;

pub(crate) use played::{Played, evaluate, one_of};
pub use retargeted::{MappingFile, resolve_retargeted};

use crate::inputs;
use crate::{Event, JobError, Watch};
use bones::{Joints, Source};
use std::path::Path;
use std::sync::Arc;
use understudy_core::{BoneTrack, Clip, ControlMap, Curve, Interpolation, Key, KeyedClip, Motion, Skeleton};
use understudy_io::bvh::Bvh;
use understudy_io::{Format, Model, Scene};
use understudy_rigs::retarget::{RetargetConfig, Source as BodySource};
use understudy_rigs::{Rig, RigPose};

/// Names that a message lists before it says how many more there are.
const LISTED: usize = 8;

/// What a clip can be read from.
const CLIP_FILES: &str = "a Live Link Face .csv, a table of weights, a .bvh, an .fbx, .glb, .gltf, .usda or .usdc with an animation, or a mapping .toml";

/// The clip of a rig that `name` stands for: one of its own, or the motion of a file. Of a file with several clips the
/// first is played; `FILE:CLIP` chooses another.
pub fn resolve(rig: &dyn Rig, name: &str, watch: &dyn Watch) -> Result<Clip, JobError> {
    if let Some(clip) = rig.find_clip(name) {
        return Ok(clip.clone());
    }
    if !is_file(name) {
        return Err(JobError::unknown_clip(rig.name(), name, rig.clips().iter().map(|c| c.name.as_str())));
    }
    let (file, inner) = split(name);
    let path = Path::new(file);
    if let Some(mapping) = MappingFile::of(path)? {
        return Ok(resolve_retargeted(rig, &mapping.motion(path)?, &mapping.retarget, watch)?.0);
    }
    let base = inputs::stem(path);
    let called = inner.map_or_else(|| base.clone(), |inner| format!("{base} {inner}"));
    let mut player = ClipBuilder::new(rig, path);
    if let Some(file) = retargeted::bones_alone(path, watch)? {
        let keys = first_or_named(&file.clips, inner, path, watch)?;
        player.skeleton(&file.skeleton, keys, watch)?;
        return player.finish(called, watch);
    }
    let scene = inputs::open(path, CLIP_FILES, watch)?;
    match &scene {
        Scene::Take(take) => {
            let times: Vec<f32> = take.times.iter().map(|time| *time as f32).collect();
            player.values(&take.names, &take.frames, &times, take.rate)?;
        }
        Scene::Weights(table) => {
            let rate = table.rate.unwrap_or_else(|| {
                let message = format!("{file}: names no frame rate; {} per second assumed", Clip::RATE);
                watch.event(Event::Warning { message: &message });
                Clip::RATE
            });
            player.values(&table.names, &table.frames, &frame_times(table.frames.len(), rate), rate)?;
        }
        Scene::Motion(bvh) => player.bvh(bvh, watch)?,
        Scene::Model(model) => {
            let keys = first_or_named(&model.clips, inner, path, watch)?;
            player.model(model, keys, watch)?;
        }
        other => return Err(inputs::wrong_kind(path, other, CLIP_FILES)),
    }
    player.finish(called, watch)
}

/// The clip that is named, or the first; then the listener hears of the others.
fn first_or_named<'a>(
    clips: &'a [KeyedClip],
    name: Option<&str>,
    path: &Path,
    watch: &dyn Watch,
) -> Result<&'a KeyedClip, JobError> {
    let file = path.to_string_lossy();
    let keys = one_of(clips, name, &file)?;
    if name.is_none() && clips.len() > 1 {
        let known: Vec<&str> = clips.iter().map(|clip| clip.name.as_str()).collect();
        let message =
            format!("{file}: '{}' is played; {file}:CLIP chooses another of {}", keys.name, listed(&known));
        watch.event(Event::Note { message: &message });
    }
    Ok(keys)
}

/// A take as a clip of the rig. `path` names it in messages.
pub(crate) fn of_take(
    rig: &dyn Rig,
    path: &Path,
    take: &understudy_io::live_link::LiveLinkTake,
    watch: &dyn Watch,
) -> Result<Clip, JobError> {
    let mut player = ClipBuilder::new(rig, path);
    let times: Vec<f32> = take.times.iter().map(|time| *time as f32).collect();
    player.values(&take.names, &take.frames, &times, take.rate)?;
    player.finish("take".into(), watch)
}

/// A rig's own clips with those that `names` find in files, and what all of `names` are called among them.
pub(crate) fn with_files(
    rig: &dyn Rig,
    names: &[String],
    watch: &dyn Watch,
) -> Result<(Vec<Clip>, Vec<String>), JobError> {
    let mut clips = rig.clips().to_vec();
    let mut called = Vec::with_capacity(names.len());
    for name in names {
        let mut clip = resolve(rig, name, watch)?;
        if rig.find_clip(name).is_none() {
            let base = clip.name.clone();
            for number in 2.. {
                if !clips.iter().any(|other| other.name == clip.name) {
                    break;
                }
                clip.name = format!("{base} {number}");
            }
            clips.push(clip.clone());
        }
        called.push(clip.name);
    }
    Ok((clips, called))
}

/// Whether a name that is no clip of a rig is meant as a file.
pub fn is_file(name: &str) -> bool {
    let path = Path::new(split(name).0);
    path.is_file()
        || retargeted::is_mapping(path)
        || !matches!(Format::of(path), None | Some(Format::Dataset | Format::Twin | Format::Onnx))
}

/// The file that a clip's name stands for; empty where it is no file.
pub(crate) fn file_of(name: &str) -> &Path {
    Path::new(if is_file(name) { split(name).0 } else { "" })
}

/// `FILE:CLIP`, where the part before the last colon is a file and the whole is none.
fn split(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once(':') {
        Some((file, clip)) if Path::new(file).is_file() && !Path::new(name).is_file() => (file, Some(clip)),
        _ => (name, None),
    }
}

fn frame_times(count: usize, rate: f32) -> Vec<f32> {
    (0..count).map(|frame| (frame as f64 / f64::from(rate)) as f32).collect()
}

/// Numbered names that follow each other as one: `motion/happy_1`, `…_2`, `…_3` become `motion/happy_1…3`. With each the
/// places of the names that it stands for. Only names of groups (`GROUP/NAME`) are taken together.
pub fn folded(names: &[&str]) -> Vec<(String, std::ops::Range<usize>)> {
    let numbered = |name: &str| -> Option<(usize, usize)> {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let stem = name.len() - digits;
        name.contains('/').then(|| name[stem..].parse().ok().map(|number| (stem, number))).flatten()
    };
    let mut out: Vec<(String, std::ops::Range<usize>)> = Vec::new();
    for (place, name) in names.iter().enumerate() {
        if let (Some((stem, number)), Some((text, range))) = (numbered(name), out.last_mut()) {
            let first = names[range.start];
            let follows = numbered(first)
                .is_some_and(|(other, from)| first[..other] == name[..stem] && number == from + range.len());
            if follows {
                range.end = place + 1;
                *text = format!("{first}…{number}");
                continue;
            }
        }
        out.push(((*name).to_owned(), place..place + 1));
    }
    out
}

/// The first few names, and how many more there are.
fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let first: Vec<&str> = names.iter().take(LISTED).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(LISTED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// A clip under construction, and what did and did not match.
struct ClipBuilder<'a> {
    rig: &'a dyn Rig,
    path: &'a Path,
    clip: Clip,
    bones: Vec<BoneTrack>,
    /// Which controls the file moves.
    driven: Vec<bool>,
    /// How many names the file has.
    names: usize,
    unmatched: Vec<String>,
    /// Values that were brought back into their ranges.
    clamped: usize,
}

impl<'a> ClipBuilder<'a> {
    fn new(rig: &'a dyn Rig, path: &'a Path) -> Self {
        let clip = Clip::new("", 0.0, Vec::new());
        let driven = vec![false; rig.specs().len()];
        Self { rig, path, clip, bones: Vec::new(), driven, names: 0, unmatched: Vec::new(), clamped: 0 }
    }

    /// Rows of named values at times in seconds; head and eye rotations turn bones.
    fn values(
        &mut self,
        names: &[String],
        frames: &[Vec<f32>],
        times: &[f32],
        rate: f32,
    ) -> Result<(), JobError> {
        self.curves(names, frames, times);
        self.clip.rate = Some(rate);
        let joints = Joints::new(self.rig);
        for part in names::rotations(names) {
            let found = joints.as_ref().and_then(|j| Some((j, j.find(part.bone, part.side)?)));
            match found {
                Some((joints, bone)) if self.moved_by_shapes(joints, bone, &part.gaze_shapes()) => {}
                Some((joints, bone)) => {
                    let track = joints.turned(bone, &part, frames, times);
                    self.bones.push(track.map_err(|problem| JobError::unusable(self.path, problem))?);
                    joints.controls_of(bone).for_each(|control| self.driven[control] = true);
                }
                None => self.unmatched.extend(part.columns().map(|column| names[column].clone())),
            }
        }
        Ok(())
    }

    /// Whether shapes that the file drives move what a bone turns: then the same gaze must not be applied twice. A rig
    /// is asked, not its parts: gaze shapes may turn bones, move vertices or shape the lids alone.
    fn moved_by_shapes(&self, joints: &Joints<'_>, bone: usize, shapes: &[String]) -> bool {
        let specs = self.rig.specs();
        let driven = shapes.iter().filter_map(|shape| names::control_of(specs, shape));
        let driven: Vec<usize> = driven.filter(|control| self.driven[*control]).collect();
        let pose = |control: Option<usize>| {
            let mut controls = specs.defaults();
            control.into_iter().for_each(|control| controls.0[control] = specs.get(control).high);
            let mut pose = RigPose::default();
            self.rig.evaluate(&controls, &mut pose).map_or_else(|_| Vec::new(), |()| pose.vertices)
        };
        let rest = pose(None);
        let moved = |control: usize| -> Vec<f32> {
            pose(Some(control)).iter().zip(&rest).map(|(a, b)| a.distance(*b)).collect()
        };
        if driven.is_empty() {
            return false;
        }
        let mut by_bone = vec![0.0f32; rest.len()];
        for control in joints.controls_of(bone) {
            by_bone.iter_mut().zip(moved(control)).for_each(|(most, now)| *most = most.max(now));
        }
        let half = by_bone.iter().copied().fold(0.0, f32::max) * 0.5;
        let sum = |distances: &[f32]| -> f32 {
            let turned = distances.iter().zip(&by_bone).filter(|(_, by_bone)| **by_bone > half);
            turned.map(|(distance, _)| distance).sum()
        };
        driven.into_iter().any(|control| sum(&moved(control)) > 0.25 * sum(&by_bone))
    }

    /// One curve per control that a column drives.
    fn curves(&mut self, names: &[String], frames: &[Vec<f32>], times: &[f32]) {
        self.names += names.len();
        let mut used = vec![false; names.len()];
        for (control, (spec, columns)) in
            self.rig.specs().iter().zip(names::columns_of(self.rig.specs(), names)).enumerate()
        {
            if columns.is_empty() {
                continue;
            }
            columns.iter().for_each(|column| used[*column] = true);
            self.driven[control] = true;
            let mut keys: Vec<Key> = Vec::with_capacity(times.len());
            for (&time, frame) in times.iter().zip(frames) {
                let given = columns.iter().map(|column| frame[*column]).sum::<f32>() / columns.len() as f32;
                let value = given.clamp(spec.low, spec.high);
                self.clamped += usize::from(value != given);
                // Two frames of one timecode: the later one counts.
                match keys.last_mut().filter(|last| last.time >= time) {
                    Some(last) => last.value = value,
                    None => keys.push(Key { time, value }),
                }
            }
            let curve = Curve { control: spec.name.clone(), keys, interpolation: Interpolation::Linear };
            self.clip.curves.push(curve);
        }
        let left = names.iter().zip(used).filter(|(name, used)| !used && !names::is_rotation(name));
        self.unmatched.extend(left.map(|(name, _)| name.clone()));
        self.clip.duration = self.clip.duration.max(times.last().copied().unwrap_or(0.0));
    }

    fn bvh(&mut self, bvh: &Bvh, watch: &dyn Watch) -> Result<(), JobError> {
        let moved: Vec<usize> = (0..bvh.skeleton.len()).collect();
        if self.is_other_body(&bvh.skeleton, &moved) {
            let (rest, poses) = (bvh.skeleton.rest_pose(), bvh.clip.poses.clone());
            let source = BodySource { skeleton: &bvh.skeleton, rest, poses, rate: bvh.clip.rate };
            return self.carried(&source, watch);
        }
        let times = frame_times(bvh.clip.poses.len(), bvh.clip.rate);
        let keys = bones::keys_of_frames(&bvh.clip.poses, &times, bvh.clip.rate);
        let joints = Joints::new(self.rig);
        let source = joints.as_ref().map(|joints| joints.of_motion_file(bvh));
        self.motion(&bvh.skeleton, &keys, joints.as_ref().zip(source.as_ref()))
    }

    /// Whether bones that a file moves are another body's: then their motion is carried over as a whole.
    fn is_other_body(&self, file: &Skeleton, moved: &[usize]) -> bool {
        let Some(own) = self.rig.skeleton() else { return false };
        !retargeted::is_own(own, file, moved) && retargeted::are_bodies(own, file, &RetargetConfig::default())
    }

    /// The motion of another body.
    fn carried(&mut self, source: &BodySource<'_>, watch: &dyn Watch) -> Result<(), JobError> {
        let done = retargeted::carry(self.rig, source, &RetargetConfig::default(), self.path, watch)?;
        let last = frame_times(done.report.frames, source.rate).last().copied().unwrap_or(0.0);
        self.retargeted(done.keys, last);
        Ok(())
    }

    /// Keys of the rig's own bones.
    fn retargeted(&mut self, keys: KeyedClip, duration: f32) {
        self.clip.rate = Some(keys.rate);
        self.clip.duration = self.clip.duration.max(duration);
        if let Some(joints) = Joints::new(self.rig) {
            for track in &keys.bones {
                joints.controls_of(track.bone).for_each(|control| self.driven[control] = true);
            }
        }
        self.bones.extend(keys.bones);
    }

    fn model(&mut self, model: &Model, keys: &KeyedClip, watch: &dyn Watch) -> Result<(), JobError> {
        if let Some(shapes) = model.shapes.as_ref().filter(|_| !keys.weights.is_empty()) {
            let failed = |error| JobError::unusable(self.path, error);
            let times = frame_times(keys.frame_count(keys.rate).map_err(failed)?, keys.rate);
            let rows: Vec<Vec<f32>> =
                times.iter().map(|time| keys.weights_at(f64::from(*time), &model.rest_weights)).collect();
            let names: Vec<String> = shapes.shapes().iter().map(|shape| shape.name.clone()).collect();
            self.curves(&names, &rows, &times);
        }
        match &model.skeleton {
            Some(skeleton) => self.skeleton(skeleton, keys, watch),
            None => Ok(()),
        }
    }

    /// Bones of a file, as it shows them at rest, and their keys.
    fn skeleton(&mut self, skeleton: &Skeleton, keys: &KeyedClip, watch: &dyn Watch) -> Result<(), JobError> {
        let moved: Vec<usize> = keys.bones.iter().map(|track| track.bone).collect();
        let rest = skeleton.rest_pose();
        if self.is_other_body(skeleton, &moved) {
            let poses =
                retargeted::poses(keys, &rest).map_err(|error| JobError::unusable(self.path, error))?;
            return self.carried(&BodySource { skeleton, rest, poses, rate: keys.rate }, watch);
        }
        let joints = Joints::new(self.rig);
        let source = Source { skeleton, rest, same_axes: false, scale: 1.0 };
        self.motion(skeleton, keys, joints.as_ref().map(|joints| (joints, &source)))
    }

    /// Motion of another skeleton's bones.
    fn motion(
        &mut self,
        skeleton: &Skeleton,
        keys: &KeyedClip,
        joints: Option<(&Joints<'_>, &Source<'_>)>,
    ) -> Result<(), JobError> {
        self.clip.rate = Some(keys.rate);
        self.clip.duration = self.clip.duration.max(keys.duration() as f32);
        let mut moved: Vec<usize> = keys.bones.iter().map(|track| track.bone).collect();
        moved.sort_unstable();
        moved.dedup();
        self.names += moved.len();
        for bone in moved {
            let name = &skeleton.bones()[bone].name;
            let found = joints.and_then(|(joints, source)| Some((joints, source, joints.find_name(name)?)));
            let Some((joints, source, own)) = found else {
                self.unmatched.push(name.clone());
                continue;
            };
            for track in keys.bones.iter().filter(|track| track.bone == bone) {
                let carried = joints.carried(own, track, source);
                self.bones.push(carried.map_err(|problem| JobError::unusable(self.path, problem))?);
            }
            joints.controls_of(own).for_each(|control| self.driven[control] = true);
        }
        Ok(())
    }

    /// The clip, after what did not match was said; an error when nothing did.
    fn finish(mut self, name: String, watch: &dyn Watch) -> Result<Clip, JobError> {
        let (rig, path) = (self.rig.name(), self.path.display());
        if self.clip.curves.is_empty() && self.bones.is_empty() {
            let problem = format!("nothing in it matches a control of '{rig}': {}", listed(&self.unmatched));
            return Err(JobError::unusable(self.path, problem));
        }
        if !self.unmatched.is_empty() {
            let (count, all) = (self.unmatched.len(), self.names);
            let message = format!(
                "{path}: {count} of {all} names match no control of '{rig}': {}",
                listed(&self.unmatched)
            );
            watch.event(Event::Warning { message: &message });
        }
        let specs = self.rig.specs();
        let resting = specs.iter().zip(&self.driven).filter(|(_, driven)| !**driven);
        let resting: Vec<&str> = resting.map(|(spec, _)| spec.name.as_str()).collect();
        if !resting.is_empty() {
            let (count, all) = (resting.len(), specs.len());
            let message = format!("{path}: {count} of {all} controls of '{rig}' rest: {}", listed(&resting));
            watch.event(Event::Note { message: &message });
        }
        if self.clamped > 0 {
            let message = format!("{path}: {} values were brought back into their ranges", self.clamped);
            watch.event(Event::Note { message: &message });
        }
        if let Some(skeleton) = self.rig.skeleton().filter(|_| !self.bones.is_empty()) {
            let rate = self.clip.own_rate();
            self.clip.motion = Some(Motion {
                keys: KeyedClip { name: name.clone(), rate, bones: self.bones, weights: Vec::new() },
                rest: Arc::new(skeleton.rest_pose()),
                rest_weights: Arc::from([]),
                map: Arc::new(ControlMap::new(specs, Some(skeleton), None)),
            });
        }
        self.clip.name = name;
        Ok(self.clip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_clips_of_a_group_are_told_as_one() {
        let names = ["walk_1", "walk_2", "m/a_1", "m/a_2", "m/a_3", "m/a_5", "m/b_6", "m/c"];
        let told: Vec<String> = folded(&names).into_iter().map(|(name, _)| name).collect();
        assert_eq!(told, ["walk_1", "walk_2", "m/a_1…3", "m/a_5", "m/b_6", "m/c"]);
        assert_eq!(folded(&names)[2].1, 2..5);
        assert!(folded(&[]).is_empty());
    }
}
