//! Lips that stick together as the mouth opens and come unstuck from the middle to the corners, like a
//! zip. Runs in the pose, after the jaw has moved the lower lip.

use super::driver::{Driver, RigSize, check_positive, unknown};
use super::patch::distances_along_edges;
use super::smooth_step;
use crate::rig::RigError;
use crate::stack::{Deformer, Frame, Scratch};
use understudy_core::{Adjacency, Mesh, Vec3};

/// Two vertices that touch when the mouth is shut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LipPair {
    /// On the upper lip.
    pub upper: u32,
    /// On the lower lip; at a corner it may be the same vertex.
    pub lower: u32,
    /// Where on the mouth: 0 at the first corner, ½ in the middle, 1 at the second corner.
    pub place: f32,
}

/// Settings of [`StickyLips`].
#[derive(Debug, Clone, PartialEq)]
pub struct StickyLipsConfig {
    /// From corner to corner.
    pub pairs: Vec<LipPair>,
    /// How far the first corner's side is zipped: 0 free, 1 up to the middle.
    pub zip_first: Driver,
    /// The same from the second corner.
    pub zip_second: Driver,
    /// Width of the seam between stuck and free, as a share of half a mouth (0 to 1).
    pub seam: f32,
    /// How far the pull spreads over the lips, cm along the surface.
    pub spread: f32,
    /// Gap in cm at which lips tear apart whatever the zip says; they are free at twice that.
    /// Infinite: never.
    pub tear: f32,
}

/// Glue of a pair at distance `s` from its corner (1 at the middle): one up to the zip, smooth over
/// the seam. Both sides join by `1 − (1 − g₁)(1 − g₂)`. A glued pair meets at its midpoint; neighbours
/// take a share of that movement that falls off along the surface.
pub struct StickyLips {
    config: StickyLipsConfig,
    /// Vertices that move, and their shares: pair, whether the upper side, weight.
    vertices: Vec<u32>,
    offsets: Vec<u32>,
    shares: Vec<(u32, f32)>,
}

impl StickyLips {
    /// Checks the pairs and measures the falloff on the rest mesh.
    pub fn new(config: StickyLipsConfig, mesh: &Mesh, size: &RigSize) -> Result<Self, RigError> {
        const PART: &str = "sticky lips";
        size.check_mesh(PART, mesh)?;
        config.zip_first.check(PART, size)?;
        config.zip_second.check(PART, size)?;
        check_positive(PART, "spread", config.spread)?;
        check_positive(PART, "seam", config.seam)?;
        if config.tear.is_nan() || config.tear <= 0.0 {
            return Err(unknown(PART, format!("tear = {}", config.tear)));
        }
        let mut seen = vec![false; size.vertices];
        for pair in &config.pairs {
            size.check_vertices(PART, [pair.upper, pair.lower])?;
            if !(0.0..=1.0).contains(&pair.place) {
                return Err(unknown(PART, format!("place {} of vertex {}", pair.place, pair.upper)));
            }
            let mut take = |vertex: u32| std::mem::replace(&mut seen[vertex as usize], true);
            if take(pair.upper) || (pair.lower != pair.upper && take(pair.lower)) {
                return Err(unknown(PART, format!("pair {}–{}, a vertex twice", pair.upper, pair.lower)));
            }
        }
        let rows = spread(&config, mesh);
        let mut out = Self { config, vertices: Vec::new(), offsets: vec![0], shares: Vec::new() };
        for (vertex, row) in (0u32..).zip(rows).filter(|(_, row)| !row.is_empty()) {
            out.vertices.push(vertex);
            out.shares.extend(row);
            out.offsets.push(out.shares.len() as u32);
        }
        Ok(out)
    }

    /// How strongly a place is glued for two zip values.
    pub fn glue(&self, place: f32, zip_first: f32, zip_second: f32) -> f32 {
        let seam = self.config.seam;
        let side = |from_corner: f32, zip: f32| {
            let front = zip * (1.0 + seam);
            smooth_step(front, front - seam, from_corner)
        };
        let (first, second) = (side(2.0 * place, zip_first), side(2.0 - 2.0 * place, zip_second));
        1.0 - (1.0 - first) * (1.0 - second)
    }
}

