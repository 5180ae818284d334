//! All numbers that a network learns, in one row: what an optimiser steps, a checkpoint holds and a tape reads.

use super::norm::Statistics;
use understudy_core::Random;

/// A run of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub(super) start: usize,
    pub(super) length: usize,
}

/// Means and variances that a batch norm keeps for use after training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningSlot {
    pub(super) start: usize,
    pub(super) channels: usize,
}

/// Parameters, and the running figures of batch norms.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parameters {
    values: Vec<f32>,
    running: Vec<f32>,
}

impl Parameters {
    /// Share of a batch in the running figures.
    const MOMENTUM: f32 = 0.1;

    /// Normal numbers of that spread.
    pub fn normal(&mut self, length: usize, spread: f32, random: &mut Random) -> Slot {
        self.push((0..length).map(|_| random.normal() as f32 * spread))
    }

    /// One number for all.
    pub fn constant(&mut self, length: usize, value: f32) -> Slot {
        self.push((0..length).map(|_| value))
    }

    fn push(&mut self, values: impl Iterator<Item = f32>) -> Slot {
        let start = self.values.len();
        self.values.extend(values);
        Slot { start, length: self.values.len() - start }
    }

    /// Running figures of a batch norm: mean 0, variance 1.
    pub fn running(&mut self, channels: usize) -> RunningSlot {
        let start = self.running.len();
        self.running.extend((0..2 * channels).map(|k| if k < channels { 0.0 } else { 1.0 }));
        RunningSlot { start, channels }
    }

    /// The numbers of a run.
    pub fn of(&self, slot: Slot) -> &[f32] {
        &self.values[slot.start..slot.start + slot.length]
    }

    /// All that is learned.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The same, for an optimiser.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// All running figures.
    pub fn running_values(&self) -> &[f32] {
        &self.running
    }

    /// Running means and variances of a batch norm.
    pub(super) fn running_of(&self, slot: RunningSlot) -> (&[f32], &[f32]) {
        self.running[slot.start..slot.start + 2 * slot.channels].split_at(slot.channels)
    }

    /// Takes what a batch showed into the running figures.
    pub fn remember(&mut self, batch: &[(RunningSlot, Statistics)]) {
        for (slot, seen) in batch {
            let own = &mut self.running[slot.start..slot.start + 2 * slot.channels];
            for (own, seen) in own.iter_mut().zip(seen.mean.iter().chain(&seen.variance)) {
                *own += Self::MOMENTUM * (seen - *own);
            }
        }
    }

    /// Puts other numbers in; `false` where their counts are others or one is not finite.
    pub fn restore(&mut self, values: &[f32], running: &[f32]) -> bool {
        let fits = values.len() == self.values.len() && running.len() == self.running.len();
        if !fits || !values.iter().chain(running).all(|value| value.is_finite()) {
            return false;
        }
        self.values.copy_from_slice(values);
        self.running.copy_from_slice(running);
        true
    }
}
