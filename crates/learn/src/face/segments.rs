//! How each segment of the mesh moves: by a network of its own, rigidly with others, rigidly by itself, or not
//! at all. Start at [`sort`].

use super::inputs::Influences;
use super::motion::{self, Size};
use super::{FaceLearnError, FaceSettings, Recording, rigid};
use rayon::prelude::*;
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};
use understudy_runtime::face::{RigidBodyParts, RigidParts};

/// Vertices that move less never move, cm.
const STILL: f32 = 1e-4;
/// Poses by which it is decided.
const MOST_POSES: usize = 200;
/// A rigid segment goes along with a body that tells its motion to this, cm.
const TOGETHER: f64 = 0.005;
/// What has a motion of its own misses it by less, cm: where a segment bends, be it a little, a map says more.
const STIFF: f64 = 0.01;
/// Fewer vertices tell no rotation.
const FEWEST: usize = 4;

/// How a segment moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentKind {
    /// By a network.
    Network,
    /// Rigidly, with vertices of others.
    Rigid,
    /// Rigidly, by a motion of its own.
    Body,
    /// Not at all.
    Still,
}

/// One segment of the mesh.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SegmentPlan {
    /// Its name.
    pub name: String,
    /// How many vertices.
    pub vertices: usize,
    /// How it moves.
    pub kind: SegmentKind,
    /// What its best rigid motion leaves (3.3), root mean square, mm.
    pub rigid_mm: f64,
    /// What the motion of those that it could follow leaves, mm.
    pub follow_mm: Option<f64>,
    /// Controls that its map's network sees.
    pub inputs: usize,
    /// Pairs of vertices that the texture puts into common pixels though they move apart, before and after
    /// map coordinates were pulled apart.
    pub glued: [usize; 2],
    /// Overlapping islands that were put side by side.
    pub spread_islands: usize,
}

/// A segment that moves rigidly by a motion of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct BodyPlan {
    /// Its number in the mesh.
    pub segment: usize,
    /// Its name.
    pub name: String,
    /// Its vertices.
    pub vertices: Vec<u32>,
}

/// The segments of a mesh, sorted.
pub struct Sorted {
    /// All of them, in the mesh's order.
    pub segments: Vec<SegmentPlan>,
    /// Those that move rigidly with others.
    pub rigid: Vec<RigidParts>,
    /// Those that move rigidly by themselves.
    pub bodies: Vec<BodyPlan>,
}

/// Sorts the segments of a mesh. `poses`: the head's motion already taken away.
pub fn sort(poses: &Recording, settings: &FaceSettings) -> Sorted {
    let rest = poses.mesh.positions();
    let chosen = poses.spread(MOST_POSES);
    let names = &poses.mesh.segments().names;
    let tolerance = settings.rigid_mm / 10.0;
    let members: Vec<Vec<u32>> = (0..names.len()).map(|s| poses.mesh.segments().vertices(s)).collect();
    let mut segments: Vec<SegmentPlan> = Vec::new();
    for (name, vertices) in names.iter().zip(&members) {
        let moves = |v: &u32| {
            let v = *v as usize;
            chosen.iter().any(|pose| poses.vertices_of(*pose)[v].distance(rest[v]) > STILL)
        };
        let still = !vertices.iter().any(moves);
        let error = if still { 0.0 } else { rigid::rigidity(poses, vertices) };
        let kind = match (still, error < tolerance) {
            (true, _) => SegmentKind::Still,
            (false, true) => SegmentKind::Rigid,
            (false, false) => SegmentKind::Network,
        };
        segments.push(SegmentPlan {
            name: name.clone(),
            vertices: vertices.len(),
            kind,
            rigid_mm: error * 10.0,
            follow_mm: None,
            inputs: 0,
            glued: [0, 0],
            spread_islands: 0,
        });
    }
    let (mut parts, bodies) = match settings.bodies {
        true => lead(poses, settings, &mut segments, &members),
        false => (Vec::new(), Vec::new()),
    };
    parts.extend(follow_others(poses, settings, &mut segments, &members));
    Sorted { segments, rigid: parts, bodies }
}

