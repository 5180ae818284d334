//! A net that says where points of a picture lie: down to small maps and up again with shortcuts (Newell et al. 2016), a heat map
//! per point; and, from the smallest maps, scores from 0 to 1.

use super::heat_maps::{Found, HeatMapLoss, Target, found};
use super::layers::{Block, Convolution, Residual};
use super::parameters::Parameters;
use super::tape::{Mode, Tape, Var};
use super::tensor::Tensor;
use crate::dense::Adam;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use understudy_core::Random;

/// Sizes of a net.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HourglassShape {
    /// Side of the picture, pixels.
    pub side: usize,
    /// Channels of every level; each level is half as large as the one before.
    pub channels: Vec<usize>,
    /// The level of the heat maps.
    pub heat_level: usize,
    /// Heat maps.
    pub points: usize,
    /// Scores.
    pub scores: usize,
}

/// A shape that no net has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// A size out of range.
    #[error("{name} is {value}, wanted is {wanted}")]
    Size {
        /// Which.
        name: &'static str,
        /// Given.
        value: usize,
        /// What would do.
        wanted: &'static str,
    },
    /// Numbers of another net, or none.
    #[error("{got} numbers that are finite, the net has {want}")]
    Numbers {
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
}

impl HourglassShape {
    fn check(&self) -> Result<(), ShapeError> {
        let size = |name, value, wanted| Err(ShapeError::Size { name, value, wanted });
        let levels = self.channels.len();
        if !(2..=8).contains(&levels) {
            return size("number of levels", levels, "2 to 8");
        }
        if self.heat_level >= levels {
            return size("heat level", self.heat_level, "a level");
        }
        if let Some(channels) = self.channels.iter().find(|channels| !(1..=1024).contains(*channels)) {
            return size("channels", *channels, "1 to 1024");
        }
        let smallest = 1usize << (levels - 1);
        if self.side > 1024 || self.side < 2 * smallest || !self.side.is_multiple_of(smallest) {
            return size("side", self.side, "at most 1024 and divisible down to the last level");
        }
        if !(1..=1024).contains(&self.points) {
            return size("points", self.points, "1 to 1024");
        }
        match self.scores {
            0..=1024 => Ok(()),
            scores => size("scores", scores, "at most 1024"),
        }
    }

    /// Side of the heat maps.
    pub fn heat_side(&self) -> usize {
        self.side >> self.heat_level
    }

    /// Multiplications of one picture, in use.
    pub fn multiplications(&self) -> usize {
        let area = |level: usize| (self.side >> level) * (self.side >> level);
        let channels = |level: usize| self.channels[level];
        let last = self.channels.len() - 1;
        let mut total = area(0) * 27 * channels(0);
        for level in 1..=last {
            total += area(level) * 9 * channels(level - 1) * channels(level);
            if level >= self.heat_level {
                total += 2 * area(level) * 9 * channels(level) * channels(level);
            }
        }
        for level in self.heat_level..last {
            total += area(level + 1) * channels(level + 1) * channels(level);
            total += area(level) * 9 * channels(level) * channels(level);
        }
        total += area(self.heat_level) * channels(self.heat_level) * self.points;
        if self.scores > 0 {
            total += (area(last) * channels(last) + self.scores) * HIDDEN;
        }
        total
    }
}

/// Width of the layer between the smallest maps and the scores.
const HIDDEN: usize = 96;

/// The net: layers over a row of parameters.
#[derive(Debug, Clone)]
pub struct Hourglass {
    shape: HourglassShape,
    parameters: Parameters,
    down: Vec<(Block, Option<Residual>)>,
    /// From the heat level on: narrowing and smoothing on the way up.
    up: Vec<(Block, Block)>,
    heat: Convolution,
    scores: Option<(Convolution, Convolution)>,
}

/// What a net says of pictures.
pub struct Answer {
    logits: Tensor,
    scores: Option<Tensor>,
}

impl Answer {
    /// Places of an image's points.
    pub fn points(&self, image: usize) -> Vec<Found> {
        found(&self.logits, image)
    }

    /// An image's scores.
    pub fn scores(&self, image: usize) -> &[f32] {
        self.scores.as_ref().map_or(&[], |scores| {
            let count = scores.image_len();
            &scores.data()[image * count..][..count]
        })
    }
}

