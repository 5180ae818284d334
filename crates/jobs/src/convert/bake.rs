//! A clip of any rig as a mean shape and the fewest morph targets that follow it: principal components
//! of the frames, added until the worst vertex of the worst frame is near enough. Start at [`bake`].

use rayon::prelude::*;
use thiserror::Error;
use understudy_core::Vec3;
use understudy_core::linear_algebra::{EigenError, SymmetricEigen};

/// More frames than this would need an hour and a matrix of gigabytes.
pub const MAX_FRAMES: usize = 4000;

/// Why frames could not be baked.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum BakeError {
    /// No frames, or frames of different lengths.
    #[error("frame {frame} has {got} vertices, {want} expected")]
    Frame {
        /// The frame.
        frame: usize,
        /// Its vertices.
        got: usize,
        /// Vertices of the first frame.
        want: usize,
    },
    /// Too many frames.
    #[error("{frames} frames, at most {MAX_FRAMES} can be baked at once: take a lower frame rate")]
    TooLong {
        /// How many.
        frames: usize,
    },
    /// A tolerance that is not a positive number.
    #[error("the tolerance is {0} cm")]
    Tolerance(f32),
    /// Rounding alone is larger than the tolerance.
    #[error("{targets} targets, all there are, still leave {reached} cm; the tolerance is {tolerance} cm")]
    OutOfReach {
        /// Targets tried.
        targets: usize,
        /// Largest distance left, cm.
        reached: f32,
        /// Largest distance allowed, cm.
        tolerance: f32,
    },
    /// The components could not be found.
    #[error(transparent)]
    Eigen(#[from] EigenError),
}

/// `v_f ≈ base + Σ_k weights[f][k] · targets[k]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Bake {
    /// The mean of the frames, `[V]` cm.
    pub base: Vec<Vec3>,
    /// Offsets from the base, `[K][V]` cm, the most important first.
    pub targets: Vec<Vec<Vec3>>,
    /// `[F][K]`, from −1 to 1; each target reaches 1 or −1 in some frame.
    pub weights: Vec<Vec<f32>>,
    /// The largest distance of any vertex in any frame, measured on the f32 reconstruction, cm.
    pub max_error: f32,
    /// The mean distance, cm.
    pub mean_error: f32,
}

impl Bake {
    /// A frame put together again, as a player of morph targets does.
    pub fn reconstruct(&self, frame: usize) -> Vec<Vec3> {
        let mut out = self.base.clone();
        for (target, &weight) in self.targets.iter().zip(&self.weights[frame]) {
            add_scaled(&mut out, target, weight);
        }
        out
    }
}

