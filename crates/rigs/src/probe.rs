//! Which control moves which vertices and bones, found by moving controls of a rig that is otherwise a
//! black box. Start at [`probe`]; [`Prober`] does one control at a time for callers that show progress.

use crate::rig::{Rig, RigError, RigPose};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use understudy_core::{Affine3A, Controls, Random, Vec3A};

/// Why a rig could not be probed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ProbeError {
    /// A number of the configuration makes no sense.
    #[error("probing: the {what} is {value}")]
    BadNumber {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f32,
    },
    /// The rig failed.
    #[error(transparent)]
    Rig(#[from] RigError),
}

/// How thoroughly to look. The rest pose is always looked at as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProbeConfig {
    /// Random poses (truncated Gaussian) in which each control is moved: some effects, such as
    /// correctives, show only while other controls are on.
    pub poses: usize,
    /// Random values that each control takes in each pose, beside both ends of its range.
    pub random_steps: usize,
    /// The same seed gives the same poses and values.
    pub seed: u64,
    /// A vertex counts as moved beyond this, cm.
    pub vertex_threshold: f32,
    /// A bone counts as moved when its origin or a point `bone_lever` away on one of its axes moves
    /// beyond this, cm.
    pub bone_threshold: f32,
    /// Makes lengths of rotations, cm.
    pub bone_lever: f32,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        // 0.01 mm is fifty times what f32 rounding does to a point two metres from the origin.
        Self {
            poses: 5,
            random_steps: 2,
            seed: 1,
            vertex_threshold: 1e-3,
            bone_threshold: 1e-3,
            bone_lever: 10.0,
        }
    }
}

/// Strengths that are not negligible, in compressed rows: one row a control, columns ascending.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InfluenceMatrix {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    strengths: Vec<f32>,
    column_count: usize,
}

impl InfluenceMatrix {
    fn from_rows(rows: Vec<Vec<(u32, f32)>>, column_count: usize) -> Self {
        let mut out = Self { offsets: vec![0], columns: Vec::new(), strengths: Vec::new(), column_count };
        for row in rows {
            for (column, strength) in row {
                out.columns.push(column);
                out.strengths.push(strength);
            }
            out.offsets.push(out.columns.len());
        }
        out
    }

    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of columns.
    pub fn column_count(&self) -> usize {
        self.column_count
    }

    /// Number of entries.
    pub fn entry_count(&self) -> usize {
        self.columns.len()
    }

    /// Columns and strengths (cm) of a row, columns ascending.
    pub fn row(&self, row: usize) -> impl ExactSizeIterator<Item = (usize, f32)> + '_ {
        let range = self.offsets[row]..self.offsets[row + 1];
        let columns = self.columns[range.clone()].iter().map(|column| *column as usize);
        columns.zip(self.strengths[range].iter().copied())
    }

    /// The strength at a place; 0 where nothing moved.
    pub fn strength(&self, row: usize, column: usize) -> f32 {
        let range = self.offsets[row]..self.offsets[row + 1];
        let found = self.columns[range.clone()].binary_search(&(column as u32));
        found.map_or(0.0, |place| self.strengths[range.start + place])
    }

    /// Rows become columns: which controls move a vertex.
    pub fn transpose(&self) -> Self {
        let mut rows = vec![Vec::new(); self.column_count];
        for row in 0..self.row_count() {
            for (column, strength) in self.row(row) {
                rows[column].push((row as u32, strength));
            }
        }
        Self::from_rows(rows, self.row_count())
    }
}

/// What every control moves, and how far at most over all poses and steps, cm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Influence {
    /// Control × vertex: the largest displacement.
    pub vertices: InfluenceMatrix,
    /// Control × bone, in its parent's frame: which bones a control drives itself (a root's parent is
    /// the world).
    pub bones_local: InfluenceMatrix,
    /// Control × bone, in the world: the driven bones and everything that hangs on them.
    pub bones_global: InfluenceMatrix,
}

/// What one control moves: `(index, strength)`, indices ascending.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ControlInfluence {
    /// Vertices.
    pub vertices: Vec<(u32, f32)>,
    /// Bones in their parents' frames.
    pub bones_local: Vec<(u32, f32)>,
    /// Bones in the world.
    pub bones_global: Vec<(u32, f32)>,
}

/// A pose from which controls are moved.
struct Base {
    controls: Controls,
    pose: RigPose,
    local: Vec<Affine3A>,
}

/// A rig with its base poses evaluated.
pub struct Prober<'a> {
    rig: &'a dyn Rig,
    config: ProbeConfig,
    bases: Vec<Base>,
}

