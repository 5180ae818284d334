//! The file of a face twin, inside the `container` of all twins.
//!
//! Metadata: `method` is `face`, `structure` is JSON and lists networks, rigid
//! segments, bodies, the frame and the names of the segments. Tensors: `mesh.positions [V,3]`, `mesh.faces [4F]`
//! (the largest number stands for the missing corner of a triangle), `mesh.uvs [T,2]`, `mesh.face_uvs [4F]`,
//! `mesh.segments [V]`; for network `n` `net.n.vertices`, `.inputs`, `.mean`, `.scale`, dense layers
//! `.l.weights [rows,columns]` (f16 or f32) and `.l.bias`, and with a map `.parameters` (f16 or f32; of weights
//! that pixels have of their own only those that vertices see) and `.coordinates [P,2]` (u16 where they are pixels, i16 in
//! steps of 1/512 where they are at such, else f32);
//! `rigid.r.vertices`, `rigid.r.follows`; `frame.*` like a network, `frame.pivot`; `body.b.vertices` and
//! `body.b.*` like the frame. Whole numbers are u8 or u16 where they are small enough, else u32.

use super::map_decoder::MapShape;
use super::{FaceParts, FaceTwin, MapParts, NetParts, RigidBodyParts, RigidParts, Stage, pixel_weights};
use crate::container::{Array, Opened, write};
use crate::dense::Precision;
use crate::header::HeaderBefore4;
use crate::mechanism::file::Section;
use crate::twin::network::file::{Writer, read_layers, read_motion};
use crate::twin::shared::{read_faces, write_faces};
use crate::{Header, TwinError};
use serde::{Deserialize, Serialize};
use understudy_core::{Mesh, MeshParts, Segments, Vec2, Vec3};

/// The name of the kind in a file.
pub(crate) const METHOD: &str = "face";
/// The first version in which no rectifier follows shared features.
const LEAST_UNRECTIFIED: u32 = 3;

