//! The studio's page: building it, driving it in headless Chromium (tests, pictures, benchmark). The scripts are in
//! `apps/studio/web/tests`; each is given the program and starts it itself.

use crate::shell::{cargo, ensure_chromium, optimised, root, run, target_folder};
use crate::web;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// Where the page and the scripts that drive it are.
pub fn page() -> PathBuf {
    root().join("apps/studio/web")
}

/// Checks the types and bundles the page into `apps/studio/page/dist`; the next build of the program embeds it.
pub fn build_page() -> Result<()> {
    web::install(&page())?;
    run(Command::new("npm").args(["run", "--silent", "build"]).arg("--prefix").arg(page()))
}

/// The page where it was not built yet, and the browser where there is none: gives the browser.
fn ensure() -> Result<PathBuf> {
    if web::package().join("dist/index.js").is_file() && web::package().join("dist/understudy.wasm").is_file()
    {
        build_page()?;
    } else {
        web::build()?;
    }
    // After the page's own packages: one of them may have to bring the browser.
    ensure_chromium(&page())
}

/// Runs a script with the program's path before its own words.
fn script(name: &str, release: bool, words: &[&str]) -> Result<()> {
    let chromium = ensure()?;
    // As the tests of the workspace were built, for which the program is made too: chosen by itself, it would have its
    // dependencies compiled once more.
    let program = if release {
        optimised("understudy")?
    } else {
        cargo(&["test", "--workspace", "--test", "commands", "--no-run", "--quiet"])?;
        target_folder().join("debug/understudy")
    };
    let program = std::path::absolute(program).context("the program has no path")?;
    run(Command::new("node")
        .arg(page().join("tests").join(name))
        .arg(program)
        .args(words)
        .env("UNDERSTUDY_CHROMIUM", chromium))
}

/// The page in a real browser: what is looked at first, or all that its tabs can do, which takes minutes.
pub fn test(all: bool) -> Result<()> {
    script("browser.mjs", false, if all { &[] } else { &["--quick"] })
}

/// Pictures for README and guide, into `docs/pictures`.
pub fn pictures() -> Result<()> {
    script("pictures.mjs", true, &["docs/pictures"])
}

/// Twins in Node.js and in Chromium beside native ones, then streaming, load and first sight: figures of docs/guides/studio.md.
/// A number: seconds of the load.
pub fn bench(words: &[&str]) -> Result<()> {
    web::bench(&[])?;
    script("bench.mjs", true, words)
}