impl Hourglass {
    /// With random weights.
    pub fn new(shape: HourglassShape, seed: u64) -> Result<Self, ShapeError> {
        shape.check()?;
        let mut random = Random::stream(0x686f_7572, seed);
        let mut parameters = Parameters::default();
        let last = shape.channels.len() - 1;
        let (p, r) = (&mut parameters, &mut random);
        let mut down = Vec::new();
        for level in 0..=last {
            let before = if level == 0 { 3 } else { shape.channels[level - 1] };
            let block = Block::new(p, [before, shape.channels[level]], 3, r);
            let residual =
                (level >= shape.heat_level.max(1)).then(|| Residual::new(p, shape.channels[level], r));
            down.push((block, residual));
        }
        let mut up = Vec::new();
        for level in shape.heat_level..last {
            let (own, below) = (shape.channels[level], shape.channels[level + 1]);
            up.push((Block::new(p, [below, own], 1, r), Block::new(p, [own; 2], 3, r)));
        }
        let heat = Convolution::new(p, [shape.channels[shape.heat_level], shape.points], 1, 0.1, r);
        let smallest = shape.side >> last;
        let flat = shape.channels[last] * smallest * smallest;
        let scores = (shape.scores > 0).then(|| {
            let hidden = Convolution::new(p, [flat, HIDDEN], 1, 1.0, r);
            (hidden, Convolution::new(p, [HIDDEN, shape.scores], 1, 0.1, r))
        });
        Ok(Self { shape, parameters, down, up, heat, scores })
    }

    /// Its sizes.
    pub fn shape(&self) -> &HourglassShape {
        &self.shape
    }

    /// What it learned: weights, then running figures.
    pub fn numbers(&self) -> (&[f32], &[f32]) {
        (self.parameters.values(), self.parameters.running_values())
    }

    /// Puts in what [`Hourglass::numbers`] gave.
    pub fn restore(&mut self, values: &[f32], running: &[f32]) -> Result<(), ShapeError> {
        let want = self.parameters.values().len() + self.parameters.running_values().len();
        let finite = values.iter().chain(running).filter(|value| value.is_finite()).count();
        match self.parameters.restore(values, running) {
            true => Ok(()),
            false => Err(ShapeError::Numbers { got: finite, want }),
        }
    }

    pub(super) fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// What the first three levels see of pictures on a tape, for comparison.
    pub(super) fn features(&self, tape: &mut Tape<'_>, pictures: Var) -> Vec<Var> {
        let mut x = pictures;
        let mut kept = Vec::new();
        for (level, (block, residual)) in self.down.iter().take(3).enumerate() {
            if level > 0 {
                x = tape.halved(x);
            }
            x = block.apply(tape, x);
            if let Some(residual) = residual {
                x = residual.apply(tape, x);
            }
            kept.push(x);
        }
        kept
    }

    /// Heat maps before their softmax, and scores before their sigmoid.
    fn forward(&self, tape: &mut Tape<'_>, pictures: Tensor) -> (Var, Option<Var>) {
        let images = pictures.shape()[0];
        let mut x = tape.constant(pictures);
        let mut kept = Vec::new();
        for (level, (block, residual)) in self.down.iter().enumerate() {
            if level > 0 {
                x = tape.halved(x);
            }
            x = block.apply(tape, x);
            if let Some(residual) = residual {
                x = residual.apply(tape, x);
            }
            kept.push(x);
        }
        let scores = self.scores.as_ref().map(|(hidden, last)| {
            let flat = tape.value(x).image_len();
            let flat = tape.reshaped(x, [images, flat, 1, 1]);
            let hidden = hidden.apply(tape, flat);
            let hidden = tape.leaky(hidden, 0.1);
            last.apply(tape, hidden)
        });
        for (level, (narrow, smooth)) in self.up.iter().enumerate().rev() {
            let y = narrow.apply(tape, x);
            let y = tape.doubled(y);
            let sum = tape.add(y, kept[self.shape.heat_level + level]);
            x = smooth.apply(tape, sum);
        }
        (self.heat.apply(tape, x), scores)
    }

    /// Looks at pictures, `[images, 3, side, side]`.
    pub fn look(&self, pictures: Tensor) -> Answer {
        let mut tape = Tape::new(&self.parameters, Mode::Use);
        let (logits, scores) = self.forward(&mut tape, pictures);
        let scores = scores.map(|scores| {
            let scores = tape.sigmoid(scores);
            tape.value(scores).clone()
        });
        Answer { logits: tape.value(logits).clone(), scores }
    }
}

