//! Everything that is decided before a network is trained, the training of mini-networks, and the twin that comes out.

use super::components::{Basis, mean_length};
use super::differential::Problem;
use super::features::Features;
use super::fold::{self, FoldReport, Said};
use super::graph::{Graph, Reconstruction};
use super::nonlinear::Unskinning;
use super::{DiffLearnError, DiffSettings, FEWEST_POSES, SkinSource, anchors, influence, skin};
use crate::body::Armature;
use crate::dense::Net;
use crate::dense::train::{Stop, train};
use crate::matrix::{View, multiply};
use crate::{HeldBack, Recording};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use understudy_core::{Affine3A, ControlSpecs, Random, Vec3};
use understudy_rigs::Rig;
use understudy_runtime::diff::{
    AnchorParts, DiffParts, DiffTwin, HiddenActivation, LayerNumbers, LinearSkinParts,
};
use understudy_runtime::{BoneHeader, Distances, Header, Inputs, Pose, Precision, Training, Twin};

/// A displacement of less, root mean square, is none, cm.
const STILL: f64 = 1e-5;
/// Poses that components of reconstructed vertices are taken from at most, and those that the solve is compared with.
const MOST_RANK: usize = 500;
const COMPARED: usize = 800;
/// Held-back poses on which ω is chosen, and the values that are tried.
const SWEPT: usize = 16;
const WEIGHTS: [f64; 6] = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
/// How much more or less than the median an anchor may count.
const RANGE: f64 = 4.0;
/// Poses on which 16-bit weights are compared with 32 bits.
const HALF_POSES: usize = 200;

/// Everything that is decided before training.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Poses that are trained on, and those that are held back, each ascending.
    pub trained: Vec<usize>,
    /// See `trained`.
    pub held: Vec<usize>,
    /// `T_i`.
    pub unskinning: Unskinning,
    /// Where it comes from.
    pub source: SkinSource,
    /// The bone in whose frame each is seen; none without skinning.
    pub parents: Vec<Option<usize>>,
    /// Bones that were given parents by how they move.
    pub adopted: usize,
    /// Blends that were near-singular, over all poses and vertices.
    pub singular: usize,
    /// What networks see.
    pub features: Features,
    /// The mesh.
    pub graph: Graph,
    /// Ascending.
    pub anchors: Vec<u32>,
    /// Anchors that were added to the user's, as islands had none.
    pub added_anchors: usize,
    /// Features of every anchor.
    pub anchor_features: Vec<Vec<u32>>,
    /// Whether these were found on the live rig.
    pub probed: bool,
    /// Displacements of the anchors, `[N × 3A]` cm.
    anchor_places: Vec<f32>,
    /// Mean differential coordinates, `[3V]` cm.
    delta_mean: Vec<f32>,
    /// What a coefficient of unit variance does to differential coordinates, `[3V × K]` cm.
    decoder: Vec<f32>,
    /// Number of components.
    pub components: usize,
    /// Mean distance of a vertex's differential coordinate to its projection, mm.
    pub component_error_mm: f64,
    /// `[N × K]`, of unit variance.
    coefficients: Vec<f32>,
    /// Vertices that move before skinning, and the root mean square of their differential coordinates, cm.
    moving: Vec<u32>,
    unit: f32,
}

/// A mini-network that is done.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedAnchor {
    /// Empty where the anchor never moves, or nothing tells how.
    pub layers: Vec<LayerNumbers>,
    /// What it says then, cm.
    pub mean: [f32; 3],
    /// Root mean square error on held-back poses, cm.
    pub validation_cm: f64,
}

