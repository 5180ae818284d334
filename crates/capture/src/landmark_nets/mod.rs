//! Landmark nets trained on rendered pictures (section 6.3): 68 points, the contours of the lips and the pupils of a face. One
//! net finds the face and its points coarsely; four more look closely at the eyes, the nose, the mouth and the jaw.
//! `scenes.rs` draws the pictures, `layout.rs` says which point is which, `crops.rs` cuts pictures out, `training.rs` teaches,
//! `file.rs` keeps, `nets.rs` looks at frames, `pose.rs` turns points into what the live path takes. Start at
//! [`LandmarkNets::parse`] or, for training, at [`NetTraining::new`].

mod crops;
mod file;
mod layout;
mod nets;
mod pose;
mod scenes;
#[cfg(test)]
mod tests;
mod training;

pub use crops::Crop;
pub use file::{FileError, is_landmark_file};
pub use layout::{POINTS, Region, multi_pie};
pub use nets::{LandmarkNets, NetFace};
pub use scenes::{Scene, SceneMaker, SceneSettings, known_shapes};
pub use training::{NetErrors, NetSettings, NetTraining, SettingsError, Stage, errors};
