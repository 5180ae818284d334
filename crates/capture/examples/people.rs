//! Draws synthetic actors at rest and with an expression into `actors.png` (with `MARKS` in the environment, their landmarks too): `cargo run -p understudy-capture --example people -- FOLDER`,
//! with the folder of the head model's files, `ict-facekit`, as the second argument.

// An example talks to a terminal.
#![allow(clippy::print_stdout)]

use std::path::PathBuf;
use understudy_capture::actors::{Cast, HeadParts, take};
use understudy_capture::{Frame, Image};
use understudy_report::Picture;

fn picture(frame: &Frame) -> Picture {
    let mut picture = Picture::new(frame.width(), frame.height(), [0, 0, 0, 255]);
    for (out, rgb) in picture.pixels_mut().chunks_exact_mut(4).zip(frame.rgb().chunks_exact(3)) {
        out[..3].copy_from_slice(rgb);
    }
    picture
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("the folder to write to is missing")?);
    let data = PathBuf::from(arguments.next().unwrap_or_else(|| "../shared/data/ict-facekit".into()));
    let face = understudy_io::real::ict(&data.join("face.npz"))?;
    let identities =
        understudy_io::real::ict_identities(&data.join("identities.npz"), face.mesh.vertex_count())?;
    let cast = Cast::new(HeadParts {
        mesh: face.mesh,
        shapes: face.shapes,
        landmarks: face.landmarks,
        materials: face.materials,
        face_materials: face.face_materials,
        identities,
    })?;
    std::fs::create_dir_all(&folder)?;
    let side = 384;
    let mut sheet = Picture::new(4 * side, 3 * side, [0, 0, 0, 255]);
    for index in 0..6usize {
        let actor = if index == 0 { cast.rendered(side) } else { cast.actor(index as u64, side)? };
        let take = take(&cast.shape_names(), 3.0, 30.0, index as u64, false);
        for (place, at) in [(0, 0), (1, 45 + 3 * index)] {
            let frame = &take.frames[at];
            let mut positions = actor.head.mesh.positions().to_vec();
            actor.head.pose(&frame.weights, None, &mut positions);
            let started = std::time::Instant::now();
            let camera = frame.camera(&actor.camera);
            let drawn = actor.look.render(&positions, &camera, &actor.light, [0.0; 3]);
            eprintln!("person {index}: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
            let mut image: Image = drawn.image;
            for mark in actor.head.marks.inner_lips(&positions, &camera) {
                if let Some([x, y]) =
                    camera.project(mark.place(&positions)).filter(|_| std::env::var("MARKS").is_ok())
                {
                    image.pixels_mut()[y as usize * side + x as usize] = [0.0, 1.0, 0.0];
                }
            }
            for mark in actor.head.marks.fixed() {
                if let Some([x, y]) =
                    camera.project(mark.place(&positions)).filter(|_| std::env::var("MARKS").is_ok())
                {
                    image.pixels_mut()[y as usize * side + x as usize] = [1.0, 0.0, 0.0];
                }
            }
            sheet.paste(&picture(&image.to_frame()), (index % 2 * 2 + place) * side, index / 2 * side);
        }
    }
    std::fs::write(folder.join("actors.png"), sheet.to_png())?;
    Ok(())
}
