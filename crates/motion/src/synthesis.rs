//! Animation without end: a particle in the latent space of one label, moved by commands, one frame of controls after
//! another. Start at [`Synthesis::new`], give it [`Command`]s, ask for frames; with nothing to do it idles where it is.

use crate::bridge::{Bridge, route};
use crate::matrix::squared_distance;
use crate::particle::{Forces, Particle, PathPiece, RandomForce};
use crate::path::{length, resample, shortest, straight};
use crate::script::{Command, PoseName};
use crate::{LatentSpace, LinearPoses};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use thiserror::Error;
use understudy_core::Random;

/// Why a command cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SynthesisError {
    /// No such label.
    #[error("there is no label '{name}'; there are {}", known.join(", "))]
    UnknownLabel {
        /// The name.
        name: String,
        /// The labels.
        known: Vec<String>,
    },
    /// No such clip.
    #[error("there is no clip '{name}'; there are {}", known.join(", "))]
    UnknownClip {
        /// The name.
        name: String,
        /// The clips.
        known: Vec<String>,
    },
    /// A moment outside a clip.
    #[error("the clip '{clip}' lasts {seconds:.2} s, which {at} s is outside of", seconds = *milliseconds as f64 / 1000.0)]
    Outside {
        /// The clip.
        clip: String,
        /// Its length.
        milliseconds: u64,
        /// What was asked for.
        at: String,
    },
    /// No bridge leads there.
    #[error("no bridge leads from '{from}' to '{to}'")]
    NoWay {
        /// A label.
        from: String,
        /// Another.
        to: String,
    },
}

/// A clip in a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClipFrames {
    /// What it is called.
    pub name: String,
    /// Its first training frame.
    pub first: usize,
    /// How many.
    pub frames: usize,
}

/// The latent space of one label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MotionModel {
    /// Such as `happy`.
    pub label: String,
    /// From controls to few numbers.
    pub linear: LinearPoses,
    /// And to fewer.
    pub space: LatentSpace,
    /// The clips, in the order of the frames.
    pub clips: Vec<ClipFrames>,
    /// Mean latent distance from frame to frame.
    pub pace: f64,
    /// Radius that a particle keeps to its path.
    pub radius: f64,
    /// `v` of the likelihood force: a low quantile of `log p` over the training points.
    pub likely: f64,
    /// `l`: how softly it sets in.
    pub softness: f64,
}

/// Radius of a path, as a share of the distance that a point of a space has from its middle.
const RADIUS: f64 = 0.06;
/// Quantile of the density below which the likelihood force works.
const LIKELY: f64 = 0.1;

impl MotionModel {
    /// Measures what synthesis needs of a learned space.
    pub fn new(label: String, linear: LinearPoses, space: LatentSpace, clips: Vec<ClipFrames>) -> Self {
        let frames = space.len();
        let mut steps = (0.0, 0usize);
        for clip in &clips {
            for frame in clip.first + 1..clip.first + clip.frames {
                steps.0 += squared_distance(space.point(frame), space.point(frame - 1)).sqrt();
                steps.1 += 1;
            }
        }
        let middle: Vec<f64> = (0..space.dimensions())
            .map(|k| (0..frames).map(|frame| space.point(frame)[k]).sum::<f64>() / frames as f64)
            .collect();
        let spread = (0..frames).map(|frame| squared_distance(space.point(frame), &middle)).sum::<f64>();
        let spread = (spread / frames as f64).sqrt();
        let mut densities: Vec<f64> = (0..frames).map(|frame| space.density(space.point(frame)).0).collect();
        densities.sort_by(f64::total_cmp);
        let quantile = |share: f64| densities[((frames - 1) as f64 * share) as usize];
        let pace = (steps.0 / steps.1.max(1) as f64).max(1e-3 * spread.max(1e-9));
        let softness = (0.5 * (quantile(0.5) - quantile(LIKELY))).max(1e-3);
        let radius = (RADIUS * spread).max(1e-9);
        Self { label, linear, pace, radius, likely: quantile(LIKELY), softness, space, clips }
    }

