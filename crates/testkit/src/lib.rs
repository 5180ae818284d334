//! For tests and benchmarks only: named tolerances, the gradient checker, slow references (the figures of tables, a
//! plain glTF evaluator), blendshape rigs of any size ([`synthetic`]), and where shared data lies.

pub mod enveloping;
pub mod figures;
pub mod gltf_reference;
pub mod gradient;
pub mod inverse;
pub mod synthetic;

use std::path::PathBuf;

/// Named, scaled tolerances: what rounding can do, not what happens to pass.
pub struct Tol;

impl Tol {
    /// Error bound of a sum of `n` f32 terms of size one: `n` half-ulps.
    pub fn f32_sum(n: usize) -> f32 {
        (n.max(1) as f32) * f32::EPSILON
    }

    /// A position of a character (up to 250 cm from the origin) after a chain of `n` f32 operations, cm.
    pub fn position_cm(n: usize) -> f32 {
        250.0 * Self::f32_sum(n)
    }
}

/// The folder of real characters and clips; `None`, with a message, where it is absent.
/// `UNDERSTUDY_DATA` overrides the usual place beside the project.
pub fn shared_data() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("UNDERSTUDY_DATA").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = std::io::Write::write_all(
        &mut std::io::stderr(),
        format!("skipped {name}: no shared data at {}\n", folder.display()).as_bytes(),
    );
    None
}
