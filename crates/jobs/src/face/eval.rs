//! `eval` for face twins: the twin, its coarse part and every baseline on the same held-out poses. Start at
//! [`eval_face`]; the methods are in `eval_methods`, the page of pictures is in `eval_page`.

use super::data::open_face_twin;
use super::eval_methods::{self, Method};
use super::eval_page;
use super::eval_pictures::{Exhibit, strain};
use super::gaps::{GapFigures, Gaps};
use super::rigidity::{RigidFigures, Rigidity};
use super::spectrum::Spectrum;
use crate::outputs::check_folder;
use crate::twin::bench::median;
use crate::twin::data::Loaded;
use crate::{Event, JobError, Watch, rigs, threads};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use understudy_core::metrics::{distances, normal_angles, summarise};
use understudy_core::{Mesh, Vec3};
use understudy_learn::{Method as _, PosedRig, Recording};
use understudy_rigs::Rig;
use understudy_runtime::Pose;
use understudy_runtime::face::FaceTwin;

/// What to weigh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Skinning decompositions to fit, `lbs` and a number of bones; `all` for 16, 24 and 32, and 32 alone where
    /// a training set is named and this is empty. Fits are kept beside the training set.
    pub baselines: Vec<String>,
    /// Folder for the HTML page and its pictures; none when absent.
    pub report: Option<PathBuf>,
    /// Threads for fitting; results do not depend on it.
    pub threads: usize,
    /// Shown on the page.
    pub command: String,
}

impl Default for EvalFaceConfig {
    fn default() -> Self {
        Self {
            twin: PathBuf::new(),
            test: Vec::new(),
            against: Vec::new(),
            train: None,
            baselines: Vec::new(),
            report: None,
            threads: threads::available(),
            command: String::new(),
        }
    }
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
    /// `network`, `body` (rigid, by a motion of its own), `rigid` (with others) or `still`.
    pub kind: &'static str,
    /// Mean distance, mm.
    pub mean_mm: f64,
    /// Worst distance, mm.
    pub max_mm: f64,
    /// Mean angle between face normals, degrees.
    pub normal_deg: f64,
    /// How much its shape changes, the largest change of a distance, mm.
    pub bends_mm: f64,
    /// The same in the original, mm.
    pub original_bends_mm: f64,
}

/// Power of the error over the frequencies of the mesh.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpectrumFigures {
    /// Mean power in each band, mm².
    pub bands: Vec<f64>,
    /// Power in the upper half, where neighbours disagree, mm².
    pub high_power: f64,
    /// The same as a share of all power.
    pub high_share: f64,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvalFaceReport {
    /// Figures over all test poses.
    pub methods: BTreeMap<String, FaceFigures>,
    /// The methods in the order of tables.
    pub order: Vec<String>,
    /// Milliseconds a pose of the rig itself on one thread, median, where it is at hand.
    pub original_ms: Option<f64>,
    /// Figures of each test set.
    pub sets: BTreeMap<String, BTreeMap<String, FaceFigures>>,
    /// Each segment of the twin.
    pub segments: Vec<SegmentFigures>,
    /// Error over frequency, by method.
    pub spectrum: BTreeMap<String, SpectrumFigures>,
    /// Lips and lids: do they open?
    pub gaps: BTreeMap<String, GapFigures>,
    /// Segments that the original moves as rigid bodies: does the twin?
    pub rigid: Option<RigidFigures>,
    /// Of these, the single teeth: segments whose names begin with `tooth`.
    pub teeth: Option<RigidFigures>,
    /// Test poses.
    pub poses: usize,
    /// The page, where one was asked for and could be written.
    pub page: Option<PathBuf>,
    /// Why a page that was asked for is not there: the figures are worth having all the same.
    pub page_problem: Option<String>,
}

/// Weighs a face twin, and writes its page where one is asked for.
pub fn eval_face(config: &EvalFaceConfig, watch: &dyn Watch) -> Result<EvalFaceReport, JobError> {
    config.report.as_deref().map(check_folder).transpose()?;
    let twin = open_face_twin(&config.twin)?;
    let pool = threads::pool(config.threads)?;
    let (mut report, exhibits) = pool.install(|| weigh_face(config, &twin, watch))?;
    if let Some(folder) = &config.report {
        watch.event(Event::Started { what: "drawing heat maps", total: 1, unit: "page" });
        let rig = live_rig(&twin);
        let colours = rig.as_ref().and_then(|rig| rig.colours());
        match eval_page::write(folder, config, &twin, colours, &report, &exhibits) {
            Ok(page) => report.page = Some(page),
            Err(error) => report.page_problem = Some(error.to_string()),
        }
        watch.event(Event::Finished);
    }
    Ok(report)
}

