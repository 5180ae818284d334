//! `eval` for face twins: the twin, its coarse part and every baseline on the same held-out poses. Start at
//! [`eval_face`]; the page of pictures is in `eval_page`.

use super::data::{Loaded, open_face_twin};
use super::eval_page;
use super::gaps::{GapFigures, Gaps};
use super::spectrum::Spectrum;
use crate::{Event, JobError, Watch};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_core::metrics::{distances, normal_angles, summarise};
use understudy_core::{Mesh, Vec3};
use understudy_learn::decomposition::{
    DecomposedSkin, DecompositionProgress, DecompositionSettings, Reconstruction, decompose,
};
use understudy_learn::face::FacePoses;
use understudy_runtime::face::{FaceTwin, Stage, Workspace, file};

/// What to weigh.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvalFaceConfig {
    /// The twin's file.
    pub twin: PathBuf,
    /// Datasets of held-out poses.
    pub test: Vec<PathBuf>,
    /// Other face twins of the same mesh, with the names that they go by in the table: `dense`.
    pub against: Vec<(String, PathBuf)>,
    /// The dataset that skinning decompositions are fitted to: the twin's own.
    pub train: Option<PathBuf>,
    /// Skinning decompositions to fit, `lbs` and a number of bones; 16, 24 and 32 where a training set is
    /// named and this is empty.
    pub baselines: Vec<String>,
    /// Folder for the HTML page and its pictures; none when absent.
    pub report: Option<PathBuf>,
    /// Shown on the page.
    pub command: String,
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaceFigures {
    /// Mean distance of a vertex, mm.
    pub mean_mm: f64,
    /// 95 % of the vertices are nearer, mm.
    pub p95_mm: f64,
    /// The worst vertex of all poses, mm.
    pub max_mm: f64,
    /// Mean angle between face normals (3.6), degrees.
    pub normal_deg: f64,
    /// Milliseconds a pose on one thread, median.
    pub ms: f64,
    /// Size of the model.
    pub bytes: usize,
}

/// One segment of the twin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SegmentFigures {
    /// Its name.
    pub name: String,
    /// Vertices.
    pub vertices: usize,
    /// `network`, `rigid` or `still`.
    pub kind: &'static str,
    /// Mean distance, mm.
    pub mean_mm: f64,
    /// Worst distance, mm.
    pub max_mm: f64,
    /// Mean angle between face normals, degrees.
    pub normal_deg: f64,
    /// Of a rigid segment: how much its shape changes, the largest change of a distance, mm.
    pub bends_mm: Option<f64>,
}

/// Power of the error over the frequencies of the mesh.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpectrumFigures {
    /// Mean power in each band, mm².
    pub bands: Vec<f64>,
    /// Share of the power in the upper half, where neighbours disagree.
    pub high_share: f64,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvalFaceReport {
    /// Figures over all test poses.
    pub methods: BTreeMap<String, FaceFigures>,
    /// Figures of each test set.
    pub sets: BTreeMap<String, BTreeMap<String, FaceFigures>>,
    /// Each segment of the twin.
    pub segments: Vec<SegmentFigures>,
    /// Error over frequency, by method.
    pub spectrum: BTreeMap<String, SpectrumFigures>,
    /// Lips and lids: do they open?
    pub gaps: BTreeMap<String, GapFigures>,
    /// Test poses.
    pub poses: usize,
    /// The page, where one was asked for.
    pub page: Option<PathBuf>,
}

/// Something that poses a face.
pub(super) struct Method {
    pub name: String,
    pub bytes: usize,
    pub pose: Box<PoseFunction>,
}

/// Controls and the true vertices (for methods that are fitted to each pose) to vertices.
pub(super) type PoseFunction = dyn FnMut(&[f32], &[Vec3], &mut [Vec3]) -> Result<(), String>;

/// Weighs a face twin.
pub fn eval_face(config: &EvalFaceConfig, watch: &dyn Watch) -> Result<EvalFaceReport, JobError> {
    let twin = open_face_twin(&config.twin)?;
    if config.test.is_empty() {
        return Err(JobError::setting("test", "no dataset of held-out poses is named"));
    }
    let mut sets = Vec::new();
    for folder in &config.test {
        let loaded = Loaded::read(folder, watch)?;
        check_fits(&twin, &loaded, folder)?;
        sets.push((set_name(folder), loaded));
    }
    let mut methods = methods(config, &twin)?;
    for bones in decompositions(config)? {
        methods.push(decomposed(config, &twin, bones, watch)?);
    }
    weigh(config, &twin, sets, methods, watch)
}

