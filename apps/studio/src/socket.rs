//! One client's WebSocket: commands as JSON with a number that comes back with the answer, poses as binary messages of which
//! only the newest is evaluated, events of jobs. What a client opened lives here and ends with it.

use crate::error::Refusal;
use crate::library::lock;
use crate::packet::{POSE, PoseRequest, read_pose};
use crate::server::Server;
use crate::stage::Stage;
use crate::tabs::{TABS, TabState, parse};
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::{broadcast, mpsc, watch};

/// Bytes of a message from a page: a pose of 16,000 controls.
pub(crate) const LARGEST: usize = 64 * 1024;
/// Answers that wait for a slow page; then its commands wait.
const WAITING: usize = 4;

/// Commands of a client that are worked on at one time, beside the tasks that it always has.
const AT_ONCE: usize = 8;
const OWN_TASKS: usize = 3;

/// A command of the stage that every tab has; those of tabs are theirs.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Command {
    /// Puts a rig on the stage, with a twin where one is named.
    Open { rig: String, twin: Option<String> },
}

#[derive(Debug, Deserialize)]
struct Numbered {
    id: u64,
    #[serde(flatten)]
    command: Value,
}

/// What a client has open.
struct Client {
    server: Arc<Server>,
    stage: Mutex<Option<Stage>>,
    /// One for each of [`TABS`].
    tabs: Vec<Box<dyn TabState>>,
    answers: mpsc::Sender<Message>,
}

/// Serves a client until it goes away or the server stops.
pub(crate) async fn serve(server: Arc<Server>, socket: WebSocket) {
    let (mut sink, mut stream) = socket.split();
    let (answers, mut outgoing) = mpsc::channel::<Message>(WAITING);
    let (poses, newest) = watch::channel(None);
    let mut closing = server.closing();
    let client = Arc::new(Client {
        server: Arc::clone(&server),
        stage: Mutex::default(),
        tabs: TABS.iter().map(|tab| (tab.make)()).collect(),
        answers,
    });
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(evaluate_newest(Arc::clone(&client), newest));
    tasks.spawn(tell_of_runs(Arc::clone(&client), server.runs.listen()));
    tasks.spawn(async move {
        while let Some(message) = outgoing.recv().await {
            let last = matches!(message, Message::Close(_));
            if sink.send(message).await.is_err() || last {
                break;
            }
        }
    });
    loop {
        let message = tokio::select! {
            message = stream.next() => Some(message),
            () = closed(&mut closing) => None,
        };
        let Some(message) = message else {
            let frame = CloseFrame { code: 1001, reason: "the studio was stopped".into() };
            let _ = client.answers.try_send(Message::Close(Some(frame)));
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            break;
        };
        let Some(Ok(message)) = message else { break };
        let problem = match message {
            Message::Text(text) => client.command(text.as_str(), &mut tasks),
            Message::Binary(bytes) => match bytes.get(..4) {
                Some(kind) if kind == POSE.to_le_bytes() => {
                    read_pose(&bytes).map(|pose| poses.send_replace(Some(pose))).err()
                }
                kind => match TABS
                    .iter()
                    .position(|tab| kind == tab.binary.map(u32::to_le_bytes).as_ref().map(|b| &b[..]))
                {
                    Some(tab) if kind.is_some() => client.ask_tab(tab, bytes.to_vec(), &mut tasks),
                    _ => Some(format!("a binary message of {} bytes is not known", bytes.len())),
                },
            },
            Message::Close(_) => break,
            Message::Ping(_) | Message::Pong(_) => None,
        };
        if let Some(problem) = problem {
            client.say(json!({ "problem": problem })).await;
        }
        while tasks.try_join_next().is_some() {}
        // Who asks faster than is answered waits.
        while tasks.len() > OWN_TASKS + AT_ONCE {
            tasks.join_next().await;
        }
    }
    // What is being solved for nobody stops; everything else is dropped with the client.
    client.tabs.iter().for_each(|tab| tab.close());
    tasks.shutdown().await;
}

/// Waits until the server stops.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

