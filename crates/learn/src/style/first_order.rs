//! Style transfer by key points (Siarohin et al. 2019; section 6.4): a detector that nobody teaches finds key points with
//! Jacobians, a second net mixes their motions to a dense one and says what is hidden, a third bends the features of a source
//! picture along it and draws the rest. `losses.rs` says what is asked of them. Start at [`FirstOrder::new`]; training is
//! [`FirstOrderTrainer`], use is [`FirstOrder::transfer`].

use super::layers::{Block, Convolution, Residual};
use super::losses::{Features, KeyPoints, LossWeights, Losses, TransferLoss};
use super::motion::{inverse, matrix, times};
use super::parameters::Parameters;
use super::tape::{Mode, Tape, Var};
use super::tensor::Tensor;
use super::thin_plate::ThinPlate;
use super::{RunningSlot, ShapeError, Statistics};
use crate::dense::Adam;
use serde::{Deserialize, Serialize};
use understudy_core::Random;

/// Sizes of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstOrderShape {
    /// Side of the pictures, pixels.
    pub side: usize,
    /// Key points.
    pub key_points: usize,
    /// Channels of the generator's first layer; others follow.
    pub channels: usize,
    /// Halvings before key points, motions and features.
    pub halvings: usize,
    /// Residual blocks of the generator.
    pub blocks: usize,
}

impl FirstOrderShape {
    /// `bench` of the card: a face in 128².
    pub fn bench() -> Self {
        Self { side: 128, key_points: 24, channels: 16, halvings: 2, blocks: 4 }
    }

    /// `test` of the card: pictures of 48² and few key points.
    pub fn test() -> Self {
        Self { side: 48, key_points: 8, channels: 8, halvings: 1, blocks: 2 }
    }

    fn check(&self) -> Result<(), ShapeError> {
        let size = |name, value, wanted| Err(ShapeError::Size { name, value, wanted });
        if !(1..=4).contains(&self.halvings) {
            return size("number of halvings", self.halvings, "1 to 4");
        }
        // The nets on small pictures halve twice more.
        let step = 4usize << self.halvings;
        if self.side < 2 * step || self.side > 1024 || !self.side.is_multiple_of(step) {
            return size("side", self.side, "at most 1024 and divisible down to the smallest maps");
        }
        if !(1..=128).contains(&self.key_points) {
            return size("number of key points", self.key_points, "1 to 128");
        }
        if !(2..=256).contains(&self.channels) {
            return size("channels", self.channels, "2 to 256");
        }
        match self.blocks {
            0..=32 => Ok(()),
            blocks => size("number of blocks", blocks, "at most 32"),
        }
    }

    /// Side of key points' maps and of the dense motion.
    pub fn map_side(&self) -> usize {
        self.side >> self.halvings
    }
}

/// Down and up again with shortcuts, twice.
#[derive(Debug, Clone)]
struct Body {
    first: Block,
    down: [Block; 2],
    up: [(Block, Block); 2],
}

impl Body {
    fn new(p: &mut Parameters, inputs: usize, channels: usize, r: &mut Random) -> Self {
        let widths = [channels, 2 * channels, 3 * channels];
        let up = |p: &mut Parameters, level: usize, r: &mut Random| {
            let narrow = Block::new(p, [widths[level + 1], widths[level]], 1, r);
            (narrow, Block::new(p, [widths[level]; 2], 3, r))
        };
        Self {
            first: Block::new(p, [inputs, channels], 3, r),
            down: [Block::new(p, [widths[0], widths[1]], 3, r), Block::new(p, [widths[1], widths[2]], 3, r)],
            up: [up(p, 0, r), up(p, 1, r)],
        }
    }

    fn apply(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let mut kept = vec![self.first.apply(tape, x)];
        for block in &self.down {
            let half = tape.halved(kept[kept.len() - 1]);
            kept.push(block.apply(tape, half));
        }
        let mut x = kept[2];
        for (level, (narrow, smooth)) in self.up.iter().enumerate().rev() {
            let y = narrow.apply(tape, x);
            let y = tape.doubled(y);
            let sum = tape.add(y, kept[level]);
            x = smooth.apply(tape, sum);
        }
        x
    }
}

/// The layers.
#[derive(Debug, Clone)]
struct Layers {
    detector: Body,
    heat: Convolution,
    jacobians: Convolution,
    dense: Body,
    shares: Convolution,
    occlusion: Convolution,
    encoder: Vec<Block>,
    blocks: Vec<Residual>,
    decoder: Vec<Block>,
    last: Convolution,
}

/// The model.
#[derive(Debug, Clone)]
pub struct FirstOrder {
    shape: FirstOrderShape,
    parameters: Parameters,
    layers: Layers,
}

