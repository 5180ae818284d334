//! `cargo xtask cross`: the run time on other processors. Builds `understudy-runtime` for 64-bit ARM and for WebAssembly
//! and *runs* its tests there, under qemu-user and in Node.js: the kernels meet the same reference with NEON, SIMD128 and
//! relaxed SIMD as on x86. Prints how large the C library is for 64-bit ARM, stripped. Installs what is missing (rustup's targets,
//! Debian's cross linker and emulator).

use crate::shell::{cargo_with, ensure_node, ensure_packages, exists, root, run, target_folder};
use crate::web;
use anyhow::{Context, Result};
use std::process::Command;

/// Debian's linker for the other processor.
const LINKER: (&str, &str) = ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
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
            (LINKER.0, LINKER.1.into()),
            (
                "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER",
                "qemu-aarch64-static -L /usr/aarch64-linux-gnu".into(),
            ),
        ],
    )?;
    if rest.is_empty() {
        library_size()?;
    }
    words[last] = "wasm32-wasip1";
    words.extend(THREADS);
    let script = root().join("tools/wasi/run.mjs").canonicalize()?;
    let node = web::node();
    let node: Vec<&str> =
        [node.get_program()].into_iter().chain(node.get_args()).filter_map(|word| word.to_str()).collect();
    let runner = format!("{} --no-warnings {}", node.join(" "), script.display());
    for features in web::LANES {
        cargo_with(
            &words,
            &[
                ("CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS", format!("-C target-feature={features}")),
                ("CARGO_TARGET_WASM32_WASIP1_RUNNER", runner.clone()),
            ],
        )?;
    }
    Ok(())
}

/// The C library as a telephone's engine links it: optimised, shared, stripped.
fn library_size() -> Result<()> {
    let target = "aarch64-unknown-linux-gnu";
    let words = ["build", "--release", "--package", "understudy-c", "--target", target];
    cargo_with(&words, &[(LINKER.0, LINKER.1.into())])?;
    let folder = std::path::absolute(target_folder().join(target).join("release"))?;
    let (whole, stripped) = (folder.join("libunderstudy.so"), folder.join("libunderstudy.stripped.so"));
    run(Command::new("aarch64-linux-gnu-strip").arg("-o").arg(&stripped).arg(&whole))?;
    let bytes = stripped.metadata().with_context(|| stripped.display().to_string())?.len();
    println!("libunderstudy.so for {target}, stripped: {} kB", bytes / 1000);
    Ok(())
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
