//! Evaluation of a differential twin: one pose or a crowd, on one thread or several, without allocating.

use super::super::shared::OutputPointer;
use super::super::skinning::{LANES, NUMBERS, rows};
use super::{BLOCK_VERTICES, BONE_INPUTS, Block, DiffTwin, HiddenActivation};
use crate::PoseError;
use crate::dense::{Kernel, Layer, PANEL};
use crate::error::{check_count, check_finite};
use crate::workers::Workers;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use understudy_core::{Affine3A, Vec3};

/// Poses of a crowd that go through the networks together: a block of vertices of so many poses stays in the
/// second-level cache.
const BLOCK_POSES: usize = 64;

/// Memory for evaluating a twin, made once, and used with no other twin: a [`Player`](crate::Player) owns both.
pub(super) struct Workspace {
    kernel: Kernel,
    block: usize,
    /// `[block × features]`, of a stride that is a whole number of panels.
    features: Vec<f32>,
    feature_stride: usize,
    /// The differential network first, then runs of anchors.
    networks: Vec<Mutex<Networks>>,
    /// Displacements of the anchors, `[block × anchor_stride]`.
    anchors: Vec<f32>,
    anchor_stride: usize,
    /// `[block × rank_stride]`, and what the anchors add.
    coefficients: Vec<f32>,
    added: Vec<f32>,
    rank_stride: usize,
    panel: Vec<f32>,
    /// One for each run of vertices.
    decoders: Vec<Mutex<Decoding>>,
    /// Rest → pose of each bone by rows, `[block × J]`.
    skinning_matrices: Vec<[f32; 12]>,
}

/// Some networks and the memory to run them.
struct Networks {
    /// Which anchors; `None` is the differential network.
    anchors: Option<Range<usize>>,
    /// Two buffers that layers read and write in turn, `[block × stride]`.
    buffers: [Vec<f32>; 2],
    stride: usize,
    panel: Vec<f32>,
    /// What came out, `[block × outputs]`.
    outputs: Vec<f32>,
}

/// Memory for the vertices of one block.
struct Decoding {
    /// Its own coefficients, `[block × stride]`; empty where they are those of the whole twin.
    own: Vec<f32>,
    own_stride: usize,
    /// `[block × rows]`.
    places: Vec<f32>,
    panel: Vec<f32>,
}

fn padded(size: usize) -> usize {
    size.next_multiple_of(PANEL)
}

impl Workspace {
    /// For one pose at a time, in `tasks` shares.
    pub fn new(twin: &DiffTwin, tasks: usize) -> Self {
        Self::with_block(twin, tasks, 1)
    }

    /// For many poses at a time.
    pub fn for_crowd(twin: &DiffTwin, tasks: usize) -> Self {
        Self::with_block(twin, tasks, BLOCK_POSES)
    }

