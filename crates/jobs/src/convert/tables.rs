//! Everything that is not glTF: OBJ text, NumPy archives, motion and weight files.

use super::Written;
use crate::JobError;
use understudy_core::{
    BlendshapeRig, Corrective, GlobalPose, JointClip, Mesh, Shape, Skeleton, SparseDeltas, Vec3, arkit,
};
use understudy_io::Model;
use understudy_io::bvh::Bvh;
use understudy_io::dataset::DatasetReader;
use understudy_io::live_link::{LiveLinkTake, ROTATIONS, WeightTable};
use understudy_io::npz::NpzWriter;

/// More than this is better read chunk by chunk.
const MAX_DATASET_BYTES: u64 = 4 << 30;

pub(super) fn obj(mesh: &Mesh) -> Written {
    let text = understudy_io::obj::to_obj_string(mesh);
    Written::new(
        text.into_bytes(),
        vec![format!("{} vertices, {} faces", mesh.vertex_count(), mesh.faces().len())],
    )
}

pub(super) fn shapes_npz(mesh: &Mesh, shapes: &BlendshapeRig, input: &str) -> Result<Written, JobError> {
    let bytes = understudy_io::blendshape_npz::to_bytes(mesh, shapes);
    let bytes = bytes.map_err(|problem| JobError::unusable(input, problem))?;
    let (count, correctives) = (shapes.shapes().len(), shapes.correctives().len());
    let line = format!("{} vertices, {count} shapes, {correctives} correctives", mesh.vertex_count());
    Ok(Written::new(bytes, vec![line]))
}

/// The shapes of a model with its bones at rest. Linear blend skinning is affine in the vertices, so offsets carried
/// through it are again offsets.
pub(super) fn model_npz(model: &Model, input: &str) -> Result<Written, JobError> {
    let shapes = model.shapes.as_ref().ok_or_else(|| JobError::unusable(input, "has no morph targets"))?;
    let Some((skeleton, skin)) = model.bound() else { return shapes_npz(&model.mesh, shapes, input) };
    let failed = |error: &dyn std::fmt::Display| JobError::unusable(input, error);
    let mut global = GlobalPose::default();
    skeleton.forward(&skeleton.rest_pose(), &mut global).map_err(|error| failed(&error))?;
    let mut matrices = Vec::new();
    skeleton.skinning_matrices(&global, &mut matrices);
    let mut rest = vec![Vec3::ZERO; model.mesh.vertex_count()];
    skin.linear_blend(&matrices, model.mesh.positions(), &mut rest);
    let carry = |deltas: &SparseDeltas| {
        let moved = deltas.vertices.iter().zip(&deltas.deltas).map(|(&vertex, delta)| {
            let vertex = vertex as usize;
            let influence = |(bone, weight): (usize, f32)| matrices[bone].transform_vector3(*delta) * weight;
            skin.row(vertex).map(influence).sum::<Vec3>()
        });
        SparseDeltas { vertices: deltas.vertices.clone(), deltas: moved.collect() }
    };
    let shape = |shape: &Shape| Shape { name: shape.name.clone(), deltas: carry(&shape.deltas) };
    let corrective = |c: &Corrective| Corrective { shapes: c.shapes.clone(), deltas: carry(&c.deltas) };
    let carried = BlendshapeRig::new(
        rest.clone(),
        shapes.shapes().iter().map(shape).collect(),
        shapes.correctives().iter().map(corrective).collect(),
    );
    let mesh = model.mesh.with_positions(&rest).map_err(|error| failed(&error))?;
    let mut written = shapes_npz(&mesh, &carried.map_err(|error| failed(&error))?, input)?;
    if skeleton.len() > 1 {
        written.contents.push(format!("{} bones are left out: the format holds shapes only", skeleton.len()));
    }
    Ok(written)
}

/// All poses in one archive: `poses [p,k]`, `vertices [p,n,3]`, `skeletons [p,J,12]`, `controls [k]`,
/// `faces [f,4]`, `rest [n,3]`.
pub(super) fn dataset_npz(reader: &DatasetReader, input: &str) -> Result<Written, JobError> {
    let (shape, count) = (reader.shape(), reader.header().poses);
    let numbers = (shape.controls + shape.bones * 12 + shape.vertices * 3) as u64;
    let bytes = numbers * 4 * count as u64;
    if bytes > MAX_DATASET_BYTES {
        let problem = format!("{bytes} bytes are too many for one archive; read its chunks one by one");
        return Err(JobError::unusable(input, problem));
    }
    let (mut poses, mut skeletons, mut vertices) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..reader.chunk_count() {
        let chunk = reader.chunk(index)?;
        poses.extend_from_slice(chunk.poses());
        skeletons.extend_from_slice(chunk.skeletons());
        vertices.extend_from_slice(chunk.vertices());
    }
    let mesh = &reader.rest().mesh;
    let corner = |corner: u32| i32::try_from(corner).unwrap_or(-1);
    let faces: Vec<i32> = mesh.faces().iter().flat_map(|face| face.raw().map(corner)).collect();
    let rest: Vec<f32> = mesh.positions().iter().flat_map(|p| p.to_array()).collect();
    let names: Vec<&str> = reader.header().controls.iter().map(|spec| spec.name.as_str()).collect();
    let mut npz = NpzWriter::new();
    npz.f32("poses", &[count, shape.controls], &poses).f32(
        "vertices",
        &[count, shape.vertices, 3],
        &vertices,
    );
    if shape.bones > 0 {
        npz.f32("skeletons", &[count, shape.bones, 12], &skeletons);
    }
    npz.f32("rest", &[shape.vertices, 3], &rest).i32("faces", &[mesh.faces().len(), 4], &faces);
    npz.strings("controls", &names);
    let bytes = npz.finish().map_err(|problem| JobError::unusable(input, problem))?;
    Ok(Written::new(bytes, vec![format!("{count} poses of {} vertices", shape.vertices)]))
}

