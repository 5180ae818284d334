//! Clips in the rendered style at 512² with a sensor's noise, solved and compared with what was drawn.

use super::CaptureArguments;
use crate::console::{print, table};
use anyhow::Result;
use std::time::Instant;
use understudy_capture::actors::{Actor, Cast, FacePoints, Noise, Performance, Played, take};
use understudy_capture::flow::{FlowSettings, flow};
use understudy_capture::gaze::{degrees_between, gazes};
use understudy_capture::inverse_rendering::{
    Freedom, Model, Observation, Optimiser, RenderSettings, Shapes, State,
};
use understudy_capture::render::FlowField;

const SIDE: usize = 512;
/// For how much moves a quarter of the size is enough.
const QUICK: FlowSettings = FlowSettings { smoothness: 0.06, warps: 3, sweeps: 20, skipped: 2 };

/// A clip with all that a solver is given.
struct Clip {
    performance: Performance,
    played: Vec<Played>,
    flows: Vec<Option<FlowField>>,
    flow_ms: f64,
    points: FacePoints,
}

impl Clip {
    fn new(cast: &Cast, actor: Actor, arguments: &CaptureArguments, turning: bool, seconds: f64) -> Self {
        let take = take(&cast.shape_names(), seconds, 30.0, arguments.seed, turning);
        let noise = Noise { picture: 2.0 / 255.0, marks: arguments.marks, seed: arguments.seed };
        let performance = Performance { actor, take, noise };
        let played: Vec<Played> = (0..performance.len()).map(|index| performance.play(index)).collect();
        let start = Instant::now();
        let mut flows = vec![None];
        for pair in played.windows(2) {
            flows.push(Some(flow(&pair[0].image(), &pair[1].image(), &QUICK)));
        }
        let flow_ms = start.elapsed().as_secs_f64() * 1e3 / flows.len() as f64;
        let head = &performance.actor.head;
        let region = understudy_capture::inverse_rendering::front_of(head);
        let points = FacePoints::new(
            &head.mesh.triangles(),
            head.mesh.positions(),
            &region,
            &head.marks.points,
            1000,
            15,
        );
        Self { performance, played, flows, flow_ms, points }
    }

    fn optimiser(&self, settings: RenderSettings) -> Result<Optimiser<Shapes<'_>>> {
        let actor = &self.performance.actor;
        let model = Model::of_head(&actor.head, actor.look.clone(), actor.light, actor.camera);
        Ok(Optimiser::prepare(Shapes::new(&actor.head.shapes), model, settings)?)
    }

    fn error(&self, index: usize, weights: &[f64]) -> [f64; 2] {
        let head = &self.performance.actor.head;
        let mut solved = head.mesh.positions().to_vec();
        head.pose(&weights.iter().map(|weight| *weight as f32).collect::<Vec<_>>(), None, &mut solved);
        let error = self.points.error(&solved, &self.played[index].shape);
        [error.front, error.landmarks]
    }

    fn neutral(&self) -> [f64; 2] {
        let rest = vec![0.0; self.performance.actor.head.shapes.shapes().len()];
        let all = (0..self.played.len()).map(|index| self.error(index, &rest));
        let sum = all.fold([0.0; 2], |sum, error| [sum[0] + error[0], sum[1] + error[1]]);
        sum.map(|value| value / self.played.len() as f64)
    }
}

/// What a clip came to.
#[derive(Default)]
struct Figures {
    front: f64,
    landmarks: f64,
    worst: f64,
    /// Root mean square change of weights between frames beyond the true change.
    jitter: f64,
    /// Mean number of weights above 0.01.
    active: f64,
    pupils: f64,
    head: f64,
    ms: f64,
    iterations: f64,
    states: Vec<State>,
}

