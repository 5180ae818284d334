//! The Invert tab's take: targets held ready by one tab, solved again whenever α moves. A newer wish stops an older one.

use crate::error::Refusal;
use crate::library::{Notes, lock};
use crate::orders::settings;
use crate::packet::Packet;
use crate::server::Server;
use crate::tabs::{TabState, parse};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use understudy_core::Vec3;
use understudy_jobs::invert::session::Session;
use understudy_jobs::invert::solver::TakeSettings;
use understudy_jobs::{Event, JobError, Watch};

/// The first number of a message with a frame of the take.
pub(crate) const FRAME: u32 = 2;

/// Commands of the tab.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", deny_unknown_fields)]
enum Command {
    /// Holds a take ready: files of the project, or a clip of the rig's own.
    #[serde(rename = "invert_open")]
    Open {
        rig: String,
        #[serde(default)]
        targets: Vec<String>,
        clip: Option<String>,
    },
    /// Solves one frame of it.
    #[serde(rename = "invert_frame")]
    Frame { frame: usize, alpha: Option<f64> },
    /// Solves all of it.
    #[serde(rename = "invert_take")]
    Take {
        alpha: Option<f64>,
        #[serde(default)]
        smooth: f64,
    },
    /// Lets it go.
    #[serde(rename = "invert_close")]
    Close {},
}

/// What a client has open of the tab.
#[derive(Default)]
pub(crate) struct InvertTab(Mutex<Option<Arc<Take>>>);

impl InvertTab {
    fn take(&self) -> Result<Arc<Take>, Refusal> {
        lock(&self.0).clone().ok_or_else(|| Refusal::bad("no take is open"))
    }
}

impl TabState for InvertTab {
    fn command(&self, server: &Server, command: Value) -> Result<Value, Refusal> {
        match parse(command)? {
            Command::Open { rig, targets, clip } => {
                let loaded = server.library.open(&rig, &server.project.rig(&rig)?)?;
                let own = Arc::clone(&loaded.rig);
                let notes = Notes::default();
                let session = match clip {
                    Some(clip) => Session::of_clip(&rig, own, &server.clip(&loaded, &clip)?, &notes)?,
                    None => {
                        let files = targets.iter().map(|name| server.project.resolve(name));
                        Session::open(&rig, own, &files.collect::<Result<Vec<_>, _>>()?, &notes)?
                    }
                };
                let take = Take::new(session);
                let mut facts = take.facts();
                facts["notes"] = json!(notes.taken());
                self.close();
                *lock(&self.0) = Some(Arc::new(take));
                Ok(facts)
            }
            Command::Frame { frame, alpha } => self.take()?.solve_frame(frame, alpha),
            Command::Take { alpha, smooth } => {
                Ok(self.take()?.solve_take(alpha, smooth)?.unwrap_or(Value::Null))
            }
            Command::Close {} => {
                self.close();
                Ok(Value::Null)
            }
        }
    }

    fn binary(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        self.take().map_err(|refusal| refusal.message).and_then(|take| take.frame(message))
    }

    fn close(&self) {
        if let Some(take) = lock(&self.0).take() {
            take.stop();
        }
    }
}

/// A take and the number of the newest wish to solve it.
struct Take {
    session: Session,
    newest: AtomicU64,
}

/// Stops when it is no longer the newest.
struct Newest<'a> {
    take: &'a Take,
    own: u64,
}

impl Watch for Newest<'_> {
    fn event(&self, _event: Event<'_>) {}

    fn should_stop(&self) -> bool {
        self.take.newest.load(Ordering::SeqCst) != self.own
    }
}

impl Take {
    pub fn new(session: Session) -> Self {
        Self { session, newest: AtomicU64::new(0) }
    }

    /// For the page.
    pub fn facts(&self) -> Value {
        let names: Vec<&str> =
            self.session.shapes().shapes().iter().map(|shape| shape.name.as_str()).collect();
        json!({ "frames": self.session.frame_count(), "rate": self.session.rate(), "shapes": names })
    }

    /// Ends whatever is being solved.
    pub fn stop(&self) {
        self.newest.fetch_add(1, Ordering::SeqCst);
    }

    /// One frame.
    pub fn solve_frame(&self, frame: usize, alpha: Option<f64>) -> Result<Value, Refusal> {
        let start = std::time::Instant::now();
        let weights = self.session.solve_frame(frame, &settings(alpha))?;
        Ok(json!({ "weights": weights, "ms": start.elapsed().as_secs_f64() * 1e3 }))
    }

    /// All frames, as the command `invert` does; `None` where a newer wish came in between.
    pub fn solve_take(&self, alpha: Option<f64>, smooth: f64) -> Result<Option<Value>, Refusal> {
        let own = self.newest.fetch_add(1, Ordering::SeqCst) + 1;
        let start = std::time::Instant::now();
        let take = TakeSettings { smooth, ..TakeSettings::default() };
        let solved = match self.session.solve_take(&settings(alpha), &take, &Newest { take: self, own }) {
            Err(JobError::Stopped) => return Ok(None),
            other => other?,
        };
        let ms = start.elapsed().as_secs_f64() * 1e3 / self.session.frame_count().max(1) as f64;
        Ok(Some(json!({
            "weights": solved.weights,
            "rmse_mm": solved.metrics.rmse_cm * 10.0,
            "max_mm": solved.metrics.max_cm * 10.0,
            "active": solved.metrics.cardinality,
            "frame_rmse_mm": solved.frames.iter().map(|frame| frame.rmse_cm * 10.0).collect::<Vec<_>>(),
            "ms_per_frame": ms,
        })))
    }

    /// A frame as it was given and as weights make it: `[kind, number, vertices, frame]` and both sets of vertices.
    /// Missing vertices of the target lie where the weights put them.
    pub fn frame(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let word = |index: usize| bytes.get(index * 4..index * 4 + 4).map(|b| [b[0], b[1], b[2], b[3]]);
        let (Some(number), Some(frame)) = (word(1).map(u32::from_le_bytes), word(2).map(u32::from_le_bytes))
        else {
            return Err("a message that asks for a frame is too short".into());
        };
        let weights: Vec<f32> = (3..bytes.len() / 4).filter_map(word).map(f32::from_le_bytes).collect();
        let shapes = self.session.shapes();
        if weights.len() != shapes.shapes().len() || weights.iter().any(|w| !w.is_finite()) {
            return Err(format!("{} weights, the rig has {} shapes", weights.len(), shapes.shapes().len()));
        }
        let target =
            self.session.target(frame as usize).ok_or_else(|| format!("there is no frame {frame}"))?;
        let mut fit = vec![Vec3::ZERO; shapes.neutral().len()];
        shapes.evaluate(&weights, &mut fit);
        let given: Vec<Vec3> = target
            .iter()
            .zip(&fit)
            .map(|(given, fit)| if given.is_finite() { *given } else { *fit })
            .collect();
        let mut packet = Packet::default();
        packet.numbers(&[FRAME, number, fit.len() as u32, frame]);
        packet.points(&given);
        packet.points(&fit);
        Ok(packet.finish())
    }
}
