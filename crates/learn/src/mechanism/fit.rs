//! The function of one bone: products of sines, cosines and powers of its controls by ridge regression, and a network
//! for what they leave.

use super::targets::Target;
use super::{MechanismSettings, PosedBones};
use crate::dense::Net;
use crate::dense::train::{Stop, TrainSettings, train};
use crate::matrix::{View, multiply};
use understudy_core::linear_algebra::Cholesky;
use understudy_core::{Channel, ControlKind, ControlSpec, ControlSpecs, Random};
use understudy_runtime::DenseParts;
use understudy_runtime::mechanism::learned::{FACTORS, Factor, LearnedBoneParts, NONE};

/// Ridge, as a share of the variance of a term.
const RIDGE: f64 = 1e-8;

/// What a control may be to a bone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Family {
    /// A number: products take it and its square.
    Number,
    /// The same with its cube.
    Cubic,
    /// An angle of so many radians per unit: products take its sine and cosine.
    Angle(f32),
    /// The same with those of half the angle, as shares of rotations need them.
    Halves(f32),
}

impl Family {
    /// What products take.
    fn factors(self) -> Vec<Factor> {
        let whole = |frequency: f32| [Factor::Sine(frequency), Factor::Cosine(frequency)];
        match self {
            Self::Number => vec![Factor::Power(1), Factor::Power(2)],
            Self::Cubic => vec![Factor::Power(1), Factor::Power(2), Factor::Power(3)],
            Self::Angle(frequency) => whole(frequency).to_vec(),
            Self::Halves(frequency) => [whole(frequency), whole(0.5 * frequency)].concat(),
        }
    }
}

/// What a control can be, the likeliest first: a whole angle, as a joint's own channels are, half of it, as helpers take.
pub(super) fn families_of(specs: &ControlSpecs, input: u32) -> Vec<Family> {
    match specs.iter().nth(input as usize) {
        Some(spec) => families_of_control(spec),
        // Of a goal: distance, direction, rotation.
        None => vec![Family::Number, Family::Cubic],
    }
}

fn families_of_control(spec: &ControlSpec) -> Vec<Family> {
    let degree = 1f32.to_radians();
    match spec.kind {
        ControlKind::Joint { channel: Channel::RotateX | Channel::RotateY | Channel::RotateZ, .. } => {
            vec![Family::Angle(degree), Family::Halves(degree), Family::Number]
        }
        ControlKind::Joint { .. } => vec![Family::Number, Family::Cubic],
        ControlKind::Number => {
            let mut all = vec![Family::Number, Family::Cubic];
            let reach = spec.high.abs().max(spec.low.abs());
            if reach > 3.0 {
                all.extend([Family::Angle(degree), Family::Halves(degree)]);
            }
            if reach < 7.0 {
                all.extend([Family::Angle(1.0), Family::Halves(1.0)]);
            }
            all
        }
    }
}

/// Terms of some controls.
#[derive(Debug, Clone)]
pub(super) struct Design {
    pub inputs: Vec<u32>,
    pub mean: Vec<f32>,
    pub scale: Vec<f32>,
    pub factors: Vec<(u32, Factor)>,
    pub terms: Vec<[u32; FACTORS]>,
}

