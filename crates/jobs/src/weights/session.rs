//! Solved weights that stay open: painted by handle and dragged, as the studio's tab does. They come from the arrays that
//! `weights --npz` writes, which are in the order of the mesh's vertices (a GLB splits them at seams).

use super::skin_of;
use crate::{JobError, Watch, rigs};
use std::path::Path;
use understudy_core::{Mesh, SkinWeights, Vec3};
use understudy_io::npz::NpzReader;
use understudy_io::{Dim, ReadError};
use understudy_runtime::drag::{Drag, DragRig, DragSettings};

/// Weights of a mesh.
pub struct WeightsSession {
    mesh: Mesh,
    names: Vec<String>,
    places: Vec<Vec3>,
    /// `[V][handles]`.
    values: Vec<f32>,
    skin: SkinWeights,
}

/// A drag of its handles.
pub struct Dragging {
    rig: DragRig,
    drag: Drag,
    held: Vec<usize>,
    targets: Vec<Vec3>,
}

impl WeightsSession {
    /// The mesh of a rig with the arrays of a file.
    pub fn open(rig: &str, file: &Path, watch: &dyn Watch) -> Result<Self, JobError> {
        Self::of_mesh(rigs::open(rig, watch)?.rig.mesh().clone(), file)
    }

    /// A mesh with the arrays of a file.
    pub fn of_mesh(mesh: Mesh, file: &Path) -> Result<Self, JobError> {
        let wrong = ReadError::content(file);
        let archive = NpzReader::read(file)?;
        let read = || {
            let names = archive.strings("names", &[Dim::Any("handles")])?.data;
            let shape = [Dim::Exactly(mesh.vertex_count()), Dim::Exactly(names.len())];
            let values = archive.f32("weights", &shape)?.data;
            let places = archive.f32("places", &[Dim::Exactly(names.len()), Dim::Exactly(3)])?.data;
            Ok((names, values, places))
        };
        let (names, values, places) = read().map_err(wrong)?;
        if names.is_empty() || names.len() > usize::from(u16::MAX) {
            return Err(JobError::unusable(file, format!("{} handles", names.len())));
        }
        let wide: Vec<f64> = values.iter().map(|w| f64::from(*w)).collect();
        let skin = skin_of(&wide, names.len()).map_err(|error| JobError::unusable(file, error))?;
        let places = places.chunks_exact(3).map(|p| Vec3::new(p[0], p[1], p[2])).collect();
        Ok(Self { mesh, names, places, values, skin })
    }

    /// Names of the handles.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Where they rest, cm.
    pub fn places(&self) -> &[Vec3] {
        &self.places
    }

    /// The mesh at rest.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Weights of one handle, one per vertex.
    pub fn map(&self, handle: usize) -> Option<impl Iterator<Item = f32> + '_> {
        let columns = self.names.len();
        (handle < columns).then(|| self.values.chunks_exact(columns).map(move |row| row[handle]))
    }

    /// Starts a drag; handles of `free` go where the others leave them.
    pub fn drag(&self, free: &[usize]) -> Result<Dragging, JobError> {
        if let Some(handle) = free.iter().find(|handle| **handle >= self.names.len()) {
            return Err(JobError::setting("free", format!("there is no handle {handle}")));
        }
        let held: Vec<usize> = (0..self.names.len()).filter(|handle| !free.contains(handle)).collect();
        let rig = DragRig::new(&self.mesh, &self.skin, &self.places, &held, &DragSettings::default())
            .map_err(|error| JobError::setting("drag", error))?;
        let drag = rig.start();
        Ok(Dragging { rig, drag, targets: vec![Vec3::ZERO; held.len()], held })
    }
}

impl Dragging {
    /// Moves handles to `places`, one per handle (those of free ones are not looked at), and poses the mesh.
    pub fn update(&mut self, places: &[Vec3], out: &mut Vec<Vec3>) -> Result<(), JobError> {
        if places.len() != self.rig.handle_count() {
            let problem = format!("{} positions for {} handles", places.len(), self.rig.handle_count());
            return Err(JobError::setting("drag", problem));
        }
        self.targets.iter_mut().zip(&self.held).for_each(|(target, handle)| *target = places[*handle]);
        out.resize(self.rig.vertex_count(), Vec3::ZERO);
        self.drag.update(&self.rig, &self.targets, out).map_err(|error| JobError::setting("drag", error))
    }
}
