//! The skin twin (`docs/methods/skin-twin.md`): bones found by skinning decomposition, moved by a small network.
//!
//! The way: [`Recording`] in memory → the motion of the whole is taken away (as for faces) → weights and bones by
//! [`crate::decomposition`] → `design` turns every pose into the best bones, measured in vertices → `network` learns
//! them from the controls → parts of a twin. Start at [`learn`].

mod design;
mod network;
#[cfg(test)]
mod tests;

use crate::decomposition::{
    DecompositionError, DecompositionProgress, DecompositionSettings, decompose_affine,
};
use crate::dense::train::TrainSettings;
use crate::face::components::Components;
use crate::face::frame::{choose_skull, take_away};
use crate::face::inputs::Influences;
use crate::face::motion::{self, Size};
use crate::face::{FEWEST_POSES, FaceLearnError};
use crate::{Recording, RecordingError};
use design::Design;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use thiserror::Error;
use understudy_core::{SkinWeights, Vec3};
use understudy_rigs::Rig;
use understudy_runtime::skin::{SkinParts, SkinTwin, WEIGHT_UNITS};
use understudy_runtime::{Distances, Header, Inputs, MotionParts, Precision, Training, Twin, TwinError};

/// Why a skin twin could not be learned.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SkinLearnError {
    /// A setting that makes no sense.
    #[error("the {what} is {value}; {want} is wanted")]
    Setting {
        /// Which.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it should be: `1 to 8`.
        want: &'static str,
    },
    /// The recording cannot be learned from.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// Nothing to learn.
    #[error("no vertex moves in these poses")]
    NothingMoves,
    /// Nothing to learn from.
    #[error("vertices move, but no control changes in these poses")]
    NoControl,
    /// The poses could not be decomposed.
    #[error(transparent)]
    Decomposition(#[from] DecompositionError),
    /// The rig could not be probed, or the motion of the whole not learned.
    #[error(transparent)]
    Whole(#[from] FaceLearnError),
    /// Training left every good place.
    #[error("training diverged; take a lower rate")]
    Diverged,
    /// Training was told to stop.
    #[error("stopped")]
    Stopped,
}

/// How to learn a skin twin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SkinSettings {
    /// Number of bones.
    pub bones: usize,
    /// Most bones per vertex.
    pub influences: usize,
    /// Principal components of what the skin leaves; `None`: as many as held-back poses ask for, see [`learn`].
    pub components: Option<usize>,
    /// Hidden layers of the network.
    pub widths: Vec<usize>,
    /// Poses that bones and weights are found in, spread evenly.
    pub poses: usize,
    /// Rounds with rigid bones, then with affine ones, at most.
    pub rounds: [usize; 2],
    /// They end when a round lowers the error by less than this share.
    pub tolerance: f64,
    /// Whether the motion of the whole may be taken out.
    pub frame: bool,
    /// Training of the network.
    pub train: TrainSettings,
}

impl Default for SkinSettings {
    fn default() -> Self {
        Self {
            bones: 64,
            influences: 8,
            components: None,
            widths: vec![256, 128],
            poses: 120,
            rounds: [10, 30],
            tolerance: 1e-3,
            frame: true,
            train: TrainSettings {
                epochs: 120,
                batch: 64,
                decay: 0.1,
                // Ten times as much leaves nothing of the first layer, and so regression alone.
                sparsity: 2.5e-5,
                judge_by_mean: true,
                patience: usize::MAX,
                ..TrainSettings::default()
            },
        }
    }
}

impl SkinSettings {
    /// As many bones as an engine's palette of matrices holds.
    pub const MOST_BONES: usize = 256;
    /// Bones per vertex that glTF writes in two sets.
    pub const MOST_INFLUENCES: usize = 8;
    /// More components are a model of principal components with a skin beside it.
    pub const MOST_COMPONENTS: usize = 512;

    /// Whether the numbers make sense.
    pub fn check(&self) -> Result<(), SkinLearnError> {
        let within =
            |what, value: usize, [least, most]: [usize; 2], want| match (least..=most).contains(&value) {
                true => Ok(()),
                false => Err(SkinLearnError::Setting { what, value: value as f64, want }),
            };
        within("number of bones", self.bones, [1, Self::MOST_BONES], "1 to 256")?;
        within("number of influences", self.influences, [1, Self::MOST_INFLUENCES], "1 to 8")?;
        let components = self.components.unwrap_or(0);
        within("number of components", components, [0, Self::MOST_COMPONENTS], "0 to 512")?;
        within("number of hidden layers", self.widths.len(), [0, 4], "0 to 4")?;
        for width in &self.widths {
            within("width of a hidden layer", *width, [1, 4096], "1 to 4096")?;
        }
        within("number of poses for the bones", self.poses, [2, usize::MAX], "2 or more")?;
        within("number of rigid rounds", self.rounds[0], [1, usize::MAX], "1 or more")?;
        within("number of epochs", self.train.epochs, [1, usize::MAX], "1 or more")?;
        within("batch", self.train.batch, [1, usize::MAX], "1 or more")?;
        if !(self.train.rate.is_finite() && self.train.rate > 0.0) {
            let (value, want) = (f64::from(self.train.rate), "more than 0");
            return Err(SkinLearnError::Setting { what: "learning rate", value, want });
        }
        Ok(())
    }
}

