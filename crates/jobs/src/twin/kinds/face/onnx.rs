//! A face twin as one ONNX graph: controls in, vertices out.
//!
//! Input: `controls [C]` in the rig's order and units. Output: `vertices [V,3]` in cm. Rigid segments are
//! part of it: ONNX has no singular value decomposition, but the rotation that fits best is linear in the
//! dominant eigenvector's outer product of Horn's 4×4 matrix, which repeated squaring finds.

use understudy_core::Vec3;
use understudy_io::onnx::{Attribute, Graph, Value};
use understudy_runtime::face::map_decoder::MapShape;
use understudy_runtime::face::sample::BilinearSample;
use understudy_runtime::face::{FaceParts, LEAK, MapParts, NetParts, Stage};
use understudy_runtime::{DenseParts, MotionParts};

/// Squarings of Horn's matrix: the power 4096 of a gap of a few percent leaves nothing of the others.
const SQUARINGS: usize = 12;

/// Draws the whole twin.
pub(super) fn draw(graph: &mut Graph, parts: &FaceParts) {
    let count = parts.mesh.vertex_count();
    let controls = graph.input("controls", &[parts.header.inputs.controls.len()]);
    let rest: Vec<f32> = parts.mesh.positions().iter().flat_map(|p| p.to_array()).collect();
    let mut vertices = graph.floats(&[count, 3], &rest);
    for stage in [Stage::Coarse, Stage::Refinement] {
        let nets: Vec<&NetParts> = parts.nets.iter().filter(|net| net.stage == stage).collect();
        if !nets.is_empty() {
            let offsets = stage_offsets(graph, &controls, &nets, count);
            vertices = graph.node("Add", &[&vertices, &offsets], &[]);
        }
    }
    if !parts.bodies.is_empty() {
        vertices = with_bodies(graph, parts, &controls, &vertices);
    }
    if !parts.rigid.is_empty() {
        vertices = with_rigid(graph, parts, &vertices);
    }
    if let Some(frame) = &parts.frame {
        vertices = moved(graph, frame, &controls, &vertices);
    }
    graph.output("vertices", &vertices, &[count, 3]);
}

fn axis(axis: i64) -> [Attribute<'static>; 1] {
    [Attribute::Integer("axis", axis)]
}

/// Offsets of all vertices from the networks of one stage, `[V,3]`.
fn stage_offsets(graph: &mut Graph, controls: &Value, nets: &[&NetParts], count: usize) -> Value {
    let mut all: Vec<Value> = nets.iter().map(|net| network(graph, controls, net)).collect();
    // A row of zeros for vertices that no network moves.
    all.push(graph.floats(&[1, 3], &[0.0; 3]));
    let joined = graph.node("Concat", &all.iter().collect::<Vec<_>>(), &axis(0));
    let zero = nets.iter().map(|net| net.vertices.len()).sum::<usize>() as i64;
    let mut order = vec![zero; count];
    for (place, vertex) in nets.iter().flat_map(|net| &net.vertices).enumerate() {
        order[*vertex as usize] = place as i64;
    }
    let order = graph.integers(&[count], &order);
    graph.node("Gather", &[&joined, &order], &axis(0))
}

/// Offsets of one network's vertices, `[P,3]`.
fn network(graph: &mut Graph, controls: &Value, net: &NetParts) -> Value {
    let inputs = normalised(graph, controls, &net.inputs, &net.mean, &net.scale);
    let leak = [Attribute::Float("alpha", LEAK)];
    // What the last layer gives is told apart first.
    let after = |graph: &mut Graph, layer: usize, value: Value| match layer + 1 < net.dense.len() {
        true => graph.node("LeakyRelu", &[&value], &leak),
        false => value,
    };
    let numbers = dense(graph, inputs, net.inputs.len(), &net.dense, after);
    match &net.map {
        Some(map) => drawn(graph, &numbers, map),
        None => {
            let shape = graph.integers(&[2], &[net.vertices.len() as i64, 3]);
            graph.node("Reshape", &[&numbers, &shape], &[])
        }
    }
}

