//! Who is compared: the twin, twins inside it, other twins of the same mesh, and baselines that are fitted to the
//! training poses, which keep the fits beside them, or to each test set itself.

use super::EvalConfig;
use super::clean::{self, Origin};
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

/// What a twin with bones is called where its mechanism poses it.
const BY_CONTROLS: &str = "twin, by controls";

/// Whether a recording has all of these controls.
fn knows(recorded: &ControlSpecs, wanted: &ControlSpecs) -> bool {
    wanted.iter().all(|spec| recorded.find(&spec.name).is_some())
}

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
    /// That it learned from or was fitted to.
    poses: Option<usize>,
    model: Model,
}

enum Model {
    Twin(Twin),
    /// Posed by its mechanism.
    ByControls(Twin),
    Fit(Arc<dyn Approximation>),
    Skin(Arc<DecomposedSkin>),
    /// For each test set what was fitted to it.
    OnTest(BTreeMap<String, Contestant>),
}

/// What rows are called that were fitted to the test sets themselves.
const ON_TEST: &str = " (on test)";

impl Contestant {
    fn twin(name: &str, bytes: usize, twin: Twin) -> Self {
        let poses = Some(twin.header().training.poses).filter(|poses| *poses > 0);
        Self { name: name.into(), bytes, poses, model: Model::Twin(twin) }
    }

    fn fit(fit: Arc<dyn Approximation>) -> Self {
        Self { name: fit.name().into(), bytes: fit.bytes(), poses: None, model: Model::Fit(fit) }
    }

    fn skin(skin: DecomposedSkin) -> Self {
        Self {
            name: skin.name().into(),
            bytes: skin.bytes(),
            poses: None,
            model: Model::Skin(Arc::new(skin)),
        }
    }

    /// Poses that it learned from or was fitted to, where it is weighed on that set; over all sets otherwise.
    pub fn poses(&self, set: Option<&str>) -> Option<usize> {
        match &self.model {
            Model::OnTest(own) => match set {
                Some(set) => own.get(set)?.poses,
                None => own.values().map(|fit| fit.poses).next().filter(|_| own.len() == 1)?,
            },
            _ => self.poses,
        }
    }

    /// For one thread and a set with these controls.
    pub fn method(&self, set: &str, specs: &ControlSpecs) -> Result<Box<dyn Method>, String> {
        Ok(match &self.model {
            Model::Twin(twin) => Box::new(
                PlayedTwin::new(&self.name, self.bytes, twin, specs).map_err(|error| error.to_string())?,
            ),
            Model::ByControls(twin) => Box::new(
                PlayedTwin::by_controls(&self.name, self.bytes, twin, specs)
                    .map_err(|error| error.to_string())?,
            ),
            Model::Fit(fit) => Box::new(Arc::clone(fit)),
            Model::Skin(skin) => Box::new(FollowingSkin::new(Arc::clone(skin))),
            Model::OnTest(own) => {
                let fit = own.get(set).ok_or_else(|| format!("nothing was fitted to '{set}'"))?;
                fit.method(set, specs)?
            }
        })
    }
}

/// All of them, the twin first.
pub(super) struct Contestants {
    pub all: Vec<Contestant>,
    pub fits: BTreeMap<String, FitFacts>,
    pub training_poses: Option<usize>,
    /// What the fits are posed by: names of bones and of controls in the training set's order.
    posed_by: Option<PosedBy>,
}

/// Names of bones and of controls.
#[derive(Debug, Clone, PartialEq)]
struct PosedBy {
    bones: Vec<String>,
    controls: Vec<String>,
}

impl PosedBy {
    fn of(poses: &Recording) -> Self {
        let bones = poses.skeleton.iter().flat_map(|skeleton| skeleton.bones());
        Self {
            bones: bones.map(|bone| bone.name.clone()).collect(),
            controls: poses.specs.iter().map(|spec| spec.name.clone()).collect(),
        }
    }
}

impl Contestants {
    /// Fits speak of bones and controls by number: a test set must have those of the training set.
    pub fn check(&self, set: &str, poses: &Recording) -> Result<(), JobError> {
        let Some(want) = &self.posed_by else { return Ok(()) };
        let got = PosedBy::of(poses);
        for contestant in &self.all {
            let Model::Fit(fit) = &contestant.model else { continue };
            let baseline = Baseline::parse(fit.name());
            let of_bones = baseline.is_none_or(Baseline::needs_bones);
            if got.bones != want.bones || !(of_bones || got.controls == want.controls) {
                let what = if got.bones != want.bones { "bones" } else { "controls" };
                let problem = format!("'{set}' has other {what} than the training set");
                return Err(JobError::setting(format!("baseline '{}'", fit.name()), problem));
            }
        }
        Ok(())
    }
}

