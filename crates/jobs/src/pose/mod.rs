//! `pose`: a body by its hands, feet and torso, a face by points that are dragged; controls come out. What can be moved is
//! found in `subject.rs`, files are written in `output.rs`, limbs are solved in `session.rs`. Start at [`pose`]; the mathematics is in `runtime::ik`.

mod output;
mod session;
mod subject;

pub use session::{HandleName, HandleSession};
pub(crate) use subject::Subject;

use crate::outputs::check_file;
use crate::stage::View;
use crate::{Event, JobError, Watch, clips, names, rigs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use understudy_core::{ControlSpec, ControlSpecs, Controls, Vec3};
use understudy_io::Scene;
use understudy_runtime::ik::{
    Anchor, Correction, Goal, LimbError, Outcome, Place, PointDrag, PointSolver, Reach, Wanted,
};

/// What to pose, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoseConfig {
    /// A rig, or a twin that learned to follow points.
    pub rig: String,
    /// The result: .csv of controls, a .png, or a .glb; nothing is written where it is left out.
    pub output: Option<PathBuf>,
    /// Handles and where they shall be, cm.
    pub reach: Vec<(String, Vec<f32>)>,
    /// Handles that stay where they stand, turned as they are.
    pub lock: Vec<String>,
    /// Where the elbow or knee of a handle points.
    pub poles: Vec<(String, Vec<f32>)>,
    /// Points of the face and where they shall be, cm: x, y and z, or x and y.
    pub points: Vec<(String, Vec<f32>)>,
    /// A table of places over time: a column per coordinate, `hand_L.x`, a row per frame.
    pub targets: Option<PathBuf>,
    /// Controls that are set before.
    pub settings: Vec<(String, f32)>,
    /// A clip to start from, frame by frame: as many frames as the targets have, or all of the clip where there are none.
    pub clip: Option<String>,
    /// A moment of the clip, seconds: one frame.
    pub time: Option<f32>,
    /// A file that names the bones of limbs.
    pub limbs: Option<PathBuf>,
    /// Share of a limb's length before it is straight in which it slows down.
    pub soft: f32,
    /// Whether joints stay within the ranges of their controls.
    pub limits: bool,
    /// Steps that correct what the face's network leaves; 0: the network alone.
    pub steps: usize,
    /// From where a picture is taken.
    pub view: String,
    /// Side of a picture, pixels.
    pub size: usize,
    /// Whether pictures show targets (red) and what was reached (green).
    pub markers: bool,
}

impl Default for PoseConfig {
    fn default() -> Self {
        Self {
            rig: String::new(),
            output: None,
            reach: Vec::new(),
            lock: Vec::new(),
            poles: Vec::new(),
            points: Vec::new(),
            targets: None,
            settings: Vec::new(),
            clip: None,
            time: None,
            limbs: None,
            soft: 0.0,
            limits: true,
            steps: 5,
            view: "three-quarter".into(),
            size: 768,
            markers: false,
        }
    }
}

/// What was reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PoseReport {
    /// The rig.
    pub rig: String,
    /// The file, where one was asked for.
    pub file: Option<PathBuf>,
    /// Frames per second, where there are several.
    pub rate: Option<f32>,
    /// What became of every handle and point that was asked for, frame by frame.
    pub frames: Vec<Vec<Reached>>,
    /// The controls that differ from their defaults, of a single pose.
    pub controls: BTreeMap<String, f32>,
}

/// What became of one target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reached {
    /// The handle or point.
    pub handle: String,
    /// Where it was asked to be, cm.
    pub target: [f32; 3],
    /// Where it is, cm.
    pub reached: [f32; 3],
    /// Between the two, mm; of points on a screen across it.
    pub distance_mm: f32,
    /// `exact`, `soft`, `too far` or `too near`, of limbs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach: Option<&'static str>,
    /// Controls that ended at an end of their range, of limbs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at_limits: Vec<String>,
    /// Of a locked handle: how far it is turned from how it stood, degrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turned_deg: Option<f32>,
}

/// A handle or point with where it rests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandleFacts {
    /// Its name.
    pub name: String,
    /// `limb`, `torso`, or the region of a face.
    pub kind: String,
    /// The bone or `vertex N`.
    pub holds: String,
    /// In the rest pose, cm.
    pub rest: [f32; 3],
}