/// What only differential twins report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiffReport {
    /// Where `T_i` comes from.
    pub skin: SkinSource,
    /// Blends that were near-singular, over all poses and vertices: their displacement was damped.
    pub singular_blends: usize,
    /// Numbers that networks see.
    pub features: usize,
    /// Controls that take one value in all poses.
    pub still_controls: Vec<String>,
    /// Islands of the mesh, once vertices at one place are joined.
    pub islands: usize,
    /// Edges that join vertices at one place.
    pub joined: usize,
    /// Anchors, those that never move included.
    pub anchors: usize,
    /// Mean error of the mini-networks on held-back poses, mm.
    pub anchor_error_mm: f64,
    /// Principal components of the differential coordinates.
    pub components: usize,
    /// What these leave, mean distance of a vertex's coordinate, mm.
    pub component_error_mm: f64,
    /// Mean absolute miss of differential coordinates on held-back poses as a share of that of saying the mean.
    pub differential_miss: f64,
    /// ω, before every anchor's accuracy.
    pub anchor_weight: f64,
    /// Of `L̃ᵀL̃`.
    pub condition: f64,
    /// The folded map.
    pub fold: FoldReport,
}

impl Plan {
    /// Finds `T_i`, features, anchors and components. `chosen`: the user's anchors.
    pub fn new(
        poses: &Recording,
        rig: Option<&dyn Rig>,
        chosen: Option<&[u32]>,
        settings: &DiffSettings,
    ) -> Result<Self, DiffLearnError> {
        settings.check()?;
        poses.check(FEWEST_POSES)?;
        let split = settings.anchor_training(poses.len(), 0);
        let split = crate::dense::train::TrainSettings { seed: settings.seed, ..split };
        let held: Vec<usize> = split.held_back(poses.len()).iter().map(|row| *row as usize).collect();
        let trained: Vec<usize> = (0..poses.len()).filter(|pose| held.binary_search(pose).is_err()).collect();
        let (weights, source) = skin::find(poses, rig, &trained, settings.skin)?;
        let armature = weights.as_ref().map(|_| Armature::new(poses));
        let (parents, adopted, inverse_bind) = match armature {
            Some(armature) => (armature.parents, armature.adopted, armature.inverse_bind),
            None => (Vec::new(), 0, Vec::new()),
        };
        let unskinning = Unskinning { weights, inverse_bind, rest: poses.mesh.positions().to_vec() };
        let features = Features::new(poses, &parents, &trained)?;
        let graph = Graph::new(&poses.mesh);

        let vertices = poses.mesh.vertex_count();
        let energy = energy(poses, &unskinning, &trained);
        let moving: Vec<u32> = (0..vertices as u32).filter(|v| energy[*v as usize].sqrt() > STILL).collect();
        if moving.is_empty() {
            return Err(DiffLearnError::NothingMoves);
        }
        let count = ((settings.anchors_percent / 100.0 * vertices as f64).round() as usize).max(1);
        let (anchors, added_anchors) = match chosen {
            Some(chosen) => anchors::complete(&graph, &energy, chosen)?,
            None => (anchors::choose(&graph, &unskinning.rest, &energy, count), 0),
        };
        // One pass over all poses: displacements of anchors, and blends to be counted.
        let look = |pose: usize| {
            let (all, singular) =
                unskinning.displacements(bones_of(poses, &unskinning, pose), poses.vertices_of(pose));
            let places: Vec<f32> = anchors.iter().flat_map(|v| all[*v as usize].to_array()).collect();
            (places, singular)
        };
        let looked: Vec<(Vec<f32>, usize)> = (0..poses.len()).into_par_iter().map(look).collect();
        let singular = looked.iter().map(|(_, singular)| singular).sum();
        let anchor_places: Vec<f32> = looked.into_iter().flat_map(|(places, _)| places).collect();
        let anchor_features = match rig {
            Some(rig) => influence::probe(rig, &unskinning, &parents, &features, &anchors, settings)?,
            None => influence::estimate(poses, &features, &trained, &anchor_places, anchors.len()),
        };

        let wanted = ((settings.components_percent / 100.0 * vertices as f64).round() as usize).max(1);
        let most = if settings.components_mm.is_some() { trained.len() } else { wanted.min(trained.len()) };
        let snapshots = spread(&trained, (2 * most).clamp(600, 1500));
        let delta = |pose: usize| delta_of(poses, &unskinning, &graph, pose);
        let mut rows: Vec<f32> = snapshots.par_iter().map(|pose| delta(*pose)).collect::<Vec<_>>().concat();
        let mut basis = Basis::new(&mut rows, 3 * vertices, most);
        // What the components leave, on some of the poses.
        let few = rows.len().min(100 * 3 * vertices);
        let mut rows: Vec<f32> = rows[..few].to_vec();
        if let Some(limit) = settings.components_mm {
            let count = basis.fewest(&mut rows, |rows| 10.0 * mean_length(rows) < limit);
            basis.truncate(count.max(1));
        } else {
            basis.fewest(&mut rows, |_| false);
        }
        let component_error_mm = 10.0 * mean_length(&rows);
        drop(rows);
        let components = basis.count();
        if components == 0 {
            return Err(DiffLearnError::NothingMoves);
        }
        let coefficients = coefficients(poses.len(), &basis, delta);
        let mut decoder = vec![0.0f32; 3 * vertices * components];
        decoder.par_chunks_mut(components).enumerate().for_each(|(output, row)| {
            for (component, slot) in row.iter_mut().enumerate() {
                let number = basis.rows[component * 3 * vertices + output];
                *slot = (f64::from(number) * basis.deviations[component]) as f32;
            }
        });
        let squares = |vertex: &u32| -> f64 {
            let rows = &decoder[*vertex as usize * 3 * components..][..3 * components];
            rows.iter().map(|n| f64::from(*n).powi(2)).sum::<f64>() / 3.0
        };
        let unit = (moving.iter().map(squares).sum::<f64>() / moving.len() as f64).sqrt().max(1e-12) as f32;
        Ok(Self {
            trained,
            held,
            unskinning,
            source,
            parents,
            adopted,
            singular,
            features,
            graph,
            anchors,
            added_anchors,
            anchor_features,
            probed: rig.is_some(),
            anchor_places,
            delta_mean: basis.mean,
            decoder,
            components,
            component_error_mm,
            coefficients,
            moving,
            unit,
        })
    }

