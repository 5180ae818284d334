//! Datasets and face twins from disk into memory.

use crate::rigs::Recorded;
use crate::twin::open_twin;
use crate::{Event, JobError, Watch};
use std::path::Path;
use std::sync::Arc;
use understudy_core::{Mesh, Vec3};
use understudy_io::dataset::{DatasetHeader, DatasetReader};
use understudy_learn::face::FacePoses;
use understudy_runtime::Twin;
use understudy_runtime::face::FaceTwin;

/// A whole dataset in memory: any rig will do, with or without bones.
pub(crate) struct Loaded {
    pub header: DatasetHeader,
    pub mesh: Mesh,
    controls: Vec<f32>,
    vertices: Vec<Vec3>,
}

impl Loaded {
    /// Reads all chunks; hashes are checked on the way.
    pub fn read(folder: &Path, watch: &dyn Watch) -> Result<Self, JobError> {
        Self::read_some(folder, usize::MAX, watch)
    }

    /// Reads at most so many poses, spread evenly.
    pub fn read_some(folder: &Path, most: usize, watch: &dyn Watch) -> Result<Self, JobError> {
        let reader = DatasetReader::open(folder)?;
        let rest = reader.rest();
        let poses = reader.header().poses;
        let count = poses.min(most);
        let mut chosen = (0..count).map(|index| index * poses / count).peekable();
        let (mut controls, mut vertices) = (Vec::new(), Vec::new());
        vertices.reserve_exact(count * rest.mesh.vertex_count());
        let what = format!("reading {}", folder.display());
        watch.event(Event::Started { what: &what, total: reader.chunk_count() as u64, unit: "chunks" });
        for index in 0..reader.chunk_count() {
            let range = reader.header().chunk_poses(index);
            if chosen.peek().is_some_and(|pose| range.contains(pose)) {
                let chunk = reader.chunk(index)?;
                let [width, height] = [chunk.poses().len(), chunk.vertices().len()].map(|n| n / chunk.len());
                while let Some(pose) = chosen.next_if(|pose| range.contains(pose)) {
                    let place = pose - range.start;
                    controls.extend_from_slice(&chunk.poses()[place * width..(place + 1) * width]);
                    let flat = &chunk.vertices()[place * height..(place + 1) * height];
                    vertices.extend(flat.chunks_exact(3).map(Vec3::from_slice));
                }
            }
            watch.event(Event::Step { done: index as u64 + 1 });
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
        watch.event(Event::Finished);
        Ok(Self { header: reader.header().clone(), mesh: rest.mesh.clone(), controls, vertices })
    }

    /// What the rig is recognised by.
    pub fn recorded<'a>(&'a self, folder: &'a Path) -> Recorded<'a> {
        Recorded {
            folder,
            header: &self.header,
            mesh: &self.mesh,
            skeleton: None,
            controls: &self.controls,
            vertices: &self.vertices,
        }
    }

    /// As training wants it. Gives the arrays away: they are the bulk of the memory.
    pub fn poses(&mut self) -> FacePoses<'_> {
        FacePoses {
            mesh: &self.mesh,
            specs: &self.header.controls,
            controls: std::mem::take(&mut self.controls),
            vertices: std::mem::take(&mut self.vertices),
        }
    }
}

/// Reads a face twin; every error names the file.
pub fn open_face_twin(path: &Path) -> Result<Arc<FaceTwin>, JobError> {
    match open_twin(path)? {
        Twin::Face(twin) => Ok(twin),
        Twin::Body(_) => Err(JobError::unusable(path, "is a twin of a body; one of a face is needed")),
    }
}
