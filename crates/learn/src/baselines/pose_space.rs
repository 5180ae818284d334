//! Weighted pose-space deformation (Kurihara and Miyata 2004): every vertex blends the offsets that it
//! has in example poses, by how near its own joints are to theirs.

use super::{Approximation, Examples, Skinned};
use rayon::prelude::*;
use understudy_core::{Affine3A, Quat, Random, SkinWeights, Vec3, skeleton::rotation_of};

/// A skinned mesh with offsets from examples.
///
/// Pose distance of vertex `k`: `d² = Σ_j w_kj θ_j²`, with the skin weights `w` spread one joint up the
/// hierarchy (a joint's rotation deforms the vertices of its parent too) and `θ_j` the angle between two
/// rotations of joint `j` in its parent's frame. Offsets live in the frame of the vertex's heaviest bone
/// and are interpolated by Gaussians of width `σ_k`, the mean distance between examples.
#[derive(Debug, Clone)]
pub struct PoseSpace {
    name: String,
    base: Skinned,
    parents: Vec<Option<usize>>,
    /// Rotations of the examples in their parents' frames, `[E][J]`.
    examples: Vec<Vec<Quat>>,
    vertices: Vec<PoseSpaceVertex>,
}

/// Diagonals that are tried, on so many poses that are no examples, for every so manieth vertex.
const RAISES: [f64; 5] = [1e-3, 1e-2, 0.1, 1.0, 10.0];
const JUDGES: usize = 24;
const STRIDE: usize = 16;

#[derive(Debug, Clone)]
struct PoseSpaceVertex {
    joints: Vec<(u16, f32)>,
    bone: usize,
    /// `1/σ²`.
    sharpness: f32,
    /// One coefficient vector an example.
    coefficients: Vec<Vec3>,
}

fn relative_rotations(bones: &[Affine3A], parents: &[Option<usize>]) -> Vec<Quat> {
    let relative = |bone: usize| match parents[bone] {
        Some(parent) => rotation_of(&bones[parent]).inverse() * rotation_of(&bones[bone]),
        None => Quat::IDENTITY,
    };
    (0..bones.len()).map(relative).collect()
}

fn squared_distance(joints: &[(u16, f32)], a: &[Quat], b: &[Quat]) -> f32 {
    let term = |(joint, weight): &(u16, f32)| {
        let cosine = a[usize::from(*joint)].dot(b[usize::from(*joint)]).abs().min(1.0);
        weight * (2.0 * cosine.acos()).powi(2)
    };
    joints.iter().map(term).sum()
}

impl PoseSpace {
    /// `count` examples drawn from the poses with a fixed seed, on top of a fitted skin.
    pub fn fit(name: &str, examples: &Examples<'_>, base: &Skinned, count: usize) -> Self {
        let poses = examples.poses;
        let parents: Vec<Option<usize>> = poses.skeleton.bones().iter().map(|b| b.parent).collect();
        let mut random = Random::new(0x905e);
        let mut order: Vec<usize> = (0..poses.len()).collect();
        let count = count.min(order.len());
        for i in 0..count {
            let other = i + random.below(order.len() - i);
            order.swap(i, other);
        }
        let chosen = &order[..count];
        let rotations: Vec<Vec<Quat>> =
            chosen.iter().map(|pose| relative_rotations(poses.bones_of(*pose), &parents)).collect();
        let skinned: Vec<Vec<Vec3>> = chosen
            .iter()
            .map(|pose| {
                let mut out = vec![Vec3::ZERO; examples.rest.len()];
                base.evaluate(poses.bones_of(*pose), &mut out);
                out
            })
            .collect();
        let fit = |vertex: usize, raise: f64| {
            let joints = spread_weights(&base.weights, &parents, vertex);
            let heaviest = base.weights.row(vertex).max_by(|a, b| a.1.total_cmp(&b.1));
            let bone = heaviest.map_or(0, |(bone, _)| bone);
            let mut kernel = vec![0.0f64; count * count];
            let mut sum = 0.0;
            for i in 0..count {
                for j in 0..i {
                    let squared = f64::from(squared_distance(&joints, &rotations[i], &rotations[j]));
                    kernel[i * count + j] = squared;
                    kernel[j * count + i] = squared;
                    sum += squared.sqrt();
                }
            }
            let mean = sum / (count * count.saturating_sub(1) / 2).max(1) as f64;
            let sharpness = 1.0 / mean.powi(2).max(1e-6);
            kernel.iter_mut().for_each(|k| *k = (-*k * sharpness).exp());
            let offset = |(pose, skin): (&usize, &Vec<Vec3>)| {
                let miss = poses.vertices_of(*pose)[vertex] - skin[vertex];
                poses.bones_of(*pose)[bone].inverse().transform_vector3(miss)
            };
            let offsets: Vec<Vec3> = chosen.iter().zip(&skinned).map(offset).collect();
            let coefficients = solve_three(&kernel, count, &offsets, raise);
            PoseSpaceVertex { joints, bone, sharpness: sharpness as f32, coefficients }
        };
        // Examples that look alike to a vertex but have other offsets (a control that turns no joint moved
        // it) want a blend that is far from exact: how far, other poses say.
        let judges: Vec<usize> = order[count..].iter().copied().take(JUDGES).collect();
        let some: Vec<usize> = (0..examples.rest.len()).step_by(STRIDE).collect();
        let miss = |raise: f64| -> f64 {
            let one = |vertex: &usize| {
                let own = fit(*vertex, raise);
                let judge = |pose: &usize| {
                    let bones = poses.bones_of(*pose);
                    let now = relative_rotations(bones, &parents);
                    let mut skinned = Vec3::ZERO;
                    for (bone, weight) in base.weights.row(*vertex) {
                        let carried = bones[bone] * base.inverse_rest[bone];
                        skinned += carried.transform_point3(examples.rest[*vertex]) * weight;
                    }
                    let squared = rotations.iter().map(|e| squared_distance(&own.joints, &now, e));
                    let blend: Vec3 = squared
                        .zip(&own.coefficients)
                        .map(|(squared, c)| *c * (-squared * own.sharpness).exp())
                        .sum();
                    let place = skinned + bones[own.bone].transform_vector3(blend);
                    f64::from(place.distance(poses.vertices_of(*pose)[*vertex]))
                };
                judges.iter().map(judge).sum::<f64>()
            };
            // Collected in order, so that the sum does not depend on threads.
            some.par_iter().map(one).collect::<Vec<f64>>().iter().sum()
        };
        let misses = RAISES.map(|raise| (miss(raise), raise));
        let best = misses.iter().min_by(|a, b| a.0.total_cmp(&b.0)).map_or(RAISES[0], |(_, raise)| *raise);
        let vertices = (0..examples.rest.len()).into_par_iter().map(|vertex| fit(vertex, best)).collect();
        Self { name: name.into(), base: base.clone(), parents, examples: rotations, vertices }
    }
}

