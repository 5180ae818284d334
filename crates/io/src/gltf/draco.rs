//! `KHR_draco_mesh_compression`: a primitive's indices and attributes as one Draco stream. Each accessor of the
//! primitive gets the unpacked numbers in its own component type, as if they had never been packed.

use super::compressed::{Unpacker, whole};
use crate::ParseError;
use draco_core::{DataType, DecoderBuffer, FaceIndex, Mesh, MeshDecoder, PointAttribute, PointIndex};
use serde_json::Value;

pub(super) const EXTENSION: &str = "KHR_draco_mesh_compression";

/// Component type of unpacked indices: 32-bit unsigned integers.
const UNSIGNED_INT: u64 = 5125;
/// Mode of a primitive whose indices are triangles.
const TRIANGLES: u64 = 4;

/// Unpacks every primitive that is packed.
pub(super) fn unpack_primitives(document: &mut Value, unpacker: &mut Unpacker) -> Result<(), ParseError> {
    let count = |list: &Value| list.as_array().map_or(0, Vec::len);
    for mesh in 0..count(&document["meshes"]) {
        for number in 0..count(&document["meshes"][mesh]["primitives"]) {
            let primitive = document["meshes"][mesh]["primitives"][number].clone();
            let packed = &primitive["extensions"][EXTENSION];
            if packed.is_object() {
                unpack(document, &primitive, packed, unpacker).map_err(|problem| {
                    let place = format!("mesh {mesh} primitive {number}");
                    ParseError::new(place, format!("Draco data: {problem}"))
                })?;
                // Strips, too, are triangles once they are decoded.
                document["meshes"][mesh]["primitives"][number]["mode"] = TRIANGLES.into();
            }
        }
    }
    Ok(())
}

fn unpack(
    document: &mut Value,
    primitive: &Value,
    packed: &Value,
    unpacker: &mut Unpacker,
) -> Result<(), String> {
    let accessor = |document: &Value, index: &Value, what: &str| -> Result<(usize, usize), String> {
        let index = whole(index).filter(|index| document["accessors"][index].is_object());
        let index = index.ok_or_else(|| format!("{what} has no accessor"))?;
        Ok((index, whole(&document["accessors"][index]["count"]).unwrap_or(0)))
    };
    // What the document announces is known before anything is decoded: a bomb has to say so, and a stream that
    // holds something else is damaged.
    let attributes = packed["attributes"].as_object().cloned().unwrap_or_default();
    let mut announced = Vec::new();
    for (name, id) in &attributes {
        let (index, count) = accessor(document, &primitive["attributes"][name], name)?;
        unpacker.charge(count.saturating_mul(16))?;
        announced.push((name, id, index, count));
    }
    let indices = match &primitive["indices"] {
        Value::Null => None,
        index => Some(accessor(document, index, "its list of indices")?),
    };
    unpacker.charge(indices.map_or(0, |(_, count)| count.saturating_mul(4)))?;
    let view = whole(&packed["bufferView"]).map(|view| &document["bufferViews"][view]);
    let bytes = view.and_then(|view| unpacker.slice(view)).ok_or("ends beyond its buffer")?;
    let mesh = decode(bytes)?;

    for (name, id, index, count) in announced {
        let attribute = id.as_u64().and_then(|id| mesh.attribute_by_unique_id(u32::try_from(id).ok()?));
        let attribute = attribute.ok_or_else(|| format!("has no attribute for {name}"))?;
        if mesh.num_points() != count {
            return Err(format!("{} points, but {count} values of {name}", mesh.num_points()));
        }
        let kind = document["accessors"][index]["componentType"].as_u64();
        let values = numbers(&mesh, attribute, kind).ok_or_else(|| format!("{name} is damaged"))?;
        put(document, index, values, unpacker);
    }
    if let Some((index, count)) = indices {
        if 3 * mesh.num_faces() != count {
            return Err(format!("{} triangles, but {count} indices", mesh.num_faces()));
        }
        let corners = (0..mesh.num_faces()).flat_map(|face| mesh.face(FaceIndex(face as u32)));
        let list = corners.flat_map(|point| point.0.to_le_bytes()).collect();
        document["accessors"][index]["componentType"] = UNSIGNED_INT.into();
        put(document, index, list, unpacker);
    }
    Ok(())
}

/// The decoder is safe code, but young: a panic on a damaged stream must not take the program along.
fn decode(bytes: &[u8]) -> Result<Mesh, String> {
    let decode = || {
        let mut mesh = Mesh::new();
        MeshDecoder::new().decode(&mut DecoderBuffer::new(bytes), &mut mesh).map(|()| mesh)
    };
    match std::panic::catch_unwind(decode) {
        Ok(Ok(mesh)) => Ok(mesh),
        Ok(Err(error)) => Err(format!("cannot be decoded: {error}")),
        Err(_) => Err("is damaged".into()),
    }
}

/// The values of all points, in the component type that the accessor announces.
fn numbers(mesh: &Mesh, attribute: &PointAttribute, kind: Option<u64>) -> Option<Vec<u8>> {
    let width = usize::from(attribute.num_components());
    let stride = usize::try_from(attribute.byte_stride()).ok()?;
    let data = attribute.buffer().data();
    let read = |at: usize, place: usize| -> Option<f64> {
        let bytes = |size: usize| data.get(at + place * size..at + (place + 1) * size);
        Some(match attribute.data_type() {
            DataType::Int8 => f64::from(bytes(1)?[0] as i8),
            DataType::Uint8 => f64::from(bytes(1)?[0]),
            DataType::Int16 => f64::from(i16::from_le_bytes(bytes(2)?.try_into().ok()?)),
            DataType::Uint16 => f64::from(u16::from_le_bytes(bytes(2)?.try_into().ok()?)),
            DataType::Int32 => f64::from(i32::from_le_bytes(bytes(4)?.try_into().ok()?)),
            DataType::Uint32 => f64::from(u32::from_le_bytes(bytes(4)?.try_into().ok()?)),
            DataType::Float32 => f64::from(f32::from_le_bytes(bytes(4)?.try_into().ok()?)),
            _ => return None,
        })
    };
    let mut out = Vec::new();
    for point in 0..mesh.num_points() {
        let value = attribute.mapped_index(PointIndex(point as u32)).0 as usize;
        for place in 0..width {
            let number = read(value.checked_mul(stride)?, place)?;
            // Casts saturate: a number that the type cannot hold is damage that the accessor's reader meets.
            match kind? {
                5120 => out.extend((number as i8).to_le_bytes()),
                5121 => out.push(number as u8),
                5122 => out.extend((number as i16).to_le_bytes()),
                5123 => out.extend((number as u16).to_le_bytes()),
                5125 => out.extend((number as u32).to_le_bytes()),
                5126 => out.extend((number as f32).to_le_bytes()),
                _ => return None,
            }
        }
    }
    Some(out)
}

/// Lets an accessor read a new buffer from its beginning.
fn put(document: &mut Value, accessor: usize, bytes: Vec<u8>, unpacker: &mut Unpacker) {
    let Some(views) = document.get_mut("bufferViews").and_then(Value::as_array_mut) else { return };
    views.push(unpacker.keep(bytes));
    let view = views.len() - 1;
    document["accessors"][accessor]["bufferView"] = view.into();
    document["accessors"][accessor]["byteOffset"] = 0.into();
}
