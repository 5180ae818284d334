//! What is learned, played: the run time against the f64 reference, and its synthesis on three small labels of a rig with
//! four controls.

use crate::bridge::{BridgeConfig, find, join};
use crate::{LatentConfig, LatentSpace, label, linear, matrix::squared_distance, statistics};
use std::sync::Arc;
use understudy_core::{ControlSpec, ControlSpecs, Random};
use understudy_runtime::motion::{
    LatentPoint, Model, Motion, MotionPlayer, PlayConfig, PoseBasis, Workspace, parse_script,
};

const RATE: f32 = 24.0;

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

fn learned(which: usize, inducing: Option<usize>) -> (LatentSpace, Model, Vec<Vec<f32>>) {
    let clips: Vec<Vec<Vec<f32>>> = vec![clip(which, 0.0, 36), clip(which, 0.2, 30)];
    let frames: Vec<Vec<f32>> = clips.iter().flatten().cloned().collect();
    let (mean, deviation) = statistics(&frames, &[6.0; 4]);
    let scale: Vec<f64> = deviation.iter().map(|d| if *d > 0.0 { 1.0 } else { 0.0 }).collect();
    let (parts, _) = linear::fit(&frames, &mean, &scale, 0.999).expect("it moves");
    let outputs = parts.components.len() / parts.moving.len();
    let basis = PoseBasis::new(parts.clone(), 4, outputs).expect("sound");
    let outputs: Vec<Vec<f64>> =
        frames.iter().map(|frame| basis.encode(frame).into_iter().map(f64::from).collect()).collect();
    let lengths: Vec<usize> = clips.iter().map(Vec::len).collect();
    let config = LatentConfig { iterations: 60, inducing, ..LatentConfig::default() };
    let (space, _) = LatentSpace::learn(&outputs, &lengths, &config, |_, _| true).expect("learns");
    let named: Vec<(String, usize)> =
        lengths.iter().enumerate().map(|(index, n)| (format!("swing{which}_{index}"), *n)).collect();
    let model = label(&format!("label{which}"), parts, &space, &named, 4).expect("playable");
    (space, model, frames)
}

fn motion() -> Motion {
    let models: Vec<Model> = (0..3).map(|which| learned(which, None).1).collect();
    // Label 0 and 2 are joined over 1 alone.
    let distance = |a: &[f32], b: &[f32]| -> Result<f32, ()> {
        Ok(10.0 * a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt())
    };
    let found = [(0, 1), (1, 2)]
        .map(|pair| find(&models, pair, &BridgeConfig::default(), distance).expect("no rig can fail"));
    let (bridges, _) = join(3, found.to_vec());
    let specs = ["a", "b", "c", "d"].map(|name| ControlSpec::number(name, -3.0, 3.0, 0.0));
    let specs = ControlSpecs::new(specs.to_vec()).expect("sound");
    let parts = models.iter().map(Model::parts).collect();
    Motion::new("test".into(), RATE, specs, parts, bridges).expect("sound")
}

