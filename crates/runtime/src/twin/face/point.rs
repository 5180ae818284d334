//! The 1×1 convolution at the end of a decoder: sixteen features of a pixel to its offset, and back. Its
//! weights are shared by all pixels, as in the paper, or every pixel has its own: the same work, and far
//! more that a map can say. Pixels with weights of their own may also read numbers that are the same for all
//! of them. General loops first, the usual size in AVX2 below.

mod four_lanes;

use super::stencil::LANES;
use crate::dense::{Kernel, WIDENS};
use half::f16;

/// Where a pixel's features and its place in the map are.
pub(super) type Pixel = [u32; 2];

/// Weights `[sets][outputs][lanes + shared_features]` and bias `[sets][outputs]`: one set for all pixels, or one a
/// pixel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    pub weights: Vec<f32>,
    /// The weights in 16 bits instead, for drawings that only run: many sets are read once a map, so that
    /// bytes are what they cost.
    half: Vec<u16>,
    pub bias: Vec<f32>,
    outputs: usize,
    /// Features of a pixel.
    lanes: usize,
    /// Number of shared features.
    shared_features: usize,
    untied: bool,
}

impl Point {
    /// Zero. `lanes`: of features and of shared features, the latter a multiple of eight. `sets`: the
    /// number of pixels where each has weights of its own.
    pub fn new(outputs: usize, [lanes, shared_features]: [usize; 2], sets: Option<usize>) -> Self {
        let count = sets.unwrap_or(1);
        Self {
            weights: vec![0.0; count * outputs * (lanes + shared_features)],
            half: Vec::new(),
            bias: vec![0.0; count * outputs],
            outputs,
            lanes,
            shared_features,
            untied: sets.is_some(),
        }
    }

    /// Lanes of features, and of a row of weights.
    pub fn lanes(&self) -> [usize; 2] {
        [self.lanes, self.lanes + self.shared_features]
    }

    /// Multiply-adds of a pixel.
    pub fn work(&self) -> usize {
        self.outputs * (self.lanes + self.shared_features)
    }

    /// Keeps sets of pixels in 16 bits from now on. Numbers should have been rounded before.
    pub fn store_f16(&mut self) {
        if self.untied && !WIDENS {
            self.half = self.weights.iter().map(|w| f16::from_f32(*w).to_bits()).collect();
            self.weights = Vec::new();
        }
    }

    /// Offsets, and normals where a map has those too.
    fn usual(&self) -> bool {
        let size = self.lanes == LANES && self.shared_features.is_multiple_of(8);
        size && [3, 6].contains(&self.outputs)
    }

    fn check(&self, pixels: &[Pixel], features: usize, shared_features: usize, map: usize) {
        assert_eq!(shared_features, self.shared_features, "shared features");
        let fits = |p: &Pixel| p[0] as usize + self.lanes <= features && p[1] as usize + self.outputs <= map;
        assert!(pixels.iter().all(fits), "pixels lie in the images");
        assert!(!self.untied || pixels.len() * self.outputs == self.bias.len(), "a set per pixel");
    }

    /// The set of pixel number `index`.
    fn set(&self, index: usize) -> usize {
        if self.untied { index } else { 0 }
    }

    /// One of the weights, in either precision.
    pub fn weight(&self, place: usize) -> f32 {
        match self.half.is_empty() {
            true => self.weights[place],
            false => f16::from_bits(self.half[place]).to_f32(),
        }
    }

    /// `map[b + o] = bias[o] + Σ_c w[o][c] · features[a + c] + Σ_k w[o][lanes + k] · shared_features[k]`.
    pub fn forward(
        &self,
        kernel: Kernel,
        pixels: &[Pixel],
        features: &[f32],
        shared_features: &[f32],
        map: &mut [f32],
    ) {
        self.check(pixels, features.len(), shared_features.len(), map.len());
        #[cfg(target_arch = "x86_64")]
        if kernel.has_avx2() && self.usual() {
            // SAFETY: the instructions are there, sizes are the usual ones, and pixels were checked.
            return unsafe {
                match self.outputs {
                    3 => avx2::forward::<3>(self, pixels, features, shared_features, map),
                    _ => avx2::forward::<6>(self, pixels, features, shared_features, map),
                }
            };
        }
        if kernel.has_four_lanes() && self.usual() {
            // SAFETY: sizes are the usual ones, and pixels were checked.
            return unsafe {
                match self.outputs {
                    3 => four_lanes::forward::<3>(self, pixels, features, shared_features, map),
                    _ => four_lanes::forward::<6>(self, pixels, features, shared_features, map),
                }
            };
        }
        for (index, &[from, to]) in pixels.iter().enumerate() {
            let own = &features[from as usize..from as usize + self.lanes];
            for output in 0..self.outputs {
                let row = self.set(index) * self.outputs + output;
                let start = row * (self.lanes + self.shared_features);
                let read = own.iter().chain(shared_features).enumerate();
                let sum: f32 = read.map(|(c, v)| self.weight(start + c) * v).sum();
                map[to as usize + output] = self.bias[row] + sum;
            }
        }
    }

