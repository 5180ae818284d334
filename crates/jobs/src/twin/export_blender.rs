//! `export --blender`: clips as the twin plays them, for Blender: point caches, the mesh and a script that loads both, so
//! that the twin stands beside the original. Start at `export_blender`.

use super::data::named_or_live_rig;
use super::export_glb::{GlbSettings, takes};
use crate::{JobError, Watch, threads};
use serde::Serialize;
use std::path::{Path, PathBuf};
use understudy_core::metrics::{distances, summarise};
use understudy_core::{Mesh, Vec3};
use understudy_io::dataset::DatasetReader;
use understudy_io::write_atomic;
use understudy_runtime::{Pose, Twin};

/// Loads the folder in Blender.
const LOADER: &str = include_str!("load_twin.py");
/// Blender's metres per centimetre of ours.
const METRES: f32 = 0.01;

/// What was exported.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExportBlenderReport {
    /// The folder.
    pub folder: PathBuf,
    /// The script that Blender runs.
    pub script: PathBuf,
    /// Its files' sizes.
    pub bytes: usize,
    /// The clips.
    pub clips: Vec<BlenderClip>,
}

/// One clip.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlenderClip {
    /// Its name.
    pub name: String,
    /// Its point cache.
    pub file: String,
    /// Frames.
    pub frames: usize,
    /// Frames per second.
    pub rate: f32,
    /// How far the twin is from the original, mean over vertices and frames, mm.
    pub mean_mm: f64,
    /// The worst vertex, mm.
    pub max_mm: f64,
}

/// What the script reads beside the caches.
#[derive(Serialize)]
struct Scene<'a> {
    name: &'a str,
    vertices: Vec<[f32; 3]>,
    faces: Vec<Vec<u32>>,
    uvs: Vec<[f32; 2]>,
    face_uvs: Vec<Vec<u32>>,
    clips: &'a [BlenderClip],
}

/// Plays the clips on the twin and writes the folder. `path` is the twin's.
pub(super) fn export_blender(
    twin: &Twin,
    path: &Path,
    folder: &Path,
    config: &GlbSettings,
    watch: &dyn Watch,
) -> Result<ExportBlenderReport, JobError> {
    let pool = threads::pool(config.threads)?;
    let rig = named_or_live_rig(twin, path, config.rig.as_deref(), watch)?;
    let mesh = match &rig {
        Some(rig) => rig.mesh().clone(),
        None => recorded_mesh(twin, path, config)?,
    };
    let takes = pool.install(|| takes(config, twin, rig.as_deref(), watch))?;
    if takes.is_empty() {
        let problem =
            "there is no clip to play: name a dataset that was recorded from one, or the rig with --rig";
        return Err(JobError::setting("clip", problem));
    }
    let mut player = twin.player(config.threads);
    let mut played = vec![Vec3::ZERO; twin.vertex_count()];
    let with_bones = !twin.header().inputs.bones.is_empty();
    let (mut clips, mut bytes) = (Vec::new(), 0);
    for (index, take) in takes.iter().enumerate() {
        let (mut misses, mut frames) = (Vec::new(), Vec::with_capacity(take.vertices.len()));
        for ((controls, bones), truth) in take.controls.iter().zip(&take.bones).zip(&take.vertices) {
            let pose = match with_bones {
                true => Pose::Bones { bones, extras: controls },
                false => Pose::Controls(controls),
            };
            player.pose(pose, &mut played).map_err(|error| JobError::unusable(path, error))?;
            misses.extend(distances(&played, truth));
            frames.push(played.clone());
        }
        let cache = point_cache(&frames);
        let file = format!("{:02}-{}.pc2", index + 1, file_name(&take.name));
        write_atomic(&folder.join(&file), &cache)?;
        bytes += cache.len();
        let summary = summarise(&misses);
        clips.push(BlenderClip {
            name: take.name.clone(),
            file,
            frames: frames.len(),
            rate: take.rate,
            mean_mm: summary.mean * 10.0,
            max_mm: summary.max * 10.0,
        });
    }
    let scene = serde_json::to_vec(&scene(&mesh, &format!("{} twin", twin.header().rig), &clips))
        .map_err(|error| JobError::Machine(error.to_string()))?;
    write_atomic(&folder.join("twin.json"), &scene)?;
    let script = folder.join("load_twin.py");
    write_atomic(&script, LOADER.as_bytes())?;
    bytes += scene.len() + LOADER.len();
    Ok(ExportBlenderReport { folder: folder.into(), script, bytes, clips })
}

