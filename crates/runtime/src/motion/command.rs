//! What a character shall do: as text, one command after another, or as JSON, one object per command.
//!
//! ```text
//! transition happy                       # to another label, over a bridge
//! move smile_3 in 1.5s                   # to the strongest pose of a clip; smile_3@0.4s names a moment; straight: not over the frames
//! idle 4s around smile_3, grin dwell 1s  # by one pose after another; without a time until the next command
//! play head_shake                        # a clip as it was made; head_shake[0.2..1.5] a part of it
//! mix 3s smile_3 60%, gasp@0.5s 40%      # poses of several labels at once
//! stop                                   # whatever it does; for live control
//! ```
//!
//! Commands end with a line or a semicolon; `#` begins a comment. The same as JSON: `{"command":"move","pose":"smile_3",
//! "seconds":1.5}`, `{"command":"idle","around":["smile_3","grin"],"dwell":1}`, `{"command":"mix","seconds":3,
//! "parts":[{"pose":"smile_3","weight":0.6}]}`.

use super::error::CommandError;
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

/// A pose by a clip and a moment of it: `smile_3` or `smile_3@0.4s`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PoseName {
    /// The clip.
    pub clip: String,
    /// Seconds; the strongest pose of the clip when left out.
    pub at: Option<f64>,
}

impl TryFrom<String> for PoseName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        pose(&text)
    }
}

impl From<PoseName> for String {
    fn from(pose: PoseName) -> Self {
        pose.to_string()
    }
}

impl std::fmt::Display for PoseName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.at {
            None => out.write_str(&self.clip),
            Some(at) => write!(out, "{}@{at}s", self.clip),
        }
    }
}

/// A pose and how much of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixPart {
    /// Which.
    pub pose: PoseName,
    /// From 0 to 1.
    pub weight: f64,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
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
        #[serde(default)]
        seconds: Option<f64>,
        /// On a straight line instead of over the frames of the clips.
        #[serde(default)]
        straight: bool,
    },
    /// Around some poses, or where it is.
    Idle {
        /// For how long; until the next command when left out.
        #[serde(default)]
        seconds: Option<f64>,
        /// Which; none: where it is.
        #[serde(default)]
        around: Vec<PoseName>,
        /// Mean time by each, seconds; the player's own when left out.
        #[serde(default)]
        dwell: Option<f64>,
    },
    /// A clip as it was made.
    Play {
        /// The clip.
        clip: String,
        /// Seconds of its part; the whole when left out.
        #[serde(default)]
        part: Option<(f64, f64)>,
    },
    /// Poses of one or several labels at once; what their weights leave of one stays with the pose it is in.
    Mix {
        /// For how long, fading in and out included.
        seconds: f64,
        /// Which, and how much of each; at most one together.
        parts: Vec<MixPart>,
    },
    /// Leaves whatever it does and what waits, and idles where it is.
    Stop,
}

/// A command takes no longer, seconds.
const MOST_SECONDS: u32 = 3600;

impl Command {
    /// One from JSON.
    pub fn from_json(text: &str) -> Result<Self, CommandError> {
        let command: Self =
            serde_json::from_str(text).map_err(|error| CommandError::Text(error.to_string()))?;
        command.check()?;
        Ok(command)
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether its numbers are such that can be done.
    pub fn check(&self) -> Result<(), CommandError> {
        let seconds = |value: f64| number("seconds", value, MOST_SECONDS);
        let moment = |pose: &PoseName| pose.at.map_or(Ok(()), seconds);
        match self {
            Self::Transition { .. } | Self::Stop => Ok(()),
            Self::Move { pose, seconds: time, .. } => moment(pose).and(time.map_or(Ok(()), seconds)),
            Self::Idle { seconds: time, around, dwell } => {
                around.iter().try_for_each(moment)?;
                time.map_or(Ok(()), seconds)?;
                dwell.map_or(Ok(()), seconds)
            }
            Self::Play { part, .. } => match part {
                Some((from, to)) if from >= to => {
                    Err(CommandError::Text("the part ends before it begins".into()))
                }
                Some((from, to)) => seconds(*from).and(seconds(*to)),
                None => Ok(()),
            },
            Self::Mix { seconds: time, parts } => {
                seconds(*time)?;
                let mut sum = 0.0;
                for part in parts {
                    moment(&part.pose)?;
                    number("the weight", part.weight, 1)?;
                    sum += part.weight;
                }
                if parts.is_empty() {
                    return Err(CommandError::Text("nothing to mix".into()));
                }
                number("the sum of the weights", (sum * 1e9).round() / 1e9, 1)
            }
        }
    }
}

fn number(what: &'static str, value: f64, high: u32) -> Result<(), CommandError> {
    if (0.0..=f64::from(high)).contains(&value) {
        return Ok(());
    }
    Err(CommandError::Number { what, value: value.to_string(), low: 0, high })
}

/// A command with the line it stands on.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptLine {
    /// From 1.
    pub line: usize,
    /// What to do.
    pub command: Command,
}

