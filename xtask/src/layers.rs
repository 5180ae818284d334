//! Which crate may know which: the arrows of ARCHITECTURE.md, asserted on what Cargo says.

use crate::shell::root;
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;

/// For every crate of ours, the ones it may depend on. A new crate must be added here first.
const ARROWS: &[(&str, &[&str])] = &[
    ("understudy-core", &[]),
    ("understudy-testkit", &["understudy-core"]),
    ("understudy-rigs", &["understudy-core"]),
    ("understudy-characters", &["understudy-core", "understudy-rigs"]),
    ("understudy-runtime", &["understudy-core"]),
    ("understudy-io", &["understudy-core"]),
    ("understudy-report", &["understudy-core"]),
    ("understudy-solve", &["understudy-core"]),
    ("understudy-motion", &["understudy-core", "understudy-runtime"]),
    ("understudy-learn", &["understudy-core", "understudy-rigs", "understudy-runtime"]),
    (
        "understudy-capture",
        &[
            "understudy-core",
            "understudy-rigs",
            "understudy-characters",
            "understudy-runtime",
            "understudy-io",
            "understudy-report",
            "understudy-solve",
            "understudy-learn",
        ],
    ),
    (
        "understudy-jobs",
        &[
            "understudy-capture",
            "understudy-learn",
            "understudy-runtime",
            "understudy-core",
            "understudy-rigs",
            "understudy-characters",
            "understudy-io",
            "understudy-report",
            "understudy-solve",
            "understudy-motion",
        ],
    ),
    (
        "understudy-bench",
        &[
            "understudy-jobs",
            "understudy-capture",
            "understudy-learn",
            "understudy-motion",
            "understudy-runtime",
            "understudy-core",
            "understudy-rigs",
            "understudy-io",
            "understudy-report",
            "understudy-solve",
            "understudy-testkit",
        ],
    ),
    ("understudy-c", &["understudy-core", "understudy-runtime"]),
    (
        "understudy-python",
        &[
            "understudy-jobs",
            "understudy-solve",
            "understudy-io",
            "understudy-runtime",
            "understudy-core",
            "understudy-rigs",
        ],
    ),
    ("understudy-wasm", &["understudy-core", "understudy-runtime"]),
    (
        "understudy-studio",
        &[
            "understudy-jobs",
            "understudy-runtime",
            "understudy-core",
            "understudy-rigs",
            "understudy-io",
            "understudy-report",
            "understudy-solve",
        ],
    ),
    ("understudy", &["understudy-core", "understudy-jobs", "understudy-studio"]),
    ("xtask", &[]),
];

/// Crates that know neither a command-line parser nor a progress bar: those belong to the applications.
const APPLICATION_ONLY: &[&str] = &["clap", "clap_complete", "indicatif", "anyhow"];

/// What must not come into an engine with a twin, however indirectly: async runtimes, servers, tensor libraries, parsers of
/// command lines.
const NOT_IN_AN_ENGINE: &[&str] = &[
    "tokio",
    "async-std",
    "smol",
    "axum",
    "hyper",
    "burn",
    "candle-core",
    "tch",
    "ort",
    "faer",
    "gemm",
    "clap",
    "rayon",
];

/// Every broken arrow, as a line.
pub fn problems() -> Result<Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .context("cannot run cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    Ok(packages.iter().flat_map(package_problems).collect())
}

/// Crates that the run time pulls in and should not, as lines.
pub fn engine_problems() -> Result<Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--package", "understudy-runtime", "--edges", "normal", "--prefix", "none"])
        .args(["--format", "{p}"])
        .current_dir(root())
        .output()
        .context("cannot run cargo tree")?;
    let tree = String::from_utf8_lossy(&output.stdout);
    anyhow::ensure!(tree.starts_with("understudy-runtime"), "cargo tree names no run time");
    Ok(unwanted(&tree).into_iter().map(|name| format!("'understudy-runtime' pulls in '{name}'")).collect())
}

/// Names of a tree's lines that an engine must not get.
fn unwanted(tree: &str) -> Vec<&str> {
    let mut names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| NOT_IN_AN_ENGINE.contains(name));
    names
}

fn package_problems(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
        return vec![format!("crate '{name}' has no row in xtask/src/layers.rs")];
    };
    let is_application = matches!(name, "understudy" | "understudy-studio" | "understudy-bench" | "xtask");
    let mut problems = Vec::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let other = dependency["name"].as_str().unwrap_or_default();
        // Tests may look sideways: only what ships has to keep to the arrows.
        if dependency["kind"].as_str() == Some("dev") {
            continue;
        }
        let ours = ARROWS.iter().any(|(known, _)| *known == other);
        if ours && !allowed.contains(&other) {
            problems.push(format!("'{name}' must not depend on '{other}'"));
        }
        // Benchmarks ship to nobody either.
        if other == "understudy-testkit" && name != "understudy-bench" {
            problems.push(format!("'{name}' depends on the test kit outside its tests"));
        }
        if !is_application && APPLICATION_ONLY.contains(&other) {
            problems.push(format!("'{name}' must not depend on '{other}', which is for applications"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_async_runtime_is_seen_however_deep_it_lies() {
        let tree = "understudy-runtime v0.1.0 (/x)\nserde v1.0.0\ntokio v1.0.0\nmio v1.0.0\ntokio v1.0.0 (*)";
        assert_eq!(unwanted(tree), ["tokio"]);
    }

    #[test]
    fn a_wrong_arrow_is_named_and_a_test_dependency_is_not() {
        let package = |kind: Value| json!({"name": "understudy-core", "dependencies": [{"name": "understudy-io", "kind": kind}]});
        assert_eq!(package_problems(&package(Value::Null)).len(), 1);
        assert!(package_problems(&package("dev".into())).is_empty());
        assert_eq!(package_problems(&json!({"name": "stranger"})).len(), 1);
        let kit = |name: &str| json!({"name": name, "dependencies": [{"name": "understudy-testkit", "kind": null}]});
        assert!(package_problems(&kit("understudy-bench")).is_empty());
        assert_eq!(package_problems(&kit("understudy-jobs")).len(), 2);
        let product =
            json!({"name": "understudy", "dependencies": [{"name": "understudy-bench", "kind": null}]});
        assert_eq!(package_problems(&product).len(), 1);
        let parser = json!({"name": "understudy-rigs", "dependencies": [{"name": "clap", "kind": null}]});
        assert_eq!(package_problems(&parser).len(), 1);
    }
}