pub(crate) fn normalised(
    graph: &mut Graph,
    controls: &Value,
    inputs: &[u32],
    mean: &[f32],
    scale: &[f32],
) -> Value {
    let count = inputs.len();
    let indices: Vec<i64> = inputs.iter().map(|i| i64::from(*i)).collect();
    let indices = graph.integers(&[1, count], &indices);
    let raw = graph.node("Gather", &[controls, &indices], &axis(0));
    let (mean, scale) = (graph.floats(&[1, count], mean), graph.floats(&[1, count], scale));
    let centred = graph.node("Sub", &[&raw, &mean], &[]);
    graph.node("Mul", &[&centred, &scale], &[])
}

/// A chain of dense layers on `[1, inputs]`.
pub(crate) fn dense(
    graph: &mut Graph,
    inputs: Value,
    mut columns: usize,
    layers: &[DenseParts],
    after: impl Fn(&mut Graph, usize, Value) -> Value,
) -> Value {
    let mut value = inputs;
    for (index, layer) in layers.iter().enumerate() {
        let rows = layer.bias.len();
        let bias = graph.floats(&[1, rows], &layer.bias);
        if columns == 0 {
            value = bias;
        } else {
            let weights = graph.floats(&[rows, columns], &layer.weights);
            value = graph.node("Gemm", &[&value, &weights, &bias], &[Attribute::Integer("transB", 1)]);
        }
        value = after(graph, index, value);
        columns = rows;
    }
    value
}

