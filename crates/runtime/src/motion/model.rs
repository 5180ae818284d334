//! One label: its basis of controls, its latent space, its clips, and what walking it needs.

use super::basis::{BasisParts, PoseBasis};
use super::error::MotionFileError;
use super::point::LatentPoint;
use super::space::{Space, SpaceParts, Workspace};
use serde::{Deserialize, Serialize};
use understudy_core::ControlSpecs;

/// A clip in a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClipFrames {
    /// What it is called.
    pub name: String,
    /// Its first training frame.
    pub first: usize,
    /// How many.
    pub frames: usize,
    /// The training frame whose pose is farthest from the first: what the name of the clip alone stands for.
    pub strongest: usize,
}

/// What a file holds of a label.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelParts {
    /// Such as `happy`.
    pub label: String,
    /// From controls to few numbers.
    pub basis: BasisParts,
    /// And to fewer.
    pub space: SpaceParts,
    /// The clips, in the order of the frames.
    pub clips: Vec<ClipFrames>,
    /// Mean latent distance from frame to frame.
    pub pace: f64,
    /// Radius that a particle keeps to its path.
    pub radius: f64,
    /// `v` of the likelihood force: a low quantile of `log p` over the training points.
    pub likely: f64,
    /// `l`: how softly it sets in.
    pub softness: f64,
}

/// The latent space of one label.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    label: String,
    basis: PoseBasis,
    space: Space,
    clips: Vec<ClipFrames>,
    pub(super) pace: f64,
    pub(super) radius: f64,
    pub(super) likely: f64,
    pub(super) softness: f64,
}

impl Model {
    /// Checks the parts against each other; `controls`: how many the rig has.
    pub fn new(parts: ModelParts, controls: usize) -> Result<Self, MotionFileError> {
        let ModelParts { label, basis, space, clips, pace, radius, likely, softness } = parts;
        let inside = |error: MotionFileError| {
            MotionFileError::new(format!("label '{label}'"), format!("{}: {}", error.place, error.problem))
        };
        let space = Space::new(space).map_err(inside)?;
        let basis = PoseBasis::new(basis, controls, space.outputs()).map_err(inside)?;
        let wrong = |problem: &str| Err(MotionFileError::new(format!("label '{label}'"), problem));
        let fits = |clip: &ClipFrames| {
            let end = clip.first.checked_add(clip.frames);
            clip.frames > 0
                && end.is_some_and(|end| end <= space.len() && (clip.first..end).contains(&clip.strongest))
        };
        if label.is_empty() || clips.is_empty() || !clips.iter().all(fits) {
            return wrong("its clips do not fit its frames");
        }
        if ![pace, radius, softness].iter().all(|v| (1e-30..1e30).contains(v)) || !likely.is_finite() {
            return wrong("its pace, radius or likelihood is no number that can be walked with");
        }
        Ok(Self { label, basis, space, clips, pace, radius, likely, softness })
    }

    /// What its file holds.
    pub fn parts(&self) -> ModelParts {
        ModelParts {
            label: self.label.clone(),
            basis: self.basis.parts().clone(),
            space: self.space.parts().clone(),
            clips: self.clips.clone(),
            pace: self.pace,
            radius: self.radius,
            likely: self.likely,
            softness: self.softness,
        }
    }

    /// Such as `happy`.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// From controls to few numbers.
    pub fn basis(&self) -> &PoseBasis {
        &self.basis
    }

    /// And to fewer.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The clips, in the order of the frames.
    pub fn clips(&self) -> &[ClipFrames] {
        &self.clips
    }

    /// Mean latent distance from frame to frame.
    pub fn pace(&self) -> f64 {
        self.pace
    }

    /// Radius that a particle keeps to its path.
    pub fn radius(&self) -> f64 {
        self.radius
    }

    /// `v` of the likelihood force: below it points count as unlikely.
    pub fn likely(&self) -> f64 {
        self.likely
    }

    /// The likeliest controls at a point, numbers within their ranges, joints as far as their clips go; `out`: `[C]`.
    pub fn pose_into(&self, x: LatentPoint, specs: &ControlSpecs, work: &mut Workspace, out: &mut [f32]) {
        self.space.mean(x, work);
        let Workspace { mean, moving, .. } = work;
        // Memory for one label is made larger once where it serves another.
        moving.resize(moving.len().max(self.basis.moving().len()), 0.0);
        self.basis.decode_into(&mean[..self.space.outputs()], specs, moving, out);
    }

    /// The likeliest controls at a point, whatever their ranges, `[C]`.
    pub fn pose(&self, x: LatentPoint) -> Vec<f32> {
        self.basis.decode(self.space.mean(x, &mut Workspace::of(&self.space)))
    }

    /// The point whose pose is nearest to controls, and how far it is, in the scaled controls' unit (cm of the mesh).
    pub fn project(&self, controls: &[f32], work: &mut Workspace) -> (LatentPoint, f64) {
        self.space.project(&self.basis.encode(controls), work)
    }

    /// Force towards where poses are likely (5.11)–(5.12), at most `strength`; none where the density is flat.
    pub(super) fn likelihood(&self, x: LatentPoint, strength: f64, work: &mut Workspace) -> LatentPoint {
        let (density, gradient) = self.space.density(x, work);
        let size = gradient.length();
        if size <= 1e-12 || strength == 0.0 {
            return LatentPoint::default();
        }
        let share = 1.0 / (1.0 + ((density - self.likely) / self.softness).clamp(-50.0, 50.0).exp());
        gradient * (strength * share / size)
    }
}
