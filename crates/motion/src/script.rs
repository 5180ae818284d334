//! Scripts: what a character shall do, one command after another.
//!
//! ```text
//! transition happy            # to another label, over a bridge
//! move smile_3 in 1.5s        # to the strongest pose of a clip; smile_3@0.4s names a moment
//! idle 4s around smile_3, grin
//! play head_shake             # a clip as it was made; head_shake[0.2..1.5] a part of it
//! ```
//!
//! Commands end with a line or a semicolon; `#` begins a comment.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What is wrong with a script, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct ScriptError {
    /// From 1.
    pub line: usize,
    /// One line.
    pub problem: String,
}

/// A pose by a clip and a moment of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoseName {
    /// The clip.
    pub clip: String,
    /// Seconds; the strongest pose of the clip when left out.
    pub at: Option<f64>,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// To another label.
    Transition {
        /// The label.
        label: String,
    },
    /// To a pose.
    Move {
        /// Which.
        pose: PoseName,
        /// Seconds; at the pace of the clips when left out.
        seconds: Option<f64>,
        /// On a straight line instead of over the frames of the clips.
        straight: bool,
    },
    /// Around some poses, or where it is.
    Idle {
        /// For how long.
        seconds: f64,
        /// Which; none: where it is.
        around: Vec<PoseName>,
    },
    /// A clip as it was made.
    Play {
        /// The clip.
        clip: String,
        /// Seconds of its part; the whole when left out.
        part: Option<(f64, f64)>,
    },
}

/// A command with the line it stands on.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// From 1.
    pub line: usize,
    /// What to do.
    pub command: Command,
}

/// Reads a script.
pub fn parse(text: &str) -> Result<Vec<Line>, ScriptError> {
    let mut commands = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or_default();
        for statement in code.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
            let command = command(statement).map_err(|problem| ScriptError { line: index + 1, problem })?;
            commands.push(Line { line: index + 1, command });
        }
    }
    Ok(commands)
}

fn command(text: &str) -> Result<Command, String> {
    let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let words: Vec<&str> = rest.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
    match (verb, words.as_slice()) {
        ("transition", [label]) => Ok(Command::Transition { label: (*label).to_owned() }),
        ("transition", _) => Err("'transition LABEL' is wanted".into()),
        ("move", [target, rest @ ..]) => {
            let (mut within, mut straight) = (None, false);
            let mut rest = rest;
            loop {
                match rest {
                    [] => break,
                    ["in", time, more @ ..] => {
                        within = Some(seconds(time)?);
                        rest = more;
                    }
                    ["straight", more @ ..] => {
                        straight = true;
                        rest = more;
                    }
                    [word, ..] => {
                        return Err(format!(
                            "'{word}' is not understood; 'in 1.5s' or 'straight' may follow"
                        ));
                    }
                }
            }
            Ok(Command::Move { pose: pose(target)?, seconds: within, straight })
        }
        ("move", []) => Err("'move CLIP' or 'move CLIP@1.5s' is wanted".into()),
        ("idle", [time]) => Ok(Command::Idle { seconds: seconds(time)?, around: Vec::new() }),
        ("idle", [time, "around", poses @ ..]) if !poses.is_empty() => {
            let around = poses.iter().map(|text| pose(text)).collect::<Result<_, _>>()?;
            Ok(Command::Idle { seconds: seconds(time)?, around })
        }
        ("idle", _) => Err("'idle 4s' or 'idle 4s around CLIP, CLIP' is wanted".into()),
        ("play", [clip]) => {
            let Some((name, part)) = clip.split_once('[') else {
                return Ok(Command::Play { clip: (*clip).to_owned(), part: None });
            };
            let part = part.strip_suffix(']').and_then(|part| part.split_once(".."));
            let (from, to) = part.ok_or_else(|| format!("'{clip}': 'play CLIP[0.5..2.0]' is wanted"))?;
            let (from, to) = (seconds(from)?, seconds(to)?);
            if from >= to {
                return Err(format!("'{clip}': the part ends before it begins"));
            }
            Ok(Command::Play { clip: name.to_owned(), part: Some((from, to)) })
        }
        ("play", _) => Err("'play CLIP' is wanted".into()),
        (other, _) => {
            Err(format!("there is no command '{other}'; there are transition, move, idle and play"))
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<f64>();
    match number {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(seconds),
        Ok(seconds) => Err(format!("{seconds} s is not between 0 and an hour")),
        Err(_) => Err(format!("'{text}' is no number of seconds")),
    }
}

fn pose(text: &str) -> Result<PoseName, String> {
    match text.split_once('@') {
        None => Ok(PoseName { clip: text.to_owned(), at: None }),
        Some((clip, at)) => Ok(PoseName { clip: clip.to_owned(), at: Some(seconds(at)?) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_read() {
        let text = "transition happy; move smile_3 in 1.5s\n\n# a pause\nidle 4s around smile_3, grin@0.4s # here\n\
                    play head_shake[0.2..1.5]; move grin straight\nidle 2";
        let lines = parse(text).expect("a script");
        let grin = |at| PoseName { clip: "grin".into(), at };
        let smile = PoseName { clip: "smile_3".into(), at: None };
        assert_eq!(lines.iter().map(|line| line.line).collect::<Vec<_>>(), [1, 1, 4, 5, 5, 6]);
        assert_eq!(
            lines[1].command,
            Command::Move { pose: smile.clone(), seconds: Some(1.5), straight: false }
        );
        assert_eq!(lines[2].command, Command::Idle { seconds: 4.0, around: vec![smile, grin(Some(0.4))] });
        assert_eq!(lines[3].command, Command::Play { clip: "head_shake".into(), part: Some((0.2, 1.5)) });
        assert_eq!(lines[4].command, Command::Move { pose: grin(None), seconds: None, straight: true });
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, want) in [
            (
                "idle 4s\njump",
                "line 2: there is no command 'jump'; there are transition, move, idle and play",
            ),
            ("move smile in a second", "line 1: 'a' is no number of seconds"),
            ("\n\nidle -4s", "line 3: -4 s is not between 0 and an hour"),
            ("play roar[2..1]", "line 1: 'roar[2..1]': the part ends before it begins"),
            ("move smile slowly", "line 1: 'slowly' is not understood; 'in 1.5s' or 'straight' may follow"),
            ("transition", "line 1: 'transition LABEL' is wanted"),
            ("idle 3s around", "line 1: 'idle 4s' or 'idle 4s around CLIP, CLIP' is wanted"),
        ] {
            assert_eq!(parse(text).expect_err(text).to_string(), want);
        }
    }
}