/// Draws a map from dense numbers and samples it, `[P,3]`.
fn drawn(graph: &mut Graph, numbers: &Value, map: &MapParts) -> Value {
    let shape = &map.shape;
    let (side, channels) = (shape.side as i64, shape.channels as i64);
    let image_shape = graph.integers(&[4], &[1, side, side, channels]);
    let first = shape.first_image() as i64;
    let part = |graph: &mut Graph, from: i64, to: i64| {
        let [from, to, along] = [from, to, 1].map(|number| graph.integers(&[1], &[number]));
        graph.node("Slice", &[numbers, &from, &to, &along], &[])
    };
    let image = if shape.shared_features > 0 { part(graph, 0, first) } else { numbers.clone() };
    let image = graph.node("LeakyRelu", &[&image], &[Attribute::Float("alpha", LEAK)]);
    let image = graph.node("Reshape", &[&image, &image_shape], &[]);
    let mut image = graph.node("Transpose", &[&image], &[Attribute::Integers("perm", &[0, 3, 1, 2])]);
    let mut rest = &map.parameters[..];
    let mut take = |count: usize| {
        let (own, after) = rest.split_at(count);
        rest = after;
        own
    };
    let region = graph.floats(&[0], &[]);
    let twice = graph.floats(&[4], &[1.0, 1.0, 2.0, 2.0]);
    for convolution in 0..shape.convolutions() {
        let inputs = shape.inputs_of(convolution);
        if convolution < shape.doublings {
            let modes = [
                Attribute::Text("mode", "nearest"),
                Attribute::Text("coordinate_transformation_mode", "asymmetric"),
                Attribute::Text("nearest_mode", "floor"),
            ];
            image = graph.node("Resize", &[&image, &region, &twice], &modes);
        }
        let weights = graph.floats(&[shape.hidden, inputs, 3, 3], take(shape.hidden * inputs * 9));
        let bias = graph.floats(&[shape.hidden], take(shape.hidden));
        let window =
            [Attribute::Integers("kernel_shape", &[3, 3]), Attribute::Integers("pads", &[1, 1, 1, 1])];
        image = graph.node("Conv", &[&image, &weights, &bias], &window);
        image = graph.node("LeakyRelu", &[&image], &[Attribute::Float("alpha", LEAK)]);
    }
    let pixels = shape.map_side() * shape.map_side();
    let weights = take(shape.sets() * shape.outputs * shape.reads());
    let bias = take(shape.sets() * shape.outputs);
    let flat = match shape.untied {
        false => {
            let weights = graph.floats(&[shape.outputs, shape.hidden, 1, 1], weights);
            let bias = graph.floats(&[shape.outputs], bias);
            let window = [Attribute::Integers("kernel_shape", &[1, 1])];
            image = graph.node("Conv", &[&image, &weights, &bias], &window);
            let flat = graph.integers(&[2], &[shape.outputs as i64, pixels as i64]);
            graph.node("Reshape", &[&image, &flat], &[])
        }
        true => {
            // Weights by pixel, last: a product of arrays and a sum over features.
            let own = untied_weights(shape, weights);
            let weights = graph.floats(&[shape.outputs, shape.hidden, pixels], &own.features);
            let turned: Vec<f32> = (0..shape.outputs * pixels)
                .map(|place| bias[place % pixels * shape.outputs + place / pixels])
                .collect();
            let mut bias = graph.floats(&[shape.outputs, pixels], &turned);
            if shape.shared_features > 0 {
                let shared = part(graph, first, shape.dense_numbers() as i64);
                let weights = graph.floats(&[shape.shared_features, shape.outputs * pixels], &own.shared);
                let sums = graph.node("MatMul", &[&shared, &weights], &[]);
                let flat = graph.integers(&[2], &[shape.outputs as i64, pixels as i64]);
                let sums = graph.node("Reshape", &[&sums, &flat], &[]);
                bias = graph.node("Add", &[&sums, &bias], &[]);
            }
            let features = graph.integers(&[3], &[1, shape.hidden as i64, pixels as i64]);
            let features = graph.node("Reshape", &[&image, &features], &[]);
            let products = graph.node("Mul", &[&features, &weights], &[]);
            let along = graph.integers(&[1], &[1]);
            let sums = graph.node("ReduceSum", &[&products, &along], &[Attribute::Integer("keepdims", 0)]);
            graph.node("Add", &[&sums, &bias], &[])
        }
    };
    // Pixels as rows, then the four around each vertex.
    let flat = graph.node("Transpose", &[&flat], &[Attribute::Integers("perm", &[1, 0])]);
    let samples: Vec<BilinearSample> =
        map.coordinates.iter().map(|c| BilinearSample::at(*c, shape.map_side())).collect();
    let places: Vec<i64> =
        samples.iter().flat_map(|sample| sample.pixels(shape.map_side()).map(|pixel| pixel as i64)).collect();
    let weights: Vec<f32> = samples.iter().flat_map(|sample| sample.weights).collect();
    let places = graph.integers(&[samples.len(), 4], &places);
    let weights = graph.floats(&[samples.len(), 4, 1], &weights);
    let four = graph.node("Gather", &[&flat, &places], &axis(0));
    let weighted = graph.node("Mul", &[&four, &weights], &[]);
    let along = graph.integers(&[1], &[1]);
    let all = graph.node("ReduceSum", &[&weighted, &along], &[Attribute::Integer("keepdims", 0)]);
    if shape.outputs == 3 {
        return all;
    }
    let three = graph.integers(&[3], &[0, 1, 2]);
    graph.node("Gather", &[&all, &three], &axis(1))
}

/// Weights that every pixel has of its own, turned so that the last dimension runs over pixels.
pub struct UntiedWeights {
    /// `[outputs][hidden][pixels]`.
    pub features: Vec<f32>,
    /// `[shared][outputs][pixels]`.
    pub shared: Vec<f32>,
}