/// How far the work is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SkinProgress {
    /// Epochs of the motion of the whole.
    Whole {
        /// Done.
        done: usize,
        /// Of so many.
        total: usize,
    },
    /// Rounds of weights and bones.
    Bones {
        /// Done.
        done: usize,
        /// Of so many at most.
        total: usize,
        /// Root of the mean squared distance of a vertex so far, mm.
        rmse_mm: f64,
    },
    /// Epochs of the network.
    Network {
        /// Done.
        done: usize,
        /// Of so many.
        total: usize,
        /// The same as `rmse_mm` on the poses that are trained on, mm.
        loss_mm: f64,
        /// What the network adds to the skin's own error on held-back poses, root mean square over vertices, mean over poses,
        /// mm.
        rmse_mm: f64,
    },
}

/// How learning went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkinReport {
    /// Bones.
    pub bones: usize,
    /// Most bones per vertex.
    pub influences: usize,
    /// Controls that the network sees.
    pub inputs: usize,
    /// Controls that change in the poses and move nothing, where the rig could be asked: the network does not see them.
    pub idle_controls: usize,
    /// Mean motion of a vertex, before and after the motion of the whole is taken out, mm; none where it is not.
    pub whole_mm: Option<[f64; 2]>,
    /// What the best bones leave of held-back poses, root mean square over vertices, mean over poses, mm: no network does
    /// better.
    pub skin_rmse_mm: f64,
    /// What the network adds to that, mm.
    pub network_rmse_mm: f64,
    /// The same of linear regression on the controls alone, mm.
    pub linear_rmse_mm: f64,
    /// Principal components.
    pub components: usize,
    /// Epochs of the network.
    pub epochs: usize,
}

/// A twin and how it was found.
#[derive(Debug)]
pub struct LearnedSkin {
    /// For the twin.
    pub parts: SkinParts,
    /// How it went.
    pub report: SkinReport,
}

/// Bones limit the twin where they leave more than this share of what linear regression misses, and more than nobody sees.
const ENOUGH: f64 = 0.25;
const UNSEEN_CM: f64 = 2e-4;
/// The most components, and bytes of them, that a twin gets without being asked.
const MOST_WORTHWHILE: usize = 64;
const MOST_BYTES: usize = 2_400_000;
/// Motion below this is rounding, cm.
const STILL_CM: f32 = 1e-5;

/// Poses of a recording that training does not see.
pub fn held_back(poses: usize, settings: &SkinSettings) -> Vec<u32> {
    settings.train.held_back(poses)
}

