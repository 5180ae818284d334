//! The loss of a face twin and its derivative by the vertices (face-twin paper, eq. 3.1):
//!
//! `L = 1/n Σ ‖v_i − ṽ_i‖₁ + α 1/f Σ ‖n_i − ñ_i‖₁` over the vertices and faces that networks move.

use understudy_core::{Face, Vec3A};

/// A face as two difference vectors whose cross product is normal to it: `(v_b − v_a) × (v_d − v_c)`. Two
/// edges of a triangle, the diagonals of a quad.
pub type Cross = [u32; 4];

/// The vectors of a face.
pub fn cross_of(face: &Face) -> Cross {
    match *face.corners() {
        [a, b, c, d] => [a, c, b, d],
        ref corners => [corners[0], corners[1], corners[0], corners[2]],
    }
}

/// What the loss looks at.
#[derive(Debug, Clone)]
pub struct Loss {
    /// Faces, by numbers of the vertices below.
    pub faces: Vec<Cross>,
    /// Vertices whose positions count.
    pub counted: Vec<u32>,
    /// α of the normals.
    pub normal_weight: f32,
    /// n and f of the whole twin: a part of the mesh keeps the weight that it has in the whole.
    pub vertex_total: usize,
    /// See above.
    pub face_total: usize,
}

/// A face smaller than this has no normal, cm².
pub(super) const NO_AREA: f32 = 1e-10;

/// Both terms, weights included.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Of positions, cm.
    pub position: f64,
    /// Of normals, α included.
    pub normal: f64,
}

impl Cost {
    /// The sum.
    pub fn total(&self) -> f64 {
        self.position + self.normal
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.position += other.position;
        self.normal += other.normal;
    }
}

impl Loss {
    /// The loss of one pose; `slopes` receives `share · ∂L/∂ṽ`.
    pub fn evaluate(&self, truth: &[Vec3A], now: &[Vec3A], share: f32, slopes: &mut [Vec3A]) -> Cost {
        slopes.fill(Vec3A::ZERO);
        let unit = Vec3A::splat(share / self.vertex_total.max(1) as f32);
        let mut position = 0.0f64;
        for block in self.counted.chunks(BLOCK) {
            let mut sum = Vec3A::ZERO;
            for &vertex in block {
                let vertex = vertex as usize;
                let miss = now[vertex] - truth[vertex];
                sum += miss.abs();
                slopes[vertex] = sign(miss, unit);
            }
            position += f64::from(sum.element_sum());
        }
        let weight = self.normal_weight / self.face_total.max(1) as f32;
        let mut normal = 0.0f64;
        if self.normal_weight > 0.0 {
            let unit = Vec3A::splat(weight * share);
            for block in self.faces.chunks(BLOCK) {
                let sum: Vec3A = block.iter().map(|face| turn(face, truth, now, unit, slopes)).sum();
                normal += f64::from(sum.element_sum());
            }
        }
        Cost { position: position / self.vertex_total.max(1) as f64, normal: normal * f64::from(weight) }
    }
}

impl Loss {
    /// Adds what every vertex has to do with the loss of one pose, before the means: its own distance, and a
    /// quarter of α times the miss of each normal that it spans.
    pub fn blame(&self, truth: &[Vec3A], now: &[Vec3A], sums: &mut [f64]) {
        for &vertex in &self.counted {
            let vertex = vertex as usize;
            sums[vertex] += f64::from((now[vertex] - truth[vertex]).abs().element_sum());
        }
        let mut unused = vec![Vec3A::ZERO; now.len()];
        for face in &self.faces {
            let miss = turn(face, truth, now, Vec3A::ZERO, &mut unused).element_sum();
            face.iter().for_each(|v| sums[*v as usize] += f64::from(0.25 * self.normal_weight * miss));
        }
    }
}

/// Terms that are summed in f32 before they go to a sum in f64.
const BLOCK: usize = 256;

