//! The door for reading: the default scene of a glTF file as one [`Model`].

use super::accessor::Accessors;
use super::animation::{ClipReader, animated_nodes};
use super::document::{Document, Resolve};
use super::extras::MeshExtras;
use super::geometry::Geometry;
use super::metres::CM;
use super::morph::Morphs;
use super::nodes::Nodes;
use super::skin::{Binding, to_single};
use super::surface::Surface;
use super::uri::relative_path;
use crate::{Conversion, Model, ParseError, ReadError, read_bytes};
use ::gltf::json::Root;
use std::collections::BTreeMap;
use std::path::Path;
use understudy_core::{BlendshapeRig, Skeleton, SkinWeights};

/// How to read what a file leaves open.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReadOptions {
    /// Frames a second of the clips. Left out, it is found from the spacing of the keys: the first usual
    /// rate (30 before others) on whose frames all of them lie.
    pub rate: Option<f32>,
    /// Read materials, textures and what else shading needs, to write them again.
    pub surface: bool,
}

/// Reads a `.glb`, or a `.gltf` with the files beside it.
pub fn read(path: &Path) -> Result<Model, ReadError> {
    read_with(path, &ReadOptions::default())
}

/// [`read`] with options.
pub fn read_with(path: &Path, options: &ReadOptions) -> Result<Model, ReadError> {
    let bytes = read_bytes(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let beside = |uri: &str| {
        let file = folder.join(relative_path(uri)?);
        std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))
    };
    parse_with(&bytes, options, &beside).map_err(ReadError::content(path))
}

/// Reads a document in memory. `resolve` finds the bytes of buffers that the document names by URI and
/// does not contain; data URIs and the binary chunk never reach it.
pub fn parse(bytes: &[u8], resolve: &Resolve<'_>) -> Result<Model, ParseError> {
    parse_with(bytes, &ReadOptions::default(), resolve)
}

/// [`parse`] with options.
pub fn parse_with(bytes: &[u8], options: &ReadOptions, resolve: &Resolve<'_>) -> Result<Model, ParseError> {
    if let Some(rate) = options.rate.filter(|rate| !rate.is_finite() || *rate <= 0.0) {
        return Err(ParseError::new("options", format!("a frame rate of {rate}")));
    }
    let mut document = Document::parse(bytes, resolve)?;
    let mut surface = options.surface.then(|| Surface::read(&document, resolve));
    let mut warnings = std::mem::take(&mut document.warnings);
    let Document { root, buffers, .. } = document;
    let accessors = Accessors::new(&root, &buffers);
    let extras = mesh_extras(&root);
    let nodes = Nodes::read(&root, &mut warnings)?;
    let geometry = Geometry::read(&root, &nodes, &extras, &accessors, &mut warnings)?;
    if geometry.mesh.faces.is_empty() {
        return Err(ParseError::new("scene", "has no triangles"));
    }
    let mut wanted = animated_nodes(&root)?;
    for (node, wanted) in wanted.iter_mut().enumerate() {
        *wanted &= nodes.in_scene[node];
    }
    for part in &geometry.parts {
        match part.skin {
            Some(skin) => root.skins[skin].joints.iter().for_each(|joint| wanted[joint.value()] = true),
            None => wanted[part.node] = true,
        }
    }
    let mut bones = nodes.bones(&wanted);
    let binding = Binding::read(&root, &nodes, &geometry, &mut bones, &accessors, &mut warnings)?;
    let morphs = Morphs::read(&root, &nodes, &geometry, &extras, &binding.spaces, &accessors, &mut warnings)?;
    let clips = ClipReader {
        root: &root,
        nodes: &nodes,
        bones: &bones,
        morphs: &morphs,
        rate: options.rate,
        accessors: &accessors,
    };
    let clips = clips.read(&mut warnings)?;

    if let Some(surface) = &mut surface {
        surface.of_face.clone_from(&geometry.materials);
        surface.read_attributes(&geometry.parts, &binding.spaces, &accessors);
    }
    let Geometry { mesh: mut parts, colours, parts: primitives, .. } = geometry;
    for (primitive, space) in primitives.iter().zip(&binding.spaces) {
        if let Some(space) = space {
            for position in &mut parts.positions[primitive.vertices.clone()] {
                *position = space.transform_point3(position.as_dvec3()).as_vec3();
            }
        }
    }
    let mesh = parts.build().map_err(|error| ParseError::new("mesh", error))?;
    let bone_count = bones.bones.len();
    let skeleton = Skeleton::new(bones.bones).map_err(|error| ParseError::new("skeleton", error))?;
    let inverse_bind = binding.inverse_bind.iter().zip(skeleton.inverse_bind());
    let inverse_bind = inverse_bind.map(|(given, own)| given.as_ref().map_or(*own, to_single)).collect();
    let skeleton =
        skeleton.with_inverse_bind(inverse_bind).map_err(|error| ParseError::new("skin", error))?;
    let skin =
        SkinWeights::from_rows(&binding.rows, bone_count).map_err(|error| ParseError::new("skin", error))?;
    let shapes = (!morphs.shapes.is_empty())
        .then(|| BlendshapeRig::new(mesh.positions().to_vec(), morphs.shapes, morphs.correctives))
        .transpose()
        .map_err(|error| ParseError::new("morph targets", error))?;
    Ok(Model {
        mesh,
        colours: (!colours.is_empty()).then_some(colours),
        skeleton: Some(skeleton),
        joints: binding.joints,
        skin: Some(skin),
        shapes,
        rest_weights: morphs.rest_weights,
        clips,
        surface,
        warnings,
        conversion: Conversion::scaled(CM as f32, "glTF is in metres"),
    })
}

/// Extras that are not what is expected are somebody else's.
fn mesh_extras(root: &Root) -> BTreeMap<usize, MeshExtras> {
    let read = |(index, mesh): (usize, &::gltf::json::Mesh)| {
        let raw = mesh.extras.as_ref()?;
        Some((index, serde_json::from_str(raw.get()).ok()?))
    };
    root.meshes.iter().enumerate().filter_map(read).collect()
}
