//! A skinned file and a cache of its vertices, frame-locked: what Unreal, Maya and Houdini users call the training
//! data of a deformer.

use super::align::{Pairs as Poses, Placement, mean_distance};
use super::{Alignment, ImportConfig, Pose, Source, objects};
use crate::inputs::{self, report};
use crate::rigs::model_rig;
use crate::{Event, JobError, Watch};
use std::path::Path;
use understudy_core::{Clip, ControlSpecs, DMat3, DVec3, GlobalPose, JointPose, KeyedClip, Skeleton, Vec3};
use understudy_io::alembic::{AlembicCache, AlembicOptions};
use understudy_io::dataset::DatasetRest;
use understudy_io::mesh_sequence::{Frames, MeshSequence};
use understudy_io::{Conversion, Format, Model, ReadError, Scene, fbx};
use understudy_rigs::Rig as _;

const SKINNED: &str = "a .fbx, .glb, .gltf, .usda or .usdc file with a skin";
const CACHED: &str = "an .abc cache or an .npz of frames";
/// Frames that scale and axes are found by.
const PROBES: usize = 12;
/// Frames around the cache's that an offset is looked for among.
const REACH: i64 = 120;
/// Vertices that are compared while an offset is looked for.
const SOME: usize = 400;

/// Both files, matched.
pub(super) struct Pairs {
    rest: DatasetRest,
    specs: ControlSpecs,
    model: Model,
    clip: KeyedClip,
    /// The same animation as values of controls.
    controls: Clip,
    cache: MeshSequence,
    cache_path: std::path::PathBuf,
    /// Seconds of every frame that both files have, and its place in the cache.
    frames: Vec<(f64, usize)>,
    /// Seconds of the animation before the cache's zero.
    shift: f64,
    in_cache: Vec<u32>,
    placement: Placement,
    pub alignment: Alignment,
    pub rate: Option<f32>,
    scratch: Vec<Vec3>,
}

impl Pairs {
    pub fn read(
        config: &ImportConfig,
        mesh: &Path,
        cache: &Path,
        watch: &dyn Watch,
    ) -> Result<Self, JobError> {
        let mut model = skinned(mesh, config, watch)?;
        let clip = animation(&mut model, mesh, config, watch)?;
        let (sequence, times) = cached(cache, config, watch)?;
        let cache_mesh = sequence.mesh.as_ref().ok_or_else(|| JobError::unusable(cache, "has no faces"))?;
        let found = objects::find(&model.mesh, cache_mesh, &config.objects)
            .map_err(|problem| JobError::unusable(mesh, problem))?;
        for note in &found.notes {
            watch.event(Event::Warning { message: note });
        }
        let shared = objects::shared_faces(&model.mesh, cache_mesh, &found);
        let model =
            objects::subset(model, &found.kept).map_err(|problem| JobError::unusable(mesh, problem))?;
        if shared < 0.98 {
            let message = format!(
                "only {:.0} % of the faces of {} are faces of {}: the vertices may be in another order",
                shared * 100.0,
                mesh.display(),
                cache.display()
            );
            watch.event(Event::Warning { message: &message });
        }
        let rig = model_rig("import", &model).map_err(|error| JobError::unusable(mesh, error))?;
        let place = model.clips.iter().position(|other| other.name == clip.name).unwrap_or(0);
        let controls = rig.clips().get(place).cloned();
        let controls = controls.ok_or_else(|| JobError::unusable(mesh, "has no animation"))?;
        let rest = DatasetRest {
            mesh: model.mesh.clone(),
            skeleton: model.skeleton.clone(),
            weights: model.skin.clone(),
        };
        let mut pairs = Self {
            rest,
            specs: rig.specs().clone(),
            rate: sequence.rate,
            cache: sequence,
            cache_path: cache.into(),
            frames: Vec::new(),
            shift: 0.0,
            in_cache: found.in_cache,
            placement: Placement::NONE,
            alignment: Alignment {
                scale: 1.0,
                axes: String::new(),
                offset_frames: 0.0,
                mean_mm: 0.0,
                max_mm: 0.0,
                far: Vec::new(),
                far_count: 0,
            },
            scratch: Vec::new(),
            model,
            clip,
            controls,
        };
        pairs.align(config, &times, watch)?;
        Ok(pairs)
    }