fn solve(clip: &Clip, settings: &RenderSettings, flows: bool) -> Result<Figures> {
    let mut optimiser = clip.optimiser(settings.clone())?;
    let head = &clip.performance.actor.head;
    let mut out = Figures::default();
    let mut last = [[0.0; 2]; 2];
    let count = clip.played.len() as f64;
    for (index, played) in clip.played.iter().enumerate() {
        let image = played.image();
        let flow = clip.flows[index].as_ref().filter(|_| flows);
        let start = Instant::now();
        let report = optimiser.solve(&Observation { image: &image, detected: &played.detected, flow })?;
        out.ms += start.elapsed().as_secs_f64() * 1e3 / count;
        out.iterations += (report.costs.len() - 1) as f64 / count;
        let state = optimiser.state().clone();
        let [front, landmarks] = clip.error(index, &state.weights);
        (out.front, out.landmarks) = (out.front + front / count, out.landmarks + landmarks / count);
        out.worst = out.worst.max(front);
        out.active += state.weights.iter().filter(|weight| **weight > 0.01).count() as f64 / count;
        let truth = &clip.performance.take.frames[index].weights;
        if let Some(before) = out.states.last() {
            let old = &clip.performance.take.frames[index - 1].weights;
            let square: f64 = (0..truth.len())
                .map(|k| (state.weights[k] - before.weights[k] - f64::from(truth[k] - old[k])).powi(2))
                .sum();
            out.jitter += square / truth.len() as f64 / count;
        }
        let both = gazes(
            &state.camera,
            &state.head,
            &head.eyes,
            head.mesh.positions(),
            played.detected.pupils,
            last,
        );
        last = [both[0].0, both[1].0];
        for side in 0..2 {
            let eye = &head.eyes[side];
            out.pupils +=
                degrees_between(eye, head.mesh.positions(), last[side], eye.gaze(truth)) / 2.0 / count;
        }
        let (found, wanted) = (state.head.degrees(), played.head.degrees());
        out.head = (0..3).map(|axis| (found[axis] - wanted[axis]).abs()).fold(out.head, f64::max);
        out.states.push(state);
    }
    out.jitter = out.jitter.sqrt();
    Ok(out)
}

fn line(name: &str, figures: &Figures) -> Vec<String> {
    vec![
        name.to_owned(),
        format!("{:.4}", figures.front),
        format!("{:.4}", figures.worst),
        format!("{:.4}", figures.landmarks),
        format!("{:.4}", figures.jitter),
        format!("{:.1}", figures.active),
        format!("{:.2}", figures.pupils),
        format!("{:.1}", figures.iterations),
        format!("{:.1}", figures.ms),
    ]
}

const HEAD: [&str; 9] = [
    "",
    "front, cm",
    "worst frame",
    "landmarks, cm",
    "jitter",
    "active",
    "pupils, °",
    "iterations",
    "ms per frame",
];

fn settings(arguments: &CaptureArguments) -> RenderSettings {
    RenderSettings { samples: arguments.samples, ..RenderSettings::default() }
}

/// The rig's own head and two actors with a model of themselves.
pub fn clips(cast: &Cast, arguments: &CaptureArguments) -> Result<()> {
    let people = [
        ("rendered style", cast.rendered(SIDE)),
        ("actor 15", cast.actor(15, SIDE)?),
        ("actor 16", cast.actor(16, SIDE)?),
    ];
    let mut rows = Vec::new();
    for (name, actor) in people {
        let clip = Clip::new(cast, actor, arguments, false, arguments.seconds);
        let [front, landmarks] = clip.neutral();
        let mut nothing = vec![
            format!("{name}: doing nothing"),
            format!("{front:.4}"),
            String::new(),
            format!("{landmarks:.4}"),
        ];
        nothing.resize(HEAD.len(), String::new());
        rows.push(nothing);
        rows.push(line(&format!("{name}: solved"), &solve(&clip, &settings(arguments), true)?));
        print(&format!("{name}: optical flow at a quarter of the size {:.1} ms per frame", clip.flow_ms));
    }
    print(&table(&HEAD, &rows));
    Ok(())
}

/// Each term of (6.4) left out.
pub fn terms(cast: &Cast, arguments: &CaptureArguments) -> Result<()> {
    let clip = Clip::new(cast, cast.rendered(SIDE), arguments, false, arguments.seconds);
    let all = settings(arguments);
    let ways = [
        ("all terms", all.clone(), true),
        ("without colours", RenderSettings { photo: 0.0, ..all.clone() }, true),
        ("without landmarks", RenderSettings { land: 0.0, ..all.clone() }, true),
        ("without smoothness", RenderSettings { smooth: 0.0, ..all.clone() }, true),
        ("smoothness without flow", all.clone(), false),
        ("without sparsity", RenderSettings { sparse: 0.0, ..all }, true),
    ];
    let mut rows = Vec::new();
    for (name, settings, flows) in ways {
        rows.push(line(name, &solve(&clip, &settings, flows)?));
    }
    print(&table(&HEAD, &rows));
    Ok(())
}

