//! What one tab shows: a rig, its twin where one is chosen, its skinning; each evaluated for the pose that the page asks
//! for, with the time that it took. Start at [`Stage::answer`].

use crate::error::Refusal;
use crate::library::Loaded;
use crate::packet::{BONES, ORIGINAL, POSE, Packet, PoseRequest, SKINNING, TWIN};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;
use understudy_core::{Affine3A, Controls, Vec3};
use understudy_rigs::RigPose;
use understudy_runtime::{Player, Pose, Twin};

/// A tab's stage. Nothing is allocated per pose but the answer.
pub(crate) struct Stage {
    loaded: Arc<Loaded>,
    pose: RigPose,
    twin: Option<PlayedTwin>,
    matrices: Vec<Affine3A>,
    skinned: Vec<Vec3>,
}

impl Stage {
    /// With a twin beside the rig, where one is chosen; it must be of the same mesh.
    pub fn new(loaded: Arc<Loaded>, twin: Option<Twin>) -> Result<Self, Refusal> {
        let twin = twin.map(|twin| PlayedTwin::new(&loaded, twin)).transpose()?;
        let skinned = vec![Vec3::ZERO; loaded.rig.mesh().vertex_count()];
        Ok(Self { loaded, pose: RigPose::default(), twin, matrices: Vec::new(), skinned })
    }

    /// About the twin, for the page.
    pub fn twin_facts(&self) -> Option<Value> {
        let twin = self.twin.as_ref()?.player.twin();
        Some(json!({
            "kind": twin.method(),
            "rig": twin.header().rig,
            "vertices": twin.vertex_count(),
            "bones": twin.header().inputs.bones.len(),
            "controls": twin.header().inputs.controls.iter().map(|spec| &spec.name).collect::<Vec<_>>(),
            "poses": twin.header().training.poses,
        }))
    }

    /// Evaluates the views that are asked for. The answer: `[kind, number, views, vertices, bones]`, three times in ms as
    /// `f32` (original, twin, skinning), the vertices of each view in the order of its bits, the bones last.
    pub fn answer(&mut self, request: PoseRequest) -> Result<Vec<u8>, String> {
        let rig = self.loaded.rig.as_ref();
        let mut views = request.views;
        let skin = rig.skeleton().zip(rig.skin_weights());
        if self.twin.is_none() {
            views &= !TWIN;
        }
        if skin.is_none() {
            views &= !SKINNING;
        }
        let controls = Controls(request.controls);
        rig.specs().check(&controls).map_err(|error| error.to_string())?;
        let mut times = [0.0f32; 3];
        let by_bones = self.twin.as_ref().is_some_and(PlayedTwin::wants_bones);
        if views & (ORIGINAL | SKINNING | BONES) != 0 || (views & TWIN != 0 && by_bones) {
            let start = Instant::now();
            rig.evaluate(&controls, &mut self.pose).map_err(|error| error.to_string())?;
            times[0] = milliseconds(start);
        }
        if let Some(twin) = self.twin.as_mut().filter(|_| views & TWIN != 0) {
            times[1] = twin.play(&controls, &self.pose.global.0).map_err(|error| error.to_string())?;
        }
        if let Some((skeleton, weights)) = skin.filter(|_| views & SKINNING != 0) {
            let start = Instant::now();
            // Linear blend skinning with the rig's own weights: what an engine would show of it without any twin.
            skeleton.skinning_matrices(&self.pose.global, &mut self.matrices);
            weights.linear_blend(&self.matrices, rig.mesh().positions(), &mut self.skinned);
            times[2] = milliseconds(start);
        }
        let (vertices, bones) = (rig.mesh().vertex_count(), self.pose.global.0.len());
        let mut packet = Packet::default();
        packet.numbers(&[POSE, request.number, views, vertices as u32, bones as u32]);
        packet.floats(times);
        if views & ORIGINAL != 0 {
            packet.points(&self.pose.vertices);
        }
        if let Some(twin) = self.twin.as_ref().filter(|_| views & TWIN != 0) {
            packet.points(&twin.vertices);
        }
        if views & SKINNING != 0 {
            packet.points(&self.skinned);
        }
        if views & BONES != 0 {
            packet.transforms(&self.pose.global.0);
        }
        Ok(packet.finish())
    }
}

/// A twin, and where its inputs are among the rig's.
struct PlayedTwin {
    player: Player,
    /// For every bone of the twin the rig's.
    bones_of: Vec<usize>,
    /// For every control of the twin the rig's.
    controls_of: Vec<usize>,
    bones: Vec<Affine3A>,
    controls: Vec<f32>,
    vertices: Vec<Vec3>,
}