/// Opens and fits whoever is asked for.
pub(super) fn all(
    config: &EvalConfig,
    twin: &Twin,
    baselines: &Baselines,
    (sets, origins): (&[(String, Recording)], &[Origin]),
    watch: &dyn Watch,
) -> Result<Contestants, JobError> {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len() as usize);
    let mut out =
        Contestants { all: Vec::new(), fits: BTreeMap::new(), training_poses: None, posed_by: None };
    out.all.push(Contestant::twin("twin", size(&config.twin), twin.clone()));
    // Recordings of part of the controls have bones all the same.
    let known = |specs: &ControlSpecs| sets.iter().all(|(_, poses)| knows(&poses.specs, specs));
    if twin.mechanism().is_some_and(|mechanism| known(mechanism.specs())) {
        let model = Model::ByControls(twin.clone());
        let poses = out.all[0].poses;
        out.all.push(Contestant { name: BY_CONTROLS.into(), bytes: size(&config.twin), poses, model });
    }
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
        clean::check(&format!("'{name}'"), &other, origins, watch)?;
        out.all.push(Contestant::twin(name, size(path), other));
    }
    if let Some(folder) = &config.train {
        baselines.fit(twin, folder, &mut out, watch)?;
    }
    if config.fit_on_test {
        out.all.extend(baselines.fit_on_test(sets, watch)?);
    }
    Ok(out)
}

/// Something that can be fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Baseline(Baseline),
    /// A skin that finds so many bones of its own.
    Decomposition(usize),
}

impl Fit {
    fn name(self) -> String {
        match self {
            Self::Baseline(baseline) => baseline.to_string(),
            Self::Decomposition(bones) => format!("lbs{bones}"),
        }
    }

    /// How many of the poses it is fitted to.
    fn poses(self, available: usize) -> usize {
        match self {
            Self::Baseline(baseline) => baseline.poses(available),
            Self::Decomposition(_) => available.min(DECOMPOSITION_POSES),
        }
    }

    /// How many poses must be read for it.
    fn most_poses(self) -> usize {
        match self {
            Self::Baseline(baseline) => baseline.most_poses(),
            Self::Decomposition(_) => DECOMPOSITION_POSES,
        }
    }

    /// Whether it is geometry alone where the rig shows a skin.
    fn learns_nothing(self) -> bool {
        matches!(self, Self::Baseline(Baseline::OwnSkin | Baseline::DeltaMush | Baseline::DirectDeltaMush))
    }

    /// What a kept fit depends on besides the poses. Fits speak of bones by number: in the twin's order.
    fn key(self, twin: &Twin) -> String {
        match self {
            Self::Baseline(_) => {
                let bones: Vec<&str> =
                    twin.header().inputs.bones.iter().map(|bone| bone.name.as_str()).collect();
                format!("body baselines {} of {}", Baseline::VERSION, bones.join(" "))
            }
            Self::Decomposition(_) => {
                format!(
                    "decompositions 1, {DECOMPOSITION_POSES} poses, {DECOMPOSITION_INFLUENCES} influences"
                )
            }
        }
    }
}

/// What is fitted: `lbs4` and the like are skins of the rig's bones where the twin is posed by bones, and skins that
/// find their own where it is not.
pub(super) struct Baselines {
    wanted: Vec<Fit>,
    /// Whether those that do not apply are left out, with a reason, because nobody named them.
    lenient: bool,
}

impl Baselines {
    /// Those that the configuration names.
    pub fn wanted(config: &EvalConfig, twin: &Twin) -> Result<Self, JobError> {
        let named = &config.baselines;
        if let (None, false, Some(name)) = (&config.train, config.fit_on_test, named.first()) {
            let problem = "it is fitted to training poses: name their dataset with --train";
            return Err(JobError::setting(format!("baseline '{name}'"), problem));
        }
        let all = matches!(&named[..], [all] if all == "all");
        let with_bones = !twin.header().inputs.bones.is_empty();
        let skins = |bones: &[usize]| bones.iter().map(|bones| Fit::Decomposition(*bones)).collect();
        let wanted: Vec<Fit> = match (named.is_empty(), all, with_bones) {
            (true, _, true) => Baseline::USUAL.map(Fit::Baseline).to_vec(),
            (true, _, false) => skins(&[32]),
            (_, true, true) => Baseline::ALL.map(Fit::Baseline).to_vec(),
            (_, true, false) => {
                let mut wanted: Vec<Fit> = skins(&[16, 24, 32]);
                wanted.extend(Baseline::OF_ANY_TWIN.map(Fit::Baseline));
                wanted
            }
            _ => {
                let parsed: Vec<Fit> =
                    named.iter().map(|name| parse(name, with_bones)).collect::<Result<_, _>>()?;
                // Once each, in the order of the tables.
                let skins = parsed.iter().filter(|fit| matches!(fit, Fit::Decomposition(_))).copied();
                let others = Baseline::ALL.map(Fit::Baseline).into_iter();
                skins.chain(others.filter(|fit| parsed.contains(fit))).collect()
            }
        };
        Ok(Self { wanted, lenient: all || named.is_empty() })
    }

