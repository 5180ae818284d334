//! What a file of motion looks like: the clips as curves in their latent spaces, and the poses on both ends of bridges; a
//! page, or one of its pictures alone.

use super::MotionInfo;
use crate::outputs::check_file;
use crate::stage::{Shot, Stage, View};
use crate::{Event, JobError, Watch, rigs};
use std::path::Path;
use understudy_core::Controls;
use understudy_report::html::{Column, Page, Section, Table};
use understudy_report::plot::{LinePlot, Plot, Series};
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::motion::{Bridge, LatentPoint, Model, Motion};

/// Pairs of poses that are shown.
const PAIRS: usize = 8;
/// Curves of one plot; more are named together.
const CURVES: usize = 8;
/// Side of a picture, pixels.
const SIZE: usize = 240;

/// Fails where the picture or page cannot be written there.
pub(super) fn check(output: &Path, motion: &Path) -> Result<(), JobError> {
    check_file(output, &[motion])?;
    match extension(output).as_str() {
        "html" | "png" | "svg" => Ok(()),
        _ => {
            Err(JobError::unusable(output, "is none of .html, .png (poses at bridges), .svg (latent spaces)"))
        }
    }
}

fn extension(output: &Path) -> String {
    output.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase()
}

/// Writes the page, or with `.svg` the latent space of the first label, with `.png` the poses at bridges.
pub fn page(motion: &Motion, info: &MotionInfo, output: &Path, watch: &dyn Watch) -> Result<(), JobError> {
    let bytes = match extension(output).as_str() {
        "svg" => curves(&motion.models()[0]).to_svg().into_bytes(),
        "png" => pairs(motion, watch)?.to_png(),
        _ => html(motion, info, watch)?.into_bytes(),
    };
    Ok(understudy_io::write_atomic(output, &bytes)?)
}

/// Three dimensions seen from the side and from above, as a drawing on paper has them.
fn on_paper(x: LatentPoint, dimensions: usize) -> [f64; 2] {
    const DEPTH: [f64; 2] = [0.45, 0.32];
    let depth = if dimensions > 2 { x.0[2] } else { 0.0 };
    [x.0[0] + DEPTH[0] * depth, if dimensions > 1 { x.0[1] } else { 0.0 } + DEPTH[1] * depth]
}

/// The clips of a label as curves.
fn curves(model: &Model) -> LinePlot {
    let space = model.space();
    let paper = |frame: usize| on_paper(space.point(frame), space.dimensions());
    let mut plot = LinePlot::new(format!(
        "{}: {} clips, {} frames in {} dimensions",
        model.label(),
        model.clips().len(),
        space.len(),
        space.dimensions()
    ));
    plot = plot.x_label("first latent dimension, and the third into depth").y_label("second");
    let own = if model.clips().len() > CURVES { CURVES - 1 } else { CURVES };
    for clip in model.clips().iter().take(own) {
        plot =
            plot.series(Series::new(&clip.name, (clip.first..clip.first + clip.frames).map(paper).collect()));
    }
    let rest: Vec<_> = model.clips().iter().skip(own).collect();
    if !rest.is_empty() {
        let mut points = Vec::new();
        for clip in &rest {
            points.extend((clip.first..clip.first + clip.frames).map(paper));
            points.push([f64::NAN; 2]);
        }
        plot = plot.series(Series::new(format!("{} more", rest.len()), points));
    }
    plot
}

/// The best bridges, of different pairs of labels first.
fn best(motion: &Motion) -> Vec<Bridge> {
    let mut all: Vec<Bridge> = motion.bridges().to_vec();
    all.sort_by(|a, b| a.millimetres.total_cmp(&b.millimetres));
    let pair = |bridge: &Bridge| (bridge.from.min(bridge.to), bridge.from.max(bridge.to));
    let mut chosen: Vec<Bridge> = Vec::new();
    for again in [false, true] {
        for bridge in &all {
            let known = chosen.iter().any(|other| pair(other) == pair(bridge));
            if chosen.len() < PAIRS && known == again && !chosen.contains(bridge) {
                chosen.push(*bridge);
            }
        }
    }
    chosen
}

