//! `weights`: skinning weights for handles, from the mesh alone or improved by examples, as a GLB that any engine skins.
//! Start at [`weights`]; where handles come from is in `handles`, dragging them in [`mod@deform`], weights from another
//! mesh in [`mod@transfer`]. The mathematics is in `understudy_solve::skin_weights`.

pub mod deform;
mod handles;
mod maps;
mod page;
mod pieces;
pub mod session;
pub mod transfer;

use crate::outputs::{check_distinct, check_file};
use crate::watch::Remember;
use crate::{Event, JobError, Watch, inputs, rigs, threads};
use handles::read_handles;
use pieces::Pieces;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_core::{Bone, JointTransform, Mesh, Skeleton, SkinWeights, Vec3};
use understudy_io::gltf::{GltfScene, to_glb_bytes};
use understudy_io::npz::NpzWriter;
use understudy_io::{Format, ReadError, Scene};
pub use understudy_solve::skin_weights::examples::{ExampleSettings, ExampleStop, Sparsity};
use understudy_solve::skin_weights::examples::{OptimisedWeights, optimise_weights};
pub use understudy_solve::skin_weights::{DomainKind, SkinWeightsReport, WeightKind, WeightSettings};
use understudy_solve::skin_weights::{SolvedWeights, WeightsError, solve_weights};

/// Weights below this are left out of files: nobody sees them, and rows get short.
const SMALLEST: f64 = 1e-4;

/// What to weigh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WeightsConfig {
    /// The mesh: a file, or a character by name.
    pub mesh: String,
    /// A handle file (TOML), or a file with bones.
    pub handles: PathBuf,
    /// Deformed meshes of the same topology.
    pub examples: Vec<PathBuf>,
    /// The GLB file.
    pub output: PathBuf,
    /// The weights as arrays, too.
    pub npz: Option<PathBuf>,
    /// A sheet of weight maps, too.
    pub maps: Option<PathBuf>,
    /// A page about them, too.
    pub report: Option<PathBuf>,
    /// How weights are solved.
    pub settings: WeightSettings,
    /// How examples improve them.
    pub example_settings: ExampleSettings,
    /// Threads; the file does not depend on it.
    pub threads: usize,
    /// Shown on the page.
    pub command: String,
}

impl Default for WeightsConfig {
    fn default() -> Self {
        Self {
            mesh: String::new(),
            handles: PathBuf::new(),
            examples: Vec::new(),
            output: PathBuf::new(),
            npz: None,
            maps: None,
            report: None,
            settings: WeightSettings::default(),
            example_settings: ExampleSettings::default(),
            threads: threads::available(),
            command: String::new(),
        }
    }
}

/// What examples changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExamplesReport {
    /// How many.
    pub examples: usize,
    /// Rounds used.
    pub rounds: usize,
    /// Why it ended.
    pub stop: ExampleStop,
    /// Energy before and after, per vertex and example, of a mesh with a diagonal of one.
    pub energy: [f64; 2],
    /// Root of the mean squared distance to the examples, cm.
    pub rmse_cm: f64,
    /// Duration.
    pub seconds: f64,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WeightsReport {
    /// The file.
    pub output: PathBuf,
    /// Its size.
    pub bytes: usize,
    /// Vertices of the mesh.
    pub vertices: usize,
    /// Names of the handles.
    pub handles: Vec<String>,
    /// Most handles per vertex in the file.
    pub influences: usize,
    /// Share of all weights that are below a twentieth.
    pub near_zero_share: f64,
    /// How weights were solved.
    pub solve: SkinWeightsReport,
    /// Duration of that.
    pub seconds: f64,
    /// What examples changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub examples: Option<ExamplesReport>,
    /// What was converted, mended or taken from elsewhere.
    pub notes: Vec<String>,
}

