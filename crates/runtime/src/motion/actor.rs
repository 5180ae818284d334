//! One character that acts: a particle in the latent space of one label, moved by commands, one frame of controls after
//! another. With nothing to do it idles where it is. People use it through [`MotionPlayer`](super::MotionPlayer) and
//! [`Crowd`](super::Crowd).

use super::command::{Command, PoseName};
use super::error::CommandError;
use super::particle::{Forces, Particle, PathPiece};
use super::path::Walk;
use super::point::LatentPoint;
use super::random_force::RandomForce;
use super::route::{Hop, hops, route};
use super::space::Workspace;
use super::{Model, Motion};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use understudy_core::Random;

/// How frames are made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlayConfig {
    /// The same seed gives the same frames.
    pub seed: u64,
    /// Forces on the particle.
    pub forces: Forces,
    /// Frames of a blend from one label to another.
    pub blend: u32,
    /// How long it stays by one of several poses to idle around, seconds on average.
    pub dwell: f64,
}

impl Default for PlayConfig {
    fn default() -> Self {
        Self { seed: 1, forces: Forces::default(), blend: 12, dwell: 1.5 }
    }
}

impl PlayConfig {
    /// Whether its numbers are such that can be played with.
    pub fn check(&self) -> Result<(), CommandError> {
        let Forces { stiffness, drag, random, random_frames, likelihood } = self.forces;
        let numbers = [
            ("the stiffness", stiffness, 5),
            ("the drag", drag, 1),
            ("the random force", random, 1),
            ("the likelihood force", likelihood, 1),
            ("the frames of the random force", random_frames, 10_000),
            ("the blend", f64::from(self.blend), 10_000),
            ("the dwell", self.dwell, 3600),
        ];
        for (what, value, high) in numbers {
            if !(0.0..=f64::from(high)).contains(&value) || (what.contains("frames") && value < 1e-3) {
                return Err(CommandError::Number { what, value: value.to_string(), low: 0, high });
            }
        }
        Ok(())
    }
}

/// Commands that wait, at most.
const MOST_WAITING: usize = 1024;
/// The share of the radius that is left where a clip is about to be played.
const NARROW: f64 = 0.1;
/// The longest walk without a time of its own, frames.
const LONGEST_WALK: f64 = 1e6;

/// Where a character stands after a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MotionSituation {
    /// Index of the label that it is in.
    pub label: usize,
    /// What it does: `idle`, `move`, `transition`, `play` or `mix`.
    pub doing: &'static str,
    /// Where the particle is.
    pub position: LatentPoint,
    /// Where its path is.
    pub path: LatentPoint,
    /// The radius it keeps.
    pub radius: f64,
    /// Its distance to the path, in radii.
    pub distance: f64,
    /// How far the projection at the frame's end moved it, in radii.
    pub projected: f64,
    /// Frames since it began.
    pub frame: u64,
}

/// A particle of another label that is mixed in.
#[derive(Debug, Clone, Copy)]
struct MixedIn {
    model: usize,
    particle: Particle,
    anchor: LatentPoint,
    weight: f32,
}

/// Frames that are planned.
#[derive(Debug, Clone)]
enum Phase {
    /// The walk that is begun; the radius at its end as a share of the usual one.
    Walk { narrow: f64 },
    /// Around a point.
    Hover { frames: u32 },
    /// Around some poses for so many frames more; `None` until something else waits.
    Idle { frames: Option<u32>, around: Vec<u32>, dwell: f64 },
    /// Training frames as they are; the particle's distance to the first of them fades out.
    Segment { next: u32, end: u32, offset: LatentPoint, passed: u32 },
    /// To the end of a bridge, then over it.
    Hop(Hop),
    /// The other particle, and what is left of the blend.
    Blend { model: usize, particle: Particle, anchor: LatentPoint, passed: u32 },
    /// Other particles, how much of them is in already, and how many frames are left.
    Mix { parts: Vec<MixedIn>, passed: u32, left: u32 },
    /// A command, planned when its time comes.
    Do(Command),
}

