//! A rig that is written in Python: the rig protocol without a second process. What it says about itself is the protocol's
//! description; its poses come from a function.

use crate::arrays::affine;
use crate::problem::bad;
use numpy::{PyArray1, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::prelude::*;
use std::sync::Arc;
use understudy_core::{Clip, ControlSpecs, Controls, Mesh, Skeleton, SkinWeights, Vec3};
use understudy_jobs::rigs;
use understudy_rigs::external::Description;
use understudy_rigs::{Rig, RigError, RigPose};

struct HostedRig {
    description: Description,
    evaluate: Py<PyAny>,
}

/// Makes a rig known under `host:NAME#NUMBER`, which is given back. `description` is the protocol's JSON; `evaluate` takes an array of
/// controls and gives vertices `[n, 3]` and, of a rig with bones, their world transforms `[J, 3, 4]`, both of f32.
#[pyfunction]
pub fn host(name: &str, description: &str, evaluate: Py<PyAny>) -> PyResult<String> {
    let description = Description::parse(description.as_bytes()).map_err(bad)?;
    Ok(rigs::host(name, Arc::new(HostedRig { description, evaluate })))
}

/// Forgets it.
#[pyfunction]
pub fn release(name: &str) {
    rigs::release(name);
}

impl HostedRig {
    fn failed(&self, problem: impl ToString) -> RigError {
        let problem = problem.to_string();
        // An exception's text may have several lines.
        let problem = problem.lines().next().unwrap_or_default().to_owned();
        RigError::External { rig: self.description.name.clone(), problem }
    }

    fn ask(&self, py: Python<'_>, controls: &Controls, out: &mut RigPose) -> PyResult<()> {
        let scales = &self.description.control_scale;
        let values = controls.0.iter().zip(scales).map(|(value, scale)| value * scale);
        let answer = self.evaluate.bind(py).call1((PyArray1::from_iter(py, values),))?;
        let (vertices, bones): (PyReadonlyArray2<'_, f32>, Option<PyReadonlyArray3<'_, f32>>) =
            answer.extract()?;
        let (vertices, want) = (vertices.as_array(), self.description.mesh.vertex_count());
        if vertices.shape() != [want, 3] {
            return Err(bad(format!("vertices have shape {:?}, [{want}, 3] expected", vertices.shape())));
        }
        let space = &self.description.space;
        out.vertices.clear();
        out.vertices
            .extend(vertices.rows().into_iter().map(|row| space.point(Vec3::new(row[0], row[1], row[2]))));
        if let Some(vertex) = out.vertices.iter().position(|vertex| !vertex.is_finite()) {
            return Err(bad(format!("vertex {vertex} is not finite")));
        }
        out.global.0.clear();
        let count = self.description.skeleton.as_ref().map_or(0, Skeleton::len);
        let given = bones.as_ref().map_or(0, |bones| bones.as_array().shape()[0]);
        if given != count {
            return Err(bad(format!("{given} bones, {count} expected")));
        }
        if let Some(bones) = bones {
            let bones = bones.as_array();
            if bones.shape()[1..] != [3, 4] {
                return Err(bad(format!("bones have shape {:?}, [{count}, 3, 4] expected", bones.shape())));
            }
            for bone in bones.outer_iter() {
                let rows: Vec<f32> = bone.iter().copied().collect();
                if rows.iter().any(|number| !number.is_finite()) {
                    return Err(bad(format!("bone {} is not finite", out.global.0.len())));
                }
                out.global.0.push(space.bone(&affine(&rows)));
            }
        }
        Ok(())
    }
}

impl Rig for HostedRig {
    fn name(&self) -> &str {
        &self.description.name
    }

    fn specs(&self) -> &ControlSpecs {
        &self.description.specs
    }

    fn mesh(&self) -> &Mesh {
        &self.description.mesh
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        self.description.skeleton.as_ref()
    }

    fn skin_weights(&self) -> Option<&SkinWeights> {
        self.description.weights.as_ref()
    }

    fn clips(&self) -> &[Clip] {
        &self.description.clips
    }

    fn evaluate(&self, controls: &Controls, out: &mut RigPose) -> Result<(), RigError> {
        self.description.specs.check(controls)?;
        Python::attach(|py| self.ask(py, controls, out).map_err(|error| self.failed(error.value(py))))
    }

    fn evaluate_from(&self, _: &[Vec3], _: &Controls, _: &mut RigPose) -> Result<(), RigError> {
        let what = "be posed from another rest mesh: it is written in Python";
        Err(RigError::Unsupported { rig: self.description.name.clone(), what })
    }
}
