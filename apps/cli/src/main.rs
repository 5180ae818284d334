//! The command line `understudy`: arguments in, a job run, text or JSON out. Start at `main`; what can be
//! typed is in `arguments`, what is printed in `commands`, the work itself in `understudy_jobs`.

mod arguments;
mod blender_arguments;
mod blender_text;
mod capture_arguments;
mod capture_commands;
mod commands;
mod decompose_arguments;
mod decompose_commands;
mod farm_command;
mod game_arguments;
mod game_commands;
mod import_arguments;
mod import_commands;
mod info_text;
mod interrupt;
mod invert_arguments;
mod invert_commands;
mod learn_arguments;
mod motion_arguments;
mod motion_commands;
mod output;
mod pace;
mod pose_arguments;
mod pose_commands;
mod progress;
mod retarget_commands;
mod studio_command;
mod twin_arguments;
mod twin_commands;
mod weights_arguments;
mod weights_commands;

use arguments::Arguments;
use clap::Parser as _;
use std::io::Write as _;
use std::process::ExitCode;
use understudy_jobs::JobError;

/// Bad input or usage.
const BAD_INPUT: u8 = 2;
/// Anything else.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    match commands::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let job = error.downcast_ref::<JobError>();
            if matches!(job, Some(JobError::Stopped)) {
                complain(&interrupt::farewell());
                return ExitCode::from(FAILED);
            }
            // A message holds its cause already: printing the chain would say everything twice.
            complain(&format!("error: {error}"));
            ExitCode::from(if job.is_some_and(JobError::is_bad_input) { BAD_INPUT } else { FAILED })
        }
    }
}

/// Help goes out whole; a mistake becomes one line like every other error.
fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    let whole =
        matches!(error.kind(), DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand);
    if whole {
        let _ = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(BAD_INPUT));
    }
    let text = error.render().to_string();
    // The first paragraph says what is wrong, a tip what may have been meant; usage and help are a page of their own.
    let first = text.lines().take_while(|line| !line.trim().is_empty());
    let tip =
        text.lines().skip_while(|line| !line.trim().is_empty()).find(|line| line.trim().starts_with("tip:"));
    let line: Vec<&str> = first.chain(tip).map(str::trim).collect();
    complain(&line.join(" "));
    ExitCode::from(BAD_INPUT)
}

/// One line on standard error, whatever the message holds.
fn complain(message: &str) {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = writeln!(std::io::stderr(), "{line}");
}
