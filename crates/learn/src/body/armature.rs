//! The recorded bones as a twin takes them: in which frames, bound where, and which hangs on which. Other people's
//! rigs scale and shear their bones, bind a skin in another pose than the skeleton rests in, and list deform
//! bones side by side; everything that learns asks here instead of the skeleton.

use super::{Recording, tree};
use rayon::prelude::*;
use understudy_core::Affine3A;
use understudy_core::skeleton::{into_rigid_frame, is_rigid, rigid_frame};

/// Numbers of a bone that are lengths of its axes; the others are a place.
const AXES: usize = 9;

/// The bones of a recording.
#[derive(Debug, Clone)]
pub struct Armature {
    /// The bone that each hangs on: the file's, or found from motion (see `tree`).
    pub parents: Vec<Option<usize>>,
    /// How many of them are not the file's.
    pub adopted: usize,
    /// Whether some bone stretches or shears in some pose: then frames are taken without.
    pub rigid_frames: bool,
    /// World → bone where the mesh is bound, `[J]`.
    pub inverse_bind: Vec<Affine3A>,
    /// Mean length of the axes of each bone at rest; 1 where no bone stretches.
    units: Vec<f32>,
}

impl Armature {
    /// Looks at all poses.
    pub fn new(poses: &Recording) -> Self {
        let rest = poses.skeleton().rest_global();
        let rigid_frames = !(rest.iter().all(is_rigid) && poses.bones.par_iter().all(is_rigid));
        let size = |bone: &Affine3A| {
            let length = (bone.matrix3.x_axis.length_squared()
                + bone.matrix3.y_axis.length_squared()
                + bone.matrix3.z_axis.length_squared())
                / 3.0;
            length.sqrt().max(f32::MIN_POSITIVE)
        };
        let units = rest.iter().map(|bone| if rigid_frames { size(bone) } else { 1.0 }).collect();
        let mut out = Self {
            parents: poses.skeleton().bones().iter().map(|bone| bone.parent).collect(),
            adopted: 0,
            rigid_frames,
            inverse_bind: poses.skeleton().inverse_bind().to_vec(),
            units,
        };
        let parents = tree::parents(poses, &out);
        out.adopted = parents.iter().zip(&out.parents).filter(|(new, old)| new != old).count();
        out.parents = parents;
        out
    }

    /// The frame of a bone.
    pub fn frame(&self, bone: &Affine3A) -> Affine3A {
        if self.rigid_frames { rigid_frame(bone) } else { *bone }
    }

    /// World → the frame of a bone.
    pub fn to_frame(&self, bone: &Affine3A) -> Affine3A {
        if self.rigid_frames { into_rigid_frame(&rigid_frame(bone)) } else { bone.inverse() }
    }

    /// The twelve numbers of a bone in the frame of another or of the world, lengths of axes in units of the bone:
    /// the same whatever scale an armature carries.
    pub fn numbers(&self, global: &[Affine3A], seen_from: Option<usize>, bone: usize) -> [f32; 12] {
        let relative = match seen_from {
            Some(other) => self.to_frame(&global[other]) * global[bone],
            None => global[bone],
        };
        let mut numbers = relative.to_cols_array();
        numbers[..AXES].iter_mut().for_each(|number| *number /= self.units[bone]);
        numbers
    }

    /// In what unit one of a bone's twelve numbers is given.
    pub fn unit_of_number(&self, bone: usize, number: usize) -> f64 {
        if number < AXES { f64::from(self.units[bone]) } else { 1.0 }
    }

    /// Rest → pose of every bone, `[J]`.
    pub fn carriers(&self, global: &[Affine3A]) -> Vec<Affine3A> {
        global.iter().zip(&self.inverse_bind).map(|(bone, bind)| *bone * *bind).collect()
    }

    /// Whether a network may see where the bone is: the one root of a tree carries the whole body and tells
    /// nothing about its shape; where several bones hang on nothing, each does.
    pub fn tells_shape(&self, bone: usize) -> bool {
        self.parents[bone].is_some() || self.parents.iter().filter(|parent| parent.is_none()).count() > 1
    }
}
