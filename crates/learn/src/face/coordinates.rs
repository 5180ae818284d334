//! Where the vertices of a segment look in their map: the artist's texture coordinates, stretched to fill
//! the map, and pulled apart where they put into one pixel what moves apart (upper and lower lip, lids).
//! Start at [`layout`].

use super::Recording;
use understudy_core::{Vec2, Vec3};

/// Poses by which motion is compared.
const MOST_POSES: usize = 60;
/// Vertices nearer than this in the map see common pixels.
const REACH: f32 = 2.0;
/// Vertices that move apart by more, root mean square, cannot share pixels, cm.
const APART: f32 = 0.05;
/// Vertices that a path along edges joins within so many pixels belong together: between them the map may
/// bend, as it does wherever skin stretches.
const JOINED: f32 = 6.0;
/// Neighbours farther apart in the texture than so many median edges lie in different charts.
const CHART: f32 = 10.0;
/// Rounds of pulling apart and smoothing.
const ROUNDS: usize = 400;
/// Rounds after which pairs are looked for anew.
const REFRESH: usize = 25;

/// Map coordinates of a segment, and what had to be done for them.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// In pixels of the map, `[P]`.
    pub coordinates: Vec<Vec2>,
    /// Islands that lay on each other and were put side by side.
    pub spread_islands: usize,
    /// Pairs of vertices that shared pixels though they move apart, as the texture has them.
    pub glued_before: usize,
    /// The same in these coordinates.
    pub glued_after: usize,
}

/// Coordinates of some vertices in a map of `side` pixels. `uvs`: one per vertex of the mesh. With `cut`,
/// islands that overlap are put side by side and glued vertices are pulled apart.
pub fn layout(poses: &Recording, uvs: &[Vec2], vertices: &[u32], side: usize, cut: bool) -> Layout {
    let own: Vec<Vec2> = vertices.iter().map(|v| uvs[*v as usize]).collect();
    let scale = (side - 1) as f32;
    let mut coordinates: Vec<Vec2> = fill(&own).iter().map(|c| *c * scale).collect();
    let graph = Graph::new(poses, uvs, vertices);
    let motion = Motion::new(poses, vertices);
    let glued = |coordinates: &[Vec2]| torn(coordinates, coordinates, REACH, &graph, &motion);
    let pairs = glued(&coordinates);
    let (glued_before, mut glued_after, mut spread_islands) = (pairs.len(), pairs.len(), 0);
    if cut && glued_before > 0 {
        // Islands that lie on each other cannot be pulled apart: they get places of their own.
        if pairs.iter().any(|(a, b)| graph.island[*a] != graph.island[*b])
            && let Some((moved, count)) = spread(&own, &graph, &pairs)
        {
            let placed: Vec<Vec2> = fill(&moved).iter().map(|c| *c * scale).collect();
            let count_now = glued(&placed).len();
            if count_now < glued_after {
                (coordinates, spread_islands, glued_after) = (placed, count, count_now);
            }
        }
        if glued_after > 0 {
            let pulled = pull_apart(&coordinates, &graph, &motion, scale);
            let count = glued(&pulled).len();
            if count < glued_after {
                (coordinates, glued_after) = (pulled, count);
            }
        }
    }
    Layout { coordinates, spread_islands, glued_before, glued_after }
}

/// Stretches points to fill the unit square; a direction without extent goes to the middle.
pub fn fill(points: &[Vec2]) -> Vec<Vec2> {
    let low = points.iter().copied().fold(Vec2::INFINITY, Vec2::min);
    let high = points.iter().copied().fold(Vec2::NEG_INFINITY, Vec2::max);
    let size = high - low;
    let one = |value: f32, low: f32, size: f32| if size > 1e-9 { (value - low) / size } else { 0.5 };
    points.iter().map(|p| Vec2::new(one(p.x, low.x, size.x), one(p.y, low.y, size.y))).collect()
}

/// Edges among some vertices, by their numbers in the list.
struct Graph {
    neighbours: Vec<Vec<u32>>,
    /// The chart of each: what edges join that are short in the texture.
    island: Vec<u32>,
}

