//! A [`Model`] as USD text: a SkelRoot with one mesh, its skeleton and blendshapes, and a SkelAnimation for every clip,
//! of which the first is bound. Clips are written frame by frame at their rate. Text rather than binary: every program
//! reads it, and so do people.

use crate::names::UniqueNames;
use crate::{Model, WriteError, write_atomic};
use glam::{Affine3A, Mat4};
use std::fmt::Write as _;
use std::path::Path;
use understudy_core::{BlendshapeRig, KeyedClip, Mesh, Skeleton, SkinWeights};

/// Writes a file, whole or not at all.
pub fn write(path: &Path, model: &Model, name: &str) -> Result<(), WriteError> {
    let text = to_usda_string(model, name).map_err(|problem| WriteError::new(path, problem))?;
    write_atomic(path, text.as_bytes())
}

/// The file's text, or why there can be none.
pub fn to_usda_string(model: &Model, name: &str) -> Result<String, String> {
    if model.shapes.as_ref().is_some_and(|shapes| !shapes.correctives().is_empty()) {
        return Err("USD has no correctives that combine shapes".into());
    }
    let root = identifier(name);
    let rate = model.clips.first().map_or(24.0, |clip| clip.rate);
    let end = model.clips.iter().map(|clip| clip.duration() * f64::from(rate)).fold(0.0, f64::max);
    let mut out = Text::default();
    out.line("#usda 1.0");
    out.line("(");
    out.line(&format!("    defaultPrim = \"{root}\""));
    out.line("    metersPerUnit = 0.01");
    out.line("    upAxis = \"Y\"");
    out.line(&format!("    timeCodesPerSecond = {rate}"));
    out.line(&format!("    framesPerSecond = {rate}"));
    out.line("    startTimeCode = 0");
    out.line(&format!("    endTimeCode = {end}"));
    out.line(")");
    out.line("");
    out.line(&format!("def SkelRoot \"{root}\" ("));
    out.line("    prepend apiSchemas = [\"SkelBindingAPI\"]");
    out.line(")");
    out.open();
    let mut names = UniqueNames::default();
    let (skeleton_name, mesh_name) = (names.take("skeleton"), names.take("mesh"));
    let clip_names: Vec<String> =
        model.clips.iter().map(|clip| names.take(&identifier(&clip.name))).collect();
    let joints = model.skeleton.as_ref().map(joint_tokens).unwrap_or_default();
    let moves = model.skeleton.is_some() || model.shapes.is_some();
    if moves {
        let source = clip_names.first().map(|clip| format!("/{root}/{clip}"));
        skeleton(&mut out, &skeleton_name, model.skeleton.as_ref(), &joints, source.as_deref());
    }
    for (clip, name) in model.clips.iter().zip(&clip_names) {
        animation(&mut out, name, clip, model, &joints, rate)?;
    }
    let place = format!("/{root}");
    mesh(&mut out, &place, &mesh_name, model, moves.then_some(skeleton_name.as_str()));
    out.close();
    Ok(out.text)
}

/// Lines with their indentation.
#[derive(Default)]
struct Text {
    text: String,
    depth: usize,
}