/// Pictures and what is true of them.
#[derive(Debug, Clone, Default)]
pub struct HourglassBatch {
    /// `[images, 3, side, side]`.
    pub pictures: Tensor,
    /// `[images][points]`.
    pub targets: Vec<Target>,
    /// `[images][scores]`; NaN where nobody knows.
    pub scores: Vec<f32>,
}

/// Teaches a net.
#[derive(Debug, Clone)]
pub struct HourglassTrainer {
    net: Hourglass,
    adam: Adam,
    steps: usize,
    loss: HeatMapLoss,
}

/// Weight of the scores' loss beside that of the heat maps.
const SCORES: f32 = 20.0;

/// Longest gradient that is followed.
const LONGEST: f64 = 10.0;

impl HourglassTrainer {
    /// From the first step.
    pub fn new(net: Hourglass, loss: HeatMapLoss) -> Self {
        let adam = Adam::new(net.parameters.values().len());
        Self { net, adam, steps: 0, loss }
    }

    /// The net as it is.
    pub fn net(&self) -> &Hourglass {
        &self.net
    }

    /// The net.
    pub fn into_net(self) -> Hourglass {
        self.net
    }

    /// Steps so far.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Averages of the optimiser, for checkpoints.
    pub fn averages(&self) -> [&[f32]; 2] {
        self.adam.averages()
    }

    /// Goes on where a checkpoint was taken.
    pub fn restore(
        &mut self,
        values: &[f32],
        running: &[f32],
        averages: [Vec<f32>; 2],
        steps: usize,
    ) -> Result<(), ShapeError> {
        let numbers = averages[0].len() + averages[1].len();
        let error = ShapeError::Numbers { got: numbers, want: 2 * self.net.parameters.values().len() };
        let adam = Adam::new(self.net.parameters.values().len()).restore(averages, steps).ok_or(error)?;
        self.net.restore(values, running)?;
        (self.adam, self.steps) = (adam, steps);
        Ok(())
    }

    /// The cost of a batch and its gradient by the parameters, in training.
    pub fn gradient(&self, batch: &HourglassBatch) -> (f64, Vec<f32>) {
        let (cost, gradient, _) = self.evaluate(batch);
        (cost, gradient)
    }

    fn evaluate(
        &self,
        batch: &HourglassBatch,
    ) -> (f64, Vec<f32>, Vec<(super::RunningSlot, super::Statistics)>) {
        let mut tape = Tape::new(&self.net.parameters, Mode::Training);
        let (logits, scores) = self.net.forward(&mut tape, batch.pictures.clone());
        let (mut cost, by_logits) = self.loss.evaluate(tape.value(logits), &batch.targets);
        let mut seeds = vec![(logits, by_logits)];
        if let Some(scores) = scores {
            let (score_cost, by_scores) = score_loss(tape.value(scores), &batch.scores);
            cost += score_cost;
            seeds.push((scores, by_scores));
        }
        let gradient = tape.backward(seeds).parameters;
        (cost, gradient, tape.into_seen())
    }

    /// One step of Adam; gives the cost before it. A cost that is not finite changes nothing.
    pub fn step(&mut self, batch: &HourglassBatch, rate: f32) -> f64 {
        let (cost, mut gradient, seen) = self.evaluate(batch);
        let length = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        self.steps += 1;
        if !(cost.is_finite() && length.is_finite()) {
            return cost;
        }
        if length > LONGEST {
            gradient.iter_mut().for_each(|g| *g *= (LONGEST / length) as f32);
        }
        self.net.parameters.remember(&seen);
        self.adam.step(self.net.parameters.values_mut(), &gradient, rate, 0.0);
        cost
    }
}

/// `w · mean (σ(z) − s)²` over known scores, and its gradient.
fn score_loss(logits: &Tensor, wanted: &[f32]) -> (f64, Tensor) {
    assert_eq!(logits.data().len(), wanted.len(), "a score per output");
    let known = wanted.iter().filter(|score| score.is_finite()).count().max(1) as f32;
    let (mut cost, mut by) = (0.0, logits.clone());
    for (by, wanted) in by.data_mut().iter_mut().zip(wanted) {
        let score = 1.0 / (1.0 + (-*by).exp());
        if !wanted.is_finite() {
            *by = 0.0;
            continue;
        }
        let off = score - wanted;
        cost += f64::from(SCORES * off * off / known);
        *by = SCORES * 2.0 * off * score * (1.0 - score) / known;
    }
    (cost, by)
}
