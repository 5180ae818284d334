//! Where a glTF buffer's bytes come from: base64 inside a data URI, or a file beside the document
//! whose name may not lead anywhere else.

use base64::alphabet;
use base64::engine::{DecodePaddingMode, Engine as _, GeneralPurpose, GeneralPurposeConfig};
use std::path::PathBuf;

/// The payload of a `data:` URI, `None` when the URI is not one.
pub(super) fn decode_data_uri(uri: &str) -> Option<Result<Vec<u8>, String>> {
    let rest = uri.strip_prefix("data:")?;
    let Some((header, payload)) = rest.split_once(',') else {
        return Some(Err("the data URI has no comma".into()));
    };
    if !header.ends_with(";base64") {
        return Some(Err("only base64 data URIs are read".into()));
    }
    Some(decode_base64(payload.as_bytes()))
}

/// The standard alphabet; exporters leave padding and the last digit's spare bits as they like.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

fn decode_base64(text: &[u8]) -> Result<Vec<u8>, String> {
    BASE64.decode(text).map_err(|error| format!("the base64 text is damaged: {error}"))
}

/// A URI of a file as a path relative to the document: percent escapes decoded, and refused when it is
/// absolute, has a scheme or climbs out of the document's folder.
pub(super) fn relative_path(uri: &str) -> Result<PathBuf, String> {
    let name = decode_percent(uri)?;
    let refuse = |why: &str| Err(format!("the buffer '{uri}' {why}"));
    if name.is_empty() || name.contains('\0') {
        return refuse("is not a file name");
    }
    if name.contains(':') || name.contains('\\') || name.starts_with('/') {
        return refuse("is not a file beside the document");
    }
    if name.split('/').any(|part| part == "..") {
        return refuse("leads out of the document's folder");
    }
    Ok(name.split('/').filter(|part| !part.is_empty() && *part != ".").collect())
}

fn decode_percent(uri: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|d| char::from(d).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => return Err(format!("the URI '{uri}' has a broken percent escape")),
        }
    }
    String::from_utf8(bytes).map_err(|_| format!("the URI '{uri}' is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_every_length() {
        let cases =
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm8", "fo"), ("Zm9v", "foo"), ("Zm9vYmE=", "fooba")];
        for (text, plain) in cases {
            assert_eq!(decode_base64(text.as_bytes()).as_deref(), Ok(plain.as_bytes()));
        }
        assert_eq!(decode_base64(b"+/+/"), Ok(vec![0xfb, 0xff, 0xbf]));
        assert!(
            decode_base64(b"Z").is_err()
                && decode_base64(b"Zm9*").is_err()
                && decode_base64(b"=====").is_err()
        );
        assert!(decode_data_uri("model.bin").is_none());
        let decoded = decode_data_uri("data:application/octet-stream;base64,Zm8=");
        assert_eq!(decoded, Some(Ok(b"fo".to_vec())));
        assert!(matches!(decode_data_uri("data:text/plain,hello"), Some(Err(_))));
    }

    #[test]
    fn only_files_beside_the_document_are_named() {
        assert_eq!(relative_path("a%20b/./c.bin"), Ok(PathBuf::from("a b/c.bin")));
        for bad in
            ["", "../x.bin", "a/../../x", "/etc/passwd", "C:/x", "http://h/x", "..\\x", "%2e%2e/x", "%zz"]
        {
            assert!(relative_path(bad).is_err(), "{bad}");
        }
    }
}
