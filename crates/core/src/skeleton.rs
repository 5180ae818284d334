//! Bones in a tree, local joint transforms and forward kinematics. Start at [`Skeleton::new`] and
//! [`Skeleton::forward`]. How bones move vertices is in [`crate::skinning`].

use glam::{Affine3A, Mat3A, Quat, Vec3, Vec3A};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What is wrong with a skeleton or a pose for it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SkeletonError {
    /// No bones at all.
    #[error("the skeleton has no bones")]
    Empty,
    /// A parent index out of range.
    #[error("bone {bone} ('{name}') has parent {parent}, but there are {count} bones")]
    Parent {
        /// The bone.
        bone: usize,
        /// Its name.
        name: String,
        /// The parent it names.
        parent: usize,
        /// How many bones exist.
        count: usize,
    },
    /// Parents form a cycle.
    #[error("bone {bone} ('{name}') is its own ancestor")]
    Cycle {
        /// A bone on the cycle.
        bone: usize,
        /// Its name.
        name: String,
    },
    /// Two bones of one name.
    #[error("two bones are named '{name}'")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A transform that is not finite, or a bind matrix that cannot be inverted.
    #[error("bone {bone} ('{name}') has a rest transform that is not finite or cannot be inverted")]
    BadTransform {
        /// The bone.
        bone: usize,
        /// Its name.
        name: String,
    },
    /// A pose or a list of bind matrices of another length.
    #[error("{got} transforms for a skeleton of {want} bones")]
    Count {
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
}

/// A transform in the parent's frame: scale, then rotate, then translate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JointTransform {
    /// Unit quaternion.
    pub rotation: Quat,
    /// cm, in the parent's frame.
    pub translation: Vec3,
    /// Per axis, 1 by default.
    pub scale: Vec3,
}

impl JointTransform {
    /// Nothing moves.
    pub const IDENTITY: Self = Self { rotation: Quat::IDENTITY, translation: Vec3::ZERO, scale: Vec3::ONE };

    /// A translation alone.
    pub fn from_translation(translation: Vec3) -> Self {
        Self { translation, ..Self::IDENTITY }
    }

    /// As an affine map.
    pub fn to_affine(&self) -> Affine3A {
        Affine3A::from_scale_rotation_translation(self.scale, self.rotation, self.translation)
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.rotation.is_finite() && self.translation.is_finite() && self.scale.is_finite()
    }
}

/// A bone: its name, its parent and its transform in the rest pose.
#[derive(Debug, Clone, PartialEq)]
pub struct Bone {
    /// Unique in its skeleton.
    pub name: String,
    /// Index of the parent; `None` for a root.
    pub parent: Option<usize>,
    /// In the parent's frame.
    pub rest: JointTransform,
}

/// Local transforms of all bones, one an entry: what an animation drives.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JointPose(pub Vec<JointTransform>);

/// World transforms of all bones: what forward kinematics gives, `X_j, t_j` of the papers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GlobalPose(pub Vec<Affine3A>);

/// A checked tree of bones with its rest pose and inverse bind matrices.
#[derive(Debug, Clone, PartialEq)]
pub struct Skeleton {
    bones: Vec<Bone>,
    /// Parents before children; bones may be stored in any order.
    order: Vec<u32>,
    rest_global: Vec<Affine3A>,
    inverse_bind: Vec<Affine3A>,
}

impl Skeleton {
    /// Checks the tree and binds it in its rest pose.
    pub fn new(bones: Vec<Bone>) -> Result<Self, SkeletonError> {
        if bones.is_empty() {
            return Err(SkeletonError::Empty);
        }
        let order = parents_first(&bones)?;
        let mut names: Vec<&str> = bones.iter().map(|b| b.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(SkeletonError::DuplicateName { name: pair[0].into() });
        }
        let mut skeleton = Self { rest_global: Vec::new(), inverse_bind: Vec::new(), bones, order };
        let mut rest = GlobalPose::default();
        skeleton.forward(&skeleton.rest_pose(), &mut rest)?;
        skeleton.inverse_bind = rest.0.iter().map(Affine3A::inverse).collect();
        skeleton.rest_global = rest.0;
        skeleton.check_transforms()?;
        Ok(skeleton)
    }

    /// With more bones behind its own, roots that rest at these world transforms.
    pub fn with_roots(&self, roots: &[(String, Affine3A)]) -> Result<Self, SkeletonError> {
        let root = |(name, rest): &(String, Affine3A)| {
            let (scale, rotation, translation) = rest.to_scale_rotation_translation();
            let rest = JointTransform { rotation: rotation.normalize(), translation, scale };
            Bone { name: name.clone(), parent: None, rest }
        };
        let bones = self.bones.iter().cloned().chain(roots.iter().map(root)).collect();
        let inverse_bind = self.inverse_bind.iter().copied();
        let inverse_bind = inverse_bind.chain(roots.iter().map(|(_, rest)| rest.inverse())).collect();
        Self::new(bones)?.with_inverse_bind(inverse_bind)
    }