/// Finds the fewest principal components whose reconstruction in f32 leaves no vertex of any frame
/// further than `tolerance` cm away. `frames`: `[F][V]` cm.
///
/// With `X` the frames less their mean, `[F][3V]`, and `X Xᵀ = Q Λ Qᵀ`, the targets are the rows of
/// `Qᵀ X` and the weights the columns of `Q`: only an F × F matrix is ever decomposed.
pub fn bake(frames: &[Vec<Vec3>], tolerance: f32) -> Result<Bake, BakeError> {
    if !(tolerance.is_finite() && tolerance > 0.0) {
        return Err(BakeError::Tolerance(tolerance));
    }
    let want = frames.first().map_or(0, Vec::len);
    if let Some(frame) = frames.iter().position(|frame| frame.len() != want || want == 0) {
        return Err(BakeError::Frame { frame, got: frames[frame].len(), want });
    }
    match frames.len() {
        0 => return Err(BakeError::Frame { frame: 0, got: 0, want: 1 }),
        1..=MAX_FRAMES => {}
        frames => return Err(BakeError::TooLong { frames }),
    }
    let base = mean_shape(frames);
    let offsets: Vec<Vec<Vec3>> =
        frames.par_iter().map(|frame| frame.iter().zip(&base).map(|(v, b)| *v - *b).collect()).collect();
    let eigen = SymmetricEigen::new(&gram(&offsets), offsets.len())?;

    let mut shapes = vec![base.clone(); frames.len()];
    let (mut max_error, mut mean_error) = measure(frames, &shapes);
    let mut bake =
        Bake { base, targets: Vec::new(), weights: vec![Vec::new(); frames.len()], max_error, mean_error };
    // Values that are rounding noise carry no motion; adding them would only add bytes.
    let noise = f64::EPSILON * frames.len() as f64 * eigen.values[0].max(0.0);
    for k in 0..frames.len() {
        if max_error <= tolerance || eigen.values[k] <= noise {
            break;
        }
        let column = eigen.vector(k);
        let largest = column.iter().fold(0.0f64, |best, q| best.max(q.abs()));
        let target = combine(&offsets, column, largest);
        let weight = |frame: usize| (column[frame] / largest) as f32;
        shapes
            .par_iter_mut()
            .enumerate()
            .for_each(|(frame, shape)| add_scaled(shape, &target, weight(frame)));
        bake.weights.iter_mut().enumerate().for_each(|(frame, row)| row.push(weight(frame)));
        bake.targets.push(target);
        (max_error, mean_error) = measure(frames, &shapes);
    }
    if max_error > tolerance {
        return Err(BakeError::OutOfReach { targets: bake.targets.len(), reached: max_error, tolerance });
    }
    bake.max_error = max_error;
    bake.mean_error = mean_error;
    Ok(bake)
}

/// The mean of every vertex, summed in f64.
fn mean_shape(frames: &[Vec<Vec3>]) -> Vec<Vec3> {
    let mean = |vertex: usize| {
        let sum = frames.iter().fold([0.0f64; 3], |sum, frame| {
            let v = frame[vertex].to_array();
            std::array::from_fn(|axis| sum[axis] + f64::from(v[axis]))
        });
        Vec3::from_array(sum.map(|total| (total / frames.len() as f64) as f32))
    };
    (0..frames[0].len()).into_par_iter().map(mean).collect()
}

/// `X Xᵀ`, `[F][F]`, in f64; the lower triangle is enough.
fn gram(offsets: &[Vec<Vec3>]) -> Vec<f64> {
    let n = offsets.len();
    let mut out = vec![0.0; n * n];
    out.par_chunks_mut(n).enumerate().for_each(|(row, line)| {
        for column in 0..=row {
            let (mut sum, a, b) = ([0.0f64; 3], &offsets[row], &offsets[column]);
            for (a, b) in a.iter().zip(b) {
                sum[0] += f64::from(a.x) * f64::from(b.x);
                sum[1] += f64::from(a.y) * f64::from(b.y);
                sum[2] += f64::from(a.z) * f64::from(b.z);
            }
            line[column] = sum[0] + sum[1] + sum[2];
        }
    });
    out
}

/// `largest · Σ_f q_f X_f`: the component, scaled so that its largest weight becomes one.
fn combine(offsets: &[Vec<Vec3>], column: &[f64], largest: f64) -> Vec<Vec3> {
    let vertex = |vertex: usize| {
        let sum = offsets.iter().zip(column).fold([0.0f64; 3], |sum, (frame, q)| {
            let v = frame[vertex].to_array();
            std::array::from_fn(|axis| sum[axis] + q * f64::from(v[axis]))
        });
        Vec3::from_array(sum.map(|total| (total * largest) as f32))
    };
    (0..offsets[0].len()).into_par_iter().map(vertex).collect()
}

fn add_scaled(shape: &mut [Vec3], target: &[Vec3], weight: f32) {
    for (v, t) in shape.iter_mut().zip(target) {
        *v += *t * weight;
    }
}

