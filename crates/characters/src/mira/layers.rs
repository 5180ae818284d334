//! The other layers of Mira's stack: sticky lips, wrinkles, the squash-and-stretch lattice, and the one
//! that puts teeth and gums back to rigid after it.

use super::anatomy::Anatomy;
use super::cage::Patch;
use super::rigging::HEAD;
use super::shapes::on_face;
use understudy_core::rotation::fit_rigid;
use understudy_core::{ControlSpecs, Vec3};
use understudy_rigs::RigError;
use understudy_rigs::deformers::{
    Activation, Driver, Lattice, LatticeConfig, LatticeHandle, LipPair, Response, RigSize, StickyLips,
    StickyLipsConfig, Wrinkle, WrinkleGroup, Wrinkles,
};
use understudy_rigs::{Deformer, Frame, Scratch};

fn control(specs: &ControlSpecs, name: &str) -> Result<usize, RigError> {
    let missing = || RigError::Unknown { part: "a layer of Mira".into(), name: name.into() };
    specs.find(name).ok_or_else(missing)
}

/// Lips that come unstuck from the middle as the jaw opens further than the glue holds.
pub(super) fn sticky_lips(
    anatomy: &Anatomy,
    specs: &ControlSpecs,
    size: &RigSize,
) -> Result<StickyLips, RigError> {
    let positions = anatomy.model.mesh.positions();
    let contact = anatomy.select(Patch::Mouth, 0.0, |_, across| across == 4.0);
    let along = |v: u32| anatomy.model.places[v as usize].along;
    let mut pairs = Vec::new();
    for &upper in contact.iter().filter(|v| along(**v) >= 4.0) {
        let x = positions[upper as usize].x;
        let partner = |lower: &&u32| {
            let other = positions[**lower as usize].x;
            (along(**lower) - (8.0 - along(upper))).abs() < 0.01 && (x.abs() < 1e-4 || other * x > 0.0)
        };
        if let Some(&lower) = contact.iter().find(partner) {
            let from_middle = (8.0 - along(upper)) / 4.0;
            let place = 0.5 + 0.5 * from_middle * if x > 1e-4 { 1.0 } else { -1.0 };
            pairs.push(LipPair { upper, lower, place });
        }
    }
    pairs.sort_by(|a, b| a.place.total_cmp(&b.place));
    let jaw = control(specs, "jawOpen")?;
    let zip = |name: &str| -> Result<Driver, RigError> {
        let sum = Driver::sum(vec![(control(specs, name)?, 1.5), (jaw, -0.8)]);
        Ok(sum.through(Response::Smooth { from: 0.0, to: 1.5 }))
    };
    let config = StickyLipsConfig {
        pairs,
        zip_first: zip("lipsSticky_R")?,
        zip_second: zip("lipsSticky_L")?,
        seam: 0.5,
        spread: 1.1,
        tear: 3.0,
    };
    StickyLips::new(config, &anatomy.model.mesh, size)
}

/// Folds of the forehead, between the brows, at the outer corners of the eyes, on the nose, beside the
/// mouth.
pub(super) fn wrinkles(
    anatomy: &Anatomy,
    specs: &ControlSpecs,
    size: &RigSize,
) -> Result<Wrinkles, RigError> {
    let region: Vec<u32> = anatomy.model.segment("skin");
    let path = |side: f32, points: &[(f32, f32)]| -> Vec<Vec3> {
        points.iter().map(|&(x, y)| on_face(x, y) * Vec3::new(side, 1.0, 1.0)).collect()
    };
    let mut groups = Vec::new();
    for (suffix, side) in [("L", 1.0), ("R", -1.0)] {
        let mut group =
            |name: &str, lines: &[&[(f32, f32)]], width: f32, depth: f32, terms: &[(&str, f32)]| {
                let wrinkles =
                    lines.iter().map(|line| Wrinkle { path: path(side, line), width, depth }).collect();
                let sum = terms
                    .iter()
                    .map(|(term, gain)| Ok((control(specs, &format!("{term}_{suffix}"))?, *gain)));
                let sum = Driver::sum(sum.collect::<Result<Vec<_>, RigError>>()?);
                let activation = Activation::Driver(sum.through(Response::Smooth { from: 0.15, to: 1.2 }));
                groups.push(WrinkleGroup {
                    name: format!("{name}_{suffix}"),
                    wrinkles,
                    activation,
                    region: region.clone(),
                });
                Ok::<(), RigError>(())
            };
        let forehead: [&[(f32, f32)]; 3] = [
            &[(-0.4, 4.0), (1.2, 4.15), (2.8, 4.2), (4.4, 3.9)],
            &[(-0.4, 4.75), (1.2, 4.95), (2.8, 4.95), (4.2, 4.6)],
            &[(-0.4, 5.5), (1.2, 5.7), (2.6, 5.65), (3.8, 5.3)],
        ];
        let raise = [
            ("browUp", 1.0),
            ("browInnerUp", 0.6),
            ("browOuterUp", 0.4),
            ("browMidUp", 0.5),
            ("browDown", -0.6),
        ];
        group("forehead", &forehead, 0.3, 0.07, &raise)?;
        let frown: [&[(f32, f32)]; 1] = [&[(0.5, 1.1), (0.55, 1.9), (0.75, 2.9)]];
        group(
            "frown",
            &frown,
            0.22,
            0.09,
            &[("browDown", 0.8), ("browFurrow", 0.8), ("browInnerIn", 0.4), ("browUp", -0.4)],
        )?;
        let feet: [&[(f32, f32)]; 3] = [
            &[(5.2, 0.5), (5.6, 0.75), (6.0, 1.1)],
            &[(5.25, 0.05), (5.7, 0.0), (6.15, 0.05)],
            &[(5.15, -0.4), (5.55, -0.7), (5.95, -1.0)],
        ];
        group(
            "crows_foot",
            &feet,
            0.2,
            0.07,
            &[("eyeSquint", 0.8), ("cheekSquint", 0.5), ("mouthSmile", 0.4), ("eyeBlink", 0.1)],
        )?;
        let nose: [&[(f32, f32)]; 2] =
            [&[(0.25, -0.2), (0.6, -0.45), (0.95, -0.5)], &[(0.25, -0.75), (0.6, -1.0), (0.9, -1.0)]];
        group("nose", &nose, 0.2, 0.06, &[("noseSneer", 0.8), ("noseWrinkle", 0.9)])?;
        let fold: [&[(f32, f32)]; 1] = [&[(1.45, -3.0), (2.0, -3.9), (2.7, -4.9), (3.05, -5.9)]];
        group(
            "nasolabial",
            &fold,
            0.44,
            0.09,
            &[
                ("mouthSmile", 0.7),
                ("noseSneer", 0.4),
                ("nasolabialDeepen", 0.7),
                ("mouthUpperUp", 0.3),
                ("cheekSquint", 0.2),
            ],
        )?;
        let dimple: [&[(f32, f32)]; 1] = [&[(2.9, -5.2), (3.05, -5.7), (2.95, -6.2)]];
        group(
            "dimple",
            &dimple,
            0.3,
            0.05,
            &[("mouthDimple", 0.9), ("mouthSmile", 0.3), ("mouthStretch", 0.4)],
        )?;
    }
    Wrinkles::new(groups, &anatomy.model.mesh, size)
}

