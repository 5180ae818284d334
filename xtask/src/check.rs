//! `cargo xtask check`: every rule that a machine can hold us to.

use crate::shell::{self, cargo, root};
use crate::{dist, layers, licences, markdown};
use anyhow::{Result, bail};
use std::process::Command;

/// Runs all checks; stops at the first tool that fails, but lists all broken arrows and paths at once.
pub fn run() -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    // An engine may leave a kind of twin out, and has none of what training alone uses.
    for kind in ["body", "diff", "face", "skin"] {
        let features = ["--no-default-features", "--features", kind, "--quiet", "--", "-D", "warnings"];
        cargo(&[&["clippy", "--package", "understudy-runtime"], &features[..]].concat())?;
    }
    let mut problems = layers::problems()?;
    problems.extend(layers::engine_problems()?);
    problems.extend(markdown::problems(&root())?);
    if !problems.is_empty() {
        bail!("{} problem(s):\n  {}", problems.len(), problems.join("\n  "));
    }
    dist::check_versions()?;
    licences::check()?;
    println!("layer arrows, Markdown paths, versions and licences: fine");
    let mut docs = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    docs.args(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings");
    shell::run(&mut docs)
}
