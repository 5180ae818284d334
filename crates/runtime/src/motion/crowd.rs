//! Thousands of characters that play the same motion, each for itself, with one working memory for all.

use super::Motion;
use super::actor::{Actor, MotionSituation, PlayConfig};
use super::command::Command;
use super::error::CommandError;
use super::space::Workspace;
use std::sync::Arc;

/// Many characters that play one motion. For several threads make several crowds of it: the motion is shared.
#[derive(Debug, Clone)]
pub struct Crowd {
    motion: Arc<Motion>,
    actors: Vec<Actor>,
    work: Workspace,
    /// `[characters][C]`.
    controls: Vec<f32>,
}

impl Crowd {
    /// So many characters; character `i` has the seed `config.seed + i`, and the label `i` modulo their number.
    pub fn new(motion: Arc<Motion>, characters: usize, config: PlayConfig) -> Result<Self, CommandError> {
        let labels = motion.models().len();
        let actor = |i: usize| {
            let label = motion.models()[i % labels].label();
            Actor::new(
                &motion,
                Some(label),
                PlayConfig { seed: config.seed.wrapping_add(i as u64), ..config },
            )
        };
        let actors = (0..characters).map(actor).collect::<Result<Vec<_>, _>>()?;
        let controls = vec![0.0; characters * motion.controls().len()];
        Ok(Self { work: Workspace::new(&motion), actors, controls, motion })
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.actors.len()
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.actors.is_empty()
    }

    /// As [`MotionPlayer::command`](super::MotionPlayer::command), for one of them.
    ///
    /// # Panics
    /// Where there is no such character.
    pub fn command(&mut self, character: usize, command: Command) -> Result<(), CommandError> {
        self.actors[character].command(&self.motion, command)
    }

    /// Whether a character has commands left.
    pub fn is_busy(&self, character: usize) -> bool {
        self.actors[character].is_busy()
    }

    /// Where a character stands.
    pub fn situation(&self, character: usize) -> MotionSituation {
        self.actors[character].situation(&self.motion)
    }

    /// The next frame of everybody.
    pub fn step(&mut self) {
        let count = self.motion.controls().len();
        for (actor, controls) in self.actors.iter_mut().zip(self.controls.chunks_exact_mut(count.max(1))) {
            actor.step(&self.motion, &mut self.work, controls);
        }
    }

    /// Controls of the last frame, `[characters][C]`.
    pub fn controls(&self) -> &[f32] {
        &self.controls
    }
}
