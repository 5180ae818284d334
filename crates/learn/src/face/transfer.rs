//! A face twin on another mesh: its vertices sample the same maps at their own texture coordinates. Start
//! at [`transfer`].
//!
//! Every vertex finds the triangle of the old mesh that covers its texture coordinates and takes over what
//! the corners have: network, map coordinates, rigid segment. That keeps map coordinates that were pulled
//! apart, and segments, without asking how the new mesh is cut up.

use super::FaceLearnError;
use understudy_core::{Mesh, Vec2, Vec3};
use understudy_runtime::face::sample::stepped;
use understudy_runtime::face::{FaceParts, MapParts, NetParts, RigidBodyParts, RigidParts, Stage};

/// A vertex farther than this from all triangles, in units of the texture's width, has no counterpart.
const FAR: f32 = 0.02;
/// Share of the vertices that may be far before the textures are called different.
const MOST_FAR: f64 = 0.05;
/// Distances in the texture that differ by less are the same.
const SAME: f32 = 1e-6;
/// What the side on which a vertex lies counts beside its place: enough to choose between equal places.
const SIDE_SHARE: f32 = 1e-3;
/// Vertices whose pixels are farther apart are no neighbours in their map.
const NEIGHBOURS: f32 = 1.5;
/// Cells along each side of the grid that finds triangles.
const CELLS: usize = 96;

/// What became of a twin.
#[derive(Debug, Clone, PartialEq)]
pub struct Transferred {
    /// The twin for the new mesh.
    pub parts: FaceParts,
    /// Vertices outside the old texture, which took over what is nearest.
    pub outside: usize,
    /// Where each vertex of the new mesh lies on the old one.
    pub spots: Vec<Spot>,
}

/// Moves a twin to a mesh whose texture coordinates agree with those of the twin's own mesh.
pub fn transfer(twin: &FaceParts, mesh: &Mesh) -> Result<Transferred, FaceLearnError> {
    let fail = |problem: String| FaceLearnError::Transfer { problem };
    if let Some(net) = twin.nets.iter().find(|net| net.map.is_none()) {
        let problem =
            format!("the network '{}' draws no map: it knows the vertices of one mesh only", net.name);
        return Err(fail(problem));
    }
    let uvs = mesh.vertex_uvs().ok_or_else(|| fail("the mesh has no texture coordinates".into()))?;
    let atlas =
        Atlas::new(&twin.mesh).ok_or_else(|| fail("the twin's mesh has no texture coordinates".into()))?;
    let rest = twin.mesh.positions();
    let places = uvs.iter().zip(mesh.positions()).zip(surroundings(mesh));
    let found: Vec<(Spot, f32)> =
        places.map(|((uv, at), around)| atlas.find(*uv, *at, around, rest)).collect();
    let outside = found.iter().filter(|(_, distance)| *distance > FAR).count();
    if outside as f64 > MOST_FAR * uvs.len() as f64 {
        return Err(fail(format!(
            "{outside} of {} vertices lie outside the twin's texture: the texture coordinates do not agree",
            uvs.len()
        )));
    }
    let spots: Vec<Spot> = found.into_iter().map(|(spot, _)| spot).collect();
    let count = twin.mesh.vertex_count();
    let mut rigid_of = vec![None; count];
    for (index, segment) in twin.rigid.iter().enumerate() {
        segment.vertices.iter().for_each(|v| rigid_of[*v as usize] = Some(index));
    }
    let mut rigid: Vec<RigidParts> = twin.rigid.clone();
    rigid.iter_mut().for_each(|segment| segment.vertices.clear());
    let mut body_of = vec![None; count];
    for (index, body) in twin.bodies.iter().enumerate() {
        body.vertices.iter().for_each(|v| body_of[*v as usize] = Some(index));
    }
    let mut bodies: Vec<RigidBodyParts> = twin.bodies.clone();
    bodies.iter_mut().for_each(|body| body.vertices.clear());
    let mut nets: Vec<NetParts> = twin.nets.iter().map(emptied).collect();
    let own_pixels: Vec<bool> = twin.nets.iter().map(has_own_pixels).collect();
    let owners = [Stage::Coarse, Stage::Refinement].map(|stage| owners(twin, stage));
    for (vertex, spot) in (0u32..).zip(&spots) {
        if let Some(segment) = spot.heaviest(|v| rigid_of[v]) {
            rigid[segment].vertices.push(vertex);
            continue;
        }
        if let Some(body) = spot.heaviest(|v| body_of[v]) {
            bodies[body].vertices.push(vertex);
            continue;
        }
        for owners in &owners {
            if let Some(net) = spot.heaviest(|v| owners[v].map(|(net, _)| net)) {
                let map = twin.nets[net].map.as_ref().expect("checked above");
                let place = |v: usize| {
                    owners[v].filter(|(owner, _)| *owner == net).map(|(_, place)| map.coordinates[place])
                };
                nets[net].vertices.push(vertex);
                let own = nets[net].map.as_mut().expect("has one like the old");
                own.coordinates.push(stepped(spot.mean(place, own_pixels[net])));
            }
        }
    }
    for (segment, old) in rigid.iter_mut().zip(&twin.rigid) {
        let fellows = |vertex: usize| match owners[0][vertex] {
            Some((net, _)) => Some(&nets[net].vertices[..]),
            None => body_of[vertex].map(|body| &bodies[body].vertices[..]),
        };
        segment.follows = followers(twin, fellows, &uvs, old)
            .ok_or_else(|| fail(format!("'{}' finds nobody to follow on the new mesh", old.name)))?;
    }
    rigid.retain(|segment| !segment.vertices.is_empty());
    nets.retain(|net| !net.vertices.is_empty());
    bodies.retain(|body| !body.vertices.is_empty());
    let mut header = twin.header.clone();
    header.topology_hash = mesh.topology_hash();
    header.training.transferred_from = Some(format!("{:016x}", twin.header.topology_hash));
    let parts = FaceParts { header, mesh: mesh.clone(), frame: twin.frame.clone(), nets, bodies, rigid };
    Ok(Transferred { parts, outside, spots })
}

