//! A body twin as one ONNX graph: world transforms of the bones in, vertices out.
//!
//! Inputs: `bones [J,3,4]` (row-major 3×4, bone → world, cm) and, where the twin has some, `controls [C]`.
//! Output: `vertices [V,3]` in cm.

use understudy_core::{Affine3A, SkinWeights};
use understudy_io::onnx::{Attribute, Graph, Value};
use understudy_runtime::body::{BONE_INPUTS, BodyParts, GroupParts};
use understudy_runtime::dense::Activation;

/// The bytes of the model.
pub(crate) fn body_graph(parts: &BodyParts) -> Vec<u8> {
    let mut graph = Graph::default();
    let joints = parts.header.bones.len();
    let bones = graph.input("bones", &[joints, 3, 4]);
    let skeleton = Skeleton::new(&mut graph, &bones);
    let mut inputs = relative_to_parent(&mut graph, parts, &skeleton);
    if !parts.header.controls.is_empty() {
        let controls = graph.input("controls", &[parts.header.controls.len()]);
        inputs = graph.node("Concat", &[&inputs, &controls], &[Attribute::Integer("axis", 0)]);
    }
    let groups: Vec<Value> = parts
        .groups
        .iter()
        .filter(|g| !g.vertices.is_empty())
        .map(|g| group(&mut graph, parts, g, &inputs, &skeleton))
        .collect();
    let ordered = graph.node("Concat", &groups.iter().collect::<Vec<_>>(), &[Attribute::Integer("axis", 0)]);
    // Vertex k is at place order[k] of the groups laid end to end.
    let mut order = vec![0i64; parts.rest_vertices.len()];
    for (place, vertex) in parts.groups.iter().flat_map(|g| &g.vertices).enumerate() {
        order[*vertex as usize] = place as i64;
    }
    let order = graph.integers(&[order.len()], &order);
    let mut vertices = graph.node("Gather", &[&ordered, &order], &[Attribute::Integer("axis", 0)]);
    if let Some(base) = &parts.base {
        let skinned = linear_blend(&mut graph, parts, base, &skeleton);
        vertices = graph.node("Add", &[&vertices, &skinned], &[]);
    }
    graph.output("vertices", &vertices, &[parts.rest_vertices.len(), 3]);
    graph.to_bytes(&parts.header.rig)
}

/// The input taken apart.
struct Skeleton {
    /// `[J,3,3]`.
    linear: Value,
    /// `[J,3]`.
    origin: Value,
}

impl Skeleton {
    fn new(graph: &mut Graph, bones: &Value) -> Self {
        let columns = graph.integers(&[3], &[0, 1, 2]);
        let linear = graph.node("Gather", &[bones, &columns], &[Attribute::Integer("axis", 2)]);
        let last = graph.integers(&[], &[3]);
        let origin = graph.node("Gather", &[bones, &last], &[Attribute::Integer("axis", 2)]);
        Self { linear, origin }
    }
}

