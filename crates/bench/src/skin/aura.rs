//! The face 'Aura' of Compressed Skinning for Facial Blendshapes (2024), whose data is a compressed rig of 40 bones: a twin
//! of as many bones can be exact. It is learned from the first four fifths of her take and from random poses of her rig
//! (some controls move in the last fifth alone), and weighed on the last fifth.

use crate::inverse::truth::{animation, aura};
use anyhow::{Result, anyhow};
use std::path::Path;
use understudy_core::{ControlSpec, ControlSpecs, Face, MeshParts, Random, Vec3};
use understudy_io::npz::NpzReader;
use understudy_io::{Dim, ReadError};
use understudy_learn::skin::{SkinSettings, learn};
use understudy_learn::{HeldBack, Recording};
use understudy_runtime::skin::{SkinTwin, to_bytes};
use understudy_runtime::{Precision, Twin};

/// Bones of her rig.
const BONES: usize = 40;
/// Controls of a random pose that move, on average.
const MOVING: usize = 6;

/// What was found.
#[derive(Debug)]
pub struct AuraReport {
    /// Training poses, of the take and random.
    pub poses: [usize; 2],
    /// On the last fifth.
    pub found: HeldBack,
    /// What the best bones leave of held-back poses, root mean square per vertex, mm.
    pub skin_rmse_mm: f64,
    /// Principal components.
    pub components: usize,
    /// Size of the twin's file.
    pub bytes: usize,
}

/// Learns from so many frames of the take, and as many random poses; so many principal components of what bones leave, or the
/// default.
pub fn weigh(folder: &Path, frames: usize, components: Option<usize>) -> Result<AuraReport> {
    let rig = aura(folder)?;
    let take = animation(folder, frames)?;
    let split = take.len() * 4 / 5;
    let shapes = rig.shapes().len();
    let mut random = Random::new(40);
    let drawn: Vec<Vec<f32>> = (0..split)
        .map(|_| {
            let mut weight = || match random.below(shapes) < MOVING {
                true => random.uniform(0.0, 1.0),
                false => 0.0,
            };
            (0..shapes).map(|_| weight()).collect()
        })
        .collect();
    let posed = |weights: &[f32]| {
        let mut out = vec![Vec3::ZERO; rig.neutral().len()];
        rig.evaluate(weights, &mut out);
        out
    };
    let training: Vec<&Vec<f32>> = take[..split].iter().chain(&drawn).collect();
    let path = folder.join("aura.npz");
    let quads = NpzReader::read(&path)?.u32("quads", &[Dim::Any("faces"), Dim::Exactly(4)]);
    let quads = quads.map_err(ReadError::content(&path))?.data;
    let face = |[a, b, c, d]: &[u32; 4]| Face::quad(*a, *b, *c, *d);
    let faces = quads.as_chunks::<4>().0.iter().map(face).collect();
    let specs = rig.shapes().iter().map(|shape| ControlSpec::number(shape.name.clone(), 0.0, 1.0, 0.0));
    let poses = Recording {
        mesh: MeshParts { positions: rig.neutral().to_vec(), faces, ..MeshParts::default() }.build()?,
        skeleton: None,
        specs: ControlSpecs::new(specs.collect())?,
        bones: Vec::new(),
        controls: training.iter().flat_map(|weights| weights.iter().copied()).collect(),
        vertices: training.iter().flat_map(|weights| posed(weights)).collect(),
    };
    // Exact bones are found slowly.
    let settings = SkinSettings {
        bones: BONES,
        components,
        frame: false,
        rounds: [20, 400],
        tolerance: 1e-5,
        ..SkinSettings::default()
    };
    let learned = learn(poses, None, "aura", &settings, &|_| true)?;
    let bytes = to_bytes(&learned.parts, Precision::Half)?.len();
    let twin = Twin::from(SkinTwin::new(learned.parts, Precision::Half)?);
    let truth: Vec<(Vec<f32>, Vec<Vec3>)> =
        take[split..].iter().map(|weights| (weights.clone(), posed(weights))).collect();
    if truth.is_empty() {
        return Err(anyhow!("{} frames are too few for a fifth", take.len()));
    }
    Ok(AuraReport {
        poses: [split, drawn.len()],
        found: HeldBack::measure(&twin, rig.neutral(), &truth),
        skin_rmse_mm: learned.report.skin_rmse_mm,
        components: learned.report.components,
        bytes,
    })
}
