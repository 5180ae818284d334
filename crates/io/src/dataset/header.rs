//! `dataset.toml`: what was sampled and how, for people and machines.

use super::{ChunkShape, DatasetError, DatasetRest, content_hash};
use crate::ParseError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use understudy_core::ControlSpecs;

const FORMAT: u32 = 1;
/// How the first line begins.
const HASH: &str = "sha256 = ";

/// What was sampled and how: two runs with equal headers and rest make equal bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct DatasetHeader {
    /// The rig's name or file, as it was typed.
    pub rig: String,
    /// Where the file lies, for a rig that is one: to find it again from any working folder.
    pub rig_file: Option<RigFile>,
    /// How poses were chosen: `gaussian`, `uniform`, `noise`, `clip`.
    pub method: String,
    /// The random seed.
    pub seed: u64,
    /// Anything else that the poses depend on: clips, excluded controls.
    pub settings: BTreeMap<String, String>,
    /// The controls with their ranges; a pose has one value for each.
    pub controls: ControlSpecs,
    /// How many poses there are.
    pub poses: usize,
    /// Poses a chunk; the last one may have fewer.
    pub chunk_size: usize,
}

/// Where the file of a rig lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RigFile {
    /// On the machine that recorded it.
    pub absolute: PathBuf,
    /// From the folder of the dataset: still true where both moved together.
    pub relative: PathBuf,
}

impl RigFile {
    /// Of a file, as seen from the folder of a dataset. `None` where the system does not say where they lie.
    pub fn new(file: &Path, folder: &Path) -> Option<Self> {
        let absolute = file.canonicalize().ok()?;
        // The folder may not exist yet; what is above it decides where links lead.
        let folder = std::path::absolute(folder).ok()?;
        let there = folder.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
        let folder = there.map(|(above, real)| real.join(folder.strip_prefix(above).unwrap_or(&folder)))?;
        let common = folder.components().zip(absolute.components()).take_while(|(a, b)| a == b).count();
        let up = folder.components().skip(common).map(|_| std::path::Component::ParentDir);
        let relative = up.chain(absolute.components().skip(common)).collect();
        Some(Self { absolute, relative })
    }
}

impl DatasetHeader {
    /// Poses a chunk that keep a chunk of a film character near 10 MB.
    pub const CHUNK_SIZE: usize = 64;

    /// Number of chunks.
    pub fn chunk_count(&self) -> usize {
        self.poses.div_ceil(self.chunk_size)
    }

    /// The poses of one chunk, as indices into the whole.
    pub fn chunk_poses(&self, chunk: usize) -> std::ops::Range<usize> {
        let start = (chunk * self.chunk_size).min(self.poses);
        start..(start + self.chunk_size).min(self.poses)
    }

    pub(super) fn check(&self) -> Result<(), DatasetError> {
        let bad = |problem: &str| Err(DatasetError::BadHeader { problem: problem.into() });
        if self.poses == 0 || self.chunk_size == 0 {
            return bad("needs at least one pose, and one pose per chunk");
        }
        if i64::try_from(self.seed).is_err() {
            return bad("a seed of 2^63 or more cannot be recorded in TOML");
        }
        Ok(())
    }
}

/// Everything in `dataset.toml`; scalars first, as TOML wants it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub format: u32,
    pub complete: bool,
    pub rig: String,
    pub method: String,
    pub seed: u64,
    pub units: String,
    pub axes: String,
    pub poses: usize,
    pub chunk_size: usize,
    pub vertices: usize,
    pub faces: usize,
    pub bones: usize,
    pub topology_hash: String,
    pub rest_sha256: String,
    pub chunk_sha256: Vec<String>,
    /// Milliseconds per pose of the rig, where it is evaluated by another program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rig_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rig_file: Option<RigFile>,
    pub settings: BTreeMap<String, String>,
    pub controls: ControlSpecs,
}

impl Manifest {
    pub fn new(header: &DatasetHeader, rest: &DatasetRest, rest_sha256: String) -> Self {
        Self {
            format: FORMAT,
            complete: false,
            rig: header.rig.clone(),
            method: header.method.clone(),
            seed: header.seed,
            units: "cm".into(),
            axes: "y-up".into(),
            poses: header.poses,
            chunk_size: header.chunk_size,
            vertices: rest.mesh.vertex_count(),
            faces: rest.mesh.faces().len(),
            bones: rest.bone_count(),
            topology_hash: format!("{:016x}", rest.mesh.topology_hash()),
            rest_sha256,
            chunk_sha256: Vec::new(),
            rig_ms: None,
            rig_file: header.rig_file.clone(),
            settings: header.settings.clone(),
            controls: header.controls.clone(),
        }
    }

