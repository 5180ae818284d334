//! Rigs and takes of any size for tests and benchmarks: an egg-shaped head with localised shapes and
//! correctives of three levels, drawn from a seed.

use understudy_core::{BlendshapeRig, Corrective, Random, Shape, SparseDeltas, Vec3};

/// How large a synthetic rig is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SyntheticRig {
    /// `n`.
    pub vertices: usize,
    /// `m`.
    pub shapes: usize,
    /// Correctives of two shapes.
    pub pairs: usize,
    /// Of three.
    pub triples: usize,
    /// Of four.
    pub quadruples: usize,
    /// Radius of the region that a shape moves, smallest and largest, cm (the head is 18 cm wide).
    pub radius: (f32, f32),
    /// Drawn from.
    pub seed: u64,
}

impl SyntheticRig {
    /// The size of the paper's characters Ada, Jesse and Vivian (its Table 1): 10,000 vertices, 102 shapes
    /// and 185/130/50 correctives.
    pub fn paper() -> Self {
        Self {
            vertices: 10_000,
            shapes: 102,
            pairs: 185,
            triples: 130,
            quadruples: 50,
            radius: (2.5, 11.0),
            seed: 1,
        }
    }

    /// A rig for tests: quartic, with shapes that overlap a lot.
    pub fn small(seed: u64) -> Self {
        Self { vertices: 60, shapes: 9, pairs: 8, triples: 6, quadruples: 4, radius: (5.0, 14.0), seed }
    }
}

/// Draws a rig. Correctives combine shapes whose regions overlap, as an artist's do.
pub fn random_rig(size: &SyntheticRig) -> BlendshapeRig {
    let neutral: Vec<Vec3> = (0..size.vertices).map(|v| on_head(v, size.vertices)).collect();
    let mut random = Random::stream(size.seed, 0);
    let mut fields: Vec<Field> = Vec::new();
    let mut shapes = Vec::new();
    while shapes.len() < size.shapes {
        let field = Field::draw(&mut random, &neutral, size.radius);
        let deltas = field.deltas(&neutral);
        if deltas.is_empty() {
            continue;
        }
        shapes.push(Shape { name: format!("shape_{:03}", shapes.len()), deltas });
        fields.push(field);
    }
    let mut correctives: Vec<Corrective> = Vec::new();
    for (level, count) in [(2, size.pairs), (3, size.triples), (4, size.quadruples)] {
        let mut made = 0;
        let mut tries = 0;
        while made < count && size.shapes >= level {
            tries += 1;
            let Some(list) = draw_overlapping(&mut random, &fields, level, tries > 100 * count) else {
                continue;
            };
            // A small rig may have fewer combinations than asked for: then one is corrected twice.
            if correctives.iter().any(|c| c.shapes == list) && tries < 200 * count {
                continue;
            }
            let first = &fields[list[0] as usize];
            let strength = random.uniform(0.2, 0.5);
            let mut field = Field::draw(&mut random, &neutral, (0.6 * first.radius, 0.9 * first.radius));
            field.centre = first.centre;
            field.amplitude *= strength;
            let deltas = field.deltas(&neutral);
            correctives.push(Corrective { shapes: list, deltas });
            made += 1;
        }
    }
    BlendshapeRig::new(neutral, shapes, correctives).expect("drawn to be valid")
}

/// Smooth, sparse weight curves in `[0, 1]`, `[frames][m]`: every shape is silent most of the time and
/// swells a few times.
pub fn random_take(shape_count: usize, frames: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut take = vec![vec![0.0f32; shape_count]; frames];
    for shape in 0..shape_count {
        let mut random = Random::stream(seed, 1 + shape as u64);
        let swells = 1 + frames / 120;
        for _ in 0..swells {
            let middle = random.uniform(0.0, frames as f32);
            let width = random.uniform(8.0, 30.0);
            let height = random.uniform(0.15, 1.0);
            for (frame, weights) in take.iter_mut().enumerate() {
                let place = ((frame as f32 - middle) / width).clamp(-1.0, 1.0);
                let swell = height * (1.0 - place * place).powi(2);
                weights[shape] = weights[shape].max(swell);
            }
        }
    }
    take
}

/// A point of the spiral that covers an egg evenly.
fn on_head(vertex: usize, count: usize) -> Vec3 {
    let y = 1.0 - 2.0 * (vertex as f64 + 0.5) / count as f64;
    let radius = (1.0 - y * y).sqrt();
    let angle = vertex as f64 * std::f64::consts::PI * (3.0 - 5f64.sqrt());
    Vec3::new((9.0 * radius * angle.cos()) as f32, (12.0 * y) as f32, (10.0 * radius * angle.sin()) as f32)
}

/// A bump of displacement around a point.
struct Field {
    centre: Vec3,
    radius: f32,
    direction: Vec3,
    /// How the direction turns over the region, so that two fields at one place are not parallel.
    turn: Vec3,
    amplitude: f32,
}

impl Field {
    fn draw(random: &mut Random, neutral: &[Vec3], radius: (f32, f32)) -> Self {
        let mut vector = || Vec3::from_array([0; 3].map(|_| random.normal() as f32)).normalize_or(Vec3::X);
        let (direction, turn) = (vector(), vector());
        let centre = neutral[random.below(neutral.len())];
        let radius = random.uniform(radius.0, radius.1);
        let amplitude = random.uniform(0.3, 1.5);
        Self { centre, radius, direction, turn, amplitude }
    }

    fn deltas(&self, neutral: &[Vec3]) -> SparseDeltas {
        let delta = |position: &Vec3| {
            let from = (*position - self.centre) / self.radius;
            let falloff = (1.0 - from.length_squared()).max(0.0).powi(2);
            (self.direction + from.cross(self.turn)) * (self.amplitude * falloff)
        };
        let dense: Vec<Vec3> = neutral.iter().map(delta).collect();
        SparseDeltas::from_dense(&dense, 1e-4)
    }
}

fn draw_overlapping(random: &mut Random, fields: &[Field], level: usize, anywhere: bool) -> Option<Vec<u32>> {
    let mut list: Vec<u32> = vec![random.below(fields.len()) as u32];
    for _ in 0..20 {
        if list.len() == level {
            break;
        }
        let other = random.below(fields.len());
        let first = &fields[list[0] as usize];
        let near = fields[other].centre.distance(first.centre) < 0.8 * (fields[other].radius + first.radius);
        if (near || anywhere) && !list.contains(&(other as u32)) {
            list.push(other as u32);
        }
    }
    list.sort_unstable();
    (list.len() == level).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_as_asked_and_the_same_every_time() {
        let size = SyntheticRig { vertices: 500, ..SyntheticRig::paper() };
        let rig = random_rig(&size);
        assert_eq!((rig.neutral().len(), rig.shapes().len(), rig.correctives().len()), (500, 102, 365));
        assert_eq!(rig, random_rig(&size));
        let take = random_take(20, 100, 3);
        assert!(take.iter().flatten().all(|w| (0.0..=1.0).contains(w)));
    }
}