impl Graph {
    fn new(poses: &Recording, uvs: &[Vec2], vertices: &[u32]) -> Self {
        let adjacency = poses.mesh.adjacency();
        let mut local = vec![u32::MAX; poses.mesh.vertex_count()];
        for (index, vertex) in (0u32..).zip(vertices) {
            local[*vertex as usize] = index;
        }
        let near = |vertex: &u32| {
            let all = adjacency.neighbours(*vertex as usize).iter().map(|n| local[*n as usize]);
            all.filter(|n| *n != u32::MAX).collect()
        };
        let neighbours: Vec<Vec<u32>> = vertices.iter().map(near).collect();
        let length =
            |a: usize, b: u32| uvs[vertices[a] as usize].distance(uvs[vertices[b as usize] as usize]);
        let all = neighbours.iter().enumerate().flat_map(|(a, near)| near.iter().map(move |b| length(a, *b)));
        let mut lengths: Vec<f32> = all.collect();
        lengths.sort_by(f32::total_cmp);
        let longest = lengths.get(lengths.len() / 2).map_or(0.0, |median| CHART * median);
        let mut island = vec![u32::MAX; vertices.len()];
        let mut count = 0;
        for start in 0..vertices.len() {
            if island[start] != u32::MAX {
                continue;
            }
            island[start] = count;
            let mut stack = vec![start];
            while let Some(vertex) = stack.pop() {
                for &next in &neighbours[vertex] {
                    if island[next as usize] == u32::MAX && length(vertex, next) <= longest {
                        island[next as usize] = count;
                        stack.push(next as usize);
                    }
                }
            }
            count += 1;
        }
        Self { neighbours, island }
    }

    /// The vertices within [`JOINED`] of a vertex along edges, lengths taken in the map.
    fn joined(&self, start: usize, coordinates: &[Vec2], lengths: &mut [f32], reached: &mut Vec<usize>) {
        reached.iter().for_each(|v| lengths[*v] = f32::INFINITY);
        reached.clear();
        lengths[start] = 0.0;
        reached.push(start);
        // Correcting labels until nothing changes: the neighbourhood is small.
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(vertex) = queue.pop_front() {
            for &next in &self.neighbours[vertex] {
                let next = next as usize;
                let length = lengths[vertex] + coordinates[vertex].distance(coordinates[next]);
                if length < lengths[next] && length <= JOINED {
                    if lengths[next].is_infinite() {
                        reached.push(next);
                    }
                    lengths[next] = length;
                    queue.push_back(next);
                }
            }
        }
    }
}

/// Offsets of some vertices over some poses.
struct Motion {
    /// `[vertex][pose]`.
    offsets: Vec<Vec3>,
    poses: usize,
}

impl Motion {
    fn new(poses: &Recording, vertices: &[u32]) -> Self {
        let chosen = poses.spread(MOST_POSES);
        let rest = poses.mesh.positions();
        let row = |v: &u32| {
            let vertex = *v as usize;
            chosen.iter().map(|p| poses.vertices_of(*p)[vertex] - rest[vertex]).collect::<Vec<_>>()
        };
        Self { offsets: vertices.iter().flat_map(row).collect(), poses: chosen.len() }
    }

    /// Root mean square of the difference of two vertices' motion, cm.
    fn apart(&self, a: usize, b: usize) -> f32 {
        let row = |v: usize| &self.offsets[v * self.poses..(v + 1) * self.poses];
        let squares: f32 = row(a).iter().zip(row(b)).map(|(a, b)| a.distance_squared(*b)).sum();
        (squares / self.poses.max(1) as f32).sqrt()
    }
}

/// Pairs within `reach` of each other in the map that move apart though no short path joins them.
/// Ascending. `paths`: the coordinates in which paths are measured.
fn torn(
    coordinates: &[Vec2],
    paths: &[Vec2],
    reach: f32,
    graph: &Graph,
    motion: &Motion,
) -> Vec<(usize, usize)> {
    let cell = |c: Vec2| ((c.x / reach).floor() as i32, (c.y / reach).floor() as i32);
    let mut cells: std::collections::BTreeMap<(i32, i32), Vec<usize>> = Default::default();
    for (index, coordinate) in coordinates.iter().enumerate() {
        cells.entry(cell(*coordinate)).or_default().push(index);
    }
    let mut out = Vec::new();
    let (mut lengths, mut reached) = (vec![f32::INFINITY; coordinates.len()], Vec::new());
    for (a, &at) in coordinates.iter().enumerate() {
        let (x, y) = cell(at);
        let near = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (x + dx, y + dy)));
        let others = near.flat_map(|cell| cells.get(&cell).map_or(&[][..], Vec::as_slice)).copied();
        let apart = |b: &usize| *b > a && coordinates[*b].distance(at) < reach && motion.apart(a, *b) > APART;
        let candidates: Vec<usize> = others.filter(apart).collect();
        if !candidates.is_empty() {
            graph.joined(a, paths, &mut lengths, &mut reached);
            out.extend(candidates.into_iter().filter(|b| lengths[*b].is_infinite()).map(|b| (a, b)));
        }
    }
    out.sort_unstable();
    out
}

