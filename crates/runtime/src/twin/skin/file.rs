//! The file of a skin twin, inside the `container` of all twins.
//!
//! Metadata: `method` is `skin`, `structure` is JSON: numbers of hidden layers, of bones, and of layers of the frame's
//! network. Tensors: `rest [V,3]`, `faces [4F]` (the largest number stands for the missing corner of a triangle),
//! `skin.lengths [V]`, `skin.bones [E]`, `skin.weights [E]` (u16 in units of 2⁻¹⁵ where all weights are such, else f32),
//! `centres [B,3]`, `net.inputs`, `net.mean`, `net.scale`, layers `net.l.weights [rows,columns]` (f16 or f32) and
//! `net.l.bias`, the last of which gives the bones; `frame.*` as a face twin has it; `components [3V,K]`.

use super::{SkinParts, SkinTwin};
use crate::TwinError;
use crate::container::{Array, Opened, write};
use crate::dense::Precision;
use crate::mechanism::file::Section;
use crate::twin::network::DenseParts;
use crate::twin::network::file::{Writer, read_layers, read_motion};
use crate::twin::shared::{read_faces, read_skin, write_faces, write_skin};
use serde::{Deserialize, Serialize};
use understudy_core::Vec3;

/// The name of the kind in a file.
pub(crate) const METHOD: &str = "skin";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Structure {
    bones: usize,
    hidden: usize,
    /// Layers of the frame's network.
    frame: Option<usize>,
    components: usize,
}

/// The bytes of a file. Same twin, same bytes.
pub fn to_bytes(parts: &SkinParts, precision: Precision) -> Result<Vec<u8>, TwinError> {
    let mut writer = Writer::new(precision);
    writer.points("rest".into(), &parts.rest_vertices);
    writer.push("faces".into(), write_faces(&parts.faces));
    write_skin("skin", &parts.weights).into_iter().for_each(|(name, array)| writer.push(name, array));
    writer.points("centres".into(), &parts.centres);
    writer.list("net.inputs".into(), &parts.inputs);
    writer.row("net.mean".into(), &parts.mean);
    writer.row("net.scale".into(), &parts.scale);
    let all: Vec<DenseParts> = parts.hidden.iter().chain([&parts.output]).cloned().collect();
    writer.layers("net", &all);
    if let Some(frame) = &parts.frame {
        writer.motion("frame", frame);
    }
    let components = parts.component_count();
    if components > 0 {
        let shape = [3 * parts.rest_vertices.len(), components];
        writer.push("components".into(), Array::weights(&shape, &parts.components, precision));
    }
    let structure = Structure {
        bones: parts.centres.len(),
        hidden: parts.hidden.len(),
        frame: parts.frame.as_ref().map(|frame| frame.layers.len()),
        components,
    };
    write(METHOD, &parts.header, &structure, writer.finish(), Section::default())
}

/// Reads a twin and checks everything about it. Weights stay in the precision of the file.
pub(crate) fn read(file: &Opened<'_>) -> Result<SkinTwin, TwinError> {
    let structure: Structure = file.json("structure")?;
    let mut precision = Precision::Single;
    let points = |name: &str| -> Result<Vec<Vec3>, TwinError> {
        Ok(file.floats(name, Some(3))?.chunks_exact(3).map(Vec3::from_slice).collect())
    };
    let mut hidden = read_layers(file, "net", structure.hidden.saturating_add(1), &mut precision)?;
    let output = hidden.pop().unwrap_or_default();
    let components = match structure.components {
        0 => Vec::new(),
        count => file.floats("components", Some(count))?,
    };
    let weights = read_skin(file, "skin", structure.bones)?;
    let missing = || TwinError::Tensor { name: "skin.lengths".into(), problem: "is missing".into() };
    let parts = SkinParts {
        header: file.json("header")?,
        rest_vertices: points("rest")?,
        faces: read_faces(file, "faces")?,
        weights: weights.ok_or_else(missing)?,
        centres: points("centres")?,
        frame: structure.frame.map(|count| read_motion(file, "frame", count, &mut precision)).transpose()?,
        inputs: file.integers("net.inputs")?,
        mean: file.floats("net.mean", None)?,
        scale: file.floats("net.scale", None)?,
        hidden,
        output,
        components,
    };
    if parts.component_count() != structure.components {
        let problem =
            format!("{} numbers are not {} components", parts.components.len(), structure.components);
        return Err(TwinError::Tensor { name: "components".into(), problem });
    }
    SkinTwin::new(parts, precision)
}
