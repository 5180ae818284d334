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
use super::{
    DenseParts, FaceParts, FaceTwin, MapParts, MotionParts, NetParts, RigidBodyParts, RigidParts, Stage,
    pixel_weights,
};
use crate::container::{Array, Opened, write};
use crate::dense::Precision;
use crate::header::HeaderBefore4;
use crate::{Header, TwinError};
use serde::{Deserialize, Serialize};
use understudy_core::{Face, Mesh, MeshParts, Segments, Vec2, Vec3};

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

/// Arrays under construction.
pub(crate) struct Writer {
    arrays: Vec<(String, Array)>,
    precision: Precision,
}

impl Writer {
    pub(crate) fn new(precision: Precision) -> Self {
        Self { arrays: Vec::new(), precision }
    }

    pub(crate) fn finish(self) -> Vec<(String, Array)> {
        self.arrays
    }

    pub(crate) fn push(&mut self, name: String, array: Array) {
        self.arrays.push((name, array));
    }

    pub(crate) fn row(&mut self, name: String, numbers: &[f32]) {
        self.push(name, Array::floats(&[numbers.len()], numbers.iter().copied()));
    }

    pub(crate) fn list(&mut self, name: String, numbers: &[u32]) {
        self.push(name, Array::integers(numbers.iter().copied()));
    }

    fn pairs(&mut self, name: String, pairs: &[Vec2]) {
        self.push(name, Array::floats(&[pairs.len(), 2], pairs.iter().flat_map(|p| p.to_array())));
    }

    pub(crate) fn layers(&mut self, name: &str, layers: &[DenseParts]) {
        for (index, layer) in layers.iter().enumerate() {
            let rows = layer.bias.len();
            let shape = [rows, layer.weights.len() / rows.max(1)];
            let weights = Array::weights(&shape, &layer.weights, self.precision);
            self.push(format!("{name}.{index}.weights"), weights);
            self.row(format!("{name}.{index}.bias"), &layer.bias);
        }
    }

    pub(crate) fn motion(&mut self, name: &str, motion: &MotionParts) {
        self.row(format!("{name}.pivot"), &motion.pivot.to_array());
        self.list(format!("{name}.inputs"), &motion.inputs);
        self.row(format!("{name}.mean"), &motion.mean);
        self.row(format!("{name}.scale"), &motion.scale);
        self.layers(name, &motion.layers);
    }

    fn mesh(&mut self, mesh: &Mesh) {
        let positions = mesh.positions().iter().flat_map(|v| v.to_array());
        self.push("mesh.positions".into(), Array::floats(&[mesh.vertex_count(), 3], positions));
        for (name, faces) in [("mesh.faces", mesh.faces()), ("mesh.face_uvs", mesh.face_uvs())] {
            self.push(name.into(), Array::integers(faces.iter().flat_map(|face| face.raw())));
        }
        self.pairs("mesh.uvs".into(), mesh.uvs());
        self.list("mesh.segments".into(), &mesh.segments().of_vertex);
    }
}

/// The bytes of a file. Same twin, same bytes.
pub fn to_bytes(parts: &FaceParts, precision: Precision) -> Result<Vec<u8>, TwinError> {
    let mut writer = Writer::new(precision);
    writer.mesh(&parts.mesh);
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
    write(METHOD, &parts.header, &structure, writer.finish())
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
            dense: layers(file, &name, net.layers, &mut precision)?,
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
        Some(count) => Some(motion(file, "frame", count, &mut precision)?),
    };
    let mut bodies = Vec::new();
    for (index, body) in structure.bodies.into_iter().enumerate() {
        let name = format!("body.{index}");
        bodies.push(RigidBodyParts {
            name: body.name,
            vertices: file.integers(&format!("{name}.vertices"))?,
            motion: motion(file, &name, body.layers, &mut precision)?,
        });
    }
    FaceTwin::new(FaceParts { header, mesh, frame, nets, bodies, rigid }, precision)
}

pub(crate) fn motion(
    file: &Opened<'_>,
    name: &str,
    count: usize,
    precision: &mut Precision,
) -> Result<MotionParts, TwinError> {
    let pivot = file.floats(&format!("{name}.pivot"), Some(3))?;
    let [x, y, z] = pivot[..] else {
        let problem = format!("{} numbers instead of 3", pivot.len());
        return Err(TwinError::Tensor { name: format!("{name}.pivot"), problem });
    };
    Ok(MotionParts {
        pivot: Vec3::new(x, y, z),
        inputs: file.integers(&format!("{name}.inputs"))?,
        mean: file.floats(&format!("{name}.mean"), None)?,
        scale: file.floats(&format!("{name}.scale"), None)?,
        layers: layers(file, name, count, precision)?,
    })
}

pub(crate) fn layers(
    file: &Opened<'_>,
    name: &str,
    count: usize,
    precision: &mut Precision,
) -> Result<Vec<DenseParts>, TwinError> {
    let mut out = Vec::new();
    for index in 0..count {
        let weights = format!("{name}.{index}.weights");
        if file.precision(&weights)? == Precision::Half {
            *precision = Precision::Half;
        }
        let bias = file.floats(&format!("{name}.{index}.bias"), None)?;
        out.push(DenseParts { weights: file.floats(&weights, None)?, bias });
    }
    Ok(out)
}

fn pairs(file: &Opened<'_>, name: &str) -> Result<Vec<Vec2>, TwinError> {
    Ok(file.floats(name, Some(2))?.chunks_exact(2).map(Vec2::from_slice).collect())
}

/// Faces of four corners each.
pub(crate) fn faces(file: &Opened<'_>, name: &str) -> Result<Vec<Face>, TwinError> {
    let face = |c: &[u32; 4]| match c[3] {
        Face::NONE => Face::triangle(c[0], c[1], c[2]),
        last => Face::quad(c[0], c[1], c[2], last),
    };
    Ok(file.integers(name)?.as_chunks::<4>().0.iter().map(face).collect())
}

fn mesh(file: &Opened<'_>, names: Vec<String>) -> Result<Mesh, TwinError> {
    let positions = file.floats("mesh.positions", Some(3))?;
    let parts = MeshParts {
        positions: positions.chunks_exact(3).map(Vec3::from_slice).collect(),
        faces: faces(file, "mesh.faces")?,
        uvs: pairs(file, "mesh.uvs")?,
        face_uvs: faces(file, "mesh.face_uvs")?,
        segments: Segments { names, of_vertex: file.integers("mesh.segments")? },
    };
    parts.build().map_err(|error| TwinError::Tensor { name: "mesh".into(), problem: error.to_string() })
}
