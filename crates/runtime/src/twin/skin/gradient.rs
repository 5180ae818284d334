//! The derivative of a skin twin by its controls: from `∂L/∂V` to `∂L/∂p`, without allocating. Skinning is linear in the
//! bones, so the way back is a sum over vertices and one pass through the network.

use super::evaluate::bone_motion;
use super::{BONE_NUMBERS, SkinTwin};
use crate::PoseError;
use crate::dense::{Activation, Layer};
use crate::error::check_count;
use crate::twin::network::gradient::{Between, Chain, Rows, spread};
use crate::twin::network::motion::Motion;
use understudy_core::{Affine3A, SkinWeights, Vec3};

/// Memory for one forward and backward pass, made once, and used with no other twin.
pub(super) struct GradientSpace {
    rest: Vec<Vec3>,
    weights: SkinWeights,
    /// Hidden layers.
    hidden: Chain,
    /// What the last layer reads, and derivatives by it.
    features: Vec<f32>,
    by_features: Vec<f32>,
    output: Layer,
    /// The last layer by rows, once derivatives of single vertices are asked for.
    output_rows: Vec<f32>,
    component_rows: Vec<f32>,
    numbers: Vec<f32>,
    by_numbers: Vec<f32>,
    /// Components with rows and columns exchanged, what they add, and derivatives by coefficients.
    components: Option<Layer>,
    offsets: Vec<f32>,
    by_coefficients: Vec<f32>,
    bones: Vec<Affine3A>,
    frame: Option<Chain>,
    /// Of single vertices: derivatives by the last hidden layer, and by what the frame's network gives.
    hidden_rows: Rows,
    frame_rows: Rows,
    motion: Motion,
    /// Vertices before the motion of the whole, and derivatives by them.
    local: Vec<Vec3>,
    slopes: Vec<Vec3>,
}

impl GradientSpace {
    pub fn new(twin: &SkinTwin) -> Self {
        let parts = twin.parts();
        let padded = |size: usize| size.next_multiple_of(crate::dense::PANEL);
        let turned = |weights: &[f32], rows: usize, columns: usize| {
            let mut turned = vec![0.0; rows * columns];
            for row in 0..rows {
                for column in 0..columns {
                    turned[column * rows + row] = weights[row * columns + column];
                }
            }
            Layer::pack(&turned, &vec![0.0; columns], rows, Activation::None, twin.precision)
                .expect("weights that were packed once fit")
        };
        let (rows, columns) = (twin.output.rows(), twin.output.columns());
        let (components, flat) = (twin.component_count(), 3 * twin.vertex_count);
        let frame = parts.frame.as_ref();
        Self {
            hidden: Chain::new(&parts.hidden, parts.inputs.len(), twin.precision),
            features: vec![0.0; padded(columns)],
            by_features: vec![0.0; padded(columns)],
            output: turned(&parts.output.weights, rows, columns),
            output_rows: Vec::new(),
            component_rows: Vec::new(),
            numbers: vec![0.0; padded(rows)],
            by_numbers: vec![0.0; padded(rows)],
            components: (components > 0).then(|| turned(&parts.components, flat, components)),
            offsets: vec![0.0; if components > 0 { padded(flat) } else { 0 }],
            by_coefficients: vec![0.0; padded(components)],
            bones: vec![Affine3A::IDENTITY; twin.bone_count()],
            frame: frame.map(|frame| Chain::new(&frame.layers, frame.inputs.len(), twin.precision)),
            hidden_rows: Rows::default(),
            frame_rows: Rows::default(),
            motion: Motion::STILL,
            local: vec![Vec3::ZERO; twin.vertex_count],
            slopes: vec![Vec3::ZERO; twin.vertex_count],
            rest: parts.rest_vertices,
            weights: parts.weights,
        }
    }
}