    /// The first bones alone; a bone among them whose parent is not is an error.
    pub fn first(&self, count: usize) -> Result<Self, SkeletonError> {
        let count = count.min(self.len());
        Self::new(self.bones[..count].to_vec())?.with_inverse_bind(self.inverse_bind[..count].to_vec())
    }

    /// Replaces the inverse bind matrices: a file may bind its skin in another pose than it rests in.
    pub fn with_inverse_bind(mut self, inverse_bind: Vec<Affine3A>) -> Result<Self, SkeletonError> {
        if inverse_bind.len() != self.bones.len() {
            return Err(SkeletonError::Count { got: inverse_bind.len(), want: self.bones.len() });
        }
        self.inverse_bind = inverse_bind;
        self.check_transforms()?;
        Ok(self)
    }

    fn check_transforms(&self) -> Result<(), SkeletonError> {
        for (bone, data) in self.bones.iter().enumerate() {
            if !(data.rest.is_finite()
                && self.rest_global[bone].is_finite()
                && self.inverse_bind[bone].is_finite())
            {
                return Err(SkeletonError::BadTransform { bone, name: data.name.clone() });
            }
        }
        Ok(())
    }

    /// The bones as stored.
    pub fn bones(&self) -> &[Bone] {
        &self.bones
    }

    /// Number of bones.
    pub fn len(&self) -> usize {
        self.bones.len()
    }

    /// Never true: a skeleton has at least one bone.
    pub fn is_empty(&self) -> bool {
        self.bones.is_empty()
    }

    /// Bone indices, parents before children.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The bone of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.bones.iter().position(|b| b.name == name)
    }

    /// World transforms in the rest pose, `[J]`.
    pub fn rest_global(&self) -> &[Affine3A] {
        &self.rest_global
    }

    /// World → bone in the bind pose, `[J]`.
    pub fn inverse_bind(&self) -> &[Affine3A] {
        &self.inverse_bind
    }

    /// The local transforms of the rest pose.
    pub fn rest_pose(&self) -> JointPose {
        JointPose(self.bones.iter().map(|b| b.rest).collect())
    }

    /// Forward kinematics, `G_j = G_parent(j) · L_j`. Allocates only when `out` is too short.
    pub fn forward(&self, pose: &JointPose, out: &mut GlobalPose) -> Result<(), SkeletonError> {
        if pose.0.len() != self.bones.len() {
            return Err(SkeletonError::Count { got: pose.0.len(), want: self.bones.len() });
        }
        out.0.resize(self.bones.len(), Affine3A::IDENTITY);
        for &bone in &self.order {
            let local = pose.0[bone as usize].to_affine();
            out.0[bone as usize] = match self.bones[bone as usize].parent {
                Some(parent) => out.0[parent] * local,
                None => local,
            };
        }
        Ok(())
    }

    /// Rest → pose of every bone, `M_j = G_j · B_j^-1`, inverse bind included, `[J]`.
    pub fn skinning_matrices(&self, global: &GlobalPose, out: &mut Vec<Affine3A>) {
        out.clear();
        out.extend(global.0.iter().zip(&self.inverse_bind).map(|(global, bind)| *global * *bind));
    }

    /// Each bone's world transform in its parent's frame (a root's is its world transform), `[J]`:
    /// the inputs of card M1.
    pub fn relative_to_parent(&self, global: &GlobalPose, out: &mut Vec<Affine3A>) {
        out.clear();
        out.extend(self.bones.iter().zip(&global.0).map(|(bone, transform)| match bone.parent {
            Some(parent) => global.0[parent].inverse() * *transform,
            None => *transform,
        }));
    }
}

fn parents_first(bones: &[Bone]) -> Result<Vec<u32>, SkeletonError> {
    const WHITE: u8 = 0;
    const GREY: u8 = 1;
    const BLACK: u8 = 2;
    let mut colour = vec![WHITE; bones.len()];
    let mut order = Vec::with_capacity(bones.len());
    let mut chain = Vec::new();
    for start in 0..bones.len() {
        let mut bone = start;
        while colour[bone] == WHITE {
            colour[bone] = GREY;
            chain.push(bone);
            match bones[bone].parent {
                None => break,
                Some(parent) if parent >= bones.len() => {
                    let name = bones[bone].name.clone();
                    return Err(SkeletonError::Parent { bone, name, parent, count: bones.len() });
                }
                Some(parent) if colour[parent] == GREY => {
                    return Err(SkeletonError::Cycle { bone, name: bones[bone].name.clone() });
                }
                Some(parent) => bone = parent,
            }
        }
        while let Some(bone) = chain.pop() {
            colour[bone] = BLACK;
            order.push(bone as u32);
        }
    }
    Ok(order)
}

