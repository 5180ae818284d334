//! Inputs of eight poses at a time: a bone in a group's frame is a product of two affine maps, of which a network
//! sees few of the twelve numbers. Lanes are poses, so that only those are computed.

#[cfg(target_arch = "x86_64")]
mod avx2;

use super::super::{BONE_INPUTS, Group};
use super::Frames;
use crate::dense::Kernel;
use understudy_core::Affine3A;

/// Poses at a time.
pub const LANES: usize = 8;

/// One number in eight poses.
pub type Lanes = [f32; LANES];

/// An affine map by columns in eight poses.
type Map = [Lanes; BONE_INPUTS];

/// The bones of some poses: eight poses at a time, each `[J]`.
#[derive(Default)]
pub struct BoneLanes {
    maps: Vec<Map>,
    /// Their rigid frames, where the twin wants them.
    frames: Vec<Map>,
    count: usize,
}

/// The frame of a group's bone.
#[derive(Clone, Copy)]
enum Frame<'a> {
    /// The bone itself, which may stretch.
    Bone(&'a Map),
    /// Columns that are orthonormal: the inverse is the transpose.
    Rigid(&'a Map),
}

/// Some numbers of every pose, pose after pose.
pub struct Rows<N> {
    /// All of them.
    pub numbers: N,
    /// From one pose to the next.
    pub stride: usize,
}

impl BoneLanes {
    /// Memory for some poses.
    pub fn new(poses: usize, count: usize, rigid: bool) -> Self {
        let maps = vec![[[0.0; LANES]; BONE_INPUTS]; poses.div_ceil(LANES) * count];
        Self { frames: if rigid { maps.clone() } else { Vec::new() }, maps, count }
    }

    /// Takes poses over, `[poses · J]`. Lanes beyond the last repeat it.
    pub fn fill(&mut self, bones: &[Affine3A], frames: Frames<'_>) {
        fill(&mut self.maps, self.count, bones);
        if frames.rigid {
            fill(&mut self.frames, self.count, frames.frames);
        }
    }

    /// Writes the inputs of one group in all poses to `rows`. `controls`: inputs that are no bones', by their index.
    /// `working`: one per input.
    pub fn input_features(
        &self,
        kernel: Kernel,
        group: &Group,
        poses: usize,
        controls: &Rows<&[f32]>,
        working: &mut [Lanes],
        rows: &mut Rows<&mut [f32]>,
    ) {
        let working = &mut working[..group.inputs.len()];
        let stride = rows.stride;
        let bone_lanes = self.maps.chunks_exact(self.count.max(1)).take(poses.div_ceil(LANES));
        for (eight, bones) in bone_lanes.enumerate() {
            let frame = match self.frames.get(eight * self.count + group.bone) {
                Some(frame) => Frame::Rigid(frame),
                None => Frame::Bone(&bones[group.bone]),
            };
            products(kernel, group, frame, bones, working);
            let first = eight * LANES;
            let mut start = 0;
            for seen in &group.bone_inputs {
                if seen.bone >= bones.len() {
                    for slot in start..seen.end {
                        let input = group.inputs[slot] as usize;
                        let pose = |lane: usize| (first + lane).min(poses - 1);
                        working[slot] = lanes(|lane| controls.numbers[pose(lane) * controls.stride + input]);
                    }
                }
                start = seen.end;
            }
            let own = LANES.min(poses - first);
            let rows = &mut rows.numbers[first * rows.stride..];
            spread(kernel, working, (&group.mean, &group.scale), rows, stride, own);
        }
    }
}

fn fill(maps: &mut [Map], count: usize, bones: &[Affine3A]) {
    let Some(last) = bones.len().checked_div(count).and_then(|poses| poses.checked_sub(1)) else {
        return;
    };
    for (eight, maps) in maps.chunks_exact_mut(count).enumerate().take(last / LANES + 1) {
        for lane in 0..LANES {
            let pose = (eight * LANES + lane).min(last);
            for (bone, map) in bones[pose * count..].iter().zip(&mut *maps) {
                map.iter_mut().zip(bone.to_cols_array()).for_each(|(to, number)| to[lane] = number);
            }
        }
    }
}

/// The inputs of a group that come from bones.
fn products(kernel: Kernel, group: &Group, frame: Frame<'_>, bones: &[Map], out: &mut [Lanes]) {
    #[cfg(target_arch = "x86_64")]
    if kernel.has_avx2() {
        // SAFETY: the kernel was chosen because the machine has the instructions.
        return unsafe { avx2::products(group, frame, bones, out) };
    }
    let _ = kernel;
    let (from, to_group) = match frame {
        Frame::Bone(map) => (map, inverse(map)),
        Frame::Rigid(map) => (map, [0, 1, 2].map(|column| [0, 1, 2].map(|row| map[3 * column + row]))),
    };
    let mut start = 0;
    for seen in &group.bone_inputs {
        if let Some(bone) = bones.get(seen.bone) {
            for slot in start..seen.end {
                out[slot] = product(&to_group, from, bone, group.numbers[slot]);
            }
        }
        start = seen.end;
    }
}

/// From bone_lanes of one input each to rows of one pose each, less the mean and times the scale of every input.
fn spread(
    kernel: Kernel,
    inputs: &[Lanes],
    (mean, scale): (&[f32], &[f32]),
    rows: &mut [f32],
    stride: usize,
    poses: usize,
) {
    assert!(mean.len() == inputs.len() && scale.len() == inputs.len(), "every input has a mean and a scale");
    #[cfg(target_arch = "x86_64")]
    if kernel.has_avx2() && inputs.len() >= LANES && poses == LANES {
        assert!(rows.len() >= (LANES - 1) * stride + inputs.len(), "rows have room");
        // SAFETY: the kernel was chosen because the machine has the instructions; lengths were asserted.
        return unsafe { avx2::spread(inputs, (mean, scale), rows, stride) };
    }
    let _ = kernel;
    for (lane, row) in rows.chunks_mut(stride).enumerate().take(poses) {
        let norms = inputs.iter().zip(mean.iter().zip(scale));
        row.iter_mut()
            .zip(norms)
            .for_each(|(slot, (input, (mean, scale)))| *slot = (input[lane] - mean) * scale);
    }
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
        let mut bones = BoneLanes::new(poses, 2, false);
        bones.fill(&maps, Frames { frames: &maps, rigid: false });
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
    fn inputs_become_rows_by_every_kernel() {
        for (count, poses) in [(1, 8), (7, 8), (8, 8), (9, 8), (23, 8), (32, 8), (23, 5)] {
            let inputs: Vec<Lanes> =
                (0..count).map(|slot| lanes(|lane| (slot * LANES + lane) as f32)).collect();
            let mean: Vec<f32> = (0..count).map(|slot| slot as f32).collect();
            let scale: Vec<f32> = (0..count).map(|slot| 1.0 / (slot + 1) as f32).collect();
            for kernel in Kernel::all() {
                let stride = count + 3;
                let mut rows = vec![-1.0; stride * LANES];
                spread(kernel, &inputs, (&mean, &scale), &mut rows, stride, poses);
                for (place, got) in rows.iter().enumerate() {
                    let (lane, slot) = (place / stride, place % stride);
                    let value = |slot: usize| (inputs[slot][lane] - mean[slot]) * scale[slot];
                    let want = if slot < count && lane < poses { value(slot) } else { -1.0 };
                    assert!(*got == want, "{count}, {}: {lane} {slot} {got} {want}", kernel.name());
                }
            }
        }
    }
}
