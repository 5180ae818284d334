//! When to lower the learning rate and when to stop: each rate until validation stops improving or its cap
//! is reached, then the best parameters go on to the next. Start at [`run`].

use super::balance::Balance;
use super::trainer::Trainer;
use super::{FaceLearnError, FaceSettings};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Learning rates and their ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// One after another.
    pub rates: Vec<f32>,
    /// Steps of each rate at most.
    pub caps: Vec<usize>,
    /// Steps between two looks at the validation poses.
    pub check_every: usize,
    /// Looks without a gain after which a rate ends.
    pub patience: usize,
    /// What counts as a gain, as a share of the best loss.
    pub gain: f64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            rates: vec![2e-3, 2e-4, 2e-5],
            caps: vec![120_000, 50_000, 20_000],
            check_every: 1000,
            patience: 12,
            gain: 1e-3,
        }
    }
}

impl Schedule {
    /// The same rates with so many steps in all.
    pub fn with_total(mut self, total: usize) -> Self {
        let whole: usize = self.caps.iter().sum::<usize>().max(1);
        for cap in &mut self.caps {
            *cap = (*cap as f64 / whole as f64 * total as f64).round().max(1.0) as usize;
        }
        self
    }

    /// Steps of all rates at most.
    pub fn total(&self) -> usize {
        self.caps.iter().sum()
    }

    /// Every number makes sense.
    pub fn check(&self) -> Result<(), FaceLearnError> {
        let setting = |what, value, want, fine| match fine {
            true => Ok(()),
            false => Err(FaceLearnError::Setting { what, value, want }),
        };
        for rate in &self.rates {
            setting("learning rate", f64::from(*rate), "more than 0", rate.is_finite() && *rate > 0.0)?;
        }
        let same = self.rates.len() == self.caps.len() && !self.rates.is_empty();
        setting("number of caps", self.caps.len() as f64, "one per learning rate", same)?;
        setting("interval of checks", self.check_every as f64, "1 or more", self.check_every > 0)?;
        setting("patience", self.patience as f64, "1 or more", self.patience > 0)?;
        setting("gain", self.gain, "0 or more", self.gain.is_finite() && self.gain >= 0.0)
    }
}

/// How far training is. Together with the networks' state it is all that a later run needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Which rate.
    pub rate: usize,
    /// Steps in all.
    pub steps: usize,
    /// Steps at this rate.
    pub steps_at_rate: usize,
    /// The best validation loss of all.
    pub best: f32,
    /// The validation loss before the first step.
    #[serde(default = "largest")]
    pub untrained: f32,
    /// The loss that the next gain is measured against.
    pub mark: f32,
    /// Looks since the last gain.
    pub stale: usize,
    /// Steps at each rate that has ended, and whether it stopped improving or ran into its cap.
    pub ended: Vec<(usize, End)>,
}

/// Why a rate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// No gain any more.
    Converged,
    /// All its steps.
    Cap,
}

impl Default for Progress {
    fn default() -> Self {
        let (best, mark, untrained) = (f32::MAX, f32::MAX, f32::MAX);
        Self { rate: 0, steps: 0, steps_at_rate: 0, best, untrained, mark, stale: 0, ended: Vec::new() }
    }
}

fn largest() -> f32 {
    f32::MAX
}

/// How many times worse than before training a loss must be for training to have diverged.
const DIVERGED: f32 = 1.5;

/// What a listener wants after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The next step.
    Step,
    /// The next learning rate: this one's time is up.
    Rate,
    /// To stop; what it was told then is where a later call goes on.
    Stop,
}

impl From<bool> for Next {
    fn from(go_on: bool) -> Self {
        if go_on { Self::Step } else { Self::Stop }
    }
}

/// Trains to the end of the schedule. `watch(progress, loss)` is called after every step and says how to go on.
pub fn run<N: Into<Next>>(
    trainer: &Trainer<'_>,
    balance: &Balance,
    validation: &[usize],
    schedule: &Schedule,
    batch: usize,
    seed: u64,
    progress: &mut Progress,
    mut watch: impl FnMut(&Progress, f64) -> N,
) -> Result<(), FaceLearnError> {
    let mut poses = vec![0usize; batch];
    let mut time_is_up = false;
    if progress.steps == 0 {
        progress.untrained = trainer.measure(validation).total() as f32;
    }
    while progress.rate < schedule.rates.len() {
        let (rate, cap) = (schedule.rates[progress.rate], schedule.caps[progress.rate]);
        let converged = progress.stale >= schedule.patience;
        if converged || time_is_up || progress.steps_at_rate >= cap {
            if std::mem::take(&mut time_is_up) && !progress.steps_at_rate.is_multiple_of(schedule.check_every)
            {
                look(trainer, validation, schedule, progress);
            }
            let end = if converged { End::Converged } else { End::Cap };
            progress.ended.push((progress.steps_at_rate, end));
            progress.rate += 1;
            (progress.steps_at_rate, progress.stale, progress.mark) = (0, 0, progress.best);
            trainer.restore_best();
            continue;
        }
        balance.draw(seed, progress.steps, &mut poses);
        progress.steps += 1;
        progress.steps_at_rate += 1;
        let cost = trainer.step(&poses, progress.steps, rate).total();
        if !cost.is_finite() {
            return Err(FaceLearnError::Diverged { step: progress.steps });
        }
        if progress.steps_at_rate.is_multiple_of(schedule.check_every) || progress.steps_at_rate == cap {
            look(trainer, validation, schedule, progress);
        }
        match watch(progress, cost).into() {
            Next::Step => {}
            Next::Rate => time_is_up = true,
            Next::Stop => return Err(FaceLearnError::Stopped),
        }
    }
    // A checkpoint of before does not know.
    if progress.untrained < f32::MAX && progress.best > DIVERGED * progress.untrained {
        return Err(FaceLearnError::Diverged { step: progress.steps });
    }
    Ok(())
}

/// Measures the validation poses, and keeps the parameters where they are the best so far.
fn look(trainer: &Trainer<'_>, validation: &[usize], schedule: &Schedule, progress: &mut Progress) {
    let loss = trainer.measure(validation).total() as f32;
    if loss < progress.best {
        progress.best = loss;
        trainer.keep();
    }
    if f64::from(loss) < f64::from(progress.mark) * (1.0 - schedule.gain) {
        (progress.mark, progress.stale) = (loss, 0);
    } else {
        progress.stale += 1;
    }
}

/// Steps per second, measured on steps that are taken back: for a hundredth of the limit, seconds, or on forty steps.
pub fn pace(trainer: &Trainer<'_>, balance: &Balance, settings: &FaceSettings, limit: f64) -> f64 {
    let state = trainer.state();
    let mut batch = vec![0; settings.batch];
    let mut run = |most: usize, seconds: f64| {
        let start = Instant::now();
        let mut steps = 0;
        while steps < most && (steps < 2 || start.elapsed().as_secs_f64() < seconds) {
            balance.draw(settings.seed, steps, &mut batch);
            trainer.step(&batch, steps + 1, 1e-4);
            steps += 1;
        }
        steps as f64 / start.elapsed().as_secs_f64()
    };
    run(5, 0.002 * limit);
    let pace = run(40, 0.01 * limit);
    trainer.set_state(&state);
    pace
}
