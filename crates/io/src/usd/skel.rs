//! UsdSkel as a [`Model`]: skeletons become bones, meshes parts, BlendShape prims shapes, SkelAnimation prims clips.

use super::layer::{self, Layer};
use crate::assembly::{Assembly, Row, joint, tidy_row};
use crate::polygons::{Corner, Polygons};
use crate::{Axis, Conversion, Model, ParseError};
use glam::{DAffine3, DMat3, DQuat, DVec3, Vec3};
use std::collections::HashMap;
use std::sync::Arc;
use understudy_core::{
    BoneTrack, JointProperty, JointTransform, KeyedClip, Track, TrackInterpolation, Vec2, WeightTrack,
};

/// Most meshes, and most joints of a skeleton.
const MOST: usize = 65_535;

/// From the file's lengths and axes to centimetres and Y-up.
struct Space {
    scale: f64,
    turn: DMat3,
}

impl Space {
    /// A map of points, in the new space on both sides.
    fn map(&self, m: &DAffine3) -> DAffine3 {
        let back = self.turn.transpose();
        DAffine3 {
            matrix3: self.turn * m.matrix3 * back,
            translation: self.turn * m.translation * self.scale,
        }
    }

    fn point(&self, p: DVec3) -> DVec3 {
        self.turn * p * self.scale
    }
}

/// A skeleton with its bones in the assembly.
struct Joints {
    path: String,
    tokens: Vec<String>,
    bones: Vec<usize>,
    /// Skeleton space → joint in the bind pose, new space.
    binds: Vec<DAffine3>,
    /// Skeleton → world, new space.
    world: DAffine3,
}

/// A shape of one name, over all meshes that have it.
struct NamedShape {
    name: String,
    offsets: Vec<(u32, Vec3)>,
}

pub(super) fn model(layer: &Layer) -> Result<Model, ParseError> {
    let metres = layer.layer_number("metersPerUnit")?.filter(|m| m.is_finite() && *m > 0.0);
    let up = match layer.layer_token("upAxis")?.as_deref() {
        Some("Z" | "z") => Axis::Z,
        _ => Axis::Y,
    };
    let scale = metres.unwrap_or(0.01) * 100.0;
    let turn = match up {
        Axis::Y => DMat3::IDENTITY,
        Axis::Z => DMat3::from_cols(DVec3::X, -DVec3::Z, DVec3::Y),
    };
    let reason =
        if metres.is_some() { "the file says so" } else { "USD means centimetres where a file says nothing" };
    let conversion = Conversion { scale: scale as f32, up, reason: reason.into() };
    let space = Space { scale, turn };
    let mut assembly = Assembly::default();
    let mut worlds = HashMap::new();
    let mut skeletons = Vec::new();
    for path in layer.of_kind("Skeleton") {
        skeletons.push(read_skeleton(layer, path, &space, &mut assembly, &mut worlds)?);
    }
    let mut shapes: Vec<NamedShape> = Vec::new();
    let mut count = 0;
    for path in layer.of_kind("Mesh") {
        count += 1;
        if count > MOST {
            return Err(ParseError::new(path, format!("more than {MOST} meshes")));
        }
        read_mesh(layer, path, &space, &skeletons, &mut assembly, &mut worlds, &mut shapes)?;
    }
    if count == 0 {
        let problem = "there is no mesh in it; layers and references that it names are not opened";
        return Err(ParseError::new("layer", problem));
    }
    let names: Vec<String> = shapes.iter().map(|shape| shape.name.clone()).collect();
    for shape in shapes {
        assembly.add_shape(&shape.name, shape.offsets, 0.0);
    }
    let rate = ["timeCodesPerSecond", "framesPerSecond"].into_iter().find_map(|field| {
        layer.layer_number(field).ok().flatten().filter(|rate| rate.is_finite() && *rate > 0.0)
    });
    let clips = clips(layer, &skeletons, &names, rate.unwrap_or(24.0), &space, &mut assembly)?;
    assembly.finish(clips, conversion)
}

fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Scale, rotation and translation; whether they multiply back to the matrix.
fn parts_of(m: &DAffine3) -> (JointTransform, bool) {
    let [x, y, z] = [m.matrix3.x_axis, m.matrix3.y_axis, m.matrix3.z_axis];
    let mut scale = DVec3::new(x.length(), y.length(), z.length());
    let a = x.try_normalize().unwrap_or(DVec3::X);
    let b = (y - a * a.dot(y)).try_normalize().unwrap_or_else(|| a.any_orthonormal_vector());
    let c = a.cross(b);
    if m.matrix3.determinant() < 0.0 {
        scale.z = -scale.z;
    }
    let turn = DMat3::from_cols(a, b, c);
    let back = turn * DMat3::from_diagonal(scale);
    let size = scale.abs().max_element().max(1e-12);
    let exact = (back - m.matrix3).to_cols_array().iter().all(|v| v.abs() < 1e-4 * size);
    (joint(scale, DQuat::from_mat3(&turn), m.translation), exact)
}

fn read_skeleton(
    layer: &Layer,
    path: &str,
    space: &Space,
    assembly: &mut Assembly,
    worlds: &mut HashMap<String, (DAffine3, bool)>,
) -> Result<Joints, ParseError> {
    let fail = |problem: String| ParseError::new(path, problem);
    let tokens = layer.value(path, "joints")?.as_ref().and_then(layer::strings).unwrap_or_default();
    if tokens.len() > MOST {
        return Err(fail(format!("{} joints are more than {MOST}", tokens.len())));
    }
    // Joints are paths; their own names stand beside them where a writer kept them.
    let names = layer.value(path, "jointNames")?.as_ref().and_then(layer::strings);
    let names = names.filter(|names| names.len() == tokens.len());
    let name = |joint: usize| names.as_ref().map_or(last_name(&tokens[joint]), |names| names[joint].as_str());
    let transforms = |name: &str| -> Result<Option<Vec<DAffine3>>, ParseError> {
        let Some(list) = layer.value(path, name)?.as_ref().and_then(layer::matrices) else { return Ok(None) };
        if list.len() != tokens.len() || list.iter().any(|m| !m.is_finite()) {
            return Err(fail(format!("{name}: {} for {} joints, or not finite", list.len(), tokens.len())));
        }
        Ok(Some(list))
    };
    let (rests, binds) = (transforms("restTransforms")?, transforms("bindTransforms")?);
    let place: HashMap<&str, usize> =
        tokens.iter().enumerate().map(|(i, token)| (token.as_str(), i)).collect();
    if place.len() != tokens.len() {
        return Err(fail("two joints have one name".into()));
    }
    // A parent is the nearest joint whose path is the beginning of the joint's.
    let parents: Vec<Option<usize>> = tokens
        .iter()
        .map(|token| {
            let above = std::iter::successors(token.rsplit_once('/').map(|(above, _)| above), |path| {
                path.rsplit_once('/').map(|(above, _)| above)
            });
            above.take(256).find_map(|above| place.get(above).copied())
        })
        .collect();
    let binds = binds.unwrap_or_else(|| {
        // Without bind transforms the rest pose is the bind pose.
        let rests = rests.clone().unwrap_or_else(|| vec![DAffine3::IDENTITY; tokens.len()]);
        global(&rests, &parents)
    });
    let rests = rests.unwrap_or_else(|| {
        let local = |(joint, parent): (usize, &Option<usize>)| match parent {
            Some(parent) => binds[*parent].inverse() * binds[joint],
            None => binds[joint],
        };
        parents.iter().enumerate().map(local).collect()
    });
    let (world, moves) = layer.world(path, worlds)?;
    if moves {
        assembly.warnings.push(format!("{path}: its own animated transform is not read, its joints' is"));
    }
    let world = space.map(&world);
    let root = match world.abs_diff_eq(DAffine3::IDENTITY, 1e-9) {
        true => None,
        false => Some(assembly.add_bone(last_name(path), None, parts_of(&world).0)),
    };
    let mut bones = vec![usize::MAX; tokens.len()];
    let mut sheared = 0;
    for joint in order(&parents) {
        let (rest, exact) = parts_of(&space.map(&rests[joint]));
        sheared += usize::from(!exact);
        let parent = parents[joint].map(|parent| bones[parent]).or(root);
        bones[joint] = assembly.add_bone(name(joint), parent, rest);
    }
    if sheared > 0 {
        assembly.warnings.push(format!("{path}: the shear of {sheared} joints at rest is dropped"));
    }
    let mut inverse = Vec::with_capacity(binds.len());
    for (joint, bind) in binds.iter().enumerate() {
        let bind = space.map(bind).inverse();
        if !bind.is_finite() {
            return Err(fail(format!("joint '{}' is bound flat", tokens[joint])));
        }
        inverse.push(bind);
    }
    Ok(Joints { path: path.to_owned(), tokens, bones, binds: inverse, world })
}

