//! A blendshape rig with correctives of any level: product weights and sparse deltas.
//!
//! `f(w) = b₀ + Σ_i w_i b_i + Σ_{i,j} w_i w_j b_ij + Σ w_i w_j w_k b_ijk + …` (inverse-rig paper, eq. 5).

use glam::Vec3;
use thiserror::Error;

/// What is wrong with a blendshape rig or weights for it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BlendshapeError {
    /// A delta moves a vertex that does not exist, or the indices do not ascend.
    #[error("shape '{shape}' names vertex {vertex} out of order or beyond the {count} vertices")]
    Vertex {
        /// The shape.
        shape: String,
        /// The vertex it names.
        vertex: u32,
        /// How many vertices exist.
        count: usize,
    },
    /// A delta is not finite.
    #[error("shape '{shape}' moves vertex {vertex} by an amount that is not finite")]
    NonFinite {
        /// The shape.
        shape: String,
        /// The vertex.
        vertex: u32,
    },
    /// Two shapes of one name.
    #[error("two shapes are named '{name}'")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A corrective names fewer than two shapes, an unknown one, or one twice.
    #[error(
        "corrective {corrective} combines shapes {shapes:?}; it needs two or more different ones below {count}"
    )]
    Corrective {
        /// The corrective.
        corrective: usize,
        /// What it combines.
        shapes: Vec<u32>,
        /// How many shapes exist.
        count: usize,
    },
}

/// Offsets of some vertices: indices ascend strictly.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SparseDeltas {
    /// Which vertices move.
    pub vertices: Vec<u32>,
    /// By how much, cm.
    pub deltas: Vec<Vec3>,
}

impl SparseDeltas {
    /// Keeps the entries of a dense array that are longer than `threshold` cm.
    pub fn from_dense(dense: &[Vec3], threshold: f32) -> Self {
        let kept = (0u32..).zip(dense).filter(|(_, d)| d.length_squared() > threshold * threshold);
        let (vertices, deltas) = kept.map(|(v, d)| (v, *d)).unzip();
        Self { vertices, deltas }
    }

    /// All vertices, zeros included.
    pub fn to_dense(&self, vertex_count: usize) -> Vec<Vec3> {
        let mut dense = vec![Vec3::ZERO; vertex_count];
        self.add_scaled(1.0, &mut dense);
        dense
    }

    /// `vertices[v] += weight · delta_v`.
    pub fn add_scaled(&self, weight: f32, vertices: &mut [Vec3]) {
        for (&vertex, &delta) in self.vertices.iter().zip(&self.deltas) {
            vertices[vertex as usize] += delta * weight;
        }
    }

    /// Number of vertices that move.
    pub fn len(&self) -> usize {
        self.vertices.len()
    }

    /// Whether nothing moves.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }
}

/// One target shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Unique in its rig.
    pub name: String,
    /// Difference to the neutral.
    pub deltas: SparseDeltas,
}

/// A shape that appears when several others are on at once, weighted by their product.
#[derive(Debug, Clone, PartialEq)]
pub struct Corrective {
    /// Two or more different shapes, ascending.
    pub shapes: Vec<u32>,
    /// Added to what the shapes give by themselves.
    pub deltas: SparseDeltas,
}

/// A checked blendshape rig.
#[derive(Debug, Clone, PartialEq)]
pub struct BlendshapeRig {
    neutral: Vec<Vec3>,
    shapes: Vec<Shape>,
    correctives: Vec<Corrective>,
}

impl BlendshapeRig {
    /// Checks everything once. Indices inside a corrective are sorted.
    pub fn new(
        neutral: Vec<Vec3>,
        shapes: Vec<Shape>,
        mut correctives: Vec<Corrective>,
    ) -> Result<Self, BlendshapeError> {
        let count = neutral.len();
        let mut names: Vec<&str> = shapes.iter().map(|s| s.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(BlendshapeError::DuplicateName { name: pair[0].into() });
        }
        for shape in &shapes {
            check_deltas(&shape.name, &shape.deltas, count)?;
        }
        for (index, corrective) in correctives.iter_mut().enumerate() {
            corrective.shapes.sort_unstable();
            let list = &corrective.shapes;
            let repeats = list.windows(2).any(|pair| pair[0] == pair[1]);
            if list.len() < 2 || repeats || list.iter().any(|s| *s as usize >= shapes.len()) {
                return Err(BlendshapeError::Corrective {
                    corrective: index,
                    shapes: list.clone(),
                    count: shapes.len(),
                });
            }
            check_deltas(&format!("corrective {index}"), &corrective.deltas, count)?;
        }
        Ok(Self { neutral, shapes, correctives })
    }

