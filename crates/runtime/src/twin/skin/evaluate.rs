//! Evaluation of a skin twin without allocating: the network of one pose or of a block of a crowd, then the bones, then
//! skinning on one thread or several.

use super::{BONE_NUMBERS, SkinTwin};
use crate::PoseError;
use crate::dense::Layer;
use crate::error::{check_count, check_finite};
use crate::workers::Workers;
use understudy_core::{Affine3A, Mat3, Vec3};

/// Poses of a crowd that go through the network together.
const BLOCK: usize = 32;

/// Memory for evaluating a twin, made once, and used with no other twin: a [`Player`](crate::Player) owns both.
pub(crate) struct Workspace {
    block: usize,
    tasks: usize,
    /// What the last layer reads: inputs, then the last hidden layer, `[block × feature_stride]`.
    features: Vec<f32>,
    feature_stride: usize,
    /// Hidden layers in turn, `[block × hidden_stride]`.
    buffers: [Vec<f32>; 2],
    hidden_stride: usize,
    /// Numbers of the bones, then coefficients, `[block × number_stride]`.
    numbers: Vec<f32>,
    number_stride: usize,
    /// Weights of a layer while a crowd goes through it.
    panel: Vec<f32>,
    /// Rest → pose of every bone by rows, `[block × B]`.
    matrices: Vec<[f32; BONE_NUMBERS]>,
    /// What the components add, padded.
    offsets: Vec<f32>,
    /// For the network of the frame.
    motion: [Vec<f32>; 2],
}

impl Workspace {
    /// For one pose at a time, in `tasks` shares.
    pub fn new(twin: &SkinTwin, tasks: usize) -> Self {
        Self::with_block(twin, tasks, 1)
    }

    /// For many poses at a time.
    pub fn for_crowd(twin: &SkinTwin, tasks: usize) -> Self {
        Self::with_block(twin, tasks, BLOCK)
    }

    fn with_block(twin: &SkinTwin, tasks: usize, block: usize) -> Self {
        // An odd number of cache lines: rows of a block must not fall on each other's lines.
        let stride = |size: usize| (size.div_ceil(16) | 1) * 16;
        let feature_stride = stride(twin.output.columns());
        let widest = twin.hidden.iter().map(Layer::padded_rows).max().unwrap_or(0);
        let hidden_stride = stride(widest);
        let number_stride = stride(twin.output.padded_rows());
        let layers = || twin.hidden.iter().chain([&twin.output]);
        let panel = if block > 1 { layers().map(Layer::working_size).max().unwrap_or(0) } else { 0 };
        let motion = twin.frame.as_ref().map_or(0, |frame| frame.buffer_len());
        Self {
            block,
            tasks: tasks.max(1),
            features: vec![0.0; block * feature_stride],
            feature_stride,
            buffers: [vec![0.0; block * hidden_stride], vec![0.0; block * hidden_stride]],
            hidden_stride,
            numbers: vec![0.0; block * number_stride],
            number_stride,
            panel: vec![0.0; panel],
            matrices: vec![[0.0; BONE_NUMBERS]; block * twin.bone_count()],
            offsets: vec![0.0; twin.components.as_ref().map_or(0, Layer::padded_rows)],
            motion: [vec![0.0; motion], vec![0.0; motion]],
        }
    }
}

impl SkinTwin {
    /// Moves the vertices for one pose. `controls`: as the header lists them. `out`: `[V]` cm.
    pub(crate) fn evaluate(
        &self,
        controls: &[f32],
        workspace: &mut Workspace,
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) -> Result<(), PoseError> {
        self.check_pose(controls, out.len())?;
        self.block(controls, 1, workspace, workers, out);
        Ok(())
    }

    /// Moves the vertices for many poses, one after another: `controls` `[P · C]`, `out` `[P · V]`.
    pub(crate) fn evaluate_crowd(
        &self,
        controls: &[f32],
        workspace: &mut Workspace,
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) -> Result<(), PoseError> {
        let (width, height) = (self.control_count(), self.vertex_count);
        let poses = out.len().checked_div(height).unwrap_or(0);
        check_count("vertices of the crowd", out.len(), poses * height)?;
        check_count("controls of the crowd", controls.len(), poses * width)?;
        check_finite("controls of the crowd", controls.iter().map(|c| c.is_finite()))?;
        let mut pose = 0;
        while pose < poses {
            let size = workspace.block.min(poses - pose);
            let controls = &controls[pose * width..(pose + size) * width];
            self.block(controls, size, workspace, workers, &mut out[pose * height..(pose + size) * height]);
            pose += size;
        }
        Ok(())
    }

    /// World transforms of its own bones in a pose, `[B]` cm, for an engine that skins on its own: each rests at its centre
    /// without rotation.
    pub fn bones(&self, controls: &[f32]) -> Result<Vec<Affine3A>, PoseError> {
        self.check_pose(controls, self.vertex_count)?;
        let mut workspace = Workspace::new(self, 1);
        self.network(controls, 1, &mut workspace);
        let whole = match &self.frame {
            None => Affine3A::IDENTITY,
            Some(net) => net.evaluate(self.kernel, controls, &mut workspace.motion).affine(),
        };
        let numbers = workspace.numbers.as_chunks::<BONE_NUMBERS>().0.iter().zip(&self.centres);
        let bone = |(numbers, centre): (&[f32; BONE_NUMBERS], &Vec3)| {
            whole * bone_motion(numbers, *centre) * Affine3A::from_translation(*centre)
        };
        Ok(numbers.map(bone).collect())
    }