/// Joints, parents first: a parent's path is shorter than its child's.
fn order(parents: &[Option<usize>]) -> Vec<usize> {
    let depth =
        |joint: usize| std::iter::successors(parents[joint], |above| parents[*above]).take(300).count();
    let mut order: Vec<(usize, usize)> = (0..parents.len()).map(|joint| (depth(joint), joint)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, joint)| joint).collect()
}

fn global(locals: &[DAffine3], parents: &[Option<usize>]) -> Vec<DAffine3> {
    let mut out = locals.to_vec();
    for joint in order(parents) {
        if let Some(parent) = parents[joint] {
            out[joint] = out[parent] * locals[joint];
        }
    }
    out
}

fn read_mesh(
    layer: &Layer,
    path: &str,
    space: &Space,
    skeletons: &[Joints],
    assembly: &mut Assembly,
    worlds: &mut HashMap<String, (DAffine3, bool)>,
    shapes: &mut Vec<NamedShape>,
) -> Result<(), ParseError> {
    let fail = |problem: String| ParseError::new(path, problem);
    let points = layer.value(path, "points")?.as_ref().and_then(layer::vectors).unwrap_or_default();
    if points.is_empty() {
        assembly.warnings.push(format!("{path}: has no points and is skipped"));
        return Ok(());
    }
    if layer.samples(path, "points")?.len() > 1 {
        assembly.warnings.push(format!("{path}: its animated points are not read; export them as Alembic"));
    }
    let name = mesh_name(layer, path);
    let (polygons, uvs) = polygons(layer, path, points.len(), assembly)?;
    let bound = layer.value(path, "primvars:skel:jointIndices")?.is_some();
    let skeleton = match (bound, layer.inherited_target(path, "skel:skeleton")?) {
        (true, Some(target)) => skeletons.iter().find(|skeleton| skeleton.path == target),
        (true, None) => skeletons.first(),
        (false, _) => None,
    };
    let (world, moves) = layer.world(path, worlds)?;
    if moves && skeleton.is_none() {
        assembly.warnings.push(format!("{path}: its own animated transform is not read"));
    }
    // Points at the bind pose in the world of the new space.
    let place = match skeleton {
        Some(skeleton) => {
            let bind =
                layer.value(path, "primvars:skel:geomBindTransform")?.as_ref().and_then(layer::matrices);
            skeleton.world
                * space.map(&bind.and_then(|list| list.first().copied()).unwrap_or(DAffine3::IDENTITY))
        }
        None => space.map(&world),
    };
    let positions: Vec<Vec3> =
        points.iter().map(|p| place.transform_point3(space.point(*p)).as_vec3()).collect();
    if let Some(vertex) = positions.iter().position(|p| !p.is_finite()) {
        return Err(fail(format!("point {vertex} is not finite")));
    }
    let rows = match skeleton {
        Some(skeleton) => rows(layer, path, positions.len(), skeleton, assembly)?,
        None => Vec::new(),
    };
    let first = assembly.add_part(name, &positions, polygons, uvs, rows);
    let names = layer.value(path, "skel:blendShapes")?.as_ref().and_then(layer::strings).unwrap_or_default();
    let targets = layer.targets(path, "skel:blendShapeTargets")?;
    if names.len() != targets.len() {
        return Err(fail(format!("{} names for {} blendshapes", names.len(), targets.len())));
    }
    for (name, target) in names.into_iter().zip(targets) {
        let offsets = offsets(layer, &target, points.len(), first, &place.matrix3, space, assembly)?;
        match shapes.iter_mut().find(|shape| shape.name == name) {
            Some(shape) => shape.offsets.extend(offsets),
            None => shapes.push(NamedShape { name, offsets }),
        }
    }
    Ok(())
}

