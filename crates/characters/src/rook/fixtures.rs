//! What is sewn onto Rook, each piece an island of its own: lenses, buckles, buttons, straps, pouches,
//! feathers of the mantle and a spike at the end of every hem chain.

use super::coat::skirt_point;
use super::feathers;
use super::head::on_face;
use super::paint;
use super::plan;
use super::ride::Rider;
use super::sculpt::{FineBody, Row, mixed};
use super::surface::{Place, Surface, frame};
use crate::modeling::{Cage, ellipsoid, tube};
use std::f32::consts::TAU;
use understudy_core::{Affine3A, Vec2, Vec3};

/// Everything that is added to the body.
pub struct Fixtures {
    /// Body and parts.
    pub cage: Cage,
    /// Weights of all vertices.
    pub rows: Vec<Row>,
    /// Colours of the parts' vertices, in order.
    pub colours: Vec<Vec3>,
    /// How the parts follow.
    pub riders: Vec<Rider>,
    cells: usize,
}

impl Fixtures {
    fn new(body: &FineBody) -> Self {
        Self {
            cage: body.cage.clone(),
            rows: body.rows.clone(),
            colours: Vec::new(),
            riders: Vec::new(),
            cells: 0,
        }
    }

    /// The next free cell of the texture's upper strip.
    pub fn cell(&mut self) -> (Vec2, Vec2) {
        const COLUMNS: usize = 50;
        let (column, row) = (self.cells % COLUMNS, self.cells / COLUMNS);
        self.cells += 1;
        let low = Vec2::new(0.001 + column as f32 * 0.02, 0.912 + row as f32 * 0.0145);
        (low, low + Vec2::new(0.018, 0.0135))
    }

    fn add(&mut self, part: &Cage, colour: impl Fn(Vec3) -> Vec3) -> std::ops::Range<u32> {
        let first = self.cage.append(part);
        self.colours.extend(part.positions.iter().map(|p| colour(*p)));
        first..self.cage.positions.len() as u32
    }

    fn average(&self, anchors: [u32; 3]) -> Row {
        let [a, b, c] = anchors.map(|anchor| self.rows[anchor as usize].clone());
        mixed(&mixed(&a, &b, 0.5), &c, 1.0 / 3.0)
    }

    /// Adds a hard part given in the frame of its place.
    pub fn hard(&mut self, mut part: Cage, at: Affine3A, anchors: [u32; 3], colour: Vec3) {
        part.positions.iter_mut().for_each(|p| *p = at.transform_point3(*p));
        let vertices = self.add(&part, |_| colour);
        let row = self.average(anchors);
        self.rows.extend(vertices.clone().map(|_| row.clone()));
        self.riders.push(Rider { anchors, rigid: true, vertices: vertices.collect() });
    }

    /// Adds a soft part whose vertices each follow their own place.
    pub fn soft(&mut self, part: &Cage, places: &[Place], colour: Vec3) {
        let vertices = self.add(part, |_| colour);
        for (vertex, place) in vertices.zip(places) {
            let row = self.average(place.corners);
            self.rows.push(row);
            self.riders.push(Rider { anchors: place.corners, rigid: false, vertices: vec![vertex] });
        }
    }
}

/// Three vertices about `reach` cm around a place, for a frame steadier than one triangle.
pub fn anchors(surface: &Surface<'_>, place: &Place, reach: f32) -> [u32; 3] {
    let at = frame(place, Vec3::Y);
    let around = [0.0f32, 120.0, 240.0].map(|angle| {
        let (sin, cos) = angle.to_radians().sin_cos();
        at.transform_point3(Vec3::new(sin, cos, 0.0) * reach)
    });
    let found = around.map(|point| surface.nearest(point).map_or(place.corners[0], |near| near.corners[0]));
    let [a, b, c] = found;
    if a == b || b == c || a == c { place.corners } else { found }
}

/// A closed ring through `points`, round in section.
pub fn ring(segment: &str, points: &[Vec3], radius: f32, cell: (Vec2, Vec2)) -> Cage {
    let mut cage = Cage::default();
    let segment = cage.segment(segment);
    let count = points.len();
    let middle = points.iter().sum::<Vec3>() / count as f32;
    let sides = 6;
    let rows: Vec<Vec<u32>> = (0..=count)
        .map(|index| {
            if index == count {
                return (0..sides as u32).collect();
            }
            let out = (points[index] - middle).normalize();
            let next = points[(index + 1) % count] - points[(index + count - 1) % count];
            let up = next.cross(out).normalize();
            let corner = |step: usize| {
                let (sin, cos) = (TAU * step as f32 / sides as f32).sin_cos();
                points[index] + (out * cos + up * sin) * radius
            };
            (0..sides).map(|step| cage.vertex(corner(step))).collect()
        })
        .collect();
    let size = cell.1 - cell.0;
    let uv = |row: usize, column: usize| {
        cell.0 + size * Vec2::new(row as f32 / count as f32, column as f32 / sides as f32)
    };
    cage.skin_rows(&rows, true, segment, uv);
    cage
}

