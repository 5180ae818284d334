//! MediaPipe's face landmarker, as users download it: a `.task` file with a face detector, a net that places 478 points on a face,
//! and one that scores 52 expressions. `detector.rs` finds faces, `region.rs` cuts them out, `scores.rs` says what the numbers
//! are called, `landmarker.rs` joins them from frame to frame. Start at [`Landmarker::parse`].
//!
//! The order of work and its constants are those of the graphs in MediaPipe's `tasks/cc/vision/face_landmarker`.

mod detector;
mod landmarker;
mod region;
mod scores;
#[cfg(test)]
mod tests;

pub use detector::Detection;
pub use landmarker::{Choice, Face, Landmarker, Mode, Parts, Sighting};
pub use region::Region;
pub use scores::{SCORES, shape_of};

/// Points on a face, the ten of the irises included.
pub const POINTS: usize = 478;
