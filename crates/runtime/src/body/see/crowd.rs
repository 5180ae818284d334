//! Inputs of eight poses at a time: a bone in a group's frame is a product of two affine maps, of which a network
//! sees few of the twelve numbers. Lanes are poses, so that only those are computed.

#[cfg(target_arch = "x86_64")]
mod avx2;

use super::super::{BONE_INPUTS, Group, GroupParts};
use crate::dense::Kernel;
use understudy_core::Affine3A;

/// Poses at a time.
pub const LANES: usize = 8;

/// One number in eight poses.
pub type Lanes = [f32; LANES];

/// An affine map by columns in eight poses.
type Map = [Lanes; BONE_INPUTS];

/// The bones of some poses: eights of poses, each `[J]`.
#[derive(Default)]
pub struct Bones {
    maps: Vec<Map>,
    count: usize,
}

/// Some numbers of every pose, pose after pose.
pub struct Rows<N> {
    /// All of them.
    pub numbers: N,
    /// From one pose to the next.
    pub stride: usize,
}

impl Bones {
    /// Memory for some poses.
    pub fn new(poses: usize, count: usize) -> Self {
        Self { maps: vec![[[0.0; LANES]; BONE_INPUTS]; poses.div_ceil(LANES) * count], count }
    }

    /// Takes poses over, `[poses · J]`. Lanes beyond the last repeat it.
    pub fn fill(&mut self, bones: &[Affine3A]) {
        let Some(last) = bones.len().checked_div(self.count).and_then(|poses| poses.checked_sub(1)) else {
            return;
        };
        for (eight, maps) in self.maps.chunks_exact_mut(self.count).enumerate().take(last / LANES + 1) {
            for lane in 0..LANES {
                let pose = (eight * LANES + lane).min(last);
                for (bone, map) in bones[pose * self.count..].iter().zip(&mut *maps) {
                    map.iter_mut().zip(bone.to_cols_array()).for_each(|(to, number)| to[lane] = number);
                }
            }
        }
    }

    /// Writes the inputs of one group in all poses to `rows`. `controls`: inputs that are no bones', by their index.
    /// `working`: one an input.
    pub fn see(
        &self,
        kernel: Kernel,
        (group, parts): (&Group, &GroupParts),
        poses: usize,
        controls: &Rows<&[f32]>,
        working: &mut [Lanes],
        rows: &mut Rows<&mut [f32]>,
    ) {
        let working = &mut working[..parts.inputs.len()];
        let eights = self.maps.chunks_exact(self.count.max(1)).take(poses.div_ceil(LANES));
        for (eight, bones) in eights.enumerate() {
            products(kernel, group, bones, working);
            let first = eight * LANES;
            let mut start = 0;
            for seen in &group.seen {
                if seen.bone >= bones.len() {
                    for slot in start..seen.end {
                        let input = parts.inputs[slot] as usize;
                        let pose = |lane: usize| (first + lane).min(poses - 1);
                        working[slot] = lanes(|lane| controls.numbers[pose(lane) * controls.stride + input]);
                    }
                }
                start = seen.end;
            }
            for (numbers, (mean, scale)) in working.iter_mut().zip(parts.mean.iter().zip(&parts.scale)) {
                numbers.iter_mut().for_each(|number| *number = (*number - mean) * scale);
            }
            let own = LANES.min(poses - first);
            spread(kernel, working, &mut rows.numbers[first * rows.stride..], rows.stride, own);
        }
    }
}

/// The inputs of a group that come from bones.
fn products(kernel: Kernel, group: &Group, bones: &[Map], out: &mut [Lanes]) {
    #[cfg(target_arch = "x86_64")]
    if kernel.has_avx2() {
        // SAFETY: the kernel was chosen because the machine has the instructions.
        return unsafe { avx2::products(group, bones, out) };
    }
    let _ = kernel;
    let (from, to_group) = (&bones[group.bone], inverse(&bones[group.bone]));
    let mut start = 0;
    for seen in &group.seen {
        if let Some(bone) = bones.get(seen.bone) {
            for slot in start..seen.end {
                out[slot] = product(&to_group, from, bone, group.numbers[slot]);
            }
        }
        start = seen.end;
    }
}

