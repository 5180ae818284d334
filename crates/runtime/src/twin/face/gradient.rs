//! The derivative of a face twin by its controls: from `∂L/∂V` to `∂L/∂p`, by hand, without allocating.
//! Inverse kinematics and capture walk along it.

use super::map_decoder::{Images, MapDecoder, MapShape, map_stride};
use super::{FaceTwin, LEAK, Map, Net, RigidBody, sample};
use crate::PoseError;
use crate::error::check_count;
use crate::twin::network::gradient::{Between, Chain, Rows, spread};
use crate::twin::network::motion::{Motion, MotionNet};
use understudy_core::{DMat3, DVec3, Vec3};

/// Memory for one forward and backward pass, made once, and used with no other twin: a [`Player`](crate::Player) owns
/// both. Holds what only derivatives need: transposed layers, and decoders that run backwards.
pub(crate) struct GradientSpace {
    nets: Vec<NetTape>,
    frame: Option<Chain>,
    frame_rows: Rows,
    motion: Motion,
    bodies: Vec<(Chain, Motion)>,
    followed: [Vec<Vec3>; 2],
    by_followed: Vec<DVec3>,
    /// Vertices before the head's motion, and derivatives by them.
    local: Vec<Vec3>,
    slopes: Vec<Vec3>,
}

/// What one network remembers.
struct NetTape {
    dense: Chain,
    /// Derivatives by what the dense layers give, of single vertices.
    rows: Rows,
    decoder: Option<Tape>,
    offsets: Vec<Vec3>,
    slopes: Vec<Vec3>,
}

struct Tape {
    decoder: MapDecoder,
    images: Images,
    slopes: Images,
    map: Vec<f32>,
    by_map: Vec<f32>,
}

impl GradientSpace {
    /// Memory for a twin.
    pub fn new(twin: &FaceTwin) -> Self {
        let tape = |map: &Map| {
            let (parts, side) = (map.parts(), map.decoder.shape().map_side());
            let sampled = sample::sampled_pixels(&map.samples, side);
            let mut decoder = MapDecoder::new(parts.shape, LEAK, &sampled);
            decoder.load(&parts.parameters);
            Tape {
                images: decoder.images(),
                slopes: decoder.images(),
                map: decoder.map(),
                by_map: decoder.map(),
                decoder,
            }
        };
        let net = |net: &Net| {
            let parts = net.parts();
            NetTape {
                dense: Chain::new(&parts.dense, parts.inputs.len(), twin.precision),
                rows: Rows::default(),
                decoder: net.map.as_ref().map(tape),
                offsets: vec![Vec3::ZERO; net.vertices.len()],
                slopes: vec![Vec3::ZERO; net.vertices.len()],
            }
        };
        let motion = |net: &MotionNet| {
            let parts = net.parts();
            Chain::new(&parts.layers, parts.inputs.len(), twin.precision)
        };
        let body = |body: &RigidBody| (motion(&body.motion), Motion::STILL);
        let most = twin.rigid.iter().map(|r| r.follows.len()).max().unwrap_or(0);
        let points = || vec![Vec3::ZERO; most];
        Self {
            nets: twin.nets.iter().map(net).collect(),
            frame: twin.frame.as_ref().map(motion),
            frame_rows: Rows::default(),
            motion: Motion::STILL,
            bodies: twin.bodies.iter().map(body).collect(),
            followed: [points(), points()],
            by_followed: vec![DVec3::ZERO; most],
            local: vec![Vec3::ZERO; twin.vertex_count()],
            slopes: vec![Vec3::ZERO; twin.vertex_count()],
        }
    }
}

/// For every vertex of a small twin the networks that move it, each with a decoder of the vertex's own pixels.
pub(crate) struct LocalDecoders {
    /// Network, place among its vertices, decoder where it has a map.
    of_vertex: Vec<Vec<(usize, usize, Option<MapDecoder>)>>,
    /// Vertices of rigid parts, which depend on others.
    whole: Vec<bool>,
    /// Derivatives by images, one set per shape.
    images: Vec<(MapShape, Images)>,
    slopes: Vec<Vec3>,
}

