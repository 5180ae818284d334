//! Evaluation of a body twin: one pose or a crowd, on one thread or several, without allocating.

use super::super::shared::OutputPointer;
use super::decoder::{Coefficients, rows};
use super::input_features::crowd::{BoneLanes, Lanes, Rows};
use super::input_features::{Frames, GroupPose, input_features};
use super::{BONE_INPUTS, BodyTwin, Group, InputFrame};
use crate::PoseError;
use crate::dense::{Kernel, Layer};
use crate::error::{check_count, check_finite};
use crate::large_pages::VertexBuffer;
use crate::workers::Workers;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use understudy_core::skeleton::rigid_frame;
use understudy_core::{Affine3A, Vec3, Vec3A};

/// Poses of a crowd that go through a network together: small enough that inputs and outputs of a layer stay in the
/// second-level cache, large enough that widening weights of 16 bits is a small part of the work.
pub const BLOCK: usize = 256;

/// Memory for evaluating a twin, made once, and used with no other twin: a [`Player`](crate::Player) owns both.
pub(crate) struct Workspace {
    kernel: Kernel,
    /// `[block × inputs]`.
    inputs: Vec<f32>,
    input_count: usize,
    /// Frames of the bones without scale and shear, where the twin wants them, `[block × J]`.
    frames: Vec<Affine3A>,
    /// The bones of a crowd, eight poses at a time.
    bone_lanes: BoneLanes,
    chunks: Vec<Mutex<Chunk>>,
    block: usize,
    /// Predictions of ghosts, `[block × ghosts]`.
    ghosts: VertexBuffer,
    /// Corrections at the seams, one buffer per pose of the block.
    corrections: Vec<Mutex<Vec<Vec3A>>>,
    /// Rest → pose of each bone, where there is a linear base, `[block × J]`.
    skinning_matrices: Vec<[f32; BONE_INPUTS]>,
}

/// The share of one task: some groups and their buffers.
struct Chunk {
    groups: Range<usize>,
    /// Two buffers that layers read and write in turn, `[block × stride]`.
    buffers: [Vec<f32>; 2],
    stride: usize,
    panel: Vec<f32>,
    /// Inputs of a group in eight poses.
    seen: Vec<Lanes>,
    /// The group's bone in every pose, `[block]`.
    frames: Vec<[f32; BONE_INPUTS]>,
}

impl Workspace {
    /// For one pose at a time, in `tasks` shares of about equal work.
    pub fn new(twin: &BodyTwin, tasks: usize) -> Self {
        Self::with_block(twin, tasks, 1)
    }

    /// For many poses at a time.
    pub fn for_crowd(twin: &BodyTwin, tasks: usize) -> Self {
        Self::with_block(twin, tasks, BLOCK)
    }

    fn with_block(twin: &BodyTwin, tasks: usize, block: usize) -> Self {
        let input_count = twin.bone_count() * BONE_INPUTS + twin.extra_count();
        let rigid = twin.rigid_frames;
        let chunk = |groups: Range<usize>| {
            let members = || twin.groups[groups.clone()].iter();
            let inputs = twin.groups[groups.clone()].iter().map(|g| g.inputs.len()).max();
            let widest = |g: &Group| g.layers.iter().map(|l| l.padded_rows().max(l.columns())).max();
            let widest = members().filter_map(widest).max().max(inputs).unwrap_or(0);
            // An odd number of cache lines: rows of a block must not fall on each other's lines.
            let stride = (widest.div_ceil(16) | 1) * 16;
            let columns = members().flat_map(|g| &g.layers).map(Layer::working_size).max().unwrap_or(0);
            let decoders = members().flat_map(|g| [g.decoder.working_size(), g.ghosts.working_size()]);
            Mutex::new(Chunk {
                buffers: [vec![0.0; block * stride], vec![0.0; block * stride]],
                stride,
                panel: vec![0.0; decoders.max().unwrap_or(0).max(columns)],
                seen: vec![Lanes::default(); if block > 1 { inputs.unwrap_or(0) } else { 0 }],
                frames: vec![[0.0; BONE_INPUTS]; block],
                groups,
            })
        };
        let chunks = balance(twin, tasks.max(1)).into_iter().map(chunk).collect();
        let corrected = twin.seams.as_ref().map_or(0, |(_, seams)| seams.working_size());
        let corrections = (0..block).map(|_| Mutex::new(vec![Vec3A::ZERO; corrected])).collect();
        Self {
            kernel: Kernel::detect(),
            inputs: vec![0.0; block * input_count],
            input_count,
            frames: vec![Affine3A::IDENTITY; if rigid { block * twin.bone_count() } else { 0 }],
            bone_lanes: if block > 1 {
                BoneLanes::new(block, twin.bone_count(), rigid)
            } else {
                BoneLanes::default()
            },
            chunks,
            block,
            ghosts: VertexBuffer::new(block * twin.ghosts),
            corrections,
            skinning_matrices: vec![
                [0.0; BONE_INPUTS];
                twin.base.skin().map_or(0, |_| block * twin.bone_count())
            ],
        }
    }

