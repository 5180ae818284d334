//! `cargo xtask bench wild`: rigs as they come, slow and in another program. Blender files made by `tools/blender-rigs` are
//! sampled, learned and weighed against baselines, and their own time per pose stands beside the twins'. What is there
//! from an earlier run stays: a benchmark that was interrupted goes on.

use crate::shell::{answer, root, run, understudy};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A rig, how it is sampled and which twins are learned of it.
struct Wild {
    name: &'static str,
    /// More words of `sample`.
    sampling: &'static [&'static str],
    /// What an animator keys, where that is not all: tweaks, pivots and roots of limbs stay.
    controls: &'static [&'static str],
    /// Kept out of training.
    clip: &'static str,
    kinds: &'static [&'static str],
    baselines: &'static str,
}

const RIGS: [Wild; 3] = [
    Wild {
        name: "human",
        sampling: &["--method", "sparse"],
        controls: &[
            "root",
            "torso",
            "hips",
            "chest",
            "neck",
            "head",
            "jaw_master",
            "belly*",
            "shoulder.?",
            "hand_ik.?",
            "foot_ik.?",
            "foot_heel_ik.?",
            "toe_ik.?",
            "collection:Fingers",
        ],
        clip: "test",
        kinds: &["body", "diff"],
        baselines: "lbs,rigid,lbs4,rr2,wpsd10",
    },
    Wild {
        name: "face",
        sampling: &["--method", "sparse"],
        controls: &[],
        clip: "test",
        kinds: &["skin", "face", "diff"],
        baselines: "lbs4,lbs32,pca",
    },
    Wild {
        name: "many-bones",
        sampling: &["--method", "sparse"],
        controls: &[],
        clip: "test",
        kinds: &["body"],
        baselines: "rigid,lbs4",
    },
];

/// What the words say: names of rigs, `--poses N`, `--minutes N`.
struct Words<'a> {
    rigs: Vec<&'a str>,
    poses: &'a str,
    minutes: Option<&'a str>,
}

impl<'a> Words<'a> {
    fn parse(words: &[&'a str]) -> Result<Self> {
        let mut out = Self { rigs: Vec::new(), poses: "5000", minutes: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--poses" => out.poses = words.next().context("--poses wants a number")?,
                "--minutes" => out.minutes = Some(words.next().context("--minutes wants a number")?),
                name if RIGS.iter().any(|rig| rig.name == name) => out.rigs.push(name),
                other => bail!(
                    "'{other}' is no rig of this benchmark: human, face, many-bones, --poses N, --minutes N"
                ),
            }
        }
        Ok(out)
    }
}

/// Runs it for the rigs that are named, or for all.
pub fn run_wild(words: &[&str]) -> Result<()> {
    let words = Words::parse(words)?;
    for rig in RIGS.iter().filter(|rig| words.rigs.is_empty() || words.rigs.contains(&rig.name)) {
        one(rig, &words)?;
    }
    Ok(())
}

