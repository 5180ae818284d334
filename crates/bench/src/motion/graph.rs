//! Transitions from label to label beside a motion graph's over the same clips: peak acceleration of a vertex in the blend,
//! and how much of the data either uses.

use super::{Corpus, MotionArguments, target};
use crate::console::{print, table};
use anyhow::Result;
use std::sync::Arc;
use understudy_core::{Controls, Vec3};
use understudy_motion::motion_graph::{MotionGraph, Transition};
use understudy_rigs::RigPose;
use understudy_runtime::motion::{Motion, MotionPlayer, PlayConfig, route};

/// Frames of a blend, of both.
const BLEND: usize = 12;
/// Transitions per pair of labels.
const TRIED: usize = 6;

/// The largest second difference of a vertex, mm per frame².
fn peak(frames: &[Vec<Vec3>]) -> f32 {
    let bend = |three: &[Vec<Vec3>]| {
        let places = three[0].iter().zip(&three[1]).zip(&three[2]);
        places.map(|((a, b), c)| (*a - 2.0 * *b + *c).length()).fold(0.0f32, f32::max)
    };
    10.0 * frames.windows(3).map(bend).fold(0.0, f32::max)
}

pub fn run(arguments: &MotionArguments, corpus: &Corpus) -> Result<()> {
    let (motion, _) = corpus.learned(arguments)?;
    let mut pose = RigPose::default();
    let mut evaluate = |frames: &[Vec<f32>]| -> Result<Vec<Vec<Vec3>>> {
        let one = |controls: &Vec<f32>| -> Result<Vec<Vec3>> {
            corpus.rig.evaluate(&Controls(controls.clone()), &mut pose)?;
            Ok(pose.vertices.clone())
        };
        frames.iter().map(one).collect()
    };
    // The graph's poses are what is learned of them, as the latent spaces' are: eyes rest.
    let mut controls: Vec<Vec<f32>> = Vec::new();
    let mut scaled: Vec<Vec<f64>> = Vec::new();
    let (mut lengths, mut label_of) = (Vec::new(), Vec::new());
    let weight = weights(motion);
    for (place, label) in corpus.labels.iter().enumerate() {
        for frame in &label.frames {
            let mut own = corpus.rig.specs().defaults().0;
            (0..own.len()).filter(|c| weight[*c] > 0.0).for_each(|c| own[c] = frame[c]);
            scaled.push(own.iter().zip(&weight).map(|(v, w)| f64::from(*v) * w).collect());
            controls.push(own);
            label_of.push(place);
        }
        lengths.extend(label.clips.iter().map(|clip| clip.1));
    }
    // The limit of the bridges, over all vertices: millimetres of the mesh are tenths of the unit of scaled controls.
    let vertices = corpus.rig.mesh().vertex_count() as f64;
    let limit = 0.2 * vertices.sqrt();
    let graph = MotionGraph::new(&scaled, &lengths, BLEND, limit);
    let any = MotionGraph::new(&scaled, &lengths, BLEND, f64::INFINITY);
    let usable = graph.usable();
    let share = usable.iter().filter(|u| **u).count() as f64 / usable.len().max(1) as f64;
    // Within a label every frame is walked to from every other; frames count as joined where their labels are, both ways.
    let count = motion.models().len();
    let joined = |a: usize, b: usize| {
        a == b || [(a, b), (b, a)].iter().all(|(a, b)| route(motion.bridges(), count, *a, *b).is_some())
    };
    let part = |a: usize| -> usize {
        (0..count).filter(|b| joined(a, *b)).map(|b| motion.models()[b].space().len()).sum()
    };
    let ours = (0..count).map(part).max().unwrap_or(0) as f64 / usable.len().max(1) as f64;
    let long = motion.bridges().iter().filter(|bridge| bridge.millimetres > 2.0).count();
    print(&format!(
        "\nmotion graph within 2 mm: {} transitions, {:.1} % of {} frames can be played for ever; latent spaces: {:.1} %, \
         {long} of {} bridges are longer than 2 mm",
        graph.transitions().len(),
        100.0 * share,
        usable.len(),
        100.0 * ours,
        motion.bridges().len()
    ));
    print(
        "the graph's 2 mm are root mean square over all vertices, the bridges' over those that move: the graph's limit is the laxer",
    );
    target("all frames can be reached", ours >= 1.0);
    let labels = corpus.labels.len();
    let (mut rows, mut all, mut quiet) = (Vec::new(), [Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let is_quiet = |label: usize| arguments.quiet.contains(&corpus.labels[label].label);
    for from in 0..labels {
        for to in 0..labels {
            if from == to {
                continue;
            }
            let mut ways: Vec<&Transition> = any
                .transitions()
                .iter()
                .filter(|t| label_of[t.from] == from && label_of[t.to] == to)
                .collect();
            ways.sort_by(|a, b| a.distance.total_cmp(&b.distance));
            ways.truncate(TRIED);
            let mut theirs = Vec::new();
            for way in ways {
                theirs.push(peak(&evaluate(&graph.over(&controls, way, 2))?));
            }
            let mut ours = Vec::new();
            for seed in 0..TRIED as u64 {
                let blend = over_bridge(motion, from, to, seed)?;
                ours.push(peak(&evaluate(&blend)?));
            }
            let mean = |list: &[f32]| list.iter().sum::<f32>() / list.len().max(1) as f32;
            if !theirs.is_empty() {
                all[0].push(mean(&theirs));
                all[1].push(mean(&ours));
                if is_quiet(from) && is_quiet(to) {
                    quiet[0].push(mean(&theirs));
                    quiet[1].push(mean(&ours));
                }
                let name = format!("{} – {}", corpus.labels[from].label, corpus.labels[to].label);
                rows.push((mean(&ours) / mean(&theirs), name, mean(&theirs), mean(&ours)));
            }
        }
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let line = |(ratio, name, theirs, ours): &(f32, String, f32, f32)| {
        vec![name.clone(), format!("{theirs:.3}"), format!("{ours:.3}"), format!("{ratio:.2}")]
    };
    let mut lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    let mean = |list: &[f32]| list.iter().sum::<f32>() / list.len().max(1) as f32;
    let mut add = |name: String, [theirs, ours]: &[Vec<f32>; 2]| {
        let (theirs, ours) = (mean(theirs), mean(ours));
        lines.push(line(&(ours / theirs, name, theirs, ours)));
        ours / theirs
    };
    add("all, mean".into(), &all);
    let ratio = (!quiet[0].is_empty()).then(|| {
        let name = format!("{} pairs of quiet clips, mean", quiet[0].len());
        add(name, &quiet)
    });
    print("peak acceleration of a vertex in the 12 frames of a blend, mm per frame²; mean of 6 each");
    print(&table(&["from – to", "motion graph", "ours", "ratio"], &lines));
    if let Some(ratio) = ratio {
        print(&format!("quiet clips: {}", arguments.quiet.join(", ")));
        target("half of the graph's on quiet clips", ratio <= 0.5);
    }
    Ok(())
}

/// Weights of controls: the largest that any label gives them.
fn weights(motion: &Motion) -> Vec<f64> {
    let mut out = vec![0.0f64; motion.controls().len()];
    for model in motion.models() {
        let parts = model.basis().parts();
        for (c, w) in parts.moving.iter().zip(&parts.scale) {
            out[*c as usize] = out[*c as usize].max(f64::from(*w));
        }
    }
    out
}

/// Controls of the last blend on the way from one label to another, two frames more on both sides.
fn over_bridge(motion: &Arc<Motion>, from: usize, to: usize, seed: u64) -> Result<Vec<Vec<f32>>> {
    let (from, to) = (motion.models()[from].label(), motion.models()[to].label());
    let config = PlayConfig { seed, ..PlayConfig::default() };
    let mut player = MotionPlayer::new(motion.clone(), Some(from), config)?;
    player.script(&format!("idle 1s; transition {to}"))?;
    let mut frames = Vec::new();
    while player.is_busy() && frames.len() < 5000 {
        player.step();
        frames.push(player.controls().to_vec());
    }
    for _ in 0..2 {
        player.step();
        frames.push(player.controls().to_vec());
    }
    Ok(frames.split_off(frames.len() - (BLEND + 4).min(frames.len())))
}
