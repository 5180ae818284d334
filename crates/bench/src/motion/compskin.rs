//! A second corpus, by another hand: the take of the face 'Aura' (Compressed Skinning for Facial Blendshapes), 2,800 frames
//! of 72 controls. Nobody labelled it, so that each quarter of it is a label here, in four pieces.

use super::{Corpus, MotionArguments, laws, target};
use crate::console::complain;
use crate::inverse::truth::{animation, aura};
use anyhow::Result;
use std::path::Path;
use understudy_core::{ControlSpec, ControlSpecs, Face, MeshParts};
use understudy_io::npz::NpzReader;
use understudy_io::{Dim, ReadError};
use understudy_jobs::motion::LabelFrames;
use understudy_jobs::rigs;
use understudy_rigs::deformers::{Blendshapes, RigSize};
use understudy_rigs::{StackParts, StackRig};

/// Labels, and pieces of each.
const LABELS: usize = 4;
const PIECES: usize = 4;

pub fn run(arguments: &MotionArguments) -> Result<()> {
    let folder = rigs::data_folder().map(|folder| folder.join("compskin")).filter(|folder| folder.is_dir());
    let Some(folder) = folder else {
        complain("no compskin data: Aura's take is left out");
        return Ok(());
    };
    let corpus = Corpus::new("aura", Box::new(rig(&folder)?), cut(animation(&folder, usize::MAX)?));
    let (_, report) = corpus.learned(arguments)?;
    let worst = report.labels.iter().map(|l| l.latent_mm / l.components_mm).fold(0.0, f64::max);
    target(&format!("1.1 times the components' error (largest {worst:.3})"), worst <= 1.1);
    laws::run(arguments, &corpus)
}

/// Her shapes on her mesh, a control each.
fn rig(folder: &Path) -> Result<StackRig> {
    let shapes = aura(folder)?;
    let path = folder.join("aura.npz");
    let quads = NpzReader::read(&path)?.u32("quads", &[Dim::Any("faces"), Dim::Exactly(4)]);
    let quads = quads.map_err(ReadError::content(&path))?.data;
    let faces = quads.as_chunks::<4>().0.iter().map(|[a, b, c, d]| Face::quad(*a, *b, *c, *d)).collect();
    let mesh = MeshParts { positions: shapes.neutral().to_vec(), faces, ..MeshParts::default() }.build()?;
    let specs = shapes.shapes().iter().map(|shape| ControlSpec::number(shape.name.clone(), 0.0, 1.0, 0.0));
    let specs = ControlSpecs::new(specs.collect())?;
    let size = RigSize::new(&mesh, None, &specs);
    let deformer = Blendshapes::by_name(shapes.clone(), &specs, &size)?;
    let parts = StackParts {
        blendshapes: Some(shapes),
        deformers: vec![Box::new(deformer)],
        ..StackParts::default()
    };
    Ok(StackRig::new("aura", mesh, specs, parts)?)
}

/// Labels of a take, in order: as many frames each, in as many pieces.
fn cut(take: Vec<Vec<f32>>) -> Vec<LabelFrames> {
    let piece = take.len() / (LABELS * PIECES);
    let quarter = |(label, frames): (usize, &[Vec<f32>])| LabelFrames {
        label: format!("quarter{}", label + 1),
        clips: (1..=PIECES).map(|part| (format!("quarter{}_{part}", label + 1), piece)).collect(),
        frames: frames.to_vec(),
    };
    take.chunks_exact((piece * PIECES).max(1)).take(LABELS).enumerate().map(quarter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_take_is_cut_into_labels_of_pieces() {
        let take: Vec<Vec<f32>> = (0..50).map(|frame| vec![frame as f32]).collect();
        let labels = cut(take);
        assert_eq!(labels.len(), LABELS);
        for label in &labels {
            assert_eq!(label.clips.iter().map(|clip| clip.1).sum::<usize>(), label.frames.len());
        }
        assert_eq!((labels[1].frames[0][0], labels[3].frames[11][0]), (12.0, 47.0));
    }

    #[test]
    fn her_rig_is_what_her_shapes_say() {
        let Some(folder) = understudy_testkit::shared_data().map(|data| data.join("compskin")) else {
            return;
        };
        use understudy_core::{Controls, Vec3};
        use understudy_rigs::{Rig, RigPose};
        let (rig, shapes) = (rig(&folder).expect("a rig"), aura(&folder).expect("shapes"));
        let weights = animation(&folder, 3).expect("a take").remove(1);
        let mut truth = vec![Vec3::ZERO; shapes.neutral().len()];
        shapes.evaluate(&weights, &mut truth);
        let mut pose = RigPose::default();
        rig.evaluate(&Controls(weights), &mut pose).expect("finite");
        assert!(pose.vertices.iter().zip(&truth).all(|(a, b)| a.distance(*b) < 1e-3));
    }
}