/// Heat before the softmax is this much sharper (FOMM's temperature of 0.1).
const SHARPNESS: f32 = 10.0;
/// Variance of a key point's bell, squares of half a picture.
const BELL: f32 = 0.01;
/// Channels of detector and motion net.
const SMALL: usize = 16;

/// Key points on a tape.
#[derive(Debug, Clone, Copy)]
struct Seen {
    maps: Var,
    points: Var,
    jacobians: Var,
}

impl FirstOrder {
    /// With random weights; Jacobians begin as the identity.
    pub fn new(shape: FirstOrderShape, seed: u64) -> Result<Self, ShapeError> {
        shape.check()?;
        let mut random = Random::stream(0x666f_6d6d, seed);
        let mut parameters = Parameters::default();
        let (p, r) = (&mut parameters, &mut random);
        let (k, c) = (shape.key_points, shape.channels);
        let detector = Body::new(p, 3, SMALL, r);
        let heat = Convolution::new(p, [SMALL, k], 7, 0.3, r);
        let jacobians = Convolution::new(p, [SMALL, 4 * k], 7, 0.0, r);
        let dense = Body::new(p, 4 * (k + 1), SMALL, r);
        let shares = Convolution::new(p, [SMALL, k + 1], 7, 0.3, r);
        let occlusion = Convolution::new(p, [SMALL, 1], 7, 0.3, r);
        let mut encoder = vec![Block::new(p, [3, c], 7, r)];
        encoder.extend((0..shape.halvings).map(|level| Block::new(p, [c << level, c << (level + 1)], 3, r)));
        let blocks = (0..shape.blocks).map(|_| Residual::new(p, c << shape.halvings, r)).collect();
        let decoder =
            (0..shape.halvings).rev().map(|level| Block::new(p, [c << (level + 1), c << level], 3, r));
        let decoder = decoder.collect();
        let last = Convolution::new(p, [c, 3], 7, 0.3, r);
        jacobians.set_bias(p, &[1.0, 0.0, 0.0, 1.0]);
        let layers =
            Layers { detector, heat, jacobians, dense, shares, occlusion, encoder, blocks, decoder, last };
        Ok(Self { shape, parameters, layers })
    }

    /// Its sizes.
    pub fn shape(&self) -> &FirstOrderShape {
        &self.shape
    }

    /// What it learned: weights, then running figures.
    pub fn numbers(&self) -> (&[f32], &[f32]) {
        (self.parameters.values(), self.parameters.running_values())
    }

    /// Puts in what [`FirstOrder::numbers`] gave.
    pub fn restore(&mut self, values: &[f32], running: &[f32]) -> Result<(), ShapeError> {
        let want = self.parameters.values().len() + self.parameters.running_values().len();
        match self.parameters.restore(values, running) {
            true => Ok(()),
            false => Err(ShapeError::Numbers { got: values.len() + running.len(), want }),
        }
    }

    fn small(&self, tape: &mut Tape<'_>, mut picture: Var) -> Var {
        for _ in 0..self.shape.halvings {
            picture = tape.halved(picture);
        }
        picture
    }

    fn detect(&self, tape: &mut Tape<'_>, picture: Var) -> Seen {
        let small = self.small(tape, picture);
        let features = self.layers.detector.apply(tape, small);
        let heat = self.layers.heat.apply(tape, features);
        let sharp = tape.scaled(heat, SHARPNESS);
        let maps = tape.softmax(sharp);
        let points = tape.expected(maps);
        let fields = self.layers.jacobians.apply(tape, features);
        let jacobians = tape.averaged(maps, fields);
        Seen { maps, points, jacobians }
    }