    /// What the differential network learns.
    pub fn problem(&self) -> Problem<'_> {
        Problem {
            inputs: &self.features.values,
            features: self.features.count(),
            targets: &self.coefficients,
            decoder: &self.decoder,
            count: self.components,
            unit: self.unit,
            moving: &self.moving,
            trained: &self.trained,
            held: &self.held,
        }
    }

    /// Trains the mini-network of an anchor (section 3.2.4). Same seed, same result, whatever else runs.
    pub fn train_anchor(
        &self,
        anchor: usize,
        settings: &DiffSettings,
        mut watch: impl FnMut() -> bool,
    ) -> Result<TrainedAnchor, DiffLearnError> {
        let (poses, count) = (self.trained.len() + self.held.len(), self.anchors.len());
        let place = |pose: usize| -> [f32; 3] {
            let own = &self.anchor_places[(pose * count + anchor) * 3..][..3];
            [own[0], own[1], own[2]]
        };
        let mean = [0, 1, 2].map(|axis| {
            let sum: f64 = self.trained.iter().map(|pose| f64::from(place(*pose)[axis])).sum();
            (sum / self.trained.len() as f64) as f32
        });
        let centred = |pose: usize| [0, 1, 2].map(|axis| place(pose)[axis] - mean[axis]);
        let squares = |poses: &[usize]| {
            let one = |pose: &usize| centred(*pose).iter().map(|n| f64::from(*n).powi(2)).sum::<f64>();
            (poses.iter().map(one).sum::<f64>() / poses.len().max(1) as f64).sqrt()
        };
        let (unit, own) = (squares(&self.trained), &self.anchor_features[anchor]);
        if unit < STILL || own.is_empty() {
            return Ok(TrainedAnchor { layers: Vec::new(), mean, validation_cm: squares(&self.held) });
        }
        let gather = |pose: usize| {
            let all = self.features.of(pose);
            own.iter().map(move |feature| all[*feature as usize])
        };
        let inputs: Vec<f32> = (0..poses).flat_map(gather).collect();
        let targets: Vec<f32> = (0..poses).flat_map(|pose| centred(pose).map(|n| n / unit as f32)).collect();
        let train_settings = settings.anchor_training(self.trained.len(), anchor);
        let mut sizes = vec![own.len()];
        sizes.extend(&settings.anchor_widths);
        sizes.push(3);
        let mut random = Random::stream(train_settings.seed, 0xa2c4);
        let mut net = Net::with_activation(&sizes, settings.activation, &mut random);
        let held: Vec<u32> = self.held.iter().map(|pose| *pose as u32).collect();
        let outcome = train(&mut net, &inputs, &targets, &held, &train_settings, |_, _| watch());
        match outcome.stop {
            Stop::Asked => return Err(DiffLearnError::Stopped),
            Stop::Diverged if !outcome.validation.is_finite() => {
                return Err(DiffLearnError::Diverged { rate: train_settings.rate });
            }
            Stop::Epochs | Stop::Patience | Stop::Diverged => {}
        }
        let silent = squares(if self.held.is_empty() { &self.trained } else { &self.held });
        if outcome.validation * unit >= silent {
            // No better than its mean: then the mean is what it says.
            return Ok(TrainedAnchor { layers: Vec::new(), mean, validation_cm: silent });
        }
        let layer = |layer: usize| {
            let (weights, bias) = net.layer(layer);
            let mut numbers = LayerNumbers { weights: weights.to_vec(), bias: bias.to_vec() };
            if layer + 1 == net.layer_count() {
                numbers.weights.iter_mut().for_each(|w| *w *= unit as f32);
                let bias = numbers.bias.iter_mut().zip(mean);
                bias.for_each(|(bias, mean)| *bias = *bias * unit as f32 + mean);
            }
            numbers
        };
        let layers = (0..net.layer_count()).map(layer).collect();
        Ok(TrainedAnchor { layers, mean, validation_cm: outcome.validation * unit })
    }

    /// What the networks say of a pose.
    pub(super) fn said(
        &self,
        pose: usize,
        layers: &[LayerNumbers],
        trained: &[TrainedAnchor],
        activation: HiddenActivation,
    ) -> Said {
        let features = self.features.of(pose);
        let coefficients = forward(layers, activation, features.to_vec());
        let mut delta = self.delta_mean.clone();
        let decoder = View::new(&self.decoder, delta.len(), self.components);
        multiply(&mut delta, 1.0, decoder, View::new(&coefficients, self.components, 1));
        let anchor = |(anchor, own): (&TrainedAnchor, &Vec<u32>)| match anchor.layers.is_empty() {
            true => anchor.mean.to_vec(),
            false => {
                let inputs = own.iter().map(|feature| features[*feature as usize]).collect();
                forward(&anchor.layers, activation, inputs)
            }
        };
        Said { delta, anchors: trained.iter().zip(&self.anchor_features).flat_map(anchor).collect() }
    }

    /// ω of every anchor: the more accurate ones hold more.
    pub(super) fn weights(&self, whole: f64, trained: &[TrainedAnchor]) -> Vec<(u32, f64)> {
        let mut errors: Vec<f64> = trained.iter().map(|anchor| anchor.validation_cm).collect();
        errors.sort_by(f64::total_cmp);
        let median = errors[errors.len() / 2].max(STILL);
        let weight = |anchor: &TrainedAnchor| {
            whole * (median / anchor.validation_cm.max(STILL)).clamp(1.0 / RANGE, RANGE)
        };
        self.anchors.iter().zip(trained).map(|(vertex, anchor)| (*vertex, weight(anchor))).collect()
    }

    fn system(&self, anchors: &[(u32, f64)]) -> Reconstruction<'_> {
        Reconstruction::new(&self.graph, anchors).expect("every island has an anchor of some weight")
    }

    /// The ω that leaves least on held-back poses.
    fn sweep(
        &self,
        poses: &Recording,
        layers: &[LayerNumbers],
        trained: &[TrainedAnchor],
        activation: HiddenActivation,
    ) -> f64 {
        let held = if self.held.is_empty() { &self.trained } else { &self.held };
        let chosen = spread(held, SWEPT);
        let said: Vec<Said> =
            chosen.par_iter().map(|pose| self.said(*pose, layers, trained, activation)).collect();
        let truth: Vec<f32> = chosen
            .iter()
            .flat_map(|pose| {
                let bones = bones_of(poses, &self.unskinning, *pose);
                self.unskinning.displacements(bones, poses.vertices_of(*pose)).0
            })
            .flat_map(|v| v.to_array())
            .collect();
        let miss = |whole: f64| {
            let mut solved = fold::reconstruct(&self.system(&self.weights(whole, trained)), &said);
            solved.iter_mut().zip(&truth).for_each(|(s, t)| *s -= t);
            mean_length(&solved)
        };
        let measured = WEIGHTS.map(|whole| (miss(whole), whole));
        measured.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map_or(1.0, |(_, whole)| whole)
    }

    /// Folds the reconstruction and puts everything together.
    pub fn finish(
        &self,
        poses: &Recording,
        rig_name: &str,
        layers: &[LayerNumbers],
        trained: &[TrainedAnchor],
        differential_miss: f64,
        settings: &DiffSettings,
    ) -> (DiffParts, DiffReport) {
        let activation = settings.activation;
        let whole = settings.anchor_weight.unwrap_or_else(|| self.sweep(poses, layers, trained, activation));
        let system = self.system(&self.weights(whole, trained));
        let condition = system.condition();
        let compared = spread(&self.trained, COMPARED);
        let mut solved = Vec::with_capacity(compared.len() * self.delta_mean.len());
        // In runs: right-hand sides in f64 are twice the vertices.
        for run in compared.chunks(64) {
            let said: Vec<Said> =
                run.par_iter().map(|pose| self.said(*pose, layers, trained, activation)).collect();
            solved.extend(fold::reconstruct(&system, &said));
        }
        let constant: Vec<Option<[f32; 3]>> =
            trained.iter().map(|anchor| anchor.layers.is_empty().then_some(anchor.mean)).collect();
        let (last, hidden) = layers.split_last().expect("a network has a layer");
        let folded = fold::fold(&system, last, &self.decoder, &self.delta_mean, &constant, solved, MOST_RANK);
        let rank = folded.report.rank;
        // Anchors that say one thing are in the bias: they leave.
        let kept: Vec<usize> = (0..trained.len()).filter(|anchor| constant[*anchor].is_none()).collect();
        let row = |row: usize| {
            let own = &folded.subspace[row * 3 * trained.len()..];
            kept.iter().flat_map(|anchor| own[3 * anchor..][..3].to_vec()).collect::<Vec<f32>>()
        };
        let subspace = (0..rank).flat_map(row).collect();
        let anchor = |anchor: &usize| AnchorParts {
            vertex: self.anchors[*anchor],
            features: self.anchor_features[*anchor].clone(),
            layers: trained[*anchor].layers.clone(),
        };
        let still = |control: &usize| {
            let first = poses.controls_of(0)[*control];
            (0..poses.len()).all(|pose| poses.controls_of(pose)[*control] == first)
        };
        let report = DiffReport {
            skin: self.source,
            singular_blends: self.singular,
            features: self.features.count(),
            still_controls: (0..poses.specs.len())
                .filter(still)
                .map(|control| poses.specs.get(control).name.clone())
                .collect(),
            islands: self.graph.islands,
            joined: self.graph.joined,
            anchors: trained.len(),
            anchor_error_mm: 10.0 * trained.iter().map(|anchor| anchor.validation_cm).sum::<f64>()
                / trained.len() as f64,
            components: self.components,
            component_error_mm: self.component_error_mm,
            differential_miss,
            anchor_weight: whole,
            condition,
            fold: folded.report.clone(),
        };
        let controls = self.features.controls.iter().map(|c| poses.specs.get(*c as usize).clone()).collect();
        let names = poses.skeleton.iter().flat_map(|skeleton| skeleton.bones());
        let details = [
            ("settings".to_owned(), serde_json::json!(settings)),
            ("report".to_owned(), serde_json::json!(report)),
        ];
        let mut places = self.unskinning.rest.clone();
        for (place, mean) in places.iter_mut().zip(folded.mean.chunks_exact(3)) {
            *place += Vec3::from_slice(mean);
        }
        let parts = DiffParts {
            header: Header {
                rig: rig_name.into(),
                topology_hash: poses.mesh.topology_hash(),
                units: "cm".into(),
                inputs: Inputs {
                    bones: names
                        .zip(&self.parents)
                        .map(|(bone, parent)| BoneHeader { name: bone.name.clone(), parent: *parent })
                        .collect(),
                    controls: ControlSpecs::new(controls).expect("some of valid controls are valid"),
                },
                training: Training {
                    poses: poses.len(),
                    inputs_probed: self.probed,
                    details: details.into(),
                    ..Training::default()
                },
            },
            faces: poses.mesh.faces().to_vec(),
            skin: self.unskinning.weights.as_ref().map(|weights| LinearSkinParts {
                rest_bones: self.unskinning.inverse_bind.iter().map(Affine3A::inverse).collect(),
                weights: weights.clone(),
            }),
            features: self.features.parts.clone(),
            activation,
            differential: hidden.iter().chain([&folded.last]).cloned().collect(),
            anchors: kept.iter().map(anchor).collect(),
            subspace,
            basis: folded.basis,
            places,
        };
        (parts, report)
    }

    /// The pose of a recording as the twin takes it.
    fn pose<'a>(&self, poses: &'a Recording, pose: usize, controls: &'a mut Vec<f32>) -> Pose<'a> {
        controls.clear();
        controls.extend(self.features.controls.iter().map(|c| poses.controls_of(pose)[*c as usize]));
        match self.unskinning.weights {
            Some(_) => Pose::Bones { bones: poses.bones_of(pose), extras: controls },
            None => Pose::Controls(controls),
        }
    }

    /// What 16-bit weights cost against 32 bits.
    pub fn half_error(&self, poses: &Recording, parts: &DiffParts) -> Result<Distances, DiffLearnError> {
        let twins = [Precision::Half, Precision::Single]
            .map(|precision| DiffTwin::new(parts.clone(), precision).map(Twin::from));
        let [half, single] = twins;
        let (mut half, mut single) = (half?.player(1), single?.player(1));
        let mut places = [vec![Vec3::ZERO; parts.places.len()], vec![Vec3::ZERO; parts.places.len()]];
        let (mut controls, chosen) = (Vec::new(), poses.spread(HALF_POSES));
        let (mut sum, mut max) = (0.0, 0.0f64);
        for pose in &chosen {
            let taken = self.pose(poses, *pose, &mut controls);
            half.pose(taken, &mut places[0])?;
            single.pose(taken, &mut places[1])?;
            for (a, b) in places[0].iter().zip(&places[1]) {
                let miss = 10.0 * f64::from(a.distance(*b));
                sum += miss;
                max = max.max(miss);
            }
        }
        Ok(Distances { mean: sum / (chosen.len() * parts.places.len()).max(1) as f64, max })
    }
}

