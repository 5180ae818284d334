//! From derivatives by learned bones to those by controls, by the chain rule, without allocating.

use super::{
    AIM_INPUTS, Bone, Factor, LearnedMechanism, MATRIX, Moves, NONE, STRETCH, TURN, rotation_and_stretch,
};
use crate::dense::{Kernel, Precision};
use crate::twin::network::gradient::{Between, Chain, spread};
use crate::twin::network::unpack_dense;
use understudy_core::{Affine3A, Mat3A, Vec3A};

/// Memory for the way back, made once.
pub(crate) struct LearnedGradient {
    kernel: Kernel,
    bones: Vec<BoneGradient>,
    space: super::LearnedSpace,
    by_terms: Vec<f32>,
    by_factors: Vec<f32>,
    /// By all bones in the world, guides included.
    by_world: Vec<Affine3A>,
    /// By the controls and by what a bone sees of its goal.
    by_values: Vec<f32>,
}

/// No slope at all.
const ZERO: Affine3A = Affine3A { matrix3: Mat3A::ZERO, translation: Vec3A::ZERO };

struct BoneGradient {
    /// Weights of terms by rows.
    closed: Vec<f32>,
    /// Where there is a network.
    chain: Option<Chain>,
    by_numbers: Vec<f32>,
}

impl LearnedMechanism {
    /// Memory for [`LearnedMechanism::backward`].
    pub(crate) fn gradient_space(&self) -> LearnedGradient {
        let one = |bone: &Bone| BoneGradient {
            closed: unpack_dense(&bone.closed).pop().unwrap_or_default().weights,
            chain: (!bone.layers.is_empty()).then(|| {
                Chain::new(&unpack_dense(&bone.layers), bone.inputs.inputs.len(), Precision::Single)
            }),
            by_numbers: vec![0.0; bone.moves.numbers()],
        };
        LearnedGradient {
            kernel: Kernel::detect(),
            bones: self.bones.iter().map(one).collect(),
            space: self.space(),
            by_terms: vec![0.0; self.longest],
            by_factors: vec![0.0; self.longest],
            by_world: vec![ZERO; self.bones.len()],
            by_values: vec![0.0; self.controls + AIM_INPUTS],
        }
    }

    /// Derivatives by the controls, `[C]`, of what has the derivatives `by_global` by the numbers of the world transforms,
    /// `[J]`, that the controls give.
    pub(crate) fn backward(
        &self,
        controls: &[f32],
        by_global: &[Affine3A],
        memory: &mut LearnedGradient,
        by_controls: &mut [f32],
    ) {
        self.place(controls, &mut memory.space);
        memory.by_world.fill(ZERO);
        memory.by_world[..self.posed].copy_from_slice(&by_global[..self.posed]);
        memory.by_values.fill(0.0);
        for &index in self.order.iter().rev() {
            let index = index as usize;
            let bone = &self.bones[index];
            let frame = bone.frame(&mut memory.space);
            let local = bone.local(&mut memory.space);
            let Affine3A { matrix3: by_matrix, translation: by_place } = memory.by_world[index];
            let place = local.translation;
            let outer = Mat3A::from_cols(by_place * place.x, by_place * place.y, by_place * place.z);
            let by_frame =
                Affine3A { matrix3: by_matrix * local.matrix3.transpose() + outer, translation: by_place };
            let above = frame.matrix3.transpose();
            memory.by_values[self.controls..].fill(0.0);
            bone.backward(index, (above * by_matrix, above * by_place), memory);
            let world = &memory.space.world;
            if let Some(aim) = &bone.aim {
                let parent = bone.parent.map_or(Affine3A::IDENTITY, |parent| world[parent]);
                let (mut by_parent, mut by_target) = (ZERO, ZERO);
                let by_seen = &memory.by_values[self.controls..];
                let ends = (&mut by_parent, &mut by_target);
                aim.backward((&parent, &world[aim.target]), &by_frame, by_seen, ends);
                add(&mut memory.by_world[aim.target], &by_target);
                if let Some(parent) = bone.parent {
                    add(&mut memory.by_world[parent], &by_parent);
                }
            } else if let Some(parent) = bone.parent {
                add(&mut memory.by_world[parent], &by_frame);
            }
        }
        by_controls[..self.controls].copy_from_slice(&memory.by_values[..self.controls]);
    }
}

fn add(sum: &mut Affine3A, more: &Affine3A) {
    sum.matrix3 += more.matrix3;
    sum.translation += more.translation;
}

