//! Evaluation of a face twin without allocating: networks on one thread or several, then bodies and rigid
//! segments, then the head's motion.

use super::map_decoder::{Images, MapShape, map_stride};
use super::rigid::RigidFit;
use super::stencil::reference::leaky;
use super::{FaceTwin, LEAK, Map, sample};
use crate::PoseError;
use crate::dense::Kernel;
use crate::error::{check_count, check_finite};
use crate::workers::Workers;
use std::sync::{Mutex, PoisonError};
use understudy_core::Vec3;

/// Memory for evaluating a twin, made once, and used with no other twin: a [`Player`](crate::Player) owns both.
pub(crate) struct Workspace {
    shares: Vec<Mutex<Share>>,
    /// For networks of motions.
    buffers: [Vec<f32>; 2],
    /// Points that a rigid segment follows: at rest and now.
    followed: [Vec<Vec3>; 2],
    normals: Vec<Vec3>,
}

/// What one task does: some networks, with the memory that they share.
struct Share {
    nets: Vec<usize>,
    buffers: [Vec<f32>; 2],
    /// One set of images per shape: the frame of zeros is in the same place for all drawings of a shape.
    images: Vec<(MapShape, Images, Vec<f32>)>,
    /// Offsets of the vertices of all its networks, one after another; then normals, where there are some.
    offsets: Vec<Vec3>,
    normals: Vec<Vec3>,
}

impl Workspace {
    /// For one pose at a time, in `tasks` shares of about equal work.
    pub fn new(twin: &FaceTwin, tasks: usize) -> Self {
        let mut order: Vec<usize> = (0..twin.nets.len()).collect();
        let work = |net: usize| twin.nets[net].multiply_adds() + 50 * twin.nets[net].vertices.len();
        // The heaviest first, each to the share that has least to do.
        order.sort_by_key(|net| (std::cmp::Reverse(work(*net)), *net));
        let mut shares: Vec<(usize, Vec<usize>)> = vec![(0, Vec::new()); tasks.max(1)];
        for net in order {
            let lightest = shares.iter_mut().min_by_key(|(load, _)| *load).expect("at least one share");
            lightest.0 += work(net);
            lightest.1.push(net);
        }
        let shares = shares.into_iter().map(|(_, nets)| Mutex::new(Share::new(twin, nets))).collect();
        let widest = twin.motions().map(|net| net.buffer_len()).max().unwrap_or(0);
        let most = twin.rigid.iter().map(|r| r.follows.len()).max().unwrap_or(0);
        let normals = if twin.with_normals { twin.vertex_count() } else { 0 };
        Self {
            shares,
            buffers: [vec![0.0; widest], vec![0.0; widest]],
            followed: [vec![Vec3::ZERO; most], vec![Vec3::ZERO; most]],
            normals: vec![Vec3::ZERO; normals],
        }
    }
}

impl FaceTwin {
    /// Moves the vertices for one pose. `controls`: as the header lists them. `out`: `[V]` cm.
    pub(crate) fn evaluate(
        &self,
        controls: &[f32],
        workspace: &mut Workspace,
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) -> Result<(), PoseError> {
        self.check_pose(controls, out.len())?;
        let Workspace { shares, buffers, followed, normals } = workspace;
        let (kernel, shares) = (self.kernel, &*shares);
        let job = |task: usize| {
            let mut share = shares[task].lock().unwrap_or_else(PoisonError::into_inner);
            share.evaluate(self, kernel, controls);
        };
        match workers {
            Some(workers) => workers.run(shares.len(), &job),
            None => (0..shares.len()).for_each(job),
        }
        out.copy_from_slice(self.mesh.positions());
        normals.copy_from_slice(&self.rest_normals);
        for share in shares {
            let share = share.lock().unwrap_or_else(PoisonError::into_inner);
            let vertices = share.nets.iter().flat_map(|net| &self.nets[*net].vertices);
            for (place, &vertex) in vertices.enumerate() {
                out[vertex as usize] += share.offsets[place];
                if self.with_normals {
                    normals[vertex as usize] += share.normals[place];
                }
            }
        }
        self.move_bodies(kernel, controls, buffers, out, normals);
        self.move_rigid(followed, out, normals);
        if let Some(net) = &self.frame {
            let motion = net.evaluate(kernel, controls, buffers);
            motion.apply(out);
            let rotation = motion.rotation.as_mat3();
            normals.iter_mut().for_each(|n| *n = rotation * *n);
        }
        Ok(())
    }

    /// Unit vertex normals of the pose that was evaluated last: from the maps where they transform normals,
    /// else from the faces around each vertex.
    ///
    /// # Errors
    /// When an array has another length than the vertices.
    pub(crate) fn normals(
        &self,
        workspace: &Workspace,
        vertices: &[Vec3],
        out: &mut [Vec3],
    ) -> Result<(), PoseError> {
        check_count("vertices", vertices.len(), self.vertex_count())?;
        check_count("normals", out.len(), self.vertex_count())?;
        if self.with_normals {
            for (out, normal) in out.iter_mut().zip(&workspace.normals) {
                *out = normal.normalize_or_zero();
            }
        } else {
            understudy_core::normals::vertex_normals_into(self.mesh.faces(), vertices, out);
        }
        Ok(())
    }

