//! All methods and orders on one take, measured as the paper's tables 3 to 8 and figures 5, 6 and 23 are:
//! targets with noise, errors against the clean meshes, the whole rig for every reconstruction. Every method has an α of
//! its own ([`AlphaBy`]), and runs until it settles as well as for five passes.

use crate::{Event, Watch};
use serde::Serialize;
use std::time::Instant;
use understudy_core::metrics::roughness;
use understudy_core::{BlendshapeRig, Vec3};
use understudy_solve::inverse_rig::metrics::{FrameMetrics, TakeMetrics, measure};
use understudy_solve::inverse_rig::take::TakeSettings;
use understudy_solve::inverse_rig::{Alpha, InverseError, InverseRig, InverseSettings, Method, Order, Stop};

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
    /// The α that methods choose among ([`AlphaBy::CleanError`]).
    pub choices: Vec<f64>,
    /// Passes of the tables of methods that have settled.
    pub settled_passes: usize,
    /// Standard deviations of the noise in the sweep (the paper's figures 3 and 4), cm; none for no sweep.
    pub noises_cm: Vec<f64>,
}

/// What α a method gets, cm².
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AlphaBy {
    /// This one, all alike.
    Given(f64),
    /// Each method its own: with the least error against the clean meshes on frames outside the tables. Beside it stands
    /// the paper's recipe with this one, where weights are few.
    CleanError {
        /// The knee of the trade-off.
        knee: f64,
    },
}

impl Default for Effort {
    fn default() -> Self {
        let alphas = vec![0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
        // 1, 2, 5 of every decade.
        let decade = |power: i32| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power));
        let choices = std::iter::once(0.0).chain((-4..=1).flat_map(decade)).collect();
        let settled_passes = 200;
        Self { table_frames: 240, curve_frames: 24, alphas, choices, settled_passes, noises_cm: Vec::new() }
    }
}

impl Effort {
    /// The frames behind the tables: not all of a short take, so that some are left to choose α by.
    pub fn table_window(&self, frames: usize) -> std::ops::Range<usize> {
        let count = frames.min(self.table_frames).min(frames - frames / 4);
        let first = (frames - count) / 2;
        first..first + count
    }

    /// Frames outside the tables, spread: what α is chosen by. Those of the tables where there are no others.
    fn validation(&self, frames: usize) -> Vec<usize> {
        let window = self.table_window(frames);
        let mut others: Vec<usize> = (0..frames).filter(|frame| !window.contains(frame)).collect();
        if others.is_empty() {
            others = window.collect();
        }
        let stride = others.len().div_ceil(self.curve_frames).max(1);
        others.into_iter().step_by(stride).collect()
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
    /// Mean passes over the weights, or iterations.
    pub passes: f64,
    /// Share of the frames that stopped because nothing moved any more, or are a closed form.
    pub settled: f64,
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
    /// The α that was given, or that of the trade-off's knee, cm².
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
    /// The methods that make passes, until their weights have settled.
    pub settled_methods: Vec<StudyRow>,
    /// The orders, until their weights have settled.
    pub settled_orders: Vec<StudyRow>,
    /// The paper's figures 3 and 4: every method at every noise, cm.
    pub noise: Vec<(f64, Vec<StudyRow>)>,
    /// The paper's figures 5 and 6.
    pub method_curves: Vec<StudyCurve>,
    /// The paper's figure 23.
    pub order_curves: Vec<StudyCurve>,
    /// What holds and what does not.
    pub relations: Vec<Relation>,
}

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

/// Whether a method has an α at all.
fn has_alpha(settings: &InverseSettings) -> bool {
    !matches!(settings.method, Method::Joshi | Method::Seol) && settings.upper.is_some()
}

/// Two halves of some frames: what errors are measured against, and what methods see.
struct Frames {
    clean: Vec<Vec<Vec3>>,
    noisy: Vec<Vec<Vec3>>,
}

impl Frames {
    fn of(scene: &Scene<'_>, chosen: impl Iterator<Item = usize>) -> Self {
        let (clean, noisy) =
            chosen.map(|frame| (scene.clean[frame].clone(), scene.noisy[frame].clone())).unzip();
        Self { clean, noisy }
    }

