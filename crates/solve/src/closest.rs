//! The point of a surface that is nearest to another point, and whether a segment crosses the surface: a tree of boxes
//! around triangles.

use understudy_core::DVec3;

/// Triangles of a leaf.
const LEAF: usize = 4;

/// A point on a surface.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SurfacePoint {
    /// Index of the triangle.
    pub triangle: usize,
    /// Barycentric coordinates in it.
    pub weights: [f64; 3],
    /// The point.
    pub point: DVec3,
    /// Square of the distance to what was asked for.
    pub squared_distance: f64,
}

#[derive(Debug, Clone)]
struct Node {
    low: DVec3,
    high: DVec3,
    /// Children, or the first triangle of a leaf.
    first: u32,
    /// Triangles of a leaf; zero for an inner node.
    count: u32,
}

/// Triangles in boxes.
#[derive(Debug, Clone)]
pub struct TriangleTree {
    corners: Vec<[DVec3; 3]>,
    /// Triangles in the order of the leaves.
    order: Vec<u32>,
    nodes: Vec<Node>,
}

impl TriangleTree {
    /// A tree over triangles of points.
    pub fn new(points: &[DVec3], triangles: &[[u32; 3]]) -> Self {
        let corners = triangles.iter().map(|t| t.map(|v| points[v as usize])).collect();
        let mut tree = Self { corners, order: (0..triangles.len() as u32).collect(), nodes: Vec::new() };
        if !triangles.is_empty() {
            tree.nodes.push(Node { low: DVec3::ZERO, high: DVec3::ZERO, first: 0, count: 0 });
            tree.split(0, 0, triangles.len());
        }
        tree
    }

    fn split(&mut self, node: usize, from: usize, to: usize) {
        let (mut low, mut high) = (DVec3::INFINITY, DVec3::NEG_INFINITY);
        for triangle in &self.order[from..to] {
            for corner in self.corners[*triangle as usize] {
                low = low.min(corner);
                high = high.max(corner);
            }
        }
        (self.nodes[node].low, self.nodes[node].high) = (low, high);
        if to - from <= LEAF {
            (self.nodes[node].first, self.nodes[node].count) = (from as u32, (to - from) as u32);
            return;
        }
        let size = (high - low).to_array();
        let axis = (0..3).fold(0, |best, k| if size[k] > size[best] { k } else { best });
        let middle = (from + to) / 2;
        let corners = &self.corners;
        let key = |triangle: &u32| corners[*triangle as usize].iter().map(|c| c[axis]).sum::<f64>();
        self.order[from..to].select_nth_unstable_by(middle - from, |a, b| key(a).total_cmp(&key(b)));
        let children = self.nodes.len();
        let empty = Node { low: DVec3::ZERO, high: DVec3::ZERO, first: 0, count: 0 };
        self.nodes.extend([empty.clone(), empty]);
        self.nodes[node].first = children as u32;
        self.split(children, from, middle);
        self.split(children + 1, middle, to);
    }

    /// The nearest point of the surface; `None` without triangles.
    pub fn closest(&self, p: DVec3) -> Option<SurfacePoint> {
        self.closest_where(p, |_| true)
    }

    /// The nearest point on triangles that pass a test.
    pub fn closest_where(&self, p: DVec3, passes: impl Fn(usize) -> bool) -> Option<SurfacePoint> {
        let mut best: Option<SurfacePoint> = None;
        let distance = |node: &Node| (p.clamp(node.low, node.high) - p).length_squared();
        let mut stack = Vec::with_capacity(64);
        if let Some(root) = self.nodes.first() {
            stack.push((0u32, distance(root)));
        }
        while let Some((node, squared)) = stack.pop() {
            if best.is_some_and(|best| squared >= best.squared_distance) {
                continue;
            }
            let node = &self.nodes[node as usize];
            if node.count > 0 {
                for &triangle in &self.order[node.first as usize..(node.first + node.count) as usize] {
                    if !passes(triangle as usize) {
                        continue;
                    }
                    let (point, weights) = closest_on_triangle(p, self.corners[triangle as usize]);
                    let squared_distance = (point - p).length_squared();
                    if best.is_none_or(|best| squared_distance < best.squared_distance) {
                        best = Some(SurfacePoint {
                            triangle: triangle as usize,
                            weights,
                            point,
                            squared_distance,
                        });
                    }
                }
                continue;
            }
            let mut children = [node.first, node.first + 1].map(|c| (c, distance(&self.nodes[c as usize])));
            // The nearer one is looked at first.
            if children[0].1 < children[1].1 {
                children.swap(0, 1);
            }
            stack.extend(children);
        }
        best
    }

