//! One `.npy` array: the header (a Python literal, of which we accept exactly what NumPy writes) and
//! the elements, checked against the bytes that are really there before anything is allocated.
//! The crate `npyz` would be larger: it brings a parser generator for all of Python's literals.

use crate::arrays::element_count;

/// What an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Float,
    Signed,
    Unsigned,
    Bool,
    Unicode,
}

/// The parsed header of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: Kind,
    /// Bytes of an element (of a character for [`Kind::Unicode`]: always 4).
    pub width: usize,
    /// Characters a string; 1 for numbers.
    pub length: usize,
    pub big_endian: bool,
    pub fortran: bool,
    pub shape: Vec<usize>,
    /// Where the elements start.
    pub start: usize,
    /// As the file writes it, for messages.
    pub descr: String,
}

/// The longest header that is read: NumPy's own limit for safe loading.
pub(crate) const MAX_HEADER: usize = 10_000;
const MAGIC: &[u8] = b"\x93NUMPY";

impl Header {
    /// Parses the start of a member of `total` bytes; `prefix` holds its first [`MAX_HEADER`] bytes.
    pub fn parse(prefix: &[u8], total: usize) -> Result<Self, String> {
        let version =
            prefix.get(..8).filter(|start| start.starts_with(MAGIC)).ok_or("is not a .npy array")?;
        let (size, text_start) = match version[6] {
            1 => (prefix.get(8..10).map(|b| usize::from(u16::from_le_bytes([b[0], b[1]]))), 10),
            2 | 3 => (prefix.get(8..12).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize), 12),
            other => return Err(format!("has .npy version {other}; 1 to 3 are known")),
        };
        let start = size.ok_or("has a truncated header")?.saturating_add(text_start);
        let text = prefix.get(text_start..start).ok_or("has a truncated or oversized header")?;
        let text = std::str::from_utf8(text).map_err(|_| "has a header that is not text")?;
        let mut header = Self::parse_dictionary(text)?;
        header.start = start;
        let want = header.byte_count().ok_or_else(|| format!("shape {:?} is too large", header.shape))?;
        if header.length == 0 && header.element_count() != 0 {
            return Err("has strings of no characters".into());
        }
        let got = total.saturating_sub(start);
        if got != want {
            return Err(format!("shape {:?} needs {want} bytes, {got} present", header.shape));
        }
        Ok(header)
    }

    fn parse_dictionary(text: &str) -> Result<Self, String> {
        let mut words = Words { rest: text };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        words.expect('{')?;
        while !words.accept('}') {
            let key = words.string()?;
            words.expect(':')?;
            match key {
                "descr" => descr = Some(words.string()?),
                "fortran_order" => fortran = Some(words.boolean()?),
                "shape" => shape = Some(words.shape()?),
                other => return Err(format!("has an unknown header key '{other}'")),
            }
            if !words.accept(',') && !words.rest.starts_with('}') {
                return Err("has a damaged header".into());
            }
        }
        if !words.rest.trim().is_empty() {
            return Err("has a damaged header".into());
        }
        let missing = |key: &str| format!("has no '{key}' in its header");
        let descr = descr.ok_or_else(|| missing("descr"))?;
        let (kind, width, length, big_endian) = element(descr)?;
        Ok(Self {
            kind,
            width,
            length,
            big_endian,
            fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
            start: 0,
            descr: descr.into(),
        })
    }

    fn byte_count(&self) -> Option<usize> {
        element_count(&self.shape)?.checked_mul(self.width)?.checked_mul(self.length)
    }

    /// The number of elements.
    pub fn element_count(&self) -> usize {
        self.shape.iter().product()
    }

    /// For every element in C order, its place in the file.
    pub fn order(&self) -> Vec<usize> {
        let count = self.element_count();
        if !self.fortran || self.shape.len() < 2 {
            return (0..count).collect();
        }
        let mut strides = vec![1usize; self.shape.len()];
        for axis in 1..self.shape.len() {
            strides[axis] = strides[axis - 1] * self.shape[axis - 1];
        }
        let mut index = vec![0usize; self.shape.len()];
        let mut out = Vec::with_capacity(count);
        for _ in 0..count {
            out.push(index.iter().zip(&strides).map(|(i, stride)| i * stride).sum());
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                if index[axis] < self.shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
        out
    }
}

