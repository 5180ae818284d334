//! From operators to steps: shapes are computed and compared with what the file says, constants are folded in, weights packed.
//! What is joined is in `fuse.rs`; memory is given out in `network.rs`.

use super::inside;
use super::kernels::{Activation, Convolution, Depthwise, Elementwise, MaxPool, Pad, Reduce};
use super::model::{Binary, Code, Data, Fused, Model, Operator, Padding, Tensor, Unary, Window};
use understudy_io::ParseError;

/// One step of the evaluation; `inputs` and `output` are tensors of the model.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub kind: Kind,
    pub inputs: Vec<usize>,
    pub output: usize,
}

/// What a step does.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Convolution(Box<Convolution>),
    Depthwise(Box<Depthwise>),
    MaxPool(MaxPool),
    Elementwise(Elementwise),
    Unary(Unary),
    /// An activation that nothing could be joined with.
    Activation(Activation),
    Pad(Pad),
    Concatenate(Vec<Part>),
    Copy,
    Gather(Vec<u32>),
    Reduce(Reduce),
}

/// Where one input of a joined tensor goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub part: usize,
    pub whole: usize,
    pub offset: usize,
}

/// Steps in the model's order.
pub(super) fn steps(model: &mut Model) -> Result<Vec<Step>, ParseError> {
    let mut known: Vec<bool> =
        model.tensors.iter().map(|tensor| !matches!(tensor.data, Data::Computed)).collect();
    for input in &model.inputs {
        if known[*input] {
            return Err(ParseError::new("inputs", "one is a constant"));
        }
        known[*input] = true;
    }
    let mut steps = Vec::new();
    for index in 0..model.operators.len() {
        let operator = model.operators[index].clone();
        let place = format!("operator {index}");
        let wrong = |problem: &str| ParseError::new(place.as_str(), problem);
        let [output] = operator.outputs[..] else { return Err(wrong("one output is wanted")) };
        if operator.inputs.iter().flatten().any(|input| !known[*input]) {
            return Err(wrong("reads a tensor before it is computed"));
        }
        if std::mem::replace(&mut known[output], true) {
            return Err(wrong("writes a tensor for the second time"));
        }
        if operator.code == Code::Dequantize {
            let from = operator.inputs.first().copied().flatten().ok_or_else(|| wrong("no input"))?;
            let Data::Numbers(numbers) = &model.tensors[from].data else {
                return Err(wrong("only constants are dequantised"));
            };
            if numbers.len() != model.tensors[output].count() {
                return Err(wrong("the shapes differ"));
            }
            model.tensors[output].data = Data::Numbers(numbers.clone());
            continue;
        }
        let (kind, inputs) =
            Maker { model, operator: &operator, output }.kind().map_err(|error| inside(error, &place))?;
        steps.push(Step { kind, inputs, output });
    }
    if let Some(output) = model.outputs.iter().find(|output| !known[**output]) {
        return Err(ParseError::new("outputs", format!("tensor {output} is never computed")));
    }
    Ok(steps)
}

struct Maker<'a> {
    model: &'a Model,
    operator: &'a Operator,
    output: usize,
}

fn wrong(problem: impl Into<String>) -> ParseError {
    ParseError::new("shapes", problem.into())
}

fn following(fused: Fused) -> Activation {
    match fused {
        Fused::None => Activation::None,
        Fused::Relu => Activation::Relu,
        Fused::Relu6 => Activation::Relu6,
    }
}

/// Length of an axis of the output, and zeros before it.
fn along(
    input: usize,
    window: usize,
    stride: usize,
    dilation: usize,
    padding: Padding,
) -> Option<(usize, usize)> {
    let reach = (window - 1) * dilation + 1;
    match padding {
        Padding::Valid => {
            Some(((input + stride).checked_sub(reach)? / stride, 0)).filter(|(count, _)| *count > 0)
        }
        Padding::Same => {
            let count = input.div_ceil(stride);
            let total = ((count - 1) * stride + reach).saturating_sub(input);
            Some((count, total / 2))
        }
    }
}

