//! Do lips and lids open and close? Pairs of vertices on different shores of an opening, found where they
//! touch, at rest or in a pose, and how wide a method opens them against the truth.

use super::figures::{Figures, Findings, Posed, Study};
use super::pictures::Exhibit;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use understudy_core::{Adjacency, Mesh, Vec3};
use understudy_report::html::{Cell, Column, Section, Table};

/// Vertices nearer than this touch, cm.
const TOUCH: f32 = 0.25;
/// A pair joined by a path of so many edges is no opening.
const SHORE: usize = 8;
/// An opening counts when it is wider than this, cm.
const OPEN: f32 = 0.3;
/// Pairs that suffice for each of the two kinds: those that touch at rest and those that touch in a pose.
const MOST: usize = 400;
/// An opening whose width is less than this share of the truth is stuck.
const STUCK: f64 = 0.5;

/// The openings of a face, by method.
pub(crate) struct Openings {
    names: Vec<String>,
    gaps: Vec<Gaps>,
}

impl Openings {
    /// Finds the pairs.
    pub fn new(study: &Study<'_>) -> Self {
        let poses =
            study.sets.iter().flat_map(|(_, poses)| (0..poses.len()).map(|pose| poses.vertices_of(pose)));
        let gaps = Gaps::new(study.mesh, poses);
        Self { gaps: vec![gaps; study.names.len()], names: study.names.to_vec() }
    }

    fn figures(&self) -> impl Iterator<Item = (&String, GapFigures)> {
        self.names.iter().zip(self.gaps.iter().map(Gaps::figures))
    }
}

impl Figures for Openings {
    fn add(&mut self, method: usize, posed: &Posed<'_>) {
        self.gaps[method].add(posed.truth, posed.vertices);
    }

    fn findings(&self) -> Findings {
        let line = |(name, g): (&String, GapFigures)| {
            format!(
                "{name}: of lips and lids {} of {} open pairs are stuck, {} of {} closed ones ajar",
                g.stuck, g.open, g.ajar, g.closed
            )
        };
        let all: BTreeMap<&String, GapFigures> = self.figures().collect();
        self.figures().map(line).fold(Findings::default().field("gaps", &all), Findings::line)
    }

    fn section(&self, _exhibits: &[Exhibit]) -> Option<Section> {
        let mut table = Table::new([
            Column::text("method"),
            Column::number("pairs", 0),
            Column::number("open in truth", 0),
            Column::number("stuck", 0).lowest_is_best(),
            Column::number("smallest share", 2).highest_is_best(),
            Column::number("width error, mm", 3).lowest_is_best(),
            Column::number("closed in truth", 0),
            Column::number("ajar", 0).lowest_is_best(),
        ])
        .caption(
            "Pairs of vertices across lips and lids, which touch at rest or in a pose and part elsewhere. Stuck: less \
             than half as wide as in truth. Ajar: open by 3 mm more than in truth.",
        );
        for (name, g) in self.figures() {
            let [pairs, open, stuck] = [g.pairs, g.open, g.stuck].map(|n| n as f64);
            let numbers = [pairs, open, stuck, g.smallest_share, g.rms_mm, g.closed as f64, g.ajar as f64];
            table = table.row(std::iter::once(Cell::from(name.clone())).chain(numbers.map(Cell::from)));
        }
        Some(Section::new("Lips and lids").table(table))
    }
}

/// Pairs of vertices across openings.
#[derive(Debug, Clone)]
struct Gaps {
    pairs: Vec<(u32, u32)>,
    figures: GapFigures,
    squares: f64,
}

/// How openings fare.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct GapFigures {
    /// Pairs that touch somewhere and part somewhere else: lips at rest, lids in a blink.
    pub pairs: usize,
    /// Pairs and poses in which the truth is open by 3 mm or more.
    pub open: usize,
    /// Of these, where the method opens less than half as wide.
    pub stuck: usize,
    /// The smallest width as a share of the truth, where the truth is open.
    pub smallest_share: f64,
    /// Root mean square error of the width, mm, where the truth is open.
    pub rms_mm: f64,
    /// Pairs and poses in which they touch in the truth.
    pub closed: usize,
    /// Of these, where the method leaves them open by 3 mm more.
    pub ajar: usize,
}

