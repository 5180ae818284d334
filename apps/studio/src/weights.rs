//! The Weights tab's solved weights: handles painted one by one and dragged, each answer with the time that it took. They are
//! solved by a job (`orders.rs`), which writes what is opened here.

use crate::error::Refusal;
use crate::library::{Notes, lock};
use crate::packet::Packet;
use crate::server::Server;
use crate::tabs::{TabState, parse};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Instant;
use understudy_core::Vec3;
use understudy_jobs::weights::session::{Dragging, WeightsSession};

/// The first number of a message of the tab.
pub(crate) const WEIGHTS: u32 = 3;
/// What a message asks for: the map of a handle, or the mesh as handles drag it.
const MAP: u32 = 0;
const DRAG: u32 = 1;

/// Commands of the tab.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Command {
    /// Holds the arrays of a job ready.
    WeightsOpen { rig: String, file: String },
    /// Which handles go where the others leave them; the drag begins anew.
    WeightsFree { free: Vec<usize> },
}

/// What a client has open of the tab.
#[derive(Default)]
pub(crate) struct WeightsTab(Mutex<Option<Open>>);

struct Open {
    session: WeightsSession,
    dragging: Dragging,
    vertices: Vec<Vec3>,
}

impl TabState for WeightsTab {
    fn command(&self, server: &Server, command: Value) -> Result<Value, Refusal> {
        match parse(command)? {
            Command::WeightsOpen { rig, file } => {
                let path = server.project.resolve(&file)?;
                let notes = Notes::default();
                let session = WeightsSession::open(&server.project.rig(&rig)?, &path, &notes)?;
                let dragging = session.drag(&[])?;
                let facts = json!({
                    "names": session.names(),
                    "places": session.places().iter().map(|p| p.to_array()).collect::<Vec<_>>(),
                    "vertices": session.mesh().vertex_count(),
                    "notes": notes.taken(),
                });
                *lock(&self.0) = Some(Open { session, dragging, vertices: Vec::new() });
                Ok(facts)
            }
            Command::WeightsFree { free } => {
                let mut open = lock(&self.0);
                let open = open.as_mut().ok_or_else(|| Refusal::bad("no weights are open"))?;
                open.dragging = open.session.drag(&free)?;
                Ok(json!({ "free": free.len() }))
            }
        }
    }

    /// `[kind, number, MAP, handle]` gives `[kind, number, MAP, vertices]`, ms and a weight per vertex;
    /// `[kind, number, DRAG, x y z of every handle]` gives `[kind, number, DRAG, vertices]`, ms and the vertices.
    fn binary(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let mut open = lock(&self.0);
        let Open { session, dragging, vertices } = open.as_mut().ok_or("no weights are open")?;
        let word = |index: usize| message.get(index * 4..index * 4 + 4).map(|b| [b[0], b[1], b[2], b[3]]);
        let number = |index: usize| word(index).map(u32::from_le_bytes);
        let (Some(own), Some(what)) = (number(1), number(2)) else {
            return Err("a message about weights is too short".into());
        };
        let mut packet = Packet::default();
        packet.numbers(&[WEIGHTS, own, what, session.mesh().vertex_count() as u32]);
        let start = Instant::now();
        match what {
            MAP => {
                let handle = number(3).unwrap_or(u32::MAX) as usize;
                let map = session.map(handle).ok_or_else(|| format!("there is no handle {handle}"))?;
                packet.floats([0.0]);
                packet.floats(map);
            }
            DRAG => {
                let numbers: Vec<f32> =
                    (3..message.len() / 4).filter_map(word).map(f32::from_le_bytes).collect();
                let places: Vec<Vec3> =
                    numbers.chunks_exact(3).map(|p| Vec3::new(p[0], p[1], p[2])).collect();
                if numbers.len() != 3 * session.names().len() {
                    return Err(format!("{} numbers for {} handles", numbers.len(), session.names().len()));
                }
                dragging.update(&places, vertices).map_err(|error| error.to_string())?;
                packet.floats([(start.elapsed().as_secs_f64() * 1e3) as f32]);
                packet.points(vertices);
            }
            other => return Err(format!("a message about weights of kind {other}, which is not known")),
        }
        Ok(packet.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_make_no_sense_are_answered_with_a_reason() {
        let tab = WeightsTab::default();
        assert!(tab.binary(&[0; 16]).is_err_and(|problem| problem.contains("no weights are open")));
    }
}
