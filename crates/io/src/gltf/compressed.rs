//! Compressed geometry, unpacked before anything else looks at the document: `EXT_meshopt_compression` (and its
//! successor `KHR_meshopt_compression`) packs buffer views, `KHR_draco_mesh_compression` packs primitives, which
//! is in [`super::draco`]. What is unpacked becomes a buffer of its own, and the document reads like any other.

use super::draco;
use crate::ParseError;
use serde_json::{Value, json};

const MESHOPT: [&str; 2] = ["EXT_meshopt_compression", "KHR_meshopt_compression"];

/// Bytes that any file may unpack to, beyond [`MAX_GROWTH`] times its own size: 16 MiB.
const FREE_BYTES: usize = 1 << 24;
/// Neither coder packs real geometry as tightly; a small file that claims more wants to fill the memory.
const MAX_GROWTH: usize = 64;

/// Whether an extension is unpacked here.
pub(super) fn is_unpacked(extension: &str) -> bool {
    MESHOPT.contains(&extension) || extension == draco::EXTENSION
}

/// Whether a buffer only stands in for programs that know no compression, and need not be there.
pub(super) fn is_fallback(document: &Value, buffer: usize) -> bool {
    let extensions = &document["buffers"][buffer]["extensions"];
    MESHOPT.iter().any(|name| extensions[name]["fallback"].as_bool() == Some(true))
}

/// The buffers of a document, and what may still be added to them.
pub(super) struct Unpacker {
    pub buffers: Vec<Vec<u8>>,
    left: usize,
}

/// Unpacks everything that is packed: the document then names the new buffers. `document` has been read as a
/// glTF document before, so that lists are lists and their entries objects; only extensions may be anything.
pub(super) fn unpack(document: &mut Value, buffers: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, ParseError> {
    let size: usize = buffers.iter().map(Vec::len).sum();
    let left = FREE_BYTES.saturating_add(size.saturating_mul(MAX_GROWTH));
    let mut unpacker = Unpacker { buffers, left };
    unpacker.views(document)?;
    draco::unpack_primitives(document, &mut unpacker)?;
    for list in ["extensionsRequired", "extensionsUsed"] {
        if let Some(names) = document.get_mut(list).and_then(Value::as_array_mut) {
            names.retain(|name| !name.as_str().is_some_and(is_unpacked));
        }
    }
    let lengths = unpacker.buffers.iter().map(|buffer| json!({ "byteLength": buffer.len().max(1) }));
    document["buffers"] = lengths.collect::<Vec<_>>().into();
    // An empty buffer is announced as one byte, the least that glTF knows.
    unpacker.buffers.iter_mut().filter(|buffer| buffer.is_empty()).for_each(|buffer| buffer.push(0));
    Ok(unpacker.buffers)
}

/// A whole number of a document.
pub(super) fn whole(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|number| usize::try_from(number).ok())
}

impl Unpacker {
    /// The bytes of a place (`buffer`, `byteOffset`, `byteLength`).
    pub fn slice(&self, place: &Value) -> Option<&[u8]> {
        let start = whole(&place["byteOffset"]).unwrap_or(0);
        let end = start.checked_add(whole(&place["byteLength"])?)?;
        self.buffers.get(whole(&place["buffer"])?)?.get(start..end)
    }

    /// Accounts for bytes that are about to be allocated.
    pub fn charge(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.left.checked_sub(bytes);
        self.left =
            left.ok_or_else(|| format!("unpacks to {bytes} bytes, more than a file of this size may"))?;
        Ok(())
    }

    /// Keeps unpacked bytes; the place where they are.
    pub fn keep(&mut self, bytes: Vec<u8>) -> Value {
        let place =
            json!({ "buffer": self.buffers.len(), "byteOffset": 0, "byteLength": bytes.len().max(1) });
        self.buffers.push(bytes);
        place
    }

