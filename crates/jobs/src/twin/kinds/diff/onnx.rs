//! A differential twin as one ONNX graph: features, networks, the folded reconstruction, skinning.
//!
//! Inputs: `bones [J,3,4]` (row-major 3×4, bone → world, cm) where the twin has a skin, and `controls [C]` where it has
//! some. Output: `vertices [V,3]` in cm.

use crate::twin::kinds::body::onnx::{Skeleton, linear_blend, seen_bones};
use understudy_io::onnx::{Attribute, Graph, Value};
use understudy_runtime::diff::{BLOCK_VERTICES, BONE_INPUTS, DiffParts, HiddenActivation, LayerNumbers};

/// Draws the whole twin.
pub(super) fn draw(graph: &mut Graph, parts: &DiffParts) {
    let inputs = &parts.header.inputs;
    let joints = inputs.bones.len();
    let axis = |axis| Attribute::Integer("axis", axis);
    let skeleton = parts.skin.as_ref().map(|_| {
        let bones = graph.input("bones", &[joints, 3, 4]);
        Skeleton::new(graph, &bones, false)
    });
    // Twelve numbers of every bone that is seen, then the controls.
    let mut seen: Vec<usize> = parts
        .features
        .inputs
        .iter()
        .map(|input| *input as usize / BONE_INPUTS)
        .filter(|bone| *bone < joints)
        .collect();
    seen.sort_unstable();
    seen.dedup();
    let mut raw: Vec<Value> = Vec::new();
    if let Some(skeleton) = skeleton.as_ref().filter(|_| !seen.is_empty()) {
        let pairs: Vec<(Option<usize>, usize)> =
            seen.iter().map(|bone| (inputs.bones[*bone].parent, *bone)).collect();
        raw.push(seen_bones(graph, joints, &pairs, skeleton));
    }
    if !inputs.controls.is_empty() {
        raw.push(graph.input("controls", &[inputs.controls.len()]));
    }
    let raw = graph.node("Concat", &raw.iter().collect::<Vec<_>>(), &[axis(0)]);
    let place = |input: &u32| {
        let input = *input as usize;
        let place = match input.checked_sub(joints * BONE_INPUTS) {
            Some(control) => seen.len() * BONE_INPUTS + control,
            None => {
                let bone = seen.binary_search(&(input / BONE_INPUTS)).expect("bones of features were listed");
                bone * BONE_INPUTS + input % BONE_INPUTS
            }
        };
        place as i64
    };
    let places: Vec<i64> = parts.features.inputs.iter().map(place).collect();
    let count = places.len();
    let places = graph.integers(&[1, count], &places);
    let gathered = graph.node("Gather", &[&raw, &places], &[axis(0)]);
    let (mean, scale) =
        (graph.floats(&[1, count], &parts.features.mean), graph.floats(&[1, count], &parts.features.scale));
    let centred = graph.node("Sub", &[&gathered, &mean], &[]);
    let features = graph.node("Mul", &[&centred, &scale], &[]);

    let mut coefficients = network(graph, parts.activation, &parts.differential, count, &features);
    let rank = parts.differential.last().map_or(0, |layer| layer.bias.len());
    if !parts.anchors.is_empty() {
        let anchors: Vec<Value> = parts
            .anchors
            .iter()
            .map(|anchor| {
                let own: Vec<i64> = anchor.features.iter().map(|feature| i64::from(*feature)).collect();
                let own = graph.integers(&[own.len()], &own);
                let seen = graph.node("Gather", &[&features, &own], &[axis(1)]);
                network(graph, parts.activation, &anchor.layers, anchor.features.len(), &seen)
            })
            .collect();
        let anchors = graph.node("Concat", &anchors.iter().collect::<Vec<_>>(), &[axis(1)]);
        let subspace = turned(graph, &parts.subspace, rank, 3 * parts.anchors.len());
        let added = graph.node("MatMul", &[&anchors, &subspace], &[]);
        coefficients = graph.node("Add", &[&coefficients, &added], &[]);
    }
    if !parts.linear.is_empty() {
        let linear = turned(graph, &parts.linear, rank, count);
        let added = graph.node("MatMul", &[&features, &linear], &[]);
        coefficients = graph.node("Add", &[&coefficients, &added], &[]);
    }
    // Vertices innermost, as skinning wants them: `[3,V]`.
    let vertices = parts.places.len();
    let mut rest = vec![0.0f32; 3 * vertices];
    for (vertex, place) in parts.places.iter().enumerate() {
        (0..3).for_each(|axis| rest[axis * vertices + vertex] = place[axis]);
    }
    // Every run of vertices from its own coefficients, `[3,n]`.
    let (mut basis, mut mixes) = (&parts.basis[..], &parts.mixes[..]);
    let mut runs = Vec::new();
    for (run, places) in parts.places.chunks(BLOCK_VERTICES).enumerate() {
        let (count, own) = (places.len(), parts.block_ranks.get(run).map_or(rank, |own| *own as usize));
        let (numbers, after) = basis.split_at(3 * count * own);
        basis = after;
        let source = match parts.block_ranks.is_empty() {
            true => coefficients.clone(),
            false => {
                let (mix, after) = mixes.split_at(own * rank);
                mixes = after;
                let mix = turned(graph, mix, own, rank);
                graph.node("MatMul", &[&coefficients, &mix], &[])
            }
        };
        let mut decode = vec![0.0f32; numbers.len()];
        for vertex in 0..count {
            for axis in 0..3 {
                for component in 0..own {
                    decode[(component * 3 + axis) * count + vertex] =
                        numbers[(3 * vertex + axis) * own + component];
                }
            }
        }
        let decode = graph.floats(&[own, 3 * count], &decode);
        let flat = graph.node("MatMul", &[&source, &decode], &[]);
        let shape = graph.integers(&[2], &[3, count as i64]);
        runs.push(graph.node("Reshape", &[&flat, &shape], &[]));
    }
    let moving = graph.node("Concat", &runs.iter().collect::<Vec<_>>(), &[axis(1)]);
    let rest = graph.floats(&[3, vertices], &rest);
    let apart = graph.node("Add", &[&moving, &rest], &[]);
    let moved = match (&parts.skin, &skeleton) {
        (Some(skin), Some(skeleton)) => {
            let ones = graph.floats(&[1, vertices], &vec![1.0; vertices]);
            let flat_ones = graph.node("Concat", &[&apart, &ones], &[axis(0)]);
            let shape = graph.integers(&[3], &[1, 4, vertices as i64]);
            let places = graph.node("Reshape", &[&flat_ones, &shape], &[]);
            linear_blend(graph, &skin.rest_bones, &skin.weights, skeleton, &places)
        }
        _ => graph.node("Transpose", &[&apart], &[Attribute::Integers("perm", &[1, 0])]),
    };
    graph.output("vertices", &moved, &[vertices, 3]);
}

