//! Half and double size, and pictures read at places that move: means of four pixels, nearest neighbours, bilinear samples.

use super::tensor::Tensor;
use rayon::prelude::*;

/// Means of squares of four pixels; both sizes must be even.
pub(super) fn halved(x: &Tensor) -> Tensor {
    let [images, channels, rows, columns] = x.shape();
    assert!(rows % 2 == 0 && columns % 2 == 0, "an even size");
    let mut out = Tensor::zeros([images, channels, rows / 2, columns / 2]);
    let (from, to) = (x.plane_len().max(1), out.plane_len().max(1));
    out.data_mut().par_chunks_mut(to).zip(x.data().par_chunks(from)).for_each(|(out, x)| {
        for (row, line) in out.chunks_exact_mut(columns / 2).enumerate() {
            let (above, below) = x[2 * row * columns..][..2 * columns].split_at(columns);
            for (column, out) in line.iter_mut().enumerate() {
                let at = 2 * column;
                *out = 0.25 * (above[at] + above[at + 1] + below[at] + below[at + 1]);
            }
        }
    });
    out
}

/// Gradient of [`halved`]: a quarter for each of the four.
pub(super) fn halved_back(by_output: &Tensor) -> Tensor {
    let mut out = doubled(by_output);
    out.data_mut().iter_mut().for_each(|value| *value *= 0.25);
    out
}

/// Every pixel four times.
pub(super) fn doubled(x: &Tensor) -> Tensor {
    let [images, channels, rows, columns] = x.shape();
    let mut out = Tensor::zeros([images, channels, 2 * rows, 2 * columns]);
    let (from, to) = (x.plane_len().max(1), out.plane_len().max(1));
    out.data_mut().par_chunks_mut(to).zip(x.data().par_chunks(from)).for_each(|(out, x)| {
        for (row, line) in out.chunks_exact_mut(2 * columns).enumerate() {
            let x = &x[row / 2 * columns..][..columns];
            line.chunks_exact_mut(2).zip(x).for_each(|(pair, x)| pair.fill(*x));
        }
    });
    out
}

/// Gradient of [`doubled`]: the sum of the four.
pub(super) fn doubled_back(by_output: &Tensor) -> Tensor {
    let mut out = halved(by_output);
    out.data_mut().iter_mut().for_each(|value| *value *= 4.0);
    out
}

/// Where a sample lies: four pixels (`None` outside) and the shares of the right and lower ones.
struct Corners {
    pixels: [Option<usize>; 4],
    right: f32,
    down: f32,
}

/// `place` is −1 to 1 from the outer border of the first pixel to that of the last.
fn corners([x, y]: [f32; 2], rows: usize, columns: usize) -> Corners {
    // Far outside, one place is as good as another.
    let to_pixels = |place: f32, count: usize| {
        (0.5 * ((place + 1.0) * count as f32 - 1.0)).clamp(-2.0, count as f32 + 1.0)
    };
    let (x, y) = (to_pixels(x, columns), to_pixels(y, rows));
    let (left, top) = (x.floor(), y.floor());
    let pixel = |dx: i64, dy: i64| {
        let (column, row) = (left as i64 + dx, top as i64 + dy);
        let inside = (0..columns as i64).contains(&column) && (0..rows as i64).contains(&row);
        inside.then(|| row as usize * columns + column as usize)
    };
    Corners { pixels: [pixel(0, 0), pixel(1, 0), pixel(0, 1), pixel(1, 1)], right: x - left, down: y - top }
}

impl Corners {
    fn shares(&self) -> [f32; 4] {
        let (u, v) = (self.right, self.down);
        [(1.0 - u) * (1.0 - v), u * (1.0 - v), (1.0 - u) * v, u * v]
    }
}

/// Bilinear samples of `x` at `grid`, `[images, 2, rows, columns]` of x and y in −1 to 1; zero outside.
pub(super) fn sampled(x: &Tensor, grid: &Tensor) -> Tensor {
    let [images, channels, rows, columns] = x.shape();
    let [grids, two, high, wide] = grid.shape();
    assert!(grids == images && two == 2, "two places per pixel and image");
    let mut out = Tensor::zeros([images, channels, high, wide]);
    let (plane, pixels) = (rows * columns, high * wide);
    out.data_mut().par_chunks_mut((channels * pixels).max(1)).enumerate().for_each(|(image, out)| {
        let (gx, gy) = (grid.plane(image, 0), grid.plane(image, 1));
        let x = &x.data()[image * channels * plane..][..channels * plane];
        for pixel in 0..pixels {
            let corners = corners([gx[pixel], gy[pixel]], rows, columns);
            for (place, share) in corners.pixels.iter().zip(corners.shares()) {
                let Some(place) = place else { continue };
                for channel in 0..channels {
                    out[channel * pixels + pixel] += share * x[channel * plane + place];
                }
            }
        }
    });
    out
}

/// Gradients of picture and places.
pub(super) fn sampled_back(x: &Tensor, grid: &Tensor, by_output: &Tensor) -> (Tensor, Tensor) {
    let [_, channels, rows, columns] = x.shape();
    let (plane, pixels) = (rows * columns, grid.plane_len());
    let (mut by_x, mut by_grid) = (Tensor::zeros(x.shape()), Tensor::zeros(grid.shape()));
    let images = by_x.data_mut().par_chunks_mut((channels * plane).max(1));
    let grids = by_grid.data_mut().par_chunks_mut((2 * pixels).max(1));
    images.zip(grids).enumerate().for_each(|(image, (by_x, by_grid))| {
        let (gx, gy) = (grid.plane(image, 0), grid.plane(image, 1));
        let x = &x.data()[image * channels * plane..][..channels * plane];
        let by_y = &by_output.data()[image * channels * pixels..][..channels * pixels];
        for pixel in 0..pixels {
            let corners = corners([gx[pixel], gy[pixel]], rows, columns);
            let shares = corners.shares();
            let (u, v) = (corners.right, corners.down);
            // How the four shares change with the place, per pixel.
            let (by_u, by_v) = ([v - 1.0, 1.0 - v, -v, v], [u - 1.0, -u, 1.0 - u, u]);
            let (mut slope_x, mut slope_y) = (0.0, 0.0);
            for (k, place) in corners.pixels.iter().enumerate() {
                let Some(place) = place else { continue };
                for channel in 0..channels {
                    let by_y = by_y[channel * pixels + pixel];
                    by_x[channel * plane + place] += shares[k] * by_y;
                    let value = x[channel * plane + place] * by_y;
                    slope_x += by_u[k] * value;
                    slope_y += by_v[k] * value;
                }
            }
            by_grid[pixel] = 0.5 * columns as f32 * slope_x;
            by_grid[pixels + pixel] = 0.5 * rows as f32 * slope_y;
        }
    });
    (by_x, by_grid)
}
