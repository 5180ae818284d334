//! What a twin with bones gets so that controls alone pose it: the rig's own mechanism where the rig shows it, else one
//! that is learned from the poses. Start at `Posing`; `learn` attaches what comes out to the twin.

use super::data::Guides;
use crate::{Event, JobError, Watch};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use understudy_core::{Affine3A, Skeleton, Vec3};
use understudy_learn::Recording;
use understudy_learn::mechanism::{MechanismLearnError, MechanismSettings, PosedBones, learn_mechanism};
use understudy_rigs::Rig;
use understudy_runtime::{
    Distances, Mechanism, MechanismFigures, MechanismKind, Pose, PoseError, Twin, TwinError,
};

/// Poses that a mechanism is learned from at most, and poses whose vertices tell what it costs.
const MOST_POSES: usize = 6000;
const WEIGHED_POSES: usize = 60;

/// Which mechanism a twin with bones gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MechanismChoice {
    /// The rig's own where it shows one, else one that is learned.
    #[default]
    Auto,
    /// One that is learned, whatever the rig shows.
    Learned,
    /// None: the twin is posed by bones alone.
    None,
}

impl FromStr for MechanismChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "learned" => Ok(Self::Learned),
            "none" => Ok(Self::None),
            _ => Err("auto, learned or none is wanted".into()),
        }
    }
}

/// What poses a twin by controls alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MechanismReport {
    /// `exact` or `learned`.
    pub kind: &'static str,
    /// Controls that pose the twin.
    pub controls: usize,
    /// Bones that they move.
    pub bones: usize,
    /// Bones whose function has a network besides its closed form.
    pub networks: usize,
    /// How far a learned one is from the rig.
    pub figures: Option<MechanismFigures>,
}

impl MechanismReport {
    /// Of a twin that has one.
    pub fn of(twin: &Twin) -> Option<Self> {
        let mechanism = twin.mechanism()?;
        let networks = match mechanism.kind() {
            MechanismKind::Exact(_) => 0,
            MechanismKind::Learned(learned) => learned.network_count(),
        };
        Some(Self {
            kind: mechanism.kind().name(),
            controls: mechanism.specs().len(),
            bones: mechanism.bone_count(),
            networks,
            figures: mechanism.figures,
        })
    }

    /// For people.
    pub fn line(&self) -> String {
        let Self { kind, controls, bones, networks, figures } = self;
        let how = match *kind {
            "exact" => "the rig's own joints and constraints".to_owned(),
            _ => format!("learned, {networks} of them with networks"),
        };
        let mut line = format!("posed by {controls} controls alone: {bones} bones, {how}");
        if let Some(figures) = figures {
            line += &format!(
                "; on {} poses held back bones are off by {:.3}° and {:.2} mm on average, vertices by {:.3} mm \
                 (which adds {:.3} mm to the twin's mean error)",
                figures.poses,
                figures.mean_degrees,
                figures.mean_origin_mm,
                figures.vertices_mm.mean,
                figures.added_mm
            );
        }
        line
    }
}

/// What a mechanism is made from, kept while a twin is trained.
pub(super) struct Posing {
    choice: MechanismChoice,
    skeleton: Skeleton,
    poses: PosedBones,
    /// Vertices of some of the poses that are held back.
    weighed: Vec<(usize, Vec<Vec3>)>,
}

impl Posing {
    /// Of poses with bones; `None` of others and where no mechanism is wanted.
    pub fn keep(poses: &Recording, guides: &Guides, choice: MechanismChoice) -> Option<Self> {
        let skeleton = poses.skeleton.clone().filter(|_| choice != MechanismChoice::None)?;
        let chosen = poses.spread(MOST_POSES);
        let own = skeleton.bones().iter().map(|bone| bone.name.clone());
        let rest = skeleton.inverse_bind().iter().map(Affine3A::inverse);
        let count = guides.names.len();
        let bones_of =
            |pose: &usize| poses.bones_of(*pose).iter().chain(&guides.bones[pose * count..][..count]);
        let kept = PosedBones {
            specs: poses.specs.clone(),
            names: own.chain(guides.names.iter().cloned()).collect(),
            parents: skeleton.bones().iter().map(|bone| bone.parent).collect(),
            rest: rest.chain(guides.rest.iter().copied()).collect(),
            bones: chosen.iter().flat_map(bones_of).copied().collect(),
            guides: count,
            controls: chosen.iter().flat_map(|pose| poses.controls_of(*pose)).copied().collect(),
        };
        let (held, _) = kept.split();
        let each = held.len().div_ceil(WEIGHED_POSES).max(1);
        let weighed = held.iter().step_by(each);
        let weighed = weighed.map(|pose| (*pose, poses.vertices_of(chosen[*pose]).to_vec())).collect();
        Some(Self { choice, skeleton, poses: kept, weighed })
    }

