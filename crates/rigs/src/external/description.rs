//! What a rig says about itself: one JSON text, checked and turned into centimetres and Y-up. Start at
//! [`Description::parse`].

use super::protocol::{ProtocolError, affine};
use crate::Guide;
use serde::Deserialize;
use understudy_core::{
    Affine3A, Bone, Channel, Clip, ControlKind, ControlSpec, ControlSpecs, Curve, Face, Interpolation,
    JointTransform, Key, Mat3A, Mesh, MeshParts, Segments, Skeleton, SkinWeights, Vec2, Vec3, Vec3A,
};

/// A rig as the rest of the program knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// What it calls itself.
    pub name: String,
    /// Its controls.
    pub specs: ControlSpecs,
    /// Rest mesh, cm and Y-up.
    pub mesh: Mesh,
    /// Its bones, where it has them.
    pub skeleton: Option<Skeleton>,
    /// Bones that move no vertex: the last of those that it lists.
    pub guides: Vec<Guide>,
    /// Its skin weights, where it gives them.
    pub weights: Option<SkinWeights>,
    /// Its animation.
    pub clips: Vec<Clip>,
    /// What it wants its user to know, a line each.
    pub warnings: Vec<String>,
    /// Its unit and axes.
    pub space: Space,
    /// What a control's value is multiplied with before it is sent, `[C]`: translations of joints are centimetres
    /// here and the rig's unit there.
    pub control_scale: Vec<f32>,
}

/// How the rig's lengths and axes become centimetres and Y-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Space {
    /// Centimetres per unit.
    pub scale: f32,
    /// Whether Z points up: `(x, y, z)` becomes `(x, z, −y)`.
    pub z_up: bool,
}

impl Space {
    fn turn(&self, p: Vec3A) -> Vec3A {
        if self.z_up { Vec3A::new(p.x, p.z, -p.y) } else { p }
    }

    /// A point.
    pub fn point(&self, p: Vec3) -> Vec3 {
        Vec3::from(self.turn(p.into())) * self.scale
    }