/// A clip of bones, rotations as Z, X, Y: what most programs write.
pub(super) fn bvh(skeleton: &Skeleton, clip: &JointClip, input: &str) -> Result<Written, JobError> {
    if clip.poses.is_empty() {
        return Err(JobError::unusable(input, format!("the clip '{}' moves no bones", clip.name)));
    }
    bvh_text(&Bvh::from_clip(skeleton.clone(), clip.clone(), [2, 0, 1]), input)
}

/// A motion file with its own channels, in centimetres.
pub(super) fn bvh_again(motion: &Bvh, rate: Option<f32>, input: &str) -> Result<Written, JobError> {
    match rate {
        None => bvh_text(motion, input),
        Some(rate) => {
            let clip = motion.clip.resample(rate).map_err(|error| JobError::setting("rate", error))?;
            bvh_text(&Bvh { clip, ..motion.clone() }, input)
        }
    }
}

fn bvh_text(motion: &Bvh, input: &str) -> Result<Written, JobError> {
    let text =
        understudy_io::bvh::to_text(motion, 1.0).map_err(|problem| JobError::unusable(input, problem))?;
    let (bones, frames, rate) = (motion.skeleton.len(), motion.clip.poses.len(), motion.clip.rate);
    let line = format!("{bones} joints, {frames} frames at {rate} a second, lengths in cm");
    Ok(Written::new(text.into_bytes(), vec![line]))
}

/// A plain table of weights: a column a control, a row a frame.
pub(super) fn csv(
    names: Vec<String>,
    frames: &[Vec<f32>],
    rate: f32,
    input: &str,
) -> Result<Written, JobError> {
    if names.is_empty() || frames.is_empty() {
        return Err(JobError::unusable(input, "has no weights to write"));
    }
    let line = format!("a table of {} controls, {} frames at {rate} a second", names.len(), frames.len());
    let table = WeightTable { names, frames: frames.to_vec(), rate: Some(rate) };
    let text = understudy_io::live_link::weights_to_text(&table);
    Ok(Written::new(text.map_err(|problem| JobError::unusable(input, problem))?.into_bytes(), vec![line]))
}

/// A plain table as a Live Link Face take; its columns must be ARKit's.
pub(super) fn live_link(table: &WeightTable, rate: Option<f32>, input: &str) -> Result<Written, JobError> {
    let unknown = || JobError::unusable(input, "names no frame rate in a column 'time'; give --rate");
    let rate = rate.or(table.rate).ok_or_else(unknown)?;
    let column = |name: &String| {
        let rotation = ROTATIONS.into_iter().find(|rotation| rotation.eq_ignore_ascii_case(name));
        arkit::canonical(name).or(rotation).map_or_else(|| name.clone(), String::from)
    };
    let take = LiveLinkTake {
        names: table.names.iter().map(column).collect(),
        frames: table.frames.clone(),
        times: (0..table.frames.len()).map(|frame| frame as f64 / f64::from(rate)).collect(),
        rate,
        rate_reason: "given".into(),
        start: 0.0,
    };
    let text =
        understudy_io::live_link::to_text(&take).map_err(|problem| JobError::unusable(input, problem))?;
    let line = format!("a Live Link Face take of {} frames at {rate} a second", take.frames.len());
    Ok(Written::new(text.into_bytes(), vec![line]))
}

/// `names [m]`, `weights [f,m]` and, where it is known, `rate []`.
pub(super) fn weights_npz(
    names: &[String],
    frames: &[Vec<f32>],
    rate: Option<f32>,
    input: &str,
) -> Result<Written, JobError> {
    let mut npz = NpzWriter::new();
    npz.strings("names", names).f32("weights", &[frames.len(), names.len()], &frames.concat());
    if let Some(rate) = rate {
        npz.f32("rate", &[], &[rate]);
    }
    let bytes = npz.finish().map_err(|problem| JobError::unusable(input, problem))?;
    Ok(Written::new(bytes, vec![format!("{} controls, {} frames", names.len(), frames.len())]))
}
