//! The Python package: building its wheel, and its own tests in a fresh environment that has neither Rust nor sources.

use crate::c::Played;
use crate::dist;
use crate::shell::{exists, optimised, root, run, target_folder, understudy};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

pub const MATURIN: &str = "maturin==1.16.0";
pub const NUMPY: &str = "numpy==2.2.6";
pub const PYTEST: &str = "pytest==8.4.2";
pub const RAY: &str = "ray==2.60.0";

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
    let package = root().join("apps/python");
    dist::copy(&dist::LICENCES, &package)?;
    let built = run(Command::new(programs.join("maturin"))
        .args(["build", "--profile", profile, "--interpreter", python()?, "--out"])
        .arg(folder)
        .arg("--manifest-path")
        .arg(package.join("Cargo.toml")));
    for (_, name) in dist::LICENCES {
        std::fs::remove_file(package.join(name))?;
    }
    built?;
    let wheels = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let mut wheels: Vec<PathBuf> =
        wheels.filter(|path| path.extension().is_some_and(|e| e == "whl")).collect();
    wheels.sort_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).ok());
    wheels.pop().context("maturin made no wheel")
}

/// The package's own tests against the module that the tests of the workspace built, without a wheel.
pub fn test(played: Option<&Played>) -> Result<()> {
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
    let programs = environment("test", &[NUMPY, PYTEST])?;
    let above = package.parent().context("a folder")?;
    run(pytest(&programs, &folder.join("understudy"), played)?
        .args(["--ignore-glob", "*test_farm.py"])
        .env("PYTHONPATH", above))
}

/// The wheel's own tests and the farm's, in an environment where it was installed.
pub fn test_wheel(played: Option<&Played>) -> Result<()> {
    let (programs, program) = installed()?;
    run(pytest(&programs, &program, played)?.arg("-s"))
}

/// An environment with the optimised wheel and Ray in it, and the optimised program.
fn installed() -> Result<(PathBuf, PathBuf)> {
    let wheel = wheel(&std::path::absolute(target_folder().join("python/wheels"))?, "release")?;
    let programs = environment("test-all", &[NUMPY, PYTEST, RAY])?;
    run(Command::new(programs.join("pip"))
        .args(["install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps"])
        .arg(&wheel))?;
    let program = optimised("understudy")?;
    Ok((programs, program))
}

/// What the package adds to a pose of Rook's body twin, and how soon Ctrl-C ends learning; then the farm, one worker and two,
/// with a node that dies. Optimised, from the wheel.
pub fn bench(words: &[&str]) -> Result<()> {
    if let [other, ..] = words {
        bail!("`cargo xtask bench python` takes no '{other}'");
    }
    let (data, twin) = ("target/bench/python/rook", "target/bench/python/rook.twin");
    if !root().join(twin).is_file() {
        understudy(&["sample", "rook", "-o", data, "--method", "sparse", "--poses", "1500"])?;
        // What weights say changes nothing of what a pose costs.
        understudy(&["learn", "body", data, "-o", twin, "--epochs", "2"])?;
    }
    let (programs, program) = installed()?;
    let mut pytest = pytest(&programs, &program, None)?;
    let twin = std::path::absolute(root().join(twin))?;
    run(pytest
        .args(["-s", "-k", "microseconds or ctrl_c_ends or dies or scaling"])
        .env("UNDERSTUDY_TWIN", twin))
}

fn pytest(programs: &Path, understudy: &Path, played: Option<&Played>) -> Result<Command> {
    let mut pytest = Command::new(programs.join("pytest"));
    pytest.args(["-q", "-p", "no:cacheprovider"]).arg(root().join("apps/python/tests"));
    pytest.env("UNDERSTUDY", std::path::absolute(understudy)?);
    if let Some(played) = played {
        pytest.env("UNDERSTUDY_TAKE", &played.take).env("UNDERSTUDY_CHECKSUM", &played.checksum);
    }
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