impl Design {
    /// Terms of one control, of pairs and of triples, as many as fit: the first controls are taken for the strongest.
    pub fn new(
        poses: &PosedBones,
        target: &Target,
        inputs: &[u32],
        families: &[Family],
        most: usize,
    ) -> Self {
        /// Powers of a single control.
        const POWERS: u32 = 5;
        let (mut mean, mut scale) = (Vec::new(), Vec::new());
        for input in inputs {
            let values = || (0..poses.len()).map(|pose| f64::from(target.input(poses, pose, *input)));
            let count = poses.len() as f64;
            let middle = values().sum::<f64>() / count;
            let spread = (values().map(|v| (v - middle).powi(2)).sum::<f64>() / count).sqrt();
            mean.push(middle as f32);
            // Powers of it should not grow beyond reason.
            scale.push(if spread > 1e-12 { (0.5 / spread) as f32 } else { 0.0 });
        }
        let mut out = Self { inputs: inputs.to_vec(), mean, scale, factors: Vec::new(), terms: Vec::new() };
        // Places of the factors that products take, of each control.
        let mut takes: Vec<Vec<u32>> = Vec::new();
        for (place, family) in families.iter().enumerate() {
            let first = out.factors.len() as u32;
            out.factors.extend(family.factors().into_iter().map(|factor| (place as u32, factor)));
            takes.push((first..out.factors.len() as u32).collect());
        }
        let mut push = |term: [u32; FACTORS]| {
            if out.terms.len() < most {
                out.terms.push(term);
            }
        };
        takes.iter().flatten().for_each(|factor| push([*factor, NONE, NONE]));
        let products = |chosen: &[usize]| -> Vec<[u32; FACTORS]> {
            let mut all = vec![[NONE; FACTORS]];
            for (slot, control) in chosen.iter().enumerate() {
                let with = |term: &[u32; FACTORS]| -> Vec<[u32; FACTORS]> {
                    let one = |factor: &u32| {
                        let mut term = *term;
                        term[slot] = *factor;
                        term
                    };
                    takes[*control].iter().map(one).collect()
                };
                all = all.iter().flat_map(with).collect();
            }
            all
        };
        let count = takes.len();
        // By the sum of the places: products of the strongest first.
        let mut couples: Vec<[usize; 2]> = (0..count).flat_map(|b| (0..b).map(move |a| [a, b])).collect();
        couples.sort_by_key(|[a, b]| (a + b, *b));
        couples.iter().for_each(|couple| products(couple).into_iter().for_each(&mut push));
        let mut triples: Vec<[usize; 3]> =
            couples.iter().flat_map(|[a, b]| (b + 1..count).map(move |c| [*a, *b, c])).collect();
        triples.sort_by_key(|[a, b, c]| (a + b + c, *c));
        triples.iter().for_each(|triple| products(triple).into_iter().for_each(&mut push));
        // Powers of single controls: shares of angles, and whatever else is smooth.
        let mut powers = Vec::new();
        for (place, family) in families.iter().enumerate() {
            let from = match family {
                Family::Number => 3,
                Family::Cubic => 4,
                Family::Angle(_) | Family::Halves(_) => 1,
            };
            powers.extend((from..=POWERS).map(|power| (place as u32, Factor::Power(power))));
        }
        for factor in powers {
            if out.terms.len() < most {
                out.terms.push([out.factors.len() as u32, NONE, NONE]);
                out.factors.push(factor);
            }
        }
        out
    }

    /// Values of all terms for a pose.
    fn row(&self, input: impl Fn(u32) -> f32, factors: &mut Vec<f64>, out: &mut [f64]) {
        factors.clear();
        for (place, factor) in &self.factors {
            let place = *place as usize;
            let control = input(self.inputs[place]);
            let x = f64::from((control - self.mean[place]) * self.scale[place]);
            factors.push(match factor {
                Factor::Power(power) => x.powi(*power as i32),
                Factor::Sine(frequency) => (f64::from(*frequency) * f64::from(control)).sin(),
                Factor::Cosine(frequency) => (f64::from(*frequency) * f64::from(control)).cos(),
            });
        }
        let value = |factor: &u32| if *factor == NONE { 1.0 } else { factors[*factor as usize] };
        for (slot, term) in out.iter_mut().zip(&self.terms) {
            *slot = term.iter().map(value).product();
        }
    }

    /// `[rows × terms]`.
    fn matrix(&self, poses: &PosedBones, target: &Target, rows: &[usize]) -> Vec<f64> {
        let width = self.terms.len();
        let mut out = vec![0.0; rows.len() * width];
        let mut factors = Vec::new();
        for (row, slot) in rows.iter().zip(out.chunks_exact_mut(width.max(1))) {
            self.row(|input| target.input(poses, *row, input), &mut factors, slot);
        }
        out
    }

