//! Bones of a rig whose mechanism nobody knows: for every bone a small function of exactly the controls that move it,
//! in its parent's frame, put together along the tree.
//!
//! `y = W φ(p) + n(p)`, where `φ` are products of sines, cosines and powers of the controls, whose weights `W` are found
//! in closed form, and `n` is a dense network, tanh between its layers, where those are not enough. Of a local transform
//! `L = [R U | t]` with a rotation `R` and an upper triangle `U` (scale and shear):
//!
//! `R = R₀ G(e₁ + y₀…₂, e₂ + y₃…₅)`, `t = t₀ + y`, `U = U₀ + y`,
//!
//! `G` makes two columns orthonormal (Gram and Schmidt) and adds the third. Six numbers of a rotation have no jumps,
//! wherever it turns (Zhou et al. 2019). What never changes is not learned: a bone that only turns keeps its length
//! whatever the networks say.
//!
//! A bone of a limb may be learned in a frame that points from its root to its goal ([`Aim`]), and sees how far that is.
//! Behind the bones that a twin asks for, there may be guides: bones that it does not, in whose frames others are simple.

mod aim;
mod gradient;

pub use aim::{AIM_INPUTS, Aim};
pub(crate) use gradient::LearnedGradient;

use crate::TwinError;
use crate::dense::{Activation, Kernel, Layer, Precision};
use crate::twin::network::{
    DenseParts, NormalisedInputs, check_chain, check_inputs, pack_dense, unpack_dense,
};
use crate::twin::shared::{check_finite, check_length};
use understudy_core::{Affine3A, Mat3A, Vec3A};

/// Says that a term has no such factor, or a bone no parent.
pub const NONE: u32 = u32::MAX;

/// Numbers of a rotation, of a translation and of a stretch.
const TURN: usize = 6;
const MOVE: usize = 3;
const STRETCH: usize = 6;
const MATRIX: usize = 9;

/// Factors of a term at most.
pub const FACTORS: usize = 3;

/// What of a local transform is learned; the rest stays as it is at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moves {
    /// The rotation.
    pub turns: bool,
    /// The translation.
    pub shifts: bool,
    /// Scale and shear.
    pub stretches: bool,
    /// Instead of rotation and stretch the nine numbers of the matrix, for bones that shrink to nothing.
    pub collapses: bool,
}

impl Moves {
    /// How many numbers say it.
    pub fn numbers(self) -> usize {
        let matrix = match (self.collapses, self.turns, self.stretches) {
            (true, ..) => MATRIX,
            (false, turns, stretches) => usize::from(turns) * TURN + usize::from(stretches) * STRETCH,
        };
        matrix + usize::from(self.shifts) * MOVE
    }

    pub(super) fn bits(self) -> u32 {
        [self.turns, self.shifts, self.stretches, self.collapses]
            .into_iter()
            .enumerate()
            .map(|(bit, set)| u32::from(set) << bit)
            .sum()
    }

    pub(super) fn from_bits(bits: u32) -> Self {
        let [turns, shifts, stretches, collapses] = [0, 1, 2, 3].map(|bit| bits >> bit & 1 == 1);
        Self { turns, shifts, stretches, collapses }
    }
}

/// A function of one control `p`, of which terms are products.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Factor {
    /// `x^n`, `x` the normalised control.
    Power(u32),
    /// `sin(ω p)`, `ω` in radians per unit of the control.
    Sine(f32),
    /// `cos(ω p)`.
    Cosine(f32),
}

