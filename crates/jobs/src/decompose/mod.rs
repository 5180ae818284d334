//! `learn lbs`: any animation of a mesh as a plain skinned, animated GLB (skinning decomposition). Start at
//! [`decompose`]; what can be read is in `source`, the mathematics in `understudy_learn::decomposition`.

mod source;

use crate::outputs::check_file;
use crate::watch::Remember;
use crate::{Event, JobError, Watch, threads};
use serde::{Deserialize, Serialize};
use source::Source;
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_core::metrics::{distances, squared_distance, summarise};
use understudy_core::{Affine3A, Bone, JointClip, JointPose, JointTransform, Quat, Skeleton, Vec3};
use understudy_io::Format;
use understudy_io::gltf::{GltfScene, to_glb_bytes};
use understudy_learn::decomposition::{Decomposed, DecompositionProgress};
pub use understudy_learn::decomposition::{DecompositionSettings, Stop};

/// Influences of a vertex that glTF guarantees: what every engine plays.
const GUARANTEED_INFLUENCES: usize = 4;

/// What to decompose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DecomposeConfig {
    /// A dataset folder, an `.npz` of frames, a glTF animation, or `.obj` files (or a folder of them).
    pub data: Vec<PathBuf>,
    /// The GLB file.
    pub output: PathBuf,
    /// Bones, influences, iterations.
    pub settings: DecompositionSettings,
    /// Which clip of a glTF file; its first when `None`.
    pub clip: Option<String>,
    /// Frames a second, where the data does not say or says it wrong; `None` for the data's own, or 30.
    pub rate: Option<f32>,
    /// At most so many frames, spread evenly; all when `None`.
    pub frames: Option<usize>,
    /// Threads; the file does not depend on it.
    pub threads: usize,
}

impl Default for DecomposeConfig {
    fn default() -> Self {
        Self {
            data: Vec::new(),
            output: PathBuf::new(),
            settings: DecompositionSettings::default(),
            clip: None,
            rate: None,
            frames: None,
            threads: threads::available(),
        }
    }
}

impl DecomposeConfig {
    fn check(&self) -> Result<(), JobError> {
        self.settings.check().map_err(|error| JobError::setting("learn lbs", error))?;
        if self.data.is_empty() {
            return Err(JobError::setting("data", "no animation is named"));
        }
        if let Some(rate) = self.rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return Err(JobError::setting(
                "rate",
                format!("{rate} frames per second; more than 0 is wanted"),
            ));
        }
        if self.frames == Some(0) {
            return Err(JobError::setting("frames", "at least one is wanted"));
        }
        if Format::of(&self.output) != Some(Format::Glb) {
            return Err(JobError::unusable(&self.output, "a skin is written as .glb"));
        }
        let inputs: Vec<&Path> = self.data.iter().map(PathBuf::as_path).collect();
        check_file(&self.output, &inputs)
    }
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DecomposeReport {
    /// The file.
    pub output: PathBuf,
    /// Its size.
    pub bytes: usize,
    /// Vertices of the mesh.
    pub vertices: usize,
    /// Frames.
    pub frames: usize,
    /// Frames a second.
    pub rate: f32,
    /// Bones.
    pub bones: usize,
    /// Most bones per vertex.
    pub influences: usize,
    /// Root of the mean squared distance of a vertex, cm.
    pub rmse_cm: f64,
    /// The same in an engine that plays the four largest influences of a vertex, scaled to sum to one; where there
    /// are more than four.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub four_influences_rmse_cm: Option<f64>,
    /// Mean distance, cm.
    pub mean_cm: f64,
    /// 95 % of the vertices are nearer, cm.
    pub p95_cm: f64,
    /// The worst vertex of all frames, cm.
    pub max_cm: f64,
    /// The error before the first iteration, with one bone per vertex, cm.
    pub rigid_rmse_cm: f64,
    /// Iterations used.
    pub iterations: usize,
    /// Why it ended.
    pub stop: Stop,
    /// Bones that found a better place on the way.
    pub moved_bones: usize,
    /// Duration of the fit.
    pub seconds: f64,
    /// What readers converted or skipped.
    pub notes: Vec<String>,
}