impl Gaps {
    /// Finds pairs that touch at rest or in one of the poses, and are apart at rest or in another.
    fn new<'a>(mesh: &Mesh, poses: impl Iterator<Item = &'a [Vec3]>) -> Self {
        let shores = Shores::new(mesh);
        let rest = mesh.positions();
        let poses: Vec<&[Vec3]> = poses.collect();
        let mut kinds = [shores.touching(rest), Vec::new()];
        for vertices in poses.iter().step_by(2) {
            kinds[1].extend(shores.touching(vertices));
            // Poses repeat each other: without this the list would grow with their number.
            kinds[1].sort_unstable();
            kinds[1].dedup();
        }
        kinds[1] = kinds[1].iter().copied().filter(|pair| kinds[0].binary_search(pair).is_err()).collect();
        let mut pairs: Vec<(u32, u32)> = kinds.iter().flat_map(|kind| opening(kind, rest, &poses)).collect();
        pairs.sort_unstable();
        let figures = GapFigures { pairs: pairs.len(), smallest_share: 1.0, ..GapFigures::default() };
        Self { pairs, figures, squares: 0.0 }
    }

    /// Adds one pose.
    fn add(&mut self, truth: &[Vec3], method: &[Vec3]) {
        for &(a, b) in &self.pairs {
            let width = |v: &[Vec3]| f64::from(v[a as usize].distance(v[b as usize]));
            let (wide, own) = (width(truth), width(method));
            if wide > f64::from(OPEN) {
                let share = own / wide;
                self.figures.open += 1;
                self.figures.stuck += usize::from(share < STUCK);
                self.figures.smallest_share = self.figures.smallest_share.min(share);
                self.squares += (own - wide).powi(2);
            } else if wide < f64::from(TOUCH) {
                self.figures.closed += 1;
                self.figures.ajar += usize::from(own > wide + f64::from(OPEN));
            }
        }
    }

    /// What came out.
    fn figures(&self) -> GapFigures {
        let rms_mm = (self.squares / self.figures.open.max(1) as f64).sqrt() * 10.0;
        GapFigures { rms_mm, ..self.figures }
    }
}

/// Those that come clearly apart, at most [`MOST`], spread evenly.
fn opening(pairs: &[(u32, u32)], rest: &[Vec3], poses: &[&[Vec3]]) -> Vec<(u32, u32)> {
    let opens = |(a, b): &(u32, u32)| {
        let width = |v: &[Vec3]| v[*a as usize].distance(v[*b as usize]);
        let widths = poses.iter().map(|v| width(v)).chain([width(rest)]);
        let (low, high) = widths.fold((f32::INFINITY, 0.0f32), |(low, high), w| (low.min(w), high.max(w)));
        high > OPEN.max(2.0 * low)
    };
    let open: Vec<(u32, u32)> = pairs.iter().copied().filter(opens).collect();
    let step = open.len().div_ceil(MOST).max(1);
    open.into_iter().step_by(step).collect()
}

/// What makes two vertices shores of one opening: one island (a tooth that touches a lip belongs to nobody's
/// opening), but no short path between them (the shores of a mouth are joined at its corners).
struct Shores {
    islands: Vec<u32>,
    /// For every vertex those within [`SHORE`] edges, ascending.
    near: Vec<Vec<u32>>,
}

impl Shores {
    fn new(mesh: &Mesh) -> Self {
        let adjacency = mesh.adjacency();
        let mut seen = vec![false; mesh.vertex_count()];
        let near = (0..mesh.vertex_count() as u32).map(|v| rings(&adjacency, v, &mut seen)).collect();
        Self { islands: mesh.islands().0, near }
    }

    /// Pairs of shores that touch in a pose, the lower vertex first, ascending.
    fn touching(&self, vertices: &[Vec3]) -> Vec<(u32, u32)> {
        let cell = |p: Vec3| (p / TOUCH).floor().as_ivec3().to_array();
        let mut cells: HashMap<[i32; 3], Vec<u32>> = HashMap::with_capacity(vertices.len());
        for (vertex, p) in (0u32..).zip(vertices) {
            cells.entry(cell(*p)).or_default().push(vertex);
        }
        let mut out = Vec::new();
        for (a, at) in (0u32..).zip(vertices) {
            let [x, y, z] = cell(*at);
            for place in 0..27 {
                let key = [x + place % 3 - 1, y + place / 3 % 3 - 1, z + place / 9 - 1];
                out.extend(cells.get(&key).into_iter().flatten().filter_map(|&b| {
                    let touches = b > a
                        && vertices[b as usize].distance_squared(*at) < TOUCH * TOUCH
                        && self.islands[b as usize] == self.islands[a as usize]
                        && self.near[a as usize].binary_search(&b).is_err();
                    touches.then_some((a, b))
                }));
            }
        }
        out.sort_unstable();
        out
    }
}

