//! Understudy's report crate.
