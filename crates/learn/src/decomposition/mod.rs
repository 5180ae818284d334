//! Smooth skinning decomposition with rigid bones (Le and Deng 2012): an animation of vertices in, a plain
//! linear blend skin out: bones, convex weights, rigid motions. Start at [`decompose`]; [`Decomposed`] plays
//! it, and [`DecomposedSkin`] is how it is weighed on meshes that it has not seen.
//!
//! The paper alternates between weights and bones. Both halves see the mesh through inner products only:
//! `weights` has the Gram matrix of a vertex, `bones` that of a pair of bones. `search` alternates, `clusters`
//! makes the first bones and sends useless ones elsewhere, `simplex` solves for the weights of one vertex.

mod affine;
mod animation;
mod bones;
mod clusters;
mod reconstruct;
mod search;
mod simplex;
mod weights;

pub use reconstruct::DecomposedSkin;

use crate::recording::LARGEST_CM;
use animation::Animation;
use search::Search;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use understudy_core::{Affine3A, SkinWeights, Vec3};

/// Why an animation could not be decomposed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DecompositionError {
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
    /// Nothing to work on.
    #[error("{what}: {got}, at least {want} needed")]
    Count {
        /// Of what.
        what: &'static str,
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// A frame of another mesh.
    #[error("frame {frame} has {got} vertices, the rest pose has {want}")]
    Frame {
        /// The frame.
        frame: usize,
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// A position whose square does not fit into single precision.
    #[error("vertex {vertex} of {} is {distance:e} from the origin; more than {LARGEST_CM:e} cannot be fitted", .frame.map_or("the rest pose".to_owned(), |f| format!("frame {f}")))]
    TooFar {
        /// The frame, `None` for the rest pose.
        frame: Option<usize>,
        /// The vertex.
        vertex: usize,
        /// How far away.
        distance: f32,
    },
    /// A position that is not finite.
    #[error("vertex {vertex} of {} is not finite", .frame.map_or("the rest pose".to_owned(), |f| format!("frame {f}")))]
    NonFinite {
        /// The frame, `None` for the rest pose.
        frame: Option<usize>,
        /// The vertex.
        vertex: usize,
    },
}

/// How to decompose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DecompositionSettings {
    /// Number of bones.
    pub bones: usize,
    /// Most bones per vertex; every engine plays four.
    pub influences: usize,
    /// Most rounds of weights and bones, trials of other places for a bone included.
    pub iterations: usize,
    /// Done when an iteration lowers the error by less than this share, and no bone has a better place.
    pub tolerance: f64,
}

impl Default for DecompositionSettings {
    fn default() -> Self {
        Self { bones: 32, influences: 4, iterations: 60, tolerance: 1e-3 }
    }
}

impl DecompositionSettings {
    /// More are taken for a slip: the tables grow with the square.
    pub const MAX_BONES: usize = 1024;

    /// Whether the numbers make sense.
    pub fn check(&self) -> Result<(), DecompositionError> {
        let bad =
            |what, value: usize, want| Err(DecompositionError::Setting { what, value: value as f64, want });
        if !(1..=Self::MAX_BONES).contains(&self.bones) {
            return bad("number of bones", self.bones, "1 to 1024");
        }
        if self.influences == 0 {
            return bad("number of influences", 0, "1 or more");
        }
        if self.iterations == 0 {
            return bad("number of iterations", 0, "1 or more");
        }
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            let (what, want) = ("tolerance", "0 or more");
            return Err(DecompositionError::Setting { what, value: self.tolerance, want });
        }
        Ok(())
    }
}

/// How far the work is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecompositionProgress {
    /// Iterations done.
    pub iteration: usize,
    /// Root of the mean squared distance of a vertex so far, in the unit of the input.
    pub rmse: f64,
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// Nothing gains any more.
    Converged,
    /// The iterations are spent.
    Iterations,
    /// The listener asked to stop; the result so far is good.
    Asked,
}

/// An animation as bones and weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Decomposed {
    /// `[V]`, as given.
    pub rest: Vec<Vec3>,
    /// Convex weights.
    pub weights: SkinWeights,
    /// Where each bone rests: the middle of its vertices, `[B]`.
    pub centres: Vec<Vec3>,
    /// Rest → frame of every bone, `[F][B]`; rigid, but for those of [`decompose_affine`].
    pub motions: Vec<Vec<Affine3A>>,
    /// Error after the clusters and after every iteration; never rises.
    pub history: Vec<f64>,
    /// Iterations used.
    pub iterations: usize,
    /// Bones that found a better place.
    pub moved_bones: usize,
    /// Why it ended.
    pub stop: Stop,
}

impl Decomposed {
    /// Vertices of a frame, `[V]`.
    ///
    /// # Panics
    /// When there is no such frame.
    pub fn frame(&self, frame: usize) -> Vec<Vec3> {
        let mut out = vec![Vec3::ZERO; self.rest.len()];
        self.weights.linear_blend(&self.motions[frame], &self.rest, &mut out);
        out
    }
}

/// Finds bones and weights for an animation. `rest`: `[V]`, `frames`: `[F][V]`, in any unit. `watch` hears
/// of every iteration and may end the work by `false`. The result does not depend on the number of threads.
///
/// Minimises `Σ_t Σ_i ‖Σ_j w_ij (R_jᵗ p_i + T_jᵗ) − v_iᵗ‖²` over rigid motions and convex weights with at
/// most so many bones a vertex (Le and Deng 2012, eq. 2).
pub fn decompose(
    rest: &[Vec3],
    frames: &[&[Vec3]],
    settings: &DecompositionSettings,
    mut watch: impl FnMut(DecompositionProgress) -> bool,
) -> Result<Decomposed, DecompositionError> {
    settings.check()?;
    let animation = Animation::new(rest, frames)?;
    let mut search = Search::new(&animation, settings, &mut watch);
    let stop = search.descend(&mut watch);
    Ok(search.finish(rest, stop))
}

/// [`decompose`] with bones that may stretch and shear: rigid bones are found first, then weights and affine bones take
/// turns for at most so many rounds more. The sum of squares never rises.
pub fn decompose_affine(
    rest: &[Vec3],
    frames: &[&[Vec3]],
    settings: &DecompositionSettings,
    rounds: usize,
    mut watch: impl FnMut(DecompositionProgress) -> bool,
) -> Result<Decomposed, DecompositionError> {
    settings.check()?;
    let animation = Animation::new(rest, frames)?;
    let mut search = Search::new(&animation, settings, &mut watch);
    let mut stop = search.descend(&mut watch);
    if stop != Stop::Asked {
        stop = search.stretch(rounds, &mut watch);
    }
    Ok(search.finish(rest, stop))
}

#[cfg(test)]
mod tests;
