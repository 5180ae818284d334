//! What a user should hear about an inversion: shapes that were held, how α was chosen, frames that did not
//! settle, and head motion that no shape can make.

use crate::{Event, Watch};
use understudy_core::rotation::fit_rigid_weighted;
use understudy_core::{BlendshapeRig, Vec3};
use understudy_solve::inverse_rig::tradeoff::AlphaChoice;
use understudy_solve::inverse_rig::{Alpha, InverseSettings, SolveReport, Stop};

/// Names in a message before it says how many more there are.
const NAMED: usize = 8;
/// Frames of a take that are looked at for head motion.
const LOOKED_AT: usize = 48;
/// Head motion is worth a word where it leaves this share of the mesh's size, and explains most of it.
const VISIBLE: f64 = 1e-4;

/// Names the shapes that stay at zero because `what` shows them.
pub(super) fn warn_of_held(shapes: &[&str], rig: &str, what: &str, watch: &dyn Watch) {
    if shapes.is_empty() {
        return;
    }
    let more = match shapes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = shapes[..shapes.len().min(NAMED)].join(", ");
    let message = format!("{rig}: {what} shows {names}{more}: held at zero");
    watch.event(Event::Warning { message: &message });
}

/// Which α was chosen, and why not the knee of the curve where it was not.
pub(super) fn alpha_note(choice: &AlphaChoice) -> String {
    let [free, chosen, knee] = [0, choice.chosen, choice.knee].map(|at| &choice.points[at]);
    let share = |alpha: Alpha| match alpha {
        Alpha::Share(share) => format!("{share:.1e}"),
        Alpha::Absolute(alpha) => format!("{alpha} cm²"),
    };
    let why = match choice.chosen == choice.knee {
        true => "the knee of the trade-off".to_owned(),
        false => format!(
            "the knee of the trade-off, {}, would leave {:.4} mm: these targets have little noise",
            share(knee.alpha),
            10.0 * knee.rmse_cm
        ),
    };
    format!(
        "α = {}: {:.1} weights on, {:.4} mm left ({:.1} and {:.4} mm with α = 0); {why}",
        share(chosen.alpha),
        chosen.cardinality,
        10.0 * chosen.rmse_cm,
        free.cardinality,
        10.0 * free.rmse_cm
    )
}

/// Says how many frames ended before their weights had settled, where settling was asked for.
pub(super) fn warn_of_unsettled(settings: &InverseSettings, solves: &[SolveReport], watch: &dyn Watch) {
    let unsettled = solves.iter().filter(|solve| solve.stop == Stop::Passes).count();
    if settings.tolerance > 0.0 && unsettled > 0 {
        let message = format!(
            "{unsettled} of {} frames still moved after {} passes; more --passes go on",
            solves.len(),
            settings.passes
        );
        watch.event(Event::Warning { message: &message });
    }
}

/// Hints at `--head all` where a rigid motion explains most of what the shapes could not.
pub(super) fn hint_at_head_motion(
    rig: &BlendshapeRig,
    vertex_weights: &[f32],
    weights: &[Vec<f64>],
    targets: &[Vec<Vec3>],
    watch: &dyn Watch,
) {
    let (mut before, mut after, mut counted) = (0.0f64, 0.0f64, 0.0f64);
    let mut posed = vec![Vec3::ZERO; rig.neutral().len()];
    let step = targets.len().div_ceil(LOOKED_AT).max(1);
    for (weights, target) in weights.iter().zip(targets).step_by(step) {
        let single: Vec<f32> = weights.iter().map(|weight| *weight as f32).collect();
        rig.evaluate(&single, &mut posed);
        let count = |vertex: usize| match target[vertex].is_finite() {
            true => f64::from(vertex_weights[vertex]),
            false => 0.0,
        };
        let motion = fit_rigid_weighted(target, &posed, count);
        for vertex in (0..posed.len()).filter(|vertex| count(*vertex) > 0.0) {
            let apart = |to: Vec3| f64::from(to.distance_squared(posed[vertex])) * count(vertex);
            before += apart(target[vertex]);
            after += apart(motion.apply(target[vertex]));
            counted += count(vertex);
        }
    }
    let (low, high) = rig
        .neutral()
        .iter()
        .fold((Vec3::INFINITY, Vec3::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
    let rms = |sum: f64| (sum / counted.max(f64::MIN_POSITIVE)).sqrt();
    if rms(before) > VISIBLE * f64::from(low.distance(high)) && after < 0.5 * before {
        let message = format!(
            "a rigid motion explains {:.0} % of the squared error that is left ({:.2} mm, {:.2} mm without it): \
             --head all takes head motion out first",
            100.0 * (1.0 - after / before),
            10.0 * rms(before),
            10.0 * rms(after)
        );
        watch.event(Event::Warning { message: &message });
    }
}