    fn content(&self) -> String {
        toml::to_string_pretty(self).expect("a manifest has only what TOML can say")
    }

    /// The file: a first line with the hash of all that follows it, then the content.
    pub fn to_text(&self) -> String {
        let content = self.content();
        format!("{HASH}\"{}\"\n{content}", content_hash([content.as_bytes()]))
    }

    pub fn parse(text: &str) -> Result<Self, ParseError> {
        // Datasets of earlier versions have no such line.
        let Some(rest) = text.strip_prefix(HASH) else { return Self::parse_content(text) };
        let (hash, content) = rest.split_once('\n').unwrap_or((rest, ""));
        if hash != format!("\"{}\"", content_hash([content.as_bytes()])) {
            let problem = "the file does not match its hash: it was damaged, or edited (delete this line to \
                           accept an edit)";
            return Err(ParseError::new("line 1", problem));
        }
        // An empty line in place of the hash: later lines keep their numbers.
        Self::parse_content(&format!("\n{content}"))
    }

    fn parse_content(text: &str) -> Result<Self, ParseError> {
        // The version first: a later format may have other fields.
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let place = |error: toml::de::Error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            ParseError::new(format!("line {line}"), error.message())
        };
        let Version { format } = toml::from_str(text).map_err(place)?;
        if format != FORMAT {
            return Err(ParseError::new("format", format!("version {format}; this program knows {FORMAT}")));
        }
        let manifest: Self = toml::from_str(text).map_err(place)?;
        if manifest.units != "cm" || manifest.axes != "y-up" {
            return Err(ParseError::new("units", "only 'cm' and 'y-up' are known in this version"));
        }
        let header = manifest.header();
        header.check().map_err(|error| ParseError::new("poses", error))?;
        if manifest.complete && manifest.chunk_sha256.len() != header.chunk_count() {
            let problem =
                format!("{} hashes for {} chunks", manifest.chunk_sha256.len(), header.chunk_count());
            return Err(ParseError::new("chunk_sha256", problem));
        }
        Ok(manifest)
    }

    pub fn header(&self) -> DatasetHeader {
        DatasetHeader {
            rig: self.rig.clone(),
            rig_file: self.rig_file.clone(),
            method: self.method.clone(),
            seed: self.seed,
            settings: self.settings.clone(),
            controls: self.controls.clone(),
            poses: self.poses,
            chunk_size: self.chunk_size,
        }
    }

    pub fn shape(&self) -> ChunkShape {
        ChunkShape { controls: self.controls.len(), bones: self.bones, vertices: self.vertices }
    }

    /// A hash of everything but the progress and where the rig lies: it ties a chunk to its dataset.
    pub fn identity(&self) -> String {
        let unfinished =
            Self { complete: false, chunk_sha256: Vec::new(), rig_ms: None, rig_file: None, ..self.clone() };
        content_hash([unfinished.content().as_bytes()])
    }

    /// The same recording as one under way: the rig may be typed in another way now.
    pub fn continued(self, found: &Self) -> Self {
        let absolute = |manifest: &Self| manifest.rig_file.as_ref().map(|file| file.absolute.clone());
        if self.rig == found.rig || (absolute(&self).is_some() && absolute(&self) == absolute(found)) {
            let (rig, rig_file) = (found.rig.clone(), found.rig_file.clone());
            return Self { rig, rig_file, rig_ms: found.rig_ms, ..self };
        }
        self
    }

    /// The first setting in which two datasets differ.
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        let checks = [
            ("rig", self.rig == other.rig),
            ("method", self.method == other.method),
            ("seed", self.seed == other.seed),
            ("number of poses", self.poses == other.poses),
            ("chunk size", self.chunk_size == other.chunk_size),
            ("list of controls", self.controls == other.controls),
            ("topology", self.topology_hash == other.topology_hash),
            ("set of settings", self.settings == other.settings),
            ("rest mesh or skeleton", self.rest_sha256 == other.rest_sha256),
            ("header", self.identity() == other.identity()),
        ];
        checks.into_iter().find(|(_, same)| !same).map(|(field, _)| field)
    }
}

/// Reads a `dataset.toml`: the header, and whether the dataset is complete.
pub fn parse_manifest(text: &str) -> Result<(DatasetHeader, bool), ParseError> {
    Manifest::parse(text).map(|manifest| (manifest.header(), manifest.complete))
}