    /// `slopes[a + c] = (Σ_o w[o][c] · by_map[b + o]) · f′`, where `f′` is one or `slope` by the sign of the
    /// feature; `by_shared_features[k] = Σ w[o][lanes + k] · by_map[b + o]` over all pixels.
    pub fn backward(
        &self,
        kernel: Kernel,
        pixels: &[Pixel],
        slope: f32,
        features: &[f32],
        by_map: &[f32],
        slopes: &mut [f32],
        by_shared_features: &mut [f32],
    ) {
        self.check(pixels, features.len().min(slopes.len()), by_shared_features.len(), by_map.len());
        by_shared_features.fill(0.0);
        #[cfg(target_arch = "x86_64")]
        if kernel.has_avx2() && self.usual() {
            // SAFETY: as in `forward`.
            return unsafe {
                match self.outputs {
                    3 => {
                        avx2::backward::<3>(self, pixels, slope, features, by_map, slopes, by_shared_features)
                    }
                    _ => {
                        avx2::backward::<6>(self, pixels, slope, features, by_map, slopes, by_shared_features)
                    }
                }
            };
        }
        if kernel.has_four_lanes() && self.usual() {
            // SAFETY: as in `forward`.
            return unsafe {
                four_lanes::backward(self, pixels, slope, features, by_map, slopes, by_shared_features)
            };
        }
        for (index, &[from, to]) in pixels.iter().enumerate() {
            let range = from as usize..from as usize + self.lanes;
            let out = &mut slopes[range.clone()];
            out.fill(0.0);
            for output in 0..self.outputs {
                let by = by_map[to as usize + output];
                let row = (self.set(index) * self.outputs + output) * (self.lanes + self.shared_features);
                let sums = out.iter_mut().chain(by_shared_features.iter_mut()).enumerate();
                sums.for_each(|(c, sum)| *sum += self.weight(row + c) * by);
            }
            let own = &features[range];
            out.iter_mut().zip(own).for_each(|(d, y)| *d *= if *y > 0.0 { 1.0 } else { slope });
        }
    }

