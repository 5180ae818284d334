//! The derivative of a loss by the controls, `∂L/∂p = (∂c/∂p)ᵀ Bᵀ X_iᵀ ∂L/∂v_i`, by one pass back through the networks.
//! With bones it is the derivative by the controls beside them, bones held still, and by the bones where that is asked.
//! Derivatives of single vertices go back together, a row each, after one pass forward.

use super::evaluate::{activate, unpack_places};
use super::pack::row_of;
use super::{BLOCK_VERTICES, BONE_INPUTS, DiffTwin, HiddenActivation};
use crate::PoseError;
use crate::dense::{Activation, Kernel, Layer, PANEL};
use crate::error::{check_count, check_finite};
use crate::twin::network::gradient::Rows;
use understudy_core::{Affine3A, Mat3A, SkinWeights, Vec3};

/// Memory for one forward and backward pass, made once, and used with no other twin: a [`Player`](crate::Player) owns
/// both.
pub(super) struct GradientSpace {
    kernel: Kernel,
    features: Vec<f32>,
    by_features: Vec<f32>,
    differential: Chain,
    anchors: Vec<Chain>,
    subspace: Option<Chain>,
    linear: Option<Chain>,
    /// Of each run of vertices: from coefficients of the whole twin to its own, where it has some, and to vertices.
    mixes: Vec<Option<Chain>>,
    blocks: Vec<Chain>,
    skin: Option<SkinWeights>,
    by_coefficients: Vec<f32>,
    vertices: Vec<Vec3>,
    by_vertices: Vec<Vec3>,
    /// Places before skinning, `[V]`, and derivatives by the numbers of bones in their parents' frames, `[J]`: for
    /// derivatives by bones.
    places: Vec<Vec3>,
    by_relative: Vec<[f32; BONE_INPUTS]>,
    /// Of single vertices: derivatives by coefficients, and what goes back from them.
    by_row_coefficients: Rows,
    rows: Rows,
    anchor_rows: Rows,
}

/// A network that remembers what came out of each layer.
struct Chain {
    transposed: Vec<Layer>,
    /// `outputs[0]` are the inputs.
    outputs: Vec<Vec<f32>>,
    slopes: Vec<Vec<f32>>,
}

impl Chain {
    fn new(layers: &[Layer], twin: &DiffTwin) -> Self {
        let padded = |size: usize| vec![0.0; size.next_multiple_of(PANEL)];
        let inputs = layers.first().map_or(0, Layer::columns);
        let sizes = std::iter::once(inputs).chain(layers.iter().map(Layer::rows));
        let outputs: Vec<Vec<f32>> = sizes.map(padded).collect();
        let turn = |layer: &Layer| {
            let (weights, _) = layer.unpack();
            let (rows, columns) = (layer.rows(), layer.columns());
            let mut turned = vec![0.0; weights.len()];
            for row in 0..rows {
                for column in 0..columns {
                    turned[column * rows + row] = weights[row * columns + column];
                }
            }
            Layer::pack(&turned, &vec![0.0; columns], rows, Activation::None, twin.precision)
                .expect("weights that were packed once fit")
        };
        Self { transposed: layers.iter().map(turn).collect(), slopes: outputs.clone(), outputs }
    }

    fn forward(&mut self, kernel: Kernel, layers: &[Layer], activation: HiddenActivation) -> &[f32] {
        for (index, layer) in layers.iter().enumerate() {
            let (before, after) = self.outputs.split_at_mut(index + 1);
            layer.apply(kernel, &before[index], &mut after[0]);
            if index + 1 < layers.len() {
                activate(activation, &mut after[0]);
            }
        }
        &self.outputs[layers.len()]
    }

    /// From the last of `slopes` to the first.
    fn backward(&mut self, kernel: Kernel, activation: HiddenActivation) -> &[f32] {
        for index in (0..self.transposed.len()).rev() {
            let (before, after) = self.slopes.split_at_mut(index + 1);
            self.transposed[index].apply(kernel, &after[0], &mut before[index]);
            if index > 0 {
                let through = before[index].iter_mut().zip(&self.outputs[index]);
                through.for_each(|(slope, y)| *slope *= slope_of(activation, *y));
            }
        }
        &self.slopes[0]
    }

    /// Many rows of derivatives at once.
    fn backward_rows(&self, kernel: Kernel, activation: HiddenActivation, rows: &mut Rows) {
        rows.back(kernel, &self.transposed, &self.outputs, |y| slope_of(activation, y));
    }

    fn last_slopes(&mut self) -> &mut [f32] {
        self.slopes.last_mut().expect("inputs at least")
    }
}

