//! Frames one after another, from whatever gives them.

use crate::JobError;
use understudy_capture::Frame;

/// A sequence of frames of one size.
pub trait Frames {
    /// Pixels across and down.
    fn size(&self) -> (usize, usize);
    /// Frames per second.
    fn rate(&self) -> f32;
    /// How many there are, where that is known.
    fn count(&self) -> Option<usize>;
    /// The next frame into `frame`; `false` at the end.
    fn next(&mut self, frame: &mut Frame) -> Result<bool, JobError>;
}
