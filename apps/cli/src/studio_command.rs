//! `understudy studio`: its arguments, the address on standard output, the browser.

use crate::interrupt;
use crate::output;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use understudy_jobs::JobError;
use understudy_studio::{Studio, StudioError, StudioOptions};

/// Of `studio`.
#[derive(Debug, Args)]
pub struct StudioArguments {
    /// Port on 127.0.0.1 [default: 8787, or a free one where that is taken].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    port: Option<u16>,
    /// Print the address and open no browser.
    #[arg(long)]
    no_browser: bool,
    /// The project: nothing outside this folder is read or written; twins are kept in its folder `studio`.
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,
    /// A rig to offer beside the characters and the project's files, such as a program that speaks the rig protocol
    /// (cmd:PROGRAM ARGS); can be given again.
    #[arg(long = "rig", value_name = "RIG")]
    rigs: Vec<String>,
    /// Serve the page from this folder instead of the program: for people who work on the page.
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    page: Option<PathBuf>,
}

/// Serves until Ctrl-C.
pub fn run_studio(json: bool, arguments: StudioArguments) -> Result<()> {
    let options = StudioOptions {
        port: arguments.port,
        project: arguments.project,
        rigs: arguments.rigs,
        page: arguments.page,
        ..StudioOptions::default()
    };
    let studio = Studio::open(&options).map_err(as_input)?;
    let address = studio.address();
    // Who waits for the address may press Ctrl-C as soon as it is there.
    interrupt::listen();
    output::print(json, &serde_json::json!({ "address": address }), |_| address.clone())?;
    if options.page.is_none() && !understudy_studio::page_is_built() {
        crate::complain(
            "note: this program was built without the page; `cargo xtask web` builds it (needs Node.js)",
        );
    }
    if !arguments.no_browser && !open_browser(&address) {
        crate::complain("note: no browser could be opened; open the address in yours");
    }
    studio.run(interrupt::requested).map_err(as_input)
}

/// What the user typed wrong ends with the code of bad input.
fn as_input(error: StudioError) -> anyhow::Error {
    match error {
        StudioError::Machine(_) => error.into(),
        StudioError::Port { .. } => {
            JobError::setting("--port", error.to_string().trim_start_matches("--port: ")).into()
        }
        StudioError::Project { path, error } => JobError::unusable(path, error).into(),
    }
}

/// Asks the desktop to open the address; whether something was started that may do it.
fn open_browser(address: &str) -> bool {
    let openers: &[&[&str]] = match std::env::consts::OS {
        "macos" => &[&["open"]],
        "windows" => &[&["rundll32", "url.dll,FileProtocolHandler"]],
        _ => &[&["xdg-open"], &["sensible-browser"]],
    };
    openers.iter().any(|words| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(address);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
    })
}
