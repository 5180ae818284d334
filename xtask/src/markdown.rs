//! Paths that Markdown files name must exist: links, and code spans that start with a folder of ours.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Code spans that start so are taken for paths of the repository.
const FOLDERS: &[&str] = &["crates/", "apps/", "docs/", "xtask/", "fuzz/", "tools/", ".ci/"];
const SKIPPED: &[&str] = &["target", "node_modules", ".git", "corpus"];

/// Every path that does not exist, as `file:line: path`.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    collect(root, &mut files).context("cannot list the repository")?;
    files.sort();
    let mut problems = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let folder = file.parent().unwrap_or(root);
        let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        for (number, line) in text.lines().enumerate() {
            let broken = |path: &String| !root.join(path).exists() && !folder.join(path).exists();
            for path in paths_in(line).into_iter().filter(broken) {
                problems.push(format!("{shown}:{}: {path}", number + 1));
            }
        }
    }
    Ok(problems)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_str()) && !name.starts_with("target-") {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    Ok(())
}

/// Paths that a line names, without fragments; addresses of the web are not looked at.
fn paths_in(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for piece in line.split("](").skip(1) {
        let target = piece.split(')').next().unwrap_or_default();
        let path = target.split('#').next().unwrap_or_default();
        if !path.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
            found.push(path.to_owned());
        }
    }
    for span in line.split('`').skip(1).step_by(2) {
        let plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
        if FOLDERS.iter().any(|folder| span.starts_with(folder)) && span.chars().all(plain) {
            found.push(span.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_code_spans_are_found_and_the_web_is_not() {
        let line = "see [a](docs/a.md#b), [b](https://x.y/z) and `crates/core/src/lib.rs` or `crates/*`";
        assert_eq!(paths_in(line), ["docs/a.md", "crates/core/src/lib.rs"]);
    }
}