/// Reads mesh and handles, solves, writes the GLB.
pub fn weights(config: &WeightsConfig, watch: &dyn Watch) -> Result<WeightsReport, JobError> {
    if Format::of(&config.output) != Some(Format::Glb) {
        return Err(JobError::unusable(&config.output, "a skin is written as .glb"));
    }
    let mesh_file = rigs::source_file(&config.mesh);
    let mut read: Vec<&Path> = vec![&mesh_file, &config.handles];
    read.extend(config.examples.iter().map(PathBuf::as_path));
    let mut outputs = vec![("the skinned mesh", config.output.as_path())];
    outputs.extend(config.npz.iter().map(|path| ("the arrays", path.as_path())));
    outputs.extend(config.maps.iter().map(|path| ("the maps", path.as_path())));
    outputs.extend(config.report.iter().map(|path| ("the page", path.as_path())));
    if let Some(page) = config.report.as_ref().filter(|page| page.extension().is_none_or(|e| e != "html")) {
        return Err(JobError::unusable(page, "a page is written as .html"));
    }
    outputs.iter().try_for_each(|(_, path)| check_file(path, &read))?;
    check_distinct(&outputs)?;
    let checked = config.settings.check().and_then(|()| config.example_settings.check());
    checked.map_err(|error| JobError::setting("weights", error))?;
    let pool = threads::pool(config.threads)?;
    let watch = Remember::new(watch);
    let mesh = read_mesh(&config.mesh, &watch)?;
    let source = read_handles(&config.handles, &watch)?;
    let rigs: Vec<&Path> = source.rigs.iter().map(PathBuf::as_path).collect();
    outputs.iter().try_for_each(|(_, path)| check_file(path, &rigs))?;
    let examples = read_examples(&config.examples, &config.mesh, &mesh, &watch)?;

    let start = Instant::now();
    let pieces = Pieces::new(&watch);
    let hear = |progress| pieces.hear(progress);
    let solved = pool.install(|| solve_weights(&mesh, &source.handles, &config.settings, &hear));
    let solved = solved.map_err(failure(&config.handles))?;
    pieces.finish();
    let seconds = start.elapsed().as_secs_f64();
    for note in &solved.report.notes {
        watch.event(Event::Warning { message: &format!("{}: {note}", config.mesh) });
    }
    let optimised = improve(config, &mesh, &solved, &examples, &pool, &watch)?;
    let values = optimised.as_ref().map_or(&solved.values, |(optimised, _)| &optimised.values);
    let (skeleton, bones) =
        source.skeleton(&solved).map_err(|error| JobError::unusable(&config.handles, error))?;
    let skin = skin_on(values, &bones, skeleton.len());
    let skin = skin.map_err(|error| JobError::unusable(&config.mesh, error))?;
    let name = inputs::stem(Path::new(&config.mesh));
    let scene = GltfScene { skin: Some((&skeleton, &skin)), ..GltfScene::new(&name, &mesh) };
    let bytes = to_glb_bytes(&scene).map_err(|error| JobError::unusable(&config.output, error))?;
    understudy_io::write_atomic(&config.output, &bytes)?;
    if let Some(path) = &config.npz {
        let mut npz = NpzWriter::new();
        let numbers: Vec<f32> = values.iter().map(|w| *w as f32).collect();
        let places: Vec<f32> = solved.places.iter().flat_map(|p| p.as_vec3().to_array()).collect();
        npz.strings("names", &solved.names)
            .f32("weights", &[mesh.vertex_count(), solved.columns()], &numbers)
            .f32("places", &[solved.columns(), 3], &places);
        npz.write(path)?;
    }
    if let Some(path) = &config.maps {
        let picture = maps::sheet(&name, &mesh, &solved.names, values);
        understudy_io::write_atomic(path, &picture.to_png())?;
    }
    let small = values.iter().filter(|w| **w < 0.05).count();
    let report = WeightsReport {
        output: config.output.clone(),
        bytes: bytes.len(),
        vertices: mesh.vertex_count(),
        handles: solved.names.clone(),
        influences: skin.max_influences(),
        near_zero_share: small as f64 / values.len().max(1) as f64,
        solve: solved.report.clone(),
        seconds,
        examples: optimised.as_ref().map(|(_, report)| report.clone()),
        notes: watch.messages(),
    };
    if let Some(path) = &config.report {
        let optimised = optimised.as_ref().map(|(optimised, _)| optimised);
        let shown = page::Shown { name: &name, mesh: &mesh, solved: &solved, optimised, examples: &examples };
        let page = pool.install(|| page::page(config, &report, &shown));
        understudy_io::write_atomic(path, page.to_html().as_bytes())?;
    }
    Ok(report)
}

