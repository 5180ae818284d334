//! From bytes to a checked glTF document and its buffers. The GLB container is split here rather than
//! by the `gltf` crate, whose reader subtracts before it checks; the crate parses and validates the JSON.

use super::compressed::{is_fallback, is_unpacked, unpack};
use super::uri::decode_data_uri;
use crate::ParseError;
use ::gltf::json::mesh::Semantic;
use ::gltf::json::validation::{Checked, Error as Invalid, Validate};
use ::gltf::json::{Path, Root};

/// The document with all of its buffers in memory.
pub(super) struct Document {
    pub root: Root,
    /// The text that `root` was read from.
    pub json: Vec<u8>,
    pub buffers: Vec<Vec<u8>>,
    pub warnings: Vec<String>,
}

/// Finds the bytes of a buffer that lies outside of the document, by its URI.
pub type Resolve<'a> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'a;

impl Document {
    /// Takes a `.glb` or `.gltf` apart.
    pub fn parse(bytes: &[u8], resolve: &Resolve<'_>) -> Result<Self, ParseError> {
        let (json, blob) = if bytes.starts_with(b"glTF") { split_glb(bytes)? } else { (bytes, None) };
        let root: Root = serde_json::from_slice(json).map_err(json_error)?;
        if root.asset.version.split('.').next() != Some("2") {
            let problem = format!("glTF version '{}' is not 2.x", root.asset.version);
            return Err(ParseError::new("asset.version", problem));
        }
        if !root.extensions_used.iter().any(|name| is_unpacked(name)) {
            let warnings = validate(&root)?;
            let buffers = load_buffers(&root, &|_| false, blob, resolve)?;
            return Ok(Self { root, json: json.to_vec(), buffers, warnings });
        }
        let mut unpacked: serde_json::Value = serde_json::from_slice(json).map_err(json_error)?;
        let buffers = load_buffers(&root, &|buffer| is_fallback(&unpacked, buffer), blob, resolve)?;
        let buffers = unpack(&mut unpacked, buffers)?;
        let json = serde_json::to_vec(&unpacked).expect("JSON that was read can be written");
        let root: Root = serde_json::from_slice(&json).map_err(json_error)?;
        let warnings = validate(&root)?;
        Ok(Self { root, json, buffers, warnings })
    }
}

fn json_error(error: serde_json::Error) -> ParseError {
    let place = format!("JSON line {} column {}", error.line(), error.column());
    let problem = error.to_string();
    let problem = problem.split(" at line ").next().unwrap_or_default().to_owned();
    ParseError::new(place, problem)
}

/// The JSON chunk and the binary chunk, if there is one. Unknown chunks are skipped, as the format asks.
fn split_glb(bytes: &[u8]) -> Result<(&[u8], Option<&[u8]>), ParseError> {
    let word = |at: usize| -> Result<u32, ParseError> {
        let four = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
        four.map(u32::from_le_bytes)
            .ok_or_else(|| ParseError::new(format!("byte {at}"), "the file ends here"))
    };
    let version = word(4)?;
    if version != 2 {
        return Err(ParseError::new("byte 4", format!("GLB version {version}, only 2 is read")));
    }
    let length = word(8)? as usize;
    if length > bytes.len() || length < 20 {
        let problem = format!("the header says {length} bytes, the file has {}", bytes.len());
        return Err(ParseError::new("byte 8", problem));
    }
    let (mut at, mut json, mut blob) = (12, None, None);
    while at + 8 <= length {
        let (size, kind) = (word(at)? as usize, word(at + 4)?);
        let chunk = bytes[..length].get(at + 8..).and_then(|rest| rest.get(..size)).ok_or_else(|| {
            let problem = format!("a chunk of {size} bytes, but {} are left", length - at - 8);
            ParseError::new(format!("byte {at}"), problem)
        })?;
        match &kind.to_le_bytes() {
            b"JSON" if json.is_none() => json = Some(chunk),
            b"BIN\0" if blob.is_none() => blob = Some(chunk),
            _ => {}
        }
        // Chunks are padded to four bytes; a length that is not must not lead to a misaligned header.
        at = (at + 8 + size).next_multiple_of(4);
    }
    let json = json.ok_or_else(|| ParseError::new("byte 12", "no JSON chunk"))?;
    Ok((json, blob))
}

/// Extensions that a file may require and that change nothing which is read here (materials, textures, lights,
/// notes about authors), or that [`super::accessor`] understands (quantised attributes).
fn is_harmless(extension: &str) -> bool {
    const PREFIXES: [&str; 10] = [
        "KHR_mesh_quantization",
        "KHR_materials_",
        "KHR_texture_",
        "KHR_lights_",
        "KHR_xmp",
        "ADOBE_materials_",
        "EXT_lights_",
        "EXT_texture_",
        "MSFT_packing_",
        "MSFT_texture_",
    ];
    PREFIXES.iter().any(|prefix| extension.starts_with(prefix))
}

