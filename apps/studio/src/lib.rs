//! The studio: a web page where people pose, compare, learn and invert, and the server behind it. Start at [`Studio`].
//!
//! The page is in `web` (TypeScript), built by `cargo xtask web` into the binary (`page`). Who may ask is decided in
//! `guard`, which files may be named in `project`; `api` answers requests, `socket` streams poses and events of jobs
//! (`runs`; what they can be is in `orders`), `stage` evaluates what a tab shows, `tabs` lists what tabs have here beside it. The work itself is in `understudy_jobs`.
//!
//! ```no_run
//! use understudy_studio::{Studio, StudioOptions};
//! let studio = Studio::open(&StudioOptions::default())?;
//! println!("{}", studio.address()); // http://127.0.0.1:8787/TOKEN/
//! studio.run(|| false)?; // until the closure says stop
//! # Ok::<(), understudy_studio::StudioError>(())
//! ```

mod api;
mod error;
mod guard;
mod handles;
mod invert;
mod library;
mod motion;
mod orders;
mod packet;
mod page;
mod points;
mod project;
mod runs;
mod scene;
mod server;
mod socket;
mod stage;
mod tabs;
mod weights;

pub use error::StudioError;
pub use page::is_built as page_is_built;
pub use project::UploadLimits;
pub use server::{Studio, StudioOptions};
