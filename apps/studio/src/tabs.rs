//! What tabs of the page have on the server. A tab that needs something there is a module with a [`TabState`] and one line in
//! [`TABS`]; commands of its socket begin with its name.

use crate::error::Refusal;
use crate::handles::HandlesTab;
use crate::invert::{self, InvertTab};
use crate::motion::{self, MotionTab};
use crate::server::Server;
use crate::weights::{self, WeightsTab};
use serde_json::Value;

/// What one client has open of a tab. Calls come from several threads, one command each.
pub(crate) trait TabState: Send + Sync {
    /// Answers a command: the JSON that the page sent, without its number.
    fn command(&self, server: &Server, command: Value) -> Result<Value, Refusal>;

    /// Answers a binary message of the tab's kind; its first number is that kind.
    fn binary(&self, _message: &[u8]) -> Result<Vec<u8>, String> {
        Err("this tab takes no binary messages".into())
    }

    /// The client went away: what is being worked on for it stops.
    fn close(&self) {}
}

/// A tab with something on the server.
pub(crate) struct TabKind {
    /// Its commands are called `id_something`.
    pub id: &'static str,
    /// The first number of its binary messages, both ways; 1 are poses of the stage.
    pub binary: Option<u32>,
    /// Nothing open yet.
    pub make: fn() -> Box<dyn TabState>,
}

/// All of them.
pub(crate) const TABS: &[TabKind] = &[
    TabKind { id: "pose", binary: None, make: || Box::<HandlesTab>::default() },
    TabKind { id: "invert", binary: Some(invert::FRAME), make: || Box::<InvertTab>::default() },
    TabKind { id: "weights", binary: Some(weights::WEIGHTS), make: || Box::<WeightsTab>::default() },
    TabKind { id: "motion", binary: Some(motion::FRAME), make: || Box::<MotionTab>::default() },
];

/// A command as the type that a tab has for its own.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(command: Value) -> Result<T, Refusal> {
    serde_json::from_value(command)
        .map_err(|error| Refusal::bad(format!("the command is not known: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::POSE;

    #[test]
    fn tabs_do_not_share_names_or_kinds_of_messages() {
        for (place, tab) in TABS.iter().enumerate() {
            assert!(tab.binary != Some(POSE), "{}", tab.id);
            assert!(!tab.id.is_empty() && !tab.id.contains('_'), "{}", tab.id);
            for other in &TABS[..place] {
                assert!(
                    other.id != tab.id && (tab.binary.is_none() || other.binary != tab.binary),
                    "{}",
                    tab.id
                );
            }
        }
    }
}