/// Evaluates the newest pose; those that came while another was evaluated are never looked at.
async fn evaluate_newest(client: Arc<Client>, mut newest: watch::Receiver<Option<PoseRequest>>) {
    while newest.changed().await.is_ok() {
        let Some(request) = newest.borrow_and_update().clone() else { continue };
        let own = Arc::clone(&client);
        let number = request.number;
        let work = move || match &mut *lock(&own.stage) {
            Some(stage) => stage.answer(request),
            None => Err("no rig is open".into()),
        };
        let message = match tokio::task::spawn_blocking(work).await {
            Ok(Ok(bytes)) => Message::Binary(bytes.into()),
            Ok(Err(problem)) => text(&json!({ "problem": problem, "number": number })),
            Err(_) => text(
                &json!({ "problem": "the pose could not be evaluated; this is a bug", "number": number }),
            ),
        };
        if client.answers.send(message).await.is_err() {
            break;
        }
    }
}

/// Tells of every run that changes; of all of them where a slow page missed some.
async fn tell_of_runs(client: Arc<Client>, mut changes: broadcast::Receiver<u64>) {
    loop {
        let message = match changes.recv().await {
            Ok(id) => json!({ "event": "run", "run": client.server.runs.snapshot(id) }),
            Err(broadcast::error::RecvError::Lagged(_)) => {
                json!({ "event": "runs", "runs": client.server.runs.snapshots() })
            }
            Err(broadcast::error::RecvError::Closed) => break,
        };
        if client.answers.send(text(&message)).await.is_err() {
            break;
        }
    }
}

fn text(value: &Value) -> Message {
    Message::Text(value.to_string().into())
}

impl Client {
    async fn say(&self, value: Value) {
        let _ = self.answers.send(text(&value)).await;
    }

    /// Starts a command; says what is wrong with one that is none.
    fn command(self: &Arc<Self>, message: &str, tasks: &mut tokio::task::JoinSet<()>) -> Option<String> {
        let numbered: Numbered = match serde_json::from_str(message) {
            Ok(numbered) => numbered,
            Err(error) => return Some(format!("a message is no command: {error}")),
        };
        let client = Arc::clone(self);
        let id = numbered.id;
        tasks.spawn(async move {
            let work = {
                let client = Arc::clone(&client);
                move || client.run(numbered.command)
            };
            let answer = match tokio::task::spawn_blocking(work).await {
                Ok(Ok(answer)) => json!({ "id": id, "ok": answer }),
                Ok(Err(refusal)) => json!({ "id": id, "error": refusal.message }),
                Err(_) => json!({ "id": id, "error": "the command broke off; this is a bug" }),
            };
            client.say(answer).await;
        });
        None
    }

    fn run(&self, command: Value) -> Result<Value, Refusal> {
        let server = &self.server;
        let name = command.get("do").and_then(Value::as_str).unwrap_or_default();
        let tab =
            TABS.iter().position(|tab| name.strip_prefix(tab.id).is_some_and(|rest| rest.starts_with('_')));
        if let Some(tab) = tab {
            return self.tabs[tab].command(server, command);
        }
        match parse(command)? {
            Command::Open { rig, twin } => {
                let loaded = server.library.open(&rig, &server.project.rig(&rig)?)?;
                let twin = match twin {
                    Some(name) => Some(understudy_jobs::twin::open_twin(&server.project.resolve(&name)?)?),
                    None => None,
                };
                let stage = Stage::new(loaded, twin)?;
                let facts = stage.twin_facts();
                *lock(&self.stage) = Some(stage);
                Ok(json!({ "twin": facts }))
            }
        }
    }

    fn ask_tab(
        self: &Arc<Self>,
        tab: usize,
        bytes: Vec<u8>,
        tasks: &mut tokio::task::JoinSet<()>,
    ) -> Option<String> {
        let client = Arc::clone(self);
        tasks.spawn(async move {
            let own = Arc::clone(&client);
            let message = match tokio::task::spawn_blocking(move || own.tabs[tab].binary(&bytes)).await {
                Ok(Ok(bytes)) => Message::Binary(bytes.into()),
                Ok(Err(problem)) => text(&json!({ "problem": problem })),
                Err(_) => text(&json!({ "problem": "a message could not be answered; this is a bug" })),
            };
            let _ = client.answers.send(message).await;
        });
        None
    }
}