fn one(rig: &Wild, words: &Words<'_>) -> Result<()> {
    let folder = PathBuf::from("target/bench/wild");
    let at = |name: &str| folder.join(format!("{}{name}", rig.name)).to_string_lossy().into_owned();
    let blend = at(".blend");
    make(rig.name, &blend)?;
    let (data, random, test) = (at(&format!("-{}", words.poses)), at("-random"), at("-test"));
    let controls: Vec<&str> = rig.controls.iter().flat_map(|pattern| ["--controls", pattern]).collect();
    let sample = |output: &str, more: &[&str]| {
        let words = ["sample", &blend, "-o", output, "--workers", "2"];
        understudy(&[&words[..], &controls, more].concat())
    };
    sample(&data, &[rig.sampling, &["--poses", words.poses]].concat())?;
    sample(&random, &[rig.sampling, &["--poses", "200", "--seed", "1009"]].concat())?;
    // The clip's frames are walked, whatever the method of the others is.
    sample(&test, &["--clip", rig.clip])?;
    let mut rows = Vec::new();
    for kind in rig.kinds {
        let twin = at(&format!("-{}-{kind}.twin", words.poses));
        if !root().join(&twin).is_file() {
            let minutes: Vec<&str> = match words.minutes {
                Some(minutes) if *kind == "face" => vec!["--minutes", minutes],
                _ => Vec::new(),
            };
            understudy(&[&["learn", kind, &data, "-o", &twin], &minutes[..]].concat())?;
        }
        let train = ["--train", &data, "--baselines", rig.baselines];
        let weighed = answer(&[&["eval", &twin, &random, &test, "--json"], &train[..]].concat())?;
        let weighed: Value = serde_json::from_str(&weighed)?;
        let timed: Value = serde_json::from_str(&answer(&["bench", &twin, "--rig", &blend, "--json"])?)?;
        rows.extend(lines(kind, &weighed, &timed, rows.is_empty()));
    }
    println!("\n{}: {} poses, two workers", rig.name, words.poses);
    println!("| poses | method | mean mm | max mm | ms per pose | Blender ÷ it |\n|---|---|---|---|---|---|");
    rows.sort();
    rows.dedup();
    rows.iter().for_each(|row| println!("{row}"));
    Ok(())
}

/// Rows of the table: every twin beside Blender in the same run, and the baselines once.
fn lines(kind: &str, weighed: &Value, timed: &Value, with_baselines: bool) -> Vec<String> {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let rig_ms = number(&timed["rig_ms"]);
    let mut out = Vec::new();
    for (set, methods) in weighed["sets"].as_object().into_iter().flatten() {
        for (name, figures) in methods.as_object().into_iter().flatten() {
            let own = name.starts_with("twin");
            if !own && !with_baselines {
                continue;
            }
            let ms = match name.as_str() {
                "twin" => number(&timed["threads"]["1"]),
                _ if own => number(&timed["by_controls"]["pose_ms"]),
                _ => number(&figures["ms"]),
            };
            let name = if own { name.replacen("twin", &format!("{kind} twin"), 1) } else { name.clone() };
            out.push(format!(
                "| {set} | {name} | {:.3} | {:.2} | {ms:.3} | {:.1} |",
                number(&figures["mean_mm"]),
                number(&figures["max_mm"]),
                rig_ms / ms
            ));
        }
        if with_baselines {
            out.push(format!("| {set} | Blender | 0 | 0 | {rig_ms:.2} | 1 |"));
        }
    }
    out
}

/// Makes a rig's file by Blender's own Python, where it is not there yet.
fn make(name: &str, blend: &str) -> Result<()> {
    if root().join(blend).is_file() {
        return Ok(());
    }
    let script = Path::new("tools/blender-rigs/make.py");
    let mut command = match blender() {
        Some(program)
            if program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python")) =>
        {
            let mut command = Command::new(program);
            command.arg(script);
            command
        }
        Some(program) => {
            let mut command = Command::new(program);
            command.args(["--background", "--python"]).arg(script).arg("--");
            command
        }
        None => bail!("there is no Blender: `understudy info any.blend --install-blender` installs it"),
    };
    let data = std::env::var("UNDERSTUDY_DATA").unwrap_or_else(|_| "../shared/data".into());
    run(command.args([name, blend, "--data", &data]))
}

/// Blender as the program finds it: a variable, the path, or the wheel that it installs.
fn blender() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("UNDERSTUDY_BLENDER") {
        return Some(named.into());
    }
    if crate::shell::exists("blender") {
        return Some("blender".into());
    }
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache =
        named("UNDERSTUDY_CACHE").or_else(|| named("XDG_CACHE_HOME").map(|cache| cache.join("understudy")));
    let cache = cache.or_else(|| named("HOME").map(|home| home.join(".cache/understudy")))?;
    Some(cache.join("bpy-5.0.1/bin/python")).filter(|python| python.is_file())
}
