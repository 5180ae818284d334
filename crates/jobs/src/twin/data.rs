//! Datasets and twins from disk into memory.

use crate::rigs::{self, Recorded};
use crate::{Event, JobError, Watch};
use std::path::Path;
use understudy_core::{Affine3A, Bone, Skeleton, SkeletonError, SkinError, SkinWeights, Vec3};
use understudy_io::dataset::{DatasetHeader, DatasetReader};
use understudy_learn::{Recording, RecordingError};
use understudy_rigs::Rig;
use understudy_runtime::Twin;

/// What the names of guides begin with in a dataset.
pub(crate) const GUIDE: &str = "guide:";

/// Bones that move no vertex, apart from those that do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guides {
    pub names: Vec<String>,
    /// World transforms at rest, `[G]`.
    pub rest: Vec<Affine3A>,
    /// World transforms, `[N · G]`.
    pub bones: Vec<Affine3A>,
}

impl Guides {
    /// The bones that move vertices, and the guides behind them.
    fn apart(skeleton: &Skeleton) -> Result<(Option<Skeleton>, Self), SkeletonError> {
        let own = skeleton.bones().iter().take_while(|bone| !bone.name.starts_with(GUIDE)).count();
        if own == skeleton.len() {
            return Ok((Some(skeleton.clone()), Self::default()));
        }
        let names = skeleton.bones()[own..].iter().map(|bone| bone.name.clone()).collect();
        let rest = skeleton.inverse_bind()[own..].iter().map(Affine3A::inverse).collect();
        Ok((Some(skeleton.first(own)?), Self { names, rest, bones: Vec::new() }))
    }
}

/// Weights of the same bones where others stand behind them, or are taken away.
pub(crate) fn among_bones(weights: &SkinWeights, count: usize) -> Result<SkinWeights, SkinError> {
    let (offsets, bones, values) = weights.compressed();
    SkinWeights::from_compressed(offsets.to_vec(), bones.to_vec(), values.to_vec(), count)
}

/// A dataset in memory, of any rig.
pub(crate) struct Loaded {
    /// What was sampled and how.
    pub header: DatasetHeader,
    /// The poses.
    pub recording: Recording,
    /// What the rig shows besides its bones, which explains these.
    pub guides: Guides,
    /// The rig's own skin, where it shows one, for the recording's bones.
    pub weights: Option<SkinWeights>,
    /// Milliseconds per pose of the rig, where it was another program.
    pub rig_ms: Option<f64>,
}

impl Loaded {
    /// Reads all poses of a dataset; hashes are checked on the way.
    pub fn read(folder: &Path, watch: &dyn Watch) -> Result<Self, JobError> {
        Self::read_some(folder, usize::MAX, watch)
    }

