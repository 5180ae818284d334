//! `cargo xtask bench wild`: rigs as they come, slow and in another program. Blender files made by `tools/blender-rigs` are
//! sampled, learned and weighed against baselines. One `eval` times Blender, all twins and all baselines, so that a ratio is
//! of one run; what the table must show is said beneath it. What is there from an earlier run stays, where its settings were
//! the same: a benchmark that was interrupted goes on.

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
    /// Kinds of twins, each with how many times as fast as Blender it must be. Baselines are those of the first.
    kinds: &'static [(&'static str, Option<f64>)],
    baselines: &'static str,
    /// Whether errors must keep to [`MOST_OF_SKINNING`] and below every baseline's largest.
    errors_count: bool,
}

/// Mean error of a twin by that of skinning with four influences.
const MOST_OF_SKINNING: f64 = 0.25;
/// What posing by controls alone may add, mm on average and ms.
const MOST_ADDED: [f64; 2] = [0.5, 0.2];

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
        kinds: &[("body", Some(100.0)), ("diff", Some(6.0))],
        baselines: "lbs,rigid,lbs4,rr2,wpsd10",
        errors_count: true,
    },
    Wild {
        name: "face",
        sampling: &["--method", "sparse"],
        controls: &[],
        clip: "test",
        // Of these only the differential twin has bones, which `lbs4` is a skin of.
        kinds: &[("diff", Some(2.5)), ("skin", Some(30.0)), ("face", Some(4.0))],
        baselines: "lbs4,lbs32,pca",
        errors_count: false,
    },
    Wild {
        name: "many-bones",
        sampling: &["--method", "sparse"],
        controls: &[],
        clip: "test",
        kinds: &[("body", None)],
        baselines: "rigid,lbs4",
        errors_count: false,
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
    let mut twins = Vec::new();
    for (kind, _) in rig.kinds {
        let minutes = words.minutes.map_or_else(String::new, |minutes| format!("-{minutes}min"));
        let twin = at(&format!("-{}{minutes}-{kind}.twin", words.poses));
        let minutes: Vec<&str> = words.minutes.map_or_else(Vec::new, |minutes| vec!["--minutes", minutes]);
        let learn = [&["learn", kind, &data, "-o", &twin], &minutes[..]].concat();
        // Other poses make another twin.
        learn_once(&twin, &learn, &[&controls, rig.sampling].concat())?;
        twins.push(twin);
    }
    let against: Vec<String> = rig.kinds.iter().zip(&twins).skip(1).map(other_twin).collect();
    let against: Vec<&str> = against.iter().flat_map(|other| ["--against", other]).collect();
    let usual = ["--train", &data, "--baselines", rig.baselines, "--rig", &blend, "--json"];
    let weigh = [&["eval", &twins[0], &random, &test], &usual[..], &against].concat();
    let weighed: Value = serde_json::from_str(&answer(&weigh)?)?;
    println!("\n{}: {} poses, two workers", rig.name, words.poses);
    table(rig, &weighed).iter().chain(&verdicts(rig, &weighed)).for_each(|line| println!("{line}"));
    let timed: Value = serde_json::from_str(&answer(&["bench", &twins[0], "--json"])?)?;
    if let Some(ms) = timed["by_controls"]["mechanism_ms"].as_f64() {
        println!("- controls → bones alone take {ms:.3} ms per pose (`bench`)");
    }
    Ok(())
}

/// `NAME=FILE` of a twin that stands beside the first.
fn other_twin(((kind, _), twin): (&(&str, Option<f64>), &String)) -> String {
    format!("{kind} twin={twin}")
}

