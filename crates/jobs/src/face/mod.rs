//! The race of face twins; everything else about them is in [`crate::twin`].

pub mod bench;