    /// Reads at most `most` poses, spread evenly: memory for those alone.
    pub fn read_some(folder: &Path, most: usize, watch: &dyn Watch) -> Result<Self, JobError> {
        let reader = DatasetReader::open(folder)?;
        let (rest, header) = (reader.rest(), reader.header().clone());
        let count = header.poses.min(most);
        let mut chosen = (0..count).map(|index| index * header.poses / count).peekable();
        let (skeleton, mut guides) = match &rest.skeleton {
            Some(skeleton) => Guides::apart(skeleton).map_err(|error| JobError::unusable(folder, error))?,
            None => (None, Guides::default()),
        };
        let own = skeleton.as_ref().map_or(0, Skeleton::len);
        let mut recording = Recording {
            mesh: rest.mesh.clone(),
            skeleton,
            specs: header.controls.clone(),
            bones: Vec::new(),
            controls: Vec::with_capacity(count * header.controls.len()),
            vertices: Vec::with_capacity(count * rest.mesh.vertex_count()),
        };
        let what = format!("reading {}", folder.display());
        watch.event(Event::Started { what: &what, total: reader.chunk_count() as u64, unit: "chunks" });
        for index in 0..reader.chunk_count() {
            let range = header.chunk_poses(index);
            if chosen.peek().is_some_and(|pose| range.contains(pose)) {
                let chunk = reader.chunk(index)?;
                let [width, height] = [chunk.poses().len(), chunk.vertices().len()].map(|n| n / chunk.len());
                while let Some(pose) = chosen.next_if(|pose| range.contains(pose)) {
                    let place = pose - range.start;
                    recording.controls.extend_from_slice(&chunk.poses()[place * width..(place + 1) * width]);
                    let mut bones = chunk.skeleton_of(place).0;
                    guides.bones.extend(bones.drain(own.min(bones.len())..));
                    recording.bones.append(&mut bones);
                    let flat = &chunk.vertices()[place * height..(place + 1) * height];
                    recording.vertices.extend(flat.chunks_exact(3).map(Vec3::from_slice));
                }
            }
            watch.event(Event::Step { done: index as u64 + 1 });
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
        watch.event(Event::Finished);
        let weights = rest.weights.as_ref().map(|weights| among_bones(weights, own));
        let weights = weights.transpose().map_err(|error| JobError::unusable(folder, error))?;
        Ok(Self { header, weights, recording, guides, rig_ms: reader.rig_ms() })
    }

    /// Reads at most `most` poses of a dataset that a twin is to be held against: of its mesh, with its bones in its
    /// order.
    pub fn read_for(twin: &Twin, folder: &Path, most: usize, watch: &dyn Watch) -> Result<Self, JobError> {
        let mut loaded = Self::read_some(folder, most, watch)?;
        if loaded.recording.mesh.topology_hash() != twin.header().topology_hash {
            let want = (twin.vertex_count(), twin.header().topology_hash);
            return Err(JobError::other_topology(folder, &loaded.recording.mesh, "the twin's", want));
        }
        let names = |recording: &Recording| -> Vec<String> {
            let bones = recording.skeleton.iter().flat_map(|skeleton| skeleton.bones());
            bones.map(|bone| bone.name.clone()).collect()
        };
        let before = names(&loaded.recording);
        match_twin(twin, &mut loaded.recording).map_err(|problem| JobError::unusable(folder, problem))?;
        let after = names(&loaded.recording);
        if before != after {
            loaded.weights = loaded.weights.and_then(|weights| moved_weights(&weights, &before, &after));
        }
        Ok(loaded)
    }

    /// What the rig is recognised by.
    pub fn recorded<'a>(&'a self, folder: &'a Path) -> Recorded<'a> {
        Recorded { folder, header: &self.header, recording: &self.recording }
    }
}

/// All poses of a dataset, for studies that learn from them more than once.
pub fn read_recording(folder: &Path, watch: &dyn Watch) -> Result<Recording, JobError> {
    Ok(Loaded::read(folder, watch)?.recording)
}

/// Whether a twin can be posed by what was recorded; puts the bones into its order, by name. Says what does not fit.
pub(crate) fn match_twin(twin: &Twin, recording: &mut Recording) -> Result<(), String> {
    let inputs = &twin.header().inputs;
    if let Some(control) =
        inputs.controls.iter().find(|control| recording.specs.find(&control.name).is_none())
    {
        return Err(format!("it has no control '{}', which the twin needs", control.name));
    }
    if inputs.bones.is_empty() {
        // Whatever moves the mesh must be a control that the twin knows.
        let stranger = recording.specs.iter().find(|spec| inputs.controls.find(&spec.name).is_none());
        return match stranger {
            Some(spec) => Err(format!("it has a control '{}', which the twin does not know", spec.name)),
            None => Ok(()),
        };
    }
    let Some(skeleton) = recording.skeleton.take() else {
        return Err(RecordingError::NoBones.to_string());
    };
    let find = |name: &str| {
        skeleton.find(name).ok_or_else(|| format!("it has no bone '{name}', which the twin needs"))
    };
    let order = inputs.bones.iter().map(|bone| find(&bone.name)).collect::<Result<Vec<usize>, String>>()?;
    let known = |name: &str| inputs.bones.iter().any(|bone| bone.name == name);
    if let Some(other) = skeleton.bones().iter().find(|bone| !known(&bone.name)) {
        return Err(format!("it has a bone '{}', which the twin does not know", other.name));
    }
    let skeleton = match order.iter().enumerate().any(|(new, old)| new != *old) {
        true => reorder(&skeleton, &mut recording.bones, &order)?,
        false => skeleton,
    };
    for (index, own) in twin.rest_bones().iter().enumerate() {
        // Twins were bound where the skeleton rests before they were bound where the mesh is.
        let bound = skeleton.inverse_bind()[index].inverse();
        if !(same_place(own, &bound) || same_place(own, &skeleton.rest_global()[index])) {
            let name = &inputs.bones[index].name;
            return Err(format!("its bone '{name}' is bound elsewhere, or has other axes, than the twin's"));
        }
    }
    recording.skeleton = Some(skeleton);
    Ok(())
}

/// Skin weights of bones in another order; `None` where one is missing.
fn moved_weights(weights: &SkinWeights, before: &[String], after: &[String]) -> Option<SkinWeights> {
    let place = |name: &String| after.iter().position(|other| other == name);
    let places: Vec<usize> = before.iter().map(place).collect::<Option<_>>()?;
    let row = |vertex: usize| weights.row(vertex).map(|(bone, w)| (places[bone] as u16, w)).collect();
    let rows: Vec<Vec<(u16, f32)>> = (0..weights.vertex_count()).map(row).collect();
    SkinWeights::from_rows(&rows, after.len()).ok()
}

/// The bones in another order, and in every pose.
fn reorder(skeleton: &Skeleton, bones: &mut [Affine3A], order: &[usize]) -> Result<Skeleton, String> {
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(new, old)| place[*old] = new);
    let bone = |old: &usize| {
        let bone = &skeleton.bones()[*old];
        Bone { parent: bone.parent.map(|parent| place[parent]), ..bone.clone() }
    };
    for pose in bones.chunks_exact_mut(order.len()) {
        let old = pose.to_vec();
        pose.iter_mut().zip(order).for_each(|(bone, from)| *bone = old[*from]);
    }
    let inverse_bind = order.iter().map(|old| skeleton.inverse_bind()[*old]).collect();
    let reordered = Skeleton::new(order.iter().map(bone).collect());
    let reordered = reordered.and_then(|skeleton| skeleton.with_inverse_bind(inverse_bind));
    reordered.map_err(|error| error.to_string())
}

