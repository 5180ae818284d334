//! What moves the mesh: shapes with or without correctives, or a twin. A solver asks for a few thousand chosen vertices and
//! their derivatives by the weights, and now and then for the whole mesh.

use understudy_core::{BlendshapeRig, Corrective, DVec3, Vec3};
use understudy_runtime::{Player, Pose, PoseError, Twin, TwinError};

/// Rows of derivatives are padded to whole vectors of this many numbers.
const LANES: usize = 8;

/// A mesh that weights move.
pub trait Deformation {
    /// Number of weights m.
    fn count(&self) -> usize;
    /// The lowest and highest value of a weight.
    fn range(&self, weight: usize) -> [f64; 2];
    /// The whole mesh, `[V]` cm.
    fn pose(&mut self, weights: &[f64], out: &mut [Vec3]) -> Result<(), PoseError>;
    /// Chooses the vertices that the other functions speak of.
    fn choose(&mut self, vertices: &[u32]) -> Result<(), TwinError>;
    /// The chosen vertices, cm.
    fn places(&mut self, weights: &[f64], out: &mut [DVec3]) -> Result<(), PoseError>;
    /// `∂v/∂w` of the chosen vertices: rows x, y, z of the first, then of the next, each [`Deformation::stride`] wide.
    fn derivatives(&mut self, weights: &[f64]) -> Result<&[f32], PoseError>;
    /// Length of a row of derivatives: at least m, zeros behind.
    fn stride(&self) -> usize {
        self.count().div_ceil(LANES) * LANES
    }
}

/// A blendshape rig, with correctives of any level.
#[derive(Debug, Clone)]
pub struct Shapes<'a> {
    rig: &'a BlendshapeRig,
    neutral: Vec<DVec3>,
    /// Rows of the linear part.
    linear: Vec<f32>,
    /// Correctives at the chosen vertices: the corrective, and offsets by chosen vertex.
    correctives: Vec<(&'a Corrective, Vec<(usize, Vec3)>)>,
    rows: Vec<f32>,
    weights: Vec<f32>,
}

impl<'a> Shapes<'a> {
    /// Of a rig; weights run from 0 to 1.
    pub fn new(rig: &'a BlendshapeRig) -> Self {
        let weights = vec![0.0; rig.shapes().len()];
        Self {
            rig,
            neutral: Vec::new(),
            linear: Vec::new(),
            correctives: Vec::new(),
            rows: Vec::new(),
            weights,
        }
    }
}

impl<'a> Deformation for Shapes<'a> {
    fn count(&self) -> usize {
        self.rig.shapes().len()
    }

    fn range(&self, _weight: usize) -> [f64; 2] {
        [0.0, 1.0]
    }

    fn pose(&mut self, weights: &[f64], out: &mut [Vec3]) -> Result<(), PoseError> {
        self.weights.iter_mut().zip(weights).for_each(|(to, from)| *to = *from as f32);
        self.rig.evaluate(&self.weights, out);
        Ok(())
    }

    fn choose(&mut self, vertices: &[u32]) -> Result<(), TwinError> {
        let stride = self.stride();
        let mut place = vec![usize::MAX; self.rig.neutral().len()];
        vertices.iter().enumerate().for_each(|(index, vertex)| place[*vertex as usize] = index);
        self.neutral =
            vertices.iter().map(|vertex| self.rig.neutral()[*vertex as usize].as_dvec3()).collect();
        self.linear = vec![0.0; 3 * vertices.len() * stride];
        for (shape, deltas) in self.rig.shapes().iter().map(|shape| &shape.deltas).enumerate() {
            for (vertex, delta) in deltas.vertices.iter().zip(&deltas.deltas) {
                let index = place[*vertex as usize];
                if index != usize::MAX {
                    (0..3).for_each(|axis| self.linear[(3 * index + axis) * stride + shape] = delta[axis]);
                }
            }
        }
        let chosen = |corrective: &'a Corrective| {
            let all = corrective.deltas.vertices.iter().zip(&corrective.deltas.deltas);
            let offsets: Vec<(usize, Vec3)> = all.map(|(v, delta)| (place[*v as usize], *delta)).collect();
            (corrective, offsets.into_iter().filter(|(index, _)| *index != usize::MAX).collect())
        };
        self.correctives = self.rig.correctives().iter().map(chosen).collect();
        self.correctives.retain(|(_, offsets): &(_, Vec<(usize, Vec3)>)| !offsets.is_empty());
        self.rows.clear();
        Ok(())
    }

    fn places(&mut self, weights: &[f64], out: &mut [DVec3]) -> Result<(), PoseError> {
        let stride = self.stride();
        let on: Vec<(usize, f64)> =
            weights.iter().copied().enumerate().filter(|(_, weight)| *weight != 0.0).collect();
        for ((place, neutral), rows) in
            out.iter_mut().zip(&self.neutral).zip(self.linear.chunks_exact(3 * stride))
        {
            let (mut x, mut y, mut z) = (neutral.x, neutral.y, neutral.z);
            for &(shape, weight) in &on {
                x += weight * f64::from(rows[shape]);
                y += weight * f64::from(rows[stride + shape]);
                z += weight * f64::from(rows[2 * stride + shape]);
            }
            *place = DVec3::new(x, y, z);
        }
        for (corrective, offsets) in &self.correctives {
            let product: f64 = corrective.shapes.iter().map(|shape| weights[*shape as usize]).product();
            if product != 0.0 {
                offsets.iter().for_each(|(index, delta)| out[*index] += delta.as_dvec3() * product);
            }
        }
        Ok(())
    }

    fn derivatives(&mut self, weights: &[f64]) -> Result<&[f32], PoseError> {
        if self.correctives.is_empty() {
            return Ok(&self.linear);
        }
        let stride = self.stride();
        self.rows.clear();
        self.rows.extend_from_slice(&self.linear);
        for (corrective, offsets) in &self.correctives {
            for &shape in &corrective.shapes {
                let others = corrective.shapes.iter().filter(|other| **other != shape);
                let product: f64 = others.map(|other| weights[*other as usize]).product();
                if product == 0.0 {
                    continue;
                }
                for (index, delta) in offsets {
                    for axis in 0..3 {
                        self.rows[(3 * index + axis) * stride + shape as usize] +=
                            product as f32 * delta[axis];
                    }
                }
            }
        }
        Ok(&self.rows)
    }
}