/// A character that acts.
#[derive(Debug, Clone)]
pub(super) struct Actor {
    config: PlayConfig,
    pub model: usize,
    pub particle: Particle,
    /// Where the path is.
    pub anchor: LatentPoint,
    narrow: f64,
    frame: u64,
    noise: RandomForce,
    /// The random force at the beginning, in the middle and at the end of the frame.
    gusts: [LatentPoint; 3],
    random: Random,
    phases: VecDeque<Phase>,
    walk: Walk,
    doing: &'static str,
    /// Where the last frame stood: distance to the path over the radius, and the projection over it.
    strain: (f64, f64),
}

impl Actor {
    /// Begins at the first frame of the first clip of a label; of the first label where none is named.
    pub fn new(motion: &Motion, label: Option<&str>, config: PlayConfig) -> Result<Self, CommandError> {
        config.check()?;
        let model = label.map_or(Ok(0), |label| motion.label(label))?;
        let data = &motion.models()[model];
        let start = data.space().point(data.clips()[0].first);
        let most = motion.models().iter().map(|model| model.space().dimensions()).max().unwrap_or(0);
        let frames = motion.models().iter().map(|model| model.space().len()).max().unwrap_or(0);
        // Of size one; every model scales it by its radius.
        let noise = RandomForce::new(config.seed, most, config.forces.random, config.forces.random_frames);
        Ok(Self {
            model,
            particle: Particle::new(start),
            anchor: start,
            narrow: 1.0,
            frame: 0,
            gusts: [noise.now(); 3],
            noise,
            random: Random::stream(config.seed, 0x6964_6c65),
            phases: VecDeque::with_capacity(16),
            walk: Walk::with_room(frames),
            doing: "idle",
            strain: (0.0, 0.0),
            config,
        })
    }

    /// Whether commands are left.
    pub fn is_busy(&self) -> bool {
        !self.phases.is_empty()
    }

    /// At rest at a place of a model, with nothing to do.
    pub fn put(&mut self, model: usize, x: LatentPoint) {
        self.phases.clear();
        (self.model, self.particle, self.anchor) = (model, Particle::new(x), x);
        (self.narrow, self.strain) = (1.0, (0.0, 0.0));
    }

    pub fn situation(&self, motion: &Motion) -> MotionSituation {
        MotionSituation {
            label: self.model,
            doing: self.doing,
            position: self.particle.x,
            path: self.anchor,
            radius: motion.models()[self.model].radius() * self.narrow,
            distance: self.strain.0,
            projected: self.strain.1,
            frame: self.frame,
        }
    }

    /// The corners of the path that it still has to walk, from where the path is now.
    pub fn path<'a>(&'a self, motion: &'a Motion) -> impl Iterator<Item = LatentPoint> + 'a {
        let walks = matches!(self.phases.front(), Some(Phase::Walk { .. })) && self.walk.left > 0;
        let space = motion.models()[self.model].space();
        let rest = walks.then(|| self.walk.rest(|frame| space.point(frame)));
        std::iter::once(self.anchor).chain(rest.into_iter().flatten())
    }

