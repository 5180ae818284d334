//! Plays motion: an artist's clips as latent spaces, one per label, and a particle that walks them on command. Start at
//! [`Motion::parse`], then [`MotionPlayer`] for one character or [`Crowd`] for thousands.
//!
//! ```
//! use std::sync::Arc;
//! use understudy_runtime::motion::{Motion, MotionPlayer, PlayConfig};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/sway.motion");
//!     let motion = Arc::new(Motion::parse(&std::fs::read(file)?)?); // `file`: what `motion learn` wrote
//!     let mut player = MotionPlayer::new(motion.clone(), None, PlayConfig::default())?;
//!     player.script("transition nod; idle 2s")?;
//!     for _ in 0..72 {
//!         player.step(); // one frame of `motion.rate()` per second
//!         let controls: &[f32] = player.controls(); // for the rig or its twin
//!         assert_eq!(controls.len(), motion.controls().len());
//!     }
//!     Ok(())
//! }
//! ```
//!
//! A file is one safetensors container ([`Motion::parse`] checks all of it): per label the latent points, a kernel's
//! weights, a linear basis of controls; bridges between labels. Learning is `understudy-motion`, which plays what it
//! learns by this module alone. Frames allocate nothing; the frame in which a command begins may.

mod actor;
mod basis;
mod command;
mod crowd;
mod error;
mod file;
mod lanes;
mod model;
mod particle;
mod path;
mod player;
mod point;
mod random_force;
mod route;
mod space;

pub use actor::{MotionSituation, PlayConfig};
pub use basis::{BasisParts, PoseBasis};
pub use command::{Command, MixPart, PoseName, ScriptError, ScriptLine, parse_script};
pub use crowd::Crowd;
pub use error::{CommandError, MotionFileError};
pub use model::{ClipFrames, Model, ModelParts};
pub use particle::{ACTIVE, Forces, Particle, PathPiece};
pub use path::{length, shortest, useful_edges};
pub use player::MotionPlayer;
pub use point::{LatentPoint, MOST_DIMENSIONS};
pub use random_force::RandomForce;
pub use route::{Bridge, route};
pub use space::{Covariance, Space, SpaceParts, Workspace};

use std::sync::Arc;
use understudy_core::ControlSpecs;

/// Everything that a file of motion holds. Nothing in it changes once it is made.
#[derive(Debug, Clone, PartialEq)]
pub struct Motion {
    rig: String,
    rate: f32,
    controls: ControlSpecs,
    models: Vec<Model>,
    bridges: Vec<Bridge>,
}

impl Motion {
    /// From parts that learning made or a file held; all of them are checked against each other.
    pub fn new(
        rig: String,
        rate: f32,
        controls: ControlSpecs,
        models: Vec<ModelParts>,
        bridges: Vec<Bridge>,
    ) -> Result<Self, MotionFileError> {
        if !(rate.is_finite() && rate > 0.0 && rate <= 1000.0) {
            return Err(MotionFileError::new("rate", format!("{rate} frames per second")));
        }
        if models.is_empty() {
            return Err(MotionFileError::new("labels", "there are none"));
        }
        let count = controls.len();
        let models =
            models.into_iter().map(|parts| Model::new(parts, count)).collect::<Result<Vec<_>, _>>()?;
        for (place, model) in models.iter().enumerate() {
            if models[..place].iter().any(|other| other.label() == model.label()) {
                return Err(MotionFileError::new(format!("label '{}'", model.label()), "is there twice"));
            }
        }
        for (place, bridge) in bridges.iter().enumerate() {
            let end = |model: usize, point: &LatentPoint| {
                models.get(model).is_some_and(|model| point.fits(model.space().dimensions()))
            };
            let sound = end(bridge.from, &bridge.from_point)
                && end(bridge.to, &bridge.to_point)
                && bridge.from != bridge.to
                && bridge.millimetres.is_finite()
                && bridge.millimetres >= 0.0;
            if !sound {
                return Err(MotionFileError::new(format!("bridge {place}"), "leads nowhere"));
            }
        }
        Ok(Self { rig, rate, controls, models, bridges })
    }

    /// Whose controls these are, as it was called when they were learned.
    pub fn rig(&self) -> &str {
        &self.rig
    }

    /// Frames per second.
    pub fn rate(&self) -> f32 {
        self.rate
    }

    /// The rig's controls with their ranges, in the order of every frame.
    pub fn controls(&self) -> &ControlSpecs {
        &self.controls
    }

    /// The labels' latent spaces.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// The bridges between them.
    pub fn bridges(&self) -> &[Bridge] {
        &self.bridges
    }

    /// The place of a label.
    pub fn label(&self, name: &str) -> Result<usize, CommandError> {
        let found = self.models.iter().position(|model| model.label() == name);
        found.ok_or_else(|| CommandError::UnknownLabel {
            name: name.into(),
            known: self.models.iter().map(|model| model.label().to_owned()).collect(),
        })
    }

    /// Model and clip of a name; a clip of the model `near` comes first where two have the name.
    pub fn clip(&self, name: &str, near: usize) -> Result<(usize, &ClipFrames), CommandError> {
        let find = |model: usize| {
            self.models[model].clips().iter().find(|clip| clip.name == name).map(|clip| (model, clip))
        };
        let mut models = std::iter::once(near).chain(0..self.models.len());
        models.find_map(find).ok_or_else(|| CommandError::UnknownClip {
            name: name.into(),
            known: self.models.iter().flat_map(|m| m.clips()).map(|clip| clip.name.clone()).collect(),
        })
    }

    /// Model and training frame of a pose: the moment, or the strongest of the clip.
    pub fn frame(&self, pose: &PoseName, near: usize) -> Result<(usize, usize), CommandError> {
        let (model, clip) = self.clip(&pose.clip, near)?;
        match pose.at {
            Some(at) => Ok((model, clip.first + self.moment(clip, at)?)),
            None => Ok((model, clip.strongest)),
        }
    }

    /// The frame of a clip at so many seconds.
    pub fn moment(&self, clip: &ClipFrames, at: f64) -> Result<usize, CommandError> {
        let frame = (at * f64::from(self.rate)).round() as usize;
        if frame < clip.frames {
            return Ok(frame);
        }
        let seconds = (clip.frames - 1) as f64 / f64::from(self.rate);
        let milliseconds = (seconds * 1000.0) as u64;
        Err(CommandError::Outside { clip: clip.name.clone(), milliseconds, at: at.to_string() })
    }

    /// Shared, for players.
    pub fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }
}
