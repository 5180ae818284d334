//! Dragging a skinned mesh by its handles (eqs. 26 and 27 of Yuan et al. 2019; Jacobson et al. 2012): positions of some
//! handles, or affine transforms where one shall turn, in; affine transforms of all and posed vertices out. Everything that does not depend on the drag is
//! multiplied out once: an update is a few small products, some rotations and linear blend skinning, and costs the same
//! however many examples the weights were learned from.
//!
//! ```
//! use understudy_core::{Face, MeshParts, SkinWeights, Vec3};
//! use understudy_runtime::drag::{DragRig, DragSettings};
//!
//! # let positions: Vec<Vec3> = (0..20).map(|i| Vec3::new((i / 2) as f32, (i % 2) as f32, 0.0)).collect();
//! # let faces = (0..9).map(|i| Face::quad(2 * i, 2 * i + 2, 2 * i + 3, 2 * i + 1)).collect();
//! # let mesh = MeshParts { positions, faces, ..MeshParts::default() }.build()?;
//! # let rows: Vec<_> = (0..20).map(|i| (i / 2) as f32 / 9.0).map(|w| vec![(0, 1.0 - w), (1, w)]).collect();
//! # let weights = SkinWeights::from_rows(&rows, 2)?;
//! let handles = [Vec3::new(0.0, 0.5, 0.0), Vec3::new(9.0, 0.5, 0.0)]; // where handles rest, one per bone of `weights`
//! let rig = DragRig::new(&mesh, &weights, &handles, &[0, 1], &DragSettings::default())?;
//! let mut drag = rig.start();
//! let mut vertices = vec![Vec3::ZERO; mesh.vertex_count()];
//! drag.update(&rig, &[handles[0], Vec3::new(9.0, 3.0, 0.0)], &mut vertices)?; // ten iterations
//! # assert!(vertices.iter().all(|v| v.is_finite()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod prepare;
mod rotation;
mod skinning;
#[cfg(test)]
mod tests;

use thiserror::Error;
use understudy_core::{Affine3A, Mat3, Vec3};

/// What a drag cannot be made of.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DragError {
    /// Arrays of different lengths.
    #[error("{got} {what}, but {want} are needed")]
    Count {
        /// Of what.
        what: &'static str,
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// A handle that does not exist, or is named twice.
    #[error("handle {handle} of {count} does not exist or is dragged twice")]
    Handle {
        /// Which.
        handle: usize,
        /// How many there are.
        count: usize,
    },
    /// Nothing to drag.
    #[error("no handle is dragged or held")]
    Nothing,
    /// A position that is not finite.
    #[error("the position of handle {handle} is not finite")]
    NotFinite {
        /// Which of the dragged ones.
        handle: usize,
    },
    /// A transform that is not finite.
    #[error("the transform of handle {handle} is not finite")]
    TransformNotFinite {
        /// Which of the turned ones.
        handle: usize,
    },
    /// The system cannot be solved.
    #[error("the handles leave the mesh undetermined")]
    Singular,
}

/// How to drag.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DragSettings {
    /// Iterations of rotations and transforms per update.
    pub iterations: usize,
    /// Groups of edges that share a rotation; `None` for two per handle, at least 6 and at most 60.
    pub groups: Option<usize>,
}

impl Default for DragSettings {
    fn default() -> Self {
        Self { iterations: 10, groups: None }
    }
}

/// Everything that does not depend on the drag.
#[derive(Debug, Clone)]
pub struct DragRig {
    iterations: usize,
    handles: usize,
    groups: usize,
    dragged: usize,
    turned: usize,
    /// Transforms from rotations, positions and given transforms: `T = S R + C c`,
    /// `[4 handles][3 groups + dragged + 4 turned]`.
    solve: Vec<f32>,
    /// Covariances from transforms, `[3 groups][4 handles]`.
    gather: Vec<f32>,
    skin: skinning::Skin,
    /// Centre and one over the size of the mesh: inside, it is as large as one.
    centre: Vec3,
    scale: f32,
}

/// The state of a drag: where the last update left off.
#[derive(Debug, Clone)]
pub struct Drag {
    rotations: Vec<Mat3>,
    /// `[3 groups + dragged + 4 turned][3]`.
    inputs: Vec<f32>,
    /// `[4 handles][3]`.
    transforms: Vec<f32>,
    matrices: Vec<Affine3A>,
}

impl DragRig {
    /// A drag from rest.
    pub fn start(&self) -> Drag {
        Drag {
            rotations: vec![Mat3::IDENTITY; self.groups],
            inputs: vec![0.0; 3 * (3 * self.groups + self.dragged + 4 * self.turned)],
            transforms: vec![0.0; 12 * self.handles],
            matrices: vec![Affine3A::IDENTITY; self.handles],
        }
    }

    /// Number of handles.
    pub fn handle_count(&self) -> usize {
        self.handles
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.skin.vertex_count()
    }
}

impl Drag {
    /// Moves dragged handles to `targets`, in the order in which they were named, and poses the mesh; allocates nothing.
    pub fn update(&mut self, rig: &DragRig, targets: &[Vec3], out: &mut [Vec3]) -> Result<(), DragError> {
        self.update_turned(rig, targets, &[], out)
    }