/// [`eval_face`] without a page: the figures, and poses to draw.
pub(crate) fn weigh_face(
    config: &EvalFaceConfig,
    twin: &Arc<FaceTwin>,
    watch: &dyn Watch,
) -> Result<(EvalFaceReport, Vec<Exhibit>), JobError> {
    if config.test.is_empty() {
        return Err(JobError::setting("test", "no dataset of held-out poses is named"));
    }
    let mut sets = Vec::new();
    for folder in &config.test {
        let loaded = Loaded::read(folder, watch)?;
        check_fits(twin, &loaded, folder)?;
        if sets.iter().any(|(name, _)| *name == set_name(folder)) {
            return Err(JobError::setting("test", format!("two sets are named '{}'", set_name(folder))));
        }
        sets.push((set_name(folder), loaded));
    }
    let methods = eval_methods::all(config, twin, watch)?;
    weigh(twin, sets, methods, watch)
}

/// The rig itself, where it can be opened and still has the same topology.
pub(crate) fn live_rig(twin: &FaceTwin) -> Option<Box<dyn Rig>> {
    let rig = rigs::open(&twin.header().rig, &crate::Silent).ok().map(|open| open.rig);
    rig.filter(|rig| rig.mesh().topology_hash() == twin.header().topology_hash)
}

pub(super) fn set_name(folder: &Path) -> String {
    folder
        .file_name()
        .map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned())
}

pub(super) fn check_fits(twin: &FaceTwin, loaded: &Loaded, folder: &Path) -> Result<(), JobError> {
    if loaded.recording.mesh.topology_hash() != twin.header().topology_hash {
        let want = (twin.vertex_count(), twin.header().topology_hash);
        return Err(JobError::other_topology(folder, &loaded.recording.mesh, "the twin's", want));
    }
    if loaded.header.controls != twin.header().inputs.controls {
        return Err(JobError::unusable(folder, "its controls are not those that the twin knows"));
    }
    Ok(())
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

/// Sums of one segment of the twin.
#[derive(Clone, Default)]
struct SegmentTally {
    sum: f64,
    count: usize,
    max: f32,
    angles: (f64, usize),
}

/// Poses whose errors are taken apart into frequencies: it costs as much as all the rest.
const SPECTRUM_POSES: usize = 24;

fn weigh(
    twin: &Arc<FaceTwin>,
    sets: Vec<(String, Loaded)>,
    mut methods: Vec<Method>,
    watch: &dyn Watch,
) -> Result<(EvalFaceReport, Vec<Exhibit>), JobError> {
    let mesh = twin.mesh().clone();
    let adjacency = mesh.adjacency();
    let count = methods.len();
    let mut whole: Vec<Tally> = (0..count).map(|_| Tally::default()).collect();
    let mut spectra: Vec<Spectrum> = (0..count).map(|_| Spectrum::new(&adjacency)).collect();
    let mut segments = vec![SegmentTally::default(); mesh.segments().len()];
    let mut rigidity = Rigidity::new(&mesh);
    let edges: Vec<(u32, u32)> = adjacency.edges().collect();
    let mut exhibits = Vec::new();
    let mut by_set = BTreeMap::new();
    let sets: Vec<(String, Recording)> =
        sets.into_iter().map(|(name, loaded)| (name, loaded.recording)).collect();
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
        let shown = shown_poses(poses, &edges);
        let mut drawn: Vec<Exhibit> = Vec::new();
        for pose in 0..poses.len() {
            let truth = poses.vertices_of(pose);
            let mut exhibit = shown.contains(&pose).then(|| Exhibit {
                set: name.clone(),
                caption: format!("{name}, frame {pose}"),
                truth: truth.to_vec(),
                methods: Vec::new(),
            });
            for (index, method) in methods.iter_mut().enumerate() {
                let milliseconds = (method.pose)(poses.controls_of(pose), truth, &mut out)
                    .map_err(|error| JobError::unusable(name, format!("pose {pose}: {error}")))?;
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
                    rigidity.add(truth, &out);
                }
                if let Some(exhibit) = &mut exhibit {
                    exhibit.methods.push(out.clone());
                }
            }
            drawn.extend(exhibit);
            seen += 1;
            watch.event(Event::Step { done: pose as u64 + 1 });
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
        watch.event(Event::Finished);
        // The strongest expression first.
        drawn.sort_by_key(|exhibit| exhibit.truth != poses.vertices_of(shown[0]));
        exhibits.extend(drawn);
        let figures = methods.iter().zip(&mut tallies).map(|(m, t)| (m.name.clone(), t.figures(m.bytes)));
        by_set.insert(name.clone(), figures.collect());
    }
    let named = |index: usize| methods[index].name.clone();
    let spectrum = |(index, spectrum): (usize, &Spectrum)| {
        let bands: Vec<f64> = spectrum.bands().iter().map(|power| power * 100.0).collect();
        let high_power = bands[bands.len() / 2..].iter().sum();
        (named(index), SpectrumFigures { bands, high_power, high_share: spectrum.high_share() })
    };
    let report = EvalFaceReport {
        order: methods.iter().map(|method| method.name.clone()).collect(),
        methods: methods.iter().zip(&mut whole).map(|(m, t)| (m.name.clone(), t.figures(m.bytes))).collect(),
        original_ms: original_ms(twin, &sets[0].1),
        sets: by_set,
        segments: segment_figures(twin, &segments, &rigidity),
        spectrum: spectra.iter().enumerate().map(spectrum).collect(),
        gaps: gaps.iter().enumerate().map(|(index, gaps)| (named(index), gaps.figures())).collect(),
        rigid: rigidity.figures(&mesh, |_| true),
        teeth: rigidity.figures(&mesh, |name| name.starts_with("tooth")),
        poses: seen,
        page: None,
        page_problem: None,
    };
    Ok((report, exhibits))
}

