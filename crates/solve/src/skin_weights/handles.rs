//! What moves a mesh by hand: points, bones, regions and cages, and the columns of weights that they become.

use super::WeightsError;
use understudy_core::DVec3;

/// Where a handle is, in the unit of the mesh.
#[derive(Debug, Clone, PartialEq)]
pub enum HandleShape {
    /// A vertex of the mesh.
    Vertex(u32),
    /// A place on the mesh or, in a volume, inside it.
    Point(DVec3),
    /// A segment from head to tail.
    Bone {
        /// Where it turns.
        head: DVec3,
        /// Its other end.
        tail: DVec3,
    },
    /// Vertices that follow the handle wholly.
    Region(Vec<u32>),
    /// A closed mesh of triangles around the model: every vertex of it is a handle of its own, and weights are linear
    /// along its faces.
    Cage {
        /// Its vertices.
        vertices: Vec<DVec3>,
        /// Its triangles.
        faces: Vec<[u32; 3]>,
    },
}

/// A named handle.
#[derive(Debug, Clone, PartialEq)]
pub struct Handle {
    /// Unique.
    pub name: String,
    /// Where.
    pub shape: HandleShape,
}

impl Handle {
    /// A handle of that name and shape.
    pub fn new(name: impl Into<String>, shape: HandleShape) -> Self {
        Self { name: name.into(), shape }
    }

    /// How many columns of weights it has: a cage one per vertex, others one.
    pub fn column_count(&self) -> usize {
        match &self.shape {
            HandleShape::Cage { vertices, .. } => vertices.len(),
            _ => 1,
        }
    }
}

/// The name of every column of weights: the handle's own, and `cage.3` for a vertex of a cage.
pub fn column_names(handles: &[Handle]) -> Vec<String> {
    let of = |handle: &Handle| -> Vec<String> {
        match &handle.shape {
            HandleShape::Cage { vertices, .. } => {
                (0..vertices.len()).map(|vertex| format!("{}.{vertex}", handle.name)).collect()
            }
            _ => vec![handle.name.clone()],
        }
    };
    handles.iter().flat_map(of).collect()
}

/// Where each column rests: the point itself, a bone's head, the middle of a region, a vertex of the cage.
pub fn column_places(handles: &[Handle], points: &[DVec3]) -> Vec<DVec3> {
    let of = |handle: &Handle| -> Vec<DVec3> {
        match &handle.shape {
            HandleShape::Vertex(vertex) => vec![points[*vertex as usize]],
            HandleShape::Point(place) => vec![*place],
            HandleShape::Bone { head, .. } => vec![*head],
            HandleShape::Region(vertices) => {
                let sum: DVec3 = vertices.iter().map(|v| points[*v as usize]).sum();
                vec![sum / vertices.len().max(1) as f64]
            }
            HandleShape::Cage { vertices, .. } => vertices.clone(),
        }
    };
    handles.iter().flat_map(of).collect()
}

/// Checks names, indices and numbers of handles for a mesh of so many vertices.
pub(super) fn check(handles: &[Handle], vertex_count: usize) -> Result<(), WeightsError> {
    if handles.is_empty() {
        return Err(WeightsError::NoHandles);
    }
    let mut names = column_names(handles);
    names.sort();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(WeightsError::DuplicateName { name: pair[0].clone() });
    }
    for handle in handles {
        let name = || handle.name.clone();
        let vertices: &[u32] = match &handle.shape {
            HandleShape::Vertex(vertex) => std::slice::from_ref(vertex),
            HandleShape::Region(vertices) if vertices.is_empty() => {
                return Err(WeightsError::Empty { handle: name(), what: "vertices" });
            }
            HandleShape::Region(vertices) => vertices,
            HandleShape::Cage { vertices, faces } => {
                if vertices.is_empty() || faces.is_empty() {
                    return Err(WeightsError::Empty { handle: name(), what: "vertices or faces" });
                }
                let count = vertices.len();
                let wrong = faces.iter().flatten().find(|corner| **corner as usize >= count);
                if let Some(&vertex) = wrong {
                    return Err(WeightsError::Vertex { handle: name(), vertex, count });
                }
                &[]
            }
            _ => &[],
        };
        if let Some(&vertex) = vertices.iter().find(|vertex| **vertex as usize >= vertex_count) {
            return Err(WeightsError::Vertex { handle: name(), vertex, count: vertex_count });
        }
        let finite = match &handle.shape {
            HandleShape::Point(place) => place.is_finite(),
            HandleShape::Bone { head, tail } => head.is_finite() && tail.is_finite(),
            HandleShape::Cage { vertices, .. } => vertices.iter().all(|v| v.is_finite()),
            HandleShape::Vertex(_) | HandleShape::Region(_) => true,
        };
        if !finite {
            return Err(WeightsError::NotFinite { handle: name() });
        }
    }
    Ok(())
}

/// The point of a segment that is nearest to `p`.
pub(super) fn nearest_on_segment(p: DVec3, head: DVec3, tail: DVec3) -> DVec3 {
    let along = tail - head;
    let length = along.length_squared();
    let t = if length > 0.0 { ((p - head).dot(along) / length).clamp(0.0, 1.0) } else { 0.0 };
    head + along * t
}