/// Rigid segments that move together: the largest gets a motion of its own, the others follow it. Flesh
/// around a tooth moves as it is learned to; a jaw knows better where its teeth are.
fn lead(
    poses: &Recording,
    settings: &FaceSettings,
    segments: &mut [SegmentPlan],
    members: &[Vec<u32>],
) -> (Vec<RigidParts>, Vec<BodyPlan>) {
    let able = |s: &usize| {
        let plan = &segments[*s];
        plan.kind == SegmentKind::Rigid && plan.rigid_mm < 10.0 * STIFF && members[*s].len() >= FEWEST
    };
    let mut order: Vec<usize> = (0..segments.len()).filter(able).collect();
    order.sort_by_key(|s| (std::cmp::Reverse(members[*s].len()), *s));
    let (mut parts, mut bodies): (Vec<RigidParts>, Vec<BodyPlan>) = (Vec::new(), Vec::new());
    for segment in order {
        let (name, vertices) = (&segments[segment].name, &members[segment]);
        let along = |body: &BodyPlan| rigid::follow(poses, name, vertices, &body.vertices, settings);
        let best = bodies.iter().map(along).min_by(|a, b| a.1.total_cmp(&b.1));
        match best.filter(|(_, error)| *error < TOGETHER) {
            Some((own, error)) => {
                segments[segment].follow_mm = Some(error * 10.0);
                parts.push(own);
            }
            None => {
                bodies.push(BodyPlan { segment, name: name.clone(), vertices: vertices.clone() });
                segments[segment].kind = SegmentKind::Body;
            }
        }
    }
    parts.sort_by_key(|part| part.vertices.first().copied());
    (parts, bodies)
}

/// The paper's way (3.4): rigid segments that are not led yet follow vertices of others. What can follow
/// nobody (an eye that looks around, gums inside a mouth) needs a network after all, and its vertices may
/// then be followed by others: the largest first, since teeth will follow gums but gums no single tooth.
fn follow_others(
    poses: &Recording,
    settings: &FaceSettings,
    segments: &mut [SegmentPlan],
    members: &[Vec<u32>],
) -> Vec<RigidParts> {
    let tolerance = settings.rigid_mm / 10.0;
    let open = |plan: &SegmentPlan| plan.kind == SegmentKind::Rigid && plan.follow_mm.is_none();
    let mut left: Vec<usize> = (0..segments.len()).filter(|s| open(&segments[*s])).collect();
    loop {
        let free = |s: &usize| segments[*s].kind != SegmentKind::Rigid;
        let candidates: Vec<u32> =
            (0..segments.len()).filter(free).flat_map(|s| members[s].iter().copied()).collect();
        let mut parts = Vec::new();
        let mut lost: Option<usize> = None;
        for &segment in &left {
            let name = &segments[segment].name;
            let (own, error) = rigid::follow(poses, name, &members[segment], &candidates, settings);
            segments[segment].follow_mm = Some(error * 10.0);
            if error < tolerance && own.follows.len() >= 3 {
                parts.push(own);
            } else if lost.is_none_or(|largest| members[segment].len() > members[largest].len()) {
                lost = Some(segment);
            }
        }
        match lost {
            None => return parts,
            Some(segment) => {
                segments[segment].kind = SegmentKind::Network;
                left.retain(|other| *other != segment);
            }
        }
    }
}

/// Learns the motions of bodies. `watch` hears of epochs that are done, of all bodies, and may stop it.
/// Gives each with its root mean square error at a lever of ten centimetres, cm.
pub fn learn_bodies(
    poses: &Recording,
    bodies: &[BodyPlan],
    influences: &Influences,
    seed: u64,
    watch: &(dyn Fn(usize) -> bool + Sync),
) -> Result<Vec<(RigidBodyParts, f64)>, FaceLearnError> {
    let done = AtomicUsize::new(0);
    let one = |body: &BodyPlan| {
        let inputs = influences.of(poses, &body.vertices);
        let own = seed.wrapping_add(body.segment as u64 + 1);
        let step = |_| watch(done.fetch_add(1, Ordering::Relaxed) + 1);
        let trained =
            motion::learn(poses, &body.vertices, inputs, Size::body(bodies.len(), poses.len()), own, step)?;
        let parts = RigidBodyParts {
            name: body.name.clone(),
            vertices: body.vertices.clone(),
            motion: trained.parts,
        };
        Ok((parts, trained.error_cm))
    };
    bodies.par_iter().map(one).collect()
}
