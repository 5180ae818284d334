//! The face twin (`docs/methods/face-twin.md`, face-twin paper chapter 3).
//!
//! The way: [`Recording`] in memory → [`frame`] takes the head's motion away → [`Plan::new`] decides what
//! is rigid, what every network sees and where its vertices look → [`trainer::Trainer`] trains all coarse
//! networks together → [`regions`] finds where maps are too coarse → refinement networks learn what is
//! left → [`Plan::finish`] makes the parts of a twin.

pub mod balance;
pub(crate) mod components;
pub mod coordinates;
pub mod frame;
mod held_back;
pub mod inputs;
pub mod loss;
pub mod motion;
pub mod net;
pub mod normals;
mod parameters;
mod pixels;
mod plan;
pub mod regions;
pub mod rigid;
mod rows;
pub mod schedule;
pub mod segments;
mod start;
pub mod trainer;
pub mod transfer;
mod update;

pub use held_back::{Truth, half_error};
pub use plan::{Plan, coarse_problem_of};
pub use schedule::{Progress, Schedule};
pub use segments::{SegmentKind, SegmentPlan};

use crate::{Recording, RecordingError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use understudy_rigs::RigError;
use understudy_rigs::probe::ProbeError;

/// Why a face twin could not be learned.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FaceLearnError {
    /// A setting that makes no sense.
    #[error("the {what} is {value}; {want} is wanted")]
    Setting {
        /// Which.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it should be: `more than 0`.
        want: &'static str,
    },
    /// The recording cannot be learned from.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// Maps are drawn in texture space.
    #[error("the mesh has no texture coordinates; a face twin draws its maps in them")]
    NoUvs,
    /// Nothing to learn.
    #[error("no vertex moves in these poses, or all move as one")]
    NothingMoves,
    /// The live rig failed while it was probed.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// The live rig failed while it was probed.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A twin whose coarse networks cannot be kept.
    #[error("the coarse networks cannot be kept: {problem}")]
    Kept {
        /// Why.
        problem: String,
    },
    /// Training left every good place.
    #[error(
        "training diverged: after {step} steps the networks are worse than untrained ones; take a lower rate"
    )]
    Diverged {
        /// Where.
        step: usize,
    },
    /// The machine gave no threads.
    #[error("no threads: {problem}")]
    Threads {
        /// Why.
        problem: String,
    },
    /// A mesh that a twin cannot be transferred to.
    #[error("{problem}")]
    Transfer {
        /// Why.
        problem: String,
    },
    /// Normals are read off features, pixel by pixel.
    #[error(
        "normals need networks that draw maps whose pixels have weights of their own, not dense or tied ones"
    )]
    NoFeatures,
    /// Training was told to stop.
    #[error("stopped")]
    Stopped,
}

/// Fewer poses than this are no dataset.
pub const FEWEST_POSES: usize = 20;

/// Whether a face twin can be learned from a recording: maps are drawn in texture space.
pub fn check(poses: &Recording) -> Result<(), FaceLearnError> {
    if !poses.mesh.has_uvs() {
        return Err(FaceLearnError::NoUvs);
    }
    Ok(poses.check(FEWEST_POSES)?)
}

/// How to learn a face twin. The defaults are what serves users; [`FaceSettings::paper`] is the paper's recipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaceSettings {
    /// Maps, or the dense networks that the paper compares with.
    pub dense: bool,
    /// Whether crowded regions get refinement networks.
    pub refine: bool,
    /// Whether regions are found by what the coarse networks leave, as measured, and not by what their maps
    /// must leave, as estimated (3.2) (our addition).
    pub measured_regions: bool,
    /// Most regions that are refined.
    pub most_regions: usize,
    /// Whether the motion of the whole head is taken out first (our addition).
    pub frame: bool,
    /// Whether map coordinates are pulled apart where the texture glues together what moves apart, and vertices
    /// get pixels of their own where there is room (our addition).
    pub cut: bool,
    /// Whether every pixel of a map reads the features with weights of its own (our addition).
    pub untied: bool,
    /// Most numbers of the dense layers that such pixels read besides their features, in a coarse network; a region's
    /// may have twice as many (our addition).
    #[serde(alias = "common")]
    pub shared_features: usize,
    /// Whether small segments have small maps, crowded ones large maps and measured regions maps of 32×32 (our
    /// addition); else all coarse maps have 32×32 pixels and all regions 64×64.
    pub fitted_maps: bool,
    /// Whether maps carry normals as well (our addition).
    pub normals: bool,
    /// α of the normals in the loss.
    pub normal_weight: f32,
    /// The same while regions are refined: positions are nearly right by then.
    pub refinement_normal_weight: f32,
    /// Poses a step.
    pub batch: usize,
    /// Width of dense layers, at most.
    pub hidden: usize,
    /// Whether a network that sees few controls has narrower ones (our addition).
    pub narrow: bool,
    /// Bins of the balanced drawing of poses.
    pub bins: usize,
    /// Landmarks that the bins are made by.
    pub landmarks: usize,
    /// A segment is rigid when its best rigid fit misses by less, root mean square a vertex, mm.
    pub rigid_mm: f64,
    /// Whether rigid segments that move by themselves get a motion of their own and lead those that move
    /// with them (our addition); else they follow the vertices of networks.
    pub bodies: bool,
    /// Vertices that a rigid segment follows.
    pub follows: usize,
    /// Whether, among vertices that fit about as well, those are followed that lie apart (our addition); else the
    /// ones that fit best (3.4).
    pub spread_follows: bool,
    /// Share of the poses that are held back to watch the loss.
    pub validation: f32,
    /// Of the coarse networks.
    pub coarse: Schedule,
    /// Of the refinement networks.
    pub refinement: Schedule,
    /// Of normals, where maps carry them.
    pub normal_channels: Schedule,
    /// Same seed, same twin.
    pub seed: u64,
}

