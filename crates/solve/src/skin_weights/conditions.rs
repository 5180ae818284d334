//! Handle conditions (eq. 3): which nodes a handle holds and with what weights, `w_j = δ_jk` on handle `k`; linear
//! along the faces of a cage. Says which handle is out of reach, or which two claim one place.

use super::domain::{Domain, Surface, nearest_node};
use super::handles::{Handle, HandleShape, column_names, nearest_on_segment};
use super::{SkinWeightsReport, WeightsError};
use crate::closest::{TriangleTree, closest_on_triangle};
use understudy_core::DVec3;

/// A handle may be this far from the mesh, as a share of the box's diagonal.
const FARTHEST: f64 = 0.1;
/// Points looked at along a bone, per cell.
const BONE_STEPS: f64 = 4.0;

/// Rows of known weights.
pub(super) struct Conditions {
    /// Nodes, ascending.
    pub nodes: Vec<u32>,
    /// Their weights, `[nodes][columns]` by rows; every row sums to one.
    pub rows: Vec<f64>,
    /// Mesh vertices that follow one handle wholly, ascending, and its column.
    pub vertices: Vec<(u32, u32)>,
}

/// What a handle holds at a node: its column, how far from the node it is, and whether it is a bone's.
#[derive(Clone)]
struct Claim {
    node: u32,
    distance: f64,
    weights: Vec<(u32, f64)>,
    shares: bool,
}

pub(super) fn conditions(
    handles: &[Handle],
    surface: &Surface,
    domain: &Domain,
    report: &mut SkinWeightsReport,
) -> Result<Conditions, WeightsError> {
    let names = column_names(handles);
    let vertices = held_vertices(handles, surface, &names)?;
    let mut claims: Vec<Claim> = Vec::new();
    let mut column = 0u32;
    for handle in handles {
        let found = match &domain.lattice {
            None => on_surface(handle, column, surface, domain)?,
            Some(_) => in_volume(handle, column, surface, domain)?,
        };
        claims.extend(found);
        column += handle.column_count() as u32;
    }
    let columns = names.len();
    claims.sort_by(|a, b| a.node.cmp(&b.node).then(a.distance.total_cmp(&b.distance)));
    let (mut nodes, mut rows) = (Vec::new(), Vec::new());
    for group in claims.chunk_by(|a, b| a.node == b.node) {
        nodes.push(group[0].node);
        // Bones that meet share the place where they do; otherwise the nearest has it.
        let near = group[0].distance + 1e-3 * domain.spacing;
        let all = group.iter().take_while(|claim| claim.distance <= near);
        let shared: Vec<&Claim> = all.filter(|claim| claim.shares == group[0].shares).collect();
        let shared = if group[0].shares { &shared[..] } else { &shared[..1] };
        let mut row = vec![0.0; columns];
        for claim in shared {
            claim.weights.iter().for_each(|(column, w)| row[*column as usize] += w / shared.len() as f64);
        }
        rows.extend(row);
    }
    share_places(&claims, &nodes, &mut rows, columns);
    // Bones that nowhere are alone; that is said.
    let largest = |column: usize| rows.chunks_exact(columns).fold(0.0f64, |most, row| most.max(row[column]));
    let bone = |handle: &Handle| matches!(handle.shape, HandleShape::Bone { .. });
    let bones = handles.iter().filter(|handle| bone(handle));
    let column_of = |handle: &Handle| names.iter().position(|name| *name == handle.name).unwrap_or(0);
    let crowded = bones.filter(|handle| {
        let largest = largest(column_of(handle));
        largest > 0.0 && largest < 0.6
    });
    let crowded: Vec<&str> = crowded.map(|handle| handle.name.as_str()).collect();
    if let Some(first) = crowded.first() {
        report.notes.push(format!(
            "{} bones (such as '{first}') share every place with others: a finer domain (more cells) would tell them apart",
            crowded.len()
        ));
    }
    // A column without a place of its own would be zero everywhere: that is an error, never a result.
    for (column, name) in names.iter().enumerate() {
        let holds = |row: &[f64]| row[column] > 0.0;
        let is_cage =
            claims.iter().any(|c| c.weights.len() > 1 && c.weights.iter().any(|w| w.0 == column as u32));
        if rows.chunks_exact(columns).any(holds) || is_cage {
            continue;
        }
        let own = claims.iter().find(|claim| claim.weights.iter().any(|(c, _)| *c == column as u32));
        let other = own.and_then(|own| {
            let group = claims.iter().filter(|claim| claim.node == own.node);
            group.flat_map(|claim| &claim.weights).find(|(c, _)| *c != column as u32)
        });
        // On a surface a place is a vertex, and no finer one exists.
        let vertex = own
            .filter(|_| domain.lattice.is_none())
            .and_then(|own| domain.node_of_vertex.iter().position(|node| *node == own.node));
        return Err(match other {
            Some((other, _)) if vertex.is_some() => WeightsError::SharedVertex {
                first: names[*other as usize].clone(),
                second: name.clone(),
                vertex: vertex.unwrap_or_default(),
            },
            Some((other, _)) => {
                WeightsError::Crowded { handle: name.clone(), other: names[*other as usize].clone() }
            }
            None => WeightsError::Unreached { handle: name.clone() },
        });
    }
    report.held_nodes = nodes.len();
    Ok(Conditions { nodes, rows, vertices })
}

