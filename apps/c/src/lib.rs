//! The run time for C, C++ and everything that can call C: opaque handles, statuses, one header (`include/understudy.h`, made
//! from these files by cbindgen). Start here for the border; twins are in `twin.rs`, playing in `player.rs`, posing by
//! points in `ik.rs`, by hands and feet in `limbs.rs`, characters that play motion in `motion.rs`.
//!
//! Nothing unwinds across the border: a panic would be a bug of ours and becomes [`UnderstudyStatus::Internal`]. Arrays
//! come as an address and a length in entries; NULL, wrong lengths and arrays that overlap are errors.

mod border;
mod ik;
mod limbs;
mod motion;
mod player;
mod twin;

pub use ik::*;
pub use limbs::*;
pub use motion::*;
pub use player::*;
pub use twin::*;

use std::ffi::c_char;

/// How a call ended. What went wrong is told by `understudy_last_error`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnderstudyStatus {
    /// Done.
    Ok = 0,
    /// A handle or an array is NULL.
    Null = 1,
    /// A wrong length, a number that is not finite, a file that is damaged.
    BadInput = 2,
    /// A bug of ours: please report it.
    Internal = 3,
}

/// The version of this library, such as "0.2.0".
#[unsafe(no_mangle)]
pub extern "C" fn understudy_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// The newest format of twins' files that this library reads.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_format() -> u32 {
    understudy_runtime::VERSION
}

/// What went wrong in the last call of this thread that failed; empty before the first. It holds until the next call of
/// this thread that fails.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_last_error() -> *const c_char {
    border::last_error()
}
