//! Long work speaks in events. A command line, a server, a script and a test are equal listeners; any of
//! them can ask a job to stop.

use std::sync::Mutex;

/// What a job says while it works.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event<'a> {
    /// A piece of work begins.
    Started {
        /// Such as `sampling rook`.
        what: &'a str,
        /// How many steps it will take.
        total: u64,
        /// What a step is, such as `poses`.
        unit: &'a str,
    },
    /// So many steps of the piece are done.
    Step {
        /// From the start of the piece.
        done: u64,
    },
    /// How the piece stands, for a line that the next one replaces: an error that falls.
    Status {
        /// One short line.
        message: &'a str,
    },
    /// A number that is worth a curve: a loss, an error on poses that were held back.
    Figure {
        /// What it is, with its unit: `held-back error, mm`.
        name: &'a str,
        /// Now.
        value: f64,
    },
    /// How long the whole command will still take, where the job knows better than its pace tells.
    TimeLeft {
        /// From now.
        seconds: f64,
    },
    /// Something worth knowing: a unit that was converted, a part that was skipped.
    Note {
        /// One line.
        message: &'a str,
    },
    /// Something that may not be what the user wanted.
    Warning {
        /// One line.
        message: &'a str,
    },
    /// The piece is done.
    Finished,
}

/// A listener. Events of one piece of work come in order, from one thread at a time.
pub trait Watch: Sync {
    /// Something happened.
    fn event(&self, event: Event<'_>);

    /// Whether the job should stop at the next good place; what is on disk by then stays usable.
    fn should_stop(&self) -> bool {
        false
    }
}

/// Listens to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Watch for Silent {
    fn event(&self, _event: Event<'_>) {}
}

/// Remembers notes and warnings and passes everything on: results carry them to `--json`.
pub(crate) struct Remember<'a> {
    listener: &'a dyn Watch,
    messages: Mutex<Vec<String>>,
}

impl<'a> Remember<'a> {
    pub(crate) fn new(listener: &'a dyn Watch) -> Self {
        Self { listener, messages: Mutex::new(Vec::new()) }
    }

    /// What was said, in order.
    pub(crate) fn messages(self) -> Vec<String> {
        self.messages.into_inner().expect("no listener panicked")
    }
}

impl Watch for Remember<'_> {
    fn event(&self, event: Event<'_>) {
        if let Event::Note { message } | Event::Warning { message } = event {
            self.messages.lock().expect("no listener panicked").push(message.to_owned());
        }
        self.listener.event(event);
    }

    fn should_stop(&self) -> bool {
        self.listener.should_stop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_warnings_are_remembered_in_order() {
        let remember = Remember::new(&Silent);
        remember.event(Event::Note { message: "metres became centimetres" });
        remember.event(Event::Step { done: 1 });
        remember.event(Event::Warning { message: "no texture coordinates" });
        assert_eq!(remember.messages(), ["metres became centimetres", "no texture coordinates"]);
    }
}
