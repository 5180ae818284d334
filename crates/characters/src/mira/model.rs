//! Puts the head and all its parts into one mesh and remembers where each vertex came from.

use super::cage::Place;
use super::head::{Head, sculpt_head};
use super::{hair, mouth_parts, paint};
use understudy_core::{Mesh, Vec2, Vec3};
use understudy_rigs::RigError;

/// The mesh with what the rigging needs to know about it.
pub(super) struct Model {
    pub mesh: Mesh,
    /// Of the sculpted skin, which is first in the mesh: `places.len()` is its vertex count.
    pub places: Vec<Place>,
    pub colours: Vec<Vec3>,
}

impl Model {
    /// Makes everything.
    pub fn new() -> Result<Self, RigError> {
        let Head { mut cage, places } = sculpt_head();
        for part in [
            mouth_parts::gums(),
            mouth_parts::tongue(),
            mouth_parts::eyeball("eye_L", 1.0, Vec2::new(0.878, 0.88)),
            mouth_parts::eyeball("eye_R", -1.0, Vec2::new(0.878, 0.65)),
            hair::brow("brow_L", 1.0),
            hair::brow("brow_R", -1.0),
            hair::lashes("lashes_L", 1.0),
            hair::lashes("lashes_R", -1.0),
            hair::ear("ear_L", 1.0),
            hair::ear("ear_R", -1.0),
            hair::hair(),
            mouth_parts::teeth(),
        ] {
            cage.append(&part);
        }
        let mesh = cage.build()?;
        let segments = mesh.segments();
        let colour = |(vertex, p): (usize, &Vec3)| match places.get(vertex) {
            Some(place) => paint::skin_colour(*p, place),
            None => paint::part_colour(&segments.names[segments.of_vertex[vertex] as usize], *p),
        };
        let colours = mesh.positions().iter().enumerate().map(colour).collect();
        Ok(Self { mesh, places, colours })
    }

    /// Vertices of a segment; none when it does not exist.
    pub fn segment(&self, name: &str) -> Vec<u32> {
        let segments = self.mesh.segments();
        segments.find(name).map(|segment| segments.vertices(segment)).unwrap_or_default()
    }
}
