//! Points that are dragged from a pose: what is not dragged stays where it was, control by control. One [`PointDrag`] lasts
//! from the press of a button to its release; every place of the cursor is solved from where it began, so that going back
//! gives the first pose again.

use super::{Correction, PointSolver};
use crate::PoseError;
use crate::error::check_count;
use understudy_core::Vec3;

/// How much a point counts that nobody holds, beside those that are dragged or pinned.
const LOOSE: f32 = 0.1;

/// Where a point shall be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    /// Which point.
    pub point: usize,
    /// Where, cm. A depth (z) that is not a number is the one that the point has.
    pub place: Vec3,
    /// The direction in which it is looked at: what is off along it hardly counts. Zero where all of the place is meant.
    pub sight: Vec3,
}

/// A pose whose points are dragged.
#[derive(Debug, Clone)]
pub struct PointDrag {
    controls: Vec<f32>,
    /// What the networks say of the pose: it is taken off what they say of the targets.
    said: Vec<f32>,
    places: Vec<Vec3>,
    targets: Vec<Vec3>,
    weights: Vec<f32>,
    sights: Vec<Vec3>,
    regions: Vec<usize>,
}

impl PointDrag {
    /// From these controls on, all of the twin's.
    pub fn begin(solver: &mut PointSolver, controls: &[f32]) -> Result<Self, PoseError> {
        let mut places = vec![Vec3::ZERO; solver.ik().points().len()];
        solver.points(controls, &mut places)?;
        let mut said = controls.to_vec();
        solver.solve(&places, &mut said)?;
        let (targets, weights) = (places.clone(), vec![LOOSE; places.len()]);
        let sights = vec![Vec3::ZERO; places.len()];
        Ok(Self { controls: controls.to_vec(), said, places, targets, weights, sights, regions: Vec::new() })
    }

    /// Where the points were when it began, and what they are dragged to now, cm.
    pub fn places(&self) -> (&[Vec3], &[Vec3]) {
        (&self.places, &self.targets)
    }

    /// Brings points to their places; `pinned` ones stay firmly, all others as far as they can. Writes the controls, and
    /// gives the largest distance that a point of the regions that move is off, cm.
    pub fn to(
        &mut self,
        solver: &mut PointSolver,
        wanted: &[Wanted],
        pinned: &[usize],
        how: &Correction,
        controls: &mut [f32],
    ) -> Result<f32, PoseError> {
        let count = self.places.len();
        check_count("controls of the pose", controls.len(), self.controls.len())?;
        for point in wanted.iter().map(|wanted| &wanted.point).chain(pinned) {
            if *point >= count {
                return Err(PoseError::Count { what: "points", got: *point, want: count });
            }
        }
        self.targets.clone_from(&self.places);
        self.weights.fill(LOOSE);
        self.sights.fill(Vec3::ZERO);
        self.regions.clear();
        pinned.iter().for_each(|point| self.weights[*point] = 1.0);
        for Wanted { point, place, sight } in wanted {
            let depth = if place.z.is_nan() { self.places[*point].z } else { place.z };
            self.targets[*point] = Vec3::new(place.x, place.y, depth);
            (self.weights[*point], self.sights[*point]) = (1.0, *sight);
            if let Some(region) = solver.ik().region_of(*point).filter(|r| !self.regions.contains(r)) {
                self.regions.push(region);
            }
        }
        solver.solve(&self.targets, controls)?;
        for (place, (control, range)) in controls.iter_mut().zip(solver.ranges()).enumerate() {
            let (start, said) = (self.controls[place], self.said[place]);
            *control = match range {
                Some((low, high)) => (start + (*control - said)).clamp(low.min(start), high.max(start)),
                None => start,
            };
        }
        if self.regions.is_empty() {
            return Ok(0.0);
        }
        solver.weigh(&self.weights)?;
        solver.look_along(&self.sights)?;
        let left = solver.correct(&self.targets, &self.regions, how, controls);
        // Who solves next sees every point from everywhere.
        self.weights.fill(1.0);
        self.sights.fill(Vec3::ZERO);
        solver.weigh(&self.weights)?;
        solver.look_along(&self.sights)?;
        left
    }
}
