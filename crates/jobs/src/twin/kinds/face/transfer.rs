//! `transfer`: a face twin on another mesh with the same texture coordinates, and how much it loses there.

use super::open_face_twin;
use crate::outputs::check_file;
use crate::twin::data::Loaded;
use crate::twin::eval::set_name;
use crate::{Event, JobError, Watch, inputs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use understudy_core::Vec3;
use understudy_core::metrics::distances;
use understudy_io::Scene;
use understudy_learn::face::transfer::{Spot, transfer};
use understudy_learn::{Method as _, MethodError, PlayedTwin, Recording};
use understudy_runtime::face::{FaceTwin, to_bytes};
use understudy_runtime::{Twin, TwinError};

/// What another mesh can be read from.
const MESH_FILES: &str = "an .obj, .glb or .gltf file";

/// What to transfer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransferConfig {
    /// The twin's file.
    pub twin: PathBuf,
    /// The file of the other mesh.
    pub mesh: PathBuf,
    /// The new twin's file.
    pub output: PathBuf,
    /// Datasets of the old mesh on which both twins are weighed.
    pub check: Vec<PathBuf>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TransferReport {
    /// The new twin's file.
    pub output: PathBuf,
    /// Its size.
    pub bytes: usize,
    /// Vertices of the old mesh.
    pub from_vertices: usize,
    /// Vertices of the new mesh.
    pub to_vertices: usize,
    /// Vertices that lie outside the old texture and follow what is nearest.
    pub outside: usize,
    /// What the transfer costs, by the part of the twin that is weighed: `coarse`, `twin`.
    pub check: BTreeMap<String, TransferFigures>,
}

/// A twin on both meshes. The truth of the new mesh is the old mesh's surface, at the same place of the
/// texture.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TransferFigures {
    /// Mean distance of a vertex on the old mesh, mm.
    pub original_mm: f64,
    /// Mean distance of a vertex on the new mesh, mm.
    pub moved_mm: f64,
    /// The second over the first.
    pub ratio: f64,
    /// The worst vertex of all poses on the old mesh, mm.
    pub original_max_mm: f64,
    /// The worst vertex of all poses on the new mesh, mm.
    pub moved_max_mm: f64,
}

/// Transfers a twin and writes it.
pub fn transfer_face(config: &TransferConfig, watch: &dyn Watch) -> Result<TransferReport, JobError> {
    let read = [&config.twin, &config.mesh].into_iter().chain(&config.check).map(PathBuf::as_path);
    check_file(&config.output, &read.collect::<Vec<_>>())?;
    let twin = open_face_twin(&config.twin)?;
    let mesh = match inputs::open(&config.mesh, MESH_FILES, watch)? {
        Scene::Model(model) => model.mesh,
        other => return Err(inputs::wrong_kind(&config.mesh, &other, MESH_FILES)),
    };
    let sets = read_sets(config, &twin, watch)?;
    let moved = transfer(&twin.parts(), &mesh).map_err(|error| JobError::unusable(&config.mesh, error))?;
    if moved.outside > 0 {
        let message = format!("{} vertices lie outside the twin's texture", moved.outside);
        watch.event(Event::Warning { message: &message });
    }
    let unusable = |error: TwinError| JobError::unusable(&config.output, error);
    let bytes = to_bytes(&moved.parts, twin.precision()).map_err(unusable)?;
    Twin::parse(&bytes).map_err(unusable)?;
    let new = FaceTwin::new(moved.parts, twin.precision()).map_err(unusable)?;
    let check = weigh(&twin, &new, &moved.spots, sets, watch)?;
    understudy_io::write_atomic(&config.output, &bytes)?;
    Ok(TransferReport {
        output: config.output.clone(),
        bytes: bytes.len(),
        from_vertices: twin.vertex_count(),
        to_vertices: mesh.vertex_count(),
        outside: moved.outside,
        check,
    })
}

fn read_sets(
    config: &TransferConfig,
    twin: &FaceTwin,
    watch: &dyn Watch,
) -> Result<Vec<(String, Recording)>, JobError> {
    let twin = Twin::from(twin.clone());
    let read = |folder: &PathBuf| {
        Ok((set_name(folder), Loaded::read_for(&twin, folder, usize::MAX, watch)?.recording))
    };
    config.check.iter().map(read).collect()
}

/// Sum, worst and number of distances.
#[derive(Clone, Copy, Default)]
struct Misses(f64, f32, usize);

impl Misses {
    fn add(&mut self, distances: &[f32]) {
        self.0 += distances.iter().map(|d| f64::from(*d)).sum::<f64>();
        self.1 = distances.iter().copied().fold(self.1, f32::max);
        self.2 += distances.len();
    }

    fn mean_mm(&self) -> f64 {
        self.0 / self.2.max(1) as f64 * 10.0
    }
}

fn weigh(
    old: &FaceTwin,
    new: &FaceTwin,
    spots: &[Spot],
    sets: Vec<(String, Recording)>,
    watch: &dyn Watch,
) -> Result<BTreeMap<String, TransferFigures>, JobError> {
    let mut out = BTreeMap::new();
    let rest = new.mesh().positions();
    // A mesh that does not lie on the old surface exactly keeps its distance from it.
    let away: Vec<Vec3> =
        rest.iter().zip(spots).map(|(at, spot)| *at - spot.on(old.mesh().positions())).collect();
    let mut vertices = [vec![Vec3::ZERO; old.vertex_count()], vec![Vec3::ZERO; new.vertex_count()]];
    for coarse in [true, false] {
        if sets.is_empty() || (!coarse && !old.has_refinement()) {
            continue;
        }
        let twins = [old, new].map(|twin| Twin::from(if coarse { twin.coarse() } else { twin.clone() }));
        let mut misses = [Misses::default(); 2];
        for (name, poses) in &sets {
            let what = format!("weighing {} on {name}", if coarse { "the coarse part" } else { "the twin" });
            watch.event(Event::Started { what: &what, total: poses.len() as u64, unit: "poses" });
            let play = |twin: &Twin| PlayedTwin::new(name, 0, twin, &poses.specs);
            let unusable = |error: MethodError| JobError::unusable(name, error);
            let mut players = [play(&twins[0]).map_err(unusable)?, play(&twins[1]).map_err(unusable)?];
            for pose in 0..poses.len() {
                let truth = poses.vertices_of(pose);
                let on_new: Vec<Vec3> =
                    spots.iter().zip(&away).map(|(spot, away)| spot.on(truth) + *away).collect();
                for (slot, truth) in [truth, &on_new].into_iter().enumerate() {
                    players[slot]
                        .pose(poses.frame(pose), &mut vertices[slot])
                        .map_err(|error| JobError::unusable(name, format!("pose {pose}: {error}")))?;
                    misses[slot].add(&distances(&vertices[slot], truth));
                }
                watch.event(Event::Step { done: pose as u64 + 1 });
                if watch.should_stop() {
                    return Err(JobError::Stopped);
                }
            }
            watch.event(Event::Finished);
        }
        let [original, moved] = misses;
        let figures = TransferFigures {
            original_mm: original.mean_mm(),
            moved_mm: moved.mean_mm(),
            ratio: moved.mean_mm() / original.mean_mm().max(1e-9),
            original_max_mm: f64::from(original.1) * 10.0,
            moved_max_mm: f64::from(moved.1) * 10.0,
        };
        out.insert(if coarse { "coarse" } else { "twin" }.to_owned(), figures);
    }
    Ok(out)
}
