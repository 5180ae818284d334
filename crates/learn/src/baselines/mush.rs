//! Delta mush and direct delta mush as baselines: both smooth what linear blend skinning makes of the mesh and put the
//! detail of the rest pose back, without any example poses.

use super::{Approximation, Examples, Parameters, Skinned};
use crate::Frame;
use rayon::prelude::*;
use understudy_core::rotation::best_rotation;
use understudy_core::{Affine3A, DMat3, DVec3, JointPose, Vec3};
use understudy_rigs::deformers::{DeltaMush, DeltaMushConfig, RigSize};
use understudy_rigs::{Deformer, Frame as DeformerFrame, Scratch};

/// Delta mush (Mancewicz et al. 2014) over a skin: ten rounds of uniform smoothing.
pub struct MushedSkin {
    base: Skinned,
    mush: DeltaMush,
}

impl MushedSkin {
    /// Over a skin of the examples' mesh.
    pub fn new(examples: &Examples<'_>, base: Skinned) -> Self {
        let poses = examples.poses;
        let size = RigSize::new(&poses.mesh, poses.skeleton.as_ref(), &poses.specs);
        let mush = DeltaMush::new(DeltaMushConfig::default(), &poses.mesh, &size)
            .expect("the usual settings fit a mesh of its own size");
        Self { base, mush }
    }
}

impl Approximation for MushedSkin {
    fn name(&self) -> &str {
        "delta_mush"
    }

    fn bytes(&self) -> usize {
        // The rest pose's detail in its frames, beside the skin.
        self.base.bytes() + self.base.rest.len() * 12
    }

    fn evaluate(&self, frame: Frame<'_>, out: &mut [Vec3]) {
        self.base.skin(frame.bones, out);
        let pose = JointPose::default();
        let (rest, global) = (&self.base.rest[..], frame.bones);
        let frame = DeformerFrame { controls: frame.controls, pose: &pose, global, matrices: &[], rest };
        self.mush.deform(&frame, out, &mut Scratch::default());
    }

    fn parameters(&self) -> Parameters {
        self.base.parameters()
    }
}

/// Rounds and step of smoothing: those of [`DeltaMushConfig`].
const ROUNDS: usize = 10;
const STEP: f64 = 0.6;
/// Bones that a smoothed vertex follows by less are left out.
const LEAST_WEIGHT: f64 = 1e-4;

/// Direct delta mush (Le and Lewis 2019), variant v0: `v_i = q_i + R_i (u_i − p_i)`, with the smoothed place `p_i` of
/// the rest pose, the smoothed place `q_i` of the skinned pose, and `R_i` the rotation nearest to
/// `Σ_k b_ik (v_k − q_i)(u_k − p_i)ᵀ`. Both are sums over bones of the first and second moments of the neighbourhood,
/// which are smoothed once: `Ψ_ij = Σ_k b_ik w_kj [u_k 1]ᵀ[u_k 1]`. Moments are kept about `u_i`, where single
/// precision suffices.
pub struct DirectDeltaMush {
    base: Skinned,
    /// Where the bones of each vertex begin, `[V + 1]`.
    offsets: Vec<u32>,
    moments: Vec<Moments>,
}

/// What the neighbourhood of a vertex looks like through one bone.
#[derive(Debug, Clone, Copy)]
struct Moments {
    bone: u16,
    weight: f32,
    first: Vec3,
    /// xx, xy, xz, yy, yz, zz.
    second: [f32; 6],
}

/// 1, x, y, z and the six products: what is smoothed of every bone.
const CHANNELS: usize = 10;

