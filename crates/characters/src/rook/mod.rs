//! Rook, the embedded body: a hooded adventurer with a crow's mask in a belted coat, 190 cm tall, in an
//! A-pose. Start at [`build`]. The body is one coarse cage (`coat`, `head`, `arm`, `leg`), mirrored and
//! subdivided; `fixtures` adds what is sewn on; `layers` stacks the deformers.

mod arm;
mod bones;
mod clips;
mod coat;
mod controls;
mod feathers;
mod fixtures;
mod gather;
mod head;
mod hem;
mod layers;
mod leg;
mod paint;
mod plan;
mod ride;
mod sculpt;
mod sculpting;
mod surface;
#[cfg(test)]
mod tests;
mod wear;

use understudy_core::SkinWeights;
use understudy_rigs::RigError;
use understudy_rigs::{StackParts, StackRig};

/// Builds Rook. The same bytes every time.
pub fn build() -> Result<StackRig, RigError> {
    let skeleton = bones::skeleton()?;
    let specs = controls::specs()?;
    let mut sculpt = sculpt::Sculpt::new(&skeleton);
    let ends = coat::build(&mut sculpt);
    head::build(&mut sculpt, &ends.collar);
    arm::build(&mut sculpt, &ends.armhole);
    leg::build(&mut sculpt, &ends.waist);
    let mut body = sculpt.finish();
    let segments = body.cage.build()?.segments().of_vertex.clone();
    sculpting::add_folds(&mut body, &segments);
    let fixtures = fixtures::build(&body);
    let mesh = fixtures.cage.build()?;
    let mut colours = paint::body_colours(&body, &mesh.segments().of_vertex);
    colours.extend_from_slice(&fixtures.colours);
    let weights = SkinWeights::from_rows(&fixtures.rows, skeleton.len())?;
    let stage = layers::Stage { mesh: &mesh, skeleton: &skeleton, specs: &specs, body: &body };
    let mut deformers = stage.deformers(&weights)?;
    deformers.push(Box::new(ride::Ride::new(fixtures.riders, mesh.positions())));
    let constraints = layers::constraints(&skeleton, &specs);
    let clips = clips::clips(&skeleton, &specs)?;
    let parts = StackParts {
        skeleton: Some(skeleton),
        weights: Some(weights),
        constraints,
        deformers,
        clips,
        colours,
        ..StackParts::default()
    };
    StackRig::new("rook", mesh, specs, parts)
}
