//! `rest.safetensors`: the mesh, bones and skin weights that a dataset's poses deform.

use super::chunk::{from_rows, rows_of};
use crate::Dim::{Any, Exactly};
use crate::ParseError;
use crate::arrays::in_array;
use crate::tensors::{TensorWriter, Tensors};
use understudy_core::{
    Affine3A, Bone, Face, JointTransform, Mesh, MeshParts, Quat, Segments, Skeleton, SkinWeights, Vec2, Vec3,
};

/// What the poses of a dataset deform.
#[derive(Debug, Clone, PartialEq)]
pub struct DatasetRest {
    /// Rest positions, faces, UVs and segments.
    pub mesh: Mesh,
    /// The bones whose world transforms each pose records.
    pub skeleton: Option<Skeleton>,
    /// Skin weights where the rig has them.
    pub weights: Option<SkinWeights>,
}

impl DatasetRest {
    /// Number of bones; zero without a skeleton.
    pub fn bone_count(&self) -> usize {
        self.skeleton.as_ref().map_or(0, Skeleton::len)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let Some(weights) = &self.weights else { return Ok(()) };
        if weights.vertex_count() != self.mesh.vertex_count() || weights.bone_count() != self.bone_count() {
            return Err(format!(
                "skin weights for {} vertices and {} bones, but there are {} and {}",
                weights.vertex_count(),
                weights.bone_count(),
                self.mesh.vertex_count(),
                self.bone_count()
            ));
        }
        Ok(())
    }

    /// The file's bytes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mesh = &self.mesh;
        let mut file = TensorWriter::new();
        let flat: Vec<f32> = mesh.positions().iter().flat_map(|p| p.to_array()).collect();
        file.f32("vertices", &[mesh.vertex_count(), 3], &flat);
        file.i32("faces", &[mesh.faces().len(), 4], &corners(mesh.faces()));
        if mesh.has_uvs() {
            let uvs: Vec<f32> = mesh.uvs().iter().flat_map(|uv| uv.to_array()).collect();
            file.f32("uvs", &[mesh.uvs().len(), 2], &uvs);
            file.i32("face_uvs", &[mesh.face_uvs().len(), 4], &corners(mesh.face_uvs()));
        }
        file.u32("segments", &[mesh.vertex_count()], &mesh.segments().of_vertex);
        file.metadata("segment_names", names_to_text(&mesh.segments().names));
        if let Some(skeleton) = &self.skeleton {
            write_skeleton(skeleton, &mut file);
        }
        if let Some(weights) = &self.weights {
            let (offsets, bones, values) = weights.compressed();
            file.u32("skin_offsets", &[offsets.len()], offsets);
            file.u16("skin_bones", &[bones.len()], bones).f32("skin_weights", &[values.len()], values);
        }
        file.finish().expect("shapes are those of checked types")
    }
}

fn corners(faces: &[Face]) -> Vec<i32> {
    // A triangle's missing corner, u32::MAX, becomes −1.
    faces.iter().flat_map(|face| face.raw()).map(|corner| corner as i32).collect()
}

fn write_skeleton(skeleton: &Skeleton, file: &mut TensorWriter) {
    let bones = skeleton.bones();
    let names: Vec<String> = bones.iter().map(|bone| bone.name.clone()).collect();
    let parents: Vec<i32> = bones.iter().map(|bone| bone.parent.map_or(-1, |parent| parent as i32)).collect();
    let local = |bone: &Bone| {
        let JointTransform { rotation: q, translation: t, scale: s } = bone.rest;
        [q.x, q.y, q.z, q.w, t.x, t.y, t.z, s.x, s.y, s.z]
    };
    file.metadata("bone_names", names_to_text(&names));
    file.i32("bone_parents", &[bones.len()], &parents);
    file.f32("bone_rest", &[bones.len(), 10], &bones.iter().flat_map(local).collect::<Vec<_>>());
    let binds: Vec<f32> = skeleton.inverse_bind().iter().flat_map(rows_of).collect();
    file.f32("inverse_bind", &[bones.len(), 12], &binds);
}

fn names_to_text(names: &[String]) -> String {
    serde_json::json!(names).to_string()
}