    /// The picture that the source becomes where its key points go elsewhere.
    fn draw(&self, tape: &mut Tape<'_>, source: Var, from: [Var; 2], to: [Var; 2]) -> Var {
        let side = self.shape.map_side();
        let images = tape.value(source).shape()[0];
        let points = self.shape.key_points + 1;
        let ([from, from_jacobians], [to, to_jacobians]) = (from, to);
        let turn = tape.divided(from_jacobians, to_jacobians);
        let motions = tape.motions(from, turn, to, [side; 2]);
        let (there, here) = (tape.bells(to, [side; 2], BELL), tape.bells(from, [side; 2], BELL));
        let here = tape.scaled(here, -1.0);
        let heat = tape.add(there, here);
        let none = tape.constant(Tensor::zeros([images, 1, side, side]));
        // The source as every motion by itself would bend it.
        let small = self.small(tape, source);
        let small = repeated(tape.value(small), points);
        let small = tape.constant(small);
        let grids = tape.reshaped(motions, [images * points, 2, side, side]);
        let bent = tape.sampled(small, grids);
        let bent = tape.reshaped(bent, [images, 3 * points, side, side]);
        let inputs = tape.concat(&[none, heat, bent]);
        let features = self.layers.dense.apply(tape, inputs);
        let shares = self.layers.shares.apply(tape, features);
        let shares = tape.shares(shares);
        let field = tape.mixed(shares, motions);
        let occlusion = self.layers.occlusion.apply(tape, features);
        let visible = tape.sigmoid(occlusion);
        let mut x = self.layers.encoder[0].apply(tape, source);
        for block in &self.layers.encoder[1..] {
            let y = block.apply(tape, x);
            x = tape.halved(y);
        }
        let warped = tape.sampled(x, field);
        let mut x = tape.multiply(warped, visible);
        for block in &self.layers.blocks {
            x = block.apply(tape, x);
        }
        for block in &self.layers.decoder {
            let y = tape.doubled(x);
            x = block.apply(tape, y);
        }
        let x = self.layers.last.apply(tape, x);
        tape.sigmoid(x)
    }

    /// Key points of pictures, `[images, 3, side, side]` in 0 to 1.
    pub fn key_points(&self, pictures: &Tensor) -> KeyPoints {
        let mut tape = Tape::new(&self.parameters, Mode::Use);
        let picture = tape.constant(pictures.clone());
        let seen = self.detect(&mut tape, picture);
        KeyPoints { points: tape.value(seen.points).clone(), jacobians: tape.value(seen.jacobians).clone() }
    }

    /// The source picture with the expression of `driving`, relative to `rest`, which shows the actor as `source` shows the rig
    /// (6.13), (6.14): `μ = μ(I₀) + μ(V_d) − μ(V₀)`, `J = J(V_d) J(V₀)⁻¹ J(I₀)`.
    pub fn transfer(&self, source: &Tensor, rest: &Tensor, driving: &Tensor) -> Tensor {
        let of_source = self.key_points(source);
        let moved = moved(&of_source, &self.key_points(rest), &self.key_points(driving));
        let mut tape = Tape::new(&self.parameters, Mode::Use);
        let picture = tape.constant(source.clone());
        let [from, to] =
            [of_source, moved].map(|seen| [tape.constant(seen.points), tape.constant(seen.jacobians)]);
        let out = self.draw(&mut tape, picture, from, to);
        tape.value(out).clone()
    }
}

/// (6.13) and (6.14).
pub(super) fn moved(source: &KeyPoints, rest: &KeyPoints, driving: &KeyPoints) -> KeyPoints {
    let mut out = source.clone();
    for (k, value) in out.points.data_mut().iter_mut().enumerate() {
        *value += driving.points.data()[k] - rest.points.data()[k];
    }
    for (k, own) in out.jacobians.data_mut().chunks_exact_mut(4).enumerate() {
        let of = |seen: &KeyPoints| matrix(&seen.jacobians.data()[4 * k..]);
        let change = times(of(driving), inverse(of(rest)));
        let value = times(change, matrix(own));
        own.copy_from_slice(&value);
    }
    out
}

/// Every image so many times in a row.
fn repeated(x: &Tensor, times: usize) -> Tensor {
    let [images, channels, rows, columns] = x.shape();
    let mut data = Vec::with_capacity(x.data().len() * times);
    for image in x.data().chunks_exact(x.image_len().max(1)) {
        (0..times).for_each(|_| data.extend_from_slice(image));
    }
    Tensor::new([images * times, channels, rows, columns], data)
}

/// Pictures of regions over a picture, each where its mask is near 1: `(1 − m) a + m b` in turn.
///
/// # Panics
/// When a mask or a picture has another size than the first.
pub fn merged(whole: &Tensor, regions: &[(Tensor, Tensor)]) -> Tensor {
    let mut out = whole.clone();
    let plane = whole.plane_len().max(1);
    let channels = whole.shape()[1];
    for (picture, mask) in regions {
        assert!(
            picture.shape() == whole.shape() && mask.data().len() * channels == whole.data().len(),
            "one size"
        );
        for (index, out) in out.data_mut().chunks_exact_mut(plane).enumerate() {
            let mask = &mask.data()[index / channels * plane..][..plane];
            let picture = &picture.data()[index * plane..][..plane];
            for ((out, picture), mask) in out.iter_mut().zip(picture).zip(mask) {
                *out += mask * (picture - *out);
            }
        }
    }
    out
}

