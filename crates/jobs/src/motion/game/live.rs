//! A game while it is played: beats wait, a player acts them out frame by frame, her mark appears when she has acted. The
//! terminal and the studio run games by this.

use super::gaze::Gaze;
use super::reactions::{Mood, Reactions};
use super::rules::{Board, Mark, Standing};
use super::session::{Beat, Game, GameConfig};
use std::collections::VecDeque;
use understudy_runtime::motion::{Command, CommandError, Motion, MotionPlayer};

/// A game and what is still to be acted.
pub struct LiveGame {
    game: Game,
    gaze: Gaze,
    waiting: VecDeque<Beat>,
    now: Option<Beat>,
    shown: Board,
}

impl LiveGame {
    /// Begins a game.
    pub fn begin(motion: &Motion, config: &GameConfig, reactions: Reactions) -> Result<Self, String> {
        let (game, beats) = Game::new(config, reactions)?;
        let gaze = Gaze::new(motion.controls(), config.seed);
        Ok(Self { game, gaze, waiting: beats.into(), now: None, shown: Board::default() })
    }

    /// The board as it stands after what was acted so far.
    pub fn shown(&self) -> &Board {
        &self.shown
    }

    /// Her mark.
    pub fn hers(&self) -> Mark {
        self.game.hers()
    }

    /// Squares in the order in which they are taken, those that she has not put yet included.
    pub fn moves(&self) -> &[usize] {
        self.game.moves()
    }

    /// The situation that is acted, or was last.
    pub fn mood(&self) -> Option<Mood> {
        self.now.as_ref().map(|beat| beat.mood)
    }

    /// How the game stands as far as it is shown.
    pub fn standing(&self) -> Standing {
        self.shown.standing()
    }

    /// Whether the other may take a square: she has put all her marks.
    pub fn is_yours(&self) -> bool {
        self.shown == *self.game.board() && self.standing() == Standing::Open && !self.reacts()
    }

    /// Whether something is acted that a move of the other's does not cut short.
    fn reacts(&self) -> bool {
        let cut = |beat: &Beat| matches!(beat.mood, Mood::Waits | Mood::Tires);
        self.waiting.iter().any(|beat| !cut(beat)) || self.now.as_ref().is_none_or(|beat| !cut(beat))
    }

    /// The other takes a square, and she leaves whatever she does while she waits.
    pub fn take(&mut self, player: &mut MotionPlayer, square: usize) -> Result<(), String> {
        if !self.is_yours() && self.standing() == Standing::Open {
            return Err("it is her turn".into());
        }
        let beats = self.game.take(square)?;
        self.waiting = beats.into();
        self.now = None;
        self.shown.play(square, self.game.hers().other())?;
        player.command(Command::Stop).map_err(|error| error.to_string())
    }

    /// The other does not move: she grows tired of it.
    pub fn linger(&mut self) {
        if self.is_yours() {
            let beat = self.game.linger();
            self.waiting.push_back(beat);
        }
    }

    /// Whether something is left to be acted.
    pub fn is_busy(&self, player: &MotionPlayer) -> bool {
        player.is_busy() || !self.waiting.is_empty() || self.puts()
    }

    fn puts(&self) -> bool {
        self.now.as_ref().is_some_and(|beat| beat.puts.is_some())
    }

    /// One frame: what is acted goes on, and the next begins when it is done. Controls go to `frame`.
    pub fn step(&mut self, player: &mut MotionPlayer, frame: &mut Vec<f32>) -> Result<(), CommandError> {
        while !player.is_busy() {
            let square = self.now.as_mut().and_then(|beat| beat.puts.take());
            if let Some(square) = square {
                // The game has put it there already.
                self.shown.0[square] = self.game.board().0[square];
            }
            let Some(beat) = self.waiting.pop_front() else { break };
            for line in &beat.script {
                player.command(line.command.clone())?;
            }
            self.now = Some(beat);
        }
        player.step();
        frame.clear();
        frame.extend_from_slice(player.controls());
        self.gaze.look(self.mood().unwrap_or(Mood::Waits), frame);
        Ok(())
    }
}
