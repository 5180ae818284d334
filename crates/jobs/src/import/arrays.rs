//! Plain arrays of any program: vertices and faces, with controls, bones or both. What each array means is said in
//! docs/formats.md.

use super::{Pose, Source};
use crate::inputs::report;
use crate::{Event, JobError, Watch};
use std::path::Path;
use understudy_core::{
    Affine3A, Bone, ControlSpec, ControlSpecs, Controls, Face, JointTransform, Mat3, Mesh, MeshParts,
    Skeleton, SkinWeights, Vec2, Vec3, skeleton::rotation_of,
};
use understudy_io::Dim::{Any, Either, Exactly};
use understudy_io::dataset::DatasetRest;
use understudy_io::npz::NpzReader;
use understudy_io::{Axis, Conversion, ParseError, ReadError};

/// Everything in memory, as the archive has it.
pub(super) struct Arrays {
    rest: DatasetRest,
    specs: ControlSpecs,
    conversion: Conversion,
    poses: usize,
    /// `[f,n,3]` in the file's unit and axes.
    vertices: Vec<f32>,
    /// `[f,c]` of the controls that move.
    controls: Vec<f32>,
    /// `[f,b,12]`, rows of 3×4 matrices, bone → world, in the file's unit and axes.
    bones: Vec<f32>,
    /// Frames per second, where the file says.
    pub rate: Option<f32>,
}

impl Arrays {
    pub fn read(path: &Path, watch: &dyn Watch) -> Result<Self, JobError> {
        let npz = NpzReader::read(path)?;
        let content = ReadError::content(path);
        let (arrays, warnings) = Self::from_archive(&npz).map_err(content)?;
        report(Some(&arrays.conversion), &warnings, path, watch);
        if arrays.specs.is_empty() && arrays.rest.skeleton.is_none() {
            let message = format!(
                "{}: has neither 'controls' nor 'bones': nothing says what moves the mesh",
                path.display()
            );
            return Err(JobError::unusable(path, message));
        }
        let known = [
            "vertices",
            "faces",
            "rest",
            "uv",
            "face_uv",
            "controls",
            "control_names",
            "bones",
            "bone_names",
            "parents",
            "rest_bones",
            "weights",
            "units",
            "unit_cm",
            "up",
            "rate",
        ];
        let others: Vec<&str> = npz.names().filter(|name| !known.contains(name)).collect();
        if !others.is_empty() {
            let message = format!("{}: the arrays {} are not read", path.display(), others.join(", "));
            watch.event(Event::Warning { message: &message });
        }
        Ok(arrays)
    }

    fn from_archive(npz: &NpzReader) -> Result<(Self, Vec<String>), ParseError> {
        npz.check_shapes(&[
            ("vertices", &[Any("f"), Any("n"), Exactly(3)]),
            ("rest", &[Any("n"), Exactly(3)]),
            ("faces", &[Any("p"), Either(3, 4)]),
            ("controls", &[Any("f"), Any("c")]),
            ("control_names", &[Any("c")]),
            ("bones", &[Any("f"), Any("b"), Any("rows"), Exactly(4)]),
            ("bone_names", &[Any("b")]),
            ("parents", &[Any("b")]),
            ("weights", &[Any("n"), Any("b")]),
            ("rate", &[]),
        ])?;
        let mut warnings = Vec::new();
        let conversion = conversion(npz)?;
        let vertices = npz.f32("vertices", &[Any("f"), Any("n"), Exactly(3)])?;
        let (poses, count) = (vertices.shape[0], vertices.shape[1]);
        if poses == 0 || count == 0 {
            return Err(fail("vertices", format!("{poses} frames of {count} vertices hold nothing")));
        }
        let bones = match npz.contains("bones") {
            true => bone_rows(npz, "bones", &[Exactly(poses), Any("b")])?,
            false => Vec::new(),
        };
        let has_rest = npz.contains("rest");
        let rest = match has_rest {
            true => npz.f32("rest", &[Exactly(count), Exactly(3)])?.data,
            false => vertices.data[..count * 3].to_vec(),
        };
        let rest: Vec<Vec3> = rest.chunks_exact(3).map(|v| conversion.apply(Vec3::from_slice(v))).collect();
        let mesh = mesh(npz, rest, &mut warnings)?;
        let skeleton = match bones.is_empty() {
            true => None,
            false => Some(skeleton(npz, &bones, bones.len() / poses / 12, has_rest, &conversion)?),
        };
        let weights = match (&skeleton, npz.contains("weights")) {
            (Some(skeleton), true) => Some(skin(npz, count, skeleton.len())?),
            (None, true) => return Err(fail("weights", "there are no 'bones' for them".into())),
            (_, false) => None,
        };
        let (specs, controls) = controls(npz, poses, &mut warnings)?;
        let rate = match npz.contains("rate") {
            true => Some(npz.f32("rate", &[])?.data[0]).filter(|rate| *rate > 0.0),
            false => None,
        };
        if !has_rest {
            warnings.push("there is no array 'rest': the first frame is the rest pose".into());
        }
        let rest = DatasetRest { mesh, skeleton, weights };
        let vertices = vertices.data;
        Ok((Self { rest, specs, conversion, poses, vertices, controls, bones, rate }, warnings))
    }
}