/// Learns a skin twin. The live rig, where there is one, says which controls matter. `watch` hears of every step and may
/// end the work by `false`.
///
/// Where the number of components is left open there are none as long as bones are not what limits the twin: while they
/// leave less on held-back poses than a quarter of what linear regression of the bones misses there. Otherwise there are
/// the fewest with which bones and components leave so little, or less than anybody sees.
pub fn learn(
    mut poses: Recording,
    rig: Option<&dyn Rig>,
    rig_name: &str,
    settings: &SkinSettings,
    watch: &dyn Fn(SkinProgress) -> bool,
) -> Result<LearnedSkin, SkinLearnError> {
    settings.check()?;
    poses.check(FEWEST_POSES)?;
    let moves = (1..poses.len()).into_par_iter().any(|pose| {
        let pairs = poses.vertices_of(pose).iter().zip(poses.vertices_of(0));
        pairs.into_iter().any(|(a, b)| a.distance(*b) > STILL_CM)
    });
    if !moves {
        return Err(SkinLearnError::NothingMoves);
    }
    let influences = Influences::new(&poses, rig)?;
    let inputs = influences.all(&poses);
    if inputs.0.is_empty() {
        return Err(SkinLearnError::NoControl);
    }
    let held = held_back(poses.len(), settings);
    let (frame, whole_mm) = match settings.frame {
        true => whole(&mut poses, &influences, settings, watch)?.unzip(),
        false => (None, None),
    };
    let (weights, centres) = skin(&poses, &held, settings, watch)?;
    let design = Design::new(&weights, &centres, poses.mesh.positions());
    let plain = design.targets(&poses, &[]);
    let basis = match settings.components {
        Some(count) => components(&poses, &held, &design, count),
        None => {
            let missed = network::linear_miss_cm(&poses, &inputs, &plain, &held);
            let goal = (ENOUGH * missed).max(UNSEEN_CM);
            worthwhile(&poses, &held, &design, plain.left_cm(&held), goal)
        }
    };
    let targets = if basis.is_empty() { plain } else { design.targets(&poses, &basis) };
    let trained = network::train_network(&poses, &inputs, &targets, &held, settings, |epoch| {
        let [loss_mm, rmse_mm] = [epoch.loss, epoch.validation].map(|cm| cm * 10.0);
        let (done, total) = (epoch.number + 1, settings.train.epochs);
        watch(SkinProgress::Network { done, total, loss_mm, rmse_mm })
    })?;
    let report = SkinReport {
        bones: weights.bone_count(),
        influences: weights.max_influences(),
        inputs: inputs.0.len(),
        idle_controls: influences.varying() - inputs.0.len(),
        whole_mm,
        skin_rmse_mm: targets.left_cm(&held) * 10.0,
        network_rmse_mm: trained.rmse_cm * 10.0,
        linear_rmse_mm: trained.linear_rmse_cm * 10.0,
        components: basis.len(),
        epochs: trained.epochs,
    };
    let training = Training {
        poses: poses.len(),
        inputs_probed: influences.probed(),
        details: [("settings", serde_json::json!(settings)), ("skin", serde_json::json!(report))]
            .map(|(key, value)| (key.to_owned(), value))
            .into(),
        ..Training::default()
    };
    let output = design.unfold(&trained.output, basis.len());
    let (inputs, mean, scale) = inputs;
    let parts = SkinParts {
        header: Header {
            rig: rig_name.into(),
            topology_hash: poses.mesh.topology_hash(),
            units: "cm".into(),
            inputs: Inputs { bones: Vec::new(), controls: poses.specs.clone() },
            training,
        },
        rest_vertices: poses.mesh.positions().to_vec(),
        faces: poses.mesh.faces().to_vec(),
        weights,
        centres,
        frame,
        inputs,
        mean,
        scale,
        hidden: trained.hidden,
        output,
        components: design::by_vertex(&basis),
    };
    Ok(LearnedSkin { parts, report })
}

/// What 16-bit weights cost against 32 bits on some of the poses.
pub fn half_error(parts: &SkinParts, poses: &Recording) -> Result<Distances, TwinError> {
    let twin = |precision| Ok(Twin::from(SkinTwin::new(parts.clone(), precision)?));
    let (half, single) = (twin(Precision::Half)?, twin(Precision::Single)?);
    Ok(crate::held_back::half_error([&half, &single], poses))
}

/// Learns the motion of the whole and takes it out of the poses; also the mean motion of a vertex before and after, mm.
fn whole(
    poses: &mut Recording,
    influences: &Influences,
    settings: &SkinSettings,
    watch: &dyn Fn(SkinProgress) -> bool,
) -> Result<Option<(MotionParts, [f64; 2])>, SkinLearnError> {
    let Some((skull, inputs)) = choose_skull(poses, influences) else { return Ok(None) };
    let size = Size::head(poses.len());
    let step = |epoch: usize| watch(SkinProgress::Whole { done: epoch + 1, total: size.epochs });
    let trained = motion::learn(poses, &skull.vertices, inputs, size, settings.train.seed, step);
    let trained = trained.map_err(|error| match error {
        FaceLearnError::Stopped => SkinLearnError::Stopped,
        other => SkinLearnError::Whole(other),
    })?;
    take_away(poses, &trained.parts);
    Ok(Some((trained.parts, [skull.motion_cm * 10.0, skull.left_cm * 10.0])))
}

/// Weights, rounded as files keep them, and centres of the bones.
fn skin(
    poses: &Recording,
    held: &[u32],
    settings: &SkinSettings,
    watch: &dyn Fn(SkinProgress) -> bool,
) -> Result<(SkinWeights, Vec<Vec3>), SkinLearnError> {
    let training: Vec<usize> =
        (0..poses.len()).filter(|p| held.binary_search(&(*p as u32)).is_err()).collect();
    let count = training.len().min(settings.poses);
    let chosen = (0..count).map(|i| training[i * training.len() / count]);
    let frames: Vec<&[Vec3]> = chosen.map(|pose| poses.vertices_of(pose)).collect();
    let rest = poses.mesh.positions();
    let [rigid, affine] = settings.rounds;
    let decomposition = DecompositionSettings {
        // No more bones than vertices.
        bones: settings.bones.min(rest.len()),
        influences: settings.influences,
        iterations: rigid,
        tolerance: settings.tolerance,
    };
    let (stopped, total) = (Cell::new(false), rigid + affine);
    let hear = |progress: DecompositionProgress| {
        let done = progress.iteration.min(total);
        let go_on = watch(SkinProgress::Bones { done, total, rmse_mm: progress.rmse * 10.0 });
        stopped.set(stopped.get() || !go_on);
        go_on
    };
    let found = decompose_affine(rest, &frames, &decomposition, affine, hear)?;
    if stopped.get() {
        return Err(SkinLearnError::Stopped);
    }
    Ok((rounded(&found.weights), found.centres))
}