/// Puts islands that are glued to another one into cells of a grid, each stretched to its cell. Islands
/// that touch nobody keep their place in one common cell. `None` where that would leave no room.
fn spread(uvs: &[Vec2], graph: &Graph, pairs: &[(usize, usize)]) -> Option<(Vec<Vec2>, usize)> {
    let count = graph.island.iter().max().map_or(0, |most| *most as usize + 1);
    let mut alone = vec![true; count];
    for (a, b) in pairs {
        let (a, b) = (graph.island[*a] as usize, graph.island[*b] as usize);
        if a != b {
            // The later one moves out; the first stays.
            alone[a.max(b)] = false;
        }
    }
    let mut cells: Vec<usize> = vec![0; count];
    let mut used = 1;
    for island in 0..count {
        if !alone[island] {
            cells[island] = used;
            used += 1;
        }
    }
    let width = (used as f64).sqrt().ceil() as usize;
    if width > 8 {
        return None;
    }
    let mut out = vec![Vec2::ZERO; uvs.len()];
    for cell in 0..used {
        let members: Vec<usize> =
            (0..uvs.len()).filter(|v| cells[graph.island[*v] as usize] == cell).collect();
        let own: Vec<Vec2> = members.iter().map(|v| uvs[*v]).collect();
        let corner = Vec2::new((cell % width) as f32, (cell / width) as f32);
        for (member, place) in members.iter().zip(fill(&own)) {
            // A gap between cells keeps their pixels apart.
            out[*member] = corner + place * 0.88;
        }
    }
    Some((out, used))
}

/// Opens slits: glued pairs push each other away, and the shift spreads smoothly over the neighbours.
fn pull_apart(start: &[Vec2], graph: &Graph, motion: &Motion, scale: f32) -> Vec<Vec2> {
    let mut now = start.to_vec();
    let mut shift = vec![Vec2::ZERO; start.len()];
    let mut before = shift.clone();
    let mut pairs = Vec::new();
    for round in 0..ROUNDS {
        if round % REFRESH == 0 {
            // Who might come near soon; to look for all of them every time would take too long.
            pairs = torn(&now, start, 2.0 * REACH, graph, motion);
        }
        let mut held = vec![false; start.len()];
        for &(a, b) in &pairs {
            let between = now[a] - now[b];
            let distance = between.length();
            if distance >= REACH {
                continue;
            }
            let direction = match distance > 1e-3 {
                true => between / distance,
                false => side_of(start, graph, a, b),
            };
            let push = direction * (REACH * 1.02 - distance) * 0.25;
            shift[a] += push;
            shift[b] -= push;
            (held[a], held[b]) = (true, true);
        }
        if !held.contains(&true) {
            if round % REFRESH == 0 {
                break;
            }
            continue;
        }
        // Glued vertices keep their shift while the others follow their neighbours.
        for _ in 0..4 {
            before.copy_from_slice(&shift);
            for (vertex, near) in graph.neighbours.iter().enumerate() {
                if !held[vertex] && !near.is_empty() {
                    let mean = near.iter().map(|n| before[*n as usize]).sum::<Vec2>() / near.len() as f32;
                    // A little less each time: far away nothing moves.
                    shift[vertex] = 0.5 * before[vertex] + 0.49 * mean;
                }
            }
        }
        for (vertex, place) in now.iter_mut().enumerate() {
            *place = (start[vertex] + shift[vertex]).clamp(Vec2::ZERO, Vec2::splat(scale));
        }
    }
    now
}

/// The direction from `b` to `a` where they lie in one place: from the middle of `b`'s neighbours to that
/// of `a`'s.
fn side_of(coordinates: &[Vec2], graph: &Graph, a: usize, b: usize) -> Vec2 {
    let middle = |v: usize| {
        let near = &graph.neighbours[v];
        near.iter().map(|n| coordinates[*n as usize]).sum::<Vec2>() / near.len().max(1) as f32
    };
    (middle(a) - middle(b)).try_normalize().unwrap_or(Vec2::Y)
}

#[cfg(test)]
mod tests {
    use super::super::regions::map_error;
    use super::*;
    use understudy_core::{ControlSpec, ControlSpecs, Face, Mesh, MeshParts, Random};

    const SIDE: u32 = 21;

    /// A sheet with a slit from column 5 to 15 in its middle row: the vertices of the slit are there twice,
    /// in one place of the texture. `islands`: two sheets instead, one on the other in the texture.
    fn sheet(islands: bool) -> (Mesh, Vec<bool>) {
        let mut parts = MeshParts::default();
        let mut lower = Vec::new();
        let sheets = if islands { 2 } else { 1 };
        for sheet in 0..sheets {
            let first = sheet * SIDE * SIDE;
            for index in 0..SIDE * SIDE {
                let uv = Vec2::new((index % SIDE) as f32, (index / SIDE) as f32) / (SIDE - 1) as f32;
                parts.positions.push(Vec3::new(uv.x * 10.0, uv.y * 10.0, 5.0 * sheet as f32));
                parts.uvs.push(uv);
                lower.push(if islands { sheet == 1 } else { index / SIDE <= SIDE / 2 });
            }
            for row in 0..SIDE - 1 {
                for column in 0..SIDE - 1 {
                    let a = first + row * SIDE + column;
                    parts.faces.push(Face::quad(a, a + 1, a + 1 + SIDE, a + SIDE));
                }
            }
        }
        if !islands {
            // Faces above the slit get vertices of their own.
            let middle = SIDE / 2;
            for column in 6..15 {
                let old = middle * SIDE + column;
                let new = parts.positions.len() as u32;
                parts.positions.push(parts.positions[old as usize]);
                parts.uvs.push(parts.uvs[old as usize]);
                lower.push(false);
                for face in &mut parts.faces {
                    let above = face.corners().iter().all(|v| *v >= middle * SIDE);
                    if above && face.corners().contains(&old) {
                        *face = face.map(|v| if v == old { new } else { v });
                    }
                }
            }
        }
        parts.face_uvs = parts.faces.clone();
        (parts.build().expect("a valid mesh"), lower)
    }

