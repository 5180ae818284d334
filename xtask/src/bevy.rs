//! The Bevy example: a workspace of its own, built and run for 300 frames on the twins that the run time keeps for its tests.

use crate::shell::{cargo, root, target_folder};
use anyhow::{Context, Result};

/// Fails where a vertex is not where the twin puts it, or where our part of a frame allocates.
pub fn test() -> Result<()> {
    let folder = std::path::absolute(target_folder().join("bevy"))?;
    let folder = folder.to_str().context("the target folder has no name in UTF-8")?;
    for twin in ["face-v3", "body-v3"] {
        let twin = root().join(format!("crates/runtime/tests/golden/{twin}.twin"));
        let twin = twin.to_str().context("the repository's folder has no name in UTF-8")?;
        let manifest = "apps/bevy/Cargo.toml";
        cargo(&[
            "run",
            "--release",
            "--locked",
            "--manifest-path",
            manifest,
            "--target-dir",
            folder,
            "--",
            twin,
        ])?;
    }
    Ok(())
}