impl DirectDeltaMush {
    /// Over a skin of the examples' mesh.
    pub fn new(examples: &Examples<'_>, base: Skinned) -> Self {
        let rest: Vec<DVec3> = base.rest.iter().map(|v| v.as_dvec3()).collect();
        let adjacency = examples.poses.mesh.adjacency();
        let of_bone = |bone: usize| -> Vec<(u32, Moments)> {
            let mut fields = vec![[0.0f64; CHANNELS]; rest.len()];
            let mut moved = false;
            for (vertex, field) in fields.iter_mut().enumerate() {
                for (_, weight) in base.weights.row(vertex).filter(|(own, _)| *own == bone) {
                    let w = f64::from(weight);
                    let DVec3 { x, y, z } = rest[vertex];
                    *field = [1.0, x, y, z, x * x, x * y, x * z, y * y, y * z, z * z].map(|n| n * w);
                    moved = true;
                }
            }
            if !moved {
                return Vec::new();
            }
            let mut spare = fields.clone();
            for _ in 0..ROUNDS {
                for (vertex, out) in spare.iter_mut().enumerate() {
                    let ring = adjacency.neighbours(vertex);
                    *out = fields[vertex];
                    if ring.is_empty() {
                        continue;
                    }
                    let share = STEP / ring.len() as f64;
                    out.iter_mut().for_each(|own| *own *= 1.0 - STEP);
                    for neighbour in ring {
                        let other = &fields[*neighbour as usize];
                        out.iter_mut().zip(other).for_each(|(own, other)| *own += share * other);
                    }
                }
                std::mem::swap(&mut fields, &mut spare);
            }
            let about = |(vertex, field): (usize, &[f64; CHANNELS])| {
                let [w, x, y, z, xx, xy, xz, yy, yz, zz] = *field;
                if w < LEAST_WEIGHT {
                    return None;
                }
                let (u, sum) = (rest[vertex], DVec3::new(x, y, z));
                let first = sum - u * w;
                let about = |second: f64, a: usize, b: usize| {
                    (second - u[a] * sum[b] - sum[a] * u[b] + w * u[a] * u[b]) as f32
                };
                let second = [
                    about(xx, 0, 0),
                    about(xy, 0, 1),
                    about(xz, 0, 2),
                    about(yy, 1, 1),
                    about(yz, 1, 2),
                    about(zz, 2, 2),
                ];
                let moments = Moments { bone: bone as u16, weight: w as f32, first: first.as_vec3(), second };
                Some((vertex as u32, moments))
            };
            fields.iter().enumerate().filter_map(about).collect()
        };
        let bones: Vec<Vec<(u32, Moments)>> =
            (0..base.inverse_rest.len()).into_par_iter().map(of_bone).collect();
        let mut rows: Vec<Vec<Moments>> = vec![Vec::new(); rest.len()];
        for (vertex, moments) in bones.into_iter().flatten() {
            rows[vertex as usize].push(moments);
        }
        let (mut offsets, mut moments) = (vec![0], Vec::new());
        for row in rows {
            // What was left out is made up for by the others.
            let whole = 1.0 / row.iter().map(|m| m.weight).sum::<f32>().max(f32::MIN_POSITIVE);
            moments.extend(row.into_iter().map(|m| Moments {
                bone: m.bone,
                weight: m.weight * whole,
                first: m.first * whole,
                second: m.second.map(|s| s * whole),
            }));
            offsets.push(moments.len() as u32);
        }
        Self { base, offsets, moments }
    }

    fn vertex(&self, matrices: &[Affine3A], vertex: usize) -> Vec3 {
        let moments = &self.moments[self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize];
        let here = self.base.rest[vertex];
        let place = |m: &Moments| matrices[m.bone as usize].transform_point3(here).as_dvec3();
        let (mut p, mut q) = (DVec3::ZERO, DVec3::ZERO);
        for m in moments {
            p += m.first.as_dvec3();
            let turned = matrices[m.bone as usize].transform_vector3(m.first).as_dvec3();
            q += place(m) * f64::from(m.weight) + turned;
        }
        let mut covariance = DMat3::ZERO;
        for m in moments {
            let [xx, xy, xz, yy, yz, zz] = m.second.map(f64::from);
            let second =
                DMat3::from_cols(DVec3::new(xx, xy, xz), DVec3::new(xy, yy, yz), DVec3::new(xz, yz, zz));
            let linear = matrices[m.bone as usize].matrix3;
            let linear = DMat3::from_cols(
                linear.x_axis.as_dvec3(),
                linear.y_axis.as_dvec3(),
                linear.z_axis.as_dvec3(),
            );
            let (away, first) = (place(m) - q, m.first.as_dvec3());
            let outer = DMat3::from_cols(away * first.x, away * first.y, away * first.z);
            covariance += linear * second + outer;
        }
        (q - best_rotation(covariance.transpose()) * p).as_vec3()
    }
}

impl Approximation for DirectDeltaMush {
    fn name(&self) -> &str {
        "ddm"
    }

    fn bytes(&self) -> usize {
        // A bone's number, a weight, three first and six second moments each.
        self.moments.len() * (2 + 10 * 4) + self.base.rest.len() * 12
    }

    fn evaluate(&self, frame: Frame<'_>, out: &mut [Vec3]) {
        let matrices: Vec<Affine3A> =
            frame.bones.iter().zip(&self.base.inverse_rest).map(|(b, r)| *b * *r).collect();
        for (vertex, out) in out.iter_mut().enumerate() {
            *out = self.vertex(&matrices, vertex);
        }
    }

    fn parameters(&self) -> Parameters {
        self.base.parameters()
    }
}
