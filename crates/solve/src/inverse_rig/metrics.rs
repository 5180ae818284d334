//! The numbers of the paper's tables: mesh error against the clean mesh, cardinality, L1 norm and
//! roughness in time (section 4.2).

use super::InverseError;
use rayon::prelude::*;
use serde::Serialize;
use understudy_core::metrics::{distances, percentile, roughness};
use understudy_core::{BlendshapeRig, Vec3};

/// One frame.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FrameMetrics {
    /// `sqrt(‖f(w) − b̃‖²/n)` with the whole rig (eq. 15), cm.
    pub rmse_cm: f64,
    /// 95th percentile of the vertices' distances, cm.
    pub p95_cm: f64,
    /// The worst vertex, cm.
    pub max_cm: f64,
    /// Weights that are not zero.
    pub cardinality: usize,
    /// `Σ|w_i|`.
    pub l1: f64,
}

/// A take: means over its frames, and over its weights for the roughness.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TakeMetrics {
    /// Mean of [`FrameMetrics::rmse_cm`].
    pub rmse_cm: f64,
    /// Mean of [`FrameMetrics::p95_cm`].
    pub p95_cm: f64,
    /// Largest of [`FrameMetrics::max_cm`].
    pub max_cm: f64,
    /// Mean of [`FrameMetrics::cardinality`].
    pub cardinality: f64,
    /// Mean of [`FrameMetrics::l1`].
    pub l1: f64,
    /// Mean over the weights of eq. 16.
    pub roughness: f64,
}

/// Measures weights, `[F][m]`, against clean meshes, `[F][V]`. The whole rig makes the reconstruction,
/// whatever part of it the method knew.
pub fn measure<T: AsRef<[Vec3]> + Sync>(
    rig: &BlendshapeRig,
    weights: &[Vec<f64>],
    clean: &[T],
) -> Result<(TakeMetrics, Vec<FrameMetrics>), InverseError> {
    if weights.len() != clean.len() {
        return Err(InverseError::Count { what: "frames of weights", got: weights.len(), want: clean.len() });
    }
    let shapes = rig.shapes().len();
    let frame = |(index, (weights, clean)): (usize, (&Vec<f64>, &T))| {
        let (got, want) = (weights.len(), shapes);
        if got != want {
            return Err(InverseError::Count { what: "weights", got, want }.in_frame(index));
        }
        let (got, want) = (clean.as_ref().len(), rig.neutral().len());
        if got != want {
            return Err(InverseError::VertexCount { got, want }.in_frame(index));
        }
        Ok(measure_frame(rig, weights, clean.as_ref()))
    };
    let pairs: Vec<_> = weights.iter().zip(clean).enumerate().collect();
    let frames: Vec<FrameMetrics> = pairs.into_par_iter().map(frame).collect::<Result<_, _>>()?;
    let count = frames.len().max(1) as f64;
    let mean = |value: fn(&FrameMetrics) -> f64| frames.iter().map(value).sum::<f64>() / count;
    let curve = |shape: usize| weights.iter().map(|frame| frame[shape] as f32).collect::<Vec<_>>();
    let rough: f64 = (0..shapes).map(|shape| roughness(&curve(shape))).sum();
    let take = TakeMetrics {
        rmse_cm: mean(|f| f.rmse_cm),
        p95_cm: mean(|f| f.p95_cm),
        max_cm: frames.iter().map(|f| f.max_cm).max_by(f64::total_cmp).unwrap_or(0.0),
        cardinality: mean(|f| f.cardinality as f64),
        l1: mean(|f| f.l1),
        // The sum of nothing is −0.
        roughness: rough.abs() / shapes.max(1) as f64,
    };
    Ok((take, frames))
}

