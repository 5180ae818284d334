//! What is posed: a rig with limbs, a twin that follows points, or both.

use super::unknown;
use crate::twin::data::live_rig;
use crate::{JobError, Watch, rigs};
use std::path::Path;
use std::sync::Arc;
use understudy_core::{ControlSpecs, Controls, Mesh, MeshParts, Skeleton, Vec3};
use understudy_io::Format;
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::ik::{Handles, PointIk, Spelling};
use understudy_runtime::{Player, Pose, Twin};

/// What is posed.
pub(crate) struct Subject {
    name: String,
    rig: Option<Box<dyn Rig>>,
    twin: Option<(Twin, Player)>,
    ik: Option<Arc<PointIk>>,
    /// Empty without bones.
    handles: Handles,
    pose: RigPose,
}

impl Subject {
    /// Opens a rig or a twin; `limbs` is a file that names bones.
    pub fn open(name: &str, limbs: Option<&Path>, watch: &dyn Watch) -> Result<Self, JobError> {
        let path = Path::new(name);
        let mut subject = Self {
            name: name.into(),
            rig: None,
            twin: None,
            ik: None,
            handles: Handles::default(),
            pose: RigPose::default(),
        };
        if Format::of(path) == Some(Format::Twin) {
            let bytes = understudy_io::read_bytes(path)?;
            let bad = |error| JobError::unusable(path, error);
            let twin = Twin::parse(&bytes).map_err(bad)?;
            subject.ik = PointIk::read(&bytes, &twin).map_err(bad)?.map(Arc::new);
            subject.rig = live_rig(&twin, path).filter(|rig| same_controls(rig.as_ref(), &twin));
            let player = twin.player(1);
            if subject.rig.is_none() && !twin.header().inputs.bones.is_empty() {
                return Err(JobError::unusable(path, "is posed by bones, and its rig is not at hand"));
            }
            subject.twin = Some((twin, player));
        } else {
            subject.rig = Some(rigs::open(name, watch)?.rig);
        }
        if let Some(skeleton) = subject.rig.as_ref().and_then(|rig| rig.skeleton()) {
            let bones: Vec<(&str, Option<usize>)> =
                skeleton.bones().iter().map(|bone| (bone.name.as_str(), bone.parent)).collect();
            let specs = subject.specs();
            subject.handles = match limbs {
                None => Handles::find(bones).moved_by(specs, skeleton),
                Some(file) => {
                    let spelling: Spelling = crate::inputs::toml_file(file)?;
                    let handles = Handles::spelled(&bones, &spelling)
                        .map_err(|problem| JobError::unusable(file, problem))?
                        .moved_by(specs, skeleton);
                    let known = handles.names();
                    let spelled = spelling.limbs.keys().map(String::as_str);
                    let torso = spelling.torso.as_ref().map(|_| "torso");
                    if let Some(still) = spelled.chain(torso).find(|name| !known.contains(name)) {
                        let problem = format!("{still}: no control of {name} moves these bones");
                        return Err(JobError::unusable(file, problem));
                    }
                    handles
                }
            };
        }
        Ok(subject)
    }

    pub fn rig(&self) -> Option<&dyn Rig> {
        self.rig.as_deref()
    }

    /// Bones and handles, where it has some.
    pub fn limbs(&self) -> Option<(&Skeleton, &Handles)> {
        let skeleton = self.rig.as_ref()?.skeleton()?;
        (!self.handles.names().is_empty()).then_some((skeleton, &self.handles))
    }

    pub fn ik(&self) -> Option<&Arc<PointIk>> {
        self.ik.as_ref()
    }

    /// All controls that a pose has.
    pub fn specs(&self) -> &ControlSpecs {
        match (&self.rig, &self.twin) {
            (Some(rig), _) => rig.specs(),
            (None, Some((twin, _))) => &twin.header().inputs.controls,
            (None, None) => unreachable!("one of them was opened"),
        }
    }

    /// The vertices of a pose: the rig's where it is at hand, else the twin's.
    pub fn vertices(&mut self, controls: &Controls) -> Result<Vec<Vec3>, JobError> {
        match (&self.rig, &mut self.twin) {
            (Some(rig), _) => {
                rig.evaluate(controls, &mut self.pose).map_err(JobError::rig(rig.name()))?;
                Ok(self.pose.vertices.clone())
            }
            (None, Some((twin, player))) => {
                let mut vertices = vec![Vec3::ZERO; twin.vertex_count()];
                player
                    .pose(Pose::Controls(&controls.0), &mut vertices)
                    .map_err(|error| JobError::unusable(&self.name, error))?;
                Ok(vertices)
            }
            (None, None) => unreachable!("one of them was opened"),
        }
    }

    /// The mesh that the vertices belong to.
    pub fn mesh(&mut self) -> Result<Mesh, JobError> {
        if let Some(rig) = &self.rig {
            return Ok(rig.mesh().clone());
        }
        let positions = self.vertices(&self.specs().defaults())?;
        let faces = self.twin.as_ref().map_or_else(Vec::new, |(twin, _)| twin.faces().to_vec());
        let parts = MeshParts { positions, faces, ..MeshParts::default() };
        parts.build().map_err(|error| JobError::unusable(&self.name, error))
    }

    pub fn check_handle(&self, option: &str, name: &str) -> Result<(), JobError> {
        let known = self.limbs().map(|(_, handles)| handles.names()).unwrap_or_default();
        match known.contains(&name) {
            true => Ok(()),
            false if known.is_empty() && option != "targets" => Err(self.no_limbs()),
            false => Err(unknown("handle", name, &self.name, &known)),
        }
    }

    pub fn check_point(&self, name: &str, coordinates: usize) -> Result<(), JobError> {
        let Some(ik) = &self.ik else {
            let problem = match self.twin {
                Some(_) => "has not learned to follow points; `understudy learn ik` teaches it",
                None => "points are followed by a twin: name one that `understudy learn ik` wrote",
            };
            return Err(JobError::unusable(&self.name, problem));
        };
        let known: Vec<&str> = ik.points().iter().map(|point| point.name.as_str()).collect();
        if !known.contains(&name) {
            return Err(unknown("point", name, &self.name, &known));
        }
        if coordinates < ik.dimensions() {
            return Err(JobError::setting(
                format!("point '{name}'"),
                "the twin follows points in space: X,Y,Z are wanted",
            ));
        }
        Ok(())
    }

    pub fn no_limbs(&self) -> JobError {
        let problem = "no limbs that its controls move are found by the names of its bones; --limbs FILE.toml names them, \
                       and a face follows points through a twin that `understudy learn ik` taught";
        JobError::unusable(&self.name, problem)
    }

    pub fn nothing_to_move(&self) -> JobError {
        match (&self.rig, &self.twin) {
            (_, Some(_)) => {
                let problem =
                    "has neither limbs nor points; `understudy learn ik` teaches it to follow points";
                JobError::unusable(&self.name, problem)
            }
            _ => self.no_limbs(),
        }
    }
}

/// Whether a pose of the twin is one of the rig, control by control.
fn same_controls(rig: &dyn Rig, twin: &Twin) -> bool {
    let own = &twin.header().inputs.controls;
    !twin.header().inputs.bones.is_empty()
        || (own.len() == rig.specs().len()
            && own.iter().zip(rig.specs().iter()).all(|(a, b)| a.name == b.name))
}