/// The mean of the middles of each vertex's faces: on which side of a slit it lies.
fn surroundings(mesh: &Mesh) -> Vec<Vec3> {
    let mut sums = vec![(Vec3::ZERO, 0.0f32); mesh.vertex_count()];
    for face in mesh.faces() {
        let corners = face.corners();
        let sum: Vec3 = corners.iter().map(|v| mesh.positions()[*v as usize]).sum();
        let middle = sum / corners.len() as f32;
        for &vertex in corners {
            let (sum, count) = &mut sums[vertex as usize];
            (*sum, *count) = (*sum + middle, *count + 1.0);
        }
    }
    let mean = |((sum, count), at): (&(Vec3, f32), &Vec3)| if *count > 0.0 { *sum / *count } else { *at };
    sums.iter().zip(mesh.positions()).map(mean).collect()
}

/// Whether the vertices of a network have pixels of their own: they then sample nowhere else.
fn has_own_pixels(net: &NetParts) -> bool {
    net.map.as_ref().is_some_and(|map| map.coordinates.iter().all(|place| place.fract() == Vec2::ZERO))
}

/// The same network without vertices.
fn emptied(net: &NetParts) -> NetParts {
    let map = net.map.as_ref().map(|map| MapParts { coordinates: Vec::new(), ..map.clone() });
    NetParts { vertices: Vec::new(), map, ..net.clone() }
}

/// For every vertex of the twin its network of a stage, and its place there.
fn owners(twin: &FaceParts, stage: Stage) -> Vec<Option<(usize, usize)>> {
    let mut out = vec![None; twin.mesh.vertex_count()];
    for (index, net) in twin.nets.iter().enumerate().filter(|(_, net)| net.stage == stage) {
        for (place, vertex) in net.vertices.iter().enumerate() {
            out[*vertex as usize] = Some((index, place));
        }
    }
    out
}

