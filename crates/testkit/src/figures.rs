//! The figures of tables straight from their definitions, slow and in f64: what `core::metrics` and `jobs::twin::eval` are held
//! to. The enveloping error is in [`crate::enveloping`].

use std::collections::{BTreeSet, VecDeque};
use std::f64::consts::PI;
use understudy_core::{DVec3, Face, Vec3};

/// Mean, 95th percentile (linear between ranks) and largest distance of all vertices of all poses, cm.
pub fn distances(truth: &[Vec<Vec3>], other: &[Vec<Vec3>]) -> [f64; 3] {
    let mut all = Vec::new();
    for (truth, other) in truth.iter().zip(other) {
        for (a, b) in truth.iter().zip(other) {
            let d = a.as_dvec3() - b.as_dvec3();
            all.push((d.x * d.x + d.y * d.y + d.z * d.z).sqrt());
        }
    }
    all.sort_by(f64::total_cmp);
    let mut sum = 0.0;
    for distance in &all {
        sum += distance;
    }
    let place = 0.95 * (all.len() - 1) as f64;
    let (low, high) = (all[place.floor() as usize], all[place.ceil() as usize]);
    [sum / all.len() as f64, low + (high - low) * (place - place.floor()), all[all.len() - 1]]
}

/// Mean angle between the normals of faces over all poses, degrees; a face without area has none to be turned.
pub fn normal_angle(faces: &[Face], truth: &[Vec<Vec3>], other: &[Vec<Vec3>]) -> f64 {
    let normal = |face: &Face, places: &[Vec3]| -> Option<DVec3> {
        let p: Vec<DVec3> = face.corners().iter().map(|v| places[*v as usize].as_dvec3()).collect();
        // Of a quad both of its diagonals.
        let (a, b) = if p.len() == 3 { (p[1] - p[0], p[2] - p[0]) } else { (p[2] - p[0], p[3] - p[1]) };
        let n = DVec3::new(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
        let length = (n.x * n.x + n.y * n.y + n.z * n.z).sqrt();
        (length > 0.0).then(|| n / length)
    };
    let (mut sum, mut count) = (0.0, 0);
    for (truth, other) in truth.iter().zip(other) {
        for face in faces {
            if let (Some(a), Some(b)) = (normal(face, truth), normal(face, other)) {
                // Half the angle by its sine, which small angles need.
                sum += 2.0 * (0.5 * (a - b).length()).min(1.0).asin().to_degrees();
            }
            count += 1;
        }
    }
    sum / f64::from(count)
}

/// Who is next to whom: corners that follow each other around a face.
fn neighbours(vertices: usize, faces: &[Face]) -> Vec<BTreeSet<usize>> {
    let mut out = vec![BTreeSet::new(); vertices];
    for face in faces {
        let corners = face.corners();
        for index in 0..corners.len() {
            let (a, b) = (corners[index] as usize, corners[(index + 1) % corners.len()] as usize);
            if a != b {
                out[a].insert(b);
                out[b].insert(a);
            }
        }
    }
    out
}

/// How far errors jump along edges: means between groups and inside them, cm, their ratio, and the ratio of the jumps
/// between groups to those inside the two that meet.
pub fn seams(faces: &[Face], group: &[u32], truth: &[Vec<Vec3>], other: &[Vec<Vec3>]) -> [f64; 4] {
    let near = neighbours(group.len(), faces);
    let error = |pose: usize, v: usize| other[pose][v].as_dvec3() - truth[pose][v].as_dvec3();
    let mean_over = |wanted: &dyn Fn(u32, u32) -> bool| -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for pose in 0..truth.len() {
            for (a, all) in near.iter().enumerate() {
                for b in all.iter().filter(|b| **b > a && wanted(group[a], group[**b])) {
                    sum += (error(pose, a) - error(pose, *b)).length();
                    count += 1.0;
                }
            }
        }
        if count > 0.0 { sum / count } else { 0.0 }
    };
    let (border, inside) = (mean_over(&|a, b| a != b), mean_over(&|a, b| a == b));
    let (mut jumps, mut expected) = (0.0, 0.0);
    for pose in 0..truth.len() {
        for (a, all) in near.iter().enumerate() {
            for b in all.iter().filter(|b| **b > a && group[a] != group[**b]) {
                let of = |own: u32| mean_over(&|x, y| x == own && y == own);
                jumps += (error(pose, a) - error(pose, *b)).length();
                expected += 0.5 * (of(group[a]) + of(group[*b]));
            }
        }
    }
    [border, inside, border / inside, jumps / expected]
}

