//! What is dragged on the Pose tab: hands, feet and torso, and the points of a face where the rig itself is looked at. Every wish
//! is solved from the pose where the drag began, which the page sends along: nothing is remembered but the rig, and how its points
//! move ([`RigDrag`]).

use crate::error::Refusal;
use crate::library::{Loaded, lock};
use crate::points::{RigDrag, Wish};
use crate::server::Server;
use crate::tabs::{TabState, parse};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use understudy_core::Vec3;
use understudy_jobs::pose::HandleSession;

#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
// Commands of a tab begin with its name.
#[expect(clippy::enum_variant_names)]
enum Command {
    /// Which handles a rig has.
    PoseHandles { rig: String },
    /// Moves handles to places (cm) from a pose, while others stay.
    PoseReach {
        controls: Vec<f32>,
        reach: BTreeMap<String, [f32; 3]>,
        #[serde(default)]
        lock: Vec<String>,
    },
    /// Takes what a twin says of dragged points on to where the rig's own are.
    PosePoints(Wish),
}

/// The handles of the rig that a client looks at.
#[derive(Default)]
pub(crate) struct HandlesTab {
    open: Mutex<Option<Open>>,
    /// The newest drag of points.
    drag: Mutex<Option<RigDrag>>,
}

/// A rig, and its handles where it has limbs.
#[derive(Clone)]
struct Open {
    loaded: Arc<Loaded>,
    session: Option<Arc<HandleSession>>,
}

impl TabState for HandlesTab {
    fn command(&self, server: &Server, command: Value) -> Result<Value, Refusal> {
        match parse(command)? {
            Command::PoseHandles { rig } => {
                let loaded = server.library.open(&rig, &server.project.rig(&rig)?)?;
                let session = HandleSession::open(Arc::clone(&loaded.rig)).map(Arc::new);
                let names = session.as_ref().map(|session| session.names()).unwrap_or_default();
                *lock(&self.drag) = None;
                *lock(&self.open) = Some(Open { loaded, session });
                Ok(json!({ "handles": names }))
            }
            Command::PoseReach { controls, reach, lock: locked } => {
                let session = lock(&self.open).clone().and_then(|open| open.session);
                let session = session.ok_or_else(|| Refusal::bad("no rig with handles is open"))?;
                let reach: Vec<(String, Vec3)> =
                    reach.into_iter().map(|(name, at)| (name, Vec3::from_array(at))).collect();
                let (controls, reached) = session.reach(&controls, &reach, &locked, 0.0)?;
                Ok(json!({ "controls": controls, "reached": reached }))
            }
            Command::PosePoints(wish) => {
                let open = lock(&self.open).clone().ok_or_else(|| Refusal::bad("no rig is open"))?;
                let rig = open.loaded.rig.as_ref();
                // One drag at a time: a page asks again when it was answered.
                let mut drag = lock(&self.drag);
                let mut known = match drag.take().filter(|drag| drag.is_of(&wish)) {
                    Some(drag) => drag,
                    None => RigDrag::begin(rig, &wish)?,
                };
                let (controls, off_mm) = known.solve(rig, &wish)?;
                *drag = Some(known);
                Ok(json!({ "controls": controls, "off_mm": off_mm }))
            }
        }
    }
}
