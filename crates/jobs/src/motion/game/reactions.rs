//! What a character does in each situation of a game: several scripts per situation, drawn by seed, never the same twice
//! in a row where there are others.

use serde::{Deserialize, Serialize};
use understudy_core::Random;
use understudy_runtime::motion::{ScriptError, ScriptLine, parse_script};

/// A situation that the character reacts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mood {
    /// The game begins.
    Greets,
    /// The other thinks.
    Waits,
    /// The other thinks for long.
    Tires,
    /// She looks for her move.
    Ponders,
    /// She threatens to win.
    Intimidates,
    /// The other threatens to win, and she has seen it.
    Objects,
    /// The other wins where she forgot to look.
    Marvels,
    /// She has lost.
    Loses,
    /// She has won.
    Wins,
    /// Nobody has won.
    Shrugs,
}

impl Mood {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Greets,
        Self::Waits,
        Self::Tires,
        Self::Ponders,
        Self::Intimidates,
        Self::Objects,
        Self::Marvels,
        Self::Loses,
        Self::Wins,
        Self::Shrugs,
    ];

    /// As it stands in files and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Greets => "greets",
            Self::Waits => "waits",
            Self::Tires => "tires",
            Self::Ponders => "ponders",
            Self::Intimidates => "intimidates",
            Self::Objects => "objects",
            Self::Marvels => "marvels",
            Self::Loses => "loses",
            Self::Wins => "wins",
            Self::Shrugs => "shrugs",
        }
    }
}

/// Scripts by situation.
#[derive(Debug, Clone, PartialEq)]
pub struct Reactions {
    /// In the order of [`Mood::ALL`]; at least one each.
    scripts: [Vec<Vec<ScriptLine>>; Mood::ALL.len()],
    random: Random,
    last: [Option<usize>; Mood::ALL.len()],
}

/// Mira's.
const MIRA: &str = include_str!("reactions.txt");

impl Reactions {
    /// Those of Mira.
    pub fn of_mira(seed: u64) -> Self {
        Self::read(MIRA, seed).expect("the embedded reactions are sound")
    }

    /// Reads `SITUATION: SCRIPT`, one per line.
    pub fn read(text: &str, seed: u64) -> Result<Self, ScriptError> {
        let mut scripts: [Vec<Vec<ScriptLine>>; Mood::ALL.len()] = Default::default();
        for (index, line) in text.lines().enumerate() {
            let wrong = |problem: String| ScriptError { line: index + 1, problem };
            let code = line.split('#').next().unwrap_or_default().trim();
            if code.is_empty() {
                continue;
            }
            let (name, script) = code
                .split_once(':')
                .ok_or_else(|| wrong("'SITUATION: SCRIPT' is wanted, as in 'wins: play happy_1'".into()))?;
            let mood = Mood::ALL.iter().position(|mood| mood.name() == name.trim()).ok_or_else(|| {
                let known: Vec<&str> = Mood::ALL.iter().map(|mood| mood.name()).collect();
                wrong(format!("there is no situation '{}'; there are {}", name.trim(), known.join(", ")))
            })?;
            let mut lines = parse_script(script).map_err(|error| wrong(error.problem))?;
            if lines.is_empty() {
                return Err(wrong(format!("'{}' has no commands", name.trim())));
            }
            lines.iter_mut().for_each(|command| command.line = index + 1);
            scripts[mood].push(lines);
        }
        if let Some(missing) = scripts.iter().position(Vec::is_empty) {
            let problem = format!("nothing is said of '{}'", Mood::ALL[missing].name());
            return Err(ScriptError { line: text.lines().count().max(1), problem });
        }
        let random = Random::stream(seed, 0x7265_6163);
        Ok(Self { scripts, random, last: Default::default() })
    }

    /// All scripts with their situations.
    pub fn all(&self) -> impl Iterator<Item = (Mood, &[ScriptLine])> {
        let of = |(mood, scripts)| std::iter::repeat(mood).zip(scripts);
        Mood::ALL
            .into_iter()
            .zip(&self.scripts)
            .flat_map(of)
            .map(|(mood, script): (Mood, &Vec<ScriptLine>)| (mood, script.as_slice()))
    }

    /// A script for a situation.
    pub fn draw(&mut self, mood: Mood) -> Vec<ScriptLine> {
        let place = Mood::ALL.iter().position(|other| *other == mood).unwrap_or_default();
        let scripts = &self.scripts[place];
        let chosen = match self.last[place] {
            Some(last) if scripts.len() > 1 => {
                // One of the others.
                (last + 1 + self.random.below(scripts.len() - 1)) % scripts.len()
            }
            _ => self.random.below(scripts.len()),
        };
        self.last[place] = Some(chosen);
        scripts[chosen].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_situation_has_three_scripts_and_chance_uses_them_all() {
        let mut reactions = Reactions::of_mira(3);
        for mood in Mood::ALL {
            assert!(reactions.all().filter(|(other, _)| *other == mood).count() >= 3, "{}", mood.name());
            let drawn: Vec<Vec<ScriptLine>> = (0..30).map(|_| reactions.draw(mood)).collect();
            assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]), "{}", mood.name());
            for (_, script) in Reactions::of_mira(3).all().filter(|(other, _)| *other == mood) {
                assert!(drawn.iter().any(|other| other == script), "{}", mood.name());
            }
        }
        let draw = |seed| -> Vec<Vec<ScriptLine>> {
            let mut reactions = Reactions::of_mira(seed);
            Mood::ALL.map(|mood| reactions.draw(mood)).to_vec()
        };
        assert_eq!(draw(5), draw(5));
        assert!((0..9).any(|seed| draw(seed) != draw(5)));
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, want) in [
            ("# a\nwins play happy_1", "line 2: 'SITUATION: SCRIPT' is wanted, as in 'wins: play happy_1'"),
            ("sulks: play happy_1", "line 1: there is no situation 'sulks'"),
            ("wins: play happy_1\n\nwins: dance", "line 3: there is no command 'dance'"),
            ("wins: ;", "line 1: 'wins' has no commands"),
            ("wins: play happy_1", "line 1: nothing is said of 'greets'"),
            ("", "line 1: nothing is said of 'greets'"),
        ] {
            let error = Reactions::read(text, 1).expect_err(text).to_string();
            assert!(error.starts_with(want), "{error}");
        }
    }
}
