//! The C library: its example is compiled by the system's compiler, linked with the library, and run, where valgrind is at hand
//! under that.

use crate::shell::{ensure_packages, exists, root, run, target_folder};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// Builds the library and the example; gives both.
fn build() -> Result<(PathBuf, PathBuf)> {
    crate::shell::cargo(&["build", "--package", "understudy-c"])?;
    let folder = std::path::absolute(target_folder().join("debug"))?;
    let program = folder.join("understudy-play");
    run(Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
        .arg(root().join("apps/c/include"))
        .arg(root().join("apps/c/examples/play.c"))
        .arg("-L")
        .arg(&folder)
        .args(["-lunderstudy", "-lm", &format!("-Wl,-rpath,{}", folder.display()), "-o"])
        .arg(&program))?;
    Ok((folder, program))
}

/// The component of the note for Unreal, against the header with a C++ compiler.
fn unreal(folder: &std::path::Path) -> Result<()> {
    let program = folder.join("understudy-unreal-stub");
    run(Command::new("c++")
        .args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
        .arg(root().join("apps/c/include"))
        .arg(root().join("apps/c/examples/unreal/stub.cpp"))
        .arg("-L")
        .arg(folder)
        .args(["-lunderstudy", &format!("-Wl,-rpath,{}", folder.display()), "-o"])
        .arg(&program))?;
    run(Command::new(&program).arg(root().join("crates/runtime/tests/golden/body-v3.twin")))
}

/// A take on the face twin that the run time keeps for its tests, and the checksum of its vertices.
pub struct Played {
    /// The table of controls.
    pub take: PathBuf,
    /// As `play.c` prints it.
    pub checksum: String,
}

/// Plays a take: the checksum is that of the Rust library, and valgrind has nothing to say. Gives what the Python package must
/// agree with; nothing without a C compiler.
pub fn test() -> Result<Option<Played>> {
    if !exists("cc") {
        println!("no C compiler: the C example is skipped");
        return Ok(None);
    }
    let (folder, program) = build()?;
    let golden = root().join("crates/runtime/tests/golden/face-v3.twin");
    let take = folder.join("understudy-play.csv");
    std::fs::write(&take, take_of(&golden)?)?;
    let words = [golden.as_os_str(), take.as_os_str()];
    let plain = said(Command::new(&program).args(words))?;
    if !exists("valgrind") && exists("apt-get") {
        ensure_packages(&["valgrind"])?;
    }
    println!("{}", plain.trim());
    let rust = said(Command::new(crate::web::native(&["--workspace"])?).arg("--checksum").args(words))?;
    let checksum = plain.trim().rsplit(' ').next().unwrap_or_default().to_owned();
    if rust.trim() != checksum {
        bail!("the Rust library's checksum is {}, the C example's {checksum}", rust.trim());
    }
    if exists("valgrind") {
        let mut valgrind = Command::new("valgrind");
        valgrind.args([
            "--quiet",
            "--error-exitcode=9",
            "--leak-check=full",
            "--errors-for-leak-kinds=definite",
        ]);
        let watched = said(valgrind.arg(&program).args(words))?;
        // Kernels of other processors round otherwise: valgrind knows no AVX-512.
        if plain.split(", checksum").next() != watched.split(", checksum").next() {
            bail!("under valgrind the example says something else: {watched}");
        }
    } else {
        println!("no valgrind: the C example's memory is not watched");
    }
    if exists("c++") {
        unreal(&folder)?;
    }
    let missing = Command::new(&program).args(["nowhere.twin", "nowhere.csv"]).output()?;
    let text = String::from_utf8_lossy(&missing.stderr);
    if missing.status.code() != Some(2) || !text.contains("nowhere.twin") {
        bail!("a missing file is not told as it should be: {text}");
    }
    Ok(Some(Played { take, checksum }))
}

/// A take of 24 frames that moves every control of a twin: read from its file's header, as text.
fn take_of(twin: &std::path::Path) -> Result<String> {
    let bytes = std::fs::read(twin)?;
    let length = u64::from_le_bytes(bytes[..8].try_into()?) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length])?;
    let text = header["__metadata__"]["header"].as_str().context("a twin's header")?;
    let controls = serde_json::from_str::<serde_json::Value>(text)?["controls"].clone();
    let names: Vec<&str> = controls
        .as_array()
        .context("controls")?
        .iter()
        .filter_map(|control| control["name"].as_str())
        .collect();
    let mut out = names.join(",") + "\n";
    for frame in 0..24 {
        let value = |place: usize| format!("{:.4}", 0.5 + 0.4 * ((frame + 3 * place) as f32 * 0.3).sin());
        out += &((0..names.len()).map(value).collect::<Vec<_>>().join(",") + "\n");
    }
    Ok(out)
}

fn said(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