impl Maker<'_> {
    fn index(&self, place: usize) -> Result<usize, ParseError> {
        let input = self.operator.inputs.get(place).copied().flatten();
        input.ok_or_else(|| wrong(format!("input {place} is missing")))
    }

    fn tensor(&self, place: usize) -> Result<&Tensor, ParseError> {
        Ok(&self.model.tensors[self.index(place)?])
    }

    fn numbers(&self, place: usize) -> Result<&[f32], ParseError> {
        match &self.tensor(place)?.data {
            Data::Numbers(numbers) => Ok(numbers),
            _ => Err(wrong(format!("input {place} has to be a constant of numbers"))),
        }
    }

    fn integers(&self, place: usize) -> Result<&[i32], ParseError> {
        match &self.tensor(place)?.data {
            Data::Integers(integers) => Ok(integers),
            _ => Err(wrong(format!("input {place} has to be a constant of integers"))),
        }
    }

    fn out(&self) -> &Tensor {
        &self.model.tensors[self.output]
    }

    fn expect(&self, shape: &[usize]) -> Result<(), ParseError> {
        match self.out().shape == shape {
            true => Ok(()),
            false => Err(wrong(format!("the output has {shape:?}, the file says {:?}", self.out().shape))),
        }
    }

    /// Rows, columns and channels of an image.
    fn image(&self, place: usize) -> Result<[usize; 3], ParseError> {
        match self.tensor(place)?.shape[..] {
            [1, height, width, channels] => Ok([height, width, channels]),
            _ => Err(wrong(format!("input {place} is no single image"))),
        }
    }

    fn bias(&self, channels: usize) -> Result<Vec<f32>, ParseError> {
        if self.operator.inputs.get(2).copied().flatten().is_none() {
            return Ok(vec![0.0; channels]);
        }
        let bias = self.numbers(2)?;
        match bias.len() == channels {
            true => Ok(bias.to_vec()),
            false => Err(wrong(format!("{} biases for {channels} channels", bias.len()))),
        }
    }

    #[allow(clippy::type_complexity)]
    fn windowed(
        &self,
        input: [usize; 3],
        window: [usize; 2],
        how: &Window,
    ) -> Result<([usize; 2], [usize; 2]), ParseError> {
        let axis = |axis: usize| {
            along(input[axis], window[axis], how.stride[axis], how.dilation[axis], how.padding)
                .ok_or_else(|| wrong("the window is larger than the image"))
        };
        let ((rows, above), (columns, left)) = (axis(0)?, axis(1)?);
        Ok(([rows, columns], [above, left]))
    }

    fn kind(&self) -> Result<(Kind, Vec<usize>), ParseError> {
        let one = || Ok::<_, ParseError>(vec![self.index(0)?]);
        match &self.operator.code {
            Code::Convolution(how, fused) => Ok((self.convolution(how, *fused)?, one()?)),
            Code::Depthwise(how, fused) => Ok((self.depthwise(how, *fused)?, one()?)),
            Code::FullyConnected(fused) => Ok((self.fully_connected(*fused)?, one()?)),
            Code::MaxPool(how, window, fused) => {
                let input = self.image(0)?;
                let (output, before) = self.windowed(input, *window, how)?;
                self.expect(&[1, output[0], output[1], input[2]])?;
                let (stride, activation) = (how.stride, following(*fused));
                Ok((
                    Kind::MaxPool(MaxPool { input, output, window: *window, stride, before, activation }),
                    one()?,
                ))
            }
            Code::Binary(binary, fused) => self.binary(*binary, *fused),
            Code::Unary(unary) => {
                self.expect(&self.tensor(0)?.shape)?;
                let kind = match unary {
                    Unary::Relu => Kind::Activation(Activation::Relu),
                    Unary::Relu6 => Kind::Activation(Activation::Relu6),
                    other => Kind::Unary(*other),
                };
                Ok((kind, one()?))
            }
            Code::Prelu => {
                let shape = &self.tensor(0)?.shape;
                self.expect(shape)?;
                let slopes = self.numbers(1)?;
                if shape.last() != Some(&slopes.len()) {
                    return Err(wrong(format!("{} slopes for channels of {shape:?}", slopes.len())));
                }
                Ok((Kind::Activation(Activation::Prelu(slopes.to_vec())), one()?))
            }
            Code::Pad => Ok((Kind::Pad(self.pad()?), one()?)),
            Code::Concatenate(axis, fused) => self.concatenate(*axis, *fused),
            Code::Reshape => match self.tensor(0)?.count() == self.out().count() {
                true => Ok((Kind::Copy, one()?)),
                false => Err(wrong("the numbers of elements differ")),
            },
            Code::Transpose => Ok((self.transpose()?, one()?)),
            Code::Reduce { mean, keep } => Ok((Kind::Reduce(self.reduce(*mean, *keep)?), one()?)),
            Code::StridedSlice { begin_mask, end_mask, shrink_mask } => {
                Ok((self.slice(*begin_mask, *end_mask, *shrink_mask)?, one()?))
            }
            Code::Dequantize => unreachable!("folded before"),
        }
    }

    fn convolution(&self, how: &Window, fused: Fused) -> Result<Kind, ParseError> {
        let input = self.image(0)?;
        let [channels, rows, columns, depth] = self.tensor(1)?.shape[..] else {
            return Err(wrong("weights of four dimensions are wanted"));
        };
        if depth != input[2] {
            return Err(wrong(format!("weights for {depth} channels, the image has {}", input[2])));
        }
        let window = [rows, columns];
        let (output, before) = self.windowed(input, window, how)?;
        self.expect(&[1, output[0], output[1], channels])?;
        let (weights, bias) = (self.numbers(1)?, self.bias(channels)?);
        Ok(Kind::Convolution(Box::new(Convolution::new(
            input,
            output,
            window,
            how.stride,
            how.dilation,
            before,
            weights,
            &bias,
            following(fused),
        ))))
    }

    fn depthwise(&self, how: &Window, fused: Fused) -> Result<Kind, ParseError> {
        let input = self.image(0)?;
        let [1, rows, columns, channels] = self.tensor(1)?.shape[..] else {
            return Err(wrong("weights [1, rows, columns, channels] are wanted"));
        };
        if channels != input[2] {
            return Err(wrong("a depthwise convolution that makes channels more is not known"));
        }
        let window = [rows, columns];
        let (output, before) = self.windowed(input, window, how)?;
        self.expect(&[1, output[0], output[1], channels])?;
        Ok(Kind::Depthwise(Box::new(Depthwise {
            input,
            output,
            window,
            stride: how.stride,
            dilation: how.dilation,
            before,
            weights: self.numbers(1)?.to_vec(),
            bias: self.bias(channels)?,
            activation: following(fused),
        })))
    }

    /// A convolution of an image of single pixels.
    fn fully_connected(&self, fused: Fused) -> Result<Kind, ParseError> {
        let [channels, depth] = self.tensor(1)?.shape[..] else {
            return Err(wrong("weights of two dimensions are wanted"));
        };
        let count = self.tensor(0)?.count();
        if count % depth != 0 || self.out().count() != count / depth * channels {
            return Err(wrong(format!("{count} numbers for weights of {depth} × {channels}")));
        }
        let (rows, bias) = (count / depth, self.bias(channels)?);
        let plain = Convolution::new(
            [rows, 1, depth],
            [rows, 1],
            [1, 1],
            [1, 1],
            [1, 1],
            [0, 0],
            self.numbers(1)?,
            &bias,
            following(fused),
        );
        Ok(Kind::Convolution(Box::new(plain)))
    }

    fn binary(&self, binary: Binary, fused: Fused) -> Result<(Kind, Vec<usize>), ParseError> {
        let (a, b) = (&self.tensor(0)?.shape, &self.tensor(1)?.shape);
        for side in [0, 1] {
            if matches!(self.tensor(side)?.data, Data::Integers(_)) {
                return Err(wrong("integers are not computed with"));
            }
        }
        let dimensions = a.len().max(b.len());
        let size = |shape: &[usize], axis: usize| {
            (axis + shape.len()).checked_sub(dimensions).map_or(1, |axis| shape[axis])
        };
        let shape: Vec<usize> = (0..dimensions).map(|axis| size(a, axis).max(size(b, axis))).collect();
        self.expect(&shape)?;
        let made = Elementwise::new(binary, [a, b], &shape, following(fused));
        let made = made.ok_or_else(|| wrong(format!("{a:?} and {b:?} do not fit each other")))?;
        Ok((Kind::Elementwise(made), vec![self.index(0)?, self.index(1)?]))
    }

    fn pad(&self) -> Result<Pad, ParseError> {
        let shape = &self.tensor(0)?.shape;
        let list = self.integers(1)?;
        let around: Option<Vec<[usize; 2]>> = list
            .chunks_exact(2)
            .map(|pair| {
                let side = |x: i32| usize::try_from(x).ok().filter(|x| *x < 1 << 16);
                Some([side(pair[0])?, side(pair[1])?])
            })
            .collect();
        let around = around.filter(|around| around.len() == shape.len() && list.len() == 2 * shape.len());
        let around = around.ok_or_else(|| wrong(format!("zeros {list:?} around {shape:?}")))?;
        let padded: Vec<usize> = shape.iter().zip(&around).map(|(size, [a, b])| size + a + b).collect();
        self.expect(&padded)?;
        Pad::new(shape, &around).ok_or_else(|| wrong("too large"))
    }

    fn concatenate(&self, axis: i32, fused: Fused) -> Result<(Kind, Vec<usize>), ParseError> {
        if fused != Fused::None {
            return Err(wrong("an activation behind a concatenation is not known"));
        }
        let shape = &self.out().shape;
        let axis = if axis < 0 { axis + shape.len() as i32 } else { axis };
        let axis = usize::try_from(axis).ok().filter(|axis| *axis < shape.len());
        let axis = axis.ok_or_else(|| wrong("the axis does not exist"))?;
        let inner: usize = shape[axis + 1..].iter().product();
        let (mut parts, mut inputs, mut offset) = (Vec::new(), Vec::new(), 0);
        for place in 0..self.operator.inputs.len() {
            let own = &self.tensor(place)?.shape;
            let same = own.len() == shape.len()
                && own.iter().zip(shape).enumerate().all(|(at, (a, b))| at == axis || a == b);
            if !same {
                return Err(wrong(format!("{own:?} is no part of {shape:?}")));
            }
            parts.push(Part { part: own[axis] * inner, whole: shape[axis] * inner, offset: offset * inner });
            offset += own[axis];
            inputs.push(self.index(place)?);
        }
        match offset == shape[axis] {
            true => Ok((Kind::Concatenate(parts), inputs)),
            false => Err(wrong("the parts do not fill the whole")),
        }
    }

    fn transpose(&self) -> Result<Kind, ParseError> {
        let shape = &self.tensor(0)?.shape;
        let order: Option<Vec<usize>> = (self.integers(1)?.iter())
            .map(|axis| usize::try_from(*axis).ok().filter(|axis| *axis < shape.len()))
            .collect();
        let order = order
            .filter(|order| order.len() == shape.len() && (0..shape.len()).all(|axis| order.contains(&axis)));
        let order = order.ok_or_else(|| wrong("the order of axes is none"))?;
        let turned: Vec<usize> = order.iter().map(|axis| shape[*axis]).collect();
        self.expect(&turned)?;
        let strides = strides(shape);
        let steps: Vec<usize> = order.iter().map(|axis| strides[*axis]).collect();
        Ok(Kind::Gather(walk(&turned, &steps, 0)))
    }

    fn reduce(&self, mean: bool, keep: bool) -> Result<Reduce, ParseError> {
        let shape = &self.tensor(0)?.shape;
        let mut gone = vec![false; shape.len()];
        for axis in self.integers(1)? {
            let axis = if *axis < 0 { axis + shape.len() as i32 } else { *axis };
            let axis = usize::try_from(axis).ok().filter(|axis| *axis < shape.len());
            gone[axis.ok_or_else(|| wrong("the axis does not exist"))?] = true;
        }
        let kept: Vec<usize> = (shape.iter().zip(&gone))
            .filter_map(|(size, gone)| match (gone, keep) {
                (false, _) => Some(*size),
                (true, true) => Some(1),
                (true, false) => None,
            })
            .collect();
        self.expect(&kept)?;
        let mut steps = vec![0; shape.len()];
        let mut step = 1;
        for axis in (0..shape.len()).rev() {
            if !gone[axis] {
                steps[axis] = step;
                step *= shape[axis];
            }
        }
        let summands: usize =
            shape.iter().zip(&gone).filter(|(_, gone)| **gone).map(|(size, _)| size).product();
        let scale = if mean { 1.0 / summands as f32 } else { 1.0 };
        Ok(Reduce { places: walk(shape, &steps, 0), scale })
    }

    fn slice(&self, begin_mask: i32, end_mask: i32, shrink_mask: i32) -> Result<Kind, ParseError> {
        let shape = &self.tensor(0)?.shape;
        let [begins, ends, by] = [self.integers(1)?, self.integers(2)?, self.integers(3)?];
        if [begins, ends, by].iter().any(|list| list.len() != shape.len()) {
            return Err(wrong("a slice needs a range per axis"));
        }
        let strides = strides(shape);
        let (mut sizes, mut steps, mut kept, mut offset) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for axis in 0..shape.len() {
            let size = shape[axis] as i64;
            let bit = |mask: i32| mask >> axis & 1 == 1;
            let place = |at: i32| if at < 0 { i64::from(at) + size } else { i64::from(at) }.clamp(0, size);
            let shrunk = bit(shrink_mask);
            let first = if bit(begin_mask) && !shrunk { 0 } else { place(begins[axis]) };
            let last = match (shrunk, bit(end_mask)) {
                (true, _) => first + 1,
                (false, true) => size,
                (false, false) => place(ends[axis]),
            };
            let step = i64::from(by[axis]);
            if step < 1 || last <= first || last > size {
                return Err(wrong(format!("the range {first}..{last} by {step} of axis {axis} is not read")));
            }
            let count = ((last - first + step - 1) / step) as usize;
            sizes.push(count);
            steps.push(strides[axis] * step as usize);
            offset += strides[axis] * first as usize;
            if !shrunk {
                kept.push(count);
            }
        }
        self.expect(&kept)?;
        Ok(Kind::Gather(walk(&sizes, &steps, offset)))
    }
}

fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// Places of all elements of a tensor of these sizes and steps, in their order. They fit 32 bits: no tensor that is read has
/// more elements.
fn walk(sizes: &[usize], steps: &[usize], offset: usize) -> Vec<u32> {
    let mut places = vec![offset as u32];
    for (size, step) in sizes.iter().zip(steps) {
        places =
            places.iter().flat_map(|place| (0..*size).map(move |at| place + (at * step) as u32)).collect();
    }
    places
}