/// What a bone does, before it is packed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LearnedBoneParts {
    /// The bone in whose frame it moves; `None` for the world.
    pub parent: Option<usize>,
    /// Where it is at rest, in that frame.
    pub rest: Affine3A,
    /// What is learned.
    pub moves: Moves,
    /// Turns the parent's frame towards a goal.
    pub aim: Option<Aim>,
    /// Controls that it sees; behind all controls come the [`AIM_INPUTS`].
    pub inputs: Vec<u32>,
    /// Subtracted from each.
    pub mean: Vec<f32>,
    /// Then multiplied.
    pub scale: Vec<f32>,
    /// Functions of single controls: a place among `inputs`, and which function.
    pub factors: Vec<(u32, Factor)>,
    /// Products of factors, by their places; [`NONE`] where there are fewer.
    pub terms: Vec<[u32; FACTORS]>,
    /// From terms to numbers `[numbers × terms]`, and a constant.
    pub closed: DenseParts,
    /// tanh after all but the last, which gives as many numbers; empty where terms are enough.
    pub layers: Vec<DenseParts>,
}

/// Learned bones, checked and packed.
#[derive(Debug, Clone)]
pub struct LearnedMechanism {
    bones: Vec<Bone>,
    /// Parents before children.
    order: Vec<u32>,
    /// Longest lists of any bone.
    longest: usize,
    /// Bones that are asked for; the others are guides.
    posed: usize,
    controls: usize,
}

#[derive(Debug, Clone)]
struct Bone {
    parent: Option<usize>,
    rest: Affine3A,
    moves: Moves,
    aim: Option<Aim>,
    inputs: NormalisedInputs,
    factors: Vec<(u32, Factor)>,
    terms: Vec<[u32; FACTORS]>,
    /// `None` for a bone that does not move in its parent's frame.
    closed: Option<Layer>,
    layers: Vec<Layer>,
}

/// Working memory.
#[derive(Debug, Clone)]
pub(crate) struct LearnedSpace {
    kernel: Kernel,
    /// All bones in the world.
    world: Vec<Affine3A>,
    /// The controls, and behind them what the bone at hand sees of its goal.
    values: Vec<f32>,
    /// Of the factors; a one follows them, which [`NONE`] reads.
    factors: Vec<f32>,
    terms: Vec<f32>,
    numbers: Vec<f32>,
    buffers: [Vec<f32>; 2],
}

/// A local matrix as rotation and upper triangle, `M = R U`; a mirrored one has a negative last number in `U`. `None`
/// where it is (nearly) singular.
pub fn rotation_and_stretch(matrix: &Mat3A) -> Option<(Mat3A, Mat3A)> {
    let size = matrix.x_axis.length().max(matrix.y_axis.length()).max(matrix.z_axis.length());
    let least = 1e-4 * size;
    let x = matrix.x_axis;
    let right = matrix.y_axis - x * (x.dot(matrix.y_axis) / x.length_squared().max(f32::MIN_POSITIVE));
    if !(size > 1e-6 && x.length() > least && right.length() > least) {
        return None;
    }
    let (x, y) = (x.normalize(), right.normalize());
    let rotation = Mat3A::from_cols(x, y, x.cross(y));
    Some((rotation, rotation.transpose() * *matrix))
}

/// The rotation of six numbers: the first column's direction, and the second's as far as it is perpendicular.
pub fn rotation_of_six(six: &[f32]) -> Mat3A {
    let x = (Vec3A::X + Vec3A::new(six[0], six[1], six[2])).try_normalize().unwrap_or(Vec3A::X);
    let other = Vec3A::Y + Vec3A::new(six[3], six[4], six[5]);
    let y = (other - x * x.dot(other)).try_normalize().unwrap_or_else(|| x.any_orthonormal_vector());
    Mat3A::from_cols(x, y, x.cross(y))
}

/// Six numbers column by column.
fn upper_triangle(six: &[f32]) -> Mat3A {
    Mat3A::from_cols(
        Vec3A::new(six[0], 0.0, 0.0),
        Vec3A::new(six[1], six[2], 0.0),
        Vec3A::new(six[3], six[4], six[5]),
    )
}

