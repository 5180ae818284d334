//! The command `farm`: Ray is a Python program, so the farm is a part of the Python package, which does all the work.

use anyhow::Result;
use std::process::{Command, Stdio};
use understudy_jobs::JobError;

const HINT: &str = "the farm is a part of the Python package: pip install \"understudy[ray]\"";

/// Hands everything on; the exit code comes back.
pub fn run_farm(words: &[String]) -> Result<()> {
    let python = std::env::var("UNDERSTUDY_PYTHON").unwrap_or_else(|_| "python3".into());
    let probe = Command::new(&python).args(["-c", "import understudy.farm"]).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        return Err(JobError::unusable(&python, HINT).into());
    }
    let status = Command::new(&python).args(["-m", "understudy.farm"]).args(words).status()?;
    match status.code() {
        Some(0) => Ok(()),
        // What is wrong was said already, by the package.
        code => std::process::exit(code.unwrap_or(1)),
    }
}
