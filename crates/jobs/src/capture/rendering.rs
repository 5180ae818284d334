//! Capture by inverse rendering: a synthetic actor is drawn, every frame is fitted, and the weights are measured against those
//! that made it, beside doing nothing, landmarks alone and a model of somebody else. Start at [`capture_rendered`].

use super::actor::{RATE, SIDE, Who, cast, performance, picture, write_truth};
use super::driving::{Take, turn_bones};
use super::output;
use super::watching::Watched;
use super::{Actor, check_outputs};
use crate::invert::Layout;
use crate::outputs::BesideFile;
use crate::pose::Subject;
use crate::{Event, JobError, Watch};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_capture::actors::{self as people, Cast, FacePoints, Gaze, Head, Performance, Played};
use understudy_capture::flow::{FlowSettings, flow};
use understudy_capture::gaze::{GazeCase, degrees_between, gazes};
use understudy_capture::inverse_rendering::{
    Detected, Freedom, Model, Observation, Optimiser, RenderSettings, Shapes,
};
use understudy_capture::{FaceMarks, Frame};
use understudy_core::{ControlKind, ControlSpecs, Controls, Vec3, arkit};
use understudy_report::html::{Cell, Column, Page, Section, Table};
use understudy_report::plot::{LinePlot, Series};
use understudy_report::{Picture, Sheet};
use understudy_runtime::live;

/// How a synthetic actor is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorMethod {
    /// As a video is: by the landmarks of a `.task` file.
    Landmarks,
    /// By inverse rendering.
    Render,
}

/// What the weights of the take come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fitted {
    /// A model of this actor: the head, paint and light that the frames were drawn with.
    #[default]
    Own,
    /// The mean head with house paint, whoever is seen.
    Mean,
    /// Landmarks alone, as offsets from the actor's rest on the mean head.
    Landmarks,
}

impl Fitted {
    const ALL: [Self; 3] = [Self::Landmarks, Self::Mean, Self::Own];

    fn label(self) -> &'static str {
        match self {
            Self::Own => "inverse rendering, a model of the actor",
            Self::Mean => "inverse rendering, the mean head",
            Self::Landmarks => "landmarks alone, as offsets from rest",
        }
    }
}

/// What to capture by inverse rendering, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenderConfig {
    /// Who plays.
    pub actor: Actor,
    /// The rig that is driven.
    pub rig: String,
    /// What the take comes from.
    pub fitted: Fitted,
    /// Whether the head turns before a camera that stands; on a helmet otherwise.
    pub turning: bool,
    /// Of the solver.
    pub settings: RenderSettings,
    /// How a table is laid out.
    pub layout: Layout,
    /// The take: `.csv`, `.glb`, `.mp4` or `.png`.
    pub output: Option<PathBuf>,
    /// A page with pictures and curves.
    pub report: Option<PathBuf>,
    /// What was typed, for the page.
    pub command: String,
}

/// Errors of one way of solving, on the mean head, over all frames (6.15).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RenderRow {
    /// What it is.
    pub name: String,
    /// 1,000 points on the front of the face, mm.
    pub front_mm: f64,
    /// The frame that is furthest off, mm.
    pub worst_mm: f64,
    /// 68 landmarks, mm.
    pub landmarks_mm: f64,
    /// Root mean square error of the weights.
    pub weights: Option<f64>,
    /// Solver, ms per frame.
    pub ms: Option<f64>,
}

/// What was captured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RenderReport {
    /// The file, where one was asked for.
    pub file: Option<PathBuf>,
    /// The actor.
    pub actor: String,
    /// The rig.
    pub rig: String,
    /// Frames.
    pub frames: usize,
    /// Frames per second.
    pub rate: f64,
    /// Errors: doing nothing first.
    pub rows: Vec<RenderRow>,
    /// Mean error of the gaze, degrees.
    pub pupils_degrees: f64,
    /// Frames in which an eye's answer was not its own ray's.
    pub gaze_fallbacks: usize,
    /// Optical flow, ms per frame.
    pub flow_ms: f64,
    /// Iterations per frame.
    pub iterations: f64,
    /// Largest error of the head's turn, degrees, where it turns.
    pub head_degrees: Option<f64>,
    /// Controls of the rig that follow.
    pub driven: usize,
}