    fn with_block(twin: &DiffTwin, tasks: usize, block: usize) -> Self {
        let feature_stride = padded(twin.features.inputs.len());
        let networks = |anchors: Option<Range<usize>>| {
            let layers: Vec<&Layer> = match &anchors {
                None => twin.differential.iter().collect(),
                Some(range) => twin.anchors[range.clone()].iter().flat_map(|anchor| &anchor.layers).collect(),
            };
            let widest = layers.iter().map(|layer| layer.padded_rows().max(padded(layer.columns()))).max();
            let stride = widest.unwrap_or(0);
            let outputs = anchors.as_ref().map_or(padded(twin.rank), |range| 3 * range.len());
            Mutex::new(Networks {
                anchors,
                buffers: [vec![0.0; block * stride], vec![0.0; block * stride]],
                stride,
                panel: vec![0.0; layers.iter().map(|layer| layer.working_size()).max().unwrap_or(0)],
                outputs: vec![0.0; block * outputs],
            })
        };
        let (count, shares) = (twin.anchors.len(), tasks.max(1).min(twin.anchors.len().max(1)));
        let runs = (0..shares).map(|share| count * share / shares..count * (share + 1) / shares);
        let runs = runs.filter(|run| !run.is_empty()).map(Some);
        let decoding = |Block { mix, decode }: &Block| {
            let both = mix.iter().chain([decode]).map(Layer::working_size).max().unwrap_or(0);
            let own_stride = mix.as_ref().map_or(0, Layer::padded_rows);
            Mutex::new(Decoding {
                own: vec![0.0; block * own_stride],
                own_stride,
                places: vec![0.0; block * decode.padded_rows()],
                panel: vec![0.0; if block > 1 { both } else { 0 }],
            })
        };
        let (anchor_stride, rank_stride) = (padded(3 * count), padded(twin.rank));
        Self {
            kernel: Kernel::detect(),
            block,
            features: vec![0.0; block * feature_stride],
            feature_stride,
            networks: std::iter::once(None).chain(runs).map(networks).collect(),
            anchors: vec![0.0; block * anchor_stride],
            anchor_stride,
            coefficients: vec![0.0; block * rank_stride],
            added: vec![0.0; block * rank_stride],
            rank_stride,
            panel: {
                let both = twin.subspace.iter().chain(&twin.linear).map(Layer::working_size);
                vec![0.0; both.max().unwrap_or(0)]
            },
            decoders: twin.blocks.iter().map(decoding).collect(),
            skinning_matrices: vec![[0.0; 12]; block * twin.bone_count()],
        }
    }

    /// Uses another kernel than the fastest.
    #[cfg(test)]
    pub fn with_kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }
}

/// Many poses, or one, through a layer.
fn apply(
    layer: &Layer,
    kernel: Kernel,
    poses: usize,
    (x, x_stride): (&[f32], usize),
    (y, y_stride): (&mut [f32], usize),
    panel: &mut [f32],
) {
    match poses {
        1 => layer.apply(kernel, x, y),
        _ => layer.apply_batch(kernel, poses, x, x_stride, y, y_stride, panel),
    }
}

/// What stands between two layers where the layer itself has it not.
pub(super) fn activate(activation: HiddenActivation, numbers: &mut [f32]) {
    if activation == HiddenActivation::Relu {
        numbers.iter_mut().for_each(|number| *number = number.max(0.0));
    }
}

impl DiffTwin {
    /// Moves the vertices for some poses, one after another in every array: `bones` `[P · J]`, `controls` `[P · C]`,
    /// `out` `[P · V]`.
    pub(super) fn evaluate(
        &self,
        bones: &[Affine3A],
        controls: &[f32],
        workspace: &mut Workspace,
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) -> Result<(), PoseError> {
        let (joints, vertices) = (self.bone_count(), self.vertex_count);
        let width = self.header.inputs.controls.len();
        let poses = if workspace.block == 1 { 1 } else { out.len().checked_div(vertices).unwrap_or(0) };
        check_count("vertices", out.len(), poses * vertices)?;
        check_count("bones of the pose", bones.len(), poses * joints)?;
        check_count("controls of the pose", controls.len(), poses * width)?;
        check_finite("bones of the pose", bones.iter().map(|b| b.is_finite()))?;
        check_finite("controls of the pose", controls.iter().map(|c| c.is_finite()))?;
        for first in (0..poses).step_by(workspace.block) {
            let end = poses.min(first + workspace.block);
            let bones = &bones[first * joints..end * joints];
            let controls = &controls[first * width..end * width];
            let out = &mut out[first * vertices..end * vertices];
            self.block(bones, controls, end - first, workspace, workers, out);
        }
        Ok(())
    }