/// A bone's frame without its scale and shear: the same origin, the columns made orthonormal one after another
/// (Gram–Schmidt; a mirrored bone stays mirrored). Lengths and distances in it are those of the world, whatever
/// the unit of the bone. An axis that a bone squashes to nothing becomes zero.
pub fn rigid_frame(transform: &Affine3A) -> Affine3A {
    let unit = |axis: Vec3A| axis / axis.length().max(1e-12);
    let Mat3A { x_axis, y_axis, z_axis } = transform.matrix3;
    let x = unit(x_axis);
    let y = unit(y_axis - x * x.dot(y_axis));
    let left = z_axis - x * x.dot(z_axis);
    let z = unit(left - y * y.dot(left));
    Affine3A { matrix3: Mat3A::from_cols(x, y, z), translation: transform.translation }
}

/// World → a [`rigid_frame`]. Where an axis is zero nothing is said along it; a plain inverse would not be finite.
pub fn into_rigid_frame(frame: &Affine3A) -> Affine3A {
    let turn = frame.matrix3.transpose();
    Affine3A { matrix3: turn, translation: -(turn * frame.translation) }
}

/// Whether a transform is a rotation (or a reflection) and a translation, up to rounding.
pub fn is_rigid(transform: &Affine3A) -> bool {
    /// A thousandth of a bone's length is beyond what rounding does.
    const TOLERANCE: f32 = 1e-3;
    rigid_frame(transform).matrix3.abs_diff_eq(transform.matrix3, TOLERANCE)
}

/// The rotation of an affine map without its scale (Gram–Schmidt on the columns).
pub fn rotation_of(transform: &Affine3A) -> Quat {
    let x = transform.matrix3.x_axis.normalize_or_zero();
    let y = (transform.matrix3.y_axis - x * x.dot(transform.matrix3.y_axis)).normalize_or_zero();
    Quat::from_mat3a(&Mat3A::from_cols(x, y, x.cross(y))).normalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(parents: &[Option<usize>]) -> Vec<Bone> {
        let rest = JointTransform::from_translation(Vec3::Y);
        let bone =
            |(i, parent): (usize, &Option<usize>)| Bone { name: format!("b{i}"), parent: *parent, rest };
        parents.iter().enumerate().map(bone).collect()
    }

    #[test]
    fn children_may_be_stored_before_parents() {
        let skeleton = Skeleton::new(chain(&[Some(1), Some(2), None])).expect("a tree");
        assert_eq!(skeleton.order(), [2, 1, 0]);
        assert_eq!(Vec3::from(skeleton.rest_global()[0].translation), Vec3::Y * 3.0);
        let mut matrices = Vec::new();
        skeleton.skinning_matrices(&GlobalPose(skeleton.rest_global().to_vec()), &mut matrices);
        assert!(matrices.iter().all(|m| m.abs_diff_eq(Affine3A::IDENTITY, 1e-6)));
    }

    #[test]
    fn a_rigid_frame_has_the_unit_of_the_world() {
        let turn = Quat::from_scaled_axis(Vec3::new(0.3, -1.1, 0.7));
        let place = Vec3::new(4.0, -2.0, 9.0);
        let plain = Affine3A::from_rotation_translation(turn, place);
        for scale in [Vec3::ONE, Vec3::splat(0.01), Vec3::splat(100.0), Vec3::new(0.3, 1.0, 20.0)] {
            let scaled = Affine3A::from_scale_rotation_translation(scale, turn, place);
            assert!(rigid_frame(&scaled).abs_diff_eq(plain, 1e-5), "{scale}");
            assert_eq!(is_rigid(&scaled), scale == Vec3::ONE);
        }
        // A mirrored bone stays mirrored, a sheared one becomes orthonormal.
        let mirror = Affine3A::from_scale_rotation_translation(Vec3::new(2.0, 2.0, -2.0), turn, place);
        assert!((rigid_frame(&mirror).matrix3.determinant() + 1.0).abs() < 1e-5);
        let sheared = Affine3A::from_scale(Vec3::new(1.0, 3.0, 0.5)) * plain;
        let frame = rigid_frame(&sheared);
        assert!((into_rigid_frame(&frame) * frame).abs_diff_eq(Affine3A::IDENTITY, 1e-5));
        // A bone without size says nothing, but is finite.
        let none = rigid_frame(&Affine3A::from_scale_rotation_translation(Vec3::ZERO, turn, place));
        assert!(none.is_finite() && into_rigid_frame(&none).is_finite());
        assert_eq!(none.transform_vector3(Vec3::ONE), Vec3::ZERO);
    }

    #[test]
    fn bad_trees_are_named() {
        let cycle = Skeleton::new(chain(&[None, Some(2), Some(3), Some(1)]));
        assert!(matches!(cycle, Err(SkeletonError::Cycle { .. })));
        assert!(matches!(Skeleton::new(chain(&[Some(0)])), Err(SkeletonError::Cycle { bone: 0, .. })));
        assert!(matches!(Skeleton::new(chain(&[Some(7)])), Err(SkeletonError::Parent { parent: 7, .. })));
        assert_eq!(Skeleton::new(Vec::new()), Err(SkeletonError::Empty));
        let mut twice = chain(&[None, Some(0)]);
        twice[1].name = "b0".into();
        assert_eq!(Skeleton::new(twice), Err(SkeletonError::DuplicateName { name: "b0".into() }));
    }
}
