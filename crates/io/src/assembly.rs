//! Puts a [`Model`] together from the parts of a scene: meshes with faces, skin and shapes, and the bones that move
//! them. What the readers of FBX and USD share.

use crate::names::UniqueNames;
use crate::polygons::Polygons;
use crate::{Conversion, Model, ParseError};
use glam::{Affine3A, DAffine3, Vec3};
use understudy_core::{
    BlendshapeRig, Bone, JointTransform, KeyedClip, MeshParts, Shape, Skeleton, SkinWeights, SparseDeltas,
    Vec2,
};

/// Weighted bones of a vertex.
pub(crate) type Row = Vec<(u16, f32)>;

/// Everything read so far, in centimetres and Y-up.
#[derive(Default)]
pub(crate) struct Assembly {
    mesh: MeshParts,
    rows: Vec<Row>,
    bones: Vec<Bone>,
    bone_names: UniqueNames,
    /// For every bone: those that stand for it where it is bound in several ways, and how.
    bound: Vec<Vec<(usize, DAffine3)>>,
    joints: Vec<usize>,
    shapes: Vec<Shape>,
    shape_names: UniqueNames,
    rest_weights: Vec<f32>,
    part_names: UniqueNames,
    pub warnings: Vec<String>,
}

impl Assembly {
    /// A bone, after its parent.
    pub fn add_bone(&mut self, name: &str, parent: Option<usize>, rest: JointTransform) -> usize {
        let name = self.bone_names.take(if name.is_empty() { "bone" } else { name });
        self.bones.push(Bone { name, parent, rest });
        self.bound.push(Vec::new());
        self.bones.len() - 1
    }

    /// The bone that moves vertices by `matrix`, world → bone in the bind pose. Where another mesh binds it otherwise,
    /// that is a bone of its own that rides on it.
    pub fn bind(&mut self, bone: usize, matrix: DAffine3) -> Result<u16, ParseError> {
        let known = self.bound[bone].iter().find(|(_, other)| agree(other, &matrix));
        let found = match known {
            Some((bone, _)) => *bone,
            None if self.bound[bone].is_empty() => {
                self.bound[bone].push((bone, matrix));
                bone
            }
            None => {
                let name = self.bones[bone].name.clone();
                let stand_in = self.add_bone(&name, Some(bone), JointTransform::IDENTITY);
                self.bound[bone].push((stand_in, matrix));
                stand_in
            }
        };
        self.joints.push(found);
        u16::try_from(found).map_err(|_| ParseError::new("bones", "there are more than 65,536"))
    }

    /// A mesh as one more segment; tells the number of its first vertex. `rows` is empty for one that nothing moves.
    pub fn add_part(
        &mut self,
        name: &str,
        positions: &[Vec3],
        polygons: Polygons,
        uvs: Vec<Vec2>,
        rows: Vec<Row>,
    ) -> usize {
        let (part, mended) = polygons.finish(uvs);
        self.warnings.extend(mended.into_iter().map(|warning| format!("{name}: {warning}")));
        let all = &mut self.mesh;
        let (first, segment) = (all.positions.len(), all.segments.names.len() as u32);
        all.segments.names.push(self.part_names.take(if name.is_empty() { "mesh" } else { name }));
        all.segments.of_vertex.extend(std::iter::repeat_n(segment, positions.len()));
        all.positions.extend_from_slice(positions);
        // Coordinates of earlier parts without any, and of this one: all their corners share one.
        let textured = !part.face_uvs.is_empty();
        if textured && all.face_uvs.is_empty() && !all.faces.is_empty() {
            all.uvs.push(Vec2::ZERO);
            let shared = all.uvs.len() as u32 - 1;
            all.face_uvs = all.faces.iter().map(|face| face.map(|_| shared)).collect();
        }
        if textured {
            let table = all.uvs.len() as u32;
            all.uvs.extend(part.uvs);
            all.face_uvs.extend(part.face_uvs.iter().map(|face| face.map(|uv| uv + table)));
        } else if !all.face_uvs.is_empty() {
            let shared = all.uvs.len() as u32;
            all.uvs.push(Vec2::ZERO);
            all.face_uvs.extend(part.faces.iter().map(|face| face.map(|_| shared)));
        }
        all.faces.extend(part.faces.iter().map(|face| face.map(|corner| corner + first as u32)));
        if rows.is_empty() {
            self.rows.extend(std::iter::repeat_n(Row::new(), positions.len()));
        } else {
            self.rows.extend(rows);
        }
        first
    }

    /// A shape that moves some vertices of the whole mesh, with its weight at rest.
    pub fn add_shape(&mut self, name: &str, mut offsets: Vec<(u32, Vec3)>, rest: f32) -> usize {
        offsets.sort_by_key(|(vertex, _)| *vertex);
        offsets.dedup_by_key(|(vertex, _)| *vertex);
        offsets.retain(|(_, delta)| *delta != Vec3::ZERO);
        let (vertices, deltas) = offsets.into_iter().unzip();
        let name = self.shape_names.take(if name.is_empty() { "shape" } else { name });
        self.shapes.push(Shape { name, deltas: SparseDeltas { vertices, deltas } });
        self.rest_weights.push(rest);
        self.shapes.len() - 1
    }

