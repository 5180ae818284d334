//! Running other programs, with the command shown and its failure named.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The root of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs a command in the root of the repository.
pub fn run(command: &mut Command) -> Result<()> {
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|w| w.to_string_lossy().into())
        .collect();
    println!("> {}", words.join(" "));
    let status =
        command.current_dir(root()).status().with_context(|| format!("cannot start {}", words[0]))?;
    if !status.success() {
        bail!("`{}` failed ({status})", words.join(" "));
    }
    Ok(())
}

/// Runs cargo.
pub fn cargo(arguments: &[&str]) -> Result<()> {
    run(Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into())).args(arguments))
}

/// What a command of the optimised program prints; an error where it fails. Shows nothing.
pub fn answer(words: &[&str]) -> Result<String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["run", "--release", "--quiet", "--package", "understudy", "--"])
        .args(words)
        .current_dir(root())
        .stderr(Stdio::null())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("`understudy {}` failed ({})", words.join(" "), output.status);
    }
    String::from_utf8(output.stdout).context("the answer is not text")
}

fn exists(program: &str) -> bool {
    let probe = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    probe.is_ok_and(|status| status.success())
}

/// The glTF tests run the Khronos validator, which is a Node.js package. Installs Node.js from Debian's
/// packages where it is missing and we may.
pub fn ensure_node() -> Result<()> {
    if exists("node") && exists("npm") {
        return Ok(());
    }
    if !exists("apt-get") {
        println!(
            "Node.js is missing and this is no Debian machine: the glTF validator tests will be skipped"
        );
        return Ok(());
    }
    let sudo = if exists("sudo") { vec!["sudo"] } else { vec![] };
    for arguments in [&["apt-get", "update"][..], &["apt-get", "install", "-y", "nodejs", "npm"]] {
        let words = [&sudo[..], arguments].concat();
        run(Command::new(words[0]).args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    Ok(())
}
