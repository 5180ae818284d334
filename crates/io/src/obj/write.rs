//! OBJ text of a mesh: every number in the fewest digits that read back to it.

use super::segments::{Notes, inferred, line_name};
use crate::{WriteError, write_atomic};
use std::fmt::Write as _;
use std::path::Path;
use understudy_core::{Face, Mesh, Segments};

/// Writes an `.obj` in cm, whole or not at all.
pub fn write(path: &Path, mesh: &Mesh) -> Result<(), WriteError> {
    write_atomic(path, to_obj_string(mesh).as_bytes())
}

/// The text of an `.obj` in cm: positions, texture coordinates, and faces under the group of their
/// segment.
pub fn to_obj_string(mesh: &Mesh) -> String {
    let mut out = String::with_capacity(64 * mesh.vertex_count() + 48 * mesh.faces().len());
    let text = "writing to a string cannot fail";
    writeln!(out, "# understudy {}, centimetres", env!("CARGO_PKG_VERSION")).expect(text);
    for p in mesh.positions() {
        writeln!(out, "v {} {} {}", p.x, p.y, p.z).expect(text);
    }
    for uv in mesh.uvs() {
        writeln!(out, "vt {} {}", uv.x, uv.y).expect(text);
    }
    let segments = mesh.segments();
    let names: Vec<String> = segments.names.iter().map(|name| line_name(name)).collect();
    let plain = segments.names == ["all"];
    let mut current = None;
    for (index, face) in mesh.faces().iter().enumerate() {
        let segment = segments.of_vertex[face.corners()[0] as usize];
        if !plain && current.replace(segment) != Some(segment) {
            writeln!(out, "g {}", names[segment as usize]).expect(text);
        }
        write_face(face, mesh.face_uvs().get(index), &mut out);
    }
    let wanted = Segments { names, of_vertex: segments.of_vertex.clone() };
    if !plain && inferred(mesh, &wanted.names) != wanted {
        Notes::write(&wanted.names, &wanted.of_vertex, &mut out);
    }
    out
}

fn write_face(face: &Face, uvs: Option<&Face>, out: &mut String) {
    out.push('f');
    for (place, corner) in face.corners().iter().enumerate() {
        let result = match uvs {
            Some(uvs) => write!(out, " {}/{}", corner + 1, uvs.raw()[place] + 1),
            None => write!(out, " {}", corner + 1),
        };
        result.expect("writing to a string cannot fail");
    }
    out.push('\n');
}