    /// `[V]` cm.
    pub fn neutral(&self) -> &[Vec3] {
        &self.neutral
    }

    /// The shapes, `[m]`.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// The correctives of all levels.
    pub fn correctives(&self) -> &[Corrective] {
        &self.correctives
    }

    /// The shape of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.shapes.iter().position(|s| s.name == name)
    }

    /// The product weight of a corrective, `Π_k w_{i_k}`.
    pub fn corrective_weight(corrective: &Corrective, weights: &[f32]) -> f32 {
        corrective.shapes.iter().map(|s| weights[*s as usize]).product()
    }

    /// `f(w)` into `out`, `[V]`.
    ///
    /// # Panics
    /// When `weights` is not `[m]` or `out` not `[V]`.
    pub fn evaluate(&self, weights: &[f32], out: &mut [Vec3]) {
        out.copy_from_slice(&self.neutral);
        self.add_offsets(weights, out);
    }

    /// Adds `f(w) − b₀` to `vertices`: the rig as one layer of a stack.
    ///
    /// # Panics
    /// When `weights` is not `[m]` or `vertices` not `[V]`.
    pub fn add_offsets(&self, weights: &[f32], vertices: &mut [Vec3]) {
        assert_eq!(weights.len(), self.shapes.len(), "one weight a shape");
        assert_eq!(vertices.len(), self.neutral.len(), "one position a vertex");
        for (shape, &weight) in self.shapes.iter().zip(weights) {
            if weight != 0.0 {
                shape.deltas.add_scaled(weight, vertices);
            }
        }
        for corrective in &self.correctives {
            let weight = Self::corrective_weight(corrective, weights);
            if weight != 0.0 {
                corrective.deltas.add_scaled(weight, vertices);
            }
        }
    }
}

fn check_deltas(shape: &str, deltas: &SparseDeltas, count: usize) -> Result<(), BlendshapeError> {
    let mut last = None;
    for (&vertex, delta) in deltas.vertices.iter().zip(&deltas.deltas) {
        if vertex as usize >= count || last.is_some_and(|last| vertex <= last) {
            return Err(BlendshapeError::Vertex { shape: shape.into(), vertex, count });
        }
        if !delta.is_finite() {
            return Err(BlendshapeError::NonFinite { shape: shape.into(), vertex });
        }
        last = Some(vertex);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(name: &str, vertex: u32, delta: Vec3) -> Shape {
        Shape { name: name.into(), deltas: SparseDeltas { vertices: vec![vertex], deltas: vec![delta] } }
    }

    #[test]
    fn correctives_weigh_by_products() {
        let shapes = vec![shape("a", 0, Vec3::X), shape("b", 0, Vec3::Y), shape("c", 1, Vec3::Z)];
        let triple = Corrective {
            shapes: vec![2, 0, 1],
            deltas: SparseDeltas { vertices: vec![1], deltas: vec![Vec3::ONE] },
        };
        let rig = BlendshapeRig::new(vec![Vec3::ZERO; 2], shapes, vec![triple]).expect("valid rig");
        let mut out = vec![Vec3::ZERO; 2];
        rig.evaluate(&[0.5, 0.25, 1.0], &mut out);
        assert_eq!(out, [Vec3::new(0.5, 0.25, 0.0), Vec3::Z + Vec3::ONE * 0.125]);
    }

    #[test]
    fn bad_rigs_are_named() {
        let new = |shapes, correctives| BlendshapeRig::new(vec![Vec3::ZERO; 2], shapes, correctives);
        let far = new(vec![shape("a", 2, Vec3::X)], vec![]);
        assert_eq!(far, Err(BlendshapeError::Vertex { shape: "a".into(), vertex: 2, count: 2 }));
        let twice = new(vec![shape("a", 0, Vec3::X), shape("a", 1, Vec3::X)], vec![]);
        assert_eq!(twice, Err(BlendshapeError::DuplicateName { name: "a".into() }));
        let unknown = Corrective { shapes: vec![0, 3], deltas: SparseDeltas::default() };
        let corrective = new(vec![shape("a", 0, Vec3::X)], vec![unknown]);
        assert!(matches!(corrective, Err(BlendshapeError::Corrective { corrective: 0, .. })));
    }
}
