//! Shows what jobs say: a bar with rate and time left on a terminal, notes and warnings as lines. All of
//! it goes to standard error, so that standard output stays clean.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::Duration;
use understudy_jobs::{Event, Watch};

/// One bar at a time. Notes wait until the work has made its first step: when it fails before that, the
/// error is all there is to read.
pub struct Progress {
    bar: Mutex<Option<ProgressBar>>,
    held: Mutex<Vec<String>>,
    terminal: bool,
}

/// Runs a job with a bar; notes of a job that fails at once are not shown.
pub fn watched<T, E>(job: impl FnOnce(&Progress) -> Result<T, E>) -> Result<T, E> {
    let progress = Progress::new();
    let result = job(&progress);
    if result.is_err() {
        progress.lock_held().clear();
    }
    result
}

impl Progress {
    /// Draws a bar only where standard error is a terminal.
    pub fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { bar: Mutex::new(None), held: Mutex::new(Vec::new()), terminal }
    }

    fn lock_held(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.held.lock().expect("writing lines does not panic")
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

impl Watch for Progress {
    fn event(&self, event: Event<'_>) {
        let mut bar = self.bar.lock().expect("drawing a bar does not panic");
        match event {
            Event::Started { what, total, unit } if self.terminal => {
                let template = format!(
                    "{{msg}} {{prefix}}{{wide_bar}} {{pos}}/{{len}} {unit} · {{per_sec}} · {{eta}} left"
                );
                let style = ProgressStyle::with_template(&template).expect("the template is well-formed");
                let new = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr())
                    .with_style(style)
                    .with_message(what.to_owned());
                new.enable_steady_tick(Duration::from_millis(200));
                if let Some(old) = bar.replace(new) {
                    old.finish_and_clear();
                }
            }
            Event::Started { .. } => {}
            Event::Step { done } => {
                self.show_held(bar.as_ref());
                if let Some(bar) = &*bar {
                    bar.set_position(done);
                }
            }
            Event::Status { message } => {
                if let Some(bar) = &*bar {
                    bar.set_prefix(format!("{message} "));
                }
            }
            Event::Note { message } => self.lock_held().push(format!("note: {message}")),
            Event::Warning { message } => self.lock_held().push(format!("warning: {message}")),
            Event::Finished => {
                if let Some(bar) = bar.take() {
                    bar.finish_and_clear();
                }
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Ok(bar) = self.bar.get_mut()
            && let Some(bar) = bar.take()
        {
            bar.finish_and_clear();
        }
        self.show_held(None);
    }
}
