//! Samples as numbers, whatever width a file stores them in.

use super::archive::{Archive, Element, Holds, KEY, Property};
use crate::ParseError;
use half::f16;

impl Archive {
    /// All numbers of a sample in double precision, appended.
    fn decode(
        &self,
        property: &Property,
        sample: u32,
        bytes: &mut Vec<u8>,
        mut push: impl FnMut(f64),
    ) -> Result<(), ParseError> {
        let data = self.sample(property, sample)?;
        self.container.read_into(data, KEY, bytes)?;
        let size = property.element.size() as usize;
        if size == 0 || !bytes.len().is_multiple_of(size) {
            let problem = format!("{} bytes are no whole number of values", bytes.len());
            return Err(ParseError::new(format!("property '{}': sample {sample}", property.name), problem));
        }
        macro_rules! each {
            ($kind:ty) => {
                bytes.as_chunks().0.iter().for_each(|chunk| push(<$kind>::from_le_bytes(*chunk) as f64))
            };
        }
        match property.element {
            Element::Bool | Element::U8 => each!(u8),
            Element::I8 => each!(i8),
            Element::U16 => each!(u16),
            Element::I16 => each!(i16),
            Element::U32 => each!(u32),
            Element::I32 => each!(i32),
            Element::U64 => each!(u64),
            Element::I64 => each!(i64),
            Element::F16 => {
                bytes.as_chunks().0.iter().for_each(|chunk| push(f16::from_le_bytes(*chunk).to_f64()));
            }
            Element::F32 => each!(f32),
            Element::F64 => each!(f64),
            Element::Text => {}
        }
        Ok(())
    }

    /// Numbers of a sample in single precision, through memory that is used again; `out` is replaced.
    pub fn floats_into(
        &self,
        property: &Property,
        sample: u32,
        bytes: &mut Vec<u8>,
        out: &mut Vec<f32>,
    ) -> Result<(), ParseError> {
        out.clear();
        self.decode(property, sample, bytes, |number| out.push(number as f32))
    }

    /// Numbers of a sample in double precision.
    pub fn doubles(&self, property: &Property, sample: u32) -> Result<Vec<f64>, ParseError> {
        let mut out = Vec::new();
        self.decode(property, sample, &mut Vec::new(), |number| out.push(number))?;
        Ok(out)
    }

    /// Indices of a sample: whole numbers from 0 up.
    pub fn indices(&self, property: &Property, sample: u32, path: &str) -> Result<Vec<u32>, ParseError> {
        let place = format!("{path}: property '{}'", property.name);
        let whole = !matches!(property.element, Element::F16 | Element::F32 | Element::F64 | Element::Text);
        if property.holds != Holds::Array || property.extent != 1 || !whole {
            return Err(ParseError::new(place, "is no array of whole numbers"));
        }
        self.charge(&place, 16 * self.numbers(property, sample)?)?;
        let mut out = Vec::new();
        let mut bad = None;
        self.decode(property, sample, &mut Vec::new(), |number| {
            if !(0.0..=f64::from(i32::MAX)).contains(&number) {
                bad = bad.or(Some(number));
            }
            out.push(number as u32);
        })?;
        match bad {
            None => Ok(out),
            Some(number) => Err(ParseError::new(place, format!("{number} is no index"))),
        }
    }
}
