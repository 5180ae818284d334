//! `bench landmarks`: points, scores and head poses beside MediaPipe itself, with the same `.task` file, on a photograph and on
//! synthetic actors; and how long both take, in turn. Then the live path: a video's worth of frames, watched and driven.

use crate::console::{Console, print, table};
use crate::environment::Script;
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_capture::Frame;
use understudy_capture::mediapipe::{Choice, Face, Landmarker, Mode, Sighting};
use understudy_core::{DMat3, DVec3};
use understudy_jobs::capture::{Actor, ActorConfig, draw_actor};

/// What to compare on.
#[derive(Debug, Args)]
pub struct LandmarkArguments {
    /// MediaPipe's face landmarker.
    #[arg(
        long,
        value_name = "FILE.task",
        default_value = "../shared/data/mediapipe/face_landmarker_v2_with_blendshapes_float16.task"
    )]
    task: PathBuf,
    /// More pictures, .png.
    pictures: Vec<PathBuf>,
    /// Synthetic actors, by their numbers.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,3,15,16")]
    actors: Vec<u64>,
    /// Seconds of each actor.
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    seconds: f32,
    /// Rounds of timing; in each both look once, in turn.
    #[arg(long, value_name = "N", default_value_t = 60)]
    rounds: usize,
    /// Folder of the Python environment, made where it is missing.
    #[arg(long, value_name = "DIR", default_value = "target/landmarks")]
    peers: PathBuf,
}

const SCRIPT: &str = include_str!("python/landmarks.py");
const REQUIREMENTS: &str = include_str!("python/landmarks-requirements.txt");

/// Runs it.
pub fn run(arguments: &LandmarkArguments) -> Result<()> {
    let task = std::fs::read(&arguments.task).with_context(|| arguments.task.display().to_string())?;
    let task_path = arguments.task.canonicalize()?;
    std::fs::create_dir_all(&arguments.peers)?;
    let mut script =
        Script::start_with(REQUIREMENTS, &arguments.peers, "landmarks.py", SCRIPT, &task_path, &Console)?;
    ensure!(script.line()? == "ready", "the peer does not start");
    let mut pictures: Vec<(String, String)> = vec![("astronaut (photograph)".into(), "astronaut".into())];
    for path in &arguments.pictures {
        pictures.push((path.display().to_string(), path.canonicalize()?.display().to_string()));
    }
    let mut clips = Vec::new();
    for actor in &arguments.actors {
        let output = arguments.peers.join(format!("actor-{actor}"));
        let actor = Actor { name: format!("synthetic:{actor}"), seconds: arguments.seconds, truth: None };
        draw_actor(
            &ActorConfig { actor: actor.clone(), output: output.clone(), side: 512, turning: true },
            &Console,
        )?;
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(&output)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "png"));
        files.sort();
        // Two moments of each: the first and the middle one.
        for index in [0, files.len() / 2] {
            if let Some(file) = files.get(index) {
                pictures.push((
                    format!("{} frame {index}", actor.name),
                    file.canonicalize()?.display().to_string(),
                ));
            }
        }
        clips.push((actor.name, files));
    }
    let mut rows = Vec::new();
    let mut times = None;
    for (index, (label, picture)) in pictures.iter().enumerate() {
        let raw = arguments.peers.canonicalize()?.join("frame.rgb");
        let request = serde_json::json!({ "do": "open", "picture": picture, "raw": raw });
        let size = script.ask(&request.to_string())?;
        let side = |name: &str| size[name].as_u64().map(|side| side as usize).context("a size");
        let frame = Frame::new(side("width")?, side("height")?, std::fs::read(&raw)?).context("a frame")?;
        let mut landmarker = Landmarker::parse(&task, Mode::Pictures)?;
        let sighting = landmarker.look(&frame, Choice::Largest);
        let theirs = script.ask("{\"do\": \"look\"}")?;
        rows.push(compared(label, &frame, sighting, &landmarker, &theirs)?);
        if index == 0 {
            times = Some(raced(&mut script, &task, &frame, arguments.rounds)?);
        }
    }
    print("points: px of the picture; head: degrees between rotations; scores: of 52, 0 to 1\n");
    print(&table(
        &["picture", "both see", "points mean", "points worst", "head °", "head cm", "worst score"],
        &rows,
    ));
    let [ours, theirs, ratio] = times.context("at least one picture")?;
    print(&format!(
        "\none picture, detector included, one thread of ours: {ours:.2} ms, MediaPipe {theirs:.2} ms; median of ratios {ratio:.2}"
    ));
    rates(&task, &clips)
}