impl LocalDecoders {
    /// For the first vertices of a twin.
    pub fn new(twin: &FaceTwin, vertices: usize) -> Self {
        let mut of_vertex: Vec<Vec<(usize, usize, Option<MapDecoder>)>> =
            (0..vertices).map(|_| Vec::new()).collect();
        let mut images: Vec<(MapShape, Images)> = Vec::new();
        for (index, net) in twin.nets.iter().enumerate() {
            let map = net.map.as_ref().map(|map| (map, map.parts()));
            for (place, vertex) in net.vertices.iter().enumerate() {
                let Some(list) = of_vertex.get_mut(*vertex as usize) else { continue };
                let decoder = map.as_ref().map(|(map, parts)| {
                    let sample = std::slice::from_ref(&map.samples[place]);
                    let sampled = sample::sampled_pixels(sample, parts.shape.map_side());
                    let mut decoder = MapDecoder::new(parts.shape, LEAK, &sampled);
                    decoder.load(&parts.parameters);
                    if !images.iter().any(|(shape, _)| *shape == parts.shape) {
                        images.push((parts.shape, decoder.images()));
                    }
                    decoder
                });
                list.push((index, place, decoder));
            }
        }
        let mut whole = vec![false; vertices];
        let rigid = twin.rigid.iter().flat_map(|segment| &segment.vertices);
        for vertex in rigid.chain(twin.bodies.iter().flat_map(|body| &body.vertices)) {
            whole.get_mut(*vertex as usize).into_iter().for_each(|whole| *whole = true);
        }
        Self { of_vertex, whole, images, slopes: vec![Vec3::ZERO; twin.vertex_count()] }
    }

    /// How many vertices it was made for.
    pub fn len(&self) -> usize {
        self.of_vertex.len()
    }
}

impl FaceTwin {
    /// Moves the vertices and remembers what [`FaceTwin::backward`] needs.
    pub(crate) fn forward(
        &self,
        controls: &[f32],
        space: &mut GradientSpace,
        out: &mut [Vec3],
    ) -> Result<(), PoseError> {
        self.check_pose(controls, out.len())?;
        let rest = self.mesh.positions();
        out.copy_from_slice(rest);
        let kernel = self.kernel;
        for (net, tape) in self.nets.iter().zip(&mut space.nets) {
            net.inputs.features(controls, &mut tape.dense.outputs[0]);
            let of_last = net.rectified.last().copied().unwrap_or(0);
            tape.dense.forward(kernel, &net.layers, Between::Leaky { slope: LEAK, of_last });
            let last = tape.dense.outputs.last().expect("inputs at least");
            match (&net.map, &mut tape.decoder) {
                (Some(Map { samples, .. }), Some(pass)) => {
                    let decoder = &pass.decoder;
                    decoder.load_input(last, &mut pass.images);
                    decoder.forward(kernel, &mut pass.images, &mut pass.map);
                    let shape = decoder.shape();
                    let (side, outputs) = (shape.map_side(), shape.outputs);
                    sample::gather(&pass.map, side, outputs, 0, samples, &mut tape.offsets);
                }
                _ => {
                    for (offset, three) in tape.offsets.iter_mut().zip(last.chunks_exact(3)) {
                        *offset = Vec3::from_slice(three);
                    }
                }
            }
            for (offset, vertex) in tape.offsets.iter().zip(&net.vertices) {
                out[*vertex as usize] += *offset;
            }
        }
        for (body, (chain, motion)) in self.bodies.iter().zip(&mut space.bodies) {
            *motion = chain.motion(kernel, &body.motion, controls);
            let transform = motion.transform();
            body.vertices.iter().for_each(|v| out[*v as usize] = transform(rest[*v as usize]));
        }
        for segment in &self.rigid {
            let fit = self.fit(segment, &mut space.followed, out);
            segment.vertices.iter().for_each(|v| out[*v as usize] = fit.apply(rest[*v as usize]));
        }
        space.local.copy_from_slice(out);
        if let (Some(net), Some(chain)) = (&self.frame, &mut space.frame) {
            space.motion = chain.motion(kernel, net, controls);
            space.motion.apply(out);
        }
        Ok(())
    }

