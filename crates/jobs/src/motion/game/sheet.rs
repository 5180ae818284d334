//! A contact sheet of what a character does in each situation of a game: a row per script.

use super::{Gaze, Mood, command, open, read_reactions};
use crate::outputs::check_file;
use crate::stage::{Shot, Stage, View};
use crate::{Event, JobError, Watch, rigs};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use understudy_report::{Picture, Sheet};
use understudy_rigs::RigPose;
use understudy_runtime::motion::{MotionPlayer, PlayConfig};

/// What to draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReactionSheetConfig {
    /// The file of motion.
    pub motion: PathBuf,
    /// The rig that is drawn; the one that the motion was learned from when left out.
    pub rig: Option<String>,
    /// The PNG file.
    pub output: PathBuf,
    /// What she does in which situation; Mira's reactions when left out.
    pub reactions: Option<PathBuf>,
    /// The same seed gives the same frames.
    pub seed: u64,
    /// Pictures per script.
    pub frames: usize,
    /// Side of each picture, pixels.
    pub size: usize,
}

impl Default for ReactionSheetConfig {
    fn default() -> Self {
        Self {
            motion: PathBuf::new(),
            rig: None,
            output: PathBuf::new(),
            reactions: None,
            seed: 1,
            frames: 10,
            size: 160,
        }
    }
}

/// What was drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReactionSheetReport {
    /// The file.
    pub file: PathBuf,
    /// Scripts, a row each.
    pub scripts: usize,
    /// Pictures.
    pub pictures: usize,
}

/// A script that was played: which, and moments of it.
type Row = (Mood, Vec<(f32, Vec<f32>)>);

/// Plays every reaction from a neutral start and draws moments of it.
pub fn reaction_sheet(
    config: &ReactionSheetConfig,
    watch: &dyn Watch,
) -> Result<ReactionSheetReport, JobError> {
    if !(1..=40).contains(&config.frames) || !(16..=1024).contains(&config.size) {
        return Err(JobError::setting(
            "frames",
            "1 to 40 pictures per script of 16 to 1024 pixels are wanted",
        ));
    }
    if !config.output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png")) {
        return Err(JobError::unusable(&config.output, "pictures are written as .png"));
    }
    check_file(&config.output, &[&config.motion, config.reactions.as_deref().unwrap_or(Path::new(""))])?;
    let motion = open(&config.motion)?.shared();
    let reactions = read_reactions(config.reactions.as_deref(), &motion, config.seed)?;
    let rig = rigs::open(config.rig.as_deref().unwrap_or(motion.rig()), watch)?.rig;
    let columns: Vec<Option<usize>> =
        motion.controls().iter().map(|spec| rig.specs().find(&spec.name)).collect();
    let start = motion.models().iter().map(|model| model.label()).find(|label| *label == "neutral");

    let mut rows: Vec<Row> = Vec::new();
    for (mood, script) in reactions.all() {
        let play = PlayConfig { seed: config.seed.wrapping_add(rows.len() as u64), ..PlayConfig::default() };
        let failed = |error| JobError::setting("label", error);
        let mut player = MotionPlayer::new(motion.clone(), start, play).map_err(failed)?;
        let mut gaze = Gaze::new(motion.controls(), config.seed);
        command(&mut player, script)?;
        let mut frames = Vec::new();
        while player.is_busy() && frames.len() < super::MOST {
            player.step();
            let mut frame = player.controls().to_vec();
            gaze.look(mood, &mut frame);
            frames.push(frame);
        }
        let last = (frames.len().max(1) - 1) as f32;
        let moment = |number: usize| {
            let place = (last * number as f32 / (config.frames.max(2) - 1) as f32).round() as usize;
            Some((place as f32 / motion.rate(), frames.get(place)?.clone()))
        };
        rows.push((mood, (0..config.frames).filter_map(moment).collect()));
    }

    watch.event(Event::Started { what: "drawing", total: rows.len() as u64, unit: "scripts" });
    let stage = Stage { mesh: rig.mesh(), colours: rig.colours(), size: config.size, dark: false };
    let mut pose = RigPose::default();
    let mut shots = Vec::new();
    for (_, moments) in &rows {
        for (seconds, frame) in moments {
            let mut controls = rig.specs().defaults();
            for (value, column) in frame.iter().zip(&columns) {
                column.iter().for_each(|column| controls.0[*column] = *value);
            }
            rig.evaluate(&controls, &mut pose).map_err(JobError::rig(rig.name()))?;
            shots.push(Shot { vertices: pose.vertices.clone(), caption: format!("{seconds:.1} s") });
        }
    }
    let mut sheet = Sheet::new(config.frames)
        .title(format!("{}: reactions in a game of tic-tac-toe", rig.name()))
        .subtitle("a script per row, beginning in a neutral pose")
        .row_labels(rows.iter().map(|(mood, _)| mood.name()));
    let view = View::named("front");
    let pictures: Vec<Picture> = stage.pictures(&shots, &view);
    for (picture, shot) in pictures.into_iter().zip(&shots) {
        sheet = sheet.cell(picture, shot.caption.clone());
    }
    understudy_io::write_atomic(&config.output, &sheet.build().to_png())?;
    watch.event(Event::Finished);
    Ok(ReactionSheetReport { file: config.output.clone(), scripts: rows.len(), pictures: shots.len() })
}
