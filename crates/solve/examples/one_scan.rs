//! One scan of a face: which shapes, and how strongly? `cargo run -p understudy-solve --example one_scan`

use std::error::Error;
use std::io::Write;
use understudy_core::{BlendshapeRig, Shape, SparseDeltas, Vec3};
use understudy_solve::inverse_rig::{InverseSettings, invert};

/// The whole program; public, so that a test can run it.
pub fn main() -> Result<(), Box<dyn Error>> {
    // Lengths are centimetres. A strip of skin whose corner can be pulled up, out, or both.
    let neutral: Vec<Vec3> = (0..20).map(|i| Vec3::new(i as f32 * 0.5, 0.0, 0.0)).collect();
    let shape = |name: &str, pull: Vec3| {
        let dense: Vec<Vec3> = (0..20).map(|i| pull * (i as f32 / 19.0).powi(2)).collect();
        Shape { name: name.into(), deltas: SparseDeltas::from_dense(&dense, 0.0) }
    };
    let shapes = vec![
        shape("cornerUp", Vec3::new(0.0, 1.2, 0.0)),
        shape("cornerOut", Vec3::new(0.9, 0.0, 0.2)),
        shape("smile", Vec3::new(0.6, 0.8, 0.0)),
    ];
    let rig = BlendshapeRig::new(neutral, shapes, Vec::new())?;

    // The scan: here, what the rig itself makes of known weights.
    let mut scan = vec![Vec3::ZERO; rig.neutral().len()];
    rig.evaluate(&[0.0, 0.3, 0.7], &mut scan);

    let weights = invert(&rig, &scan, &InverseSettings::default())?;
    for (shape, weight) in rig.shapes().iter().zip(&weights) {
        writeln!(std::io::stdout(), "{:10} {weight:.3}", shape.name)?;
    }
    let near = |weight: f64, want: f64| (weight - want).abs() < 0.001;
    match near(weights[1], 0.3) && near(weights[2], 0.7) {
        true => Ok(()),
        false => Err("the scan's weights were not found".into()),
    }
}
