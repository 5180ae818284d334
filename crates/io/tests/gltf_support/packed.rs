//! A wavy grid as glTF, plain, quantised, and packed with meshopt and Draco: small files that ordinary tests and the
//! fuzz corpus share.

use draco_core::{
    DataType, EncoderBuffer, EncoderOptions, GeometryAttributeType, Mesh, MeshEncoder, PointAttribute,
    PointIndex,
};
use serde_json::{Value, json};

/// Vertices along a side.
const SIDE: usize = 7;

/// A document and its only buffer.
pub struct Packed {
    pub json: Value,
    pub bytes: Vec<u8>,
}

impl Packed {
    /// As a `.glb`.
    pub fn glb(&self) -> Vec<u8> {
        let mut text = self.json.to_string().into_bytes();
        text.resize(text.len().next_multiple_of(4), b' ');
        let mut bytes = self.bytes.clone();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let mut out = b"glTF\x02\0\0\0".to_vec();
        out.extend((28 + text.len() as u32 + bytes.len() as u32).to_le_bytes());
        out.extend((text.len() as u32).to_le_bytes());
        out.extend(b"JSON");
        out.extend(text);
        out.extend((bytes.len() as u32).to_le_bytes());
        out.extend(b"BIN\0");
        out.extend(bytes);
        out
    }
}

/// Metres.
pub fn positions() -> Vec<[f32; 3]> {
    let place = |i: usize| {
        let (x, y) = ((i % SIDE) as f32 / 4.0, (i / SIDE) as f32 / 4.0);
        [x, y, (x * 2.0).sin() * 0.25]
    };
    (0..SIDE * SIDE).map(place).collect()
}

pub fn indices() -> Vec<u32> {
    let cell = |cell: usize| {
        let a = (cell / (SIDE - 1) * SIDE + cell % (SIDE - 1)) as u32;
        let (b, c, d) = (a + 1, a + SIDE as u32, a + SIDE as u32 + 1);
        [a, b, d, a, d, c]
    };
    (0..(SIDE - 1) * (SIDE - 1)).flat_map(cell).collect()
}

fn document(views: Value, buffers: Value, primitive: Value, required: &[&str]) -> Value {
    json!({
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}],
        "extensionsUsed": required, "extensionsRequired": required,
        "nodes": [{"mesh": 0, "name": "grid"}], "meshes": [{"primitives": [primitive]}],
        "buffers": buffers, "bufferViews": views,
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": positions().len(), "type": "VEC3",
             "min": [0.0, 0.0, -0.25], "max": [1.5, 1.5, 0.25]},
            {"bufferView": 1, "componentType": 5125, "count": indices().len(), "type": "SCALAR"},
        ],
    })
}

fn view(buffer: usize, offset: usize, length: usize) -> Value {
    json!({"buffer": buffer, "byteOffset": offset, "byteLength": length})
}

/// Not packed at all.
pub fn plain() -> Packed {
    let mut bytes: Vec<u8> = positions().iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
    let first = bytes.len();
    bytes.extend(indices().iter().flat_map(|i| i.to_le_bytes()));
    let views = json!([view(0, 0, first), view(0, first, bytes.len() - first)]);
    let primitive = json!({"attributes": {"POSITION": 0}, "indices": 1});
    Packed { json: document(views, json!([{"byteLength": bytes.len()}]), primitive, &[]), bytes }
}

/// `KHR_mesh_quantization`: positions as 16-bit integers, scaled by the node.
pub fn quantised() -> Packed {
    let mut packed = plain();
    let scale = 1.5;
    let rows = positions()
        .iter()
        .flat_map(|p| {
            let [x, y, z] = p.map(|v| (v / scale * 32767.0).round() as i16);
            [x, y, z, 0]
        })
        .flat_map(i16::to_le_bytes)
        .collect::<Vec<u8>>();
    let first = rows.len();
    let old = positions().len() * 12;
    packed.bytes.splice(..old, rows);
    packed.json["bufferViews"] = json!([view(0, 0, first), view(0, first, packed.bytes.len() - first)]);
    packed.json["bufferViews"][0]["byteStride"] = 8.into();
    packed.json["buffers"] = json!([{"byteLength": packed.bytes.len()}]);
    packed.json["accessors"][0]["componentType"] = 5122.into();
    packed.json["accessors"][0]["normalized"] = true.into();
    packed.json["nodes"][0]["scale"] = json!([scale, scale, scale]);
    for list in ["extensionsUsed", "extensionsRequired"] {
        packed.json[list] = json!(["KHR_mesh_quantization"]);
    }
    packed
}

/// `EXT_meshopt_compression`, with a fallback buffer that is not there.
pub fn meshopt() -> Packed {
    let (vertices, list) = (positions(), indices());
    let mut bytes = meshopt::encode_vertex_buffer(&vertices).expect("encodes");
    let first = bytes.len();
    bytes.extend(meshopt::encode_index_buffer(&list, vertices.len()).expect("encodes"));
    let mut views = [view(1, 0, vertices.len() * 12), view(1, vertices.len() * 12, list.len() * 4)];
    let extension = |offset: usize, length: usize, stride: usize, count: usize, mode: &str| {
        json!({"EXT_meshopt_compression": {"buffer": 0, "byteOffset": offset, "byteLength": length,
            "byteStride": stride, "count": count, "mode": mode}})
    };
    views[0]["extensions"] = extension(0, first, 12, vertices.len(), "ATTRIBUTES");
    views[1]["extensions"] = extension(first, bytes.len() - first, 4, list.len(), "TRIANGLES");
    let fallback = json!({"EXT_meshopt_compression": {"fallback": true}});
    let size = vertices.len() * 12 + list.len() * 4;
    let buffers = json!([{"byteLength": bytes.len()}, {"byteLength": size, "extensions": fallback}]);
    let primitive = json!({"attributes": {"POSITION": 0}, "indices": 1});
    Packed { json: document(json!(views), buffers, primitive, &["EXT_meshopt_compression"]), bytes }
}

/// `KHR_draco_mesh_compression`, positions in 14 bits.
pub fn draco() -> Packed {
    let mut mesh = Mesh::new();
    let mut attribute = PointAttribute::new();
    attribute.init(GeometryAttributeType::Position, 3, DataType::Float32, false, positions().len());
    let rows: Vec<u8> = positions().iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
    attribute.buffer_mut().write(0, &rows);
    mesh.set_num_points(positions().len());
    mesh.add_attribute(attribute);
    for triangle in indices().chunks_exact(3) {
        mesh.add_face([PointIndex(triangle[0]), PointIndex(triangle[1]), PointIndex(triangle[2])]);
    }
    let mut encoder = MeshEncoder::new();
    encoder.set_mesh(mesh);
    let mut options = EncoderOptions::new();
    options.set_attribute_int(0, "quantization_bits", 14);
    let mut buffer = EncoderBuffer::new();
    encoder.encode(&options, &mut buffer).expect("encodes");
    let bytes = buffer.data().to_vec();
    let primitive = json!({"attributes": {"POSITION": 0}, "indices": 1, "extensions":
        {"KHR_draco_mesh_compression": {"bufferView": 0, "attributes": {"POSITION": 0}}}});
    let views = json!([view(0, 0, bytes.len())]);
    let buffers = json!([{"byteLength": bytes.len()}]);
    let mut json = document(views, buffers, primitive, &["KHR_draco_mesh_compression"]);
    for accessor in json["accessors"].as_array_mut().expect("a list") {
        accessor.as_object_mut().expect("an object").remove("bufferView");
    }
    Packed { json, bytes }
}
