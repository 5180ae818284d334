//! Blender files as rigs. A Python program of ours (`python/`) runs inside Blender: first it surveys the file (what can be
//! moved, what moves vertices, whether the rig is fit to be learned), then workers answer by the rig protocol. Start at
//! [`open`]. Where Blender is found or installed: [`program`]; the survey and its cache: `survey`; the controls that a
//! user may edit: [`ControlsFile`].

mod controls_file;
pub mod program;
mod survey;

pub use controls_file::ControlsFile;
pub use survey::{
    BlenderFacts, HeldFacts, ObjectFacts, StrayFacts, SurveyedControl, SwitchFacts, survey_beside,
};

use crate::{Event, JobError, Watch};
use program::Program;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use survey::Survey;
use understudy_rigs::external::{Address, ExternalOptions, ExternalRig};
use understudy_rigs::{Rig as _, RigError};

/// How a Blender file is used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlenderOptions {
    /// Meshes to record, by name or with `*` and `?`; when empty, all that a rig moves.
    pub objects: Vec<String>,
    /// Controls to use: names of bones or properties, or `collection:NAME`, with `*` and `?`; when empty, every bone
    /// with a custom shape.
    pub controls: Vec<String>,
    /// Custom properties that are held at a value: `bone["property"]=1`.
    pub set: Vec<String>,
    /// Ranges of controls, to be edited: read where it exists, written otherwise.
    pub controls_file: Option<PathBuf>,
    /// Run Python scripts and driver expressions of the file.
    pub trust_scripts: bool,
    /// Record subdivided meshes, where subdivision is the file's.
    pub keep_subdivision: bool,
    /// Install Blender as a Python module, where it is not at hand.
    pub install: bool,
}

/// Whether a rig is named by a Blender file.
pub fn is_blend(name: &str) -> bool {
    !Address::is_address(name)
        && Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case("blend"))
}

/// A Blender file that answers.
pub struct OpenBlend {
    /// The rig.
    pub rig: ExternalRig,
    /// What the survey found.
    pub facts: BlenderFacts,
    /// The Blender file.
    file: PathBuf,
    /// The file that says it to workers.
    survey: PathBuf,
}

impl OpenBlend {
    /// Keeps the survey beside a dataset, so that the same rig is found again whatever options it was opened with.
    pub fn keep_survey(&self, folder: &Path) -> Result<(), JobError> {
        let bytes = understudy_io::read_bytes(&self.survey)?;
        understudy_io::write_atomic(&folder.join(crate::outputs::BLENDER_SURVEY), &bytes)?;
        survey::note_sampled(&self.file, &bytes);
        Ok(())
    }
}

/// Surveys a file and starts the first worker.
pub fn open(
    file: &Path,
    options: &BlenderOptions,
    external: ExternalOptions,
    watch: &dyn Watch,
) -> Result<OpenBlend, JobError> {
    let survey = look(file, options, watch)?;
    start(survey, external, watch)
}

/// Surveys a file and starts nothing.
pub fn look(file: &Path, options: &BlenderOptions, watch: &dyn Watch) -> Result<Survey, JobError> {
    if !file.is_file() {
        return Err(crate::inputs::not_a_file(file, "a .blend file"));
    }
    let program = Program::find(options.install, watch)?;
    let mut options = options.clone();
    let trust = survey::Trust::of(file)?;
    if options.trust_scripts {
        trust.remember();
    } else {
        // What a user allowed for this very file in `sample` holds for `learn` and `eval` too.
        options.trust_scripts = trust.is_given();
    }
    let edits = options.controls_file.as_deref().map(ControlsFile::read_if_there).transpose()?.flatten();
    let survey = Survey::make(file, &options, edits.as_ref(), program, watch)?;
    if let (Some(path), None) = (&options.controls_file, &edits) {
        ControlsFile::of(&survey.facts).write(path, file)?;
        let message = format!("{}: every control with its range, to be edited", path.display());
        watch.event(Event::Note { message: &message });
    }
    Ok(survey)
}

/// A file without options: as it was sampled last, where it was and is still the same, else with the usual options.
pub(crate) fn open_as_sampled(
    file: &Path,
    external: ExternalOptions,
    watch: &dyn Watch,
) -> Result<ExternalRig, JobError> {
    match Survey::as_sampled(file) {
        Some(path) => open_surveyed(file, &path, external, watch),
        None => Ok(open(file, &BlenderOptions::default(), external, watch)?.rig),
    }
}

/// Whether this very file was sampled on this machine.
pub(crate) fn is_known(file: &Path) -> bool {
    Survey::as_sampled(file).is_some()
}

/// A file with the survey that a dataset kept.
pub(crate) fn open_surveyed(
    file: &Path,
    survey: &Path,
    external: ExternalOptions,
    watch: &dyn Watch,
) -> Result<ExternalRig, JobError> {
    let program = Program::find(false, watch)?;
    Ok(start(Survey::read(survey, file, program)?, external, watch)?.rig)
}

fn start(survey: Survey, external: ExternalOptions, watch: &dyn Watch) -> Result<OpenBlend, JobError> {
    let address = Address::Command(survey.program.words(&["serve", &survey.path.to_string_lossy()])?);
    let file = survey.file.clone();
    let rig = ExternalRig::open(address, external).map_err(|error| match error {
        RigError::External { problem, .. } => JobError::unusable(&file, problem),
        other => JobError::unusable(&file, other),
    })?;
    crate::rigs::tell_warnings(&rig, &file.to_string_lossy(), watch);
    debug_assert!(!rig.specs().is_empty());
    Ok(OpenBlend { rig, facts: survey.facts, file, survey: survey.path })
}