    pub(super) fn check_pose(&self, controls: &[f32], vertices: usize) -> Result<(), PoseError> {
        check_count("controls of the pose", controls.len(), self.control_count())?;
        check_count("vertices", vertices, self.vertex_count)?;
        check_finite("controls of the pose", controls.iter().map(|c| c.is_finite()))
    }

    fn block(
        &self,
        controls: &[f32],
        poses: usize,
        workspace: &mut Workspace,
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) {
        let (kernel, width, bones) = (self.kernel, self.control_count(), self.bone_count());
        self.network(controls, poses, workspace);
        let Workspace { numbers, number_stride, matrices, offsets, motion, tasks, .. } = workspace;
        for pose in 0..poses {
            let numbers = &numbers[pose * *number_stride..][..self.output.rows()];
            let whole = match &self.frame {
                None => Affine3A::IDENTITY,
                Some(net) => net.evaluate(kernel, &controls[pose * width..][..width], motion).affine(),
            };
            let matrices = &mut matrices[pose * bones..(pose + 1) * bones];
            self.skinning_matrices(numbers, &whole, matrices);
            let out = &mut out[pose * self.vertex_count..(pose + 1) * self.vertex_count];
            match &self.components {
                None => out.fill(Vec3::ZERO),
                Some(basis) => {
                    basis.apply(kernel, &numbers[BONE_NUMBERS * bones..], offsets);
                    let turn = Mat3::from(whole.matrix3);
                    for (out, offset) in out.iter_mut().zip(offsets.chunks_exact(3)) {
                        *out = turn * Vec3::from_slice(offset);
                    }
                }
            }
        }
        self.skin.add_poses(
            kernel,
            (&matrices[..poses * bones], bones),
            (self.vertex_count, *tasks),
            workers,
            out,
        );
    }

    /// Numbers of the bones and coefficients of some poses.
    fn network(&self, controls: &[f32], poses: usize, workspace: &mut Workspace) {
        let Workspace {
            features, feature_stride, buffers, hidden_stride, numbers, number_stride, panel, ..
        } = workspace;
        let (kernel, width, inputs) = (self.kernel, self.control_count(), self.inputs.inputs.len());
        let (from, between, to) = (*feature_stride, *hidden_stride, *number_stride);
        for (pose, row) in features.chunks_exact_mut(from).enumerate().take(poses) {
            self.inputs.features(&controls[pose * width..][..width], &mut row[..inputs]);
        }
        let mut apply = |layer: &Layer, x: &[f32], x_stride: usize, y: &mut [f32], y_stride: usize| {
            if poses == 1 {
                layer.apply(kernel, x, y);
            } else {
                layer.apply_batch(kernel, poses, x, x_stride, y, y_stride, panel);
            }
        };
        let [front, back] = buffers;
        let (mut read, mut write) = (front, back);
        for (index, layer) in self.hidden.iter().enumerate() {
            let (x, stride) = if index == 0 { (&features[..], from) } else { (&read[..], between) };
            apply(layer, x, stride, write, between);
            std::mem::swap(&mut read, &mut write);
        }
        if let Some(last) = self.hidden.last() {
            for (row, hidden) in features.chunks_exact_mut(from).zip(read.chunks_exact(between)).take(poses) {
                row[inputs..inputs + last.rows()].copy_from_slice(&hidden[..last.rows()]);
            }
        }
        apply(&self.output, features, from, numbers, to);
    }

    /// Rest → pose of every bone by rows: `F · (v ↦ (1 + A)(v − centre) + centre + t)`.
    pub(super) fn skinning_matrices(
        &self,
        numbers: &[f32],
        whole: &Affine3A,
        out: &mut [[f32; BONE_NUMBERS]],
    ) {
        let bones = numbers.as_chunks::<BONE_NUMBERS>().0.iter().zip(&self.centres);
        for (out, (numbers, centre)) in out.iter_mut().zip(bones) {
            *out = crate::twin::skinning::rows(&(*whole * bone_motion(numbers, *centre)));
        }
    }
}

/// Rest → pose of a bone before the motion of the whole.
pub(super) fn bone_motion(numbers: &[f32; BONE_NUMBERS], centre: Vec3) -> Affine3A {
    let n = numbers;
    let linear = Mat3::from_cols(
        Vec3::new(1.0 + n[0], n[4], n[8]),
        Vec3::new(n[1], 1.0 + n[5], n[9]),
        Vec3::new(n[2], n[6], 1.0 + n[10]),
    );
    let shift = centre + Vec3::new(n[3], n[7], n[11]) - linear * centre;
    Affine3A::from_mat3_translation(linear, shift)
}
