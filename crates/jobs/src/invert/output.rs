//! Weights on disk: a plain table, Live Link Face where the shapes are ARKit's, or an archive.

use crate::{Event, JobError, Watch};
use serde::{Deserialize, Serialize};
use std::path::Path;
use understudy_core::{BlendshapeRig, arkit};
use understudy_io::Format;
use understudy_io::live_link::{self, LiveLinkTake, WeightTable};
use understudy_io::npz::NpzWriter;

/// How a `.csv` is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Live Link Face when every shape is one of ARKit's (or half of one), plain otherwise.
    #[default]
    Auto,
    /// A header of shape names, a row a frame.
    Plain,
    /// The columns that phones record and engines import.
    LiveLink,
}

/// Names in a message before it says how many more there are.
const SHOWN: usize = 6;

/// Writes weights, `[F][m]`, by the file's extension.
pub(super) fn write(
    path: &Path,
    layout: Layout,
    rig: &BlendshapeRig,
    weights: &[Vec<f64>],
    rate: f32,
    watch: &dyn Watch,
) -> Result<(), JobError> {
    let names: Vec<String> = rig.shapes().iter().map(|shape| shape.name.clone()).collect();
    let frames: Vec<Vec<f32>> = weights.iter().map(|f| f.iter().map(|w| *w as f32).collect()).collect();
    if Format::of(path) == Some(Format::Npz) {
        let mut npz = NpzWriter::new();
        npz.strings("names", &names);
        npz.f32("weights", &[frames.len(), names.len()], &frames.concat());
        npz.f32("rate", &[], &[rate]);
        return Ok(npz.write(path)?);
    }
    let known = |name: &String| arkit::canonical(name).is_some() || arkit::half_of(name).is_some();
    let live = match layout {
        Layout::Auto => names.iter().all(known),
        Layout::Plain => false,
        Layout::LiveLink => true,
    };
    if !live {
        return Ok(live_link::write_weights(path, &WeightTable { names, frames, rate: None })?);
    }
    let left_out: Vec<&str> = names.iter().filter(|name| !known(name)).map(String::as_str).collect();
    if left_out.len() == names.len() {
        return Err(JobError::setting("layout", "no shape of the rig is one of ARKit's"));
    }
    if !left_out.is_empty() {
        let more = left_out.len().saturating_sub(SHOWN);
        let list = left_out[..left_out.len() - more].join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let message = format!("Live Link Face has no column for {list}{more}; they are left out");
        watch.event(Event::Warning { message: &message });
    }
    Ok(live_link::write(path, &live_link_take(&names, &frames, rate))?)
}

/// ARKit's columns; one that the rig has in two halves gets their mean.
fn live_link_take(names: &[String], frames: &[Vec<f32>], rate: f32) -> LiveLinkTake {
    let mut columns: Vec<(&'static str, Vec<usize>)> = Vec::new();
    for (shape, name) in names.iter().enumerate() {
        let Some(column) = arkit::canonical(name).or_else(|| arkit::half_of(name).map(|(whole, _)| whole))
        else {
            continue;
        };
        match columns.iter_mut().find(|(other, _)| *other == column) {
            Some((_, shapes)) => shapes.push(shape),
            None => columns.push((column, vec![shape])),
        }
    }
    let value = |frame: &[f32], shapes: &[usize]| {
        shapes.iter().map(|shape| frame[*shape]).sum::<f32>() / shapes.len() as f32
    };
    LiveLinkTake {
        names: columns.iter().map(|(column, _)| (*column).into()).collect(),
        frames: frames.iter().map(|frame| columns.iter().map(|(_, s)| value(frame, s)).collect()).collect(),
        times: (0..frames.len()).map(|frame| frame as f64 / f64::from(rate)).collect(),
        rate,
        rate_reason: "of the targets".into(),
        start: 0.0,
    }
}