fn fail(array: &str, problem: String) -> ParseError {
    ParseError::new(format!("array '{array}'"), problem)
}

/// `units` as a word, or `unit_cm` as a number; `up` is `y` or `z`.
fn conversion(npz: &NpzReader) -> Result<Conversion, ParseError> {
    let word = |name: &str| -> Result<Option<String>, ParseError> {
        if !npz.contains(name) {
            return Ok(None);
        }
        let shape: &[_] =
            if npz.shape(name).is_some_and(|shape| shape.is_empty()) { &[] } else { &[Exactly(1)] };
        Ok(npz.strings(name, shape)?.data.pop().map(|word| word.to_ascii_lowercase()))
    };
    let up = match word("up")?.as_deref() {
        None | Some("y") => Axis::Y,
        Some("z") => Axis::Z,
        Some(other) => return Err(fail("up", format!("'{other}' is neither y nor z"))),
    };
    let (scale, reason) = match word("units")?.as_deref() {
        Some("mm") => (0.1, "the file says so in 'units'"),
        Some("cm") => (1.0, "the file says so in 'units'"),
        Some("dm") => (10.0, "the file says so in 'units'"),
        Some("m") => (100.0, "the file says so in 'units'"),
        Some("in") => (2.54, "the file says so in 'units'"),
        Some("ft") => (30.48, "the file says so in 'units'"),
        Some(other) => return Err(fail("units", format!("'{other}' is none of mm, cm, dm, m, in, ft"))),
        None if npz.contains("unit_cm") => {
            (npz.f32("unit_cm", &[])?.data[0], "the file says so in 'unit_cm'")
        }
        None => (1.0, "the file names no unit: centimetres assumed"),
    };
    if !(scale.is_finite() && scale > 0.0) {
        return Err(fail("unit_cm", format!("{scale} is not a unit of length")));
    }
    Ok(Conversion { scale, up, reason: reason.into() })
}

