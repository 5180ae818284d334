//! The characters, content rather than mechanism: the body [`rook`] and the face [`mira`], made in code with the
//! [`modeling`] kit, and [`film`], which puts the same deformers on real meshes.
//!
//! Each `build` returns a [`understudy_rigs::StackRig`]; what a rig is and which deformers there are lives in
//! `understudy-rigs`.

pub mod film;
pub mod mira;
pub mod modeling;
pub mod rook;
#[cfg(test)]
mod test_support;