/// Turns weights `[pixels][outputs][hidden + shared]`.
pub fn untied_weights(shape: &MapShape, weights: &[f32]) -> UntiedWeights {
    let (outputs, reads, pixels) = (shape.outputs, shape.reads(), shape.sets());
    let over_pixels =
        |output: usize, read: usize| (0..pixels).map(move |p| weights[(p * outputs + output) * reads + read]);
    let features = (0..outputs).flat_map(|o| (0..shape.hidden).map(move |c| (o, c)));
    let shared = (shape.hidden..reads).flat_map(|c| (0..outputs).map(move |o| (o, c)));
    UntiedWeights {
        features: features.flat_map(|(o, c)| over_pixels(o, c)).collect(),
        shared: shared.flat_map(|(o, c)| over_pixels(o, c)).collect(),
    }
}

/// Horn's matrix is linear in the covariance, `[9] → [16]`; the rotation in the outer product of the
/// quaternion (w, x, y, z), `[16] → [9]`. Both by rows.
fn horn() -> ([f32; 9 * 16], [f32; 16 * 9]) {
    let mut to_horn = [0.0; 9 * 16];
    // (entry of the 4×4 matrix, entries of the covariance with their signs).
    type Entry = (usize, usize, [(usize, f32); 3]);
    let entries: [Entry; 10] = [
        (0, 0, [(0, 1.0), (4, 1.0), (8, 1.0)]),
        (0, 1, [(7, 1.0), (5, -1.0), (0, 0.0)]),
        (0, 2, [(2, 1.0), (6, -1.0), (0, 0.0)]),
        (0, 3, [(3, 1.0), (1, -1.0), (0, 0.0)]),
        (1, 1, [(0, 1.0), (4, -1.0), (8, -1.0)]),
        (1, 2, [(1, 1.0), (3, 1.0), (0, 0.0)]),
        (1, 3, [(2, 1.0), (6, 1.0), (0, 0.0)]),
        (2, 2, [(4, 1.0), (0, -1.0), (8, -1.0)]),
        (2, 3, [(5, 1.0), (7, 1.0), (0, 0.0)]),
        (3, 3, [(8, 1.0), (0, -1.0), (4, -1.0)]),
    ];
    for (row, column, terms) in entries {
        for (from, sign) in terms {
            to_horn[from * 16 + row * 4 + column] += sign;
            if row != column {
                to_horn[from * 16 + column * 4 + row] += sign;
            }
        }
    }
    let mut to_rotation = [0.0; 16 * 9];
    let pair = |a: usize, b: usize| a * 4 + b;
    let rotation: [(usize, [(usize, f32); 4]); 9] = [
        (0, [(pair(0, 0), 1.0), (pair(1, 1), 1.0), (pair(2, 2), -1.0), (pair(3, 3), -1.0)]),
        (1, [(pair(1, 2), 2.0), (pair(0, 3), -2.0), (0, 0.0), (0, 0.0)]),
        (2, [(pair(1, 3), 2.0), (pair(0, 2), 2.0), (0, 0.0), (0, 0.0)]),
        (3, [(pair(1, 2), 2.0), (pair(0, 3), 2.0), (0, 0.0), (0, 0.0)]),
        (4, [(pair(0, 0), 1.0), (pair(1, 1), -1.0), (pair(2, 2), 1.0), (pair(3, 3), -1.0)]),
        (5, [(pair(2, 3), 2.0), (pair(0, 1), -2.0), (0, 0.0), (0, 0.0)]),
        (6, [(pair(1, 3), 2.0), (pair(0, 2), -2.0), (0, 0.0), (0, 0.0)]),
        (7, [(pair(2, 3), 2.0), (pair(0, 1), 2.0), (0, 0.0), (0, 0.0)]),
        (8, [(pair(0, 0), 1.0), (pair(1, 1), -1.0), (pair(2, 2), -1.0), (pair(3, 3), 1.0)]),
    ];
    for (to, terms) in rotation {
        for (from, sign) in terms {
            to_rotation[from * 9 + to] += sign;
        }
    }
    (to_horn, to_rotation)
}

