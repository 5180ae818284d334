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
    /// The Cholesky factor `U` of a symmetric matrix, `A = UᵀU`: `size` rows of a table of `stride` columns, upper
    /// half, in its place, with the reciprocals of its pivots on the diagonal. A pivot at or below `singular`
    /// gets the reciprocal 0 and an empty row: it depends on those before it and is left out of every solve.
    pub(crate) fn factorise(table: &mut [f64], stride: usize, size: usize, singular: f64) -> factorise_body, factorise_avx2
}

#[inline(always)]
fn factorise_body(table: &mut [f64], stride: usize, size: usize, singular: f64) {
    for i in 0..size {
        let (above, rows) = table.split_at_mut((i + 1) * stride);
        let row = &mut above[i * stride..i * stride + size];
        let pivot = row[i];
        let reciprocal = if pivot > singular { pivot.sqrt().recip() } else { 0.0 };
        row[i + 1..].iter_mut().for_each(|value| *value *= reciprocal);
        row[i] = reciprocal;
        for (j, other) in rows.chunks_mut(stride).take(size - i - 1).enumerate() {
            let j = i + 1 + j;
            add_scaled_body(&mut other[j..size], -row[j], &row[j..]);
        }
    }
}

dispatch! {
    /// Takes row and column `place` out of a factor of [`factorise`]. The rows after it gain what the lost row
    /// explained, `UᵀU + xxᵀ`, by plane rotations. `x` is scratch.
    pub(crate) fn remove_row(
        table: &mut [f64],
        stride: usize,
        size: usize,
        place: usize,
        x: &mut [f64],
        singular: f64,
    ) -> remove_row_body, remove_row_avx2
}

#[inline(always)]
fn remove_row_body(
    table: &mut [f64],
    stride: usize,
    size: usize,
    place: usize,
    x: &mut [f64],
    singular: f64,
) {
    x[place..size - 1].copy_from_slice(&table[place * stride + place + 1..place * stride + size]);
    for row in 0..place {
        table.copy_within(row * stride + place + 1..row * stride + size, row * stride + place);
    }
    for row in place..size - 1 {
        let from = (row + 1) * stride + row + 1;
        table.copy_within(from..from + size - row - 1, row * stride + row);
        let line = &mut table[row * stride..row * stride + size - 1];
        let pivot = if line[row] > 0.0 { line[row].recip() } else { 0.0 };
        let square = pivot * pivot + x[row] * x[row];
        if square <= singular {
            (line[row], x[row]) = (0.0, 0.0);
            continue;
        }
        let reciprocal = square.sqrt().recip();
        let (cosine, sine) = (pivot * reciprocal, x[row] * reciprocal);
        line[row] = reciprocal;
        for (value, x) in line[row + 1..].iter_mut().zip(&mut x[row + 1..size - 1]) {
            let old = *value;
            *value = cosine * old + sine * *x;
            *x = cosine * *x - sine * old;
        }
    }
}

/// `Σ a_i b_i`, as eight sums side by side, which the compiler may keep in registers.
#[inline(always)]
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (mut sums, whole) = ([0.0; 8], a.len() / 8 * 8);
    for (a, b) in a[..whole].chunks_exact(8).zip(b[..whole].chunks_exact(8)) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a[whole..].iter().zip(&b[whole..]).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
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

#[cfg(test)]
mod factor_tests {
    use super::*;
    use understudy_core::Random;

    #[test]
    fn a_factor_without_a_row_is_the_factor_of_the_matrix_without_it() {
        let mut random = Random::new(4);
        for size in [1usize, 2, 3, 7, 8, 9, 20] {
            let stride = size + 2;
            // Fewer directions than rows where the size is 9: some rows depend on others.
            let depth = if size == 9 { 5 } else { size + 1 };
            let vectors: Vec<Vec<f64>> =
                (0..size).map(|_| (0..depth).map(|_| random.normal()).collect()).collect();
            let fill = |kept: &[usize], table: &mut [f64]| {
                for (i, a) in kept.iter().enumerate() {
                    for (j, b) in kept.iter().enumerate().skip(i) {
                        table[i * stride + j] = dot(&vectors[*a], &vectors[*b]);
                    }
                }
            };
            for place in 0..size {
                let mut whole = vec![0.0; size * stride];
                fill(&(0..size).collect::<Vec<_>>(), &mut whole);
                factorise(&mut whole, stride, size, 1e-12);
                remove_row(&mut whole, stride, size, place, &mut vec![0.0; size], 1e-12);
                let kept: Vec<usize> = (0..size).filter(|row| *row != place).collect();
                // UᵀU of the rows that count is the matrix, up to the rows that were left out as dependent.
                for (i, a) in kept.iter().enumerate() {
                    for (j, b) in kept.iter().enumerate().skip(i) {
                        let at = |row: usize, column: usize| match whole[row * stride + row] {
                            pivot if pivot > 0.0 && row == column => pivot.recip(),
                            pivot if pivot > 0.0 => whole[row * stride + column],
                            _ => 0.0,
                        };
                        let product: f64 = (0..=i).map(|row| at(row, i) * at(row, j)).sum();
                        let want = dot(&vectors[*a], &vectors[*b]);
                        assert!((product - want).abs() < 1e-9, "{size} {place} {i} {j}: {product} {want}");
                    }
                }
            }
        }
    }
}