/// What one way of solving found.
struct Solved {
    weights: Vec<Vec<f32>>,
    gazes: Vec<[Gaze; 2]>,
    heads: Vec<[f64; 3]>,
    fallbacks: usize,
    ms: f64,
    iterations: usize,
    head_degrees: f64,
}

/// A frame as all ways of solving see it.
struct Seen {
    frame: Frame,
    detected: Detected,
    head: [f64; 3],
    flow: Option<understudy_capture::render::FlowField>,
}

/// Flow is only needed for how much moves: a quarter of the size is enough.
const FLOW: FlowSettings = FlowSettings { smoothness: 0.06, warps: 3, sweeps: 20, skipped: 2 };

/// Draws a synthetic actor, solves every frame, drives the rig.
pub fn capture_rendered(config: &RenderConfig, watch: &dyn Watch) -> Result<RenderReport, JobError> {
    let kind = config.output.as_deref().map(output::kind).transpose()?;
    check_outputs(&config.rig, config.output.as_deref(), config.actor.truth.as_deref())?;
    let outputs: Vec<&Path> =
        [config.output.as_deref(), config.actor.truth.as_deref()].into_iter().flatten().collect();
    let page = config.report.as_deref().map(|path| BesideFile::check(path, &[], &outputs)).transpose()?;
    config.settings.check().map_err(|error| JobError::setting("capture", error))?;
    Who::parse(&config.actor.name)?;
    let mut subject = Subject::open(&config.rig, None, watch)?;
    let cast = cast()?;
    let performance = performance(&cast, &config.actor, SIDE, config.turning)?;
    let (seen, flow_ms) = draw(&performance, watch)?;
    let freedom = if config.turning { Freedom::Head } else { Freedom::InPlane };
    let settings = RenderSettings { freedom, ..config.settings.clone() };
    let measure = Measure::new(&cast, &performance);
    let mean = cast.rendered(SIDE);
    let mut rows = vec![measure.row("doing nothing", None, None)];
    let mut found = None;
    let mut solved_all = Vec::new();
    for way in Fitted::ALL {
        let solved = solve(way, &mean, &performance, &seen, &settings, watch)?;
        rows.push(measure.row(way.label(), Some(&solved.weights), Some(solved.ms)));
        if way == config.fitted {
            found = Some(solved_all.len());
        }
        solved_all.push(solved);
    }
    let solved = &solved_all[found.expect("all ways were gone")];
    let truths = || performance.take.frames.iter().map(|frame| frame.weights.as_slice());
    let head = &performance.actor.head;
    let mut pupils = 0.0;
    for (truth, found) in truths().zip(&solved.gazes) {
        for side in 0..2 {
            let eye = &head.eyes[side];
            pupils += degrees_between(eye, head.mesh.positions(), found[side], eye.gaze(truth)) / 2.0;
        }
    }
    let (take, driven) = drive(&subject, &cast, solved)?;
    if driven == 0 {
        let problem = "no control has the name of a shape of the actor";
        return Err(JobError::unusable(&config.rig, problem));
    }
    if let (Some(path), Some(kind)) = (&config.output, kind) {
        let watched = watched(&config.actor.name, &seen, kind.shows_the_actor());
        output::write(path, kind, config.layout, &mut subject, &take, &watched, watch)?;
    }
    write_truth(&cast, &performance, config.actor.truth.as_deref())?;
    let count = seen.len();
    let report = RenderReport {
        file: config.output.clone(),
        actor: config.actor.name.clone(),
        rig: config.rig.clone(),
        frames: count,
        rate: RATE,
        rows,
        pupils_degrees: pupils / count as f64,
        gaze_fallbacks: solved.fallbacks,
        flow_ms: flow_ms / count as f64,
        iterations: solved.iterations as f64 / count as f64,
        head_degrees: config.turning.then_some(solved.head_degrees),
        driven,
    };
    if let Some(page) = page {
        page.write(&html(config, &report, &mean, &performance, &seen, solved, &measure))?;
    }
    Ok(report)
}

