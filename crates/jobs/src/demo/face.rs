//! Mira in the demo: a face twin that is trained for less than a minute, beside the original, its own coarse
//! part, a skin twin, a small differential twin and linear blend skinning. Start at [`show`].

use super::DemoConfig;
use super::cast::save;
use crate::sample::{Method, SampleConfig};
use crate::twin::data::live_rig;
use crate::twin::diff::DiffLearning;
use crate::twin::eval::pictures::{Exhibit, Gallery, Heat};
use crate::twin::eval::{EvalConfig, EvalReport, Weighed, weigh};
use crate::twin::face::FaceLearning;
use crate::twin::kinds::kind;
use crate::twin::learn::{LearnConfig, LearnReport, learn};
use crate::twin::skin::SkinLearning;
use crate::twin::{LearnDetails, Learning};
use crate::{Event, JobError, Watch};
use understudy_report::html::{Cell, Column, Section, Table};

/// Clips that the twin is tried on. Others are trained on too; the second never is.
const TEST_CLIPS: [&str; 2] = ["talk", "roar"];
/// The clip that no training pose comes from.
const UNSEEN: &str = "roar";
/// Bones of the skin beside it.
const SKIN: &str = "lbs32";

/// The skin twin of the same poses.
const SKIN_TWIN: &str = "skin twin";

/// Clips times noise without the unseen one, and the clips that the twin is tried on.
pub(super) fn datasets(config: &DemoConfig, base: &SampleConfig) -> Vec<SampleConfig> {
    let data = config.output.join("data");
    let mut out = vec![SampleConfig {
        rig: "mira".into(),
        output: data.join("mira"),
        poses: Some(config.poses * 5 / 2),
        method: Some(Method::Noise),
        exclude: vec![UNSEEN.into()],
        ..base.clone()
    }];
    out.extend(TEST_CLIPS.map(|clip| SampleConfig {
        rig: "mira".into(),
        output: data.join(format!("mira-{clip}")),
        clips: vec![clip.into()],
        rate: Some(10.0),
        ..base.clone()
    }));
    out
}

fn twin_config(config: &DemoConfig) -> LearnConfig {
    let mut face = FaceLearning::default();
    let settings = &mut face.settings;
    // More steps of fewer poses each: what little time buys most.
    settings.batch = 4;
    let [coarse, refinement] = config.face_steps;
    for (schedule, steps) in [(&mut settings.coarse, coarse), (&mut settings.refinement, refinement)] {
        *schedule = schedule.clone().with_total(steps);
        schedule.check_every = steps / 20 + 1;
    }
    let (data, output) = (config.output.join("data/mira"), config.output.join("mira.twin"));
    LearnConfig { threads: config.threads, ..LearnConfig::new(data, output, Learning::Face(face)) }
}

/// Where her skin twin lies.
pub(super) fn skin_twin(config: &DemoConfig) -> std::path::PathBuf {
    config.output.join("mira-skin.twin")
}

/// A small skin twin, in seconds.
fn skin_config(config: &DemoConfig) -> LearnConfig {
    let mut skin = SkinLearning::default();
    let settings = &mut skin.settings;
    (settings.bones, settings.poses, settings.rounds) = (32, 40, [4, 8]);
    settings.train.epochs = 30;
    let (data, output) = (config.output.join("data/mira"), skin_twin(config));
    LearnConfig { threads: config.threads, ..LearnConfig::new(data, output, Learning::Skin(skin)) }
}

/// A differential twin of the same poses, small enough to wait for: a fifth of the usual components, half the anchors.
fn differential_config(config: &DemoConfig) -> LearnConfig {
    let mut diff = DiffLearning::default();
    let settings = &mut diff.settings;
    (settings.components_percent, settings.anchors_percent) = (1.0, 1.0);
    settings.widths = vec![192; 2];
    (settings.steps, settings.anchor_steps) = (config.face_steps[0], config.face_steps[1] / 2);
    let (data, output) = (config.output.join("data/mira"), config.output.join("mira-differential.twin"));
    LearnConfig { threads: config.threads, ..LearnConfig::new(data, output, Learning::Diff(diff)) }
}

