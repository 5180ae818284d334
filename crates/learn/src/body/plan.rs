//! The plan of a body twin and the training of its groups.

use super::assign::{Assignment, assign};
use super::components::{self, Components, Wanted};
use super::features::Features;
use super::influence::{self, GroupInputs};
use super::{Armature, FEWEST_POSES, LearnError, Recording, borders, seams, skinned};
use crate::dense::Net;
use crate::dense::train::{Epoch, RateSchedule, Stop, TrainReport, TrainSettings, train_watched};
use crate::matrix::{View, multiply};
use crate::skinning::fit_skinning_among;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use understudy_core::{Affine3A, ControlSpecs, Random, SkinWeights, Vec3};
use understudy_rigs::Rig;
use understudy_runtime::body::{BodyParts, GroupParts, InputFrame, LayerParts, Storage};
use understudy_runtime::{Activation, BoneHeader, Header, Inputs, Training};

/// How to learn a body twin. The defaults are the paper's sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BodySettings {
    /// τ: how much the rigid assignment may worsen while bones are dropped.
    pub assignment_tolerance: f64,
    /// Mean error a vertex that the principal components may leave, cm.
    pub component_error: f64,
    /// The same as a share of what the linear part leaves: where that is little, 0.03 cm would be all of it.
    pub component_share: f64,
    /// Whether components are taken about the mean residual; about zero otherwise.
    pub centred: bool,
    /// Rings of vertices over which corrections at a seam fade; 0 leaves seams as they are.
    pub seam_rings: usize,
    /// Rings of vertices by which borders may move to where neighbours move alike; 0 leaves them where the
    /// nearest bones meet (our addition).
    pub border_rings: usize,
    /// How much more an error counts at a seam than inside a group, as a factor of lengths.
    pub seam_weight: f32,
    /// A vertex leaves out the last components that move it by less than this share of the network's own error.
    pub trim: f64,
    /// Hidden units a component: a network with little to say is narrower than `widths`. 0: all are as wide.
    pub units_per_component: usize,
    /// An input is left out when others explain all but this share of its variance.
    pub input_tolerance: f64,
    /// Widths of the hidden layers that are tried, in order, until the target is met.
    pub widths: Vec<usize>,
    /// Validation error a vertex at which the smaller width suffices, cm; `None` takes the last width.
    pub target: Option<f64>,
    /// How networks see the bones.
    pub frame: InputFrame,
    /// Of each network.
    pub train: TrainSettings,
}

impl Default for BodySettings {
    fn default() -> Self {
        Self {
            assignment_tolerance: 1.2,
            component_error: 0.03,
            component_share: 0.05,
            centred: false,
            seam_rings: 5,
            border_rings: 2,
            seam_weight: 2.0,
            trim: 0.2,
            units_per_component: 8,
            input_tolerance: 0.003,
            widths: vec![128],
            target: None,
            frame: InputFrame::Group,
            train: TrainSettings::default(),
        }
    }
}

impl BodySettings {
    /// The recipe of the paper (Bailey et al. 2018): every bone in its parent's frame, all inputs, components about
    /// the mean residual that leave less than 0.03 cm, two hidden layers of 128 in every network, open seams, Adam
    /// at a rate of 0.01. Its linear base is rigid, which is no setting of networks. It says neither how many epochs
    /// nor which batch: those stay.
    pub fn paper() -> Self {
        Self {
            component_share: 1.0,
            centred: true,
            seam_rings: 0,
            border_rings: 0,
            seam_weight: 1.0,
            trim: 0.0,
            units_per_component: 0,
            input_tolerance: 0.0,
            widths: vec![128],
            frame: InputFrame::Parent,
            train: TrainSettings {
                rate: 0.01,
                schedule: RateSchedule::Constant,
                decay: 0.0,
                ..TrainSettings::default()
            },
            ..Self::default()
        }
    }

