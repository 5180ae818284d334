//! What is asked for over HTTP, below the token: the page's files, the project's listing, rigs, clips, twins, uploads,
//! exports, jobs and the pages that they write.

use crate::error::Refusal;
use crate::library::Notes;
use crate::orders::Order;
use crate::packet::Packet;
use crate::page;
use crate::project::Upload;
use crate::server::Server;
use crate::socket;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, Query, State, WebSocketUpgrade};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::io::AsyncWriteExt as _;
use understudy_jobs::clips;
use understudy_jobs::convert::posed;
use understudy_report::Ramp;

/// Bytes of a body that is no upload.
const SMALL: usize = 4 << 20;
/// Bytes of a file of the project that is sent.
const LARGEST_FILE: u64 = 1 << 30;
/// Numbers of a clip that are sent.
const LARGEST_CLIP: usize = 64 << 20;

type Shared = State<Arc<Server>>;
type Parameters = Query<HashMap<String, String>>;

/// Everything below `/TOKEN`.
pub(crate) fn routes(token: &str, server: Arc<Server>) -> Router {
    let below = Router::new()
        .route("/{*file}", get(page_file))
        .route("/api/project", get(project))
        .route("/api/rig", get(rig))
        .route("/api/clip", get(clip))
        .route("/api/twin", get(twin))
        .route("/api/upload", post(upload).layer(DefaultBodyLimit::disable()))
        .route("/api/export", post(export))
        .route("/api/jobs", get(jobs).post(start_job))
        .route("/api/jobs/{id}/cancel", post(cancel_job))
        .route("/api/socket", get(open_socket))
        .route("/project/{*file}", get(project_file))
        .layer(DefaultBodyLimit::max(SMALL));
    // What is nested below a name has no root with a slash of its own.
    Router::new()
        .route(&format!("/{token}/"), get(index))
        .nest(&format!("/{token}"), below)
        .with_state(server)
}

async fn index(State(server): Shared) -> Result<Response, Refusal> {
    page::serve(server.page.as_deref(), "")
}

async fn page_file(State(server): Shared, Path(file): Path<String>) -> Result<Response, Refusal> {
    page::serve(server.page.as_deref(), &file)
}

/// Runs what takes a while where it holds nobody up.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let broken = |_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the request broke off; this is a bug");
    tokio::task::spawn_blocking(work).await.map_err(broken)?
}

async fn project(State(server): Shared) -> Result<Json<Value>, Refusal> {
    blocking(move || {
        let mut value = json!(server.project.list());
        value["version"] = json!(env!("CARGO_PKG_VERSION"));
        value["runs"] = json!(server.runs.snapshots());
        // The colours of errors are those of the reports.
        let share = |step: u16| Ramp::default().colour_bytes(f32::from(step) / 63.0);
        value["ramp"] = json!((0..64).map(share).collect::<Vec<_>>());
        Ok(Json(value))
    })
    .await
}

fn parameter(parameters: &HashMap<String, String>, name: &str) -> Result<String, Refusal> {
    parameters.get(name).cloned().ok_or_else(|| Refusal::bad(format!("the parameter '{name}' is missing")))
}

fn binary(bytes: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response()
}

async fn rig(State(server): Shared, Query(parameters): Parameters) -> Result<Response, Refusal> {
    let name = parameter(&parameters, "name")?;
    blocking(move || {
        let loaded = server.library.open(&name, &server.project.rig(&name)?)?;
        Ok(binary(loaded.scene().to_vec()))
    })
    .await
}

/// A clip's controls, frame by frame: a header, and `f32 [F][C]`.
async fn clip(State(server): Shared, Query(parameters): Parameters) -> Result<Response, Refusal> {
    let (rig, name) = (parameter(&parameters, "rig")?, parameter(&parameters, "name")?);
    blocking(move || {
        let loaded = server.library.open(&rig, &server.project.rig(&rig)?)?;
        let notes = Notes::default();
        let clip = clips::resolve(loaded.rig.as_ref(), &server.clip(&loaded, &name)?, &notes)?;
        let specs = loaded.rig.specs();
        let rate = clip.own_rate().min(240.0);
        if f64::from(clip.duration) * f64::from(rate) * specs.len() as f64 > LARGEST_CLIP as f64 {
            return Err(Refusal::bad(format!("{name}: the clip is too long to be shown")));
        }
        let sampled = clip.sample(specs, rate).map_err(|error| Refusal::bad(error.to_string()))?;
        let header = json!({
            "name": clip.name, "rate": rate, "frames": sampled.frames.len(), "duration": clip.duration,
            "controls": specs.len(), "notes": notes.taken(),
        });
        let mut packet = Packet::with_header(&header);
        packet.floats(sampled.frames.iter().flat_map(|frame| frame.0.iter().copied()));
        Ok(binary(packet.finish()))
    })
    .await
}

async fn twin(State(server): Shared, Query(parameters): Parameters) -> Result<Response, Refusal> {
    let name = parameter(&parameters, "path")?;
    blocking(move || {
        let path = server.project.resolve(&name)?;
        if path.extension().is_none_or(|extension| extension != "twin") {
            return Err(Refusal::bad(format!("{name} is no twin")));
        }
        read(&path, &name).map(binary)
    })
    .await
}