/// Whether two transforms of a bone are the same but for rounding.
fn same_place(a: &Affine3A, b: &Affine3A) -> bool {
    /// A millimetre, and a hundredth of an axis.
    const LENGTH: f32 = 0.1;
    const AXES: f32 = 0.01;
    let size = a.matrix3.x_axis.length().max(a.matrix3.y_axis.length()).max(a.matrix3.z_axis.length());
    a.translation.distance(b.translation) < LENGTH && a.matrix3.abs_diff_eq(b.matrix3, AXES * size)
}

/// Reads a twin of any kind; every error names the file.
pub fn open_twin(path: &Path) -> Result<Twin, JobError> {
    let bytes = understudy_io::read_bytes(path)?;
    Twin::parse(&bytes).map_err(|error| JobError::unusable(path, error))
}

/// The rig that a twin was learned from, where it can be opened and still has the same topology: as it was typed when the
/// twin was learned, or beside the twin's file.
pub(crate) fn live_rig(twin: &Twin, path: &Path) -> Option<Box<dyn Rig>> {
    let own = &twin.header().rig;
    let beside = path.parent().map(|folder| folder.join(own).to_string_lossy().into_owned());
    let places = [Some(own.clone()), beside].into_iter().flatten();
    let recorded = places.filter_map(|place| rigs::open_recorded(&place, &crate::Silent).ok());
    let own = twin.header().topology_hash;
    recorded.map(|open| open.rig).find(|rig| rig.mesh().topology_hash() == own)
}

/// The rig that a user names; an error where it cannot be opened or is not the twin's.
pub(crate) fn named_rig(twin: &Twin, name: &str, watch: &dyn Watch) -> Result<Box<dyn Rig>, JobError> {
    let rig = rigs::open(name, watch)?.rig;
    if rig.mesh().topology_hash() != twin.header().topology_hash {
        let want = (twin.vertex_count(), twin.header().topology_hash);
        return Err(JobError::other_topology(name, rig.mesh(), "the twin's", want));
    }
    Ok(rig)
}

/// The rig that a user names, as [`named_rig`]; where none is named, [`live_rig`].
pub(crate) fn named_or_live_rig(
    twin: &Twin,
    path: &Path,
    named: Option<&str>,
    watch: &dyn Watch,
) -> Result<Option<Box<dyn Rig>>, JobError> {
    match named {
        Some(name) => named_rig(twin, name, watch).map(Some),
        None => Ok(live_rig(twin, path)),
    }
}
