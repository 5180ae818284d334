//! A skin twin as ONNX: the whole of it (controls in, vertices out), or its bones alone (controls in, world transforms of
//! its joints out) for engines that skin on their own.
//!
//! Input: `controls [C]` in the rig's order and units. Outputs: `vertices [V,3]` in cm, or `bones [B,3,4]`, rows of each
//! joint's world transform in cm. Joints rest at the bones' centres without rotation.

use crate::twin::kinds::face::onnx::{dense, moved, normalised};
use understudy_io::onnx::{Attribute, Graph, Value};
use understudy_runtime::skin::{BONE_NUMBERS, SkinParts};

fn axis(axis: i64) -> [Attribute<'static>; 1] {
    [Attribute::Integer("axis", axis)]
}

/// Numbers of the bones and coefficients, `[1, 12 B + K]`.
fn numbers(graph: &mut Graph, parts: &SkinParts, controls: &Value) -> Value {
    let inputs = normalised(graph, controls, &parts.inputs, &parts.mean, &parts.scale);
    let columns = parts.inputs.len();
    let tanh = |graph: &mut Graph, _: usize, value: Value| graph.node("Tanh", &[&value], &[]);
    let features = match parts.hidden.last() {
        None => inputs,
        Some(_) => {
            let hidden = dense(graph, inputs.clone(), columns, &parts.hidden, tanh);
            graph.node("Concat", &[&inputs, &hidden], &axis(1))
        }
    };
    let columns = columns + parts.hidden.last().map_or(0, |last| last.bias.len());
    let output = std::slice::from_ref(&parts.output);
    dense(graph, features, columns, output, |_, _, value| value)
}

/// Each joint's transform before the motion of the whole, `[B,3,4]`: `[1 + A | centre + t]`.
fn local_bones(graph: &mut Graph, parts: &SkinParts, numbers: &Value) -> Value {
    let bones = parts.centres.len();
    let own: Vec<i64> = (0..(BONE_NUMBERS * bones) as i64).collect();
    let own = graph.integers(&[own.len()], &own);
    let own = graph.node("Gather", &[numbers, &own], &axis(1));
    let shape = graph.integers(&[3], &[bones as i64, 3, 4]);
    let own = graph.node("Reshape", &[&own, &shape], &[]);
    let rest: Vec<f32> = parts
        .centres
        .iter()
        .flat_map(|c| [1.0, 0.0, 0.0, c.x, 0.0, 1.0, 0.0, c.y, 0.0, 0.0, 1.0, c.z])
        .collect();
    let rest = graph.floats(&[bones, 3, 4], &rest);
    graph.node("Add", &[&own, &rest], &[])
}

/// Draws the bones alone.
pub(super) fn draw_bones(graph: &mut Graph, parts: &SkinParts) {
    let bones = parts.centres.len();
    let controls = graph.input("controls", &[parts.header.inputs.controls.len()]);
    let numbers = numbers(graph, parts, &controls);
    let mut local = local_bones(graph, parts, &numbers);
    if let Some(frame) = &parts.frame {
        // The motion carries points: where each joint is, and the tips of its axes.
        let tips = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0; 4]];
        let tips = graph.floats(&[4, 4], &tips.concat());
        let points = graph.node("MatMul", &[&local, &tips], &[]);
        let turned = graph.node("Transpose", &[&points], &[Attribute::Integers("perm", &[0, 2, 1])]);
        let flat = graph.integers(&[2], &[4 * bones as i64, 3]);
        let points = graph.node("Reshape", &[&turned, &flat], &[]);
        let points = moved(graph, frame, &controls, &points);
        let shape = graph.integers(&[3], &[bones as i64, 4, 3]);
        let points = graph.node("Reshape", &[&points, &shape], &[]);
        let points = graph.node("Transpose", &[&points], &[Attribute::Integers("perm", &[0, 2, 1])]);
        let axes =
            [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [-1.0, -1.0, -1.0, 1.0]];
        let axes = graph.floats(&[4, 4], &axes.concat());
        local = graph.node("MatMul", &[&points, &axes], &[]);
    }
    graph.output("bones", &local, &[bones, 3, 4]);
}

/// Draws the whole twin.
pub(super) fn draw(graph: &mut Graph, parts: &SkinParts) {
    let count = parts.rest_vertices.len();
    let controls = graph.input("controls", &[parts.header.inputs.controls.len()]);
    let numbers = numbers(graph, parts, &controls);
    let bones = local_bones(graph, parts, &numbers);
    let widest = parts.weights.max_influences().max(1);
    let (mut which, mut places) = (Vec::new(), Vec::new());
    for (vertex, rest) in parts.rest_vertices.iter().enumerate() {
        let mut row: Vec<(usize, f32)> = parts.weights.row(vertex).collect();
        row.resize(widest, (0, 0.0));
        for (bone, weight) in row {
            which.push(bone as i64);
            places.extend(((*rest - parts.centres[bone]).extend(1.0) * weight).to_array());
        }
    }
    // Influences by slots: a table per slot stays small.
    let slots = |slot: usize| (0..count).map(move |vertex| vertex * widest + slot);
    let mut vertices: Option<Value> = None;
    for slot in 0..widest {
        let own: Vec<i64> = slots(slot).map(|place| which[place]).collect();
        let own = graph.integers(&[count], &own);
        let own = graph.node("Gather", &[&bones, &own], &axis(0));
        let local: Vec<f32> = slots(slot).flat_map(|p| places[4 * p..4 * p + 4].iter().copied()).collect();
        let local = graph.floats(&[count, 1, 4], &local);
        let product = graph.node("Mul", &[&own, &local], &[]);
        let along = graph.integers(&[1], &[2]);
        let sum = graph.node("ReduceSum", &[&product, &along], &[Attribute::Integer("keepdims", 0)]);
        vertices = Some(match vertices {
            None => sum,
            Some(before) => graph.node("Add", &[&before, &sum], &[]),
        });
    }
    let mut vertices = vertices.expect("one slot at least");
    let components = parts.component_count();
    if components > 0 {
        let first = (BONE_NUMBERS * parts.centres.len()) as i64;
        let own: Vec<i64> = (first..first + components as i64).collect();
        let own = graph.integers(&[components], &own);
        let coefficients = graph.node("Gather", &[&numbers, &own], &axis(1));
        let basis = graph.floats(&[3 * count, components], &parts.components);
        let bias = graph.floats(&[1], &[0.0]);
        let transposed = [Attribute::Integer("transB", 1)];
        let offsets = graph.node("Gemm", &[&coefficients, &basis, &bias], &transposed);
        let shape = graph.integers(&[2], &[count as i64, 3]);
        let offsets = graph.node("Reshape", &[&offsets, &shape], &[]);
        vertices = graph.node("Add", &[&vertices, &offsets], &[]);
    }
    if let Some(frame) = &parts.frame {
        vertices = moved(graph, frame, &controls, &vertices);
    }
    graph.output("vertices", &vertices, &[count, 3]);
}
