//! Understudy's rigs crate.
