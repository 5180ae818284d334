//! Which controls each network sees: those that move any of its vertices. Found by moving the controls of
//! the live rig where it is at hand, else estimated from the poses.

use super::{FaceLearnError, Recording};
use rayon::prelude::*;
use understudy_core::{Random, Vec3};
use understudy_rigs::Rig;
use understudy_rigs::probe::{ProbeConfig, Prober};

/// Some controls, with the mean to subtract from each and the scale to multiply by.
pub type NormalisedControls = (Vec<u32>, Vec<f32>, Vec<f32>);

/// Which controls move which vertices.
#[derive(Debug, Clone)]
pub struct Influences {
    /// Controls that take more than one value in the poses.
    varying: Vec<u32>,
    /// Per varying control, per vertex: whether it moves it. `None` without a live rig.
    moves: Option<Vec<Vec<bool>>>,
}

/// A control that changes by less of its range is taken for constant.
const CONSTANT: f32 = 1e-5;
/// Poses that suffice for an estimate.
const MOST_POSES: usize = 1500;
/// Random directions in which a group's offsets are looked at.
const PROJECTIONS: usize = 8;

impl Influences {
    /// Moves every varying control of the live rig; `None` leaves it to the poses.
    pub fn new(poses: &Recording, rig: Option<&dyn Rig>) -> Result<Self, FaceLearnError> {
        let varying: Vec<u32> =
            (0..poses.specs.len() as u32).filter(|c| varies(poses, *c as usize)).collect();
        let Some(rig) = rig else { return Ok(Self { varying, moves: None }) };
        let config = ProbeConfig { poses: 3, random_steps: 1, ..ProbeConfig::default() };
        let prober = Prober::prepare(rig, &config)?;
        let row = |control: &u32| -> Result<Vec<bool>, FaceLearnError> {
            let found = prober.control(*control as usize)?;
            let mut moves = vec![false; poses.mesh.vertex_count()];
            found.vertices.iter().for_each(|(vertex, _)| moves[*vertex as usize] = true);
            Ok(moves)
        };
        let moves = varying.par_iter().map(row).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { varying, moves: Some(moves) })
    }

    /// Whether the live rig was asked.
    pub fn probed(&self) -> bool {
        self.moves.is_some()
    }

    /// The fifth of the vertices that fewest controls move, among those that all controls of the whole head
    /// move: its crown and teeth, not its lips. `None` where the rig was not asked or has no such controls.
    pub fn calmest(&self) -> Option<Vec<u32>> {
        /// A control that moves this share of the vertices moves the head.
        const HEAD: f64 = 0.8;
        let moves = self.moves.as_ref()?;
        let vertices = moves.first()?.len();
        let reach = |moves: &&Vec<bool>| moves.iter().filter(|m| **m).count() as f64;
        let head: Vec<&Vec<bool>> = moves.iter().filter(|m| reach(m) >= HEAD * vertices as f64).collect();
        let on_head = (0..vertices).filter(|vertex| head.iter().all(|moves| moves[*vertex]));
        let controls = |vertex: usize| moves.iter().filter(|moves| moves[vertex]).count();
        let counts: Vec<(usize, u32)> = on_head.map(|vertex| (controls(vertex), vertex as u32)).collect();
        let mut sorted = counts.clone();
        sorted.sort_unstable();
        let most = sorted.get(counts.len() / 5)?.0;
        let calm = counts.iter().filter(|(count, _)| *count <= most).map(|(_, vertex)| *vertex);
        (!head.is_empty()).then(|| calm.collect())
    }

    /// All controls that take more than one value, with the mean to subtract and the scale to multiply by; of a live rig
    /// those that move anything.
    pub fn all(&self, poses: &Recording) -> NormalisedControls {
        let moves = |index: usize| self.moves.as_ref().is_none_or(|moves| moves[index].contains(&true));
        let kept = self.varying.iter().enumerate().filter(|(index, _)| moves(*index));
        let inputs: Vec<u32> = kept.map(|(_, control)| *control).collect();
        let (mean, scale) = inputs.iter().map(|c| normalisation(poses, *c as usize)).unzip();
        (inputs, mean, scale)
    }

    /// Controls that take more than one value.
    pub fn varying(&self) -> usize {
        self.varying.len()
    }

    /// Controls that move any of these vertices, with the mean to subtract and the scale to multiply by.
    pub fn of(&self, poses: &Recording, vertices: &[u32]) -> NormalisedControls {
        self.of_more_than(0.0, poses, vertices)
    }

    /// As [`Influences::of`], controls that move more than a share of these vertices, as far as the rig could
    /// be asked: what moves a head moves all of it, while a brow pulls at some of its skin.
    pub fn of_more_than(&self, share: f32, poses: &Recording, vertices: &[u32]) -> NormalisedControls {
        let inputs: Vec<u32> = match &self.moves {
            Some(moves) => {
                let least = share * vertices.len() as f32;
                let enough = |moves: &Vec<bool>| {
                    vertices.iter().filter(|v| moves[**v as usize]).count() as f32 > least
                };
                self.varying.iter().zip(moves).filter(|(_, m)| enough(m)).map(|(c, _)| *c).collect()
            }
            None => self.estimate(poses, vertices),
        };
        let normal = |control: &u32| normalisation(poses, *control as usize);
        let (mean, scale) = inputs.iter().map(normal).unzip();
        (inputs, mean, scale)
    }

    /// Keeps the controls that explain a share of the offsets' variance that chance does not: the squared
    /// multiple correlation of a few random projections of the offsets with the control and its square,
    /// against the level that two useless regressors reach in `n` poses. Controls that move together in
    /// the poses stand for each other, so that rather too many are kept than too few.
    fn estimate(&self, poses: &Recording, vertices: &[u32]) -> Vec<u32> {
        let chosen = poses.spread(MOST_POSES);
        let rest = poses.mesh.positions();
        let mut random = Random::stream(0x1ac5, vertices.first().copied().unwrap_or(0).into());
        let directions: Vec<Vec3> = (0..vertices.len() * PROJECTIONS)
            .map(|_| Vec3::from_array([0; 3].map(|_| random.normal() as f32)))
            .collect();
        let project = |projection: usize| {
            let along = |pose: &usize| {
                let now = poses.vertices_of(*pose);
                let one = |(place, v): (usize, &u32)| {
                    let offset = now[*v as usize] - rest[*v as usize];
                    f64::from(offset.dot(directions[projection * vertices.len() + place]))
                };
                vertices.iter().enumerate().map(one).sum::<f64>()
            };
            let mut values: Vec<f64> = chosen.iter().map(along).collect();
            centre(&mut values);
            values
        };
        let targets: Vec<Vec<f64>> = (0..PROJECTIONS).into_par_iter().map(project).collect();
        let level = (2.0 + 4.0 * 2.0) / chosen.len() as f64;
        let explains = |control: &&u32| {
            let value = |pose: &usize| f64::from(poses.controls_of(*pose)[**control as usize]);
            let mut linear: Vec<f64> = chosen.iter().map(value).collect();
            let mut square: Vec<f64> = linear.iter().map(|v| v * v).collect();
            unit(&mut linear, None);
            let first = linear.clone();
            unit(&mut square, Some(&first));
            targets.iter().any(|target| {
                let whole: f64 = target.iter().map(|t| t * t).sum();
                let part: f64 = [&linear, &square].map(|basis| dot(basis, target).powi(2)).iter().sum();
                whole > 1e-12 && part / whole > level
            })
        };
        self.varying.iter().filter(explains).copied().collect()
    }
}

