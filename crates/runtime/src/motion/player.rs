//! One character that plays motion: commands in, controls out.

use super::Motion;
use super::actor::{Actor, MotionSituation, PlayConfig};
use super::command::{Command, ScriptError, parse_script};
use super::error::CommandError;
use super::point::LatentPoint;
use super::space::Workspace;
use std::sync::Arc;

/// Plays motion for one character.
#[derive(Debug, Clone)]
pub struct MotionPlayer {
    motion: Arc<Motion>,
    actor: Actor,
    work: Workspace,
    controls: Vec<f32>,
}

impl MotionPlayer {
    /// Begins at the first frame of the first clip of a label; of the first label where none is named.
    pub fn new(motion: Arc<Motion>, label: Option<&str>, config: PlayConfig) -> Result<Self, CommandError> {
        let actor = Actor::new(&motion, label, config)?;
        let mut work = Workspace::new(&motion);
        let mut controls = vec![0.0; motion.controls().len()];
        motion.models()[actor.model].pose_into(actor.particle.x, motion.controls(), &mut work, &mut controls);
        Ok(Self { actor, work, controls, motion })
    }

    /// What it plays.
    pub fn motion(&self) -> &Arc<Motion> {
        &self.motion
    }

    /// Does something after what it does now, or stops at once. What cannot be done is told now, not later.
    pub fn command(&mut self, command: Command) -> Result<(), CommandError> {
        self.actor.command(&self.motion, command)
    }

    /// A command as JSON: what a game's stream sends.
    pub fn send(&mut self, json: &str) -> Result<(), CommandError> {
        self.command(Command::from_json(json)?)
    }

    /// All commands of a script, or none: what is wrong is told with its line.
    pub fn script(&mut self, text: &str) -> Result<(), ScriptError> {
        let lines = parse_script(text)?;
        let mut tried = self.actor.clone();
        for line in lines {
            let place = line.line;
            let done = tried.command(&self.motion, line.command);
            done.map_err(|error| ScriptError { line: place, problem: error.to_string() })?;
        }
        self.actor = tried;
        Ok(())
    }

    /// The next frame.
    pub fn step(&mut self) {
        self.actor.step(&self.motion, &mut self.work, &mut self.controls);
    }

    /// Controls of the last frame, `[C]`, numbers within their ranges; of the first pose before any.
    pub fn controls(&self) -> &[f32] {
        &self.controls
    }

    /// Whether commands are left. An idle without a time is done when something else is.
    pub fn is_busy(&self) -> bool {
        self.actor.is_busy()
    }

    /// The label that it is in.
    pub fn label(&self) -> &str {
        self.motion.models()[self.actor.model].label()
    }

    /// Where it stands after the last frame.
    pub fn situation(&self) -> MotionSituation {
        self.actor.situation(&self.motion)
    }

    /// The corners of the path that it still has to walk, beginning with where the path is.
    pub fn path(&self) -> impl Iterator<Item = LatentPoint> + '_ {
        self.actor.path(&self.motion)
    }

    /// `log p(x|M)` where the particle is, and its gradient.
    pub fn density(&mut self) -> (f64, LatentPoint) {
        self.motion.models()[self.actor.model].space().density(self.actor.particle.x, &mut self.work)
    }

    /// Puts it, at rest, at a place of a label; everything that waited is forgotten.
    pub fn place(&mut self, label: &str, x: LatentPoint) -> Result<(), CommandError> {
        let model = self.motion.label(label)?;
        self.actor.put(model, x);
        Ok(())
    }

    /// Puts it where the pose of a label is nearest to these controls; gives how far that pose is, in cm of the mesh.
    pub fn place_at_controls(&mut self, label: &str, controls: &[f32]) -> Result<f64, CommandError> {
        let model = self.motion.label(label)?;
        if controls.len() != self.controls.len() || !controls.iter().all(|value| value.is_finite()) {
            let problem = format!("{} finite controls are wanted", self.controls.len());
            return Err(CommandError::Text(problem));
        }
        let (x, miss) = self.motion.models()[model].project(controls, &mut self.work);
        self.actor.put(model, x);
        Ok(miss)
    }
}