    fn views(&mut self, document: &mut Value) -> Result<(), ParseError> {
        let Some(views) = document.get_mut("bufferViews").and_then(Value::as_array_mut) else {
            return Ok(());
        };
        for (index, view) in views.iter_mut().enumerate() {
            let packed =
                MESHOPT.iter().map(|name| &view["extensions"][name]).find(|packed| packed.is_object());
            let Some(packed) = packed else { continue };
            let bytes = self.view(packed).map_err(|problem| {
                ParseError::new(format!("buffer view {index}"), format!("meshopt data: {problem}"))
            })?;
            let stride = view["byteStride"].clone();
            *view = self.keep(bytes);
            if stride.is_u64() {
                view["byteStride"] = stride;
            }
        }
        Ok(())
    }

    fn view(&mut self, packed: &Value) -> Result<Vec<u8>, String> {
        let count = whole(&packed["count"]).ok_or("has no count")?;
        let stride = whole(&packed["byteStride"]).ok_or("has no byteStride")?;
        let filter = packed["filter"].as_str().unwrap_or("NONE");
        self.charge(count.checked_mul(stride).ok_or("has too many elements")?)?;
        let bytes = self.slice(packed).ok_or("ends beyond its buffer")?;
        match packed["mode"].as_str() {
            Some("ATTRIBUTES") => attributes(bytes, count, stride, filter),
            Some("TRIANGLES") => indices(bytes, count, stride, true),
            Some("INDICES") => indices(bytes, count, stride, false),
            _ => Err("has an unknown mode".into()),
        }
    }
}

fn attributes(bytes: &[u8], count: usize, stride: usize, filter: &str) -> Result<Vec<u8>, String> {
    if stride == 0 || stride > 256 || !stride.is_multiple_of(4) {
        return Err(format!("a stride of {stride} bytes"));
    }
    let fits = match filter {
        "NONE" | "EXPONENTIAL" => true,
        "OCTAHEDRAL" => stride == 4 || stride == 8,
        "QUATERNION" => stride == 8,
        _ => false,
    };
    if !fits {
        return Err(format!("the filter '{filter}' on elements of {stride} bytes"));
    }
    // Whole words, so that the filters find their components aligned.
    let mut words = vec![0u32; count * (stride / 4)];
    let data: *mut std::ffi::c_void = words.as_mut_ptr().cast();
    // SAFETY: the destination holds `count · stride` bytes and the stride is a multiple of four up to 256, which is
    // what the decoder asks of its caller; it reads no byte of `bytes` beyond the length that it is given.
    let code =
        unsafe { meshopt::ffi::meshopt_decodeVertexBuffer(data, count, stride, bytes.as_ptr(), bytes.len()) };
    if code != 0 {
        return Err("packed vertices are damaged".into());
    }
    // SAFETY: `data` holds `count` elements of `stride` bytes, aligned to four, and the strides are those that each
    // filter asks for. The filters read and write nothing else.
    unsafe {
        match filter {
            "OCTAHEDRAL" => meshopt::ffi::meshopt_decodeFilterOct(data, count, stride),
            "QUATERNION" => meshopt::ffi::meshopt_decodeFilterQuat(data, count, stride),
            "EXPONENTIAL" => meshopt::ffi::meshopt_decodeFilterExp(data, count, stride),
            _ => {}
        }
    }
    Ok(words.into_iter().flat_map(u32::to_ne_bytes).collect())
}

