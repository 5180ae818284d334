//! Gauss–Newton steps that bring points to their targets, from any pose:
//!
//! `Δp = S² Jᵀ (J S² Jᵀ + μ 1)⁻¹ e`, `e = V̄ − V(p)`,
//!
//! `J = ∂V/∂p` through the twin, `S` the ranges of the controls, `μ` the damping (Wampler 1986). With `J = ∂e/∂p`, as the
//! paper defines it, the sign would be the other one. The system has a row per coordinate of a point, not per control.
//! Steps are local by construction: they move only controls that no region but those asked for gives.

use super::PointSolver;
use crate::ik::small::{dot, solve_positive};
use crate::{Pose, PoseError};
use understudy_core::Vec3;

/// How to correct.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correction {
    /// At most so many steps.
    pub steps: usize,
    /// Points that are so near need no step, cm.
    pub enough_cm: f32,
    /// Square of how far points may stay off where controls would have to go through their whole range, cm²: larger keeps
    /// controls calmer where a target is out of reach.
    pub damping: f64,
    /// Whether the second and further steps use the derivatives of the first one: a step then costs next to nothing.
    pub keep_derivatives: bool,
    /// Whether controls stay within their ranges.
    pub within_ranges: bool,
}

impl Default for Correction {
    fn default() -> Self {
        Self { steps: 2, enough_cm: 0.002, damping: 1e-5, keep_derivatives: true, within_ranges: true }
    }
}

/// Memory of the steps.
#[derive(Default)]
pub(super) struct Steps {
    jacobian: Vec<f32>,
    points: Vec<Vec3>,
    moved: Vec<Vec3>,
    tried: Vec<f32>,
    /// `J S` of the free controls, in double precision: a head that turns moves points a hundred times as far as a lid.
    rows: Vec<f64>,
    gram: Vec<f64>,
    right: Vec<f64>,
}

impl PointSolver {
    /// Corrects controls so that the points of these regions (all where none is named) come to their targets; gives the
    /// largest distance that is left, cm. Controls that another region gives as well stay as they are.
    pub fn correct(
        &mut self,
        targets: &[Vec3],
        regions: &[usize],
        how: &Correction,
        controls: &mut [f32],
    ) -> Result<f32, PoseError> {
        self.check(targets, controls.len())?;
        let ik = std::sync::Arc::clone(&self.ik);
        let asked = |region: usize| regions.is_empty() || regions.contains(&region);
        let points: Vec<usize> = (ik.regions.iter().enumerate())
            .filter(|(index, _)| asked(*index))
            .flat_map(|(_, region)| region.points.iter().map(|point| *point as usize))
            .collect();
        let mut free: Vec<usize> = (0..controls.len())
            .filter(|&control| {
                let owned = &ik.controls[control];
                !self.held[control]
                    && !owned.regions.is_empty()
                    && owned.regions.iter().all(|region| asked(*region))
            })
            .collect();
        let (width, count, dimensions) = (controls.len(), ik.points.len(), ik.dimensions);
        let rows = points.len() * dimensions;
        let mut steps = std::mem::take(&mut self.steps);
        steps.jacobian.resize(3 * count * width, 0.0);
        steps.points.resize(count, Vec3::ZERO);
        steps.moved.resize(count, Vec3::ZERO);
        self.points(controls, &mut steps.points)?;
        let miss = |places: &[Vec3]| {
            let off = |point: &usize| {
                let off = targets[*point] - places[*point];
                if dimensions == 2 { off.truncate().length() } else { off.length() }
            };
            points.iter().map(off).fold(0.0f32, f32::max)
        };
        let weights = self.weights.clone();
        let sum = |places: &[Vec3]| -> f64 {
            let square = |point: &usize| {
                let off = (targets[*point] - places[*point]).as_dvec3().to_array();
                f64::from(weights[*point]).powi(2) * off[..dimensions].iter().map(|x| x * x).sum::<f64>()
            };
            points.iter().map(square).sum()
        };
        let mut known = false;
        for _ in 0..how.steps {
            if free.is_empty() || rows == 0 || miss(&steps.points) <= how.enough_cm {
                break;
            }
            if !known {
                self.player.jacobian(Pose::Controls(controls), &mut steps.points, &mut steps.jacobian)?;
            }
            known |= how.keep_derivatives;
            let before = sum(&steps.points);
            // A step that makes it worse is tried again with more damping, and given up where that does not help.
            let (mut better, mut damping) = (false, how.damping);
            for _ in 0..8 {
                let firm = Correction { damping, ..*how };
                damping *= 100.0;
                if !self.step(&ik, targets, &points, &free, &firm, controls, &mut steps) {
                    continue;
                }
                let tried = std::mem::take(&mut steps.tried);
                self.points(&tried, &mut steps.moved)?;
                steps.tried = tried;
                if sum(&steps.moved) < before {
                    better = true;
                    break;
                }
            }
            if !better {
                break;
            }
            controls.copy_from_slice(&steps.tried);
            steps.points.clone_from(&steps.moved);
            if how.within_ranges {
                // What stands at an end stays there: the next step goes with the others.
                free.retain(|&c| controls[c] > ik.controls[c].low && controls[c] < ik.controls[c].high);
            }
        }
        let left = miss(&steps.points);
        self.steps = steps;
        Ok(left)
    }

    /// Fills `steps.tried` with the controls after one step; `false` where there is none.
    #[allow(clippy::too_many_arguments)]
    fn step(
        &self,
        ik: &super::PointIk,
        targets: &[Vec3],
        points: &[usize],
        free: &[usize],
        how: &Correction,
        controls: &[f32],
        steps: &mut Steps,
    ) -> bool {
        let (width, dimensions, wide) = (controls.len(), ik.dimensions, free.len());
        let height = points.len() * dimensions;
        let range =
            |control: usize| (ik.controls[control].high - ik.controls[control].low).max(f32::MIN_POSITIVE);
        // J S, the free controls alone.
        steps.rows.clear();
        for point in points {
            let weight = f64::from(self.weights[*point]);
            for axis in 0..dimensions {
                let row = &steps.jacobian[(3 * point + axis) * width..][..width];
                steps
                    .rows
                    .extend(free.iter().map(|control| weight * f64::from(row[*control] * range(*control))));
            }
        }
        let row = |index: usize| &steps.rows[index * wide..(index + 1) * wide];
        steps.gram.resize(height * height, 0.0);
        for i in 0..height {
            for j in 0..=i {
                let dot = dot(row(i), row(j));
                (steps.gram[i * height + j], steps.gram[j * height + i]) = (dot, dot);
            }
            steps.gram[i * height + i] += how.damping;
        }
        steps.right.clear();
        for point in points {
            let off = (targets[*point] - steps.points[*point]).as_dvec3().to_array();
            let weight = f64::from(self.weights[*point]);
            steps.right.extend(off[..dimensions].iter().map(|x| weight * x));
        }
        if !solve_positive(&mut steps.gram[..height * height], &mut steps.right) {
            return false;
        }
        steps.tried.clear();
        steps.tried.extend_from_slice(controls);
        for (place, &control) in free.iter().enumerate() {
            let share: f64 = (0..height).map(|i| steps.rows[i * wide + place] * steps.right[i]).sum();
            let value = controls[control] + range(control) * share as f32;
            let owned = &ik.controls[control];
            steps.tried[control] = if how.within_ranges { value.clamp(owned.low, owned.high) } else { value };
        }
        steps.tried.iter().all(|value| value.is_finite())
    }
}