impl<'a> Prober<'a> {
    /// Checks the configuration and evaluates the base poses.
    pub fn prepare(rig: &'a dyn Rig, config: &ProbeConfig) -> Result<Self, ProbeError> {
        let lengths = [
            ("vertex threshold", config.vertex_threshold),
            ("bone threshold", config.bone_threshold),
            ("bone lever", config.bone_lever),
        ];
        for (what, value) in lengths {
            if !(value.is_finite() && value > 0.0) {
                return Err(ProbeError::BadNumber { what, value });
            }
        }
        let random_pose = |index: usize| {
            let mut random = Random::stream(config.seed, index as u64);
            Controls(rig.specs().iter().map(|spec| random.truncated_normal(spec.low, spec.high)).collect())
        };
        let poses = std::iter::once(rig.specs().defaults()).chain((1..=config.poses).map(random_pose));
        let bases = poses.map(|controls| {
            let mut pose = RigPose::default();
            rig.evaluate(&controls, &mut pose)?;
            let local = local_transforms(rig, &pose);
            Ok(Base { controls, pose, local })
        });
        Ok(Self { rig, config: config.clone(), bases: bases.collect::<Result<_, ProbeError>>()? })
    }

    /// Moves one control in every base pose.
    pub fn control(&self, control: usize) -> Result<ControlInfluence, ProbeError> {
        let spec = self.rig.specs().get(control);
        let bones = self.rig.skeleton().map_or(0, |skeleton| skeleton.len());
        let mut vertices = vec![0.0f32; self.rig.mesh().vertex_count()];
        let (mut bones_local, mut bones_global) = (vec![0.0f32; bones], vec![0.0f32; bones]);
        let mut moved = RigPose::default();
        for (index, base) in self.bases.iter().enumerate() {
            // Streams of steps must not repeat those of base poses, hence the other seed.
            let place = (index * self.rig.specs().len() + control) as u64;
            let mut random = Random::stream(self.config.seed ^ 0x5bd1_e995, place);
            let random_values = (0..self.config.random_steps).map(|_| random.uniform(spec.low, spec.high));
            let mut controls = base.controls.clone();
            for value in [spec.low, spec.high].into_iter().chain(random_values) {
                controls.0[control] = value;
                self.rig.evaluate(&controls, &mut moved)?;
                for ((most, a), b) in vertices.iter_mut().zip(&base.pose.vertices).zip(&moved.vertices) {
                    *most = most.max(a.distance_squared(*b));
                }
                let local = local_transforms(self.rig, &moved);
                self.compare_bones(&base.local, &local, &mut bones_local);
                self.compare_bones(&base.pose.global.0, &moved.global.0, &mut bones_global);
            }
        }
        vertices.iter_mut().for_each(|most| *most = most.sqrt());
        Ok(ControlInfluence {
            vertices: above(&vertices, self.config.vertex_threshold),
            bones_local: above(&bones_local, self.config.bone_threshold),
            bones_global: above(&bones_global, self.config.bone_threshold),
        })
    }

    /// Joins the rows of all controls, in order.
    pub fn join(&self, rows: Vec<ControlInfluence>) -> Influence {
        let vertex_count = self.rig.mesh().vertex_count();
        let bones = self.rig.skeleton().map_or(0, |skeleton| skeleton.len());
        let (mut vertices, mut local, mut global) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            vertices.push(row.vertices);
            local.push(row.bones_local);
            global.push(row.bones_global);
        }
        Influence {
            vertices: InfluenceMatrix::from_rows(vertices, vertex_count),
            bones_local: InfluenceMatrix::from_rows(local, bones),
            bones_global: InfluenceMatrix::from_rows(global, bones),
        }
    }

    fn compare_bones(&self, before: &[Affine3A], after: &[Affine3A], most: &mut [f32]) {
        let lever = self.config.bone_lever;
        for ((most, a), b) in most.iter_mut().zip(before).zip(after) {
            for point in [Vec3A::ZERO, Vec3A::X * lever, Vec3A::Y * lever, Vec3A::Z * lever] {
                *most = most.max(a.transform_point3a(point).distance(b.transform_point3a(point)));
            }
        }
    }
}

/// Probes every control, in parallel; the result does not depend on the number of threads.
pub fn probe(rig: &dyn Rig, config: &ProbeConfig) -> Result<Influence, ProbeError> {
    let prober = Prober::prepare(rig, config)?;
    let controls = (0..rig.specs().len()).into_par_iter();
    let rows = controls.map(|control| prober.control(control)).collect::<Result<Vec<_>, _>>()?;
    Ok(prober.join(rows))
}

fn local_transforms(rig: &dyn Rig, pose: &RigPose) -> Vec<Affine3A> {
    let mut local = Vec::new();
    if let Some(skeleton) = rig.skeleton() {
        skeleton.relative_to_parent(&pose.global, &mut local);
    }
    local
}