fn pairs(motion: &Motion, watch: &dyn Watch) -> Result<understudy_report::Picture, JobError> {
    let rig = rigs::open(motion.rig(), watch)?.rig;
    if rig.specs() != motion.controls() {
        return Err(JobError::unusable(motion.rig(), "has other controls than when its motion was learned"));
    }
    sheet(motion, rig.as_ref(), watch)
}

fn sheet(motion: &Motion, rig: &dyn Rig, watch: &dyn Watch) -> Result<understudy_report::Picture, JobError> {
    watch.event(Event::Started { what: "drawing", total: 1, unit: "sheets" });
    let mut shots = Vec::new();
    let mut pose = RigPose::default();
    for bridge in best(motion) {
        for (model, point) in [(bridge.from, bridge.from_point), (bridge.to, bridge.to_point)] {
            let model = &motion.models()[model];
            let controls = Controls(model.pose(point));
            rig.evaluate(&controls, &mut pose).map_err(JobError::rig(rig.name()))?;
            let caption = format!("{}, {:.2} mm", model.label(), bridge.millimetres);
            shots.push(Shot { vertices: pose.vertices.clone(), caption });
        }
    }
    let stage = Stage { mesh: rig.mesh(), colours: rig.colours(), size: SIZE, dark: false };
    let view = View::named("three-quarter");
    let pictures = stage.pictures(&shots, &view);
    // Four columns: two pairs side by side.
    let mut sheet = understudy_report::Sheet::new(4)
        .title(format!("{}: poses at bridges", rig.name()))
        .subtitle("Pairs side by side: the same pose as both labels have it, and how far the mesh jumps");
    for (shot, picture) in shots.iter().zip(pictures) {
        sheet = sheet.cell(picture, shot.caption.clone());
    }
    watch.event(Event::Finished);
    Ok(sheet.build())
}

fn html(motion: &Motion, info: &MotionInfo, watch: &dyn Watch) -> Result<String, JobError> {
    let mut labels = Table::new([
        Column::text("label"),
        Column::number("frames", 0),
        Column::number("controls", 0),
        Column::number("components", 0),
        Column::number("centres", 0),
        Column::number("density", 0),
        Column::text("clips"),
    ]);
    for label in &info.labels {
        let clips: Vec<String> = label.clips.iter().map(|(name, n)| format!("{name} ({n})")).collect();
        let numbers = [label.frames, label.controls, label.components, label.centres, label.rank];
        let mut row: Vec<understudy_report::html::Cell> = vec![label.label.as_str().into()];
        row.extend(numbers.map(|number| (number as f64).into()));
        row.push(clips.join(", ").as_str().into());
        labels = labels.row(row);
    }
    let mut spaces = Section::new("Latent spaces")
        .paragraph("Every curve is a clip; frames that follow one another are joined. The third dimension goes into depth.");
    for model in motion.models() {
        spaces = spaces.plot(&curves(model), &format!("The latent space of '{}'", model.label()));
    }
    let mut page = Page::new(format!("Motion of {}", motion.rig()))
        .command(format!("understudy motion info {} --page …", info.file.display()))
        .fact("rate", format!("{} per second", motion.rate()))
        .fact("controls", motion.controls().len().to_string())
        .section(Section::new("Labels").table(labels).paragraph(
            "Components are the numbers of a pose, centres those that its covariance is a sum over, density the directions that its likelihood is made of.",
        ))
        .section(spaces);
    if !info.bridges.is_empty() {
        let mut table = Table::new([
            Column::text("between"),
            Column::number("bridges", 0),
            Column::number("nearest, mm", 2),
        ]);
        for bridge in &info.bridges {
            let name = format!("{} – {}", bridge.from, bridge.to);
            table = table.row([
                name.as_str().into(),
                (bridge.bridges as f64).into(),
                f64::from(bridge.least_mm).into(),
            ]);
        }
        let mut section = Section::new("Bridges").table(table);
        match pairs(motion, watch) {
            Ok(picture) => section = section.picture(&picture, "The best-matching poses of pairs of labels"),
            Err(JobError::Stopped) => return Err(JobError::Stopped),
            Err(error) => section = section.paragraph(format!("No pictures of poses: {error}")),
        }
        page = page.section(section);
    }
    Ok(page.to_html())
}
