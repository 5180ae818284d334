//! Files of motion: one safetensors container with JSON metadata, read with every part checked.
//!
//! Metadata: `understudy_motion` is the version, `header` is JSON (rig, rate, controls, labels with their scalars).
//! Tensors of label `i`: `i.points [N,q]`, `i.centres [M,q]` where they are not the points, `i.weights [d,M]`,
//! `i.certainty [R,M]`, `i.edges [E,2]`, `i.rest [C]`, `i.moving`, `i.scale`, `i.components [d,moving]`. Bridges:
//! `bridges.models [B,2]`, `bridges.points [B,2,8]`, `bridges.millimetres [B]`. Numbers are f32 and u32.

use super::Motion;
use super::basis::BasisParts;
use super::error::MotionFileError;
use super::model::{ClipFrames, ModelParts};
use super::point::{LatentPoint, MOST_DIMENSIONS};
use super::route::Bridge;
use super::space::{Covariance, SpaceParts};
use serde::{Deserialize, Serialize};
use understudy_core::ControlSpecs;
use understudy_core::tensors::{ElementType, TensorWriter, Tensors};

/// What this program writes and reads.
const VERSION: &str = "2";
const VERSION_KEY: &str = "understudy_motion";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    rig: String,
    rate: f32,
    controls: ControlSpecs,
    labels: Vec<LabelHeader>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelHeader {
    label: String,
    dimensions: usize,
    covariance: Covariance,
    unit: f32,
    clips: Vec<ClipFrames>,
    pace: f64,
    radius: f64,
    likely: f64,
    softness: f64,
}

struct Arrays<'a>(Tensors<'a>);

impl Arrays<'_> {
    fn words(&self, name: &str, kind: ElementType) -> Result<Vec<[u8; 4]>, MotionFileError> {
        let wrong = |problem: String| MotionFileError::new(format!("array '{name}'"), problem);
        let tensor = self.0.get(name).ok_or_else(|| wrong("is missing".into()))?;
        if tensor.kind != kind {
            return Err(wrong(format!("is of {}, {} is wanted", tensor.kind.name(), kind.name())));
        }
        Ok(tensor.bytes.chunks_exact(4).map(|word| [word[0], word[1], word[2], word[3]]).collect())
    }

    fn floats(&self, name: &str) -> Result<Vec<f32>, MotionFileError> {
        Ok(self.words(name, ElementType::F32)?.into_iter().map(f32::from_le_bytes).collect())
    }

    fn integers(&self, name: &str) -> Result<Vec<u32>, MotionFileError> {
        Ok(self.words(name, ElementType::U32)?.into_iter().map(u32::from_le_bytes).collect())
    }

    fn pairs(&self, name: &str) -> Result<Vec<[u32; 2]>, MotionFileError> {
        let numbers = self.integers(name)?;
        if !numbers.len().is_multiple_of(2) {
            return Err(MotionFileError::new(format!("array '{name}'"), "does not hold pairs"));
        }
        Ok(numbers.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect())
    }
}

impl Motion {
    /// Reads a file and checks everything about it.
    pub fn parse(bytes: &[u8]) -> Result<Self, MotionFileError> {
        if bytes.first() == Some(&b'{') {
            let problem = "was made by a version that was still an experiment; learn it again";
            return Err(MotionFileError::new("file", problem));
        }
        let tensors =
            Tensors::parse(bytes).map_err(|error| MotionFileError::new(error.place, error.problem))?;
        let text = |key: &str| {
            let found = tensors.metadata().get(key);
            found.ok_or_else(|| {
                MotionFileError::new(format!("metadata '{key}'"), "is missing: this is no file of motion")
            })
        };
        let version = text(VERSION_KEY)?;
        if version != VERSION {
            let problem = format!("is {version}; this program knows {VERSION}");
            return Err(MotionFileError::new("version", problem));
        }
        let header: Header = serde_json::from_str(text("header")?)
            .map_err(|error| MotionFileError::new("header", error.to_string()))?;
        let arrays = Arrays(tensors);
        let mut models = Vec::new();
        for (index, label) in header.labels.into_iter().enumerate() {
            models.push(read_model(&arrays, index, label)?);
        }
        let ends = arrays.pairs("bridges.models")?;
        let points = arrays.floats("bridges.points")?;
        let millimetres = arrays.floats("bridges.millimetres")?;
        if points.len() != ends.len() * 2 * MOST_DIMENSIONS || millimetres.len() != ends.len() {
            return Err(MotionFileError::new("bridges", "their arrays are not equally long"));
        }
        let bridge = |(index, [from, to]): (usize, &[u32; 2])| {
            let place = |end: usize| (2 * index + end) * MOST_DIMENSIONS;
            let point = |end| LatentPoint::of_singles(&points[place(end)..place(end) + MOST_DIMENSIONS]);
            Bridge {
                from: *from as usize,
                to: *to as usize,
                from_point: point(0),
                to_point: point(1),
                millimetres: millimetres[index],
            }
        };
        let bridges = ends.iter().enumerate().map(bridge).collect();
        Self::new(header.rig, header.rate, header.controls, models, bridges)
    }

