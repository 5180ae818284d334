//! `cargo xtask cross`: the run time on other processors. Builds `understudy-runtime` for 64-bit ARM and for WebAssembly
//! and *runs* its tests there, under qemu-user and in Node.js: the NEON and SIMD128 kernels meet the same reference
//! as those of x86. Installs what is missing (rustup's targets, Debian's cross linker and emulator).

use crate::shell::{cargo_with, ensure_node, ensure_packages, exists, root, run};
use anyhow::Result;
use std::process::Command;

/// Every bit of a file flipped: as true on one processor as on another, and minutes long when every instruction is
/// interpreted.
const SLOW: &[&str] = &["--skip", "damaged_files"];
/// Tests of threads, which `wasm32-wasip1` lacks.
const THREADS: &[&str] = &["--skip", "workers::", "--skip", "other_threads"];

/// Builds and runs the run time's tests on both processors; `rest` goes to the tests (names to choose some).
pub fn run_all(rest: &[&str]) -> Result<()> {
    ensure_targets()?;
    let mut words = vec!["test", "--package", "understudy-runtime", "--lib", "--target"];
    let last = words.len();
    words.extend(["", "--"]);
    words.extend(SLOW);
    words.extend(rest);
    words[last] = "aarch64-unknown-linux-gnu";
    cargo_with(
        &words,
        &[
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc".into()),
            (
                "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER",
                "qemu-aarch64-static -L /usr/aarch64-linux-gnu".into(),
            ),
        ],
    )?;
    words[last] = "wasm32-wasip1";
    words.extend(THREADS);
    let script = root().join("tools/wasi/run.mjs").canonicalize()?;
    cargo_with(
        &words,
        &[
            ("CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS", "-C target-feature=+simd128".into()),
            ("CARGO_TARGET_WASM32_WASIP1_RUNNER", format!("node --no-warnings {}", script.display())),
        ],
    )
}

fn ensure_targets() -> Result<()> {
    ensure_node()?;
    let tools =
        [("qemu-aarch64-static", "qemu-user-static"), ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")];
    let missing: Vec<&str> =
        tools.iter().filter(|(program, _)| !exists(program)).map(|(_, package)| *package).collect();
    ensure_packages(&missing)?;
    run(Command::new("rustup").args(["target", "add", "aarch64-unknown-linux-gnu", "wasm32-wasip1"]))
}
