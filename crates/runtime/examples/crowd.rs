//! A crowd of one character: many poses in one call, which is several times faster than one call per pose.
//!
//! `cargo run --release --example crowd -- rook.twin`

// An example talks to a terminal.
#![allow(clippy::print_stdout)]

use std::time::Instant;
use understudy_core::{Quat, Vec3A};
use understudy_runtime::{Affine3A, Pose, Twin, VertexBuffer};

const CROWD: usize = 256;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/body-v3.twin");
    let path = std::env::args().nth(1).unwrap_or_else(|| golden.into());
    let twin = Twin::parse(&std::fs::read(&path)?).map_err(|error| format!("{path}: {error}"))?;
    let Twin::Body(body) = &twin else { return Err(format!("{path}: not the twin of a body").into()) };

    // All poses one after another: everyone stands somewhere else and turns a little.
    let rest = body.parts().rest_bones;
    let mut bones: Vec<Affine3A> = Vec::with_capacity(CROWD * rest.len());
    for member in 0..CROWD {
        let mut place = Affine3A::from_quat(Quat::from_rotation_y(member as f32));
        place.translation = Vec3A::new((member % 16) as f32 * 100.0, 0.0, (member / 16) as f32 * 100.0);
        bones.extend(rest.iter().map(|bone| place * *bone));
    }
    let extras = twin.header().inputs.controls.defaults().0.repeat(CROWD);
    // In large pages, where the system has them.
    let mut vertices = VertexBuffer::new(CROWD * twin.vertex_count());

    let mut player = twin.player(std::thread::available_parallelism().map_or(1, usize::from));
    let crowd = Pose::Bones { bones: &bones, extras: &extras };
    player.crowd(crowd, &mut vertices)?;
    let start = Instant::now();
    player.crowd(crowd, &mut vertices)?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    println!(
        "{CROWD} × {} vertices on {} threads: {milliseconds:.2} ms, {:.4} ms per pose; the last vertex is at {}",
        twin.vertex_count(),
        player.threads(),
        milliseconds / CROWD as f64,
        vertices[vertices.len() - 1]
    );
    Ok(())
}
