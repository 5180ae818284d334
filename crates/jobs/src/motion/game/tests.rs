//! A whole game on a small motion: two labels, one control each way.

use super::*;
use understudy_core::{ControlSpec, ControlSpecs};
use understudy_runtime::motion::{
    BasisParts, Bridge, ClipFrames, Covariance, LatentPoint, ModelParts, SpaceParts,
};

const REACTIONS: &str = "greets: transition b; play b_1\nwaits: idle 0.5s\nwaits: idle 0.4s around a_1\ntires: play b_1\n\
    ponders: move a_1 in 0.3s\nponders: transition a; move a_1@0.2s in 0.4s\nintimidates: play a_1[0.1..0.4]\n\
    objects: play b_1[0.1..0.3]\nmarvels: move b_1 in 0.2s\nloses: transition b; play b_1\nwins: play a_1\nshrugs: idle 1s";

/// A label whose one control swings up and back over nine frames, on a line in latent space.
fn label(name: &str, control: u32) -> ModelParts {
    let points: Vec<f32> = (0..9).map(|frame| frame as f32 * 0.25 - 1.0).collect();
    ModelParts {
        label: name.into(),
        basis: BasisParts {
            rest: vec![0.0; 2],
            moving: vec![control],
            scale: vec![1.0],
            components: vec![1.0],
        },
        space: SpaceParts {
            dimensions: 1,
            // Weights of a kernel at each frame: a hill in the middle.
            weights: (0..9).map(|frame| 0.1 * (4.0 - (frame as f32 - 4.0).abs())).collect(),
            certainty: vec![0.3; 9],
            edges: (0..8).map(|frame| [frame, frame + 1]).collect(),
            centres: None,
            covariance: Covariance { variance: 1.0, length_squared: 0.1, white: 0.01 },
            unit: 1.0,
            points,
        },
        clips: vec![ClipFrames { name: format!("{name}_1"), first: 0, frames: 9, strongest: 4 }],
        pace: 0.25,
        radius: 0.05,
        likely: -1.0,
        softness: 1.0,
    }
}

fn motion() -> Motion {
    let specs = ["x", "y"].map(|name| ControlSpec::number(name, -2.0, 2.0, 0.0));
    let specs = ControlSpecs::new(specs.to_vec()).expect("sound");
    let end = LatentPoint::new(&[-1.0]);
    let bridge = Bridge { from: 0, to: 1, from_point: end, to_point: end, millimetres: 0.1 };
    Motion::new("small".into(), 12.0, specs, vec![label("a", 0), label("b", 1)], vec![bridge]).expect("sound")
}

struct Scratch {
    folder: tempfile::TempDir,
    config: PlayGameConfig,
}

fn scratch(reactions: &str, forgetful: f64, seed: u64) -> Scratch {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("small.motion"), motion().to_bytes().expect("bytes")).expect("written");
    std::fs::write(at("reactions.txt"), reactions).expect("written");
    let config = PlayGameConfig {
        motion: at("small.motion"),
        output: Some(at("take.csv")),
        reactions: Some(at("reactions.txt")),
        game: GameConfig { forgetful, seed, she_begins: false },
        ..PlayGameConfig::default()
    };
    Scratch { folder, config }
}

/// Wins where it can, else takes the first free square.
fn play(config: &PlayGameConfig) -> PlayGameReport {
    let mut run = GameRun::open(config).expect("a game");
    while run.board().standing() == Standing::Open {
        let square = run.board().threats(Mark::Cross).first().copied();
        run.take(square.or_else(|| run.board().free().next()).expect("free")).expect("her turn is over");
    }
    run.finish(&crate::Silent).expect("written")
}

#[test]
fn a_game_is_acted_out_and_written() {
    let mut ends = [0; 3];
    for seed in 0..12 {
        let scratch = scratch(REACTIONS, 0.7, seed);
        let report = play(&scratch.config);
        let moods: Vec<Mood> = report.played.iter().map(|played| played.mood).collect();
        assert_eq!(moods[..2], [Mood::Greets, Mood::Waits]);
        assert!(report.played.windows(2).all(|pair| pair[0].frame < pair[1].frame), "{:?}", report.played);
        let (last, end) = match report.standing {
            Standing::Won(Mark::Cross) => (Mood::Loses, 0),
            Standing::Won(Mark::Nought) => (Mood::Wins, 1),
            _ => (Mood::Shrugs, 2),
        };
        assert_eq!(moods.last(), Some(&last));
        ends[end] += 1;
        let lines = std::fs::read_to_string(scratch.folder.path().join("take.csv")).expect("the take");
        assert_eq!(
            lines.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit() || c == '-')).count(),
            report.frames
        );
        assert!(report.moves.iter().all(|square| (1..=9).contains(square)));
    }
    assert!(ends[0] > 0 && ends[1] + ends[2] > 0, "{ends:?}");
}

#[test]
fn the_same_seed_and_moves_write_the_same_take() {
    let take = |seed: u64| {
        let scratch = scratch(REACTIONS, 0.5, seed);
        play(&scratch.config);
        std::fs::read(scratch.folder.path().join("take.csv")).expect("the take")
    };
    assert!(take(4) == take(4));
    assert!(take(4) != take(5));
}

#[test]
fn wrong_reactions_and_moves_are_told_with_their_place() {
    let refuse = |reactions: &str| {
        let scratch = scratch(reactions, 0.5, 1);
        let error = GameRun::open(&scratch.config).err().expect("refused").to_string();
        assert!(error.contains("reactions.txt: line "), "{error}");
        error
    };
    assert!(refuse(&REACTIONS.replace("wins: play a_1", "wins: play c_1")).ends_with("there are a_1, b_1"));
    assert!(
        refuse(&REACTIONS.replace("shrugs: idle 1s", "shrugs: idle")).contains("line 12: an idle of a game")
    );
    assert!(refuse(&REACTIONS.replace("tires: play b_1", "")).contains("nothing is said of 'tires'"));
    assert!(refuse(&REACTIONS.replace("move b_1 in 0.2s", "fly")).contains("line 9: there is no command"));

    let mut scratch = scratch(REACTIONS, 0.0, 1);
    let mut run = GameRun::open(&scratch.config).expect("a game");
    assert!(run.take(9).expect_err("outside").to_string().starts_with("move 1: "));
    run.take(0).expect("free");
    assert!(run.take(0).expect_err("taken").to_string().contains("square 1 has an X"));
    scratch.config.game.forgetful = 1.5;
    assert!(GameRun::open(&scratch.config).err().expect("refused").to_string().contains("1.5"));
    scratch.config.game.forgetful = 0.5;
    scratch.config.reactions = None;
    let error = GameRun::open(&scratch.config).err().expect("Mira's do not fit").to_string();
    assert!(error.contains("'greets'") && error.contains("there is no label 'happy'"), "{error}");
}