    /// The likeliest controls at a point, `[C]`.
    pub fn pose(&self, x: &[f64]) -> Vec<f32> {
        self.linear.decode(&self.space.mean(x))
    }

    /// Force towards where poses are likely (5.11)–(5.12), at most `strength`; none where the density is flat.
    fn likelihood(&self, x: &[f64], strength: f64) -> Vec<f64> {
        let (density, mut gradient) = self.space.density(x);
        let size = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let share = 1.0 / (1.0 + ((density - self.likely) / self.softness).clamp(-50.0, 50.0).exp());
        let scale = if size > 1e-12 { strength * share / size } else { 0.0 };
        gradient.iter_mut().for_each(|g| *g *= scale);
        gradient
    }
}

/// Everything that a file of motion holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MotionFile {
    /// Of the file format.
    pub version: u32,
    /// Whose controls these are.
    pub rig: String,
    /// Their names, `[C]`.
    pub controls: Vec<String>,
    /// Their ranges, `[C]`; frames stay within them.
    pub ranges: Vec<(f32, f32)>,
    /// Frames per second.
    pub rate: f32,
    /// One per label.
    pub models: Vec<MotionModel>,
    /// Between them.
    pub bridges: Vec<Bridge>,
}

impl MotionFile {
    /// What this program writes and reads.
    pub const VERSION: u32 = 1;

    /// What does not fit together, in words; files come from anywhere.
    pub fn problem(&self) -> Option<String> {
        let controls = self.controls.len();
        if self.version != Self::VERSION {
            return Some(format!("is of version {}; this program knows {}", self.version, Self::VERSION));
        }
        if !(self.rate.is_finite() && self.rate > 0.0)
            || self.models.is_empty()
            || self.ranges.len() != controls
        {
            return Some("has no rate, no label, or ranges that do not fit its controls".into());
        }
        let fits = |model: &MotionModel| {
            let linear = &model.linear;
            linear.mean.len() == controls
                && linear.scale.len() == controls
                && linear.components.len() == model.space.outputs()
                && linear.components.iter().all(|row| row.len() == controls)
                && !model.clips.is_empty()
                && model.clips.iter().all(|clip| {
                    clip.frames > 0
                        && clip.first.checked_add(clip.frames).is_some_and(|end| end <= model.space.len())
                })
                && [model.pace, model.radius, model.likely, model.softness].iter().all(|v| v.is_finite())
                && model.pace > 0.0
                && model.radius > 0.0
                && model.softness > 0.0
        };
        if let Some(model) = self.models.iter().find(|model| !fits(model)) {
            return Some(format!("the parts of label '{}' do not fit together", model.label));
        }
        let bridge = |bridge: &Bridge| {
            let end = |model: usize, point: &[f64]| {
                self.models.get(model).is_some_and(|model| model.space.dimensions() == point.len())
            };
            end(bridge.from, &bridge.from_point) && end(bridge.to, &bridge.to_point)
        };
        (!self.bridges.iter().all(bridge)).then(|| "a bridge leads nowhere".into())
    }

    fn label(&self, name: &str) -> Result<usize, SynthesisError> {
        let found = self.models.iter().position(|model| model.label == name);
        found.ok_or_else(|| SynthesisError::UnknownLabel {
            name: name.into(),
            known: self.models.iter().map(|model| model.label.clone()).collect(),
        })
    }

    /// Model and clip of a name; a clip of the model `near` comes first where two have the name.
    fn clip(&self, name: &str, near: usize) -> Result<(usize, &ClipFrames), SynthesisError> {
        let models = std::iter::once(near).chain(0..self.models.len());
        let find = |model: usize| {
            self.models[model].clips.iter().find(|clip| clip.name == name).map(|clip| (model, clip))
        };
        models.into_iter().find_map(find).ok_or_else(|| SynthesisError::UnknownClip {
            name: name.into(),
            known: self.models.iter().flat_map(|m| &m.clips).map(|clip| clip.name.clone()).collect(),
        })
    }