/// Reads the animation, finds bones and weights, writes the GLB.
pub fn decompose(config: &DecomposeConfig, watch: &dyn Watch) -> Result<DecomposeReport, JobError> {
    config.check()?;
    let pool = threads::pool(config.threads)?;
    let watch = Remember::new(watch);
    let source = Source::read(config, &watch)?;
    let start = Instant::now();
    let result = pool.install(|| fit(config, &source, &watch))?;
    let seconds = start.elapsed().as_secs_f64();
    let rate = config.rate.or(source.rate).unwrap_or_else(|| {
        let message = format!("the data names no frame rate: {} frames per second assumed", source::RATE);
        watch.event(Event::Note { message: &message });
        source::RATE
    });

    let (skeleton, clip) = joints(&result, &source.name, rate)
        .map_err(|error| JobError::Machine(format!("{}: {error}", config.output.display())))?;
    let clips = [clip];
    let scene = GltfScene {
        skin: Some((&skeleton, &result.weights)),
        clips: &clips,
        ..GltfScene::new(&source.name, &source.mesh)
    };
    let bytes = to_glb_bytes(&scene).map_err(|error| JobError::unusable(&config.output, error))?;
    understudy_io::write_atomic(&config.output, &bytes)?;

    let misses: Vec<f32> = (0..source.frames.len())
        .flat_map(|frame| distances(&result.frame(frame), &source.frames[frame]))
        .collect();
    let summary = summarise(&misses);
    let four_influences_rmse_cm = (result.weights.max_influences() > GUARANTEED_INFLUENCES).then(|| {
        let weights = result.weights.strongest(GUARANTEED_INFLUENCES);
        let mut played = vec![Vec3::ZERO; source.mesh.vertex_count()];
        let mut squared = 0.0;
        for (motions, truth) in result.motions.iter().zip(&source.frames) {
            weights.linear_blend(motions, &result.rest, &mut played);
            squared += squared_distance(&played, truth);
        }
        (squared / misses.len().max(1) as f64).sqrt()
    });
    Ok(DecomposeReport {
        output: config.output.clone(),
        bytes: bytes.len(),
        vertices: source.mesh.vertex_count(),
        frames: source.frames.len(),
        rate,
        bones: skeleton.len(),
        influences: result.weights.max_influences(),
        rmse_cm: summary.rmse,
        four_influences_rmse_cm,
        mean_cm: summary.mean,
        p95_cm: summary.p95,
        max_cm: summary.max,
        rigid_rmse_cm: result.history[0],
        iterations: result.iterations,
        stop: result.stop,
        moved_bones: result.moved_bones,
        seconds,
        notes: watch.messages(),
    })
}

fn fit(config: &DecomposeConfig, source: &Source, watch: &dyn Watch) -> Result<Decomposed, JobError> {
    let frames: Vec<&[Vec3]> = source.frames.iter().map(Vec::as_slice).collect();
    let total = config.settings.iterations as u64;
    watch.event(Event::Started { what: "decomposing", total, unit: "iterations" });
    let hear = |progress: DecompositionProgress| {
        watch.event(Event::Step { done: progress.iteration as u64 });
        watch.event(Event::Status { message: &format!("RMSE {:.5} cm", progress.rmse) });
        !watch.should_stop()
    };
    let rest = source.mesh.positions();
    let result = understudy_learn::decomposition::decompose(rest, &frames, &config.settings, hear);
    let result = result.map_err(|error| JobError::unusable(&config.data[0], error))?;
    if result.stop == Stop::Asked {
        return Err(JobError::Stopped);
    }
    watch.event(Event::Finished);
    Ok(result)
}

/// Bones side by side, each resting in the middle of its vertices: there a motion is best blended between
/// frames.
fn joints(
    result: &Decomposed,
    name: &str,
    rate: f32,
) -> Result<(Skeleton, JointClip), understudy_core::SkeletonError> {
    let bone = |(index, centre): (usize, &Vec3)| Bone {
        name: format!("bone_{index:03}"),
        parent: None,
        rest: JointTransform::from_translation(*centre),
    };
    let skeleton = Skeleton::new(result.centres.iter().enumerate().map(bone).collect())?;
    let joint = |(motion, centre): (&Affine3A, &Vec3)| JointTransform {
        rotation: Quat::from_mat3a(&motion.matrix3).normalize(),
        translation: motion.transform_point3(*centre),
        scale: Vec3::ONE,
    };
    let pose = |motions: &Vec<Affine3A>| JointPose(motions.iter().zip(&result.centres).map(joint).collect());
    let poses = result.motions.iter().map(pose).collect();
    Ok((skeleton, JointClip { name: name.into(), rate, poses, shape_weights: Vec::new() }))
}
