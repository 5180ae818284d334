//! Dense networks with tanh between the layers: forward and backward passes and Adam, without
//! allocating per step. Start at [`Net`] and [`mod@train`].

mod adam;
mod net;
pub mod rounding;
pub mod train;

pub use adam::{Adam, Optimiser};
pub use net::{Net, Pass};
