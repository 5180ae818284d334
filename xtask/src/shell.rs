//! Running other programs, with the command shown and its failure named.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The root of the repository: as cargo says when it runs this program, which a shared build cache may have
/// brought from a clone elsewhere.
pub fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(own).join("..")
}

/// Where cargo builds.
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
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
    cargo_with(arguments, &[])
}

/// Runs cargo with more variables in its environment.
pub fn cargo_with(arguments: &[&str], variables: &[(&str, String)]) -> Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    run(command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value))))
}

/// Builds and gives the program that cargo made last; `arguments` begin with `build` or `test --no-run`.
pub fn built(arguments: &[&str]) -> Result<PathBuf> {
    built_as(arguments, None)
}

/// An optimised program of the workspace by its name. All of them are built at once, as `cargo build --release` does: each
/// package by itself has other features of the same dependencies, which would be compiled once more.
pub fn optimised(name: &str) -> Result<PathBuf> {
    built_as(&["build", "--release", "--workspace", "--bins"], Some(name))
}

fn built_as(arguments: &[&str], name: Option<&str>) -> Result<PathBuf> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("`cargo {}` failed ({})", arguments.join(" "), output.status);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let executable = text.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let wanted = name.is_none_or(|name| message["target"]["name"] == name);
        message["executable"].as_str().filter(|_| wanted).map(PathBuf::from)
    });
    executable.with_context(|| format!("`cargo {}` named no program", arguments.join(" ")))
}

/// The optimised program, built once: a benchmark of an hour must not stumble over sources that are being edited.
fn program() -> Result<&'static PathBuf> {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    if let Some(program) = PROGRAM.get() {
        return Ok(program);
    }
    let built = optimised("understudy")?;
    Ok(PROGRAM.get_or_init(|| built))
}

/// Runs a race of `crates/bench`, optimised.
pub fn races(words: &[&str]) -> Result<()> {
    run(Command::new(optimised("understudy-bench")?).args(words))
}

/// Runs a command of the optimised program.
pub fn understudy(words: &[&str]) -> Result<()> {
    run(Command::new(program()?).args(words))
}

/// What a command of the optimised program prints; an error where it fails. Shows nothing.
pub fn answer(words: &[&str]) -> Result<String> {
    let output = Command::new(program()?)
        .args(words)
        .current_dir(root())
        .stderr(Stdio::null())
        .output()
        .context("cannot start understudy")?;
    if !output.status.success() {
        bail!("`understudy {}` failed ({})", words.join(" "), output.status);
    }
    String::from_utf8(output.stdout).context("the answer is not text")
}

/// Whether a program can be started.
pub fn exists(program: impl AsRef<std::ffi::OsStr>) -> bool {
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
    ensure_packages(&["nodejs", "npm"])
}

/// The browser that pages are tested in: the one that `UNDERSTUDY_CHROMIUM` names, or Debian's.
pub fn chromium() -> PathBuf {
    std::env::var_os("UNDERSTUDY_CHROMIUM").map_or_else(|| "chromium".into(), PathBuf::from)
}

/// Installs Chromium where it is missing: Debian's package, or playwright's own copy elsewhere, into a folder of `target`.
/// `scripts` is a package that has playwright-core.
pub fn ensure_chromium(scripts: &std::path::Path) -> Result<PathBuf> {
    let named = chromium();
    if exists(&named) {
        return Ok(named);
    }
    if std::env::var_os("UNDERSTUDY_CHROMIUM").is_some() {
        bail!("UNDERSTUDY_CHROMIUM: {} cannot be started", named.display());
    }
    if exists("apt-get") {
        ensure_packages(&["chromium"])?;
        return Ok(named);
    }
    let folder = std::path::absolute(target_folder().join("browsers")).context("the target has no path")?;
    run(Command::new("node")
        .arg(scripts.join("node_modules/playwright-core/cli.js"))
        .args(["install", "chromium"])
        .env("PLAYWRIGHT_BROWSERS_PATH", &folder))?;
    let path = "const { chromium } = await import(process.argv[1]); console.log(chromium.executablePath())";
    let module = std::path::absolute(scripts.join("node_modules/playwright-core/index.mjs"))
        .context("the module has no path")?;
    let output = Command::new("node")
        .args(["--input-type=module", "--eval", path])
        .arg(&module)
        .env("PLAYWRIGHT_BROWSERS_PATH", &folder)
        .output()
        .context("cannot start node")?;
    let browser = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if exists(&browser) { Ok(browser) } else { bail!("{} cannot be started", browser.display()) }
}

/// Installs Debian packages; nothing where none is named.
pub fn ensure_packages(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    if !exists("apt-get") {
        bail!("this is no Debian machine: install {} by hand", packages.join(", "));
    }
    let sudo = if exists("sudo") { vec!["sudo"] } else { vec![] };
    for arguments in [&["apt-get", "update"][..], &[&["apt-get", "install", "-y"], packages].concat()] {
        let words = [&sudo[..], arguments].concat();
        run(Command::new(words[0]).args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    Ok(())
}