/// Half of every weight goes to the joints that hang on the bone, shared evenly: a knee deforms the thigh.
fn spread_weights(weights: &SkinWeights, parents: &[Option<usize>], vertex: usize) -> Vec<(u16, f32)> {
    let mut spread = std::collections::BTreeMap::new();
    for (bone, weight) in weights.row(vertex) {
        let children: Vec<usize> = (0..parents.len()).filter(|child| parents[*child] == Some(bone)).collect();
        let own = if children.is_empty() { weight } else { weight * 0.5 };
        *spread.entry(bone as u16).or_insert(0.0) += own;
        for child in &children {
            *spread.entry(*child as u16).or_insert(0.0) += weight * 0.5 / children.len() as f32;
        }
    }
    spread.into_iter().collect()
}

/// Cholesky solve with three right-hand sides. A Gaussian of angles between rotations need not be positive
/// definite, and examples may look alike to a vertex: the diagonal is raised until the factor exists.
fn solve_three(kernel: &[f64], n: usize, right: &[Vec3], mut raise: f64) -> Vec<Vec3> {
    let factor = loop {
        match factor(kernel, n, raise) {
            Some(factor) => break factor,
            None => raise *= 3.0,
        }
    };
    let mut x: Vec<_> = right.iter().map(|r| r.as_dvec3()).collect();
    for i in 0..n {
        for k in 0..i {
            x[i] = x[i] - x[k] * factor[i * n + k];
        }
        x[i] /= factor[i * n + i];
    }
    for i in (0..n).rev() {
        for k in i + 1..n {
            x[i] = x[i] - x[k] * factor[k * n + i];
        }
        x[i] /= factor[i * n + i];
    }
    x.into_iter().map(|x| x.as_vec3()).collect()
}

/// The lower factor of `kernel + raise · 1`; `None` where a pivot falls below half of what was added.
/// Entries of the kernel are at most one, so `raise = n` always succeeds.
fn factor(kernel: &[f64], n: usize, raise: f64) -> Option<Vec<f64>> {
    let mut matrix = kernel.to_vec();
    (0..n).for_each(|i| matrix[i * n + i] += raise);
    for j in 0..n {
        for k in 0..j {
            let factor = matrix[j * n + k];
            for i in j..n {
                matrix[i * n + j] -= matrix[i * n + k] * factor;
            }
        }
        let pivot = matrix[j * n + j];
        if pivot < 0.5 * raise {
            return None;
        }
        let root = pivot.sqrt();
        for i in j..n {
            matrix[i * n + j] /= root;
        }
    }
    Some(matrix)
}

impl Approximation for PoseSpace {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> usize {
        let own: usize =
            self.vertices.iter().map(|v| v.joints.len() * 6 + v.coefficients.len() * 12 + 8).sum();
        own + self.base.bytes() + self.examples.iter().map(|e| e.len() * 16).sum::<usize>()
    }

    fn evaluate(&self, bones: &[Affine3A], out: &mut [Vec3]) {
        self.base.evaluate(bones, out);
        let now = relative_rotations(bones, &self.parents);
        // Angles to every example once a joint, not once a vertex.
        let angles: Vec<Vec<f32>> = self
            .examples
            .iter()
            .map(|example| {
                let angle = |(a, b): (&Quat, &Quat)| (2.0 * a.dot(*b).abs().min(1.0).acos()).powi(2);
                now.iter().zip(example).map(angle).collect()
            })
            .collect();
        for (place, vertex) in out.iter_mut().zip(&self.vertices) {
            let mut offset = Vec3::ZERO;
            for (angles, coefficient) in angles.iter().zip(&vertex.coefficients) {
                let squared: f32 = vertex.joints.iter().map(|(j, w)| w * angles[usize::from(*j)]).sum();
                offset += *coefficient * (-squared * vertex.sharpness).exp();
            }
            *place += bones[vertex.bone].transform_vector3(offset);
        }
    }
}
