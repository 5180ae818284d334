//! Where a face folds: lines on the forehead, between the brows, beside the eyes and from the nose to
//! the mouth, drawn on the surface from the 68 landmarks.

use understudy_core::normals::vertex_normals;
use understudy_core::{ControlSpecs, Mesh, Vec3};
use understudy_rigs::deformers::{Activation, Driver, Response, Wrinkle, WrinkleGroup};

/// Draws lines on the skin.
struct Pen<'a> {
    mesh: &'a Mesh,
    normals: Vec<Vec3>,
    skin: Vec<u32>,
    landmarks: &'a [u32; 68],
    /// 1 for a face whose chin is 11.3 cm below the bridge of the nose.
    scale: f32,
}

impl Pen<'_> {
    fn landmark(&self, landmark: usize) -> Vec3 {
        self.mesh.positions()[self.landmarks[landmark] as usize]
    }

    /// The point of the tangent plane at the nearest skin vertex, and that vertex's normal.
    fn snap(&self, point: Vec3) -> (Vec3, Vec3) {
        let away = |vertex: &u32| self.mesh.positions()[*vertex as usize].distance_squared(point);
        let nearest = self.skin.iter().min_by(|a, b| away(a).total_cmp(&away(b)));
        let Some(&nearest) = nearest else { return (point, Vec3::Z) };
        let normal = self.normals[nearest as usize];
        let height = normal.dot(point - self.mesh.positions()[nearest as usize]);
        (point - normal * height, normal)
    }

    /// Walks over the skin from a point: points every `step` cm of the way, the start included.
    fn walk(&self, start: Vec3, direction: Vec3, length: f32, count: usize) -> Vec<Vec3> {
        let (mut point, mut normal) = self.snap(start);
        let mut way = direction.normalize_or_zero();
        let mut path = vec![point];
        for _ in 0..count {
            way = way.reject_from(normal).normalize_or_zero();
            (point, normal) = self.snap(point + way * (length / count as f32));
            path.push(point);
        }
        path
    }

    /// A line through points in space, laid on the skin.
    fn lay(&self, through: [Vec3; 3]) -> Vec<Vec3> {
        let [a, b, c] = through;
        let at =
            |t: f32| a * (1.0 - t) * (1.0 - 2.0 * t) + b * (4.0 * t * (1.0 - t)) + c * t * (2.0 * t - 1.0);
        (0..=10).map(|step| self.snap(at(step as f32 / 10.0)).0).collect()
    }
}

/// All folds whose driving shapes exist.
pub(super) fn folds(
    mesh: &Mesh,
    landmarks: &[u32; 68],
    skin: &[bool],
    scale: f32,
    specs: &ControlSpecs,
) -> Vec<WrinkleGroup> {
    let skin: Vec<u32> = (0u32..).zip(skin).filter(|(_, skin)| **skin).map(|(v, _)| v).collect();
    let normals = vertex_normals(mesh.faces(), mesh.positions());
    let pen = Pen { mesh, normals, skin, landmarks, scale };
    let mut groups = Vec::new();
    let mut add = |name: &str, drivers: &[(&str, f32)], wrinkles: Vec<Wrinkle>| {
        let terms: Vec<(usize, f32)> =
            drivers.iter().filter_map(|(name, gain)| Some((specs.find(name)?, *gain))).collect();
        if !terms.is_empty() {
            let driver = Driver::sum(terms).through(Response::Smooth { from: 0.1, to: 1.0 });
            let activation = Activation::Driver(driver);
            groups.push(WrinkleGroup { name: name.into(), wrinkles, activation, region: pen.skin.clone() });
        }
    };
    for (side, right) in [("_R", true), ("_L", false)] {
        let sided = |names: &[(&str, f32)]| -> Vec<(String, f32)> {
            names.iter().map(|(name, gain)| (format!("{name}{side}"), *gain)).collect()
        };
        let mut sided_group = |name: &str, names: &[(&str, f32)], wrinkles| {
            let names = sided(names);
            let names: Vec<(&str, f32)> = names.iter().map(|(name, gain)| (name.as_str(), *gain)).collect();
            add(&format!("{name}{side}"), &names, wrinkles);
        };
        sided_group("forehead", &[("browInnerUp", 0.7), ("browOuterUp", 0.5)], forehead(&pen, right));
        sided_group("frown", &[("browDown", 1.0)], frown(&pen, right));
        let squeeze = [("eyeSquint", 0.8), ("cheekSquint", 0.4), ("mouthSmile", 0.45)];
        sided_group("crow's foot", &squeeze, crows_foot(&pen, right));
        let smile = [("mouthSmile", 1.0), ("noseSneer", 0.5), ("mouthUpperUp", 0.4)];
        sided_group("nasolabial", &smile, nasolabial(&pen, right));
        sided_group("nose", &[("noseSneer", 1.0)], bunny_lines(&pen, right));
    }
    groups
}

