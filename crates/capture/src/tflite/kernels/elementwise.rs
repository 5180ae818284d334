//! Element by element, one tensor or two. Two of different shapes are stretched to each other as NumPy does.

use super::super::model::{Binary, Unary};
use super::Activation;

/// An operator of two tensors.
#[derive(Debug, Clone)]
pub(in super::super) struct Elementwise {
    pub operator: Binary,
    /// Length of the longest run in which both walk with one step or stand.
    pub run: usize,
    /// Steps of both inside a run: 1, or 0 where one number serves all.
    pub steps: [usize; 2],
    /// Where each run begins in both.
    pub starts: Vec<[u32; 2]>,
    pub activation: Activation,
}

impl Elementwise {
    /// For two shapes that are stretched to `shape`; `None` where they do not fit.
    pub fn new(
        operator: Binary,
        shapes: [&[usize]; 2],
        shape: &[usize],
        activation: Activation,
    ) -> Option<Self> {
        let dimensions = shape.len();
        let mut strides = [vec![0usize; dimensions], vec![0usize; dimensions]];
        for (own, strides) in shapes.iter().zip(&mut strides) {
            if own.len() > dimensions {
                return None;
            }
            let lead = dimensions - own.len();
            let mut step = 1;
            for axis in (0..own.len()).rev() {
                match own[axis] {
                    1 => {}
                    size if size == shape[lead + axis] => strides[lead + axis] = step,
                    _ => return None,
                }
                step *= own[axis];
            }
        }
        // Trailing axes along which both go on evenly, or one stands, are one run.
        let (mut run, mut steps, mut axis) = (1usize, [0usize; 2], dimensions);
        while axis > 0 {
            let next = [strides[0][axis - 1], strides[1][axis - 1]];
            let size = shape[axis - 1];
            let fits = |side: usize| match run {
                1 => next[side] <= 1,
                _ => next[side] == steps[side] * run,
            };
            if size > 1 {
                if !(fits(0) && fits(1)) {
                    break;
                }
                if run == 1 {
                    steps = next;
                }
            }
            run *= size;
            axis -= 1;
        }
        let outer: usize = shape[..axis].iter().product();
        let mut starts = Vec::with_capacity(outer);
        for index in 0..outer {
            let (mut rest, mut places) = (index, [0usize; 2]);
            for axis in (0..axis).rev() {
                let at = rest % shape[axis];
                rest /= shape[axis];
                (0..2).for_each(|side| places[side] += at * strides[side][axis]);
            }
            starts.push([u32::try_from(places[0]).ok()?, u32::try_from(places[1]).ok()?]);
        }
        Some(Self { operator, run, steps, starts, activation })
    }

    pub fn run(&self, a: &[f32], b: &[f32], out: &mut [f32], channels: usize) {
        match self.operator {
            Binary::Add => self.walk(a, b, out, |a, b| a + b),
            Binary::Subtract => self.walk(a, b, out, |a, b| a - b),
            Binary::Multiply => self.walk(a, b, out, |a, b| a * b),
            Binary::Divide => self.walk(a, b, out, |a, b| a / b),
            Binary::SquaredDifference => self.walk(a, b, out, |a, b| (a - b) * (a - b)),
        }
        self.activation.apply(out, channels);
    }

    fn walk(&self, a: &[f32], b: &[f32], out: &mut [f32], of: impl Fn(f32, f32) -> f32) {
        for (out, [i, j]) in out.chunks_exact_mut(self.run).zip(&self.starts) {
            let (a, b) = (&a[*i as usize..], &b[*j as usize..]);
            match self.steps {
                [1, 1] => out.iter_mut().zip(a).zip(b).for_each(|((out, a), b)| *out = of(*a, *b)),
                [1, _] => out.iter_mut().zip(a).for_each(|(out, a)| *out = of(*a, b[0])),
                [_, 1] => out.iter_mut().zip(b).for_each(|(out, b)| *out = of(a[0], *b)),
                _ => out.fill(of(a[0], b[0])),
            }
        }
    }
}

/// An operator of one tensor.
pub(in super::super) fn unary(operator: Unary, x: &[f32], out: &mut [f32]) {
    let walk = |out: &mut [f32], of: fn(f32) -> f32| out.iter_mut().zip(x).for_each(|(out, x)| *out = of(*x));
    match operator {
        Unary::Logistic => walk(out, |x| 1.0 / (1.0 + (-x).exp())),
        Unary::Negate => walk(out, |x| -x),
        Unary::SquareRoot => walk(out, f32::sqrt),
        Unary::InverseSquareRoot => walk(out, |x| 1.0 / x.sqrt()),
        Unary::Relu => walk(out, |x| x.max(0.0)),
        Unary::Relu6 => walk(out, |x| x.clamp(0.0, 6.0)),
    }
}