    /// The bytes of its file. Same motion, same bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, MotionFileError> {
        let mut writer = TensorWriter::default();
        let mut floats = |name: String, shape: &[usize], numbers: &[f32]| {
            let bytes = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
            writer.add(&name, ElementType::F32, shape, bytes);
        };
        let mut whole: Vec<(String, Vec<usize>, Vec<u32>)> = Vec::new();
        let mut labels = Vec::new();
        for (index, model) in self.models.iter().enumerate() {
            let ModelParts { label, basis, space, clips, pace, radius, likely, softness } = model.parts();
            let (q, d, m) = (space.dimensions, model.space().outputs(), model.space().centres());
            let name = |part: &str| format!("{index}.{part}");
            floats(name("points"), &[model.space().len(), q], &space.points);
            if let Some(centres) = &space.centres {
                floats(name("centres"), &[m, q], centres);
            }
            floats(name("weights"), &[d, m], &space.weights);
            floats(name("certainty"), &[model.space().rank(), m], &space.certainty);
            floats(name("rest"), &[basis.rest.len()], &basis.rest);
            floats(name("scale"), &[basis.scale.len()], &basis.scale);
            floats(name("components"), &[d, basis.moving.len()], &basis.components);
            whole.push((name("moving"), vec![basis.moving.len()], basis.moving));
            whole.push((name("edges"), vec![space.edges.len(), 2], space.edges.concat()));
            let SpaceParts { dimensions, covariance, unit, .. } = space;
            labels.push(LabelHeader {
                label,
                dimensions,
                covariance,
                unit,
                clips,
                pace,
                radius,
                likely,
                softness,
            });
        }
        let count = self.bridges.len();
        let points: Vec<f32> = self
            .bridges
            .iter()
            .flat_map(|bridge| bridge.from_point.0.into_iter().chain(bridge.to_point.0))
            .map(|v| v as f32)
            .collect();
        floats("bridges.points".into(), &[count, 2, MOST_DIMENSIONS], &points);
        let millimetres: Vec<f32> = self.bridges.iter().map(|bridge| bridge.millimetres).collect();
        floats("bridges.millimetres".into(), &[count], &millimetres);
        let ends = self.bridges.iter().flat_map(|bridge| [bridge.from as u32, bridge.to as u32]).collect();
        whole.push(("bridges.models".into(), vec![count, 2], ends));
        for (name, shape, numbers) in whole {
            let bytes = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
            writer.add(&name, ElementType::U32, &shape, bytes);
        }
        let header =
            Header { rig: self.rig.clone(), rate: self.rate, controls: self.controls.clone(), labels };
        let header = serde_json::to_string(&header)
            .map_err(|error| MotionFileError::new("header", error.to_string()))?;
        writer.metadata("header", header);
        writer.metadata(VERSION_KEY, VERSION);
        writer.finish().map_err(|error| MotionFileError::new(error.place, error.problem))
    }
}

fn read_model(arrays: &Arrays<'_>, index: usize, header: LabelHeader) -> Result<ModelParts, MotionFileError> {
    let name = |part: &str| format!("{index}.{part}");
    let LabelHeader { label, dimensions, covariance, unit, clips, pace, radius, likely, softness } = header;
    let centres = name("centres");
    let space = SpaceParts {
        dimensions,
        points: arrays.floats(&name("points"))?,
        centres: arrays.0.get(&centres).is_some().then(|| arrays.floats(&centres)).transpose()?,
        covariance,
        unit,
        weights: arrays.floats(&name("weights"))?,
        certainty: arrays.floats(&name("certainty"))?,
        edges: arrays.pairs(&name("edges"))?,
    };
    let basis = BasisParts {
        rest: arrays.floats(&name("rest"))?,
        moving: arrays.integers(&name("moving"))?,
        scale: arrays.floats(&name("scale"))?,
        components: arrays.floats(&name("components"))?,
    };
    Ok(ModelParts { label, basis, space, clips, pace, radius, likely, softness })
}
