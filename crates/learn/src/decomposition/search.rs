//! The search: rounds of weights and bones that never raise the error, pushed on while that pays, with now and
//! then a bone sent elsewhere. It always ends: every round counts, and rounds are limited.

use super::animation::{Animation, Offset, extrapolate};
use super::simplex::Row;
use super::{Decomposed, DecompositionProgress, DecompositionSettings, Stop, bones, clusters, weights};
use understudy_core::{DVec3, SkinWeights, Vec3};

/// Passes over the bones of a frame in one iteration.
const PASSES: usize = 10;
/// A pass that moves the vertices by less than this share of the error is the last.
const PASS_SHARE: f64 = 0.01;
/// Iterations over which a gain is judged: a push that went too far gains nothing for once.
const RECENT: usize = 4;
/// An iteration that gains less than this share lets a bone try another place.
const RESTLESS: f64 = 0.005;
/// Iterations that a bone gets to prove its new place.
const TRIAL: usize = 4;
/// Places that are tried for one bone before the next bone is.
const PLACES: usize = 2;
/// Trials in a row that may fail before the places are taken for good.
const PATIENCE: usize = 4;

/// Weights and bones on their way.
#[derive(Clone)]
pub struct State {
    pub bones: usize,
    /// `[F][B]`.
    pub offsets: Vec<Offset>,
    /// Bones and weights of every vertex.
    pub rows: Vec<Row>,
}

impl State {
    pub fn offset(&self, frame: usize, bone: usize) -> &Offset {
        &self.offsets[frame * self.bones + bone]
    }

    pub fn add_bone(&mut self, motions: &[Offset]) {
        let bones = self.bones;
        let frame = |(frame, new): (usize, &Offset)| {
            let old = &self.offsets[frame * bones..(frame + 1) * bones];
            old.iter().copied().chain([*new]).collect::<Vec<Offset>>()
        };
        self.offsets = motions.iter().enumerate().flat_map(frame).collect();
        self.bones += 1;
    }

    pub fn set_bone(&mut self, bone: usize, motions: &[Offset]) {
        for (frame, new) in motions.iter().enumerate() {
            self.offsets[frame * self.bones + bone] = *new;
        }
    }
}

/// The search.
pub struct Search<'a> {
    animation: &'a Animation,
    settings: &'a DecompositionSettings,
    state: State,
    /// Sum of squares.
    energy: f64,
    iteration: usize,
    moved_bones: usize,
    history: Vec<f64>,
    /// Whether the listener asked to stop before the first iteration.
    asked: bool,
}

impl<'a> Search<'a> {
    /// Begins with clusters of vertices that move alike; `watch` hears of every split as of iteration 0.
    pub fn new(
        animation: &'a Animation,
        settings: &'a DecompositionSettings,
        watch: &mut impl FnMut(DecompositionProgress) -> bool,
    ) -> Self {
        let mut asked = false;
        let state = clusters::cluster(animation, settings.bones, &mut |rmse| {
            asked = !watch(DecompositionProgress { iteration: 0, rmse });
            !asked
        });
        let energy = weights::review(animation, &state).costs.iter().sum();
        let history = vec![animation.rmse(energy)];
        Self { animation, settings, state, energy, iteration: 0, moved_bones: 0, history, asked }
    }

    /// One round of weights and bones on some state. Returns its energy.
    fn alternate(&self, state: &mut State, energy: f64) -> f64 {
        weights::solve_weights(self.animation, state, self.settings.influences);
        let tolerance = PASS_SHARE * self.animation.rmse(energy);
        bones::solve_bones(self.animation, state, tolerance, PASSES).max(0.0)
    }