    /// The same clean meshes with other noise.
    fn with_noise(&self, sigma_cm: f64, seed: u64) -> Self {
        Self { clean: self.clean.clone(), noisy: super::add_noise(&self.clean, sigma_cm, seed) }
    }
}

/// What rows of tables share.
struct Bench<'a> {
    scene: &'a Scene<'a>,
    effort: &'a Effort,
    by: AlphaBy,
    table: Frames,
    validation: Frames,
}

impl Bench<'_> {
    /// The α for these settings: where it is chosen, the one of the least mean error on the validation frames, the
    /// smallest of equals.
    fn alpha(&self, settings: &InverseSettings, validation: &Frames) -> Result<f64, InverseError> {
        if let AlphaBy::Given(alpha) = self.by {
            return Ok(alpha);
        }
        let mut best = (f64::INFINITY, 0.0);
        for alpha in &self.effort.choices {
            let settings = InverseSettings { alpha: Alpha::Absolute(*alpha), ..settings.clone() };
            let take =
                self.scene.inverse.solve_take(&validation.noisy, &settings, &TakeSettings::default())?;
            let error = measure(self.scene.rig, &take.weights, &validation.clean)?.0.rmse_cm;
            if error < best.0 {
                best = (error, *alpha);
            }
        }
        Ok(best.1)
    }

    /// A row with the α that these settings get.
    fn row(&self, name: &str, settings: &InverseSettings) -> Result<StudyRow, InverseError> {
        self.row_on(name, settings, &self.table, &self.validation)
    }

    fn row_on(
        &self,
        name: &str,
        settings: &InverseSettings,
        table: &Frames,
        validation: &Frames,
    ) -> Result<StudyRow, InverseError> {
        let alpha = has_alpha(settings).then(|| self.alpha(settings, validation)).transpose()?;
        let settings = InverseSettings { alpha: Alpha::Absolute(alpha.unwrap_or(0.0)), ..settings.clone() };
        row(self.scene, name, alpha, &settings, table)
    }
}

