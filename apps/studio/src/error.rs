//! What can go wrong: before the server runs ([`StudioError`]), and with one request ([`Refusal`]), which is answered and
//! forgotten.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use std::path::PathBuf;
use thiserror::Error;
use understudy_jobs::JobError;

/// Why the studio does not run.
#[derive(Debug, Error)]
pub enum StudioError {
    /// Another program listens there.
    #[error("--port: {port} is taken ({error}); leave --port out to take a free one")]
    Port {
        /// What was asked for.
        port: u16,
        /// What the system says.
        error: std::io::Error,
    },
    /// The project's folder is no folder, or cannot be read.
    #[error("{path}: {error}", path = path.display())]
    Project {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The system did not give what was needed.
    #[error("the studio cannot run: {0}")]
    Machine(String),
}

/// Why a request is refused: a status and one line.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub status: StatusCode,
    pub message: String,
}

impl Refusal {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// What was asked makes no sense.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// There is no such thing, or none that may be seen.
    pub fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }
}

impl From<JobError> for Refusal {
    fn from(error: JobError) -> Self {
        let status = match error.is_bad_input() {
            true => StatusCode::UNPROCESSABLE_ENTITY,
            false => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(serde_json::json!({ "error": self.message }))).into_response()
    }
}
