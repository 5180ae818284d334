//! `export --onnx`: the whole of a twin as an ONNX graph for other programs. The fitted skin alone, for
//! engines that run no code, is in `export_glb`.

use super::data::open_body_twin;
use super::onnx::body_graph;
use crate::JobError;
use crate::outputs::{check_distinct, check_file};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use understudy_io::write_atomic;

/// What to export.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExportConfig {
    /// The twin's file.
    pub twin: PathBuf,
    /// The ONNX file.
    pub output: PathBuf,
}

/// What was exported.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExportReport {
    /// The file.
    pub output: PathBuf,
    /// Its size.
    pub bytes: usize,
    /// Names of the bones in the order of the input `bones`, `[bones, 3, 4]`.
    pub bones: Vec<String>,
    /// Names of the controls in the order of the input `controls`, which is left out where there are none.
    pub controls: Vec<String>,
    /// Shape of the output `vertices`.
    pub vertices: [usize; 2],
}

/// Fails where an export would replace its own input, or write two formats into one file.
pub fn check_outputs(twin: &Path, onnx: Option<&Path>, glb: Option<&Path>) -> Result<(), JobError> {
    for output in [onnx, glb].into_iter().flatten() {
        check_file(output, &[twin])?;
    }
    match (onnx, glb) {
        (Some(onnx), Some(glb)) => check_distinct(&[("onnx", onnx), ("glb", glb)]),
        _ => Ok(()),
    }
}

/// Writes the ONNX graph.
pub fn export_onnx(config: &ExportConfig) -> Result<ExportReport, JobError> {
    check_file(&config.output, &[&config.twin])?;
    let twin = open_body_twin(&config.twin)?;
    let bytes = body_graph(&twin.parts());
    write_atomic(&config.output, &bytes)?;
    Ok(ExportReport {
        output: config.output.clone(),
        bytes: bytes.len(),
        bones: twin.header().inputs.bones.iter().map(|bone| bone.name.clone()).collect(),
        controls: twin.header().inputs.controls.iter().map(|control| control.name.clone()).collect(),
        vertices: [twin.vertex_count(), 3],
    })
}
