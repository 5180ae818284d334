//! How an error is spread over the frequencies of a mesh: smooth errors are slow bulges, noise is where
//! neighbours disagree. By the kernel polynomial method, without a single eigenvector.
//!
//! With `s = D^½ e` and the normalised Laplacian `L = 1 − D^-½ A D^-½` (eigenvalues `λ` from 0, constant, to
//! 2, neighbours opposed), the power of `s` near `λ` follows from the moments `μ_m = ⟨s, T_m(L − 1) s⟩` of
//! Chebyshev polynomials, damped by Jackson's kernel (Weiße et al. 2006).

use super::figures::{Figures, Findings, Posed, Study};
use super::pictures::Exhibit;
use serde::Serialize;
use std::collections::BTreeMap;
use understudy_core::{Adjacency, Vec3};
use understudy_report::html::{Cell, Column, Section, Table};
use understudy_report::plot::{LinePlot, Scale, Series};

/// Poses whose errors are taken apart into frequencies: it costs as much as all the rest.
const POSES: usize = 24;
/// Bands of equal width in λ.
const BANDS: usize = 20;
/// Polynomials: twice as fine as the bands.
const MOMENTS: usize = 48;

/// Power of the error over the frequencies of the mesh.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpectrumFigures {
    /// Mean power in each band, mm².
    pub bands: Vec<f64>,
    /// Power in the upper half, where neighbours disagree, mm².
    pub high_power: f64,
    /// The same as a share of all power.
    pub high_share: f64,
}

/// The spectra of all methods.
pub(crate) struct Spectra {
    names: Vec<String>,
    adjacency: Adjacency,
    every: usize,
    spectra: Vec<Spectrum>,
}

impl Spectra {
    /// For what is weighed.
    pub fn new(study: &Study<'_>) -> Self {
        let adjacency = study.mesh.adjacency();
        Self {
            names: study.names.to_vec(),
            every: study.poses().div_ceil(POSES).max(1),
            spectra: study.names.iter().map(|_| Spectrum::new(&adjacency)).collect(),
            adjacency,
        }
    }

    fn figures(&self) -> impl Iterator<Item = (&String, SpectrumFigures)> {
        self.names.iter().zip(&self.spectra).map(|(name, spectrum)| {
            let bands: Vec<f64> = spectrum.bands().iter().map(|power| power * 100.0).collect();
            let high_power = bands[bands.len() / 2..].iter().sum();
            (name, SpectrumFigures { bands, high_power, high_share: spectrum.high_share() })
        })
    }
}

impl Figures for Spectra {
    fn add(&mut self, method: usize, posed: &Posed<'_>) {
        if posed.number.is_multiple_of(self.every) {
            let error: Vec<Vec3> = posed.vertices.iter().zip(posed.truth).map(|(a, b)| *a - *b).collect();
            self.spectra[method].add(&self.adjacency, &error);
        }
    }

    fn findings(&self) -> Findings {
        let line = |(name, f): (&String, SpectrumFigures)| {
            format!(
                "{name}: {:.3}/1000 mm² of the error's power is between neighbours ({:.1} %)",
                f.high_power * 1e3,
                f.high_share * 100.0
            )
        };
        let all: BTreeMap<&String, SpectrumFigures> = self.figures().collect();
        self.figures().map(line).fold(Findings::default().field("spectrum", &all), Findings::line)
    }