fn above(strengths: &[f32], threshold: f32) -> Vec<(u32, f32)> {
    (0u32..).zip(strengths.iter().copied()).filter(|(_, strength)| *strength > threshold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::{Deformer, Frame, Scratch, StackParts, StackRig};
    use understudy_core::{
        Bone, Channel, ControlSpec, ControlSpecs, Face, JointTransform, MeshParts, Skeleton, Vec3,
    };

    /// Vertices 0 to 2 follow bones 0 to 2; vertex 3 moves by `push`, vertex 4 by `push · pull`.
    struct Follow;

    impl Deformer for Follow {
        fn name(&self) -> &str {
            "follow"
        }

        fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], _scratch: &mut Scratch) {
            for bone in 0..3 {
                vertices[bone] = frame.matrices[bone].transform_point3(vertices[bone]);
            }
            vertices[3].x += frame.controls[2];
            vertices[4].x += frame.controls[2] * frame.controls[3];
        }
    }

    fn rig() -> StackRig {
        let bone = |index: usize| Bone {
            name: format!("bone{index}"),
            parent: index.checked_sub(1),
            rest: JointTransform::from_translation(Vec3::Y * 10.0),
        };
        let mesh = MeshParts {
            positions: (0..6).map(|i| Vec3::new(3.0, 10.0 * i as f32, 0.0)).collect(),
            faces: vec![Face::triangle(0, 1, 2), Face::triangle(3, 4, 5)],
            ..MeshParts::default()
        };
        let specs = ControlSpecs::new(vec![
            ControlSpec::joint("root", "bone0", Channel::TranslateX, -5.0, 5.0),
            ControlSpec::joint("middle", "bone1", Channel::RotateZ, -90.0, 90.0),
            ControlSpec::number("push", 0.0, 2.0, 0.0),
            ControlSpec::number("pull", 0.0, 1.0, 0.0),
            ControlSpec::number("dead", 0.0, 1.0, 0.0),
        ])
        .expect("valid specs");
        let skeleton = Skeleton::new((0..3).map(bone).collect()).expect("a chain");
        let parts = StackParts {
            skeleton: Some(skeleton),
            deformers: vec![Box::new(Follow)],
            ..StackParts::default()
        };
        StackRig::new("test", mesh.build().expect("valid mesh"), specs, parts).expect("parts fit")
    }

    fn columns(matrix: &InfluenceMatrix, row: usize) -> Vec<usize> {
        matrix.row(row).map(|(column, _)| column).collect()
    }

    #[test]
    fn influence_is_exact() {
        let influence = probe(&rig(), &ProbeConfig::default()).expect("a good rig");
        let vertices: Vec<_> = (0..5).map(|control| columns(&influence.vertices, control)).collect();
        assert_eq!(vertices, [vec![0, 1, 2], vec![1, 2], vec![3, 4], vec![4], vec![]]);
        let local: Vec<_> = (0..5).map(|control| columns(&influence.bones_local, control)).collect();
        assert_eq!(local, [vec![0], vec![1], vec![], vec![], vec![]]);
        let global: Vec<_> = (0..5).map(|control| columns(&influence.bones_global, control)).collect();
        assert_eq!(global, [vec![0, 1, 2], vec![1, 2], vec![], vec![], vec![]]);
        assert_eq!(influence.bones_local.column_count(), 3);
    }

    #[test]
    fn strengths_are_the_largest_displacements() {
        // At rest alone a step spans at most half the range of `root`, and `push · pull` stays zero.
        let config = ProbeConfig { poses: 0, ..ProbeConfig::default() };
        let rest = probe(&rig(), &config).expect("a good rig");
        assert!((rest.vertices.strength(0, 0) - 5.0).abs() < 1e-4);
        assert_eq!(rest.vertices.strength(2, 3), 2.0);
        assert_eq!(rest.vertices.strength(3, 4), 0.0);
        // A quarter turn with a lever of 10 cm.
        let turn = 10.0 * 2f32.sqrt();
        assert!((rest.bones_local.strength(1, 1) - turn).abs() < 1e-4);
        let more = probe(&rig(), &ProbeConfig::default()).expect("a good rig");
        assert!(more.vertices.strength(0, 0) > 5.0 && more.vertices.strength(0, 0) <= 10.0 + 1e-4);
    }

    #[test]
    fn transposing_twice_is_the_identity() {
        let influence = probe(&rig(), &ProbeConfig::default()).expect("a good rig");
        assert_eq!(columns(&influence.vertices.transpose(), 4), [2, 3]);
        assert_eq!(influence.vertices.transpose().transpose(), influence.vertices);
    }

    #[test]
    fn threads_do_not_matter() {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| probe(&rig(), &ProbeConfig::default())).expect("a good rig")
        };
        assert_eq!(with(1), with(3));
    }

    #[test]
    fn bad_numbers_are_named() {
        let config = ProbeConfig { vertex_threshold: f32::NAN, ..ProbeConfig::default() };
        let error = probe(&rig(), &config);
        assert!(matches!(error, Err(ProbeError::BadNumber { what: "vertex threshold", .. })));
    }
}