/// For each vertex that a rigid segment followed, the new vertex of the same network or body that lies
/// nearest in the texture: one of its `fellows`. `None` where fewer than three are left.
fn followers<'a>(
    twin: &FaceParts,
    fellows: impl Fn(usize) -> Option<&'a [u32]>,
    uvs: &[Vec2],
    old: &RigidParts,
) -> Option<Vec<u32>> {
    let old_uvs = twin.mesh.vertex_uvs()?;
    let mut out: Vec<u32> = Vec::new();
    for &vertex in &old.follows {
        let at = old_uvs[vertex as usize];
        let free = fellows(vertex as usize)?.iter().filter(|v| !out.contains(v));
        let distance = |v: &u32| uvs[*v as usize].distance_squared(at);
        if let Some(next) = free.min_by(|a, b| distance(a).total_cmp(&distance(b)).then(a.cmp(b))) {
            out.push(*next);
        }
    }
    (out.len() >= 3).then_some(out)
}

/// A point in a triangle of the old mesh.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spot {
    vertices: [u32; 3],
    weights: [f32; 3],
    /// Whether each corner lies in the map where it lies in this triangle's texture. Where a texture is cut open a
    /// vertex has two places in it and one in the map.
    own: [bool; 3],
}

impl Spot {
    /// The point itself, on the old mesh in any pose.
    pub fn on(&self, vertices: &[Vec3]) -> Vec3 {
        let corners = self.vertices.iter().zip(self.weights);
        corners.map(|(vertex, weight)| vertices[*vertex as usize] * weight).sum()
    }

    /// The middle of its triangle.
    fn middle(&self, vertices: &[Vec3]) -> Vec3 {
        self.vertices.iter().map(|vertex| vertices[*vertex as usize]).sum::<Vec3>() / 3.0
    }

    /// What the corners agree on, or what those with most weight say.
    fn heaviest(&self, of: impl Fn(usize) -> Option<usize>) -> Option<usize> {
        let votes = self.vertices.map(|v| of(v as usize));
        let weight = |answer: Option<usize>| -> f32 {
            votes.iter().zip(self.weights).filter(|(vote, _)| **vote == answer).map(|(_, w)| w).sum()
        };
        let best = (1..3).fold(0, |best, i| if weight(votes[i]) > weight(votes[best]) { i } else { best });
        votes[best]
    }

    /// The mean of the map coordinates of corners; those without are left out, and those whose place is on the
    /// other side of a cut: between them and the others lies all of the map. Where all of them are, the heaviest
    /// speaks alone. Where vertices have pixels of their own, those between two that are no neighbours belong to
    /// somebody else: only neighbours of the heaviest, and of each other, speak with it.
    fn mean(&self, of: impl Fn(usize) -> Option<Vec2>, own_pixels: bool) -> Vec2 {
        // A corner may have all of its weight lost to rounding.
        let corners = (0..3).filter_map(|corner| {
            let value = of(self.vertices[corner] as usize)?;
            Some((value, self.weights[corner].max(1e-6), self.own[corner]))
        });
        let mut sorted: Vec<(Vec2, f32, bool)> = corners.collect();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut speak: Vec<(Vec2, f32)> = Vec::with_capacity(3);
        for (value, share, _) in sorted.iter().filter(|(.., own)| *own) {
            if !own_pixels || speak.iter().all(|(other, _)| other.distance(*value) <= NEIGHBOURS) {
                speak.push((*value, *share));
            }
        }
        let weight: f32 = speak.iter().map(|(_, share)| share).sum();
        match sorted.first() {
            _ if !speak.is_empty() => speak.iter().map(|(value, share)| *value * (*share / weight)).sum(),
            heaviest => heaviest.map_or(Vec2::ZERO, |(value, ..)| *value),
        }
    }
}

/// A triangle in texture space.
struct Triangle {
    vertices: [u32; 3],
    corners: [Vec2; 3],
    /// See [`Spot`].
    own: [bool; 3],
}

