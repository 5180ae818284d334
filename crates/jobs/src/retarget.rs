//! The command `retarget`: a motion on a rig, measured. Which bones were taken for what, how well every part of the body
//! follows, which controls met their limits, and how far feet slide while they stand. Playing it is `--clip`.

use crate::clips::{MappingFile, resolve_retargeted};
use crate::outputs::check_file;
use crate::{JobError, Watch, clips, rigs};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use understudy_rigs::retarget::{RetargetReport as Report, slides};

/// What to carry over.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetargetJob {
    /// A rig by name or file.
    pub rig: String,
    /// A motion file, `FILE:CLIP`, or a mapping file.
    pub motion: String,
    /// A mapping file for the motion; its own `clip` is not read.
    pub map: Option<PathBuf>,
    /// Where to write a mapping file with everything that was found, to edit.
    pub write_map: Option<PathBuf>,
}

/// A time for which a point of the body stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    /// Such as `left ball`.
    pub point: String,
    /// Seconds.
    pub from: f32,
    /// Seconds.
    pub to: f32,
    /// How far it slides over the ground meanwhile, mm.
    pub slide_mm: f32,
}

/// What was done, and how well.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RetargetReport {
    /// The rig.
    pub rig: String,
    /// The clip's name.
    pub clip: String,
    /// Frames per second.
    pub rate: f32,
    /// Which bones were taken for what: part, the file's bone, the rig's bone.
    pub bones: Vec<[String; 3]>,
    /// What the solver reports.
    pub fit: Report,
    /// When feet and hands stand, and how far they slide.
    pub standing: Vec<Standing>,
    /// The largest slide of a foot, mm; none where no foot stands.
    pub max_foot_slide_mm: Option<f32>,
    /// How long it took.
    pub seconds: f64,
}

/// Carries the motion over and measures it on the rig's own bones.
pub fn retarget(job: &RetargetJob, watch: &dyn Watch) -> Result<RetargetReport, JobError> {
    let given = clips::file_of(&job.motion);
    let mapping = MappingFile::of(given)?;
    let (motion, mut config) = match &mapping {
        Some(mapping) => (mapping.motion(given)?, mapping.retarget.clone()),
        None => (job.motion.clone(), understudy_rigs::retarget::RetargetConfig::default()),
    };
    if let Some(path) = &job.map {
        let file = MappingFile::of(path)?;
        config = file.ok_or_else(|| JobError::unusable(path, "a mapping file ends in .toml"))?.retarget;
    }
    if let Some(path) = &job.write_map {
        check_file(path, &[&rigs::source_file(&job.rig), clips::file_of(&motion), given])?;
        if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
            return Err(JobError::unusable(path, "a mapping file ends in .toml"));
        }
    }
    let rig = rigs::open(&job.rig, watch)?.rig;
    let started = std::time::Instant::now();
    let (clip, fit) = resolve_retargeted(rig.as_ref(), &motion, &config, watch)?;
    let seconds = started.elapsed().as_secs_f64();
    let slid = slides(rig.as_ref(), &clip, &fit.contacts).map_err(JobError::rig(rig.name()))?;
    let standing: Vec<Standing> = fit
        .contacts
        .iter()
        .zip(&slid)
        .map(|(contact, slide)| Standing {
            point: contact.point.clone(),
            from: contact.from,
            to: contact.to,
            slide_mm: slide * 10.0,
        })
        .collect();
    let feet = standing.iter().filter(|standing| !standing.point.ends_with("hand"));
    let max_foot_slide_mm = feet.map(|standing| standing.slide_mm).reduce(f32::max);
    if let Some(path) = &job.write_map {
        let name = clips::file_of(&motion).canonicalize().unwrap_or_else(|_| PathBuf::from(&motion));
        config.file_bones = fit.file_bones.clone();
        config.rig_bones = fit.rig_bones.clone();
        config.scale = Some(fit.scale);
        let file = MappingFile { clip: Some(named(&motion, &name)), retarget: config };
        let text = toml::to_string(&file).map_err(|error| JobError::Machine(error.to_string()))?;
        understudy_io::write_atomic(path, text.as_bytes())?;
    }
    Ok(RetargetReport {
        rig: rig.name().into(),
        clip: clip.name.clone(),
        rate: clip.own_rate(),
        bones: fit.pairs(),
        standing,
        max_foot_slide_mm,
        seconds,
        fit,
    })
}

/// The absolute file with the clip that was chosen in it.
fn named(motion: &str, file: &Path) -> String {
    let typed = clips::file_of(motion).display().to_string();
    let inner = motion.strip_prefix(&typed).unwrap_or_default();
    format!("{}{inner}", file.display())
}