fn indices(bytes: &[u8], count: usize, stride: usize, triangles: bool) -> Result<Vec<u8>, String> {
    if triangles && !count.is_multiple_of(3) {
        return Err(format!("{count} indices do not make triangles"));
    }
    let list: Vec<u32> = match triangles {
        true => meshopt::decode_index_buffer(bytes, count),
        false => meshopt::decode_index_sequence(bytes, count),
    }
    .map_err(|_| "packed indices are damaged")?;
    match stride {
        4 => Ok(list.into_iter().flat_map(u32::to_le_bytes).collect()),
        2 => {
            let short = |index: u32| u16::try_from(index).map(u16::to_le_bytes);
            let list: Result<Vec<[u8; 2]>, _> = list.into_iter().map(short).collect();
            Ok(list.map_err(|_| "an index is too large for two bytes")?.concat())
        }
        _ => Err(format!("indices of {stride} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(mode: &str, count: usize, stride: usize, filter: &str, length: usize) -> Value {
        json!({ "bufferViews": [{ "buffer": 1, "byteLength": 16, "extensions": { "EXT_meshopt_compression": {
            "buffer": 0, "byteOffset": 0, "byteLength": length, "mode": mode, "count": count,
            "byteStride": stride, "filter": filter } } }] })
    }

    /// Unpacks one view.
    fn run(mut document: Value, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let buffers = unpack(&mut document, vec![bytes.to_vec(), Vec::new()]).map_err(|e| e.to_string())?;
        let view = &document["bufferViews"][0];
        assert_eq!(whole(&view["byteLength"]), Some(buffers[2].len()));
        Ok(buffers[whole(&view["buffer"]).expect("a number")].clone())
    }

    #[test]
    fn views_come_back_as_they_were_packed() {
        // The coder may turn a triangle, so that another corner is first; what it made once it keeps.
        let triangles: Vec<u32> = (0..60).flat_map(|i| [i, i + 1, i + 2]).collect();
        let turned = meshopt::encode_index_buffer(&triangles, 62).expect("encodes");
        let turned = meshopt::decode_index_buffer::<u32>(&turned, 180).expect("decodes");
        let whole =
            |t: &[u32]| (0..3).map(|k| (t[k], t[(k + 1) % 3])).collect::<std::collections::BTreeSet<_>>();
        assert!(turned.chunks(3).map(whole).eq(triangles.chunks(3).map(whole)));
        let triangles = turned;
        let bytes = meshopt::encode_index_buffer(&triangles, 62).expect("encodes");
        let wide: Vec<u8> = triangles.iter().flat_map(|i| i.to_le_bytes()).collect();
        let short: Vec<u8> = triangles.iter().flat_map(|i| (*i as u16).to_le_bytes()).collect();
        assert_eq!(run(packed("TRIANGLES", 180, 4, "NONE", bytes.len()), &bytes), Ok(wide));
        assert_eq!(run(packed("TRIANGLES", 180, 2, "NONE", bytes.len()), &bytes), Ok(short));
        let vertices: Vec<[f32; 3]> = (0..100).map(|i| [i as f32, 0.5, -1.0]).collect();
        let bytes = meshopt::encode_vertex_buffer(&vertices).expect("encodes");
        let plain: Vec<u8> = vertices.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(run(packed("ATTRIBUTES", 100, 12, "NONE", bytes.len()), &bytes), Ok(plain));
    }

    #[test]
    fn damage_and_bombs_are_refused() {
        let vertices = [[1.0f32, 2.0, 3.0]; 40];
        let bytes = meshopt::encode_vertex_buffer(&vertices).expect("encodes");
        let all = bytes.len();
        for (mode, count, stride, filter, length, word) in [
            ("ATTRIBUTES", 40, 12, "NONE", all + 1, "beyond its buffer"),
            ("ATTRIBUTES", 40, 12, "NONE", all / 2, "damaged"),
            ("ATTRIBUTES", 40, 13, "NONE", all, "stride of 13"),
            ("ATTRIBUTES", 40, 0, "NONE", all, "stride of 0"),
            ("ATTRIBUTES", 40, 12, "QUATERNION", all, "'QUATERNION' on elements of 12"),
            ("ATTRIBUTES", 40, 12, "ZIP", all, "'ZIP'"),
            ("ATTRIBUTES", usize::MAX, 12, "NONE", all, "too many"),
            ("ATTRIBUTES", 1 << 40, 4, "NONE", all, "more than a file of this size may"),
            ("TRIANGLES", 40, 4, "NONE", all, "do not make triangles"),
            ("TRIANGLES", 39, 4, "NONE", all, "damaged"),
            ("INDICES", 40, 3, "NONE", all, "damaged"),
            ("POINTS", 40, 12, "NONE", all, "unknown mode"),
        ] {
            let error = run(packed(mode, count, stride, filter, length), &bytes).expect_err(word);
            assert!(error.starts_with("buffer view 0: meshopt data: ") && error.contains(word), "{error}");
        }
        for nothing in [json!({}), json!({ "bufferViews": [] }), json!({ "bufferViews": [{ "buffer": 0 }] })]
        {
            assert!(unpack(&mut nothing.clone(), Vec::new()).is_ok());
        }
    }
}
