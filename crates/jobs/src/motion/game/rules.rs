//! Tic-tac-toe: the board, who has won, and an opponent that plays perfectly but forgets to look now and then. Pure: no
//! clock, no files, and chance only from the generator that is handed in.

use serde::{Deserialize, Serialize};
use understudy_core::Random;

/// Whose mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Begins.
    Cross,
    /// Follows.
    Nought,
}

impl Mark {
    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Cross => Self::Nought,
            Self::Nought => Self::Cross,
        }
    }

    /// As people write it.
    pub fn letter(self) -> char {
        match self {
            Self::Cross => 'X',
            Self::Nought => 'O',
        }
    }
}

/// How a game stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Somebody is to move.
    Open,
    /// Three in a row.
    Won(Mark),
    /// Full, and nobody has three.
    Drawn,
}

/// Three squares in a row, eight times.
const LINES: [[usize; 3]; 8] =
    [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]];

/// Nine squares, row by row from the top left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Board(pub [Option<Mark>; 9]);

impl Board {
    /// Puts a mark on a free square; says why not otherwise.
    pub fn play(&mut self, square: usize, mark: Mark) -> Result<(), String> {
        match self.0.get_mut(square) {
            None => Err("there are only the squares 1 to 9".into()),
            Some(Some(taken)) => Err(format!("square {} has an {} already", square + 1, taken.letter())),
            Some(free) => {
                *free = Some(mark);
                Ok(())
            }
        }
    }

    /// The squares without a mark.
    pub fn free(&self) -> impl Iterator<Item = usize> + '_ {
        (0..9).filter(|square| self.0[*square].is_none())
    }

    /// How the game stands.
    pub fn standing(&self) -> Standing {
        let line = |[a, b, c]: &[usize; 3]| {
            self.0[*a].filter(|mark| self.0[*b] == Some(*mark) && self.0[*c] == Some(*mark))
        };
        match LINES.iter().find_map(line) {
            Some(mark) => Standing::Won(mark),
            None if self.free().next().is_none() => Standing::Drawn,
            None => Standing::Open,
        }
    }

    /// The three squares of a won game.
    pub fn winning_line(&self) -> Option<[usize; 3]> {
        let full = |line: &&[usize; 3]| {
            let [a, b, c] = line.map(|square| self.0[square]);
            a.is_some() && a == b && b == c
        };
        LINES.iter().find(full).copied()
    }

    /// Free squares on which a mark would win at once.
    pub fn threats(&self, mark: Mark) -> Vec<usize> {
        let wins = |square: &usize| {
            let mut then = *self;
            then.0[*square] = Some(mark);
            then.standing() == Standing::Won(mark)
        };
        self.free().filter(wins).collect()
    }

    /// What a game is worth to who is to move, both playing perfectly: positive wins, and sooner is worth more.
    fn worth(&self, mover: Mark) -> i32 {
        match self.standing() {
            // Only who moved last can have won.
            Standing::Won(_) => -1 - self.free().count() as i32,
            Standing::Drawn => 0,
            Standing::Open => self.free().map(|square| self.worth_of(square, mover)).max().unwrap_or(0),
        }
    }

    fn worth_of(&self, square: usize, mover: Mark) -> i32 {
        let mut then = *self;
        then.0[square] = Some(mover);
        -then.worth(mover.other())
    }
}

impl std::fmt::Display for Board {
    /// Three lines; free squares show their numbers.
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        for row in 0..3 {
            let cell = |column: usize| {
                let square = 3 * row + column;
                self.0[square].map_or_else(|| (square + 1).to_string(), |mark| mark.letter().to_string())
            };
            write!(out, " {} | {} | {} ", cell(0), cell(1), cell(2))?;
            if row < 2 {
                writeln!(out, "\n---+---+---")?;
            }
        }
        Ok(())
    }
}

/// A move of the opponent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Where.
    pub square: usize,
    /// Whether she did not look, and left the other a win that she could have blocked.
    pub missed_block: bool,
}

/// Plays perfectly, but forgets to look with a probability.
#[derive(Debug, Clone)]
pub struct Opponent {
    forgetful: f64,
    random: Random,
}

impl Opponent {
    /// `forgetful`: how likely she takes any free square without looking, from 0 to 1.
    pub fn new(forgetful: f64, seed: u64) -> Self {
        Self { forgetful, random: Random::stream(seed, 0x6f78_6f78) }
    }