    fn block(
        &self,
        bones: &[Affine3A],
        controls: &[f32],
        poses: usize,
        workspace: &mut Workspace,
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) {
        let Workspace { kernel, features, feature_stride, networks, anchors, anchor_stride, .. } = workspace;
        let (kernel, joints, width) = (*kernel, self.bone_count(), self.header.inputs.controls.len());
        for (pose, row) in features.chunks_exact_mut((*feature_stride).max(1)).enumerate().take(poses) {
            self.fill_features(&bones[pose * joints..][..joints], &controls[pose * width..][..width], row);
        }
        let run = |tasks: usize, job: &(dyn Fn(usize) + Sync)| match workers {
            Some(workers) => workers.run(tasks, job),
            None => (0..tasks).for_each(job),
        };
        let (seen, stride) = (&features[..], *feature_stride);
        let lock = |task: usize| networks[task].lock().unwrap_or_else(PoisonError::into_inner);
        run(networks.len(), &|task| lock(task).run(self, kernel, poses, seen, stride));
        for task in 0..networks.len() {
            let done = lock(task);
            for pose in 0..poses {
                match &done.anchors {
                    None => workspace.coefficients[pose * workspace.rank_stride..][..workspace.rank_stride]
                        .copy_from_slice(
                            &done.outputs[pose * workspace.rank_stride..][..workspace.rank_stride],
                        ),
                    Some(range) => {
                        let count = 3 * range.len();
                        anchors[pose * *anchor_stride + 3 * range.start..][..count]
                            .copy_from_slice(&done.outputs[pose * count..][..count]);
                    }
                }
            }
        }
        let stride = workspace.rank_stride;
        let sources = [(&self.subspace, &anchors[..], *anchor_stride), (&self.linear, seen, *feature_stride)];
        for (layer, source, source_stride) in sources {
            let Some(layer) = layer else { continue };
            let added = (&mut workspace.added[..], stride);
            apply(layer, kernel, poses, (source, source_stride), added, &mut workspace.panel);
            let both = workspace.coefficients.iter_mut().zip(&workspace.added);
            both.take(poses * stride).for_each(|(sum, added)| *sum += added);
        }
        if let Some(skin) = &self.skin {
            for (matrices, bones) in workspace
                .skinning_matrices
                .chunks_exact_mut(joints.max(1))
                .zip(bones.chunks_exact(joints.max(1)))
            {
                for (matrix, (bone, rest)) in matrices.iter_mut().zip(bones.iter().zip(&skin.inverse_rest)) {
                    *matrix = rows(&(*bone * *rest));
                }
            }
        }
        let (coefficients, decoders) = (&workspace.coefficients[..], &workspace.decoders[..]);
        let (matrices, vertices) = (&workspace.skinning_matrices[..], self.vertex_count);
        let out = OutputPointer(out.as_mut_ptr());
        run(self.blocks.len(), &|task| {
            let mut decoding = decoders[task].lock().unwrap_or_else(PoisonError::into_inner);
            let Decoding { own, own_stride, places, panel } = &mut *decoding;
            let (Block { mix, decode }, first) = (&self.blocks[task], task * BLOCK_VERTICES);
            let place_stride = decode.padded_rows();
            let mut source = (coefficients, stride);
            if let Some(mix) = mix {
                apply(mix, kernel, poses, source, (own, *own_stride), panel);
                source = (own, *own_stride);
            }
            apply(decode, kernel, poses, source, (places, place_stride), panel);
            let count = BLOCK_VERTICES.min(vertices - first);
            // The whole of it, not its field: a bare pointer is not shared between threads.
            let out: OutputPointer = { out };
            for pose in 0..poses {
                // SAFETY: `out` holds all vertices of all poses and is borrowed until the tasks have ended; these are of
                // this task's block alone.
                let own =
                    unsafe { std::slice::from_raw_parts_mut(out.0.add(pose * vertices + first), count) };
                let places = &places[pose * place_stride..][..count.div_ceil(LANES) * NUMBERS];
                match &self.skin {
                    None => unpack_places(places, own),
                    Some(skin) => {
                        own.fill(Vec3::ZERO);
                        let panels = first / LANES..(first + count).div_ceil(LANES);
                        let matrices = &matrices[pose * joints..][..joints];
                        skin.weights.add_places(kernel, panels, places, matrices, own);
                    }
                }
            }
        });
    }

