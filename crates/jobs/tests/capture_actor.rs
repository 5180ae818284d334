//! Synthetic actors end to end: captured by inverse rendering at full size, drawn to a folder, continued after a kill.

use std::path::Path;
use understudy_jobs::Silent;
use understudy_jobs::capture::{
    Actor, ActorConfig, Fitted, RenderConfig, RenderSettings, capture_rendered, draw_actor,
};
use understudy_jobs::invert::Layout;
use understudy_testkit::shared_data;

fn actor(name: &str, seconds: f32) -> Actor {
    Actor { name: name.into(), seconds, truth: None }
}

fn config(actor: Actor, output: &Path) -> RenderConfig {
    RenderConfig {
        actor,
        rig: "ict".into(),
        fitted: Fitted::Own,
        turning: false,
        settings: RenderSettings::default(),
        layout: Layout::Plain,
        output: Some(output.join("take.csv")),
        report: Some(output.join("take.html")),
        command: "understudy capture --actor rendered:7 ict".into(),
    }
}

#[test]
fn a_rendered_actor_is_captured_within_a_fraction_of_doing_nothing() {
    if shared_data().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    let truth = folder.path().join("truth.csv");
    // Takes begin at rest: within the first half second doing nothing is hard to beat.
    let actor = Actor { truth: Some(truth.clone()), ..actor("rendered:7", 1.5) };
    let report = capture_rendered(&config(actor, folder.path()), &Silent).expect("captures");
    assert_eq!(report.frames, 45);
    let [nothing, landmarks, _, own] = report.rows.as_slice() else { panic!("four rows: {:?}", report.rows) };
    assert!(
        own.front_mm < 0.4 * nothing.front_mm && own.landmarks_mm < 0.4 * nothing.landmarks_mm,
        "{own:?} {nothing:?}"
    );
    assert!(own.front_mm < landmarks.front_mm, "{own:?} {landmarks:?}");
    assert!(report.pupils_degrees < 3.0, "{}", report.pupils_degrees);
    let lines = |path: &Path| std::fs::read_to_string(path).expect("written").lines().count();
    assert_eq!((lines(&truth), lines(&folder.path().join("take.csv"))), (46, 46));
    let page = std::fs::read_to_string(folder.path().join("take.html")).expect("written");
    assert!(page.contains("doing nothing") && page.contains("<svg"));
    draws_and_goes_on(folder.path());
}

fn draws_and_goes_on(folder: &Path) {
    let output = folder.join("seven");
    let config =
        ActorConfig { actor: actor("synthetic:7", 0.1), output: output.clone(), side: 64, turning: true };
    assert_eq!(draw_actor(&config, &Silent).expect("draws").kept, 0);
    let read = |name: &str| std::fs::read(output.join(name)).expect(name);
    let names = ["frame-000002.png", "flow-000002.npz", "weights.csv", "landmarks.csv"];
    let before = names.map(read);
    std::fs::remove_file(output.join("frame-000002.png")).expect("there");
    std::fs::remove_file(output.join("weights.csv")).expect("there");
    assert_eq!(draw_actor(&config, &Silent).expect("goes on").kept, 2);
    assert_eq!(names.map(read), before);
    let other = ActorConfig { side: 65, ..config.clone() };
    assert!(draw_actor(&other, &Silent).expect_err("another performance").to_string().contains("another"));
}

#[test]
fn what_cannot_be_played_is_told_in_a_line() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for (name, seconds) in [("bob", 1.0), ("synthetic:", 1.0), ("synthetic:-1", 1.0), ("painted:1", 1.0)] {
        let error =
            capture_rendered(&config(actor(name, seconds), folder.path()), &Silent).expect_err("no actor");
        let text = error.to_string();
        assert!(error.is_bad_input() && !text.contains('\n') && text.contains("actor"), "{text}");
        let config = ActorConfig {
            actor: actor(name, seconds),
            output: folder.path().join("x"),
            side: 64,
            turning: false,
        };
        assert!(draw_actor(&config, &Silent).expect_err("no actor").is_bad_input());
    }
    let config = ActorConfig {
        actor: actor("synthetic:1", 1.0),
        output: folder.path().join("x"),
        side: 3,
        turning: false,
    };
    assert!(draw_actor(&config, &Silent).expect_err("too small").is_bad_input());
    assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0, "nothing half-written");
}
