//! Fits a rendered take and says how far the face is from the one that was drawn: `cargo run --release -p understudy-capture
//! --example fit -- ../shared/data/ict-facekit`. Settings follow as `name=value`.

// An example talks to a terminal.
#![allow(clippy::print_stdout)]

use std::path::PathBuf;
use std::time::Instant;
use understudy_capture::actors::{Cast, FacePoints, HeadParts, Noise, Performance, take};
use understudy_capture::flow::{FlowSettings, flow};
use understudy_capture::gaze::{degrees_between, gazes};
use understudy_capture::inverse_rendering::{Freedom, Model, Observation, Optimiser, RenderSettings, Shapes};
use understudy_core::Vec3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let data = PathBuf::from(arguments.next().unwrap_or_else(|| "../shared/data/ict-facekit".into()));
    let options: Vec<(String, f64)> = arguments
        .filter_map(|argument| {
            let (name, value) = argument.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        })
        .collect();
    let option = |name: &str, default: f64| {
        options.iter().find(|(of, _)| of == name).map_or(default, |(_, value)| *value)
    };
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
    let side = option("side", 512.0) as usize;
    let person = option("actor", 0.0) as u64;
    let actor = if person == 0 { cast.rendered(side) } else { cast.actor(person, side)? };
    let turning = option("head", 0.0) > 0.0;
    let names = cast.shape_names();
    let take = take(&names, option("seconds", 1.0), 30.0, option("seed", 7.0) as u64, turning);
    let noise =
        Noise { picture: (option("noise", 2.0) / 255.0) as f32, marks: option("marks", 1.0), seed: 1 };
    let performance = Performance { actor, take, noise };
    let defaults = RenderSettings::default();
    let settings = RenderSettings {
        photo: option("photo", defaults.photo),
        land: option("land", defaults.land),
        smooth: option("smooth", defaults.smooth),
        sparse: option("sparse", defaults.sparse),
        corner: option("corner", defaults.corner),
        still: option("still", defaults.still),
        samples: option("samples", defaults.samples as f64) as usize,
        smoothing: option("smoothing", defaults.smoothing as f64) as usize,
        tolerance: option("tolerance", defaults.tolerance),
        freedom: if turning { Freedom::Head } else { Freedom::InPlane },
        ..defaults
    };
    let head = performance.actor.head.clone();
    let model = Model::of_head(
        &head,
        performance.actor.look.clone(),
        performance.actor.light,
        performance.actor.camera,
    );
    let points = FacePoints::new(
        &head.mesh.triangles(),
        head.mesh.positions(),
        &model.region,
        &head.marks.points,
        1000,
        3,
    );
    let started = Instant::now();
    let mut optimiser = Optimiser::prepare(Shapes::new(&head.shapes), model, settings)?;
    eprintln!("prepared in {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
    let with_flow = option("flow", 1.0) > 0.0;
    let quick = FlowSettings { skipped: option("skipped", 2.0) as usize, ..FlowSettings::default() };
    let (mut sum, mut rest_sum, mut ms, mut flow_ms, mut iterations, mut eye) =
        ([0.0; 2], [0.0; 2], 0.0, 0.0, 0, 0.0);
    let mut epe = 0.0;
    let mut before: Option<understudy_capture::actors::Played> = None;
    let mut last = [[0.0; 2]; 2];
    for index in 0..performance.len() {
        let played = performance.play(index);
        let image = played.image();
        let started = Instant::now();
        let field = before.as_ref().filter(|_| with_flow).map(|before| flow(&before.image(), &image, &quick));
        flow_ms += started.elapsed().as_secs_f64() * 1e3;
        if let (Some(before), Some(field), true) = (&before, &field, option("epe", 0.0) > 0.0) {
            let exact = performance.flow(before, &played);
            epe += field.end_point_error(&exact).unwrap_or(0.0);
        }
        let started = Instant::now();
        let observation = Observation { image: &image, detected: &played.detected, flow: field.as_ref() };
        let report = optimiser.solve(&observation)?;
        let elapsed = started.elapsed().as_secs_f64() * 1e3;
        ms += elapsed;
        iterations += report.costs.len() - 1;
        let state = optimiser.state();
        let weights: Vec<f32> = state.weights.iter().map(|weight| *weight as f32).collect();
        let mut solved = head.mesh.positions().to_vec();
        head.pose(&weights, None, &mut solved);
        let error = points.error(&solved, &played.shape);
        let rest: Vec<Vec3> = head.mesh.positions().to_vec();
        let neutral = points.error(&rest, &played.shape);
        sum = [sum[0] + error.front, sum[1] + error.landmarks];
        rest_sum = [rest_sum[0] + neutral.front, rest_sum[1] + neutral.landmarks];
        let found = gazes(&state.camera, &state.head, &head.eyes, &rest, played.detected.pupils, last);
        last = [found[0].0, found[1].0];
        let truth = &performance.take.frames[index].weights;
        for side in 0..2 {
            eye += degrees_between(&head.eyes[side], &rest, found[side].0, head.eyes[side].gaze(truth)) / 2.0;
        }
        if option("print", 0.0) > 0.0 {
            eprintln!(
                "{index}: front {:.4} landmarks {:.4} (neutral {:.3}) {elapsed:.1} ms {:?} {} iterations, {:?} seen {}",
                error.front,
                error.landmarks,
                neutral.front,
                report.ended,
                report.costs.len() - 1,
                report.terms,
                report.visible
            );
        }
        before = Some(played);
    }
    let n = performance.len() as f64;
    println!(
        "front {:.4} cm, landmarks {:.4} cm (neutral {:.3}, {:.3}); {:.1} ms + flow {:.1} ms, {:.1} iterations; pupils {:.2}°; flow error {:.3} px",
        sum[0] / n,
        sum[1] / n,
        rest_sum[0] / n,
        rest_sum[1] / n,
        ms / n,
        flow_ms / n,
        iterations as f64 / n,
        eye / n,
        epe / (n - 1.0).max(1.0)
    );
    Ok(())
}
