//! Finds the rig that a user names: an embedded character, a real one whose data is present, or a file.
//! Start at [`open`].

mod asset_rig;
mod data;
mod recorded;
mod shape_rig;

pub use asset_rig::asset_rig;
pub use data::{data_folder, open_real_in};
pub(crate) use recorded::Recorded;
pub use shape_rig::shape_rig;

use crate::outputs::extension;
use crate::{Event, JobError, Watch};
use std::path::{Path, PathBuf};
use understudy_io::gltf::GltfAsset;
use understudy_rigs::Rig;

/// Where a rig came from.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// Made by code.
    Embedded,
    /// Built on a mesh from the data folder.
    Data(PathBuf),
    /// A glTF file; its parts, for those who need more than a rig.
    Gltf(PathBuf, Box<GltfAsset>),
    /// A blendshape archive.
    Shapes(PathBuf),
}

/// A rig with its origin.
pub struct OpenRig {
    /// The rig.
    pub rig: Box<dyn Rig>,
    /// Where it came from.
    pub origin: Origin,
}

/// The names that [`open`] knows beside files.
pub struct Names;

impl Names {
    /// Always there.
    pub const EMBEDDED: [&str; 2] = ["rook", "mira"];
    /// There when the data is.
    pub const REAL: [&str; 2] = ["human", "ict"];

    /// The names that can be opened now; says which cannot.
    pub fn present(watch: &dyn Watch) -> Vec<String> {
        let mut names: Vec<String> = Self::EMBEDDED.map(String::from).to_vec();
        for name in Self::REAL {
            match data::real_file(name) {
                Ok(_) => names.push(name.into()),
                Err(error) => watch.event(Event::Note { message: &error.to_string() }),
            }
        }
        names
    }

    /// Whether it is the name of a rig, present or not.
    pub fn contains(name: &str) -> bool {
        Self::EMBEDDED.contains(&name) || Self::REAL.contains(&name)
    }
}

/// Opens a rig by name or file. What a reader converted or skipped goes to the listener.
pub fn open(name: &str, watch: &dyn Watch) -> Result<OpenRig, JobError> {
    let failed = JobError::rig(name);
    match name {
        "rook" => {
            let rig = Box::new(understudy_characters::rook::build().map_err(failed)?);
            return Ok(OpenRig { rig, origin: Origin::Embedded });
        }
        "mira" => {
            let rig = Box::new(understudy_characters::mira::build().map_err(failed)?);
            return Ok(OpenRig { rig, origin: Origin::Embedded });
        }
        "human" | "ict" => return data::open_real(name, watch),
        _ => {}
    }
    let path = Path::new(name);
    match extension(path).as_str() {
        "glb" | "gltf" => {
            let asset = understudy_io::gltf::read(path)?;
            report(&asset.conversion.to_string(), &asset.warnings, path, watch);
            let rig = asset_rig(&stem(path), &asset).map_err(|error| JobError::unusable(path, error))?;
            Ok(OpenRig { rig: Box::new(rig), origin: Origin::Gltf(path.into(), Box::new(asset)) })
        }
        "npz" => {
            let file = understudy_io::blendshape_npz::read(path, None)?;
            report(&file.conversion.to_string(), &[], path, watch);
            let rig = shape_rig(&stem(path), file).map_err(|error| JobError::unusable(path, error))?;
            Ok(OpenRig { rig: Box::new(rig), origin: Origin::Shapes(path.into()) })
        }
        _ => Err(not_a_file(path, ".glb, .gltf or .npz")),
    }
}

/// The file or folder that a rig or any other input is read from. A character made by code has none; its name
/// stands for no file then.
pub(crate) fn source_file(name: &str) -> PathBuf {
    if Names::REAL.contains(&name) {
        return data::real_file(name).unwrap_or_default();
    }
    if Names::contains(name) { PathBuf::new() } else { name.into() }
}

/// Why something is neither a rig nor a file of a wanted kind.
pub(crate) fn not_a_file(path: &Path, wanted: &str) -> JobError {
    if path.exists() {
        return JobError::unusable(path, format!("cannot be used here; {wanted} is wanted"));
    }
    let known = [Names::EMBEDDED, Names::REAL].concat();
    let mut problem = format!("there is no such file, and no character of that name ({})", known.join(", "));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files: Vec<String> = files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if let Some(close) =
        crate::names::closest(&name, known.into_iter().chain(files.iter().map(String::as_str)))
    {
        problem += &format!("; did you mean '{close}'?");
    }
    JobError::unusable(path, problem)
}

/// Says what a reader converted, skipped or mended.
pub(crate) fn report(conversion: &str, warnings: &[String], path: &Path, watch: &dyn Watch) {
    watch.event(Event::Note { message: &format!("{}: {conversion}", path.display()) });
    for warning in warnings {
        watch.event(Event::Warning { message: &format!("{}: {warning}", path.display()) });
    }
}

/// A file's name without folder and extension.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "rig".into(), |stem| stem.to_string_lossy().into_owned())
}
