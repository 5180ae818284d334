//! The Motion tab's character: a file of motion played for one tab, its commands and scripts, and its game. A binary message
//! asks for the next frame and is answered with the particle's place and the vertices.

use crate::error::Refusal;
use crate::library::{Loaded, lock};
use crate::packet::Packet;
use crate::server::Server;
use crate::tabs::{TabState, parse};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use understudy_core::Controls;
use understudy_jobs::motion::game::{GameConfig, LiveGame, Mark, Mood, Standing, read_reactions};
use understudy_jobs::motion::open;
use understudy_rigs::RigPose;
use understudy_runtime::motion::{
    Command as Act, LatentPoint, Motion, MotionPlayer, PlayConfig, ScriptError, Workspace,
};

/// The first number of a message with a frame.
pub(crate) const FRAME: u32 = 4;
/// Frames that one message steps over at most: a slow page skips, but not far.
const MOST_STEPS: u32 = 48;
/// Corners of the path that are shown.
const MOST_CORNERS: usize = 400;
/// Places per axis at which the density is weighed for a cloud.
const CLOUD: usize = 15;
/// What a player does, by its number in a message.
const DOING: [&str; 5] = ["idle", "move", "transition", "play", "mix"];

/// Commands of the tab.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", deny_unknown_fields)]
enum Command {
    /// Plays a file of the project.
    #[serde(rename = "motion_open")]
    Open { file: String, seed: Option<u64> },
    /// Where a label's poses are likely.
    #[serde(rename = "motion_cloud")]
    Cloud { label: String },
    /// One command, as a game sends it.
    #[serde(rename = "motion_command")]
    Order { command: Value },
    /// All commands of a script, or what is wrong in which line.
    #[serde(rename = "motion_script")]
    Script { text: String },
    /// The same, but only looked at.
    #[serde(rename = "motion_check")]
    Check { text: String },
    /// Begins a game of tic-tac-toe, anew where one is played.
    #[serde(rename = "motion_game")]
    Game { game: GameConfig },
    /// Takes a square in it, from 0.
    #[serde(rename = "motion_take")]
    Take { square: usize },
    /// Lets her wait for long.
    #[serde(rename = "motion_linger")]
    Linger {},
    /// Ends it.
    #[serde(rename = "motion_end")]
    End {},
    /// Lets the file go.
    #[serde(rename = "motion_close")]
    Close {},
}

/// What a client has open of the tab.
#[derive(Default)]
pub(crate) struct MotionTab(Mutex<Option<Open>>);

/// A character that acts.
struct Open {
    loaded: Arc<Loaded>,
    motion: Arc<Motion>,
    player: MotionPlayer,
    game: Option<LiveGame>,
    /// For every control of the rig that of the motion.
    columns: Vec<Option<usize>>,
    frame: Vec<f32>,
    controls: Controls,
    pose: RigPose,
}

impl TabState for MotionTab {
    fn command(&self, server: &Server, command: Value) -> Result<Value, Refusal> {
        let command = parse(command)?;
        if let Command::Open { file, seed } = &command {
            let open = Open::new(server, file, seed.unwrap_or(1))?;
            let facts = open.facts();
            *lock(&self.0) = Some(open);
            return Ok(facts);
        }
        let mut held = lock(&self.0);
        let open = held.as_mut().ok_or_else(|| Refusal::bad("no file of motion is open"))?;
        match command {
            Command::Open { .. } => Ok(Value::Null),
            Command::Cloud { label } => {
                // A cloud takes a while: frames go on meanwhile.
                let motion = Arc::clone(&open.motion);
                drop(held);
                cloud(&motion, &label)
            }
            Command::Order { command } => {
                let act = Act::from_json(&command.to_string()).map_err(|e| Refusal::bad(e.to_string()))?;
                open.player.command(act).map_err(|error| Refusal::bad(error.to_string()))?;
                Ok(Value::Null)
            }
            Command::Script { text } => Ok(told(open.player.script(&text))),
            Command::Check { text } => Ok(told(open.player.clone().script(&text))),
            Command::Game { game } => {
                let reactions = read_reactions(None, &open.motion, game.seed)?;
                let live = LiveGame::begin(&open.motion, &game, reactions).map_err(Refusal::bad)?;
                open.player.command(Act::Stop).map_err(|error| Refusal::bad(error.to_string()))?;
                open.game = Some(live);
                Ok(Value::Null)
            }
            Command::Take { square } => {
                let Open { game, player, .. } = open;
                let game = game.as_mut().ok_or_else(|| Refusal::bad("no game is played"))?;
                game.take(player, square).map_err(Refusal::bad)?;
                Ok(Value::Null)
            }
            Command::Linger {} => {
                open.game.iter_mut().for_each(LiveGame::linger);
                Ok(Value::Null)
            }
            Command::End {} => {
                open.game = None;
                Ok(Value::Null)
            }
            Command::Close {} => {
                *held = None;
                Ok(Value::Null)
            }
        }
    }

