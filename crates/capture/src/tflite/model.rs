//! What the tables of a TensorFlow Lite file say: tensors, constants, operators with their options. Field numbers are those of
//! the format's schema (version 3). Nothing is computed here.

use super::flatbuffer::{Bytes, Table};
use super::inside;
use understudy_io::ParseError;

/// Most numbers that one tensor may have: the nets of faces stay under a million.
const MOST_ELEMENTS: usize = 1 << 26;
/// Most dimensions.
const MOST_DIMENSIONS: usize = 6;

/// A tensor, constant or computed.
#[derive(Debug, Clone)]
pub(super) struct Tensor {
    pub name: String,
    pub shape: Vec<usize>,
    pub data: Data,
}

/// What a tensor holds before anything is computed.
#[derive(Debug, Clone)]
pub(super) enum Data {
    /// Nothing: it is computed.
    Computed,
    Numbers(Vec<f32>),
    Integers(Vec<i32>),
}

impl Tensor {
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }
}

/// An operator with the tensors that it reads and writes; -1 is an input that is left out.
#[derive(Debug, Clone)]
pub(super) struct Operator {
    pub code: Code,
    pub inputs: Vec<Option<usize>>,
    pub outputs: Vec<usize>,
}

/// How borders are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Padding {
    Same,
    Valid,
}

/// What follows an operator, at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fused {
    None,
    Relu,
    Relu6,
}

/// A window that is moved over an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub padding: Padding,
    pub stride: [usize; 2],
    pub dilation: [usize; 2],
}

/// Element by element, of two tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    SquaredDifference,
}

/// Element by element, of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unary {
    Logistic,
    Negate,
    SquareRoot,
    InverseSquareRoot,
    Relu,
    Relu6,
}

/// What an operator does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Code {
    Convolution(Window, Fused),
    Depthwise(Window, Fused),
    FullyConnected(Fused),
    MaxPool(Window, [usize; 2], Fused),
    Binary(Binary, Fused),
    Unary(Unary),
    Prelu,
    Pad,
    Concatenate(i32, Fused),
    Reshape,
    Transpose,
    Reduce { mean: bool, keep: bool },
    StridedSlice { begin_mask: i32, end_mask: i32, shrink_mask: i32 },
    Dequantize,
}

/// A model of one graph.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub tensors: Vec<Tensor>,
    pub operators: Vec<Operator>,
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
}

impl Model {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if bytes.len() < 8 || &bytes[4..8] != b"TFL3" {
            return Err(ParseError::new("byte 4", "is no TensorFlow Lite model"));
        }
        let root = Bytes(bytes).root()?;
        let buffers = root.tables(4)?;
        let codes = root.tables(1)?;
        let graphs = root.tables(2)?;
        let [graph] = &graphs[..] else {
            return Err(ParseError::new(
                "graphs",
                format!("{}; a model of one graph is wanted", graphs.len()),
            ));
        };
        let mut tensors = Vec::new();
        for (index, table) in graph.tables(0)?.iter().enumerate() {
            let name = format!("tensor {index} '{}'", table.text(3)?);
            tensors.push(tensor(table, &buffers, bytes, &name)?);
        }
        let mut operators = Vec::new();
        for (index, table) in graph.tables(3)?.iter().enumerate() {
            let place = format!("operator {index}");
            operators.push(operator(table, &codes, tensors.len()).map_err(|error| inside(error, &place))?);
        }
        let list = |field: usize, what: &str| -> Result<Vec<usize>, ParseError> {
            let known = |index: i32| usize::try_from(index).ok().filter(|index| *index < tensors.len());
            let list: Option<Vec<usize>> = graph.i32s(field)?.into_iter().map(known).collect();
            list.filter(|list| !list.is_empty())
                .ok_or_else(|| ParseError::new(what, "names no tensor, or one that does not exist"))
        };
        let (inputs, outputs) = (list(1, "inputs")?, list(2, "outputs")?);
        Ok(Self { tensors, operators, inputs, outputs })
    }
}