fn mesh(npz: &NpzReader, positions: Vec<Vec3>, warnings: &mut Vec<String>) -> Result<Mesh, ParseError> {
    let width = [Any("p"), Either(3, 4)];
    let table = npz.i64("faces", &width)?;
    let rows = |table: &understudy_io::Array<i64>, name: &str| -> Result<Vec<Face>, ParseError> {
        let width = table.shape[1].max(1);
        let row = |(index, row): (usize, &[i64])| {
            let corner = |value: i64| {
                let corner = u32::try_from(value).ok().filter(|corner| *corner != Face::NONE);
                corner.ok_or_else(|| fail(name, format!("face {index} has a corner {value}")))
            };
            let (a, b, c) = (corner(row[0])?, corner(row[1])?, corner(row[2])?);
            match row.get(3) {
                None | Some(-1) => Ok(Face::triangle(a, b, c)),
                Some(d) => Ok(Face::quad(a, b, c, corner(*d)?)),
            }
        };
        table.data.chunks_exact(width).enumerate().map(row).collect()
    };
    let mut parts = MeshParts { positions, faces: rows(&table, "faces")?, ..MeshParts::default() };
    if npz.contains("uv") {
        let uv = npz.f32("uv", &[Any("t"), Exactly(2)])?.data;
        parts.uvs = uv.chunks_exact(2).map(Vec2::from_slice).collect();
        // Without 'face_uv' a coordinate belongs to a vertex.
        parts.face_uvs = match npz.contains("face_uv") {
            true => rows(&npz.i64("face_uv", &[Exactly(parts.faces.len()), Either(3, 4)])?, "face_uv")?,
            false if parts.uvs.len() == parts.positions.len() => parts.faces.clone(),
            false => {
                let problem = format!(
                    "{} coordinates for {} vertices; 'face_uv' says which corner has which",
                    parts.uvs.len(),
                    parts.positions.len()
                );
                return Err(fail("uv", problem));
            }
        };
    }
    let twice = |face: &Face| {
        let corners = face.corners();
        (1..corners.len()).any(|place| corners[..place].contains(&corners[place]))
    };
    let kept: Vec<bool> = parts.faces.iter().map(|face| !twice(face)).collect();
    let dropped = kept.iter().filter(|kept| !**kept).count();
    if dropped > 0 {
        warnings.push(format!("{dropped} faces that name a vertex twice are dropped"));
        for list in [&mut parts.faces, &mut parts.face_uvs] {
            let mut kept = kept.iter();
            list.retain(|_| kept.next().copied().unwrap_or(true));
        }
    }
    parts.build().map_err(|error| fail("faces", error.to_string()))
}

/// Rows of 3×4, or of 4×4 whose last row is left out.
fn bone_rows(npz: &NpzReader, name: &str, head: &[understudy_io::Dim]) -> Result<Vec<f32>, ParseError> {
    let mut shape = head.to_vec();
    shape.extend([Either(3, 4), Exactly(4)]);
    let array = npz.f32(name, &shape)?;
    let size = array.shape[shape.len() - 2] * 4;
    Ok(array.data.chunks_exact(size.max(12)).flat_map(|rows| rows[..12].iter().copied()).collect())
}

/// A bone's world transform in cm and Y-up.
fn transform(rows: &[f32], conversion: &Conversion) -> Affine3A {
    let unit = Conversion { scale: 1.0, ..conversion.clone() };
    let column = |axis: usize| Vec3::new(rows[axis], rows[4 + axis], rows[8 + axis]);
    // The world is turned; a bone keeps its own axes.
    let turned = [0, 1, 2].map(|axis| unit.apply(column(axis)));
    let [x, y, z] = turned;
    Affine3A::from_mat3_translation(Mat3::from_cols(x, y, z), conversion.apply(column(3)))
}

