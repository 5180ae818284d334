//! Laws of synthesis on three small models of a rig with four controls.

use super::*;
use crate::bridge::{BridgeConfig, find};
use crate::script::parse;
use crate::{LatentConfig, statistics};

const RATE: f32 = 24.0;
const RANGES: [(f32, f32); 4] = [(-3.0, 3.0); 4];

/// A loop of controls, leaning into the direction of a label.
fn clip(label: usize, beside: f32, frames: usize) -> Vec<Vec<f32>> {
    let at = |frame: usize| {
        let t = frame as f32 / frames as f32 * std::f32::consts::TAU;
        let swing = 1.0 - t.cos();
        let mut pose = vec![0.1 * t.sin(), beside * swing, 0.0, 0.05 * (2.0 * t).sin()];
        pose[label] += swing;
        pose
    };
    (0..=frames).map(at).collect()
}

fn model(label: usize) -> MotionModel {
    let clips: Vec<Vec<Vec<f32>>> = vec![clip(label, 0.0, 36), clip(label, 0.2, 30)];
    let frames: Vec<Vec<f32>> = clips.iter().flatten().cloned().collect();
    let (mean, deviation) = statistics(&frames, &[6.0; 4]);
    let scale = deviation.iter().map(|d| if *d > 0.0 { 1.0 } else { 0.0 }).collect();
    let linear = LinearPoses::fit(&frames, mean, scale, 0.999).expect("it moves");
    let outputs: Vec<Vec<f64>> = frames.iter().map(|frame| linear.encode(frame)).collect();
    let lengths: Vec<usize> = clips.iter().map(Vec::len).collect();
    let config = LatentConfig { iterations: 60, ..LatentConfig::default() };
    let (space, _) = LatentSpace::learn(&outputs, &lengths, &config, |_, _| true).expect("learns");
    let mut first = 0;
    let named = lengths.iter().enumerate().map(|(index, frames)| {
        let clip = ClipFrames { name: format!("swing{label}_{index}"), first, frames: *frames };
        first += frames;
        clip
    });
    let clips = named.collect();
    MotionModel::new(format!("label{label}"), linear, space, clips)
}

fn file() -> MotionFile {
    let models: Vec<MotionModel> = (0..3).map(model).collect();
    let mut bridges = Vec::new();
    // Label 0 and 2 are joined over 1 alone.
    for pair in [(0, 1), (1, 2)] {
        let distance = |a: &[f32], b: &[f32]| -> Result<f32, ()> {
            Ok(10.0 * a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt())
        };
        bridges.extend(find(&models, pair, &BridgeConfig::default(), distance).expect("no rig can fail"));
    }
    let controls = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
    let file = MotionFile {
        version: MotionFile::VERSION,
        rig: "test".into(),
        controls,
        ranges: RANGES.to_vec(),
        rate: RATE,
        models,
        bridges,
    };
    assert_eq!(file.problem(), None);
    file
}

fn act(file: &MotionFile, seed: u64, script: &str) -> (Vec<Vec<f32>>, Vec<String>, f64) {
    let config = SynthesisConfig { seed, ..SynthesisConfig::default() };
    let mut synthesis = Synthesis::new(file, None, config).expect("a label");
    for line in parse(script).expect("a script") {
        synthesis.command(line.command).expect(script);
    }
    let (mut frames, mut labels, mut strain) = (Vec::new(), Vec::new(), 0.0f64);
    while synthesis.is_busy() {
        frames.push(synthesis.next_frame().expect(script));
        labels.push(synthesis.label().to_owned());
        strain = strain.max(synthesis.strain().0);
    }
    (frames, labels, strain)
}

