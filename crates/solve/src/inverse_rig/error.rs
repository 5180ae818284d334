//! What can be wrong with a rig, a target or the settings of an inversion.

use thiserror::Error;

/// Why an inversion could not be prepared or run.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum InverseError {
    /// A rig without shapes, or whose shapes move nothing, has nothing to solve for.
    #[error("the rig has no shape that moves a vertex")]
    NoShapes,
    /// The table of inner products would not fit memory.
    #[error("{count} shapes and correctives are more than the {limit} an inversion can tabulate")]
    TooManyTerms {
        /// Shapes and correctives.
        count: usize,
        /// The most we take.
        limit: usize,
    },
    /// A target of another mesh.
    #[error("the target has {got} vertices, the rig has {want}")]
    VertexCount {
        /// In the target.
        got: usize,
        /// In the rig.
        want: usize,
    },
    /// A coordinate of the target that is NaN or infinite where the vertex counts.
    #[error(
        "vertex {vertex} of the target is not finite; give it weight 0 or treat such vertices as missing"
    )]
    NonFinite {
        /// The vertex.
        vertex: usize,
    },
    /// A vertex weight that is negative, NaN or infinite.
    #[error("vertex {vertex} has weight {weight}; it must be finite and not negative")]
    VertexWeight {
        /// The vertex.
        vertex: usize,
        /// Its weight.
        weight: f32,
    },
    /// An array of another length.
    #[error("{what}: {got} entries, {want} expected")]
    Count {
        /// Which array.
        what: &'static str,
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// No vertex counts.
    #[error("every vertex is missing or has weight 0")]
    NothingSeen,
    /// A setting outside its range.
    #[error("setting '{name}': {want}, not {value}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        want: &'static str,
    },
    /// A pair or group names a shape that the rig does not have.
    #[error("{what} names shape '{name}', which the rig does not have")]
    UnknownShape {
        /// Which setting.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A shape is in two pairs or groups at once, or with itself.
    #[error("shape '{name}' appears more than once among the symmetric pairs and exclusive groups")]
    Overlap {
        /// The shape.
        name: String,
    },
    /// A start vector that the settings do not allow.
    #[error("the start weight of '{shape}' is {value}: {problem}")]
    Start {
        /// The shape.
        shape: String,
        /// The start value.
        value: f64,
        /// Why it is not allowed.
        problem: &'static str,
    },
    /// A frame of a take.
    #[error("frame {frame}: {error}")]
    Frame {
        /// Counted from 0.
        frame: usize,
        /// What is wrong with it.
        error: Box<InverseError>,
    },
    /// Whoever watched a take asked to stop.
    #[error("stopped")]
    Stopped,
    /// The eigenvalues of the Gram matrix did not converge.
    #[error("the shapes' inner products have no eigenvalues: {0}")]
    Eigen(#[from] understudy_core::linear_algebra::EigenError),
}

impl InverseError {
    /// The same error, of a frame of a take.
    pub fn in_frame(self, frame: usize) -> Self {
        Self::Frame { frame, error: Box::new(self) }
    }
}