fn tensor(table: &Table, buffers: &[Table], file: &[u8], name: &str) -> Result<Tensor, ParseError> {
    let wrong = |problem: String| ParseError::new(name, problem);
    let shape = table.i32s(0)?;
    if shape.len() > MOST_DIMENSIONS {
        return Err(wrong(format!("{} dimensions", shape.len())));
    }
    let mut count = 1usize;
    let mut sizes = Vec::with_capacity(shape.len());
    for size in &shape {
        let size = usize::try_from(*size).ok().filter(|size| *size > 0);
        let size = size.ok_or_else(|| wrong(format!("shape {shape:?}")))?;
        count = count.checked_mul(size).filter(|count| *count <= MOST_ELEMENTS).ok_or_else(|| {
            wrong(format!("shape {shape:?} is larger than the {MOST_ELEMENTS} elements that are read"))
        })?;
        sizes.push(size);
    }
    if table.table(6)?.is_some() {
        return Err(wrong("is sparse, which is not read".into()));
    }
    let buffer = table.i32(2, 0)?;
    let buffer = usize::try_from(buffer).ok().and_then(|index| buffers.get(index));
    let buffer =
        buffer.ok_or_else(|| wrong(format!("buffer {} does not exist", table.i32(2, 0).unwrap_or(0))))?;
    let mut data = buffer.bytes(0)?;
    if data.is_empty() {
        // Large models keep their constants behind the tables.
        let (offset, size) = (buffer.u64(1, 0)?, buffer.u64(2, 0)?);
        if offset > 1 {
            let range = usize::try_from(offset).ok().zip(usize::try_from(size).ok());
            data = range
                .and_then(|(offset, size)| file.get(offset..offset.checked_add(size)?))
                .ok_or_else(|| wrong("its constants lie outside the file".into()))?;
        }
    }
    // 0 float32, 1 float16, 2 int32, as the schema numbers them.
    let kind = table.i8(1, 0)?;
    let width = match kind {
        0 | 2 => 4,
        1 => 2,
        other => {
            let problem =
                format!("type {other} is not read: float32, float16 and int32 are (no quantised models)");
            return Err(wrong(problem));
        }
    };
    let data = if data.is_empty() {
        Data::Computed
    } else if data.len() != count * width {
        return Err(wrong(format!("{} bytes for {count} elements of {width}", data.len())));
    } else if kind == 2 {
        Data::Integers(data.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    } else {
        let numbers: Vec<f32> = match kind {
            0 => data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
            _ => data.chunks_exact(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
        };
        if let Some(place) = numbers.iter().position(|x| !x.is_finite()) {
            return Err(wrong(format!("the constant at {place} is not finite")));
        }
        Data::Numbers(numbers)
    };
    Ok(Tensor { name: table.text(3)?.to_owned(), shape: sizes, data })
}

fn operator(table: &Table, codes: &[Table], tensors: usize) -> Result<Operator, ParseError> {
    let index = table.i32(0, 0)?;
    let code = usize::try_from(index).ok().and_then(|index| codes.get(index));
    let code = code.ok_or_else(|| ParseError::new("code", format!("{index} does not exist")))?;
    let number = i32::from(code.i8(0, 0)?).max(code.i32(3, 0)?);
    if number == 32 {
        let problem = format!("'{}' is a custom operator, which is not known", code.text(1)?);
        return Err(ParseError::new("code", problem));
    }
    let known = |index: &i32| usize::try_from(*index).ok().filter(|index| *index < tensors);
    let stranger = || ParseError::new("tensors", "one that does not exist is named");
    let inputs: Option<Vec<Option<usize>>> = (table.i32s(1)?.iter())
        .map(|index| if *index == -1 { Some(None) } else { known(index).map(Some) })
        .collect();
    let outputs: Option<Vec<usize>> = table.i32s(2)?.iter().map(known).collect();
    let (inputs, outputs) = (inputs.ok_or_else(stranger)?, outputs.ok_or_else(stranger)?);
    let code = code_of(number, table.table(4)?)?;
    Ok(Operator { code, inputs, outputs })
}

fn fused(number: i8) -> Result<Fused, ParseError> {
    match number {
        0 => Ok(Fused::None),
        1 => Ok(Fused::Relu),
        3 => Ok(Fused::Relu6),
        other => Err(ParseError::new("activation", format!("{other} is not known"))),
    }
}

fn code_of(number: i32, options: Option<Table>) -> Result<Code, ParseError> {
    // An operator without options has the defaults of the schema: zeros.
    let byte = |index: usize| options.as_ref().map_or(Ok(0), |table| table.i8(index, 0));
    let int = |index: usize| options.as_ref().map_or(Ok(0), |table| table.i32(index, 0));
    let positive = |value: i32, what: &str| {
        usize::try_from(value)
            .ok()
            .filter(|value| (1..=1 << 12).contains(value))
            .ok_or_else(|| ParseError::new(what, format!("{value} makes no sense")))
    };
    let dilation = |index: usize| options.as_ref().map_or(Ok(1), |table| table.i32(index, 1));
    let window = |dilations: Option<usize>| -> Result<Window, ParseError> {
        let padding = match byte(0)? {
            0 => Padding::Same,
            1 => Padding::Valid,
            other => return Err(ParseError::new("padding", format!("{other} is not known"))),
        };
        let stride = [positive(int(2)?, "stride")?, positive(int(1)?, "stride")?];
        let dilation = match dilations {
            Some(at) => [positive(dilation(at + 1)?, "dilation")?, positive(dilation(at)?, "dilation")?],
            None => [1, 1],
        };
        Ok(Window { padding, stride, dilation })
    };
    Ok(match number {
        0 => Code::Binary(Binary::Add, fused(byte(0)?)?),
        2 => Code::Concatenate(int(0)?, fused(byte(1)?)?),
        3 => Code::Convolution(window(Some(4))?, fused(byte(3)?)?),
        4 => Code::Depthwise(window(Some(5))?, fused(byte(4)?)?),
        6 => Code::Dequantize,
        9 => Code::FullyConnected(fused(byte(0)?)?),
        14 => Code::Unary(Unary::Logistic),
        17 => {
            let size = [positive(int(4)?, "window")?, positive(int(3)?, "window")?];
            Code::MaxPool(window(None)?, size, fused(byte(5)?)?)
        }
        18 => Code::Binary(Binary::Multiply, fused(byte(0)?)?),
        19 => Code::Unary(Unary::Relu),
        21 => Code::Unary(Unary::Relu6),
        22 => Code::Reshape,
        34 => Code::Pad,
        39 => Code::Transpose,
        40 => Code::Reduce { mean: true, keep: byte(0)? != 0 },
        41 => Code::Binary(Binary::Subtract, fused(byte(0)?)?),
        42 => Code::Binary(Binary::Divide, fused(byte(0)?)?),
        45 => {
            if int(2)? != 0 || int(3)? != 0 {
                return Err(ParseError::new("strided slice", "new axes and ellipses are not known"));
            }
            Code::StridedSlice { begin_mask: int(0)?, end_mask: int(1)?, shrink_mask: int(4)? }
        }
        54 => Code::Prelu,
        59 => Code::Unary(Unary::Negate),
        74 => Code::Reduce { mean: false, keep: byte(0)? != 0 },
        75 => Code::Unary(Unary::SquareRoot),
        76 => Code::Unary(Unary::InverseSquareRoot),
        99 => Code::Binary(Binary::SquaredDifference, Fused::None),
        other => return Err(ParseError::new("code", format!("operator {other} is not known"))),
    })
}
