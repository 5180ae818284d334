//! Weighted pose-space deformation (Kurihara and Miyata 2004): every vertex blends the offsets that it
//! has in example poses, by how near its own joints are to theirs.

use super::rotational::relative_rotations;
use super::{Approximation, Baseline, Examples, Parameters, Skinned};
use crate::Frame;
use rayon::prelude::*;
use understudy_core::linear_algebra::Cholesky;
use understudy_core::{Affine3A, DVec3, Quat, Random, SkinWeights, Vec3};

/// A skinned mesh with offsets from examples.
///
/// Pose distance of vertex `k`: `d² = Σ_j w_kj (2 sin ½θ_j)²`, with the skin weights `w` spread one joint up the
/// hierarchy (a joint's rotation deforms the vertices of its parent too) and `θ_j` the angle between two
/// rotations of joint `j` in its parent's frame. Offsets live in the frame of the vertex's heaviest bone
/// and are interpolated by Gaussians of width `σ_k`, the mean distance between examples.
///
/// The paper has the angles themselves, which differ little while angles are small. But Gaussians of angles
/// between rotations need not be positive definite, and a system that is nearly singular throws vertices far
/// away between the examples; `2 sin ½θ` is a distance in a flat space (of rotation matrices), whose Gaussians
/// always are.
#[derive(Debug, Clone)]
pub struct PoseSpace {
    name: String,
    base: Skinned,
    parents: Vec<Option<usize>>,
    /// Rotations of the examples in their parents' frames, `[E][J]`.
    examples: Vec<Vec<Quat>>,
    vertices: Vec<PoseSpaceVertex>,
}

/// What is added to the diagonal: the least is tried first. Examples that look alike to a vertex but have other
/// offsets (a control that turns no joint moved it) want a blend that is far from exact: how far, other poses say.
const RIDGES: [f64; 4] = [1e-2, 0.1, 1.0, 10.0];
/// Poses, no examples, that choose a vertex's ridge, or no offsets at all where none helps.
const JUDGES: usize = 24;
/// Least width of a Gaussian, radians: joints that hardly turn in the examples must not tell them apart by rounding.
const LEAST_WIDTH: f64 = 0.02;

#[derive(Debug, Clone)]
struct PoseSpaceVertex {
    joints: Vec<(u16, f32)>,
    bone: usize,
    /// `1/σ²`.
    sharpness: f32,
    /// The largest offset of an example, cm: between examples none is larger.
    reach: f32,
    /// One coefficient vector an example.
    coefficients: Vec<Vec3>,
}

impl PoseSpaceVertex {
    /// Joints and bone, which follow from the skin.
    fn new(base: &Skinned, parents: &[Option<usize>], vertex: usize) -> Self {
        let heaviest = base.weights.row(vertex).max_by(|a, b| a.1.total_cmp(&b.1));
        Self {
            joints: spread_weights(&base.weights, parents, vertex),
            bone: heaviest.map_or(0, |(bone, _)| bone),
            sharpness: 0.0,
            reach: 0.0,
            coefficients: Vec::new(),
        }
    }

    /// The offset in the bone's frame; `squared`: `[E][J]` as [`squared_distances`] gives them.
    fn offset(&self, squared: &[Vec<f32>], coefficients: &[Vec3]) -> Vec3 {
        let blend = |(squared, coefficient): (&Vec<f32>, &Vec3)| {
            let distance: f32 = self.joints.iter().map(|(j, w)| w * squared[usize::from(*j)]).sum();
            *coefficient * (-distance * self.sharpness).exp()
        };
        squared.iter().zip(coefficients).map(blend).sum::<Vec3>().clamp_length_max(self.reach)
    }
}

/// `(2 sin ½θ)²` of every joint.
fn squared_distances(a: &[Quat], b: &[Quat]) -> Vec<f32> {
    // The vector part of the rotation between them is `sin ½θ` long; `1 − (a·b)²` would lose the digits of small angles.
    a.iter().zip(b).map(|(a, b)| 4.0 * (a.inverse() * *b).xyz().length_squared()).collect()
}

/// A pose as fitting needs it: its bones, where they and the skin take each vertex, and its distances to the
/// examples.
struct Seen<'a> {
    bones: &'a [Affine3A],
    truth: &'a [Vec3],
    skinned: Vec<Vec3>,
    squared: Vec<Vec<f32>>,
}

