//! What can be wrong with a file of motion or with a command.

use thiserror::Error;

/// A file of motion that is not sound.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {problem}")]
pub struct MotionFileError {
    /// The part of the file.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
}

impl MotionFileError {
    pub(super) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into() }
    }
}

/// Why a command cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandError {
    /// No such label.
    #[error("there is no label '{name}'; there are {}", known.join(", "))]
    UnknownLabel {
        /// The name.
        name: String,
        /// The labels.
        known: Vec<String>,
    },
    /// No such clip.
    #[error("there is no clip '{name}'; there are {}", known.join(", "))]
    UnknownClip {
        /// The name.
        name: String,
        /// The clips.
        known: Vec<String>,
    },
    /// A moment outside a clip.
    #[error("the clip '{clip}' lasts {seconds:.2} s, which {at} s is outside of", seconds = *milliseconds as f64 / 1000.0)]
    Outside {
        /// The clip.
        clip: String,
        /// Its length.
        milliseconds: u64,
        /// What was wanted.
        at: String,
    },
    /// No bridge leads there.
    #[error("no bridge leads from '{from}' to '{to}'")]
    NoWay {
        /// A label.
        from: String,
        /// Another.
        to: String,
    },
    /// A number that no command can have.
    #[error("{what} {value} is not between {low} and {high}")]
    Number {
        /// What it is.
        what: &'static str,
        /// The number.
        value: String,
        /// The least.
        low: u32,
        /// The most.
        high: u32,
    },
    /// Too many commands wait.
    #[error("{most} commands wait already")]
    TooMany {
        /// The most that wait.
        most: usize,
    },
    /// A line of a script or of a stream that is not understood.
    #[error("{0}")]
    Text(String),
}
