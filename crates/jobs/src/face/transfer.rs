//! `transfer`: a face twin on another mesh with the same texture coordinates.

use super::data::open_face_twin;
use crate::outputs::check_file;
use crate::{Event, JobError, Watch};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use understudy_learn::face::transfer::transfer;
use understudy_runtime::face::file;

/// What to transfer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransferConfig {
    /// The twin's file.
    pub twin: PathBuf,
    /// The other mesh, OBJ.
    pub mesh: PathBuf,
    /// The new twin's file.
    pub output: PathBuf,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TransferReport {
    /// The new twin's file.
    pub output: PathBuf,
    /// Its size.
    pub bytes: usize,
    /// Vertices of the old mesh.
    pub from_vertices: usize,
    /// Vertices of the new mesh.
    pub to_vertices: usize,
    /// Vertices that lie outside the old texture and follow what is nearest.
    pub outside: usize,
}

/// Transfers a twin and writes it.
pub fn transfer_face(config: &TransferConfig, watch: &dyn Watch) -> Result<TransferReport, JobError> {
    check_file(&config.output)?;
    let twin = open_face_twin(&config.twin)?;
    let read = understudy_io::obj::read(&config.mesh)?;
    for message in &read.warnings {
        watch.event(Event::Warning { message });
    }
    let mesh = read.mesh;
    let moved = transfer(twin.parts(), &mesh).map_err(|error| JobError::unusable(&config.mesh, error))?;
    if moved.outside > 0 {
        let message = format!("{} vertices lie outside the twin's texture", moved.outside);
        watch.event(Event::Warning { message: &message });
    }
    let unusable = |error: file::FileError| JobError::unusable(&config.output, error);
    let bytes = file::to_bytes(&moved.parts, twin.precision()).map_err(unusable)?;
    file::parse(&bytes).map_err(unusable)?;
    understudy_io::write_atomic(&config.output, &bytes)?;
    Ok(TransferReport {
        output: config.output.clone(),
        bytes: bytes.len(),
        from_vertices: twin.vertex_count(),
        to_vertices: mesh.vertex_count(),
        outside: moved.outside,
    })
}
