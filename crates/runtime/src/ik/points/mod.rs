//! A face that follows points: networks that give controls from places of points, one per region of the face, and
//! Gauss–Newton steps through the twin's derivatives that correct them. The section of a twin's file that holds them is in
//! `file.rs`; steps are in `correct.rs`. Start at [`PointIk::solver`].
//!
//! `p = p⁰ + s ⊙ mean_j f_j(V̄_Cj)` (4.7): every network sees the points of its region alone and gives the controls that
//! move them; a control that several give is averaged. Moving a point of one region therefore changes no control that moves
//! only another.

mod correct;
mod drag;
mod file;

pub use correct::Correction;
pub use drag::{PointDrag, Wanted};

use crate::dense::{Activation, Kernel, Layer, Precision};
use crate::error::{check_count, check_finite};
use crate::twin::network::{DenseParts, check_chain, pack_dense, unpack_dense};
use crate::{Player, Pose, PoseError, Twin, TwinError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use understudy_core::Vec3;

/// Slope of the rectifiers below zero.
pub const LEAK: f32 = 0.2;

/// Distances that inputs are measured in, cm: what points of a face usually move.
pub const INPUT_CM: f32 = 1.0;

/// A point that can be dragged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControlPoint {
    /// `mouth_corner_L`.
    pub name: String,
    /// The vertex of the twin.
    pub vertex: u32,
}

/// The network of one region.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionParts {
    /// `mouth`.
    pub name: String,
    /// Which points it sees.
    pub points: Vec<u32>,
    /// Which controls it gives.
    pub controls: Vec<u32>,
    /// Leaky rectifiers between them.
    pub layers: Vec<DenseParts>,
}

/// What was learned, before it is checked and packed.
#[derive(Debug, Clone, PartialEq)]
pub struct PointIkParts {
    /// Topology of the twin that it was learned through.
    pub topology_hash: u64,
    /// 2: points are dragged on a screen along z; 3: in space.
    pub dimensions: usize,
    /// The points.
    pub points: Vec<ControlPoint>,
    /// Where they rest, cm.
    pub rest: Vec<Vec3>,
    /// Disjoint; every point is in one.
    pub regions: Vec<RegionParts>,
    /// Settings and figures, for people.
    pub training: serde_json::Value,
}

/// Networks that pose a twin by its points, checked and packed for it.
#[derive(Debug, Clone)]
pub struct PointIk {
    topology_hash: u64,
    dimensions: usize,
    points: Vec<ControlPoint>,
    rest: Vec<Vec3>,
    regions: Vec<Region>,
    training: serde_json::Value,
    precision: Precision,
    /// The twin's vertices at the points alone.
    part: Twin,
    /// Per control: neutral value, lower and upper end, and the regions that give it.
    controls: Vec<Owned>,
}

#[derive(Debug, Clone)]
struct Region {
    name: String,
    points: Vec<u32>,
    controls: Vec<u32>,
    layers: Vec<Layer>,
}

/// A control and who gives it.
#[derive(Debug, Clone, PartialEq)]
struct Owned {
    neutral: f32,
    low: f32,
    high: f32,
    regions: Vec<usize>,
}

impl PointIk {
    /// Checks the parts against the twin that they pose.
    pub fn new(parts: PointIkParts, precision: Precision, twin: &Twin) -> Result<Self, TwinError> {
        let wrong = |what: &str, problem: String| TwinError::Part { what: format!("ik: {what}"), problem };
        if parts.topology_hash != twin.header().topology_hash {
            let (got, want) = (parts.topology_hash, twin.header().topology_hash);
            return Err(wrong("points", format!("are of topology {got:016x}, the twin is of {want:016x}")));
        }
        if !(2..=3).contains(&parts.dimensions) {
            return Err(wrong("dimensions", format!("{}; 2 or 3 are wanted", parts.dimensions)));
        }
        if parts.points.is_empty() || parts.rest.len() != parts.points.len() {
            let problem = format!("{} with {} places at rest", parts.points.len(), parts.rest.len());
            return Err(wrong("points", problem));
        }
        if let Some(index) = parts.rest.iter().position(|place| !place.is_finite()) {
            return Err(TwinError::NonFinite { what: "ik: places at rest".into(), index });
        }
        let vertices: Vec<u32> = parts.points.iter().map(|point| point.vertex).collect();
        let part = twin.of_vertices(&vertices)?;
        let specs = &twin.header().inputs.controls;
        let owned = |spec: &understudy_core::ControlSpec| Owned {
            neutral: spec.default,
            low: spec.low,
            high: spec.high,
            regions: Vec::new(),
        };
        let mut controls: Vec<Owned> = specs.iter().map(owned).collect();
        let mut seen = vec![false; parts.points.len()];
        let mut regions = Vec::new();
        for (index, region) in parts.regions.into_iter().enumerate() {
            for point in &region.points {
                match seen.get_mut(*point as usize) {
                    Some(seen) if !*seen => *seen = true,
                    _ => {
                        return Err(wrong(
                            &region.name,
                            format!("point {point} does not exist or is seen twice"),
                        ));
                    }
                }
            }
            for control in &region.controls {
                match controls.get_mut(*control as usize) {
                    Some(owned) if !owned.regions.contains(&index) => owned.regions.push(index),
                    _ => {
                        return Err(wrong(
                            &region.name,
                            format!("control {control} does not exist or comes twice"),
                        ));
                    }
                }
            }
            let inputs = region.points.len() * parts.dimensions;
            check_chain(&region.name, &region.layers, inputs, region.controls.len())?;
            let layers = pack_dense(&region.name, &region.layers, inputs, false, precision)?;
            debug_assert!(layers.iter().all(|layer| layer.activation() == Activation::None));
            let RegionParts { name, points, controls, .. } = region;
            regions.push(Region { name, points, controls, layers });
        }
        Ok(Self {
            topology_hash: parts.topology_hash,
            dimensions: parts.dimensions,
            points: parts.points,
            rest: parts.rest,
            regions,
            training: parts.training,
            precision,
            part,
            controls,
        })
    }

