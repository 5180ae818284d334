//! `cargo xtask dist`: what a release consists of, in one folder with its checksums: the stripped program, the C archive, the
//! Python wheel and the npm tarball. The version of all is the workspace's.

use crate::shell::{optimised, root, run};
use crate::{python, web};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace's version.
pub fn version() -> Result<String> {
    let text = fs::read_to_string(root().join("Cargo.toml"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("version = "));
    Ok(line.context("Cargo.toml has no version")?.trim_matches('"').to_owned())
}

/// Fails where a package says another version than the workspace, or the changelog does not tell of it.
pub fn check_versions() -> Result<()> {
    let want = version()?;
    for place in ["apps/wasm/js/package.json", "apps/studio/web/package.json"] {
        let text = fs::read_to_string(root().join(place))?;
        let package: serde_json::Value = serde_json::from_str(&text).with_context(|| place.to_owned())?;
        if package["version"] != want.as_str() {
            bail!("{place}: version {}, the workspace has {want}", package["version"]);
        }
    }
    // A workspace of its own, which can take no version from ours.
    let bevy = fs::read_to_string(root().join("apps/bevy/Cargo.toml"))?;
    if !bevy.lines().any(|line| line == format!("version = \"{want}\"")) {
        bail!("apps/bevy/Cargo.toml: the workspace has version {want}");
    }
    let changes = fs::read_to_string(root().join("CHANGELOG.md"))?;
    if !changes.lines().any(|line| line.starts_with(&format!("## {want} "))) {
        bail!("CHANGELOG.md has no section of {want}");
    }
    Ok(())
}

fn strip(from: &Path, to: &Path) -> Result<()> {
    run(Command::new("strip").arg("-o").arg(to).arg(from))
}

/// Makes everything anew.
pub fn make() -> Result<()> {
    check_versions()?;
    let version = version()?;
    let machine = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    let folder = std::path::absolute(root().join("target/dist"))?;
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    // The page first: the program embeds it.
    web::build()?;
    let program = optimised("understudy")?;
    let name = format!("understudy-{version}-{machine}");
    let inner = folder.join(&name);
    fs::create_dir_all(&inner)?;
    strip(&program, &inner.join("understudy"))?;
    copy(&LICENCES, &inner)?;
    copy(&[("README.md", "README.md")], &inner)?;
    pack(&folder, &name)?;

    crate::shell::cargo(&["build", "--release", "--package", "understudy-c"])?;
    let built = program.parent().context("the program lies in a folder")?;
    let name = format!("understudy-c-{version}-{machine}");
    let inner = folder.join(&name);
    for part in ["lib/cmake/understudy", "include", "examples/unreal"] {
        fs::create_dir_all(inner.join(part))?;
    }
    strip(&built.join("libunderstudy.so"), &inner.join("lib/libunderstudy.so"))?;
    // What links it needs its symbols.
    run(Command::new("strip")
        .args(["--strip-debug", "-o"])
        .arg(inner.join("lib/libunderstudy.a"))
        .arg(built.join("libunderstudy.a")))?;
    let own = root().join("apps/c");
    fs::copy(own.join("include/understudy.h"), inner.join("include/understudy.h"))?;
    for example in ["live.c", "play.c", "unreal/TwinComponent.h", "unreal/stub.cpp"] {
        let example = Path::new("examples").join(example);
        fs::copy(own.join(&example), inner.join(&example))?;
    }
    let config = "understudy-config.cmake";
    fs::copy(own.join("cmake").join(config), inner.join("lib/cmake/understudy").join(config))?;
    copy(&LICENCES, &inner)?;
    copy(&[("docs/guides/from-c.md", "README.md")], &inner)?;
    pack(&folder, &name)?;

    python::wheel(&folder, "release")?;
    tarball(&folder)?;
    sums(&folder)
}

/// The npm package with the licences beside it: `npm pack` takes what lies in its folder.
fn tarball(folder: &Path) -> Result<()> {
    let (package, inner) = (web::package(), folder.join("npm"));
    fs::create_dir_all(inner.join("dist"))?;
    for file in fs::read_dir(package.join("dist"))?.flatten() {
        fs::copy(file.path(), inner.join("dist").join(file.file_name()))?;
    }
    for text in ["package.json", "README.md"] {
        fs::copy(package.join(text), inner.join(text)).with_context(|| text.to_owned())?;
    }
    copy(&LICENCES, &inner)?;
    run(Command::new("npm").args(["pack", "--silent", "--pack-destination"]).arg(folder).arg(&inner))?;
    Ok(fs::remove_dir_all(inner)?)
}

/// Under what terms we give, and what is inside: npm and maturin take files of such names by themselves.
pub const LICENCES: [(&str, &str); 3] = [
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("docs/licences.md", "LICENCES.md"),
];

/// Texts of the repository under other names.
pub fn copy(texts: &[(&str, &str)], to: &Path) -> Result<()> {
    for (from, name) in texts {
        fs::copy(root().join(from), to.join(name)).with_context(|| (*from).to_owned())?;
    }
    Ok(())
}

/// A folder as an archive; the folder goes.
fn pack(folder: &Path, name: &str) -> Result<()> {
    run(Command::new("tar")
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-C"])
        .arg(folder)
        .args(["-czf"])
        .arg(folder.join(format!("{name}.tar.gz")))
        .arg(name))?;
    Ok(fs::remove_dir_all(folder.join(name))?)
}

/// SHA-256 of every file, as `sha256sum -c` reads them.
fn sums(folder: &Path) -> Result<()> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let names: Vec<&std::ffi::OsStr> = files.iter().filter_map(|file| file.file_name()).collect();
    let output = Command::new("sha256sum").args(&names).current_dir(folder).output()?;
    if !output.status.success() {
        bail!("sha256sum failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    fs::write(folder.join("SHA256SUMS"), &output.stdout)?;
    for file in &files {
        println!("{:>12} bytes  {}", file.metadata()?.len(), file.display());
    }
    Ok(())
}
