//! Precomputation of a drag, in f64: groups of edges, the reduced stiffness `Kᵀ L K`, and its inverse under the
//! positions that are given.

use super::{DragError, DragRig, DragSettings, skinning::Skin};

use understudy_core::laplacian::cotangent_laplacian;
use understudy_core::{DVec3, Mesh, SkinWeights, Vec3};

/// Share of the mean diagonal that holds transforms near the rotations of their vertices where the mesh leaves them
/// open: flat parts, handles without vertices.
const RIDGE: f64 = 1e-5;
/// Rounds of clustering.
const ROUNDS: usize = 10;

impl DragRig {
    /// A mesh with weights, where its handles rest (one per bone of the weights), and which of them are dragged or held.
    pub fn new(
        mesh: &Mesh,
        weights: &SkinWeights,
        places: &[Vec3],
        dragged: &[usize],
        settings: &DragSettings,
    ) -> Result<Self, DragError> {
        Self::with_turned(mesh, weights, places, dragged, &[], settings)
    }

    /// The same with handles that are given whole transforms: a region or a bone that turns, not only moves. No handle can
    /// be both dragged and turned.
    pub fn with_turned(
        mesh: &Mesh,
        weights: &SkinWeights,
        places: &[Vec3],
        dragged: &[usize],
        turned: &[usize],
        settings: &DragSettings,
    ) -> Result<Self, DragError> {
        let (n, h) = (mesh.vertex_count(), weights.bone_count());
        if weights.vertex_count() != n {
            return Err(DragError::Count { what: "rows of weights", got: weights.vertex_count(), want: n });
        }
        if places.len() != h {
            return Err(DragError::Count { what: "handle positions", got: places.len(), want: h });
        }
        if let Some(handle) = places.iter().position(|place| !place.is_finite()) {
            return Err(DragError::NotFinite { handle });
        }
        let given: Vec<usize> = dragged.iter().chain(turned).copied().collect();
        if given.is_empty() {
            return Err(DragError::Nothing);
        }
        for (index, &handle) in given.iter().enumerate() {
            if handle >= h || given[..index].contains(&handle) {
                return Err(DragError::Handle { handle, count: h });
            }
        }
        let (low, high) = mesh.bounds();
        let (centre, size) = ((low + high) / 2.0, (high - low).length());
        if size.is_nan() || size <= 0.0 {
            return Err(DragError::Singular);
        }
        let scale = 1.0 / size;
        let inward = |p: &Vec3| ((*p - centre) * scale).as_dvec3();
        let points: Vec<DVec3> = mesh.positions().iter().map(inward).collect();
        let laplacian = cotangent_laplacian(mesh);
        let count = settings.groups.unwrap_or((2 * h).clamp(6, 60)).max(1);
        let group = cluster(weights, count);
        let groups = group.iter().max().map_or(1, |most| *most as usize + 1);

        // Rows of K: weight times x, y, z, 1. Edges give KᵀLK, and per group M_g = Σ w̃ e (k_i − k_j).
        let rows = 4 * h;
        let mut stiffness = vec![0.0f64; rows * rows];
        let mut gather = vec![0.0f64; 3 * groups * rows];
        let entries = |vertex: usize| {
            let p = points[vertex];
            weights
                .row(vertex)
                .map(move |(handle, w)| (handle, [p.x, p.y, p.z, 1.0].map(|x| x * f64::from(w))))
        };
        let mut difference: Vec<(usize, [f64; 4])> = Vec::new();
        for vertex in 0..n {
            for (other, value) in laplacian.row(vertex).filter(|(other, _)| *other > vertex) {
                let weight = -value;
                difference.clear();
                difference.extend(entries(vertex));
                difference.extend(entries(other).map(|(handle, row)| (handle, row.map(|x| -x))));
                for (a, left) in &difference {
                    for (b, right) in &difference {
                        for i in 0..4 {
                            for j in 0..4 {
                                stiffness[(4 * a + i) * rows + 4 * b + j] += weight * left[i] * right[j];
                            }
                        }
                    }
                }
                let edge = (points[vertex] - points[other]) * (0.5 * weight);
                for place in [vertex, other] {
                    for axis in 0..3 {
                        let row = &mut gather[(3 * group[place] as usize + axis) * rows..][..rows];
                        for (handle, difference) in &difference {
                            (0..4).for_each(|k| row[4 * handle + k] += edge[axis] * difference[k]);
                        }
                    }
                }
            }
        }
        // A pull towards the mean rotation of a handle's own groups, so that nothing is left open.
        let trace: f64 = (0..rows).map(|d| stiffness[d * rows + d]).sum();
        let ridge = RIDGE * trace / rows as f64;
        let mut share = vec![0.0f64; h * groups];
        for (vertex, group) in group.iter().enumerate() {
            weights
                .row(vertex)
                .for_each(|(handle, w)| share[handle * groups + *group as usize] += f64::from(w));
        }
        for row in share.chunks_exact_mut(groups) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|s| *s = if sum > 0.0 { *s / sum } else { 1.0 / groups as f64 });
        }
        let width = 3 * groups + dragged.len() + 4 * turned.len();
        // Right-hand sides: rotations through Mᵀ and the ridge; then the positions; then four rows per given transform.
        let size = rows + dragged.len() + 4 * turned.len();
        let mut system = vec![0.0f64; size * size];
        let mut right = vec![0.0f64; size * width];
        for row in 0..rows {
            system[row * size..row * size + rows].copy_from_slice(&stiffness[row * rows..(row + 1) * rows]);
            for g in 0..3 * groups {
                right[row * width + g] = gather[g * rows + row];
            }
            if row % 4 < 3 {
                system[row * size + row] += ridge;
                for group in 0..groups {
                    right[row * width + 3 * group + row % 4] += ridge * share[row / 4 * groups + group];
                }
            } else {
                // A translation that nothing says stays with its place: far less than the rest.
                system[row * size + row] += 1e-4 * ridge;
            }
        }
        for (index, handle) in dragged.iter().enumerate() {
            let p = inward(&places[*handle]);
            for (k, x) in [p.x, p.y, p.z, 1.0].into_iter().enumerate() {
                system[(rows + index) * size + 4 * handle + k] = x;
                system[(4 * handle + k) * size + rows + index] = x;
            }
            right[(rows + index) * width + 3 * groups + index] = 1.0;
        }
        for (index, handle) in
            turned.iter().flat_map(|handle| (0..4).map(move |k| 4 * handle + k)).enumerate()
        {
            let place = rows + dragged.len() + index;
            system[place * size + handle] = 1.0;
            system[handle * size + place] = 1.0;
            right[place * width + 3 * groups + dragged.len() + index] = 1.0;
        }
        solve(&mut system, &mut right, size, width).ok_or(DragError::Singular)?;
        Ok(Self {
            iterations: settings.iterations,
            handles: h,
            groups,
            dragged: dragged.len(),
            turned: turned.len(),
            solve: right[..rows * width].iter().map(|x| *x as f32).collect(),
            gather: gather.iter().map(|x| *x as f32).collect(),
            skin: Skin::new(weights, mesh.positions()),
            centre,
            scale,
        })
    }
}