    /// Does something after what it does now. What cannot be done is told at once.
    pub fn command(&mut self, motion: &Motion, command: Command) -> Result<(), CommandError> {
        command.check()?;
        let reach = |model: usize| {
            let way = route(motion.bridges(), motion.models().len(), self.model, model);
            let name = |model: usize| motion.models()[model].label().to_owned();
            way.map(|_| ()).ok_or_else(|| CommandError::NoWay { from: name(self.model), to: name(model) })
        };
        let known = |pose: &PoseName| motion.frame(pose, self.model).map(|(model, _)| model);
        match &command {
            Command::Transition { label } => reach(motion.label(label)?)?,
            Command::Move { pose, .. } => reach(known(pose)?)?,
            Command::Idle { around, .. } => {
                if let Some(first) = around.first() {
                    let model = known(first)?;
                    reach(model)?;
                    for pose in around {
                        if motion.frame(pose, model)?.0 != model {
                            let problem = format!("'{}' and '{}' are of two labels", first.clip, pose.clip);
                            return Err(CommandError::Text(problem));
                        }
                    }
                }
            }
            Command::Play { clip, part } => {
                let (model, frames) = motion.clip(clip, self.model)?;
                if let Some((_, to)) = part {
                    motion.moment(frames, *to)?;
                }
                reach(model)?;
            }
            Command::Mix { parts, .. } => parts.iter().try_for_each(|part| known(&part.pose).map(|_| ()))?,
            Command::Stop => {
                self.stop();
                return Ok(());
            }
        }
        if self.phases.len() >= MOST_WAITING {
            return Err(CommandError::TooMany { most: MOST_WAITING });
        }
        // What idles until something else is wanted stops now, not at the end of its dwell.
        if let Some(place) = self.phases.iter().position(|p| matches!(p, Phase::Idle { frames: None, .. })) {
            self.phases.drain(..=place);
        }
        self.phases.push_back(Phase::Do(command));
        Ok(())
    }

    /// Leaves everything but what fades: a walk is braked, a blend is finished, a mix is faded out.
    fn stop(&mut self) {
        let blend = self.config.blend;
        let front = self.phases.pop_front();
        self.phases.clear();
        self.narrow = 1.0;
        match front {
            Some(Phase::Walk { .. }) => {
                self.walk.brake();
                self.phases.push_back(Phase::Walk { narrow: 1.0 });
            }
            Some(Phase::Blend { .. }) => self.phases.extend(front),
            Some(Phase::Mix { parts, passed, left }) => {
                self.phases.push_back(Phase::Mix { parts, passed, left: left.min(passed.min(blend)) });
            }
            _ => {}
        }
    }

    /// Writes the controls of the next frame, `[C]`, numbers within their ranges.
    pub fn step(&mut self, motion: &Motion, work: &mut Workspace, out: &mut [f32]) {
        self.gusts[0] = self.noise.now();
        for gust in 1..3 {
            self.noise.advance_half();
            self.gusts[gust] = self.noise.now();
        }
        while !self.phase(motion, work, out) {}
        self.frame += 1;
    }