/// Vertices within [`SHORE`] edges of `start`. `seen` comes and goes all false.
fn rings(adjacency: &Adjacency, start: u32, seen: &mut [bool]) -> Vec<u32> {
    let mut found = vec![start];
    seen[start as usize] = true;
    let mut first = 0;
    for _ in 0..SHORE {
        let last = found.len();
        for place in first..last {
            for &other in adjacency.neighbours(found[place] as usize) {
                if !std::mem::replace(&mut seen[other as usize], true) {
                    found.push(other);
                }
            }
        }
        first = last;
    }
    found.iter().for_each(|v| seen[*v as usize] = false);
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Face, MeshParts};

    /// A band bent into the letter C: its ends are shores, apart by `gap` cm.
    fn band(gap: f32) -> Vec<Vec3> {
        let ring = |index: usize| {
            let share = index as f32 / 39.0 - 0.5;
            let angle = share * (std::f32::consts::TAU - gap / 3.0);
            Vec3::new(3.0 * angle.cos(), 3.0 * angle.sin(), 0.0)
        };
        (0..40).map(ring).flat_map(|p| [p, p + Vec3::Z]).collect()
    }

    fn mesh(gap: f32) -> Mesh {
        let faces = (0..39u32).map(|i| Face::quad(2 * i, 2 * i + 2, 2 * i + 3, 2 * i + 1)).collect();
        let parts = MeshParts { positions: band(gap), faces, ..MeshParts::default() };
        parts.build().expect("a valid band")
    }

    #[test]
    fn lips_and_lids_are_found_and_weighed() {
        // Lips touch at rest and open in a pose; lids are open at rest and close in one.
        for (rest, other) in [(0.1, 1.0), (1.0, 0.1)] {
            let pose = band(other);
            let poses = [pose.as_slice()];
            let start = Gaps::new(&mesh(rest), poses.into_iter());
            assert_eq!(start.figures().pairs, 2);
            let weigh = |truth: f32, own: f32| {
                let mut gaps = start.clone();
                gaps.add(&band(truth), &band(own));
                gaps.figures()
            };
            let glued = weigh(1.0, 0.3);
            assert_eq!((glued.open, glued.stuck, glued.closed), (2, 2, 0));
            assert!(glued.smallest_share < 0.5 && (glued.rms_mm - 7.0).abs() < 0.2, "{glued:?}");
            let good = weigh(1.0, 0.95);
            assert_eq!((good.open, good.stuck, good.ajar), (2, 0, 0));
            let ajar = weigh(0.1, 0.8);
            assert_eq!((ajar.open, ajar.closed, ajar.ajar), (0, 2, 2));
            assert_eq!(weigh(0.1, 0.2).ajar, 0);
        }
        let still = Gaps::new(&mesh(0.1), [band(0.12).as_slice()].into_iter());
        assert_eq!(still.figures().pairs, 0, "what never opens is no opening");
    }
    #[test]
    fn pairs_and_counts_are_those_of_the_definition() {
        let rest = mesh(0.6);
        // Every pose twice: of the poses every second one is looked at.
        let poses: Vec<Vec<Vec3>> =
            [0.6, 0.15, 1.4, 0.9, 0.2].iter().flat_map(|gap| [band(*gap), band(*gap)]).collect();
        let found = Gaps::new(&rest, poses.iter().map(Vec::as_slice));
        let limits = [TOUCH, OPEN].map(f64::from);
        let plain =
            understudy_testkit::figures::openings(rest.faces(), rest.positions(), &poses, limits, SHORE);
        assert!(!plain.is_empty() && found.pairs == plain, "{:?} {plain:?}", found.pairs);
        let mut weighed = found;
        let others: Vec<Vec<Vec3>> = poses.iter().map(|_| band(0.5)).collect();
        let (mut open, mut stuck, mut closed, mut ajar, mut squares) = (0, 0, 0, 0, 0.0);
        for (truth, other) in poses.iter().zip(&others) {
            weighed.add(truth, other);
            for (a, b) in &plain {
                let width = |v: &[Vec3]| (v[*a as usize].as_dvec3() - v[*b as usize].as_dvec3()).length();
                let (wide, own) = (width(truth), width(other));
                open += usize::from(wide > limits[1]);
                stuck += usize::from(wide > limits[1] && own < 0.5 * wide);
                closed += usize::from(wide < limits[0]);
                ajar += usize::from(wide < limits[0] && own > wide + limits[1]);
                squares += if wide > limits[1] { (own - wide).powi(2) } else { 0.0 };
            }
        }
        let figures = weighed.figures();
        assert_eq!((figures.open, figures.stuck, figures.closed, figures.ajar), (open, stuck, closed, ajar));
        let rms_mm = 10.0 * (squares / open as f64).sqrt();
        assert!(
            stuck > 0 && ajar > 0 && (figures.rms_mm - rms_mm).abs() < 1e-6 * rms_mm.max(1.0),
            "{figures:?}"
        );
    }
}