    /// Adds the derivatives by weights and bias to `sums`. For shared weights: where every pixel has its
    /// own, what there is to add is an outer product a pixel, and its factors say all.
    pub fn accumulate(
        &self,
        kernel: Kernel,
        pixels: &[Pixel],
        features: &[f32],
        by_map: &[f32],
        sums: &mut Point,
    ) {
        self.check(pixels, features.len(), 0, by_map.len());
        assert!(!self.untied && sums.weights.len() == self.weights.len(), "same shapes");
        #[cfg(target_arch = "x86_64")]
        if kernel.has_avx2() && self.usual() && self.outputs == 3 {
            // SAFETY: as in `forward`.
            return unsafe { avx2::accumulate(pixels, features, by_map, sums) };
        }
        let _ = kernel;
        for &[from, to] in pixels {
            let own = &features[from as usize..from as usize + self.lanes];
            for (output, row) in sums.weights.chunks_exact_mut(self.lanes).enumerate() {
                let by = by_map[to as usize + output];
                row.iter_mut().zip(own).for_each(|(sum, y)| *sum += y * by);
                sums.bias[output] += by;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! Sixteen features, shared features by eights, three outputs or six.

    use super::{LANES, Pixel, Point};
    use std::arch::x86_64::*;

    /// Eight weights of a row, of either precision.
    ///
    /// # Safety
    /// The machine has AVX2 and F16C; eight weights stand at `place`.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn eight(point: &Point, place: usize) -> __m256 {
        // SAFETY: promised by the caller.
        unsafe {
            match point.half.is_empty() {
                true => _mm256_loadu_ps(point.weights.as_ptr().add(place)),
                false => _mm256_cvtph_ps(_mm_loadu_si128(point.half.as_ptr().add(place).cast())),
            }
        }
    }

    /// The weights of three rows' features in registers.
    ///
    /// # Safety
    /// The machine has AVX2 and F16C; the point has the usual sizes and that many rows.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(point: &Point, first: usize) -> [[__m256; 2]; 3] {
        let size = LANES + point.shared_features;
        // SAFETY: a row has sixteen weights and more.
        let row = |output: usize| unsafe {
            let place = (first + output) * size;
            [eight(point, place), eight(point, place + 8)]
        };
        [row(0), row(1), row(2)]
    }

    /// # Safety
    /// The machine has AVX2, FMA and F16C; sizes are the usual ones; pixels lie in both images and have
    /// sets of their own where weights are not shared.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub unsafe fn forward<const OUTPUTS: usize>(
        point: &Point,
        pixels: &[Pixel],
        features: &[f32],
        shared_features: &[f32],
        map: &mut [f32],
    ) {
        let size = LANES + point.shared_features;
        // SAFETY: promised by the caller.
        unsafe {
            for (index, &[from, to]) in pixels.iter().enumerate() {
                let start = features.as_ptr().add(from as usize);
                let own = [_mm256_loadu_ps(start), _mm256_loadu_ps(start.add(8))];
                let sum = |w: [__m256; 2]| _mm256_fmadd_ps(w[1], own[1], _mm256_mul_ps(w[0], own[0]));
                for channel in (0..OUTPUTS).step_by(3) {
                    let first = point.set(index) * OUTPUTS + channel;
                    let [mut x, mut y, mut z] = load(point, first).map(sum);
                    let place = first * size + LANES;
                    for eights in (0..point.shared_features).step_by(8) {
                        let all = _mm256_loadu_ps(shared_features.as_ptr().add(eights));
                        let row = |output: usize| eight(point, place + output * size + eights);
                        x = _mm256_fmadd_ps(row(0), all, x);
                        y = _mm256_fmadd_ps(row(1), all, y);
                        z = _mm256_fmadd_ps(row(2), all, z);
                    }
                    let both = _mm256_hadd_ps(_mm256_hadd_ps(x, y), _mm256_hadd_ps(z, z));
                    let low = _mm256_castps256_ps128(both);
                    let all = _mm_add_ps(low, _mm256_extractf128_ps::<1>(both));
                    let mut three = [0.0f32; 4];
                    _mm_storeu_ps(three.as_mut_ptr(), all);
                    let out = map.as_mut_ptr().add(to as usize + channel);
                    let bias = point.bias.as_ptr().add(first);
                    for output in 0..3 {
                        *out.add(output) = three[output] + *bias.add(output);
                    }
                }
            }
        }
    }