/// Learns a twin, unless it is there from the same words; `more` is what else it depends on.
fn learn_once(twin: &str, words: &[&str], more: &[&str]) -> Result<()> {
    let settings = [words, more].concat().join("\n");
    let beside = root().join(format!("{twin}.settings"));
    if root().join(twin).is_file() && std::fs::read_to_string(&beside).is_ok_and(|text| text == settings) {
        println!("{twin} is there, learned with the same settings");
        return Ok(());
    }
    understudy(words)?;
    std::fs::write(&beside, settings).with_context(|| format!("cannot write {}", beside.display()))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// What the table calls a method of `eval`, whose first twin has no name of its own.
fn shown(rig: &Wild, method: &str) -> String {
    match method.strip_prefix("twin") {
        Some(rest) => format!("{} twin{rest}", rig.kinds[0].0),
        None => method.to_owned(),
    }
}

/// Names of the methods in the order of `eval`: twins first.
fn methods(weighed: &Value) -> Vec<&str> {
    weighed["order"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Blender, then twins, then baselines, for every set of poses.
fn table(rig: &Wild, weighed: &Value) -> Vec<String> {
    let blender_ms = number(&weighed["original_ms"]);
    let mut out = vec![
        "| poses | method | mean mm | max mm | ms per pose | Blender ÷ it |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for (set, figures) in weighed["sets"].as_object().into_iter().flatten() {
        out.push(format!("| {set} | Blender | 0 | 0 | {blender_ms:.2} | 1 |"));
        for method in methods(weighed) {
            let figures = &figures[method];
            let ms = number(&figures["ms"]);
            out.push(format!(
                "| {set} | {} | {:.3} | {:.2} | {ms:.3} | {:.1} |",
                shown(rig, method),
                number(&figures["mean_mm"]),
                number(&figures["max_mm"]),
                blender_ms / ms
            ));
        }
    }
    out
}

/// What the table must show, and whether it does.
fn verdicts(rig: &Wild, weighed: &Value) -> Vec<String> {
    let blender_ms = number(&weighed["original_ms"]);
    let line = |text: String, met: bool| format!("- {text}: {}", if met { "met" } else { "MISSED" });
    let mut out = Vec::new();
    for (set, figures) in weighed["sets"].as_object().into_iter().flatten() {
        let of = |method: &str, what: &str| number(&figures[method][what]);
        for (index, (kind, faster)) in rig.kinds.iter().enumerate() {
            let method = if index == 0 { "twin".to_owned() } else { format!("{kind} twin") };
            if let Some(wanted) = faster {
                let times = blender_ms / of(&method, "ms");
                let text =
                    format!("{set}, {kind} twin: {times:.1} times as fast as Blender, {wanted} wanted");
                out.push(line(text, times >= *wanted));
            }
            if !rig.errors_count {
                continue;
            }
            let share = of(&method, "mean_mm") / of("lbs4", "mean_mm");
            let text = format!("{set}, {kind} twin: mean {share:.3} of lbs4's, {MOST_OF_SKINNING} wanted");
            out.push(line(text, share <= MOST_OF_SKINNING));
            let baselines = rig.baselines.split(',').map(|name| (of(name, "max_mm"), name));
            let (least, name) = baselines.fold((f64::INFINITY, ""), |a, b| if b.0 < a.0 { b } else { a });
            let most = of(&method, "max_mm");
            let text =
                format!("{set}, {kind} twin: max {most:.2} mm, the least of a baseline {least:.2} ({name})");
            out.push(line(text, most < least));
        }
        let by_controls = &figures["twin, by controls"];
        if by_controls.is_object() {
            let added = ["mean_mm", "ms"].map(|what| number(&by_controls[what]) - of("twin", what));
            let text = format!(
                "{set}, by controls alone: adds {:.3} mm and {:.3} ms, at most {} mm and {} ms wanted",
                added[0], added[1], MOST_ADDED[0], MOST_ADDED[1]
            );
            out.push(line(text, added[0] <= MOST_ADDED[0] && added[1] <= MOST_ADDED[1]));
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
pub fn blender() -> Option<PathBuf> {
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
    let wheel = cache.join("bpy-5.0.1");
    // An installation that was interrupted is none.
    wheel.join("whole").is_file().then(|| wheel.join("bin/python"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_its_order_and_says_what_was_missed() {
        let figures =
            |mean: f64, max: f64, ms: f64| serde_json::json!({"mean_mm": mean, "max_mm": max, "ms": ms});
        let weighed = serde_json::json!({
            "original_ms": 20.0,
            "order": ["twin", "twin, by controls", "diff twin", "lbs4", "rigid"],
            "sets": {"random": {
                "twin": figures(0.2, 9.0, 0.1), "twin, by controls": figures(0.4, 11.0, 0.4),
                "diff twin": figures(0.3, 30.0, 4.0), "lbs4": figures(1.0, 20.0, 0.05), "rigid": figures(3.0, 60.0, 0.04),
                "lbs": figures(2.0, 40.0, 0.05), "rr2": figures(0.9, 25.0, 0.3), "wpsd10": figures(0.8, 28.0, 0.3)
            }}
        });
        let rows = table(&RIGS[0], &weighed);
        let named: Vec<&str> = rows[2..].iter().filter_map(|row| row.split(" | ").nth(1)).collect();
        assert_eq!(named, ["Blender", "body twin", "body twin, by controls", "diff twin", "lbs4", "rigid"]);
        assert!(rows[3].ends_with("| 0.200 | 9.00 | 0.100 | 200.0 |"), "{}", rows[3]);
        let said = verdicts(&RIGS[0], &weighed);
        let missed: Vec<&String> = said.iter().filter(|line| line.ends_with("MISSED")).collect();
        // The differential twin is too slow, too far from the rig at its mean and at its worst; controls add 0.3 ms.
        assert_eq!((said.len(), missed.len()), (7, 4), "{said:#?}");
        assert!(
            missed[0].contains("5.0 times as fast") && missed[3].contains("adds 0.200 mm and 0.300 ms"),
            "{missed:#?}"
        );
        // Figures that are not there count as missed.
        let empty = serde_json::json!({"sets": {"random": {}}});
        assert!(verdicts(&RIGS[0], &empty).iter().all(|line| line.ends_with("MISSED")));
    }
}
