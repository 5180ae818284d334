//! Characters that one core synthesises at 24 frames per second, latent points and controls, while they idle around poses.

use super::{Corpus, MotionArguments, poses, target};
use crate::console::{print, table};
use anyhow::Result;
use std::time::Instant;
use understudy_core::{ControlSpec, ControlSpecs};
use understudy_motion::{LatentConfig, LatentSpace, label};
use understudy_runtime::motion::{BasisParts, Command, Crowd, Motion, PlayConfig};

/// Characters.
const CHARACTERS: usize = 1000;
/// Frames of a round, and rounds.
const FRAMES: usize = 48;
const ROUNDS: usize = 3;
/// Numbers of a pose, and controls of the rig.
const COMPONENTS: usize = 20;
const CONTROLS: usize = 250;

pub fn run(_arguments: &MotionArguments, corpus: &Corpus) -> Result<()> {
    let mut rows = Vec::new();
    let mut of_400 = 0.0;
    for frames in [400, 800] {
        let (outputs, lengths) = poses(corpus, frames, COMPONENTS)?;
        let d = outputs[0].len();
        let config = LatentConfig { iterations: 60, ..LatentConfig::default() };
        let (space, _) = LatentSpace::learn(&outputs, &lengths, &config, |_, _| true)?;
        // As many controls as a face rig has, all of them moved by the components.
        let components: Vec<f32> = (0..d * CONTROLS)
            .map(|i| ((i * i % 977) as f32 * 0.01).sin() / (CONTROLS as f32).sqrt())
            .collect();
        let basis = BasisParts {
            rest: vec![0.0; CONTROLS],
            moving: (0..CONTROLS as u32).collect(),
            scale: vec![1.0; CONTROLS],
            components,
        };
        let clips: Vec<(String, usize)> =
            lengths.iter().enumerate().map(|(i, n)| (format!("clip{i}"), *n)).collect();
        let model = label("all", basis, &space, &clips, CONTROLS)?;
        let rank = model.space().rank();
        let specs = (0..CONTROLS).map(|i| ControlSpec::number(format!("c{i}"), -9.0, 9.0, 0.0)).collect();
        let motion =
            Motion::new("crowd".into(), 24.0, ControlSpecs::new(specs)?, vec![model.parts()], Vec::new())?;
        let mut crowd = Crowd::new(motion.shared(), CHARACTERS, PlayConfig::default())?;
        for character in 0..CHARACTERS {
            let [a, b] = [character, character + 1].map(|i| clips[i % clips.len()].0.clone());
            let json = format!(r#"{{"command":"idle","around":["{a}","{b}"]}}"#);
            crowd.command(character, Command::from_json(&json)?)?;
        }
        (0..24).for_each(|_| crowd.step());
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let started = Instant::now();
            (0..FRAMES).for_each(|_| crowd.step());
            best = best.min(started.elapsed().as_secs_f64());
        }
        let per_second = (CHARACTERS * FRAMES) as f64 / best;
        if frames == 400 {
            of_400 = per_second / 24.0;
        }
        rows.push(vec![
            frames.to_string(),
            rank.to_string(),
            format!("{:.1}", 1e6 / per_second),
            format!("{:.0}", per_second / 24.0),
        ]);
    }
    print(&format!(
        "\none core, {CHARACTERS} characters that idle around two poses each, {COMPONENTS} components, {CONTROLS} controls; best of {ROUNDS}"
    ));
    print(&table(&["frames", "directions", "µs per character", "characters at 24 per second"], &rows));
    target("1,000 characters at 24 per second of 400 frames", of_400 >= 1000.0);
    Ok(())
}