    fn section(&self, _exhibits: &[Exhibit]) -> Option<Section> {
        let mut plot = LinePlot::new("Spectrum of the error")
            .x_label("eigenvalue of the Laplacian")
            .y_label("mean power, mm²")
            .y_scale(Scale::Log)
            .size(760.0, 340.0);
        let mut table = Table::new([
            Column::text("method"),
            Column::number("power between neighbours, 1/1000 mm²", 3).lowest_is_best(),
            Column::number("share of all power, %", 2).lowest_is_best(),
        ])
        .caption("The upper half of the spectrum.");
        for (name, figures) in self.figures() {
            let points = figures.bands.iter().enumerate().filter(|(_, power)| **power > 0.0);
            let points = points.map(|(band, power)| [frequency(band), *power]).collect();
            plot = plot.series(Series::new(name.clone(), points));
            let numbers = [figures.high_power * 1e3, figures.high_share * 100.0];
            table = table.row(std::iter::once(Cell::from(name.clone())).chain(numbers.map(Cell::from)));
        }
        let caption = "Power of the error over eigenvalues of the mesh's Laplacian: to the left slow bulges, to the \
                       right neighbours that disagree, which the eye reads as noise.";
        Some(Section::new("Error over frequency").plot(&plot, caption).table(table))
    }
}

/// Sums the power of errors, pose by pose.
#[derive(Debug, Clone)]
struct Spectrum {
    /// `1/√degree`, zero for a vertex without neighbours.
    scale: Vec<f32>,
    moments: [f64; MOMENTS],
    poses: usize,
    vertices: usize,
}

impl Spectrum {
    /// For a mesh.
    fn new(adjacency: &Adjacency) -> Self {
        let count = adjacency.vertex_count();
        let scale = |v: usize| match adjacency.neighbours(v).len() {
            0 => 0.0,
            degree => (degree as f32).sqrt().recip(),
        };
        Self { scale: (0..count).map(scale).collect(), moments: [0.0; MOMENTS], poses: 0, vertices: count }
    }

    /// Adds the error of one pose, cm.
    fn add(&mut self, adjacency: &Adjacency, error: &[Vec3]) {
        let start: Vec<Vec3> = error
            .iter()
            .zip(&self.scale)
            .map(|(e, scale)| if *scale > 0.0 { *e / *scale } else { Vec3::ZERO })
            .collect();
        let dot = |a: &[Vec3], b: &[Vec3]| a.iter().zip(b).map(|(a, b)| f64::from(a.dot(*b))).sum::<f64>();
        // L − 1 = −D^-½ A D^-½.
        let apply = |x: &[Vec3]| -> Vec<Vec3> {
            let one = |v: usize| {
                let near = adjacency.neighbours(v).iter();
                let sum: Vec3 = near.map(|n| x[*n as usize] * self.scale[*n as usize]).sum();
                -sum * self.scale[v]
            };
            (0..x.len()).map(one).collect()
        };
        let mut before = start.clone();
        let mut now = apply(&start);
        self.moments[0] += dot(&start, &start);
        self.moments[1] += dot(&start, &now);
        for moment in 2..MOMENTS {
            let next: Vec<Vec3> = apply(&now).iter().zip(&before).map(|(a, b)| *a * 2.0 - *b).collect();
            before = std::mem::replace(&mut now, next);
            self.moments[moment] += dot(&start, &now);
        }
        self.poses += 1;
    }

    /// Mean power a vertex and pose in every band, cm² times the number of neighbours; low λ first.
    fn bands(&self) -> [f64; BANDS] {
        let jackson = |m: usize| {
            let n = MOMENTS as f64 + 1.0;
            let angle = std::f64::consts::PI / n;
            let m = m as f64;
            ((n - m) * (m * angle).cos() + (m * angle).sin() / angle.tan()) / n
        };
        // x = λ − 1 = cos θ runs down while θ runs up.
        let theta = |band: usize| (2.0 * band as f64 / BANDS as f64 - 1.0).clamp(-1.0, 1.0).acos();
        let share = 1.0 / (self.poses.max(1) * self.vertices.max(1)) as f64;
        let mut out = [0.0; BANDS];
        for (band, power) in out.iter_mut().enumerate() {
            let (high, low) = (theta(band), theta(band + 1));
            let mut sum = self.moments[0] * (high - low);
            for m in 1..MOMENTS {
                let wave = ((m as f64 * high).sin() - (m as f64 * low).sin()) / m as f64;
                sum += 2.0 * jackson(m) * self.moments[m] * wave;
            }
            *power = (sum / std::f64::consts::PI * share).max(0.0);
        }
        out
    }

