//! A take, frame by frame as a camera delivers it, then again as a whole with smoothing and head motion.
//! `cargo run --release -p understudy-solve --example a_take`

use std::error::Error;
use std::io::Write;
use understudy_core::{Quat, Vec3};
use understudy_solve::inverse_rig::rigid::RigidSettings;
use understudy_solve::inverse_rig::take::TakeSettings;
use understudy_solve::{InverseRig, InverseSettings, Solver};
use understudy_testkit::synthetic::{SyntheticRig, random_rig, random_take};

/// Solvers borrow nothing: a program keeps one beside its other state.
struct Tracker {
    solver: Solver,
    smiles: usize,
}

impl Tracker {
    fn frame(&mut self, mesh: &[Vec3]) -> Result<(), Box<dyn Error>> {
        self.solver.solve(mesh)?;
        self.smiles += usize::from(self.solver.weights()[0] > 0.5);
        Ok(())
    }
}

/// The whole program; public, so that a test can run it.
pub fn main() -> Result<(), Box<dyn Error>> {
    // A rig of 102 shapes with correctives of two, three and four of them, and a minute of weights.
    let rig = random_rig(&SyntheticRig { vertices: 1000, ..SyntheticRig::paper() });
    let truth = random_take(rig.shapes().len(), 60, 3);
    let mut meshes = vec![vec![Vec3::ZERO; rig.neutral().len()]; truth.len()];
    truth.iter().zip(&mut meshes).for_each(|(weights, mesh)| rig.evaluate(weights, mesh));

    let prepared = InverseRig::prepare(&rig)?;
    let settings = InverseSettings::default();
    let mut tracker = Tracker { solver: prepared.solver(&settings)?, smiles: 0 };
    for mesh in &meshes {
        tracker.frame(mesh)?;
    }
    writeln!(std::io::stdout(), "shape 0 is on in {} of {} frames", tracker.smiles, meshes.len())?;

    // The same take with a nodding head, solved on all cores.
    for (time, mesh) in meshes.iter_mut().enumerate() {
        let nod = Quat::from_rotation_x(0.1 * (time as f32 * 0.2).sin());
        mesh.iter_mut().for_each(|vertex| *vertex = nod * *vertex);
    }
    let take =
        TakeSettings { smooth: 0.01, rigid: Some(RigidSettings::default()), ..TakeSettings::default() };
    let solved = prepared.solve_take(&meshes, &settings, &take)?;
    let pairs = solved.weights.iter().flatten().zip(truth.iter().flatten());
    let error = pairs.map(|(found, want)| (found - f64::from(*want)).abs()).sum::<f64>()
        / (truth.len() * rig.shapes().len()) as f64;
    writeln!(std::io::stdout(), "mean weight error with head motion taken out: {error:.4}")?;
    if error < 0.02 { Ok(()) } else { Err("the take's weights were not found".into()) }
}