/// Largest and mean distance over all frames and vertices.
fn measure(frames: &[Vec<Vec3>], shapes: &[Vec<Vec3>]) -> (f32, f32) {
    let one = |(frame, shape): (&Vec<Vec3>, &Vec<Vec3>)| {
        frame.iter().zip(shape).fold((0.0f32, 0.0f64), |(most, sum), (a, b)| {
            let distance = a.distance(*b);
            (most.max(distance), sum + f64::from(distance))
        })
    };
    let each: Vec<(f32, f64)> = frames.par_iter().zip(shapes).map(one).collect();
    let most = each.iter().fold(0.0f32, |most, (m, _)| most.max(*m));
    let total: f64 = each.iter().map(|(_, sum)| sum).sum();
    (most, (total / (frames.len() * frames[0].len()) as f64) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    /// `rank` random shapes of `vertices` vertices, mixed by smooth curves over `count` frames.
    fn frames(count: usize, vertices: usize, rank: usize) -> Vec<Vec<Vec3>> {
        let mut random = Random::new(4);
        let mut point =
            |size: f64| Vec3::from_array(std::array::from_fn(|_| (random.normal() * size) as f32));
        let rest: Vec<Vec3> = (0..vertices).map(|_| point(60.0)).collect();
        let shapes: Vec<Vec<Vec3>> = (0..rank).map(|_| (0..vertices).map(|_| point(3.0)).collect()).collect();
        let frame = |f: usize| {
            let mut out = rest.clone();
            for (k, shape) in shapes.iter().enumerate() {
                add_scaled(&mut out, shape, (0.3 * (k + 1) as f32 * f as f32).sin());
            }
            out
        };
        (0..count).map(frame).collect()
    }

    #[test]
    fn a_clip_of_known_rank_needs_that_many_targets() {
        let frames = frames(40, 200, 5);
        let bake = bake(&frames, 1e-3).expect("within reach");
        assert_eq!(bake.targets.len(), 5);
        assert!(bake.max_error <= 1e-3 && bake.mean_error <= bake.max_error);
        for (f, frame) in frames.iter().enumerate() {
            let again = bake.reconstruct(f);
            assert!(frame.iter().zip(&again).all(|(a, b)| a.distance(*b) <= bake.max_error));
        }
        for k in 0..5 {
            let largest = bake.weights.iter().map(|row| row[k].abs()).fold(0.0f32, f32::max);
            assert_eq!(largest, 1.0);
        }
    }

    #[test]
    fn one_target_fewer_misses_the_tolerance() {
        let frames = frames(60, 100, 9);
        for tolerance in [4.0, 1.0, 0.1] {
            let result = bake(&frames, tolerance).expect("within reach");
            let last = result.targets.len() - 1;
            let mut fewer = result.clone();
            fewer.targets.truncate(last);
            let shapes: Vec<Vec<Vec3>> = (0..60).map(|f| fewer.reconstruct(f)).collect();
            assert!(measure(&frames, &shapes).0 > tolerance, "{last} targets reach {tolerance} too");
        }
    }

    #[test]
    fn a_still_clip_needs_no_target() {
        let still = vec![frames(1, 50, 3).remove(0); 12];
        let bake = bake(&still, 1e-3).expect("nothing moves");
        assert_eq!((bake.targets.len(), bake.weights[3].len()), (0, 0));
        assert!(bake.max_error <= 1e-4);
    }

    #[test]
    fn bad_input_is_named() {
        let mut uneven = frames(3, 10, 1);
        uneven[2].pop();
        assert_eq!(bake(&uneven, 0.1), Err(BakeError::Frame { frame: 2, got: 9, want: 10 }));
        assert!(matches!(bake(&[], 0.1), Err(BakeError::Frame { .. })));
        assert!(matches!(bake(&frames(3, 10, 1), f32::NAN), Err(BakeError::Tolerance(_))));
        assert!(matches!(bake(&frames(9, 10, 3), 1e-9), Err(BakeError::OutOfReach { .. })));
    }
}
