//! From an actor's picture to a rig's controls. Two ways lead there: landmarks of a face, turned into control points
//! that a twin follows, frame by frame as a camera delivers them; and inverse rendering, which finds the weights whose
//! picture looks like the frame. Opens no files: frames and models come in as bytes.

mod frame;
pub mod mediapipe;
pub mod tflite;

pub use frame::Frame;