    /// Every number makes sense.
    pub fn check(&self) -> Result<(), LearnError> {
        let setting = |what, value, want, fine| match fine {
            true => Ok(()),
            false => Err(LearnError::Setting { what, value, want }),
        };
        // What else is derived from it, so it is asked first.
        if let Some(target) = self.target {
            setting("target", target, "more than 0", target.is_finite() && target > 0.0)?;
        }
        let tau = self.assignment_tolerance;
        setting("assignment tolerance", tau, "1 or more", tau.is_finite() && tau >= 1.0)?;
        let error = self.component_error;
        setting("component error", error, "more than 0", error.is_finite() && error > 0.0)?;
        setting("trim", self.trim, "0 to 1", (0.0..=1.0).contains(&self.trim))?;
        let weight = f64::from(self.seam_weight);
        setting("weight of seams", weight, "1 to 1000", (1.0..=1000.0).contains(&weight))?;
        let narrowest = self.widths.iter().min().copied().unwrap_or(0);
        setting("width", narrowest as f64, "1 or more", narrowest > 0)?;
        setting("number of epochs", self.train.epochs as f64, "1 or more", self.train.epochs > 0)?;
        let rate = f64::from(self.train.rate);
        setting("learning rate", rate, "more than 0", rate.is_finite() && rate > 0.0)?;
        setting("batch", self.train.batch as f64, "1 or more", self.train.batch > 0)?;
        let held = f64::from(self.train.validation);
        setting("validation share", held, "0 to 0.5", (0.0..=0.5).contains(&held))
    }
}

impl BodySettings {
    /// Components finer than this gain nothing that anybody sees, cm.
    const FINEST: f64 = 0.008;
    /// More components than this a group cost more time than they gain.
    const MOST_COMPONENTS: usize = 64;

    /// Widths to try for a network of that many components.
    fn widths_for(&self, components: usize) -> Vec<usize> {
        /// Narrower networks save nothing that counts.
        const NARROWEST: usize = 32;
        let enough = match (self.units_per_component, self.target) {
            // Who sets a target gets the width that meets it.
            (0, _) | (_, Some(_)) => usize::MAX,
            (units, None) => (units * components).next_multiple_of(16).max(NARROWEST),
        };
        self.widths.iter().map(|width| (*width).min(enough)).collect()
    }

    fn wanted(&self) -> Wanted {
        let least = Self::FINEST.min(self.component_error);
        let (error, share) = (self.component_error, self.component_share);
        Wanted { error, share, least, most: Self::MOST_COMPONENTS }
    }
}

/// Everything that is decided before a network is trained.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Which bone each vertex follows.
    pub assignment: Assignment,
    /// Bone and vertices of each group.
    pub groups: Vec<(u32, Vec<u32>)>,
    /// Vertices of others that each group's network speaks of; none where seams are left as they are.
    pub ghosts: Vec<Vec<u32>>,
    /// What each network sees.
    pub inputs: Vec<GroupInputs>,
    /// Whether the inputs were found on the live rig or estimated from the poses.
    pub probed: bool,
    /// How networks see the bones.
    pub frame: InputFrame,
    /// The linear base; `None` follows the one bone of a vertex's group.
    pub base: Option<SkinWeights>,
    /// The bones as they are taken.
    pub armature: Armature,
    /// All poses, those that are held back last, each part ascending: rows of everything that is trained on.
    pub order: Vec<usize>,
    /// How many of them are trained on.
    pub trained: usize,
}

/// How one group went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupReport {
    /// Name of its bone.
    pub bone: String,
    /// Number of vertices.
    pub vertices: usize,
    /// Numbers that its network sees.
    pub inputs: usize,
    /// Principal components.
    pub components: usize,
    /// Width of the hidden layers.
    pub width: usize,
    /// Root mean square error a vertex on the validation poses, cm.
    pub validation_cm: f64,
    /// How training went; `None` for a group that needs no network.
    pub training: Option<TrainReport>,
}

/// A group that is done.
#[derive(Debug, Clone)]
pub struct TrainedGroup {
    /// For the twin.
    pub parts: GroupParts,
    /// For people.
    pub report: GroupReport,
}