fn read(path: &std::path::Path, name: &str) -> Result<Vec<u8>, Refusal> {
    let failed = |error: std::io::Error| Refusal::missing(format!("{name}: {error}"));
    let data = path.metadata().map_err(failed)?;
    if !data.is_file() || data.len() > LARGEST_FILE {
        return Err(Refusal::missing(format!("{name}: no file that can be sent")));
    }
    std::fs::read(path).map_err(failed)
}

/// A file that a job wrote, such as its page. Scripts of a page run in a box of their own: what it says came from files.
async fn project_file(State(server): Shared, Path(file): Path<String>) -> Result<Response, Refusal> {
    blocking(move || {
        let shown = ["html", "png", "svg", "csv", "md"];
        let path = server.project.resolve(&file)?;
        if !path.extension().is_some_and(|extension| shown.iter().any(|known| extension == *known)) {
            return Err(Refusal::missing(format!("{file}: files of this kind are not shown")));
        }
        let mut response = read(&path, &file)?.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(page::kind(&file)));
        let policy = "sandbox allow-scripts; default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; \
                      script-src 'unsafe-inline'; font-src data:";
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
        Ok(response)
    })
    .await
}

/// Writes the body into the project's uploads, piece by piece; nothing stays of one that breaks off.
async fn upload(
    State(server): Shared,
    Query(parameters): Parameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    let upload = server.project.upload(&parameter(&parameters, "name")?)?;
    // Whoever says how much it is need not send it first.
    let told = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    server.project.check_upload(told.unwrap_or(0))?;
    let bytes = receive(&server, &upload, body).await?;
    tokio::fs::rename(&upload.part, &upload.path).await.map_err(machine)?;
    Ok(Json(json!({ "path": server.project.name_of(&upload.path), "bytes": bytes })))
}

fn machine(error: std::io::Error) -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

async fn receive(server: &Server, upload: &Upload, body: Body) -> Result<u64, Refusal> {
    let mut options = tokio::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).open(&upload.part).await.map_err(machine)?;
    let mut stream = body.into_data_stream();
    let mut bytes = 0u64;
    while let Some(piece) = stream.next().await {
        let piece = piece.map_err(|error| Refusal::bad(format!("the upload broke off: {error}")))?;
        bytes += piece.len() as u64;
        server.project.check_upload(bytes)?;
        server.project.count_upload(piece.len() as u64)?;
        file.write_all(&piece).await.map_err(machine)?;
    }
    file.flush().await.map_err(machine)?;
    if bytes == 0 { Err(Refusal::bad("the file is empty")) } else { Ok(bytes) }
}

/// What leaves as a file.
#[derive(Debug, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
enum Export {
    /// The pose as a mesh, `glb` or `obj`.
    Pose { rig: String, controls: Vec<f32>, format: String },
    /// A clip as morph targets (`glb`) or its controls (`csv`).
    Clip { rig: String, clip: String, format: String },
    /// A file that a job wrote into the project.
    File { file: String },
}

async fn export(State(server): Shared, Json(wish): Json<Export>) -> Result<Response, Refusal> {
    blocking(move || {
        let opened = |rig: &String| server.library.open(rig, &server.project.rig(rig)?);
        let bytes = match &wish {
            Export::Pose { rig, controls, format } => {
                posed::pose(opened(rig)?.rig.as_ref(), controls, format)?
            }
            Export::Clip { rig, clip, format } => {
                let loaded = opened(rig)?;
                let (own, notes) = (loaded.rig.as_ref(), Notes::default());
                let clip = clips::resolve(own, &server.clip(&loaded, clip)?, &notes)?;
                posed::clip(own, &clip, format, &notes)?
            }
            Export::File { file } => {
                let path = server.project.resolve(file)?;
                let sent = ["glb", "npz", "toml", "csv"];
                if !path.extension().is_some_and(|extension| sent.iter().any(|known| extension == *known)) {
                    return Err(Refusal::bad(format!("{file}: files of this kind are not sent")));
                }
                read(&path, file)?
            }
        };
        Ok(binary(bytes))
    })
    .await
}

async fn jobs(State(server): Shared) -> Json<Value> {
    Json(json!(server.runs.snapshots()))
}

async fn start_job(State(server): Shared, Json(order): Json<Order>) -> Result<Json<Value>, Refusal> {
    blocking(move || {
        let id = server.runs.start(order, &server.project)?;
        Ok(Json(json!({ "id": id })))
    })
    .await
}

async fn cancel_job(State(server): Shared, Path(id): Path<u64>) -> Result<Json<Value>, Refusal> {
    server.runs.cancel(id)?;
    Ok(Json(json!({ "id": id })))
}

async fn open_socket(State(server): Shared, upgrade: WebSocketUpgrade) -> Response {
    let Some(seat) = server.seat() else {
        return Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many tabs are open").into_response();
    };
    upgrade.max_message_size(socket::LARGEST).max_frame_size(socket::LARGEST).on_upgrade(
        async move |opened| {
            socket::serve(server, opened).await;
            drop(seat);
        },
    )
}
