//! Twins that an earlier run learned from the same data with the same settings are used again: a benchmark that was interrupted
//! goes on, and a second run only weighs.

use crate::console::Console;
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;
use understudy_io::write_atomic;
use understudy_jobs::JobError;
use understudy_jobs::twin::Learning;
use understudy_jobs::twin::learn::{LearnConfig, learn};

/// Whether the twin is there and was made as `settings` say.
pub fn is_kept(twin: &Path, settings: &Value) -> bool {
    let known = std::fs::read(twin.with_extension("json")).ok();
    let known = known.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    twin.exists() && known.is_some_and(|known| known["settings"] == *settings)
}

/// Says beside the twin how it was made, and how long that took.
pub fn keep(twin: &Path, settings: &Value, minutes: f64) -> Result<()> {
    let known = json!({"settings": settings, "minutes": minutes});
    write_atomic(&twin.with_extension("json"), &serde_json::to_vec_pretty(&known)?)?;
    Ok(())
}

/// Minutes that learning took.
pub fn minutes(twin: &Path) -> Option<f64> {
    let text = std::fs::read(twin.with_extension("json")).ok()?;
    serde_json::from_slice::<Value>(&text).ok()?["minutes"].as_f64()
}

/// Learns a twin, unless it is kept.
pub fn learned(twin: &Path, data: &Path, learning: Learning) -> Result<(), JobError> {
    let settings = json!({"data": data, "learning": learning});
    if is_kept(twin, &settings) {
        return Ok(());
    }
    let report = learn(&LearnConfig::new(data, twin, learning), &Console)?;
    keep(twin, &settings, report.seconds / 60.0).map_err(|error| JobError::Machine(error.to_string()))
}