/// Triangles of a mesh in texture space.
struct Atlas {
    triangles: Vec<Triangle>,
    cells: Vec<Vec<u32>>,
    low: Vec2,
    size: f32,
}

impl Atlas {
    fn new(mesh: &Mesh) -> Option<Self> {
        let places = mesh.vertex_uvs()?;
        let mut triangles = Vec::new();
        for (face, corners) in mesh.faces().iter().zip(mesh.face_uvs()) {
            let at = |corner: usize| mesh.uvs()[corners.raw()[corner] as usize];
            let mut push = |three: [usize; 3]| {
                let (vertices, corners) = (three.map(|corner| face.raw()[corner]), three.map(at));
                let own = [0, 1, 2].map(|corner| {
                    let place = places[vertices[corner] as usize];
                    place.distance(corners[corner]) <= SAME
                });
                triangles.push(Triangle { vertices, corners, own });
            };
            push([0, 1, 2]);
            if face.corner_count() == 4 {
                push([0, 2, 3]);
            }
        }
        let points = || triangles.iter().flat_map(|triangle| triangle.corners);
        let low = points().fold(Vec2::INFINITY, Vec2::min);
        let high = points().fold(Vec2::NEG_INFINITY, Vec2::max);
        let size = (high - low).max_element().max(1e-9);
        let mut atlas = Self { triangles: Vec::new(), cells: vec![Vec::new(); CELLS * CELLS], low, size };
        for (index, Triangle { corners: [a, b, c], .. }) in (0u32..).zip(&triangles) {
            let (from, to) = (atlas.cell(a.min(*b).min(*c)), atlas.cell(a.max(*b).max(*c)));
            for row in from.1..=to.1 {
                for column in from.0..=to.0 {
                    atlas.cells[row * CELLS + column].push(index);
                }
            }
        }
        atlas.triangles = triangles;
        Some(atlas)
    }

    fn cell(&self, uv: Vec2) -> (usize, usize) {
        let place =
            ((uv - self.low) / self.size * CELLS as f32).clamp(Vec2::ZERO, Vec2::splat((CELLS - 1) as f32));
        (place.x as usize, place.y as usize)
    }

    /// The nearest point of all triangles and its distance in widths of the texture; zero inside one. Where
    /// the texture lies on itself, that which is nearest to `at` on the mesh, whose positions are `rest`; where lips
    /// lie on each other there too, that on the side of `around`.
    fn find(&self, uv: Vec2, at: Vec3, around: Vec3, rest: &[Vec3]) -> (Spot, f32) {
        let (x, y) = self.cell(uv);
        let nowhere = Spot { vertices: [0; 3], weights: [1.0, 0.0, 0.0], own: [true; 3] };
        let mut best = (nowhere, f32::INFINITY);
        for ring in 0..CELLS {
            // A triangle in a farther ring is at least that far away.
            if best.1 <= (ring as f32 - 1.0) / CELLS as f32 {
                break;
            }
            let (low_x, low_y) = (x.saturating_sub(ring), y.saturating_sub(ring));
            for row in low_y..=(y + ring).min(CELLS - 1) {
                for column in low_x..=(x + ring).min(CELLS - 1) {
                    if row.abs_diff(y).max(column.abs_diff(x)) != ring {
                        continue;
                    }
                    for &triangle in &self.cells[row * CELLS + column] {
                        let Triangle { vertices, corners, own } = &self.triangles[triangle as usize];
                        let (weights, distance) = nearest(uv, corners);
                        let spot = Spot { vertices: *vertices, weights, own: *own };
                        let distance = distance / self.size;
                        let away = |spot: &Spot| {
                            let side = spot.middle(rest).distance_squared(around);
                            spot.on(rest).distance_squared(at) + SIDE_SHARE * side
                        };
                        let better = match (distance - best.1).abs() <= SAME {
                            true => away(&spot) < away(&best.0),
                            false => distance < best.1,
                        };
                        if better {
                            best = (spot, distance);
                        }
                    }
                }
            }
        }
        best
    }
}

