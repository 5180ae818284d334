//! Training of the subspace: one mini-network per anchor on its own features (section 3.2.4), or, for comparison, one
//! network for all anchors.

use super::plan::{Plan, STILL, forward, spread};
use super::{DiffLearnError, DiffSettings};
use crate::dense::Net;
use crate::dense::train::{Stop, train};
use rayon::prelude::*;
use understudy_core::Random;
use understudy_runtime::diff::LayerNumbers;

/// A mini-network that is done.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedAnchor {
    /// Empty where the anchor never moves, or nothing tells how.
    pub layers: Vec<LayerNumbers>,
    /// What it says then, cm.
    pub mean: [f32; 3],
    /// Root mean square error on held-back poses, cm.
    pub validation_cm: f64,
}

impl Plan {
    /// Trains the mini-network of an anchor (section 3.2.4). Same seed, same result, whatever else runs.
    pub fn train_anchor(
        &self,
        anchor: usize,
        settings: &DiffSettings,
        mut watch: impl FnMut() -> bool,
    ) -> Result<TrainedAnchor, DiffLearnError> {
        let (poses, count) = (self.trained.len() + self.held.len(), self.anchors.len());
        let place = |pose: usize| -> [f32; 3] {
            let own = &self.anchor_places[(pose * count + anchor) * 3..][..3];
            [own[0], own[1], own[2]]
        };
        let mean = [0, 1, 2].map(|axis| {
            let sum: f64 = self.trained.iter().map(|pose| f64::from(place(*pose)[axis])).sum();
            (sum / self.trained.len() as f64) as f32
        });
        let centred = |pose: usize| [0, 1, 2].map(|axis| place(pose)[axis] - mean[axis]);
        let squares = |poses: &[usize]| {
            let one = |pose: &usize| centred(*pose).iter().map(|n| f64::from(*n).powi(2)).sum::<f64>();
            (poses.iter().map(one).sum::<f64>() / poses.len().max(1) as f64).sqrt()
        };
        let (size, own) = (squares(&self.trained), &self.anchor_features[anchor]);
        let unit = settings.loss_unit(size);
        if size < STILL || own.is_empty() {
            return Ok(TrainedAnchor { layers: Vec::new(), mean, validation_cm: squares(&self.held) });
        }
        let gather = |pose: usize| {
            let all = self.features.of(pose);
            own.iter().map(move |feature| all[*feature as usize])
        };
        let inputs: Vec<f32> = (0..poses).flat_map(gather).collect();
        let targets: Vec<f32> = (0..poses).flat_map(|pose| centred(pose).map(|n| n / unit as f32)).collect();
        let train_settings = settings.anchor_training(self.trained.len(), anchor);
        let mut sizes = vec![own.len()];
        sizes.extend(&settings.anchor_widths);
        sizes.push(3);
        let mut random = Random::stream(train_settings.seed, 0xa2c4);
        let mut net = Net::with_activation(&sizes, settings.activation, &mut random);
        let held: Vec<u32> = self.held.iter().map(|pose| *pose as u32).collect();
        let outcome = train(&mut net, &inputs, &targets, &held, &train_settings, |_, _| watch());
        match outcome.stop {
            Stop::Asked => return Err(DiffLearnError::Stopped),
            Stop::Diverged if !outcome.validation.is_finite() => {
                return Err(DiffLearnError::Diverged { rate: train_settings.rate });
            }
            Stop::Epochs | Stop::Patience | Stop::Diverged => {}
        }
        let silent = squares(if self.held.is_empty() { &self.trained } else { &self.held });
        if outcome.validation * unit >= silent {
            // No better than its mean: then the mean is what it says.
            return Ok(TrainedAnchor { layers: Vec::new(), mean, validation_cm: silent });
        }
        let layer = |layer: usize| {
            let (weights, bias) = net.layer(layer);
            let mut numbers = LayerNumbers { weights: weights.to_vec(), bias: bias.to_vec() };
            if layer + 1 == net.layer_count() {
                numbers.weights.iter_mut().for_each(|w| *w *= unit as f32);
                let bias = numbers.bias.iter_mut().zip(mean);
                bias.for_each(|(bias, mean)| *bias = *bias * unit as f32 + mean);
            }
            numbers
        };
        let layers = (0..net.layer_count()).map(layer).collect();
        Ok(TrainedAnchor { layers, mean, validation_cm: outcome.validation * unit })
    }

