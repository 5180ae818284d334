//! One typed function per command: configuration in, events and a result out. The door for every
//! application; nothing here parses a command line or draws a progress bar.

pub mod convert;
mod error;
mod outputs;
pub mod threads;
mod watch;

pub use error::JobError;
pub use watch::{Event, Silent, Watch};