/// What people call a mesh: the prim that moves it, where that holds one mesh; its own name otherwise.
fn mesh_name<'a>(layer: &Layer, path: &'a str) -> &'a str {
    let Some((above, own)) = path.rsplit_once('/') else { return path };
    let inside = format!("{above}/");
    let meshes = layer.of_kind("Mesh").filter(|other| other.starts_with(&inside)).take(2).count();
    match layer.kind(above) {
        Some("Xform") if meshes == 1 => last_name(above),
        _ => own,
    }
}

fn polygons(
    layer: &Layer,
    path: &str,
    points: usize,
    assembly: &mut Assembly,
) -> Result<(Polygons, Vec<Vec2>), ParseError> {
    let fail = |problem: String| ParseError::new(path, problem);
    let list = |name: &str| -> Result<Vec<i64>, ParseError> {
        Ok(layer.value(path, name)?.as_ref().and_then(layer::integers).unwrap_or_default())
    };
    let (counts, indices) = (list("faceVertexCounts")?, list("faceVertexIndices")?);
    if counts.iter().any(|count| *count < 0)
        || counts.iter().map(|c| *c as u128).sum::<u128>() != indices.len() as u128
    {
        return Err(fail(format!("its faces do not have {} corners", indices.len())));
    }
    let (uvs, of_corner) = texture(layer, path, points, &indices)?;
    let left = layer.value(path, "orientation")?.as_ref().and_then(layer::strings);
    let left = left.is_some_and(|words| words.first().is_some_and(|word| word == "leftHanded"));
    let mut polygons = Polygons::default();
    let (mut next, mut lines) = (0, 0);
    let mut corners: Vec<Corner> = Vec::new();
    for count in counts {
        let range = next..next + count as usize;
        next = range.end;
        if count < 3 {
            lines += 1;
            continue;
        }
        corners.clear();
        for corner in range {
            let vertex = usize::try_from(indices[corner]).ok().filter(|vertex| *vertex < points);
            let vertex =
                vertex.ok_or_else(|| fail(format!("a face names point {} of {points}", indices[corner])))?;
            corners.push((vertex, of_corner.get(corner).copied()));
        }
        if left {
            corners.reverse();
        }
        polygons.add(&corners);
    }
    if lines > 0 {
        assembly.warnings.push(format!("{path}: {lines} faces of fewer than three corners are skipped"));
    }
    Ok((polygons, uvs))
}

