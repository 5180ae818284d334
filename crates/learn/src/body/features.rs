//! The numbers that a group's network sees: gathered, thinned out, normalised.

use super::{GroupInputs, Plan, Recording};
use crate::matrix::{View, multiply};
use rayon::prelude::*;
use understudy_runtime::body::{BONE_INPUTS, GroupParts, InputFrame};

/// Inputs of a network over all poses.
pub(super) struct Features {
    /// Indices into the inputs of the whole twin.
    pub inputs: Vec<u32>,
    /// Subtracted from each.
    pub mean: Vec<f32>,
    /// Then multiplied.
    pub scale: Vec<f32>,
    /// The normalised numbers, `[N × inputs]`.
    pub values: Vec<f32>,
}

impl Plan {
    /// What the network of a group sees in every pose, in the plan's order. Numbers that never change are left out, and those
    /// that others explain up to a share `tolerance` of their variance.
    pub(super) fn features(&self, poses: &Recording, group: usize, tolerance: f64) -> Features {
        let (candidates, raw) = self.raw_numbers(poses, group, &self.order);
        let (wide, n) = (candidates.len(), poses.len() as f64);
        let (mut sums, mut squares) = (vec![0.0f64; wide], vec![0.0f64; wide]);
        for row in raw.chunks_exact(wide.max(1)) {
            sums.iter_mut().zip(row).for_each(|(s, r)| *s += f64::from(*r));
        }
        sums.iter_mut().for_each(|s| *s /= n);
        for row in raw.chunks_exact(wide.max(1)) {
            squares.iter_mut().zip(row).zip(&sums).for_each(|((q, r), m)| *q += (f64::from(*r) - m).powi(2));
        }
        let spread: Vec<f64> = squares.iter().map(|q| (q / n).sqrt()).collect();
        // A number that never changes tells nothing and would be divided by zero.
        let controls_at = (poses.skeleton().len() * BONE_INPUTS) as u32;
        let unit = |input: u32| match input < controls_at {
            true => self.armature.unit_of_number(input as usize / BONE_INPUTS, input as usize % BONE_INPUTS),
            false => 1.0,
        };
        let varying: Vec<usize> = (0..wide).filter(|i| spread[*i] > 1e-5 * unit(candidates[*i])).collect();
        let kept = independent(&raw, wide, &varying, &sums, &spread, tolerance);
        let mean: Vec<f32> = kept.iter().map(|i| sums[*i] as f32).collect();
        let scale: Vec<f32> = kept.iter().map(|i| (1.0 / spread[*i]) as f32).collect();
        let rows = raw.chunks_exact(wide.max(1));
        let normalised = rows
            .flat_map(|row| {
                kept.iter().enumerate().map(|(k, i)| (row[*i] - mean[k]) * scale[k]).collect::<Vec<_>>()
            })
            .collect();
        let inputs = kept.iter().map(|i| candidates[*i]).collect();
        Features { inputs, mean, scale, values: normalised }
    }

    /// What a trained group sees in some poses, `[chosen × inputs]`.
    pub(super) fn seen(
        &self,
        poses: &Recording,
        group: usize,
        parts: &GroupParts,
        chosen: &[usize],
    ) -> Vec<f32> {
        let (candidates, raw) = self.raw_numbers(poses, group, chosen);
        let place = |input: &u32| candidates.iter().position(|candidate| candidate == input);
        let places: Vec<usize> = parts.inputs.iter().filter_map(place).collect();
        let row = |row: &[f32]| -> Vec<f32> {
            let numbers = places.iter().zip(parts.mean.iter().zip(&parts.scale));
            numbers.map(|(place, (mean, scale))| (row[*place] - mean) * scale).collect()
        };
        raw.chunks_exact(candidates.len().max(1)).flat_map(row).collect()
    }