    pub(super) fn check_pose(&self, controls: &[f32], vertices: usize) -> Result<(), PoseError> {
        check_count("controls of the pose", controls.len(), self.control_count())?;
        check_count("vertices", vertices, self.vertex_count())?;
        check_finite("controls of the pose", controls.iter().map(|c| c.is_finite()))
    }

    fn move_bodies(
        &self,
        kernel: Kernel,
        controls: &[f32],
        buffers: &mut [Vec<f32>; 2],
        out: &mut [Vec3],
        normals: &mut [Vec3],
    ) {
        let rest = self.mesh.positions();
        for body in &self.bodies {
            let motion = body.motion.evaluate(kernel, controls, buffers);
            let (transform, rotation) = (motion.transform(), motion.rotation.as_mat3());
            for &vertex in &body.vertices {
                let vertex = vertex as usize;
                out[vertex] = transform(rest[vertex]);
                if self.with_normals {
                    normals[vertex] = rotation * self.rest_normals[vertex];
                }
            }
        }
    }

    fn move_rigid(&self, followed: &mut [Vec<Vec3>; 2], out: &mut [Vec3], normals: &mut [Vec3]) {
        let rest = self.mesh.positions();
        for segment in &self.rigid {
            let fit = self.fit(segment, followed, out);
            let rotation = fit.rotation.as_mat3();
            for &vertex in &segment.vertices {
                let vertex = vertex as usize;
                out[vertex] = fit.apply(rest[vertex]);
                if self.with_normals {
                    normals[vertex] = rotation * self.rest_normals[vertex];
                }
            }
        }
    }

    /// The motion of a rigid segment, from the vertices that it follows.
    pub(super) fn fit(
        &self,
        segment: &super::RigidParts,
        followed: &mut [Vec<Vec3>; 2],
        vertices: &[Vec3],
    ) -> RigidFit {
        let rest = self.mesh.positions();
        let count = segment.follows.len();
        let [at_rest, now] = followed;
        for (slot, vertex) in segment.follows.iter().enumerate() {
            at_rest[slot] = rest[*vertex as usize];
            now[slot] = vertices[*vertex as usize];
        }
        RigidFit::new(&at_rest[..count], &now[..count])
    }
}

impl Share {
    fn new(twin: &FaceTwin, nets: Vec<usize>) -> Self {
        let members = || nets.iter().map(|net| &twin.nets[*net]);
        let layers = members().flat_map(|net| &net.layers);
        let widest = layers.map(|l| l.padded_rows().max(l.columns())).max().unwrap_or(0);
        let mut images: Vec<(MapShape, Images, Vec<f32>)> = Vec::new();
        for Map { decoder, .. } in members().filter_map(|net| net.map.as_ref()) {
            if !images.iter().any(|(shape, ..)| shape == decoder.shape()) {
                images.push((*decoder.shape(), decoder.images(), decoder.map()));
            }
        }
        let vertices = nets.iter().map(|net| twin.nets[*net].vertices.len()).sum();
        let normals = if twin.with_normals { vertices } else { 0 };
        Self {
            buffers: [vec![0.0; widest], vec![0.0; widest]],
            images,
            offsets: vec![Vec3::ZERO; vertices],
            normals: vec![Vec3::ZERO; normals],
            nets,
        }
    }

    fn evaluate(&mut self, twin: &FaceTwin, kernel: Kernel, controls: &[f32]) {
        let mut first = 0;
        for &index in &self.nets {
            let net = &twin.nets[index];
            let [front, back] = &mut self.buffers;
            net.inputs.features(controls, front);
            let (mut read, mut write) = (front, back);
            for (layer, dense) in net.layers.iter().enumerate() {
                dense.apply(kernel, read, write);
                write[..net.rectified[layer]].iter_mut().for_each(|x| *x = leaky(*x, LEAK));
                std::mem::swap(&mut read, &mut write);
            }
            let range = first..first + net.vertices.len();
            let offsets = &mut self.offsets[range.clone()];
            match &net.map {
                None => {
                    for (offset, three) in offsets.iter_mut().zip(read.chunks_exact(3)) {
                        *offset = Vec3::from_slice(three);
                    }
                }
                Some(Map { decoder, samples, .. }) => {
                    let shape = decoder.shape();
                    let (_, images, map) =
                        self.images.iter_mut().find(|(s, ..)| s == shape).expect("made for these networks");
                    decoder.load_input(read, images);
                    decoder.forward(kernel, images, map);
                    let (side, outputs) = (shape.map_side(), shape.outputs);
                    sample::gather(map, side, outputs, 0, samples, offsets);
                    if map_stride(outputs) > 4 {
                        sample::gather(map, side, outputs, 3, samples, &mut self.normals[range.clone()]);
                    }
                }
            }
            first = range.end;
        }
    }
}