fn act(motion: &Arc<Motion>, seed: u64, script: &str) -> (Vec<Vec<f32>>, Vec<String>, f64) {
    let config = PlayConfig { seed, ..PlayConfig::default() };
    let mut player = MotionPlayer::new(motion.clone(), None, config).expect("a label");
    player.script(script).expect(script);
    let (mut frames, mut labels, mut strain) = (Vec::new(), Vec::new(), 0.0f64);
    while player.is_busy() {
        player.step();
        frames.push(player.controls().to_vec());
        labels.push(player.label().to_owned());
        strain = strain.max(player.situation().distance);
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
fn the_run_time_agrees_with_the_reference_in_double_precision() {
    for inducing in [None, Some(25)] {
        let (space, model, frames) = learned(1, inducing);
        let mut random = Random::new(3);
        let mut work = Workspace::of(model.space());
        for trial in 0..60 {
            let mut x = space.point(trial % space.len()).to_vec();
            x.iter_mut().for_each(|v| *v += 2.0 * model.radius() * random.normal());
            let point = LatentPoint::new(&x);
            let (want, own) = (space.mean(&x), model.space().mean(point, &mut work).to_vec());
            for (want, own) in want.iter().zip(&own) {
                // Weights are up to 1e3, summed over 70 frames in single precision.
                assert!((want - f64::from(*own)).abs() < 2e-3, "{want} {own}");
            }
            let (want, slope) = space.density(&x);
            let (own, climbs) = model.space().density(point, &mut work);
            // Two per cent of the variance are left out, with the rounding of single precision on top.
            let outputs = space.outputs() as f64;
            assert!((want - own).abs() < 0.5 * outputs * 0.04, "{want} {own}");
            let size = slope.iter().map(|v| v * v).sum::<f64>().sqrt();
            let apart = squared_distance(&slope, climbs.coordinates(slope.len())).sqrt();
            assert!(apart < 0.15 * size + 0.5, "{apart} of {size}");
        }
        // A training pose is found again, at least as well as its own point has it.
        for frame in (0..frames.len()).step_by(9) {
            let y = model.basis().encode(&frames[frame]);
            let (x, miss) = model.space().project(&y, &mut work);
            let own = super::pose_distance(model.space().mean(model.space().point(frame), &mut work), &y);
            assert!(miss <= own + 1e-4, "frame {frame}: {miss} against {own}");
            assert!((miss - super::pose_distance(model.space().mean(x, &mut work), &y)).abs() < 1e-4);
        }
        assert!(model.space().rank() < space.len(), "few directions make the density");
    }
}

#[test]
fn scripts_play_smoothly_and_the_same_for_the_same_seed() {
    let motion = motion();
    let bytes = motion.to_bytes().expect("small");
    let motion = Arc::new(Motion::parse(&bytes).expect("its own file"));
    assert_eq!(motion.to_bytes().expect("small"), bytes, "the same motion, the same bytes");
    let script = "move swing0_0; idle 2s; transition label2; idle 3s around swing2_0, swing2_1@0.3 dwell 0.5s\n\
                  play swing2_1; mix 2s swing0_1 50%, swing1_0@0.4s 30%; play swing0_1[0.2..1.0]\n\
                  move swing1_0 in 1s straight";
    let (frames, labels, strain) = act(&motion, 5, script);
    assert!(frames.iter().flatten().all(|value| value.is_finite()));
    assert!(strain <= 1.01, "the particle keeps to its path: {strain}");
    let first = |label: &str| labels.iter().position(|other| other == label).expect(label);
    assert!(first("label0") < first("label1") && first("label1") < first("label2"), "over the third model");
    assert_eq!(labels.last().map(String::as_str), Some("label1"));
    let own = (0..3).map(|label| largest_step(&clip(label, 0.2, 30))).fold(0.0, f32::max);
    let step = largest_step(&frames);
    assert!(step < 2.0 * own, "no jump: {step} against {own} in the clips");
    assert_eq!(act(&motion, 5, script).0, frames, "the same seed");
    assert_ne!(act(&motion, 6, script).0, frames, "another seed");
}

#[test]
fn every_label_is_reached_from_every_training_frame() {
    let motion = Arc::new(motion());
    let mut player = MotionPlayer::new(motion.clone(), None, PlayConfig::default()).expect("it");
    for (from, model) in motion.models().iter().enumerate() {
        for frame in 0..model.space().len() {
            for to in motion.models() {
                player.place(model.label(), model.space().point(frame)).expect("a label");
                player.script(&format!("transition {}", to.label())).expect("a way");
                let mut count = 0;
                while player.is_busy() {
                    player.step();
                    count += 1;
                    assert!(count < 1000, "from {from}, frame {frame}, to {}", to.label());
                }
                assert_eq!(player.label(), to.label());
            }
        }
    }
}

#[test]
fn a_played_clip_is_the_clip() {
    let motion = Arc::new(motion());
    let (frames, _, _) = act(&motion, 2, "play swing0_0");
    let truth = clip(0, 0.0, 36);
    let played = &frames[frames.len() - 37..];
    let miss =
        |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let worst = played.iter().zip(&truth).skip(13).map(miss).fold(0.0, f32::max);
    assert!(worst < 0.15, "{worst} of a swing of 2");
}

#[test]
fn it_idles_for_ever_without_straying_and_listens() {
    let motion = Arc::new(motion());
    let mut player = MotionPlayer::new(motion, Some("label1"), PlayConfig::default()).expect("a label");
    let mut frames = Vec::new();
    for _ in 0..3000 {
        player.step();
        frames.push(player.controls().to_vec());
        let distance = player.situation().distance;
        assert!(distance <= 1.01, "{distance}");
    }
    let values = |control: usize| frames.iter().map(move |frame| frame[control]);
    let spread = values(1).fold(f32::MIN, f32::max) - values(1).fold(f32::MAX, f32::min);
    assert!(spread > 0.005 && spread < 1.0, "it moves, a little: {spread}");
    player.send(r#"{"command":"idle","around":["swing1_0","swing1_1"],"dwell":60}"#).expect("a command");
    (0..200).for_each(|_| player.step());
    assert!(player.is_busy());
    player.send(r#"{"command":"transition","label":"label0"}"#).expect("a command");
    let mut count = 0;
    while player.is_busy() {
        player.step();
        count += 1;
    }
    assert!(player.label() == "label0" && count < 200, "an endless idle gives way: {count} frames");
    player.script("idle 100s; transition label2").expect("a script");
    (0..5).for_each(|_| player.step());
    player.send(r#"{"command":"stop"}"#).expect("a command");
    assert!(!player.is_busy());
    player.script("mix 60s swing2_0 100%").expect("a script");
    (0..40).for_each(|_| player.step());
    assert!(player.controls()[2] > 1.0, "a mix of one is that one: {:?}", player.controls());
    player.send(r#"{"command":"stop"}"#).expect("a command");
    (0..14).for_each(|_| player.step());
    assert!(!player.is_busy() && player.controls()[2] < 1.0, "a stopped mix fades: {:?}", player.controls());
}

#[test]
fn what_cannot_be_done_is_said_at_once() {
    let whole = motion();
    let motion = Arc::new(whole.clone());
    let mut player = MotionPlayer::new(motion.clone(), None, PlayConfig::default()).expect("a label");
    for (script, want) in [
        ("transition sad", "line 1: there is no label 'sad'; there are label0, label1, label2"),
        (
            "idle 1s\nplay swing9",
            "line 2: there is no clip 'swing9'; there are swing0_0, swing0_1, swing1_0, swing1_1, swing2_0, swing2_1",
        ),
        ("move swing0_0@9s", "line 1: the clip 'swing0_0' lasts 1.50 s, which 9 s is outside of"),
        ("idle 2s around swing0_0, swing1_0", "line 1: 'swing0_0' and 'swing1_0' are of two labels"),
    ] {
        assert_eq!(player.script(script).expect_err(script).to_string(), want);
    }
    assert!(!player.is_busy(), "a script with a mistake does nothing");
    assert!(MotionPlayer::new(motion, Some("sad"), PlayConfig::default()).is_err());
    let parts = whole.models().iter().map(Model::parts).collect();
    let alone = Motion::new("test".into(), RATE, whole.controls().clone(), parts, Vec::new()).expect("sound");
    let mut player = MotionPlayer::new(alone.shared(), None, PlayConfig::default()).expect("a label");
    let line = parse_script("transition label2").expect("a script").remove(0);
    let error = player.command(line.command).expect_err("no bridges");
    assert_eq!(error.to_string(), "no bridge leads from 'label0' to 'label2'");
}

/// Writes the small file that the run time's own tests and its first example play; not part of any run.
#[test]
#[ignore = "makes crates/runtime/tests/golden/sway.motion"]
fn golden() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime/tests/golden/sway.motion");
    let whole = motion();
    let mut parts: Vec<_> = whole.models().iter().map(Model::parts).collect();
    for (parts, label) in parts.iter_mut().zip(["sway", "nod", "turn"]) {
        parts.clips.iter_mut().enumerate().for_each(|(i, clip)| clip.name = format!("{label}_{i}"));
        parts.label = label.into();
    }
    let renamed = Motion::new("four".into(), RATE, whole.controls().clone(), parts, whole.bridges().to_vec());
    std::fs::write(file, renamed.expect("sound").to_bytes().expect("small")).expect("written");
}
