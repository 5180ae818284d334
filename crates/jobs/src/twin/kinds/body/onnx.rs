//! A body twin as one ONNX graph: world transforms of the bones in, vertices out.
//!
//! Inputs: `bones [J,3,4]` (row-major 3×4, bone → world, cm) and, where the twin has some, `controls [C]`.
//! Output: `vertices [V,3]` in cm.

use understudy_core::{Affine3A, SkinWeights};
use understudy_io::onnx::{Attribute, Graph, Value};
use understudy_learn::body::BonePairs;
use understudy_runtime::Activation;
use understudy_runtime::body::{BONE_INPUTS, BodyParts, GroupParts, SeamCorrection};

/// Draws the whole twin.
pub(super) fn draw(graph: &mut Graph, parts: &BodyParts) {
    let joints = parts.header.inputs.bones.len();
    let bones = graph.input("bones", &[joints, 3, 4]);
    let skeleton = Skeleton::new(graph, &bones, parts.rigid_frames);
    let bone_pairs = BonePairs::new(parts);
    let mut inputs = seen_bones(graph, joints, &bone_pairs.pairs, &skeleton);
    if !parts.header.inputs.controls.is_empty() {
        let controls = graph.input("controls", &[parts.header.inputs.controls.len()]);
        inputs = graph.node("Concat", &[&inputs, &controls], &[Attribute::Integer("axis", 0)]);
    }
    let groups: Vec<Value> = parts
        .groups
        .iter()
        .zip(&bone_pairs.inputs)
        .filter(|(g, _)| !g.vertices.is_empty() || !g.ghosts.is_empty())
        .map(|(g, seen)| group(graph, parts, g, seen, &inputs, &skeleton))
        .collect();
    let ordered = graph.node("Concat", &groups.iter().collect::<Vec<_>>(), &[Attribute::Integer("axis", 0)]);
    // Vertex k is at place order[k] of the groups laid end to end, each with its ghosts behind it.
    let mut order = vec![0i64; parts.rest_vertices.len()];
    let mut ghosts = Vec::new();
    let mut place = 0;
    for group in &parts.groups {
        for vertex in &group.vertices {
            order[*vertex as usize] = place;
            place += 1;
        }
        let end = place + group.ghosts.len() as i64;
        ghosts.extend(place..end);
        place = end;
    }
    let order = graph.integers(&[order.len()], &order);
    let mut vertices = graph.node("Gather", &[&ordered, &order], &[Attribute::Integer("axis", 0)]);
    if let Some(seams) = parts.seams.as_ref().filter(|seams| seams.border > 0) {
        let ghosts = graph.integers(&[ghosts.len()], &ghosts);
        let ghosts = graph.node("Gather", &[&ordered, &ghosts], &[Attribute::Integer("axis", 0)]);
        vertices = correct_seams(graph, seams, &ghosts, vertices, parts.rest_vertices.len());
    }
    if let Some(base) = &parts.base {
        let mut places = vec![1.0f32; 4 * parts.rest_vertices.len()];
        for (vertex, place) in parts.rest_vertices.iter().enumerate() {
            (0..3).for_each(|axis| places[axis * parts.rest_vertices.len() + vertex] = place[axis]);
        }
        let places = graph.floats(&[1, 4, parts.rest_vertices.len()], &places);
        let skinned = linear_blend(graph, &parts.rest_bones, base, &skeleton, &places);
        vertices = graph.node("Add", &[&vertices, &skinned], &[]);
    }
    graph.output("vertices", &vertices, &[parts.rest_vertices.len(), 3]);
}

/// The input taken apart.
pub(in crate::twin::kinds) struct Skeleton {
    /// `[J,3,3]`.
    linear: Value,
    /// `[J,3]`.
    origin: Value,
    /// The axes in which networks see and speak, `[J,3,3]`: those of the bones, or without scale and shear.
    frames: Value,
    rigid: bool,
}

impl Skeleton {
    pub fn new(graph: &mut Graph, bones: &Value, rigid: bool) -> Self {
        let columns = graph.integers(&[3], &[0, 1, 2]);
        let linear = graph.node("Gather", &[bones, &columns], &[Attribute::Integer("axis", 2)]);
        let last = graph.integers(&[], &[3]);
        let origin = graph.node("Gather", &[bones, &last], &[Attribute::Integer("axis", 2)]);
        let frames = if rigid { rigid_frames(graph, &linear) } else { linear.clone() };
        Self { linear, origin, frames, rigid }
    }
}