    /// Indices of all numbers that a group may see, and their values in the chosen poses.
    fn raw_numbers(&self, poses: &Recording, group: usize, chosen: &[usize]) -> (Vec<u32>, Vec<f32>) {
        let GroupInputs { bones, controls } = &self.inputs[group];
        let own = self.groups[group].0 as usize;
        let first_control = (poses.skeleton().len() * BONE_INPUTS) as u32;
        let used = self.used_controls();
        let control_slot = |c: &u32| used.iter().position(|u| u == c).map_or(0, |slot| slot as u32);
        let candidates: Vec<u32> = bones
            .iter()
            .flat_map(|bone| (0..BONE_INPUTS as u32).map(move |n| bone * BONE_INPUTS as u32 + n))
            .chain(controls.iter().map(|c| first_control + control_slot(c)))
            .collect();
        let row = |pose: usize| {
            let global = poses.bones_of(pose);
            let to_group = self.armature.to_frame(&global[own]);
            let bone_numbers = bones.iter().flat_map(|bone| {
                let bone = *bone as usize;
                let relative = match (self.frame, self.armature.parents[bone]) {
                    (InputFrame::Group, _) => to_group * global[bone],
                    (InputFrame::Parent, Some(parent)) => {
                        self.armature.to_frame(&global[parent]) * global[bone]
                    }
                    (InputFrame::Parent, None) => global[bone],
                };
                relative.to_cols_array()
            });
            let values = controls.iter().map(|c| poses.controls_of(pose)[*c as usize]);
            bone_numbers.chain(values).collect::<Vec<f32>>()
        };
        let raw: Vec<f32> = chosen.par_iter().flat_map_iter(|pose| row(*pose)).collect();
        (candidates, raw)
    }
}

/// Those of the `varying` columns that the others do not explain linearly up to a share `tolerance` of
/// their variance: a Cholesky factorisation of the correlations that takes the least explained column next.
/// The numbers of a rotation and the bones of a chain say much the same; a network learns better without.
fn independent(
    raw: &[f32],
    wide: usize,
    varying: &[usize],
    mean: &[f64],
    spread: &[f64],
    tolerance: f64,
) -> Vec<usize> {
    const MOST_ROWS: usize = 2500;
    /// Columns that are explained as little as the least explained, up to this share.
    const TIE: f64 = 0.99;
    if tolerance <= 0.0 || varying.is_empty() {
        return varying.to_vec();
    }
    let (count, all) = (varying.len(), raw.len() / wide);
    let rows = all.min(MOST_ROWS);
    let mut normal = vec![0.0f32; rows * count];
    for (place, out) in normal.chunks_exact_mut(count).enumerate() {
        let row = &raw[(place * all / rows) * wide..][..wide];
        for (slot, i) in out.iter_mut().zip(varying) {
            *slot = ((f64::from(row[*i]) - mean[*i]) / spread[*i]) as f32;
        }
    }
    let mut gram = vec![0.0f32; count * count];
    multiply(&mut gram, 0.0, View::new(&normal, rows, count).transposed(), View::new(&normal, rows, count));
    let gram: Vec<f64> = gram.iter().map(|g| f64::from(*g) / rows as f64).collect();
    let mut left: Vec<f64> = (0..count).map(|i| gram[i * count + i]).collect();
    let mut factor: Vec<Vec<f64>> = Vec::new();
    let mut chosen: Vec<usize> = Vec::new();
    loop {
        let open = || (0..count).filter(|i| !chosen.contains(i));
        let most = open().map(|i| left[i]).fold(0.0, f64::max);
        // Of those that are as good the first, so that rounding does not choose.
        let Some(pivot) = open().find(|i| left[*i] >= TIE * most).filter(|_| most >= tolerance) else {
            break;
        };
        let root = left[pivot].sqrt();
        let column: Vec<f64> = (0..count)
            .map(|i| {
                let known: f64 = factor.iter().map(|column| column[i] * column[pivot]).sum();
                (gram[i * count + pivot] - known) / root
            })
            .collect();
        left.iter_mut().zip(&column).for_each(|(left, c)| *left -= c * c);
        factor.push(column);
        chosen.push(pivot);
    }
    chosen.sort_unstable();
    chosen.into_iter().map(|i| varying[i]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    #[test]
    fn columns_that_others_explain_are_left_out() {
        let mut random = Random::new(3);
        // Two free numbers, their sum, a copy with a little noise and a square.
        let raw: Vec<f32> = (0..800)
            .flat_map(|_| {
                let (a, b) = (random.normal() as f32, random.normal() as f32);
                [a, b, a + b, a + 0.001 * random.normal() as f32, a * a]
            })
            .collect();
        let mean = [0.0, 0.0, 0.0, 0.0, 1.0];
        let spread = [1.0, 1.0, 2f64.sqrt(), 1.0, 2f64.sqrt()];
        let all = [0, 1, 2, 3, 4];
        assert_eq!(independent(&raw, 5, &all, &mean, &spread, 0.0), all);
        let kept = independent(&raw, 5, &all, &mean, &spread, 0.01);
        assert_eq!(kept.len(), 3, "{kept:?}");
        assert!(kept.contains(&4), "a square is no linear combination: {kept:?}");
    }
}