    /// Model and training frame of a pose: the moment, or the one farthest from the clip's first frame.
    fn frame(&self, pose: &PoseName, near: usize) -> Result<(usize, usize), SynthesisError> {
        let (model, clip) = self.clip(&pose.clip, near)?;
        if let Some(at) = pose.at {
            return Ok((model, clip.first + self.moment(clip, at)?));
        }
        let space = &self.models[model].space;
        let first = space.mean(space.point(clip.first));
        let away = |frame: usize| squared_distance(&space.mean(space.point(frame)), &first);
        let frames = clip.first..clip.first + clip.frames;
        let farthest = frames.max_by(|a, b| away(*a).total_cmp(&away(*b))).unwrap_or(clip.first);
        Ok((model, farthest))
    }

    fn moment(&self, clip: &ClipFrames, at: f64) -> Result<usize, SynthesisError> {
        let frame = (at * f64::from(self.rate)).round() as usize;
        if frame < clip.frames {
            return Ok(frame);
        }
        let seconds = (clip.frames - 1) as f64 / f64::from(self.rate);
        let milliseconds = (seconds * 1000.0) as u64;
        Err(SynthesisError::Outside { clip: clip.name.clone(), milliseconds, at: at.to_string() })
    }
}

/// How frames are made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SynthesisConfig {
    /// The same seed gives the same frames.
    pub seed: u64,
    /// Forces on the particle.
    pub forces: Forces,
    /// Frames of a blend from one label to another.
    pub blend: usize,
    /// How long it stays by one of several poses to idle around, seconds.
    pub dwell: f64,
    /// `p` of the shortest way.
    pub power: f64,
}

impl Default for SynthesisConfig {
    fn default() -> Self {
        Self { seed: 1, forces: Forces::default(), blend: 12, dwell: 1.5, power: 4.0 }
    }
}

/// Frames that are planned.
enum Phase {
    /// A place of the path per frame, and the radius at the end as a share of the usual one.
    Walk { path: VecDeque<Vec<f64>>, frames: usize, narrow: f64 },
    /// Around a point.
    Hover { frames: usize },
    /// Around some poses for so many frames more.
    Idle { frames: usize, around: Vec<Vec<f64>> },
    /// Training frames as they are; the particle's distance to the first of them fades out.
    Segment { frames: std::ops::Range<usize>, offset: Vec<f64>, passed: usize },
    /// To the end of a bridge, then over it.
    Hop { to: usize },
    /// The other particle, and what is left of the blend.
    Blend { model: usize, particle: Particle, anchor: Vec<f64>, passed: usize },
    /// A command, planned when its time comes.
    Do(Command),
}

/// A character that acts.
pub struct Synthesis<'a> {
    file: &'a MotionFile,
    config: SynthesisConfig,
    model: usize,
    particle: Particle,
    /// Where the path is.
    anchor: Vec<f64>,
    narrow: f64,
    frame: u64,
    noise: RandomForce,
    random: Random,
    phases: VecDeque<Phase>,
    /// Where the last frame stood: distance to the path over the radius, and the projection over it.
    strain: (f64, f64),
}

impl<'a> Synthesis<'a> {
    /// Begins at the first frame of the first clip of a label; of the first label where none is named.
    pub fn new(
        file: &'a MotionFile,
        label: Option<&str>,
        config: SynthesisConfig,
    ) -> Result<Self, SynthesisError> {
        let model = label.map_or(Ok(0), |label| file.label(label))?;
        let space = &file.models[model].space;
        let start = space.point(file.models[model].clips[0].first).to_vec();
        let most = file.models.iter().map(|model| model.space.dimensions()).max().unwrap_or(0);
        // Of size one; every model scales it by its radius.
        let noise = RandomForce::new(config.seed, most, config.forces.random, config.forces.random_frames);
        Ok(Self {
            model,
            particle: Particle::new(start.clone()),
            anchor: start,
            narrow: 1.0,
            frame: 0,
            noise,
            random: Random::stream(config.seed, 0x6964_6c65),
            phases: VecDeque::new(),
            strain: (0.0, 0.0),
            file,
            config,
        })
    }

