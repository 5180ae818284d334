//! Synthesis over a million frames: every label from every frame, distance to the path, projections, jumps.

use super::{Corpus, MotionArguments, target};
use crate::console::{print, table};
use anyhow::{Result, ensure};
use std::sync::Arc;
use std::time::Instant;
use understudy_core::{Controls, Random};
use understudy_rigs::RigPose;
use understudy_runtime::motion::{Motion, MotionPlayer, PlayConfig};

/// Minutes of random commands.
const MINUTES: usize = 10;
/// Frames of the long run.
const FRAMES: usize = 1_000_000;

/// A random thing to do.
fn command(motion: &Motion, random: &mut Random) -> String {
    let model = &motion.models()[random.below(motion.models().len())];
    let clip = &model.clips()[random.below(model.clips().len())];
    let at = random.below(clip.frames) as f64 / f64::from(motion.rate());
    let other = &model.clips()[random.below(model.clips().len())];
    match random.below(6) {
        0 => format!("transition {}", model.label()),
        1 => format!("move {}@{at:.3}s", clip.name),
        2 => format!("idle {:.1}s around {}, {}@0s", 1.0 + 4.0 * random.unit(), clip.name, other.name),
        3 => format!("play {}", clip.name),
        4 => format!("mix 2s {} 60%", clip.name),
        _ => format!("idle {:.1}s", 3.0 * random.unit()),
    }
}

pub fn run(arguments: &MotionArguments, corpus: &Corpus) -> Result<()> {
    let (motion, _) = corpus.learned(arguments)?;
    let mut player = MotionPlayer::new(motion.clone(), None, PlayConfig::default())?;
    let (mut frames, mut farthest, mut strong, mut reached, mut starts) = (0usize, 0.0f64, 0usize, 0, 0);
    let mut note = |player: &MotionPlayer| {
        let now = player.situation();
        frames += 1;
        farthest = farthest.max(now.distance);
        strong += usize::from(now.projected > 0.05);
    };
    let started = Instant::now();
    for model in motion.models() {
        for frame in 0..model.space().len() {
            for to in motion.models().iter().filter(|to| to.label() != model.label()) {
                player.place(model.label(), model.space().point(frame))?;
                player.script(&format!("transition {}", to.label()))?;
                for _ in 0..2000 {
                    if !player.is_busy() {
                        break;
                    }
                    player.step();
                    note(&player);
                }
                starts += 1;
                reached += usize::from(player.label() == to.label() && !player.is_busy());
            }
        }
    }
    let mut random = Random::new(5);
    let mut played = 0;
    while played < FRAMES {
        if !player.is_busy() {
            player.script(&command(motion, &mut random))?;
        }
        player.step();
        note(&player);
        played += 1;
    }
    let seconds = started.elapsed().as_secs_f64();
    print(&format!(
        "\nreached {reached} of {starts} (every training frame to every other label); {frames} frames at {:.0} per second; farthest {farthest:.4} r; \
         projections above 0.05 r in {:.4} % of the frames",
        frames as f64 / seconds,
        100.0 * strong as f64 / frames as f64
    ));
    target("every label from every frame", reached == starts);
    target("at most 1.01 r from the path", farthest <= 1.01);
    target("projections above 0.05 r in at most 0.1 % of the frames", 1000 * strong <= frames);
    jumps(corpus, motion)
}

/// The largest step of any vertex from frame to frame, beside the clips' own.
fn jumps(corpus: &Corpus, motion: &Arc<Motion>) -> Result<()> {
    let mut pose = RigPose::default();
    let mut evaluate = |controls: &[f32]| -> Result<Vec<understudy_core::Vec3>> {
        corpus.rig.evaluate(&Controls(controls.to_vec()), &mut pose)?;
        Ok(pose.vertices.clone())
    };
    let step = |a: &[understudy_core::Vec3], b: &[understudy_core::Vec3]| {
        10.0 * a.iter().zip(b).map(|(a, b)| a.distance(*b)).fold(0.0f32, f32::max)
    };
    let own_frames = |frame: &[f32]| -> Vec<f32> {
        // What is not learned rests: eyes that look.
        let mut controls = corpus.rig.specs().defaults().0;
        for model in motion.models() {
            model.basis().moving().iter().for_each(|c| controls[*c as usize] = frame[*c as usize]);
        }
        controls
    };
    let mut own = 0.0f32;
    for label in &corpus.labels {
        let mut first = 0;
        for (_, length) in &label.clips {
            let mut last = evaluate(&own_frames(&label.frames[first]))?;
            for frame in first + 1..first + length {
                let next = evaluate(&own_frames(&label.frames[frame]))?;
                own = own.max(step(&last, &next));
                last = next;
            }
            first += length;
        }
    }
    ensure!(own > 0.0, "nothing moves");
    let mut player = MotionPlayer::new(motion.clone(), None, PlayConfig::default())?;
    let mut random = Random::new(9);
    let mut last = evaluate(player.controls())?;
    let mut worst: Vec<(f32, &'static str)> = Vec::new();
    for _ in 0..MINUTES * 60 * motion.rate() as usize {
        if !player.is_busy() {
            player.script(&command(motion, &mut random))?;
        }
        player.step();
        let next = evaluate(player.controls())?;
        worst.push((step(&last, &next), player.situation().doing));
        last = next;
    }
    worst.sort_by(|a, b| b.0.total_cmp(&a.0));
    print(&format!("\n{MINUTES} minutes of random commands: largest step of a vertex between frames"));
    let rows = vec![
        vec!["clips".into(), format!("{own:.2}"), String::new()],
        vec!["synthesis".into(), format!("{:.2}", worst[0].0), worst[0].1.into()],
        vec!["synthesis, the hundredth".into(), format!("{:.2}", worst[99].0), worst[99].1.into()],
    ];
    print(&table(&["", "mm", "during"], &rows));
    print(&format!("times the clips' own: {:.2}", worst[0].0 / own));
    target("no step above twice the clips' own largest", worst[0].0 <= 2.0 * own);
    Ok(())
}
