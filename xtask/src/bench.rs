//! The benchmarks: each runs commands of the optimised program, as anybody could type them, and the races of
//! `crates/bench`, and prints what they print. `docs/benchmarks.md` keeps the figures.

use crate::shell::answer;
pub use crate::shell::{races, understudy};
use crate::{bench_face, bench_wild};
use anyhow::{Result, bail, ensure};

/// Names and what stands behind them, for messages.
const NAMES: &str = "sampling, inverse, body, face, diff, skin, ik, weights, motion, capture, capture landmarks, auto, wasm, wild, race, eval, ablations, studio";

/// Runs the benchmark that the first word names; more words go to it.
pub fn run(rest: &[&str]) -> Result<()> {
    match rest.split_first() {
        Some((&"capture", ["landmarks", more @ ..])) => races(&[&["landmarks"], more].concat()),
        Some((
            name @ (&"sampling" | &"inverse" | &"diff" | &"auto" | &"race" | &"eval" | &"ablations"
            | &"weights" | &"motion" | &"capture"),
            more,
        )) => races(&[&[*name], more].concat()),
        Some((&"body", more)) => body(more),
        Some((&"face", more)) => bench_face::run(more),
        Some((&"skin", more)) => skin(more),
        Some((&"wasm", more)) => crate::web::bench(more),
        Some((&"studio", more)) => crate::studio::bench(more),
        Some((&"ik", more)) => ik(more),
        Some((&"wild", more)) => bench_wild::run_wild(more),
        Some((other, _)) => bail!("there is no benchmark '{other}'; there are: {NAMES}"),
        None => bail!("which benchmark? There are: {NAMES}"),
    }
}

/// Body twins at full size: 10,000 poses of Rook and of the human (where its data is present), learned,
/// weighed against every baseline on clips that they were not trained on (the last of them, which no setting is
/// chosen by, is the test; the others are for validation), and raced against onnxruntime and
/// PyTorch. Names of characters as words choose among them.
fn body(words: &[&str]) -> Result<()> {
    let rigs = if words.is_empty() { &["rook", "human"] } else { words };
    for rig in rigs {
        let at = |name: &str| format!("target/bench/{rig}{name}");
        let (data, twin) = (at(""), at(".twin"));
        understudy(&["sample", rig, "-o", &data, "--poses", "10000", "--method", "sparse"])?;
        let clips = ["walk", "reach", "kick", "test"].map(|clip| (clip, at(&format!("-{clip}"))));
        for (clip, folder) in &clips {
            understudy(&["sample", rig, "-o", folder, "--clip", clip])?;
        }
        understudy(&["learn", "body", &data, "-o", &twin])?;
        let [walk, reach, kick, test] = clips.each_ref().map(|(_, folder)| folder.as_str());
        let report = at("-report");
        understudy(&[
            "eval",
            &twin,
            walk,
            reach,
            kick,
            test,
            "--train",
            &data,
            "--baselines",
            "all",
            "--report",
            &report,
        ])?;
        races(&["race", &twin, "--training"])?;
    }
    Ok(())
}

/// Skin twins of Mira and of ict (where its data is present): learned from 4,000 poses in minutes, weighed on clips that
/// they have not seen, and raced against onnxruntime and PyTorch. Words go to the table.
fn skin(words: &[&str]) -> Result<()> {
    const RIGS: [&str; 3] = ["mira", "ict", "aura"];
    let chosen: Vec<&str> = RIGS.into_iter().filter(|rig| words.contains(rig)).collect();
    let there = |rig: &&str| *rig != "ict" || answer(&["info", rig]).is_ok();
    let rigs = if chosen.is_empty() { RIGS.into_iter().filter(there).collect() } else { chosen };
    let more: Vec<&str> = words.iter().copied().filter(|word| !rigs.contains(word)).collect();
    for rig in rigs {
        races(&[&["skin", rig], &more[..]].concat())?;
        if more.is_empty() && rig != "aura" {
            races(&["race", &format!("target/bench/skin-{rig}-4000/skin.twin")])?;
        }
    }
    Ok(())
}