    /// The matched vertices of a frame of the cache, as the cache has them.
    fn cached(&mut self, frame: usize, out: &mut Vec<Vec3>) -> Result<(), JobError> {
        self.cache
            .frames
            .read_into(frame, &mut self.scratch)
            .map_err(ReadError::content(&self.cache_path))?;
        out.clear();
        out.extend(self.in_cache.iter().map(|vertex| self.scratch[*vertex as usize]));
        match out.iter().position(|p| !p.is_finite()) {
            None => Ok(()),
            Some(vertex) => Err(JobError::unusable(
                &self.cache_path,
                format!("frame {frame}: vertex {vertex} is missing (NaN)"),
            )),
        }
    }

    /// Finds scale, axes and offset, says what it found, and keeps the frames that both files have.
    fn align(&mut self, config: &ImportConfig, times: &[f64], watch: &dyn Watch) -> Result<(), JobError> {
        let rate = f64::from(self.clip.rate);
        let turn = config.cache_up.as_deref().map(|up| match up {
            "z" => DMat3::from_cols(DVec3::X, -DVec3::Z, DVec3::Y),
            _ => DMat3::IDENTITY,
        });
        // The cache is in centimetres by its own account, or the user's.
        let scale = config.cache_scale.map(|_| 1.0);
        let count = times.len().min(PROBES);
        let probes: Vec<usize> = (0..count).map(|probe| probe * times.len() / count).collect();
        let mut cached = Vec::new();
        for &frame in &probes {
            let mut points = Vec::new();
            self.cached(frame, &mut points)?;
            cached.push(points);
        }
        let skinned = |shift: f64| -> Vec<Vec<Vec3>> {
            probes.iter().map(|frame| self.model.evaluate_at(&self.clip, times[*frame] + shift)).collect()
        };
        let given = config.offset.map(|offset| offset / rate);
        let mut shift = given.unwrap_or(0.0);
        let poses = Poses { skinned: skinned(shift), cached };
        let mut placement = poses.placement(scale, turn);
        if given.is_none() {
            shift = self.offset(&poses.cached, &placement, &probes, times, rate);
            if shift != 0.0 {
                let poses = Poses { skinned: skinned(shift), cached: poses.cached.clone() };
                placement = poses.placement(scale, turn);
            }
        }
        let poses = Poses { skinned: skinned(shift), cached: poses.cached };
        let (low, high) = self.model.mesh.bounds();
        let size = f64::from(low.distance(high)).max(1e-6);
        let mut nearest = vec![f64::INFINITY; self.in_cache.len()];
        let (mut sum, mut most, mut compared) = (0.0, 0.0f64, 0);
        for (skinned, cached) in poses.skinned.iter().zip(&poses.cached) {
            for ((skinned, cached), nearest) in skinned.iter().zip(cached).zip(&mut nearest) {
                let distance = f64::from(placement.apply(*cached).distance(*skinned));
                (sum, most, compared) = (sum + distance, most.max(distance), compared + 1);
                *nearest = nearest.min(distance);
            }
        }
        // Secondary motion and muscles move vertices by a few hundredths of a character's size, in some frames.
        let far = 0.1 * size;
        let mut list: Vec<(usize, f64)> = nearest
            .iter()
            .enumerate()
            .filter(|(_, d)| **d > far)
            .map(|(vertex, d)| (vertex, d * 10.0))
            .collect();
        list.sort_by(|a, b| b.1.total_cmp(&a.1));
        let far_count = list.len();
        list.truncate(20);
        self.alignment = Alignment {
            scale: placement.scale,
            axes: placement.axes(),
            offset_frames: shift * rate,
            mean_mm: sum / f64::from(compared.max(1)) * 10.0,
            max_mm: most * 10.0,
            far: list,
            far_count,
        };
        self.say(far_count, size, watch)?;
        (self.placement, self.shift) = (placement, shift);
        self.choose(times, rate, watch)
    }