/// A box with soft edges about the origin.
fn soft_box(segment: &str, size: Vec3, cell: (Vec2, Vec2)) -> Cage {
    let mut part = ellipsoid(segment, Vec3::ONE, 12, 6, cell.0, cell.1);
    for p in &mut part.positions {
        let square = |v: f32| v.abs().powf(0.45).copysign(v);
        *p = Vec3::new(square(p.x), square(p.y), square(p.z)) * size * 0.62;
    }
    part
}

/// Adds everything to the body.
pub fn build(body: &FineBody) -> Fixtures {
    let mut fixtures = Fixtures::new(body);
    eyes(&mut fixtures, body);
    belt(&mut fixtures, body);
    chest(&mut fixtures, body);
    feathers::build(&mut fixtures, body);
    hem_spikes(&mut fixtures, body);
    boot_straps(&mut fixtures, body);
    fixtures
}

fn eyes(fixtures: &mut Fixtures, body: &FineBody) {
    let mask = Surface::new(&body.cage, &["mask"]);
    for sign in [1.0f32, -1.0] {
        let aim = on_face(4.5 * sign, 176.4);
        let Some(place) =
            mask.hit(aim + Vec3::new(12.0 * sign, 4.0, 60.0), Vec3::new(-12.0 * sign, -4.0, -60.0))
        else {
            continue;
        };
        let anchors = anchors(&mask, &place, 1.6);
        let at = frame(&place, Vec3::Y);
        let (low, high) = fixtures.cell();
        let lens = ellipsoid("lens", Vec3::new(2.15, 2.15, 0.9), 16, 6, low, high);
        fixtures.hard(lens, at, anchors, paint::LENS);
        let points: Vec<Vec3> = (0..16)
            .map(|step| {
                let (sin, cos) = (TAU * step as f32 / 16.0).sin_cos();
                Vec3::new(2.3 * sin, 2.3 * cos, 0.35)
            })
            .collect();
        let rim = ring("lens_rim", &points, 0.48, fixtures.cell());
        fixtures.hard(rim, at, anchors, paint::BRASS);
    }
}

fn rectangle(width: f32, height: f32, z: f32) -> Vec<Vec3> {
    let mut points = Vec::new();
    let corners = [(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0)];
    for index in 0..4 {
        let (a, b) = (corners[index], corners[(index + 1) % 4]);
        for t in [0.06f32, 0.5, 0.94] {
            let at = |a: f32, b: f32| a + (b - a) * t;
            points.push(Vec3::new(at(a.0, b.0) * width, at(a.1, b.1) * height, z));
        }
    }
    points
}

fn buckle(
    fixtures: &mut Fixtures,
    surface: &Surface<'_>,
    place: &Place,
    up: Vec3,
    size: [f32; 2],
    name: &str,
) {
    let anchors = anchors(surface, place, 2.2);
    let at = frame(place, up);
    let frame_ring =
        ring(name, &rectangle(size[0], size[1], 0.45), 0.16 * size[1].min(size[0]) + 0.1, fixtures.cell());
    fixtures.hard(frame_ring, at, anchors, paint::BRASS);
    let (low, high) = fixtures.cell();
    let ends = [Vec3::new(-size[0], 0.0, 0.6), Vec3::new(0.0, 0.0, 0.9), Vec3::new(size[0], 0.0, 0.6)];
    let radius = Vec2::splat(0.1 * size[1] + 0.08);
    let prong = tube("prong", &ends, &[radius; 3], Vec3::Y, 6, true, low, high);
    fixtures.hard(prong, at, anchors, paint::BRASS);
}

