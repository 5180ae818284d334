//! Mira, the embedded face: a stylised head with neck, made by code alone. Start at [`build`].
//!
//! Space: centimetres, Y up, facing +Z; the origin is the middle of the head at the height of the eyes,
//! about 16.5 cm above the base of the neck. Her left is +X; names end in `_L` and `_R`.
//!
//! Form (`sculpt`, a soft union of solids) and topology (`cage`, a grid with loops around eyes and mouth)
//! meet in `head`; `mouth_parts` and `hair` are put beside it in `model` and painted in `paint`. `shapes`
//! sculpts 238 blendshapes and their correctives with masks that run along the surface (`anatomy`,
//! `strokes`). `rigging`, `lids` and `layers` make the rest of the stack, `clips` the animation, `motion` the many clips that latent spaces
//! are learned from.

mod anatomy;
mod cage;
mod clips;
mod controls;
mod hair;
mod head;
mod landmarks;
mod layers;
mod lids;
mod model;
mod motion;
mod mouth_parts;
mod paint;
mod rigging;
mod sculpt;
mod shapes;
mod strokes;
#[cfg(test)]
mod tests;

pub use landmarks::landmarks;

use anatomy::Anatomy;
use understudy_rigs::RigError;
use understudy_rigs::deformers::{Blendshapes, RigSize, Skinning};
use understudy_rigs::{Deformer, StackParts, StackRig};

/// Makes Mira: the same bytes every time.
pub fn build() -> Result<StackRig, RigError> {
    let model = model::Model::new()?;
    let anatomy = Anatomy::new(&model);
    let shapes = shapes::all(&anatomy)?;
    let specs = controls::specs(&shapes)?;
    let skeleton = rigging::skeleton()?;
    let weights = rigging::weights(&anatomy)?;
    let size = RigSize::new(&model.mesh, Some(&skeleton), &specs);
    let deformers: Vec<Box<dyn Deformer>> = vec![
        Box::new(Blendshapes::by_name(shapes.clone(), &specs, &size)?),
        Box::new(Skinning::linear(weights.clone(), &size)?),
        Box::new(layers::sticky_lips(&anatomy, &specs, &size)?),
        Box::new(lids::layer(&anatomy, &specs, &size)?),
        Box::new(layers::wrinkles(&anatomy, &specs, &size)?),
        Box::new(layers::lattice(&specs, &size)?),
        Box::new(layers::KeepRigid::teeth(&anatomy)),
    ];
    let parts = StackParts {
        constraints: rigging::drives(&specs)?,
        skeleton: Some(skeleton),
        weights: Some(weights),
        blendshapes: Some(shapes),
        deformers,
        clips: clips::all().into_iter().chain(motion::all(&specs)).collect(),
        colours: model.colours.clone(),
    };
    StackRig::new("mira", model.mesh.clone(), specs, parts)
}