    fn binary(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let word = |index: usize| {
            let bytes = message.get(index * 4..index * 4 + 4)?;
            Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        };
        let (Some(number), Some(steps)) = (word(1), word(2)) else {
            return Err("a message that asks for a frame is too short".into());
        };
        match &mut *lock(&self.0) {
            Some(open) => open.answer(number, steps.clamp(1, MOST_STEPS)),
            None => Err("no file of motion is open".into()),
        }
    }

    fn close(&self) {
        *lock(&self.0) = None;
    }
}

impl Open {
    fn new(server: &Server, file: &str, seed: u64) -> Result<Self, Refusal> {
        let motion = open(&server.project.resolve(file)?)?.shared();
        let rig = motion.rig().to_owned();
        let loaded = server.library.open(&rig, &server.project.rig(&rig)?)?;
        let specs = loaded.rig.specs();
        let columns = specs.iter().map(|spec| motion.controls().find(&spec.name)).collect();
        let config = PlayConfig { seed, ..PlayConfig::default() };
        let player = MotionPlayer::new(Arc::clone(&motion), None, config)
            .map_err(|error| Refusal::bad(error.to_string()))?;
        let controls = specs.defaults();
        Ok(Self {
            loaded,
            motion,
            player,
            game: None,
            columns,
            frame: Vec::new(),
            controls,
            pose: RigPose::default(),
        })
    }

    /// About the file, for the page.
    fn facts(&self) -> Value {
        let motion = &self.motion;
        let labels: Vec<Value> = motion
            .models()
            .iter()
            .map(|model| {
                let space = model.space();
                let points: Vec<f64> =
                    (0..space.len()).flat_map(|frame| seen(space.point(frame)).map(rounded)).collect();
                let clips: Vec<Value> = model
                    .clips()
                    .iter()
                    .map(|clip| json!({ "name": clip.name, "first": clip.first, "frames": clip.frames }))
                    .collect();
                json!({
                    "label": model.label(), "dimensions": space.dimensions(), "radius": model.radius(),
                    "points": points, "clips": clips,
                })
            })
            .collect();
        let bridges: Vec<Value> = motion
            .bridges()
            .iter()
            .map(|bridge| {
                json!({
                    "from": bridge.from, "to": bridge.to, "millimetres": bridge.millimetres,
                    "from_point": seen(bridge.from_point), "to_point": seen(bridge.to_point),
                })
            })
            .collect();
        json!({ "rig": motion.rig(), "rate": motion.rate(), "labels": labels, "bridges": bridges, "doing": DOING })
    }

    /// The next frame: `[kind, number, label, doing, situation + 1, board, flags, corners, vertices]`, then as numbers the
    /// particle, its path's place, the radius, the distance in radii and `log p`, the corners, and the vertices. The board has
    /// two bits per square: 0 free, 1 hers, 2 the other's. Flags: 1 busy, 2 a game is played, 4 your turn, 8 she has won, 16
    /// you have won, 32 nobody has won.
    fn answer(&mut self, number: u32, steps: u32) -> Result<Vec<u8>, String> {
        for _ in 0..steps {
            match &mut self.game {
                Some(game) => {
                    game.step(&mut self.player, &mut self.frame).map_err(|error| error.to_string())?
                }
                None => {
                    self.player.step();
                    self.frame.clear();
                    self.frame.extend_from_slice(self.player.controls());
                }
            }
        }
        for (value, column) in self.controls.0.iter_mut().zip(&self.columns) {
            column.iter().for_each(|column| *value = self.frame[*column]);
        }
        let rig = self.loaded.rig.as_ref();
        rig.evaluate(&self.controls, &mut self.pose).map_err(|error| error.to_string())?;

        let situation = self.player.situation();
        let (density, _) = self.player.density();
        let corners: Vec<LatentPoint> = self.player.path().take(MOST_CORNERS).collect();
        let doing = DOING.iter().position(|doing| *doing == situation.doing).unwrap_or(0) as u32;
        let (mood, board, flags) = self.game_state();
        let busy = match &self.game {
            Some(game) => game.is_busy(&self.player),
            None => self.player.is_busy(),
        };
        let (vertices, label) = (&self.pose.vertices, situation.label as u32);
        let mut packet = Packet::default();
        let (corner_count, count) = (corners.len() as u32, vertices.len() as u32);
        packet.numbers(&[
            FRAME,
            number,
            label,
            doing,
            mood,
            board,
            flags | u32::from(busy),
            corner_count,
            count,
        ]);
        let single = |point: LatentPoint| seen(point).map(|v| v as f32);
        packet.floats(single(situation.position));
        packet.floats(single(situation.path));
        packet.floats([situation.radius, situation.distance, density].map(|v| v as f32));
        packet.floats(corners.into_iter().flat_map(single));
        packet.points(vertices);
        Ok(packet.finish())
    }