fn belt(fixtures: &mut Fixtures, body: &FineBody) {
    let belt = Surface::new(&body.cage, &["belt"]);
    if let Some(place) = belt.hit(Vec3::new(0.0, 106.2, 60.0), Vec3::NEG_Z) {
        buckle(fixtures, &belt, &place, Vec3::Y, [3.4, 3.5], "buckle");
    }
    for (x, z, size) in [
        (46.0f32, 30.0f32, Vec3::new(4.6, 5.4, 2.4)),
        (-48.0, 22.0, Vec3::new(3.4, 4.4, 2.2)),
        (-30.0, -52.0, Vec3::new(5.4, 4.6, 2.4)),
    ] {
        let Some(place) = belt.hit(Vec3::new(x, 105.0, z), Vec3::new(-x, 0.0, -z)) else { continue };
        let anchors = anchors(&belt, &place, 2.4);
        let up = frame(&place, Vec3::Y);
        let at = up * Affine3A::from_translation(Vec3::new(0.0, -2.4, 1.3));
        let pouch = soft_box("pouch", size, fixtures.cell());
        fixtures.hard(pouch, at, anchors, paint::LEATHER * 0.8);
        let flap = soft_box("pouch", Vec3::new(size.x * 1.08, size.y * 0.55, size.z * 1.1), fixtures.cell());
        let lid = at * Affine3A::from_translation(Vec3::new(0.0, size.y * 0.3, 0.25));
        fixtures.hard(flap, lid, anchors, paint::LEATHER);
        let (low, high) = fixtures.cell();
        let stud = ellipsoid("stud", Vec3::new(0.6, 0.6, 0.4), 8, 4, low, high);
        let place = at * Affine3A::from_translation(Vec3::new(0.0, size.y * 0.08, size.z * 0.72));
        fixtures.hard(stud, place, anchors, paint::BRASS);
    }
}

/// A strip that lies on the body along a path of rays: `rays` give the outer ends and directions of the
/// middle line, `across` the half width as a direction.
fn strip(
    fixtures: &mut Fixtures,
    surface: &Surface<'_>,
    rays: &[(Vec3, Vec3, Vec3)],
    thickness: f32,
    name: &str,
    colour: Vec3,
) {
    let mut cage = Cage::default();
    let segment = cage.segment(name);
    let (low, high) = fixtures.cell();
    let mut places = Vec::new();
    let mut rows: Vec<Vec<u32>> = Vec::new();
    // Section: edge on the cloth, raised edge, middle, raised edge, edge on the cloth.
    let section = [(-1.0f32, -0.1f32), (-0.94, 1.0), (0.0, 1.15), (0.94, 1.0), (1.0, -0.1)];
    for (origin, direction, across) in rays {
        let mut row = Vec::new();
        for (side, lift) in section {
            let Some(place) = surface.hit(*origin + *across * side, *direction) else { return };
            row.push(cage.vertex(place.point + place.normal * (lift * thickness)));
            places.push(place);
        }
        rows.push(row);
    }
    let count = rays.len() as f32 - 1.0;
    let uv =
        |row: usize, column: usize| low + (high - low) * Vec2::new(row as f32 / count, column as f32 / 4.0);
    cage.skin_rows(&rows, false, segment, uv);
    let normal = understudy_core::normals::face_area_vector(&cage.faces[0].face, &cage.positions);
    if normal.dot(rays[0].1) > 0.0 {
        // Seen from outside the rows must run the other way.
        rows.iter_mut().for_each(|row| row.reverse());
        cage.faces.clear();
        cage.skin_rows(&rows, false, segment, uv);
    }
    fixtures.soft(&cage, &places, colour);
}

fn chest(fixtures: &mut Fixtures, body: &FineBody) {
    // Without the sleeves, which stand between the outside and the flanks.
    let shoulder = |p: Vec3| p.x.abs() < 19.5 && p.y + p.x.abs() < 172.0;
    let coat = Surface::new(&body.cage, &["coat", "belt"]).only(shoulder);
    // Lapels: from under the mantle to the belt, folded open.
    for sign in [1.0f32, -1.0] {
        let rays: Vec<(Vec3, Vec3, Vec3)> = (0..14)
            .map(|step| {
                let t = step as f32 / 13.0;
                let y = 110.8 + 34.0 * t;
                let x = (1.4 + 4.6 * t * t) * sign;
                let width = 1.1 + 2.2 * (t * 1.15).min(1.0);
                (Vec3::new(x, y, 60.0), Vec3::NEG_Z, Vec3::X * width)
            })
            .collect();
        strip(fixtures, &coat, &rays, 0.55, "lapel", paint::TRIM);
    }
    for (index, y) in [113.5f32, 119.5, 125.5, 131.5].into_iter().enumerate() {
        for sign in [1.0f32, -1.0] {
            let x = (4.4 + 0.9 * index as f32) * sign;
            let Some(place) = coat.hit(Vec3::new(x, y, 60.0), Vec3::NEG_Z) else { continue };
            let anchors = anchors(&coat, &place, 1.6);
            let (low, high) = fixtures.cell();
            let button = ellipsoid("button", Vec3::new(0.85, 0.85, 0.5), 8, 4, low, high);
            let at = frame(&place, Vec3::Y) * Affine3A::from_translation(Vec3::Z * 0.15);
            fixtures.hard(button, at, anchors, paint::BRASS);
        }
    }
    baldric(fixtures, &coat);
}