/// Eigenvalues and eigenvectors (as rows) of a symmetric matrix `[n × n]`, by Jacobi's rotations.
fn eigen(mut a: Vec<f64>, n: usize) -> (Vec<f64>, Vec<Vec<f64>>) {
    let mut vectors = vec![vec![0.0; n]; n];
    (0..n).for_each(|i| vectors[i][i] = 1.0);
    for _ in 0..60 {
        let rest: f64 = (0..n * n).filter(|at| at / n != at % n).map(|at| a[at] * a[at]).sum();
        if rest < 1e-28 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[p * n + q].abs() < 1e-300 {
                    continue;
                }
                let theta = 0.5 * (2.0 * a[p * n + q]).atan2(a[q * n + q] - a[p * n + p]);
                let (s, c) = theta.sin_cos();
                for k in 0..n {
                    let (x, y) = (a[k * n + p], a[k * n + q]);
                    (a[k * n + p], a[k * n + q]) = (c * x - s * y, s * x + c * y);
                }
                for k in 0..n {
                    let (x, y) = (a[p * n + k], a[q * n + k]);
                    (a[p * n + k], a[q * n + k]) = (c * x - s * y, s * x + c * y);
                }
                for k in 0..n {
                    let (x, y) = (vectors[p][k], vectors[q][k]);
                    (vectors[p][k], vectors[q][k]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
    }
    ((0..n).map(|i| a[i * n + i]).collect(), vectors)
}

/// Power of errors in bands of the spectrum of the normalised Laplacian `1 − D^-½ A D^-½`, by its eigenvectors: mean over
/// vertices and poses, cm², times neighbours. Every eigenvalue belongs to the bands as a polynomial of degree `moments − 1`
/// with Jackson's damping says, which is what the fast way sums without eigenvectors.
pub fn spectrum(
    faces: &[Face],
    truth: &[Vec<Vec3>],
    other: &[Vec<Vec3>],
    bands: usize,
    moments: usize,
) -> Vec<f64> {
    let vertices = truth[0].len();
    let near = neighbours(vertices, faces);
    let degree = |v: usize| near[v].len() as f64;
    let mut laplacian = vec![0.0; vertices * vertices];
    for (v, all) in near.iter().enumerate() {
        laplacian[v * vertices + v] = 1.0;
        for w in all {
            laplacian[v * vertices + w] = -1.0 / (degree(v) * degree(*w)).sqrt();
        }
    }
    let (values, vectors) = eigen(laplacian, vertices);
    // Power of every eigenvector.
    let mut power = vec![0.0; vertices];
    for (truth, other) in truth.iter().zip(other) {
        for (power, vector) in power.iter_mut().zip(&vectors) {
            let mut sum = DVec3::ZERO;
            for v in 0..vertices {
                if !near[v].is_empty() {
                    sum += (other[v].as_dvec3() - truth[v].as_dvec3()) * degree(v).sqrt() * vector[v];
                }
            }
            *power += sum.length_squared();
        }
    }
    let jackson = |m: usize| {
        let n = moments as f64 + 1.0;
        let turn = PI / n;
        ((n - m as f64) * (m as f64 * turn).cos() + (m as f64 * turn).sin() * turn.cos() / turn.sin()) / n
    };
    let belongs = |band: usize, value: f64| {
        // λ − 1 = cos θ: a band is between two angles.
        let border = |band: usize| (2.0 * band as f64 / bands as f64 - 1.0).clamp(-1.0, 1.0).acos();
        let (high, low) = (border(band), border(band + 1));
        let angle = (value - 1.0).clamp(-1.0, 1.0).acos();
        let mut sum = (high - low) / PI;
        for m in 1..moments {
            let of_band = ((m as f64 * high).sin() - (m as f64 * low).sin()) / (m as f64 * PI);
            sum += 2.0 * jackson(m) * of_band * (m as f64 * angle).cos();
        }
        sum
    };
    let share = 1.0 / (truth.len() * vertices) as f64;
    let of_band = |band: usize| {
        let sum: f64 = power.iter().zip(&values).map(|(p, value)| p * belongs(band, *value)).sum();
        (sum * share).max(0.0)
    };
    (0..bands).map(of_band).collect()
}

/// Pairs of vertices on the shores of openings: of one island, more than `edges` edges apart, nearer than `touch` cm at rest or
/// in a pose, and at rest or in another wider than `open` and than twice the least width.
pub fn openings(
    faces: &[Face],
    rest: &[Vec3],
    poses: &[Vec<Vec3>],
    [touch, open]: [f64; 2],
    edges: usize,
) -> Vec<(u32, u32)> {
    let near = neighbours(rest.len(), faces);
    let mut pairs = Vec::new();
    for a in 0..rest.len() {
        // Edges to every vertex that can be reached.
        let mut steps = vec![usize::MAX; rest.len()];
        steps[a] = 0;
        let mut queue = VecDeque::from([a]);
        while let Some(v) = queue.pop_front() {
            for w in &near[v] {
                if steps[*w] == usize::MAX {
                    steps[*w] = steps[v] + 1;
                    queue.push_back(*w);
                }
            }
        }
        for b in a + 1..rest.len() {
            if steps[b] == usize::MAX || steps[b] <= edges {
                continue;
            }
            let width = |places: &[Vec3]| (places[a].as_dvec3() - places[b].as_dvec3()).length();
            let mut widths = vec![width(rest)];
            widths.extend(poses.iter().map(|pose| width(pose)));
            let low = widths.iter().copied().fold(f64::INFINITY, f64::min);
            let high = widths.iter().copied().fold(0.0, f64::max);
            if low < touch && high > open && high > 2.0 * low {
                pairs.push((a as u32, b as u32));
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotations_find_what_is_known_of_a_path_of_three() {
        // Normalised Laplacian of a - b - c: eigenvalues 0, 1 and 2.
        let h = -1.0 / 2f64.sqrt();
        let (mut values, vectors) = eigen(vec![1.0, h, 0.0, h, 1.0, h, 0.0, h, 1.0], 3);
        for (value, vector) in values.iter().zip(&vectors) {
            let back = [vector[0] + h * vector[1], h * vector[0] + vector[1] + h * vector[2]];
            assert!(
                (back[0] - value * vector[0]).abs() < 1e-12 && (back[1] - value * vector[1]).abs() < 1e-12
            );
        }
        values.sort_by(f64::total_cmp);
        assert!(values.iter().zip([0.0, 1.0, 2.0]).all(|(a, b)| (a - b).abs() < 1e-12), "{values:?}");
    }

    #[test]
    fn numbers_that_can_be_worked_out_by_hand() {
        let line = |xs: &[f32]| xs.iter().map(|x| Vec3::X * *x).collect::<Vec<Vec3>>();
        let [mean, p95, max] = distances(&[line(&[0.0, 0.0, 0.0])], &[line(&[1.0, 2.0, 6.0])]);
        assert_eq!((mean, max), (3.0, 6.0));
        assert!((p95 - 5.6).abs() < 1e-12);
        let flat = vec![Vec3::ZERO, Vec3::X, Vec3::Y];
        let tilted = vec![Vec3::ZERO, Vec3::X, Vec3::new(0.0, 1.0, 1.0)];
        let angle = normal_angle(
            &[Face::triangle(0, 1, 2)],
            std::slice::from_ref(&flat),
            std::slice::from_ref(&tilted),
        );
        assert!((angle - 45.0).abs() < 1e-12);
        // One edge inside a group that jumps by one, two between groups that jump by one and by nothing.
        let moved = vec![Vec3::ZERO, Vec3::X + Vec3::Z, Vec3::Y];
        let found = seams(&[Face::triangle(0, 1, 2)], &[0, 0, 1], &[flat], &[moved]);
        assert_eq!(found, [0.5, 1.0, 0.5, 1.0]);
    }
}
