//! The rig's side: the controls that put its body where a [`Goal`] wants it, by damped Gauss–Newton steps within the
//! controls' limits.
//!
//! Unknowns are the rotation controls of the body's bones and, where the rig can be moved as a whole, a free rigid
//! motion: `F(x) = Q (x − c) + c + s`. The motion is no triple of angles, so that a cartwheel meets no gimbal lock.

use super::RetargetError;
use super::goal::{Goal, Point};
use crate::anatomy::{Anatomy, BoneNames};
use crate::{Rig, RigPose};
use understudy_core::linear_algebra::Cholesky;
use understudy_core::mechanism::JointChange;
use understudy_core::skeleton::rotation_of;
use understudy_core::{Affine3A, Channel, ControlKind, Controls, DQuat, DVec3, JointTransform, Skeleton};

/// Degrees by which a control is moved to see what it does.
const STEP: f64 = 0.25;
/// cm per degree from its default: what decides where nothing else does, such as the twist of a straight arm.
const TO_DEFAULT: f64 = 0.03;
/// cm per degree from the frame before.
const TO_BEFORE: f64 = 0.03;
/// A step that gains less than this share of the cost is the last.
const ENOUGH: f64 = 1e-4;
/// Degrees that a control must want beyond its limit to count as pressed against it.
const PRESSED: f64 = 1.0;

/// A control to find.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unknown {
    pub control: usize,
    pub low: f64,
    pub high: f64,
    default: f64,
}

/// A pose of the body.
#[derive(Debug, Clone)]
pub(super) struct FitState {
    controls: Controls,
    turn: DQuat,
    shift: DVec3,
}

/// The bone that carries the whole body and turns, and where possible moves, freely.
struct Root {
    bone: usize,
    moves: bool,
    /// cm; what it turns about.
    pivot: DVec3,
    /// Which bones it carries, `[J]`.
    carries: Vec<bool>,
}

/// A rig's body.
pub(super) struct Body<'a> {
    rig: &'a dyn Rig,
    skeleton: &'a Skeleton,
    anatomy: Anatomy,
    unknowns: Vec<Unknown>,
    root: Option<Root>,
    moved: Vec<usize>,
    turns: Vec<bool>,
    hips: [usize; 2],
    rest: Vec<Affine3A>,
    pose: RigPose,
    globals: Vec<Affine3A>,
    pressed: Vec<Option<usize>>,
}

impl<'a> Body<'a> {
    pub fn new(rig: &'a dyn Rig, names: &BoneNames) -> Result<Self, RetargetError> {
        let name = || rig.name().to_owned();
        let skeleton = rig.skeleton().ok_or_else(|| RetargetError::NoBones { rig: name() })?;
        let failed = |error| RetargetError::Target { rig: name(), error };
        let anatomy = Anatomy::find(skeleton, names).map_err(failed)?;
        let mut channels = vec![[None; 9]; skeleton.len()];
        for (control, spec) in rig.specs().iter().enumerate() {
            let ControlKind::Joint { bone, channel } = &spec.kind else { continue };
            if let Some(bone) = skeleton.find(bone) {
                channels[bone][*channel as usize].get_or_insert(control);
            }
        }
        let above = |bone: usize| std::iter::successors(Some(bone), |bone| skeleton.bones()[*bone].parent);
        let all =
            |bone: &usize, range: std::ops::Range<usize>| channels[*bone][range].iter().all(Option::is_some);
        let movable = above(anatomy.hips).filter(|bone| all(bone, 0..6)).last();
        let top = movable.or_else(|| above(anatomy.hips).filter(|bone| all(bone, 0..3)).last());
        let mut pose = RigPose::default();
        rig.evaluate_bones(&rig.specs().defaults(), &mut pose)?;
        let rest = pose.global.0.clone();
        if rest.len() != skeleton.len() {
            return Err(RetargetError::NoBones { rig: name() });
        }
        let [Some(left), Some(right)] = [anatomy.sides[0].thigh, anatomy.sides[1].thigh] else {
            return Err(RetargetError::Degenerate { whose: "rig's", problem: "a leg is missing" });
        };
        let root = top.map(|bone| {
            let carries = (0..skeleton.len()).map(|other| above(other).any(|above| above == bone)).collect();
            let moves = movable.is_some();
            let point = if moves { Point::MidHips([left, right]) } else { Point::Bone(bone) };
            Root { bone, moves, pivot: point.at(&rest), carries }
        });

        let fixed: Vec<usize> = if root.is_some() { above(anatomy.hips).collect() } else { Vec::new() };
        let mut used = vec![false; skeleton.len()];
        for (_, part) in anatomy.parts() {
            above(part).for_each(|bone| used[bone] |= !fixed.contains(&bone));
        }
        let mut unknowns = Vec::new();
        let mut moved = Vec::new();
        for bone in (0..skeleton.len()).filter(|bone| used[*bone]) {
            let controls = channels[bone][..3].iter().flatten();
            for &control in controls {
                let spec = rig.specs().get(control);
                let (low, high, default) = (spec.low.into(), spec.high.into(), spec.default.into());
                unknowns.push(Unknown { control, low, high, default });
                if moved.last() != Some(&bone) {
                    moved.push(bone);
                }
            }
        }
        if unknowns.is_empty() && root.is_none() {
            return Err(RetargetError::NoControls { rig: name() });
        }
        let mut turns = vec![false; skeleton.len()];
        moved.iter().for_each(|bone| turns[*bone] = true);
        turns[anatomy.hips] |= root.is_some();
        moved.extend(root.as_ref().map(|root| root.bone));
        let globals = rest.clone();
        let (hips, pressed) = ([left, right], vec![None; unknowns.len()]);
        Ok(Self { rig, skeleton, anatomy, unknowns, root, moved, turns, hips, rest, pose, globals, pressed })
    }

