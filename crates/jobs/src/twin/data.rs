//! Datasets and twins from disk into memory.

use crate::{Event, JobError, Watch};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use understudy_core::{Affine3A, Mesh, Skeleton, Vec3};
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
