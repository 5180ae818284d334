//! All methods and orders on one take, measured as the paper's tables 3 to 8 and figures 5, 6 and 23 are:
//! targets with noise, errors against the clean meshes, the whole rig for every reconstruction.

use crate::{Event, Watch};
use serde::Serialize;
use std::time::Instant;
use understudy_core::metrics::roughness;
use understudy_core::{BlendshapeRig, Vec3};
use understudy_solve::inverse_rig::metrics::{FrameMetrics, TakeMetrics, measure};
use understudy_solve::inverse_rig::take::TakeSettings;
use understudy_solve::inverse_rig::{Alpha, InverseError, InverseRig, InverseSettings, Method, Order};

/// What is studied.
pub struct Scene<'a> {
    /// The rig.
    pub rig: &'a BlendshapeRig,
    /// The same, prepared.
    pub inverse: &'a InverseRig,
    /// What errors are measured against, `[F][V]`.
    pub clean: &'a [Vec<Vec3>],
    /// What the methods see, `[F][V]`.
    pub noisy: &'a [Vec<Vec3>],
    /// The weights behind the clean meshes, where they are known, `[F][m]`.
    pub truth: Option<&'a [Vec<f64>]>,
}

/// How much time to spend.
#[derive(Debug, Clone, PartialEq)]
pub struct Effort {
    /// Consecutive frames behind the tables, from the middle of the take.
    pub table_frames: usize,
    /// Frames spread through the take behind the curves.
    pub curve_frames: usize,
    /// The α of the curves.
    pub alphas: Vec<f64>,
}

impl Default for Effort {
    fn default() -> Self {
        let alphas = vec![0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
        Self { table_frames: 240, curve_frames: 24, alphas }
    }
}

impl Effort {
    /// The frames behind the tables.
    pub fn table_window(&self, frames: usize) -> std::ops::Range<usize> {
        let count = frames.min(self.table_frames);
        let first = (frames - count) / 2;
        first..first + count
    }
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyRow {
    /// The method or order.
    pub name: String,
    /// The α it was given; `None` for a method without.
    pub alpha: Option<f64>,
    /// Errors and weights, averaged.
    pub metrics: TakeMetrics,
    /// Time of the take, ms a frame, on all threads of the run.
    pub ms_per_frame: f64,
    #[serde(skip)]
    pub(crate) frames: Vec<FrameMetrics>,
    #[serde(skip)]
    pub(crate) weights: Vec<Vec<f64>>,
}

/// A curve of error against cardinality.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyCurve {
    /// The method or order; a number behind it is its passes.
    pub name: String,
    /// One a value of α, ascending; a single point for a method without.
    pub points: Vec<CurvePoint>,
}

/// One α of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The regularisation.
    pub alpha: f64,
    /// Means over the frames of the curve.
    pub metrics: TakeMetrics,
}

/// Whether something that the paper found holds here too.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Relation {
    /// What the paper found.
    pub claim: String,
    /// The figures here.
    pub found: String,
    /// Whether they agree.
    pub holds: bool,
}

/// Everything that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Study {
    /// The α of the sequential methods, cm².
    pub alpha: f64,
    /// Frames behind the tables.
    pub table_frames: usize,
    /// The first of them.
    pub first_frame: usize,
    /// Cardinality, L1 norm and roughness of the true weights, where known.
    pub truth: Option<[f64; 3]>,
    /// The paper's tables 3 to 7.
    pub methods: Vec<StudyRow>,
    /// The paper's table 8.
    pub orders: Vec<StudyRow>,
    /// The paper's figures 5 and 6.
    pub method_curves: Vec<StudyCurve>,
    /// The paper's figure 23.
    pub order_curves: Vec<StudyCurve>,
    /// What holds and what does not.
    pub relations: Vec<Relation>,
}

/// The α of the methods that solve for all weights at once: the paper's for Ada (its Table 2). It does not
/// make them sparse, and a larger one costs them accuracy.
pub const JOINT_ALPHA: f64 = 0.2;

/// The α of the paper's recipe for a take, cm²: the knee of its trade-off, whatever error it costs.
pub fn knee_alpha<T: AsRef<[Vec3]> + Sync>(
    inverse: &InverseRig,
    targets: &[T],
    settings: &InverseSettings,
) -> Result<f64, InverseError> {
    let recipe = InverseSettings { missing: settings.missing, ..InverseSettings::paper() };
    let choice = inverse.choose_alpha(targets, &recipe)?;
    Ok(choice.points[choice.knee].alpha.in_square_centimetres(inverse.shape_energy()))
}