fn draw(performance: &Performance, watch: &dyn Watch) -> Result<(Vec<Seen>, f64), JobError> {
    watch.event(Event::Started {
        what: "drawing the actor",
        total: performance.len() as u64,
        unit: "frames",
    });
    let (mut seen, mut ms) = (Vec::new(), 0.0);
    let mut last: Option<understudy_capture::Image> = None;
    for index in 0..performance.len() {
        let played: Played = performance.play(index);
        let image = played.image();
        let start = Instant::now();
        let field = last.as_ref().map(|last| flow(last, &image, &FLOW));
        ms += start.elapsed().as_secs_f64() * 1e3;
        last = Some(image);
        seen.push(Seen {
            frame: played.frame,
            detected: played.detected,
            head: played.head.degrees(),
            flow: field,
        });
        watch.event(Event::Step { done: index as u64 + 1 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    watch.event(Event::Finished);
    Ok((seen, ms))
}

/// Points of the actor as offsets from rest, on another head: `c = c⁰ + s (l − l⁰)`.
struct Carried {
    rest: Detected,
    own: Detected,
    scale: f64,
}

impl Carried {
    fn new(marks: &FaceMarks, mean: &Head, camera: &understudy_capture::Camera, actor: &Detected) -> Self {
        let own = Detected::exact(marks, mean.mesh.positions(), camera);
        let spread = |of: &Detected| {
            let points: Vec<[f64; 2]> = of.fixed.iter().flatten().copied().collect();
            let count = points.len().max(1) as f64;
            let middle = [0, 1].map(|k| points.iter().map(|p| p[k]).sum::<f64>() / count);
            points.iter().map(|p| (p[0] - middle[0]).powi(2) + (p[1] - middle[1]).powi(2)).sum::<f64>().sqrt()
        };
        let scale = spread(&own) / spread(actor).max(1e-9);
        Self { rest: actor.clone(), own, scale }
    }

    fn carry(&self, now: &Detected) -> Detected {
        type Seen = Option<[f64; 2]>;
        let all = |own: &[Seen], rest: &[Seen], now: &[Seen]| {
            let one = |((own, rest), now): ((&Seen, &Seen), &Seen)| {
                let (own, rest, now) = ((*own)?, (*rest)?, (*now)?);
                Some([0, 1].map(|k| own[k] + self.scale * (now[k] - rest[k])))
            };
            own.iter().zip(rest).zip(now).map(one).collect::<Vec<_>>()
        };
        let pupils = all(&self.own.pupils, &self.rest.pupils, &now.pupils);
        Detected {
            fixed: all(&self.own.fixed, &self.rest.fixed, &now.fixed),
            inner_lips: all(&self.own.inner_lips, &self.rest.inner_lips, &now.inner_lips),
            pupils: [pupils[0], pupils[1]],
        }
    }
}

fn solve(
    way: Fitted,
    mean: &people::Actor,
    performance: &Performance,
    seen: &[Seen],
    settings: &RenderSettings,
    watch: &dyn Watch,
) -> Result<Solved, JobError> {
    let actor = &performance.actor;
    let person = if way == Fitted::Own { actor } else { mean };
    let head = &person.head;
    let model = Model::of_head(head, person.look.clone(), person.light, person.camera);
    let settings = match way {
        Fitted::Landmarks => RenderSettings { photo: 0.0, ..settings.clone() },
        _ => settings.clone(),
    };
    let failed = |error| JobError::unusable(performance_name(performance), error);
    let mut optimiser = Optimiser::prepare(Shapes::new(&head.shapes), model, settings).map_err(failed)?;
    let carried = (way == Fitted::Landmarks)
        .then(|| seen.first().map(|first| Carried::new(&head.marks, head, &person.camera, &first.detected)))
        .flatten();
    watch.event(Event::Started { what: way.label(), total: seen.len() as u64, unit: "frames" });
    let mut out = Solved {
        weights: Vec::new(),
        gazes: Vec::new(),
        heads: Vec::new(),
        fallbacks: 0,
        ms: 0.0,
        iterations: 0,
        head_degrees: 0.0,
    };
    let mut last = [[0.0; 2]; 2];
    for (index, now) in seen.iter().enumerate() {
        let image = understudy_capture::Image::from_frame(&now.frame);
        let detected = carried.as_ref().map(|carried| carried.carry(&now.detected));
        let detected = detected.as_ref().unwrap_or(&now.detected);
        let start = Instant::now();
        let report = optimiser
            .solve(&Observation { image: &image, detected, flow: now.flow.as_ref() })
            .map_err(|error| JobError::unusable(performance_name(performance), error))?;
        out.ms += start.elapsed().as_secs_f64() * 1e3;
        out.iterations += report.costs.len() - 1;
        let state = optimiser.state();
        let both =
            gazes(&state.camera, &state.head, &head.eyes, head.mesh.positions(), detected.pupils, last);
        out.fallbacks += usize::from(both.iter().any(|(_, case)| *case != GazeCase::Met));
        last = [both[0].0, both[1].0];
        let mut weights: Vec<f32> = state.weights.iter().map(|weight| *weight as f32).collect();
        // Where the eyes look is told by the pupils; lids only follow.
        for (eye, gaze) in head.eyes.iter().zip(last) {
            eye.weights_of(gaze, &mut weights);
        }
        out.weights.push(weights);
        out.gazes.push(last);
        let degrees = state.head.degrees();
        let off = (0..3).map(|axis| (degrees[axis] - now.head[axis]).abs()).fold(0.0, f64::max);
        out.head_degrees = out.head_degrees.max(off);
        out.heads.push(degrees);
        watch.event(Event::Step { done: index as u64 + 1 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    out.ms /= seen.len().max(1) as f64;
    watch.event(Event::Finished);
    Ok(out)
}

fn performance_name(performance: &Performance) -> String {
    format!("actor {}", performance.actor.seed)
}

/// Where errors are measured: on the mean head, whoever played.
struct Measure<'a> {
    head: &'a Head,
    points: FacePoints,
    truth: Vec<&'a [f32]>,
}

impl<'a> Measure<'a> {
    fn new(cast: &'a Cast, performance: &'a Performance) -> Self {
        let head = cast.mean();
        let model_region = region(head);
        let landmarks = &head.marks.points;
        let points = FacePoints::new(
            &head.mesh.triangles(),
            head.mesh.positions(),
            &model_region,
            landmarks,
            1000,
            15,
        );
        Self {
            head,
            points,
            truth: performance.take.frames.iter().map(|frame| frame.weights.as_slice()).collect(),
        }
    }

    /// Distances of a frame, mm: front and landmarks.
    fn frame(&self, index: usize, weights: &[f32]) -> [f64; 2] {
        let shape = |weights: &[f32]| {
            let mut out = self.head.mesh.positions().to_vec();
            self.head.pose(weights, None, &mut out);
            out
        };
        let error = self.points.error(&shape(weights), &shape(self.truth[index]));
        [10.0 * error.front, 10.0 * error.landmarks]
    }

    fn row(&self, name: &str, found: Option<&Vec<Vec<f32>>>, ms: Option<f64>) -> RenderRow {
        let count = self.truth.len().max(1) as f64;
        let rest = vec![0.0; self.truth.first().map_or(0, |truth| truth.len())];
        let (mut front, mut landmarks, mut worst, mut square) = (0.0, 0.0, 0.0f64, 0.0);
        for (index, truth) in self.truth.iter().enumerate() {
            let weights = found.map_or(&rest, |found| &found[index]);
            let [a, b] = self.frame(index, weights);
            (front, landmarks, worst) = (front + a, landmarks + b, worst.max(a));
            let sum: f32 = weights.iter().zip(*truth).map(|(a, b)| (a - b).powi(2)).sum();
            square += f64::from(sum) / truth.len().max(1) as f64;
        }
        RenderRow {
            name: name.into(),
            front_mm: front / count,
            worst_mm: worst,
            landmarks_mm: landmarks / count,
            weights: found.map(|_| (square / count).sqrt()),
            ms,
        }
    }
}

fn region(head: &Head) -> Vec<bool> {
    understudy_capture::inverse_rendering::front_of(head)
}

/// Controls of the rig by the names of shapes; turns of head and eyes reach its bones.
fn drive(subject: &Subject, cast: &Cast, solved: &Solved) -> Result<(Take, usize), JobError> {
    let names = cast.shape_names();
    let specs: &ControlSpecs = subject.specs();
    let sources: Vec<Vec<usize>> = specs
        .iter()
        .map(|spec| if spec.kind == ControlKind::Number { sources(&spec.name, &names) } else { Vec::new() })
        .collect();
    let mean =
        |weights: &[f32], from: &[usize]| from.iter().map(|at| weights[*at]).sum::<f32>() / from.len() as f32;
    let arkit_sources: Vec<Vec<usize>> = arkit::SHAPES.iter().map(|name| sources_of(name, &names)).collect();
    let mut take =
        Take { rate: RATE as f32, controls: Vec::new(), performances: Vec::new(), points_mm: Vec::new() };
    for (index, weights) in solved.weights.iter().enumerate() {
        let mut controls: Controls = specs.defaults();
        for ((value, spec), from) in controls.0.iter_mut().zip(specs.iter()).zip(&sources) {
            if !from.is_empty() {
                *value = mean(weights, from).clamp(spec.low, spec.high);
            }
        }
        take.controls.push(controls);
        let shapes = arkit_sources.iter().map(|from| if from.is_empty() { 0.0 } else { mean(weights, from) });
        let gaze =
            solved.gazes[index].map(|[down, left]| [left.to_degrees() as f32, -down.to_degrees() as f32]);
        take.performances.push(live::Performance {
            local: Vec::new(),
            shapes: shapes.collect(),
            head: solved.heads[index].map(|value| value as f32),
            gaze,
            strength: 1.0,
        });
    }
    turn_bones(&mut take, subject)?;
    Ok((take, sources.iter().filter(|from| !from.is_empty()).count()))
}

/// Shapes of the actor that a control of the rig follows: of its name, or of its canonical name.
fn sources(control: &str, names: &[String]) -> Vec<usize> {
    if let Some(at) = names.iter().position(|name| name == control) {
        return vec![at];
    }
    match arkit::canonical(control) {
        Some(canonical) => sources_of(canonical, names),
        None => arkit::half_of(control).map_or_else(Vec::new, |half| {
            let is_half = |name: &&String| arkit::half_of(name) == Some(half);
            names.iter().position(|name| is_half(&name)).into_iter().collect()
        }),
    }
}

/// Shapes that make a canonical one: itself, or its halves.
fn sources_of(canonical: &str, names: &[String]) -> Vec<usize> {
    let is = |name: &String| {
        arkit::canonical(name) == Some(canonical)
            || arkit::half_of(name).is_some_and(|(whole, _)| whole == canonical)
    };
    (0..names.len()).filter(|at| is(&names[*at])).collect()
}

/// The actor as the files of a take want to show it.
fn watched(name: &str, seen: &[Seen], pictures: bool) -> Watched {
    let pictures = match pictures {
        true => seen.iter().map(|now| super::watching::shrunk(&now.frame, 360)).collect(),
        false => Vec::new(),
    };
    Watched {
        source: name.into(),
        rate: RATE as f32,
        size: (SIDE, SIDE),
        frames: seen.iter().map(|_| None).collect(),
        pictures,
        searches: 0,
        seconds: 0.0,
    }
}

/// Pictures of a page.
const SHOWN: usize = 6;

fn html(
    config: &RenderConfig,
    report: &RenderReport,
    mean: &people::Actor,
    performance: &Performance,
    seen: &[Seen],
    solved: &Solved,
    measure: &Measure<'_>,
) -> String {
    let columns = [
        Column::text("way"),
        Column::number("front of the face, mm", 2).lowest_is_best(),
        Column::number("worst frame, mm", 2).lowest_is_best(),
        Column::number("landmarks, mm", 2).lowest_is_best(),
        Column::number("weights, RMSE", 3).lowest_is_best(),
        Column::number("ms per frame", 1),
    ];
    let mut table = Table::new(columns).caption("Mean distances over all frames, on the mean head (6.15)");
    let number = |value: Option<f64>| value.map_or(Cell::Text(String::new()), Cell::Number);
    for row in &report.rows {
        table = table.row([
            Cell::Text(row.name.clone()),
            Cell::Number(row.front_mm),
            Cell::Number(row.worst_mm),
            Cell::Number(row.landmarks_mm),
            number(row.weights),
            number(row.ms),
        ]);
    }
    let names: Vec<&str> = mean.head.shapes.shapes().iter().map(|shape| shape.name.as_str()).collect();
    let rest = vec![0.0; names.len()];
    let error = |weights: &dyn Fn(usize) -> Vec<f32>| -> Vec<f64> {
        (0..seen.len()).map(|index| measure.frame(index, &weights(index))[0]).collect()
    };
    let errors = LinePlot::new("Front of the face")
        .x_label("frame")
        .y_label("mm")
        .from_zero()
        .series(Series::over_index("doing nothing", &error(&|_| rest.clone())))
        .series(Series::over_index("solved", &error(&|index| solved.weights[index].clone())));
    let mut page = Page::new(format!("Capture of {}", config.actor.name))
        .subtitle("inverse rendering, frame by frame")
        .command(config.command.clone())
        .fact("frames", seen.len().to_string())
        .fact("pupils", format!("{:.2}° off in the mean", report.pupils_degrees))
        .section(
            Section::new("Errors")
                .table(table)
                .plot(&errors, "Distance per frame to the face that was drawn"),
        )
        .section(
            Section::new("Pictures")
                .paragraph("The frame of the actor, the solved pose and the true one on the rig's own head.")
                .picture(&pictures(mean, performance, seen, solved, SHOWN), "actor, solved, truth"),
        );
    let mut curves = Section::new("Weights");
    let reach = |shape: usize| performance.take.frames.iter().map(|frame| frame.weights[shape]).sum::<f32>();
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|a, b| reach(*b).total_cmp(&reach(*a)));
    for shape in order.into_iter().take(6) {
        let of = |weights: &dyn Fn(usize) -> f32| {
            (0..seen.len()).map(|index| f64::from(weights(index))).collect::<Vec<_>>()
        };
        let plot = LinePlot::new(names[shape])
            .x_label("frame")
            .y_label("weight")
            .from_zero()
            .size(560.0, 220.0)
            .series(Series::over_index("truth", &of(&|index| performance.take.frames[index].weights[shape])))
            .series(Series::over_index("solved", &of(&|index| solved.weights[index][shape])));
        curves = curves.plot(&plot, "");
    }
    page = page.section(curves);
    page.to_html()
}

/// Actor, solved and true pose of some frames.
fn pictures(
    mean: &people::Actor,
    performance: &Performance,
    seen: &[Seen],
    solved: &Solved,
    count: usize,
) -> Picture {
    let side = 256;
    let camera = mean.camera.scaled(side as f64 / SIDE as f64);
    let draw = |weights: &[f32]| {
        let mut positions: Vec<Vec3> = mean.head.mesh.positions().to_vec();
        mean.head.pose(weights, None, &mut positions);
        picture(&mean.look.render(&positions, &camera, &mean.light, [0.02; 3]).image.to_frame())
    };
    let mut sheet = Sheet::new(3).column_labels(["actor", "solved", "truth"].map(String::from));
    let shown = count.min(seen.len());
    for place in 0..shown {
        let index = (place + 1) * (seen.len() - 1) / shown.max(1);
        sheet = sheet
            .cell(picture(&super::watching::shrunk(&seen[index].frame, side)), format!("frame {index}"))
            .cell(draw(&solved.weights[index]), String::new())
            .cell(draw(&performance.take.frames[index].weights), String::new());
    }
    sheet.build()
}