/// Weights as whole numbers of [`WEIGHT_UNITS`] that still sum to one: two bytes each in a file.
fn rounded(weights: &SkinWeights) -> SkinWeights {
    let row = |vertex: usize| {
        let mut row: Vec<(u16, f32)> = weights
            .row(vertex)
            .map(|(bone, weight)| (bone as u16, (weight * WEIGHT_UNITS).round()))
            .filter(|(_, units)| *units > 0.0)
            .collect();
        let sum: f32 = row.iter().map(|(_, units)| units).sum();
        let largest =
            row.iter_mut().max_by(|a, b| a.1.total_cmp(&b.1)).expect("the largest of eight is not zero");
        largest.1 += WEIGHT_UNITS - sum;
        row.iter_mut().for_each(|(_, units)| *units /= WEIGHT_UNITS);
        row
    };
    let rows: Vec<Vec<(u16, f32)>> = (0..weights.vertex_count()).map(row).collect();
    SkinWeights::from_rows(&rows, weights.bone_count()).expect("rows that sum to one")
}

/// The fewest components with which no more than `goal` cm is left of held-back poses (root mean square over vertices, mean
/// over poses), of which the bones alone leave `left`; as many as there may be where that is not reached.
fn worthwhile(poses: &Recording, held: &[u32], design: &Design, left: f64, goal: f64) -> Vec<Vec<f64>> {
    /// Poses that are asked, and bytes of a component per vertex.
    const ASKED: usize = 64;
    const BYTES: usize = 6;
    if left <= goal {
        return Vec::new();
    }
    let vertices = poses.mesh.vertex_count().max(1);
    let mut basis = components(poses, held, design, MOST_WORTHWHILE.min(MOST_BYTES / (BYTES * vertices)));
    let step = held.len().div_ceil(ASKED).max(1);
    let asked: Vec<u32> = held.iter().copied().step_by(step).collect();
    // Of every pose what is left without components, then with ever more of them; mean squares.
    let lefts: Vec<Vec<f64>> = asked
        .par_iter()
        .map(|pose| {
            let rest = design.left(poses.vertices_of(*pose as usize));
            let square = rest.iter().map(|r| r * r).sum::<f64>() / vertices as f64;
            let said = basis.iter().map(|way| {
                (way.iter().zip(&rest).map(|(w, r)| w * r).sum::<f64>() / vertices as f64).powi(2)
            });
            let less = said.scan(square, |left, said| {
                *left = (*left - said).max(0.0);
                Some(*left)
            });
            std::iter::once(square).chain(less.collect::<Vec<_>>()).collect()
        })
        .collect();
    let mean =
        |count: usize| lefts.iter().map(|pose| pose[count].sqrt()).sum::<f64>() / lefts.len().max(1) as f64;
    let enough = (0..=basis.len()).find(|count| mean(*count) <= goal).unwrap_or(basis.len());
    basis.truncate(enough);
    basis
}

/// Principal components of what the best bones leave, each of unit root mean square per vertex, `[K][3 V]`.
fn components(poses: &Recording, held: &[u32], design: &Design, wanted: usize) -> Vec<Vec<f64>> {
    /// Poses per component that is wanted, and at least.
    const POSES: [usize; 2] = [3, 200];
    if wanted == 0 {
        return Vec::new();
    }
    let chosen: Vec<usize> = poses
        .spread((POSES[0] * wanted).max(POSES[1]))
        .into_iter()
        .filter(|pose| held.binary_search(&(*pose as u32)).is_err())
        .collect();
    let left: Vec<Vec<f64>> = chosen.par_iter().map(|pose| design.left(poses.vertices_of(*pose))).collect();
    let Some(width) = left.first().map(Vec::len) else { return Vec::new() };
    let ways = Components::about(vec![0.0; width], &left, wanted).ways;
    let unit = |way: Vec<f64>| {
        let square = way.iter().map(|w| w * w).sum::<f64>() * 3.0 / way.len() as f64;
        let factor = 1.0 / square.sqrt().max(f64::MIN_POSITIVE);
        way.into_iter().map(|w| w * factor).collect()
    };
    ways.into_iter().map(unit).collect()
}