    /// Situation, board and flags of the game.
    fn game_state(&self) -> (u32, u32, u32) {
        let Some(game) = &self.game else { return (0, 0, 0) };
        let mood = game.mood().and_then(|mood| Mood::ALL.iter().position(|other| *other == mood));
        let cell = |mark: Option<Mark>| mark.map_or(0, |mark| if mark == game.hers() { 1 } else { 2 });
        let board = game
            .shown()
            .0
            .iter()
            .enumerate()
            .fold(0, |sum, (square, mark)| sum | cell(*mark) << (2 * square));
        let end = match game.standing() {
            Standing::Open => 0,
            Standing::Won(mark) if mark == game.hers() => 8,
            Standing::Won(_) => 16,
            Standing::Drawn => 32,
        };
        let turn = if game.is_yours() { 4 } else { 0 };
        (mood.map_or(0, |mood| mood as u32 + 1), board, 2 | turn | end)
    }
}

/// What a script's writer is told.
fn told(result: Result<(), ScriptError>) -> Value {
    match result {
        Ok(()) => json!({}),
        Err(ScriptError { line, problem }) => json!({ "line": line, "problem": problem }),
    }
}

/// What is shown of a place: three coordinates, the missing ones zero.
fn seen(point: LatentPoint) -> [f64; 3] {
    [point.0[0], point.0[1], point.0[2]]
}

/// Five digits behind the point: what a page can show.
fn rounded(value: f64) -> f64 {
    (value * 1e5).round() / 1e5
}

/// Places of a label's space with how sure the model is there: 1 where it is surest, 0 where it knows nothing.
fn cloud(motion: &Motion, label: &str) -> Result<Value, Refusal> {
    let place = motion.label(label).map_err(|error| Refusal::bad(error.to_string()))?;
    let space = motion.models()[place].space();
    let axes = space.dimensions().min(3);
    let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for frame in 0..space.len() {
        for (axis, value) in seen(space.point(frame)).into_iter().enumerate() {
            low[axis] = low[axis].min(value);
            high[axis] = high[axis].max(value);
        }
    }
    let mut work = Workspace::of(space);
    let mut places = Vec::new();
    let count = |axis: usize| if axis < axes { CLOUD } else { 1 };
    for index in 0..count(0) * count(1) * count(2) {
        let cell = [index % count(0), index / count(0) % count(1), index / count(0) / count(1)];
        let along = |axis: usize| {
            let margin = 0.12 * (high[axis] - low[axis]);
            let share = (cell[axis] as f64 + 0.5) / count(axis) as f64;
            low[axis] - margin + share * (high[axis] - low[axis] + 2.0 * margin)
        };
        let point = [along(0), along(1), along(2)];
        let variance = space.variance(LatentPoint::new(&point[..axes]), &mut work);
        places.push((point, variance));
    }
    let least = places.iter().map(|place| place.1).fold(f64::INFINITY, f64::min);
    let most = places.iter().map(|place| place.1).fold(f64::NEG_INFINITY, f64::max);
    let sure = |variance: f64| (most - variance) / (most - least).max(1e-12);
    let kept = || places.iter().filter(|place| sure(place.1) > 0.1);
    Ok(json!({
        "label": label,
        "points": kept().flat_map(|place| place.0.map(rounded)).collect::<Vec<_>>(),
        "sure": kept().map(|place| rounded(sure(place.1))).collect::<Vec<_>>(),
        "step": (0..3).map(|axis| rounded(1.24 * (high[axis] - low[axis]) / count(axis) as f64)).collect::<Vec<_>>(),
    }))
}