/// A twin that is posed by controls and has derivatives: faces and skins.
pub struct TwinShapes {
    twin: Twin,
    whole: Player,
    part: Player,
    chosen: usize,
    ranges: Vec<[f64; 2]>,
    rows: Vec<f32>,
    packed: Vec<f32>,
    places: Vec<Vec3>,
    controls: Vec<f32>,
}

impl TwinShapes {
    /// Of a twin; its controls are the weights, within their ranges.
    pub fn new(twin: Twin) -> Self {
        let ranges: Vec<[f64; 2]> = twin
            .header()
            .inputs
            .controls
            .iter()
            .map(|spec| [f64::from(spec.low), f64::from(spec.high)])
            .collect();
        let controls = vec![0.0; ranges.len()];
        let (whole, part) = (twin.player(1), twin.player(1));
        Self {
            twin,
            whole,
            part,
            chosen: 0,
            ranges,
            rows: Vec::new(),
            packed: Vec::new(),
            places: Vec::new(),
            controls,
        }
    }

    fn set(&mut self, weights: &[f64]) {
        self.controls.iter_mut().zip(weights).for_each(|(to, from)| *to = *from as f32);
    }
}

impl Deformation for TwinShapes {
    fn count(&self) -> usize {
        self.ranges.len()
    }

    fn range(&self, weight: usize) -> [f64; 2] {
        self.ranges[weight]
    }

    fn pose(&mut self, weights: &[f64], out: &mut [Vec3]) -> Result<(), PoseError> {
        self.set(weights);
        self.whole.pose(Pose::Controls(&self.controls), out)
    }

    fn choose(&mut self, vertices: &[u32]) -> Result<(), TwinError> {
        self.part = self.twin.of_vertices(vertices)?.player(1);
        self.chosen = vertices.len();
        self.places = vec![Vec3::ZERO; self.part.twin().vertex_count()];
        Ok(())
    }

    fn places(&mut self, weights: &[f64], out: &mut [DVec3]) -> Result<(), PoseError> {
        self.set(weights);
        self.part.pose(Pose::Controls(&self.controls), &mut self.places)?;
        out.iter_mut().zip(&self.places).for_each(|(out, place)| *out = place.as_dvec3());
        Ok(())
    }

    fn derivatives(&mut self, weights: &[f64]) -> Result<&[f32], PoseError> {
        self.set(weights);
        let (count, stride) = (self.ranges.len(), self.stride());
        self.packed.resize(3 * self.chosen * count, 0.0);
        self.part.jacobian(
            Pose::Controls(&self.controls),
            &mut self.places[..self.chosen],
            &mut self.packed,
        )?;
        self.rows.resize(3 * self.chosen * stride, 0.0);
        for (row, packed) in self.rows.chunks_exact_mut(stride).zip(self.packed.chunks_exact(count)) {
            row[..count].copy_from_slice(packed);
        }
        Ok(&self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Shape, SparseDeltas};
    use understudy_testkit::gradient::directional_miss;

    #[test]
    fn shapes_with_correctives_have_right_derivatives() {
        let shape = |name: &str, vertex: u32, delta: Vec3| Shape {
            name: name.into(),
            deltas: SparseDeltas { vertices: vec![0, vertex], deltas: vec![delta, Vec3::ONE] },
        };
        let shapes = vec![shape("a", 1, Vec3::X), shape("b", 2, Vec3::Y), shape("c", 3, Vec3::Z)];
        let on = |shapes: Vec<u32>| Corrective {
            shapes,
            deltas: SparseDeltas { vertices: vec![0, 2], deltas: vec![Vec3::new(0.5, -1.0, 2.0), Vec3::X] },
        };
        let rig = BlendshapeRig::new(vec![Vec3::ZERO; 4], shapes, vec![on(vec![0, 1]), on(vec![0, 1, 2])])
            .expect("a rig");
        let mut shapes = Shapes::new(&rig);
        shapes.choose(&[2, 0]).expect("vertices of the rig");
        let weights = [0.4, 0.7, 0.9];
        let stride = shapes.stride();
        let rows = shapes.derivatives(&weights).expect("no twin").to_vec();
        for row in 0..6 {
            let gradient: Vec<f64> =
                rows[row * stride..row * stride + 3].iter().map(|v| f64::from(*v)).collect();
            let mut cost = |x: &[f64]| {
                let mut out = [DVec3::ZERO; 2];
                shapes.places(x, &mut out).expect("no twin");
                out[row / 3][row % 3]
            };
            if gradient.iter().any(|g| *g != 0.0) {
                assert!(directional_miss(&mut cost, &weights, &gradient, 1e-4, 6, 2) < 1e-6);
            }
        }
        let mut whole = vec![Vec3::ZERO; 4];
        shapes.pose(&weights, &mut whole).expect("no twin");
        let mut chosen = [DVec3::ZERO; 2];
        shapes.places(&weights, &mut chosen).expect("no twin");
        assert!(
            (whole[2].as_dvec3() - chosen[0]).length() < 1e-6
                && (whole[0].as_dvec3() - chosen[1]).length() < 1e-6
        );
    }
}
