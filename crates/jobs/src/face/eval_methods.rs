//! What a face twin is weighed against: its own coarse part, other twins of the same mesh, and linear blend
//! skinning by decomposition.

use super::data::open_face_twin;
use super::eval::{EvalFaceConfig, check_fits};
use crate::fit_cache::FitCache;
use crate::twin::data::Loaded;
use crate::{Event, JobError, Watch};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use understudy_core::{SkinWeights, Vec3};
use understudy_learn::baselines::Parameters;
use understudy_learn::decomposition::{
    DecomposedSkin, DecompositionProgress, DecompositionSettings, Reconstruction, decompose,
};
use understudy_runtime::face::FaceTwin;
use understudy_runtime::{Pose, Twin};

/// Something that poses a face.
pub(super) struct Method {
    pub name: String,
    pub bytes: usize,
    pub pose: Box<PoseFunction>,
}

/// Controls and the true vertices (for methods that are fitted to each pose) to vertices; gives the
/// milliseconds that an engine would need.
pub(super) type PoseFunction = dyn FnMut(&[f32], &[Vec3], &mut [Vec3]) -> Result<f64, String>;

/// Poses that a decomposition is fitted to. The paper takes a thousand; more change little here.
const LBS_POSES: usize = 200;
/// Bones a vertex of a decomposition, as the paper has them.
const LBS_INFLUENCES: usize = 8;

/// All methods, the twin first.
pub(super) fn all(
    config: &EvalFaceConfig,
    twin: &Arc<FaceTwin>,
    watch: &dyn Watch,
) -> Result<Vec<Method>, JobError> {
    let mut out = twins(config, twin)?;
    let bones = decompositions(config)?;
    if let (Some(folder), false) = (&config.train, bones.is_empty()) {
        if config.test.contains(folder) {
            return Err(JobError::setting("test", "the training poses are among the test poses"));
        }
        let key = format!("decompositions 1, {LBS_POSES} poses, {LBS_INFLUENCES} influences");
        let cache = FitCache::of(folder, &key)?;
        let kept = |bones: &usize| cache.load(&format!("lbs{bones}"));
        let kept: Vec<Option<Parameters>> = bones.iter().map(kept).collect();
        let most = if kept.iter().all(Option::is_some) { 1 } else { LBS_POSES };
        let train = Loaded::read_some(folder, most, watch)?;
        check_fits(twin, &train, folder)?;
        let poses = train.recording;
        let frames: Vec<&[Vec3]> = (0..poses.len()).map(|pose| poses.vertices_of(pose)).collect();
        let rest = poses.mesh.positions();
        for (bones, kept) in bones.into_iter().zip(kept) {
            let name = format!("lbs{bones}");
            let restored = kept.and_then(|kept| restored(rest, bones, kept));
            let weights = match restored {
                Some(weights) => weights,
                None => {
                    let weights = decomposed(folder, rest, &frames, bones, watch)?;
                    let (offsets, owners, numbers) = weights.compressed();
                    let owners = owners.iter().map(|bone| u32::from(*bone)).collect();
                    let integers = vec![offsets.to_vec(), owners];
                    let parameters = Parameters { integers, floats: vec![numbers.to_vec()] };
                    cache.store(&name, &parameters, watch);
                    weights
                }
            };
            out.push(skinned(DecomposedSkin::new(&name, rest.to_vec(), weights)));
        }
    }
    Ok(out)
}

fn file_size(path: &Path) -> usize {
    std::fs::metadata(path).map_or(0, |data| data.len() as usize)
}

fn twin_method(name: &str, bytes: usize, twin: &Twin) -> Method {
    let mut player = twin.player(1);
    let pose = move |controls: &[f32], _: &[Vec3], out: &mut [Vec3]| {
        let start = Instant::now();
        player.pose(Pose::Controls(controls), out).map_err(|error| error.to_string())?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    };
    Method { name: name.into(), bytes, pose: Box::new(pose) }
}

