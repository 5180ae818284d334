//! A film rig on a head with ARKit-style shapes. Jaw, eyes and head become joints; the shapes keep what
//! joints cannot do; correctives, lids, sticky lips, folds and a lattice go on top.

mod eyes;
mod folds;
mod jaw;
mod lips;
mod motion;
mod opaque;
mod paint;
#[cfg(test)]
mod tests;

use super::{canonical, correctives};
use eyes::{FoundEye, GAZES};
use jaw::Jaw;
use understudy_core::mechanism::{Constraint, Drive};
use understudy_core::{
    BlendshapeRig, Bone, Channel, ControlSpec, ControlSpecs, Corrective, JointTransform, Mesh, Shape,
    Skeleton, SkinWeights, SparseDeltas, Vec3,
};
use understudy_rigs::RigError;
use understudy_rigs::deformers::{
    Blendshapes, Driver, EyelidSlide, Lattice, LatticeConfig, RigSize, Skinning, StickyLips, Wrinkles,
    smooth_step,
};
use understudy_rigs::{Deformer, StackParts, StackRig};

/// Segments of one eye.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EyeHints {
    /// `_L` (the character's left) or `_R`: the ending of its shapes.
    pub side: &'static str,
    /// Turn with the eye.
    pub eyeball: Vec<String>,
    /// Move with the lids: lashes, tear line, inner corner.
    pub attached: Vec<String>,
}

/// What a mesh does not say about itself: which vertices are the landmarks, which segments are what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceHints {
    /// Vertices of the 68 Multi-PIE landmarks.
    pub landmarks: [u32; 68],
    /// Segments that fold and stretch.
    pub skin: Vec<String>,
    /// Segments inside the mouth that are deformed like skin but are not seen from outside.
    pub mouth: Vec<String>,
    /// Rigid with the skull, each by itself.
    pub upper_teeth: Vec<String>,
    /// Rigid with the jaw, each by itself.
    pub lower_teeth: Vec<String>,
    /// Gums and tongue: every vertex rigid with skull or jaw, whichever it follows in `jawOpen`.
    pub gums: Vec<String>,
    /// Left and right.
    pub eyes: [EyeHints; 2],
    /// Shells that real-time renderers draw transparent over the eye. Drawn opaque they would hide it,
    /// so they are sunk into the eyeball.
    pub veils: Vec<String>,
    /// Cards that renderers cut into hairs by a texture. Drawn whole they would be awnings, so they are
    /// trimmed to an eighth of their length.
    pub lashes: Vec<String>,
}

impl FaceHints {
    /// The parts of the ICT face model, with its teeth named `tooth_01` to `tooth_32`.
    pub fn ict(landmarks: [u32; 68]) -> Self {
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).into()).collect() };
        let eye = |side, word: &str| EyeHints {
            side,
            eyeball: vec![format!("eyeball_{word}")],
            attached: vec![format!("lacrimal_{word}"), format!("eyelashes_{word}")],
        };
        let teeth =
            |range: std::ops::RangeInclusive<u32>| range.map(|tooth| format!("tooth_{tooth:02}")).collect();
        Self {
            landmarks,
            skin: names(&["face", "head_neck", "eye_socket_left", "eye_socket_right"]),
            mouth: names(&["mouth_socket"]),
            upper_teeth: teeth(1..=16),
            lower_teeth: teeth(17..=32),
            gums: names(&["gums_tongue"]),
            eyes: [eye("_L", "left"), eye("_R", "right")],
            veils: names(&["eye_blend_left", "eye_blend_right", "eye_occlusion_left", "eye_occlusion_right"]),
            lashes: names(&["eyelashes_left", "eyelashes_right"]),
        }
    }
}

const NECK: usize = 0;
const HEAD: usize = 1;
const JAW: usize = 2;
/// Left eye; the right one comes after it.
const EYE: usize = 3;