    /// A frame of the phase at the front; false where it was only planned or is done.
    fn phase(&mut self, motion: &Motion, work: &mut Workspace, out: &mut [f32]) -> bool {
        let space = motion.models()[self.model].space();
        let Some(phase) = self.phases.pop_front() else {
            self.doing = "idle";
            self.hover(motion, work, out);
            return true;
        };
        match phase {
            Phase::Do(command) => self.plan(motion, work, command),
            Phase::Walk { narrow } => {
                let Some(to) = self.walk.advance(|frame| space.point(frame)) else { return false };
                let left = f64::from(self.walk.left) / f64::from(self.walk.frames.max(1));
                self.follow(motion, work, to, narrow + (1.0 - narrow) * left);
                self.pose(motion, work, out);
                if self.walk.left > 0 {
                    self.phases.push_front(Phase::Walk { narrow });
                }
                return true;
            }
            Phase::Hover { frames } => {
                let Some(frames) = frames.checked_sub(1) else { return false };
                self.hover(motion, work, out);
                if frames > 0 {
                    self.phases.push_front(Phase::Hover { frames });
                }
                return true;
            }
            Phase::Idle { frames, around, dwell } => self.idle(motion, work, frames, around, dwell),
            Phase::Segment { next, end, mut offset, passed } => {
                let point = space.point(next as usize);
                if passed == 0 {
                    offset = self.particle.x - point;
                }
                let fade = 1.0 - ease(f64::from(passed + 1) / f64::from(self.config.blend.max(1)));
                let x = point + offset * fade;
                self.particle = Particle::moving(x, x - self.particle.x);
                (self.anchor, self.narrow, self.strain) = (point, 1.0, (0.0, 0.0));
                self.pose(motion, work, out);
                if next < end {
                    let phase = Phase::Segment { next: next + 1, end, offset, passed: passed + 1 };
                    self.phases.push_front(phase);
                }
                return true;
            }
            Phase::Hop(hop) => self.plan_hop(motion, work, hop),
            Phase::Blend { model, mut particle, anchor, passed } => {
                self.hover(motion, work, out);
                let strain = self.swing(motion, work, model, &mut particle, anchor, anchor, 1.0);
                self.strain = (self.strain.0.max(strain.0), self.strain.1.max(strain.1));
                let share = ease(f64::from(passed + 1) / f64::from(self.config.blend + 1)) as f32;
                out.iter_mut().for_each(|value| *value *= 1.0 - share);
                self.add(motion, work, model, particle.x, share, out);
                if passed + 1 < self.config.blend {
                    self.phases.push_front(Phase::Blend { model, particle, anchor, passed: passed + 1 });
                } else {
                    (self.model, self.particle, self.anchor) = (model, particle, anchor);
                }
                return true;
            }
            Phase::Mix { mut parts, passed, left } => {
                let Some(left) = left.checked_sub(1) else { return false };
                let blend = f64::from(self.config.blend + 1);
                let share = ease(f64::from(passed + 1) / blend).min(ease(f64::from(left + 1) / blend)) as f32;
                self.hover(motion, work, out);
                let taken: f32 = parts.iter().map(|part| share * part.weight).sum();
                out.iter_mut().for_each(|value| *value *= 1.0 - taken);
                for part in &mut parts {
                    let MixedIn { model, anchor, .. } = *part;
                    let own = self.swing(motion, work, model, &mut part.particle, anchor, anchor, 1.0);
                    self.strain = (self.strain.0.max(own.0), self.strain.1.max(own.1));
                    self.add(motion, work, model, part.particle.x, share * part.weight, out);
                }
                self.phases.push_front(Phase::Mix { parts, passed: passed + 1, left });
                return true;
            }
        }
        false
    }

    /// Stays around the point that the path is at.
    fn hover(&mut self, motion: &Motion, work: &mut Workspace, out: &mut [f32]) {
        self.follow(motion, work, self.anchor, 1.0);
        self.pose(motion, work, out);
    }

    fn pose(&self, motion: &Motion, work: &mut Workspace, out: &mut [f32]) {
        motion.models()[self.model].pose_into(self.particle.x, motion.controls(), work, out);
    }

    /// `out += weight · pose`.
    fn add(
        &self,
        motion: &Motion,
        work: &mut Workspace,
        model: usize,
        x: LatentPoint,
        weight: f32,
        out: &mut [f32],
    ) {
        let mut other = std::mem::take(&mut work.controls);
        motion.models()[model].pose_into(x, motion.controls(), work, &mut other);
        out.iter_mut().zip(&other).for_each(|(value, other)| *value += weight * other);
        work.controls = other;
    }

    /// A frame of the path to a place, the radius a share of the usual one.
    fn follow(&mut self, motion: &Motion, work: &mut Workspace, to: LatentPoint, narrow: f64) {
        let (from, mut particle) = (self.anchor, self.particle);
        // A radius does not grow at once: what was narrowed for a clip opens again over a blend.
        let opening = (1.0 - NARROW) / f64::from(self.config.blend.max(1));
        self.narrow = narrow.min(self.narrow + opening);
        self.strain = self.swing(motion, work, self.model, &mut particle, from, to, self.narrow);
        (self.particle, self.anchor) = (particle, to);
    }

