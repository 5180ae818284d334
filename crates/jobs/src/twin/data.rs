//! Datasets and twins from disk into memory.

use crate::rigs::Recorded;
use crate::{Event, JobError, Watch};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use understudy_core::{Affine3A, Bone, Mesh, Skeleton, Vec3};
use understudy_io::dataset::{DatasetHeader, DatasetReader};
use understudy_learn::body::Poses;
use understudy_runtime::Twin;
use understudy_runtime::body::BodyTwin;

/// A whole dataset in memory.
pub(crate) struct Loaded {
    pub header: DatasetHeader,
    pub mesh: Mesh,
    pub skeleton: Skeleton,
    bones: Vec<Affine3A>,
    controls: Vec<f32>,
    vertices: Vec<Vec3>,
}

impl Loaded {
    /// Reads all poses of a dataset whose rig has bones; hashes are checked on the way.
    pub fn read(folder: &Path, watch: &dyn Watch) -> Result<Self, JobError> {
        Self::read_some(folder, usize::MAX, watch)
    }

    /// Reads at most `most` poses, spread evenly: memory for those alone.
    pub fn read_some(folder: &Path, most: usize, watch: &dyn Watch) -> Result<Self, JobError> {
        let reader = DatasetReader::open(folder)?;
        let rest = reader.rest();
        let Some(skeleton) = rest.skeleton.clone() else {
            return Err(JobError::unusable(
                folder,
                "the rig of this dataset has no bones; a body twin needs them",
            ));
        };
        let (mut bones, mut controls, mut vertices) = (Vec::new(), Vec::new(), Vec::new());
        let poses = reader.header().poses;
        let count = poses.min(most);
        let chosen: BTreeSet<usize> = (0..count).map(|i| i * poses / count).collect();
        vertices.reserve_exact(count * rest.mesh.vertex_count());
        let what = format!("reading {}", folder.display());
        watch.event(Event::Started { what: &what, total: reader.chunk_count() as u64, unit: "chunks" });
        for index in 0..reader.chunk_count() {
            let chunk = reader.chunk(index)?;
            let start = reader.header().chunk_poses(index).start;
            for pose in (0..chunk.len()).filter(|pose| chosen.contains(&(start + pose))) {
                controls.extend(chunk.controls_of(pose).0);
                bones.extend(chunk.skeleton_of(pose).0);
                vertices.extend(chunk.vertices_of(pose));
            }
            watch.event(Event::Step { done: index as u64 + 1 });
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
        watch.event(Event::Finished);
        let (header, mesh) = (reader.header().clone(), rest.mesh.clone());
        Ok(Self { header, mesh, skeleton, bones, controls, vertices })
    }

    /// Reads at most `most` poses of a dataset that a twin is to be held against: of its mesh, with its bones in its
    /// order.
    pub fn read_for(
        twin: &BodyTwin,
        folder: &Path,
        most: usize,
        watch: &dyn Watch,
    ) -> Result<Self, JobError> {
        let mut loaded = Self::read_some(folder, most, watch)?;
        if loaded.mesh.topology_hash() != twin.header().topology_hash {
            let want = (twin.vertex_count(), twin.header().topology_hash);
            return Err(JobError::other_topology(folder, &loaded.mesh, "the twin's", want));
        }
        loaded.match_twin(twin).map_err(|problem| JobError::unusable(folder, problem))?;
        Ok(loaded)
    }

    /// Puts the bones into the twin's order, by name. Says what does not fit.
    fn match_twin(&mut self, twin: &BodyTwin) -> Result<(), String> {
        let wanted = &twin.header().inputs.bones;
        let find = |name: &str| {
            self.skeleton.find(name).ok_or_else(|| format!("it has no bone '{name}', which the twin needs"))
        };
        let order = wanted.iter().map(|bone| find(&bone.name)).collect::<Result<Vec<usize>, String>>()?;
        let known = |name: &str| wanted.iter().any(|bone| bone.name == name);
        if let Some(other) = self.skeleton.bones().iter().find(|bone| !known(&bone.name)) {
            return Err(format!("it has a bone '{}', which the twin does not know", other.name));
        }
        if order.iter().enumerate().any(|(new, old)| new != *old) {
            self.reorder(&order)?;
        }
        for (index, own) in twin.parts().rest_bones.iter().enumerate() {
            // Twins were bound where the skeleton rests before they were bound where the mesh is.
            let bound = self.skeleton.inverse_bind()[index].inverse();
            if !(same_place(own, &bound) || same_place(own, &self.skeleton.rest_global()[index])) {
                let name = &wanted[index].name;
                return Err(format!(
                    "its bone '{name}' is bound elsewhere, or has other axes, than the twin's"
                ));
            }
        }
        Ok(())
    }

    fn reorder(&mut self, order: &[usize]) -> Result<(), String> {
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, old)| place[*old] = new);
        let bone = |old: &usize| {
            let bone = &self.skeleton.bones()[*old];
            Bone { parent: bone.parent.map(|parent| place[parent]), ..bone.clone() }
        };
        let inverse_bind = order.iter().map(|old| self.skeleton.inverse_bind()[*old]).collect();
        let skeleton = Skeleton::new(order.iter().map(bone).collect());
        let skeleton = skeleton.and_then(|skeleton| skeleton.with_inverse_bind(inverse_bind));
        self.skeleton = skeleton.map_err(|error| error.to_string())?;
        for pose in self.bones.chunks_exact_mut(order.len()) {
            let old = pose.to_vec();
            pose.iter_mut().zip(order).for_each(|(bone, from)| *bone = old[*from]);
        }
        Ok(())
    }

    /// What the rig is recognised by.
    pub fn recorded<'a>(&'a self, folder: &'a Path) -> Recorded<'a> {
        Recorded {
            folder,
            header: &self.header,
            mesh: &self.mesh,
            skeleton: Some(&self.skeleton),
            controls: &self.controls,
            vertices: &self.vertices,
        }
    }

    /// As training wants it. Gives the arrays away: they are the bulk of the memory.
    pub fn poses(&mut self) -> Poses<'_> {
        Poses {
            mesh: &self.mesh,
            skeleton: &self.skeleton,
            bones: std::mem::take(&mut self.bones),
            controls: std::mem::take(&mut self.controls),
            specs: self.header.controls.clone(),
            vertices: std::mem::take(&mut self.vertices),
        }
    }
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

/// Reads a body twin.
pub fn open_body_twin(path: &Path) -> Result<Arc<BodyTwin>, JobError> {
    match open_twin(path)? {
        Twin::Body(twin) => Ok(twin),
        Twin::Face(_) => Err(JobError::unusable(path, "is a twin of a face; one of a body is needed")),
    }
}