/// Builds the rig. Shapes are renamed to end in `_L` and `_R`; `jawOpen` and the lower teeth must exist.
///
/// Controls: joints `head.*`, `jaw.*`, `eye_l.*`, `eye_r.*` in degrees; one number a shape; `lips_zip_l`
/// and `lips_zip_r`; `squash`, `lean_front`, `lean_side`, `twist`, `taper` of the lattice.
pub fn face(name: &str, mesh: Mesh, shapes: BlendshapeRig, hints: &FaceHints) -> Result<StackRig, RigError> {
    if shapes.neutral().len() != mesh.vertex_count() {
        let (got, want) = (shapes.neutral().len(), mesh.vertex_count());
        return Err(RigError::Count { what: "shapes: vertices".into(), got, want });
    }
    if let Some(vertex) = hints.landmarks.iter().find(|v| **v as usize >= mesh.vertex_count()) {
        return Err(RigError::Unknown { part: "landmarks".into(), name: format!("vertex {vertex}") });
    }
    let mut renamed = shapes.shapes().to_vec();
    for shape in &mut renamed {
        shape.name = canonical(&shape.name);
    }
    let shapes = BlendshapeRig::new(shapes.neutral().to_vec(), renamed, Vec::new())?;
    let anatomy = Anatomy::find(&mesh, &shapes, hints)?;
    let (mesh, shapes) = opaque::make_opaque(mesh, shapes, hints, &anatomy)?;
    let skeleton = anatomy.skeleton()?;
    let specs = specs(&shapes)?;
    let size = RigSize::new(&mesh, Some(&skeleton), &specs);
    let layer = anatomy.shapes_without_joints(&mesh, &shapes)?;
    let weights = anatomy.skin_weights(&mesh)?;

    let mut deformers: Vec<Box<dyn Deformer>> =
        vec![Box::new(Blendshapes::by_name(layer.clone(), &specs, &size)?)];
    deformers.push(Box::new(anatomy.eyelids(&mesh, &specs, &size)?));
    deformers.push(Box::new(Skinning::linear(weights.clone(), &size)?));
    let zip = |name: &str| Driver::control(specs.find(name).expect("the zips were specified above"));
    if let Some(lips) = lips::sticky_lips(&mesh, &hints.landmarks, zip("lips_zip_r"), zip("lips_zip_l")) {
        deformers.push(Box::new(StickyLips::new(lips, &mesh, &size)?));
    }
    let folds = folds::folds(&mesh, &hints.landmarks, &anatomy.skin, anatomy.scale, &specs);
    deformers.push(Box::new(Wrinkles::new(folds, &mesh, &size)?));
    deformers.push(Box::new(lattice(&mesh, &anatomy, hints, &specs, &size)?));

    let parts = StackParts {
        constraints: anatomy.drives(&specs),
        deformers,
        clips: motion::clips(&specs),
        colours: paint::colours(&mesh, hints, &anatomy.eyes)?,
        skeleton: Some(skeleton),
        weights: Some(weights),
        blendshapes: Some(layer),
    };
    StackRig::new(name, mesh, specs, parts)
}

/// The vertices of some segments, ascending in each.
fn vertices_of(mesh: &Mesh, names: &[String]) -> Result<Vec<u32>, RigError> {
    let mut out = Vec::new();
    for name in names {
        let segment = mesh.segments().find(name).ok_or_else(|| RigError::Unknown {
            part: "face hints".into(),
            name: format!("segment {name}"),
        })?;
        out.extend(mesh.segments().vertices(segment));
    }
    Ok(out)
}

/// What was found in mesh and shapes.
struct Anatomy {
    /// Whether a vertex is skin, `[V]`.
    skin: Vec<bool>,
    /// Whether a vertex belongs to a hard part, `[V]`.
    rigid: Vec<bool>,
    jaw: Jaw,
    eyes: Vec<FoundEye>,
    head_pivot: Vec3,
    neck_base: Vec3,
    /// Share of the head's motion, `[V]`; the rest stays with the neck.
    head: Vec<f32>,
    scale: f32,
}