    /// The label that it is in.
    pub fn label(&self) -> &str {
        &self.file.models[self.model].label
    }

    /// Whether commands are left.
    pub fn is_busy(&self) -> bool {
        !self.phases.is_empty()
    }

    /// Where the last frame stood: its distance to the path, and how far it was projected back, both in radii.
    pub fn strain(&self) -> (f64, f64) {
        self.strain
    }

    /// Does something after what it does now. What cannot be done is told at once.
    pub fn command(&mut self, command: Command) -> Result<(), SynthesisError> {
        match &command {
            Command::Transition { label } => {
                self.file.label(label)?;
            }
            Command::Move { pose, .. } => {
                self.file.frame(pose, self.model)?;
            }
            Command::Idle { around, .. } => {
                around.iter().try_for_each(|pose| self.file.frame(pose, self.model).map(|_| ()))?;
            }
            Command::Play { clip, part } => {
                let (_, frames) = self.file.clip(clip, self.model)?;
                if let Some((_, to)) = part {
                    self.file.moment(frames, *to)?;
                }
            }
        }
        self.phases.push_back(Phase::Do(command));
        Ok(())
    }

    /// Controls of the next frame, `[C]`, within their ranges.
    pub fn next_frame(&mut self) -> Result<Vec<f32>, SynthesisError> {
        let pose = loop {
            if let Some(pose) = self.step()? {
                break pose;
            }
        };
        self.frame += 1;
        let bounded = pose.iter().zip(&self.file.ranges).map(|(value, (low, high))| value.clamp(*low, *high));
        Ok(bounded.collect())
    }

    /// A frame of the phase at the front; `None` where it was only planned or is done.
    fn step(&mut self) -> Result<Option<Vec<f32>>, SynthesisError> {
        let Some(phase) = self.phases.pop_front() else {
            let here = self.anchor.clone();
            self.follow(&here, 1.0);
            return Ok(Some(self.pose()));
        };
        match phase {
            Phase::Do(command) => self.plan(command)?,
            Phase::Walk { mut path, frames, narrow } => {
                let Some(to) = path.pop_front() else { return Ok(None) };
                let left = path.len() as f64 / frames.max(1) as f64;
                self.follow(&to, narrow + (1.0 - narrow) * left);
                self.phases.push_front(Phase::Walk { path, frames, narrow });
                return Ok(Some(self.pose()));
            }
            Phase::Hover { frames } => {
                let Some(frames) = frames.checked_sub(1) else { return Ok(None) };
                let here = self.anchor.clone();
                self.follow(&here, 1.0);
                self.phases.push_front(Phase::Hover { frames });
                return Ok(Some(self.pose()));
            }
            Phase::Idle { frames, around } => self.idle(frames, around),
            Phase::Segment { mut frames, mut offset, passed } => {
                let Some(frame) = frames.next() else { return Ok(None) };
                if passed == 0 {
                    let start = self.space().point(frame);
                    offset = self.particle.x.iter().zip(start).map(|(x, p)| x - p).collect();
                }
                let fade = 1.0 - ease(passed as f64 / self.config.blend.max(1) as f64);
                let point = self.space().point(frame).to_vec();
                let x: Vec<f64> = point.iter().zip(&offset).map(|(p, o)| p + fade * o).collect();
                self.particle.v = x.iter().zip(&self.particle.x).map(|(a, b)| a - b).collect();
                self.particle.x = x;
                self.anchor = point;
                self.strain = (0.0, 0.0);
                self.phases.push_front(Phase::Segment { frames, offset, passed: passed + 1 });
                return Ok(Some(self.pose()));
            }
            Phase::Hop { to } => self.plan_hop(to)?,
            Phase::Blend { model, mut particle, anchor, passed } => {
                let here = self.anchor.clone();
                self.follow(&here, 1.0);
                let strain = self.strain;
                self.swing(model, &mut particle, &anchor);
                self.strain.0 = self.strain.0.max(strain.0);
                self.strain.1 = self.strain.1.max(strain.1);
                let share = ease((passed + 1) as f64 / (self.config.blend + 1) as f64) as f32;
                let (a, b) = (self.pose(), self.file.models[model].pose(&particle.x));
                if passed + 1 < self.config.blend {
                    self.phases.push_front(Phase::Blend { model, particle, anchor, passed: passed + 1 });
                } else {
                    (self.model, self.particle, self.anchor) = (model, particle, anchor);
                }
                return Ok(Some(a.iter().zip(&b).map(|(a, b)| a + (b - a) * share).collect()));
            }
        }
        Ok(None)
    }

