//! The command `motion game`: tic-tac-toe against a character, move by move from the keyboard or from `--moves`.

use crate::game_arguments::MotionGameArguments;
use crate::output::{self, count, thousands};
use crate::progress::watched;
use anyhow::{Context as _, Result};
use std::io::{BufRead as _, IsTerminal as _};
use understudy_jobs::JobError;
use understudy_jobs::motion::game::{
    GameConfig, GameRun, Mark, PlayGameConfig, PlayGameReport, ReactionSheetConfig, Standing, reaction_sheet,
};

/// `motion game`.
pub fn run_game(json: bool, arguments: MotionGameArguments) -> Result<()> {
    if let Some(output) = arguments.sheet {
        let config = ReactionSheetConfig {
            motion: arguments.motion,
            output,
            rig: arguments.rig,
            reactions: arguments.reactions,
            seed: arguments.seed,
            ..ReactionSheetConfig::default()
        };
        let report = watched(|progress| reaction_sheet(&config, progress))?;
        return output::print(json, &report, |report| {
            let (scripts, pictures) = (count(report.scripts, "script"), count(report.pictures, "picture"));
            format!("{}: {scripts}, {pictures}", report.file.display())
        });
    }
    let config = PlayGameConfig {
        motion: arguments.motion,
        output: arguments.output,
        reactions: arguments.reactions,
        rig: arguments.rig,
        view: arguments.view.unwrap_or(PlayGameConfig::default().view),
        size: arguments.size.unwrap_or(PlayGameConfig::default().size),
        game: GameConfig {
            forgetful: arguments.forget.unwrap_or(GameConfig::default().forgetful),
            seed: arguments.seed,
            she_begins: arguments.second,
        },
    };
    let mut run = watched(|_| GameRun::open(&config))?;
    let mut told = 0;
    let mut tell = |run: &GameRun| -> String {
        let moods: Vec<&str> = run.played()[told..].iter().map(|played| played.mood.name()).collect();
        told = run.played().len();
        format!("{}\n\nShe {}.\n\n", run.board(), moods.join(", then "))
    };
    // Moves that were given are told together with the end: nothing is printed of a game that one of them breaks off.
    let mut text = tell(&run);
    if arguments.moves.is_empty() {
        play_by_hand(&mut run, json, text, &mut tell)?;
        text = String::new();
    } else {
        for square in arguments.moves {
            take(&mut run, square)?;
            text.push_str(&tell(&run));
        }
    }
    let report = watched(|progress| run.finish(progress))?;
    output::print(json, &report, |report| format!("{text}{}", describe(report)))
}

/// Squares line by line, until the game or the input ends. A line that is no move is told and another one is read.
fn play_by_hand(
    run: &mut GameRun,
    json: bool,
    first: String,
    tell: &mut impl FnMut(&GameRun) -> String,
) -> Result<()> {
    let say = |text: String| if json { Ok(()) } else { output::write(&text) };
    say(first)?;
    let input = std::io::stdin();
    let terminal = input.is_terminal();
    let mut lines = input.lock().lines();
    while run.board().standing() == Standing::Open {
        if terminal && !json {
            eprint!("Your square (1 to 9, q ends): ");
        }
        let Some(line) = lines.next() else { break };
        let line = line.context("reading your move")?;
        let text = line.trim();
        if matches!(text, "q" | "quit") {
            break;
        }
        let tried = match text.parse::<usize>() {
            Ok(square) => take(run, square),
            Err(_) => Err(JobError::setting("your move", format!("'{text}' is no square from 1 to 9"))),
        };
        match tried {
            Ok(()) => say(tell(run))?,
            // Who types may try again; who pipes a file in wants to know that it is wrong.
            Err(error) if terminal => eprintln!("{error}"),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn take(run: &mut GameRun, square: usize) -> Result<(), JobError> {
    // Squares are counted from 1 by people; 0 is none.
    run.take(square.wrapping_sub(1))
}

fn describe(report: &PlayGameReport) -> String {
    let end = match report.standing {
        Standing::Won(mark) if mark == report.hers => "She has won.",
        Standing::Won(_) => "You have won.",
        Standing::Drawn => "Nobody has won.",
        Standing::Open => "The game is not finished.",
    };
    let moves: Vec<String> = report.moves.iter().map(usize::to_string).collect();
    let first = if report.hers == Mark::Cross { "hers" } else { "yours" };
    let take = match &report.output {
        None => String::new(),
        Some(output) => format!(
            "\n{}: {} of '{}' at {} per second ({:.1} s)",
            output.display(),
            format_args!("{} frames", thousands(report.frames as u64)),
            report.rig,
            report.rate,
            report.frames as f32 / report.rate
        ),
    };
    let moves = if moves.is_empty() {
        String::new()
    } else {
        format!(" Squares, {first} first: {}.", moves.join(" "))
    };
    format!("{end}{moves}{take}")
}