/// Linear blend skinning fitted to the poses. A vertex chooses among the bones that its group's network sees:
/// the network could not take back what others do to it.
fn linear_base(
    poses: &Recording,
    armature: &Armature,
    trained: &[usize],
    groups: &[(u32, Vec<u32>)],
    inputs: &[GroupInputs],
    influences: usize,
) -> SkinWeights {
    /// Poses that the fit takes, and bones that it weighs at once.
    const EXAMPLES: usize = 200;
    const CANDIDATES: usize = 16;
    /// Influences below this cost time and leave nothing to see.
    const LEAST: f64 = 0.02;
    let count = trained.len().min(EXAMPLES);
    let examples: Vec<usize> = (0..count).map(|i| trained[i * trained.len() / count]).collect();
    let owner = seams::owners(groups, poses.mesh.vertex_count());
    let choice = |((own, _), inputs): (&(u32, Vec<u32>), &GroupInputs)| {
        let mut bones: Vec<usize> = inputs.bones.iter().map(|bone| *bone as usize).collect();
        bones.push(*own as usize);
        bones.sort_unstable();
        bones.dedup();
        bones
    };
    let choices: Vec<Vec<usize>> = groups.iter().zip(inputs).map(choice).collect();
    let chosen = |vertex: usize| &choices[owner[vertex] as usize][..];
    let (rest, examples) = (poses.mesh.positions(), skinned(poses, armature, &examples));
    fit_skinning_among(rest, &examples, influences, CANDIDATES, chosen, LEAST)
}

/// One bone a vertex as skin weights.
fn rigid_base(poses: &Recording, assignment: &Assignment) -> SkinWeights {
    let rows: Vec<Vec<(u16, f32)>> =
        assignment.bone_of_vertex.iter().map(|bone| vec![(*bone as u16, 1.0)]).collect();
    SkinWeights::from_rows(&rows, poses.skeleton().len()).expect("every vertex has one bone")
}

/// Bone and vertices of each group.
fn groups_of(assignment: &Assignment) -> Vec<(u32, Vec<u32>)> {
    let members = |bone: &u32| {
        let of = (0u32..).zip(&assignment.bone_of_vertex);
        (*bone, of.filter(|(_, owner)| *owner == bone).map(|(vertex, _)| vertex).collect())
    };
    assignment.bones.iter().map(members).collect()
}

/// What each group's network sees.
fn inputs_of(
    poses: &Recording,
    armature: &Armature,
    rig: Option<&dyn Rig>,
    groups: &[(u32, Vec<u32>)],
    frame: InputFrame,
) -> Result<Vec<GroupInputs>, LearnError> {
    let inputs = match rig {
        Some(rig) => influence::probe(rig, armature, groups, frame)?,
        None => influence::estimate(poses, armature, groups, frame),
    };
    Ok(match frame {
        InputFrame::Parent => inputs,
        InputFrame::Group => {
            let seen = inputs.into_iter().zip(groups);
            seen.map(|(inputs, (bone, _))| inputs.with_parents(armature, *bone)).collect()
        }
    })
}

