//! TensorFlow Lite models, the part of them that landmarks of faces need: read from bytes, checked, planned once, and
//! evaluated without allocation. `flatbuffer.rs` and `model.rs` read, `plan.rs` joins operators and gives them memory, `kernels`
//! computes. Start at [`Network::parse`].

mod flatbuffer;
mod fuse;
mod kernels;
mod model;
mod network;
mod plan;
#[cfg(test)]
mod tests;

pub use network::Network;

use understudy_io::ParseError;

/// The same error inside something else.
fn inside(error: ParseError, what: &str) -> ParseError {
    ParseError { place: format!("{what}: {}", error.place), problem: error.problem }
}