/// One face: `|n − ñ|` a component; adds its derivatives, `unit` included, to `slopes`.
#[inline]
fn turn(face: &Cross, truth: &[Vec3A], now: &[Vec3A], unit: Vec3A, slopes: &mut [Vec3A]) -> Vec3A {
    let [a, b, c, d] = face.map(|corner| corner as usize);
    let wanted = (truth[b] - truth[a]).cross(truth[d] - truth[c]);
    let (p, q) = (now[b] - now[a], now[d] - now[c]);
    let area = p.cross(q);
    let (long, short) = (wanted.length_squared(), area.length_squared());
    if long < NO_AREA * NO_AREA || short < NO_AREA * NO_AREA {
        return Vec3A::ZERO;
    }
    let size = short.sqrt().recip();
    let direction = area * size;
    let miss = direction - wanted * long.sqrt().recip();
    // ∂n/∂A = (1 − n nᵀ)/|A|.
    let by_normal = sign(miss, unit);
    let by_area = (by_normal - direction * direction.dot(by_normal)) * size;
    let (by_p, by_q) = (q.cross(by_area), by_area.cross(p));
    slopes[b] += by_p;
    slopes[a] -= by_p;
    slopes[d] += by_q;
    slopes[c] -= by_q;
    miss.abs()
}

/// `−unit`, `0` or `unit` a component.
#[inline]
fn sign(v: Vec3A, unit: Vec3A) -> Vec3A {
    let below = Vec3A::select(v.cmplt(Vec3A::ZERO), -unit, Vec3A::ZERO);
    Vec3A::select(v.cmpgt(Vec3A::ZERO), unit, below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{DVec3, Random};
    use understudy_testkit::gradient::directional_miss;

    #[test]
    fn the_derivative_meets_the_checker() {
        let mut random = Random::new(5);
        let mut cloud = |spread: f32| -> Vec<Vec3A> {
            (0..12).map(|_| Vec3A::from_array([0; 3].map(|_| random.uniform(-spread, spread)))).collect()
        };
        let truth = cloud(2.0);
        let now: Vec<Vec3A> = truth.iter().zip(cloud(0.5)).map(|(t, n)| *t + n).collect();
        let faces = [Face::quad(0, 1, 2, 3), Face::triangle(4, 5, 6), Face::quad(3, 7, 8, 9)];
        let loss = Loss {
            faces: faces.iter().map(cross_of).collect(),
            counted: vec![0, 2, 3, 5, 10],
            normal_weight: 5.0,
            vertex_total: 12,
            face_total: 7,
        };
        let cost = |x: &[f64]| {
            let now: Vec<DVec3> = x.chunks_exact(3).map(DVec3::from_slice).collect();
            let l1 = |v: DVec3| v.abs().element_sum();
            let truth: Vec<DVec3> = truth.iter().map(|t| t.as_dvec3()).collect();
            let normal = |p: &[DVec3], f: &Face| {
                let c: Vec<DVec3> = f.corners().iter().map(|v| p[*v as usize]).collect();
                let n = if c.len() == 4 {
                    (c[2] - c[0]).cross(c[3] - c[1])
                } else {
                    (c[1] - c[0]).cross(c[2] - c[0])
                };
                n.normalize()
            };
            let positions: f64 = [0, 2, 3, 5, 10].iter().map(|v: &usize| l1(now[*v] - truth[*v])).sum();
            let normals: f64 = faces.iter().map(|f| l1(normal(&now, f) - normal(&truth, f))).sum();
            positions / 12.0 + 5.0 * normals / 7.0
        };
        let mut slopes = vec![Vec3A::ZERO; 12];
        let whole = loss.evaluate(&truth, &now, 1.0, &mut slopes);
        let at: Vec<f64> = now.iter().flat_map(|p| p.as_dvec3().to_array()).collect();
        assert!((whole.total() - cost(&at)).abs() < 1e-5);
        let gradient: Vec<f64> = slopes.iter().flat_map(|s| s.as_dvec3().to_array()).collect();
        let miss = directional_miss(cost, &at, &gradient, 1e-7, 30, 1);
        assert!(miss < 1e-4, "{miss}");
    }

    #[test]
    fn faces_without_area_do_no_harm() {
        let loss = Loss {
            faces: vec![cross_of(&Face::triangle(0, 1, 2))],
            counted: vec![0],
            normal_weight: 5.0,
            vertex_total: 3,
            face_total: 1,
        };
        let mut slopes = vec![Vec3A::ZERO; 3];
        let cost = loss.evaluate(&[Vec3A::X; 3], &[Vec3A::Y; 3], 1.0, &mut slopes);
        assert!(cost.total().is_finite() && slopes.iter().all(|s| s.is_finite()));
        assert_eq!(loss.evaluate(&[Vec3A::X; 3], &[Vec3A::X; 3], 1.0, &mut slopes), Cost::default());
    }
}