/// Learns the twins, weighs them, and shows them.
pub(super) fn show(
    config: &DemoConfig,
    watch: &dyn Watch,
) -> Result<(LearnReport, EvalReport, Section), JobError> {
    let learned = learn(&twin_config(config), watch)?;
    let skin = learn(&skin_config(config), watch)?;
    let differential = learn(&differential_config(config), watch)?;
    let data = config.output.join("data");
    let weighing = EvalConfig {
        twin: learned.output.clone(),
        test: TEST_CLIPS.map(|clip| data.join(format!("mira-{clip}"))).to_vec(),
        against: vec![(SKIN_TWIN.into(), skin.output.clone()), ("differential".into(), differential.output)],
        train: Some(data.join("mira")),
        baselines: vec![SKIN.into()],
        threads: config.threads,
        command: config.command.clone(),
        ..EvalConfig::default()
    };
    let weighed = weigh(&weighing, watch)?;
    let section = section(config, &learned, &skin, &weighed, watch)?;
    Ok((learned, weighed.report, section))
}

fn section(
    config: &DemoConfig,
    learned: &LearnReport,
    skin: &LearnReport,
    weighed: &Weighed,
    watch: &dyn Watch,
) -> Result<Section, JobError> {
    let Weighed { report, twin, exhibits, .. } = weighed;
    let networks = match &learned.details {
        LearnDetails::Face(face) => {
            [face.coarse.networks, face.refinement.as_ref().map_or(0, |stage| stage.networks)]
        }
        _ => [0, 0],
    };
    let story = format!(
        "{} networks draw offsets as maps in texture space, {} more refine the regions that move most; trained \
         for {:.0} s on {} poses of clips times noise. No pose of the roar was among them; talk was, with noise. \
         A full twin sees 25,000 poses for up to an hour. The skin twin is a small network that moves bones of its \
         own, learned from the same poses in {:.0} s; the differential twin has one network in Laplacian coordinates, at \
         a smaller budget still. Skinning has 32 bones, which are fitted to each pose: the most that it can do.",
        networks[0], networks[1], learned.seconds, learned.poses, skin.seconds
    );
    let mut section = Section::new("Mira's twin").paragraph(story).table(table(report));
    let rig = live_rig(twin, &learned.output);
    let gallery = Gallery {
        mesh: weighed.mesh(),
        colours: rig.as_ref().and_then(|rig| rig.colours()),
        subject: kind(twin).subject(),
        methods: columns(report),
        size: config.size,
    };
    let total = 2 * TEST_CLIPS.len() as u64;
    watch.event(Event::Started { what: "drawing Mira's twin", total, unit: "sheets" });
    let mut done = 0;
    for clip in TEST_CLIPS {
        let set = format!("mira-{clip}");
        let shown: Vec<&Exhibit> = exhibits.iter().filter(|exhibit| exhibit.set == set).collect();
        let heats = [(Heat::Normals, "normals", "Angles"), (Heat::Positions, "positions", "Distances")];
        for (heat, name, what) in heats {
            let sheet = gallery.sheet(&format!("Mira, {clip}"), heat, &shown);
            save(&config.output, &format!("mira-twin-{clip}-{name}"), &sheet)?;
            section = section.picture(&sheet, &format!("{clip}. {what} to the original below each face."));
            done += 1;
            watch.event(Event::Step { done });
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
    }
    watch.event(Event::Finished);
    Ok(section)
}

/// Methods by their places in the exhibits, under the names that a visitor understands.
fn columns(report: &EvalReport) -> Vec<(usize, String)> {
    report.order.iter().map(|name| shown_name(name).to_owned()).enumerate().collect()
}

fn shown_name(method: &str) -> &str {
    match method {
        "twin" => "refined",
        SKIN => "skinning, 32 bones",
        other => other,
    }
}

fn table(report: &EvalReport) -> Table {
    let mut table = Table::new([
        Column::text("clip"),
        Column::text("method"),
        Column::number("mean, mm", 2).lowest_is_best(),
        Column::number("95 %, mm", 2),
        Column::number("max, mm", 1),
        Column::number("normals, degrees", 2),
        Column::number("ms per pose", 2),
    ]);
    for (set, methods) in &report.sets {
        for name in &report.order {
            let Some(m) = methods.get(name) else { continue };
            let numbers = [m.mean_mm, m.p95_mm, m.max_mm, m.normal_deg, m.ms].map(Cell::from);
            let words = [set.trim_start_matches("mira-").to_owned(), shown_name(name).to_owned()];
            table = table.row(words.map(Cell::from).into_iter().chain(numbers));
        }
    }
    table
}
