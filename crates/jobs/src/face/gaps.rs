//! Do lips and lids open? Pairs of vertices that touch at rest but belong to different shores of an
//! opening, and how wide the twin opens them against the truth.

use serde::Serialize;
use understudy_core::{Mesh, Vec3};

/// Vertices nearer than this at rest touch, cm.
const TOUCH: f32 = 0.25;
/// A pair joined by a path of so many edges is no opening.
const SHORE: usize = 8;
/// An opening counts when it is wider than this, cm.
const OPEN: f32 = 0.3;
/// Pairs that suffice.
const MOST: usize = 400;
/// An opening whose width is less than this share of the truth is stuck.
const STUCK: f64 = 0.5;

/// Pairs of vertices across openings.
#[derive(Debug, Clone)]
pub struct Gaps {
    pairs: Vec<(u32, u32)>,
    figures: GapFigures,
    squares: f64,
}

/// How openings fare.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct GapFigures {
    /// Pairs that open somewhere in the poses.
    pub pairs: usize,
    /// Pairs and poses in which the truth is open by 3 mm or more.
    pub open: usize,
    /// Of these, where the twin opens less than half as wide.
    pub stuck: usize,
    /// The smallest width of the twin as a share of the truth, where the truth is open.
    pub smallest_share: f64,
    /// Root mean square error of the width, mm, where the truth is open.
    pub rms_mm: f64,
}

impl Gaps {
    /// Finds pairs that touch at rest and come apart in some of the poses.
    pub fn new<'a>(mesh: &Mesh, poses: impl Iterator<Item = &'a [Vec3]>) -> Self {
        let candidates = touching(mesh);
        let rest = mesh.positions();
        let mut widest = vec![0.0f32; candidates.len()];
        for vertices in poses {
            for (widest, (a, b)) in widest.iter_mut().zip(&candidates) {
                *widest = widest.max(vertices[*a as usize].distance(vertices[*b as usize]));
            }
        }
        let opens = |(widest, (a, b)): &(f32, (u32, u32))| {
            *widest > OPEN.max(2.0 * rest[*a as usize].distance(rest[*b as usize]))
        };
        let candidates: Vec<(u32, u32)> =
            widest.into_iter().zip(candidates).filter(opens).map(|(_, pair)| pair).collect();
        let step = candidates.len().div_ceil(MOST).max(1);
        let pairs: Vec<(u32, u32)> = candidates.into_iter().step_by(step).collect();
        let figures = GapFigures { pairs: pairs.len(), smallest_share: 1.0, ..GapFigures::default() };
        Self { pairs, figures, squares: 0.0 }
    }

    /// Adds one pose.
    pub fn add(&mut self, truth: &[Vec3], twin: &[Vec3]) {
        for &(a, b) in &self.pairs {
            let width = |v: &[Vec3]| f64::from(v[a as usize].distance(v[b as usize]));
            let (wide, own) = (width(truth), width(twin));
            if wide > f64::from(OPEN) {
                let share = own / wide;
                self.figures.open += 1;
                self.figures.stuck += usize::from(share < STUCK);
                self.figures.smallest_share = self.figures.smallest_share.min(share);
                self.squares += (own - wide).powi(2);
            }
        }
    }

    /// What came out.
    pub fn figures(&self) -> GapFigures {
        let rms_mm = (self.squares / self.figures.open.max(1) as f64).sqrt() * 10.0;
        GapFigures { rms_mm, ..self.figures }
    }
}

/// Pairs that touch at rest without a short path between them, within one island: the shores of a mouth
/// are joined at its corners, while a tooth that touches a lip belongs to nobody's opening.
fn touching(mesh: &Mesh) -> Vec<(u32, u32)> {
    let rest = mesh.positions();
    let (islands, _) = mesh.islands();
    let adjacency = mesh.adjacency();
    let cell = |p: Vec3| (p / TOUCH).floor().as_ivec3().to_array();
    let mut cells: std::collections::BTreeMap<[i32; 3], Vec<u32>> = Default::default();
    for (vertex, p) in (0u32..).zip(rest) {
        cells.entry(cell(*p)).or_default().push(vertex);
    }
    let mut out = Vec::new();
    let mut rings = vec![u8::MAX; rest.len()];
    for a in 0..rest.len() as u32 {
        let at = rest[a as usize];
        let [x, y, z] = cell(at);
        let mut near = Vec::new();
        for place in 0..27 {
            let key = [x + place % 3 - 1, y + place / 3 % 3 - 1, z + place / 9 - 1];
            near.extend(cells.get(&key).into_iter().flatten().copied().filter(|b| {
                *b > a
                    && rest[*b as usize].distance(at) < TOUCH
                    && islands[*b as usize] == islands[a as usize]
            }));
        }
        if near.is_empty() {
            continue;
        }
        // Rings of neighbours around `a`.
        let (mut ring, mut seen) = (vec![a], vec![a]);
        rings[a as usize] = 0;
        for number in 1..=SHORE as u8 {
            let mut next = Vec::new();
            for &vertex in &ring {
                for &other in adjacency.neighbours(vertex as usize) {
                    if rings[other as usize] == u8::MAX {
                        rings[other as usize] = number;
                        next.push(other);
                        seen.push(other);
                    }
                }
            }
            ring = next;
        }
        out.extend(near.into_iter().filter(|b| rings[*b as usize] == u8::MAX).map(|b| (a, b)));
        seen.iter().for_each(|v| rings[*v as usize] = u8::MAX);
    }
    out
}
