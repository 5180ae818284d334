//! The real characters: rigs built on meshes that people made and gave away. Their files are not part of
//! the project; they are looked for in a few places.

use super::{OpenRig, Origin, report};
use crate::{JobError, Watch};
use std::path::PathBuf;
use understudy_rigs::film::{self, FaceHints};

/// Names the folder of real meshes.
const VARIABLE: &str = "UNDERSTUDY_DATA";

/// The folder of real meshes, where there is one: what `UNDERSTUDY_DATA` names, or `shared/data` in or
/// beside the working folder.
pub fn data_folder() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        let folder = PathBuf::from(named);
        return folder.is_dir().then_some(folder);
    }
    ["shared/data", "../shared/data"].map(PathBuf::from).into_iter().find(|folder| folder.is_dir())
}

/// The file of a real rig.
pub(crate) fn real_file(name: &str) -> Result<PathBuf, JobError> {
    let file = match name {
        "human" => "makehuman/human.npz",
        _ => "ict-facekit/face.npz",
    };
    let missing = |place: String| {
        JobError::unusable(
            name,
            format!("needs the file {file}, which is not {place}; set {VARIABLE} to its folder"),
        )
    };
    let looked = || match std::env::var_os(VARIABLE) {
        Some(named) => format!("in {}", named.to_string_lossy()),
        None => "in ./shared/data or ../shared/data".into(),
    };
    let path = data_folder().ok_or_else(|| missing(looked()))?.join(file);
    if path.is_file() { Ok(path) } else { Err(missing(looked())) }
}

/// Opens a real rig, or says what is missing.
pub(crate) fn open_real(name: &str, watch: &dyn Watch) -> Result<OpenRig, JobError> {
    let path = real_file(name)?;
    let rig = if name == "human" {
        let real = understudy_io::real::human(&path)?;
        report(&real.conversion.to_string(), &[], &path, watch);
        film::body(name, real.mesh, real.skeleton, real.weights, Some(real.shapes))
    } else {
        let real = understudy_io::real::ict(&path)?;
        report(&real.conversion.to_string(), &[], &path, watch);
        film::face(name, real.mesh, real.shapes, &FaceHints::ict(real.landmarks))
    };
    let rig = Box::new(rig.map_err(|error| JobError::unusable(&path, error))?);
    Ok(OpenRig { rig, origin: Origin::Data(path) })
}
