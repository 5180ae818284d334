//! Where handles come from: a TOML file of points, bones, regions, cages and bones of rigs, or the bones of any file that
//! has some.

use super::flat_skeleton;
use crate::names::unknown;
use crate::{JobError, Watch, inputs};
use std::path::{Path, PathBuf};
use understudy_core::{Affine3A, Bone, DVec3, Skeleton, SkeletonError, Vec3};
use understudy_solve::skin_weights::{Handle, HandleShape, SolvedWeights};

/// Handles, and the skeleton that some of them are the bones of, where there is one.
pub(super) struct HandleSource {
    /// Those of a rig come first.
    pub handles: Vec<Handle>,
    /// Files that a handle file names.
    pub rigs: Vec<PathBuf>,
    rig: Option<RigBones>,
}

/// Rigs side by side, with the bones of them that are handles.
struct RigBones {
    skeleton: Skeleton,
    chosen: Vec<usize>,
}

impl RigBones {
    /// With another rig's behind its own.
    fn with(self, other: &Skeleton, chosen: &[usize]) -> Result<Self, SkeletonError> {
        let first = self.skeleton.len();
        let moved = |bone: &Bone| Bone { parent: bone.parent.map(|parent| parent + first), ..bone.clone() };
        let bones = self.skeleton.bones().iter().cloned().chain(other.bones().iter().map(moved)).collect();
        let binds = self.skeleton.inverse_bind().iter().chain(other.inverse_bind()).copied().collect();
        let skeleton = Skeleton::new(bones)?.with_inverse_bind(binds)?;
        let chosen = self.chosen.into_iter().chain(chosen.iter().map(|bone| bone + first)).collect();
        Ok(Self { skeleton, chosen })
    }
}

impl HandleSource {
    /// The bones that the file gets, and the bone of every column: all bones of the rig, then one per other handle.
    pub fn skeleton(&self, solved: &SolvedWeights) -> Result<(Skeleton, Vec<usize>), SkeletonError> {
        let places: Vec<Vec3> = solved.places.iter().map(|p| p.as_vec3()).collect();
        let Some(RigBones { skeleton, chosen }) = &self.rig else {
            return Ok((flat_skeleton(&solved.names, &places)?, (0..places.len()).collect()));
        };
        let others = solved.names.iter().zip(&places).skip(chosen.len());
        let others: Vec<(String, Affine3A)> =
            others.map(|(name, place)| (name.clone(), Affine3A::from_translation(*place))).collect();
        let first = skeleton.len();
        let bones = chosen.iter().copied().chain(first..first + others.len()).collect();
        Ok((skeleton.with_roots(&others)?, bones))
    }
}

pub(super) fn read_handles(path: &Path, watch: &dyn Watch) -> Result<HandleSource, JobError> {
    const WANTED: &str = "a .toml of handles, or a .glb, .gltf or .bvh with bones";
    const RIG: &str = "a .glb, .gltf or .bvh with bones";
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        let file = understudy_io::handles::read(path)?;
        let mut source = HandleSource { handles: Vec::new(), rigs: Vec::new(), rig: None };
        for entry in &file.rig {
            // As it is written, or beside the handle file.
            let from = path.parent().unwrap_or(Path::new("")).join(&entry.file);
            let scene = inputs::open(&from, RIG, watch)?;
            let skeleton = scene.skeleton().ok_or_else(|| inputs::wrong_kind(&from, &scene, RIG))?;
            let find = |name: &String| {
                let known = || skeleton.bones().iter().map(|bone| bone.name.as_str());
                let missing = || unknown("bone", name, &from.display().to_string(), known());
                skeleton.find(name).ok_or_else(missing)
            };
            let chosen: Vec<usize> = match &entry.bones {
                Some(names) => names.iter().map(find).collect::<Result<_, _>>()?,
                None => (0..skeleton.len()).collect(),
            };
            let all = bones_of(skeleton);
            source.handles.extend(chosen.iter().map(|bone| all[*bone].clone()));
            let joined = match source.rig.take() {
                None => Ok(RigBones { skeleton: skeleton.clone(), chosen }),
                Some(first) => first.with(skeleton, &chosen),
            };
            source.rig = Some(joined.map_err(|error| JobError::unusable(&from, error))?);
            source.rigs.push(from);
        }
        let handles = &mut source.handles;
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
        return Ok(source);
    }
    let scene = inputs::open(path, WANTED, watch)?;
    let skeleton = scene.skeleton().ok_or_else(|| inputs::wrong_kind(path, &scene, WANTED))?;
    let rig = RigBones { skeleton: skeleton.clone(), chosen: (0..skeleton.len()).collect() };
    Ok(HandleSource { handles: bones_of(skeleton), rigs: Vec::new(), rig: Some(rig) })
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