    /// The offset at which the cache follows the bones best, seconds; 0 unless another is clearly better.
    fn offset(
        &self,
        cached: &[Vec<Vec3>],
        placement: &Placement,
        probes: &[usize],
        times: &[f64],
        rate: f64,
    ) -> f64 {
        let step = (self.in_cache.len() / SOME).max(1);
        let some = |points: &[Vec3]| -> Vec<Vec3> { points.iter().step_by(step).copied().collect() };
        let cached: Vec<Vec<Vec3>> = cached
            .iter()
            .map(|points| some(points).into_iter().map(|p| placement.apply(p)).collect())
            .collect();
        // Every moment is evaluated once: probes a whole number of frames apart share them.
        let mut known: std::collections::HashMap<i64, Vec<Vec3>> = std::collections::HashMap::new();
        let mut error = |offset: i64| -> f64 {
            let mut sum = 0.0;
            for (points, frame) in cached.iter().zip(probes) {
                let time = times[*frame] + offset as f64 / rate;
                let key = (time * 1e4).round() as i64;
                let skinned = known
                    .entry(key)
                    .or_insert_with(|| some(&self.model.evaluate_at(&self.clip, time.max(0.0))));
                sum += mean_distance(points, skinned);
            }
            sum / cached.len().max(1) as f64
        };
        let zero = error(0);
        let frames = self.clip.own_frames() as i64;
        let reach = REACH.min(frames);
        let near = (-reach..=reach).map(|offset| (error(offset), offset)).collect::<Vec<_>>();
        // The first frame of the cache may be the first of the animation, wherever both are in time.
        let first = |time: f64| -(time * rate).round() as i64;
        let start = first(times[0]) + (self.start() * rate).round() as i64;
        let near = near.into_iter().chain([(error(start), start)]);
        let best = near.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.abs().cmp(&b.1.abs())));
        match best {
            // A tenth better, and by more than a tenth of a millimetre.
            Some((error, offset)) if error < 0.9 * zero && zero - error > 0.01 => offset as f64 / rate,
            _ => 0.0,
        }
    }

    /// The first key, seconds.
    fn start(&self) -> f64 {
        let bones = self.clip.bones.iter().map(|track| track.track.times());
        let times = bones.chain(self.clip.weights.iter().map(|track| track.track.times()));
        // A track with one key holds it throughout.
        let starts = times.filter(|times| times.len() > 1).map(|times| f64::from(times[0]));
        let start = starts.fold(f64::INFINITY, f64::min);
        if start.is_finite() { start } else { 0.0 }
    }

    fn say(&self, far_count: usize, size: f64, watch: &dyn Watch) -> Result<(), JobError> {
        let found = &self.alignment;
        let message = format!(
            "the cache is laid onto the bones: lengths × {}, axes {}, {} frames later; it is {:.2} mm from linear \
             skinning on average, {:.1} mm at most",
            found.scale, found.axes, found.offset_frames, found.mean_mm, found.max_mm
        );
        watch.event(Event::Note { message: &message });
        if self.model.skin.is_none() {
            return Ok(());
        }
        if 2 * far_count > self.in_cache.len() {
            let problem = format!(
                "does not move as the mesh does: {far_count} of {} vertices are never within {:.0} mm of where their \
                 bones put them. Are the vertices in one order, and the frames of one take? --cache-scale, \
                 --cache-up and --offset say how they lie",
                self.in_cache.len(),
                size
            );
            return Err(JobError::unusable(&self.cache_path, problem));
        }
        if far_count > 0 {
            let some: Vec<String> =
                found.far.iter().take(8).map(|(vertex, mm)| format!("{vertex} ({mm:.0} mm)")).collect();
            let message = format!(
                "{far_count} vertices are far from where their bones put them in every frame: {}",
                some.join(", ")
            );
            watch.event(Event::Warning { message: &message });
        }
        Ok(())
    }

    /// Keeps the frames at which the animation has something to say.
    fn choose(&mut self, times: &[f64], rate: f64, watch: &dyn Watch) -> Result<(), JobError> {
        let (start, end) = (self.start(), self.clip.duration());
        let slack = 0.5 / rate;
        let inside = |time: f64| time + self.shift >= start - slack && time + self.shift <= end + slack;
        let frames = times.iter().enumerate().filter(|(_, time)| inside(**time));
        let frames: Vec<(f64, usize)> = frames.map(|(frame, time)| (*time + self.shift, frame)).collect();
        let lost = times.len() - frames.len();
        if frames.is_empty() {
            let problem = format!(
                "its {} frames, {:.3} to {:.3} s, lie outside of the animation '{}', {start:.3} to {end:.3} s; \
                 --offset lays them over each other",
                times.len(),
                times[0],
                times[times.len() - 1],
                self.clip.name
            );
            return Err(JobError::unusable(&self.cache_path, problem));
        }
        if lost > 0 {
            let message = format!("{lost} frames of the cache lie outside of the animation and are left out");
            watch.event(Event::Warning { message: &message });
        }
        self.frames = frames;
        Ok(())
    }
}

