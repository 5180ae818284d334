//! Operators that move or gather numbers: largest of a window, zeros around, parts joined, axes exchanged, sums.

use super::Activation;

/// The largest number under a window.
#[derive(Debug, Clone)]
pub(in super::super) struct MaxPool {
    pub input: [usize; 3],
    pub output: [usize; 2],
    pub window: [usize; 2],
    pub stride: [usize; 2],
    pub before: [usize; 2],
    pub activation: Activation,
}

impl MaxPool {
    pub fn run(&self, x: &[f32], out: &mut [f32]) {
        let [height, width, channels] = self.input;
        for (row, line) in out.chunks_exact_mut(self.output[1] * channels).enumerate() {
            for (column, pixel) in line.chunks_exact_mut(channels).enumerate() {
                pixel.fill(f32::NEG_INFINITY);
                for i in 0..self.window[0] {
                    let y = (row * self.stride[0] + i).wrapping_sub(self.before[0]);
                    for j in 0..self.window[1] {
                        let at = (column * self.stride[1] + j).wrapping_sub(self.before[1]);
                        if y < height && at < width {
                            let from = &x[(y * width + at) * channels..][..channels];
                            pixel.iter_mut().zip(from).for_each(|(most, x)| *most = most.max(*x));
                        }
                    }
                }
                self.activation.apply(pixel, channels);
            }
        }
    }
}

/// Zeros around a tensor.
#[derive(Debug, Clone)]
pub(in super::super) struct Pad {
    /// Length of the runs that are copied.
    pub run: usize,
    /// Where each run goes.
    pub places: Vec<u32>,
}

impl Pad {
    /// `around`: numbers of zeros before and behind, per axis.
    pub fn new(shape: &[usize], around: &[[usize; 2]]) -> Option<Self> {
        let padded: Vec<usize> = shape.iter().zip(around).map(|(size, [a, b])| size + a + b).collect();
        let (last, outer) = shape.split_last()?;
        let mut places = Vec::new();
        for index in 0..outer.iter().product() {
            let (mut rest, mut place, mut step) = (index, around.last()?[0], *padded.last()?);
            for axis in (0..outer.len()).rev() {
                place += (rest % outer[axis] + around[axis][0]) * step;
                rest /= outer[axis];
                step *= padded[axis];
            }
            places.push(u32::try_from(place).ok()?);
        }
        Some(Self { run: *last, places })
    }

    pub fn run(&self, x: &[f32], out: &mut [f32]) {
        out.fill(0.0);
        for (run, place) in x.chunks_exact(self.run).zip(&self.places) {
            out[*place as usize..][..self.run].copy_from_slice(run);
        }
    }
}

/// Sums or means over some axes.
#[derive(Debug, Clone)]
pub(in super::super) struct Reduce {
    /// Where each number of the input is added.
    pub places: Vec<u32>,
    /// 1 for sums, one over the number of summands for means.
    pub scale: f32,
}

impl Reduce {
    pub fn run(&self, x: &[f32], out: &mut [f32]) {
        out.fill(0.0);
        for (x, place) in x.iter().zip(&self.places) {
            out[*place as usize] += x;
        }
        out.iter_mut().for_each(|x| *x *= self.scale);
    }
}

/// Each number from its place: slices, exchanged axes.
pub(in super::super) fn gather(places: &[u32], x: &[f32], out: &mut [f32]) {
    out.iter_mut().zip(places).for_each(|(out, place)| *out = x[*place as usize]);
}

/// One part of a joined tensor: runs of `part` numbers every `whole`, from `offset`.
pub(in super::super) fn copy_into(x: &[f32], part: usize, whole: usize, offset: usize, out: &mut [f32]) {
    for (run, out) in x.chunks_exact(part).zip(out.chunks_exact_mut(whole)) {
        out[offset..offset + part].copy_from_slice(run);
    }
}
