//! FBX (`.fbx`, binary and text): meshes with skin weights and blendshapes, the bones that move them, and animation,
//! as Maya, Blender, MotionBuilder and Mixamo write it. Start at [`read`].
//!
//! The file's own structure is read by `ufbx`, which takes units, axes, pivots and rotation orders into one space;
//! here its scene becomes a [`Model`] in centimetres and Y-up. A mesh is read where it was bound: bones rest where the
//! file shows them. Animation is sampled at the file's frame rate. Not read: dual quaternion skinning (linear is
//! evaluated), shapes in between, constraints, materials.

mod animation;
mod geometry;

use crate::assembly::Assembly;
use crate::{Axis, Conversion, Model, ParseError, ReadError, read_bytes};
use glam::{DAffine3, DMat3, DVec3};
use std::path::Path;
use ufbx::{
    AllocatorOpts, CoordinateAxis, FileFormat, GeometryTransformHandling, IndexErrorHandling,
    InheritModeHandling, LoadOpts, Scene, SpaceConversion,
};
use understudy_core::{KeyedClip, Skeleton};

/// How to read a file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FbxOptions {
    /// Frames per second at which animation is sampled, from 0.1 to 10,000; `None` for the file's own.
    pub rate: Option<f64>,
    /// Keep the times of the file; otherwise every clip starts at zero.
    pub file_times: bool,
}

/// Reads a file.
pub fn read(path: &Path) -> Result<Model, ReadError> {
    read_with(path, &FbxOptions::default())
}

/// [`read`] with options.
pub fn read_with(path: &Path, options: &FbxOptions) -> Result<Model, ReadError> {
    parse_with(&read_bytes(path)?, options).map_err(ReadError::content(path))
}

/// Reads bytes in memory. Files that it refers to are not opened.
pub fn parse(bytes: &[u8]) -> Result<Model, ParseError> {
    parse_with(bytes, &FbxOptions::default())
}

/// [`parse`] with options.
pub fn parse_with(bytes: &[u8], options: &FbxOptions) -> Result<Model, ParseError> {
    let scene = load(bytes)?;
    let mut assembly = Assembly::default();
    let bones = geometry::read(&scene, &mut assembly, bytes.len())?;
    let clips = animation::read(&scene, &bones, options, bytes.len(), &mut assembly.warnings)?;
    assembly.warnings.extend(
        scene
            .metadata
            .warnings
            .iter()
            .take(20)
            .map(|warning| format!("{} ({} times)", warning.description.as_ref(), warning.count)),
    );
    assembly.finish(clips, conversion(&scene))
}

/// Bones that move, without a mesh: motion capture, or the curves of a rig that is in another file.
#[derive(Debug, Clone, PartialEq)]
pub struct FbxBones {
    /// All bones of the file; all of its nodes where it calls none a bone.
    pub skeleton: Skeleton,
    /// All takes, sampled.
    pub clips: Vec<KeyedClip>,
    /// What was skipped or mended.
    pub warnings: Vec<String>,
    /// What was done to the file's units and axes.
    pub conversion: Conversion,
}

/// Reads the bones of a file and their motion, whether it holds a mesh or not.
pub fn read_bones(path: &Path, options: &FbxOptions) -> Result<FbxBones, ReadError> {
    parse_bones(&read_bytes(path)?, options).map_err(ReadError::content(path))
}

/// [`read_bones`] on bytes.
pub fn parse_bones(bytes: &[u8], options: &FbxOptions) -> Result<FbxBones, ParseError> {
    let scene = load(bytes)?;
    let mut assembly = Assembly::default();
    let bones = geometry::read_bones(&scene, &mut assembly);
    let clips = animation::read(&scene, &bones, options, bytes.len(), &mut assembly.warnings)?;
    let warnings = std::mem::take(&mut assembly.warnings);
    Ok(FbxBones { skeleton: assembly.skeleton()?, clips, warnings, conversion: conversion(&scene) })
}

fn load(bytes: &[u8]) -> Result<ufbx::SceneRoot, ParseError> {
    /// What every file may take, and how many times its own size: arrays in it are packed, zeros a thousandfold.
    const SMALL: usize = 256 << 20;
    const GROWTH: usize = 100;
    /// Deeper trees would exhaust the stack of functions that call themselves.
    const DEPTH: u32 = 512;
    let limit = || AllocatorOpts {
        memory_limit: SMALL.saturating_add(bytes.len().saturating_mul(GROWTH)),
        ..AllocatorOpts::default()
    };
    let options = LoadOpts {
        temp_allocator: limit(),
        result_allocator: limit(),
        file_format: FileFormat::Fbx,
        ignore_embedded: true,
        load_external_files: false,
        index_error_handling: IndexErrorHandling::AbortLoading,
        node_depth_limit: DEPTH,
        target_axes: ufbx::CoordinateAxes::right_handed_y_up(),
        target_unit_meters: 0.01,
        // Lengths themselves are converted, so that no bone has a scale that is only a unit.
        space_conversion: SpaceConversion::ModifyGeometry,
        geometry_transform_handling: GeometryTransformHandling::ModifyGeometry,
        // Joints that do not take their parent's scale get a node in between.
        inherit_mode_handling: InheritModeHandling::HelperNodes,
        ..LoadOpts::default()
    };
    ufbx::load_memory(bytes, options).map_err(|error| {
        let text = error.description.as_ref();
        ParseError::new("file", if text.is_empty() { "is no FBX file" } else { text })
    })
}

/// Lengths and axes as the file has them; they are converted already.
fn conversion(scene: &Scene) -> Conversion {
    let settings = &scene.settings;
    let scale = (settings.original_unit_meters * 100.0) as f32;
    let (up, named) = match settings.original_axis_up {
        CoordinateAxis::PositiveZ => (Axis::Z, ""),
        CoordinateAxis::PositiveX | CoordinateAxis::NegativeX => (Axis::Y, ", X-up turned to Y-up"),
        _ => (Axis::Y, ""),
    };
    let creator = scene.metadata.creator.as_ref();
    let by = if creator.is_empty() { String::new() } else { format!("; written by {creator}") };
    Conversion { scale, up, reason: format!("the file says so{named}{by}") }
}

/// An affine map of the file's.
fn affine(m: &ufbx::Matrix) -> DAffine3 {
    DAffine3 {
        matrix3: DMat3::from_cols(
            DVec3::new(m.m00, m.m10, m.m20),
            DVec3::new(m.m01, m.m11, m.m21),
            DVec3::new(m.m02, m.m12, m.m22),
        ),
        translation: DVec3::new(m.m03, m.m13, m.m23),
    }
}

fn vector(v: ufbx::Vec3) -> DVec3 {
    DVec3::new(v.x, v.y, v.z)
}