/// The crate's validation, with its severity adjusted to what is read: mistakes in parts that are not
/// used here become warnings.
fn validate(root: &Root) -> Result<Vec<String>, ParseError> {
    // The crate's check of POSITION bounds indexes without looking, so look first.
    for (mesh, data) in root.meshes.iter().enumerate() {
        for (primitive, data) in data.primitives.iter().enumerate() {
            let position = data.attributes.get(&Checked::Valid(Semantic::Positions));
            if let Some(index) = position.filter(|index| index.value() >= root.accessors.len()) {
                let place = format!("mesh {mesh} primitive {primitive}");
                return Err(ParseError::new(
                    place,
                    format!("POSITION names accessor {index}, which does not exist"),
                ));
            }
        }
    }
    let mut found: Vec<(String, Invalid)> = Vec::new();
    root.validate(root, Path::new, &mut |path, error| found.push((path().to_string(), error)));
    let mut warnings = Vec::new();
    for (path, error) in found {
        let unused_part = ["materials", "textures", "images", "samplers", "cameras"];
        let tolerated = match error {
            // The path names the extension: each is judged by itself.
            Invalid::Unsupported => {
                let mut required = root.extensions_required.iter().filter(|name| is_harmless(name));
                if required.any(|name| path.ends_with(&format!("\"{name}\""))) {
                    continue;
                }
                false
            }
            // An accessor without a view is a row of zeros.
            Invalid::Missing if path.starts_with("accessors[") && path.ends_with("bufferView") => continue,
            _ => {
                unused_part.iter().any(|part| path.starts_with(part))
                    || path.contains(".attributes[\"POSITION\"]")
                    || path.contains("<invalid semantic name>")
            }
        };
        let problem = error.to_string().to_lowercase();
        if !tolerated {
            return Err(ParseError::new(path, problem));
        }
        warnings.push(format!("{path}: {problem}"));
    }
    Ok(warnings)
}

/// `absent`: whether a buffer may be left out.
fn load_buffers(
    root: &Root,
    absent: &dyn Fn(usize) -> bool,
    blob: Option<&[u8]>,
    resolve: &Resolve<'_>,
) -> Result<Vec<Vec<u8>>, ParseError> {
    let mut buffers = Vec::with_capacity(root.buffers.len());
    for (index, buffer) in root.buffers.iter().enumerate() {
        if absent(index) {
            buffers.push(Vec::new());
            continue;
        }
        let failed = |problem: String| ParseError::new(format!("buffer {index}"), problem);
        let mut bytes = match &buffer.uri {
            None if index == 0 => blob.ok_or_else(|| failed("no binary chunk in the file".into()))?.to_vec(),
            None => return Err(failed("has no URI and is not the first".into())),
            Some(uri) => match decode_data_uri(uri) {
                Some(decoded) => decoded.map_err(failed)?,
                None => resolve(uri).map_err(failed)?,
            },
        };
        let wanted = buffer.byte_length.0;
        if wanted > bytes.len() as u64 {
            return Err(failed(format!("{wanted} bytes announced, {} found", bytes.len())));
        }
        bytes.truncate(wanted as usize);
        buffers.push(bytes);
    }
    Ok(buffers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Document, ParseError> {
        Document::parse(text.as_bytes(), &|uri| Err(format!("no file '{uri}'")))
    }

    fn place(text: &str) -> String {
        parse(text).err().expect("this document is bad").place
    }

    #[test]
    fn bad_documents_name_the_place() {
        assert!(
            place("{\"asset\":{\"version\":\"2.0\"},\n\"accessors\":[{\"count\":-1}]}")
                .starts_with("JSON line 2")
        );
        assert_eq!(place(r#"{"asset":{"version":"1.0"}}"#), "asset.version");
        assert_eq!(
            place(r#"{"asset":{"version":"2.0"},"extensionsRequired":["EXT_mesh_gpu_instancing"]}"#),
            "extensionsRequired[0] = \"EXT_mesh_gpu_instancing\""
        );
        let second = r#"["KHR_mesh_quantization","EXT_mesh_gpu_instancing"]"#;
        assert_eq!(
            place(&format!(r#"{{"asset":{{"version":"2.0"}},"extensionsRequired":{second}}}"#)),
            "extensionsRequired[1] = \"EXT_mesh_gpu_instancing\""
        );
        assert_eq!(
            place(r#"{"asset":{"version":"2.0"},"buffers":[{"byteLength":3,"uri":"data:;base64,Zg=="}]}"#),
            "buffer 0"
        );
        assert_eq!(
            place(r#"{"asset":{"version":"2.0"},"buffers":[{"byteLength":3,"uri":"x.bin"}]}"#),
            "buffer 0"
        );
        let far = r#"{"asset":{"version":"2.0"},"meshes":[{"primitives":[{"attributes":{"POSITION":7}}]}]}"#;
        assert_eq!(place(far), "mesh 0 primitive 0");
        let far = r#"{"asset":{"version":"2.0"},"nodes":[{"children":[4]}]}"#;
        assert_eq!(place(far), "nodes[0].children[0]");
        for known in ["KHR_mesh_quantization", "KHR_texture_basisu", "KHR_materials_unlit"] {
            let text = format!(r#"{{"asset":{{"version":"2.0"}},"extensionsRequired":["{known}"]}}"#);
            assert_eq!(parse(&text).expect("nothing that is read here").warnings, [""; 0]);
        }
    }

    #[test]
    fn headers_shorter_than_a_header_are_refused() {
        for length in 0..20u32 {
            let mut bytes = b"glTF\x02\0\0\0".to_vec();
            bytes.extend(length.to_le_bytes());
            bytes.extend(b"\0\0\0\0JSON");
            assert!(Document::parse(&bytes, &|_| Err(String::new())).is_err());
        }
    }
}