    /// Share of the power above the middle, where neighbours disagree rather than agree.
    fn high_share(&self) -> f64 {
        let bands = self.bands();
        let whole: f64 = bands.iter().sum();
        if whole > 0.0 { bands[BANDS / 2..].iter().sum::<f64>() / whole } else { 0.0 }
    }
}

/// The λ in the middle of a band.
fn frequency(band: usize) -> f64 {
    2.0 * (band as f64 + 0.5) / BANDS as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Face, Random};

    #[test]
    fn smooth_errors_are_low_noise_is_spread_and_checkers_are_high() {
        let side = 24u32;
        let mut faces = Vec::new();
        for row in 0..side - 1 {
            for column in 0..side - 1 {
                let a = row * side + column;
                faces.push(Face::quad(a, a + 1, a + 1 + side, a + side));
            }
        }
        let adjacency = Adjacency::from_faces((side * side) as usize, &faces);
        let spectrum = |error: &dyn Fn(u32) -> f32| {
            let mut spectrum = Spectrum::new(&adjacency);
            let field: Vec<Vec3> = (0..side * side).map(|v| Vec3::splat(error(v))).collect();
            spectrum.add(&adjacency, &field);
            spectrum
        };
        let smooth = spectrum(&|v| (v as f32 / (side * side) as f32).sin() + 1.0);
        assert!(smooth.high_share() < 0.01 && smooth.bands()[0] > 0.9 * smooth.bands().iter().sum::<f64>());
        let checkers = spectrum(&|v| if (v / side + v % side).is_multiple_of(2) { 1.0 } else { -1.0 });
        assert!(checkers.high_share() > 0.99, "{}", checkers.high_share());
        let noise = spectrum(&|v| Random::stream(1, u64::from(v)).normal() as f32);
        assert!((0.35..0.65).contains(&noise.high_share()), "{}", noise.high_share());
        // All power is somewhere.
        let power: f64 = noise.bands().iter().sum();
        let moment = noise.moments[0] / f64::from(side * side);
        assert!((power - moment).abs() < 0.02 * moment, "{power} {moment}");
        assert_eq!(spectrum(&|_| 0.0).high_share(), 0.0);
    }
    #[test]
    fn bands_are_those_of_the_eigenvectors() {
        // A strip of triangles, a quad and a vertex without neighbours.
        let count = 34u32;
        let mut faces: Vec<Face> = (2..count - 5).map(|v| Face::triangle(v - 2, v - 1, v)).collect();
        faces.push(Face::quad(count - 5, count - 4, count - 3, count - 2));
        let mut random = Random::new(5);
        let mut field = |size: f32| -> Vec<Vec<Vec3>> {
            let mut noise = || Vec3::from_array([0; 3].map(|_| random.uniform(-size, size)));
            (0..3).map(|_| (0..count).map(|_| noise()).collect()).collect()
        };
        let (truth, other) = (field(9.0), field(9.0));
        let adjacency = Adjacency::from_faces(count as usize, &faces);
        let mut spectrum = Spectrum::new(&adjacency);
        for (truth, other) in truth.iter().zip(&other) {
            let error: Vec<Vec3> = other.iter().zip(truth).map(|(a, b)| *a - *b).collect();
            spectrum.add(&adjacency, &error);
        }
        let want = understudy_testkit::figures::spectrum(&faces, &truth, &other, BANDS, MOMENTS);
        let all: f64 = want.iter().sum();
        for (band, (found, want)) in spectrum.bands().into_iter().zip(&want).enumerate() {
            assert!((found - want).abs() < 1e-6 * all, "band {band}: {found} {want}");
        }
        let high: f64 = want[BANDS / 2..].iter().sum();
        assert!(high > 0.0 && (spectrum.high_share() - high / all).abs() < 1e-6);
    }
}