/// Pairs of frames of one recording.
#[derive(Debug, Clone)]
pub struct TransferBatch {
    /// `[images, 3, side, side]`, 0 to 1.
    pub source: Tensor,
    /// The same.
    pub driving: Tensor,
    /// 1 where the driving frame shows no face, `[images, 1, side, side]`: what key points must leave alone.
    pub ground: Option<Tensor>,
    /// 1 where the picture counts, of a model for one region; inputs stay whole.
    pub region: Option<Tensor>,
}

/// Teaches a model.
#[derive(Debug, Clone)]
pub struct FirstOrderTrainer {
    model: FirstOrder,
    features: Features,
    adam: Adam,
    steps: usize,
    weights: LossWeights,
    seed: u64,
}

impl FirstOrderTrainer {
    /// From the first step; `seed` bends pictures.
    pub fn new(model: FirstOrder, features: Features, weights: LossWeights, seed: u64) -> Self {
        let adam = Adam::new(model.parameters.values().len());
        Self { model, features, adam, steps: 0, weights, seed }
    }

    /// The model as it is.
    pub fn model(&self) -> &FirstOrder {
        &self.model
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
        let count = self.model.parameters.values().len();
        let error = ShapeError::Numbers { got: averages[0].len() + averages[1].len(), want: 2 * count };
        let adam = Adam::new(count).restore(averages, steps).ok_or(error)?;
        self.model.restore(values, running)?;
        (self.adam, self.steps) = (adam, steps);
        Ok(())
    }

    /// Costs of a batch, and their sum's gradient by the parameters, in training.
    pub fn gradient(&self, batch: &TransferBatch) -> (Losses, Vec<f32>) {
        let (losses, gradient, _) = self.evaluate(batch);
        (losses, gradient)
    }

    fn evaluate(&self, batch: &TransferBatch) -> (Losses, Vec<f32>, Vec<(RunningSlot, Statistics)>) {
        let model = &self.model;
        let [images, _, rows, columns] = batch.driving.shape();
        let mut random = Random::stream(self.seed, self.steps as u64);
        let bends: Vec<ThinPlate> =
            (0..images).map(|_| ThinPlate::random(0.05, 0.005, &mut random)).collect();
        let mut tape = Tape::new(&model.parameters, Mode::Training);
        let source = tape.constant(batch.source.clone());
        let driving = tape.constant(batch.driving.clone());
        let grids: Vec<f32> = bends.iter().flat_map(|bend| bend.grid(rows, columns).into_data()).collect();
        let grid = tape.constant(Tensor::new([images, 2, rows, columns], grids));
        let bent = tape.sampled(driving, grid);
        let seen = model.detect(&mut tape, source);
        let wanted = model.detect(&mut tape, driving);
        let bent = model.detect(&mut tape, bent);
        let out =
            model.draw(&mut tape, source, [seen.points, seen.jacobians], [wanted.points, wanted.jacobians]);
        let loss = TransferLoss { weights: &self.weights, features: &self.features };
        let mut seeds = Vec::new();
        let mut losses = Losses::default();
        let (cost, by) = loss.perceptual(tape.value(out), &batch.driving, batch.region.as_ref());
        losses.perceptual = cost;
        seeds.push((out, by));
        let of = |seen: &Seen| KeyPoints {
            points: tape.value(seen.points).clone(),
            jacobians: tape.value(seen.jacobians).clone(),
        };
        let (costs, by_wanted, by_bent) = loss.equivariance(&of(&wanted), &of(&bent), &bends);
        losses.equivariance = costs;
        for (seen, by) in [(wanted, by_wanted), (bent, by_bent)] {
            seeds.push((seen.points, by.points));
            seeds.push((seen.jacobians, by.jacobians));
        }
        let (cost, by) = loss.distance(tape.value(wanted.points));
        losses.distance = cost;
        seeds.push((wanted.points, by));
        let (cost, by) = loss.regulariser(tape.value(wanted.jacobians));
        losses.regulariser = cost;
        seeds.push((wanted.jacobians, by));
        if let Some(ground) = &batch.ground {
            let (cost, by) = loss.ground(tape.value(wanted.maps), ground, model.shape.halvings);
            losses.ground = cost;
            seeds.push((wanted.maps, by));
        }
        let gradient = tape.backward(seeds).parameters;
        (losses, gradient, tape.into_seen())
    }

    /// One step of Adam; gives the costs before it. Costs that are not finite change nothing.
    pub fn step(&mut self, batch: &TransferBatch, rate: f32) -> Losses {
        let (losses, gradient, seen) = self.evaluate(batch);
        self.steps += 1;
        if losses.total().is_finite() && gradient.iter().all(|g| g.is_finite()) {
            self.model.parameters.remember(&seen);
            self.adam.step(self.model.parameters.values_mut(), &gradient, rate, 0.0);
        }
        losses
    }
}
