//! Landmark nets on synthetic actors whom they have never seen, in pictures of 256²: how far every part of a face is off, in how
//! many frames it is found, and how long a frame takes on one thread.

use crate::console::{print, table};
use anyhow::{Context as _, Result};
use std::path::Path;
use std::time::Instant;
use understudy_capture::actors::Cast;
use understudy_capture::landmark_nets::{LandmarkNets, errors};
use understudy_jobs::capture::test_frames;

/// Whom the nets have never seen.
const ACTORS: [u64; 8] = [1, 2, 3, 4, 7, 9, 15, 16];
/// Frames of each.
const EACH: usize = 12;

/// Runs it.
pub fn run(cast: &Cast, path: Option<&Path>) -> Result<()> {
    let path =
        path.context("nets are wanted: --nets FILE.landmarks, which `understudy learn landmarks` makes")?;
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let mut nets = LandmarkNets::parse(&bytes).with_context(|| path.display().to_string())?;
    let mut rows = Vec::new();
    let mut times = Vec::new();
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    for (name, turning) in [("helmet camera", false), ("turning head", true)] {
        let frames = test_frames(cast, &ACTORS, EACH, turning)?;
        let found = errors(&mut nets, &frames);
        let mut row = vec![name.to_owned(), format!("{} of {}", found.found, found.frames)];
        let means = [found.all, found.landmarks, found.coarse, found.contours, found.pupils];
        row.extend(means.map(|px| format!("{px:.2}")));
        row.extend(found.regions.iter().map(|(_, px)| format!("{px:.2}")));
        row.push(format!("{:.3}", found.scores));
        rows.push(row);
        // Followed frames alone: each is looked at twice, the second look counts.
        one.install(|| {
            for (frame, ..) in &frames {
                nets.look(frame);
                let begin = Instant::now();
                nets.look(frame);
                times.push(1e3 * begin.elapsed().as_secs_f64());
            }
        });
    }
    print("px at 256²\n");
    let heads = [
        "actors",
        "face found",
        "all",
        "68",
        "first net",
        "contours",
        "pupils",
        "right eye",
        "left eye",
        "nose",
        "lips",
        "jaw",
        "scores",
    ];
    print(&table(&heads, &rows));
    times.sort_by(f64::total_cmp);
    print(&format!(
        "\na frame whose face is followed: {:.1} ms on one thread (median), {:.0} million multiplications",
        times[times.len() / 2],
        nets.multiplications() as f64 * 1e-6
    ));
    Ok(())
}
