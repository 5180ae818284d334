//! The page's files: those in the binary, or in a folder for people who work on the page.

use crate::error::Refusal;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use std::borrow::Cow;
use std::path::Path;

/// Name and content of every file; empty where the page was not built.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// What is served where there is no page.
const ABSENT: &str = include_str!("absent.html");

/// Whether the binary holds the page.
pub fn is_built() -> bool {
    FILES.iter().any(|(name, _)| *name == "index.html")
}

/// A file of the page by name; the empty name is the page itself.
pub(crate) fn serve(folder: Option<&Path>, name: &str) -> Result<Response, Refusal> {
    let name = if name.is_empty() { "index.html" } else { name };
    let content = match folder {
        Some(folder) => from_folder(folder, name),
        None => FILES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| Cow::Borrowed(*bytes)),
    };
    match content {
        Some(content) => Ok(([(header::CONTENT_TYPE, kind(name))], content).into_response()),
        None if name == "index.html" => Ok(([(header::CONTENT_TYPE, kind(name))], ABSENT).into_response()),
        None => Err(Refusal::missing("the page has no such file")),
    }
}

fn from_folder(folder: &Path, name: &str) -> Option<Cow<'static, [u8]>> {
    let plain =
        name.split('/').all(|part| !part.is_empty() && part != ".." && part != "." && !part.contains('\\'));
    plain.then(|| std::fs::read(folder.join(name)).ok()).flatten().map(Cow::Owned)
}

/// The type of a file by its extension.
pub(crate) fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "json" => "application/json",
        "wasm" => "application/wasm",
        "csv" => "text/csv; charset=utf-8",
        "glb" => "model/gltf-binary",
        "md" | "txt" | "toml" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_nothing_outside_itself() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        std::fs::create_dir(folder.path().join("page")).expect("writable");
        std::fs::write(folder.path().join("secret.txt"), "x").expect("writable");
        std::fs::write(folder.path().join("page/main.js"), "y").expect("writable");
        let page = folder.path().join("page");
        assert!(from_folder(&page, "main.js").is_some());
        for name in ["../secret.txt", "a/../../secret.txt", "/etc/passwd", "", "..\\secret.txt"] {
            assert!(from_folder(&page, name).is_none(), "{name}");
        }
    }
}