/// Numbers of bones of the decompositions that are asked for.
fn decompositions(config: &EvalFaceConfig) -> Result<Vec<usize>, JobError> {
    if config.train.is_none() {
        return match config.baselines.first() {
            None => Ok(Vec::new()),
            Some(name) => {
                Err(JobError::setting("baseline", format!("'{name}' is fitted to a training set: name it")))
            }
        };
    }
    if config.baselines.is_empty() {
        return Ok(vec![16, 24, 32]);
    }
    let bones = |name: &String| {
        let number = name.strip_prefix("lbs").and_then(|bones| bones.parse::<usize>().ok());
        let unknown =
            || JobError::setting("baseline", format!("'{name}' is not 'lbs' and a number of bones"));
        number.filter(|bones| (1..=DecompositionSettings::MAX_BONES).contains(bones)).ok_or_else(unknown)
    };
    config.baselines.iter().map(bones).collect()
}

/// Poses that a decomposition is fitted to. The paper takes a thousand; more change little here.
const LBS_POSES: usize = 200;

/// Linear blend skinning by skinning decomposition. Its bones have no controls: they move to where they
/// fit each test pose best, as the paper does it.
fn decomposed(
    config: &EvalFaceConfig,
    twin: &FaceTwin,
    bones: usize,
    watch: &dyn Watch,
) -> Result<Method, JobError> {
    let folder = config.train.as_ref().expect("asked for with a training set");
    if config.test.contains(folder) {
        return Err(JobError::setting("test", "the training poses are among the test poses"));
    }
    let mut train = Loaded::read(folder, watch)?;
    check_fits(twin, &train, folder)?;
    let poses = train.poses();
    let frames: Vec<&[Vec3]> =
        poses.spread(LBS_POSES).into_iter().map(|pose| poses.vertices_of(pose)).collect();
    let settings = DecompositionSettings { bones, ..DecompositionSettings::default() };
    let name = format!("lbs{bones}");
    let what = format!("fitting {name}");
    let total = settings.iterations as u64;
    watch.event(Event::Started { what: &what, total, unit: "rounds" });
    let step = |progress: DecompositionProgress| {
        watch.event(Event::Step { done: progress.iteration as u64 });
        !watch.should_stop()
    };
    let fitted = decompose(poses.mesh.positions(), &frames, &settings, step)
        .map_err(|error| JobError::unusable(folder, error))?;
    watch.event(Event::Finished);
    if watch.should_stop() {
        return Err(JobError::Stopped);
    }
    let skin = DecomposedSkin::new(&name, fitted);
    let bytes = skin.bytes();
    let pose = move |_: &[f32], truth: &[Vec3], out: &mut [Vec3]| {
        skin.reconstruct(truth, out);
        Ok(())
    };
    Ok(Method { name, bytes, pose: Box::new(pose) })
}

