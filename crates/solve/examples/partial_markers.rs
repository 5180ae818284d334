//! Markers on some vertices, a few of them lost in every frame: the others are NaN, and count for nothing.
//! `cargo run -p understudy-solve --example partial_markers`

use std::error::Error;
use std::io::Write;
use understudy_core::{Random, Vec3};
use understudy_solve::inverse_rig::Missing;
use understudy_solve::{InverseRig, InverseSettings};
use understudy_testkit::synthetic::{SyntheticRig, random_rig, random_take};

/// The whole program; public, so that a test can run it.
pub fn main() -> Result<(), Box<dyn Error>> {
    let size = SyntheticRig { vertices: 2000, shapes: 12, radius: (6.0, 12.0), ..SyntheticRig::small(21) };
    let rig = random_rig(&size);
    let truth = random_take(rig.shapes().len(), 40, 5);

    // Every fortieth vertex has a marker; the rest of the mesh is not seen at all.
    let markers: Vec<usize> = (0..rig.neutral().len()).step_by(40).collect();
    let mut weights = vec![0.0; rig.neutral().len()];
    markers.iter().for_each(|vertex| weights[*vertex] = 1.0);
    let mut prepared = InverseRig::prepare(&rig)?;
    prepared.set_vertex_weights(&weights)?;
    if !prepared.unseen_shapes().is_empty() {
        writeln!(std::io::stdout(), "no marker shows {}", prepared.unseen_shapes().join(", "))?;
    }

    let settings = InverseSettings { missing: Missing::Ignore, ..InverseSettings::default() };
    let mut solver = prepared.solver(&settings)?;
    let mut random = Random::new(7);
    let (mut worst, mut mesh) = (0.0f64, vec![Vec3::ZERO; rig.neutral().len()]);
    for weights in &truth {
        rig.evaluate(weights, &mut mesh);
        // Five markers are hidden from the cameras.
        (0..5).for_each(|_| mesh[markers[random.below(markers.len())]] = Vec3::NAN);
        solver.solve(&mesh)?;
        let error =
            solver.weights().iter().zip(weights).map(|(found, want)| (found - f64::from(*want)).abs());
        worst = worst.max(error.fold(0.0, f64::max));
    }
    let seen = markers.len();
    writeln!(std::io::stdout(), "{seen} markers, five lost per frame: largest weight error {worst:.4}")?;
    if worst < 0.05 { Ok(()) } else { Err("the weights were not found".into()) }
}
