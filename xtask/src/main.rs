//! The project's own tasks: `cargo xtask check | test | web | wheel | dist | licences | pictures | cross | miri |
//! demo | bench`. Each runs the same way on a
//! developer's machine and in CI. Start at `main`; the checks live in files of their own.

// A task runner talks to a terminal.
#![allow(clippy::print_stdout)]

mod bench;
mod bench_body;
mod bench_face;
mod bench_wild;
mod bevy;
mod c;
mod check;
mod cross;
mod dist;
mod layers;
mod licences;
mod markdown;
mod memory;
mod python;
mod shell;
mod studio;
mod web;

use anyhow::{Result, bail};
use shell::{cargo, ensure_node};

const HELP: &str = "\
cargo xtask TASK

  check   formatting, clippy, layer arrows, documentation, paths in Markdown
  test    every test of the workspace, of the packages for browsers, C and Python, and of the studio's page in headless Chromium
          (installs Node.js and Chromium where they are missing); `--all`: also what takes minutes on that page, and tests that
          download tools (glTF files packed by gltf-transform, graphs run by onnxruntime, Blender, Ray, Bevy); `--packages`:
          those of packages and page alone, not the workspace's own
  web     what runs in browsers: the run time as WebAssembly modules and the TypeScript package around them, in
          apps/wasm/js/dist, and the studio's page, which the next build of the program holds; installs what is missing
  wheel   the Python package as a wheel for every Python since 3.10, in target/wheels
  dist    what a release consists of, in target/dist: stripped program, C archive, wheel, npm tarball, checksums
  licences  writes docs/licences.md, every dependency with its licence
  pictures  makes docs/pictures/studio*.png, its tabs and the animation, in headless Chromium
  cross   the run time's tests on 64-bit ARM (qemu-user) and WebAssembly (Node.js); installs what is missing
  miri    the run time's loaders, kernels and threads under Miri, which sees every out-of-bounds access and
          data race (a nightly toolchain with `miri`); `--valgrind`: the AVX2 kernels under valgrind
  demo    builds the optimised program and runs `understudy demo`; more arguments go to it
  bench   prints the figures of docs/benchmarks.md: `cargo xtask bench sampling|inverse|body|face|diff|skin|ik|weights|motion|capture|auto|wasm|python|wild|race|eval|ablations|studio`

Example: cargo xtask check && cargo xtask test
";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match arguments.first().map(String::as_str) {
        Some("check") => check::run(),
        Some("test") => {
            ensure_node()?;
            let all = rest.contains(&"--all");
            let packages = rest.contains(&"--packages");
            let rest: Vec<&str> =
                rest.into_iter().filter(|word| !["--all", "--packages"].contains(word)).collect();
            if !packages {
                cargo(&[&["test", "--workspace"], &rest[..]].concat())?;
            }
            let mut played = None;
            if rest.is_empty() {
                web::build()?;
                web::test()?;
                studio::test(all)?;
                played = c::test()?;
                python::test(played.as_ref())?;
            }
            match all {
                true => {
                    // As the tests of the workspace were built: chosen by itself, a package would have its dependencies
                    // compiled anew.
                    cargo(&["test", "--workspace", "--test", "blender", "--", "--ignored"])?;
                    cargo(&["test", "--workspace", "--test", "gltf_compressed", "--", "--ignored"])?;
                    python::test_wheel(played.as_ref())?;
                    bevy::test()?;
                    cargo(&[
                        "test",
                        "--workspace",
                        "--bin",
                        "understudy-bench",
                        "--",
                        "--ignored",
                        "onnxruntime",
                    ])
                }
                false => Ok(()),
            }
        }
        Some("web") => web::build(),
        Some("wheel") => python::make(&rest),
        Some("dist") => dist::make(),
        Some("licences") => licences::make(),
        Some("pictures") => studio::pictures(),
        Some("cross") => cross::run_all(&rest),
        Some("miri") => memory::run(&rest),
        Some("demo") => {
            cargo(&[&["run", "--release", "--package", "understudy", "--", "demo"], &rest[..]].concat())
        }
        Some("bench") => bench::run(&rest),
        Some("help" | "--help" | "-h") | None => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => bail!("there is no task '{other}'; see `cargo xtask help`"),
    }
}
