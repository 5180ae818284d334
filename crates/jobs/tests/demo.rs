//! The demo at a tiny budget: everything is made, and nobody cheats.

use understudy_io::dataset::DatasetReader;
use understudy_jobs::Silent;
use understudy_jobs::demo::{DemoConfig, demo};

#[test]
fn everything_is_made_and_the_roar_is_never_trained_on() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().join("demo");
    let config = DemoConfig {
        output: out.clone(),
        poses: 40,
        face_steps: [12, 6],
        motion_iterations: 4,
        size: 24,
        command: "understudy demo".into(),
        ..DemoConfig::default()
    };
    let report = demo(&config, &Silent).expect("the demo runs");
    assert_eq!(report.characters.len(), 2);
    assert_eq!(report.datasets.len(), 6);

    // Rook: learned from random poses, tried on clips.
    assert_eq!(report.eval.sets.keys().collect::<Vec<_>>(), ["rook-kick", "rook-walk"]);
    assert!(report.twin.output.exists() && out.join("twin/eval.html").exists());

    // Mira: no pose of the roar among those that her twin saw.
    let trained = DatasetReader::open(&out.join("data/mira")).expect("recorded");
    let clips = &trained.header().settings["clips"];
    assert!(clips.contains("talk") && !clips.contains("roar"), "{clips}");
    assert_eq!(report.face.poses, 100);
    let understudy_jobs::twin::LearnDetails::Face(face) = &report.face.details else { panic!("a face") };
    assert_eq!(face.coarse.steps, 12);
    assert_eq!(report.face_eval.order, ["twin", "coarse", "skin twin", "differential", "lbs32"]);
    assert_eq!(report.face_eval.sets.keys().collect::<Vec<_>>(), ["mira-roar", "mira-talk"]);
    for methods in report.face_eval.sets.values() {
        assert!(methods.values().all(|m| m.mean_mm > 0.0 && m.normal_deg > 0.0 && m.max_mm < 300.0));
    }
    for clip in ["talk", "roar"] {
        for heat in ["normals", "positions"] {
            let picture = out.join(format!("pictures/mira-twin-{clip}-{heat}.png"));
            let bytes = std::fs::read(&picture).expect("a picture");
            assert!(bytes.starts_with(b"\x89PNG"), "{}", picture.display());
        }
    }
    // Her motion: three labels, and a film of a script.
    assert_eq!(report.motion.labels.len(), 3);
    assert!(report.take.frames > 100 && report.take.largest_distance <= 1.01, "{:?}", report.take);
    let film = std::fs::read(&report.take.output).expect("a film");
    assert!(film.starts_with(b"GIF89a"));
    // By hand: Rook squats on his feet, and Mira's points are brought nearer to a smile than they rest.
    assert_eq!((report.posed.body.frames[0].len(), report.posed.face.frames[0].len()), (5, 4));
    assert!(report.posed.body.frames[0].iter().all(|one| one.distance_mm < 0.5), "{:?}", report.posed.body);
    assert!(report.posed.body.controls["knee_l.bend"] > 20.0);
    let smile = &report.posed.face.frames[0];
    assert!(smile.iter().map(|one| one.distance_mm).sum::<f32>() < 17.4, "{smile:?}");
    for name in ["rook-posed", "mira-posed"] {
        let bytes = std::fs::read(out.join(format!("pictures/{name}.png"))).expect("a picture");
        assert!(bytes.starts_with(b"\x89PNG"), "{name}");
    }
    let page = std::fs::read_to_string(&report.report).expect("the page");
    for words in [
        "Rook's twin",
        "Mira's twin",
        "Mira's motion",
        "Posed by hand",
        "skinning, 32 bones",
        "refined",
        "coarse",
    ] {
        assert!(
            page.contains(words) || page.contains(&words.replace('\'', "&#39;")),
            "no '{words}' on the page"
        );
    }
}