/// From eights of one input each to rows of one pose each.
fn spread(kernel: Kernel, inputs: &[Lanes], rows: &mut [f32], stride: usize, poses: usize) {
    let (blocks, rest) = inputs.as_chunks::<LANES>();
    for (index, block) in blocks.iter().enumerate() {
        let turned = transpose(kernel, block);
        for (lane, numbers) in turned.iter().enumerate().take(poses) {
            rows[lane * stride + index * LANES..][..LANES].copy_from_slice(numbers);
        }
    }
    let first = blocks.len() * LANES;
    for (lane, row) in rows.chunks_mut(stride).enumerate().take(poses) {
        row[first..].iter_mut().zip(rest).for_each(|(slot, numbers)| *slot = numbers[lane]);
    }
}

#[inline]
fn transpose(kernel: Kernel, block: &[Lanes; LANES]) -> [Lanes; LANES] {
    #[cfg(target_arch = "x86_64")]
    if kernel.has_avx2() {
        // SAFETY: the kernel was chosen because the machine has the instructions.
        return unsafe { avx2::transpose(block) };
    }
    let _ = kernel;
    std::array::from_fn(|lane| lanes(|slot| block[slot][lane]))
}

fn lanes(of: impl Fn(usize) -> f32) -> Lanes {
    std::array::from_fn(of)
}

/// Which column and row of a map one of its numbers is.
fn place(number: u8) -> (usize, usize) {
    (usize::from(number) / 3 % 4, usize::from(number) % 3)
}

/// One number of `a⁻¹ · b`, given the rows of the inverse of `a` without its translation. Places are subtracted before
/// they are turned: far from the origin that keeps digits.
fn product(inverse: &[[Lanes; 3]; 3], a: &Map, b: &Map, number: u8) -> Lanes {
    let (column, row) = place(number);
    let along = |axis: usize, i: usize| match column {
        3 => b[9 + axis][i] - a[9 + axis][i],
        _ => b[3 * column + axis][i],
    };
    let turned = &inverse[row];
    lanes(|i| turned[0][i] * along(0, i) + turned[1][i] * along(1, i) + turned[2][i] * along(2, i))
}

/// The columns of which each row of an adjugate is the cross product.
const CROSSED: [(usize, usize); 3] = [(1, 2), (2, 0), (0, 1)];

/// Rows of the inverse of a map's matrix, by its adjugate.
fn inverse(map: &Map) -> [[Lanes; 3]; 3] {
    let cross = |a: usize, b: usize, row: usize| {
        let (next, last) = ((row + 1) % 3, (row + 2) % 3);
        let (a, b) = (&map[3 * a..], &map[3 * b..]);
        lanes(|i| a[next][i] * b[last][i] - a[last][i] * b[next][i])
    };
    let rows = CROSSED.map(|(a, b)| [0, 1, 2].map(|row| cross(a, b, row)));
    let first = &rows[0];
    let size = lanes(|i| first[0][i] * map[0][i] + first[1][i] * map[1][i] + first[2][i] * map[2][i]);
    rows.map(|row| row.map(|number| lanes(|i| number[i] / size[i])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Quat, Random, Vec3};

    #[test]
    fn maps_are_inverted_and_multiplied_as_one_at_a_time() {
        let mut random = Random::new(5);
        let mut vector = || Vec3::from_array([0; 3].map(|_| random.uniform(-1.0, 1.0)));
        let poses = 13;
        let mut bone = || {
            let size = Vec3::splat(1.2) + vector() * 0.3;
            Affine3A::from_scale_rotation_translation(size, Quat::from_scaled_axis(vector()), vector() * 9.0)
        };
        let maps: Vec<Affine3A> = (0..poses * 2).map(|_| bone()).collect();
        let mut bones = Bones::new(poses, 2);
        bones.fill(&maps);
        for pose in 0..2 * LANES {
            let (eight, lane) = (pose / LANES, pose % LANES);
            let [a, b] = [0, 1].map(|index| &bones.maps[eight * 2 + index]);
            let own = &maps[2 * pose.min(poses - 1)..][..2];
            let truth = (own[0].inverse() * own[1]).to_cols_array();
            for (number, truth) in truth.iter().enumerate() {
                let got = product(&inverse(a), a, b, number as u8)[lane];
                assert!((got - truth).abs() < 1e-4, "{pose}, {number}: {got} {truth}");
            }
        }
    }

    #[test]
    fn blocks_are_turned_by_every_kernel() {
        let block: [Lanes; LANES] = std::array::from_fn(|slot| lanes(|lane| (slot * LANES + lane) as f32));
        for kernel in [Kernel::REFERENCE, Kernel::detect()] {
            let turned = transpose(kernel, &block);
            assert!((0..64).all(|i| turned[i % 8][i / 8] == i as f32), "{}", kernel.name());
        }
    }
}