impl Plan {
    /// Assigns vertices, drops bones and finds inputs: on the live rig where there is one, else estimated
    /// from the poses. `influences`: bones a vertex of the linear base; 1 is the rigid part alone.
    pub fn new(
        poses: &Recording,
        rig: Option<&dyn Rig>,
        influences: usize,
        settings: &BodySettings,
    ) -> Result<Self, LearnError> {
        settings.check()?;
        poses.check_bones()?;
        poses.check(FEWEST_POSES)?;
        let held: Vec<usize> =
            settings.train.held_back(poses.len()).iter().map(|row| *row as usize).collect();
        let mut order: Vec<usize> =
            (0..poses.len()).filter(|pose| held.binary_search(pose).is_err()).collect();
        let trained = order.len();
        order.extend(held);
        let armature = Armature::new(poses);
        let mut assignment = assign(poses, &armature, settings.assignment_tolerance);
        let mut groups = groups_of(&assignment);
        let mut inputs = inputs_of(poses, &armature, rig, &groups, settings.frame)?;
        let fit = |groups: &[(u32, Vec<u32>)], inputs: &[GroupInputs]| {
            linear_base(poses, &armature, &order[..trained], groups, inputs, influences)
        };
        let mut base = (influences > 1).then(|| fit(&groups, &inputs));
        let adjacency = poses.mesh.adjacency();
        if let (Some(first), 1..) = (&base, settings.border_rings) {
            let strain = borders::strain(poses, &armature, &adjacency, first);
            let owner = seams::owners(&groups, adjacency.vertex_count());
            let owner = borders::settle(&adjacency, &owner, &strain, settings.border_rings);
            let bone = |group: &u32| groups[*group as usize].0;
            assignment.bone_of_vertex = owner.iter().map(bone).collect();
            groups = groups_of(&assignment);
            inputs = inputs_of(poses, &armature, rig, &groups, settings.frame)?;
            base = Some(fit(&groups, &inputs));
        }
        if base.is_none() && armature.rigid_frames {
            // A frame does not stretch with its bone; skinning does.
            base = Some(rigid_base(poses, &assignment));
        }
        let ghosts = match settings.seam_rings {
            0 => vec![Vec::new(); groups.len()],
            _ => seams::ghosts(&adjacency, &groups),
        };
        let (probed, frame) = (rig.is_some(), settings.frame);
        Ok(Self { assignment, groups, ghosts, inputs, probed, frame, base, armature, order, trained })
    }

    /// The vertices that a group's network speaks of: its own, then its ghosts.
    fn spoken(&self, group: usize) -> Vec<u32> {
        self.groups[group].1.iter().chain(&self.ghosts[group]).copied().collect()
    }

    /// A factor for each number that a network speaks: `seam_weight` for ghosts and for vertices at a border,
    /// less from ring to ring, one from `seam_rings` on.
    fn stretch(&self, poses: &Recording, group: usize, settings: &BodySettings) -> Vec<f32> {
        let own = &self.groups[group].1;
        let ghosts = &self.ghosts[group];
        let rings = seams::rings(&poses.mesh.adjacency(), own, ghosts, settings.seam_rings);
        let factor = |ring: &usize| {
            let near = 1.0 - *ring as f32 / settings.seam_rings.max(1) as f32;
            1.0 + (settings.seam_weight - 1.0) * near
        };
        let ghosts = ghosts.iter().map(|_| settings.seam_weight);
        rings.iter().map(factor).chain(ghosts).flat_map(|factor| [factor; 3]).collect()
    }

    /// Residuals in the frame of the group's bone (2.2), ghosts included, `[N × 3P]` in the plan's order.
    fn residuals(&self, poses: &Recording, group: usize) -> Vec<f32> {
        let (bone, members) = (self.groups[group].0, self.spoken(group));
        let bone = bone as usize;
        let rest = poses.mesh.positions();
        let inverse_bind = &self.armature.inverse_bind;
        let row = |pose: &usize| {
            let global = poses.bones_of(*pose);
            let to_bone = self.armature.to_frame(&global[bone]);
            let linear = |vertex: usize| -> Vec3 {
                let carry =
                    |b: usize| global[b].transform_point3(inverse_bind[b].transform_point3(rest[vertex]));
                match &self.base {
                    None => carry(bone),
                    Some(base) => base.row(vertex).map(|(b, w)| carry(b) * w).sum(),
                }
            };
            let vertices = poses.vertices_of(*pose);
            let residual = |v: &u32| {
                let vertex = *v as usize;
                to_bone.transform_vector3(vertices[vertex] - linear(vertex)).to_array()
            };
            members.iter().flat_map(residual).collect::<Vec<f32>>()
        };
        self.order.par_iter().flat_map_iter(row).collect()
    }

