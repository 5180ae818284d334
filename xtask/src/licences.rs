//! `cargo xtask licences`: every dependency with its licence, in docs/licences.md: of Cargo, of npm, and of the Python package. `cargo xtask check` fails where the list is
//! old, or where a licence is none that a closed product may be built with.

use crate::python::{MATURIN, NUMPY, PYTEST, RAY};
use crate::shell::root;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Of each expression `A OR B`, one of these must do; of `A AND B`, all must be among them.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "bzip2-1.0.6",
];
const PAGE: &str = "docs/licences.md";
/// What npm pins for the page of the studio and for the package for browsers.
const LOCKS: [&str; 2] = ["apps/studio/web/package-lock.json", "apps/wasm/js/package-lock.json"];
/// What the Python package needs, and what it is built and tested with; their own lists say their licences.
const PYTHON: [(&str, &str); 4] =
    [("Apache-2.0", RAY), ("BSD-3-Clause", NUMPY), ("MIT", PYTEST), ("MIT OR Apache-2.0", MATURIN)];

fn is_allowed(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    let all = |text: &str| text.split(" AND ").all(|part| ALLOWED.contains(&part.trim()));
    // `A AND (B OR C)`: every part must have a way.
    if expression.contains("AND") && expression.contains('(') {
        return expression
            .split(" AND ")
            .all(|part| part.replace(['(', ')'], "").split(" OR ").any(|one| ALLOWED.contains(&one.trim())));
    }
    plain.split(" OR ").any(all)
}

/// Packages by their licences.
type ByLicence = BTreeMap<String, Vec<String>>;

/// Notes a package; fails where its licence is none that is allowed.
fn note(list: &mut ByLicence, licence: String, package: String) -> Result<()> {
    if !is_allowed(&licence) {
        bail!("{package}: the licence '{licence}' is not among those allowed");
    }
    list.entry(licence).or_default().push(package);
    Ok(())
}

fn table(list: ByLicence) -> String {
    let mut table = String::from("| licence | packages |\n|---|---|\n");
    for (licence, mut packages) in list {
        packages.sort();
        packages.dedup();
        table += &format!("| {licence} | {} |\n", packages.join(", "));
    }
    table
}

/// The page, and what is wrong with a licence.
fn list() -> Result<String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let mut cargo = ByLicence::new();
    for package in metadata["packages"].as_array().context("packages")? {
        if package["source"].is_null() {
            continue;
        }
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let licence = match text("license") {
            empty if empty.is_empty() => format!("see {}", text("license_file")),
            licence => licence.replace('/', " OR ").split_whitespace().collect::<Vec<_>>().join(" "),
        };
        note(&mut cargo, licence, format!("{} {}", text("name"), text("version")))?;
    }
    let mut page = String::from(
        "# Licences of the dependencies\n\nMade by `cargo xtask licences` from what Cargo.lock pins, tests and benchmarks \
         included. Understudy itself is under MIT or Apache-2.0.\n\n",
    );
    page += &table(cargo);
    let (shipped, tools) = npm()?;
    page += "\n## npm\n\nFrom the lock files of the studio's page and of the package for browsers. The page that the program \
             embeds holds:\n\n";
    page += &table(shipped);
    page += "\nBuilt and tested with:\n\n";
    page += &table(tools);
    page += "\n## Python\n\nThe wheel holds no package of others. It needs NumPy, its farm Ray; it is built by maturin and tested \
             by pytest, in these versions:\n\n";
    let mut python = ByLicence::new();
    for (licence, package) in PYTHON {
        note(&mut python, licence.to_owned(), package.replace("==", " "))?;
    }
    page += &table(python);
    Ok(page)
}

/// Packages of npm: those that are shipped, and those that are tools.
fn npm() -> Result<(ByLicence, ByLicence)> {
    let (mut shipped, mut tools) = (ByLicence::new(), ByLicence::new());
    for lock in LOCKS {
        let text = std::fs::read_to_string(root().join(lock)).with_context(|| lock.to_owned())?;
        let lock: Value = serde_json::from_str(&text).with_context(|| lock.to_owned())?;
        for (place, package) in lock["packages"].as_object().context("packages")? {
            let Some((_, name)) = place.rsplit_once("node_modules/") else { continue };
            let which = if package["dev"] == true { &mut tools } else { &mut shipped };
            let text = |key: &str| package[key].as_str().unwrap_or("none").to_owned();
            note(which, text("license"), format!("{name} {}", text("version")))?;
        }
    }
    Ok((shipped, tools))
}

/// Writes the page.
pub fn make() -> Result<()> {
    std::fs::write(root().join(PAGE), list()?)?;
    println!("{PAGE}");
    Ok(())
}

/// Fails where the page is old.
pub fn check() -> Result<()> {
    if std::fs::read_to_string(root().join(PAGE)).unwrap_or_default() != list()? {
        bail!("{PAGE} is not what Cargo.lock says: cargo xtask licences");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn expressions_are_read() {
        assert!(is_allowed("MIT OR Apache-2.0") && is_allowed("GPL-3.0 OR MIT") && is_allowed("MIT AND ISC"));
        assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!is_allowed("GPL-3.0") && !is_allowed("MIT AND GPL-3.0") && !is_allowed("see LICENSE"));
        assert!(!is_allowed("(MIT OR Apache-2.0) AND GPL-3.0"));
    }
}
