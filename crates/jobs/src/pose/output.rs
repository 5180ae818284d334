//! Poses as files: controls as a table, a picture, or a mesh with morph targets where they move.

use super::Subject;
use crate::stage::{Shot, Stage, View};
use crate::{JobError, Watch, convert};
use std::path::Path;
use understudy_core::{Controls, Face, Mesh, MeshError, MeshParts, Vec3};
use understudy_io::live_link::{WeightTable, weights_to_text};

/// What a file's extension asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Table,
    Picture,
    Model,
}

/// How a picture looks.
pub(super) struct Look<'a> {
    pub view: &'a View,
    pub size: usize,
    /// What each frame shows beside the character: places and colours.
    pub markers: &'a [Vec<(Vec3, Vec3)>],
}

/// Frames of a clip on one picture.
const SHEET: usize = 8;

pub(super) fn kind(path: &Path) -> Result<Kind, JobError> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref() {
        Some("csv") => Ok(Kind::Table),
        Some("png") => Ok(Kind::Picture),
        Some("glb") => Ok(Kind::Model),
        _ => Err(JobError::unusable(path, "poses are written as .csv (controls), .png or .glb")),
    }
}

pub(super) fn write(
    path: &Path,
    kind: Kind,
    subject: &mut Subject,
    poses: &[Controls],
    rate: f32,
    look: &Look<'_>,
    watch: &dyn Watch,
) -> Result<(), JobError> {
    let bytes = match kind {
        Kind::Table => {
            let table = WeightTable {
                names: subject.specs().iter().map(|spec| spec.name.clone()).collect(),
                frames: poses.iter().map(|controls| controls.0.clone()).collect(),
                rate: Some(rate),
            };
            let text = weights_to_text(&table).map_err(|problem| JobError::unusable(path, problem))?;
            text.into_bytes()
        }
        Kind::Picture => {
            let count = poses.len().min(SHEET);
            let chosen = (0..count).map(|index| index * (poses.len() - 1) / (count - 1).max(1));
            let mut shots = Vec::with_capacity(count);
            for index in chosen {
                let caption = format!("{:.2} s", index as f32 / rate);
                let mut vertices = subject.vertices(&poses[index])?;
                let size = height(&vertices);
                for (place, _) in look.markers.get(index).into_iter().flatten() {
                    vertices.extend(MARKER.map(|corner| *place + corner * size * MARKER_SIZE));
                }
                shots.push(Shot { vertices, caption });
            }
            let mesh = subject.mesh()?;
            let plain = vec![Vec3::splat(0.75); mesh.vertex_count()];
            let mut colours = subject.rig().and_then(|rig| rig.colours()).map_or(plain, <[Vec3]>::to_vec);
            let markers = look.markers.first().map_or(&[][..], Vec::as_slice);
            colours.extend(markers.iter().flat_map(|(_, colour)| [*colour; 6]));
            let mesh = marked(&mesh, &shots[0].vertices, markers.len())
                .map_err(|error| JobError::unusable(path, error))?;
            let colours = Some(&colours[..]);
            let stage = Stage { mesh: &mesh, colours, size: look.size, dark: false };
            match &shots[..] {
                [_] => stage.pictures(&shots, look.view).remove(0).to_png(),
                _ => stage.sheet("pose", "", &shots, std::slice::from_ref(look.view)).to_png(),
            }
        }
        Kind::Model => {
            let frames =
                poses.iter().map(|controls| subject.vertices(controls)).collect::<Result<Vec<_>, _>>()?;
            let mesh = subject.mesh()?;
            convert::baked_glb("pose", &mesh, subject.rig(), &frames, rate, watch)?
        }
    };
    Ok(understudy_io::write_atomic(path, &bytes)?)
}

/// An octahedron.
const MARKER: [Vec3; 6] = [Vec3::X, Vec3::Y, Vec3::Z, Vec3::NEG_X, Vec3::NEG_Y, Vec3::NEG_Z];
/// Half its size, as a share of the character's height.
const MARKER_SIZE: f32 = 0.007;

fn height(vertices: &[Vec3]) -> f32 {
    let span = vertices.iter().fold((f32::MAX, f32::MIN), |(low, high), v| (low.min(v.y), high.max(v.y)));
    (span.1 - span.0).max(0.0)
}

/// The mesh with so many octahedra behind it.
fn marked(mesh: &Mesh, vertices: &[Vec3], markers: usize) -> Result<Mesh, MeshError> {
    let mut faces = mesh.faces().to_vec();
    for marker in 0..markers {
        let first = (mesh.vertex_count() + 6 * marker) as u32;
        for corner in 0..8u32 {
            let side = |axis: u32| first + axis + 3 * (corner >> axis & 1);
            let [a, b, c] = [0, 1, 2].map(side);
            // An odd number of mirrored axes turns a face inside out.
            let flipped = corner.count_ones() % 2 == 1;
            faces.push(if flipped { Face::triangle(a, c, b) } else { Face::triangle(a, b, c) });
        }
    }
    MeshParts { positions: vertices.to_vec(), faces, ..MeshParts::default() }.build()
}