/// Runs everything with the paper's recipe: five passes, nothing after them. Of the settings, seed and the
/// handling of holes count.
pub fn study(
    scene: &Scene<'_>,
    alpha: f64,
    settings: &InverseSettings,
    effort: &Effort,
    watch: &dyn Watch,
) -> Result<Study, InverseError> {
    let base = InverseSettings {
        alpha: Alpha::Absolute(alpha),
        seed: settings.seed,
        missing: settings.missing,
        ..InverseSettings::paper()
    };
    let curve_methods = curve_methods();
    let total = Method::ALL.len() + 2 * Order::ALL.len() + curve_methods.len();
    watch.event(Event::Started { what: "comparing methods", total: total as u64, unit: "runs" });
    let mut done = 0;
    let mut step = || {
        done += 1;
        watch.event(Event::Step { done });
        if watch.should_stop() { Err(InverseError::Stopped) } else { Ok(()) }
    };

    let window = effort.table_window(scene.clean.len());
    let (first, count) = (window.start, window.len());
    let (clean, noisy) = (&scene.clean[first..first + count], &scene.noisy[first..first + count]);
    let mut methods = Vec::new();
    for method in Method::ALL {
        let alpha = if method.is_descent() { alpha } else { JOINT_ALPHA };
        let settings = InverseSettings { method, alpha: Alpha::Absolute(alpha), ..base.clone() };
        let named = (!matches!(method, Method::Seol | Method::Joshi)).then_some(alpha);
        methods.push(row(scene, method.title(), named, &settings, clean, noisy)?);
        step()?;
    }
    let mut orders = Vec::new();
    for order in Order::ALL {
        let settings = InverseSettings { order, ..base.clone() };
        orders.push(row(scene, order.title(), Some(alpha), &settings, clean, noisy)?);
        step()?;
    }

    let stride = scene.clean.len().div_ceil(effort.curve_frames).max(1);
    let pick = |frames: &[Vec<Vec3>]| frames.iter().step_by(stride).cloned().collect::<Vec<_>>();
    let (clean, noisy) = (pick(scene.clean), pick(scene.noisy));
    let mut method_curves = Vec::new();
    for (name, change) in curve_methods {
        let settings = InverseSettings { ..change(base.clone()) };
        method_curves.push(curve(scene, name, &settings, &effort.alphas, &clean, &noisy)?);
        step()?;
    }
    let mut order_curves = Vec::new();
    for order in Order::ALL {
        let settings = InverseSettings { order, ..base.clone() };
        order_curves.push(curve(scene, order.title(), &settings, &effort.alphas, &clean, &noisy)?);
        step()?;
    }
    watch.event(Event::Finished);
    let truth = scene.truth.map(|truth| truth_figures(&truth[first..first + count]));
    let relations = relations(&methods, &orders);
    Ok(Study {
        alpha,
        table_frames: count,
        first_frame: first,
        truth,
        methods,
        orders,
        method_curves,
        order_curves,
        relations,
    })
}

type Change = fn(InverseSettings) -> InverseSettings;