    /// Uses another kernel than the fastest.
    #[cfg(test)]
    pub fn with_kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }
}

/// Cuts the groups into runs of about equal work.
fn balance(twin: &BodyTwin, tasks: usize) -> Vec<Range<usize>> {
    let work = |index: usize| {
        let group = &twin.groups[index];
        let written = group.vertices.iter().map(Vec::len).sum::<usize>();
        group.multiply_adds() + 6 * group.inputs.len() + 16 * written
    };
    let whole: usize = (0..twin.groups.len()).map(work).sum();
    let mut ranges = Vec::new();
    let (mut start, mut done) = (0, 0);
    for index in 0..twin.groups.len() {
        done += work(index);
        if done * tasks >= whole * (ranges.len() + 1) || index + 1 == twin.groups.len() {
            ranges.push(start..index + 1);
            start = index + 1;
        }
    }
    ranges
}

impl BodyTwin {
    /// Moves the vertices for one pose. `bones`: world transforms, `[J]`. `controls`: the extra inputs.
    pub(crate) fn evaluate(
        &self,
        bones: &[Affine3A],
        controls: &[f32],
        workspace: &mut Workspace,
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) -> Result<(), PoseError> {
        self.check_pose(bones, controls, out.len())?;
        self.block(bones, controls, 1, workspace, workers, out);
        Ok(())
    }

    /// Moves the vertices for many poses, one after another in every array: `bones` `[B · J]`, `controls`
    /// `[B · C]`, `out` `[B · V]`, best a [`VertexBuffer`].
    pub(crate) fn evaluate_crowd(
        &self,
        bones: &[Affine3A],
        controls: &[f32],
        workspace: &mut Workspace,
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) -> Result<(), PoseError> {
        let (joints, vertices, extra) = (self.bone_count(), self.vertex_count(), self.extra_count());
        let poses = out.len().checked_div(vertices).unwrap_or(0);
        check_count("vertices of the crowd", out.len(), poses * vertices)?;
        check_count("bones of the crowd", bones.len(), poses * joints)?;
        check_count("controls of the crowd", controls.len(), poses * extra)?;
        for pose in 0..poses {
            let own = &controls[pose * extra..(pose + 1) * extra];
            self.check_pose(&bones[pose * joints..(pose + 1) * joints], own, vertices)?;
        }
        let mut pose = 0;
        while pose < poses {
            let size = workspace.block.min(poses - pose);
            let bones = &bones[pose * joints..(pose + size) * joints];
            let controls = &controls[pose * extra..(pose + size) * extra];
            self.block(
                bones,
                controls,
                size,
                workspace,
                workers,
                &mut out[pose * vertices..(pose + size) * vertices],
            );
            pose += size;
        }
        Ok(())
    }

    fn check_pose(&self, bones: &[Affine3A], controls: &[f32], vertices: usize) -> Result<(), PoseError> {
        check_count("bones of the pose", bones.len(), self.bone_count())?;
        check_count("controls of the pose", controls.len(), self.extra_count())?;
        check_count("vertices", vertices, self.vertex_count())?;
        check_finite("bones of the pose", bones.iter().map(|b| b.is_finite()))?;
        check_finite("controls of the pose", controls.iter().map(|c| c.is_finite()))
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
        let Workspace {
            kernel,
            inputs,
            input_count,
            chunks,
            frames,
            bone_lanes,
            ghosts,
            corrections,
            skinning_matrices,
            ..
        } = workspace;
        let (joints, extra, vertices) = (self.bone_count(), self.extra_count(), self.vertex_count());
        let rigid = self.rigid_frames;
        if rigid {
            frames.iter_mut().zip(bones).for_each(|(frame, bone)| *frame = rigid_frame(bone));
        }
        let frames = Frames { frames: if rigid { &frames[..bones.len()] } else { bones }, rigid };
        for pose in 0..poses {
            let own = &mut inputs[pose * *input_count..(pose + 1) * *input_count];
            let (controls, pose) = (&controls[pose * extra..][..extra], pose * joints..(pose + 1) * joints);
            let frames = Frames { frames: &frames.frames[pose.clone()], ..frames };
            self.gather_inputs(&bones[pose], frames, controls, own);
        }
        let bone_lanes =
            (poses > 1 && *kernel != Kernel::REFERENCE && self.frame == InputFrame::Group).then(|| {
                bone_lanes.fill(bones, frames);
                &*bone_lanes
            });
        let (inputs, input_count, chunks, kernel) = (&*inputs, *input_count, &*chunks, *kernel);
        let places = (OutputPointer(out.as_mut_ptr()), OutputPointer(ghosts.as_mut_ptr()));
        let job = |task: usize| {
            let mut chunk = chunks[task].lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: `out` holds all vertices of all poses and `ghosts` all ghosts, both are borrowed
            // until the tasks have ended, and no two tasks share a group.
            unsafe {
                chunk.evaluate(self, kernel, inputs, input_count, (bones, frames), bone_lanes, poses, places)
            };
        };
        match workers {
            Some(workers) => workers.run(chunks.len(), &job),
            None => (0..chunks.len()).for_each(job),
        }
        if let Some((_, seams)) = &self.seams {
            let (ghosts, corrections) = (&*ghosts, &*corrections);
            let out = OutputPointer(out.as_mut_ptr());
            let job = |pose: usize| {
                let mut corrections = corrections[pose].lock().unwrap_or_else(PoisonError::into_inner);
                // The whole of it, not its field: a bare pointer is not shared between threads.
                let out: OutputPointer = { out };
                // SAFETY: the vertices of one pose, which no other task touches.
                let own = unsafe { std::slice::from_raw_parts_mut(out.0.add(pose * vertices), vertices) };
                seams.apply(&ghosts[pose * self.ghosts..][..self.ghosts], &mut corrections, own);
            };
            match workers {
                Some(workers) => workers.run(poses, &job),
                None => (0..poses).for_each(job),
            }
        }
        if let Some(skin) = self.base.skin() {
            let each = joints.max(1);
            for (skinning_matrices, bones) in
                skinning_matrices.chunks_exact_mut(each).zip(bones.chunks_exact(each))
            {
                for (matrix, (bone, rest)) in
                    skinning_matrices.iter_mut().zip(bones.iter().zip(&self.inverse_rest))
                {
                    *matrix = rows(&(*bone * *rest));
                }
            }
            let matrices = (&skinning_matrices[..poses * joints], joints);
            skin.add_poses(kernel, matrices, (vertices, chunks.len()), workers, out);
        }
    }