impl From<LimbError> for JobError {
    fn from(error: LimbError) -> Self {
        Self::setting("pose", error)
    }
}

/// Names and rest positions of everything that can be moved.
pub fn handles(config: &PoseConfig, watch: &dyn Watch) -> Result<Vec<HandleFacts>, JobError> {
    let subject = Subject::open(&config.rig, config.limbs.as_deref(), watch)?;
    let mut facts = Vec::new();
    if let Some((skeleton, handles)) = subject.limbs() {
        for name in handles.names() {
            let bone = handles.bone(name).expect("one of its names");
            facts.push(HandleFacts {
                name: name.into(),
                kind: if name == "torso" { "torso" } else { "limb" }.into(),
                holds: skeleton.bones()[bone].name.clone(),
                rest: skeleton.rest_global()[bone].translation.to_array(),
            });
        }
    }
    if let Some(ik) = subject.ik() {
        for (index, (point, rest)) in ik.points().iter().zip(ik.rest()).enumerate() {
            let region = ik.region_of(index).and_then(|region| ik.regions().nth(region));
            facts.push(HandleFacts {
                name: point.name.clone(),
                kind: region.map_or("-", |(name, ..)| name).into(),
                holds: format!("vertex {}", point.vertex),
                rest: rest.to_array(),
            });
        }
    }
    match facts.is_empty() {
        true => Err(subject.nothing_to_move()),
        false => Ok(facts),
    }
}

