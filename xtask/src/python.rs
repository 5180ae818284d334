//! The Python package: building its wheel, and its own tests in a fresh environment that has neither Rust nor sources.

use crate::shell::{built, exists, root, run, target_folder};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

const MATURIN: &str = "maturin==1.16.0";
const PYTEST: &str = "pytest==8.4.2";
const RAY: &str = "ray==2.60.0";

/// A Python that is new enough.
fn python() -> Result<&'static str> {
    const NAMES: [&str; 2] = ["python3", "python"];
    let good = |name: &&str| {
        let check = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
        exists(name) && Command::new(name).args(["-c", check]).status().is_ok_and(|status| status.success())
    };
    NAMES.into_iter().find(good).context("Python 3.10 or newer with venv is wanted (Debian: python3-venv)")
}

/// An environment of its own with these packages, made once; gives its folder of programs.
fn environment(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = std::path::absolute(target_folder().join("python").join(name))?;
    let programs = folder.join("bin");
    let mark = folder.join("packages");
    let want = packages.join(" ");
    if std::fs::read_to_string(&mark).is_ok_and(|found| found == want) {
        return Ok(programs);
    }
    run(Command::new(python()?).args(["-m", "venv", "--clear"]).arg(&folder))?;
    run(Command::new(programs.join("pip"))
        .args(["install", "--quiet", "--disable-pip-version-check"])
        .args(packages))?;
    std::fs::write(&mark, want)?;
    Ok(programs)
}

/// Builds the wheel, optimised or not, into a folder; gives its path.
pub fn wheel(folder: &Path, profile: &str) -> Result<PathBuf> {
    let programs = environment("maturin", &[MATURIN])?;
    std::fs::create_dir_all(folder)?;
    run(Command::new(programs.join("maturin"))
        .args(["build", "--profile", profile, "--interpreter", python()?, "--out"])
        .arg(folder)
        .arg("--manifest-path")
        .arg(root().join("apps/python/Cargo.toml")))?;
    let wheels = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let mut wheels: Vec<PathBuf> =
        wheels.filter(|path| path.extension().is_some_and(|e| e == "whl")).collect();
    wheels.sort_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).ok());
    wheels.pop().context("maturin made no wheel")
}

/// The package's own tests against the module that the tests of the workspace built, without a wheel.
pub fn test() -> Result<()> {
    if python().is_err() {
        println!("no Python 3.10 or newer: the package's tests are skipped");
        return Ok(());
    }
    let folder = target_folder().join("debug");
    let package = std::path::absolute(target_folder().join("python/package/understudy"))?;
    let _ = std::fs::remove_dir_all(&package);
    std::fs::create_dir_all(&package)?;
    for entry in std::fs::read_dir(root().join("apps/python/python/understudy"))?.flatten() {
        if entry.path().is_file() {
            std::fs::copy(entry.path(), package.join(entry.file_name()))?;
        }
    }
    std::fs::copy(folder.join("deps/lib_native.so"), package.join("_native.abi3.so"))
        .context("the tests of the workspace make the module: cargo test --workspace --test stub")?;
    let programs = environment("test", &["numpy", PYTEST])?;
    let above = package.parent().context("a folder")?;
    run(pytest(&programs, &folder.join("understudy"))?
        .args(["--ignore-glob", "*test_farm.py"])
        .env("PYTHONPATH", above))
}

/// The wheel's own tests and the farm's, in an environment where it was installed.
pub fn test_wheel() -> Result<()> {
    let wheel = wheel(&std::path::absolute(target_folder().join("python/wheels"))?, "release")?;
    let programs = environment("test-all", &["numpy", PYTEST, RAY])?;
    run(Command::new(programs.join("pip"))
        .args(["install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps"])
        .arg(&wheel))?;
    let program = built(&["build", "--release", "--package", "understudy"])?;
    run(pytest(&programs, &program)?.arg("-s"))
}

fn pytest(programs: &Path, understudy: &Path) -> Result<Command> {
    let mut pytest = Command::new(programs.join("pytest"));
    pytest.args(["-q", "-p", "no:cacheprovider"]).arg(root().join("apps/python/tests"));
    pytest.env("UNDERSTUDY", std::path::absolute(understudy)?);
    Ok(pytest)
}

/// `cargo xtask wheel`.
pub fn make(words: &[&str]) -> Result<()> {
    match words {
        [] => {
            let wheel = wheel(&std::path::absolute(root().join("target/wheels"))?, "release")?;
            println!("{}", wheel.display());
            Ok(())
        }
        [other, ..] => bail!("`cargo xtask wheel` takes no '{other}'"),
    }
}