/// The derivative of an activation by the value that it gave.
fn slope_of(activation: HiddenActivation, y: f32) -> f32 {
    match activation {
        HiddenActivation::Tanh => 1.0 - y * y,
        HiddenActivation::Relu => f32::from(u8::from(y > 0.0)),
    }
}

/// The blend of a vertex's bones, from rest.
fn blend(vertex: usize, weights: &SkinWeights, rest: &[Affine3A], bones: &[Affine3A]) -> Affine3A {
    let mut sum = Affine3A::from_mat3_translation(understudy_core::Mat3::ZERO, Vec3::ZERO);
    for (bone, weight) in weights.row(vertex) {
        let matrix = bones[bone] * rest[bone];
        sum.matrix3 += matrix.matrix3 * weight;
        sum.translation += matrix.translation * weight;
    }
    sum
}

impl GradientSpace {
    /// Memory for a twin.
    pub fn new(twin: &DiffTwin) -> Self {
        let one = |layer: &Layer| Chain::new(std::slice::from_ref(layer), twin);
        let features = twin.features.inputs.len();
        let skin = twin.skin.as_ref();
        Self {
            kernel: Kernel::detect(),
            features: vec![0.0; features.next_multiple_of(PANEL)],
            by_features: vec![0.0; features],
            differential: Chain::new(&twin.differential, twin),
            anchors: twin.anchors.iter().map(|anchor| Chain::new(&anchor.layers, twin)).collect(),
            subspace: twin.subspace.as_ref().map(one),
            linear: twin.linear.as_ref().map(one),
            mixes: twin.blocks.iter().map(|block| block.mix.as_ref().map(one)).collect(),
            blocks: twin.blocks.iter().map(|block| one(&block.decode)).collect(),
            skin: skin.map(|skin| skin.weights.unpack(twin.vertex_count, twin.bone_count()).1),
            by_coefficients: vec![0.0; twin.rank.next_multiple_of(PANEL)],
            vertices: vec![Vec3::ZERO; twin.vertex_count],
            by_vertices: vec![Vec3::ZERO; twin.vertex_count],
            places: vec![Vec3::ZERO; if skin.is_some() { twin.vertex_count } else { 0 }],
            by_relative: vec![[0.0; BONE_INPUTS]; twin.bone_count()],
            by_row_coefficients: Rows::default(),
            rows: Rows::default(),
            anchor_rows: Rows::default(),
        }
    }
}