impl Seen<'_> {
    /// What the skin leaves of a vertex, in the bone's frame.
    fn miss(&self, vertex: usize, bone: usize) -> Vec3 {
        self.bones[bone].inverse().transform_vector3(self.truth[vertex] - self.skinned[vertex])
    }
}

impl PoseSpace {
    /// `count` examples drawn from the poses with a fixed seed, on top of a fitted skin. A quarter of the poses
    /// at least is left to choose how exactly the examples are kept.
    pub fn fit(name: &str, examples: &Examples<'_>, base: &Skinned, count: usize) -> Self {
        let poses = examples.poses;
        let parents = parents_of(examples);
        let mut random = Random::new(0x905e);
        let mut order: Vec<usize> = poses.spread(Baseline::BONE_POSES);
        let count = example_count(count, order.len());
        for i in 0..order.len().saturating_sub(1) {
            let other = i + random.below(order.len() - i);
            order.swap(i, other);
        }
        let (chosen, others) = order.split_at(count);
        let rotations: Vec<Vec<Quat>> =
            chosen.iter().map(|pose| relative_rotations(poses.bones_of(*pose), &parents)).collect();
        let see = |pose: &usize| {
            let mut skinned = vec![Vec3::ZERO; examples.rest.len()];
            let bones = poses.bones_of(*pose);
            base.skin(bones, &mut skinned);
            let now = relative_rotations(bones, &parents);
            let squared = rotations.iter().map(|example| squared_distances(&now, example)).collect();
            Seen { bones, truth: poses.vertices_of(*pose), skinned, squared }
        };
        let seen: Vec<Seen<'_>> = chosen.iter().map(see).collect();
        let judges: Vec<Seen<'_>> = others.iter().take(JUDGES).map(see).collect();
        let fit = |vertex: usize| {
            let mut own = PoseSpaceVertex::new(base, &parents, vertex);
            let mut kernel = vec![0.0f64; count * count];
            let mut sum = 0.0;
            for i in 0..count {
                for j in 0..i {
                    let joints = own.joints.iter();
                    let squared: f32 = joints.map(|(k, w)| w * seen[i].squared[j][usize::from(*k)]).sum();
                    kernel[i * count + j] = f64::from(squared);
                    sum += f64::from(squared).sqrt();
                }
            }
            let mean = sum / (count * count.saturating_sub(1) / 2).max(1) as f64;
            let sharpness = mean.max(LEAST_WIDTH).powi(-2);
            own.sharpness = sharpness as f32;
            kernel.iter_mut().for_each(|k| *k = (-*k * sharpness).exp());
            let offsets: Vec<Vec3> = seen.iter().map(|pose| pose.miss(vertex, own.bone)).collect();
            own.reach = offsets.iter().map(|offset| offset.length()).fold(0.0, f32::max);
            let judged = |coefficients: &[Vec3]| -> f64 {
                let left = |pose: &Seen<'_>| {
                    let blend = own.offset(&pose.squared, coefficients);
                    f64::from(pose.miss(vertex, own.bone).distance_squared(blend))
                };
                judges.iter().map(left).sum()
            };
            let nothing = vec![Vec3::ZERO; count];
            let mut best = (judged(&nothing), nothing);
            for ridge in RIDGES {
                let Some(coefficients) = solve_three(&kernel, count, &offsets, ridge) else { continue };
                let left = judged(&coefficients);
                if left < best.0 || judges.is_empty() {
                    best = (left, coefficients);
                }
            }
            own.coefficients = best.1;
            own
        };
        let vertices = (0..examples.rest.len()).into_par_iter().map(fit).collect();
        Self { name: name.into(), base: base.clone(), parents, examples: rotations, vertices }
    }

    /// A fit from what [`Approximation::parameters`] gave; `None` where it does not belong to this mesh and
    /// skeleton.
    pub fn restore(name: &str, examples: &Examples<'_>, parameters: &Parameters) -> Option<Self> {
        let (count, joints) = (examples.rest.len(), examples.inverse_rest.len());
        let [offsets, bones, number] = &parameters.integers[..] else { return None };
        let &[number] = &number[..] else { return None };
        let [weights, rotations, sharpness, reach, coefficients] = &parameters.floats[..] else {
            return None;
        };
        let skin =
            Parameters { integers: vec![offsets.clone(), bones.clone()], floats: vec![weights.clone()] };
        let base = Skinned::restore("lbs4", examples, &skin)?;
        let number = number as usize;
        let fits = rotations.len() == number.checked_mul(joints)?.checked_mul(4)?
            && sharpness.len() == count
            && reach.len() == count
            && reach.iter().all(|reach| *reach >= 0.0)
            && coefficients.len() == number.checked_mul(count)?.checked_mul(3)?;
        if !fits || number == 0 {
            return None;
        }
        let parents = parents_of(examples);
        let vertex = |(vertex, sharpness): (usize, &f32)| PoseSpaceVertex {
            sharpness: *sharpness,
            reach: reach[vertex],
            coefficients: points(&coefficients[vertex * number * 3..(vertex + 1) * number * 3]),
            ..PoseSpaceVertex::new(&base, &parents, vertex)
        };
        let vertices = sharpness.iter().enumerate().map(vertex).collect();
        let quaternion = |q: &[f32]| Quat::from_xyzw(q[0], q[1], q[2], q[3]);
        let examples =
            rotations.chunks_exact(joints * 4).map(|e| e.chunks_exact(4).map(quaternion).collect()).collect();
        Some(Self { name: name.into(), base, parents, examples, vertices })
    }
}