    /// Iterates until nothing gains.
    pub fn descend(&mut self, watch: &mut impl FnMut(DecompositionProgress) -> bool) -> Stop {
        if self.asked {
            return Stop::Asked;
        }
        let mut failed = Vec::new();
        let mut momentum = Momentum::default();
        loop {
            if self.iteration >= self.settings.iterations {
                return Stop::Iterations;
            }
            let mut state = self.state.clone();
            let pushed = momentum.push(&mut state);
            let energy = self.alternate(&mut state, self.energy);
            self.iteration += 1;
            // A push too far is taken back. Rounding may tip the last digit once everything is still.
            momentum.judge(energy < self.energy, &self.state);
            if energy < self.energy {
                (self.state, self.energy) = (state, energy);
            } else if !pushed {
                return Stop::Converged;
            }
            self.history.push(self.animation.rmse(self.energy));
            if !self.report(watch) {
                return Stop::Asked;
            }
            let gain = self.recent_gain();
            let restless = gain < RESTLESS && self.settings.bones > 1;
            if restless && failed.len() < PATIENCE && self.iteration + TRIAL <= self.settings.iterations {
                match self.try_elsewhere(&mut failed, watch) {
                    Trial::Better => momentum = Momentum::default(),
                    Trial::Worse => {}
                    Trial::Asked => return Stop::Asked,
                }
            } else if gain < self.settings.tolerance {
                return Stop::Converged;
            }
        }
    }

    /// Weights and affine bones in turn, pushed on while that pays, for at most so many rounds.
    pub fn stretch(&mut self, rounds: usize, watch: &mut impl FnMut(DecompositionProgress) -> bool) -> Stop {
        let (mut before, mut reach) = (None::<Vec<Offset>>, 0.0);
        let first = self.history.len();
        for _round in 0..rounds {
            let mut state = self.state.clone();
            let pushed = before.is_some() && reach > 0.0;
            if let Some(before) = before.take().filter(|_| pushed) {
                for (now, before) in state.offsets.iter_mut().zip(&before) {
                    now.iter_mut().zip(before).for_each(|(now, before)| *now += (*now - before) * reach);
                }
            }
            weights::solve_weights(self.animation, &mut state, self.settings.influences);
            let energy = super::affine::solve_bones(self.animation, &mut state).max(0.0);
            self.iteration += 1;
            if energy < self.energy {
                reach = if reach == 0.0 { 0.5 } else { (reach * 1.2f64).min(10.0) };
                before = Some(std::mem::replace(&mut self.state, state).offsets);
                self.energy = energy;
            } else if pushed {
                reach *= 0.5;
            } else {
                return Stop::Converged;
            }
            self.history.push(self.animation.rmse(self.energy));
            if !self.report(watch) {
                return Stop::Asked;
            }
            if self.history.len() - first > RECENT && self.recent_gain() < self.settings.tolerance {
                return Stop::Converged;
            }
        }
        Stop::Iterations
    }

    /// By which share an iteration lowered the error, over the last few.
    fn recent_gain(&self) -> f64 {
        let last = self.history.len() - 1;
        if last < RECENT {
            return 1.0;
        }
        let (before, now) = (self.history[last - RECENT], self.history[last]);
        if before > 0.0 { (1.0 - now / before) / RECENT as f64 } else { 0.0 }
    }

    fn report(&self, watch: &mut impl FnMut(DecompositionProgress) -> bool) -> bool {
        watch(DecompositionProgress { iteration: self.iteration, rmse: self.animation.rmse(self.energy) })
    }

