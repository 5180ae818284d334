//! Shapes made by code for comparisons: pants, a hand and a flat figure, each with limbs that bend by angles, so that what is
//! right between the examples is known.

use anyhow::Result;
use std::collections::HashMap;
use understudy_core::{Face, Mesh, MeshParts, Quat, Vec3};

/// Where limbs meet, cm: how softly they grow into each other.
const SOFT: f32 = 2.0;

/// A limb that bends about an axis at some places along it.
pub struct Limb {
    base: Vec3,
    along: Vec3,
    axis: Vec3,
    /// Places along the limb, cm, and half widths of the bends.
    joints: Vec<(f32, f32)>,
    /// Which points belong to it: between these places along `side`, with a margin, and beyond the base.
    side: Vec3,
    span: [f32; 2],
    margin: f32,
}

/// A mesh, its limbs and the places of its handles.
pub struct Shape {
    pub name: &'static str,
    pub mesh: Mesh,
    pub limbs: Vec<Limb>,
    pub handles: Vec<(String, u32)>,
}

impl Shape {
    /// Bent by angles, degrees, one per joint of every limb.
    pub fn bent(&self, degrees: &[f32]) -> Vec<Vec3> {
        let mut places = self.mesh.positions().to_vec();
        let mut from = 0;
        for limb in &self.limbs {
            let angles = &degrees[from..from + limb.joints.len()];
            from += limb.joints.len();
            places.iter_mut().zip(self.mesh.positions()).for_each(|(place, p)| {
                if let Some(moved) = limb.bend(*p, angles) {
                    *place = moved;
                }
            });
        }
        places
    }

    /// How many angles [`Self::bent`] takes.
    pub fn angles(&self) -> usize {
        self.limbs.iter().map(|limb| limb.joints.len()).sum()
    }

    fn new(name: &'static str, mesh: Mesh, limbs: Vec<Limb>, handles: &[(&str, Vec3)]) -> Self {
        let nearest = |p: &Vec3| {
            let distance = |v: &u32| mesh.positions()[*v as usize].distance_squared(*p);
            (0..mesh.vertex_count() as u32).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
        };
        let handles = handles.iter().map(|(name, p)| ((*name).to_owned(), nearest(p))).collect();
        Self { name, mesh, limbs, handles }
    }
}

impl Limb {
    fn bend(&self, p: Vec3, degrees: &[f32]) -> Option<Vec3> {
        let inside = |x: f32| smooth((x + self.margin) / (2.0 * self.margin));
        let at = p.dot(self.side);
        let member = inside(at - self.span[0]) * inside(self.span[1] - at);
        let reach = (p - self.base).dot(self.along);
        if member <= 0.0 || self.joints.iter().all(|(place, width)| reach < place - width) {
            return None;
        }
        // The middle line is a curve whose direction turns within the joints; sections stay as they are.
        let turned = |s: f32| -> Quat {
            let angle = |((place, width), degrees): (&(f32, f32), &f32)| {
                degrees * smooth((s - place + width) / (2.0 * width))
            };
            let sum: f32 = self.joints.iter().zip(degrees).map(angle).sum();
            Quat::from_axis_angle(self.axis, (sum * member).to_radians())
        };
        const STEPS: usize = 96;
        let first = self.joints.iter().map(|(place, width)| place - width).fold(f32::INFINITY, f32::min);
        let step = (reach - first) / STEPS as f32;
        let mut middle = self.base + self.along * first;
        for k in 0..STEPS {
            middle += turned(first + (k as f32 + 0.5) * step) * self.along * step;
        }
        Some(middle + turned(reach) * (p - self.base - self.along * reach))
    }
}

fn smooth(x: f32) -> f32 {
    let x = x.clamp(0.0, 1.0);
    x * x * (3.0 - 2.0 * x)
}

/// Distance from a thick segment.
fn capsule(p: Vec3, a: Vec3, b: Vec3, radius: [f32; 2]) -> f32 {
    let along = b - a;
    let t = ((p - a).dot(along) / along.length_squared()).clamp(0.0, 1.0);
    (p - a - along * t).length() - (radius[0] + (radius[1] - radius[0]) * t)
}

