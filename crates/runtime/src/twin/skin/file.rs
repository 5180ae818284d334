//! The file of a skin twin, inside the `container` of all twins.
//!
//! Metadata: `method` is `skin`, `structure` is JSON: numbers of hidden layers, of bones, and of layers of the frame's
//! network. Tensors: `rest [V,3]`, `faces [4F]` (the largest number stands for the missing corner of a triangle),
//! `skin.influences [V]`, `skin.bones [E]`, `skin.weights [E]` (whole numbers of 2⁻¹⁵ where all weights are such, else
//! f32), `centres [B,3]`, `net.inputs`, `net.mean`, `net.scale`, layers `net.l.weights [rows,columns]` (f16 or f32) and
//! `net.l.bias`, the last of which gives the bones; `frame.*` as a face twin has it; `components [3V,K]`.

use super::{SkinParts, SkinTwin};
use crate::TwinError;
use crate::container::{Array, Opened, write};
use crate::dense::Precision;
use crate::face::DenseParts;
use crate::face::file::{Writer, faces, layers, motion};
use serde::{Deserialize, Serialize};
use understudy_core::{SkinWeights, Vec3};

/// The name of the kind in a file.
pub(crate) const METHOD: &str = "skin";
/// Parts of one that skin weights are rounded to when they are learned.
pub const WEIGHT_UNITS: f32 = 32768.0;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Structure {
    bones: usize,
    hidden: usize,
    /// Layers of the frame's network.
    frame: Option<usize>,
    components: usize,
    /// Whether skin weights are whole numbers of 2⁻¹⁵.
    whole_weights: bool,
}

/// The bytes of a file. Same twin, same bytes.
pub fn to_bytes(parts: &SkinParts, precision: Precision) -> Result<Vec<u8>, TwinError> {
    let mut writer = Writer::new(precision);
    let points =
        |points: &[Vec3]| Array::floats(&[points.len(), 3], points.iter().flat_map(|v| v.to_array()));
    writer.push("rest".into(), points(&parts.rest_vertices));
    writer.push("faces".into(), Array::integers(parts.faces.iter().flat_map(|face| face.raw())));
    let (offsets, bones, weights) = parts.weights.compressed();
    let influences = offsets.windows(2).map(|pair| pair[1] - pair[0]);
    writer.push("skin.influences".into(), Array::integers(influences));
    writer.push("skin.bones".into(), Array::integers(bones.iter().map(|bone| u32::from(*bone))));
    let whole = |weight: &f32| (weight * WEIGHT_UNITS).fract() == 0.0;
    let whole_weights = weights.iter().all(whole);
    let weights = match whole_weights {
        true => Array::integers(weights.iter().map(|weight| (weight * WEIGHT_UNITS) as u32)),
        false => Array::floats(&[weights.len()], weights.iter().copied()),
    };
    writer.push("skin.weights".into(), weights);
    writer.push("centres".into(), points(&parts.centres));
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
        whole_weights,
    };
    write(METHOD, &parts.header, &structure, writer.finish())
}

/// Reads a twin and checks everything about it. Weights stay in the precision of the file.
pub(crate) fn read(file: &Opened<'_>) -> Result<SkinTwin, TwinError> {
    let structure: Structure = file.json("structure")?;
    let mut precision = Precision::Single;
    let points = |name: &str| -> Result<Vec<Vec3>, TwinError> {
        Ok(file.floats(name, Some(3))?.chunks_exact(3).map(Vec3::from_slice).collect())
    };
    let mut hidden = layers(file, "net", structure.hidden.saturating_add(1), &mut precision)?;
    let output = hidden.pop().unwrap_or_default();
    let components = match structure.components {
        0 => Vec::new(),
        count => file.floats("components", Some(count))?,
    };
    let parts = SkinParts {
        header: file.json("header")?,
        rest_vertices: points("rest")?,
        faces: faces(file, "faces")?,
        weights: skin_weights(file, &structure)?,
        centres: points("centres")?,
        frame: structure.frame.map(|count| motion(file, "frame", count, &mut precision)).transpose()?,
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

fn skin_weights(file: &Opened<'_>, structure: &Structure) -> Result<SkinWeights, TwinError> {
    let wrong = |name: &str, problem: String| TwinError::Tensor { name: name.into(), problem };
    let mut offsets = vec![0u32];
    for count in file.integers("skin.influences")? {
        let next = offsets.last().expect("never empty").checked_add(count);
        offsets.push(next.ok_or_else(|| wrong("skin.influences", "more than can be counted".into()))?);
    }
    let narrow = |bone: u32| {
        u16::try_from(bone).map_err(|_| wrong("skin.bones", format!("bone {bone} of at most 65536")))
    };
    let owners = file.integers("skin.bones")?.into_iter().map(narrow).collect::<Result<Vec<u16>, _>>()?;
    let weights: Vec<f32> = match structure.whole_weights {
        true => file.integers("skin.weights")?.into_iter().map(|units| units as f32 / WEIGHT_UNITS).collect(),
        false => file.floats("skin.weights", None)?,
    };
    SkinWeights::from_compressed(offsets, owners, weights, structure.bones)
        .map_err(|error| wrong("skin.weights", error.to_string()))
}
