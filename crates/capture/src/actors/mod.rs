//! Actors made by code: people from the identity modes of a scanned head model, with painted skin, in a room's light, before
//! a camera on a helmet, playing clips whose weights are known. Start at [`Cast`] and [`Actor`].

mod canvas;
mod clips;
mod eyes;
mod paint;
mod performance;
mod person;
mod poses;

pub use clips::{Take, TakeFrame, take};
pub use eyes::{Eye, Gaze, rotation};
pub use paint::Complexion;
pub use performance::{FaceError, FacePoints, Noise, Performance, Played};
pub use person::{Actor, Cast, CastError, Head};
pub use poses::{PoseLibrary, augmented};

use understudy_core::{BlendshapeRig, Mesh, Vec3};

/// A scanned head model: what [`Cast::new`] is made from.
#[derive(Debug, Clone)]
pub struct HeadParts {
    /// The mean head, cm, with UVs and segments.
    pub mesh: Mesh,
    /// Expressions.
    pub shapes: BlendshapeRig,
    /// Vertices of the 68 landmarks.
    pub landmarks: [u32; 68],
    /// One name a material.
    pub materials: Vec<String>,
    /// The material of every face.
    pub face_materials: Vec<u32>,
    /// Identity modes: offsets of every vertex, one row a mode, of one standard deviation each, cm.
    pub identities: Vec<Vec<Vec3>>,
}
