//! The linear base: linear blend skinning, eight vertices at a time. A panel lists the bones of its eight
//! vertices once, each with eight weights, so that a bone's matrix is read once for all of them and blended
//! in registers: `v_k = (Σ_j w_kj X_j (X_j⁰)⁻¹) v_k⁰`.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod four_lanes;

use super::shared::{OutputPointer, WEIGHT_UNITS, are_whole};
use crate::dense::Kernel;
use crate::workers::Workers;
use std::collections::BTreeMap;
use std::ops::Range;
use understudy_core::{Affine3A, SkinWeights, Vec3};

/// Vertices per panel.
pub const LANES: usize = 8;
/// Numbers per panel.
pub const NUMBERS: usize = 3 * LANES;

/// An affine map by its rows: what eight vertices at a time are multiplied with.
pub fn rows(map: &Affine3A) -> [f32; 12] {
    let ([x, y, z], t) = ([map.matrix3.x_axis, map.matrix3.y_axis, map.matrix3.z_axis], map.translation);
    [x.x, y.x, z.x, t.x, x.y, y.y, z.y, t.y, x.z, y.z, z.z, t.z]
}

/// Packed skin weights.
#[derive(Debug, Clone)]
pub struct Skin {
    /// Rest places of each panel, x of all eight, then y, then z, `[panels · NUMBERS]`.
    rest: Vec<f32>,
    /// Where each panel's entries start, and the end of the last, `[panels + 1]`.
    starts: Vec<u32>,
    /// The bone of each entry.
    bones: Vec<u16>,
    weights: Weights,
}

/// Eight weights per entry.
#[derive(Debug, Clone)]
enum Weights {
    Single(Vec<[f32; LANES]>),
    /// In units of [`WEIGHT_UNITS`], where all of them are whole: half the memory.
    Whole(Vec<[u16; LANES]>),
}

impl Weights {
    fn lane(&self, entry: usize, lane: usize) -> f32 {
        match self {
            Self::Single(weights) => weights[entry][lane],
            Self::Whole(weights) => f32::from(weights[entry][lane]) / WEIGHT_UNITS,
        }
    }
}

impl Skin {
    /// Packs weights of vertices in the order of the mesh: neighbours share their bones.
    pub fn new(base: &SkinWeights, rest: &[Vec3]) -> Self {
        let panels = rest.len().div_ceil(LANES);
        let (mut packed, mut starts, mut bones) = (vec![0.0; panels * NUMBERS], vec![0], Vec::new());
        let mut weights: Vec<[f32; LANES]> = Vec::new();
        for panel in 0..panels {
            let mut entries: BTreeMap<u16, [f32; LANES]> = BTreeMap::new();
            for (lane, vertex) in (panel * LANES..rest.len().min((panel + 1) * LANES)).enumerate() {
                for axis in 0..3 {
                    packed[panel * NUMBERS + axis * LANES + lane] = rest[vertex][axis];
                }
                for (bone, weight) in base.row(vertex).filter(|(_, weight)| *weight != 0.0) {
                    entries.entry(bone as u16).or_default()[lane] += weight;
                }
            }
            bones.extend(entries.keys());
            weights.extend(entries.values());
            starts.push(bones.len() as u32);
        }
        let weights = match are_whole(weights.iter().flatten().copied()) {
            true => {
                let units = |entry: &[f32; LANES]| entry.map(|weight| (weight * WEIGHT_UNITS) as u16);
                Weights::Whole(weights.iter().map(units).collect())
            }
            false => Weights::Single(weights),
        };
        bones.shrink_to_fit();
        Self { rest: packed, starts, bones, weights }
    }

    /// Rest places and weights of the first vertices, as they were packed: bones in ascending order.
    pub fn unpack(&self, vertices: usize, bone_count: usize) -> (Vec<Vec3>, SkinWeights) {
        let (mut rest, mut offsets) = (Vec::with_capacity(vertices), vec![0]);
        let (mut bones, mut weights) = (Vec::new(), Vec::new());
        for vertex in 0..vertices {
            let (panel, lane) = (vertex / LANES, vertex % LANES);
            let number = |axis: usize| self.rest[panel * NUMBERS + axis * LANES + lane];
            rest.push(Vec3::new(number(0), number(1), number(2)));
            for entry in self.starts[panel] as usize..self.starts[panel + 1] as usize {
                let weight = self.weights.lane(entry, lane);
                if weight != 0.0 {
                    bones.push(self.bones[entry]);
                    weights.push(weight);
                }
            }
            offsets.push(bones.len() as u32);
        }
        let weights = SkinWeights::from_compressed(offsets, bones, weights, bone_count);
        (rest, weights.expect("rows that were packed are convex"))
    }