    fn names(&self) -> Vec<String> {
        self.wanted.iter().map(|fit| fit.name()).collect()
    }

    /// Takes fits that were kept; reads poses and fits where one is missing.
    fn fit(
        &self,
        twin: &Twin,
        folder: &Path,
        out: &mut Contestants,
        watch: &dyn Watch,
    ) -> Result<(), JobError> {
        let caches: Vec<FitCache> =
            self.wanted.iter().map(|fit| FitCache::of(folder, &fit.key(twin))).collect::<Result<_, _>>()?;
        let kept: Vec<Option<Parameters>> =
            self.wanted.iter().zip(&caches).map(|(fit, cache)| cache.load(&fit.name())).collect();
        let most = self.wanted.iter().map(|fit| fit.most_poses()).max().unwrap_or(0);
        // A file that is whole but of no use: with poses, then, and fitted after all.
        let tries = if kept.iter().all(Option::is_some) { vec![0, most] } else { vec![most] };
        for most in tries {
            let loaded = Loaded::read_for(twin, folder, most, watch)?;
            out.training_poses = Some(loaded.header.poses);
            out.posed_by = Some(PosedBy::of(&loaded.recording));
            if let Some(fits) = self.fit_to(&loaded, folder, &kept, &caches, watch)? {
                for (contestant, facts) in fits {
                    out.fits.insert(contestant.name.clone(), facts);
                    out.all.push(contestant);
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// Fits to each test set by itself (the thesis's Table 2.4). What is geometry alone has no such row.
    fn fit_on_test(
        &self,
        sets: &[(String, Recording)],
        watch: &dyn Watch,
    ) -> Result<Vec<Contestant>, JobError> {
        let fitted: Vec<Fit> = self.wanted.iter().copied().filter(|fit| !fit.learns_nothing()).collect();
        let total = (fitted.len() * sets.len()) as u64;
        watch.event(Event::Started { what: "fitting baselines to the test", total, unit: "baselines" });
        let mut rows: Vec<(String, BTreeMap<String, Contestant>)> =
            fitted.iter().map(|fit| (fit.name(), BTreeMap::new())).collect();
        let mut done = 0;
        for (set, poses) in sets {
            let rest = poses.mesh.positions();
            let inverse_rest = poses.skeleton.as_ref().map_or(&[][..], |skeleton| skeleton.inverse_bind());
            let fitter = Fitter::new(Examples { poses, rest, inverse_rest, weights: None });
            for (fit, (name, own)) in fitted.iter().zip(&mut rows) {
                watch.event(Event::Status { message: name });
                let mut contestant = match fit {
                    Fit::Baseline(baseline) if baseline.needs_bones() && poses.skeleton.is_none() => {
                        if self.lenient {
                            continue;
                        }
                        let problem = format!("'{set}' has no bones, which it is posed by");
                        return Err(JobError::setting(format!("baseline '{name}'"), problem));
                    }
                    Fit::Baseline(baseline) => Contestant::fit(fitter.fit(*baseline)),
                    Fit::Decomposition(bones) => {
                        let weights = decomposed(Path::new(set), poses, *bones, watch)?;
                        Contestant::skin(DecomposedSkin::new(name, rest.to_vec(), weights))
                    }
                };
                contestant.poses = Some(fit.poses(poses.len()));
                own.insert(set.clone(), contestant);
                done += 1;
                watch.event(Event::Step { done });
                if watch.should_stop() {
                    return Err(JobError::Stopped);
                }
            }
        }
        watch.event(Event::Finished);
        // A row stands in every set's table.
        let whole = rows.into_iter().filter(|(_, own)| own.len() == sets.len());
        let row = |(name, own): (String, BTreeMap<String, Contestant>)| Contestant {
            name: format!("{name}{ON_TEST}"),
            bytes: own.values().map(|fit| fit.bytes).max().unwrap_or(0),
            poses: None,
            model: Model::OnTest(own),
        };
        Ok(whole.map(row).collect())
    }

    /// `None` where there are no poses and a fit cannot be restored.
    fn fit_to(
        &self,
        loaded: &Loaded,
        folder: &Path,
        kept: &[Option<Parameters>],
        caches: &[FitCache],
        watch: &dyn Watch,
    ) -> Result<Option<Vec<(Contestant, FitFacts)>>, JobError> {
        let (poses, available) = (&loaded.recording, loaded.header.poses);
        let rest = poses.mesh.positions();
        let inverse_rest = poses.skeleton.as_ref().map_or(&[][..], |skeleton| skeleton.inverse_bind());
        let weights = loaded.weights.as_ref();
        let fitter = Fitter::new(Examples { poses, rest, inverse_rest, weights });
        let mut fits = Vec::new();
        let total = kept.len() as u64;
        watch.event(Event::Started { what: "fitting baselines", total, unit: "baselines" });
        for (index, (fit, kept)) in self.wanted.iter().zip(kept).enumerate() {
            let name = &fit.name();
            let without_bones =
                matches!(fit, Fit::Baseline(baseline) if baseline.needs_bones()) && poses.skeleton.is_none();
            if without_bones && self.lenient {
                let message = format!("baseline '{name}' is left out: the recorded rig has no bones");
                watch.event(Event::Note { message: &message });
                continue;
            }
            if without_bones {
                return Err(JobError::setting(
                    format!("baseline '{name}'"),
                    "the recorded rig has no bones, which it is posed by",
                ));
            }
            watch.event(Event::Status { message: name });
            let start = Instant::now();
            let restored = kept.as_ref().and_then(|kept| match fit {
                Fit::Baseline(baseline) => fitter.restore(*baseline, kept).map(Contestant::fit),
                Fit::Decomposition(bones) => restored(name, rest, *bones, kept).map(Contestant::skin),
            });
            let was_kept = restored.is_some();
            let mut contestant = match (restored, fit) {
                (Some(contestant), _) => contestant,
                (None, _) if poses.is_empty() => {
                    watch.event(Event::Finished);
                    return Ok(None);
                }
                (None, Fit::Baseline(baseline)) => {
                    let fit = fitter.fit(*baseline);
                    caches[index].store(name, &fit.parameters(), watch);
                    Contestant::fit(fit)
                }
                (None, Fit::Decomposition(bones)) => {
                    let weights = decomposed(folder, poses, *bones, watch)?;
                    let (offsets, owners, numbers) = weights.compressed();
                    let owners = owners.iter().map(|bone| u32::from(*bone)).collect();
                    let integers = vec![offsets.to_vec(), owners];
                    let parameters = Parameters { integers, floats: vec![numbers.to_vec()] };
                    caches[index].store(name, &parameters, watch);
                    Contestant::skin(DecomposedSkin::new(name, rest.to_vec(), weights))
                }
            };
            let poses = if fit.learns_nothing() && weights.is_some() { 0 } else { fit.poses(available) };
            contestant.poses = Some(poses).filter(|poses| *poses > 0);
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

fn parse(name: &str, with_bones: bool) -> Result<Fit, JobError> {
    let known = Baseline::ALL.map(|baseline| baseline.to_string());
    let unknown = || names::unknown("baseline", name, "a twin with bones", known.iter().map(String::as_str));
    match with_bones {
        true => Baseline::parse(name).map(Fit::Baseline).or_else(|| many_bones(name)).ok_or_else(unknown),
        // A number of bones comes first.
        false => match (bones_of(name), Baseline::parse(name)) {
            (Ok(bones), _) => Ok(Fit::Decomposition(bones)),
            (Err(_), Some(baseline)) => Ok(Fit::Baseline(baseline)),
            (Err(problem), None) => Err(problem),
        },
    }
}

/// `lbs24` beside a twin with bones, whose own skins have at most so many influences.
fn many_bones(name: &str) -> Option<Fit> {
    const MOST_INFLUENCES: usize = 8;
    bones_of(name).ok().filter(|bones| *bones > MOST_INFLUENCES).map(Fit::Decomposition)
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
    let frames: Vec<&[Vec3]> =
        poses.spread(DECOMPOSITION_POSES).into_iter().map(|pose| poses.vertices_of(pose)).collect();
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
