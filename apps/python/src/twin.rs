//! Twins and their players.

use crate::arrays::{bones, crowd_mut, numbers, places, places_mut, rows, rows_of};
use crate::problem::bad;
use numpy::{
    PyArray1, PyArray2, PyArray3, PyArrayMethods as _, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3,
    PyReadwriteArray1, PyReadwriteArray2, PyReadwriteArray3,
};
use pyo3::prelude::*;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use understudy_core::{Affine3A, ControlSpecs, Face, Vec3};
use understudy_runtime::Pose;
use understudy_runtime::ik::{Correction, PointIk};

/// A twin, loaded and checked.
#[pyclass(frozen, module = "understudy._native")]
pub struct Twin {
    twin: understudy_runtime::Twin,
    points: Option<Arc<PointIk>>,
}

#[pymethods]
impl Twin {
    /// Reads a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let named = |problem: String| bad(format!("{}: {problem}", path.display()));
        let bytes = std::fs::read(&path).map_err(|error| named(error.to_string()))?;
        py.detach(|| Self::of(&bytes)).map_err(named)
    }

    /// Reads a file's bytes.
    #[staticmethod]
    fn parse(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        py.detach(|| Self::of(bytes)).map_err(bad)
    }

    /// Everything that it says about itself, as JSON.
    fn describe(&self) -> PyResult<String> {
        let twin = &self.twin;
        let points: Vec<&str> =
            self.points.iter().flat_map(|points| points.points()).map(|point| point.name.as_str()).collect();
        let described = json!({
            "kind": twin.method(),
            "vertices": twin.vertex_count(),
            "faces": twin.faces().len(),
            "network_bytes": twin.network_bytes(),
            "controls": twin.posing_controls(),
            "header": serde_json::to_value(twin.header()).map_err(bad)?,
            "points": points,
        });
        Ok(described.to_string())
    }

    /// Corners, `[faces, 4]`; the last of a triangle is −1.
    fn faces<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i32>>> {
        let corners: Vec<i32> =
            self.twin.faces().iter().flat_map(Face::raw).map(|corner| corner as i32).collect();
        let count = corners.len() / 4;
        PyArray1::from_vec(py, corners).reshape([count, 4])
    }

    /// World transforms of the bones at rest, `[bones, 3, 4]` cm.
    fn rest_bones<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f32>>> {
        let bones = self.twin.rest_bones();
        PyArray1::from_vec(py, rows(bones)).reshape([bones.len(), 3, 4])
    }

    /// Memory to play it with.
    #[pyo3(signature = (threads=1))]
    fn player(&self, threads: usize) -> Player {
        let player = self.twin.player(threads.clamp(1, 1024));
        Player { rest: self.twin.rest_bones().to_vec(), player }
    }

    /// Memory to pose it by its points.
    fn solver(&self) -> PyResult<PointSolver> {
        let none = || bad("the twin has no points to be posed by: see `understudy learn ik`");
        Ok(PointSolver { solver: self.points.as_ref().ok_or_else(none)?.solver() })
    }
}

impl Twin {
    fn of(bytes: &[u8]) -> Result<Self, String> {
        let twin = understudy_runtime::Twin::parse(bytes).map_err(|error| error.to_string())?;
        let points = PointIk::read(bytes, &twin).map_err(|error| error.to_string())?.map(Arc::new);
        Ok(Self { twin, points })
    }
}

/// A twin with the memory to play it: one per thread.
#[pyclass(module = "understudy._native")]
pub struct Player {
    player: understudy_runtime::Player,
    rest: Vec<Affine3A>,
}

#[pymethods]
impl Player {
    /// Moves the vertices by controls alone.
    fn pose_controls(
        &mut self,
        py: Python<'_>,
        controls: PyReadonlyArray1<'_, f32>,
        mut out: PyReadwriteArray2<'_, f32>,
    ) -> PyResult<()> {
        let (controls, out) = (numbers(&controls, "controls")?, places_mut(&mut out, "out")?);
        py.detach(|| self.player.pose(Pose::Controls(controls), out)).map_err(bad)
    }

