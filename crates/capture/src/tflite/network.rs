//! A model that runs: steps, and memory that tensors share whose lives do not overlap.

use super::fuse::fuse;
use super::kernels::{Lanes, copy_into, gather, unary};
use super::model::{Data, Model};
use super::plan::{Kind, Step, steps};
use understudy_io::ParseError;

/// Most numbers of memory that a model may ask for.
const MOST_MEMORY: usize = 1 << 28;

/// A network ready to be evaluated, with the memory for it: one per thread.
#[derive(Debug, Clone)]
pub struct Network {
    steps: Vec<Step>,
    /// The slot of each tensor that is computed or constant.
    slots: Vec<Option<usize>>,
    memory: Vec<Vec<f32>>,
    scratch: Vec<f32>,
    sizes: Vec<usize>,
    channels: Vec<usize>,
    input: (usize, Vec<usize>),
    outputs: Vec<(String, usize, Vec<usize>)>,
    lanes: Lanes,
}

impl Network {
    /// Reads a `.tflite` file of one input, checks everything about it and makes its memory.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut model = Model::parse(bytes)?;
        let [input] = model.inputs[..] else {
            let problem = format!("{}; one is wanted", model.inputs.len());
            return Err(ParseError::new("inputs", problem));
        };
        let made = steps(&mut model)?;
        Self::new(&model, input, fuse(made, &model.outputs))
    }

    /// The same without joined steps, on portable kernels: what the fast one is held against.
    #[cfg(test)]
    pub(super) fn parse_plainly(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut model = Model::parse(bytes)?;
        let input = model.inputs[0];
        let made = steps(&mut model)?;
        let mut network = Self::new(&model, input, made)?;
        network.lanes = Lanes::Portable;
        Ok(network)
    }

    fn new(model: &Model, input: usize, steps: Vec<Step>) -> Result<Self, ParseError> {
        let count = model.tensors.len();
        let sizes: Vec<usize> = model.tensors.iter().map(|tensor| tensor.count()).collect();
        // The last step that reads each tensor; outputs and constants stay.
        let mut last = vec![0usize; count];
        for (index, step) in steps.iter().enumerate() {
            step.inputs.iter().for_each(|input| last[*input] = index);
        }
        let mut slots: Vec<Option<usize>> = vec![None; count];
        let mut memory: Vec<Vec<f32>> = Vec::new();
        let mut lengths: Vec<usize> = Vec::new();
        let mut free: Vec<usize> = Vec::new();
        let kept = |tensor: usize| model.outputs.contains(&tensor);
        let constant = |tensor: usize| !matches!(model.tensors[tensor].data, Data::Computed);
        let read: Vec<usize> = steps.iter().flat_map(|step| step.inputs.iter().copied()).collect();
        for tensor in read.into_iter().chain(model.outputs.iter().copied()) {
            if slots[tensor].is_none() && constant(tensor) {
                let Data::Numbers(numbers) = &model.tensors[tensor].data else {
                    return Err(ParseError::new(
                        format!("tensor {tensor}"),
                        "integers are computed with, which is not known",
                    ));
                };
                slots[tensor] = Some(memory.len());
                lengths.push(numbers.len());
                memory.push(numbers.clone());
            }
        }
        let mut place = |tensor: usize, free: &mut Vec<usize>, memory: &mut Vec<Vec<f32>>| {
            let size = sizes[tensor];
            let best = (0..free.len()).min_by_key(|at| (lengths[free[*at]].abs_diff(size), free[*at]));
            let slot = best.map(|at| free.swap_remove(at)).unwrap_or_else(|| {
                lengths.push(0);
                memory.push(Vec::new());
                memory.len() - 1
            });
            lengths[slot] = lengths[slot].max(size);
            slot
        };
        slots[input] = Some(place(input, &mut Vec::new(), &mut memory));
        for (index, step) in steps.iter().enumerate() {
            slots[step.output] = Some(place(step.output, &mut free, &mut memory));
            let mut done: Vec<usize> = step.inputs.clone();
            done.sort_unstable();
            done.dedup();
            // The input's memory stays too: who fills it need not know what came after.
            done.retain(|tensor| {
                last[*tensor] == index && !kept(*tensor) && !constant(*tensor) && *tensor != input
            });
            free.extend(done.iter().filter_map(|tensor| slots[*tensor]));
        }
        if lengths.iter().sum::<usize>() > MOST_MEMORY {
            return Err(ParseError::new("memory", "the model needs more than a gigabyte"));
        }
        memory.iter_mut().zip(&lengths).for_each(|(memory, length)| memory.resize(*length, 0.0));
        let scratch = steps.iter().map(|step| match &step.kind {
            Kind::Convolution(convolution) => convolution.scratch(),
            _ => 0,
        });
        let scratch = vec![0.0; scratch.max().unwrap_or(0)];
        let outputs = (model.outputs.iter())
            .map(|output| {
                let tensor = &model.tensors[*output];
                (tensor.name.clone(), *output, tensor.shape.clone())
            })
            .collect();
        Ok(Self {
            channels: model.tensors.iter().map(|tensor| tensor.shape.last().copied().unwrap_or(1)).collect(),
            input: (input, model.tensors[input].shape.clone()),
            slots,
            memory,
            scratch,
            sizes,
            outputs,
            steps,
            lanes: Lanes::detect(),
        })
    }

    /// The shape of what goes in.
    pub fn input_shape(&self) -> &[usize] {
        &self.input.1
    }

    /// Names and shapes of what comes out.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.outputs.iter().map(|(name, _, shape)| (name.as_str(), &shape[..]))
    }

    /// Where the input is written before [`Self::run`].
    pub fn input(&mut self) -> &mut [f32] {
        let (tensor, _) = self.input;
        let slot = self.slots[tensor].expect("the input has memory");
        &mut self.memory[slot][..self.sizes[tensor]]
    }

    /// An output of the last run.
    pub fn output(&self, index: usize) -> Option<&[f32]> {
        let (_, tensor, _) = self.outputs.get(index)?;
        Some(&self.memory[self.slots[*tensor]?][..self.sizes[*tensor]])
    }

    /// Evaluates the network on what was written to [`Self::input`]. Nothing is allocated.
    pub fn run(&mut self) {
        for step in &self.steps {
            let slot = self.slots[step.output].expect("every result has memory");
            // Its own memory is taken out, so that the others can be read beside it; a result never shares with an input.
            let mut own = std::mem::take(&mut self.memory[slot]);
            let out = &mut own[..self.sizes[step.output]];
            let value = |place: usize| {
                let tensor = step.inputs[place];
                let slot = self.slots[tensor].expect("every input has memory");
                &self.memory[slot][..self.sizes[tensor]]
            };
            let channels = self.channels[step.output];
            match &step.kind {
                Kind::Convolution(convolution) => {
                    let residual = convolution.residual.then(|| value(1));
                    convolution.run(self.lanes, value(0), residual, out, &mut self.scratch);
                }
                Kind::Depthwise(depthwise) => depthwise.run(self.lanes, value(0), out),
                Kind::MaxPool(pool) => pool.run(value(0), out),
                Kind::Elementwise(elementwise) => elementwise.run(value(0), value(1), out, channels),
                Kind::Unary(operator) => unary(*operator, value(0), out),
                Kind::Activation(activation) => {
                    out.copy_from_slice(value(0));
                    activation.apply(out, channels);
                }
                Kind::Pad(pad) => pad.run(value(0), out),
                Kind::Concatenate(parts) => {
                    for (index, part) in parts.iter().enumerate() {
                        copy_into(value(index), part.part, part.whole, part.offset, out);
                    }
                }
                Kind::Copy => out.copy_from_slice(value(0)),
                Kind::Gather(places) => gather(places, value(0), out),
                Kind::Reduce(reduce) => reduce.run(value(0), out),
            }
            self.memory[slot] = own;
        }
    }
}
