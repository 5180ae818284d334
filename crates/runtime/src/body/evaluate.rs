//! Evaluation of a body twin: one pose or a crowd, on one thread or several, without allocating.

use super::{BONE_INPUTS, BodyTwin, Group, TwinError};
use crate::dense::{Kernel, PANEL};
use crate::workers::Workers;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use understudy_core::{Affine3A, Vec3};

/// Poses of a crowd that go through a network together: eight tiles of six, small enough that inputs
/// and outputs of a layer stay in the second-level cache.
const BLOCK: usize = 48;

/// Memory for evaluating a twin, made once. Belongs to the twin that it was made for.
pub struct Workspace {
    kernel: Kernel,
    /// `[block × inputs]`.
    inputs: Vec<f32>,
    input_count: usize,
    chunks: Vec<Mutex<Chunk>>,
    block: usize,
}

/// The share of one task: some groups, their buffers and their vertices.
struct Chunk {
    groups: Range<usize>,
    /// Two buffers that layers read and write in turn, `[block × stride]`.
    buffers: [Vec<f32>; 2],
    stride: usize,
    panel: Vec<f32>,
    /// Vertices of the groups, one after another, `[block × vertices]`.
    vertices: Vec<Vec3>,
    vertex_count: usize,
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
        let input_count = twin.bone_count() * BONE_INPUTS + twin.header().controls.len();
        let chunk = |groups: Range<usize>| {
            let members = || twin.groups[groups.clone()].iter();
            let widest =
                |g: &Group| g.layers.iter().map(|l| l.padded_rows().max(l.columns())).max().unwrap_or(0);
            let stride = members().map(widest).max().unwrap_or(0);
            let columns = members().flat_map(|g| &g.layers).map(|l| l.columns()).max().unwrap_or(0);
            let vertex_count = members().map(|g| g.local_rest.len()).sum();
            Mutex::new(Chunk {
                buffers: [vec![0.0; block * stride], vec![0.0; block * stride]],
                stride,
                panel: vec![0.0; columns * PANEL],
                vertices: vec![Vec3::ZERO; block * vertex_count],
                vertex_count,
                groups,
            })
        };
        let chunks = balance(twin, tasks.max(1)).into_iter().map(chunk).collect();
        Self { kernel: Kernel::detect(), inputs: vec![0.0; block * input_count], input_count, chunks, block }
    }

    /// Uses another kernel than the fastest: the reference, for tests.
    pub fn with_kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }
}

/// Cuts the groups into runs of about equal work.
fn balance(twin: &BodyTwin, tasks: usize) -> Vec<Range<usize>> {
    let work = |g: &Group| {
        g.layers.iter().map(|l| l.padded_rows() * l.columns()).sum::<usize>() + 50 * g.local_rest.len()
    };
    let whole: usize = twin.groups.iter().map(work).sum();
    let mut ranges = Vec::new();
    let (mut start, mut done) = (0, 0);
    for (index, group) in twin.groups.iter().enumerate() {
        done += work(group);
        if done * tasks >= whole * (ranges.len() + 1) || index + 1 == twin.groups.len() {
            ranges.push(start..index + 1);
            start = index + 1;
        }
    }
    ranges
}

impl BodyTwin {
    /// Moves the vertices for one pose. `bones`: world transforms, `[J]`. `controls`: the extra inputs.
    pub fn evaluate(
        &self,
        bones: &[Affine3A],
        controls: &[f32],
        workspace: &mut Workspace,
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) -> Result<(), TwinError> {
        self.check_pose(bones, controls, out.len())?;
        self.block(bones, controls, 1, workspace, workers, out);
        Ok(())
    }