/// `<f4`, `|b1`, `>i8`, `<U19`: kind, bytes an element, characters, byte order.
fn element(descr: &str) -> Result<(Kind, usize, usize, bool), String> {
    let refuse = || format!("has elements of type '{descr}'; numbers, booleans and '<U' strings are read");
    let (order, rest) = descr.split_at_checked(1).ok_or_else(refuse)?;
    let (letter, digits) = rest.split_at_checked(1).ok_or_else(refuse)?;
    let digits_alone = !digits.is_empty() && digits.len() <= 9 && digits.bytes().all(|b| b.is_ascii_digit());
    let number: usize =
        if digits_alone { digits.parse().map_err(|_| refuse())? } else { return Err(refuse()) };
    let big_endian = match order {
        "<" | "|" | "=" => false,
        ">" => true,
        _ => return Err(refuse()),
    };
    match (letter, number) {
        ("f", 2 | 4 | 8) => Ok((Kind::Float, number, 1, big_endian)),
        ("i", 1 | 2 | 4 | 8) => Ok((Kind::Signed, number, 1, big_endian)),
        ("u", 1 | 2 | 4 | 8) => Ok((Kind::Unsigned, number, 1, big_endian)),
        ("b", 1) => Ok((Kind::Bool, 1, 1, big_endian)),
        ("U", _) => Ok((Kind::Unicode, 4, number, big_endian)),
        _ => Err(refuse()),
    }
}

/// The few words of Python that a header is made of.
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn accept(&mut self, word: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, word: char) -> Result<(), String> {
        if self.accept(word) { Ok(()) } else { Err(format!("has a damaged header ('{word}' expected)")) }
    }

    fn string(&mut self) -> Result<&'a str, String> {
        self.rest = self.rest.trim_start();
        let quote = self.rest.chars().next().filter(|c| *c == '\'' || *c == '"');
        let quote = quote.ok_or("has a header or an element type that is not a simple string")?;
        let inner = &self.rest[1..];
        let end = inner.find(quote).ok_or("has a damaged header (an open string)")?;
        self.rest = inner[end + 1..].trim_start();
        Ok(&inner[..end])
    }

    fn boolean(&mut self) -> Result<bool, String> {
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.trim_start().strip_prefix(word) {
                self.rest = rest.trim_start();
                return Ok(value);
            }
        }
        Err("has a damaged header (True or False expected)".into())
    }

    fn shape(&mut self) -> Result<Vec<usize>, String> {
        const MAX_AXES: usize = 32;
        self.expect('(')?;
        let mut shape = Vec::new();
        while !self.accept(')') {
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            let side = self.rest[..digits].parse().map_err(|_| "has a damaged shape in its header")?;
            shape.push(side);
            self.rest = self.rest[digits..].trim_start();
            if shape.len() > MAX_AXES || (!self.accept(',') && !self.rest.starts_with(')')) {
                return Err("has a damaged shape in its header".into());
            }
        }
        Ok(shape)
    }
}

/// The header NumPy would write for a C-ordered array, padded so that elements start at a multiple
/// of 64.
pub(crate) fn write_header(descr: &str, shape: &[usize]) -> Vec<u8> {
    let sides: String = match shape {
        [one] => format!("{one},"),
        many => many.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sides}), }}");
    let unpadded = MAGIC.len() + 4 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    let mut out = MAGIC.to_vec();
    out.extend([1, 0]);
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dictionary(text: &str) -> Result<Header, String> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        let total = bytes.len() + 24;
        Header::parse(&bytes, total)
    }

    #[test]
    fn headers_are_checked_against_the_bytes() {
        let good = dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }").expect("valid");
        assert_eq!((good.kind, good.width, good.shape.as_slice()), (Kind::Float, 4, &[2, 3][..]));
        for (text, part) in [
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }", "needs 32 bytes, 24 present"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }", "too large"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9999999999, 9999999999), }", "too large"),
            ("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", "type '|O'"),
            ("{'descr': '<U0', 'fortran_order': False, 'shape': (999999999999,), }", "no characters"),
            ("{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }", "type '<c8'"),
            ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", "not a simple string"),
            ("{'descr': '<f4', 'shape': (6,), }", "no 'fortran_order'"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (-6,), }", "damaged shape"),
            ("((((((((((((", "damaged"),
        ] {
            let problem = dictionary(text).expect_err(text);
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }

    #[test]
    fn fortran_order_is_turned() {
        let header = dictionary("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }").expect("valid");
        assert_eq!(header.order(), [0, 2, 4, 1, 3, 5]);
    }

    #[test]
    fn written_headers_are_read() {
        for shape in [&[][..], &[6], &[2, 3], &[1, 2, 3]] {
            let header = write_header("<f4", shape);
            assert_eq!(header.len() % 64, 0);
            let total = header.len() + shape.iter().product::<usize>() * 4;
            assert_eq!(Header::parse(&header, total).expect("valid").shape, shape);
        }
    }
}