impl SkinTwin {
    /// Moves the vertices and remembers what [`SkinTwin::backward`] needs.
    pub(super) fn forward(
        &self,
        controls: &[f32],
        space: &mut GradientSpace,
        out: &mut [Vec3],
    ) -> Result<(), PoseError> {
        self.check_pose(controls, out.len())?;
        let (kernel, inputs, bones) = (self.kernel, self.inputs.inputs.len(), self.bone_count());
        self.inputs.features(controls, &mut space.hidden.outputs[0]);
        space.hidden.forward(kernel, &self.hidden, Between::Tanh);
        space.features[..inputs].copy_from_slice(&space.hidden.outputs[0][..inputs]);
        if let Some(layer) = self.hidden.last() {
            let last = space.hidden.outputs.last().expect("inputs at least");
            space.features[inputs..inputs + layer.rows()].copy_from_slice(&last[..layer.rows()]);
        }
        self.output.apply(kernel, &space.features, &mut space.numbers);
        let numbers = space.numbers.as_chunks::<BONE_NUMBERS>().0;
        for (bone, (numbers, centre)) in space.bones.iter_mut().zip(numbers.iter().zip(&self.centres)) {
            *bone = bone_motion(numbers, *centre);
        }
        space.weights.linear_blend(&space.bones, &space.rest, &mut space.local);
        if let Some(basis) = &self.components {
            basis.apply(kernel, &space.numbers[BONE_NUMBERS * bones..], &mut space.offsets);
            let offsets = space.offsets.chunks_exact(3);
            space
                .local
                .iter_mut()
                .zip(offsets)
                .for_each(|(place, offset)| *place += Vec3::from_slice(offset));
        }
        out.copy_from_slice(&space.local);
        if let (Some(net), Some(chain)) = (&self.frame, &mut space.frame) {
            space.motion = chain.motion(kernel, net, controls);
            space.motion.apply(out);
        }
        Ok(())
    }

    /// After [`SkinTwin::forward`] at the same pose: derivatives of the first vertices by the controls, three rows each. Of a
    /// vertex only the numbers of its own bones are gone back through, then the hidden layers for all vertices at once.
    pub(super) fn jacobian(&self, space: &mut GradientSpace, rows: &mut [f32]) {
        let (kernel, width) = (self.kernel, self.control_count());
        let outputs = |chain: &Chain| chain.outputs.last().map_or(0, Vec::len);
        space.hidden_rows.begin(outputs(&space.hidden));
        space.frame_rows.begin(space.frame.as_ref().map_or(0, outputs));
        for (row, by_controls) in rows.chunks_exact_mut(width.max(1)).enumerate() {
            self.backward_one(space, row, by_controls);
        }
        space.hidden.backward_rows(kernel, Between::Tanh, &mut space.hidden_rows);
        for (row, slopes) in space.hidden_rows.iter() {
            let by_controls = &mut rows[row * width..(row + 1) * width];
            spread(slopes, &self.inputs.inputs, &self.inputs.scale, by_controls);
        }
        if let (Some(net), Some(chain)) = (&self.frame, &space.frame) {
            chain.backward_rows(kernel, Between::Tanh, &mut space.frame_rows);
            for (row, slopes) in space.frame_rows.iter() {
                let by_controls = &mut rows[row * width..(row + 1) * width];
                spread(slopes, &net.inputs.inputs, &net.inputs.scale, by_controls);
            }
        }
    }