    /// After [`FaceTwin::forward`] at the same pose: from `by_vertices`, `∂L/∂V` `[V]`, to `∂L/∂p` `[C]`.
    pub(crate) fn backward(
        &self,
        space: &mut GradientSpace,
        by_vertices: &[Vec3],
        by_controls: &mut [f32],
    ) -> Result<(), PoseError> {
        check_count("derivatives by vertices", by_vertices.len(), self.vertex_count())?;
        check_count("derivatives by controls", by_controls.len(), self.control_count())?;
        by_controls.fill(0.0);
        let kernel = self.kernel;
        space.slopes.copy_from_slice(by_vertices);
        if let (Some(net), Some(chain)) = (&self.frame, &mut space.frame) {
            let pairs = space.local.iter().copied().zip(by_vertices.iter().copied());
            chain.backward_motion(kernel, net, space.motion.backward(pairs), by_controls);
            let back = space.motion.rotation.transpose().as_mat3();
            space.slopes.iter_mut().for_each(|slope| *slope = back * *slope);
        }
        self.backward_rigid(space);
        let rest = self.mesh.positions();
        for (body, (chain, motion)) in self.bodies.iter().zip(&mut space.bodies) {
            let pair = |v: &u32| (rest[*v as usize], space.slopes[*v as usize]);
            let six = motion.backward(body.vertices.iter().map(pair));
            chain.backward_motion(kernel, &body.motion, six, by_controls);
        }
        for (net, tape) in self.nets.iter().zip(&mut space.nets) {
            for (slope, vertex) in tape.slopes.iter_mut().zip(&net.vertices) {
                *slope = space.slopes[*vertex as usize];
            }
            // A loss of a few vertices leaves most networks alone.
            if tape.slopes.iter().all(|slope| *slope == Vec3::ZERO) {
                continue;
            }
            let last = tape.dense.slopes.last_mut().expect("inputs at least");
            match (&net.map, &mut tape.decoder) {
                (Some(Map { samples, .. }), Some(pass)) => {
                    let decoder = &pass.decoder;
                    let shape = decoder.shape();
                    pass.by_map.fill(0.0);
                    sample::scatter(
                        &tape.slopes,
                        shape.map_side(),
                        shape.outputs,
                        0,
                        samples,
                        &mut pass.by_map,
                    );
                    decoder.backward(kernel, &pass.images, &pass.by_map, &mut pass.slopes);
                    decoder.store_input_gradients(&pass.slopes, last);
                }
                _ => {
                    for (slope, three) in tape.slopes.iter().zip(last.chunks_exact_mut(3)) {
                        three.copy_from_slice(&slope.to_array());
                    }
                }
            }
            tape.dense.backward(kernel, Between::Leaky { slope: LEAK, of_last: 0 });
            spread(&tape.dense.slopes[0], &net.inputs.inputs, &net.inputs.scale, by_controls);
        }
        Ok(())
    }