/// Squash, stretch, bend and twist of the whole head, and three handles for caricature.
pub(super) fn lattice(specs: &ControlSpecs, size: &RigSize) -> Result<Lattice, RigError> {
    let driver = |name: &str| control(specs, name).map(Driver::control);
    // Handles move layers of control points: y is 0 at the neck and 4 at the crown.
    let layer = |heights: &[(usize, f32)], widen: f32, deepen: f32| {
        let mut moves = Vec::new();
        for &(y, share) in heights {
            for (x, z) in (0..4).flat_map(|x| (0..4).map(move |z| (x, z))) {
                let (across, along) = ((x as f32 - 1.5) / 1.5, (z as f32 - 1.5) / 1.5);
                moves.push(([x, y, z], Vec3::new(across * widen, 0.0, along * deepen) * share));
            }
        }
        moves
    };
    let handle = |name: &str, moves| Ok::<_, RigError>(LatticeHandle { driver: driver(name)?, moves });
    let config = LatticeConfig {
        low: Vec3::new(-10.0, -17.5, -12.5),
        high: Vec3::new(10.0, 12.5, 11.0),
        counts: [4, 5, 4],
        bone: Some(HEAD),
        pivot: Vec3::new(0.0, -14.0, -3.0),
        stretch: driver("headStretch")?,
        volume: 0.8,
        taper: driver("headTaper")?,
        bend_front: driver("headBendFront")?,
        bend_side: driver("headBendSide")?,
        twist: driver("headTwist")?,
        handles: vec![
            handle("craniumGrow", layer(&[(4, 1.0), (3, 0.5)], 1.4, 1.4))?,
            handle("jawGrow", layer(&[(1, 1.0)], 1.6, 0.8))?,
            handle("faceWiden", layer(&[(1, 0.5), (2, 1.0), (3, 0.5)], 1.2, 0.0))?,
        ],
        mask: Vec::new(),
    };
    Lattice::new(config, size)
}

/// Puts groups of vertices back to the rigid motion of their rest shape that fits best: whatever the
/// layers before did, teeth and gums neither stretch nor bend.
pub(super) struct KeepRigid {
    groups: Vec<Vec<u32>>,
}

impl KeepRigid {
    /// The upper row with its gums, and the lower.
    pub fn teeth(anatomy: &Anatomy) -> Self {
        let segments = anatomy.model.mesh.segments();
        let row = |jaw: &str| -> Vec<u32> {
            let belongs = |v: &u32| {
                let name = &segments.names[segments.of_vertex[*v as usize] as usize];
                name.starts_with(&format!("tooth_{jaw}")) || *name == format!("gums_{jaw}")
            };
            (0..anatomy.model.mesh.vertex_count() as u32).filter(belongs).collect()
        };
        Self { groups: vec![row("upper"), row("lower")] }
    }
}

impl Deformer for KeepRigid {
    fn name(&self) -> &str {
        "rigid teeth"
    }

    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], scratch: &mut Scratch) {
        let Scratch { points, more_points, .. } = scratch;
        for group in &self.groups {
            points.clear();
            points.extend(group.iter().map(|v| frame.rest[*v as usize]));
            more_points.clear();
            more_points.extend(group.iter().map(|v| vertices[*v as usize]));
            let motion = fit_rigid(points, more_points);
            for (vertex, rest) in group.iter().zip(points.iter()) {
                vertices[*vertex as usize] = motion.apply(*rest);
            }
        }
    }
}