    /// Moves the vertices by bones and the controls beside them.
    fn pose_bones(
        &mut self,
        py: Python<'_>,
        matrices: PyReadonlyArray3<'_, f32>,
        extras: PyReadonlyArray1<'_, f32>,
        mut out: PyReadwriteArray2<'_, f32>,
    ) -> PyResult<()> {
        let (bones, extras) = (bones(&matrices, "bones")?, numbers(&extras, "extras")?);
        let out = places_mut(&mut out, "out")?;
        py.detach(|| self.player.pose(Pose::Bones { bones: &bones, extras }, out)).map_err(bad)
    }

    /// Moves the vertices for many poses by controls, `[poses, controls]`.
    fn crowd(
        &mut self,
        py: Python<'_>,
        controls: PyReadonlyArray2<'_, f32>,
        mut out: PyReadwriteArray3<'_, f32>,
    ) -> PyResult<()> {
        let (poses, controls) = rows_of(&controls, "controls")?;
        let (count, out) = crowd_mut(&mut out, "out")?;
        if count != poses {
            return Err(bad(format!("out: {count} poses, {poses} expected")));
        }
        py.detach(|| self.player.crowd(Pose::Controls(controls), out)).map_err(bad)
    }

    /// Unit normals of the pose that was played last.
    fn normals(
        &mut self,
        py: Python<'_>,
        vertices: PyReadonlyArray2<'_, f32>,
        mut out: PyReadwriteArray2<'_, f32>,
    ) -> PyResult<()> {
        let (vertices, out) = (places(&vertices, "vertices")?, places_mut(&mut out, "out")?);
        py.detach(|| self.player.normals(vertices, out)).map_err(bad)
    }

    /// The derivative of a loss by the controls, from its derivative by the vertices.
    fn gradient(
        &mut self,
        py: Python<'_>,
        controls: PyReadonlyArray1<'_, f32>,
        by_vertices: PyReadonlyArray2<'_, f32>,
        mut out: PyReadwriteArray1<'_, f32>,
    ) -> PyResult<()> {
        let (controls, slopes) = (numbers(&controls, "controls")?, places(&by_vertices, "by_vertices")?);
        let want = self.player.twin().vertex_count();
        if slopes.len() != want {
            return Err(bad(format!("by_vertices: {} entries, {want} expected", slopes.len())));
        }
        let out = out.as_slice_mut().map_err(|_| bad("out: the array is not contiguous"))?;
        let given = |_: &[Vec3], to: &mut [Vec3]| to.copy_from_slice(slopes);
        py.detach(|| self.player.gradient(Pose::Controls(controls), given, out)).map_err(bad)
    }

    /// World transforms of the bones that controls give, `[bones, 3, 4]` cm.
    fn bones<'py>(
        &mut self,
        py: Python<'py>,
        controls: PyReadonlyArray1<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray3<f32>>> {
        let controls = numbers(&controls, "controls")?;
        let bones = self.player.pose_bones(controls).map_err(bad)?;
        PyArray1::from_vec(py, rows(bones)).reshape([self.rest.len(), 3, 4])
    }

    /// How many controls lie beside the bones.
    fn extra_count(&self) -> usize {
        self.player.twin().header().inputs.controls.len()
    }

    /// How many controls pose the twin alone.
    fn control_count(&self) -> usize {
        self.player.twin().posing_controls().map_or(0, ControlSpecs::len)
    }
}

/// Controls from the places of points.
#[pyclass(module = "understudy._native")]
pub struct PointSolver {
    solver: understudy_runtime::ik::PointSolver,
}

#[pymethods]
impl PointSolver {
    /// Where the points rest, `[points, 3]` cm.
    fn rest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let rest: Vec<f32> = self.solver.ik().rest().iter().flat_map(|place| place.to_array()).collect();
        let count = rest.len() / 3;
        PyArray1::from_vec(py, rest).reshape([count, 3])
    }

    /// Controls that bring the points to about their targets.
    fn solve<'py>(
        &mut self,
        py: Python<'py>,
        targets: PyReadonlyArray2<'py, f32>,
        corrections: usize,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let targets = places(&targets, "targets")?;
        let mut controls = vec![0.0; self.solver.control_count()];
        py.detach(|| {
            self.solver.solve(targets, &mut controls)?;
            if corrections > 0 {
                let how = Correction { steps: corrections.min(100), ..Correction::default() };
                self.solver.correct(targets, &[], &how, &mut controls)?;
            }
            Ok::<_, understudy_runtime::PoseError>(())
        })
        .map_err(bad)?;
        Ok(PyArray1::from_vec(py, controls))
    }
}
