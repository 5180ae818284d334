//! A game with its reactions, move by move: what the character does, and when she puts her mark. No frames are made here.

use super::reactions::{Mood, Reactions};
use super::rules::{Board, Mark, Opponent, Standing};
use serde::{Deserialize, Serialize};
use understudy_runtime::motion::ScriptLine;

/// Settings of a game.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GameConfig {
    /// How likely she moves without looking, from 0 to 1.
    pub forgetful: f64,
    /// The same seed and moves give the same game.
    pub seed: u64,
    /// Whether she begins.
    pub she_begins: bool,
}

impl Default for GameConfig {
    fn default() -> Self {
        Self { forgetful: 0.25, seed: 1, she_begins: false }
    }
}

/// Something that she does, and what stands on the board afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Beat {
    /// In which situation.
    pub mood: Mood,
    /// What is played.
    pub script: Vec<ScriptLine>,
    /// Where she puts her mark when it has been played.
    pub puts: Option<usize>,
}

/// A game of tic-tac-toe against a character.
#[derive(Debug, Clone)]
pub struct Game {
    board: Board,
    hers: Mark,
    opponent: Opponent,
    reactions: Reactions,
    /// The square that she forgot to block.
    missed: bool,
    moves: Vec<usize>,
}

impl Game {
    /// A new game, and what she does first.
    pub fn new(config: &GameConfig, reactions: Reactions) -> Result<(Self, Vec<Beat>), String> {
        if !(0.0..=1.0).contains(&config.forgetful) {
            return Err(format!("{} is not between 0 and 1", config.forgetful));
        }
        let mut game = Self {
            board: Board::default(),
            hers: if config.she_begins { Mark::Cross } else { Mark::Nought },
            opponent: Opponent::new(config.forgetful, config.seed),
            reactions,
            missed: false,
            moves: Vec::new(),
        };
        let mut beats = vec![game.beat(Mood::Greets)];
        if config.she_begins {
            game.answer(Mood::Ponders, &mut beats);
        }
        beats.push(game.beat(Mood::Waits));
        Ok((game, beats))
    }

    /// The board, her mark on it where she will have put it.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Her mark.
    pub fn hers(&self) -> Mark {
        self.hers
    }

    /// Squares in the order in which they were taken.
    pub fn moves(&self) -> &[usize] {
        &self.moves
    }

    /// The other takes a square; what she does about it.
    pub fn take(&mut self, square: usize) -> Result<Vec<Beat>, String> {
        if self.board.standing() != Standing::Open {
            return Err("the game is over".into());
        }
        let his = self.hers.other();
        self.board.play(square, his)?;
        self.moves.push(square);
        let mut beats = Vec::new();
        match self.board.standing() {
            Standing::Won(_) => {
                if self.missed {
                    beats.push(self.beat(Mood::Marvels));
                }
                beats.push(self.beat(Mood::Loses));
            }
            Standing::Drawn => beats.push(self.beat(Mood::Shrugs)),
            Standing::Open => {
                let threatened = !self.board.threats(his).is_empty();
                let can_win = !self.board.threats(self.hers).is_empty();
                // Who has not seen the threat ponders as if there were none.
                let mood = if threatened && !can_win { Mood::Objects } else { Mood::Ponders };
                self.answer(mood, &mut beats);
                match self.board.standing() {
                    Standing::Won(_) => beats.push(self.beat(Mood::Wins)),
                    Standing::Drawn => beats.push(self.beat(Mood::Shrugs)),
                    Standing::Open => {
                        if !self.board.threats(self.hers).is_empty() {
                            beats.push(self.beat(Mood::Intimidates));
                        }
                        beats.push(self.beat(Mood::Waits));
                    }
                }
            }
        }
        Ok(beats)
    }

    /// The other does not move.
    pub fn linger(&mut self) -> Beat {
        self.beat(Mood::Tires)
    }