fn skeleton(
    npz: &NpzReader,
    bones: &[f32],
    count: usize,
    has_rest: bool,
    conversion: &Conversion,
) -> Result<Skeleton, ParseError> {
    if count == 0 {
        return Err(fail("bones", "there is none".into()));
    }
    let rest = match (npz.contains("rest_bones"), has_rest) {
        (true, _) => bone_rows(npz, "rest_bones", &[Exactly(count)])?,
        (false, false) => bones[..count * 12].to_vec(),
        (false, true) => {
            let problem = "is missing: where the bones are while the mesh is at 'rest'";
            return Err(fail("rest_bones", problem.into()));
        }
    };
    let globals: Vec<Affine3A> = rest.chunks_exact(12).map(|rows| transform(rows, conversion)).collect();
    if let Some(bone) = globals.iter().position(|bone| bone.matrix3.determinant().abs() < 1e-12) {
        return Err(fail("rest_bones", format!("bone {bone} is squashed flat at rest")));
    }
    let names = match npz.contains("bone_names") {
        true => npz.strings("bone_names", &[Exactly(count)])?.data,
        false => (0..count).map(|bone| format!("bone_{bone:03}")).collect(),
    };
    let parents = match npz.contains("parents") {
        true => npz.i64("parents", &[Exactly(count)])?.data,
        false => vec![-1; count],
    };
    let mut out = Vec::with_capacity(count);
    for (bone, name) in names.into_iter().enumerate() {
        let parent = match parents[bone] {
            -1 => None,
            parent => {
                Some(usize::try_from(parent).ok().filter(|parent| *parent < count).ok_or_else(|| {
                    fail(
                        "parents",
                        format!("bone {bone} has the parent {parent} of {count}; -1 stands for none"),
                    )
                })?)
            }
        };
        let local = parent.map_or(globals[bone], |parent: usize| globals[parent].inverse() * globals[bone]);
        let m = local.matrix3;
        let mirror = if m.determinant() < 0.0 { -1.0 } else { 1.0 };
        let rest = JointTransform {
            rotation: rotation_of(&local),
            translation: local.translation.into(),
            scale: Vec3::new(m.x_axis.length(), m.y_axis.length(), m.z_axis.length() * mirror),
        };
        out.push(Bone { name, parent, rest });
    }
    let binds = globals.iter().map(Affine3A::inverse).collect();
    let skeleton = Skeleton::new(out).and_then(|skeleton| skeleton.with_inverse_bind(binds));
    skeleton.map_err(|error| fail("parents", error.to_string()))
}

fn skin(npz: &NpzReader, vertices: usize, bones: usize) -> Result<SkinWeights, ParseError> {
    let dense = npz.f32("weights", &[Exactly(vertices), Exactly(bones)])?.data;
    let row = |(vertex, row): (usize, &[f32])| {
        let sum: f32 = row.iter().sum();
        if row.iter().any(|weight| *weight < 0.0) || sum <= 0.0 {
            return Err(fail("weights", format!("those of vertex {vertex} are negative or all zero")));
        }
        let some = row.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
        Ok(some.map(|(bone, weight)| (bone as u16, weight / sum)).collect())
    };
    let rows: Vec<Vec<(u16, f32)>> =
        dense.chunks_exact(bones).enumerate().map(row).collect::<Result<_, _>>()?;
    SkinWeights::from_rows(&rows, bones).map_err(|error| fail("weights", error.to_string()))
}

/// The controls that move, with the ranges that the recording shows.
fn controls(
    npz: &NpzReader,
    poses: usize,
    warnings: &mut Vec<String>,
) -> Result<(ControlSpecs, Vec<f32>), ParseError> {
    if !npz.contains("controls") {
        return Ok((ControlSpecs::default(), Vec::new()));
    }
    let values = npz.f32("controls", &[Exactly(poses), Any("c")])?;
    let count = values.shape[1];
    let names = match npz.contains("control_names") {
        true => npz.strings("control_names", &[Exactly(count)])?.data,
        false => (0..count).map(|control| format!("control_{control:03}")).collect(),
    };
    let (mut specs, mut moving, mut still) = (Vec::new(), Vec::new(), Vec::new());
    for (control, name) in names.into_iter().enumerate() {
        let column = values.data.iter().skip(control).step_by(count);
        let (low, high) =
            column.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
        if low >= high {
            still.push(name);
            continue;
        }
        // A control rests at zero, or where it begins if it never is there.
        let default = if (low..=high).contains(&0.0) { 0.0 } else { values.data[control] };
        specs.push(ControlSpec::number(name, low, high, default));
        moving.push(control);
    }
    if !still.is_empty() {
        let some: Vec<&str> = still.iter().take(8).map(String::as_str).collect();
        warnings.push(format!("{} controls never move and are left out ({})", still.len(), some.join(", ")));
    }
    let chosen =
        (0..poses).flat_map(|pose| moving.iter().map(move |control| values_at(pose, *control, count)));
    let chosen: Vec<f32> = chosen.map(|place| values.data[place]).collect();
    let specs = ControlSpecs::new(specs).map_err(|error| fail("control_names", error.to_string()))?;
    Ok((specs, chosen))
}

