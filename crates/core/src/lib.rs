//! The shapes that every part of Understudy speaks: meshes, skeletons, controls, clips, skin weights
//! and blendshapes, with the mathematics that needs nothing else.
//!
//! Start at [`Mesh`] for geometry, [`Skeleton`] for bones, [`ControlSpecs`] for what an animator moves
//! and [`metrics`] for how far two deformations are apart. This crate opens no files, starts no
//! threads and knows no tensors. Lengths are centimetres, Y is up, angles of controls are degrees.

pub mod arkit;
pub mod blendshapes;
pub mod clip;
pub mod control_map;
pub mod controls;
pub mod joint_clip;
pub mod keyed_clip;
pub mod laplacian;
#[cfg(feature = "linear-algebra")]
pub mod linear_algebra;
pub mod mechanism;
pub mod mesh;
pub mod metrics;
pub mod normals;
pub mod random;
pub mod remesh;
pub mod rotation;
pub mod skeleton;
pub mod skinning;
#[cfg(feature = "linear-algebra")]
pub mod sparse_cholesky;
pub mod tensors;
pub mod track;

pub use blendshapes::{BlendshapeError, BlendshapeRig, Corrective, Shape, SparseDeltas};
pub use clip::{Clip, ClipError, Curve, Interpolation, Key, Motion, Purpose, SampledClip};
pub use control_map::ControlMap;
pub use controls::{Channel, ControlError, ControlKind, ControlSpec, ControlSpecs, Controls};
pub use glam::{Affine3A, DMat3, DQuat, DVec3, EulerRot, Mat3, Mat3A, Quat, Vec2, Vec3, Vec3A};
pub use joint_clip::JointClip;
pub use keyed_clip::{BoneTrack, JointProperty, KeyedClip, WeightTrack};
pub use mechanism::{Constraint, JointMechanism, MechanismError};
pub use mesh::{Adjacency, Face, Mesh, MeshError, MeshParts, Segments};
pub use random::Random;
pub use skeleton::{Bone, GlobalPose, JointPose, JointTransform, Skeleton, SkeletonError};
pub use skinning::{SkinError, SkinWeights};
pub use track::{Track, TrackInterpolation};
