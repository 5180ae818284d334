//! `cargo xtask bench face`: face twins at full size, and skinning decomposition beside reference results.
//! Every step is a command of the program; words choose characters and steps. Start at [`run`].

use crate::bench::{races, understudy};
use crate::shell::{answer, root};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Characters, the second where its data is present.
const RIGS: [&str; 2] = ["mira", "ict"];
/// Steps in the order in which they build on each other; the last is about no character.
const STEPS: [&str; 8] = ["data", "learn", "paper", "dense", "eval", "bench", "transfer", "lbs"];
/// The clip that no twin ever sees, for validation: settings were chosen by it.
const UNSEEN: &str = "roar";
/// The clip that no setting is chosen by either; no sampling takes it unless it is named.
const TEST: &str = "test";
/// Clips whose other frames were trained on: for lips and lids.
const SEEN: [&str; 2] = ["blink", "talk"];
/// Bones, and the error that the reference results in the same folder leave (eight influences).
const REFERENCE: [(&str, f64); 3] = [("5", 0.0267), ("10", 0.0155), ("20", 0.0099)];

/// What the words ask for.
struct Wanted<'a> {
    rigs: Vec<&'a str>,
    steps: Vec<&'a str>,
    minutes: &'a str,
    /// Most steps of the coarse and of the refinement networks, in place of minutes.
    learning_steps: Option<&'a str>,
    poses: &'a str,
}

impl<'a> Wanted<'a> {
    fn parse(words: &[&'a str]) -> Result<Self> {
        let (minutes, poses) = ("60", "25000");
        let mut out = Self { rigs: vec![], steps: vec![], minutes, learning_steps: None, poses };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "--minutes" => out.minutes = words.next().context("--minutes wants a number")?,
                "--steps" => out.learning_steps = Some(words.next().context("--steps wants a number")?),
                "--poses" => out.poses = words.next().context("--poses wants a number")?,
                word if RIGS.contains(&word) => out.rigs.push(word),
                word if STEPS.contains(&word) => out.steps.push(word),
                other => bail!(
                    "'{other}' is neither a character ({}), a step ({}), --minutes N, --steps N nor --poses N",
                    RIGS.join(", "),
                    STEPS.join(", ")
                ),
            }
        }
        let only_lbs = out.steps == ["lbs"];
        if out.rigs.is_empty() && !only_lbs {
            // A character whose data is missing cannot even be described.
            let there = |rig: &&str| *rig == RIGS[0] || answer(&["info", rig]).is_ok();
            out.rigs = RIGS.into_iter().filter(there).collect();
        }
        if out.steps.is_empty() {
            out.steps = STEPS.to_vec();
        }
        Ok(out)
    }

    /// How long to learn: minutes, or so many steps of the coarse networks and, where there are any, as many of the
    /// refinement.
    fn budget(&self, refined: bool) -> Vec<&'a str> {
        match self.learning_steps {
            None => vec!["--minutes", self.minutes],
            Some(steps) if refined => vec!["--coarse-steps", steps, "--refinement-steps", steps],
            Some(steps) => vec!["--coarse-steps", steps],
        }
    }

    fn asks(&self, step: &str) -> bool {
        self.steps.contains(&step)
    }
}

/// 25,000 poses from clips × noise, with a tenth of every clip held out and two clips never seen, of which no setting is
/// chosen by the second; the twin, the paper's recipe and the dense baseline, an hour each (or as many steps); everything against everything on what was held out; the race against
/// onnxruntime and PyTorch; a mesh of another topology; and `learn lbs` on a sample of another program.
pub fn run(words: &[&str]) -> Result<()> {
    let wanted = Wanted::parse(words)?;
    for rig in &wanted.rigs {
        character(rig, &wanted)?;
    }
    if wanted.asks("lbs") {
        decomposition()?;
    }
    Ok(())
}

/// Share of controls that stray in mixed poses. The clips of ict, but for the one that is left out, hardly move a
/// third of its shapes: a twin that never saw them does not open its mouth in a sneer.
fn stray(rig: &str) -> &'static str {
    if rig == "ict" { "0.1" } else { "0.03" }
}