/// The vertices with rigid segments put where those that they follow carry them.
fn with_rigid(graph: &mut Graph, parts: &FaceParts, vertices: &Value) -> Value {
    let rest = parts.mesh.positions();
    let segments = parts.rigid.len();
    let widest = parts.rigid.iter().map(|segment| segment.follows.len()).max().unwrap_or(1).max(1);
    let (mut followed, mut shares, mut centred, mut middles) = (vec![], vec![], vec![], vec![]);
    for segment in &parts.rigid {
        let count = segment.follows.len();
        let middle = segment.follows.iter().map(|v| rest[*v as usize]).sum::<Vec3>() / count.max(1) as f32;
        middles.push(middle);
        for place in 0..widest {
            let vertex = segment.follows.get(place).copied();
            followed.push(i64::from(vertex.unwrap_or(0)));
            shares.push(if vertex.is_some() { 1.0 / count as f32 } else { 0.0 });
            // Padding has no lever, so it turns nothing.
            centred.extend(vertex.map_or(Vec3::ZERO, |v| rest[v as usize] - middle).to_array());
        }
    }
    let followed = graph.integers(&[segments, widest], &followed);
    let shares = graph.floats(&[segments, 1, widest], &shares);
    let centred = graph.floats(&[segments, widest, 3], &centred);
    let now = graph.node("Gather", &[vertices, &followed], &axis(0));
    let to = graph.node("MatMul", &[&shares, &now], &[]);
    // Distances from the middle: coordinates of ten centimetres would cost digits.
    let apart = graph.node("Sub", &[&now, &to], &[]);
    let turned = graph.node("Transpose", &[&apart], &[Attribute::Integers("perm", &[0, 2, 1])]);
    let covariance = graph.node("MatMul", &[&turned, &centred], &[]);
    let rotation = best_rotation(graph, &covariance, segments);

    let owners = || parts.rigid.iter().enumerate().flat_map(|(s, r)| r.vertices.iter().map(move |v| (s, *v)));
    let count = owners().count();
    let owner: Vec<i64> = owners().map(|(segment, _)| segment as i64).collect();
    let local: Vec<f32> = owners().flat_map(|(s, v)| (rest[v as usize] - middles[s]).to_array()).collect();
    let owner = graph.integers(&[count], &owner);
    let local = graph.floats(&[count, 3, 1], &local);
    let own_rotation = graph.node("Gather", &[&rotation, &owner], &axis(0));
    let own_to = graph.node("Gather", &[&to, &owner], &axis(0));
    let shape = graph.integers(&[2], &[count as i64, 3]);
    let carried = graph.node("MatMul", &[&own_rotation, &local], &[]);
    let carried = graph.node("Reshape", &[&carried, &shape], &[]);
    let own_to = graph.node("Reshape", &[&own_to, &shape], &[]);
    let carried = graph.node("Add", &[&carried, &own_to], &[]);
    replaced(graph, vertices, rest.len(), &[carried], owners().map(|(_, vertex)| vertex))
}

/// The vertices, `[count,3]`, with some of them exchanged for the rows of `carried`.
fn replaced(
    graph: &mut Graph,
    vertices: &Value,
    count: usize,
    carried: &[Value],
    which: impl Iterator<Item = u32>,
) -> Value {
    let all: Vec<&Value> = std::iter::once(vertices).chain(carried).collect();
    let all = graph.node("Concat", &all, &axis(0));
    let mut order: Vec<i64> = (0..count as i64).collect();
    for (place, vertex) in which.enumerate() {
        order[vertex as usize] = (count + place) as i64;
    }
    let order = graph.integers(&[count], &order);
    graph.node("Gather", &[&all, &order], &axis(0))
}

/// The vertices with bodies put where their own motions carry them.
fn with_bodies(graph: &mut Graph, parts: &FaceParts, controls: &Value, vertices: &Value) -> Value {
    let rest = parts.mesh.positions();
    let mut carried = Vec::new();
    for body in &parts.bodies {
        let own: Vec<f32> = body.vertices.iter().flat_map(|v| rest[*v as usize].to_array()).collect();
        let own = graph.floats(&[body.vertices.len(), 3], &own);
        carried.push(moved(graph, &body.motion, controls, &own));
    }
    let which = parts.bodies.iter().flat_map(|body| body.vertices.iter().copied());
    replaced(graph, vertices, rest.len(), &carried, which)
}

