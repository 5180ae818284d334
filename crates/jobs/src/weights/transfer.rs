//! `weights transfer`: the weights of one skinned mesh for another, such as clothes or a level of detail.

use super::{failure, pieces::Pieces};
use crate::outputs::check_file;
use crate::watch::Remember;
use crate::{Event, JobError, Watch, inputs, threads};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Instant;
use understudy_io::gltf::{GltfScene, to_glb_bytes};
use understudy_io::{Format, Scene};
pub use understudy_solve::skin_weights::transfer::TransferSettings;
use understudy_solve::skin_weights::transfer::transfer_weights;

/// From where to where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WeightTransferConfig {
    /// A skinned mesh.
    pub source: PathBuf,
    /// A mesh in the same place.
    pub target: PathBuf,
    /// The GLB file.
    pub output: PathBuf,
    /// What counts as a match.
    pub settings: TransferSettings,
    /// Threads; the file does not depend on it.
    pub threads: usize,
}

impl Default for WeightTransferConfig {
    fn default() -> Self {
        Self {
            source: PathBuf::new(),
            target: PathBuf::new(),
            output: PathBuf::new(),
            settings: TransferSettings::default(),
            threads: threads::available(),
        }
    }
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WeightTransferReport {
    /// The file.
    pub output: PathBuf,
    /// Its size.
    pub bytes: usize,
    /// Vertices of the target.
    pub vertices: usize,
    /// Vertices that match the source; the others were filled in.
    pub matched: usize,
    /// Bones.
    pub bones: usize,
    /// Duration.
    pub seconds: f64,
    /// What was converted, mended or filled in.
    pub notes: Vec<String>,
}

/// Reads both, writes the target with the source's bones.
pub fn transfer(config: &WeightTransferConfig, watch: &dyn Watch) -> Result<WeightTransferReport, JobError> {
    if Format::of(&config.output) != Some(Format::Glb) {
        return Err(JobError::unusable(&config.output, "a skin is written as .glb"));
    }
    check_file(&config.output, &[&config.source, &config.target])?;
    let pool = threads::pool(config.threads)?;
    let watch = Remember::new(watch);
    const SOURCE: &str = "a skinned .glb or .gltf";
    const TARGET: &str = "a mesh (.obj, .glb or .gltf)";
    let source = inputs::open(&config.source, SOURCE, &watch)?;
    let Scene::Model(body) = &source else { return Err(inputs::wrong_kind(&config.source, &source, SOURCE)) };
    let Some((skeleton, skin)) = body.bound() else {
        return Err(inputs::wrong_kind(&config.source, &source, SOURCE));
    };
    let target = inputs::open(&config.target, TARGET, &watch)?;
    let mesh = target.mesh().ok_or_else(|| inputs::wrong_kind(&config.target, &target, TARGET))?;
    let start = Instant::now();
    let pieces = Pieces::new(&watch);
    let hear = |progress| pieces.hear(progress);
    let result = pool.install(|| transfer_weights(&body.mesh, skin, mesh, &config.settings, &hear));
    let result = result.map_err(failure(&config.target))?;
    pieces.finish();
    let seconds = start.elapsed().as_secs_f64();
    for note in &result.notes {
        watch.event(Event::Warning { message: &format!("{}: {note}", config.target.display()) });
    }
    let name = inputs::stem(&config.target);
    let scene = GltfScene { skin: Some((skeleton, &result.weights)), ..GltfScene::new(&name, mesh) };
    let bytes = to_glb_bytes(&scene).map_err(|error| JobError::unusable(&config.output, error))?;
    understudy_io::write_atomic(&config.output, &bytes)?;
    Ok(WeightTransferReport {
        output: config.output.clone(),
        bytes: bytes.len(),
        vertices: mesh.vertex_count(),
        matched: result.matched.iter().filter(|matched| **matched).count(),
        bones: skeleton.len(),
        seconds,
        notes: watch.messages(),
    })
}
