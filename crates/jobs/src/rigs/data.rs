//! The real characters: rigs built on meshes that people made and gave away. Their files are not part of
//! the project; they are looked for in a few places.

use super::{OpenRig, Origin};
use crate::inputs::report;
use crate::{JobError, Watch};
use std::path::{Path, PathBuf};
use understudy_characters::film::{self, FaceHints};

/// Names the folder of real meshes.
const VARIABLE: &str = "UNDERSTUDY_DATA";

/// The folder of real meshes, where there is one: what `UNDERSTUDY_DATA` names, or `shared/data` in the working
/// folder or one above it.
pub fn data_folder() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        let folder = PathBuf::from(named);
        return folder.is_dir().then_some(folder);
    }
    let beside = "shared/data";
    // The usual places first, as they are typed: paths are shown to people.
    let usual =
        [PathBuf::from(beside), Path::new("..").join(beside)].into_iter().find(|folder| folder.is_dir());
    let above = || {
        let here = std::env::current_dir().ok()?;
        here.ancestors().map(|folder| folder.join(beside)).find(|folder| folder.is_dir())
    };
    usual.or_else(above)
}

/// The file of a real rig, inside the data folder.
fn file_of(name: &str) -> &'static str {
    match name {
        "human" => "makehuman/human.npz",
        _ => "ict-facekit/face.npz",
    }
}

/// The file of a real rig, where it is to be found.
pub(crate) fn real_file(name: &str) -> Result<PathBuf, JobError> {
    let file = file_of(name);
    let path = data_folder().map(|folder| folder.join(file)).filter(|path| path.is_file());
    path.ok_or_else(|| {
        let looked = match std::env::var_os(VARIABLE) {
            Some(named) => named.to_string_lossy().into_owned(),
            None => "shared/data of this folder or of one above it".into(),
        };
        let problem =
            format!("needs the file {file}, which is not in {looked}; set {VARIABLE} to its folder");
        JobError::unusable(name, problem)
    })
}

/// Opens a real rig (`human` or `ict`) from a data folder of the caller's choice.
pub fn open_real_in(name: &str, folder: &Path, watch: &dyn Watch) -> Result<OpenRig, JobError> {
    open_file(name, folder.join(file_of(name)), watch)
}

/// Opens a real rig, or says what is missing.
pub(crate) fn open_real(name: &str, watch: &dyn Watch) -> Result<OpenRig, JobError> {
    open_file(name, real_file(name)?, watch)
}

fn open_file(name: &str, path: PathBuf, watch: &dyn Watch) -> Result<OpenRig, JobError> {
    let rig = if name == "human" {
        let real = understudy_io::real::human(&path)?;
        report(Some(&real.conversion), &[], &path, watch);
        film::body(name, real.mesh, real.skeleton, real.weights, Some(real.shapes))
    } else {
        let real = understudy_io::real::ict(&path)?;
        report(Some(&real.conversion), &[], &path, watch);
        film::face(name, real.mesh, real.shapes, &FaceHints::ict(real.landmarks))
    };
    let rig = Box::new(rig.map_err(|error| JobError::unusable(&path, error))?);
    Ok(OpenRig { rig, origin: Origin::Data(path) })
}
