//! The rig that a dataset was recorded from: found from any working folder, and recognised by what it does. A file of
//! the same name, or of the same topology, need not be the same rig; one that gives the recorded poses is.

use super::{OpenRig, Origin, open, open_recorded};
use crate::blender::{self, is_blend, survey_beside};
use crate::{Event, JobError, Silent, Watch};
use std::path::Path;
use understudy_core::{Controls, Skeleton};
use understudy_io::dataset::DatasetHeader;
use understudy_learn::Recording;
use understudy_rigs::external::{Address, ExternalOptions};
use understudy_rigs::{Rig, RigPose};

/// Poses that a rig is asked for.
const POSES: usize = 4;
/// How far from the recording it may be, cm and as a share of the size of the mesh: other processors round otherwise.
const TOLERANCE: (f32, f32) = (0.005, 2e-5);

/// What was recorded, as far as a rig is recognised by it.
pub(crate) struct Recorded<'a> {
    /// The dataset's folder.
    pub folder: &'a Path,
    /// What was sampled and how.
    pub header: &'a DatasetHeader,
    /// The poses.
    pub recording: &'a Recording,
}

impl Recorded<'_> {
    /// Opens the rig: `named` by the user, who is told what is wrong with it, or where the dataset says that it
    /// lies. Without one there is a loud warning: what networks see must be estimated then.
    pub fn rig(&self, named: Option<&str>, watch: &dyn Watch) -> Result<Option<Box<dyn Rig>>, JobError> {
        if let Some(name) = named {
            let rig = match self.blend(name, watch) {
                Some(opened) => opened?.rig,
                None => open(name, watch)?.rig,
            };
            return match self.difference(rig.as_ref()) {
                None => Ok(Some(rig)),
                Some(problem) => Err(JobError::unusable(
                    name,
                    format!("is not the rig of {}: {problem}", self.folder.display()),
                )),
            };
        }
        if self.header.settings.contains_key(crate::import::IMPORTED) {
            let message = "the poses were imported, so that no rig can be asked: what each network sees is estimated \
                           from them";
            watch.event(Event::Note { message });
            return Ok(None);
        }
        let mut other = None;
        for name in self.places() {
            let opened = self.blend(&name, &Silent).unwrap_or_else(|| open_recorded(&name, &Silent));
            let open = match opened {
                Ok(open) => open,
                Err(_) if !Address::is_address(&name) => continue,
                Err(error) => {
                    other = other.or(Some(error.to_string()));
                    continue;
                }
            };
            match self.difference(open.rig.as_ref()) {
                None => return Ok(Some(open.rig)),
                Some(problem) => other = other.or(Some(format!("{name} is another rig ({problem})"))),
            }
        }
        let why = other.unwrap_or_else(|| format!("'{}' is not found", self.header.rig));
        let message = format!(
            "the rig of {} is missing: {why}; what each network sees is estimated from the poses, which is less \
             accurate; name the rig with --rig",
            self.folder.display()
        );
        watch.event(Event::Warning { message: &message });
        Ok(None)
    }

    /// A Blender file, opened as it was when the poses were recorded.
    fn blend(&self, name: &str, watch: &dyn Watch) -> Option<Result<OpenRig, JobError>> {
        let survey = survey_beside(self.folder).filter(|_| is_blend(name) && Path::new(name).is_file())?;
        let workers = crate::threads::available();
        let external = ExternalOptions { workers, ..ExternalOptions::default() };
        let rig = blender::open_surveyed(Path::new(name), &survey, external, watch);
        Some(rig.map(|rig| OpenRig { rig: Box::new(rig), origin: Origin::File(name.into()) }))
    }

    /// Where the rig may be: as it was typed, where it was, and where it is if it moved with the dataset.
    fn places(&self) -> Vec<String> {
        let mut places = vec![self.header.rig.clone()];
        if let Some(file) = &self.header.rig_file {
            for path in [file.absolute.clone(), self.folder.join(&file.relative)] {
                places.push(path.to_string_lossy().into_owned());
            }
        }
        places
    }

    /// What shows that it is another rig.
    fn difference(&self, rig: &dyn Rig) -> Option<String> {
        if rig.mesh().topology_hash() != self.recording.mesh.topology_hash() {
            return Some("its mesh has another topology".into());
        }
        let specs = &self.header.controls;
        if !rig.specs().iter().map(|spec| &spec.name).eq(specs.iter().map(|spec| &spec.name)) {
            return Some("it has other controls".into());
        }
        if let Some(skeleton) = &self.recording.skeleton {
            let names = |skeleton: &Skeleton| -> Vec<String> {
                skeleton.bones().iter().map(|bone| bone.name.clone()).collect()
            };
            if rig.skeleton().map(names) != Some(names(skeleton)) {
                return Some("it has other bones".into());
            }
        }
        let mut pose = RigPose::default();
        for index in self.recording.spread(POSES) {
            let controls = Controls(self.recording.controls_of(index).to_vec());
            if let Err(error) = rig.evaluate(&controls, &mut pose) {
                return Some(format!("pose {index}: {error}"));
            }
            let truth = self.recording.vertices_of(index);
            let size = truth.iter().map(|v| v.abs().max_element()).fold(0.0, f32::max);
            let miss = truth.iter().zip(&pose.vertices).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
            if miss > TOLERANCE.0 + TOLERANCE.1 * size {
                return Some(format!("pose {index} differs by {:.2} mm", miss * 10.0));
            }
        }
        None
    }
}