fn union(a: f32, b: f32) -> f32 {
    let h = (0.5 + 0.5 * (b - a) / SOFT).clamp(0.0, 1.0);
    b + (a - b) * h - SOFT * h * (1.0 - h)
}

/// Trousers: two legs on a waist.
pub fn pants() -> Result<Shape> {
    let leg = |side: f32| (Vec3::new(side * 8.5, -6.0, 0.0), Vec3::new(side * 11.0, -82.0, 0.0));
    let distance = |p: Vec3| {
        let waist = capsule(
            p * Vec3::new(1.0, 1.0, 1.25),
            Vec3::new(-6.5, 2.0, 0.0),
            Vec3::new(6.5, 2.0, 0.0),
            [10.0; 2],
        );
        [1.0, -1.0].iter().fold(waist, |sum, side| {
            let (hip, foot) = leg(*side);
            union(sum, capsule(p, hip, foot, [9.0, 6.0]))
        })
    };
    let mesh = polygonise(Vec3::new(-24.0, -92.0, -14.0), Vec3::new(24.0, 16.0, 14.0), 1.7, &distance)?;
    let limb = |side: f32| Limb {
        base: Vec3::new(side * 9.0, -6.0, 0.0),
        along: Vec3::NEG_Y,
        axis: Vec3::X,
        joints: vec![(2.0, 9.0), (38.0, 7.0)],
        side: Vec3::X * side,
        span: [1.0, 100.0],
        margin: 2.5,
    };
    let at = |x: f32, y: f32, z: f32| Vec3::new(x, y, z);
    let handles = [
        ("waist", at(0.0, 9.0, -9.0)),
        ("belt", at(0.0, 9.0, 9.0)),
        ("knee L", at(10.0, -44.0, 8.0)),
        ("foot L", at(11.0, -86.0, 0.0)),
        ("knee R", at(-10.0, -44.0, 8.0)),
        ("foot R", at(-11.0, -86.0, 0.0)),
    ];
    Ok(Shape::new("pants", mesh, vec![limb(1.0), limb(-1.0)], &handles))
}

/// A hand: a palm and five fingers that curl towards z.
pub fn hand() -> Result<Shape> {
    // x of the middle line, where a finger begins and how long it is, cm tenths of a real hand's millimetres.
    let fingers: [(&str, f32, f32, f32, f32); 5] = [
        ("thumb", -9.2, -4.0, 8.0, 1.35),
        ("index", -4.8, 5.0, 10.0, 1.15),
        ("middle", -1.6, 5.6, 11.0, 1.15),
        ("ring", 1.6, 5.2, 10.2, 1.1),
        ("little", 4.7, 4.2, 8.2, 1.0),
    ];
    let distance = |p: Vec3| {
        let mut sum = f32::INFINITY;
        for (name, x, y, length, radius) in fingers {
            let root =
                if name == "thumb" { Vec3::new(-4.0, -6.0, 0.0) } else { Vec3::new(x * 0.9, -4.0, 0.0) };
            let (base, tip) = (Vec3::new(x, y, 0.0), Vec3::new(x, y + length, 0.0));
            let palm = capsule(p * Vec3::new(1.0, 1.0, 1.1), root, base, [2.0, radius * 1.2]);
            let finger = capsule(p, base, tip, [radius * 1.05, radius * 0.85]);
            sum = narrow(sum, narrow(palm, finger, 0.6), 1.0);
        }
        let wrist = capsule(
            p * Vec3::new(1.0, 1.0, 1.15),
            Vec3::new(0.0, -13.0, 0.0),
            Vec3::new(0.0, -6.0, 0.0),
            [2.6, 2.6],
        );
        narrow(sum, wrist, 2.0)
    };
    let mesh = polygonise(Vec3::new(-12.0, -17.0, -4.0), Vec3::new(8.0, 19.0, 4.0), 0.5, &distance)?;
    let mut handles = vec![
        ("wrist".to_owned(), Vec3::new(0.0, -15.0, 2.5)),
        ("palm".to_owned(), Vec3::new(0.0, -2.0, 2.0)),
    ];
    let mut limbs = Vec::new();
    for (name, x, y, length, radius) in fingers {
        limbs.push(Limb {
            base: Vec3::new(x, y, 0.0),
            along: Vec3::Y,
            axis: Vec3::X,
            joints: vec![(1.2, 1.6), (length * 0.5, 1.0), (length * 0.78, 0.8)],
            side: Vec3::X,
            span: [x - 1.55, x + 1.55],
            margin: 0.12,
        });
        handles.push((format!("{name} middle"), Vec3::new(x, y + length * 0.5, radius)));
        handles.push((format!("{name} tip"), Vec3::new(x, y + length + radius, 0.0)));
    }
    let named: Vec<(&str, Vec3)> = handles.iter().map(|(name, p)| (name.as_str(), *p)).collect();
    Ok(Shape::new("hand", mesh, limbs, &named))
}

