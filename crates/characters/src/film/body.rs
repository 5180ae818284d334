//! A film rig on a body with bones and skin weights: joint controls found by bone names, twist and helper
//! motion, dual-quaternion zones, muscles, sliding skin, pose correctives and delta mush.

mod flesh;
mod joints;
mod motion;
#[cfg(test)]
mod tests;

use super::{colour, correctives, smooth};
use flesh::Flesh;
use joints::{Limbs, joint_controls, natural_frames, trunk};
use understudy_core::mechanism::Constraint;
use understudy_core::normals::vertex_normals;
use understudy_core::{
    BlendshapeRig, ControlSpec, ControlSpecs, Mesh, Shape, Skeleton, SkinWeights, SparseDeltas, Vec3,
};
use understudy_rigs::RigError;
use understudy_rigs::deformers::{
    Blendshapes, DeltaMush, DeltaMushConfig, JointOffset, MuscleBulge, RigSize, SkinSlide, Skinning,
    smooth_step,
};
use understudy_rigs::{Deformer, StackParts, StackRig};

/// Builds the rig. Bones are known by their names (MakeHuman's, Mixamo's or `thigh_l` style), should have
/// Y along the bone in rest, and the character faces +Z. Frames of bones are turned by half a turn where
/// that lets a positive value bend a joint the natural way, on both sides alike.
///
/// Controls: joints as `shoulder_l.up` or `knee_r.bend` in degrees, `root.move_*` in cm; one number a
/// shape; `breathe`, `flex_l`, `flex_r`.
pub fn body(
    name: &str,
    mesh: Mesh,
    skeleton: Skeleton,
    weights: SkinWeights,
    shapes: Option<BlendshapeRig>,
) -> Result<StackRig, RigError> {
    let counts = [
        ("weights: vertices", weights.vertex_count(), mesh.vertex_count()),
        ("weights: bones", weights.bone_count(), skeleton.len()),
    ];
    for (what, got, want) in counts {
        if got != want {
            return Err(RigError::Count { what: what.into(), got, want });
        }
    }
    let moves = moving_bones(&skeleton, &weights);
    let (skeleton, along) = natural_frames(&skeleton, &moves)?;
    let controls = joint_controls(&skeleton, &along, &moves)?;
    let layer = shape_layer(&mesh, &skeleton, &weights, shapes)?;
    let joints = controls.iter().map(|control| control.spec(&skeleton));
    let numbers = layer.shapes().iter().map(|shape| ControlSpec::number(&shape.name, 0.0, 1.0, 0.0));
    let flexes = ["flex_l", "flex_r"].map(|name| ControlSpec::number(name, 0.0, 1.0, 0.0));
    let specs = ControlSpecs::new(joints.chain(numbers).chain(flexes).collect())?;
    let size = RigSize::new(&mesh, Some(&skeleton), &specs);
    let flesh =
        Flesh { mesh: &mesh, skeleton: &skeleton, weights: &weights, specs: &specs, controls: &controls };

    let mut deformers: Vec<Box<dyn Deformer>> =
        vec![Box::new(Blendshapes::by_name(layer.clone(), &specs, &size)?)];
    for offset in flesh.joint_offsets() {
        deformers.push(Box::new(JointOffset::new(offset, &size)?));
    }
    deformers.push(Box::new(Skinning::new(weights.clone(), dual_zones(&flesh), &size)?));
    deformers.push(Box::new(MuscleBulge::new(flesh.muscles(), &size)?));
    deformers.push(Box::new(SkinSlide::new(flesh.slides(), &mesh, &size)?));
    let mush =
        DeltaMushConfig { iterations: 8, step: 0.5, mask: mush_mask(&flesh), ..DeltaMushConfig::default() };
    deformers.push(Box::new(DeltaMush::new(mush, &mesh, &size)?));

    let mut constraints: Vec<Constraint> = Vec::new();
    for (index, control) in controls.iter().enumerate() {
        constraints.extend(control.drives(index));
    }
    let parts = StackParts {
        constraints,
        deformers,
        clips: motion::clips(&controls, &specs),
        colours: colours(&flesh),
        weights: Some(weights.clone()),
        blendshapes: Some(layer),
        skeleton: Some(skeleton.clone()),
    };
    StackRig::new(name, mesh, specs, parts)
}

