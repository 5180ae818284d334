//! The commands `motion`: Mira's face learned from short pieces of her clips, played, shown, projected; and everything
//! that can be wrong.

use std::path::{Path, PathBuf};
use understudy_jobs::motion::{
    LabelSpec, LearnMotionConfig, LearnMotionReport, PlayMotionConfig, ProjectMotionConfig, info, learn,
    open, play, project,
};
use understudy_jobs::{JobError, Silent};

fn labels(list: &[&str]) -> Vec<LabelSpec> {
    list.iter().map(|text| text.parse().expect("a label")).collect()
}

fn config(folder: &Path, list: &[&str]) -> LearnMotionConfig {
    let mut config = LearnMotionConfig {
        rig: "mira".into(),
        output: folder.join("mira.motion"),
        labels: labels(list),
        variance: 0.9,
        ..LearnMotionConfig::default()
    };
    config.latent.iterations = 25;
    config.bridges.most = 6;
    config
}

fn learned(folder: &Path) -> (PathBuf, LearnMotionReport) {
    // Twice the same piece: identical clips do no harm.
    let config = config(folder, &["happy=smile[0..30],smile[0..30]", "roar=roar[0..30]"]);
    let report = learn(&config, &Silent).expect("learns");
    (config.output, report)
}

fn script(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("act.txt");
    std::fs::write(&path, text).expect("written");
    path
}

#[test]
fn clips_are_learned_played_shown_and_projected() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (motion, report) = learned(folder.path());
    assert_eq!(report.labels.iter().map(|label| label.frames).collect::<Vec<_>>(), [62, 31]);
    for label in &report.labels {
        assert!(label.after > label.before, "{label:?}");
        assert!(label.latent_mm < 2.0 * label.components_mm + 0.05, "{label:?}");
    }
    assert!(
        report.left_out.iter().any(|name| name.to_lowercase().contains("eyelook")),
        "{:?}",
        report.left_out
    );
    let page = folder.path().join("mira.html");
    let facts = info(&motion, Some(&page), &Silent).expect("a file of motion");
    assert_eq!(facts.labels[0].clips, [("smile".to_owned(), 31), ("smile-2".to_owned(), 31)]);
    assert!(!facts.bridges.is_empty());
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("Latent spaces") && page.contains("<svg") && page.contains("data:image/png"));

    let act = script(folder.path(), "transition roar; play roar[0.2..0.6]\nmix 1s smile 50%");
    let take = |name: &str, seed: u64| {
        let mut config = PlayMotionConfig {
            motion: motion.clone(),
            script: act.clone(),
            output: folder.path().join(name),
            size: 32,
            ..PlayMotionConfig::default()
        };
        config.synthesis.seed = seed;
        let report = play(&config, &Silent).expect(name);
        assert!(report.largest_distance <= 1.01 && report.frames > 40, "{report:?}");
        assert_eq!(report.labels.last().map(|(_, label)| label.as_str()), Some("roar"));
        std::fs::read(config.output).expect("written")
    };
    let table = take("a.csv", 3);
    assert!(table == take("b.csv", 3), "the same seed, the same bytes");
    assert!(table != take("c.csv", 4));
    assert!(take("act.gif", 3).starts_with(b"GIF89a"));
    assert!(take("act.glb", 3).starts_with(b"glTF"));
    if std::process::Command::new("ffmpeg").arg("-version").output().is_ok_and(|out| out.status.success()) {
        assert_eq!(&take("act.mp4", 3)[4..8], b"ftyp");
    }

    let config = ProjectMotionConfig { motion: motion.clone(), clip: "smile".into(), ..Default::default() };
    let projected = project(&config, &Silent).expect("projects");
    let first = &projected.frames[..31];
    assert!(first.iter().all(|frame| frame.label == "happy" || frame.mean_mm < 0.5));
    let learned_mm = first.iter().map(|frame| frame.mean_mm).sum::<f32>() / 31.0;
    assert!(learned_mm < 2.0 * report.labels[0].latent_mm as f32 + 0.05, "{learned_mm}");
    assert!(projected.frames[40].mean_mm > 0.0);
    assert!(open(&motion).expect("a file").models().len() == 2);
}

#[test]
fn what_is_wrong_is_said_in_one_line_and_nothing_is_left() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let line = |error: JobError| {
        let line = error.to_string();
        assert!(!line.contains('\n'), "{line}");
        line
    };
    let refused = |change: &dyn Fn(&mut LearnMotionConfig)| {
        let mut config = config(folder.path(), &["happy=smile[0..10]"]);
        change(&mut config);
        let error = line(learn(&config, &Silent).expect_err("is refused"));
        assert!(!config.output.exists(), "{error}");
        error
    };
    let frozen = folder.path().join("frozen.csv");
    std::fs::write(&frozen, "jawOpen\n0.5\n").expect("written");
    let one = format!("a={}", frozen.display());
    assert!(refused(&|c| c.labels = labels(&[&one])).contains("1 frame is too little"));
    assert!(refused(&|c| c.labels = labels(&["a=grimace"])).contains("grimace"));
    assert!(refused(&|c| c.labels = labels(&["a=smile[0..99999]"])).contains("99999"));
    assert!(refused(&|c| c.labels = labels(&["a=smile", "a=roar"])).contains("given twice"));
    assert!(refused(&|c| c.variance = f64::NAN).contains("variance"));
    assert!(refused(&|c| c.latent.dimensions = 9).contains("latent"));
    assert!(refused(&|c| c.latent.inducing = Some(1)).contains("inducing"));
    assert!(refused(&|c| c.rate = 0.0).contains("rate"));
    assert!(refused(&|c| c.rig = "nobody".into()).contains("nobody"));

    let (motion, _) = learned(folder.path());
    let played = |text: &str, output: &str, label: Option<&str>| {
        let config = PlayMotionConfig {
            motion: motion.clone(),
            script: script(folder.path(), text),
            output: folder.path().join(output),
            label: label.map(str::to_owned),
            ..PlayMotionConfig::default()
        };
        let error = line(play(&config, &Silent).expect_err("is refused"));
        assert!(!config.output.exists(), "{error}");
        error
    };
    assert!(played("idle 1s\ntransition sad", "x.csv", None).contains("line 2: there is no label 'sad'"));
    assert!(played("idle 1s\n\nfly", "x.csv", None).contains("line 3: there is no command 'fly'"));
    assert!(played("idle around smile", "x.csv", None).contains("needs a time"));
    assert!(played("", "x.csv", None).contains("no commands"));
    assert!(played("idle 1s", "x.wav", None).contains("none of .csv"));
    assert!(played("idle 1s", "x.csv", Some("sad")).contains("label"));
    let cut = folder.path().join("cut.motion");
    let bytes = std::fs::read(&motion).expect("written");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("written");
    assert!(line(info(&cut, None, &Silent).expect_err("is refused")).contains("cut.motion"));
    assert!(line(open(folder.path()).expect_err("is refused")).contains("no file"));
    assert!(line(open(Path::new("/nowhere.motion")).expect_err("is refused")).contains("nowhere"));
}
