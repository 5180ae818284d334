//! Handles of the Pose tab: hands, feet and torso that are dragged. Every wish is solved from the pose where the drag began,
//! which the page sends along: nothing is remembered but the rig.

use crate::error::Refusal;
use crate::library::lock;
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
}

/// The handles of the rig that a client looks at.
#[derive(Default)]
pub(crate) struct HandlesTab(Mutex<Option<Arc<HandleSession>>>);

impl TabState for HandlesTab {
    fn command(&self, server: &Server, command: Value) -> Result<Value, Refusal> {
        match parse(command)? {
            Command::PoseHandles { rig } => {
                let loaded = server.library.open(&rig, &server.project.rig(&rig)?)?;
                let session = HandleSession::open(Arc::clone(&loaded.rig)).map(Arc::new);
                let names = session.as_ref().map(|session| session.names()).unwrap_or_default();
                *lock(&self.0) = session;
                Ok(json!({ "handles": names }))
            }
            Command::PoseReach { controls, reach, lock: locked } => {
                let session = lock(&self.0).clone();
                let session = session.ok_or_else(|| Refusal::bad("no rig with handles is open"))?;
                let reach: Vec<(String, Vec3)> =
                    reach.into_iter().map(|(name, at)| (name, Vec3::from_array(at))).collect();
                let (controls, reached) = session.reach(&controls, &reach, &locked, 0.0)?;
                Ok(json!({ "controls": controls, "reached": reached }))
            }
        }
    }
}
