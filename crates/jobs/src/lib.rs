//! Understudy's jobs crate.