fn improve(
    config: &WeightsConfig,
    mesh: &Mesh,
    solved: &SolvedWeights,
    examples: &[Vec<Vec3>],
    pool: &rayon::ThreadPool,
    watch: &dyn Watch,
) -> Result<Option<(OptimisedWeights, ExamplesReport)>, JobError> {
    if examples.is_empty() {
        return Ok(None);
    }
    let start = Instant::now();
    let pieces = Pieces::new(watch);
    let hear = |progress| pieces.hear(progress);
    let all: Vec<&[Vec3]> = examples.iter().map(Vec::as_slice).collect();
    let settings =
        ExampleSettings { max_influences: config.settings.max_influences, ..config.example_settings };
    let result = pool.install(|| optimise_weights(mesh, solved, &all, &settings, &hear));
    let result = result.map_err(failure(&config.handles))?;
    pieces.finish();
    let energy = [result.history.first(), result.history.last()].map(|e| e.map_or(0.0, |e| e.total()));
    let report = ExamplesReport {
        examples: examples.len(),
        rounds: result.rounds,
        stop: result.stop,
        energy,
        rmse_cm: result.rmse,
        seconds: start.elapsed().as_secs_f64(),
    };
    Ok(Some((result, report)))
}

/// A solver's error, of the file that is at fault.
fn failure(path: &Path) -> impl Fn(WeightsError) -> JobError + '_ {
    move |error| match error {
        WeightsError::Stopped => JobError::Stopped,
        error => JobError::unusable(path, error),
    }
}

/// A mesh by name or file, at rest.
fn read_mesh(name: &str, watch: &dyn Watch) -> Result<Mesh, JobError> {
    Ok(rigs::open(name, watch)?.rig.mesh().clone())
}

/// Examples: files of one mesh, or archives of frames, all of the mesh's topology.
fn read_examples(
    paths: &[PathBuf],
    name: &str,
    mesh: &Mesh,
    watch: &dyn Watch,
) -> Result<Vec<Vec<Vec3>>, JobError> {
    const WANTED: &str = "an .obj, .glb or .gltf of one mesh, or an .npz of frames";
    let mut examples = Vec::new();
    for path in paths {
        match inputs::open(path, WANTED, watch)? {
            Scene::Sequence(sequence) => {
                if let Some((frame, vertex)) = sequence.first_gap() {
                    return Err(JobError::unusable(
                        path,
                        format!("frame {frame}: vertex {vertex} is missing (NaN)"),
                    ));
                }
                for number in 0..sequence.frames.len() {
                    let frame = sequence.frames.read(number).map_err(ReadError::content(path))?;
                    if frame.len() != mesh.vertex_count() {
                        let problem = format!("has {} vertices, {name} {}", frame.len(), mesh.vertex_count());
                        return Err(JobError::unusable(path, problem));
                    }
                    examples.push(frame);
                }
            }
            Scene::Model(model) => {
                let same =
                    model.mesh.vertex_count() == mesh.vertex_count() && model.mesh.faces() == mesh.faces();
                if !same {
                    let want = (mesh.vertex_count(), mesh.topology_hash());
                    return Err(JobError::other_topology(
                        path,
                        &model.mesh,
                        &format!("that of {name}"),
                        want,
                    ));
                }
                examples.push(model.rest_vertices());
            }
            other => return Err(inputs::wrong_kind(path, &other, WANTED)),
        }
    }
    Ok(examples)
}

/// Rows for a file: without what is too small to see, a bone per column.
fn skin_of(values: &[f64], columns: usize) -> Result<SkinWeights, understudy_core::SkinError> {
    skin_on(values, &(0..columns).collect::<Vec<_>>(), columns)
}

/// The same for a skeleton of `count` bones, where every column has its bone.
fn skin_on(values: &[f64], bones: &[usize], count: usize) -> Result<SkinWeights, understudy_core::SkinError> {
    let row = |row: &[f64]| {
        let kept = row.iter().zip(bones).filter(|(w, _)| **w >= SMALLEST);
        let sum: f64 = kept.clone().map(|(w, _)| w).sum();
        kept.map(|(w, bone)| (*bone as u16, (w / sum) as f32)).collect::<Vec<_>>()
    };
    SkinWeights::from_rows(&values.chunks_exact(bones.len()).map(row).collect::<Vec<_>>(), count)
}

/// A bone per handle, side by side, each resting where the handle does.
fn flat_skeleton(names: &[String], places: &[Vec3]) -> Result<Skeleton, understudy_core::SkeletonError> {
    let bone = |(name, place): (&String, &Vec3)| Bone {
        name: name.clone(),
        parent: None,
        rest: JointTransform::from_translation(*place),
    };
    Skeleton::new(names.iter().zip(places).map(bone).collect())
}