/// How good a finished twin is on the poses that were held back, beside its skinning alone.
pub fn held_back(
    poses: &Recording,
    plan: &Plan,
    parts: &DiffParts,
    precision: Precision,
) -> Result<HeldBack, DiffLearnError> {
    let mut player = Twin::from(DiffTwin::new(parts.clone(), precision)?).player(1);
    let held = if plan.held.is_empty() { &plan.trained } else { &plan.held };
    let mut out = vec![Vec3::ZERO; parts.places.len()];
    let (mut sums, mut max_mm, mut controls) = ([0.0; 2], 0.0f64, Vec::new());
    for pose in held {
        let truth = poses.vertices_of(*pose);
        player.pose(plan.pose(poses, *pose, &mut controls), &mut out)?;
        for (a, b) in out.iter().zip(truth) {
            let miss = 10.0 * f64::from(a.distance(*b));
            sums[0] += miss;
            max_mm = max_mm.max(miss);
        }
        plan.unskinning.skinned(bones_of(poses, &plan.unskinning, *pose), &mut out);
        sums[1] += out.iter().zip(truth).map(|(a, b)| 10.0 * f64::from(a.distance(*b))).sum::<f64>();
    }
    let count = (held.len() * out.len()).max(1) as f64;
    Ok(HeldBack { poses: held.len(), mean_mm: sums[0] / count, max_mm, base_mean_mm: sums[1] / count })
}