    /// The mouth opens: what is below the slit goes down, fading towards its corners and the border.
    fn open(mesh: &Mesh, lower: &[bool], islands: bool) -> (ControlSpecs, Vec<f32>, Vec<Vec3>) {
        let specs = ControlSpecs::new(vec![ControlSpec::number("jaw", 0.0, 1.0, 0.0)]).expect("valid");
        let (mut controls, mut vertices) = (Vec::new(), Vec::new());
        for pose in 0..20 {
            let jaw = Random::stream(1, pose).uniform(0.0, 1.0);
            controls.push(jaw);
            for (p, lower) in mesh.positions().iter().zip(lower) {
                let along = ((p.x - 2.5) * (7.5 - p.x) / 6.25).max(0.0);
                let down = if islands { 1.0 } else { along * (p.y / 5.0).min(1.0) };
                vertices.push(*p - Vec3::Y * if *lower { 2.0 * jaw * down } else { 0.0 });
            }
        }
        (specs, controls, vertices)
    }

    fn compare(islands: bool) -> (Layout, Layout, [f64; 2]) {
        let (mesh, lower) = sheet(islands);
        let (specs, controls, vertices) = open(&mesh, &lower, islands);
        let poses =
            Recording { mesh: mesh.clone(), skeleton: None, specs, bones: Vec::new(), controls, vertices };
        let uvs = mesh.vertex_uvs().expect("has UVs");
        let all: Vec<u32> = (0..mesh.vertex_count() as u32).collect();
        let layouts = [false, true].map(|cut| layout(&poses, &uvs, &all, 32, cut));
        let errors = [0, 1].map(|i: usize| {
            let error = map_error(&poses, &all, &layouts[i].coordinates, 32);
            // Near the slit: elsewhere the map has no trouble.
            let near = |v: &usize| {
                (mesh.positions()[*v].y - 5.0).abs() < 0.1 && (3.0..7.0).contains(&mesh.positions()[*v].x)
            };
            let own: Vec<f64> = (0..error.len()).filter(near).map(|v| error[v]).collect();
            (own.iter().sum::<f64>() / own.len() as f64).sqrt()
        });
        let [glued, cut] = layouts;
        (glued, cut, errors)
    }

    #[test]
    fn stuck_lips_are_pulled_apart() {
        let (glued, cut, [before, after]) = compare(false);
        // As the texture has it, the lips miss by half of how far the mouth opens.
        assert!(glued.glued_before > 0 && glued.glued_after == glued.glued_before);
        assert!(before > 0.4, "{before} cm");
        assert!(cut.glued_after * 20 <= cut.glued_before, "{} of {}", cut.glued_after, cut.glued_before);
        // The estimate interpolates across the slit, which a network does not have to.
        assert!(after < 0.35 * before, "{after} of {before} cm");
        let inside = |c: &Vec2| (0.0..=31.0).contains(&c.x) && (0.0..=31.0).contains(&c.y);
        assert!(cut.coordinates.iter().all(inside));
        // Far from the slit nothing moved.
        assert!(cut.coordinates[0].distance(glued.coordinates[0]) < 0.2);
    }

    #[test]
    fn overlapping_islands_are_put_side_by_side() {
        let (glued, cut, [before, after]) = compare(true);
        assert!(glued.glued_before > 0 && before > 0.4, "{before} cm");
        assert_eq!((cut.spread_islands, cut.glued_after), (2, 0));
        assert!(after < 0.1 * before, "{after} of {before} cm");
    }

    #[test]
    fn points_without_extent_go_to_the_middle() {
        assert_eq!(fill(&[Vec2::new(0.3, 0.1); 2]), [Vec2::splat(0.5); 2]);
        assert_eq!(fill(&[Vec2::new(0.3, 0.1), Vec2::new(0.5, 0.1)])[1], Vec2::new(1.0, 0.5));
        assert!(fill(&[]).is_empty());
    }
}
