//! Rotational regression (Wang, Pulli and Popović 2007): every triangle's deformation gradient from the
//! rotations of a few joints, then the mesh that has these gradients best.
//!
//! Per triangle `D = Q_b exp(ω̂) Ŝ`: `Q_b` is the rotation of its bone, `ω` (axis-angle) and `S` (scale and
//! shear) are linear in the axis-angle rotations of the `K` nearest joints. Positions solve
//! `Σ_k A_k ‖∇x − D_k‖² → min` with a few rigidly skinned vertices held: a Poisson system, factored once.

use super::{Approximation, Baseline, Examples, Parameters, Skinned};
use crate::Frame;
use faer::linalg::solvers::SolveCore;
use faer::sparse::linalg::solvers::Llt;
use faer::sparse::{SparseColMat, Triplet};
use faer::{Conj, Mat, Side};
use rayon::prelude::*;
use understudy_core::laplacian::cotangent_laplacian;
use understudy_core::linear_algebra::Cholesky;
use understudy_core::rotation::svd3;
use understudy_core::{Affine3A, Mesh, Quat, Skeleton, Vec3, skeleton::rotation_of};
use understudy_core::{DMat3, DQuat, DVec3, metrics};

/// Numbers predicted a triangle: three of the rotation, nine of scale and shear.
const TARGETS: usize = 12;

/// A fitted model.
pub struct RotationalRegression {
    name: String,
    rigid: Skinned,
    parents: Vec<Option<usize>>,
    rest_rotations: Vec<Quat>,
    inverse_rest_rotations: Vec<Quat>,
    /// Joints that the triangles of a bone listen to, `[J][K]`.
    joints: Vec<Vec<usize>>,
    triangles: Vec<Triangle>,
    system: Llt<usize, f64>,
    /// Place of every vertex in the system; `None` for a held one.
    place: Vec<Option<usize>>,
    /// Couplings of free to held vertices: `(free place, held vertex, value)`.
    couplings: Vec<(usize, u32, f64)>,
    held: Vec<u32>,
}

struct Triangle {
    corners: [u32; 3],
    bone: usize,
    /// `A ∇φ` of each corner.
    gradients: [DVec3; 3],
    /// `[features × TARGETS]`.
    coefficients: Vec<f32>,
}

impl RotationalRegression {
    /// Fits to the poses with `nearest` joints a triangle.
    pub fn fit(name: &str, examples: &Examples<'_>, rigid: &Skinned, nearest: usize) -> Self {
        let poses = examples.poses;
        let (mesh, skeleton) = (&poses.mesh, poses.skeleton());
        let parents: Vec<Option<usize>> = skeleton.bones().iter().map(|b| b.parent).collect();
        let rest_rotations = relative_rotations(skeleton.rest_global(), &parents);
        let joints = joints_of_bones(skeleton, nearest);
        let owner = owners(rigid);
        let chosen = poses.spread(Baseline::BONE_POSES);
        let angles: Vec<Vec<Vec3>> =
            chosen.iter().map(|p| joint_angles(poses.bones_of(*p), &parents, &rest_rotations)).collect();
        let inverse_rest_rotations: Vec<Quat> = examples.inverse_rest.iter().map(rotation_of).collect();
        let factors: Vec<Factor> = joints.iter().map(|joints| Factor::new(joints, &angles)).collect();
        let rest = mesh.positions();
        let coefficients: Vec<Vec<f32>> = mesh
            .triangles()
            .into_par_iter()
            .map(|corners| {
                let bone = owner[corners[0] as usize];
                let rest_frame = frame(corners.map(|c| rest[c as usize].as_dvec3()));
                let inverse = rest_frame.inverse();
                let usable = inverse.is_finite();
                let mut targets = vec![0.0f64; chosen.len() * TARGETS];
                for (row, pose) in targets.chunks_exact_mut(TARGETS).zip(&chosen) {
                    let vertices = poses.vertices_of(*pose);
                    let now = frame(corners.map(|c| vertices[c as usize].as_dvec3()));
                    let gradient = if usable { now * inverse } else { DMat3::IDENTITY };
                    let bone_rotation =
                        rotation_of(&poses.bones_of(*pose)[bone]) * inverse_rest_rotations[bone];
                    encode(gradient, bone_rotation, row);
                }
                factors[bone].regress(&targets)
            })
            .collect();
        let held = held_vertices(mesh, examples, rigid, &owner);
        Self::assemble(name, examples, rigid, nearest, coefficients, &held)
    }

