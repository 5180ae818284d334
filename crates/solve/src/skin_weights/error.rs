//! Why there are no weights: every message names the handle and the place.

use thiserror::Error;

/// What is wrong with handles, a mesh or settings.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum WeightsError {
    /// Nothing to weigh.
    #[error("there is no handle")]
    NoHandles,
    /// Two handles of one name.
    #[error("two handles are named '{name}'")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A handle names a vertex that does not exist.
    #[error("handle '{handle}' names vertex {vertex}, but there are {count}")]
    Vertex {
        /// The handle.
        handle: String,
        /// What it names.
        vertex: u32,
        /// How many exist.
        count: usize,
    },
    /// A handle without what makes it one.
    #[error("handle '{handle}' has no {what}")]
    Empty {
        /// The handle.
        handle: String,
        /// What is missing.
        what: &'static str,
    },
    /// A coordinate is NaN or infinite.
    #[error("handle '{handle}' has a coordinate that is not finite")]
    NotFinite {
        /// The handle.
        handle: String,
    },
    /// A handle that is nowhere near the mesh.
    #[error(
        "handle '{handle}' is {distance:.2} away from the mesh, farther than {most:.2}: is its unit another?"
    )]
    FarAway {
        /// The handle.
        handle: String,
        /// In the unit of the mesh.
        distance: f64,
        /// What would pass.
        most: f64,
    },
    /// Two handles claim the same vertex.
    #[error("handles '{first}' and '{second}' share vertex {vertex}")]
    SharedVertex {
        /// One.
        first: String,
        /// The other.
        second: String,
        /// The vertex.
        vertex: usize,
    },
    /// Every place of a handle is nearer to another one.
    #[error(
        "handle '{handle}' has no place of its own beside '{other}': a finer lattice (more cells) would tell them apart"
    )]
    Crowded {
        /// The handle.
        handle: String,
        /// Who took its last place.
        other: String,
    },
    /// A handle that a surface cannot hold.
    #[error("handle '{handle}' {problem}: it needs the volume")]
    NeedsVolume {
        /// The handle.
        handle: String,
        /// Why.
        problem: &'static str,
    },
    /// A handle that moves nothing.
    #[error("handle '{handle}' reaches no vertex of the mesh")]
    Unreached {
        /// The handle.
        handle: String,
    },
    /// A mesh without area.
    #[error("the mesh has no triangle with an area")]
    NoArea,
    /// A setting that makes no sense.
    #[error("{name} is {problem}")]
    Setting {
        /// Which.
        name: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A linear system could not be factored.
    #[error("the system of {unknowns} unknowns could not be factored: {why}")]
    Factor {
        /// Its size.
        unknowns: usize,
        /// What may be the reason.
        why: &'static str,
    },
    /// An example of another mesh.
    #[error("example {example} has {got} vertices, the mesh {want}")]
    ExampleCount {
        /// Which, from zero.
        example: usize,
        /// Its vertices.
        got: usize,
        /// The mesh's.
        want: usize,
    },
    /// An example with a coordinate that is not finite.
    #[error("example {example}: vertex {vertex} is not finite")]
    ExampleNotFinite {
        /// Which, from zero.
        example: usize,
        /// The vertex.
        vertex: usize,
    },
    /// Weights of another mesh or other handles.
    #[error("weights [{got}] where [{want}] are wanted")]
    Shape {
        /// Given.
        got: String,
        /// Needed.
        want: String,
    },
    /// The listener asked to stop.
    #[error("stopped")]
    Stopped,
}