    fn space(&self) -> &'a LatentSpace {
        &self.file.models[self.model].space
    }

    fn pose(&self) -> Vec<f32> {
        self.file.models[self.model].pose(&self.particle.x)
    }

    /// Moves the particle on while its path goes to a point.
    fn follow(&mut self, to: &[f64], narrow: f64) {
        let mut particle = std::mem::replace(&mut self.particle, Particle::new(Vec::new()));
        let from = std::mem::replace(&mut self.anchor, to.to_vec());
        // A radius shrinks step by step, and grows back the same way.
        self.narrow = narrow.min(self.narrow + 1.0 / self.config.blend.max(1) as f64);
        self.strain = self.swung(self.model, &mut particle, &from, to, self.narrow);
        self.particle = particle;
    }

    /// Moves a particle of any model around a point.
    fn swing(&mut self, model: usize, particle: &mut Particle, around: &[f64]) {
        self.strain = self.swung(model, particle, around, around, 1.0);
    }

    fn swung(
        &self,
        model: usize,
        particle: &mut Particle,
        from: &[f64],
        to: &[f64],
        narrow: f64,
    ) -> (f64, f64) {
        let data = &self.file.models[model];
        let radius = data.radius * narrow;
        let strength = self.config.forces.likelihood * radius;
        let force = |t: f64, x: &[f64]| {
            let mut force = data.likelihood(x, strength);
            let noise = self.noise.at(self.frame as f64 + t);
            force.iter_mut().zip(noise).for_each(|(force, noise)| *force += radius * noise);
            force
        };
        let projected = particle.frame(PathPiece { from, to, radius }, &self.config.forces, force);
        (squared_distance(&particle.x, to).sqrt() / radius, projected / radius)
    }

    /// Puts what a command needs before everything else.
    fn plan(&mut self, command: Command) -> Result<(), SynthesisError> {
        let frames = |seconds: f64| (seconds * f64::from(self.file.rate)).round() as usize;
        match command {
            Command::Transition { label } => {
                let to = self.file.label(&label)?;
                self.travel(to)?;
            }
            Command::Move { pose, seconds, straight } => {
                let (model, frame) = self.file.frame(&pose, self.model)?;
                if model != self.model {
                    // There first, then again from there.
                    self.phases.push_front(Phase::Do(Command::Move { pose, seconds, straight }));
                    return self.travel(model);
                }
                let to = self.space().point(frame).to_vec();
                let walk = self.walk(&to, seconds.map(frames), straight, 1.0);
                self.phases.push_front(walk);
            }
            Command::Idle { seconds, around } => {
                let mut points = Vec::new();
                for pose in &around {
                    let (model, frame) = self.file.frame(pose, self.model)?;
                    if model != self.model {
                        self.phases.push_front(Phase::Do(Command::Idle { seconds, around }));
                        return self.travel(model);
                    }
                    points.push(self.space().point(frame).to_vec());
                }
                self.phases.push_front(Phase::Idle { frames: frames(seconds), around: points });
            }
            Command::Play { clip, part } => {
                let (model, found) = self.file.clip(&clip, self.model)?;
                if model != self.model {
                    self.phases.push_front(Phase::Do(Command::Play { clip, part }));
                    return self.travel(model);
                }
                let (from, to) = match part {
                    None => (0, found.frames - 1),
                    Some((from, to)) => (self.file.moment(found, from)?, self.file.moment(found, to)?),
                };
                let range = found.first + from..found.first + to + 1;
                let start = self.space().point(range.start).to_vec();
                let walk = self.walk(&start, None, false, 0.1);
                self.phases.push_front(Phase::Segment { frames: range, offset: Vec::new(), passed: 0 });
                self.phases.push_front(walk);
            }
        }
        Ok(())
    }

    /// Hops over bridges to another model.
    fn travel(&mut self, to: usize) -> Result<(), SynthesisError> {
        let way = route(&self.file.bridges, self.file.models.len(), self.model, to);
        let name = |model: usize| self.file.models[model].label.clone();
        let way = way.ok_or_else(|| SynthesisError::NoWay { from: name(self.model), to: name(to) })?;
        for model in way[1..].iter().rev() {
            self.phases.push_front(Phase::Hop { to: *model });
        }
        Ok(())
    }

    /// To the nearest bridge, then a blend over it.
    fn plan_hop(&mut self, to: usize) -> Result<(), SynthesisError> {
        let ends = self.file.bridges.iter().filter_map(|bridge| match (bridge.from, bridge.to) {
            (a, b) if (a, b) == (self.model, to) => Some((&bridge.from_point, &bridge.to_point)),
            (a, b) if (b, a) == (self.model, to) => Some((&bridge.to_point, &bridge.from_point)),
            _ => None,
        });
        let near = |point: &[f64]| squared_distance(point, &self.particle.x);
        let Some((here, there)) = ends.min_by(|a, b| near(a.0).total_cmp(&near(b.0))) else {
            let name = |model: usize| self.file.models[model].label.clone();
            return Err(SynthesisError::NoWay { from: name(self.model), to: name(to) });
        };
        let (here, there) = (here.clone(), there.clone());
        let walk = self.walk(&here, None, false, 1.0);
        let particle = Particle::new(there.clone());
        self.phases.push_front(Phase::Blend { model: to, particle, anchor: there, passed: 0 });
        self.phases.push_front(walk);
        Ok(())
    }

    /// A way to a point at the pace of the clips, or in so many frames.
    fn walk(&self, to: &[f64], frames: Option<usize>, direct: bool, narrow: f64) -> Phase {
        let space = self.space();
        let points: Vec<&[f64]> = (0..space.len()).map(|frame| space.point(frame)).collect();
        let corners = match direct {
            true => straight(&self.anchor, to),
            false => shortest(&points, &self.anchor, to, self.config.power),
        };
        let pace = self.file.models[self.model].pace;
        let least = if narrow < 1.0 { self.config.blend } else { 1 };
        let frames = frames.unwrap_or_else(|| (length(&corners) / pace).ceil() as usize).max(least);
        Phase::Walk { path: resample(&corners, frames).into(), frames, narrow }
    }

    /// Picks the next of the poses to idle around.
    fn idle(&mut self, frames: usize, around: Vec<Vec<f64>>) {
        if frames == 0 {
            return;
        }
        if around.is_empty() {
            self.phases.push_front(Phase::Hover { frames });
            return;
        }
        let to = around[self.random.below(around.len())].clone();
        let Phase::Walk { mut path, .. } = self.walk(&to, None, false, 1.0) else { return };
        path.truncate(frames);
        let walked = path.len();
        let dwell = (self.config.dwell * (0.5 + self.random.unit()) * f64::from(self.file.rate)).round();
        let rest = frames - walked;
        let hover = if around.len() == 1 { rest } else { rest.min(dwell as usize) };
        self.phases.push_front(Phase::Idle { frames: rest - hover, around });
        self.phases.push_front(Phase::Hover { frames: hover });
        self.phases.push_front(Phase::Walk { path, frames: walked, narrow: 1.0 });
    }
}

/// From 0 to 1 without a kink.
fn ease(t: f64) -> f64 {
    let t = t.clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

#[cfg(test)]
mod tests;