impl Moves {
    /// The local transform that numbers say, in the order of rotation (or matrix), stretch, translation.
    pub fn local(self, rest: &Affine3A, numbers: &[f32]) -> Affine3A {
        let mut numbers = numbers;
        let mut take = |count: usize| {
            let (first, left) = numbers.split_at(count);
            numbers = left;
            first
        };
        let mut local = *rest;
        if self.collapses {
            let own = Mat3A::from_cols_slice(take(MATRIX));
            local.matrix3 += own;
        } else if self.turns || self.stretches {
            let (rotation, stretch) =
                rotation_and_stretch(&rest.matrix3).unwrap_or((Mat3A::IDENTITY, rest.matrix3));
            let turn = if self.turns { rotation_of_six(take(TURN)) } else { Mat3A::IDENTITY };
            let mut own = stretch;
            if self.stretches {
                own += upper_triangle(take(STRETCH));
            }
            local.matrix3 = rotation * turn * own;
        }
        if self.shifts {
            local.translation += Vec3A::from_slice(take(MOVE));
        }
        local
    }

    /// The reverse of decoding: what the numbers of a local transform should be. `None` of a singular one that is not
    /// said to collapse.
    pub fn numbers_of(self, rest: &Affine3A, local: &Affine3A, out: &mut Vec<f32>) -> Option<()> {
        out.clear();
        if self.collapses {
            out.extend((local.matrix3 - rest.matrix3).to_cols_array());
        } else if self.turns || self.stretches {
            let (rest_rotation, rest_stretch) = rotation_and_stretch(&rest.matrix3)?;
            let (rotation, stretch) = rotation_and_stretch(&local.matrix3)?;
            if self.turns {
                let turn = rest_rotation.transpose() * rotation;
                out.extend((turn.x_axis - Vec3A::X).to_array());
                out.extend((turn.y_axis - Vec3A::Y).to_array());
            }
            if self.stretches {
                let by = stretch - rest_stretch;
                out.extend([by.x_axis.x, by.y_axis.x, by.y_axis.y, by.z_axis.x, by.z_axis.y, by.z_axis.z]);
            }
        }
        if self.shifts {
            out.extend((local.translation - rest.translation).to_array());
        }
        Some(())
    }
}

impl Factor {
    /// Of the normalised control `x` and the control itself.
    fn value(self, x: f32, control: f32) -> f32 {
        match self {
            Self::Power(power) => x.powi(power as i32),
            Self::Sine(frequency) => (frequency * control).sin(),
            Self::Cosine(frequency) => (frequency * control).cos(),
        }
    }
}

impl PartialEq for LearnedMechanism {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

/// Powers that make sense.
const MOST_POWER: u32 = 9;

impl LearnedMechanism {
    /// Checks and packs; `controls`: how many there are, `guides`: how many of the last bones nobody asks for.
    pub fn new(parts: Vec<LearnedBoneParts>, controls: usize, guides: usize) -> Result<Self, TwinError> {
        let needs = |bone: &LearnedBoneParts| [bone.parent, bone.aim.as_ref().map(|aim| aim.target)];
        let order = order(&parts.iter().map(needs).collect::<Vec<_>>())?;
        let posed = parts.len().checked_sub(guides).ok_or_else(|| TwinError::Part {
            what: "mechanism".into(),
            problem: format!("{guides} of its {} bones are guides", parts.len()),
        })?;
        let bones: Vec<Bone> = parts
            .into_iter()
            .enumerate()
            .map(|(index, parts)| Bone::new(index, parts, controls))
            .collect::<Result<_, _>>()?;
        let longest = bones.iter().map(Bone::longest).max().unwrap_or(0);
        Ok(Self { bones, order, longest, posed, controls })
    }

    /// The parts that it is made of.
    pub fn parts(&self) -> Vec<LearnedBoneParts> {
        self.bones.iter().map(Bone::parts).collect()
    }

    /// Number of bones that are asked for.
    pub fn bone_count(&self) -> usize {
        self.posed
    }

    /// Number of bones that are only needed by others.
    pub fn guide_count(&self) -> usize {
        self.bones.len() - self.posed
    }

    /// How many bones have a network besides what was found in closed form.
    pub fn network_count(&self) -> usize {
        self.bones.iter().filter(|bone| !bone.layers.is_empty()).count()
    }