/// Short bones beside each other may all be nearest to one node, and the nearest of them has taken it: the others share it,
/// so that a rig with fingers is weighed as a whole.
fn share_places(claims: &[Claim], nodes: &[u32], rows: &mut [f64], columns: usize) {
    // By node in `claims`: whether a bone holds it, the nearest claim is the first.
    let is_bones = |node: u32| {
        let first = claims.partition_point(|claim| claim.node < node);
        claims.get(first).is_some_and(|claim| claim.shares)
    };
    let mut joins: Vec<(usize, u32)> = Vec::new();
    for column in 0..columns {
        if rows.chunks_exact(columns).any(|row| row[column] > 0.0) {
            continue;
        }
        let own = claims.iter().filter(|claim| claim.shares && claim.weights[0].0 as usize == column);
        let open = own.filter(|claim| is_bones(claim.node));
        if let Some(nearest) = open.min_by(|a, b| a.distance.total_cmp(&b.distance))
            && let Ok(row) = nodes.binary_search(&nearest.node)
        {
            joins.push((row, column as u32));
        }
    }
    joins.sort_unstable();
    for group in joins.chunk_by(|a, b| a.0 == b.0) {
        let row = &mut rows[group[0].0 * columns..(group[0].0 + 1) * columns];
        let before = row.iter().filter(|w| **w > 0.0).count();
        let share = 1.0 / (before + group.len()) as f64;
        row.iter_mut().filter(|w| **w > 0.0).for_each(|w| *w = share);
        group.iter().for_each(|(_, column)| row[*column as usize] = share);
    }
}

/// Vertices of the mesh that point and region handles hold, with those that lie on them across a seam; two handles on one
/// vertex are refused.
fn held_vertices(
    handles: &[Handle],
    surface: &Surface,
    names: &[String],
) -> Result<Vec<(u32, u32)>, WeightsError> {
    let mut held: Vec<(u32, u32)> = Vec::new();
    let mut column = 0u32;
    for handle in handles {
        match &handle.shape {
            HandleShape::Vertex(vertex) => held.push((*vertex, column)),
            HandleShape::Region(vertices) => held.extend(vertices.iter().map(|v| (*v, column))),
            HandleShape::Point(place) => {
                let place = surface.inward(*place);
                let nearest = nearest_node(&surface.points, place);
                // A point on a vertex is that vertex.
                if (surface.points[nearest as usize] - place).length() < 1e-6 {
                    held.push((nearest, column));
                }
            }
            HandleShape::Bone { .. } | HandleShape::Cage { .. } => {}
        }
        column += handle.column_count() as u32;
    }
    held.iter_mut().for_each(|(vertex, _)| *vertex = surface.stand_in[*vertex as usize]);
    held.sort_unstable();
    held.dedup();
    if let Some(pair) = held.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(WeightsError::SharedVertex {
            first: names[pair[0].1 as usize].clone(),
            second: names[pair[1].1 as usize].clone(),
            vertex: pair[0].0 as usize,
        });
    }
    let column = |stand_in: &u32| {
        held.binary_search_by_key(stand_in, |(vertex, _)| *vertex).ok().map(|place| held[place].1)
    };
    let all = (0u32..).zip(&surface.stand_in);
    Ok(all.filter_map(|(vertex, stand_in)| Some((vertex, column(stand_in)?))).collect())
}

fn far(handle: &Handle, surface: &Surface, distance: f64) -> WeightsError {
    WeightsError::FarAway {
        handle: handle.name.clone(),
        distance: distance / surface.scale,
        most: FARTHEST / surface.scale,
    }
}

fn whole(node: u32, distance: f64, column: u32, shares: bool) -> Claim {
    Claim { node, distance, weights: vec![(column, 1.0)], shares }
}

