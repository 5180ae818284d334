//! Networks on pictures, trained on the CPU: tensors, operations with their derivatives on a [`Tape`], layers over one row of
//! [`Parameters`]. [`Hourglass`] places landmarks,
//! [`FirstOrder`] brings the expression of one picture into the style of another. Convolutions are matrix products on `gemm`; no tensor library is behind them.
//!
//! The same batch, seed and steps give the same bytes whatever the number of threads.

mod convolution;
mod first_order;
mod heat_maps;
mod hourglass;
mod layers;
mod losses;
mod motion;
mod norm;
mod parameters;
mod resample;
mod tape;
mod tensor;
#[cfg(test)]
mod tests;
mod thin_plate;
#[cfg(test)]
mod transfer_tests;

pub use first_order::{FirstOrder, FirstOrderShape, FirstOrderTrainer, TransferBatch, merged};
pub use heat_maps::{Found, HeatMapLoss, Target, found};
pub use hourglass::{Answer, Hourglass, HourglassBatch, HourglassShape, HourglassTrainer, ShapeError};
pub use layers::{Block, Convolution, Residual};
pub use losses::{Features, KeyPoints, LossWeights, Losses};
pub use norm::Statistics;
pub use parameters::{Parameters, RunningSlot, Slot};
pub use tape::{Mode, Tape, TapeGradients, Var};
pub use tensor::Tensor;
pub use thin_plate::ThinPlate;
