//! Figures of a finished twin on the poses that it was not trained on, beside what costs nothing: skinning alone for a
//! body, a face at rest for a face. Networks must pay.

use serde::{Deserialize, Serialize};

/// Distances of vertices on held-back poses, in the world.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HeldBack {
    /// How many poses were held back.
    pub poses: usize,
    /// Mean distance of a vertex, mm.
    pub mean_mm: f64,
    /// The worst vertex, mm.
    pub max_mm: f64,
    /// Mean distance without any network, mm.
    pub base_mean_mm: f64,
}

impl HeldBack {
    /// Below this nobody sees a difference, mm.
    const INVISIBLE_MM: f64 = 0.01;

    /// Whether the networks make nothing better.
    pub fn is_useless(&self) -> bool {
        self.mean_mm >= self.base_mean_mm && self.mean_mm > Self::INVISIBLE_MM
    }
}
