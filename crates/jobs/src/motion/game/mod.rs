//! Tic-tac-toe against a character that reacts: `motion game`, and the studio's board. `rules` is the game, `reactions` what
//! she does in which situation, `session` joins them move by move, `live` acts them out; here they meet files, frames and pictures.

mod gaze;
mod live;
mod reactions;
mod rules;
mod session;
mod sheet;
#[cfg(test)]
mod tests;

pub use gaze::Gaze;
pub use live::LiveGame;
pub use reactions::{Mood, Reactions};
pub use rules::{Board, Mark, Standing};
pub use session::{Beat, Game, GameConfig};
pub use sheet::{ReactionSheetConfig, ReactionSheetReport, reaction_sheet};

use super::film::Film;
use super::open;
use super::play::write_take;
use crate::outputs::check_file;
use crate::{JobError, Watch};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use understudy_runtime::motion::{Command, CommandError, Motion, MotionPlayer, PlayConfig, ScriptLine};

/// A game to be played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlayGameConfig {
    /// The file of motion.
    pub motion: PathBuf,
    /// The take that is written, where one is wanted.
    pub output: Option<PathBuf>,
    /// What she does in which situation; Mira's reactions when left out.
    pub reactions: Option<PathBuf>,
    /// The rig for a film, where it is not at the place where it was learned.
    pub rig: Option<String>,
    /// From where a film looks at it.
    pub view: String,
    /// Side of a film's picture, pixels.
    pub size: usize,
    /// Who begins, how forgetful she is, and the seed of all that chance decides.
    pub game: GameConfig,
}

impl Default for PlayGameConfig {
    fn default() -> Self {
        Self {
            motion: PathBuf::new(),
            output: None,
            reactions: None,
            rig: None,
            view: "front".into(),
            size: 384,
            game: GameConfig::default(),
        }
    }
}

/// Most frames of a game: an hour and a half at 24 per second.
const MOST: usize = 130_000;
/// A file of reactions longer than this is none, bytes.
const MAX_REACTIONS: u64 = 1 << 20;

/// When what was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Played {
    /// The first frame.
    pub frame: usize,
    /// The situation.
    pub mood: Mood,
}

/// How a game went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlayGameReport {
    /// The take, where one was written.
    pub output: Option<PathBuf>,
    /// Whose controls.
    pub rig: String,
    /// How it ended.
    pub standing: Standing,
    /// Her mark.
    pub hers: Mark,
    /// Squares in the order in which they were taken, from 1; crosses first.
    pub moves: Vec<usize>,
    /// What she did, and when.
    pub played: Vec<Played>,
    /// Frames of the take.
    pub frames: usize,
    /// Per second.
    pub rate: f32,
}

/// The reactions of a file, or Mira's; every script is tried on the motion, so that none fails in the middle of a game.
pub fn read_reactions(file: Option<&Path>, motion: &Arc<Motion>, seed: u64) -> Result<Reactions, JobError> {
    let reactions = match file {
        None => Reactions::of_mira(seed),
        Some(file) => {
            let failed = |error: std::io::Error| JobError::unusable(file, error);
            if std::fs::metadata(file).map_err(failed)?.len() > MAX_REACTIONS {
                return Err(JobError::unusable(file, "is too long for reactions"));
            }
            let text = std::fs::read_to_string(file).map_err(failed)?;
            Reactions::read(&text, seed).map_err(|error| JobError::unusable(file, error))?
        }
    };
    for (mood, script) in reactions.all() {
        let told = |line: usize, problem: String| match file {
            Some(file) => JobError::unusable(file, format!("line {line}: {problem}")),
            None => JobError::setting(
                "reactions",
                format!("Mira's for '{}' do not fit this motion: {problem}; give others", mood.name()),
            ),
        };
        let failed = |error: CommandError| told(0, error.to_string());
        let mut player = MotionPlayer::new(motion.clone(), None, PlayConfig::default()).map_err(failed)?;
        for line in script {
            if matches!(line.command, Command::Idle { seconds: None, .. }) {
                return Err(told(line.line, "an idle of a game needs its time, as in 'idle 2s'".into()));
            }
            player.command(line.command.clone()).map_err(|error| told(line.line, error.to_string()))?;
        }
    }
    Ok(reactions)
}