/// Posing by hand: limbs, then faces that follow points, of Mira and of ict (where its data is present). A face twin and its
/// dense rival are learned in minutes, both learn to follow points, and are weighed on poses that were held out and on
/// dragged points. `--poses N`, `--minutes M` (of each twin) and `--steps S` (of following) change the size, `--diff` adds a
/// differential twin; names of characters choose among them.
fn ik(words: &[&str]) -> Result<()> {
    const RIGS: [&str; 2] = ["mira", "ict"];
    let option = |name: &str, usual: &'static str| -> String {
        let place = words.iter().position(|word| *word == name);
        place.and_then(|place| words.get(place + 1)).map_or(usual.into(), |value| (*value).into())
    };
    let (poses, minutes, steps) =
        (option("--poses", "8000"), option("--minutes", "10"), option("--steps", "6000"));
    check_words(words, &RIGS, &["--poses", "--minutes", "--steps"], &["--diff"])?;
    let chosen: Vec<&str> = RIGS.into_iter().filter(|rig| words.contains(rig)).collect();
    let there = |rig: &&str| *rig != "ict" || answer(&["info", rig]).is_ok();
    let rigs = if chosen.is_empty() { RIGS.into_iter().filter(there).collect() } else { chosen };
    for rig in rigs {
        let at = |name: &str| format!("target/bench/ik-{rig}-{poses}/{name}");
        let (train, held, roar) = (at("train"), at("held-out"), at("roar"));
        let (twin, dense) = (at("face.twin"), at("dense.twin"));
        let left_out = ["--exclude", "roar", "--hold-out", "0.1"];
        let stray = if rig == "ict" { "0.1" } else { "0.03" };
        let noise = ["sample", rig, "-o", &train, "--method", "noise", "--poses", &poses, "--stray", stray];
        understudy(&[&noise[..], &left_out].concat())?;
        understudy(&[&["sample", rig, "-o", &held, "--held-out"], &left_out[..]].concat())?;
        understudy(&["sample", rig, "-o", &roar, "--clip", "roar"])?;
        understudy(&["learn", "face", &train, "-o", &twin, "--minutes", &minutes])?;
        understudy(&["learn", "face", &train, "-o", &dense, "--dense", "--minutes", &minutes])?;
        let (follows, dense_follows) = (at("follows.twin"), at("dense-follows.twin"));
        understudy(&["learn", "ik", &twin, &train, "-o", &follows, "--steps", &steps])?;
        understudy(&["learn", "ik", &dense, &train, "-o", &dense_follows, "--steps", &steps])?;
        races(&["ik", &follows, "--data", &held, "--data", &roar, "--dense", &dense_follows])?;
        if words.contains(&"--diff") {
            let (twin, follows) = (at("diff.twin"), at("diff-follows.twin"));
            // Points need derivatives by the controls: without a skin, whose bones would stand between.
            understudy(&["learn", "diff", &train, "-o", &twin, "--skin", "none"])?;
            understudy(&["learn", "ik", &twin, &train, "-o", &follows, "--steps", &steps])?;
            races(&["ik", &follows, "--data", &held, "--data", &roar])?;
        }
    }
    Ok(())
}

/// Only these names, these options with a number behind them, and these flags: a slip of the finger is no run of an hour.
fn check_words(words: &[&str], names: &[&str], numbered: &[&str], flags: &[&str]) -> Result<()> {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if numbered.contains(word) {
            let value = rest.next().copied().unwrap_or_default();
            ensure!(
                value.parse::<f64>().is_ok_and(|x| x > 0.0),
                "{word}: '{value}' is not a number above zero"
            );
        } else if !names.contains(word) && !flags.contains(word) {
            bail!("'{word}' is none of {}", [names, numbered, flags].concat().join(", "));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_words;

    #[test]
    fn unknown_words_of_a_benchmark_are_refused() {
        let check = |words: &[&str]| check_words(words, &["mira", "ict"], &["--poses"], &["--diff"]);
        assert!(check(&["mira", "--poses", "40", "--diff"]).is_ok() && check(&[]).is_ok());
        for words in [&["mirra"][..], &["--pose", "40"], &["--poses"], &["--poses", "ict"], &["--poses", "0"]]
        {
            assert!(check(words).is_err(), "{words:?}");
        }
    }
}
