//! `export --onnx` for face twins: the whole twin as one graph.

use super::data::open_face_twin;
use super::onnx::face_graph;
use crate::JobError;
use crate::outputs::check_file;
use serde::Serialize;
use std::path::PathBuf;
use understudy_io::write_atomic;

/// What was exported.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExportFaceReport {
    /// The file.
    pub output: PathBuf,
    /// Its size.
    pub bytes: usize,
    /// Names of the input `controls`, in order.
    pub controls: Vec<String>,
    /// Shape of the output `vertices`.
    pub vertices: [usize; 2],
}

/// Writes the ONNX graph.
pub fn export_face_onnx(config: &crate::twin::export::ExportConfig) -> Result<ExportFaceReport, JobError> {
    check_file(&config.output, &[&config.twin])?;
    let twin = open_face_twin(&config.twin)?;
    let bytes = face_graph(&twin.parts());
    write_atomic(&config.output, &bytes)?;
    Ok(ExportFaceReport {
        output: config.output.clone(),
        bytes: bytes.len(),
        controls: twin.header().inputs.controls.iter().map(|spec| spec.name.clone()).collect(),
        vertices: [twin.vertex_count(), 3],
    })
}