/// The mesh with its skin.
fn skinned(path: &Path, config: &ImportConfig, watch: &dyn Watch) -> Result<Model, JobError> {
    let model = open_model(path, watch)?;
    if model.skeleton.is_none() && config.skeleton.is_none() && model.shapes.is_none() {
        return Err(JobError::unusable(
            path,
            "has neither a skin nor shapes; --skeleton names the file of the bones",
        ));
    }
    Ok(model)
}

/// Times stay those of the file: caches have the same.
fn open_model(path: &Path, watch: &dyn Watch) -> Result<Model, JobError> {
    if Format::of(path) == Some(Format::Fbx) {
        let options = fbx::FbxOptions { file_times: true, ..fbx::FbxOptions::default() };
        let model = fbx::read_with(path, &options)?;
        report(Some(&model.conversion), &model.warnings, path, watch);
        return Ok(model);
    }
    match inputs::open(path, SKINNED, watch)? {
        Scene::Model(model) => Ok(*model),
        other => Err(inputs::wrong_kind(path, &other, SKINNED)),
    }
}

/// The animation: of the file itself, or of the bones' own file, bone by bone of the same name.
fn animation(
    model: &mut Model,
    path: &Path,
    config: &ImportConfig,
    watch: &dyn Watch,
) -> Result<KeyedClip, JobError> {
    if let Some(other) = &config.skeleton {
        let (skeleton, clips) = bones_of(other, watch)?;
        let Some(own) = model.skeleton.clone() else {
            // The mesh has no bones: it takes the file's, and no weights.
            model.skeleton = Some(skeleton);
            model.clips = clips;
            return pick(model, other, config);
        };
        let place: Vec<Option<usize>> = skeleton.bones().iter().map(|bone| own.find(&bone.name)).collect();
        let lost = place.iter().filter(|place| place.is_none()).count();
        let unmoved = own.bones().iter().filter(|bone| skeleton.find(&bone.name).is_none()).count();
        if lost == place.len() {
            return Err(JobError::unusable(
                other,
                format!("no bone of it has the name of one of {}", path.display()),
            ));
        }
        if lost + unmoved > 0 {
            let message = format!(
                "{}: {lost} bones are not in {}, and {unmoved} bones there do not move",
                other.display(),
                path.display()
            );
            watch.event(Event::Warning { message: &message });
        }
        let moved = |clip: KeyedClip| {
            let bones = clip.bones.into_iter().filter_map(|mut track| {
                track.bone = place[track.bone]?;
                Some(track)
            });
            KeyedClip { bones: bones.collect(), weights: Vec::new(), ..clip }
        };
        model.clips = clips.into_iter().map(moved).collect();
        return pick(model, other, config);
    }
    pick(model, path, config)
}