impl PlayedTwin {
    fn new(loaded: &Loaded, twin: Twin) -> Result<Self, Refusal> {
        let rig = loaded.rig.as_ref();
        if twin.header().topology_hash != rig.mesh().topology_hash() {
            let message = format!(
                "the twin moves another mesh ({} vertices) than '{}' ({})",
                twin.vertex_count(),
                loaded.name,
                rig.mesh().vertex_count()
            );
            return Err(Refusal::bad(message));
        }
        let inputs = &twin.header().inputs;
        let lacks = |what: &str, name: &str| {
            Refusal::bad(format!("'{}' has no {what} '{name}', which the twin needs", loaded.name))
        };
        let bone = |name: &str| {
            rig.skeleton().and_then(|skeleton| skeleton.find(name)).ok_or_else(|| lacks("bone", name))
        };
        let control = |name: &str| rig.specs().find(name).ok_or_else(|| lacks("control", name));
        let bones_of: Vec<usize> = inputs.bones.iter().map(|b| bone(&b.name)).collect::<Result<_, _>>()?;
        let controls_of: Vec<usize> =
            inputs.controls.iter().map(|spec| control(&spec.name)).collect::<Result<_, _>>()?;
        Ok(Self {
            bones: vec![Affine3A::IDENTITY; bones_of.len()],
            controls: vec![0.0; controls_of.len()],
            vertices: vec![Vec3::ZERO; twin.vertex_count()],
            player: twin.player(1),
            bones_of,
            controls_of,
        })
    }

    fn wants_bones(&self) -> bool {
        !self.bones_of.is_empty()
    }

    /// Poses it; gives the milliseconds.
    fn play(
        &mut self,
        controls: &Controls,
        bones: &[Affine3A],
    ) -> Result<f32, understudy_runtime::PoseError> {
        self.controls.iter_mut().zip(&self.controls_of).for_each(|(own, of)| *own = controls.0[*of]);
        self.bones.iter_mut().zip(&self.bones_of).for_each(|(own, of)| *own = bones[*of]);
        let pose = match self.bones_of.is_empty() {
            true => Pose::Controls(&self.controls),
            false => Pose::Bones { bones: &self.bones, extras: &self.controls },
        };
        let start = Instant::now();
        self.player.pose(pose, &mut self.vertices)?;
        Ok(milliseconds(start))
    }
}

fn milliseconds(start: Instant) -> f32 {
    (start.elapsed().as_secs_f64() * 1e3) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::Library;
    use understudy_core::Skeleton;

    fn floats(bytes: &[u8]) -> Vec<f32> {
        bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    }

    #[test]
    fn answers_hold_the_rigs_own_vertices() {
        let loaded = Library::default().open("mira", "mira").expect("it is embedded");
        let mut stage = Stage::new(Arc::clone(&loaded), None).expect("no twin");
        let specs = loaded.rig.specs();
        let controls = Controls(specs.iter().map(|spec| spec.default.midpoint(spec.high)).collect());
        let request = PoseRequest { number: 5, views: ORIGINAL | TWIN | BONES, controls: controls.0.clone() };
        let answer = stage.answer(request).expect("a valid pose");
        let mut want = RigPose::default();
        loaded.rig.evaluate(&controls, &mut want).expect("a valid pose");
        let head: Vec<u32> = floats(&answer[..20]).iter().map(|f| f.to_bits()).collect();
        let bones = loaded.rig.skeleton().map_or(0, Skeleton::len);
        // There is no twin: the answer says so by its views.
        assert_eq!(head, [POSE, 5, ORIGINAL | BONES, want.vertices.len() as u32, bones as u32]);
        let body = floats(&answer[32..]);
        let flat: Vec<f32> = want.vertices.iter().flat_map(|v| v.to_array()).collect();
        assert_eq!(body[..flat.len()], flat[..]);
        assert_eq!(body.len(), flat.len() + bones * 12);
    }

    #[test]
    fn wrong_poses_are_answered_with_a_reason() {
        let loaded = Library::default().open("mira", "mira").expect("it is embedded");
        let mut stage = Stage::new(Arc::clone(&loaded), None).expect("no twin");
        let mut pose =
            |controls: Vec<f32>| stage.answer(PoseRequest { number: 0, views: ORIGINAL, controls });
        assert!(pose(vec![0.0]).is_err());
        assert!(pose(vec![f32::NAN; loaded.rig.specs().len()]).is_err());
        assert!(pose(loaded.rig.specs().defaults().0).is_ok());
    }
}