    /// Her move; there must be a free square. Among equally good ones chance decides.
    pub fn choose(&mut self, board: &Board, mark: Mark) -> Choice {
        let free: Vec<usize> = board.free().collect();
        let forgets = self.random.unit() < self.forgetful;
        let good: Vec<usize> = if forgets {
            free
        } else {
            let best = free.iter().map(|square| board.worth_of(*square, mark)).max().unwrap_or(0);
            free.into_iter().filter(|square| board.worth_of(*square, mark) == best).collect()
        };
        let square = good[self.random.below(good.len())];
        let mut then = *board;
        then.0[square] = Some(mark);
        let dangers = board.threats(mark.other());
        let missed_block =
            then.standing() == Standing::Open && dangers.len() == 1 && !then.threats(mark.other()).is_empty();
        Choice { square, missed_block }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every game that she can be led into, she always looking: `her` against all moves of the other.
    fn all_games(board: Board, mover: Mark, her: Mark, opponent: &mut Opponent, ends: &mut [usize; 3]) {
        match board.standing() {
            Standing::Won(mark) => ends[usize::from(mark != her)] += 1,
            Standing::Drawn => ends[2] += 1,
            Standing::Open => {
                let squares: Vec<usize> = if mover == her {
                    vec![opponent.choose(&board, her).square]
                } else {
                    board.free().collect()
                };
                for square in squares {
                    let mut then = board;
                    then.play(square, mover).expect("a free square");
                    all_games(then, mover.other(), her, opponent, ends);
                }
            }
        }
    }

    #[test]
    fn who_never_forgets_never_loses() {
        for seed in 0..2 {
            for her in [Mark::Cross, Mark::Nought] {
                let mut ends = [0; 3];
                all_games(Board::default(), Mark::Cross, her, &mut Opponent::new(0.0, seed), &mut ends);
                assert_eq!(ends[1], 0, "{ends:?}");
                assert!(ends[0] > 0 && ends[2] > 0, "{ends:?}");
            }
        }
    }

    #[test]
    fn who_forgets_can_be_beaten_and_forgets_as_often_as_is_said() {
        let mut lost = 0;
        for seed in 0..100 {
            let mut opponent = Opponent::new(0.5, seed);
            let mut other = Opponent::new(0.0, seed + 1000);
            let (mut board, mut mark) = (Board::default(), Mark::Cross);
            while board.standing() == Standing::Open {
                let player = if mark == Mark::Cross { &mut other } else { &mut opponent };
                let square = player.choose(&board, mark).square;
                board.play(square, mark).expect("a free square");
                mark = mark.other();
            }
            assert_ne!(board.standing(), Standing::Won(Mark::Nought), "the other never forgets");
            lost += usize::from(board.standing() == Standing::Won(Mark::Cross));
        }
        assert!((30..95).contains(&lost), "{lost} of 100");

        // X threatens the third of the top row: of six free squares one blocks it.
        let mut board = Board::default();
        for (square, mark) in [(0, Mark::Cross), (4, Mark::Nought), (1, Mark::Cross)] {
            board.play(square, mark).expect("free");
        }
        let misses = |forgetful: f64| {
            let mut opponent = Opponent::new(forgetful, 9);
            (0..800).filter(|_| opponent.choose(&board, Mark::Nought).missed_block).count() as f64 / 800.0
        };
        assert_eq!(misses(0.0), 0.0);
        let (half, want) = (misses(0.5), 0.5 * 5.0 / 6.0);
        assert!((half - want).abs() < 0.07, "{half}, {want}");
    }

    #[test]
    fn boards_know_how_they_stand() {
        let mut board = Board::default();
        assert_eq!((board.standing(), board.winning_line()), (Standing::Open, None));
        for square in [2, 4] {
            board.play(square, Mark::Nought).expect("free");
        }
        assert_eq!(board.threats(Mark::Nought), [6]);
        assert!(board.play(4, Mark::Cross).expect_err("taken").contains("square 5 has an O"));
        assert!(board.play(9, Mark::Cross).expect_err("outside").contains("only the squares 1 to 9"));
        board.play(6, Mark::Nought).expect("free");
        assert_eq!((board.standing(), board.winning_line()), (Standing::Won(Mark::Nought), Some([2, 4, 6])));
        assert_eq!(board.to_string().lines().next(), Some(" 1 | 2 | O "));
        use Mark::{Cross as X, Nought as O};
        let drawn = Board([X, O, X, X, O, O, O, X, X].map(Some));
        assert_eq!(drawn.standing(), Standing::Drawn);
    }
}