impl Anatomy {
    fn find(mesh: &Mesh, shapes: &BlendshapeRig, hints: &FaceHints) -> Result<Self, RigError> {
        let mark = |names: &[&Vec<String>]| -> Result<Vec<bool>, RigError> {
            let mut marks = vec![false; mesh.vertex_count()];
            for list in names {
                for vertex in vertices_of(mesh, list)? {
                    marks[vertex as usize] = true;
                }
            }
            Ok(marks)
        };
        let skin = mark(&[&hints.skin])?;
        let eyeballs: Vec<&Vec<String>> = hints.eyes.iter().map(|eye| &eye.eyeball).collect();
        let rigid = mark(&[&[&hints.upper_teeth, &hints.lower_teeth, &hints.gums], &eyeballs[..]].concat())?;
        let jaw = Jaw::fit(mesh, shapes, &vertices_of(mesh, &hints.lower_teeth)?, &rigid)?;
        let eyes = hints.eyes.iter().map(|eye| FoundEye::fit(mesh, shapes, eye, &skin));
        let eyes = eyes.collect::<Result<Vec<_>, RigError>>()?;

        let landmark = |index: usize| mesh.positions()[hints.landmarks[index] as usize];
        let (chin, bridge, temple) = (landmark(8), landmark(27), (landmark(0) + landmark(16)) * 0.5);
        let unit = (bridge.y - chin.y).abs().max(1e-3);
        let head_pivot = Vec3::new(0.0, chin.y + 0.25 * unit, temple.z - 0.6 * (bridge.z - temple.z));
        let (low, _) = mesh.bounds();
        // Height along a line that runs from the nape up to the chin, so that both go with the head.
        let along = |p: Vec3| p.y + 0.35 * p.z;
        let top = along(chin) - 0.3 * unit;
        let bottom = (low.y + 0.35 * head_pivot.z).max(top - unit);
        let head = mesh.positions().iter().map(|p| smooth_step(bottom, top.max(bottom + 0.1), along(*p)));
        let neck_base = Vec3::new(0.0, low.y, head_pivot.z);
        let mut found =
            Self { head: head.collect(), scale: unit / 11.3, skin, rigid, jaw, eyes, head_pivot, neck_base };
        // Below the neck line the jaw must not pull: what the head does not carry the jaw does not either.
        for (jaw, head) in found.jaw.weights.iter_mut().zip(&found.head) {
            *jaw *= head;
        }
        Ok(found)
    }

    fn skeleton(&self) -> Result<Skeleton, RigError> {
        let bone = |name: &str, parent: Option<usize>, from: Vec3, to: Vec3| Bone {
            name: name.into(),
            parent,
            rest: JointTransform::from_translation(to - from),
        };
        let head = self.head_pivot;
        let mut bones = vec![
            bone("neck", None, Vec3::ZERO, self.neck_base),
            bone("head", Some(NECK), self.neck_base, head),
            bone("jaw", Some(HEAD), head, self.jaw.pivot),
        ];
        for eye in &self.eyes {
            bones.push(bone(eye_name(eye), Some(HEAD), head, eye.centre));
        }
        Ok(Skeleton::new(bones)?)
    }

    fn skin_weights(&self, mesh: &Mesh) -> Result<SkinWeights, RigError> {
        let mut rows = Vec::with_capacity(mesh.vertex_count());
        for (jaw, head) in self.jaw.weights.iter().zip(&self.head) {
            rows.push(vec![(HEAD as u16, head - jaw), (JAW as u16, *jaw), (NECK as u16, 1.0 - head)]);
        }
        for (index, eye) in self.eyes.iter().enumerate() {
            for vertex in &eye.ball {
                rows[*vertex as usize] = vec![((EYE + index) as u16, 1.0)];
            }
        }
        Ok(SkinWeights::from_rows(&rows, EYE + self.eyes.len())?)
    }