    /// What the networks see of a pose (eq. 9).
    pub(super) fn fill_features(&self, bones: &[Affine3A], controls: &[f32], out: &mut [f32]) {
        let first_control = bones.len() * BONE_INPUTS;
        let mut seen = self.seen_bones.iter();
        // Features of one bone follow each other as a rule: its transform is worked out once.
        let mut last: Option<(usize, [f32; BONE_INPUTS])> = None;
        let parts = self.features.inputs.iter().zip(&self.features.mean).zip(&self.features.scale);
        for (slot, ((input, mean), scale)) in out.iter_mut().zip(parts) {
            let input = *input as usize;
            let value = if input >= first_control {
                controls[input - first_control]
            } else {
                let bone = input / BONE_INPUTS;
                if last.is_none_or(|(known, _)| known != bone) {
                    let parent = match seen.next() {
                        Some((next, parent)) if *next == bone => *parent,
                        _ => self.parent_of(bone),
                    };
                    last = Some((bone, (bones[parent].inverse() * bones[bone]).to_cols_array()));
                }
                last.map_or(0.0, |(_, numbers)| numbers[input % BONE_INPUTS])
            };
            *slot = (value - mean) * scale;
        }
    }

    fn parent_of(&self, bone: usize) -> usize {
        let place = self.seen_bones.binary_search_by_key(&bone, |(bone, _)| *bone);
        self.seen_bones[place.expect("bones of features were listed")].1
    }
}

/// From x of eight vertices, y, z, … to one vertex after another.
pub(super) fn unpack_places(places: &[f32], out: &mut [Vec3]) {
    for (panel, out) in places.chunks_exact(NUMBERS).zip(out.chunks_mut(LANES)) {
        for (lane, vertex) in out.iter_mut().enumerate() {
            *vertex = Vec3::new(panel[lane], panel[LANES + lane], panel[2 * LANES + lane]);
        }
    }
}

impl Networks {
    /// Runs all of them. `features`: `[poses × stride]`.
    fn run(&mut self, twin: &DiffTwin, kernel: Kernel, poses: usize, features: &[f32], stride: usize) {
        let Self { anchors, buffers: [front, back], stride: own, panel, outputs } = self;
        let own = *own;
        let mut network =
            |layers: &[Layer], of: &dyn Fn(usize, &mut [f32]), put: &mut dyn FnMut(usize, &[f32])| {
                let (mut read, mut write) = (&mut *front, &mut *back);
                for pose in 0..poses {
                    of(pose, &mut read[pose * own..][..own]);
                }
                for (index, layer) in layers.iter().enumerate() {
                    apply(layer, kernel, poses, (read, own), (write, own), panel);
                    if index + 1 < layers.len() {
                        activate(twin.activation, &mut write[..poses * own]);
                    }
                    std::mem::swap(&mut read, &mut write);
                }
                for pose in 0..poses {
                    put(pose, &read[pose * own..][..own]);
                }
            };
        match anchors {
            None => {
                let (count, size) = (twin.features.inputs.len(), padded(twin.rank));
                network(
                    &twin.differential,
                    &|pose, row| row[..count].copy_from_slice(&features[pose * stride..][..count]),
                    &mut |pose, row| outputs[pose * size..][..size].copy_from_slice(&row[..size]),
                );
            }
            Some(range) => {
                let size = 3 * range.len();
                for (place, anchor) in twin.anchors[range.clone()].iter().enumerate() {
                    network(
                        &anchor.layers,
                        &|pose, row| {
                            let own = &features[pose * stride..];
                            let slots = row.iter_mut().zip(&anchor.features);
                            slots.for_each(|(slot, feature)| *slot = own[*feature as usize]);
                        },
                        &mut |pose, row| {
                            outputs[pose * size + 3 * place..][..3].copy_from_slice(&row[..3]);
                        },
                    );
                }
            }
        }
    }
}