fn varies(poses: &Recording, control: usize) -> bool {
    let spec = poses.specs.get(control);
    let first = poses.controls_of(0)[control];
    let enough = (spec.high - spec.low) * CONSTANT;
    (1..poses.len()).any(|pose| (poses.controls_of(pose)[control] - first).abs() > enough)
}

/// The default, and one over the farthest from it in the poses. Not the spread: a control that is mostly at
/// rest has a small one, and its rare values would drown the others.
fn normalisation(poses: &Recording, control: usize) -> (f32, f32) {
    let rest = poses.specs.iter().nth(control).map_or(0.0, |spec| spec.default);
    let values = (0..poses.len()).map(|pose| poses.controls_of(pose)[control]);
    let most = values.map(|value| (value - rest).abs()).fold(0.0, f32::max);
    (rest, 1.0 / most.max(1e-9))
}

fn centre(numbers: &mut [f64]) {
    let mean = numbers.iter().sum::<f64>() / numbers.len().max(1) as f64;
    numbers.iter_mut().for_each(|n| *n -= mean);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Mean and the other vector removed, length one; zero where nothing is left.
fn unit(numbers: &mut [f64], other: Option<&[f64]>) {
    centre(numbers);
    let before = dot(numbers, numbers).sqrt();
    if let Some(other) = other {
        let along = dot(numbers, other);
        numbers.iter_mut().zip(other).for_each(|(n, o)| *n -= along * o);
    }
    let length = dot(numbers, numbers).sqrt();
    let factor = if length > 1e-6 * before.max(1e-9) { 1.0 / length } else { 0.0 };
    numbers.iter_mut().for_each(|n| *n *= factor);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calmest_are_on_the_head_and_moved_by_few() {
        // Ten vertices: two of a bust that holds still, two of a crown, six of a face.
        let nod: Vec<bool> = (0..10).map(|vertex| vertex >= 2).collect();
        let smile: Vec<bool> = (0..10).map(|vertex| vertex >= 4).collect();
        let wink: Vec<bool> = (0..10).map(|vertex| vertex >= 8).collect();
        let varying = vec![0, 1, 2];
        let asked = Influences { varying, moves: Some(vec![nod, smile.clone(), wink.clone()]) };
        assert_eq!(asked.calmest(), Some(vec![2, 3]));
        assert_eq!(Influences { varying: vec![0], moves: None }.calmest(), None);
        let without_head = Influences { varying: vec![0, 1], moves: Some(vec![smile, wink]) };
        assert_eq!(without_head.calmest(), None, "no control moves the head");
    }
}
