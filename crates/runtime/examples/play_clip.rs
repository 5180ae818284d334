//! Plays a clip of a body twin: a bone turns over two seconds, the vertices follow, frame by frame.
//!
//! `cargo run --release --example play_clip -- rook.twin` (a twin that `understudy learn body` wrote)

// An example talks to a terminal.
#![allow(clippy::print_stdout)]

use std::time::Instant;
use understudy_core::Quat;
use understudy_runtime::{Affine3A, Pose, Twin, Vec3};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/body-v3.twin");
    let path = std::env::args().nth(1).unwrap_or_else(|| golden.into());
    let twin = Twin::parse(&std::fs::read(&path)?).map_err(|error| format!("{path}: {error}"))?;
    let Twin::Body(body) = &twin else { return Err(format!("{path}: not the twin of a body").into()) };
    let (rest, header) = (body.parts().rest_bones, twin.header());
    let turned = &header.inputs.bones[rest.len() - 1].name;
    println!("{}: {} vertices, {} bones; '{turned}' turns", header.rig, twin.vertex_count(), rest.len());

    let mut player = twin.player(1);
    let extras = header.inputs.controls.defaults().0;
    let (mut bones, mut vertices) = (rest.clone(), vec![Vec3::ZERO; twin.vertex_count()]);
    let mut normals = vertices.clone();
    let start = Instant::now();
    for frame in 0..60 {
        let angle = (frame as f32 / 60.0 * std::f32::consts::TAU).sin();
        let last = bones.len() - 1;
        // World transforms: an engine has them from its own skeleton.
        bones[last] = rest[last] * Affine3A::from_quat(Quat::from_rotation_z(angle));
        player.pose(Pose::Bones { bones: &bones, extras: &extras }, &mut vertices)?;
        player.normals(&vertices, &mut normals)?;
        if frame % 20 == 0 {
            println!("frame {frame}: the first vertex is at {}, its normal is {}", vertices[0], normals[0]);
        }
    }
    println!("{:.3} ms per frame, normals included", start.elapsed().as_secs_f64() * 1e3 / 60.0);
    Ok(())
}