fn narrow(a: f32, b: f32, soft: f32) -> f32 {
    if a.is_infinite() {
        return b;
    }
    let h = (0.5 + 0.5 * (b - a) / soft).clamp(0.0, 1.0);
    b + (a - b) * h - soft * h * (1.0 - h)
}

/// A flat figure with arms and legs that turn in its plane.
pub fn figure() -> Result<Shape> {
    let at = |x: f32, y: f32| Vec3::new(x, y, 0.0);
    let distance = |p: Vec3| {
        let mut sum = capsule(p, at(0.0, -6.0), at(0.0, 10.0), [7.0, 6.0]);
        sum = union(sum, capsule(p, at(0.0, 22.0), at(0.0, 22.5), [7.0; 2]));
        for side in [1.0, -1.0] {
            sum = union(sum, capsule(p, at(side * 6.0, 10.0), at(side * 32.0, 10.0), [3.6, 3.0]));
            sum = union(sum, capsule(p, at(side * 5.0, -8.0), at(side * 7.5, -42.0), [4.4, 3.4]));
        }
        sum
    };
    const STEP: f32 = 0.62;
    let (low, counts) = (at(-38.0, -48.0), [124usize, 128]);
    let grid = |i: usize, j: usize| low + Vec3::new(i as f32 * STEP, j as f32 * STEP, 0.0);
    let mut index = HashMap::new();
    let mut parts = MeshParts::default();
    let reach = 0.45 * STEP;
    for j in 0..counts[1] - 1 {
        for i in 0..counts[0] - 1 {
            let corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)];
            if corners.iter().any(|(i, j)| distance(grid(*i, *j)) > reach) {
                continue;
            }
            let ids = corners.map(|(i, j)| {
                *index.entry((i, j)).or_insert_with(|| {
                    let p = grid(i, j);
                    let d = distance(p);
                    let slope = |step: Vec3| (distance(p + step * 0.05) - distance(p - step * 0.05)) / 0.1;
                    let gradient = Vec3::new(slope(Vec3::X), slope(Vec3::Y), 0.0);
                    // Vertices near the outline lie on it.
                    let on =
                        if d > -reach { p - gradient * d / gradient.length_squared().max(0.1) } else { p };
                    parts.positions.push(on);
                    parts.positions.len() as u32 - 1
                })
            });
            let [a, b, c, d] = ids;
            let split = if (i + j) % 2 == 0 { [[a, b, c], [a, c, d]] } else { [[a, b, d], [b, c, d]] };
            parts.faces.extend(split.map(|[a, b, c]| Face::triangle(a, b, c)));
        }
    }
    let mesh = parts.build()?;
    let arm = |side: f32| Limb {
        base: at(side * 9.0, 10.0),
        along: Vec3::X * side,
        axis: Vec3::Z * side,
        joints: vec![(0.0, 3.5), (12.5, 3.0)],
        side: Vec3::X * side,
        span: [5.0, 100.0],
        margin: 0.5,
    };
    let leg = |side: f32| Limb {
        base: at(side * 5.5, -11.0),
        along: Vec3::NEG_Y,
        axis: Vec3::Z * side,
        joints: vec![(0.0, 4.0), (15.0, 3.0)],
        side: Vec3::X * side,
        span: [0.6, 100.0],
        margin: 0.6,
    };
    let handles = [
        ("head", at(0.0, 27.0)),
        ("belly", at(0.0, -2.0)),
        ("elbow L", at(21.0, 10.0)),
        ("hand L", at(34.0, 10.0)),
        ("elbow R", at(-21.0, 10.0)),
        ("hand R", at(-34.0, 10.0)),
        ("knee L", at(6.5, -26.0)),
        ("foot L", at(7.5, -44.0)),
        ("knee R", at(-6.5, -26.0)),
        ("foot R", at(-7.5, -44.0)),
    ];
    Ok(Shape::new("flat figure", mesh, vec![arm(1.0), arm(-1.0), leg(1.0), leg(-1.0)], &handles))
}