    /// Controls that some group sees, ascending.
    pub fn used_controls(&self) -> Vec<u32> {
        let mut used: Vec<u32> = self.inputs.iter().flat_map(|g| g.controls.iter().copied()).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Trains the network of one group. Same seed, same result, whatever else runs. `watch` gets the epoch
    /// and the validation error a vertex in cm, and may stop it.
    pub fn train_group(
        &self,
        poses: &Recording,
        group: usize,
        settings: &BodySettings,
        mut watch: impl FnMut(Epoch) -> bool,
    ) -> Result<TrainedGroup, LearnError> {
        let (bone, members) = &self.groups[group];
        let spoken = members.len() + self.ghosts[group].len();
        let width = 3 * spoken;
        let mut rows = self.residuals(poses, group);
        // Lengths at seams are stretched for components and training, and brought back in the last layer.
        let stretch = self.stretch(poses, group, settings);
        for row in rows.chunks_exact_mut(width.max(1)) {
            row.iter_mut().zip(&stretch).for_each(|(number, stretch)| *number *= stretch);
        }
        let seed = settings.train.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(*bone));
        let Features { inputs, mean, scale, values: x } =
            self.features(poses, group, settings.input_tolerance);
        // A network that sees nothing can still say the mean.
        let centred = settings.centred || inputs.is_empty();
        let Components { mean: centre, basis, count, error } =
            components::fit(&mut rows, width, self.trained, centred, settings.wanted(), seed);
        let mut report = GroupReport {
            bone: poses.skeleton().bones()[*bone as usize].name.clone(),
            vertices: members.len(),
            inputs: inputs.len(),
            components: count,
            width: 0,
            validation_cm: error,
            training: None,
        };
        let parts = |inputs, mean, scale, layers| GroupParts {
            bone: *bone as usize,
            vertices: members.clone(),
            ghosts: self.ghosts[group].clone(),
            inputs,
            mean,
            scale,
            layers,
        };
        if count == 0 || inputs.is_empty() {
            // The mean residual is a constant: a layer without inputs.
            let layer = LayerParts {
                weights: vec![],
                bias: centre,
                activation: Activation::None,
                storage: Storage::Plain,
            };
            return Ok(TrainedGroup { parts: parts(vec![], vec![], vec![], vec![layer]), report });
        }
        let mut scores = vec![0.0f32; poses.len() * count];
        multiply(
            &mut scores,
            0.0,
            View::new(&rows, poses.len(), width),
            View::new(&basis, count, width).transposed(),
        );
        drop(rows);
        // The basis is orthonormal and so is the frame, so distances of coefficients are distances of
        // vertices: (2.5) can be minimised in coefficients.
        let power = scores.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>() / poses.len() as f64;
        let unit = (power / count as f64).sqrt().max(1e-9);
        scores.iter_mut().for_each(|s| *s = (f64::from(*s) / unit) as f32);
        // Stretched lengths count as what they are: the squares of all factors stand for the vertices.
        let squares: f64 = stretch.iter().map(|factor| f64::from(*factor).powi(2)).sum::<f64>() / 3.0;
        let per_vertex = |validation: f64| validation * unit / squares.sqrt();
        // The strength of each component, cm.
        let mut strengths = vec![0.0f64; count];
        for row in scores.chunks_exact(count) {
            strengths.iter_mut().zip(row).for_each(|(sum, s)| *sum += (f64::from(*s) * unit).powi(2));
        }
        strengths.iter_mut().for_each(|sum| *sum = (*sum / poses.len() as f64).sqrt());
        let held: Vec<u32> = (self.trained as u32..self.order.len() as u32).collect();
        let mut best: Option<(Net, TrainReport, usize)> = None;
        for hidden in settings.widths_for(count) {
            let sizes = [inputs.len(), hidden, hidden, count];
            let mut net = Net::new(&sizes, &mut Random::stream(seed, hidden as u64));
            let mut stopped = false;
            let outcome = train_watched(&mut net, &x, &scores, &held, &settings.train, |epoch| {
                let [loss, validation] = [epoch.loss, epoch.validation].map(per_vertex);
                let go_on = watch(Epoch { loss, validation, ..epoch });
                stopped |= !go_on;
                go_on
            });
            if stopped {
                return Err(LearnError::Stopped);
            }
            if outcome.stop == Stop::Diverged {
                return Err(LearnError::Diverged { bone: report.bone, rate: settings.train.rate });
            }
            let good = settings.target.is_some_and(|target| per_vertex(outcome.validation) <= target);
            if best.as_ref().is_none_or(|(_, old, _)| outcome.validation < old.validation) {
                best = Some((net, outcome, hidden));
            }
            if good {
                break;
            }
        }
        let (net, outcome, hidden) = best.expect("settings hold at least one width");
        let mut layers: Vec<LayerParts> = (0..net.layer_count())
            .map(|layer| {
                let (weights, bias) = net.layer(layer);
                let last = layer + 1 == net.layer_count();
                let factor = if last { unit as f32 } else { 1.0 };
                LayerParts {
                    weights: weights.iter().map(|w| w * factor).collect(),
                    bias: bias.iter().map(|b| b * factor).collect(),
                    activation: if last { Activation::None } else { Activation::Tanh },
                    storage: Storage::Plain,
                }
            })
            .collect();
        let mut frozen = vec![0.0f32; width * count];
        for component in 0..count {
            for output in 0..width {
                frozen[output * count + component] = basis[component * width + output] / stretch[output];
            }
        }
        let own_error = per_vertex(outcome.validation).hypot(error);
        let trimmed = components::trim(&mut frozen, &strengths, settings.trim * own_error);
        layers.push(LayerParts {
            weights: frozen,
            bias: centre,
            activation: Activation::None,
            storage: Storage::Plain,
        });
        report.width = hidden;
        report.validation_cm = own_error.hypot(trimmed);
        report.training = Some(outcome);
        Ok(TrainedGroup { parts: parts(inputs, mean, scale, layers), report })
    }