    /// What it is made of.
    pub fn parts(&self) -> PointIkParts {
        let region = |region: &Region| RegionParts {
            name: region.name.clone(),
            points: region.points.clone(),
            controls: region.controls.clone(),
            layers: unpack_dense(&region.layers),
        };
        PointIkParts {
            topology_hash: self.topology_hash,
            dimensions: self.dimensions,
            points: self.points.clone(),
            rest: self.rest.clone(),
            regions: self.regions.iter().map(region).collect(),
            training: self.training.clone(),
        }
    }

    /// The points.
    pub fn points(&self) -> &[ControlPoint] {
        &self.points
    }

    /// Where the points rest, cm.
    pub fn rest(&self) -> &[Vec3] {
        &self.rest
    }

    /// Coordinates of a point that count: 2 (x and y) or 3.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Settings and figures of learning.
    pub fn training(&self) -> &serde_json::Value {
        &self.training
    }

    /// The regions' names, with their points and the controls that they give.
    pub fn regions(&self) -> impl Iterator<Item = (&str, &[u32], &[u32])> {
        self.regions.iter().map(|region| (region.name.as_str(), &region.points[..], &region.controls[..]))
    }

    /// The point of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.points.iter().position(|point| point.name == name)
    }

    /// The region that a point is in; `None` where it is in none.
    pub fn region_of(&self, point: usize) -> Option<usize> {
        self.regions.iter().position(|region| region.points.contains(&(point as u32)))
    }

    /// Memory to solve with.
    pub fn solver(self: &Arc<Self>) -> PointSolver {
        let layers = || self.regions.iter().flat_map(|region| &region.layers);
        let widest = layers().map(|layer| layer.padded_rows().max(layer.columns())).max().unwrap_or(0);
        let widest = widest.next_multiple_of(crate::dense::PANEL);
        PointSolver {
            player: self.part.player(1),
            kernel: Kernel::detect(),
            buffers: [vec![0.0; widest], vec![0.0; widest]],
            vertices: vec![Vec3::ZERO; self.part.vertex_count()],
            weights: vec![1.0; self.points.len()],
            held: vec![false; self.controls.len()],
            sights: vec![Vec3::ZERO; self.points.len()],
            parts: Vec::new(),
            steps: correct::Steps::default(),
            ik: Arc::clone(self),
        }
    }
}

/// Controls from points, for one character or thread. Nothing is allocated per solve; memory for corrections is made when
/// they are first asked for.
pub struct PointSolver {
    ik: Arc<PointIk>,
    player: Player,
    kernel: Kernel,
    buffers: [Vec<f32>; 2],
    vertices: Vec<Vec3>,
    /// How much each point counts in corrections.
    weights: Vec<f32>,
    /// Controls that stay at rest whatever the points ask for.
    held: Vec<bool>,
    /// Along which direction each point is looked at, of unit length; zero where it is from everywhere.
    sights: Vec<Vec3>,
    /// The points of the regions that were corrected last.
    parts: Vec<correct::Part>,
    steps: correct::Steps,
}

impl PointSolver {
    /// What it solves with.
    pub fn ik(&self) -> &Arc<PointIk> {
        &self.ik
    }

    /// How much each point counts in corrections, 1 at first: points that are dragged more than those that are pinned.
    pub fn weigh(&mut self, weights: &[f32]) -> Result<(), PoseError> {
        check_count("weights of points", weights.len(), self.weights.len())?;
        check_finite("weights of points", weights.iter().map(|weight| weight.is_finite()))?;
        self.weights.copy_from_slice(weights);
        Ok(())
    }

    /// Keeps these controls at rest, whatever points ask for: what turns a head has a source of its own. Those held before are
    /// free again; a control that does not exist is ignored.
    pub fn hold(&mut self, controls: &[usize]) {
        self.held.fill(false);
        for control in controls {
            if let Some(held) = self.held.get_mut(*control) {
                *held = true;
            }
        }
    }