/// The curves of figures 5 and 6; a number is the passes.
fn curve_methods() -> [(&'static str, Change); 9] {
    [
        ("Quartic-5", |s| InverseSettings { method: Method::Quartic, passes: 5, ..s }),
        ("Linear-5", |s| InverseSettings { method: Method::Linear, passes: 5, ..s }),
        ("Quartic-1", |s| InverseSettings { method: Method::Quartic, passes: 1, ..s }),
        ("Linear-1", |s| InverseSettings { method: Method::Linear, passes: 1, ..s }),
        ("Çetinaslan", |s| InverseSettings { method: Method::Cetinaslan, ..s }),
        ("LMMM", |s| InverseSettings { method: Method::Lmmm, ..s }),
        ("Joshi", |s| InverseSettings { method: Method::Joshi, ..s }),
        ("Seol-1", |s| InverseSettings { method: Method::Seol, ..s }),
        ("Seol-5", |s| InverseSettings { method: Method::Linear, passes: 5, upper: None, ..s }),
    ]
}

fn row(
    scene: &Scene<'_>,
    name: &str,
    alpha: Option<f64>,
    settings: &InverseSettings,
    clean: &[Vec<Vec3>],
    noisy: &[Vec<Vec3>],
) -> Result<StudyRow, InverseError> {
    // What a method prepares once (eigenvalues, bounds) is not a frame's cost.
    drop(scene.inverse.solver(settings)?);
    let start = Instant::now();
    let take = scene.inverse.solve_take(noisy, settings, &TakeSettings::default())?;
    let ms_per_frame = start.elapsed().as_secs_f64() * 1e3 / noisy.len().max(1) as f64;
    let (metrics, frames) = measure(scene.rig, &take.weights, clean)?;
    Ok(StudyRow { name: name.into(), alpha, metrics, ms_per_frame, frames, weights: take.weights })
}

fn curve(
    scene: &Scene<'_>,
    name: &str,
    settings: &InverseSettings,
    alphas: &[f64],
    clean: &[Vec<Vec3>],
    noisy: &[Vec<Vec3>],
) -> Result<StudyCurve, InverseError> {
    let alone = matches!(settings.method, Method::Joshi | Method::Seol) || settings.upper.is_none();
    let mut points = Vec::new();
    for alpha in if alone { &[0.0][..] } else { alphas } {
        let settings = InverseSettings { alpha: Alpha::Absolute(*alpha), ..settings.clone() };
        let take = scene.inverse.solve_take(noisy, &settings, &TakeSettings::default())?;
        points.push(CurvePoint { alpha: *alpha, metrics: measure(scene.rig, &take.weights, clean)?.0 });
    }
    Ok(StudyCurve { name: name.into(), points })
}

/// Mean cardinality, mean L1 norm and mean roughness of known weights.
fn truth_figures(weights: &[Vec<f64>]) -> [f64; 3] {
    let frames = weights.len().max(1) as f64;
    let shapes = weights.first().map_or(0, Vec::len);
    let on = weights.iter().flatten().filter(|w| **w != 0.0).count() as f64;
    let sum: f64 = weights.iter().flatten().sum();
    let curve = |shape: usize| weights.iter().map(|frame| frame[shape] as f32).collect::<Vec<_>>();
    let rough: f64 = (0..shapes).map(|shape| roughness(&curve(shape))).sum();
    [on / frames, sum / frames, rough / shapes.max(1) as f64]
}

/// The findings of the paper's sections 4.3 and 4.4 that this project holds itself to.
fn relations(methods: &[StudyRow], orders: &[StudyRow]) -> Vec<Relation> {
    let method = |title: &str| &methods.iter().find(|r| r.name == title).expect("all methods ran").metrics;
    let order = |title: &str| &orders.iter().find(|r| r.name == title).expect("all orders ran").metrics;
    let (quartic, linear) = (method("Quartic"), method("Linear"));
    let (joshi, lmmm) = (method("Joshi"), method("LMMM"));
    let relation = |claim: &str, found: String, holds: bool| Relation { claim: claim.into(), found, holds };
    let others = || methods.iter().filter(|row| row.name != "LMMM");
    let lowest = others().map(|row| row.metrics.rmse_cm).fold(f64::INFINITY, f64::min);
    let (falling, rising, random) =
        (order("Decreasing magnitude"), order("Increasing magnitude"), order("Random ordering"));
    vec![
        relation(
            "Quartic switches on at most 0.8 times as many weights as Joshi",
            format!(
                "{:.1} against {:.1} ({:.2} times)",
                quartic.cardinality,
                joshi.cardinality,
                quartic.cardinality / joshi.cardinality
            ),
            quartic.cardinality <= 0.8 * joshi.cardinality,
        ),
        relation(
            "Quartic's 95th percentile is comparable to Linear's or lower",
            format!("{:.4} cm against {:.4} cm", quartic.p95_cm, linear.p95_cm),
            quartic.p95_cm <= 1.05 * linear.p95_cm,
        ),
        relation(
            "Quartic is at most half as rough as Joshi",
            format!(
                "{:.4} against {:.4} ({:.2} times)",
                quartic.roughness,
                joshi.roughness,
                quartic.roughness / joshi.roughness
            ),
            quartic.roughness <= 0.5 * joshi.roughness,
        ),
        relation(
            "LMMM has the lowest error",
            format!("{:.4} cm against {lowest:.4} cm of the best other", lmmm.rmse_cm),
            lmmm.rmse_cm <= lowest,
        ),
        relation(
            "LMMM is dense: more weights than Quartic",
            format!("{:.1} against {:.1}", lmmm.cardinality, quartic.cardinality),
            lmmm.cardinality > quartic.cardinality,
        ),
        relation(
            "Decreasing order has a lower error than increasing and random",
            format!("{:.4} cm against {:.4} and {:.4} cm", falling.rmse_cm, rising.rmse_cm, random.rmse_cm),
            falling.rmse_cm <= rising.rmse_cm && falling.rmse_cm <= random.rmse_cm,
        ),
        relation(
            "Decreasing order is smoother than random",
            format!("{:.4} against {:.4}", falling.roughness, random.roughness),
            falling.roughness <= random.roughness,
        ),
    ]
}
