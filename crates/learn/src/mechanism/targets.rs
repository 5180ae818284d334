//! What is to be learned of a bone: which parts of its local transform change at all, and their numbers in every pose.

use super::{LEVER_CM, PosedBones};
use understudy_core::Affine3A;
use understudy_runtime::mechanism::learned::{AIM_INPUTS, Aim, Moves, rotation_and_stretch};

/// Changes below these are rounding: of columns of a rotation or of a stretch, and of places as a share of the size of the
/// character.
const STILL: f32 = 1e-4;
const STILL_PLACE: f32 = 5e-6;

/// A bone's numbers.
pub(super) struct Target {
    /// In whose frame.
    pub parent: Option<usize>,
    /// Where that frame points to.
    pub aim: Option<Aim>,
    /// What the bone sees of its goal, `[N × AIM_INPUTS]`.
    seen: Vec<f32>,
    /// In that frame; what never changes has its constant value.
    pub rest: Affine3A,
    pub moves: Moves,
    /// `[N × numbers]`.
    pub numbers: Vec<f32>,
    /// How much each number weighs beside an angle in radians.
    pub weights: Vec<f32>,
}

impl Target {
    /// Of a bone in the frame of another, or in one that points from there to a goal.
    pub fn new(poses: &PosedBones, bone: usize, parent: Option<usize>, aim: Option<Aim>) -> Self {
        // A parent that shrinks to nothing has no frame: then the next above.
        let mut parent = parent;
        let usable = |parent: usize| {
            let solid = |pose: usize| rotation_and_stretch(&poses.bones_of(pose)[parent].matrix3).is_some();
            (0..poses.len()).all(solid) && rotation_and_stretch(&poses.rest[parent].matrix3).is_some()
        };
        while let Some(above) = parent.filter(|parent| aim.is_none() && !usable(*parent)) {
            parent = poses.parents[above];
        }
        let mut seen = Vec::new();
        let mut local = |global: &[Affine3A]| {
            let parent = parent.map_or(Affine3A::IDENTITY, |parent| global[parent]);
            let frame = match &aim {
                Some(aim) => {
                    let (frame, inputs) = aim.look(&parent, &global[aim.target]);
                    seen.extend(inputs);
                    frame
                }
                None => parent,
            };
            frame.inverse() * global[bone]
        };
        let locals: Vec<Affine3A> = (0..poses.len()).map(|pose| local(poses.bones_of(pose))).collect();
        let rest = local(&poses.rest);
        seen.truncate(poses.len() * AIM_INPUTS);
        let solid = |local: &Affine3A| rotation_and_stretch(&local.matrix3).is_some();
        let collapses = !(solid(&rest) && locals.iter().all(solid));
        let everything = Moves { turns: !collapses, stretches: !collapses, collapses, shifts: true };
        let size = poses.rest.iter().map(|bone| bone.translation.length()).fold(1.0, f32::max);
        // Each part in the numbers of everything: where they begin, how many, and what counts as still.
        let parts: &[(usize, usize, f32)] = match collapses {
            true => &[(0, 9, STILL), (9, 3, STILL_PLACE)],
            false => &[(0, 6, STILL), (6, 6, STILL), (12, 3, STILL_PLACE)],
        };
        let mut row = Vec::new();
        let mut rows = Vec::with_capacity(locals.len() * everything.numbers());
        for local in &locals {
            everything.numbers_of(&rest, local, &mut row).expect("collapsing bones were told apart");
            rows.extend_from_slice(&row);
        }
        let width = everything.numbers();
        let first: Vec<f32> = rows[..width].to_vec();
        let changes = |(start, count, still): &(usize, usize, f32)| {
            let still = if *still == STILL_PLACE { STILL_PLACE * size } else { *still };
            rows.chunks_exact(width).any(|row| {
                row[*start..start + count]
                    .iter()
                    .zip(&first[*start..start + count])
                    .any(|(a, b)| (a - b).abs() > still)
            })
        };
        let changing: Vec<bool> = parts.iter().map(changes).collect();
        let moves = match collapses {
            true => Moves { collapses: changing[0], shifts: changing[1], ..Moves::default() },
            false => {
                Moves { turns: changing[0], stretches: changing[1], shifts: changing[2], collapses: false }
            }
        };
        // What is constant is at rest what it always is.
        let mut constant = first;
        for ((start, count, _), changes) in parts.iter().zip(&changing) {
            if *changes {
                constant[*start..start + count].fill(0.0);
            }
        }
        let rest = everything.local(&rest, &constant);
        let mut numbers = Vec::with_capacity(locals.len() * moves.numbers());
        for local in &locals {
            if moves.numbers() > 0 {
                // A rest that collapses says nothing else.
                moves.numbers_of(&rest, local, &mut row).expect("collapsing bones were told apart");
                numbers.extend_from_slice(&row);
            }
        }
        let mut weights = vec![1.0; moves.numbers()];
        if moves.shifts {
            let places = weights.len() - 3;
            weights[places..].fill(1.0 / LEVER_CM);
        }
        Self { parent, aim, seen, rest, moves, numbers, weights }
    }

    /// What a bone sees in a pose: a control, or behind them a number of its goal.
    pub fn input(&self, poses: &PosedBones, pose: usize, input: u32) -> f32 {
        match (input as usize).checked_sub(poses.specs.len()) {
            Some(number) => self.seen[pose * AIM_INPUTS + number],
            None => poses.controls_of(pose)[input as usize],
        }
    }

    pub fn width(&self) -> usize {
        self.moves.numbers()
    }

    /// The numbers of a pose.
    pub fn of(&self, pose: usize) -> &[f32] {
        &self.numbers[pose * self.width()..][..self.width()]
    }
}

/// How far two local transforms differ, in radians or lengths from [`LEVER_CM`]; zero where it is rounding.
pub(super) fn difference(a: &Affine3A, b: &Affine3A, size: f32) -> f32 {
    let turned = (a.matrix3 - b.matrix3).to_cols_array().iter().fold(0.0f32, |most, n| most.max(n.abs()));
    let moved = a.translation.distance(b.translation);
    match turned <= STILL && moved <= 2.0 * STILL_PLACE * size {
        true => 0.0,
        false => turned.max(moved / LEVER_CM),
    }
}