    /// Sends the bone that is missed least to the vertex that is missed most, and keeps it there if that
    /// lowers the error.
    fn try_elsewhere(
        &mut self,
        failed: &mut Vec<usize>,
        watch: &mut impl FnMut(DecompositionProgress) -> bool,
    ) -> Trial {
        let weights::Review { losses, costs } = weights::review(self.animation, &self.state);
        let mut by_loss: Vec<usize> = (0..self.state.bones).collect();
        by_loss.sort_by(|a, b| losses[*a].total_cmp(&losses[*b]).then(a.cmp(b)));
        // After a failure another place is tried, away from those that failed, and then another bone.
        let rest = &self.animation.rest;
        let away = |vertex: usize| {
            let distances = failed.iter().map(|other| rest[*other].distance_squared(rest[vertex]));
            distances.fold(f64::INFINITY, f64::min).min(f64::MAX)
        };
        let scores: Vec<f64> = (0..costs.len()).map(|vertex| costs[vertex] * away(vertex)).collect();
        let worst = (0..costs.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b]).then(b.cmp(a)));
        let seed = worst.expect("at least one vertex");
        let bone = by_loss[failed.len() / PLACES % by_loss.len()];
        let mut state = self.state.clone();
        clusters::reinsert(self.animation, &mut state, bone, seed);
        let mut energy = self.energy;
        for _step in 0..TRIAL {
            energy = self.alternate(&mut state, energy);
            self.iteration += 1;
            if !self.report(watch) {
                return Trial::Asked;
            }
        }
        if energy < self.energy {
            (self.state, self.energy) = (state, energy);
            self.moved_bones += 1;
            self.history.push(self.animation.rmse(self.energy));
            failed.clear();
            return Trial::Better;
        }
        failed.push(seed);
        Trial::Worse
    }

    pub fn finish(self, rest: &[Vec3], stop: Stop) -> Decomposed {
        let bones = self.state.bones;
        let single = |row: &Row| row.iter().map(|(bone, w)| (*bone, *w as f32)).collect();
        let rows: Vec<Vec<(u16, f32)>> = self.state.rows.iter().map(single).collect();
        let weights = SkinWeights::from_rows(&rows, bones).expect("weights are convex by construction");
        let middle = |members: &Vec<(u32, f64)>| {
            let total: f64 = members.iter().map(|(_, weight)| weight * weight).sum();
            let share = |(vertex, w): &(u32, f64)| self.animation.rest[*vertex as usize] * (w * w);
            let sum: DVec3 = members.iter().map(share).sum();
            let mean = if total > 0.0 { sum / total } else { DVec3::ZERO };
            (mean + self.animation.centre).as_vec3()
        };
        let centres = bones::members(bones, &self.state.rows).iter().map(middle).collect();
        let motion = |frame: usize| {
            (0..bones).map(|bone| self.animation.to_affine(frame, self.state.offset(frame, bone))).collect()
        };
        let motions = (0..self.animation.frames()).map(motion).collect();
        Decomposed {
            rest: rest.to_vec(),
            weights,
            centres,
            motions,
            history: self.history,
            iterations: self.iteration,
            moved_bones: self.moved_bones,
            stop,
        }
    }
}

/// Goes on in the direction of the last iteration before the next one begins; as far as it has paid off.
#[derive(Default)]
struct Momentum {
    /// Offsets before the last iteration.
    before: Option<Vec<Offset>>,
    /// How many steps of the last one's size.
    reach: f64,
}

impl Momentum {
    /// The first reach, by how much it grows and shrinks, and where it ends.
    const FIRST: f64 = 0.5;
    const CUT: f64 = 0.5;
    const GROWTH: f64 = 1.2;
    const MOST: f64 = 10.0;

    /// Moves the bones on; tells whether it did.
    fn push(&mut self, state: &mut State) -> bool {
        let Some(before) = self.before.take() else { return false };
        if self.reach == 0.0 {
            return false;
        }
        for (now, before) in state.offsets.iter_mut().zip(&before) {
            *now = extrapolate(before, now, self.reach);
        }
        true
    }

    /// Learns from an iteration that started from `start`.
    fn judge(&mut self, gained: bool, start: &State) {
        self.reach = match (gained, self.reach) {
            (false, reach) => reach * Self::CUT,
            (true, 0.0) => Self::FIRST,
            (true, reach) => (reach * Self::GROWTH).min(Self::MOST),
        };
        self.before = gained.then(|| start.offsets.clone());
    }
}

/// How a bone's new place did.
enum Trial {
    Better,
    Worse,
    Asked,
}