/// The largest change of any control from frame to frame.
fn largest_step(frames: &[Vec<f32>]) -> f32 {
    let step =
        |pair: &[Vec<f32>]| pair[0].iter().zip(&pair[1]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    frames.windows(2).map(step).fold(0.0, f32::max)
}

#[test]
fn scripts_play_smoothly_and_the_same_for_the_same_seed() {
    let file = file();
    let script = "move swing0_0; idle 2s; transition label2; idle 3s around swing2_0, swing2_1@0.3\n\
                  play swing2_1; play swing0_1[0.2..1.0]; move swing1_0 in 1s straight";
    let (frames, labels, strain) = act(&file, 5, script);
    assert!(frames.iter().flatten().all(|value| value.is_finite()));
    assert!(strain <= 1.01, "the particle keeps to its path: {strain}");
    let first = |label: &str| labels.iter().position(|other| other == label).expect(label);
    assert!(first("label0") < first("label1") && first("label1") < first("label2"), "over the third model");
    assert_eq!(labels.last().map(String::as_str), Some("label1"));
    let own = (0..3).map(|label| largest_step(&clip(label, 0.2, 30))).fold(0.0, f32::max);
    let step = largest_step(&frames);
    assert!(step < 2.0 * own, "no jump: {step} against {own} in the clips");
    assert_eq!(act(&file, 5, script).0, frames, "the same seed");
    assert_ne!(act(&file, 6, script).0, frames, "another seed");
}

#[test]
fn every_label_is_reached_from_every_training_frame() {
    let file = file();
    for (from, model) in file.models.iter().enumerate() {
        for frame in (0..model.space.len()).step_by(7) {
            for to in 0..3 {
                let mut synthesis =
                    Synthesis::new(&file, Some(&model.label), SynthesisConfig::default()).expect("it");
                synthesis.anchor = model.space.point(frame).to_vec();
                synthesis.particle = Particle::new(synthesis.anchor.clone());
                let label = file.models[to].label.clone();
                synthesis.command(Command::Transition { label: label.clone() }).expect("a label");
                let mut count = 0;
                while synthesis.is_busy() {
                    synthesis.next_frame().expect("a way");
                    count += 1;
                    assert!(count < 1000, "from {from}, frame {frame}, to {to}");
                }
                assert_eq!(synthesis.label(), label);
            }
        }
    }
}

#[test]
fn a_played_clip_is_the_clip() {
    let file = file();
    let (frames, _, _) = act(&file, 2, "play swing0_0");
    let truth = clip(0, 0.0, 36);
    // After the walk to its start: the last 37 frames, but for the one in which nothing is left to do.
    let played = &frames[frames.len() - 38..frames.len() - 1];
    let miss =
        |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let worst = played.iter().zip(&truth).skip(13).map(miss).fold(0.0, f32::max);
    assert!(worst < 0.15, "{worst} of a swing of 2");
}

#[test]
fn it_idles_for_ever_without_straying() {
    let file = file();
    let mut synthesis = Synthesis::new(&file, Some("label1"), SynthesisConfig::default()).expect("a label");
    let mut frames = Vec::new();
    for _ in 0..3000 {
        frames.push(synthesis.next_frame().expect("idles"));
        let (distance, _) = synthesis.strain();
        assert!(distance <= 1.01, "{distance}");
    }
    let values = |control: usize| frames.iter().map(move |frame| frame[control]);
    let spread = values(1).fold(f32::MIN, f32::max) - values(1).fold(f32::MAX, f32::min);
    assert!(spread > 0.005 && spread < 1.0, "it moves, a little: {spread}");
}

#[test]
fn what_cannot_be_done_is_said_at_once() {
    let mut file = file();
    let mut synthesis = Synthesis::new(&file, None, SynthesisConfig::default()).expect("a label");
    for (script, want) in [
        ("transition sad", "there is no label 'sad'; there are label0, label1, label2"),
        (
            "play swing9",
            "there is no clip 'swing9'; there are swing0_0, swing0_1, swing1_0, swing1_1, swing2_0, swing2_1",
        ),
        ("move swing0_0@9s", "the clip 'swing0_0' lasts 1.50 s, which 9 s is outside of"),
    ] {
        let line = parse(script).expect("a script").remove(0);
        assert_eq!(synthesis.command(line.command).expect_err(script).to_string(), want);
    }
    assert!(!synthesis.is_busy());
    assert!(Synthesis::new(&file, Some("sad"), SynthesisConfig::default()).is_err());
    file.bridges.clear();
    let mut synthesis = Synthesis::new(&file, None, SynthesisConfig::default()).expect("a label");
    synthesis.command(Command::Transition { label: "label2".into() }).expect("it is a label");
    let error = synthesis.next_frame().expect_err("no bridges");
    assert_eq!(error.to_string(), "no bridge leads from 'label0' to 'label2'");
    file.models[1].linear.mean.pop();
    assert!(file.problem().is_some_and(|problem| problem.contains("label1")));
}