    /// Weights `[numbers × terms]` and constants that fit the target in those poses best.
    fn fit(&self, poses: &PosedBones, target: &Target, rows: &[usize]) -> (Vec<f64>, Vec<f64>) {
        let (terms, width, count) = (self.terms.len(), target.width(), rows.len());
        let mut means = vec![0.0f64; width];
        let mut y: Vec<f64> =
            rows.iter().flat_map(|row| target.of(*row)).map(|number| f64::from(*number)).collect();
        y.chunks_exact(width).for_each(|row| means.iter_mut().zip(row).for_each(|(m, n)| *m += n));
        means.iter_mut().for_each(|mean| *mean /= count as f64);
        if terms == 0 {
            return (Vec::new(), means);
        }
        y.chunks_exact_mut(width).for_each(|row| row.iter_mut().zip(&means).for_each(|(n, m)| *n -= m));
        let mut x = self.matrix(poses, target, rows);
        let mut centres = vec![0.0f64; terms];
        x.chunks_exact(terms).for_each(|row| centres.iter_mut().zip(row).for_each(|(m, n)| *m += n));
        centres.iter_mut().for_each(|centre| *centre /= count as f64);
        let mut sizes = vec![0.0f64; terms];
        for row in x.chunks_exact_mut(terms) {
            for ((n, centre), size) in row.iter_mut().zip(&centres).zip(&mut sizes) {
                *n -= centre;
                *size += *n * *n;
            }
        }
        let one = |size: &mut f64| *size = if *size > 1e-18 { 1.0 / size.sqrt() } else { 0.0 };
        sizes.iter_mut().for_each(one);
        x.chunks_exact_mut(terms).for_each(|row| row.iter_mut().zip(&sizes).for_each(|(n, s)| *n *= s));
        let across = View::new(&x, count, terms).transposed();
        let mut gram = vec![0.0f64; terms * terms];
        multiply(&mut gram, 0.0, across, View::new(&x, count, terms));
        (0..terms).for_each(|term| gram[term * terms + term] += RIDGE);
        let across = View::new(&x, count, terms).transposed();
        let mut right = vec![0.0f64; terms * width];
        multiply(&mut right, 0.0, across, View::new(&y, count, width));
        match Cholesky::new(&gram, terms) {
            Some(factor) => factor.solve(&mut right, width),
            None => right.fill(0.0),
        }
        let mut weights = vec![0.0; width * terms];
        let mut constants = means;
        for term in 0..terms {
            for number in 0..width {
                let weight = right[term * width + number] * sizes[term];
                weights[number * terms + term] = weight;
                constants[number] -= weight * centres[term];
            }
        }
        (weights, constants)
    }

    /// What a fit leaves of the target in some poses, `[rows × numbers]`, weighed.
    fn left(
        &self,
        poses: &PosedBones,
        target: &Target,
        rows: &[usize],
        (weights, constants): &(Vec<f64>, Vec<f64>),
    ) -> Vec<f64> {
        let (terms, width) = (self.terms.len(), target.width());
        let x = self.matrix(poses, target, rows);
        let mut out = Vec::with_capacity(rows.len() * width);
        for (index, row) in rows.iter().enumerate() {
            let x = &x[index * terms..][..terms];
            for (number, truth) in target.of(*row).iter().enumerate() {
                let own = &weights[number * terms..][..terms];
                let said: f64 = own.iter().zip(x).map(|(w, x)| w * x).sum::<f64>() + constants[number];
                out.push((f64::from(*truth) - said) * f64::from(target.weights[number]));
            }
        }
        out
    }
}

/// What the best fit leaves in the poses that it is fitted to, `[rows × numbers]`, weighed.
pub(super) fn residual(poses: &PosedBones, target: &Target, design: &Design, rows: &[usize]) -> Vec<f64> {
    let fit = design.fit(poses, target, rows);
    design.left(poses, target, rows, &fit)
}

/// What a fit to some poses leaves on others.
pub(super) fn held_error(
    poses: &PosedBones,
    target: &Target,
    design: &Design,
    training: &[usize],
    held: &[usize],
) -> f64 {
    let fit = design.fit(poses, target, training);
    rms(&design.left(poses, target, held, &fit), held.len())
}

/// Root of the mean square of a row.
fn rms(left: &[f64], rows: usize) -> f64 {
    (left.iter().map(|n| n * n).sum::<f64>() / rows.max(1) as f64).sqrt()
}

/// What was fitted to a bone.
pub(super) struct Fitted {
    pub parts: LearnedBoneParts,
    /// What the closed form leaves on held-back poses.
    pub closed: f64,
    /// The same with a network.
    pub network: Option<f64>,
}

