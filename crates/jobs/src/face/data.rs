//! Face twins from disk into memory.

use crate::JobError;
use crate::twin::open_twin;
use std::path::Path;
use std::sync::Arc;
use understudy_runtime::Twin;
use understudy_runtime::face::FaceTwin;

/// Reads a face twin; every error names the file.
pub fn open_face_twin(path: &Path) -> Result<Arc<FaceTwin>, JobError> {
    match open_twin(path)? {
        Twin::Face(twin) => Ok(twin),
        Twin::Body(_) => Err(JobError::unusable(path, "is a twin of a body; one of a face is needed")),
    }
}