/// Runs everything with the paper's recipe (five passes, nothing after them), then until the weights have settled. Of
/// the settings, seed and the handling of holes count.
pub fn study(
    scene: &Scene<'_>,
    by: AlphaBy,
    settings: &InverseSettings,
    effort: &Effort,
    watch: &dyn Watch,
) -> Result<Study, InverseError> {
    let alpha = match by {
        AlphaBy::Given(alpha) | AlphaBy::CleanError { knee: alpha } => alpha,
    };
    let base = InverseSettings {
        alpha: Alpha::Absolute(alpha),
        seed: settings.seed,
        missing: settings.missing,
        ..InverseSettings::paper()
    };
    let settle = |settings: &InverseSettings| InverseSettings {
        passes: effort.settled_passes,
        tolerance: InverseSettings::default().tolerance,
        ..settings.clone()
    };
    let curve_methods = curve_methods();
    let methods = Method::ALL.map(|method| (method.title(), InverseSettings { method, ..base.clone() }));
    let orders = Order::ALL.map(|order| (order.title(), InverseSettings { order, ..base.clone() }));
    let repeated: Vec<_> =
        methods.iter().filter(|(_, s)| matches!(s.method, Method::Quartic | Method::Linear)).collect();
    let total = (1 + effort.noises_cm.len()) * methods.len()
        + 3 * orders.len()
        + repeated.len()
        + curve_methods.len();
    watch.event(Event::Started { what: "comparing methods", total: total as u64, unit: "runs" });
    let mut done = 0;
    let mut step = || {
        done += 1;
        watch.event(Event::Step { done });
        if watch.should_stop() { Err(InverseError::Stopped) } else { Ok(()) }
    };

    let window = effort.table_window(scene.clean.len());
    let (first, count) = (window.start, window.len());
    let bench = Bench {
        scene,
        effort,
        by,
        table: Frames::of(scene, window),
        validation: Frames::of(scene, effort.validation(scene.clean.len()).into_iter()),
    };
    let mut method_rows = Vec::new();
    for (name, settings) in &methods {
        method_rows.push(bench.row(name, settings)?);
        step()?;
    }
    if let AlphaBy::CleanError { knee } = by {
        method_rows.push(row(scene, "Quartic, α at the knee", Some(knee), &base, &bench.table)?);
    }
    let mut order_rows = Vec::new();
    for (name, settings) in &orders {
        order_rows.push(bench.row(name, settings)?);
        step()?;
    }
    let (mut settled_methods, mut settled_orders) = (Vec::new(), Vec::new());
    for (name, settings) in repeated {
        settled_methods.push(bench.row(name, &settle(settings))?);
        step()?;
    }
    for (name, settings) in &orders {
        settled_orders.push(bench.row(name, &settle(settings))?);
        step()?;
    }
    let mut noise = Vec::new();
    for (index, sigma) in effort.noises_cm.iter().enumerate() {
        let [table, validation] = [(&bench.table, 0), (&bench.validation, 1)]
            .map(|(frames, other)| frames.with_noise(*sigma, 100 + 2 * index as u64 + other));
        let mut rows = Vec::new();
        for (name, settings) in &methods {
            rows.push(bench.row_on(name, settings, &table, &validation)?);
            step()?;
        }
        noise.push((*sigma, rows));
    }

    let stride = scene.clean.len().div_ceil(effort.curve_frames).max(1);
    let Frames { clean, noisy } = Frames::of(scene, (0..scene.clean.len()).step_by(stride));
    let mut method_curves = Vec::new();
    for (name, change) in curve_methods {
        let settings = InverseSettings { ..change(base.clone()) };
        method_curves.push(curve(scene, name, &settings, &effort.alphas, &clean, &noisy)?);
        step()?;
    }
    let mut order_curves = Vec::new();
    for (name, settings) in &orders {
        order_curves.push(curve(scene, name, settings, &effort.alphas, &clean, &noisy)?);
        step()?;
    }
    watch.event(Event::Finished);
    let truth = scene.truth.map(|truth| truth_figures(&truth[first..first + count]));
    let relations = relations(&method_rows, &order_rows);
    Ok(Study {
        alpha,
        table_frames: count,
        first_frame: first,
        truth,
        methods: method_rows,
        orders: order_rows,
        settled_methods,
        settled_orders,
        noise,
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
    frames: &Frames,
) -> Result<StudyRow, InverseError> {
    // What a method prepares once (eigenvalues, bounds) is not a frame's cost.
    drop(scene.inverse.solver(settings)?);
    let start = Instant::now();
    let take = scene.inverse.solve_take(&frames.noisy, settings, &TakeSettings::default())?;
    let count = frames.noisy.len().max(1) as f64;
    let ms_per_frame = start.elapsed().as_secs_f64() * 1e3 / count;
    let (metrics, own) = measure(scene.rig, &take.weights, &frames.clean)?;
    let passes = take.reports.iter().map(|report| report.passes as f64).sum::<f64>() / count;
    let settled = take.reports.iter().filter(|report| report.stop != Stop::Passes).count() as f64 / count;
    let (name, weights) = (name.into(), take.weights);
    Ok(StudyRow { name, alpha, metrics, passes, settled, ms_per_frame, frames: own, weights })
}

fn curve(
    scene: &Scene<'_>,
    name: &str,
    settings: &InverseSettings,
    alphas: &[f64],
    clean: &[Vec<Vec3>],
    noisy: &[Vec<Vec3>],
) -> Result<StudyCurve, InverseError> {
    let mut points = Vec::new();
    for alpha in if has_alpha(settings) { alphas } else { &[0.0][..] } {
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
    let others = || methods.iter().filter(|row| row.name != "LMMM" && !row.name.contains("knee"));
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