impl DiffTwin {
    pub(super) fn gradient(
        &self,
        bones: &[Affine3A],
        controls: &[f32],
        space: &mut GradientSpace,
        loss: &mut crate::player::Loss<'_>,
        (mut by_bones, by_controls): (Option<&mut [Affine3A]>, &mut [f32]),
    ) -> Result<(), PoseError> {
        check_count("derivatives by controls", by_controls.len(), self.header.inputs.controls.len())?;
        self.forward(bones, controls, space)?;
        let GradientSpace { kernel, by_features, differential, anchors, .. } = space;
        let (kernel, activation) = (*kernel, self.activation);
        let skin = space.skin.as_ref().zip(self.skin.as_ref().map(|skin| &skin.inverse_rest[..]));
        space.by_vertices.fill(Vec3::ZERO);
        loss(&space.vertices, &mut space.by_vertices);
        if let Some(by_bones) = &mut by_bones {
            check_count("derivatives by bones", by_bones.len(), bones.len())?;
            by_bones.fill(Affine3A::ZERO);
        }
        if let (Some(by_bones), Some((weights, rest))) = (&mut by_bones, skin) {
            for (vertex, (slope, place)) in space.by_vertices.iter().zip(&space.places).enumerate() {
                for (bone, weight) in weights.row(vertex) {
                    let (own, slope) = (rest[bone].transform_point3(*place), (*slope * weight).to_vec3a());
                    let by = &mut by_bones[bone];
                    by.matrix3 += Mat3A::from_cols(slope * own.x, slope * own.y, slope * own.z);
                    by.translation += slope;
                }
            }
        }
        if let Some((weights, rest)) = skin {
            for (vertex, slope) in space.by_vertices.iter_mut().enumerate() {
                *slope =
                    Vec3::from(blend(vertex, weights, rest, bones).matrix3.transpose() * (*slope).to_vec3a());
            }
        }
        space.by_coefficients.fill(0.0);
        let chains = space.blocks.iter_mut().zip(&mut space.mixes);
        for ((chain, mix), slopes) in chains.zip(space.by_vertices.chunks(BLOCK_VERTICES)) {
            let last = chain.last_slopes();
            last.fill(0.0);
            for (vertex, slope) in slopes.iter().enumerate() {
                (0..3).for_each(|axis| last[row_of(vertex, axis)] = slope[axis]);
            }
            let mut own = chain.backward(kernel, activation);
            if let Some(mix) = mix {
                mix.last_slopes().copy_from_slice(own);
                own = mix.backward(kernel, activation);
            }
            space.by_coefficients.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        differential.last_slopes().copy_from_slice(&space.by_coefficients);
        let own = differential.backward(kernel, activation);
        by_features.copy_from_slice(&own[..self.features.inputs.len()]);
        if let Some(chain) = &mut space.linear {
            chain.last_slopes().copy_from_slice(&space.by_coefficients);
            let own = chain.backward(kernel, activation);
            by_features.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        if let Some(subspace) = &mut space.subspace {
            subspace.last_slopes().copy_from_slice(&space.by_coefficients);
            let by_anchors = subspace.backward(kernel, activation);
            for (index, (chain, anchor)) in anchors.iter_mut().zip(&self.anchors).enumerate() {
                chain.last_slopes()[..3].copy_from_slice(&by_anchors[3 * index..][..3]);
                let own = chain.backward(kernel, activation);
                let slots = anchor.features.iter().zip(own);
                slots.for_each(|(feature, slope)| by_features[*feature as usize] += slope);
            }
        }
        by_controls.fill(0.0);
        let first_control = bones.len() * BONE_INPUTS;
        space.by_relative.fill([0.0; BONE_INPUTS]);
        for ((input, scale), slope) in self.features.inputs.iter().zip(&self.features.scale).zip(by_features)
        {
            let input = *input as usize;
            match input.checked_sub(first_control) {
                Some(control) => by_controls[control] += *slope * scale,
                None => space.by_relative[input / BONE_INPUTS][input % BONE_INPUTS] += *slope * scale,
            }
        }
        if let Some(by_bones) = by_bones {
            // Of `P⁻¹ B` with the parent `P`.
            for (bone, parent) in &self.seen_bones {
                let by = Affine3A::from_cols_array(&space.by_relative[*bone]);
                let into = bones[*parent].inverse();
                let relative = into * bones[*bone];
                let back = into.matrix3.transpose();
                let (matrix, place) = (back * by.matrix3, back * by.translation);
                by_bones[*bone].matrix3 += matrix;
                by_bones[*bone].translation += place;
                let at = relative.translation;
                let outer = Mat3A::from_cols(place * at.x, place * at.y, place * at.z);
                by_bones[*parent].matrix3 -= matrix * relative.matrix3.transpose() + outer;
                by_bones[*parent].translation -= place;
            }
        }
        Ok(())
    }

    /// Moves the vertices and remembers what the way back needs.
    fn forward(
        &self,
        bones: &[Affine3A],
        controls: &[f32],
        space: &mut GradientSpace,
    ) -> Result<(), PoseError> {
        check_count("bones of the pose", bones.len(), self.bone_count())?;
        check_count("controls of the pose", controls.len(), self.header.inputs.controls.len())?;
        check_finite("bones of the pose", bones.iter().map(|b| b.is_finite()))?;
        check_finite("controls of the pose", controls.iter().map(|c| c.is_finite()))?;
        let GradientSpace { kernel, features, differential, anchors, .. } = space;
        let (kernel, activation) = (*kernel, self.activation);
        self.fill_features(bones, controls, features);
        differential.outputs[0].copy_from_slice(features);
        differential.forward(kernel, &self.differential, activation);
        for (index, (chain, anchor)) in anchors.iter_mut().zip(&self.anchors).enumerate() {
            let slots = chain.outputs[0].iter_mut().zip(&anchor.features);
            slots.for_each(|(slot, feature)| *slot = features[*feature as usize]);
            let moved = chain.forward(kernel, &anchor.layers, activation);
            if let Some(subspace) = &mut space.subspace {
                subspace.outputs[0][3 * index..][..3].copy_from_slice(&moved[..3]);
            }
        }
        let last = differential.outputs.last().expect("inputs at least");
        space.by_coefficients.copy_from_slice(last);
        if let (Some(chain), Some(layer)) = (&mut space.subspace, &self.subspace) {
            let added = chain.forward(kernel, std::slice::from_ref(layer), activation);
            space.by_coefficients.iter_mut().zip(added).for_each(|(sum, added)| *sum += added);
        }
        if let (Some(chain), Some(layer)) = (&mut space.linear, &self.linear) {
            chain.outputs[0].copy_from_slice(features);
            let added = chain.forward(kernel, std::slice::from_ref(layer), activation);
            space.by_coefficients.iter_mut().zip(added).for_each(|(sum, added)| *sum += added);
        }
        let chains = space.blocks.iter_mut().zip(&mut space.mixes);
        for (((chain, mix), block), out) in
            chains.zip(&self.blocks).zip(space.vertices.chunks_mut(BLOCK_VERTICES))
        {
            match (mix, &block.mix) {
                (Some(mix), Some(layer)) => {
                    mix.outputs[0].copy_from_slice(&space.by_coefficients);
                    let own = mix.forward(kernel, std::slice::from_ref(layer), activation);
                    chain.outputs[0].copy_from_slice(own);
                }
                _ => chain.outputs[0].copy_from_slice(&space.by_coefficients),
            }
            unpack_places(chain.forward(kernel, std::slice::from_ref(&block.decode), activation), out);
        }
        let skin = space.skin.as_ref().zip(self.skin.as_ref().map(|skin| &skin.inverse_rest[..]));
        if let Some((weights, rest)) = skin {
            space.places.copy_from_slice(&space.vertices);
            for (vertex, place) in space.vertices.iter_mut().enumerate() {
                *place = blend(vertex, weights, rest, bones).transform_point3(*place);
            }
        }
        Ok(())
    }

    /// Of the first vertices, as many as there are: where they are, and their derivatives by the controls, three rows each.
    pub(super) fn jacobian(
        &self,
        bones: &[Affine3A],
        controls: &[f32],
        space: &mut GradientSpace,
        vertices: &mut [Vec3],
        by_controls: &mut [f32],
    ) -> Result<(), PoseError> {
        self.forward(bones, controls, space)?;
        let (width, count) = (controls.len(), vertices.len());
        check_count("derivatives by controls", by_controls.len(), 3 * count * width)?;
        vertices.copy_from_slice(&space.vertices[..count]);
        by_controls.fill(0.0);
        let (kernel, activation) = (space.kernel, self.activation);
        let skin = space.skin.as_ref().zip(self.skin.as_ref().map(|skin| &skin.inverse_rest[..]));
        let GradientSpace { by_row_coefficients: coefficients, rows, anchor_rows, .. } = space;
        coefficients.begin(space.by_coefficients.len());
        for (block, (chain, mix)) in space.blocks.iter().zip(&space.mixes).enumerate() {
            let first = block * BLOCK_VERTICES;
            rows.begin(chain.outputs.last().map_or(0, Vec::len));
            for vertex in first..count.min(first + BLOCK_VERTICES) {
                let back =
                    skin.map(|(weights, rest)| blend(vertex, weights, rest, bones).matrix3.transpose());
                for axis in 0..3 {
                    let slope = back.map_or(Vec3::AXES[axis], |back| back.col(axis).into());
                    let row = rows.add(3 * vertex + axis);
                    (0..3).for_each(|of| row[row_of(vertex - first, of)] = slope[of]);
                }
            }
            chain.backward_rows(kernel, activation, rows);
            if let Some(mix) = mix {
                mix.backward_rows(kernel, activation, rows);
            }
            rows.iter().for_each(|(row, slopes)| coefficients.add(row).copy_from_slice(slopes));
        }
        let first_control = bones.len() * BONE_INPUTS;
        let (inputs, scale) = (&self.features.inputs, &self.features.scale);
        let mut add = |row: usize, feature: usize, slope: f32| {
            if let Some(control) = (inputs[feature] as usize).checked_sub(first_control) {
                by_controls[row * width + control] += slope * scale[feature];
            }
        };
        for chain in std::iter::once(&space.differential).chain(&space.linear) {
            rows.copy(coefficients);
            chain.backward_rows(kernel, activation, rows);
            for (row, slopes) in rows.iter() {
                slopes.iter().take(inputs.len()).enumerate().for_each(|(f, slope)| add(row, f, *slope));
            }
        }
        if let Some(subspace) = &space.subspace {
            rows.copy(coefficients);
            subspace.backward_rows(kernel, activation, rows);
            for (index, (chain, anchor)) in space.anchors.iter().zip(&self.anchors).enumerate() {
                anchor_rows.begin(chain.outputs.last().map_or(0, Vec::len));
                for (row, slopes) in rows.iter() {
                    anchor_rows.add(row)[..3].copy_from_slice(&slopes[3 * index..][..3]);
                }
                chain.backward_rows(kernel, activation, anchor_rows);
                for (row, slopes) in anchor_rows.iter() {
                    let slots = anchor.features.iter().zip(slopes);
                    slots.for_each(|(feature, slope)| add(row, *feature as usize, *slope));
                }
            }
        }
        Ok(())
    }
}
