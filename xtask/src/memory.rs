//! No access out of bounds, no data race: the tests of the run time under Miri, which interprets every step
//! but has no AVX2, and under valgrind, which runs the AVX2 kernels as they are.

use crate::shell::{self, built, root};
use anyhow::{Context, Result, bail};
use std::process::Command;

/// The tests of the run time that touch memory by hand: kernels, loaders, threads.
const TESTS: [&str; 6] = ["body::", "face::", "dense::", "container::", "large_pages::", "workers::"];

/// Miri, or valgrind where the word is `--valgrind`.
pub fn run(words: &[&str]) -> Result<()> {
    match words {
        [] => miri(),
        ["--valgrind"] => valgrind(),
        _ => bail!("`cargo xtask miri` knows one option: --valgrind"),
    }
}

fn miri() -> Result<()> {
    // Tests may look for data on the disk.
    let test = ["run", "nightly", "cargo", "miri", "test", "--package", "understudy-runtime", "--lib", "--"];
    shell::run(
        Command::new("rustup")
            .args(test)
            .args(TESTS)
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            .env("CARGO_TARGET_DIR", root().join("target/miri")),
    )
    .context("Miri comes with `rustup toolchain install nightly --component miri,rust-src`")
}

/// Runs the compiled tests under valgrind's memory checker, but for the loaders' thousands of damaged files: those are
/// read without `unsafe`, Miri sees some of them, and here they would take most of an hour.
fn valgrind() -> Result<()> {
    let executable = built(&["test", "--package", "understudy-runtime", "--lib", "--no-run"])?;
    shell::run(
        Command::new("valgrind")
            .args(["--error-exitcode=1", "--leak-check=no", "--quiet"])
            .arg(executable)
            .args(["--test-threads=1", "--skip", "damaged_files"])
            .args(TESTS),
    )
    .context("valgrind comes with most systems' packages")
}
