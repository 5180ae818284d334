//! `export`: a twin of any kind for other programs. The whole of it as an ONNX graph; what of it is plain skinning, for
//! engines that run no code, is in `export_glb`; its motion for Blender in `export_blender`.

use super::export_blender::{ExportBlenderReport, export_blender};
use super::export_glb::{ExportGlbReport, GlbSettings, export_glb};
use super::kinds::kind;
use super::open_twin;
use crate::outputs::{check_distinct, check_file, check_folder};
use crate::{JobError, Watch};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use understudy_io::onnx::Graph;
use understudy_io::write_atomic;
use understudy_runtime::Twin;

/// Metadata of a graph: names of the bones in the order of the input `bones`.
pub(crate) const BONES_KEY: &str = "understudy.bones";
/// Metadata of a graph: names of the controls in the order of the input `controls`.
pub(crate) const CONTROLS_KEY: &str = "understudy.controls";

/// What to export.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExportConfig {
    /// The twin's file.
    pub twin: PathBuf,
    /// The ONNX file, where one is wanted.
    pub onnx: Option<PathBuf>,
    /// The GLB file, where one is wanted.
    pub glb: Option<PathBuf>,
    /// The folder for Blender, where one is wanted.
    pub blender: Option<PathBuf>,
    /// How the GLB is made; its rig and clips are those of the folder for Blender too.
    pub glb_settings: GlbSettings,
}

/// What was exported.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExportReport {
    /// The ONNX graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub onnx: Option<OnnxReport>,
    /// The skin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glb: Option<ExportGlbReport>,
    /// The folder for Blender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blender: Option<ExportBlenderReport>,
}

/// An ONNX graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnnxReport {
    /// The file.
    pub output: PathBuf,
    /// Its size.
    pub bytes: usize,
    /// Names of the bones in the order of the input `bones`, `[bones, 3, 4]`, which is left out where there are none.
    pub bones: Vec<String>,
    /// Names of the controls in the order of the input `controls`, which is left out where there are none.
    pub controls: Vec<String>,
    /// Shape of the output `vertices`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vertices: Option<[usize; 2]>,
    /// Shape of the output `bones`, which a twin with bones of its own has in place of vertices where a GLB is written
    /// too: world transforms of the GLB's joints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joints: Option<[usize; 3]>,
}

/// Writes what is wanted; nothing where that cannot be.
pub fn export(config: &ExportConfig, watch: &dyn Watch) -> Result<ExportReport, JobError> {
    let outputs = [("onnx", config.onnx.as_deref()), ("glb", config.glb.as_deref())];
    let wanted: Vec<_> = outputs.into_iter().filter_map(|(name, path)| Some((name, path?))).collect();
    if wanted.is_empty() && config.blender.is_none() {
        return Err(JobError::setting(
            "export",
            "neither an ONNX or a GLB file nor a folder for Blender is named",
        ));
    }
    if let Some(folder) = &config.blender {
        check_folder(folder)?;
    }
    for (_, path) in &wanted {
        check_file(path, &[&config.twin])?;
    }
    check_distinct(&wanted)?;
    let twin = open_twin(&config.twin)?;
    // The one that can fail comes first.
    let glb = match &config.glb {
        None => None,
        Some(output) => Some(export_glb(&twin, &config.twin, output, &config.glb_settings, watch)?),
    };
    let blender = match &config.blender {
        None => None,
        Some(folder) => Some(export_blender(&twin, &config.twin, folder, &config.glb_settings, watch)?),
    };
    let onnx = match &config.onnx {
        None => None,
        Some(output) => {
            let skinned = config.glb.is_some().then(|| onnx_bones(&twin)).flatten();
            let joints = skinned.as_ref().map(|(_, joints)| [*joints, 3, 4]);
            let bytes = skinned.map_or_else(|| onnx_graph(&twin), |(bytes, _)| bytes);
            write_atomic(output, &bytes)?;
            let inputs = &twin.header().inputs;
            Some(OnnxReport {
                output: output.clone(),
                bytes: bytes.len(),
                bones: inputs.bones.iter().map(|bone| bone.name.clone()).collect(),
                controls: inputs.controls.iter().map(|control| control.name.clone()).collect(),
                vertices: joints.is_none().then_some([twin.vertex_count(), 3]),
                joints,
            })
        }
    };
    Ok(ExportReport { onnx, glb, blender })
}

/// The bytes of the whole twin as an ONNX model. Its metadata say whose it is, in which unit, and what its inputs hold, in
/// order: lists in JSON, as names may hold anything.
pub fn onnx_graph(twin: &Twin) -> Vec<u8> {
    let mut graph = Graph::default();
    kind(twin).draw(&mut graph);
    described(twin, graph)
}

/// Metadata of a graph: names of the joints in the order of the output `bones`.
const JOINTS_KEY: &str = "understudy.joints";

/// A twin's own bones as an ONNX model, and how many there are; `None` where it has none of its own.
fn onnx_bones(twin: &Twin) -> Option<(Vec<u8>, usize)> {
    let mut graph = Graph::default();
    let own = kind(twin).draw_bones(&mut graph).then(|| kind(twin).own_skin())??;
    // Every bone is a joint that moves and one beneath it that the skin hangs on.
    let moved = own.skeleton.bones().iter().filter(|bone| bone.parent.is_none());
    let names: Vec<&str> = moved.map(|bone| bone.name.as_str()).collect();
    let count = names.len();
    graph.metadata(JOINTS_KEY, &serde_json::Value::from(names).to_string());
    Some((described(twin, graph), count))
}

fn described(twin: &Twin, mut graph: Graph) -> Vec<u8> {
    let (rig, inputs) = (&twin.header().rig, &twin.header().inputs);
    graph.metadata("understudy.rig", rig);
    graph.metadata("understudy.unit", "cm");
    let bones: Vec<&str> = inputs.bones.iter().map(|bone| bone.name.as_str()).collect();
    let controls: Vec<&str> = inputs.controls.iter().map(|spec| spec.name.as_str()).collect();
    for (key, names) in [(BONES_KEY, bones), (CONTROLS_KEY, controls)] {
        if !names.is_empty() {
            graph.metadata(key, &serde_json::Value::from(names).to_string());
        }
    }
    graph.to_bytes(rig)
}