/// For every vertex, shares of the movements `2·pair` (upper) and `2·pair + 1` (lower). A lip vertex
/// takes all of its own; others blend the nearest ones of their side.
fn spread(config: &StickyLipsConfig, mesh: &Mesh) -> Vec<Vec<(u32, f32)>> {
    let adjacency = mesh.adjacency();
    let mut rows: Vec<Vec<(u32, f32)>> = vec![Vec::new(); mesh.vertex_count()];
    let reach = config.spread;
    let from = |adjacency: &Adjacency, sources: &[u32]| {
        distances_along_edges(adjacency, mesh.positions(), sources, 2.0 * reach)
    };
    let uppers: Vec<u32> = config.pairs.iter().map(|p| p.upper).collect();
    let lowers: Vec<u32> = config.pairs.iter().map(|p| p.lower).collect();
    let (to_upper, to_lower) = (from(&adjacency, &uppers), from(&adjacency, &lowers));
    for (side, (own, other)) in [(&to_upper, &to_lower), (&to_lower, &to_upper)].into_iter().enumerate() {
        let sources = if side == 0 { &uppers } else { &lowers };
        let each: Vec<Vec<f32>> = sources.iter().map(|v| from(&adjacency, &[*v])).collect();
        for vertex in 0..mesh.vertex_count() {
            let nearest = own[vertex];
            if nearest > reach || nearest == 0.0 || other[vertex] == 0.0 {
                continue;
            }
            // Where both lips are about as near (round the corners) each side has half a say.
            let say = smooth_step(-0.5 * reach, 0.5 * reach, other[vertex].min(2.0 * reach) - nearest);
            let fall = say * smooth_step(reach, 0.0, nearest);
            let kernel = |distance: f32| smooth_step(nearest + 0.5 * reach, nearest, distance);
            let total: f32 = each.iter().map(|d| kernel(d[vertex])).sum();
            for (pair, distance) in (0u32..).zip(&each) {
                let weight = kernel(distance[vertex]);
                if weight > 0.0 && fall > 0.0 {
                    rows[vertex].push((2 * pair + side as u32, fall * weight / total));
                }
            }
        }
    }
    for (index, pair) in (0u32..).zip(&config.pairs) {
        rows[pair.upper as usize] = vec![(2 * index, 1.0)];
        rows[pair.lower as usize] = vec![(2 * index + 1, 1.0)];
    }
    rows
}