fn set_name(folder: &Path) -> String {
    folder
        .file_name()
        .map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn check_fits(twin: &FaceTwin, loaded: &Loaded, folder: &Path) -> Result<(), JobError> {
    if loaded.mesh.topology_hash() != twin.header().topology_hash {
        let problem = format!(
            "its mesh ({} vertices) is not the twin's ({} vertices)",
            loaded.mesh.vertex_count(),
            twin.vertex_count()
        );
        return Err(JobError::unusable(folder, problem));
    }
    if loaded.header.controls != twin.header().controls {
        return Err(JobError::unusable(folder, "its controls are not those that the twin knows"));
    }
    Ok(())
}

fn file_size(path: &Path) -> usize {
    std::fs::metadata(path).map_or(0, |data| data.len() as usize)
}

fn twin_method(name: &str, bytes: usize, twin: FaceTwin, coarse: bool) -> Method {
    let mut space = if coarse { Workspace::coarse(&twin, 1) } else { Workspace::new(&twin, 1) };
    let pose = move |controls: &[f32], _: &[Vec3], out: &mut [Vec3]| {
        twin.evaluate(controls, &mut space, None, out).map_err(|error| error.to_string())
    };
    Method { name: name.into(), bytes, pose: Box::new(pose) }
}

fn methods(config: &EvalFaceConfig, twin: &FaceTwin) -> Result<Vec<Method>, JobError> {
    let mut out = vec![twin_method("twin", file_size(&config.twin), twin.clone(), false)];
    if twin.parts().nets.iter().any(|net| net.stage == Stage::Refinement) {
        let mut coarse = twin.parts().clone();
        coarse.nets.retain(|net| net.stage == Stage::Coarse);
        let bytes = file::to_bytes(&coarse, twin.precision()).map_or(0, |bytes| bytes.len());
        out.push(twin_method("coarse", bytes, twin.clone(), true));
    }
    for (name, path) in &config.against {
        if out.iter().any(|method| method.name == *name) {
            return Err(JobError::setting("against", format!("two methods are named '{name}'")));
        }
        let other = open_face_twin(path)?;
        if other.header().topology_hash != twin.header().topology_hash {
            return Err(JobError::unusable(path, "is a twin of another mesh"));
        }
        if other.header().controls != twin.header().controls {
            return Err(JobError::unusable(path, "knows other controls"));
        }
        out.push(twin_method(name, file_size(path), other, false));
    }
    Ok(out)
}

/// Sums of one method over poses.
#[derive(Default)]
struct Tally {
    distances: Vec<f32>,
    angles: (f64, usize),
    milliseconds: Vec<f64>,
}

impl Tally {
    fn figures(&mut self, bytes: usize) -> FaceFigures {
        let summary = summarise(&self.distances);
        self.milliseconds.sort_by(f64::total_cmp);
        FaceFigures {
            mean_mm: summary.mean * 10.0,
            p95_mm: summary.p95 * 10.0,
            max_mm: summary.max * 10.0,
            normal_deg: self.angles.0 / self.angles.1.max(1) as f64,
            ms: self.milliseconds.get(self.milliseconds.len() / 2).copied().unwrap_or(0.0),
            bytes,
        }
    }
}

/// A pose that the page shows: the truth and what every method made of it.
pub(super) struct Exhibit {
    pub caption: String,
    pub truth: Vec<Vec3>,
    pub methods: Vec<Vec<Vec3>>,
}

/// Sums of one segment of the twin.
#[derive(Clone, Default)]
struct SegmentTally {
    sum: f64,
    count: usize,
    max: f32,
    angles: (f64, usize),
    bends: f32,
}

/// Poses whose errors are taken apart into frequencies: it costs as much as all the rest.
const SPECTRUM_POSES: usize = 24;

fn weigh(
    config: &EvalFaceConfig,
    twin: &FaceTwin,
    mut sets: Vec<(String, Loaded)>,
    mut methods: Vec<Method>,
    watch: &dyn Watch,
) -> Result<EvalFaceReport, JobError> {
    let mesh = twin.parts().mesh.clone();
    let adjacency = mesh.adjacency();
    let count = methods.len();
    let mut whole: Vec<Tally> = (0..count).map(|_| Tally::default()).collect();
    let mut spectra: Vec<Spectrum> = (0..count).map(|_| Spectrum::new(&adjacency)).collect();
    let mut segments = vec![SegmentTally::default(); mesh.segments().len()];
    let mut exhibits = Vec::new();
    let mut by_set = BTreeMap::new();
    let sets: Vec<(String, FacePoses<'_>)> =
        sets.iter_mut().map(|(name, loaded)| (name.clone(), loaded.poses())).collect();
    let total: usize = sets.iter().map(|(_, poses)| poses.len()).sum();
    let every = total.div_ceil(SPECTRUM_POSES).max(1);
    let all = sets.iter().flat_map(|(_, poses)| (0..poses.len()).map(|pose| poses.vertices_of(pose)));
    let mut gaps: Vec<Gaps> = vec![Gaps::new(&mesh, all); count];
    let mut out = vec![Vec3::ZERO; mesh.vertex_count()];
    let mut seen = 0;
    for (name, poses) in &sets {
        let mut tallies: Vec<Tally> = (0..count).map(|_| Tally::default()).collect();
        let what = format!("weighing {name}");
        watch.event(Event::Started { what: &what, total: poses.len() as u64, unit: "poses" });
        for pose in 0..poses.len() {
            let truth = poses.vertices_of(pose);
            let shown = poses.len().div_ceil(3).max(1);
            let mut exhibit = (pose % shown == shown / 2).then(|| Exhibit {
                caption: format!("{name}, frame {pose}"),
                truth: truth.to_vec(),
                methods: Vec::new(),
            });
            for (index, method) in methods.iter_mut().enumerate() {
                let start = Instant::now();
                (method.pose)(poses.controls_of(pose), truth, &mut out)
                    .map_err(|error| JobError::unusable(name, format!("pose {pose}: {error}")))?;
                let milliseconds = start.elapsed().as_secs_f64() * 1e3;
                let misses = distances(&out, truth);
                let angles = normal_angles(mesh.faces(), truth, &out);
                let turned = angles.iter().map(|a| f64::from(*a)).sum::<f64>();
                for tally in [&mut whole[index], &mut tallies[index]] {
                    tally.distances.extend_from_slice(&misses);
                    tally.angles.0 += turned;
                    tally.angles.1 += angles.len();
                    tally.milliseconds.push(milliseconds);
                }
                if seen % every == 0 {
                    let error: Vec<Vec3> = out.iter().zip(truth).map(|(a, b)| *a - *b).collect();
                    spectra[index].add(&adjacency, &error);
                }
                gaps[index].add(truth, &out);
                if index == 0 {
                    tally_segments(&mesh, &misses, &angles, &mut segments);
                    for segment in &twin.parts().rigid {
                        let slot = mesh.segments().find(&segment.name).map(|s| &mut segments[s]);
                        if let Some(slot) = slot {
                            slot.bends = slot.bends.max(bends(&mesh, &segment.vertices, &out));
                        }
                    }
                }
                if let Some(exhibit) = &mut exhibit {
                    exhibit.methods.push(out.clone());
                }
            }
            exhibits.extend(exhibit);
            seen += 1;
            watch.event(Event::Step { done: pose as u64 + 1 });
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
        watch.event(Event::Finished);
        let figures = methods.iter().zip(&mut tallies).map(|(m, t)| (m.name.clone(), t.figures(m.bytes)));
        by_set.insert(name.clone(), figures.collect());
    }
    let named = |index: usize| methods[index].name.clone();
    let spectrum = |(index, spectrum): (usize, &Spectrum)| {
        let bands = spectrum.bands().iter().map(|power| power * 100.0).collect();
        (named(index), SpectrumFigures { bands, high_share: spectrum.high_share() })
    };
    let mut report = EvalFaceReport {
        methods: methods.iter().zip(&mut whole).map(|(m, t)| (m.name.clone(), t.figures(m.bytes))).collect(),
        sets: by_set,
        segments: segment_figures(twin, &segments),
        spectrum: spectra.iter().enumerate().map(spectrum).collect(),
        gaps: gaps.iter().enumerate().map(|(index, gaps)| (named(index), gaps.figures())).collect(),
        poses: seen,
        page: None,
    };
    if let Some(folder) = &config.report {
        let names: Vec<String> = methods.iter().map(|method| method.name.clone()).collect();
        report.page = Some(eval_page::write(folder, config, twin, &names, &report, &exhibits)?);
    }
    Ok(report)
}

fn tally_segments(mesh: &Mesh, misses: &[f32], angles: &[f32], segments: &mut [SegmentTally]) {
    let of_vertex = &mesh.segments().of_vertex;
    for (miss, segment) in misses.iter().zip(of_vertex) {
        let tally = &mut segments[*segment as usize];
        tally.sum += f64::from(*miss);
        tally.count += 1;
        tally.max = tally.max.max(*miss);
    }
    for (angle, face) in angles.iter().zip(mesh.faces()) {
        let tally = &mut segments[of_vertex[face.corners()[0] as usize] as usize];
        tally.angles.0 += f64::from(*angle);
        tally.angles.1 += 1;
    }
}

/// The largest change of a distance between vertices of a segment that should be rigid, cm.
fn bends(mesh: &Mesh, vertices: &[u32], now: &[Vec3]) -> f32 {
    let rest = mesh.positions();
    let Some(&first) = vertices.first() else { return 0.0 };
    let from = |v: u32, positions: &[Vec3]| positions[v as usize].distance(positions[first as usize]);
    vertices.iter().map(|v| (from(*v, now) - from(*v, rest)).abs()).fold(0.0, f32::max)
}

fn segment_figures(twin: &FaceTwin, tallies: &[SegmentTally]) -> Vec<SegmentFigures> {
    let mesh = &twin.parts().mesh;
    let figures = |(segment, tally): (usize, &SegmentTally)| {
        let name = &mesh.segments().names[segment];
        let vertices = mesh.segments().vertices(segment);
        let rigid = twin.parts().rigid.iter().any(|r| r.name == *name);
        let moved = |net: &understudy_runtime::face::NetParts| {
            vertices.first().is_some_and(|v| net.vertices.contains(v))
        };
        let kind = match (rigid, twin.parts().nets.iter().any(moved)) {
            (true, _) => "rigid",
            (false, true) => "network",
            (false, false) => "still",
        };
        SegmentFigures {
            name: name.clone(),
            vertices: vertices.len(),
            kind,
            mean_mm: tally.sum / tally.count.max(1) as f64 * 10.0,
            max_mm: f64::from(tally.max) * 10.0,
            normal_deg: tally.angles.0 / tally.angles.1.max(1) as f64,
            bends_mm: rigid.then_some(f64::from(tally.bends) * 10.0),
        }
    };
    tallies.iter().enumerate().filter(|(_, tally)| tally.count > 0).map(figures).collect()
}
