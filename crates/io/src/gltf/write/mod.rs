//! glTF 2.0 out: a mesh with its skin, shapes and clips as one GLB that any engine opens and that reads
//! back as it was. Start at [`write_glb`].
//!
//! Vertices are split where texture coordinates disagree and quads become triangles, as the format asks;
//! notes for our own reader (attributes `_VERTEX`, `_UV`, `_SEGMENT` and the mesh's extras) undo both.
//! Correctives become morph targets whose animated weights are the products.

mod animation;
mod mesh;
mod packer;
mod scene;

use super::metres::vector_to_metres;
use super::nodes::unit;
use crate::names::UniqueNames;
use crate::{WriteError, write_atomic};
use ::gltf::json::extras::RawValue;
use ::gltf::json::{self, Index, Node, Root};
use mesh::StoredMesh;
use packer::Packer;
pub use scene::{GltfScene, SceneError};
use serde::Serialize;
use std::path::Path;
use understudy_core::Skeleton;

/// Writes a `.glb`, whole or not at all.
pub fn write_glb(path: &Path, scene: &GltfScene<'_>) -> Result<(), WriteError> {
    let bytes = to_glb_bytes(scene).map_err(|error| WriteError::new(path, error))?;
    write_atomic(path, &bytes)
}

/// A `.glb` in memory. The same scene gives the same bytes.
pub fn to_glb_bytes(scene: &GltfScene<'_>) -> Result<Vec<u8>, SceneError> {
    scene.check()?;
    let mut packer = Packer::default();
    let mut root = Root::default();
    root.asset.generator = Some(concat!("understudy ", env!("CARGO_PKG_VERSION")).into());
    let mut scene_nodes = Vec::new();
    let mut skin = None;
    if let Some((skeleton, _)) = scene.skin {
        let top = push_bones(&mut root, skeleton)?;
        scene_nodes.push(top);
        skin = Some(root.push(json::Skin {
            inverse_bind_matrices: Some(packer.inverse_bind(skeleton.inverse_bind())),
            joints: (0..skeleton.bones().len()).map(index).collect(),
            skeleton: Some(top),
            name: None,
            extensions: None,
            extras: None,
        }));
    }
    let stored = StoredMesh::new(scene);
    let mesh = stored.push(scene, &mut root, &mut packer)?;
    let mesh_node =
        root.push(Node { mesh: Some(mesh), skin, name: Some(scene.name.into()), ..Node::default() });
    scene_nodes.push(mesh_node);
    let mut names = UniqueNames::default();
    for clip in scene.clips {
        let name = names.take(&clip.name);
        root.animations.extend(animation::clip_animation(scene, clip, name, mesh_node, &mut packer)?);
    }
    for clip in scene.keyed_clips {
        let name = names.take(&clip.name);
        root.animations.extend(animation::keyed_animation(scene, clip, name, mesh_node, &mut packer));
    }
    let main = root.push(json::Scene { nodes: scene_nodes, name: None, extensions: None, extras: None });
    root.scene = Some(main);
    let mut members = String::new();
    if let Some(surface) = scene.surface.filter(|surface| !surface.materials.is_empty()) {
        root.extensions_used.clone_from(&surface.extensions_used);
        root.extensions_required.clone_from(&surface.extensions_required);
        members = packer.surface(surface);
    }
    packer.finish(root, &members)
}

fn index<T>(value: usize) -> Index<T> {
    Index::new(u32::try_from(value).expect("counts are checked to stay below 2³²"))
}

/// Our notes as extras.
fn raw<T: Serialize>(value: &T) -> json::Extras {
    let text = serde_json::to_string(value).expect("strings and finite numbers serialise");
    Some(RawValue::from_string(text).expect("it was just serialised"))
}

/// Nodes `0..J` for the bones, and above several roots one more: a skin needs a common root.
fn push_bones(root: &mut Root, skeleton: &Skeleton) -> Result<Index<Node>, SceneError> {
    let bones = skeleton.bones();
    let mut children: Vec<Vec<Index<Node>>> = vec![Vec::new(); bones.len()];
    let mut tops = Vec::new();
    for (bone, data) in bones.iter().enumerate() {
        match data.parent {
            Some(parent) => children[parent].push(index(bone)),
            None => tops.push(index(bone)),
        }
    }
    for (bone, children) in bones.iter().zip(children) {
        let rotation =
            unit(bone.rest.rotation).ok_or_else(|| SceneError::Rotation { bone: bone.name.clone() })?;
        let translation = vector_to_metres(bone.rest.translation);
        let unless = |value: [f32; 3], default: f32| (value != [default; 3]).then_some(value);
        root.nodes.push(Node {
            name: Some(bone.name.clone()),
            children: (!children.is_empty()).then_some(children),
            rotation: (rotation != glam::Quat::IDENTITY)
                .then_some(json::scene::UnitQuaternion(rotation.to_array())),
            translation: unless(translation.to_array(), 0.0),
            scale: unless(bone.rest.scale.to_array(), 1.0),
            ..Node::default()
        });
    }
    if let [top] = tops[..] {
        return Ok(top);
    }
    Ok(root.push(Node { name: Some("skeleton".into()), children: Some(tops), ..Node::default() }))
}
