//! The networks of style transfer at their smallest size, 48²: how long a step takes, and how near they draw a frame of a recording from
//! another one of it, with the thesis's losses (6.10) to (6.12) and without, beside the other frame left as it is.

use crate::console::{print, table};
use anyhow::Result;
use std::time::Instant;
use understudy_capture::Frame;
use understudy_capture::actors::{Cast, Noise, Performance, take};
use understudy_core::Random;
use understudy_learn::style::{
    Features, FirstOrder, FirstOrderShape, FirstOrderTrainer, Hourglass, HourglassShape, LossWeights, Tensor,
    TransferBatch,
};

/// Actors to learn from, and one to look at.
const TRAINING: [u64; 3] = [21, 22, 23];
const TEST: u64 = 24;
/// Frames of each.
const FRAMES: usize = 48;
/// Pairs in a step.
const BATCH: usize = 6;

/// A recording: pictures, and where no face is.
struct Recording {
    pictures: Vec<Vec<f32>>,
    ground: Vec<Vec<f32>>,
}

fn recording(cast: &Cast, number: u64, side: usize) -> Result<Recording> {
    let actor = cast.actor(number, side)?;
    let take = take(&cast.shape_names(), 6.0, 30.0, number, true);
    let performance = Performance { actor, take, noise: Noise { seed: number, ..Noise::default() } };
    let (mut pictures, mut ground) = (Vec::new(), Vec::new());
    for index in 0..FRAMES {
        let frame = performance.play(index * performance.len() / FRAMES).frame;
        ground.push(
            frame
                .rgb()
                .chunks_exact(3)
                .map(|rgb| if rgb.iter().all(|v| *v < 24) { 1.0 } else { 0.0 })
                .collect(),
        );
        pictures.push(planes(&frame));
    }
    Ok(Recording { pictures, ground })
}

fn planes(frame: &Frame) -> Vec<f32> {
    let channel = |c: usize| frame.rgb().iter().skip(c).step_by(3).map(|byte| f32::from(*byte) / 255.0);
    (0..3).flat_map(channel).collect()
}

fn batch(recordings: &[&Recording], side: usize, count: usize, random: &mut Random) -> TransferBatch {
    let (mut source, mut driving, mut ground) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        let of = recordings[random.below(recordings.len())];
        source.extend(&of.pictures[random.below(FRAMES)]);
        let goal = random.below(FRAMES);
        driving.extend(&of.pictures[goal]);
        ground.extend(&of.ground[goal]);
    }
    TransferBatch {
        source: Tensor::new([count, 3, side, side], source),
        driving: Tensor::new([count, 3, side, side], driving),
        ground: Some(Tensor::new([count, 1, side, side], ground)),
        region: None,
    }
}

fn rmse(a: &Tensor, b: &Tensor) -> f64 {
    let squares = a.data().iter().zip(b.data()).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
    255.0 * (squares / a.data().len() as f64).sqrt()
}

/// Runs it.
pub fn run(cast: &Cast, steps: usize) -> Result<()> {
    let shape = FirstOrderShape::test();
    let side = shape.side;
    let training =
        TRAINING.iter().map(|number| recording(cast, *number, side)).collect::<Result<Vec<_>>>()?;
    let training: Vec<&Recording> = training.iter().collect();
    let stranger = recording(cast, TEST, side)?;
    // Features of a net of random weights: the same for both.
    let of_features =
        HourglassShape { side: 64, channels: vec![12, 24, 40], heat_level: 1, points: 1, scores: 0 };
    let features = Features::of(Hourglass::new(of_features, 1)?);
    let seen = batch(&training, side, 48, &mut Random::new(98));
    let unseen = batch(&[&stranger], side, 48, &mut Random::new(99));
    let mut rows = vec![vec![
        "the source as it is".to_owned(),
        format!("{:.1}", rmse(&seen.source, &seen.driving)),
        format!("{:.1}", rmse(&unseen.source, &unseen.driving)),
        "–".into(),
        "–".into(),
    ]];
    for (name, weights) in
        [("with (6.10) to (6.12)", LossWeights::default()), ("first order model", LossWeights::first_order())]
    {
        let mut trainer = FirstOrderTrainer::new(FirstOrder::new(shape, 1)?, features.clone(), weights, 1);
        let mut random = Random::new(7);
        let begin = Instant::now();
        for step in 0..steps {
            let rate = if 4 * step < 3 * steps { 2e-3 } else { 4e-4 };
            trainer.step(&batch(&training, side, BATCH, &mut random), rate);
        }
        let seconds = begin.elapsed().as_secs_f64();
        let model = trainer.model();
        let error = |pairs: &TransferBatch| {
            let drawn = model.transfer(&pairs.source, &pairs.source, &pairs.driving);
            rmse(&drawn, &pairs.driving)
        };
        rows.push(vec![
            name.into(),
            format!("{:.1}", error(&seen)),
            format!("{:.1}", error(&unseen)),
            format!("{seconds:.0}"),
            format!("{:.0}", 1e3 * seconds / steps.max(1) as f64),
        ]);
    }
    print(&format!("{steps} steps of {BATCH} pairs at {side}²; RMSE of 8-bit values\n"));
    print(&table(&["drawn by", "seen actors", "an unseen one", "seconds", "ms per step"], &rows));
    Ok(())
}
