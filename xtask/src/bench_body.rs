//! `cargo xtask bench body`: body twins at full size beside the paper's own recipe and every baseline.
//! Every step is a command of the program; words choose characters and steps. Start at [`run`].

use crate::bench::{races, understudy};
use crate::shell::answer;
use anyhow::{Context, Result, bail};

/// Characters, the second where its data is present.
const RIGS: [&str; 2] = ["rook", "human"];
/// Steps in the order in which they build on each other.
const STEPS: [&str; 5] = ["data", "learn", "paper", "eval", "race"];
/// Clips for validation: settings were chosen by them.
const VALIDATION: [&str; 3] = ["walk", "reach", "kick"];
/// The clip that no setting is chosen by; no sampling takes it unless it is named.
const TEST: &str = "test";

/// What the words ask for.
struct Wanted<'a> {
    rigs: Vec<&'a str>,
    steps: Vec<&'a str>,
    poses: &'a str,
    /// Passes over the poses, of both twins; the usual number where it is not named.
    epochs: Option<&'a str>,
    baselines: &'a str,
}

impl<'a> Wanted<'a> {
    fn parse(words: &[&'a str]) -> Result<Self> {
        let mut out = Self { rigs: vec![], steps: vec![], poses: "10000", epochs: None, baselines: "all" };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "--poses" => out.poses = words.next().context("--poses wants a number")?,
                "--epochs" => out.epochs = Some(words.next().context("--epochs wants a number")?),
                "--baselines" => out.baselines = words.next().context("--baselines wants names")?,
                word if RIGS.contains(&word) => out.rigs.push(word),
                word if STEPS.contains(&word) => out.steps.push(word),
                other => bail!(
                    "'{other}' is neither a character ({}), a step ({}), --poses N, --epochs N nor --baselines NAMES",
                    RIGS.join(", "),
                    STEPS.join(", ")
                ),
            }
        }
        if out.rigs.is_empty() {
            // A character whose data is missing cannot even be described.
            let there = |rig: &&str| *rig == RIGS[0] || answer(&["info", rig]).is_ok();
            out.rigs = RIGS.into_iter().filter(there).collect();
        }
        if out.steps.is_empty() {
            out.steps = STEPS.to_vec();
        }
        Ok(out)
    }

    fn asks(&self, step: &str) -> bool {
        self.steps.contains(&step)
    }
}

/// Poses of Rook and of the human (where its data is present), learned by our recipe and by the paper's with as many
/// passes over the same poses, weighed against every baseline, fitted to training poses and to the test itself, on clips
/// that they were not trained on (the last of them, which no setting is chosen by, is the test; the others are for
/// validation), and raced against onnxruntime and PyTorch.
pub fn run(words: &[&str]) -> Result<()> {
    let wanted = Wanted::parse(words)?;
    wanted.rigs.iter().try_for_each(|rig| character(rig, &wanted))
}

fn character(rig: &str, wanted: &Wanted) -> Result<()> {
    let at = |name: &str| format!("target/bench/body-{rig}-{}/{name}", wanted.poses);
    let (train, twin, paper) = (&at("train"), &at("body.twin"), &at("paper.twin"));
    let clips: Vec<(&str, String)> =
        VALIDATION.into_iter().chain([TEST]).map(|clip| (clip, at(clip))).collect();
    if wanted.asks("data") {
        understudy(&["sample", rig, "-o", train, "--poses", wanted.poses, "--method", "sparse"])?;
        for (clip, folder) in &clips {
            understudy(&["sample", rig, "-o", folder, "--clip", clip])?;
        }
    }
    let epochs: Vec<&str> = wanted.epochs.iter().flat_map(|epochs| ["--epochs", *epochs]).collect();
    if wanted.asks("learn") {
        understudy(&[&["learn", "body", train, "-o", twin], &epochs[..]].concat())?;
    }
    if wanted.asks("paper") {
        understudy(&[&["learn", "body", train, "-o", paper, "--paper"], &epochs[..]].concat())?;
    }
    if wanted.asks("eval") {
        let against = format!("paper's recipe={paper}");
        let report = at("report");
        let mut words = vec!["eval", twin];
        words.extend(clips.iter().map(|(_, folder)| folder.as_str()));
        words.extend(["--against", &against, "--train", train, "--baselines", wanted.baselines]);
        words.extend(["--fit", "test", "--report", &report]);
        understudy(&words)?;
    }
    if wanted.asks("race") {
        races(&["race", twin, "--training"])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_characters_and_steps() {
        let all = Wanted::parse(&["rook", "--epochs", "60"]).expect("good words");
        assert_eq!((all.rigs, all.epochs, all.steps.len()), (vec!["rook"], Some("60"), STEPS.len()));
        let some = Wanted::parse(&["human", "paper", "eval", "--poses", "2000"]).expect("good words");
        assert!(some.asks("paper") && !some.asks("learn") && some.poses == "2000");
        assert!(Wanted::parse(&["rook", "dance"]).is_err());
        assert!(Wanted::parse(&["rook", "--poses"]).is_err());
    }
}