    /// A bone's world transform: its own axes keep their length, their directions and its place are turned.
    pub fn bone(&self, bone: &Affine3A) -> Affine3A {
        let Mat3A { x_axis, y_axis, z_axis } = bone.matrix3;
        let matrix3 = Mat3A::from_cols(self.turn(x_axis), self.turn(y_axis), self.turn(z_axis));
        Affine3A { matrix3, translation: self.turn(bone.translation) * self.scale }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescriptionText {
    name: String,
    #[serde(default)]
    units: UnitText,
    #[serde(default)]
    up: UpText,
    controls: Vec<ControlText>,
    vertices: Vec<[f32; 3]>,
    faces: Vec<Vec<u32>>,
    #[serde(default)]
    uvs: Vec<[f32; 2]>,
    #[serde(default)]
    face_uvs: Vec<Vec<u32>>,
    #[serde(default)]
    segments: Option<SegmentsText>,
    #[serde(default)]
    bones: Vec<BoneText>,
    #[serde(default)]
    guides: usize,
    #[serde(default)]
    weights: Option<Vec<Vec<(u16, f32)>>>,
    #[serde(default)]
    clips: Vec<ClipText>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum UnitText {
    Mm,
    #[default]
    Cm,
    M,
    In,
    Ft,
}

#[derive(Deserialize, Default, PartialEq)]
#[serde(rename_all = "lowercase")]
enum UpText {
    #[default]
    Y,
    Z,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ControlText {
    name: String,
    low: f32,
    high: f32,
    default: f32,
    #[serde(default)]
    kind: KindText,
    bone: Option<String>,
    channel: Option<Channel>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum KindText {
    #[default]
    Number,
    Joint,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SegmentsText {
    names: Vec<String>,
    of_vertex: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoneText {
    name: String,
    parent: Option<usize>,
    rest: [f32; 12],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClipText {
    name: String,
    rate: f32,
    frames: Vec<Vec<f32>>,
    #[serde(default)]
    for_test: bool,
}

impl Description {
    /// Reads and checks the JSON text of a `rig ` frame.
    pub fn parse(payload: &[u8]) -> Result<Self, ProtocolError> {
        let text = serde_json::from_slice(payload).map_err(bad)?;
        Self::check(text)
    }

    fn check(text: DescriptionText) -> Result<Self, ProtocolError> {
        let scale = match text.units {
            UnitText::Mm => 0.1,
            UnitText::Cm => 1.0,
            UnitText::M => 100.0,
            UnitText::In => 2.54,
            UnitText::Ft => 30.48,
        };
        let space = Space { scale, z_up: text.up == UpText::Z };
        let Some(moving) = text.bones.len().checked_sub(text.guides) else {
            let (guides, bones) = (text.guides, text.bones.len());
            return Err(bad(format!("{guides} of {bones} bones are guides")));
        };
        let (bones, guides) = text.bones.split_at(moving);
        let guides = guides_of(guides, &space)?;
        let skeleton = skeleton(bones, &space)?;
        let (specs, control_scale) = controls(text.controls, skeleton.as_ref(), &space)?;
        let mut faces = Vec::with_capacity(text.faces.len());
        let mut face_uvs = Vec::with_capacity(text.face_uvs.len());
        if !text.face_uvs.is_empty() && text.face_uvs.len() != text.faces.len() {
            let (got, want) = (text.face_uvs.len(), text.faces.len());
            return Err(bad(format!("face_uvs has {got} faces, faces has {want}")));
        }
        for (index, corners) in text.faces.iter().enumerate() {
            faces.extend(polygon(corners).map_err(|problem| bad(format!("face {index} {problem}")))?);
            if let Some(uvs) = text.face_uvs.get(index) {
                if uvs.len() != corners.len() {
                    return Err(bad(format!(
                        "face_uvs {index} has {} corners, its face {}",
                        uvs.len(),
                        corners.len()
                    )));
                }
                face_uvs.extend(polygon(uvs).map_err(|problem| bad(format!("face_uvs {index} {problem}")))?);
            }
        }
        let mesh = MeshParts {
            positions: text.vertices.into_iter().map(|p| space.point(p.into())).collect(),
            faces,
            uvs: text.uvs.into_iter().map(Vec2::from_array).collect(),
            face_uvs,
            segments: text.segments.map_or_else(Segments::default, |segments| Segments {
                names: segments.names,
                of_vertex: segments.of_vertex,
            }),
        };
        let mesh = mesh.build().map_err(bad)?;
        let weights = match text.weights {
            None => None,
            Some(rows) if rows.len() != mesh.vertex_count() => {
                let (got, want) = (rows.len(), mesh.vertex_count());
                return Err(bad(format!("weights has {got} rows, there are {want} vertices")));
            }
            Some(rows) => Some(SkinWeights::from_rows(&rows, bones.len()).map_err(bad)?),
        };
        let clips = text.clips.iter().map(|clip| curves(clip, &specs, &control_scale));
        let clips = clips.collect::<Result<_, _>>()?;
        let warnings = text.warnings;
        Ok(Self {
            name: text.name,
            specs,
            mesh,
            skeleton,
            guides,
            weights,
            clips,
            warnings,
            space,
            control_scale,
        })
    }
}

fn bad(problem: impl ToString) -> ProtocolError {
    ProtocolError::Description(problem.to_string())
}

/// A triangle, a quad, or a fan of triangles for more corners.
fn polygon(corners: &[u32]) -> Result<Vec<Face>, String> {
    match *corners {
        [] | [_] | [_, _] => Err(format!("has {} corners", corners.len())),
        [a, b, c] => Ok(vec![Face::triangle(a, b, c)]),
        [a, b, c, d] if d != Face::NONE => Ok(vec![Face::quad(a, b, c, d)]),
        [a, ref rest @ ..] => Ok(rest.windows(2).map(|pair| Face::triangle(a, pair[0], pair[1])).collect()),
    }
}

/// Bones without a tree.
fn guides_of(bones: &[BoneText], space: &Space) -> Result<Vec<Guide>, ProtocolError> {
    let one = |bone: &BoneText| {
        let rest = space.bone(&affine(&bone.rest));
        let determinant = rest.matrix3.determinant();
        if !rest.is_finite() || determinant == 0.0 || !determinant.is_finite() {
            return Err(bad(format!("guide '{}': its rest cannot be inverted or is not finite", bone.name)));
        }
        Ok(Guide { name: bone.name.clone(), rest })
    };
    bones.iter().map(one).collect()
}

/// Bones bound in their rest pose. The rest pose of a skeleton knows no shear; the inverse bind keeps it.
fn skeleton(bones: &[BoneText], space: &Space) -> Result<Option<Skeleton>, ProtocolError> {
    if bones.is_empty() {
        return Ok(None);
    }
    let world: Vec<Affine3A> = bones.iter().map(|bone| space.bone(&affine(&bone.rest))).collect();
    let local = |bone: &BoneText, world_of: &Affine3A| {
        let local = match bone.parent.and_then(|parent| world.get(parent)) {
            Some(parent) => parent.inverse() * *world_of,
            None => *world_of,
        };
        let (scale, rotation, translation) = local.to_scale_rotation_translation();
        JointTransform { rotation: rotation.normalize(), translation, scale }
    };
    for (bone, world) in bones.iter().zip(&world) {
        let determinant = world.matrix3.determinant();
        if !world.is_finite() || determinant == 0.0 || !determinant.is_finite() {
            return Err(bad(format!("bone '{}': its rest cannot be inverted or is not finite", bone.name)));
        }
    }
    let rest = bones.iter().zip(&world).map(|(bone, world)| Bone {
        name: bone.name.clone(),
        parent: bone.parent,
        rest: local(bone, world),
    });
    let skeleton = Skeleton::new(rest.collect()).map_err(bad)?;
    let inverse_bind = world.iter().map(Affine3A::inverse).collect();
    skeleton.with_inverse_bind(inverse_bind).map(Some).map_err(bad)
}

fn controls(
    texts: Vec<ControlText>,
    skeleton: Option<&Skeleton>,
    space: &Space,
) -> Result<(ControlSpecs, Vec<f32>), ProtocolError> {
    let mut specs = Vec::with_capacity(texts.len());
    let mut scales = Vec::with_capacity(texts.len());
    for ControlText { name, low, high, default, kind, bone, channel } in texts {
        let kind = match (kind, bone, channel) {
            (KindText::Number, None, None) => ControlKind::Number,
            (KindText::Joint, Some(bone), Some(channel)) => ControlKind::Joint { bone, channel },
            (KindText::Number, ..) => {
                return Err(bad(format!("control '{name}' is a number and has no bone or channel")));
            }
            (KindText::Joint, ..) => {
                return Err(bad(format!("control '{name}' is a joint and needs bone and channel")));
            }
        };
        let mut scale = 1.0;
        if let ControlKind::Joint { bone, channel } = &kind {
            let Some(index) = skeleton.and_then(|skeleton| skeleton.find(bone)) else {
                return Err(bad(format!("control '{name}' names the bone '{bone}', which there is not")));
            };
            let moves = matches!(channel, Channel::TranslateX | Channel::TranslateY | Channel::TranslateZ);
            let root = skeleton.is_some_and(|skeleton| skeleton.bones()[index].parent.is_none());
            if moves && root && space.z_up {
                let problem = "moves a root along axes of a Z-up world; make it a number";
                return Err(bad(format!("control '{name}' {problem}")));
            }
            if moves {
                scale = space.scale.recip();
            }
        }
        let [low, high, default] = [low, high, default].map(|value| value / scale);
        specs.push(ControlSpec { name, kind, low, high, default });
        scales.push(scale);
    }
    Ok((ControlSpecs::new(specs).map_err(bad)?, scales))
}

/// Frames as curves with a key on each frame.
fn curves(clip: &ClipText, specs: &ControlSpecs, scales: &[f32]) -> Result<Clip, ProtocolError> {
    let of = |problem: String| bad(format!("clip '{}': {problem}", clip.name));
    if !(clip.rate.is_finite() && clip.rate > 0.0) || clip.frames.is_empty() {
        return Err(of("at least one frame and a rate above 0 are wanted".into()));
    }
    if let Some(frame) = clip.frames.iter().position(|frame| frame.len() != specs.len()) {
        let got = clip.frames[frame].len();
        return Err(of(format!("frame {frame} has {got} values, there are {} controls", specs.len())));
    }
    let curves = specs.iter().zip(scales).enumerate().map(|(control, (spec, scale))| {
        let key = |(frame, values): (usize, &Vec<f32>)| Key {
            time: frame as f32 / clip.rate,
            value: values[control] / scale,
        };
        let keys = clip.frames.iter().enumerate().map(key).collect();
        Curve { control: spec.name.clone(), keys, interpolation: Interpolation::Linear }
    });
    let duration = (clip.frames.len() - 1).max(1) as f32 / clip.rate;
    let mut out = Clip::new(&clip.name, duration, curves.collect());
    out.rate = Some(clip.rate);
    if clip.for_test {
        out = out.for_test();
    }
    out.sample(specs, clip.rate).map_err(bad)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(change: impl Fn(&mut serde_json::Value)) -> Vec<u8> {
        let mut value = serde_json::json!({
            "name": "bar", "units": "m", "up": "z",
            "controls": [
                {"name": "bend", "kind": "joint", "bone": "tip", "channel": "rotate_z", "low": -90, "high": 90, "default": 0},
                {"name": "slide", "kind": "joint", "bone": "tip", "channel": "translate_x", "low": -0.1, "high": 0.1, "default": 0},
                {"name": "bulge", "low": 0, "high": 1, "default": 0}],
            "vertices": [[0, 0, 0], [1, 0, 0], [1, 0, 1], [0.5, 0, 2], [0, 0, 1]],
            "faces": [[0, 1, 2, 3, 4]],
            "uvs": [[0, 0], [1, 0], [1, 0.5], [0.5, 1], [0, 0.5]], "face_uvs": [[0, 1, 2, 3, 4]],
            "segments": {"names": ["all", "top"], "of_vertex": [0, 0, 0, 1, 0]},
            "bones": [
                {"name": "root", "parent": null, "rest": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]},
                {"name": "tip", "parent": 0, "rest": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1]}],
            "weights": [[[0, 1]], [[0, 1]], [[0, 0.5], [1, 0.5]], [[1, 1]], [[0, 0.5], [1, 0.5]]],
            "clips": [{"name": "nod", "rate": 24, "frames": [[0, 0, 0], [45, 0.05, 1]], "for_test": true}],
            "warnings": ["the tip is loose"]
        });
        change(&mut value);
        serde_json::to_vec(&value).expect("JSON")
    }

    #[test]
    fn metres_and_z_up_become_centimetres_and_y_up() {
        let found = Description::parse(&text(|_| ())).expect("valid");
        assert_eq!(found.mesh.positions()[3], Vec3::new(50.0, 200.0, 0.0));
        assert_eq!(found.mesh.faces().len(), 3);
        let skeleton = found.skeleton.expect("bones");
        assert!(Vec3::from(skeleton.rest_global()[1].translation).abs_diff_eq(Vec3::Y * 100.0, 1e-4));
        assert_eq!((found.specs.get(1).high, found.control_scale[1]), (10.0, 0.01));
        assert!(found.clips[0].is_for_test() && found.warnings == ["the tip is loose"]);
        let frames = found.clips[0].sample(&found.specs, 24.0).expect("in range").frames;
        assert_eq!((frames.len(), frames[1].0[0], frames[1].0[2]), (2, 45.0, 1.0));
        assert!((frames[1].0[1] - 5.0).abs() < 1e-5);
    }

    #[test]
    fn mistakes_are_named() {
        type Change = dyn Fn(&mut serde_json::Value);
        let problem = |change: &Change| {
            Description::parse(&text(change)).map(|_| ()).expect_err("a mistake").to_string()
        };
        let cases: [(&Change, &str); 9] = [
            (&|v| v["vertex"] = 1.into(), "vertex"),
            (&|v| v["faces"][0][0] = 9.into(), "names vertex 9"),
            (&|v| v["faces"] = serde_json::json!([[0, 1]]), "face 0 has 2 corners"),
            (&|v| v["controls"][0]["bone"] = "tail".into(), "'tail'"),
            (&|v| v["controls"][2]["channel"] = "rotate_x".into(), "'bulge' is a number"),
            (&|v| v["controls"][1]["bone"] = "root".into(), "Z-up"),
            (&|v| v["bones"][1]["rest"][0] = 0.into(), "'tip'"),
            (&|v| v["weights"][0][0][1] = 0.7.into(), "vertex 0"),
            (&|v| v["clips"][0]["frames"][1] = serde_json::json!([1]), "frame 1 has 1 values"),
        ];
        for (change, want) in cases {
            let found = problem(change);
            assert!(found.contains(want), "{found} does not say {want}");
        }
    }
}
