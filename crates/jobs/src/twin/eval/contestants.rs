//! Who is compared: the twin, twins inside it, other twins of the same mesh, and baselines that are fitted to the
//! training poses. Fits are kept beside these.

use super::EvalConfig;
use crate::fit_cache::FitCache;
use crate::twin::data::{Loaded, open_twin};
use crate::twin::kinds::kind;
use crate::{Event, JobError, Watch, names};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use understudy_core::{ControlSpecs, SkinWeights, Vec3};
use understudy_learn::baselines::{Approximation, Baseline, Examples, Fitter, Parameters};
use understudy_learn::decomposition::{
    DecomposedSkin, DecompositionProgress, DecompositionSettings, decompose,
};
use understudy_learn::{FollowingSkin, Method, PlayedTwin, Recording};
use understudy_runtime::Twin;

/// Poses that a decomposition is fitted to. The paper takes a thousand; more change little here.
const DECOMPOSITION_POSES: usize = 200;
/// Bones a vertex of a decomposition, as the paper has them.
const DECOMPOSITION_INFLUENCES: usize = 8;

/// How a baseline was fitted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FitFacts {
    /// Training poses that it was fitted to, spread evenly.
    pub poses: usize,
    /// Duration of the fit, or of reading it.
    pub seconds: f64,
    /// Whether it was kept from an earlier run.
    pub kept: bool,
}

/// One row of the table; any number of threads play it.
pub(super) struct Contestant {
    pub name: String,
    pub bytes: usize,
    model: Model,
}

enum Model {
    Twin(Twin),
    Fit(Arc<dyn Approximation>),
    Skin(Arc<DecomposedSkin>),
}

impl Contestant {
    fn twin(name: &str, bytes: usize, twin: Twin) -> Self {
        Self { name: name.into(), bytes, model: Model::Twin(twin) }
    }

    fn fit(fit: Arc<dyn Approximation>) -> Self {
        Self { name: fit.name().into(), bytes: fit.bytes(), model: Model::Fit(fit) }
    }

    fn skin(skin: DecomposedSkin) -> Self {
        Self { name: skin.name().into(), bytes: skin.bytes(), model: Model::Skin(Arc::new(skin)) }
    }

    /// For one thread and recordings with these controls.
    pub fn method(&self, specs: &ControlSpecs) -> Result<Box<dyn Method>, String> {
        Ok(match &self.model {
            Model::Twin(twin) => Box::new(
                PlayedTwin::new(&self.name, self.bytes, twin, specs).map_err(|error| error.to_string())?,
            ),
            Model::Fit(fit) => Box::new(Arc::clone(fit)),
            Model::Skin(skin) => Box::new(FollowingSkin::new(Arc::clone(skin))),
        })
    }
}

/// All of them, the twin first.
pub(super) struct Contestants {
    pub all: Vec<Contestant>,
    pub fits: BTreeMap<String, FitFacts>,
    pub training_poses: Option<usize>,
}

/// Opens and fits whoever is asked for.
pub(super) fn all(
    config: &EvalConfig,
    twin: &Twin,
    baselines: &Baselines,
    watch: &dyn Watch,
) -> Result<Contestants, JobError> {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len() as usize);
    let mut out = Contestants { all: Vec::new(), fits: BTreeMap::new(), training_poses: None };
    out.all.push(Contestant::twin("twin", size(&config.twin), twin.clone()));
    for (name, part) in kind(twin).inner_twins() {
        let bytes = part.to_bytes().map_or(0, |bytes| bytes.len());
        out.all.push(Contestant::twin(name, bytes, part));
    }
    for (name, path) in &config.against {
        if out.all.iter().any(|other| other.name == *name) || baselines.names().contains(name) {
            return Err(JobError::setting("against", format!("two methods are named '{name}'")));
        }
        let other = open_twin(path)?;
        if other.header().topology_hash != twin.header().topology_hash {
            let problem = format!(
                "moves another mesh: {} vertices with topology {:016x}, not {} with {:016x}",
                other.vertex_count(),
                other.header().topology_hash,
                twin.vertex_count(),
                twin.header().topology_hash
            );
            return Err(JobError::unusable(path, problem));
        }
        out.all.push(Contestant::twin(name, size(path), other));
    }
    if let Some(folder) = &config.train {
        baselines.fit(twin, folder, &mut out, watch)?;
    }
    Ok(out)
}