/// Rotations `[K,3,3]` nearest to covariances `[K,3,3]`.
fn best_rotation(graph: &mut Graph, covariance: &Value, count: usize) -> Value {
    let (to_horn, to_rotation) = horn();
    let size = count as i64;
    let flat = graph.integers(&[2], &[size, 9]);
    let nine = graph.node("Reshape", &[covariance, &flat], &[]);
    let to_horn = graph.floats(&[9, 16], &to_horn);
    let sixteen = graph.node("MatMul", &[&nine, &to_horn], &[]);
    // Scaled by its size and shifted by one, all eigenvalues are positive and the largest stays largest.
    let squares = graph.node("Mul", &[&sixteen, &sixteen], &[]);
    let along = graph.integers(&[1], &[1]);
    let keep = [Attribute::Integer("keepdims", 1)];
    let sum = graph.node("ReduceSum", &[&squares, &along], &keep);
    let small = graph.floats(&[1, 1], &[1e-20]);
    let sum = graph.node("Add", &[&sum, &small], &[]);
    let length = graph.node("Sqrt", &[&sum], &[]);
    let unit = graph.node("Div", &[&sixteen, &length], &[]);
    let four = graph.integers(&[3], &[size, 4, 4]);
    let mut identity = [0.0f32; 16];
    (0..4).for_each(|k| identity[k * 5] = 1.0);
    let identity_flat = graph.floats(&[1, 16], &identity);
    let shifted = graph.node("Add", &[&unit, &identity_flat], &[]);
    let mut matrix = graph.node("Reshape", &[&shifted, &four], &[]);
    let diagonal = graph.floats(&[1, 4, 4], &identity);
    let both = graph.integers(&[2], &[1, 2]);
    for _ in 0..SQUARINGS {
        let square = graph.node("MatMul", &[&matrix, &matrix], &[]);
        let own = graph.node("Mul", &[&square, &diagonal], &[]);
        let trace = graph.node("ReduceSum", &[&own, &both], &keep);
        matrix = graph.node("Div", &[&square, &trace], &[]);
    }
    let flat = graph.integers(&[2], &[size, 16]);
    let outer = graph.node("Reshape", &[&matrix, &flat], &[]);
    let to_rotation = graph.floats(&[16, 9], &to_rotation);
    let rotation = graph.node("MatMul", &[&outer, &to_rotation], &[]);
    let three = graph.integers(&[3], &[size, 3, 3]);
    graph.node("Reshape", &[&rotation, &three], &[])
}