    /// The bones alone.
    pub fn skeleton(self) -> Result<Skeleton, ParseError> {
        Skeleton::new(self.bones).map_err(|error| ParseError::new("bones", error))
    }

    /// Checks everything once.
    pub fn finish(mut self, clips: Vec<KeyedClip>, conversion: Conversion) -> Result<Model, ParseError> {
        let bound = self.rows.iter().any(|row| !row.is_empty());
        if bound && self.rows.iter().any(Row::is_empty) {
            // Something stands still among things that move: it follows a bone that never does.
            let still = self.add_bone("still", None, JointTransform::IDENTITY);
            let still = self.bind(still, DAffine3::IDENTITY)?;
            self.rows.iter_mut().filter(|row| row.is_empty()).for_each(|row| row.push((still, 1.0)));
        }
        // Bones that move nothing are left out, and so is what animates them.
        let mut clips = clips;
        if !bound {
            clips.iter_mut().for_each(|clip| clip.bones.clear());
            clips.retain(|clip| !clip.weights.is_empty());
        }
        let neutral = self.mesh.positions.clone();
        let mesh = self.mesh.build().map_err(|error| ParseError::new("mesh", error))?;
        let mut model = Model { warnings: self.warnings, clips, ..Model::still(mesh, conversion) };
        if bound {
            let fail = |error: &dyn ToString| ParseError::new("bones", error.to_string());
            let count = self.bones.len();
            let skeleton = Skeleton::new(self.bones).map_err(|error| fail(&error))?;
            let mut binds = skeleton.inverse_bind().to_vec();
            for (bone, matrix) in self.bound.into_iter().flatten() {
                binds[bone] = to_single(&matrix);
            }
            model.skeleton = Some(skeleton.with_inverse_bind(binds).map_err(|error| fail(&error))?);
            let skin = SkinWeights::from_rows(&self.rows, count);
            model.skin = Some(skin.map_err(|error| ParseError::new("skin weights", error))?);
            self.joints.sort_unstable();
            self.joints.dedup();
            model.joints = self.joints;
        }
        if !self.shapes.is_empty() {
            let shapes = BlendshapeRig::new(neutral, self.shapes, Vec::new());
            model.shapes = Some(shapes.map_err(|error| ParseError::new("shapes", error))?);
            model.rest_weights = self.rest_weights;
        }
        Ok(model)
    }
}

/// A row whose weights sum to one, each bone once; `fallback` where there are none.
pub(crate) fn tidy_row(mut row: Row, fallback: u16) -> Row {
    row.retain(|(_, weight)| *weight > 0.0 && weight.is_finite());
    row.sort_by_key(|(bone, _)| *bone);
    row.dedup_by(|later, earlier| {
        let same = later.0 == earlier.0;
        if same {
            earlier.1 += later.1;
        }
        same
    });
    let sum: f64 = row.iter().map(|(_, weight)| f64::from(*weight)).sum();
    if sum < 1e-6 || !sum.is_finite() {
        return vec![(fallback, 1.0)];
    }
    row.iter_mut().for_each(|(_, weight)| *weight = (f64::from(*weight) / sum) as f32);
    row
}

/// Whether two bind matrices are the same up to rounding in the file: 1e-4 cm at arm's length.
fn agree(a: &DAffine3, b: &DAffine3) -> bool {
    let size = a.matrix3.to_cols_array().iter().fold(0.0f64, |size, v| size.max(v.abs()));
    let turn = (a.matrix3 - b.matrix3).to_cols_array();
    let shift = (a.translation - b.translation).length();
    turn.iter().all(|v| v.abs() <= 1e-6 * size)
        && shift <= 1e-4 * size.max(1e-12) + 1e-6 * a.translation.length()
}

/// In single precision, as bones are stored.
fn to_single(matrix: &DAffine3) -> Affine3A {
    Affine3A::from_mat3_translation(matrix.matrix3.as_mat3(), matrix.translation.as_vec3())
}

/// Scale, rotation and translation that can be inverted: a scale of zero, which hides a part in some files, becomes a
/// millionth.
pub(crate) fn joint(scale: glam::DVec3, rotation: glam::DQuat, translation: glam::DVec3) -> JointTransform {
    let least = |s: f64| {
        let s = s as f32;
        if s.abs() < KeyedClip::SMALLEST_SCALE { KeyedClip::SMALLEST_SCALE.copysign(s) } else { s }
    };
    let rotation = if rotation.length() > 1e-12 { rotation.normalize() } else { glam::DQuat::IDENTITY };
    JointTransform {
        rotation: rotation.as_quat(),
        translation: translation.as_vec3(),
        scale: Vec3::new(least(scale.x), least(scale.y), least(scale.z)),
    }
}
