//! The C library: its examples are compiled by the system's compiler, linked with the library, and run, where valgrind is at hand
//! under that too.

use crate::shell::{ensure_packages, exists, root, run, target_folder};
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library as the tests of the workspace build it (chosen by itself it would have its dependencies compiled once more), and
/// a folder for programs.
struct Built {
    library: PathBuf,
    programs: PathBuf,
}

impl Built {
    fn new() -> Result<Self> {
        crate::shell::cargo(&["test", "--workspace", "--test", "header", "--no-run", "--quiet"])?;
        let target = std::path::absolute(target_folder())?;
        let programs = target.join("c");
        std::fs::create_dir_all(&programs)?;
        Ok(Self { library: target.join("debug/deps"), programs })
    }

    /// Compiles an example against the header and links it with the library.
    fn compile(&self, compiler: &str, standard: &str, example: &str) -> Result<PathBuf> {
        let stem = Path::new(example).file_stem().context("an example has a name")?;
        let program = self.programs.join(stem);
        run(Command::new(compiler)
            .args([standard, "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
            .arg(root().join("apps/c/include"))
            .arg(root().join("apps/c/examples").join(example))
            .arg("-L")
            .arg(&self.library)
            .args(["-lunderstudy", "-lm", &format!("-Wl,-rpath,{}", self.library.display()), "-o"])
            .arg(&program))?;
        Ok(program)
    }
}

/// What an example says, which must be the same under valgrind, but for checksums: kernels of other processors round
/// otherwise, and valgrind knows no AVX-512.
fn watched(program: &Path, words: &[&OsStr]) -> Result<String> {
    let plain = said(Command::new(program).args(words))?;
    println!("{}", plain.trim());
    if !exists("valgrind") {
        println!("no valgrind: the C example's memory is not watched");
        return Ok(plain);
    }
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
    let watched = said(valgrind.arg(program).args(words))?;
    if plain.split("checksum").next() != watched.split("checksum").next() {
        bail!("under valgrind {} says something else: {watched}", program.display());
    }
    Ok(plain)
}

/// A take on the face twin that the run time keeps for its tests, and the checksum of its vertices.
pub struct Played {
    /// The table of controls.
    pub take: PathBuf,
    /// As `play.c` prints it.
    pub checksum: String,
}

/// Plays a take and a motion, and moves a body's hand: the take's checksum is that of the Rust library, and valgrind has nothing
/// to say of either example. Unreal's stub compiles and runs. Gives what the Python package must
/// agree with; nothing without a C compiler.
pub fn test() -> Result<Option<Played>> {
    if !exists("cc") {
        println!("no C compiler: the C example is skipped");
        return Ok(None);
    }
    if !exists("valgrind") && exists("apt-get") {
        ensure_packages(&["valgrind"])?;
    }
    let built = Built::new()?;
    let program = built.compile("cc", "-std=c11", "play.c")?;
    let golden = root().join("crates/runtime/tests/golden");
    let (face, body) = (golden.join("face-v3.twin"), golden.join("body-v3.twin"));
    let take = built.programs.join("take.csv");
    std::fs::write(&take, take_of(&face)?)?;
    let words = [face.as_os_str(), take.as_os_str()];
    let plain = watched(&program, &words)?;
    let rust = said(Command::new(crate::web::native(&["--workspace"])?).arg("--checksum").args(words))?;
    let checksum = plain.trim().rsplit(' ').next().unwrap_or_default().to_owned();
    if rust.trim() != checksum {
        bail!("the Rust library's checksum is {}, the C example's {checksum}", rust.trim());
    }
    let motion = golden.join("sway.motion");
    let script = OsStr::new("transition nod; idle 1s; play turn_0");
    let spelling = OsStr::new(r#"{"hand_L": ["bone1", "bone3", "bone6"]}"#);
    let live = built.compile("cc", "-std=c11", "live.c")?;
    watched(&live, &[motion.as_os_str(), script, body.as_os_str(), spelling])?;
    if exists("c++") {
        let stub = built.compile("c++", "-std=c++17", "unreal/stub.cpp")?;
        print!("{}", said(Command::new(stub).arg(&body))?);
    }
    let mut missing = Command::new(&program);
    let missing = missing.args(["nowhere.twin", "nowhere.csv"]).env_remove("LD_LIBRARY_PATH").output()?;
    let text = String::from_utf8_lossy(&missing.stderr);
    if missing.status.code() != Some(2) || !text.contains("nowhere.twin") {
        bail!("a missing file is not told as it should be: {text}");
    }
    Ok(Some(Played { take, checksum }))
}

/// A take of 24 frames that moves every control of a twin: read from its file's header, as text.
fn take_of(twin: &Path) -> Result<String> {
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

/// What a program prints. Cargo names folders with libraries of its own for the programs that it starts, and an older one of ours
/// may lie there.
fn said(command: &mut Command) -> Result<String> {
    let output = command
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