    /// A frame of any particle in any model; gives distance and projection in radii.
    fn swing(
        &self,
        motion: &Motion,
        work: &mut Workspace,
        model: usize,
        particle: &mut Particle,
        from: LatentPoint,
        to: LatentPoint,
        narrow: f64,
    ) -> (f64, f64) {
        let data = &motion.models()[model];
        let radius = data.radius() * narrow;
        let strength = self.config.forces.likelihood * radius;
        let dimensions = data.space().dimensions();
        let gusts = self.gusts.map(|gust| LatentPoint::new(gust.coordinates(dimensions)) * radius);
        let force = |t: f64, x: LatentPoint| {
            let gust = match t {
                t if t < 0.25 => gusts[0],
                t if t < 0.75 => gusts[1],
                _ => gusts[2],
            };
            data.likelihood(x, strength, work) + gust
        };
        let projected = particle.frame(PathPiece { from, to, radius }, &self.config.forces, force);
        (particle.x.distance(to) / radius, projected / radius)
    }

    /// Puts what a command needs before everything else.
    fn plan(&mut self, motion: &Motion, work: &mut Workspace, command: Command) {
        let frames = |seconds: f64| (seconds * f64::from(motion.rate())).round() as u32;
        // Names and ways were checked when the command came; what a stop or a hop changed since cannot make them wrong.
        match command {
            Command::Transition { label } => {
                if let Ok(to) = motion.label(&label) {
                    self.doing = "transition";
                    self.travel(motion, to);
                }
            }
            Command::Move { pose, seconds, straight } => {
                let Ok((model, frame)) = motion.frame(&pose, self.model) else { return };
                if model != self.model {
                    // There first, then again from there.
                    self.doing = "transition";
                    return self.leave_for(motion, model, Command::Move { pose, seconds, straight });
                }
                self.doing = "move";
                let to = motion.models()[model].space().point(frame);
                self.begin_walk(motion, work, to, seconds.map(frames), straight, 1.0);
            }
            Command::Idle { seconds, around, dwell } => {
                let mut points = Vec::with_capacity(around.len());
                for pose in &around {
                    let Ok((model, frame)) = motion.frame(pose, self.model) else { return };
                    if model != self.model {
                        self.doing = "transition";
                        return self.leave_for(motion, model, Command::Idle { seconds, around, dwell });
                    }
                    points.push(frame as u32);
                }
                self.doing = "idle";
                let dwell = dwell.unwrap_or(self.config.dwell);
                self.phases.push_front(Phase::Idle { frames: seconds.map(frames), around: points, dwell });
            }
            Command::Play { clip, part } => {
                let Ok((model, found)) = motion.clip(&clip, self.model) else { return };
                if model != self.model {
                    self.doing = "transition";
                    return self.leave_for(motion, model, Command::Play { clip, part });
                }
                let (from, to) = match part {
                    None => (0, found.frames - 1),
                    Some((from, to)) => match (motion.moment(found, from), motion.moment(found, to)) {
                        (Ok(from), Ok(to)) => (from, to),
                        _ => return,
                    },
                };
                self.doing = "play";
                let (next, end) = ((found.first + from) as u32, (found.first + to) as u32);
                self.phases.push_front(Phase::Segment {
                    next,
                    end,
                    offset: LatentPoint::default(),
                    passed: 0,
                });
                let start = motion.models()[model].space().point(next as usize);
                self.begin_walk(motion, work, start, None, false, NARROW);
            }
            Command::Mix { seconds, parts } => {
                self.doing = "mix";
                let part = |part: &super::MixPart| {
                    let (model, frame) = motion.frame(&part.pose, self.model).ok()?;
                    let anchor = motion.models()[model].space().point(frame);
                    let weight = part.weight as f32;
                    Some(MixedIn { model, particle: Particle::new(anchor), anchor, weight })
                };
                let parts = parts.iter().filter_map(part).collect();
                self.phases.push_front(Phase::Mix { parts, passed: 0, left: frames(seconds) });
            }
            Command::Stop => {}
        }
    }