impl Text {
    fn line(&mut self, line: &str) {
        if !line.is_empty() {
            self.text.push_str(&"    ".repeat(self.depth));
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn open(&mut self) {
        self.line("{");
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    fn list<T>(&mut self, head: &str, items: impl IntoIterator<Item = T>, each: impl Fn(&mut String, T)) {
        self.list_with(head, items, each, "");
    }

    /// `head = [a, b] tail`.
    fn list_with<T>(
        &mut self,
        head: &str,
        items: impl IntoIterator<Item = T>,
        each: impl Fn(&mut String, T),
        tail: &str,
    ) {
        // A sample of an animation is `time: [values]`.
        let sign = if head.ends_with(':') { "" } else { " =" };
        let mut line = format!("{head}{sign} [");
        for (place, item) in items.into_iter().enumerate() {
            if place > 0 {
                line.push_str(", ");
            }
            each(&mut line, item);
        }
        line.push(']');
        line.push_str(tail);
        self.line(&line);
    }
}

fn push(out: &mut String, args: std::fmt::Arguments<'_>) {
    out.write_fmt(args).expect("writing into a string does not fail");
}

fn quoted(out: &mut String, text: &str) {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
    push(out, format_args!("\"{text}\""));
}

/// Row by row for vectors as rows, as USD has them.
fn matrix(out: &mut String, transform: &Affine3A) {
    let m = Mat4::from(*transform);
    let row = |v: glam::Vec4| format!("({}, {}, {}, {})", v.x, v.y, v.z, v.w);
    let rows = [row(m.x_axis), row(m.y_axis), row(m.z_axis), row(m.w_axis)];
    push(out, format_args!("( {} )", rows.join(", ")));
}

/// A name as prims may have it.
fn identifier(name: &str) -> String {
    let mut out: String =
        name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    if out.is_empty() || out.starts_with(|first: char| first.is_ascii_digit()) {
        out.insert(0, '_');
    }
    out
}

/// A joint's path from its root, which is what UsdSkel calls it.
fn joint_tokens(skeleton: &Skeleton) -> Vec<String> {
    let mut names = UniqueNames::default();
    let own: Vec<String> = skeleton.bones().iter().map(|bone| names.take(&identifier(&bone.name))).collect();
    let mut tokens = vec![String::new(); own.len()];
    for &bone in skeleton.order() {
        let bone = bone as usize;
        tokens[bone] = match skeleton.bones()[bone].parent {
            Some(parent) => format!("{}/{}", tokens[parent], own[bone]),
            None => own[bone].clone(),
        };
    }
    tokens
}

fn skeleton(
    out: &mut Text,
    name: &str,
    skeleton: Option<&Skeleton>,
    joints: &[String],
    source: Option<&str>,
) {
    out.line(&format!("def Skeleton \"{name}\" ("));
    out.line("    prepend apiSchemas = [\"SkelBindingAPI\"]");
    out.line(")");
    out.open();
    out.list("uniform token[] joints", joints, |line, token| quoted(line, token));
    if let Some(skeleton) = skeleton {
        out.list("uniform token[] jointNames", skeleton.bones(), |line, bone| quoted(line, &bone.name));
        let binds = skeleton.inverse_bind().iter().map(Affine3A::inverse);
        out.list("uniform matrix4d[] bindTransforms", binds, |line, bind| matrix(line, &bind));
        let rests = skeleton.bones().iter().map(|bone| bone.rest.to_affine());
        out.list("uniform matrix4d[] restTransforms", rests, |line, rest| matrix(line, &rest));
    }
    if let Some(source) = source {
        out.line(&format!("rel skel:animationSource = <{source}>"));
    }
    out.close();
}

fn animation(
    out: &mut Text,
    name: &str,
    clip: &KeyedClip,
    model: &Model,
    joints: &[String],
    rate: f32,
) -> Result<(), String> {
    let frames = model.frames(clip, None).map_err(|error| error.to_string())?;
    out.line(&format!("def SkelAnimation \"{name}\""));
    out.open();
    let code = |frame: usize| frame as f64 * f64::from(rate) / f64::from(clip.rate);
    if !joints.is_empty() {
        out.list("uniform token[] joints", joints, |line, token| quoted(line, token));
        let mut samples = |head: &str, each: &dyn Fn(&mut String, &understudy_core::JointTransform)| {
            out.line(&format!("{head}.timeSamples = {{"));
            out.depth += 1;
            for (frame, pose) in frames.poses.iter().enumerate() {
                out.list_with(&format!("{}:", code(frame)), &pose.0, |line, joint| each(line, joint), ",");
            }
            out.depth -= 1;
            out.line("}");
        };
        samples("quatf[] rotations", &|line, joint| {
            let q = joint.rotation;
            push(line, format_args!("({}, {}, {}, {})", q.w, q.x, q.y, q.z));
        });
        // Scales are halves in USD's schema; what a half cannot hold is rounded by whoever reads it.
        samples("half3[] scales", &|line, joint| {
            push(line, format_args!("({}, {}, {})", joint.scale.x, joint.scale.y, joint.scale.z));
        });
        samples("float3[] translations", &|line, joint| {
            let t = joint.translation;
            push(line, format_args!("({}, {}, {})", t.x, t.y, t.z));
        });
    }
    if let Some(shapes) = &model.shapes {
        out.list("uniform token[] blendShapes", shapes.shapes(), |line, shape| quoted(line, &shape.name));
        out.line("float[] blendShapeWeights.timeSamples = {");
        out.depth += 1;
        let rest = std::slice::from_ref(&model.rest_weights);
        let weights = if frames.shape_weights.is_empty() { rest } else { &frames.shape_weights };
        for (frame, weights) in weights.iter().enumerate() {
            out.list_with(
                &format!("{}:", code(frame)),
                weights,
                |line, w| push(line, format_args!("{w}")),
                ",",
            );
        }
        out.depth -= 1;
        out.line("}");
    }
    out.close();
    Ok(())
}

fn mesh(out: &mut Text, place: &str, name: &str, model: &Model, skeleton: Option<&str>) {
    out.line(&format!("def Mesh \"{name}\" ("));
    out.line("    prepend apiSchemas = [\"SkelBindingAPI\"]");
    out.line(")");
    out.open();
    geometry(out, &model.mesh);
    if let Some(skin) = &model.skin {
        weights(out, skin);
    }
    if let Some(skeleton) = skeleton {
        out.line(&format!("rel skel:skeleton = <{place}/{skeleton}>"));
    }
    if let Some(shapes) = &model.shapes {
        blendshapes(out, &format!("{place}/{name}"), shapes);
    }
    out.close();
}

fn geometry(out: &mut Text, mesh: &Mesh) {
    let number = |line: &mut String, n: u32| push(line, format_args!("{n}"));
    let (low, high) = mesh.bounds();
    out.list("float3[] extent", [low, high], |line, p| {
        push(line, format_args!("({}, {}, {})", p.x, p.y, p.z))
    });
    out.list("int[] faceVertexCounts", mesh.faces().iter().map(|face| face.corner_count() as u32), number);
    let corners = mesh.faces().iter().flat_map(|face| face.corners().iter().copied());
    out.list("int[] faceVertexIndices", corners, number);
    out.list("point3f[] points", mesh.positions(), |line, p| {
        push(line, format_args!("({}, {}, {})", p.x, p.y, p.z))
    });
    if mesh.has_uvs() {
        let tail = " ( interpolation = \"faceVarying\" )";
        let pair =
            |line: &mut String, uv: &understudy_core::Vec2| push(line, format_args!("({}, {})", uv.x, uv.y));
        out.list_with("texCoord2f[] primvars:st", mesh.uvs(), pair, tail);
        let places = mesh.face_uvs().iter().zip(mesh.faces());
        let places = places.flat_map(|(uv, face)| uv.raw().into_iter().take(face.corner_count()));
        out.list("int[] primvars:st:indices", places, number);
    }
    out.line("uniform token subdivisionScheme = \"none\"");
}

fn weights(out: &mut Text, skin: &SkinWeights) {
    let size = skin.max_influences().max(1);
    let tail = format!(" ( elementSize = {size} interpolation = \"vertex\" )");
    let rows = || {
        (0..skin.vertex_count()).flat_map(|vertex| {
            let row: Vec<(usize, f32)> = skin.row(vertex).collect();
            let spare = size - row.len();
            row.into_iter().chain(std::iter::repeat_n((0, 0.0), spare))
        })
    };
    out.line("matrix4d primvars:skel:geomBindTransform = ( (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1) )");
    let bones = rows().map(|(bone, _)| bone);
    out.list_with(
        "int[] primvars:skel:jointIndices",
        bones,
        |line, bone| push(line, format_args!("{bone}")),
        &tail,
    );
    let values = rows().map(|(_, weight)| weight);
    out.list_with(
        "float[] primvars:skel:jointWeights",
        values,
        |line, w| push(line, format_args!("{w}")),
        &tail,
    );
}

fn blendshapes(out: &mut Text, place: &str, shapes: &BlendshapeRig) {
    let mut names = UniqueNames::default();
    let prims: Vec<String> =
        shapes.shapes().iter().map(|shape| names.take(&identifier(&shape.name))).collect();
    out.list("uniform token[] skel:blendShapes", shapes.shapes(), |line, shape| quoted(line, &shape.name));
    let target = |line: &mut String, prim: &String| push(line, format_args!("<{place}/{prim}>"));
    out.list("rel skel:blendShapeTargets", &prims, target);
    for (shape, prim) in shapes.shapes().iter().zip(&prims) {
        out.line(&format!("def BlendShape \"{prim}\""));
        out.open();
        let vector =
            |line: &mut String, p: &glam::Vec3| push(line, format_args!("({}, {}, {})", p.x, p.y, p.z));
        out.list("uniform vector3f[] offsets", &shape.deltas.deltas, vector);
        out.list("uniform int[] pointIndices", &shape.deltas.vertices, |line, v| {
            push(line, format_args!("{v}"))
        });
        out.close();
    }
}
