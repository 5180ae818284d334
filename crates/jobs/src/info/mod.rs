//! Says what is inside a file, a dataset, a twin or a rig. Start at [`info`].

mod facts;
mod twin;

pub use facts::{ArrayFacts, ClipFacts, ControlFacts, MeshFacts, SegmentFacts, ShapeFacts, SkeletonFacts};
pub use twin::{NetworkFacts, TwinFacts};

use crate::blender::{self, BlenderFacts, BlenderOptions, is_blend};
use crate::inputs;
use crate::rigs::{self, Names};
use crate::twin::export::{BONES_KEY, CONTROLS_KEY};
use crate::watch::Remember;
use crate::{Event, JobError, Watch};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use understudy_core::ControlSpec;
use understudy_io::dataset::{DatasetError, DatasetReader, parse_manifest};
use understudy_io::mesh_sequence::Frames;
use understudy_io::npz::NpzReader;
use understudy_io::onnx::description;
use understudy_io::{Format, Scene};
use understudy_rigs::Rig;
use understudy_rigs::external::ExternalOptions;

/// What to look at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InfoConfig {
    /// A file, a dataset folder or a rig by name.
    pub input: String,
    /// Read every chunk of a dataset and compare its hash.
    pub verify: bool,
    /// How a Blender file is used.
    pub blender: BlenderOptions,
}

/// What was found; parts that an input does not have are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct InfoReport {
    /// What was looked at.
    pub input: String,
    /// `rig`, `mesh`, `frames`, `motion`, `weights`, `dataset`, `twin`, `onnx` or `archive`.
    pub kind: &'static str,
    /// The mesh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshFacts>,
    /// Bones and skin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skeleton: Option<SkeletonFacts>,
    /// Shapes and correctives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shapes: Option<ShapeFacts>,
    /// Controls with their ranges.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<ControlFacts>,
    /// Clips with their lengths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clips: Vec<ClipFacts>,
    /// Columns of a table of weights.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Arrays of an archive that is no rig.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arrays: Vec<ArrayFacts>,
    /// A dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<DatasetFacts>,
    /// A twin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twin: Option<TwinFacts>,
    /// A Blender file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blender: Option<BlenderFacts>,
    /// An ONNX model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub onnx: Option<OnnxFacts>,
    /// Conversions of units and axes, and what readers skipped.
    pub notes: Vec<String>,
}

/// About an ONNX model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OnnxFacts {
    /// The program that wrote it.
    pub producer: String,
    /// Version of the standard operators.
    pub operator_set: u64,
    /// Operators in the graph.
    pub nodes: usize,
    /// Inputs with the lengths of their axes.
    pub inputs: Vec<(String, Vec<String>)>,
    /// Outputs with the lengths of their axes.
    pub outputs: Vec<(String, Vec<String>)>,
    /// Names of the bones in the order of the input `bones`; of twins.
    pub bones: Vec<String>,
    /// Names of the controls in the order of the input `controls`; of twins.
    pub controls: Vec<String>,
    /// What else its producer noted.
    pub metadata: BTreeMap<String, String>,
}

/// About a dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DatasetFacts {
    /// The rig.
    pub rig: String,
    /// How poses were found.
    pub method: String,
    /// The seed.
    pub seed: u64,
    /// Poses it has or will have.
    pub poses: usize,
    /// Files of poses it has or will have.
    pub chunks: usize,
    /// Files of poses that are there.
    pub chunks_present: usize,
    /// Whether everything was recorded.
    pub complete: bool,
    /// Whether every chunk was read and its hash compared.
    pub verified: bool,
    /// Control values outside their ranges, where every chunk was read.
    pub outside_range: Option<usize>,
}

/// Looks at an input.
pub fn info(config: &InfoConfig, watch: &dyn Watch) -> Result<InfoReport, JobError> {
    let watch = Remember::new(watch);
    let mut report = look(config, &watch)?;
    report.input = config.input.clone();
    report.notes = watch.messages();
    Ok(report)
}