fn twins(config: &EvalFaceConfig, twin: &Arc<FaceTwin>) -> Result<Vec<Method>, JobError> {
    let mut out = vec![twin_method("twin", file_size(&config.twin), &Arc::clone(twin).into())];
    if twin.has_refinement() {
        let coarse = Twin::from(twin.coarse());
        let bytes = coarse.to_bytes().map_or(0, |bytes| bytes.len());
        out.push(twin_method("coarse", bytes, &coarse));
    }
    for (name, path) in &config.against {
        if out.iter().any(|method| method.name == *name) {
            return Err(JobError::setting("against", format!("two methods are named '{name}'")));
        }
        let other = open_face_twin(path)?;
        if other.header().topology_hash != twin.header().topology_hash {
            let want = (twin.vertex_count(), twin.header().topology_hash);
            return Err(JobError::other_topology(
                path,
                &other.parts().mesh,
                "that of the weighed twin",
                want,
            ));
        }
        if other.header().inputs != twin.header().inputs {
            return Err(JobError::unusable(path, "knows other controls"));
        }
        out.push(twin_method(name, file_size(path), &other.into()));
    }
    Ok(out)
}

/// Numbers of bones of the decompositions that are asked for.
fn decompositions(config: &EvalFaceConfig) -> Result<Vec<usize>, JobError> {
    if config.train.is_none() {
        return match config.baselines.first() {
            None => Ok(Vec::new()),
            Some(name) => Err(JobError::setting(
                "baseline",
                format!("'{name}' is fitted to training poses; name their dataset with --train"),
            )),
        };
    }
    match &config.baselines[..] {
        [] => return Ok(vec![32]),
        [all] if all == "all" => return Ok(vec![16, 24, 32]),
        _ => {}
    }
    let bones = |name: &String| {
        let number = name.strip_prefix("lbs").and_then(|bones| bones.parse::<usize>().ok());
        let unknown = || {
            let most = DecompositionSettings::MAX_BONES;
            let problem =
                format!("a face has lbs and a number of bones, 'lbs1' to 'lbs{most}', or all alone");
            JobError::setting(format!("baseline '{name}'"), problem)
        };
        number.filter(|bones| (1..=DecompositionSettings::MAX_BONES).contains(bones)).ok_or_else(unknown)
    };
    config.baselines.iter().map(bones).collect()
}

/// Weights that were kept; `None` where they are of another mesh.
fn restored(rest: &[Vec3], bones: usize, kept: Parameters) -> Option<SkinWeights> {
    let [offsets, owners] = <[Vec<u32>; 2]>::try_from(kept.integers).ok()?;
    let [numbers] = <[Vec<f32>; 1]>::try_from(kept.floats).ok()?;
    let owners = owners.into_iter().map(|bone| u16::try_from(bone).ok()).collect::<Option<Vec<u16>>>()?;
    let weights = SkinWeights::from_compressed(offsets, owners, numbers, bones).ok()?;
    (weights.vertex_count() == rest.len()).then_some(weights)
}

/// Weights of linear blend skinning by skinning decomposition.
fn decomposed(
    folder: &Path,
    rest: &[Vec3],
    frames: &[&[Vec3]],
    bones: usize,
    watch: &dyn Watch,
) -> Result<SkinWeights, JobError> {
    let settings =
        DecompositionSettings { bones, influences: LBS_INFLUENCES, ..DecompositionSettings::default() };
    let name = format!("lbs{bones}");
    let what = format!("fitting {name}");
    let total = settings.iterations as u64;
    watch.event(Event::Started { what: &what, total, unit: "rounds" });
    let step = |progress: DecompositionProgress| {
        watch.event(Event::Step { done: progress.iteration as u64 });
        !watch.should_stop()
    };
    let fitted =
        decompose(rest, frames, &settings, step).map_err(|error| JobError::unusable(folder, error))?;
    watch.event(Event::Finished);
    if watch.should_stop() {
        return Err(JobError::Stopped);
    }
    Ok(fitted.weights)
}

/// A decomposed skin has no controls: its bones move to where they fit each test pose best, as the paper does it; the
/// skinning alone is timed.
fn skinned(skin: DecomposedSkin) -> Method {
    let name = skin.name().to_owned();
    let bytes = skin.bytes();
    let pose = move |_: &[f32], truth: &[Vec3], out: &mut [Vec3]| {
        let motions = skin.pose(truth).map_err(|error| error.to_string())?;
        let start = Instant::now();
        skin.weights().linear_blend(&motions, skin.rest(), out);
        Ok(start.elapsed().as_secs_f64() * 1e3)
    };
    Method { name, bytes, pose: Box::new(pose) }
}