/// At most so many of a list, spread evenly.
fn spread(list: &[usize], most: usize) -> Vec<usize> {
    let count = list.len().min(most);
    (0..count).map(|i| list[i * list.len() / count]).collect()
}

/// World transforms of a pose where skinning wants them.
fn bones_of<'a>(poses: &'a Recording, unskinning: &Unskinning, pose: usize) -> &'a [Affine3A] {
    if unskinning.weights.is_some() { poses.bones_of(pose) } else { &[] }
}

/// Mean square of every vertex's displacement about its mean, cm².
fn energy(poses: &Recording, unskinning: &Unskinning, trained: &[usize]) -> Vec<f64> {
    const MOST: usize = 300;
    let chosen = spread(trained, MOST);
    let rows: Vec<Vec<Vec3>> = chosen
        .par_iter()
        .map(|pose| unskinning.displacements(bones_of(poses, unskinning, *pose), poses.vertices_of(*pose)).0)
        .collect();
    let count = rows.len().max(1) as f64;
    let one = |vertex: usize| {
        let mean = rows.iter().map(|row| row[vertex].as_dvec3()).sum::<understudy_core::DVec3>() / count;
        rows.iter().map(|row| row[vertex].as_dvec3().distance_squared(mean)).sum::<f64>() / count
    };
    (0..poses.mesh.vertex_count()).into_par_iter().map(one).collect()
}

