//! Handle files, TOML: the points, bones, regions and cages that move a mesh, and the bones of a rig among them.
//!
//! ```toml
//! cm_per_unit = 1.0          # of the positions in this file; 1 when left out
//! [[point]]
//! name = "chin"
//! vertex = 1204              # or: position = [0.0, 12.5, 3.0]
//! [[bone]]
//! name = "tail"
//! head = [0.0, 30.0, -10.0]
//! tail = [0.0, 30.0, -40.0]
//! [[region]]
//! name = "lid"
//! vertices = [1, 2, 3]
//! [[cage]]
//! name = "box"               # `cage` when left out
//! vertices = [[-1, -1, -1]]  # and so on
//! faces = [[0, 1, 2]]
//! [[rig]]
//! file = "fox.glb"           # beside this file; its unit is its own
//! bones = ["hips", "tail"]   # all when left out
//! ```

use crate::{ParseError, ReadError, WriteError, read_bytes, write_atomic};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// All handles of a file, in its order by kind: bones of rigs, points, bones, regions, cages.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandleFile {
    /// Centimetres per unit of the positions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cm_per_unit: Option<f64>,
    /// Points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub point: Vec<PointEntry>,
    /// Bones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bone: Vec<BoneEntry>,
    /// Regions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub region: Vec<RegionEntry>,
    /// Cages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cage: Vec<CageEntry>,
    /// Rigs whose bones are handles, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rig: Vec<RigEntry>,
}

/// Bones of a rig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RigEntry {
    /// A file with bones; where its path is relative, it begins where the handle file lies.
    pub file: PathBuf,
    /// Bones that are handles; `None` for all. The others are kept and move nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bones: Option<Vec<String>>,
}

/// A point: a vertex or a position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointEntry {
    /// Unique.
    pub name: String,
    /// A vertex of the mesh, from zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vertex: Option<u32>,
    /// Or a place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<[f64; 3]>,
}

/// A segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoneEntry {
    /// Unique.
    pub name: String,
    /// Where it turns.
    pub head: [f64; 3],
    /// Its other end.
    pub tail: [f64; 3],
}

/// Vertices that follow wholly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionEntry {
    /// Unique.
    pub name: String,
    /// Vertices of the mesh, from zero.
    pub vertices: Vec<u32>,
}

/// A closed mesh around the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CageEntry {
    /// Unique.
    #[serde(default = "cage_name")]
    pub name: String,
    /// Its vertices.
    pub vertices: Vec<[f64; 3]>,
    /// Its triangles.
    pub faces: Vec<[u32; 3]>,
}

fn cage_name() -> String {
    "cage".into()
}

/// Reads a handle file.
pub fn read(path: &Path) -> Result<HandleFile, ReadError> {
    parse(&read_bytes(path)?).map_err(ReadError::content(path))
}

/// [`read`] on bytes.
pub fn parse(bytes: &[u8]) -> Result<HandleFile, ParseError> {
    let text = std::str::from_utf8(bytes).map_err(|error| ParseError::new("text", error))?;
    let mut file: HandleFile = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
        ParseError::new(format!("line {line}"), error.message())
    })?;
    let scale = file.cm_per_unit.unwrap_or(1.0);
    if !(scale.is_finite() && scale > 0.0) {
        return Err(ParseError::new("cm_per_unit", format!("{scale}; more than 0 is wanted")));
    }
    for point in &file.point {
        if point.vertex.is_some() == point.position.is_some() {
            let place = format!("point '{}'", point.name);
            return Err(ParseError::new(place, "has to have either a vertex or a position"));
        }
    }
    if file.rig.iter().any(|rig| rig.bones.as_ref().is_some_and(Vec::is_empty)) {
        return Err(ParseError::new("rig", "its list of bones is empty; without one all bones are meant"));
    }
    let mut places: Vec<(&str, &mut [f64; 3])> = Vec::new();
    for point in &mut file.point {
        places.extend(point.position.as_mut().map(|position| (point.name.as_str(), position)));
    }
    for bone in &mut file.bone {
        places.extend([(bone.name.as_str(), &mut bone.head), (bone.name.as_str(), &mut bone.tail)]);
    }
    for cage in &mut file.cage {
        places.extend(cage.vertices.iter_mut().map(|vertex| (cage.name.as_str(), vertex)));
    }
    for (name, place) in places {
        place.iter_mut().for_each(|x| *x *= scale);
        if place.iter().any(|x| !x.is_finite()) {
            return Err(ParseError::new(format!("handle '{name}'"), "has a coordinate that is not finite"));
        }
    }
    Ok(file)
}

/// A handle file as text; positions are centimetres, as they are after reading.
pub fn to_text(file: &HandleFile) -> Result<String, ParseError> {
    let file = HandleFile { cm_per_unit: None, ..file.clone() };
    toml::to_string(&file).map_err(|error| ParseError::new("text", error))
}

/// Writes [`to_text`].
pub fn write(path: &Path, file: &HandleFile) -> Result<(), WriteError> {
    let text = to_text(file).map_err(|error| WriteError::new(path, error))?;
    write_atomic(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_and_mistakes_are_named() {
        let text = "cm_per_unit = 100.0\n[[point]]\nname = 'a'\nvertex = 3\n[[point]]\nname = 'b'\nposition = [1, 2.5, 3]\n\
                    [[bone]]\nname = 'c'\nhead = [0, 0, 0]\ntail = [0, 1, 0]\n[[region]]\nname = 'd'\nvertices = [1, 2]\n\
                    [[cage]]\nvertices = [[0, 0, 0]]\nfaces = []\n[[rig]]\nfile = 'fox.glb'\nbones = ['tail']\n";
        let file = parse(text.as_bytes()).expect("valid");
        assert_eq!(file.point[1].position, Some([100.0, 250.0, 300.0]));
        assert_eq!((file.bone[0].tail, file.cage[0].name.as_str()), ([0.0, 100.0, 0.0], "cage"));
        let rig = file.rig[0].clone();
        assert_eq!((rig.file, rig.bones), (PathBuf::from("fox.glb"), Some(vec!["tail".to_owned()])));
        let folder = tempfile::tempdir().expect("a folder");
        let copy = folder.path().join("handles.toml");
        write(&copy, &file).expect("written");
        assert_eq!(read(&copy).expect("valid"), HandleFile { cm_per_unit: None, ..file });
        let problem = |text: &str| parse(text.as_bytes()).expect_err(text).to_string();
        assert!(problem("[[point]]\nname = 'a'\n").contains("point 'a': has to have either"));
        assert!(problem("[[point]]\nname = 'a'\nvertex = -1\n").contains("line 3"));
        assert!(problem("[[bones]]\n").contains("unknown field `bones`"));
        assert!(problem("[[rig]]\nfile = 'a.glb'\nbones = []\n").contains("rig: its list of bones is empty"));
        assert!(problem("cm_per_unit = 0\n").contains("cm_per_unit"));
        assert!(problem("[[point]]\nname = 'a'\nposition = [nan, 0, 0]\n").contains("not finite"));
        assert!(parse(b"\xff\xfe").is_err());
    }
}