    /// The shapes with what joints and lids do taken out, and correctives.
    fn shapes_without_joints(&self, mesh: &Mesh, shapes: &BlendshapeRig) -> Result<BlendshapeRig, RigError> {
        let rest = mesh.positions();
        let mut correctives = correctives::correctives(shapes);
        let mut layer: Vec<Shape> = shapes.shapes().to_vec();
        for (index, motion) in &self.jaw.motions {
            let wanted = layer[*index].deltas.to_dense(rest.len());
            let left = self.jaw.residual(motion, rest, &wanted, &self.rigid);
            correctives.extend(self.close_the_mouth(*index, motion, rest, &layer, &left));
            layer[*index].deltas = SparseDeltas::from_dense(&left, 1e-3);
        }
        for eye in &self.eyes {
            eye.take_out(rest, &mut layer);
        }
        correctives.extend(correctives::shut_eyes(shapes, &layer));
        // Hard parts have no shapes of their own, except pupils.
        for shape in layer.iter_mut().filter(|shape| !shape.name.starts_with("PupilDilate")) {
            let dense = shape.deltas.to_dense(rest.len());
            let soft: Vec<Vec3> = dense
                .iter()
                .zip(&self.rigid)
                .map(|(d, rigid)| if *rigid { Vec3::ZERO } else { *d })
                .collect();
            shape.deltas = SparseDeltas::from_dense(&soft, 1e-4);
        }
        Ok(BlendshapeRig::new(rest.to_vec(), layer, correctives)?)
    }

    /// `mouthClose` is drawn to undo `jawOpen` on the lips; turned with the jaw it would miss. This
    /// makes both together arrive where their sum did.
    fn close_the_mouth(
        &self,
        open: usize,
        motion: &jaw::JawMotion,
        rest: &[Vec3],
        layer: &[Shape],
        left: &[Vec3],
    ) -> Option<Corrective> {
        let close = layer.iter().position(|shape| shape.name == "mouthClose")?;
        if layer[open].name != "jawOpen" {
            return None;
        }
        let (a, b) = (layer[open].deltas.to_dense(rest.len()), layer[close].deltas.to_dense(rest.len()));
        let both: Vec<Vec3> = a.iter().zip(&b).map(|(a, b)| *a + *b).collect();
        let together = self.jaw.residual(motion, rest, &both, &self.rigid);
        let missing: Vec<Vec3> = (0..rest.len()).map(|v| together[v] - left[v] - b[v]).collect();
        let shapes = vec![open as u32, close as u32];
        Some(Corrective { shapes, deltas: SparseDeltas::from_dense(&missing, 1e-3) })
    }

    fn eyelids(&self, mesh: &Mesh, specs: &ControlSpecs, size: &RigSize) -> Result<EyelidSlide, RigError> {
        let mut layers = Vec::new();
        let mut stops = Vec::new();
        for (index, eye) in self.eyes.iter().enumerate() {
            if let Some(blink) = specs.find(&format!("eyeBlink{}", eye.side)) {
                layers.push(eye.layer(blink, EYE + index, HEAD));
                stops.push(eye.stops());
            }
        }
        let mut lids = EyelidSlide::new(layers, mesh.positions(), size)?;
        for (eye, stops) in stops.iter().enumerate() {
            lids = lids.stop_at(eye, stops)?;
        }
        Ok(lids)
    }

    /// Jaw and gaze shapes move their joints.
    fn drives(&self, specs: &ControlSpecs) -> Vec<Constraint> {
        let mut drives: Vec<Constraint> = Vec::new();
        for (name, (_, motion)) in
            jaw::JAW_SHAPES.iter().filter(|n| specs.find(n).is_some()).zip(&self.jaw.motions)
        {
            drives.extend(motion.drives(specs.find(name).expect("filtered above"), JAW));
        }
        for (index, eye) in self.eyes.iter().enumerate() {
            for (name, pitch, yaw) in GAZES {
                let Some(control) = specs.find(&format!("{name}{}", eye.side)) else { continue };
                let (pitch, yaw) = eye.gaze(pitch, yaw);
                for (channel, gain) in [(Channel::RotateX, pitch), (Channel::RotateY, yaw)] {
                    if gain != 0.0 {
                        drives.push(Constraint::Drive(Drive { control, bone: EYE + index, channel, gain }));
                    }
                }
            }
        }
        drives
    }
}