    /// Multiply-adds per pose.
    pub fn multiply_adds(&self) -> usize {
        let layers = self.bones.iter().flat_map(|bone| bone.closed.iter().chain(&bone.layers));
        layers.map(|layer| layer.rows() * layer.columns()).sum()
    }

    /// Memory to evaluate it.
    pub(crate) fn space(&self) -> LearnedSpace {
        let buffer = || vec![0.0; self.longest];
        LearnedSpace {
            kernel: Kernel::detect(),
            world: vec![Affine3A::IDENTITY; self.bones.len()],
            values: vec![0.0; self.controls + AIM_INPUTS],
            factors: buffer(),
            terms: buffer(),
            numbers: buffer(),
            buffers: [buffer(), buffer()],
        }
    }

    /// World transforms of all bones.
    pub(crate) fn pose(&self, controls: &[f32], space: &mut LearnedSpace, out: &mut [Affine3A]) {
        self.place(controls, space);
        out[..self.posed].copy_from_slice(&space.world[..self.posed]);
    }

    /// All bones, guides too, into `space.world`.
    fn place(&self, controls: &[f32], space: &mut LearnedSpace) {
        space.values[..self.controls].copy_from_slice(&controls[..self.controls]);
        for &index in &self.order {
            let bone = &self.bones[index as usize];
            let frame = bone.frame(space);
            space.world[index as usize] = frame * bone.local(space);
        }
    }
}

/// What each bone needs (parent and goal) before it.
fn order(needs: &[[Option<usize>; 2]]) -> Result<Vec<u32>, TwinError> {
    let count = needs.len();
    if let Some(index) = needs.iter().flatten().flatten().find(|bone| **bone >= count) {
        return Err(TwinError::Index { what: "parent in the mechanism".into(), index: *index, count });
    }
    let mut order = Vec::with_capacity(count);
    // Bones that were begun, and those that are done.
    let (mut begun, mut done) = (vec![false; count], vec![false; count]);
    let mut waiting = Vec::new();
    for start in 0..count {
        waiting.push(start);
        while let Some(&bone) = waiting.last() {
            let missing = needs[bone].iter().flatten().find(|other| !done[**other]);
            match missing {
                _ if done[bone] => {
                    waiting.pop();
                }
                Some(other) if begun[*other] => return Err(TwinError::Cycle { bone: start }),
                Some(other) => {
                    begun[bone] = true;
                    waiting.push(*other);
                }
                None => {
                    done[bone] = true;
                    order.push(bone as u32);
                    waiting.pop();
                }
            }
        }
    }
    Ok(order)
}

impl Bone {
    fn new(index: usize, parts: LearnedBoneParts, controls: usize) -> Result<Self, TwinError> {
        let LearnedBoneParts {
            parent,
            rest,
            moves,
            aim,
            inputs,
            mean,
            scale,
            factors,
            terms,
            closed,
            layers,
        } = parts;
        let name = format!("bone {index} of the mechanism");
        let seen = if aim.is_some() { controls + AIM_INPUTS } else { controls };
        check_inputs(&name, &inputs, &mean, &scale, seen)?;
        check_finite(&format!("{name}: rest"), [rest.is_finite()].into_iter())?;
        let part = |problem: String| TwinError::Part { what: name.clone(), problem };
        if aim.as_ref().is_some_and(|aim| !aim.is_sane() || aim.target == index) {
            return Err(part("it points to no goal".into()));
        }
        if (moves.turns || moves.stretches)
            && !moves.collapses
            && rotation_and_stretch(&rest.matrix3).is_none()
        {
            return Err(part("its rest transform has no rotation".into()));
        }
        if moves.collapses && (moves.turns || moves.stretches) {
            return Err(part("it has a rotation and a matrix".into()));
        }
        for (input, factor) in &factors {
            let sane = match factor {
                Factor::Power(power) => *power <= MOST_POWER,
                Factor::Sine(frequency) | Factor::Cosine(frequency) => frequency.is_finite(),
            };
            if *input as usize >= inputs.len() || !sane {
                return Err(part(format!("a factor {factor:?} of input {input}")));
            }
        }
        if let Some(factor) =
            terms.iter().flatten().find(|factor| **factor != NONE && **factor as usize >= factors.len())
        {
            let what = format!("{name}: factor of a term");
            return Err(TwinError::Index { what, index: *factor as usize, count: factors.len() });
        }
        let numbers = moves.numbers();
        check_length(&format!("{name}: constants"), closed.bias.len(), numbers)?;
        check_length(&format!("{name}: weights of terms"), closed.weights.len(), numbers * terms.len())?;
        if !layers.is_empty() {
            check_chain(&name, &layers, inputs.len(), numbers)?;
        }
        let single = Precision::Single;
        let layer = (numbers > 0).then(|| {
            Layer::pack(&closed.weights, &closed.bias, terms.len(), Activation::None, single)
                .map_err(|error| TwinError::Layer { network: name.clone(), layer: 0, error })
        });
        Ok(Self {
            parent,
            rest,
            moves,
            aim,
            factors,
            terms,
            closed: layer.transpose()?,
            layers: pack_dense(&name, &layers, inputs.len(), true, single)?,
            inputs: NormalisedInputs { inputs, mean, scale },
        })
    }