/// `primvars:st`, or the first other pair of numbers that exporters use, with a place for every corner.
fn texture(
    layer: &Layer,
    path: &str,
    points: usize,
    indices: &[i64],
) -> Result<(Vec<Vec2>, Vec<usize>), ParseError> {
    for name in ["primvars:st", "primvars:UVMap", "primvars:st0", "primvars:map1", "primvars:uv"] {
        let Some(table) = layer.value(path, name)?.as_ref().and_then(layer::pairs) else { continue };
        let table: Vec<Vec2> = table.iter().map(|uv| Vec2::new(uv[0] as f32, uv[1] as f32)).collect();
        let given = layer.value(path, &format!("{name}:indices"))?.as_ref().and_then(layer::integers);
        let places: Vec<usize> = match given {
            Some(list) => {
                list.into_iter().map(|place| usize::try_from(place).unwrap_or(usize::MAX)).collect()
            }
            None => (0..table.len()).collect(),
        };
        let of_corner: Vec<usize> = if places.len() == indices.len() {
            places
        } else if places.len() == points {
            let of_vertex = |vertex: &i64| usize::try_from(*vertex).ok().and_then(|v| places.get(v)).copied();
            indices.iter().map(|vertex| of_vertex(vertex).unwrap_or(usize::MAX)).collect()
        } else {
            continue;
        };
        if of_corner.iter().all(|place| *place < table.len()) && table.iter().all(|uv| uv.is_finite()) {
            return Ok((table, of_corner));
        }
    }
    Ok((Vec::new(), Vec::new()))
}

/// Bones and weights of every point.
fn rows(
    layer: &Layer,
    path: &str,
    points: usize,
    skeleton: &Joints,
    assembly: &mut Assembly,
) -> Result<Vec<Row>, ParseError> {
    const INDICES: &str = "primvars:skel:jointIndices";
    const WEIGHTS: &str = "primvars:skel:jointWeights";
    let fail = |problem: String| ParseError::new(path, problem);
    let indices = layer.value(path, INDICES)?.as_ref().and_then(layer::integers).unwrap_or_default();
    let weights = layer.value(path, WEIGHTS)?.as_ref().and_then(layer::numbers).unwrap_or_default();
    let rigid = layer.note(path, INDICES, "interpolation")?.as_deref() == Some("constant");
    let stated = layer.note_number(path, INDICES, "elementSize")?.map(|size| size as usize);
    let counted = if rigid { 1 } else { points };
    let size = stated.filter(|size| *size > 0).unwrap_or_else(|| (indices.len() / counted).max(1));
    if indices.len() != weights.len() || size.checked_mul(counted) != Some(indices.len()) {
        return Err(fail(format!(
            "{} joint indices and {} weights for {counted} points of {size} each",
            indices.len(),
            weights.len()
        )));
    }
    // The mesh may list the joints in an order of its own.
    let own = layer.value(path, "skel:joints")?.as_ref().and_then(layer::strings);
    let joint_of = |index: i64| -> Option<usize> {
        let index = usize::try_from(index).ok()?;
        match &own {
            Some(tokens) => {
                let token = tokens.get(index)?;
                skeleton.tokens.iter().position(|other| other == token)
            }
            None => (index < skeleton.tokens.len()).then_some(index),
        }
    };
    let back = skeleton.world.inverse();
    let mut bound: HashMap<i64, u16> = HashMap::new();
    let mut bone = |index: i64, assembly: &mut Assembly| -> Result<u16, ParseError> {
        if let Some(bone) = bound.get(&index) {
            return Ok(*bone);
        }
        let joint =
            joint_of(index).ok_or_else(|| fail(format!("it follows joint {index}, which is not there")))?;
        let bone = assembly.bind(skeleton.bones[joint], skeleton.binds[joint] * back)?;
        bound.insert(index, bone);
        Ok(bone)
    };
    let fallback = bone(indices.first().copied().unwrap_or(0), assembly)?;
    let mut rows = Vec::with_capacity(points);
    for point in 0..counted {
        let range = point * size..(point + 1) * size;
        let mut row = Row::new();
        for (index, weight) in indices[range.clone()].iter().zip(&weights[range]) {
            if *weight > 0.0 {
                row.push((bone(*index, assembly)?, *weight as f32));
            }
        }
        rows.push(tidy_row(row, fallback));
    }
    if rigid {
        rows = vec![rows[0].clone(); points];
    }
    Ok(rows)
}