    pub fn anatomy(&self) -> &Anatomy {
        &self.anatomy
    }

    pub fn skeleton(&self) -> &'a Skeleton {
        self.skeleton
    }

    pub fn unknowns(&self) -> &[Unknown] {
        &self.unknowns
    }

    /// World transforms with all controls at their defaults, `[J]`.
    pub fn rest(&self) -> &[Affine3A] {
        &self.rest
    }

    /// World transforms of the last fit, `[J]`.
    pub fn globals(&self) -> &[Affine3A] {
        &self.globals
    }

    pub fn mid_hips(&self) -> Point {
        Point::MidHips(self.hips)
    }

    /// Whether it can be moved as a whole.
    pub fn moves(&self) -> bool {
        self.root.as_ref().is_some_and(|root| root.moves)
    }

    /// The bone that carries the body, where one is free.
    pub fn root(&self) -> Option<usize> {
        self.root.as_ref().map(|root| root.bone)
    }

    /// Whether controls turn this very bone.
    pub fn turns(&self, bone: usize) -> bool {
        self.turns[bone]
    }

    /// Bones that the pose turns, the root last.
    pub fn moved_bones(&self) -> &[usize] {
        &self.moved
    }

    /// For every unknown the end of its range (0 low, 1 high) that it was pressed against in the last fit.
    pub fn pressed(&self) -> impl Iterator<Item = Option<usize>> {
        self.pressed.iter().copied()
    }

    /// How far every part was from its goal in the last fit, degrees.
    pub fn misses(&self, goal: &Goal) -> impl Iterator<Item = f64> {
        goal.angles(&self.globals)
    }

    pub fn start(&self) -> FitState {
        FitState { controls: self.rig.specs().defaults(), turn: DQuat::IDENTITY, shift: DVec3::ZERO }
    }

    /// `F` of a state.
    fn free(&self, state: &FitState) -> Affine3A {
        let pivot = self.root.as_ref().map_or(DVec3::ZERO, |root| root.pivot);
        let shift = pivot + state.shift - state.turn * pivot;
        Affine3A::from_rotation_translation(state.turn.as_quat(), shift.as_vec3())
    }

    /// World transforms of a pose.
    fn forward(&mut self, state: &FitState, out: &mut Vec<Affine3A>) -> Result<(), RetargetError> {
        self.rig.evaluate_bones(&state.controls, &mut self.pose)?;
        out.clone_from(&self.pose.global.0);
        self.carry(self.free(state), out);
        Ok(())
    }

    /// Moves what the root carries.
    fn carry(&self, free: Affine3A, globals: &mut [Affine3A]) {
        let Some(root) = &self.root else { return };
        for (global, carried) in globals.iter_mut().zip(&root.carries) {
            if *carried {
                *global = free * *global;
            }
        }
    }

    /// The free motion's columns: three turns and, where it moves, three shifts.
    fn free_columns(&self) -> usize {
        self.root.as_ref().map_or(0, |root| if root.moves { 6 } else { 3 })
    }

    /// Brings a state as close to a goal as limits allow: `½ ‖r‖² + ½ Σ (a (x − default))² + ½ Σ (b (x − before))²`.
    pub fn fit(
        &mut self,
        goal: &Goal,
        state: &mut FitState,
        smooth: bool,
        rounds: usize,
    ) -> Result<(), RetargetError> {
        let (count, free) = (self.unknowns.len(), self.free_columns());
        let size = count + free;
        let before = state.clone();
        let to_before = if smooth { TO_BEFORE } else { 0.0 };
        let mut globals = Vec::new();
        let (mut residuals, mut moved) = (Vec::with_capacity(goal.len()), Vec::with_capacity(goal.len()));
        self.forward(state, &mut globals)?;
        goal.residuals(&globals, &mut residuals);
        let mut cost = self.cost(&residuals, state, &before, to_before);
        let mut damping = 1e-3;
        let mut jacobian = vec![0.0; goal.len() * size];
        let mut system = vec![0.0; size * size];
        let mut gradient = vec![0.0; size];
        for round in 0..rounds {
            // One row per unknown, so that products run along memory.
            for column in 0..count {
                let mut trial = state.clone();
                let unknown = self.unknowns[column];
                trial.controls.0[unknown.control] += STEP as f32;
                self.forward(&trial, &mut globals)?;
                goal.residuals(&globals, &mut moved);
                let row = &mut jacobian[column * goal.len()..][..goal.len()];
                for ((slot, there), here) in row.iter_mut().zip(&moved).zip(&residuals) {
                    *slot = (there - here) / STEP;
                }
            }
            self.forward(state, &mut globals)?;
            for column in 0..free {
                let step = if column < 3 { 1e-3 } else { 0.05 };
                let mut trial = globals.clone();
                let change = self.increment(state, column, step);
                self.carry(change, &mut trial);
                goal.residuals(&trial, &mut moved);
                let row = &mut jacobian[(count + column) * goal.len()..][..goal.len()];
                for ((slot, there), here) in row.iter_mut().zip(&moved).zip(&residuals) {
                    *slot = (there - here) / step;
                }
            }
            for i in 0..size {
                let row = &jacobian[i * goal.len()..][..goal.len()];
                gradient[i] = dot(row, &residuals);
                for j in 0..=i {
                    let product = dot(row, &jacobian[j * goal.len()..][..goal.len()]);
                    system[i * size + j] = product;
                    system[j * size + i] = product;
                }
            }
            for (i, unknown) in self.unknowns.iter().enumerate() {
                let value = f64::from(state.controls.0[unknown.control]);
                let last = f64::from(before.controls.0[unknown.control]);
                gradient[i] += TO_DEFAULT * TO_DEFAULT * (value - unknown.default);
                gradient[i] += to_before * to_before * (value - last);
                system[i * size + i] += TO_DEFAULT * TO_DEFAULT + to_before * to_before;
            }
            self.note_pressed(state, &gradient, &system);
            let mut gained = None;
            for _ in 0..6 {
                let step = self.bounded_step(state, &system, &gradient, damping);
                let Some(trial) = step.map(|step| self.stepped(state, &step)) else {
                    damping *= 10.0;
                    continue;
                };
                self.forward(&trial, &mut globals)?;
                goal.residuals(&globals, &mut moved);
                let there = self.cost(&moved, &trial, &before, to_before);
                if there < cost {
                    gained = Some(cost - there);
                    (*state, cost) = (trial, there);
                    std::mem::swap(&mut residuals, &mut moved);
                    damping = (damping * 0.3).max(1e-6);
                    break;
                }
                damping *= 10.0;
            }
            if gained.is_none_or(|gained| gained < ENOUGH * cost) || round + 1 == rounds {
                break;
            }
        }
        self.forward(state, &mut globals)?;
        self.globals = globals;
        Ok(())
    }

    fn cost(&self, residuals: &[f64], state: &FitState, before: &FitState, to_before: f64) -> f64 {
        let mut cost = dot(residuals, residuals);
        for unknown in &self.unknowns {
            let value = f64::from(state.controls.0[unknown.control]);
            let last = f64::from(before.controls.0[unknown.control]);
            cost += (TO_DEFAULT * (value - unknown.default)).powi(2) + (to_before * (value - last)).powi(2);
        }
        0.5 * cost
    }

    /// A small turn about, or shift of, where the pivot is now.
    fn increment(&self, state: &FitState, column: usize, step: f64) -> Affine3A {
        let axis = [DVec3::X, DVec3::Y, DVec3::Z][column % 3] * step;
        if column >= 3 {
            return Affine3A::from_translation(axis.as_vec3());
        }
        let pivot = self.root.as_ref().map_or(DVec3::ZERO, |root| root.pivot) + state.shift;
        let turn = DQuat::from_scaled_axis(axis);
        Affine3A::from_rotation_translation(turn.as_quat(), (pivot - turn * pivot).as_vec3())
    }

    fn stepped(&self, state: &FitState, step: &[f64]) -> FitState {
        let mut next = state.clone();
        for (unknown, step) in self.unknowns.iter().zip(step) {
            let value = &mut next.controls.0[unknown.control];
            *value = (f64::from(*value) + step).clamp(unknown.low, unknown.high) as f32;
        }
        let free = &step[self.unknowns.len()..];
        if free.len() >= 3 {
            next.turn = (DQuat::from_scaled_axis(DVec3::from_slice(&free[..3])) * state.turn).normalize();
        }
        if free.len() == 6 {
            next.shift += DVec3::from_slice(&free[3..]);
        }
        next
    }

    /// `(H + λ diag H) x = −g` with every control inside its range: those that leave it are put on its end and the
    /// others solved again. `None` where the system is singular.
    fn bounded_step(
        &self,
        state: &FitState,
        system: &[f64],
        gradient: &[f64],
        damping: f64,
    ) -> Option<Vec<f64>> {
        let size = gradient.len();
        let mut fixed: Vec<Option<f64>> = vec![None; size];
        let room = |i: usize| {
            let unknown = self.unknowns[i];
            let value = f64::from(state.controls.0[unknown.control]);
            (unknown.low - value, unknown.high - value)
        };
        for i in 0..self.unknowns.len() {
            let (down, up) = room(i);
            if (down >= -1e-9 && gradient[i] > 0.0) || (up <= 1e-9 && gradient[i] < 0.0) {
                fixed[i] = Some(0.0);
            }
        }
        let mut step = vec![0.0; size];
        for _ in 0..8 {
            let open: Vec<usize> = (0..size).filter(|i| fixed[*i].is_none()).collect();
            let n = open.len();
            let mut matrix = vec![0.0; n * n];
            let mut right = vec![0.0; n];
            for (a, &i) in open.iter().enumerate() {
                let row = &system[i * size..][..size];
                for (b, &j) in open.iter().enumerate() {
                    matrix[a * n + b] = row[j];
                }
                matrix[a * n + a] += damping * row[i] + 1e-9;
                let held: f64 = fixed.iter().zip(row).map(|(held, h)| held.unwrap_or(0.0) * h).sum();
                right[a] = -gradient[i] - held;
            }
            Cholesky::new(&matrix, n)?.solve(&mut right, 1);
            step.iter_mut().zip(&fixed).for_each(|(step, held)| *step = held.unwrap_or(0.0));
            open.iter().zip(&right).for_each(|(i, value)| step[*i] = *value);
            let mut left = false;
            for &i in open.iter().filter(|i| **i < self.unknowns.len()) {
                let (down, up) = room(i);
                if step[i] < down || step[i] > up {
                    step[i] = step[i].clamp(down, up);
                    fixed[i] = Some(step[i]);
                    left = true;
                }
            }
            if !left {
                break;
            }
        }
        step.iter().all(|value| value.is_finite()).then_some(step)
    }

    /// Notes which controls stand at an end of their range and would go on.
    fn note_pressed(&mut self, state: &FitState, gradient: &[f64], system: &[f64]) {
        let size = gradient.len();
        for (i, unknown) in self.unknowns.iter().enumerate() {
            let value = f64::from(state.controls.0[unknown.control]);
            let wants = -gradient[i] / system[i * size + i].max(1e-12);
            self.pressed[i] = match () {
                () if value <= unknown.low + 1e-3 && wants < -PRESSED => Some(0),
                () if value >= unknown.high - 1e-3 && wants > PRESSED => Some(1),
                () => None,
            };
        }
    }

    /// Local transforms of [`Self::moved_bones`] in a state.
    pub fn locals(&self, state: &FitState) -> Result<Vec<JointTransform>, RetargetError> {
        let mut locals = Vec::with_capacity(self.moved.len());
        for &bone in &self.moved {
            let rest = self.skeleton.bones()[bone].rest;
            if self.root() == Some(bone) {
                let parent = self.skeleton.bones()[bone].parent;
                let parent = parent.map_or(Affine3A::IDENTITY, |parent| self.rest[parent]);
                let there = self.free(state) * self.rest[bone];
                let turn = rotation_of(&parent).as_dquat().inverse()
                    * state.turn
                    * rotation_of(&self.rest[bone]).as_dquat();
                let translation = parent.inverse().transform_point3(there.translation.into());
                locals.push(JointTransform {
                    rotation: turn.normalize().as_quat(),
                    translation,
                    scale: rest.scale,
                });
                continue;
            }
            let mut change = JointChange::default();
            let name = &self.skeleton.bones()[bone].name;
            for unknown in &self.unknowns {
                let spec = self.rig.specs().get(unknown.control);
                let ControlKind::Joint { bone, channel } = &spec.kind else { continue };
                let turns = matches!(channel, Channel::RotateX | Channel::RotateY | Channel::RotateZ);
                if bone == name && turns {
                    change.set(*channel, state.controls.0[unknown.control]);
                }
            }
            let mut local = rest;
            change.apply(&mut local);
            locals.push(local);
        }
        Ok(locals)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
