//! Performance capture on actors whose weights are known: the solver of inverse rendering, what each of its terms is worth,
//! optical flow against the exact motion, and heads that turn.

mod nets;
mod optimiser;
mod style;

use crate::console::print;
use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;

/// What to measure.
#[derive(Debug, Args)]
pub struct CaptureArguments {
    /// optimiser, terms, flow, head, window [default: all], nets where --nets are given, and style where it is named.
    pub sections: Vec<String>,
    /// Length of each clip, s.
    #[arg(long, value_name = "S", default_value_t = 4.0)]
    pub seconds: f64,
    /// What is played.
    #[arg(long, value_name = "N", default_value_t = 101)]
    pub seed: u64,
    /// Points on the face.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub samples: usize,
    /// Spread of landmarks, pixels at 512 rows.
    #[arg(long, value_name = "PX", default_value_t = 1.0)]
    pub marks: f64,
    /// Landmark nets of `understudy learn landmarks`.
    #[arg(long, value_name = "FILE.landmarks")]
    pub nets: Option<PathBuf>,
    /// Steps of the small model of style transfer.
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub steps: usize,
}

/// Runs the sections, each of which prints its figures.
pub fn run(arguments: &CaptureArguments) -> Result<()> {
    const ALL: [&str; 7] = ["optimiser", "terms", "flow", "head", "window", "nets", "style"];
    let chosen: Vec<&str> = match arguments.sections.is_empty() {
        true => {
            let is_run = |name: &&str| match *name {
                "nets" => arguments.nets.is_some(),
                name => name != "style",
            };
            ALL.into_iter().filter(is_run).collect()
        }
        false => arguments.sections.iter().map(String::as_str).collect(),
    };
    if let Some(other) = chosen.iter().find(|name| !ALL.contains(name)) {
        bail!("there is no section '{other}'; there are: {}", ALL.join(", "));
    }
    let cast = understudy_jobs::capture::cast()?;
    for section in chosen {
        print(&format!("\n{section}"));
        match section {
            "optimiser" => optimiser::clips(&cast, arguments)?,
            "terms" => optimiser::terms(&cast, arguments)?,
            "flow" => optimiser::flows(&cast, arguments)?,
            "head" => optimiser::heads(&cast, arguments)?,
            "nets" => nets::run(&cast, arguments.nets.as_deref())?,
            "style" => style::run(&cast, arguments.steps)?,
            _ => optimiser::window(&cast, arguments)?,
        }
    }
    Ok(())
}