/// Whether a bone or one below it moves any vertex, `[J]`.
fn moving_bones(skeleton: &Skeleton, weights: &SkinWeights) -> Vec<bool> {
    let mut moves = vec![false; skeleton.len()];
    for vertex in 0..weights.vertex_count() {
        for (bone, _) in weights.row(vertex) {
            moves[bone] = true;
        }
    }
    for &bone in skeleton.order().iter().rev() {
        if let Some(parent) = skeleton.bones()[bone as usize].parent {
            moves[parent] |= moves[bone as usize];
        }
    }
    moves
}

/// A bone and all bones below it.
fn subtree(skeleton: &Skeleton, top: usize) -> Vec<usize> {
    let mut inside = vec![false; skeleton.len()];
    for &bone in skeleton.order() {
        let bone = bone as usize;
        inside[bone] = bone == top || skeleton.bones()[bone].parent.is_some_and(|parent| inside[parent]);
    }
    (0..skeleton.len()).filter(|bone| inside[*bone]).collect()
}

/// The given shapes with correctives, and one of our own: `breathe` swells the chest along its normals.
fn shape_layer(
    mesh: &Mesh,
    skeleton: &Skeleton,
    weights: &SkinWeights,
    shapes: Option<BlendshapeRig>,
) -> Result<BlendshapeRig, RigError> {
    let none = || BlendshapeRig::new(mesh.positions().to_vec(), Vec::new(), Vec::new());
    let given = shapes.map_or_else(none, Ok)?;
    if given.neutral().len() != mesh.vertex_count() {
        let (got, want) = (given.neutral().len(), mesh.vertex_count());
        return Err(RigError::Count { what: "shapes: vertices".into(), got, want });
    }
    let mut all = correctives::correctives(&given);
    all.extend(correctives::shut_eyes(&given, given.shapes()));
    all.extend(given.correctives().iter().cloned());
    let mut layer = given.shapes().to_vec();
    let [_, chest, neck, _] = trunk(skeleton);
    if let (Some(chest), Some(neck)) = (chest, neck) {
        let height = |bone: usize| Vec3::from(skeleton.rest_global()[bone].translation).y;
        let (low, high) = (height(chest), height(neck));
        // Neither arms nor head breathe: only what follows the chest or bones above it that end there.
        let arms = [true, false].into_iter().filter_map(|left| Limbs::find(skeleton, left).upper_arm);
        let still: Vec<usize> = arms.chain([neck]).flat_map(|top| subtree(skeleton, top)).collect();
        let normals = vertex_normals(mesh.faces(), mesh.positions());
        let swell = |(vertex, (point, normal)): (usize, (&Vec3, &Vec3))| {
            let still: f32 =
                weights.row(vertex).filter(|(bone, _)| still.contains(bone)).map(|(_, w)| w).sum();
            let reach = high - low;
            let band =
                smooth_step(low - 1.2 * reach, low, point.y) * smooth_step(high, low + 0.4 * reach, point.y);
            let front = 0.6 + 0.4 * normal.z;
            *normal * (0.9 * band * front * (1.0 - still)) + Vec3::Y * (0.4 * band * (1.0 - still))
        };
        let points = mesh.positions().iter().zip(&normals).enumerate();
        let dense: Vec<Vec3> = points.map(swell).collect();
        layer.push(Shape { name: "breathe".into(), deltas: SparseDeltas::from_dense(&dense, 0.01) });
    }
    Ok(BlendshapeRig::new(given.neutral().to_vec(), layer, all)?)
}

