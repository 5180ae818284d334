//! Where handles come from: a TOML file of points, bones, regions and cages, or the bones of any file that has some.

use super::flat_skeleton;
use crate::{JobError, Watch, inputs};
use std::path::Path;
use understudy_core::{DVec3, Skeleton, SkeletonError, Vec3};
use understudy_solve::skin_weights::{Handle, HandleShape, SolvedWeights};

/// Handles, and the skeleton that they are the bones of, where there is one.
pub(super) struct HandleSource {
    pub handles: Vec<Handle>,
    bones: Option<Skeleton>,
}

impl HandleSource {
    /// Columns of weights.
    pub fn columns(&self) -> usize {
        self.handles.iter().map(Handle::column_count).sum()
    }

    /// The bones that the file gets: those of the rig, or one per handle.
    pub fn skeleton(&self, solved: &SolvedWeights) -> Result<Skeleton, SkeletonError> {
        match &self.bones {
            Some(skeleton) => Ok(skeleton.clone()),
            None => {
                let places: Vec<Vec3> = solved.places.iter().map(|p| p.as_vec3()).collect();
                flat_skeleton(&solved.names, &places)
            }
        }
    }
}

pub(super) fn read_handles(path: &Path, watch: &dyn Watch) -> Result<HandleSource, JobError> {
    const WANTED: &str = "a .toml of handles, or a .glb, .gltf or .bvh with bones";
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        let file = understudy_io::handles::read(path)?;
        let mut handles = Vec::new();
        for point in file.point {
            let shape = match (point.vertex, point.position) {
                (Some(vertex), _) => HandleShape::Vertex(vertex),
                (None, place) => HandleShape::Point(DVec3::from_array(place.unwrap_or_default())),
            };
            handles.push(Handle::new(point.name, shape));
        }
        for bone in file.bone {
            let shape =
                HandleShape::Bone { head: DVec3::from_array(bone.head), tail: DVec3::from_array(bone.tail) };
            handles.push(Handle::new(bone.name, shape));
        }
        for region in file.region {
            handles.push(Handle::new(region.name, HandleShape::Region(region.vertices)));
        }
        for cage in file.cage {
            let vertices = cage.vertices.into_iter().map(DVec3::from_array).collect();
            handles.push(Handle::new(cage.name, HandleShape::Cage { vertices, faces: cage.faces }));
        }
        return Ok(HandleSource { handles, bones: None });
    }
    let scene = inputs::open(path, WANTED, watch)?;
    let skeleton = scene.skeleton().ok_or_else(|| inputs::wrong_kind(path, &scene, WANTED))?;
    Ok(HandleSource { handles: bones_of(skeleton), bones: Some(skeleton.clone()) })
}

/// A segment per bone, from its joint to the middle of its children's; a bone without children goes on like its
/// parent, half as long.
pub(super) fn bones_of(skeleton: &Skeleton) -> Vec<Handle> {
    let place = |bone: usize| Vec3::from(skeleton.rest_global()[bone].translation);
    let bones = skeleton.bones();
    let children = |bone: usize| (0..bones.len()).filter(move |other| bones[*other].parent == Some(bone));
    let of = |bone: usize| {
        let head = place(bone);
        let ends: Vec<Vec3> = children(bone).map(place).collect();
        let tail = match (ends.len(), bones[bone].parent) {
            (0, Some(parent)) => head + (head - place(parent)) * 0.5,
            (0, None) => head,
            (count, _) => ends.iter().sum::<Vec3>() / count as f32,
        };
        let shape = HandleShape::Bone { head: head.as_dvec3(), tail: tail.as_dvec3() };
        Handle::new(bones[bone].name.clone(), shape)
    };
    (0..bones.len()).map(of).collect()
}
