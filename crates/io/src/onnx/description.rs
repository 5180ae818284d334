//! What an ONNX model says of itself: producer, inputs, outputs, notes. Reads any model's header, but neither
//! operators nor weights. Start at [`read`].

use crate::{ParseError, ReadError, read_bytes};
use std::collections::BTreeMap;
use std::path::Path;

/// A model without its numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// The program that wrote it, and its version.
    pub producer: String,
    /// Version of the standard operators; 0 where the model names none.
    pub operator_set: u64,
    /// Operators in the graph.
    pub nodes: usize,
    /// What goes in.
    pub inputs: Vec<Port>,
    /// What comes out.
    pub outputs: Vec<Port>,
    /// Notes of the producer by key.
    pub metadata: BTreeMap<String, String>,
}

/// An input or output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Lengths of its axes: a number, a name where the length is open, `?` where nothing is said.
    pub shape: Vec<String>,
}

/// Reads a file.
pub fn read(path: &Path) -> Result<Description, ReadError> {
    parse(&read_bytes(path)?).map_err(ReadError::content(path))
}

/// Reads from memory. The work is bounded by the number of bytes.
pub fn parse(bytes: &[u8]) -> Result<Description, ParseError> {
    let mut out = Description::default();
    let mut version = String::new();
    let mut graphs = 0;
    for field in Fields::new(bytes, "model") {
        match field? {
            Field { number: 2, value: Value::Bytes(text), place } => out.producer = word(text, &place)?,
            Field { number: 3, value: Value::Bytes(text), place } => version = word(text, &place)?,
            Field { number: 7, value: Value::Bytes(graph), place } => {
                graphs += 1;
                read_graph(graph, &place, &mut out)?;
            }
            Field { number: 8, value: Value::Bytes(set), place } => {
                let (mut domain, mut number) = (String::new(), 0);
                for field in Fields::new(set, &place) {
                    match field? {
                        Field { number: 1, value: Value::Bytes(text), place } => domain = word(text, &place)?,
                        Field { number: 2, value: Value::Integer(value), .. } => number = value,
                        _ => {}
                    }
                }
                if domain.is_empty() {
                    out.operator_set = number;
                }
            }
            Field { number: 14, value: Value::Bytes(entry), place } => {
                let (mut key, mut value) = (String::new(), String::new());
                for field in Fields::new(entry, &place) {
                    match field? {
                        Field { number: 1, value: Value::Bytes(text), place } => key = word(text, &place)?,
                        Field { number: 2, value: Value::Bytes(text), place } => value = word(text, &place)?,
                        _ => {}
                    }
                }
                out.metadata.insert(key, value);
            }
            _ => {}
        }
    }
    if graphs != 1 {
        return Err(ParseError::new("model", format!("{graphs} graphs instead of one: not an ONNX model")));
    }
    if !version.is_empty() {
        out.producer = format!("{} {version}", out.producer).trim().to_owned();
    }
    Ok(out)
}

fn read_graph(bytes: &[u8], place: &str, out: &mut Description) -> Result<(), ParseError> {
    let mut constants = std::collections::BTreeSet::new();
    for field in Fields::new(bytes, place) {
        match field? {
            Field { number: 1, value: Value::Bytes(_), .. } => out.nodes += 1,
            Field { number: 5, value: Value::Bytes(tensor), place } => {
                for field in Fields::new(tensor, &place) {
                    if let Field { number: 8, value: Value::Bytes(text), place } = field? {
                        constants.insert(word(text, &place)?);
                    }
                }
            }
            Field { number: 11, value: Value::Bytes(info), place } => out.inputs.push(port(info, &place)?),
            Field { number: 12, value: Value::Bytes(info), place } => out.outputs.push(port(info, &place)?),
            _ => {}
        }
    }
    // Old models list their constants among the inputs.
    out.inputs.retain(|input| !constants.contains(&input.name));
    Ok(())
}