fn look(config: &InfoConfig, watch: &dyn Watch) -> Result<InfoReport, JobError> {
    let path = Path::new(&config.input);
    let format = Format::of(path);
    if config.verify && !path.is_dir() && format != Some(Format::Twin) {
        return Err(JobError::setting(
            "verify",
            "is not used: only a dataset or a twin has hashes to compare",
        ));
    }
    if is_blend(&config.input) {
        let open = blender::open(path, &config.blender, ExternalOptions::default(), watch)?;
        return Ok(InfoReport { blender: Some(open.facts), ..rig(&open.rig) });
    }
    if Names::contains(&config.input) {
        return Ok(rig(rigs::open(&config.input, watch)?.rig.as_ref()));
    }
    match format {
        Some(Format::Twin) => twin::look(path),
        Some(Format::Onnx) => onnx(path),
        _ if path.is_dir() => dataset(path, config.verify, watch),
        _ => {
            let wanted = format!("{}, .twin, .onnx or a dataset folder", Format::readable());
            scene(path, inputs::open(path, &wanted, watch)?)
        }
    }
}

fn rig(rig: &dyn Rig) -> InfoReport {
    InfoReport {
        kind: "rig",
        mesh: Some(MeshFacts::new(rig.mesh())),
        skeleton: rig.skeleton().map(|skeleton| SkeletonFacts::new(skeleton, rig.skin_weights())),
        shapes: rig.blendshapes().map(ShapeFacts::new),
        controls: ControlFacts::all(rig),
        clips: rig.clips().iter().map(ClipFacts::keyed).collect(),
        ..InfoReport::default()
    }
}

/// Whatever a file holds.
fn scene(path: &Path, scene: Scene) -> Result<InfoReport, JobError> {
    let clip = |frames: usize, rate: Option<f32>| ClipFacts {
        name: "take".into(),
        seconds: rate.map_or(0.0, |rate| frames.saturating_sub(1) as f32 / rate),
        frames: Some(frames),
        rate,
        curves: None,
    };
    let mesh = scene.mesh().map(MeshFacts::new);
    Ok(match scene {
        Scene::Model(model) if model.skin.is_none() && model.shapes.is_none() => {
            InfoReport { kind: "mesh", mesh, ..InfoReport::default() }
        }
        Scene::Model(model) => {
            let built = rigs::model_rig(&inputs::stem(path), &model);
            rig(&built.map_err(|error| JobError::unusable(path, error))?)
        }
        Scene::Motion(motion) => InfoReport {
            kind: "motion",
            skeleton: Some(SkeletonFacts::new(&motion.skeleton, None)),
            clips: vec![ClipFacts::sampled(&motion.clip)],
            ..InfoReport::default()
        },
        Scene::Take(take) => InfoReport {
            kind: "weights",
            clips: vec![clip(take.frames.len(), Some(take.rate))],
            columns: take.names,
            ..InfoReport::default()
        },
        Scene::Weights(table) => InfoReport {
            kind: "weights",
            clips: vec![clip(table.frames.len(), table.rate)],
            columns: table.names,
            ..InfoReport::default()
        },
        Scene::Sequence(sequence) => InfoReport {
            kind: "frames",
            mesh,
            clips: vec![clip(sequence.frames.len(), sequence.rate)],
            // A dataset as one archive has controls and bones beside its frames.
            ..match sequence.frames {
                Frames::Memory(_) => archive(&NpzReader::read(path)?),
                Frames::Alembic(_) => InfoReport::default(),
            }
        },
        Scene::Archive(reader) => archive(&reader),
        Scene::Dataset(_) => return dataset(path, false, &crate::Silent),
    })
}

fn onnx(path: &Path) -> Result<InfoReport, JobError> {
    let mut found = description::read(path)?;
    let mut list = |key: &str| -> Result<Vec<String>, JobError> {
        let Some(text) = found.metadata.remove(key) else { return Ok(Vec::new()) };
        let problem =
            |error| JobError::unusable(path, format!("metadata '{key}': no list of names: {error}"));
        serde_json::from_str(&text).map_err(problem)
    };
    let (bones, controls) = (list(BONES_KEY)?, list(CONTROLS_KEY)?);
    let ports =
        |ports: Vec<description::Port>| ports.into_iter().map(|port| (port.name, port.shape)).collect();
    let facts = OnnxFacts {
        producer: found.producer,
        operator_set: found.operator_set,
        nodes: found.nodes,
        inputs: ports(found.inputs),
        outputs: ports(found.outputs),
        bones,
        controls,
        metadata: found.metadata,
    };
    Ok(InfoReport { kind: "onnx", onnx: Some(facts), ..InfoReport::default() })
}

