//! The section `ik` of a twin's file: metadata `ik` is JSON, tensors are `ik.rest [P,3]` and for region `r`, layer `l`
//! `ik.r.l.weights [rows,columns]` (f16 or f32) and `ik.r.l.bias`. A twin of any kind that has a derivative may have one;
//! programs that know nothing of it read the twin as ever.

use super::{ControlPoint, PointIk, PointIkParts, RegionParts};
use crate::container::{Opened, with_section};
use crate::dense::Precision;
use crate::twin::network::file::{Writer, read_layers};
use crate::{Twin, TwinError};
use serde::{Deserialize, Serialize};
use understudy_core::Vec3;

const KEY: &str = "ik";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Section {
    version: u32,
    topology: String,
    dimensions: usize,
    points: Vec<ControlPoint>,
    regions: Vec<RegionHeader>,
    #[serde(default)]
    training: serde_json::Value,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionHeader {
    name: String,
    points: Vec<u32>,
    controls: Vec<u32>,
    layers: usize,
}

impl PointIk {
    /// The section of a twin's file, where it has one. `twin` is what the same bytes hold.
    pub fn read(bytes: &[u8], twin: &Twin) -> Result<Option<Self>, TwinError> {
        let file = Opened::parse(bytes)?;
        if !file.has_section(KEY) {
            return Ok(None);
        }
        let section: Section = file.json(KEY)?;
        if section.version != VERSION {
            return Err(TwinError::Version { found: section.version });
        }
        let topology_hash = u64::from_str_radix(&section.topology, 16)
            .map_err(|_| TwinError::Kind(format!("ik: the topology '{}' is no number", section.topology)))?;
        let mut precision = Precision::Single;
        let mut regions = Vec::new();
        for (index, region) in section.regions.into_iter().enumerate() {
            let layers = read_layers(&file, &format!("{KEY}.{index}"), region.layers, &mut precision)?;
            let RegionHeader { name, points, controls, .. } = region;
            regions.push(RegionParts { name, points, controls, layers });
        }
        let rest = file.floats(&format!("{KEY}.rest"), Some(3))?;
        let parts = PointIkParts {
            topology_hash,
            dimensions: section.dimensions,
            points: section.points,
            rest: rest.chunks_exact(3).map(Vec3::from_slice).collect(),
            regions,
            training: section.training,
        };
        Self::new(parts, precision, twin).map(Some)
    }

    /// The bytes of the twin's file with this section in it.
    pub fn file_with(&self, twin: &Twin) -> Result<Vec<u8>, TwinError> {
        let parts = self.parts();
        let mut writer = Writer::new(self.precision);
        writer.points(format!("{KEY}.rest"), &parts.rest);
        let mut regions = Vec::new();
        for (index, region) in parts.regions.into_iter().enumerate() {
            writer.layers(&format!("{KEY}.{index}"), &region.layers);
            let RegionParts { name, points, controls, layers } = region;
            regions.push(RegionHeader { name, points, controls, layers: layers.len() });
        }
        let section = Section {
            version: VERSION,
            topology: format!("{:016x}", parts.topology_hash),
            dimensions: parts.dimensions,
            points: parts.points,
            regions,
            training: parts.training,
        };
        let text = serde_json::to_string(&section).map_err(|error| TwinError::Kind(error.to_string()))?;
        with_section(&twin.to_bytes()?, KEY, text, writer.finish())
    }
}