/// The mesh of a dataset among the clips: a twin's file holds no faces.
fn recorded_mesh(twin: &Twin, path: &Path, config: &GlbSettings) -> Result<Mesh, JobError> {
    let folders = config.clips.iter().map(Path::new).chain(config.train.as_deref());
    for folder in folders.filter(|folder| folder.is_dir()) {
        let reader = DatasetReader::open(folder)?;
        let mesh = &reader.rest().mesh;
        if mesh.topology_hash() == twin.header().topology_hash {
            return Ok(mesh.clone());
        }
    }
    let problem = format!(
        "holds no faces, and its rig '{}' is not at hand; name it with --rig, or a dataset with --clip",
        twin.header().rig
    );
    Err(JobError::unusable(path, problem))
}

fn scene<'a>(mesh: &Mesh, name: &'a str, clips: &'a [BlenderClip]) -> Scene<'a> {
    let corners =
        |faces: &[understudy_core::Face]| faces.iter().map(|face| face.corners().to_vec()).collect();
    Scene {
        name,
        vertices: mesh.positions().iter().map(|p| blender_point(*p)).collect(),
        faces: corners(mesh.faces()),
        uvs: mesh.uvs().iter().map(|uv| uv.to_array()).collect(),
        face_uvs: corners(mesh.face_uvs()),
        clips,
    }
}

/// Centimetres and Y-up as metres and Z-up.
fn blender_point(p: Vec3) -> [f32; 3] {
    [p.x * METRES, -p.z * METRES, p.y * METRES]
}

/// Frames as a point cache (PC2): a head of 32 bytes, then the places of all vertices frame by frame.
fn point_cache(frames: &[Vec<Vec3>]) -> Vec<u8> {
    let points = frames.first().map_or(0, Vec::len);
    let mut out = Vec::with_capacity(32 + frames.len() * points * 12);
    out.extend_from_slice(b"POINTCACHE2\0");
    out.extend_from_slice(&1i32.to_le_bytes());
    out.extend_from_slice(&(points as i32).to_le_bytes());
    // First frame and frames per sample.
    out.extend_from_slice(&0f32.to_le_bytes());
    out.extend_from_slice(&1f32.to_le_bytes());
    out.extend_from_slice(&(frames.len() as i32).to_le_bytes());
    let numbers = frames.iter().flatten().flat_map(|point| blender_point(*point));
    out.extend(numbers.flat_map(f32::to_le_bytes));
    out
}

/// A clip's name without what a file system minds.
fn file_name(clip: &str) -> String {
    clip.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_has_its_head_and_blenders_axes() {
        let cache = point_cache(&[vec![Vec3::new(100.0, 200.0, 300.0)], vec![Vec3::ZERO]]);
        assert_eq!((cache.len(), &cache[..12]), (32 + 2 * 12, b"POINTCACHE2\0".as_slice()));
        let number = |at: usize| i32::from_le_bytes(cache[at..at + 4].try_into().expect("four bytes"));
        assert_eq!((number(12), number(16), number(28)), (1, 1, 2));
        let float = |at: usize| f32::from_le_bytes(cache[at..at + 4].try_into().expect("four bytes"));
        assert_eq!([float(32), float(36), float(40)], [1.0, -3.0, 2.0]);
        assert_eq!(file_name("a/b:c.1"), "a_b_c.1");
    }
}