fn compared(
    label: &str,
    frame: &Frame,
    sighting: Sighting,
    landmarker: &Landmarker,
    theirs: &Value,
) -> Result<Vec<String>> {
    let points = theirs["points"].as_array().context("points")?;
    let ours = sighting != Sighting::None;
    let both = match (ours, !points.is_empty()) {
        (true, true) => "yes",
        (false, false) => {
            return Ok(vec![
                label.into(),
                "no face".into(),
                "–".into(),
                "–".into(),
                "–".into(),
                "–".into(),
                "–".into(),
            ]);
        }
        (true, false) => {
            return Ok(vec![
                label.into(),
                "ours alone".into(),
                "–".into(),
                "–".into(),
                "–".into(),
                "–".into(),
                "–".into(),
            ]);
        }
        (false, true) => {
            return Ok(vec![
                label.into(),
                "theirs alone".into(),
                "–".into(),
                "–".into(),
                "–".into(),
                "–".into(),
                "–".into(),
            ]);
        }
    };
    let face = landmarker.face();
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let (width, height) = (frame.width() as f64, frame.height() as f64);
    let offs: Vec<f64> = (face.points.iter().zip(points))
        .map(|(own, other)| {
            let x = (f64::from(own.x) - number(&other[0])) * width;
            x.hypot((f64::from(own.y) - number(&other[1])) * height)
        })
        .collect();
    let worst = offs.iter().copied().fold(0.0, f64::max);
    let mean = offs.iter().sum::<f64>() / offs.len() as f64;
    let scores = theirs["scores"].as_array().context("scores")?;
    let score = face
        .scores
        .iter()
        .zip(scores)
        .map(|(own, other)| (f64::from(*own) - number(other)).abs())
        .fold(0.0, f64::max);
    let (degrees, centimetres) = head(face, frame, landmarker, &theirs["matrix"])?;
    let cells = [mean, worst, degrees, centimetres, score].map(|number| format!("{number:.3}"));
    Ok([label.to_owned(), both.into()].into_iter().chain(cells).collect())
}

/// How far the head is from theirs.
fn head(face: &Face, frame: &Frame, landmarker: &Landmarker, matrix: &Value) -> Result<(f64, f64)> {
    let size = [frame.width() as f32, frame.height() as f32];
    let pose = landmarker.geometry().solve(&face.points, size, &mut Vec::new()).context("a head")?;
    let at = |row: usize, column: usize| matrix[row][column].as_f64().unwrap_or(f64::NAN);
    let column = |column: usize| DVec3::new(at(0, column), at(1, column), at(2, column));
    let theirs = DMat3::from_cols(column(0).normalize(), column(1).normalize(), column(2).normalize());
    let between = pose.rotation.transpose() * theirs;
    let trace = between.x_axis.x + between.y_axis.y + between.z_axis.z;
    Ok((((trace - 1.0) / 2.0).clamp(-1.0, 1.0).acos().to_degrees(), pose.translation.distance(column(3))))
}

/// Medians of both, and of the ratios of rounds: what else the machine does then falls on both.
fn raced(script: &mut Script, task: &[u8], frame: &Frame, rounds: usize) -> Result<[f64; 3]> {
    let mut landmarker = Landmarker::parse(task, Mode::Pictures)?;
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        let start = Instant::now();
        landmarker.look(frame, Choice::Largest);
        ours.push(1e3 * start.elapsed().as_secs_f64());
        theirs.push(script.ask("{\"do\": \"look\"}")?["ms"].as_f64().context("a time")?);
        ratios.push(ours.last().unwrap_or(&f64::NAN) / theirs.last().unwrap_or(&f64::NAN));
    }
    let median = |list: &mut Vec<f64>| {
        list.sort_by(f64::total_cmp);
        list[list.len() / 2]
    };
    Ok([median(&mut ours), median(&mut theirs), median(&mut ratios)])
}

/// In how many frames of synthetic actors a face is seen, and how long a frame takes while it is followed.
fn rates(task: &[u8], clips: &[(String, Vec<PathBuf>)]) -> Result<()> {
    let mut rows = Vec::new();
    for (name, files) in clips {
        let mut landmarker = Landmarker::parse(task, Mode::Video)?;
        let (mut seen, mut searched, mut seconds) = (0, 0, 0.0);
        for file in files {
            let frame = picture(file)?;
            let start = Instant::now();
            let sighting = landmarker.look(&frame, Choice::Largest);
            seconds += start.elapsed().as_secs_f64();
            seen += usize::from(sighting != Sighting::None);
            searched += usize::from(sighting != Sighting::Followed);
        }
        let count = files.len().max(1) as f64;
        rows.push(vec![
            name.clone(),
            files.len().to_string(),
            format!("{:.1} %", 100.0 * seen as f64 / count),
            searched.to_string(),
            format!("{:.2}", 1e3 * seconds / count),
        ]);
    }
    if !rows.is_empty() {
        print("");
        print(&table(&["actor", "frames", "face seen", "searched", "ms per frame"], &rows));
    }
    Ok(())
}

fn picture(path: &Path) -> Result<Frame> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let mut reader = understudy_io::picture::PictureReader::parse(bytes)?;
    let (width, height) = reader.size();
    let mut rgb = Vec::new();
    reader.next_frame(&mut rgb)?;
    Frame::new(width, height, rgb).context("a frame")
}
