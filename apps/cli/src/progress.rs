//! Shows what jobs say: a bar with rate and time left on a terminal, notes and warnings as lines. All of
//! it goes to standard error, so that standard output stays clean.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::Duration;
use understudy_jobs::{Event, Watch};

/// One bar at a time.
pub struct Progress {
    bar: Mutex<Option<ProgressBar>>,
    terminal: bool,
}

impl Progress {
    /// Draws a bar only where standard error is a terminal.
    pub fn new() -> Self {
        Self { bar: Mutex::new(None), terminal: std::io::stderr().is_terminal() }
    }

    fn line(&self, bar: Option<&ProgressBar>, text: &str) {
        match bar {
            Some(bar) => bar.suspend(|| write_line(text)),
            None => write_line(text),
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
                if let Some(bar) = &*bar {
                    bar.set_position(done);
                }
            }
            Event::Status { message } => {
                if let Some(bar) = &*bar {
                    bar.set_message(message.to_owned());
                }
            }
            Event::Status { message } => {
                if let Some(bar) = &*bar {
                    bar.set_prefix(format!("{message} "));
                }
            }
            Event::Note { message } => self.line(bar.as_ref(), &format!("note: {message}")),
            Event::Warning { message } => self.line(bar.as_ref(), &format!("warning: {message}")),
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
    }
}
