//! The Python package's native half: rigs, jobs, twins and the inverse rig, with NumPy arrays in and out. What people import
//! is `python/understudy`, which is written over this. Start at `job.rs` for how long work runs, listens and stops.

mod arrays;
mod hosted;
mod inverse;
mod job;
mod problem;
mod rig;
mod twin;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("UnderstudyError", module.py().get_type::<problem::UnderstudyError>())?;
    module.add("BadInputError", module.py().get_type::<problem::BadInputError>())?;
    module.add_class::<rig::Rig>()?;
    module.add_class::<twin::Twin>()?;
    module.add_class::<twin::Player>()?;
    module.add_class::<twin::PointSolver>()?;
    module.add_class::<inverse::InverseRig>()?;
    module.add_class::<inverse::Solver>()?;
    module.add_function(wrap_pyfunction!(job::run, module)?)?;
    module.add_function(wrap_pyfunction!(job::defaults, module)?)?;
    module.add_function(wrap_pyfunction!(rig::open, module)?)?;
    module.add_function(wrap_pyfunction!(hosted::host, module)?)?;
    module.add_function(wrap_pyfunction!(hosted::release, module)?)
}