    /// Each bone in its parent's frame where networks see it so, then the controls.
    fn gather_inputs(&self, bones: &[Affine3A], frames: Frames<'_>, controls: &[f32], out: &mut [f32]) {
        out[bones.len() * BONE_INPUTS..].copy_from_slice(controls);
        if self.frame != InputFrame::Parent {
            return;
        }
        for (bone, header) in self.header.inputs.bones.iter().enumerate() {
            let relative = match header.parent {
                Some(parent) => frames.to(parent) * bones[bone],
                None => bones[bone],
            };
            out[bone * BONE_INPUTS..(bone + 1) * BONE_INPUTS].copy_from_slice(&relative.to_cols_array());
        }
    }
}

impl Chunk {
    /// # Safety
    /// `places` are valid for writing all vertices and all ghosts of all poses, and nothing else accesses
    /// those of this chunk's groups meanwhile.
    unsafe fn evaluate(
        &mut self,
        twin: &BodyTwin,
        kernel: Kernel,
        inputs: &[f32],
        input_count: usize,
        (bones, frames): (&[Affine3A], Frames<'_>),
        bone_lanes: Option<&BoneLanes>,
        poses: usize,
        (out, ghosts): (OutputPointer, OutputPointer),
    ) {
        let joints = twin.bone_count();
        for index in self.groups.clone() {
            let group = &twin.groups[index];
            let [front, back] = &mut self.buffers;
            let (mut read, mut write) = (front, back);
            if group.decoder.columns() > 0 || !group.layers.is_empty() {
                let pose = |pose: usize| GroupPose {
                    inputs: &inputs[pose * input_count..(pose + 1) * input_count],
                    bones: &bones[pose * joints..(pose + 1) * joints],
                    frames: Frames { frames: &frames.frames[pose * joints..(pose + 1) * joints], ..frames },
                };
                match bone_lanes {
                    Some(bone_lanes) => {
                        let controls = Rows { numbers: inputs, stride: input_count };
                        let mut rows = Rows { numbers: &mut read[..], stride: self.stride };
                        bone_lanes.input_features(kernel, group, poses, &controls, &mut self.seen, &mut rows);
                    }
                    None => {
                        for (index, row) in read.chunks_mut(self.stride).enumerate().take(poses) {
                            input_features(twin.frame, group, pose(index), row);
                        }
                    }
                }
            }
            for layer in &group.layers {
                if poses == 1 {
                    layer.apply(kernel, read, write);
                } else {
                    layer.apply_batch(kernel, poses, read, self.stride, write, self.stride, &mut self.panel);
                }
                std::mem::swap(&mut read, &mut write);
            }
            for (pose, frame) in self.frames[..poses].iter_mut().enumerate() {
                let mut bone = frames.frames[pose * joints + group.bone];
                if twin.base.skin().is_some() {
                    // The base has the position; the network adds an offset in the bone's frame.
                    bone.translation = Vec3A::ZERO;
                }
                *frame = rows(&bone);
            }
            let coefficients =
                Coefficients { numbers: read, stride: self.stride, frames: &self.frames[..poses] };
            // SAFETY: targets were checked to be vertices and ghosts; the rest is promised by the caller.
            unsafe {
                group.decoder.apply(kernel, coefficients, out.0, twin.vertex_count(), &mut self.panel);
                group.ghosts.apply(kernel, coefficients, ghosts.0, twin.ghosts, &mut self.panel);
            }
        }
    }
}