    /// A fit from what [`Approximation::parameters`] gave; `None` where it is of another mesh or skeleton.
    pub fn restore(
        name: &str,
        examples: &Examples<'_>,
        nearest: usize,
        parameters: &Parameters,
    ) -> Option<Self> {
        let [offsets, bones, held_vertices] = &parameters.integers[..] else { return None };
        let [weights, coefficients] = &parameters.floats[..] else { return None };
        let skin =
            Parameters { integers: vec![offsets.clone(), bones.clone()], floats: vec![weights.clone()] };
        let rigid = Skinned::restore("rigid", examples, &skin)?;
        let (mesh, owner) = (&examples.poses.mesh, owners(&rigid));
        let joints = joints_of_bones(examples.poses.skeleton(), nearest);
        let mut held = vec![false; mesh.vertex_count()];
        for vertex in held_vertices {
            *held.get_mut(*vertex as usize)? = true;
        }
        let mut rest = &coefficients[..];
        let mut rows = Vec::new();
        for corners in mesh.triangles() {
            let (own, others) =
                rest.split_at_checked((3 * joints[owner[corners[0] as usize]].len() + 1) * TARGETS)?;
            rows.push(own.to_vec());
            rest = others;
        }
        rest.is_empty().then(|| Self::assemble(name, examples, &rigid, nearest, rows, &held))
    }

    /// What follows from mesh and skeleton, around what was fitted.
    fn assemble(
        name: &str,
        examples: &Examples<'_>,
        rigid: &Skinned,
        nearest: usize,
        coefficients: Vec<Vec<f32>>,
        held: &[bool],
    ) -> Self {
        let (mesh, skeleton) = (&examples.poses.mesh, examples.poses.skeleton());
        let parents: Vec<Option<usize>> = skeleton.bones().iter().map(|b| b.parent).collect();
        let rest_rotations = relative_rotations(skeleton.rest_global(), &parents);
        let (owner, rest) = (owners(rigid), mesh.positions());
        let triangle = |(corners, coefficients): ([u32; 3], Vec<f32>)| {
            let gradients = area_gradients(rest, corners);
            Triangle { corners, bone: owner[corners[0] as usize], gradients, coefficients }
        };
        let triangles = mesh.triangles().into_iter().zip(coefficients).map(triangle).collect();
        let (system, place, couplings) = poisson_system(mesh, held);
        Self {
            name: name.into(),
            rigid: rigid.clone(),
            parents,
            rest_rotations,
            inverse_rest_rotations: examples.inverse_rest.iter().map(rotation_of).collect(),
            joints: joints_of_bones(skeleton, nearest),
            triangles,
            system,
            place,
            couplings,
            held: (0..held.len() as u32).filter(|vertex| held[*vertex as usize]).collect(),
        }
    }
}

fn joints_of_bones(skeleton: &Skeleton, nearest: usize) -> Vec<Vec<usize>> {
    (0..skeleton.len()).map(|bone| nearest_joints(skeleton, bone, nearest)).collect()
}

/// The single bone of every vertex.
fn owners(rigid: &Skinned) -> Vec<usize> {
    let bone = |vertex: usize| rigid.weights.row(vertex).next().map_or(0, |(bone, _)| bone);
    (0..rigid.rest.len()).map(bone).collect()
}

/// The two edges and a normal of matching length.
fn frame([a, b, c]: [DVec3; 3]) -> DMat3 {
    let normal = (b - a).cross(c - a);
    DMat3::from_cols(b - a, c - a, normal / normal.length().sqrt().max(1e-12))
}

/// `A ∇φ` of each corner of a triangle: half the opposite edge, turned into the plane towards the corner.
fn area_gradients(rest: &[Vec3], corners: [u32; 3]) -> [DVec3; 3] {
    let [a, b, c] = corners.map(|v| rest[v as usize].as_dvec3());
    let normal = (b - a).cross(c - a).normalize_or_zero();
    [normal.cross(c - b) * 0.5, normal.cross(a - c) * 0.5, normal.cross(b - a) * 0.5]
}

/// Rotations of the bones in their parents' frames.
pub(super) fn relative_rotations(bones: &[Affine3A], parents: &[Option<usize>]) -> Vec<Quat> {
    let relative = |bone: usize| match parents[bone] {
        Some(parent) => rotation_of(&bones[parent]).inverse() * rotation_of(&bones[bone]),
        None => Quat::IDENTITY,
    };
    (0..bones.len()).map(relative).collect()
}

/// Axis-angle rotation of every joint away from the rest pose, in its parent's frame.
fn joint_angles(bones: &[Affine3A], parents: &[Option<usize>], rest: &[Quat]) -> Vec<Vec3> {
    let now = relative_rotations(bones, parents);
    let angle = |(now, rest): (&Quat, &Quat)| {
        let moved = rest.inverse() * *now;
        (if moved.w < 0.0 { -moved } else { moved }).to_scaled_axis()
    };
    now.iter().zip(rest).map(angle).collect()
}