impl Deformer for StickyLips {
    fn name(&self) -> &str {
        "sticky lips"
    }

    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], scratch: &mut Scratch) {
        let first = self.config.zip_first.value(frame.controls).clamp(0.0, 1.0);
        let second = self.config.zip_second.value(frame.controls).clamp(0.0, 1.0);
        if first == 0.0 && second == 0.0 {
            return;
        }
        let moves = &mut scratch.points;
        moves.clear();
        for pair in &self.config.pairs {
            let (upper, lower) = (vertices[pair.upper as usize], vertices[pair.lower as usize]);
            let half = (lower - upper) * 0.5;
            let mut glue = self.glue(pair.place, first, second);
            if self.config.tear.is_finite() {
                glue *= smooth_step(2.0 * self.config.tear, self.config.tear, 2.0 * half.length());
            }
            moves.push(half * glue);
            moves.push(half * -glue);
        }
        for (row, vertex) in self.vertices.iter().enumerate() {
            let range = self.offsets[row] as usize..self.offsets[row + 1] as usize;
            let shares = &self.shares[range];
            vertices[*vertex as usize] +=
                shares.iter().map(|&(index, weight)| moves[index as usize] * weight).sum::<Vec3>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::*;
    use super::*;
    use understudy_core::{Face, MeshParts};

    const COLUMNS: u32 = 21;
    const ROWS: u32 = 4;

    /// Two sheets, 10 cm wide, that share their corners only: the lower lip hangs from control `a`.
    fn mouth() -> Mesh {
        let mut parts = MeshParts::default();
        for side in [1.0f32, -1.0] {
            for row in 0..ROWS {
                for column in 0..COLUMNS {
                    let x = -5.0 + 0.5 * column as f32;
                    parts.positions.push(Vec3::new(x, side * (0.05 + 0.5 * row as f32), 0.0));
                }
            }
        }
        let sheet = COLUMNS * ROWS;
        for side in 0..2 {
            for row in 0..ROWS - 1 {
                for column in 0..COLUMNS - 1 {
                    let a = side * sheet + row * COLUMNS + column;
                    parts.faces.push(Face::quad(a, a + 1, a + COLUMNS + 1, a + COLUMNS));
                }
            }
        }
        parts.build().expect("two sheets are valid")
    }

    fn config() -> StickyLipsConfig {
        let pair = |column: u32| LipPair {
            upper: column,
            lower: column + COLUMNS * ROWS,
            place: column as f32 / (COLUMNS - 1) as f32,
        };
        StickyLipsConfig {
            pairs: (0..COLUMNS).map(pair).collect(),
            zip_first: Driver::control(control("b")),
            zip_second: Driver::scaled(control("c"), 1.0),
            seam: 0.4,
            spread: 1.2,
            tear: f32::INFINITY,
        }
    }

    struct Jaw;

    impl Deformer for Jaw {
        fn name(&self) -> &str {
            "jaw"
        }

        fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], _scratch: &mut Scratch) {
            for vertex in &mut vertices[(COLUMNS * ROWS) as usize..] {
                let open = 1.0 - (vertex.x / 5.0).powi(2);
                *vertex -= Vec3::Y * (3.0 * open * frame.controls[control("a")]);
            }
        }
    }

    fn lips(config: StickyLipsConfig) -> crate::StackRig {
        let mesh = mouth();
        let sticky = StickyLips::new(config, &mesh, &size(&mesh)).expect("fits");
        rig(mesh, vec![Box::new(Jaw), Box::new(sticky)])
    }

    fn gaps(vertices: &[Vec3]) -> Vec<f32> {
        config()
            .pairs
            .iter()
            .map(|p| (vertices[p.upper as usize] - vertices[p.lower as usize]).length())
            .collect()
    }

    #[test]
    fn identity_at_rest_and_continuous() {
        let rig = lips(config());
        assert_identity_at_rest(&rig, 0.0);
        assert_continuous(&rig, 0.01);
        assert_continuous(&lips(StickyLipsConfig { tear: 1.0, ..config() }), 0.02);
    }

    #[test]
    fn a_full_zip_closes_the_mouth_and_none_leaves_it_open() {
        let rig = lips(config());
        let shut = gaps(&pose(&rig, &[("a", 1.0), ("b", 1.0), ("c", 1.0)]));
        assert!(shut.iter().all(|gap| *gap < 1e-5), "{shut:?}");
        let open = gaps(&pose(&rig, &[("a", 1.0)]));
        assert!((open[10] - 3.1).abs() < 1e-5);
    }

    /// Half unzipped, the middle is open and both corners are shut; one side alone shuts its corner.
    #[test]
    fn it_opens_from_the_middle() {
        let rig = lips(config());
        let half = gaps(&pose(&rig, &[("a", 1.0), ("b", 0.5), ("c", 0.5)]));
        assert!(half[1] < 1e-5 && half[19] < 1e-5 && half[10] > 2.5, "{half:?}");
        let one = gaps(&pose(&rig, &[("a", 1.0), ("b", 0.5)]));
        assert!(one[1] < 1e-5 && one[19] > 0.3, "{one:?}");
    }

    #[test]
    fn the_pull_falls_off_over_the_lip() {
        let open = [("a", 1.0)];
        let shut = [("a", 1.0), ("b", 1.0), ("c", 1.0)];
        let rig = lips(config());
        let (before, after) = (pose(&rig, &open), pose(&rig, &shut));
        let middle = (COLUMNS * ROWS + COLUMNS / 2) as usize;
        let pulls: Vec<f32> = (0..ROWS as usize)
            .map(|row| (after[middle + row * 21] - before[middle + row * 21]).length())
            .collect();
        assert!(pulls.windows(2).all(|pair| pair[1] < pair[0]), "{pulls:?}");
        assert!(pulls[1] > 0.3 && pulls[3] < 1e-5, "{pulls:?}");
    }

    #[test]
    fn wide_gaps_tear() {
        let torn = lips(StickyLipsConfig { tear: 1.0, ..config() });
        let gap = gaps(&pose(&torn, &[("a", 1.0), ("b", 1.0), ("c", 1.0)]));
        assert!((gap[10] - 3.1).abs() < 1e-5 && gap[1] < 1e-5, "{gap:?}");
    }

    #[test]
    fn bad_pairs_are_named() {
        let mesh = mouth();
        let new = |config| StickyLips::new(config, &mesh, &size(&mesh)).err().expect("must fail").to_string();
        let mut twice = config();
        twice.pairs[1].upper = 0;
        assert!(new(twice).contains("twice"));
        let mut outside = config();
        outside.pairs[0].place = f32::NAN;
        assert!(new(outside).contains("place NaN"));
    }
}