    /// One coordinate of one vertex as far as layers go back row by row; what follows waits in the rows of `space`.
    fn backward_one(&self, space: &mut GradientSpace, row: usize, by_controls: &mut [f32]) {
        by_controls.fill(0.0);
        let (vertex, axis) = (row / 3, row % 3);
        let (inputs, columns) = (self.inputs.inputs.len(), self.output.columns());
        let mut slope = Vec3::AXES[axis];
        if self.frame.is_some() {
            let pair = (space.local[vertex], slope);
            let six = space.motion.backward(std::iter::once(pair));
            space.frame_rows.add(row).iter_mut().zip(six).for_each(|(slot, slope)| *slot = slope as f32);
            slope = space.motion.rotation.transpose().as_mat3() * slope;
        }
        if space.output_rows.is_empty() {
            space.output_rows = self.output.unpack().0;
        }
        if let Some(basis) = self.components.as_ref().filter(|_| space.component_rows.is_empty()) {
            space.component_rows = basis.unpack().0;
        }
        space.by_features.fill(0.0);
        let GradientSpace { by_features, output_rows, component_rows, .. } = space;
        let mut add = |row: usize, share: f32| {
            let weights = &output_rows[row * columns..(row + 1) * columns];
            by_features.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += share * weight);
        };
        for (bone, weight) in space.weights.row(vertex) {
            let from = (space.rest[vertex] - self.centres[bone]).extend(1.0) * weight;
            for number in 0..BONE_NUMBERS {
                let share = slope[number / 4] * from[number % 4];
                if share != 0.0 {
                    add(bone * BONE_NUMBERS + number, share);
                }
            }
        }
        if let Some(basis) = &self.components {
            let count = basis.columns();
            for component in 0..count {
                let share: f32 =
                    (0..3).map(|a| slope[a] * component_rows[(3 * vertex + a) * count + component]).sum();
                add(BONE_NUMBERS * self.bone_count() + component, share);
            }
        }
        if let Some(layer) = self.hidden.last() {
            let outputs = space.hidden.outputs.last().expect("inputs at least");
            let through = space.by_features[inputs..inputs + layer.rows()].iter().zip(outputs);
            // tanh' = 1 − tanh².
            let slots = space.hidden_rows.add(row).iter_mut();
            slots.zip(through).for_each(|(slot, (slope, y))| *slot = slope * (1.0 - y * y));
        }
        spread(&space.by_features[..inputs], &self.inputs.inputs, &self.inputs.scale, by_controls);
    }

    /// From derivatives by what the last layer reads to those by controls, which are added to.
    fn backward_features(&self, space: &mut GradientSpace, inputs: usize, by_controls: &mut [f32]) {
        if let Some(layer) = self.hidden.last() {
            let outputs = space.hidden.outputs.last().expect("inputs at least");
            let slopes = space.hidden.slopes.last_mut().expect("inputs at least");
            let through = space.by_features[inputs..inputs + layer.rows()].iter().zip(outputs);
            // tanh' = 1 − tanh².
            slopes.iter_mut().zip(through).for_each(|(slot, (slope, y))| *slot = slope * (1.0 - y * y));
            space.hidden.backward(self.kernel, Between::Tanh);
            spread(&space.hidden.slopes[0], &self.inputs.inputs, &self.inputs.scale, by_controls);
        }
        spread(&space.by_features[..inputs], &self.inputs.inputs, &self.inputs.scale, by_controls);
    }

    /// After [`SkinTwin::forward`] at the same pose: from `by_vertices`, `∂L/∂V` `[V]`, to `∂L/∂p` `[C]`.
    pub(super) fn backward(
        &self,
        space: &mut GradientSpace,
        by_vertices: &[Vec3],
        by_controls: &mut [f32],
    ) -> Result<(), PoseError> {
        check_count("derivatives by vertices", by_vertices.len(), self.vertex_count)?;
        check_count("derivatives by controls", by_controls.len(), self.control_count())?;
        by_controls.fill(0.0);
        let (kernel, inputs, bones) = (self.kernel, self.inputs.inputs.len(), self.bone_count());
        space.slopes.copy_from_slice(by_vertices);
        if let (Some(net), Some(chain)) = (&self.frame, &mut space.frame) {
            let pairs = space.local.iter().copied().zip(by_vertices.iter().copied());
            chain.backward_motion(kernel, net, space.motion.backward(pairs), by_controls);
            let back = space.motion.rotation.transpose().as_mat3();
            space.slopes.iter_mut().for_each(|slope| *slope = back * *slope);
        }
        space.by_numbers.fill(0.0);
        for (vertex, (slope, place)) in space.slopes.iter().zip(&space.rest).enumerate() {
            for (bone, weight) in space.weights.row(vertex) {
                let from = (*place - self.centres[bone]).extend(1.0) * weight;
                let numbers = &mut space.by_numbers[bone * BONE_NUMBERS..][..BONE_NUMBERS];
                for (row, slope) in numbers.chunks_exact_mut(4).zip(slope.to_array()) {
                    row.iter_mut().zip(from.to_array()).for_each(|(sum, from)| *sum += slope * from);
                }
            }
        }
        if let Some(basis) = &space.components {
            for (flat, slope) in space.offsets.chunks_exact_mut(3).zip(&space.slopes) {
                flat.copy_from_slice(&slope.to_array());
            }
            basis.apply(kernel, &space.offsets, &mut space.by_coefficients);
            let own = &mut space.by_numbers[BONE_NUMBERS * bones..self.output.rows()];
            own.iter_mut().zip(&space.by_coefficients).for_each(|(slot, slope)| *slot = *slope);
        }
        space.output.apply(kernel, &space.by_numbers, &mut space.by_features);
        self.backward_features(space, inputs, by_controls);
        Ok(())
    }
}