/// Twelve numbers a pair of reference `r` and bone `j`: columns of `X_r^-1 X_j` (`X_r` the frame of `r`), then `X_r^-1 (t_j − t_r)`.
pub(in crate::twin::kinds) fn seen_bones(
    graph: &mut Graph,
    joints: usize,
    pairs: &[(Option<usize>, usize)],
    skeleton: &Skeleton,
) -> Value {
    let axis = |axis| Attribute::Integer("axis", axis);
    // The world is an identity after the last bone.
    let identity = graph.floats(&[1, 3, 3], &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    let zero = graph.floats(&[1, 3], &[0.0; 3]);
    let linear = graph.node("Concat", &[&skeleton.linear, &identity], &[axis(0)]);
    let origin = graph.node("Concat", &[&skeleton.origin, &zero], &[axis(0)]);
    let frames = graph.node("Concat", &[&skeleton.frames, &identity], &[axis(0)]);
    let inverse = match skeleton.rigid {
        true => graph.node("Transpose", &[&frames], &[Attribute::Integers("perm", &[0, 2, 1])]),
        false => inverse(graph, &frames),
    };
    let count = pairs.len();
    let references: Vec<i64> = pairs.iter().map(|(r, _)| r.unwrap_or(joints) as i64).collect();
    let bones: Vec<i64> = pairs.iter().map(|(_, bone)| *bone as i64).collect();
    let (references, bones) = (graph.integers(&[count], &references), graph.integers(&[count], &bones));
    let pick =
        |graph: &mut Graph, from: &Value, places: &Value| graph.node("Gather", &[from, places], &[axis(0)]);
    let turn = pick(graph, &inverse, &references);
    let reference_origin = pick(graph, &origin, &references);
    let bone_linear = pick(graph, &linear, &bones);
    let bone_origin = pick(graph, &origin, &bones);
    let relative = graph.node("MatMul", &[&turn, &bone_linear], &[]);
    let apart = graph.node("Sub", &[&bone_origin, &reference_origin], &[]);
    let last = graph.integers(&[1], &[2]);
    let apart = graph.node("Unsqueeze", &[&apart, &last], &[]);
    let offset = graph.node("MatMul", &[&turn, &apart], &[]);
    let turned = graph.node("Transpose", &[&relative], &[Attribute::Integers("perm", &[0, 2, 1])]);
    let offset = graph.node("Transpose", &[&offset], &[Attribute::Integers("perm", &[0, 2, 1])]);
    let both = graph.node("Concat", &[&turned, &offset], &[axis(1)]);
    let flat = graph.integers(&[1], &[(count * BONE_INPUTS) as i64]);
    graph.node("Reshape", &[&both, &flat], &[])
}

/// Corrections at the seams, ring by ring: sources are padded to the largest number in their ring with a
/// weight of zero.
fn correct_seams(
    graph: &mut Graph,
    seams: &SeamCorrection,
    ghosts: &Value,
    vertices: Value,
    size: usize,
) -> Value {
    let axis = |axis| Attribute::Integer("axis", axis);
    let sources =
        |entry: usize| &seams.sources[seams.offsets[entry] as usize..seams.offsets[entry + 1] as usize];
    // Which ring an entry lies in follows from those that it reads.
    let count = seams.vertices.len();
    let mut rings: Vec<Vec<usize>> = vec![(0..seams.border).collect()];
    let mut ring_of = vec![0usize; count];
    for entry in seams.border..count {
        let ring = sources(entry).iter().map(|source| ring_of[*source as usize] + 1).max().unwrap_or(1);
        ring_of[entry] = ring;
        rings.resize_with(rings.len().max(ring + 1), Vec::new);
        rings[ring].push(entry);
    }
    let order: Vec<usize> = rings.concat();
    let mut place = vec![0i64; count];
    (0i64..).zip(&order).for_each(|(new, old)| place[*old] = new);
    let mut corrections: Vec<Value> = Vec::new();
    for (ring, entries) in rings.iter().enumerate() {
        let widest = entries.iter().map(|entry| sources(*entry).len()).max().unwrap_or(1);
        let (mut places, mut weights) = (Vec::new(), Vec::new());
        for &entry in entries {
            let own = sources(entry);
            // At a border one's own opinion counts too: its difference is zero.
            let share = 1.0 / (own.len() + usize::from(ring == 0)) as f32;
            let at = |source: &u32| if ring == 0 { i64::from(*source) } else { place[*source as usize] };
            places.extend(own.iter().map(at).chain(std::iter::repeat(0)).take(widest));
            weights.extend(own.iter().map(|_| share).chain(std::iter::repeat(0.0)).take(widest));
        }
        let places = graph.integers(&[entries.len(), widest], &places);
        let weights = graph.floats(&[entries.len(), widest, 1], &weights);
        let along = graph.integers(&[1], &[1]);
        let differences = if ring == 0 {
            let opinions = graph.node("Gather", &[ghosts, &places], &[axis(0)]);
            let own: Vec<i64> = entries.iter().map(|entry| i64::from(seams.vertices[*entry])).collect();
            let own = graph.integers(&[own.len()], &own);
            let own = graph.node("Gather", &[&vertices, &own], &[axis(0)]);
            let own = graph.node("Unsqueeze", &[&own, &along], &[]);
            graph.node("Sub", &[&opinions, &own], &[])
        } else {
            let before = graph.node("Concat", &corrections.iter().collect::<Vec<_>>(), &[axis(0)]);
            graph.node("Gather", &[&before, &places], &[axis(0)])
        };
        let weighted = graph.node("Mul", &[&differences, &weights], &[]);
        corrections.push(graph.node("ReduceSum", &[&weighted, &along], &[Attribute::Integer("keepdims", 0)]));
    }
    let all = graph.node("Concat", &corrections.iter().collect::<Vec<_>>(), &[axis(0)]);
    let shares: Vec<f32> = order.iter().map(|entry| seams.shares[*entry]).collect();
    let shares = graph.floats(&[count, 1], &shares);
    let all = graph.node("Mul", &[&all, &shares], &[]);
    // A row of zeros for vertices that are not corrected.
    let zero = graph.floats(&[1, 3], &[0.0; 3]);
    let all = graph.node("Concat", &[&all, &zero], &[axis(0)]);
    let mut places = vec![count as i64; size];
    for (entry, vertex) in seams.vertices.iter().enumerate() {
        places[*vertex as usize] = place[entry];
    }
    let places = graph.integers(&[places.len()], &places);
    let spread = graph.node("Gather", &[&all, &places], &[axis(0)]);
    graph.node("Add", &[&vertices, &spread], &[])
}

/// Orthonormal axes of `[J,3,3]`, column by column: `rigid_frame` of the core crate.
fn rigid_frames(graph: &mut Graph, matrices: &Value) -> Value {
    let along = graph.integers(&[1], &[1]);
    let least = graph.floats(&[1, 1], &[1e-12]);
    let mut done: Vec<Value> = Vec::new();
    for index in 0..3 {
        let index = graph.integers(&[], &[index]);
        let mut column = graph.node("Gather", &[matrices, &index], &[Attribute::Integer("axis", 2)]);
        for other in &done {
            let product = graph.node("Mul", &[&column, other], &[]);
            let share = graph.node("ReduceSum", &[&product, &along], &[Attribute::Integer("keepdims", 1)]);
            let part = graph.node("Mul", &[other, &share], &[]);
            column = graph.node("Sub", &[&column, &part], &[]);
        }
        let squares = graph.node("Mul", &[&column, &column], &[]);
        let sum = graph.node("ReduceSum", &[&squares, &along], &[Attribute::Integer("keepdims", 1)]);
        let length = graph.node("Sqrt", &[&sum], &[]);
        let length = graph.node("Max", &[&length, &least], &[]);
        done.push(graph.node("Div", &[&column, &length], &[]));
    }
    let last = graph.integers(&[1], &[2]);
    let columns = [0, 1, 2].map(|index| graph.node("Unsqueeze", &[&done[index], &last], &[]));
    graph.node("Concat", &[&columns[0], &columns[1], &columns[2]], &[Attribute::Integer("axis", 2)])
}

/// Inverses of `[J,3,3]` by cross products of columns: ONNX has no such operator.
fn inverse(graph: &mut Graph, matrices: &Value) -> Value {
    let column = |graph: &mut Graph, index: i64| {
        let index = graph.integers(&[], &[index]);
        graph.node("Gather", &[matrices, &index], &[Attribute::Integer("axis", 2)])
    };
    let columns = [0, 1, 2].map(|index| column(graph, index));
    let turn = |graph: &mut Graph, vector: &Value, order: [i64; 3]| {
        let order = graph.integers(&[3], &order);
        graph.node("Gather", &[vector, &order], &[Attribute::Integer("axis", 1)])
    };
    let cross = |graph: &mut Graph, a: &Value, b: &Value| {
        let (a1, b2) = (turn(graph, a, [1, 2, 0]), turn(graph, b, [2, 0, 1]));
        let (a2, b1) = (turn(graph, a, [2, 0, 1]), turn(graph, b, [1, 2, 0]));
        let (left, right) = (graph.node("Mul", &[&a1, &b2], &[]), graph.node("Mul", &[&a2, &b1], &[]));
        graph.node("Sub", &[&left, &right], &[])
    };
    let rows = [(1, 2), (2, 0), (0, 1)].map(|(a, b)| cross(graph, &columns[a], &columns[b]));
    let product = graph.node("Mul", &[&columns[0], &rows[0]], &[]);
    let along = graph.integers(&[1], &[1]);
    let determinant = graph.node("ReduceSum", &[&product, &along], &[Attribute::Integer("keepdims", 1)]);
    let scaled = rows.map(|row| {
        let row = graph.node("Div", &[&row, &determinant], &[]);
        graph.node("Unsqueeze", &[&row, &along], &[])
    });
    graph.node("Concat", &[&scaled[0], &scaled[1], &scaled[2]], &[Attribute::Integer("axis", 1)])
}

/// The vertices of one group, `[P,3]`: network, then its bone.
fn group(
    graph: &mut Graph,
    parts: &BodyParts,
    group: &GroupParts,
    seen: &[u32],
    inputs: &Value,
    skeleton: &Skeleton,
) -> Value {
    let count = group.vertices.len() + group.ghosts.len();
    let mut offset = None;
    let mut columns = group.inputs.len();
    for (index, layer) in group.layers.iter().enumerate() {
        let rows = layer.bias.len();
        let bias = graph.floats(&[1, rows], &layer.bias);
        let mut value = if columns == 0 {
            bias
        } else {
            let source = match offset.take() {
                Some(value) => value,
                None => normalised(graph, group, seen, inputs),
            };
            debug_assert!(index == 0 || columns > 0, "hidden layers have a width");
            let mut transposed = vec![0.0; rows * columns];
            for row in 0..rows {
                for column in 0..columns {
                    transposed[column * rows + row] = layer.weights[row * columns + column];
                }
            }
            let weights = graph.floats(&[columns, rows], &transposed);
            graph.node("Gemm", &[&source, &weights, &bias], &[])
        };
        if layer.activation == Activation::Tanh {
            value = graph.node("Tanh", &[&value], &[]);
        }
        offset = Some(value);
        columns = rows;
    }
    let to_bone = parts.rest_bones[group.bone].inverse();
    let local: Vec<f32> = match parts.base {
        Some(_) => vec![0.0; 3 * count],
        None => {
            let place = |v: &u32| to_bone.transform_point3(parts.rest_vertices[*v as usize]).to_array();
            group.vertices.iter().chain(&group.ghosts).flat_map(place).collect()
        }
    };
    let mut place = graph.floats(&[count, 3], &local);
    if let Some(offset) = offset {
        let shape = graph.integers(&[2], &[count as i64, 3]);
        let offset = graph.node("Reshape", &[&offset, &shape], &[]);
        place = graph.node("Add", &[&place, &offset], &[]);
    }
    let bone = graph.integers(&[], &[group.bone as i64]);
    let axis = [Attribute::Integer("axis", 0)];
    let linear = graph.node("Gather", &[&skeleton.frames, &bone], &axis);
    let turned = graph.node("Transpose", &[&linear], &[Attribute::Integers("perm", &[1, 0])]);
    let moved = graph.node("MatMul", &[&place, &turned], &[]);
    if parts.base.is_some() {
        return moved;
    }
    let origin = graph.node("Gather", &[&skeleton.origin, &bone], &axis);
    graph.node("Add", &[&moved, &origin], &[])
}

fn normalised(graph: &mut Graph, group: &GroupParts, seen: &[u32], inputs: &Value) -> Value {
    let count = group.inputs.len();
    let indices: Vec<i64> = seen.iter().map(|i| i64::from(*i)).collect();
    let indices = graph.integers(&[1, count], &indices);
    let raw = graph.node("Gather", &[inputs, &indices], &[Attribute::Integer("axis", 0)]);
    let mean = graph.floats(&[1, count], &group.mean);
    let scale = graph.floats(&[1, count], &group.scale);
    let centred = graph.node("Sub", &[&raw, &mean], &[]);
    graph.node("Mul", &[&centred, &scale], &[])
}

/// Linear blend skinning of the base, `[V,3]`: the matrices of the bones in use `[12,J]` times a dense matrix of
/// weights `[J,V]`, then applied to the places `[1,4,V]`, ones last, with the vertices innermost. Gathering each vertex's own
/// bones has less to multiply, but made the whole of Rook's twin take onnxruntime 30 ms instead of 11.
pub(in crate::twin::kinds) fn linear_blend(
    graph: &mut Graph,
    rest_bones: &[Affine3A],
    base: &SkinWeights,
    skeleton: &Skeleton,
    places: &Value,
) -> Value {
    let vertices = base.vertex_count();
    let mut used: Vec<usize> =
        (0..vertices).flat_map(|vertex| base.row(vertex).map(|(bone, _)| bone)).collect();
    used.sort_unstable();
    used.dedup();
    let joints = used.len();
    let inverse: Vec<Affine3A> = used.iter().map(|bone| rest_bones[*bone].inverse()).collect();
    let turns: Vec<f32> = inverse.iter().flat_map(|bone| bone.matrix3.transpose().to_cols_array()).collect();
    let shifts: Vec<f32> = inverse.iter().flat_map(|bone| bone.translation.to_array()).collect();
    let (turns, shifts) = (graph.floats(&[joints, 3, 3], &turns), graph.floats(&[joints, 3, 1], &shifts));
    let bones: Vec<i64> = used.iter().map(|bone| *bone as i64).collect();
    let bones = graph.integers(&[joints], &bones);
    let linear = graph.node("Gather", &[&skeleton.linear, &bones], &[Attribute::Integer("axis", 0)]);
    let origin = graph.node("Gather", &[&skeleton.origin, &bones], &[Attribute::Integer("axis", 0)]);
    let turn = graph.node("MatMul", &[&linear, &turns], &[]);
    let shift = graph.node("MatMul", &[&linear, &shifts], &[]);
    let last = graph.integers(&[1], &[2]);
    let origin = graph.node("Unsqueeze", &[&origin, &last], &[]);
    let shift = graph.node("Add", &[&shift, &origin], &[]);
    let carriers = graph.node("Concat", &[&turn, &shift], &[Attribute::Integer("axis", 2)]);
    let flat = graph.integers(&[2], &[joints as i64, 12]);
    let carriers = graph.node("Reshape", &[&carriers, &flat], &[]);
    let carriers = graph.node("Transpose", &[&carriers], &[Attribute::Integers("perm", &[1, 0])]);

    let mut weights = vec![0.0f32; joints * vertices];
    for vertex in 0..vertices {
        for (bone, weight) in base.row(vertex) {
            let row = used.binary_search(&bone).expect("every bone was listed");
            weights[row * vertices + vertex] += weight;
        }
    }
    let weights = graph.floats(&[joints, vertices], &weights);
    let blended = graph.node("MatMul", &[&carriers, &weights], &[]);
    let apart = graph.integers(&[3], &[3, 4, vertices as i64]);
    let blended = graph.node("Reshape", &[&blended, &apart], &[]);
    let moved = graph.node("Mul", &[&blended, places], &[]);
    let along = graph.integers(&[1], &[1]);
    let moved = graph.node("ReduceSum", &[&moved, &along], &[Attribute::Integer("keepdims", 0)]);
    graph.node("Transpose", &[&moved], &[Attribute::Integers("perm", &[1, 0])])
}