/// A face's header had nothing of its own before version 4.
#[derive(Deserialize)]
struct NothingOwn {}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Structure {
    segments: Vec<String>,
    nets: Vec<NetHeader>,
    rigid: Vec<String>,
    /// Layers of the frame network.
    frame: Option<usize>,
    /// Files from before there were bodies have none.
    #[serde(default)]
    bodies: Vec<BodyHeader>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BodyHeader {
    name: String,
    layers: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NetHeader {
    name: String,
    stage: Stage,
    layers: usize,
    map: Option<MapShape>,
}

/// The bytes of a file. Same twin, same bytes.
pub fn to_bytes(parts: &FaceParts, precision: Precision) -> Result<Vec<u8>, TwinError> {
    let mut writer = Writer::new(precision);
    write_mesh(&mut writer, &parts.mesh);
    let mut nets = Vec::new();
    for (index, net) in parts.nets.iter().enumerate() {
        let name = format!("net.{index}");
        writer.list(format!("{name}.vertices"), &net.vertices);
        writer.list(format!("{name}.inputs"), &net.inputs);
        writer.row(format!("{name}.mean"), &net.mean);
        writer.row(format!("{name}.scale"), &net.scale);
        writer.layers(&name, &net.dense);
        if let Some(map) = &net.map {
            let parameters = pixel_weights::pack(map);
            let parameters = Array::weights(&[parameters.len()], &parameters, precision);
            writer.push(format!("{name}.parameters"), parameters);
            let numbers: Vec<f32> = map.coordinates.iter().flat_map(|place| place.to_array()).collect();
            let places = Array::places(&[map.coordinates.len(), 2], &numbers);
            writer.push(format!("{name}.coordinates"), places);
        }
        nets.push(NetHeader {
            name: net.name.clone(),
            stage: net.stage,
            layers: net.dense.len(),
            map: net.map.as_ref().map(|map| map.shape),
        });
    }
    for (index, segment) in parts.rigid.iter().enumerate() {
        writer.list(format!("rigid.{index}.vertices"), &segment.vertices);
        writer.list(format!("rigid.{index}.follows"), &segment.follows);
    }
    if let Some(frame) = &parts.frame {
        writer.motion("frame", frame);
    }
    for (index, body) in parts.bodies.iter().enumerate() {
        writer.list(format!("body.{index}.vertices"), &body.vertices);
        writer.motion(&format!("body.{index}"), &body.motion);
    }
    let structure = Structure {
        segments: parts.mesh.segments().names.clone(),
        nets,
        rigid: parts.rigid.iter().map(|segment| segment.name.clone()).collect(),
        frame: parts.frame.as_ref().map(|frame| frame.layers.len()),
        bodies: parts
            .bodies
            .iter()
            .map(|body| BodyHeader { name: body.name.clone(), layers: body.motion.layers.len() })
            .collect(),
    };
    write(METHOD, &parts.header, &structure, writer.finish(), Section::default())
}

fn write_mesh(writer: &mut Writer, mesh: &Mesh) {
    writer.points("mesh.positions".into(), mesh.positions());
    writer.push("mesh.faces".into(), write_faces(mesh.faces()));
    writer.push("mesh.face_uvs".into(), write_faces(mesh.face_uvs()));
    let uvs = mesh.uvs().iter().flat_map(|uv| uv.to_array());
    writer.push("mesh.uvs".into(), Array::floats(&[mesh.uvs().len(), 2], uvs));
    writer.list("mesh.segments".into(), &mesh.segments().of_vertex);
}

/// Reads a twin and checks everything about it. Weights stay in the precision of the file.
pub(crate) fn read(file: &Opened<'_>) -> Result<FaceTwin, TwinError> {
    let header: Header = match file.is_before_4() {
        false => file.json("header")?,
        true => {
            let before: HeaderBefore4<NothingOwn> = file.json("header")?;
            before.into_header().map_err(TwinError::Kind)?.0
        }
    };
    let structure: Structure = file.json("structure")?;
    let mesh = mesh(file, structure.segments)?;
    let mut precision = Precision::Single;
    let mut nets = Vec::new();
    for (index, net) in structure.nets.into_iter().enumerate() {
        let name = format!("net.{index}");
        let map = match net.map {
            None => None,
            Some(shape) if shape.shared_features > 0 && file.version < LEAST_UNRECTIFIED => {
                return Err(TwinError::Old { found: file.version, least: LEAST_UNRECTIFIED });
            }
            Some(shape) => {
                let places = file.places(&format!("{name}.coordinates"))?;
                let coordinates: Vec<Vec2> = places.chunks_exact(2).map(Vec2::from_slice).collect();
                let parameters = file.floats(&format!("{name}.parameters"), None)?;
                let parameters = pixel_weights::unpack(&shape, parameters, &coordinates);
                Some(MapParts { shape, parameters, coordinates })
            }
        };
        nets.push(NetParts {
            name: net.name,
            stage: net.stage,
            vertices: file.integers(&format!("{name}.vertices"))?,
            inputs: file.integers(&format!("{name}.inputs"))?,
            mean: file.floats(&format!("{name}.mean"), None)?,
            scale: file.floats(&format!("{name}.scale"), None)?,
            dense: read_layers(file, &name, net.layers, &mut precision)?,
            map,
        });
    }
    let mut rigid = Vec::new();
    for (index, name) in structure.rigid.into_iter().enumerate() {
        let vertices = file.integers(&format!("rigid.{index}.vertices"))?;
        rigid.push(RigidParts { name, vertices, follows: file.integers(&format!("rigid.{index}.follows"))? });
    }
    let frame = match structure.frame {
        None => None,
        Some(count) => Some(read_motion(file, "frame", count, &mut precision)?),
    };
    let mut bodies = Vec::new();
    for (index, body) in structure.bodies.into_iter().enumerate() {
        let name = format!("body.{index}");
        bodies.push(RigidBodyParts {
            name: body.name,
            vertices: file.integers(&format!("{name}.vertices"))?,
            motion: read_motion(file, &name, body.layers, &mut precision)?,
        });
    }
    FaceTwin::new(FaceParts { header, mesh, frame, nets, bodies, rigid }, precision)
}

fn pairs(file: &Opened<'_>, name: &str) -> Result<Vec<Vec2>, TwinError> {
    Ok(file.floats(name, Some(2))?.chunks_exact(2).map(Vec2::from_slice).collect())
}

fn mesh(file: &Opened<'_>, names: Vec<String>) -> Result<Mesh, TwinError> {
    let positions = file.floats("mesh.positions", Some(3))?;
    let parts = MeshParts {
        positions: positions.chunks_exact(3).map(Vec3::from_slice).collect(),
        faces: read_faces(file, "mesh.faces")?,
        uvs: pairs(file, "mesh.uvs")?,
        face_uvs: read_faces(file, "mesh.face_uvs")?,
        segments: Segments { names, of_vertex: file.integers("mesh.segments")? },
    };
    parts.build().map_err(|error| TwinError::Tensor { name: "mesh".into(), problem: error.to_string() })
}