    /// Number of panels.
    pub fn panels(&self) -> usize {
        self.starts.len() - 1
    }

    /// Bytes that one pose reads.
    pub fn bytes(&self) -> usize {
        let weight = if matches!(self.weights, Weights::Whole(_)) { 2 } else { 4 };
        4 * (self.rest.len() + self.starts.len()) + self.bones.len() * (2 + weight * LANES)
    }

    /// Adds the skinned places of some panels' vertices. `skinning_matrices`: rest → pose of every bone by rows.
    /// `out`: the vertices of these panels.
    ///
    /// # Panics
    /// When there are more vertices than the panels have, or fewer skinning_matrices than bones.
    pub fn add(
        &self,
        kernel: Kernel,
        panels: Range<usize>,
        skinning_matrices: &[[f32; 12]],
        out: &mut [Vec3],
    ) {
        let rest = &self.rest[panels.start * NUMBERS..panels.end * NUMBERS];
        self.add_places(kernel, panels, rest, skinning_matrices, out);
    }

    /// As [`Skin::add`] from other places than those of rest, which a twin has moved before skinning. `rest`: x, y and z
    /// of eight vertices, panel after panel.
    ///
    /// # Panics
    /// When there are more vertices than the panels have, or fewer skinning_matrices than bones.
    pub fn add_places(
        &self,
        kernel: Kernel,
        panels: Range<usize>,
        rest: &[f32],
        skinning_matrices: &[[f32; 12]],
        out: &mut [Vec3],
    ) {
        assert!(panels.end <= self.panels() && out.len() <= panels.len() * LANES, "panels hold all vertices");
        assert!(rest.len() >= panels.len() * NUMBERS, "every vertex has a place");
        let entries = self.starts[panels.start] as usize..self.starts[panels.end] as usize;
        let highest = self.bones[entries].iter().max();
        assert!(
            highest.is_none_or(|bone| (*bone as usize) < skinning_matrices.len()),
            "every bone has a matrix"
        );
        #[cfg(target_arch = "x86_64")]
        if kernel.has_avx2() {
            // SAFETY: the kernel says that the machine has the instructions; panels and bones were asserted.
            unsafe { avx2::add(self, panels, rest, skinning_matrices, out) };
            return;
        }
        if kernel.has_four_lanes() {
            // SAFETY: panels and bones were asserted.
            unsafe { four_lanes::add(self, panels, rest, skinning_matrices, out) };
            return;
        }
        self.add_portable(panels, rest, skinning_matrices, out);
    }

    /// Adds the skinned places of all vertices of some poses. `matrices`: rest → pose of every bone by rows, `[poses ×
    /// bones]`, and the number of bones. `sizes`: vertices of a pose, and shares into which one pose is cut; a crowd shares
    /// poses instead. `out`: `[poses × vertices]`.
    ///
    /// # Panics
    /// When there are more vertices than the panels have, or fewer matrices than bones.
    pub fn add_poses(
        &self,
        kernel: Kernel,
        (matrices, bones): (&[[f32; 12]], usize),
        (vertices, shares): (usize, usize),
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) {
        let poses = out.len().checked_div(vertices).unwrap_or(0);
        let shares = if poses > 1 { 1 } else { shares };
        let out = OutputPointer(out.as_mut_ptr());
        let job = |task: usize| {
            let (pose, share) = (task / shares, task % shares);
            let panels = self.panels() * share / shares..self.panels() * (share + 1) / shares;
            let own = panels.start * LANES..vertices.min(panels.end * LANES);
            // The whole of it, not its field: a bare pointer is not shared between threads.
            let out: OutputPointer = { out };
            // SAFETY: `out` holds all vertices of all poses and is borrowed until the tasks have ended; panels share no
            // vertex, and no other task has these of this pose.
            let own =
                unsafe { std::slice::from_raw_parts_mut(out.0.add(pose * vertices + own.start), own.len()) };
            self.add(kernel, panels, &matrices[pose * bones..(pose + 1) * bones], own);
        };
        match workers {
            Some(workers) => workers.run(poses * shares, &job),
            None => (0..poses * shares).for_each(job),
        }
    }