/// The nearest point of a triangle as weights of its corners, and its distance.
fn nearest(at: Vec2, corners: &[Vec2; 3]) -> ([f32; 3], f32) {
    let [a, b, c] = *corners;
    let area = (b - a).perp_dot(c - a);
    if area.abs() > 1e-14 {
        let weights = [(b - at).perp_dot(c - at) / area, (c - at).perp_dot(a - at) / area];
        let weights = [weights[0], weights[1], 1.0 - weights[0] - weights[1]];
        if weights.iter().all(|w| *w >= -1e-5) {
            return (weights.map(|w| w.max(0.0)), 0.0);
        }
    }
    let mut best = ([1.0, 0.0, 0.0], f32::INFINITY);
    for (i, j) in [(0, 1), (1, 2), (2, 0)] {
        let along = corners[j] - corners[i];
        let length = along.length_squared();
        let t = if length > 0.0 { ((at - corners[i]).dot(along) / length).clamp(0.0, 1.0) } else { 0.0 };
        let distance = at.distance(corners[i] + along * t);
        if distance < best.1 {
            let mut weights = [0.0; 3];
            (weights[i], weights[j]) = (1.0 - t, t);
            best = (weights, distance);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::net::NetKind;
    use super::super::segments::learn_bodies;
    use super::super::tests::small_face;
    use super::super::trainer::Trainer;
    use super::super::{FaceSettings, Plan, inputs::Influences};
    use super::*;
    use understudy_core::{Face, MeshParts};
    use understudy_runtime::face::FaceTwin;
    use understudy_runtime::{Pose, Precision, Training, Twin};

    /// A twin with random weights: what it draws does not matter, where it is sampled does.
    fn twin(bodies: bool) -> (super::super::tests::SmallFace, FaceParts) {
        let face = small_face(2, 30);
        let poses = face.poses();
        let settings = FaceSettings { hidden: 8, bodies, ..FaceSettings::default() };
        let influences = Influences::new(&poses, None).expect("enough poses");
        let plan = Plan::new(&poses, &influences, &settings).expect("something moves");
        assert!(matches!(plan.coarse[0].kind, NetKind::Map { .. }));
        let problem = plan.coarse_problem(&poses, &settings);
        let trainer = Trainer::new(problem, plan.coarse.clone(), 8, 8, 1, 1).expect("threads start");
        let bodies = learn_bodies(&poses, &plan.bodies, &influences, 1, &|_| true).expect("not stopped");
        let bodies = bodies.into_iter().map(|(body, _)| body).collect();
        let parts = plan.finish(&poses, "small", None, trainer.parts(), bodies, Training::default());
        (face, parts)
    }

    fn pose(parts: FaceParts) -> Vec<Vec3> {
        let twin = Twin::from(FaceTwin::new(parts, Precision::Single).expect("a valid twin"));
        let mut out = vec![Vec3::ZERO; twin.vertex_count()];
        let controls = [0.9, 0.3, 0.8, 0.2, 0.5, 0.0];
        twin.player(1).pose(Pose::Controls(&controls), &mut out).expect("a valid pose");
        out
    }

    #[test]
    fn on_its_own_mesh_nothing_changes() {
        for bodies in [false, true] {
            let (face, parts) = twin(bodies);
            let same = transfer(&parts, &face.mesh).expect("the same texture");
            assert_eq!(same.outside, 0);
            let rest = face.mesh.positions();
            let farthest = rest.iter().zip(&same.spots).map(|(at, spot)| spot.on(rest).distance(*at));
            let farthest = farthest.fold(0.0, f32::max);
            assert!(farthest < 1e-4, "{farthest}");
            assert_eq!((parts.rigid.len(), parts.bodies.len()), if bodies { (0, 1) } else { (1, 0) });
            assert!(same.parts.rigid.iter().zip(&parts.rigid).all(|(a, b)| a.vertices == b.vertices));
            assert!(same.parts.bodies == parts.bodies);
            for (a, b) in pose(parts).iter().zip(&pose(same.parts)) {
                assert!(a.distance(*b) < 1e-4, "{a} {b}");
            }
        }
    }

    #[test]
    fn on_a_finer_mesh_old_vertices_move_as_before() {
        let (face, parts) = twin(false);
        let mesh = &face.mesh;
        // Every face becomes triangles around a new vertex in its middle.
        let mut fine = MeshParts {
            positions: mesh.positions().to_vec(),
            uvs: mesh.uvs().to_vec(),
            ..MeshParts::default()
        };
        for (face, corners) in mesh.faces().iter().zip(mesh.face_uvs()) {
            let count = face.corner_count();
            let middle = fine.positions.len() as u32;
            let middle_uv = fine.uvs.len() as u32;
            let mean = |v: &u32| mesh.positions()[*v as usize];
            fine.positions.push(face.corners().iter().map(mean).sum::<Vec3>() / count as f32);
            let mean = |v: &u32| mesh.uvs()[*v as usize];
            fine.uvs.push(corners.corners().iter().map(mean).sum::<Vec2>() / count as f32);
            for corner in 0..count {
                let (v, t) = (face.corners(), corners.corners());
                fine.faces.push(Face::triangle(v[corner], v[(corner + 1) % count], middle));
                fine.face_uvs.push(Face::triangle(t[corner], t[(corner + 1) % count], middle_uv));
            }
        }
        let fine = fine.build().expect("a valid mesh");
        let moved = transfer(&parts, &fine).expect("the same texture");
        assert_eq!(moved.parts.header.topology_hash, fine.topology_hash());
        assert!(moved.parts.rigid[0].vertices.len() > parts.rigid[0].vertices.len());
        let (before, after) = (pose(parts), pose(moved.parts));
        assert_eq!(after.len(), fine.vertex_count());
        let skin = super::super::tests::SIDE * super::super::tests::SIDE;
        for (a, b) in before[..skin].iter().zip(&after) {
            assert!(a.distance(*b) < 1e-4, "{a} {b}");
        }
    }

    #[test]
    fn vertices_at_a_cut_of_the_texture_stay_on_their_side() {
        // The last triangle closes a strip whose first vertex lies at the other end of the map.
        let at = [Vec2::new(0.0, 0.0), Vec2::new(31.0, 0.0), Vec2::new(30.0, 2.0)];
        let spot = Spot { vertices: [0, 1, 2], weights: [0.5, 0.3, 0.2], own: [false, true, true] };
        let place = spot.mean(|v| Some(at[v]), false);
        assert!(place.distance(Vec2::new(30.6, 0.8)) < 1e-5, "{place}");
        // Nobody on this side: one of them, not between them.
        let lost = Spot { own: [false; 3], ..spot };
        assert_eq!(lost.mean(|v| Some(at[v]), false), at[0]);
        assert_eq!(lost.mean(|v| (v > 0).then(|| at[v]), false), at[1]);
        assert_eq!(spot.mean(|_| None, false), Vec2::ZERO);
        // Pixels of their own, two apart: none between them.
        assert_eq!(Spot { own: [true; 3], ..spot }.mean(|v| Some(at[v]), true), at[0]);
    }

    #[test]
    fn other_textures_and_dense_twins_are_refused() {
        let (face, parts) = twin(true);
        let mut other = face.mesh.clone().into_parts();
        other.uvs.iter_mut().for_each(|uv| *uv += Vec2::splat(3.0));
        let other = other.build().expect("a valid mesh");
        assert!(matches!(transfer(&parts, &other), Err(FaceLearnError::Transfer { .. })));
        let mut bare = face.mesh.clone().into_parts();
        (bare.uvs, bare.face_uvs) = (vec![], vec![]);
        let bare = bare.build().expect("a valid mesh");
        assert!(matches!(transfer(&parts, &bare), Err(FaceLearnError::Transfer { .. })));
        let mut dense = parts;
        dense.nets[0].map = None;
        assert!(transfer(&dense, &face.mesh).is_err());
    }
}