/// Fits a bone. `inputs`: the controls that move it, the strongest first.
pub(super) fn fit_bone(
    poses: &PosedBones,
    target: &Target,
    mut inputs: Vec<u32>,
    settings: &MechanismSettings,
    bone: u64,
) -> Fitted {
    let (held, training) = poses.split();
    let still = LearnedBoneParts {
        parent: target.parent,
        rest: target.rest,
        moves: target.moves,
        aim: target.aim.clone(),
        ..LearnedBoneParts::default()
    };
    if target.width() == 0 {
        return Fitted { parts: still, closed: 0.0, network: None };
    }
    inputs.truncate(settings.inputs);
    let most = settings.terms.min(training.len() / 4);
    // Which family each control is of is tried on few poses, one control after another.
    let few: Vec<usize> = training.iter().step_by((training.len() / 1200).max(1)).copied().collect();
    let error = |families: &[Family], rows: &[usize]| {
        let design = Design::new(poses, target, &inputs, families, most.min(rows.len() / 4));
        held_error(poses, target, &design, rows, &held)
    };
    let choices: Vec<Vec<Family>> = inputs.iter().map(|input| families_of(&poses.specs, *input)).collect();
    let mut families: Vec<Family> = choices.iter().map(|all| all[0]).collect();
    let mut best = error(&families, &few);
    // All of a kind first: three angles of one joint are worth little unless all are angles.
    for place in 1..choices.iter().map(Vec::len).max().unwrap_or(0) {
        let all: Vec<Family> = choices.iter().map(|all| all[place.min(all.len() - 1)]).collect();
        let own = error(&all, &few);
        if own < 0.98 * best {
            (best, families) = (own, all);
        }
    }
    for input in 0..inputs.len().min(8) {
        for family in &choices[input] {
            let mut other = families.clone();
            other[input] = *family;
            if other[input] == families[input] || best < 0.3 * settings.enough {
                continue;
            }
            let own = error(&other, &few);
            if own < 0.98 * best {
                (best, families) = (own, other);
            }
        }
    }
    let design = Design::new(poses, target, &inputs, &families, most);
    let fit = design.fit(poses, target, &training);
    let closed = rms(&design.left(poses, target, &held, &fit), held.len());
    let (weights, constants) = &fit;
    let single = |numbers: &[f64]| numbers.iter().map(|n| *n as f32).collect();
    let mut parts = LearnedBoneParts {
        inputs: design.inputs.clone(),
        mean: design.mean.clone(),
        scale: design.scale.clone(),
        factors: design.factors.clone(),
        terms: design.terms.clone(),
        closed: DenseParts { weights: single(weights), bias: single(constants) },
        ..still
    };
    let mut network = None;
    if closed > settings.enough && !inputs.is_empty() {
        let rows: Vec<usize> = (0..poses.len()).collect();
        let left = design.left(poses, target, &rows, &fit);
        let (layers, reached) = train_network(poses, target, &design, &left, &held, settings, bone);
        if reached < 0.9 * closed {
            parts.layers = layers;
            network = Some(reached);
        }
    }
    Fitted { parts, closed, network }
}

/// A network for what the closed form leaves, and what that leaves on the held-back poses.
fn train_network(
    poses: &PosedBones,
    target: &Target,
    design: &Design,
    left: &[f64],
    held: &[usize],
    settings: &MechanismSettings,
    bone: u64,
) -> (Vec<DenseParts>, f64) {
    let (width, inputs, count) = (target.width(), design.inputs.len(), poses.len());
    let features: Vec<f32> = (0..count)
        .flat_map(|pose| {
            let normalised = design.inputs.iter().zip(design.mean.iter().zip(&design.scale));
            normalised.map(move |(input, (mean, scale))| (target.input(poses, pose, *input) - mean) * scale)
        })
        .collect();
    let unit = rms(left, count).max(1e-12);
    let targets: Vec<f32> = left.iter().map(|n| (n / unit) as f32).collect();
    let held: Vec<u32> = held.iter().map(|pose| *pose as u32).collect();
    let batch = 128.min(count / 2).max(1);
    let epochs = (settings.steps * batch).div_ceil(count - held.len()).max(1);
    let train_settings = TrainSettings {
        epochs,
        batch,
        rate: 0.006,
        decay: 0.0,
        patience: epochs,
        seed: settings.seed,
        ..TrainSettings::default()
    };
    let mut random = Random::stream(settings.seed ^ 0x80_e5, bone);
    let mut net = Net::new(&[inputs, settings.hidden, settings.hidden, width], &mut random);
    let report = train(&mut net, &features, &targets, &held, &train_settings, |_, _| true);
    let layers = (0..net.layer_count())
        .map(|layer| {
            let (weights, bias) = net.layer(layer);
            let mut parts = DenseParts { weights: weights.to_vec(), bias: bias.to_vec() };
            if layer + 1 == net.layer_count() {
                let columns = weights.len() / width;
                for (number, weight) in target.weights.iter().enumerate() {
                    let unit = unit as f32 / weight;
                    parts.weights[number * columns..][..columns].iter_mut().for_each(|w| *w *= unit);
                    parts.bias[number] *= unit;
                }
            }
            parts
        })
        .collect();
    let reached = if report.stop == Stop::Diverged { f64::INFINITY } else { report.validation * unit };
    (layers, reached)
}