/// What can be fitted: with bones the methods that need them, without any skins that find their own.
pub(super) enum Baselines {
    Bones(Vec<Baseline>),
    /// Numbers of bones.
    Decompositions(Vec<usize>),
}

impl Baselines {
    /// Those that the configuration names.
    pub fn wanted(config: &EvalConfig, twin: &Twin) -> Result<Self, JobError> {
        let named = &config.baselines;
        if let (None, Some(name)) = (&config.train, named.first()) {
            let problem = "it is fitted to training poses: name their dataset with --train";
            return Err(JobError::setting(format!("baseline '{name}'"), problem));
        }
        let all = matches!(&named[..], [all] if all == "all");
        if twin.header().inputs.bones.is_empty() {
            return Ok(Self::Decompositions(match (named.is_empty(), all) {
                (true, _) => vec![32],
                (_, true) => vec![16, 24, 32],
                _ => named.iter().map(|name| bones_of(name)).collect::<Result<_, _>>()?,
            }));
        }
        let known = Baseline::ALL.map(|baseline| baseline.to_string());
        let parse = |name: &String| {
            let unknown =
                || names::unknown("baseline", name, "a twin with bones", known.iter().map(String::as_str));
            Baseline::parse(name).ok_or_else(unknown)
        };
        Ok(Self::Bones(match (named.is_empty(), all) {
            (true, _) => Baseline::USUAL.to_vec(),
            (_, true) => Baseline::ALL.to_vec(),
            _ => {
                let parsed: Vec<Baseline> = named.iter().map(parse).collect::<Result<_, _>>()?;
                // Once each, in the order of the tables.
                Baseline::ALL.into_iter().filter(|baseline| parsed.contains(baseline)).collect()
            }
        }))
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::Bones(all) => all.iter().map(ToString::to_string).collect(),
            Self::Decompositions(all) => all.iter().map(|bones| format!("lbs{bones}")).collect(),
        }
    }

    /// What kept fits depend on besides the poses. Fits speak of bones by number: in the twin's order.
    fn key(&self, twin: &Twin) -> String {
        match self {
            Self::Bones(_) => {
                let bones: Vec<&str> =
                    twin.header().inputs.bones.iter().map(|bone| bone.name.as_str()).collect();
                format!("body baselines {} of {}", Baseline::VERSION, bones.join(" "))
            }
            Self::Decompositions(_) => {
                format!(
                    "decompositions 1, {DECOMPOSITION_POSES} poses, {DECOMPOSITION_INFLUENCES} influences"
                )
            }
        }
    }

    /// Takes fits that were kept; reads poses and fits where one is missing.
    fn fit(
        &self,
        twin: &Twin,
        folder: &Path,
        out: &mut Contestants,
        watch: &dyn Watch,
    ) -> Result<(), JobError> {
        let cache = FitCache::of(folder, &self.key(twin))?;
        let names = self.names();
        let kept: Vec<Option<Parameters>> = names.iter().map(|name| cache.load(name)).collect();
        let most = match self {
            Self::Bones(_) => Baseline::MOST_POSES,
            Self::Decompositions(_) => DECOMPOSITION_POSES,
        };
        // A file that is whole but of no use: with poses, then, and fitted after all.
        let tries = if kept.iter().all(Option::is_some) { vec![0, most] } else { vec![most] };
        for most in tries {
            let loaded = Loaded::read_for(twin, folder, most, watch)?;
            out.training_poses = Some(loaded.header.poses);
            if let Some(fits) = self.fit_to(&loaded, folder, &kept, &cache, watch)? {
                for (contestant, facts) in fits {
                    out.fits.insert(contestant.name.clone(), facts);
                    out.all.push(contestant);
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// `None` where there are no poses and a fit cannot be restored.
    fn fit_to(
        &self,
        loaded: &Loaded,
        folder: &Path,
        kept: &[Option<Parameters>],
        cache: &FitCache,
        watch: &dyn Watch,
    ) -> Result<Option<Vec<(Contestant, FitFacts)>>, JobError> {
        let (poses, available) = (&loaded.recording, loaded.header.poses);
        let rest = poses.mesh.positions();
        let fitter = poses
            .skeleton
            .as_ref()
            .map(|skeleton| Fitter::new(Examples { poses, rest, inverse_rest: skeleton.inverse_bind() }));
        let mut fits = Vec::new();
        let total = kept.len() as u64;
        watch.event(Event::Started { what: "fitting baselines", total, unit: "baselines" });
        for (index, (name, kept)) in self.names().iter().zip(kept).enumerate() {
            watch.event(Event::Status { message: name });
            let start = Instant::now();
            let restored = kept.as_ref().and_then(|kept| match (self, &fitter) {
                (Self::Bones(all), Some(fitter)) => fitter.restore(all[index], kept).map(Contestant::fit),
                (Self::Bones(_), None) => None,
                (Self::Decompositions(all), _) => {
                    restored(name, rest, all[index], kept).map(Contestant::skin)
                }
            });
            let was_kept = restored.is_some();
            let contestant = match (restored, self, &fitter) {
                (Some(contestant), ..) => contestant,
                (None, ..) if poses.is_empty() => {
                    watch.event(Event::Finished);
                    return Ok(None);
                }
                (None, Self::Bones(all), Some(fitter)) => {
                    let fit = fitter.fit(all[index]);
                    cache.store(name, &fit.parameters(), watch);
                    Contestant::fit(fit)
                }
                (None, Self::Bones(_), None) => return Err(JobError::unusable(folder, "has no bones")),
                (None, Self::Decompositions(all), _) => {
                    let weights = decomposed(folder, poses, all[index], watch)?;
                    let (offsets, owners, numbers) = weights.compressed();
                    let owners = owners.iter().map(|bone| u32::from(*bone)).collect();
                    let integers = vec![offsets.to_vec(), owners];
                    cache.store(name, &Parameters { integers, floats: vec![numbers.to_vec()] }, watch);
                    Contestant::skin(DecomposedSkin::new(name, rest.to_vec(), weights))
                }
            };
            let poses = match self {
                Self::Bones(all) => all[index].poses(available),
                Self::Decompositions(_) => available.min(DECOMPOSITION_POSES),
            };
            let facts = FitFacts { poses, seconds: start.elapsed().as_secs_f64(), kept: was_kept };
            fits.push((contestant, facts));
            watch.event(Event::Step { done: index as u64 + 1 });
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
        watch.event(Event::Finished);
        Ok(Some(fits))
    }
}

/// `lbs24`: a decomposition with 24 bones.
fn bones_of(name: &str) -> Result<usize, JobError> {
    let number = name.strip_prefix("lbs").and_then(|bones| bones.parse::<usize>().ok());
    number.filter(|bones| (1..=DecompositionSettings::MAX_BONES).contains(bones)).ok_or_else(|| {
        let most = DecompositionSettings::MAX_BONES;
        let problem = format!(
            "a twin without bones has lbs and a number of bones, 'lbs1' to 'lbs{most}', or all alone"
        );
        JobError::setting(format!("baseline '{name}'"), problem)
    })
}

/// A skin that was kept; `None` where it is of another mesh.
fn restored(name: &str, rest: &[Vec3], bones: usize, kept: &Parameters) -> Option<DecomposedSkin> {
    let [offsets, owners] = &kept.integers[..] else { return None };
    let [numbers] = &kept.floats[..] else { return None };
    let owners = owners.iter().map(|bone| u16::try_from(*bone).ok()).collect::<Option<Vec<u16>>>()?;
    let weights = SkinWeights::from_compressed(offsets.clone(), owners, numbers.clone(), bones).ok()?;
    (weights.vertex_count() == rest.len()).then(|| DecomposedSkin::new(name, rest.to_vec(), weights))
}

/// Weights of linear blend skinning by skinning decomposition.
fn decomposed(
    folder: &Path,
    poses: &Recording,
    bones: usize,
    watch: &dyn Watch,
) -> Result<SkinWeights, JobError> {
    let influences = DECOMPOSITION_INFLUENCES;
    let settings = DecompositionSettings { bones, influences, ..DecompositionSettings::default() };
    let frames: Vec<&[Vec3]> = (0..poses.len()).map(|pose| poses.vertices_of(pose)).collect();
    let step = |progress: DecompositionProgress| {
        let message = format!("lbs{bones}, round {} of {}", progress.iteration, settings.iterations);
        watch.event(Event::Status { message: &message });
        !watch.should_stop()
    };
    let fitted = decompose(poses.mesh.positions(), &frames, &settings, step)
        .map_err(|error| JobError::unusable(folder, error))?;
    if watch.should_stop() {
        return Err(JobError::Stopped);
    }
    Ok(fitted.weights)
}