    /// Trains one network for all anchors in place of mini-networks, which the paper compares these with. Every anchor
    /// gets a copy of the hidden layers and its three rows of the last.
    pub fn train_together(
        &self,
        settings: &DiffSettings,
        mut watch: impl FnMut() -> bool,
    ) -> Result<Vec<TrainedAnchor>, DiffLearnError> {
        let count = self.anchors.len();
        let width = 3 * count;
        let mut mean = vec![0.0f64; width];
        for pose in &self.trained {
            let own = &self.anchor_places[pose * width..][..width];
            mean.iter_mut().zip(own).for_each(|(sum, n)| *sum += f64::from(*n) / self.trained.len() as f64);
        }
        let centred = |pose: usize| {
            let own = &self.anchor_places[pose * width..][..width];
            own.iter().zip(&mean).map(|(n, mean)| f64::from(*n) - mean)
        };
        let squares: f64 = self.trained.iter().flat_map(|pose| centred(*pose)).map(|n| n * n).sum();
        let unit = settings.loss_unit((squares / self.trained.len() as f64).sqrt().max(STILL));
        let poses = self.trained.len() + self.held.len();
        let targets: Vec<f32> = (0..poses)
            .flat_map(|pose| centred(pose).map(|n| (n / unit) as f32).collect::<Vec<_>>())
            .collect();
        let train_settings = settings.anchor_training(self.trained.len(), 0);
        let sizes: Vec<usize> = [&[self.features.count()][..], &settings.anchor_widths, &[width]].concat();
        let mut random = Random::stream(train_settings.seed, 0xa2c4);
        let mut net = Net::with_activation(&sizes, settings.activation, &mut random);
        let held: Vec<u32> = self.held.iter().map(|pose| *pose as u32).collect();
        let inputs = &self.features.values;
        let outcome = train(&mut net, inputs, &targets, &held, &train_settings, |_, _| watch());
        match outcome.stop {
            Stop::Asked => return Err(DiffLearnError::Stopped),
            Stop::Diverged => return Err(DiffLearnError::Diverged { rate: train_settings.rate }),
            Stop::Epochs | Stop::Patience => {}
        }
        let numbers = |layer: usize| {
            let (weights, bias) = net.layer(layer);
            LayerNumbers { weights: weights.to_vec(), bias: bias.to_vec() }
        };
        let hidden: Vec<LayerNumbers> = (0..net.layer_count() - 1).map(numbers).collect();
        let last = numbers(net.layer_count() - 1);
        let inner = last.weights.len() / width;
        let of = |anchor: usize| {
            let (mut weights, mut bias) = (Vec::with_capacity(3 * inner), Vec::with_capacity(3));
            for row in 3 * anchor..3 * anchor + 3 {
                weights.extend(last.weights[row * inner..][..inner].iter().map(|w| w * unit as f32));
                bias.push((f64::from(last.bias[row]) * unit + mean[row]) as f32);
            }
            let layers: Vec<LayerNumbers> =
                hidden.iter().cloned().chain([LayerNumbers { weights, bias }]).collect();
            let miss = |pose: &usize| -> f64 {
                let said = forward(&layers, settings.activation, self.features.of(*pose).to_vec());
                let truth = &self.anchor_places[pose * width + 3 * anchor..][..3];
                said.iter().zip(truth).map(|(a, b)| f64::from(a - b).powi(2)).sum()
            };
            let held = if self.held.is_empty() { &self.trained } else { &self.held };
            let chosen = spread(held, 64);
            let error = chosen.iter().map(miss).sum::<f64>() / chosen.len().max(1) as f64;
            let mean = [0, 1, 2].map(|axis| mean[3 * anchor + axis] as f32);
            TrainedAnchor { layers, mean, validation_cm: error.sqrt() }
        };
        Ok((0..count).into_par_iter().map(of).collect())
    }
}