/// Three lines across half a forehead, above the brow and along it.
fn forehead(pen: &Pen<'_>, right: bool) -> Vec<Wrinkle> {
    let brow: [usize; 5] = if right { [17, 18, 19, 20, 21] } else { [26, 25, 24, 23, 22] };
    let columns: Vec<Vec<Vec3>> = brow[1..]
        .iter()
        .map(|landmark| pen.walk(pen.landmark(*landmark), Vec3::Y, 3.6 * pen.scale, 36))
        .collect();
    let line = |height: f32| {
        let row = (height * 10.0) as usize;
        let mut path: Vec<Vec3> = columns.iter().map(|column| column[row]).collect();
        // On to the middle, a little past it, so that left and right lines melt into each other.
        let inner = path[path.len() - 1];
        path.push(pen.snap(Vec3::new(inner.x * -0.3, inner.y, inner.z)).0);
        Wrinkle { path, width: 0.42 * pen.scale, depth: 0.11 * pen.scale }
    };
    [1.3, 2.2, 3.1].map(line).to_vec()
}

/// The upright line at the inner end of a brow.
fn frown(pen: &Pen<'_>, right: bool) -> Vec<Wrinkle> {
    let inner = pen.landmark(if right { 21 } else { 22 });
    let bridge = pen.landmark(27);
    let start = Vec3::new(inner.x * 0.42, 0.45 * inner.y + 0.55 * bridge.y, bridge.z);
    let path = pen.walk(start, Vec3::new(inner.x * 0.25, 2.0, 0.0), 2.4 * pen.scale, 8);
    vec![Wrinkle { path, width: 0.36 * pen.scale, depth: 0.12 * pen.scale }]
}

/// A fan of three lines outwards from the outer corner of an eye.
fn crows_foot(pen: &Pen<'_>, right: bool) -> Vec<Wrinkle> {
    let [inner, outer] = if right { [39, 36] } else { [42, 45] };
    let corner = pen.landmark(outer);
    let outwards = (corner - pen.landmark(inner)).with_y(0.0).normalize_or_zero();
    let line = |rise: f32| {
        let way = outwards + Vec3::Y * rise;
        let path = pen.walk(corner + way * (0.5 * pen.scale), way, 1.7 * pen.scale, 8);
        Wrinkle { path, width: 0.26 * pen.scale, depth: 0.05 * pen.scale }
    };
    [0.45, 0.0, -0.45].map(line).to_vec()
}

/// From beside the wing of the nose, round the corner of the mouth.
fn nasolabial(pen: &Pen<'_>, right: bool) -> Vec<Wrinkle> {
    let [wing, corner] = if right { [31, 48] } else { [35, 54] };
    let (wing, corner) = (pen.landmark(wing), pen.landmark(corner));
    let out = Vec3::X * wing.x.signum() * pen.scale;
    let up = Vec3::Y * pen.scale;
    let middle = (wing + corner) * 0.5 + out * 1.15 + up * 0.1;
    let path = pen.lay([wing + out * 0.95 + up * 0.55, middle, corner + out * 1.0 - up * 0.7]);
    vec![Wrinkle { path, width: 0.45 * pen.scale, depth: 0.13 * pen.scale }]
}

/// Two short slanting lines beside the bridge of the nose.
fn bunny_lines(pen: &Pen<'_>, right: bool) -> Vec<Wrinkle> {
    let side = if right { -1.0 } else { 1.0 };
    let line = |drop: f32| {
        let start = pen.landmark(27) + Vec3::new(side * 0.35, -drop, 0.0) * pen.scale;
        let path = pen.walk(start, Vec3::new(side, -0.6, -0.8), 1.4 * pen.scale, 6);
        Wrinkle { path, width: 0.3 * pen.scale, depth: 0.07 * pen.scale }
    };
    [0.1, 0.75].map(line).to_vec()
}