    /// Puts the trained groups together.
    pub fn finish(
        &self,
        poses: &Recording,
        rig_name: &str,
        groups: Vec<TrainedGroup>,
        settings: &BodySettings,
    ) -> BodyParts {
        let used = self.used_controls().iter().map(|c| poses.specs.get(*c as usize).clone()).collect();
        let controls = ControlSpecs::new(used).expect("some of valid controls are valid");
        let bones = poses.skeleton().bones();
        let reports: Vec<&GroupReport> = groups.iter().map(|g| &g.report).collect();
        let details = [
            ("settings".to_owned(), serde_json::json!(settings)),
            ("assignment_error_cm2".to_owned(), serde_json::json!(self.assignment.error)),
            ("groups".to_owned(), serde_json::json!(reports)),
        ];
        let training = Training {
            poses: poses.len(),
            inputs_probed: self.probed,
            details: details.into(),
            ..Training::default()
        };
        BodyParts {
            header: Header {
                rig: rig_name.into(),
                topology_hash: poses.mesh.topology_hash(),
                units: "cm".into(),
                inputs: Inputs {
                    bones: bones
                        .iter()
                        .zip(&self.armature.parents)
                        .map(|(bone, parent)| BoneHeader { name: bone.name.clone(), parent: *parent })
                        .collect(),
                    controls,
                },
                training,
            },
            frame: self.frame,
            rigid_frames: self.armature.rigid_frames,
            rest_vertices: poses.mesh.positions().to_vec(),
            rest_bones: self.armature.inverse_bind.iter().map(Affine3A::inverse).collect(),
            base: self.base.clone(),
            faces: poses.mesh.faces().to_vec(),
            seams: (settings.seam_rings > 0).then(|| {
                seams::seam_correction(
                    &poses.mesh.adjacency(),
                    &self.groups,
                    &self.ghosts,
                    settings.seam_rings,
                )
            }),
            groups: groups.into_iter().map(|g| g.parts).collect(),
        }
    }
}