    /// Her move, after she has done something about it.
    fn answer(&mut self, mood: Mood, beats: &mut Vec<Beat>) {
        let choice = self.opponent.choose(&self.board, self.hers);
        self.missed = choice.missed_block;
        let mood = if self.missed { Mood::Ponders } else { mood };
        let mut beat = self.beat(mood);
        beat.puts = Some(choice.square);
        // A free square is always playable.
        let played = self.board.play(choice.square, self.hers);
        debug_assert!(played.is_ok());
        self.moves.push(choice.square);
        beats.push(beat);
    }

    fn beat(&mut self, mood: Mood) -> Beat {
        Beat { mood, script: self.reactions.draw(mood), puts: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moods(beats: &[Beat]) -> Vec<&'static str> {
        beats.iter().map(|beat| beat.mood.name()).collect()
    }

    fn game(config: GameConfig) -> (Game, Vec<Beat>) {
        Game::new(&config, Reactions::of_mira(config.seed)).expect("a game")
    }

    #[test]
    fn she_greets_ponders_objects_and_never_loses_when_she_looks() {
        for seed in 0..6 {
            let (mut game, beats) = game(GameConfig { forgetful: 0.0, seed, she_begins: false });
            assert_eq!(moods(&beats), ["greets", "waits"]);
            let mut said = Vec::new();
            while game.board().standing() == Standing::Open {
                let square = game.board().free().next().expect("a free square");
                let beats = game.take(square).expect("a free square");
                assert_eq!(game.board().standing() == Standing::Open, moods(&beats).ends_with(&["waits"]));
                said.extend(moods(&beats));
            }
            assert_ne!(game.board().standing(), Standing::Won(Mark::Cross));
            assert!(said.contains(&"objects"), "squares from the left threaten soon: {said:?}");
            assert!(!said.contains(&"marvels") && !said.contains(&"loses"));
            assert!(game.take(0).expect_err("over").contains("over"));
        }
    }

    #[test]
    fn who_forgets_marvels_roars_and_puts_every_mark_once() {
        let (mut marvelled, mut ends) = (0, [0; 3]);
        for seed in 0..60 {
            let (mut game, beats) = game(GameConfig { forgetful: 0.8, seed, she_begins: true });
            assert_eq!(moods(&beats), ["greets", "ponders", "waits"]);
            let mut hers = beats.iter().filter(|beat| beat.puts.is_some()).count();
            let mut last = Vec::new();
            while game.board().standing() == Standing::Open {
                // A win where there is one, else the first free square.
                let square = game.board().threats(Mark::Nought).first().copied();
                let square = square.or_else(|| game.board().free().next()).expect("a free square");
                let beats = game.take(square).expect("free");
                hers += beats.iter().filter(|beat| beat.puts.is_some()).count();
                last = moods(&beats);
            }
            let marks = |mark| game.board().0.iter().filter(|square| **square == Some(mark)).count();
            assert_eq!(marks(Mark::Cross), hers);
            assert_eq!(game.moves().len(), 9 - game.board().free().count());
            match game.board().standing() {
                Standing::Won(Mark::Nought) => {
                    assert_eq!(last.last(), Some(&"loses"));
                    marvelled += usize::from(last == ["marvels", "loses"]);
                    ends[0] += 1;
                }
                Standing::Won(Mark::Cross) => {
                    assert_eq!(last.last(), Some(&"wins"));
                    ends[1] += 1;
                }
                _ => {
                    assert_eq!(last.last(), Some(&"shrugs"));
                    ends[2] += 1;
                }
            }
        }
        assert!(marvelled > 5 && ends.iter().all(|end| *end > 0), "{marvelled} {ends:?}");
    }

    #[test]
    fn the_same_seed_and_moves_give_the_same_game() {
        let play = || {
            let (mut game, mut beats) = game(GameConfig { forgetful: 0.5, seed: 7, she_begins: false });
            for _ in 0..2 {
                let square = game.board().free().last().expect("free");
                beats.extend(game.take(square).expect("free"));
            }
            (beats, game.moves().to_vec())
        };
        assert_eq!(play(), play());
        let config = GameConfig { forgetful: f64::NAN, ..GameConfig::default() };
        assert!(Game::new(&config, Reactions::of_mira(1)).is_err());
    }
}