fn character(rig: &str, wanted: &Wanted) -> Result<()> {
    let at = |name: &str| format!("target/bench/face-{rig}-{}/{name}", wanted.poses);
    let (train, held_out, unseen) = (&at("train"), &at("held-out"), &at(UNSEEN));
    let test = &at(TEST);
    let (twin, dense, paper) = (&at("face.twin"), &at("dense.twin"), &at("paper.twin"));
    let seen = SEEN.map(|clip| (clip, at(clip)));
    if wanted.asks("data") {
        let left_out = ["--exclude", UNSEEN, "--hold-out", "0.1"];
        let noise = ["sample", rig, "-o", train, "--method", "noise", "--poses", wanted.poses];
        understudy(&[&noise[..], &["--stray", stray(rig)], &left_out].concat())?;
        understudy(&[&["sample", rig, "-o", held_out, "--held-out"], &left_out[..]].concat())?;
        understudy(&["sample", rig, "-o", unseen, "--clip", UNSEEN])?;
        understudy(&["sample", rig, "-o", test, "--clip", TEST])?;
        for (clip, folder) in &seen {
            understudy(&["sample", rig, "-o", folder, "--clip", clip])?;
        }
    }
    if wanted.asks("learn") {
        understudy(&[&["learn", "face", train, "-o", twin], &wanted.budget(true)[..]].concat())?;
    }
    if wanted.asks("paper") {
        understudy(&[&["learn", "face", train, "-o", paper, "--paper"], &wanted.budget(true)[..]].concat())?;
    }
    if wanted.asks("dense") {
        understudy(&[&["learn", "face", train, "-o", dense, "--dense"], &wanted.budget(false)[..]].concat())?;
    }
    if wanted.asks("eval") {
        // What was not learned is left out.
        let rivals = [("paper's recipe", paper), ("dense", dense)].into_iter();
        let rivals = rivals.filter(|(_, file)| root().join(file).is_file());
        let rivals: Vec<String> = rivals.map(|(name, file)| format!("{name}={file}")).collect();
        let against: Vec<&str> = rivals.iter().flat_map(|rival| ["--against", rival]).collect();
        let report = at("report");
        let baselines = ["--train", train, "--baselines", "all", "--report", &report];
        understudy(&[&["eval", twin, held_out, unseen, test], &against[..], &baselines[..]].concat())?;
        let [blink, talk] = seen.each_ref().map(|(_, folder)| folder.as_str());
        understudy(&["eval", twin, blink, talk, unseen])?;
    }
    if wanted.asks("bench") {
        races(&["race", twin, "--training"])?;
    }
    if wanted.asks("transfer") {
        let mesh = at("remeshed.obj");
        let moved = at("remeshed.twin");
        understudy(&["convert", rig, "-o", &mesh, "--remesh"])?;
        understudy(&["transfer", twin, &mesh, "-o", &moved, "--check", held_out, "--check", unseen])?;
    }
    Ok(())
}

/// Dem Bones' own sample, with as many bones as its authors give results for.
fn decomposition() -> Result<()> {
    let Some(sample) = sample_file() else {
        println!("lbs: dem-bones/Bone_Anim.npz is not among the shared data: skipped");
        return Ok(());
    };
    let folder = root().join("target/bench");
    fs::create_dir_all(&folder).context("cannot make target/bench")?;
    let sample = sample.display().to_string();
    println!(
        "bones  influences   RMSE     reference  times  played with four  iterations  seconds  same bytes on one thread"
    );
    for ((bones, reference), influences) in REFERENCE.into_iter().flat_map(|row| [(row, "4"), (row, "8")]) {
        let fit = |threads: &[&str]| -> Result<(serde_json::Value, Vec<u8>)> {
            let output = folder.join(format!("bone-{bones}-{influences}{}.glb", threads.join("")));
            let file = output.display().to_string();
            let words = [
                "learn",
                "lbs",
                &sample,
                "-o",
                &file,
                "--bones",
                bones,
                "--influences",
                influences,
                "--json",
            ];
            let report = serde_json::from_str(&answer(&[&words[..], threads].concat())?)?;
            Ok((report, fs::read(&output).with_context(|| format!("cannot read {file}"))?))
        };
        let (report, first) = fit(&[])?;
        let (_, second) = fit(&["--threads", "1"])?;
        let number = |key: &str| report[key].as_f64().with_context(|| format!("no '{key}' in the report"));
        let error = number("rmse_cm")?;
        println!(
            "{bones:>5}  {influences:>10}   {error:.4}   {reference:.4}     {:.2}   {:>16.4}  {:>10}  {:>7.1}  {}",
            error / reference,
            report["four_influences_rmse_cm"].as_f64().unwrap_or(error),
            number("iterations")?,
            number("seconds")?,
            if first == second { "yes" } else { "NO" }
        );
    }
    Ok(())
}

fn sample_file() -> Option<PathBuf> {
    let named = std::env::var_os("UNDERSTUDY_DATA").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| root().join("../shared/data"));
    let path = folder.join(Path::new("dem-bones/Bone_Anim.npz"));
    path.is_file().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_characters_and_steps() {
        let all = Wanted::parse(&["mira", "--minutes", "5"]).expect("good words");
        assert_eq!((all.rigs, all.minutes, all.steps.len()), (vec!["mira"], "5", STEPS.len()));
        let some = Wanted::parse(&["ict", "data", "eval", "--poses", "300"]).expect("good words");
        assert!(some.asks("eval") && !some.asks("learn") && some.poses == "300");
        assert!(Wanted::parse(&["lbs"]).expect("a step").rigs.is_empty());
        assert!(Wanted::parse(&["mira", "dance"]).is_err());
        assert!(Wanted::parse(&["mira", "--minutes"]).is_err());
        let steps = Wanted::parse(&["mira", "--steps", "3000"]).expect("good words");
        assert_eq!(steps.budget(true), ["--coarse-steps", "3000", "--refinement-steps", "3000"]);
        assert_eq!(steps.budget(false), ["--coarse-steps", "3000"]);
    }
}
