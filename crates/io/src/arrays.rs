//! Arrays with shapes, and what a caller expects of them: shared by the npz and the safetensors reader
//! so that both complain in the same words.

use crate::ParseError;
use std::fmt;

/// What one axis of an array must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dim {
    /// Any length; the letter stands in the message.
    Any(&'static str),
    /// This length.
    Exactly(usize),
    /// One of two lengths.
    Either(usize, usize),
}

impl Dim {
    fn fits(&self, side: usize) -> bool {
        match *self {
            Self::Any(_) => true,
            Self::Exactly(want) => side == want,
            Self::Either(one, other) => side == one || side == other,
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(letter) => f.write_str(letter),
            Self::Exactly(side) => write!(f, "{side}"),
            Self::Either(one, other) => write!(f, "{one} or {other}"),
        }
    }
}

/// Elements in C order (the last axis runs fastest) with their shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Array<T> {
    /// Lengths of the axes.
    pub shape: Vec<usize>,
    /// All elements.
    pub data: Vec<T>,
}

/// A problem with the array of that name.
pub(crate) fn in_array(name: &str, problem: impl ToString) -> ParseError {
    ParseError::new(format!("array '{name}'"), problem)
}

/// Whether a shape fits a pattern: `array 'deltas': shape [3,10,2], expected [m,n,3]`.
pub(crate) fn check_shape(name: &str, shape: &[usize], want: &[Dim]) -> Result<(), ParseError> {
    if shape.len() == want.len() && shape.iter().zip(want).all(|(side, dim)| dim.fits(*side)) {
        return Ok(());
    }
    let got = shape.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let want = want.iter().map(Dim::to_string).collect::<Vec<_>>().join(",");
    Err(in_array(name, format!("shape [{got}], expected [{want}]")))
}

/// The first number that is not finite, by its index.
pub(crate) fn check_finite<T: Copy>(
    name: &str,
    array: &Array<T>,
    is_finite: impl Fn(T) -> bool,
) -> Result<(), ParseError> {
    match array.data.iter().position(|value| !is_finite(*value)) {
        None => Ok(()),
        Some(place) => {
            Err(in_array(name, format!("the number at {:?} is not finite", unravel(&array.shape, place))))
        }
    }
}

/// The index along every axis of an element in C order.
pub(crate) fn unravel(shape: &[usize], place: usize) -> Vec<usize> {
    let mut rest = place;
    let mut index: Vec<usize> = shape.iter().rev().map(|side| (rest % side, rest /= side).0).collect();
    index.reverse();
    index
}

/// The number of elements of a shape, or `None` on overflow. A side of zero does not hide an overflow of
/// the others, so that every product of sides is safe afterwards.
pub(crate) fn element_count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |product, side| product.checked_mul((*side).max(1)))?;
    Some(shape.iter().product())
}
