//! Rigs that any name or file leads to.

use crate::arrays::{numbers, rows};
use crate::problem::{bad, of_job};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods as _, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use serde_json::json;
use std::sync::Arc;
use understudy_core::{Controls, Face};
use understudy_jobs::{Silent, clips, rigs};
use understudy_rigs::{Rig as _, RigPose};

/// A rig: controls in, vertices and bones out.
#[pyclass(frozen, module = "understudy._native")]
pub struct Rig {
    pub(crate) rig: Arc<dyn understudy_rigs::Rig>,
    /// What it was opened by: jobs take it.
    #[pyo3(get)]
    source: String,
}

/// Opens a rig by name, file or address.
#[pyfunction]
pub fn open(py: Python<'_>, name: String) -> PyResult<Rig> {
    let open = py.detach(|| rigs::open(&name, &Silent)).map_err(|error| of_job(&error))?;
    Ok(Rig { rig: open.rig.into(), source: name })
}

impl Rig {
    fn evaluated(&self, controls: &[f32]) -> PyResult<RigPose> {
        let mut pose = RigPose::default();
        self.rig.evaluate(&Controls(controls.to_vec()), &mut pose).map_err(bad)?;
        Ok(pose)
    }
}

#[pymethods]
impl Rig {
    /// Name, controls, bones, clips and counts, as JSON.
    fn describe(&self) -> PyResult<String> {
        let rig = &self.rig;
        let bones: Vec<_> = rig.skeleton().map_or_else(Vec::new, |skeleton| {
            let bones = skeleton.bones().iter();
            bones.map(|bone| json!({"name": bone.name, "parent": bone.parent})).collect()
        });
        let clips: Vec<_> = rig
            .clips()
            .iter()
            .map(|clip| json!({"name": clip.name, "seconds": clip.duration, "for_test": clip.is_for_test()}))
            .collect();
        let described = json!({
            "name": rig.name(),
            "controls": rig.specs(),
            "bones": bones,
            "clips": clips,
            "vertices": rig.mesh().vertex_count(),
            "faces": rig.mesh().faces().len(),
            "segments": rig.mesh().segments().names,
            "blendshapes": rig.blendshapes().is_some(),
        });
        Ok(described.to_string())
    }

    /// The mesh at rest, `[vertices, 3]` cm.
    fn rest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let places: Vec<f32> =
            self.rig.mesh().positions().iter().flat_map(|place| place.to_array()).collect();
        let count = places.len() / 3;
        PyArray1::from_vec(py, places).reshape([count, 3])
    }

    /// Corners, `[faces, 4]`; the last of a triangle is −1.
    fn faces<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i32>>> {
        let corners: Vec<i32> =
            self.rig.mesh().faces().iter().flat_map(Face::raw).map(|corner| corner as i32).collect();
        let count = corners.len() / 4;
        PyArray1::from_vec(py, corners).reshape([count, 4])
    }

    /// Vertices of a pose, `[vertices, 3]` cm.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        controls: PyReadonlyArray1<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let values = numbers(&controls, "controls")?.to_vec();
        let pose = py.detach(|| self.evaluated(&values))?;
        let places: Vec<f32> = pose.vertices.iter().flat_map(|place| place.to_array()).collect();
        PyArray1::from_vec(py, places).reshape([pose.vertices.len(), 3])
    }

    /// World transforms of the bones of a pose, `[bones, 3, 4]` cm.
    fn evaluate_bones<'py>(
        &self,
        py: Python<'py>,
        controls: PyReadonlyArray1<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray3<f32>>> {
        let values = Controls(numbers(&controls, "controls")?.to_vec());
        let pose = py.detach(|| {
            let mut pose = RigPose::default();
            self.rig.evaluate_bones(&values, &mut pose).map(|()| pose)
        });
        let pose = pose.map_err(bad)?;
        PyArray1::from_vec(py, rows(&pose.global.0)).reshape([pose.global.0.len(), 3, 4])
    }

    /// Vertices of many poses, `[poses, vertices, 3]` cm.
    fn evaluate_many<'py>(
        &self,
        py: Python<'py>,
        controls: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray3<f32>>> {
        let poses: Vec<Controls> =
            controls.as_array().rows().into_iter().map(|row| Controls(row.to_vec())).collect();
        let (count, vertices) = (poses.len(), self.rig.mesh().vertex_count());
        let places = py.detach(|| {
            let mut places = Vec::with_capacity(count * vertices * 3);
            for batch in poses.chunks(self.rig.batch().max(1)) {
                let mut out = vec![RigPose::default(); batch.len()];
                self.rig.evaluate_batch(batch, &mut out, &mut |_| {}).map_err(|(_, error)| bad(error))?;
                let of =
                    |pose: &RigPose| pose.vertices.iter().flat_map(|v| v.to_array()).collect::<Vec<f32>>();
                out.iter().for_each(|pose| places.extend(of(pose)));
            }
            Ok::<_, PyErr>(places)
        })?;
        PyArray1::from_vec(py, places).reshape([count, vertices, 3])
    }

    /// A clip of the rig, or a file that it shall play: `[frames, controls]` and frames per second.
    #[pyo3(signature = (name, rate=None))]
    fn clip<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        rate: Option<f32>,
    ) -> PyResult<(Bound<'py, PyArray2<f32>>, f32)> {
        let sampled = py.detach(|| {
            let clip = clips::resolve(self.rig.as_ref(), name, &Silent).map_err(|error| of_job(&error))?;
            clip.sample(self.rig.specs(), rate.unwrap_or(clip.own_rate())).map_err(bad)
        })?;
        let frames: Vec<f32> = sampled.frames.iter().flat_map(|frame| frame.0.iter().copied()).collect();
        let shape = [sampled.frames.len(), self.rig.specs().len()];
        Ok((PyArray1::from_vec(py, frames).reshape(shape)?, sampled.rate))
    }
}