/// Differential coordinates of a pose, `[3V]` cm.
fn delta_of(poses: &Recording, unskinning: &Unskinning, graph: &Graph, pose: usize) -> Vec<f32> {
    let (all, _) = unskinning.displacements(bones_of(poses, unskinning, pose), poses.vertices_of(pose));
    let flat: Vec<f32> = all.iter().flat_map(|v| v.to_array()).collect();
    graph.laplacian(&flat, 3)
}

/// Coefficients of unit variance of all poses, `[N × K]`.
fn coefficients(count: usize, basis: &Basis, delta: impl Fn(usize) -> Vec<f32> + Sync) -> Vec<f32> {
    const BLOCK: usize = 32;
    let (width, components) = (basis.mean.len(), basis.count());
    let mut out = vec![0.0f32; count * components];
    out.par_chunks_mut(BLOCK * components).enumerate().for_each(|(block, out)| {
        let own = block * BLOCK..count.min((block + 1) * BLOCK);
        let centred =
            |pose: usize| -> Vec<f32> { delta(pose).iter().zip(&basis.mean).map(|(d, m)| d - m).collect() };
        let rows: Vec<f32> = own.clone().flat_map(centred).collect();
        let axes = View::new(&basis.rows, components, width);
        multiply(out, 0.0, View::new(&rows, own.len(), width), axes.transposed());
        for row in out.chunks_exact_mut(components) {
            let numbers = row.iter_mut().zip(&basis.deviations);
            numbers.for_each(|(n, deviation)| *n = (f64::from(*n) / deviation) as f32);
        }
    });
    out
}

/// A network of one pose.
fn forward(layers: &[LayerNumbers], activation: HiddenActivation, mut x: Vec<f32>) -> Vec<f32> {
    for (index, layer) in layers.iter().enumerate() {
        let mut out = layer.bias.clone();
        let weights = View::new(&layer.weights, layer.bias.len(), x.len());
        multiply(&mut out, 1.0, weights, View::new(&x, x.len(), 1));
        if index + 1 < layers.len() {
            out.iter_mut().for_each(|y| {
                *y = match activation {
                    HiddenActivation::Relu => y.max(0.0),
                    HiddenActivation::Tanh => y.tanh(),
                };
            });
        }
        x = out;
    }
    x
}