impl Bone {
    /// What evaluation left in `memory.space` is this bone's: its values, numbers, factors and terms.
    fn backward(&self, index: usize, by_local: (Mat3A, Vec3A), memory: &mut LearnedGradient) {
        let LearnedGradient { kernel, bones, space, by_terms, by_factors, by_values, .. } = memory;
        let controls: &[f32] = &space.values;
        let BoneGradient { closed, chain, by_numbers } = &mut bones[index];
        if by_numbers.is_empty() {
            return;
        }
        self.moves.backward(&self.rest, &space.numbers, by_local, by_numbers);
        let terms = self.terms.len();
        by_terms[..terms].fill(0.0);
        for (slope, row) in by_numbers.iter().zip(closed.chunks_exact(terms.max(1))) {
            by_terms[..terms].iter_mut().zip(row).for_each(|(sum, weight)| *sum += slope * weight);
        }
        by_factors[..self.factors.len()].fill(0.0);
        for (term, slope) in self.terms.iter().zip(&*by_terms) {
            for (slot, factor) in term.iter().enumerate().filter(|(_, factor)| **factor != NONE) {
                let others = term.iter().enumerate().filter(|(other, own)| *other != slot && **own != NONE);
                let product: f32 = others.map(|(_, other)| space.factors[*other as usize]).product();
                by_factors[*factor as usize] += slope * product;
            }
        }
        for ((input, factor), slope) in self.factors.iter().zip(&*by_factors) {
            let place = *input as usize;
            let control = self.inputs.inputs[place] as usize;
            let (value, scale) = (controls[control], self.inputs.scale[place]);
            let derivative = match factor {
                Factor::Power(0) => 0.0,
                Factor::Power(power) => {
                    let x = (value - self.inputs.mean[place]) * scale;
                    *power as f32 * x.powi(*power as i32 - 1) * scale
                }
                Factor::Sine(frequency) => frequency * (frequency * value).cos(),
                Factor::Cosine(frequency) => -frequency * (frequency * value).sin(),
            };
            by_values[control] += slope * derivative;
        }
        if let Some(chain) = chain {
            self.inputs.features(controls, &mut chain.outputs[0]);
            chain.forward(*kernel, &self.layers, Between::Tanh);
            let last = chain.slopes.last_mut().expect("inputs at least");
            last.fill(0.0);
            last[..by_numbers.len()].copy_from_slice(by_numbers);
            chain.backward(*kernel, Between::Tanh);
            spread(&chain.slopes[0], &self.inputs.inputs, &self.inputs.scale, by_values);
        }
    }
}

impl Moves {
    /// From derivatives by a local transform to those by the numbers that say it.
    fn backward(
        self,
        rest: &Affine3A,
        numbers: &[f32],
        (by_matrix, by_place): (Mat3A, Vec3A),
        out: &mut [f32],
    ) {
        let mut done = 0;
        let mut put = |values: &[f32]| {
            out[done..done + values.len()].copy_from_slice(values);
            done += values.len();
        };
        if self.collapses {
            let own: [f32; MATRIX] = by_matrix.to_cols_array();
            put(&own);
        } else if self.turns || self.stretches {
            let (rotation, mut stretch) =
                rotation_and_stretch(&rest.matrix3).unwrap_or((Mat3A::IDENTITY, rest.matrix3));
            let (six, left) = numbers.split_at(if self.turns { TURN } else { 0 });
            let turn = if self.turns { super::rotation_of_six(six) } else { Mat3A::IDENTITY };
            if self.stretches {
                stretch += super::upper_triangle(&left[..STRETCH]);
            }
            if self.turns {
                put(&six_backward(six, rotation.transpose() * by_matrix * stretch.transpose()));
            }
            if self.stretches {
                let by = (rotation * turn).transpose() * by_matrix;
                put(&[by.x_axis.x, by.y_axis.x, by.y_axis.y, by.z_axis.x, by.z_axis.y, by.z_axis.z]);
            }
        }
        if self.shifts {
            put(&by_place.to_array());
        }
    }
}

/// Derivatives by the six numbers of a rotation from those by its columns.
fn six_backward(six: &[f32], by: Mat3A) -> [f32; TURN] {
    let a = Vec3A::X + Vec3A::new(six[0], six[1], six[2]);
    let b = Vec3A::Y + Vec3A::new(six[3], six[4], six[5]);
    let x = a.normalize_or(Vec3A::X);
    let left = b - x * x.dot(b);
    let y = left.normalize_or(Vec3A::Y);
    let mut by_x = by.x_axis + y.cross(by.z_axis);
    let by_y = by.y_axis + by.z_axis.cross(x);
    let by_left = (by_y - y * y.dot(by_y)) / left.length().max(1e-12);
    by_x -= by_left * x.dot(b) + b * x.dot(by_left);
    let by_b = by_left - x * x.dot(by_left);
    let by_a = (by_x - x * x.dot(by_x)) / a.length().max(1e-12);
    [by_a.x, by_a.y, by_a.z, by_b.x, by_b.y, by_b.z]
}