fn eye_name(eye: &FoundEye) -> &'static str {
    if eye.side == "_L" { "eye_l" } else { "eye_r" }
}

fn specs(shapes: &BlendshapeRig) -> Result<ControlSpecs, RigError> {
    const JOINTS: [(&str, &str, Channel, f32, f32); 10] = [
        ("head.nod", "head", Channel::RotateX, -25.0, 25.0),
        ("head.turn", "head", Channel::RotateY, -45.0, 45.0),
        ("head.tilt", "head", Channel::RotateZ, -20.0, 20.0),
        ("jaw.pitch", "jaw", Channel::RotateX, -2.0, 10.0),
        ("jaw.turn", "jaw", Channel::RotateY, -5.0, 5.0),
        ("jaw.roll", "jaw", Channel::RotateZ, -4.0, 4.0),
        ("eye_l.pitch", "eye_l", Channel::RotateX, -25.0, 25.0),
        ("eye_l.yaw", "eye_l", Channel::RotateY, -30.0, 30.0),
        ("eye_r.pitch", "eye_r", Channel::RotateX, -25.0, 25.0),
        ("eye_r.yaw", "eye_r", Channel::RotateY, -30.0, 30.0),
    ];
    const NUMBERS: [(&str, f32); 7] = [
        ("lips_zip_l", 0.0),
        ("lips_zip_r", 0.0),
        ("squash", -1.0),
        ("lean_front", -1.0),
        ("lean_side", -1.0),
        ("twist", -1.0),
        ("taper", -1.0),
    ];
    let joints =
        JOINTS.map(|(name, bone, channel, low, high)| ControlSpec::joint(name, bone, channel, low, high));
    let numbers = NUMBERS.map(|(name, low)| ControlSpec::number(name, low, 1.0, 0.0));
    let shapes = shapes.shapes().iter().map(|shape| ControlSpec::number(&shape.name, 0.0, 1.0, 0.0));
    Ok(ControlSpecs::new(joints.into_iter().chain(shapes).chain(numbers).collect())?)
}

/// The squash-and-stretch box around head and neck, carried by the head.
fn lattice(
    mesh: &Mesh,
    anatomy: &Anatomy,
    hints: &FaceHints,
    specs: &ControlSpecs,
    size: &RigSize,
) -> Result<Lattice, RigError> {
    let (low, high) = mesh.bounds();
    let margin = (high - low) * 0.25;
    let driver = |name: &str, gain: f32| {
        Driver::scaled(specs.find(name).expect("the lattice's numbers were specified above"), gain)
    };
    let config = LatticeConfig {
        low: low - margin,
        high: high + margin,
        counts: [4, 5, 4],
        bone: Some(HEAD),
        pivot: anatomy.head_pivot,
        stretch: driver("squash", 0.4),
        taper: driver("taper", 0.5),
        bend_front: driver("lean_front", 25.0),
        bend_side: driver("lean_side", -25.0),
        twist: driver("twist", 30.0),
        // The cut of the neck stays where it is, so that a body could be joined to it.
        mask: anatomy.head.clone(),
        ..LatticeConfig::default()
    };
    let names = hints.upper_teeth.iter().chain(&hints.lower_teeth);
    let teeth = names.map(|name| vertices_of(mesh, std::slice::from_ref(name)));
    Lattice::new(config, size)?.with_rigid_parts(teeth.collect::<Result<_, RigError>>()?, size)
}