    /// The same of a rig with turned handles (see [`DragRig::with_turned`]): those take `transforms`, rest → posed, in
    /// the order in which they were named.
    pub fn update_turned(
        &mut self,
        rig: &DragRig,
        targets: &[Vec3],
        transforms: &[Affine3A],
        out: &mut [Vec3],
    ) -> Result<(), DragError> {
        if transforms.len() != rig.turned {
            return Err(DragError::Count { what: "transforms", got: transforms.len(), want: rig.turned });
        }
        if let Some(handle) = transforms.iter().position(|transform| !transform.is_finite()) {
            return Err(DragError::TransformNotFinite { handle });
        }
        if targets.len() != rig.dragged {
            return Err(DragError::Count { what: "positions", got: targets.len(), want: rig.dragged });
        }
        if out.len() != rig.vertex_count() {
            return Err(DragError::Count { what: "vertices", got: out.len(), want: rig.vertex_count() });
        }
        if let Some(handle) = targets.iter().position(|target| !target.is_finite()) {
            return Err(DragError::NotFinite { handle });
        }
        let (places, blocks) = self.inputs[9 * rig.groups..].split_at_mut(3 * rig.dragged);
        for (row, target) in places.chunks_exact_mut(3).zip(targets) {
            row.copy_from_slice(&((*target - rig.centre) * rig.scale).to_array());
        }
        for (block, transform) in blocks.chunks_exact_mut(12).zip(transforms) {
            // Rows for x, y, z and 1 of a mesh of unit size are columns of the matrix.
            let linear = Mat3::from(transform.matrix3);
            let shift = (transform.transform_point3(rig.centre) - rig.centre) * rig.scale;
            for (row, column) in
                block.chunks_exact_mut(3).zip([linear.x_axis, linear.y_axis, linear.z_axis, shift])
            {
                row.copy_from_slice(&column.to_array());
            }
        }
        for _ in 0..rig.iterations {
            self.place_handles(rig);
            self.turn_groups(rig);
        }
        self.place_handles(rig);
        for (matrix, t) in self.matrices.iter_mut().zip(self.transforms.chunks_exact(12)) {
            let column = |c: usize| Vec3::new(t[3 * c], t[3 * c + 1], t[3 * c + 2]);
            let linear = Mat3::from_cols(column(0), column(1), column(2));
            let shift = rig.centre + column(3) / rig.scale - linear * rig.centre;
            *matrix = Affine3A::from_mat3_translation(linear, shift);
        }
        rig.skin.pose(&self.matrices, out);
        Ok(())
    }

    /// Rest → posed of every handle after the last update.
    pub fn transforms(&self) -> &[Affine3A] {
        &self.matrices
    }

    /// `T = S R + C c`.
    fn place_handles(&mut self, rig: &DragRig) {
        for (input, rotation) in self.inputs.chunks_exact_mut(9).zip(&self.rotations) {
            // Rows of Rᵀ, one per coordinate of the rest pose.
            for (row, column) in [rotation.x_axis, rotation.y_axis, rotation.z_axis].iter().enumerate() {
                input[3 * row..3 * row + 3].copy_from_slice(&column.to_array());
            }
        }
        product(&rig.solve, &self.inputs, &mut self.transforms);
    }

    /// Rotations from `S_g = Σ w̃ e e'ᵀ`, which is linear in the transforms.
    fn turn_groups(&mut self, rig: &DragRig) {
        let inputs = &mut self.inputs[..9 * rig.groups];
        product(&rig.gather, &self.transforms, inputs);
        for (rotation, s) in self.rotations.iter_mut().zip(inputs.chunks_exact(9)) {
            let row = |r: usize| Vec3::new(s[3 * r], s[3 * r + 1], s[3 * r + 2]);
            *rotation = rotation::nearest(Mat3::from_cols(row(0), row(1), row(2)), *rotation);
        }
    }
}

/// `out = a · x`, `[rows][inner]` times `[inner][3]`.
fn product(a: &[f32], x: &[f32], out: &mut [f32]) {
    let inner = x.len() / 3;
    if inner == 0 {
        return;
    }
    for (row, out) in a.chunks_exact(inner).zip(out.chunks_exact_mut(3)) {
        // Four sums at a time: one would wait for itself.
        let mut sums = [[0.0f32; 3]; 4];
        let (quads, rest) = row.as_chunks::<4>();
        let (triples, last) = x.as_chunks::<12>();
        for (a, x) in quads.iter().zip(triples) {
            for k in 0..4 {
                for axis in 0..3 {
                    sums[k][axis] += a[k] * x[3 * k + axis];
                }
            }
        }
        for (a, x) in rest.iter().zip(last.chunks_exact(3)) {
            for axis in 0..3 {
                sums[0][axis] += a * x[axis];
            }
        }
        for axis in 0..3 {
            out[axis] = sums[0][axis] + sums[1][axis] + sums[2][axis] + sums[3][axis];
        }
    }
}
