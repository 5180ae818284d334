//! Ctrl-C: the first lets a job come to a good end and then says what was kept and how to go on, the second ends
//! the program at once and says the same.

use crate::output::thousands;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Whether the user wants to stop.
static STOP: AtomicBool = AtomicBool::new(false);

/// Where the running command stands.
static STANDING: Mutex<Standing> = Mutex::new(Standing { progress: None, kept: None });

struct Standing {
    /// Steps done, of how many, of what.
    progress: Option<(u64, u64, String)>,
    /// What an interrupted run leaves behind, for the next one.
    kept: Option<String>,
}

fn standing() -> std::sync::MutexGuard<'static, Standing> {
    // Every assignment leaves it valid, so a panic elsewhere does not spoil it.
    STANDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the job should stop at the next good place.
pub fn requested() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// A piece of work of the running command.
pub fn set_progress(done: u64, total: u64, unit: &str) {
    standing().progress = Some((done, total, unit.to_owned()));
}

/// What is on disk if the command is interrupted, such as `finished chunks are kept in data/rook`.
pub fn set_kept(kept: String) {
    standing().kept = Some(kept);
}

/// What was kept, and the command that goes on.
pub fn farewell() -> String {
    let standing = standing();
    let after = match &standing.progress {
        None => String::new(),
        Some((done, total, unit)) => format!(" after {} of {} {unit}", thousands(*done), thousands(*total)),
    };
    match &standing.kept {
        Some(kept) => format!("stopped{after}; {kept}; go on with: {}", typed()),
        None => format!("stopped{after}; nothing was written; start again with: {}", typed()),
    }
}

/// The command as it was typed, with the program's own name.
pub fn typed() -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=,:+@%".contains(c);
    let quote = |word: String| match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let words: Vec<String> = std::env::args().skip(1).map(quote).collect();
    format!("understudy {}", words.join(" "))
}

/// Listens for Ctrl-C from now on. Where that is not possible, Ctrl-C ends the program as it always did.
pub fn listen() {
    #[cfg(unix)]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        if ONCE.is_completed() {
            return;
        }
        ONCE.call_once(|| ());
        use signal_hook::consts::{SIGINT, SIGTERM};
        let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else { return };
        std::thread::spawn(move || {
            for _ in signals.forever() {
                if STOP.swap(true, Ordering::Relaxed) {
                    crate::complain(&farewell());
                    std::process::exit(crate::FAILED.into());
                }
                crate::complain("stopping at the next good place; Ctrl-C again stops at once");
            }
        });
    }
}
