//! Steps joined: an activation becomes part of the step whose result it alone reads, a sum part of the convolution that gives one
//! of its sides. Images are then walked over once where they were walked over three times.

use super::kernels::Activation;
use super::model::Binary;
use super::plan::{Kind, Step};

/// Joins what can be joined. `outputs`: tensors that have to be there in the end.
pub(super) fn fuse(mut steps: Vec<Step>, outputs: &[usize]) -> Vec<Step> {
    // Sums first: what follows them then follows the convolution.
    join(&mut steps, outputs, sum);
    join(&mut steps, outputs, activation);
    steps
}

/// Tries to join each step with the only one that reads its result. The joined one stands in the place of the later one, so
/// that what it reads is there.
fn join(steps: &mut Vec<Step>, outputs: &[usize], joined: fn(&Step, &Step) -> Option<Step>) {
    let mut index = 0;
    while index < steps.len() {
        let value = steps[index].output;
        let mut readers = steps
            .iter()
            .enumerate()
            .flat_map(|(place, step)| step.inputs.iter().map(move |input| (place, *input)));
        let mut readers = readers.by_ref().filter(|(_, input)| *input == value).map(|(place, _)| place);
        let only = match (readers.next(), readers.next()) {
            (Some(reader), None) if !outputs.contains(&value) => Some(reader),
            _ => None,
        };
        match only.and_then(|reader| Some((reader, joined(&steps[index], &steps[reader])?))) {
            Some((reader, step)) => {
                steps[reader] = step;
                steps.remove(index);
            }
            None => index += 1,
        }
    }
}

/// `act(X W + b) + R`, where nothing stands between.
fn sum(first: &Step, second: &Step) -> Option<Step> {
    let (Kind::Convolution(convolution), Kind::Elementwise(add)) = (&first.kind, &second.kind) else {
        return None;
    };
    let plain = convolution.activation == Activation::None && !convolution.residual;
    // Both sides are whole tensors of the result's shape.
    let whole = add.steps == [1, 1] && add.starts.len() == 1;
    if !plain || !whole || add.operator != Binary::Add {
        return None;
    }
    let other = *second.inputs.iter().find(|input| **input != first.output)?;
    let mut convolution = convolution.clone();
    convolution.residual = true;
    convolution.activation = add.activation.clone();
    Some(Step {
        kind: Kind::Convolution(convolution),
        inputs: vec![first.inputs[0], other],
        output: second.output,
    })
}

fn activation(first: &Step, second: &Step) -> Option<Step> {
    let Kind::Activation(activation) = &second.kind else { return None };
    let mut kind = first.kind.clone();
    let slot = match &mut kind {
        Kind::Convolution(convolution) => &mut convolution.activation,
        Kind::Depthwise(depthwise) => &mut depthwise.activation,
        Kind::MaxPool(pool) => &mut pool.activation,
        Kind::Elementwise(elementwise) => &mut elementwise.activation,
        _ => return None,
    };
    if *slot != Activation::None {
        return None;
    }
    *slot = activation.clone();
    Some(Step { kind, inputs: first.inputs.clone(), output: second.output })
}