/// Twelve numbers a bone, `[12 J]`: columns of `X_p^-1 X_j`, then `X_p^-1 (t_j − t_p)`.
fn relative_to_parent(graph: &mut Graph, parts: &BodyParts, skeleton: &Skeleton) -> Value {
    let joints = parts.header.bones.len();
    // A root's parent is the world: an identity after the last bone.
    let identity = graph.floats(&[1, 3, 3], &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    let zero = graph.floats(&[1, 3], &[0.0; 3]);
    let axis = |axis| Attribute::Integer("axis", axis);
    let linear = graph.node("Concat", &[&skeleton.linear, &identity], &[axis(0)]);
    let origin = graph.node("Concat", &[&skeleton.origin, &zero], &[axis(0)]);
    let parents: Vec<i64> = parts.header.bones.iter().map(|b| b.parent.unwrap_or(joints) as i64).collect();
    let parents = graph.integers(&[joints], &parents);
    let parent_linear = graph.node("Gather", &[&linear, &parents], &[axis(0)]);
    let parent_origin = graph.node("Gather", &[&origin, &parents], &[axis(0)]);
    let inverse = inverse(graph, &parent_linear);
    let relative = graph.node("MatMul", &[&inverse, &skeleton.linear], &[]);
    let apart = graph.node("Sub", &[&skeleton.origin, &parent_origin], &[]);
    let last = graph.integers(&[1], &[2]);
    let apart = graph.node("Unsqueeze", &[&apart, &last], &[]);
    let offset = graph.node("MatMul", &[&inverse, &apart], &[]);
    let turned = graph.node("Transpose", &[&relative], &[Attribute::Integers("perm", &[0, 2, 1])]);
    let offset = graph.node("Transpose", &[&offset], &[Attribute::Integers("perm", &[0, 2, 1])]);
    let both = graph.node("Concat", &[&turned, &offset], &[axis(1)]);
    let flat = graph.integers(&[1], &[(joints * BONE_INPUTS) as i64]);
    graph.node("Reshape", &[&both, &flat], &[])
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
    inputs: &Value,
    skeleton: &Skeleton,
) -> Value {
    let count = group.vertices.len();
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
                None => normalised(graph, group, inputs),
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
            group.vertices.iter().flat_map(place).collect()
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
    let linear = graph.node("Gather", &[&skeleton.linear, &bone], &axis);
    let turned = graph.node("Transpose", &[&linear], &[Attribute::Integers("perm", &[1, 0])]);
    let moved = graph.node("MatMul", &[&place, &turned], &[]);
    if parts.base.is_some() {
        return moved;
    }
    let origin = graph.node("Gather", &[&skeleton.origin, &bone], &axis);
    graph.node("Add", &[&moved, &origin], &[])
}

fn normalised(graph: &mut Graph, group: &GroupParts, inputs: &Value) -> Value {
    let count = group.inputs.len();
    let indices: Vec<i64> = group.inputs.iter().map(|i| i64::from(*i)).collect();
    let indices = graph.integers(&[1, count], &indices);
    let raw = graph.node("Gather", &[inputs, &indices], &[Attribute::Integer("axis", 0)]);
    let mean = graph.floats(&[1, count], &group.mean);
    let scale = graph.floats(&[1, count], &group.scale);
    let centred = graph.node("Sub", &[&raw, &mean], &[]);
    graph.node("Mul", &[&centred, &scale], &[])
}

/// Linear blend skinning of the base, `[V,3]`: rows padded to the largest number of influences.
fn linear_blend(graph: &mut Graph, parts: &BodyParts, base: &SkinWeights, skeleton: &Skeleton) -> Value {
    let (vertices, influences) = (base.vertex_count(), base.max_influences());
    let inverse: Vec<Affine3A> = parts.rest_bones.iter().map(Affine3A::inverse).collect();
    let (mut bones, mut weights, mut local) = (Vec::new(), Vec::new(), Vec::new());
    for vertex in 0..vertices {
        let mut row: Vec<(usize, f32)> = base.row(vertex).collect();
        row.resize(influences, (0, 0.0));
        for (bone, weight) in row {
            bones.push(bone as i64);
            weights.push(weight);
            local.extend(inverse[bone].transform_point3(parts.rest_vertices[vertex]).to_array());
        }
    }
    let bones = graph.integers(&[vertices, influences], &bones);
    let weights = graph.floats(&[vertices, influences, 1], &weights);
    let local = graph.floats(&[vertices, influences, 3, 1], &local);
    let axis = [Attribute::Integer("axis", 0)];
    let linear = graph.node("Gather", &[&skeleton.linear, &bones], &axis);
    let origin = graph.node("Gather", &[&skeleton.origin, &bones], &axis);
    let turned = graph.node("MatMul", &[&linear, &local], &[]);
    let last = graph.integers(&[1], &[3]);
    let turned = graph.node("Squeeze", &[&turned, &last], &[]);
    let moved = graph.node("Add", &[&turned, &origin], &[]);
    let weighted = graph.node("Mul", &[&moved, &weights], &[]);
    let along = graph.integers(&[1], &[1]);
    graph.node("ReduceSum", &[&weighted, &along], &[Attribute::Integer("keepdims", 0)])
}