    /// Moves the vertices for many poses, one after another in every array: `bones` `[B · J]`, `controls`
    /// `[B · C]`, `out` `[B · V]`.
    pub fn evaluate_crowd(
        &self,
        bones: &[Affine3A],
        controls: &[f32],
        workspace: &mut Workspace,
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) -> Result<(), TwinError> {
        let (joints, vertices, extra) =
            (self.bone_count(), self.vertex_count(), self.header().controls.len());
        let poses = out.len() / vertices;
        let count = |what: &str, got: usize, want: usize| {
            if got == want { Ok(()) } else { Err(TwinError::Count { what: what.into(), got, want }) }
        };
        count("vertices of the crowd", out.len(), poses * vertices)?;
        count("bones of the crowd", bones.len(), poses * joints)?;
        count("controls of the crowd", controls.len(), poses * extra)?;
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

    fn check_pose(&self, bones: &[Affine3A], controls: &[f32], vertices: usize) -> Result<(), TwinError> {
        let count = |what: &str, got: usize, want: usize| {
            if got == want { Ok(()) } else { Err(TwinError::Count { what: what.into(), got, want }) }
        };
        count("bones of the pose", bones.len(), self.bone_count())?;
        count("controls of the pose", controls.len(), self.header().controls.len())?;
        count("vertices", vertices, self.vertex_count())?;
        super::check_finite("bones of the pose", bones.iter().map(|b| b.is_finite()))?;
        super::check_finite("controls of the pose", controls.iter().map(|c| c.is_finite()))
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
        let Workspace { kernel, inputs, input_count, chunks, .. } = workspace;
        let (joints, extra) = (self.bone_count(), self.header().controls.len());
        for pose in 0..poses {
            let own = &mut inputs[pose * *input_count..(pose + 1) * *input_count];
            self.gather_inputs(&bones[pose * joints..][..joints], &controls[pose * extra..][..extra], own);
        }
        let (inputs, input_count, chunks, kernel) = (&*inputs, *input_count, &*chunks, *kernel);
        let job = |task: usize| {
            let mut chunk = chunks[task].lock().unwrap_or_else(PoisonError::into_inner);
            chunk.evaluate(self, kernel, inputs, input_count, bones, poses);
        };
        match workers {
            Some(workers) => workers.run(chunks.len(), &job),
            None => (0..chunks.len()).for_each(job),
        }
        for chunk in chunks {
            let chunk = chunk.lock().unwrap_or_else(PoisonError::into_inner);
            chunk.scatter(self, poses, out);
        }
        if let Some(base) = &self.parts.base {
            for pose in 0..poses {
                let bones = &bones[pose * joints..][..joints];
                let out = &mut out[pose * self.vertex_count()..][..self.vertex_count()];
                for (vertex, place) in out.iter_mut().enumerate() {
                    let rest = self.parts.rest_vertices[vertex];
                    for (bone, weight) in base.row(vertex) {
                        let local = self.inverse_rest[bone].transform_point3(rest);
                        *place += bones[bone].transform_point3(local) * weight;
                    }
                }
            }
        }
    }

    /// Each bone in its parent's frame, then the controls.
    fn gather_inputs(&self, bones: &[Affine3A], controls: &[f32], out: &mut [f32]) {
        for (bone, header) in self.header().bones.iter().enumerate() {
            let relative = match header.parent {
                Some(parent) => bones[parent].inverse() * bones[bone],
                None => bones[bone],
            };
            out[bone * BONE_INPUTS..(bone + 1) * BONE_INPUTS].copy_from_slice(&relative.to_cols_array());
        }
        out[bones.len() * BONE_INPUTS..].copy_from_slice(controls);
    }
}

impl Chunk {
    fn evaluate(
        &mut self,
        twin: &BodyTwin,
        kernel: Kernel,
        inputs: &[f32],
        input_count: usize,
        bones: &[Affine3A],
        poses: usize,
    ) {
        let joints = twin.bone_count();
        let mut first = 0;
        for index in self.groups.clone() {
            let (group, parts) = (&twin.groups[index], &twin.parts.groups[index]);
            let [front, back] = &mut self.buffers;
            for pose in 0..poses {
                let own = &inputs[pose * input_count..(pose + 1) * input_count];
                let row = &mut front[pose * self.stride..];
                for (slot, ((input, mean), scale)) in
                    row.iter_mut().zip(parts.inputs.iter().zip(&parts.mean).zip(&parts.scale))
                {
                    *slot = (own[*input as usize] - mean) * scale;
                }
            }
            let (mut read, mut write) = (front, back);
            for layer in &group.layers {
                if poses == 1 {
                    layer.apply(kernel, read, write);
                } else {
                    layer.apply_batch(kernel, poses, read, self.stride, write, self.stride, &mut self.panel);
                }
                std::mem::swap(&mut read, &mut write);
            }
            let count = group.local_rest.len();
            let with_base = twin.parts.base.is_some();
            for pose in 0..poses {
                let mut frame = bones[pose * joints + group.bone];
                if with_base {
                    // The base has the position; the network adds an offset in the bone's frame.
                    frame.translation = understudy_core::Vec3A::ZERO;
                }
                let offsets = &read[pose * self.stride..];
                let out = &mut self.vertices[pose * self.vertex_count + first..][..count];
                for (vertex, (place, rest)) in out.iter_mut().zip(&group.local_rest).enumerate() {
                    let offset = match group.layers.is_empty() {
                        true => Vec3::ZERO,
                        false => Vec3::from_slice(&offsets[3 * vertex..3 * vertex + 3]),
                    };
                    *place = frame.transform_point3(*rest + offset);
                }
            }
            first += count;
        }
    }

    fn scatter(&self, twin: &BodyTwin, poses: usize, out: &mut [Vec3]) {
        let whole = twin.vertex_count();
        for pose in 0..poses {
            let own = &self.vertices[pose * self.vertex_count..][..self.vertex_count];
            let targets = twin.parts.groups[self.groups.clone()].iter().flat_map(|group| &group.vertices);
            for (place, &vertex) in own.iter().zip(targets) {
                out[pose * whole + vertex as usize] = *place;
            }
        }
    }
}