    /// # Safety
    /// As [`forward`], for all three images.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub unsafe fn backward<const OUTPUTS: usize>(
        point: &Point,
        pixels: &[Pixel],
        slope: f32,
        features: &[f32],
        by_map: &[f32],
        slopes: &mut [f32],
        by_shared_features: &mut [f32],
    ) {
        let size = LANES + point.shared_features;
        // SAFETY: promised by the caller.
        unsafe {
            let leak = _mm256_set1_ps(slope);
            for (index, &[from, to]) in pixels.iter().enumerate() {
                let by = by_map.as_ptr().add(to as usize);
                let place = point.set(index) * OUTPUTS * size;
                let along = |start: __m256, eights: usize| {
                    (0..OUTPUTS).fold(start, |sum, output| {
                        let row = eight(point, place + output * size + eights);
                        _mm256_fmadd_ps(row, _mm256_broadcast_ss(&*by.add(output)), sum)
                    })
                };
                for half in 0..2 {
                    let sum = along(_mm256_setzero_ps(), half * 8);
                    let before = _mm256_loadu_ps(features.as_ptr().add(from as usize + half * 8));
                    let positive = _mm256_cmp_ps::<_CMP_GT_OQ>(before, _mm256_setzero_ps());
                    let result = _mm256_blendv_ps(_mm256_mul_ps(sum, leak), sum, positive);
                    _mm256_storeu_ps(slopes.as_mut_ptr().add(from as usize + half * 8), result);
                }
                for eights in (0..point.shared_features).step_by(8) {
                    let out = by_shared_features.as_mut_ptr().add(eights);
                    _mm256_storeu_ps(out, along(_mm256_loadu_ps(out), LANES + eights));
                }
            }
        }
    }

    /// # Safety
    /// As [`forward`]; the sums have the usual sizes and one set.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub unsafe fn accumulate(pixels: &[Pixel], features: &[f32], by_map: &[f32], sums: &mut Point) {
        // SAFETY: promised by the caller.
        unsafe {
            let mut totals = load(sums, 0);
            let mut bias = [sums.bias[0], sums.bias[1], sums.bias[2]];
            for &[from, to] in pixels {
                let start = features.as_ptr().add(from as usize);
                let own = [_mm256_loadu_ps(start), _mm256_loadu_ps(start.add(8))];
                for output in 0..3 {
                    let by = by_map.get_unchecked(to as usize + output);
                    bias[output] += by;
                    let by = _mm256_broadcast_ss(by);
                    for half in 0..2 {
                        totals[output][half] = _mm256_fmadd_ps(own[half], by, totals[output][half]);
                    }
                }
            }
            sums.bias.copy_from_slice(&bias);
            for output in 0..3 {
                for half in 0..2 {
                    let place = sums.weights.as_mut_ptr().add(output * LANES + half * 8);
                    _mm256_storeu_ps(place, totals[output][half]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    #[test]
    fn the_fast_kernel_matches_the_loops() {
        let mut random = Random::new(6);
        let mut draw = |count: usize| -> Vec<f32> {
            (0..count).map(|_| f16::from_f32(random.uniform(-1.0, 1.0)).to_f32()).collect()
        };
        for (count, untied, store_f16, shared_features, outputs) in
            [0usize, 1, 9].into_iter().flat_map(|count| {
                [
                    (count, false, false, 0, 3),
                    (count, true, false, 8, 3),
                    (count, true, true, 0, 3),
                    (count, true, true, 24, 3),
                    (count, false, false, 0, 6),
                    (count, true, true, 24, 6),
                ]
            })
        {
            let mut point = Point::new(outputs, [LANES, shared_features], untied.then_some(count));
            (point.weights, point.bias) = (draw(point.weights.len()), draw(point.bias.len()));
            if store_f16 {
                point.store_f16();
            }
            let pixels: Vec<Pixel> = (0..count as u32).map(|p| [p * LANES as u32, p * 7]).collect();
            let (features, by_map, all) = (draw(count * LANES), draw(count * 7), draw(shared_features));
            let results: Vec<Vec<f32>> = Kernel::all()
                .map(|kernel| {
                    let mut map = vec![0.0; count * 7];
                    point.forward(kernel, &pixels, &features, &all, &mut map);
                    let (mut slopes, mut by_all) = (vec![0.0; count * LANES], vec![1.0; shared_features]);
                    point.backward(kernel, &pixels, 0.2, &features, &by_map, &mut slopes, &mut by_all);
                    let mut sums = Point::new(outputs, [LANES, 0], None);
                    if !untied {
                        sums.bias[1] = 1.0;
                        point.accumulate(kernel, &pixels, &features, &by_map, &mut sums);
                    }
                    [map, slopes, by_all, sums.weights, sums.bias].concat()
                })
                .collect();
            for fast in &results[1..] {
                assert!(results[0].iter().zip(fast).all(|(a, b)| (a - b).abs() < 1e-5), "{count}");
            }
            assert!(count == 0 || results[0].iter().any(|value| *value != 0.0));
        }
    }

    #[test]
    fn sets_of_their_own_are_shared_ones_when_all_are_equal() {
        let mut random = Random::new(7);
        let mut draw = |count: usize| -> Vec<f32> { (0..count).map(|_| random.uniform(-1.0, 1.0)).collect() };
        let count = 5;
        let mut shared = Point::new(3, [LANES, 0], None);
        (shared.weights, shared.bias) = (draw(3 * LANES), draw(3));
        let mut untied = Point::new(3, [LANES, 0], Some(count));
        (untied.weights, untied.bias) = (shared.weights.repeat(count), shared.bias.repeat(count));
        let pixels: Vec<Pixel> = (0..count as u32).map(|p| [p * LANES as u32, p * 4]).collect();
        let features = draw(count * LANES);
        let maps = [&shared, &untied].map(|point| {
            let mut map = vec![0.0; count * 4];
            point.forward(Kernel::detect(), &pixels, &features, &[], &mut map);
            map
        });
        assert_eq!(maps[0], maps[1]);
    }
}
