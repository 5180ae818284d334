//! `cargo xtask web`: what runs in browsers. The run time as two WebAssembly modules (SIMD128, and relaxed SIMD for engines
//! that have it), and the TypeScript package around them, in `apps/wasm/js/dist`, and the studio's page. Installs what is missing: rustup's
//! target, Node.js, the package's own tools.

use crate::shell::{built, cargo_with, ensure_chromium, ensure_node, root, run, target_folder, understudy};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the compiler may use: everywhere, and in engines that have relaxed SIMD.
pub const LANES: [&str; 2] = ["+simd128", "+simd128,+relaxed-simd"];
/// The modules for these.
const MODULES: [&str; 2] = ["understudy.wasm", "understudy-relaxed.wasm"];
/// What a module may take on the wire, bytes.
const MOST_COMPRESSED: usize = 500_000;
const TARGET: &str = "wasm32-unknown-unknown";

/// Where the package is.
pub fn package() -> PathBuf {
    root().join("apps/wasm/js")
}

/// Builds everything.
pub fn build() -> Result<()> {
    ensure_node()?;
    ensure_target(TARGET)?;
    install(&package())?;
    run(Command::new("npm").args(["run", "--silent", "build"]).arg("--prefix").arg(package()))?;
    let dist = package().join("dist");
    for (name, features) in MODULES.into_iter().zip(LANES) {
        // Folders of their own: two sets of flags in one would build everything anew each time.
        let folder = target_folder().join(name.trim_end_matches(".wasm"));
        let folder = folder.to_str().context("the target folder has no name in UTF-8")?;
        let words = ["build", "--package", "understudy-wasm", "--target", TARGET, "--profile", "web"];
        let words = [&words[..], &["--target-dir", folder]].concat();
        let flags = format!("-C target-feature={features}");
        cargo_with(&words, &[("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags)])?;
        let built = Path::new(folder).join(TARGET).join("web/understudy_wasm.wasm");
        let file = dist.join(name);
        fs::copy(&built, &file).with_context(|| format!("cannot copy {}", built.display()))?;
        let bytes = fs::read(&file)?.len();
        let [compressed, gzip] = compressed(&file)?;
        println!(
            "{name}: {} kB, compressed {} kB (Brotli), {} kB (gzip)",
            bytes / 1000,
            compressed / 1000,
            gzip / 1000
        );
        if compressed > MOST_COMPRESSED {
            bail!("{name} takes {compressed} bytes compressed, more than {MOST_COMPRESSED}");
        }
    }
    crate::studio::build_page()
}

/// The package's tests, on what [`build`] built, beside the run time as it plays natively.
pub fn test() -> Result<()> {
    let native = native(&["--workspace"])?;
    run(node().arg("--test").arg(package().join("test")).env("UNDERSTUDY_NATIVE", &native))?;
    let chromium = ensure_chromium(&crate::studio::page())?;
    let folder = target_folder().join("web-test");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    run(Command::new(&native).arg("--made").arg(&folder))?;
    let twins = ["body", "face", "diff", "skin"].map(|kind| folder.join(format!("{kind}.twin")));
    let script = package().join("bench/bench.mjs");
    run(node()
        .arg(script)
        .arg(&native)
        .args(["--chromium", "--check"])
        .args(twins)
        .env("UNDERSTUDY_CHROMIUM", chromium))
}

/// The program that plays twins natively for comparison. For tests it is built with the workspace's dependencies, which are
/// there already.
pub fn native(how: &[&str]) -> Result<PathBuf> {
    built(&[&["build", "--example", "native"], how].concat())
}

/// Twins natively, in Node.js and in Chromium: vertices and ms per pose, in one table. Words name twins; without any, small
/// ones of Mira and Rook are learned, of the sizes that learning has by default: weights do not change what a pose costs.
pub fn bench(words: &[&str]) -> Result<()> {
    build()?;
    let chromium = ensure_chromium(&crate::studio::page())?;
    let learned = if words.is_empty() { learn()? } else { Vec::new() };
    let script = package().join("bench/bench.mjs");
    run(node()
        .arg(script)
        .arg(native(&["--package", "understudy-wasm", "--release"])?)
        .arg("--chromium")
        .args(words)
        .args(learned)
        .env("UNDERSTUDY_CHROMIUM", chromium))
}

/// Twins for [`fn@bench`], kept for the next time.
fn learn() -> Result<Vec<String>> {
    let at = |name: &str| format!("target/bench/wasm/{name}");
    let (mira, rook) = (at("mira"), at("rook"));
    let mut twins = Vec::new();
    let methods: [(&str, &str, &[&str]); 4] = [
        ("face", &mira, &["--coarse-steps", "20", "--refinement-steps", "20"]),
        ("diff", &mira, &["--steps", "20", "--anchor-steps", "20"]),
        ("skin", &mira, &["--epochs", "2"]),
        ("body", &rook, &["--epochs", "2"]),
    ];
    for (method, data, short) in methods {
        let twin = format!("{data}-{method}.twin");
        if !root().join(&twin).is_file() {
            let rig = if data == mira { "mira" } else { "rook" };
            let sampling: &[&str] = match rig {
                "mira" => &["--method", "noise", "--poses", "400", "--exclude", "roar"],
                _ => &["--method", "sparse", "--poses", "1500"],
            };
            understudy(&[&["sample", rig, "-o", data], sampling].concat())?;
            understudy(&[&["learn", method, data, "-o", &twin], short].concat())?;
        }
        twins.push(twin);
    }
    Ok(twins)
}

/// Node.js with relaxed SIMD: before version 22 it has to be asked for.
pub fn node() -> Command {
    const ASKED: &str = "--experimental-wasm-relaxed-simd";
    let mut command = Command::new("node");
    let probe =
        Command::new("node").args([ASKED, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if probe.is_ok_and(|status| status.success()) {
        command.arg(ASKED);
    }
    command
}

/// A target of rustup's, where it is missing.
pub fn ensure_target(target: &str) -> Result<()> {
    let list = Command::new("rustup").args(["target", "list", "--installed"]).stderr(Stdio::null()).output();
    let there =
        list.is_ok_and(|list| String::from_utf8_lossy(&list.stdout).lines().any(|line| line == target));
    if there { Ok(()) } else { run(Command::new("rustup").args(["target", "add", target])) }
}

/// The packages that a lock file names, where they are not there yet.
pub fn install(folder: &Path) -> Result<()> {
    let lock = fs::read(folder.join("package-lock.json")).context("cannot read package-lock.json")?;
    // npm leaves what it installed in a lock file of its own; ours is newer where somebody changed it.
    let stamp = folder.join("node_modules/.understudy-lock");
    if fs::read(&stamp).is_ok_and(|done| done == lock) {
        return Ok(());
    }
    run(Command::new("npm")
        .args(["ci", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"])
        .arg(folder))?;
    fs::write(&stamp, lock).context("cannot write into node_modules")
}

/// Bytes as servers send a file, by Brotli, which every browser takes, and by gzip.
fn compressed(file: &Path) -> Result<[usize; 2]> {
    const SCRIPT: &str = "const zlib = require('node:zlib'), bytes = require('node:fs').readFileSync(process.argv[1]); \
        console.log(zlib.brotliCompressSync(bytes).length, zlib.gzipSync(bytes, { level: 9 }).length);";
    let output = Command::new("node").args(["-e", SCRIPT]).arg(file).output().context("cannot start node")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let sizes: Vec<usize> = text.split_whitespace().filter_map(|size| size.parse().ok()).collect();
    match sizes.as_slice() {
        [brotli, gzip] => Ok([*brotli, *gzip]),
        _ => bail!("node did not compress {} ({})", file.display(), output.status),
    }
}
