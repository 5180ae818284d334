//! Shows what jobs say: a bar with pace and time left on a terminal, notes and warnings as lines. All of it goes
//! to standard error, so that standard output stays clean. Numbers are made in `pace`, Ctrl-C in `interrupt`.

use crate::interrupt;
use crate::pace::{Pace, duration_text};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use understudy_jobs::{Event, Watch};

/// One bar at a time. Notes wait until the work has made its first step: when it fails before that, the
/// error is all there is to read.
pub struct Progress {
    shown: Mutex<Option<Shown>>,
    held: Mutex<Vec<String>>,
    terminal: bool,
}

/// A piece of work.
struct Shown {
    begin: Instant,
    pace: Arc<Mutex<Pace>>,
    total: u64,
    unit: String,
    /// None where standard error is no terminal.
    bar: Option<ProgressBar>,
    has_status: bool,
}

/// Runs a job with a bar; notes of a job that fails at once are not shown.
pub fn watched<T, E>(job: impl FnOnce(&Progress) -> Result<T, E>) -> Result<T, E> {
    interrupt::listen();
    let progress = Progress::new();
    let result = job(&progress);
    if result.is_err() {
        progress.lock_held().clear();
    }
    result
}

/// [`watched`] for a job that goes on where it was interrupted: `what` is kept in `place`.
pub fn watched_keeping<T, E>(
    what: &str,
    place: &Path,
    job: impl FnOnce(&Progress) -> Result<T, E>,
) -> Result<T, E> {
    interrupt::set_kept(format!("{what} kept in {}", place.display()));
    watched(job)
}

impl Progress {
    /// Draws a bar only where standard error is a terminal.
    fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { shown: Mutex::new(None), held: Mutex::new(Vec::new()), terminal }
    }

    fn lock_held(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show_held(&self, bar: Option<&ProgressBar>) {
        let lines = std::mem::take(&mut *self.lock_held());
        let write = || lines.iter().for_each(|line| write_line(line));
        match bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

/// A closed standard error is no reason to fail.
fn write_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Characters of a title that leave room for bar and numbers in 80 columns.
const TITLE: usize = 28;

/// A title of at most [`TITLE`] characters; of a long one the end says most.
fn short(title: &str) -> String {
    let count = title.chars().count();
    if count <= TITLE {
        return title.to_owned();
    }
    let (first, rest) =
        title.split_once(' ').filter(|(first, _)| first.len() < TITLE / 2).unwrap_or(("", title));
    let room = TITLE - 2 - first.chars().count();
    let end: String = rest.chars().skip(rest.chars().count() - room).collect();
    format!("{first} …{end}").trim_start().to_owned()
}

impl Shown {
    fn start(what: &str, total: u64, unit: &str, terminal: bool) -> Self {
        let (begin, pace) = (Instant::now(), Arc::new(Mutex::new(Pace::new(total))));
        let mut shown = Self { begin, pace, total, unit: unit.to_owned(), bar: None, has_status: false };
        if terminal {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr())
                .with_style(shown.style())
                .with_prefix(short(what));
            bar.enable_steady_tick(Duration::from_millis(200));
            shown.bar = Some(bar);
        }
        shown
    }

    /// A bar and its numbers, a status below where there is one; work of a single step has no bar that could move.
    fn style(&self) -> ProgressStyle {
        let mut template = match self.total {
            0 | 1 => "{spinner} {prefix} · {elapsed_text}".to_owned(),
            _ => "{prefix} {wide_bar} {numbers}".to_owned(),
        };
        if self.has_status {
            template += "\n  {wide_msg}";
        }
        let (begin, pace, unit) = (self.begin, Arc::clone(&self.pace), self.unit.clone());
        let numbers = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            let pace = pace.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = write!(out, "{}", pace.text(begin.elapsed().as_secs_f64(), &unit));
        };
        let elapsed = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = write!(out, "{}", duration_text(begin.elapsed().as_secs_f64()));
        };
        ProgressStyle::with_template(&template)
            .expect("the template is well-formed")
            .with_key("numbers", numbers)
            .with_key("elapsed_text", elapsed)
    }

    fn lock_pace(&self) -> std::sync::MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn step(&self, done: u64) {
        self.lock_pace().step(self.now(), done);
        interrupt::set_progress(done, self.total, &self.unit);
        self.bar.iter().for_each(|bar| bar.set_position(done));
    }

    fn status(&mut self, message: &str) {
        if !self.has_status {
            self.has_status = true;
            let style = self.style();
            self.bar.iter().for_each(|bar| bar.set_style(style.clone()));
        }
        self.bar.iter().for_each(|bar| bar.set_message(message.to_owned()));
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

impl Watch for Progress {
    fn event(&self, event: Event<'_>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Started { what, total, unit } => {
                *shown = None;
                *shown = Some(Shown::start(what, total, unit, self.terminal));
                interrupt::set_progress(0, total, unit);
            }
            Event::Step { done } => {
                self.show_held(shown.as_ref().and_then(|shown| shown.bar.as_ref()));
                shown.iter().for_each(|shown| shown.step(done));
            }
            Event::TimeLeft { seconds } => {
                shown.iter().for_each(|shown| shown.lock_pace().announce(shown.now(), seconds));
            }
            Event::Status { message } => shown.iter_mut().for_each(|shown| shown.status(message)),
            Event::Note { message } => self.lock_held().push(format!("note: {message}")),
            Event::Warning { message } => self.lock_held().push(format!("warning: {message}")),
            // A line of text has no room for a curve; the status says the same.
            Event::Figure { .. } => {}
            Event::Finished => *shown = None,
        }
    }

    fn should_stop(&self) -> bool {
        interrupt::requested()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        *self.shown.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        self.show_held(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_leave_room_for_numbers() {
        assert_eq!(short("training coarse networks"), "training coarse networks");
        let long = short("reading /somewhere/very/deep/in/a/tree/of/folders/data/mira");
        assert_eq!(long.chars().count(), TITLE);
        assert!(long.starts_with("reading …") && long.ends_with("data/mira"), "{long}");
    }
}
