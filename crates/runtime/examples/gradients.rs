//! Finds the controls of a pose from its vertices: gradient descent on a face twin, by its own derivative.
//!
//! `cargo run --release --example gradients -- mira.twin`

// An example talks to a terminal.
#![allow(clippy::print_stdout)]

use understudy_runtime::{Pose, Twin, Vec3};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/face-v3.twin");
    let path = std::env::args().nth(1).unwrap_or_else(|| golden.into());
    let twin = Twin::parse(&std::fs::read(&path)?).map_err(|error| format!("{path}: {error}"))?;
    let specs = twin.header().inputs.controls.clone();
    let mut player = twin.player(1);

    // The pose to be found: the first controls half way up.
    let mut wanted = specs.defaults();
    for (value, spec) in wanted.0.iter_mut().zip(specs.iter()).take(3) {
        *value = 0.5 * (spec.default + spec.high);
    }
    let mut target = vec![Vec3::ZERO; twin.vertex_count()];
    player.pose(Pose::Controls(&wanted.0), &mut target)?;

    // L = ½ Σ |v − target|², so ∂L/∂v = v − target.
    let loss = |vertices: &[Vec3], by_vertices: &mut [Vec3]| -> f32 {
        let misses = by_vertices.iter_mut().zip(vertices.iter().zip(&target));
        misses.map(|(slope, (v, target))| (*slope = *v - *target, 0.5 * slope.length_squared()).1).sum()
    };
    let mut controls = specs.defaults();
    let (mut slopes, mut step) = (vec![0.0; specs.len()], 1e-3f32);
    let mut last = player.gradient(Pose::Controls(&controls.0), loss, &mut slopes)?;
    println!("at rest the loss is {last:.6} cm²");
    for _ in 0..200 {
        let mut next = controls.clone();
        next.0.iter_mut().zip(&slopes).for_each(|(value, slope)| *value -= step * slope);
        specs.clamp(&mut next);
        let mut next_slopes = slopes.clone();
        let value = player.gradient(Pose::Controls(&next.0), loss, &mut next_slopes)?;
        // Longer steps while they help, shorter ones where they do not.
        if value < last {
            (controls, slopes, last, step) = (next, next_slopes, value, step * 1.3);
        } else {
            step *= 0.5;
        }
    }
    println!("after 200 steps it is {last:.6} cm²");
    for (spec, (found, wanted)) in specs.iter().zip(controls.0.iter().zip(&wanted.0)).take(3) {
        println!("{}: {found:.3}, wanted {wanted:.3}", spec.name);
    }
    Ok(())
}