    /// The twin with its mechanism; as it was where it has no bones, or none can be found.
    pub fn attach(
        mut self,
        twin: Twin,
        rig: Option<&dyn Rig>,
        watch: &dyn Watch,
    ) -> Result<(Twin, Option<MechanismReport>), JobError> {
        let bones = &twin.header().inputs.bones;
        if bones.is_empty() || self.poses.specs.is_empty() {
            return Ok((twin, None));
        }
        let machine = |error: TwinError| JobError::Machine(error.to_string());
        let names = |skeleton: &Skeleton| -> Vec<String> {
            skeleton.bones().iter().map(|bone| bone.name.clone()).collect()
        };
        let own = rig.filter(|_| self.choice == MechanismChoice::Auto).and_then(Rig::mechanism);
        if let Some(own) = own.filter(|own| names(own.skeleton()) == names(&self.skeleton)) {
            let mechanism = Mechanism::exact(self.poses.specs.clone(), own.parts()).map_err(machine)?;
            let twin = twin.with_mechanism(mechanism).map_err(machine)?;
            let report = MechanismReport::of(&twin);
            return Ok((twin, report));
        }
        // The twin's tree, which was found from motion where the file's says nothing.
        let roots = std::iter::repeat_n(None, self.poses.guides);
        self.poses.parents = bones.iter().map(|bone| bone.parent).chain(roots).collect();
        // A rig that shows other guides than were recorded says nothing about these.
        let rig = rig.filter(|rig| self.poses.guides == rig.guides().len());
        let total = self.poses.names.len() as u64;
        watch.event(Event::Started { what: "learning controls → bones", total, unit: "bones" });
        let step = |done: usize| {
            watch.event(Event::Step { done: done as u64 });
            !watch.should_stop()
        };
        let learned = learn_mechanism(&self.poses, rig, &MechanismSettings::default(), &step);
        watch.event(Event::Finished);
        let mut learned = match learned {
            Ok(learned) => learned,
            Err(MechanismLearnError::Stopped) => return Err(JobError::Stopped),
            Err(other) => {
                let message = format!("the twin is posed by bones alone: {other}");
                watch.event(Event::Warning { message: &message });
                return Ok((twin, None));
            }
        };
        let twin = twin.with_mechanism(learned.mechanism.clone()).map_err(machine)?;
        let cost = self.cost(&twin).map_err(|error| JobError::Machine(error.to_string()))?;
        if let (Some(figures), Some((vertices, added))) = (&mut learned.mechanism.figures, cost) {
            (figures.vertices_mm, figures.added_mm) = (vertices, added);
        }
        let twin = twin.with_mechanism(learned.mechanism).map_err(machine)?;
        let report = MechanismReport::of(&twin);
        Ok((twin, report))
    }

    /// Distances between vertices posed by controls and by the rig's bones, and what that adds to the mean error, mm;
    /// `None` without poses.
    fn cost(&self, twin: &Twin) -> Result<Option<(Distances, f64)>, PoseError> {
        let mut player = twin.player(1);
        let [mut by_controls, mut by_bones] = [(); 2].map(|()| vec![Vec3::ZERO; twin.vertex_count()]);
        let inputs = &twin.header().inputs.controls;
        let places: Vec<usize> = inputs.iter().filter_map(|spec| self.poses.specs.find(&spec.name)).collect();
        let (mut sum, mut most, mut added, mut count) = (0.0f64, 0.0f64, 0.0f64, 0usize);
        for (pose, truth) in &self.weighed {
            let controls = self.poses.controls_of(*pose);
            let extras: Vec<f32> = places.iter().map(|place| controls[*place]).collect();
            let bones = &self.poses.bones_of(*pose)[..self.skeleton.len()];
            let bones = Pose::Bones { bones, extras: &extras };
            player.pose(bones, &mut by_bones)?;
            player.pose(Pose::Controls(controls), &mut by_controls)?;
            for ((own, other), truth) in by_controls.iter().zip(&by_bones).zip(truth) {
                let apart = f64::from(own.distance(*other)) * 10.0;
                (sum, most) = (sum + apart, most.max(apart));
                added += f64::from(own.distance(*truth) - other.distance(*truth)) * 10.0;
            }
            count += truth.len();
        }
        let count = if count == 0 { return Ok(None) } else { count as f64 };
        Ok(Some((Distances { mean: sum / count, max: most }, added / count)))
    }
}