/// The strap from the right shoulder to the left hip, around the whole torso.
fn baldric(fixtures: &mut Fixtures, coat: &Surface<'_>) {
    let middle = Vec3::new(0.5, 129.0, -0.8);
    // The plane of the strap leans from the right shoulder down to the left hip.
    let down_left = Vec3::new(0.62, -0.78, 0.0);
    let steps = 44;
    let from = 0.17;
    let rays: Vec<(Vec3, Vec3, Vec3)> = (0..=steps)
        .map(|step| {
            // The gap at the shoulder lies under the mantle.
            let angle = TAU * (from + (1.0 - 2.0 * from) * step as f32 / steps as f32);
            let direction = -down_left * angle.cos() + Vec3::Z * angle.sin();
            let side = Vec3::new(0.78, 0.62, 0.0) * 1.5;
            (middle + direction * 60.0, -direction, side)
        })
        .collect();
    strip(fixtures, coat, &rays, 0.8, "strap", paint::LEATHER * 0.9);
    let direction = -down_left * (TAU * 0.27).cos() + Vec3::Z * (TAU * 0.27).sin();
    if let Some(place) = coat.hit(middle + direction * 60.0, -direction) {
        let raised = Place { point: place.point + place.normal * 0.8, ..place };
        buckle(fixtures, coat, &raised, Vec3::new(0.78, 0.62, 0.0), [1.7, 2.2], "chest_buckle");
    }
}

fn hem_spikes(fixtures: &mut Fixtures, body: &FineBody) {
    let coat = Surface::new(&body.cage, &["coat"]);
    for sign in [1.0f32, -1.0] {
        for (_, column) in plan::HEM {
            let mirror = Vec3::new(sign, 1.0, 1.0);
            let (end, above) = (skirt_point(4, column) * mirror, skirt_point(3, column) * mirror);
            let along = (end - above).normalize();
            let Some(place) = coat.nearest(end) else { continue };
            let outward = Vec3::new(end.x, 0.0, end.z).normalize();
            let root = place.point - along * 1.6;
            let centres = [root, root + along * 2.2, root + along * 6.0, root + along * 8.4];
            let radii = [1.0, 1.25, 0.62, 0.06].map(Vec2::splat);
            let (low, high) = fixtures.cell();
            let spike = tube("spike", &centres, &radii, outward, 8, true, low, high);
            let held = anchors(&coat, &Place { point: root, ..place }, 2.4);
            fixtures.hard(spike, Affine3A::IDENTITY, held, paint::STEEL);
        }
    }
}

fn boot_straps(fixtures: &mut Fixtures, body: &FineBody) {
    let boot = Surface::new(&body.cage, &["boot", "boot_cuff"]);
    for sign in [1.0f32, -1.0] {
        for (y, tilt) in [(14.5f32, 0.16f32), (28.0, 0.0)] {
            let middle = Vec3::new(plan::ANKLE.x * sign, y, plan::ANKLE.z + 0.4);
            let rays: Vec<(Vec3, Vec3, Vec3)> = (0..=22)
                .map(|step| {
                    let angle = TAU * step as f32 / 22.0;
                    let direction = Vec3::new(angle.sin(), -tilt * angle.cos(), angle.cos());
                    (middle + direction * 20.0, -direction, Vec3::Y * 1.1)
                })
                .collect();
            strip(fixtures, &boot, &rays, 0.55, "boot_strap", paint::LEATHER * 0.75);
            let direction = Vec3::new(0.95 * sign, 0.0, 0.3);
            if let Some(place) = boot.hit(middle + direction * 20.0, -direction) {
                let raised = Place { point: place.point + place.normal * 0.5, ..place };
                buckle(fixtures, &boot, &raised, Vec3::Y, [1.2, 1.5], "boot_buckle");
            }
        }
    }
}