    fn parts(&self) -> LearnedBoneParts {
        let NormalisedInputs { inputs, mean, scale } = self.inputs.clone();
        LearnedBoneParts {
            parent: self.parent,
            rest: self.rest,
            moves: self.moves,
            aim: self.aim.clone(),
            inputs,
            mean,
            scale,
            factors: self.factors.clone(),
            terms: self.terms.clone(),
            closed: unpack_dense(&self.closed).pop().unwrap_or_default(),
            layers: unpack_dense(&self.layers),
        }
    }

    /// The longest list that evaluation needs.
    fn longest(&self) -> usize {
        let layers = self.closed.iter().chain(&self.layers);
        let widest = layers.map(|layer| layer.padded_rows().max(layer.columns())).max().unwrap_or(0);
        widest.max(self.factors.len() + 1).max(self.terms.len()).max(self.inputs.inputs.len())
    }

    /// The frame in which it is learned; what it sees of its goal is left in `space.values`.
    fn frame(&self, space: &mut LearnedSpace) -> Affine3A {
        let parent = self.parent.map_or(Affine3A::IDENTITY, |parent| space.world[parent]);
        let Some(aim) = &self.aim else { return parent };
        let (frame, inputs) = aim.look(&parent, &space.world[aim.target]);
        let first = space.values.len() - AIM_INPUTS;
        space.values[first..].copy_from_slice(&inputs);
        frame
    }

    /// Where it is in its frame.
    fn local(&self, space: &mut LearnedSpace) -> Affine3A {
        let Some(closed) = &self.closed else { return self.rest };
        let LearnedSpace { kernel, values, factors, terms, numbers, buffers: [front, back], .. } = space;
        let controls: &[f32] = values;
        self.inputs.features(controls, front);
        for (slot, (input, factor)) in factors.iter_mut().zip(&self.factors) {
            let place = *input as usize;
            *slot = factor.value(front[place], controls[self.inputs.inputs[place] as usize]);
        }
        let last = self.factors.len();
        factors[last] = 1.0;
        for (slot, term) in terms.iter_mut().zip(&self.terms) {
            *slot = term.iter().map(|factor| factors[(*factor as usize).min(last)]).product();
        }
        closed.apply(*kernel, terms, numbers);
        if !self.layers.is_empty() {
            let (mut read, mut write) = (front, back);
            for layer in &self.layers {
                layer.apply(*kernel, read, write);
                std::mem::swap(&mut read, &mut write);
            }
            let count = self.moves.numbers();
            numbers[..count].iter_mut().zip(&*read).for_each(|(number, more)| *number += more);
        }
        self.moves.local(&self.rest, &numbers[..self.moves.numbers()])
    }
}