fn offsets(
    layer: &Layer,
    target: &str,
    points: usize,
    first: usize,
    turn: &DMat3,
    space: &Space,
    assembly: &mut Assembly,
) -> Result<Vec<(u32, Vec3)>, ParseError> {
    let fail = |problem: String| ParseError::new(target, problem);
    if layer.kind(target) != Some("BlendShape") {
        return Err(fail("is no BlendShape of this layer".into()));
    }
    let deltas = layer.value(target, "offsets")?.as_ref().and_then(layer::vectors).unwrap_or_default();
    let places = layer.value(target, "pointIndices")?.as_ref().and_then(layer::integers);
    let places = places.unwrap_or_else(|| (0..deltas.len() as i64).collect());
    if places.len() != deltas.len() {
        return Err(fail(format!("{} offsets for {} points", deltas.len(), places.len())));
    }
    let has_between = layer.has_inbetweens(target);
    if has_between {
        assembly.warnings.push(format!("{target}: its shapes in between are left out"));
    }
    let one = |(place, delta): (i64, &DVec3)| {
        let point = usize::try_from(place).ok().filter(|point| *point < points);
        let delta = (*turn * space.point(*delta)).as_vec3();
        match point.filter(|_| delta.is_finite()) {
            Some(point) => Ok(((first + point) as u32, delta)),
            None => Err(fail(format!("its offset of point {place} is wrong"))),
        }
    };
    places.into_iter().zip(&deltas).map(one).collect()
}

/// Every SkelAnimation that moves something.
fn clips(
    layer: &Layer,
    skeletons: &[Joints],
    shapes: &[String],
    rate: f64,
    space: &Space,
    assembly: &mut Assembly,
) -> Result<Vec<KeyedClip>, ParseError> {
    let mut clips = Vec::new();
    let mut names = crate::names::UniqueNames::default();
    for path in layer.of_kind("SkelAnimation") {
        let mut clip = KeyedClip {
            name: names.take(last_name(path)),
            rate: rate as f32,
            bones: Vec::new(),
            weights: Vec::new(),
        };
        let tokens = layer.value(path, "joints")?.as_ref().and_then(layer::strings).unwrap_or_default();
        let known = |skeleton: &&Joints| tokens.iter().any(|token| skeleton.tokens.contains(token));
        let bones: Vec<Option<usize>> = match skeletons.iter().find(known) {
            Some(skeleton) => {
                let place: HashMap<&str, usize> = skeleton
                    .tokens
                    .iter()
                    .enumerate()
                    .map(|(i, token)| (token.as_str(), skeleton.bones[i]))
                    .collect();
                tokens.iter().map(|token| place.get(token.as_str()).copied()).collect()
            }
            None => vec![None; tokens.len()],
        };
        let read = Animation { layer, path, rate };
        for (name, property) in [
            ("translations", JointProperty::Translation),
            ("rotations", JointProperty::Rotation),
            ("scales", JointProperty::Scale),
        ] {
            read.joints(name, property, &bones, space, &mut clip)?;
        }
        let tokens = layer.value(path, "blendShapes")?.as_ref().and_then(layer::strings).unwrap_or_default();
        let places: Vec<Option<usize>> =
            tokens.iter().map(|token| shapes.iter().position(|shape| shape == token)).collect();
        read.weights(places, &mut clip)?;
        if clip.bones.is_empty() && clip.weights.is_empty() {
            assembly.warnings.push(format!("{path}: moves nothing that is here"));
            continue;
        }
        clips.push(clip);
    }
    Ok(clips)
}

struct Animation<'a> {
    layer: &'a Layer,
    path: &'a str,
    rate: f64,
}