fn measure_frame(rig: &BlendshapeRig, weights: &[f64], clean: &[Vec3]) -> FrameMetrics {
    let single: Vec<f32> = weights.iter().map(|w| *w as f32).collect();
    let mut mesh = vec![Vec3::ZERO; clean.len()];
    rig.evaluate(&single, &mut mesh);
    // Vertices that are missing from the clean mesh have no error.
    let mut seen = clean.iter().map(|vertex| vertex.is_finite());
    let mut apart = distances(&mesh, clean);
    apart.retain(|_| seen.next().unwrap_or(false));
    // Weights that are no numbers put no vertex anywhere: such a frame has no finite error.
    if !weights.iter().all(|weight| weight.is_finite()) || !apart.iter().all(|distance| distance.is_finite())
    {
        apart.fill(f32::NAN);
    }
    let squares: f64 = apart.iter().map(|d| f64::from(*d).powi(2)).sum();
    apart.sort_unstable_by(f32::total_cmp);
    FrameMetrics {
        rmse_cm: (squares / apart.len().max(1) as f64).sqrt(),
        p95_cm: percentile(&apart, 95.0),
        max_cm: apart.last().map_or(0.0, |d| f64::from(*d)),
        cardinality: weights.iter().filter(|w| **w != 0.0).count(),
        l1: weights.iter().map(|w| w.abs()).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_testkit::inverse;
    use understudy_testkit::synthetic::{SyntheticRig, random_rig, random_take};

    #[test]
    fn the_truth_has_no_error_and_a_known_shift_has_its_length() {
        let rig = random_rig(&SyntheticRig::small(1));
        let take = random_take(rig.shapes().len(), 30, 2);
        let mut meshes = vec![vec![Vec3::ZERO; rig.neutral().len()]; 30];
        take.iter().zip(&mut meshes).for_each(|(weights, mesh)| rig.evaluate(weights, mesh));
        let weights: Vec<Vec<f64>> = take.iter().map(|f| f.iter().map(|w| f64::from(*w)).collect()).collect();
        let (metrics, frames) = measure(&rig, &weights, &meshes).expect("they fit");
        assert_eq!((metrics.rmse_cm, metrics.max_cm, frames.len()), (0.0, 0.0, 30));
        let nonzero = take.iter().flatten().filter(|w| **w != 0.0).count();
        assert!((metrics.cardinality * 30.0 - nonzero as f64).abs() < 1e-9);
        meshes.iter_mut().flatten().for_each(|vertex| *vertex += Vec3::new(0.3, 0.0, 0.4));
        let (shifted, _) = measure(&rig, &weights, &meshes).expect("they fit");
        assert!((shifted.rmse_cm - 0.5).abs() < 1e-5 && (shifted.p95_cm - 0.5).abs() < 1e-5);
        let short = measure(&rig, &weights[..2], &meshes);
        assert!(matches!(short, Err(InverseError::Count { .. })));
        meshes[3].pop();
        let other = measure(&rig, &weights, &meshes);
        assert!(matches!(other, Err(InverseError::Frame { frame: 3, .. })));
    }

    #[test]
    fn every_number_is_that_of_its_definition() {
        let rig = random_rig(&SyntheticRig::small(4));
        let (shapes, frames) = (rig.shapes().len(), 25);
        let mesh = |weights: &[f32]| {
            let mut out = vec![Vec3::ZERO; rig.neutral().len()];
            rig.evaluate(weights, &mut out);
            out
        };
        let exact = |frame: &Vec<f32>| frame.iter().map(|w| f64::from(*w)).collect::<Vec<f64>>();
        // One take measured against another.
        let (take, other) = (random_take(shapes, frames, 5), random_take(shapes, frames, 6));
        let clean: Vec<Vec<Vec3>> = other.iter().map(|weights| mesh(weights)).collect();
        let weights: Vec<Vec<f64>> = take.iter().map(exact).collect();
        let (whole, each) = measure(&rig, &weights, &clean).expect("they fit");
        let near = |ours: f64, plain: f64| {
            assert!((ours - plain).abs() <= 1e-6 * plain, "{ours} {plain}");
        };
        let mean = |value: &dyn Fn(usize) -> f64| (0..frames).map(value).sum::<f64>() / frames as f64;
        let moved: Vec<Vec<Vec3>> = take.iter().map(|weights| mesh(weights)).collect();
        for (frame, ours) in each.iter().enumerate() {
            near(ours.rmse_cm, inverse::rmse(&moved[frame], &clean[frame]));
            near(ours.p95_cm, inverse::p95(&moved[frame], &clean[frame]));
            near(ours.l1, inverse::l1(&weights[frame]));
            assert_eq!(ours.cardinality, inverse::cardinality(&weights[frame]));
        }
        near(whole.rmse_cm, mean(&|frame| inverse::rmse(&moved[frame], &clean[frame])));
        near(whole.p95_cm, mean(&|frame| inverse::p95(&moved[frame], &clean[frame])));
        near(whole.cardinality, mean(&|frame| inverse::cardinality(&weights[frame]) as f64));
        near(whole.l1, mean(&|frame| inverse::l1(&weights[frame])));
        near(whole.roughness, inverse::roughness(&weights));
        assert!(whole.rmse_cm > 0.0 && whole.l1 > 0.0 && whole.roughness > 0.0, "{whole:?}");
    }

    #[test]
    fn weights_that_are_no_numbers_have_no_finite_error_and_holes_in_the_clean_mesh_have_none() {
        let rig = random_rig(&SyntheticRig::small(1));
        let shapes = rig.shapes().len();
        let clean = vec![rig.neutral().to_vec(); 3];
        let mut weights = vec![vec![0.0; shapes]; 3];
        weights[1][shapes - 1] = f64::NAN;
        let (metrics, frames) = measure(&rig, &weights, &clean).expect("they fit");
        assert!(
            metrics.rmse_cm.is_nan() && metrics.p95_cm.is_nan() && metrics.max_cm.is_nan(),
            "{metrics:?}"
        );
        assert!(frames[1].rmse_cm.is_nan() && frames[1].max_cm.is_nan());
        assert_eq!([frames[0].rmse_cm, frames[2].max_cm], [0.0; 2]);
        weights[1][shapes - 1] = f64::INFINITY;
        assert!(measure(&rig, &weights, &clean).expect("they fit").0.rmse_cm.is_nan());
        weights[1][shapes - 1] = 0.0;
        let mut holes = clean;
        holes[2][0] = Vec3::NAN;
        let (metrics, _) = measure(&rig, &weights, &holes).expect("they fit");
        assert_eq!((metrics.rmse_cm, metrics.max_cm), (0.0, 0.0));
    }
}
