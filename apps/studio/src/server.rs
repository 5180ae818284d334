//! The server as a whole: where it listens, what all tabs share, how it ends.

use crate::api;
use crate::error::{Refusal, StudioError};
use crate::guard::{self, Guard};
use crate::library::{Library, Loaded};
use crate::project::{Project, UploadLimits};
use crate::runs::Runs;
use axum::middleware;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Where it listens unless somebody else does.
const USUAL_PORT: u16 = 8787;
/// Tabs at one time.
const TABS: usize = 64;
/// How long running jobs have to come to a good end.
const PATIENCE: Duration = Duration::from_secs(10);

/// What to serve.
#[derive(Debug, Clone, PartialEq)]
pub struct StudioOptions {
    /// The port on loopback; the usual one, or any that is free, where none is given.
    pub port: Option<u16>,
    /// The project's folder: nothing outside it is read or written.
    pub project: PathBuf,
    /// Rigs to offer beside the characters and the project's own files: also programs that speak the rig protocol.
    pub rigs: Vec<String>,
    /// Serves the page from this folder instead of the binary, for people who work on it.
    pub page: Option<PathBuf>,
    /// How much pages may bring into the project.
    pub uploads: UploadLimits,
}

impl Default for StudioOptions {
    fn default() -> Self {
        Self {
            port: None,
            project: ".".into(),
            rigs: Vec::new(),
            page: None,
            uploads: UploadLimits::default(),
        }
    }
}

/// What all requests share.
pub(crate) struct Server {
    pub project: Arc<Project>,
    pub library: Library,
    pub runs: Runs,
    pub page: Option<PathBuf>,
    tabs: Arc<Semaphore>,
    closing: watch::Sender<bool>,
}

impl Server {
    /// A place for a tab; none where all are taken. It is free again when the value is dropped.
    pub fn seat(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.tabs).try_acquire_owned().ok()
    }

    /// Becomes true when the server stops.
    pub fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// What [`understudy_jobs::clips::resolve`] takes for a clip that a page names.
    pub fn clip(&self, loaded: &Loaded, name: &str) -> Result<String, Refusal> {
        match loaded.rig.find_clip(name) {
            Some(_) => Ok(name.into()),
            None => self.project.clip(name),
        }
    }
}

/// A server that listens already.
pub struct Studio {
    listener: TcpListener,
    port: u16,
    guard: Arc<Guard>,
    server: Arc<Server>,
}

impl Studio {
    /// Takes the port and looks at the project.
    pub fn open(options: &StudioOptions) -> Result<Self, StudioError> {
        let machine = |error: &dyn std::fmt::Display| StudioError::Machine(error.to_string());
        let project = Project::open(&options.project, options.rigs.clone(), options.uploads)?;
        let bind = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = match options.port {
            Some(port) => bind(port).map_err(|error| StudioError::Port { port, error })?,
            None => bind(USUAL_PORT).or_else(|_| bind(0)).map_err(|error| machine(&error))?,
        };
        listener.set_nonblocking(true).map_err(|error| machine(&error))?;
        let port = listener.local_addr().map_err(|error| machine(&error))?.port();
        let server = Server {
            project: Arc::new(project),
            library: Library::default(),
            runs: Runs::default(),
            page: options.page.clone(),
            tabs: Arc::new(Semaphore::new(TABS)),
            closing: watch::channel(false).0,
        };
        let guard = Arc::new(Guard::new(port).map_err(|error| machine(&error))?);
        Ok(Self { listener, port, guard, server: Arc::new(server) })
    }

    /// What to open in a browser: with the token, without which nothing is answered.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.guard.token())
    }

    /// Serves until `stop` says so, asked ten times per second; then ends jobs and tabs.
    pub fn run(self, stop: impl Fn() -> bool + Send + 'static) -> Result<(), StudioError> {
        let machine = |error: std::io::Error| StudioError::Machine(error.to_string());
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(machine)?;
        let Self { listener, guard, server, .. } = self;
        // The first visitor sees Mira: she is made while the browser starts.
        let early = Arc::clone(&server);
        std::thread::spawn(move || early.library.open("mira", "mira").map(|mira| mira.scene().len()));
        let app = api::routes(guard.token(), Arc::clone(&server))
            .layer(middleware::from_fn_with_state(guard, guard::check));
        let own = Arc::clone(&server);
        let served = runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let ended = async move {
                while !stop() {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                own.closing.send_replace(true);
            };
            let mut closing = server.closing();
            let late = async move {
                // A connection that does not end by itself is not waited for.
                let _ = closing.wait_for(|closing| *closing).await;
                tokio::time::sleep(Duration::from_secs(2)).await;
            };
            let serving = axum::serve(listener, app).with_graceful_shutdown(ended);
            let result = tokio::select! {
                result = serving => result,
                () = late => Ok(()),
            };
            let stopped = tokio::task::spawn_blocking(move || server.runs.stop_all(PATIENCE));
            let _ = stopped.await;
            result
        });
        runtime.shutdown_timeout(Duration::from_secs(1));
        served.map_err(machine)
    }
}