/// The bone itself, then its neighbours by steps in the tree and by distance.
fn nearest_joints(skeleton: &Skeleton, bone: usize, count: usize) -> Vec<usize> {
    let bones = skeleton.bones();
    let mut steps = vec![usize::MAX; bones.len()];
    steps[bone] = 0;
    for _ in 0..bones.len() {
        let mut changed = false;
        for (child, data) in bones.iter().enumerate() {
            let Some(parent) = data.parent else { continue };
            for (a, b) in [(child, parent), (parent, child)] {
                if steps[a] != usize::MAX && steps[b] > steps[a] + 1 {
                    steps[b] = steps[a] + 1;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let at = |b: usize| skeleton.rest_global()[b].translation;
    let mut order: Vec<usize> = (0..bones.len()).filter(|b| bones[*b].parent.is_some()).collect();
    order.sort_by(|a, b| {
        let far = |x: usize| at(x).distance(at(bone));
        steps[*a].cmp(&steps[*b]).then(far(*a).total_cmp(&far(*b)))
    });
    order.truncate(count);
    order
}

/// `D = Q_b exp(ω) S` into twelve numbers.
fn encode(gradient: DMat3, bone: Quat, out: &mut [f64]) {
    let decomposition = svd3(gradient);
    let sign = if (decomposition.u * decomposition.v.transpose()).determinant() < 0.0 { -1.0 } else { 1.0 };
    let fix = DMat3::from_diagonal(DVec3::new(1.0, 1.0, sign));
    let rotation = decomposition.u * fix * decomposition.v.transpose();
    let stretch = rotation.transpose() * gradient;
    let relative = bone.as_dquat().inverse() * DQuat::from_mat3(&rotation);
    let axis = (if relative.w < 0.0 { -relative } else { relative }).normalize().to_scaled_axis();
    out[..3].copy_from_slice(&axis.to_array());
    out[3..].copy_from_slice(&stretch.to_cols_array());
}

fn decode(numbers: &[f64; TARGETS], bone: Quat) -> DMat3 {
    let turn = DQuat::from_scaled_axis(DVec3::new(numbers[0], numbers[1], numbers[2]));
    let mut columns = [0.0; 9];
    columns.copy_from_slice(&numbers[3..]);
    DMat3::from_quat(bone.as_dquat() * turn) * DMat3::from_cols_array(&columns)
}

/// The normal equations of one bone's features, factored.
struct Factor {
    features: usize,
    /// `[poses × features]`.
    rows: Vec<f64>,
    factor: Cholesky,
}

impl Factor {
    fn new(joints: &[usize], angles: &[Vec<Vec3>]) -> Self {
        let features = 3 * joints.len() + 1;
        let row = |pose: &Vec<Vec3>| {
            let numbers = joints.iter().flat_map(|j| pose[*j].as_dvec3().to_array());
            std::iter::once(1.0).chain(numbers).collect::<Vec<f64>>()
        };
        let rows: Vec<f64> = angles.iter().flat_map(row).collect();
        let mut gram = vec![0.0; features * features];
        for row in rows.chunks_exact(features) {
            for i in 0..features {
                for j in 0..=i {
                    gram[i * features + j] += row[i] * row[j];
                }
            }
        }
        // Joints that never turn have empty columns: a trace of ridge keeps them at zero.
        (0..features).for_each(|i| gram[i * features + i] += 1e-4 * angles.len() as f64);
        let factor = Cholesky::new(&gram, features).expect("a Gram matrix with a ridge is positive definite");
        Self { features, rows, factor }
    }

    /// Least squares of `targets` `[poses × TARGETS]`; `[features × TARGETS]`.
    fn regress(&self, targets: &[f64]) -> Vec<f32> {
        let mut x = vec![0.0f64; self.features * TARGETS];
        for (row, target) in self.rows.chunks_exact(self.features).zip(targets.chunks_exact(TARGETS)) {
            for (sum, feature) in x.chunks_exact_mut(TARGETS).zip(row) {
                sum.iter_mut().zip(target).for_each(|(s, t)| *s += feature * t);
            }
        }
        self.factor.solve(&mut x, TARGETS);
        x.iter().map(|a| *a as f32).collect()
    }
}

/// Per bone and island the three vertices that rigid skinning explains best.
fn held_vertices(mesh: &Mesh, examples: &Examples<'_>, rigid: &Skinned, owner: &[usize]) -> Vec<bool> {
    let poses = examples.poses;
    let mut cost = vec![0.0f32; mesh.vertex_count()];
    let mut skinned = vec![Vec3::ZERO; mesh.vertex_count()];
    for pose in poses.spread(60) {
        rigid.skin(poses.bones_of(pose), &mut skinned);
        let misses = metrics::distances(&skinned, poses.vertices_of(pose));
        cost.iter_mut().zip(&misses).for_each(|(sum, miss)| *sum += miss);
    }
    let (island, _) = mesh.islands();
    let mut order: Vec<usize> = (0..mesh.vertex_count()).collect();
    order.sort_by(|a, b| cost[*a].total_cmp(&cost[*b]));
    let mut taken = std::collections::HashMap::new();
    let mut held = vec![false; mesh.vertex_count()];
    for vertex in order {
        let count = taken.entry((owner[vertex], island[vertex])).or_insert(0);
        if *count < 3 {
            *count += 1;
            held[vertex] = true;
        }
    }
    held
}

type System = (Llt<usize, f64>, Vec<Option<usize>>, Vec<(usize, u32, f64)>);

fn poisson_system(mesh: &Mesh, held: &[bool]) -> System {
    let laplacian = cotangent_laplacian(mesh);
    let mut place = vec![None; held.len()];
    let mut count = 0;
    for vertex in 0..held.len() {
        // A vertex in no triangle has an empty row and stays where its bone puts it.
        if !held[vertex] && laplacian.row(vertex).next().is_some() {
            place[vertex] = Some(count);
            count += 1;
        }
    }
    let (mut entries, mut couplings) = (Vec::new(), Vec::new());
    for vertex in 0..held.len() {
        let Some(row) = place[vertex] else { continue };
        for (column, value) in laplacian.row(vertex) {
            match place[column] {
                // The trace on the diagonal covers triangles so thin that their cotangents vanish.
                Some(other) if other == row => entries.push(Triplet::new(row, other, value + 1e-9)),
                Some(other) => entries.push(Triplet::new(row, other, value)),
                None => couplings.push((row, column as u32, value)),
            }
        }
    }
    let matrix = SparseColMat::<usize, f64>::try_new_from_triplets(count, count, &entries)
        .expect("places are in range");
    let system =
        matrix.sp_cholesky(Side::Lower).expect("a Laplacian with held vertices is positive definite");
    (system, place, couplings)
}

impl Approximation for RotationalRegression {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> usize {
        self.triangles.iter().map(|t| t.coefficients.len() * 4).sum::<usize>() + self.place.len() * 12
    }

    fn parameters(&self) -> Parameters {
        let mut parameters = self.rigid.parameters();
        parameters.integers.push(self.held.clone());
        let coefficients = self.triangles.iter().flat_map(|triangle| &triangle.coefficients);
        parameters.floats.push(coefficients.copied().collect());
        parameters
    }

    fn evaluate(&self, frame: Frame<'_>, out: &mut [Vec3]) {
        let bones = frame.bones;
        self.rigid.skin(bones, out);
        let angles = joint_angles(bones, &self.parents, &self.rest_rotations);
        let turns: Vec<Quat> =
            bones.iter().zip(&self.inverse_rest_rotations).map(|(b, r)| rotation_of(b) * *r).collect();
        let free = self.place.iter().flatten().count();
        let mut right = Mat::<f64>::zeros(free, 3);
        for triangle in &self.triangles {
            let mut numbers = [0.0f64; TARGETS];
            let features = std::iter::once(1.0)
                .chain(self.joints[triangle.bone].iter().flat_map(|j| angles[*j].as_dvec3().to_array()));
            for (feature, row) in features.zip(triangle.coefficients.chunks_exact(TARGETS)) {
                numbers.iter_mut().zip(row).for_each(|(sum, c)| *sum += feature * f64::from(*c));
            }
            let gradient = decode(&numbers, turns[triangle.bone]);
            for (corner, along) in triangle.corners.iter().zip(&triangle.gradients) {
                if let Some(row) = self.place[*corner as usize] {
                    let part = gradient * *along;
                    right[(row, 0)] += part.x;
                    right[(row, 1)] += part.y;
                    right[(row, 2)] += part.z;
                }
            }
        }
        for &(row, vertex, value) in &self.couplings {
            let held = out[vertex as usize].as_dvec3() * value;
            right[(row, 0)] -= held.x;
            right[(row, 1)] -= held.y;
            right[(row, 2)] -= held.z;
        }
        self.system.solve_in_place_with_conj(Conj::No, right.as_mut());
        for (vertex, row) in self.place.iter().enumerate() {
            if let Some(row) = *row {
                out[vertex] = DVec3::new(right[(row, 0)], right[(row, 1)], right[(row, 2)]).as_vec3();
            }
        }
    }
}