fn values_at(pose: usize, control: usize, count: usize) -> usize {
    pose * count + control
}

impl Source for Arrays {
    fn rest(&self) -> &DatasetRest {
        &self.rest
    }

    fn specs(&self) -> &ControlSpecs {
        &self.specs
    }

    fn len(&self) -> usize {
        self.poses
    }

    fn pose(&mut self, index: usize, out: &mut Pose) -> Result<(), JobError> {
        let of = |all: &[f32]| {
            let size = all.len() / self.poses;
            index * size..(index + 1) * size
        };
        out.controls = Controls(self.controls[of(&self.controls)].to_vec());
        let bones = self.bones[of(&self.bones)].chunks_exact(12);
        out.bones.0 = bones.map(|rows| transform(rows, &self.conversion)).collect();
        let vertices = self.vertices[of(&self.vertices)].chunks_exact(3);
        out.vertices = vertices.map(|v| self.conversion.apply(Vec3::from_slice(v))).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_io::npz::NpzWriter;

    /// A triangle that one bone lifts, in metres and Z-up.
    fn archive(change: &dyn Fn(&mut NpzWriter)) -> NpzReader {
        let mut npz = NpzWriter::new();
        let lifted = |z: f32| [0.0, 0.0, z, 1.0, 0.0, z, 0.0, 1.0, z];
        npz.f32("vertices", &[2, 3, 3], &[lifted(0.0), lifted(0.5)].concat()).i32(
            "faces",
            &[1, 3],
            &[0, 1, 2],
        );
        let bone = |z: f32| [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, z];
        npz.f32("bones", &[2, 1, 3, 4], &[bone(0.0), bone(0.5)].concat());
        npz.strings("units", &["m"]).strings("up", &["z"]);
        change(&mut npz);
        NpzReader::parse(npz.finish().expect("valid arrays")).expect("an archive")
    }

    #[test]
    fn arrays_become_centimetres_and_bones_move_what_they_moved() {
        let (mut arrays, warnings) = Arrays::from_archive(&archive(&|npz| {
            npz.f32("controls", &[2, 2], &[0.0, 3.0, 1.0, 3.0]).strings("control_names", &["lift", "still"]);
        }))
        .expect("a recording");
        assert_eq!(arrays.specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ["lift"]);
        assert!(warnings[0].contains("(still)") && warnings[1].contains("'rest'"), "{warnings:?}");
        let mut pose = Pose::default();
        arrays.pose(1, &mut pose).expect("there");
        assert_eq!(
            pose.vertices,
            [Vec3::Y * 50.0, Vec3::new(100.0, 50.0, 0.0), Vec3::new(0.0, 50.0, -100.0)]
        );
        assert_eq!(pose.controls.0, [1.0]);
        let skeleton = arrays.rest.skeleton.as_ref().expect("a bone");
        let motion = pose.bones.0[0] * skeleton.inverse_bind()[0];
        for (rest, posed) in arrays.rest.mesh.positions().iter().zip(&pose.vertices) {
            assert!((motion.transform_point3(*rest) - *posed).length() < 1e-4);
        }
    }

    #[test]
    fn bad_arrays_are_named() {
        let bad = |change: &dyn Fn(&mut NpzWriter), word: &str| {
            let error = Arrays::from_archive(&archive(change)).err().expect(word).to_string();
            assert!(error.contains(word), "{error}");
        };
        bad(&|npz| _ = npz.f32("controls", &[3, 1], &[0.0; 3]), "controls");
        bad(&|npz| _ = npz.f32("rest", &[3, 3], &[0.0; 9]), "rest_bones");
        bad(&|npz| _ = npz.i32("parents", &[1], &[4]), "parents");
        bad(&|npz| _ = npz.f32("weights", &[3, 1], &[1.0, 0.0, 1.0]), "vertex 1");
        bad(&|npz| _ = npz.f32("uv", &[2, 2], &[0.0; 4]), "face_uv");
    }
}