fn bones_of(path: &Path, watch: &dyn Watch) -> Result<(Skeleton, Vec<KeyedClip>), JobError> {
    if Format::of(path) == Some(Format::Fbx) {
        let options = fbx::FbxOptions { file_times: true, ..fbx::FbxOptions::default() };
        let motion = fbx::read_bones(path, &options)?;
        report(Some(&motion.conversion), &motion.warnings, path, watch);
        return Ok((motion.skeleton, motion.clips));
    }
    let model = open_model(path, watch)?;
    let skeleton = model.skeleton.ok_or_else(|| JobError::unusable(path, "has no bones"))?;
    Ok((skeleton, model.clips))
}

/// The clip that is named, or the longest.
fn pick(model: &Model, path: &Path, config: &ImportConfig) -> Result<KeyedClip, JobError> {
    if let Some(name) = &config.clip {
        let known = model.clips.iter().map(|clip| clip.name.as_str());
        let found = model.find_clip(name).cloned();
        return found.ok_or_else(|| JobError::unknown_clip(&path.to_string_lossy(), name, known));
    }
    let longest = model.clips.iter().max_by(|a, b| a.duration().total_cmp(&b.duration()));
    longest
        .cloned()
        .ok_or_else(|| JobError::unusable(path, "has no animation; --skeleton names the file of the curves"))
}

/// The cache, and the time of every frame.
fn cached(
    path: &Path,
    config: &ImportConfig,
    watch: &dyn Watch,
) -> Result<(MeshSequence, Vec<f64>), JobError> {
    let sequence = match Format::of(path) {
        Some(Format::Alembic) => {
            let options = AlembicOptions { cm_per_unit: config.cache_scale, ..AlembicOptions::default() };
            let sequence: MeshSequence = AlembicCache::open(path, &options)?.into();
            report(Some(&sequence.conversion), &sequence.warnings, path, watch);
            sequence
        }
        _ => match inputs::open(path, CACHED, watch)? {
            Scene::Sequence(mut sequence) => {
                if let Some(scale) = config.cache_scale {
                    rescale(&mut sequence, scale);
                }
                *sequence
            }
            other => return Err(inputs::wrong_kind(path, &other, CACHED)),
        },
    };
    let times = match &sequence.frames {
        Frames::Alembic(cache) => cache.times().to_vec(),
        Frames::Memory(frames) => {
            let rate = f64::from(sequence.rate.unwrap_or(30.0));
            (0..frames.len()).map(|frame| frame as f64 / rate).collect()
        }
    };
    Ok((sequence, times))
}

/// Frames in memory in the user's unit instead of their own.
fn rescale(sequence: &mut MeshSequence, scale: f32) {
    let factor = scale / sequence.conversion.scale;
    if let Frames::Memory(frames) = &mut sequence.frames {
        frames.iter_mut().flatten().for_each(|p| *p *= factor);
    }
    sequence.conversion =
        Conversion { scale, reason: "given by the caller".into(), ..sequence.conversion.clone() };
}

impl Source for Pairs {
    fn rest(&self) -> &DatasetRest {
        &self.rest
    }

    fn specs(&self) -> &ControlSpecs {
        &self.specs
    }

    fn len(&self) -> usize {
        self.frames.len()
    }

    fn pose(&mut self, index: usize, out: &mut Pose) -> Result<(), JobError> {
        let (time, frame) = self.frames[index];
        let failed = |error: &dyn ToString| JobError::setting(format!("frame {frame}"), error.to_string());
        let mut points = std::mem::take(&mut out.vertices);
        self.cached(frame, &mut points)?;
        points.iter_mut().for_each(|p| *p = self.placement.apply(*p));
        out.vertices = points;
        out.bones = GlobalPose::default();
        if let Some(skeleton) = &self.model.skeleton {
            let pose: JointPose = self.clip.pose_at(time, &self.model.rest_pose());
            skeleton.forward(&pose, &mut out.bones).map_err(|error| failed(&error))?;
        }
        let controls = self.controls.at([time], &self.specs).map_err(|error| failed(&error))?;
        out.controls = controls.into_iter().next().unwrap_or_default();
        Ok(())
    }
}