impl Default for FaceSettings {
    fn default() -> Self {
        Self {
            dense: false,
            refine: true,
            measured_regions: true,
            most_regions: 12,
            frame: true,
            cut: true,
            untied: true,
            shared_features: 40,
            fitted_maps: true,
            normals: false,
            normal_weight: 5.0,
            refinement_normal_weight: 15.0,
            batch: 8,
            hidden: 256,
            narrow: true,
            bins: 16,
            landmarks: 25,
            rigid_mm: 0.3,
            bodies: true,
            follows: 10,
            spread_follows: true,
            validation: 0.03,
            coarse: Schedule::default(),
            refinement: Schedule { caps: vec![80_000, 30_000, 10_000], ..Schedule::default() },
            normal_channels: Schedule {
                rates: vec![5e-3, 5e-4],
                caps: vec![6_000, 2_000],
                check_every: 500,
                ..Schedule::default()
            },
            seed: 1,
        }
    }
}

impl FaceSettings {
    /// The seed of the stages after the first: other random numbers than its.
    pub fn later_seed(&self) -> u64 {
        self.seed ^ 0x0f1e
    }

    /// The recipe of the paper (Bailey et al. 2020): texture coordinates as they are, coarse maps of 32×32 and
    /// regions of 64×64 whose pixels share their weights, dense layers of 256 in every network, regions by estimate
    /// (3.2) in squares of a quarter of the texture and as many as the elbow says, rigid segments that follow the ten
    /// vertices of networks that fit them best (3.4), no motion of the head, α = 5 throughout, rates of 1e-3, 1e-4
    /// and 1e-5, each until it stops improving.
    pub fn paper() -> Self {
        let rates = vec![1e-3, 1e-4, 1e-5];
        let usual = Self::default();
        Self {
            measured_regions: false,
            frame: false,
            cut: false,
            untied: false,
            shared_features: 0,
            fitted_maps: false,
            bodies: false,
            rigid_mm: 0.3,
            follows: 10,
            spread_follows: false,
            normal_weight: 5.0,
            refinement_normal_weight: 5.0,
            batch: 8,
            hidden: 256,
            narrow: false,
            bins: 16,
            landmarks: 25,
            coarse: Schedule { rates: rates.clone(), ..usual.coarse },
            refinement: Schedule { rates, ..usual.refinement },
            ..Self::default()
        }
    }

    /// Every number makes sense.
    pub fn check(&self) -> Result<(), FaceLearnError> {
        let setting = |what, value, want, fine| match fine {
            true => Ok(()),
            false => Err(FaceLearnError::Setting { what, value, want }),
        };
        for alpha in [self.normal_weight, self.refinement_normal_weight].map(f64::from) {
            setting("weight of normals", alpha, "0 or more", alpha.is_finite() && alpha >= 0.0)?;
        }
        setting("batch", self.batch as f64, "1 to 1024", (1..=1024).contains(&self.batch))?;
        setting("width", self.hidden as f64, "1 to 4096", (1..=4096).contains(&self.hidden))?;
        setting(
            "number of shared features",
            self.shared_features as f64,
            "0 to 64",
            self.shared_features <= 64,
        )?;
        setting("number of bins", self.bins as f64, "1 or more", self.bins > 0)?;
        setting("number of landmarks", self.landmarks as f64, "1 or more", self.landmarks > 0)?;
        setting(
            "rigid tolerance",
            self.rigid_mm,
            "0 or more",
            self.rigid_mm.is_finite() && self.rigid_mm >= 0.0,
        )?;
        setting("number of followed vertices", self.follows as f64, "3 or more", self.follows >= 3)?;
        let held = f64::from(self.validation);
        setting("validation share", held, "0 to 0.5", (0.0..=0.5).contains(&held))?;
        if self.normals && (self.dense || !self.untied) {
            return Err(FaceLearnError::NoFeatures);
        }
        self.coarse.check()?;
        self.refinement.check()?;
        self.normal_channels.check()
    }
}

#[cfg(test)]
pub(crate) mod tests;