    fn add_portable(
        &self,
        panels: Range<usize>,
        rest: &[f32],
        skinning_matrices: &[[f32; 12]],
        out: &mut [Vec3],
    ) {
        let places = rest.chunks_exact(NUMBERS);
        for ((panel, rest), out) in panels.zip(places).zip(out.chunks_mut(LANES)) {
            let mut blend = [[0.0f32; LANES]; 12];
            for entry in self.starts[panel] as usize..self.starts[panel + 1] as usize {
                let matrix = &skinning_matrices[self.bones[entry] as usize];
                for (blend, number) in blend.iter_mut().zip(matrix) {
                    let lanes = blend.iter_mut().enumerate();
                    lanes.for_each(|(lane, sum)| *sum += self.weights.lane(entry, lane) * number);
                }
            }
            for (lane, place) in out.iter_mut().enumerate() {
                let row = |row: usize| {
                    blend[row][lane] * rest[lane]
                        + blend[row + 1][lane] * rest[LANES + lane]
                        + blend[row + 2][lane] * rest[2 * LANES + lane]
                        + blend[row + 3][lane]
                };
                *place += Vec3::new(row(0), row(4), row(8));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Quat, Random};

    #[test]
    fn every_kernel_matches_plain_skinning_at_every_size() {
        const BONES: usize = 11;
        // Thirds are no whole numbers of units, halves and quarters are.
        for (count, thirds) in
            [0usize, 1, 7, 8, 9, 15, 16, 100].into_iter().flat_map(|c| [(c, true), (c, false)])
        {
            let mut random = Random::new(count as u64);
            let mut vector = |s: f32| Vec3::from_array([0; 3].map(|_| random.uniform(-s, s)));
            let rest: Vec<Vec3> = (0..count).map(|_| vector(90.0)).collect();
            let bones: Vec<Affine3A> = (0..BONES)
                .map(|_| {
                    Affine3A::from_rotation_translation(Quat::from_scaled_axis(vector(1.0)), vector(50.0))
                })
                .collect();
            let start: Vec<Vec3> = (0..count).map(|_| vector(1.0)).collect();
            // One to four influences.
            let rows_of: Vec<Vec<(u16, f32)>> = (0..count)
                .map(|v| {
                    let own = if thirds { 1 + v % 4 } else { 1 << (v % 3) };
                    (0..own).map(|k| (((v + 3 * k) % BONES) as u16, 1.0 / own as f32)).collect()
                })
                .collect();
            let base = SkinWeights::from_rows(&rows_of, BONES).expect("convex rows");
            let mut truth = vec![Vec3::ZERO; count];
            base.linear_blend(&bones, &rest, &mut truth);
            truth.iter_mut().zip(&start).for_each(|(truth, start)| *truth += *start);
            let skin = Skin::new(&base, &rest);
            assert_eq!(matches!(skin.weights, Weights::Whole(_)), !thirds || count < 3, "{count}");
            let (unpacked_rest, unpacked) = skin.unpack(count, BONES);
            assert_eq!(unpacked_rest, rest);
            for vertex in 0..count {
                let mut row: Vec<(usize, f32)> = base.row(vertex).collect();
                row.sort_unstable_by_key(|(bone, _)| *bone);
                assert!(unpacked.row(vertex).eq(row), "{count}: vertex {vertex}");
            }
            let skinning_matrices: Vec<[f32; 12]> = bones.iter().map(rows).collect();
            for kernel in Kernel::all() {
                // In two shares, as two threads would.
                let mut out = start.clone();
                let half = skin.panels() / 2;
                let (left, right) = out.split_at_mut(count.min(half * LANES));
                skin.add(kernel, 0..half, &skinning_matrices, left);
                skin.add(kernel, half..skin.panels(), &skinning_matrices, right);
                for (a, b) in out.iter().zip(&truth) {
                    assert!(a.distance(*b) < 1e-4, "{count}, {}: {a} {b}", kernel.name());
                }
            }
        }
    }
}