/// The zero level of a distance as quads, one vertex per cell (surface nets).
fn polygonise(low: Vec3, high: Vec3, step: f32, distance: &dyn Fn(Vec3) -> f32) -> Result<Mesh> {
    let counts = ((high - low) / step).ceil().as_uvec3().to_array().map(|n| n as usize + 1);
    let at = |i: usize, j: usize, k: usize| (k * counts[1] + j) * counts[0] + i;
    let point = |i: usize, j: usize, k: usize| low + Vec3::new(i as f32, j as f32, k as f32) * step;
    let mut values = vec![0.0f32; counts.iter().product()];
    for k in 0..counts[2] {
        for j in 0..counts[1] {
            for i in 0..counts[0] {
                values[at(i, j, k)] = distance(point(i, j, k));
            }
        }
    }
    let mut vertex = vec![u32::MAX; values.len()];
    let mut parts = MeshParts::default();
    for k in 0..counts[2] - 1 {
        for j in 0..counts[1] - 1 {
            for i in 0..counts[0] - 1 {
                let corner = |c: usize| (i + (c & 1), j + (c >> 1 & 1), k + (c >> 2));
                let value = |c: usize| {
                    let (i, j, k) = corner(c);
                    values[at(i, j, k)]
                };
                let (mut sum, mut count) = (Vec3::ZERO, 0.0);
                for a in 0..8usize {
                    for bit in [1, 2, 4] {
                        let b = a | bit;
                        if b == a || (value(a) < 0.0) == (value(b) < 0.0) {
                            continue;
                        }
                        let t = value(a) / (value(a) - value(b));
                        let place = |c: usize| {
                            let (i, j, k) = corner(c);
                            point(i, j, k)
                        };
                        sum += place(a).lerp(place(b), t);
                        count += 1.0;
                    }
                }
                if count > 0.0 {
                    vertex[at(i, j, k)] = parts.positions.len() as u32;
                    parts.positions.push(sum / count);
                }
            }
        }
    }
    // Every edge of the grid that crosses the level has four cells around it.
    for k in 1..counts[2] - 1 {
        for j in 1..counts[1] - 1 {
            for i in 1..counts[0] - 1 {
                let here = values[at(i, j, k)] < 0.0;
                for axis in 0..3usize {
                    let next = match axis {
                        0 => at(i + 1, j, k),
                        1 => at(i, j + 1, k),
                        _ => at(i, j, k + 1),
                    };
                    if here == (values[next] < 0.0) {
                        continue;
                    }
                    let cell = |u: usize, v: usize| match axis {
                        0 => at(i, j - u, k - v),
                        1 => at(i - v, j, k - u),
                        _ => at(i - u, j - v, k),
                    };
                    let [a, b, c, d] = [cell(0, 0), cell(1, 0), cell(1, 1), cell(0, 1)].map(|c| vertex[c]);
                    parts.faces.push(if here { Face::quad(a, b, c, d) } else { Face::quad(d, c, b, a) });
                }
            }
        }
    }
    Ok(parts.build()?)
}
