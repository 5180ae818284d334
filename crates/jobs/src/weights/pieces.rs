//! Progress of a solve as a listener wants it: in order, from one thread at a time, and a new piece of work where what is
//! counted changes, so that no bar passes its end.

use crate::{Event, Watch};
use std::sync::Mutex;
use understudy_solve::skin_weights::WeightsProgress;

/// Turns progress into events.
pub(super) struct Pieces<'a> {
    watch: &'a dyn Watch,
    /// The piece that is under way, and how much of it is done.
    now: Mutex<Option<(&'static str, usize)>>,
}

impl<'a> Pieces<'a> {
    pub fn new(watch: &'a dyn Watch) -> Self {
        Self { watch, now: Mutex::new(None) }
    }

    /// Whether to go on.
    pub fn hear(&self, progress: WeightsProgress) -> bool {
        let mut now = self.now.lock().expect("no listener panicked");
        let WeightsProgress { what, unit, done, total } = progress;
        let before = match *now {
            Some((piece, before)) if piece == what => before,
            other => {
                if other.is_some() {
                    self.watch.event(Event::Finished);
                }
                self.watch.event(Event::Started { what, total: total as u64, unit });
                0
            }
        };
        // Threads overtake each other between counting and speaking.
        let done = done.max(before).min(total);
        *now = Some((what, done));
        self.watch.event(Event::Step { done: done as u64 });
        !self.watch.should_stop()
    }

    /// Ends the last piece.
    pub fn finish(&self) {
        if self.now.lock().expect("no listener panicked").take().is_some() {
            self.watch.event(Event::Finished);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Said(Mutex<Vec<String>>);

    impl Watch for Said {
        fn event(&self, event: Event<'_>) {
            self.0.lock().expect("no panic").push(match event {
                Event::Started { what, total, .. } => format!("{what} of {total}"),
                Event::Step { done } => done.to_string(),
                _ => "end".into(),
            });
        }
    }

    #[test]
    fn pieces_begin_and_end_and_never_go_back() {
        let said = Said::default();
        let pieces = Pieces::new(&said);
        for (what, done, total) in [("a", 2, 3), ("a", 1, 3), ("a", 3, 3), ("b", 1, 9)] {
            assert!(pieces.hear(WeightsProgress { what, unit: "steps", done, total }));
        }
        pieces.finish();
        pieces.finish();
        let said = said.0.into_inner().expect("no panic");
        assert_eq!(said, ["a of 3", "2", "2", "3", "end", "b of 9", "1", "end"]);
    }
}