/// Poses it and writes the file.
pub fn pose(config: &PoseConfig, watch: &dyn Watch) -> Result<PoseReport, JobError> {
    let view = View::parse(&config.view)?;
    if !(16..=8192).contains(&config.size) {
        return Err(JobError::setting("size", format!("{} is not between 16 and 8192 pixels", config.size)));
    }
    let mut inputs: Vec<PathBuf> = vec![rigs::source_file(&config.rig)];
    inputs.extend(config.targets.iter().chain(&config.limbs).cloned());
    inputs.extend(config.clip.as_deref().map(|clip| clips::file_of(clip).to_path_buf()));
    let kind = config.output.as_deref().map(output::kind).transpose()?;
    if let Some(output) = &config.output {
        check_file(output, &inputs.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    }
    let mut subject = Subject::open(&config.rig, config.limbs.as_deref(), watch)?;
    let orders = Orders::new(config, &subject, watch)?;
    let starts = starts(config, &subject, &orders, watch)?;
    let specs = match config.limits {
        true => subject.specs().clone(),
        false => free(subject.specs()),
    };
    watch.event(Event::Started { what: "posing", total: starts.len() as u64, unit: "frames" });
    let mut anchors: BTreeMap<String, Anchor> = BTreeMap::new();
    let mut solver = subject.ik().map(|ik| ik.solver());
    let (mut poses, mut frames) = (Vec::new(), Vec::new());
    for (index, start) in starts.into_iter().enumerate() {
        let mut controls = start.0;
        let order = orders.at(index);
        let mut reached = Vec::new();
        if !order.limbs.is_empty() || !config.lock.is_empty() {
            let outcomes = limbs(config, &subject, &specs, &order, &mut anchors, &mut controls)?;
            reached.extend(outcomes.into_iter().map(Reached::from));
        }
        if let (Some(solver), false) = (&mut solver, order.points.is_empty()) {
            reached.extend(face(config, solver, &order, &mut controls)?);
        }
        poses.push(Controls(controls));
        frames.push(reached);
        watch.event(Event::Step { done: index as u64 + 1 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    watch.event(Event::Finished);
    let single = match &poses[..] {
        [only] => only.0.clone(),
        _ => Vec::new(),
    };
    let moved = subject.specs().iter().zip(&single).filter(|(spec, value)| spec.default != **value);
    let controls = moved.map(|(spec, value)| (spec.name.clone(), *value)).collect();
    let rate = (poses.len() > 1).then_some(orders.rate);
    if let (Some(path), Some(kind)) = (&config.output, kind) {
        let markers: Vec<Vec<(Vec3, Vec3)>> = match config.markers {
            true => frames.iter().map(|frame| frame.iter().flat_map(marks).collect()).collect(),
            false => Vec::new(),
        };
        let look = output::Look { view: &view, size: config.size, markers: &markers };
        output::write(path, kind, &mut subject, &poses, orders.rate, &look, watch)?;
    }
    Ok(PoseReport { rig: config.rig.clone(), file: config.output.clone(), rate, frames, controls })
}

/// Where it should be, in red, and where it is, in green.
fn marks(reached: &Reached) -> [(Vec3, Vec3); 2] {
    let [target, place] = [reached.target, reached.reached].map(Vec3::from_array);
    [(target, Vec3::new(0.9, 0.15, 0.1)), (place, Vec3::new(0.1, 0.8, 0.25))]
}

/// Limbs and torso of one frame.
fn limbs(
    config: &PoseConfig,
    subject: &Subject,
    specs: &ControlSpecs,
    order: &Order,
    anchors: &mut BTreeMap<String, Anchor>,
    controls: &mut Vec<f32>,
) -> Result<Vec<Outcome>, JobError> {
    let (_, handles) = subject.limbs().ok_or_else(|| subject.nothing_to_move())?;
    let rig = subject.rig().expect("limbs belong to a rig");
    let mut goals = Vec::new();
    for name in &config.lock {
        let anchor = match anchors.get(name) {
            Some(anchor) => *anchor,
            None => session::anchor(rig, handles, controls, name)?,
        };
        anchors.insert(name.clone(), anchor);
        goals.push(Goal { handle: name.clone(), place: Place::Locked(anchor), pole: order.pole(name) });
    }
    for (name, place) in &order.limbs {
        goals.push(Goal { handle: name.clone(), place: Place::At(*place), pole: order.pole(name) });
    }
    session::solve(rig, handles, specs, config.soft, &goals, controls)
}

/// Points of one frame: those that are not asked for stay where they are as far as they can.
fn face(
    config: &PoseConfig,
    solver: &mut PointSolver,
    order: &Order,
    controls: &mut [f32],
) -> Result<Vec<Reached>, JobError> {
    let failed = |error| JobError::setting("pose", error);
    let ik = Arc::clone(solver.ik());
    let wanted = |(name, place): &(String, Vec3)| {
        let point = ik.find(name).expect("checked before");
        Wanted { point, place: *place, sight: Vec3::ZERO }
    };
    let wanted: Vec<Wanted> = order.points.iter().map(wanted).collect();
    let how = Correction { steps: config.steps, keep_derivatives: false, ..Correction::default() };
    let mut drag = PointDrag::begin(solver, controls).map_err(failed)?;
    drag.to(solver, &wanted, &[], &how, controls).map_err(failed)?;
    let mut places = vec![Vec3::ZERO; ik.points().len()];
    solver.points(controls, &mut places).map_err(failed)?;
    let (_, targets) = drag.places();
    let reached = |Wanted { point, .. }: &Wanted| {
        let off = targets[*point] - places[*point];
        Reached {
            handle: ik.points()[*point].name.clone(),
            target: targets[*point].to_array(),
            reached: places[*point].to_array(),
            distance_mm: 10.0 * if ik.dimensions() == 2 { off.truncate().length() } else { off.length() },
            reach: None,
            at_limits: Vec::new(),
            turned_deg: None,
        }
    };
    Ok(wanted.iter().map(reached).collect())
}

impl From<Outcome> for Reached {
    fn from(outcome: Outcome) -> Self {
        let reach = |reach: Reach| match reach {
            Reach::Exact => "exact",
            Reach::Soft => "soft",
            Reach::TooFar => "too far",
            Reach::TooNear => "too near",
        };
        Self {
            distance_mm: outcome.distance_mm(),
            reach: outcome.reach.map(reach),
            target: outcome.target.to_array(),
            reached: outcome.reached.to_array(),
            handle: outcome.handle,
            at_limits: outcome.at_limits,
            turned_deg: outcome.turned_deg,
        }
    }
}

/// The same controls with full turns for ranges.
fn free(specs: &ControlSpecs) -> ControlSpecs {
    let widen = |spec: &ControlSpec| match &spec.kind {
        understudy_core::ControlKind::Joint { channel, .. } => {
            let most = if (*channel as usize) < 3 { 180.0 } else { 1e4 };
            ControlSpec { low: spec.low.min(-most), high: spec.high.max(most), ..spec.clone() }
        }
        understudy_core::ControlKind::Number => spec.clone(),
    };
    ControlSpecs::new(specs.iter().map(widen).collect()).expect("wider ranges of valid controls")
}

/// The pose that each frame starts from.
fn starts(
    config: &PoseConfig,
    subject: &Subject,
    orders: &Orders,
    watch: &dyn Watch,
) -> Result<Vec<Controls>, JobError> {
    let specs = subject.specs();
    let mut starts = match (&config.clip, config.time) {
        (None, Some(_)) => return Err(JobError::setting("time", "needs a clip")),
        (None, None) => vec![specs.defaults(); orders.frames(None)],
        (Some(clip), time) => {
            let rig = subject.rig().ok_or_else(|| JobError::setting("clip", "needs the rig itself"))?;
            let clip = clips::resolve(rig, clip, watch)?;
            if let Some(time) = time.filter(|time| !(0.0..=clip.duration).contains(time)) {
                let problem =
                    format!("{time} s is outside the clip '{}', which lasts {} s", clip.name, clip.duration);
                return Err(JobError::setting("time", problem));
            }
            let frames = orders.frames(time.is_none().then_some(clip.duration));
            let moments = (0..frames).map(|frame| match time {
                Some(time) => f64::from(time),
                None => (frame as f64 / f64::from(orders.rate)).min(f64::from(clip.duration)),
            });
            clip.at(moments, specs).map_err(|error| JobError::unusable(rig.name(), error))?
        }
    };
    let bad = JobError::controls(&config.rig, specs);
    for (name, value) in &config.settings {
        specs.with([(name.as_str(), *value)]).map_err(&bad)?;
        let control = specs.find(name).expect("it was just found");
        starts.iter_mut().for_each(|controls| controls.0[control] = *value);
    }
    Ok(starts)
}

/// What is asked for, frame by frame.
struct Orders {
    fixed: Order,
    moving: Vec<Order>,
    rate: f32,
}

/// What is asked for in one frame.
#[derive(Clone, Default)]
struct Order {
    limbs: Vec<(String, Vec3)>,
    poles: Vec<(String, Vec3)>,
    /// NaN as z where only x and y are given.
    points: Vec<(String, Vec3)>,
}

impl Order {
    fn pole(&self, name: &str) -> Option<Vec3> {
        self.poles.iter().find(|(handle, _)| handle == name).map(|(_, pole)| *pole)
    }
}

impl Orders {
    fn new(config: &PoseConfig, subject: &Subject, watch: &dyn Watch) -> Result<Self, JobError> {
        let mut fixed = Order::default();
        for (option, list) in [("reach", &config.reach), ("pole", &config.poles), ("point", &config.points)] {
            for (name, numbers) in list {
                let place = place(option, name, numbers)?;
                if option == "point" {
                    subject.check_point(name, numbers.len())?;
                    fixed.points.push((name.clone(), place));
                } else {
                    subject.check_handle(option, name)?;
                    let target = if option == "pole" { &mut fixed.poles } else { &mut fixed.limbs };
                    target.push((name.clone(), place));
                }
            }
        }
        for name in &config.lock {
            subject.check_handle("lock", name)?;
        }
        let (mut moving, mut rate) = (Vec::new(), understudy_core::Clip::RATE);
        if let Some(path) = &config.targets {
            (moving, rate) = table(path, subject, watch)?;
        }
        let all = fixed.limbs.iter().chain(moving.first().into_iter().flat_map(|order| &order.limbs));
        let mut seen: Vec<&str> = Vec::new();
        for name in all.map(|(name, _)| name.as_str()).chain(config.lock.iter().map(String::as_str)) {
            if seen.contains(&name) {
                return Err(JobError::setting(name, "is asked for twice: it cannot be in two places"));
            }
            seen.push(name);
        }
        let points = fixed.points.iter().chain(moving.first().into_iter().flat_map(|order| &order.points));
        let points: Vec<&str> = points.map(|(name, _)| name.as_str()).collect();
        if let Some(twice) = (1..points.len()).find(|place| points[..*place].contains(&points[*place])) {
            let problem = "is asked for twice: it cannot be in two places";
            return Err(JobError::setting(format!("point '{}'", points[twice]), problem));
        }
        if seen.is_empty() && points.is_empty() && moving.is_empty() {
            let problem = "nothing is asked for: --reach, --lock, --point or --targets say what; --list names what can be moved";
            return Err(JobError::setting("pose", problem));
        }
        Ok(Self { fixed, moving, rate })
    }

    /// Frames: of the table, else of the whole clip where one is given without a moment.
    fn frames(&self, whole: Option<f32>) -> usize {
        match (&self.moving[..], whole) {
            ([], Some(duration)) => (duration * self.rate).round() as usize + 1,
            (moving, _) => moving.len().max(1),
        }
    }

    fn at(&self, frame: usize) -> Order {
        let mut order = self.fixed.clone();
        if let Some(moving) = self.moving.get(frame) {
            order.limbs.extend(moving.limbs.iter().cloned());
            order.points.extend(moving.points.iter().cloned());
        }
        order
    }
}

fn place(option: &str, name: &str, numbers: &[f32]) -> Result<Vec3, JobError> {
    let wrong = |problem: &str| Err(JobError::setting(format!("{option} '{name}'"), problem));
    if numbers.iter().any(|number| !number.is_finite()) {
        return wrong("a target must be finite");
    }
    match (numbers, option) {
        (&[x, y, z], _) => Ok(Vec3::new(x, y, z)),
        (&[x, y], "point") => Ok(Vec3::new(x, y, f32::NAN)),
        (_, "point") => wrong("X,Y,Z or X,Y in cm are wanted"),
        _ => wrong("X,Y,Z in cm are wanted"),
    }
}

/// Places over time from a file.
fn table(path: &Path, subject: &Subject, watch: &dyn Watch) -> Result<(Vec<Order>, f32), JobError> {
    const WANTED: &str = "a table of targets with columns such as hand_L.x, hand_L.y, hand_L.z";
    let scene = crate::inputs::open(path, WANTED, watch)?;
    let Scene::Weights(table) = scene else { return Err(crate::inputs::wrong_kind(path, &scene, WANTED)) };
    let rate = table.rate.unwrap_or_else(|| {
        let rate = understudy_core::Clip::RATE;
        let message = format!("{}: names no frame rate; {rate} per second assumed", path.display());
        watch.event(Event::Warning { message: &message });
        rate
    });
    let mut columns: BTreeMap<&str, [Option<usize>; 3]> = BTreeMap::new();
    for (column, name) in table.names.iter().enumerate() {
        let axis = name.rsplit_once('.').and_then(|(stem, axis)| Some((stem, "xyz".find(axis)?)));
        let Some((stem, axis)) = axis.filter(|_| name.len() > 2) else {
            return Err(JobError::unusable(path, format!("column '{name}': {WANTED}")));
        };
        columns.entry(stem).or_default()[axis] = Some(column);
    }
    let mut orders = vec![Order::default(); table.frames.len()];
    for (name, axes) in columns {
        let given = axes.iter().flatten().count();
        let limb = subject.check_handle("targets", name).is_ok();
        if !limb {
            subject.check_point(name, given).map_err(|error| JobError::unusable(path, error))?;
        }
        let complete = axes[0].is_some() && axes[1].is_some() && (axes[2].is_some() || !limb);
        if !complete {
            return Err(JobError::unusable(
                path,
                format!("'{name}' lacks a coordinate: x, y and z are wanted"),
            ));
        }
        for (order, row) in orders.iter_mut().zip(&table.frames) {
            let at = |axis: usize| axes[axis].map_or(f32::NAN, |column| row[column]);
            let target = (name.to_owned(), Vec3::new(at(0), at(1), at(2)));
            if limb { order.limbs.push(target) } else { order.points.push(target) }
        }
    }
    Ok((orders, rate))
}

/// A name that is none of these.
pub(crate) fn unknown(what: &str, name: &str, owner: &str, known: &[&str]) -> JobError {
    names::unknown(what, name, owner, known.iter().copied())
}

#[cfg(test)]
mod tests;
