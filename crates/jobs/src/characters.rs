//! What each character consists of and what a pose costs.

use crate::rigs::{self, Names};
use crate::{Event, JobError, Watch};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use understudy_rigs::sampling::SamplingConfig;
use understudy_rigs::{Rig, RigPose};

/// Which characters, and how long to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CharactersConfig {
    /// Rig names; empty for the embedded ones and those of the real ones whose data is present.
    pub names: Vec<String>,
    /// Random poses that are timed; the median counts.
    pub timed_poses: usize,
}

impl Default for CharactersConfig {
    fn default() -> Self {
        Self { names: Vec::new(), timed_poses: 21 }
    }
}

/// The figures of one character.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Character {
    /// What `RIG` calls it.
    pub name: String,
    /// Vertices.
    pub vertices: usize,
    /// Triangles and quads.
    pub faces: usize,
    /// Bones.
    pub bones: usize,
    /// What an animator moves.
    pub controls: usize,
    /// Named parts.
    pub segments: usize,
    /// Parts that no edge connects.
    pub islands: usize,
    /// Names of its clips.
    pub clips: Vec<String>,
    /// Median time of one pose on one thread, ms.
    pub evaluate_ms: f64,
    /// Time to build or load it, ms.
    pub build_ms: f64,
}

/// Measures the characters one after another, on one thread.
pub fn characters(config: &CharactersConfig, watch: &dyn Watch) -> Result<Vec<Character>, JobError> {
    if config.timed_poses == 0 {
        return Err(JobError::setting("timed poses", "must be one or more"));
    }
    let names = if config.names.is_empty() { Names::present(watch) } else { config.names.clone() };
    watch.event(Event::Started { what: "measuring", total: names.len() as u64, unit: "characters" });
    let pool = crate::threads::pool(1)?;
    let mut out = Vec::new();
    for name in &names {
        out.push(pool.install(|| character(name, config.timed_poses, watch))?);
        watch.event(Event::Step { done: out.len() as u64 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    watch.event(Event::Finished);
    Ok(out)
}

fn character(name: &str, timed_poses: usize, watch: &dyn Watch) -> Result<Character, JobError> {
    let start = Instant::now();
    let rig = rigs::open(name, watch)?.rig;
    let build_ms = start.elapsed().as_secs_f64() * 1e3;
    let mesh = rig.mesh();
    Ok(Character {
        name: name.into(),
        vertices: mesh.vertex_count(),
        faces: mesh.faces().len(),
        bones: rig.skeleton().map_or(0, |skeleton| skeleton.len()),
        controls: rig.specs().len(),
        segments: mesh.segments().len(),
        islands: mesh.islands().1,
        clips: rig.clips().iter().map(|clip| clip.name.clone()).collect(),
        evaluate_ms: evaluate_ms(rig.as_ref(), timed_poses)?,
        build_ms,
    })
}

/// The median time of random poses, ms.
pub(crate) fn evaluate_ms(rig: &dyn Rig, poses: usize) -> Result<f64, JobError> {
    let source = SamplingConfig::default().build(rig.specs(), &[]).map_err(JobError::sampling(rig.name()))?;
    let mut pose = RigPose::default();
    // The first pose allocates, and is not counted.
    rig.evaluate(&rig.specs().defaults(), &mut pose).map_err(JobError::rig(rig.name()))?;
    let mut times = Vec::with_capacity(poses);
    for index in 0..poses as u64 {
        let controls = source.pose(index);
        let start = Instant::now();
        rig.evaluate(&controls, &mut pose).map_err(JobError::rig(rig.name()))?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or(0.0))
}
