//! Finds the rig that a user names: an embedded character, a real one whose data is present, a file, or another
//! program that speaks the rig protocol. Start at [`open`].

mod data;
mod hosted;
mod model_rig;
mod recorded;

pub(crate) use data::real_file;
pub use data::{data_folder, open_real_in};
pub(crate) use hosted::lasting;
pub use hosted::{host, release};
pub use model_rig::model_rig;
pub(crate) use recorded::Recorded;

use crate::blender::{self, is_blend};
use crate::inputs;
use crate::{Event, JobError, Watch};
use std::path::{Path, PathBuf};
use understudy_io::Scene;
use understudy_rigs::external::{Address, ExternalOptions, ExternalRig};
use understudy_rigs::{Rig, RigError};

/// What a rig can be read from.
const RIG_FILES: &str = "a .blend, .glb, .gltf, .fbx, .usda, .usdc, .obj or .bvh file, or an .npz with the arrays \
                         'neutral', 'faces', 'names' and 'deltas'";

/// Where a rig came from.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// Made by code.
    Embedded,
    /// Built on a mesh from the data folder.
    Data(PathBuf),
    /// A file.
    File(PathBuf),
    /// Another program.
    Program(Address),
    /// The program that runs us.
    Host,
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
            match real_file(name) {
                Ok(_) => names.push(name.into()),
                Err(error) => watch.event(Event::Note { message: &error.to_string() }),
            }
        }
        names
    }

    /// Whether it is the name of a rig, present or not, or where a program answers; a file otherwise.
    pub fn contains(name: &str) -> bool {
        Self::EMBEDDED.contains(&name)
            || Self::REAL.contains(&name)
            || Address::is_address(name)
            || hosted::is_hosted(name)
    }
}

/// Whether a rig is evaluated by other processes: where a program answers, or a Blender file.
pub fn is_program(name: &str) -> bool {
    Address::is_address(name) || is_blend(name)
}

/// Opens a rig by name, file or address. What a reader converted or skipped goes to the listener.
pub fn open(name: &str, watch: &dyn Watch) -> Result<OpenRig, JobError> {
    let workers = if is_blend(name) { crate::threads::available() } else { 1 };
    open_with(name, ExternalOptions { workers, ..ExternalOptions::default() }, watch)
}

/// Opens the rig that a file names: a dataset or a twin. A program is not run because a file says so: files come from
/// other people. The user may name it.
pub(crate) fn open_recorded(name: &str, watch: &dyn Watch) -> Result<OpenRig, JobError> {
    match Address::is_address(name) {
        true => Err(JobError::unusable(name, "is a program, which is run only where --rig names it")),
        false if is_blend(name) && !blender::is_known(Path::new(name)) => {
            Err(JobError::unusable(name, "is a Blender file that was not sampled here; name it with --rig"))
        }
        false => open(name, watch),
    }
}

/// [`open`] with the number of a program's workers and how long they may take.
pub fn open_with(name: &str, options: ExternalOptions, watch: &dyn Watch) -> Result<OpenRig, JobError> {
    if Address::is_address(name) {
        let address = Address::parse(name).map_err(|problem| JobError::unusable(name, problem))?;
        let rig = ExternalRig::open(address.clone(), options).map_err(|error| match error {
            RigError::External { problem, .. } => JobError::unusable(name, problem),
            other => JobError::unusable(name, other),
        })?;
        tell_warnings(&rig, name, watch);
        return Ok(OpenRig { rig: Box::new(rig), origin: Origin::Program(address) });
    }
    if hosted::is_hosted(name) {
        let gone = || JobError::unusable(name, "is no rig that this process has brought along");
        return Ok(OpenRig { rig: Box::new(hosted::find(name).ok_or_else(gone)?), origin: Origin::Host });
    }
    if is_blend(name) {
        let path = Path::new(name);
        let rig = Box::new(blender::open_as_sampled(path, options, watch)?);
        return Ok(OpenRig { rig, origin: Origin::File(path.into()) });
    }
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
    match inputs::open(path, RIG_FILES, watch)? {
        Scene::Model(model) => {
            let rig = model_rig(&inputs::stem(path), &model);
            let rig = Box::new(rig.map_err(|error| JobError::unusable(path, error))?);
            Ok(OpenRig { rig, origin: Origin::File(path.into()) })
        }
        Scene::Motion(motion) => {
            let model =
                model_rig::stick_model(&motion).map_err(|problem| JobError::unusable(path, problem))?;
            let rig = model_rig(&inputs::stem(path), &model);
            let rig = Box::new(rig.map_err(|error| JobError::unusable(path, error))?);
            Ok(OpenRig { rig, origin: Origin::File(path.into()) })
        }
        other => Err(inputs::wrong_kind(path, &other, RIG_FILES)),
    }
}

/// What a rig in another program wants its user to know.
pub(crate) fn tell_warnings(rig: &ExternalRig, name: &str, watch: &dyn Watch) {
    for warning in &rig.description().warnings {
        watch.event(Event::Warning { message: &format!("{name}: {warning}") });
    }
}

/// The file or folder that a rig or any other input is read from. A character made by code has none; its name
/// stands for no file then.
pub(crate) fn source_file(name: &str) -> PathBuf {
    if Names::REAL.contains(&name) {
        return real_file(name).unwrap_or_default();
    }
    if Names::contains(name) { PathBuf::new() } else { name.into() }
}