/// Flow against the exact motion, pixels.
pub fn flows(cast: &Cast, arguments: &CaptureArguments) -> Result<()> {
    let mut rows = Vec::new();
    for (name, actor) in [("rendered style", cast.rendered(SIDE)), ("actor 15", cast.actor(15, SIDE)?)] {
        let clip = Clip::new(cast, actor, arguments, false, arguments.seconds.min(2.0));
        for (size, skipped) in [("full size", 0), ("half", 1), ("a quarter", 2)] {
            let settings = FlowSettings { skipped, ..FlowSettings::default() };
            let (mut error, mut moved, mut ms) = (0.0, 0.0, 0.0);
            let count = (clip.played.len() - 1) as f64;
            for pair in clip.played.windows(2) {
                let exact = clip.performance.flow(&pair[0], &pair[1]);
                let (from, to) = (pair[0].image(), pair[1].image());
                let start = Instant::now();
                let found = flow(&from, &to, &settings);
                ms += start.elapsed().as_secs_f64() * 1e3 / count;
                error += found.end_point_error(&exact).unwrap_or(0.0) / count;
                let still = FlowField { motion: vec![[0.0; 2]; exact.motion.len()], ..found };
                moved += still.end_point_error(&exact).unwrap_or(0.0) / count;
            }
            rows.push(vec![
                format!("{name}, {size}"),
                format!("{error:.3}"),
                format!("{moved:.3}"),
                format!("{ms:.0}"),
            ]);
        }
    }
    print(&table(&["", "end-point error, px", "of no flow at all", "ms per frame"], &rows));
    Ok(())
}

/// A head that turns before a camera that stands.
pub fn heads(cast: &Cast, arguments: &CaptureArguments) -> Result<()> {
    let clip = Clip::new(cast, cast.rendered(SIDE), arguments, true, arguments.seconds);
    // The camera's own shake is not the head's: it stands here.
    let figures = solve(&clip, &RenderSettings { freedom: Freedom::Head, ..settings(arguments) }, true)?;
    print(&table(&HEAD, &[line("a head that turns", &figures)]));
    print(&format!("the head's angles are {:.2}° off at most", figures.head));
    Ok(())
}

/// Every frame again, between its neighbours.
pub fn window(cast: &Cast, arguments: &CaptureArguments) -> Result<()> {
    let clip = Clip::new(cast, cast.rendered(SIDE), arguments, false, arguments.seconds.min(2.0));
    let settings = settings(arguments);
    let first = solve(&clip, &settings, true)?;
    let mut optimiser = clip.optimiser(settings)?;
    let mut again = Figures::default();
    let count = clip.played.len();
    for index in 0..count {
        let played = &clip.played[index];
        let image = played.image();
        let neighbour = |other: Option<usize>, flow: Option<usize>| {
            let state = first.states.get(other?)?;
            Some((state.weights.as_slice(), flow.and_then(|at| clip.flows.get(at)?.as_ref())))
        };
        let sides =
            [neighbour(index.checked_sub(1), Some(index)), neighbour(Some(index + 1), Some(index + 1))];
        let observation = Observation { image: &image, detected: &played.detected, flow: None };
        optimiser.solve_between(&observation, first.states[index].clone(), sides)?;
        let [front, landmarks] = clip.error(index, &optimiser.state().weights);
        again.front += front / count as f64;
        again.landmarks += landmarks / count as f64;
        again.worst = again.worst.max(front);
        let truth = &clip.performance.take.frames;
        if let Some(before) = again.states.last() {
            let now = &optimiser.state().weights;
            let change = |k: usize| f64::from(truth[index].weights[k] - truth[index - 1].weights[k]);
            let square: f64 = (0..now.len()).map(|k| (now[k] - before.weights[k] - change(k)).powi(2)).sum();
            again.jitter += square / now.len() as f64 / count as f64;
        }
        again.states.push(optimiser.state().clone());
    }
    again.jitter = again.jitter.sqrt();
    print(&table(
        &HEAD[..5],
        &[line("frame after frame", &first)[..5].to_vec(), line("between neighbours", &again)[..5].to_vec()],
    ));
    Ok(())
}