/// Dual quaternions on limbs and neck, where bones twist; linear elsewhere.
fn dual_zones(flesh: &Flesh<'_>) -> Vec<f32> {
    let skeleton = flesh.skeleton;
    let mut zone = vec![0.0f32; skeleton.len()];
    for left in [true, false] {
        let limbs = Limbs::find(skeleton, left);
        for (top, end) in [(limbs.upper_arm, limbs.hand), (limbs.thigh, limbs.foot)] {
            let (Some(top), Some(end)) = (top, end) else { continue };
            let below = subtree(skeleton, end);
            for bone in subtree(skeleton, top).into_iter().filter(|bone| !below.contains(bone)) {
                zone[bone] = 1.0;
            }
            zone[end] = 0.7;
        }
    }
    if let [_, _, Some(neck), Some(head)] = trunk(skeleton) {
        let below = subtree(skeleton, head);
        for bone in subtree(skeleton, neck).into_iter().filter(|bone| !below.contains(bone)) {
            zone[bone] = 1.0;
        }
    }
    let blend = |vertex| flesh.weights.row(vertex).map(|(bone, weight)| zone[bone] * weight).sum::<f32>();
    (0..flesh.mesh.vertex_count()).map(|vertex| blend(vertex).clamp(0.0, 1.0)).collect()
}

/// Delta mush works on trunk and limbs; faces, hands and feet keep what their bones say.
fn mush_mask(flesh: &Flesh<'_>) -> Vec<f32> {
    let skeleton = flesh.skeleton;
    let mut still = Vec::new();
    if let [.., Some(head)] = trunk(skeleton) {
        still.extend(subtree(skeleton, head));
    }
    for left in [true, false] {
        let limbs = Limbs::find(skeleton, left);
        for end in [limbs.hand, limbs.foot].into_iter().flatten() {
            still.extend(subtree(skeleton, end).into_iter().filter(|bone| *bone != end));
        }
    }
    flesh.share(&still).into_iter().map(|share| smooth_step(0.6, 0.05, share)).collect()
}

/// Skin, and a plain suit on the trunk.
fn colours(flesh: &Flesh<'_>) -> Vec<Vec3> {
    const SKIN: u32 = 0xcf9b7e;
    const SUIT: u32 = 0x3d4a5c;
    let skeleton = flesh.skeleton;
    let mut bare: Vec<usize> = Vec::new();
    for left in [true, false] {
        let limbs = Limbs::find(skeleton, left);
        // The first bone of a thigh is the suit's leg where there is a second one below it.
        let leg = |thigh: usize| {
            let next = skeleton.bones().iter().position(|bone| bone.parent == Some(thigh));
            next.filter(|next| Some(*next) != limbs.shin).unwrap_or(thigh)
        };
        for top in [limbs.upper_arm, limbs.thigh.map(leg)].into_iter().flatten() {
            bare.extend(subtree(skeleton, top));
        }
    }
    if let [_, _, Some(neck), _] = trunk(skeleton) {
        bare.extend(subtree(skeleton, neck));
    }
    let mut shares = flesh.share(&bare);
    // Skin weights are uneven; the edge of a suit is not.
    smooth(&flesh.mesh.adjacency(), &mut shares, &vec![false; flesh.mesh.vertex_count()], 8);
    let cloth = |share: f32| colour(SUIT).lerp(colour(SKIN), smooth_step(0.3, 0.42, share));
    let mut colours: Vec<Vec3> = shares.into_iter().map(cloth).collect();
    for (index, name) in flesh.mesh.segments().names.iter().enumerate() {
        let plain = [("eye", 0xf4f1ec), ("lash", 0x2a211d), ("teeth", 0xf2ead8), ("tongue", 0xc46a68)];
        // A lash is named after its eye: the last word that fits counts.
        let Some((part, hex)) = plain.iter().rfind(|(part, _)| name.contains(part)) else { continue };
        let vertices = flesh.mesh.segments().vertices(index);
        let at = |vertex: &u32| flesh.mesh.positions()[*vertex as usize];
        let centre = vertices.iter().map(at).sum::<Vec3>() / vertices.len().max(1) as f32;
        for vertex in &vertices {
            let angle = (at(vertex) - centre).angle_between(Vec3::Z).to_degrees();
            let iris = if *part == "eye" { smooth_step(30.0, 24.0, angle) } else { 0.0 };
            colours[*vertex as usize] = colour(*hex).lerp(colour(0x3a2c24), iris);
        }
    }
    colours
}