    /// After [`FaceTwin::forward`] at the same pose: derivatives of the first vertices by the controls, three rows each.
    /// Of every network only the pixels that a vertex reads are gone back through, then its dense layers for all vertices at
    /// once.
    pub(crate) fn jacobian(
        &self,
        space: &mut GradientSpace,
        local: &mut LocalDecoders,
        vertices: usize,
        rows: &mut [f32],
    ) -> Result<(), PoseError> {
        let (width, kernel) = (self.control_count(), self.kernel);
        let back = space.motion.rotation.transpose().as_mat3();
        let outputs = |chain: &Chain| chain.outputs.last().map_or(0, Vec::len);
        space.nets.iter_mut().for_each(|tape| tape.rows.begin(outputs(&tape.dense)));
        space.frame_rows.begin(space.frame.as_ref().map_or(0, outputs));
        for (vertex, rows) in rows.chunks_exact_mut((3 * width).max(1)).enumerate().take(vertices) {
            if local.whole[vertex] {
                for (axis, row) in rows.chunks_exact_mut(width).enumerate() {
                    local.slopes[vertex][axis] = 1.0;
                    self.backward(space, &local.slopes, row)?;
                    local.slopes[vertex] = Vec3::ZERO;
                }
                continue;
            }
            rows.fill(0.0);
            if self.frame.is_some() {
                for (axis, slope) in Vec3::AXES.into_iter().enumerate() {
                    let six = space.motion.backward(std::iter::once((space.local[vertex], slope)));
                    let last = space.frame_rows.add(3 * vertex + axis);
                    last.iter_mut().zip(six).for_each(|(slot, slope)| *slot = slope as f32);
                }
            }
            for (net, place, decoder) in &mut local.of_vertex[vertex] {
                let (net, tape) = (&self.nets[*net], &mut space.nets[*net]);
                for axis in 0..3 {
                    let slope = if self.frame.is_some() { back * Vec3::AXES[axis] } else { Vec3::AXES[axis] };
                    let last = tape.rows.add(3 * vertex + axis);
                    match (&net.map, &mut tape.decoder, &mut *decoder) {
                        (Some(Map { samples, .. }), Some(pass), Some(decoder)) => {
                            let shape = decoder.shape();
                            let (side, outputs) = (shape.map_side(), shape.outputs);
                            let sample = std::slice::from_ref(&samples[*place]);
                            // Only the pixels of this vertex are read: no other has to be cleared.
                            for pixel in sample[0].pixels(side) {
                                let start = pixel * map_stride(outputs);
                                pass.by_map[start..start + outputs].fill(0.0);
                            }
                            sample::scatter(&[slope], side, outputs, 0, sample, &mut pass.by_map);
                            let slopes = local.images.iter_mut().find(|(of, _)| of == shape);
                            let (_, slopes) = slopes.expect("made for these networks");
                            if axis == 0 {
                                slopes.clear();
                            }
                            decoder.backward(kernel, &pass.images, &pass.by_map, slopes);
                            decoder.store_input_gradients(slopes, last);
                        }
                        _ => last[3 * *place..3 * *place + 3].copy_from_slice(&slope.to_array()),
                    }
                }
            }
        }
        for (net, tape) in self.nets.iter().zip(&mut space.nets) {
            tape.dense.backward_rows(kernel, Between::Leaky { slope: LEAK, of_last: 0 }, &mut tape.rows);
            for (row, slopes) in tape.rows.iter() {
                let by_controls = &mut rows[row * width..(row + 1) * width];
                spread(slopes, &net.inputs.inputs, &net.inputs.scale, by_controls);
            }
        }
        if let (Some(net), Some(chain)) = (&self.frame, &space.frame) {
            chain.backward_rows(kernel, Between::Tanh, &mut space.frame_rows);
            for (row, slopes) in space.frame_rows.iter() {
                let by_controls = &mut rows[row * width..(row + 1) * width];
                spread(slopes, &net.inputs.inputs, &net.inputs.scale, by_controls);
            }
        }
        Ok(())
    }

    /// Derivatives by rigid vertices become derivatives by those that they follow.
    fn backward_rigid(&self, space: &mut GradientSpace) {
        let rest = self.mesh.positions();
        for segment in &self.rigid {
            let fit = self.fit(segment, &mut space.followed, &space.local);
            let (mut by_rotation, mut by_to) = (DMat3::ZERO, DVec3::ZERO);
            for &vertex in &segment.vertices {
                let slope = space.slopes[vertex as usize].as_dvec3();
                let local = rest[vertex as usize].as_dvec3() - fit.from;
                by_rotation += DMat3::from_cols(slope * local.x, slope * local.y, slope * local.z);
                by_to += slope;
            }
            let count = segment.follows.len();
            let by_followed = &mut space.by_followed[..count];
            by_followed.fill(DVec3::ZERO);
            fit.backward(&space.followed[0][..count], &by_rotation, by_to, by_followed);
            for (slope, vertex) in by_followed.iter().zip(&segment.follows) {
                space.slopes[*vertex as usize] += slope.as_vec3();
            }
        }
    }
}
