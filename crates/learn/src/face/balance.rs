//! Balanced drawing of training poses: common expressions must not drown rare ones. Poses are sorted into
//! bins along the first principal component of some landmarks; a draw takes a bin, then a pose in it.

use super::Recording;
use understudy_core::Random;
use understudy_core::linear_algebra::SymmetricEigen;

/// Poses in bins of equal length along one axis; empty bins are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Balance {
    bins: Vec<Vec<u32>>,
}

/// Poses that suffice to find landmarks and their principal component.
const MOST_POSES: usize = 500;

/// Vertices that move much and lie far apart: the first moves most, each next one has the largest product
/// of its motion and its distance to those chosen.
pub fn landmarks(poses: &Recording, candidates: &[u32], count: usize) -> Vec<u32> {
    let rest = poses.mesh.positions();
    let chosen = poses.spread(MOST_POSES);
    let motion = |vertex: u32| -> f32 {
        let vertex = vertex as usize;
        let squares: f32 =
            chosen.iter().map(|p| poses.vertices_of(*p)[vertex].distance_squared(rest[vertex])).sum();
        (squares / chosen.len().max(1) as f32).sqrt()
    };
    let motions: Vec<f32> = candidates.iter().map(|v| motion(*v)).collect();
    let mut away = vec![f32::INFINITY; candidates.len()];
    let mut out: Vec<u32> = Vec::new();
    while out.len() < count.min(candidates.len()) {
        let worth = |place: usize| if out.is_empty() { motions[place] } else { motions[place] * away[place] };
        // The first of equals, so that the choice never depends on anything else.
        let best = (0..candidates.len())
            .fold(0, |best, place| if worth(place) > worth(best) { place } else { best });
        out.push(candidates[best]);
        let at = rest[candidates[best] as usize];
        for (away, vertex) in away.iter_mut().zip(candidates) {
            *away = away.min(rest[*vertex as usize].distance(at));
        }
    }
    out
}

impl Balance {
    /// Sorts `training` poses into `count` bins of equal length.
    pub fn new(poses: &Recording, training: &[u32], landmarks: &[u32], count: usize) -> Self {
        let axis = first_component(poses, training, landmarks);
        let place = |pose: &u32| -> f64 {
            let vertices = poses.vertices_of(*pose as usize);
            let along = |(vertex, axis): (&u32, &[f64])| {
                let v = vertices[*vertex as usize].as_dvec3();
                v.x * axis[0] + v.y * axis[1] + v.z * axis[2]
            };
            landmarks.iter().zip(axis.chunks_exact(3)).map(along).sum()
        };
        let places: Vec<f64> = training.iter().map(place).collect();
        let low = places.iter().copied().fold(f64::INFINITY, f64::min);
        let high = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let width = (high - low) / count.max(1) as f64;
        let mut bins = vec![Vec::new(); count.max(1)];
        for (pose, place) in training.iter().zip(&places) {
            let bin = if width > 0.0 { ((place - low) / width) as usize } else { 0 };
            bins[bin.min(count.max(1) - 1)].push(*pose);
        }
        bins.retain(|bin| !bin.is_empty());
        Self { bins }
    }

    /// How many poses each bin holds.
    pub fn sizes(&self) -> Vec<usize> {
        self.bins.iter().map(Vec::len).collect()
    }

    /// The poses of one step: the same for the same seed and step, whatever came before.
    ///
    /// # Panics
    /// When there is no pose at all.
    pub fn draw(&self, seed: u64, step: usize, out: &mut [usize]) {
        let mut random = Random::stream(seed, step as u64);
        for slot in out {
            let bin = &self.bins[random.below(self.bins.len())];
            *slot = bin[random.below(bin.len())] as usize;
        }
    }
}

/// The direction of largest spread of the landmarks' coordinates, `[3 · landmarks]`; zero where nothing moves.
fn first_component(poses: &Recording, training: &[u32], landmarks: &[u32]) -> Vec<f64> {
    let size = 3 * landmarks.len();
    let count = training.len().min(MOST_POSES);
    let chosen = (0..count).map(|i| training[i * training.len() / count] as usize);
    let row = |pose: usize| -> Vec<f64> {
        let vertices = poses.vertices_of(pose);
        landmarks.iter().flat_map(|v| vertices[*v as usize].as_dvec3().to_array()).collect()
    };
    let rows: Vec<Vec<f64>> = chosen.map(row).collect();
    let mean: Vec<f64> =
        (0..size).map(|c| rows.iter().map(|r| r[c]).sum::<f64>() / rows.len().max(1) as f64).collect();
    let mut covariance = vec![0.0; size * size];
    for row in &rows {
        for i in 0..size {
            for j in 0..=i {
                covariance[i * size + j] += (row[i] - mean[i]) * (row[j] - mean[j]);
            }
        }
    }
    match SymmetricEigen::new(&covariance, size) {
        Ok(eigen) if size > 0 => eigen.vector(0).to_vec(),
        _ => vec![0.0; size],
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_face;
    use super::*;

    #[test]
    fn rare_poses_are_drawn_as_often_as_common_ones() {
        let face = small_face(1, 400);
        let poses = face.poses();
        let training: Vec<u32> = (0..400).collect();
        let candidates: Vec<u32> = (0..poses.mesh.vertex_count() as u32).collect();
        let marks = landmarks(&poses, &candidates, 10);
        assert_eq!(marks.len(), 10);
        let balance = Balance::new(&poses, &training, &marks, 16);
        let sizes = balance.sizes();
        assert_eq!(sizes.iter().sum::<usize>(), 400);
        let mut counts = vec![0usize; 400];
        let mut batch = [0; 8];
        for step in 0..2000 {
            balance.draw(7, step, &mut batch);
            batch.iter().for_each(|pose| counts[*pose] += 1);
        }
        // Every bin gets its share of 16,000 draws, to six standard deviations.
        let share = 16_000.0 / sizes.len() as f64;
        for bin in &balance.bins {
            let drawn: usize = bin.iter().map(|pose| counts[*pose as usize]).sum();
            assert!((drawn as f64 - share).abs() < 6.0 * share.sqrt(), "{drawn} {share}");
        }
        let (mut a, mut b) = ([0; 8], [0; 8]);
        balance.draw(7, 3, &mut a);
        balance.draw(7, 3, &mut b);
        assert_eq!(a, b);
    }
}
