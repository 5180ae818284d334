//! The benchmarks: each runs commands of the optimised program, as anybody could type them, and the races of
//! `crates/bench`, and prints what they print. `docs/benchmarks.md` keeps the figures.

use crate::shell::answer;
pub use crate::shell::{races, understudy};
use crate::{bench_body, bench_face, bench_wild};
use anyhow::{Result, bail, ensure};

/// Names and what stands behind them, for messages.
const NAMES: &str = "sampling, inverse, body, face, diff, skin, ik, weights, motion, capture, capture landmarks, auto, wasm, python, wild, race, eval, ablations, studio";

/// Runs the benchmark that the first word names; more words go to it.
pub fn run(rest: &[&str]) -> Result<()> {
    match rest.split_first() {
        Some((&"capture", ["landmarks", more @ ..])) => races(&[&["landmarks"], more].concat()),
        Some((
            name @ (&"sampling" | &"inverse" | &"diff" | &"auto" | &"race" | &"eval" | &"ablations"
            | &"weights" | &"motion" | &"capture"),
            more,
        )) => races(&[&[*name], more].concat()),
        Some((&"body", more)) => bench_body::run(more),
        Some((&"face", more)) => bench_face::run(more),
        Some((&"skin", more)) => skin(more),
        Some((&"wasm", more)) => crate::web::bench(more),
        Some((&"python", more)) => crate::python::bench(more),
        Some((&"studio", more)) => crate::studio::bench(more),
        Some((&"ik", more)) => ik(more),
        Some((&"wild", more)) => bench_wild::run_wild(more),
        Some((other, _)) => bail!("there is no benchmark '{other}'; there are: {NAMES}"),
        None => bail!("which benchmark? There are: {NAMES}"),
    }
}

/// Skin twins of Mira and of ict (where its data is present): learned from 4,000 poses (`--poses N`) in minutes, weighed on
/// clips that they have not seen, and raced against onnxruntime and PyTorch; with `--sweep` there is no single one to race. Words
/// that are no characters go to the table.
fn skin(words: &[&str]) -> Result<()> {
    const RIGS: [&str; 3] = ["mira", "ict", "aura"];
    let chosen: Vec<&str> = RIGS.into_iter().filter(|rig| words.contains(rig)).collect();
    let there = |rig: &&str| *rig != "ict" || answer(&["info", rig]).is_ok();
    let more: Vec<&str> = words.iter().copied().filter(|word| !RIGS.contains(word)).collect();
    let rigs = if chosen.is_empty() { RIGS.into_iter().filter(there).collect() } else { chosen };
    for rig in rigs {
        races(&[&["skin", rig], &more[..]].concat())?;
        if let Some(twin) = skin_twin(rig, &more) {
            races(&["race", &twin])?;
        }
    }
    Ok(())
}

/// The twin that `bench skin` makes with these options, where it makes one alone.
fn skin_twin(rig: &str, options: &[&str]) -> Option<String> {
    let value = |name: &str, usual: &str| {
        let joined = options.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let place = options.iter().position(|word| *word == name);
        let apart = place.and_then(|place| options.get(place + 1)).copied();
        joined.or(apart).unwrap_or(usual).to_owned()
    };
    if rig == "aura" || options.contains(&"--sweep") {
        return None;
    }
    let (folder, poses) = (value("--folder", "target/bench"), value("--poses", "4000"));
    Some(format!("{folder}/skin-{rig}-{poses}/skin.twin"))
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
    use super::{check_words, skin_twin};

    #[test]
    fn the_race_is_of_the_twin_that_was_learned() {
        let twin = |options: &[&str]| skin_twin("mira", options);
        assert_eq!(twin(&[]).as_deref(), Some("target/bench/skin-mira-4000/skin.twin"));
        assert_eq!(twin(&["--poses", "1500"]).as_deref(), Some("target/bench/skin-mira-1500/skin.twin"));
        assert_eq!(twin(&["--folder=x", "--poses=9"]).as_deref(), Some("x/skin-mira-9/skin.twin"));
        assert_eq!(twin(&["--sweep"]), None);
        assert_eq!(skin_twin("aura", &[]), None);
    }

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