/// Poses of a set that are drawn: the strongest expression, and the middle of the set.
fn shown_poses(poses: &Recording, edges: &[(u32, u32)]) -> Vec<usize> {
    let rest = poses.mesh.positions();
    let strains: Vec<f32> =
        (0..poses.len()).map(|pose| strain(edges, rest, poses.vertices_of(pose))).collect();
    let strongest =
        (0..poses.len()).fold(0, |best, pose| if strains[pose] > strains[best] { pose } else { best });
    let middle = poses.len() / 2;
    if middle == strongest { vec![strongest] } else { vec![strongest, middle] }
}

/// Milliseconds a pose of the rig itself, median of some.
fn original_ms(twin: &FaceTwin, poses: &Recording) -> Option<f64> {
    let rig = live_rig(twin)?;
    let mut original = PosedRig::new(rig.as_ref());
    let mut out = vec![Vec3::ZERO; poses.mesh.vertex_count()];
    let times: Option<Vec<f64>> = poses
        .spread(15)
        .into_iter()
        .map(|pose| {
            let start = Instant::now();
            original.pose(Pose::Controls(poses.controls_of(pose)), &mut out).ok()?;
            Some(start.elapsed().as_secs_f64() * 1e3)
        })
        .collect();
    times.filter(|times| !times.is_empty()).map(median)
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

fn segment_figures(twin: &FaceTwin, tallies: &[SegmentTally], rigidity: &Rigidity) -> Vec<SegmentFigures> {
    let (mesh, parts) = (twin.mesh(), twin.parts());
    let figures = |(segment, tally): (usize, &SegmentTally)| {
        let name = &mesh.segments().names[segment];
        let vertices = mesh.segments().vertices(segment);
        let rigid = parts.rigid.iter().any(|r| r.name == *name);
        let moved = |net: &understudy_runtime::face::NetParts| {
            vertices.first().is_some_and(|v| net.vertices.contains(v))
        };
        let kind = match (rigid, parts.nets.iter().any(moved)) {
            _ if parts.bodies.iter().any(|body| body.name == *name) => "body",
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
            bends_mm: f64::from(rigidity.bends(segment).twin) * 10.0,
            original_bends_mm: f64::from(rigidity.bends(segment).original) * 10.0,
        }
    };
    tallies.iter().enumerate().filter(|(_, tally)| tally.count > 0).map(figures).collect()
}
