//! Puts the built page into the binary: a table of its files, which is empty where `cargo xtask web` has not run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    // The folder above is always there: watching one that is not would build the crate anew every time.
    println!("cargo::rerun-if-changed={}", root.join("page").display());
    let page = root.join("page/dist");
    // Files are copied first: the page may be built again while the compiler runs.
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut files = Vec::new();
    collect(&page, &mut files);
    files.sort();
    let mut table = String::from("&[\n");
    for (index, file) in files.iter().enumerate() {
        let name = file.strip_prefix(&page).expect("it was found there").to_string_lossy().replace('\\', "/");
        let copy = out.join(format!("page-{index}"));
        if std::fs::copy(file, &copy).is_ok() {
            writeln!(table, "    ({name:?}, include_bytes!({:?})),", copy.display().to_string())
                .expect("a string");
        }
    }
    table.push(']');
    std::fs::write(out.join("page.rs"), table).expect("cargo's own folder can be written");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}