    /// To another model, and the command again from there.
    fn leave_for(&mut self, motion: &Motion, model: usize, command: Command) {
        self.phases.push_front(Phase::Do(command));
        if !self.travel(motion, model) {
            self.phases.pop_front();
        }
    }

    /// Hops over bridges to another model; false where none leads there.
    fn travel(&mut self, motion: &Motion, to: usize) -> bool {
        let paces: Vec<f64> = motion.models().iter().map(Model::pace).collect();
        let way = hops(motion.bridges(), &paces, self.model, self.particle.x, to);
        let Some(way) = way else { return false };
        way.into_iter().rev().for_each(|hop| self.phases.push_front(Phase::Hop(hop)));
        true
    }

    /// To a bridge, then a blend over it.
    fn plan_hop(&mut self, motion: &Motion, work: &mut Workspace, hop: Hop) {
        let Hop { to, here, there } = hop;
        let particle = Particle::new(there);
        self.phases.push_front(Phase::Blend { model: to, particle, anchor: there, passed: 0 });
        self.begin_walk(motion, work, here, None, false, 1.0);
    }

    /// Begins the way to a point at the pace of the clips, or in so many frames.
    fn begin_walk(
        &mut self,
        motion: &Motion,
        work: &mut Workspace,
        to: LatentPoint,
        frames: Option<u32>,
        straight: bool,
        narrow: f64,
    ) {
        self.plan_walk(motion, work, to, frames, straight, narrow);
        self.phases.push_front(Phase::Walk { narrow });
    }

    fn plan_walk(
        &mut self,
        motion: &Motion,
        work: &mut Workspace,
        to: LatentPoint,
        frames: Option<u32>,
        straight: bool,
        narrow: f64,
    ) {
        let model = &motion.models()[self.model];
        let space = model.space();
        (self.walk.from, self.walk.to) = (self.anchor, to);
        self.walk.middle.clear();
        if !straight {
            let ends = [self.anchor, to];
            let place = |frame| space.point(frame);
            work.search.shortest(space.len(), place, space.edges(), ends, &mut self.walk.middle);
        }
        let length = self.walk.length(|frame| space.point(frame));
        let least = if narrow < 1.0 { self.config.blend.max(1) } else { 1 };
        let own = (length / model.pace()).ceil().min(LONGEST_WALK) as u32;
        self.walk.begin(length, frames.unwrap_or_else(|| Walk::eased(own)).max(least));
    }

    /// Picks the next of the poses to idle around.
    fn idle(
        &mut self,
        motion: &Motion,
        work: &mut Workspace,
        frames: Option<u32>,
        around: Vec<u32>,
        dwell: f64,
    ) {
        let over = match frames {
            Some(frames) => frames == 0,
            None => !self.phases.is_empty(),
        };
        if over {
            return;
        }
        if around.is_empty() {
            let hover = frames.unwrap_or(1);
            if frames.is_none() {
                self.phases.push_front(Phase::Idle { frames, around, dwell });
            }
            self.phases.push_front(Phase::Hover { frames: hover });
            return;
        }
        let frame = around[self.random.below(around.len())] as usize;
        let to = motion.models()[self.model].space().point(frame);
        self.plan_walk(motion, work, to, None, false, 1.0);
        let drawn = dwell * (0.5 + self.random.unit()) * f64::from(motion.rate());
        let mut hover = drawn.round() as u32;
        let mut rest = frames;
        if let Some(frames) = frames {
            // Where there is no time to arrive, as far as the time goes.
            self.walk.cut(frames);
            let after = frames - self.walk.left;
            hover = if around.len() == 1 { after } else { hover.min(after) };
            rest = Some(after - hover);
        }
        self.phases.push_front(Phase::Idle { frames: rest, around, dwell });
        self.phases.push_front(Phase::Hover { frames: hover });
        self.phases.push_front(Phase::Walk { narrow: 1.0 });
    }
}

/// From 0 to 1 without a kink.
fn ease(t: f64) -> f64 {
    let t = t.clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}