impl Animation<'_> {
    /// Samples by seconds; a value that never changes is one at zero.
    fn samples(&self, name: &str) -> Result<(Arc<[f32]>, Vec<openusd::sdf::Value>), ParseError> {
        let mut samples = self.layer.samples(self.path, name)?;
        if samples.is_empty() {
            samples.extend(self.layer.value(self.path, name)?.map(|value| (0.0, value)));
        }
        samples.retain(|(time, _)| *time >= 0.0);
        let mut times: Vec<f32> = Vec::new();
        let mut values = Vec::new();
        for (time, value) in samples {
            let seconds = (time / self.rate) as f32;
            if seconds.is_finite() && times.last().is_none_or(|last| seconds > *last) {
                times.push(seconds);
                values.push(value);
            }
        }
        Ok((times.into(), values))
    }

    fn joints(
        &self,
        name: &str,
        property: JointProperty,
        bones: &[Option<usize>],
        space: &Space,
        clip: &mut KeyedClip,
    ) -> Result<(), ParseError> {
        let fail = |problem: String| ParseError::new(format!("{}.{name}", self.path), problem);
        let (times, values) = self.samples(name)?;
        if bones.is_empty() || times.is_empty() {
            return Ok(());
        }
        let width = if property == JointProperty::Rotation { 4 } else { 3 };
        let mut columns: Vec<Vec<f32>> = vec![Vec::new(); bones.len()];
        let turn = DQuat::from_mat3(&space.turn);
        for value in &values {
            let count = match property {
                JointProperty::Rotation => {
                    let list = layer::quaternions(value).unwrap_or_default();
                    for (column, q) in columns.iter_mut().zip(&list) {
                        let q = turn * *q * turn.inverse();
                        column.extend(q.as_quat().to_array());
                    }
                    list.len()
                }
                _ => {
                    let list = layer::vectors(value).unwrap_or_default();
                    for (column, v) in columns.iter_mut().zip(&list) {
                        let v = match property {
                            JointProperty::Translation => space.point(*v),
                            _ => turned_scale(space, *v),
                        };
                        column.extend(v.as_vec3().to_array());
                    }
                    list.len()
                }
            };
            if count != bones.len() {
                return Err(fail(format!("{count} values for {} joints", bones.len())));
            }
        }
        for (bone, mut values) in bones.iter().zip(columns) {
            let Some(bone) = *bone else { continue };
            if values.iter().any(|v| !v.is_finite()) {
                return Err(fail("a value is not finite".into()));
            }
            let still = values.chunks_exact(width).all(|value| value == &values[..width]);
            let keys = if still { Arc::from(&times[..1]) } else { times.clone() };
            if still {
                values.truncate(width);
            }
            let track = match property {
                JointProperty::Rotation => Track::rotations(keys, values, TrackInterpolation::Linear),
                _ => Track::new(keys, values, width, TrackInterpolation::Linear),
            };
            clip.bones.push(BoneTrack { bone, property, track: track.map_err(fail)? });
        }
        Ok(())
    }

    fn weights(&self, places: Vec<Option<usize>>, clip: &mut KeyedClip) -> Result<(), ParseError> {
        let name = "blendShapeWeights";
        let fail = |problem: String| ParseError::new(format!("{}.{name}", self.path), problem);
        let (times, values) = self.samples(name)?;
        if places.iter().all(Option::is_none) || times.is_empty() {
            return Ok(());
        }
        let mut flat: Vec<f32> = Vec::with_capacity(times.len() * places.len());
        for value in &values {
            let list = layer::numbers(value).unwrap_or_default();
            if list.len() != places.len() || list.iter().any(|v| !(*v as f32).is_finite()) {
                return Err(fail(format!(
                    "{} values for {} shapes, or not finite",
                    list.len(),
                    places.len()
                )));
            }
            flat.extend(list.into_iter().map(|v| v as f32));
        }
        let track = Track::new(times, flat, places.len(), TrackInterpolation::Linear).map_err(fail)?;
        clip.weights.push(WeightTrack { shapes: places, track });
        Ok(())
    }
}

/// The parts of a scale in the turned axes: they change places and keep their signs.
fn turned_scale(space: &Space, scale: DVec3) -> DVec3 {
    let turned = space.turn * DMat3::from_diagonal(scale) * space.turn.transpose();
    DVec3::new(turned.x_axis.x, turned.y_axis.y, turned.z_axis.z)
}