fn port(bytes: &[u8], place: &str) -> Result<Port, ParseError> {
    let mut out = Port::default();
    for field in Fields::new(bytes, place) {
        match field? {
            Field { number: 1, value: Value::Bytes(text), place } => out.name = word(text, &place)?,
            Field { number: 2, value: Value::Bytes(kind), place } => {
                for field in Fields::new(kind, &place) {
                    let Field { number: 1, value: Value::Bytes(tensor), place } = field? else { continue };
                    for field in Fields::new(tensor, &place) {
                        let Field { number: 2, value: Value::Bytes(shape), place } = field? else { continue };
                        out.shape = axes(shape, &place)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(out)
}

fn axes(bytes: &[u8], place: &str) -> Result<Vec<String>, ParseError> {
    let mut out = Vec::new();
    for field in Fields::new(bytes, place) {
        let Field { number: 1, value: Value::Bytes(axis), place } = field? else { continue };
        let mut length = "?".to_owned();
        for field in Fields::new(axis, &place) {
            match field? {
                Field { number: 1, value: Value::Integer(value), .. } => length = (value as i64).to_string(),
                Field { number: 2, value: Value::Bytes(text), place } => length = word(text, &place)?,
                _ => {}
            }
        }
        out.push(length);
    }
    Ok(out)
}

fn word(bytes: &[u8], place: &str) -> Result<String, ParseError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ParseError::new(place, "is not UTF-8"))?;
    Ok(text.to_owned())
}

/// One field of a message.
struct Field<'a> {
    number: u64,
    value: Value<'a>,
    /// For messages: the field's message and number.
    place: String,
}

enum Value<'a> {
    Integer(u64),
    Bytes(&'a [u8]),
    /// A number of four or eight bytes, which we never need.
    Fixed,
}

/// The fields of a message in protocol-buffer wire format, one after another. Ends after the first error.
struct Fields<'a> {
    rest: &'a [u8],
    place: &'a str,
}

impl<'a> Fields<'a> {
    fn new(bytes: &'a [u8], place: &'a str) -> Self {
        Self { rest: bytes, place }
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(count).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    fn field(&mut self) -> Option<Field<'a>> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Integer(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return None,
        };
        let number = key >> 3;
        (number > 0).then(|| Field { number, value, place: format!("{} field {number}", self.place) })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let left = self.rest.len();
        let field = self.field();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or_else(|| {
            ParseError::new(
                self.place,
                format!("cannot be read {left} bytes before its end: not an ONNX model"),
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::Graph;

    fn model() -> Vec<u8> {
        let mut graph = Graph::default();
        let x = graph.input("bones", &[2, 3, 4]);
        let one = graph.floats(&[1], &[1.0]);
        let y = graph.node("Add", &[&x, &one], &[]);
        graph.output("vertices", &y, &[2, 3, 4]);
        graph.metadata("understudy.bones", r#"["hip","left, knee"]"#);
        graph.to_bytes("test")
    }

    #[test]
    fn what_was_written_is_read() {
        let found = parse(&model()).expect("our own model");
        let port = |name: &str| Port { name: name.into(), shape: ["2", "3", "4"].map(String::from).to_vec() };
        assert_eq!((found.inputs, found.outputs), (vec![port("bones")], vec![port("vertices")]));
        assert_eq!((found.nodes, found.operator_set), (2, 17));
        assert!(found.producer.starts_with("understudy "), "{}", found.producer);
        assert_eq!(found.metadata["understudy.bones"], r#"["hip","left, knee"]"#);
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let whole = model();
        for end in 0..whole.len() {
            // Some cuts leave a shorter model; none may panic.
            let _ = parse(&whole[..end]);
        }
        for place in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[place] ^= 1 << bit;
                let _ = parse(&bytes);
            }
        }
        assert!(parse(b"").is_err() && parse(b"solid cube").is_err());
        // A length that exceeds the address space.
        assert!(parse(&[0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]).is_err());
    }
}