/// Examples among so many poses: three quarters of them at most.
pub(super) fn example_count(wanted: usize, poses: usize) -> usize {
    wanted.min(poses * 3 / 4).max(1).min(poses)
}

fn points(numbers: &[f32]) -> Vec<Vec3> {
    numbers.chunks_exact(3).map(|p| Vec3::new(p[0], p[1], p[2])).collect()
}

fn parents_of(examples: &Examples<'_>) -> Vec<Option<usize>> {
    examples.poses.skeleton().bones().iter().map(|bone| bone.parent).collect()
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

/// Solves with `K + ridge · 1` for three right-hand sides; `K`: the lower triangle by rows, positive semidefinite.
/// `None` where rounding leaves nothing to divide by.
fn solve_three(kernel: &[f64], n: usize, right: &[Vec3], ridge: f64) -> Option<Vec<Vec3>> {
    let mut matrix = kernel.to_vec();
    (0..n).for_each(|i| matrix[i * n + i] += ridge);
    let mut x: Vec<f64> = right.iter().flat_map(|r| r.as_dvec3().to_array()).collect();
    Cholesky::new(&matrix, n)?.solve(&mut x, 3);
    Some(x.chunks_exact(3).map(|x| DVec3::from_slice(x).as_vec3()).collect())
}

impl Approximation for PoseSpace {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> usize {
        let own: usize =
            self.vertices.iter().map(|v| v.joints.len() * 6 + v.coefficients.len() * 12 + 12).sum();
        own + self.base.bytes() + self.examples.iter().map(|e| e.len() * 16).sum::<usize>()
    }

    fn evaluate(&self, frame: Frame<'_>, out: &mut [Vec3]) {
        let bones = frame.bones;
        self.base.skin(bones, out);
        let now = relative_rotations(bones, &self.parents);
        // Distances to every example once a joint, not once a vertex.
        let squared: Vec<Vec<f32>> =
            self.examples.iter().map(|example| squared_distances(&now, example)).collect();
        for (place, vertex) in out.iter_mut().zip(&self.vertices) {
            *place += bones[vertex.bone].transform_vector3(vertex.offset(&squared, &vertex.coefficients));
        }
    }

    fn parameters(&self) -> Parameters {
        let mut parameters = self.base.parameters();
        parameters.integers.push(vec![self.examples.len() as u32]);
        let rotations = self.examples.iter().flatten().flat_map(|q| q.to_array()).collect();
        let sharpness = self.vertices.iter().map(|vertex| vertex.sharpness).collect();
        let reach = self.vertices.iter().map(|vertex| vertex.reach).collect();
        let coefficients =
            self.vertices.iter().flat_map(|v| v.coefficients.iter().flat_map(|c| c.to_array()));
        parameters.floats.extend([rotations, sharpness, reach, coefficients.collect()]);
        parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recording;
    use understudy_core::{Bone, ControlSpecs, Face, JointPose, JointTransform, Mesh, MeshParts, Skeleton};

    /// A chain of four bones, one vertex a bone, and a bump at each that follows its joint's angle and some noise
    /// that no joint explains. Joints turn up to 170°, but for the last, which trembles until pose 160 and then
    /// turns by up to a degree.
    fn turning_chain(count: usize) -> (Mesh, Skeleton, Vec<Affine3A>, Vec<Vec3>) {
        let bone = |index: usize| Bone {
            name: format!("bone {index}"),
            parent: index.checked_sub(1),
            rest: JointTransform::from_translation(Vec3::new(0.0, 10.0, 0.0)),
        };
        let skeleton = Skeleton::new((0..4).map(bone).collect()).expect("a chain");
        let rest: Vec<Vec3> = (0..4).map(|k| Vec3::new(2.0, 10.0 * k as f32 + 14.0, 1.0)).collect();
        let faces = vec![Face::triangle(0, 1, 2), Face::triangle(1, 2, 3)];
        let mesh = MeshParts { positions: rest.clone(), faces, ..MeshParts::default() }.build();
        let mut random = Random::new(5);
        let (mut bones, mut vertices) = (Vec::new(), Vec::new());
        for pose in 0..count {
            let mut joints = JointPose(skeleton.bones().iter().map(|bone| bone.rest).collect());
            let mut angles = Vec::new();
            for (bone, joint) in joints.0.iter_mut().enumerate() {
                let axis = Vec3::from_array([0; 3].map(|_| random.uniform(-1.0, 1.0))).normalize_or(Vec3::X);
                let angle = match (bone, pose < 160) {
                    (3, true) => random.uniform(0.0, 1e-4),
                    (3, false) => random.uniform(0.0, 0.02),
                    _ => random.uniform(0.0, 3.0),
                };
                joint.rotation = Quat::from_axis_angle(axis, angle);
                angles.push(angle);
            }
            let mut global = understudy_core::GlobalPose::default();
            skeleton.forward(&joints, &mut global).expect("a pose of the chain");
            for (k, v) in rest.iter().enumerate() {
                let bump = Vec3::X * (angles[k].sin() + random.uniform(-0.5, 0.5));
                let local = skeleton.rest_global()[k].inverse().transform_point3(*v);
                vertices.push(global.0[k].transform_point3(local + bump));
            }
            bones.extend(global.0);
        }
        (mesh.expect("two triangles"), skeleton, bones, vertices)
    }

    #[test]
    fn no_number_of_examples_throws_a_vertex_away() {
        let (mesh, skeleton, bones, vertices) = turning_chain(260);
        let split = |from: usize, to: usize| Recording {
            mesh: mesh.clone(),
            skeleton: Some(skeleton.clone()),
            bones: bones[from * 4..to * 4].to_vec(),
            controls: Vec::new(),
            specs: ControlSpecs::default(),
            vertices: vertices[from * 4..to * 4].to_vec(),
        };
        let (train, test) = (split(0, 160), split(160, 260));
        let inverse_rest: Vec<Affine3A> = skeleton.rest_global().iter().map(Affine3A::inverse).collect();
        let examples =
            Examples { poses: &train, rest: mesh.positions(), inverse_rest: &inverse_rest, weights: None };
        let base = Skinned::rigid(&examples);
        let figures = |method: &dyn Approximation| {
            let mut out = vec![Vec3::ZERO; 4];
            let (mut sum, mut worst) = (0.0f32, 0.0f32);
            for pose in 0..test.len() {
                method.evaluate(test.frame(pose), &mut out);
                for (a, b) in out.iter().zip(test.vertices_of(pose)) {
                    sum += a.distance(*b);
                    worst = worst.max(a.distance(*b));
                }
            }
            (sum / (4 * test.len()) as f32, worst)
        };
        let (rigid_mean, rigid_worst) = figures(&base);
        for count in [1, 10, 25, 50, 75, 100, 400] {
            let fitted = PoseSpace::fit("wpsd", &examples, &base, count);
            let (mean, worst) = figures(&fitted);
            assert!(worst < 2.0 * rigid_worst, "{count} examples: {worst} cm, skinning {rigid_worst} cm");
            assert!(mean < 1.1 * rigid_mean, "{count} examples: {mean} cm, skinning {rigid_mean} cm");
            let again =
                PoseSpace::restore("wpsd", &examples, &fitted.parameters()).expect("its own parameters");
            assert_eq!(figures(&again), (mean, worst));
        }
    }
}
