//! ONNX models, written: a graph of operators and constants in protocol-buffer wire format. Made for exporting
//! twins; start at [`Graph`]. The few messages that we need are encoded by hand, which is shorter than the code
//! that a schema compiler makes. What a model says of itself is read in [`description`].

pub mod description;

/// Element types that we write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElementType {
    Float = 1,
    Int64 = 7,
}

/// The operator set that the graphs are written for; every current runtime has it.
const OPERATOR_SET: u64 = 17;
/// The file format version that goes with it.
const IR_VERSION: u64 = 8;

/// Protocol-buffer fields, appended one after another.
#[derive(Debug, Clone, Default, PartialEq)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn integer(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn float(&mut self, field: u64, value: f32) {
        self.varint(field << 3 | 5);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }
}

/// A value in a graph: an input, a constant or the result of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value(String);

/// An attribute of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute<'a> {
    /// A whole number.
    Integer(&'a str, i64),
    /// Whole numbers.
    Integers(&'a str, &'a [i64]),
    /// A number.
    Float(&'a str, f32),
    /// A word, such as a mode.
    Text(&'a str, &'a str),
}

/// A graph under construction. Values are named in order, so the same calls give the same bytes.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Message,
    constants: Message,
    inputs: Message,
    outputs: Message,
    metadata: Message,
    count: usize,
}

impl Graph {
    /// Declares an input of f32 numbers.
    pub fn input(&mut self, name: &str, shape: &[usize]) -> Value {
        self.inputs.message(11, &value_info(name, shape));
        Value(name.into())
    }

    /// Declares a value as an output of f32 numbers under a name of its own.
    pub fn output(&mut self, name: &str, value: &Value, shape: &[usize]) {
        self.node_into(name, "Identity", &[value], &[]);
        self.outputs.message(12, &value_info(name, shape));
    }

    /// A note for whoever loads the model, such as the names of what its inputs hold.
    pub fn metadata(&mut self, key: &str, value: &str) {
        let mut entry = Message::default();
        entry.bytes(1, key.as_bytes());
        entry.bytes(2, value.as_bytes());
        self.metadata.message(14, &entry);
    }

    /// A constant array of f32.
    ///
    /// # Panics
    /// When the numbers do not fill the shape.
    pub fn floats(&mut self, shape: &[usize], numbers: &[f32]) -> Value {
        let bytes = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.constant(ElementType::Float, shape, numbers.len(), bytes)
    }

    /// A constant array of whole numbers.
    ///
    /// # Panics
    /// When the numbers do not fill the shape.
    pub fn integers(&mut self, shape: &[usize], numbers: &[i64]) -> Value {
        let bytes = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.constant(ElementType::Int64, shape, numbers.len(), bytes)
    }

    fn constant(&mut self, element: ElementType, shape: &[usize], count: usize, bytes: Vec<u8>) -> Value {
        assert_eq!(shape.iter().product::<usize>(), count, "the numbers fill the shape");
        let value = self.fresh();
        let mut tensor = Message::default();
        for &size in shape {
            tensor.integer(1, size as u64);
        }
        tensor.integer(2, element as u64);
        tensor.bytes(8, value.0.as_bytes());
        tensor.bytes(9, &bytes);
        self.constants.message(5, &tensor);
        value
    }

    /// Adds a node with one result.
    pub fn node(&mut self, operator: &str, inputs: &[&Value], attributes: &[Attribute<'_>]) -> Value {
        let value = self.fresh();
        self.node_into(&value.0, operator, inputs, attributes);
        value
    }

    fn node_into(&mut self, output: &str, operator: &str, inputs: &[&Value], attributes: &[Attribute<'_>]) {
        let mut node = Message::default();
        for input in inputs {
            node.bytes(1, input.0.as_bytes());
        }
        node.bytes(2, output.as_bytes());
        node.bytes(4, operator.as_bytes());
        for attribute in attributes {
            let mut message = Message::default();
            match attribute {
                Attribute::Integer(name, value) => {
                    message.bytes(1, name.as_bytes());
                    message.integer(3, *value as u64);
                    message.integer(20, 2);
                }
                Attribute::Integers(name, values) => {
                    message.bytes(1, name.as_bytes());
                    values.iter().for_each(|value| message.integer(8, *value as u64));
                    message.integer(20, 7);
                }
                Attribute::Float(name, value) => {
                    message.bytes(1, name.as_bytes());
                    message.float(2, *value);
                    message.integer(20, 1);
                }
                Attribute::Text(name, value) => {
                    message.bytes(1, name.as_bytes());
                    message.bytes(4, value.as_bytes());
                    message.integer(20, 3);
                }
            }
            node.message(5, &message);
        }
        self.nodes.message(1, &node);
    }

    fn fresh(&mut self) -> Value {
        self.count += 1;
        Value(format!("v{}", self.count))
    }

    /// The bytes of a model file.
    pub fn to_bytes(&self, name: &str) -> Vec<u8> {
        let mut graph = Message::default();
        graph.0.extend_from_slice(&self.nodes.0);
        graph.bytes(2, name.as_bytes());
        for part in [&self.constants, &self.inputs, &self.outputs] {
            graph.0.extend_from_slice(&part.0);
        }
        let mut set = Message::default();
        set.bytes(1, b"");
        set.integer(2, OPERATOR_SET);
        let mut model = Message::default();
        model.integer(1, IR_VERSION);
        model.bytes(2, b"understudy");
        model.bytes(3, env!("CARGO_PKG_VERSION").as_bytes());
        model.message(7, &graph);
        model.message(8, &set);
        model.0.extend_from_slice(&self.metadata.0);
        model.0
    }
}

fn value_info(name: &str, shape: &[usize]) -> Message {
    let mut dimensions = Message::default();
    for &size in shape {
        let mut dimension = Message::default();
        dimension.integer(1, size as u64);
        dimensions.message(1, &dimension);
    }
    let mut tensor = Message::default();
    tensor.integer(1, ElementType::Float as u64);
    tensor.message(2, &dimensions);
    let mut kind = Message::default();
    kind.message(1, &tensor);
    let mut info = Message::default();
    info.bytes(1, name.as_bytes());
    info.message(2, &kind);
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_encoded_as_the_wire_format_says() {
        let mut message = Message::default();
        message.integer(1, 300);
        message.bytes(2, b"ab");
        assert_eq!(message.0, [0x08, 0xac, 0x02, 0x12, 0x02, b'a', b'b']);
        let mut float = Message::default();
        float.float(2, 1.0);
        assert_eq!(float.0, [0x15, 0, 0, 0x80, 0x3f]);
        let mut negative = Message::default();
        negative.integer(3, -1i64 as u64);
        assert_eq!(negative.0.len(), 1 + 10);
    }

    #[test]
    fn the_same_calls_give_the_same_bytes() {
        let build = || {
            let mut graph = Graph::default();
            let x = graph.input("x", &[2, 3]);
            let w = graph.floats(&[3, 1], &[1.0, 2.0, 3.0]);
            let y = graph.node("MatMul", &[&x, &w], &[]);
            graph.output("y", &y, &[2, 1]);
            graph.to_bytes("test")
        };
        assert_eq!(build(), build());
    }
}