/// A game with its take.
pub struct GameRun {
    live: LiveGame,
    player: MotionPlayer,
    frames: Vec<Vec<f32>>,
    played: Vec<Played>,
    /// Where the take goes, how, and of which rig.
    output: Option<(PathBuf, Option<Film>, Option<String>)>,
}

impl GameRun {
    /// Begins a game.
    pub fn open(config: &PlayGameConfig) -> Result<Self, JobError> {
        if let Some(output) = &config.output {
            let reactions = config.reactions.as_deref().unwrap_or(Path::new(""));
            check_file(output, &[&config.motion, reactions])?;
        }
        let film = config.output.as_deref().map(|output| Film::of(output, config.size, &config.view));
        let film = film.transpose()?;
        let motion = open(&config.motion)?.shared();
        let reactions = read_reactions(config.reactions.as_deref(), &motion, config.game.seed)?;
        let live = LiveGame::begin(&motion, &config.game, reactions)
            .map_err(|problem| JobError::setting("forgetful", problem))?;
        let play = PlayConfig { seed: config.game.seed, ..PlayConfig::default() };
        let player =
            MotionPlayer::new(motion, None, play).map_err(|error| JobError::setting("label", error))?;
        let output = config.output.clone().zip(film).map(|(output, film)| (output, film, config.rig.clone()));
        let mut run = Self { live, player, frames: Vec::new(), played: Vec::new(), output };
        run.perform()?;
        Ok(run)
    }

    /// The board as it stands.
    pub fn board(&self) -> &Board {
        self.live.shown()
    }

    /// What she did so far.
    pub fn played(&self) -> &[Played] {
        &self.played
    }

    /// The other takes a square; says why not.
    pub fn take(&mut self, square: usize) -> Result<(), JobError> {
        let number = self.live.moves().len() + 1;
        self.live
            .take(&mut self.player, square)
            .map_err(|problem| JobError::setting(format!("move {number}"), problem))?;
        self.perform()
    }

    /// Acts out what waits, frame by frame.
    fn perform(&mut self) -> Result<(), JobError> {
        let mut mood = None;
        while self.live.is_busy(&self.player) {
            if self.frames.len() >= MOST {
                return Err(JobError::setting("reactions", format!("make more than {MOST} frames")));
            }
            let mut frame = Vec::new();
            let failed = |error| JobError::setting("reactions", error);
            self.live.step(&mut self.player, &mut frame).map_err(failed)?;
            if self.live.mood() != mood {
                mood = self.live.mood();
                self.played.extend(mood.map(|mood| Played { frame: self.frames.len(), mood }));
            }
            self.frames.push(frame);
        }
        Ok(())
    }

    /// Writes the take, where one is wanted.
    pub fn finish(self, watch: &dyn Watch) -> Result<PlayGameReport, JobError> {
        let motion = self.player.motion();
        let (rig, rate, frames) = (motion.rig().to_owned(), motion.rate(), self.frames.len());
        let mut written = None;
        if let Some((output, film, rig)) = self.output {
            write_take(film, &output, motion, rig.as_deref(), self.frames, watch)?;
            written = Some(output);
        }
        Ok(PlayGameReport {
            output: written,
            rig,
            standing: self.live.standing(),
            hers: self.live.hers(),
            moves: self.live.moves().iter().map(|square| square + 1).collect(),
            played: self.played,
            frames,
            rate,
        })
    }
}

/// Gives a player the commands of a script, which was tried before.
fn command(player: &mut MotionPlayer, script: &[ScriptLine]) -> Result<(), JobError> {
    for line in script {
        let failed = |error| JobError::setting(format!("reactions, line {}", line.line), error);
        player.command(line.command.clone()).map_err(failed)?;
    }
    Ok(())
}