/// Reads a script.
pub fn parse_script(text: &str) -> Result<Vec<ScriptLine>, ScriptError> {
    let mut commands = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or_default();
        for statement in code.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
            let wrong = |problem| ScriptError { line: index + 1, problem };
            let command = command(statement).map_err(wrong)?;
            command.check().map_err(|error| wrong(error.to_string()))?;
            commands.push(ScriptLine { line: index + 1, command });
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
        ("idle", rest) => idle(rest),
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
        ("mix", [time, parts @ ..]) if !parts.is_empty() && parts.len().is_multiple_of(2) => {
            let part = |pair: &[&str]| {
                let share = pair[1].strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
                let share = share.ok_or_else(|| format!("'{}' is no share such as 60%", pair[1]))?;
                Ok(MixPart { pose: pose(pair[0])?, weight: share / 100.0 })
            };
            let parts = parts.chunks_exact(2).map(part).collect::<Result<_, String>>()?;
            Ok(Command::Mix { seconds: seconds(time)?, parts })
        }
        ("mix", _) => Err("'mix 3s CLIP 60%, CLIP 40%' is wanted".into()),
        ("stop", []) => Ok(Command::Stop),
        ("stop", _) => Err("'stop' stands alone".into()),
        (other, _) => Err(format!(
            "there is no command '{other}'; there are transition, move, idle, play, mix and stop"
        )),
    }
}

fn idle(words: &[&str]) -> Result<Command, String> {
    let wanted =
        || "'idle 4s', 'idle 4s around CLIP, CLIP' or 'idle around CLIP dwell 1s' is wanted".to_string();
    let (time, rest) = match words {
        ["around", ..] => (None, words),
        [time, rest @ ..] => (Some(seconds(time)?), rest),
        [] => return Ok(Command::Idle { seconds: None, around: Vec::new(), dwell: None }),
    };
    let (rest, dwell) = match rest {
        [rest @ .., "dwell", time] => (rest, Some(seconds(time)?)),
        _ => (rest, None),
    };
    let around = match rest {
        [] if dwell.is_none() => Vec::new(),
        ["around", poses @ ..] if !poses.is_empty() => {
            poses.iter().map(|text| pose(text)).collect::<Result<_, _>>()?
        }
        _ => return Err(wanted()),
    };
    Ok(Command::Idle { seconds: time, around, dwell })
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<f64>();
    match number {
        Ok(seconds) if (0.0..=f64::from(MOST_SECONDS)).contains(&seconds) => Ok(seconds),
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
                    play head_shake[0.2..1.5]; move grin straight\nidle 2\nidle around grin dwell 1s\n\
                    mix 3s smile_3 60%, grin@0.4s 40%; stop";
        let lines = parse_script(text).expect("a script");
        let grin = |at| PoseName { clip: "grin".into(), at };
        let smile = PoseName { clip: "smile_3".into(), at: None };
        assert_eq!(lines.iter().map(|line| line.line).collect::<Vec<_>>(), [1, 1, 4, 5, 5, 6, 7, 8, 8]);
        assert_eq!(
            lines[1].command,
            Command::Move { pose: smile.clone(), seconds: Some(1.5), straight: false }
        );
        let around = vec![smile.clone(), grin(Some(0.4))];
        assert_eq!(lines[2].command, Command::Idle { seconds: Some(4.0), around, dwell: None });
        assert_eq!(lines[3].command, Command::Play { clip: "head_shake".into(), part: Some((0.2, 1.5)) });
        assert_eq!(lines[4].command, Command::Move { pose: grin(None), seconds: None, straight: true });
        let around = vec![grin(None)];
        assert_eq!(lines[6].command, Command::Idle { seconds: None, around, dwell: Some(1.0) });
        let parts =
            vec![MixPart { pose: smile, weight: 0.6 }, MixPart { pose: grin(Some(0.4)), weight: 0.4 }];
        assert_eq!(lines[7].command, Command::Mix { seconds: 3.0, parts });
        for line in lines {
            assert_eq!(Command::from_json(&line.command.to_json()), Ok(line.command));
        }
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, want) in [
            (
                "idle 4s\njump",
                "line 2: there is no command 'jump'; there are transition, move, idle, play, mix and stop",
            ),
            ("move smile in a second", "line 1: 'a' is no number of seconds"),
            ("\n\nidle -4s", "line 3: -4 s is not between 0 and an hour"),
            ("play roar[2..1]", "line 1: 'roar[2..1]': the part ends before it begins"),
            ("move smile slowly", "line 1: 'slowly' is not understood; 'in 1.5s' or 'straight' may follow"),
            ("transition", "line 1: 'transition LABEL' is wanted"),
            (
                "idle 3s around",
                "line 1: 'idle 4s', 'idle 4s around CLIP, CLIP' or 'idle around CLIP dwell 1s' is wanted",
            ),
            ("mix 3s smile", "line 1: 'mix 3s CLIP 60%, CLIP 40%' is wanted"),
            ("mix 3s smile much", "line 1: 'much' is no share such as 60%"),
            ("mix 3s a 60%, b 60%", "line 1: the sum of the weights 1.2 is not between 0 and 1"),
        ] {
            assert_eq!(parse_script(text).expect_err(text).to_string(), want);
        }
    }

    #[test]
    fn a_stream_is_checked_like_a_script() {
        let command = Command::from_json(r#"{"command":"move","pose":"smile@0.5s"}"#).expect("a command");
        let pose = PoseName { clip: "smile".into(), at: Some(0.5) };
        assert_eq!(command, Command::Move { pose, seconds: None, straight: false });
        for bad in [
            "",
            "{}",
            r#"{"command":"fly"}"#,
            r#"{"command":"move","pose":"smile","seconds":-1}"#,
            r#"{"command":"move","pose":"smile@x"}"#,
            r#"{"command":"move","pose":"smile","speed":1}"#,
            r#"{"command":"idle","seconds":1e9}"#,
            r#"{"command":"play","clip":"a","part":[2,1]}"#,
            r#"{"command":"mix","seconds":1,"parts":[]}"#,
        ] {
            assert!(Command::from_json(bad).is_err(), "{bad}");
        }
    }
}