/// Gaussian elimination with row pivots, in place: `right ← system⁻¹ right`. `None` where there is no solution.
fn solve(system: &mut [f64], right: &mut [f64], size: usize, width: usize) -> Option<()> {
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|a, b| system[a * size + column].abs().total_cmp(&system[b * size + column].abs()))?;
        let value = system[pivot * size + column];
        if value.is_nan() || value.abs() <= 1e-14 {
            return None;
        }
        if pivot != column {
            (0..size).for_each(|k| system.swap(pivot * size + k, column * size + k));
            (0..width).for_each(|k| right.swap(pivot * width + k, column * width + k));
        }
        for row in (0..size).filter(|row| *row != column) {
            let factor = system[row * size + column] / value;
            if factor == 0.0 {
                continue;
            }
            for k in column..size {
                system[row * size + k] -= factor * system[column * size + k];
            }
            for k in 0..width {
                right[row * width + k] -= factor * right[column * width + k];
            }
        }
    }
    for row in 0..size {
        let value = system[row * size + row];
        right[row * width..(row + 1) * width].iter_mut().for_each(|x| *x /= value);
    }
    Some(())
}

/// Groups of vertices with alike weights: k-means from the rows that are farthest apart.
fn cluster(weights: &SkinWeights, count: usize) -> Vec<u32> {
    let (n, h) = (weights.vertex_count(), weights.bone_count());
    let mut rows = vec![0.0f32; n * h];
    for (vertex, row) in rows.chunks_exact_mut(h.max(1)).enumerate() {
        weights.row(vertex).for_each(|(handle, w)| row[handle] += w);
    }
    let row = |vertex: usize| &rows[vertex * h..(vertex + 1) * h];
    let squared = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
    let mut centres: Vec<Vec<f32>> = Vec::new();
    let mut far = vec![f32::INFINITY; n];
    let mut next = 0;
    while centres.len() < count.min(n) {
        centres.push(row(next).to_vec());
        let centre = &centres[centres.len() - 1];
        far.iter_mut().enumerate().for_each(|(v, far)| *far = far.min(squared(row(v), centre)));
        next = (0..n).fold(0, |best, v| if far[v] > far[best] { v } else { best });
        if far[next] < 1e-8 {
            break;
        }
    }
    let mut group = vec![0u32; n];
    for _ in 0..ROUNDS {
        let mut sums = vec![vec![0.0f32; h]; centres.len()];
        let mut counts = vec![0.0f32; centres.len()];
        for vertex in 0..n {
            let distance = |c: usize| squared(row(vertex), &centres[c]);
            let nearest = (0..centres.len()).fold((0, f32::INFINITY), |best, c| {
                let d = distance(c);
                if d < best.1 { (c, d) } else { best }
            });
            group[vertex] = nearest.0 as u32;
            counts[nearest.0] += 1.0;
            sums[nearest.0].iter_mut().zip(row(vertex)).for_each(|(sum, w)| *sum += w);
        }
        for ((centre, sum), count) in centres.iter_mut().zip(sums).zip(&counts) {
            if *count > 0.0 {
                *centre = sum.iter().map(|s| s / count).collect();
            }
        }
    }
    group
}