/// The rest of a dataset from bytes.
pub fn parse_rest(bytes: &[u8]) -> Result<DatasetRest, ParseError> {
    let file = Tensors::parse(bytes)?;
    let mesh = read_mesh(&file)?;
    let skeleton = if file.contains("bone_parents") { Some(read_skeleton(&file)?) } else { None };
    let weights = if file.contains("skin_offsets") {
        let offsets = file.u32("skin_offsets", &[Exactly(mesh.vertex_count() + 1)])?.data;
        let bones = file.u16("skin_bones", &[Any("w")])?.data;
        let values = file.f32("skin_weights", &[Exactly(bones.len())])?.data;
        let count = skeleton.as_ref().map_or(0, Skeleton::len);
        let weights = SkinWeights::from_compressed(offsets, bones, values, count);
        Some(weights.map_err(|error| in_array("skin_weights", error))?)
    } else {
        None
    };
    Ok(DatasetRest { mesh, skeleton, weights })
}

fn read_mesh(file: &Tensors<'_>) -> Result<Mesh, ParseError> {
    let positions = file.f32("vertices", &[Any("n"), Exactly(3)])?;
    let n = positions.shape[0];
    let mut parts = MeshParts {
        positions: positions.data.chunks_exact(3).map(Vec3::from_slice).collect(),
        faces: read_faces(file, "faces", Any("f"))?,
        ..MeshParts::default()
    };
    if file.contains("uvs") {
        let uvs = file.f32("uvs", &[Any("t"), Exactly(2)])?.data;
        parts.uvs = uvs.chunks_exact(2).map(Vec2::from_slice).collect();
        parts.face_uvs = read_faces(file, "face_uvs", Exactly(parts.faces.len()))?;
    }
    parts.segments = Segments {
        names: read_names(file, "segment_names")?,
        of_vertex: file.u32("segments", &[Exactly(n)])?.data,
    };
    parts.build().map_err(|error| in_array("faces", error))
}

fn read_faces(file: &Tensors<'_>, name: &str, rows: crate::Dim) -> Result<Vec<Face>, ParseError> {
    let array = file.i32(name, &[rows, Exactly(4)])?;
    let face = |(index, row): (usize, &[i32])| {
        let corner = |value: i32| {
            u32::try_from(value).map_err(|_| in_array(name, format!("face {index} has a corner {value}")))
        };
        let (a, b, c) = (corner(row[0])?, corner(row[1])?, corner(row[2])?);
        if row[3] == -1 { Ok(Face::triangle(a, b, c)) } else { Ok(Face::quad(a, b, c, corner(row[3])?)) }
    };
    array.data.chunks_exact(4).enumerate().map(face).collect()
}

fn read_names(file: &Tensors<'_>, key: &str) -> Result<Vec<String>, ParseError> {
    let text =
        file.metadata().get(key).ok_or_else(|| ParseError::new("metadata", format!("has no '{key}'")))?;
    serde_json::from_str(text)
        .map_err(|_| ParseError::new("metadata", format!("'{key}' is not a list of names")))
}

fn read_skeleton(file: &Tensors<'_>) -> Result<Skeleton, ParseError> {
    let names = read_names(file, "bone_names")?;
    let count = names.len();
    let parents = file.i32("bone_parents", &[Exactly(count)])?.data;
    let rest = file.f32("bone_rest", &[Exactly(count), Exactly(10)])?.data;
    let mut bones = Vec::with_capacity(count);
    for (bone, name) in names.into_iter().enumerate() {
        let parent = match parents[bone] {
            -1 => None,
            parent => Some(
                usize::try_from(parent)
                    .map_err(|_| in_array("bone_parents", format!("bone {bone} has parent {parent}")))?,
            ),
        };
        let row = &rest[bone * 10..(bone + 1) * 10];
        let rest = JointTransform {
            rotation: Quat::from_slice(&row[..4]),
            translation: Vec3::from_slice(&row[4..7]),
            scale: Vec3::from_slice(&row[7..10]),
        };
        if !rest.rotation.is_normalized() {
            return Err(in_array(
                "bone_rest",
                format!("the rotation of bone {bone} is not a unit quaternion"),
            ));
        }
        bones.push(Bone { name, parent, rest });
    }
    let binds = file.f32("inverse_bind", &[Exactly(count), Exactly(12)])?.data;
    let binds: Vec<Affine3A> = binds.chunks_exact(12).map(from_rows).collect();
    let skeleton = Skeleton::new(bones).and_then(|skeleton| skeleton.with_inverse_bind(binds));
    skeleton.map_err(|error| in_array("bone_parents", error))
}
