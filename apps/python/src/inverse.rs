//! The inverse rig: weights from meshes.

use crate::arrays::places;
use crate::problem::{bad, of_job};
use crate::rig::Rig;
use numpy::{PyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use understudy_jobs::{Silent, invert};
use understudy_solve::inverse_rig;

/// A rig, tabulated once.
#[pyclass(frozen, module = "understudy._native")]
pub struct InverseRig {
    inverse: inverse_rig::InverseRig,
}

#[pymethods]
impl InverseRig {
    /// Of a rig with blendshapes, or of one whose controls act like them.
    #[new]
    fn new(py: Python<'_>, rig: &Rig) -> PyResult<Self> {
        let inverse = py.detach(|| {
            let shapes = invert::shapes_of(rig.rig.as_ref(), &Silent).map_err(|error| of_job(&error))?;
            inverse_rig::InverseRig::prepare(&shapes).map_err(bad)
        })?;
        Ok(Self { inverse })
    }

    /// Names of the weights, in their order.
    fn names(&self) -> Vec<String> {
        self.inverse.shape_names().to_vec()
    }

    /// Settings as JSON, what is missing is usual.
    fn solver(&self, settings: &str) -> PyResult<Solver> {
        let settings: inverse_rig::InverseSettings = serde_json::from_str(settings).map_err(bad)?;
        Ok(Solver { solver: self.inverse.solver(&settings).map_err(bad)? })
    }
}

/// One frame after the other.
#[pyclass(module = "understudy._native")]
pub struct Solver {
    solver: inverse_rig::Solver,
}

#[pymethods]
impl Solver {
    /// Weights of a mesh `[vertices, 3]` in cm, and how the solve went, as JSON.
    fn solve<'py>(
        &mut self,
        py: Python<'py>,
        mesh: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, String)> {
        let target = places(&mesh, "mesh")?;
        let report = py.detach(|| self.solver.solve(target)).map_err(bad)?;
        let report = serde_json::to_string(&report).map_err(bad)?;
        Ok((PyArray1::from_slice(py, self.solver.weights()), report))
    }
}
