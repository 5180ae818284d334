//! Mira's motion in the demo: latent spaces of some of her clips, learned in seconds, and a script that walks them.

use super::DemoConfig;
use crate::motion::{
    LabelReport, LabelSpec, LearnMotionConfig, LearnMotionReport, PlayMotionConfig, PlayMotionReport,
    latent_plot, learn, open, own_labels, play,
};
use crate::{JobError, Watch, rigs};
use understudy_io::write_atomic;
use understudy_report::html::{Cell, Column, Section, Table};
use understudy_report::plot::Plot;

/// Labels that are shown, where the character has them.
const LABELS: [&str; 3] = ["happy", "surprise", "roar"];

/// Learns, plays a script to a film, and shows both.
pub(super) fn show(
    config: &DemoConfig,
    watch: &dyn Watch,
) -> Result<(LearnMotionReport, PlayMotionReport, Section), JobError> {
    let rig = rigs::open("mira", watch)?.rig;
    let mut labels: Vec<LabelSpec> = own_labels(rig.as_ref());
    labels.sort_by_key(|spec| LABELS.iter().position(|label| *label == spec.label).unwrap_or(LABELS.len()));
    labels.truncate(LABELS.len());
    let mut learning = LearnMotionConfig {
        rig: "mira".into(),
        output: config.output.join("mira.motion"),
        labels,
        ..LearnMotionConfig::default()
    };
    learning.latent.iterations = config.motion_iterations;
    let learned = learn(&learning, watch)?;
    let motion = open(&learned.output)?;
    // Every label: its first two clips are idled around, the last one played.
    let mut script = String::from("# what the demo plays\n");
    for model in motion.models() {
        let clips = model.clips();
        let (first, last) = (&clips[0].name, &clips[clips.len() - 1].name);
        script += &format!("transition {}\nidle 1.5s around {first}, {last}\nplay {last}\n", model.label());
    }
    let path = config.output.join("mira.script.txt");
    write_atomic(&path, script.as_bytes())?;
    let played = play(
        &PlayMotionConfig {
            motion: learned.output.clone(),
            script: path,
            output: config.output.join("mira-motion.gif"),
            size: config.size.clamp(16, 256),
            ..PlayMotionConfig::default()
        },
        watch,
    )?;
    let mut table = Table::new([
        Column::text("label"),
        Column::number("clips", 0),
        Column::number("frames", 0),
        Column::number("components", 0),
        Column::number("components alone, mm", 3),
        Column::number("latent space, mm", 3),
        Column::number("s", 1),
    ]);
    for label in &learned.labels {
        let LabelReport { label: name, clips, frames, components, components_mm, latent_mm, seconds, .. } =
            label;
        let numbers = [*clips, *frames, *components].map(Cell::from);
        let rest = [*components_mm, *latent_mm, *seconds].map(Cell::from);
        table = table.row(std::iter::once(Cell::from(name.clone())).chain(numbers).chain(rest));
    }
    let story = format!(
        "Latent spaces of three dimensions, one per label, learned in {:.0} s; {} frames of a script in {}: the particle \
         walks over bridges from label to label, idles around poses and plays clips, and no seed gives the same take.",
        learned.seconds,
        played.frames,
        played.output.display()
    );
    let mut section =
        Section::new("Mira's motion").paragraph(story).table(table).code(script.trim_end().to_owned());
    for model in motion.models() {
        let plot = latent_plot(model);
        section = section.plot(&plot as &dyn Plot, &format!("The latent space of '{}'.", model.label()));
    }
    Ok((learned, played, section))
}