fn archive(reader: &NpzReader) -> InfoReport {
    let facts = |name: &str| ArrayFacts {
        name: name.into(),
        shape: reader.shape(name).unwrap_or_default().to_vec(),
        element: reader.element_type(name).unwrap_or_default().into(),
    };
    InfoReport { kind: "archive", arrays: reader.names().map(facts).collect(), ..InfoReport::default() }
}

fn dataset(folder: &Path, verify: bool, watch: &dyn Watch) -> Result<InfoReport, JobError> {
    let manifest = folder.join("dataset.toml");
    if !manifest.exists() {
        return Err(JobError::unusable(folder, "is a folder without a dataset.toml, so no dataset"));
    }
    let bytes = understudy_io::read_bytes(&manifest)?;
    let text = String::from_utf8_lossy(&bytes);
    let (header, complete) = parse_manifest(&text).map_err(understudy_io::ReadError::content(&manifest))?;
    let present = |chunk: &usize| folder.join(format!("chunk-{chunk:06}.safetensors")).exists();
    let mut facts = DatasetFacts {
        rig: header.rig.clone(),
        method: header.method.clone(),
        seed: header.seed,
        poses: header.poses,
        chunks: header.chunk_count(),
        chunks_present: (0..header.chunk_count()).filter(present).count(),
        complete,
        verified: false,
        outside_range: None,
    };
    let mut report = InfoReport { kind: "dataset", ..InfoReport::default() };
    match DatasetReader::open(folder) {
        Ok(reader) => {
            let rest = reader.rest();
            report.mesh = Some(MeshFacts::new(&rest.mesh));
            report.skeleton = rest.skeleton.as_ref().map(|s| SkeletonFacts::new(s, rest.weights.as_ref()));
            if verify {
                facts.outside_range = Some(check_chunks(&reader, watch)?);
                facts.verified = true;
            }
        }
        Err(error @ DatasetError::Incomplete { .. }) if verify => return Err(error.into()),
        Err(DatasetError::Incomplete { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    report.controls = header.controls.iter().map(ControlFacts::new).collect();
    report.dataset = Some(facts);
    Ok(report)
}

/// Reads every chunk; gives the number of control values outside their ranges.
fn check_chunks(reader: &DatasetReader, watch: &dyn Watch) -> Result<usize, JobError> {
    let chunks = reader.chunk_count();
    let (mut outside, mut first) = (0, None);
    watch.event(Event::Started { what: "verifying", total: chunks as u64, unit: "chunks" });
    for chunk in 0..chunks {
        let content = reader.chunk(chunk)?;
        let start = reader.header().chunk_poses(chunk).start;
        for pose in 0..content.len() {
            let controls = content.controls_of(pose);
            for (spec, value) in reader.header().controls.iter().zip(controls.0) {
                // What rounding does at an end of a range is not worth a word.
                let slack = 1e-5 * (spec.high - spec.low);
                if !(spec.low - slack..=spec.high + slack).contains(&value) {
                    outside += 1;
                    first.get_or_insert_with(|| {
                        let ControlSpec { name, low, high, .. } = spec;
                        format!("pose {}: '{name}' is {value}, its range {low} to {high}", start + pose)
                    });
                }
            }
        }
        watch.event(Event::Step { done: chunk as u64 + 1 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    watch.event(Event::Finished);
    if let Some(first) = first {
        let message = match outside {
            1 => format!("1 control value lies outside its range: {first}"),
            many => format!("{many} control values lie outside their ranges; the first is {first}"),
        };
        watch.event(Event::Warning { message: &message });
    }
    Ok(outside)
}
