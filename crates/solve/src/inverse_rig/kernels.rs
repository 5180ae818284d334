//! The three products behind an inversion, on blocked shapes: target projection (one frame or eight),
//! the Gram matrix, and its change when vertex weights change. Each has one plain body; where the machine
//! has AVX2 the same body is compiled for it. No fused operations: both give the same bits.

use super::blocks::{BLOCK, COORDINATES, PAD, Panel, ShapeBlocks, WIDTH};
use understudy_core::Vec3;

/// Frames that are projected together.
pub(crate) const FRAMES: usize = 8;

/// Compiles `$body` twice and calls the version that the machine can run.
macro_rules! dispatch {
    ($(#[$doc:meta])* $visibility:vis fn $name:ident($($argument:ident: $kind:ty),* $(,)?) -> $body:ident, $wide:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $wide($($argument: $kind),*) {
            $body($($argument),*);
        }

        $(#[$doc])*
        $visibility fn $name($($argument: $kind),*) {
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the machine has AVX2, which is all that the function asks for.
                unsafe { $wide($($argument),*) };
                return;
            }
            $body($($argument),*);
        }
    };
}

dispatch! {
    /// `out += factor · row`, element by element.
    pub(crate) fn add_scaled(out: &mut [f64], factor: f64, row: &[f64]) -> add_scaled_body, add_scaled_avx2
}

#[inline(always)]
fn add_scaled_body(out: &mut [f64], factor: f64, row: &[f64]) {
    for (out, value) in out.iter_mut().zip(row) {
        *out += factor * value;
    }
}

dispatch! {
    /// `out[k] = Σ_v ω_v b_k(v)ᵀ (target_v − neutral_v)` for the first `out.len()` terms.
    pub(crate) fn project(
        shapes: &ShapeBlocks,
        neutral: &[Vec3],
        vertex_weights: &[f32],
        target: &[Vec3],
        out: &mut [f64],
    ) -> project_body, project_avx2
}

#[inline(always)]
fn project_body(
    shapes: &ShapeBlocks,
    neutral: &[Vec3],
    vertex_weights: &[f32],
    target: &[Vec3],
    out: &mut [f64],
) {
    out.fill(0.0);
    for (index, block) in shapes.blocks.iter().enumerate() {
        let mut offset = [0.0; COORDINATES];
        for (lane, vertex) in block.vertices.iter().enumerate() {
            let moved = weighted_offset(*vertex, neutral, vertex_weights, target);
            offset[3 * lane..3 * lane + 3].copy_from_slice(&moved);
        }
        for panel in shapes.panels_below(index, out.len()) {
            let mut sums = [0.0; WIDTH];
            for (row, value) in shapes.panels[panel].iter().zip(&offset) {
                for (sum, delta) in sums.iter_mut().zip(row) {
                    *sum += value * f64::from(*delta);
                }
            }
            for (term, sum) in shapes.terms[panel].iter().zip(&sums) {
                if let Some(out) = out.get_mut(*term as usize) {
                    *out += sum;
                }
            }
        }
    }
}

dispatch! {
    /// [`project`] for up to eight frames at once; `out` is `[term][frame]` with [`FRAMES`] columns. A
    /// frame gives the same bits as alone.
    pub(crate) fn project_many(
        shapes: &ShapeBlocks,
        neutral: &[Vec3],
        vertex_weights: &[f32],
        targets: &[&[Vec3]],
        out: &mut [[f64; FRAMES]],
    ) -> project_many_body, project_many_avx2
}

#[inline(always)]
fn project_many_body(
    shapes: &ShapeBlocks,
    neutral: &[Vec3],
    vertex_weights: &[f32],
    targets: &[&[Vec3]],
    out: &mut [[f64; FRAMES]],
) {
    out.fill([0.0; FRAMES]);
    for (index, block) in shapes.blocks.iter().enumerate() {
        let mut offset = [[0.0; FRAMES]; COORDINATES];
        for (frame, target) in targets.iter().enumerate() {
            for (lane, vertex) in block.vertices.iter().enumerate() {
                let moved = weighted_offset(*vertex, neutral, vertex_weights, target);
                for axis in 0..3 {
                    offset[3 * lane + axis][frame] = moved[axis];
                }
            }
        }
        for panel in shapes.panels_below(index, out.len()) {
            // Half a panel against eight frames: its sums fit the registers.
            for half in [0, WIDTH / 2] {
                let mut sums = [[0.0; FRAMES]; WIDTH / 2];
                for (row, values) in shapes.panels[panel].iter().zip(&offset) {
                    for (column, sums) in sums.iter_mut().enumerate() {
                        let delta = f64::from(row[half + column]);
                        for (sum, value) in sums.iter_mut().zip(values) {
                            *sum += value * delta;
                        }
                    }
                }
                for (term, sums) in shapes.terms[panel][half..half + WIDTH / 2].iter().zip(&sums) {
                    if let Some(out) = out.get_mut(*term as usize) {
                        out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
                    }
                }
            }
        }
    }
}

/// `ω_v (target_v − neutral_v)`; zero for padding and for vertices without weight, whatever stands there.
#[inline(always)]
fn weighted_offset(vertex: u32, neutral: &[Vec3], vertex_weights: &[f32], target: &[Vec3]) -> [f64; 3] {
    if vertex == PAD || vertex_weights[vertex as usize] == 0.0 {
        return [0.0; 3];
    }
    let (to, from) = (target[vertex as usize], neutral[vertex as usize]);
    let weight = f64::from(vertex_weights[vertex as usize]);
    [
        weight * (f64::from(to.x) - f64::from(from.x)),
        weight * (f64::from(to.y) - f64::from(from.y)),
        weight * (f64::from(to.z) - f64::from(from.z)),
    ]
}