fn on_surface(
    handle: &Handle,
    column: u32,
    surface: &Surface,
    domain: &Domain,
) -> Result<Vec<Claim>, WeightsError> {
    let of_vertex = |vertex: u32| whole(domain.node_of_vertex[vertex as usize], 0.0, column, false);
    match &handle.shape {
        HandleShape::Vertex(vertex) => Ok(vec![of_vertex(*vertex)]),
        HandleShape::Region(vertices) => Ok(vertices.iter().map(|vertex| of_vertex(*vertex)).collect()),
        HandleShape::Point(place) => {
            let place = surface.inward(*place);
            let node = nearest_node(&domain.points, place);
            let distance = (domain.points[node as usize] - place).length();
            if distance > FARTHEST {
                return Err(far(handle, surface, distance));
            }
            Ok(vec![whole(node, distance, column, false)])
        }
        HandleShape::Bone { head, tail } => {
            let (head, tail) = (surface.inward(*head), surface.inward(*tail));
            let distance = |p: DVec3| (nearest_on_segment(p, head, tail) - p).length();
            let near = domain.points.iter().enumerate().map(|(node, p)| (node as u32, distance(*p)));
            let claims: Vec<Claim> = near
                .filter(|(_, distance)| *distance < 0.5 * domain.spacing)
                .map(|(node, distance)| whole(node, distance, column, true))
                .collect();
            if claims.is_empty() {
                let handle = handle.name.clone();
                return Err(WeightsError::NeedsVolume {
                    handle,
                    problem: "is a bone that touches no vertex",
                });
            }
            Ok(claims)
        }
        HandleShape::Cage { .. } => Err(WeightsError::NeedsVolume {
            handle: handle.name.clone(),
            problem: "is a cage, which lies outside the surface",
        }),
    }
}

fn in_volume(
    handle: &Handle,
    column: u32,
    surface: &Surface,
    domain: &Domain,
) -> Result<Vec<Claim>, WeightsError> {
    let lattice = domain.lattice.as_ref().expect("a volume has a lattice");
    // With weights between 0 and 1, a blend of nodes is one only where all of them are.
    let around = |p: DVec3| -> Option<Vec<Claim>> {
        let (nodes, weights) = lattice.locate(p)?;
        let corners = nodes.iter().zip(weights).filter(|(_, w)| *w > 1e-6);
        Some(
            corners
                .map(|(node, _)| {
                    let distance = (lattice.points[*node as usize] - p).length();
                    whole(*node, distance, column, false)
                })
                .collect(),
        )
    };
    let point = |p: DVec3| -> Result<Vec<Claim>, WeightsError> {
        if let Some(claims) = around(p) {
            return Ok(claims);
        }
        let node = nearest_node(&lattice.points, p);
        let distance = (lattice.points[node as usize] - p).length();
        if distance > FARTHEST {
            return Err(far(handle, surface, distance));
        }
        Ok(vec![whole(node, distance, column, false)])
    };
    match &handle.shape {
        HandleShape::Vertex(vertex) => point(surface.points[*vertex as usize]),
        HandleShape::Point(place) => point(surface.inward(*place)),
        HandleShape::Region(vertices) => {
            let mut all = Vec::new();
            for vertex in vertices {
                all.extend(point(surface.points[*vertex as usize])?);
            }
            Ok(all)
        }
        HandleShape::Bone { head, tail } => {
            let (head, tail) = (surface.inward(*head), surface.inward(*tail));
            let steps = ((tail - head).length() / lattice.cell * BONE_STEPS).ceil().clamp(1.0, 1e4) as usize;
            let mut claims = Vec::new();
            for step in 0..=steps {
                let p = head + (tail - head) * (step as f64 / steps as f64);
                let Some((nodes, _)) = lattice.locate(p) else { continue };
                let distance = |node: &u32| (lattice.points[*node as usize] - p).length_squared();
                let nearest = nodes.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
                let node = *nearest.expect("a tetrahedron has four nodes");
                let exact = lattice.points[node as usize];
                let distance = (nearest_on_segment(exact, head, tail) - exact).length();
                claims.push(whole(node, distance, column, true));
            }
            claims.dedup_by_key(|claim| claim.node);
            if claims.is_empty() {
                let node = nearest_node(&lattice.points, (head + tail) / 2.0);
                let p = lattice.points[node as usize];
                let distance = (nearest_on_segment(p, head, tail) - p).length();
                if distance > FARTHEST {
                    return Err(far(handle, surface, distance));
                }
                claims.push(whole(node, distance, column, true));
            }
            Ok(claims)
        }
        HandleShape::Cage { vertices, faces } => {
            let corners: Vec<DVec3> = vertices.iter().map(|v| surface.inward(*v)).collect();
            let tree = TriangleTree::new(&corners, faces);
            // Every edge that crosses a face has an end within half its length: no weight leaks through.
            let reach = lattice.cell * 0.5;
            let mut claims = Vec::new();
            for (node, p) in lattice.points.iter().enumerate() {
                let Some(hit) = tree.closest(*p) else { continue };
                if hit.squared_distance > reach * reach {
                    continue;
                }
                let face = faces[hit.triangle];
                let (_, weights) = closest_on_triangle(*p, face.map(|v| corners[v as usize]));
                let weights = face.iter().zip(weights).filter(|(_, w)| *w > 0.0);
                let weights = weights.map(|(corner, w)| (column + corner, w)).collect();
                let distance = hit.squared_distance.sqrt();
                claims.push(Claim { node: node as u32, distance, weights, shares: false });
            }
            Ok(claims)
        }
    }
}