/// A motion applied, by Rodrigues' formula.
pub(crate) fn moved(graph: &mut Graph, motion: &MotionParts, controls: &Value, vertices: &Value) -> Value {
    let inputs = normalised(graph, controls, &motion.inputs, &motion.mean, &motion.scale);
    let last = motion.layers.len() - 1;
    let after = |graph: &mut Graph, layer: usize, value: Value| match layer < last {
        true => graph.node("Tanh", &[&value], &[]),
        false => value,
    };
    let six = dense(graph, inputs, motion.inputs.len(), &motion.layers, after);
    let half = |graph: &mut Graph, first: i64| {
        let places = graph.integers(&[3], &[first, first + 1, first + 2]);
        graph.node("Gather", &[&six, &places], &axis(1))
    };
    let (turn, shift) = (half(graph, 0), half(graph, 3));
    let squares = graph.node("Mul", &[&turn, &turn], &[]);
    let along = graph.integers(&[1], &[1]);
    let square = graph.node("ReduceSum", &[&squares, &along], &[Attribute::Integer("keepdims", 1)]);
    let small = graph.floats(&[1, 1], &[1e-12]);
    let square = graph.node("Add", &[&square, &small], &[]);
    let angle = graph.node("Sqrt", &[&square], &[]);
    let sine = graph.node("Sin", &[&angle], &[]);
    let first = graph.node("Div", &[&sine, &angle], &[]);
    let cosine = graph.node("Cos", &[&angle], &[]);
    let one = graph.floats(&[1, 1], &[1.0]);
    let rest = graph.node("Sub", &[&one, &cosine], &[]);
    let second = graph.node("Div", &[&rest, &square], &[]);
    // [ω]× by rows is linear in ω.
    let mut skew = [0.0f32; 27];
    for (from, to, sign) in [(2, 1, -1.0), (1, 2, 1.0), (2, 3, 1.0), (0, 5, -1.0), (1, 6, -1.0), (0, 7, 1.0)]
    {
        skew[from * 9 + to] = sign;
    }
    let skew = graph.floats(&[3, 9], &skew);
    let cross = graph.node("MatMul", &[&turn, &skew], &[]);
    let three = graph.integers(&[2], &[3, 3]);
    let cross = graph.node("Reshape", &[&cross, &three], &[]);
    let twice = graph.node("MatMul", &[&cross, &cross], &[]);
    let a = graph.node("Mul", &[&cross, &first], &[]);
    let b = graph.node("Mul", &[&twice, &second], &[]);
    let identity = graph.floats(&[3, 3], &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    let sum = graph.node("Add", &[&a, &b], &[]);
    let rotation = graph.node("Add", &[&sum, &identity], &[]);
    let turned = graph.node("Transpose", &[&rotation], &[Attribute::Integers("perm", &[1, 0])]);
    let pivot = graph.floats(&[1, 3], &motion.pivot.to_array());
    let local = graph.node("Sub", &[vertices, &pivot], &[]);
    let carried = graph.node("MatMul", &[&local, &turned], &[]);
    let to = graph.node("Add", &[&pivot, &shift], &[]);
    graph.node("Add", &[&carried, &to], &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{DMat3, DQuat, DVec3};

    /// The graph's way to a rotation, in plain arithmetic.
    #[test]
    fn squaring_horns_matrix_gives_the_rotation() {
        let (to_horn, to_rotation) = horn();
        for angle in [0.0, 0.3, 1.5, 3.0] {
            let turn =
                DMat3::from_quat(DQuat::from_scaled_axis(DVec3::new(0.6, -0.7, 0.39).normalize() * angle));
            // A flat cloud: the smallest singular value is zero.
            let covariance = turn * DMat3::from_diagonal(DVec3::new(2.0, 0.3, 0.0));
            let row = |i: usize, j: usize| covariance.col(j)[i] as f32;
            let nine: Vec<f32> = (0..9).map(|k| row(k / 3, k % 3)).collect();
            let sum = |m: &[f32], x: &[f32], width: usize, to: usize| -> f32 {
                x.iter().enumerate().map(|(from, v)| m[from * width + to] * v).sum()
            };
            let sixteen: Vec<f32> = (0..16).map(|to| sum(&to_horn, &nine, 16, to)).collect();
            let length = sixteen.iter().map(|v| v * v).sum::<f32>().sqrt();
            let mut matrix: Vec<f32> =
                (0..16).map(|k| sixteen[k] / length + if k % 5 == 0 { 1.0 } else { 0.0 }).collect();
            for _ in 0..SQUARINGS {
                let square: Vec<f32> = (0..16)
                    .map(|k| (0..4).map(|m| matrix[k / 4 * 4 + m] * matrix[m * 4 + k % 4]).sum())
                    .collect();
                let trace: f32 = (0..4).map(|k| square[k * 5]).sum();
                matrix = square.iter().map(|v| v / trace).collect();
            }
            for to in 0..9 {
                let got = f64::from(sum(&to_rotation, &matrix, 9, to));
                assert!((got - turn.col(to % 3)[to / 3]).abs() < 1e-4, "{angle}: entry {to}");
            }
        }
    }
}