dispatch! {
    /// Adds the blocks' share of the upper triangle of `G_kl = Σ_v ω_v b_k(v)ᵀ b_l(v)`, `[count][count]`.
    pub(crate) fn add_gram(
        shapes: &ShapeBlocks,
        blocks: std::ops::Range<usize>,
        vertex_weights: &[f32],
        count: usize,
        gram: &mut [f64],
    ) -> add_gram_body, add_gram_avx2
}

#[inline(always)]
fn add_gram_body(
    shapes: &ShapeBlocks,
    blocks: std::ops::Range<usize>,
    vertex_weights: &[f32],
    count: usize,
    gram: &mut [f64],
) {
    for block in &shapes.blocks[blocks] {
        let mut weights = [0.0; COORDINATES];
        for (lane, vertex) in block.vertices.iter().enumerate() {
            let weight = if *vertex == PAD { 0.0 } else { f64::from(vertex_weights[*vertex as usize]) };
            weights[3 * lane..3 * lane + 3].fill(weight);
        }
        for left in block.panels.clone() {
            for right in left..block.panels.end {
                for half in [0, WIDTH / 2] {
                    let tile = half_tile(&shapes.panels[left], half, &shapes.panels[right], &weights);
                    for (row, sums) in shapes.terms[left][half..half + WIDTH / 2].iter().zip(&tile) {
                        for (column, sum) in shapes.terms[right].iter().zip(sums) {
                            if *row <= *column && *column != PAD {
                                gram[*row as usize * count + *column as usize] += sum;
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Four terms of one panel against the eight of another.
#[inline(always)]
fn half_tile(
    left: &Panel,
    half: usize,
    right: &Panel,
    weights: &[f64; COORDINATES],
) -> [[f64; WIDTH]; WIDTH / 2] {
    let mut tile = [[0.0; WIDTH]; WIDTH / 2];
    for ((left, right), weight) in left.iter().zip(right).zip(weights) {
        for (column, sums) in tile.iter_mut().enumerate() {
            let value = weight * f64::from(left[half + column]);
            for (sum, other) in sums.iter_mut().zip(right) {
                *sum += value * f64::from(*other);
            }
        }
    }
    tile
}

dispatch! {
    /// Adds `change · b_k(v)ᵀ b_l(v)` of one vertex to the whole matrix, both triangles.
    pub(crate) fn add_vertex(
        shapes: &ShapeBlocks,
        vertex: usize,
        change: f64,
        count: usize,
        gram: &mut [f64],
    ) -> add_vertex_body, add_vertex_avx2
}

#[inline(always)]
fn add_vertex_body(shapes: &ShapeBlocks, vertex: usize, change: f64, count: usize, gram: &mut [f64]) {
    if shapes.place[vertex] == PAD {
        return;
    }
    let (block, lane) = (shapes.place[vertex] as usize / BLOCK, shapes.place[vertex] as usize % BLOCK);
    let panels = shapes.blocks[block].panels.clone();
    for left in panels.clone() {
        let left_rows: [[f32; WIDTH]; 3] = std::array::from_fn(|axis| shapes.panels[left][3 * lane + axis]);
        if left_rows == [[0.0; WIDTH]; 3] {
            continue;
        }
        for right in panels.clone() {
            let right_rows = &shapes.panels[right][3 * lane..3 * lane + 3];
            for column in 0..WIDTH {
                let row = shapes.terms[left][column];
                let values: [f64; 3] = std::array::from_fn(|axis| f64::from(left_rows[axis][column]));
                if row == PAD || values == [0.0; 3] {
                    continue;
                }
                let gram_row = &mut gram[row as usize * count..(row as usize + 1) * count];
                for (place, other) in shapes.terms[right].iter().enumerate() {
                    if let Some(entry) = gram_row.get_mut(*other as usize) {
                        let product = |axis: usize| values[axis] * f64::from(right_rows[axis][place]);
                        // The change comes last, so that both triangles get the same bits.
                        *entry += change * (product(0) + product(1) + product(2));
                    }
                }
            }
        }
    }
}

/// `out[v] = Σ_k p_k b_k(v)` over the first `products.len()` terms, in f64, for every vertex.
pub(crate) fn offsets(shapes: &ShapeBlocks, products: &[f64], out: &mut [[f64; 3]]) {
    out.fill([0.0; 3]);
    for (index, block) in shapes.blocks.iter().enumerate() {
        let mut sums = [0.0; COORDINATES];
        for panel in shapes.panels_below(index, products.len()) {
            let mut local = [0.0; WIDTH];
            for (local, term) in local.iter_mut().zip(&shapes.terms[panel]) {
                *local = products.get(*term as usize).copied().unwrap_or(0.0);
            }
            if local == [0.0; WIDTH] {
                continue;
            }
            for (sum, row) in sums.iter_mut().zip(&shapes.panels[panel]) {
                *sum += row.iter().zip(&local).map(|(delta, weight)| f64::from(*delta) * weight).sum::<f64>();
            }
        }
        for (lane, vertex) in block.vertices.iter().enumerate().filter(|(_, vertex)| **vertex != PAD) {
            out[*vertex as usize].copy_from_slice(&sums[3 * lane..3 * lane + 3]);
        }
    }
}