/// A matrix `[rows × columns]` as a constant `[columns, rows]`.
fn turned(graph: &mut Graph, weights: &[f32], rows: usize, columns: usize) -> Value {
    let mut turned = vec![0.0; rows * columns];
    for row in 0..rows {
        for column in 0..columns {
            turned[column * rows + row] = weights[row * columns + column];
        }
    }
    graph.floats(&[columns, rows], &turned)
}

/// Layers one after another, `[1, inputs]` in, `[1, outputs]` out.
fn network(
    graph: &mut Graph,
    activation: HiddenActivation,
    layers: &[LayerNumbers],
    inputs: usize,
    source: &Value,
) -> Value {
    let (mut value, mut columns) = (source.clone(), inputs);
    for (index, layer) in layers.iter().enumerate() {
        let rows = layer.bias.len();
        let weights = turned(graph, &layer.weights, rows, columns);
        let bias = graph.floats(&[1, rows], &layer.bias);
        value = graph.node("Gemm", &[&value, &weights, &bias], &[]);
        if index + 1 < layers.len() {
            let operator = match activation {
                HiddenActivation::Relu => "Relu",
                HiddenActivation::Tanh => "Tanh",
            };
            value = graph.node(operator, &[&value], &[]);
        }
        columns = rows;
    }
    value
}
