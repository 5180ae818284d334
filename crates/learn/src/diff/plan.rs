//! Everything that is decided before a network is trained, and the twin that comes out. Training is in `differential.rs`
//! and `subspace.rs`.

use super::components::{Basis, mean_length};
use super::differential::Problem;
use super::features::Features;
use super::fold::{self, FoldReport, Said};
use super::graph::{Graph, Reconstruction};
use super::linear::{Linear, Remainder};
use super::nonlinear::Unskinning;
use super::subspace::TrainedAnchor;
use super::{DiffLearnError, DiffSettings, FEWEST_POSES, SkinSource, anchors, influence, skin};
use crate::body::Armature;
use crate::matrix::{View, multiply};
use crate::{HeldBack, Recording};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use understudy_core::{Affine3A, ControlSpecs, Vec3};
use understudy_rigs::Rig;
use understudy_runtime::diff::{
    AnchorParts, DiffParts, DiffTwin, HiddenActivation, LayerNumbers, LinearSkinParts,
};
use understudy_runtime::{BoneHeader, Distances, Header, Inputs, Pose, Precision, Training, Twin};

/// A displacement of less, root mean square, is none, cm.
pub(super) const STILL: f64 = 1e-5;
/// Poses that components of reconstructed vertices are taken from at most, and those that the solve is compared with.
const MOST_RANK: usize = 500;
const COMPARED: usize = 800;
/// Held-back poses on which ω is chosen, and the values that are tried.
const SWEPT: usize = 16;
const WEIGHTS: [f64; 7] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
/// How much more or less than the median an anchor may count.
const RANGE: f64 = 4.0;
/// Poses that are worked on together.
const BLOCK: usize = 32;
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
    /// What is linear in the features; networks learn the rest.
    pub linear: Linear,
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
    /// Controls that move nothing: on the live rig, else as far as the poses tell.
    pub idle: Vec<usize>,
    /// Displacements of the anchors, `[N × 3A]` cm.
    pub(super) anchor_places: Vec<f32>,
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
    /// Controls that take many values and move nothing: on the live rig where there is one, else that nothing follows in
    /// these poses.
    #[serde(default)]
    pub idle_controls: Vec<String>,
    /// Share of the displacement, root mean square, that its linear part leaves to the networks; one without it.
    pub linear_left: f64,
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
        let graph = Graph::new(&poses.mesh, settings.coordinates);

        let vertices = poses.mesh.vertex_count();
        let mut linear = match settings.linear {
            true => Linear::fit(poses, &unskinning, &features, &trained, &held),
            false => Linear::none(),
        };
        let moving_by = |linear: &Linear| {
            let remainder = Remainder { poses, unskinning: &unskinning, features: &features, linear };
            let energy = energy(&remainder, &trained);
            let moving: Vec<u32> =
                (0..vertices as u32).filter(|v| energy[*v as usize].sqrt() > STILL).collect();
            (energy, moving)
        };
        let (mut energy, mut moving) = moving_by(&linear);
        if moving.is_empty() {
            // All of it is linear, or there is nothing at all.
            linear = Linear::none();
            (energy, moving) = moving_by(&linear);
        }
        if moving.is_empty() {
            return Err(DiffLearnError::NothingMoves);
        }
        let remainder = Remainder { poses, unskinning: &unskinning, features: &features, linear: &linear };
        let count = ((settings.anchors_percent / 100.0 * vertices as f64).round() as usize).max(1);
        let (anchors, added_anchors) = match chosen {
            _ if !graph.needs_anchors() => (Vec::new(), 0),
            Some(chosen) => anchors::complete(&graph, &energy, chosen)?,
            None => (anchors::choose(&graph, &unskinning.rest, &energy, count), 0),
        };
        // One pass over all poses: displacements of anchors, and blends to be counted.
        let all: Vec<usize> = (0..poses.len()).collect();
        let look = |block: &[usize]| {
            let (rows, singular) = remainder.of(block);
            let anchors_of = |row: &[f32]| -> Vec<f32> {
                anchors.iter().flat_map(|v| row[3 * *v as usize..][..3].to_vec()).collect()
            };
            (rows.chunks_exact(3 * vertices).flat_map(anchors_of).collect(), singular)
        };
        let looked: Vec<(Vec<f32>, usize)> = all.par_chunks(BLOCK).map(look).collect();
        let singular = looked.iter().map(|(_, singular)| singular).sum();
        let anchor_places: Vec<f32> = looked.into_iter().flat_map(|(places, _)| places).collect();
        let (anchor_features, idle) = match rig {
            _ if settings.single_network => {
                (vec![(0..features.count() as u32).collect(); anchors.len()], Vec::new())
            }
            Some(rig) => {
                let found = influence::probe(rig, &unskinning, &parents, &features, &anchors, settings)?;
                (found.of_anchors, found.idle)
            }
            None => {
                let own = influence::estimate(poses, &features, &trained, &anchor_places, anchors.len());
                let (bones, count) = (parents.len(), trained.len());
                let idle = influence::estimate_idle(&features, &linear, &energy, &own, bones, count);
                (own, idle)
            }
        };

        let wanted = ((settings.components_percent / 100.0 * vertices as f64).round() as usize).max(1);
        let most = if settings.components_mm.is_some() { trained.len() } else { wanted.min(trained.len()) };
        let snapshots = spread(&trained, (2 * most).clamp(600, 1500).max(wanted));
        let delta = |block: &[usize]| deltas_of(&remainder, &graph, block);
        let mut rows: Vec<f32> = snapshots.par_chunks(BLOCK).map(delta).collect::<Vec<_>>().concat();
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
        let coefficients = coefficients(&all, &basis, delta);
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
        let size = (moving.iter().map(squares).sum::<f64>() / moving.len() as f64).sqrt().max(1e-12);
        let unit = settings.loss_unit(size) as f32;
        Ok(Self {
            trained,
            held,
            unskinning,
            source,
            parents,
            adopted,
            singular,
            features,
            linear,
            graph,
            anchors,
            added_anchors,
            anchor_features,
            probed: rig.is_some(),
            idle,
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
        let median = errors.get(errors.len() / 2).map_or(STILL, |error| error.max(STILL));
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
        let (features, linear) = (&self.features, &self.linear);
        let (truth, _) = Remainder { poses, unskinning: &self.unskinning, features, linear }.of(&chosen);
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
        let swept = || match trained.is_empty() {
            true => 1.0,
            false => self.sweep(poses, layers, trained, activation),
        };
        let whole = settings.anchor_weight.unwrap_or_else(swept);
        let system = self.system(&self.weights(whole, trained));
        let condition = system.condition();
        let compared = spread(&self.trained, COMPARED);
        let mut solved = Vec::with_capacity(compared.len() * self.delta_mean.len());
        // In runs: right-hand sides in f64 are twice the vertices.
        for run in compared.chunks(64) {
            let said: Vec<Said> =
                run.par_iter().map(|pose| self.said(*pose, layers, trained, activation)).collect();
            let mut rows = fold::reconstruct(&system, &said);
            self.linear.add(&self.features, run, 1.0, &mut rows);
            solved.extend(rows);
        }
        let constant: Vec<Option<[f32; 3]>> =
            trained.iter().map(|anchor| anchor.layers.is_empty().then_some(anchor.mean)).collect();
        let (last, hidden) = layers.split_last().expect("a network has a layer");
        let coordinates = fold::Decoder { weights: &self.decoder, mean: &self.delta_mean };
        let folded = fold::fold(&system, last, coordinates, &self.linear, &constant, solved, MOST_RANK);
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
        let name = |control: usize| poses.specs.get(control).name.clone();
        let report = DiffReport {
            skin: self.source,
            singular_blends: self.singular,
            features: self.features.count(),
            still_controls: (0..poses.specs.len()).filter(still).map(name).collect(),
            idle_controls: self.idle.iter().copied().filter(|control| !still(control)).map(name).collect(),
            linear_left: self.linear.left,
            islands: self.graph.islands,
            joined: self.graph.joined,
            anchors: trained.len(),
            anchor_error_mm: 10.0 * trained.iter().map(|anchor| anchor.validation_cm).sum::<f64>()
                / trained.len().max(1) as f64,
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
            linear: folded.linear,
            block_ranks: folded.block_ranks,
            mixes: folded.mixes,
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
pub(super) fn spread(list: &[usize], most: usize) -> Vec<usize> {
    let count = list.len().min(most);
    (0..count).map(|i| list[i * list.len() / count]).collect()
}

/// World transforms of a pose where skinning wants them.
fn bones_of<'a>(poses: &'a Recording, unskinning: &Unskinning, pose: usize) -> &'a [Affine3A] {
    if unskinning.weights.is_some() { poses.bones_of(pose) } else { &[] }
}

/// Mean square of every vertex's displacement about its mean, cm².
fn energy(remainder: &Remainder<'_>, trained: &[usize]) -> Vec<f64> {
    const MOST: usize = 300;
    let vertices = remainder.poses.mesh.vertex_count();
    let chosen = spread(trained, MOST);
    let rows: Vec<Vec<f32>> = chosen.par_chunks(BLOCK).map(|block| remainder.of(block).0).collect();
    let rows: Vec<&[f32]> = rows.iter().flat_map(|rows| rows.chunks_exact(3 * vertices)).collect();
    let count = rows.len().max(1) as f64;
    let one = |vertex: usize| {
        let place = |row: &&[f32]| Vec3::from_slice(&row[3 * vertex..]).as_dvec3();
        let mean = rows.iter().map(place).sum::<understudy_core::DVec3>() / count;
        rows.iter().map(|row| place(row).distance_squared(mean)).sum::<f64>() / count
    };
    (0..vertices).into_par_iter().map(one).collect()
}

/// Differential coordinates of some poses, `[n × 3V]` cm.
fn deltas_of(remainder: &Remainder<'_>, graph: &Graph, poses: &[usize]) -> Vec<f32> {
    let (rows, _) = remainder.of(poses);
    rows.chunks_exact(3 * graph.len()).flat_map(|row| graph.laplacian(row, 3)).collect()
}

/// Coefficients of unit variance of all poses, `[N × K]`.
fn coefficients(poses: &[usize], basis: &Basis, delta: impl Fn(&[usize]) -> Vec<f32> + Sync) -> Vec<f32> {
    let (width, components) = (basis.mean.len(), basis.count());
    let mut out = vec![0.0f32; poses.len() * components];
    out.par_chunks_mut(BLOCK * components).zip(poses.par_chunks(BLOCK)).for_each(|(out, own)| {
        let mut rows = delta(own);
        for row in rows.chunks_exact_mut(width) {
            row.iter_mut().zip(&basis.mean).for_each(|(d, m)| *d -= m);
        }
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
pub(super) fn forward(layers: &[LayerNumbers], activation: HiddenActivation, mut x: Vec<f32>) -> Vec<f32> {
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
