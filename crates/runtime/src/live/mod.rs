//! A face that is driven live: points of an actor's face, frame by frame, become control points and controls of a twin.
//! `geometry.rs` removes the pose and size of the head, `filter.rs` the trembling, `follow.rs` joins both and minds lost faces,
//! `retarget.rs` carries what moved over to a character, `drive.rs` poses a twin with it. Opens no camera and runs no detector:
//! the points come from outside.

mod drive;
mod filter;
mod follow;
mod geometry;
mod retarget;

pub use drive::{DriveError, Driven, Driver};
pub use filter::{OneEuro, Smoothed};
pub use follow::{FollowSettings, Follower, Observation, Performance};
pub use geometry::{FaceGeometry, HeadPose};
pub use retarget::{Retarget, landmark_of};

#[cfg(test)]
mod tests;