    /// Whether the surface lies between two points; what is nearer than `margin` of the way to either end counts not.
    pub fn crosses(&self, from: DVec3, to: DVec3, margin: f64) -> bool {
        let along = to - from;
        let inverse = along.recip();
        let mut stack = vec![0u32];
        if self.nodes.is_empty() {
            return false;
        }
        while let Some(node) = stack.pop() {
            let node = &self.nodes[node as usize];
            let (a, b) = ((node.low - from) * inverse, (node.high - from) * inverse);
            // An axis along which nothing moves gives NaN on a face of the box: `min` and `max` leave it out.
            let enter = a.min(b).max_element().max(margin);
            let leave = a.max(b).min_element().min(1.0 - margin);
            if enter > leave {
                continue;
            }
            if node.count == 0 {
                stack.extend([node.first, node.first + 1]);
                continue;
            }
            for &triangle in &self.order[node.first as usize..(node.first + node.count) as usize] {
                let [a, b, c] = self.corners[triangle as usize];
                let (u, v) = (b - a, c - a);
                let across = along.cross(v);
                let determinant = u.dot(across);
                if determinant.abs() < 1e-18 {
                    continue;
                }
                let offset = from - a;
                let s = offset.dot(across) / determinant;
                let turned = offset.cross(u);
                let t = along.dot(turned) / determinant;
                let way = v.dot(turned) / determinant;
                if s >= 0.0 && t >= 0.0 && s + t <= 1.0 && way > margin && way < 1.0 - margin {
                    return true;
                }
            }
        }
        false
    }
}

/// The nearest point of a triangle and its barycentric coordinates (Ericson, *Real-Time Collision Detection*, 5.1.5).
pub fn closest_on_triangle(p: DVec3, [a, b, c]: [DVec3; 3]) -> (DVec3, [f64; 3]) {
    let (ab, ac, ap) = (b - a, c - a, p - a);
    let (d1, d2) = (ab.dot(ap), ac.dot(ap));
    if d1 <= 0.0 && d2 <= 0.0 {
        return (a, [1.0, 0.0, 0.0]);
    }
    let bp = p - b;
    let (d3, d4) = (ab.dot(bp), ac.dot(bp));
    if d3 >= 0.0 && d4 <= d3 {
        return (b, [0.0, 1.0, 0.0]);
    }
    let vc = d1 * d4 - d3 * d2;
    if vc <= 0.0 && d1 >= 0.0 && d3 <= 0.0 && d1 - d3 > 0.0 {
        let v = d1 / (d1 - d3);
        return (a + ab * v, [1.0 - v, v, 0.0]);
    }
    let cp = p - c;
    let (d5, d6) = (ab.dot(cp), ac.dot(cp));
    if d6 >= 0.0 && d5 <= d6 {
        return (c, [0.0, 0.0, 1.0]);
    }
    let vb = d5 * d2 - d1 * d6;
    if vb <= 0.0 && d2 >= 0.0 && d6 <= 0.0 && d2 - d6 > 0.0 {
        let w = d2 / (d2 - d6);
        return (a + ac * w, [1.0 - w, 0.0, w]);
    }
    let va = d3 * d6 - d5 * d4;
    if va <= 0.0 && d4 - d3 >= 0.0 && d5 - d6 >= 0.0 && (d4 - d3) + (d5 - d6) > 0.0 {
        let w = (d4 - d3) / ((d4 - d3) + (d5 - d6));
        return (b + (c - b) * w, [0.0, 1.0 - w, w]);
    }
    let sum = va + vb + vc;
    if sum <= 0.0 {
        return (a, [1.0, 0.0, 0.0]);
    }
    let (v, w) = (vb / sum, vc / sum);
    (a + ab * v + ac * w, [1.0 - v - w, v, w])
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    #[test]
    fn the_tree_finds_what_looking_at_every_triangle_finds() {
        let mut random = Random::new(5);
        let mut point = || DVec3::new(random.unit(), random.unit(), random.unit());
        let points: Vec<DVec3> = (0..300).map(|_| point() * 10.0).collect();
        let triangles: Vec<[u32; 3]> =
            (0..100).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).chain([[0, 0, 1], [2, 2, 2]]).collect();
        let tree = TriangleTree::new(&points, &triangles);
        for _ in 0..300 {
            let p = point() * 14.0 - DVec3::splat(2.0);
            let found = tree.closest(p).expect("there are triangles");
            let all = triangles
                .iter()
                .map(|t| (closest_on_triangle(p, t.map(|v| points[v as usize])).0 - p).length_squared());
            let nearest = all.fold(f64::INFINITY, f64::min);
            assert!((found.squared_distance - nearest).abs() < 1e-12, "{p}");
            // No other point of the triangle is nearer.
            let [a, b, c] = triangles[found.triangle].map(|v| points[v as usize]);
            for (u, v) in [(0.3, 0.3), (0.0, 0.5), (0.9, 0.05)] {
                assert!(
                    (a + (b - a) * u + (c - a) * v - p).length_squared() >= found.squared_distance - 1e-12
                );
            }
            let back = a * found.weights[0] + b * found.weights[1] + c * found.weights[2];
            assert!((back - found.point).length() < 1e-9);
        }
        assert!(TriangleTree::new(&points, &[]).closest(DVec3::ZERO).is_none());
    }

    #[test]
    fn a_wall_hides_what_is_behind_it() {
        let points = [DVec3::ZERO, DVec3::X * 4.0, DVec3::Y * 4.0];
        let tree = TriangleTree::new(&points, &[[0, 1, 2]]);
        let (front, back) = (DVec3::new(1.0, 1.0, 1.0), DVec3::new(1.0, 1.0, -1.0));
        assert!(tree.crosses(front, back, 1e-3));
        assert!(!tree.crosses(front, DVec3::new(1.0, 1.0, 0.0), 1e-3), "its own end is not between");
        assert!(!tree.crosses(front + DVec3::X * 4.0, back + DVec3::X * 4.0, 1e-3));
    }
}
