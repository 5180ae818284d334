//! Gauss–Newton steps that bring points to their targets, from any pose:
//!
//! `Δp = S² Jᵀ (J S² Jᵀ + μ 1)⁻¹ e`, `e = V̄ − V(p)`,
//!
//! `J = ∂V/∂p` through the twin, `S` the ranges of the controls, `μ` the damping (Wampler 1986). With `J = ∂e/∂p`, as the
//! paper defines it, the sign would be the other one. The system has a row per coordinate of a point, not per control.
//! Steps are local by construction: they move only controls that no region but those asked for gives, and only the points of
//! these regions are evaluated.

use super::PointSolver;
use crate::ik::small::{dot, solve_positive};
use crate::{Player, Pose, PoseError};
use understudy_core::{DMat3, DVec3, Vec3};

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

/// How much of what is off along the line of sight counts beside what is off across it: enough to keep the system whole.
const ALONG_SIGHT: f64 = 0.05;

/// The points of some regions alone: what corrections of these regions evaluate.
pub(super) struct Part {
    regions: Vec<usize>,
    points: Vec<usize>,
    player: Player,
    vertices: Vec<Vec3>,
}

/// Kept parts: people drag one region, then another.
const PARTS: usize = 8;

impl PointSolver {
    /// Corrects controls so that the points of these regions (all where none is named) come to their targets; gives the
    /// largest distance that is left, cm: across the line of sight where a point has one. Controls that another region
    /// gives as well stay as they are.
    pub fn correct(
        &mut self,
        targets: &[Vec3],
        regions: &[usize],
        how: &Correction,
        controls: &mut [f32],
    ) -> Result<f32, PoseError> {
        self.check(targets, controls.len())?;
        let place = self.part_of(regions)?;
        let mut part = self.parts.remove(place);
        let mut steps = std::mem::take(&mut self.steps);
        let left = self.correct_part(targets, &mut part, &mut steps, how, controls);
        self.steps = steps;
        self.parts.push(part);
        left
    }

    /// The part of these regions among those that are kept, made where it is not.
    fn part_of(&mut self, regions: &[usize]) -> Result<usize, PoseError> {
        let asked = |region: usize| regions.is_empty() || regions.contains(&region);
        let regions: Vec<usize> = (0..self.ik.regions.len()).filter(|region| asked(*region)).collect();
        if let Some(place) = self.parts.iter().position(|part| part.regions == regions) {
            return Ok(place);
        }
        let of = |region: &usize| self.ik.regions[*region].points.clone();
        let ids: Vec<u32> = regions.iter().flat_map(of).collect();
        let twin = self.ik.part.of_vertices(&ids).map_err(|_| PoseError::Kind("this twin has no parts"))?;
        if self.parts.len() >= PARTS {
            self.parts.remove(0);
        }
        let points = ids.into_iter().map(|point| point as usize).collect();
        let vertices = vec![Vec3::ZERO; twin.vertex_count()];
        self.parts.push(Part { regions, points, player: twin.player(1), vertices });
        Ok(self.parts.len() - 1)
    }

    fn correct_part(
        &self,
        targets: &[Vec3],
        part: &mut Part,
        steps: &mut Steps,
        how: &Correction,
        controls: &mut [f32],
    ) -> Result<f32, PoseError> {
        let ik = &*self.ik;
        let mut free: Vec<usize> = (0..controls.len())
            .filter(|&control| {
                let owned = &ik.controls[control];
                !self.held[control]
                    && !owned.regions.is_empty()
                    && owned.regions.iter().all(|region| part.regions.contains(region))
            })
            .collect();
        let (width, count) = (controls.len(), part.points.len());
        steps.jacobian.resize(3 * count * width, 0.0);
        let Part { points, player, vertices, .. } = part;
        player.pose(Pose::Controls(controls), vertices)?;
        steps.points.clear();
        steps.points.extend_from_slice(&vertices[..count]);
        let miss = |places: &[Vec3]| {
            let off = |(place, point): (&Vec3, &usize)| {
                let off = self.seen(*point, targets[*point] - *place);
                if ik.dimensions == 2 { off.truncate().length() } else { off.length() }
            };
            places.iter().zip(points.iter()).map(off).fold(0.0f32, f32::max)
        };
        let sum = |places: &[Vec3]| -> f64 {
            let square = |(place, point): (&Vec3, &usize)| {
                let off = self.weight(*point) * (targets[*point] - *place).as_dvec3();
                off.to_array()[..ik.dimensions].iter().map(|x| x * x).sum::<f64>()
            };
            places.iter().zip(points.iter()).map(square).sum()
        };
        let mut known = false;
        for _ in 0..how.steps {
            if free.is_empty() || points.is_empty() || miss(&steps.points) <= how.enough_cm {
                break;
            }
            if !known {
                player.jacobian(Pose::Controls(controls), &mut steps.points, &mut steps.jacobian)?;
            }
            known |= how.keep_derivatives;
            let before = sum(&steps.points);
            // A step that makes it worse is tried again with more damping, and given up where that does not help.
            let (mut better, mut damping) = (false, how.damping);
            for _ in 0..8 {
                let firm = Correction { damping, ..*how };
                damping *= 100.0;
                if !self.step(targets, points, &free, &firm, controls, steps) {
                    continue;
                }
                let tried = std::mem::take(&mut steps.tried);
                player.pose(Pose::Controls(&tried), vertices)?;
                steps.moved.clear();
                steps.moved.extend_from_slice(&vertices[..count]);
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
        Ok(miss(&steps.points))
    }

    /// What of an offset somebody sees who looks along the point's line of sight; all of it where it has none.
    fn seen(&self, point: usize, off: Vec3) -> Vec3 {
        let sight = self.sights[point];
        off - sight * sight.dot(off)
    }

    /// What multiplies an offset of a point: its weight, less along its line of sight.
    fn weight(&self, point: usize) -> DMat3 {
        let sight = self.sights[point].as_dvec3();
        let less = (1.0 - ALONG_SIGHT) * sight;
        (DMat3::IDENTITY - DMat3::from_cols(sight * less.x, sight * less.y, sight * less.z))
            * f64::from(self.weights[point])
    }

    /// Fills `steps.tried` with the controls after one step; `false` where there is none.
    fn step(
        &self,
        targets: &[Vec3],
        points: &[usize],
        free: &[usize],
        how: &Correction,
        controls: &[f32],
        steps: &mut Steps,
    ) -> bool {
        let ik = &*self.ik;
        let (width, dimensions, wide) = (controls.len(), ik.dimensions, free.len());
        let height = points.len() * dimensions;
        let range =
            |control: usize| (ik.controls[control].high - ik.controls[control].low).max(f32::MIN_POSITIVE);
        // J S, the free controls alone.
        steps.rows.clear();
        for (place, point) in points.iter().enumerate() {
            let weight = self.weight(*point);
            let row = |axis: usize| &steps.jacobian[(3 * place + axis) * width..][..width];
            let [x, y, z] = [row(0), row(1), row(2)];
            for axis in 0..dimensions {
                let own = weight.row(axis);
                steps.rows.extend(free.iter().map(|control| {
                    let slope = DVec3::new(x[*control].into(), y[*control].into(), z[*control].into());
                    own.dot(slope) * f64::from(range(*control))
                }));
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
        for (place, point) in points.iter().enumerate() {
            let off = self.weight(*point) * (targets[*point] - steps.points[place]).as_dvec3();
            steps.right.extend(&off.to_array()[..dimensions]);
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