    /// The held controls with where they rest.
    pub fn held(&self) -> impl Iterator<Item = (usize, f32)> {
        let held = self.held.iter().zip(&self.ik.controls).enumerate().filter(|(_, (held, _))| **held);
        held.map(|(control, (_, owned))| (control, owned.neutral))
    }

    /// Along which direction each point is looked at while it is corrected, zero where it is from everywhere: who drags a
    /// point on a screen says nothing of its depth.
    pub fn look_along(&mut self, sights: &[Vec3]) -> Result<(), PoseError> {
        check_count("lines of sight", sights.len(), self.sights.len())?;
        check_finite("lines of sight", sights.iter().map(|sight| sight.is_finite()))?;
        self.sights.iter_mut().zip(sights).for_each(|(own, sight)| *own = sight.normalize_or_zero());
        Ok(())
    }

    /// Controls of a pose.
    pub fn control_count(&self) -> usize {
        self.ik.controls.len()
    }

    /// The neutral pose.
    pub fn neutral(&self) -> Vec<f32> {
        self.ik.controls.iter().map(|owned| owned.neutral).collect()
    }

    /// Ends of the ranges of all controls; nothing for a control that moves no point.
    pub fn ranges(&self) -> Vec<Option<(f32, f32)>> {
        let range = |owned: &Owned| (!owned.regions.is_empty()).then_some((owned.low, owned.high));
        self.ik.controls.iter().map(range).collect()
    }

    /// Half the sum of the squared distances of points from their targets, cm², and its derivatives by the controls.
    pub fn cost(&mut self, targets: &[Vec3], controls: &[f32], slopes: &mut [f32]) -> Result<f64, PoseError> {
        self.check(targets, controls.len())?;
        let dimensions = self.ik.dimensions;
        let cost = |places: &[Vec3], by_places: &mut [Vec3]| {
            let mut sum = 0.0;
            for ((place, target), slope) in places.iter().zip(targets).zip(by_places) {
                for axis in 0..dimensions {
                    slope[axis] = place[axis] - target[axis];
                    sum += 0.5 * f64::from(slope[axis]).powi(2);
                }
            }
            sum
        };
        self.player.gradient(Pose::Controls(controls), cost, slopes)
    }

    /// The points of a pose. `controls`: all of the twin's.
    pub fn points(&mut self, controls: &[f32], out: &mut [Vec3]) -> Result<(), PoseError> {
        check_count("points", out.len(), self.ik.points.len())?;
        self.player.pose(Pose::Controls(controls), &mut self.vertices)?;
        out.copy_from_slice(&self.vertices[..out.len()]);
        Ok(())
    }

    /// One evaluation of the networks: controls, within their ranges, that bring the points to about their targets.
    /// Controls that move no point rest.
    pub fn solve(&mut self, targets: &[Vec3], controls: &mut [f32]) -> Result<(), PoseError> {
        self.check(targets, controls.len())?;
        let ik = &*self.ik;
        controls.fill(0.0);
        for region in &ik.regions {
            let [read, write] = &mut self.buffers;
            let (mut read, mut write) = (read, write);
            ik.inputs(region, targets, read);
            for (index, layer) in region.layers.iter().enumerate() {
                layer.apply(self.kernel, read, write);
                if index + 1 < region.layers.len() {
                    write.iter_mut().for_each(|x| *x = if *x > 0.0 { *x } else { LEAK * *x });
                }
                std::mem::swap(&mut read, &mut write);
            }
            for (control, value) in region.controls.iter().zip(read.iter()) {
                controls[*control as usize] += value;
            }
        }
        for (control, owned) in controls.iter_mut().zip(&ik.controls) {
            let mean = *control / owned.regions.len().max(1) as f32;
            *control = (owned.neutral + (owned.high - owned.low) * mean).clamp(owned.low, owned.high);
        }
        for ((control, owned), held) in controls.iter_mut().zip(&ik.controls).zip(&self.held) {
            if *held {
                *control = owned.neutral;
            }
        }
        Ok(())
    }

    fn check(&self, targets: &[Vec3], controls: usize) -> Result<(), PoseError> {
        check_count("targets of points", targets.len(), self.ik.points.len())?;
        check_count("controls of the pose", controls, self.ik.controls.len())?;
        check_finite("targets of points", targets.iter().map(|target| target.is_finite()))
    }
}

impl PointIk {
    /// What the network of a region reads: how far its points are from where they rest.
    fn inputs(&self, region: &Region, targets: &[Vec3], out: &mut [f32]) {
        for (slot, point) in out.chunks_exact_mut(self.dimensions).zip(&region.points) {
            let moved = (targets[*point as usize] - self.rest[*point as usize]) / INPUT_CM;
            slot.copy_from_slice(&moved.to_array()[..self.dimensions]);
        }
    }
}
